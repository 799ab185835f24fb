//! Back to what ran in a stage before, and what came there; a trigger that has an id of its own.

use crate::support::{Api, NOW};
use serde_json::{Value, json};

fn execution(context: &str, version: &str, second: u32, result: &str) -> Value {
    let at = format!("2026-11-21T07:{second:02}:00.000Z");
    json!({
        "id": context, "shkeptncontext": context, "service": "carts", "stage": "production", "sequence": "delivery", "state": "finished",
        "phase": "ended", "result": result, "image": format!("registry.example/carts:{version}"), "acceptedAt": at, "finishedAt": at,
        "tasks": [{"name": "deployment", "state": "finished", "result": result, "finishedAt": at}]
    })
}

/// 1.2 and 1.3 came; 1.4 failed; then 1.5 came.
fn api(sequences: &str) -> Api {
    let api = Api::start();
    let environment = json!({
        "stage": "production", "service": "carts", "image": "registry.example/carts:1.5", "since": "2026-11-21T07:40:00.000Z",
        "shkeptncontext": "c-5", "coming": []
    });
    api.can("GET /v1/project/shop/environment", json!({"items": [environment], "nextPageKey": "0", "now": NOW}));
    let all = [("c-2", "1.2", 10, "pass"), ("c-3", "1.3", 20, "warning"), ("c-4", "1.4", 30, "fail"), ("c-5", "1.5", 40, "pass")];
    let all: Vec<Value> = all.iter().rev().map(|(context, version, at, result)| execution(context, version, *at, result)).collect();
    api.can("GET /v1/sequence-execution", json!({"sequenceExecutions": all, "nextPageKey": 0, "now": NOW}));
    let shipyard = format!(
        "apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nmetadata: {{name: shipyard-shop}}\n\
         spec: {{stages: [{{name: production, sequences: [{sequences}]}}]}}\n"
    );
    api.can("GET /v1/project/shop/shipyard", json!(shipyard));
    api
}

const DELIVERY: &str = "{name: delivery, tasks: [{name: deployment}]}";
const BOTH: &str = "{name: delivery, tasks: [{name: deployment}]}, {name: rollback, tasks: [{name: rollback}]}";
const BACK: [&str; 6] = ["rollback", "carts", "-p", "shop", "--stage", "production"];

fn triggered(api: &Api) -> Vec<Value> {
    let world = api.world();
    let posted = world.asked.iter().filter(|asked| asked.line.starts_with("POST /v1/event"));
    posted.map(|asked| serde_json::from_str(&asked.body).unwrap()).collect()
}

#[test]
fn a_service_goes_back_by_its_stages_rollback_or_by_what_ran_before() {
    for (sequences, sequence) in [(BOTH, "rollback"), (DELIVERY, "delivery")] {
        let api = api(sequences);
        let foreseen = api.run(&[&BACK[..], &["--dry-run"]].concat());
        assert_eq!((foreseen.code, triggered(&api).len()), (0, 0), "{foreseen:?}");
        assert_eq!(foreseen.out, format!("shop/carts in production would go back: 1.5 → 1.3, by sequence {sequence}\n"));
        let done = api.run(&[&BACK[..], &["-m", "502 since 3:10"]].concat());
        assert_eq!(done.code, 0, "{done:?}");
        let begins = format!("shop/carts in production: 1.5 → 1.3, by sequence {sequence}, context ");
        assert!(done.out.starts_with(&begins) && done.err.contains("follow it: keelway watch "), "{done:?}");
        let event = triggered(&api).pop().unwrap();
        assert_eq!(event["type"], format!("sh.keptn.event.production.{sequence}.triggered"));
        let data = json!({
            "project": "shop", "stage": "production", "service": "carts", "message": "502 since 3:10",
            "configurationChange": {"values": {"image": "registry.example/carts:1.3"}}
        });
        assert_eq!(event["data"], data);
    }
}

