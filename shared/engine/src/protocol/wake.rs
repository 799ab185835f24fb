//! Wake-ups of subjects, and pauses after conflicts with other writers.

use super::subject::{Engine, Subject};
use crate::keys;
use crate::ports::{PortError, Queue};
use keelway_domain::cause::Cause;
use keelway_domain::ids::hash64;
use keelway_domain::time::{Span, Timestamp};

/// How long a message waits after its first lost write, at most; twice as long after each further one, and never longer than
/// [`LONGEST_PAUSE`]. All pauses of one delivery together are less than four seconds.
const FIRST_PAUSE: Span = Span(50);
const LONGEST_PAUSE: Span = Span(1000);

/// Schedules a wake-up of a subject. Scheduling it again for the same time has no further effect.
///
/// # Errors
/// A port fails.
pub async fn wake<S: Subject, E: Engine<S>>(engine: &E, x: &S, at: Timestamp) -> Result<(), PortError> {
    let letter = x.wake_up(at);
    let key = x.key();
    let name = format!("keelway-{}-{}", keys::hash(hash64(&[key.pk.as_bytes(), key.sk.as_bytes()])), at.0);
    engine.ports().send_at(letter.to, &name, &letter.body, at).await
}

/// The pending wake-up, if this message must schedule it again, because an earlier message may have stopped before it did. An
/// earlier wake-up must not, unless it is a redelivery. Otherwise each copy of a wake-up would become a copy of the next one, and a
/// long-lived subject would collect copies. The same holds for messages that settling sends again: a wake-up that ends an execution
/// grants its lane and starts its follow-up, so each copy of it would become two copies of the next wake-up.
pub(super) fn unarmed<S: Subject>(x: &S, cause: Cause) -> Option<Timestamp> {
    let is_it = |at: &Timestamp| Cause::of_any_copy(x.wake_up(*at).body.as_bytes(), cause.sent).id == cause.id;
    let is_due = |at: &Timestamp| match x.armed_by() {
        Some(id) => cause.id == id || is_it(at),
        None => cause.again || !(cause.any_copy || cause.copied) || is_it(at),
    };
    x.wake().filter(is_due)
}

/// How long to wait after the n-th lost write: spread over the whole time, so that writers that met once do not meet again. Not
/// random: every delivery of a message waits the same.
pub fn pause(cause: Cause, lost: usize) -> Span {
    let most = (1..lost).fold(FIRST_PAUSE, |most, _| LONGEST_PAUSE.min(Span(2 * most.0)));
    let spread = hash64(&[&cause.id.to_be_bytes(), &lost.to_be_bytes()]) % most.0.unsigned_abs();
    Span(1 + i64::try_from(spread).unwrap_or_default())
}
