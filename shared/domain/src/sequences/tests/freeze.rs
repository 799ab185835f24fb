//! Windows hold back what has not begun.

use super::*;
use crate::windows::{Kind as Does, When, Window};

const HOUR: Span = Span::minutes(60);

/// The stand, with a freeze of `dev` that begins an hour ago and ends in two.
pub(super) fn frozen() -> Stand {
    let mut stand = Stand::new();
    let when = When::Once { from: NOW - HOUR, until: NOW + HOUR + HOUR };
    stand.shipyard.stages[0].windows = vec![Window { kind: Does::Deny, when, zone: None, reason: Some("quarter end".into()) }];
    stand
}

fn end() -> Timestamp {
    NOW + HOUR + HOUR
}

#[test]
fn an_execution_is_held_back_from_its_birth_and_begins_when_the_window_ends() {
    let mut stand = frozen();
    let held = born(&birth(), &stand.entrance()).next;
    assert_eq!((held.phase(), held.lane, held.wake), (Phase::Frozen, Lane::Wants, Some(end())));
    assert_eq!(held.held, Some(Held { since: NOW, until: Some(end()), by: "quarter end".into() }));
    assert_eq!(deadline(&held, &stand.sequence, &POLICY), Some(end()));
    // Whoever gives it the lane by mistake finds it held back as before, with another request.
    let again = stand.commit(&held, Input::Granted(0));
    assert_eq!((again.next.phase(), again.next.ask, again.next.held == held.held), (Phase::Frozen, 1, true));
    assert!(again.record.is_none() && fresh(Some(&held), &again.next).contains(&Duty::Ask));
    // Early, then in time.
    assert_eq!(stand.decide(&held, Input::Wake(end())), Decision::Settle);
    stand.now = end();
    let free = stand.commit(&held, Input::Wake(end())).next;
    assert_eq!((free.phase(), free.lane, free.ask, free.wake), (Phase::Queued, Lane::Wants, 0, None));
    assert_eq!(fresh(Some(&held), &free), [Duty::Ask], "it drives the lane");
    // Without its wake-up, the lane is given to it all the same.
    assert_eq!(stand.commit(&held, Input::Granted(0)).next.phase(), Phase::Running);
}

#[test]
fn what_is_in_the_queue_is_held_back_when_it_gets_the_lane() {
    let stand = frozen();
    let queued = born(&birth(), &Stand::new().entrance()).next;
    let held = stand.commit(&queued, Input::Granted(0)).next;
    assert_eq!((held.phase(), held.lane, held.ask, held.wake), (Phase::Frozen, Lane::Wants, 1, Some(end())));
    assert_eq!(stand.decide(&queued, Input::Obey), Decision::Settle, "it is asked when it gets the lane");
}

#[test]
fn what_has_begun_goes_on() {
    let stand = frozen();
    for (phase, x) in phases().into_iter().filter(|(_, x)| x.began.is_some() && x.outcome.is_none()) {
        assert_eq!(stand.entrance().passage(&x), Passage::Free, "{phase:?}");
        for input in [Input::Granted(x.ask), Input::Obey, Input::Wake(x.wake.unwrap_or(NOW)), Input::Settle] {
            assert_eq!(stand.decide(&x, input), Stand::new().decide(&x, input), "{phase:?} {input:?}");
        }
    }
}

#[test]
fn a_window_may_change_while_something_waits_for_it() {
    let mut stand = frozen();
    let held = born(&birth(), &stand.entrance()).next;
    assert_eq!(stand.decide(&held, Input::Obey), Decision::Settle);
    let later = end() + HOUR;
    stand.shipyard.stages[0].windows[0].when = When::Once { from: NOW - HOUR, until: later };
    let longer = stand.commit(&held, Input::Obey).next;
    assert_eq!(
        (longer.held.as_ref().unwrap().until, longer.wake),
        (Some(later), Some(end())),
        "the wake-up serves: it finds the later end"
    );
    stand.now = end();
    assert_eq!(stand.commit(&longer, Input::Wake(end())).next.wake, Some(later));
    stand.now = NOW;
    stand.shipyard.stages[0].windows.clear();
    assert!(stand.entrance().differs(&held));
    assert_eq!(stand.commit(&held, Input::Obey).next.phase(), Phase::Queued);
}

#[test]
fn a_person_lets_a_context_through_this_one_time() {
    let mut stand = frozen();
    let held = born(&birth(), &stand.entrance()).next;
    let given = Override { by: "ann".into(), reason: "the fix for INC-7".into(), at: NOW, until: Some(end()) };
    stand.flags.overrides.insert("dev".into(), given);
    let free = stand.commit(&held, Input::Obey).next;
    assert_eq!((free.phase(), &free.view.overridden), (Phase::Queued, &Some(("ann".into(), "the fix for INC-7".into()))));
    let running = stand.commit(&free, Input::Granted(0)).next;
    assert_eq!((running.phase(), &running.view.overridden), (Phase::Running, &free.view.overridden));
    let born_free = born(&birth(), &stand.entrance()).next;
    assert_eq!(born_free.phase(), Phase::Queued, "also what is triggered later");
    // Another freeze, or a longer one, needs another word.
    stand.shipyard.stages[0].windows[0].when = When::Once { from: NOW - HOUR, until: end() + HOUR };
    assert_eq!(born(&birth(), &stand.entrance()).next.phase(), Phase::Frozen);
}

#[test]
fn repairs_and_evaluations_are_not_held_back_unless_they_say_so() {
    let ignores = |name: &str, tasks: &[&str]| sequence(name, tasks, &[]).ignores_windows();
    assert!(!ignores("delivery", &["deploy", "evaluation"]));
    for (name, tasks) in [
        ("rollback", &["deploy"][..]),
        ("remediation", &["action"]),
        ("heal", &["get-action", "action"]),
        ("back", &["undo"]),
        ("evaluation", &["evaluation"]),
    ] {
        assert!(ignores(name, tasks), "{name}");
    }
    let mut stand = frozen();
    stand.shipyard.stages[0].sequences[0].ignore_windows = Some(true);
    assert_eq!(born(&birth(), &stand.entrance()).next.phase(), Phase::Queued);
    let mut rollback = birth();
    rollback.sequence = "rollback".into();
    assert_eq!(born(&rollback, &stand.entrance()).next.phase(), Phase::Queued);
    stand.shipyard.stages[0].sequences[1].ignore_windows = Some(false);
    assert_eq!(born(&rollback, &stand.entrance()).next.phase(), Phase::Frozen);
}

#[test]
fn who_is_paused_ended_or_superseded_is_not_held_back_any_more() {
    let mut stand = frozen();
    let held = born(&birth(), &stand.entrance()).next;
    let by = Context::new("c2").unwrap();
    let superseded = stand.commit(&replaceable(&held), Input::Superseded(&by)).next;
    assert_eq!((superseded.phase(), superseded.held), (Phase::Ended, None));
    assert_eq!(stand.commit(&held, Input::Abort).next.held, None);
    stand.flags.paused = true;
    let paused = stand.commit(&held, Input::Obey).next;
    assert_eq!((paused.phase(), &paused.held), (Phase::Paused, &None));
    stand.flags.paused = false;
    let resumed = stand.commit(&paused, Input::Obey).next;
    assert_eq!(stand.commit(&resumed, Input::Granted(resumed.ask)).next.phase(), Phase::Frozen);
}
