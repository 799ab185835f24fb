//! Drift: what is seen, told, and done about it.

use super::stand::{Stand, definition};
use crate::deployments::definition::{OnDrift, Target, Trigger};
use crate::deployments::{Command, Input, LOOK_EVERY, Latest, Order, SOURCE, Served, Sight, Status, Why};
use crate::time::{Span, Timestamp};

/// Version 1 is deployed to the aliases `eu` and `us`, and serves Lambda version 7 there.
fn deployed(policy: OnDrift) -> Stand {
    let mut definition = definition(vec![Trigger::ConfigChange]);
    let target =
        |name: &str| Target { name: name.into(), kind: "lambda-alias".into(), id: "shop:live".into(), region: None, account: None };
    definition.targets = vec![target("eu"), target("us")];
    definition.on_drift = policy;
    let mut stand = Stand::new(definition);
    carry_out(&mut stand, 0);
    stand
}

/// Keelway's own deployer carries the latest version out.
fn carry_out(stand: &mut Stand, exit: i64) {
    stand.settle();
    stand.claim_as(SOURCE);
    stand.beat();
    stand.end(exit);
    stand.orders.clear();
    stand.told.clear();
}

fn seen(stand: &Stand, at: Timestamp, serves: &[(&str, &str)]) -> Sight {
    let served = |serves: &str| Served { expected: "7".into(), serves: serves.into() };
    let n = stand.x.active.as_ref().map_or(0, |active| active.n);
    Sight { n, at, places: serves.iter().map(|(name, serves)| ((*name).to_owned(), served(serves))).collect() }
}

/// An hour passes, and the look that is ordered then sees this.
fn look(stand: &mut Stand, serves: &[(&str, &str)]) {
    stand.pass(LOOK_EVERY);
    stand.evaluate();
    let sight = seen(stand, stand.now, serves);
    stand.give(Input::Saw(&sight));
}

/// What is shown, what was told, what was kept in the audit, and the cause of the latest version.
fn outcome(stand: &Stand) -> (Option<String>, usize, Vec<String>, Option<Why>) {
    let told = stand.told.iter().filter(|what| *what == "deploymentconfig.drifted").count();
    let why = stand.x.last.as_ref().filter(|last| last.n > 1).and_then(|last| last.causes.first().cloned());
    (stand.x.watch.says(), told, stand.drifted.clone(), why)
}

#[test]
fn the_targets_of_a_config_at_rest_are_looked_at_once_an_hour() {
    let mut stand = deployed(OnDrift::Tell);
    let mut looks = vec![];
    for _ in 0..48 {
        // The sweep evaluates it every five minutes.
        stand.pass(Span::minutes(5));
        stand.evaluate();
        looks.append(&mut stand.orders);
    }
    assert_eq!(looks.len(), 4, "{looks:?}");
    assert!(looks.iter().all(|order| matches!(order, Order::Look { n: 1, .. })), "{looks:?}");
    // Not while a version is on its way, and not of what somebody else deploys.
    stand.set_env("b");
    stand.settle();
    stand.orders.clear();
    stand.pass(Span::minutes(9));
    stand.claim_as(SOURCE);
    stand.pass(Span::seconds(30));
    assert!(stand.orders.iter().all(|order| matches!(order, Order::Start { .. })), "{:?}", stand.orders);
    let mut others = Stand::new(definition(vec![Trigger::ConfigChange]));
    others.deploy(0);
    others.pass(Span::minutes(180));
    others.evaluate();
    assert_eq!(others.orders, []);
}

#[test]
fn a_version_that_was_just_completed_is_not_looked_at_for_an_hour_nor_while_the_next_one_is_on_its_way() {
    let mut stand = deployed(OnDrift::Tell);
    stand.pass(Span::minutes(55));
    stand.evaluate();
    assert_eq!(stand.orders, []);
    stand.set_env("b");
    stand.settle();
    stand.claim_as(SOURCE);
    for _ in 0..2 * 70 {
        stand.pass(Span::seconds(30));
        stand.beat();
        stand.evaluate();
    }
    assert!(!stand.orders.iter().any(|order| matches!(order, Order::Look { .. })), "{:?}", stand.orders);
}

