//! Who asked for a version, and when its deployer was last heard of.

use crate::support::deployments::{config, over, show, version};
use crate::support::pipelines::with;
use crate::support::{Api, NOW};
use serde_json::{Value, json};

const CONTEXT: &str = "54c7f0df-2ea5-5f6b-9d6e-0a3c5b7d9e1f";

#[test]
fn it_says_when_the_deployer_was_last_heard_of() {
    let told = json!({
        "desired": "run", "deployer": "ci", "heard": "2026-11-21T08:00:30.000Z", "expected": "2026-11-21T08:01:30.000Z"
    });
    let api = Api::start();
    show(&api, &config(version(2, "Running", told.clone()), json!({})));
    let ran = api.run(&["rollout", "status", "shop/carts", "--no-watch"]);
    assert!(ran.out.contains("\nlast heard from ci 12s ago; it counts as lost in 48s\n"), "{ran:?}");
    let asked = with(told, json!({"context": CONTEXT, "details": asked_for()}));
    let all = json!({"items": [version(2, "Running", asked)], "nextPageKey": "0", "now": NOW});
    api.can("GET /v1/deploymentConfigs/shop:carts/history", all);
    let wide = api.run(&["rollout", "history", "shop/carts", "-o", "wide"]).out;
    let heading = wide.find("HEARD").unwrap();
    assert!(wide.lines().nth(1).unwrap()[heading..].starts_with("12s "), "{wide}");
    assert!(wide.contains("  task deployment of shop/dev/carts (54c7f0df)  "), "{wide}");
}

/// The cause of a version that a task asked for.
fn asked_for() -> Value {
    let told = format!("task deployment of shop/dev/carts ({CONTEXT})");
    let delivery = json!({"task": "deployment", "project": "shop", "stage": "dev", "service": "carts", "context": CONTEXT});
    let cause = json!({"type": "Manual", "by": "keelway-sequences", "notes": told, "delivery": delivery});
    json!({"message": told, "causes": [cause]})
}

#[test]
fn a_version_that_a_task_asked_for_says_which_delivery_everywhere() {
    let told = format!("task deployment of shop/dev/carts ({CONTEXT})");
    let waits = version(2, "New", json!({"message": told, "details": asked_for(), "desired": "run"}));
    let api = Api::start();
    show(&api, &config(waits.clone(), json!({})));
    api.can("GET /v1/deployments/shop:carts-2", waits.clone());
    api.can(
        "GET /v1/deployments",
        json!({"items": [over(2, "Complete", json!({"details": asked_for()}))], "nextPageKey": "0", "now": NOW}),
    );
    let short = "task deployment of shop/dev/carts (54c7f0df)";
    let status = api.run(&["rollout", "status", "shop/carts", "--no-watch"]).out;
    assert!(status.starts_with(&format!("carts-2 waits for a deployer: {short}\n")), "{status}");
    let one = api.run(&["rollout", "history", "shop/carts", "--revision", "2"]).out;
    assert!(one.contains(&format!("  cause      {told}\n")), "{one}");
    let listed = api.run(&["get", "deployments"]).out;
    assert!(listed.lines().next().unwrap().contains("CAUSE") && listed.contains(short), "{listed}");
}

#[test]
fn a_list_of_configs_says_when_the_deployer_was_last_heard_of() {
    let told = json!({"deployer": "ci", "heard": "2026-11-21T08:00:30.000Z"});
    let api = Api::start();
    let running = config(version(2, "Running", told), json!({"activeVersion": 1}));
    api.can("GET /v1/deploymentConfigs", json!({"items": [running], "nextPageKey": "0", "now": NOW}));
    let shown = api.run(&["get", "dc", "-p", "shop"]).out;
    assert!(shown.contains(" is on its way, ci heard 12s ago\n"), "{shown}");
    let wide = api.run(&["get", "dc", "-p", "shop", "-o", "wide"]).out;
    let lines: Vec<&str> = wide.lines().collect();
    let heading = lines[0].find("DEPLOYER  HEARD").unwrap();
    assert!(lines[1][heading..].starts_with("ci        12s"), "{wide}");
    let json: Value = serde_json::from_str(&api.run(&["get", "dc", "-p", "shop", "-o", "json"]).out).unwrap();
    assert_eq!(json["items"][0]["latest"]["heard"], "2026-11-21T08:00:30.000Z");
}
