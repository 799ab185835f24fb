//! `key=value` arguments, and dotted keys as nested objects.

use keelway_domain::event::Object;
use serde_json::Value;

/// Reads `key=text`, or `key:=JSON`; the text may contain `=` and may be empty.
///
/// # Errors
/// What is missing or no JSON, for clap to show.
pub fn parse(text: &str) -> Result<(String, Value), String> {
    let (key, value) = parse_text(text)?;
    let Some(key) = key.strip_suffix(':') else { return Ok((key, Value::String(value))) };
    match serde_json::from_str(&value) {
        Ok(json) if !key.is_empty() => Ok((key.to_owned(), json)),
        Ok(_) => Err("write it as key:=JSON".into()),
        Err(error) => {
            Err(format!("{value:?} is no JSON ({error}): write numbers, true, false or null as they are, text as {key}=text"))
        }
    }
}

/// Reads `key=text`.
///
/// # Errors
/// What is missing, for clap to show.
pub fn parse_text(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
        _ => Err("write it as key=value".into()),
    }
}

/// Puts `value` at the dotted path `key`, making the objects on the way.
///
/// # Errors
/// Where the path has an empty part, or leads through or onto something that is there already.
pub fn insert(object: &mut Object, key: &str, value: Value) -> Result<(), String> {
    let parts: Vec<&str> = key.split('.').collect();
    if parts.iter().any(|part| part.is_empty()) {
        return Err(format!("{key:?} has an empty part: write it like `a.b.c=value`"));
    }
    let (last, way) = (parts[parts.len() - 1], &parts[..parts.len() - 1]);
    let mut at = object;
    for part in way {
        let next = at.entry(*part).or_insert_with(|| Value::Object(Object::new()));
        match next {
            Value::Object(next) => at = next,
            _ => return Err(format!("{key:?} leads through {part:?}, which is given a value of its own: give one of the two")),
        }
    }
    match at.insert(last.to_owned(), value) {
        None => Ok(()),
        Some(_) => Err(format!("{key:?} is given twice: give it once")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn dotted_keys_are_objects() {
        let mut object = Object::new();
        insert(&mut object, "a.b", json!(1)).unwrap();
        insert(&mut object, "a.c.d", json!("x=y")).unwrap();
        assert_eq!(Value::Object(object.clone()), json!({"a": {"b": 1, "c": {"d": "x=y"}}}));
        assert_eq!(insert(&mut object, "a.b", json!(2)).unwrap_err(), "\"a.b\" is given twice: give it once");
        assert!(insert(&mut object, "a.b.c", json!(2)).unwrap_err().contains("leads through \"b\""));
        assert!(insert(&mut object, "a..c", json!(2)).unwrap_err().contains("empty part"));
    }

    #[test]
    fn a_pair_needs_a_key() {
        assert_eq!(parse("a=b=c"), Ok(("a".into(), json!("b=c"))));
        assert_eq!(parse("a="), Ok(("a".into(), json!(""))));
        assert!(parse("a").is_err());
        assert!(parse("=b").is_err());
    }

    #[test]
    fn other_values_than_text_are_json() {
        assert_eq!(parse("replicas:=2"), Ok(("replicas".into(), json!(2))));
        assert_eq!(parse("a.b:=[true]"), Ok(("a.b".into(), json!([true]))));
        assert_eq!(parse("replicas=2"), Ok(("replicas".into(), json!("2"))));
        assert!(parse("replicas:=two").unwrap_err().contains("replicas=text"));
        assert!(parse(":=2").is_err());
    }
}
