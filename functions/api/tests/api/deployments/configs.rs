//! Deployment configs that several people write, and what reads show of what is deployed.

use crate::deployments::versions::{CART, ask, claim, deploy, digest, fields, image, manifest, push, settle, stand, status};
use crate::stand::{Answer, Stand, TOKEN};
use axum::body::Body;
use axum::http::Request;
use keelway_domain::deployments::{Call, LEASE, Progress, SOURCE as SOURCE_OF_KEELWAY, Served, Sight};
use keelway_domain::time::Span;
use keelway_engine::deployments::{Address, Deployments};
use serde_json::{Value, json};

const GENERATE: &str = "/v1/generateDeploymentConfigs/shop:cart";
const CONFIGS: &str = "/v1/deploymentConfigs";

async fn keyed(stand: &Stand, (method, path): (&str, &str), key: &str, body: &str) -> Answer {
    let request = Request::builder().method(method).uri(path).header("x-token", TOKEN).header("content-type", "application/yaml");
    stand.request(request.header("idempotency-key", key).body(Body::from(body.to_owned())).unwrap()).await
}

/// A stand whose config is deployed by hand, with an image that is not deployed yet.
async fn by_hand() -> Stand {
    let mut stand = stand().await;
    stand.manifests(&manifest("cart", "a", false)).await;
    push(&mut stand, 2).await;
    stand
}

#[tokio::test(start_paused = true)]
async fn of_two_people_who_put_the_same_generated_config_one_is_told_that_the_other_was_faster() {
    let stand = by_hand().await;
    let next = stand.get(GENERATE).await.json();
    let first = stand.put(CART, &next).await;
    assert_eq!(first.status, 200, "{first:?}");
    let second = stand.put(CART, &next).await;
    assert_eq!((second.status, second.problem().contains("resourceVersion is 3 now")), (409, true), "{second:?}");
    let same = stand.get(CART).await.json();
    assert_eq!(stand.put(CART, &same).await.status, 200, "what names the version in force replaces it");
}

#[tokio::test(start_paused = true)]
async fn a_put_that_is_sent_again_with_its_key_is_no_conflict() {
    let stand = by_hand().await;
    let next = stand.get(GENERATE).await.json().to_string();
    for _ in 0..2 {
        let answer = keyed(&stand, ("PUT", CART), "k", &next).await;
        assert_eq!((answer.status, &answer.json()["metadata"]["resourceVersion"]), (200, &json!("3")), "{answer:?}");
    }
    assert_eq!(keyed(&stand, ("PUT", CART), "other", &next).await.status, 409);
}

#[tokio::test(start_paused = true)]
async fn a_config_is_created_once() {
    let stand = Stand::new();
    let text = manifest("cart", "a", true);
    for _ in 0..2 {
        let answer = keyed(&stand, ("POST", CONFIGS), "k", &text).await;
        assert_eq!(answer.status, 201, "{answer:?}");
    }
    let again = stand.post_text(CONFIGS, "application/yaml", text.clone()).await;
    assert_eq!((again.status, again.problem().contains("resourceVersion is 1 now")), (409, true), "{again:?}");
    assert_eq!(keyed(&stand, ("POST", CONFIGS), "other", &text).await.status, 409);
}

#[tokio::test(start_paused = true)]
async fn the_deployed_image_is_shown_while_a_later_version_has_failed() {
    let mut stand = stand().await;
    push(&mut stand, 2).await;
    deploy(&mut stand, 2, 7).await;
    let shown = status(&stand).await;
    assert_eq!((&shown["activeVersion"], &shown["activeImages"]["web"]), (&json!(1), &json!(image(1))), "{shown}");
    let latest = &shown["latest"];
    assert_eq!((&latest["version"], &latest["images"]["web"]), (&json!(2), &json!(image(2))), "{shown}");
    assert_eq!((&latest["status"], &latest["reason"]), (&json!("Failed"), &json!("DeployerFailed")), "{shown}");
    let listed = stand.get("/v1/deploymentConfigs?namespace=shop").await.json();
    assert_eq!(listed["items"][0]["activeImages"], shown["activeImages"]);
}

