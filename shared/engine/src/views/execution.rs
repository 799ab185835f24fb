//! One execution as the API shows it: how far it is, what it waits for and since when, how its tasks went.

use crate::item::Key;
use crate::sequences::keys::LaneKey;
use keelway_domain::event::{EventType, Kind};
use keelway_domain::sequences::{End, Execution, Phase, Policy, ReactionKind, deadline};
use keelway_domain::shipyard::{Sequence, Shipyard};
use keelway_domain::time::Timestamp;
use serde_json::{Value, json};
use std::collections::HashMap;

/// The executions that hold lanes, by the keys of the locks.
pub(super) type Behind = HashMap<Key, Execution>;

/// An execution with what its item alone says.
pub(super) struct Shown {
    pub x: Execution,
    /// How many executions are between it and the outside event.
    pub depth: usize,
}

impl Shown {
    pub fn phase(&self) -> Phase {
        self.x.phase()
    }
}

/// Its definition in the shipyard it was accepted with.
pub(super) fn definition(x: &Execution, shipyard: &Shipyard) -> Option<Sequence> {
    shipyard.stage(&x.stage).and_then(|stage| stage.sequence(&x.sequence))
}

/// An execution, without its context.
pub(super) fn shown(one: &Shown, definition: Option<&Sequence>, policy: &Policy, behind: &Behind) -> Value {
    let x = &one.x;
    let mut shown = json!({
        "id": x.id,
        "stage": x.stage,
        "sequence": x.sequence,
        "state": state_of(one),
        "phase": phase_name(one.phase()),
        "acceptedAt": x.caused.rfc3339(),
        "deliveryAcceptedAt": x.accepted.rfc3339(),
        "tasks": tasks(x, definition),
        "triggerId": x.trigger_id,
    });
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            shown[name] = value;
        }
    };
    put("image", x.view.image.as_ref().map(|image| json!(image)));
    put("result", x.outcome.map(|outcome| json!(outcome.result.as_str())));
    put("status", x.outcome.map(|outcome| json!(outcome.status.as_str())));
    put("message", x.view.message.as_ref().map(|message| json!(message)));
    put("startedAt", x.began.map(|at| json!(at.rfc3339())));
    put("finishedAt", x.outcome.map(|outcome| json!(outcome.at.rfc3339())));
    put("parent", x.parent.filter(|_| x.retry_of().is_none()).map(|id| json!(id)));
    put("retryOf", x.retry_of().map(|id| json!(id)));
    put("override", x.view.overridden.as_ref().map(|(by, reason)| json!({"by": by, "reason": reason})));
    put("waits", waits(x, definition, policy, behind));
    shown
}

/// What an open execution waits for.
fn waits(x: &Execution, definition: Option<&Sequence>, policy: &Policy, behind: &Behind) -> Option<Value> {
    let last = x.view.times.last().map_or(x.caused, |times| times.done.max(x.caused));
    let sent = x.sent.unwrap_or(last);
    let started = x.reactions.iter().filter(|r| r.kind == ReactionKind::Started).map(|r| r.at).min();
    let (reason, since) = match (x.phase(), started) {
        (Phase::Ended, _) => return None,
        (Phase::Queued, _) => ("lane", last),
        (Phase::Frozen, _) => ("window", x.held.as_ref().map_or(last, |held| held.since)),
        (Phase::Delayed, _) => ("delay", last),
        (Phase::WaitingForApproval, _) => ("approval", sent),
        (Phase::Paused | Phase::PausedRunning | Phase::PausedWaitingForApproval, _) => ("resume", x.paused_at.unwrap_or(last)),
        (Phase::Running | Phase::RunningQueued, None) => ("executor", sent),
        (Phase::Running | Phase::RunningQueued, Some(started)) => ("answer", started),
    };
    let mut waits = json!({"reason": reason, "since": since.rfc3339()});
    let until = definition.and_then(|sequence| deadline(x, sequence, policy));
    if let Some(until) = until.filter(|_| reason != "resume") {
        waits["until"] = json!(until.rfc3339());
    }
    if let Some(task) = definition.and_then(|sequence| sequence.tasks.get(usize::from(x.task))) {
        waits["task"] = json!(task.name);
        if let Some(record) = x.record.filter(|_| x.is_open()) {
            waits["type"] = json!(EventType::task(task.name.as_str(), Kind::Triggered));
            waits["id"] = json!(record.uuid().to_string());
        }
    }
    if let Some(by) = x.view.answered.as_ref().filter(|_| reason == "executor") {
        waits["answeredBy"] = json!(by);
    }
    if reason == "answer" && !x.bare.is_empty() {
        let sources: Vec<&str> = x.bare.iter().map(|started| started.source.as_str()).collect();
        waits["by"] = json!(sources.join(", "));
    }
    if let Some(held) = &x.held {
        waits["window"] = json!(held.by);
    }
    let holder = behind.get(&LaneKey::of(x).lock()).filter(|holder| reason == "lane" && holder.id != x.id);
    if let Some(holder) = holder {
        waits["behind"] = json!({
            "shkeptncontext": holder.context.as_str(), "service": holder.service.as_str(), "sequence": holder.sequence,
            "image": holder.view.image,
        });
    }
    Some(waits)
}

