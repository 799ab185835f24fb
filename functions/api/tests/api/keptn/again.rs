//! Retries, evaluations and remediations.

use crate::stand::Stand;
use base64::Engine;
use keelway_domain::time::Span;
use keelway_engine::sequences::Limits;
use serde_json::{Value, json};
use std::time::Duration;

const STAGES: &str = "
    - name: dev
      sequences:
        - name: delivery
          tasks:
            - name: build
            - name: test
    - name: prod
      sequences: []
";

async fn entry(stand: &Stand, context: &str) -> Value {
    stand.state(context).await
}

/// A delivery whose second task has failed.
async fn failed(stand: &mut Stand) -> String {
    stand.apply("shop", STAGES).await;
    let context = stand.trigger("shop", "dev", "delivery", "cart").await;
    for (task, result) in [("build", "pass"), ("test", "fail")] {
        stand.execute(task, result).await;
    }
    context
}

#[tokio::test(start_paused = true)]
async fn a_retry_is_linked_with_what_it_repeats() {
    let mut stand = Stand::with(Limits::default(), Duration::from_secs(5));
    let context = failed(&mut stand).await;
    let path = format!("/v1/sequence/shop/{context}/retry");
    let old = entry(&stand, &context).await["executions"][0]["id"].clone();

    let answer = stand.post_while_working(&path, &json!({})).await;
    let told = answer.json();
    assert_eq!((answer.status, &told["retryOf"], &told["from"]), (200, &old, &json!("test")), "{answer:?}");
    assert_eq!(told["detail"], "sequence delivery of service cart in stage dev is repeated from task test on");

    let shown = entry(&stand, &context).await;
    let executions = shown["executions"].as_array().unwrap();
    assert_eq!((executions.len(), &shown["phase"]), (2, &json!("started")));
    assert_eq!((&executions[0]["retriedBy"], &executions[0]["result"]), (&told["execution"], &json!("fail")));
    assert_eq!((&executions[1]["retryOf"], &executions[1]["parent"]), (&old, &Value::Null));
    assert_eq!(executions[1]["tasks"][0]["name"], "build", "what was done before is shown");
    assert_eq!(executions[1]["tasks"][0]["result"], "pass");

    // The same request again, also with the execution named, is the same retry.
    for body in [json!({}), json!({"execution": old}), json!({"execution": old, "from": "test"})] {
        let again = stand.post_while_working(&path, &body).await;
        assert_eq!((again.status, &again.json()["execution"]), (200, &told["execution"]), "{body}");
    }
    let other = stand.post(&path, &json!({"execution": old, "from": "build"})).await;
    assert_eq!(other.status, 409);
    assert!(other.problem().contains("is repeated already, from task test on"), "{}", other.problem());
    assert_eq!(entry(&stand, &context).await["executions"].as_array().unwrap().len(), 2);
}

