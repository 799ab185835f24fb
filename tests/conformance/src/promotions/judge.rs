//! The engine of evaluations as pipelines see it: it answers an order at once, as the case or the simulation wants it. The engine
//! itself has cases of its own, and `tests/conformance/evaluated.rs` has both in one world.

use keelway_domain::cause::Cause;
use keelway_domain::evaluations::{Answer, Violation};
use keelway_domain::event::{CloudEvent, Status, TaskResult};
use keelway_domain::time::Span;
use keelway_engine::evaluations::{self, Message};
use keelway_engine::ports::PortError;
use keelway_engine::promotions;
use keelway_engine::protocol::{Handled, Inbox};
use keelway_engine::table;
use keelway_world::worker::Worker;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The verdict of an evaluation that passes when it is asked for the third time; before, nobody answers.
pub const LATE: &str = "late";

/// An evaluation that a pipeline has ordered.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The pipeline, `<namespace>/<name>`.
    pub pipeline: String,
    /// The environment.
    pub environment: String,
    /// The revision.
    pub revision: String,
    /// How long the window is.
    pub window: Span,
    /// What it came to; `None`: nobody has been told yet.
    pub answer: Option<Answer>,
}

/// What evaluations come to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Book {
    /// By environment: what evaluations come to from now on, as [`answer`] reads it. Absent: they pass.
    pub verdicts: BTreeMap<String, String>,
    /// Those that were ordered, by id.
    pub judged: BTreeMap<String, Judged>,
}

/// A book that the world and its workers share.
#[derive(Debug, Clone, Default)]
pub struct Verdicts(Arc<Mutex<Book>>);

impl Verdicts {
    /// The book as it is.
    pub fn lock(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// A copy that goes its own way.
    pub fn fork(&self) -> Self {
        Self(Arc::new(Mutex::new(self.lock().clone())))
    }
    /// Whether it is the same as another one.
    pub fn is_like(&self, other: &Self) -> bool {
        *self.lock() == *other.lock()
    }
}

impl Book {
    /// Whether an evaluation of this revision over so long a window has passed.
    pub fn has_passed(&self, (pipeline, environment, revision): (&str, &str, &str), soak: Span, strict: bool) -> bool {
        let passes = |answer: &Answer| {
            answer.evaluated && (answer.result == TaskResult::Pass || answer.result == TaskResult::Warning && !strict)
        };
        self.judged.values().any(|one| {
            (one.pipeline == pipeline && one.environment == environment && one.revision == revision)
                && one.window == soak
                && one.answer.as_ref().is_some_and(passes)
        })
    }
}

/// What a word of a case means: `pass`, `warning`, `fail`, `errored`, `unevaluated`; `None`: nobody answers.
///
/// # Errors
/// It is none of them, nor `silent`.
pub fn answer(word: &str) -> Result<Option<Answer>, String> {
    let (status, result) = (Status::Succeeded, TaskResult::Pass);
    let pass = Answer { status, result, evaluated: true, score: 100.0, message: String::new(), violated: vec![], more: 0 };
    let violated = vec![Violation { sli: "error_rate".into(), value: Some(2.5), limit: "<1".into() }];
    Ok(Some(match word {
        "pass" => pass,
        "warning" => Answer { result: TaskResult::Warning, score: 80.0, violated, ..pass },
        "fail" => Answer { result: TaskResult::Fail, score: 50.0, violated, ..pass },
        "errored" => {
            let message = "prometheus did not answer".into();
            Answer { status: Status::Errored, result: TaskResult::Fail, evaluated: false, score: 0.0, message, ..pass }
        }
        "unevaluated" => Answer { evaluated: false, score: 0.0, message: "no SLO file".into(), ..pass },
        "silent" | LATE => return Ok(None),
        word => return Err(format!("{word:?} is not what an evaluation comes to")),
    }))
}

/// The engine.
pub struct Judge {
    /// The ports it tells over.
    pub ports: Worker,
    /// What it says.
    pub verdicts: Verdicts,
}

keelway_world::played!(Judge);

impl Inbox for Judge {
    type Ports = Worker;
    type Message = Message;

    const NAME: &'static str = evaluations::NAME;

    fn ports(&self) -> &Worker {
        &self.ports
    }
    fn retention(&self) -> Span {
        Span::minutes(1)
    }
    async fn event(&self, _: &CloudEvent, _: Cause) -> Result<Handled, PortError> {
        Ok(Handled::Recorded)
    }
    /// What an evaluation has come to stays.
    async fn message(&self, message: &Message, _: Cause) -> Result<Handled, PortError> {
        let Message::Evaluate { id, period, asker, .. } = message else { return Ok(Handled::Recorded) };
        let told = {
            let mut book = self.verdicts.lock();
            let verdict = book.verdicts.get(&asker.environment).map_or("pass", String::as_str);
            let verdict = answer(if verdict == LATE && asker.time > 2 { "pass" } else { verdict }).unwrap_or_default();
            let judged = book.judged.entry(id.clone()).or_insert_with(|| Judged {
                pipeline: asker.pipeline.to_string(),
                environment: asker.environment.clone(),
                revision: asker.revision.clone(),
                window: period.end - period.start,
                answer: None,
            });
            judged.answer = judged.answer.take().or(verdict);
            judged.answer.clone()
        };
        if let Some(answer) = told {
            let (to, environment) = (asker.pipeline.clone(), asker.environment.clone());
            let message = promotions::Message::Evaluated { to, environment, id: id.clone(), time: asker.time, answer };
            table::send_all(&self.ports, &[message.letter()]).await?;
        }
        Ok(Handled::Recorded)
    }
}
