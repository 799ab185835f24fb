//! Clusters and git hosts as they are applied. Each is one item, written by one conditional write; who uses one reads it by its name.

use super::{Promotions, keys};
use crate::item::{Item, Key, MAX_ITEM_BYTES};
use crate::ports::{Condition, Cursor, PortError, Ports, Query, Write, Written};
use crate::protocol::{COMMIT_TRIES, check_format, contended};
use crate::table;
use keelway_domain::border::Vouched;
use keelway_domain::promotions::registry::{Cluster, GitHost};
use keelway_domain::time::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use super::definitions::Outcome;

/// The newest format of an entry that this code knows.
const FORMAT: i64 = 1;
/// More git hosts than this are not looked through for one.
const HOSTS: usize = 1000;

/// An entry in force.
#[derive(Debug, Clone, PartialEq)]
pub struct Registered<T> {
    /// What it says.
    pub value: T,
    /// The text as it was applied.
    pub source: String,
    /// When it was last changed.
    pub at: Timestamp,
    /// How often it was changed.
    pub version: i64,
}

/// Something that is registered.
pub trait Kind: Serialize + DeserializeOwned + Vouched + Send + Sync {
    /// The partition of all entries of this kind.
    const PARTITION: &'static str;
}

impl Kind for Cluster {
    const PARTITION: &'static str = keys::CLUSTERS;
}

impl Kind for GitHost {
    const PARTITION: &'static str = keys::GIT_HOSTS;
}

/// The name of a cluster's entry, and what pipelines' targets call it.
pub fn cluster(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

fn item<T: Kind>(name: &str, value: &T, source: &str) -> Item {
    Item::new(Key::new(T::PARTITION, name)).with("j", serde_json::to_string(value).unwrap_or_default()).with("src", source)
}

/// Whether an entry fits into its item.
pub fn fits<T: Kind>(name: &str, value: &T, source: &str) -> bool {
    item(name, value, source).size() <= MAX_ITEM_BYTES - 1024
}

fn read<T: Kind>(item: &Item) -> Result<Option<Registered<T>>, PortError> {
    check_format(item, FORMAT)?;
    let value = crate::json::member::<Option<T>>(item, "j")?;
    Ok(value.map(|value| Registered {
        value,
        source: item.text("src").unwrap_or_default().to_owned(),
        at: Timestamp(item.number("at").unwrap_or_default()),
        version: item.version(),
    }))
}

impl<P: Ports> Promotions<P> {
    /// Registers a cluster ([`cluster`] makes its name) or a git host, or replaces it. Whoever registers the same again does not take a vouch
    /// away.
    ///
    /// # Errors
    /// Of the ports.
    pub async fn register<T: Kind>(&self, name: &str, value: &T, source: &str) -> Result<Outcome, PortError> {
        let key = Key::new(T::PARTITION, name);
        if !fits(name, value, source) {
            return Ok(Outcome::TooLarge);
        }
        for _ in 0..COMMIT_TRIES {
            let found = self.ports.get(&key).await?;
            let old = found.as_ref().map(read::<T>).transpose()?.flatten();
            let value = value.in_place_of(old.as_ref().map(|old| &old.value));
            if old.is_some_and(|old| old.value == value && old.source == source) {
                return Ok(Outcome::Unchanged);
            }
            let version = found.as_ref().map_or(0, Item::version);
            let item = item(name, &value, source).with("at", self.ports.now().0).with("v", version + 1).with("f", FORMAT);
            let condition = if found.is_none() { Condition::Absent } else { Condition::Version(version) };
            if self.ports.write(&Write::Put(item, condition)).await? == Written::Done {
                return Ok(Outcome::Changed);
            }
        }
        Err(contended(key))
    }

    /// Takes an entry out. `false`: there is none. Pipelines that use it find that it is missing.
    ///
    /// # Errors
    /// Of the ports.
    pub async fn deregister<T: Kind>(&self, name: &str) -> Result<bool, PortError> {
        let key = Key::new(T::PARTITION, name);
        for _ in 0..COMMIT_TRIES {
            let Some(found) = self.ports.get(&key).await? else { return Ok(false) };
            let delete = Write::Delete(key.clone(), Condition::Version(found.version()));
            if self.ports.write(&delete).await? == Written::Done {
                return Ok(true);
            }
        }
        Err(contended(key))
    }

    /// An entry by its name.
    ///
    /// # Errors
    /// Of the ports.
    pub async fn registered<T: Kind>(&self, name: &str) -> Result<Option<Registered<T>>, PortError> {
        Ok(self.ports.get(&Key::new(T::PARTITION, name)).await?.as_ref().map(read).transpose()?.flatten())
    }

    /// A page of entries by name, those whose names begin with `prefix`, and where the next one begins.
    ///
    /// # Errors
    /// Of the ports.
    pub async fn all_registered<T: Kind>(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<(Vec<(String, Registered<T>)>, Option<String>), PortError> {
        let cursor = after.map(|name| Cursor { key: Key::new(T::PARTITION, name), index_sort: None });
        let page = self.ports.query(&Query::table(T::PARTITION, limit).prefix(prefix).after(cursor)).await?;
        let mut all = vec![];
        for item in &page.items {
            all.extend(read(item)?.map(|entry| (item.key.sk.clone(), entry)));
        }
        Ok((all, page.next.map(|next| next.key.sk)))
    }

    /// The git host of the repositories under this host name (with its port, if it has one), and the name it is registered by.
    ///
    /// # Errors
    /// Of the ports.
    pub async fn git_host_of(&self, host: &str) -> Result<Option<(String, Registered<GitHost>)>, PortError> {
        let (items, _) = table::all(&self.ports, Query::table(GitHost::PARTITION, 100), HOSTS).await?;
        for item in &items {
            if let Some(entry) = read::<GitHost>(item)?.filter(|entry| entry.value.host.eq_ignore_ascii_case(host)) {
                return Ok(Some((item.key.sk.clone(), entry)));
            }
        }
        Ok(None)
    }
}
