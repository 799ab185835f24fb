//! Webhooks of git hosts.

use crate::pipelines::applied::{BY_REQUEST, begin};
use crate::stand::Stand;
use axum::body::Body;
use axum::http::Request;
use hmac::{Hmac, KeyInit, Mac};
use keelway_domain::time::Span;
use keelway_engine::secrets::Known;
use keelway_engine::sequences::Limits;
use serde_json::{Value, json};
use sha2::Sha256;
use std::time::Duration;

const HOST: &str = "apiVersion: keelway.dev/v1\nkind: GitHost\nmetadata: {name: forge}\nspec:\n  host: git.test\n  type: gitea\n  api: \
                    https://git.test/api/v1\n  webhookSecretRef: {name: hook}\n";

fn closed(repository: &str) -> Value {
    json!({"action": "closed", "number": 1, "pull_request": {"number": 1, "merged": true}, "repository": {"html_url": repository}})
}

async fn send(stand: &Stand, name: &str, body: &Value, key: &str) -> u16 {
    let body = body.to_string();
    let mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key.as_bytes()).unwrap().chain_update(&body).finalize().into_bytes();
    let digits: String = mac.iter().map(|byte| format!("{byte:02x}")).collect();
    let request = Request::post(format!("/v1/webhooks/{name}")).header("x-gitea-signature", digits);
    stand.request(request.header("content-type", "application/json").body(Body::from(body)).unwrap()).await.status
}

#[tokio::test]
async fn a_signed_webhook_has_the_repository_looked_at_now_and_a_forged_one_does_nothing() {
    let secrets = Known::default().with("-/hook", "s3cret");
    let mut stand = Stand::with_secrets(Limits::default(), Duration::ZERO, secrets);
    stand.manifests(HOST).await;
    begin(&mut stand, BY_REQUEST).await;
    // Behind a proxy, the host calls itself something else.
    let ours = closed("http://inside.test:3000/o/r");
    assert_eq!((stand.forge.opened().len(), stand.forge.looks()), (1, 0));
    for (name, body, key, status) in [
        ("forge", &ours, "wrong", 401),
        ("forge", &ours, "", 401),
        ("other", &ours, "s3cret", 401),
        ("a%2Fb", &ours, "s3cret", 401),
        ("forge", &closed("https://git.test/o/other"), "s3cret", 204),
        ("forge", &closed("https://elsewhere.test/o/other"), "s3cret", 204),
        ("forge", &json!({"action": "opened", "issue": {"number": 1}}), "s3cret", 204),
    ] {
        assert_eq!(send(&stand, name, body, key).await, status, "{name} {body} {key}");
        assert!(!stand.step().await, "{name} {body} {key}");
    }
    assert_eq!(send(&stand, "forge", &ours, "s3cret").await, 202);
    stand.work().await;
    assert_eq!(stand.forge.looks(), 1, "the host was looked at before the planned time");
    let state = stand.get(crate::pipelines::applied::CARTS).await.json();
    assert_eq!(state["environments"][1]["promotion"]["phase"], "created", "the webhook's claim is not believed");
}

#[tokio::test]
async fn a_host_that_asks_for_patience_is_not_looked_at_earlier() {
    let secrets = Known::default().with("-/hook", r#"{"secret": "s3cret"}"#);
    let mut stand = Stand::with_secrets(Limits::default(), Duration::ZERO, secrets);
    stand.manifests(HOST).await;
    begin(&mut stand, BY_REQUEST).await;
    let later = stand.world.now() + keelway_domain::time::Span::minutes(10);
    stand.forge.0.lock().unwrap().not_before = Some(later);
    for looks in [1, 1] {
        assert_eq!(send(&stand, "forge", &closed("https://git.test/o/r"), "s3cret").await, 202);
        stand.work().await;
        assert_eq!(stand.forge.looks(), looks);
    }
}

/// Whoever administers `default` can name its secrets in manifests, so they are not those of the installation.
#[tokio::test]
async fn a_secret_of_a_namespace_signs_no_webhook_of_a_host() {
    for namespace in ["default", "shop"] {
        let secrets = Known::default().with(&format!("{namespace}/hook"), "s3cret");
        let mut stand = Stand::with_secrets(Limits::default(), Duration::ZERO, secrets);
        stand.manifests(HOST).await;
        begin(&mut stand, BY_REQUEST).await;
        assert_eq!(send(&stand, "forge", &closed("https://git.test/o/r"), "s3cret").await, 401, "{namespace}");
    }
}

#[tokio::test]
async fn webhooks_of_a_host_have_a_limit_of_their_own_and_what_nobody_signed_costs_nothing() {
    let secrets = Known::default().with("-/hook", "s3cret");
    let mut stand = Stand::with_secrets(Limits::default(), Duration::ZERO, secrets);
    stand.manifests(HOST).await;
    stand.manifests(&HOST.replace("name: forge", "name: other").replace("git.test", "other.test")).await;
    let requests = || stand.world.core().request_count();
    let before = requests();
    let bare = Request::post("/v1/webhooks/forge").header("content-type", "application/json").body(Body::from("{}")).unwrap();
    assert_eq!((stand.request(bare).await.status, requests() - before), (401, 0));
    let body = json!({"action": "opened", "issue": {"number": 1}});
    assert_eq!((send(&stand, "unknown", &body, "s3cret").await, requests() - before), (401, 1), "one read");

    for n in 0..300 {
        let (key, status) = if n % 2 == 0 { ("s3cret", 204) } else { ("wrong", 401) };
        assert_eq!(send(&stand, "forge", &body, key).await, status, "{n}");
    }
    let before = requests();
    assert_eq!((send(&stand, "forge", &body, "s3cret").await, requests() - before), (429, 2), "two reads");
    assert_eq!(send(&stand, "other", &body, "s3cret").await, 204, "another host has its own");
    stand.world.pass(Span::seconds(30));
    assert_eq!(send(&stand, "forge", &body, "s3cret").await, 204);
}
