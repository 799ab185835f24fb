//! Evaluations that the engine makes, as the API shows them, and the source of a project.

use crate::stand::Stand;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use keelway_domain::time::Span;
use serde_json::{Value, json};

const STAGES: &str = "
  - name: staging
    sequences:
    - name: delivery
      tasks: [{name: test}]
";
const PLACE: &str = "/v1/project/shop/stage/staging/service/carts/evaluation";
const SLO: &str = "
spec_version: '1.0'
objectives:
- sli: error_rate
  pass: [{criteria: ['<=1']}]
total_score: {pass: 90%}
";
const SLI: &str = "
spec_version: '1.0'
indicators: {error_rate: 'errors{service=\"$SERVICE\"}'}
";
const SOURCE: &str = "
apiVersion: keelway.dev/v1
kind: MetricsSource
metadata: {name: prometheus, namespace: shop}
spec: {prometheus: {url: https://prometheus.test}}
";

/// A project whose service `carts` has objectives and a source.
async fn shop() -> Stand {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    stand.trigger("shop", "staging", "delivery", "carts").await;
    for (path, uri, text) in
        [("/v1/project/shop/resource", "sli.yaml", SLI), ("/v1/project/shop/stage/staging/service/carts/resource", "slo.yaml", SLO)]
    {
        let body = json!({"resources": [{"resourceURI": uri, "resourceContent": BASE64.encode(text)}]});
        assert_eq!(stand.post(path, &body).await.status, 201);
    }
    assert_eq!(stand.post_text("/v1/apply", "application/yaml", SOURCE.into()).await.status, 200);
    // The delivery's own task would keep the lane.
    let open = stand.open("test").await;
    stand.answer_to(&open, "test", "pass").await;
    stand
}

/// Evaluates; what the API shows of it.
async fn evaluated(stand: &mut Stand, value: f64) -> Value {
    stand.metrics.set("https://prometheus.test", "errors{service=\"carts\"}", value);
    stand.world.pass(Span::seconds(5));
    let answer = stand.post(PLACE, &json!({"timeframe": "5m"})).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    stand.work().await;
    stand.get(PLACE).await.json()["items"][0].clone()
}

#[tokio::test]
async fn the_engine_evaluates_and_the_api_shows_what_it_came_to() {
    let mut stand = shop().await;
    assert_eq!(stand.get(PLACE).await.json()["items"], json!([]));
    let good = evaluated(&mut stand, 0.5).await;
    assert_eq!((&good["state"], &good["result"], &good["score"]), (&json!("finished"), &json!("pass"), &json!(100.0)), "{good}");
    assert_eq!((&good["evaluated"], &good["provider"]), (&json!(true), &json!("prometheus")));
    assert_eq!(good["indicators"][0]["value"]["value"], 0.5);
    let bad = evaluated(&mut stand, 2.0).await;
    assert_eq!((&bad["result"], &bad["indicators"][0]["passTargets"][0]["violated"]), (&json!("fail"), &json!(true)), "{bad}");
    let all = stand.get(PLACE).await.json();
    assert_eq!(all["items"].as_array().unwrap().len(), 2);
    let one = stand.get(&format!("{PLACE}/{}", good["id"].as_str().unwrap())).await;
    assert_eq!(one.json(), good);
}

#[tokio::test]
async fn an_evaluation_is_left_out_once() {
    let mut stand = shop().await;
    let id = evaluated(&mut stand, 0.5).await["id"].as_str().unwrap().to_owned();
    for _ in 0..2 {
        let answer = stand.post(&format!("{PLACE}/{id}/invalidate"), &Value::Null).await;
        assert_eq!((answer.status, &answer.json()["invalidated"]), (200, &json!(true)), "{answer:?}");
    }
    let told = stand.published().iter().filter(|event| event["type"] == "sh.keptn.event.evaluation.invalidated").count();
    assert_eq!(told, 1);
    let unknown = stand.post(&format!("{PLACE}/nothing/invalidate"), &Value::Null).await;
    assert_eq!(unknown.status, 404);
    assert!(unknown.json()["detail"].as_str().unwrap().contains("the last twenty evaluations of carts"), "{unknown:?}");
}

#[tokio::test]
async fn a_project_chooses_its_source() {
    let stand = shop().await;
    let path = "/v1/project/shop/sli-provider";
    assert_eq!(stand.get(path).await.json(), json!({"name": ""}));
    for name in ["", "two words", "a/b"] {
        let refused = stand.put(path, &json!({"name": name})).await;
        assert_eq!(refused.status, 400);
        assert!(refused.json()["detail"].as_str().unwrap().starts_with("name: "), "{refused:?}");
    }
    stand.world.pass(Span::seconds(1));
    assert_eq!(stand.put(path, &json!({"name": "dynatrace"})).await.status, 200);
    assert_eq!(stand.get(path).await.json(), json!({"name": "dynatrace"}));
}

#[tokio::test]
async fn a_service_on_the_bus_is_asked_and_answers_over_the_api() {
    let mut stand = shop().await;
    stand.world.pass(Span::seconds(1));
    assert_eq!(stand.put("/v1/project/shop/sli-provider", &json!({"name": "dynatrace"})).await.status, 200);
    assert_eq!(evaluated(&mut stand, 0.5).await["state"], "asked");
    let asked = stand.published().into_iter().find(|event| event["type"] == "sh.keptn.event.get-sli.triggered").unwrap();
    assert_eq!(asked["data"]["get-sli"]["indicators"], json!(["error_rate"]));
    let answer = |kind: &str, data: Value| {
        let mut data = data;
        for member in ["project", "stage", "service"] {
            data[member] = asked["data"][member].clone();
        }
        json!({
            "type": format!("sh.keptn.event.get-sli.{kind}"), "source": "dynatrace-service", "triggeredid": asked["id"],
            "shkeptncontext": asked["shkeptncontext"], "data": data
        })
    };
    for event in [
        answer("started", json!({"status": "succeeded"})),
        answer(
            "finished",
            json!({"status": "succeeded", "result": "pass", "get-sli": {"indicatorValues": [{"metric": "error_rate", "value": 0.1, "success": true}]}}),
        ),
    ] {
        let taken = stand.post("/v1/event", &event).await;
        assert_eq!(taken.status, 200, "{taken:?}");
        stand.work().await;
    }
    let one = stand.get(PLACE).await.json()["items"][0].clone();
    assert_eq!(
        (&one["state"], &one["result"], &one["provider"]),
        (&json!("finished"), &json!("pass"), &json!("dynatrace")),
        "{one}"
    );
}

#[tokio::test]
async fn events_that_change_evaluations_take_the_scopes_of_their_routes() {
    let mut stand = shop().await;
    for scope in ["read", "execute:evaluation", "trigger", "administer"] {
        stand.token(scope.split(':').next().unwrap(), &[scope], &["shop"]).await;
    }
    let id = evaluated(&mut stand, 0.5).await["id"].clone();
    stand.world.pass(Span::seconds(1));
    let data = json!({"project": "shop", "stage": "staging", "service": "carts", "type": "dynatrace"});
    let event = |what: &str| {
        let ty = format!("sh.keptn.event.{what}");
        json!({"type": ty, "source": "tool", "shkeptncontext": "c", "triggeredid": id, "data": data})
    };
    let (choice, out) = (event("monitoring.configure"), event("evaluation.invalidated"));
    let source = async |stand: &mut Stand| stand.like("").get("/v1/project/shop/sli-provider").await.json()["name"].clone();
    let invalidated = async |stand: &mut Stand| stand.like("").get(PLACE).await.json()["items"][0]["invalidated"].clone();
    for (who, event, status) in
        [("read", &choice, 403), ("execute", &choice, 403), ("trigger", &choice, 403), ("read", &out, 403), ("execute", &out, 403)]
    {
        let answer = stand.like(who).post("/v1/event", event).await;
        assert_eq!(answer.status, status, "{who}: {event}: {answer:?}");
        stand.work().await;
        assert_eq!((source(&mut stand).await, invalidated(&mut stand).await), (json!(""), json!(false)), "{who}: {event}");
    }
    for (who, event) in [("administer", &choice), ("trigger", &out)] {
        assert_eq!(stand.like(who).post("/v1/event", event).await.status, 200, "{who}: {event}");
        stand.work().await;
    }
    assert_eq!((source(&mut stand).await, invalidated(&mut stand).await), (json!("dynatrace"), json!(true)));
    let audit = stand.get("/v1/audit?action=control&project=shop").await.json();
    let what: Vec<&str> = audit["items"].as_array().unwrap().iter().map(|entry| entry["what"].as_str().unwrap()).collect();
    for told in ["chose dynatrace to evaluate by".to_owned(), format!("invalidated evaluation {}", id.as_str().unwrap())] {
        assert!(what.contains(&told.as_str()), "{told}: {audit}");
    }
}

#[tokio::test]
async fn a_project_that_is_created_again_chooses_anew() {
    let stand = shop().await;
    let path = "/v1/project/shop/sli-provider";
    stand.world.pass(Span::seconds(1));
    assert_eq!(stand.put(path, &json!({"name": "dynatrace"})).await.json(), json!({"name": "dynatrace"}));
    assert_eq!(stand.delete("/v1/metricsSources/shop/prometheus").await.status, 204);
    let deleted = stand.delete("/v1/project/shop").await;
    assert_eq!(deleted.status, 200, "{deleted:?}");
    stand.apply("shop", STAGES).await;
    assert_eq!(stand.get(path).await.json(), json!({"name": ""}));
}
