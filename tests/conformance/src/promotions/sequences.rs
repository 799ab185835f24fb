//! Sequences as far as promotions see them: one is triggered, goes on for a while, and ends.

use super::host::{Host, Of, Reply, Shared};
use super::reach::{Reach, stopped, unreachable};
use keelway_domain::condition::Condition;
use keelway_domain::event::{PROMOTION, SOURCE};
use keelway_domain::ids::context_of;
use keelway_domain::promotions::definition::Sequence;
use keelway_domain::promotions::{AttemptResult, Closed, Made, Retry, Seen};
use keelway_engine::ports::PortError;
use keelway_engine::promotions::attempts::Task;
use keelway_world::promotions::host::{End, Trouble, Verb, Word};
use serde_json::{Value, json};

/// A sequence that carries out a promotion.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Of which promotion.
    pub of: Of,
    /// `<stage>.<sequence>`
    pub name: String,
    /// How it ended, if it has.
    pub ended: Option<End>,
}

impl Run {
    fn context(&self) -> String {
        context_of("sequence", &format!("{:016x}", self.of.identity)).to_string()
    }

    /// What is seen of it; `None`: it goes on.
    fn seen(&self) -> Option<Seen> {
        let tell = |how: &str| format!("{} {how} (context {})", self.name, self.context());
        self.ended.map(|end| match end {
            End::Pass => Seen::Succeeded(tell("passed")),
            End::Warning => Seen::Succeeded(tell("passed with a warning")),
            End::Fail => Seen::Failed(tell("failed")),
            End::TimedOut => Seen::Failed(tell("timed out")),
            End::Aborted => Seen::Closed(tell("was aborted")),
        })
    }
}

impl Host {
    fn run(&mut self, of: &Of) -> Option<&mut Run> {
        self.reads += 1;
        self.sequences.iter_mut().find(|run| run.of == *of)
    }

    /// Begins the sequence of a promotion, which has only one.
    fn trigger(&mut self, of: &Of, sequence: &Sequence) -> Reply<AttemptResult> {
        let made = |run: &Run| AttemptResult::Created(Made::Sequence { context: run.context() });
        if let Some(run) = self.run(of) {
            return (None, Some(made(run)));
        }
        let namespace = of.pipeline.split('/').next().unwrap_or_default();
        let stage = sequence.stage.as_deref().unwrap_or(&of.environment);
        let details = json!({
            "project": sequence.project.as_deref().unwrap_or(namespace), "stage": stage, "service": sequence.service,
            "sequence": sequence.name, "image": of.revision, "again": of.again,
        });
        let trouble = self.call(Verb::Trigger, of, None, details);
        if trouble.as_ref().is_some_and(|trouble| !trouble.happens()) {
            return (trouble, None);
        }
        self.writes += 1;
        let run = Run { of: of.clone(), name: format!("{stage}.{}", sequence.name), ended: None };
        let done = made(&run);
        self.sequences.push(run);
        (trouble, Some(done))
    }

    /// Aborts it, unless it has ended.
    fn abort(&mut self, of: &Of) -> Reply<Option<Seen>> {
        let Some(run) = self.run(of) else { return (None, Some(None)) };
        if run.ended.is_some() {
            return (None, Some(run.seen()));
        }
        let trouble = self.call(Verb::Abort, of, None, json!({}));
        if trouble.as_ref().is_some_and(|trouble| !trouble.happens()) {
            return (trouble, None);
        }
        self.writes += 1;
        if let Some(run) = self.run(of) {
            run.ended = Some(End::Aborted);
        }
        (trouble, Some(None))
    }
}

impl Shared {
    /// The newest sequence of a pipeline into an environment ends: the event that says so.
    ///
    /// # Errors
    /// There is none that goes on.
    pub fn finish(&self, of: (&str, &str), environment: &str, end: End) -> Result<Value, String> {
        let mut host = self.lock();
        let pipeline = format!("{}/{}", of.0, of.1);
        let goes_on = |run: &&mut Run| run.of.pipeline == pipeline && run.of.environment == environment && run.ended.is_none();
        let run = host.sequences.iter_mut().rfind(goes_on).ok_or_else(|| format!("no sequence goes on for {environment}"))?;
        run.ended = Some(end);
        let promotion = json!({
            "namespace": of.0, "pipeline": of.1, "environment": environment, "revision": run.of.revision, "run": run.of.run,
        });
        Ok(json!({
            "specversion": "1.0", "id": format!("end-{}", run.context()), "source": SOURCE,
            "type": format!("sh.keptn.event.{}.finished", run.name), "shkeptncontext": run.context(),
            "data": {"project": of.0, PROMOTION: promotion},
        }))
    }
}

impl Reach {
    /// Triggers a sequence, unless there is one.
    pub(super) async fn trigger(&self, task: &Task, sequence: &Sequence) -> Result<AttemptResult, PortError> {
        let of = Of::task(task);
        let trigger = |_| self.host.lock().trigger(&of, sequence);
        let failed =
            |reason: &str, message: &str| AttemptResult::Failed { why: Condition::new(reason, message), retry: Retry::Backoff };
        match self.worker.outside(|| format!("trigger for {of:?}"), trigger).await {
            Ok((None, Some(done))) => Ok(done),
            Ok((Some(Trouble::Word(Word::Killed | Word::Unexpected)) | None, _)) => Err(stopped()),
            Ok((Some(Trouble::Word(Word::Lost)), _)) => Ok(failed("SequenceNotAccepted", "the sequence has not begun yet")),
            Ok((Some(_), _)) => Ok(failed("TriggerRefused", "there is no such sequence")),
            Err(error) => Ok(unreachable(&error)),
        }
    }

    /// Aborts a sequence, unless it has ended.
    pub(super) async fn abort(&self, task: &Task) -> Result<Closed, PortError> {
        let of = Of::task(task);
        match self.worker.outside(|| format!("abort for {of:?}"), |_| self.host.lock().abort(&of)).await {
            Ok((None, Some(Some(Seen::Succeeded(how))))) => Ok(Closed::Merged(how)),
            Ok((None, _)) => Ok(Closed::Closed),
            Ok((Some(Trouble::Word(Word::Killed | Word::Unexpected)), _)) => Err(stopped()),
            Ok((Some(_), _)) | Err(_) => Ok(Closed::Failed(None)),
        }
    }

    /// Looks at a sequence.
    pub(super) async fn ending(&self, task: &Task) -> Result<Option<Seen>, PortError> {
        let of = Of::task(task);
        let look = |_| self.host.lock().run(&of).and_then(|run| run.seen());
        // A failed look changes nothing: the message comes again.
        self.worker.outside(|| format!("follow {of:?}"), look).await
    }
}