/// Its state, in a word for people and Keptn's clients.
pub(super) fn state_of(one: &Shown) -> &'static str {
    match (one.x.outcome.map(|outcome| outcome.end), one.phase()) {
        (Some(End::Normal | End::NeverStarted), _) => "finished",
        (Some(End::TimedOut), _) => "timedOut",
        (Some(End::Aborted), _) => "aborted",
        (None, Phase::Queued | Phase::Frozen) => "waiting",
        (None, Phase::WaitingForApproval) => "waitingForApproval",
        (None, Phase::Paused | Phase::PausedRunning | Phase::PausedWaitingForApproval) => "paused",
        (None, Phase::Running | Phase::RunningQueued | Phase::Delayed | Phase::Ended) => "started",
    }
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Queued => "queued",
        Phase::Frozen => "frozen",
        Phase::Delayed => "delayed",
        Phase::Running => "running",
        Phase::RunningQueued => "runningQueued",
        Phase::WaitingForApproval => "waitingForApproval",
        Phase::Paused => "paused",
        Phase::PausedRunning => "pausedRunning",
        Phase::PausedWaitingForApproval => "pausedWaitingForApproval",
        Phase::Ended => "ended",
    }
}

/// The tasks reached so far: their results and times, and the state of the present one.
fn tasks(x: &Execution, definition: Option<&Sequence>) -> Vec<Value> {
    let tasks = definition.map(|sequence| sequence.tasks.as_slice()).unwrap_or_default();
    // Of an execution that began under an older version, the first times are missing.
    let missing = x.results.len().saturating_sub(x.view.times.len());
    let at = |time: Timestamp| json!(time.rfc3339());
    let done = |i: usize, task: Value| {
        let mut task = task;
        if let Some(times) = i.checked_sub(missing).and_then(|i| x.view.times.get(i)) {
            task["triggeredAt"] = at(times.sent);
            task["startedAt"] = at(times.started);
            task["finishedAt"] = at(times.done);
        }
        if let Some((_, by)) = x.view.decided.as_ref().filter(|(number, _)| usize::from(*number) == i) {
            task["by"] = json!(by);
        }
        task
    };
    let begun = |task: Value| {
        let mut task = task;
        if let Some(sent) = x.sent {
            task["triggeredAt"] = at(sent);
        }
        let started = x.reactions.iter().filter(|r| r.kind == ReactionKind::Started).map(|r| r.at).min();
        if let Some(started) = started {
            task["startedAt"] = at(started);
        }
        if x.view.left > 0 {
            task["mayRun"] = json!(x.view.left);
        }
        task
    };
    let task = |(i, task): (usize, &keelway_domain::shipyard::Task)| {
        let named = |state: &str| json!({"name": task.name, "state": state});
        match (x.results.get(i), x.outcome) {
            (Some(result), _) => Some(done(i, json!({"name": task.name, "state": "finished", "result": result.as_str()}))),
            (None, _) if i > x.results.len() => None,
            (None, Some(outcome)) if x.sent.is_some() && outcome.end == End::TimedOut => Some(begun(named("timedOut"))),
            (None, Some(outcome)) if x.sent.is_some() && outcome.end == End::Aborted => Some(begun(named("aborted"))),
            (None, None) if x.is_open() && x.count(ReactionKind::Started) > 0 => Some(begun(named("started"))),
            (None, None) if x.is_open() => Some(begun(named("triggered"))),
            (None, _) => None,
        }
    };
    tasks.iter().enumerate().filter_map(task).collect()
}
