//! Schedules: they trigger a sequence at the times of a cron expression, or once.
//!
//! A schedule is a subject with one wake-up, for its next time. [`decide`] decides which triggers are due and when the next ones
//! are. The id of a trigger is derived from the schedule, the time at which it was due, and the service, so it has one effect
//! however often it is made.

#![expect(missing_docs, reason = "names that say what they are need no documentation")]

#[cfg(test)]
mod tests;

use crate::cause::Cause;
use crate::event::Object;
use crate::ids::{ExecutionId, RecordId, SubjectId, context_of, hash64};
use crate::json::canonical;
use crate::names::{Context, ProjectName, SequenceName, ServiceName, StageName};
use crate::time::Timestamp;
use crate::windows;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The most services of a schedule: their triggers are made in one commit.
pub const MAX_SERVICES: usize = 20;
/// The largest data of a schedule, in bytes of JSON.
pub const MAX_DATA_BYTES: usize = 16 * 1024;

/// A transition record of a schedule; it makes triggers.
pub type Record = crate::record::Record<Firing>;

/// A schedule's specification.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    pub stage: StageName,
    pub sequence: SequenceName,
    /// The services, at least one.
    pub services: Vec<ServiceName>,
    /// The times.
    pub when: When,
    /// The IANA time zone of a cron expression; absent: UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// No trigger before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Timestamp>,
    /// No trigger at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Timestamp>,
    /// No triggers for now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
    /// What happens if the last run has not ended.
    pub concurrency: Concurrency,
    /// The trigger's data, without project, stage and service.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub data: Object,
}

crate::stored!(Spec);

/// The times at which a schedule triggers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum When {
    /// The times of a cron expression.
    Cron(String),
    /// One time.
    At(Timestamp),
}

/// What a schedule does if the last run has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Concurrency {
    /// It triggers; the new run waits for its turn.
    Queue,
    /// It skips this time.
    Skip,
}

impl Spec {
    /// The first time after `after` at which the schedule triggers.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let after = self.start.map_or(after, |start| after.max(Timestamp(start.0 - 1)));
        let next = match &self.when {
            When::Cron(schedule) => windows::next(&windows::cron(schedule).ok()?, windows::zone(self.zone.as_deref()).ok()?, after),
            When::At(at) => Some(*at).filter(|at| *at > after),
        };
        next.filter(|next| !self.suspended && self.end.is_none_or(|end| *next < end))
    }
}

/// The state of a schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    pub project: ProjectName,
    /// Its name, unique in the project.
    pub name: String,
    /// When it was first applied.
    pub began: Timestamp,
    pub spec: Spec,
    /// The text of the manifest.
    pub source: String,
    /// When it was last applied. Earlier times do not count.
    pub applied: Timestamp,
    /// Whether `next` was computed from the present specification.
    pub planned: bool,
    /// The next time.
    pub next: Option<Timestamp>,
    /// The message that set `next` ([`Cause::id`]).
    pub armed_by: u64,
    /// The last run of each service.
    pub runs: BTreeMap<ServiceName, Run>,
    /// The last time at which it was due.
    pub last: Option<Last>,
    /// The last record with triggers.
    pub record: Option<RecordId>,
    /// Whether it was deleted. A deleted schedule is kept for a while, so that an interrupted message can still send its triggers.
    pub deleted: bool,
}

/// A run that a schedule has started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// When it was due.
    pub at: Timestamp,
    pub context: Context,
}

/// What happened at the last time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Last {
    /// When it was due.
    pub at: Timestamp,
    /// When it triggered.
    pub fired: Timestamp,
    /// The services that were skipped because their last run had not ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<ServiceName>,
    /// Whether the function ran so late that further times had passed. Those were left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
}

/// A trigger of a schedule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Firing {
    /// When it was due.
    pub at: Timestamp,
    /// The execution that it starts.
    pub execution: ExecutionId,
    pub context: Context,
    pub stage: StageName,
    pub sequence: SequenceName,
    pub service: ServiceName,
    /// The data of the trigger, without project, stage and service.
    pub data: Object,
}

crate::recorded!(Firing);

/// An input of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// The schedule was applied.
    Look,
    /// The wake-up for this time.
    Due(Timestamp),
}

