//! The path of one message: load → decide → record → commit → settle.
//!
//! What a commit owes, and who performs it if its worker stops, is in [`super::owed`]; when a subject is woken, in [`super::wake`].

use super::incoming::Handled;
use super::owed::{self, perform};
use super::subject::{Effect, Engine, Loaded, RecordOf, Subject, create};
use super::{record, wake};
use crate::item::{Item, Key};
use crate::ports::{Clock, PortError, Store, Transacted, Write, Written};
use crate::table::{self, Items};
use keelway_domain::cause::Cause;
use keelway_domain::time::Span;
use std::future::Future;

/// After this many lost conditional writes, the message goes back to the queue: other writers are busy with the item.
pub const COMMIT_TRIES: usize = 8;
/// After this many, a request that is handled where it arrives goes to the queue: its sender waits.
const REQUEST_TRIES: usize = 3;
/// The items of a transaction have all become visible after this long.
pub const VISIBLE: Span = Span::seconds(15);

/// One kind of input on its way through the protocol.
pub trait Handler<S: Subject, E: Engine<S>>: Sync {
    /// The subject the input is addressed to.
    fn key(&self) -> Key;
    /// What is read together with the subject, before its state is known.
    fn reads(&self) -> Vec<Key> {
        vec![]
    }
    /// Reads what else the decision needs, and decides. `found`: the subject, if it exists.
    fn decide(
        &self,
        engine: &E,
        found: Option<&Loaded<S>>,
        items: &Items,
    ) -> impl Future<Output = Result<Verdict<S>, PortError>> + Send;
}

/// The decision about an input.
pub enum Verdict<S: Subject> {
    /// The next state.
    Commit(Box<Change<S>>),
    /// Nothing to decide. A redelivery completes what the first delivery began.
    Settle,
    /// Too late to count, unless an earlier try of this message counted, which is then completed.
    Late,
    /// The engine has already done everything.
    Done(Handled),
    /// Something changed in the meantime: load again.
    Again,
}

/// A commit: the next state, the writes before and with it, and the effects that it owes afterwards.
pub struct Change<S: Subject> {
    /// The next state.
    pub next: S,
    /// Its record.
    pub record: Option<RecordOf<S>>,
    /// Other records to write before the commit; without conditions, so their keys must follow from their content.
    pub items: Vec<Item>,
    /// Keys to delete with them.
    pub deletes: Vec<Key>,
    /// Writes that happen in the same transaction as the commit, or not at all.
    pub with: Vec<Write>,
    /// The effects that the commit owes, as [`super::fresh`] lists them.
    pub effects: Vec<Effect<S::Duty>>,
}

impl<S: Subject> Change<S> {
    /// A commit that owes the difference between the old state and the next.
    pub fn new(old: Option<&S>, next: S, record: Option<RecordOf<S>>) -> Self {
        let effects = super::fresh(old, &next, record.as_ref());
        Self { next, record, items: vec![], deletes: vec![], with: vec![], effects }
    }
}

/// Handles one input from load to settle.
///
/// # Errors
/// When the message must be delivered again: a request failed, or other writers keep changing the subject.
pub async fn run<S: Subject, E: Engine<S>>(engine: &E, cause: Cause, handler: &impl Handler<S, E>) -> Result<Handled, PortError> {
    let key = handler.key();
    let mut wanted = handler.reads();
    wanted.push(key.clone());
    let (redelivered, mut tried) = (cause.again, None);
    let tries = if cause.unqueued { REQUEST_TRIES } else { COMMIT_TRIES };
    for lost in 0..tries {
        if lost > 0 {
            engine.ports().pause(wake::pause(cause, lost)).await;
        }
        // The conflict may be with this worker's own write, whose answer was lost before the client repeated it.
        let cause = Cause { again: redelivered || lost > 0, ..cause };
        let items = table::read(engine.ports(), &wanted).await?;
        let found: Option<Loaded<S>> = items.get(&key).map(Loaded::read).transpose()?;
        let repaid = match &found {
            Some(loaded) => owed::repay(engine, loaded, cause).await?,
            None => None,
        };
        match handler.decide(engine, found.as_ref(), &items).await? {
            Verdict::Commit(change) => {
                let stopped = found.as_ref().filter(|found| redelivered || owed::may_be(found.x.record(), tried));
                let paid = match stopped {
                    Some(loaded) => owed::pay_first(engine, &loaded.x, cause, repaid).await?,
                    None => false,
                };
                if commit(engine, found.as_ref(), &change, cause).await? {
                    return Ok(Handled::Committed);
                }
                // One delivery publishes a record once. If that is not enough, the next delivery tries again.
                if paid || repaid.is_some() {
                    return Err(contended(&key));
                }
                tried = change.record.as_ref().and_then(|_| change.next.record());
            }
            Verdict::Settle => {
                if let Some(loaded) = &found {
                    owed::settle_but(engine, &loaded.x, cause, repaid).await?;
                }
                return Ok(Handled::Settled);
            }
            Verdict::Late => {
                if let Some(loaded) = found.as_ref().filter(|_| cause.again) {
                    owed::settle_but(engine, &loaded.x, cause, repaid).await?;
                }
                return Ok(Handled::Stale);
            }
            Verdict::Done(handled) => return Ok(handled),
            Verdict::Again => {}
        }
    }
    Err(contended(&key))
}

/// Records, commits, and performs what the commit owes. `false`: another writer changed the subject first.
///
/// # Errors
/// A port fails.
pub async fn commit<S: Subject, E: Engine<S>>(
    engine: &E,
    found: Option<&Loaded<S>>,
    change: &Change<S>,
    cause: Cause,
) -> Result<bool, PortError> {
    let next = &change.next;
    let noted = owed::noted(found, change, cause);
    let owes = noted.or(owed::kept(found, change));
    let expires = engine.ports().now() + engine.retention();
    let mut items = change.items.clone();
    items.extend(record::item(next, change.record.as_ref(), expires));
    table::record(engine.ports(), items, change.deletes.clone()).await?;
    let write = found.map_or_else(|| create(next, expires), |loaded| loaded.update(next, expires, owes.as_ref()));
    let done = if change.with.is_empty() {
        engine.ports().write(&write).await? == Written::Done
    } else {
        let writes: Vec<Write> = std::iter::once(write).chain(change.with.iter().cloned()).collect();
        engine.ports().transact(&writes).await? == Transacted::Done
    };
    if !done {
        return Ok(false);
    }
    tracing::debug!(key = %next.key(), over = next.over(), "committed");
    perform(engine, next, next.record().zip(change.record.as_ref()), &change.effects).await?;
    if let Some(record) = noted {
        engine.ports().write(&owed::paid(next, &record)).await?;
    }
    Ok(true)
}

/// Other writers keep changing the subject: the message is retried.
pub fn contended(what: impl std::fmt::Display) -> PortError {
    PortError::Contended { request: "commit", reason: format!("{what} was changed by others {COMMIT_TRIES} times in a row") }
}
