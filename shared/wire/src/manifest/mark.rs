//! Places in a text.

/// A place: line and column in characters, both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    pub line: u64,
    pub column: u64,
}

/// The first character.
pub const START: Mark = Mark { line: 1, column: 1 };

/// Something with a position in the text.
pub trait At {
    fn at(&self) -> Mark;
}
