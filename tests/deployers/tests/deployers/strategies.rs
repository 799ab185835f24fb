//! What each strategy does with an alias.

use keelway_deployers_stand::stand::{Stand, definition, hook, version, with_image};
use keelway_domain::deployments::definition::{Definition, FailurePolicy, Target, Weight};
use keelway_domain::deployments::{Command, Status};
use keelway_domain::time::Span;
use keelway_engine::aliases::Route;
use serde_json::json;

fn canary(steps: &[(u8, Option<i64>)]) -> Definition {
    let mut definition = definition("Canary", &version(2));
    let step = |(weight, bake): &(u8, Option<i64>)| Weight { weight: *weight, bake: bake.map(Span::seconds) };
    definition.strategy.steps = steps.iter().map(step).collect();
    definition
}

fn target(name: &str, id: &str) -> Target {
    Target { name: name.into(), kind: "lambda-alias".into(), id: id.into(), region: None, account: None }
}

#[test]
fn the_first_deployment_makes_the_alias_and_compares_with_nothing() {
    let mut stand = Stand::new();
    stand.apply(&canary(&[(10, None)]));
    stand.pass(Span::seconds(1));
    stand.assert_ended(Status::Complete, "2");
    assert_eq!(stand.log(), ["shop:live 2"]);
    let progress = stand.last().progress;
    assert_eq!(
        (progress.targets["main"].status, progress.targets["main"].message.as_str()),
        (Status::Complete, "at Lambda version 2")
    );
}

#[test]
fn an_alias_that_exists_goes_over_at_once_the_first_time() {
    let mut stand = Stand::new();
    stand.point("shop", "live", Route::to("1"));
    stand.apply(&canary(&[(10, Some(3600))]));
    stand.pass(Span::seconds(1));
    stand.assert_ended(Status::Complete, "2");
}

#[test]
fn recreate_switches_at_once() {
    let next = definition("Recreate", &version(2));
    let mut stand = Stand::deployed(&next);
    stand.apply(&next);
    stand.pass(Span::seconds(1));
    stand.assert_ended(Status::Complete, "2");
    assert_eq!(stand.log(), ["shop:live 2"]);
}

#[test]
fn rolling_takes_equal_steps() {
    let mut next = definition("Rolling", &version(2));
    next.strategy.params = serde_json::from_value(json!({"maxSurge": "40%", "intervalSeconds": 30})).unwrap();
    let mut stand = Stand::deployed(&next);
    stand.apply(&next);
    stand.pass(Span::seconds(29));
    assert_eq!((stand.alias("live").as_str(), stand.status()), ("1 40%2", Status::Running));
    stand.pass(Span::seconds(60));
    stand.assert_ended(Status::Complete, "2");
    assert_eq!(stand.log(), ["shop:live 1 40%2", "shop:live 1 80%2", "shop:live 2"]);
}

/// A bake is longer than a message can be delayed, and than a lease may last.
#[test]
fn a_canary_bakes_for_hours() {
    let next = canary(&[(10, Some(2 * 3600)), (50, Some(60))]);
    let mut stand = Stand::deployed(&next);
    stand.apply(&next);
    stand.pass(Span::minutes(119));
    assert_eq!((stand.alias("live").as_str(), stand.status()), ("1 10%2", Status::Running));
    stand.pass(Span::seconds(61));
    assert_eq!((stand.alias("live").as_str(), stand.status()), ("1 50%2", Status::Running));
    stand.pass(Span::seconds(61));
    stand.assert_ended(Status::Complete, "2");
    // Each of the looks in between costs a few requests: one every 14 minutes.
    assert!(stand.requests < 150, "{} requests", stand.requests);
}

