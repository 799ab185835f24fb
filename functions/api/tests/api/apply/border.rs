//! The border of a project: who writes its consents and its policy, and what stays, goes and is told.

use crate::apply::manifests::shipyard;
use crate::stand::{Answer, Stand};
use keelway_domain::border::{Act, Counted, Home, Resource, ResourceKind};
use keelway_domain::time::Span;
use keelway_engine::border::{self, Border};
use keelway_world::at_once::AtOnce;
use serde_json::{Value, json};

const CONSENTS: &str = "  consents: [{to: [team-a, 'shop-*'], may: [deploy, observe], names: ['web-*']}]\n";
const POLICY: &str = "  policy: {allows: {functions: ['team-b-*', {name: 'edge-*', region: 'eu-*', account: '123456789012'}]}, quotas: {webhooks: 20}}\n";

fn project(spec: &str) -> String {
    format!("apiVersion: keelway.dev/v1\nkind: Project\nmetadata: {{name: team-b}}\nspec:\n  description: ours\n{spec}")
}

async fn apply(stand: &Stand, query: &str, text: &str) -> Answer {
    stand.post_text(&format!("/v1/apply{query}"), "application/yaml", text.into()).await
}

/// Whether applying it changed something, and which fields are said to have changed.
async fn applied(stand: &Stand, query: &str, text: &str) -> (bool, Vec<String>) {
    let answer = apply(stand, query, text).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let one = answer.json()["applied"][0].clone();
    let fields = one["changes"].as_array().into_iter().flatten().map(|change| change["field"].as_str().unwrap().to_owned());
    (one["changed"] == true, fields.collect())
}

async fn stand() -> Stand {
    let mut stand = Stand::new();
    stand.token("team-b", &["administer"], &["team-b"]).await;
    stand.token("reader", &["read"], &["team-b"]).await;
    stand.token("team-a", &["administer"], &["team-a"]).await;
    stand
}

async fn border(stand: &Stand, namespace: &str) -> Border {
    Border::of(&AtOnce::new(stand.world.worker(3)), namespace).await.unwrap()
}

async fn shown(stand: &Stand) -> (Value, Value) {
    let project = stand.get("/v1/project/team-b").await.json();
    let listed = stand.get("/v1/project").await.json()["projects"][0].clone();
    assert_eq!((&listed["consents"], &listed["policy"]), (&project["consents"], &project["policy"]));
    (project["consents"].clone(), project["policy"].clone())
}

#[tokio::test]
async fn whoever_administers_a_project_says_who_is_let_in() {
    let mut stand = stand().await;
    stand.like("team-b");
    assert_eq!(applied(&stand, "", &project(CONSENTS)).await, (true, vec![]));
    assert_eq!(applied(&stand, "", &project(CONSENTS)).await, (false, vec![]));
    let consents = json!([{"to": ["team-a", "shop-*"], "may": ["deploy", "observe"], "names": ["web-*"]}]);
    assert_eq!(shown(&stand).await, (consents.clone(), Value::Null));

    let of = border(&stand, "team-b").await;
    assert_eq!(of.let_in("shop-eu", Act::Deploy, "web-1").unwrap().namespace(), "team-b");
    assert!(of.let_in("shop-eu", Act::Tag, "web-1").is_err() && of.let_in("team-a", Act::Deploy, "api").is_err());
    let ports = AtOnce::new(stand.world.worker(3));
    let asked = || stand.world.core().requests.iter().sum::<u64>();
    let before = asked();
    assert!(border::let_in(&ports, "team-c", Act::Tag, ("team-c", "api")).await.unwrap().is_ok());
    assert_eq!(asked(), before, "one's own needs no read");
    assert!(border::let_in(&ports, "team-a", Act::Observe, ("team-b", "web-1")).await.unwrap().is_ok());
    assert!(border::let_in(&ports, "team-a", Act::Observe, ("Nowhere!", "web-1")).await.unwrap().is_err());

    // Keptn's requests change neither.
    let text = shipyard("s", "    - name: dev\n      sequences: [{name: delivery, tasks: [{name: test}]}]\n");
    let encoded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, text);
    assert_eq!(stand.put("/v1/project", &json!({"name": "team-b", "shipyard": encoded})).await.status, 200);
    assert_eq!(shown(&stand).await.0, consents);

    let other = CONSENTS.replace("deploy, ", "");
    assert_eq!(applied(&stand, "?dryRun=true", &project(&other)).await, (true, vec!["spec.consents[0].may".into()]));
    assert_eq!(shown(&stand).await.0, consents, "a dry run stores nothing");
    assert_eq!(applied(&stand, "", &project("")).await, (true, vec!["spec.consents".into()]), "what is not said is taken back");
    assert_eq!(shown(&stand).await, (Value::Null, Value::Null));
    assert!(border(&stand, "team-b").await.let_in("team-a", Act::Deploy, "web-1").is_err());
    assert_eq!(apply(stand.like("reader"), "", &project(CONSENTS)).await.status, 403);
    assert_eq!(apply(stand.like("team-a"), "", &project(CONSENTS)).await.status, 403);
}

