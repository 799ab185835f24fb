//! Everything that is open, of one project or of many: what it waits for, and which version runs where it is to go. Approvals are
//! found by an index of their own, so that none is left out because much else is open.

use super::execution::{self, Behind, Shown};
use super::{ExecutionFilter, MAX_PAGE, Position, TimePage, Views, WorkFilter};
use crate::item::{Item, Key};
use crate::ports::{PortError, Ports};
use crate::projects;
use crate::protocol::{Subject, open};
use crate::refusal::Refusal;
use crate::sequences::keys::LaneKey;
use crate::sequences::standing::Running;
use crate::sequences::{Loaded, keys, lane};
use keelway_domain::names::{ProjectName, TaskName};
use keelway_domain::sequences::{Execution, Policy};
use keelway_domain::shipyard::APPROVAL;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};

/// Open executions that are looked at for one answer, and approvals among them.
const OPEN: usize = 500;

/// An open execution in the list of what waits.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenExecution {
    /// As the list of executions shows it.
    pub shown: Value,
    /// The image that runs in its place now.
    pub from: Option<String>,
}

/// The lanes of executions.
#[derive(Default)]
pub(super) struct Lanes {
    locks: HashMap<Key, Item>,
    /// Who holds them.
    pub behind: Behind,
}

impl Lanes {
    /// The image that runs in the place of an execution.
    pub fn running(&self, x: &Execution) -> Option<String> {
        let lock = LaneKey::of(x).lock();
        // What the holder has done is not in the lock before it leaves.
        let told = [Running::of(x), self.behind.get(&lock).and_then(Running::of), self.locks.get(&lock).and_then(Running::read)];
        told.into_iter().flatten().max_by_key(|one| one.deployed.at)?.deployed.image
    }
}

