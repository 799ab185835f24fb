//! How much of what all projects share one of them may have.

use crate::stand::{Answer, Stand};
use keelway_engine::ports::{Condition, Query, Store, Write, Written};
use serde_json::{Value, json};

/// Makes the manifest of something of this name in a namespace, with a difference.
type Manifest = fn(&str, &str, &str) -> String;

fn webhook(namespace: &str, name: &str, more: &str) -> String {
    format!(
        "apiVersion: keelway.dev/v1\nkind: WebhookSubscription\nmetadata: {{name: {name}, namespace: {namespace}}}\nspec:\n  events: \
         [sh.keptn.event.approval.triggered]\n  url: 'https://hooks.test/{name}{more}'\n"
    )
}

fn config(namespace: &str, name: &str, more: &str) -> String {
    format!(
        "apiVersion: apps.openshift.io/v1\nkind: DeploymentConfig\nmetadata: {{name: {name}, namespace: {namespace}}}\nspec:\n  triggers: []\n  \
         template:\n    containers: [{{name: web, image: 'registry.test/web{more}'}}]\n"
    )
}

fn pipeline(namespace: &str, name: &str, more: &str) -> String {
    crate::pipelines::applied::manifest(name, crate::pipelines::applied::BY_REQUEST)
        .replace("namespace: shop", &format!("namespace: {namespace}"))
        .replace("name: dev\n", &format!("name: dev{more}\n"))
}

fn schedule(project: &str, name: &str, more: &str) -> String {
    let minute = if more.is_empty() { 0 } else { 5 };
    format!(
        "apiVersion: keelway.dev/v1\nkind: Schedule\nmetadata: {{name: {name}}}\nspec:\n  project: {project}\n  stage: dev\n  services: [cart]\n  \
         sequence: smoke\n  cron: '{minute} * * * *'\n"
    )
}

async fn apply(stand: &Stand, text: &str) -> Answer {
    stand.post_text("/v1/apply", "application/yaml", text.to_owned()).await
}

async fn two(quotas: &str) -> Stand {
    let mut stand = Stand::new();
    for project in ["team-a", "team-b"] {
        stand.apply(project, "    - name: dev\n      sequences: [{name: smoke, tasks: [{name: check}]}]\n").await;
    }
    let policy = format!(
        "apiVersion: keelway.dev/v1\nkind: Project\nmetadata: {{name: team-a}}\nspec: {{policy: {{quotas: {{{quotas}}}}}}}\n"
    );
    stand.manifests(&policy).await;
    stand
}

/// The request that creates one config counts like a manifest that is applied.
#[tokio::test]
async fn a_config_that_is_created_takes_a_share_too() {
    let stand = two("deploymentConfigs: 1").await;
    for (namespace, name, status) in [("team-a", "one", 201), ("team-a", "two", 409), ("team-b", "one", 201)] {
        let answer = stand.post_text("/v1/deploymentConfigs", "application/yaml", config(namespace, name, "")).await;
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(status == 201 || answer.problem().contains("deploymentConfigs of its quotas is 1"), "{answer:?}");
    }
}

#[tokio::test]
async fn the_one_above_the_quota_is_refused_and_the_first_of_another_project_is_not() {
    let manifests: [(&str, &str, Manifest); 4] = [
        ("webhooks", "webhook subscriptions", webhook),
        ("deploymentConfigs", "deployment configs", config),
        ("pipelines", "pipelines", pipeline),
        ("schedules", "schedules", schedule),
    ];
    for (field, words, manifest) in manifests {
        let mut stand = two(&format!("{field}: 2")).await;
        stand.manifests(&manifest("team-a", "one", "")).await;
        // All or nothing, as they are counted together.
        let both = [manifest("team-a", "two", ""), manifest("team-a", "three", "")].join("---\n");
        let refused = apply(&stand, &both).await;
        let told = format!(
            "project team-a has 1 {words}, and {field} of its quotas is 2: delete one, or have an administrator of the installation raise \
             spec.policy.quotas.{field} of the manifest of kind Project team-a"
        );
        assert_eq!((refused.status, refused.problem()), (409, told), "{field}");
        stand.manifests(&manifest("team-a", "two", "")).await;
        let dry = stand.post_text("/v1/apply?dryRun=true", "application/yaml", manifest("team-a", "three", "")).await;
        assert_eq!((dry.status, apply(&stand, &manifest("team-a", "three", "")).await.status), (409, 409), "{field}");
        // What is there may be changed and applied again, and others have a share of their own.
        for text in [manifest("team-a", "two", ""), manifest("team-a", "two", "2"), manifest("team-b", "one", "")] {
            assert_eq!(apply(&stand, &text).await.status, 200, "{field}: {text}");
        }
        // Below what is there, nothing new fits; nor does a lower one take anything away.
        let policy = |most: u32| {
            let quotas = format!("{{policy: {{quotas: {{{field}: {most}}}}}}}");
            format!("apiVersion: keelway.dev/v1\nkind: Project\nmetadata: {{name: team-a}}\nspec: {quotas}\n")
        };
        stand.manifests(&policy(1)).await;
        assert_eq!(apply(&stand, &manifest("team-a", "two", "")).await.status, 200, "{field}");
        // A policy in the same text counts.
        let raised = [policy(3), manifest("team-a", "three", "")].join("---\n");
        assert_eq!(apply(&stand, &raised).await.status, 200, "{field}");
    }
}

