//! Declarations: the definitions that `apply` puts in force. Each is one item, written by one conditional write that raises its
//! version. The API writes definitions itself, and wakes the subjects concerned afterwards.
//!
//! The order of effects is the same for every [`Kind`]. The entries that lead to a definition are written before it: an entry
//! without a definition is harmless, but a definition without entries would never be found. The entries of the replaced definition
//! are deleted after it, and the subject is woken last. Applying or deleting the same again completes an interrupted change. A
//! deletion leaves a tombstone, so the version keeps rising: a slow earlier writer neither overwrites its successor nor restores
//! what was deleted.

pub use super::kind::{Full, Kind, Shelf};

use super::change::next_version;
use super::run::{COMMIT_TRIES, contended};
use super::subject::check_format;
use crate::entries;
use crate::item::{Item, Key, MAX_ITEM_BYTES, Name};
use crate::json::stored;
use crate::namespaces::{self, Among};
use crate::ports::{Condition, Cursor, PortError, Ports, Query, Transacted, Write, Written};
use crate::table;
use keelway_domain::address::Address;
use keelway_domain::border::Vouched;
use keelway_domain::names::ProjectName;
use keelway_domain::stored::Stored;
use keelway_domain::time::{Span, Timestamp};
use std::collections::BTreeSet;

/// The most queries for one page. A page may be short after these, if most of the definitions were deleted.
const LOOKS: usize = 20;

/// A definition in force.
#[derive(Debug, Clone, PartialEq)]
pub struct Declared<T> {
    /// What it says.
    pub spec: T,
    /// The text as it was applied.
    pub source: String,
    /// When it was last changed.
    pub at: Timestamp,
    /// How often it was changed.
    pub version: i64,
}

/// The result of a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is in force now, with this version.
    Changed(i64),
    /// It was in force already, with this version.
    Unchanged(i64),
    /// The version in force is not the one that it must replace. 0: none is in force.
    Conflict(i64),
    /// It does not fit into one item: shorten it.
    TooLarge,
    /// The limit on the number of definitions is reached.
    TooMany,
}

impl Outcome {
    /// Whether the definition was not in force before.
    pub fn is_change(self) -> bool {
        matches!(self, Self::Changed(_))
    }
}

/// The decision about a new definition.
#[derive(Debug)]
pub enum Wanted<'a, T> {
    /// It replaces the definition in force, with this text.
    Put(T, &'a str),
    /// It equals the definition in force. An interrupted earlier request is completed.
    Keep(T),
    /// It is refused.
    Refuse(Outcome),
}

/// Reads a definition; `None` for one that was deleted.
///
/// # Errors
/// [`PortError::Retry`] for a newer format, [`PortError::Refused`] for an item that cannot be read.
pub fn read<K: Kind>(item: &Item) -> Result<Option<Declared<K::Spec>>, PortError> {
    check_format(item, K::FORMAT)?;
    let spec = stored::<K::Spec>(item, "j")?;
    Ok(spec.map(|spec| Declared {
        spec,
        source: item.text("src").unwrap_or_default().to_owned(),
        at: Timestamp(item.number("at").unwrap_or_default()),
        version: item.version(),
    }))
}

/// The definitions of a kind.
#[derive(Debug, Clone, Copy)]
pub struct Declarations<'a, P, K> {
    /// Where they are.
    pub ports: &'a P,
    /// The kind.
    pub kind: K,
    /// How long tombstones are kept.
    pub retention: Span,
}

