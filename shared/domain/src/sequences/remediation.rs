//! The content of a `remediation.yaml` (version 0.1.4): the actions to try, one after the other, against each problem.

use crate::event::Object;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The problem type for all problems without an own entry.
const DEFAULT: &str = "default";

/// The remediations of a service. The serde form is that of storage, not that of the manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Remediation {
    /// In the order of the file.
    pub remediations: Vec<ProblemType>,
}

crate::stored!(Remediation);

/// The actions against one type of problem.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProblemType {
    /// The root cause or the title of a problem, or `default`.
    pub problem_type: String,
    /// `actionsOnOpen`: tried in this order until an evaluation passes.
    pub actions: Vec<Action>,
}

/// An action that an executor carries out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// The type of the action, for example `toggle-feature`.
    pub action: String,
    /// The name of the action, for people.
    pub name: String,
    /// A description of the action, for people.
    pub description: String,
    /// Parameters for the executor.
    pub value: Value,
}

impl Remediation {
    /// The actions against the problem in a payload: those for `data.problem.rootCause`, otherwise for `data.problem.problemTitle`,
    /// otherwise for `default`.
    pub fn against(&self, payload: &Object) -> Option<&ProblemType> {
        let told = |field: &str| payload.get("problem")?.get(field)?.as_str();
        let of_type = |name: &str| self.remediations.iter().find(|one| one.problem_type == name);
        let named = ["rootCause", "problemTitle"].into_iter().find_map(|field| told(field).and_then(of_type));
        named.or_else(|| of_type(DEFAULT))
    }
}
