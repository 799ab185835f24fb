//! Every case in the in-memory world; and the contracts over every case: each message twice, and something going wrong after each
//! single request, leave exactly the same events, bytes and state behind.
//!
//! `KEELWAY_CASE=KC-07` runs one case and, if it fails, prints every request.

use keelway_world::case::{Case, Only, cases, run};
use keelway_world::core::Method;
use keelway_world::story::{Mode, Story};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

fn all() -> Vec<Case> {
    let wanted = std::env::var("KEELWAY_CASE").ok();
    let mut cases = cases().unwrap_or_else(|e| panic!("{e}"));
    cases.retain(|case| case.only != Some(Only::Cloud) && wanted.as_ref().is_none_or(|id| *id == case.id));
    cases
}

/// Tells the case; what went wrong, if anything.
fn told(case: &Case, mode: Mode) -> (Story, Result<(), String>) {
    let mut story = Story::new(mode);
    if std::env::var("KEELWAY_CASE").is_ok() && mode == Mode::Clean {
        story.world.core().trace = Some(vec![]);
    }
    let result = run(case, &mut story).map_err(|failure| failure.to_string());
    let contradiction = story.world.core().bus.contradictions.first().cloned();
    let broken = contradiction.or(story.broken.first().cloned());
    let result = result.and(broken.map_or(Ok(()), |what| Err(format!("{}: {what}", case.id))));
    (story, result)
}

fn fail_if_any(failures: &[String], of: usize) {
    assert!(failures.is_empty(), "{} of {of}:\n\n{}", failures.len(), failures.join("\n\n"));
}

#[test]
fn every_case_holds() {
    let cases = all();
    let mut failures = vec![];
    for case in &cases {
        let (story, result) = told(case, Mode::Clean);
        if let Err(failure) = result {
            let trace = story.world.core().trace.take().unwrap_or_default();
            failures.push(format!("{}{failure}\n  ({})", trace.join("\n"), case.title));
        }
    }
    println!("{} cases, {} failed", cases.len(), failures.len());
    fail_if_any(&failures, cases.len());
}

/// The same as a clean run: every event with the same bytes, and the same state.
fn same(clean: &Story, other: &Story, ordered: bool) -> Result<(), String> {
    let (mut expected, mut got) = (clean.published(), other.published());
    if !ordered {
        expected.sort();
        got.sort();
    }
    if let Some(event) = got.iter().find(|event| !expected.contains(event)) {
        return Err(format!("sent besides: {event}"));
    }
    if let Some(event) = expected.iter().find(|event| !got.contains(event)) {
        return Err(format!("not sent: {event}"));
    }
    if got != expected {
        return Err("sent in another order".into());
    }
    let (expected, got) = (clean.state(), other.state());
    match expected.iter().zip(&got).find(|(expected, got)| expected != got) {
        Some((expected, got)) => Err(format!("another state:\n  clean {expected}\n  now   {got}")),
        None if expected.len() != got.len() => Err(format!("{} items of state instead of {}", got.len(), expected.len())),
        None => Ok(()),
    }
}

/// Cases that hold; the others are reported by their own test.
fn holding() -> Vec<(Case, Story)> {
    let told = all().into_iter().map(|case| {
        let (story, result) = told(&case, Mode::Clean);
        result.is_ok().then_some((case, story))
    });
    told.flatten().collect()
}

#[test]
fn everything_twice_is_everything_once() {
    let cases = holding();
    let mut failures = vec![];
    for (case, clean) in &cases {
        let (mut story, result) = told(case, Mode::Twice);
        let at_once = result.and_then(|()| same(clean, &story, true).map_err(|what| format!("{}: {what}", case.id)));
        let at_the_end = at_once.and_then(|()| {
            story.replay();
            same(clean, &story, true).map_err(|what| format!("{}, replayed at its end: {what}", case.id))
        });
        failures.extend(at_the_end.err());
        failures.extend(story.broken.first().cloned());
    }
    println!("{} cases with every message twice, and everything once more at the end", cases.len());
    fail_if_any(&failures, cases.len());
}

/// Something wrong after each request in turn, and what came of it that should not.
fn faults_in(case: &Case, clean: &Story) -> Vec<String> {
    let mut failures = vec![];
    for (i, method) in clean.calls.iter().enumerate() {
        let n = i as u64 + 1;
        let late = Mode::Crash { after: n, late: true };
        for mode in [Mode::Crash { after: n, late: false }, late, Mode::Throttle(n), Mode::AnswerLost(n), Mode::Repeated(n)] {
            let (story, result) = told(case, mode);
            // Handled after others, the world is another one: only what the case says must hold.
            let same = if mode == late { Ok(()) } else { same(clean, &story, true) };
            if let Err(what) = result.and(same.map_err(|what| format!("{}: {what}", case.id))) {
                failures.push(format!("{mode:?}, {method:?}: {what}"));
            }
        }
    }
    failures
}

#[test]
fn a_crash_after_any_request_changes_nothing() {
    let cases = holding();
    let mut points: BTreeMap<Method, u64> = Method::ALL.iter().map(|method| (*method, 0)).collect();
    for method in cases.iter().flat_map(|(_, clean)| &clean.calls) {
        *points.entry(*method).or_default() += 1;
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let mut failures = vec![];
        while let Some((case, clean)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            failures.extend(faults_in(case, clean));
        }
        failures
    };
    let mut failures = std::thread::scope(|scope| {
        let other = scope.spawn(work);
        let mut failures = work();
        failures.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        failures
    });
    let total: u64 = points.values().sum();
    println!("{} scenarios x crash points: {total}; by method: {points:?}", cases.len());
    failures.truncate(20);
    fail_if_any(&failures, total as usize);
    if std::env::var("KEELWAY_CASE").is_err() {
        let none: Vec<_> = points.iter().filter(|(_, n)| **n == 0).map(|(method, _)| method).collect();
        assert!(none.is_empty(), "no scenario crashes after {none:?}");
    }
}