/// An approval reaches one execution: whoever may not give it does not begin behind it.
#[tokio::test]
async fn a_retry_behind_an_approval_needs_the_right_to_give_it() {
    const GUARDED: &str = "
    - name: prod
      sequences:
        - name: delivery
          tasks: [{name: approval, properties: {pass: manual}}, {name: deployment}]
        - name: gate
          tasks: [{name: approval, properties: {pass: manual}}]
        - name: release
          triggeredOn: [{event: prod.gate.finished}]
          tasks: [{name: deployment}]
        - name: rollback
          triggeredOn: [{event: prod.release.finished, selector: {match: {result: fail}}}]
          tasks: [{name: rollback}]
";
    let mut stand = Stand::new();
    stand.apply("shop", GUARDED).await;
    stand.token("starter", &["trigger", "read"], &["shop"]).await;
    stand.token("other", &["trigger", "approve:dev"], &["shop"]).await;
    stand.token("judge", &["trigger", "trigger:prod", "approve:prod"], &["shop"]).await;
    stand.token("gatekeeper", &["trigger", "approve:prod"], &["shop"]).await;
    for (sequence, from) in [("delivery", Some("deployment")), ("gate", None)] {
        let context = stand.like("").trigger("shop", "prod", sequence, "cart").await;
        let open = stand.get("/v1/event/triggered/approval").await.json();
        let of_context = |one: &&Value| one["shkeptncontext"].as_str() == Some(context.as_str());
        let open = open["events"].as_array().unwrap().iter().find(of_context).unwrap()["id"].as_str().unwrap().to_owned();
        let decide = format!("/v1/project/shop/approval/{context}/{open}");
        assert!(stand.post(&decide, &json!({"decision": "approve"})).await.status < 300);
        stand.work().await;
        stand.execute("deployment", if from.is_some() { "pass" } else { "fail" }).await;
        let path = format!("/v1/sequence/shop/{context}/retry");
        let body = json!({"from": from, "stage": "prod"});
        if from.is_none() {
            // What follows a failure was not what was approved.
            stand.execute("rollback", "fail").await;
            let all = stand.state(&context).await;
            let of = |name: &str| {
                let all = all["executions"].as_array().unwrap();
                all.iter().find(|one| one["sequence"] == name).unwrap()["id"].clone()
            };
            assert_eq!(stand.like("starter").post(&path, &json!({"execution": of("rollback")})).await.status, 202);
            for who in ["starter", "other"] {
                let refused = stand.like(who).post(&path, &json!({"execution": of("release")})).await;
                assert_eq!((refused.status, refused.problem().contains("approve:prod")), (403, true), "{refused:?}");
            }
            let by_hand = stand.like("gatekeeper").post(&path, &json!({"execution": of("release")})).await;
            assert_eq!(
                (by_hand.status, by_hand.problem().contains("this needs trigger:prod in project")),
                (403, true),
                "{by_hand:?}"
            );
            assert_eq!(stand.like("judge").post(&path, &json!({"execution": of("release")})).await.status, 202);
            continue;
        }
        for who in ["starter", "other"] {
            let refused = stand.like(who).post(&path, &body).await;
            assert_eq!((refused.status, refused.problem().contains("approve:prod")), (403, true), "{refused:?}");
        }
        assert_eq!(stand.like("judge").post(&path, &body).await.status, 202);
        stand.work().await;
        stand.like("").execute("deployment", "fail").await;
        // The one who was let in behind the approval once is not let in for others, and whoever begins with the approval has it
        // asked again.
        assert_eq!(stand.like("starter").post(&path, &json!({})).await.status, 403);
        assert_eq!(stand.post(&path, &json!({"from": "approval"})).await.status, 202);
        stand.work().await;
        assert_eq!(stand.get("/v1/event/triggered/approval").await.json()["events"].as_array().unwrap().len(), 1);
    }
}

/// Two deliveries of one context: which of them is meant has to be said, also if they failed in the same stage.
#[tokio::test]
async fn of_two_services_none_is_repeated_by_chance() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    for service in ["cart", "orders"] {
        let data = json!({"project": "shop", "stage": "dev", "service": service});
        let event = json!({"type": "sh.keptn.event.dev.delivery.triggered", "source": "t", "shkeptncontext": "both", "data": data});
        stand.trigger_with(event).await;
        stand.execute("build", "fail").await;
    }
    let path = "/v1/sequence/shop/both/retry";
    let refused = stand.post(path, &json!({})).await;
    let told = "for example delivery of orders in stage dev and delivery of cart in stage dev: name the execution";
    assert_eq!((refused.status, refused.problem().contains(told)), (409, true), "{refused:?}");
    let first = entry(&stand, "both").await["executions"][0]["id"].clone();
    let accepted = stand.post(path, &json!({"execution": first})).await;
    assert_eq!((accepted.status, &accepted.json()["retryOf"]), (202, &first), "{accepted:?}");
}

#[tokio::test]
async fn what_cannot_be_repeated() {
    let mut stand = Stand::new();
    let context = failed(&mut stand).await;
    let path = format!("/v1/sequence/shop/{context}/retry");
    for (path, body, status, says) in [
        ("/v1/sequence/shop/nobody/retry", json!({}), 404, "context"),
        ("/v1/sequence/shoop/nobody/retry", json!({}), 404, "did you mean \"shop\"?"),
        (path.as_str(), json!({"execution": "2222222222222"}), 404, "execution"),
        (path.as_str(), json!({"stage": "dve"}), 404, "dev"),
        (path.as_str(), json!({"from": "tset"}), 404, "test"),
        (path.as_str(), json!({"stage": "prod"}), 409, "nothing failed"),
        (path.as_str(), json!({"task": "test"}), 400, "task"),
    ] {
        let answer = stand.post(path, &body).await;
        assert_eq!(answer.status, status, "{body} {answer:?}");
        assert!(answer.problem().contains(says), "{body}: {}", answer.problem());
    }
    let accepted = stand.post(&path, &json!({})).await;
    assert_eq!(
        (accepted.status, accepted.json()["look"].clone()),
        (202, json!(format!("/v1/sequence/shop?keptnContext={context}")))
    );
}

