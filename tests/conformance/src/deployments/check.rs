//! What must hold in the simulation of deployments, as the table and the deployers tell it.

use super::crew::{Crew, who};
use crate::sim::{Decoded, paid};
use keelway_domain::deployments::{Config, Deployment, Status, Task, Why};
use keelway_domain::ids::RecordId;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::deployments::{Address, keys};
use keelway_engine::item::{Item, Key};
use keelway_engine::keys::MAIN;
use keelway_world::table::{Change, Table};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What was seen of one config.
#[derive(Debug, Default)]
pub struct Seen {
    /// The attempts that began, and the status that each ended with.
    pub attempts: BTreeMap<(u64, u32), Option<Status>>,
    /// The commands that were obeyed.
    pub obeyed: BTreeSet<u64>,
    /// The entries of the audit by the command.
    pub audit: BTreeMap<u64, String>,
}

/// What was seen so far.
#[derive(Debug, Default)]
pub struct Watch {
    /// How far clocks differ at most.
    pub skew: Span,
    /// The time, as far as known.
    pub now: Timestamp,
    /// Partitions of the configs.
    pub places: Vec<(String, Address)>,
    /// By config.
    pub seen: Vec<Seen>,
}

fn parsed(item: &Item) -> Value {
    item.text("j").and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// A config as it is.
///
/// # Errors
/// It cannot be read.
pub fn state(item: &Arc<Item>) -> Result<Arc<Config>, String> {
    thread_local!(static STATES: Decoded<Config> = const { Decoded::new() });
    STATES.with(|states| states.state(item))
}

/// Whether nobody asked for a version.
pub fn by_trigger(causes: &[Why]) -> bool {
    causes.iter().any(|why| matches!(why, Why::ConfigChange { .. } | Why::ImageChange { .. }))
}

impl Watch {
    /// Of these configs.
    pub fn new(configs: &[Address]) -> Self {
        let places = configs.iter().map(|to| (keys::partition(to), to.clone())).collect();
        Self { places, seen: configs.iter().map(|_| Seen::default()).collect(), ..Self::default() }
    }

    /// What one request changed.
    pub fn changed(&mut self, change: &Change, table: &Table, crew: &mut Crew) -> Result<(), String> {
        let (old, new) = (change.old.as_ref(), change.new.as_ref());
        if change.key.pk.starts_with("DD#") {
            let lower = old.zip(new).is_some_and(|(old, new)| {
                // What it notes about entries that are to be deleted is no part of it.
                let same = ["j", "src", "ttl"].iter().all(|name| old.attrs.get(*name) == new.attrs.get(*name));
                new.version() < old.version() || new.version() == old.version() && !same
            });
            return if lower { Err(format!("a definition was written over: {old:?} by {new:?}")) } else { Ok(()) };
        }
        if change.key.pk.starts_with("DH#") && change.key.sk.starts_with(keys::HEADS) {
            let at = |item: &&std::sync::Arc<Item>| parsed(item)["t"].as_i64().unwrap_or_default();
            let older = old.zip(new).is_some_and(|(old, new)| at(&new) < at(&old));
            return if older { Err(format!("a tag points to an older image: {old:?}, then {new:?}")) } else { Ok(()) };
        }
        let Some(place) = self.places.iter().position(|(pk, _)| *pk == change.key.pk) else { return Ok(()) };
        if change.key.sk == MAIN {
            let Some(new) = new else { return Err(format!("{} was deleted", change.key)) };
            if old.is_some_and(|old| paid(old, new)) {
                return Ok(());
            }
            let versions = (old.map_or(0, |old| old.version()), new.version());
            if versions.1 != versions.0 + 1 {
                return Err(format!("{}: version {} became {}", change.key, versions.0, versions.1));
            }
            let before = old.map(state).transpose()?.unwrap_or_else(|| Arc::new(Config::new("", "", Timestamp(0))));
            let after = state(new)?;
            return self.config(place, &before, &after, table, crew);
        }
        if [keys::SNAPSHOTS, keys::PAST, keys::AUDIT].iter().any(|prefix| change.key.sk.starts_with(prefix)) {
            self.immutable(place, change, table)?;
        }
        Ok(())
    }

    /// Snapshots, attempts that have ended, and the audit.
    fn immutable(&mut self, place: usize, change: &Change, table: &Table) -> Result<(), String> {
        let (old, new) = (change.old.as_ref(), change.new.as_ref());
        let number = || change.key.sk.split('#').nth(1).and_then(|n| n.parse::<u64>().ok()).unwrap_or_default();
        match (old, new) {
            (Some(old), Some(new)) if old.text("j") != new.text("j") => {
                return Err(format!("{} was changed: {old:?}, then {new:?}", change.key));
            }
            (Some(_), None) => {
                let config = table.peek(&keys::config(&self.places[place].1)).map(state).transpose()?;
                let oldest = config.as_ref().map_or(0, |config| config.oldest);
                if number() >= oldest || change.key.sk.starts_with(keys::AUDIT) {
                    return Err(format!("{} was deleted, and versions from {oldest} on are kept", change.key));
                }
            }
            (None, Some(new)) if change.key.sk.starts_with(keys::AUDIT) => {
                let Some(id) = parsed(new)["n"]["i"].as_u64() else { return Ok(()) };
                if let Some(other) = self.seen[place].audit.insert(id, change.key.sk.clone()) {
                    return Err(format!("command {id} was obeyed twice: {other} and {}", change.key.sk));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn config(&mut self, place: usize, old: &Config, new: &Config, table: &Table, crew: &mut Crew) -> Result<(), String> {
        self.seen[place].obeyed.extend(new.obeyed.iter().filter(|id| !old.obeyed.contains(id)));
        if new.oldest < old.oldest {
            return Err(format!("{} versions were kept from {} on, then from {}", new.name, old.oldest, new.oldest));
        }
        match (&old.last, &new.last) {
            (None, None) => {}
            (Some(old), None) => return Err(format!("a deployment was forgotten: {old:?}")),
            (was, Some(is)) => {
                let begins = was.as_ref().is_none_or(|was| (was.n, was.attempt) != (is.n, is.attempt));
                if begins {
                    self.begins(place, (old, new), is, table)?;
                } else if let Some(was) = was {
                    stays(was, is)?;
                }
                if let Some(was) = was.as_ref().filter(|was| !was.status.is_final() && (begins || is.status.is_final())) {
                    self.ends(place, was, crew)?;
                }
                let claimed = |d: Option<&Deployment>| d.and_then(|d| d.claim.as_ref()).map(|claim| claim.id);
                let claim = claimed(Some(is));
                if let Some(id) = claim.filter(|_| claimed(was.as_ref()) != claim) {
                    let other = crew.at_work(place, self.now).find(|(other, _)| *other != who(id));
                    if let Some((other, d)) = other {
                        return Err(format!(
                            "deployer {} has claimed {} #{}, and {other} is at work: {d:?}",
                            who(id),
                            new.name,
                            is.n
                        ));
                    }
                }
                let ended = is.status.is_final().then_some(is.status);
                self.seen[place].attempts.insert((is.n, is.attempt), ended);
                if is.status == Status::Complete {
                    complete(is, crew)?;
                }
            }
        }
        Ok(())
    }

    /// An attempt begins: of a new version, or of one that has failed.
    fn begins(&self, place: usize, (old, new): (&Config, &Config), is: &Deployment, table: &Table) -> Result<(), String> {
        let name = &new.name;
        if let Some(was) = old.last.as_ref().filter(|was| was.n == is.n) {
            return if (was.status, is.attempt) == (Status::Failed, was.attempt + 1) && was.snapshot == is.snapshot {
                Ok(())
            } else {
                Err(format!("{name}: {was:?} was tried again as {is:?}"))
            };
        }
        if is.n != old.latest + 1 || new.latest != is.n || is.attempt != 1 {
            return Err(format!("{name}: version {} follows version {}", is.n, old.latest));
        }
        // A person may resume it and ask for a version in one command, while a new definition pauses it again.
        if old.paused.is_some() && old.paused == new.paused {
            return Err(format!("{name} is paused, and #{} was cut: {:?}", is.n, is.causes));
        }
        // Where the items of a transaction appear one by one, the sequence may go on before the version appears.
        let asks =
            is.task.as_ref().filter(|_| old.pending.as_ref().is_none_or(|pending| pending.n != is.n) && table.staged.is_none());
        if let Some(task) = asks.filter(|task| !waits_for(task, table)) {
            return Err(format!("{name} #{} was cut for a task that no sequence waits for: {task:?}", is.n));
        }
        let asked = old.pending.is_some() || old.obeyed != new.obeyed;
        if old.suspended.is_some() && new.suspended.is_some() && !asked && by_trigger(&is.causes) {
            return Err(format!("triggers of {name} are suspended, and #{} was cut: {:?}", is.n, is.causes));
        }
        if table.peek(&keys::snapshot(&self.places[place].1, is.n, is.snapshot)).is_none() {
            return Err(format!("{name} #{} has no snapshot", is.n));
        }
        Ok(())
    }

    /// An attempt ends: whoever was given its work has said so, was not heard of, or had its time to stop.
    fn ends(&self, place: usize, was: &Deployment, crew: &mut Crew) -> Result<(), String> {
        let stopped = was.cancel.as_ref().is_some_and(|cancel| cancel.due <= self.now + Span(2 * self.skew.0));
        if stopped {
            crew.dismiss(place, (was.n, was.attempt));
        }
        let at_work = crew.at_work(place, self.now).find(|(_, d)| d.n == was.n && d.attempt == Some(was.attempt));
        match at_work {
            Some((who, d)) => Err(format!("#{} has ended, and deployer {who} is at work: {d:?}", was.n)),
            None => Ok(()),
        }
    }
}

/// Whether an execution waits for a task.
pub fn waits_for(task: &Task, table: &Table) -> bool {
    let waiting = RecordId::from_uuid(&task.triggered).map(|record| record.subject.to_string());
    let [project, ..] = &task.place;
    let key = Key::new(format!("C#{project}#{}", task.context), format!("X#{}", waiting.unwrap_or_default()));
    table.peek(&key).is_some_and(|item| item.text("gp1").is_some_and(|open| open.ends_with(&format!("#{}", task.name))))
}

/// The same attempt goes on.
fn stays(was: &Deployment, is: &Deployment) -> Result<(), String> {
    if was.status != is.status && !was.status.leads_to(is.status) {
        return Err(format!("{} became {}: {is:?}", was.status, is.status));
    }
    if (was.snapshot, &was.content, &was.causes) != (is.snapshot, &is.content, &is.causes) {
        return Err(format!("what a version deploys was changed: {was:?}, then {is:?}"));
    }
    let lent = was.part.as_ref().filter(|part| part.back.is_none() && !part.has_failed());
    if lent.is_some() && is.status == Status::Failed {
        return Err(format!("it failed, and what Keelway had changed was not taken back: {was:?}, then {is:?}"));
    }
    let id = |d: &Deployment| d.claim.as_ref().map(|claim| claim.id);
    if id(was).is_some() && id(was) != id(is) {
        return Err(format!("an attempt was claimed twice: {was:?}, then {is:?}"));
    }
    let report = |d: &Deployment| d.report.as_ref().map(|report| report.exit);
    if was.report.is_some() && report(was) != report(is) {
        return Err(format!("an attempt has ended twice: {was:?}, then {is:?}"));
    }
    if was.report.is_some() && was.cancel.is_none() && is.cancel.is_some() {
        return Err(format!("it was cancelled after its deployer had told its end: {was:?}, then {is:?}"));
    }
    Ok(())
}

/// Only the deployer of an attempt makes it complete, by saying so.
fn complete(is: &Deployment, crew: &Crew) -> Result<(), String> {
    let holder = is.claim.as_ref().and_then(|claim| crew.all.get(who(claim.id)));
    let said = holder.is_some_and(|d| d.n == is.n && d.said.contains(&0));
    let reported = is.report.as_ref().is_some_and(|report| report.exit == Some(0));
    if said && reported { Ok(()) } else { Err(format!("it is complete, and nobody said so: {is:?}")) }
}
