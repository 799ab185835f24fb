//! Approvals: how they are decided (by the result so far and the strategy of the task), and their events.

use super::advance::Step;
use super::deadline::arm;
use super::show;
use super::state::{EventRef, Lane};
use crate::access::is_same;
use crate::event::{APPROVAL_SOURCE, CloudEvent, Kind, Object, Status, TaskResult};
use crate::ids::event_id;
use crate::record::{Answers, Draft};
use crate::shipyard::{APPROVAL, Task};
use serde_json::{Value, json};

/// How an approval is decided, and the result so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strategy {
    /// The engine approves or declines at once.
    Automatic(TaskResult),
    /// A person decides.
    Manual(TaskResult),
}

/// Without a strategy, the approval is automatic; without a result, the result counts as a pass; a `fail` is declined at once with
/// every strategy. The strategy for a pass also applies to a warning, unless the task says otherwise.
///
/// The sender of a trigger must not be able to choose the strategy: a result counts only if it is `earned` by a task, and the
/// payload's strategy applies only where the shipyard names none. So a payload can demand a person's approval, but cannot avoid
/// one.
pub(super) fn strategy(base: &Object, earned: bool, properties: &Object) -> Strategy {
    let text = |object: &Object, field: &str| object.get(field).and_then(Value::as_str).map(str::to_owned);
    let nested = |member: &str, field: &str| base.get(member).and_then(Value::as_object).and_then(|object| text(object, field));
    let known = |result: String| (!result.is_empty()).then_some(result);
    let result = text(base, "result").and_then(known).or_else(|| nested("evaluation", "result").and_then(known));
    let result = result.filter(|_| earned).map_or(TaskResult::Pass, |result| TaskResult::of(Some(&result)));
    let fields: &[&str] = match result {
        TaskResult::Fail => return Strategy::Automatic(result),
        TaskResult::Pass => &["pass"],
        TaskResult::Warning => &["warning", "pass"],
    };
    let own = fields.iter().find_map(|field| text(properties, field));
    let chosen = own.or_else(|| fields.iter().find_map(|field| nested(APPROVAL, field)));
    if chosen.as_deref() == Some("manual") { Strategy::Manual(result) } else { Strategy::Automatic(result) }
}

/// The property of an approval that authors must not give themselves.
pub const SEPARATE: &str = "separate";

/// Whether the authors must not give the approval themselves.
pub fn is_separate(task: &Task) -> bool {
    task.properties.get(SEPARATE) == Some(&Value::Bool(true))
}

/// Why a person may not give this approval. `None`: they may. If the authors are not known, everybody counts as one.
pub fn own(task: &Task, authors: &[String], who: &str) -> Option<String> {
    const RULE: &str = "the shipyard has somebody else approve than who triggers (`separate`)";
    if !is_separate(task) {
        return None;
    }
    if authors.is_empty() {
        return Some(format!("{RULE}, and who triggered this is not known: have it triggered through the API, not over the bus"));
    }
    let author = who.is_empty() || authors.iter().any(|author| is_same(author, who));
    author.then(|| format!("{RULE}, and {who} triggered this, or repeated it: have somebody else approve"))
}

/// Checks that an `approval.finished` is a decision: `result` is `pass` or `fail`, and `status` is `succeeded` or absent.
///
/// # Errors
/// The invalid member of `data`, and what to send instead.
pub fn check_decision(event: &CloudEvent) -> Result<(), (&'static str, String)> {
    let result = event.data.get("result").unwrap_or(&Value::Null);
    if !["pass", "fail"].iter().any(|known| result == known) {
        return Err(("data.result", format!("is {result}: an approval is decided by \"pass\" or \"fail\"")));
    }
    match event.data.get("status") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(status)) if status.is_empty() || status == "succeeded" => Ok(()),
        Some(other) => Err(("data.status", format!("is {other}: leave it out, or send \"succeeded\" with an approval's decision"))),
    }
}

