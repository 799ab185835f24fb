//! What people ask for, and what they are told.

use super::*;

#[test]
fn a_revision_is_abandoned_once_and_nothing_else_is_stopped() {
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    stand.observe("dev", "v2/R");
    stand.create("staging", 1);
    stand.command(Command::Abandon("v9".into()), "ann");
    assert_eq!((stand.promotion("staging").phase, stand.closings()), (Phase::Created, vec![]));
    for _ in 0..2 {
        stand.command(Command::Abandon("v2".into()), "ann");
    }
    assert_eq!(
        (stand.x.abandoned.clone(), stand.closings()),
        (vec!["v9".to_owned(), "v2".to_owned()], vec!["staging v2".to_owned()])
    );
}

fn why(refused: Option<Refused>) -> String {
    format!("{refused:?}")
}

#[test]
fn refusals_say_what_is_awaited_and_what_became_of_it() {
    let mut stand = Stand::new(Definition { promotion: Some(settings(true)), ..definition(&["dev", "staging", "prod"]) });
    stand.observe("dev", "v2/R");
    for (name, revision, words, absent) in [
        ("prod", "v2", "does not wait for v2 yet: it does as soon as", "waits for v2,"),
        ("staging", "v9", "does not wait for v9: it waits for v2", "as soon as"),
        ("prod", "v9", "it waits for v2, as soon as the environments before it run it", "yet"),
    ] {
        let told = why(stand.command(Command::Approve(at(name, revision)), "ann"));
        assert!(told.contains(words) && !told.contains(absent), "{told}");
    }
    assert!(!stand.x.condition.message.contains("approvals so far"), "{:?}", stand.x.condition);
    stand.command(Command::Reject(at("staging", "v2")), "bob");
    let told = why(stand.command(Command::Approve(at("staging", "v2")), "ann"));
    assert!(told.contains("v2 was rejected: rejected by bob"), "{told}");
}

#[test]
fn what_was_approved_is_not_rejected_also_while_something_else_holds_it_up() {
    let mut stand = Stand::new(Definition { promotion: Some(settings(true)), ..definition(&["dev", "staging"]) });
    stand.command(Command::Suspend, "ann");
    stand.observe("dev", "v2/R");
    stand.command(Command::Approve(at("staging", "v2")), "ann");
    assert_eq!(stand.promotion("staging").phase, Phase::Waiting);
    assert!(why(stand.command(Command::Reject(at("staging", "v2")), "bob")).contains("does not wait for approval any more"));
}

#[test]
fn what_has_succeeded_is_not_aborted() {
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    stand.observe("dev", "v2/R");
    stand.create("staging", 1);
    let attempt = stand.attempt("staging");
    stand.give(Input::Seen(&attempt, &Seen::Succeeded("merged".into())));
    assert!(stand.command(Command::Abort("staging".into()), "ann").is_some());
}

#[test]
fn only_what_failed_is_accepted_and_the_refusal_says_what_became_of_it() {
    let accept = |stand: &mut Stand| stand.command(Command::Accept(at("staging", "v2")), "ann");
    let mut stand = Stand::new(Definition { promotion: Some(settings(true)), ..definition(&["dev", "staging"]) });
    stand.observe("dev", "v2/R");
    stand.command(Command::Reject(at("staging", "v2")), "bob");
    let told = why(accept(&mut stand));
    assert!(told.contains("v2 was rejected: rejected by bob"), "{told}");
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    stand.observe("dev", "v2/R");
    stand.create("staging", 1);
    assert!(why(accept(&mut stand)).contains("has not failed"));
    let attempt = stand.attempt("staging");
    stand.give(Input::Seen(&attempt, &Seen::Succeeded("merged".into())));
    assert_eq!(accept(&mut stand), None, "it has succeeded already");
    assert_eq!(stand.promotion("staging").why.reason, "Merged");
}
