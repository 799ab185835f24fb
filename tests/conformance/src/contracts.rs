//! The contracts over an engine's stories: each message twice, and something going wrong after each single request, leave exactly the
//! same events, bytes and state behind.

use keelway_world::core::Method;
use keelway_world::story::{Mode, Story};
use keelway_world::tested::Tested;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Stories of one engine, by id, and how each of them is told while something goes wrong. Telling a story says what it found wrong.
pub struct Contracts<C, F> {
    stories: Vec<(String, C)>,
    tell: F,
}

impl<E, C, F> Contracts<C, F>
where
    E: Tested + Send + Sync,
    C: Sync,
    F: Fn(&C, Mode) -> (Story<E>, Result<(), String>) + Sync,
{
    /// Of these stories.
    pub fn new(stories: Vec<(String, C)>, tell: F) -> Self {
        Self { stories, tell }
    }

    /// Tells a story; what went wrong, if anything.
    fn told(&self, id: &str, story: &C, mode: Mode) -> (Story<E>, Result<(), String>) {
        let (story, result) = (self.tell)(story, mode);
        let contradiction = story.world.core().bus.contradictions.first().cloned();
        let broken = contradiction.or(story.broken.first().cloned());
        let result = result.and(broken.map_or(Ok(()), |what| Err(format!("{id}: {what}"))));
        (story, result)
    }

    /// Nothing goes wrong, and every story is as it says.
    pub fn hold(&self) {
        let wrong = |(id, story): &(String, C)| {
            let (told, result) = self.told(id, story, Mode::Clean);
            let trace = || told.world.core().trace.take().unwrap_or_default();
            result.err().map(|failure| format!("{}{failure}", trace().join("\n")))
        };
        let failures: Vec<String> = self.stories.iter().filter_map(wrong).collect();
        println!("{} cases, {} failed", self.stories.len(), failures.len());
        fail_if_any(&failures, self.stories.len());
    }

    /// Stories that hold; the others are reported by their own test.
    fn holding(&self) -> Vec<(&str, &C, Story<E>)> {
        let told = self.stories.iter().map(|(id, story)| {
            let (told, result) = self.told(id, story, Mode::Clean);
            result.is_ok().then_some((id.as_str(), story, told))
        });
        told.flatten().collect()
    }

    /// Every message twice in a row, and all of them once more at the end.
    pub fn hold_with_everything_twice(&self) {
        let stories = self.holding();
        let mut failures = vec![];
        for (id, story, clean) in &stories {
            let (mut told, result) = self.told(id, story, Mode::Twice);
            let at_once = result.and_then(|()| same(clean, &told).map_err(|what| format!("{id}: {what}")));
            let at_the_end = at_once.and_then(|()| {
                told.replay();
                same(clean, &told).map_err(|what| format!("{id}, replayed at its end: {what}"))
            });
            failures.extend(at_the_end.err());
            failures.extend(told.broken.first().cloned());
        }
        println!("{} cases with every message twice, and everything once more at the end", stories.len());
        fail_if_any(&failures, stories.len());
    }

    /// Something wrong after each request in turn, and what came of it that should not.
    fn faults_in(&self, (id, story, clean): &(&str, &C, Story<E>)) -> Vec<String> {
        let mut failures = vec![];
        for (i, method) in clean.calls.iter().enumerate() {
            let n = i as u64 + 1;
            let late = Mode::Crash { after: n, late: true };
            let mut modes = vec![Mode::Crash { after: n, late: false }, late, Mode::Throttle(n)];
            // A read whose answer is lost was not made, and one that is made twice is one.
            if !matches!(method, Method::Get | Method::GetBatch | Method::Query) {
                modes.extend([Mode::AnswerLost(n), Mode::Repeated(n)]);
            }
            for mode in modes {
                let (told, result) = self.told(id, story, mode);
                // Handled after others, the world is another one: only what the case says must hold.
                let same = if mode == late { Ok(()) } else { same(clean, &told) };
                if let Err(what) = result.and(same.map_err(|what| format!("{id}: {what}"))) {
                    failures.push(format!("{mode:?}, {method:?}: {what}"));
                }
            }
        }
        failures
    }

    /// A crash, a refusal, a lost answer or a repetition after each single request. How often each method was the last one before.
    pub fn hold_with_a_fault_after_each_request(&self) -> BTreeMap<Method, u64> {
        let stories = self.holding();
        let mut points: BTreeMap<Method, u64> = Method::ALL.iter().map(|method| (*method, 0)).collect();
        for method in stories.iter().flat_map(|(_, _, clean)| &clean.calls) {
            *points.entry(*method).or_default() += 1;
        }
        let next = AtomicUsize::new(0);
        let work = || {
            let mut failures = vec![];
            while let Some(story) = stories.get(next.fetch_add(1, Ordering::Relaxed)) {
                failures.extend(self.faults_in(story));
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
        println!("{} scenarios x crash points: {total}; by method: {points:?}", stories.len());
        failures.truncate(20);
        fail_if_any(&failures, total as usize);
        points
    }
}

fn fail_if_any(failures: &[String], of: usize) {
    assert!(failures.is_empty(), "{} of {of}:\n\n{}", failures.len(), failures.join("\n\n"));
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
