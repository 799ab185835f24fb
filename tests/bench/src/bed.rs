//! A cloud, a stack, a project.

use keelway_cloud_tests::cloud::binaries;
use keelway_cloud_tests::events::{Scope, answer, fresh, is_task_trigger};
use keelway_cloud_tests::observer::{Line, Observer, Seen};
use keelway_cloud_tests::{Cloud, Problem, Stack};
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The only project.
pub const PROJECT: &str = "bench";
/// The only stage.
pub const STAGE: &str = "dev";
/// The timeout of waits, counted from the last event or message. A busy machine is slow, but it does not stand still.
pub const STANDSTILL: Duration = Duration::from_secs(300);
/// The timeout of a wait whatever happens: something may happen for ever, and what is waited for never.
const LONGEST: Duration = Duration::from_secs(900);

/// What all measurements share.
pub struct Bed {
    pub cloud: Cloud,
    pub stack: Stack,
    pub observer: Observer,
}

/// The release builds of the functions, which `make bench` makes beside the build that this program is part of.
pub fn release() -> Result<PathBuf, Problem> {
    let directory = binaries()?.with_file_name("release");
    if directory.join("keelway-sequences").is_file() {
        Ok(directory)
    } else {
        Err("there are no release builds: run make bench".into())
    }
}

