//! Subscriptions as they are applied. Each is one item; whether one is disabled stands beside what it says, in attributes of its own.

use super::{Address, Sender, Webhooks, keys};
use crate::item::{Attr, Attrs, Item, MAX_ITEM_BYTES, Name};
use crate::json::{json, member};
use crate::ports::{Condition, PortError, Ports, Query, Transacted, Write, Written};
use crate::protocol::record::SKEW;
use crate::protocol::{COMMIT_TRIES, check_format, contended};
use crate::table;
use keelway_domain::event::CloudEvent;
use keelway_domain::time::Timestamp;
use keelway_domain::webhooks::Subscription;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The newest format of a subscription that this code knows.
const FORMAT: i64 = 1;
/// At most so many subscriptions in an installation: every event is compared with all of them.
pub const MOST: usize = 200;
/// So many are read: more than [`MOST`], so that one is told even if it was applied by code that did not count.
const READ: usize = 2 * MOST;
/// How many there are, beside how often they have changed. Whoever makes or deletes one changes this in the same transaction.
const COUNT: Name = Name::Borrowed("n");
/// Since when nothing has reached the receiver.
pub(super) const FAILING: Name = Name::Borrowed("fa");
/// That it is disabled.
pub(super) const OFF: Name = Name::Borrowed("off");
/// Since when it takes events. An attempt that was made before does not disable it.
pub(super) const BEGAN: Name = Name::Borrowed("be");

/// A subscription in force.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// What it says.
    pub value: Subscription,
    /// The text as it was applied.
    pub source: String,
    /// When it was last changed.
    pub at: Timestamp,
    /// How often it was changed.
    pub version: i64,
    /// It is disabled until a person resumes it.
    pub off: Option<Off>,
    /// Since when nothing has reached the receiver.
    pub failing: Option<Timestamp>,
    /// Since when it takes events: since it was created, or resumed last.
    pub began: Option<Timestamp>,
}

/// Why a subscription is disabled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Off {
    /// `gone`: the receiver answered 410. `failing`: nothing has reached it for long.
    pub reason: String,
    /// Since when it is disabled.
    pub at: Timestamp,
    /// The delivery that found it.
    pub by: String,
    /// Since when nothing reached the receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

impl Off {
    /// For people.
    pub fn message(&self) -> String {
        match self.since {
            Some(since) => format!("no delivery has succeeded since {}", since.rfc3339()),
            None => "the receiver answered 410 Gone".to_owned(),
        }
    }
}

/// What became of applying a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is in force now.
    Changed,
    /// It was in force.
    Unchanged,
    /// It does not fit into an item.
    TooLarge,
    /// There are [`MOST`] others.
    TooMany,
}

/// The subscriptions, and how often they had changed when they were read.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<Option<(i64, All)>>);

impl Known {
    fn lock(&self) -> MutexGuard<'_, Option<(i64, All)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn version(&self) -> Option<i64> {
        self.lock().as_ref().map(|(version, _)| *version)
    }
}

impl Clone for Known {
    fn clone(&self) -> Self {
        Self(Mutex::new(self.lock().clone()))
    }
}

/// All subscriptions, by namespace and name.
#[derive(Debug, Clone, Default)]
pub struct Subscriptions {
    /// Those that this code can read.
    pub readable: Vec<(Address, Applied)>,
    /// The others; newer code can.
    pub unread: Vec<Address>,
}

impl Subscriptions {
    /// How many there are.
    fn count(&self) -> usize {
        self.readable.len() + self.unread.len()
    }

    /// The names of those in a namespace.
    pub fn within<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a Address> {
        self.readable.iter().map(|(of, _)| of).chain(&self.unread).filter(move |of| of.namespace == namespace)
    }
}

/// As a worker remembers them.
type All = Arc<Subscriptions>;

fn values(value: &Subscription, source: &str) -> Attrs {
    Attrs::from([("j".into(), json(value).into()), ("src".into(), source.into())])
}

/// Whether a subscription fits into its item.
pub fn fits(of: &Address, value: &Subscription, source: &str) -> bool {
    Item { key: keys::subscription(of), attrs: values(value, source) }.size() <= MAX_ITEM_BYTES - 2048
}

