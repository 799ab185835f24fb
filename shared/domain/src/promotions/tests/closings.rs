//! What was made and is taken back: pull requests that are closed.

use super::*;

#[test]
fn what_an_earlier_attempt_made_is_known_to_whoever_takes_it_back() {
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    stand.observe("dev", "v2/R");
    let first = stand.attempt("staging");
    stand.give(Input::Begin(&first));
    stand.pass(LEASE);
    stand.give(Input::Begin(&stand.attempt("staging")));
    stand.observe("dev", "v3/R");
    assert_eq!(stand.closings(), Vec::<String>::new());
    let made = Made::PullRequest { number: 7, url: "u".into(), branch: "b".into(), head: "h".into(), mergeable: None };
    stand.give(Input::Ended(&first, &AttemptResult::Created(made.clone())));
    assert_eq!(
        (stand.closings(), &stand.x.environments["staging"].closing[0].promotion.effect),
        (vec!["staging v2".to_owned()], &Some(made))
    );
}

#[test]
fn what_cannot_be_closed_is_left_open_only_if_the_pipeline_is_deleted_and_for_a_week() {
    for (deleted, days, left) in [(false, 9, false), (true, 1, false), (true, 9, true)] {
        let mut stand = Stand::new(definition(&["dev", "staging"]));
        stand.observe("dev", "v2/R");
        stand.create("staging", 1);
        let old = stand.attempt("staging");
        if deleted {
            stand.definition = None;
            stand.evaluate();
        } else {
            stand.observe("dev", "v3/R");
        }
        for _ in 0..=days {
            stand.give(Input::Closed(&old, &Closed::Failed(None)));
            stand.now = stand.now + Span::minutes(24 * 60);
        }
        let open = stand.x.environments.get("staging").is_some_and(|state| !state.closing.is_empty());
        assert_eq!(open, !left, "{deleted} {days}");
    }
}

#[test]
fn a_closing_that_nobody_carries_out_is_ordered_often_for_a_day_and_then_once_a_day() {
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    stand.observe("dev", "v2/R");
    stand.create("staging", 1);
    stand.command(Command::Abort("staging".into()), "ann");
    let mut ordered = vec![];
    for _ in 0..4 {
        let before = stand.closings().len();
        stand.pass(Span::minutes(24 * 60));
        ordered.push(stand.closings().len() - before);
    }
    assert!(ordered[0] > 20 && ordered[2..] == [1, 1], "{ordered:?}");
}

#[test]
fn what_is_open_in_an_environment_that_was_removed_is_known_until_it_is_closed() {
    let mut stand = Stand::new(definition(&["dev", "staging", "prod"]));
    stand.observe("dev", "v2/R");
    stand.create("staging", 1);
    let old = stand.attempt("staging");
    stand.definition = Some(definition(&["dev", "prod"]));
    stand.evaluate();
    stand.observe("dev", "v3/R");
    assert!(stand.x.environments.contains_key("staging"));
    stand.give(Input::Closed(&old, &Closed::Closed));
    assert!(!stand.x.environments.contains_key("staging"));
}

#[test]
fn of_too_many_closings_the_oldest_that_was_tried_is_left_open() {
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    for n in 2..MAX_CLOSING + 3 {
        stand.observe("dev", &format!("v{n}/R"));
        for closing in &mut stand.x.environments.get_mut("staging").unwrap().closing {
            // Nobody has tried to close the oldest yet.
            closing.tries = u32::from(closing.promotion.revision != "v2");
        }
        stand.evaluate();
        stand.x.environments.get_mut("staging").unwrap().promotion = Some(Promotion {
            phase: Phase::Created,
            strategy: Some(stand.definition.as_ref().unwrap().promotion.as_ref().unwrap().strategy.clone()),
            ..stand.promotion("staging").clone()
        });
    }
    stand.observe("dev", "last/R");
    let closing = &stand.x.environments["staging"].closing;
    let revisions: Vec<&str> = closing.iter().map(|closing| closing.promotion.revision.as_str()).take(2).collect();
    assert_eq!((closing.len(), revisions), (MAX_CLOSING, vec!["v2", "v4"]));
}
