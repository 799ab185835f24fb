//! Sequences in the shape that Keptn's clients expect: one entry per context, its stages, and our executions below.

use super::execution::{self, Behind, Shown};
use super::stages::{in_keptns_words, overall, stages};
use super::{MAX_PAGE, Position, TimePage, Views, Window};
use crate::item::{Item, Key};
use crate::ports::{PortError, Ports, Query};
use crate::projects;
use crate::protocol::page::PAGE_BYTES;
use crate::protocol::{VISIBLE, record};
use crate::refusal::Refusal;
use crate::sequences::{Loaded, keys, lane};
use keelway_domain::ids::ExecutionId;
use keelway_domain::names::{Context, ProjectName};
use keelway_domain::sequences::{Execution, Phase, Policy, unreached};
use keelway_domain::shipyard::{Sequence, Shipyard};
use keelway_domain::time::{Span, Timestamp};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Contexts read for one page.
const LOOKED_AT: usize = 200;
/// Names of contexts looked through for a prefix; only keys are read.
const NAMES: usize = 2000;
/// Executions of one context that its entry shows: the newest ones.
pub(super) const EXECUTIONS: usize = 500;
/// Executions of one context that its entry is derived from, and their bytes. Contexts have fewer unless the operator allows them
/// more.
const READ: usize = 5000;
pub(super) const READ_BYTES: usize = 16 << 20;
/// Contexts whose executions are in memory together.
const TOGETHER: usize = 20;
/// For this long after an end, its follow-ups may still be missing; by then, the sweep has recovered any lost message.
const FOLLOW_UP_AWAITED: Span = Span::minutes(60);

/// Which contexts are wanted.
#[derive(Debug, Clone, Default)]
pub struct SequenceFilter {
    /// Only those whose first sequence has this name.
    pub name: Option<String>,
    /// Only those in this overall state.
    pub state: Option<String>,
    /// Only those whose first trigger had these labels, with these values if given.
    pub labels: Vec<(String, Option<String>)>,
    /// By the time they were accepted.
    pub window: Window,
    /// Only these; empty = all.
    pub contexts: Vec<Context>,
    /// Only those whose names begin with this, among the newest of the project.
    pub prefix: Option<String>,
}

