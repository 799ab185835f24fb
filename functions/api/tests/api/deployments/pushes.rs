//! What a request may say that the tags of an artifact source point to.

use crate::deployments::versions::{SOURCE, digest, fields, manifest, settle, status};
use crate::stand::{Answer, Stand};
use axum::body::Body;
use axum::http::Request;
use keelway_domain::time::Span;
use keelway_engine::secrets::Known;
use keelway_engine::sequences::Limits;
use keelway_wire::signature::{Algorithm, Request as Canonical, Signed};
use serde_json::json;
use std::time::Duration;

const OURS: &str = "111111111111.dkr.ecr.eu-central-1.amazonaws.com/shop/cart";

fn source(from: &str) -> String {
    SOURCE.replace("webhook: {secret: registry}", from)
}

fn policy(spec: &str) -> String {
    format!("apiVersion: keelway.dev/v1\nkind: Project\nmetadata: {{name: shop}}\nspec: {{policy: {spec}}}\n")
}

async fn push(stand: &mut Stand, n: u64, image: &str) -> Answer {
    stand.world.pass(Span::seconds(1));
    let body = json!({"tag": "latest", "digest": digest(n), "image": image});
    stand.post("/v1/artifacts/shop/cart", &body).await
}

/// A stand with a config that watches the tag, and tokens of the project.
async fn stand(from: &str) -> Stand {
    let mut stand = Stand::with(Limits::default(), Duration::from_secs(60));
    stand.manifests(&format!("{}---\n{}", source(from), manifest("cart", "a", true))).await;
    stand.token("ci", &["trigger", "read"], &["shop"]).await;
    stand.token("owner", &["administer"], &["shop"]).await;
    stand
}

async fn refused(stand: &mut Stand, n: u64, image: &str) -> String {
    let before = stand.world.core().table.items().count();
    let answer = push(stand, n, image).await;
    assert_eq!((answer.status, fields(&answer)), (422, vec!["image".to_owned()]), "{image}: {answer:?}");
    assert_eq!(stand.world.core().table.items().count(), before, "nothing is written");
    settle(stand).await;
    answer.problem()
}

#[tokio::test(start_paused = true)]
async fn a_source_of_ecr_takes_images_of_its_repository_only() {
    let mut stand = stand("ecr: {repository: shop/cart}").await;
    stand.like("ci");
    for image in
        ["registry.test/evil", "222222222222.dkr.ecr.eu-central-1.amazonaws.com/shop/cart", &format!("{OURS}s"), "s3://bucket/key"]
    {
        let told = refused(&mut stand, 2, image).await;
        assert!(
            told.ends_with(&format!("is none of artifact source shop/cart: send one of `{OURS}`, as its spec.ecr says")),
            "{told}"
        );
        assert_eq!(status(&stand).await["latestVersion"], 0);
    }
    assert_eq!(push(&mut stand, 1, OURS).await.status, 202);
    settle(&mut stand).await;
    assert_eq!(status(&stand).await["latest"]["images"]["web"], json!(format!("{OURS}@{}", digest(1))));
}

