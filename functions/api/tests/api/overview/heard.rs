//! Whether the executor of a task is heard of: what it says is in the history, and whoever looks reads it there.

use crate::deployments::versions::{ask, claim, push, say, stand};
use crate::stand::Stand;
use keelway_domain::time::Span;
use serde_json::{Value, json};

const STAGES: &str = "
    - name: dev
      sequences:
        - name: delivery
          tasks: [{name: deployment}]
";

/// The executor of `cart` in `dev`, which sends events about the open task.
struct Executor {
    stand: Stand,
    open: Value,
}

impl Executor {
    async fn new() -> Self {
        let mut stand = Stand::new();
        stand.apply("shop", STAGES).await;
        stand.deliver("dev", "cart", "cart:1").await;
        let open = stand.open("deployment").await;
        Self { stand, open }
    }

    async fn says(&mut self, kind: &str, source: &str, more: Value) {
        let mut data = json!({"project": "shop", "stage": "dev", "service": "cart", "status": "succeeded"});
        data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let event = json!({
            "type": format!("sh.keptn.event.deployment.{kind}"), "source": source, "data": data,
            "shkeptncontext": self.open["shkeptncontext"], "triggeredid": self.open["id"],
        });
        let answer = self.stand.post("/v1/event", &event).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        self.stand.work().await;
    }

    fn pass(&self, minutes: i64) {
        self.stand.world.pass(Span::minutes(minutes));
    }

    /// What the views say of it: the delivery, the executions, the open ones, the environment and the queue all say the same.
    async fn waits(&self) -> Value {
        let context = self.open["shkeptncontext"].as_str().unwrap();
        let waits = self.stand.state(context).await["executions"][0]["waits"].clone();
        let get = async |path: &str| self.stand.get(path).await.json();
        let listed = get(&format!("/v1/sequence-execution?project=shop&keptnContext={context}")).await;
        let open = get("/v1/sequence-execution?project=shop&open=true").await;
        let environments = get("/v1/project/shop/environment").await;
        for same in [
            &listed["sequenceExecutions"][0]["waits"],
            &open["sequenceExecutions"][0]["waits"],
            &environments["items"][0]["coming"][0]["waits"],
        ] {
            assert_eq!(same, &waits, "{listed} {open} {environments}");
        }
        json!({"heard": waits["heard"], "expected": waits["expected"], "queued": waits["queued"]})
    }

    /// Its line in the list of what waits, if it has one: the group and the message.
    async fn line(&self) -> Option<(String, String)> {
        let page = self.stand.get("/v1/wait").await.json();
        let item = page["items"].get(0)?;
        Some(["group", "message"].map(|name| item[name].as_str().unwrap_or_default().to_owned()).into())
    }
}

/// A time of the world's clock, so many minutes after noon.
fn at(minutes: i64) -> Value {
    json!(format!("2026-11-20T{}:{:02}:00.000Z", 12 + minutes / 60, minutes % 60))
}