/// The inputs of a decision besides the state.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The time of the decision.
    pub now: Timestamp,
    /// The message at hand.
    pub cause: Cause,
    /// The services whose last run has not ended. Needed for [`Concurrency::Skip`].
    pub open: &'a BTreeSet<ServiceName>,
}

/// The decision about an input.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// No change.
    Settle,
    /// The next state and, if there are triggers, the record with them.
    Commit(Box<(Schedule, Option<Record>)>),
}

impl Schedule {
    /// The state after the first application.
    pub fn new(project: ProjectName, name: String, spec: Spec, source: String, now: Timestamp) -> Self {
        Self {
            project,
            name,
            began: now,
            spec,
            source,
            applied: now,
            planned: false,
            next: None,
            armed_by: 0,
            runs: BTreeMap::new(),
            last: None,
            record: None,
            deleted: false,
        }
    }

    /// The state after a further application. A deleted schedule begins anew.
    pub fn replaced(&self, spec: Spec, source: String, now: Timestamp) -> Self {
        if self.deleted {
            return Self { record: self.record, ..Self::new(self.project.clone(), self.name.clone(), spec, source, now) };
        }
        Self { spec, source, applied: now, planned: false, next: None, ..self.clone() }
    }

    /// The state after a deletion: nothing is due any more.
    pub fn gone(&self) -> Self {
        Self { deleted: true, planned: true, next: None, armed_by: 0, ..self.clone() }
    }

    /// The id of the schedule as a subject.
    pub fn id(&self) -> SubjectId {
        SubjectId(hash64(&[b"schedule", self.project.as_str().as_bytes(), self.name.as_bytes()]))
    }

    /// The trigger for a service at a time.
    fn firing(&self, at: Timestamp, service: &ServiceName) -> Firing {
        let identity = format!("{}/{}/{}/{service}", self.project, self.name, at.0);
        Firing {
            at,
            execution: SubjectId(hash64(&[b"scheduled", identity.as_bytes()])),
            context: Context::of(&context_of("keelway-schedule", &identity).to_string()),
            stage: self.spec.stage.clone(),
            sequence: self.spec.sequence.clone(),
            service: service.clone(),
            data: in_order(&self.spec.data),
        }
    }
}

/// The members in the order in which records store them, so that a message that is made again from the record has the same bytes.
fn in_order(data: &Object) -> Object {
    serde_json::from_str(&canonical(&Value::Object(data.clone()))).unwrap_or_else(|_| data.clone())
}

/// Decides an input of a schedule. Pure and total.
pub fn decide(x: &Schedule, input: Input, facts: &Facts<'_>) -> Decision {
    match input {
        Input::Look if x.planned => Decision::Settle,
        Input::Look => {
            // A time that passed between the request and this message counts.
            let after = x.last.as_ref().map_or(x.applied, |last| last.at.max(x.applied));
            let next = Schedule { planned: true, next: x.spec.next(after), armed_by: facts.cause.id, ..x.clone() };
            Decision::Commit(Box::new((next, None)))
        }
        // Too early, or replaced: effects that are owed are performed when the message settles.
        Input::Due(at) if x.next != Some(at) || facts.now < at => Decision::Settle,
        Input::Due(at) => fire(x, at, facts),
    }
}

fn fire(x: &Schedule, at: Timestamp, facts: &Facts<'_>) -> Decision {
    let skips = |service: &&ServiceName| x.spec.concurrency == Concurrency::Skip && facts.open.contains(*service);
    let (skipped, due): (Vec<&ServiceName>, Vec<&ServiceName>) = x.spec.services.iter().partition(skips);
    let sends: Vec<Firing> = due.into_iter().map(|service| x.firing(at, service)).collect();
    let following = x.spec.next(at);
    // After an interruption of a day, the runs of that day do not all start at once.
    let late = following.is_some_and(|following| following <= facts.now);
    let mut next = x.clone();
    next.next = if late { x.spec.next(facts.now) } else { following };
    next.armed_by = facts.cause.id;
    next.last = Some(Last { at, fired: facts.now, skipped: skipped.into_iter().cloned().collect(), late });
    next.runs.retain(|service, _| x.spec.services.contains(service));
    next.runs.extend(sends.iter().map(|made| (made.service.clone(), Run { at, context: made.context.clone() })));
    let record = Record { sends, ..Record::after(x.record, facts.cause, facts.now) };
    next.record = Some(record.id(x.id(), record.number_going_round()));
    Decision::Commit(Box::new((next, Some(record))))
}
