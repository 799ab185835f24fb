//! What of other projects and of the installation the definitions of one project reach: asked when they are applied, and before
//! each act.

use crate::stand::{Answer, Stand};
use keelway_domain::event::CloudEvent;
use keelway_domain::time::Span;
use keelway_engine::deployments::NAME;
use keelway_wire::cloudevent::{Origin, parse};
use keelway_world::deployments::Waiting;
use keelway_world::queue::Parcel;
use serde_json::{Value, json};

const API: &str = "apiVersion: apps.openshift.io/v1\nkind: DeploymentConfig\nmetadata: {name: api, namespace: team-b}\nspec:\n  triggers: []\n  strategy: {type: \
                   Custom, customParams: {}}\n  template:\n    containers: [{name: api, image: 'registry.test/api'}]\n";

/// A shipyard whose task another project's config carries out.
fn shipyard(config: &str) -> String {
    format!(
        "apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nmetadata: {{name: shipyard-team-a}}\nspec:\n  stages:\n    - name: dev\n      sequences:\n        - \
         name: delivery\n          tasks: [{{name: deployment, properties: {{deploymentConfig: '{config}'}}}}]\n"
    )
}

fn project(name: &str, spec: &str) -> String {
    format!("apiVersion: keelway.dev/v1\nkind: Project\nmetadata: {{name: {name}}}\nspec: {spec}\n")
}

async fn apply(stand: &Stand, text: &str) -> Answer {
    stand.post_text("/v1/apply", "application/yaml", text.to_owned()).await
}

/// Two projects, and tokens for one of them and for both.
async fn two() -> Stand {
    let mut stand = Stand::new();
    for text in [project("team-a", "{}"), project("team-b", "{}"), API.to_owned()] {
        stand.manifests(&text).await;
    }
    stand.token("a", &["administer"], &["team-a"]).await;
    stand.token("both", &["administer"], &["team-a", "team-b"]).await;
    stand
}

/// Lets team-a do this, in the other project.
async fn consent(stand: &mut Stand, may: &str) {
    let spec = format!("{{consents: [{{to: [team-a], may: [{may}]}}]}}");
    stand.like("").manifests(&project("team-b", &spec)).await;
}

#[tokio::test(start_paused = true)]
async fn a_task_names_a_config_elsewhere_only_with_a_right_and_a_consent() {
    let mut stand = two().await;
    let crossing = shipyard("team-b:api");
    let refused = apply(stand.like("a"), &crossing).await;
    let told = "Shipyard team-a: deploymentConfig of task deployment in dev.delivery: ";
    assert_eq!((refused.status, refused.problem().starts_with(told)), (403, true), "{refused:?}");
    assert!(refused.problem().contains("\"trigger\"") || refused.problem().contains("trigger"), "{refused:?}");
    let refused = apply(stand.like("both"), &crossing).await;
    let why = "project team-b does not let team-a deploy api: whoever administers team-b adds it to spec.consents of its manifest of kind Project, or \
               name what is in team-a";
    assert_eq!((refused.status, refused.problem()), (403, format!("{told}{why}")));
    assert_eq!(apply(stand.like("a"), &shipyard("api")).await.status, 200, "one's own needs neither");
    assert_eq!(apply(stand.like("a"), &shipyard("team-a:api")).await.status, 200);
    consent(&mut stand, "deploy").await;
    assert_eq!(apply(stand.like("a"), &crossing).await.status, 403, "the consent is no right");
    assert_eq!(apply(stand.like("both"), &crossing).await.status, 200);
}

/// The trigger of a task of team-a that names the config of team-b, as the sequences engine sends it.
fn task(stand: &Stand, id: &str) -> (Waiting, CloudEvent) {
    let context = "7c2c890f-b3ac-4caa-8922-f44d2aa54ec9".to_owned();
    let waiting = Waiting { project: "team-a".into(), context: context.clone(), task: "deployment".into(), name: id.into() };
    let event = json!({
        "specversion": "1.0", "datacontenttype": "application/json", "shkeptnspecversion": "0.2.4", "id": waiting.trigger(), "source": "shipyard-controller",
        "type": "sh.keptn.event.deployment.triggered", "time": stand.world.now().rfc3339(), "shkeptncontext": context,
        "data": {"project": "team-a", "stage": "dev", "service": "x", "deployment": {"deploymentConfig": "team-b:api"},
            "configurationChange": {"values": {"image": "registry.test/api:2"}}}
    });
    (waiting, parse(&event, Origin::Bus, stand.world.now()).unwrap())
}

