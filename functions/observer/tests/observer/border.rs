//! Whose pipelines a cluster's token serves, and where it is sent.

use crate::stand::{PROD, Stand, definition, in_prod, runs, target};
use serde_json::{Value, json};

const THEIRS: &str = "team-b/prod";

/// What the server was asked in a look.
async fn asked(stand: &mut Stand) -> usize {
    let before = stand.server.kube().asked.len();
    stand.minute().await;
    stand.server.kube().asked.len() - before
}

#[tokio::test]
async fn a_cluster_of_another_project_is_read_and_shown_only_with_its_consent() {
    let mut stand = Stand::new().await;
    stand.server.kube().runs("dev", "cart", Some("1.0.0"), "True");
    stand.register(THEIRS, |_| {}).await;
    stand.apply("cart", &definition(&[target(Some(THEIRS), "dev")])).await;
    let lets = |names: &str| json!([{"to": ["shop"], "may": ["observe"], "names": [names]}]);
    for (consents, read) in
        [(json!([]), false), (json!([{"to": ["shop"], "may": ["deploy"]}]), false), (lets("other"), false), (lets("prod"), true)]
    {
        stand.project("team-b", consents.clone(), Value::Null).await;
        assert_eq!(asked(&mut stand).await > 0, read, "{consents}");
        let told = "project team-b does not let shop observe prod";
        assert_eq!(stand.error("cart", "dev").await.starts_with(told), !read, "{consents}");
        assert_eq!(runs("1.0.0", true, stand.known("cart", "dev").await), read, "{consents}");
    }
    // It counts no more once the consent is taken back, although it is known.
    stand.project("team-b", json!([]), Value::Null).await;
    assert_eq!(stand.known("cart", "dev").await.unwrap().revision, None);
    assert_eq!(asked(&mut stand).await, 0);
}

/// Entries of those who may not are not in the way of those who may.
#[tokio::test]
async fn many_targets_that_may_not_be_read_do_not_hide_one_that_may() {
    let mut stand = Stand::new().await;
    stand.server.kube().runs("dev", "cart", Some("1.0.0"), "True");
    stand.register(THEIRS, |_| {}).await;
    let many: Vec<_> = (0..250).map(|n| target(Some(THEIRS), &format!("n{n}"))).collect();
    stand.apply("cart", &definition(&many)).await;
    assert_eq!(asked(&mut stand).await, 0);
    let own = promotions_of("team-b");
    stand.pipelines.apply(&own, &definition(&[target(Some(THEIRS), "dev")]), "").await.unwrap();
    assert!(asked(&mut stand).await > 0);
    let view = stand.pipelines.view(&own).await.unwrap().unwrap();
    assert!(runs("1.0.0", true, view.observations.into_values().next()));
}

fn promotions_of(namespace: &str) -> keelway_engine::promotions::Address {
    keelway_engine::promotions::Address { namespace: namespace.into(), name: "cart".into() }
}

#[tokio::test]
async fn a_token_is_sent_only_to_a_server_that_the_project_may_use() {
    let mut stand = Stand::new().await;
    stand.server.kube().runs("dev", "cart", Some("1.0.0"), "True");
    let url = stand.server.url.clone();
    stand.register(PROD, |cluster| cluster.interval = Some(keelway_domain::time::Span::seconds(60))).await;
    stand.apply("cart", &in_prod(&["dev"])).await;
    let lists = |server: &str| json!({"allows": {"servers": [{"name": server}]}});
    // Somebody of the project changes the cluster: no administrator of the installation stands behind that.
    for (vouched, policy, read) in
        [(true, Value::Null, true), (true, lists("https://other.test"), false), (false, lists(&url), true)]
    {
        stand.register(PROD, |cluster| cluster.vouched = vouched).await;
        stand.project("shop", json!([]), policy.clone()).await;
        assert_eq!(asked(&mut stand).await > 0, read, "{vouched} {policy}");
        assert_eq!(stand.error("cart", "dev").await.starts_with("project shop may not use server"), !read, "{policy}");
    }
    stand.project("shop", json!([]), Value::Null).await;
    stand.register(PROD, |cluster| (cluster.secret, cluster.vouched) = ("wrong".into(), false)).await;
    assert_eq!(asked(&mut stand).await, 0, "without a policy, it is who applied");
}
