//! CloudWatch: what is asked, and what answers mean.

use crate::ports::Ports;
use crate::{END, measure, told};
use keelway_domain::evaluation::{CloudWatch, MetricsApi, Place, Queries, query};
use keelway_engine::ports::PortError;
use serde_json::{Value, json};

const NO_VALUES: &str = "query did not return any values";
/// The window in whole minutes.
const FROM: i64 = (END / 1000 - 300) / 60 * 60;
const LENGTH: i64 = 360;

fn cloud() -> MetricsApi {
    MetricsApi::Cloudwatch(CloudWatch::default())
}

/// Points of a metric, by minutes after the beginning.
fn points(of: &[(i64, f64)]) -> Vec<(i64, Value)> {
    of.iter().map(|(minute, value)| (FROM + minute * 60, json!(value))).collect()
}

#[tokio::test]
async fn each_form_of_a_query_is_asked_in_one_request() {
    let ports = Ports::default();
    ports.give("errors / all", &points(&[(0, 0.02)]));
    ports.give("p95", &points(&[(0, 120.5)]));
    ports.give("SELECT AVG(Latency) FROM Shop", &points(&[(0, 90.0)]));
    ports.give("m1 / m2", &points(&[(4, 3.0), (3, 2.0)]));
    let texts = [
        "errors / all | errors=AWS/Lambda/Errors{FunctionName=shop}:Sum; all=AWS/Lambda/Invocations{FunctionName=shop}:Sum",
        "Shop/p95:p95",
        "SELECT AVG(Latency) FROM Shop",
        r#"[{"id": "r", "expression": "m1 / m2"},
            {"id": "m1", "metricStat": {"metric": {"namespace": "S", "metricName": "a"}, "stat": "Sum", "period": "60"}, "returnData": false},
            {"id": "m2", "metricStat": {"metric": {"namespace": "S", "metricName": "b"}, "stat": "Sum", "period": 60}, "returnData": false}]"#,
    ];
    let of = CloudWatch {
        region: Some("eu-west-1".into()),
        role: Some("arn:aws:iam::111122223333:role/m".into()),
        ..CloudWatch::default()
    };
    let measured = measure(&ports, MetricsApi::Cloudwatch(of.clone()), &texts).await.unwrap();
    assert_eq!(told(&measured), [Ok(0.02), Ok(120.5), Ok(90.0), Ok(3.0)]);
    let asked = &ports.cloud().asked;
    let [(place, request)] = &asked[..] else { panic!("{} requests", asked.len()) };
    assert_eq!((place, request["StartTime"].as_i64(), request["EndTime"].as_i64()), (&of, Some(FROM), Some(FROM + LENGTH)));
    let queries = request["MetricDataQueries"].as_array().unwrap();
    let errors = queries.iter().find(|query| query["MetricStat"]["Metric"]["MetricName"] == "Errors").unwrap();
    let expected = json!({
        "Metric": {"Namespace": "AWS/Lambda", "MetricName": "Errors", "Dimensions": [{"Name": "FunctionName", "Value": "shop"}]},
        "Stat": "Sum", "Period": LENGTH,
    });
    assert_eq!((&errors["MetricStat"], &errors["ReturnData"]), (&expected, &json!(false)));
}

/// Those that need no `sli.yaml`: seven indicators read eight metrics.
#[tokio::test]
async fn a_canary_of_lambda_is_measured_without_queries() {
    let slis = ["invocations", "errors", "error_rate", "throttles", "duration_p50", "duration_p90", "duration_p95"];
    let [function, alias, version] = ["shop", "live", "12"].map(|name| Some(name.to_owned()));
    let place = Place { function, alias, version, ..Place::default() };
    let texts = slis.map(|sli| query(&Queries::new(), sli, &place, &cloud()).unwrap());
    let ports = Ports::default();
    ports.give("Invocations", &points(&[(0, 200.0)]));
    ports.give("FILL(errors, 0) / invocations", &points(&[(0, 0.01)]));
    let measured = measure(&ports, cloud(), &texts.each_ref().map(String::as_str)).await.unwrap();
    assert_eq!(told(&measured)[..3], [Ok(200.0), Err(NO_VALUES), Ok(0.01)]);
    let asked = &ports.cloud().asked;
    let [(_, request)] = &asked[..] else { panic!("{} requests", asked.len()) };
    let metrics = request["MetricDataQueries"].as_array().unwrap().iter().filter_map(|one| one.get("MetricStat"));
    let dimensions = metrics.map(|stat| stat["Metric"]["Dimensions"].as_array().unwrap().len()).collect::<Vec<_>>();
    assert_eq!((dimensions.len(), dimensions.iter().filter(|count| **count == 2).count()), (8, 1), "{dimensions:?}");
}

#[tokio::test]
async fn the_newest_value_whose_period_is_over_counts() {
    let ports = Ports::default();
    // The last minute has come, the one after it is not over within the window, and one is from before.
    ports.give("late", &points(&[(5, 5.0), (6, 6.0), (2, 2.0), (-1, 9.0)]));
    ports.give("open", &points(&[(4, 4.0)]));
    ports.give("before", &points(&[(-1, 9.0)]));
    let measured =
        measure(&ports, cloud(), &["S/late:Sum:60", "S/open:Sum:300", "S/before:Sum:60", "S/missing:Sum"]).await.unwrap();
    let open = "no period of 300 s is over within the evaluated time";
    assert_eq!(told(&measured), [Ok(5.0), Err(open), Err("no period of 60 s is over within the evaluated time"), Err(NO_VALUES)]);
}

