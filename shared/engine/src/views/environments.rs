//! Which version runs where: one entry per stage and service. The locks of the lanes tell what runs and how the last sequence
//! ended; the index of open executions leads to what is on its way. The requests depend on the number of services and stages on the
//! page, never on the length of their history.

use super::execution::{self, Behind, Shown};
use super::heard::Heard;
use super::{MAX_PAGE, Views};
use crate::item::{Item, Key};
use crate::ports::{Index, PortError, Ports, Query};
use crate::projects;
use crate::refusal::Refusal;
use crate::sequences::keys::LaneKey;
use crate::sequences::standing::{Last, Running};
use crate::sequences::{Loaded, keys, lane};
use crate::table;
use keelway_domain::names::{ProjectName, ServiceName};
use keelway_domain::sequences::{Execution, Policy};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// Open executions of the project that are looked through.
const OPEN: u32 = 500;

/// Stages times services on a page.
const PLACES: usize = 1000;

/// Which environments are wanted.
#[derive(Debug, Clone, Default)]
pub struct EnvironmentFilter {
    /// Only this stage.
    pub stage: Option<String>,
    /// Only this service.
    pub service: Option<String>,
}

/// Stage and service.
type Place = (String, String);

impl<P: Ports> Views<'_, P> {
    /// The stages of at most `size` services, those after `after` by name; and the service after which the next page begins.
    ///
    /// # Errors
    /// An unknown project or stage.
    pub async fn environments(
        &self,
        project: &ProjectName,
        filter: &EnvironmentFilter,
        size: usize,
        after: Option<&str>,
    ) -> Result<(Vec<Value>, Option<String>), Refusal> {
        let known = self.engine.projects().get(project).await?;
        let stages: Vec<&str> = known.shipyard.stages.iter().map(|stage| stage.name.as_str()).collect();
        if let Some(stage) = filter.stage.as_deref().filter(|stage| !stages.contains(stage)) {
            return Err(Refusal::unknown("stage", stage, stages.iter().copied()));
        }
        if filter.service.as_deref().is_some_and(|name| ServiceName::new(name).is_err()) {
            return Ok((vec![], None));
        }
        let size = size.clamp(1, MAX_PAGE).min(PLACES / stages.len().max(1)).max(1);
        let (services, more) = match &filter.service {
            Some(service) => (vec![service.clone()], false),
            None => {
                let (listed, more) =
                    self.engine.projects().services(project, after, u32::try_from(size).unwrap_or(u32::MAX)).await?;
                (listed.into_iter().map(|(name, _)| name).collect(), more)
            }
        };
        let mut places: Vec<Place> = vec![];
        for service in &services {
            let wanted = stages.iter().filter(|stage| filter.stage.as_deref().is_none_or(|wanted| wanted == **stage));
            places.extend(wanted.map(|stage| ((*stage).to_owned(), service.clone())));
        }
        let next = if more { services.last().cloned() } else { None };
        Ok((self.standing(project, &places).await?, next))
    }

    /// These places, without those where nothing has ever happened.
    async fn standing(&self, project: &ProjectName, places: &[Place]) -> Result<Vec<Value>, PortError> {
        let lock = |place: &Place| LaneKey::at(project, &place.0, &place.1).lock();
        let mut wanted: Vec<Key> = places.iter().map(lock).collect();
        wanted.push(projects::keys::project(project));
        let items = self.engine.read(&wanted).await?;
        let policy = self.engine.project(project, items.get(&projects::keys::project(project))).await?.policy;
        let locks = || places.iter().filter_map(|place| items.get(&lock(place)));
        let holders: Vec<Key> = locks().filter_map(|lock| lane::holder(project, lock)).map(|to| keys::execution(&to)).collect();
        let found = self.candidates(project, holders).await?;
        let heard = self.heard(found.iter()).await?;
        let behind: Behind = locks()
            .filter_map(|lock| {
                let holder = lane::holder(project, lock)?;
                Some((lock.key.clone(), found.iter().find(|x| x.id == holder.execution)?.clone()))
            })
            .collect();
        let mut by_place: BTreeMap<Place, Vec<Execution>> = BTreeMap::new();
        for x in found {
            by_place.entry((x.stage.clone(), x.service.to_string())).or_default().push(x);
        }
        let mut told = vec![];
        for place in places {
            let found = by_place.remove(place).unwrap_or_default();
            told.extend(self.environment(place, items.get(&lock(place)), found, (&policy, &behind, &heard)).await?);
        }
        Ok(told)
    }

    async fn environment(
        &self,
        (stage, service): &Place,
        lock: Option<&Item>,
        found: Vec<Execution>,
        (policy, behind, heard): (&Policy, &Behind, &Heard),
    ) -> Result<Option<Value>, PortError> {
        // What an execution has done that still holds the lane, or has just left it, is not in the lock yet.
        let running = found.iter().filter_map(Running::of).chain(lock.and_then(Running::read)).max_by_key(|one| one.deployed.at);
        let last = found.iter().filter_map(Last::of).chain(lock.and_then(Last::read)).max_by_key(|one| one.outcome.at);
        let coming: Vec<Execution> = found.into_iter().filter(|x| x.outcome.is_none()).collect();
        if running.is_none() && last.is_none() && coming.is_empty() {
            return Ok(None);
        }
        let mut told = json!({"stage": stage, "service": service});
        if let Some(running) = running {
            if let Some(image) = running.deployed.image {
                told["image"] = json!(image);
            }
            told["since"] = json!(running.deployed.at.rfc3339());
            told["shkeptncontext"] = json!(running.context.as_str());
            told["deliveryAcceptedAt"] = json!(running.accepted.rfc3339());
        }
        if let Some(last) = last {
            told["last"] = json!({
                "sequence": last.sequence, "shkeptncontext": last.context.as_str(), "result": last.outcome.result.as_str(),
                "status": last.outcome.status.as_str(), "finishedAt": last.outcome.at.rfc3339(),
            });
        }
        let mut shown = vec![];
        for x in coming {
            let shipyard = self.accepted_with(&x).await?;
            let sequence = shipyard.as_deref().and_then(|shipyard| execution::definition(&x, shipyard));
            let context = x.context.to_string();
            let one = Shown { x, depth: 0 };
            let mut coming = execution::shown(&one, sequence.as_ref(), policy, behind);
            heard.tell(&one.x, &mut coming);
            coming["shkeptncontext"] = json!(context);
            shown.push(coming);
        }
        told["coming"] = json!(shown);
        Ok(Some(told))
    }

    /// The open executions of a project, and those that locks name, in the order they were caused. The index may lag.
    pub(super) async fn candidates(&self, project: &ProjectName, holders: Vec<Key>) -> Result<Vec<Execution>, PortError> {
        let query = Query::index(Index::ByAge, keys::open_executions(project), OPEN).prefix(&keys::open_in(project));
        let (entries, _) = table::all(&self.engine.ports, query, OPEN as usize).await?;
        let mut wanted = holders;
        wanted.extend(entries.into_iter().map(|entry| entry.key));
        wanted.sort();
        wanted.dedup();
        let items = if wanted.is_empty() { HashMap::new() } else { self.engine.read(&wanted).await? };
        let mut found = vec![];
        for item in items.values() {
            found.push(Loaded::read(item)?.x);
        }
        found.sort_by_key(|x| (x.caused, x.id));
        Ok(found)
    }
}
