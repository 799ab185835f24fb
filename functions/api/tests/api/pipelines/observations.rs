//! `POST /v1/observations`.

use crate::pipelines::applied::{BY_REQUEST, CARTS, manifest};
use crate::stand::Stand;
use serde_json::{Value, json};

fn object(namespace: &str, version: &str, revision: &str) -> Value {
    json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"name": "carts", "namespace": namespace, "generation": 2, "resourceVersion": version},
        "spec": {"suspend": true},
        "status": {"observedGeneration": 2, "lastAppliedRevision": revision, "conditions": [{"type": "Ready", "status": "True"}]}
    })
}

#[tokio::test]
async fn whole_objects_move_a_pipeline_and_older_ones_do_not() {
    let mut stand = Stand::new();
    stand.manifests(&manifest("carts", BY_REQUEST)).await;
    let all = json!([object("dev", "10", "v1"), object("staging", "10", "v1"), object("prod", "10", "v1")]);
    let answer = stand.post("/v1/observations", &all).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(
        answer.json()["facts"][0],
        json!({"kind": "HelmRelease", "name": "carts", "namespace": "dev", "version": 10, "suspended": true, "newer": true})
    );
    stand.work().await;
    let answer = stand.post("/v1/observations", &object("dev", "11", "v2")).await;
    assert_eq!(answer.json()["facts"][0]["newer"], true);
    stand.work().await;
    assert_eq!(stand.forge.opened(), ["staging v2"]);
    let late = stand.post("/v1/observations", &object("dev", "9", "v0")).await;
    assert_eq!((late.status, &late.json()["facts"][0]["newer"]), (200, &json!(false)));
    stand.work().await;
    assert_eq!(stand.get(CARTS).await.json()["run"]["revision"], "v2");
}

#[tokio::test]
async fn an_error_is_surfaced_at_its_target() {
    let mut stand = Stand::new();
    stand.manifests(&manifest("carts", BY_REQUEST)).await;
    let fact = json!({"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "name": "carts", "namespace": "dev",
        "error": "the cluster does not answer"});
    assert_eq!(stand.post("/v1/observations", &fact).await.status, 200);
    stand.work().await;
    let state = stand.get(CARTS).await.json();
    assert_eq!(state["environments"][0]["targets"][0]["error"], "the cluster does not answer");
    assert_eq!(state["reason"], "TargetNotReadable");
}

#[tokio::test]
async fn a_target_that_nobody_names_is_accepted_and_does_nothing() {
    let mut stand = Stand::new();
    let unknown = stand.post("/v1/observations?cluster=default/prod", &object("nowhere", "1", "v1")).await;
    assert_eq!((unknown.status, &unknown.json()["facts"][0]["cluster"]), (200, &json!("default/prod")));
    assert!(!stand.step().await);
}

#[tokio::test]
async fn bad_entries_are_told_at_once_and_nothing_is_kept() {
    let stand = Stand::new();
    let body = json!([object("dev", "1", "v1"), {"kind": "x"}, {"metadata": {}}]);
    let refused = stand.post("/v1/observations", &body).await;
    let detail = refused.problem();
    for part in ["nothing was kept", "[1].apiVersion is missing", "[1].ready is missing", "[2].metadata.name is missing"] {
        assert!(detail.contains(part), "{part}: {detail}");
    }
    assert_eq!(refused.status, 400);
    assert!(stand.world.core().table.items().next().is_none());
    for (path, body) in [("/v1/observations", "{"), ("/v1/observations?clustr=x", "[]"), ("/v1/observations", "7")] {
        assert_eq!(stand.post_text(path, "application/json", body.into()).await.status, 400, "{path} {body}");
    }
    let bare = stand.post("/v1/observations?cluster=prod", &object("dev", "1", "v1")).await;
    assert!(bare.problem().contains("<namespace>/<name>"), "{bare:?}");
}
