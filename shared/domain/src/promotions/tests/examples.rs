//! What a pipeline does, one situation at a time.

use super::*;
use crate::condition::Condition;
use crate::note::Note;

#[test]
fn a_revision_goes_from_environment_to_environment() {
    let mut stand = Stand::new(definition(&["dev", "staging", "prod"]));
    assert_eq!(stand.attempts(), Vec::<String>::new());
    stand.observe("dev", "v2/R");
    assert_eq!(stand.attempts(), ["staging v2"]);
    stand.create("staging", 1);
    let attempt = stand.attempt("staging");
    stand.give(Input::Seen(&attempt, &Seen::Succeeded("merged as abc".into())));
    assert_eq!(stand.x.condition.reason, "WaitingForRollout");
    stand.observe("staging", "v2/N");
    stand.observe("staging", "v2/R");
    assert_eq!(stand.attempts(), ["staging v2", "prod v2"]);
    stand.create("prod", 2);
    stand.observe("prod", "v2/R");
    // The pull request need not be merged any more; if it was, closing it finds that.
    assert_eq!(stand.closings(), ["prod v2"]);
    assert_eq!(stand.promotion("prod").phase, Phase::Succeeded);
    assert_eq!(stand.x.condition, Condition::default());
    assert!(stand.told.contains(&"staging completed v2".to_owned()) && stand.told.contains(&"prod completed v2".to_owned()));
}

#[test]
fn another_revision_closes_what_is_open_everywhere() {
    let mut stand = Stand::new(definition(&["dev", "staging", "prod"]));
    stand.observe("dev", "v2/R");
    stand.create("staging", 1);
    let merged = stand.attempt("staging");
    stand.give(Input::Seen(&merged, &Seen::Succeeded("merged as abc".into())));
    stand.observe("staging", "v2/R");
    stand.create("prod", 2);
    stand.orders.clear();
    stand.observe("dev", "v3/R");
    // Staging has no open pull request; prod's is closed before staging has v3.
    assert_eq!((stand.attempts(), stand.closings()), (vec!["staging v3".to_owned()], vec!["prod v2".to_owned()]));
    assert_eq!(stand.promotion("staging").run, 3);
}

#[test]
fn the_old_pull_request_is_closed_before_the_new_one_is_opened() {
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    stand.observe("dev", "v2/R");
    stand.create("staging", 1);
    let old = stand.attempt("staging");
    stand.observe("dev", "v3/R");
    assert_eq!((stand.attempts().len(), stand.closings()), (1, vec!["staging v2".to_owned()]));
    assert_eq!(stand.x.condition.reason, "Closing");
    stand.give(Input::Closed(&old, &Closed::Failed(None)));
    assert_eq!(stand.attempts(), ["staging v2", "staging v3"], "one failure does not hold up the successor");
    stand.give(Input::Closed(&old, &Closed::Merged("merged as abc".into())));
    let last = stand.past.last().unwrap();
    assert_eq!((last.promotion.revision.as_str(), last.promotion.phase), ("v2", Phase::Succeeded));
}

#[test]
fn somebody_who_is_still_at_it_has_until_the_end_of_the_lease() {
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    stand.observe("dev", "v2/R");
    let old = stand.attempt("staging");
    stand.give(Input::Begin(&old));
    stand.observe("dev", "v3/R");
    assert_eq!(stand.closings(), Vec::<String>::new());
    let made = Made::PullRequest { number: 7, url: "u".into(), branch: "b".into(), head: "h".into(), mergeable: None };
    stand.give(Input::Ended(&old, &AttemptResult::Created(made)));
    assert_eq!(stand.closings(), ["staging v2"], "as soon as it is known");
    stand.give(Input::Closed(&old, &Closed::Closed));
    assert_eq!(stand.attempts(), ["staging v2", "staging v3"]);
    assert!(stand.x.environments["staging"].closing.is_empty());
}

#[test]
fn nobody_waits_for_the_lease_of_an_attempt_that_has_ended() {
    for outcome in [failed(), AttemptResult::Nothing(Condition::default())] {
        let mut stand = Stand::new(definition(&["dev", "staging"]));
        stand.observe("dev", "v2/R");
        let old = stand.attempt("staging");
        stand.give(Input::Begin(&old));
        stand.observe("dev", "v3/R");
        let earlier = Attempt { attempt: 0, ..old.clone() };
        stand.give(Input::Ended(&earlier, &outcome));
        assert_eq!(stand.closings(), Vec::<String>::new(), "another attempt has ended");
        stand.give(Input::Ended(&old, &outcome));
        assert_eq!(stand.closings(), ["staging v2"], "it may have made something before it failed");
        stand.give(Input::Ended(&old, &outcome));
        assert_eq!(stand.closings(), ["staging v2"], "told twice, ordered once");
        stand.give(Input::Closed(&old, &Closed::Closed));
        assert_eq!(stand.attempts(), ["staging v2", "staging v3"]);
    }
}

