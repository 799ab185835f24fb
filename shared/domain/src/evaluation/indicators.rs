//! Files of indicators (`sli.yaml`): queries by name, from project, stage and service, and what stands for the place of an
//! evaluation in them. As Keptn's Prometheus service does it.

use std::collections::BTreeMap;

/// Queries by the name of their indicator.
pub type Queries = BTreeMap<String, String>;

/// Indicators that have a query without a file.
pub const BUILT_IN: [&str; 5] = ["throughput", "error_rate", "response_time_p50", "response_time_p90", "response_time_p95"];

/// Where and when an evaluation takes place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the words that queries use")]
pub struct Place {
    pub project: String,
    pub stage: String,
    pub service: String,
    pub deployment: String,
    pub labels: BTreeMap<String, String>,
    /// `filter` of the objectives.
    pub filter: BTreeMap<String, String>,
    /// From the beginning to the end of the evaluation.
    pub milliseconds: i64,
}

/// Why there is no query. The messages are those of Keptn's Prometheus service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// A file without indicators, and none in the files before it.
    #[error("missing required field: indicators")]
    NoIndicators,
    /// No file has it, and it is not built in.
    #[error("unsupported SLI")]
    Unsupported,
}

/// The queries of the files of project, stage and service, as far as there are any: the later one counts, name by name.
///
/// # Errors
/// The first files have no indicator.
pub fn merged(files: &[Option<&Queries>; 3]) -> Result<Queries, QueryError> {
    let mut all = Queries::new();
    for file in files.iter().flatten() {
        all.extend(file.iter().map(|(name, query)| (name.clone(), query.clone())));
        if all.is_empty() {
            return Err(QueryError::NoIndicators);
        }
    }
    Ok(all)
}

/// The query of an indicator, with the place filled in.
///
/// # Errors
/// There is none.
pub fn query(queries: &Queries, sli: &str, place: &Place) -> Result<String, QueryError> {
    match queries.get(sli).filter(|query| !query.is_empty()) {
        Some(query) => Ok(place.filled(query)),
        None => place.built_in(sli).ok_or(QueryError::Unsupported),
    }
}

impl Place {
    /// The names are replaced wherever they stand, also within longer words: the longest of them first.
    fn filled(&self, query: &str) -> String {
        let mut query = query.to_owned();
        for (key, value) in longest_first(&self.filter) {
            let value = plain(value);
            query = query.replace(&format!("${key}"), &value).replace(&format!("${}", key.to_uppercase()), &value);
        }
        let names =
            [("$PROJECT", &self.project), ("$STAGE", &self.stage), ("$SERVICE", &self.service), ("$DEPLOYMENT", &self.deployment)];
        for (name, value) in names {
            query = query.replace(name, &plain(value));
        }
        for (key, value) in longest_first(&self.labels) {
            query = query.replace(&format!("$LABEL.{key}"), &plain(value));
        }
        query.replace("$DURATION_SECONDS", &self.duration())
    }

    /// Whole seconds, rounded up.
    fn duration(&self) -> String {
        let more = i64::from(self.milliseconds.rem_euclid(1000) > 0);
        format!("{}s", self.milliseconds.div_euclid(1000) + more)
    }