#[tokio::test]
async fn only_who_administers_everything_writes_a_policy() {
    let mut stand = stand().await;
    stand.like("team-b");
    for spec in [POLICY, "  policy: {}\n", "  policy: null\n"] {
        let refused = apply(&stand, "", &project(spec)).await;
        assert_eq!(refused.status, 403, "{spec}: {refused:?}");
        let told = refused.problem();
        assert!(told.starts_with("spec.policy of project team-b: this needs administer in all projects"), "{told}");
        assert!(told.ends_with("or leave it out: then the policy stays as it is"), "{told}");
        assert_eq!(apply(&stand, "?dryRun=true", &project(spec)).await.status, 403);
    }
    assert_eq!(stand.get("/v1/project/team-b").await.status, 404, "nothing was stored");

    assert_eq!(applied(stand.like(""), "", &project(POLICY)).await, (true, vec![]));
    let policy = json!({
        "allows": {"functions": [{"name": "team-b-*"}, {"name": "edge-*", "region": "eu-*", "account": "123456789012"}]},
        "quotas": {"webhooks": 20}
    });
    assert_eq!(shown(&stand).await, (Value::Null, policy.clone()));

    // The project's administrators go on with the rest of it.
    stand.like("team-b");
    assert_eq!(applied(&stand, "", &project(CONSENTS)).await, (true, vec!["spec.consents".into()]));
    assert_eq!(applied(&stand, "?dryRun=true", &project(CONSENTS)).await, (false, vec![]));
    assert_eq!(applied(&stand, "", &project(CONSENTS)).await, (false, vec![]));
    assert_eq!(shown(&stand).await.1, policy);
    assert_eq!(shown(stand.like("reader")).await.1, policy, "whoever sees the project sees it");
    assert_eq!(stand.like("team-a").get("/v1/project/team-b").await.status, 403);

    let of = border(&stand, "team-b").await;
    let home = Home { region: "us-east-1".into(), account: "1".into() };
    let function = |name: &str| Resource::of_aws(ResourceKind::Functions, name).unwrap();
    assert!(of.permit(function("team-b-web:live"), false, &home).is_ok());
    assert!(of.permit(function("other"), true, &home).is_err(), "with a policy, nothing else counts");
    assert_eq!((of.quotas().most(Counted::Webhooks), of.quotas().most(Counted::Pipelines)), (20, 500));

    stand.like("");
    let other = POLICY.replace("20", "30");
    assert_eq!(applied(&stand, "?dryRun=true", &project(&other)).await.1, ["spec.consents", "spec.policy.quotas.webhooks"]);
    let none = project("  policy: null\n");
    assert_eq!(applied(&stand, "", &none).await, (true, vec!["spec.consents".into(), "spec.policy".into()]));
    assert_eq!(applied(&stand, "", &none).await, (false, vec![]));
    assert_eq!(shown(&stand).await, (Value::Null, Value::Null));
    let of = border(&stand, "team-b").await;
    assert!(of.permit(function("other"), true, &home).is_ok() && of.permit(function("team-b-web"), false, &home).is_err());
}

