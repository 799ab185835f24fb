//! Invariants on every commit.

use super::freeze::Freeze;
use super::planted::Seen;
use super::repeats::Repeats;
use super::timetable::{Lives, Timetable};
use crate::sim::Decoded;
use keelway_domain::ids::RecordId;
use keelway_domain::names::ProjectName;
use keelway_domain::sequences::{Class, End, Execution, Lane};
use keelway_engine::item::{Item, Key};
use keelway_engine::protocol::record;
use keelway_engine::schedules;
use keelway_engine::sequences::keys::{self, LaneKey};
use keelway_engine::sequences::{Address, codec};
use keelway_world::table::{Change, Table};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// What the watcher remembers; time is counted in requests.
#[derive(Default)]
pub struct Watch {
    born: HashMap<Key, u64>,
    /// When executions ended; only kept if there are schedules and the like.
    ended: HashMap<Key, u64>,
    holders: BTreeMap<String, BTreeSet<Key>>,
    /// Executions that held their lane when they ended.
    ended_holding: HashSet<Key>,
    /// Since when a context, or a stage of it, is paused.
    paused: HashMap<(Key, Option<String>), u64>,
    /// Aborts of a context, or of a stage of it: when, and up to which epoch.
    aborts: HashMap<Key, Vec<(u64, Option<String>, u32)>>,
    /// Contexts that were ever paused or aborted.
    told: HashSet<Key>,
    /// Every execution ever seen, by item key.
    pub executions: BTreeSet<Key>,
    /// Who stands, or stood, in which queue since when.
    pub(super) entered: HashMap<Key, u64>,
    /// The items of a transaction become visible one by one.
    pub(super) staged: bool,
    /// The most executions of a context, where they are few.
    pub(super) most: Option<u32>,
    /// Triggers that the sweep had repeated, and by which message.
    repeated: HashMap<RecordId, u64>,
    /// Whether there are windows, schedules, retries or remediations.
    pub(super) extended: bool,
    pub(super) freeze: Freeze,
    pub(super) timetable: Timetable,
    repeats: Repeats,
}

/// The execution in an item.
pub fn decode(item: &Arc<Item>) -> Result<Arc<Execution>, String> {
    thread_local!(static STATES: Decoded<Execution> = const { Decoded::new() });
    STATES.with(|states| states.state(item))
}

impl Watch {
    /// Looks at what one request changed.
    pub fn look(&mut self, changes: &[Change], table: &Table, (step, seen): (u64, &Seen)) -> Result<(), String> {
        for change in changes {
            self.version(change)?;
            let sk = change.key.sk.as_str();
            if change.key.pk.starts_with("C#") && sk.starts_with("X#") {
                self.execution(change, step, table)?;
                self.acceptance(change, table, seen)?;
                if self.extended {
                    self.extras(change, table, (step, seen))?;
                }
            } else if change.key.pk.starts_with("C#") && sk == keys::MAIN {
                self.context(change, step);
                self.freeze.told(change);
            } else if change.key.pk.starts_with("SC#") && sk.starts_with(schedules::keys::SCHEDULE) {
                let lives = Lives { born: &self.born, ended: &self.ended };
                self.timetable.changed(change, table, seen, lives)?;
            } else if change.key.pk.starts_with("K#") && sk == keys::MAIN {
                self.lock(change, table)?;
                self.order(change, table, seen)?;
            } else if change.key.pk.starts_with("K#") {
                self.entry(change, step);
            } else if sk.starts_with("T#")
                && let (Some(old), Some(new)) = (&change.old, &change.new)
                && record::text(old) != record::text(new)
            {
                return Err(format!("transition record {} was overwritten with other content", change.key));
            }
        }
        for (lane, holders) in &self.holders {
            if holders.len() > 1 {
                return Err(format!("two holders of {lane}: {holders:?}"));
            }
        }
        Ok(())
    }

    fn version(&self, change: &Change) -> Result<(), String> {
        let state = change.key.sk == keys::MAIN && (change.key.pk.starts_with("C#") || change.key.pk.starts_with("K#"));
        if !state && !change.key.sk.starts_with("X#") {
            return Ok(());
        }
        let (old, new) = (change.old.as_ref().map_or(0, |item| item.version()), change.new.as_ref().map(|item| item.version()));
        let lasting = |item: &Option<Arc<Item>>| {
            item.as_ref().map(|item| {
                item.attrs
                    .iter()
                    .filter(|(name, _)| !["ttl", "n", "ow", "gp2", "gs2"].contains(&&***name))
                    .map(|(n, v)| (n.clone(), v.clone()))
                    .collect::<Vec<_>>()
            })
        };
        // Kept from expiring, counting its executions, or rid of the note of what it owed, it is what it was.
        let same = new == Some(old) && lasting(&change.old) == lasting(&change.new);
        if new == Some(old + 1) || same { Ok(()) } else { Err(format!("version of {} went from {old} to {new:?}", change.key)) }
    }

