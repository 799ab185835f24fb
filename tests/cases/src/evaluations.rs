//! What the cases of evaluations have that others' have not.

use crate::{Case, Format, parsed};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The format of the cases of evaluations.
#[derive(Debug, Clone, Default)]
pub struct Evaluates;

impl Format for Evaluates {
    type Given = Given;
    type Step = Own;

    const FOLDER: &'static str = "evaluations";

    fn inputs(own: &Own) -> usize {
        let texts = [&own.task, &own.ask, &own.began, &own.configure, &own.void, &own.invalidate, &own.cancel, &own.over];
        let others = [
            own.provided.is_some(),
            own.values.is_some(),
            own.late.is_some(),
            own.busy.is_some(),
            own.refuse.is_some(),
            own.declare.is_some(),
            own.write.is_some(),
            own.sweep,
            own.replay,
        ];
        texts.iter().filter(|text| text.is_some()).count() + others.iter().filter(|is| **is).count()
    }
    fn parse(text: &str) -> Result<Vec<Case<Self>>, String> {
        parsed(text)
    }
}

/// The files of a case that gives none: one objective, and its query.
pub const FILES: [(&str, &str, &str); 2] =
    [("dev/svc", "slo.yaml", OBJECTIVES), ("", "sli.yaml", "indicators: {errors: \"errors of $SERVICE in $STAGE\"}\n")];
const OBJECTIVES: &str = "comparison: {compare_with: single_result, include_result_with_score: pass}
objectives:
  - sli: errors
    pass: [{criteria: [\"<=1\", \"<=+50%\"]}]
    warning: [{criteria: [\"<=2\"]}]
total_score: {pass: \"90%\", warning: \"50%\"}
";

/// Files by their scope (the project's under an empty name) and URI; null: deleted.
pub type Files = BTreeMap<String, BTreeMap<String, Option<String>>>;
/// By source and query; null: there is none.
pub type Values = BTreeMap<String, BTreeMap<String, Option<f64>>>;

/// What is there before the first step.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Given {
    /// Absent: [`FILES`].
    pub files: Option<Files>,
    /// The sources, each with how long after a window it is asked.
    pub sources: BTreeMap<String, String>,
    /// What they answer.
    pub values: Values,
    /// The source that was chosen.
    pub provider: Option<String>,
}

/// What a service on the bus says.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Provided {
    /// The task, by its alias.
    pub to: String,
    /// It answers something else than that.
    pub id: Option<String>,
    /// Numbers by indicator, or null: it could not be measured.
    pub values: BTreeMap<String, Option<f64>>,
    /// `status`, `result` and `message` besides.
    pub says: Map<String, Value>,
}

/// The inputs.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Own {
    /// A sequence triggers the task for `<stage>/<service>` and waits for it.
    pub task: Option<String>,
    /// The pipeline `flow` asks for an evaluation of `<stage>/<service>`.
    pub ask: Option<String>,
    /// Which time it asks for the one with this alias.
    pub time: Option<u32>,
    /// The window of a task or of what is asked for, in minutes before now, from and to.
    pub window: Option<(i64, i64)>,
    /// Its data besides.
    pub data: Map<String, Value>,
    /// The commit that it names; `last`: the last one that was written so far, `before`: the one before that.
    pub commit: Option<String>,
    /// A service on the bus has begun with this task.
    pub began: Option<String>,
    /// A service on the bus has finished.
    pub provided: Option<Provided>,
    /// Sources answer something else from now on.
    pub values: Option<Values>,
    /// Sources have no values for so long.
    pub late: Option<BTreeMap<String, String>>,
    /// Sources are busy for so long.
    pub busy: Option<BTreeMap<String, String>>,
    /// Sources refuse, and say this; null: no longer.
    pub refuse: Option<BTreeMap<String, Option<String>>>,
    /// A client says what the project is monitored with.
    pub configure: Option<String>,
    /// A source is declared, with how long after a window it is asked; null: it is deleted.
    pub declare: Option<BTreeMap<String, Option<String>>>,
    /// Files are written.
    pub write: Option<Files>,
    /// A client takes an evaluation out over the bus: the alias of its task.
    pub void: Option<String>,
    /// The same over the API.
    pub invalidate: Option<String>,
    /// A sequence waits for this task no more, and says so.
    pub cancel: Option<String>,
    /// A sequence waits for this task no more: it was answered, or the event that says so is lost.
    pub over: Option<String>,
    /// What the pipeline was told so far, each message once: `<alias> <result> <time>`. No input.
    pub told: Option<Vec<String>>,
    /// The sweep comes by.
    pub sweep: bool,
    /// Everything that was ever delivered is delivered again.
    pub replay: bool,
}