impl<P: Ports, K: Kind> Declarations<'_, P, K> {
    fn key(&self, at: &Address) -> Key {
        self.kind.shelf(&at.namespace).key(&at.name)
    }

    /// The item of a definition.
    pub fn item(&self, at: &Address, spec: &K::Spec, source: Option<&str>, version: i64) -> Item {
        Item::new(self.key(at))
            .with("j", spec.to_json())
            .with_some("src", source)
            .with("at", self.ports.now().0)
            .with("v", version)
            .with("f", K::FORMAT)
    }

    /// Whether a definition fits into its item.
    pub fn fits(&self, at: &Address, spec: &K::Spec, source: &str) -> bool {
        self.item(at, spec, Some(source), i64::MAX).size() <= MAX_ITEM_BYTES - K::ROOM
    }

    /// Puts a definition in force. Applying what is in force already keeps a vouch.
    ///
    /// # Errors
    /// A port fails. Applying it again completes what was begun.
    pub async fn apply(&self, at: &Address, spec: &K::Spec, source: &str) -> Result<Outcome, PortError>
    where
        K::Spec: Vouched,
    {
        let wanted = |old: Option<&Declared<K::Spec>>, _| {
            let new = spec.in_place_of(old.map(|old| &old.spec));
            match old.is_some_and(|old| old.spec == new && old.source == source) {
                true => Wanted::Keep(new),
                false => Wanted::Put(new, source),
            }
        };
        self.put(at, wanted).await
    }

    /// Puts a definition in force as the next version. `wanted` decides by the definition in force, if there is one.
    ///
    /// # Errors
    /// A port fails. Putting it again completes what was begun.
    pub async fn put<'w>(
        &self,
        at: &Address,
        wanted: impl Fn(Option<&Declared<K::Spec>>, i64) -> Wanted<'w, K::Spec> + Send,
    ) -> Result<Outcome, PortError> {
        let key = self.key(at);
        for _ in 0..COMMIT_TRIES {
            let found = self.ports.get(&key).await?;
            let old = found.as_ref().map(read::<K>).transpose()?.flatten();
            let version = next_version(found.as_ref());
            let (spec, source) = match wanted(old.as_ref(), version) {
                Wanted::Refuse(outcome) => return Ok(outcome),
                Wanted::Keep(spec) => (spec, None),
                Wanted::Put(spec, source) => (spec, Some(source)),
            };
            if source.is_some_and(|source| !self.fits(at, &spec, source)) {
                return Ok(Outcome::TooLarge);
            }
            let gone = self.leaving(at, found.as_ref(), Some(&spec))?;
            let along = match old.is_none() {
                true => self.kind.along(self.ports, 1).await?,
                false => Ok(None),
            };
            let Ok(along) = along else { return Ok(Outcome::TooMany) };
            self.prepare(at, &spec).await?;
            let Some(source) = source else {
                // No other definition may have come into force before the entries of this one were written.
                if !self.kind.entries(at, &spec).is_empty() && self.version(at).await? != version - 1 {
                    continue;
                }
                self.complete(at, version - 1, gone).await?;
                return Ok(Outcome::Unchanged(version - 1));
            };
            let item = entries::note(self.item(at, &spec, Some(source), version), &gone);
            let write = match old.is_some() {
                true => replace(item, entries::as_read(found.as_ref())),
                false => {
                    let mut item = item;
                    item.attrs.extend(self.kind.beside(self.ports.now()));
                    Write::Put(item, entries::as_read(found.as_ref()))
                }
            };
            if self.write(write, along).await? {
                self.complete(at, version, gone).await?;
                return Ok(Outcome::Changed(version));
            }
        }
        Err(contended(key))
    }

    /// Deletes a definition. `false`: there is none.
    ///
    /// # Errors
    /// A port fails. Deleting it again completes what was begun.
    pub async fn delete(&self, at: &Address) -> Result<bool, PortError> {
        let key = self.key(at);
        for _ in 0..COMMIT_TRIES {
            let Some(found) = self.ports.get(&key).await? else { return Ok(false) };
            let gone = self.leaving(at, Some(&found), None)?;
            if read::<K>(&found)?.is_none() {
                self.complete(at, found.version(), gone).await?;
                return Ok(false);
            }
            let Ok(along) = self.kind.along(self.ports, -1).await? else { return Err(contended(key)) };
            let version = next_version(Some(&found));
            let expires = self.ports.now() + self.retention;
            // A tombstone has no format, because writes that note something at a definition require one.
            let tombstone = Item::new(key.clone()).with("v", version).with("ttl", expires.0 / 1000);
            let tombstone = Write::Put(entries::note(tombstone, &gone), entries::as_read(Some(&found)));
            if self.write(tombstone, along).await? {
                self.complete(at, version, gone).await?;
                return Ok(true);
            }
        }
        Err(contended(key))
    }

    /// A definition in force.
    ///
    /// # Errors
    /// A port fails.
    pub async fn get(&self, at: &Address) -> Result<Option<Declared<K::Spec>>, PortError> {
        Ok(self.ports.get(&self.key(at)).await?.as_ref().map(read::<K>).transpose()?.flatten())
    }

    /// A page of at most `limit` definitions of a namespace, by name; and the name after which the next page begins.
    ///
    /// # Errors
    /// A port fails.
    pub async fn page(
        &self,
        namespace: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<namespaces::Entries<(Address, Declared<K::Spec>)>, PortError> {
        let (found, next) = self.within(namespace, (after, limit), read::<K>).await?;
        Ok((found.into_iter().map(|(name, one)| (Address::new(namespace, name), one)).collect(), next))
    }

    /// The names on such a page, also of definitions that cannot be read.
    ///
    /// # Errors
    /// A port fails.
    pub async fn names(&self, namespace: &str, after: Option<&str>, limit: u32) -> Result<namespaces::Entries<String>, PortError> {
        let exists = |item: &Item| Ok((!matches!(read::<K>(item), Ok(None))).then_some(()));
        let (found, next) = self.within(namespace, (after, limit), exists).await?;
        Ok((found.into_iter().map(|(name, ())| name).collect(), next))
    }

    async fn within<T: Send>(
        &self,
        namespace: &str,
        page: (Option<&str>, u32),
        read: impl Fn(&Item) -> Result<Option<T>, PortError> + Send,
    ) -> Result<namespaces::Entries<(String, T)>, PortError> {
        let shelf = self.kind.shelf(namespace);
        let name = |sort: &str| sort.strip_prefix(&shelf.prefix).unwrap_or(sort).to_owned();
        let (found, next) = self.look(&shelf, page, read).await?;
        Ok((found.into_iter().map(|(sort, one)| (name(&sort), one)).collect(), next.as_deref().map(name)))
    }

    /// Like [`Self::page`], over all namespaces or `among` some, by namespace and name: `<namespace>/<name>` is the end of a page.
    /// It reads a limited number of namespaces, so a page that is not the last one may have fewer entries than `limit`.
    ///
    /// # Errors
    /// A port fails.
    pub async fn everywhere(
        &self,
        among: Option<&[ProjectName]>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<namespaces::Entries<(Address, Declared<K::Spec>)>, PortError> {
        let shared = Shelf { prefix: String::new(), ..self.kind.shelf("") };
        let among = among.map(Among::These).or(shared.namespaces.map(Among::Listed));
        if let Some(among) = among {
            return namespaces::page(self.ports, self, namespaces::Wanted { among, after, limit }).await;
        }
        let (found, next) = self.look(&shared, (after, limit), read::<K>).await?;
        Ok((found.into_iter().map(|(sort, one)| (Address::parse(&sort), one)).collect(), next))
    }

    /// What `read` returns for each item, by sort key, and the last key if there may be more. Tombstones are skipped.
    async fn look<T: Send>(
        &self,
        shelf: &Shelf,
        (after, limit): (Option<&str>, u32),
        read: impl Fn(&Item) -> Result<Option<T>, PortError> + Send,
    ) -> Result<namespaces::Entries<(String, T)>, PortError> {
        let mut after = after.map(|name| Cursor { key: shelf.key(name), index_sort: None });
        let mut all: Vec<(String, T)> = vec![];
        for _ in 0..LOOKS {
            let left = limit.saturating_sub(u32::try_from(all.len()).unwrap_or(limit));
            let query = Query::table(shelf.partition.clone(), left).prefix(&shelf.prefix).after(after);
            let page = self.ports.query(&query).await?;
            for item in &page.items {
                all.extend(read(item)?.map(|one| (item.key.sk.clone(), one)));
            }
            after = page.next;
            if after.is_none() || all.len() >= limit as usize {
                break;
            }
        }
        Ok((all, after.map(|cursor| cursor.key.sk)))
    }

    /// The entries to delete when `new` replaces the definition in an item.
    pub fn leaving(&self, at: &Address, found: Option<&Item>, new: Option<&K::Spec>) -> Result<Vec<Key>, PortError> {
        let Some(found) = found else { return Ok(vec![]) };
        let keys = |spec: &K::Spec| self.kind.entries(at, spec).into_iter().map(|entry| entry.key).collect::<BTreeSet<Key>>();
        let named = read::<K>(found)?.map(|old| keys(&old.spec)).unwrap_or_default();
        entries::leaving(found, named, &new.map(keys).unwrap_or_default())
    }

    async fn prepare(&self, at: &Address, spec: &K::Spec) -> Result<(), PortError> {
        if let Some(namespaces) = self.kind.shelf(&at.namespace).namespaces {
            // A listed namespace without definitions is skipped, but a definition in an unlisted namespace would not be found.
            let listed = Item::new(Key::new(namespaces, at.namespace.as_str()));
            drop(self.ports.write(&Write::Put(listed, Condition::Absent)).await?);
        }
        table::record(self.ports, self.kind.entries(at, spec), vec![]).await?;
        self.kind.before(self.ports, at, spec, self.ports.now() + self.retention).await
    }

    async fn version(&self, at: &Address) -> Result<i64, PortError> {
        Ok(self.ports.get(&self.key(at)).await?.map_or(0, |item| item.version()))
    }

    async fn complete(&self, at: &Address, version: i64, gone: Vec<Key>) -> Result<(), PortError> {
        if !entries::delete(self.ports, self.key(at), version, &gone).await? {
            self.mend(at, &gone).await?;
        }
        self.kind.after(self.ports, at, version).await
    }

    /// Another writer has changed the definition meanwhile, and may need entries that were just deleted: these are written again.
    async fn mend(&self, at: &Address, gone: &[Key]) -> Result<(), PortError> {
        let key = self.key(at);
        let mut again: BTreeSet<Key> = BTreeSet::new();
        for _ in 0..COMMIT_TRIES {
            let Some(found) = self.ports.get(&key).await? else { return Ok(()) };
            let now = read::<K>(&found)?;
            let named = now.map(|now| self.kind.entries(at, &now.spec)).unwrap_or_default();
            let keeps: BTreeSet<Key> = named.iter().map(|entry| entry.key.clone()).collect();
            // It was changed once more after that, by a writer that could not know of the restored entries.
            if !again.is_subset(&keeps) {
                let gone = entries::leaving(&found, again.clone(), &keeps)?;
                let noted = self.ports.write(&entries::noted(&found, &gone)).await? == Written::Done;
                if noted && entries::delete(self.ports, key.clone(), found.version(), &gone).await? {
                    return Ok(());
                }
                continue;
            }
            let back: Vec<Item> =
                named.into_iter().filter(|entry| gone.contains(&entry.key) && !again.contains(&entry.key)).collect();
            if back.is_empty() {
                return Ok(());
            }
            again.extend(back.iter().map(|entry| entry.key.clone()));
            table::record(self.ports, back, vec![]).await?;
        }
        Err(contended(key))
    }

    async fn write(&self, write: Write, along: Option<Write>) -> Result<bool, PortError> {
        Ok(match along {
            None => self.ports.write(&write).await? == Written::Done,
            Some(along) => self.ports.transact(&[write, along]).await? == Transacted::Done,
        })
    }
}

impl<P: Ports, K: Kind> namespaces::Listed for Declarations<'_, P, K> {
    type Entry = (Address, Declared<K::Spec>);

    async fn page(&self, namespace: &str, after: Option<&str>, limit: u32) -> Result<namespaces::Entries<Self::Entry>, PortError> {
        self.page(namespace, after, limit).await
    }
}

/// The write that changes a definition, and keeps the other attributes of its item.
fn replace(item: Item, condition: Condition) -> Write {
    let noted = item.attrs.contains_key(entries::LEAVING);
    let remove: Vec<Name> = (!noted).then_some(Name::Borrowed(entries::LEAVING)).into_iter().collect();
    Write::Update { key: item.key, condition, set: item.attrs, remove, raise: false }
}
