//! Batches of CloudEvents: all of one are checked before any is passed on.

use crate::stand::{Answer, Stand, TOKEN};
use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

const STAGES: &str = "
    - name: dev
      sequences:
        - name: delivery
          tasks: [{name: deployment}]
    - name: prod
      sequences:
        - name: release
          tasks: [{name: approval, properties: {pass: manual, warning: manual}}]
";

async fn stand() -> Stand {
    let stand = Stand::new();
    stand.apply("shop", STAGES).await;
    stand
}

fn event(service: &str, more: Value) -> Value {
    let data = json!({"project": "shop", "stage": "dev", "service": service});
    let mut event = json!({"type": "sh.keptn.event.dev.delivery.triggered", "source": "ci", "data": data});
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event
}

async fn send(stand: &Stand, body: &Value, key: Option<&str>) -> Answer {
    let request = Request::post("/v1/event")
        .header("x-token", TOKEN)
        .header("content-type", "application/cloudevents-batch+json; charset=utf-8");
    let request = key.into_iter().fold(request, |request, key| request.header("idempotency-key", key));
    stand.request(request.body(Body::from(body.to_string())).unwrap()).await
}

#[tokio::test]
async fn each_event_of_a_batch_is_answered_in_order() {
    let mut stand = stand().await;
    let own = json!({"id": "e2", "shkeptncontext": "c2"});
    let answer = send(&stand, &json!([event("a", json!({})), event("b", own)]), None).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let events = answer.json()["events"].clone();
    assert_eq!((events.as_array().unwrap().len(), &events[1]), (2, &json!({"id": "e2", "keptnContext": "c2"})));
    assert!(events[0]["id"].is_string() && events[0]["keptnContext"].is_string(), "{events}");
    stand.work().await;
    let open = stand.get("/v1/event/triggered/deployment").await.json();
    assert_eq!(open["totalCount"], 2, "{open}");
    let empty = send(&stand, &json!([]), None).await;
    assert_eq!((empty.status, empty.json()), (200, json!({"events": []})));
    let audit = stand.get("/v1/audit?action=trigger").await.json();
    assert_eq!(audit["totalCount"], 1, "{audit}");
    let what = audit["items"][0]["what"].as_str().unwrap();
    assert!(what.contains("triggered delivery of a in dev (") && what.contains("delivery of b in dev (c2)"), "{what}");
}

#[tokio::test]
async fn if_one_is_refused_none_is_passed_on_and_each_is_named() {
    let mut stand = stand().await;
    let before = stand.published().len();
    let wrong = json!([
        event("a", json!({})),
        event(
            "b",
            json!({"type": "sh.keptn.event.nowhere.delivery.triggered", "data": {"project": "shop", "stage": "nowhere", "service": "b"}})
        ),
        event("c", json!({"type": 7})),
        "no event"
    ]);
    let answer = send(&stand, &wrong, None).await;
    assert_eq!((answer.status, stand.published().len()), (400, before), "{answer:?}");
    let errors = answer.json()["errors"].clone();
    let told: Vec<_> = errors.as_array().unwrap().iter().map(|error| (&error["field"], &error["code"])).collect();
    let expected = [(json!("[1]"), json!("NotFound")), (json!("[2]"), json!("Invalid")), (json!("[3]"), json!("Invalid"))];
    assert_eq!(told, expected.iter().map(|(field, code)| (field, code)).collect::<Vec<_>>(), "{errors}");
    assert!(answer.problem().starts_with("none of the events was passed on: [1]: "), "{answer:?}");
    // Their status, if they have the same one.
    let missing = send(&stand, &json!([event("a", json!({})), wrong[1].clone()]), None).await;
    assert_eq!((missing.status, stand.published().len()), (404, before), "{missing:?}");
    assert_eq!(stand.get("/v1/audit?action=trigger").await.json()["totalCount"], 0);
    stand.work().await;
    assert_eq!(stand.get("/v1/event/triggered/deployment").await.json()["totalCount"], 0);
}

