//! What the views show of tasks and ends. It is stored in the state, so that lists need no other reads. Decisions do not read it.

use super::advance::Step;
use super::state::{Deployed, End, Execution, Outcome, ReactionKind, TaskTimes};
use crate::event::{CloudEvent, Object, TaskResult};
use crate::shipyard::{APPROVAL, Task};
use serde_json::Value;

/// The task whose success deploys the payload's image in the stage.
const DEPLOYMENT: &str = "deployment";
/// The task whose success removes that image again. `data.rollback.image` names the image that runs instead.
const ROLLBACK: &str = "rollback";

/// Records that a task is complete. `told`: its last `.finished`.
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

/// Records who answered the present task first, as long as there was no `.started`.
pub(super) fn answered(next: &mut Execution, started: usize, event: &CloudEvent) {
    if started > 0 {
        next.view.answered = None;
    } else if next.view.answered.is_none() {
        next.view.answered = Some(event.source.clone());
    }
}

/// Records how many executors may still work on a task that ends without their answers.
pub(super) fn left(next: &mut Execution, end: End) {
    if matches!(end, End::Aborted | End::TimedOut) && next.is_open() && !next.waits_for_approval() {
        let left = next.count(ReactionKind::Started).saturating_sub(next.count(ReactionKind::Finished));
        next.view.left = u32::try_from(left).unwrap_or(u32::MAX);
    }
}

/// Records who decided the present task, an approval.
pub(super) fn decided(next: &mut Execution, event: &CloudEvent) {
    let by = event.data.get(APPROVAL).and_then(|approval| approval.get("by")).and_then(Value::as_str);
    next.view.decided = by.map(|by| (next.task, by.to_owned()));
}

/// The image that runs after this task. `Some(None)`: another one, which the task did not name.
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

/// Records the end and its message.
pub(super) fn ended(next: &mut Execution, outcome: Outcome, message: &str) {
    if outcome.result != TaskResult::Pass && !message.is_empty() {
        next.view.message = Some(message.to_owned());
    }
}