#[test]
fn what_follows_from_what_is_seen() {
    let (same, moved, gone) = (&[("eu", "7"), ("us", "7")][..], &[("eu", "3"), ("us", "7")][..], &[("eu", "3"), ("us", "")][..]);
    let restored = |found: &str| Some(Why::Drift { of: 1, found: found.into() });
    let says = |text: &str| Some(text.to_owned());
    type Looks<'a> = &'a [&'a [(&'a str, &'a str)]];
    let cases: [(&str, OnDrift, Looks<'_>, _); 8] = [
        ("nothing moved", OnDrift::Restore, &[same, same], (None, 0, vec![], None)),
        ("told once", OnDrift::Tell, &[moved, moved], (says("serves Lambda version 3"), 1, vec!["serves Lambda version 3"], None)),
        ("moved back by hand", OnDrift::Tell, &[moved, same], (None, 1, vec!["serves Lambda version 3"], None)),
        (
            "again",
            OnDrift::Tell,
            &[moved, same, moved],
            (says("serves Lambda version 3"), 2, vec!["serves Lambda version 3"; 2], None),
        ),
        (
            "more drifts",
            OnDrift::Tell,
            &[moved, gone],
            (
                says("eu serves Lambda version 3, us has no alias any more"),
                2,
                vec!["serves Lambda version 3", "eu serves Lambda version 3, us has no alias any more"],
                None,
            ),
        ),
        (
            "brought back",
            OnDrift::Restore,
            &[moved],
            (says("serves Lambda version 3"), 1, vec!["serves Lambda version 3"], restored("serves Lambda version 3")),
        ),
        ("adopted", OnDrift::Adopt, &[moved, moved], (None, 1, vec!["serves Lambda version 3"], None)),
        (
            "adopted, and moved back",
            OnDrift::Adopt,
            &[moved, same, same],
            (None, 2, vec!["serves Lambda version 3", "serves Lambda version 7"], None),
        ),
    ];
    for (name, policy, looks, (shown, told, kept, why)) in cases {
        let mut stand = deployed(policy);
        looks.iter().for_each(|serves| look(&mut stand, serves));
        let kept: Vec<String> = kept.into_iter().map(str::to_owned).collect();
        assert_eq!(outcome(&stand), (shown, told, kept, why), "{name}");
    }
}

#[test]
fn what_is_brought_back_is_deployed_at_once_and_nothing_is_suspended() {
    let mut stand = deployed(OnDrift::Restore);
    look(&mut stand, &[("eu", "3")]);
    let last = stand.x.last.clone().unwrap();
    assert_eq!((last.n, last.status, &stand.x.suspended), (2, Status::New, &None));
    assert!(last.rollback.is_some_and(|back| (back.release, back.automatic, back.by_steps) == (1, true, false)));
    assert_eq!(last.message, "#1 is brought back, because a target drifted: serves Lambda version 3");
    carry_out(&mut stand, 0);
    assert_eq!((stand.x.watch.says(), stand.x.active.as_ref().map(|active| active.n)), (None, Some(2)));
    look(&mut stand, &[("eu", "7")]);
    assert_eq!(stand.x.latest, 2);
    // A try that failed is not repeated every hour.
    look(&mut stand, &[("eu", "3")]);
    carry_out(&mut stand, 1);
    look(&mut stand, &[("eu", "3")]);
    look(&mut stand, &[("eu", "4")]);
    assert_eq!((stand.x.latest, stand.x.watch.says()), (3, Some("serves Lambda version 4".into())));
}

#[test]
fn nothing_is_brought_back_while_the_config_is_paused() {
    let mut stand = deployed(OnDrift::Restore);
    stand.command(Command::Pause).unwrap();
    look(&mut stand, &[("eu", "3")]);
    assert_eq!((stand.x.latest, stand.x.watch.says()), (1, Some("serves Lambda version 3".into())));
    stand.command(Command::Resume).unwrap();
    look(&mut stand, &[("eu", "3")]);
    assert_eq!(stand.x.latest, 2);
}

#[test]
fn a_look_that_comes_late_does_not_count() {
    let mut stand = deployed(OnDrift::Restore);
    stand.pass(LOOK_EVERY);
    stand.evaluate();
    let late = seen(&stand, stand.now, &[("eu", "3")]);
    look(&mut stand, &[("eu", "7")]);
    stand.give(Input::Saw(&late));
    assert_eq!((stand.x.latest, stand.x.watch.says()), (1, None), "a later one has seen otherwise");
    stand.set_env("b");
    carry_out(&mut stand, 0);
    let other = Sight { n: 1, ..seen(&stand, stand.now, &[("eu", "3")]) };
    stand.give(Input::Saw(&other));
    assert_eq!((stand.x.latest, stand.x.watch.says()), (2, None), "of another version");
}

#[test]
fn a_copy_of_an_earlier_look_does_not_count_after_a_deployment_has_looked() {
    let mut stand = deployed(OnDrift::Tell);
    stand.pass(LOOK_EVERY);
    stand.evaluate();
    let early = seen(&stand, stand.now, &[("eu", "3")]);
    stand.give(Input::Saw(&early));
    stand.set_env("b");
    stand.settle();
    stand.claim_as(SOURCE);
    let at_start = seen(&stand, stand.now, &[("eu", "7")]);
    assert!(at_start.at > early.at);
    stand.give(Input::Saw(&at_start));
    let told = stand.drifted.len();
    stand.give(Input::Saw(&early));
    assert_eq!((stand.x.watch.says(), stand.drifted.len()), (None, told));
}

#[test]
fn a_deployment_that_finds_drift_when_it_begins_tells_it_and_goes_on() {
    for policy in [OnDrift::Tell, OnDrift::Restore, OnDrift::Adopt] {
        let mut stand = deployed(policy);
        stand.set_env("b");
        stand.settle();
        stand.claim_as(SOURCE);
        let sight = seen(&stand, stand.now, &[("eu", "3")]);
        stand.give(Input::Saw(&sight));
        assert_eq!((stand.x.latest, stand.drifted.len()), (2, 1), "{policy:?}");
        stand.end(0);
        assert_eq!((&stand.x.watch.drifted, &stand.x.watch.adopted), (&Default::default(), &Default::default()), "{policy:?}");
    }
}

#[test]
fn a_config_at_which_something_is_about_to_happen_is_not_looked_at() {
    let looks = |stand: &mut Stand| {
        stand.pass(LOOK_EVERY);
        stand.orders.clear();
        stand.evaluate();
        stand.orders.iter().filter(|order| matches!(order, Order::Look { .. })).count()
    };
    let mut stand = deployed(OnDrift::Tell);
    assert_eq!(stand.x.watch.looked, stand.x.active.as_ref().unwrap().at, "its deployment has looked");
    assert_eq!(looks(&mut stand), 1);
    stand.set_env("b");
    stand.settle();
    stand.claim_as(SOURCE);
    assert_eq!(looks(&mut stand), 0, "a version is on its way");
    stand.command(Command::Latest(Latest { again: true, supersede: true, ..Latest::default() })).unwrap();
    stand.command(Command::Pause).unwrap();
    stand.end(0);
    assert!(stand.x.in_flight().is_none() && stand.x.pending.is_some());
    assert_eq!(looks(&mut stand), 0, "a version waits until the config is resumed");
    let mut stand = deployed(OnDrift::Tell);
    stand.set_env("b");
    stand.settle();
    stand.claim_as(SOURCE);
    stand.orders.clear();
    stand.end(0);
    assert_eq!(stand.orders, [], "the deployment has looked");
    let mut stand = deployed(OnDrift::Tell);
    stand.pass(LOOK_EVERY);
    stand.orders.clear();
    stand.set_env("b");
    assert!(stand.x.settling.is_some() && stand.orders.is_empty(), "a change settles");
}

#[test]
fn a_target_that_is_not_the_configs_does_not_drift() {
    let mut stand = deployed(OnDrift::Tell);
    look(&mut stand, &[("eu", "9"), ("gone", "9")]);
    assert_eq!(stand.x.watch.drifted.keys().collect::<Vec<_>>(), ["eu"]);
}
