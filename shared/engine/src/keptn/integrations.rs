//! Integrations: executors that have registered themselves with their subscriptions. No decision depends on them: open tasks are
//! queried by task name, independent of the caller. They are stored so that an executor gets its subscriptions back, and so that
//! people see which executors exist.
//!
//! An integration without a sign of life expires after two days. Its log entries are kept for five.

use super::keys;
use crate::item::{Attr, Attrs, Item, Key, Name};
use crate::json::{json, member};
use crate::keys::hash;
use crate::ports::{Condition, PortError, Ports, Query, Write, Written};
use crate::protocol::change::{Step, as_read, change};
use crate::protocol::{COMMIT_TRIES, check_format, contended};
use crate::refusal::Refusal;
use crate::sequences::Sequences;
use crate::table;
use keelway_domain::ids::hash64;
use keelway_domain::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The shortest interval at which signs of life are stored.
pub const SEEN_EVERY: Span = Span::seconds(60);
/// How long an integration is kept after its last sign of life.
const KEEP: Span = Span::minutes(48 * 60);
/// The most integrations that are read.
const MOST: usize = 1000;
/// The most subscriptions of an integration.
pub const MAX_SUBSCRIPTIONS: usize = 100;
/// The longest name, and the longest text about an integration, in bytes.
const MAX_BYTES: usize = 16 * 1024;
/// The newest format of an integration that this code knows.
const FORMAT: i64 = 1;
/// The names of an integration, which identify it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Who {
    /// Its name.
    pub name: String,
    /// Its namespace; may be empty.
    pub namespace: String,
    /// The host it runs on; may be empty.
    pub hostname: String,
}

impl Who {
    /// The id of an integration, as Keptn derives it: SHA-1 of its three names.
    pub fn id(&self) -> String {
        self.id_with("")
    }

    /// The id for names that another owner has registered: two teams may give their executors the same names.
    fn id_of(&self, owner: &str) -> String {
        self.id_with(&format!("-{owner}"))
    }

    fn id_with(&self, rest: &str) -> String {
        let mut sha = sha1_smol::Sha1::new();
        sha.update(format!("{}-{}-{}{rest}", self.name, self.namespace, self.hostname).as_bytes());
        sha.digest().to_string()
    }
}

/// A subscription of an integration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscription {
    /// The id, which is derived from the integration and the other fields.
    pub id: String,
    /// The full type of the events.
    pub event: String,
    /// Of these projects; empty: of all.
    pub projects: Vec<String>,
    /// Of these stages; empty: of all.
    pub stages: Vec<String>,
    /// Of these services; empty: of all.
    pub services: Vec<String>,
}

impl Subscription {
    /// With the id that it has at this integration.
    fn of(mut self, integration: &str) -> Self {
        let lists = json(&(&self.projects, &self.stages, &self.services));
        self.id = hash(hash64(&[integration.as_bytes(), self.event.as_bytes(), lists.as_bytes()]));
        self
    }
}

/// An integration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Integration {
    /// The id, which is derived from the names as in Keptn.
    pub id: String,
    /// The caller that has registered it. Empty: it was registered by an older version.
    pub owner: String,
    /// Its names.
    pub who: Who,
    /// Other information about the integration, as JSON.
    pub about: String,
    /// What it subscribes to.
    pub subscriptions: Vec<Subscription>,
    /// The last sign of life, to the minute.
    pub seen: Timestamp,
}

fn key(id: &str) -> Key {
    Key::new(keys::INTEGRATIONS, id)
}

fn read(item: &Item) -> Result<Integration, PortError> {
    check_format(item, FORMAT)?;
    Ok(Integration {
        id: item.key.sk.clone(),
        owner: item.text("o").unwrap_or_default().to_owned(),
        who: member(item, "w")?,
        about: item.text("ab").unwrap_or_default().to_owned(),
        subscriptions: member(item, "su")?,
        seen: Timestamp(item.number("ls").unwrap_or(0)),
    })
}

fn alive(item: &Item, now: Timestamp) -> bool {
    Timestamp(item.number("ls").unwrap_or(0)) + KEEP > now
}

fn seconds(at: Timestamp) -> i64 {
    at.0 / 1000
}

/// The integrations that have registered.
pub struct Integrations<'a, P> {
    pub(super) ports: &'a P,
}

impl<P: Ports> Sequences<P> {
    /// The integrations that have registered.
    pub fn integrations(&self) -> Integrations<'_, P> {
        Integrations { ports: &self.ports }
    }
}