#[tokio::test]
async fn what_is_no_value_says_what_cloudwatch_says() {
    let ports = Ports::default();
    let point = points(&[(0, 1.0)]);
    ports.give("nan", &[(FROM, json!("NaN"))]);
    ports.give("infinite", &[(FROM, json!("Infinity"))]);
    ports.give("written", &[(FROM, json!("2.5"))]);
    ports.give_with("SELECT a GROUP BY b", &point, json!({"StatusCode": "Complete", "Label": "one"}));
    ports.give_with("SELECT a GROUP BY b", &point, json!({"StatusCode": "Complete", "Label": "other"}));
    let message =
        json!([{"Code": "ArithmeticError", "Value": "One or more data-points have been dropped due to non-numeric values"}]);
    ports.give_with("part", &point, json!({"StatusCode": "PartialData", "Messages": message}));
    ports.give_with("theirs", &[], json!({"StatusCode": "Forbidden", "Messages": [{"Code": "Forbidden", "Value": "no link"}]}));
    let texts = ["S/nan:Sum", "S/infinite:Sum", "S/written:Sum", "SELECT a GROUP BY b", "S/part:Sum", "S/theirs:Sum"];
    let measured = measure(&ports, cloud(), &texts).await.unwrap();
    let invalid = Err("query did not return valid values");
    let part = "CloudWatch has only a part of the data: ArithmeticError: One or more data-points have been dropped due to non-numeric values";
    let theirs = "CloudWatch does not let this role read the metric: Forbidden: no link";
    assert_eq!(told(&measured), [invalid, invalid, Ok(2.5), Err("query did return multiple values"), Err(part), Err(theirs)]);
    ports.give_with("broken", &[], json!({"StatusCode": "InternalError"}));
    let broken = measure(&ports, cloud(), &["S/broken:Sum"]).await.unwrap_err();
    assert!(matches!(broken, PortError::Retry { .. }), "{broken}");
}

#[tokio::test]
async fn a_query_that_cannot_be_read_spoils_no_other() {
    let ports = Ports::default();
    ports.give("a", &points(&[(0, 1.0)]));
    ports.give("b", &points(&[(0, 2.0)]));
    let json_math = r#"[{"Id": "x", "Expression": "unknown * 2"}]"#;
    let measured = measure(&ports, cloud(), &["S/a:Sum", "S/b:Zum", "nothing", json_math, "S/b:Sum"]).await.unwrap();
    let told = told(&measured);
    assert_eq!((told[0], told[4]), (Ok(1.0), Ok(2.0)));
    assert!(
        told[1].unwrap_err().contains("parameter Stat is not supported") && told[3].unwrap_err().contains("unknown"),
        "{told:?}"
    );
    assert!(told[2].unwrap_err().contains("write `id=Namespace/Metric"), "{told:?}");
    assert_eq!(ports.cloud().asked.len(), 1 + 4, "together, and each by itself");
}

#[tokio::test]
async fn more_than_500_metrics_take_more_requests_and_long_answers_more_pages() {
    let ports = Ports::default();
    let names: Vec<String> = (0..600).map(|n| format!("m{n}")).collect();
    for (n, name) in names.iter().enumerate() {
        ports.give(name, &points(&[(0, n as f64)]));
    }
    ports.cloud().page = 200;
    let texts: Vec<String> = names.iter().map(|name| format!("S/{name}:Sum")).collect();
    let measured = measure(&ports, cloud(), &texts.iter().map(String::as_str).collect::<Vec<_>>()).await.unwrap();
    assert!(measured.iter().enumerate().all(|(n, one)| one.success && one.value == n as f64));
    let asked = &ports.cloud().asked;
    let sizes: Vec<usize> = asked.iter().map(|(_, request)| request["MetricDataQueries"].as_array().unwrap().len()).collect();
    assert_eq!(sizes, [500, 500, 500, 100]);
    assert_eq!(asked.iter().map(|(_, request)| request.get("NextToken").is_some()).collect::<Vec<_>>(), [false, true, true, false]);
}

#[tokio::test]
async fn a_page_goes_on_where_the_one_before_ended() {
    let ports = Ports::default();
    // Two results of one name and label: the points of one series on two pages.
    ports.give_with("a", &points(&[(4, 4.0)]), json!({"StatusCode": "PartialData"}));
    ports.give_with("a", &points(&[(3, 3.0)]), json!({"StatusCode": "Complete"}));
    ports.cloud().page = 1;
    let measured = measure(&ports, cloud(), &["S/a:Sum:60"]).await.unwrap();
    assert_eq!((told(&measured), ports.cloud().asked.len()), (vec![Ok(4.0)], 2));
}

#[tokio::test]
async fn whoever_is_busy_or_denied_is_told_as_it_is() {
    let ports = Ports::default();
    let busy = PortError::Retry { request: "cloudwatch.GetMetricData", reason: "Throttling: Rate exceeded (status 400)".into() };
    let denied =
        PortError::Refused { request: "cloudwatch.GetMetricData", reason: "AccessDenied: not authorized (status 403)".into() };
    for error in [busy, denied] {
        ports.cloud().fails = vec![error.clone()];
        assert_eq!(measure(&ports, cloud(), &["S/a:Sum"]).await, Err(error));
    }
    ports.give("odd", &[]);
    ports.cloud().has.get_mut("odd").unwrap()[0]["Values"] = json!([1]);
    let odd = measure(&ports, cloud(), &["S/odd:Sum"]).await.unwrap_err();
    assert!(matches!(odd, PortError::Refused { .. }) && odd.to_string().contains("0 times and 1 values"), "{odd}");
}
