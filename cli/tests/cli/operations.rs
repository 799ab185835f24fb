//! `dead-letters`, `get invalid`, and what `doctor` says of them.

use crate::support::Api;
use keelway_domain::time::Timestamp;
use serde_json::{Value, json};
use std::time::SystemTime;

fn api() -> Api {
    let api = Api::start();
    let of = |id: &str, next: Option<&str>| {
        let mut letter = json!({"id": id, "engine": "promotions", "queue": "keelway-promotions", "receives": 10,
            "sentAt": "2026-11-22T08:00:00.000Z", "reason": "no table"});
        if let Some(next) = next {
            letter["nextRedrive"] = next.into();
        }
        letter
    };
    let letters = json!([of("2-b", Some("2026-11-22T08:10:00.000Z")), of("1-a", None)]);
    api.can("GET /v1/dead-letters", json!({"items": letters, "nextPageKey": "0", "pageSize": 100, "totalCount": 2}));
    let mut whole = of("1-a", None);
    whole["body"] = r#"{"keelway":"evaluate"}"#.into();
    api.can("GET /v1/dead-letters/1-a", whole);
    api
}

#[test]
fn dead_letters_are_listed_shown_sent_again_and_dropped() {
    let api = api();
    let list = api.run(&["dead-letters", "list"]);
    assert_eq!(list.code, 0, "{}", list.err);
    let lines: Vec<&str> = list.out.lines().collect();
    assert!(lines[1].starts_with("2-b") && lines[1].contains("2026-11-22T08:10:00.000Z"), "{}", list.out);
    assert!(lines[2].starts_with("1-a") && lines[2].contains("waits for a person"), "{}", list.out);
    let shown = api.run(&["dead-letters", "show", "1-a"]).out;
    assert!(shown.contains("reason        no table") && shown.ends_with("{\n  \"keelway\": \"evaluate\"\n}\n"), "{shown}");

    for id in ["1-a", "2-b"] {
        let line = format!("POST /v1/dead-letters/{id}/redrive");
        api.world().canned.insert(line, (202, json!(null)));
    }
    let sent = api.run(&["dead-letters", "redrive", "--all"]);
    assert_eq!((sent.code, sent.out.as_str()), (0, "2-b: sent again\n1-a: sent again\n"), "{}", sent.err);
    api.world().canned.insert("DELETE /v1/dead-letters/1-a".into(), (204, json!(null)));
    let dropped = api.run(&["dead-letters", "drop", "1-a", "--yes"]);
    assert_eq!((dropped.code, dropped.out.as_str()), (0, "dead letter 1-a: deleted\n"), "{}", dropped.err);
    for words in [&["dead-letters", "redrive"][..], &["dead-letters", "redrive", "1-a", "--all"], &["dead-letters", "drop"]] {
        assert_eq!(api.run(words).code, 2, "{words:?}");
    }
}

/// An API whose rules have these states, and an event that arrives at this time.
fn checked(now: &str, rules: &[(&str, &str)], arrived: Option<&str>) -> Api {
    let api = api();
    api.can("GET /v1/metadata", json!({"version": "0.1.0", "stack": "keelway"}));
    let rules: Vec<Value> = rules.iter().map(|(name, state)| json!({"name": name, "state": state})).collect();
    let limits =
        json!({"maxEventBytes": 245_760, "maxExecutions": 1000, "startDeadline": "10m", "taskTimeout": "1d", "retentionDays": 90});
    api.can("GET /v1/checks", json!({"now": now, "rules": rules, "limits": limits}));
    let id = "019b0000-0000-7000-8000-000000000000";
    let sent = json!({"id": id, "sentAt": "2026-11-22T08:00:00.000Z"});
    api.world().canned.insert("POST /v1/checks".into(), (202, sent));
    api.can(&format!("GET /v1/checks/{id}"), json!({"id": id, "arrivedAt": arrived}));
    api
}

#[test]
fn doctor_tells_what_works() {
    let api =
        checked("2026-11-22T08:00:00.000Z", &[("sequences", "enabled"), ("sweep", "enabled")], Some("2026-11-22T08:00:01.250Z"));
    let ran = api.run(&["doctor"]);
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
    for told in [
        "note   dead letters: 2, 1 wait for a person; see: keelway dead-letters list",
        "s ahead of the API; set it, or",
        "ok     rules: 2 enabled",
        "ok     limits: events of 240 KB, 1000 executions in a context, 10m to start a task and 1d to finish it, 90 days of history",
        "ok     bus: an event went around in 1.2 s",
    ] {
        assert!(ran.out.contains(told), "{told}: {}", ran.out);
    }
}

#[test]
fn doctor_prints_what_to_look_at_after_a_first_deployment() {
    let ran = Api::start().run(&["doctor", "--checklist"]);
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
    let items: Vec<&str> = ran.out.lines().collect();
    assert!(items.len() > 5, "{}", ran.out);
    for item in items {
        assert!(item.starts_with("[ ] ") && item.contains(" Look at: ") && !item.contains("**"), "{item}");
    }
}

