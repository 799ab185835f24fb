//! Runs tests that share one cloud: several at once, those that look back on all others last, and what the endpoint cannot do
//! reported by name. Speaks as the usual runner does: `test name ... ok`, and the line `test result:` at the end.
//!
//! `libtest-mimic` would replace the options and the threads. It has no tests that come last, asks for no ability when it is a
//! test's turn, and tells neither why something was not run nor how long a test took, which `make test` reads; so most of this
//! would stay, around it.

use crate::cloud::Ability;
use crate::problem::{Outcome, Problem};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What a test does with what all tests share.
pub type Body<B> = Box<dyn Fn(&B) -> Outcome + Send + Sync>;

/// One test.
pub struct Test<B> {
    /// `module::what_is_so`.
    pub name: String,
    /// What the endpoint must be able to do.
    pub needs: &'static [Ability],
    /// Looks at what all others have left behind.
    pub last: bool,
    /// What it does.
    pub body: Body<B>,
}

impl<B> Test<B> {
    /// A test on a deployed stack.
    pub fn new(name: impl Into<String>, body: impl Fn(&B) -> Outcome + Send + Sync + 'static) -> Self {
        Self { name: name.into(), needs: &[Ability::Functions], last: false, body: Box::new(body) }
    }
    /// What the endpoint must be able to do.
    pub fn needs(self, needs: &'static [Ability]) -> Self {
        Self { needs, ..self }
    }
    /// After all others.
    pub fn last(self) -> Self {
        Self { last: true, ..self }
    }
}

/// What the command line asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// Only tests whose names contain one of these.
    pub filters: Vec<String>,
    /// The names must be equal.
    pub exact: bool,
    /// Names only.
    pub list: bool,
    /// Not these.
    pub skip: Vec<String>,
    /// How many at once.
    pub at_once: Option<usize>,
}

impl Options {
    /// Reads what `cargo test` hands over; flags that mean nothing here are passed over.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Self {
        let mut options = Self::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--list" => options.list = true,
                "--exact" => options.exact = true,
                "--skip" => options.skip.extend(arguments.next()),
                "--test-threads" => options.at_once = arguments.next().and_then(|n| n.parse().ok()),
                "--format" | "--color" | "--logfile" | "-Z" => drop(arguments.next()),
                flag if flag.starts_with('-') => {
                    options.at_once = flag.strip_prefix("--test-threads=").and_then(|n| n.parse().ok()).or(options.at_once);
                }
                _ => options.filters.push(argument),
            }
        }
        options
    }

    /// Whether a test is asked for.
    pub fn wants(&self, name: &str) -> bool {
        let fits = |filter: &String| if self.exact { name == filter } else { name.contains(filter.as_str()) };
        (self.filters.is_empty() || self.filters.iter().any(fits)) && !self.skip.iter().any(fits)
    }
}

/// How it went.
#[derive(Debug, Default)]
pub struct Summary {
    passed: usize,
    failed: Vec<(String, Problem)>,
    not_run: Vec<String>,
    filtered: usize,
}

impl Summary {
    /// Whether nothing failed.
    pub fn is_fine(&self) -> bool {
        self.failed.is_empty()
    }
    /// The tests that failed.
    pub fn failed(&self) -> impl Iterator<Item = &str> {
        self.failed.iter().map(|(name, _)| name.as_str())
    }
    /// Says why tests failed, what was not run, and the line everybody looks for.
    pub fn print(&self, took: Duration) {
        if !self.failed.is_empty() {
            println!("\nfailures:");
        }
        for (name, problem) in &self.failed {
            println!("\n---- {name} ----\n{problem}");
        }
        if !self.not_run.is_empty() {
            println!();
        }
        for line in &self.not_run {
            println!("NOT RUN {line}");
        }
        let word = if self.is_fine() { "ok" } else { "FAILED" };
        println!(
            "\ntest result: {word}. {} passed; {} failed; {} not run; 0 measured; {} filtered out; finished in {:.2}s\n",
            self.passed,
            self.failed.len(),
            self.not_run.len(),
            self.filtered,
            took.as_secs_f64()
        );
    }
}

