//! The contracts over an engine's stories: each message twice, and something going wrong after each single request, leave exactly
//! the same events, bytes and state behind.

use crate::chosen::is_one;
use keelway_world::case::{Case, Failure, Tells, run};
use keelway_world::core::Method;
use keelway_world::fork::{Astray, Forked, Forks, Struck};
use keelway_world::story::{Mode, Story};
use keelway_world::tested::Tested;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// In so many orders each case's messages are delivered.
const ORDERS: u64 = 12;

/// Lets everything come to its end on a stand: what must be the same then, whatever went wrong.
type Ending<S> = fn(&mut S) -> Vec<String>;

/// What every engine's cases must do, whatever goes wrong. The suites of [`held`](crate::held) are given out as this: whoever
/// called a generic function of theirs would compile the engine once more.
pub trait Holds {
    /// Nothing goes wrong, and every story is as it says.
    fn hold(&self);
    /// Every message twice in a row, and all of them once more at the end.
    fn hold_with_everything_twice(&self);
    /// A fault in a fork of a case leaves everything as it does in the case told from its beginning: each kind of fault, at two
    /// requests beside each other of each case.
    fn hold_in_forks(&self);
    /// A crash after a read leaves the world as a crash after the request before it does, so that only the latter need be told: at
    /// one such read of each case.
    fn hold_after_reads(&self);
    /// A crash, a refusal, a lost answer or a repetition after each single request. All cases together make requests of every kind
    /// but these.
    fn hold_with_a_fault_after_each_request(&self, but: &[Method]);
    /// Delivers the messages of each step in many orders that a number draws, on stands that are made with it.
    fn hold_in_any_order(&self);
}

/// An engine's cases, and the stand on which each of them is told while something goes wrong.
pub struct Contracts<D: Tells<S>, S: Forked, F: Fn(Mode) -> S> {
    cases: Vec<Case<D>>,
    stand: F,
    ending: Option<Ending<S>>,
    shuffled: Option<fn(u64) -> S>,
}

/// A case that holds, and how it ends when nothing goes wrong.
struct Holding<'c, D: Tells<S>, S: Forked> {
    case: &'c Case<D>,
    clean: Story<S::Engine>,
    ending: Vec<String>,
}

impl<D, S, F> Contracts<D, S, F>
where
    D: Tells<S> + Sync,
    D::Given: Sync,
    D::Step: Sync,
    S: Forked,
    S::Engine: Send + Sync,
    F: Fn(Mode) -> S + Sync,
{
    /// Of these cases. After a fault, all events, byte for byte, and all state are those of the clean run.
    pub fn new(cases: Vec<Case<D>>, stand: F) -> Self {
        Self { cases, stand, ending: None, shuffled: None }
    }

    /// After a fault, only this is the same: where something may be tried more than once, for example.
    pub fn that_end_alike(self, ending: Ending<S>) -> Self {
        Self { ending: Some(ending), ..self }
    }

    /// These stands deliver messages in an order that a number draws.
    pub fn that_are_shuffled(self, shuffled: fn(u64) -> S) -> Self {
        Self { shuffled: Some(shuffled), ..self }
    }

    /// Tells a case; what went wrong, if anything. A case that is run alone leaves a trace of every request.
    fn told(&self, case: &Case<D>, mode: Mode) -> (S, Result<(), String>) {
        let mut stand = (self.stand)(mode);
        if is_one() && mode == Mode::Clean {
            stand.story().world.core().trace = Some(vec![]);
        }
        let told = run(case, &mut stand);
        let result = well(case, &mut stand, told);
        (stand, result)
    }

    /// What must be the same on this stand, if less than everything must.
    fn ending(&self, stand: &mut S) -> Vec<String> {
        let mut lines = self.ending.map(|ending| ending(stand)).unwrap_or_default();
        lines.sort();
        lines
    }

    /// Cases that hold; the others are reported by their own test.
    fn holding(&self) -> Vec<Holding<'_, D, S>> {
        let told = self.cases.iter().map(|case| {
            let (mut stand, result) = self.told(case, Mode::Clean);
            let ending = self.ending(&mut stand);
            result.is_ok().then(|| Holding { case, clean: stand.into_story(), ending })
        });
        told.flatten().collect()
    }

    /// What came of a fault that should not.
    fn wrong(&self, holding: &Holding<'_, D, S>, mode: Mode, (mut stand, told): (S, Result<(), Failure>)) -> Option<String> {
        let case = holding.case;
        let ending = self.ending(&mut stand);
        let result = well(case, &mut stand, told);
        let same = match self.ending {
            Some(_) => differ(&holding.ending, &ending).map_or(Ok(()), Err),
            // Handled after others, the world is another one: only what the case says must hold.
            None if matches!(mode, Mode::Crash { late: true, .. }) => Ok(()),
            None => same(&holding.clean, stand.story()),
        };
        result.and(same.map_err(|what| format!("{}: {what}", case.id))).err().map(|what| format!("{mode:?}: {what}"))
    }

    /// Something wrong after each request in turn, and what came of it that should not.
    fn faults_in(&self, holding: &Holding<'_, D, S>) -> Vec<String> {
        let (mut failures, mut astray) = (vec![], Astray::default());
        for fault in Mode::FAULTS {
            let mut forks = Forks::of(holding.case, fault, &self.stand);
            for (n, method) in (1..).zip(&holding.clean.calls) {
                // A read whose answer is lost was not made, and one that is made twice is one.
                if method.is_read() && matches!(fault(n), Mode::AnswerLost(_) | Mode::Repeated(_)) {
                    continue;
                }
                if matches!(fault(n), Mode::Crash { .. }) && holding.clean.is_later_read(n) {
                    continue;
                }
                if let Struck::Ended(stand, told) = forks.strike(n, &mut astray) {
                    let wrong = self.wrong(holding, fault(n), (stand, told));
                    failures.extend(wrong.map(|what| format!("{method:?}, {what}")));
                }
            }
            failures.extend(self.wrong(holding, fault(u64::MAX), forks.end()));
        }
        failures
    }
}

