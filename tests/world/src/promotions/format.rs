//! What the cases of promotions have that others' have not.

use super::Promotes;
use super::host::{Repository, Troubles, Verb};
use crate::case::{CaseError, Dialect, Entrance, folder, read};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// What is there before the first step.
#[derive(Debug, Clone, Deserialize)]
pub struct Given {
    /// Applied as `app`.
    pub pipeline: Option<String>,
    /// Hosts by their type that do not tell what this needs, and what that is: the case is not run over HTTP on these.
    #[serde(default)]
    pub without: BTreeMap<String, String>,
    /// Applied under their names.
    #[serde(default)]
    pub pipelines: BTreeMap<String, String>,
    /// Merged over the `spec` of `pipeline`.
    #[serde(default)]
    pub spec: Map<String, Value>,
    /// Merged over its environments, by name.
    #[serde(default)]
    pub environments: BTreeMap<String, Map<String, Value>>,
    /// What targets run; the others run `v1` and are healthy.
    #[serde(default)]
    pub observed: BTreeMap<String, String>,
    /// What is in the repository.
    #[serde(default)]
    pub repository: Repository,
}

impl Given {
    /// The names of the pipelines.
    pub fn names(&self) -> Vec<&str> {
        self.pipeline.iter().map(|_| Promotes::ABOUT).chain(self.pipelines.keys().map(String::as_str)).collect()
    }
}

/// A pipeline as a step applies it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Apply {
    /// Another one than the case's.
    pub pipeline: Option<String>,
    /// As in the case.
    pub spec: Map<String, Value>,
    /// As in the case.
    pub environments: BTreeMap<String, Map<String, Value>>,
}

/// Inputs of promotions, what belongs to them, and what is expected of the host.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Own {
    /// What targets are seen to run: `<environment>[/<n>]` → `<revision>/<R|N>` or `? [<error>]`.
    pub observe: Option<BTreeMap<String, String>>,
    /// A pipeline.
    pub apply: Option<Apply>,
    /// The pipeline is deleted.
    pub delete: Option<bool>,
    /// `<environment> <revision>`
    pub approve: Option<String>,
    /// `<environment> <revision>`
    pub reject: Option<String>,
    /// No attempt begins until resumed.
    pub suspend: Option<bool>,
    /// It goes on.
    pub resume: Option<bool>,
    /// `<environment> <revision>`
    pub hold: Option<String>,
    /// An environment.
    pub release: Option<String>,
    /// A revision.
    pub abandon: Option<String>,
    /// An environment.
    pub retry: Option<String>,
    /// An environment.
    pub abort: Option<String>,
    /// `<environment> <revision>`
    pub accept: Option<String>,
    /// So many evaluations, for no reason.
    pub evaluate: Option<u32>,
    /// Everything that was ever delivered is delivered again.
    pub replay: Option<bool>,
    /// The state is copied.
    pub backup: Option<bool>,
    /// The copy is put back.
    pub restore: Option<bool>,
    /// A webhook of the host says that something has changed.
    pub webhook: Option<bool>,
    /// The repository is changed.
    pub repository: Option<Repository>,
    /// What evaluations come to from now on, by environment: `pass` (the default), `warning`, `fail`, `errored`, `unevaluated`, or
    /// `silent`: nobody answers.
    pub verdicts: Option<BTreeMap<String, String>>,
    /// A sequence ends: `<environment> <pass|warning|fail|timed-out|aborted>`.
    pub finish: Option<String>,
    /// A person merges a pull request.
    pub merge: Option<u64>,
    /// A person closes it.
    pub close: Option<u64>,
    /// A person reopens it.
    pub reopen: Option<u64>,
    /// A person pushes to its branch by force.
    pub push: Option<u64>,
    /// The base branch changes so that it conflicts.
    pub conflict: Option<u64>,
    /// A person changes its title and body.
    pub edit: Option<u64>,

    /// Who asks; by default `ann`. Of a fact: who set the revision, as the engine of deployments tells it; by default that is not
    /// known.
    pub by: Option<String>,
    /// Why.
    pub message: Option<String>,
    /// Identifies what is asked for: the same again is the same request.
    pub request: Option<String>,
    /// The version of the facts; by default they are the newest.
    pub version: Option<i64>,
    /// Nobody tells the engine that the sequence has ended.
    pub unheard: bool,
    /// Where facts come in.
    pub at: Entrance,
    /// What goes wrong with the next calls, by kind.
    pub fails: BTreeMap<Verb, Troubles>,

    /// All calls that change something at the host or tell somebody, in order.
    pub calls: Vec<Expected>,
    /// At most so many requests that only read.
    pub reads: Option<u64>,
    /// Pull requests by number.
    pub requests: BTreeMap<u64, Value>,
}

/// An expected call.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Expected {
    /// `<verb> <what> [<trouble>]`
    Line(String),
    /// With details.
    Full(Details),
}

/// The long form of an expected call.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Details {
    /// The short line.
    pub call: String,
    /// What else is true of it.
    #[serde(flatten)]
    pub details: Map<String, Value>,
}

impl Expected {
    /// The line and the details.
    pub fn parts(&self) -> (&str, Map<String, Value>) {
        match self {
            Self::Line(line) => (line, Map::new()),
            Self::Full(full) => (&full.call, full.details.clone()),
        }
    }
}

/// A shared manifest, read as a tree.
///
/// # Errors
/// When there is no such file, or it is no YAML.
pub fn pipeline(name: &str) -> Result<Value, CaseError> {
    // A case is told hundreds of times.
    static READ: Mutex<BTreeMap<String, Value>> = Mutex::new(BTreeMap::new());
    let mut known = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(document) = known.get(name) {
        return Ok(document.clone());
    }
    let path = folder(super::NAME).join("pipelines").join(format!("{name}.yaml"));
    let document: Value = serde_saphyr::from_str(&read(&path)?).map_err(|e| CaseError::Format { path, reason: e.to_string() })?;
    known.insert(name.to_owned(), document.clone());
    Ok(document)
}
