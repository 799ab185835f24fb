//! Clusters and git hosts.

use crate::stand::Stand;
use serde_json::{Value, json};

const CLUSTER: &str = "apiVersion: keelway.dev/v1\nkind: Cluster\nmetadata: {name: prod, namespace: shop}\nspec:\n  server: https://10.0.0.1:6443\n  \
                       secretRef: {name: prod-token}\n";
const HOST: &str = "apiVersion: keelway.dev/v1\nkind: GitHost\nmetadata: {name: forge}\nspec:\n  host: git.test\n  type: gitea\n  api: \
                    https://git.test/api/v1\n  webhookSecretRef: {name: hook}\n";

#[tokio::test]
async fn what_is_registered_is_listed_read_and_deleted() {
    let mut stand = Stand::new();
    let applied = stand.manifests(&format!("{CLUSTER}---\n{HOST}---\n{}", CLUSTER.replace("shop", "other"))).await;
    assert_eq!(applied["applied"][0], json!({"kind": "Cluster", "name": "prod", "project": "shop", "changed": true}));
    assert_eq!(applied["applied"][1], json!({"kind": "GitHost", "name": "forge", "project": "", "changed": true}));
    let again = stand.manifests(CLUSTER).await;
    assert_eq!(again["applied"][0]["changed"], false);

    let names = |list: &Value| -> Vec<String> {
        list["items"].as_array().unwrap().iter().map(|item| format!("{}/{}", item["namespace"], item["name"])).collect()
    };
    let all = stand.get("/v1/clusters").await.json();
    assert_eq!(names(&all), ["\"other\"/\"prod\"", "\"shop\"/\"prod\""]);
    assert_eq!(names(&stand.get("/v1/clusters?namespace=shop").await.json()), ["\"shop\"/\"prod\""]);
    let first = stand.get("/v1/clusters?pageSize=1").await.json();
    assert_eq!(first["nextPageKey"], "other/prod");
    assert_eq!(names(&stand.get("/v1/clusters?nextPageKey=other/prod").await.json()), ["\"shop\"/\"prod\""]);

    let one = stand.get("/v1/clusters/shop/prod").await.json();
    assert_eq!((&one["kind"], &one["version"]), (&json!("Cluster"), &json!(1)));
    assert_eq!(one["spec"], json!({"server": "https://10.0.0.1:6443", "secret": "prod-token"}));
    assert_eq!(stand.get("/v1/clusters/shop/prod/manifest").await.text, format!("{CLUSTER}---\n").trim_end_matches("---\n"));
    let host = stand.get("/v1/githosts/forge").await.json();
    assert_eq!(
        host["spec"],
        json!({"host": "git.test", "type": "gitea", "api": "https://git.test/api/v1", "webhookSecret": "hook"})
    );
    assert_eq!(names(&stand.get("/v1/githosts").await.json()), ["null/\"forge\""]);

    let unknown = stand.get("/v1/githosts/forg").await;
    assert_eq!((unknown.status, unknown.problem().contains("did you mean \"forge\"")), (404, true), "{unknown:?}");
    for path in ["/v1/clusters/shop/prod", "/v1/githosts/forge"] {
        assert_eq!((stand.delete(path).await.status, stand.delete(path).await.status), (204, 404), "{path}");
        assert_eq!(stand.get(path).await.status, 404);
    }
}

#[tokio::test]
async fn a_cluster_is_observed_when_asked_for() {
    let mut stand = Stand::new();
    stand.manifests(CLUSTER).await;
    let sent = |stand: &Stand| {
        let core = stand.world.core();
        core.queue
            .messages
            .values()
            .filter(|message| message.engine == "observer")
            .map(|message| message.parcel.text())
            .collect::<Vec<_>>()
    };
    let answer = stand.post("/v1/clusters/shop/prod/observe", &json!({})).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    assert_eq!(sent(&stand), [r#"{"keelway":"observe","cluster":"shop/prod"}"#]);
    let unknown = stand.post("/v1/clusters/shop/prd/observe", &json!({})).await;
    assert_eq!(
        (unknown.status, unknown.problem().contains("in namespace \"shop\": did you mean \"prod\"")),
        (404, true),
        "{unknown:?}"
    );
    assert_eq!(sent(&stand).len(), 1);
}

#[tokio::test]
async fn a_host_has_one_registration() {
    let mut stand = Stand::new();
    stand.manifests(HOST).await;
    let other = HOST.replace("name: forge", "name: other");
    let refused = stand.post_text("/v1/apply", "application/yaml", other.clone()).await;
    assert_eq!((refused.status, refused.problem().contains("registered by git host forge")), (409, true), "{refused:?}");
    assert_eq!(stand.delete("/v1/githosts/forge").await.status, 204);
    stand.manifests(&other).await;
}

#[tokio::test]
async fn what_is_known_of_a_deleted_cluster_expires() {
    let mut stand = Stand::new();
    let pipeline = "apiVersion: pipelines.weave.works/v1alpha1\nkind: Pipeline\nmetadata: {name: carts, namespace: shop}\nspec:\n  appRef: \
                    {apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, name: carts}\n  environments:\n  - name: dev\n    targets:\n    \
                    - {namespace: dev, clusterRef: {kind: Cluster, name: prod, namespace: shop}}\n";
    stand.manifests(&format!("{CLUSTER}---\n{pipeline}")).await;
    let fact = json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "name": "carts", "namespace": "dev", "cluster": "shop/prod",
        "revision": "v1", "ready": true
    });
    assert_eq!(stand.post("/v1/observations", &fact).await.status, 200);
    let expires = |stand: &Stand| {
        let core = stand.world.core();
        let facts: Vec<_> = core.table.items().filter(|item| item.key.pk.starts_with("O#") && item.key.sk == "!").collect();
        assert_eq!(facts.len(), 1, "{facts:?}");
        facts[0].number("ttl")
    };
    assert_eq!(expires(&stand), None);
    assert_eq!(stand.delete("/v1/clusters/shop/prod").await.status, 204);
    assert!(expires(&stand).is_some());
}
