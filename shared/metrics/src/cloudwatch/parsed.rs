//! What a query asks CloudWatch for, in each of its forms.

use super::{array, line, math};
use serde_json::{Map, Value, json};

/// The longest query, in bytes.
const LONGEST: usize = 16 * 1024;

/// The entries of `MetricDataQueries` that a query stands for. Periods that it leaves open are missing in them.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricQuery {
    /// With names that are unique within the query.
    pub entries: Vec<Map<String, Value>>,
    /// The name of the entry whose value counts.
    pub result: String,
    /// The longest period that the query names, in seconds.
    pub period: Option<i64>,
    /// Whether it is about all metrics of a request, so that no other query may be in it.
    pub alone: bool,
}

/// Reads a query: one line (`expression | id=Namespace/Metric{Dimension=value}:stat:period; …`), Metrics Insights (`SELECT …`), or
/// the JSON array of `MetricDataQueries`.
///
/// # Errors
/// What is wrong, and how to write it.
pub fn parse(text: &str) -> Result<MetricQuery, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("the query is empty".into());
    }
    if text.len() > LONGEST {
        return Err(format!("the query has {} bytes: at most {LONGEST} are sent", text.len()));
    }
    if text.starts_with('[') || text.starts_with('{') {
        return array::parse(text);
    }
    if math::is_insights(text) {
        let entry = object(json!({"Id": "q", "Expression": text}));
        return Ok(MetricQuery { entries: vec![entry], result: "q".into(), period: None, alone: false });
    }
    line::parse(text)
}

impl MetricQuery {
    /// A query of these entries, of which `result` counts.
    pub(super) fn new(entries: Vec<Map<String, Value>>, result: String) -> Self {
        let period = |entry: &Map<String, Value>| entry.get("Period").or_else(|| entry.get("MetricStat")?.get("Period"))?.as_i64();
        let alone = entries.iter().filter_map(|entry| entry.get("Expression")?.as_str()).any(math::takes_all);
        Self { period: entries.iter().filter_map(period).max(), alone, entries, result }
    }
}

pub(super) fn object(value: Value) -> Map<String, Value> {
    if let Value::Object(object) = value { object } else { Map::new() }
}

/// A period in seconds that CloudWatch takes.
pub(super) fn period(seconds: i64) -> Result<i64, String> {
    let fits = [1, 5, 10, 20, 30].contains(&seconds) || seconds > 0 && seconds % 60 == 0 && seconds <= 86_400;
    fits.then_some(seconds).ok_or_else(|| format!("a period of {seconds} s is none of CloudWatch's: write a multiple of 60 s"))
}
