//! Configs as they are applied. Definitions have no effects of their own, so the API writes them itself, and then wakes the config.

use super::message::{Address, Message};
use super::{Deployments, keys};
use crate::entries;
use crate::item::{Item, Key, MAX_ITEM_BYTES};
use crate::json::{json, member};
use crate::namespaces::{self, Wanted as Page};
use crate::ports::{Condition, Cursor, PortError, Ports, Query, Write, Written};
use crate::protocol::{check_format, create};
use crate::table;
use keelway_domain::border::Vouched;
use keelway_domain::deployments::definition::Definition;
use keelway_domain::deployments::{Applied, Config, Request};
use keelway_domain::names::ProjectName;
use keelway_domain::time::Timestamp;
use std::collections::BTreeSet;

/// The newest format of a definition that this code knows.
const FORMAT: i64 = 1;

/// What is to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted<'a> {
    /// What it says.
    pub definition: &'a Definition,
    /// The text as it was written.
    pub source: &'a str,
    /// Who writes it.
    pub by: &'a str,
    /// The version that is asked for with it, as the generator does.
    pub request: Option<Request>,
    /// What it replaces; `None`: whatever is in force.
    pub over: Option<Over>,
}

/// The version of a definition that a request replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Over {
    /// The version; 0: there must be none.
    pub version: i64,
    /// Identifies the request: sent again, it finds its own definition in force, and that is no conflict. Not 0.
    pub asked: u64,
}

/// What became of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is in force, in this version.
    Changed(i64),
    /// It was in force already.
    Unchanged(i64),
    /// Another version is in force than the one it was to replace; 0: none is.
    Conflict(i64),
    /// It does not fit into one item: shorten it.
    TooLarge,
}

/// Reads a definition and its text; `None` for one that was deleted. A rollback leaves no text.
///
/// # Errors
/// [`PortError::Retry`] for a newer format, [`PortError::Refused`] for an item that cannot be read.
pub fn read(item: &Item) -> Result<Option<(Applied, Option<String>)>, PortError> {
    check_format(item, FORMAT)?;
    let Some(mut applied) = member::<Option<Applied>>(item, "j")? else { return Ok(None) };
    applied.version = item.version();
    Ok(Some((applied, item.text("src").map(str::to_owned))))
}

/// The item of a definition.
fn item(to: &Address, applied: &Applied, source: Option<&str>, now: Timestamp) -> Item {
    Item::new(keys::definition(to))
        .with("j", json(applied))
        .with_some("src", source)
        .with("at", now.0)
        .with("v", applied.version)
        .with("f", FORMAT)
}

impl<P: Ports> namespaces::Listed for Deployments<P> {
    type Entry = (Address, Applied);
    const NAMESPACES: &'static str = keys::NAMESPACES;

    async fn page(
        &self,
        namespace: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<(Vec<(Address, Applied)>, Option<String>), PortError> {
        self.definitions(namespace, after, limit).await
    }
}

impl<P: Ports> Deployments<P> {
    /// Puts a definition in force, and wakes its config. Whoever applies what is in force already does not take a vouch away.
    ///
    /// # Errors
    /// Of the ports. Applying it again completes what was begun.
    pub async fn apply(&self, to: &Address, wanted: &Wanted<'_>) -> Result<Outcome, PortError> {
        let key = keys::definition(to);
        for _ in 0..crate::protocol::COMMIT_TRIES {
            let found = self.ports.get(&key).await?;
            let old = found.as_ref().map(read).transpose()?.flatten();
            let version = found.as_ref().map_or(0, Item::version);
            let in_force = old.as_ref().map_or(0, |_| version);
            let definition = wanted.definition.in_place_of(old.as_ref().map(|(old, _)| &old.definition));
            // An earlier try may have written it, whose answer was lost. The version that it asked for may have been cut since.
            let own = |old: &Applied| wanted.over.is_some_and(|over| over.asked == old.asked);
            let same = |(old, source): &&(Applied, Option<String>)| {
                let requested = old.request == wanted.request || own(old);
                requested && old.definition == definition && source.as_deref() == Some(wanted.source)
            };
            let in_force_already = old.as_ref().filter(same);
            let unchanged = in_force_already.is_some();
            // Whoever wrote the same first was faster all the same: two people who ask for a version each ask for one.
            let expected =
                wanted.over.is_none_or(|over| over.version == in_force) || in_force_already.is_some_and(|(old, _)| own(old));
            if !expected {
                return Ok(Outcome::Conflict(in_force));
            }
            let (by, request) = (wanted.by.to_owned(), wanted.request.clone());
            let asked = wanted.over.map_or(0, |over| over.asked);
            let applied = Applied { definition, version: version + 1, by, request, asked };
            let gone = leaving(to, found.as_ref(), Some(wanted.definition))?;
            let item = item(to, &applied, Some(wanted.source), self.ports.now());
            // A snapshot holds the definition once more, with its images.
            if item.size() > MAX_ITEM_BYTES - 16 * 1024 {
                return Ok(Outcome::TooLarge);
            }
            // The namespace comes first: one without configs is skipped, but a config in an unlisted one would not be found.
            let listed = Item::new(Key::new(keys::NAMESPACES, to.namespace.as_str()));
            drop(self.ports.write(&Write::Put(listed, Condition::Absent)).await?);
            // The entries come first: a config that is woken for nothing does nothing, but one that is not woken hangs.
            table::record(&self.ports, entered_at(to, wanted.definition), vec![]).await?;
            let state = Config::new(&to.namespace, &to.name, self.ports.now());
            drop(self.ports.write(&create(&state, self.ports.now() + self.limits.retention)).await?);
            if !unchanged {
                let condition = if found.is_none() { Condition::Absent } else { Condition::Version(version) };
                if self.ports.write(&Write::Put(entries::note(item, &gone), condition)).await? != Written::Done {
                    continue;
                }
            }
            let now = if unchanged { version } else { version + 1 };
            entries::delete(&self.ports, key, now, gone).await?;
            self.wake(to, format!("definition {now}")).await?;
            return Ok(if unchanged { Outcome::Unchanged(now) } else { Outcome::Changed(now) });
        }
        Err(crate::protocol::contended(key))
    }

