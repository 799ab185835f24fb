//! The past changes nothing. When everything has come to rest, what was told is told again, some of it in any order: at once, a day
//! later, as an archive of the bus or somebody who sends dead letters again does, and a year later. What has become of anything
//! stays as it is, and nobody outside is asked for anything.

use super::scenario::Scenario;
use super::scheduler::Sim;
use crate::stand::expire;
use keelway_domain::time::Span;
use keelway_engine::register;
use keelway_world::World;
use keelway_world::queue::Parcel;
use std::collections::BTreeMap;

/// A message, and the queue that it lay in.
pub type Told = (String, Parcel);
/// What has become of everything, by name: the version of an item, or how often somebody outside was asked.
pub type Standing = BTreeMap<String, i64>;

/// How many of the stories with many seeds go on so, in percent: it takes longer than all that comes before.
pub const PAST: f64 = 10.0;
/// So many messages are remembered.
pub(super) const MOST_TOLD: usize = 300;
/// So many of them are told again.
const SOME: usize = 25;
/// So many requests at most come of each that is told again: an event may be delivered to a few subscriptions that did not take it
/// then, with all attempts.
const MOST_REQUESTS: u64 = 300;
/// When they are told again, in days.
const LATER: [i64; 3] = [0, 1, 365];

/// The watch over a repository, which only says when somebody looks next: a copy of a look that came too early tidies up what it
/// finds over.
const WATCH: &str = "R#";

/// The versions of everything that is state. A fact that nobody asks for any more expires, and is told anew.
pub fn standing(world: &World) -> Standing {
    let core = world.core();
    let state = |item: &&std::sync::Arc<keelway_engine::item::Item>| {
        register::kind(&item.key).is_some_and(|kind| kind.state)
            && item.version() > 0
            && item.number("ttl").is_none()
            && !item.key.pk.starts_with(WATCH)
    };
    core.table.items().filter(state).map(|item| (item.key.to_string(), item.version())).collect()
}

impl<S: Scenario> Sim<S> {
    /// Time passes, and what was told is told again.
    ///
    /// # Errors
    /// What it has changed.
    pub fn outlive(&mut self, scenario: &mut S) -> Result<(), String> {
        for days in LATER {
            self.note(&format!("{days} days pass, and the past is told again"));
            // In the same millisecond, a message of our own is no copy of what it says, but that message again.
            self.world.pass(Span(days * 24 * 60 * 60 * 1000 + 1));
            self.rest(scenario, 60_000)?;
            expire(&self.world);
            // That is no request of anybody's.
            self.world.core().table.journal.clear();
            let before = scenario.standing(&self.world);
            let (mut again, own) = scenario.past(self, days);
            // No queue keeps a message for a year, and no dead letter outlives what it is about.
            again.extend(own.into_iter().filter(|_| days <= 1));
            let (some, requests) = (SOME.min(again.len()), self.world.core().request_count());
            for _ in 0..some {
                let (queue, parcel) = self.rng.pick(&again).clone();
                self.world.enqueue(&queue, parcel);
            }
            self.rest(scenario, 60_000)?;
            let after = scenario.standing(&self.world);
            let differs = |(name, is): &(&String, &i64)| match before.get(*name) {
                Some(was) => was != *is,
                None => !scenario.may_begin(&self.world, name, days),
            };
            if let Some((name, is)) = after.iter().find(differs) {
                return Err(format!("after {days} days the past changed {name} from {:?} to {is}", before.get(name)));
            }
            let made = self.world.core().request_count() - requests;
            if made > MOST_REQUESTS * some as u64 {
                return Err(format!("after {days} days {made} requests came of {some} messages of the past"));
            }
            self.stats.add("told again", some as u64);
        }
        Ok(())
    }
}
