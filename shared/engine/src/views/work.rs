//! Open task triggers: for executors that poll, and for lists of approvals.
//!
//! The index lists the open tasks of a name in a fixed number of partitions, oldest first; a project is in one of them. So what is
//! open is one query for a project and a few for all projects, however many there are, and the oldest trigger comes first
//! whichever project it belongs to.
//!
//! Where nobody asks, tasks have no entries, except approvals. Whoever asks nevertheless is answered from the open executions.

use super::{MAX_PAGE, Views};
use crate::item::{Item, Key};
use crate::keys::{SHARDS, open_work};
use crate::ports::{Index, PortError, Ports, Query};
use crate::protocol::page::PAGE_BYTES;
use crate::protocol::{Subject, record};
use crate::refusal::Refusal;
use crate::sequences::{Loaded, NAME, keys};
use crate::table;
use futures_util::future::try_join_all;
use keelway_domain::ids::{ExecutionId, RecordHash, RecordId, hash64};
use keelway_domain::names::{ProjectName, ServiceName, StageName, TaskName};
use keelway_domain::sequences::Execution;
use keelway_domain::shipyard::APPROVAL;
use serde_json::Value;

/// Index entries read from one partition, in one request: an entry has a few hundred bytes.
const LOOKED_AT: u32 = 1000;
/// So many requests are made for one partition while fewer than `ENOUGH` entries are found in it: whoever is shown few projects is
/// not to wait behind the others' work.
const READS: usize = 5;
const ENOUGH: usize = 100;
/// The index may still show triggers that are over. So many more of its entries than a page has places are looked at in one go,
/// and so many times.
const SPARE: usize = 10;
const ROUNDS: usize = 5;
/// Open executions of one shard that are looked through where tasks have no entries.
const MOST_UNLISTED: usize = 5000;
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
    /// Oldest first; those of one millisecond by their hashes.
    entries: Vec<Entry>,
    /// Everything before this time was read; `None`: to the end of the index.
    read_to: Option<String>,
}

impl OpenWork {
    /// The executions whose tasks are open, oldest first.
    pub(super) fn executions(&self) -> impl Iterator<Item = &Key> {
        self.entries.iter().map(|entry| &entry.execution)
    }

    /// Whether nothing was left unread.
    pub(super) fn is_whole(&self) -> bool {
        self.read_to.is_none()
    }

    /// Stands for everything that is open and shown: another one when such a trigger comes or goes. `None` when there is more than
    /// was read.
    pub fn fingerprint(&self) -> Option<String> {
        let sorts: Vec<&[u8]> = self.entries.iter().map(|entry| entry.sort.as_bytes()).collect();
        self.read_to.is_none().then(|| keys::hash(hash64(&sorts)))
    }
}

/// An entry of the index: the key of the execution, and the trigger that was open.
#[derive(Debug)]
struct Entry {
    sort: String,
    /// Tells it apart from others of its time, without saying whose it is.
    hash: String,
    execution: Key,
    record: RecordId,
}

impl Entry {
    fn time(&self) -> &str {
        time_of(&self.sort)
    }

    fn project(&self) -> &str {
        self.sort.split('#').nth(1).unwrap_or_default()
    }

    /// Its place in the list, as clients get it: it names nothing.
    fn place(&self) -> String {
        format!("{}~{}", self.time(), self.hash)
    }

    /// `<ms>#<project>#<stage>#<service>#<execution>#<task>#<hash>`
    fn read(item: &Item) -> Option<Self> {
        let sort = item.text("gs1")?.to_owned();
        let mut parts = sort.rsplit('#');
        let (hash, number, subject) = (parts.next()?, parts.next()?, parts.next()?);
        let record =
            RecordId { subject: ExecutionId::parse(subject)?, number: number.parse().ok()?, hash: RecordHash::parse(hash)? };
        Some(Self::new(sort, item.key.clone(), record))
    }

    fn new(sort: String, execution: Key, record: RecordId) -> Self {
        let hash = keys::hash(hash64(&[b"place", sort.as_bytes(), execution.pk.as_bytes()]));
        Entry { execution, record, hash, sort }
    }

    /// What the entry of an execution's open task would be, with the task.
    fn of(x: &Execution) -> Option<(&str, Self)> {
        let (task, sent, record) = (x.open.as_ref()?, x.sent?, x.record?);
        Some((task.as_str(), Self::new(keys::open_task_sort(x, sent, &record), x.key(), record)))
    }
}

/// The time at the beginning of a sort key.
fn time_of(sort: &str) -> &str {
    sort.split('#').next().unwrap_or_default()
}

