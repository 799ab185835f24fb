//! Counters in the simulation: who adds what, and what must hold.

use super::core::{ADD, Counter, ENDED, Rules, SOURCE};
use super::{Counters, Message, NAME, subject};
use crate::sim::{self, OneKind, Scenario, Sim, Stats, Violation};
use keelway_domain::event::CloudEvent;
use keelway_domain::ids::{context_of, hash64};
use keelway_domain::names::Context;
use keelway_domain::time::Span;
use keelway_engine::item::Item;
use keelway_engine::protocol::{Body, Handled, Loaded};
use keelway_world::World;
use keelway_world::bus::Publication;
use keelway_world::queue::{Parcel, Received};
use keelway_world::rng::Rng;
use keelway_world::table::{Change, Table};
use keelway_world::worker::Worker;
use serde_json::json;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// The counters of a seed.
const NAMES: [&str; 3] = ["a", "b", "c"];
/// Rounds of sweeps in which all counters must have ended: one may begin when another ends.
const ROUNDS: usize = 20;

/// An addition somebody makes.
#[derive(Debug, Clone)]
pub struct Addition {
    counter: &'static str,
    peer: Option<&'static str>,
    n: i64,
    id: String,
}

/// One seed's counters.
pub struct Counting {
    rules: Rules,
    additions: Vec<Addition>,
    /// Inputs that were acknowledged: of which counter, which input, and what the engine said.
    acknowledged: Vec<(String, u64, Handled)>,
    /// Whatever came in, for a replay.
    received: Vec<Received>,
}

/// Runs one seed.
///
/// # Errors
/// The first invariant that is violated.
pub fn simulate(seed: u64, trace: bool) -> Result<Stats, Violation> {
    sim::simulate(seed, Counting::of, trace)
}

impl Counting {
    /// The counters a seed stands for.
    pub fn of(rng: &mut Rng) -> (Self, sim::Troubles) {
        let lifetime = *rng.pick(&[Span::seconds(20), Span::minutes(2), Span::minutes(30)]);
        let peers = NAMES.map(|_| rng.chance(60.0).then(|| *rng.pick(&NAMES)));
        let additions = (0..rng.below(12)).map(|i| {
            let place = rng.below(NAMES.len());
            Addition { counter: NAMES[place], peer: peers[place], n: 1 + rng.below(3) as i64, id: format!("add-{i}") }
        });
        let scenario =
            Self { rules: Rules { limit: 6, lifetime }, additions: additions.collect(), acknowledged: vec![], received: vec![] };
        (scenario, sim::Troubles::of(rng))
    }

    fn counters(&self, world: &World) -> Vec<Counter> {
        let core = world.core();
        let items = NAMES.iter().filter_map(|name| core.table.peek(&subject::key(name)));
        items.filter_map(|item| decode(item).ok()).collect()
    }

    fn open(&self, sim: &Sim<Self>) -> Vec<Counter> {
        self.counters(&sim.world).into_iter().filter(|x| x.end.is_none()).collect()
    }

    /// Whatever wake-up was lost, the sweep finds who has waited for it.
    fn sweep_all(&mut self, sim: &mut Sim<Self>, lost: bool) -> Result<(), String> {
        for _ in 0..ROUNDS {
            sim.rest(self, 60_000)?;
            let open = self.open(sim);
            match open.is_empty() {
                true => return Ok(()),
                false if lost => sim.sweep_after(open.iter().map(|x| x.deadline)),
                false => return Err(format!("without anything lost, something never ends: {open:?}")),
            }
        }
        Err(format!("never ends: {:?}", self.open(sim)))
    }

    /// What each input adds, as far as it is somebody's addition.
    fn amounts(&self) -> HashMap<u64, (&'static str, i64)> {
        let entry = |a: &Addition| (hash64(&[b"somebody", a.id.as_bytes()]), (a.counter, a.n));
        self.additions.iter().map(entry).collect()
    }

