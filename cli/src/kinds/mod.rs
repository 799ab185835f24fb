//! Kinds of manifests on the command line: `get` and `delete`. Each has a file that says what it is called, how it is listed, and
//! what ends with it. [`crate::commands::kinds`] asks the API.

mod args;
mod artifact_source;
mod cluster;
pub mod deployment_config;
mod git_host;
mod metrics_source;
pub mod pipeline;
mod schedule;
mod webhook_subscription;

pub use args::{Asked, DeleteKind, Deleted, GetKind};

use crate::address::Address;
use crate::args::named::Format;
use crate::error::CliError;
use crate::output::say_data;
use crate::table::Table;
use keelway_domain::time::Timestamp;
use keelway_wire::manifest::schema_kinds;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// In the order of help.
static KINDS: &[Kind] = &[
    schedule::KIND,
    pipeline::KIND,
    cluster::KIND,
    deployment_config::KIND,
    artifact_source::KIND,
    metrics_source::KIND,
    webhook_subscription::KIND,
    git_host::KIND,
];

/// A kind of manifest.
pub struct Kind {
    /// As manifests call it.
    pub kind: &'static str,
    /// In sentences.
    pub noun: &'static str,
    /// In the API's paths.
    pub collection: &'static str,
    pub place: Place,
    pub get: Verb,
    pub delete: Verb,
    /// What ends with one, for whoever is asked whether to delete it.
    pub ends: &'static str,
    /// Prints one as JSON.
    pub json: fn(Value) -> Result<(), CliError>,
    pub table: fn(Vec<Value>, Option<Timestamp>, Format) -> Result<Table, CliError>,
}

/// A word below `get` or `delete`.
pub struct Verb {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub about: &'static str,
    pub examples: &'static str,
}

/// Where those of a kind are.
#[derive(Clone, Copy)]
pub enum Place {
    Namespace,
    /// In a namespace, and their paths have `<namespace>:<name>`.
    Id,
    Project,
    Installation,
}

/// What `apply` does, in its help.
pub fn about_apply() -> String {
    let kinds: Vec<&str> = schema_kinds().iter().copied().filter(|kind| !["List", "Template"].contains(kind)).collect();
    format!("Put manifests in force: kinds {}, alone or in a List or a Template", listed(&kinds, "and"))
}

/// What `delete` does, in its help.
pub fn about_delete() -> String {
    let nouns = ["project", "service"].into_iter().chain(KINDS.iter().map(|kind| kind.noun));
    let one = |noun: &str| format!("{} {noun}", if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" });
    format!("Delete {}", listed(&nouns.map(one).collect::<Vec<_>>(), "or"))
}

fn listed<T: AsRef<str>>(all: &[T], word: &str) -> String {
    let all: Vec<&str> = all.iter().map(AsRef::as_ref).collect();
    match all.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} {word} {last}", rest.join(", ")),
        None => String::new(),
    }
}

/// The word that lists those of a kind.
pub fn plural(kind: &str) -> Option<&'static str> {
    KINDS.iter().find(|known| known.kind == kind).map(|known| known.get.name)
}

/// The collection of the API that a word below `get` or `delete` names, if its names stand alone or after a project.
pub fn collection(word: &str) -> Option<&'static str> {
    let called = |verb: &Verb| verb.name == word || verb.aliases.contains(&word);
    let kind = KINDS.iter().find(|kind| called(&kind.get) || called(&kind.delete))?;
    (!matches!(kind.place, Place::Project)).then_some(kind.collection)
}

impl Kind {
    /// One in a sentence.
    pub fn named(&self, at: &Address) -> String {
        match self.place {
            Place::Project => format!("{} {} of project {}", self.noun, at.name, at.namespace),
            Place::Namespace | Place::Id | Place::Installation => format!("{} {at}", self.noun),
        }
    }

    /// The path of one.
    pub fn path(&self, Address { namespace, name }: &Address) -> Vec<String> {
        let one = match self.place {
            Place::Namespace | Place::Project => vec![namespace.clone(), name.clone()],
            Place::Id => vec![format!("{namespace}:{name}")],
            Place::Installation => vec![name.clone()],
        };
        [vec![self.collection.to_owned()], one].concat()
    }

    /// The path of a list, and the project that is asked for; empty: all.
    pub fn list<'a>(&self, asked: &'a Asked) -> (Vec<&'a str>, &'a str) {
        let project = asked.project.as_deref().unwrap_or_default();
        match self.place {
            Place::Project => (vec![self.collection, project], ""),
            Place::Namespace | Place::Id => (vec![self.collection], project),
            Place::Installation => (vec![self.collection], ""),
        }
    }

    /// What is said of an empty list.
    pub fn empty(&self, asked: &Asked) -> String {
        let noun = self.noun;
        match &asked.project {
            Some(project) => format!("project {project} has no {noun}; apply one: keelway apply -f FILE; of all projects: -A"),
            None => format!("there is no {noun} yet; apply one: keelway apply -f FILE"),
        }
    }
}

/// What the API answers, as this command knows it.
fn typed<T: DeserializeOwned>(value: Value) -> Result<T, CliError> {
    serde_json::from_value(value).map_err(|error| CliError::Failed(format!("the API's answer is not what is expected: {error}")))
}

fn json<T: DeserializeOwned + Serialize>(one: Value) -> Result<(), CliError> {
    say_data(&typed::<T>(one)?, Format::Json)
}