impl Step<'_> {
    /// Asks a person. The execution gives its lane back while the approval is open.
    pub fn ask_for_approval(&mut self, task: &Task, trigger: Draft, result: TaskResult) {
        self.draft(trigger);
        self.approval_started(Answers::Own, result, "manual");
        self.next.view.latest = Some(EventRef { ty: "approval.started".into(), id: String::new(), time: self.facts.now });
        self.next.open = Some(task.name.clone());
        self.next.sent = Some(self.facts.now);
        // People ask which approvals are open.
        self.next.listed = true;
        self.next.lane = Lane::None;
        arm(&mut self.next, self.facts);
    }

    fn approval_started(&mut self, answers: Answers, result: TaskResult, strategy: &str) {
        let mut draft = self.task_draft(APPROVAL, Kind::Started);
        draft.id = Some(self.approval_id("started"));
        draft.source = APPROVAL_SOURCE.into();
        draft.answers = answers;
        draft.data = self.scope();
        draft.data.insert("status".into(), json!(Status::Succeeded.as_str()));
        let message = format!("Approval strategy for result '{}': {strategy}", result.as_str());
        draft.data.insert("message".into(), json!(message));
        self.draft(draft);
    }

    /// Decides an approval in the commit that reaches it, and publishes all three of its events.
    pub fn approve_at_once(&mut self, task: &Task, trigger: Draft, result: TaskResult) -> TaskResult {
        let id = self.approval_id("triggered");
        let mut trigger = Draft { id: Some(id.clone()), ..trigger };
        // The record's payload will contain the decision; the trigger must show the payload before it.
        for name in ["result", "status", "message"] {
            match self.record.base.get(name) {
                Some(value) => drop(trigger.data.insert(name.into(), value.clone())),
                None => trigger.without.push(name.into()),
            }
        }
        self.draft(trigger);
        self.approval_started(Answers::Event(id.clone()), result, "automatic");
        let decided = if result == TaskResult::Fail { TaskResult::Fail } else { TaskResult::Pass };
        let mut finished = self.task_draft(APPROVAL, Kind::Finished);
        finished.id = Some(self.approval_id("finished"));
        finished.source = APPROVAL_SOURCE.into();
        finished.answers = Answers::Event(id);
        finished.data = self.scope();
        finished.data.insert("status".into(), json!(Status::Succeeded.as_str()));
        finished.data.insert("result".into(), json!(decided.as_str()));
        finished.data.insert("message".into(), json!(""));
        self.draft(finished);
        // The end of the sequence takes labels and message from its last task. This approval has none, and what came before it is
        // no longer the last task, even if it was completed in the same commit.
        self.last = None;
        show::task_done(self, task, decided, None);
        self.task_done(task, decided, Status::Succeeded);
        decided
    }

    /// The id of an event about the present task, which is an approval.
    pub fn approval_id(&self, what: &str) -> String {
        event_id(self.next.id, &format!("approval-{}-{what}", self.next.task)).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_approves_what_is_their_own_where_that_is_asked_for() {
        let asks = |properties: Value| {
            let properties = properties.as_object().unwrap().clone();
            Task {
                name: crate::names::TaskName::new(APPROVAL).unwrap(),
                triggered_after: None,
                properties,
                start_deadline: None,
                timeout: None,
            }
        };
        let (separate, other) = (asks(json!({"pass": "manual", "separate": true})), asks(json!({"pass": "manual"})));
        let authors = ["token:ann".to_owned(), "a.test/bob".to_owned()];
        for (authors, who, told) in [
            (&authors[..], "token:ann", Some("token:ann triggered this")),
            (&authors[..], "a.test/bob", Some("triggered this, or repeated it")),
            (&authors[..], "token:bob", None),
            (&authors[..], "a.test/ann", None),
            (&[][..], "token:bob", Some("is not known")),
        ] {
            let why = own(&separate, authors, who);
            assert_eq!(why.is_some(), told.is_some(), "{who}: {why:?}");
            assert!(told.is_none_or(|told| why.as_deref().is_some_and(|why| why.contains(told))), "{why:?}");
            assert_eq!(own(&other, authors, who), None);
        }
    }

    #[test]
    fn the_matrix() {
        use Strategy::{Automatic, Manual};
        use TaskResult::{Fail, Pass, Warning};
        for (result, pass, warning, expected) in [
            (Some("pass"), Some("automatic"), Some("manual"), Automatic(Pass)),
            (Some("pass"), Some("manual"), Some("automatic"), Manual(Pass)),
            (Some("warning"), Some("manual"), Some("automatic"), Automatic(Warning)),
            (Some("warning"), Some("automatic"), Some("manual"), Manual(Warning)),
            (Some("warning"), Some("manual"), None, Manual(Warning)),
            (Some("warning"), Some("automatic"), None, Automatic(Warning)),
            (Some("pass"), None, Some("manual"), Automatic(Pass)),
            (Some("fail"), Some("manual"), Some("manual"), Automatic(Fail)),
            (None, Some("manual"), None, Manual(Pass)),
            (None, None, None, Automatic(Pass)),
        ] {
            let base = json!({"result": result}).as_object().unwrap().clone();
            let mut properties = Object::new();
            for (name, value) in [("pass", pass), ("warning", warning)] {
                if let Some(value) = value {
                    properties.insert(name.into(), json!(value));
                }
            }
            assert_eq!(strategy(&base, true, &properties), expected, "{result:?} {pass:?} {warning:?}");
        }
        let evaluated = json!({"evaluation": {"result": "warning"}}).as_object().unwrap().clone();
        let manual = json!({"warning": "manual"}).as_object().unwrap().clone();
        assert_eq!(strategy(&evaluated, true, &manual), Manual(Warning));
    }

    #[test]
    fn whoever_triggers_does_not_choose_who_is_asked() {
        let object = |value: Value| value.as_object().unwrap().clone();
        let asked = object(json!({"pass": "manual"}));
        for sent in [
            json!({"result": "warning"}),
            json!({"result": "fail"}),
            json!({"evaluation": {"result": "warning"}}),
            json!({"result": "warning", "approval": {"pass": "automatic", "warning": "automatic"}}),
        ] {
            assert_eq!(strategy(&object(sent.clone()), false, &asked), Strategy::Manual(TaskResult::Pass), "{sent}");
        }
        // The payload cannot change this, even where the result was earned: the shipyard asks for a person.
        let sent = object(json!({"result": "warning", "approval": {"warning": "automatic"}}));
        assert_eq!(strategy(&sent, true, &asked), Strategy::Manual(TaskResult::Warning));
        let sent = object(json!({"approval": {"pass": "manual"}}));
        assert_eq!(strategy(&sent, false, &Object::new()), Strategy::Manual(TaskResult::Pass), "asking more is allowed");
    }
}
