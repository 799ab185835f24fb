//! Canonical JSON. A dependency may make the JSON library keep the order of members; hashes and published bytes must depend neither
//! on that nor on the order in which a client or the bus writes members.

use serde::Serialize;
use serde_json::{Map, Value};

/// The value as text without whitespace, with the members of every object sorted by name. Equal values have equal bytes.
pub fn canonical(value: &Value) -> String {
    let mut text = Vec::with_capacity(256);
    write(value, &mut text);
    // serde_json writes UTF-8.
    String::from_utf8(text).unwrap_or_default()
}

/// The same for an object with one additional member, whose value need not be copied into the object.
pub fn canonical_with(members: &Map<String, Value>, name: &str, object: &Map<String, Value>) -> String {
    let mut text = Vec::with_capacity(512);
    // `None` stands for the additional member.
    let mut sorted: Vec<(&str, Option<&Value>)> = vec![(name, None)];
    sorted.extend(members.iter().map(|(name, value)| (name.as_str(), Some(value))));
    sorted.sort_unstable_by_key(|(name, _)| *name);
    for (i, (name, member)) in sorted.into_iter().enumerate() {
        text.push(if i == 0 { b'{' } else { b',' });
        plain(name, &mut text);
        text.push(b':');
        match member {
            Some(value) => write(value, &mut text),
            None => members_of(object, &mut text),
        }
    }
    text.push(b'}');
    String::from_utf8(text).unwrap_or_default()
}

fn write(value: &Value, text: &mut Vec<u8>) {
    match value {
        Value::Object(members) => members_of(members, text),
        Value::Array(items) => {
            text.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    text.push(b',');
                }
                write(item, text);
            }
            text.push(b']');
        }
        value => plain(value, text),
    }
}

fn members_of(members: &Map<String, Value>, text: &mut Vec<u8>) {
    // Members are sorted already, unless the library keeps another order.
    if members.keys().is_sorted() {
        return object(members.iter(), text);
    }
    let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
    sorted.sort_unstable_by_key(|(name, _)| *name);
    object(sorted.into_iter(), text);
}

fn object<'a>(members: impl Iterator<Item = (&'a String, &'a Value)>, text: &mut Vec<u8>) {
    text.push(b'{');
    for (i, (name, member)) in members.enumerate() {
        if i > 0 {
            text.push(b',');
        }
        plain(name, text);
        text.push(b':');
        write(member, text);
    }
    text.push(b'}');
}

/// Appends a value without members. Writing into a vector does not fail.
fn plain(value: &(impl Serialize + ?Sized), text: &mut Vec<u8>) {
    serde_json::to_writer(text, value).unwrap_or_default();
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
        let (Value::Object(mut rest), Value::Object(object)) = (one.clone(), one) else { unreachable!("both are objects") };
        rest.insert("aa".into(), Value::Object(object.clone()));
        let whole = canonical(&Value::Object(rest.clone()));
        rest.remove("aa");
        assert_eq!(canonical_with(&rest, "aa", &object), whole);
    }
}
