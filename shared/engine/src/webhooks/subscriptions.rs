//! Definitions of subscriptions. Each is one item; separate attributes say whether it is disabled.

use super::{Address, Sender, Webhooks, keys};
use crate::item::{Attr, Attrs, Item, Name};
use crate::json::stored;
use crate::kinds::WebhookSubscriptions;
use crate::ports::{Condition, PortError, Ports, Query, Store, Write, Written};
use crate::protocol::change::{as_read, next_version};
use crate::protocol::declare::{self, Declarations, Declared, Full, Kind as _, Outcome};
use crate::protocol::record::SKEW;
use keelway_domain::event::CloudEvent;
use keelway_domain::stored::Stored;
use keelway_domain::time::Timestamp;
use keelway_domain::webhooks::Subscription;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most subscriptions of an installation, because every event is compared with all of them.
pub const MOST: usize = 200;
/// The most subscriptions that are read: more than [`MOST`], so that subscriptions of older versions, which had no limit, are
/// served.
const READ: usize = 2 * MOST;
/// The attribute with the number of subscriptions, in the item that counts changes. A transaction that adds or deletes a
/// subscription changes it.
const COUNT: Name = Name::Borrowed("n");
/// The attribute with the time of the last change, in the same item.
const CHANGED: Name = Name::Borrowed("at");
/// Since when no request has reached the receiver.
pub(super) const FAILING: Name = Name::Borrowed("fa");
/// The attribute of a disabled subscription.
pub(super) const OFF: Name = Name::Borrowed("off");
/// The attribute with the time since when it takes events. An attempt that was made before does not disable it.
pub(crate) const BEGAN: Name = Name::Borrowed("be");

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
    /// Why it is disabled, until a person resumes it.
    pub off: Option<Off>,
    /// Since when no request has reached the receiver.
    pub failing: Option<Timestamp>,
    /// Since when it takes events: its creation, or the last time it was resumed.
    pub began: Option<Timestamp>,
}

/// Why a subscription is disabled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Off {
    /// `gone`: the receiver answered 410. `failing`: no request has reached it for too long.
    pub reason: String,
    /// Since when it is disabled.
    pub at: Timestamp,
    /// The delivery that disabled it.
    pub by: String,
    /// Since when no request had reached the receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

keelway_domain::stored!(Off);

impl Off {
    /// For people.
    pub fn message(&self) -> String {
        match self.since {
            Some(since) => format!("no delivery has succeeded since {}", since.rfc3339()),
            None => "the receiver answered 410 Gone".to_owned(),
        }
    }
}

/// The cached subscriptions, with the count of changes at the time of the read.
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
    /// Those that only newer code can read.
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

pub(super) fn read(item: &Item) -> Result<Option<Applied>, PortError> {
    let Some(Declared { spec, source, at, version }) = declare::read::<WebhookSubscriptions>(item)? else { return Ok(None) };
    let (failing, began) = (item.number(&FAILING).map(Timestamp), item.number(&BEGAN).map(Timestamp));
    Ok(Some(Applied { value: spec, source, at, version, off: off(item)?, failing, began }))
}

pub(super) fn off(item: &Item) -> Result<Option<Off>, PortError> {
    stored(item, &OFF)
}

/// The attributes that every subscription has, as a condition for notes: nothing may be noted at a deleted one.
pub(super) fn is_there() -> Attrs {
    Attrs::from([("f".into(), WebhookSubscriptions::FORMAT.into())])
}

