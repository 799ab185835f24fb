//! Open task triggers: for executors that poll, and for lists of approvals.

use super::MAX_PAGE;
use crate::item::{Item, Key};
use crate::ports::{Index, PortError, Ports, Query};
use crate::protocol::page::PAGE_BYTES;
use crate::protocol::record;
use crate::sequences::Sequences;
use crate::sequences::definitions::Refusal;
use crate::sequences::{Loaded, keys};
use keelway_domain::ids::{ExecutionId, RecordHash, RecordId};
use keelway_domain::names::{ProjectName, ServiceName, StageName, TaskName};
use keelway_domain::sequences::Execution;
use serde_json::Value;

/// Index entries read for one page.
const LOOKED_AT: usize = 1000;
/// Projects searched for one page, when none is named.
const PROJECTS: u32 = 50;

/// Which open triggers are wanted.
#[derive(Debug, Clone, Default)]
pub struct WorkFilter {
    /// Of this project; `None`: of any.
    pub project: Option<ProjectName>,
    /// Of this stage.
    pub stage: Option<String>,
    /// Of this service.
    pub service: Option<String>,
    /// The one with this id.
    pub id: Option<RecordId>,
}

impl WorkFilter {
    /// A text that breaks the rule for names names nothing, and may be longer than any key of the table.
    fn can_match(&self) -> bool {
        let stage = self.stage.as_deref().is_none_or(|name| StageName::new(name).is_ok());
        stage && self.service.as_deref().is_none_or(|name| ServiceName::new(name).is_ok())
    }
}

/// Open triggers, and where the next page begins; `None` = there are no more.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WorkPage {
    /// Whole CloudEvents.
    pub events: Vec<Value>,
    /// Where to continue; letters, digits, `-`, `_`, `.` and `~`.
    pub next: Option<String>,
}

/// An entry of the index: the key of the execution, and the trigger that was open.
struct Entry {
    sort: String,
    execution: Key,
    record: RecordId,
}

impl<P: Ports> Sequences<P> {
    /// Open triggers of a task, by project, stage, service and time. `after`: where the previous page ended.
    ///
    /// # Errors
    /// An unknown project.
    pub async fn open_triggers(
        &self,
        task: &TaskName,
        filter: &WorkFilter,
        size: usize,
        after: Option<&str>,
    ) -> Result<WorkPage, Refusal> {
        let size = size.clamp(1, MAX_PAGE);
        let (mut project, mut sort) = match after.and_then(|after| after.split_once('~')) {
            Some((project, sort)) => (ProjectName::new(project).ok(), sort.replace('~', "#")),
            None => (None, String::new()),
        };
        let (mut projects, more) = match (&filter.project, &project) {
            (Some(named), _) => {
                self.known(named).await?;
                (vec![named.clone()], false)
            }
            (None, None) => self.project_names(None, PROJECTS).await?,
            (None, Some(at)) => {
                let (later, more) = self.project_names(Some(at.as_str()), PROJECTS).await?;
                (std::iter::once(at.clone()).chain(later).collect(), more)
            }
        };
        if !filter.can_match() {
            return Ok(WorkPage::default());
        }
        let behind = if more { projects.pop() } else { None };
        let mut page = WorkPage::default();
        for name in &projects {
            let from = if project.as_ref() == Some(name) { std::mem::take(&mut sort) } else { String::new() };
            project = None;
            self.open_in(name, task, filter, size, &from, &mut page).await?;
            if page.next.is_some() {
                return Ok(page);
            }
        }
        page.next = behind.map(|behind| format!("{behind}~"));
        Ok(page)
    }

