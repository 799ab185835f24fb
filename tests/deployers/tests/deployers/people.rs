//! People pause, resume, cancel and supersede what is on its way.

use keelway_deployers_stand::stand::{Stand, definition, version, with_image};
use keelway_domain::deployments::definition::{Concurrency, Definition, Weight};
use keelway_domain::deployments::{Command, Status};
use keelway_domain::time::Span;

fn canary() -> Definition {
    let mut definition = definition("Canary", &version(2));
    definition.strategy.steps = vec![Weight { weight: 10, bake: Some(Span::minutes(30)) }];
    definition
}

fn baking() -> Stand {
    let next = canary();
    let mut stand = Stand::deployed(&next);
    stand.apply(&next);
    stand.pass(Span::minutes(1));
    assert_eq!((stand.alias("live").as_str(), stand.status()), ("1 10%2", Status::Running));
    stand
}

#[test]
fn a_cancelled_canary_goes_back_at_once() {
    let mut stand = baking();
    stand.command(Command::Cancel);
    stand.pass(Span::seconds(1));
    stand.assert_ended(Status::Failed, "1");
    let last = stand.last();
    assert_eq!(last.reason, "Cancelled");
    assert_eq!(last.progress.targets["main"].message, "taken back to Lambda version 1");
    stand.pass(Span::minutes(120));
    stand.assert_ended(Status::Failed, "1");
    assert_eq!(stand.log(), ["shop:live 1 10%2", "shop:live 1"]);
}

#[test]
fn a_paused_canary_stays_where_it_is() {
    let mut stand = baking();
    stand.command(Command::Pause);
    assert_eq!(stand.last().progress.message, "paused: it goes on when it is resumed");
    stand.pass(Span::minutes(5 * 60));
    assert_eq!((stand.alias("live").as_str(), stand.status()), ("1 10%2", Status::Running));
    stand.command(Command::Resume);
    stand.pass(Span::seconds(1));
    // It has baked for long enough.
    stand.assert_ended(Status::Complete, "2");
}

#[test]
fn a_paused_canary_can_be_cancelled() {
    let mut stand = baking();
    stand.command(Command::Pause);
    stand.command(Command::Resume);
    stand.command(Command::Cancel);
    stand.pass(Span::seconds(1));
    stand.assert_ended(Status::Failed, "1");
}

#[test]
fn a_newer_version_begins_when_the_older_one_is_back() {
    let mut stand = baking();
    let next = with_image(&canary(), &version(3));
    stand.apply(&next);
    stand.pass(Span::minutes(1));
    assert_eq!((stand.x().latest, stand.alias("live").as_str()), (3, "1 10%3"));
    assert_eq!(stand.log(), ["shop:live 1 10%2", "shop:live 1", "shop:live 1 10%3"]);
    stand.pass(Span::minutes(40));
    stand.assert_ended(Status::Complete, "3");
}

#[test]
fn a_queued_version_waits() {
    let mut stand = baking();
    let mut next = with_image(&canary(), &version(3));
    next.concurrency = Concurrency::Queue;
    stand.apply(&next);
    stand.pass(Span::minutes(1));
    assert_eq!((stand.x().latest, stand.alias("live").as_str()), (2, "1 10%2"));
    stand.pass(Span::minutes(70));
    stand.assert_ended(Status::Complete, "3");
}
