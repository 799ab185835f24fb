//! Sequences in the shape that Keptn's clients expect: one entry per context, its stages, and our executions below.

use super::{MAX_PAGE, Page, Position, Window};
use crate::item::{Item, Key};
use crate::ports::{PortError, Ports, Query};
use crate::protocol::record;
use crate::sequences::Sequences;
use crate::sequences::definitions::Refusal;
use crate::sequences::{Loaded, keys};
use keelway_domain::event::PREFIX;
use keelway_domain::ids::{ExecutionId, event_id};
use keelway_domain::names::{Context, ProjectName};
use keelway_domain::sequences::{End, EventRef, Execution, Phase, ReactionKind};
use keelway_domain::shipyard::Sequence;
use keelway_domain::time::{Span, Timestamp};
use serde_json::{Value, json};
use std::collections::HashMap;

/// Contexts read for one page.
const LOOKED_AT: usize = 200;
/// Executions of one context that are shown.
pub(super) const EXECUTIONS: usize = 500;
/// For this long after an end, its follow-ups may still be missing; by then, the sweep has recovered any lost message.
const FOLLOW_UP_AWAITED: Span = Span::minutes(60);
const EXECUTION_BYTES: usize = 4 << 20;

/// Which contexts are wanted.
#[derive(Debug, Clone, Default)]
pub struct SequenceFilter {
    /// Only those whose first sequence has this name.
    pub name: Option<String>,
    /// Only those in this overall state.
    pub state: Option<String>,
    /// By the time they were accepted.
    pub window: Window,
    /// Only these; empty = all.
    pub contexts: Vec<Context>,
}

/// An execution with what its item alone says.
pub(super) struct Shown {
    pub x: Execution,
    /// How many executions are between it and the outside event.
    pub depth: usize,
}

impl Shown {
    fn phase(&self) -> Phase {
        self.x.phase()
    }
}

impl<P: Ports> Sequences<P> {
    /// A project's contexts, newest first.
    ///
    /// # Errors
    /// An unknown project.
    pub async fn sequences(
        &self,
        project: &ProjectName,
        filter: &SequenceFilter,
        size: usize,
        from: Position,
    ) -> Result<Page, Refusal> {
        self.known(project).await?;
        let size = size.clamp(1, MAX_PAGE);
        let mut page = Page { items: vec![], next: 0 };
        if !filter.contexts.is_empty() {
            let mut states = self.states(project, &filter.contexts).await?;
            states.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
            let states = states.into_iter().filter(|(at, state)| filter.window.contains(*at) && filter.takes(state));
            page.items = states.map(|(_, state)| state).take(MAX_PAGE).collect();
            return Ok(page);
        }
        let (mut from, mut looked_at) = (from, 0);
        loop {
            let (listed, more) = self.contexts(project, filter.window, from, size).await?;
            let contexts: Vec<Context> = listed.iter().map(|listed| listed.context.clone()).collect();
            let states: HashMap<Value, Value> = self
                .states(project, &contexts)
                .await?
                .into_iter()
                .map(|(_, state)| (state["shkeptncontext"].clone(), state))
                .collect();
            looked_at += listed.len();
            for (i, entry) in listed.iter().enumerate() {
                from = entry.position;
                let state = states.get(&json!(entry.context.as_str()));
                page.items.extend(state.filter(|state| filter.takes(state)).cloned());
                if page.items.len() == size && (more || i + 1 < listed.len()) {
                    page.next = from;
                    return Ok(page);
                }
            }
            if !more {
                return Ok(page);
            }
            if looked_at >= LOOKED_AT {
                page.next = from;
                return Ok(page);
            }
        }
    }

    /// One context's entry in the list of sequences.
    ///
    /// # Errors
    /// Only of the ports.
    pub async fn sequence_state(&self, project: &ProjectName, context: &Context) -> Result<Option<Value>, PortError> {
        let states = self.states(project, std::slice::from_ref(context)).await?;
        Ok(states.into_iter().next().map(|(_, state)| state))
    }

    /// The entries of contexts that exist, with the times they were accepted.
    async fn states(&self, project: &ProjectName, contexts: &[Context]) -> Result<Vec<(Timestamp, Value)>, PortError> {
        if contexts.is_empty() {
            return Ok(vec![]);
        }
        let wanted: Vec<Key> = contexts.iter().map(|context| keys::context(project, context)).collect();
        let items = self.read(&wanted).await?;
        let mut states = vec![];
        for context in contexts {
            if let Some(item) = items.get(&keys::context(project, context)) {
                let (shown, complete) = self.executions(project, context).await?;
                states
                    .push((Timestamp(item.number("at").unwrap_or(0)), self.state(item, project, context, &shown, complete).await?));
            }
        }
        Ok(states)
    }

