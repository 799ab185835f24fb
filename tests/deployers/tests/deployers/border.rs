//! What a project may not use of the installation, or of another project, is not touched: it is asked before each stage.

use keelway_deployers_stand::stand::{Stand, definition, hook, version};
use keelway_domain::address::Address;
use keelway_domain::border::{Policy, Update};
use keelway_domain::deployments::Status;
use keelway_domain::deployments::definition::{Action, Definition, FailurePolicy, Hook, ImageTag, Starter, Tagged};
use keelway_domain::deployments::registry::{ArtifactSource, Origin};
use keelway_domain::names::ProjectName;
use keelway_domain::time::Span;
use keelway_engine::ports::Store;
use keelway_engine::projects::ProjectSettings;
use keelway_engine::sequences::{Limits, Sequences};
use keelway_world::exec::block_on;
use serde_json::json;

fn unvouched(definition: Definition) -> Definition {
    Definition { vouched: false, ..definition }
}

/// Gives the project this policy.
fn policy(stand: &Stand, allows: &serde_json::Value) {
    let policy: Policy = serde_json::from_value(json!({"allows": allows})).unwrap();
    let name = ProjectName::new("shop").unwrap();
    let settings = ProjectSettings { policy: Update::Set(Some(policy)), ..ProjectSettings::plain(name) };
    assert!(block_on(Sequences::new(stand.world.worker(9), Limits::default()).projects().apply(&settings)).is_ok());
}

fn assert_denied(stand: &Stand, what: &str) {
    let last = stand.last();
    assert_eq!(last.status, Status::Failed, "{last:?}");
    assert!(last.message.contains(&format!("project shop may not use {what}")), "{}", last.message);
}

#[test]
fn an_alias_that_the_project_may_not_use_is_not_touched() {
    let mut stand = Stand::new();
    stand.apply(&unvouched(definition("Recreate", &version(1))));
    stand.pass(Span::minutes(1));
    assert_denied(&stand, "function shop");
    assert!(stand.log().is_empty(), "{:?}", stand.log());
    policy(&stand, &json!({"functions": [{"name": "shop"}]}));
    stand.apply(&unvouched(definition("Recreate", &version(2))));
    stand.pass(Span::minutes(1));
    stand.assert_ended(Status::Complete, "2");
}

#[test]
fn a_policy_counts_although_an_administrator_applied_the_config() {
    let mut stand = Stand::new();
    policy(&stand, &json!({"functions": [{"name": "other"}]}));
    stand.apply(&definition("Recreate", &version(1)));
    stand.pass(Span::minutes(1));
    assert_denied(&stand, "function shop");
}

#[test]
fn a_hook_calls_only_what_the_project_may_call() {
    let mut next = unvouched(definition("Recreate", &version(1)));
    // What is denied is no failure of the hook, which could be ignored.
    next.strategy.hooks.pre = hook(FailurePolicy::Ignore);
    let mut stand = Stand::new();
    policy(&stand, &json!({"functions": [{"name": "shop"}]}));
    stand.apply(&next);
    stand.pass(Span::minutes(1));
    assert_denied(&stand, "hook function check");
    assert!(stand.lambda.state().calls.is_empty() && stand.log().is_empty());
}

#[test]
fn code_that_the_project_may_not_use_does_not_become_a_version() {
    let mut stand = Stand::new();
    policy(&stand, &json!({"functions": [{"name": "shop"}], "images": [{"name": "registry.test/shop"}]}));
    stand.apply(&unvouched(definition("Recreate", "registry.test/other@sha256:1")));
    stand.pass(Span::minutes(1));
    assert_denied(&stand, "image registry.test/other");
    assert!(stand.log().is_empty(), "{:?}", stand.log());
}

#[test]
fn tasks_and_builds_that_the_project_may_not_use_are_not_started() {
    let task = json!({"cluster": "main", "taskDefinition": "deploy:3", "overrides": {"containerOverrides": [{"name": "deploy"}]}});
    let waits = json!({"cluster": "main", "taskDefinition": "deploy:3", "waitFor": "exit",
        "overrides": {"containerOverrides": [{"name": "deploy"}]}});
    let of = |value: serde_json::Value| serde_json::from_value(value).unwrap();
    for (starter, what) in [
        (Starter::Ecs(of(task)), "task main/deploy"),
        (Starter::Ecs(of(waits)), "task main/deploy"),
        (Starter::CodeBuild(of(json!({"projectName": "nightly"}))), "build nightly"),
    ] {
        let mut stand = Stand::new();
        let by = Definition { targets: vec![], deployer: Some(starter), ..definition("Rolling", "shop@sha256:1") };
        stand.apply(&unvouched(by));
        stand.pass(Span::minutes(1));
        assert_denied(&stand, what);
        assert!(stand.lambda.state().started.is_empty());
    }
}

#[test]
fn a_tag_of_another_project_stays_where_it_is() {
    let to = ImageTag { namespace: "team-b".into(), name: "images".into(), tag: "prod".into() };
    let mut next = definition("Recreate", &version(2));
    let action = Action::TagImages(vec![Tagged { container: "app".into(), to: to.clone() }]);
    next.strategy.hooks.post = Some(Hook { failure_policy: FailurePolicy::Abort, action });
    let mut stand = Stand::new();
    let source = ArtifactSource {
        from: Origin::Webhook { secret: "hook".into() },
        tags: Default::default(),
        images: vec![],
        vouched: false,
    };
    block_on(stand.engine.apply_source(&Address::new("team-b", "images"), &source, "")).unwrap();
    stand.apply(&next);
    stand.pass(Span::seconds(5));
    let last = stand.last();
    assert_eq!(last.status, Status::Failed);
    assert!(last.message.contains("project team-b does not let shop tag images"), "{}", last.message);
    let head = block_on(stand.world.worker(9).get(&keelway_engine::deployments::keys::head(&to))).unwrap();
    assert!(head.is_none(), "{head:?}");
}
