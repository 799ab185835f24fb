//! The format of cases, as types: what every engine's cases have.

use super::Dialect;
use keelway_engine::protocol::Handled;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Why a case cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// The file cannot be read.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not a case.
    #[error("{path}: {reason}")]
    Format {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

/// A story and all that is expected of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(bound = "", deny_unknown_fields)]
pub struct Case<D: Dialect> {
    /// Unique.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// Run there only.
    pub only: Option<Only>,
    /// Why.
    pub because: Option<String>,
    /// What is there before the first step.
    #[serde(flatten)]
    pub given: D::Given,
    /// In order.
    pub steps: Vec<Step<D>>,
}

/// The runner a case is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Only {
    /// In memory.
    World,
    /// On the local cloud.
    Cloud,
}

/// One input and what comes of it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(bound = "", deny_unknown_fields, default)]
pub struct Step<D: Dialect> {
    /// Any event at all.
    pub event: Option<Value>,
    /// An earlier input again.
    pub duplicate: Option<String>,
    /// Time goes by.
    pub wait: Option<String>,
    /// Any other input, and what belongs to it.
    #[serde(flatten)]
    pub own: D::Step,

    /// Alias of the context.
    pub context: Option<String>,
    /// Names the input.
    #[serde(rename = "as")]
    pub alias: Option<String>,

    /// All events that come of it.
    pub out: Vec<Outgoing>,
    /// What the sender hears.
    pub answer: Option<Expected>,
    /// Part of the refusal.
    pub problem: Option<String>,
    /// The views of contexts, or of what else the engine shows, by alias.
    pub state: BTreeMap<String, Value>,
}

impl<D: Dialect> Step<D> {
    /// Alias of the context it is about.
    pub fn about(&self) -> &str {
        self.context.as_deref().unwrap_or(D::ABOUT)
    }
}

/// An expected answer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "Value")]
pub enum Expected {
    /// An HTTP status.
    Status(u16),
    /// What the handler made of it.
    Word(Word),
}

impl TryFrom<Value> for Expected {
    type Error = String;
    fn try_from(value: Value) -> Result<Self, String> {
        match value.as_u64().and_then(|status| u16::try_from(status).ok()) {
            Some(status) => Ok(Self::Status(status)),
            None => serde_json::from_value(value).map(Self::Word).map_err(|e| format!("an answer: {e}")),
        }
    }
}

/// What the handler made of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Word {
    /// It changed the state.
    Committed,
    /// It had been absorbed before.
    Settled,
    /// Too late to count.
    Stale,
    /// It cannot be used.
    Invalid,
    /// Kept as history.
    Recorded,
}

impl Word {
    /// As the engine says it.
    pub fn handled(self) -> Handled {
        match self {
            Word::Committed => Handled::Committed,
            Word::Settled => Handled::Settled,
            Word::Stale => Handled::Stale,
            Word::Invalid => Handled::Invalid,
            Word::Recorded => Handled::Recorded,
        }
    }
}

/// An expected event.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Value")]
pub enum Outgoing {
    /// `<type> [<result>/<status>] [@<context>]`
    Line(String),
    /// With details.
    Full(Box<Details>),
}

/// The long form of an expected event.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Details {
    /// The short line.
    #[serde(rename = "type")]
    pub line: String,
    /// Names the event.
    #[serde(rename = "as")]
    pub alias: Option<String>,
    /// Part of its data.
    pub data: Map<String, Value>,
    /// All of its data.
    pub exactly: Option<Value>,
    /// The only members of its data.
    pub only: Option<Vec<String>>,
    /// Some of its attributes.
    pub attributes: Map<String, Value>,
    /// What must not be there.
    pub absent: Vec<String>,
    /// The event it answers.
    pub answers: Option<String>,
}

impl TryFrom<Value> for Outgoing {
    type Error = String;
    fn try_from(value: Value) -> Result<Self, String> {
        match value {
            Value::String(line) => Ok(Self::Line(line)),
            other => serde_json::from_value(other).map(Self::Full).map_err(|e| format!("an expected event: {e}")),
        }
    }
}

impl Outgoing {
    /// The long form.
    pub fn details(&self) -> Details {
        match self {
            Outgoing::Line(line) => Details { line: line.clone(), ..Details::default() },
            Outgoing::Full(details) => (**details).clone(),
        }
    }
}

/// Where an engine's cases are.
pub fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../cases").join(name)
}

/// The text of a file.
///
/// # Errors
/// When it cannot be read.
pub fn read(path: &Path) -> Result<String, CaseError> {
    std::fs::read_to_string(path).map_err(|source| CaseError::File { path: path.to_owned(), source })
}

/// All cases of an engine, sorted by file.
///
/// # Errors
/// The first file that cannot be read as cases, or an id used twice.
pub fn cases<D: Dialect>() -> Result<Vec<Case<D>>, CaseError> {
    let folder = folder(D::FOLDER);
    let entries = std::fs::read_dir(&folder).map_err(|source| CaseError::File { path: folder.clone(), source })?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    let mut all: Vec<Case<D>> = Vec::new();
    for path in paths {
        let wrong = |reason: String| CaseError::Format { path: path.clone(), reason };
        let some: Vec<Case<D>> =
            serde_saphyr::from_multiple_with_options(&read(&path)?, options()).map_err(|e| wrong(e.to_string()))?;
        for case in some {
            if all.iter().any(|other| other.id == case.id) {
                return Err(wrong(format!("case {} is there twice", case.id)));
            }
            if let Some(reason) = fault(&case) {
                return Err(wrong(format!("case {}: {reason}", case.id)));
            }
            all.push(case);
        }
    }
    Ok(all)
}

/// A case may repeat a text many times by anchor, to make an event large. Only `true` and `false` are booleans: `y` is a name.
fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! { enforce_alias_anchor_ratio: false },
        strict_booleans: true,
    }
}

fn fault<D: Dialect>(case: &Case<D>) -> Option<String> {
    if case.only.is_some() && case.because.is_none() {
        return Some("`only` needs a `because`".into());
    }
    let inputs = |step: &Step<D>| {
        let common = [step.event.is_some(), step.duplicate.is_some(), step.wait.is_some()];
        common.iter().filter(|is| **is).count() + D::inputs(&step.own)
    };
    let odd = case.steps.iter().position(|step| inputs(step) != 1)?;
    Some(format!("step {} has {} inputs: exactly one is needed", odd + 1, inputs(&case.steps[odd])))
}