impl<P: Ports> Integrations<'_, P> {
    /// Registers an integration; its id, and whether it is new. One of the same name and namespace that is known, on whatever host,
    /// is the same one if its owner `speaks` for it, and keeps its subscriptions if it has any. One that others registered is left
    /// alone.
    ///
    /// # Errors
    /// Names that are missing or too long, too many subscriptions.
    pub async fn register(&self, new: &Integration, speaks: impl Fn(&Integration) -> bool) -> Result<(String, bool), Refusal> {
        check(new)?;
        for _ in 0..COMMIT_TRIES {
            let now = self.ports.now();
            let (items, _) = table::all(self.ports, Query::table(keys::INTEGRATIONS, 100), MOST).await?;
            let mut known: Option<(&Item, Integration)> = None;
            for item in &items {
                let one = read(item)?;
                let same = (&one.who.name, &one.who.namespace) == (&new.who.name, &new.who.namespace) && one.seen + KEEP > now;
                if same && speaks(&one) && known.as_ref().is_none_or(|(_, other)| other.seen < one.seen) {
                    known = Some((item, one));
                }
            }
            let theirs = |id: &str| items.iter().any(|item| item.key.sk == id && alive(item, now));
            let free = || Some(new.who.id()).filter(|id| !theirs(id)).unwrap_or_else(|| new.who.id_of(&new.owner));
            let id = known.as_ref().map_or_else(free, |(_, one)| one.id.clone());
            let owner = known.as_ref().map(|(_, one)| one.owner.as_str()).filter(|owner| !owner.is_empty());
            let kept = known.as_ref().map(|(_, one)| one.subscriptions.clone()).filter(|kept| !kept.is_empty());
            let mut subscriptions = kept.unwrap_or_else(|| new.subscriptions.iter().map(|one| one.clone().of(&id)).collect());
            let mut seen = BTreeSet::new();
            subscriptions.retain(|one| seen.insert(one.id.clone()));
            if known.is_none() {
                let all: Vec<Integration> = items.iter().filter(|item| alive(item, now)).map(read).collect::<Result<_, _>>()?;
                let one = Integration { id: id.clone(), subscriptions: subscriptions.clone(), ..new.clone() };
                self.has_room(&one, None, &all).await?;
            }
            let version = known.as_ref().map_or(0, |(item, _)| item.version());
            // An expired integration that still exists is replaced.
            let stale = items.iter().find(|item| item.key.sk == id).filter(|_| known.is_none()).map(Item::version);
            let condition = match (known.is_some(), stale) {
                (true, _) => Condition::Version(version),
                (false, Some(stale)) => Condition::Version(stale),
                (false, None) => Condition::Absent,
            };
            let item = Item::new(key(&id))
                .with("v", version.max(stale.unwrap_or(0)) + 1)
                .with("f", FORMAT)
                .with("w", json(&new.who))
                .with("o", owner.unwrap_or(&new.owner))
                .with("ab", new.about.as_str())
                .with("su", json(&subscriptions))
                .with("ls", now.0)
                .with("ttl", seconds(now + KEEP));
            if self.ports.write(&Write::Put(item, condition)).await? == Written::Done {
                return Ok((id, known.is_none()));
            }
        }
        Err(contended(format_args!("integration {}", new.who.name)).into())
    }

    /// Records a sign of life of an integration: one read, and at most one write a minute.
    ///
    /// # Errors
    /// The integration does not exist (any more), and must register again. Inner error: the caller does not own it.
    pub async fn ping<E>(
        &self,
        id: &str,
        speaks: impl Fn(&Integration) -> Result<(), E>,
    ) -> Result<Result<Integration, E>, Refusal> {
        let (item, mut found) = self.item(id).await?;
        if let Err(stranger) = speaks(&found) {
            return Ok(Err(stranger));
        }
        let now = self.ports.now();
        if now - found.seen >= SEEN_EVERY {
            let set = Attrs::from([(Name::Borrowed("ls"), Attr::N(now.0)), (Name::Borrowed("ttl"), Attr::N(seconds(now + KEEP)))]);
            let condition = Condition::Version(item.version());
            // A concurrent writer has recorded the same.
            drop(self.ports.write(&Write::Update { key: key(id), condition, set, remove: vec![], raise: false }).await?);
            found.seen = now;
        }
        Ok(Ok(found))
    }

    /// An integration.
    ///
    /// # Errors
    /// It does not exist.
    pub async fn get(&self, id: &str) -> Result<Integration, Refusal> {
        self.item(id).await.map(|(_, found)| found)
    }

    /// All integrations, by id.
    ///
    /// # Errors
    /// A port fails.
    pub async fn all(&self) -> Result<Vec<Integration>, PortError> {
        let now = self.ports.now();
        let (items, _) = table::all(self.ports, Query::table(keys::INTEGRATIONS, 100), MOST).await?;
        let mut all = vec![];
        for item in &items {
            all.push(read(item)?);
        }
        all.retain(|one| one.seen + KEEP > now);
        Ok(all)
    }

    /// Forgets an integration.
    ///
    /// # Errors
    /// It does not exist.
    pub async fn unregister(&self, id: &str) -> Result<(), Refusal> {
        self.item(id).await?;
        drop(self.ports.write(&Write::Delete(key(id), Condition::Always)).await?);
        Ok(())
    }

    /// Adds a subscription, or replaces the one with the id `replaced`; the id it has now.
    ///
    /// # Errors
    /// The integration or the replaced subscription is not known, there are too many.
    pub async fn subscribe(&self, id: &str, new: &Subscription, replaced: Option<&str>) -> Result<String, Refusal> {
        let mut new = new.clone().of(id);
        if let Some(replaced) = replaced {
            replaced.clone_into(&mut new.id);
        }
        self.change_subscriptions(id, |all| {
            match all.iter_mut().find(|one| one.id == new.id) {
                Some(known) => new.clone_into(known),
                None if replaced.is_some() => return Err(unknown_subscription(id, &new.id)),
                None => all.push(new.clone()),
            }
            Ok(())
        })
        .await?;
        Ok(new.id)
    }

    /// Takes a subscription away.
    ///
    /// # Errors
    /// The integration or the subscription is not known.
    pub async fn unsubscribe(&self, id: &str, subscription: &str) -> Result<(), Refusal> {
        self.change_subscriptions(id, |all| {
            let before = all.len();
            all.retain(|one| one.id != subscription);
            if all.len() == before { Err(unknown_subscription(id, subscription)) } else { Ok(()) }
        })
        .await
    }

    async fn change_subscriptions(
        &self,
        id: &str,
        wanted: impl Fn(&mut Vec<Subscription>) -> Result<(), Refusal> + Sync,
    ) -> Result<(), Refusal> {
        let changed = |old: &Integration| {
            let mut found = old.clone();
            wanted(&mut found.subscriptions)?;
            check(&found).map(|()| found)
        };
        let (_, old) = self.item(id).await?;
        let found = changed(&old)?;
        let named = |one: &Integration| one.subscriptions.iter().flat_map(|of| of.projects.clone()).collect::<BTreeSet<_>>();
        if !named(&found).is_subset(&named(&old)) {
            self.has_room(&found, Some(&old), &self.all().await?).await?;
        }
        change(self.ports, &key(id), |item| {
            let item = item.ok_or_else(|| unknown_integration(id))?;
            let set = Attrs::from([(Name::Borrowed("su"), Attr::S(json(&changed(&read(item)?)?.subscriptions)))]);
            let write = Write::Update { key: key(id), condition: as_read(Some(item)), set, remove: vec![], raise: true };
            Ok(Step::Write(write, ()))
        })
        .await
    }

    async fn item(&self, id: &str) -> Result<(Item, Integration), Refusal> {
        let valid = id.len() == 40 && id.bytes().all(|b| b.is_ascii_hexdigit());
        let item = if valid { self.ports.get(&key(id)).await? } else { None };
        match item {
            Some(item) => {
                let found = read(&item)?;
                Ok((item, found))
            }
            None => Err(unknown_integration(id)),
        }
    }
}

