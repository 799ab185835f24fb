//! Kinds of partitions, and of the items in them. The keys of an engine are made from those that it keeps;
//! [`register`](crate::register) has all of them.

use std::fmt::Display;

/// The sort key of an item that is alone or first in its partition: sorts before every other.
pub const MAIN: &str = "!";
/// What the sort keys of transition records begin with.
pub const RECORD: &str = "T#";

/// A kind of partition.
#[derive(Debug)]
pub struct Partition {
    /// How the names of its partitions begin: up to the first `#`, or the whole name if there is one such partition.
    pub begins: &'static str,
    /// What follows, with `#` between the parts.
    pub parts: &'static str,
    /// What lies in it.
    pub items: &'static [Kind],
}

/// A kind of item in a partition.
#[derive(Debug)]
pub struct Kind {
    /// How its sort keys begin.
    pub begins: &'static str,
    /// What follows, with `#` between the parts.
    pub parts: &'static str,
    /// What it is.
    pub what: &'static str,
    /// Whether it is a state: what an engine decides from, and what must be the same however often a message was told.
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
    /// It is a state.
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

    /// How many separators the names have after their beginning.
    pub(crate) fn separators(&self) -> usize {
        separators(self.parts)
    }
}

fn separators(text: &str) -> usize {
    text.matches('#').count()
}
