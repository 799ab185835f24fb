//! Secrets, a clock, and AWS: a CloudWatch that takes only documented requests, and a signer.

use keelway_domain::evaluation::{CloudWatch, Prometheus};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::metrics::Credentialed;
use keelway_engine::ports::{Clock, PortError};
use keelway_engine::secrets::{Known, SecretText, Secrets};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

#[derive(Clone, Default)]
pub struct Ports {
    pub secrets: Known,
    pub cloud: Arc<Mutex<Cloud>>,
}

/// What CloudWatch has, and what it was asked.
#[derive(Default)]
pub struct Cloud {
    /// By the name of a metric, or by an expression as it was written: results.
    pub has: BTreeMap<String, Vec<Value>>,
    /// What the next requests fail with.
    pub fails: Vec<PortError>,
    /// How many results are on a page; 0: all.
    pub page: usize,
    pub asked: Vec<(CloudWatch, Value)>,
    pub signed: Vec<(String, String)>,
}

impl Ports {
    pub fn cloud(&self) -> MutexGuard<'_, Cloud> {
        self.cloud.lock().unwrap()
    }

    /// Gives a metric or an expression one complete result with these points.
    pub fn give(&self, name: &str, points: &[(i64, Value)]) {
        self.give_with(name, points, json!({"StatusCode": "Complete"}));
    }

    /// The same with other members.
    pub fn give_with(&self, name: &str, points: &[(i64, Value)], more: Value) {
        let (times, values): (Vec<_>, Vec<_>) = points.iter().cloned().unzip();
        let mut result = json!({"Timestamps": times, "Values": values, "Label": name});
        result.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.cloud().has.entry(name.to_owned()).or_default().push(result);
    }
}

impl Secrets for Ports {
    async fn secret(&self, name: &str) -> Result<Option<SecretText>, PortError> {
        self.secrets.secret(name).await
    }
}

impl Clock for Ports {
    fn now(&self) -> Timestamp {
        Timestamp(crate::END + 90_000)
    }
    async fn pause(&self, _: Span) {}
}

impl Credentialed for Ports {
    async fn metric_data(&self, of: &CloudWatch, request: &Value) -> Result<Result<Value, String>, PortError> {
        let mut cloud = self.cloud();
        cloud.asked.push((of.clone(), request.clone()));
        if !cloud.fails.is_empty() {
            return Err(cloud.fails.remove(0));
        }
        Ok(cloud.answer(request))
    }

    async fn signature(&self, of: &Prometheus, url: &str, body: &str) -> Result<Vec<(String, String)>, PortError> {
        assert_eq!(of.region.as_deref(), Some("eu-west-1"));
        self.cloud().signed.push((url.to_owned(), body.to_owned()));
        Ok(vec![("authorization".into(), "AWS4-HMAC-SHA256 Credential=A".into()), ("x-amz-date".into(), "20261121T005106Z".into())])
    }
}

/// Refuses members that are not documented.
fn only(of: &Map<String, Value>, known: &[&str]) -> Result<(), String> {
    let odd = of.keys().find(|name| !known.contains(&name.as_str()));
    odd.map_or(Ok(()), |name| Err(format!("{name} is not known")))
}

fn period(of: &Map<String, Value>) -> Result<i64, String> {
    let period = of.get("Period").and_then(Value::as_i64).ok_or("the parameter Period is required")?;
    ([1, 5, 10, 20, 30].contains(&period) || period % 60 == 0 && period > 0)
        .then_some(period)
        .ok_or("Period must be a multiple of 60".into())
}

/// The words of an expression that may be names of queries.
fn words(expression: &str) -> BTreeSet<&str> {
    let word = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    expression.split(word).filter(|word| word.starts_with(|c: char| c.is_ascii_lowercase())).collect()
}

/// An expression as its author wrote it.
fn written(expression: &str) -> String {
    let mut text = String::new();
    for part in expression.split_inclusive(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        let rest = part.strip_prefix('q').and_then(|part| part.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix('_'));
        text.push_str(rest.unwrap_or(part));
    }
    text
}

impl Cloud {
    /// As `GetMetricData` documents it.
    fn answer(&self, request: &Value) -> Result<Value, String> {
        let request = request.as_object().unwrap();
        only(request, &["MetricDataQueries", "StartTime", "EndTime", "ScanBy", "NextToken"])?;
        assert_eq!(request["ScanBy"], "TimestampDescending");
        let (start, end) = (request["StartTime"].as_i64().unwrap(), request["EndTime"].as_i64().unwrap());
        assert!(start < end && start % 60 == 0 && end % 60 == 0, "{start} {end}");
        let queries = request["MetricDataQueries"].as_array().unwrap();
        assert!(!queries.is_empty() && queries.len() <= 500, "{} queries", queries.len());
        let ids: BTreeSet<&str> = queries.iter().map(|query| query["Id"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), queries.len(), "each has a name of its own");
        let mut results = vec![];
        for query in queries.iter().map(|query| query.as_object().unwrap()) {
            only(query, &["Id", "Expression", "MetricStat", "Label", "ReturnData", "Period", "AccountId"])?;
            let id = query["Id"].as_str().unwrap();
            assert!(id.starts_with(|c: char| c.is_ascii_lowercase()), "{id}");
            let name = match (query.get("Expression"), query.get("MetricStat")) {
                (Some(expression), None) => {
                    let expression = expression.as_str().unwrap();
                    if expression.starts_with("SELECT") {
                        period(query)?;
                    } else if let Some(unknown) = words(expression).into_iter().find(|word| !ids.contains(word)) {
                        return Err(format!("Error in expression '{id}': Syntax error, {unknown} is unknown"));
                    }
                    written(expression)
                }
                (None, Some(stat)) => {
                    let stat = stat.as_object().unwrap();
                    only(stat, &["Metric", "Period", "Stat", "Unit"])?;
                    period(stat)?;
                    let metric = stat["Metric"].as_object().unwrap();
                    only(metric, &["Namespace", "MetricName", "Dimensions"])?;
                    for dimension in metric.get("Dimensions").and_then(Value::as_array).into_iter().flatten() {
                        only(dimension.as_object().unwrap(), &["Name", "Value"])?;
                    }
                    if !stat["Stat"].as_str().unwrap().starts_with(['S', 'A', 'M', 'p', 'T']) {
                        return Err("The value for parameter Stat is not supported".into());
                    }
                    metric["MetricName"].as_str().unwrap().to_owned()
                }
                both => panic!("one of Expression and MetricStat: {both:?}"),
            };
            if query.get("ReturnData") == Some(&json!(false)) {
                continue;
            }
            let empty = || vec![json!({"Timestamps": [], "Values": [], "Label": name, "StatusCode": "Complete"})];
            for mut result in self.has.get(&name).cloned().unwrap_or_else(empty) {
                result["Id"] = id.into();
                results.push(result);
            }
        }
        let from = match request.get("NextToken") {
            None => 0,
            Some(token) => token.as_str().and_then(|token| token.strip_prefix("page-")?.parse().ok()).expect("a token of its own"),
        };
        let most = if self.page == 0 { results.len() } else { self.page };
        let rest = results.len() > from + most;
        let mut answer =
            json!({"MetricDataResults": results.into_iter().skip(from).take(most).collect::<Vec<_>>(), "Messages": []});
        if rest {
            answer["NextToken"] = format!("page-{}", from + most).into();
        }
        Ok(answer)
    }
}