fn unknown_integration(id: &str) -> Refusal {
    let hint = "register it (again): one that is not heard of for two days is forgotten".to_owned();
    Refusal::Unknown { kind: "integration", name: id.chars().take(100).collect(), hint }
}

fn unknown_subscription(integration: &str, id: &str) -> Refusal {
    let hint = format!("integration {integration} does not have it");
    Refusal::Unknown { kind: "subscription", name: id.chars().take(100).collect(), hint }
}

fn check(one: &Integration) -> Result<(), Refusal> {
    let refuse = |field: &'static str, message: String| Err(Refusal::Invalid { field, message });
    if one.who.name.is_empty() {
        return refuse("name", "is missing: say what the integration is called".into());
    }
    if one.subscriptions.iter().any(|subscription| subscription.event.is_empty()) {
        return refuse("event", "is missing: say which events are subscribed to".into());
    }
    let (n, bytes) = (one.subscriptions.len(), one.about.len() + json(&one.who).len());
    let listed = json(&one.subscriptions).len();
    if n > MAX_SUBSCRIPTIONS || listed > 10 * MAX_BYTES {
        let message = format!(
            "subscriptions: there are {n} with {listed} bytes, at most {MAX_SUBSCRIPTIONS} with {} are kept",
            10 * MAX_BYTES
        );
        return Err(Refusal::TooLarge(message));
    }
    if bytes > MAX_BYTES {
        return Err(Refusal::TooLarge(format!("metadata: has {bytes} bytes with the names, at most {MAX_BYTES} are kept")));
    }
    Ok(())
}
