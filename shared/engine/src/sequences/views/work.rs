//! Open task triggers: for executors that poll, and for lists of approvals.
//!
//! The index lists the open tasks of a name in a fixed number of partitions, oldest first; a project is in one of them. So what is
//! open is one query for a project and a few for all projects, however many there are, and the oldest trigger comes first
//! whichever project it belongs to.

use super::MAX_PAGE;
use crate::item::{Item, Key};
use crate::ports::{Index, PortError, Ports, Query};
use crate::protocol::page::PAGE_BYTES;
use crate::protocol::record;
use crate::sequences::Sequences;
use crate::sequences::{Loaded, keys};
use futures_util::future::try_join_all;
use keelway_domain::ids::{ExecutionId, RecordHash, RecordId, hash64};
use keelway_domain::names::{ProjectName, ServiceName, StageName, TaskName};
use keelway_domain::sequences::Execution;
use serde_json::Value;

/// Index entries read from one partition, in one request: an entry has a few hundred bytes.
const LOOKED_AT: u32 = 1000;
/// The index may still show triggers that are over. So many more of its entries than a page has places are looked at in one go,
/// and so many times.
const SPARE: usize = 10;
const ROUNDS: usize = 5;
/// The most tasks that are looked for together.
pub const MAX_TASKS: usize = 10;

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
    /// A text that breaks the rule for names names nothing.
    fn can_match(&self) -> bool {
        let stage = self.stage.as_deref().is_none_or(|name| StageName::new(name).is_ok());
        stage && self.service.as_deref().is_none_or(|name| ServiceName::new(name).is_ok())
    }

    /// Compares an entry's sort key, `<ms>#<project>#<stage>#<service>#…`, and its record.
    fn takes(&self, entry: &Entry) -> bool {
        let mut names = entry.sort.split('#').skip(1);
        let mut is = |wanted: Option<&str>| {
            let name = names.next();
            wanted.is_none_or(|wanted| name == Some(wanted))
        };
        is(self.project.as_ref().map(ProjectName::as_str))
            && is(self.stage.as_deref())
            && is(self.service.as_deref())
            && self.id.is_none_or(|id| id == entry.record)
    }
}

/// Open triggers, and where the next page begins; `None` = there are no more.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WorkPage {
    /// Whole CloudEvents, oldest first.
    pub events: Vec<Value>,
    /// Where to continue; letters, digits, `-`, `_`, `.` and `~`.
    pub next: Option<String>,
}

/// What is open, as the index shows it: read in so many requests, whatever is open.
#[derive(Debug, Default)]
pub struct OpenWork {
    /// Oldest first.
    entries: Vec<Entry>,
    /// Up to where the index was read; `None`: to its end.
    read_to: Option<String>,
}

impl OpenWork {
    /// Stands for everything that is open: another one when a trigger comes or goes. `None` when there is more than was read.
    pub fn fingerprint(&self) -> Option<String> {
        let sorts: Vec<&[u8]> = self.entries.iter().map(|entry| entry.sort.as_bytes()).collect();
        self.read_to.is_none().then(|| keys::hash(hash64(&sorts)))
    }
}

/// An entry of the index: the key of the execution, and the trigger that was open.
#[derive(Debug)]
struct Entry {
    sort: String,
    execution: Key,
    record: RecordId,
}

impl Entry {
    /// `<ms>#<project>#<stage>#<service>#<execution>#<task>#<hash>`
    fn read(item: &Item) -> Option<Self> {
        let sort = item.text("gs1")?.to_owned();
        let mut parts = sort.rsplit('#');
        let (hash, number, subject) = (parts.next()?, parts.next()?, parts.next()?);
        let record =
            RecordId { subject: ExecutionId::parse(subject)?, number: number.parse().ok()?, hash: RecordHash::parse(hash)? };
        Some(Entry { execution: item.key.clone(), record, sort })
    }
}

/// A place in the list, as clients get it.
fn place(sort: &str) -> String {
    sort.replace('#', "~")
}

