//! Builds the next state: sends the next task, ends the execution, and makes the record with what is published.

use super::approval;
use super::deadline::arm;
use super::facts::{Decision, Facts, Transition};
use super::follow::Ended;
use super::get_action::GET_ACTION;
use super::show;
use super::state::{Class, End, EventRef, Execution, Lane, Outcome};
use super::window;
use super::{Bare, Record};
use crate::event::{CANCELLED, CloudEvent, EventType, Kind, Object, PROMOTION, SOURCE, Status, TaskResult};
use crate::ids::{RecordId, event_id};
use crate::payload::largest_member;
use crate::record::{Answers, Draft};
use crate::shipyard::{APPROVAL, DEPLOYMENT_CONFIG, EVALUATION, MAX_FOLLOW_UPS, Stage, Task};
use serde_json::{Value, json};

/// The longest message of a sequence's `.finished`.
const MAX_MESSAGE_BYTES: usize = 16 * 1024;

/// A transition under construction.
pub(super) struct Step<'a> {
    pub facts: &'a Facts<'a>,
    pub old: &'a Execution,
    pub next: Execution,
    pub record: Record,
    /// Whether the commit publishes something or passes a payload on.
    pub recorded: bool,
    /// Whether this transition replaces one whose record would have been too large.
    reduced: bool,
    /// The answer that completes the task, if the record is to have it.
    pub answer: Option<Bare>,
    /// The last `.finished` of the task that was just completed. Its labels and message become those of the sequence.
    pub last: Option<CloudEvent>,
}

impl<'a> Step<'a> {
    pub fn new(old: &'a Execution, facts: &'a Facts<'a>) -> Self {
        let record = Record {
            base: facts.base.clone(),
            absorbed: old.reactions.iter().map(|reaction| reaction.content).collect(),
            inputs: old.bare.iter().map(|bare| json!(bare)).collect(),
            ..Record::after(old.record, facts.cause, facts.now)
        };
        Self { facts, old, next: old.clone(), record, recorded: false, reduced: false, answer: None, last: None }
    }

    /// Project, stage and service, which every event about this execution carries.
    pub fn scope(&self) -> Object {
        scope(&self.next)
    }

    pub fn draft(&mut self, draft: Draft) {
        self.recorded = true;
        self.record.events.push(draft);
    }

    pub fn task_draft(&self, task: &str, kind: Kind) -> Draft {
        Draft {
            id: None,
            ty: EventType::task(task, kind),
            source: SOURCE.into(),
            time: self.facts.now,
            answers: Answers::Nothing,
            context: None,
            git_commit_id: self.next.git_commit_id.clone(),
            with_base: false,
            with: vec![],
            without: vec![],
            data: Object::new(),
        }
    }

    /// Continues between two tasks while the execution holds its lane: sends the next task, waits for its delay, answers automatic
    /// approvals, or ends the execution if no task is left.
    pub fn next_task(&mut self) {
        if self.next.began.is_none() {
            self.sequence_started();
        }
        loop {
            let Some(task) = self.facts.sequence.tasks.get(usize::from(self.next.task)) else {
                return self.end_normally();
            };
            if self.delay(task) {
                return;
            }
            self.next.due = None;
            // The timeout of the sequence does not include a delay before the first task.
            if self.next.results.is_empty() && self.old.due.is_some() {
                self.next.began = Some(self.facts.now);
            }
            let trigger = self.trigger_draft(task);
            if self.refuse_if_too_large(task, &trigger.data) {
                return;
            }
            if let Some(remediation) = self.facts.remediation.filter(|_| task.name.as_str() == GET_ACTION) {
                if self.choose_action(task, trigger, remediation) == TaskResult::Fail {
                    return self.end_normally();
                }
                continue;
            }
            if task.name.as_str() != APPROVAL {
                return self.send(task, trigger);
            }
            match approval::strategy(&self.record.base, self.next.has_earned_its_result(), &task.properties) {
                approval::Strategy::Manual(result) => return self.ask_for_approval(task, trigger, result),
                approval::Strategy::Automatic(result) => {
                    if self.approve_at_once(task, trigger, result) == TaskResult::Fail {
                        return self.end_normally();
                    }
                }
            }
        }
    }