#[test]
fn doctor_tells_what_does_not() {
    let now = Timestamp(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as i64);
    let api = checked(&now.rfc3339(), &[("sequences", "enabled"), ("services", "disabled")], None);
    let ran = api.run(&["doctor"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.out.contains("error  rules: keelway-services is disabled: events that it takes are lost; aws events enable-rule"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("ok     clock: as the API's"), "{}", ran.out);
    // Who may only read sends nothing around.
    let api = checked(&now.rfc3339(), &[("sequences", "enabled")], None);
    let refusal = json!({"title": "not allowed", "status": 403, "detail": "needs trigger"});
    api.world().canned.insert("POST /v1/checks".into(), (403, refusal));
    let ran = api.run(&["doctor"]);
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
    assert!(ran.out.contains("note   bus: not checked, this token has no scope trigger"), "{}", ran.out);
}

#[test]
fn doctor_names_what_stored_manifests_may_not_name_and_what_helps() {
    let api = checked("2026-11-22T08:00:00.000Z", &[("sequences", "enabled")], Some("2026-11-22T08:00:01.250Z"));
    let gap = |kind: &str, name: &str, missing: &str, more: Value| {
        let mut gap = json!({"kind": kind, "namespace": "team-a", "name": name, "field": "the field", "missing": missing,
            "detail": "why, and who may grant it", "project": "team-a"});
        gap.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        gap
    };
    let consent = json!({"project": "team-b", "consent": {"to": ["team-a"], "may": ["deploy"], "names": ["api"]}});
    let gaps = [
        gap("Shipyard", "team-a", "consent", consent),
        gap("DeploymentConfig", "web", "vouch", json!({})),
        gap("DeploymentConfig", "job", "form", json!({})),
        gap("Pipeline", "carts", "vouch", json!({})),
        gap("Cluster", "eu", "policy", json!({})),
    ];
    api.can("GET /v1/border", json!({"items": gaps, "nextPageKey": "0", "pageSize": 100, "totalCount": 5}));
    let ran = api.run(&["doctor"]);
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
    let told: Vec<&str> = ran.out.lines().filter_map(|line| line.strip_prefix("note   border: ")).collect();
    let why = "the field: why, and who may grant it";
    let apply = "keelway apply -f";
    let entry = r#"{"to":["team-a"],"may":["deploy"],"names":["api"]}"#;
    assert_eq!(
        told,
        [
            format!("Shipyard of team-a, {why}; the entry {entry} would do: {apply} <manifest of Project team-b>"),
            format!(
                "DeploymentConfig team-a/web, {why}; with a token of theirs: keelway get deploymentconfigs web -p team-a -o yaml | {apply} -"
            ),
            format!("DeploymentConfig team-a/job, {why}; then {apply} <manifest of DeploymentConfig team-a/job>"),
            format!(
                "Pipeline team-a/carts, {why}; with a token of theirs: keelway get pipelines carts -p team-a -o yaml | {apply} -"
            ),
            format!("Cluster team-a/eu, {why}; with a token of theirs: {apply} <manifest of Project team-a>"),
        ]
    );
    api.can("GET /v1/border", json!({"items": [], "nextPageKey": "0", "pageSize": 100, "totalCount": 0}));
    assert!(api.run(&["doctor"]).out.contains("ok     border: every manifest may name what it names"));
}

/// Most tokens are limited to projects or tasks.
#[test]
fn doctor_says_what_a_limited_token_cannot_check() {
    let api = checked("2026-11-22T08:00:00.000Z", &[("sequences", "enabled")], None);
    let refusal = json!({"title": "forbidden", "status": 403, "detail": "this needs read in all projects"});
    for line in ["GET /v1/dead-letters", "GET /v1/border", "GET /v1/checks"] {
        api.world().canned.insert(line.into(), (403, refusal.clone()));
    }
    let ran = api.run(&["doctor"]);
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
    for told in [
        "ok     token: accepted",
        "note   dead letters: not checked, this token does not show it",
        "note   border: not checked, this token does not show it",
        "note   rules, clock, limits, bus: not checked",
    ] {
        assert!(ran.out.contains(told), "{told}: {}", ran.out);
    }
}

#[test]
fn invalid_input_is_listed_by_day() {
    let api = api();
    let one = json!({"at": "2026-11-22T08:00:00.000Z", "reason": "no JSON: send a CloudEvent", "text": "hello"});
    let page = json!({"day": "2026-11-22", "items": [one], "nextPageKey": "0", "pageSize": 100, "totalCount": 1});
    api.can("GET /v1/invalid", page);
    let ran = api.run(&["get", "invalid", "--day", "2026-11-22"]);
    assert!(ran.out.contains("no JSON: send a CloudEvent  hello"), "{} {}", ran.out, ran.err);
    assert_eq!(api.world().asked.last().map(|asked| asked.line.contains("day=2026-11-22")), Some(true));
    api.can("GET /v1/invalid", json!({"day": "2026-11-22", "items": [], "nextPageKey": "0", "pageSize": 100, "totalCount": 0}));
    assert!(api.run(&["get", "invalid"]).err.contains("nothing was recorded as invalid on 2026-11-22"), "an empty day");
}