#[tokio::test]
async fn a_batch_is_bounded_and_decides_no_approval() {
    let mut stand = stand().await;
    let many = send(&stand, &json!(vec![event("a", json!({})); 51]), None).await;
    assert_eq!((many.status, many.problem()), (413, "the batch has 51 events: at most 50 are taken at once".to_owned()));
    assert_eq!(send(&stand, &json!(vec![event("a", json!({})); 50]), None).await.status, 200);
    let large = send(&stand, &json!([event("a", json!({"data": {"x": "y".repeat(300_000)}}))]), None).await;
    assert_eq!(large.status, 400, "without a project, it is refused before its size counts: {large:?}");
    let data = json!({"project": "shop", "stage": "dev", "service": "a", "x": "y".repeat(300_000)});
    assert_eq!(send(&stand, &json!([event("a", json!({"data": data}))]), None).await.status, 413);
    let object = send(&stand, &event("a", json!({})), None).await;
    assert_eq!((object.status, object.problem()), (400, "body: is no batch: send an array of events".to_owned()));
    stand.trigger("shop", "prod", "release", "svc").await;
    let open = stand.open("approval").await;
    let data = json!({"project": "shop", "stage": "prod", "service": "svc", "result": "pass", "status": "succeeded"});
    let decision = json!({"type": "sh.keptn.event.approval.finished", "source": "ci", "triggeredid": open["id"],
        "shkeptncontext": open["shkeptncontext"], "data": data});
    let answer = send(&stand, &json!([decision]), None).await;
    assert!(answer.status == 400 && answer.problem().contains("in a request of its own"), "{answer:?}");
    // Who may not trigger, may not in a batch.
    stand.token("worker", &["execute:deployment"], &["shop"]).await;
    let token = stand.secret_of("worker");
    let request = Request::post("/v1/event").header("x-token", token).header("content-type", "application/cloudevents-batch+json");
    let answer = stand.request(request.body(Body::from(json!([event("a", json!({}))]).to_string())).unwrap()).await;
    assert_eq!((answer.status, &answer.json()["errors"][0]["code"]), (403, &json!("Forbidden")), "{answer:?}");
}

#[tokio::test]
async fn with_a_key_a_batch_and_an_event_take_effect_once() {
    let mut stand = stand().await;
    let two = json!([event("a", json!({})), event("b", json!({}))]);
    let first = send(&stand, &two, Some("k")).await;
    assert_eq!(first.status, 200, "{first:?}");
    stand.work().await;
    let again = send(&stand, &two, Some("k")).await;
    assert_eq!((again.status, &again.text), (200, &first.text));
    stand.work().await;
    let open = stand.get("/v1/event/triggered/deployment").await.json();
    assert_eq!(open["totalCount"], 2, "{open}");
    assert_eq!(send(&stand, &json!([event("c", json!({}))]), Some("k")).await.status, 422);
    // An event alone is remembered, too: without an id it would be another one each time.
    let one = |key: &'static str| {
        let request = Request::post("/v1/event").header("x-token", TOKEN).header("content-type", "application/json");
        stand.app_request(request.header("idempotency-key", key).body(Body::from(event("d", json!({})).to_string())).unwrap())
    };
    let (first, again, other) = (one("o").await, one("o").await, one("p").await);
    assert_eq!((first.status, &again.text), (200, &first.text), "{first:?}");
    assert_ne!(other.text, first.text);
}

/// If the function stops in between, the same request has the same ids.
#[tokio::test]
async fn an_event_without_id_has_the_one_of_its_request() {
    let stand = stand().await;
    let before = stand.published().len();
    stand.world.core().faults = Some(fails_after_publishing());
    let two = json!([event("a", json!({})), event("b", json!({}))]);
    assert_eq!(send(&stand, &two, Some("k")).await.status, 503);
    stand.world.core().faults = None;
    assert_eq!(send(&stand, &two, Some("k")).await.status, 200);
    let published = stand.published().split_off(before);
    let ids: std::collections::BTreeSet<String> = published.iter().map(|event| event["id"].to_string()).collect();
    assert_eq!(ids.len(), 2, "{published:?}");
}

/// The answer to the first publication is lost.
fn fails_after_publishing() -> keelway_world::core::Faults {
    use keelway_world::core::{Fault, Method};
    Box::new(|_, method| if method == Method::Publish { Fault::AnswerLost } else { Fault::None })
}

/// One of the two would be taken and then not count.
#[tokio::test]
async fn two_events_of_a_batch_do_not_contradict_each_other() {
    let mut stand = Stand::new();
    stand.apply("shop", "    - name: dev\n      sequences: [{name: delivery, tasks: [{name: build}]}]\n").await;
    let one = |service: &str, context: &str| {
        json!({"type": "sh.keptn.event.dev.delivery.triggered", "source": "ci", "id": "1", "shkeptncontext": context,
            "data": {"project": "shop", "stage": "dev", "service": service}})
    };
    let batch = async |stand: &Stand, events: Value| {
        stand.post_text("/v1/event", "application/cloudevents-batch+json", events.to_string()).await
    };
    let refused = batch(&stand, json!([one("cart", "a"), one("orders", "a")])).await;
    assert_eq!((refused.status, refused.json()["errors"][0]["field"].clone()), (409, json!("[1]")), "{refused:?}");
    assert!(refused.problem().contains("[0] has source"), "{refused:?}");
    assert!(stand.published().is_empty());
    // The same one twice is one, and in another context it is another one.
    let taken = batch(&stand, json!([one("cart", "a"), one("cart", "a"), one("orders", "b")])).await;
    assert_eq!(taken.status, 200, "{taken:?}");
    stand.work().await;
    assert_eq!(stand.get("/v1/sequence/shop").await.json()["totalCount"], 2);
}
