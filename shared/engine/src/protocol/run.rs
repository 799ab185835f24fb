//! The path of one message: load → decide → record → commit → settle.

use super::delivery::Handled;
use super::record;
use super::subject::{Effect, Engine, Loaded, RecordOf, Subject, create};
use crate::item::{Item, Key};
use crate::keys;
use crate::ports::{Clock, PortError, Queue, Store, Transacted, Write, Written};
use crate::table::{self, Items};
use keelway_domain::cause::Cause;
use keelway_domain::ids::{RecordId, hash64};
use keelway_domain::time::Timestamp;
use std::future::Future;

/// A conditional write that loses this often in one message goes back to the queue: somebody else is busy there.
pub const COMMIT_TRIES: usize = 8;

/// One kind of input on its way through the protocol.
pub trait Handler<E: Engine>: Sync {
    /// The subject the input is addressed to.
    fn key(&self) -> Key;
    /// What is read together with the subject, before anything is known of it.
    fn reads(&self) -> Vec<Key> {
        vec![]
    }
    /// Reads what else the decision needs, and decides. `found`: the subject, if it exists.
    fn decide(
        &self,
        engine: &E,
        found: Option<&Loaded<E::State>>,
        items: &Items,
    ) -> impl Future<Output = Result<Verdict<E::State>, PortError>> + Send;
}

/// What an input comes to.
pub enum Verdict<S: Subject> {
    /// The next state.
    Commit(Box<Change<S>>),
    /// Nothing to decide: finish what the message began, if it was here before.
    Settle,
    /// The engine has done all there is to do.
    Done(Handled),
    /// Something moved meanwhile: load again.
    Again,
}

/// A commit: the next state, what is written before it and with it, and what it owes afterwards.
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
    /// What the commit owes; [`super::fresh`] lists it.
    pub effects: Vec<Effect<S::Duty>>,
}

impl<S: Subject> Change<S> {
    /// A commit that owes the difference it makes.
    pub fn new(old: Option<&S>, next: S, record: Option<RecordOf<S>>) -> Self {
        let effects = super::fresh(old, &next, record.as_ref());
        Self { next, record, items: vec![], deletes: vec![], with: vec![], effects }
    }
}

/// Handles one input from load to settle.
///
/// # Errors
/// Whatever must come back: a request that failed, or a subject that others keep changing.
pub async fn run<E: Engine>(engine: &E, cause: Cause, handler: &impl Handler<E>) -> Result<Handled, PortError> {
    let key = handler.key();
    let mut wanted = handler.reads();
    wanted.push(key.clone());
    for _ in 0..COMMIT_TRIES {
        let items = table::read(engine.ports(), &wanted).await?;
        let found = items.get(&key).map(Loaded::read).transpose()?;
        match handler.decide(engine, found.as_ref(), &items).await? {
            Verdict::Commit(change) => {
                if commit(engine, found.as_ref(), &change).await? {
                    return Ok(Handled::Committed);
                }
            }
            Verdict::Settle => {
                if let Some(loaded) = &found {
                    settle(engine, &loaded.x, cause).await?;
                }
                return Ok(Handled::Settled);
            }
            Verdict::Done(handled) => return Ok(handled),
            Verdict::Again => {}
        }
    }
    Err(contended(&key))
}

/// Records, commits, and does what the commit owes. `false`: somebody else changed the subject first.
///
/// # Errors
/// Of the ports.
pub async fn commit<E: Engine>(engine: &E, found: Option<&Loaded<E::State>>, change: &Change<E::State>) -> Result<bool, PortError> {
    let next = &change.next;
    let expires = engine.ports().now() + engine.retention();
    let mut items = change.items.clone();
    items.extend(record::item(next, change.record.as_ref(), expires));
    table::record(engine.ports(), items, change.deletes.clone()).await?;
    let write = found.map_or_else(|| create(next, expires), |loaded| loaded.update(next, expires));
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
    Ok(true)
}

/// Finishes what a message began that decides nothing now. Its record, if its handling made one, is published again: it may have
/// stopped before publishing. What others made is theirs to publish.
///
/// # Errors
/// Of the ports.
pub async fn settle<E: Engine>(engine: &E, x: &E::State, cause: Cause) -> Result<(), PortError> {
    let made = record::made_by(engine.ports(), x, cause).await?;
    // What the end of a subject owes is owed by the message that ended it. Many others are left over when it comes: wake-ups, for example.
    if x.over() && made.is_none() {
        return Ok(());
    }
    let mut effects: Vec<Effect<_>> = x.wake().map(Effect::Wake).into_iter().collect();
    if let Some((_, record)) = &made {
        effects.push(Effect::Publish);
        effects.extend((0..record.sends.len()).map(Effect::Send));
    }
    effects.extend(x.owed(cause).into_iter().map(Effect::Duty));
    perform(engine, x, made.as_ref().map(|(id, record)| (*id, record)), &effects).await
}

/// Performs effects in their order.
async fn perform<E: Engine>(
    engine: &E,
    x: &E::State,
    record: Option<(RecordId, &RecordOf<E::State>)>,
    effects: &[Effect<<E::State as Subject>::Duty>],
) -> Result<(), PortError> {
    let ports = engine.ports();
    let mut letters = Vec::new();
    for effect in effects {
        match (effect, record) {
            (Effect::Wake(at), _) => wake(engine, x, *at).await?,
            (Effect::Publish, Some((id, record))) => table::publish(ports, &x.events(&id, record)).await?,
            (Effect::Send(n), Some((id, record))) => letters.extend(record.sends.get(*n).map(|what| x.letter(&id, *n, what))),
            (Effect::Publish | Effect::Send(_), None) => {}
            (Effect::Duty(duty), _) => {
                table::send_all(ports, &std::mem::take(&mut letters)).await?;
                engine.perform(x, duty).await?;
            }
        }
    }
    table::send_all(ports, &letters).await
}

/// Has a subject woken; twice for one time has the effect of once.
///
/// # Errors
/// Of the ports.
pub async fn wake<E: Engine>(engine: &E, x: &E::State, at: Timestamp) -> Result<(), PortError> {
    let letter = x.wake_up(at);
    let key = x.key();
    let name = format!("keelway-{}-{}", keys::hash(hash64(&[key.pk.as_bytes(), key.sk.as_bytes()])), at.0);
    engine.ports().send_at(letter.to, &name, &letter.body, at).await
}

/// Others keep changing it: the message comes back.
pub fn contended(what: impl std::fmt::Display) -> PortError {
    PortError::Retry { request: "commit", reason: format!("{what} was changed by others {COMMIT_TRIES} times in a row") }
}