    fn execution(&mut self, change: &Change, step: u64, table: &Table) -> Result<(), String> {
        let key = &change.key;
        let Some(new) = &change.new else { return Err(format!("execution {key} was deleted")) };
        let x = decode(new)?;
        let old = change.old.as_ref().map(decode).transpose()?;
        self.executions.insert(key.clone());
        match &old {
            None => drop(self.born.insert(key.clone(), step)),
            Some(old) if old.outcome.is_some() && **old == *x => {}
            Some(old) if old.outcome.is_some() => {
                return Err(format!("{key} changed after its end: {old:?} became {x:?}"));
            }
            Some(old) if x.task < old.task || x.results.len() < old.results.len() => {
                return Err(format!("{key} went back from task {} to {}", old.task, x.task));
            }
            Some(_) => {}
        }
        if x.outcome.is_some() && x.held.is_some() {
            return Err(format!("{key} has ended and is held back: {x:?}"));
        }
        self.repetition(&x)?;
        let lane = LaneKey::of(&x).0;
        let holders = self.holders.entry(lane).or_default();
        if x.lane == Lane::Holds && x.outcome.is_none() {
            holders.insert(key.clone());
        } else {
            holders.remove(key);
        }
        let held = old.as_ref().is_some_and(|old| old.lane == Lane::Holds);
        if x.outcome.is_some() && held {
            self.ended_holding.insert(key.clone());
        }
        // A staged transaction was decided before its execution became visible: what was told meanwhile came after it.
        let decided_before = self.staged && old.is_none();
        if x.lane == Lane::Holds && !held && !decided_before { self.started(key, &x, step, table) } else { Ok(()) }
    }

    /// What holds of windows, schedules and retries.
    fn extras(&mut self, change: &Change, table: &Table, (step, seen): (u64, &Seen)) -> Result<(), String> {
        let Some(new) = &change.new else { return Ok(()) };
        let (x, old) = (decode(new)?, change.old.as_ref().map(decode).transpose()?);
        self.freeze.changed(&change.key, old.as_deref(), &x, (seen, new.version()))?;
        if x.outcome.is_some() {
            self.ended.entry(change.key.clone()).or_insert(step);
        }
        if x.held.is_none() && old.as_ref().is_some_and(|old| old.held.is_some()) {
            self.freeze.freed.insert(change.key.clone(), step);
        }
        if old.is_none() {
            self.timetable.born(&x)?;
            self.repeats.born(&change.key, &x, table)?;
        }
        Ok(())
    }

    /// The sweep has the trigger of a task repeated once, and never an approval's.
    fn repetition(&mut self, x: &Execution) -> Result<(), String> {
        let (Some(by), Some(record)) = (x.repeated, x.record) else { return Ok(()) };
        if x.waits_for_approval() {
            return Err(format!("a person is asked again: {x:?}"));
        }
        match self.repeated.insert(record, by) {
            Some(before) if before != by => Err(format!("a trigger is repeated more than once: {x:?}")),
            _ => Ok(()),
        }
    }

    /// Whether this message had a trigger repeated.
    pub fn repeats(&self, cause: u64) -> bool {
        self.repeated.values().any(|by| *by == cause)
    }

    /// Nothing starts that was born under a pause that still holds, or after an abort that covers it.
    fn started(&self, key: &Key, x: &Execution, step: u64, table: &Table) -> Result<(), String> {
        let context = Key::new(key.pk.as_str(), keys::MAIN);
        let born = self.born.get(key).copied().unwrap_or(step);
        for stage in [None, Some(x.stage.clone())] {
            if let Some(since) = self.paused.get(&(context.clone(), stage))
                && *since < born
            {
                return Err(format!("{key} got its lane though its context was paused before it was born"));
            }
        }
        let epoch = root_epoch(key, x, table);
        let covers = |(at, stage, upto): &&(u64, Option<String>, u32)| {
            *at < born && epoch < *upto && stage.as_ref().is_none_or(|stage| *stage == x.stage)
        };
        match self.aborts.get(&context).into_iter().flatten().find(covers) {
            Some(_) => Err(format!("{key} got its lane though its context was aborted before it was born")),
            None => Ok(()),
        }
    }

