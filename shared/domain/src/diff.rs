//! The differences between two documents, field by field.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// One difference.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FieldChange {
    /// The path of the field: `spec.template.spec.containers[web].image`. Entries of lists are named by their `name`, otherwise by
    /// their index.
    pub field: String,
    /// The old value. Absent: the field is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<Value>,
    /// The new value. Absent: the field was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub becomes: Option<Value>,
}

/// All differences, in the order of their paths. `null` counts as absent.
pub fn diff(old: &Value, new: &Value) -> Vec<FieldChange> {
    let mut changes = vec![];
    compare(String::new(), Some(old), Some(new), &mut changes);
    changes
}

fn compare(at: String, old: Option<&Value>, new: Option<&Value>, changes: &mut Vec<FieldChange>) {
    let (old, new) = (old.filter(|old| !old.is_null()), new.filter(|new| !new.is_null()));
    if old == new {
        return;
    }
    if let (Some(Value::Object(old)), Some(Value::Object(new))) = (old, new) {
        return members(&at, old, new, changes);
    }
    if let (Some(Value::Array(old)), Some(Value::Array(new))) = (old, new)
        && let (Some(before), Some(after)) = entries(old, new)
    {
        moved(&at, old, new, changes);
        let (old, new) = (before, after);
        for (name, old) in &old {
            compare(format!("{at}[{name}]"), Some(old), new.get(name).copied(), changes);
        }
        for (name, new) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
            compare(format!("{at}[{name}]"), None, Some(new), changes);
        }
        return;
    }
    changes.push(FieldChange { field: at, was: old.cloned(), becomes: new.cloned() });
}

/// Reports a changed order of named entries, if the entries that are in both lists have changed places.
fn moved(at: &str, old: &[Value], new: &[Value], changes: &mut Vec<FieldChange>) {
    let (Some(before), Some(after)) = (named(old), named(new)) else { return };
    let names = |list: &[Value]| -> Vec<Value> { list.iter().map(|entry| entry["name"].clone()).collect() };
    let common = |list: &[Value], other: &Entries<'_>| -> Vec<Value> {
        names(list).into_iter().filter(|name| name.as_str().is_some_and(|name| other.contains_key(name))).collect()
    };
    if common(old, &after) != common(new, &before) {
        let (was, becomes) = (Some(Value::Array(names(old))), Some(Value::Array(names(new))));
        changes.push(FieldChange { field: at.to_owned(), was, becomes });
    }
}

fn members(at: &str, old: &Map<String, Value>, new: &Map<String, Value>, changes: &mut Vec<FieldChange>) {
    let names: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for name in names {
        let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        compare(path, old.get(name), new.get(name), changes);
    }
}

type Entries<'v> = BTreeMap<String, &'v Value>;

/// The entries of two lists of objects: by name if all entries have one, otherwise by index. `None`: they are not lists of objects.
fn entries<'v>(old: &'v [Value], new: &'v [Value]) -> (Option<Entries<'v>>, Option<Entries<'v>>) {
    if !old.iter().chain(new).all(Value::is_object) {
        return (None, None);
    }
    match (named(old), named(new)) {
        (Some(old), Some(new)) => (Some(old), Some(new)),
        _ => (Some(placed(old)), Some(placed(new))),
    }
}

fn named(list: &[Value]) -> Option<Entries<'_>> {
    let name = |entry: &Value| entry.get("name").and_then(Value::as_str).map(str::to_owned);
    let named: Option<Entries<'_>> = list.iter().map(|entry| Some((name(entry)?, entry))).collect();
    named.filter(|named| named.len() == list.len())
}

fn placed(list: &[Value]) -> Entries<'_> {
    list.iter().enumerate().map(|(place, entry)| (place.to_string(), entry)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn fields(old: Value, new: Value) -> Vec<String> {
        let text = |value: Option<Value>| value.map_or("-".into(), |value| value.to_string());
        diff(&old, &new).into_iter().map(|one| format!("{}: {} {}", one.field, text(one.was), text(one.becomes))).collect()
    }

    #[test]
    fn entries_are_compared_by_name_else_by_place_and_plain_lists_as_a_whole() {
        let containers = |image: &str, env: Value| json!({"c": [{"name": "web", "image": image, "env": env}, {"name": "log"}]});
        let env = |value: &str| json!([{"name": "A", "value": value}, {"name": "B", "value": "b"}]);
        assert_eq!(fields(containers("x:1", env("1")), containers("x:1", env("1"))), Vec::<String>::new());
        assert_eq!(
            fields(containers("x:1", env("1")), containers("x:2", env("2"))),
            ["c[web].env[A].value: \"1\" \"2\"", "c[web].image: \"x:1\" \"x:2\""]
        );
        assert_eq!(fields(containers("x", env("1")), containers("x", json!([]))).len(), 2, "two variables are gone");
        assert_eq!(fields(json!({"t": [{"a": 1}, {"a": 2}]}), json!({"t": [{"a": 1}, {"a": 3}]})), ["t[1].a: 2 3"]);
        assert_eq!(fields(json!({"t": [{"a": 1}]}), json!({})), ["t: [{\"a\":1}] -"]);
        assert_eq!(fields(json!({"c": ["a", "b"]}), json!({"c": ["a"], "d": null})), ["c: [\"a\",\"b\"] [\"a\"]"]);
        let order = |names: [&str; 2]| json!({"t": names.map(|name| json!({"name": name}))});
        assert_eq!(fields(order(["a", "b"]), order(["b", "a"])), [r#"t: ["a","b"] ["b","a"]"#]);
        assert_eq!(fields(order(["a", "b"]), order(["c", "b"])).len(), 2, "another entry is no other order");
        let twice = json!({"e": [{"name": "A", "v": 1}, {"name": "A", "v": 2}]});
        assert_eq!(fields(twice, json!({"e": [{"name": "A", "v": 1}]})), ["e[1]: {\"name\":\"A\",\"v\":2} -"]);
    }

    fn documents() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), "[a-c]{0,2}".prop_map(Value::from)];
        leaf.prop_recursive(4, 24, 4, |inner| {
            let members = prop::collection::btree_map("name|a|b", inner.clone(), 0..4);
            prop_oneof![prop::collection::vec(inner, 0..4).prop_map(Value::Array), members.prop_map(|all| json!(all))]
        })
    }

    proptest! {
        #[test]
        fn what_is_equal_does_not_differ_and_a_difference_has_two_sides(old in documents(), new in documents()) {
            prop_assert!(diff(&old, &old).is_empty());
            let turned = |one: FieldChange| FieldChange { was: one.becomes, becomes: one.was, ..one };
            let sorted = |mut all: Vec<FieldChange>| { all.sort_by(|a, b| a.field.cmp(&b.field)); all };
            let back = diff(&new, &old).into_iter().map(turned).collect();
            prop_assert_eq!(sorted(diff(&old, &new)), sorted(back));
        }
    }
}
