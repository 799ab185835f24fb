//! `pipeline list`: one line per pipeline.

use super::read;
use crate::address::Address;
use crate::api::Api;
use crate::args::Format;
use crate::board;
use crate::commands::find;
use crate::delivery::Line;
use crate::error::CliError;
use crate::kinds::pipeline::wide;
use crate::output;
use crate::output::{note, say, say_data};
use crate::pages;
use crate::pipeline;
use crate::table::print;
use crate::terminal::look;
use keelway_domain::time::Timestamp;
use keelway_wire::http::promotions::{PipelineEntry, PipelineState};
use serde_json::json;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// So many states are read at the same time.
const AT_ONCE: usize = 8;

/// The pipelines of a namespace (`None`: of all) by name, at most `limit`, and whether there are more.
///
/// # Errors
/// As the API answers.
pub async fn entries(api: &Api, namespace: Option<&str>, limit: usize) -> Result<(Vec<PipelineEntry>, bool), CliError> {
    let list = pages::read(api, &["pipelines"], &[("namespace", namespace.unwrap_or_default())], limit).await?;
    Ok((list.items, list.more))
}

/// The states of pipelines, in their order. One that has been deleted meanwhile is left out.
///
/// # Errors
/// As the API answers.
pub async fn states(api: &Api, entries: &[PipelineEntry]) -> Result<Vec<(PipelineState, Option<Timestamp>)>, CliError> {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut reads = JoinSet::new();
    for (place, entry) in entries.iter().enumerate() {
        let of = Address { namespace: entry.namespace.clone(), name: entry.name.clone() };
        let (api, places) = (api.clone(), Arc::clone(&places));
        reads.spawn(async move {
            // It is never closed.
            let _place = places.acquire().await.ok();
            (place, read(&api, &of).await)
        });
    }
    let mut states = vec![];
    while let Some(read) = reads.join_next().await {
        let (place, read) = read.map_err(|error| CliError::Failed(format!("a request ended early: {error}; try again")))?;
        match read {
            Ok(state) => states.push((place, state)),
            Err(CliError::Api(error)) if error.status() == Some(404) => {}
            Err(error) => return Err(error),
        }
    }
    states.sort_by_key(|(place, _)| *place);
    Ok(states.into_iter().map(|(_, state)| state).collect())
}

/// Prints them; without a namespace those of all that the token shows.
///
/// # Errors
/// As the API answers.
pub async fn list(api: &Api, namespace: Option<&str>, limit: u32, format: Format) -> Result<(), CliError> {
    let (entries, more) = entries(api, namespace, usize::try_from(limit).unwrap_or(usize::MAX)).await?;
    if entries.is_empty() {
        find::mistyped(api, namespace).await?;
    }
    if format.is_data() {
        return say_data(&json!({"items": entries}), format);
    }
    let more_hint = format!("there are more: give a --limit above {limit}");
    if format.is_wide() || entries.is_empty() {
        let empty = match namespace {
            Some(namespace) => {
                format!("project {namespace} has no pipeline; apply one: keelway apply -f FILE; of all projects: -A")
            }
            None => "there is no pipeline, or none that this token shows; apply one: keelway apply -f FILE".to_owned(),
        };
        print(wide(&entries), format, &empty)?;
    } else {
        let states = states(api, &entries).await?;
        let lines: Vec<Line> = states
            .iter()
            .map(|(state, now)| {
                let line = pipeline::line(state, *now);
                // Pipelines of several projects may have the same name.
                if namespace.is_none() { Line { service: pipeline::address(state), ..line } } else { line }
            })
            .collect();
        board::rows(&lines, &look()).iter().try_for_each(|row| say(row))?;
        output::hint(&board::hints(&lines.into_iter().flat_map(|line| line.hints).collect::<Vec<_>>(), &look()));
    }
    if more {
        note(&more_hint);
    }
    Ok(())
}
