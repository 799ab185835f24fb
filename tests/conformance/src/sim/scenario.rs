//! What the simulation has to know of an engine.

use super::past::{Standing, Told, standing};
use super::repair::swept;
use super::scheduler::{Outcome, Sim};
use keelway_engine::protocol::{Engine, Handled, Subject};
use keelway_world::World;
use keelway_world::bus::Publication;
use keelway_world::exec::Task;
use keelway_world::played::Played;
use keelway_world::queue::{Parcel, Received};
use keelway_world::story::play;
use keelway_world::table::{Change, Table};
use keelway_world::worker::Worker;
use std::fmt::Debug;
use std::sync::Arc;

/// What a worker does with an engine. Engines of different versions, or of different kinds, may work side by side as `dyn Hands`.
pub trait Hands: Send + Sync {
    /// Handles a message.
    fn handle(self: Arc<Self>, received: Received) -> Task<Outcome>;
    /// Sweeps, to the end of a tick.
    fn sweep(self: Arc<Self>) -> Task<Outcome>;
}

/// An engine that keeps one kind of subject, and so has one sweep.
pub trait OneKind: Engine<<Self as OneKind>::Subject> + Played + 'static {
    /// The kind.
    type Subject: Subject;
}

impl<E: OneKind> Hands for E {
    fn handle(self: Arc<Self>, received: Received) -> Task<Outcome> {
        Box::pin(async move { play(&*self, &received).await.map(Some) })
    }
    fn sweep(self: Arc<Self>) -> Task<Outcome> {
        Box::pin(async move { swept::<E::Subject>(&*self).await })
    }
}

/// An engine, everybody around it, and what must hold of it. One value lives for one seed.
pub trait Scenario: Sized {
    /// The engine.
    type Engine: Hands + ?Sized;
    /// What somebody does at some time: a client, an executor, a person. The sweep is the scheduler's own.
    type Action: Clone + Debug;
    /// Whether every item that the engine writes is in the register of the table. Those of engines that only tests have are not.
    const REGISTERED: bool = true;

    /// A new engine on these ports: a worker starts, or starts again.
    fn engine(&self, ports: Worker) -> Arc<Self::Engine>;
    /// Puts into the world what is there before anything goes wrong.
    fn prepare(&mut self, world: &World);
    /// Puts on the agenda what others will do.
    fn schedule(&mut self, sim: &mut Sim<Self>);
    /// Does what was on the agenda.
    fn act(&mut self, sim: &mut Sim<Self>, action: Self::Action);
    /// An event was published: others may react.
    fn published(&mut self, sim: &mut Sim<Self>, publication: &Publication);
    /// A message was handled and acknowledged. `id`: of the message it is a copy of, or its own.
    ///
    /// # Errors
    /// What should not have become of it.
    fn acknowledged(&mut self, sim: &mut Sim<Self>, id: u64, received: Received, handled: Handled) -> Result<(), String>;
    /// One request changed these items. Time is counted in requests.
    ///
    /// # Errors
    /// The invariant that is violated.
    fn changed(&mut self, changes: &[Change], table: &Table, time: u64) -> Result<(), String>;
    /// Nothing goes wrong any more: sees to it that everything ends.
    ///
    /// # Errors
    /// What does not.
    fn come_to_an_end(&mut self, sim: &mut Sim<Self>) -> Result<(), String>;
    /// Nothing is left to do: checks what must be so then.
    ///
    /// # Errors
    /// What is not.
    fn at_rest(&mut self, sim: &mut Sim<Self>) -> Result<(), String>;

    /// Whether this message may publish an event that another one made: the sweep may have one repeated.
    fn may_repeat(&self, _cause: u64, _event: &str) -> bool {
        false
    }
    /// Before a step: for those who look at the state and do not wait for events.
    fn meanwhile(&mut self, _sim: &mut Sim<Self>) {}
    /// Nothing is on its way: only time brings anything now. What must not wait for the sweep then?
    ///
    /// # Errors
    /// What waits.
    fn still(&mut self, _sim: &mut Sim<Self>) -> Result<(), String> {
        Ok(())
    }
    /// A request was answered.
    fn answered(&mut self, _sim: &mut Sim<Self>, _action: Self::Action, _handled: Handled) {}
    /// A worker crashed while it did this.
    fn crashed(&mut self, _sim: &mut Sim<Self>, _action: Self::Action) {}
    /// A worker begins: a message, or (`None`) something of its own. For ports that make mistakes.
    fn begins(&self, _engine: &Self::Engine, _received: Option<&Received>) {}
    /// The past, so many days later: events, as an archive of the bus has them, and messages of the engines' own.
    fn past(&self, sim: &Sim<Self>, _days: i64) -> (Vec<Told>, Vec<Told>) {
        sim.told.iter().cloned().partition(|(_, parcel)| matches!(parcel, Parcel::Event(_)))
    }
    /// What the past must not change.
    fn standing(&self, world: &World) -> Standing {
        standing(world)
    }
    /// Whether this may begin when the past is told again so many days later.
    fn may_begin(&self, _world: &World, _name: &str, _days: i64) -> bool {
        false
    }
    /// Whether a message whose worker crashed was acknowledged too early. For ports that make mistakes.
    fn acknowledged_early(&self, _engine: &Self::Engine) -> bool {
        false
    }
}