    /// Deletes a definition: its config cancels what runs, and ends. `false`: there is none.
    ///
    /// # Errors
    /// Of the ports. Deleting it again completes what was begun.
    pub async fn delete(&self, to: &Address) -> Result<bool, PortError> {
        let key = keys::definition(to);
        for _ in 0..crate::protocol::COMMIT_TRIES {
            let Some(found) = self.ports.get(&key).await? else { return Ok(false) };
            let gone = leaving(to, Some(&found), None)?;
            let Some((old, _)) = read(&found)? else {
                entries::delete(&self.ports, key, found.version(), gone).await?;
                self.wake(to, format!("definition {}", found.version())).await?;
                return Ok(false);
            };
            // A tombstone keeps the version rising: whoever applied the definition last, and was slow, does not bring it back.
            let expires = self.ports.now() + self.limits.retention;
            let tombstone = Item::new(key.clone()).with("v", old.version + 1).with("f", FORMAT).with("ttl", expires.0 / 1000);
            let tombstone = entries::note(tombstone, &gone);
            if self.ports.write(&Write::Put(tombstone, Condition::Version(old.version))).await? == Written::Done {
                entries::delete(&self.ports, key, old.version + 1, gone).await?;
                self.wake(to, format!("definition {}", old.version + 1)).await?;
                return Ok(true);
            }
        }
        Err(crate::protocol::contended(key))
    }

    /// A page of a namespace's configs by name, and where the next one begins.
    ///
    /// # Errors
    /// Of the ports.
    pub async fn definitions(
        &self,
        namespace: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<(Vec<(Address, Applied)>, Option<String>), PortError> {
        let partition = keys::definitions(namespace);
        let cursor = after.map(|name| Cursor { key: Key::new(partition.clone(), name), index_sort: None });
        let page = self.ports.query(&Query::table(partition, limit).after(cursor)).await?;
        let mut all = vec![];
        for item in &page.items {
            if let Some((applied, _)) = read(item)? {
                all.push((Address { namespace: namespace.to_owned(), name: item.key.sk.clone() }, applied));
            }
        }
        Ok((all, page.next.map(|next| next.key.sk)))
    }

    /// A page of the configs of all namespaces, and where the next one begins. Some pages may be shorter than asked for.
    ///
    /// # Errors
    /// Of the ports.
    pub async fn all_definitions(
        &self,
        among: Option<&[ProjectName]>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<(Vec<(Address, Applied)>, Option<String>), PortError> {
        let wanted = Page { among, after, limit };
        namespaces::page(&self.ports, self, wanted).await
    }

    /// Sends a config a message to look at everything again. `because` tells what caused it.
    pub(super) async fn wake(&self, to: &Address, because: String) -> Result<(), PortError> {
        table::send_all(&self.ports, &[Message::Evaluate { to: to.clone(), because }.letter()]).await
    }
}

/// Where a config is entered: with the tags that it watches, and with its alarms.
fn entries(to: &Address, definition: &Definition) -> BTreeSet<Key> {
    let tags = definition.watched().into_iter().map(|tag| keys::watches(tag, to));
    let alarms = definition.auto_rollback.iter().flat_map(|auto| &auto.alarms).map(|alarm| keys::alarmed(alarm, to));
    tags.chain(alarms).collect()
}

/// The entries that lead to a config.
pub(super) fn entered_at(to: &Address, definition: &Definition) -> Vec<Item> {
    let entry = |key: Key| Item::new(key).with("ns", to.namespace.as_str()).with("na", to.name.as_str());
    entries(to, definition).into_iter().map(entry).collect()
}

/// The entries that are to be deleted when `new` takes the place of what an item says.
fn leaving(to: &Address, found: Option<&Item>, new: Option<&Definition>) -> Result<Vec<Key>, PortError> {
    let Some(found) = found else { return Ok(vec![]) };
    let named = read(found)?.map(|(old, _)| entries(to, &old.definition)).unwrap_or_default();
    let keeps = new.map(|new| entries(to, new)).unwrap_or_default();
    entries::leaving(found, named, &keeps)
}

/// What a rollback makes of the definition that an item says. The next one who applies or deletes it deletes the entries it leaves.
pub(super) fn rewritten(to: &Address, found: &Item, applied: &Applied, now: Timestamp) -> Result<Item, PortError> {
    let gone = leaving(to, Some(found), Some(&applied.definition))?;
    // The text that was applied is no longer what is in force.
    Ok(entries::note(item(to, applied, None, now), &gone))
}

/// The config that an entry leads to.
pub(super) fn entered(item: &Item) -> Option<Address> {
    Some(Address { namespace: item.text("ns")?.to_owned(), name: item.text("na")?.to_owned() })
}
