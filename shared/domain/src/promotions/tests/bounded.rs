//! What fails is bounded and told, and what failed holds up what comes behind it.

use super::*;
use crate::condition::Condition;

const DAY: Span = Span::minutes(24 * 60);

/// The host refuses to close anything: a revision each hour leaves a closing each.
fn refused(revisions: usize) -> Stand {
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    for n in 2..revisions + 2 {
        stand.observe("dev", &format!("v{n}/R"));
        let closings: Vec<Attempt> =
            stand.x.environments["staging"].closing.iter().map(|closing| Attempt::of("staging", &closing.promotion)).collect();
        for attempt in closings {
            stand.give(Input::Closed(&attempt, &Closed::Failed(None)));
        }
        stand.create("staging", n as u64);
        stand.pass(Span::minutes(60));
    }
    stand
}

#[test]
fn what_cannot_be_taken_back_is_bounded_and_the_oldest_is_named_and_told() {
    let stand = refused(60);
    let closing = &stand.x.environments["staging"].closing;
    assert_eq!(closing.len(), MAX_CLOSING);
    assert_eq!(closing[0].promotion.revision, "v41", "the newest are kept");
    let left: Vec<&Past> = stand.past.iter().filter(|past| past.promotion.why.reason == NOT_TAKEN_BACK).collect();
    assert_eq!(left.len(), 39);
    assert!(left[0].promotion.why.message.contains("https://git.test/o/r/pulls/2 could not be taken back"), "{left:?}");
    assert_eq!(stand.told.iter().filter(|told| told.starts_with("staging left ")).count(), 39);
    assert_eq!(stand.promotion("staging").phase, Phase::Created, "the present revision goes on");
}

#[test]
fn after_a_day_of_failures_closing_is_tried_once_a_day() {
    let mut stand = refused(2);
    stand.observe("dev", "v2/R");
    let tries = |stand: &mut Stand, span: Span| {
        let (end, before) = (stand.now + span, stand.closings().len());
        while let Some(wake) = stand.x.wake.filter(|wake| *wake <= end) {
            stand.now = wake;
            stand.give(Input::Wake(wake));
            let ordered: Vec<Attempt> = stand.x.environments["staging"]
                .closing
                .iter()
                .filter(|closing| closing.ordered)
                .map(|closing| Attempt::of("staging", &closing.promotion))
                .collect();
            for attempt in ordered {
                stand.give(Input::Closed(&attempt, &Closed::Failed(None)));
            }
        }
        stand.now = end;
        stand.closings().len() - before
    };
    assert!(tries(&mut stand, DAY) > 10);
    tries(&mut stand, DAY);
    let all = stand.x.environments["staging"].closing.len();
    assert_eq!(tries(&mut stand, DAY), all, "one a day for each");
}

#[test]
fn a_deleted_pipeline_whose_host_is_gone_is_over_after_a_week() {
    let mut stand = refused(1);
    stand.definition = None;
    stand.evaluate();
    assert!(!stand.x.over());
    for _ in 0..9 {
        for closing in stand.x.environments.get("staging").map(|state| state.closing.clone()).unwrap_or_default() {
            let attempt = Attempt::of("staging", &closing.promotion);
            stand.give(Input::Closed(&attempt, &Closed::Failed(None)));
        }
        stand.now = stand.now + DAY;
    }
    assert!(stand.x.over(), "{:?}", stand.x.environments);
    assert_eq!(stand.past.last().unwrap().promotion.why.reason, NOT_TAKEN_BACK);
}

/// Staging has failed three times for now, and is attempted once more.
fn thrice_failed() -> Stand {
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    stand.observe("dev", "v2/R");
    for _ in 0..3 {
        stand.end("staging", &failed());
        let due = stand.promotion("staging").due.unwrap();
        stand.pass(due - stand.now);
    }
    stand
}

#[test]
fn all_attempts_of_a_branch_need_one_closing() {
    let mut stand = thrice_failed();
    stand.observe("dev", "v3/R");
    assert_eq!(stand.x.environments["staging"].closing.len(), 1);
}

/// Staging's promotion has ended badly, and its target runs the revision healthily.
fn contested(seen: &Seen) -> Stand {
    let mut stand = Stand::new(definition(&["dev", "staging", "prod"]));
    stand.observe("dev", "v2/R");
    stand.create("staging", 1);
    let attempt = stand.attempt("staging");
    stand.give(Input::Seen(&attempt, seen));
    stand.observe("staging", "v2/R");
    stand
}

