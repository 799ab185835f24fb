//! `POST /v1/event` as Keptn's gateway, and what holds for every request: tokens, problem details, limits.

use crate::stand::{Stand, TOKEN};
use axum::body::Body;
use axum::http::{Method, Request};
use keelway_engine::sequences::Limits;
use serde_json::{Value, json};

const STAGES: &str = "
    - name: dev
      sequences:
        - name: delivery
          tasks: [{name: deployment}]
        - name: remediation
          triggeredOn: [{event: dev.problem.open}]
          tasks: [{name: get-action}]
";

/// An event with the scope of project p, its data merged with `more`; a member that is null is taken out.
fn event(ty: &str, attributes: Value, more: Value) -> Value {
    let mut event = json!({"type": ty, "source": "client", "data": {"project": "p", "stage": "dev", "service": "svc"}});
    for (into, from) in [("", attributes), ("data", more)] {
        let target = if into.is_empty() { &mut event } else { &mut event[into] };
        for (name, value) in from.as_object().unwrap() {
            match value {
                Value::Null => drop(target.as_object_mut().unwrap().remove(name)),
                value => target[name] = value.clone(),
            }
        }
    }
    event
}

#[tokio::test]
async fn the_table_of_the_gateway() {
    let mut stand = Stand::new();
    stand.apply("p", STAGES).await;
    stand.trigger("p", "dev", "delivery", "svc").await;
    let open = stand.open("deployment").await;
    let id = json!({"triggeredid": open["id"], "shkeptncontext": open["shkeptncontext"]});
    let finished = json!({"result": "anything", "status": "whatever"});
    let none = || json!({});
    let trigger = "sh.keptn.event.dev.delivery.triggered";
    let (started, done) = ("sh.keptn.event.deployment.started", "sh.keptn.event.deployment.finished");
    let without = |field: &str| {
        let mut data = json!({"result": "pass", "status": "succeeded"});
        data[field] = Value::Null;
        data
    };
    let monitoring = "sh.keptn.event.monitoring.configure";
    let cases = [
        ("KC-60", event(trigger, none(), json!({"stage": "other"})), 400, "data.stage"),
        ("KC-61", event(trigger, none(), none()), 200, ""),
        ("KC-62", event(trigger, none(), json!({"project": null})), 400, "data.project"),
        ("KC-62", event(trigger, none(), json!({"service": null})), 400, "data.service"),
        ("KC-62", event(trigger, none(), json!({"stage": null})), 400, "data.stage"),
        ("KC-62", event(trigger, json!({"data": -1}), none()), 400, "data"),
        ("KC-64", event(started, id.clone(), none()), 200, ""),
        ("KC-66", event(done, id.clone(), finished.clone()), 200, ""),
        ("KC-67", event(done, id.clone(), without("result")), 400, "data.result"),
        ("KC-67", event(done, id.clone(), without("status")), 400, "data.status"),
        ("KC-67", event(done, none(), finished.clone()), 400, "triggeredid"),
        ("KC-67", event(done, id.clone(), without("project")), 400, "data.project"),
        ("KC-67", event(done, id.clone(), without("stage")), 400, "data.stage"),
        ("KC-67", event(done, id.clone(), without("service")), 400, "data.service"),
        ("KC-68", event("sh.keptn.event.deployment.triggered", none(), none()), 400, "only the engine triggers a task"),
        ("KC-69", event(monitoring, none(), json!({"type": "prometheus"})), 200, ""),
        ("KC-69", event(monitoring, none(), none()), 400, "data.type"),
        ("KC-70", event("sh.keptn.event.deployment.invalidated", json!({"data": {}}), none()), 200, ""),
        ("KC-70", event("sh.keptn.events.problem", json!({"data": {}}), none()), 200, ""),
        ("KC-70", event("sh.keptn.log.error", json!({"data": {}}), none()), 200, ""),
        ("KC-71", event("garbage", none(), none()), 400, "unknown event type"),
        ("domain event", event("sh.keptn.event.dev.problem.open", none(), none()), 200, ""),
        ("sequence started", event("sh.keptn.event.dev.delivery.started", none(), none()), 400, "only the engine tells"),
        ("our source", event(trigger, json!({"source": "shipyard-controller"}), none()), 400, "source"),
        ("unknown project", event(trigger, none(), json!({"project": "pp"})), 404, "did you mean \"p\"?"),
        ("bad project", event(trigger, none(), json!({"project": "P!"})), 404, "project \"P!\" does not exist"),
        (
            "unknown stage",
            event("sh.keptn.event.dex.delivery.triggered", none(), json!({"stage": "dex"})),
            404,
            "did you mean \"dev\"?",
        ),
        ("unknown sequence", event("sh.keptn.event.dev.deliver.triggered", none(), none()), 404, "did you mean \"delivery\"?"),
        ("evaluation is everywhere", event("sh.keptn.event.dev.evaluation.triggered", none(), none()), 200, ""),
        ("new service", event(trigger, none(), json!({"service": "never-seen"})), 200, ""),
        ("bad service", event(trigger, none(), json!({"service": "no such"})), 400, "data.service"),
        ("a NUL", event(trigger, none(), json!({"note": "a\u{0}b"})), 400, "U+0000"),
    ];
    for (case, event, status, says) in cases {
        let answer = stand.post("/v1/event", &event).await;
        assert_eq!(answer.status, status, "{case}: {event}\n{answer:?}");
        if status == 200 {
            assert!(answer.json()["keptnContext"].is_string(), "{case}: {answer:?}");
        } else {
            let problem = answer.problem();
            assert!(problem.contains(says), "{case}: {problem}");
        }
    }
}

