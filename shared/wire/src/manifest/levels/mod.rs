//! The levels of manifests: one table for each kind of mapping, with its fields.
//!
//! The check of a mapping ([`check`](check::check)), the JSON Schema, and the hints for unknown and missing fields are made from
//! these tables. A new field is one line in one of them, beside the code that reads its value.

pub mod additions;
pub mod artifacts;
pub mod bundles;
mod check;
pub mod configs;
pub mod evaluations;
mod lists;
pub mod metrics_sources;
pub mod pipelines;
pub mod projects;
pub mod remediations;
pub mod schedules;
mod shape;
pub mod shipyards;
pub mod strategies;
pub mod triggers;
pub mod webhooks;

pub use check::{check, entries, mapping, missing};
pub use lists::{items, items_of};
pub use shape::Shape;

use serde_json::Value;

/// The tables, by kind of manifest.
static LEVELS: &[&[&Level]] = &[
    &shipyards::LEVELS,
    &projects::LEVELS,
    &remediations::LEVELS,
    &schedules::LEVELS,
    &pipelines::LEVELS,
    &webhooks::LEVELS,
    &configs::LEVELS,
    &strategies::LEVELS,
    &triggers::LEVELS,
    &additions::LEVELS,
    &bundles::LEVELS,
    &artifacts::LEVELS,
    &metrics_sources::LEVELS,
    &evaluations::LEVELS,
];

/// A kind of mapping.
pub struct Level {
    pub head: Head,
    /// Of mappings that are open, such as a task's `properties`, the fields that people write elsewhere by mistake.
    pub fields: &'static [Field],
}