    fn built_in(&self, sli: &str) -> Option<String> {
        let (filter, duration) = (self.selector(), self.duration());
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
    fn selector(&self) -> String {
        let mut all = vec![];
        if !self.filter.contains_key("job") {
            all.push(format!("job='{}-{}-{}-canary'", self.service, self.project, self.stage));
        }
        for (key, value) in &self.filter {
            let has_operator = value.starts_with('=') || ["!=", "!~"].iter().any(|operator| value.starts_with(operator));
            all.push(match has_operator {
                true => format!("{key}{}", value.replace('"', "'")),
                false => format!("{key}='{}'", value.replace(['\'', '"'], "")),
            });
        }
        all.join(",")
    }
}

/// A text without what would end a text in a query: whoever may trigger says which values are asked for, not what the query is.
fn plain(value: &str) -> String {
    value.replace(['\'', '"', '`', '\\', '\n', '\r'], "")
}

fn longest_first(of: &BTreeMap<String, String>) -> Vec<(&String, &String)> {
    let mut all: Vec<_> = of.iter().collect();
    all.sort_by_key(|(key, _)| std::cmp::Reverse(key.len()));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(of: &[(&str, &str)]) -> BTreeMap<String, String> {
        of.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn place() -> Place {
        let (labels, filter) = (map(&[("build", "7"), ("build_id", "x")]), map(&[]));
        let [project, stage, service, deployment] = ["shop", "dev", "carts", "canary"].map(str::to_owned);
        Place { project, stage, service, deployment, labels, filter, milliseconds: 299_001 }
    }

    #[test]
    fn the_file_nearest_to_the_service_counts() {
        let (project, stage, none) = (map(&[("a", "1"), ("b", "1")]), map(&[("b", "2")]), map(&[]));
        assert_eq!(merged(&[Some(&project), Some(&stage), None]), Ok(map(&[("a", "1"), ("b", "2")])));
        assert_eq!(merged(&[None, None, None]), Ok(none.clone()));
        assert_eq!(merged(&[Some(&project), None, Some(&none)]), Ok(project.clone()), "what others say is enough");
        let error = merged(&[Some(&none), Some(&project), None]).unwrap_err();
        assert_eq!(error.to_string(), "missing required field: indicators");
    }

    #[test]
    fn a_query_names_its_place() {
        let queries = map(&[
            ("a", "rate(x{job=\"$SERVICE-$PROJECT-$STAGE\",d='$DEPLOYMENT'}[$DURATION_SECONDS])"),
            ("b", "$LABEL.build_id $LABEL.build $LABEL.other $SERVICE_NAME"),
            ("c", "$svc $SVC_ID $svc_id"),
            ("empty", ""),
        ]);
        let filled = |sli: &str, place: &Place| query(&queries, sli, place).unwrap();
        assert_eq!(filled("a", &place()), "rate(x{job=\"carts-shop-dev\",d='canary'}[300s])");
        assert_eq!(filled("b", &place()), "x 7 $LABEL.other carts_NAME", "the longest name first");
        let hostile = Place { labels: map(&[("build", "7\"} or vector(0) #\\"), ("other", "`1`")]), ..place() };
        assert_eq!(filled("b", &hostile), "7} or vector(0) #_id 7} or vector(0) # 1 carts_NAME", "no text ends early");
        let filtered = Place { filter: map(&[("svc", "'s\""), ("svc_id", "i")]), ..place() };
        assert_eq!(filled("c", &filtered), "s i i");
        let error = query(&queries, "empty", &place()).unwrap_err();
        assert_eq!(error.to_string(), "unsupported SLI");
    }

    #[test]
    fn some_indicators_need_no_file() {
        let of = |sli: &str, place: &Place| query(&Queries::new(), sli, place).unwrap();
        assert!(BUILT_IN.iter().all(|sli| query(&Queries::new(), sli, &place()).is_ok()));
        assert_eq!(of("throughput", &place()), "sum(rate(http_requests_total{job='carts-shop-dev-canary'}[300s]))");
        let filter = map(&[("handler", "Items'Controller"), ("job", "=~\"a|b\"")]);
        let filtered = Place { filter, ..place() };
        assert_eq!(
            of("error_rate", &filtered),
            "sum(rate(http_requests_total{handler='ItemsController',job=~'a|b',status!~'2..'}[300s]))/\
             sum(rate(http_requests_total{handler='ItemsController',job=~'a|b'}[300s]))"
        );
        assert_eq!(
            of("response_time_p95", &place()),
            "histogram_quantile(0.95,sum(rate(http_response_time_milliseconds_bucket{job='carts-shop-dev-canary'}[300s]))by(le))"
        );
    }
}
