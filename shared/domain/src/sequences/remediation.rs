//! What a `remediation.yaml` (version 0.1.4) says: which actions to try, one after the other, against which problem.

use crate::event::Object;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The problem type that stands for every problem that has none of its own.
const DEFAULT: &str = "default";

/// The remediations of a service; the serde form is how they are stored, not the manifest's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Remediation {
    /// In file order.
    pub remediations: Vec<ProblemType>,
}

/// What to do about one type of problem.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProblemType {
    /// A problem's root cause or title, or `default`.
    pub problem_type: String,
    /// `actionsOnOpen`: tried in this order until an evaluation passes.
    pub actions: Vec<Action>,
}

/// One action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// What an executor knows it by, for example `toggle-feature`.
    pub action: String,
    /// Its name, for people.
    pub name: String,
    /// What it does, for people.
    pub description: String,
    /// What the executor needs.
    pub value: Value,
}

impl Remediation {
    /// What to do about the problem of a payload: by `data.problem.rootCause`, else by `data.problem.problemTitle`, else what is there
    /// for `default`.
    pub fn against(&self, payload: &Object) -> Option<&ProblemType> {
        let told = |field: &str| payload.get("problem")?.get(field)?.as_str();
        let of_type = |name: &str| self.remediations.iter().find(|one| one.problem_type == name);
        let named = ["rootCause", "problemTitle"].into_iter().find_map(|field| told(field).and_then(of_type));
        named.or_else(|| of_type(DEFAULT))
    }
}
