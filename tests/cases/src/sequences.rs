//! What the cases of sequences have that others' have not.

use crate::{Case, CaseError, Entrance, Format, folder, parsed, read};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The format of the cases of sequences.
#[derive(Debug, Clone, Default)]
pub struct Keptn;

impl Format for Keptn {
    type Given = Given;
    type Step = Own;

    const FOLDER: &'static str = "sequences";

    fn inputs(own: &Own) -> usize {
        let events = [&own.trigger, &own.started, &own.changed, &own.finished];
        let requests = [&own.apply, &own.control, &own.evaluate, &own.overridden, &own.schedule, &own.unschedule];
        let texts = events.into_iter().chain(requests);
        let others = [own.approve.is_some(), own.decline.is_some(), own.retry.is_some(), own.outage.is_some()];
        texts.filter(|text| text.is_some()).count() + others.iter().filter(|is| **is).count()
    }
    fn parse(text: &str) -> Result<Vec<Case<Self>>, String> {
        parsed(text)
    }
}

/// What is there before the first step.
#[derive(Debug, Clone, Deserialize)]
pub struct Given {
    /// Applied to project `p`.
    pub shipyard: Option<String>,
    /// Applied to projects by name.
    #[serde(default)]
    pub shipyards: BTreeMap<String, String>,
}

/// What a request for an evaluation says.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Evaluate {
    /// The beginning of the window.
    pub start: Option<String>,
    /// Its end.
    pub end: Option<String>,
    /// Its length.
    pub timeframe: Option<String>,
    /// Labels.
    pub labels: Map<String, Value>,
}

/// What happens to the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outage {
    /// Nothing is handled any more.
    Begins,
    /// Everything that came in meanwhile is handled.
    Ends,
}

/// A list of sequences that is expected.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    /// Only these contexts, by alias.
    #[serde(default)]
    pub of: Vec<String>,
    /// Only in this state.
    pub state: Option<String>,
    /// Only with this first sequence.
    pub name: Option<String>,
    /// Only with these labels.
    #[serde(default)]
    pub labels: BTreeMap<String, Option<String>>,
    /// The contexts listed, by alias, in order.
    pub are: Vec<String>,
}

/// Inputs of sequences, what belongs to them, and what is expected of lanes and tasks.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Own {
    /// A sequence's trigger, `<stage>.<sequence>`.
    pub trigger: Option<String>,
    /// A task's `.started`.
    pub started: Option<String>,
    /// A task's `.status.changed`.
    pub changed: Option<String>,
    /// A task's `.finished`.
    pub finished: Option<String>,
    /// A shipyard by name.
    pub apply: Option<String>,
    /// A person approves.
    pub approve: Option<bool>,
    /// A person declines.
    pub decline: Option<bool>,
    /// The context's control: `pause`, `resume`, `abort`, or what is none of them.
    pub control: Option<String>,
    /// Somebody lets the context begin in a closed stage, for this reason.
    #[serde(rename = "override")]
    pub overridden: Option<String>,
    /// A schedule by name: of the folder `schedules`.
    pub schedule: Option<String>,
    /// A schedule that is deleted, by its name.
    pub unschedule: Option<String>,
    /// An ended sequence of the context is repeated.
    pub retry: Option<bool>,
    /// A request for an evaluation, `<stage>`.
    pub evaluate: Option<String>,
    /// The engine stands still, or goes on.
    pub outage: Option<Outage>,

    /// What the request for an evaluation says.
    pub window: Evaluate,
    /// Contexts that a schedule makes, by alias: `<time>/<service>`.
    pub makes: BTreeMap<String, String>,
    /// The task a retry begins with.
    pub from: Option<String>,
    /// Texts of a manifest that are replaced before it is applied.
    pub change: BTreeMap<String, String>,

    /// Alias of the project.
    pub project: Option<String>,
    /// The service.
    pub service: Option<String>,
    /// The stage, where the input's own does not say it.
    pub stage: Option<String>,
    /// The event's source.
    pub by: Option<String>,
    /// The event answered.
    pub to: Option<String>,
    /// Where it comes in.
    pub at: Entrance,
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

    /// Lanes by `[<project>:]<stage>/<service>`.
    pub lanes: BTreeMap<String, Lane>,
    /// All open triggers.
    pub open: Option<Vec<String>>,
    /// What lists of sequences show.
    pub listed: Vec<Listed>,
    /// The image that runs, by `<stage>/<service>`.
    pub runs: BTreeMap<String, String>,
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

/// The text of a shared shipyard.
///
/// # Errors
/// When there is no such file.
pub fn shipyard(name: &str) -> Result<String, CaseError> {
    read(&folder(Keptn::FOLDER).join("shipyards").join(format!("{name}.yaml")))
}

/// The text of a shared schedule.
///
/// # Errors
/// When there is no such file.
pub fn schedule(name: &str) -> Result<String, CaseError> {
    read(&folder(Keptn::FOLDER).join("schedules").join(format!("{name}.yaml")))
}
