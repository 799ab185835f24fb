//! What is read, who is woken, and what a cluster costs in which nothing happens.

use crate::api::{FLUX, HELM, path};
use crate::stand::{PROD, Stand, in_prod, runs, target, to};
use keelway_domain::address::Address;
use keelway_domain::time::Span;
use keelway_engine::ports::Store;
use keelway_engine::promotions::keys;
use keelway_world::at_once::AtOnce;
use keelway_world::queue::Parcel;
use keelway_world::story::handle;
use serde_json::json;

#[tokio::test]
async fn only_what_applied_pipelines_name_is_read() {
    let mut stand = Stand::new().await;
    for namespace in ["dev", "prod", "other"] {
        stand.server.kube().runs(namespace, "cart", Some("1.0.0"), "True");
        stand.server.kube().runs(namespace, "orders", Some("1.0.0"), "True");
    }
    assert_eq!(stand.tick().await, 0, "nothing is named there");
    assert_eq!(stand.server.kube().asked.len(), 0);

    stand.apply("cart", &in_prod(&["dev", "prod"])).await;
    stand.apply("same", &in_prod(&["prod"])).await;
    assert_eq!(stand.minute().await, 1);
    assert_eq!(stand.server.kube().reads().len(), 2, "an object that two pipelines name is read once");
    assert_eq!(stand.server.kube().reads().iter().filter(|read| **read == path("prod", "cart")).count(), 1);
    assert!(runs("1.0.0", true, stand.known("cart", "dev").await));

    // What is no longer named is no longer read.
    stand.apply("cart", &in_prod(&["dev"])).await;
    stand.pipelines.delete(&to("same")).await.unwrap();
    stand.work().await;
    stand.server.kube().asked.clear();
    stand.minute().await;
    assert_eq!(stand.server.kube().reads(), [path("dev", "cart")]);
    stand.pipelines.delete(&to("cart")).await.unwrap();
    assert_eq!(stand.minute().await, 0);
}

#[tokio::test]
async fn an_observation_wakes_its_pipelines_and_no_others() {
    let mut stand = Stand::new().await;
    stand.server.kube().runs("dev", "cart", Some("1.0.0"), "True");
    stand.server.kube().runs("prod", "cart", Some("1.0.0"), "True");
    stand.apply("a", &in_prod(&["dev", "prod"])).await;
    stand.apply("b", &in_prod(&["dev"])).await;
    stand.apply("c", &in_prod(&["prod"])).await;
    stand.minute().await;
    assert_eq!(stand.woken(), ["a", "a", "b", "c"]);

    stand.server.kube().runs("prod", "cart", Some("2.0.0"), "Unknown");
    stand.minute().await;
    assert_eq!(stand.woken(), ["a", "c"]);
    assert!(runs("2.0.0", false, stand.known("c", "prod").await));
}

#[tokio::test]
async fn a_steady_hour_wakes_nobody_and_writes_no_fact() {
    let mut stand = Stand::new().await;
    stand.server.kube().runs("dev", "cart", Some("1.0.0"), "True");
    stand.apply("cart", &in_prod(&["dev", "gone"])).await;
    stand.minute().await;
    assert_eq!(stand.woken().len(), 2);
    let item = |namespace: &str| {
        let key = keys::observation(&in_prod(&[]).app, &target(Some(PROD), namespace));
        let store = AtOnce::new(stand.world.worker(9));
        async move { store.get(&key).await.unwrap().unwrap() }
    };
    let before = (item("dev").await, item("gone").await);
    let discoveries = stand.server.kube().discoveries();
    let observed = stand.observed;
    for _ in 0..60 {
        // The object's version rises, but nothing of interest changes.
        stand.server.kube().runs("dev", "cart", Some("1.0.0"), "True");
        assert_eq!(stand.minute().await, 1);
    }
    assert_eq!(stand.woken(), Vec::<String>::new());
    let item = |namespace: &str| {
        let key = keys::observation(&in_prod(&[]).app, &target(Some(PROD), namespace));
        let store = AtOnce::new(stand.world.worker(9));
        async move { store.get(&key).await.unwrap().unwrap() }
    };
    assert_eq!((item("dev").await, item("gone").await), before);
    assert_eq!(stand.observed - observed, 60);
    assert_eq!(stand.server.kube().discoveries() - discoveries, 6, "what was discovered is used for ten minutes");
}

#[tokio::test]
async fn what_a_crash_left_out_is_done_by_the_next_delivery() {
    let mut stand = Stand::new().await;
    stand.server.kube().runs("dev", "cart", Some("1.0.0"), "True");
    stand.apply("cart", &in_prod(&["dev"])).await;
    stand.observer.tick().await.unwrap();
    // The fact is kept, but the message to the pipeline is lost with the worker.
    let (id, _, received) = stand.next().unwrap();
    handle(&stand.observer, &received).await.unwrap();
    let sent: Vec<u64> = stand.world.core().queue.messages.keys().copied().filter(|other| *other != id).collect();
    assert_eq!(sent.len(), 1);
    stand.world.core().queue.acknowledge(sent[0]);
    assert!(runs("1.0.0", true, stand.known("cart", "dev").await));
    // Another message in the meantime sees nothing new; the one that comes back completes what it began.
    assert_eq!(stand.minute().await, 1);
    assert_eq!(stand.woken(), Vec::<String>::new());
    let now = stand.world.now();
    stand.world.core().queue.give_back(id, now);
    stand.work().await;
    assert_eq!(stand.woken(), ["cart"]);
}

