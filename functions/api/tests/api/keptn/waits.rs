//! What the list of sequences says about each execution: what it waits for and since when, how its tasks went, what it kept from
//! being reached.

use crate::stand::Stand;
use keelway_domain::time::Span;
use keelway_wire::http::SequencePage;
use serde_json::{Value, json};

const STAGES: &str = "
    - name: dev
      sequences:
        - name: delivery
          tasks: [{name: deployment}, {name: test, triggeredAfter: 2m}]
    - name: prod
      sequences:
        - name: delivery
          triggeredOn: [{event: dev.delivery.finished}]
          tasks: [{name: approval, properties: {pass: manual}}, {name: deployment}]
    - name: edge
      sequences:
        - name: delivery
          triggeredOn: [{event: prod.delivery.finished}]
          tasks: [{name: deployment}]
";

fn execution(state: &Value, n: usize) -> Value {
    state["executions"][n].clone()
}

/// A time of the world's clock, so many seconds after noon.
fn at(seconds: i64) -> Value {
    json!(format!("2026-11-20T12:{:02}:{:02}.000Z", seconds / 60, seconds % 60))
}

#[tokio::test]
async fn every_wait_has_its_reason_and_its_times() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    let first = stand.deliver("dev", "cart", "cart:1.4.0").await;
    stand.world.pass(Span::seconds(3));
    let second = stand.deliver("dev", "cart", "cart:1.5.0").await;

    let one = execution(&stand.state(&first).await, 0);
    let open = stand.open("deployment").await;
    let waits = json!({
        "reason": "executor", "since": at(0), "until": at(600), "task": "deployment",
        "type": "sh.keptn.event.deployment.triggered", "id": open["id"],
    });
    assert_eq!((&one["waits"], &one["image"]), (&waits, &json!("cart:1.4.0")));
    let two = execution(&stand.state(&second).await, 0);
    let behind = json!({"shkeptncontext": first, "service": "cart", "sequence": "delivery", "image": "cart:1.4.0"});
    assert_eq!(two["waits"], json!({"reason": "lane", "since": at(3), "task": "deployment", "behind": behind}));

    let started = json!({
        "type": "sh.keptn.event.deployment.started", "source": "e", "shkeptncontext": first, "triggeredid": open["id"],
        "data": {"project": "shop", "stage": "dev", "service": "cart"}
    });
    assert_eq!(stand.post("/v1/event", &started).await.status, 200);
    stand.work().await;
    let one = execution(&stand.state(&first).await, 0);
    assert_eq!((&one["waits"]["reason"], &one["waits"]["since"], &one["waits"]["by"]), (&json!("answer"), &at(3), &json!("e")));

    stand.world.pass(Span::seconds(4));
    let finished = json!({
        "type": "sh.keptn.event.deployment.finished", "source": "e", "shkeptncontext": first, "triggeredid": open["id"],
        "data": {"project": "shop", "stage": "dev", "service": "cart", "result": "warning", "status": "succeeded", "message": "slow"}
    });
    assert_eq!(stand.post("/v1/event", &finished).await.status, 200);
    stand.work().await;
    let one = execution(&stand.state(&first).await, 0);
    assert_eq!(one["waits"], json!({"reason": "delay", "since": at(7), "until": at(127), "task": "test"}));
    let task = json!({
        "name": "deployment", "state": "finished", "result": "warning", "triggeredAt": at(0), "startedAt": at(3), "finishedAt": at(7),
    });
    assert_eq!((&one["tasks"][0], &one["message"]), (&task, &json!("slow")));

    assert_eq!(stand.post(&format!("/v1/sequence/shop/{first}/control"), &json!({"state": "pause"})).await.status, 200);
    stand.work().await;
    let waits = json!({"reason": "resume", "since": at(7), "task": "test"});
    assert_eq!(execution(&stand.state(&first).await, 0)["waits"], waits);
    // What clients are told to read is what is there.
    let page = stand.get("/v1/sequence/shop").await.json();
    let typed: SequencePage = serde_json::from_value(page.clone()).unwrap();
    assert_eq!((serde_json::to_value(&typed).unwrap(), &page["now"]), (page.clone(), &at(7)));
}

