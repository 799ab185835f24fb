//! Names that are hashed into keys: what stands at the place of another name is not taken for one's own.

use crate::deployments::versions::{SOURCE, digest, image, manifest, settle, status};
use crate::pipelines::applied::{BY_REQUEST, CARTS};
use crate::stand::Stand;
use keelway_domain::deployments::definition::ImageTag;
use keelway_domain::promotions::definition::{App, Target};
use keelway_domain::time::Span;
use keelway_engine::deployments::keys;
use keelway_engine::item::{Item, Key};
use keelway_engine::ports::{Condition, Store, Write};
use keelway_engine::promotions::keys as targets;
use keelway_engine::sequences::Limits;
use keelway_world::at_once::AtOnce;
use serde_json::json;
use std::time::Duration;

async fn read(stand: &Stand, key: &Key) -> Item {
    AtOnce::new(stand.world.worker(3)).get(key).await.unwrap().unwrap()
}

async fn write(stand: &Stand, item: Item) {
    AtOnce::new(stand.world.worker(3)).write(&Write::Put(item, Condition::Always)).await.unwrap();
}

/// Removes or replaces the name that an item says it is about.
fn about(mut item: Item, name: Option<&str>) -> Item {
    item.attrs.remove("of").expect("it says whose it is");
    item.with_some("of", name)
}

#[tokio::test(start_paused = true)]
async fn a_tag_at_the_place_of_another_sources_is_neither_read_nor_moved() {
    let mut stand = Stand::with(Limits::default(), Duration::from_secs(60));
    stand.manifests(SOURCE).await;
    let key = keys::head(&ImageTag { namespace: "shop".into(), name: "cart".into(), tag: "latest".into() });
    let push = async |stand: &mut Stand, n: u64| {
        stand.world.pass(Span::seconds(1));
        let body = json!({"tag": "latest", "digest": digest(n), "image": "registry.test/shop/cart"});
        assert_eq!(stand.post("/v1/artifacts/shop/cart", &body).await.status, 202);
        settle(stand).await;
    };
    push(&mut stand, 1).await;
    let own = read(&stand, &key).await;
    // As if a source of another team had the same hash.
    write(&stand, about(own.clone(), Some("team-a/other"))).await;
    stand.manifests(&manifest("cart", "a", true)).await;
    settle(&mut stand).await;
    assert_eq!(status(&stand).await["latestVersion"], 0, "another source's image is not deployed");
    let before = read(&stand, &key).await;
    push(&mut stand, 2).await;
    assert_eq!(read(&stand, &key).await, before, "another source's tag is not moved");

    // What was written before names were noted is one's own, and gets its name with the next push.
    write(&stand, about(before, None)).await;
    stand.manifests(&manifest("cart", "b", true)).await;
    settle(&mut stand).await;
    assert_eq!(status(&stand).await["latest"]["images"]["web"], json!(image(1)));
    push(&mut stand, 3).await;
    assert_eq!(read(&stand, &key).await.text("of"), Some("shop/cart"));
}

#[tokio::test(start_paused = true)]
async fn a_deletion_at_the_place_of_another_sources_stops_no_rollback() {
    let mut stand = crate::deployments::versions::stand().await;
    let delete = json!({"digest": digest(1), "action": "delete"});
    assert_eq!(stand.post("/v1/artifacts/shop/cart", &delete).await.status, 202);
    crate::deployments::versions::push(&mut stand, 2).await;
    crate::deployments::versions::deploy(&mut stand, 2, 0).await;
    let key = keys::image("shop", "cart", &digest(1));
    let dry = json!({"release": 1, "dryRun": true});
    assert_eq!(crate::deployments::versions::ask(&mut stand, "rollback", &dry).await.status, 422);
    let own = read(&stand, &key).await;
    write(&stand, about(own.clone(), Some("team-a/other"))).await;
    assert_eq!(crate::deployments::versions::ask(&mut stand, "rollback", &dry).await.status, 200);
    write(&stand, about(own, None)).await;
    assert_eq!(crate::deployments::versions::ask(&mut stand, "rollback", &dry).await.status, 422);
}

#[tokio::test]
async fn a_fact_at_the_place_of_another_target_is_neither_read_nor_replaced() {
    let mut stand = Stand::new();
    stand.manifests(&crate::pipelines::applied::manifest("carts", BY_REQUEST)).await;
    stand.observe("dev", "v1/R").await;
    let app = App { api_version: "helm.toolkit.fluxcd.io/v2".into(), kind: "HelmRelease".into(), name: "carts".into() };
    let key = targets::observation(&app, &Target { cluster: None, namespace: "dev".into() });
    let own = read(&stand, &key).await;
    let revision = async |stand: &Stand| stand.get(CARTS).await.json()["environments"][0]["targets"][0]["revision"].clone();
    assert_eq!(revision(&stand).await, "v1");

    write(&stand, about(own.clone(), Some("[\"\",\"other\",\"\",\"\",\"\"]"))).await;
    assert_ne!(revision(&stand).await, "v1", "another target's fact is not shown");
    let before = read(&stand, &key).await;
    stand.observe("dev", "v2/R").await;
    assert_eq!(read(&stand, &key).await, before, "another target's fact is not replaced");

    write(&stand, about(own, None)).await;
    assert_eq!(revision(&stand).await, "v1", "what was written before names were noted is one's own");
    stand.observe("dev", "v3/R").await;
    assert_eq!((revision(&stand).await, read(&stand, &key).await.text("of").is_some()), (json!("v3"), true));
}
