//! Sequences, events and open triggers, and how their pages follow each other.

use crate::stand::Stand;
use keelway_domain::time::Span;
use keelway_wire::http::{EventPage, SequencePage};
use serde_json::{Value, json};

const STAGES: &str = "
    - name: dev
      sequences:
        - name: delivery
          tasks: [{name: deployment}, {name: test}]
    - name: prod
      sequences:
        - name: delivery
          triggeredOn: [{event: dev.delivery.finished}]
          tasks: [{name: release}]
";

fn types(page: &Value) -> Vec<String> {
    let short = |event: &Value| event["type"].as_str().unwrap().trim_start_matches("sh.keptn.event.").to_owned();
    page["events"].as_array().unwrap().iter().map(short).collect()
}

#[tokio::test]
async fn a_sequence_from_its_trigger_to_its_end() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    let context = stand.trigger("shop", "dev", "delivery", "cart").await;
    let path = format!("/v1/sequence/shop?keptnContext={context}");
    let state = stand.get(&path).await.json()["states"][0].clone();
    assert_eq!((&state["state"], &state["name"], &state["service"]), (&json!("started"), &json!("delivery"), &json!("cart")));
    let open = stand.open("deployment").await;
    assert_eq!(state["stages"][0]["state"], "triggered");
    assert_eq!(state["stages"][0]["latestEvent"]["id"], open["id"]);
    assert_eq!(state["stages"][0]["latestEvent"]["type"], "sh.keptn.event.deployment.triggered");
    let tasks = json!([{"name": "deployment", "state": "triggered", "triggeredAt": "2026-11-20T12:00:00.000Z"}]);
    assert_eq!(state["executions"][0]["tasks"], tasks);
    assert_eq!(state["executions"][0]["phase"], "running");

    // A second one of the same service waits.
    let second = stand.trigger("shop", "dev", "delivery", "cart").await;
    let states = stand.get("/v1/sequence/shop?state=waiting").await.json();
    assert_eq!((&states["states"][0]["shkeptncontext"], &states["totalCount"]), (&json!(second), &json!(1)));
    assert_eq!(states["states"][0]["stages"][0]["state"], "waiting");

    stand.execute("deployment", "pass").await;
    stand.execute("test", "pass").await;
    let state = stand.get(&path).await.json()["states"][0].clone();
    assert_eq!(state["state"], "started");
    let executions = state["executions"].as_array().unwrap();
    assert_eq!(
        (&executions[0]["state"], &executions[0]["result"], &executions[0]["status"]),
        (&json!("finished"), &json!("pass"), &json!("succeeded"))
    );
    assert_eq!(executions[1]["parent"], executions[0]["id"]);
    assert_eq!((&state["stages"][0]["state"], &state["stages"][1]["state"]), (&json!("succeeded"), &json!("triggered")));
    assert_eq!(state["stages"][0]["latestEvent"]["type"], "sh.keptn.event.dev.delivery.finished");

    stand.execute("release", "fail").await;
    let page = stand.get(&path).await;
    let state = page.json()["states"][0].clone();
    assert_eq!((&state["state"], &state["executions"][1]["result"]), (&json!("finished"), &json!("fail")));
    assert_eq!(state["stages"][1]["latestFailedEvent"]["type"], "sh.keptn.event.release.finished");
    // What clients are told to read is what is there.
    let typed: SequencePage = serde_json::from_value(page.json()).unwrap();
    assert_eq!(serde_json::to_value(&typed).unwrap(), page.json());
}

#[tokio::test]
async fn the_events_of_a_context_in_the_order_they_happened() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    let context = stand.trigger("shop", "dev", "delivery", "cart").await;
    stand.execute("deployment", "pass").await;
    stand.execute("test", "pass").await;
    let all = stand.get(&format!("/v1/event?keptnContext={context}&project=shop")).await.json();
    let told = [
        "dev.delivery.triggered",
        "dev.delivery.started",
        "deployment.triggered",
        "deployment.started",
        "deployment.finished",
        "test.triggered",
        "test.started",
        "test.finished",
        "dev.delivery.finished",
        "prod.delivery.triggered",
        "prod.delivery.started",
        "release.triggered",
    ];
    assert_eq!(types(&all), told);
    assert_eq!(all["nextPageKey"], "0");
    let typed: EventPage = serde_json::from_value(all.clone()).unwrap();
    assert_eq!(typed.total_count, 12);

    // Without the project, and filtered.
    let tests = stand.get(&format!("/v1/event?keptnContext={context}&type=sh.keptn.event.test.finished")).await.json();
    assert_eq!(types(&tests), ["test.finished"]);
    assert_eq!(types(&stand.get("/v1/event?project=shop&stage=prod").await.json()).len(), 3);
    assert_eq!(stand.get("/v1/event").await.status, 400);
    assert_eq!(stand.get("/v1/event?project=nope").await.status, 404);
    assert_eq!(stand.get("/v1/event?project=shop&fromTime=yesterday").await.status, 400);

    // Page by page: each exactly once.
    stand.world.pass(Span::seconds(60));
    let (mut seen, mut key) = (vec![], "0".to_owned());
    loop {
        let page = stand.get(&format!("/v1/event?keptnContext={context}&project=shop&pageSize=2&nextPageKey={key}")).await.json();
        assert!(page["totalCount"].as_u64().unwrap() <= 2);
        seen.extend(types(&page));
        key = page["nextPageKey"].as_str().unwrap().to_owned();
        if key == "0" {
            break;
        }
    }
    assert_eq!(seen, told);
}

