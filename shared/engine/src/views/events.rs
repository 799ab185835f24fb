//! The history of a context: incoming events and the engine's events, in the order in which they happened.
//!
//! Input is recorded as items of its own, except short answers and those that complete a task: they are in the transition records,
//! as is what the engine sends. Only records in the chain that begins at the execution were committed: records of lost races are
//! not shown.

use super::execution::Shown;
use super::{MAX_PAGE, Position, TimePage, Views, Window, place, split};
use crate::item::Item;
use crate::ports::{Ports, Query};
use crate::protocol::page::PAGE_BYTES;
use crate::protocol::record;
use crate::refusal::Refusal;
use crate::sequences::{history, keys};
use futures_util::future::{try_join, try_join_all};
use keelway_domain::event::{CloudEvent, PREFIX};
use keelway_domain::ids::RecordId;
use keelway_domain::names::{Context, ProjectName};
use keelway_domain::sequences::{Bare, Execution, Record, content};
use keelway_domain::time::{Span, Timestamp};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Contexts read for one page, and how many of them at once: their histories are in memory together.
const CONTEXTS: usize = 50;
const AT_ONCE: usize = 5;
/// A page ends with the contexts that were read in this time, so that a busy table makes pages shorter instead of late.
const READING: Span = Span::seconds(5);
/// Events of one context shown in a list over several contexts; the rest is read by context.
const OF_ONE_CONTEXT: usize = 1000;
/// Recorded events and transition records read for one page, and bytes of each. A longer history is read in parts.
const READ: usize = 5000;
const READ_BYTES: usize = 16 << 20;
/// A part of a long history ends when so many transition records are read, and those of so many executions are read at once.
const PART: usize = 1000;
const EXECUTIONS_AT_ONCE: usize = 10;
/// Entries younger than this may still be preceded by others that appear later, so no page ends among them.
const UNSETTLED: Span = Span::seconds(5);

/// Which events are wanted; compared with the events themselves.
#[derive(Debug, Clone, Default)]
pub struct EventFilter {
    /// `data.stage`
    pub stage: Option<String>,
    /// `data.service`
    pub service: Option<String>,
    /// The full type.
    pub ty: Option<String>,
    /// The source.
    pub source: Option<String>,
    /// The id.
    pub id: Option<String>,
    /// By the time they were accepted or sent.
    pub window: Window,
}

impl EventFilter {
    fn takes(&self, happened: &Happened) -> bool {
        let event = &happened.event;
        let is = |wanted: &Option<String>, told: Option<&str>| wanted.is_none() || wanted.as_deref() == told;
        is(&self.stage, event.text("stage"))
            && is(&self.service, event.text("service"))
            && is(&self.ty, Some(&event.ty))
            && is(&self.source, Some(&event.source))
            && is(&self.id, Some(&event.id))
            && self.window.contains(happened.at)
    }
}

/// An event in the history.
struct Happened {
    /// When it was accepted, or committed.
    at: Timestamp,
    event: CloudEvent,
    verdict: Option<String>,
}

impl Happened {
    fn to_json(&self) -> Value {
        let mut json = self.event.to_json();
        json["received"] = json!(self.at.rfc3339());
        if let Some(verdict) = &self.verdict {
            json["verdict"] = json!(verdict);
        }
        json
    }
}