#[test]
fn what_stops_a_pipeline() {
    for (facts, reason) in [
        (vec![("dev", "v2/N")], "EnvironmentNotReady"),
        (vec![("dev", "?")], "TargetNotReadable"),
        (vec![("dev", "v2/R"), ("staging", "v2/N")], "WaitingForRollout"),
        (vec![("dev", "v2/R"), ("staging", "?")], "TargetNotReadable"),
    ] {
        let mut stand = Stand::new(definition(&["dev", "staging", "prod"]));
        for (name, what) in &facts {
            stand.fact(name, what);
        }
        stand.evaluate();
        assert_eq!((stand.attempts(), stand.x.condition.reason.as_str()), (vec![], reason), "{facts:?}");
    }
    let mut stand = Stand::new(definition(&["dev", "staging", "prod"]));
    stand.fact("prod", "?");
    stand.observe("dev", "v2/R");
    assert_eq!(stand.attempts(), ["staging v2"], "what comes later does not matter yet");
}

#[test]
fn a_revision_that_comes_back_is_promoted_again_and_a_flapping_one_is_not() {
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    stand.observe("dev", "v2/R");
    stand.end("staging", &AttemptResult::Done(Made::Notification { id: "n".into() }));
    stand.observe("staging", "v2/R");
    stand.observe("dev", "v2/N");
    stand.observe("dev", "v2/R");
    assert_eq!(stand.attempts(), ["staging v2"]);
    stand.observe("staging", "v1/R");
    assert_eq!((stand.attempts().len(), stand.x.condition.reason.as_str()), (1, "Drifted"));
    stand.observe("dev", "v1/R");
    stand.observe("dev", "v2/R");
    assert_eq!(stand.attempts(), ["staging v2", "staging v2"]);
}

#[test]
fn a_failed_attempt_is_repeated_less_and_less_often() {
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    stand.observe("dev", "v2/R");
    let mut gaps = vec![];
    for _ in 0..8 {
        stand.end("staging", &failed());
        let due = stand.promotion("staging").due.unwrap();
        gaps.push((due - stand.now).0 / 1000);
        stand.pass(due - stand.now);
    }
    assert_eq!(stand.attempts().len(), 9);
    assert!(gaps.windows(2).all(|pair| pair[0] < pair[1] || pair[1] > 2800), "{gaps:?}");
    assert!(gaps[0] >= 24 && gaps[7] <= 72 * 60, "{gaps:?}");
    let lost = stand.attempt("staging");
    stand.observe("dev", "v3/R");
    // One of its attempts may have made something without telling: that is looked up, and closed.
    assert_eq!(stand.closings(), ["staging v2"]);
    stand.give(Input::Closed(&lost, &Closed::Closed));
    assert_eq!(stand.attempts().last().unwrap(), "staging v3");
}

#[test]
fn an_attempt_that_nobody_ends_is_made_again_and_its_late_end_does_not_count() {
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    stand.observe("dev", "v2/R");
    let first = stand.attempt("staging");
    stand.give(Input::Begin(&first));
    let facts =
        Facts { now: stand.now, cause: Cause::default(), definition: stand.definition.as_ref(), observations: &stand.observations };
    assert_eq!(decide(&stand.x, Input::Begin(&first), &facts), Decision::Late);
    stand.pass(LEASE);
    assert_eq!(stand.attempts().len(), 2, "at once: that was not the host's fault");
    let second = stand.attempt("staging");
    stand.give(Input::Begin(&second));
    stand.pass(LEASE);
    assert_eq!(stand.promotion("staging").why.reason, "AttemptLost");
    stand.pass(Span::minutes(1));
    assert_eq!(stand.attempts().len(), 3, "what stops the function may do so each time");
    stand.give(Input::Ended(&first, &failed()));
    assert_eq!(stand.promotion("staging").phase, Phase::Attempting);
}

#[test]
fn a_closed_pull_request_ends_the_promotion_until_somebody_asks() {
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    stand.observe("dev", "v2/R");
    stand.create("staging", 1);
    let first = stand.attempt("staging");
    stand.give(Input::Seen(&first, &Seen::Closed("closed by a person".into())));
    stand.pass(Span::minutes(1000));
    stand.evaluate();
    assert_eq!(stand.attempts().len(), 1);
    assert_eq!(stand.command(Command::Retry("staging".into()), "ann"), None);
    assert_eq!(stand.attempts().len(), 2);
    assert_ne!(stand.attempt("staging").identity("ns", "app"), first.identity("ns", "app"), "another pull request");
}

