//! The JSON array of `MetricDataQueries`, with the members of AWS as Flagger takes them, or with small first letters as Argo
//! Rollouts does.

use super::parsed::{MetricQuery, period};
use super::text::is_id;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The most entries of a query.
const MOST: usize = 100;
/// The members of an entry and of what is in it.
const ENTRY: [&str; 7] = ["Id", "Expression", "MetricStat", "Label", "ReturnData", "Period", "AccountId"];
const STAT: [&str; 4] = ["Metric", "Period", "Stat", "Unit"];
const METRIC: [&str; 3] = ["Namespace", "MetricName", "Dimensions"];
const DIMENSION: [&str; 2] = ["Name", "Value"];

/// Reads such a query.
pub fn parse(text: &str) -> Result<MetricQuery, String> {
    let array: Value = serde_json::from_str(text).map_err(|error| format!("the query is no JSON array: {error}"))?;
    let Value::Array(array) = array else { return Err("the query is no JSON array: put `[` and `]` around it".into()) };
    if array.is_empty() || array.len() > MOST {
        return Err(format!("the query has {} entries: write 1 to {MOST}", array.len()));
    }
    let entries = array.into_iter().enumerate().map(|(place, one)| entry(place, one)).collect::<Result<Vec<_>, _>>()?;
    let id = |entry: &Map<String, Value>| entry["Id"].as_str().unwrap_or_default().to_owned();
    let ids: BTreeSet<String> = entries.iter().map(id).collect();
    if ids.len() < entries.len() {
        return Err("two entries have the same `Id`: give each its own".into());
    }
    let returned: Vec<&Map<String, Value>> =
        entries.iter().filter(|entry| entry.get("ReturnData") != Some(&Value::Bool(false))).collect();
    match returned[..] {
        [one] => {
            let result = id(one);
            Ok(MetricQuery::new(entries, result))
        }
        [] => Err("no entry returns data: leave `ReturnData: false` out of one".into()),
        _ => Err(format!("{} entries return data: write `ReturnData: false` into all but one", returned.len())),
    }
}

fn entry(place: usize, value: Value) -> Result<Map<String, Value>, String> {
    let at = format!("entry {}", place + 1);
    let mut entry = members(value, &ENTRY, &at)?;
    if !entry.get("Id").and_then(Value::as_str).is_some_and(is_id) {
        return Err(format!("{at} has no `Id` of a lower-case letter, then letters, digits and `_`"));
    }
    seconds(&mut entry, &at)?;
    match (entry.get("Expression").is_some_and(Value::is_string), entry.remove("MetricStat")) {
        (true, None) => {}
        (false, Some(stat)) if !entry.contains_key("Expression") => {
            entry.insert("MetricStat".into(), stat_of(stat, &at)?.into());
        }
        _ => return Err(format!("{at} has not one of `Expression` and `MetricStat`")),
    }
    Ok(entry)
}

fn stat_of(value: Value, at: &str) -> Result<Map<String, Value>, String> {
    let at = format!("`MetricStat` of {at}");
    let mut stat = members(value, &STAT, &at)?;
    seconds(&mut stat, &at)?;
    let metric = stat.remove("Metric").ok_or_else(|| format!("{at} has no `Metric`"))?;
    let mut metric = members(metric, &METRIC, &format!("`Metric` in {at}"))?;
    if let Some(dimensions) = metric.remove("Dimensions") {
        let Value::Array(dimensions) = dimensions else { return Err(format!("`Dimensions` in {at} is no list")) };
        let each = |one| members(one, &DIMENSION, &format!("a dimension in {at}")).map(Value::Object);
        metric.insert("Dimensions".into(), dimensions.into_iter().map(each).collect::<Result<_, _>>()?);
    }
    if !["Namespace", "MetricName"].iter().all(|name| metric.get(*name).is_some_and(Value::is_string)) {
        return Err(format!("`Metric` in {at} has not both `Namespace` and `MetricName`"));
    }
    if !stat.get("Stat").is_some_and(Value::is_string) {
        return Err(format!("{at} has no `Stat`"));
    }
    stat.insert("Metric".into(), metric.into());
    Ok(stat)
}

/// The members of an object, as AWS writes them.
fn members(value: Value, known: &[&str], at: &str) -> Result<Map<String, Value>, String> {
    let Value::Object(object) = value else { return Err(format!("{at} is no mapping")) };
    let name = |given: &str| known.iter().find(|name| name.eq_ignore_ascii_case(given)).map(|name| (*name).to_owned());
    let mut members = Map::new();
    for (given, value) in object.into_iter().filter(|(_, value)| !value.is_null()) {
        let name = name(&given).ok_or_else(|| format!("{at} has {given:?}, which `GetMetricData` does not take"))?;
        if members.insert(name, value).is_some() {
            return Err(format!("{at} has {given:?} twice"));
        }
    }
    Ok(members)
}