#[tokio::test(start_paused = true)]
async fn the_image_that_a_trigger_was_deployed_with_is_shown_and_may_be_applied_back() {
    let mut stand = by_hand().await;
    let triggered = |object: &Value| object["spec"]["triggers"][1]["imageChangeParams"]["lastTriggeredImage"].clone();
    let now = stand.get(CART).await.json();
    assert_eq!(triggered(&now), json!(image(1)));
    assert_eq!(now["spec"]["triggers"][0].get("imageChangeParams"), None, "only of triggers that follow images");
    assert_eq!(triggered(&stand.get(GENERATE).await.json()), json!(image(2)), "the image of the next version");
    assert!(!stand.get(&format!("{CART}/manifest")).await.text.contains(&digest(1)), "the text is what was applied");
    let applied = stand.manifests(&now.to_string()).await;
    assert_eq!(applied["applied"][0]["name"], "cart", "{applied}");
    assert_eq!(status(&stand).await["latestVersion"], 1);
    stand.manifests(&manifest("web", "a", true).replace("cart:latest", "none:latest")).await;
    let none = stand.get("/v1/deploymentConfigs/shop:web").await.json();
    assert_eq!(triggered(&none), Value::Null, "nothing was deployed");
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_says_what_follows_and_takes_it_along_if_that_is_asked_for() {
    for (body, follows, latest) in [
        (json!({}), "a newer change waits, and is deployed next as cart-3", 3),
        (json!({"andWhatWaits": true}), "the change that waited is not deployed", 2),
    ] {
        let mut stand = stand().await;
        push(&mut stand, 2).await;
        claim(&stand, 2).await;
        push(&mut stand, 3).await;
        let answer = ask(&mut stand, "cancel", &body).await;
        assert_eq!((answer.status, answer.json()["follows"].as_str().unwrap().starts_with(follows)), (200, true), "{answer:?}");
        stand.world.pass(Span::minutes(15));
        stand.work().await;
        assert_eq!(status(&stand).await["latestVersion"], latest, "{body}");
    }
    let mut stand = stand().await;
    assert_eq!(fields(&ask(&mut stand, "pause", &json!({"andWhatWaits": true})).await), ["andWhatWaits"]);
}

#[tokio::test(start_paused = true)]
async fn a_rollback_that_changes_nothing_is_carried_out_only_if_it_is_asked_for_again() {
    let mut stand = stand().await;
    ask(&mut stand, "instantiate", &json!({"force": true})).await;
    deploy(&mut stand, 2, 0).await;
    for dry in [true, false] {
        let refused = ask(&mut stand, "rollback", &json!({"release": 1, "dryRun": dry})).await;
        assert_eq!((refused.status, fields(&refused)), (422, vec!["release".to_owned()]), "{refused:?}");
        assert!(refused.problem().contains("a rollback to cart-1 changes nothing: #2 deploys the same"), "{refused:?}");
    }
    assert_eq!((&status(&stand).await["latestVersion"], &status(&stand).await["triggersSuspended"]), (&json!(2), &Value::Null));
    let done = ask(&mut stand, "rollback", &json!({"release": 1, "again": true})).await.json();
    assert_eq!((&done["deployment"]["version"], &done["deployment"]["rollbackOf"]), (&json!(3), &json!(1)), "{done}");
    deploy(&mut stand, 3, 1).await;
    let after = ask(&mut stand, "rollback", &json!({"release": 1})).await.json();
    assert_eq!(after["deployment"]["version"], 4, "what failed is no such version: {after}");
}

#[tokio::test(start_paused = true)]
async fn a_target_that_serves_something_else_is_shown_and_kept_in_the_audit() {
    let mut stand = stand().await;
    // The image of a release is deployed to an alias, by Keelway's own deployer.
    let spec = "  onDrift: adopt\n  strategy: {type: Recreate}\n  targets: [{name: main, kind: lambda-alias, id: 'web:live'}]\n  template:";
    stand.manifests(&manifest("cart", "b", true).replace("  template:", &spec.replace("adopt", "tell"))).await;
    settle(&mut stand).await;
    let to = Address { namespace: "shop".into(), name: "cart".into() };
    let engine = Deployments::new(stand.world.worker(1), Default::default());
    let token = || "its".to_owned();
    let claim = Call::Claim { by: SOURCE_OF_KEELWAY.into(), id: 1, token: token(), lease: LEASE };
    let end = Call::End { token: token(), exit: Some(0), message: String::new(), progress: Progress::default() };
    for call in [claim, end] {
        engine.say(&to, 2, &call).await.unwrap();
    }
    stand.work().await;
    assert_eq!(status(&stand).await.get("drift"), None);
    let saw = async |stand: &mut Stand, serves: &str| {
        stand.world.pass(Span::seconds(1));
        let served = Served { expected: "7".into(), serves: serves.into() };
        let sight = Sight { n: 2, at: stand.world.now(), places: [("main".to_owned(), served)].into() };
        engine.saw(&to, sight).await.unwrap();
        stand.work().await;
        status(stand).await["drift"].clone()
    };
    let drift = saw(&mut stand, "3").await;
    assert_eq!(drift["message"], "Drifted: serves Lambda version 3");
    assert_eq!(drift["targets"], json!({"main": {"expected": "7", "serves": "3"}}));
    let audit = stand.get(&format!("{CART}/audit")).await.json();
    assert_eq!((&audit["items"][0]["what"], &audit["items"][0]["message"]), (&json!("drifted"), &json!("serves Lambda version 3")));
    assert_eq!(saw(&mut stand, "7").await, Value::Null);
    stand.manifests(&manifest("cart", "b", true).replace("  template:", spec)).await;
    stand.work().await;
    assert_eq!(saw(&mut stand, "4").await["message"], "Adopted: main serves Lambda version 4");
    let object = stand.get(CART).await.json();
    assert_eq!((&object["spec"]["onDrift"], status(&stand).await["latestVersion"].as_u64()), (&json!("adopt"), Some(2)));
}