/// Runs the tests: `at_once` side by side, then the last ones one after the other. `say` gets a line for each.
pub fn run<B: Sync>(
    tests: &[Test<B>],
    options: &Options,
    at_once: usize,
    bed: &B,
    can: impl Fn(Ability) -> bool + Sync,
    say: impl Fn(String) + Sync,
) -> Summary {
    let (wanted, others): (Vec<_>, Vec<_>) = tests.iter().partition(|test| options.wants(&test.name));
    let summary = Summary { filtered: others.len(), ..Summary::default() };
    let summary = Mutex::new(summary);
    let (last, first): (Vec<_>, Vec<_>) = wanted.into_iter().partition(|test| test.last);
    let next = Mutex::new(first.into_iter());
    std::thread::scope(|scope| {
        for _ in 0..at_once.max(1) {
            scope.spawn(|| {
                loop {
                    let test = next.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some(test) = test else { break };
                    one(test, bed, &can, &say, &summary);
                }
            });
        }
    });
    for test in last {
        one(test, bed, &can, &say, &summary);
    }
    summary.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn one<B>(test: &Test<B>, bed: &B, can: &impl Fn(Ability) -> bool, say: &impl Fn(String), summary: &Mutex<Summary>) {
    // Not before its turn: some of this takes a while to find out.
    if let Some(need) = test.needs.iter().find(|need| !can(**need)) {
        let mut summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
        say(format!("test {} ... NOT RUN", test.name));
        return summary.not_run.push(format!("{}: {}", test.name, need.missing()));
    }
    let start = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(|| (test.body)(bed))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(format!("it panicked: {}", text.unwrap_or("without words")).into())
    });
    let mut summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
    let word = if outcome.is_ok() { "ok" } else { "FAILED" };
    say(format!("test {} ... {word} <{:.1}s>", test.name, start.elapsed().as_secs_f64()));
    match outcome {
        Ok(()) => summary.passed += 1,
        Err(problem) => summary.failed.push((test.name.clone(), problem)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn the_last_come_last_and_what_cannot_be_is_named() {
        let count = AtomicUsize::new(0);
        let add = |bed: &AtomicUsize| {
            bed.fetch_add(1, Ordering::SeqCst);
            Ok(())
        };
        let all_before = |bed: &AtomicUsize| crate::problem::same("tests before", bed.load(Ordering::SeqCst), 5);
        let mut tests = vec![Test::new("look back", all_before).last()];
        tests.extend((0..5).map(|i| Test::new(format!("count {i}"), add)));
        tests.push(Test::new("fails", |_: &AtomicUsize| Err("as it should".into())));
        tests.push(Test::new("panics", |_: &AtomicUsize| panic!("as it should")));
        tests.push(Test::new("schedules", add).needs(&[Ability::Schedules]));
        let lines = Mutex::new(Vec::new());
        // Kept, not printed: whoever looks for failures in the output must not find these.
        let say = |line| lines.lock().unwrap().push(line);
        let summary = run(&tests, &Options::default(), 3, &count, |ability| ability != Ability::Schedules, say);
        let mut failed: Vec<&str> = summary.failed().collect();
        failed.sort_unstable();
        assert_eq!((summary.passed, failed), (6, vec!["fails", "panics"]));
        let said = |start: &str| lines.lock().unwrap().iter().any(|line: &String| line.starts_with(start));
        assert!(said("test fails ... FAILED <") && said("test count 0 ... ok <") && said("test schedules ... NOT RUN"));
        assert_eq!(summary.not_run, ["schedules: the endpoint does not fire schedules"]);
    }

    #[test]
    fn options_of_the_usual_runner() {
        let options = Options::parse(["KC-1", "--nocapture", "--test-threads=3", "--skip", "KC-14"].map(str::to_owned));
        assert_eq!(options.at_once, Some(3));
        assert!(options.wants("cases::KC-12") && !options.wants("cases::KC-14") && !options.wants("cases::KC-2"));
    }
}
