//! The sweep: every few minutes it settles what is open and overdue, so that a lost message costs at most that long.
//!
//! It sends dead letters again, and reads the sparse index of open executions in bounded pages, going on next time where it stopped.
//! It only sends messages: what is decided is decided by the executions themselves.

use super::Engine;
use super::codec::{self, Loaded, address};
use crate::item::{Attr, Attrs, Item, Key, Name};
use crate::keys;
use crate::message::Message;
use crate::ports::{Condition, Cursor, Index, PortError, Ports, Query, Write};
use crate::table;
use keelway_domain::names::{Context, ProjectName};
use keelway_domain::sequences::{Flags, Lane};
use keelway_domain::time::{Span, Timestamp};
use std::collections::{HashMap, HashSet};

/// What has been waiting for less than this is somebody's work in progress.
const OVERDUE: Span = Span::minutes(2);
/// An unanswered trigger is published again by sweeps until it is this old.
pub(super) const AGAIN: Span = Span::minutes(20);
const PAGE: u32 = 100;

/// What a sweep did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// Open executions looked at.
    pub seen: usize,
    /// Messages sent.
    pub sent: usize,
    /// It came to the end of all projects; the next one begins anew.
    pub finished: bool,
}

/// Where a sweep goes on: the project, and the last index entry seen in it.
struct Place {
    project: Option<String>,
    after: Option<Cursor>,
}

impl<P: Ports> Engine<P> {
    /// Looks at `budget` open executions at most (rounded up to a page) and settles those that are overdue.
    pub async fn sweep(&self, budget: usize) -> Result<Swept, PortError> {
        let mut swept = Swept { sent: self.redrive().await?, ..Swept::default() };
        let mut place = self.place().await?;
        loop {
            let Some(project) = self.next_project(place.project.as_deref(), place.after.is_some()).await? else {
                swept.finished = true;
                self.remember(&Place { project: None, after: None }).await?;
                return Ok(swept);
            };
            let query = Query::index(Index::ByAge, keys::open_executions(&project), PAGE).after(place.after.take());
            let page = self.ports.query(&query).await?;
            let keys: Vec<Key> = page.items.iter().map(|item| item.key.clone()).collect();
            swept.seen += keys.len();
            swept.sent += self.look(&project, &keys).await?;
            place = Place { project: Some(project.to_string()), after: page.next };
            if swept.seen >= budget {
                self.remember(&place).await?;
                return Ok(swept);
            }
        }
    }

    /// The project to look at: the one begun, or the next by name.
    async fn next_project(&self, last: Option<&str>, begun: bool) -> Result<Option<ProjectName>, PortError> {
        let mut query = Query::table(keys::PROJECTS, 2);
        query.from = last.unwrap_or_default().to_owned();
        let page = self.ports.query(&query).await?;
        let mut names = page.items.iter().map(|item| item.key.sk.as_str()).filter(|name| begun || Some(*name) != last);
        Ok(names.next().and_then(|name| ProjectName::new(name).ok()))
    }

    /// Sends a message to every overdue execution among these; of those that wait for one lane, the first is enough.
    async fn look(&self, project: &ProjectName, keys: &[Key]) -> Result<usize, PortError> {
        let items = self.read(keys).await?;
        let mut open: Vec<Loaded> = Vec::new();
        for item in items.values() {
            match codec::execution(item) {
                Ok(loaded) if loaded.x.outcome.is_none() => open.push(loaded),
                Ok(_) => {}
                // One that this code cannot read keeps nobody else waiting.
                Err(error) => tracing::error!(item = %item.key, %error, "the sweep passes over an execution"),
            }
        }
        open.sort_by_key(|loaded| (loaded.x.accepted, loaded.x.id));
        let flags = self.flags(project, &open).await?;
        let now = self.ports.now();
        let mut lanes = HashSet::new();
        let mut bodies = Vec::new();
        for loaded in &open {
            let x = &loaded.x;
            self.prolong(loaded, now).await?;
            let wanted =
                flags.get(&x.context).is_some_and(|flags| flags.aborts(&x.stage, x.epoch) || flags.pauses(&x.stage) != x.paused);
            if wanted {
                bodies.push(Message::Obey { to: address(x) }.to_body());
            } else if overdue(loaded, now) && Self::lane_name(loaded).is_none_or(|lane| lanes.insert(lane)) {
                // What is owed includes the wake-up: one that is overdue arrives at once.
                bodies.push(Message::Settle { to: address(x) }.to_body());
            }
        }
        table::send(&self.ports, &bodies).await?;
        Ok(bodies.len())
    }

