//! A Shipyard 0.2 as valid types: its stages, the tasks of their sequences, and what starts the sequences.
//!
//! The manifest parser creates these values and refuses invalid manifests. The serde form is that of stored revisions, not that of
//! manifests.

use crate::event::{Object, PREFIX, TaskResult};
use crate::names::{SequenceName, StageName, TaskName};
use crate::time::Span;
use crate::windows::Window;
use serde::{Deserialize, Serialize};

/// The most stages in a shipyard.
pub const MAX_STAGES: usize = 100;
/// The most tasks in a sequence.
pub const MAX_TASKS: usize = 200;
/// The most sequences of one stage that one event may start: they start in one transaction.
pub const MAX_FOLLOW_UPS_PER_STAGE: usize = 40;
/// The most sequences that one event may start: the record of the commit that starts them contains a trigger for each.
pub const MAX_FOLLOW_UPS: usize = 100;
/// The sequence that every stage has, even if it does not define it, and the only task of that sequence.
pub const EVALUATION: &str = "evaluation";
/// The property of a task that names the deployment config which carries it out.
pub const DEPLOYMENT_CONFIG: &str = "deploymentConfig";
/// The tasks that a deployment config can carry out.
pub const CARRIED_OUT: [&str; 2] = ["deployment", "rollback"];
/// Names of sequences and tasks that repair something. Windows do not hold them back.
pub const REPAIRS: [&str; 5] = ["remediation", "get-action", "rollback", "revert", "undo"];
/// The task that the engine answers itself, by asking a person.
pub const APPROVAL: &str = "approval";

/// The delivery process of a project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shipyard {
    /// In the order of the file; at least one.
    pub stages: Vec<Stage>,
}

crate::stored!(Shipyard);

/// A stage of the process, usually one environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Unique in the shipyard.
    pub name: StageName,
    /// The windows in which sequences may begin. May be empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<Window>,
    /// In the order of the file. May be empty.
    pub sequences: Vec<Sequence>,
}

/// An ordered list of tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sequence {
    /// Unique in its stage.
    pub name: SequenceName,
    /// The events that start the sequence in addition to its own `.triggered` event; one of them suffices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggered_on: Vec<Trigger>,
    /// In order; at least one.
    pub tasks: Vec<Task>,
    /// The longest time from the first task's trigger to the end. Waiting for approval counts, a pause does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// Whether a newer trigger of the same sequence and service replaces an execution that waits for its lane.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub supersede: bool,
    /// Whether the sequence begins although the windows of its stage are closed. Absent: if it is a repair or only evaluates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore_windows: Option<bool>,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Not unique: a task may occur several times in a sequence.
    pub name: TaskName,
    /// The delay before the trigger. The execution holds its lane meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triggered_after: Option<Span>,
    /// Passed to executors as `data.<task>`.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub properties: Object,
    /// How long executors have to answer the trigger. Absent: the installation's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_deadline: Option<Span>,
    /// How long the task may take from `.started` to `.finished`. Absent: the installation's default. 0: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
}

/// One entry of `triggeredOn`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trigger {
    /// `<stage>.<sequence>.finished`, `<stage>.<task>.finished`, or the name of a domain event.
    pub event: String,
    /// All entries must match. `None`: the end of a sequence or task must be a `pass`; domain events always match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<Vec<Match>>,
}

/// One entry of `selector.match`: `result: fail` or `<task>.result: fail`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Match {
    /// The last executed task of this name. `None`: the whole sequence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskName>,
    /// The result that it must have.
    pub result: TaskResult,
}

impl Sequence {
    /// A sequence without tasks, for executions whose sequence does not exist.
    pub fn none() -> Self {
        Self {
            name: SequenceName::none(),
            triggered_on: vec![],
            tasks: vec![],
            timeout: None,
            supersede: false,
            ignore_windows: None,
        }
    }

    /// Whether the sequence begins although the windows of its stage are closed. The default is true for repairs (by the name of
    /// the sequence or of one of its tasks) and for sequences that only evaluate.
    pub fn ignores_windows(&self) -> bool {
        let names = || self.tasks.iter().map(|task| task.name.as_str());
        let repairs = || names().chain([self.name.as_str()]).any(|name| REPAIRS.contains(&name));
        let evaluates = || !self.tasks.is_empty() && names().all(|name| name == EVALUATION);
        self.ignore_windows.unwrap_or_else(|| repairs() || evaluates())
    }

    /// Whether the sequence follows the end of another sequence or task, which may be a gate: starting it by hand bypasses that
    /// gate. Repairs are excepted, because they are for emergencies, and so are sequences that follow domain events, because their
    /// senders could start them by hand.
    pub fn is_follow_up(&self) -> bool {
        !REPAIRS.contains(&self.name.as_str()) && self.triggered_on.iter().any(Trigger::is_an_end)
    }
}

impl Trigger {
    /// Whether the event is the end of a sequence or task of the shipyard, and not a domain event.
    fn is_an_end(&self) -> bool {
        let parts: Vec<&str> = self.event.strip_prefix(PREFIX).unwrap_or(&self.event).split('.').collect();
        matches!(parts[..], [_, _, "finished"])
    }
}

impl Shipyard {
    /// The stage of that name.
    pub fn stage(&self, name: &str) -> Option<&Stage> {
        self.stages.iter().find(|stage| stage.name.as_str() == name)
    }

    /// Every sequence that the event starts, in the order of the file, without duplicates.
    pub fn triggered_on<'a>(&'a self, event: &'a str) -> impl Iterator<Item = (&'a Stage, &'a Sequence)> + 'a {
        self.stages.iter().flat_map(move |stage| {
            let listens = move |sequence: &&Sequence| sequence.triggered_on.iter().any(|t| t.event == event);
            stage.sequences.iter().filter(listens).map(move |sequence| (stage, sequence))
        })
    }
}

impl Stage {
    /// The sequence of that name. Every stage has `evaluation` with one task of that name, unless it defines its own.
    pub fn sequence(&self, name: &str) -> Option<Sequence> {
        let declared = self.sequences.iter().find(|sequence| sequence.name.as_str() == name).cloned();
        declared.or_else(|| (name == EVALUATION).then(Self::implicit_evaluation).flatten())
    }

    fn implicit_evaluation() -> Option<Sequence> {
        let task = Task {
            name: TaskName::new(EVALUATION).ok()?,
            triggered_after: None,
            properties: Object::new(),
            start_deadline: None,
            timeout: None,
        };
        Some(Sequence { name: SequenceName::new(EVALUATION).ok()?, tasks: vec![task], ..Sequence::none() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_after_an_end_is_a_follow_up_unless_it_is_called_a_repair() {
        let sequence = |name: &str, events: &[&str]| Sequence {
            name: SequenceName::new(name).unwrap(),
            triggered_on: events.iter().map(|event| Trigger { event: (*event).to_owned(), selector: None }).collect(),
            ..Sequence::none()
        };
        for (name, events, is) in [
            ("delivery", &[][..], false),
            ("delivery", &["dev.delivery.finished"][..], true),
            ("delivery", &["dev.approval.finished"][..], true),
            ("delivery", &["sh.keptn.event.dev.delivery.finished"][..], true),
            ("delivery", &["dev.problem.open"][..], false),
            ("delivery", &["problem.open", "dev.delivery.finished"][..], true),
            ("rollback", &["dev.delivery.finished"][..], false),
            ("rollback-all", &["dev.delivery.finished"][..], true),
        ] {
            assert_eq!(sequence(name, events).is_follow_up(), is, "{name} on {events:?}");
        }
    }
}
