//! The duties of this engine only: lanes, tombstones, flags, repeated triggers.

use super::keys::LaneKey;
use super::message::Message;
use super::subject::gathered;
use super::{Address, Sequences, codec, history, keys};
use crate::ports::{PortError, Ports};
use crate::projects;
use crate::protocol::{self, Subject, record};
use crate::table;
use keelway_domain::sequences::{Duty, Execution, Lane};

impl<P: Ports> Sequences<P> {
    pub(super) async fn fulfil(&self, x: &Execution, duty: &Duty) -> Result<(), PortError> {
        match duty {
            // Written after the execution: otherwise a crash could leave the tombstone of an execution that never existed.
            Duty::Bury => table::record(&self.ports, vec![history::tombstone(&x.project, x.id)], vec![]).await,
            // An entry left in the queue would delay the next hand-over.
            Duty::Leave(ask) => table::record(&self.ports, vec![], vec![LaneKey::of(x).entry(x, *ask)]).await,
            Duty::Ask => self.ask(x).await,
            Duty::Look { holder, context, ask } => {
                let to = Address { project: x.project.clone(), context: context.clone(), execution: *holder };
                self.look(x, &to, *ask).await
            }
            Duty::Supersede => self.supersede(x).await,
            // Only an execution that has left the lane may claim this: one that was created with a queue entry also drives the
            // lane, but wants it.
            Duty::Drive => self.drive(x, (x.lane == Lane::None).then_some((x.id, x.ask))).await,
            Duty::Grant(child) => {
                let payload = gathered(x);
                let granted = Message::Granted { to: self.child(x, *child), ask: 0, payload };
                table::send_all(&self.ports, &[granted.letter()]).await
            }
            Duty::Repeat => {
                let Some(id) = x.record else { return Ok(()) };
                let Some(record) = record::read(&self.ports, x, &id).await? else { return Ok(()) };
                protocol::publish(self, x.events(&id, &record)).await
            }
            Duty::Recheck => {
                let mut wanted = vec![keys::context(&x.project, &x.context)];
                wanted.extend(x.held.as_ref().map(|_| projects::keys::project(&x.project)));
                let items = self.read(&wanted).await?;
                let flags = codec::context(items.get(&wanted[0])).flags;
                let message = match Message::of_flags(x, &flags) {
                    None if self.is_held_differently(x, &items).await? => Some(Message::Obey { to: Address::of(x) }),
                    message => message,
                };
                table::send_all(&self.ports, message.map(|message| message.letter()).as_slice()).await
            }
        }
    }
}
