//! Comparing JSON with what a case expects of it.

use serde_json::{Map, Value};

/// Why a value is not as expected, with the path to the first difference. Objects: the expected members only; a string `~text`:
/// contains text; everything else: equal.
///
/// # Errors
/// The first difference.
pub fn matches(got: &Value, expected: &Value, path: &str) -> Result<(), String> {
    match (got, expected) {
        (Value::Object(got), Value::Object(expected)) => expected.iter().try_for_each(|(name, value)| {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            match got.get(name) {
                Some(member) => matches(member, value, &path),
                None => Err(format!("{path} is missing, expected {value}")),
            }
        }),
        (Value::String(got), Value::String(expected)) if expected.starts_with('~') => {
            if got.contains(&expected[1..]) {
                Ok(())
            } else {
                Err(format!("{path} is {got:?}, expected it to contain {:?}", &expected[1..]))
            }
        }
        _ if got == expected => Ok(()),
        _ => Err(format!("{path} is {got}, expected {expected}")),
    }
}

/// Replaces strings, at any depth.
///
/// # Errors
/// The first that cannot be replaced.
pub fn strings(value: &Value, replace: &impl Fn(&str) -> Result<Value, String>) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => replace(text)?,
        Value::Array(items) => Value::Array(items.iter().map(|item| strings(item, replace)).collect::<Result<_, _>>()?),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| Ok((name.clone(), strings(value, replace)?));
            Value::Object(members.iter().map(member).collect::<Result<_, String>>()?)
        }
        other => other.clone(),
    })
}

/// Merges objects by member; everything else is replaced.
pub fn merge(into: &mut Map<String, Value>, over: &Map<String, Value>) {
    for (name, value) in over {
        match (into.get_mut(name), value) {
            (Some(Value::Object(old)), Value::Object(new)) => merge(old, new),
            _ => drop(into.insert(name.clone(), value.clone())),
        }
    }
}

/// Looks up a dotted path; longest names first, since members may contain dots.
pub fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    if let Some(member) = value.get(path) {
        return Some(member);
    }
    let cuts = path.rmatch_indices('.').map(|(i, _)| i);
    cuts.filter_map(|i| value.get(&path[..i]).map(|member| (member, &path[i + 1..]))).find_map(|(member, rest)| at(member, rest))
}

/// Removes what is at a dotted path.
pub fn remove(event: &mut Value, path: &str) {
    match path.rsplit_once('.') {
        Some((parent, name)) => {
            if let Some(Value::Object(members)) = event.pointer_mut(&format!("/{}", parent.replace('.', "/"))) {
                members.remove(name);
            }
        }
        None => drop(event.as_object_mut().and_then(|members| members.remove(path))),
    }
}
