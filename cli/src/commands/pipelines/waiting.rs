//! Promotions that wait for a person's approval, wherever they are.

use super::list::{entries, states};
use crate::address::Address;
use crate::api::Api;
use crate::board;
use crate::delivery::Hint;
use crate::error::CliError;
use crate::pipeline;
use crate::table::Table;
use crate::terminal::look;
use crate::words::{age, revision};
use keelway_domain::names::ProjectName;
use keelway_domain::time::Timestamp;
use keelway_wire::http::promotions::{EnvironmentState, PipelineEntry, PipelineState, WaitingApproval};
use serde_json::{Value, json};

/// More pipelines than this are not looked at.
const PIPELINES: usize = 1000;

/// A promotion that waits for approval.
pub struct Waiting {
    /// Its pipeline.
    pub of: Address,
    /// Into which environment.
    pub environment: String,
    /// What is awaited.
    pub approval: WaitingApproval,
    /// How long it has been waiting.
    age: String,
    hint: Hint,
}

impl Waiting {
    /// For programs.
    pub fn data(&self) -> Value {
        json!({"namespace": self.of.namespace, "name": self.of.name, "environment": self.environment, "waitingApproval": self.approval})
    }
}

/// What waits for approval in a namespace, or in all that the token shows.
///
/// # Errors
/// As the API answers.
pub async fn waiting(api: &Api, namespace: Option<&ProjectName>) -> Result<Vec<Waiting>, CliError> {
    let open: Vec<PipelineEntry> = match entries(api, namespace.map(ProjectName::as_str), PIPELINES).await {
        // Of a pipeline that has a reason not to be done, an environment may wait for approval.
        Ok((entries, _)) => entries.into_iter().filter(|entry| entry.run.is_some() && !entry.reason.is_empty()).collect(),
        // An API without pipelines.
        Err(CliError::Api(error)) if error.status() == Some(404) => vec![],
        // Nobody asked for them by name, and a token that shows none may still decide sequences.
        Err(CliError::Api(error)) if namespace.is_none() && error.status() == Some(403) => vec![],
        Err(error) => return Err(error),
    };
    let states = states(api, &open).await?;
    Ok(states.iter().flat_map(|(state, now)| of_pipeline(state, *now)).collect())
}

fn of_pipeline(state: &PipelineState, now: Option<Timestamp>) -> Vec<Waiting> {
    let of = Address { namespace: state.namespace.clone(), name: state.name.clone() };
    let one = |environment: &EnvironmentState| {
        let approval = environment.waiting_approval.clone()?;
        let age = environment.promotion.as_ref().map(|promotion| age(&promotion.since, now)).unwrap_or_default();
        let hint = pipeline::approve(state, &environment.name, &approval.revision);
        Some(Waiting { of: of.clone(), environment: environment.name.clone(), approval, age, hint })
    };
    state.environments.iter().filter_map(one).collect()
}

/// As a table.
pub fn table(all: &[Waiting]) -> Table {
    let mut table = Table::new(&["PIPELINE", "REVISION", "ENVIRONMENT", "WAITS", "APPROVALS", "APPROVERS"]);
    for one in all {
        let approvals = format!("{} of {}", one.approval.given, one.approval.needed);
        let approvers = approvers(&one.approval);
        let revision = revision(&one.approval.revision);
        table.row(vec![one.of.to_string(), revision, one.environment.clone(), one.age.clone(), approvals, approvers]);
    }
    table
}

/// The commands that would approve them.
pub fn hints(all: &[Waiting]) -> Vec<String> {
    let hints: Vec<Hint> = all.iter().map(|one| one.hint.clone()).take(5).collect();
    board::hints(&hints, &look())
}

/// Who may approve, and who may not because it is their own.
fn approvers(approval: &WaitingApproval) -> String {
    let listed = approval.approvers.join(",");
    match approval.authors.join(",") {
        _ if !approval.separate => listed,
        none if none.is_empty() => "nobody: its author is not known".into(),
        authors if listed.is_empty() => format!("not {authors}"),
        authors => format!("{listed}, not {authors}"),
    }
}
