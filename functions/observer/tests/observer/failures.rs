//! What cannot be read, and what becomes of it.

use crate::api::{TOKEN, path};
use crate::stand::{PROD, Stand, definition, in_prod, runs, target};
use keelway_domain::address::Address;
use keelway_domain::condition::Condition;
use keelway_domain::promotions::definition::App;
use keelway_domain::time::Span;
use keelway_engine::promotions::observations::Fact;
use serde_json::json;

/// The error after a reading, which must not contain the token, and stays the same when it is read again.
async fn told(stand: &mut Stand, pipeline: &str, namespace: &str) -> String {
    stand.minute().await;
    let error = stand.error(pipeline, namespace).await;
    assert!(!error.contains(TOKEN), "{error}");
    stand.woken();
    stand.minute().await;
    assert_eq!(stand.woken(), Vec::<String>::new(), "{error}");
    error
}

#[tokio::test]
async fn errors_are_told_target_by_target() {
    let mut stand = Stand::new().await;
    for namespace in ["dev", "closed", "mute"] {
        stand.server.kube().runs(namespace, "cart", Some("1.0.0"), "True");
    }
    stand.server.kube().runs("mute", "cart", None, "True");
    stand.server.kube().forbidden.insert(path("closed", "cart"));
    stand.apply("cart", &in_prod(&["dev", "closed", "mute", "gone"])).await;
    stand.minute().await;
    assert!(runs("1.0.0", true, stand.known("cart", "dev").await));
    let error = told(&mut stand, "cart", "closed").await;
    assert!(
        error.starts_with("the token in secret \"shop/token\" may not read it (403): User") && error.contains("***"),
        "{error}"
    );
    assert_eq!(told(&mut stand, "cart", "gone").await, "there is no HelmRelease cart in namespace gone");
    let error = told(&mut stand, "cart", "mute").await;
    assert!(error.contains("is Ready, but names no revision in status.lastAppliedRevision"), "{error}");
    let (reason, message) = stand.condition("cart").await;
    assert_eq!(
        (reason.as_str(), message.contains("closed in cluster shop/prod: the token in secret")),
        ("TargetNotReadable", true)
    );
}

#[tokio::test]
async fn kinds_that_are_not_served() {
    let mut stand = Stand::new().await;
    let named = |api_version: &str, kind: &str| {
        let mut definition = in_prod(&["dev"]);
        definition.app = App { api_version: api_version.into(), kind: kind.into(), name: "cart".into() };
        definition
    };
    stand.apply("group", &named("example.com/v1", "Widget")).await;
    stand.apply("kind", &named("v1", "Widget")).await;
    stand.apply("cluster", &named("v1", "Namespace")).await;
    stand.apply("path", &named("../../v1", "Pod")).await;
    stand.apply("dots", &named("../v1", "Pod")).await;
    let error = told(&mut stand, "group", "dev").await;
    assert!(error.contains("does not serve example.com/v1: correct apiVersion, or install"), "{error}");
    assert!(stand.error("kind", "dev").await.contains("v1 has no kind Widget"));
    assert!(stand.error("cluster", "dev").await.contains("has no namespaces"));
    for pipeline in ["path", "dots"] {
        assert!(stand.error(pipeline, "dev").await.contains("is not a name that Kubernetes has"), "{pipeline}");
    }
    assert!(stand.server.kube().asked.iter().all(|path| ["/apis/example.com/v1", "/api/v1"].contains(&path.as_str())));
    // A kind is found as soon as it is served, however long the others are remembered.
    let list = json!({"resources": [{"name": "widgets", "kind": "Widget", "namespaced": true}]});
    stand.server.kube().instead.insert("/api/v1".into(), (200, list.to_string()));
    stand.minute().await;
    assert_eq!(stand.error("kind", "dev").await, "there is no Widget cart in namespace dev");
}

