//! What is stored, and may not name any more what it names: `GET /v1/border` says it.

use crate::pipelines::approvals::encoded;
use crate::stand::Stand;
use keelway_domain::deployments::definition::Starter;
use keelway_engine::deployments::configs::Wanted;
use keelway_engine::deployments::{Address, Deployments, Limits};
use keelway_world::at_once::AtOnce;
use serde_json::{Value, json};

pub const CLUSTER: &str = "apiVersion: keelway.dev/v1\nkind: Cluster\nmetadata: {name: prod, namespace: team-a}\nspec: {server: \
                           'https://a.k8s.test', secretRef: {name: t}}\n";
const SHIPYARD: &str = "apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nmetadata: {name: shipyard-team-a}\nspec:\n  stages:\n    - name: dev\n      \
                        sequences:\n        - name: delivery\n          tasks: [{name: deployment, properties: {deploymentConfig: 'team-b:api'}}]\n";
const CONFIG: &str = "apiVersion: apps.openshift.io/v1\nkind: DeploymentConfig\nmetadata: {name: web, namespace: team-a}\nspec:\n  template:\n    containers: \
                      [{name: web, image: 'registry.test/web:1'}]\n  triggers: [{type: ImageChange, imageChangeParams: {automatic: true, containerNames: \
                      [web], from: {kind: ImageStreamTag, namespace: team-b, name: 'api:stable'}}}]\n  targets: [{name: live, kind: lambda-alias, id: \
                      'payments:live'}]\n  strategy: {type: Recreate, recreateParams: {post: {failurePolicy: Abort, tagImages: [{containerName: web, to: \
                      {kind: ImageStreamTag, namespace: team-b, name: 'api:stable'}}]}}}\n";
const PIPELINE: &str = "apiVersion: pipelines.weave.works/v1alpha1\nkind: Pipeline\nmetadata: {name: reach, namespace: team-a}\nspec:\n  appRef: \
                        {apiVersion: keelway.dev/v1, kind: DeploymentConfig, name: api}\n  environments:\n    - {name: dev, targets: [{namespace: \
                        team-a}]}\n    - {name: prod, targets: [{namespace: team-b}]}\n  promotion: {strategy: {sequence: {project: team-b, \
                        service: carts}}}\n";
const ALL: &str = "{consents: [{to: [team-a], may: [deploy, tag, observe, trigger]}]}";

fn project(name: &str, spec: &str) -> String {
    format!("apiVersion: keelway.dev/v1\nkind: Project\nmetadata: {{name: {name}}}\nspec: {spec}\n")
}

/// What of everything that team-a has may name what is not its own: all of it, for now. Nobody has vouched for any of it.
async fn crossing() -> Stand {
    let mut stand = Stand::new();
    stand.token("a", &["administer"], &["team-a"]).await;
    stand.token("b", &["administer"], &["team-b"]).await;
    stand.token("reader", &["read"], &[]).await;
    stand.token("both", &["administer"], &["team-a", "team-b"]).await;
    let policy = "{policy: {allows: {functions: [{name: pay*}], servers: [{name: 'https://a.k8s.test'}]}}}";
    stand.manifests(&format!("{}---\n{}", project("team-b", ALL), project("team-a", policy))).await;
    stand.like("both").manifests(&[SHIPYARD, CONFIG, PIPELINE, CLUSTER].join("---\n")).await;
    stand.like("");
    stand
}

/// A list by pages of so many manifests.
async fn gaps(stand: &Stand, size: u64) -> Vec<Value> {
    let (mut all, mut key) = (vec![], String::new());
    while key != "0" {
        let page = stand.get(&format!("/v1/border?pageSize={size}&nextPageKey={}", encoded(&key))).await;
        assert_eq!(page.status, 200, "{page:?}");
        let page = page.json();
        all.extend(page["items"].as_array().unwrap().clone());
        key = page["nextPageKey"].as_str().unwrap().to_owned();
    }
    all
}

/// The manifest, the field, and what is missing.
fn told(gaps: &[Value]) -> Vec<String> {
    let text = |gap: &Value, name: &str| gap[name].as_str().unwrap_or_default().to_owned();
    let members = ["kind", "namespace", "name", "field", "missing"];
    gaps.iter().map(|gap| members.map(|name| text(gap, name)).join(" ")).collect()
}

const CONSENTS: [&str; 5] = [
    "Shipyard team-a team-a deploymentConfig of task deployment in dev.delivery consent",
    "DeploymentConfig team-a web tagImages of hook post consent",
    "DeploymentConfig team-a web from team-b/api:stable of a trigger consent",
    "Pipeline team-a reach spec.environments[1].targets[0].namespace consent",
    "Pipeline team-a reach spec.promotion.strategy.sequence.project consent",
];

