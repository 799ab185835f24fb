//! What the API tells of the gate `evaluation`, from the soak time to the promotion.

use crate::pipelines::applied::{BY_REQUEST, CARTS, manifest};
use crate::stand::Stand;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use keelway_domain::time::Span;
use serde_json::{Value, json};

const STAGES: &str = "
  - name: dev
    sequences:
    - name: delivery
      tasks: [{name: test}]
";
const SLO: &str = "
objectives:
- sli: error_rate
  pass: [{criteria: ['<1']}]
total_score: {pass: 90%}
";
const SLI: &str = "indicators: {error_rate: 'errors of $SERVICE'}\n";
const SOURCE: &str = "
apiVersion: keelway.dev/v1
kind: MetricsSource
metadata: {name: prometheus, namespace: shop}
spec: {prometheus: {url: https://prometheus.test}}
";
const PLACE: &str = "/v1/project/shop/stage/dev/service/carts/evaluation";

async fn write(stand: &Stand, path: &str, uri: &str, text: &str) {
    let body = json!({"resources": [{"resourceURI": uri, "resourceContent": BASE64.encode(text)}]});
    assert_eq!(stand.post(&format!("/v1/project/shop{path}/resource"), &body).await.status, 201);
}

/// v2 has soaked in dev for an hour. There is a source, and no objectives.
async fn soaked() -> Stand {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    stand.trigger("shop", "dev", "delivery", "carts").await;
    assert_eq!(stand.post_text("/v1/apply", "application/yaml", SOURCE.into()).await.status, 200);
    write(&stand, "", "sli.yaml", SLI).await;
    stand.metrics.set("https://prometheus.test", "errors of carts", 2.5);
    let gated = manifest("carts", BY_REQUEST)
        .replace("    - name: dev\n", "    - name: dev\n      soak: 1h\n      evaluation: {service: carts}\n");
    stand.manifests(&gated).await;
    for (namespace, what) in [("dev", "v1/R"), ("staging", "v1/R"), ("prod", "v1/R"), ("dev", "v2/R")] {
        stand.observe(namespace, what).await;
    }
    assert_eq!(explained(&stand).await["reason"], "Soaking");
    pass(&mut stand, Span::minutes(61)).await;
    stand
}

async fn pass(stand: &mut Stand, span: Span) {
    stand.world.pass(span);
    stand.work().await;
}

/// What staging waits for.
async fn explained(stand: &Stand) -> Value {
    stand.get(&format!("{CARTS}/explain")).await.json()["environments"][1].clone()
}

async fn retry(stand: &mut Stand) {
    let asked =
        stand.post_while_working(&format!("{CARTS}/commands"), &json!({"command": "retry", "environment": "staging"})).await;
    // 202: it takes a while to be obeyed.
    assert!([200, 202].contains(&asked.status), "{asked:?}");
    stand.work().await;
}

#[tokio::test]
async fn an_evaluation_is_explained_in_numbers_and_retried() {
    let mut stand = soaked().await;
    let none = explained(&stand).await;
    assert_eq!((&none["reason"], none["opens"].is_null()), (&json!("EvaluationFailed"), true), "{none}");
    assert!(none["message"].as_str().unwrap().starts_with("v2 was not evaluated in dev: no evaluation performed"), "{none}");

    write(&stand, "/stage/dev/service/carts", "slo.yaml", SLO).await;
    pass(&mut stand, Span::minutes(5)).await;
    retry(&mut stand).await;
    let failed = explained(&stand).await;
    assert_eq!(failed["message"], "the evaluation of v2 in dev failed with a score of 0: error_rate is 2.5, not <1");
    assert!(failed["remedy"].as_str().unwrap().contains("retry staging"), "{failed}");
    let state = stand.get(CARTS).await.json();
    assert_eq!((&state["reason"], &state["environments"][1]["promotion"]["reason"]), (&failed["reason"], &failed["reason"]));
    let evaluation = &state["environments"][0]["evaluation"];
    assert_eq!((&evaluation["result"], &evaluation["score"], &evaluation["asked"]), (&json!("fail"), &json!(0.0), &json!(1)));
    assert_eq!(evaluation["violated"], json!([{"sli": "error_rate", "value": 2.5, "limit": "<1"}]));
    let waits = stand.get("/v1/wait").await.json();
    let item = waits["items"].as_array().unwrap().iter().find(|item| item["engine"] == "pipeline").unwrap();
    assert_eq!((&item["group"], &item["reason"]), (&json!("failing"), &json!("EvaluationFailed")), "{waits}");

    // It is one of the evaluations of the service, and says who has asked for it.
    let listed = stand.get(PLACE).await.json()["items"].clone();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["id"]), (2, &evaluation["id"]), "{listed}");
    let asked = ["pipeline", "environment", "revision", "state"].map(|name| listed[0][name].as_str().unwrap());
    assert_eq!(asked, ["shop/carts", "dev", "v2", "finished"]);
    let told = |event: &Value| event["type"].as_str().is_some_and(|ty| ty.contains("evaluation."));
    assert!(!stand.published().iter().any(told), "no sequence waits for it");

    stand.metrics.set("https://prometheus.test", "errors of carts", 0.5);
    pass(&mut stand, Span::minutes(5)).await;
    retry(&mut stand).await;
    assert_eq!(explained(&stand).await["reason"], "PullRequestOpen");
}

#[tokio::test]
async fn an_evaluation_that_is_under_way_is_waited_for() {
    let mut stand = soaked().await;
    write(&stand, "/stage/dev/service/carts", "slo.yaml", SLO).await;
    // The source is asked later.
    let late = SOURCE.replace("spec: {", "spec: {delay: 10m, ");
    assert_eq!(stand.post_text("/v1/apply", "application/yaml", late).await.status, 200);
    retry(&mut stand).await;
    let waits = explained(&stand).await;
    assert_eq!((&waits["reason"], &waits["remedy"]), (&json!("Evaluating"), &json!("nothing: the evaluation is on its way")));
    let listed = stand.get("/v1/wait").await.json();
    let item = listed["items"].as_array().unwrap().iter().find(|item| item["engine"] == "pipeline").unwrap();
    assert_eq!((&item["group"], &item["reason"]), (&json!("waiting"), &json!("Evaluating")), "{listed}");
    let refused = stand.post(&format!("{CARTS}/commands"), &json!({"command": "retry", "environment": "staging"})).await;
    assert_eq!(refused.status, 409, "{refused:?}");
}