/// What a level is called, and what holds for all of its fields.
pub struct Head {
    /// In JSON Schemas; each level has another one.
    pub name: &'static str,
    parent: Option<&'static Level>,
    place: Place,
    what: Option<&'static str>,
    written: Option<&'static str>,
    /// The beginning of an entry, for mappings in lists.
    pub example: &'static str,
    /// Whether unknown fields are errors. In other levels they are warnings.
    strict: bool,
    hint: &'static str,
    /// Fields of an older form of the manifest. The reader refuses them with messages of its own.
    pub former: &'static [&'static str],
    /// Groups of fields; exactly one of the groups must be there. For schemas only.
    pub one_of: &'static [&'static [&'static str]],
    /// Groups of fields; at least one of the groups must be there. For schemas only.
    pub any_of: &'static [&'static [&'static str]],
    /// Further members of the schema.
    pub further: Option<fn() -> Value>,
}

enum Place {
    /// The mapping is a document.
    Top,
    Under(&'static str),
    EntryOf(&'static str),
}

impl Head {
    const fn new(name: &'static str, parent: Option<&'static Level>, place: Place) -> Self {
        Self {
            name,
            parent,
            place,
            what: None,
            written: None,
            example: "name: deployment",
            strict: false,
            hint: "",
            former: &[],
            one_of: &[],
            any_of: &[],
            further: None,
        }
    }

    /// What messages call the mapping, if not by its field.
    const fn called(self, what: &'static str) -> Self {
        Self { what: Some(what), ..self }
    }

    /// Where messages say that a field of the mapping is written, if not simply under the mapping's own field.
    const fn written(self, place: &'static str) -> Self {
        Self { written: Some(place), ..self }
    }

    const fn example(self, example: &'static str) -> Self {
        Self { example, ..self }
    }

    /// Refuses unknown fields: what a deployer is not handed must not look as if it were, and a misspelt limit must let nobody in.
    const fn strict(self) -> Self {
        Self { strict: true, ..self }
    }

    /// What to say after the list of the fields that there are.
    const fn hint(self, hint: &'static str) -> Self {
        Self { hint, ..self }
    }

    const fn former(self, former: &'static [&'static str]) -> Self {
        Self { former, ..self }
    }

    const fn one_of(self, one_of: &'static [&'static [&'static str]]) -> Self {
        Self { one_of, ..self }
    }

    const fn any_of(self, any_of: &'static [&'static [&'static str]]) -> Self {
        Self { any_of, ..self }
    }

    const fn further(self, further: fn() -> Value) -> Self {
        Self { further: Some(further), ..self }
    }
}

/// A document.
const fn document(name: &'static str, what: &'static str) -> Head {
    Head::new(name, None, Place::Top).called(what)
}

/// A mapping under a field of `parent`.
const fn under(name: &'static str, parent: &'static Level, field: &'static str) -> Head {
    Head::new(name, Some(parent), Place::Under(field))
}

/// An entry of a list under a field of `parent`.
const fn entry(name: &'static str, parent: &'static Level, field: &'static str, example: &'static str) -> Head {
    Head::new(name, Some(parent), Place::EntryOf(field)).example(example)
}

/// One field of a level.
pub struct Field {
    pub name: &'static str,
    pub shape: Shape,
    /// In the schema: the reader may have a message of its own.
    pub required: bool,
    /// What to write where the field is missing.
    remedy: Option<&'static str>,
    /// Shown by editors. Names and references need no description.
    pub about: Option<&'static str>,
    /// Other words that people use for it, in lower case without `-` and `_`.
    also: &'static [&'static str],
}

/// A field that may be left out.
const fn field(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, required: false, remedy: None, about: None, also: &[] }
}

/// A field that must be there; the reader tells what is wrong.
const fn required(name: &'static str, shape: Shape) -> Field {
    Field { required: true, ..field(name, shape) }
}

/// A field that must be there, and what to write if it is not.
const fn needed(name: &'static str, shape: Shape, remedy: &'static str) -> Field {
    Field { remedy: Some(remedy), ..required(name, shape) }
}

impl Field {
    const fn about(self, text: &'static str) -> Self {
        Self { about: Some(text), ..self }
    }

    const fn also(self, also: &'static [&'static str]) -> Self {
        Self { also, ..self }
    }
}

impl PartialEq for Level {
    fn eq(&self, other: &Self) -> bool {
        self.head.name == other.head.name
    }
}

impl Level {
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    pub fn has(&self, name: &str) -> bool {
        self.field(name).is_some()
    }

    fn names(&self) -> impl Iterator<Item = &'static str> {
        self.fields.iter().map(|field| field.name)
    }

    /// "a stage", "`metadata`": for messages.
    pub fn what(&self) -> String {
        match (self.head.what, &self.head.place) {
            (Some(what), _) => what.to_owned(),
            (None, Place::EntryOf(field)) => format!("an entry of `{field}`"),
            (None, Place::Under(field)) => format!("`{field}`"),
            (None, Place::Top) => self.head.name.to_owned(),
        }
    }

    /// Where a field of the level is written: "in an entry of `stages`".
    fn place(&self) -> String {
        match (self.head.written, &self.head.place) {
            (Some(place), _) => place.to_owned(),
            (None, Place::EntryOf(field)) => format!("in an entry of `{field}`"),
            (None, Place::Under(field)) => format!("under `{field}`"),
            (None, Place::Top) => "at the top of the document, beside `kind`".to_owned(),
        }
    }

    /// How many levels lie between the two, if one stands in the other.
    fn distance(&self, other: &Level) -> Option<usize> {
        let up =
            |from: &Level, to: &Level| std::iter::successors(Some(from), |level| level.head.parent).position(|level| level == to);
        up(self, other).or_else(|| up(other, self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// The levels that a shape names.
    fn within(shape: &Shape) -> Vec<&'static Level> {
        match shape {
            Shape::Of(level) | Shape::Entries(level, _) => vec![*level],
            Shape::List(of, _) => within(of),
            Shape::Either(shapes) => shapes.iter().flat_map(within).collect(),
            _ => vec![],
        }
    }

    #[test]
    fn every_level_is_listed_once_and_says_each_word_once() {
        let all: Vec<&Level> = LEVELS.iter().copied().flatten().copied().collect();
        let names: HashSet<&str> = all.iter().map(|level| level.head.name).collect();
        assert_eq!(names.len(), all.len(), "each has a name of its own");
        for level in all {
            let known = level.fields.iter().flat_map(|field| within(&field.shape)).chain(level.head.parent);
            for other in known {
                assert!(names.contains(other.head.name), "{} is in no list", other.head.name);
            }
            let words = || level.names().chain(level.fields.iter().flat_map(|field| field.also.iter().copied()));
            let different: HashSet<&str> = words().collect();
            assert_eq!(different.len(), words().count(), "{}", level.head.name);
            let groups = || level.head.one_of.iter().chain(level.head.any_of).copied().flatten();
            assert!(groups().all(|field| level.has(field)), "{}", level.head.name);
        }
    }
}
