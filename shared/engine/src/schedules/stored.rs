//! Schedules as they are applied, shown and deleted. Applying has no effects of its own: the API writes the schedule, and then
//! tells the engine.

use super::{Loaded, Schedules, keys, look_at};
use crate::item::Key;
use crate::ports::{Cursor, PortError, Ports, Query};
use crate::projects::sequence_of;
use crate::protocol::change::{Step, change};
use crate::protocol::create;
use crate::refusal::Refusal;
use crate::table;
use keelway_domain::names::{ProjectName, SequenceName, StageName};
use keelway_domain::schedules::{Schedule, Spec, When};
use keelway_domain::shipyard::Shipyard;

/// The longest manifest of a schedule, in bytes.
const MAX_SOURCE_BYTES: usize = 64 * 1024;

/// Schedules of a project, and the name after which the next page begins.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SchedulePage {
    /// By name.
    pub schedules: Vec<Schedule>,
    /// If there may be more.
    pub next: Option<String>,
}

impl<P: Ports> Schedules<'_, P> {
    /// Whether a schedule could be applied: everything that depends on the clock and on its size.
    ///
    /// # Errors
    /// A manifest that is too long; times that have all passed, unless the schedule had them before.
    pub fn check(&self, found: Option<&Schedule>, spec: &Spec, source: &str) -> Result<(), Refusal> {
        if source.len() > MAX_SOURCE_BYTES {
            let size = source.len();
            return Err(Refusal::TooLarge(format!("the schedule has {size} bytes: at most {MAX_SOURCE_BYTES} can be stored")));
        }
        let now = self.engine.ports.now();
        let known = found.is_some_and(|found| {
            let old = &found.spec;
            (&old.when, old.start, old.end) == (&spec.when, spec.start, spec.end)
        });
        if known || (Spec { suspended: false, ..spec.clone() }).next(now).is_some() {
            return Ok(());
        }
        let (field, why) = match (&spec.when, spec.end) {
            (When::At(at), _) if *at <= now => ("spec.at", format!("{} has passed", at.rfc3339())),
            (When::At(_), _) => ("spec.at", "is not between `start` and `end`".into()),
            (When::Cron(_), Some(end)) if end <= now => ("spec.end", format!("{} has passed", end.rfc3339())),
            (When::Cron(_), _) => ("spec.cron", "does not come before `end`".into()),
        };
        Err(Refusal::Invalid { field, message: format!("{why}: nothing would ever be triggered; write a time to come") })
    }

    /// Whether a project has a sequence: in this shipyard, which is about to be applied, else in the one in force.
    ///
    /// # Errors
    /// An unknown project, stage or sequence.
    pub async fn check_sequence(
        &self,
        project: &ProjectName,
        shipyard: Option<&Shipyard>,
        (stage, sequence): (&StageName, &SequenceName),
    ) -> Result<(), Refusal> {
        let in_force = if shipyard.is_none() { Some(self.engine.projects().get(project).await?.shipyard) } else { None };
        let Some(shipyard) = shipyard.or(in_force.as_deref()) else { return Ok(()) };
        sequence_of(shipyard, stage.as_str(), sequence.as_str()).map(drop)
    }

    /// Puts a schedule in force; `false`: it was already.
    ///
    /// # Errors
    /// As [`Schedules::check_schedule`], and of the ports. Applying it again completes what was begun.
    pub async fn apply(&self, (project, name): (&ProjectName, &str), spec: &Spec, source: &str) -> Result<bool, Refusal> {
        let key = keys::schedule(project, name);
        let changed = change(&self.engine.ports, &key, |found| {
            let now = self.engine.ports.now();
            let found = found.map(Loaded::<Schedule>::read).transpose()?;
            let in_force = found.as_ref().map(|found| &found.x).filter(|x| !x.deleted);
            self.check(in_force, spec, source)?;
            if in_force.is_some_and(|x| x.spec == *spec && x.source == source) {
                return Ok::<_, Refusal>(Step::Leave(false));
            }
            let expires = now + self.engine.limits.retention;
            let write = match &found {
                Some(found) => found.update(&found.x.replaced(spec.clone(), source.to_owned(), now), expires, None),
                None => create(&Schedule::new(project.clone(), name.to_owned(), spec.clone(), source.to_owned(), now), expires),
            };
            Ok(Step::Write(write, true))
        });
        let changed = changed.await?;
        // Sent even when nothing changed: an earlier request may have stopped before it sent the message.
        table::send_all(&self.engine.ports, &[look_at(project, name)]).await?;
        Ok(changed)
    }

    /// A schedule.
    ///
    /// # Errors
    /// A port fails.
    pub async fn get(&self, project: &ProjectName, name: &str) -> Result<Option<Schedule>, PortError> {
        let found = self.engine.ports.get(&keys::schedule(project, name)).await?;
        let found = found.map(|item| Loaded::<Schedule>::read(&item).map(|found| found.x)).transpose()?;
        Ok(found.filter(|x| !x.deleted))
    }

    /// At most `most` schedules of a project, those after `after` by name. A page may have fewer although it is not the last one.
    ///
    /// # Errors
    /// A port fails.
    pub async fn page(&self, project: &ProjectName, after: Option<&str>, most: u32) -> Result<SchedulePage, PortError> {
        let partition = keys::schedules(project);
        let after =
            after.map(|name| Cursor { key: Key::new(partition.clone(), keys::schedule(project, name).sk), index_sort: None });
        let query = Query::table(partition, most).prefix(keys::SCHEDULE).after(after);
        let (items, more) = table::all(&self.engine.ports, query, most as usize).await?;
        let mut schedules = vec![];
        for item in &items {
            schedules.push(Loaded::<Schedule>::read(item)?.x);
        }
        let next = schedules.last().map(|last| last.name.clone()).filter(|_| more);
        schedules.retain(|x| !x.deleted);
        Ok(SchedulePage { schedules, next })
    }

    /// Takes a schedule out of force; what it has triggered goes on. `false`: there is none.
    ///
    /// # Errors
    /// A port fails.
    pub async fn delete(&self, project: &ProjectName, name: &str) -> Result<bool, PortError> {
        let key = keys::schedule(project, name);
        change(&self.engine.ports, &key, |found| {
            let found = found.map(Loaded::<Schedule>::read).transpose()?;
            let Some(found) = found.filter(|found| !found.x.deleted) else { return Ok(Step::Leave(false)) };
            let write = found.update(&found.x.gone(), self.engine.ports.now() + self.engine.limits.retention, None);
            Ok(Step::Write(write, true))
        })
        .await
    }
}