#[tokio::test]
async fn an_approval_says_who_decided_and_when() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    let context = stand.deliver("prod", "cart", "cart:1").await;
    let open = stand.open("approval").await;
    let waits = execution(&stand.state(&context).await, 0)["waits"].clone();
    assert_eq!((&waits["reason"], &waits["id"], &waits["since"]), (&json!("approval"), &open["id"], &at(0)));
    stand.world.pass(Span::seconds(12));
    stand.decide("decline", "ann").await;
    let ended = execution(&stand.state(&context).await, 0);
    let task = json!({
        "name": "approval", "state": "finished", "result": "fail", "by": "administrator (ann)", "triggeredAt": at(0), "startedAt": at(0),
        "finishedAt": at(12),
    });
    assert_eq!((&ended["tasks"][0], &ended["message"]), (&task, &json!("as agreed")));
    assert_eq!(ended["waits"], Value::Null);
}

#[tokio::test]
async fn a_result_that_stops_a_delivery_names_what_it_did_not_reach() {
    let mut stand = Stand::new();
    stand.apply("shop", &STAGES.replace(", triggeredAfter: 2m", "")).await;
    let context = stand.deliver("dev", "cart", "cart:1").await;
    stand.execute("deployment", "pass").await;
    assert_eq!(stand.state(&context).await["notReached"], Value::Null, "it may still reach them");
    stand.execute("test", "warning").await;
    let state = stand.state(&context).await;
    let after = json!({"stage": "dev", "sequence": "delivery", "result": "warning"});
    let missed = |stage: &str| json!({"stage": stage, "sequence": "delivery", "after": after});
    assert_eq!((&state["state"], &state["notReached"]), (&json!("finished"), &json!([missed("prod"), missed("edge")])));

    // Another trigger in the same context reaches it after all.
    let mut event =
        json!({"type": "sh.keptn.event.dev.delivery.triggered", "source": "test", "id": "again", "shkeptncontext": context});
    event["data"] = json!({"project": "shop", "stage": "dev", "service": "cart"});
    stand.trigger_with(event).await;
    assert_eq!(stand.state(&context).await["notReached"], Value::Null, "the newer one is under way");
    stand.execute("deployment", "pass").await;
    stand.execute("test", "pass").await;
    stand.decide("approve", "ann").await;
    stand.execute("deployment", "fail").await;
    let after = json!({"stage": "prod", "sequence": "delivery", "result": "fail"});
    let missed = json!([{"stage": "edge", "sequence": "delivery", "after": after}]);
    assert_eq!(stand.state(&context).await["notReached"], missed);
}

#[tokio::test]
async fn a_stage_shows_what_was_caused_last_and_what_is_open_before_what_ended() {
    let mut stand = Stand::new();
    stand.apply("shop", &STAGES.replace(", triggeredAfter: 2m", "")).await;
    // The first trigger waits for approval in prod while a second one, of the same context, is accepted and ends in dev.
    let context = stand.deliver("dev", "cart", "cart:1").await;
    let mut second =
        json!({"type": "sh.keptn.event.prod.delivery.triggered", "source": "test", "id": "b", "shkeptncontext": context});
    second["data"] =
        json!({"project": "shop", "stage": "prod", "service": "api", "configurationChange": {"values": {"image": "api:2"}}});
    stand.world.pass(Span::seconds(1));
    stand.trigger_with(second).await;
    stand.decide("decline", "ann").await;
    stand.world.pass(Span::seconds(1));
    stand.execute("deployment", "pass").await;
    stand.execute("test", "pass").await;
    let stage = |state: &Value| state["stages"].as_array().unwrap().iter().find(|stage| stage["name"] == "prod").unwrap().clone();
    let open = stage(&stand.state(&context).await);
    assert_eq!(
        (&open["phase"], &open["image"]),
        (&json!("waitingForApproval"), &json!("cart:1")),
        "caused later, accepted earlier"
    );
    // A third one waits in prod, too; what is open counts before what has ended.
    let mut third =
        json!({"type": "sh.keptn.event.prod.delivery.triggered", "source": "test", "id": "c", "shkeptncontext": context});
    third["data"] = json!({"project": "shop", "stage": "prod", "service": "pay"});
    stand.world.pass(Span::seconds(1));
    stand.trigger_with(third).await;
    let open = stage(&stand.state(&context).await);
    assert_eq!(
        (&open["phase"], &open["latestEvent"]["type"]),
        (&json!("waitingForApproval"), &json!("sh.keptn.event.approval.started"))
    );
    stand.decide("decline", "ann").await;
    assert_eq!(stage(&stand.state(&context).await)["phase"], "waitingForApproval", "one of them is still open");
    stand.decide("decline", "ann").await;
    let ended = stage(&stand.state(&context).await);
    assert_eq!(
        (&ended["state"], &ended["latestEvent"]["type"]),
        (&json!("succeeded"), &json!("sh.keptn.event.prod.delivery.finished"))
    );
}

