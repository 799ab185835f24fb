//! What the API tells of pipelines that something is wrong with.

use crate::pipelines::applied::{BY_REQUEST, CARTS, manifest, stand};
use crate::stand::Stand;
use keelway_domain::condition::Condition;
use keelway_domain::promotions::{Attempt, Seen};
use keelway_domain::time::Span;
use keelway_engine::item::Attr;
use keelway_engine::ports::{self, Store, Write, Written};
use keelway_engine::promotions::{Address, Message, NAME, keys};
use keelway_world::queue::Parcel;
use serde_json::{Value, json};

#[tokio::test]
async fn a_failed_promotion_that_runs_holds_up_what_comes_behind_it_until_a_person_accepts_it() {
    let mut stand = stand(BY_REQUEST).await;
    let attempt = Attempt { environment: "staging".into(), run: 2, revision: "v2".into(), attempt: 1, again: 0 };
    let to = Address { namespace: "shop".into(), name: "carts".into() };
    let seen = Message::Seen { to, attempt, seen: Seen::Closed("it was closed".into()), repository: None };
    stand.world.enqueue(NAME, Parcel::Own(seen.letter().body));
    stand.work().await;
    let accept = format!("{CARTS}/environments/staging/revisions/v2/approval");
    let body = json!({"decision": "accept", "message": "the test is flaky"});
    let early = stand.post(&accept, &body).await;
    assert_eq!((early.status, early.problem().contains("accept it when they are")), (409, true), "{early:?}");

    stand.observe("staging", "v2/R").await;
    let state = stand.get(CARTS).await.json();
    assert_eq!((&state["reason"], &state["environments"][2]["promotion"]), (&json!("PromotionFailed"), &Value::Null));
    assert_eq!(state["environments"][1]["promotion"]["contested"], true);
    let explained = stand.get(&format!("{CARTS}/explain")).await.json();
    assert_eq!(explained["environments"][1]["remedy"], "retry the promotion into staging, or accept it as it is");

    let accepted = stand.post_while_working(&accept, &body).await;
    assert!([202, 204].contains(&accepted.status), "{accepted:?}");
    stand.work().await;
    let state = stand.get(CARTS).await.json();
    assert_eq!(state["environments"][1]["promotion"]["reason"], "Accepted");
    assert_eq!(state["environments"][2]["promotion"]["phase"], "created");
    let history = stand.get(&format!("{CARTS}/history")).await.json();
    assert_eq!((&history["commands"][0]["command"], &history["commands"][0]["message"]), (&json!("accept"), &body["message"]));
}

#[tokio::test]
async fn a_target_that_cannot_be_read_is_a_condition_whoever_is_next() {
    let mut stand = Stand::new();
    stand.manifests(&manifest("carts", BY_REQUEST)).await;
    for (namespace, what) in [("dev", "v1/R"), ("staging", "v1/R"), ("dev", "v2/R")] {
        stand.observe(namespace, what).await;
    }
    let state = stand.get(CARTS).await.json();
    assert_eq!(state["reason"], "PullRequestOpen");
    let unreadable =
        json!([{"environment": "prod", "reason": "TargetNotReadable", "message": "nothing has been reported about prod yet"}]);
    assert_eq!((&state["conditions"], &state["environments"][2]["conditions"]), (&unreadable, &unreadable), "{state}");
    let listed = stand.get("/v1/pipelines?namespace=shop").await.json();
    assert_eq!(listed["items"][0]["conditions"], unreadable);
    let explained = stand.get(&format!("{CARTS}/explain")).await.json();
    assert_eq!(explained["environments"][2]["reason"], "TargetNotReadable");
    stand.observe("prod", "v1/R").await;
    assert_eq!(stand.get(CARTS).await.json()["conditions"], Value::Null);
}

#[tokio::test]
async fn a_look_that_fails_is_shown_where_the_pull_request_is() {
    let mut stand = stand(BY_REQUEST).await;
    stand.forge.0.lock().unwrap().trouble = Some(Condition::new("CredentialsRefused", "git.test does not accept the token"));
    stand.world.pass(Span::seconds(31));
    stand.work().await;
    let request = stand.get(CARTS).await.json()["environments"][1]["promotion"]["pullRequest"].clone();
    assert_eq!(request["look"]["error"], "git.test does not accept the token", "{request}");
    assert!(request["look"]["at"].is_string() && request["look"]["since"].is_string());
    let open = stand.get(&format!("{CARTS}/pull-requests")).await.json();
    assert_eq!(open["pullRequests"][0]["look"], request["look"]);
    let explained = stand.get(&format!("{CARTS}/explain")).await.json();
    assert!(explained["environments"][1]["message"].as_str().unwrap().contains("does not accept the token"), "{explained}");

    for _ in 0..25 {
        stand.world.pass(Span::seconds(31));
        stand.work().await;
    }
    let state = stand.get(CARTS).await.json();
    assert_eq!((&state["reason"], &state["conditions"][0]["reason"]), (&json!("CredentialsRefused"), &json!("CredentialsRefused")));
    stand.forge.0.lock().unwrap().trouble = None;
    for _ in 0..3 {
        stand.world.pass(Span::minutes(2));
        stand.work().await;
    }
    let state = stand.get(CARTS).await.json();
    assert_eq!((&state["reason"], &state["conditions"]), (&json!("PullRequestOpen"), &Value::Null), "{state}");
}

#[tokio::test]
async fn two_pipelines_in_a_circle_are_warned_of() {
    let mut stand = Stand::new();
    let forth = manifest("carts", BY_REQUEST);
    let back = manifest("back", BY_REQUEST)
        .replace("namespace: dev", "namespace: x")
        .replace("namespace: staging", "namespace: dev")
        .replace("namespace: x", "namespace: staging");
    assert_eq!(stand.manifests(&forth).await["warnings"][0], Value::Null);
    let warnings = stand.manifests(&back).await["warnings"].clone();
    let message = warnings[0]["message"].as_str().unwrap_or_default();
    assert!(message.contains("shop/back make a circle with those of shop/carts"), "{warnings}");
    // A second pipeline over the same environments in the same order is none.
    assert_eq!(
        stand.manifests(&forth.replace("name: carts\n  namespace", "name: twin\n  namespace")).await["warnings"][0]["message"]
            .as_str()
            .map(|text| text.contains("shop/carts")),
        Some(false)
    );
}

/// Newer code may have written a pipeline that this code cannot read, or one may be damaged.
#[tokio::test]
async fn a_pipeline_that_cannot_be_read_keeps_nobody_from_applying_another_one() {
    for (name, damaged) in [("f", Attr::from(99i64)), ("j", Attr::from("{"))] {
        let mut stand = Stand::new();
        stand.manifests(&manifest("carts", BY_REQUEST)).await;
        let (ports, key) = (stand.world.worker(3), keys::definition(&Address::new("shop", "carts")));
        let item = ports.get(&key).await.unwrap().unwrap();
        let version = ports::Condition::Version(item.version());
        assert_eq!(ports.write(&Write::Put(item.with(name, damaged), version)).await.unwrap(), Written::Done);
        let twin = manifest("carts", BY_REQUEST).replace("name: carts\n  namespace", "name: twin\n  namespace");
        let answer = stand.post_text("/v1/apply", "application/yaml", twin).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let warnings = answer.json()["warnings"].clone();
        let message = warnings[0]["message"].as_str().unwrap_or_default();
        assert!(message.contains("shared with shop/carts, which cannot be read"), "{warnings}");
        assert_eq!(warnings[0]["severity"], "warning");
    }
}