    /// Everything counted is counted once and was an input; a nudge is one.
    fn check_counts(&self, all: &[Counter]) -> Result<(), String> {
        let amounts = self.amounts();
        let nudges: HashMap<u64, &str> = all.iter().filter_map(|x| Some((nudge(x)?, x.peer.as_deref()?))).collect();
        for x in all {
            let mut sum = 0;
            for id in &x.seen {
                sum += match (amounts.get(id), nudges.get(id)) {
                    (Some((counter, n)), _) if **counter == *x.name => *n,
                    (None, Some(peer)) if **peer == *x.name => 1,
                    other => return Err(format!("{x:?} has counted {id}, which is {other:?}")),
                };
            }
            let once: HashSet<&u64> = x.seen.iter().collect();
            if sum != x.count || once.len() != x.seen.len() {
                return Err(format!("{x:?} has not counted what it has seen: {sum}"));
            }
        }
        Ok(())
    }

    /// Every acknowledged input is counted, or came after the end; every end was published and has nudged the peer.
    fn check_promises(&self, world: &World, all: &[Counter]) -> Result<(), String> {
        let by_name: BTreeMap<&str, &Counter> = all.iter().map(|x| (x.name.as_str(), x)).collect();
        for (name, id, handled) in &self.acknowledged {
            let x = by_name.get(name.as_str()).ok_or_else(|| format!("{name} was never begun"))?;
            if x.seen.contains(id) != (*handled != Handled::Stale) {
                return Err(format!("input {id} was acknowledged as {handled:?}, and {x:?}"));
            }
        }
        for x in all {
            let told =
                |p: &Publication| p.entry.detail_type == ENDED && p.entry.detail.contains(&format!("\"counter\":\"{}\"", x.name));
            let ends = world.core().bus.firsts().filter(|p| told(p)).count();
            let count = format!("\"count\":{},", x.count);
            let right = world.core().bus.firsts().filter(|p| told(p) && p.entry.detail.contains(&count)).count();
            if x.end.is_none() || ends != 1 || right != 1 {
                return Err(format!("{x:?} has told its end {ends} times, {right} times as it is"));
            }
            // A redriven letter is taken out when it is handled; its message may die after that without having been acknowledged.
            let refused = |id: u64| {
                let name = format!("id: {id},");
                world
                    .core()
                    .table
                    .items()
                    .any(|item| item.key.pk.starts_with("B#") && item.text("b").is_some_and(|b| b.contains(&name)))
            };
            let counted = |id: u64| all.iter().any(|other| other.seen.contains(&id));
            let arrived = |id| self.acknowledged.iter().any(|(_, other, _)| *other == id) || counted(id) || refused(id);
            if nudge(x).is_some_and(|id| !arrived(id)) {
                return Err(format!("the nudge of {x:?} never arrived"));
            }
        }
        Ok(())
    }

    /// Everything that ever came in comes again, much later, and nothing changes.
    fn replay(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        let (before, events) = (self.counters(&sim.world), sim.world.outgoing().len());
        sim.world.pass(Span::minutes(60));
        for received in std::mem::take(&mut self.received) {
            sim.world.enqueue(NAME, received.parcel);
        }
        sim.rest(self, 60_000)?;
        if self.counters(&sim.world) != before || sim.world.outgoing().len() != events {
            return Err("a replay has changed something".into());
        }
        sim.stats.count("replays");
        Ok(())
    }
}

/// The input that a counter's end is to its peer.
fn nudge(x: &Counter) -> Option<u64> {
    let from = x.record.filter(|_| x.peer.is_some())?.uuid().to_string();
    Some(hash64(&[SOURCE.as_bytes(), from.as_bytes()]))
}

fn decode(item: &Item) -> Result<Counter, String> {
    Loaded::read(item).map(|loaded| loaded.x).map_err(|e| e.to_string())
}

impl OneKind for Counters<Worker> {
    type Subject = Counter;
}

impl Scenario for Counting {
    type Engine = Counters<Worker>;
    type Action = Addition;
    const REGISTERED: bool = false;