#[test]
fn a_step_without_an_end_holds_until_somebody_says_to_proceed() {
    let next = canary(&[(20, None), (60, None)]);
    let mut stand = Stand::deployed(&next);
    stand.apply(&next);
    stand.pass(Span::minutes(3 * 60));
    assert_eq!((stand.alias("live").as_str(), stand.status()), ("1 20%2", Status::Running));
    assert!(stand.last().progress.message.ends_with("it holds until it is told to proceed"), "{:?}", stand.last().progress);
    stand.command(Command::Proceed);
    // It is told at once, and each step holds for itself.
    assert_eq!(stand.alias("live"), "1 60%2");
    stand.pass(Span::minutes(30));
    assert_eq!(stand.alias("live"), "1 60%2");
    stand.command(Command::Proceed);
    stand.pass(Span::seconds(1));
    stand.assert_ended(Status::Complete, "2");
}

/// S17.
#[test]
fn a_version_is_complete_when_it_has_run_for_the_least_time() {
    let mut next = definition("Recreate", &version(2));
    next.other.insert("minReadySeconds".into(), json!(60));
    let mut stand = Stand::deployed(&next);
    stand.apply(&next);
    stand.pass(Span::seconds(57));
    assert_eq!((stand.alias("live").as_str(), stand.status()), ("2", Status::Running));
    stand.pass(Span::seconds(10));
    stand.assert_ended(Status::Complete, "2");
}

/// S19.
#[test]
fn a_test_runs_while_it_is_deployed() {
    let mut next = definition("Recreate", &version(2));
    next.other.insert("minReadySeconds".into(), json!(60));
    let mut stand = Stand::deployed(&next);
    next.other.insert("test".into(), json!(true));
    stand.apply(&next);
    assert_eq!((stand.alias("live").as_str(), stand.status()), ("2", Status::Running));
    stand.pass(Span::minutes(2));
    stand.assert_ended(Status::Complete, "1");
    assert_eq!(stand.log(), ["shop:live 2", "shop:live 1"]);
    assert_eq!(stand.last().progress.targets["main"].message, "taken back to Lambda version 1");
}

/// What cannot be taken back is told, and the others go back all the same.
#[test]
fn an_alias_that_cannot_be_taken_back_is_told() {
    let mut next = canary(&[(10, Some(60))]);
    next.targets.insert(0, target("cart", "cart:live"));
    next.template = json!({"containers": [{"name": "app", "image": IMAGE}]});
    let mut stand = Stand::new();
    stand.lambda.state().function("cart", 1);
    stand.point("cart", "live", Route::to("1"));
    stand.point("shop", "live", Route::to("1"));
    stand.apply(&next);
    next.template = json!({"containers": [{"name": "app", "image": format!("{IMAGE}cd")}]});
    stand.apply(&next);
    assert_eq!(stand.alias("live"), "10 10%11", "{:?}", stand.last());
    stand.lambda.state().forbidden = Some("cart".into());
    stand.command(Command::Cancel);
    stand.pass(Span::seconds(1));
    stand.assert_ended(Status::Failed, "10");
    let told = stand.last().progress.targets["cart"].message.clone();
    assert!(told.starts_with("could not be taken back") && told.contains("not authorized"), "{told}");
}

#[test]
fn every_target_follows_or_all_of_them_go_back() {
    let mut next = canary(&[(10, Some(5))]);
    next.targets.push(target("eu", "shop:eu"));
    let mut stand = Stand::deployed(&next);
    assert_eq!((stand.alias("live").as_str(), stand.alias("eu").as_str()), ("1", "1"));
    stand.apply(&next);
    assert_eq!((stand.alias("live").as_str(), stand.alias("eu").as_str()), ("1 10%2", "1 10%2"));
    // Somebody takes one of them away.
    stand.lambda.state().functions.get_mut("shop").unwrap().aliases.remove("eu");
    stand.pass(Span::seconds(10));
    stand.assert_ended(Status::Failed, "1");
    let last = stand.last();
    assert_eq!(
        (last.reason.as_str(), last.message.as_str()),
        ("DeployerFailed", "the deployer exited with 1: alias shop:eu was deleted")
    );
    assert_eq!(last.progress.targets["main"].message, "taken back to Lambda version 1");
    assert_eq!(last.progress.targets["eu"].message, "the alias was deleted");
}

