//! Follow-ups: which sequences the end of a task or sequence starts, and under which conditions.

use super::state::{End, Execution};
use crate::event::{Kind, Object, SOURCE, TaskResult};
use crate::ids::{ExecutionId, event_id};
use crate::names::{SequenceName, StageName};
use crate::record::{Answers, Draft};
use crate::shipyard::{Match, Sequence, Shipyard, Stage, Task, Trigger};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// An execution that a commit starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FollowUp {
    /// The id of the execution.
    #[serde(rename = "x")]
    pub execution: ExecutionId,
    /// The stage of the execution.
    #[serde(rename = "s")]
    pub stage: StageName,
    /// The sequence of the execution.
    #[serde(rename = "q")]
    pub sequence: SequenceName,
    /// The shipyard revision in force at the commit, which the follow-up keeps.
    #[serde(rename = "v")]
    pub revision: String,
    /// The id of its `.triggered` event.
    #[serde(rename = "i")]
    pub trigger_id: String,
}

crate::recorded!(FollowUp);

/// The end of a task or sequence.
pub(super) struct Ended<'a> {
    /// The execution, with the results of all completed tasks.
    pub x: &'a Execution,
    /// The tasks of its sequence.
    pub tasks: &'a [Task],
    /// The event that `triggeredOn` names.
    pub event: String,
    /// Distinguishes the follow-ups of this end from those of another.
    pub cause: String,
    /// The result.
    pub result: TaskResult,
}

impl Ended<'_> {
    /// The sequences that this end starts, in the order of the file, each with its trigger event.
    pub fn follow_ups(&self, (revision, shipyard): (&str, &Shipyard), now: Timestamp) -> Vec<(Draft, FollowUp)> {
        let fires = |sequence: &Sequence| sequence.triggered_on.iter().any(|t| t.event == self.event && self.fires(t));
        let chosen = shipyard.triggered_on(&self.event).filter(|(_, sequence)| fires(sequence));
        chosen.map(|(stage, sequence)| self.follow_up(stage, sequence, revision, now)).collect()
    }

    fn follow_up(&self, stage: &Stage, sequence: &Sequence, revision: &str, now: Timestamp) -> (Draft, FollowUp) {
        let execution = ExecutionId::of_follow_up(self.x.id, &self.cause, &stage.name, &sequence.name);
        let trigger_id = event_id(execution, "triggered").to_string();
        let mut data = Object::new();
        data.insert("stage".into(), json!(stage.name.as_str()));
        let draft = Draft {
            id: Some(trigger_id.clone()),
            ty: crate::event::EventType::sequence(&stage.name, &sequence.name, Kind::Triggered),
            source: SOURCE.into(),
            time: now,
            answers: Answers::Nothing,
            context: None,
            git_commit_id: None,
            with_base: true,
            with: vec![],
            without: vec![],
            data,
        };
        let (stage, sequence) = (stage.name.clone(), sequence.name.clone());
        (draft, FollowUp { execution, stage, sequence, revision: revision.to_owned(), trigger_id })
    }

    /// Whether the end meets the conditions: without a selector it must be a `pass`; with one, every entry must match.
    fn fires(&self, trigger: &Trigger) -> bool {
        match &trigger.selector {
            None => self.result == TaskResult::Pass,
            Some(entries) => entries.iter().all(|entry| self.matches(entry)),
        }
    }

    fn matches(&self, entry: &Match) -> bool {
        match &entry.task {
            None => entry.result == self.result,
            Some(name) => {
                let mut executed = self.tasks.iter().zip(&self.x.results);
                executed.rfind(|(task, _)| task.name == *name).is_some_and(|(_, result)| *result == entry.result)
            }
        }
    }
}

/// The follow-ups that need the lane of the execution itself: they enter its queue in the same commit.
pub fn same_lane<'a>(x: &'a Execution, follow_ups: &'a [FollowUp]) -> impl Iterator<Item = (usize, &'a FollowUp)> {
    follow_ups.iter().enumerate().filter(|(_, follow_up)| follow_up.stage.as_str() == x.stage)
}

/// The sequences that a success would have started, directly or indirectly, and that will not start now; without those that follow
/// a failure. In the order in which they would have started.
pub fn unreached<'a>(x: &Execution, tasks: &[Task], shipyard: &'a Shipyard) -> Vec<(&'a Stage, &'a Sequence)> {
    let Some(outcome) = x.outcome else { return vec![] };
    let silent = matches!(outcome.end, End::Aborted | End::NeverStarted);
    let event = format!("{}.{}.finished", x.stage, x.sequence);
    let ended = Ended { x, tasks, event: event.clone(), cause: String::new(), result: outcome.result };
    let fired = |sequence: &Sequence| sequence.triggered_on.iter().any(|t| t.event == event && ended.fires(t));
    let mut found = on_pass(&event, shipyard);
    found.retain(|(_, sequence)| silent || !fired(sequence));
    let mut next = 0;
    while let Some((stage, sequence)) = found.get(next) {
        for after in on_pass(&format!("{}.{}.finished", stage.name, sequence.name), shipyard) {
            if !found.iter().any(|known| std::ptr::eq(known.1, after.1)) {
                found.push(after);
            }
        }
        next += 1;
    }
    found
}

/// The sequences that follow an event if everything passes.
fn on_pass<'a>(event: &str, shipyard: &'a Shipyard) -> Vec<(&'a Stage, &'a Sequence)> {
    let passes = |entries: &Vec<Match>| entries.iter().all(|entry| entry.result == TaskResult::Pass);
    let fires = |trigger: &Trigger| trigger.event == event && trigger.selector.as_ref().is_none_or(passes);
    let sequences = shipyard.stages.iter().flat_map(|stage| stage.sequences.iter().map(move |sequence| (stage, sequence)));
    sequences.filter(|(_, sequence)| sequence.triggered_on.iter().any(fires)).collect()
}

/// The sequences that a domain event starts: those triggered on its name, with or without the common prefix. A selector is compared
/// with the event's own result.
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