    /// `triggeredAfter`: the execution keeps the lane during the delay.
    fn delay(&mut self, task: &Task) -> bool {
        let after = task.triggered_after.unwrap_or_default();
        let due = *self.next.due.get_or_insert(self.facts.now + after);
        self.facts.now < due
    }

    /// Adds the execution's own trigger to its first record, if it is a retry or was started by a schedule. All other triggers were
    /// published by whatever caused the execution.
    fn own_trigger(&mut self) {
        let from_outside = self.next.class == Class::Outside && self.next.began.is_none();
        if !from_outside || self.next.trigger_id != event_id(self.next.id, "triggered").to_string() {
            return;
        }
        let trigger = Draft {
            id: Some(self.next.trigger_id.clone()),
            ty: self.next.event_type(Kind::Triggered),
            with_base: true,
            data: self.scope(),
            ..self.task_draft("", Kind::Triggered)
        };
        self.draft(trigger);
    }

    fn sequence_started(&mut self) {
        self.own_trigger();
        self.next.began = Some(self.facts.now);
        let mut data = self.scope();
        data.insert("status".into(), json!(Status::Succeeded.as_str()));
        let mut draft = self.sequence_draft(Kind::Started, data);
        if self.record.base.get("labels").is_some_and(Value::is_object) {
            draft.with.push("labels".into());
        }
        self.draft(draft);
    }

    /// The `.started` or `.finished` of the sequence, which answers its trigger.
    fn sequence_draft(&self, kind: Kind, data: Object) -> Draft {
        Draft {
            id: Some(event_id(self.next.id, kind.as_str()).to_string()),
            ty: self.next.event_type(kind),
            source: SOURCE.into(),
            time: self.facts.now,
            answers: Answers::Event(self.next.trigger_id.clone()),
            context: None,
            git_commit_id: None,
            with_base: false,
            with: vec![],
            without: vec![],
            data,
        }
    }

    fn trigger_draft(&self, task: &Task) -> Draft {
        let name = task.name.as_str();
        let mut own = task.properties.clone();
        if name == EVALUATION {
            window::complete(&self.record.base, &mut own, self.facts.now);
        }
        let mut draft = self.task_draft(name, Kind::Triggered);
        draft.with_base = true;
        // Only the shipyard decides which config a task deploys: the payload comes from the sender of an event, who could name any.
        if let Some(mut given) = self.record.base.get(name).and_then(Value::as_object).cloned()
            && given.remove(DEPLOYMENT_CONFIG).is_some()
        {
            crate::payload::merge(&mut given, &own);
            own = given;
            draft.without.push(name.into());
        }
        draft.data.insert(name.into(), Value::Object(own));
        draft
    }

    fn send(&mut self, task: &Task, trigger: Draft) {
        self.next.view.latest = Some(EventRef { ty: format!("{}.triggered", task.name), id: String::new(), time: self.facts.now });
        self.draft(trigger);
        self.next.open = Some(task.name.clone());
        self.next.sent = Some(self.facts.now);
        self.next.listed = self.facts.policy.polled;
        arm(&mut self.next, self.facts);
        let timeout = task.timeout.unwrap_or(self.facts.policy.task_timeout);
        self.next.quick = timeout.0 == 0 || self.next.wake.is_some_and(|wake| wake <= self.facts.now + timeout);
    }

    /// Ends the execution if an event with the payload and these members would exceed the largest event. A rollback that follows
    /// must be able to start, so it gets the payload without these members.
    pub fn refuse_if_too_large(&mut self, task: &Task, own: &Object) -> bool {
        let mut data = self.record.base.clone();
        crate::payload::merge(&mut data, own);
        // 1 KB covers the longest values of the other attributes.
        let size = Value::Object(data.clone()).to_string().len() + 1024;
        let limit = self.facts.policy.max_event_bytes;
        let Some((field, bytes)) = largest_member(&data).filter(|_| size > limit) else { return false };
        let message = format!(
            "at task {} the event would have {size} bytes, {limit} are allowed: its largest field is data.{field} with {bytes} bytes; \
             hand on a reference instead of the content",
            task.name
        );
        self.record.base = self.facts.base.clone();
        self.end(Outcome { end: End::Normal, result: TaskResult::Fail, status: Status::Errored, at: self.facts.now }, &message);
        true
    }