#[tokio::test]
async fn a_policy_goes_with_its_project_and_so_only_its_writers_delete_that() {
    let mut stand = stand().await;
    apply(&stand, "", &project(&format!("{CONSENTS}{POLICY}"))).await;
    let refused = stand.like("team-b").delete("/v1/project/team-b").await;
    assert_eq!((refused.status, refused.problem().contains("administer in all projects")), (403, true), "{refused:?}");
    assert_eq!(stand.like("").delete("/v1/project/team-b").await.status, 200);
    assert_eq!(border(&stand, "team-b").await, border(&stand, "team-b").await.with(Default::default(), Default::default()));
    assert!(border(&stand, "team-b").await.policy().is_none() && border(&stand, "team-b").await.consents().0.is_empty());
    stand.token("later", &["administer"], &["team-b"]).await;
    stand.like("later");
    assert_eq!(applied(&stand, "", &project("")).await, (true, vec![]));
    assert_eq!(shown(&stand).await, (Value::Null, Value::Null));
    assert_eq!(stand.delete("/v1/project/team-b").await.status, 200, "it has no policy");
}

#[tokio::test]
async fn the_audit_says_that_a_border_was_moved() {
    let mut stand = stand().await;
    for (who, spec) in [("", POLICY), ("", POLICY), ("team-b", CONSENTS), ("", "  policy: null\n"), ("team-b", "")] {
        stand.world.pass(Span::seconds(1));
        assert_eq!(apply(stand.like(who), "", &project(spec)).await.status, 200);
    }
    stand.like("");
    let entries = stand.get("/v1/audit?action=apply").await.json()["items"].as_array().unwrap().clone();
    let told: Vec<&str> = entries.iter().rev().map(|entry| entry["what"].as_str().unwrap()).collect();
    assert_eq!(
        told,
        [
            "applied Project team-b (changed its policy)",
            "applied Project team-b",
            "applied Project team-b (changed its consents)",
            "applied Project team-b (changed its policy and its consents)",
            "applied Project team-b",
        ]
    );
    assert!(entries.iter().all(|entry| entry["project"] == "team-b"));
}

#[tokio::test]
async fn a_border_that_would_make_every_read_dear_is_refused() {
    let stand = stand().await;
    let names: Vec<String> = (0..200).map(|n| format!("'team-b/{n}-{}'", "x".repeat(180))).collect();
    let refused = apply(&stand, "", &project(&format!("  policy: {{allows: {{images: [{}]}}}}\n", names.join(", ")))).await;
    assert_eq!(refused.status, 413, "{refused:?}");
    assert!(refused.problem().starts_with("spec.consents and spec.policy have "), "{}", refused.problem());
    assert_eq!(stand.get("/v1/project/team-b").await.status, 404);
}

/// A later project of the same name is another one: nobody who was let in for the first may do anything in it.
#[tokio::test]
async fn rights_end_with_their_project() {
    let mut stand = Stand::new();
    for name in ["shop", "blog"] {
        stand.apply(name, crate::access::tokens::STAGES).await;
    }
    stand.token("own", &["administer"], &["shop"]).await;
    stand.token("both", &["read"], &["shop", "blog"]).await;
    stand.token("all", &["read"], &[]).await;
    let deleted = stand.like("own").delete("/v1/project/shop").await;
    assert!(deleted.status == 200 && deleted.text.contains("is taken from 2 tokens"), "{deleted:?}");
    stand.like("").apply("shop", crate::access::tokens::STAGES).await;
    for (who, shop, blog) in [("own", 401, 401), ("both", 403, 200), ("all", 200, 200)] {
        stand.like(who);
        let statuses = (stand.get("/v1/project/shop").await.status, stand.get("/v1/project/blog").await.status);
        assert_eq!(statuses, (shop, blog), "{who}");
    }
}