#[test]
fn a_way_back_that_leads_nowhere_is_refused() {
    let api = api(DELIVERY);
    for (more, said) in [
        (&["-i", "1.5"][..], "shop/carts in production is registry.example/carts:1.5 already: --again"),
        (&["-i", "1.4"], "no version 1.4 came to shop/carts in production; name the whole image: 1.5, 1.3, 1.2 came there lately"),
        (&["-i", ""], "a value is required"),
        (&["--to", "3"], "cannot be used with"),
    ] {
        let refused = api.run(&[&BACK[..], more].concat());
        assert!(refused.code != 0 && refused.err.contains(said), "{more:?} {refused:?}");
    }
    assert_eq!(triggered(&api).len(), 0);
    // What is named goes, also what ran longer ago than anybody knows, and what runs if that is wanted.
    for (more, image) in [
        (&["-i", "1.2"][..], "registry.example/carts:1.2"),
        (&["-i", "registry.example/carts:0.9"], "registry.example/carts:0.9"),
        (&["-i", "1.5", "--again"], "registry.example/carts:1.5"),
    ] {
        assert_eq!(api.run(&[&BACK[..], more].concat()).code, 0, "{more:?}");
        assert_eq!(triggered(&api).pop().unwrap()["data"]["configurationChange"]["values"]["image"], image);
    }
    // Nobody says what a rollback left.
    let environment = json!({"stage": "production", "service": "carts", "since": "2026-11-21T07:50:00.000Z", "coming": []});
    api.can("GET /v1/project/shop/environment", json!({"items": [environment], "nextPageKey": "0", "now": NOW}));
    let unknown = api.run(&BACK);
    let said = "what ran as shop/carts in production before is not known; name it by --image: 1.5, 1.3, 1.2 came there lately";
    assert!(unknown.code == 1 && unknown.err.contains(said), "{unknown:?}");
    // The config of this name, which there is not.
    api.world().canned.insert(
        "POST /v1/deploymentConfigs/shop:carts/rollback".into(),
        (404, json!({"type": "about:blank", "title": "unknown", "status": 404, "detail": "there is no config carts", "instance": "/"})),
    );
    let config = api.run(&["rollback", "carts", "-p", "shop"]);
    assert!(config.code == 1 && config.err.contains("keelway rollback shop/carts --stage STAGE"), "{config:?}");
}

#[test]
fn the_history_of_an_environment_tells_what_came_when_and_by_what() {
    let api = api(DELIVERY);
    let shown = api.run(&["get", "environments", "-p", "shop", "--history"]);
    let words: Vec<Vec<&str>> = shown.out.lines().map(|line| line.split_whitespace().collect()).collect();
    let expected = [
        ["SERVICE", "STAGE", "VERSION", "AGE", "BY", "CONTEXT"],
        ["carts", "production", "1.5", "20m42s", "delivery", "c-5"],
        ["carts", "production", "1.3", "40m42s", "delivery", "c-3"],
        ["carts", "production", "1.2", "50m42s", "delivery", "c-2"],
    ];
    assert_eq!(words, expected, "{shown:?}");
    let data: Value =
        serde_json::from_str(&api.run(&["get", "environments", "-p", "shop", "--history", "-o", "json"]).out).unwrap();
    assert_eq!(data["items"][1]["image"], "registry.example/carts:1.3", "{data}");
}

#[test]
fn a_trigger_with_an_id_is_the_same_whenever_it_is_asked_for() {
    let api = api(DELIVERY);
    let trigger = |service: &str, image: &str, more: &[&str]| {
        let words = ["trigger", "delivery", "-p", "shop", "-s", service, "-i", image, "--stage", "production"];
        let ran = api.run(&[&words[..], more].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        triggered(&api).pop().unwrap()["id"].as_str().unwrap().to_owned()
    };
    let first = trigger("carts", "carts:1", &["--id", "4711"]);
    assert_eq!(trigger("carts", "carts:1", &["--id", "4711"]), first);
    for (service, image, id) in [("carts", "carts:2", "4711"), ("web", "carts:1", "4711"), ("carts", "carts:1", "4712")] {
        assert_ne!(trigger(service, image, &["--id", id]), first, "{service} {image} {id}");
    }
    assert_ne!(trigger("carts", "carts:1", &[]), trigger("carts", "carts:1", &[]));
    // A variable of CI that is not set must not make all deliveries one.
    for flag in ["--id=", "--image="] {
        let words = ["trigger", "delivery", "-p", "shop", "-s", "carts", "-i", "carts:1", flag];
        assert_eq!(api.run(&words).code, 2, "{flag}");
    }
}