    /// Completes a task: adds its result, and starts the sequences that are triggered on it.
    pub fn task_done(&mut self, task: &Task, result: TaskResult, status: Status) {
        self.recorded = true;
        let base = &mut self.record.base;
        base.insert("result".into(), json!(result.as_str()));
        base.insert("status".into(), json!(status.as_str()));
        if base.contains_key("message") {
            base.insert("message".into(), json!(""));
        }
        self.next.results.push(result);
        self.after_task(task, result);
        self.next.task += 1;
        self.next.open = None;
        self.next.sent = None;
        self.next.repeated = None;
        self.next.due = None;
        self.forget_answers();
    }

    fn forget_answers(&mut self) {
        self.next.reactions.clear();
        self.next.bare.clear();
        self.next.quick = false;
        self.next.view.answered = None;
    }

    /// Starts the sequences triggered on `<stage>.<task>.finished`, unless a sequence has the same name as the task; also if that
    /// sequence is the present one, which no stage has to declare.
    fn after_task(&mut self, task: &Task, result: TaskResult) {
        let stage = self.facts.current.1.stage(&self.next.stage);
        let declared = |stage: &Stage| stage.sequences.iter().any(|sequence| sequence.name.as_str() == task.name.as_str());
        if self.next.sequence == task.name.as_str() || stage.is_some_and(declared) {
            return;
        }
        let event = format!("{}.{}.finished", self.next.stage, task.name);
        self.set_off(event, format!("task-{}", self.next.task), result);
    }

    /// Adds the sequences that are triggered on an end.
    fn set_off(&mut self, event: String, cause: String, result: TaskResult) {
        let ended = Ended { x: &self.next, tasks: &self.facts.sequence.tasks, event, cause, result };
        for (draft, follow_up) in ended.follow_ups(self.facts.current, self.facts.now) {
            if self.record.sends.len() >= MAX_FOLLOW_UPS {
                let note = format!("more than {MAX_FOLLOW_UPS} sequences are triggered on this: the others were not started");
                self.record.notes.push(note);
                return;
            }
            self.draft(draft);
            self.record.sends.push(follow_up);
        }
    }

    /// Ends with the result of the last executed task.
    pub fn end_normally(&mut self) {
        let text = |field: &str| self.record.base.get(field).and_then(Value::as_str);
        let (result, status) = (TaskResult::of(text("result")), Status::of(text("status")));
        let outcome = Outcome { end: End::Normal, result, status, at: self.facts.now };
        let message = self.last.as_ref().and_then(|event| event.text("message")).unwrap_or_default().to_owned();
        self.end(outcome, &message);
    }

    /// Ends the execution: publishes the sequence's `.finished`, and starts its follow-ups.
    pub fn end(&mut self, outcome: Outcome, message: &str) {
        self.own_trigger();
        let mut data = self.scope();
        if let Some(labels) = self.last.as_ref().and_then(|event| event.data.get("labels")).filter(|labels| labels.is_object()) {
            data.insert("labels".into(), labels.clone());
        }
        data.insert("status".into(), json!(outcome.status.as_str()));
        data.insert("result".into(), json!(outcome.result.as_str()));
        data.insert("message".into(), json!(shortened(message)));
        let mut draft = self.sequence_draft(Kind::Finished, data);
        // The promotions engine takes only the ends of sequences that carry a promotion out.
        if self.record.base.get(PROMOTION).is_some_and(Value::is_object) {
            draft.with.push(PROMOTION.into());
        }
        if outcome.result == TaskResult::Fail || outcome.status == Status::Errored {
            let id = draft.id.clone().unwrap_or_default();
            let ty = format!("{}.{}.finished", self.next.stage, self.next.sequence);
            self.next.view.latest_failed.get_or_insert(EventRef { ty, id, time: self.facts.now });
        }
        self.draft(draft);
        show::ended(&mut self.next, outcome, message);
        show::left(&mut self.next, outcome.end);
        self.next.outcome = Some(outcome);
        self.next.lane = Lane::None;
        self.next.open = None;
        self.next.paused = false;
        self.next.held = None;
        self.forget_answers();
        self.next.due = None;
        if matches!(outcome.end, End::Normal | End::TimedOut) {
            let base = &mut self.record.base;
            base.insert("result".into(), json!(outcome.result.as_str()));
            base.insert("status".into(), json!(outcome.status.as_str()));
            let event = format!("{}.{}.finished", self.next.stage, self.next.sequence);
            self.set_off(event, "end".into(), outcome.result);
        }
        if self.record.sends.is_empty() && !self.record.events.iter().any(|draft| draft.with_base || !draft.with.is_empty()) {
            // The payload is not needed any more.
            self.record.base = Object::new();
        }
    }

