//! The path of one message: load → decide → record → commit → settle.

use super::delivery::Handled;
use super::record;
use super::subject::{Effect, Engine, Loaded, RecordOf, Subject, create, paid};
use crate::item::{Item, Key};
use crate::keys;
use crate::ports::{Clock, PortError, Queue, Store, Transacted, Write, Written};
use crate::table::{self, Items};
use keelway_domain::cause::Cause;
use keelway_domain::ids::{RecordId, hash64};
use keelway_domain::time::{Span, Timestamp};
use std::future::Future;

/// After this many lost conditional writes, the message goes back to the queue: other writers are busy with the item.
pub const COMMIT_TRIES: usize = 8;
/// The items of a transaction have all become visible after this long.
pub const VISIBLE: Span = Span::seconds(15);
/// How long a message waits after its first lost write, at most; twice as long after each further one, and never longer than
/// [`LONGEST_PAUSE`]. All pauses of one delivery together are less than four seconds.
const FIRST_PAUSE: Span = Span(50);
const LONGEST_PAUSE: Span = Span(1000);

/// One kind of input on its way through the protocol.
pub trait Handler<E: Engine>: Sync {
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
        found: Option<&Loaded<E::State>>,
        items: &Items,
    ) -> impl Future<Output = Result<Verdict<E::State>, PortError>> + Send;
}

/// The decision about an input.
pub enum Verdict<S: Subject> {
    /// The next state.
    Commit(Box<Change<S>>),
    /// Nothing to decide: if this is a redelivery, complete what the first delivery began.
    Settle,
    /// Too late to count, unless an earlier try of this message did: then complete what that one began.
    Late,
    /// The engine has already done everything.
    Done(Handled),
    /// Something changed in the meantime: load again.
    Again,
}

/// A commit: the next state, what is written before and with it, and the effects it owes afterwards.
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
pub async fn run<E: Engine>(engine: &E, cause: Cause, handler: &impl Handler<E>) -> Result<Handled, PortError> {
    let key = handler.key();
    let mut wanted = handler.reads();
    wanted.push(key.clone());
    let (redelivered, mut tried) = (cause.again, None);
    for lost in 0..COMMIT_TRIES {
        if lost > 0 {
            engine.ports().pause(pause(cause, lost)).await;
        }
        // The write that was lost may have been its own: the answer got lost, and the client tried once more.
        let cause = Cause { again: redelivered || lost > 0, ..cause };
        let items = table::read(engine.ports(), &wanted).await?;
        let found: Option<Loaded<E::State>> = items.get(&key).map(Loaded::read).transpose()?;
        let repaid = match &found {
            Some(loaded) => repay(engine, loaded, cause).await?,
            None => None,
        };
        match handler.decide(engine, found.as_ref(), &items).await? {
            Verdict::Commit(change) => {
                // Time has passed since an earlier delivery, or a write whose answer got lost, committed and stopped there. This one
                // decides something new. What that one owes comes first, because nobody else does it.
                let mut owed = vec![];
                if let Some(Loaded { x, .. }) = found.as_ref().filter(|found| redelivered || may_be(found.x.record(), tried)) {
                    owed = record::made_by(engine.ports(), x, cause).await?;
                    owed.retain(|(id, _)| repaid != Some(*id));
                    if !owed.is_empty() {
                        complete(engine, x, cause, &owed).await?;
                    }
                }
                if commit(engine, found.as_ref(), &change, cause).await? {
                    return Ok(Handled::Committed);
                }
                // One delivery publishes a record once: the next delivery tries again.
                if !owed.is_empty() || repaid.is_some() {
                    return Err(contended(&key));
                }
                tried = change.record.as_ref().and_then(|_| change.next.record());
            }
            Verdict::Settle => {
                if let Some(loaded) = &found {
                    settle_but(engine, &loaded.x, cause, repaid).await?;
                }
                return Ok(Handled::Settled);
            }
            Verdict::Late => {
                if let Some(loaded) = found.as_ref().filter(|_| cause.again) {
                    settle_but(engine, &loaded.x, cause, repaid).await?;
                }
                return Ok(Handled::Stale);
            }
            Verdict::Done(handled) => return Ok(handled),
            Verdict::Again => {}
        }
    }
    Err(contended(&key))
}