pub(super) fn read(item: &Item) -> Result<Applied, PortError> {
    check_format(item, FORMAT)?;
    let broken = || PortError::Refused { request: "decode", reason: format!("{} is no subscription", item.key) };
    Ok(Applied {
        value: member::<Option<Subscription>>(item, "j")?.ok_or_else(broken)?,
        source: item.text("src").unwrap_or_default().to_owned(),
        at: Timestamp(item.number("at").unwrap_or_default()),
        version: item.version(),
        off: off(item)?,
        failing: item.number(&FAILING).map(Timestamp),
        began: item.number(&BEGAN).map(Timestamp),
    })
}

pub(super) fn off(item: &Item) -> Result<Option<Off>, PortError> {
    member(item, &OFF)
}

/// What every subscription has, so that nothing is noted at one that was deleted.
pub(super) fn is_there() -> Attrs {
    Attrs::from([("f".into(), FORMAT.into())])
}

impl<P: Ports, S: Sender> Webhooks<P, S> {
    /// Puts a subscription in force. One that is disabled stays so.
    ///
    /// # Errors
    /// Of the ports.
    pub async fn apply(&self, of: &Address, value: &Subscription, source: &str) -> Result<Outcome, PortError> {
        if !fits(of, value, source) {
            return Ok(Outcome::TooLarge);
        }
        let key = keys::subscription(of);
        for _ in 0..COMMIT_TRIES {
            let found = self.ports.get(&key).await?;
            let old = found.as_ref().map(read).transpose()?;
            if old.as_ref().is_some_and(|old| old.value == *value && old.source == source) {
                // An earlier request may have stopped before it said that they have changed.
                self.touch().await?;
                return Ok(Outcome::Unchanged);
            }
            let version = old.map_or(0, |old| old.version);
            let mut set = values(value, source);
            set.extend(is_there());
            let now = self.ports.now();
            let attributes: [(Name, Attr); 2] = [("at".into(), now.0.into()), ("v".into(), (version + 1).into())];
            set.extend(attributes);
            set.extend(found.is_none().then(|| (BEGAN, now.0.into())));
            let condition = if found.is_none() { Condition::Absent } else { Condition::Version(version) };
            let write = Write::Update { key: key.clone(), condition, set, remove: vec![], raise: false };
            let done = if found.is_some() {
                self.ports.write(&write).await? == Written::Done
            } else {
                let Some(counted) = self.counted(1).await? else { return Ok(Outcome::TooMany) };
                self.ports.transact(&[write, counted]).await? == Transacted::Done
            };
            if done {
                self.touch().await?;
                return Ok(Outcome::Changed);
            }
        }
        Err(contended(key))
    }

    /// Takes a subscription out. `false`: there is none. Its deliveries that wait end at their next attempt.
    ///
    /// # Errors
    /// Of the ports.
    pub async fn remove(&self, of: &Address) -> Result<bool, PortError> {
        let key = keys::subscription(of);
        for _ in 0..COMMIT_TRIES {
            let Some(found) = self.ports.get(&key).await? else { return Ok(false) };
            let delete = Write::Delete(key.clone(), Condition::Version(found.version()));
            let Some(counted) = self.counted(-1).await? else { return Err(contended(key)) };
            if self.ports.transact(&[delete, counted]).await? == Transacted::Done {
                self.touch().await?;
                return Ok(true);
            }
        }
        Err(contended(key))
    }

    /// Takes all subscriptions of a namespace out. How many there were.
    ///
    /// # Errors
    /// Of the ports.
    pub async fn remove_all(&self, namespace: &str) -> Result<usize, PortError> {
        let mut removed = 0;
        for of in self.subscriptions().await?.within(namespace) {
            removed += usize::from(self.remove(of).await?);
        }
        Ok(removed)
    }

    /// The write that counts one more, or one less, in the transaction that makes or deletes it. `None`: there are [`MOST`].
    async fn counted(&self, by: i64) -> Result<Option<Write>, PortError> {
        let key = keys::changed();
        let found = self.ports.get(&key).await?;
        let counted = found.as_ref().and_then(|item| item.number(&COUNT)).and_then(|n| usize::try_from(n).ok());
        let there = match counted {
            Some(there) if by < 0 || there < MOST => there,
            // Code that did not count may have made or deleted some.
            _ => self.subscriptions().await?.count(),
        };
        if by > 0 && there >= MOST {
            return Ok(None);
        }
        let (condition, version) = match &found {
            None => (Condition::Absent, 0),
            Some(item) => (Condition::Version(item.version()), item.version()),
        };
        let there = i64::try_from(there).unwrap_or_default().saturating_add(by).max(0);
        let set = Attrs::from([("v".into(), (version + 1).into()), (COUNT, there.into())]);
        Ok(Some(Write::Update { key, condition, set, remove: vec![], raise: false }))
    }

