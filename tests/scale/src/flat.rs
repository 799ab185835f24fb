//! What one more delivery takes, however many have ended and however many wait.

use super::deliveries::{DAY, PLAIN, account, ask, project, service, world};
use super::executor::{answers, executor, present, trigger};
use super::{BEGIN, LONGEST, Place};
use keelway_domain::time::Span;
use keelway_engine::sequences::{Limits, Sequences};
use keelway_world::account::Account;
use keelway_world::worker::Worker;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Requests and units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counted {
    /// Requests to AWS.
    pub requests: u64,
    /// Write units.
    pub writes: f64,
    /// Read units.
    pub reads: f64,
}

const PLACE: Place = Place { region: "us-east-1", factor: 1, concurrency: 100, bound: false };
/// Of those that have ended, so many are on one lane.
const ON_A_LANE: usize = 100;

fn counted(account: &mut Account<Sequences<Worker>>, act: impl FnOnce(&mut Account<Sequences<Worker>>)) -> Counted {
    let before = account.totals();
    act(account);
    let after = account.totals();
    Counted { requests: after.requests - before.requests, writes: after.writes - before.writes, reads: after.reads - before.reads }
}

/// A delivery with one task, from its trigger to its end, after so many others have ended in the same projects.
pub fn beside_finished(others: usize) -> Counted {
    let mut account = account(&world(PLAIN), &PLACE, &Limits::default(), present());
    // The next one is on the first lane, which is known.
    for n in 0..others.max(1) {
        let (lane, at) = (n / ON_A_LANE, BEGIN + Span(10 * i64::try_from(n).unwrap_or(0)));
        account.put(at, trigger((&project(lane), &service(lane)), &format!("delivery-{n}"), at));
    }
    account.run(BEGIN + LONGEST);
    counted(&mut account, |account| {
        let at = account.world.now();
        account.put(at, trigger((&project(0), &service(0)), "one-more", at));
        account.run(at + LONGEST);
    })
}

/// A delivery with `n` tasks, beside one that has ended; one process has read the shipyard.
fn with_tasks(n: usize) -> Counted {
    let tasks: Vec<String> = (0..n).map(|n| format!("{{name: task{n}}}")).collect();
    let stage = format!("{{name: dev, sequences: [{{name: delivery, tasks: [{}]}}]}}", tasks.join(", "));
    let mut account = account(&world(&stage), &Place { concurrency: 1, ..PLACE }, &Limits::default(), present());
    account.put(BEGIN, trigger((&project(0), &service(0)), "first", BEGIN));
    account.run(BEGIN + LONGEST);
    counted(&mut account, |account| {
        let at = account.world.now();
        account.put(at, trigger((&project(0), &service(0)), "second", at));
        // Its timers come later.
        account.run(at + Span::minutes(5));
    })
}

/// What one more task in a sequence takes.
pub fn one_more_task() -> Counted {
    let (two, three) = (with_tasks(2), with_tasks(3));
    Counted { requests: three.requests - two.requests, writes: three.writes - two.writes, reads: three.reads - two.reads }
}

/// What it takes to accept one more delivery on a lane on which so many wait; and what the end of the first one takes, with the
/// start of the next.
pub fn behind_waiting(others: usize) -> (Counted, Counted) {
    let limits = Limits { start_deadline: Span(300 * DAY.0), ..Limits::default() };
    let world = world(PLAIN);
    let mut account = account(&world, &PLACE, &limits, executor(Arc::new(AtomicBool::new(false))));
    for n in 0..=others {
        let at = BEGIN + Span(10 * i64::try_from(n).unwrap_or(0));
        account.put(at, trigger((&project(0), &service(0)), &format!("delivery-{n}"), at));
    }
    let pause = Span::minutes(2);
    account.run(BEGIN + Span(10 * i64::try_from(others).unwrap_or(0)) + pause);
    let accepted = counted(&mut account, |account| {
        let at = account.world.now();
        account.put(at, trigger((&project(0), &service(0)), "one-more", at));
        account.run(at + pause);
    });
    let open = ask(&Sequences::new(world.worker(0), limits), &mut HashSet::new()).unwrap_or_default();
    let ended = counted(&mut account, |account| {
        let at = account.world.now();
        for (after, event) in open.iter().flat_map(|trigger| answers(trigger, at)) {
            account.put(at + after, event);
        }
        account.run(at + pause);
    });
    (accepted, ended)
}
