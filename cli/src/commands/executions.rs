//! `get executions`: executions one by one, however many a context has.

use super::find;
use crate::api::Api;
use crate::args::GetExecutions;
use crate::delivery;
use crate::error::CliError;
use crate::output::{note, say_data};
use crate::pages::{self, List};
use crate::table::{Table, print};
use crate::terminal::look;
use crate::timeline;
use crate::words::{age, short_ids, version};
use keelway_domain::names::{SequenceName, ServiceName, StageName};
use keelway_domain::time::Timestamp;
use keelway_wire::http::{ExecutionState, SequenceState};
use serde_json::json;

/// Prints the executions of a context, or of a project's newest contexts.
///
/// # Errors
/// As the API answers.
pub async fn executions(api: &Api, what: &GetExecutions) -> Result<(), CliError> {
    let scope = &what.scope;
    let place = match &what.context {
        Some(given) => Some(find::place(api, scope.project.as_ref(), given).await?),
        None => None,
    };
    // This list is of one project, also where the context is given in full.
    let project = match &place {
        Some(place) => place.project(api).await?,
        None => scope.project.as_ref().map(ToString::to_string).unwrap_or_default(),
    };
    let limit = usize::try_from(what.limit).unwrap_or(usize::MAX);
    let query = [
        ("project", project.as_str()),
        ("keptnContext", place.as_ref().map_or("", |place| place.context.as_str())),
        ("stage", scope.stage.as_ref().map_or("", StageName::as_str)),
        ("service", scope.service.as_ref().map_or("", ServiceName::as_str)),
        ("name", what.name.as_ref().map_or("", SequenceName::as_str)),
        ("status", what.state.as_deref().unwrap_or_default()),
    ];
    let List { items: mut executions, more, extra } =
        pages::read::<ExecutionState>(api, &["sequence-execution"], &query, limit).await?;
    // The API has them in the order of their ids.
    executions.sort_by(|one, other| (&one.accepted_at, &one.id).cmp(&(&other.accepted_at, &other.id)));
    if more {
        note(&format!("there are more than these {limit}: --limit shows more of them"));
    }
    let format = what.output.format;
    if format.is_data() {
        return say_data(&json!({"items": executions}), format);
    }
    let empty = "there is no such execution";
    if !format.is_wide() {
        return print(table(&executions, Timestamp::parse(&extra.now)), format, empty);
    }
    let alone = |execution: ExecutionState| SequenceState {
        service: execution.service.clone(),
        shkeptncontext: execution.context.clone(),
        executions: vec![execution],
        ..SequenceState::default()
    };
    let alone: Vec<SequenceState> = executions.into_iter().map(alone).collect();
    print(timeline::table(&alone), format, empty)
}

/// What fits on a line: how each of them stands, in the words of deliveries.
fn table(executions: &[ExecutionState], now: Option<Timestamp>) -> Table {
    let look = look();
    let contexts: Vec<&str> = executions.iter().map(|execution| execution.context.as_str()).collect();
    let mut table = Table::new(&["SERVICE", "STAGE", "SEQUENCE", "VERSION", "CONTEXT", "AGE", "STATE"]);
    for (execution, id) in executions.iter().zip(short_ids(&contexts)) {
        let (mark, what, time) = delivery::about(execution, now);
        table.row(vec![
            execution.service.clone(),
            execution.stage.clone(),
            execution.sequence.clone(),
            execution.image.as_deref().map(version).unwrap_or_default(),
            id,
            age(&execution.accepted_at, now),
            [mark.sign(look.ascii), &what, &time].join(" ").trim().to_owned(),
        ]);
    }
    table
}