#[test]
fn a_failed_promotion_holds_up_the_environments_behind_it() {
    for seen in [Seen::Failed("the evaluation failed".into()), Seen::Closed("it was closed".into())] {
        let mut stand = contested(&seen);
        assert_eq!((stand.attempts(), stand.x.condition.reason.as_str()), (vec!["staging v2".to_owned()], "PromotionFailed"));
        stand.pass(Span::minutes(600));
        assert_eq!(stand.attempts(), ["staging v2"], "time alone changes nothing");
        assert!(stand.command(Command::Accept(at("staging", "v2")), "ann").is_none());
        assert_eq!(stand.attempts(), ["staging v2", "prod v2"]);
        assert_eq!(stand.promotion("staging").why.message, "accepted by ann");
        assert!(stand.told.contains(&"staging completed v2".to_owned()));
        // Another revision is not held up.
        let mut stand = contested(&seen);
        stand.observe("dev", "v3/R");
        for closing in stand.x.environments["staging"].closing.clone() {
            stand.give(Input::Closed(&Attempt::of("staging", &closing.promotion), &Closed::Closed));
        }
        assert_eq!(stand.attempts(), ["staging v2", "staging v3"]);
    }
}

#[test]
fn a_retry_with_success_lets_the_environments_behind_go_on() {
    let mut stand = contested(&Seen::Failed("the evaluation failed".into()));
    assert!(stand.command(Command::Retry("staging".into()), "ann").is_none());
    let closing = stand.x.environments["staging"].closing[0].promotion.clone();
    stand.give(Input::Closed(&Attempt::of("staging", &closing), &Closed::Closed));
    assert_eq!(stand.attempts(), ["staging v2", "staging v2"], "that it runs there is not enough");
    stand.create("staging", 2);
    let again = stand.attempt("staging");
    stand.give(Input::Seen(&again, &Seen::Succeeded("it passed".into())));
    assert_eq!(stand.attempts(), ["staging v2", "staging v2", "prod v2"]);
}

#[test]
fn a_pull_request_that_is_merged_late_counts() {
    let mut stand = contested(&Seen::Closed("it was closed".into()));
    assert!(stand.promotion("staging").is_watched());
    let attempt = stand.attempt("staging");
    let mut other = contested(&Seen::Closed("it was closed".into()));
    other.give(Input::Seen(&attempt, &Seen::Closed("it is closed".into())));
    assert!(!other.promotion("staging").is_watched(), "the host is asked once");
    other.give(Input::Seen(&attempt, &Seen::Succeeded("merged as abc".into())));
    assert_eq!(other.attempts(), ["staging v2", "prod v2"], "whoever looked at the same time saw it merged");
    stand.give(Input::Seen(&attempt, &Seen::Succeeded("merged as abc".into())));
    assert_eq!(stand.attempts(), ["staging v2", "prod v2"]);
}

#[test]
fn only_what_failed_and_runs_is_accepted() {
    let mut stand = Stand::new(definition(&["dev", "staging", "prod"]));
    stand.observe("dev", "v2/R");
    stand.create("staging", 1);
    let refused = |stand: &mut Stand| match stand.command(Command::Accept(at("staging", "v2")), "ann") {
        Some(Refused::Conflict(why)) => why,
        other => panic!("{other:?}"),
    };
    assert!(refused(&mut stand).contains("has not failed"));
    let attempt = stand.attempt("staging");
    stand.give(Input::Seen(&attempt, &Seen::Closed("it was closed".into())));
    assert!(refused(&mut stand).contains("accept it when they are"));
    assert!(matches!(stand.command(Command::Accept(at("nowhere", "v2")), "ann"), Some(Refused::Unknown(_))));
}

#[test]
fn an_order_waits_for_an_environment_that_was_put_before_it() {
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    stand.observe("dev", "v2/R");
    stand.create("staging", 1);
    stand.definition = Some(definition(&["dev", "qa", "staging"]));
    stand.fact("qa", "v1/R");
    stand.evaluate();
    assert_eq!((stand.attempts(), stand.closings()), (vec!["staging v2".into(), "qa v2".into()], vec!["staging v2".to_owned()]));
    let closing = stand.x.environments["staging"].closing[0].promotion.clone();
    stand.give(Input::Closed(&Attempt::of("staging", &closing), &Closed::Closed));
    assert_eq!(stand.past.last().unwrap().promotion.why.reason, "OutOfTurn");
    stand.create("qa", 2);
    stand.observe("qa", "v2/R");
    assert_eq!(stand.attempts(), ["staging v2", "qa v2", "staging v2"], "in its turn");
    assert_eq!(stand.promotion("staging").again, 1, "on another branch");
}

