//! Windows: nothing begins in a stage that is closed, unless a person lets it through; what is held back waits in its lane's queue.

use super::Shipyards;
use super::actors::Action;
use super::check::project;
use super::plan::{REVISION, shipyard, with_windows};
use super::planted::Seen;
use crate::sim::Sim;
use keelway_domain::names::Context;
use keelway_domain::sequences::{Entrance, Execution, Flags, Lane, Override, Passage};
use keelway_domain::shipyard::{Sequence, Shipyard};
use keelway_domain::time::Timestamp;
use keelway_domain::windows::{Gate, Window, gate};
use keelway_engine::item::Key;
use keelway_engine::ports::Ports;
use keelway_engine::projects;
use keelway_engine::projects::NewShipyard;
use keelway_engine::refusal::Refusal;
use keelway_engine::sequences::{Sequences, codec, keys};
use keelway_world::table::{Change, Table};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The name of the `n`-th revision.
pub(super) fn revision(n: usize) -> String {
    if n == 0 { REVISION.to_owned() } else { format!("r{}", n + 1) }
}

/// The shipyard of each revision.
pub(super) fn revisions(windows: &[[Vec<Window>; 2]]) -> BTreeMap<String, Shipyard> {
    let mut all: BTreeMap<String, Shipyard> =
        windows.iter().enumerate().map(|(n, windows)| (revision(n), with_windows(windows))).collect();
    all.entry(revision(0)).or_insert_with(|| shipyard().clone());
    all
}

/// What the watcher remembers of windows.
#[derive(Default)]
pub struct Freeze {
    /// The shipyard of each revision; empty: no stage has windows.
    pub revisions: BTreeMap<String, Shipyard>,
    /// When executions were held back last, counted in requests.
    pub freed: HashMap<Key, u64>,
    /// Every override that was ever given, by context and stage.
    overrides: HashMap<(Key, String), Vec<Override>>,
}

impl Freeze {
    /// A context was told something.
    pub fn told(&mut self, change: &Change) {
        let flags = codec::context(change.new.as_deref()).flags;
        for (stage, given) in flags.overrides {
            let all = self.overrides.entry((change.key.clone(), stage)).or_default();
            if !all.contains(&given) {
                all.push(given);
            }
        }
    }

    /// An execution changed. `judged`: the revisions that whoever made the change may have found in force.
    pub fn changed(&self, key: &Key, old: Option<&Execution>, x: &Execution, (seen, version): (&Seen, i64)) -> Result<(), String> {
        if x.held.is_some() && (x.began.is_some() || x.lane != Lane::Wants || x.paused) {
            return Err(format!("{key} is held back, and does not just wait for its lane: {x:?}"));
        }
        let Some(at) = x.began.filter(|_| x.outcome.is_none() && old.is_none_or(|old| old.began.is_none())) else { return Ok(()) };
        let first = BTreeSet::from([revision(0)]);
        let judged = seen.judged.get(&(key.clone(), version)).unwrap_or(&first);
        if judged.iter().any(|revision| self.admits(revision, key, x, at)) {
            return Ok(());
        }
        Err(format!("{key} began at {} though its stage was closed by {judged:?}: {x:?}", at.0))
    }

    fn admits(&self, revision: &str, key: &Key, x: &Execution, at: Timestamp) -> bool {
        let definition = |revision: &str| self.revisions.get(revision).and_then(|all| all.stage(&x.stage));
        let Some(stage) = definition(revision) else { return true };
        let sequence = stage.sequence(&x.sequence).or_else(|| definition(&x.revision)?.sequence(&x.sequence));
        let Gate::Closed(until) = gate(&stage.windows, at) else { return true };
        let context = Key::new(key.pk.as_str(), keys::MAIN);
        let given = self.overrides.get(&(context, x.stage.clone())).into_iter().flatten();
        sequence.is_some_and(|sequence| sequence.ignores_windows()) || given.into_iter().any(|given| given.covers(until))
    }

    /// Whether the shipyard in force would let an execution begin that something else holds back, and whose wake-up is not due.
    pub fn is_forgotten(&self, x: &Execution, table: &Table, now: Timestamp) -> bool {
        let Some(held) = x.held.as_ref().filter(|held| held.until.is_none_or(|until| until > now)) else { return false };
        let in_force = table.peek(&projects::keys::project(&x.project)).and_then(|item| item.text("rev").map(str::to_owned));
        let Some(shipyard) = in_force.and_then(|revision| self.revisions.get(&revision)) else { return false };
        let flags: Flags = codec::context(table.peek(&keys::context(&x.project, &x.context)).map(|item| &**item)).flags;
        let none = Sequence::none();
        let entrance = Entrance { sequence: &none, shipyard, flags: &flags, now };
        !matches!(entrance.passage(x), Passage::Held(now) if now.until == held.until)
    }
}

impl Shipyards {
    /// Somebody lets through what no window will ever let begin. How many there are.
    pub(super) fn let_through(&self, sim: &mut Sim<Self>, open: &[Arc<Execution>]) -> usize {
        let now = sim.world.now();
        let never = |x: &&Arc<Execution>| {
            let core = sim.world.core();
            x.held.as_ref().is_some_and(|held| held.until.is_none()) && !self.watch.freeze.is_forgotten(x, &core.table, now)
        };
        let never: Vec<&Arc<Execution>> = open.iter().filter(never).collect();
        for x in &never {
            sim.plan(now, Action::Override(x.context.clone(), Some(x.stage.clone())));
        }
        never.len()
    }
}

/// Another shipyard is applied.
pub(super) async fn apply(engine: &Sequences<impl Ports>, n: usize, windows: &[Vec<Window>; 2]) -> Result<(), Refusal> {
    let (revision, shipyard) = (revision(n), with_windows(windows));
    let new = NewShipyard { revision: &revision, source: &revision, shipyard: &shipyard, replaces: None, by: "" };
    engine.apply_shipyard(&project(), new).await.map(drop)
}

/// A person overrides the windows of a stage for a context, through what the API calls.
pub(super) async fn override_windows(
    engine: &Sequences<impl Ports>,
    context: &Context,
    stage: Option<&str>,
) -> Result<(), Refusal> {
    let closed = engine.closed_stage(&project(), context, stage).await?;
    engine.override_windows((&project(), context), &closed, ("ann", "it is urgent")).await
}
