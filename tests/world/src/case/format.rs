//! The format of cases, as types.

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
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Case {
    /// Unique.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// Applied to project `p`.
    pub shipyard: Option<String>,
    /// Applied to projects by name.
    #[serde(default)]
    pub shipyards: BTreeMap<String, String>,
    /// Run there only.
    pub only: Option<Only>,
    /// Why.
    pub because: Option<String>,
    /// In order.
    pub steps: Vec<Step>,
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

/// What a context is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Control {
    /// Hold back what comes next.
    Pause,
    /// Go on.
    Resume,
    /// End it.
    Abort,
}

/// One input and what comes of it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Step {
    /// A sequence's trigger, `<stage>.<sequence>`.
    pub trigger: Option<String>,
    /// A task's `.started`.
    pub started: Option<String>,
    /// A task's `.status.changed`.
    pub changed: Option<String>,
    /// A task's `.finished`.
    pub finished: Option<String>,
    /// Any event at all.
    pub event: Option<Value>,
    /// An earlier input again.
    pub duplicate: Option<String>,
    /// A shipyard by name.
    pub apply: Option<String>,
    /// A person approves.
    pub approve: Option<bool>,
    /// A person declines.
    pub decline: Option<bool>,
    /// The context's control.
    pub control: Option<Control>,
    /// Time goes by.
    pub wait: Option<String>,

    /// Alias of the context.
    pub context: Option<String>,
    /// Alias of the project.
    pub project: Option<String>,
    /// The service.
    pub service: Option<String>,
    /// The stage, where the input's own does not say it.
    pub stage: Option<String>,
    /// Names the input.
    #[serde(rename = "as")]
    pub alias: Option<String>,
    /// The event's source.
    pub by: Option<String>,
    /// The event answered.
    pub to: Option<String>,
    /// Where it comes in.
    pub at: super::Entrance,
    /// Sent without a context.
    pub anonymous: bool,
    /// Merged over the default data.
    pub data: Map<String, Value>,
    /// Replace the event's attributes.
    pub attributes: Map<String, Value>,
    /// Taken out again.
    pub without: Vec<String>,
    /// `data.result`.
    pub result: Option<Value>,
    /// `data.status`.
    pub status: Option<Value>,

    /// All events that come of it.
    pub out: Vec<Outgoing>,
    /// What the sender hears.
    pub answer: Option<Expected>,
    /// Part of the refusal.
    pub problem: Option<String>,
    /// The views of contexts by alias.
    pub state: BTreeMap<String, Value>,
    /// Lanes by `[<project>:]<stage>/<service>`.
    pub lanes: BTreeMap<String, Lane>,
    /// All open triggers.
    pub open: Option<Vec<String>>,
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

/// An expected lane.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lane {
    /// Alias of the holder's context, or `none`.
    pub holder: String,
    /// Aliases in the order of service; not compared when absent.
    pub queue: Option<Vec<String>>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../cases")
}

fn text(path: &Path) -> Result<String, CaseError> {
    std::fs::read_to_string(path).map_err(|source| CaseError::File { path: path.to_owned(), source })
}

/// The text of a shared shipyard.
///
/// # Errors
/// When there is no such file.
pub fn shipyard(name: &str) -> Result<String, CaseError> {
    text(&folder().join("shipyards").join(format!("{name}.yaml")))
}

/// All cases, sorted by file.
///
/// # Errors
/// The first file that cannot be read as cases, or an id used twice.
pub fn cases() -> Result<Vec<Case>, CaseError> {
    let folder = folder();
    let entries = std::fs::read_dir(&folder).map_err(|source| CaseError::File { path: folder.clone(), source })?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    let mut all: Vec<Case> = Vec::new();
    for path in paths {
        let wrong = |reason: String| CaseError::Format { path: path.clone(), reason };
        let some: Vec<Case> =
            serde_saphyr::from_multiple_with_options(&text(&path)?, options()).map_err(|e| wrong(e.to_string()))?;
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

/// A case may repeat a text many times by anchor, to make an event large.
fn options() -> serde_saphyr::Options {
    serde_saphyr::options! { budget: serde_saphyr::budget! { enforce_alias_anchor_ratio: false } }
}

fn fault(case: &Case) -> Option<String> {
    if case.only.is_some() && case.because.is_none() {
        return Some("`only` needs a `because`".into());
    }
    let inputs = |step: &Step| {
        let texts = [&step.trigger, &step.started, &step.changed, &step.finished, &step.duplicate, &step.apply, &step.wait];
        texts.iter().filter(|text| text.is_some()).count()
            + [step.approve.is_some(), step.decline.is_some(), step.control.is_some(), step.event.is_some()]
                .iter()
                .filter(|is| **is)
                .count()
    };
    let odd = case.steps.iter().position(|step| inputs(step) != 1)?;
    Some(format!("step {} has {} inputs: exactly one is needed", odd + 1, inputs(&case.steps[odd])))
}