    /// Adds the open triggers of one project to the page, those whose sort key is after `from`.
    async fn open_in(
        &self,
        project: &ProjectName,
        task: &TaskName,
        filter: &WorkFilter,
        size: usize,
        from: &str,
        page: &mut WorkPage,
    ) -> Result<(), PortError> {
        let partition = keys::open_tasks(project, task.as_str());
        let prefix = match (&filter.stage, &filter.service) {
            (Some(stage), Some(service)) => format!("{stage}#{service}#"),
            (Some(stage), None) => format!("{stage}#"),
            (None, _) => String::new(),
        };
        let mut query = Query::index(Index::ByWork, partition.clone(), 100);
        if !prefix.is_empty() {
            query = query.prefix(&prefix);
        }
        if !from.is_empty() {
            query.from = from.max(&prefix).to_owned();
        }
        let mut bytes = page.events.iter().map(|event| event.to_string().len()).sum::<usize>();
        if page.events.len() >= size || bytes > PAGE_BYTES {
            page.next = Some(format!("{project}~{}", from.replace('#', "~")));
            return Ok(());
        }
        let mut looked_at = 0;
        loop {
            let found = self.ports.query(&query).await?;
            looked_at += found.items.len();
            let entries: Vec<Entry> =
                found.items.iter().filter_map(entry).filter(|e| e.sort != from && wanted(e, filter)).collect();
            let last = found.items.last().and_then(|item| item.text("gs1")).unwrap_or_default().to_owned();
            for (sort, event) in self.triggers(project, &partition, entries).await? {
                if page.events.len() >= size || bytes > PAGE_BYTES {
                    // The previous one was the last on the page.
                    return Ok(());
                }
                bytes += event.to_string().len();
                page.events.push(event);
                page.next = Some(format!("{project}~{}", sort.replace('#', "~")));
            }
            match found.next {
                None => {
                    page.next = None;
                    return Ok(());
                }
                Some(_) if looked_at >= LOOKED_AT || page.events.len() >= size => {
                    page.next = Some(format!("{project}~{}", last.replace('#', "~")));
                    return Ok(());
                }
                Some(next) => query.after = Some(next),
            }
        }
    }

    /// The triggers of index entries, if they are still open, in the order of the entries.
    async fn triggers(
        &self,
        project: &ProjectName,
        partition: &str,
        entries: Vec<Entry>,
    ) -> Result<Vec<(String, Value)>, PortError> {
        if entries.is_empty() {
            return Ok(vec![]);
        }
        let wanted: Vec<Key> = entries.iter().map(|entry| entry.execution.clone()).collect();
        let items = self.read(&wanted).await?;
        let mut open: Vec<(Entry, Loaded)> = vec![];
        for entry in entries {
            let Some(item) = items.get(&entry.execution) else { continue };
            let loaded = Loaded::read(item)?;
            // The index lags: it may still show an answered trigger, or not yet show the next one.
            if loaded.x.is_open() && loaded.x.record == Some(entry.record) && item.text("gp1") == Some(partition) {
                open.push((entry, loaded));
            }
        }
        let records: Vec<Key> =
            open.iter().map(|(entry, loaded)| keys::record(project, &loaded.x.context, &entry.record)).collect();
        let records = if records.is_empty() { Default::default() } else { self.read(&records).await? };
        let trigger = |(entry, loaded): (Entry, Loaded)| {
            let record = record::decode::<Execution>(records.get(&keys::record(project, &loaded.x.context, &entry.record)))?;
            Some((entry.sort, record.trigger(&entry.record, &loaded.x.context)?.to_json()))
        };
        Ok(open.into_iter().filter_map(trigger).collect())
    }
}

/// `<stage>#<service>#<ms>#<execution>#<task>#<hash>`
fn entry(item: &Item) -> Option<Entry> {
    let sort = item.text("gs1")?.to_owned();
    let mut parts = sort.rsplit('#');
    let (hash, number, subject) = (parts.next()?, parts.next()?, parts.next()?);
    let record = RecordId { subject: ExecutionId::parse(subject)?, number: number.parse().ok()?, hash: RecordHash::parse(hash)? };
    Some(Entry { execution: item.key.clone(), record, sort })
}

fn wanted(entry: &Entry, filter: &WorkFilter) -> bool {
    let service = entry.sort.split('#').nth(1);
    filter.service.as_deref().is_none_or(|name| service == Some(name)) && filter.id.is_none_or(|id| id == entry.record)
}
