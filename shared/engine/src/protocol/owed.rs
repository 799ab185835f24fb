//! The effects that a commit owes: its wake-up, the events and messages of its record, its duties. Usually the worker that commits
//! performs them. If it stops before, a redelivery of the message does. If the message may be gone, the state has a note of the
//! record, and the next worker that loads the subject performs the effects.

use super::inbox::Inbox;
use super::record;
use super::run::Change;
use super::subject::{Effect, Engine, Loaded, OWES, RecordOf, Subject};
use super::wake::{unarmed, wake};
use crate::item::{Attrs, Name};
use crate::keys;
use crate::ports::{Condition, PortError, Store, Write};
use crate::table;
use keelway_domain::cause::Cause;
use keelway_domain::event::CloudEvent;
use keelway_domain::ids::RecordId;

/// The record that a commit notes in the state, because no redelivery may come if this worker stops.
pub(super) fn noted<S: Subject>(found: Option<&Loaded<S>>, change: &Change<S>, cause: Cause) -> Option<RecordId> {
    let (next, record) = (&change.next, change.record.as_ref()?);
    // Another worker may have handled and acknowledged the same message: it is not delivered again then if this worker stops.
    let nobody_else = S::ANY_MESSAGE_BY_CLOCK && cause.again;
    let unqueued = cause.unqueued && !next.is_swept(record);
    next.record().filter(|_| (nobody_else || unqueued) && found.is_some())
}

/// The note that a commit without a record of its own keeps.
pub(super) fn kept<S: Subject>(found: Option<&Loaded<S>>, change: &Change<S>) -> Option<RecordId> {
    found.and_then(|found| found.owes).filter(|_| change.record.is_none())
}

/// The write that removes the note that `x` owes the effects of a record. The state stays as it is, and so does its version.
pub(super) fn paid<S: Subject>(x: &S, record: &RecordId) -> Write {
    let index = if x.over() { &["gp2", "gs2"][..] } else { &[] };
    let remove = std::iter::once(OWES).chain(index.iter().copied().map(Name::Borrowed)).collect();
    let condition = Condition::Match { equal: Attrs::from([(OWES, keys::record_sort(record).into())]), absent: vec![] };
    Write::Update { key: x.key(), condition, set: Attrs::new(), remove, raise: false }
}

/// Performs the effects of an interrupted commit, if the subject has a note of one. Returns its record.
pub(super) async fn repay<S: Subject, E: Engine<S>>(
    engine: &E,
    found: &Loaded<S>,
    cause: Cause,
) -> Result<Option<RecordId>, PortError> {
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

/// Whether the record `tried` may have been committed, with the state at the record `now`: there is one record for each number.
pub(super) fn may_be(now: Option<RecordId>, tried: Option<RecordId>) -> bool {
    now.zip(tried).is_some_and(|(now, tried)| now == tried || now.number != tried.number)
}

/// Runs before a message decides something new: an earlier delivery of it, or a write whose answer was lost, may have committed and
/// stopped. Its effects are performed first, because nothing else would perform them. Returns whether there were any, besides those
/// of the record that was just `repaid`.
pub(super) async fn pay_first<S: Subject, E: Engine<S>>(
    engine: &E,
    x: &S,
    cause: Cause,
    repaid: Option<RecordId>,
) -> Result<bool, PortError> {
    let owed = made_but(engine.ports(), x, cause, repaid).await?;
    if !owed.is_empty() {
        complete(engine, x, cause, &owed).await?;
    }
    Ok(!owed.is_empty())
}

/// Completes the work of a message that decides nothing now. If an earlier delivery of it made a record, the record is published
/// again, because that delivery may have stopped before publishing. Records of other messages are left to those messages.
///
/// # Errors
/// A port fails.
pub async fn settle<S: Subject, E: Engine<S>>(engine: &E, x: &S, cause: Cause) -> Result<(), PortError> {
    settle_but(engine, x, cause, None).await
}

/// Like [`settle`], without the record that was just `repaid`.
pub(super) async fn settle_but<S: Subject, E: Engine<S>>(
    engine: &E,
    x: &S,
    cause: Cause,
    repaid: Option<RecordId>,
) -> Result<(), PortError> {
    let made = made_but(engine.ports(), x, cause, repaid).await?;
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

/// The records that this message made, without the one that was just `repaid`.
async fn made_but<S: Subject>(
    store: &impl Store,
    x: &S,
    cause: Cause,
    repaid: Option<RecordId>,
) -> Result<Vec<(RecordId, RecordOf<S>)>, PortError> {
    let mut made = record::made_by(store, x, cause).await?;
    made.retain(|(id, _)| repaid != Some(*id));
    Ok(made)
}

/// Performs the effects that this message owes, with the records that it `made`.
async fn complete<S: Subject, E: Engine<S>>(
    engine: &E,
    x: &S,
    cause: Cause,
    made: &[(RecordId, RecordOf<S>)],
) -> Result<(), PortError> {
    let wake: Vec<Effect<_>> = unarmed(x, cause).map(Effect::Wake).into_iter().collect();
    perform(engine, x, None, &wake).await?;
    again(engine, x, made).await?;
    let duties: Vec<Effect<_>> = x.owed(cause).into_iter().map(Effect::Duty).collect();
    perform(engine, x, None, &duties).await
}

/// Performs the effects of these records.
async fn again<S: Subject, E: Engine<S>>(engine: &E, x: &S, made: &[(RecordId, RecordOf<S>)]) -> Result<(), PortError> {
    for (id, record) in made {
        let owed: Vec<Effect<_>> = std::iter::once(Effect::Publish).chain((0..record.sends.len()).map(Effect::Send)).collect();
        perform(engine, x, Some((*id, record)), &owed).await?;
    }
    Ok(())
}

/// Publishes those of these events that go on the bus.
pub(crate) async fn publish(engine: &impl Inbox, mut events: Vec<CloudEvent>) -> Result<(), PortError> {
    events.retain(|event| engine.publishes(event));
    table::publish(engine.ports(), &events).await
}

/// Performs effects in their order.
pub(super) async fn perform<S: Subject, E: Engine<S>>(
    engine: &E,
    x: &S,
    record: Option<(RecordId, &RecordOf<S>)>,
    effects: &[Effect<S::Duty>],
) -> Result<(), PortError> {
    let ports = engine.ports();
    let mut letters = Vec::new();
    for effect in effects {
        match (effect, record) {
            (Effect::Wake(at), _) => wake(engine, x, *at).await?,
            (Effect::Publish, Some((id, record))) => publish(engine, x.events(&id, record)).await?,
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
