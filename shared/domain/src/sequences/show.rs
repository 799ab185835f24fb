//! What the views show of tasks and ends. It is stored with the state, so that a list needs no other reads; no decision reads it.

use super::advance::Step;
use super::state::{Deployed, End, Execution, Outcome, ReactionKind, TaskTimes};
use crate::event::{CloudEvent, Object, TaskResult};
use crate::shipyard::{APPROVAL, Task};
use serde_json::Value;

/// The task whose success puts the image of the payload into the stage.
const DEPLOYMENT: &str = "deployment";
/// The task whose success takes an image out again. `data.rollback.image` says what runs instead.
const ROLLBACK: &str = "rollback";

/// A task is complete; `told`: its last `.finished`.
pub(super) fn task_done(step: &mut Step<'_>, task: &Task, result: TaskResult, told: Option<&CloudEvent>) {
    let now = step.facts.now;
    let deployed = deployed(task, result, &step.record.base, &step.next).map(|image| Deployed { image, at: now });
    let next = &mut step.next;
    let sent = next.sent.unwrap_or(now);
    let started = next.reactions.iter().filter(|reaction| reaction.kind == ReactionKind::Started).map(|reaction| reaction.at).min();
    next.view.times.push(TaskTimes { sent, started: started.unwrap_or(sent), done: now });
    let Some(told) = told else { return };
    if result != TaskResult::Pass {
        next.view.message = told.text("message").filter(|message| !message.is_empty()).map(str::to_owned);
    }
    next.view.deployed = deployed.or(next.view.deployed.take());
}

/// The present task was answered. As long as nobody says `.started`, it is known who answered first.
pub(super) fn answered(next: &mut Execution, started: usize, event: &CloudEvent) {
    if started > 0 {
        next.view.answered = None;
    } else if next.view.answered.is_none() {
        next.view.answered = Some(event.source.clone());
    }
}

/// The present task ends unanswered: how many executors may still work on it.
pub(super) fn left(next: &mut Execution, end: End) {
    if matches!(end, End::Aborted | End::TimedOut) && next.is_open() && !next.waits_for_approval() {
        let left = next.count(ReactionKind::Started).saturating_sub(next.count(ReactionKind::Finished));
        next.view.left = u32::try_from(left).unwrap_or(u32::MAX);
    }
}

/// The present task, an approval, is decided by this event.
pub(super) fn decided(next: &mut Execution, event: &CloudEvent) {
    let by = event.data.get(APPROVAL).and_then(|approval| approval.get("by")).and_then(Value::as_str);
    next.view.decided = by.map(|by| (next.task, by.to_owned()));
}

/// The image that runs after this task; `Some(None)`: another one, but the task did not say which.
fn deployed(task: &Task, result: TaskResult, base: &Object, x: &Execution) -> Option<Option<String>> {
    let text = |path: &[&str]| {
        let (first, rest) = path.split_first()?;
        let found = rest.iter().try_fold(base.get(*first)?, |value, name| value.get(name));
        found.and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    match task.name.as_str() {
        _ if result == TaskResult::Fail => None,
        DEPLOYMENT => text(&["configurationChange", "values", "image"]).or_else(|| x.view.image.clone()).map(Some),
        ROLLBACK => Some(text(&[ROLLBACK, "image"])),
        _ => None,
    }
}

/// It ended; `message` says why.
pub(super) fn ended(next: &mut Execution, outcome: Outcome, message: &str) {
    if outcome.result != TaskResult::Pass && !message.is_empty() {
        next.view.message = Some(message.to_owned());
    }
}
