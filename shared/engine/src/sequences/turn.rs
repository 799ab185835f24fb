//! Messages that give an execution its turn: the lane was granted, a wake-up came, the context's flags changed, or the sweep asks.

use super::Engine;
use super::codec::Loaded;
use super::settle::Recorded;
use crate::keys::{self, LaneKey};
use crate::message::{Address, Handled};
use crate::ports::{PortError, Ports};
use keelway_domain::event::{CloudEvent, Object};
use keelway_domain::sequences::{Decision, Facts, Input, Lane, ReactionKind, deadline, decide};
use keelway_domain::time::Timestamp;

impl<P: Ports> Engine<P> {
    /// Loads what the input needs, decides, commits, settles.
    pub(super) async fn turn(&self, to: &Address, input: Input<'_>) -> Result<Handled, PortError> {
        for _ in 0..super::COMMIT_TRIES {
            let (of_execution, of_context, of_project) =
                (keys::execution(to), keys::context(&to.project, &to.context), keys::project(&to.project));
            let items = match input {
                Input::Settle => self.read(std::slice::from_ref(&of_execution)).await?,
                Input::Wake(_) => self.read(&[of_execution.clone(), of_project.clone()]).await?,
                _ => self.read(&[of_execution.clone(), of_context.clone(), of_project.clone()]).await?,
            };
            let Some(item) = items.get(&of_execution) else {
                // Expired, or a message that outran its reason; there is nothing to settle.
                return Ok(Handled::Stale);
            };
            let loaded = super::codec::execution(item)?;
            let sequence = self.sequence(&loaded.x).await?;
            let project = self.project(&to.project, items.get(&of_project)).await?;
            let flags = super::codec::context(items.get(&of_context)).flags;
            // One look at the clock: what is loaded and what is decided must agree on what is due.
            let now = self.ports.now();
            let due = deadline(&loaded.x, &sequence, &project.policy).is_some_and(|deadline| deadline <= now);
            let (base, events) = self.payload(&loaded, input, due).await?;
            let facts = Facts {
                now,
                flags: &flags,
                sequence: &sequence,
                current: (&project.revision, &project.shipyard),
                base: &base,
                events: &events,
                policy: project.policy,
            };
            match decide(&loaded.x, input, &facts) {
                Decision::Commit(transition) => {
                    let mut recorded = Recorded::default();
                    // Only a granted execution may take its entry out before it commits: the lock names it already.
                    if matches!(input, Input::Granted(_)) {
                        recorded.deletes.push(LaneKey::of(&loaded.x).entry(&loaded.x));
                    }
                    if self.commit(&loaded, &sequence, *transition, recorded).await? {
                        return Ok(Handled::Committed);
                    }
                }
                Decision::Rearm(at) => {
                    self.wake_at(to, at).await?;
                    return Ok(Handled::Settled);
                }
                Decision::Settle | Decision::Late | Decision::Invalid(_) => {
                    match input {
                        Input::Wake(at) => self.settle_wake(&loaded, at).await?,
                        // The flags of an open execution publish nothing: only its lane and its wake-up can be owed.
                        Input::Obey if loaded.x.outcome.is_none() => self.settle_quietly(&loaded).await?,
                        Input::Settle => self.settle_swept(&loaded).await?,
                        _ => drop(self.settle_for(&loaded, input.cause(), None).await?),
                    }
                    return Ok(Handled::Settled);
                }
            }
        }
        Err(self.contended(format_args!("execution {}", to.execution)))
    }

    /// The payload, for inputs that may send or end something; of a wake-up only when something is due.
    async fn payload(&self, loaded: &Loaded, input: Input<'_>, due: bool) -> Result<(Object, Vec<CloudEvent>), PortError> {
        let x = &loaded.x;
        let wanted = match input {
            Input::Granted(ask) => x.lane == Lane::Wants && x.ask == ask && !x.open,
            Input::Wake(at) => x.wake == Some(at) && due,
            _ => false,
        };
        if !wanted || x.outcome.is_some() {
            return Ok((Object::new(), vec![]));
        }
        let finished = x.reactions.iter().filter(|reaction| reaction.kind == ReactionKind::Finished);
        let needed: Vec<(Timestamp, u64)> = finished.map(|reaction| (reaction.at, reaction.content)).collect();
        let events = if matches!(input, Input::Wake(_)) { self.events(x, &needed).await? } else { vec![] };
        Ok((self.base(x).await?, events))
    }

    /// Whether an execution's lane may have been forgotten: used by the sweep to wake one waiting execution per lane.
    pub(super) fn lane_name(loaded: &Loaded) -> Option<LaneKey> {
        (loaded.x.lane == Lane::Wants).then(|| LaneKey::of(&loaded.x))
    }
}
