//! Queries of several indicators in one request.

use super::math;
use super::parsed::MetricQuery;
use super::window::Window;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The most entries of a request.
pub const MOST: usize = 500;

/// Queries that are asked together, each with its place among all.
#[derive(Debug, Clone)]
pub struct Batch<'a>(Vec<(usize, &'a MetricQuery)>);

/// Packs queries into as few requests as they fit into, in their order.
pub fn batches<'a>(queries: impl Iterator<Item = (usize, &'a MetricQuery)>) -> Vec<Batch<'a>> {
    let mut all: Vec<Batch<'a>> = vec![];
    let mut open: Vec<(usize, &MetricQuery)> = vec![];
    for (place, query) in queries {
        if query.alone {
            all.push(Batch(vec![(place, query)]));
            continue;
        }
        let entries: usize = open.iter().map(|(_, query)| query.entries.len()).sum();
        if entries + query.entries.len() > MOST {
            all.push(Batch(std::mem::take(&mut open)));
        }
        open.push((place, query));
    }
    if !open.is_empty() {
        all.push(Batch(open));
    }
    all
}

impl<'a> Batch<'a> {
    /// How many queries there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Each of them by itself.
    pub fn alone(&self) -> Vec<Self> {
        self.0.iter().map(|one| Self(vec![*one])).collect()
    }

    /// What the names of a query begin with in this request. An expression may choose among all metrics by their names, so those of
    /// a query that is alone stay as they are.
    fn prefix(&self, place: usize) -> String {
        if self.len() == 1 { String::new() } else { format!("q{place}_") }
    }

    /// The place of each query, itself, and the name of its result.
    pub fn ids(&self) -> impl Iterator<Item = (usize, &'a MetricQuery, String)> + '_ {
        self.0.iter().map(|(place, query)| (*place, *query, format!("{}{}", self.prefix(*place), query.result)))
    }

    /// The request for the values of a window. Queries that name no period have this one, in seconds.
    pub fn request(&self, window: &Window, period: i64) -> Value {
        let entries: Vec<Value> = self.0.iter().flat_map(|(place, query)| named(query, &self.prefix(*place), period)).collect();
        json!({
            "MetricDataQueries": entries, "StartTime": window.start, "EndTime": window.end, "ScanBy": "TimestampDescending",
        })
    }
}

/// The entries of a query with other names, and with the periods that it leaves open.
fn named(query: &MetricQuery, prefix: &str, period: i64) -> Vec<Value> {
    let ids: BTreeSet<&str> = query.entries.iter().filter_map(|entry| entry.get("Id")?.as_str()).collect();
    let period = query.period.unwrap_or(period);
    let one = |entry: &serde_json::Map<String, Value>| {
        let mut entry = entry.clone();
        if let Some(Value::String(id)) = entry.get_mut("Id") {
            id.insert_str(0, prefix);
        }
        if let Some(Value::String(expression)) = entry.get_mut("Expression") {
            if math::is_insights(expression) {
                entry.entry("Period").or_insert(period.into());
            } else {
                *expression = math::prefixed(expression, &ids, prefix);
            }
        }
        if let Some(Value::Object(stat)) = entry.get_mut("MetricStat") {
            stat.entry("Period").or_insert(period.into());
        }
        Value::Object(entry)
    };
    query.entries.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloudwatch::parse;

    #[test]
    fn queries_of_several_indicators_have_names_of_their_own_in_one_request() {
        let texts = [
            "e / r | e=A/E:Sum; r=A/R:Sum",
            "A/E:p95:60",
            "SELECT MAX(x) FROM A",
            r#"[{"Id": "s", "Expression": "SUM(METRICS())"}]"#,
        ];
        let queries: Vec<_> = texts.map(|text| parse(text).unwrap()).into();
        let packed = batches(queries.iter().enumerate());
        assert_eq!(packed.iter().map(Batch::len).collect::<Vec<_>>(), [1, 3], "what takes all metrics is alone");
        let window = Window { start: 600, end: 900 };
        let request = packed[1].request(&window, 300);
        let entries = request["MetricDataQueries"].as_array().unwrap();
        let ids: Vec<_> = entries.iter().map(|entry| entry["Id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["q0_e", "q0_r", "q0_result0", "q1_m", "q2_q"]);
        assert_eq!(entries[2]["Expression"], "q0_e / q0_r");
        let periods: Vec<_> =
            entries.iter().map(|entry| entry["MetricStat"]["Period"].as_i64().or(entry["Period"].as_i64())).collect();
        assert_eq!(periods, [Some(300), Some(300), None, Some(60), Some(300)]);
        assert_eq!(packed[1].ids().map(|(place, _, id)| (place, id)).collect::<Vec<_>>()[2], (2, "q2_q".to_owned()));
        assert_eq!(packed[0].request(&window, 300)["MetricDataQueries"][0]["Id"], "s", "alone it keeps its names");
    }

    #[test]
    fn a_request_has_at_most_500_entries() {
        let queries: Vec<_> = (0..300).map(|n| parse(&format!("e / r | e=A/E{n}:Sum; r=A/R:Sum")).unwrap()).collect();
        let packed = batches(queries.iter().enumerate());
        assert_eq!(packed.iter().map(Batch::len).collect::<Vec<_>>(), [166, 134]);
    }
}
