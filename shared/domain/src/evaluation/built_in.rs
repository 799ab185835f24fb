//! Indicators that have a query without a file. Those for Prometheus are the ones of Keptn's Prometheus service; those for
//! CloudWatch are of a version of a Lambda function behind an alias, so that a canary can be judged without instrumentation.

use super::indicators::{Place, plain};
use super::source::MetricsApi;

/// The names of those for Prometheus.
const PROMETHEUS: [&str; 5] = ["throughput", "error_rate", "response_time_p50", "response_time_p90", "response_time_p95"];
/// The names of those for CloudWatch.
const LAMBDA: [&str; 7] = ["invocations", "errors", "error_rate", "throttles", "duration_p50", "duration_p90", "duration_p95"];

/// Whether some source has such an indicator without a file.
pub fn is_built_in(sli: &str) -> bool {
    PROMETHEUS.contains(&sli) || LAMBDA.contains(&sli)
}

pub(super) fn built_in(sli: &str, place: &Place, api: &MetricsApi) -> Option<String> {
    match api {
        MetricsApi::Prometheus(_) => prometheus(sli, place),
        MetricsApi::Cloudwatch(_) => lambda(sli, place),
    }
}

fn prometheus(sli: &str, place: &Place) -> Option<String> {
    let (filter, duration) = (selector(place), place.duration());
    let latency = |share: &str| {
        format!("histogram_quantile(0.{share},sum(rate(http_response_time_milliseconds_bucket{{{filter}}}[{duration}]))by(le))")
    };
    let all = format!("sum(rate(http_requests_total{{{filter}}}[{duration}]))");
    Some(match sli {
        "throughput" => all,
        "error_rate" => format!("sum(rate(http_requests_total{{{filter},status!~'2..'}}[{duration}]))/{all}"),
        "response_time_p50" => latency("50"),
        "response_time_p90" => latency("90"),
        "response_time_p95" => latency("95"),
        _ => return None,
    })
}

/// The labels that the built-in queries select by: the filter, and a job unless the filter names one.
fn selector(place: &Place) -> String {
    let mut all = vec![];
    if !place.filter.contains_key("job") {
        all.push(format!("job='{}-{}-{}-canary'", place.service, place.project, place.stage));
    }
    for (key, value) in &place.filter {
        let has_operator = value.starts_with('=') || ["!=", "!~"].iter().any(|operator| value.starts_with(operator));
        all.push(match has_operator {
            true => format!("{key}{}", value.replace('"', "'")),
            false => format!("{key}='{}'", value.replace(['\'', '"'], "")),
        });
    }
    all.join(",")
}

/// The metrics of `AWS/Lambda` by function, alias and version, which Lambda has while an alias is between two versions. Counts of
/// what does not happen are filled with 0. Which version a throttled call would have reached, nobody knows, so throttles are those
/// of the alias.
fn lambda(sli: &str, place: &Place) -> Option<String> {
    let [function, alias, version] = [&place.function, &place.alias, &place.version].map(|name| name.as_deref().map(plain));
    let (function, alias, version) = (function?, alias?, version?);
    let of_alias = format!("FunctionName=\"{function}\",Resource=\"{function}:{alias}\"");
    let of = |metric: &str, statistic: &str| format!("AWS/Lambda/{metric}{{{of_alias},ExecutedVersion=\"{version}\"}}:{statistic}");
    Some(match sli {
        "invocations" => of("Invocations", "Sum"),
        "errors" => format!("FILL(errors, 0) | errors={}", of("Errors", "Sum")),
        "error_rate" => {
            format!("FILL(errors, 0) / invocations | errors={}; invocations={}", of("Errors", "Sum"), of("Invocations", "Sum"))
        }
        "throttles" => format!("FILL(throttles, 0) | throttles=AWS/Lambda/Throttles{{{of_alias}}}:Sum"),
        "duration_p50" => of("Duration", "p50"),
        "duration_p90" => of("Duration", "p90"),
        "duration_p95" => of("Duration", "p95"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluation::{CloudWatch, Prometheus, Queries, query};

    fn place() -> Place {
        let [project, stage, service, deployment] = ["shop", "dev", "carts", "canary"].map(str::to_owned);
        let [function, alias, version] = ["shop-carts", "live", "12"].map(|text| Some(text.to_owned()));
        Place { project, stage, service, deployment, function, alias, version, milliseconds: 299_001, ..Place::default() }
    }

    fn of_prometheus(sli: &str, place: &Place) -> Option<String> {
        query(&Queries::new(), sli, place, &MetricsApi::Prometheus(Prometheus::default())).ok()
    }

    fn of_cloudwatch(sli: &str, place: &Place) -> Option<String> {
        query(&Queries::new(), sli, place, &MetricsApi::Cloudwatch(CloudWatch::default())).ok()
    }

    #[test]
    fn prometheus_has_those_of_keptns_service() {
        let of = |sli: &str, place: &Place| of_prometheus(sli, place).unwrap();
        assert!(PROMETHEUS.iter().all(|sli| is_built_in(sli) && of_prometheus(sli, &place()).is_some()));
        assert_eq!(of("throughput", &place()), "sum(rate(http_requests_total{job='carts-shop-dev-canary'}[300s]))");
        let filter = [("handler", "Items'Controller"), ("job", "=~\"a|b\"")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        let filtered = Place { filter: filter.into(), ..place() };
        assert_eq!(
            of("error_rate", &filtered),
            "sum(rate(http_requests_total{handler='ItemsController',job=~'a|b',status!~'2..'}[300s]))/\
             sum(rate(http_requests_total{handler='ItemsController',job=~'a|b'}[300s]))"
        );
        assert_eq!(
            of("response_time_p95", &place()),
            "histogram_quantile(0.95,sum(rate(http_response_time_milliseconds_bucket{job='carts-shop-dev-canary'}[300s]))by(le))"
        );
        assert_eq!(of_prometheus("duration_p95", &place()), None, "that is CloudWatch's");
    }

    #[test]
    fn cloudwatch_has_those_of_a_version_behind_an_alias() {
        let of = |sli: &str| of_cloudwatch(sli, &place()).unwrap();
        assert!(LAMBDA.iter().all(|sli| is_built_in(sli) && of_cloudwatch(sli, &place()).is_some()));
        let version = "FunctionName=\"shop-carts\",Resource=\"shop-carts:live\",ExecutedVersion=\"12\"";
        assert_eq!(of("duration_p95"), format!("AWS/Lambda/Duration{{{version}}}:p95"));
        let [errors, invocations] = ["Errors", "Invocations"].map(|metric| format!("AWS/Lambda/{metric}{{{version}}}:Sum"));
        assert_eq!(of("error_rate"), format!("FILL(errors, 0) / invocations | errors={errors}; invocations={invocations}"));
        let alias = "AWS/Lambda/Throttles{FunctionName=\"shop-carts\",Resource=\"shop-carts:live\"}:Sum";
        assert_eq!(of("throttles"), format!("FILL(throttles, 0) | throttles={alias}"));
        assert_eq!(of_cloudwatch("throughput", &place()), None, "that is Prometheus'");
        let (function, alias, version) = (None, None, None);
        for less in [Place { function, ..place() }, Place { alias, ..place() }, Place { version, ..place() }] {
            assert!(LAMBDA.iter().all(|sli| of_cloudwatch(sli, &less).is_none()));
        }
    }
}
