//! The sweep, when something that it reads cannot be read.

use crate::deployments::versions::{SOURCE, digest, manifest, settle};
use crate::stand::Stand;
use keelway_domain::deployments::definition::ImageTag;
use keelway_domain::time::Span;
use keelway_engine::deployments::{Deployments, Limits, keys};
use keelway_engine::item::Item;
use keelway_engine::ports::Store;
use keelway_engine::protocol::sweep::{Tick, page};
use keelway_world::at_once::AtOnce;
use serde_json::json;
use std::time::Duration;

/// What the tag `latest` of a source points to.
fn head(stand: &Stand, source: &str) -> Item {
    let tag = ImageTag { namespace: "shop".into(), name: source.into(), tag: "latest".into() };
    (**stand.world.core().table.peek(&keys::head(&tag)).unwrap()).clone()
}

#[tokio::test(start_paused = true)]
async fn a_tag_that_cannot_be_read_keeps_no_other_config_from_being_swept() {
    let mut stand = Stand::with(keelway_engine::sequences::Limits::default(), Duration::from_secs(60));
    for name in ["cart", "other"] {
        let config = manifest(name, "a", true).replace("cart:latest", &format!("{name}:latest"));
        stand.manifests(&format!("{}---\n{config}", SOURCE.replace("name: cart", &format!("name: {name}")))).await;
        stand.world.pass(Span::seconds(1));
        let body = json!({"tag": "latest", "digest": digest(1), "image": "registry.test/shop/cart"});
        assert_eq!(stand.post(&format!("/v1/artifacts/shop/{name}"), &body).await.status, 202);
        settle(&mut stand).await;
    }
    let ports = AtOnce::new(stand.world.worker(5));
    let (broken, other) = (head(&stand, "cart"), head(&stand, "other"));
    let newer = other.text("j").unwrap().replace(&digest(1), &digest(2));
    ports.put_batch(&[broken.with("j", "{"), other.with("j", newer)], &[]).await.unwrap();
    // Nobody told the config of the other tag, and no timer comes.
    stand.world.pass(Span::minutes(30));
    stand.world.core().queue.messages.clear();
    let (engine, mut tick) = (Deployments::new(ports, Limits::default()), Tick::default());
    while !page(&engine, &mut tick).await.unwrap().finished {}
    let sent: Vec<String> = stand.world.core().queue.messages.values().map(|message| message.parcel.text()).collect();
    assert!(matches!(&sent[..], [one] if one.contains("evaluate") && one.contains("other")), "{sent:?}");
}