impl<P: Ports, S: Sender> Webhooks<P, S> {
    /// The subscriptions as they are applied.
    pub fn declared(&self) -> Declarations<'_, P, WebhookSubscriptions> {
        Declarations { ports: &self.ports, kind: WebhookSubscriptions, retention: self.limits.retention }
    }

    /// Puts a subscription in force. One that is disabled stays so.
    ///
    /// # Errors
    /// A port fails.
    pub async fn apply(&self, of: &Address, value: &Subscription, source: &str) -> Result<Outcome, PortError> {
        self.declared().apply(of, value, source).await
    }

    /// Deletes a subscription. `false`: it does not exist. Its open deliveries end at their next attempt.
    ///
    /// # Errors
    /// A port fails.
    pub async fn remove(&self, of: &Address) -> Result<bool, PortError> {
        self.declared().delete(of).await
    }

    /// Deletes all subscriptions of a namespace, and returns their number.
    ///
    /// # Errors
    /// A port fails.
    pub async fn remove_all(&self, namespace: &str) -> Result<usize, PortError> {
        let mut removed = 0;
        for of in self.subscriptions().await?.within(namespace) {
            removed += usize::from(self.remove(of).await?);
        }
        Ok(removed)
    }

    /// Whether the subscription selects an event now.
    pub(super) fn takes(&self, applied: &Applied, event: &CloudEvent) -> bool {
        applied.off.is_none() && self.is_in_time(applied, event.time) && applied.value.takes(event)
    }

    /// Whether an event with this time is delivered: it must not be older than the subscription, nor so old that its delivery may
    /// have expired. The clocks of senders may differ.
    pub(super) fn is_in_time(&self, applied: &Applied, time: Timestamp) -> bool {
        let began = applied.began.is_none_or(|began| time + SKEW >= began);
        began && self.ports.now() - time < self.limits.retention
    }

    /// Resumes a disabled subscription. `None`: it does not exist. `false`: it was not disabled.
    ///
    /// # Errors
    /// A port fails.
    pub async fn resume(&self, of: &Address) -> Result<Option<bool>, PortError> {
        let key = keys::subscription(of);
        let Some(found) = self.subscription(of).await? else { return Ok(None) };
        let Some(present) = found.off else {
            // An earlier request may have stopped before it counted the change.
            touch(&self.ports).await?;
            return Ok(Some(false));
        };
        let condition = Condition::Match { equal: Attrs::from([(OFF, present.to_json().into())]), absent: vec![] };
        // The time must differ from the last one, even if that was a moment ago.
        let now = self.ports.now();
        let began = found.began.map_or(now, |before| now.max(Timestamp(before.0 + 1)));
        let set = Attrs::from([(BEGAN, began.0.into())]);
        let write = Write::Update { key, condition, set, remove: vec![OFF, FAILING], raise: false };
        // Somebody else resumed it in between.
        let resumed = matches!(self.ports.write(&write).await?, Written::Done);
        touch(&self.ports).await?;
        Ok(Some(resumed))
    }

    /// A subscription by its name.
    ///
    /// # Errors
    /// A port fails.
    pub async fn subscription(&self, of: &Address) -> Result<Option<Applied>, PortError> {
        Ok(self.ports.get(&keys::subscription(of)).await?.as_ref().map(read).transpose()?.flatten())
    }

    /// All of them, by namespace and name.
    ///
    /// # Errors
    /// A port fails.
    pub async fn subscriptions(&self) -> Result<Subscriptions, PortError> {
        all(&self.ports).await
    }

    /// The present subscriptions: one item is read, and the others only if its counter shows a change.
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
}

async fn all(store: &impl Store) -> Result<Subscriptions, PortError> {
    let mut all = Subscriptions::default();
    let mut query = Query::table(keys::SUBSCRIPTIONS, 100);
    loop {
        let page = store.query(&query).await?;
        for item in &page.items {
            let of = keys::address(&item.key);
            match read(item) {
                Ok(applied) => all.readable.extend(applied.map(|applied| (of, applied))),
                Err(error) => {
                    tracing::error!(webhook = %of, %error, "a webhook subscription cannot be read: its deliveries wait");
                    all.unread.push(of);
                }
            }
        }
        match page.next.filter(|_| all.count() < READ) {
            Some(next) => query.after = Some(next),
            None => return Ok(all),
        }
    }
}

/// The write that counts a subscription in the transaction that adds (1) or deletes (-1) it. [`Full`]: there are [`MOST`].
pub(crate) async fn counted(ports: &impl Ports, by: i64) -> Result<Result<Option<Write>, Full>, PortError> {
    let key = keys::changed();
    let found = ports.get(&key).await?;
    let counted = found.as_ref().and_then(|item| item.number(&COUNT)).and_then(|n| usize::try_from(n).ok());
    let there = match counted {
        Some(there) if by < 0 || there < MOST => there,
        // Older code, which did not count, may have added or deleted some.
        _ => all(ports).await?.count(),
    };
    if by > 0 && there >= MOST {
        return Ok(Err(Full));
    }
    let there = i64::try_from(there).unwrap_or_default().saturating_add(by).max(0);
    Ok(Ok(Some(changed(found.as_ref(), Some((COUNT, there.into())), ports.now()))))
}

/// Counts a change of the subscriptions. This comes after the change, so a worker that sees the new count also sees the change.
pub(crate) async fn touch(ports: &impl Ports) -> Result<(), PortError> {
    let found = ports.get(&keys::changed()).await?;
    // If another writer was faster, its count comes after this change, and covers both.
    ports.write(&changed(found.as_ref(), None, ports.now())).await.map(drop)
}

/// Whether there is any subscription, one that cannot be read included.
pub(super) async fn is_any(store: &impl Store) -> Result<bool, PortError> {
    let mut query = Query::table(keys::SUBSCRIPTIONS, 10);
    loop {
        let page = store.query(&query).await?;
        if page.items.iter().any(|item| !matches!(read(item), Ok(None))) {
            return Ok(true);
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(false),
        }
    }
}

/// When a subscription was last applied, deleted or resumed; `None`: never, or by older code.
pub(super) async fn last_change(store: &impl Store) -> Result<Option<Timestamp>, PortError> {
    Ok(store.get(&keys::changed()).await?.and_then(|item| item.number(&CHANGED)).map(Timestamp))
}

fn changed(found: Option<&Item>, more: Option<(Name, Attr)>, now: Timestamp) -> Write {
    let mut set = Attrs::from([("v".into(), next_version(found).into()), (CHANGED, now.0.into())]);
    set.extend(more);
    Write::Update { key: keys::changed(), condition: as_read(found), set, remove: vec![], raise: false }
}
