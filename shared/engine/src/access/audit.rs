//! The audit: one item and one event for each act through the API.

use super::{Access, day, entry};
use crate::item::{Item, Key};
use crate::json::{json, member};
use crate::ports::{Condition, Cursor, PortError, Ports, Query, Write};
use crate::table;
use keelway_domain::event::{CloudEvent, Object};
use keelway_domain::ids::context_of;
use keelway_domain::names::Context;
use keelway_domain::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json as value;

/// The type of the event about an entry.
pub const TYPE: &str = keelway_domain::event::AUDIT;
/// The `source` of these events.
const SOURCE: &str = "keelway-api";
/// The most entries of a page.
pub const MAX_PAGE: u32 = 100;
/// The most items that are read for one page.
const READ: u32 = 1000;
/// The most days that are searched for one page.
const DAYS: usize = 100;
const DAY: Span = Span::minutes(24 * 60);

/// An act through the API.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When.
    #[serde(skip)]
    pub at: Timestamp,
    /// The id of the entry, from which the id of its event is derived.
    #[serde(rename = "i")]
    pub id: u64,
    /// The kind of act: `apply`, `trigger`, `control`, `decide`, `override`, `delete`, `token`, `push`, `claim`.
    #[serde(rename = "a")]
    pub action: String,
    /// The name of the token.
    #[serde(rename = "t")]
    pub token: String,
    /// The person, as the identity provider names them. Empty for Keelway's own tokens.
    #[serde(rename = "s", default, skip_serializing_if = "String::is_empty")]
    pub subject: String,
    /// The verified identity. Entries of older versions lack it.
    #[serde(rename = "b", default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// The source address of the request; empty if it is not known.
    #[serde(rename = "f", default, skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// The project or namespace; empty for what belongs to none.
    #[serde(rename = "p", default, skip_serializing_if = "String::is_empty")]
    pub project: String,
    /// The method and path of the request.
    #[serde(rename = "r")]
    pub request: String,
    /// The request in words.
    #[serde(rename = "w", default, skip_serializing_if = "String::is_empty")]
    pub what: String,
    /// The caller's own, unverified words about itself and its reasons.
    #[serde(rename = "n", default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The HTTP status of the answer.
    #[serde(rename = "h")]
    pub status: u16,
    /// Whether the words are about this project alone. Entries of older versions lack it: one request applied to several projects,
    /// and its entry under each named all of them.
    #[serde(rename = "o", default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
}

/// A filter for entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Of this token, subject or identity.
    pub token: Option<String>,
    /// Of this action.
    pub action: Option<String>,
    /// Of these projects.
    pub projects: Option<Vec<String>>,
    /// Not older.
    pub from: Option<Timestamp>,
    /// Older than this.
    pub before: Option<Timestamp>,
}

impl Filter {
    fn matches(&self, entry: &Entry) -> bool {
        let is = |wanted: &Option<String>, has: &str| wanted.as_ref().is_none_or(|wanted| wanted == has);
        let in_time = self.from.is_none_or(|from| entry.at >= from) && self.before.is_none_or(|before| entry.at < before);
        // The subject of an identity provider's token is looked for like a token's name; an identity is that of one of them only.
        let named = [&entry.token, &entry.subject, &entry.by].into_iter().any(|name| is(&self.token, name));
        let in_projects = self.projects.as_ref().is_none_or(|projects| projects.contains(&entry.project));
        in_time && named && is(&self.action, &entry.action) && in_projects
    }
}

impl<P: Ports> Access<P> {
    /// Stores an entry, then publishes its event.
    ///
    /// # Errors
    /// A port fails.
    pub async fn record(&self, what: &Entry) -> Result<(), PortError> {
        let expires = what.at + self.retention;
        let item = Item::new(entry(what.at, what.id)).with("j", json(what)).with("ttl", expires.0 / 1000);
        self.ports.write(&Write::Put(item, Condition::Always)).await?;
        table::publish(&self.ports, &[event(what)]).await
    }

    /// A page of entries, newest first, and where the next page begins. A page may have fewer entries than requested, or none,
    /// although there are more, because the search for one page is limited.
    ///
    /// # Errors
    /// A port fails.
    pub async fn audit(&self, filter: &Filter, after: Option<&str>, limit: u32) -> Result<(Vec<Entry>, Option<String>), PortError> {
        let limit = limit.clamp(1, MAX_PAGE) as usize;
        let now = self.ports.now();
        let newest = filter.before.map_or(now, |before| before.min(now));
        let kept_since = Timestamp(now.0 - self.retention.0);
        let oldest = filter.from.map_or(kept_since, |from| from.max(kept_since));
        let (mut found, mut read, mut after) = (vec![], 0, after.map(str::to_owned));
        let mut at = after.as_deref().and_then(time_of).unwrap_or(newest);
        for _ in 0..DAYS {
            let partition = day(at);
            let cursor = after.take().map(|sort| Cursor { key: Key::new(partition.clone(), sort), index_sort: None });
            let mut query = Query::table(partition, MAX_PAGE).newest_first().after(cursor);
            loop {
                let page = self.ports.query(&query).await?;
                read += u32::try_from(page.items.len()).unwrap_or(READ);
                for item in &page.items {
                    let Some(entry) = entry_of(item)? else { continue };
                    if !filter.matches(&entry) {
                        continue;
                    }
                    found.push(entry);
                    if found.len() == limit {
                        return Ok((found, Some(item.key.sk.clone())));
                    }
                }
                match page.next {
                    Some(next) if read >= READ => return Ok((found, Some(next.key.sk))),
                    Some(next) => query.after = Some(next),
                    None => break,
                }
            }
            // The last millisecond of the day before.
            at = Timestamp(at.0.div_euclid(DAY.0) * DAY.0 - 1);
            if at < oldest {
                return Ok((found, None));
            }
        }
        Ok((found, Some(crate::keys::ms(at))))
    }
}

fn entry_of(item: &Item) -> Result<Option<Entry>, PortError> {
    let entry = member::<Option<Entry>>(item, "j")?;
    Ok(entry.zip(time_of(&item.key.sk)).map(|(entry, at)| Entry { at, ..entry }))
}

/// The time in a sort key.
fn time_of(sort: &str) -> Option<Timestamp> {
    sort.split('#').next()?.parse().ok().map(Timestamp)
}

/// The event about an entry.
fn event(entry: &Entry) -> CloudEvent {
    let id = context_of(SOURCE, &entry.id.to_string()).to_string();
    let data = value!({
        "action": entry.action, "token": entry.token, "subject": entry.subject, "by": entry.by, "address": entry.address, "project": entry.project,
        "request": entry.request, "what": entry.what, "note": entry.note, "status": entry.status,
    });
    CloudEvent {
        context: Context::of(&id),
        id,
        source: SOURCE.into(),
        ty: TYPE.into(),
        time: entry.at,
        authors: vec![],
        triggered_id: None,
        git_commit_id: None,
        data: data.as_object().cloned().unwrap_or_else(Object::new),
    }
}