impl<D, S, F> Holds for Contracts<D, S, F>
where
    D: Tells<S> + Sync,
    D::Given: Sync,
    D::Step: Sync,
    S: Forked,
    S::Engine: Send + Sync,
    F: Fn(Mode) -> S + Sync,
{
    fn hold(&self) {
        let wrong = |case: &Case<D>| {
            let (mut stand, result) = self.told(case, Mode::Clean);
            let mut trace = || stand.story().world.core().trace.take().unwrap_or_default();
            result.err().map(|failure| format!("{}{failure}", trace().join("\n")))
        };
        let failures: Vec<String> = self.cases.iter().filter_map(wrong).collect();
        println!("{} cases, {} failed", self.cases.len(), failures.len());
        fail_if_any(&failures, self.cases.len());
    }

    fn hold_with_everything_twice(&self) {
        let cases = self.holding();
        let mut failures = vec![];
        for Holding { case, clean, .. } in &cases {
            let id = &case.id;
            let (stand, result) = self.told(case, Mode::Twice);
            let mut told = stand.into_story();
            let at_once = result.and_then(|()| same(clean, &told).map_err(|what| format!("{id}: {what}")));
            let at_the_end = at_once.and_then(|()| {
                told.replay();
                same(clean, &told).map_err(|what| format!("{id}, replayed at its end: {what}"))
            });
            failures.extend(at_the_end.err());
            failures.extend(told.broken.first().cloned());
        }
        println!("{} cases with every message twice, and everything once more at the end", cases.len());
        fail_if_any(&failures, cases.len());
    }

    fn hold_in_forks(&self) {
        let cases = self.holding();
        let (mut failures, mut mended, mut joined) = (vec![], 0, 0);
        for (place, Holding { case, clean, .. }) in cases.iter().enumerate() {
            let mut astray = Astray::default();
            let n = 1 + place as u64 % clean.calls.len().max(1) as u64;
            // Faults at requests beside each other often come to the same.
            let faults = Mode::FAULTS.iter().flat_map(|fault| [(fault, n), (fault, n + 1)]);
            let mut forks: Vec<_> = Mode::FAULTS.iter().map(|fault| Forks::of(case, *fault, &self.stand)).collect();
            for (at, (fault, n)) in faults.enumerate() {
                let (whole, expected) = self.told(case, fault(n));
                let whole = whole.into_story();
                let alike = match forks[at / 2].strike(n, &mut astray) {
                    Struck::Ended(mut fork, told) => {
                        well(case, &mut fork, told) == expected && fork.into_story().everything() == whole.everything()
                    }
                    Struck::Mended => {
                        mended += 1;
                        expected.is_ok() && same(clean, &whole).is_ok()
                    }
                    Struck::Joined(other) => {
                        joined += 1;
                        let (other, as_expected) = self.told(case, other);
                        expected == as_expected && same(&other.into_story(), &whole).is_ok()
                    }
                };
                if !alike {
                    failures.push(format!("{}, {:?}", case.id, fault(n)));
                }
            }
        }
        let told = 2 * cases.len() * Mode::FAULTS.len();
        println!(
            "{told} faults in forks of {} cases, {mended} of them mended before the end, {joined} as after another one",
            cases.len()
        );
        fail_if_any(&failures, cases.len());
    }

    fn hold_after_reads(&self) {
        let cases = self.holding();
        let (mut failures, mut told) = (vec![], 0);
        for (place, Holding { case, clean, .. }) in cases.iter().enumerate() {
            let reads: Vec<u64> = (1..=clean.calls.len() as u64).filter(|n| clean.is_later_read(*n)).collect();
            let Some(after) = (!reads.is_empty()).then(|| reads[place % reads.len()]) else { continue };
            told += 1;
            for late in [false, true] {
                let left = |after| self.told(case, Mode::Crash { after, late }).0.into_story().all_but_requests();
                if left(after) != left(after - 1) {
                    failures.push(format!("{}, request {after}, late: {late}", case.id));
                }
            }
        }
        println!("crashes after a read of {told} cases, and after the request before it");
        assert!(told > 0 || is_one(), "no case has such a read");
        fail_if_any(&failures, told);
    }

    fn hold_with_a_fault_after_each_request(&self, but: &[Method]) {
        let cases = self.holding();
        let mut points: BTreeMap<Method, u64> = Method::ALL.iter().map(|method| (*method, 0)).collect();
        for method in cases.iter().flat_map(|holding| &holding.clean.calls) {
            *points.entry(*method).or_default() += 1;
        }
        let next = AtomicUsize::new(0);
        let work = || {
            let mut failures = vec![];
            while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                failures.extend(self.faults_in(case));
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
        if !is_one() {
            let unused: Vec<Method> = points.iter().filter(|(_, n)| **n == 0).map(|(method, _)| *method).collect();
            assert_eq!(unused, but, "no case fails after requests of these kinds");
        }
    }

    fn hold_in_any_order(&self) {
        let shuffled = self.shuffled.expect("stands that are shuffled");
        let mut failures = vec![];
        for holding in self.holding() {
            for seed in 0..ORDERS {
                let mut stand = shuffled(seed);
                let told = run(holding.case, &mut stand).map_err(|failure| failure.to_string());
                let alike = told.and_then(|()| differ(&holding.ending, &self.ending(&mut stand)).map_or(Ok(()), Err));
                failures.extend(alike.err().map(|what| format!("{}, order {seed}: {what}", holding.case.id)));
            }
        }
        println!("{} cases in {ORDERS} orders each", self.cases.len());
        failures.truncate(10);
        fail_if_any(&failures, self.cases.len());
    }
}

/// What a telling came to, and whether anything happened that must never happen.
fn well<D: Tells<S>, S: Forked>(case: &Case<D>, stand: &mut S, told: Result<(), Failure>) -> Result<(), String> {
    let story = stand.story();
    let contradiction = story.world.core().bus.contradictions.first().cloned();
    let broken = contradiction.or(story.broken.first().cloned());
    told.map_err(|failure| format!("{failure}\n  ({})", case.title))?;
    broken.map_or(Ok(()), |what| Err(format!("{}: {what}", case.id)))
}

fn fail_if_any(failures: &[String], of: usize) {
    assert!(failures.is_empty(), "{} of {of}:\n\n{}", failures.len(), failures.join("\n\n"));
}

/// What differs between two endings, whose lines are in order.
fn differ(clean: &[String], other: &[String]) -> Option<String> {
    let missing = clean.iter().find(|line| !other.contains(line)).map_or("-", String::as_str);
    let more = other.iter().find(|line| !clean.contains(line)).map_or("-", String::as_str);
    (clean != other).then(|| format!("{} lines instead of {}:\n  clean {missing}\n  now   {more}", other.len(), clean.len()))
}

/// The same as a clean run: every event with the same bytes, and the same state.
fn same<E: Tested>(clean: &Story<E>, other: &Story<E>) -> Result<(), String> {
    let (expected, got) = (clean.published(), other.published());
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