    /// The executions of a context, causes before effects; `false`: there are more than are shown.
    pub(super) async fn executions(&self, project: &ProjectName, context: &Context) -> Result<(Vec<Shown>, bool), PortError> {
        let query = Query::table(keys::context_partition(project, context), 200).prefix("X#");
        let (items, complete) = self.bounded(query, EXECUTIONS, EXECUTION_BYTES).await?;
        let mut shown = vec![];
        for item in &items {
            shown.push(Shown { x: Loaded::read(item)?.x, depth: 0 });
        }
        let parents: HashMap<ExecutionId, Option<ExecutionId>> = shown.iter().map(|s| (s.x.id, s.x.parent)).collect();
        for one in &mut shown {
            let line = std::iter::successors(one.x.parent, |id| parents.get(id).copied().flatten());
            one.depth = line.take(EXECUTIONS).count();
        }
        shown.sort_by_key(|one| (one.x.accepted, one.depth, one.x.began.unwrap_or(Timestamp(i64::MAX)), one.x.id));
        Ok((shown, complete))
    }

    /// The definition of an execution, if it had one.
    async fn definition(&self, x: &Execution) -> Result<Option<Sequence>, PortError> {
        match self.shipyard(&x.project, &x.revision).await {
            Ok(shipyard) => Ok(shipyard.stage(&x.stage).and_then(|stage| stage.sequence(&x.sequence))),
            Err(PortError::Refused { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether a committed end has caused an execution that does not exist yet, because its message is still under way.
    async fn follow_ups_to_come(&self, shown: &[Shown]) -> Result<bool, PortError> {
        let now = self.ports.now();
        let recent = |one: &&Shown| one.x.outcome.is_some_and(|outcome| now < outcome.at + FOLLOW_UP_AWAITED);
        let records =
            shown.iter().filter(recent).filter_map(|one| Some(keys::record(&one.x.project, &one.x.context, &one.x.record?)));
        let records: Vec<Key> = records.collect();
        let items = if records.is_empty() { HashMap::new() } else { self.read(&records).await? };
        let absent = |id: ExecutionId| shown.iter().all(|one| one.x.id != id);
        let records = items.values().filter_map(|item| record::decode::<Execution>(Some(item)));
        Ok(records.flat_map(|record| record.sends).any(|follow_up| absent(follow_up.execution)))
    }

    async fn state(
        &self,
        item: &Item,
        project: &ProjectName,
        context: &Context,
        shown: &[Shown],
        complete: bool,
    ) -> Result<Value, PortError> {
        let mut executions = vec![];
        for one in shown {
            executions.push(execution(one, self.definition(&one.x).await?.as_ref()));
        }
        let problem = shown.iter().find_map(|one| one.x.view.problem.clone());
        let over = !shown.is_empty() && shown.iter().all(|one| one.x.outcome.is_some());
        let goes_on = over && complete && self.follow_ups_to_come(shown).await?;
        let mut state = json!({
            "name": item.text("sq").unwrap_or_default(),
            "service": item.text("sv").unwrap_or_default(),
            "project": project.as_str(),
            "time": Timestamp(item.number("at").unwrap_or(0)).rfc3339(),
            "shkeptncontext": context.as_str(),
            "state": if goes_on { "started" } else { overall(shown) },
            "stages": stages(shown),
            "executions": executions,
        });
        if let Some(problem) = problem {
            state["problemTitle"] = json!(problem);
        }
        if !complete {
            state["truncated"] = json!(true);
        }
        Ok(state)
    }
}

impl SequenceFilter {
    fn takes(&self, state: &Value) -> bool {
        let is = |field: &str, wanted: &Option<String>| wanted.as_ref().is_none_or(|wanted| state[field] == json!(wanted));
        is("name", &self.name) && is("state", &self.state)
    }
}

/// The overall state: that of the most active open execution, otherwise how the newest trigger's executions ended, the worst first.
fn overall(shown: &[Shown]) -> &'static str {
    let any = |phases: &[Phase]| shown.iter().any(|one| phases.contains(&one.phase()));
    if any(&[Phase::Running, Phase::RunningQueued, Phase::Delayed]) {
        return "started";
    }
    if any(&[Phase::Paused, Phase::PausedRunning, Phase::PausedWaitingForApproval]) {
        return "paused";
    }
    if any(&[Phase::WaitingForApproval]) {
        return "waitingForApproval";
    }
    if any(&[Phase::Queued]) {
        return "waiting";
    }
    let newest = shown.iter().map(|one| one.x.accepted).max();
    let ends: Vec<End> =
        shown.iter().filter(|one| Some(one.x.accepted) == newest).filter_map(|one| one.x.outcome.map(|o| o.end)).collect();
    match () {
        // Its executions have expired, and only ended executions expire.
        () if ends.is_empty() => "finished",
        () if ends.contains(&End::Aborted) => "aborted",
        () if ends.contains(&End::TimedOut) => "timedOut",
        () => "finished",
    }
}

/// One entry per stage, in the order the context reached them: the newest execution's state, the newest of everything else.
fn stages(shown: &[Shown]) -> Vec<Value> {
    let mut names: Vec<&str> = vec![];
    for one in shown {
        if !names.contains(&one.x.stage.as_str()) {
            names.push(&one.x.stage);
        }
    }
    let stage = |name: &&str| {
        let newest_first = || shown.iter().rev().filter(|one| one.x.stage == **name);
        let newest = newest_first().next()?;
        let evaluation = newest_first().find_map(|one| one.x.view.evaluation.clone());
        let score = |text: &str| serde_json::from_str::<Value>(text).unwrap_or(Value::Null);
        let failed = newest_first().find_map(|one| one.x.view.latest_failed.clone().map(|event| (one, event)));
        let mut stage = json!({
            "name": name,
            "state": of_stage(newest),
            "latestEvent": latest(&newest.x),
            "latestFailedEvent": failed.map(|(one, event)| reference(&one.x, &event)),
        });
        if let Some(image) = newest_first().find_map(|one| one.x.view.image.clone()) {
            stage["image"] = json!(image);
        }
        if let Some((result, text)) = evaluation {
            stage["latestEvaluation"] = json!({"result": result.as_str(), "score": score(&text)});
        }
        Some(stage)
    };
    names.iter().filter_map(stage).collect()
}

/// A stage's state: the activity of an open execution, or the status of an ended one.
fn of_stage(newest: &Shown) -> &'static str {
    match (newest.x.outcome, newest.phase()) {
        (Some(outcome), _) => outcome.status.as_str(),
        (None, Phase::Queued) => "waiting",
        (None, Phase::WaitingForApproval) => "waitingForApproval",
        (None, Phase::Paused | Phase::PausedRunning | Phase::PausedWaitingForApproval) => "paused",
        (None, _) => "triggered",
    }
}

fn latest(x: &Execution) -> Option<Value> {
    match x.outcome {
        Some(outcome) => Some(json!({
            "type": x.event_type(keelway_domain::event::Kind::Finished),
            "id": event_id(x.id, "finished").to_string(),
            "time": outcome.at.rfc3339(),
        })),
        None => x.view.latest.as_ref().map(|event| reference(x, event)),
    }
}

/// The ids of events that a commit itself sends are not stored with the reference: they are derived from the execution.
fn reference(x: &Execution, event: &EventRef) -> Value {
    let id = match (event.id.as_str(), event.ty.as_str(), x.record) {
        ("", "approval.started", _) => event_id(x.id, &format!("approval-{}-started", x.task)).to_string(),
        ("", _, Some(record)) => record.uuid().to_string(),
        (id, _, _) => id.to_owned(),
    };
    json!({"type": format!("{PREFIX}{}", event.ty), "id": id, "time": event.time.rfc3339()})
}

fn execution(one: &Shown, definition: Option<&Sequence>) -> Value {
    let x = &one.x;
    let phase = one.phase();
    let mut shown = json!({
        "id": x.id,
        "stage": x.stage,
        "sequence": x.sequence,
        "state": state_of(one),
        "phase": phase_name(phase),
        "acceptedAt": x.caused.rfc3339(),
        "tasks": tasks(x, definition),
        "triggerId": x.trigger_id,
    });
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            shown[name] = value;
        }
    };
    put("result", x.outcome.map(|outcome| json!(outcome.result.as_str())));
    put("status", x.outcome.map(|outcome| json!(outcome.status.as_str())));
    put("startedAt", x.began.map(|at| json!(at.rfc3339())));
    put("finishedAt", x.outcome.map(|outcome| json!(outcome.at.rfc3339())));
    put("parent", x.parent.map(|id| json!(id)));
    shown
}