#[tokio::test]
async fn a_context_is_found_by_the_beginning_of_its_name() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    let mut contexts = vec![];
    for name in ["release-one", "release-two", "other"] {
        let event = json!({
            "type": "sh.keptn.event.dev.delivery.triggered", "source": "test", "id": name, "shkeptncontext": name,
            "data": {"project": "shop", "stage": "dev", "service": "cart"}
        });
        contexts.push(stand.trigger_with(event).await);
        stand.world.pass(Span::seconds(1));
    }
    let found = async |prefix: &str| {
        let page = stand.get(&format!("/v1/sequence/shop?contextPrefix={prefix}")).await.json();
        let names = page["states"].as_array().unwrap().iter().map(|state| state["shkeptncontext"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(found("release-").await, ["release-two", "release-one"]);
    assert_eq!(found("release-t").await, ["release-two"]);
    assert!(found("releases").await.is_empty());
    let short = stand.get("/v1/sequence/shop?contextPrefix=other").await;
    assert_eq!((short.status, short.problem().contains("at least 8")), (400, true));
}

/// An answer of the executor `e` to the open task `deployment`.
fn answer(context: &str, open: &Value, kind: &str) -> Value {
    json!({
        "type": format!("sh.keptn.event.deployment.{kind}"), "source": "e", "shkeptncontext": context, "triggeredid": open["id"],
        "data": {"project": "shop", "stage": "dev", "service": "cart", "result": "pass", "status": "succeeded"}
    })
}

#[tokio::test]
async fn an_answer_without_started_says_what_is_missing_and_when_it_counts() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    let context = stand.deliver("dev", "cart", "cart:1").await;
    let open = stand.open("deployment").await;
    let told = stand.post("/v1/event", &answer(&context, &open, "finished")).await.json();
    let message =
        "no .started has come for this task: this .finished counts as soon as one comes, or else at 2026-11-20T12:10:00.000Z";
    assert_eq!(told, json!({"keptnContext": context, "message": message}));
    stand.work().await;
    let waits = execution(&stand.state(&context).await, 0)["waits"].clone();
    assert_eq!((&waits["reason"], &waits["answeredBy"], &waits["until"]), (&json!("executor"), &json!("e"), &at(600)));
    let started = stand.post("/v1/event", &answer(&context, &open, "started")).await.json();
    assert_eq!(started, json!({"keptnContext": context}));
    stand.work().await;
    let one = execution(&stand.state(&context).await, 0);
    assert_eq!((&one["tasks"][0]["state"], &one["waits"]["answeredBy"]), (&json!("finished"), &Value::Null));
}

#[tokio::test]
async fn after_an_abort_everybody_is_told_what_may_still_run() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    let context = stand.deliver("dev", "cart", "cart:1").await;
    let open = stand.open("deployment").await;
    assert_eq!(stand.post("/v1/event", &answer(&context, &open, "started")).await.status, 200);
    stand.work().await;
    assert_eq!(stand.post(&format!("/v1/sequence/shop/{context}/control"), &json!({"state": "abort"})).await.status, 200);
    stand.work().await;
    let one = execution(&stand.state(&context).await, 0);
    assert_eq!((&one["tasks"][0]["state"], &one["tasks"][0]["mayRun"]), (&json!("aborted"), &json!(1)));
    // The executor learns it from the answer to its next request.
    let changed = stand.post("/v1/event", &answer(&context, &open, "status.changed")).await.json();
    let message = "the sequence was aborted: this is recorded and counts no more; end what still works on the task";
    assert_eq!(changed, json!({"keptnContext": context, "message": message}));
}
