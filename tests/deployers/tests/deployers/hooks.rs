//! Hooks: each policy changes the outcome.

use keelway_deployers_stand::stand::{Stand, definition, hook, version};
use keelway_domain::address::Address;
use keelway_domain::deployments::checkpoint::{Checkpoint, Ended};
use keelway_domain::deployments::definition::{Action, Definition, FailurePolicy, Hook, ImageTag, Tagged};
use keelway_domain::deployments::registry::{ArtifactSource, Origin};
use keelway_domain::deployments::{Command, Status};
use keelway_domain::time::Span;
use keelway_engine::aliases::Called;
use keelway_engine::ports::Store;
use keelway_world::exec::block_on;
use serde_json::json;
use std::collections::BTreeSet;

fn with_pre(policy: FailurePolicy) -> Definition {
    let mut definition = definition("Recreate", &version(2));
    definition.strategy.hooks.pre = hook(policy);
    definition
}

fn with_post(policy: FailurePolicy) -> Definition {
    let mut definition = definition("Recreate", &version(2));
    definition.strategy.hooks.post = hook(policy);
    definition
}

fn failing(definition: &Definition, times: u32) -> Stand {
    let mut stand = Stand::deployed(definition);
    stand.lambda.state().failing = times;
    stand.apply(definition);
    stand.pass(Span::minutes(1));
    stand
}

#[test]
fn hooks_run_in_their_places_and_are_told_what_is_deployed() {
    let mut next = with_pre(FailurePolicy::Abort);
    next.strategy.hooks.mid = hook(FailurePolicy::Abort);
    next.strategy.hooks.post = hook(FailurePolicy::Abort);
    let stand = failing(&next, 0);
    stand.assert_ended(Status::Complete, "2");
    let calls = stand.lambda.state().calls.clone();
    let told: Vec<(&str, usize)> = calls.iter().map(|(payload, changes)| (payload["hook"].as_str().unwrap(), *changes)).collect();
    assert_eq!(told, [("pre", 0), ("mid", 0), ("post", 1)]);
    let id = &calls[0].0["id"];
    let payload = json!({"id": id, "namespace": "shop", "name": "cart-2", "config": "cart", "version": 2, "attempt": 1, "hook": "pre", "function": "check"});
    assert_eq!(calls[0].0, payload);
    assert_eq!(ids(&stand).len(), 3, "each hook has an id of its own");
    let done = ["mid", "post", "pre"].map(|which| (which.to_owned(), Ended::Done));
    assert_eq!(kept(&stand), (done.to_vec(), Some(100)));
}

/// What the API tells of the hooks of the last version, and of its share of the requests.
fn kept(stand: &Stand) -> (Vec<(String, Ended)>, Option<u8>) {
    let point = Checkpoint::of(&stand.last());
    (point.hooks.into_iter().collect(), point.share)
}

/// The ids of all calls, each once.
fn ids(stand: &Stand) -> BTreeSet<String> {
    stand.lambda.state().calls.iter().map(|(payload, _)| payload["id"].as_str().unwrap().to_owned()).collect()
}

/// H1.
#[test]
fn a_pre_hook_that_aborts_changes_nothing() {
    let stand = failing(&with_pre(FailurePolicy::Abort), 1);
    stand.assert_ended(Status::Failed, "1");
    assert!(stand.log().is_empty());
    assert_eq!(kept(&stand), (vec![("pre".to_owned(), Ended::Failed)], None), "it was given no requests");
    let message = stand.last().message;
    assert!(message.contains("hook pre failed: check ended with an error (Unhandled)"), "{message}");
}

