//! Kinds of partitions and of their items. An engine builds its keys from its own partitions; [`register`](crate::register) has all
//! of them.

use std::fmt::Display;

/// The sort key of an item that is alone or first in its partition: sorts before every other.
pub const MAIN: &str = "!";
/// What the sort keys of transition records begin with.
pub const RECORD: &str = "T#";

/// A kind of partition.
#[derive(Debug)]
pub struct Partition {
    /// The prefix of the partition keys: up to the first `#`, or the whole key if there is only one such partition.
    pub begins: &'static str,
    /// The parts after the prefix, separated by `#`.
    pub parts: &'static str,
    /// The items in the partition.
    pub items: &'static [Kind],
}

/// A kind of item in a partition.
#[derive(Debug)]
pub struct Kind {
    /// The prefix of the sort keys.
    pub begins: &'static str,
    /// The parts after the prefix, separated by `#`.
    pub parts: &'static str,
    /// What it is.
    pub what: &'static str,
    /// Whether the item is state: engines decide from it, and it must not depend on how often a message is delivered.
    pub state: bool,
}

impl Kind {
    /// An item that is alone or first in its partition.
    pub const fn main(what: &'static str) -> Self {
        Self::of(MAIN, "", what)
    }
    /// Items with such sort keys.
    pub const fn of(begins: &'static str, parts: &'static str, what: &'static str) -> Self {
        Self { begins, parts, what, state: false }
    }
    /// The transition records of a subject.
    pub const fn records() -> Self {
        Self::of(RECORD, "<subject>#<number>#<content>", "transition record")
    }
    /// Marks the item as state.
    #[must_use]
    pub const fn state(self) -> Self {
        Self { state: true, ..self }
    }
}

impl Partition {
    /// Partitions of a kind.
    pub const fn new(begins: &'static str, parts: &'static str, items: &'static [Kind]) -> Self {
        Self { begins, parts, items }
    }

    /// The partition with these parts.
    pub fn named(&self, parts: impl Display) -> String {
        format!("{}{parts}", self.begins)
    }

    /// Whether a partition is of this kind.
    pub fn is(&self, pk: &str) -> bool {
        match pk.strip_prefix(self.begins) {
            Some(rest) if self.parts.is_empty() => rest.is_empty(),
            Some(rest) => !rest.is_empty() && separators(rest) >= separators(self.parts),
            None => false,
        }
    }

    /// The number of separators after the prefix.
    pub fn separators(&self) -> usize {
        separators(self.parts)
    }
}

fn separators(text: &str) -> usize {
    text.matches('#').count()
}