#[test]
fn approval_binds_to_the_revision_and_stays_through_retries() {
    let mut definition = definition(&["dev", "staging"]);
    definition.promotion = Some(settings(true));
    let mut stand = Stand::new(definition);
    stand.observe("dev", "v2/R");
    assert_eq!((stand.attempts().len(), stand.x.condition.reason.as_str()), (0, "ApprovalNeeded"));
    assert!(matches!(stand.command(Command::Approve(at("staging", "v1")), "ann"), Some(Refused::Conflict(_))));
    assert!(matches!(stand.command(Command::Approve(at("dev", "v2")), "ann"), Some(Refused::Conflict(_))));
    assert!(matches!(stand.command(Command::Approve(at("qa", "v2")), "ann"), Some(Refused::Unknown(_))));
    assert_eq!(stand.command(Command::Approve(at("staging", "v2")), "ann"), None);
    assert_eq!(stand.attempts(), ["staging v2"]);
    stand.end("staging", &failed());
    stand.pass(Span::minutes(2));
    assert_eq!(stand.attempts().len(), 2);
    assert_eq!(stand.command(Command::Approve(at("staging", "v2")), "ann"), None);
    assert!(stand.command(Command::Reject(at("staging", "v2")), "bob").is_some(), "too late");
    stand.observe("dev", "v3/R");
    assert_eq!(stand.promotion("staging").phase, Phase::Waiting);
    assert_eq!(stand.command(Command::Reject(at("staging", "v3")), "bob"), None);
    assert!(stand.command(Command::Approve(at("staging", "v3")), "ann").is_some());
    assert!(stand.command(Command::Retry("staging".into()), "ann").is_some());
}

#[test]
fn a_quorum_counts_people() {
    let mut settings = settings(true);
    settings.approval.quorum = 2;
    settings.approval.approvers = ["ann", "token:bob", "a.test/eve"].map(str::to_owned).to_vec();
    settings.approval.remind = Some(Span::minutes(60));
    let mut definition = definition(&["dev", "staging"]);
    definition.promotion = Some(settings);
    let mut stand = Stand::new(definition);
    stand.observe("dev", "v2/R");
    stand.pass(Span::minutes(150));
    assert_eq!(stand.told.iter().filter(|told| *told == "staging reminded v2").count(), 2);
    assert_eq!(stand.told.iter().filter(|told| *told == "staging awaited v2").count(), 1);
    for by in ["token:mallory", "a.test/ann", "b.test/eve", "key:ci/ann", "mallory (ann)", "token:eve"] {
        assert!(stand.command(Command::Approve(at("staging", "v2")), by).is_some(), "{by}");
    }
    for by in ["token:ann", "token:ann (bob)"] {
        assert_eq!(stand.command(Command::Approve(at("staging", "v2")), by), None);
    }
    assert_eq!(stand.attempts().len(), 0);
    stand.command(Command::Approve(at("staging", "v2")), "a.test/eve (Eve)");
    assert_eq!(stand.attempts().len(), 1);
}

#[test]
fn a_revision_that_nobody_is_known_to_have_set_is_approved_by_nobody() {
    let mut settings = settings(true);
    settings.approval.separate = true;
    let mut definition = definition(&["dev", "staging"]);
    definition.promotion = Some(settings);
    let mut stand = Stand::new(definition);
    stand.observe("dev", "v2/R");
    let refused = format!("{:?}", stand.command(Command::Approve(at("staging", "v2")), "token:ann"));
    assert!(refused.contains("who set v2 is not known"), "{refused}");
    assert_eq!(stand.command(Command::Reject(at("staging", "v2")), "token:ann"), None, "anybody may reject it");
    assert_eq!(stand.attempts().len(), 0);
}

#[test]
fn an_approval_of_an_older_version_and_one_of_the_same_person_are_one() {
    let mut settings = settings(true);
    settings.approval.quorum = 2;
    let mut definition = definition(&["dev", "staging"]);
    definition.promotion = Some(settings);
    let mut stand = Stand::new(definition);
    stand.observe("dev", "v2/R");
    // Nothing said who vouched for the name.
    for by in ["ann", "token:ann", "a.test/ann", "key:ci/ann"] {
        assert_eq!(stand.command(Command::Approve(at("staging", "v2")), by), None);
    }
    assert_eq!(stand.attempts().len(), 0);
    stand.command(Command::Approve(at("staging", "v2")), "token:bob");
    assert_eq!(stand.attempts().len(), 1);
}

