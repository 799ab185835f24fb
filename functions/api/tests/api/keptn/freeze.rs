//! Stages that are closed: what waits, where it is shown, and who may let it through.

use crate::stand::Stand;
use keelway_domain::time::Span;
use serde_json::{Value, json};

/// The stand's clock begins on 2026-11-20 at 12:00 UTC.
const STAGES: &str = "
    - name: dev
      sequences:
        - name: delivery
          tasks: [{name: deploy}]
    - name: prod
      windows:
        - {kind: deny, from: 2026-11-20T12:00, until: 2026-11-20T18:00, zone: Europe/Berlin, reason: quarter end}
      sequences:
        - name: delivery
          tasks: [{name: deploy}]
";

async fn waiting() -> (Stand, String) {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    let context = stand.deliver("prod", "cart", "cart:1").await;
    (stand, context)
}

fn waits(x: &Value) -> Value {
    json!([x["phase"], x["waits"]["reason"], x["waits"]["window"], x["waits"]["until"], x["waits"]["since"]])
}

#[tokio::test]
async fn what_waits_for_a_window_is_shown_everywhere() {
    let (stand, context) = waiting().await;
    let expected = json!(["frozen", "window", "quarter end", "2026-11-20T17:00:00.000Z", "2026-11-20T12:00:00.000Z"]);
    let shown = stand.state(&context).await;
    assert_eq!((&shown["phase"], &shown["state"]), (&json!("waiting"), &json!("waiting")));
    assert_eq!(waits(&shown["executions"][0]), expected);
    let queue = stand.get("/v1/project/shop/queue").await.json();
    let queue = &queue["items"][0];
    assert_eq!((waits(&queue["waiting"][0]), &queue["holder"]), (expected.clone(), &Value::Null));
    let environments = stand.get("/v1/project/shop/environment").await.json();
    assert_eq!(waits(&environments["items"][0]["coming"][0]), expected);
}

#[tokio::test]
async fn whoever_may_approve_in_the_stage_overrides_it_with_a_reason() {
    let (mut stand, context) = waiting().await;
    stand.token("ci", &["trigger", "approve:dev"], &["shop"]).await;
    stand.token("ann", &["approve:prod"], &["shop"]).await;
    let path = format!("/v1/sequence/shop/{context}/override");
    let body = json!({"reason": "fixes INC-7", "by": "Ann"});
    let refused = stand.like("ci").post(&path, &body).await;
    assert_eq!((refused.status, refused.problem().contains("approve:prod")), (403, true), "{refused:?}");
    let refused = stand.like("ann").post(&path, &json!({})).await;
    assert_eq!((refused.status, refused.problem().contains("reason: is missing")), (400, true), "{refused:?}");
    assert_eq!(stand.like("").state(&context).await["phase"], "waiting");

    let answer = stand.like("ann").post(&path, &body).await;
    let told = answer.json();
    let expected = json!([200, "prod", 1, "2026-11-20T17:00:00.000Z"]);
    assert_eq!(json!([answer.status, told["stage"], told["held"], told["until"]]), expected, "{answer:?}");
    stand.like("").work().await;
    let shown = stand.state(&context).await;
    assert_eq!(shown["phase"], "started");
    assert_eq!(shown["executions"][0]["override"], json!({"by": "token:ann (Ann)", "reason": "fixes INC-7"}));
    assert_eq!(stand.open("deploy").await["shkeptncontext"], json!(context));

    let audit = stand.get("/v1/audit?action=override").await.json();
    let entries = audit["items"].as_array().unwrap();
    let entry = json!([entries[0]["token"], entries[0]["project"], entries[0]["what"], entries[0]["note"]]);
    let expected = json!(["ann", "shop", format!("overrode the windows of prod ({context})"), "fixes INC-7"]);
    assert_eq!((entries.len(), entry), (1, expected));
}

#[tokio::test]
async fn what_cannot_be_overridden() {
    let (mut stand, context) = waiting().await;
    let body = |stage: &str| json!({"reason": "now", "stage": stage});
    for (path, body, status, says) in [
        (format!("/v1/sequence/shop/{context}/override"), body("dev"), 409, "the windows of stage dev are open"),
        (format!("/v1/sequence/shop/{context}/override"), body("prd"), 404, "prod"),
        (format!("/v1/sequence/shop/{context}/override"), json!({"why": "now"}), 400, "why"),
        ("/v1/sequence/shop/nobody/override".into(), body("prod"), 404, "context"),
    ] {
        let answer = stand.post(&path, &body).await;
        assert_eq!((answer.status, answer.problem().contains(says)), (status, true), "{body}: {answer:?}");
    }
    assert_eq!(stand.get("/v1/audit?action=override").await.json()["items"], json!([]), "nothing was done");
    // It opens by itself.
    stand.world.pass(Span::minutes(5 * 60));
    stand.work().await;
    assert_eq!(stand.state(&context).await["phase"], "started");
    let late = stand.post(&format!("/v1/sequence/shop/{context}/override"), &body("prod")).await;
    assert_eq!(late.status, 409);
}

