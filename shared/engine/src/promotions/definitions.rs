//! Pipelines as they are applied. Definitions have no effects of their own, so the API writes them itself, and then wakes the pipeline.

use super::message::{Address, Message};
use super::{Promotions, keys, observations, observer};
use crate::entries;
use crate::item::{Item, Key, MAX_ITEM_BYTES};
use crate::namespaces::{self, Wanted};
use crate::ports::{Condition, Cursor, PortError, Ports, Query, Write, Written};
use crate::protocol::{COMMIT_TRIES, check_format, contended, create};
use crate::table;
use keelway_domain::border::Vouched;
use keelway_domain::names::ProjectName;
use keelway_domain::promotions::Pipeline;
use keelway_domain::promotions::definition::{Definition, Target};
use keelway_domain::time::Timestamp;
use std::collections::BTreeSet;

/// The newest format of a definition that this code knows.
const FORMAT: i64 = 1;

/// A definition in force.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// What it says.
    pub definition: Definition,
    /// The text as it was applied.
    pub source: String,
    /// When it was last changed.
    pub at: Timestamp,
    /// How often it was changed.
    pub version: i64,
}

/// What became of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is in force.
    Changed,
    /// It was in force already.
    Unchanged,
    /// It does not fit into one item: shorten it.
    TooLarge,
}

/// Reads a definition; `None` for one that was deleted.
///
/// # Errors
/// [`PortError::Retry`] for a newer format, [`PortError::Refused`] for an item that cannot be read.
pub fn read(item: &Item) -> Result<Option<Applied>, PortError> {
    check_format(item, FORMAT)?;
    let Some(definition) = crate::json::member::<Option<Definition>>(item, "j")? else { return Ok(None) };
    Ok(Some(Applied {
        definition,
        source: item.text("src").unwrap_or_default().to_owned(),
        at: Timestamp(item.number("at").unwrap_or_default()),
        version: item.version(),
    }))
}

fn item(to: &Address, definition: &Definition, source: &str) -> Item {
    Item::new(keys::definition(to)).with("j", serde_json::to_string(definition).unwrap_or_default()).with("src", source)
}

/// The entries of a definition's targets: the pipeline's with each target, and the target's with its cluster.
fn entries(to: &Address, definition: &Definition) -> BTreeSet<Key> {
    let app = &definition.app;
    let of = |target| [Some(keys::depends(app, target, to)), keys::named(app, target, to)];
    definition.targets().flat_map(of).flatten().collect()
}

/// The entries that are to be deleted when `new` takes the place of what an item says.
fn leaving(to: &Address, found: Option<&Item>, new: Option<&Definition>) -> Result<Vec<Key>, PortError> {
    let Some(found) = found else { return Ok(vec![]) };
    let named = read(found)?.map(|old| entries(to, &old.definition)).unwrap_or_default();
    let keeps = new.map(|new| entries(to, new)).unwrap_or_default();
    entries::leaving(found, named, &keeps)
}

/// Whether a definition fits into its item.
pub fn fits(to: &Address, definition: &Definition, source: &str) -> bool {
    item(to, definition, source).size() <= MAX_ITEM_BYTES - 1024
}

impl<P: Ports> namespaces::Listed for Promotions<P> {
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

impl<P: Ports> Promotions<P> {
    /// Puts a definition in force, and wakes its pipeline. Whoever applies what is in force already does not take a vouch away.
    ///
    /// # Errors
    /// Of the ports. Applying it again completes what was begun.
    pub async fn apply(&self, to: &Address, definition: &Definition, source: &str) -> Result<Outcome, PortError> {
        let key = keys::definition(to);
        if !fits(to, definition, source) {
            return Ok(Outcome::TooLarge);
        }
        for _ in 0..COMMIT_TRIES {
            let found = self.ports.get(&key).await?;
            let old = found.as_ref().map(read).transpose()?.flatten();
            let version = found.as_ref().map_or(0, Item::version);
            let definition = &definition.in_place_of(old.as_ref().map(|old| &old.definition));
            let gone = leaving(to, found.as_ref(), Some(definition))?;
            let item = item(to, definition, source).with("at", self.ports.now().0).with("v", version + 1).with("f", FORMAT);
            // The namespace comes first: one without pipelines is skipped, but a pipeline in an unlisted one would not be found.
            let listed = Item::new(Key::new(keys::NAMESPACES, to.namespace.as_str()));
            drop(self.ports.write(&Write::Put(listed, Condition::Absent)).await?);
            // The targets' entries come first: a pipeline that is woken for nothing does nothing, but one that is not woken hangs.
            self.depend(to, definition).await?;
            let state = Pipeline::new(&to.namespace, &to.name, self.ports.now());
            drop(self.ports.write(&create(&state, self.ports.now() + self.limits.retention)).await?);
            let unchanged = old.as_ref().is_some_and(|old| old.definition == *definition && old.source == source);
            if !unchanged {
                let condition = if found.is_none() { Condition::Absent } else { Condition::Version(version) };
                if self.ports.write(&Write::Put(entries::note(item, &gone), condition)).await? != Written::Done {
                    continue;
                }
            }
            let version = if unchanged { version } else { version + 1 };
            entries::delete(&self.ports, key, version, gone).await?;
            self.wake(to, format!("definition {version}")).await?;
            return Ok(if unchanged { Outcome::Unchanged } else { Outcome::Changed });
        }
        Err(contended(key))
    }

