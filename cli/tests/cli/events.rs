//! `get events`: which of them, and in which order.

use crate::commands::{delivery, happened};
use crate::support::Api;
use serde_json::{Value, json};

#[test]
fn types_of_events_are_taken_as_the_list_shows_them() {
    let api = Api::start();
    api.world().events = delivery("context-a", "pass");
    let mut foreign = happened("x", 6, "context-a", json!({}));
    foreign["type"] = json!("com.acme.rated");
    let mut own = foreign.clone();
    own["type"] = json!("dev.keelway.task.cancelled");
    api.world().events.extend([foreign, own]);
    for (ty, asked) in [
        ("deployment.finished", 1),
        ("dev.delivery.finished", 1),
        ("sh.keptn.event.deployment.finished", 1),
        ("dev.keelway.task.cancelled", 1),
        ("com.acme.rated", 2),
    ] {
        let before = api.lines().len();
        let ran = api.run(&["get", "events", "context-a", "-p", "shop", "--type", ty, "-o", "json"]);
        let found: Value = serde_json::from_str(&ran.out).unwrap();
        let types: Vec<&Value> = found["items"].as_array().unwrap().iter().map(|event| &event["type"]).collect();
        assert!(types.len() == 1 && types[0].as_str().unwrap().ends_with(ty), "{ty}: {types:?}");
        let asked_now = api.lines()[before..].iter().filter(|line| line.starts_with("GET /v1/event?")).count();
        assert_eq!(asked_now, asked, "{ty}");
    }
}

#[test]
fn a_limit_leaves_the_newest_events_in_their_order() {
    let api = Api::start();
    api.world().events = delivery("context-a", "pass");
    let ids = |words: &[&str]| -> Vec<String> {
        let found: Value = serde_json::from_str(&api.run(&[&["get", "events"], words, &["-o", "json"]].concat()).out).unwrap();
        found["items"].as_array().unwrap().iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect()
    };
    let all = ids(&["context-a", "-p", "shop"]);
    assert!(all.len() > 4, "the API has them on several pages: {all:?}");
    assert_eq!(ids(&["context-a", "-p", "shop", "--limit", "3"]), all[all.len() - 3..]);
    assert_eq!(ids(&["context-a", "-p", "shop", "--limit", "1000"]), all);
    // Of a project, contexts come newest first, and it is not read further than to enough of them.
    let older = happened("older", 0, "context-b", json!({}));
    api.world().events.push(older);
    assert_eq!(ids(&["-p", "shop", "--limit", "2"]).len(), 2);
    assert!(!ids(&["-p", "shop", "--limit", "4"]).iter().any(|id| id.contains("older")), "{:?}", ids(&["-p", "shop"]));
}