#[test]
fn soak_begins_anew_when_the_environment_is_not_healthy() {
    let mut definition = definition(&["dev", "staging", "prod"]);
    definition.environments[1].soak = Some(Span::minutes(60));
    let mut stand = Stand::new(definition);
    stand.observe("dev", "v2/R");
    stand.create("staging", 1);
    stand.observe("staging", "v2/R");
    assert_eq!(stand.x.condition.reason, "Soaking");
    stand.pass(Span::minutes(50));
    stand.observe("staging", "v2/N");
    stand.observe("staging", "v2/R");
    stand.pass(Span::minutes(59));
    assert_eq!(stand.attempts(), ["staging v2"]);
    stand.pass(Span::minutes(1));
    assert_eq!(stand.attempts(), ["staging v2", "prod v2"]);
}

#[test]
fn suspended_held_and_abandoned_revisions_go_nowhere() {
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    stand.command(Command::Suspend, "ann");
    stand.observe("dev", "v2/R");
    assert_eq!((stand.attempts().len(), stand.x.condition.reason.as_str()), (0, "Suspended"));
    stand.command(Command::Hold(at("staging", "v1")), "ann");
    stand.command(Command::Resume, "ann");
    assert_eq!((stand.attempts().len(), stand.x.condition.reason.as_str()), (0, "Held"));
    stand.command(Command::Release("staging".into()), "ann");
    assert_eq!(stand.attempts(), ["staging v2"]);
    stand.create("staging", 1);
    stand.command(Command::Abandon("v2".into()), "ann");
    assert_eq!(stand.closings(), ["staging v2"]);
    stand.observe("dev", "v3/R");
    stand.observe("dev", "v2/R");
    assert!(!stand.attempts()[1..].contains(&"staging v2".to_owned()));
}

#[test]
fn an_aborted_attempt_is_taken_back() {
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    assert!(stand.command(Command::Abort("staging".into()), "ann").is_some());
    stand.observe("dev", "v2/R");
    stand.create("staging", 1);
    stand.command(Command::Abort("staging".into()), "ann");
    assert_eq!((stand.closings(), stand.promotion("staging").phase), (vec!["staging v2".to_owned()], Phase::Abandoned));
    assert_eq!(stand.promotion("staging").why.message, "aborted by ann");
}

#[test]
fn what_is_removed_is_closed() {
    let mut stand = Stand::new(definition(&["dev", "staging", "prod"]));
    stand.observe("dev", "v2/R");
    stand.create("staging", 1);
    let removed = stand.attempt("staging");
    stand.definition = Some(definition(&["dev", "prod"]));
    stand.evaluate();
    assert_eq!(
        (stand.closings(), stand.attempts()),
        (vec!["staging v2".to_owned()], vec!["staging v2".to_owned(), "prod v2".to_owned()])
    );
    assert_eq!(stand.past, vec![], "what is open may turn out to be merged");
    stand.create("prod", 2);
    let deleted = stand.attempt("prod");
    stand.definition = None;
    stand.evaluate();
    assert!(stand.x.deleted && !stand.x.over());
    stand.give(Input::Closed(&removed, &Closed::Closed));
    assert_eq!(stand.past[0].promotion.why.reason, "EnvironmentRemoved");
    stand.give(Input::Closed(&deleted, &Closed::Closed));
    assert!(stand.x.over());
}

#[test]
fn a_run_may_be_finished_first() {
    let mut definition = definition(&["dev", "staging", "prod"]);
    definition.in_flight = InFlight::Finish;
    let mut stand = Stand::new(definition);
    stand.observe("dev", "v2/R");
    stand.create("staging", 1);
    stand.observe("dev", "v3/R");
    assert_eq!(stand.x.run.as_ref().unwrap().revision, "v2");
    stand.observe("staging", "v2/R");
    assert_eq!(stand.attempts(), ["staging v2", "prod v2"]);
    stand.create("prod", 2);
    stand.observe("prod", "v2/R");
    assert_eq!(stand.x.run.as_ref().unwrap().revision, "v3");
}