/// How long to wait after the n-th lost write: spread over the whole time, so that writers that met once do not meet again. Not random:
/// every delivery of a message waits the same.
fn pause(cause: Cause, lost: usize) -> Span {
    let most = (1..lost).fold(FIRST_PAUSE, |most, _| LONGEST_PAUSE.min(Span(2 * most.0)));
    let spread = hash64(&[&cause.id.to_be_bytes(), &lost.to_be_bytes()]) % most.0.unsigned_abs();
    Span(1 + i64::try_from(spread).unwrap_or_default())
}

/// Records, commits, and performs what the commit owes. `false`: another writer changed the subject first.
///
/// # Errors
/// Of the ports.
pub async fn commit<E: Engine>(
    engine: &E,
    found: Option<&Loaded<E::State>>,
    change: &Change<E::State>,
    cause: Cause,
) -> Result<bool, PortError> {
    let next = &change.next;
    // Another worker may have the same message, and be done with it: then it is not delivered again if this worker stops.
    let nobody_else = E::State::ANY_MESSAGE_BY_CLOCK && cause.again;
    let noted = change.record.as_ref().and_then(|_| next.record()).filter(|_| nobody_else && found.is_some());
    // A commit without a record leaves a note where it is.
    let kept = found.and_then(|found| found.owes).filter(|_| change.record.is_none());
    let owes = noted.or(kept);
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
        engine.ports().write(&paid(next, &record)).await?;
    }
    Ok(true)
}

/// Performs the effects of a commit whose worker stopped in between, if the subject has a note of one. Returns its record.
async fn repay<E: Engine>(engine: &E, found: &Loaded<E::State>, cause: Cause) -> Result<Option<RecordId>, PortError> {
    let (Some(id), x) = (found.owes, &found.x) else { return Ok(None) };
    if let Some(record) = record::read(engine.ports(), x, &id).await? {
        let of_that = Cause { id: record.made_by, again: true, ..cause };
        let wake: Vec<Effect<_>> = x.wake().map(Effect::Wake).into_iter().collect();
        perform(engine, x, None, &wake).await?;
        complete(engine, x, of_that, &[(id, record)]).await?;
    }
    engine.ports().write(&paid(x, &id)).await?;
    tracing::info!(key = %x.key(), record = %keys::record_sort(&id), "performed what an earlier commit owed");
    Ok(Some(id))
}

/// Completes the work of a message that decides nothing now. If an earlier delivery of it made a record, the record is published
/// again, because that delivery may have stopped before publishing. Records of other messages are left to those messages.
///
/// # Errors
/// Of the ports.
pub async fn settle<E: Engine>(engine: &E, x: &E::State, cause: Cause) -> Result<(), PortError> {
    settle_but(engine, x, cause, None).await
}

/// As [`settle`], but for the record that was `repaid` a moment ago.
async fn settle_but<E: Engine>(engine: &E, x: &E::State, cause: Cause, repaid: Option<RecordId>) -> Result<(), PortError> {
    let mut made = record::made_by(engine.ports(), x, cause).await?;
    made.retain(|(id, _)| repaid != Some(*id));
    // The wake-up and the state's duties were performed with it.
    if repaid.is_some() {
        return again(engine, x, &made).await;
    }
    // Only the message that ended a subject performs what the end owes. Many other messages, such as wake-ups, may still arrive
    // later.
    if x.over() && made.is_empty() {
        return Ok(());
    }
    complete(engine, x, cause, &made).await
}