#[tokio::test]
async fn a_client_keeps_its_id_and_time_and_the_same_again_does_nothing() {
    let mut stand = Stand::new();
    stand.apply("p", STAGES).await;
    let trigger = |more: Value| {
        let attributes = json!({"id": "x", "time": "2020-01-01T00:00:00Z"});
        event("sh.keptn.event.dev.delivery.triggered", attributes, more)
    };
    let first = stand.post("/v1/event", &trigger(json!({}))).await;
    assert_eq!(first.status, 200);
    let published: Value = stand.published()[0].clone();
    assert_eq!((&published["id"], &published["time"]), (&json!("x"), &json!("2020-01-01T00:00:00.000Z")));
    assert_eq!(published["shkeptncontext"], first.json()["keptnContext"]);
    stand.work().await;

    let n = stand.world.core().bus.log.len();
    let again = stand.post("/v1/event", &trigger(json!({}))).await;
    assert_eq!((again.status, &again.text), (200, &first.text));
    let other = stand.post("/v1/event", &trigger(json!({"labels": {"a": "b"}}))).await;
    assert_eq!(other.status, 409);
    assert!(other.problem().contains("the first one stands"));
    assert_eq!(stand.world.core().bus.log.len(), n, "neither was published");

    // The same of an answer to a task.
    let open = stand.open("deployment").await;
    let started = |more: Value| {
        let attributes = json!({"id": "s", "triggeredid": open["id"], "shkeptncontext": open["shkeptncontext"]});
        event("sh.keptn.event.deployment.started", attributes, more)
    };
    assert_eq!(stand.post("/v1/event", &started(json!({}))).await.status, 200);
    stand.work().await;
    let n = stand.world.core().bus.log.len();
    assert_eq!(stand.post("/v1/event", &started(json!({}))).await.status, 200);
    assert_eq!(stand.post("/v1/event", &started(json!({"message": "other"}))).await.status, 409);
    assert_eq!(stand.world.core().bus.log.len(), n);
}

