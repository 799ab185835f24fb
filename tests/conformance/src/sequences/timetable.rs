//! Schedules: each time fires once, is skipped with a reason, or is left out because it was too late; no firing is lost.

use super::check::project;
use super::planted::Seen;
use keelway_domain::ids::ExecutionId;
use keelway_domain::names::{Context, ServiceName};
use keelway_domain::schedules::{Concurrency, Firing, Last, Schedule};
use keelway_domain::sequences::Execution;
use keelway_domain::stored::Recorded;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::item::{Item, Key};
use keelway_engine::keys::record_sort;
use keelway_engine::protocol::Loaded;
use keelway_engine::schedules;
use keelway_engine::sequences::{Address, keys};
use keelway_world::table::{Change, Table};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// A run that is not there may be on its way for this long.
const ON_ITS_WAY: Span = Span::minutes(10);

/// When executions were born and when they ended, counted in requests.
#[derive(Clone, Copy)]
pub struct Lives<'a> {
    pub born: &'a HashMap<Key, u64>,
    pub ended: &'a HashMap<Key, u64>,
}

/// What the watcher remembers of schedules.
#[derive(Default)]
pub struct Timetable {
    fired: BTreeSet<(String, Timestamp)>,
    firings: Vec<(String, Address)>,
    roots: BTreeMap<Context, ExecutionId>,
}

fn is_new(x: &Schedule) -> bool {
    !x.planned && x.next.is_none() && x.last.is_none() && x.runs.is_empty()
}

fn read(item: Option<&Arc<Item>>) -> Result<Option<(Schedule, i64)>, String> {
    let read = |item: &Arc<Item>| Loaded::<Schedule>::read(item).map(|loaded| (loaded.x, loaded.version));
    item.map(read).transpose().map_err(|e| e.to_string())
}

impl Timetable {
    /// A schedule changed.
    pub fn changed(&mut self, change: &Change, table: &Table, seen: &Seen, lives: Lives<'_>) -> Result<(), String> {
        let (old, new) = (read(change.old.as_ref())?, read(change.new.as_ref())?);
        let wrong = |what: &str| Err(format!("{what}: {old:?} became {new:?}"));
        match (&old, &new) {
            (None, Some((new, version))) if *version == 1 && is_new(new) => {}
            (Some((_, before)), Some((_, after))) if *after != before + 1 => return wrong("a schedule was written over"),
            (Some((old, _)), Some((new, _))) if new.deleted => {
                if *new != old.gone() || old.deleted {
                    return wrong("a schedule that is deleted changes otherwise");
                }
                // Its times may come again if it does; what they start has the same ids.
                self.fired.retain(|(name, _)| *name != old.name);
            }
            (Some((old, _)), Some((new, _))) if old.deleted => {
                if !is_new(new) || new.record != old.record {
                    return wrong("a schedule that was deleted does not begin anew");
                }
            }
            (Some((old, _)), Some((new, _))) if !new.planned => {
                if new.next.is_some() || new.runs != old.runs || new.last != old.last {
                    return wrong("a schedule that is applied again forgets something");
                }
            }
            (Some((old, _)), Some((new, _))) if !old.planned => {
                let after = old.last.as_ref().map_or(old.applied, |last| last.at.max(old.applied));
                if new.spec != old.spec || new.next != new.spec.next(after) || new.last != old.last {
                    return wrong("a schedule is planned for another time than its next one");
                }
            }
            (Some((old, _)), Some((new, version))) if new.spec == old.spec && new.applied == old.applied => {
                let looked = seen.runs.get(&(change.key.clone(), *version)).copied().unwrap_or(0);
                if let Err(what) = self.fires((old, new), table, (lives, looked)) {
                    return wrong(&what);
                }
            }
            _ => return wrong("a schedule changes otherwise than it may"),
        }
        Ok(())
    }