/// Newer code may have written a definition that this code cannot read.
#[tokio::test]
async fn one_that_cannot_be_read_counts_and_stops_no_other() {
    let manifests: [(&str, &str, &str, Manifest); 2] = [
        ("webhooks", "WS", "/v1/webhookSubscriptions/team-a/on", webhook),
        ("deploymentConfigs", "DD#team-a", "/v1/deploymentConfigs/team-a:on", config),
    ];
    for (field, partition, near, manifest) in manifests {
        let mut stand = two(&format!("{field}: 2")).await;
        stand.manifests(&manifest("team-a", "one", "")).await;
        let ports = stand.world.worker(3);
        let items = ports.query(&Query::table(partition, 10)).await.unwrap().items;
        assert_eq!(items.len(), 1, "{field}");
        for item in items {
            let version = Condition::Version(item.version());
            assert_eq!(ports.write(&Write::Put(item.with("f", 99), version)).await.unwrap(), Written::Done);
        }
        let unknown = stand.get(near).await;
        assert_eq!(unknown.status, 404, "{field}");
        assert!(unknown.problem().contains("did you mean \"one\""), "{unknown:?}");
        assert_eq!(apply(&stand, &manifest("team-a", "two", "")).await.status, 200, "{field}");
        let refused = apply(&stand, &manifest("team-a", "three", "")).await;
        assert_eq!((refused.status, refused.problem().contains("project team-a has 2 ")), (409, true), "{refused:?}");
    }
}

fn executor(name: &str, projects: &[&str]) -> Value {
    json!({
        "name": name, "metadata": {"hostname": "h", "kubernetesmetadata": {"namespace": "n"}},
        "subscriptions": [{"event": "sh.keptn.event.test.triggered", "filter": {"projects": projects, "stages": [], "services": []}}]
    })
}

#[tokio::test]
async fn a_registration_takes_a_share_of_each_project_that_it_names() {
    let path = "/v1/uniform/registration";
    let mut stand = two("integrations: 2").await;
    stand.token("a", &["execute:test"], &["team-a"]).await;
    stand.token("b", &["execute:test"], &["team-b"]).await;
    stand.like("a");
    for name in ["one", "two"] {
        assert_eq!(stand.post(path, &executor(name, &["team-a"])).await.status, 201, "{name}");
    }
    let refused = stand.post(path, &executor("three", &["team-a"])).await;
    assert_eq!(refused.status, 409, "{refused:?}");
    let told = refused.problem();
    assert!(told.contains("project team-a has 2 registered executors, and integrations of its quotas is 2"), "{told}");
    assert_eq!(stand.post(path, &executor("two", &["team-a"])).await.status, 200, "it is there already");
    stand.like("b");
    assert_eq!(stand.post(path, &executor("one", &["team-b"])).await.status, 201);
    // A subscription that names a further project takes a share of it, too.
    stand.like("");
    let new = stand.post(path, &executor("three", &["team-b"])).await.json()["id"].as_str().unwrap().to_owned();
    let filter = |project: &str| json!({"event": "sh.keptn.event.test.triggered", "filter": {"projects": [project], "stages": ["dev"], "services": []}});
    let subscribe = async |project: &str| stand.post(&format!("{path}/{new}/subscription"), &filter(project)).await.status;
    assert_eq!((subscribe("team-a").await, subscribe("team-b").await), (409, 201));
}

#[tokio::test]
async fn whoever_names_no_project_has_a_share_of_their_own() {
    let path = "/v1/uniform/registration";
    let mut stand = Stand::new();
    stand.token("a", &["execute:test"], &["team-a"]).await;
    stand.token("b", &["execute:test"], &["team-b"]).await;
    let bare = |n: usize| json!({"name": format!("e-{n}"), "metadata": {"hostname": "h"}, "subscriptions": []});
    stand.like("a");
    for n in 0..250 {
        assert_eq!(stand.post(path, &bare(n)).await.status, 201, "{n}");
    }
    let refused = stand.post(path, &bare(250)).await;
    assert_eq!((refused.status, refused.problem().contains("this token has registered 250 executors")), (409, true), "{refused:?}");
    stand.like("b");
    assert_eq!(stand.post(path, &bare(0)).await.status, 201);
}
