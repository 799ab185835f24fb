//! Decisions on approvals, and the control of contexts.

use crate::stand::Stand;
use keelway_engine::sequences::Limits;
use serde_json::{Value, json};
use std::time::Duration;

const STAGES: &str = "
    - name: prod
      sequences:
        - name: delivery
          tasks:
            - name: approval
              properties: {pass: manual, warning: manual}
            - name: release
";

async fn waiting(stand: &mut Stand) -> (String, Value, String) {
    stand.apply("shop", STAGES).await;
    let context = stand.trigger("shop", "prod", "delivery", "cart").await;
    let open = stand.open("approval").await;
    let path = format!("/v1/project/shop/approval/{context}/{}", open["id"].as_str().unwrap());
    (context, open, path)
}

async fn state(stand: &Stand, context: &str) -> Value {
    stand.get(&format!("/v1/sequence/shop?keptnContext={context}")).await.json()["states"][0].clone()
}

#[tokio::test]
async fn an_approval_is_decided_once() {
    let mut stand = Stand::new();
    let (context, _, path) = waiting(&mut stand).await;
    let open = state(&stand, &context).await;
    assert_eq!((&open["phase"], &open["state"]), (&json!("waitingForApproval"), &json!("started")), "Keptn's word beside ours");
    for word in ["started", "waitingForApproval"] {
        let found = stand.get(&format!("/v1/sequence/shop?state={word}")).await.json();
        assert_eq!(found["totalCount"], 1, "{word}");
    }

    let approve = json!({"decision": "approve", "message": "looks good", "by": "ann"});
    let first = stand.post(&path, &approve).await;
    assert_eq!(first.status, 202, "{first:?}");
    assert_eq!(first.json(), json!({"keptnContext": context, "look": format!("/v1/sequence/shop?keptnContext={context}")}));
    stand.work().await;
    let again = stand.post(&path, &approve).await;
    assert_eq!((again.status, again.json()), (200, json!({"keptnContext": context, "result": "pass"})));
    let other = stand.post(&path, &json!({"decision": "decline"})).await;
    assert_eq!(other.status, 409);
    assert!(other.problem().contains("it was approved (pass) by administrator (ann) at 2026-11-20T12:00:0"), "{}", other.problem());

    let events =
        stand.get(&format!("/v1/event?project=shop&keptnContext={context}&type=sh.keptn.event.approval.finished")).await.json();
    let data = &events["events"][0]["data"];
    assert_eq!(
        (&data["result"], &data["message"], &data["approval"]["by"]),
        (&json!("pass"), &json!("looks good"), &json!("administrator (ann)"))
    );
    let release = stand.open("release").await;
    assert_eq!((&release["data"]["labels"], &release["data"]["approval"]), (&Value::Null, &Value::Null), "who decided stays there");
    assert_eq!(state(&stand, &context).await["state"], "started");
}

#[tokio::test(start_paused = true)]
async fn the_answer_waits_for_the_state() {
    let mut stand = Stand::with(Limits::default(), Duration::from_secs(5));
    let (context, _, path) = waiting(&mut stand).await;
    let answer = stand.post_while_working(&path, &json!({"decision": "approve"})).await;
    assert_eq!((answer.status, answer.json()), (200, json!({"keptnContext": context, "result": "pass"})));
    assert_eq!(stand.open("release").await["shkeptncontext"], json!(context));
}

#[tokio::test]
async fn declining_ends_the_sequence() {
    let mut stand = Stand::new();
    let (context, open, path) = waiting(&mut stand).await;
    // Two people at the same time: one of them is heard.
    assert_eq!(stand.post(&path, &json!({"decision": "decline", "by": "bob"})).await.status, 202);
    assert_eq!(stand.post(&path, &json!({"decision": "approve", "by": "ann"})).await.status, 202);
    stand.work().await;
    assert_eq!(stand.post(&path, &json!({"decision": "decline"})).await.status, 200);
    assert_eq!(stand.post(&path, &json!({"decision": "approve"})).await.status, 409);
    let state = state(&stand, &context).await;
    assert_eq!((&state["state"], &state["executions"][0]["result"]), (&json!("finished"), &json!("fail")));
    assert_eq!(stand.open("release").await, Value::Null);
    assert_eq!(open["type"], "sh.keptn.event.approval.triggered");
}

#[tokio::test]
async fn keptns_way_of_deciding() {
    let mut stand = Stand::new();
    let (context, open, _) = waiting(&mut stand).await;
    let finished = |id: &str, result: &str| {
        json!({
            "type": "sh.keptn.event.approval.finished", "source": "https://keptn.sh/cli", "id": id, "shkeptncontext": context,
            "triggeredid": open["id"], "data": {"project": "shop", "stage": "prod", "service": "cart", "result": result, "status": "succeeded"}
        })
    };
    assert_eq!(stand.post("/v1/event", &finished("a", "pass")).await.status, 202);
    assert!(
        stand.world.outgoing().iter().all(|entry| !entry.detail_type.ends_with("approval.finished")),
        "not on the bus before it counts"
    );
    stand.work().await;
    let again = stand.post("/v1/event", &finished("a", "pass")).await;
    assert_eq!((again.status, &again.json()["keptnContext"]), (200, &json!(context)));
    assert_eq!(stand.post("/v1/event", &finished("b", "fail")).await.status, 409);
    assert_eq!(stand.open("release").await["data"]["result"], "pass");
}