#[tokio::test]
async fn other_content_that_comes_before_the_first_is_handled_is_taken_and_kept_as_invalid() {
    let mut stand = Stand::new();
    stand.apply("p", STAGES).await;
    let context = "0b9e7a44-1f7e-4abc-8123-5d2a5ef11ecf";
    let trigger = |image: &str| {
        let attributes = json!({"id": "x", "shkeptncontext": context});
        event("sh.keptn.event.dev.delivery.triggered", attributes, json!({"image": image}))
    };
    for image in ["first", "second"] {
        let answer = stand.post("/v1/event", &trigger(image)).await;
        assert_eq!(answer.status, 200, "the state does not show the first one yet: {answer:?}");
    }
    stand.work().await;
    let events = stand.get(&format!("/v1/event?keptnContext={context}&project=p")).await.json();
    let triggers: Vec<&Value> = events["events"].as_array().unwrap().iter().filter(|event| event["id"] == "x").collect();
    let verdict = |image: &str| triggers.iter().find(|event| event["data"]["image"] == image).unwrap()["verdict"].clone();
    assert_eq!((triggers.len(), verdict("first")), (2, Value::Null));
    assert!(verdict("second").as_str().is_some_and(|verdict| verdict.starts_with("invalid: ")), "{}", verdict("second"));
    assert_eq!(stand.open("deployment").await["data"]["image"], "first");
    assert_eq!(stand.post("/v1/event", &trigger("second")).await.status, 409, "now it does");
}

#[tokio::test]
async fn nobody_without_a_token() {
    let stand = Stand::new();
    for path in ["/v1/metadata", "/v1/project", "/nothing"] {
        let answer = stand.request(Request::get(path).body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status, 401, "{path}");
        assert!(answer.problem().contains("x-token is missing"));
    }
    for token in ["", "wrong", "Test-token"] {
        let answer = stand.request(Request::post("/v1/auth").header("x-token", token).body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status, 401, "{token}");
        assert!(answer.problem().contains("not known"), "{token}");
    }
    let twice = Request::get("/v1/metadata").header("x-token", TOKEN).header("x-token", TOKEN);
    assert_eq!(stand.request(twice.body(Body::empty()).unwrap()).await.status, 401);
    assert_eq!(stand.post("/v1/auth", &json!({})).await.status, 200);
    let metadata = stand.get("/v1/metadata").await;
    assert_eq!((metadata.status, &metadata.json()["stack"]), (200, &json!("test-api")));
    assert_eq!(metadata.json()["installation"], json!(crate::stand::INSTALLATION), "what signed requests name");
}

#[tokio::test]
async fn whatever_is_refused_is_a_problem() {
    let stand = Stand::new();
    stand.apply("p", STAGES).await;
    let unknown = stand.get("/v1/nothing").await;
    assert_eq!(unknown.status, 404);
    assert_eq!(unknown.problem(), "there is nothing at /v1/nothing: the API's paths begin with /v1/, docs/api.md lists them");
    assert_eq!(unknown.json()["instance"], "/v1/nothing");
    assert_eq!(stand.get("/").await.status, 404);

    for (method, path, allow) in [(Method::DELETE, "/v1/event", "GET,HEAD,POST"), (Method::GET, "/v1/apply", "POST")] {
        let request = Request::builder().method(method).uri(path).header("x-token", TOKEN).body(Body::empty()).unwrap();
        let answer = stand.request(request).await;
        assert_eq!(answer.status, 405);
        assert_eq!(answer.headers["allow"], allow);
        assert!(answer.problem().contains("Allow"));
    }
    for (body, says) in [
        ("", "EOF"),
        ("{", "EOF"),
        ("[1]", "not a JSON object"),
        (r#"{"type": "a", "type": "b"}"#, "member \"type\" is there twice"),
    ] {
        let answer = stand.post_text("/v1/event", "application/json", body.into()).await;
        assert_eq!(answer.status, 400, "{body}");
        let problem = answer.problem();
        assert!(problem.contains(says), "{body}: {problem}");
    }
    let form = stand.post_text("/v1/event", "application/x-www-form-urlencoded", "{}".into()).await;
    assert_eq!((form.status, form.problem().contains("application/json")), (415, true));
    let cloud_event = stand.post_text("/v1/event", "application/cloudevents+json; charset=utf-8", "{}".into()).await;
    assert_eq!(cloud_event.status, 400);
    let query = stand.get("/v1/event?projekt=p").await;
    assert_eq!(query.status, 400);
    assert!(query.problem().contains("projekt"), "{}", query.problem());
}

#[tokio::test]
async fn what_is_too_large_is_named() {
    let stand = Stand::with_limits(Limits { max_event_bytes: 4096, ..Limits::default() });
    stand.apply("p", STAGES).await;
    let large = event("sh.keptn.event.dev.delivery.triggered", json!({}), json!({"note": "x".repeat(5000)}));
    let answer = stand.post("/v1/event", &large).await;
    assert_eq!(answer.status, 413);
    assert!(answer.problem().contains("4096 are allowed"));
    for path in ["/v1/event", "/v1/apply"] {
        let answer = stand.post_text(path, "application/json", " ".repeat((1 << 20) + 1)).await;
        assert_eq!(answer.status, 413);
        assert!(answer.problem().contains("1 MiB"));
    }
}

#[tokio::test]
async fn a_busy_service_is_said_so() {
    let stand = Stand::new();
    stand.apply("p", STAGES).await;
    stand.world.core().faults = Some(Box::new(|_, _| keelway_world::core::Fault::Throttled));
    let answer = stand.get("/v1/project/p").await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.headers["retry-after"], "1");
    assert!(answer.problem().contains("counts once"));
}

