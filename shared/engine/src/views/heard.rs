//! When the executors of open tasks were last heard from. Nothing is stored for it: the history keeps every `.status.changed`, and
//! the execution a short `.started`. So whoever looks pays a read, and an executor that says that it lives pays no other write.

use super::Views;
use crate::item::Item;
use crate::ports::{PortError, Ports, Query};
use crate::sequences::{history, keys};
use futures_util::future::try_join_all;
use keelway_domain::event::{CloudEvent, EventType, Kind};
use keelway_domain::ids::ExecutionId;
use keelway_domain::sequences::{Execution, Phase, ReactionKind};
use keelway_domain::time::{Span, Timestamp};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// For so long, `.started` says enough, unless it says that the work has not begun.
const YOUNG: Span = Span::minutes(1);
/// Events of a context that are looked through, the newest ones; and contexts whose events are read at once.
const NEWEST: u32 = 20;
const AT_ONCE: usize = 20;
/// An executor may be silent for so many of the intervals that it has named.
const MISSED: i64 = 3;

/// What is known of the executors of several executions.
#[derive(Default)]
pub(super) struct Heard(HashMap<ExecutionId, Voice>);

/// What an executor has said last.
#[derive(Clone, Copy)]
struct Voice {
    at: Timestamp,
    /// How often it says something, if it has named that.
    every: Option<Span>,
    /// Whether it has begun nothing yet, because it has no place for it.
    queued: bool,
    /// Whether it may have said more than was read.
    cut: bool,
}

impl Voice {
    fn of(data: &serde_json::Map<String, Value>, at: Timestamp) -> Self {
        let every = data.get("heartbeat").and_then(Value::as_str).and_then(|text| Span::parse(text).ok());
        let queued = data.get("queued").and_then(Value::as_bool) == Some(true);
        Self { at, every: every.filter(|every| every.0 > 0), queued, cut: false }
    }

    /// Until when it has to be heard from.
    fn expected(&self) -> Option<Timestamp> {
        self.every.filter(|_| !self.cut).map(|every| self.at + Span(every.0.saturating_mul(MISSED)))
    }
}

impl Heard {
    /// Puts into what an execution waits for what is known of its executor.
    pub fn tell(&self, x: &Execution, shown: &mut Value) {
        let (Some(voice), Some(waits)) = (self.0.get(&x.id), shown.get_mut("waits").and_then(Value::as_object_mut)) else { return };
        if begun(x).is_some_and(|begun| voice.at > begun) {
            waits.insert("heard".into(), json!(voice.at.rfc3339()));
        }
        if let Some(expected) = voice.expected() {
            waits.insert("expected".into(), json!(expected.rfc3339()));
        }
        if voice.queued {
            waits.insert("queued".into(), json!(true));
        }
    }
}

impl<P: Ports> Views<'_, P> {
    /// Looks for what the executors of these executions have said. Of those whose task was begun a moment ago, nothing is read.
    pub(super) async fn heard(&self, found: impl Iterator<Item = &Execution> + Send) -> Result<Heard, PortError> {
        let now = self.engine.ports.now();
        let mut heard = Heard::default();
        let mut wanted: BTreeMap<String, (Timestamp, Vec<&Execution>)> = BTreeMap::new();
        for x in found {
            let Some(begun) = begun(x) else { continue };
            let voices = told_at_once(x);
            heard.0.extend(weakest(&voices).map(|voice| (x.id, voice)));
            if now - begun >= YOUNG || voices.values().any(|voice| voice.queued) {
                let (since, of) = wanted.entry(keys::context_partition(&x.project, &x.context)).or_insert((begun, vec![]));
                *since = begun.min(*since);
                of.push(x);
            }
        }
        let wanted: Vec<(String, (Timestamp, Vec<&Execution>))> = wanted.into_iter().collect();
        for together in wanted.chunks(AT_ONCE) {
            let read = try_join_all(together.iter().map(|(partition, (since, _))| self.newest(partition, *since))).await?;
            for ((events, cut), (_, (_, executions))) in read.iter().zip(together) {
                for x in executions {
                    heard.0.extend(weakest(&voices(x, events, *cut)).map(|voice| (x.id, voice)));
                }
            }
        }
        Ok(heard)
    }

    /// The newest events of a context since a time, newest first, and whether there are more.
    async fn newest(&self, partition: &str, since: Timestamp) -> Result<(Vec<(Timestamp, CloudEvent)>, bool), PortError> {
        let mut query = Query::table(partition, NEWEST).prefix(keys::EVENT).newest_first();
        query.from = keys::event_sort(since, 0);
        let page = self.engine.ports.query(&query).await?;
        let counts = |item: &&Item| item.text("vd").is_none();
        let read = |item: &Item| Some((keys::event_time(&item.key.sk)?, history::decode(item)?));
        Ok((page.items.iter().filter(counts).filter_map(read).collect(), page.next.is_some()))
    }
}

/// When the present task was begun, if somebody works on it.
fn begun(x: &Execution) -> Option<Timestamp> {
    let started = x.reactions.iter().filter(|reaction| reaction.kind == ReactionKind::Started).map(|reaction| reaction.at).min();
    started.filter(|_| matches!(x.phase(), Phase::Running | Phase::RunningQueued))
}

/// What the `.started` that the execution itself has say, by their sources.
fn told_at_once(x: &Execution) -> HashMap<&str, Voice> {
    x.bare.iter().map(|bare| (bare.source.as_str(), Voice::of(&bare.data, bare.at))).collect()
}

/// What each of its executors that has not finished has said last.
fn voices<'x>(x: &'x Execution, events: &'x [(Timestamp, CloudEvent)], cut: bool) -> HashMap<&'x str, Voice> {
    let mut voices = told_at_once(x);
    voices.values_mut().for_each(|voice| voice.cut = cut);
    let Some(trigger) = x.record.map(|record| record.uuid().to_string()) else { return voices };
    // From the oldest on, so that the last word stays.
    for (at, event) in events.iter().rev().filter(|(_, event)| event.triggered_id.as_ref() == Some(&trigger)) {
        let source = event.source.as_str();
        match EventType::parse(&event.ty) {
            EventType::Task(_, Kind::Started | Kind::StatusChanged) => {
                let said = Voice::of(&event.data, *at);
                let before = voices.get(source).and_then(|voice| voice.every);
                voices.insert(source, Voice { every: said.every.or(before), ..said });
            }
            EventType::Task(_, Kind::Finished) => drop(voices.remove(source)),
            _ => (),
        }
    }
    voices
}

/// Of several, the one that is to be heard from first. As long as one works, the task is not only queued.
fn weakest(voices: &HashMap<&str, Voice>) -> Option<Voice> {
    let queued = voices.values().all(|voice| voice.queued);
    let first = voices.values().min_by_key(|voice| (voice.expected().unwrap_or(Timestamp(i64::MAX)), voice.at))?;
    Some(Voice { queued, ..*first })
}
