//! Who vouches for what is applied: an administrator of the whole installation, for exactly what they applied.

use crate::deployments::versions::{self, CART, ask, deploy, push, settle, status};
use crate::pipelines::applied;
use crate::stand::Stand;
use serde_json::{Value, json};

const CLUSTER: &str = "apiVersion: keelway.dev/v1\nkind: Cluster\nmetadata: {name: eu, namespace: shop}\nspec:\n  server: https://10.0.0.1\n  secretRef: {name: t}\n";

const METRICS: &str = "apiVersion: keelway.dev/v1\nkind: MetricsSource\nmetadata: {name: cloud, namespace: shop}\nspec:\n  cloudwatch: {region: eu-west-1}\n";

/// Each kind that names something of the installation's: its text, another one, one that says the same, and where it is read.
fn kinds() -> [(String, String, String, &'static str); 5] {
    let of = |text: String, was: &str, becomes: &str, path| {
        let (other, same) = (text.replace(was, becomes), format!("# The same.\n{text}"));
        (text, other, same, path)
    };
    let pipeline = applied::manifest("carts", applied::BY_REQUEST);
    [
        of(CLUSTER.into(), "10.0.0.1", "10.0.0.2", "/v1/clusters/shop/eu"),
        of(METRICS.into(), "eu-west-1", "eu-west-2", "/v1/metricsSources/shop/cloud"),
        of(versions::SOURCE.into(), "registry", "another", "/v1/artifactSources/shop/cart"),
        of(versions::manifest("cart", "a", true), "value: a", "value: b", "/v1/deploymentConfigs/shop:cart/status"),
        of(pipeline, "o/r", "o/other", "/v1/pipelines/shop/carts"),
    ]
}

/// A project that may use whatever its team names, whoever vouches for it.
const POLICY: &str = "apiVersion: keelway.dev/v1\nkind: Project\nmetadata: {name: shop}\nspec: {policy: {allows: {servers: ['*'], metrics: [{name: '*', region: '*'}], repositories: ['*']}}}\n";

/// What applying a text did, to the vouch above all: `changed`, what is told about it, and whether there is one.
async fn apply(stand: &mut Stand, text: &str, path: &str) -> (bool, Value, bool) {
    let dry = stand.post_text("/v1/apply?dryRun=true", "application/yaml", text.into()).await.json();
    let answer = stand.manifests(text).await;
    let one = &answer["applied"][0];
    assert_eq!((&dry["applied"][0]["changed"], &dry["applied"][0]["changes"]), (&one["changed"], &one["changes"]), "{text}");
    let told = one["changes"].as_array().into_iter().flatten().find(|change| change["field"] == "vouched");
    let told = told.map(|change| json!([change["was"], change["becomes"]])).unwrap_or_default();
    let shown = stand.get(path).await.json();
    assert!(shown["spec"].get("vouched").is_none(), "it is no part of the manifest: {shown}");
    (one["changed"] == true, told, shown["vouched"] == true)
}

#[tokio::test]
async fn a_vouch_is_for_what_an_administrator_of_everything_applied() {
    for (text, other, same, path) in kinds() {
        let mut stand = Stand::new();
        stand.manifests(POLICY).await;
        stand.token("team", &["administer"], &["shop"]).await;
        let (gone, given) = (json!([true, false]), json!([false, true]));
        for (who, text, expected) in [
            ("team", &text, (true, Value::Null, false)),
            ("team", &text, (false, Value::Null, false)),
            ("", &text, (true, given.clone(), true)),
            ("", &text, (false, Value::Null, true)),
            ("team", &text, (false, Value::Null, true)),
            ("team", &same, (true, Value::Null, true)),
            ("team", &other, (true, gone.clone(), false)),
            ("team", &text, (true, Value::Null, false)),
            ("", &other, (true, given, true)),
            ("team", &text, (true, gone, false)),
        ] {
            assert_eq!(apply(stand.like(who), text, path).await, expected, "{who} applies {text}");
        }
    }
}

/// A token with `administer` in some projects, or with less in all of them, vouches for nothing.
#[tokio::test]
async fn who_vouches() {
    let mut stand = Stand::new();
    stand.manifests(POLICY).await;
    stand.token("some", &["administer"], &["shop", "other"]).await;
    stand.token("all", &["administer"], &[]).await;
    for (who, vouched) in [("some", false), ("all", true)] {
        assert_eq!(apply(stand.like(who), CLUSTER, "/v1/clusters/shop/eu").await.2, vouched, "{who}");
    }
    let object = |name: &str| {
        json!({
            "apiVersion": "apps.openshift.io/v1", "kind": "DeploymentConfig", "metadata": {"name": name, "namespace": "shop"},
            "spec": {"template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}}
        })
    };
    for (who, name, vouched) in [("some", "one", false), ("all", "two", true)] {
        let created = stand.like(who).post("/v1/deploymentConfigs", &object(name)).await;
        assert_eq!(created.status, 201, "{created:?}");
        let path = format!("/v1/deploymentConfigs/shop:{name}");
        assert_eq!(stand.get(&format!("{path}/status")).await.json()["vouched"] == true, vouched, "{who}");
        for (who, image, vouched) in
            [("some", "web:2", false), ("all", "web:2", true), ("some", "web:2", true), ("some", "web:3", false)]
        {
            let mut changed = object(name);
            changed["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
            let put = stand.like(who).put(&path, &changed).await;
            assert_eq!(put.status, 200, "{put:?}");
            assert!(!put.text.contains("vouched"), "{put:?}");
            assert_eq!(stand.get(&format!("{path}/status")).await.json()["vouched"] == true, vouched, "{who} puts {image}");
        }
    }
}

/// Versions 1 to 3 of `cart`: the administrator's with URL `a`, the team's with `b` and `c`.
async fn three() -> Stand {
    let mut stand = Stand::with(Default::default(), std::time::Duration::from_secs(60));
    stand.token("team", &["administer"], &["shop"]).await;
    versions::begin(&mut stand).await;
    stand.like("team");
    for (n, url) in [(2, "b"), (3, "c")] {
        stand.manifests(&versions::manifest("cart", url, true)).await;
        settle(&mut stand).await;
        deploy(&mut stand, n, 0).await;
        assert_eq!(status(&stand).await["vouched"], Value::Null);
    }
    stand
}

#[tokio::test(start_paused = true)]
async fn a_rollback_has_the_vouch_of_the_version_it_returns_to_and_no_more() {
    for (release, vouched) in [("cart-1", true), ("cart-2", false)] {
        let mut stand = three().await;
        let whole = json!({"release": release, "config": true, "application": true});
        let answer = ask(&mut stand, "rollback", &whole).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(status(&stand).await["vouched"] == true, vouched, "{release}");
        assert!(!stand.get(&format!("{CART}/manifest")).await.text.contains("vouched"));
    }
    // What does not go back is the team's: nobody vouches for the two together.
    let mut stand = three().await;
    let targets =
        versions::manifest("cart", "d", true).replace("  template:", "  targets: [{name: x, kind: own, id: y}]\n  template:");
    stand.manifests(&targets).await;
    settle(&mut stand).await;
    deploy(&mut stand, 4, 0).await;
    let answer = ask(&mut stand, "rollback", &json!({"release": "cart-1", "config": true, "application": true})).await;
    assert_eq!((answer.status, &status(&stand).await["vouched"]), (200, &Value::Null), "{answer:?}");
}

/// Versions follow what is deployed, and a vouch is no part of that.
#[tokio::test(start_paused = true)]
async fn a_vouch_cuts_no_version() {
    let mut stand = three().await;
    let before = status(&stand).await["latestVersion"].clone();
    let answer = stand.like("").manifests(&versions::manifest("cart", "c", true)).await;
    assert_eq!(answer["applied"][0]["changed"], true);
    settle(&mut stand).await;
    assert_eq!((&status(&stand).await["latestVersion"], &status(&stand).await["vouched"]), (&before, &json!(true)));
    push(&mut stand, 9).await;
    assert_eq!(status(&stand).await["vouched"], true, "what is pushed changes no definition");
}
