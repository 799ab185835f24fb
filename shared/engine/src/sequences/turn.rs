//! Messages after which an execution may continue: a lane grant, a wake-up, changed flags of the context, or a check by the sweep.

use super::load::Reading;
use super::message::Address;
use super::subject::entry;
use super::{Loaded, Sequences, codec, keys};
use crate::item::Key;
use crate::ports::{PortError, Ports};
use crate::projects;
use crate::protocol::{Effect, Handled, Handler, Verdict, run};
use crate::table::Items;
use keelway_domain::cause::Cause;
use keelway_domain::event::PROMOTION;
use keelway_domain::sequences::{Decision, Duty, Execution, Input, Lane, ReactionKind, deadline, decide};
use keelway_domain::time::Timestamp;

struct Turn<'a> {
    to: &'a Address,
    input: Input<'a>,
    /// Sort key of the payload, if the message names it.
    payload: &'a str,
    cause: Cause,
}

impl<P: Ports> Sequences<P> {
    /// Lets an execution continue.
    pub(crate) async fn turn(&self, to: &Address, input: Input<'_>, payload: &str, cause: Cause) -> Result<Handled, PortError> {
        run(self, cause, &Turn { to, input, payload, cause }).await
    }
}

impl<P: Ports> Handler<Execution, Sequences<P>> for Turn<'_> {
    fn key(&self) -> Key {
        keys::execution(self.to)
    }

    fn reads(&self) -> Vec<Key> {
        let mut wanted = match self.input {
            Input::Settle => vec![],
            Input::Wake(_) | Input::Abort | Input::Superseded(_) => vec![projects::keys::project(&self.to.project)],
            _ => vec![projects::keys::project(&self.to.project), keys::context(&self.to.project, &self.to.context)],
        };
        if !self.payload.is_empty() {
            wanted.push(Key::new(keys::context_partition(&self.to.project, &self.to.context), self.payload));
        }
        wanted
    }

    async fn decide(&self, engine: &Sequences<P>, found: Option<&Loaded>, items: &Items) -> Result<Verdict<Execution>, PortError> {
        // Expired, or the message arrived before the execution was created.
        let Some(loaded) = found else { return Ok(Verdict::Done(Handled::Stale)) };
        let x = &loaded.x;
        let mut reading = Reading::of(engine, x, items).await?;
        let flags = codec::context(items.get(&keys::context(&x.project, &x.context))).flags;
        // The clock is read once: loading and deciding must agree on what is due.
        let now = engine.ports.now();
        if self.needs_payload(x, &reading, now) {
            reading.base = engine.base(x, items).await?;
            if matches!(self.input, Input::Wake(_)) {
                let finished = x.reactions.iter().filter(|reaction| reaction.kind == ReactionKind::Finished);
                let needed: Vec<(Timestamp, u64)> = finished.map(|reaction| (reaction.at, reaction.content)).collect();
                reading.events = engine.events(x, &needed).await?;
            }
        }
        if matches!(self.input, Input::Abort | Input::Superseded(_)) && x.outcome.is_none() {
            // An abort repeats nothing else of the payload.
            reading.base = engine.base(x, items).await?;
            reading.base.retain(|name, _| name == PROMOTION);
        }
        match decide(x, self.input, &reading.facts(now, self.cause, &flags)) {
            Decision::Commit(transition) => {
                let Some(mut change) = engine.change(loaded, *transition).await? else { return Ok(Verdict::Again) };
                // Only a granted execution may leave the queue before it commits, because the lock already names it.
                if matches!(self.input, Input::Granted(_)) {
                    change.deletes.push(entry(x));
                    change.effects.retain(|effect| *effect != Effect::Duty(Duty::Leave(x.ask)));
                }
                Ok(Verdict::Commit(Box::new(change)))
            }
            _ => {
                // A hand-over may meet the end of its execution: the lock was written after the end had looked at the lane. Only
                // this message knows of it. Many wake-ups arrive late, and one hands over the lane only if the execution asked
                // again.
                if x.outcome.is_some() && (x.ask > 0 || !matches!(self.input, Input::Wake(_))) {
                    engine.drive(x, Some((x.id, x.ask))).await?;
                }
                Ok(Verdict::Settle)
            }
        }
    }
}

impl Turn<'_> {
    /// Whether the input may send or end something; a wake-up only when something is due.
    fn needs_payload(&self, x: &Execution, reading: &Reading, now: Timestamp) -> bool {
        let due = || deadline(x, &reading.sequence, &reading.project.policy).is_some_and(|deadline| deadline <= now);
        let wanted = match self.input {
            Input::Granted(ask) => x.lane == Lane::Wants && x.ask == ask && !x.is_open(),
            Input::Wake(at) => x.wake == Some(at) && x.held.is_none() && due(),
            _ => false,
        };
        wanted && x.outcome.is_none()
    }
}