fn state_of(one: &Shown) -> &'static str {
    match (one.x.outcome.map(|outcome| outcome.end), one.phase()) {
        (Some(End::Normal | End::NeverStarted), _) => "finished",
        (Some(End::TimedOut), _) => "timedOut",
        (Some(End::Aborted), _) => "aborted",
        (None, Phase::Queued) => "waiting",
        (None, Phase::WaitingForApproval) => "waitingForApproval",
        (None, Phase::Paused | Phase::PausedRunning | Phase::PausedWaitingForApproval) => "paused",
        (None, Phase::Running | Phase::RunningQueued | Phase::Delayed | Phase::Ended) => "started",
    }
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Queued => "queued",
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

/// The tasks reached so far: their results, and the state of the present one.
fn tasks(x: &Execution, definition: Option<&Sequence>) -> Vec<Value> {
    let tasks = definition.map(|sequence| sequence.tasks.as_slice()).unwrap_or_default();
    let task = |(i, task): (usize, &keelway_domain::shipyard::Task)| match (x.results.get(i), x.outcome) {
        (Some(result), _) => Some(json!({"name": task.name, "state": "finished", "result": result.as_str()})),
        (None, _) if i > x.results.len() => None,
        (None, Some(outcome)) if x.sent.is_some() && outcome.end == End::TimedOut => {
            Some(json!({"name": task.name, "state": "timedOut"}))
        }
        (None, Some(outcome)) if x.sent.is_some() && outcome.end == End::Aborted => {
            Some(json!({"name": task.name, "state": "aborted"}))
        }
        (None, None) if x.is_open() && x.count(ReactionKind::Started) > 0 => Some(json!({"name": task.name, "state": "started"})),
        (None, None) if x.is_open() => Some(json!({"name": task.name, "state": "triggered"})),
        (None, _) => None,
    };
    tasks.iter().enumerate().filter_map(task).collect()
}