#[test]
fn what_somebody_else_does_to_an_alias_stays() {
    let next = canary(&[(10, Some(5))]);
    let mut stand = Stand::deployed(&next);
    stand.apply(&next);
    stand.point("shop", "live", Route::to("7"));
    stand.pass(Span::seconds(10));
    stand.assert_ended(Status::Failed, "7");
    assert!(
        stand.last().message.contains("alias shop:live was pointed to Lambda version 7 by somebody else"),
        "{:?}",
        stand.last()
    );
}

/// What is refused half-way through the targets is refused for all of them, with what Lambda says.
#[test]
fn a_refused_change_fails_the_deployment() {
    let mut next = definition("Recreate", &version(2));
    next.targets[0].id = "shop:live".into();
    let mut stand = Stand::deployed(&next);
    stand.lambda.state().forbidden = Some("shop".into());
    stand.apply(&next);
    stand.pass(Span::seconds(1));
    stand.assert_ended(Status::Failed, "1");
    assert!(stand.last().message.contains("not authorized to perform lambda:UpdateAlias"), "{:?}", stand.last().message);
}

#[test]
fn a_version_that_is_not_there_changes_nothing() {
    let next = definition("Recreate", &version(10));
    let mut stand = Stand::deployed(&next);
    stand.apply(&next);
    stand.pass(Span::seconds(1));
    stand.assert_ended(Status::Failed, "1");
    assert!(stand.last().message.contains("ResourceNotFoundException: shop:10"), "{:?}", stand.last().message);
    assert!(stand.log().is_empty());
}

#[test]
fn an_image_that_means_nothing_to_an_alias_is_refused() {
    let next = definition("Recreate", "shop:latest");
    let mut stand = Stand::deployed(&next);
    stand.apply(&next);
    stand.pass(Span::seconds(1));
    stand.assert_ended(Status::Failed, "1");
    let message = stand.last().message;
    assert!(message.contains("arn:aws:lambda:<region>:<account>:function:<name>:<version>"), "{message}");
}

/// Somebody's canary was left behind: going back to the version that the alias points to takes it away.
#[test]
fn what_another_version_still_gets_is_taken_from_it() {
    let next = definition("Rolling", &version(2));
    let mut stand = Stand::deployed(&with_image(&next, &version(1)));
    stand.point("shop", "live", Route { version: "2".into(), canary: Some(("3".into(), 10)) });
    stand.apply(&next);
    stand.pass(Span::seconds(10));
    stand.assert_ended(Status::Complete, "2");
}

#[test]
fn an_alias_that_is_there_already_is_left_alone() {
    let next = canary(&[(10, None)]);
    let mut stand = Stand::deployed(&next);
    stand.point("shop", "live", Route::to("2"));
    stand.lambda.state().log.clear();
    stand.apply(&next);
    stand.pass(Span::seconds(1));
    stand.assert_ended(Status::Complete, "2");
    assert!(stand.log().is_empty(), "{:?}", stand.log());
}

/// An alias of `$LATEST` cannot share its requests.
#[test]
fn an_alias_without_a_version_goes_over_at_once() {
    let next = canary(&[(10, Some(60))]);
    let mut stand = Stand::deployed(&next);
    stand.point("shop", "live", Route::to("$LATEST"));
    stand.apply(&next);
    assert_eq!(stand.alias("live"), "2");
    stand.pass(Span::seconds(61));
    stand.assert_ended(Status::Complete, "2");
}

const IMAGE: &str = "1.dkr.ecr.eu-central-1.amazonaws.com/shop@sha256:ab";

#[test]
fn a_container_image_becomes_one_version_of_each_function() {
    let mut next = definition("Recreate", IMAGE);
    next.targets.push(target("eu", "shop:eu"));
    let mut stand = Stand::new();
    stand.lambda.state().slow = 4;
    stand.apply(&next);
    assert_eq!(stand.alias("live"), "-", "the version is not ready");
    assert!(stand.last().progress.message.contains("version 10 of shop is not ready yet"), "{:?}", stand.last().progress);
    stand.pass(Span::minutes(1));
    stand.assert_ended(Status::Complete, "10");
    assert_eq!(stand.log(), ["shop has version 10", "shop:live 10", "shop:eu 10"]);
}

