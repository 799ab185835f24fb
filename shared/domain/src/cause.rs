//! The message that caused a change. A queue delivers a message at least once, and clients send the same event again: a redelivery
//! must complete what the first delivery began, while a copy must not repeat it.

use crate::ids::hash64;
use crate::time::Timestamp;

/// A message, identified by its content and by the time at which it entered its queue. A redelivery has the same cause. A copy of
/// the message, or the same event sent again, has another one, because it entered the queue at another time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Cause {
    /// The identity of the message. A record stores the identity of the message that made it.
    pub id: u64,
    /// When the message entered its queue (`SentTimestamp`).
    pub sent: Timestamp,
    /// Whether this is a redelivery: an earlier delivery may have stopped before it was complete.
    pub again: bool,
    /// Whether all copies of the message share this cause: see [`Cause::of_any_copy`].
    pub any_copy: bool,
    /// Whether messages of this kind are regularly sent again when a subject is settled. Most of those that find nothing to decide
    /// are copies.
    pub copied: bool,
    /// Whether no queue has the message: only whoever sent it may send it again, and may as well not.
    pub unqueued: bool,
}

impl Cause {
    /// The cause of a message with this content that entered its queue at that time.
    pub fn of(content: &[u8], sent: Timestamp) -> Self {
        Self { id: hash64(&[b"message", content, &sent.0.to_be_bytes()]), sent, ..Self::default() }
    }

    /// The cause of a request with this content, which is handled where it arrives. All requests with the content share it: a
    /// client that gets no answer sends the same again, and that completes what the first request began.
    pub fn of_request(content: &[u8], sent: Timestamp) -> Self {
        Self { id: hash64(&[b"request", content]), sent, unqueued: true, ..Self::default() }
    }

    /// A cause that all copies of a message share, for wake-ups. The decision about a wake-up depends on the clock: of two
    /// simultaneous deliveries, one may find that it is too early, send a copy and acknowledge, while the other one commits and
    /// stops. The copy must then complete that work.
    pub fn of_any_copy(content: &[u8], sent: Timestamp) -> Self {
        Self { id: hash64(&[b"any copy", content]), sent, any_copy: true, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_told_from_its_copies_unless_they_count_as_one() {
        let (now, later) = (Timestamp(1), Timestamp(2));
        assert_eq!(Cause::of(b"a", now), Cause::of(b"a", now));
        assert_ne!(Cause::of(b"a", now).id, Cause::of(b"a", later).id);
        assert_ne!(Cause::of(b"a", now).id, Cause::of(b"b", now).id);
        assert_eq!(Cause::of_any_copy(b"a", now).id, Cause::of_any_copy(b"a", later).id);
        assert_ne!(Cause::of_any_copy(b"a", now).id, Cause::of_any_copy(b"b", now).id);
        assert!(Cause::of_any_copy(b"a", now).any_copy && !Cause::of(b"a", now).any_copy);
        assert_eq!(Cause::of_request(b"a", now).id, Cause::of_request(b"a", later).id);
        assert!(Cause::of_request(b"a", now).unqueued && !Cause::of(b"a", now).unqueued);
        assert_eq!((Cause::of(b"a", later).sent, Cause::of_any_copy(b"a", later).sent), (later, later));
    }
}