/// Has the deployments engine get an event while a sequence waits for the task; how many versions there are, and how the task was
/// answered.
async fn deliver(stand: &mut Stand, (waiting, event): &(Waiting, CloudEvent)) -> (Value, Vec<String>) {
    stand.work().await;
    let seen = stand.published().len();
    drop(stand.world.core().table.put_batch(&[waiting.item()], &[], false).unwrap());
    stand.world.enqueue(NAME, Parcel::Event(event.clone()));
    stand.step().await;
    // There is no such sequence that could take the answers.
    drop(stand.world.core().table.put_batch(&[], &[waiting.key()], false).unwrap());
    stand.work().await;
    stand.world.pass(Span::seconds(5));
    stand.work().await;
    let told = |event: &Value| event["type"] == "sh.keptn.event.deployment.finished";
    let message = |event: Value| event["data"]["message"].as_str().unwrap_or_default().to_owned();
    let told = stand.published().into_iter().skip(seen).filter(told).map(message).collect();
    (stand.like("").get("/v1/deploymentConfigs/team-b:api/status").await.json()["latestVersion"].clone(), told)
}

#[tokio::test(start_paused = true)]
async fn a_config_carries_out_tasks_of_others_while_its_project_consents() {
    let mut stand = two().await;
    let first = task(&stand, "task-1");
    let (latest, told) = deliver(&mut stand, &first).await;
    assert_eq!(latest, 0);
    assert!(told.len() == 1 && told[0].contains("project team-b does not let team-a deploy api"), "{told:?}");
    consent(&mut stand, "deploy").await;
    assert_eq!(deliver(&mut stand, &first).await.0, 0, "a copy of a task that was refused stays refused");
    let second = task(&stand, "task-2");
    assert_eq!(deliver(&mut stand, &second).await.0, 1);
    consent(&mut stand, "observe").await;
    assert_eq!(deliver(&mut stand, &second).await, (json!(1), vec![]), "a copy of one that was taken is not answered anew");
    let third = task(&stand, "task-3");
    let (latest, told) = deliver(&mut stand, &third).await;
    assert_eq!((latest, told.len()), (json!(1), 1), "the consent has ended");
}

fn config(spec: &str) -> String {
    format!(
        "apiVersion: apps.openshift.io/v1\nkind: DeploymentConfig\nmetadata: {{name: web, namespace: team-a}}\nspec:\n  template:\n    containers: \
         [{{name: web, image: 'registry.test/web:1'}}]\n{spec}"
    )
}

#[tokio::test(start_paused = true)]
async fn hooks_tag_and_triggers_watch_elsewhere_only_with_a_consent() {
    let mut stand = two().await;
    let tags = config(
        "  triggers: []\n  strategy:\n    type: Recreate\n    customParams: {}\n    recreateParams: {post: {failurePolicy: Abort, tagImages: [{containerName: \
         web, to: {kind: ImageStreamTag, namespace: team-b, name: 'api:stable'}}]}}\n",
    );
    let watches = config(
        "  strategy: {type: Custom, customParams: {}}\n  triggers: [{type: ImageChange, imageChangeParams: {automatic: true, containerNames: [web], from: {kind: \
         ImageStreamTag, namespace: team-b, name: 'api:stable'}}}]\n",
    );
    for (text, act, right) in [(&tags, "tag", "trigger"), (&watches, "observe", "read")] {
        let refused = apply(stand.like("a"), text).await;
        assert_eq!((refused.status, refused.problem().contains(right)), (403, true), "{refused:?}");
        let refused = apply(stand.like("both"), text).await;
        let told = format!("project team-b does not let team-a {act} api");
        assert_eq!((refused.status, refused.problem().contains(&told)), (403, true), "{refused:?}");
        let created = stand.like("both").post_text("/v1/deploymentConfigs", "application/yaml", text.clone()).await;
        assert_eq!((created.status, created.problem().contains(&told)), (403, true), "{created:?}");
        consent(&mut stand, act).await;
        let applied = apply(stand.like("both"), text).await;
        assert_eq!(applied.status, 200, "{applied:?}");
    }
}