#[test]
fn a_function_that_answers_an_error_has_failed() {
    let next = with_pre(FailurePolicy::Abort);
    for (status, body) in [(200, r#"{"statusCode": 503}"#), (202, "{}")] {
        let mut stand = Stand::deployed(&next);
        stand.lambda.state().failing = 1;
        stand.lambda.state().fails_with = Some(Called { status, error: None, body: body.into() });
        stand.apply(&next);
        stand.pass(Span::minutes(1));
        stand.assert_ended(Status::Failed, "1");
    }
}

/// H2.
#[test]
fn a_hook_that_is_ignored_is_told_in_the_log() {
    let stand = failing(&with_pre(FailurePolicy::Ignore), 1);
    stand.assert_ended(Status::Complete, "2");
    assert!(stand.last().progress.tail.contains("hook pre failed: check ended"), "{}", stand.last().progress.tail);
    assert_eq!(stand.lambda.state().calls.len(), 1);
    assert_eq!(kept(&stand), (vec![("pre".to_owned(), Ended::Ignored)], Some(100)));
}

/// H3.
#[test]
fn a_hook_is_repeated_until_it_succeeds() {
    let stand = failing(&with_pre(FailurePolicy::Retry), 3);
    stand.assert_ended(Status::Complete, "2");
    let tail = stand.last().progress.tail;
    assert!(tail.contains("hook pre failed") && tail.contains("hook pre: done"), "{tail}");
    assert_eq!(stand.lambda.state().calls.len(), 4);
    assert_eq!(ids(&stand).len(), 1, "the same hook of the same attempt has the same id");
}

/// The patience for one step does not end it: the deployment's deadline does.
#[test]
fn a_hook_is_repeated_until_the_deadline() {
    let mut next = with_post(FailurePolicy::Retry);
    next.strategy.deadline = Span::minutes(60);
    let mut stand = failing(&next, u32::MAX);
    stand.pass(Span::minutes(50));
    assert_eq!((stand.status(), stand.alias("live").as_str()), (Status::Running, "2"));
    stand.pass(Span::minutes(12));
    stand.assert_ended(Status::Failed, "1");
    assert_eq!(stand.last().reason, "DeadlineExceeded");
}

/// H4.
#[test]
fn a_post_hook_that_aborts_takes_the_alias_back() {
    let stand = failing(&with_post(FailurePolicy::Abort), 1);
    stand.assert_ended(Status::Failed, "1");
    assert_eq!(stand.log(), ["shop:live 2", "shop:live 1"]);
    assert_eq!(kept(&stand), (vec![("post".to_owned(), Ended::Failed)], Some(0)), "the requests were taken back");
}

#[test]
fn a_retried_deployment_runs_its_hooks_again() {
    let mut stand = failing(&with_post(FailurePolicy::Abort), 1);
    stand.command(Command::Retry);
    stand.pass(Span::minutes(1));
    stand.assert_ended(Status::Complete, "2");
    let attempts: Vec<u64> = stand.lambda.state().calls.iter().map(|(payload, _)| payload["attempt"].as_u64().unwrap()).collect();
    assert_eq!((attempts, ids(&stand).len()), (vec![1, 2], 2));
}

#[test]
fn a_container_cannot_run_at_an_alias() {
    for (policy, status, alias) in [
        (FailurePolicy::Abort, Status::Failed, "1"),
        (FailurePolicy::Retry, Status::Failed, "1"),
        (FailurePolicy::Ignore, Status::Complete, "2"),
    ] {
        let mut next = definition("Recreate", &version(2));
        next.strategy.hooks.pre = Some(Hook { failure_policy: FailurePolicy::Ignore, action: Action::ExecNewPod(json!({})) });
        let mut stand = Stand::deployed(&next);
        next.strategy.hooks.pre = Some(Hook { failure_policy: policy, action: Action::ExecNewPod(json!({})) });
        stand.apply(&next);
        stand.pass(Span::minutes(1));
        stand.assert_ended(status, alias);
        assert!(stand.last().progress.tail.contains("use invoke"), "{:?}", stand.last());
    }
}

fn tagging() -> Definition {
    let to = ImageTag { namespace: "shop".into(), name: "images".into(), tag: "prod".into() };
    let mut next = definition("Recreate", &version(2));
    let action = Action::TagImages(vec![Tagged { container: "app".into(), to }]);
    next.strategy.hooks.post = Some(Hook { failure_policy: FailurePolicy::Abort, action });
    next
}

/// H5.
#[test]
fn a_post_hook_points_a_tag_to_what_was_deployed() {
    let next = tagging();
    let mut stand = Stand::new();
    let source = ArtifactSource {
        from: Origin::Webhook { secret: "hook".into() },
        tags: Default::default(),
        images: vec![],
        vouched: false,
    };
    block_on(stand.engine.apply_source(&Address::new("shop", "images"), &source, "")).unwrap();
    stand.apply(&next);
    stand.pass(Span::seconds(5));
    stand.assert_ended(Status::Complete, "2");
    let Action::TagImages(tags) = &next.strategy.hooks.post.as_ref().unwrap().action else { unreachable!() };
    let item = block_on(stand.world.worker(9).get(&keelway_engine::deployments::keys::head(&tags[0].to))).unwrap();
    let item = item.expect("the tag points to nothing");
    assert!(item.text("j").unwrap().contains(&version(2)), "{item:?}");
}

#[test]
fn a_tag_without_a_source_fails() {
    let mut stand = Stand::new();
    stand.apply(&tagging());
    stand.pass(Span::seconds(5));
    assert_eq!(stand.status(), Status::Failed);
    assert!(stand.last().message.contains("there is no ArtifactSource shop/images: create it"), "{}", stand.last().message);
}