fn group(line: Option<(String, String)>) -> String {
    line.map(|(group, _)| group).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn who_promises_heartbeats_is_missed_after_three_of_them() {
    let mut of = Executor::new().await;
    of.says("started", "e", json!({"heartbeat": "2m"})).await;
    assert_eq!(of.waits().await, json!({"heard": null, "expected": at(6), "queued": null}));
    of.pass(5);
    assert_eq!(of.line().await, None);
    of.says("status.changed", "e", json!({"heartbeat": "2m", "message": "runs"})).await;
    assert_eq!(of.waits().await, json!({"heard": at(5), "expected": at(11), "queued": null}));
    // However long it takes, as long as it is heard of.
    for _ in 0..40 {
        of.pass(2);
        of.says("status.changed", "e", json!({"heartbeat": "2m", "message": "runs"})).await;
        assert_eq!(of.line().await, None);
    }
    assert_eq!(of.waits().await["heard"], at(85));
    of.pass(6);
    let line = of.line().await;
    assert_eq!(line, Some(("failing".into(), "deployment has begun, and nothing is heard of it any more".into())));
    // It was only slow.
    of.says("status.changed", "e", json!({"message": "goes on"})).await;
    assert_eq!(of.waits().await, json!({"heard": at(91), "expected": at(97), "queued": null}), "the promise stays");
    assert_eq!(of.line().await, None);
    of.says("finished", "e", json!({"result": "pass"})).await;
    assert_eq!(of.line().await, None);
}

#[tokio::test(start_paused = true)]
async fn who_promises_nothing_is_given_an_hour_from_the_last_word() {
    let mut of = Executor::new().await;
    of.says("started", "e", json!({})).await;
    of.pass(50);
    of.says("status.changed", "e", json!({"message": "half of it"})).await;
    assert_eq!(of.waits().await, json!({"heard": at(50), "expected": null, "queued": null}));
    of.pass(59);
    assert_eq!(of.line().await, None);
    of.pass(1);
    assert_eq!(group(of.line().await), "failing");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_waits_for_a_place_is_told_as_that() {
    let mut of = Executor::new().await;
    of.says("started", "e", json!({"heartbeat": "2m", "queued": true})).await;
    assert_eq!(of.waits().await, json!({"heard": null, "expected": at(6), "queued": true}));
    assert_eq!(of.line().await, None, "it may have one in a moment");
    of.pass(1);
    let line = of.line().await;
    assert_eq!(line, Some(("waiting".into(), "deployment is claimed, and waits for a place at its executor".into())));
    // It has one: also before a minute is over, this is seen at once.
    of.says("status.changed", "e", json!({"heartbeat": "2m", "message": "runs"})).await;
    assert_eq!(of.waits().await, json!({"heard": at(1), "expected": at(7), "queued": null}));
    assert_eq!(of.line().await, None);
}

#[tokio::test(start_paused = true)]
async fn of_two_executors_the_silent_one_is_told_until_it_has_finished() {
    let mut of = Executor::new().await;
    of.says("started", "e", json!({"heartbeat": "2m", "queued": true})).await;
    of.says("started", "f", json!({"heartbeat": "5m"})).await;
    assert_eq!(of.waits().await["queued"], Value::Null, "one of them works");
    of.pass(5);
    of.says("status.changed", "f", json!({"heartbeat": "5m"})).await;
    of.pass(1);
    assert_eq!(of.waits().await, json!({"heard": null, "expected": at(6), "queued": null}));
    assert_eq!(group(of.line().await), "failing");
    of.says("finished", "e", json!({"result": "pass"})).await;
    assert_eq!(of.waits().await, json!({"heard": at(5), "expected": at(20), "queued": null}));
    assert_eq!(of.line().await, None);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_heartbeat_promises_nothing() {
    let mut of = Executor::new().await;
    of.says("started", "e", json!({"heartbeat": "often", "queued": "yes"})).await;
    assert_eq!(of.waits().await, json!({"heard": null, "expected": null, "queued": null}));
    of.says("status.changed", "e", json!({"heartbeat": "0s"})).await;
    of.pass(59);
    assert_eq!(of.line().await, None);
}

/// Whoever waits for a deployer to stop wants to know whether it is there at all.
#[tokio::test(start_paused = true)]
async fn what_waits_for_a_deployer_says_when_that_was_heard_of() {
    let mut stand = stand().await;
    push(&mut stand, 2).await;
    let token = claim(&stand, 2).await["token"].as_str().unwrap().to_owned();
    stand.world.pass(Span::seconds(20));
    let heard = stand.world.now().rfc3339();
    let beat = say(&stand, "/v1/deployments/shop:cart-2/heartbeat", &token, &json!({"running": true, "lease": "5m"})).await;
    assert_eq!(beat.status, 200, "{beat:?}");
    stand.work().await;
    let newer = ask(&mut stand, "instantiate", &json!({"latest": true, "force": true, "supersede": true})).await;
    assert_eq!(newer.status, 200, "{newer:?}");
    stand.world.pass(Span::seconds(30));
    let page = stand.get("/v1/wait").await.json();
    let item = page["items"].as_array().unwrap().iter().find(|item| item["reason"] == "AwaitingCancellation").unwrap();
    assert_eq!((&item["number"], &item["by"], &item["heard"]), (&json!(2), &json!("ci"), &json!(heard)), "{item}");
    let finish = say(&stand, "/v1/deployments/shop:cart-2/finish", &token, &json!({"exitCode": 143})).await;
    assert_eq!(finish.status, 200, "{finish:?}");
    stand.work().await;
    let page = stand.get("/v1/wait").await.json();
    assert!(page["items"].as_array().unwrap().iter().all(|item| item["heard"].is_null()), "nobody is waited for: {page}");
}
