//! Which message caused something. A queue delivers a message at least once, and clients send the same event again: a redelivery must
//! finish what the first delivery began, while a copy must not repeat it.

use crate::ids::hash64;
use crate::time::Timestamp;

/// One message: what it says and when it was put into its queue. A redelivery has the same cause; a copy of the message, or the same
/// event sent again, has another one, because the queue received it at another time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Cause {
    /// Identifies the message; a record that the message made stores it.
    pub id: u64,
    /// When the queue received it first (`SentTimestamp`).
    pub sent: Timestamp,
    /// It was delivered before: that delivery may have stopped before it had done everything.
    pub again: bool,
    /// It stands for all copies of the message: see [`Cause::of_any_copy`].
    pub any_copy: bool,
    /// Whoever settles a subject sends such messages again, so most that find nothing to decide are copies.
    pub copied: bool,
}

impl Cause {
    /// The cause of a message with this content, first sent at that time.
    pub fn of(content: &[u8], sent: Timestamp) -> Self {
        Self { id: hash64(&[b"message", content, &sent.0.to_be_bytes()]), sent, ..Self::default() }
    }

    /// A cause that all copies of a message share. This is for wake-ups: what a wake-up decides depends on the clock, so of two
    /// simultaneous deliveries, one may find the wake-up early, send a copy and acknowledge it, while the other commits and stops
    /// there. Then the copy must complete that work.
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
        assert_eq!((Cause::of(b"a", later).sent, Cause::of_any_copy(b"a", later).sent), (later, later));
    }
}