#[tokio::test(start_paused = true)]
async fn stored_manifests_whose_consent_ended_are_named_until_it_is_back() {
    let mut stand = crossing().await;
    assert_eq!(gaps(&stand, 100).await, [] as [Value; 0]);
    stand.manifests(&project("team-b", "{}")).await;
    let found = gaps(&stand, 100).await;
    assert_eq!(told(&found), CONSENTS);
    assert_eq!(found[0]["project"], "team-b");
    assert_eq!(found[0]["consent"], json!({"to": ["team-a"], "may": ["deploy"], "names": ["api"]}));
    let why = "project team-b does not let team-a deploy api: whoever administers team-b adds it to spec.consents of its manifest of kind Project";
    assert_eq!(found[0]["detail"], why);
    assert_eq!(gaps(&stand, 1).await, found, "page by page");
    // The entries that it names are all that is missing.
    let entries: Vec<Value> = found.iter().map(|gap| gap["consent"].clone()).collect();
    stand.manifests(&project("team-b", &json!({"consents": entries}).to_string())).await;
    assert_eq!(gaps(&stand, 100).await, [] as [Value; 0]);
}

#[tokio::test(start_paused = true)]
async fn stored_manifests_that_nobody_vouches_for_are_named_until_somebody_does() {
    let mut stand = crossing().await;
    stand.manifests(&project("team-a", "{policy: null}")).await;
    let found = gaps(&stand, 100).await;
    let both = |missing: &str| {
        [format!("DeploymentConfig team-a web id of target live {missing}"), format!("Cluster team-a prod spec.server {missing}")]
    };
    assert_eq!(told(&found), both("vouch"));
    assert!(
        found[1]["detail"]
            .as_str()
            .unwrap()
            .starts_with("project team-a may not use server https://a.k8s.test: an administrator of the installation")
    );
    stand.manifests(CLUSTER).await;
    assert_eq!(told(&gaps(&stand, 100).await), both("vouch")[..1], "the same again, by an administrator");
    stand.manifests(CONFIG).await;
    assert_eq!(gaps(&stand, 100).await, [] as [Value; 0]);
    // A policy counts alone.
    stand.manifests(&project("team-a", "{policy: {}}")).await;
    assert_eq!(told(&gaps(&stand, 100).await), both("policy"));
}

#[tokio::test(start_paused = true)]
async fn a_stored_config_that_says_what_no_manifest_may_is_named() {
    let stand = crossing().await;
    let configs = Deployments::new(AtOnce::new(stand.world.worker(1)), Limits::default());
    let of = Address { namespace: "team-a".into(), name: "web".into() };
    let mut definition = configs.view(&of).await.unwrap().unwrap().applied.definition;
    let build = json!({"projectName": "nightly", "buildspecOverride": "x"});
    definition.deployer = Some(Starter::CodeBuild(build.as_object().unwrap().clone()));
    configs.apply(&of, &Wanted { definition: &definition, source: "", by: "", request: None, over: None }).await.unwrap();
    let found = gaps(&stand, 100).await;
    let expected = ["DeploymentConfig team-a web spec.deployer form", "DeploymentConfig team-a web spec.deployer policy"];
    assert_eq!(told(&found)[..2], expected);
    assert!(found[0]["detail"].as_str().unwrap().starts_with("buildspecOverride is nothing that a manifest may say"), "{found:?}");
}

#[tokio::test(start_paused = true)]
async fn whoever_administers_a_project_learns_what_is_missing_there_and_nowhere_else() {
    let mut stand = crossing().await;
    stand.manifests(&project("team-b", "{}")).await;
    assert_eq!(told(&gaps(stand.like("a"), 1).await), CONSENTS);
    assert_eq!(gaps(stand.like("b"), 1).await, [] as [Value; 0]);
    assert_eq!(stand.get("/v1/border?namespace=team-a").await.status, 403);
    assert_eq!(stand.get("/v1/border?namespace=team-b").await.json()["totalCount"], 0);
    for key in ["Shipyard:team-", "DeploymentConfig:team-a", "Pipeline:team-a/a", "Cluster:team-a/a"] {
        let page = stand.get(&format!("/v1/border?nextPageKey={}", encoded(key))).await;
        assert_eq!((page.status, page.json()["totalCount"].clone()), (200, json!(0)), "{key}: {page:?}");
    }
    for key in ["team-a", "Pipeline:", "Pipeline:team-a/", "Project"] {
        assert_eq!(stand.get(&format!("/v1/border?nextPageKey={}", encoded(key))).await.status, 400, "{key}");
    }
    assert_eq!(stand.like("reader").get("/v1/border").await.status, 403);
    let one = stand.like("").get("/v1/border?namespace=team-a").await.json();
    assert_eq!(one["totalCount"], 5);
}

#[tokio::test(start_paused = true)]
async fn a_stored_source_of_metrics_that_a_policy_no_longer_lists_is_named() {
    let mut stand = Stand::new();
    let source =
        "apiVersion: keelway.dev/v1\nkind: MetricsSource\nmetadata: {name: cloud, namespace: team-a}\nspec: {cloudwatch: {}}\n";
    stand.manifests(&format!("{}---\n{source}", project("team-a", "{policy: {allows: {metrics: [cloudwatch]}}}"))).await;
    assert_eq!(gaps(&stand, 100).await, [] as [Value; 0]);
    stand.manifests(&project("team-a", "{policy: {}}")).await;
    assert_eq!(told(&gaps(&stand, 100).await), ["MetricsSource team-a cloud spec.cloudwatch policy"]);
}