impl<P: Ports> Views<'_, P> {
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
    ) -> Result<TimePage, Refusal> {
        self.known(project).await?;
        let size = size.clamp(1, MAX_PAGE);
        let mut page = TimePage { items: vec![], next: 0 };
        if !filter.contexts.is_empty() || filter.prefix.is_some() {
            let contexts = match &filter.prefix {
                Some(prefix) => self.contexts_like(project, prefix).await?,
                None => filter.contexts.clone(),
            };
            let mut states = self.states(project, &contexts).await?;
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
                let next = listed.get(i + 1).map(|next| next.position);
                let left = next.map_or(more, |next| next != from);
                if page.items.len() >= size && left {
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

    /// The context of this name, and those of the newest whose names begin with it.
    async fn contexts_like(&self, project: &ProjectName, prefix: &str) -> Result<Vec<Context>, PortError> {
        let (listed, _) = self.contexts(project, Window::default(), 0, NAMES).await?;
        let like = listed.into_iter().map(|listed| listed.context).filter(|context| context.as_str().starts_with(prefix));
        let mut contexts: Vec<Context> = Context::new(prefix).into_iter().collect();
        for context in like.take(MAX_PAGE) {
            if !contexts.contains(&context) {
                contexts.push(context);
            }
        }
        Ok(contexts)
    }

    /// One context's entry in the list of sequences.
    ///
    /// # Errors
    /// A port fails.
    pub async fn sequence_state(&self, project: &ProjectName, context: &Context) -> Result<Option<Value>, PortError> {
        let states = self.states(project, std::slice::from_ref(context)).await?;
        Ok(states.into_iter().next().map(|(_, state)| state))
    }

    /// The entries of contexts that exist, with the times they were accepted.
    async fn states(&self, project: &ProjectName, contexts: &[Context]) -> Result<Vec<(Timestamp, Value)>, PortError> {
        if contexts.is_empty() {
            return Ok(vec![]);
        }
        let mut wanted: Vec<Key> = contexts.iter().map(|context| keys::context(project, context)).collect();
        wanted.push(projects::keys::project(project));
        let items = self.engine.read(&wanted).await?;
        let policy = self.engine.project(project, items.get(&projects::keys::project(project))).await?.policy;
        let (mut states, mut room) = (vec![], PAGE_BYTES);
        for together in contexts.chunks(TOGETHER) {
            let mut read = vec![];
            for context in together {
                if let Some(item) = items.get(&keys::context(project, context)) {
                    let (shown, complete) = self.executions(project, context, READ, READ_BYTES).await?;
                    read.push(Read { context, item, shown, complete });
                }
            }
            let behind = self.holders(project, read.iter().flat_map(|read| &read.shown)).await?;
            for read in &read {
                let state = self.state(project, read, &policy, &behind, &mut room).await?;
                states.push((Timestamp(read.item.number("at").unwrap_or(0)), state));
            }
        }
        Ok(states)
    }

    /// Who holds the lanes that these executions wait for.
    pub(super) async fn holders(&self, project: &ProjectName, shown: impl Iterator<Item = &Shown>) -> Result<Behind, PortError> {
        let waiting = shown.filter(|one| one.phase() == Phase::Queued);
        let lanes: BTreeSet<Key> = waiting.map(|one| keys::LaneKey::of(&one.x).lock()).take(EXECUTIONS).collect();
        if lanes.is_empty() {
            return Ok(Behind::new());
        }
        let locks = self.engine.read(&lanes.into_iter().collect::<Vec<_>>()).await?;
        let holders: HashMap<Key, Key> =
            locks.values().filter_map(|lock| Some((lock.key.clone(), keys::execution(&lane::holder(project, lock)?)))).collect();
        let wanted: Vec<Key> = holders.values().cloned().collect();
        let items = if wanted.is_empty() { HashMap::new() } else { self.engine.read(&wanted).await? };
        let mut behind = Behind::new();
        for (lock, holder) in holders {
            if let Some(item) = items.get(&holder) {
                behind.insert(lock, Loaded::read(item)?.x);
            }
        }
        Ok(behind)
    }

    /// The executions of a context, causes before effects, about `most` and `bytes`; `false`: there are more.
    pub(super) async fn executions(
        &self,
        project: &ProjectName,
        context: &Context,
        most: usize,
        bytes: usize,
    ) -> Result<(Vec<Shown>, bool), PortError> {
        let mut query = Query::table(keys::context_partition(project, context), 500).prefix(keys::EXECUTION);
        let (mut shown, mut size, mut complete) = (vec![], 0, true);
        loop {
            let page = self.engine.ports.query(&query).await?;
            for item in &page.items {
                size += item.size();
                shown.push(Shown { x: Loaded::read(item)?.x, depth: 0 });
            }
            match page.next {
                None => break,
                Some(_) if shown.len() >= most || size >= bytes => {
                    complete = false;
                    break;
                }
                Some(next) => query.after = Some(next),
            }
        }
        let depths = depths(&shown);
        for one in &mut shown {
            one.depth = depths.get(&one.x.id).copied().unwrap_or(0);
        }
        shown.sort_by_key(|one| (one.x.caused, one.depth, one.x.began.unwrap_or(Timestamp(i64::MAX)), one.x.id));
        Ok((shown, complete))
    }

    /// The shipyard an execution was accepted with, if it had one.
    pub(super) async fn accepted_with(&self, x: &Execution) -> Result<Option<Arc<Shipyard>>, PortError> {
        match self.engine.projects().shipyard(&x.project, &x.revision).await {
            Ok(shipyard) => Ok(Some(shipyard)),
            Err(PortError::Refused { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether a committed end has caused an execution that does not exist yet, because its message is still under way.
    async fn follow_ups_to_come(&self, shown: &[Shown]) -> Result<bool, PortError> {
        let now = self.engine.ports.now();
        let recent = |one: &&Shown| one.x.outcome.is_some_and(|outcome| now < outcome.at + FOLLOW_UP_AWAITED);
        let records =
            shown.iter().filter(recent).filter_map(|one| Some(keys::record(&one.x.project, &one.x.context, &one.x.record?)));
        let records: Vec<Key> = records.collect();
        let items = if records.is_empty() { HashMap::new() } else { self.engine.read(&records).await? };
        let absent = |id: ExecutionId| shown.iter().all(|one| one.x.id != id);
        let records = items.values().filter_map(|item| record::decode::<Execution>(Some(item)));
        Ok(records.flat_map(|record| record.sends).any(|follow_up| absent(follow_up.execution)))
    }

    /// The entry of a context. Its newest executions are shown in it as long as there is room for them on the page.
    async fn state(
        &self,
        project: &ProjectName,
        read: &Read<'_>,
        policy: &Policy,
        behind: &Behind,
        room: &mut usize,
    ) -> Result<Value, PortError> {
        let Read { context, item, shown, complete } = read;
        let retries: HashMap<ExecutionId, ExecutionId> =
            shown.iter().filter_map(|one| Some((one.x.retry_of()?, one.x.id))).collect();
        let mut unreached = Unreached::default();
        for one in shown {
            let shipyard = self.accepted_with(&one.x).await?;
            let sequence = shipyard.as_deref().and_then(|shipyard| execution::definition(&one.x, shipyard));
            unreached.learn(&one.x, sequence.as_ref(), shipyard.as_deref());
        }
        let heard = self.heard(shown.iter().map(|one| &one.x)).await?;
        let mut executions = vec![];
        for one in shown.iter().rev().take(EXECUTIONS) {
            let shipyard = self.accepted_with(&one.x).await?;
            let sequence = shipyard.as_deref().and_then(|shipyard| execution::definition(&one.x, shipyard));
            let mut entry = execution::shown(one, sequence.as_ref(), policy, behind);
            heard.tell(&one.x, &mut entry);
            if let Some(retry) = retries.get(&one.x.id) {
                entry["retriedBy"] = json!(retry);
            }
            let bytes = entry.to_string().len();
            if bytes > *room && !executions.is_empty() {
                break;
            }
            *room = room.saturating_sub(bytes);
            executions.push(entry);
        }
        executions.reverse();
        let truncated = !complete || executions.len() < shown.len();
        let accepted = Timestamp(item.number("at").unwrap_or(0));
        let recent = self.engine.ports.now() < accepted + VISIBLE;
        let over = !shown.is_empty() && shown.iter().all(|one| one.x.outcome.is_some());
        let goes_on = over && *complete && self.follow_ups_to_come(shown).await?;
        let phase = match () {
            () if goes_on => "started",
            // The items of the transaction that began it appear one by one.
            () if shown.is_empty() && recent => "triggered",
            () => overall(shown),
        };
        let mut state = json!({
            "name": item.text("sq").unwrap_or_default(),
            "service": item.text("sv").unwrap_or_default(),
            "project": project.as_str(),
            "time": accepted.rfc3339(),
            "shkeptncontext": context.as_str(),
            "state": in_keptns_words(phase),
            "phase": phase,
            "stages": stages(shown),
            "executions": executions,
        });
        let unreached = unreached.told(shown);
        if !unreached.is_empty() {
            state["notReached"] = json!(unreached);
        }
        if let Some(labels) = item.text("lb").and_then(|text| serde_json::from_str::<Value>(text).ok()) {
            state["labels"] = labels;
        }
        if let Some(problem) = shown.iter().find_map(|one| one.x.view.problem.clone()) {
            state["problemTitle"] = json!(problem);
        }
        if truncated {
            state["truncated"] = json!(true);
        }
        Ok(state)
    }
}

/// How many executions are between each and the outside event, as far as they are known.
fn depths(shown: &[Shown]) -> HashMap<ExecutionId, usize> {
    let parents: HashMap<ExecutionId, Option<ExecutionId>> = shown.iter().map(|one| (one.x.id, one.x.parent)).collect();
    let mut known: HashMap<ExecutionId, usize> = HashMap::new();
    for one in shown {
        let mut line = vec![];
        let mut at = Some(one.x.id);
        while let Some(id) = at.filter(|id| !known.contains_key(id) && line.len() <= shown.len()) {
            line.push(id);
            at = parents.get(&id).copied().flatten();
        }
        let first = at.and_then(|id| known.get(&id).copied()).map_or(0, |depth| depth + 1);
        known.extend(line.into_iter().rev().zip(first..));
    }
    known
}

/// A context as it was read.
struct Read<'a> {
    context: &'a Context,
    item: &'a Item,
    shown: Vec<Shown>,
    /// Its executions are all there.
    complete: bool,
}

/// The sequences that did not follow an end because of how it ended, by (stage, sequence) of that end.
#[derive(Default)]
struct Unreached(BTreeMap<(String, String), Vec<Value>>);

impl Unreached {
    /// A later execution of the same sequence replaces an earlier one.
    fn learn(&mut self, x: &Execution, sequence: Option<&Sequence>, shipyard: Option<&Shipyard>) {
        let place = (x.stage.clone(), x.sequence.clone());
        let (Some(sequence), Some(shipyard), Some(outcome)) = (sequence, shipyard, x.outcome) else {
            self.0.remove(&place);
            return;
        };
        let missed = unreached(x, &sequence.tasks, shipyard).into_iter().map(|(stage, missed)| {
            json!({
                "stage": stage.name.as_str(), "sequence": missed.name.as_str(),
                "after": {"stage": x.stage, "sequence": x.sequence, "result": outcome.result.as_str()},
            })
        });
        self.0.insert(place, missed.collect());
    }

    /// Those whose stage was not reached in another way.
    fn told(self, shown: &[Shown]) -> Vec<Value> {
        let reached = |value: &Value| {
            shown.iter().any(|one| value["stage"] == one.x.stage.as_str() && value["sequence"] == one.x.sequence.as_str())
        };
        let mut told: Vec<Value> = vec![];
        for one in self.0.into_values().flatten().filter(|one| !reached(one)) {
            if !told.iter().any(|known| known["stage"] == one["stage"] && known["sequence"] == one["sequence"]) {
                told.push(one);
            }
        }
        told
    }
}

impl SequenceFilter {
    fn takes(&self, state: &Value) -> bool {
        let is = |field: &str, wanted: &Option<String>| wanted.as_ref().is_none_or(|wanted| state[field] == json!(wanted));
        let has = |(name, value): &(String, Option<String>)| {
            let label = state["labels"].get(name);
            label.is_some_and(|label| value.as_ref().is_none_or(|value| label == &json!(value)))
        };
        self.labels.iter().all(has) && is("name", &self.name) && (is("state", &self.state) || is("phase", &self.state))
    }
}
