//! What must hold of every case whatever goes wrong: the same end, and the same effects.

use super::{PromotionsWorld, Rider};
use keelway_domain::time::Span;
use keelway_world::case::{Failure, Stand, run};
use keelway_world::core::Method;
use keelway_world::fork::Forks;
use keelway_world::promotions::Case;
use keelway_world::promotions::host::{GitHost, Verb};
use keelway_world::story::Mode;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// After this time, what was delayed has been looked at as well.
const LATER: Span = Span::minutes(10);

/// A world in which something goes wrong.
fn disturbed(mode: Mode) -> PromotionsWorld {
    PromotionsWorld::new(mode, Rider::Disturbed, None)
}

/// Lets a case come to its end that was told while something went wrong: how it ended.
fn ended(mut world: PromotionsWorld, told: Result<(), Failure>) -> Result<(PromotionsWorld, Vec<String>), String> {
    told.map_err(|failure| failure.to_string())?;
    world.mend();
    world.wait(LATER);
    let contradiction = world.story.world.core().bus.contradictions.first().cloned();
    match contradiction.or(world.story.broken.first().cloned()) {
        Some(what) => Err(what),
        None => {
            let ending = ending(&world);
            Ok((world, ending))
        }
    }
}

/// How a case ended: every pipeline, every pull request, who was told what, and which events say what came of it. How often
/// something was tried, and when, is left out: "usually once" allows that.
pub fn ending(world: &PromotionsWorld) -> Vec<String> {
    let mut lines: Vec<String> = world.views().into_iter().map(|view| without_attempts(view).to_string()).collect();
    let calls = world.host.calls();
    let mut told: Vec<String> =
        calls.iter().filter(|call| call.verb == Verb::Tell).map(|call| format!("told {}", call.id)).collect();
    told.sort();
    told.dedup();
    lines.extend(told);
    for request in &world.host.lock().requests {
        lines.push(format!("{} {:?} {} comments", request.branch, request.state, request.comments.len()));
    }
    let says = |event: &Value| {
        let word = event["type"].as_str()?.strip_prefix(keelway_world::promotions::PREFIX)?;
        let often = ["started", "failed", "blocked", "awaited", "reminded"].contains(&word);
        let data = &event["data"];
        let text = |name: &str| data[name].as_str().unwrap_or_default().to_owned();
        (!often).then(|| format!("{word} {} {} {} {}", text("pipeline"), text("environment"), text("revision"), data["run"]))
    };
    let events = world.story.world.outgoing();
    let mut said: Vec<String> =
        events.iter().filter_map(|entry| says(&serde_json::from_str(&entry.detail).unwrap_or_default())).collect();
    said.sort();
    lines.extend(said);
    lines
}

fn without_attempts(mut view: Value) -> Value {
    view["message"] = Value::Null;
    for state in view["environments"].as_object_mut().into_iter().flat_map(|all| all.values_mut()) {
        state["attempt"] = Value::Null;
        state["message"] = Value::Null;
        // Whether it was seen before or after a person merged it.
        state["mergeable"] = Value::Null;
    }
    view
}

/// What differs between two endings.
pub fn differ(clean: &[String], other: &[String]) -> Option<String> {
    let missing = clean.iter().find(|line| !other.contains(line));
    let more = other.iter().find(|line| !clean.contains(line));
    match (missing, more) {
        (None, None) if clean.len() == other.len() => None,
        (None, None) => Some(format!("{} lines instead of {}", other.len(), clean.len())),
        (missing, more) => {
            Some(format!("\n  clean {}\n  now   {}", missing.map_or("-", String::as_str), more.map_or("-", String::as_str)))
        }
    }
}

/// Something wrong with each of these requests of a case in turn, and what ended differently.
fn faults_in(case: &Case, calls: &[Method], expected: &[String]) -> Vec<String> {
    let mut failures = vec![];
    for fault in Mode::FAULTS {
        let wrong = |mode: Mode, (world, told): (PromotionsWorld, Result<(), Failure>)| {
            let what = match ended(world, told) {
                Ok((_, ending)) => differ(expected, &ending),
                Err(what) => Some(what),
            };
            what.map(|what| format!("{}: {mode:?}: {what}", case.id))
        };
        let mut forks = Forks::of(case, fault, disturbed);
        for (n, method) in (1..).zip(calls) {
            // Whether a worker stops before or after a read, or reads twice, is the same.
            if !method.is_read() || matches!(fault(n), Mode::Throttle(_)) {
                failures.extend(forks.strike(n).and_then(|told| wrong(fault(n), told)));
            }
        }
        failures.extend(wrong(fault(u64::MAX), forks.end()));
    }
    failures
}

/// A crash, a refusal, a lost answer or a repetition after each single request of every case, those to the host included. What went
/// wrong, and how often each method was the last one before.
pub fn faults(cases: &[Case]) -> (Vec<String>, BTreeMap<Method, u64>) {
    let next = AtomicUsize::new(0);
    let work = || {
        let (mut failures, mut points) = (vec![], BTreeMap::<Method, u64>::new());
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut clean = disturbed(Mode::Clean);
            let told = run(case, &mut clean);
            match ended(clean, told) {
                Ok((clean, expected)) => {
                    failures.extend(faults_in(case, &clean.story.calls, &expected));
                    clean.story.calls.iter().for_each(|method| *points.entry(*method).or_default() += 1);
                }
                Err(what) => failures.push(format!("{}: {what}", case.id)),
            }
        }
        (failures, points)
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(work);
        let (mut failures, mut points) = work();
        let (more, others) = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        failures.extend(more);
        for (method, n) in others {
            *points.entry(method).or_default() += n;
        }
        (failures, points)
    })
}