#[test]
fn an_order_waits_for_an_environment_before_it_whose_promotion_has_not_arrived() {
    let mut stand = Stand::new(definition(&["dev", "staging", "prod"]));
    stand.observe("dev", "v2/R");
    stand.create("staging", 1);
    let attempt = stand.attempt("staging");
    stand.give(Input::Seen(&attempt, &Seen::Succeeded("merged".into())));
    stand.definition = Some(definition(&["dev", "prod", "staging"]));
    stand.evaluate();
    stand.create("prod", 2);
    stand.definition = Some(definition(&["dev", "staging", "prod"]));
    stand.evaluate();
    assert_eq!((stand.attempts(), stand.closings()), (vec!["staging v2".into(), "prod v2".into()], vec!["prod v2".to_owned()]));
}

#[test]
fn an_order_stays_if_an_environment_before_it_had_the_revision() {
    for lost in ["v2/N", "?", "v1/R"] {
        let mut stand = Stand::new(definition(&["dev", "staging", "prod"]));
        // It ran the revision before it came to the first environment.
        stand.observe("staging", "v2/R");
        stand.observe("dev", "v2/R");
        stand.create("prod", 1);
        stand.observe("staging", lost);
        stand.pass(Span::minutes(60));
        assert_eq!(stand.closings(), Vec::<String>::new(), "{lost}");
        assert_eq!(stand.promotion("prod").phase, Phase::Created, "{lost}");
    }
}

#[test]
fn an_unreadable_target_is_told_whoever_is_next() {
    let mut stand = Stand::new(definition(&["dev", "staging", "prod"]));
    stand.fact("prod", "?");
    stand.observe("dev", "v2/R");
    assert_eq!(stand.x.unreadable().collect::<Vec<_>>(), [("prod", "prod: cluster not found")]);
    stand.observe("prod", "v1/R");
    assert_eq!(stand.x.unreadable().count(), 0);
}

#[test]
fn an_attempt_that_is_superseded_as_it_begins_is_not_begun() {
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    stand.observe("dev", "v2/R");
    let old = stand.attempt("staging");
    // The fact is known, and nobody has evaluated it yet.
    stand.fact("dev", "v3/R");
    stand.give(Input::Begin(&old));
    assert_eq!(stand.attempts(), ["staging v2", "staging v3"], "nobody waits for a lease that nobody needs");
    assert!(stand.x.environments["staging"].closing.is_empty());
}

#[test]
fn a_pull_request_that_cannot_be_looked_at_is_told_once_until_it_can() {
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    stand.observe("dev", "v2/R");
    stand.create("staging", 1);
    let attempt = stand.attempt("staging");
    for reason in ["CredentialsRefused", "Forbidden"] {
        stand.give(Input::Seen(&attempt, &Seen::Unobserved(Condition::new(reason, "the host answered"))));
        assert_eq!((stand.x.condition.reason.as_str(), stand.promotion("staging").phase), (reason, Phase::Created));
    }
    assert_eq!(stand.told.iter().filter(|told| *told == "staging unobserved v2").count(), 1);
    let made = stand.promotion("staging").effect.clone().unwrap();
    stand.give(Input::Seen(&attempt, &Seen::Open(made)));
    assert_eq!(stand.x.condition.reason, REQUEST_OPEN);
    // A copy of what was told before tells nothing.
    stand.give(Input::Seen(&attempt, &Seen::Unobserved(Condition::new("Forbidden", "the host answered"))));
    assert_eq!(stand.x.condition.reason, REQUEST_OPEN);
    assert_eq!(stand.told.iter().filter(|told| *told == "staging unobserved v2").count(), 1);
    stand.give(Input::Seen(&attempt, &Seen::Missing("the repository is gone".into())));
    let promotion = stand.promotion("staging");
    assert_eq!((promotion.phase, promotion.why.reason.as_str()), (Phase::Abandoned, MISSING));
    assert_eq!((stand.closings().len(), stand.told.last().unwrap().as_str()), (0, "staging abandoned v2"));
}