#[tokio::test(start_paused = true)]
async fn a_source_of_a_webhook_takes_the_images_that_it_lists() {
    let mut stand = stand("webhook: {secret: registry}\n  images: ['registry.test/shop/*', 's3://releases/cart-*']").await;
    let shown = stand.get("/v1/artifactSources/shop/cart").await.json();
    assert_eq!(shown["spec"]["images"], json!(["registry.test/shop/*", "s3://releases/cart-*"]));
    stand.like("ci");
    for image in ["registry.test/other/cart", "evil.test/registry.test/shop/cart", "s3://others/cart-1.zip", "shop"] {
        let told = refused(&mut stand, 2, image).await;
        assert!(told.ends_with("send one of `registry.test/shop/*`, `s3://releases/cart-*`, as its spec.images says"), "{told}");
    }
    for (n, image) in
        [(1, "registry.test/shop/cart"), (2, "registry.test/shop/cart:v1"), (3, "s3://releases/cart-1.zip?versionId=v")]
    {
        assert_eq!(push(&mut stand, n, image).await.status, 202, "{image}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_that_does_not_say_takes_what_its_project_may_use() {
    // Whoever administers the installation has applied it.
    let mut stand = stand("webhook: {secret: registry}").await;
    stand.like("ci");
    assert_eq!(push(&mut stand, 1, "registry.test/shop/cart").await.status, 202);
    // Somebody else has changed it.
    let changed = format!("{}  tags: [{{name: stable, pattern: 'v*'}}]\n", source("webhook: {secret: registry}"));
    stand.like("owner").manifests(&changed).await;
    stand.like("ci");
    let told = refused(&mut stand, 2, "registry.test/shop/cart").await;
    assert!(
        told.contains("project shop may not use image registry.test/shop/cart: an administrator of the installation"),
        "{told}"
    );
    assert!(told.ends_with("or list its repository in spec.images of the manifest of kind ArtifactSource shop/cart"), "{told}");
    stand.like("").manifests(&policy("{allows: {images: ['registry.test/shop/*']}}")).await;
    stand.like("ci");
    assert_eq!(push(&mut stand, 3, "registry.test/shop/cart").await.status, 202);
    refused(&mut stand, 4, "registry.test/other").await;
}

#[tokio::test(start_paused = true)]
async fn a_project_follows_a_repository_that_its_policy_allows() {
    let mut stand = stand("webhook: {secret: registry}").await;
    let ecr = source("ecr: {repository: shop/cart}");
    let apply = async |stand: &Stand, text: &str| stand.post_text("/v1/apply", "application/yaml", text.to_owned()).await;
    let answer = apply(stand.like("owner"), &ecr).await;
    let told = format!(
        "ArtifactSource cart: spec.ecr.repository: project shop may not use image {OURS}: an administrator of the installation"
    );
    assert_eq!((answer.status, answer.problem().starts_with(&told)), (403, true), "{answer:?}");
    stand.like("").manifests(&policy("{allows: {images: ['*.dkr.ecr.eu-central-1.amazonaws.com/shop/*']}}")).await;
    assert_eq!(apply(stand.like("owner"), &ecr).await.status, 200);
    assert_eq!(apply(&stand, &ecr.replace("shop/cart}", "other/cart}")).await.status, 403);
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_signed_pushes_is_taken_and_only_wrong_signatures_are_limited() {
    let secrets = Known::default().with("shop/registry", r#"{"keys": [{"id": "r", "key": "s3cret"}]}"#);
    let mut stand = Stand::with_secrets(Limits::default(), Duration::from_secs(60), secrets);
    let other = SOURCE.replace("name: cart", "name: other");
    stand.manifests(&format!("{SOURCE}---\n{other}---\n{}", manifest("cart", "a", true))).await;
    let send = async |stand: &Stand, source: &str, key: &str, n: u64| {
        let path = format!("/v1/artifacts/shop/{source}");
        let body = json!({"tag": "latest", "digest": digest(n), "image": "registry.test/shop/cart"}).to_string();
        let (installation, body_of) = (crate::stand::INSTALLATION, body.as_bytes());
        let canonical = Canonical { installation, method: "POST", path: &path, query: "", body: body_of };
        let signed =
            Signed::new(&canonical, ("r", key.as_bytes()), Algorithm::Sha256, stand.world.now(), &format!("nonce-{source}{n:020}"));
        let request = signed.headers().into_iter().fold(Request::post(path), |request, (name, value)| request.header(name, value));
        stand.request(request.header("content-type", "application/json").body(Body::from(body)).unwrap()).await.status
    };
    for n in 1..=60 {
        stand.world.pass(Span(100));
        assert_eq!(send(&stand, "cart", "s3cret", n).await, 202, "push {n}");
    }
    settle(&mut stand).await;
    assert_eq!(status(&stand).await["latest"]["images"]["web"], json!(format!("registry.test/shop/cart@{}", digest(60))));
    stand.world.pass(Span::seconds(30));
    for n in 100..120 {
        assert_eq!(send(&stand, "cart", "wrong", n).await, 401);
    }
    let before = stand.world.core().request_count();
    assert_eq!(send(&stand, "cart", "wrong", 120).await, 429);
    assert_eq!(stand.world.core().request_count(), before + 1, "one read");
    assert_eq!(send(&stand, "other", "s3cret", 121).await, 202, "of one source only");
    stand.world.pass(Span::seconds(30));
    assert_eq!(send(&stand, "cart", "s3cret", 122).await, 202);
}
