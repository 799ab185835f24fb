//! Reading what a decision needs.

use super::Engine;
use super::codec::{self, Loaded, LoadedContext};
use crate::item::{Item, Key};
use crate::keys;
use crate::message::Address;
use crate::ports::{PortError, Ports};
use crate::table;
use keelway_domain::event::{CloudEvent, Object};
use keelway_domain::ids::RecordId;
use keelway_domain::names::{Context, ProjectName};
use keelway_domain::sequences::{Execution, Policy, Record, first_payload};
use keelway_domain::shipyard::{Sequence, Shipyard};
use keelway_domain::time::Span;
use std::collections::HashMap;
use std::sync::Arc;

/// Revisions kept in memory; they are immutable and small.
const CACHED_REVISIONS: usize = 64;

/// A project as decisions see it.
#[derive(Debug, Clone)]
pub(super) struct Project {
    /// It exists.
    pub exists: bool,
    /// The revision in force; empty = no shipyard applied yet.
    pub revision: String,
    /// That revision.
    pub shipyard: Arc<Shipyard>,
    /// Deadlines and limits.
    pub policy: Policy,
}

impl<P: Ports> Engine<P> {
    /// Reads items by key.
    pub(super) async fn read(&self, keys: &[Key]) -> Result<HashMap<Key, Item>, PortError> {
        table::read(&self.ports, keys).await
    }

    /// Reads an execution.
    pub(super) async fn execution(&self, to: &Address) -> Result<Option<Loaded>, PortError> {
        self.read(&[keys::execution(to)]).await?.values().next().map(codec::execution).transpose()
    }

    /// Reads a context's flags.
    pub(super) async fn context(&self, project: &ProjectName, context: &Context) -> Result<LoadedContext, PortError> {
        Ok(codec::context(self.read(&[keys::context(project, context)]).await?.values().next()))
    }

    /// The project of that item, with the shipyard in force.
    pub(super) async fn project(&self, name: &ProjectName, item: Option<&Item>) -> Result<Project, PortError> {
        let span = |attribute: &str| item.and_then(|item| item.number(attribute)).map(Span);
        let policy = Policy {
            start_deadline: span("sd").unwrap_or(self.limits.start_deadline),
            task_timeout: span("tt").unwrap_or(self.limits.task_timeout),
            max_event_bytes: self.limits.max_event_bytes,
        };
        let revision = item.and_then(|item| item.text("rev")).unwrap_or_default().to_owned();
        let shipyard = self.shipyard(name, &revision).await?;
        Ok(Project { exists: item.is_some(), revision, shipyard, policy })
    }

    /// An applied revision, from the cache or the table; the empty revision is an empty shipyard.
    pub(super) async fn shipyard(&self, project: &ProjectName, revision: &str) -> Result<Arc<Shipyard>, PortError> {
        if revision.is_empty() {
            return Ok(Arc::new(Shipyard { stages: vec![] }));
        }
        let name = (project.to_string(), revision.to_owned());
        let cached = self.revisions.lock().map(|cache| cache.get(&name).cloned()).unwrap_or_default();
        if let Some(shipyard) = cached {
            return Ok(shipyard);
        }
        let key = keys::revision(project, revision);
        let unusable = |what: String| PortError::Refused { request: "GetItem", reason: format!("shipyard revision {key} {what}") };
        let items = self.read(std::slice::from_ref(&key)).await?;
        let text = items.get(&key).and_then(|item| item.text("j")).ok_or_else(|| unusable("is missing".into()))?;
        let shipyard: Shipyard = serde_json::from_str(text).map_err(|error| unusable(format!("cannot be read: {error}")))?;
        let shipyard = Arc::new(shipyard);
        if let Ok(mut cache) = self.revisions.lock() {
            if cache.len() >= CACHED_REVISIONS {
                cache.clear();
            }
            cache.insert(name, shipyard.clone());
        }
        Ok(shipyard)
    }

    /// The definition an execution was accepted with.
    pub(super) async fn sequence(&self, x: &Execution) -> Result<Sequence, PortError> {
        let shipyard = self.shipyard(&x.project, &x.revision).await?;
        let defined = shipyard.stage(&x.stage).and_then(|stage| stage.sequence(&x.sequence));
        let missing =
            || PortError::Refused { request: "decide", reason: format!("no sequence {} in stage {}", x.sequence, x.stage) };
        defined.or_else(|| x.outcome.map(|_| Sequence::none())).ok_or_else(missing)
    }

    /// The record a state names.
    pub(super) async fn record(&self, x: &Execution) -> Result<Option<Record>, PortError> {
        match x.record {
            Some(id) => self.record_of(&x.project, &x.context, &id).await,
            None => Ok(None),
        }
    }

    /// A record by its address.
    pub(super) async fn record_of(
        &self,
        project: &ProjectName,
        context: &Context,
        id: &RecordId,
    ) -> Result<Option<Record>, PortError> {
        let key = keys::record(project, context, id);
        Ok(decode_record(self.read(std::slice::from_ref(&key)).await?.get(&key)))
    }

    /// The payload an execution has gathered: its record's, or before its first task its trigger's.
    pub(super) async fn base(&self, x: &Execution) -> Result<Object, PortError> {
        if x.record.is_some() {
            return Ok(self.record(x).await?.map(|record| record.base).unwrap_or_default());
        }
        let key = Key::new(keys::context_partition(&x.project, &x.context), x.payload.clone());
        let items = self.read(std::slice::from_ref(&key)).await?;
        let data = match items.get(&key) {
            Some(item) if item.key.sk.starts_with("T#") => decode_record(Some(item)).map(|record| record.base),
            Some(item) => super::history::decode(item).map(|event| event.data),
            None => None,
        };
        let lost = || PortError::Refused { request: "GetItem", reason: format!("the first payload of {key} has expired") };
        Ok(first_payload(&data.ok_or_else(lost)?, x))
    }

    /// Recorded events by acceptance time and content.
    pub(super) async fn events(
        &self,
        x: &Execution,
        which: &[(keelway_domain::time::Timestamp, u64)],
    ) -> Result<Vec<CloudEvent>, PortError> {
        if which.is_empty() {
            return Ok(vec![]);
        }
        let partition = keys::context_partition(&x.project, &x.context);
        let keys: Vec<Key> =
            which.iter().map(|(at, content)| Key::new(partition.clone(), keys::event_sort(*at, *content))).collect();
        let items = self.read(&keys).await?;
        Ok(items.values().filter_map(super::history::decode).collect())
    }
}

/// Reads a stored record.
pub(super) fn decode_record(item: Option<&Item>) -> Option<Record> {
    item.and_then(|item| item.text("j")).and_then(|text| serde_json::from_str(text).ok())
}
