//! A Shipyard 0.2 as valid types: which stages there are, what their sequences do and what starts them.
//!
//! Values of these types come from the manifest parser, which refuses what breaks a rule; the serde form is how an applied
//! revision is stored, not the manifest's.

use crate::event::{Object, PREFIX, TaskResult};
use crate::names::{SequenceName, StageName, TaskName};
use crate::time::Span;
use crate::windows::Window;
use serde::{Deserialize, Serialize};

/// At most this many stages in a shipyard.
pub const MAX_STAGES: usize = 100;
/// At most this many tasks in a sequence.
pub const MAX_TASKS: usize = 200;
/// At most this many sequences of one stage may be triggered on the same event: they start in one transaction.
pub const MAX_FOLLOW_UPS_PER_STAGE: usize = 40;
/// At most this many sequences may be triggered on the same event: the record of the commit that starts them holds a trigger for
/// each.
pub const MAX_FOLLOW_UPS: usize = 100;
/// The sequence that every stage has even if it does not define it, and its one task.
pub const EVALUATION: &str = "evaluation";
/// The property that names the deployment config which carries a task out.
pub const DEPLOYMENT_CONFIG: &str = "deploymentConfig";
/// The tasks that a deployment config carries out.
pub const CARRIED_OUT: [&str; 2] = ["deployment", "rollback"];
/// Names of sequences and tasks that repair what is broken: windows do not hold them back.
pub const REPAIRS: [&str; 5] = ["remediation", "get-action", "rollback", "revert", "undo"];
/// The task the engine answers itself: it waits for a person.
pub const APPROVAL: &str = "approval";

/// A project's whole process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shipyard {
    /// In file order; at least one.
    pub stages: Vec<Stage>,
}

/// One environment's part of the process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Unique in the shipyard.
    pub name: StageName,
    /// When sequences may begin here; may be empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<Window>,
    /// In file order; may be empty.
    pub sequences: Vec<Sequence>,
}

/// An ordered list of tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sequence {
    /// Unique in its stage.
    pub name: SequenceName,
    /// What starts it in addition to its own `.triggered` event; any one is enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggered_on: Vec<Trigger>,
    /// At least one.
    pub tasks: Vec<Task>,
    /// Longest time from the first task's trigger to the end; waiting for approval counts, a pause does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// While it waits for its lane, a newer trigger of the same sequence for the same service replaces it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub supersede: bool,
    /// Whether it begins although the windows of its stage are closed; absent: if it repairs or only evaluates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore_windows: Option<bool>,
}

/// The smallest executable unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// May occur several times in a sequence.
    pub name: TaskName,
    /// Wait this long before triggering it; the lane stays held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triggered_after: Option<Span>,
    /// Passed to the executor as `data.<task>`.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub properties: Object,
    /// How long an executor has to answer the trigger, if not the installation's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_deadline: Option<Span>,
    /// How long it has from `.started` to `.finished`, if not the installation's default; 0 = for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
}

/// One entry of `triggeredOn`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trigger {
    /// `<stage>.<sequence>.finished`, `<stage>.<task>.finished`, or a domain event's name.
    pub event: String,
    /// Every entry must match. `None`: sequence and task events fire on `pass`, domain events always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<Vec<Match>>,
}

/// One entry of `selector.match`: `result: fail` or `<task>.result: fail`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Match {
    /// The last executed task of this name instead of the sequence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskName>,
    /// Must be equal.
    pub result: TaskResult,
}

impl Sequence {
    /// A sequence without tasks: used for executions that never had a definition.
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

    /// Whether it begins although the windows of its stage are closed. Unless it says so itself, it does if it repairs what is broken (it or
    /// one of its tasks has such a name), or only evaluates.
    pub fn ignores_windows(&self) -> bool {
        let names = || self.tasks.iter().map(|task| task.name.as_str());
        let repairs = || names().chain([self.name.as_str()]).any(|name| REPAIRS.contains(&name));
        let evaluates = || !self.tasks.is_empty() && names().all(|name| name == EVALUATION);
        self.ignore_windows.unwrap_or_else(|| repairs() || evaluates())
    }

    /// Whether it begins after the end of another sequence or of a task, which may be a gate: whoever starts it by hand goes around that. One that the
    /// shipyard calls a repair is for emergencies. Events of tools start nothing that their sender could not start by hand.
    pub fn is_follow_up(&self) -> bool {
        !REPAIRS.contains(&self.name.as_str()) && self.triggered_on.iter().any(Trigger::is_an_end)
    }
}

impl Trigger {
    /// Whether it is the end of a sequence or task of the shipyard, and no event of a tool.
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

    /// Every sequence triggered on the event named `event`, in file order, each once.
    pub fn triggered_on<'a>(&'a self, event: &'a str) -> impl Iterator<Item = (&'a Stage, &'a Sequence)> + 'a {
        self.stages.iter().flat_map(move |stage| {
            let listens = move |sequence: &&Sequence| sequence.triggered_on.iter().any(|t| t.event == event);
            stage.sequences.iter().filter(listens).map(move |sequence| (stage, sequence))
        })
    }
}

impl Stage {
    /// The sequence of that name; every stage has `evaluation`, with one task of that name, unless it defines its own.
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
