//! `GET /v1/project/{project}/delivery/{context}`: one delivery with the promotion that it carries out, and the versions that
//! carried out its tasks.

use crate::deployments::versions::{SOURCE, deploy, manifest as config, push, settle};
use crate::pipelines::applied::begin;
use crate::stand::Stand;
use axum::body::Body;
use axum::http::Request;
use keelway_engine::deployments::Deployments;
use keelway_wire::cloudevent::{Origin, parse};
use keelway_wire::http::DeliveryOverview;
use keelway_world::worker::Worker;
use serde_json::{Value, json};

const STAGES: &str = "
    - name: dev
      sequences:
        - name: delivery
          tasks: [{name: deployment, properties: {deploymentConfig: cart}}, {name: test}]
    - name: staging
      sequences:
        - name: release
          tasks: [{name: test}]
";

async fn overview(stand: &Stand, context: &str) -> Value {
    let answer = stand.get(&format!("/v1/project/shop/delivery/{context}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let told = answer.json();
    let typed: DeliveryOverview = serde_json::from_value(told.clone()).unwrap();
    assert_eq!(serde_json::to_value(&typed).unwrap(), told, "what clients are told to read is what is there");
    told
}

#[tokio::test(start_paused = true)]
async fn the_versions_that_carried_its_tasks_out_belong_to_a_delivery() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    stand.manifests(&format!("{SOURCE}---\n{}", config("cart", "a", true))).await;
    push(&mut stand, 1).await;
    deploy(&mut stand, 1, 0).await;
    let context = stand.trigger("shop", "dev", "delivery", "cart").await;
    assert_eq!(overview(&stand, &context).await["deployments"], json!([]));
    let trigger = parse(&stand.open("deployment").await, Origin::Bus, stand.world.now()).unwrap();
    stand.world.emit::<Deployments<Worker>>(trigger).unwrap();
    settle(&mut stand).await;
    let told = overview(&stand, &context).await;
    let version = &told["deployments"][0];
    assert_eq!((&version["name"], &version["status"], &version["context"]), (&json!("cart-2"), &json!("New"), &json!(context)));
    assert_eq!(told["delivery"]["executions"][0]["waits"]["reason"], "answer", "the engine has told that it began");
    let asked = format!("task deployment of shop/dev/cart ({context})");
    let delivery = json!({"task": "deployment", "project": "shop", "stage": "dev", "service": "cart", "context": context});
    let cause = json!({"type": "Manual", "by": "keelway-sequences", "notes": asked, "delivery": delivery});
    assert_eq!((&version["message"], &version["details"]), (&json!(asked), &json!({"message": asked, "causes": [cause]})));
    deploy(&mut stand, 2, 0).await;
    // A later version takes its place.
    stand.manifests(&config("cart", "b", true)).await;
    settle(&mut stand).await;
    let told = overview(&stand, &context).await;
    assert_eq!(told["deployments"].as_array().unwrap().len(), 1, "{told}");
    assert_eq!((&told["deployments"][0]["name"], &told["deployments"][0]["status"]), (&json!("cart-2"), &json!("Complete")));
    assert_eq!((&told["promotions"], &told["cut"]), (&json!([]), &Value::Null));
}

#[tokio::test(start_paused = true)]
async fn the_promotion_that_it_carries_out_belongs_to_a_delivery() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    let by_sequence = "    strategy: {sequence: {project: shop, stage: staging, name: release, service: cart}}\n";
    stand.forge.0.lock().unwrap().context = Some("promoted".into());
    begin(&mut stand, by_sequence).await;
    let data = json!({
        "project": "shop", "stage": "staging", "service": "mail",
        "promotion": {"namespace": "shop", "pipeline": "carts", "environment": "staging", "revision": "v2", "run": 2}
    });
    let trigger = json!({"type": "sh.keptn.event.staging.release.triggered", "source": "x", "data": data});
    let mut own = trigger.clone();
    own["shkeptncontext"] = json!("promoted");
    let context = &stand.trigger_with(own).await;
    let pipeline = stand.get("/v1/pipelines/shop/carts").await.json();
    let promotion = &pipeline["environments"][1]["promotion"];
    let told = overview(&stand, context).await;
    let found = &told["promotions"][0];
    let names = ["namespace", "pipeline", "environment"].map(|name| found[name].as_str().unwrap_or("-"));
    assert_eq!((names, &found["promotion"]), (["shop", "carts", "staging"], promotion), "{told}");
    assert_eq!(found["endedAt"], Value::Null);

    // Whoever triggers may name a promotion; only its pipeline knows which context carries it out.
    let forged = stand.trigger_with(trigger).await;
    assert_eq!(overview(&stand, &forged).await["promotions"], json!([]));
    assert_eq!(stand.get("/v1/project/shop/delivery/nobody").await.status, 404);
    assert_eq!(stand.get("/v1/project/shp/delivery/nobody").await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn what_belongs_to_another_project_is_not_shown() {
    let mut stand = Stand::new();
    let stages = STAGES.replace("deploymentConfig: cart", "deploymentConfig: 'shop:cart'");
    let consents = "apiVersion: keelway.dev/v1\nkind: Project\nmetadata: {name: shop}\nspec: {consents: [{to: [blog], may: [deploy], names: [cart]}]}\n";
    stand.manifests(&format!("{consents}---\n{SOURCE}---\n{}", config("cart", "a", true))).await;
    stand.apply("blog", &stages).await;
    push(&mut stand, 1).await;
    let context = stand.trigger("blog", "dev", "delivery", "cart").await;
    let token = stand.token("blog", &["read"], &["blog"]).await;
    let path = format!("/v1/project/blog/delivery/{context}");
    let answer = stand.request(Request::get(path).header("x-token", token).body(Body::empty()).unwrap()).await;
    assert_eq!((answer.status, &answer.json()["deployments"]), (200, &json!([])), "{answer:?}");
    assert!(!answer.text.contains("cart-1"), "{answer:?}");
}