/// A period may be a number in quotes.
fn seconds(of: &mut Map<String, Value>, at: &str) -> Result<(), String> {
    if let Some(given) = of.get("Period") {
        let number = given.as_i64().or_else(|| given.as_str()?.parse().ok());
        let number = number.ok_or_else(|| format!("`Period` of {at} is no number of seconds"))?;
        of.insert("Period".into(), period(number).map_err(|why| format!("{at}: {why}"))?.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// As Argo Rollouts' documentation has it, and Flagger's.
    #[test]
    fn the_arrays_of_argo_rollouts_and_of_flagger_are_read() {
        let argo = r#"[{"id": "rate", "expression": "errors / requests"},
            {"id": "errors", "metricStat": {"metric": {"namespace": "app", "metricName": "errors"}, "stat": "Sum", "period": "300", "unit": "Count"},
             "returnData": false},
            {"id": "requests", "metricStat": {"metric": {"namespace": "app", "metricName": "requests"}, "stat": "Sum", "period": 300}, "returnData": false}]"#;
        let query = parse(argo).unwrap();
        assert_eq!((query.result.as_str(), query.period, query.entries.len()), ("rate", Some(300), 3));
        let expected = json!({"Id": "errors", "ReturnData": false, "MetricStat": {
            "Metric": {"Namespace": "app", "MetricName": "errors"}, "Stat": "Sum", "Period": 300, "Unit": "Count",
        }});
        assert_eq!(Value::Object(query.entries[1].clone()), expected);
        let flagger = r#"[{"Id": "e1", "Expression": "m1 / m2", "Label": "ErrorRate"},
            {"Id": "m1", "MetricStat": {"Metric": {"Namespace": "Kube", "MetricName": "ErrorCount", "Dimensions": [{"Name": "app", "Value": "a"}]},
             "Period": 60, "Stat": "Sum", "Unit": "Count"}, "ReturnData": false},
            {"Id": "m2", "MetricStat": {"Metric": {"Namespace": "Kube", "MetricName": "RequestCount"}, "Period": 60, "Stat": "Sum"}, "ReturnData": false}]"#;
        let query = parse(flagger).unwrap();
        assert_eq!((query.result.as_str(), query.alone), ("e1", false));
        assert_eq!(query.entries[1]["MetricStat"]["Metric"]["Dimensions"], json!([{"Name": "app", "Value": "a"}]));
        assert!(parse(r#"[{"Id": "e", "Expression": "SUM(METRICS())"}]"#).unwrap().alone);
    }

    #[test]
    fn what_cannot_be_read_says_what_is_wrong() {
        let stat = r#""MetricStat": {"Metric": {"Namespace": "A", "MetricName": "E"}, "Stat": "Sum"}"#;
        for (text, why) in [
            ("[".to_owned(), "no JSON array"),
            ("{}".to_owned(), "put `[` and `]`"),
            ("[]".to_owned(), "has 0 entries"),
            ("[1]".to_owned(), "entry 1 is no mapping"),
            (format!("[{{{stat}}}]"), "entry 1 has no `Id`"),
            (format!(r#"[{{"Id": "E", {stat}}}]"#), "entry 1 has no `Id`"),
            (format!(r#"[{{"Id": "e", "Expression": "1", {stat}}}]"#), "not one of"),
            (format!(r#"[{{"Id": "e", "Query": "1", {stat}}}]"#), "\"Query\", which `GetMetricData` does not take"),
            (format!(r#"[{{"Id": "e", {stat}}}, {{"Id": "e", {stat}}}]"#), "the same `Id`"),
            (format!(r#"[{{"Id": "e", {stat}}}, {{"Id": "f", {stat}}}]"#), "2 entries return data"),
            (format!(r#"[{{"Id": "e", {stat}, "ReturnData": false}}]"#), "no entry returns data"),
            (r#"[{"Id": "e", "MetricStat": {"Metric": {"Namespace": "A"}, "Stat": "Sum"}}]"#.to_owned(), "`MetricName`"),
            (r#"[{"Id": "e", "MetricStat": {"Metric": {"Namespace": "A", "MetricName": "E"}}}]"#.to_owned(), "no `Stat`"),
            (r#"[{"Id": "e", "Expression": "1", "Period": 61}]"#.to_owned(), "a period of 61 s"),
        ] {
            let told = parse(&text).unwrap_err();
            assert!(told.contains(why), "{text}: {told}");
        }
    }
}