#[tokio::test]
async fn an_evaluation_is_triggered_by_its_window() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    stand.trigger("shop", "dev", "delivery", "cart").await;
    let path = "/v1/project/shop/stage/prod/service/cart/evaluation";
    let body =
        json!({"start": "2026-11-20T10:00:00", "timeframe": "10m", "labels": {"who": "me"}, "gitcommitid": "abc", "id": "mine"});
    let first = stand.post(path, &body).await;
    assert_eq!(first.status, 200, "{first:?}");
    let context = first.json()["keptnContext"].as_str().unwrap().to_owned();
    stand.work().await;
    let open = stand.open("evaluation").await;
    assert_eq!((&open["shkeptncontext"], &open["gitcommitid"]), (&json!(context), &json!("abc")));
    let window = json!({"start": "2026-11-20T10:00:00.000Z", "end": "2026-11-20T10:10:00.000Z", "timeframe": "10m"});
    assert_eq!((&open["data"]["evaluation"], &open["data"]["labels"]), (&window, &json!({"who": "me"})));

    assert_eq!(stand.post(path, &body).await.json()["keptnContext"], json!(context), "the same request again");
    stand.work().await;
    assert_eq!(entry(&stand, &context).await["executions"].as_array().unwrap().len(), 1);
    let other = json!({"start": "2026-11-20T10:00:00", "timeframe": "11m", "id": "mine"});
    assert_eq!(stand.post(path, &other).await.status, 409);
    assert_eq!(stand.post(path, &json!({})).await.status, 200, "the last five minutes");
}

#[tokio::test]
async fn what_cannot_be_evaluated() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    stand.trigger("shop", "dev", "delivery", "cart").await;
    let path = |stage: &str, service: &str| format!("/v1/project/shop/stage/{stage}/service/{service}/evaluation");
    for (path, body, status, says) in [
        (path("prdo", "cart"), json!({}), 404, "did you mean \"prod\"?"),
        (path("prod", "cat"), json!({}), 400, "project shop has cart"),
        (path("prod", "cart"), json!({"end": "2026-11-20T10:00:00Z"}), 400, "start: is missing"),
        (path("prod", "cart"), json!({"start": "2026-11-20T10:00:00Z"}), 400, "end: is missing"),
        (path("prod", "cart"), json!({"start": "2026-11-20T10:00:00Z", "end": "2026-11-20T10:00:30Z"}), 400, "at least 1m"),
        (path("prod", "cart"), json!({"timeframe": "soon"}), 400, "timeframe"),
        (path("prod", "cart"), json!({"labels": {"n": 1}}), 400, "labels"),
        (path("prod", "cart"), json!({"time": "now"}), 400, "time"),
        (path("prod", "cart"), json!({"id": "x".repeat(201)}), 400, "id"),
    ] {
        let answer = stand.post(&path, &body).await;
        assert_eq!(answer.status, status, "{path} {body} {answer:?}");
        assert!(answer.problem().contains(says), "{body}: {}", answer.problem());
    }
}

