//! Log entries of integrations: errors of their handlers, for people.

use super::keys;
use crate::item::{Item, Key};
use crate::keys::{hash, ms};
use crate::ports::{PortError, Ports, Query};
use crate::protocol::page::{MAX_PAGE, PAGE_BYTES, Position, TimePage, Window, place, slot, split};
use crate::refusal::Refusal;
use crate::sequences::Sequences;
use crate::table;
use keelway_domain::ids::hash64;
use keelway_domain::time::{Span, Timestamp};
use serde_json::Value;

/// How long an entry is kept.
const KEEP: Span = Span::minutes(120 * 60);
/// The most entries of one request, and the longest of them in bytes.
pub const MAX_ENTRIES: usize = 100;
/// See [`MAX_ENTRIES`].
pub const MAX_BYTES: usize = 64 * 1024;
/// Entries looked at for one page.
const LOOKED_AT: u32 = 200;
/// The bound after all entries with a time.
fn behind(at: Timestamp) -> String {
    format!("{}#\u{10ffff}", ms(at))
}

/// What the integrations have logged.
pub struct Logs<'a, P> {
    ports: &'a P,
}

impl<P: Ports> Sequences<P> {
    /// What the integrations have logged.
    pub fn logs(&self) -> Logs<'_, P> {
        Logs { ports: &self.ports }
    }
}

impl<P: Ports> Logs<'_, P> {
    /// Keeps entries, each a JSON object, under the integration they come from.
    ///
    /// # Errors
    /// Too many of them, or too large ones.
    pub async fn keep(&self, entries: &[(String, Value)]) -> Result<(), Refusal> {
        if entries.len() > MAX_ENTRIES {
            let n = entries.len();
            return Err(Refusal::TooLarge(format!("logs: there are {n}, at most {MAX_ENTRIES} are taken at once")));
        }
        let now = self.ports.now();
        let mut items = vec![];
        for (n, (integration, entry)) in entries.iter().enumerate() {
            let text = entry.to_string();
            if text.len() + integration.len() > MAX_BYTES {
                let size = text.len();
                return Err(Refusal::TooLarge(format!("logs: entry {n} has {size} bytes, at most {MAX_BYTES} are kept")));
            }
            let content = hash(hash64(&[&n.to_be_bytes(), text.as_bytes()]));
            let item = Item::new(Key::new(keys::LOGS, format!("{}#{content}", ms(now))));
            items.push(item.with("i", integration.as_str()).with("j", text).with("ttl", (now + KEEP).0 / 1000));
        }
        Ok(table::record(self.ports, items, vec![]).await?)
    }

    /// Entries, newest first; only those of an integration if one is named.
    ///
    /// # Errors
    /// A port fails.
    pub async fn page(
        &self,
        integration: Option<&str>,
        window: Window,
        size: usize,
        from: Position,
    ) -> Result<TimePage, PortError> {
        let (size, (at, skipped)) = (size.clamp(1, MAX_PAGE), split(from));
        let newest = (from != 0).then_some(at).into_iter().chain(window.before.map(|before| before - Span(1))).min();
        let mut query = Query::table(keys::LOGS, LOOKED_AT).newest_first();
        query.from = window.after.map(|after| ms(after + Span(1))).unwrap_or_default();
        query.to = newest.map(behind);
        let (mut entries, more) = self.whole_milliseconds(query).await?;
        entries.retain(|(time, n, _)| from == 0 || *time != at || *n > skipped);
        let (mut page, mut bytes) = (TimePage { items: vec![], next: 0 }, 0);
        for (time, n, item) in &entries {
            let full = page.items.len() >= size || bytes > PAGE_BYTES;
            if full && place(*time, *n) != page.next {
                return Ok(page);
            }
            page.next = place(*time, *n);
            if integration.is_none_or(|wanted| item.text("i") == Some(wanted)) {
                let text = item.text("j").unwrap_or_default();
                bytes += text.len();
                page.items.extend(serde_json::from_str::<Value>(text).ok());
            }
        }
        if !more {
            page.next = 0;
        }
        Ok(page)
    }

    /// Entries in the order of their positions: at least as many as one look finds, and all of each millisecond. And whether there
    /// are more.
    async fn whole_milliseconds(&self, mut query: Query) -> Result<(Vec<(Timestamp, i64, Item)>, bool), PortError> {
        let time = |item: &Item| item.key.sk.split('#').next().and_then(|ms| ms.parse().ok()).map_or(Timestamp(0), Timestamp);
        let mut entries: Vec<(Timestamp, i64, Item)> = vec![];
        let more = loop {
            let found = self.ports.query(&query).await?;
            entries.extend(found.items.into_iter().map(|item| (time(&item), slot(&item.key.sk), item)));
            let Some(next) = found.next else { break false };
            // The last millisecond may go on behind what was read.
            let whole = entries.last().map_or(0, |last| entries.partition_point(|one| one.0 > last.0));
            if whole > 0 {
                entries.truncate(whole);
                break true;
            }
            query.after = Some(next);
        };
        entries.sort_by_key(|(time, n, _)| (std::cmp::Reverse(*time), *n));
        Ok((entries, more))
    }

    /// Deletes entries, those of an integration if one is named; how many.
    ///
    /// # Errors
    /// A port fails.
    pub async fn delete(&self, integration: Option<&str>, window: Window) -> Result<usize, PortError> {
        let mut query = Query::table(keys::LOGS, LOOKED_AT);
        query.from = window.after.map(|after| ms(after + Span(1))).unwrap_or_default();
        query.to = window.before.map(|before| behind(before - Span(1)));
        let mut deleted = 0;
        loop {
            let page = self.ports.query(&query).await?;
            let wanted = page.items.iter().filter(|item| integration.is_none_or(|wanted| item.text("i") == Some(wanted)));
            let gone: Vec<Key> = wanted.map(|item| item.key.clone()).collect();
            deleted += gone.len();
            table::record(self.ports, vec![], gone).await?;
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(deleted),
            }
        }
    }
}