    fn engine(&self, ports: Worker) -> Arc<Self::Engine> {
        Arc::new(Counters::new(ports, self.rules))
    }
    fn prepare(&mut self, _: &World) {}
    fn schedule(&mut self, sim: &mut Sim<Self>) {
        sim.note(&format!("{:?} {:?}", self.rules, self.additions));
        let now = sim.world.now();
        for addition in self.additions.clone() {
            let mut at = now + sim.a_while(60);
            if sim.rng.chance(10.0) {
                at = at + self.rules.lifetime;
            }
            // Some clients send an event again.
            if sim.rng.chance(20.0) {
                let later = at + sim.a_while(30);
                sim.plan(later, addition.clone());
            }
            sim.plan(at, addition);
        }
    }
    fn act(&mut self, sim: &mut Sim<Self>, addition: Addition) {
        let data = json!({"counter": addition.counter, "n": addition.n, "peer": addition.peer});
        #[expect(clippy::unwrap_used, reason = "a UUID")]
        let context = Context::new(context_of("sim", "1").to_string()).unwrap();
        sim.world.emit::<Counters<Worker>>(CloudEvent {
            id: addition.id,
            source: "somebody".into(),
            ty: ADD.into(),
            time: sim.world.now(),
            context,
            authors: vec![],
            triggered_id: None,
            git_commit_id: None,
            data: data.as_object().cloned().unwrap_or_default(),
        });
    }
    fn published(&mut self, _: &mut Sim<Self>, _: &Publication) {}
    fn acknowledged(&mut self, sim: &mut Sim<Self>, _: u64, received: Received, handled: Handled) -> Result<(), String> {
        let input = match (received.incoming::<Message>().map(|delivery| delivery.body), &received.parcel) {
            (_, Parcel::Event(event)) => {
                let name = event.text("counter").unwrap_or_default();
                Some((name.to_owned(), hash64(&[event.source.as_bytes(), event.id.as_bytes()])))
            }
            (Some(Body::Own(Message::Nudge { to, from, .. })), _) => Some((to, hash64(&[SOURCE.as_bytes(), from.as_bytes()]))),
            _ => None,
        };
        if let Some((name, id)) = input {
            self.acknowledged.push((name, id, handled));
        }
        self.received.push(received);
        sim.stats.count(match handled {
            Handled::Committed => "committed",
            Handled::Settled => "settled",
            Handled::Stale => "stale",
            Handled::Invalid | Handled::Recorded => return Err("a good input was refused".into()),
        });
        Ok(())
    }
    fn changed(&mut self, changes: &[Change], _: &Table, _: u64) -> Result<(), String> {
        for change in changes {
            let (Some(old), Some(new)) = (&change.old, &change.new) else { continue };
            if change.key.sk.starts_with("T#") && old.text("j") != new.text("j") {
                return Err(format!("transition record {} was overwritten with other content", change.key));
            }
            if !change.key.pk.starts_with("N#") || change.key.sk.starts_with("T#") {
                continue;
            }
            let (before, after) = (decode(old)?, decode(new)?);
            if before.end.is_some() || after.count < before.count || new.version() != old.version() + 1 {
                return Err(format!("{before:?} became {after:?}"));
            }
        }
        Ok(())
    }
    fn come_to_an_end(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        // Some of them may be stored and sent again already.
        let lost = sim.stats.0.contains_key("dead letters");
        if sim.troubles.redrive_first {
            sim.redrive(self)?;
        }
        // The sweep alone ends what is there; then come the letters, which may begin other counters.
        self.sweep_all(sim, lost)?;
        sim.redrive(self)?;
        self.sweep_all(sim, lost)
    }
    fn at_rest(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        let all = self.counters(&sim.world);
        sim.stats.add("counters", all.len() as u64);
        sim.stats.add("full", all.iter().filter(|x| x.end == Some(super::core::End::Full)).count() as u64);
        sim.stats.add("nudged", all.iter().filter(|x| x.seen.iter().any(|id| !self.amounts().contains_key(id))).count() as u64);
        self.check_counts(&all)?;
        self.check_promises(&sim.world, &all)?;
        self.replay(sim)
    }
}
