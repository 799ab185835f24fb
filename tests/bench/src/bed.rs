//! A cloud, a stack, a project.

use keelway_cloud_tests::cloud::binaries;
use keelway_cloud_tests::events::{Scope, answer, fresh};
use keelway_cloud_tests::observer::{Line, Observer};
use keelway_cloud_tests::{Cloud, Problem, Stack};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The one project.
pub const PROJECT: &str = "bench";
/// Its one stage.
pub const STAGE: &str = "dev";
/// How long nothing must happen for a sequence to be over with all that follows.
const QUIET: Duration = Duration::from_millis(600);

/// What all measurements share.
pub struct Bed {
    pub cloud: Cloud,
    pub stack: Stack,
    pub observer: Observer,
}

/// Sequences of 1, 2 and 6 tasks: `run1`, `run2`, `run6`.
fn shipyard() -> String {
    let sequence = |n: usize| {
        let tasks: Vec<String> = (1..=n).map(|i| format!("{{name: task{i}}}")).collect();
        format!("{{name: run{n}, tasks: [{}]}}", tasks.join(", "))
    };
    let sequences: Vec<String> = [1, 2, 6].map(sequence).to_vec();
    format!(
        "apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nmetadata: {{name: shipyard-bench}}\n\
         spec: {{stages: [{{name: {STAGE}, sequences: [{}]}}]}}\n",
        sequences.join(", ")
    )
}

/// What executors hand over: one member, of such a size that the data of the event are 1 KB.
pub fn kilobyte(scope: &Scope) -> Map<String, Value> {
    let frame = scope.project.len() + scope.stage.len() + scope.service.len() + 120;
    Map::from_iter([("artifact".to_owned(), Value::from("x".repeat(1024_usize.saturating_sub(frame))))])
}

impl Bed {
    pub fn make() -> Result<Self, Problem> {
        let cloud = Cloud::start()?;
        let (stack, _) = cloud.deploy(&format!("keelway-bench{}", std::process::id() % 100_000), &[])?;
        let observer = Observer::start(&stack, cloud.raw())?;
        stack.wait(stack.api().apply_project(PROJECT, &shipyard()))?;
        let bed = Self { cloud, stack, observer };
        // Warm functions and connections; also the one finished sequence in the table.
        bed.sequence(&Scope::new(PROJECT, STAGE, "warm"), 2)?;
        Ok(bed)
    }

    /// Where results go: beside the build.
    pub fn results(&self) -> Result<PathBuf, Problem> {
        let binaries = binaries()?;
        Ok(binaries.parent().map_or(binaries.clone(), PathBuf::from).join("bench"))
    }

    /// Triggers a sequence of `tasks` tasks; its context.
    pub fn trigger(&self, scope: &Scope, tasks: usize) -> Result<String, Problem> {
        let context = fresh();
        self.stack.put_event(&scope.trigger(&format!("run{tasks}"), &context, kilobyte(scope)))?;
        Ok(context)
    }

    /// Answers the tasks of a triggered sequence one after the other, each answer after the one before was handled.
    pub fn play(&self, scope: &Scope, context: &str, tasks: usize) -> Result<(), Problem> {
        for task in 1..=tasks {
            let trigger = self.observer.event(context, &format!("sh.keptn.event.task{task}.triggered"), 0)?;
            for (kind, data) in [("started", Map::new()), ("finished", kilobyte(scope))] {
                let before = self.outside(context);
                self.stack.put_event(&answer(&trigger.event, kind, "executor", data))?;
                let handled = |_: &Observer| (self.outside(context) > before).then_some(());
                self.observer.wait("the answer's handling", handled)?;
            }
        }
        self.observer.event(context, &format!("sh.keptn.event.{STAGE}.run{tasks}.finished"), 0).map(drop)
    }

    fn outside(&self, context: &str) -> usize {
        self.observer.lines(context).iter().filter(|line| line.is_outside()).count()
    }

    /// A whole sequence; what the functions said about it.
    pub fn sequence(&self, scope: &Scope, tasks: usize) -> Result<Vec<Arc<Line>>, Problem> {
        let context = self.trigger(scope, tasks)?;
        self.play(scope, &context, tasks)?;
        Ok(self.quiet(&context))
    }

    /// The lines of a context, once no more come.
    pub fn quiet(&self, context: &str) -> Vec<Arc<Line>> {
        let start = Instant::now();
        loop {
            let lines = self.observer.lines(context);
            let last = lines.iter().map(|line| line.at).fold(start, Instant::max);
            if last.elapsed() > QUIET {
                return lines;
            }
            std::thread::sleep(Duration::from_millis(30));
        }
    }
}
