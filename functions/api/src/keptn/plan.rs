//! A shipyard as data: `GET /v1/project/{project}/shipyard/plan`.

use crate::Api;
use crate::fence::allowed::{Allowed, scope};
use crate::fence::input::Path;
use crate::fence::problem::Answer;
use keelway_domain::shipyard::{Sequence, Stage, Trigger};
use keelway_domain::time::{Span, Timestamp};
use keelway_domain::windows::{Closure, Window, closures};
use keelway_wire::http::{PlannedSequence, PlannedStage, PlannedTrigger, ShipyardPlan, StageClosure};

/// How far closures are looked for.
const AHEAD: Span = Span::minutes(14 * 24 * 60);
/// The most closures of a stage.
const MOST: usize = 100;

/// Stages, sequences, what triggers them, and when stages are closed.
#[utoipa::path(
    get,
    path = "/v1/project/{project}/shipyard/plan",
    tag = "definitions",
    responses((status = 200, body = ShipyardPlan))
)]
pub(crate) async fn plan(_: Allowed<scope::Read>, api: Api, Path(name): Path<String>) -> Answer<axum::Json<ShipyardPlan>> {
    let project = api.engine().projects().find(&name).await?;
    let now = api.engine().now();
    Ok(axum::Json(ShipyardPlan {
        revision: project.revision.clone().unwrap_or_default(),
        stages: project.shipyard.stages.iter().map(|one| stage(one, now)).collect(),
        now: now.rfc3339(),
    }))
}

/// When windows keep something closed, as far as a plan shows it.
pub fn closed(windows: &[Window], now: Timestamp) -> Vec<StageClosure> {
    let closure = |closed: Closure| StageClosure {
        from: closed.from.rfc3339(),
        until: closed.until.map(Timestamp::rfc3339),
        reason: closed.why,
    };
    closures(windows, now, now + AHEAD, MOST).into_iter().map(closure).collect()
}

fn stage(stage: &Stage, now: Timestamp) -> PlannedStage {
    PlannedStage {
        name: stage.name.to_string(),
        sequences: stage.sequences.iter().map(sequence).collect(),
        windows: stage.windows.iter().map(|window| window.words()).collect(),
        closures: closed(&stage.windows, now),
    }
}

fn sequence(sequence: &Sequence) -> PlannedSequence {
    PlannedSequence {
        name: sequence.name.to_string(),
        tasks: sequence.tasks.iter().map(|task| task.name.to_string()).collect(),
        triggered_on: sequence.triggered_on.iter().map(trigger).collect(),
    }
}

fn trigger(trigger: &Trigger) -> PlannedTrigger {
    let selector = trigger.selector.iter().flatten().map(|one| match &one.task {
        Some(task) => format!("{task}.result: {}", one.result.as_str()),
        None => format!("result: {}", one.result.as_str()),
    });
    PlannedTrigger { event: trigger.event.clone(), selector: selector.collect() }
}
