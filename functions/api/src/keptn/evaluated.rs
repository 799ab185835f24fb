//! What evaluations came to, and the source that a project evaluates by.

use crate::Api;
use crate::fence::allowed::{Allowed, act, scope};
use crate::fence::input::{Json, Path};
use crate::fence::problem::{Answer, Refused};
use keelway_domain::evaluation::Period;
use keelway_domain::evaluations::{Asker, Ended, Open, Past, Phase};
use keelway_domain::time::Timestamp;
use keelway_engine::evaluations::{Evaluation, is_name};
use keelway_engine::projects::stage_of;
use keelway_engine::protocol::Handled;
use keelway_engine::refusal::Refusal;
use keelway_wire::http::{Clock, EvaluatedIndicator, EvaluationPage, EvaluationView, SliProvider};
use serde::de::DeserializeOwned;

/// Lists the evaluations of a service in a stage.
#[utoipa::path(
    get,
    path = "/v1/project/{project}/stage/{stage}/service/{service}/evaluation",
    tag = "sequences",
    responses((status = 200, body = EvaluationPage))
)]
pub(crate) async fn list(
    _: Allowed<scope::Read>,
    api: Api,
    Path(place): Path<(String, String, String)>,
) -> Answer<axum::Json<EvaluationPage>> {
    let place = known(&api, place).await?;
    let all: Vec<EvaluationView> = api.evaluations().list(&place).await?.iter().map(|one| view(&place, one)).collect();
    let size = u16::try_from(all.len()).unwrap_or(u16::MAX);
    Ok(axum::Json(EvaluationPage::new(all, size, None).with(Clock::at(api.engine().now()))))
}

/// Shows one of the last evaluations of a service.
#[utoipa::path(
    get,
    path = "/v1/project/{project}/stage/{stage}/service/{service}/evaluation/{id}",
    tag = "sequences",
    responses((status = 200, body = EvaluationView), (status = 404))
)]
pub(crate) async fn one(
    _: Allowed<scope::Read>,
    api: Api,
    Path((project, stage, service, id)): Path<(String, String, String, String)>,
) -> Answer<axum::Json<EvaluationView>> {
    let place = known(&api, (project, stage, service)).await?;
    let all = api.evaluations().list(&place).await?;
    let found = all.iter().map(|one| view(&place, one)).find(|one| one.id == id);
    Ok(axum::Json(found.ok_or_else(|| unknown(&place, &id))?))
}

/// Takes an evaluation out of later comparisons.
#[utoipa::path(
    post,
    path = "/v1/project/{project}/stage/{stage}/service/{service}/evaluation/{id}/invalidate",
    tag = "sequences",
    responses((status = 200, body = EvaluationView), (status = 404))
)]
pub(crate) async fn invalidate(
    caller: Allowed<scope::Trigger, act::Control>,
    api: Api,
    Path((project, stage, service, id)): Path<(String, String, String, String)>,
) -> Answer<axum::Json<EvaluationView>> {
    let place = known(&api, (project, stage, service)).await?;
    let [project, stage, service] = &place;
    caller.tells(project, format!("invalidated evaluation {id} of {service} in {stage}"));
    match api.evaluations().invalidate(&place, &id).await? {
        Handled::Stale => return Err(unknown(&place, &id)),
        Handled::Settled => caller.does_nothing(),
        _ => {}
    }
    let all = api.evaluations().list(&place).await?;
    let found = all.iter().map(|one| view(&place, one)).find(|one| one.id == id);
    Ok(axum::Json(found.ok_or_else(|| unknown(&place, &id))?))
}

/// The source that was chosen for a project.
#[utoipa::path(get, path = "/v1/project/{project}/sli-provider", tag = "definitions", responses((status = 200, body = SliProvider)))]
pub(crate) async fn source(_: Allowed<scope::Read>, api: Api, Path(project): Path<String>) -> Answer<axum::Json<SliProvider>> {
    let project = api.engine().projects().find(&project).await?.settings.name;
    let name = api.evaluations().chosen(project.as_str()).await?.unwrap_or_default();
    Ok(axum::Json(SliProvider { name }))
}