    /// Deletes a definition: its pipeline closes what it has open, and ends. `false`: there is none.
    ///
    /// # Errors
    /// Of the ports. Deleting it again completes what was begun.
    pub async fn delete(&self, to: &Address) -> Result<bool, PortError> {
        let key = keys::definition(to);
        for _ in 0..COMMIT_TRIES {
            let Some(found) = self.ports.get(&key).await? else { return Ok(false) };
            let gone = leaving(to, Some(&found), None)?;
            let Some(old) = read(&found)? else {
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
        Err(contended(key))
    }

    /// A definition in force.
    ///
    /// # Errors
    /// Of the ports.
    pub async fn definition(&self, to: &Address) -> Result<Option<Applied>, PortError> {
        Ok(self.ports.get(&keys::definition(to)).await?.as_ref().map(read).transpose()?.flatten())
    }

    /// A page of a namespace's pipelines by name, and where the next one begins.
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
            if let Some(applied) = read(item)? {
                all.push((Address { namespace: namespace.to_owned(), name: item.key.sk.clone() }, applied));
            }
        }
        Ok((all, page.next.map(|next| next.key.sk)))
    }

    /// A page of the pipelines of all namespaces, by namespace and name, and where the next one begins. It looks into a limited number of
    /// namespaces, so a page that is not the last one may have fewer than `limit` pipelines.
    ///
    /// # Errors
    /// Of the ports.
    pub async fn all_definitions(
        &self,
        among: Option<&[ProjectName]>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<(Vec<(Address, Applied)>, Option<String>), PortError> {
        let wanted = Wanted { among, after, limit };
        namespaces::page(&self.ports, self, wanted).await
    }

    /// Sends a pipeline a message to look at everything again. `because` tells what caused it.
    pub(super) async fn wake(&self, to: &Address, because: String) -> Result<(), PortError> {
        table::send_all(&self.ports, &[Message::Evaluate { to: to.clone(), because }.letter()]).await
    }

    /// Enters the pipeline with each of its targets, and the targets with their clusters. What was observed there so far is kept from now on.
    async fn depend(&self, to: &Address, definition: &Definition) -> Result<(), PortError> {
        let targets: BTreeSet<&Target> = definition.targets().collect();
        let entry = |target: &&Target| {
            Item::new(keys::depends(&definition.app, target, to)).with("ns", to.namespace.as_str()).with("na", to.name.as_str())
        };
        let named = targets.iter().filter_map(|target| observer::entry(&definition.app, target, to));
        table::record(&self.ports, targets.iter().map(entry).chain(named).collect(), vec![]).await?;
        let wanted: Vec<Key> = targets.iter().map(|target| keys::observation(&definition.app, target)).collect();
        for item in table::read(&self.ports, &wanted).await?.values().filter(|item| observations::unasked(item)) {
            // If it changed in between, the newer fact found the entry, and is kept.
            drop(self.ports.write(&observations::keep(item)).await?);
        }
        Ok(())
    }

    /// What a pipeline may know about its targets.
    ///
    /// # Errors
    /// Of the ports.
    pub async fn observations(
        &self,
        of: &Address,
        definition: &Definition,
    ) -> Result<keelway_domain::promotions::observe::Observations, PortError> {
        observations::of(&self.ports, of, definition).await
    }
}
