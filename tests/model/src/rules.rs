//! The rules for merging data, and for results.

use serde_json::Value;

/// Merges later data into earlier data. A list is put in front of the earlier one, unless both are equal; `null` empties a string
/// and leaves objects and lists unchanged; everything else is replaced by the later value.
pub(crate) fn merge(earlier: &mut Value, later: &Value) {
    match (earlier, later) {
        (Value::Object(old), Value::Object(new)) => new.iter().for_each(|(name, value)| match old.get_mut(name) {
            Some(old) => merge(old, value),
            None => drop(old.insert(name.clone(), value.clone())),
        }),
        (Value::Array(old), Value::Array(new)) if old == new => {}
        (Value::Array(old), Value::Array(new)) => old.splice(0..0, new.iter().cloned()).for_each(drop),
        (Value::String(old), Value::Null) => old.clear(),
        (Value::Object(_) | Value::Array(_), Value::Null) => {}
        (old, new) => *old = new.clone(),
    }
}

pub(crate) fn text<'a>(data: &'a Value, name: &str) -> &'a str {
    data[name].as_str().unwrap_or_default()
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Some members of the data. Labels count if they are an object.
pub(crate) fn only(data: &Value, names: &[&str]) -> Value {
    let members = data.as_object().into_iter().flatten().filter(|(name, value)| *name != "labels" || value.is_object());
    members.filter(|(name, _)| names.contains(&name.as_str())).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Parses `90s` into milliseconds.
pub(crate) fn span(value: &Value) -> Option<i64> {
    value.as_str()?.strip_suffix('s')?.parse::<i64>().ok().map(|seconds| seconds * 1000)
}

/// The sequence of that name. Every stage has `evaluation`.
pub(crate) fn find(shipyard: &Value, stage: &str, name: &str) -> Option<Value> {
    let stage = list(&shipyard["spec"]["stages"]).iter().find(|s| s["name"] == stage)?;
    let declared = list(&stage["sequences"]).iter().find(|sequence| sequence["name"] == name).cloned();
    declared.or_else(|| (name == "evaluation").then(|| serde_json::json!({"name": name, "tasks": [{"name": name}]})))
}

/// Stage and sequence of all that an event starts, in the order of the file. `result`: the result for the key of a selector;
/// `bare`: whether an entry without a selector matches.
pub(crate) fn started_by<'a>(
    shipyard: &Value,
    event: &str,
    bare: bool,
    result: impl Fn(&str) -> Option<&'a str>,
) -> Vec<(String, String)> {
    let holds = |(key, value): (&String, &Value)| result(key) == value.as_str().map(|value| value.trim_end_matches("ed"));
    let fires = |on: &Value| on["event"] == event && on["selector"]["match"].as_object().map_or(bare, |all| all.iter().all(holds));
    let stages = list(&shipyard["spec"]["stages"]).iter();
    let all = stages.flat_map(|stage| list(&stage["sequences"]).iter().map(|sequence| (text(stage, "name"), sequence)));
    let chosen = all.filter(|(_, sequence)| list(&sequence["triggeredOn"]).iter().any(fires));
    chosen.map(|(stage, sequence)| (stage.to_owned(), text(sequence, "name").to_owned())).collect()
}

/// The result. Everything except pass and warning is fail.
pub(crate) fn result_of(data: &Value) -> &'static str {
    ["pass", "warning"].into_iter().find(|known| text(data, "result") == *known).unwrap_or("fail")
}

/// Result and status of a task: the worst of its answers. An unknown status makes the result `fail`.
pub(crate) fn aggregate<'a>(answers: impl Iterator<Item = &'a Value> + Clone) -> (&'static str, &'static str) {
    let results: Vec<&str> = answers.clone().map(result_of).collect();
    let result = ["fail", "warning"].into_iter().find(|worst| results.contains(worst)).unwrap_or("pass");
    let statuses: Vec<&str> = answers.map(|data| text(data, "status")).collect();
    match ["errored", "aborted"].into_iter().find(|worst| statuses.contains(worst)) {
        Some(worst) => (result, worst),
        None if statuses.iter().all(|status| *status == "succeeded") => (result, "succeeded"),
        None => ("fail", "unknown"),
    }
}