#[tokio::test]
async fn what_did_not_count_is_shown_with_the_reason() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    let context = stand.trigger("shop", "dev", "delivery", "cart").await;
    let open = stand.open("deployment").await;
    stand.execute("deployment", "pass").await;
    let late = json!({
        "type": "sh.keptn.event.deployment.started", "source": "late", "id": "l", "shkeptncontext": context, "triggeredid": open["id"],
        "data": {"project": "shop", "stage": "dev", "service": "cart"}
    });
    assert_eq!(stand.post("/v1/event", &late).await.status, 200);
    stand.work().await;
    let all = stand.get(&format!("/v1/event?keptnContext={context}&project=shop&source=late")).await.json();
    assert_eq!(all["events"][0]["verdict"], "stale");
}

#[tokio::test]
async fn contexts_newest_first_page_by_page() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    let mut contexts = vec![];
    for n in 0..5 {
        contexts.push(stand.trigger("shop", "dev", "delivery", &format!("s{n}")).await);
        // Two of them in the same millisecond.
        stand.world.pass(Span(if n == 2 { 0 } else { 1 }));
    }
    let (mut seen, mut key) = (vec![], 0);
    loop {
        let page = stand.get(&format!("/v1/sequence/shop?pageSize=1&nextPageKey={key}")).await.json();
        seen.extend(page["states"].as_array().unwrap().iter().map(|state| state["shkeptncontext"].as_str().unwrap().to_owned()));
        key = page["nextPageKey"].as_i64().unwrap();
        if key == 0 {
            break;
        }
    }
    let mut sorted = seen.clone();
    sorted.sort();
    let mut expected = contexts.clone();
    expected.sort();
    assert_eq!(sorted, expected, "each exactly once");
    assert_eq!((&seen[0], &seen[4]), (&contexts[4], &contexts[0]));

    let both = stand.get(&format!("/v1/sequence/shop?keptnContext={},{}", contexts[0], contexts[4])).await.json();
    assert_eq!((&both["states"][0]["shkeptncontext"], &both["totalCount"]), (&json!(contexts[4]), &json!(2)));
    assert_eq!(stand.get("/v1/sequence/shop?name=other").await.json()["totalCount"], 0);
    assert_eq!(stand.get("/v1/sequence/shop?state=broken").await.status, 400);
    assert_eq!(stand.get("/v1/sequence/none").await.status, 404);
    assert_eq!(stand.get("/v1/sequence/shop?nextPageKey=x").await.status, 400);

    // Events without a context: contexts newest first, and a page ends with one.
    let page = stand.get("/v1/event?project=shop&pageSize=3").await.json();
    assert_eq!(types(&page), ["dev.delivery.triggered", "dev.delivery.started", "deployment.triggered"]);
    assert_eq!(page["events"][0]["shkeptncontext"], contexts[4]);
    let next = page["nextPageKey"].as_str().unwrap();
    let page = stand.get(&format!("/v1/event?project=shop&pageSize=3&nextPageKey={next}")).await.json();
    assert_ne!(page["events"][0]["shkeptncontext"], contexts[4]);
}

#[tokio::test]
async fn between_two_stages_nothing_looks_finished() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    let context = stand.trigger("shop", "dev", "delivery", "cart").await;
    stand.execute("deployment", "pass").await;
    let open = stand.open("test").await;
    for kind in ["started", "finished"] {
        let event = json!({
            "type": format!("sh.keptn.event.test.{kind}"), "source": "e", "id": kind, "shkeptncontext": context, "triggeredid": open["id"],
            "data": {"project": "shop", "stage": "dev", "service": "cart", "result": "pass", "status": "succeeded"}
        });
        assert_eq!(stand.post("/v1/event", &event).await.status, 200);
    }
    // The answers are handled; the follow-up is on its way.
    let mut steps = 0;
    loop {
        let state = stand.get(&format!("/v1/sequence/shop?keptnContext={context}")).await.json()["states"][0].clone();
        assert!(state["state"] == "started" || state["state"] == "waiting", "step {steps}: {state}");
        if !stand.step().await {
            break;
        }
        steps += 1;
    }
    assert!(steps >= 1, "the follow-up");
    stand.execute("release", "pass").await;
    let state = stand.get(&format!("/v1/sequence/shop?keptnContext={context}")).await.json()["states"][0].clone();
    assert_eq!(state["state"], "finished");
}