#[test]
fn a_command_is_obeyed_once_and_for_the_run_that_was_seen() {
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    let note = |id, run| Note { by: "ann".into(), id, run, ..Note::default() };
    let (first, second) = (note(1, 0), note(2, 0));
    stand.give(Input::Command(&Command::Suspend, &first));
    stand.give(Input::Command(&Command::Resume, &second));
    // A copy that comes late.
    stand.give(Input::Command(&Command::Suspend, &first));
    assert_eq!((stand.x.suspended.clone(), stand.x.obeyed.clone()), (None, vec![1, 2]));
    for id in 3..100 {
        stand.give(Input::Command(&Command::Resume, &note(id, 0)));
    }
    assert_eq!((stand.x.obeyed.len(), stand.x.obeyed.last()), (MAX_OBEYED, Some(&99)));

    stand.definition.as_mut().unwrap().promotion.as_mut().unwrap().manual = true;
    stand.observe("dev", "v2/R");
    stand.observe("dev", "v3/R");
    stand.observe("dev", "v2/R");
    let run = stand.x.run.clone().unwrap().number;
    let approve = Command::Approve(at("staging", "v2"));
    assert!(matches!(stand.give(Input::Command(&approve, &note(200, run - 2))), Some(Refused::Conflict(_))));
    assert_eq!(stand.attempts(), Vec::<String>::new());
    assert_eq!(stand.give(Input::Command(&approve, &note(201, run))), None);
    assert_eq!(stand.attempts(), ["staging v2"]);
}

#[test]
fn a_revision_is_given_up_in_one_environment_and_run() {
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    let give_up = Command::GiveUp(at("staging", "v2"));
    assert!(matches!(stand.command(give_up.clone(), "ann"), Some(Refused::Conflict(_))), "v2 is not awaited");
    stand.observe("dev", "v2/R");
    stand.create("staging", 1);
    let old = stand.attempt("staging");
    assert_eq!(stand.command(give_up.clone(), "ann"), None);
    assert_eq!((stand.promotion("staging").phase, stand.closings()), (Phase::Abandoned, vec!["staging v2".to_owned()]));
    assert_eq!(stand.command(give_up, "bob"), None, "again changes nothing");
    assert!(matches!(stand.command(Command::Approve(at("staging", "v2")), "ann"), Some(Refused::Conflict(_))));
    stand.observe("dev", "v3/R");
    stand.observe("dev", "v2/R");
    stand.give(Input::Closed(&old, &Closed::Closed));
    let closed = &stand.past.last().unwrap().promotion;
    assert_eq!((closed.revision.as_str(), closed.why.reason.as_str()), ("v2", "Abandoned"));
    assert_eq!(stand.promotion("staging").phase, Phase::Attempting, "another run promotes it again");
}

#[test]
fn when_a_promotion_was_done_is_no_matter_of_when_the_next_one_comes() {
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    stand.observe("dev", "v2/R");
    let began = stand.now;
    stand.create("staging", 1);
    stand.pass(Span::seconds(2));
    let attempt = stand.attempt("staging");
    stand.give(Input::Seen(&attempt, &Seen::Succeeded("merged as abc".into())));
    assert_eq!(stand.promotion("staging").done, None, "it waits for the rollout");
    stand.pass(Span::seconds(3));
    stand.observe("staging", "v2/R");
    let done = Some(began + Span::seconds(5));
    assert_eq!(stand.promotion("staging").done, done);
    stand.pass(Span::minutes(10));
    stand.give(Input::Evaluate);
    stand.observe("dev", "v3/R");
    assert_eq!(stand.past.last().map(|past| (past.promotion.run, past.promotion.done)), Some((2, done)));
    // What fails for good is over then, until somebody has it attempted anew.
    stand.pass(Span::seconds(1));
    stand.end("staging", &AttemptResult::Failed { why: Condition::new("Broken", "no"), retry: Retry::Never });
    let failed = Some(stand.now);
    stand.pass(Span::minutes(1));
    stand.give(Input::Evaluate);
    assert_eq!(stand.promotion("staging").done, failed);
    stand.give(Input::Command(&Command::Retry("staging".into()), &Note { id: 7, ..Note::default() }));
    assert_eq!(stand.promotion("staging").done, None);
}

/// Promotions that were over before this was noted have no time, and get none.
#[test]
fn of_what_was_over_before_the_time_is_not_known() {
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    stand.observe("dev", "v2/R");
    stand.end("staging", &AttemptResult::Done(Made::Notification { id: "n".into() }));
    stand.observe("staging", "v2/R");
    assert!(stand.promotion("staging").done.is_some());
    stand.x.environments.get_mut("staging").and_then(|state| state.promotion.as_mut()).unwrap().done = None;
    stand.pass(Span::minutes(1));
    stand.observe("dev", "v2/N");
    assert_eq!(stand.promotion("staging").done, None);
}