    /// Whether it takes an event, as it is now.
    pub(super) fn takes(&self, applied: &Applied, event: &CloudEvent) -> bool {
        applied.off.is_none() && self.is_in_time(applied, event.time) && applied.value.takes(event)
    }

    /// Whether an event of this time is delivered: none from before the subscription took events, and none that may have been delivered
    /// longer ago than deliveries are kept. Whoever sends events may have another clock.
    pub(super) fn is_in_time(&self, applied: &Applied, time: Timestamp) -> bool {
        let began = applied.began.is_none_or(|began| time + SKEW >= began);
        began && self.ports.now() - time < self.limits.retention
    }

    /// Has a subscription that is disabled take events again. `None`: there is none; `false`: it was not disabled.
    ///
    /// # Errors
    /// Of the ports.
    pub async fn resume(&self, of: &Address) -> Result<Option<bool>, PortError> {
        let key = keys::subscription(of);
        let Some(found) = self.subscription(of).await? else { return Ok(None) };
        let Some(present) = found.off else {
            // An earlier request may have stopped before it said so.
            self.touch().await?;
            return Ok(Some(false));
        };
        let condition = Condition::Match { equal: Attrs::from([(OFF, json(&present).into())]), absent: vec![] };
        // Another time than before, also if that was a moment ago.
        let now = self.ports.now();
        let began = found.began.map_or(now, |before| now.max(Timestamp(before.0 + 1)));
        let set = Attrs::from([(BEGAN, began.0.into())]);
        let write = Write::Update { key, condition, set, remove: vec![OFF, FAILING], raise: false };
        // Somebody else resumed it in between.
        let resumed = matches!(self.ports.write(&write).await?, Written::Done);
        self.touch().await?;
        Ok(Some(resumed))
    }

    /// A subscription by its name.
    ///
    /// # Errors
    /// Of the ports.
    pub async fn subscription(&self, of: &Address) -> Result<Option<Applied>, PortError> {
        self.ports.get(&keys::subscription(of)).await?.as_ref().map(read).transpose()
    }

    /// All of them, by namespace and name.
    ///
    /// # Errors
    /// Of the ports.
    pub async fn subscriptions(&self) -> Result<Subscriptions, PortError> {
        let (items, _) = table::all(&self.ports, Query::table(keys::SUBSCRIPTIONS, 100), READ).await?;
        let mut all = Subscriptions::default();
        for item in &items {
            let of = keys::address(&item.key);
            match read(item) {
                Ok(applied) => all.readable.push((of, applied)),
                Err(error) => {
                    tracing::error!(webhook = %of, %error, "a webhook subscription cannot be read: its deliveries wait");
                    all.unread.push(of);
                }
            }
        }
        Ok(all)
    }

    /// All of them, as they are now: one item is read, and the others only if that one says that they have changed.
    pub(super) async fn in_force(&self) -> Result<All, PortError> {
        // There has never been any.
        let Some(item) = self.ports.get(&keys::changed()).await? else { return Ok(All::default()) };
        let changed = item.version();
        let known = self.known.lock().clone();
        if let Some((of, all)) = known
            && of == changed
        {
            return Ok(all);
        }
        let all = Arc::new(self.subscriptions().await?);
        *self.known.lock() = Some((changed, all.clone()));
        Ok(all)
    }

    /// Says that the subscriptions have changed. This comes after the change, so whoever sees it sees the change, too.
    pub(super) async fn touch(&self) -> Result<(), PortError> {
        let key = keys::changed();
        let found = self.ports.get(&key).await?;
        let version = found.as_ref().map_or(0, Item::version);
        let condition = if found.is_none() { Condition::Absent } else { Condition::Version(version) };
        let set = Attrs::from([("v".into(), (version + 1).into())]);
        // If somebody was faster, that was after this change, and counts for both.
        self.ports.write(&Write::Update { key, condition, set, remove: vec![], raise: false }).await.map(drop)
    }
}