impl<P: Ports> Views<'_, P> {
    /// What is open `among` some projects, or in all: the oldest approvals, then the oldest others, and whether there is more.
    ///
    /// # Errors
    /// A port fails.
    pub async fn open(&self, among: Option<&[ProjectName]>) -> Result<(Vec<OpenExecution>, bool), Refusal> {
        let Ok(approval) = TaskName::new(APPROVAL) else { return Ok((vec![], false)) };
        let shown = |_: &str, project: &str| among.is_none_or(|among| among.iter().any(|one| one.as_str() == project));
        let filter = match among {
            Some([project]) => WorkFilter { project: Some(project.clone()), ..WorkFilter::default() },
            _ => WorkFilter::default(),
        };
        let approvals = self.open_work(&[approval], &filter, None, &shown).await?;
        let mut wanted: Vec<Key> = approvals.executions().take(OPEN).cloned().collect();
        let mut more = !approvals.is_whole() || wanted.len() == OPEN;
        wanted.dedup();
        let items = if wanted.is_empty() { HashMap::new() } else { self.engine.read(&wanted).await? };
        let mut found = vec![];
        for item in wanted.iter().filter_map(|key| items.get(key)) {
            match Loaded::read(item) {
                Ok(loaded) => found.extend(Some(loaded.x).filter(Execution::waits_for_approval)),
                Err(error) if error.is_of_an_item() => more = true,
                Err(error) => return Err(error.into()),
            }
        }
        let others = open::open::<Execution>(&self.engine.ports, among, OPEN).await?;
        more |= others.more;
        let known: BTreeSet<Key> = found.iter().map(Subject::key).collect();
        found.extend(others.subjects.into_iter().filter(|x| !known.contains(&x.key())));
        Ok((self.told(found).await?, more))
    }

    /// A page of a project's open executions, in the order of their ids, and whether there are more than the oldest 500. What has
    /// ended is not read.
    ///
    /// # Errors
    /// An unknown project.
    pub async fn open_executions(
        &self,
        project: &ProjectName,
        filter: &ExecutionFilter,
        (size, from): (usize, Position),
    ) -> Result<(TimePage, bool), Refusal> {
        self.known(project).await?;
        let found = open::open::<Execution>(&self.engine.ports, Some(std::slice::from_ref(project)), OPEN).await?;
        let (size, more) = (size.clamp(1, MAX_PAGE), found.more);
        let mut open: Vec<(Position, Execution)> = vec![];
        for x in found.subjects {
            let one = Shown { x, depth: 0 };
            if filter.takes(&one) {
                open.push((super::executions::position(one.x.id), one.x));
            }
        }
        open.sort_by_key(|(at, x)| (*at, x.id));
        open.retain(|(at, _)| *at > from);
        // No page ends between executions of the same position.
        let end = open.get(size.saturating_sub(1)).map_or(open.len(), |(last, _)| open.partition_point(|(at, _)| at <= last));
        let next = open.get(end).and_then(|_| open.get(end - 1)).map_or(0, |(at, _)| *at);
        open.truncate(end);
        let told = self.told(open.into_iter().map(|(_, x)| x).collect()).await?;
        Ok((TimePage { items: told.into_iter().map(|one| one.shown).collect(), next }, more))
    }

    /// Executions of any projects as the list of executions shows them.
    async fn told(&self, found: Vec<Execution>) -> Result<Vec<OpenExecution>, PortError> {
        let names: BTreeSet<&ProjectName> = found.iter().map(|x| &x.project).collect();
        let wanted: Vec<Key> = names.iter().map(|name| projects::keys::project(name)).collect();
        let items = if wanted.is_empty() { HashMap::new() } else { self.engine.read(&wanted).await? };
        let mut policies: HashMap<ProjectName, Policy> = HashMap::new();
        for name in names {
            let policy = self.engine.project(name, items.get(&projects::keys::project(name))).await?.policy;
            policies.insert(name.clone(), policy);
        }
        let lanes = self.lanes(found.iter()).await?;
        let heard = self.heard(found.iter()).await?;
        let mut told = vec![];
        for x in found {
            let Some(policy) = policies.get(&x.project) else { continue };
            let from = lanes.running(&x);
            let shipyard = self.accepted_with(&x).await?;
            let definition = shipyard.as_deref().and_then(|shipyard| execution::definition(&x, shipyard));
            let one = Shown { x, depth: 0 };
            let mut shown = execution::shown(&one, definition.as_ref(), policy, &lanes.behind);
            heard.tell(&one.x, &mut shown);
            shown["project"] = json!(one.x.project.as_str());
            shown["service"] = json!(one.x.service.as_str());
            shown["shkeptncontext"] = json!(one.x.context.as_str());
            told.push(OpenExecution { shown, from });
        }
        Ok(told)
    }

    /// The lanes of executions, with who holds them: two requests for each 100.
    pub(super) async fn lanes<'x>(&self, found: impl Iterator<Item = &'x Execution>) -> Result<Lanes, PortError> {
        let all: HashMap<Key, &ProjectName> = found.map(|x| (LaneKey::of(x).lock(), &x.project)).collect();
        if all.is_empty() {
            return Ok(Lanes::default());
        }
        let locks = self.engine.read(&all.keys().cloned().collect::<Vec<_>>()).await?;
        let holder = |lock: &Item| {
            let project = all.get(&lock.key)?;
            Some((lock.key.clone(), keys::execution(&lane::holder(project, lock)?)))
        };
        let holders: HashMap<Key, Key> = locks.values().filter_map(holder).collect();
        let wanted: Vec<Key> = holders.values().cloned().collect();
        let items = if wanted.is_empty() { HashMap::new() } else { self.engine.read(&wanted).await? };
        let mut behind = Behind::new();
        for (lock, holder) in holders {
            if let Some(item) = items.get(&holder) {
                behind.insert(lock, Loaded::read(item)?.x);
            }
        }
        Ok(Lanes { locks, behind })
    }
}
