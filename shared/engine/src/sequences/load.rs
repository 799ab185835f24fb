//! Reading what a decision needs.

use super::codec::LoadedContext;
use super::message::Address;
use super::subject::gathered;
use super::{Loaded, MOST_OPEN, Sequences, codec, history, keys};
use crate::item::{Item, Key};
use crate::ports::{Index, PortError, Ports, Query};
use crate::projects;
use crate::protocol::{self, record};
use crate::table::{self, Items};
use keelway_domain::cause::Cause;
use keelway_domain::event::{CloudEvent, Object};
use keelway_domain::names::{Context, ProjectName};
use keelway_domain::sequences::{Execution, Facts, Flags, Policy, RECORDS, Remediation, first_payload};
use keelway_domain::shipyard::{Sequence, Shipyard};
use keelway_domain::time::{Span, Timestamp};
use std::sync::Arc;

/// A project as decisions see it.
#[derive(Debug, Clone)]
pub(crate) struct Project {
    /// It exists.
    pub exists: bool,
    /// The revision in force; empty = no shipyard applied yet.
    pub revision: String,
    /// That revision.
    pub shipyard: Arc<Shipyard>,
    /// Deadlines and limits.
    pub policy: Policy,
}

/// What was read for a decision about an execution.
pub(super) struct Reading {
    /// The definition it was accepted with.
    pub sequence: Sequence,
    /// Its project.
    pub project: Project,
    /// The payload gathered so far, if needed.
    pub base: Object,
    /// The events behind the answers of the open task, if needed.
    pub events: Vec<CloudEvent>,
    /// What is stored about remediations, if needed.
    pub remediation: Option<Remediation>,
}

impl Reading {
    /// What every decision needs; `items` holds the project.
    pub async fn of<P: Ports>(engine: &Sequences<P>, x: &Execution, items: &Items) -> Result<Self, PortError> {
        let project = engine.project(&x.project, items.get(&projects::keys::project(&x.project))).await?;
        let sequence = engine.sequence(x).await?;
        let remediation = engine.remediation_of(x, &sequence).await?;
        Ok(Self { sequence, project, base: Object::new(), events: vec![], remediation })
    }

    /// The form that the decision takes.
    pub fn facts<'a>(&'a self, now: Timestamp, cause: Cause, flags: &'a Flags) -> Facts<'a> {
        Facts {
            now,
            cause,
            flags,
            sequence: &self.sequence,
            current: (&self.project.revision, &self.project.shipyard),
            base: &self.base,
            events: &self.events,
            remediation: self.remediation.as_ref(),
            policy: self.project.policy,
        }
    }
}

impl<P: Ports> Sequences<P> {
    /// Reads items by key.
    pub(crate) async fn read(&self, keys: &[Key]) -> Result<Items, PortError> {
        table::read(&self.ports, keys).await
    }

    /// Reads an execution.
    pub(crate) async fn execution(&self, to: &Address) -> Result<Option<Loaded>, PortError> {
        self.read(&[keys::execution(to)]).await?.values().next().map(protocol::Loaded::read).transpose()
    }

    /// Reads a context's flags.
    pub(crate) async fn context(&self, project: &ProjectName, context: &Context) -> Result<LoadedContext, PortError> {
        Ok(codec::context(self.read(&[keys::context(project, context)]).await?.values().next()))
    }

    /// The project stored in that item, with the shipyard in force.
    pub(crate) async fn project(&self, name: &ProjectName, item: Option<&Item>) -> Result<Project, PortError> {
        let span = |attribute: &str| item.and_then(|item| item.number(attribute)).map(Span);
        let policy = Policy {
            start_deadline: span("sd").unwrap_or(self.limits.start_deadline),
            task_timeout: span("tt").unwrap_or(self.limits.task_timeout),
            max_event_bytes: self.limits.max_event_bytes,
            max_record_bytes: record::MAX_BYTES,
            polled: self.limits.polled,
        };
        let revision = item.and_then(|item| item.text("rev")).unwrap_or_default().to_owned();
        let shipyard = self.projects().shipyard(name, &revision).await?;
        Ok(Project { exists: item.is_some(), revision, shipyard, policy })
    }

    /// What is open in a project, of at most 1,000 sequences; and whether there may be more. The index they are found by lags.
    pub(crate) async fn open_of(&self, project: &ProjectName) -> Result<(Vec<Execution>, bool), PortError> {
        let open = Query::index(Index::ByAge, keys::open_executions(project), MOST_OPEN).prefix(&keys::open_in(project));
        let (entries, more) = table::all(&self.ports, open, MOST_OPEN as usize).await?;
        let wanted: Vec<Key> = entries.into_iter().map(|entry| entry.key).collect();
        let items = if wanted.is_empty() { Default::default() } else { self.read(&wanted).await? };
        let mut open = vec![];
        // Oldest first.
        for item in wanted.iter().filter_map(|key| items.get(key)) {
            open.extend(Some(Loaded::read(item)?.x).filter(|x| x.outcome.is_none()));
        }
        Ok((open, more))
    }

    /// The definition an execution was accepted with.
    pub(crate) async fn sequence(&self, x: &Execution) -> Result<Sequence, PortError> {
        let shipyard = self.projects().shipyard(&x.project, &x.revision).await?;
        let defined = shipyard.stage(&x.stage).and_then(|stage| stage.sequence(&x.sequence));
        let missing =
            || PortError::Refused { request: "decide", reason: format!("no sequence {} in stage {}", x.sequence, x.stage) };
        defined.or_else(|| x.outcome.map(|_| Sequence::none())).ok_or_else(missing)
    }

    /// The payload an execution has gathered, from what has been read or else from the table.
    pub(crate) async fn base(&self, x: &Execution, read: &Items) -> Result<Object, PortError> {
        let key = Key::new(keys::context_partition(&x.project, &x.context), gathered(x));
        let more = if read.contains_key(&key) { Items::new() } else { self.read(std::slice::from_ref(&key)).await? };
        let data = read.get(&key).or(more.get(&key)).and_then(payload);
        let data = data.ok_or_else(|| expired(&format!("the payload of {}", x.id), &key))?;
        Ok(if x.record.is_some() { data } else { first_payload(&data, x) })
    }

    /// Recorded answers to the open task, by acceptance time and content.
    pub(super) async fn events(&self, x: &Execution, which: &[(Timestamp, u64)]) -> Result<Vec<CloudEvent>, PortError> {
        if which.is_empty() {
            return Ok(vec![]);
        }
        let partition = keys::context_partition(&x.project, &x.context);
        let keys: Vec<Key> =
            which.iter().map(|(at, content)| Key::new(partition.clone(), keys::event_sort(*at, *content))).collect();
        let items = self.read(&keys).await?;
        let event = |key: &Key| items.get(key).and_then(history::decode).ok_or_else(|| expired("an answer to the open task", key));
        keys.iter().map(event).collect()
    }
}

/// The payload that a record or a recorded event holds.
pub(crate) fn payload(item: &Item) -> Option<Object> {
    match item.key.sk.starts_with(RECORDS) {
        true => record::decode::<Execution>(Some(item)).map(|record| record.base),
        false => history::decode(item).map(|event| event.data),
    }
}

/// The error when something that an open execution needs has expired, because the sweep did not run for the whole retention period.
fn expired(what: &str, key: &Key) -> PortError {
    let reason = format!("{what} has expired ({key}): abort the sequence and trigger it again");
    PortError::Refused { request: "GetItem", reason }
}
