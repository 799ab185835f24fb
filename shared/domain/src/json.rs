//! JSON in canonical form. A dependency may switch the JSON library to keep members in the order they came in; hashes and published
//! bytes must not depend on that, nor on the order a client or the bus writes members in.

use serde_json::Value;

/// The value as text without blanks, the members of every object sorted by name: equal values have equal bytes.
pub fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => {
            let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| *name);
            text.push('{');
            for (i, (name, member)) in sorted.into_iter().enumerate() {
                if i > 0 {
                    text.push(',');
                }
                text.push_str(&Value::String(name.clone()).to_string());
                text.push(':');
                write(member, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    text.push(',');
                }
                write(item, text);
            }
            text.push(']');
        }
        plain => text.push_str(&plain.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_members_does_not_matter() {
        let one: Value = serde_json::from_str(r#"{"b": [{"y": 1, "x": "\u00fc\n"}], "a": null}"#).unwrap();
        let other: Value = serde_json::from_str(r#"{"a": null, "b": [{"x": "ü\n", "y": 1}]}"#).unwrap();
        assert_eq!(canonical(&one), r#"{"a":null,"b":[{"x":"ü\n","y":1}]}"#);
        assert_eq!(canonical(&one), canonical(&other));
    }
}