#[test]
fn an_attempt_belongs_to_whoever_goes_on_with_it() {
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    stand.observe("dev", "v2/R");
    let attempt = stand.attempt("staging");
    stand.give(Input::Begin(&attempt));
    for _ in 0..20 {
        stand.pass(HEARTBEAT);
        stand.give(Input::Beat(&attempt));
    }
    assert_eq!(stand.attempts().len(), 1, "five minutes, and nobody else has begun it");
    // Superseded, it is not closed while somebody is still at it.
    stand.observe("dev", "v3/R");
    for _ in 0..4 {
        stand.pass(HEARTBEAT);
        stand.give(Input::Beat(&attempt));
    }
    assert_eq!(stand.closings(), Vec::<String>::new());
    stand.pass(LEASE);
    assert_eq!(stand.closings(), ["staging v2"], "the function died");
    // Somebody else's attempt is not prolonged.
    let before = stand.x.clone();
    stand.give(Input::Beat(&attempt));
    assert_eq!(stand.x, before);
}

#[test]
fn a_successor_does_not_wait_for_a_closing_that_nobody_carries_out() {
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    stand.observe("dev", "v2/R");
    stand.create("staging", 1);
    stand.observe("dev", "v3/R");
    assert_eq!(stand.x.condition.reason, "Closing");
    stand.pass(Span::minutes(1));
    assert_eq!(stand.attempts(), ["staging v2", "staging v3"]);
    assert_eq!(stand.closings(), ["staging v2", "staging v2"], "and it is ordered again");
}

#[test]
fn an_attempt_that_got_somewhere_goes_on_at_once_and_waits_no_longer_for_it() {
    let mut stand = thrice_failed();
    let soon = AttemptResult::Failed { why: Condition::new("HostUnavailable", "not done yet"), retry: Retry::Soon };
    stand.end("staging", &soon);
    assert_eq!(stand.promotion("staging").due, Some(stand.now + SOON));
    stand.pass(SOON);
    stand.end("staging", &failed());
    let wait = stand.promotion("staging").due.unwrap() - stand.now;
    assert!(wait < Span::seconds(40), "the pauses begin anew: {wait}");
}

/// Planted P8: the walk does not ask the gates while the environment before is unhealthy; `explain` does.
#[test]
fn the_soak_is_not_over_while_the_environment_before_is_unhealthy() {
    let mut definition = definition(&["dev", "staging"]);
    definition.environments[0].soak = Some(Span::minutes(30));
    let mut stand = Stand::new(definition);
    stand.observe("dev", "v2/R");
    assert_eq!(stand.x.condition.reason, "Soaking");
    stand.pass(Span::minutes(10));
    stand.observe("dev", "v2/N");
    let facts =
        Facts { now: stand.now, cause: Cause::default(), definition: stand.definition.as_ref(), observations: &stand.observations };
    let gate = closed(&stand.x, 1, stand.promotion("staging"), &settings(false), &facts).expect("a closed gate");
    assert_eq!((gate.why.reason.as_str(), gate.opens), ("Soaking", None));
}

/// Planted P9: what is being closed is not ordered again by whatever happens meanwhile.
#[test]
fn a_closing_is_ordered_once_until_somebody_tells_how_it_went() {
    let mut stand = Stand::new(definition(&["dev", "staging", "prod"]));
    stand.observe("dev", "v2/R");
    stand.create("staging", 1);
    stand.observe("dev", "v3/R");
    for what in ["v1/N", "v1/R", "?"] {
        stand.observe("prod", what);
        stand.pass(Span::seconds(5));
    }
    assert_eq!(stand.closings(), ["staging v2"]);
    let old = Attempt::of("staging", &stand.x.environments["staging"].closing[0].promotion);
    stand.give(Input::Closed(&old, &Closed::Closed));
    let before = stand.x.clone();
    stand.give(Input::Closed(&old, &Closed::Closed));
    assert_eq!((stand.x == before, stand.closings().len()), (true, 1), "a copy of the answer");
}

#[test]
fn what_was_told_last_about_a_look_is_stored_with_the_promotion() {
    let stand = refused(2);
    let promotion = |unseen| Promotion { unseen, ..stand.promotion("staging").clone() };
    let stored = |unseen| serde_json::to_value(promotion(unseen)).unwrap();
    assert_eq!((&stored(7)["uo"], stored(0).get("uo")), (&serde_json::json!(7), None));
    for unseen in [0, 7] {
        assert_eq!(serde_json::from_value::<Promotion>(stored(unseen)).unwrap(), promotion(unseen));
    }
}