/// The trigger of a delivery to production.
fn trigger(id: &str, ty: &str) -> Value {
    json!({"specversion": "1.0", "id": id, "source": "ci", "type": ty, "shkeptncontext": format!("context-{id}"),
        "data": {"project": "shop", "stage": "prod", "service": "cart", "labels": {"by": "ci"}}})
}

#[tokio::test]
async fn a_trigger_may_say_why_it_does_not_wait_for_a_window() {
    let (mut stand, waiting) = waiting().await;
    stand.token("ci", &["trigger"], &["shop"]).await;
    stand.token("ann", &["trigger", "approve:prod"], &["shop"]).await;
    let delivery = "sh.keptn.event.prod.delivery.triggered";
    let path = "/v1/event?override=fixes%20INC-7&by=Ann";
    let refused = stand.like("ci").post(path, &trigger("1", delivery)).await;
    assert_eq!((refused.status, refused.problem().contains("approve:prod")), (403, true), "{refused:?}");
    let accepted = stand.like("ann").post(path, &trigger("1", delivery)).await;
    assert_eq!((accepted.status, accepted.json()["keptnContext"].as_str()), (200, Some("context-1")), "{accepted:?}");
    // The same request again.
    assert_eq!(stand.post(path, &trigger("1", delivery)).await.status, 200);
    stand.like("").work().await;
    let shown = stand.state("context-1").await;
    assert_eq!((&shown["phase"], &shown["labels"]), (&json!("started"), &json!({"by": "ci"})), "{shown}");
    assert_eq!(shown["executions"][0]["override"], json!({"by": "token:ann (Ann)", "reason": "fixes INC-7"}));
    assert_eq!(stand.state(&waiting).await["phase"], "waiting", "another context is held back still");
    assert_eq!(stand.post(path, &trigger("1", delivery)).await.status, 200, "and when it was taken");

    let audit = stand.get("/v1/audit?action=override").await.json();
    let entries = audit["items"].as_array().unwrap();
    let told = json!([entries[0]["token"], entries[0]["project"], entries[0]["note"]]);
    assert_eq!(told, json!(["ann", "shop", "fixes INC-7"]));
    assert!(entries[0]["what"].as_str().unwrap().starts_with("triggered delivery of "), "{entries:?}");

    for (path, body, says) in [
        ("/v1/event?override=why", trigger("2", "sh.keptn.event.com.acme.built"), "goes with the trigger of a sequence"),
        ("/v1/event?overrides=why", trigger("2", delivery), "overrides"),
    ] {
        let answer = stand.post(path, &body).await;
        assert_eq!((answer.status, answer.problem().contains(says)), (400, true), "{path}: {answer:?}");
    }
    let batch = json!([trigger("3", delivery)]).to_string();
    let answer = stand.post_text("/v1/event?override=why", "application/cloudevents-batch+json", batch).await;
    assert_eq!((answer.status, answer.problem().contains("single event")), (400, true), "{answer:?}");
}

#[tokio::test]
async fn an_override_counts_only_where_it_is_needed() {
    let (mut stand, _) = waiting().await;
    stand.world.pass(Span::minutes(5 * 60));
    let delivery = "sh.keptn.event.prod.delivery.triggered";
    assert_eq!(stand.post("/v1/event?override=sure", &trigger("1", delivery)).await.status, 200);
    stand.work().await;
    assert_eq!(stand.state("context-1").await["executions"][0]["override"], Value::Null, "the stage is open");
    assert_eq!(stand.get("/v1/audit?action=override").await.json()["items"], json!([]));
}

#[tokio::test]
async fn windows_are_checked_when_they_are_applied() {
    let stand = Stand::new();
    stand.apply("shop", STAGES).await;
    let text =
        format!("apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nmetadata: {{name: shipyard-shop}}\nspec:\n  stages:{STAGES}");
    let bad = text.replace("2026-11-20T18:00", "2026-11-20T10:00").replace("Europe/Berlin", "Europe/Bonn");
    let answer = stand.post_text("/v1/apply", "application/yaml", bad).await;
    assert_eq!(answer.status, 400);
    assert!(answer.text.contains("no IANA time zone"), "{}", answer.text);
}
