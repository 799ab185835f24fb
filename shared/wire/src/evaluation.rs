//! Files of objectives and indicators, as an evaluation reads them; measured values and earlier evaluations as JSON: as Keptn's
//! events have them, and as people write them.

use crate::manifest::{self, Finding, Severity};
use keelway_domain::evaluation::{Earlier, Measured, Provided, Queries, Slo};
use keelway_domain::event::{Status, TaskResult};
use serde_json::{Map, Value};

/// A file of objectives, as the lighthouse reads it: what [`manifest::check`] finds besides does not matter here.
///
/// # Errors
/// What is wrong with a text that the lighthouse cannot read.
pub fn slo(text: &str) -> Result<Slo, String> {
    readable(manifest::objectives(text, "slo.yaml", None))
}

/// A file of indicators, as [`slo`] reads one of objectives.
///
/// # Errors
/// What is wrong with a text that cannot be read.
pub fn sli(text: &str) -> Result<Queries, String> {
    readable(manifest::indicators(text, "sli.yaml"))
}

/// The errors that are told of a file: one of them is why it cannot be read.
const TOLD: usize = 5;

fn readable<T>((read, findings): (Option<T>, Vec<Finding>)) -> Result<T, String> {
    read.ok_or_else(|| {
        let errors = findings.into_iter().filter(|finding| finding.severity == Severity::Error).take(TOLD);
        let told = |Finding { line, path, message, .. }| {
            let path = if path.is_empty() { path } else { format!("{path} ") };
            format!("line {line}: {path}{message}")
        };
        let all: Vec<String> = errors.map(told).collect();
        if all.is_empty() { "it cannot be read: `keelway validate` says why".into() } else { all.join("; ") }
    })
}

/// Values: the data of a `get-sli.finished`, the whole event, a list of its `indicatorValues`, or numbers by the name of their
/// indicator. What stands by its name is the value of every objective about it, as a provider would send it.
///
/// # Errors
/// What is wrong with the text.
pub fn provided(text: &str, slo: &Slo) -> Result<Provided, String> {
    provided_of(&json(text)?, slo)
}

/// As [`provided`], of what was read.
///
/// # Errors
/// What is wrong with it.
pub fn provided_of(value: &Value, slo: &Slo) -> Result<Provided, String> {
    let data = value.get("data").filter(|data| data.get("get-sli").is_some()).unwrap_or(value);
    let told = |member: &str| data.get(member).and_then(Value::as_str);
    let list = data.get("get-sli").unwrap_or(data);
    let list = list.get("indicatorValues").unwrap_or(list);
    let is_event = data.get("get-sli").is_some();
    let values = match list {
        Value::Array(list) => list.iter().filter(|one| !one.is_null()).map(|one| measured(one, None)).collect::<Result<_, _>>()?,
        Value::Object(by_name) if !is_event => {
            let of = |name: &String| slo.indicators().filter(|sli| sli == name).count().max(1);
            let all = by_name.iter().flat_map(|(name, value)| vec![(name, value); of(name)]);
            all.map(|(name, value)| measured(value, Some(name))).collect::<Result<_, _>>()?
        }
        _ if is_event => vec![],
        other => return Err(format!("values are a mapping or a list, not {other}: write for example {{\"error_rate\": 0.5}}")),
    };
    Ok(Provided {
        status: told("status").filter(|_| is_event).map_or(Status::Succeeded, |status| Status::of(Some(status))),
        result: told("result").filter(|_| is_event).map_or(TaskResult::Pass, |result| TaskResult::of(Some(result))),
        message: told("message").filter(|_| is_event).unwrap_or_default().to_owned(),
        values,
    })
}

/// What the data of a `get-sli.finished` says. Whoever could not measure may leave `get-sli` out.
///
/// # Errors
/// What is wrong with it.
pub fn answered(data: &Value) -> Result<Provided, String> {
    let mut data = data.clone();
    if let Some(members) = data.as_object_mut() {
        members.entry("get-sli").or_insert_with(|| Map::new().into());
    }
    provided_of(&data, &Slo::default())
}

/// Earlier evaluations, newest first: a list, `items` as the command prints them, or `events` of an answer of the API. Each is an
/// `evaluation.finished`, its data, or `result` with `values` by the name of their indicator.
///
/// # Errors
/// What is wrong with the text.
pub fn history(text: &str) -> Result<Vec<Earlier>, String> {
    history_of(&json(text)?)
}

/// As [`history`], of what was read.
///
/// # Errors
/// What is wrong with it.
pub fn history_of(value: &Value) -> Result<Vec<Earlier>, String> {
    let list = value.get("items").or_else(|| value.get("events")).unwrap_or(value);
    let list = list.as_array().ok_or("earlier evaluations are a list, newest first: write `[…]`")?;
    list.iter().enumerate().map(|(place, one)| earlier(one).map_err(|error| format!("evaluation {}: {error}", place + 1))).collect()
}

/// JSON, as the reader of manifests reads it: to the last digit, which the JSON library does not promise.
fn json(text: &str) -> Result<Value, String> {
    let rough: Value = serde_json::from_str(text).map_err(|error| format!("is no JSON: {error}"))?;
    match manifest::value_of(text) {
        // What manifests may not have, such as very many values.
        Value::Null => Ok(rough),
        exact => Ok(exact),
    }
}

fn earlier(one: &Value) -> Result<Earlier, String> {
    let data = one.get("data").unwrap_or(one);
    let id = one.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    let result = data.get("result").and_then(Value::as_str).ok_or("`result` is missing: write pass, warning or fail")?;
    let results = data.pointer("/evaluation/indicatorResults").or_else(|| data.get("indicatorResults"));
    let values = match (results, data.get("values")) {
        (Some(Value::Array(results)), _) => {
            let values = results.iter().filter_map(|result| result.get("value")).filter(|value| !value.is_null());
            values.map(|value| measured(value, None)).collect::<Result<_, _>>()?
        }
        (_, Some(Value::Object(by_name))) => {
            by_name.iter().map(|(name, value)| measured(value, Some(name))).collect::<Result<_, _>>()?
        }
        (Some(Value::Null), _) => vec![],
        _ => return Err("has neither `evaluation.indicatorResults` nor `values`".into()),
    };
    let invalidated = one.get("invalidated").and_then(Value::as_bool).unwrap_or(false);
    Ok(Earlier { id, result: TaskResult::of(Some(result)), invalidated, values })
}

/// A value with its success and message, a number, or nothing.
fn measured(one: &Value, name: Option<&str>) -> Result<Measured, String> {
    let told = |member: &str| one.get(member).and_then(Value::as_str).unwrap_or_default().to_owned();
    let metric = name.map_or_else(|| told("metric"), str::to_owned);
    if metric.is_empty() {
        return Err(format!("a value without `metric`: {one}"));
    }
    match one {
        Value::Null => Ok(Measured { metric, value: 0.0, success: false, message: "no value".into() }),
        Value::Number(number) => {
            Ok(Measured { metric, value: number.as_f64().unwrap_or(f64::NAN), success: true, message: String::new() })
        }
        Value::Object(_) => {
            let value = one.get("value").and_then(Value::as_f64);
            let success = one.get("success").and_then(Value::as_bool).unwrap_or(value.is_some());
            Ok(Measured { metric, value: value.unwrap_or(0.0), success, message: told("message") })
        }
        other => Err(format!("the value of {metric} is {other}: write a number, or null if there is none")),
    }
}
