//! What the value of a field looks like.

use super::Level;
use serde_json::Value;

/// The shape of a value. JSON Schemas are made from it; the readers check more, and say what to write instead.
#[derive(Clone, Copy)]
pub enum Shape {
    Any,
    /// A value on one line, which is read as a text however it is written.
    Text,
    /// A text that is not empty.
    Needed,
    /// A string, and no number or truth value.
    String,
    /// A string that matches a pattern, with at most so many characters.
    Pattern(&'static str, usize),
    Constant(&'static str),
    Word(&'static [&'static str]),
    Flag,
    /// A whole number of at least so much, or a text that is one.
    Whole(i64),
    /// A number of copies, or a percentage of them.
    Share,
    /// `90s` or `1h30m`.
    Duration,
    Url,
    /// Names and texts, labels for example.
    Texts,
    /// A mapping of anything.
    Open,
    /// A mapping of a level.
    Of(&'static Level),
    /// A list of such mappings, with at least so many entries.
    Entries(&'static Level, usize),
    /// A list with at least so many entries.
    List(&'static Shape, usize),
    Either(&'static [Shape]),
    /// What no other shape says.
    Schema(fn() -> Value),
}

use Shape::{List, Needed, Pattern};

pub const PROJECT_NAME: Shape = Pattern("^[a-z]([a-z0-9-]*[a-z0-9])?$", 50);
pub const STAGE_NAME: Shape = Pattern("^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", 43);
/// The name of a sequence or a task.
pub const SEQUENCE_NAME: Shape = Pattern("^[A-Za-z0-9_-]+$", 50);
/// A list of texts.
pub const WORDS: Shape = List(&Needed, 0);

/// A name as Kubernetes allows it.
pub const fn name(longest: usize) -> Shape {
    Pattern("^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", longest)
}
