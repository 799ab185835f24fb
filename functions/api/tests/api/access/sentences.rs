//! What the audit says was done, in sentences without their subject.

use crate::deployments::versions::{CART, ask, begin, deploy, push};
use crate::stand::Stand;
use keelway_domain::time::Span;
use serde_json::{Value, json};

const STAGES: &str = "
    - name: dev
      sequences:
        - name: delivery
          tasks: [{name: approval, properties: {pass: manual, warning: manual}}, {name: deployment}]
";

/// What was done since the audit had so many entries, oldest first.
async fn told(stand: &Stand, before: usize) -> Vec<String> {
    let page = stand.get("/v1/audit?pageSize=100").await.json();
    let mut all: Vec<String> =
        page["items"].as_array().unwrap().iter().map(|entry| entry["what"].as_str().unwrap().to_owned()).collect();
    all.reverse();
    all.split_off(before)
}

#[tokio::test(start_paused = true)]
async fn of_sequences() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    let before = told(&stand, 0).await.len();
    let mut contexts = vec![];
    for decision in ["approve", "decline"] {
        stand.world.pass(Span::seconds(1));
        contexts.push(stand.deliver("dev", "cart", "registry.test:5000/shop/cart:1.5.0").await);
        stand.world.pass(Span::seconds(1));
        stand.decide(decision, "Ann").await;
        if decision == "approve" {
            stand.world.pass(Span::seconds(1));
            let aborted = stand.post(&format!("/v1/sequence/shop/{}/control", contexts[0]), &json!({"state": "abort"})).await;
            assert_eq!(aborted.status, 200, "{aborted:?}");
            stand.work().await;
        }
    }
    stand.world.pass(Span::seconds(1));
    assert_eq!(stand.post("/v1/project/shop/service", &json!({"serviceName": "web"})).await.status, 200);
    stand.world.pass(Span::seconds(1));
    assert_eq!(stand.delete("/v1/project/shop/service/web").await.status, 200);
    let (one, other) = (&contexts[0], &contexts[1]);
    assert_eq!(
        told(&stand, before).await,
        [
            format!("triggered delivery of cart 1.5.0 in dev ({one})"),
            format!("approved cart 1.5.0 for dev ({one})"),
            format!("aborted what is open ({one})"),
            format!("triggered delivery of cart 1.5.0 in dev ({other})"),
            format!("declined cart 1.5.0 for dev ({other})"),
            "created service web of shop".to_owned(),
            "deleted service web of shop".to_owned(),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn of_deployment_configs() {
    let mut stand = Stand::with(Default::default(), std::time::Duration::from_secs(60));
    begin(&mut stand).await;
    push(&mut stand, 2).await;
    deploy(&mut stand, 2, 0).await;
    let before = told(&stand, 0).await.len();
    let nothing = json!({});
    let asked: [(&str, &Value); 5] = [
        ("rollback", &json!({"release": 1})),
        ("cancel", &nothing),
        ("triggers/resume", &nothing),
        ("pause", &nothing),
        ("resume", &nothing),
    ];
    for (path, body) in asked {
        let answer = ask(&mut stand, path, body).await;
        assert!(answer.status < 300, "{path}: {answer:?}");
        stand.work().await;
    }
    stand.world.pass(Span::seconds(1));
    assert_eq!(stand.delete(CART).await.status, 204);
    assert_eq!(
        told(&stand, before).await,
        [
            "rolled back shop/cart to #1",
            "cancelled the running deployment of shop/cart",
            "resumed the triggers of shop/cart",
            "paused shop/cart",
            "resumed shop/cart",
            "deleted deployment config cart",
        ]
    );
}