#[tokio::test]
async fn a_refused_token_is_tried_once_in_a_reading() {
    let mut stand = Stand::new().await;
    stand.register(PROD, |cluster| cluster.secret = "wrong".into()).await;
    let names: Vec<String> = (0..50).map(|n| format!("n{n}")).collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    stand.apply("cart", &in_prod(&all)).await;
    stand.minute().await;
    assert!(stand.server.kube().asked.len() <= 8, "{:?}", stand.server.kube().asked);
    for name in &names {
        let error = stand.error("cart", name).await;
        assert!(error.contains("refuses the token in secret \"shop/wrong\" (401)"), "{error}");
    }
    // With the right one everything goes on.
    stand.register(PROD, |_| {}).await;
    stand.server.kube().runs("n7", "cart", Some("1.0.0"), "True");
    stand.minute().await;
    assert!(runs("1.0.0", true, stand.known("cart", "n7").await));
    // It expires. What was discovered is still known, so the objects are asked for: as many as are on their way when the first is
    // refused.
    stand.server.kube().asked.clear();
    stand.server.kube().always = Some((401, String::new()));
    stand.minute().await;
    assert!(stand.server.kube().reads().len() <= 16, "{:?}", stand.server.kube().asked);
    assert!(stand.error("cart", "n7").await.contains("(401)"));
}

#[tokio::test]
async fn without_its_secret_a_cluster_is_not_asked() {
    let mut stand = Stand::new().await;
    stand.register(PROD, |cluster| cluster.secret = "absent".into()).await;
    stand.apply("cart", &in_prod(&["dev"])).await;
    let error = told(&mut stand, "cart", "dev").await;
    assert_eq!(error, "there is no secret \"shop/absent\" with the cluster's token: create it");
    assert_eq!(stand.server.kube().asked.len(), 0);
}

#[tokio::test]
async fn answers_that_make_no_sense_are_told() {
    let mut stand = Stand::new().await;
    stand.apply("cart", &in_prod(&["dev"])).await;
    let place = path("dev", "cart");
    stand.server.kube().runs("dev", "cart", Some("1.0.0"), "True");
    let right = stand.server.kube().objects[&place].clone();
    let with = |field: &str, value: serde_json::Value| {
        let mut object = right.clone();
        *object.pointer_mut(field).unwrap() = value;
        object.to_string()
    };
    let large = format!("{{\"padding\": \"{}\"}}", "x".repeat(5 << 20));
    let all = [
        ("<html>".to_owned(), "something that is not JSON"),
        (large, "with more than 4 MiB"),
        ("[1]".into(), "it is not an object"),
        ("{}".into(), "it has no metadata"),
        (with("/metadata/name", json!("other")), "its metadata.name is \"other\" instead of \"cart\""),
        (with("/metadata/namespace", json!("else")), "its metadata.namespace is \"else\" instead of \"dev\""),
        (with("/kind", json!("List")), "its kind is \"List\" instead of \"HelmRelease\""),
        (with("/apiVersion", json!(7)), "its apiVersion is \"\""),
        (with("/status/lastAppliedRevision", json!("x".repeat(2000))), "status.lastAppliedRevision has more than 1024 bytes"),
        (with("/status/conditions/0/status", json!({"not": "text"})), ""),
        (with("/status", json!([[[]]])), ""),
    ];
    for (body, says) in all {
        stand.server.kube().instead.insert(place.clone(), (200, body));
        let error = told(&mut stand, "cart", "dev").await;
        assert!(error.contains(says) && error.is_empty() == says.is_empty(), "{error:?} instead of {says:?}");
    }
    for (code, says) in [(500, "with status 500: broken"), (302, "redirects (302)"), (418, "with status 418: broken")] {
        let body = if code == 302 { stand.server.url.clone() } else { json!({"kind": "Status", "message": "broken"}).to_string() };
        stand.server.kube().instead.insert(place.clone(), (code, body));
        let error = told(&mut stand, "cart", "dev").await;
        assert!(error.contains(says), "{error}");
    }
    // What is no answer of Kubernetes may be that of anything: nothing of it is repeated.
    for body in [json!({"message": "hunter2"}), json!({"kind": "Secret", "message": "hunter2"}), json!(["hunter2"])] {
        for code in [403, 500] {
            stand.server.kube().instead.insert(place.clone(), (code, body.to_string()));
            let error = told(&mut stand, "cart", "dev").await;
            assert!(error.contains(&code.to_string()) && !error.contains("hunter2"), "{error}");
        }
    }
    stand.server.kube().instead.clear();
    stand.minute().await;
    assert!(runs("1.0.0", true, stand.known("cart", "dev").await));
}