#[tokio::test]
async fn health_is_that_of_the_generation_that_is_asked_for() {
    let mut stand = Stand::new().await;
    stand.server.kube().runs("dev", "cart", Some("1.0.0"), "True");
    stand.apply("cart", &in_prod(&["dev"])).await;
    stand.minute().await;
    assert!(runs("1.0.0", true, stand.known("cart", "dev").await));
    stand.server.kube().change("dev", |object| object["metadata"]["generation"] = json!(2));
    stand.minute().await;
    assert!(runs("1.0.0", false, stand.known("cart", "dev").await));
    stand.server.kube().change("dev", |object| object["status"]["observedGeneration"] = json!(2));
    stand.minute().await;
    assert!(runs("1.0.0", false, stand.known("cart", "dev").await), "the condition is still about the generation before");
    stand.server.kube().change("dev", |object| object["status"]["conditions"][0]["observedGeneration"] = json!(2));
    stand.minute().await;
    assert!(runs("1.0.0", true, stand.known("cart", "dev").await));
    assert_eq!(stand.woken(), ["cart"; 3], "the third reading said the same as the second");
}

#[tokio::test]
async fn newer_releases_have_their_revision_in_the_history() {
    let mut stand = Stand::new().await;
    stand.server.kube().runs("dev", "cart", None, "True");
    let history = json!([{"chartVersion": "3.1.0", "status": "deployed"}, {"chartVersion": "3.0.0", "status": "superseded"}]);
    stand.server.kube().change("dev", |object| object["status"]["history"] = history);
    stand.apply("cart", &in_prod(&["dev"])).await;
    stand.minute().await;
    assert!(runs("3.1.0", true, stand.known("cart", "dev").await));
}

#[tokio::test]
async fn hundreds_of_targets_are_read_page_by_page() {
    let mut stand = Stand::new().await;
    let names: Vec<String> = (0..300).map(|n| format!("tenant-{n}")).collect();
    for name in &names {
        stand.server.kube().runs(name, "cart", Some("1.0.0"), "True");
    }
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    stand.apply("cart", &in_prod(&all)).await;
    stand.minute().await;
    let mut read = stand.server.kube().reads();
    read.sort();
    let mut expected: Vec<String> = names.iter().map(|name| path(name, "cart")).collect();
    expected.sort();
    assert_eq!(read, expected, "each once");
    assert_eq!((stand.observed, stand.server.kube().discoveries()), (4, 1));
    assert_eq!(stand.woken().len(), 300);
    for name in &names {
        assert!(runs("1.0.0", true, stand.known("cart", name).await), "{name}");
    }
    stand.minute().await;
    assert_eq!(stand.woken(), Vec::<String>::new());
}

#[tokio::test]
async fn an_object_that_is_named_under_two_versions_is_one_object() {
    let mut stand = Stand::new().await;
    stand.server.kube().runs("dev", "cart", Some("1.0.0"), "True");
    let mut old = in_prod(&["dev"]);
    old.app.api_version = "helm.toolkit.fluxcd.io/v1".into();
    stand.apply("old", &old).await;
    stand.apply("present", &in_prod(&["dev"])).await;
    stand.minute().await;
    assert_eq!(stand.server.kube().reads(), [path("dev", "cart")], "under the version that the cluster serves");
    assert!(runs("1.0.0", true, stand.known("old", "dev").await) && runs("1.0.0", true, stand.known("present", "dev").await));
    stand.woken();
    stand.minute().await;
    assert_eq!(stand.woken(), Vec::<String>::new());
}

#[tokio::test]
async fn other_kinds_are_found_by_discovery() {
    let mut stand = Stand::new().await;
    let found = format!("/apis/{FLUX}/namespaces/dev/kustomizations/cart");
    let object = json!({
        "apiVersion": FLUX, "kind": "Kustomization", "metadata": {"name": "cart", "namespace": "dev"},
        "status": {"lastAppliedRevision": "main@sha1:abc", "conditions": [{"type": "Ready", "status": "True"}]},
    });
    stand.server.kube().objects.insert(found.clone(), object);
    let mut definition = in_prod(&["dev"]);
    definition.app.api_version = FLUX.into();
    definition.app.kind = "Kustomization".into();
    stand.apply("cart", &definition).await;
    stand.minute().await;
    assert_eq!(stand.server.kube().asked, [format!("/apis/{FLUX}"), found]);
    assert!(runs("main@sha1:abc", true, stand.known("cart", "dev").await));
    assert_ne!(FLUX, HELM);
}

#[tokio::test]
async fn a_cluster_is_observed_at_once_when_somebody_asks() {
    let mut stand = Stand::new().await;
    stand.server.kube().runs("dev", "cart", Some("1.0.0"), "True");
    stand.apply("cart", &in_prod(&["dev"])).await;
    assert!(stand.pipelines.observe_cluster(&Address::parse(PROD)).await.unwrap());
    assert!(!stand.pipelines.observe_cluster(&Address::parse("shop/other")).await.unwrap());
    stand.work().await;
    assert!(runs("1.0.0", true, stand.known("cart", "dev").await));
    // A message about a cluster that was taken out meanwhile does nothing.
    stand.pipelines.observe_cluster(&Address::parse(PROD)).await.unwrap();
    stand.pipelines.clusters().delete(&Address::parse(PROD)).await.unwrap();
    stand.server.kube().asked.clear();
    stand.pass(Span::seconds(1));
    let body = stand.next().unwrap().2.parcel;
    assert!(matches!(body, Parcel::Own(_)));
    stand.work().await;
    assert_eq!(stand.server.kube().asked.len(), 0);
}
