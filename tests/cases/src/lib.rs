//! The cases, which are the YAML files beside this crate, and their format as types: what every engine's cases have, and what each
//! engine's have besides. `README.md` beside them describes it.
//!
//! It is a crate of its own because reading them is much code that seldom runs: it is compiled once, and not optimised.

pub mod deployments;
pub mod evaluations;
pub mod promotions;
pub mod sequences;
pub mod webhooks;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

/// What an engine's cases have that others' have not.
pub trait Format: Sized + Debug + Clone + Default {
    /// What is there before the first step.
    type Given: DeserializeOwned + Debug + Clone;
    /// Inputs of its own, what belongs to them, and what is expected besides events, answers and states.
    type Step: DeserializeOwned + Debug + Clone + Default;

    /// The folder of its cases.
    const FOLDER: &'static str;
    /// Alias of what a step is about, if it does not say.
    const ABOUT: &'static str = "C1";

    /// How many inputs of its own a step has.
    fn inputs(step: &Self::Step) -> usize;
    /// The cases in a file's text: [`parsed`]. Whoever called that one itself would compile it.
    ///
    /// # Errors
    /// Why they cannot be read.
    fn parse(text: &str) -> Result<Vec<Case<Self>>, String>;
}

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
pub struct Case<F: Format> {
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
    pub given: F::Given,
    /// In order.
    pub steps: Vec<Step<F>>,
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
pub struct Step<F: Format> {
    /// Any event at all.
    pub event: Option<Value>,
    /// An earlier input again.
    pub duplicate: Option<String>,
    /// Time goes by.
    pub wait: Option<String>,
    /// Any other input, and what belongs to it.
    #[serde(flatten)]
    pub own: F::Step,

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

impl<F: Format> Step<F> {
    /// Alias of the context it is about.
    pub fn about(&self) -> &str {
        self.context.as_deref().unwrap_or(F::ABOUT)
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

/// Where an event comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Entrance {
    /// `POST /v1/event`
    Api,
    /// The event bus.
    #[default]
    Bus,
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
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
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
pub fn cases<F: Format>() -> Result<Vec<Case<F>>, CaseError> {
    let folder = folder(F::FOLDER);
    let entries = std::fs::read_dir(&folder).map_err(|source| CaseError::File { path: folder.clone(), source })?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    let mut all: Vec<Case<F>> = Vec::new();
    for path in paths {
        let wrong = |reason: String| CaseError::Format { path: path.clone(), reason };
        for case in F::parse(&read(&path)?).map_err(wrong)? {
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

/// The cases in a text.
///
/// # Errors
/// Why they cannot be read.
pub fn parsed<F: Format>(text: &str) -> Result<Vec<Case<F>>, String> {
    serde_saphyr::from_multiple_with_options(text, options()).map_err(|error| error.to_string())
}

/// A case may repeat a text many times by anchor, to make an event large. Only `true` and `false` are booleans: `y` is a name.
fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! { enforce_alias_anchor_ratio: false },
        strict_booleans: true,
    }
}

fn fault<F: Format>(case: &Case<F>) -> Option<String> {
    if case.only.is_some() && case.because.is_none() {
        return Some("`only` needs a `because`".into());
    }
    let inputs = |step: &Step<F>| {
        let common = [step.event.is_some(), step.duplicate.is_some(), step.wait.is_some()];
        common.iter().filter(|is| **is).count() + F::inputs(&step.own)
    };
    let odd = case.steps.iter().position(|step| inputs(step) != 1)?;
    Some(format!("step {} has {} inputs: exactly one is needed", odd + 1, inputs(&case.steps[odd])))
}
