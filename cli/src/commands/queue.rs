//! `get queue`: what waits for its turn, in which order, and behind what.

use super::environments::the_project;
use crate::api::Api;
use crate::args::{Format, Scope};
use crate::delivery;
use crate::error::CliError;
use crate::output::say_data;
use crate::table::Table;
use crate::table::print;
use crate::words::{SHORT, age, version};
use keelway_domain::names::{ServiceName, StageName};
use keelway_domain::time::Timestamp;
use keelway_wire::http::{ExecutionState, QueueList};

/// Prints the queues of a project.
///
/// # Errors
/// As the API answers.
pub async fn queue(api: &Api, scope: &Scope, format: Format) -> Result<(), CliError> {
    let project = the_project(api, scope).await?;
    let (stage, service) =
        (scope.stage.as_ref().map_or("", StageName::as_str), scope.service.as_ref().map_or("", ServiceName::as_str));
    let list: QueueList = api.get(&["project", project.as_str(), "queue"], &[("stage", stage), ("service", service)]).await?;
    if format.is_data() {
        return say_data(&serde_json::json!({"items": list.items, "now": list.now}), format);
    }
    let now = Timestamp::parse(&list.now);
    let id = |x: &ExecutionState| x.context.chars().take(if format.is_wide() { usize::MAX } else { SHORT }).collect::<String>();
    let mut table = Table::new(&["SERVICE", "STAGE", "#", "CONTEXT", "SEQUENCE", "VERSION", "WAITS", "BEHIND"]);
    for queue in &list.items {
        for x in &queue.waiting {
            let position = x.position.unwrap_or(1);
            let frozen = x.waits.as_ref().filter(|waits| waits.reason == "window").map(|waits| delivery::frozen(waits, now));
            let behind = frozen.unwrap_or_else(|| match (&queue.holder, position) {
                (Some(holder), 1) => {
                    let (_, what, time) = delivery::about(holder, now);
                    [id(holder), holder.sequence.clone(), what, time].join(" ").trim().to_owned()
                }
                (None, 1) => "nothing: it is about to start".to_owned(),
                (_, n) => format!("#{}", n - 1),
            });
            table.row(vec![
                queue.service.clone(),
                queue.stage.clone(),
                position.to_string(),
                id(x),
                x.sequence.clone(),
                x.image.as_deref().map(version).unwrap_or_default(),
                x.waits.as_ref().map(|waits| age(&waits.since, now)).unwrap_or_default(),
                behind,
            ]);
        }
    }
    print(table, format, "nothing waits for its turn")
}