/// Performs what this message owes, with the records it `made`.
async fn complete<E: Engine>(
    engine: &E,
    x: &E::State,
    cause: Cause,
    made: &[(RecordId, RecordOf<E::State>)],
) -> Result<(), PortError> {
    let wake: Vec<Effect<_>> = unarmed(x, cause).map(Effect::Wake).into_iter().collect();
    perform(engine, x, None, &wake).await?;
    again(engine, x, made).await?;
    let duties: Vec<Effect<_>> = x.owed(cause).into_iter().map(Effect::Duty).collect();
    perform(engine, x, None, &duties).await
}

/// Performs what these records owe.
async fn again<E: Engine>(engine: &E, x: &E::State, made: &[(RecordId, RecordOf<E::State>)]) -> Result<(), PortError> {
    for (id, record) in made {
        let owed: Vec<Effect<_>> = std::iter::once(Effect::Publish).chain((0..record.sends.len()).map(Effect::Send)).collect();
        perform(engine, x, Some((*id, record)), &owed).await?;
    }
    Ok(())
}

/// Whether the record `tried` may have been committed, with the state at the record `now`: there is one record for each number.
fn may_be(now: Option<RecordId>, tried: Option<RecordId>) -> bool {
    now.zip(tried).is_some_and(|(now, tried)| now == tried || now.number != tried.number)
}

/// The pending wake-up, if this message schedules it again: a message before it may have stopped before it did. An earlier wake-up does
/// not, unless it was itself delivered before. Otherwise each copy of a wake-up would become a copy of the next one, and a subject that
/// lives for long would collect them. The same holds for messages that settling sends again: a wake-up that ends an execution grants its
/// lane and starts what follows, so each copy of it would become two of the follower's.
fn unarmed<S: Subject>(x: &S, cause: Cause) -> Option<Timestamp> {
    let is_it = |at: &Timestamp| Cause::of_any_copy(x.wake_up(*at).body.as_bytes(), cause.sent).id == cause.id;
    let is_due = |at: &Timestamp| match x.armed_by() {
        Some(id) => cause.id == id || is_it(at),
        None => cause.again || !(cause.any_copy || cause.copied) || is_it(at),
    };
    x.wake().filter(is_due)
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

/// Schedules a wake-up of a subject. Scheduling it again for the same time has no further effect.
///
/// # Errors
/// Of the ports.
pub async fn wake<E: Engine>(engine: &E, x: &E::State, at: Timestamp) -> Result<(), PortError> {
    let letter = x.wake_up(at);
    let key = x.key();
    let name = format!("keelway-{}-{}", keys::hash(hash64(&[key.pk.as_bytes(), key.sk.as_bytes()])), at.0);
    engine.ports().send_at(letter.to, &name, &letter.body, at).await
}

/// Other writers keep changing the subject: the message is retried.
pub fn contended(what: impl std::fmt::Display) -> PortError {
    PortError::Contended { request: "commit", reason: format!("{what} was changed by others {COMMIT_TRIES} times in a row") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_differ_and_end_within_seconds() {
        let of = |message: usize, lost| pause(Cause { id: hash64(&[&message.to_be_bytes()]), ..Cause::default() }, lost).0;
        let longest = |lost| (0..1000).map(|message| of(message, lost)).max().unwrap_or_default();
        let longest: Vec<i64> = (1..COMMIT_TRIES).map(longest).collect();
        for (longest, most) in longest.iter().zip([50, 100, 200, 400, 800, 1000, 1000]) {
            assert!(*longest <= most && *longest > most - most / 10, "{longest} of {most}");
        }
        assert!((0..1000).all(|message| (1..COMMIT_TRIES).map(|lost| of(message, lost)).sum::<i64>() < 4000));
        let different: std::collections::BTreeSet<i64> = (0..50).map(|message| of(message, 5)).collect();
        assert!(different.len() > 40, "{different:?}");
        assert_eq!(of(7, 3), of(7, 3), "the same for every delivery of a message");
    }
}