#[tokio::test]
async fn a_remediation_is_a_resource_that_is_read() {
    let mut stand = Stand::new();
    stand
        .apply(
            "shop",
            &STAGES.replace("sequences: []", "sequences: [{name: remediation, tasks: [{name: get-action}, {name: action}]}]"),
        )
        .await;
    let text = "\
apiVersion: spec.keptn.sh/0.1.4
kind: Remediation
metadata: {name: r, annotations: {keelway.dev/stage: prod}}
spec: {remediations: [{problemType: default, actionsOnOpen: [{action: page}]}]}
";
    let apply = async |path: &str, text: &str| stand.post_text(path, "text/yaml", text.to_owned()).await;
    assert_eq!(apply("/v1/apply", text).await.status, 400, "nothing says for which project");
    let applied = apply("/v1/apply?project=shop", text).await;
    assert_eq!((applied.status, applied.json()["applied"][0]["changed"].clone()), (200, json!(true)), "{applied:?}");
    assert_eq!(apply("/v1/apply?project=shop", text).await.json()["applied"][0]["changed"], json!(false));
    assert_eq!(apply("/v1/apply?project=shop", &text.replace("stage: prod", "stage: prdo")).await.status, 404);
    assert_eq!(stand.get("/v1/project/shop/stage/prod/resource/remediation.yaml").await.status, 200);

    stand.trigger("shop", "prod", "remediation", "cart").await;
    assert_eq!(stand.open("action").await["data"]["action"]["action"], "page");

    // As a resource of the service, in base64, it comes before that of the stage.
    let resource = |text: &str| json!({"resourceContent": base64::engine::general_purpose::STANDARD.encode(text)});
    let path = "/v1/project/shop/stage/prod/service/cart/resource/remediation.yaml";
    let refused = stand.put(path, &resource(&text.replace("action: page", "name: page"))).await;
    assert_eq!(
        (refused.status, refused.json()["findings"][0]["path"].clone()),
        (400, json!("spec.remediations[0].actionsOnOpen[0].action"))
    );
    assert_eq!(stand.put(path, &resource(&text.replace("page", "scale"))).await.status, 200);
    stand.execute("action", "fail").await;
    stand.trigger("shop", "prod", "remediation", "cart").await;
    assert_eq!(stand.open("action").await["data"]["action"]["action"], "scale");

    // Without any, the task goes to an executor.
    for path in [path, "/v1/project/shop/stage/prod/resource/remediation.yaml"] {
        assert_eq!(stand.delete(path).await.status, 200);
    }
    stand.execute("action", "pass").await;
    stand.trigger("shop", "prod", "remediation", "cart").await;
    assert_eq!(stand.open("get-action").await["data"]["stage"], "prod");
}

#[tokio::test]
async fn the_queue_tells_order_and_holder() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    let mut contexts = vec![];
    for _ in 0..3 {
        contexts.push(stand.trigger("shop", "dev", "delivery", "cart").await);
        // Those of one millisecond stand in the order of their ids.
        let now = stand.world.now() + Span(1);
        stand.world.core().now = now;
    }
    stand.trigger("shop", "dev", "delivery", "other").await;
    let told = stand.get("/v1/project/shop/queue").await.json();
    let queues = told["items"].as_array().unwrap();
    assert_eq!(queues.len(), 1, "{told}");
    assert_eq!(
        (&queues[0]["holder"]["shkeptncontext"], &queues[0]["holder"]["waits"]["task"]),
        (&json!(contexts[0]), &json!("build"))
    );
    let waiting: Vec<(&Value, &Value)> =
        queues[0]["waiting"].as_array().unwrap().iter().map(|x| (&x["position"], &x["shkeptncontext"])).collect();
    assert_eq!(waiting, [(&json!(1), &json!(contexts[1])), (&json!(2), &json!(contexts[2]))]);
    assert_eq!(stand.get("/v1/project/shop/queue?stage=prod").await.json()["items"], json!([]));
    assert_eq!(stand.get("/v1/project/shop/queue?stage=prdo").await.status, 404);
    assert_eq!(stand.get("/v1/sequence/shop?labels==x").await.status, 400);
}

/// What the engine could not read would be accepted and do nothing.
#[tokio::test]
async fn an_evaluation_that_cannot_be_read_is_refused() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    assert_eq!(stand.post("/v1/project/shop/service", &json!({"serviceName": "cart"})).await.status, 200);
    let path = "/v1/project/shop/stage/prod/service/cart/evaluation";
    for body in [json!({"gitcommitid": "x".repeat(5000)}), json!({"gitcommitid": "a\u{0}b"}), json!({"id": "a\u{0}b"})] {
        let refused = stand.post(path, &body).await;
        assert_eq!(refused.status, 400, "{refused:?}");
    }
    assert!(stand.published().is_empty(), "nothing is passed on");
    assert_eq!(stand.post(path, &json!({"gitcommitid": "abc"})).await.status, 200);
    stand.work().await;
    assert_eq!(stand.open("evaluation").await["gitcommitid"], "abc");
}
