//! What a case expects of JSON.

use keelway_world::case::expect::{at, matches, remove};
use serde_json::json;

#[test]
fn objects_are_compared_by_member_and_the_rest_whole() {
    let got = json!({"a": {"b": [1, 2], "c": "some text"}, "d": null});
    assert_eq!(matches(&got, &json!({"a": {"b": [1, 2], "c": "~me te"}, "d": null}), ""), Ok(()));
    assert_eq!(matches(&got, &json!({"a": {"b": [1]}}), "data").unwrap_err(), "data.a.b is [1,2], expected [1]");
    assert_eq!(matches(&got, &json!({"e": 1}), "").unwrap_err(), "e is missing, expected 1");
    assert!(matches(&got, &json!({"a": {"c": "some"}}), "").is_err());
}

#[test]
fn paths_lead_to_members() {
    let mut value = json!({"data": {"x.y": 1, "a": {"b": 2}}});
    assert_eq!(at(&value, "data.x.y"), Some(&json!(1)));
    assert_eq!(at(&value, "data.a.b"), Some(&json!(2)));
    assert_eq!(at(&value, "data.a.c"), None);
    remove(&mut value, "data.a.b");
    assert_eq!(value, json!({"data": {"x.y": 1, "a": {}}}));
}