    /// Tells the executors of the open task that their answers are not needed any more.
    pub fn cancel_task(&mut self, open: RecordId) {
        let task = self.facts.sequence.tasks.get(usize::from(self.next.task));
        let mut data = self.scope();
        data.insert("task".into(), json!(task.map(|task| task.name.as_str())));
        if let Some((task, config)) = task.and_then(|task| Some((task, task.properties.get(DEPLOYMENT_CONFIG)?))) {
            data.insert(task.name.to_string(), json!({DEPLOYMENT_CONFIG: config}));
        }
        let draft = Draft {
            id: Some(event_id(self.next.id, &format!("cancelled-{}", self.next.task)).to_string()),
            ty: CANCELLED.into(),
            answers: Answers::Event(open.uuid().to_string()),
            data,
            ..self.task_draft("", Kind::Finished)
        };
        self.draft(draft);
    }

    /// The end of an execution whose next record would be too large. The payload is not passed on.
    fn reduced(&self, size: usize) -> Self {
        let mut step = Step::new(self.old, self.facts);
        step.reduced = true;
        step.record.base = step.scope();
        let field = largest_member(&self.record.base).map(|(field, bytes)| format!(", of which data.{field} has {bytes}"));
        let limit = self.facts.policy.max_record_bytes;
        let message = format!(
            "the sequence cannot go on: what it would have to keep has {size} bytes, {limit} are allowed{}; hand on references instead \
             of content",
            field.unwrap_or_default()
        );
        let outcome = Outcome { end: End::Normal, result: TaskResult::Fail, status: Status::Errored, at: self.facts.now };
        step.end(outcome, &message);
        step
    }

    pub fn arm(&mut self) {
        arm(&mut self.next, self.facts);
    }

    /// The [`Step::transition`] as a decision.
    pub fn commit(self) -> Decision {
        Decision::Commit(Box::new(self.transition()))
    }

    /// The transition, with the address of its record in the state. If the record does not fit into an item, the execution ends
    /// instead, with a message about this. An answer for which there is no room in the record has an item of its own.
    pub fn transition(mut self) -> Transition {
        let size = if self.recorded { self.record.to_bytes().len() } else { 0 };
        if size > self.facts.policy.max_record_bytes && !self.reduced {
            return self.reduced(size).transition();
        }
        let answer = self.answer.take().map(|answer| json!(answer));
        let fits = |answer: &Value| size + answer.to_string().len() < self.facts.policy.max_record_bytes;
        self.record.inputs.extend(answer.filter(fits));
        let record = self.recorded.then(|| {
            let task = if self.next.outcome.is_some() { RecordId::END } else { self.next.task };
            self.next.record = Some(self.record.id(self.next.id, task));
            self.record
        });
        Transition { next: self.next, record }
    }
}

/// The message that a sequence's `.finished` repeats from its last task, shortened. The task's own event has the whole message.
fn shortened(message: &str) -> &str {
    &message[..message.floor_char_boundary(MAX_MESSAGE_BYTES)]
}

/// Project, stage and service of an execution as the data of an event.
pub(super) fn scope(x: &Execution) -> Object {
    let mut data = Object::new();
    data.insert("project".into(), json!(x.project.as_str()));
    data.insert("stage".into(), json!(x.stage));
    data.insert("service".into(), json!(x.service.as_str()));
    data
}