#[tokio::test]
async fn an_event_in_binary_mode_is_taken_and_a_batch_is_not() {
    let mut stand = Stand::new();
    stand.apply("p", STAGES).await;
    let data = json!({"project": "p", "stage": "dev", "service": "svc"}).to_string();
    let ask = async |stand: &Stand, headers: &[(&str, &str)], body: &str| {
        let mut request = Request::post("/v1/event").header("x-token", TOKEN);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        stand.request(request.body(Body::from(body.to_owned())).unwrap()).await
    };
    let binary = [
        ("ce-specversion", "1.0"),
        ("ce-type", "sh.keptn.event.dev.delivery.triggered"),
        ("ce-source", "ci"),
        ("ce-id", "a%20b"),
        ("ce-shkeptncontext", "c1"),
        ("content-type", "application/json"),
    ];
    let answer = ask(&stand, &binary, &data).await;
    assert_eq!((answer.status, &answer.json()["keptnContext"]), (200, &json!("c1")), "{answer:?}");
    stand.work().await;
    let open = stand.open("deployment").await;
    assert_eq!((&open["shkeptncontext"], &open["data"]["service"]), (&json!("c1"), &json!("svc")));
    let sent = stand.get("/v1/event?project=p&keptnContext=c1&source=ci").await.json();
    assert_eq!(sent["events"][0]["id"], "a b");

    for (headers, body, status, says) in [
        (&binary[..], "", 400, "data: is missing"),
        (&binary[1..5], &data, 200, ""),
        (&[("ce-type", "%ff")], &data, 400, "ce-type: is not UTF-8"),
        (&[("ce-type", "a"), ("ce-type", "b")], &data, 400, "ce-type: is there more than once"),
        (&[("ce-type", "a"), ("content-type", "text/plain")], &data, 415, "application/json"),
        (&[("content-type", "application/cloudevents-batch+json")], "{}", 400, "send an array of events"),
        (&[("content-type", "application/json")], "[]", 400, "event: is an array, not a JSON object"),
    ] {
        let answer = ask(&stand, headers, body).await;
        assert_eq!(answer.status, status, "{headers:?}: {answer:?}");
        assert!(status == 200 || answer.problem().contains(says), "{headers:?}: {answer:?}");
    }
    // A structured event by its content type, whatever the headers say.
    let structured = event("sh.keptn.event.dev.delivery.triggered", json!({}), json!({})).to_string();
    let headers = [("content-type", "application/cloudevents+json"), ("ce-type", "another")];
    assert_eq!(ask(&stand, &headers, &structured).await.status, 200);
}
