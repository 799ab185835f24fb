//! What follows the end of another sequence is not started by hand with `trigger` alone: what comes before it may be a gate.

use crate::stand::{Answer, Stand};
use serde_json::{Value, json};

const STAGES: &str = "
    - name: dev
      sequences:
        - name: delivery
          tasks: [{name: deployment}]
    - name: prod
      sequences:
        - name: delivery
          triggeredOn: [{event: dev.delivery.finished}]
          tasks: [{name: deployment}]
        - name: hotfix
          tasks: [{name: deployment}]
        - name: rollback
          triggeredOn: [{event: prod.delivery.finished, selector: {match: {result: fail}}}]
          tasks: [{name: rollback}]
        - name: repair
          triggeredOn: [{event: problem.open}]
          tasks: [{name: deployment}]
";

async fn stand() -> Stand {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    for (name, scopes) in [
        ("starter", &["trigger", "read"][..]),
        ("dev", &["trigger", "trigger:dev"]),
        ("prod", &["trigger:prod"]),
        ("all", &["trigger", "trigger:*"]),
        ("worker", &["execute:*"]),
    ] {
        stand.token(name, scopes, &["shop"]).await;
    }
    stand
}

fn trigger(stage: &str, sequence: &str) -> Value {
    json!({
        "type": format!("sh.keptn.event.{stage}.{sequence}.triggered"), "source": "test",
        "data": {"project": "shop", "stage": stage, "service": "cart"}
    })
}

async fn send(stand: &mut Stand, who: &str, event: &Value) -> Answer {
    let answer = stand.like(who).post("/v1/event", event).await;
    stand.work().await;
    answer
}

#[tokio::test]
async fn a_follow_up_by_hand_needs_the_scope_of_its_stage() {
    let mut stand = stand().await;
    for (who, stage, sequence, status) in [
        ("starter", "dev", "delivery", 200),
        ("starter", "prod", "hotfix", 200),
        ("starter", "prod", "delivery", 403),
        // An emergency is none of the gate's business, and an event of a tool is sent by whoever may trigger.
        ("starter", "prod", "rollback", 200),
        ("starter", "prod", "repair", 200),
        ("starter", "prod", "evaluation", 200),
        ("dev", "prod", "delivery", 403),
        ("prod", "prod", "delivery", 200),
        ("prod", "prod", "hotfix", 200),
        ("prod", "dev", "delivery", 403),
        ("all", "prod", "delivery", 200),
        ("worker", "prod", "hotfix", 403),
        ("", "prod", "delivery", 200),
    ] {
        let answer = send(&mut stand, who, &trigger(stage, sequence)).await;
        assert_eq!(answer.status, status, "{who} triggers {stage}.{sequence}: {answer:?}");
        if status == 403 && sequence == "delivery" && stage == "prod" {
            assert!(answer.problem().contains("this needs trigger:prod in project \"shop\""), "{answer:?}");
            assert!(answer.problem().contains("begins after the end of another one"), "{answer:?}");
        }
    }
    let batch = json!([trigger("dev", "delivery"), trigger("prod", "delivery")]);
    let batch = stand.like("starter").post_text("/v1/event", "application/cloudevents-batch+json", batch.to_string()).await;
    assert_eq!((batch.status, batch.problem().contains("[1]: this needs trigger:prod")), (403, true), "{batch:?}");
    let document = stand.get("/v1/openapi.json").await.json();
    assert_eq!(
        document["paths"]["/v1/event"]["post"]["x-keelway-scopes"],
        json!(["trigger", "trigger:<stage>", "execute:<task>", "approve:<stage>"])
    );
    let forged = send(&mut stand, "starter", &json!({
        "type": "sh.keptn.event.dev.delivery.finished", "source": "test", "data": {"project": "shop", "stage": "dev", "service": "cart", "result": "pass"}
    }))
    .await;
    assert_eq!(forged.status, 400, "only the engine tells that a sequence has ended: {forged:?}");
}

#[tokio::test]
async fn a_follow_up_is_repeated_with_the_scope_of_its_stage() {
    let mut stand = stand().await;
    let context = stand.like("").trigger("shop", "dev", "delivery", "cart").await;
    for result in ["pass", "fail"] {
        stand.execute("deployment", result).await;
    }
    let path = format!("/v1/sequence/shop/{context}/retry");
    let refused = stand.like("starter").post(&path, &json!({"stage": "prod"})).await;
    assert_eq!((refused.status, refused.problem().contains("this needs trigger:prod")), (403, true), "{refused:?}");
    assert_eq!(stand.like("worker").post(&path, &json!({"stage": "prod"})).await.status, 403);
    let repeated = stand.like("prod").post(&path, &json!({"stage": "prod", "from": "deployment"})).await;
    assert!([200, 202].contains(&repeated.status), "{repeated:?}");
    // What nothing triggers is repeated as before.
    let context = stand.like("").trigger("shop", "dev", "delivery", "orders").await;
    let open = stand.get("/v1/event/triggered/deployment").await.json();
    let open = open["events"].as_array().unwrap().iter().find(|one| one["shkeptncontext"] == json!(context)).unwrap().clone();
    stand.answer_to(&open, "deployment", "fail").await;
    let path = format!("/v1/sequence/shop/{context}/retry");
    assert_eq!(stand.like("prod").post(&path, &json!({})).await.status, 403);
    let repeated = stand.like("starter").post(&path, &json!({})).await;
    assert!([200, 202].contains(&repeated.status), "{repeated:?}");
}