/// The directory for results, beside the build that this program is part of.
pub fn results() -> Result<PathBuf, Problem> {
    let own = std::env::current_exe().map_err(|error| Problem::of("this executable's own path", error))?;
    own.parent().map(|build| build.with_file_name("bench")).ok_or_else(|| "this executable is in no directory".into())
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

/// The data that executors hand over: one member, of such a size that the data of an event has 1 KB.
pub fn kilobyte(scope: &Scope) -> Map<String, Value> {
    let frame = scope.project.len() + scope.stage.len() + scope.service.len() + 120;
    Map::from_iter([("artifact".to_owned(), Value::from("x".repeat(1024_usize.saturating_sub(frame))))])
}

impl Bed {
    /// A cloud of its own, with these builds of the functions deployed.
    pub fn deploy(build: &Path) -> Result<(Cloud, Stack), Problem> {
        let cloud = Cloud::start()?;
        let (stack, _) = cloud.deploy_build(build, &format!("keelway-bench{}", std::process::id() % 100_000), &[])?;
        Ok((cloud, stack))
    }

    /// Watches a stack and warms it up.
    pub fn make((cloud, stack): (Cloud, Stack)) -> Result<Self, Problem> {
        let observer = Observer::start(&stack, cloud.raw())?;
        stack.wait(stack.api().apply_project(PROJECT, &shipyard()))?;
        let bed = Self { cloud, stack, observer };
        // Warms functions and connections up, and leaves one finished sequence in the table.
        bed.sequence(&Scope::new(PROJECT, STAGE, "warm"), 2)?;
        Ok(bed)
    }

    /// Waits until `found` returns something, as long as anything happens meanwhile: an event on the bus, a handled message.
    pub fn wait<T>(&self, what: &str, mut found: impl FnMut() -> Result<Option<T>, Problem>) -> Result<T, Problem> {
        let all = HashSet::from([PROJECT.to_owned()]);
        let (mut seen, mut since, began) = (0, Instant::now(), Instant::now());
        loop {
            if let Some(found) = found()? {
                return Ok(found);
            }
            let now = self.observer.line_count() + self.observer.events(&all).len();
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
            if since.elapsed() > STANDSTILL {
                return Err(format!("{what}: not yet, and nothing has happened for {STANDSTILL:?}").into());
            }
            if began.elapsed() > LONGEST {
                return Err(format!("{what}: not within {LONGEST:?}, though other things happen").into());
            }
            std::thread::sleep(Duration::from_millis(15));
        }
    }

    /// Waits for the first event of this type in this context.
    pub fn event(&self, context: &str, ty: &str) -> Result<Arc<Seen>, Problem> {
        let keys = HashSet::from([context.to_owned()]);
        let of_type = |seen: &Arc<Seen>| seen.event["type"] == ty;
        self.wait(&format!("{ty} in {context}"), || Ok(self.observer.events(&keys).into_iter().find(of_type)))
    }

    /// Triggers a sequence of `tasks` tasks, and returns its context.
    pub fn trigger(&self, scope: &Scope, tasks: usize) -> Result<String, Problem> {
        let context = fresh();
        self.stack.put_event(&scope.trigger(&format!("run{tasks}"), &context, kilobyte(scope)))?;
        Ok(context)
    }

    /// Answers the tasks of a sequence one after the other, each answer after the last one was handled.
    pub fn play(&self, scope: &Scope, context: &str, tasks: usize) -> Result<(), Problem> {
        for task in 1..=tasks {
            let trigger = self.event(context, &format!("sh.keptn.event.task{task}.triggered"))?;
            for (kind, data) in [("started", Map::new()), ("finished", kilobyte(scope))] {
                let before = self.outside(context);
                self.stack.put_event(&answer(&trigger.event, kind, "executor", data))?;
                self.wait("the answer's handling", || Ok((self.outside(context) > before).then_some(())))?;
            }
        }
        self.event(context, &format!("sh.keptn.event.{STAGE}.run{tasks}.finished")).map(drop)
    }

    /// Answers the tasks of several sequences as soon as they are triggered, until all sequences have ended; returns their events.
    pub fn play_all(&self, contexts: &[String], tasks: usize) -> Result<Vec<Arc<Seen>>, Problem> {
        self.play_all_by(contexts, tasks, |event| self.stack.put_event(event))
    }

    /// Answers a task over HTTP.
    pub fn post(&self, event: &Value) -> Result<(), Problem> {
        let reply = self.stack.wait(self.stack.api().post("/v1/event", event))?;
        if reply.status < 300 { Ok(()) } else { Err(format!("an answer was refused: {reply:?}").into()) }
    }

    /// The same with answers that go this way.
    pub fn play_all_by(
        &self,
        contexts: &[String],
        tasks: usize,
        send: impl Fn(&Value) -> Result<(), Problem>,
    ) -> Result<Vec<Arc<Seen>>, Problem> {
        let over = format!("sh.keptn.event.{STAGE}.run{tasks}.finished");
        let (keys, mut answered) = (contexts.iter().cloned().collect(), HashSet::new());
        self.wait("the sequences' ends", || {
            let seen = self.observer.events(&keys);
            for trigger in seen.iter().map(|seen| &seen.event).filter(|event| is_task_trigger(event)) {
                if answered.insert(trigger["id"].to_string()) {
                    let scope = Scope::new(PROJECT, STAGE, trigger["data"]["service"].as_str().unwrap_or_default());
                    send(&answer(trigger, "started", "executor", Map::new()))?;
                    send(&answer(trigger, "finished", "executor", kilobyte(&scope)))?;
                }
            }
            let ends = seen.iter().filter(|seen| seen.event["type"] == over).count();
            Ok((ends == contexts.len()).then_some(seen))
        })
    }

    fn outside(&self, context: &str) -> usize {
        self.observer.lines(context).iter().filter(|line| line.is_outside()).count()
    }

    /// Runs a whole sequence, and returns the log lines about it.
    pub fn sequence(&self, scope: &Scope, tasks: usize) -> Result<Vec<Arc<Line>>, Problem> {
        let context = self.trigger(scope, tasks)?;
        self.play(scope, &context, tasks)?;
        self.quiet(&context)
    }

    /// The log lines of a context, when nothing is left to do now and all lines are read.
    pub fn quiet(&self, context: &str) -> Result<Vec<Arc<Line>>, Problem> {
        self.rest()?;
        Ok(self.observer.lines(context))
    }

    /// Waits until no message is in the engine's queue or being handled, and until all log lines are read. Delayed messages
    /// (wake-ups) do not count, because they are for much later.
    pub fn rest(&self) -> Result<(), Problem> {
        let queue = self.stack.output("QueueUrl");
        let left = |name: &str| self.stack.queue_number(&queue, &format!("ApproximateNumberOfMessages{name}"));
        self.wait("an empty queue", || Ok((left("")? + left("NotVisible")? == 0).then_some(())))?;
        let reads = self.observer.log_reads();
        self.wait("the logs", || Ok((self.observer.log_reads() >= reads + 2).then_some(())))
    }
}
