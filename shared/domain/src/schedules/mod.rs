//! Schedules: they trigger a sequence at the times of a cron expression, or once.
//!
//! A schedule is a subject of its own, with one wake-up for its next time. [`decide`] says what a message does to it: the triggers that are
//! due, and when the next ones are. The ids of a trigger follow from the schedule, the time it was due at, and the service, so it counts once
//! however often it is made.

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

/// At most this many services in one schedule: their triggers are made in one commit.
pub const MAX_SERVICES: usize = 20;
/// The largest data of a schedule, in bytes of JSON.
pub const MAX_DATA_BYTES: usize = 16 * 1024;

/// A transition record of a schedule; it makes triggers.
pub type Record = crate::record::Record<Firing>;

/// What a schedule triggers, and when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// The stage.
    pub stage: StageName,
    /// The sequence.
    pub sequence: SequenceName,
    /// Of these services; at least one.
    pub services: Vec<ServiceName>,
    /// At which times.
    pub when: When,
    /// The IANA time zone of a cron expression; absent: UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Not before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Timestamp>,
    /// Not at this time and later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Timestamp>,
    /// Not at all, for now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
    /// What happens while the run before is open.
    pub concurrency: Concurrency,
    /// The trigger's data, without project, stage and service.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub data: Object,
}

/// At which times a schedule triggers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum When {
    /// Those of a cron expression.
    Cron(String),
    /// Once.
    At(Timestamp),
}

/// What a schedule does if the run before is still open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Concurrency {
    /// It triggers, and the new run waits for its turn.
    Queue,
    /// It does not trigger this time.
    Skip,
}

impl Spec {
    /// The first time after `after` at which it triggers.
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
    /// Its project.
    pub project: ProjectName,
    /// Its name, unique in the project.
    pub name: String,
    /// When it was first applied.
    pub began: Timestamp,
    /// What it says.
    pub spec: Spec,
    /// The text as it was applied.
    pub source: String,
    /// When it was last applied: what was due before does not count.
    pub applied: Timestamp,
    /// Whether `next` is that of the spec.
    pub planned: bool,
    /// When it triggers next.
    pub next: Option<Timestamp>,
    /// The message that set `next` ([`Cause::id`]).
    pub armed_by: u64,
    /// The last run of each service.
    pub runs: BTreeMap<ServiceName, Run>,
    /// The last time that it was due.
    pub last: Option<Last>,
    /// The record of its last commit that made triggers.
    pub record: Option<RecordId>,
    /// It was deleted. It stays for a while, so that a message that was stopped can still send what it had decided before.
    pub deleted: bool,
}

/// A run that a schedule has triggered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// When it was due.
    pub at: Timestamp,
    /// Its context.
    pub context: Context,
}

/// What happened when a schedule was due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Last {
    /// When it was due.
    pub at: Timestamp,
    /// When it triggered.
    pub fired: Timestamp,
    /// Services whose run before was still open: they were not triggered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<ServiceName>,
    /// It was so late that the time after it had passed as well: those times are left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
}

/// A trigger that a schedule makes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Firing {
    /// When it was due.
    pub at: Timestamp,
    /// The execution it starts.
    pub execution: ExecutionId,
    /// Its context.
    pub context: Context,
    /// The stage.
    pub stage: StageName,
    /// The sequence.
    pub sequence: SequenceName,
    /// The service.
    pub service: ServiceName,
    /// Its data, without project, stage and service.
    pub data: Object,
}

/// An input of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// It was applied.
    Look,
    /// The wake-up for this time.
    Due(Timestamp),
}

/// What a decision reads in addition to the state.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// Now.
    pub now: Timestamp,
    /// The message at hand.
    pub cause: Cause,
    /// The services whose last run is open; needed if it skips them.
    pub open: &'a BTreeSet<ServiceName>,
}

/// The decision about an input.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Nothing to decide any more.
    Settle,
    /// The next state and, if it makes triggers, its record.
    Commit(Box<(Schedule, Option<Record>)>),
}

impl Schedule {
    /// A schedule as it is applied for the first time.
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

    /// It is applied again, as another text says. One that was deleted begins anew.
    pub fn replaced(&self, spec: Spec, source: String, now: Timestamp) -> Self {
        if self.deleted {
            return Self { record: self.record, ..Self::new(self.project.clone(), self.name.clone(), spec, source, now) };
        }
        Self { spec, source, applied: now, planned: false, next: None, ..self.clone() }
    }

    /// It is deleted: nothing is due any more.
    pub fn gone(&self) -> Self {
        Self { deleted: true, planned: true, next: None, armed_by: 0, ..self.clone() }
    }

    /// Its number among subjects.
    pub fn id(&self) -> SubjectId {
        SubjectId(hash64(&[b"schedule", self.project.as_str().as_bytes(), self.name.as_bytes()]))
    }

    /// The trigger for a service that is due at a time.
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

/// The same members in the order in which records are stored, so that a message that is made from the record again is the same message.
fn in_order(data: &Object) -> Object {
    serde_json::from_str(&canonical(&Value::Object(data.clone()))).unwrap_or_else(|_| data.clone())
}

/// Decides what an input does to a schedule. Pure and total.
pub fn decide(x: &Schedule, input: Input, facts: &Facts<'_>) -> Decision {
    match input {
        Input::Look if x.planned => Decision::Settle,
        Input::Look => {
            // A time between the request and this message counts.
            let after = x.last.as_ref().map_or(x.applied, |last| last.at.max(x.applied));
            let next = Schedule { planned: true, next: x.spec.next(after), armed_by: facts.cause.id, ..x.clone() };
            Decision::Commit(Box::new((next, None)))
        }
        // Early, or replaced: what is owed is scheduled when the message settles.
        Input::Due(at) if x.next != Some(at) || facts.now < at => Decision::Settle,
        Input::Due(at) => fire(x, at, facts),
    }
}

fn fire(x: &Schedule, at: Timestamp, facts: &Facts<'_>) -> Decision {
    let skips = |service: &&ServiceName| x.spec.concurrency == Concurrency::Skip && facts.open.contains(*service);
    let (skipped, due): (Vec<&ServiceName>, Vec<&ServiceName>) = x.spec.services.iter().partition(skips);
    let sends: Vec<Firing> = due.into_iter().map(|service| x.firing(at, service)).collect();
    let following = x.spec.next(at);
    // Whoever was stopped for a day does not start a day's runs at once.
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
