//! Lists over all configs: attempts that have ended, and versions that nobody has claimed. A caller may see some configs only, so
//! the end of a page is told without names.

use super::{Address, Deployments, Loaded, keys};
use crate::item::Key;
use crate::json::stored;
use crate::keys::{hash, ms};
use crate::ports::{Cursor, Index, PortError, Ports, Query};
use crate::table;
use keelway_domain::deployments::{Config, Past, Status};
use keelway_domain::ids::hash64;
use keelway_domain::time::Timestamp;

/// The most days of one page.
const DAYS: usize = 31;
/// The length of a day, in milliseconds.
const DAY: i64 = 86_400_000;
/// The entries with the same time that are read at once.
const AT_ONCE: u32 = 100;

/// The order of attempts that have ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// Oldest first: a client that follows new attempts continues where the last page ended.
    #[default]
    Oldest,
    /// Newest first.
    Newest,
}

/// The config, the version and the attempt that the index sort key of an attempt names.
fn ended_parts(sort: &str) -> Option<(Address, u64, u32)> {
    let [_, namespace, name, n, attempt] = sort.split('#').collect::<Vec<_>>().try_into().ok()?;
    Some((Address { namespace: namespace.to_owned(), name: name.to_owned() }, n.parse().ok()?, attempt.parse().ok()?))
}

fn ended_key(sort: &str) -> Option<Key> {
    ended_parts(sort).map(|(of, n, attempt)| keys::past(&of, n, attempt))
}

fn ended_at(sort: &str) -> Option<Timestamp> {
    time_of(sort).parse().ok().map(Timestamp)
}

/// The time at the beginning of a sort key or of a place.
fn time_of(sort: &str) -> &str {
    sort.split('#').next().unwrap_or_default()
}

/// The end of a page: the time of its last entry, and a hash that distinguishes this entry from others with the same time.
fn place(sort: &str) -> String {
    if sort.contains('#') { format!("{}#{}", time_of(sort), hash(hash64(&[b"place", sort.as_bytes()]))) } else { sort.to_owned() }
}

/// The end of the entries with a time.
fn last_of(time: &str) -> String {
    format!("{time}#\u{10ffff}")
}

impl<P: Ports> Deployments<P> {
    /// The sort key of the last entry of a page. `None`: the page ended between two days, or the entry does not exist any more; the
    /// next page then begins at its time.
    async fn find(&self, index: Index, partition: String, after: Option<&str>) -> Result<Option<String>, PortError> {
        let Some(after) = after.filter(|after| after.contains('#')) else { return Ok(None) };
        let mut query = Query::index(index, partition, AT_ONCE);
        query.from = time_of(after).to_owned();
        query.to = Some(last_of(time_of(after)));
        loop {
            let page = self.ports.query(&query).await?;
            let mut sorts = page.items.iter().filter_map(|item| item.text(index.names().2));
            if let Some(sort) = sorts.find(|sort| place(sort) == after) {
                return Ok(Some(sort.to_owned()));
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(None),
            }
        }
    }

    /// A page of the attempts that ended from a time on, in all configs, and where the next page begins. The index may lag by a
    /// moment.
    ///
    /// # Errors
    /// A port fails.
    pub async fn everywhere(
        &self,
        since: Timestamp,
        order: Order,
        after: Option<&str>,
        limit: u32,
    ) -> Result<(Vec<(Address, Past)>, Option<String>), PortError> {
        let now = self.ports.now();
        let begin = if order == Order::Oldest { since } else { now };
        let mut at = after.map_or(Some(begin), ended_at).unwrap_or(begin);
        let mut found = self.find(Index::ByAge, keys::day(at), after).await?;
        for _ in 0..DAYS {
            let cursor = found.take().and_then(|sort| Some(Cursor { key: ended_key(&sort)?, index_sort: Some(sort) }));
            let mut query = Query::index(Index::ByAge, keys::day(at), limit).after(cursor);
            let day = at.0.div_euclid(DAY);
            let following = match order {
                Order::Oldest => {
                    query.from = ms(at);
                    Some(Timestamp((day + 1) * DAY)).filter(|tomorrow| *tomorrow <= now)
                }
                Order::Newest => {
                    query = query.newest_first();
                    query.from = ms(since);
                    query.to = after.map(|_| last_of(&ms(at)));
                    Some(Timestamp(day * DAY - 1)).filter(|yesterday| *yesterday >= since)
                }
            };
            let page = self.ports.query(&query).await?;
            let next = page.next.and_then(|next| next.index_sort).map(|sort| place(&sort)).or_else(|| following.map(ms));
            if !page.items.is_empty() || next.is_none() {
                return Ok((self.ended_at_keys(page.items.into_iter().map(|item| item.key).collect()).await?, next));
            }
            at = following.unwrap_or(at);
        }
        Ok((vec![], Some(ms(at))))
    }

    async fn ended_at_keys(&self, wanted: Vec<Key>) -> Result<Vec<(Address, Past)>, PortError> {
        let items = table::read(&self.ports, &wanted).await?;
        let mut all = vec![];
        for item in wanted.iter().filter_map(|key| items.get(key)) {
            let of = item.text("gs2").and_then(ended_parts).map(|(of, ..)| of);
            all.extend(of.zip(stored::<Past>(item, "j")?));
        }
        Ok(all)
    }

    /// A page of the configs whose latest version nobody has claimed, oldest first, and where the next one begins. The index may
    /// lag by a moment.
    ///
    /// # Errors
    /// A port fails.
    pub async fn unclaimed(&self, after: Option<&str>, limit: u32) -> Result<(Vec<Config>, Option<String>), PortError> {
        let key = |sort: &str| {
            let mut parts = sort.splitn(3, '#').skip(1).map(str::to_owned);
            Some(keys::config(&Address { namespace: parts.next()?, name: parts.next()? }))
        };
        let found = self.find(Index::ByWork, keys::UNCLAIMED.to_owned(), after).await?;
        let cursor = found.and_then(|sort| Some(Cursor { key: key(&sort)?, index_sort: Some(sort) }));
        let mut query = Query::index(Index::ByWork, keys::UNCLAIMED, limit).after(cursor);
        query.from = after.map(time_of).unwrap_or_default().to_owned();
        let page = self.ports.query(&query).await?;
        let wanted: Vec<Key> = page.items.into_iter().map(|item| item.key).collect();
        let items = table::read(&self.ports, &wanted).await?;
        let mut all = vec![];
        for item in wanted.iter().filter_map(|key| items.get(key)) {
            all.push(Loaded::read(item)?.x);
        }
        // The index may still contain a version that was claimed.
        all.retain(|x| x.in_flight().is_some_and(|d| d.status == Status::New && d.cancel.is_none()));
        Ok((all, page.next.and_then(|next| next.index_sort).map(|sort| place(&sort))))
    }
}