    fn fires(
        &mut self,
        (old, new): (&Schedule, &Schedule),
        table: &Table,
        (lives, looked): (Lives<'_>, u64),
    ) -> Result<(), String> {
        let (Some(at), Some(last)) = (old.next, &new.last) else { return Err("a schedule changes though nothing is due".into()) };
        if last.at != at || last.fired < at || !self.fired.insert((old.name.clone(), at)) {
            return Err("a schedule fires at another time, early, or twice".into());
        }
        let following = old.spec.next(at);
        let late = following.is_some_and(|following| following <= last.fired);
        if last.late != late || new.next != if late { old.spec.next(last.fired) } else { following } {
            return Err("a time of a schedule is lost".into());
        }
        let record = new.record.and_then(|id| table.peek(&Key::new(schedules::keys::schedules(&old.project), record_sort(&id))));
        let record = record.and_then(|item| Firing::record_from_json(item.text("j")?).ok()).ok_or("it has no record")?;
        let made: BTreeSet<&ServiceName> = record.sends.iter().map(|firing| &firing.service).collect();
        let wanted: BTreeSet<&ServiceName> = old.spec.services.iter().filter(|name| !last.skipped.contains(name)).collect();
        if made != wanted || record.sends.iter().any(|firing| firing.at != at) {
            return Err(format!("it should fire for {wanted:?} and fires for {made:?}"));
        }
        skips(old, last, table, (lives, looked))?;
        for firing in record.sends {
            self.roots.insert(firing.context.clone(), firing.execution);
            let to = Address { project: old.project.clone(), context: firing.context, execution: firing.execution };
            self.firings.push((old.name.clone(), to));
        }
        Ok(())
    }

    /// One firing starts one execution; all others of its context follow it.
    pub fn born(&self, x: &Execution) -> Result<(), String> {
        match self.roots.get(&x.context) {
            Some(root) if x.parent.is_none() && *root != x.id => Err(format!("a firing starts {root} and also {x:?}")),
            _ => Ok(()),
        }
    }

    /// No schedule sleeps, and every firing became an execution. How many there were.
    pub fn at_rest(&self, table: &Table) -> Result<u64, String> {
        for (name, to) in &self.firings {
            if table.peek(&keys::execution(to)).is_none() {
                return Err(format!("schedule {name} fired, and nothing came of it: {to:?}"));
            }
        }
        for item in table
            .partition(&schedules::keys::schedules(&project()))
            .filter(|item| item.key.sk.starts_with(schedules::keys::SCHEDULE))
        {
            let (x, _) = read(Some(item))?.ok_or("it is there")?;
            if !x.planned || x.next.is_some() {
                return Err(format!("a schedule sleeps: {x:?}"));
            }
        }
        Ok(self.firings.len() as u64)
    }
}

/// A service is skipped if, and only if, its last run was open when it was looked at, at `looked` or later. Times do not tell:
/// whoever ends an execution may have read the clock long before.
fn skips(old: &Schedule, last: &Last, table: &Table, (lives, looked): (Lives<'_>, u64)) -> Result<(), String> {
    for service in &old.spec.services {
        let skipped = last.skipped.contains(service);
        let Some(run) = old.runs.get(service).filter(|_| old.spec.concurrency == Concurrency::Skip) else {
            if skipped {
                return Err(format!("{service} is skipped for no reason"));
            }
            continue;
        };
        let partition = keys::context_partition(&old.project, &run.context);
        let all: Vec<&Key> = table.partition(&partition).map(|item| &item.key).filter(|key| key.sk.starts_with("X#")).collect();
        let was_there = |key: &Key| lives.born.get(key).is_some_and(|born| *born < looked);
        let may_be_open = all.iter().any(|key| lives.ended.get(*key).is_none_or(|ended| *ended >= looked));
        let on_its_way = last.fired < run.at + ON_ITS_WAY && !all.iter().any(|key| was_there(key));
        if skipped && !may_be_open && !on_its_way {
            return Err(format!("{service} is skipped though its last run is over"));
        }
        if !skipped && all.iter().any(|key| !lives.ended.contains_key(*key) && was_there(key)) {
            return Err(format!("{service} is not skipped though its last run is open"));
        }
    }
    Ok(())
}
