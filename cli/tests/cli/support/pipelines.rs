//! Pipelines as the API shows them.

use super::{Api, NOW};
use serde_json::{Value, json};

/// Seconds after eight, as the API writes it.
pub fn at(second: u32) -> String {
    format!("2026-11-21T08:00:{second:02}.000Z")
}

/// An environment with one target that is healthy on a revision since a time.
pub fn healthy(name: &str, revision: &str, since: &str) -> Value {
    json!({
        "name": name, "manual": false, "healthy": {"revision": revision, "since": since},
        "targets": [{"cluster": "shop/eu-1", "namespace": name, "revision": revision, "ready": true, "observedAt": since}]
    })
}

/// With a change.
pub fn with(mut value: Value, change: Value) -> Value {
    value.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    value
}

/// A promotion of run 3.
pub fn promotion(revision: &str, phase: &str, change: Value) -> Value {
    let promotion = json!({
        "run": 3, "revision": revision, "phase": phase, "reason": "", "message": "", "since": at(10), "attempts": 0, "approved": true,
        "completed": false
    });
    with(promotion, change)
}

/// A promotion that is over, into an environment that runs the revision.
pub fn promoted(name: &str, revision: &str) -> Value {
    let done = json!({"reason": "Merged", "message": "merged by ann", "attempts": 1, "completed": true});
    with(healthy(name, revision, &at(22)), json!({"strategy": "pullRequest", "promotion": promotion(revision, "succeeded", done)}))
}

/// An environment that runs something older, with a promotion into it.
pub fn behind(name: &str, promotion: Value) -> Value {
    with(healthy(name, "1.3.0", "2026-11-18T08:00:00.000Z"), json!({"strategy": "pullRequest", "promotion": promotion}))
}

/// An environment that waits for approval.
pub fn awaiting(name: &str, revision: &str) -> Value {
    let message = format!("{revision} waits for approval for {name}");
    let waits = json!({"reason": "ApprovalNeeded", "message": message, "since": at(30), "approved": false});
    let one = behind(name, promotion(revision, "waiting", waits));
    with(one, json!({"manual": true, "waitingApproval": {"revision": revision, "given": 0, "needed": 1}}))
}

/// A pipeline in run 3.
pub fn pipeline(name: &str, revision: &str, message: &str, environments: &[Value]) -> Value {
    json!({
        "namespace": "shop", "name": name, "app": {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "name": name},
        "appliedAt": at(0), "version": 2, "latestRevision": revision, "run": {"number": 3, "revision": revision, "since": at(5)},
        "reason": if message.is_empty() { "" } else { "Waiting" }, "message": message, "environments": environments, "now": NOW
    })
}

/// `carts`, whose production waits for approval of 1.4.0.
pub fn carts() -> Value {
    let environments = [healthy("dev", "1.4.0", &at(5)), promoted("staging", "1.4.0"), awaiting("production", "1.4.0")];
    pipeline("carts", "1.4.0", "1.4.0 waits for approval for production", &environments)
}

/// `payments`, whose pull request for staging is open.
pub fn payments() -> Value {
    let revision = "main@sha1:63bf726176d8e1a2b3c4d5e6f708192a3b4c5d6e";
    let url = "https://git.example/shop/config/pulls/7";
    let request = json!({
        "reason": "PullRequestOpen", "message": format!("{url} waits to be merged"), "attempts": 1, "attemptedAt": at(12),
        "pullRequest": {"number": 7, "url": url, "branch": "keelway/shop-payments-staging"}
    });
    let environments = [
        healthy("dev", revision, &at(5)),
        behind("staging", promotion(revision, "created", request)),
        healthy("production", "main@sha1:00bf726176d8e1a2b3c4d5e6f708192a3b4c5d6e", "2026-11-18T08:00:00.000Z"),
    ];
    pipeline("payments", revision, &format!("{url} waits to be merged"), &environments)
}

/// Puts pipelines into the API: the list, and each of them.
pub fn show(api: &Api, pipelines: &[Value]) {
    let entry = |state: &Value| {
        let names: Vec<&Value> = state["environments"].as_array().unwrap().iter().map(|environment| &environment["name"]).collect();
        json!({
            "namespace": "shop", "name": state["name"], "environments": names, "run": 3, "revision": state["run"]["revision"],
            "suspended": !state["suspended"].is_null(), "reason": state["reason"], "message": state["message"], "appliedAt": at(0)
        })
    };
    let entries: Vec<Value> = pipelines.iter().map(entry).collect();
    api.can("GET /v1/pipelines", json!({"items": entries, "nextPageKey": "0", "now": NOW}));
    for state in pipelines {
        api.can(&format!("GET /v1/pipelines/shop/{}", state["name"].as_str().unwrap()), state.clone());
    }
}
