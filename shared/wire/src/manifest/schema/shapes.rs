//! What values look like.

use serde_json::{Value, json};

/// Anything.
pub fn any() -> Value {
    json!({})
}

/// A value on one line, which is read as a text however it is written.
pub fn text() -> Value {
    json!({"type": ["string", "number", "boolean"]})
}

/// A text that is not empty.
pub fn needed() -> Value {
    json!({"type": ["string", "number", "boolean"], "minLength": 1})
}

pub fn pattern(pattern: &str, longest: usize) -> Value {
    json!({"type": "string", "pattern": pattern, "maxLength": longest})
}

/// A name as Kubernetes allows it.
pub fn name(longest: usize) -> Value {
    pattern("^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", longest)
}

/// The name of a project.
pub fn project() -> Value {
    pattern("^[a-z]([a-z0-9-]*[a-z0-9])?$", 50)
}

/// The name of a sequence or a task.
pub fn sequence() -> Value {
    pattern("^[A-Za-z0-9_-]+$", 50)
}

pub fn constant(text: &str) -> Value {
    json!({"const": text})
}

/// One of some words.
pub fn word(words: &[&str]) -> Value {
    json!({"enum": words})
}

pub fn flag() -> Value {
    json!({"type": "boolean"})
}

/// A whole number, or a text that is one.
pub fn whole(least: i64) -> Value {
    json!({"type": ["integer", "string"], "minimum": least, "pattern": "^[0-9]+$"})
}

/// A number of copies, or a part of them.
pub fn share() -> Value {
    json!({"type": ["integer", "string"], "minimum": 0, "pattern": "^[0-9]+%?$"})
}

/// A duration, `90s` or `1h30m`.
pub fn duration() -> Value {
    json!({"type": ["string", "integer"], "pattern": "^(0|([0-9]+(ms|s|m|h|d))+)$", "maximum": 0, "minimum": 0})
}

/// A URL.
pub fn url() -> Value {
    json!({"type": "string", "pattern": "^https?://"})
}

/// Names and values, labels for example.
pub fn texts() -> Value {
    json!({"type": "object", "additionalProperties": {"type": ["string", "number", "boolean", "null"]}})
}

/// A mapping of anything.
pub fn open() -> Value {
    json!({"type": "object"})
}

/// A list of texts.
pub fn words() -> Value {
    list(&needed(), 0)
}

pub fn list(of: &Value, least: usize) -> Value {
    match least {
        0 => json!({"type": "array", "items": of}),
        least => json!({"type": "array", "items": of, "minItems": least}),
    }
}

/// From 0.2 on.
pub fn shipyard_version(newest: &str) -> Value {
    let pattern = "^(spec\\.keptn\\.sh/)?(0\\.[2-9][0-9]*|0\\.1[0-9]+|[1-9][0-9]*)(\\.[0-9]+){0,2}$";
    json!({"type": ["string", "number"], "pattern": pattern, "minimum": 0.2, "default": newest})
}

/// What a selector wants: results of the sequence or of tasks, at least one.
pub fn matches() -> Value {
    let result = json!({"enum": ["pass", "warning", "fail", "failed"]});
    let by_task = json!({"^[A-Za-z0-9_-]+\\.result$": result});
    json!({
        "type": "object", "properties": {"result": result}, "patternProperties": by_task, "additionalProperties": false,
        "minProperties": 1
    })
}

/// The shape, or nothing.
pub fn or_null(shape: Value) -> Value {
    let mut shape = shape;
    if shape.as_object().is_none_or(serde_json::Map::is_empty) {
        return shape;
    }
    let one_of = ["enum", "type", "anyOf"].into_iter().find(|field| shape.get(field).is_some());
    let null = match one_of {
        Some("enum") => Value::Null,
        Some("type") => Value::from("null"),
        Some(_) => json!({"type": "null"}),
        None => return json!({"anyOf": [shape, {"type": "null"}]}),
    };
    if let Some(known) = one_of.and_then(|field| shape.get_mut(field)) {
        match known {
            Value::Array(all) => all.push(null),
            one => *one = Value::Array(vec![one.take(), null]),
        }
    }
    shape
}