/// What a tag of another project points to is not seen any more once the consent ends.
#[tokio::test(start_paused = true)]
async fn a_trigger_watches_elsewhere_only_while_there_is_a_consent() {
    let mut stand = two().await;
    let source = "apiVersion: keelway.dev/v1\nkind: ArtifactSource\nmetadata: {name: api, namespace: team-b}\nspec: {webhook: {secret: r}}\n";
    stand.manifests(source).await;
    consent(&mut stand, "observe").await;
    let watches = config(
        "  strategy: {type: Custom, customParams: {}}\n  triggers: [{type: ImageChange, imageChangeParams: {automatic: true, containerNames: [web], from: {kind: \
         ImageStreamTag, namespace: team-b, name: 'api:stable'}}}]\n",
    );
    assert_eq!(apply(stand.like("both"), &watches).await.status, 200);
    let mut latest = vec![];
    for (n, act) in [(1, "observe"), (2, "deploy"), (3, "observe")] {
        consent(&mut stand, act).await;
        let digest = format!("sha256:{}", n.to_string().repeat(64));
        let push = json!({"tag": "stable", "image": "registry.test/api", "digest": digest});
        assert_eq!(stand.like("").post("/v1/artifacts/team-b/api", &push).await.status, 202);
        for _ in 0..3 {
            stand.world.pass(Span::seconds(10));
            stand.work().await;
        }
        let shown = stand.get("/v1/deploymentConfigs/team-a:web/status").await.json();
        latest.push(shown["latestVersion"].as_u64().unwrap());
        assert_eq!(shown.to_string().contains(&digest), act == "observe", "{shown}");
    }
    assert_eq!(latest, [1, 1, 2]);
}

const ALIAS: &str =
    "  triggers: []\n  strategy: {type: Recreate}\n  targets: [{name: live, kind: lambda-alias, id: 'payments:live'}]\n";

#[tokio::test(start_paused = true)]
async fn a_config_names_what_its_policy_lists_or_what_an_administrator_applied() {
    let mut stand = two().await;
    let alias = config(ALIAS);
    let refused = apply(stand.like("a"), &alias).await;
    let why = "DeploymentConfig web: id of target live: project team-a may not use function payments: an administrator of the installation applies a manifest \
               of kind Project team-a that lists it in spec.policy.allows.functions, or applies this manifest";
    assert_eq!((refused.status, refused.problem()), (403, why.to_owned()));
    assert_eq!(apply(stand.like(""), &alias).await.status, 200, "an administrator vouches for it");
    assert_eq!(apply(stand.like("a"), &alias).await.status, 200, "the same again");
    let other = alias.replace("payments:live", "payments:other");
    assert_eq!(apply(stand.like("a"), &other).await.status, 403, "the vouch is for what was applied");
    stand.like("").manifests(&project("team-a", "{policy: {allows: {functions: [{name: pay*}]}}}")).await;
    assert_eq!(apply(stand.like("a"), &other).await.status, 200);
    let hook = other.replace("{type: Recreate}", "{type: Recreate, recreateParams: {pre: {failurePolicy: Abort, invoke: check}}}");
    let refused = apply(stand.like("a"), &hook).await;
    assert!(refused.status == 403 && refused.problem().contains("may not use hook function check"), "{refused:?}");
    for (deployer, told) in [
        ("{codeBuild: {projectName: nightly}}", "may not use build nightly"),
        ("{ecs: {cluster: main, taskDefinition: 'deploy:3'}}", "may not use task main/deploy"),
    ] {
        let refused = apply(stand.like("a"), &config(&format!("  triggers: []\n  deployer: {deployer}\n"))).await;
        assert!(refused.status == 403 && refused.problem().contains(told), "{refused:?}");
    }
    let build = config("  triggers: []\n  deployer: {codeBuild: {projectName: nightly, buildspecOverride: x}}\n");
    let refused = apply(stand.like(""), &build).await;
    assert!(refused.status == 400 && refused.problem().contains("spec.deployer: buildspecOverride"), "{refused:?}");
}
