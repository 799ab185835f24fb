//! Schedules: the list, single ones, their deletion.

use crate::Api;
use crate::fence::allowed::{Allowed, act, scope};
use crate::fence::input::{Params, Path};
use crate::fence::manifests::text;
use crate::fence::names::is_name;
use crate::fence::pages::{Paging, after, limit};
use crate::fence::problem::Answer;
use axum::Json;
use axum::http::StatusCode;
use axum::response::Response;
use keelway_domain::names::{ProjectName, ServiceName};
use keelway_domain::schedules::{Concurrency, Run, Schedule, When};
use keelway_domain::time::Timestamp;
use keelway_engine::ports::Ports;
use keelway_engine::sequences::definitions::Refusal;
use keelway_wire::http::Clock;
use keelway_wire::http::schedules::{ScheduleLast, SchedulePage, ScheduleRun, ScheduleState};

/// Names that are suggested for one that is unknown.
const KNOWN: u32 = 100;

fn shown(x: Schedule) -> ScheduleState {
    let time = |at: Timestamp| at.rfc3339();
    let (cron, at) = match &x.spec.when {
        When::Cron(cron) => (Some(cron.clone()), None),
        When::At(at) => (None, Some(time(*at))),
    };
    let run = |(service, run): (&ServiceName, &Run)| ScheduleRun {
        service: service.to_string(),
        at: time(run.at),
        context: run.context.to_string(),
    };
    let last = x.last.as_ref().map(|last| ScheduleLast {
        at: time(last.at),
        fired_at: time(last.fired),
        skipped: last.skipped.iter().map(ToString::to_string).collect(),
        late: last.late,
    });
    ScheduleState {
        project: x.project.to_string(),
        name: x.name.clone(),
        stage: x.spec.stage.to_string(),
        sequence: x.spec.sequence.to_string(),
        services: x.spec.services.iter().map(ToString::to_string).collect(),
        cron,
        at,
        zone: x.spec.zone.clone(),
        start: x.spec.start.map(time),
        end: x.spec.end.map(time),
        suspended: x.spec.suspended,
        concurrency: match x.spec.concurrency {
            Concurrency::Queue => "queue".into(),
            Concurrency::Skip => "skip".into(),
        },
        planned: x.planned,
        next: x.next.map(time),
        last,
        runs: x.runs.iter().map(run).collect(),
        applied_at: time(x.applied),
    }
}

async fn found<P: Ports>(api: &Api<P>, project: &str, name: &str) -> Answer<Schedule> {
    let known = ProjectName::new(project).ok();
    if let Some(project) = known.as_ref().filter(|_| is_name(name))
        && let Some(schedule) = api.engine().schedule(project, name).await?
    {
        return Ok(schedule);
    }
    let project = api.engine().find_project(project).await?.settings.name;
    let page = api.engine().schedules(&project, None, KNOWN).await?;
    let names = page.schedules.iter().map(|schedule| schedule.name.as_str());
    Err(Refusal::unknown("schedule", &format!("{project}/{name}"), names).into())
}

/// Lists the schedules of a project.
#[utoipa::path(
    get,
    path = "/v1/schedules/{project}",
    tag = "sequences",
    params(Paging),
    responses((status = 200, body = SchedulePage), (status = 404))
)]
pub async fn list<P: Ports + 'static>(
    _: Allowed<scope::Read>,
    api: Api<P>,
    Path(project): Path<String>,
    Params(paging): Params<Paging>,
) -> Answer<Json<SchedulePage>> {
    let limit = limit(paging.page_size.as_ref())?;
    let after = after(paging.next_page_key.as_ref())?;
    let project = api.engine().find_project(&project).await?.settings.name;
    let page = api.engine().schedules(&project, after, limit).await?;
    let schedules = page.schedules.into_iter().map(shown).collect();
    Ok(Json(SchedulePage::new(schedules, limit, page.next).with(Clock::at(api.engine().now()))))
}

/// A schedule, when it triggers next, and what it triggered.
#[utoipa::path(
    get,
    path = "/v1/schedules/{project}/{name}",
    tag = "sequences",
    responses((status = 200, body = ScheduleState))
)]
pub async fn one<P: Ports + 'static>(
    _: Allowed<scope::Read>,
    api: Api<P>,
    Path((project, name)): Path<(String, String)>,
) -> Answer<Json<ScheduleState>> {
    Ok(Json(shown(found(&api, &project, &name).await?)))
}

/// The manifest as it was applied.
#[utoipa::path(
    get,
    path = "/v1/schedules/{project}/{name}/manifest",
    tag = "sequences",
    responses((status = 200, body = String, content_type = "text/yaml", headers(("ETag" = String))))
)]
pub async fn manifest<P: Ports + 'static>(
    _: Allowed<scope::Read>,
    api: Api<P>,
    Path((project, name)): Path<(String, String)>,
) -> Answer<Response> {
    Ok(text(found(&api, &project, &name).await?.source))
}

/// Deletes a schedule. What it triggered goes on.
#[utoipa::path(
    delete,
    path = "/v1/schedules/{project}/{name}",
    tag = "sequences",
    responses((status = 204))
)]
pub async fn delete<P: Ports + 'static>(
    caller: Allowed<scope::Administer, act::Delete>,
    api: Api<P>,
    Path((project, name)): Path<(String, String)>,
) -> Answer<StatusCode> {
    let known = found(&api, &project, &name).await?;
    api.engine().delete_schedule(&known.project, &known.name).await?;
    caller.tells(known.project.as_str(), format!("Schedule {}", known.name));
    Ok(StatusCode::NO_CONTENT)
}