    fn context(&mut self, change: &Change, step: u64) {
        let flags = |item: &Option<Arc<Item>>| codec::context(item.as_deref()).flags;
        let (old, new) = (flags(&change.old), flags(&change.new));
        let stages = |flags: &keelway_domain::sequences::Flags| {
            let all = flags.paused.then_some(None);
            all.into_iter().chain(flags.paused_stages.iter().cloned().map(Some)).collect::<BTreeSet<_>>()
        };
        if new != keelway_domain::sequences::Flags::default() {
            self.told.insert(change.key.clone());
        }
        let (before, after) = (stages(&old), stages(&new));
        for lifted in before.difference(&after) {
            self.paused.remove(&(change.key.clone(), lifted.clone()));
        }
        for set in after.difference(&before) {
            self.paused.insert((change.key.clone(), set.clone()), step);
        }
        let aborts = self.aborts.entry(change.key.clone()).or_default();
        if new.aborted > old.aborted {
            aborts.push((step, None, new.aborted));
        }
        for (stage, upto) in &new.aborted_stages {
            if old.aborted_stages.get(stage) != Some(upto) {
                aborts.push((step, Some(stage.clone()), *upto));
            }
        }
    }

    /// The backlog does not overtake what follows the one that leaves.
    fn lock(&self, change: &Change, table: &Table) -> Result<(), String> {
        let holder = |item: &Option<Arc<Item>>| {
            let item = item.as_ref()?;
            let context = item.text("hc")?;
            Some(Key::new(format!("C#{}#{context}", super::plan::PROJECT), format!("X#{}", item.text("h")?)))
        };
        let (Some(old), Some(new)) = (holder(&change.old), holder(&change.new)) else { return Ok(()) };
        let (Some(before), Some(after)) = (table.peek(&old), table.peek(&new)) else { return Ok(()) };
        let (p, y) = (decode(before)?, decode(after)?);
        let chains = p.outcome.is_some_and(|outcome| matches!(outcome.end, End::Normal | End::TimedOut));
        if old == new || y.class != Class::Outside || !chains || !self.ended_holding.contains(&old) {
            return Ok(());
        }
        for child in follow_ups(&p, table) {
            let key = keys::execution(&child);
            if child_stage(&p, &child, table) != Some(p.stage.clone()) {
                continue;
            }
            let Some(item) = table.peek(&key) else {
                // A follow-up that is born held back, or over, is left to a message: it need not stand in the queue.
                let context = Key::new(old.pk.as_str(), keys::MAIN);
                if !self.freeze.revisions.is_empty() {
                    continue;
                }
                let executions = codec::context(table.peek(&context).map(|item| &**item)).executions;
                if self.told.contains(&context) || self.most.is_some_and(|most| executions >= most) {
                    continue;
                }
                return Err(format!("{new} got the lane before the follow-up {key} of {old} exists"));
            };
            let f = decode(item)?;
            if f.outcome.is_none() && f.lane == Lane::Wants && f.held.is_none() && !f.paused && f.ask == 0 {
                return Err(format!("{new} got the lane ahead of the follow-up {key} of {old}"));
            }
        }
        Ok(())
    }
}

/// The epoch of the outside event at the root of an execution.
fn root_epoch(key: &Key, x: &Execution, table: &Table) -> u32 {
    let parent = x.parent.filter(|_| x.class == Class::FollowUp).map(|id| Key::new(key.pk.as_str(), format!("X#{id}")));
    match parent.and_then(|key| Some((table.peek(&key)?, key))).map(|(item, key)| (decode(item), key)) {
        Some((Ok(parent), key)) => root_epoch(&key, &parent, table),
        _ => x.epoch,
    }
}

/// The record an execution names.
pub fn record(x: &Execution, table: &Table) -> Option<keelway_domain::sequences::Record> {
    let item = table.peek(&keys::record(&x.project, &x.context, &x.record?))?;
    record::decode::<Execution>(Some(item))
}

/// The executions its last record sets off.
pub fn follow_ups(x: &Execution, table: &Table) -> Vec<Address> {
    let record = record(x, table).unwrap_or_default();
    let to = |follow_up: &keelway_domain::sequences::FollowUp| Address {
        project: x.project.clone(),
        context: x.context.clone(),
        execution: follow_up.execution,
    };
    record.sends.iter().map(to).collect()
}

fn child_stage(x: &Execution, child: &Address, table: &Table) -> Option<String> {
    let record = record(x, table)?;
    record.sends.iter().find(|f| f.execution == child.execution).map(|f| f.stage.to_string())
}

/// The project of all simulations.
pub fn project() -> ProjectName {
    #[expect(clippy::unwrap_used, reason = "a constant")]
    ProjectName::new(super::plan::PROJECT).unwrap()
}