    async fn flags(&self, project: &ProjectName, open: &[Loaded]) -> Result<HashMap<Context, Flags>, PortError> {
        let contexts: HashSet<Context> = open.iter().map(|loaded| loaded.x.context.clone()).collect();
        let wanted: Vec<Key> = contexts.iter().map(|context| keys::context(project, context)).collect();
        let items = if wanted.is_empty() { HashMap::new() } else { self.read(&wanted).await? };
        let of = |context: Context| {
            let flags = codec::context(items.get(&keys::context(project, &context))).flags;
            (context, flags)
        };
        Ok(contexts.into_iter().map(of).collect())
    }

    async fn place(&self) -> Result<Place, PortError> {
        let key = Key::new("SWEEP", keys::MAIN);
        let items = self.read(std::slice::from_ref(&key)).await?;
        let text = |name: &str| items.get(&key).and_then(|item| item.text(name)).map(str::to_owned);
        let after = text("apk").zip(text("ask")).map(|(pk, sk)| Cursor { key: Key::new(pk, sk), index_sort: text("ags") });
        Ok(Place { project: text("p"), after })
    }

    async fn remember(&self, place: &Place) -> Result<(), PortError> {
        let after = place.after.as_ref();
        let item = Item::new(Key::new("SWEEP", keys::MAIN))
            .with_some("p", place.project.as_deref())
            .with_some("apk", after.map(|cursor| cursor.key.pk.as_str()))
            .with_some("ask", after.map(|cursor| cursor.key.sk.as_str()))
            .with_some("ags", after.and_then(|cursor| cursor.index_sort.as_deref()));
        // Two sweeps at once look at some executions twice: harmless.
        drop(self.ports.write(&Write::Put(item, Condition::Always)).await?);
        Ok(())
    }

    /// Keeps the payload of an execution that stays open longer than history is kept: the item that holds it expires later.
    async fn prolong(&self, loaded: &Loaded, now: Timestamp) -> Result<(), PortError> {
        let x = &loaded.x;
        let since = [x.sent, x.began].into_iter().flatten().fold(x.caused, Timestamp::max);
        if now - since < Span(self.limits.retention.0 / 2) {
            return Ok(());
        }
        let payload = Key::new(keys::context_partition(&x.project, &x.context), x.payload.clone());
        let key = x.record.map_or(payload, |id| keys::record(&x.project, &x.context, &id));
        let expires = (now + self.limits.retention).0 / 1000;
        let stale = |item: &Item| item.number("ttl").is_some_and(|ttl| ttl < expires - self.limits.retention.0 / 2000);
        if self.read(std::slice::from_ref(&key)).await?.get(&key).is_some_and(stale) {
            let set = Attrs::from([(Name::Borrowed("ttl"), Attr::N(expires))]);
            drop(self.ports.write(&Write::Update { key, condition: Condition::Always, set, remove: vec![], raise: false }).await?);
        }
        Ok(())
    }
}

/// Whether an execution waits for something that should have come by now.
fn overdue(loaded: &Loaded, now: Timestamp) -> bool {
    let x = &loaded.x;
    let since = |t: Option<Timestamp>| t.is_none_or(|t| t + OVERDUE < now);
    match (x.wake, x.lane) {
        (Some(wake), _) if wake + OVERDUE < now && (x.open || x.due.is_some()) => true,
        (_, Lane::Wants) => since(Some(x.caused)),
        // Sent and unanswered: perhaps its trigger was never published. Said again a few times, not for as long as a person thinks.
        _ => x.open && x.reactions.is_empty() && x.sent.is_some_and(|t| t + OVERDUE < now && now < t + AGAIN),
    }
}