/// Chooses the source that a project evaluates by. The answer names the one that counts: the latest choice.
#[utoipa::path(
    put,
    path = "/v1/project/{project}/sli-provider",
    tag = "definitions",
    request_body(content = SliProvider, example = json!({"name": "prometheus"})),
    responses((status = 200, body = SliProvider))
)]
pub(crate) async fn choose(
    caller: Allowed<scope::Administer, act::Control>,
    api: Api,
    Path(project): Path<String>,
    Json(wanted): Json<SliProvider>,
) -> Answer<axum::Json<SliProvider>> {
    let project = api.engine().projects().find(&project).await?.settings.name;
    if !is_name(&wanted.name) {
        let name: String = wanted.name.chars().take(50).collect();
        return Err(Refused::field("name", format!("{name:?} is not the name of a source: send for example prometheus")));
    }
    caller.tells(project.as_str(), format!("chose {} to evaluate by", wanted.name));
    let name = api.evaluations().choose(project.as_str(), &wanted.name, api.engine().now()).await?;
    Ok(axum::Json(SliProvider { name }))
}

/// The place, if there is such a project, stage and service.
async fn known(api: &Api, (project, stage, service): (String, String, String)) -> Answer<[String; 3]> {
    let project = api.engine().projects().find(&project).await?;
    let name = &project.settings.name;
    let stage = stage_of(&project.shipyard, &stage)?.name.to_string();
    if api.engine().projects().service(name, &service).await?.is_none() {
        let hint = format!("GET /v1/project/{name}/service lists those of project {name}");
        return Err(Refusal::Unknown { kind: "service", name: service.chars().take(50).collect(), hint }.into());
    }
    Ok([name.to_string(), stage, service])
}

fn unknown([_, stage, service]: &[String; 3], id: &str) -> Refused {
    let name = id.chars().take(100).collect();
    let hint = format!("the last twenty evaluations of {service} in stage {stage} are kept; list them");
    Refusal::Unknown { kind: "evaluation", name, hint }.into()
}

fn view(place: &[String; 3], of: &Evaluation) -> EvaluationView {
    let [project, stage, service] = place.clone();
    let shown = EvaluationView { project, stage, service, ..EvaluationView::default() };
    match of {
        Evaluation::Open(open) => under_way(shown, open),
        Evaluation::Ended(past, ended) => over(shown, past, ended.as_deref()),
    }
}

fn under_way(shown: EvaluationView, open: &Open) -> EvaluationView {
    let (state, message) = match &open.phase {
        Phase::Due { why, .. } => ("waiting", why.clone()),
        Phase::Measuring { .. } => ("measuring", String::new()),
        Phase::Asked { started, .. } => {
            let done = if *started { "has begun" } else { "was asked" };
            ("asked", format!("{} {done}", open.provider))
        }
    };
    EvaluationView {
        id: open.id.clone(),
        context: open.context.clone(),
        state: state.into(),
        begun: open.began.rfc3339(),
        due: open.phase.at().rfc3339(),
        provider: open.provider.clone(),
        message,
        ..within(asked_by(shown, open.asker.as_ref()), Some(open.period))
    }
}

fn over(shown: EvaluationView, past: &Past, ended: Option<&Ended>) -> EvaluationView {
    let shown = EvaluationView {
        id: past.id.clone(),
        context: past.context.clone(),
        state: "finished".into(),
        finished: past.at.rfc3339(),
        result: past.result.as_str().into(),
        evaluated: past.evaluated,
        invalidated: past.invalidated,
        ..shown
    };
    let Some(ended) = ended else { return shown };
    let text = |name: &str| ended.finished.get(name).and_then(|value| value.as_str()).unwrap_or_default().to_owned();
    let shown = asked_by(shown, ended.asker.as_ref());
    EvaluationView {
        begun: ended.began.rfc3339(),
        provider: ended.provider.clone(),
        status: text("status"),
        message: text("message"),
        score: read(ended, "score"),
        notes: ended.notes.clone(),
        indicators: read::<Option<Vec<EvaluatedIndicator>>>(ended, "indicatorResults").flatten(),
        compared_events: read(ended, "comparedEvents").unwrap_or_default(),
        ..within(shown, ended.period)
    }
}

/// With the pipeline that has asked for it, if one has.
fn asked_by(shown: EvaluationView, asker: Option<&Asker>) -> EvaluationView {
    EvaluationView {
        pipeline: asker.map(|asker| asker.pipeline.to_string()),
        environment: asker.map(|asker| asker.environment.clone()),
        revision: asker.map(|asker| asker.revision.clone()),
        ..shown
    }
}

fn within(shown: EvaluationView, period: Option<Period>) -> EvaluationView {
    let time = |of: fn(&Period) -> Timestamp| period.as_ref().map(of).map(Timestamp::rfc3339).unwrap_or_default();
    EvaluationView { start: time(|period| period.start), end: time(|period| period.end), ..shown }
}

/// A member of `evaluation`.
fn read<T: DeserializeOwned>(ended: &Ended, member: &str) -> Option<T> {
    serde_json::from_value(ended.finished.get("evaluation")?.get(member)?.clone()).ok()
}
