//! Shipyards: the revision in force, and those before it.
//!
//! A revision is an immutable item named by its content. The project's item names the one in force and its entry in the history,
//! which names the entry before it. Entries are written ahead of the project's item, the only commit: one whose writer lost is on
//! no way from the project's item back, and is passed over.

use super::{FORMAT, Projects, keys};
use crate::item::{Item, MAX_ITEM_BYTES};
use crate::ports::{Cursor, PortError, Ports, Query};
use crate::protocol::check_format;
use crate::refusal::Refusal;
use crate::table;
use keelway_domain::names::ProjectName;
use keelway_domain::shipyard::Shipyard;
use keelway_domain::stored::Stored;
use keelway_domain::time::Timestamp;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The longest text of a shipyard document, in bytes: it is stored in one item, next to the parsed form.
pub const MAX_SOURCE_BYTES: usize = 300 * 1024;
/// Revisions kept in memory; they are immutable and small.
const CACHED: usize = 64;
/// Entries of the history that are read at once.
const PAGE: u32 = 100;
/// The digits of an entry's number, and of the hash of its content.
const NUMBER: usize = 10;
const HASH: usize = 12;

/// An applied shipyard revision's document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    /// The text as it was applied.
    pub source: String,
    /// When it was first applied.
    pub applied: Timestamp,
}

/// A shipyard as it is applied.
#[derive(Debug, Clone, Copy)]
pub struct NewShipyard<'a> {
    /// Its revision.
    pub revision: &'a str,
    /// The text.
    pub source: &'a str,
    /// What was read from it.
    pub shipyard: &'a Shipyard,
    /// Apply it only if this revision is in force.
    pub replaces: Option<&'a str>,
    /// Who applies it, as they call themselves; may be empty.
    pub by: &'a str,
}

/// What an applied shipyard changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// Whether another revision was in force, or none.
    pub changed: bool,
    /// The revision that was in force before; `None`: there was none.
    pub before: Option<String>,
}

/// One time that a revision was put in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InForce {
    /// Counts the times, from 1.
    pub number: i64,
    /// Which revision.
    pub revision: String,
    /// When.
    pub applied: Timestamp,
    /// Who put it in force, as they called themselves; may be empty.
    pub by: String,
}

impl NewShipyard<'_> {
    /// Whether it is in force already in the project of that item.
    pub(crate) fn is_in_force(&self, project: &ProjectName, present: &Item) -> Result<bool, Refusal> {
        match (in_force(present), self.replaces) {
            // Also when it replaced the required one a moment ago: the same request again gets the same answer.
            (Some(in_force), _) if in_force == self.revision => Ok(true),
            (_, None) => Ok(false),
            (Some(in_force), Some(required)) if in_force == required => Ok(false),
            (in_force, Some(required)) => Err(Refusal::NotInForce(format!(
                "project {project} has {}, and not the required revision {required:?}: look at what was applied since (keelway diff \
                 shipyard {project} {required}, or GET /v1/project/{project}/shipyard), then apply again and require that",
                in_force.map_or_else(|| "no shipyard in force".to_owned(), |revision| format!("revision {revision} in force"))
            ))),
        }
    }
}

/// The revision in force in the project of that item.
pub(crate) fn in_force(project: &Item) -> Option<&str> {
    project.text("rev").filter(|revision| !revision.is_empty())
}

/// Whether a text can name an entry of the history: its number and the hash of its content, `0000000003-1f0c9d82be44`.
pub fn is_place(text: &str) -> bool {
    let fits = |text: &str, length, inside: fn(char) -> bool| text.len() == length && text.chars().all(inside);
    text.split_once('-').is_some_and(|(number, hash)| {
        fits(number, NUMBER, |c| c.is_ascii_digit()) && fits(hash, HASH, |c| matches!(c, '0'..='9' | 'a'..='f'))
    })
}

/// The revision a shipyard document is: its git blob id, so that git and executors know it by the same name.
pub fn blob_id(source: impl AsRef<[u8]>) -> String {
    let source = source.as_ref();
    let mut sha = sha1_smol::Sha1::new();
    sha.update(format!("blob {}\0", source.len()).as_bytes());
    sha.update(source);
    sha.digest().to_string()
}

/// Project and revision.
type Named = (String, String);

/// The revisions that were read, which never change.
#[derive(Default)]
pub struct Revisions(Mutex<HashMap<Named, Arc<Shipyard>>>);

