//! What follows an end: which sequences are triggered on it, and with which selectors.

use super::advance::Step;
use super::state::Execution;
use crate::event::{Kind, Object, SOURCE, TaskResult};
use crate::ids::{ExecutionId, event_id};
use crate::names::{SequenceName, StageName};
use crate::record::{Answers, Draft};
use crate::shipyard::{MAX_FOLLOW_UPS, Match, Sequence, Shipyard, Stage, Task, Trigger};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// An execution that a commit causes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FollowUp {
    /// Its id.
    #[serde(rename = "x")]
    pub execution: ExecutionId,
    /// Its stage.
    #[serde(rename = "s")]
    pub stage: StageName,
    /// Its sequence.
    #[serde(rename = "q")]
    pub sequence: SequenceName,
    /// The shipyard revision in force at the commit: the follow-up keeps it.
    #[serde(rename = "v")]
    pub revision: String,
    /// The id of its `.triggered` event.
    #[serde(rename = "i")]
    pub trigger_id: String,
}

/// After a task: sequences triggered on `<stage>.<task>.finished`, unless a sequence has the same name.
pub(super) fn on_task(step: &mut Step<'_>, task: &Task, result: TaskResult) {
    let shipyard = step.facts.current.1;
    let stage = shipyard.stage(&step.next.stage);
    if stage.is_some_and(|stage| stage.sequences.iter().any(|sequence| sequence.name.as_str() == task.name.as_str())) {
        return;
    }
    let event = format!("{}.{}.finished", step.next.stage, task.name);
    let cause = format!("task-{}", step.next.task);
    add(step, &event, &cause, result);
}

/// After the sequence: sequences triggered on `<stage>.<sequence>.finished`.
pub(super) fn on_end(step: &mut Step<'_>, result: TaskResult) {
    let event = format!("{}.{}.finished", step.next.stage, step.next.sequence);
    add(step, &event, "end", result);
}

fn add(step: &mut Step<'_>, event: &str, cause: &str, result: TaskResult) {
    let (revision, shipyard) = step.facts.current;
    let chosen: Vec<(&Stage, &Sequence)> = shipyard
        .triggered_on(event)
        .filter(|(_, sequence)| sequence.triggered_on.iter().any(|t| t.event == event && fires(t, step, result)))
        .collect();
    for (stage, sequence) in chosen {
        if step.record.sends.len() >= MAX_FOLLOW_UPS {
            step.record
                .notes
                .push(format!("more than {MAX_FOLLOW_UPS} sequences are triggered on this: the others were not started"));
            return;
        }
        let execution = ExecutionId::of_follow_up(step.next.id, cause, &stage.name, &sequence.name);
        let trigger_id = event_id(execution, "triggered").to_string();
        let mut data = Object::new();
        data.insert("stage".into(), json!(stage.name.as_str()));
        step.recorded = true;
        step.record.events.push(Draft {
            id: Some(trigger_id.clone()),
            ty: crate::event::EventType::sequence(&stage.name, &sequence.name, Kind::Triggered),
            source: SOURCE.into(),
            time: step.facts.now,
            answers: Answers::Nothing,
            git_commit_id: None,
            with_base: true,
            with: vec![],
            without: vec![],
            data,
        });
        step.record.sends.push(FollowUp {
            execution,
            stage: stage.name.clone(),
            sequence: sequence.name.clone(),
            revision: revision.to_owned(),
            trigger_id,
        });
    }
}

/// Without a selector an end fires only on `pass`; with one, every entry must match.
fn fires(trigger: &Trigger, step: &Step<'_>, result: TaskResult) -> bool {
    match &trigger.selector {
        None => result == TaskResult::Pass,
        Some(entries) => entries.iter().all(|entry| matches(entry, step, result)),
    }
}

fn matches(entry: &Match, step: &Step<'_>, result: TaskResult) -> bool {
    match &entry.task {
        None => entry.result == result,
        Some(name) => {
            let mut executed = step.facts.sequence.tasks.iter().zip(&step.next.results);
            executed.rfind(|(task, _)| task.name == *name).is_some_and(|(_, result)| *result == entry.result)
        }
    }
}

/// The follow-ups of a record that need the lane the execution itself is on: they enter its queue in the same commit.
pub fn same_lane<'a>(x: &'a Execution, follow_ups: &'a [FollowUp]) -> impl Iterator<Item = (usize, &'a FollowUp)> {
    follow_ups.iter().enumerate().filter(|(_, follow_up)| follow_up.stage.as_str() == x.stage)
}

/// Which sequences a domain event starts: those triggered on its name, with or without the common prefix. A selector is
/// compared with the event's own result.
pub fn domain_event_starts<'a>(shipyard: &'a Shipyard, ty: &'a str, data: &Object) -> Vec<(&'a Stage, &'a Sequence)> {
    let short = ty.strip_prefix(crate::event::PREFIX).unwrap_or(ty);
    let result = data.get("result").and_then(|value| value.as_str()).map(|text| TaskResult::of(Some(text)));
    let fires = |trigger: &Trigger| {
        let named = trigger.event == short || trigger.event == ty;
        let entry = |entry: &Match| entry.task.is_none() && Some(entry.result) == result;
        named && trigger.selector.as_ref().is_none_or(|entries| entries.iter().all(entry))
    };
    let sequences = shipyard.stages.iter().flat_map(|stage| stage.sequences.iter().map(move |sequence| (stage, sequence)));
    sequences.filter(|(_, sequence)| sequence.triggered_on.iter().any(fires)).collect()
}
