//! What the API shows, shaped as Keptn's where it has the shape. Nothing is scanned; every answer is bounded, and says where to go on.
//!
//! States are derived from the executions' facts, never stored. The indexes hold keys only and lag behind: they say where to
//! look, and what is shown comes from the items themselves.

mod contexts;
mod events;
mod work;

pub use contexts::SequenceFilter;
pub use events::EventFilter;
pub use work::{WorkFilter, WorkPage};

use super::Engine;
use super::definitions::Refusal;
use crate::item::Item;
use crate::keys;
use crate::ports::{Index, PortError, Ports, Query};
use keelway_domain::names::{Context, ProjectName};
use keelway_domain::time::Timestamp;
use serde_json::Value;

/// A place in a list by time: milliseconds × 1000 + how many entries of that millisecond are behind it. 0 = the beginning, and as
/// the next place the end.
pub type Position = i64;

/// The most entries of one millisecond that a position tells apart.
const IN_ONE_MS: i64 = 999;
/// The most entries on one page.
pub const MAX_PAGE: usize = 100;
/// A page that has come to so many bytes ends, however many entries it has: a function's answer may have 6 MB.
const PAGE_BYTES: usize = 3 << 20;

/// Part of a list, and where the next part begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// As the API shows them.
    pub items: Vec<Value>,
    /// 0 = there is no more.
    pub next: Position,
}

/// Which entries are wanted by time, both ends left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Window {
    /// Later than this.
    pub after: Option<Timestamp>,
    /// Earlier than this.
    pub before: Option<Timestamp>,
}

impl Window {
    fn contains(&self, at: Timestamp) -> bool {
        self.after.is_none_or(|after| at > after) && self.before.is_none_or(|before| at < before)
    }
}

/// A context in the list of a project's contexts.
struct Listed {
    context: Context,
    /// The place right behind it.
    position: Position,
}

fn split(position: Position) -> (Timestamp, i64) {
    (Timestamp(position.div_euclid(1000)), position.rem_euclid(1000))
}

fn place(at: Timestamp, n: i64) -> Position {
    at.0.saturating_mul(1000).saturating_add(n.min(IN_ONE_MS))
}

impl<P: Ports> Engine<P> {
    /// Contexts of a project, newest first, at most `most`; and whether there may be more.
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
        let (mut last, mut n) = (Timestamp(-1), 0);
        loop {
            let page = self.ports.query(&query).await?;
            for item in &page.items {
                let Some((accepted, context)) = age_entry(item) else { continue };
                n = if accepted == last { n + 1 } else { 1 };
                last = accepted;
                if from != 0 && accepted == at && n <= behind {
                    continue;
                }
                if listed.len() == most {
                    return Ok((listed, true));
                }
                listed.push(Listed { context, position: place(accepted, n) });
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok((listed, false)),
            }
        }
    }

    /// All items of a query, at most `most` and about `bytes`; `false`: there is more.
    async fn bounded(&self, query: Query, most: usize, bytes: usize) -> Result<(Vec<Item>, bool), PortError> {
        let (mut query, mut items, mut size) = (query, vec![], 0);
        loop {
            let page = self.ports.query(&query).await?;
            size += page.items.iter().map(Item::size).sum::<usize>();
            items.extend(page.items);
            match page.next {
                None => return Ok((items, true)),
                Some(_) if items.len() >= most || size >= bytes => return Ok((items, false)),
                Some(next) => query.after = Some(next),
            }
        }
    }

    /// Whether a project exists.
    async fn known(&self, project: &ProjectName) -> Result<(), Refusal> {
        self.project_item(project).await.map(drop)
    }
}

/// Time and context of an entry in an index by age.
fn age_entry(item: &Item) -> Option<(Timestamp, Context)> {
    let mut parts = item.text("gs2")?.splitn(3, '#');
    let at = Timestamp(parts.next()?.parse().ok()?);
    Some((at, Context::new(parts.next()?).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_names_the_entries_of_a_millisecond_behind_it() {
        let now = Timestamp(1_795_222_266_686);
        assert_eq!(place(now, 3), 1_795_222_266_686_003);
        assert_eq!(split(place(now, 3)), (now, 3));
        assert_eq!(split(place(now, 5000)), (now, 999));
    }
}