impl Revisions {
    /// The same revisions in another memory.
    pub fn copy(&self) -> Self {
        Self(Mutex::new(self.locked().clone()))
    }
    /// Whether both remember the same revisions.
    pub fn are(&self, other: &Self) -> bool {
        let names = |revisions: &Self| revisions.locked().keys().cloned().collect::<HashSet<_>>();
        names(self) == names(other)
    }
    fn get(&self, name: &Named) -> Option<Arc<Shipyard>> {
        self.locked().get(name).cloned()
    }
    fn keep(&self, name: Named, shipyard: Arc<Shipyard>) {
        let mut kept = self.locked();
        if kept.len() >= CACHED {
            kept.clear();
        }
        kept.insert(name, shipyard);
    }
    fn locked(&self) -> MutexGuard<'_, HashMap<Named, Arc<Shipyard>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P: Ports> Projects<'_, P> {
    /// An applied revision, from the memory or the table; the empty revision is an empty shipyard.
    pub(crate) async fn shipyard(&self, project: &ProjectName, revision: &str) -> Result<Arc<Shipyard>, PortError> {
        if revision.is_empty() {
            return Ok(Arc::new(Shipyard { stages: vec![] }));
        }
        let name = (project.to_string(), revision.to_owned());
        if let Some(shipyard) = self.revisions.get(&name) {
            return Ok(shipyard);
        }
        let key = keys::revision(project, revision);
        let unusable = |what: String| PortError::Refused { request: "GetItem", reason: format!("shipyard revision {key} {what}") };
        let items = table::read(self.ports, std::slice::from_ref(&key)).await?;
        let text = items.get(&key).and_then(|item| item.text("j")).ok_or_else(|| unusable("is missing".into()))?;
        let shipyard = Shipyard::from_json(text).map_err(|error| unusable(format!("cannot be read: {error}")))?;
        let shipyard = Arc::new(shipyard);
        self.revisions.keep(name, shipyard.clone());
        Ok(shipyard)
    }

    /// A shipyard revision's document.
    ///
    /// # Errors
    /// A port fails.
    pub async fn revision(&self, project: &ProjectName, revision: &str) -> Result<Option<Revision>, PortError> {
        let item = self.ports.get(&keys::revision(project, revision)).await?;
        Ok(item.map(|item| Revision {
            source: item.text("src").unwrap_or_default().to_owned(),
            applied: Timestamp(item.number("at").unwrap_or(0)),
        }))
    }

    /// The times that revisions were put in force, newest first: from the entry of the history that `from` names, else from the one
    /// in force; at most `most`. And the first entry of the next page.
    ///
    /// # Errors
    /// An unknown project.
    pub async fn history(
        &self,
        project: &ProjectName,
        from: Option<String>,
        most: usize,
    ) -> Result<(Vec<InForce>, Option<String>), Refusal> {
        let item = self.item(project).await?;
        check_format(&item, FORMAT)?;
        let mut wanted = from.or_else(|| item.text("h").map(str::to_owned));
        let mut found: Vec<InForce> = vec![];
        let mut after: Option<Cursor> = None;
        while let Some(newest) = wanted.clone() {
            let mut query = Query::table(keys::project_partition(project), PAGE).prefix(keys::HISTORY).newest_first().after(after);
            query.to = Some(keys::history(project, &newest).sk);
            let page = self.ports.query(&query).await?;
            for item in page.items.iter() {
                if wanted.as_ref().is_none_or(|wanted| item.key != keys::history(project, wanted)) {
                    continue;
                }
                if found.len() == most {
                    return Ok((found, wanted));
                }
                found.push(InForce {
                    number: item.number("n").unwrap_or(0),
                    revision: item.text("rev").unwrap_or_default().to_owned(),
                    applied: Timestamp(item.number("at").unwrap_or(0)),
                    by: item.text("by").unwrap_or_default().to_owned(),
                });
                wanted = item.text("before").filter(|before| !before.is_empty()).map(str::to_owned);
            }
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        Ok((found, None))
    }

    /// The entry of the history for a revision that is about to be put in force.
    pub(crate) fn entry(&self, project: &ProjectName, (number, new): (i64, NewShipyard<'_>), before: &str) -> (String, Item) {
        let now = self.ports.now();
        let content = format!("{}\n{}\n{}\n{before}", new.revision, now.0, new.by);
        let hash: String = blob_id(&content).chars().take(HASH).collect();
        let place = format!("{number:0NUMBER$}-{hash}");
        let item = Item::new(keys::history(project, &place))
            .with("n", number)
            .with("rev", new.revision)
            .with("at", now.0)
            .with("by", new.by)
            .with("before", before);
        (place, item)
    }

    pub(crate) fn revision_item(&self, project: &ProjectName, new: NewShipyard<'_>) -> Result<Item, Refusal> {
        let NewShipyard { revision, source, shipyard, .. } = new;
        if source.len() > MAX_SOURCE_BYTES {
            let size = source.len();
            return Err(Refusal::TooLarge(format!("the shipyard has {size} bytes: at most {MAX_SOURCE_BYTES} can be stored")));
        }
        let item = Item::new(keys::revision(project, revision))
            .with("j", shipyard.to_json())
            .with("src", source)
            .with("at", self.ports.now().0);
        if item.size() > MAX_ITEM_BYTES {
            let size = item.size();
            let message =
                format!("the shipyard comes to {size} bytes with what is read from it: at most {MAX_ITEM_BYTES} can be stored");
            return Err(Refusal::TooLarge(message));
        }
        Ok(item)
    }
}
