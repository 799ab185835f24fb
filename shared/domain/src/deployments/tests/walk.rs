//! Long random lives: whatever happens, the invariants hold.

use super::stand::{Stand, definition, on_image, wrapped};
use crate::deployments::definition::{AutoRollback, Concurrency, Trigger};
use crate::deployments::{Call, Command, Config, Decision, Desired, Input, Latest, Reply, Status};
use crate::time::Span;
use proptest::prelude::*;

/// What must be true of every change of the state.
fn check(before: &Config, stand: &Stand) {
    let after = &stand.x;
    assert!(after.latest == before.latest || after.latest == before.latest + 1, "{} after {}", after.latest, before.latest);
    let (Some(old), Some(new)) = (&before.last, &after.last) else { return };
    assert_eq!(new.n, after.latest);
    if old.n == new.n && old.attempt == new.attempt {
        let lent = old.part.as_ref().filter(|part| part.back.is_none() && !part.has_failed() && new.status == Status::Failed);
        assert_eq!(lent, None, "it failed, and what was changed was not taken back");
        assert!(old.status == new.status || old.status.leads_to(new.status), "{} to {}", old.status, new.status);
        assert_eq!((old.snapshot, &old.content), (new.snapshot, &new.content), "a snapshot changed");
    } else if old.n == new.n {
        assert_eq!((old.status, new.attempt), (Status::Failed, old.attempt + 1));
    } else {
        let ended = stand.past.iter().any(|past| (past.deployment.n, past.deployment.attempt) == (old.n, old.attempt));
        assert!(ended, "a version was cut while another runs: {old:?}");
        let by_trigger = new
            .causes
            .iter()
            .any(|why| matches!(why, super::super::Why::ConfigChange { .. } | super::super::Why::ImageChange { .. }));
        assert!(!(by_trigger && before.suspended.is_some() && after.suspended.is_some()), "a suspended trigger fired");
        assert!(before.paused.is_none() || after.paused.is_none(), "a paused config was deployed");
    }
    if new.status == Status::Complete {
        assert_eq!(new.report.as_ref().and_then(|report| report.exit), Some(0));
    }
}

fn step(stand: &mut Stand, dice: u64) {
    let arg = dice >> 8;
    match dice % 30 {
        0..=2 => stand.push(&format!("shop@sha256:{}", arg % 7)),
        3..=4 => stand.set_env(&(arg % 5).to_string()),
        5..=8 => drop(stand.claim()),
        9..=10 => drop(stand.beat()),
        11..=14 => drop(stand.end(i64::from(arg.is_multiple_of(3)))),
        15 => drop(stand.command(Command::Cancel)),
        16 => drop(stand.command(Command::Retry)),
        17 => drop(stand.command(if arg.is_multiple_of(3) { Command::Pause } else { Command::Resume })),
        18 => drop(stand.back((arg.is_multiple_of(2)).then_some(arg % 5))),
        19 => drop(stand.command(Command::Latest(Latest {
            supersede: arg.is_multiple_of(2),
            resume_triggers: arg.is_multiple_of(3),
            ..Latest::default()
        }))),
        20 => drop(stand.command(if arg.is_multiple_of(2) { Command::SuspendTriggers } else { Command::ResumeTriggers })),
        21 => {
            let stale =
                Call::End { token: "token 101".into(), exit: Some(0), message: String::new(), progress: Default::default() };
            drop(stand.call(stale));
        }
        24..=25 => drop(stand.carry([0, 10, 50, 100][(arg % 4) as usize])),
        26..=27 => drop(stand.part_claim()),
        28 => drop(stand.part_beat()),
        29 => drop(stand.part_end(i64::from(arg.is_multiple_of(4)))),
        22 => stand.pass(Span::seconds(i64::try_from(arg % 700).unwrap_or(0))),
        _ => {
            stand.give(Input::Alarm("errors", arg.is_multiple_of(2), stand.now));
        }
    }
}

/// Everything is resumed, and every deployer succeeds.
fn come_to_rest(stand: &mut Stand) {
    drop(stand.command(Command::Resume));
    for _ in 0..50 {
        // A version that failed on the way may have been rolled back.
        drop(stand.command(Command::ResumeTriggers));
        stand.pass(Span::minutes(1));
        if stand.x.in_flight().is_none() && stand.x.last.as_ref().is_some_and(|last| last.status == Status::Failed) {
            drop(stand.command(Command::Retry));
        }
        if stand.x.in_flight().is_some() {
            if let Reply::Desired(Desired::Cancel) = stand.claim() {
                stand.end(1);
            } else {
                stand.beat();
                stand.end(0);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn invariants_hold_and_the_newest_is_deployed_at_rest(
        dice in proptest::collection::vec(any::<u64>(), 1..80),
        queue: bool, auto: bool, start: bool, wraps: bool, history in proptest::option::of(0u32..4),
    ) {
        let mut first = definition(vec![Trigger::ConfigChange, on_image(true)]);
        first.history = history;
        first.concurrency = if queue { Concurrency::Queue } else { Concurrency::Supersede };
        first.auto_rollback = auto.then(|| AutoRollback { on_failure: true, alarms: vec!["errors".into()], bake: Span::minutes(5) });
        if start {
            first.deployer = Some(super::super::definition::Starter::Ecs(Default::default()));
        }
        if wraps {
            first = wrapped(first);
        }
        let mut stand = Stand::new(first);
        for dice in dice {
            let before = stand.x.clone();
            step(&mut stand, dice);
            if dice % 30 != 22 {
                check(&before, &stand);
            }
            stand.pass(Span(0));
            // Nothing is left to decide: the same evaluation again changes nothing.
            let rest = stand.x.clone();
            if let Decision::Commit(again) = stand.give(Input::Evaluate) {
                let said = again.record.map(|record| record.events.into_iter().map(|event| event.ty).collect::<Vec<_>>());
                let state = |x: &Config| Config { last: None, ..x.clone() };
                prop_assert!(false, "{:?}\n{:?}\n{:?}", said, state(&rest), state(&again.next));
            }
        }
        let newest = stand.heads.values().next().map(|head| head.image.clone());
        come_to_rest(&mut stand);
        prop_assert!(stand.x.in_flight().is_none() && stand.x.pending.is_none(), "{:?}", stand.x);
        if let Some(newest) = newest {
            prop_assert_eq!(stand.image(), newest.as_str());
            prop_assert_eq!(stand.x.last.as_ref().map(|last| last.status), Some(Status::Complete));
        }
        let numbers: Vec<u64> = { let mut all: Vec<u64> = stand.past.iter().map(|past| past.deployment.n).collect(); all.dedup(); all };
        prop_assert_eq!(numbers, (1..=stand.x.latest).collect::<Vec<_>>(), "gaps");
    }
}