impl<P: Ports> Views<'_, P> {
    /// What is open of these tasks, from the index alone if they are listed there. `after`: where the previous page ended. `shown`:
    /// whether a task's triggers in a project are; what is not shown leaves no trace in the answer.
    ///
    /// # Errors
    /// So much is open that tasks would have to be listed.
    pub async fn open_work(
        &self,
        tasks: &[TaskName],
        filter: &WorkFilter,
        after: Option<&str>,
        shown: &(impl Fn(&str, &str) -> bool + Sync),
    ) -> Result<OpenWork, Refusal> {
        if !filter.can_match() {
            return Ok(OpenWork::default());
        }
        let (from, hash) = after.and_then(|place| place.split_once('~')).unwrap_or_default();
        let shards = match filter.project.as_ref().map(keys::task_shard) {
            Some(shard) => shard..shard + 1,
            None => 0..keys::TASK_SHARDS,
        };
        let takes = |task: &str, entry: &Entry| {
            // Those of one time are in the order of their hashes, so a page goes on behind one that is not there any more.
            let is_next = hash.is_empty() || (entry.time(), entry.hash.as_str()) > (from, hash);
            entry.time() >= from && is_next && filter.takes(entry) && shown(task, entry.project())
        };
        let is_listed = |task: &&TaskName| self.engine.limits.polled || task.as_str() == APPROVAL;
        let (listed, others): (Vec<&TaskName>, Vec<&TaskName>) = tasks.iter().partition(is_listed);
        let all = listed.iter().flat_map(|task| shards.clone().map(move |shard| (task.as_str(), shard)));
        let reads = all.map(|(task, shard)| self.open_in(keys::open_tasks_in(shard, task), from, move |entry| takes(task, entry)));
        let mut found = try_join_all(reads).await?;
        if !others.is_empty() {
            let wanted = |task: &str, entry: &Entry| others.iter().any(|other| other.as_str() == task) && takes(task, entry);
            found.push((self.unlisted(filter.project.as_ref(), wanted).await?, None));
        }
        // Behind the end of what was read of one partition, older entries of it may be missing.
        let read_to = found.iter().filter_map(|(_, read_to)| read_to.clone()).min();
        let is_read = |entry: &Entry| read_to.as_ref().is_none_or(|read_to| entry.time() < read_to.as_str());
        let mut entries: Vec<Entry> = found.into_iter().flat_map(|(entries, _)| entries).filter(is_read).collect();
        entries.sort_by(|one, other| (one.time(), &one.hash).cmp(&(other.time(), &other.hash)));
        Ok(OpenWork { entries, read_to })
    }

    /// What is taken of one partition from a time on, and the time before which all of it was read; `None`: it was read to its end.
    async fn open_in(
        &self,
        partition: String,
        from: &str,
        takes: impl Fn(&Entry) -> bool,
    ) -> Result<(Vec<Entry>, Option<String>), PortError> {
        let mut query = Query { from: from.to_owned(), ..Query::index(Index::ByWork, partition, LOOKED_AT) };
        let (mut entries, mut first, mut reads) = (vec![], None, 0);
        loop {
            let page = self.engine.ports.query(&query).await?;
            let times = |item: Option<&Item>| item.and_then(|item| item.text("gs1")).map(|sort| time_of(sort).to_owned());
            first = first.or_else(|| times(page.items.first()));
            let last = times(page.items.last());
            entries.extend(page.items.iter().filter_map(Entry::read).filter(|entry| takes(entry)));
            let Some(next) = page.next else { return Ok((entries, None)) };
            reads += 1;
            // The next page begins at the last time, so that must be later than the one at which this one began.
            if (reads >= READS || entries.len() >= ENOUGH) && last > first {
                return Ok((entries, last));
            }
            query.after = Some(next);
        }
    }

    /// The open tasks that are taken, from the executions themselves.
    async fn unlisted(&self, project: Option<&ProjectName>, takes: impl Fn(&str, &Entry) -> bool) -> Result<Vec<Entry>, Refusal> {
        let query = |partition: String| Query::index(Index::ByAge, partition, LOOKED_AT);
        let queries: Vec<Query> = match project {
            Some(project) => vec![query(keys::open_executions(project)).prefix(&keys::open_in(project))],
            None => (0..SHARDS).map(|shard| query(open_work(NAME, shard))).collect(),
        };
        let mut entries = vec![];
        for (open, more) in
            try_join_all(queries.into_iter().map(|query| table::all(&self.engine.ports, query, MOST_UNLISTED))).await?
        {
            if more {
                let message =
                    format!("more than {MOST_UNLISTED} sequences are open: set the parameter Polling of the stack to true");
                return Err(Refusal::TooLarge(message));
            }
            let wanted: Vec<Key> = open.into_iter().map(|item| item.key).collect();
            let items = if wanted.is_empty() { Default::default() } else { self.engine.read(&wanted).await? };
            for item in items.values() {
                let x = Loaded::read(item)?.x;
                entries.extend(Entry::of(&x).filter(|(task, entry)| takes(task, entry)).map(|(_, entry)| entry));
            }
        }
        Ok(entries)
    }

    /// A page of open triggers, oldest first.
    ///
    /// # Errors
    /// A port fails.
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
                page.next = Some(entry.place());
            }
            looked_at += entries.len();
            if page.events.len() >= size || bytes > PAGE_BYTES {
                break;
            }
        }
        let left = (looked_at < open.entries.len()).then(|| open.entries[looked_at - 1].place());
        page.next = left.or_else(|| open.read_to.as_ref().map(|time| format!("{time}~")));
        Ok(page)
    }

    /// The triggers of index entries, if they are still open, in the order of the entries.
    async fn triggers<'e>(&self, entries: &'e [Entry]) -> Result<Vec<(&'e Entry, Value)>, PortError> {
        let wanted: Vec<Key> = entries.iter().map(|entry| entry.execution.clone()).collect();
        let items = self.engine.read(&wanted).await?;
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
        let records = if records.is_empty() { Default::default() } else { self.engine.read(&records).await? };
        // Who decides wants to know what would be replaced.
        let lanes = self.lanes(open.iter().map(|(_, loaded)| &loaded.x).filter(|x| x.waits_for_approval())).await?;
        let trigger = |(entry, loaded): (&'e Entry, Loaded)| {
            let record = record::decode::<Execution>(records.get(&of(&loaded, entry)))?;
            let mut event = record.trigger(&entry.record, &loaded.x.context)?.to_json();
            if let Some(from) = lanes.running(&loaded.x).filter(|_| loaded.x.waits_for_approval()) {
                event["from"] = from.into();
            }
            Some((entry, event))
        };
        Ok(open.into_iter().filter_map(trigger).collect())
    }
}
