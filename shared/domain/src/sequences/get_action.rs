//! `get-action`, which the engine answers if a `remediation.yaml` is stored: it chooses the next action against the problem in the
//! payload. A sequence that is triggered on its own failed evaluation so tries one action after the other.

use super::advance::Step;
use super::remediation::Remediation;
use super::show;
use crate::event::{CloudEvent, Kind, Object, SOURCE, Status, TaskResult};
use crate::ids::event_id;
use crate::payload::merge;
use crate::record::{Answers, Draft};
use crate::shipyard::Task;
use serde_json::{Value, json};

/// The name of the task.
pub const GET_ACTION: &str = "get-action";
/// The member of the payload that carries the action to the next task.
const ACTION: &str = "action";
/// The number of actions chosen so far, in `data.get-action`.
const INDEX: &str = "actionIndex";

impl Step<'_> {
    /// Chooses the next action in the commit that reaches the task, and publishes all three of its events. If no action is left,
    /// the result is `fail`, which ends the sequence and its repetitions.
    pub fn choose_action(&mut self, task: &Task, trigger: Draft, remediation: &Remediation) -> TaskResult {
        let index = index(&self.record.base);
        let chosen = chosen(remediation, &self.record.base, index);
        let trigger_id = self.get_action_id("triggered");
        let trigger = self.before_choice(Draft { id: Some(trigger_id.clone()), ..trigger });
        self.draft(trigger);
        let result = if chosen.is_ok() { TaskResult::Pass } else { TaskResult::Fail };
        let mut started = self.scope();
        started.insert("status".into(), json!(Status::Succeeded.as_str()));
        let mut finished = started.clone();
        finished.insert("result".into(), json!(result.as_str()));
        match chosen {
            Ok(action) => {
                // The action replaces the member: nothing of an earlier action may reach the executor of this one.
                self.record.base.insert(ACTION.into(), action.clone());
                let own = json!({GET_ACTION: {INDEX: index + 1}}).as_object().cloned().unwrap_or_default();
                merge(&mut self.record.base, &own);
                finished.insert(ACTION.into(), action);
                finished.extend(own);
                finished.insert("message".into(), json!(""));
            }
            Err(why) => drop(finished.insert("message".into(), json!(why))),
        }
        let answers = Answers::Event(trigger_id);
        let draft = |step: &Self, kind: Kind, data: Object| Draft {
            id: Some(step.get_action_id(kind.as_str())),
            answers: answers.clone(),
            data,
            ..step.task_draft(GET_ACTION, kind)
        };
        let (started, finished) = (draft(self, Kind::Started, started), draft(self, Kind::Finished, finished));
        let told = self.as_event(&finished);
        self.draft(started);
        self.draft(finished);
        show::task_done(self, task, result, Some(&told));
        self.last = Some(told);
        self.task_done(task, result, Status::Succeeded);
        result
    }

    /// The trigger with the payload before the choice; the record's payload already contains the choice.
    fn before_choice(&self, mut trigger: Draft) -> Draft {
        let mut before = self.record.base.clone();
        merge(&mut before, &trigger.data);
        for name in ["result", "status", "message", ACTION, GET_ACTION] {
            trigger.without.push(name.into());
            if let Some(value) = before.remove(name) {
                trigger.data.insert(name.into(), value);
            }
        }
        trigger
    }

    fn as_event(&self, draft: &Draft) -> CloudEvent {
        CloudEvent {
            id: draft.id.clone().unwrap_or_default(),
            source: SOURCE.into(),
            ty: draft.ty.clone(),
            time: draft.time,
            context: self.next.context.clone(),
            authors: vec![],
            triggered_id: None,
            git_commit_id: None,
            data: draft.data.clone(),
        }
    }

    fn get_action_id(&self, what: &str) -> String {
        event_id(self.next.id, &format!("{GET_ACTION}-{}-{what}", self.next.task)).to_string()
    }
}

/// The number of actions chosen in earlier rounds.
fn index(payload: &Object) -> usize {
    let own = payload.get(GET_ACTION).and_then(|own| own.get(INDEX));
    let told = own.or_else(|| payload.get(INDEX)).and_then(Value::as_u64);
    told.and_then(|told| usize::try_from(told).ok()).unwrap_or(0)
}

/// The next action in the form of `data.action`, or why there is none.
fn chosen(remediation: &Remediation, payload: &Object, index: usize) -> Result<Value, String> {
    let known = remediation.against(payload).ok_or("remediation.yaml has no actions for this problem, and none for default")?;
    let action = known.actions.get(index).ok_or_else(|| {
        format!("no action is left: all {} for problem type {:?} have been tried", known.actions.len(), known.problem_type)
    })?;
    Ok(json!({"name": action.name, "action": action.action, "description": action.description, "value": action.value}))
}

#[cfg(test)]
mod tests {
    use super::super::remediation::{Action, ProblemType};
    use super::*;

    fn remediation() -> Remediation {
        let action = |name: &str| Action { action: name.into(), name: name.into(), description: String::new(), value: json!({}) };
        let problem = |of: &str, names: &[&str]| ProblemType {
            problem_type: of.into(),
            actions: names.iter().map(|name| action(name)).collect(),
        };
        Remediation {
            remediations: vec![
                problem("slow", &["scale", "toggle"]),
                problem("disk full", &["clean"]),
                problem("default", &["page"]),
            ],
        }
    }

    #[test]
    fn the_root_cause_comes_before_the_title_and_the_title_before_the_default() {
        for (payload, expected) in [
            (json!({"problem": {"rootCause": "slow", "problemTitle": "disk full"}}), Some("scale")),
            (json!({"problem": {"rootCause": "unknown", "problemTitle": "disk full"}}), Some("clean")),
            (json!({"problem": {"problemTitle": "unknown"}}), Some("page")),
            (json!({}), Some("page")),
            (json!({"problem": {"rootCause": "slow"}, "get-action": {"actionIndex": 1}}), Some("toggle")),
            (json!({"problem": {"rootCause": "slow"}, "actionIndex": 1}), Some("toggle")),
            (json!({"problem": {"rootCause": "slow"}, "get-action": {"actionIndex": 2}}), None),
        ] {
            let payload = payload.as_object().unwrap();
            let found = chosen(&remediation(), payload, index(payload));
            assert_eq!(
                found.ok().and_then(|action| action["action"].as_str().map(str::to_owned)).as_deref(),
                expected,
                "{payload:?}"
            );
        }
    }
}
