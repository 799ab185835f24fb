//! Shapes as JSON Schemas.

use super::Parts;
use crate::manifest::levels::Shape;
use serde_json::{Map, Value, json};

/// The schema of a shape. The levels in it are added to `parts`.
pub fn schema(shape: &Shape, parts: &mut Parts) -> Value {
    match *shape {
        Shape::Any => json!({}),
        Shape::Text => json!({"type": ["string", "number", "boolean"]}),
        Shape::Needed => json!({"type": ["string", "number", "boolean"], "minLength": 1}),
        Shape::String => json!({"type": "string"}),
        Shape::Pattern(pattern, longest) => json!({"type": "string", "pattern": pattern, "maxLength": longest}),
        Shape::Constant(text) => json!({"const": text}),
        Shape::Word(words) => json!({"enum": words}),
        Shape::Flag => json!({"type": "boolean"}),
        Shape::Whole(least) => json!({"type": ["integer", "string"], "minimum": least, "pattern": "^[0-9]+$"}),
        Shape::Share => json!({"type": ["integer", "string"], "minimum": 0, "pattern": "^[0-9]+%?$"}),
        Shape::Duration => {
            let pattern = "^(0|([0-9]+(ms|s|m|h|d))+)$";
            json!({"type": ["string", "integer"], "pattern": pattern, "maximum": 0, "minimum": 0})
        }
        Shape::Url => json!({"type": "string", "pattern": "^https?://"}),
        Shape::Texts => {
            json!({"type": "object", "additionalProperties": {"type": ["string", "number", "boolean", "null"]}})
        }
        Shape::Open => json!({"type": "object"}),
        Shape::Of(level) => parts.named(level),
        Shape::Entries(level, least) => list(parts.named(level), least),
        Shape::List(of, least) => list(schema(of, parts), least),
        Shape::Either(shapes) => {
            let schemas: Vec<Value> = shapes.iter().map(|shape| schema(shape, parts)).collect();
            json!({"anyOf": schemas})
        }
        Shape::Schema(schema) => schema(),
    }
}

fn list(of: Value, least: usize) -> Value {
    match least {
        0 => json!({"type": "array", "items": of}),
        least => json!({"type": "array", "items": of, "minItems": least}),
    }
}

/// The shape, or nothing.
pub fn or_null(shape: Value) -> Value {
    let mut shape = shape;
    if shape.as_object().is_none_or(Map::is_empty) {
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
