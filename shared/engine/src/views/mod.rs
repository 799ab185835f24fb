//! What the API shows, in Keptn's shape where Keptn has one. Nothing is scanned; every answer is bounded, and says where to
//! continue.
//!
//! States are derived from the executions' facts, never stored. The indexes hold only keys and lag behind: they
//! locate the items, and the answer is read from the items themselves.

mod contexts;
mod environments;
mod events;
mod execution;
mod executions;
mod heard;
mod links;
mod open;
mod queue;
mod stages;
mod work;

pub use contexts::SequenceFilter;
pub use environments::EnvironmentFilter;
pub use events::EventFilter;
pub use executions::{ExecutionFilter, first_behind, position};
pub use links::Links;
pub use open::OpenExecution;
pub use work::{MAX_TASKS, OpenWork, WorkFilter, WorkPage};

use crate::item::{Item, Key};
use crate::ports::{Index, PortError, Ports, Query};
pub use crate::protocol::page::{MAX_PAGE, Position, TimePage, Window};
use crate::protocol::page::{place, slot, split};
use crate::refusal::Refusal;
use crate::sequences::{Sequences, keys};
use keelway_domain::names::{Context, ProjectName};
use keelway_domain::time::Timestamp;

/// A context in the list of a project's contexts.
struct Listed {
    context: Context,
    /// The position right after it.
    position: Position,
}

/// What is shown, read from the engine's items.
pub struct Views<'a, P> {
    engine: &'a Sequences<P>,
}

impl<P: Ports> Sequences<P> {
    /// What is shown of it.
    pub fn views(&self) -> Views<'_, P> {
        Views { engine: self }
    }
}

impl<P: Ports> Views<'_, P> {
    /// Contexts of a project, newest first, `most` and those at the same position as the last one; and whether there may be more.
    async fn contexts(
        &self,
        project: &ProjectName,
        window: Window,
        from: Position,
        most: usize,
    ) -> Result<(Vec<Listed>, bool), PortError> {
        let (at, behind) = split(from);
        let newest = match (from, window.before) {
            (0, None) => None,
            (0, Some(before)) => Some(Timestamp(before.0 - 1)),
            (_, before) => Some(before.map_or(at, |before| at.min(Timestamp(before.0 - 1)))),
        };
        let mut query = Query::index(Index::ByAge, keys::contexts(project), 100).newest_first();
        query.from = window.after.map(|after| keys::age_bound(Timestamp(after.0 + 1))).unwrap_or_default();
        query.to = newest.map(|newest| format!("{}#\u{10ffff}", keys::age_bound(newest)));
        let mut listed: Vec<Listed> = vec![];
        // Those of one millisecond are put in the order of their positions, so all of them are read first.
        let (mut together, mut of) = (vec![], Timestamp(-1));
        loop {
            let page = self.engine.ports.query(&query).await?;
            for (accepted, context) in page.items.iter().filter_map(age_entry) {
                if accepted != of {
                    listed.append(&mut together);
                    of = accepted;
                    if listed.len() > most {
                        return Ok((up_to(listed, most).0, true));
                    }
                }
                let n = slot(context.as_str());
                if from == 0 || accepted != at || n > behind {
                    let entry = Listed { position: place(accepted, n), context };
                    together.insert(together.partition_point(|one: &Listed| one.position <= entry.position), entry);
                }
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => {
                    listed.append(&mut together);
                    return Ok(up_to(listed, most));
                }
            }
        }
    }

    /// All items of a query, at most `most` and about `bytes`; `false`: there is more.
    async fn bounded(&self, query: Query, most: usize, bytes: usize) -> Result<(Vec<Item>, bool), PortError> {
        let (mut query, mut items, mut size) = (query, vec![], 0);
        loop {
            let page = self.engine.ports.query(&query).await?;
            size += page.items.iter().map(Item::size).sum::<usize>();
            items.extend(page.items);
            match page.next {
                None => return Ok((items, true)),
                Some(_) if items.len() >= most || size >= bytes => return Ok((items, false)),
                Some(next) => query.after = Some(next),
            }
        }
    }

    /// The projects that have a context of this name, among the first 1,000 projects.
    ///
    /// # Errors
    /// A port fails.
    pub async fn projects_of(&self, context: &Context) -> Result<Vec<ProjectName>, PortError> {
        let (names, _) = self.engine.projects().names(None, 1000).await?;
        let wanted: Vec<Key> = names.iter().map(|name| keys::context(name, context)).collect();
        let found = if wanted.is_empty() { Default::default() } else { self.engine.read(&wanted).await? };
        Ok(names.into_iter().filter(|name| found.contains_key(&keys::context(name, context))).collect())
    }

    /// Whether a project exists.
    async fn known(&self, project: &ProjectName) -> Result<(), Refusal> {
        self.engine.projects().item(project).await.map(drop)
    }
}

/// The first `most`, with those that stand at the same position as the last of them: no page ends between these. And whether there
/// are more.
fn up_to(mut listed: Vec<Listed>, most: usize) -> (Vec<Listed>, bool) {
    let last = most.checked_sub(1).and_then(|last| listed.get(last)).map(|last| last.position);
    let same = listed.iter().skip(most).take_while(|one| Some(one.position) == last).count();
    let more = listed.len() > most + same;
    listed.truncate(most + same);
    (listed, more)
}

/// Time and context of an entry in an index by age.
fn age_entry(item: &Item) -> Option<(Timestamp, Context)> {
    let mut parts = item.text("gs2")?.splitn(3, '#');
    let at = Timestamp(parts.next()?.parse().ok()?);
    Some((at, Context::new(parts.next()?).ok()?))
}