fn package(n: u32) -> String {
    format!("s3://releases/shop-{n}.zip@sha256:{n:064x}")
}

#[test]
fn a_package_of_code_becomes_a_version() {
    let mut next = canary(&[(10, Some(1))]);
    next = with_image(&next, &package(1));
    let mut stand = Stand::deployed(&next);
    stand.apply(&next);
    stand.pass(Span::minutes(1));
    stand.assert_ended(Status::Complete, "10");
    assert_eq!(stand.log(), ["shop has version 10", "shop:live 1 10%10", "shop:live 10"]);
    // The object holds something else by now: no request goes to what was made of it.
    let why = "s3://releases/shop-2.zip has another SHA-256";
    stand.lambda.state().overwritten = Some(why.into());
    stand.apply(&with_image(&next, &package(2)));
    stand.pass(Span::minutes(1));
    stand.assert_ended(Status::Failed, "10");
    assert!(stand.last().message.contains(why), "{:?}", stand.last());
}

/// S18.
#[test]
fn a_version_that_never_becomes_ready_fails_in_time() {
    let next = definition("Recreate", IMAGE);
    let mut stand = Stand::deployed(&next);
    stand.lambda.state().slow = u32::MAX;
    stand.apply(&next);
    stand.pass(Span::minutes(9));
    assert_eq!(stand.status(), Status::Running);
    stand.pass(Span::minutes(3));
    stand.assert_ended(Status::Failed, "1");
    assert!(
        stand.last().message.contains("it took longer than 10m: Lambda version 10 of shop is not ready yet"),
        "{:?}",
        stand.last()
    );
    stand.lambda.state().broken = Some("ImageAccessDenied".into());
    stand.command(Command::Retry);
    stand.pass(Span::minutes(1));
    stand.assert_ended(Status::Failed, "1");
    assert!(stand.last().message.contains("ImageAccessDenied"), "{:?}", stand.last());
}

fn back(by_steps: bool) -> Command {
    Command::Rollback(serde_json::from_value(json!({"config": false, "application": true, "bySteps": by_steps})).unwrap())
}

#[test]
fn a_rollback_takes_all_requests_at_once_unless_it_is_to_take_steps() {
    let mut next = canary(&[(10, Some(3600)), (50, Some(3600))]);
    next.strategy.hooks.post = hook(FailurePolicy::Abort);
    next.other.insert("minReadySeconds".into(), json!(600));
    for by_steps in [false, true] {
        let mut stand = Stand::deployed(&next);
        stand.apply(&next);
        stand.pass(Span::minutes(180));
        stand.assert_ended(Status::Complete, "2");
        stand.lambda.state().log.clear();
        stand.lambda.state().calls.clear();
        stand.command(back(by_steps));
        stand.pass(Span::seconds(10));
        if by_steps {
            assert_eq!((stand.status(), stand.alias("live").as_str()), (Status::Running, "2 10%1"));
            stand.pass(Span::minutes(180));
        }
        stand.assert_ended(Status::Complete, "1");
        let steps = if by_steps { vec!["shop:live 2 10%1", "shop:live 2 50%1", "shop:live 1"] } else { vec!["shop:live 1"] };
        assert_eq!(stand.log(), steps);
        assert_eq!(stand.lambda.state().calls.len(), 1, "the hook runs");
    }
}

#[test]
fn a_rollback_points_to_the_version_that_was_published_then() {
    let code = |digest: &str| definition("Recreate", &format!("1.dkr.ecr.eu-central-1.amazonaws.com/shop@sha256:{digest}"));
    let mut stand = Stand::new();
    for digest in ["aa", "bb"] {
        stand.apply(&code(digest));
        stand.pass(Span::minutes(5));
    }
    stand.assert_ended(Status::Complete, "11");
    stand.lambda.state().log.clear();
    stand.command(back(false));
    stand.pass(Span::minutes(5));
    stand.assert_ended(Status::Complete, "10");
    assert_eq!(stand.log(), ["shop:live 10"], "nothing is published once more");
}