#[tokio::test]
async fn an_outage_of_an_hour_is_one_error_and_one_recovery() {
    let mut stand = Stand::new().await;
    stand.server.kube().runs("dev", "cart", Some("1.0.0"), "True");
    stand.server.kube().runs("prod", "cart", Some("1.0.0"), "True");
    stand.apply("cart", &in_prod(&["dev", "prod"])).await;
    stand.minute().await;
    assert_eq!(stand.condition("cart").await.0, Condition::default().reason);
    stand.woken();

    stand.server.down().await;
    for _ in 0..12 {
        stand.pass(Span::minutes(4));
        stand.minute().await;
    }
    assert_eq!(stand.woken(), ["cart", "cart"], "each target once");
    let error = stand.error("cart", "dev").await;
    assert!(error.starts_with("the API server 127.0.0.1:") && error.ends_with("cannot be reached"), "{error}");
    assert_eq!(stand.condition("cart").await.0, "TargetNotReadable");

    // Back with the very objects of before: their versions are older than the error.
    stand.server.up().await;
    stand.minute().await;
    assert_eq!(stand.woken(), ["cart", "cart"]);
    assert!(runs("1.0.0", true, stand.known("cart", "dev").await) && runs("1.0.0", true, stand.known("cart", "prod").await));
    assert_eq!(stand.condition("cart").await.0, Condition::default().reason);

    // Restored from a backup, its versions begin anew.
    stand.server.kube().runs("dev", "cart", Some("0.9.0"), "True");
    stand.server.kube().change("dev", |object| object["metadata"]["resourceVersion"] = json!("1"));
    stand.minute().await;
    assert!(runs("0.9.0", true, stand.known("cart", "dev").await));
}

#[tokio::test]
async fn a_reading_that_began_earlier_does_not_replace_a_later_report() {
    let mut stand = Stand::new().await;
    stand.apply("cart", &in_prod(&["dev"])).await;
    stand.server.kube().runs("dev", "cart", Some("1.0.0"), "True");
    stand.minute().await;
    let known = stand.known("cart", "dev").await.unwrap();
    let later = stand.world.now().0 + 5;
    let observed = keelway_domain::promotions::observe::Observed { revision: Some("2.0.0".into()), ..known };
    let fact = Fact { app: in_prod(&[]).app, target: target(Some(PROD), "dev"), version: later, observed };
    stand.pipelines.observe(&fact).await.unwrap();
    stand.pipelines.observe_cluster(&Address::parse(PROD)).await.unwrap();
    stand.work().await;
    assert!(runs("2.0.0", true, stand.known("cart", "dev").await));
    stand.minute().await;
    assert!(runs("1.0.0", true, stand.known("cart", "dev").await));
}

#[tokio::test]
async fn a_cluster_that_nobody_registered_is_told() {
    let mut stand = Stand::new().await;
    stand.apply("cart", &definition(&[target(Some("shop/later"), "dev")])).await;
    stand.minute().await;
    let expected = "cluster shop/later is not registered: apply a Cluster, or report about it with POST /v1/observations";
    assert_eq!(stand.error("cart", "dev").await, expected);
    assert_eq!(stand.condition("cart").await, ("TargetNotReadable".into(), format!("dev in cluster shop/later: {expected}")));
    // It is registered later, and found without anything else.
    stand.server.kube().runs("dev", "cart", Some("1.0.0"), "True");
    stand.register("shop/later", |_| {}).await;
    assert_eq!(stand.known("cart", "dev").await, None);
    stand.minute().await;
    assert_eq!(stand.condition("cart").await.0, Condition::default().reason);
}
