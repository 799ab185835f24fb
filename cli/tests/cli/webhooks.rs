//! `get webhooks`, `get deliveries`, `webhook`, `delete webhook`.

use crate::support::Api;
use serde_json::{Value, json};

fn webhook(name: &str) -> Value {
    json!({
        "namespace": "shop", "name": name, "spec": {"events": ["sh.keptn.event.approval.triggered"], "url": "{{ secrets.url }}"},
        "appliedAt": "2026-11-22T08:00:00.000Z", "version": 2,
    })
}

fn delivery() -> Value {
    json!({
        "id": "4gk2vbc7mz3qa", "namespace": "shop", "webhook": "slack", "status": "waiting", "message": "webhook slack: 1 attempts so far",
        "eventType": "sh.keptn.event.approval.triggered", "eventId": "e-1", "keptnContext": "c-1", "began": "2026-11-22T08:00:00.000Z",
        "nextAttempt": "2026-11-22T08:00:05.000Z",
        "attempts": [{"at": "2026-11-22T08:00:00.000Z", "status": 500, "ms": 12, "answer": "sorry"}],
    })
}

#[test]
fn webhooks_say_whether_they_work() {
    let api = Api::start();
    let mut off = webhook("old");
    off["disabled"] = json!({"reason": "gone", "message": "the receiver answered 410 Gone", "at": "2026-11-22T08:00:00.000Z"});
    let mut failing = webhook("pager");
    failing["failingSince"] = "2026-11-21T08:00:00.000Z".into();
    let page = json!({"items": [off, failing, webhook("slack")], "nextPageKey": "0"});
    api.can("GET /v1/webhookSubscriptions", page);
    let ran = api.run(&["get", "webhooks", "-p", "shop"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(lines[1].contains("old") && lines[1].contains("disabled: the receiver answered 410 Gone"), "{}", ran.out);
    assert!(lines[2].contains("failing since 2026-11-21T08:00:00.000Z") && lines[3].contains("ready"), "{}", ran.out);
    assert!(
        !ran.out.contains("secrets.url") && api.run(&["get", "webhooks", "-p", "shop", "-o", "wide"]).out.contains("secrets.url")
    );

    api.can("GET /v1/webhookSubscriptions/shop/slack", webhook("slack"));
    let one = api.run(&["get", "webhook", "shop/slack", "-o", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&one.out).unwrap()["version"], 2, "{}", one.err);
    api.can("POST /v1/webhookSubscriptions/shop/old/resume", webhook("old"));
    let resumed = api.run(&["webhook", "resume", "old", "-p", "shop"]);
    assert_eq!((resumed.code, resumed.out.as_str()), (0, "webhook shop/old: takes events\n"), "{}", resumed.err);
    api.world().canned.insert("DELETE /v1/webhookSubscriptions/shop/old".into(), (204, json!(null)));
    let deleted = api.run(&["delete", "webhook", "shop/old", "--yes"]);
    assert_eq!((deleted.code, deleted.out.as_str()), (0, "webhook shop/old: deleted\n"), "{}", deleted.err);
}

#[test]
fn deliveries_are_listed_shown_and_delivered_again() {
    let api = Api::start();
    api.can("GET /v1/deliveries", json!({"items": [delivery()], "nextPageKey": "0"}));
    let list = api.run(&["webhook", "deliveries", "-p", "shop", "--webhook", "slack"]);
    assert_eq!(list.code, 0, "{}", list.err);
    assert!(list.out.lines().nth(1).is_some_and(|line| line.starts_with("4gk2vbc7mz3qa") && line.contains("500")), "{}", list.out);
    assert!(api.lines().iter().any(|line| line.contains("namespace=shop") && line.contains("webhook=slack")), "{:?}", api.lines());

    let mut whole = delivery();
    whole["event"] = json!({"id": "e-1"});
    api.can("GET /v1/deliveries/shop/4gk2vbc7mz3qa", whole);
    let shown = api.run(&["webhook", "deliveries", "4gk2vbc7mz3qa", "-p", "shop"]).out;
    assert!(shown.contains("attempt 1     2026-11-22T08:00:00.000Z 500 12 ms sorry\n"), "{shown}");
    assert!(shown.contains("next attempt  2026-11-22T08:00:05.000Z\n") && shown.ends_with("{\n  \"id\": \"e-1\"\n}\n"), "{shown}");

    for (id, again) in [("4gk2vbc7mz3qa", false), ("5gk2vbc7mz3qa", true)] {
        let answer = json!({"id": if again { "6gk2vbc7mz3qa" } else { id }, "again": again});
        api.world().canned.insert(format!("POST /v1/deliveries/shop/{id}/redeliver"), (202, answer));
    }
    let sent = api.run(&["webhook", "redeliver", "4gk2vbc7mz3qa", "5gk2vbc7mz3qa", "-p", "shop"]);
    let expected = "delivery 4gk2vbc7mz3qa: tried now\ndelivery 5gk2vbc7mz3qa: delivered again as 6gk2vbc7mz3qa\n";
    assert_eq!((sent.code, sent.out.as_str()), (0, expected), "{}", sent.err);
    let list = "it shows in: keelway webhook deliveries -p shop\n";
    assert_eq!(sent.err, format!("{list}the old one: keelway webhook deliveries 5gk2vbc7mz3qa -p shop\n"));
    assert_eq!(api.run(&["webhook", "redeliver", "4gk2vbc7mz3qa", "-p", "shop"]).err, list, "none is new");
    api.can("GET /v1/deliveries", json!({"items": [], "nextPageKey": "0"}));
    assert!(api.run(&["webhook", "deliveries"]).err.contains("nothing was sent to webhooks of project default"));
}