#[tokio::test]
async fn what_cannot_be_decided() {
    let mut stand = Stand::new();
    let (context, open, path) = waiting(&mut stand).await;
    let approve = json!({"decision": "approve"});
    let id = open["id"].as_str().unwrap();
    for (path, status, says) in [
        (format!("/v1/project/shop/approval/{context}/nonsense"), 404, "approval \"nonsense\" does not exist"),
        (format!("/v1/project/shop/approval/other/{id}"), 404, "event/triggered/approval"),
        (format!("/v1/project/shoop/approval/{context}/{id}"), 404, "did you mean \"shop\"?"),
    ] {
        let answer = stand.post(&path, &approve).await;
        assert_eq!(answer.status, status, "{path}");
        assert!(answer.problem().contains(says), "{path}: {}", answer.problem());
    }
    for (body, says) in [
        (json!({"decision": "perhaps"}), "\"approve\" or \"decline\""),
        (json!({}), "decision"),
        (json!({"decision": "approve", "who": "ann"}), "who"),
        (json!({"decision": "approve", "by": "a\u{1b}b"}), "U+001B"),
        (json!({"decision": "approve", "message": "x".repeat(2001)}), "at most 2000"),
    ] {
        let answer = stand.post(&path, &body).await;
        assert_eq!(answer.status, 400, "{body}");
        assert!(answer.problem().contains(says), "{body}: {}", answer.problem());
    }
    // Another task's trigger is no approval.
    assert_eq!(stand.post(&path, &approve).await.status, 202);
    stand.work().await;
    let release = stand.open("release").await["id"].as_str().unwrap().to_owned();
    assert_eq!(stand.post(&format!("/v1/project/shop/approval/{context}/{release}"), &approve).await.status, 404);
}

#[tokio::test]
async fn pause_resume_abort() {
    let mut stand = Stand::new();
    let (context, _, approval) = waiting(&mut stand).await;
    let path = format!("/v1/sequence/shop/{context}/control");
    for (body, status) in [(json!({}), 400), (json!({"state": "foo"}), 400), (json!({"state": "pause", "stage": "dev"}), 404)] {
        assert_eq!(stand.post(&path, &body).await.status, status, "{body}");
    }
    assert_eq!(stand.post("/v1/sequence/shop/none/control", &json!({"state": "pause"})).await.status, 404);

    for (what, expected) in [("pause", "paused"), ("pause", "paused"), ("resume", "waitingForApproval")] {
        let stage = if what == "resume" { Value::Null } else { json!("") };
        let answer = stand.post(&path, &json!({"state": what, "stage": stage})).await;
        assert_eq!((answer.status, &answer.json()["open"]), (200, &json!(1)), "{answer:?}");
        stand.work().await;
        assert_eq!(state(&stand, &context).await["phase"], expected);
    }
    assert_eq!(stand.post(&path, &json!({"state": "abort"})).await.status, 200);
    stand.work().await;
    let over = state(&stand, &context).await;
    assert_eq!((&over["state"], &over["executions"][0]["status"]), (&json!("aborted"), &json!("aborted")));
    let task = &over["executions"][0]["tasks"][0];
    assert_eq!((&task["name"], &task["state"]), (&json!("approval"), &json!("aborted")));
    let late = stand.post(&approval, &json!({"decision": "approve"})).await;
    assert_eq!(late.status, 409);
    assert!(late.problem().contains("the sequence was aborted"));
}

#[tokio::test]
async fn control_says_what_it_did() {
    let mut stand = Stand::new();
    let (context, ..) = waiting(&mut stand).await;
    let path = format!("/v1/sequence/shop/{context}/control");
    let place = format!("context {context}");
    let ask = async |stand: &mut Stand, state: &str, stage: &str| {
        let answer = stand.post(&path, &json!({"state": state, "stage": stage})).await;
        assert_eq!((answer.status, &answer.json()["keptnContext"]), (200, &json!(context)), "{state}: {answer:?}");
        stand.work().await;
        (answer.json()["open"].as_u64().unwrap(), answer.json()["detail"].as_str().unwrap().to_owned())
    };
    let open = format!("1 open sequence of {place}");
    assert_eq!(
        ask(&mut stand, "pause", "").await,
        (1, format!("{open} will be paused, and so will those that start before it is resumed"))
    );
    assert_eq!(ask(&mut stand, "abort", "").await, (1, format!("{open} will end as aborted")));
    assert_eq!(state(&stand, &context).await["state"], "aborted");
    // Nothing is open any more, and every answer says so.
    assert_eq!(ask(&mut stand, "abort", "").await, (0, format!("nothing was aborted: no sequence of {place} is open")));
    let none = format!("no sequence of {place} is open: those that start later");
    assert_eq!(ask(&mut stand, "resume", "").await, (0, format!("{none} are not paused")));
    assert_eq!(ask(&mut stand, "pause", "").await, (0, format!("{none} are paused until it is resumed")));
    let of_stage = ask(&mut stand, "abort", "prod").await;
    assert_eq!(of_stage, (0, format!("nothing was aborted: no sequence of stage prod of {place} is open")));
}

#[tokio::test]
async fn an_abort_ends_a_pause() {
    let mut stand = Stand::new();
    let (context, ..) = waiting(&mut stand).await;
    let path = format!("/v1/sequence/shop/{context}/control");
    let trigger = json!({"type": "sh.keptn.event.prod.delivery.triggered", "source": "again", "shkeptncontext": context,
        "data": {"project": "shop", "stage": "prod", "service": "cart"}});
    for stage in ["", "prod"] {
        for state in ["pause", "abort"] {
            assert_eq!(stand.post(&path, &json!({"state": state, "stage": stage})).await.status, 200);
            stand.work().await;
        }
        assert_eq!(state(&stand, &context).await["state"], "aborted");
        assert_eq!(stand.post("/v1/event", &trigger).await.status, 200);
        stand.work().await;
        assert_eq!(state(&stand, &context).await["phase"], "waitingForApproval", "a later trigger runs");
    }
}