impl<P: Ports> Views<'_, P> {
    /// The events of a context, oldest first.
    ///
    /// # Errors
    /// An unknown project; a context in which so much happens at the same time that no part of its history can be read for one
    /// answer.
    pub async fn events_of(
        &self,
        project: &ProjectName,
        context: &Context,
        filter: &EventFilter,
        size: usize,
        from: Position,
    ) -> Result<TimePage, Refusal> {
        self.known(project).await?;
        let part = self.history(project, context, split(from).0).await?;
        Ok(page(&part, filter, size.clamp(1, MAX_PAGE), from, self.engine.ports.now()))
    }

    /// The events of a project: contexts newest first, their events oldest first. A page ends with a context, never inside one.
    ///
    /// # Errors
    /// As [`Views::events_of`].
    pub async fn events_in(
        &self,
        project: &ProjectName,
        filter: &EventFilter,
        size: usize,
        from: Position,
    ) -> Result<TimePage, Refusal> {
        self.known(project).await?;
        let size = size.clamp(1, MAX_PAGE);
        let began = self.engine.ports.now();
        let (listed, more) = self.contexts(project, filter.window, from, CONTEXTS).await?;
        let mut all = TimePage { items: vec![], next: 0 };
        let (mut bytes, mut read) = (0, 0);
        for together in listed.chunks(AT_ONCE) {
            let histories = try_join_all(together.iter().map(|entry| self.history(project, &entry.context, Timestamp(0)))).await?;
            for (entry, history) in together.iter().zip(histories) {
                let wanted =
                    history.events.iter().filter(|happened| filter.takes(happened)).take(OF_ONE_CONTEXT).map(Happened::to_json);
                for event in wanted {
                    bytes += event.to_string().len();
                    all.items.push(event);
                }
                read += 1;
                let left = listed.get(read).map_or(more, |next| next.position != entry.position);
                if left && (all.items.len() >= size || bytes > PAGE_BYTES || read == listed.len()) {
                    all.next = entry.position;
                    return Ok(all);
                }
            }
            let next = listed.get(read).map(|next| next.position);
            if let Some(last) = together
                .last()
                .filter(|last| next.is_some_and(|next| next != last.position) && self.engine.ports.now() - began > READING)
            {
                all.next = last.position;
                return Ok(all);
            }
        }
        Ok(all)
    }

    /// The history of a context; of one that is too long for one answer, the part that begins with `from`.
    async fn history(&self, project: &ProjectName, context: &Context, from: Timestamp) -> Result<Part, Refusal> {
        let partition = keys::context_partition(project, context);
        let query = |prefix: &str| Query::table(partition.clone(), 500).prefix(prefix);
        let inputs = self.bounded(query(keys::EVENT), READ, READ_BYTES);
        // All of them, however many: without its execution, nobody knows which of the records count.
        let executions = self.executions(project, context, usize::MAX, usize::MAX);
        let ((inputs, inputs_complete), (executions, _)) = try_join(inputs, executions).await?;
        // After the executions, so that the records they name are there.
        let (records, records_complete) = self.bounded(query(keys::RECORD), READ, READ_BYTES).await?;
        if inputs_complete && records_complete {
            return Ok(Part { events: in_order(&inputs, &executions, &records), until: None });
        }
        self.part(&partition, executions, from).await
    }

    /// A part of a long history: the events that were recorded from `from` on, as many as are read at once, and the records of the
    /// executions that were open then. It ends before the first event and before the first execution that were not read.
    async fn part(&self, partition: &str, executions: Vec<Shown>, from: Timestamp) -> Result<Part, Refusal> {
        let mut wanted = Query::table(partition, 500).prefix(keys::EVENT);
        wanted.from = keys::event_sort(from, 0);
        let (inputs, complete) = self.bounded(wanted, READ, READ_BYTES).await?;
        let recorded = |item: &Item| Some(Timestamp(item.key.sk.split('#').nth(1)?.parse().ok()?));
        let mut until = inputs.last().and_then(recorded).filter(|_| !complete);
        let mut open: Vec<Shown> = executions;
        open.retain(|one| one.x.outcome.is_none_or(|outcome| outcome.at >= from));
        open.sort_by_key(|one| one.x.caused);
        let (mut records, mut read, mut bytes): (Vec<Item>, usize, usize) = (vec![], 0, 0);
        for together in open.chunks(EXECUTIONS_AT_ONCE) {
            let first = together.first().map(|one| one.x.caused).unwrap_or(from);
            if until.is_some_and(|until| first >= until) {
                break;
            }
            // A part ends before an execution that begins in it, so those that had begun before are all read.
            let enough = first > from && records.len() >= PART;
            if enough || records.len() >= READ || bytes >= READ_BYTES {
                until = Some(first);
                break;
            }
            let of_one = |one: &Shown| Query::table(partition, 500).prefix(&crate::keys::records_of(one.x.id));
            let found = try_join_all(together.iter().map(|one| self.bounded(of_one(one), READ, READ_BYTES))).await?;
            for (found, _) in found {
                bytes += found.iter().map(Item::size).sum::<usize>();
                records.extend(found);
                read += 1;
            }
        }
        if until.is_some_and(|until| until <= from) {
            let message = format!(
                "more than {READ} events of this context happened in one moment, at {}: read the table's partition {partition}",
                from.rfc3339()
            );
            return Err(Refusal::TooLarge(message));
        }
        let mut events = in_order(&inputs, &open[..read], &records);
        events.retain(|happened| happened.at >= from && until.is_none_or(|until| happened.at < until));
        Ok(Part { events, until })
    }
}