impl<P: Ports> Sequences<P> {
    /// What is open of these tasks, from the index alone. `after`: where the previous page ended.
    ///
    /// # Errors
    /// Of the ports.
    pub async fn open_work(&self, tasks: &[TaskName], filter: &WorkFilter, after: Option<&str>) -> Result<OpenWork, PortError> {
        if !filter.can_match() {
            return Ok(OpenWork::default());
        }
        let from = after.map(|place| place.replace('~', "#")).unwrap_or_default();
        let shards = match filter.project.as_ref().map(keys::task_shard) {
            Some(shard) => shard..shard + 1,
            None => 0..keys::TASK_SHARDS,
        };
        let partitions = tasks.iter().flat_map(|task| shards.clone().map(|shard| keys::open_tasks_in(shard, task.as_str())));
        let queries = partitions.map(|partition| {
            let query = Query { from: from.clone(), ..Query::index(Index::ByWork, partition, LOOKED_AT) };
            async move { self.ports.query(&query).await }
        });
        let pages = try_join_all(queries).await?;
        let unread = pages.iter().filter(|page| page.next.is_some());
        let read_to = unread.filter_map(|page| page.items.last()?.text("gs1").map(str::to_owned)).min();
        let entries = pages.iter().flat_map(|page| &page.items).filter_map(Entry::read);
        // Behind the end of what was read of one partition, older entries of it may be missing.
        let is_read = |entry: &Entry| read_to.as_ref().is_none_or(|read_to| entry.sort <= *read_to);
        let mut entries: Vec<Entry> = entries.filter(|e| e.sort != from && is_read(e) && filter.takes(e)).collect();
        entries.sort_by(|one, other| one.sort.cmp(&other.sort));
        Ok(OpenWork { entries, read_to })
    }

    /// A page of open triggers, oldest first.
    ///
    /// # Errors
    /// Of the ports.
    pub async fn work_page(&self, open: &OpenWork, size: usize) -> Result<WorkPage, PortError> {
        let size = size.clamp(1, MAX_PAGE);
        let (mut page, mut bytes, mut looked_at) = (WorkPage::default(), 0, 0);
        for entries in open.entries.chunks(size + SPARE).take(ROUNDS) {
            for (entry, event) in self.triggers(entries).await? {
                if page.events.len() >= size || bytes > PAGE_BYTES {
                    // The previous one was the last on the page.
                    return Ok(page);
                }
                bytes += event.to_string().len();
                page.events.push(event);
                page.next = Some(place(&entry.sort));
            }
            looked_at += entries.len();
            if page.events.len() >= size || bytes > PAGE_BYTES {
                break;
            }
        }
        let left = (looked_at < open.entries.len()).then(|| open.entries[looked_at - 1].sort.as_str());
        page.next = left.or(open.read_to.as_deref()).map(place);
        Ok(page)
    }

    /// The triggers of index entries, if they are still open, in the order of the entries.
    async fn triggers<'e>(&self, entries: &'e [Entry]) -> Result<Vec<(&'e Entry, Value)>, PortError> {
        let wanted: Vec<Key> = entries.iter().map(|entry| entry.execution.clone()).collect();
        let items = self.read(&wanted).await?;
        let mut open: Vec<(&Entry, Loaded)> = vec![];
        for entry in entries {
            let Some(item) = items.get(&entry.execution) else { continue };
            let loaded = Loaded::read(item)?;
            // The index lags: it may still show an answered trigger, or not yet show the next one.
            if loaded.x.is_open() && loaded.x.record == Some(entry.record) {
                open.push((entry, loaded));
            }
        }
        let of = |loaded: &Loaded, entry: &Entry| keys::record(&loaded.x.project, &loaded.x.context, &entry.record);
        let records: Vec<Key> = open.iter().map(|(entry, loaded)| of(loaded, entry)).collect();
        let records = if records.is_empty() { Default::default() } else { self.read(&records).await? };
        let trigger = |(entry, loaded): (&'e Entry, Loaded)| {
            let record = record::decode::<Execution>(records.get(&of(&loaded, entry)))?;
            Some((entry, record.trigger(&entry.record, &loaded.x.context)?.to_json()))
        };
        Ok(open.into_iter().filter_map(trigger).collect())
    }
}
