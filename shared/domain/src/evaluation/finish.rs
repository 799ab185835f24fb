//! The whole answer to `get-sli.finished`: also where there is nothing to judge.

use super::{Earlier, Finished, Judged, Provided, Slo, judge};
use crate::event::{Status, TaskResult};

/// The file of objectives of a service.
#[derive(Debug, Clone, PartialEq)]
pub enum Objectives {
    /// There is none.
    Missing,
    /// It could not be fetched or read, and why.
    Unreadable(String),
    /// What it says.
    Read(Slo),
}

/// What becomes of an evaluation.
pub fn finish(project: &str, objectives: &Objectives, provided: &Provided, earlier: &[Earlier]) -> Judged {
    let without = |finished| Judged { finished, compared: 0, notes: vec![] };
    let failed = |message| without(Finished::without(Status::Errored, TaskResult::Fail, message, TaskResult::Pass));
    match (provided.status, objectives) {
        (Status::Aborted, _) => failed("evaluation performed by lighthouse was aborted".into()),
        (Status::Errored, _) => {
            failed(format!("evaluation performed by lighthouse received an unexpected error: {}", provided.message))
        }
        (_, Objectives::Missing) => {
            let message = format!("no evaluation performed by lighthouse because no SLO file configured for project {project}");
            without(Finished::without(Status::Succeeded, TaskResult::Pass, message, TaskResult::Pass))
        }
        (_, Objectives::Unreadable(message)) => without(Finished::errored(message.clone())),
        (_, Objectives::Read(slo)) => judge(slo, provided, earlier),
    }
}