/// A part of a history.
struct Part {
    /// Oldest first.
    events: Vec<Happened>,
    /// Where the next part begins; `None`: this is the end.
    until: Option<Timestamp>,
}

/// One page of a history.
fn page(part: &Part, filter: &EventFilter, size: usize, from: Position, now: Timestamp) -> TimePage {
    let (at, behind) = split(from);
    let mut page = TimePage { items: vec![], next: 0 };
    let (mut last, mut n, mut bytes) = (Timestamp(-1), 0, 0);
    for happened in &part.events {
        n = if happened.at == last { n + 1 } else { 1 };
        last = happened.at;
        if last < at || (last == at && n <= behind) {
            continue;
        }
        let full = page.items.len() >= size && page.next != 0 && split(page.next).0 < now - UNSETTLED;
        if full || bytes > PAGE_BYTES {
            return page;
        }
        if filter.takes(happened) {
            let event = happened.to_json();
            bytes += event.to_string().len();
            page.items.push(event);
        }
        page.next = place(last, n);
    }
    page.next = part.until.map_or(0, |until| place(until, 0));
    page
}

/// The order of events: by time; at the same time, causes before effects, if the events name their cause.
fn in_order(inputs: &[Item], executions: &[Shown], records: &[Item]) -> Vec<Happened> {
    let records: HashMap<&str, Record> =
        records.iter().filter_map(|item| Some((item.key.sk.as_str(), record::decode::<Execution>(Some(item))?))).collect();
    let mut inputs: BTreeMap<&str, Happened> =
        inputs.iter().filter_map(|item| Some((item.key.sk.as_str(), input(item)?))).collect();
    let own: HashSet<String> = inputs.keys().map(|sort| (*sort).to_owned()).collect();
    let mut answers: HashMap<String, Vec<&str>> = HashMap::new();
    for (sort, happened) in &inputs {
        if let Some(trigger) = &happened.event.triggered_id {
            answers.entry(trigger.clone()).or_default().push(sort);
        }
    }
    let mut order = vec![];
    for Shown { x, .. } in executions {
        order.extend(inputs.remove(x.payload.as_str()));
        let chain = chain(x, &records);
        for (place, (id, record)) in chain.iter().enumerate() {
            let (id, at) = (*id, record.at);
            order.extend(record.events(&id, &x.context).into_iter().map(|event| Happened { at, event, verdict: None }));
            let answered = answers.remove(&id.uuid().to_string()).unwrap_or_default();
            order.extend(answered.into_iter().filter_map(|sort| inputs.remove(sort)));
            let bare = bare_answers(x, (&id, record), chain.get(place + 1).map(|(_, next)| *next));
            // A worker that lost its race may have given it an item.
            order.extend(bare.into_iter().filter(|bare| !own.contains(&keys::event_sort(bare.at, content(&bare.event)))));
        }
    }
    order.extend(inputs.into_values());
    order.sort_by_key(|happened| happened.at);
    order
}

/// The answers to a record's trigger that have no items of their own: the next record holds them, or the execution while the task
/// is open. The answer that completed the task is one of them.
fn bare_answers(x: &Execution, (id, record): (&RecordId, &Record), next: Option<&Record>) -> Vec<Happened> {
    let trigger = record.events.iter().find(|draft| draft.id.is_none());
    let task = trigger.and_then(|draft| draft.ty.strip_prefix(PREFIX)?.strip_suffix(".triggered")).unwrap_or_default();
    let bare: Vec<Bare> = match next {
        Some(next) => Bare::all(next),
        None => x.bare.clone(),
    };
    bare.into_iter().map(|bare| Happened { at: bare.at, event: bare.event(x, task, id), verdict: None }).collect()
}

/// The committed records of an execution, oldest first.
fn chain<'r>(x: &Execution, records: &'r HashMap<&str, Record>) -> Vec<(RecordId, &'r Record)> {
    let found = |id: RecordId| records.get(keys::record_sort(&id).as_str()).map(|record| (id, record));
    let newest = x.record.and_then(found);
    let mut chain: Vec<_> = std::iter::successors(newest, |(_, record)| record.previous(x.id).and_then(found)).take(READ).collect();
    chain.reverse();
    chain
}

fn input(item: &Item) -> Option<Happened> {
    let at = Timestamp(item.key.sk.split('#').nth(1)?.parse().ok()?);
    Some(Happened { at, event: history::decode(item)?, verdict: item.text("vd").map(str::to_owned) })
}
