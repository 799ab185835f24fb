//! Projects, their stages and services, in Keptn's shapes.

use crate::Api;
use crate::fence::allowed::{Allowed, scope};
use crate::fence::input::{Params, Path};
use crate::fence::pages::{limit, place};
use crate::fence::problem::{Answer, Refused};
use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use keelway_domain::names::{ProjectName, ServiceName};
use keelway_domain::time::Timestamp;
use keelway_engine::projects::Project;
use keelway_engine::refusal::Refusal;
use keelway_wire::http::{ProjectPage, ProjectService, ProjectStage, ProjectState, ServicePage, StagePage};
use serde::Deserialize;

/// Services shown inside projects and stages; all of them are listed page by page.
const SHOWN: u32 = 100;

/// Paging. Other parameters that Keptn's clients send are accepted and ignored.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Paging {
    page_size: Option<String>,
    next_page_key: Option<String>,
    #[serde(rename = "disableUpstreamSync")]
    _disable_upstream_sync: Option<String>,
}

impl Paging {
    fn size(&self) -> Answer<u32> {
        limit(self.page_size.as_ref())
    }
    /// The last name of the previous page. Other texts are refused.
    fn after<N, E>(&self, name: impl Fn(String) -> Result<N, E>) -> Answer<Option<&str>> {
        place(self.next_page_key.as_ref(), |key| name(key.to_owned()).is_ok().then_some(key))
    }
}

/// Lists the projects by name, with stages and services.
#[utoipa::path(
    get,
    path = "/v1/project",
    tag = "projects",
    params(Paging),
    responses((status = 200, body = ProjectPage))
)]
pub(crate) async fn list(
    caller: Allowed<scope::Anywhere<scope::Read>>,
    api: Api,

    Params(paging): Params<Paging>,
) -> Answer<Json<ProjectPage>> {
    let (after, size) = (paging.after(ProjectName::new)?, paging.size()?);
    let (found, more) = match caller.seen() {
        None => api.engine().projects().list(after, size).await?,
        // The list is not a filtered page of all projects, because its key could name a project of others.
        Some(mut names) => {
            names.retain(|name| after.is_none_or(|after| name.as_str() > after));
            let mut found = api.engine().projects().named(&names).await?;
            let more = found.len() > size as usize;
            found.truncate(size as usize);
            (found, more)
        }
    };
    let next = found.last().filter(|_| more).map(|last| last.settings.name.to_string());
    let mut projects = vec![];
    for project in &found {
        projects.push(state(&api, project, None).await?);
    }
    Ok(Json(ProjectPage::new(projects, size, next)))
}

/// A project, with the text of its shipyard.
#[utoipa::path(
    get,
    path = "/v1/project/{project}",
    tag = "projects",
    params(Paging),
    responses((status = 200, body = ProjectState))
)]
pub(crate) async fn one(
    _: Allowed<scope::Read>,
    api: Api,
    Path(name): Path<String>,
    Params(paging): Params<Paging>,
) -> Answer<Json<ProjectState>> {
    paging.size()?;
    let project = api.engine().projects().find(&name).await?;
    let source = source(&api, &project).await?;
    Ok(Json(state(&api, &project, source).await?))
}

/// The text of the shipyard in force.
#[utoipa::path(
    get,
    path = "/v1/project/{project}/shipyard",
    tag = "definitions",
    params(Paging),
    responses((status = 200, body = String, content_type = "text/yaml", headers(("ETag" = String))))
)]
pub(crate) async fn shipyard(
    _: Allowed<scope::Read>,
    api: Api,
    Path(name): Path<String>,
    Params(paging): Params<Paging>,
) -> Answer<Response> {
    paging.size()?;
    let project = api.engine().projects().find(&name).await?;
    match source(&api, &project).await? {
        Some(text) => {
            let revision = project.revision.unwrap_or_default();
            Ok(([(header::CONTENT_TYPE, "text/yaml; charset=utf-8".to_owned()), (header::ETAG, format!("\"{revision}\""))], text)
                .into_response())
        }
        None => {
            let detail = format!("project {} has no shipyard yet: apply one", project.settings.name);
            Err(Refused::new(StatusCode::NOT_FOUND, "no shipyard", detail))
        }
    }
}

/// Lists the stages in the shipyard's order, with services.
#[utoipa::path(
    get,
    path = "/v1/project/{project}/stage",
    tag = "projects",
    params(Paging),
    responses((status = 200, body = StagePage))
)]
pub(crate) async fn stages(
    _: Allowed<scope::Read>,
    api: Api,
    Path(name): Path<String>,
    Params(paging): Params<Paging>,
) -> Answer<Json<StagePage>> {
    paging.size()?;
    let project = api.engine().projects().find(&name).await?;
    let stages = state(&api, &project, None).await?.stages;
    let all = stages.len() as u64;
    Ok(Json(StagePage::new(stages, all, None)))
}

/// A stage, with services.
#[utoipa::path(
    get,
    path = "/v1/project/{project}/stage/{stage}",
    tag = "projects",
    params(Paging),
    responses((status = 200, body = ProjectStage))
)]
pub(crate) async fn stage(
    _: Allowed<scope::Read>,
    api: Api,
    Path((name, stage)): Path<(String, String)>,
    Params(paging): Params<Paging>,
) -> Answer<Json<ProjectStage>> {
    paging.size()?;
    let project = api.engine().projects().find(&name).await?;
    check_stage(&project, &stage)?;
    Ok(Json(ProjectStage { stage_name: stage, services: shown_services(&api, &project).await? }))
}

/// Lists the services by name.
#[utoipa::path(
    get,
    path = "/v1/project/{project}/service",
    tag = "projects",
    params(Paging),
    responses((status = 200, body = ServicePage))
)]
pub(crate) async fn services(
    _: Allowed<scope::Read>,
    api: Api,
    Path(name): Path<String>,
    Params(paging): Params<Paging>,
) -> Answer<Json<ServicePage>> {
    let project = api.engine().projects().find(&name).await?;
    service_page(&api, &project, &paging).await
}

/// Lists the services by name: those of a project are in all of its stages.
#[utoipa::path(
    get,
    path = "/v1/project/{project}/stage/{stage}/service",
    tag = "projects",
    params(Paging),
    responses((status = 200, body = ServicePage))
)]
pub(crate) async fn stage_services(
    _: Allowed<scope::Read>,
    api: Api,
    Path((name, stage)): Path<(String, String)>,
    Params(paging): Params<Paging>,
) -> Answer<Json<ServicePage>> {
    let project = api.engine().projects().find(&name).await?;
    check_stage(&project, &stage)?;
    service_page(&api, &project, &paging).await
}

/// A service.
#[utoipa::path(
    get,
    path = "/v1/project/{project}/stage/{stage}/service/{service}",
    tag = "projects",
    params(Paging),
    responses((status = 200, body = ProjectService))
)]
pub(crate) async fn service(
    _: Allowed<scope::Read>,
    api: Api,
    Path((name, stage, service)): Path<(String, String, String)>,
    Params(paging): Params<Paging>,
) -> Answer<Json<ProjectService>> {
    paging.size()?;
    let project = api.engine().projects().find(&name).await?;
    check_stage(&project, &stage)?;
    // A text that breaks the rule for names is unknown, and may be longer than a key of the table.
    let found = match ServiceName::new(service.as_str()) {
        Ok(_) => api.engine().projects().service(&project.settings.name, &service).await?,
        Err(_) => None,
    };
    match found {
        Some(at) => Ok(Json(info(service, at))),
        None => {
            let (known, _) = api.engine().projects().services(&project.settings.name, None, SHOWN).await?;
            Err(Refusal::unknown("service", &service, known.iter().map(|(name, _)| name.as_str())).into())
        }
    }
}

fn check_stage(project: &Project, stage: &str) -> Answer<()> {
    match project.shipyard.stage(stage) {
        Some(_) => Ok(()),
        None => Err(Refusal::unknown("stage", stage, project.shipyard.stages.iter().map(|stage| stage.name.as_str())).into()),
    }
}

async fn service_page(api: &Api, project: &Project, paging: &Paging) -> Answer<Json<ServicePage>> {
    let (found, more) =
        api.engine().projects().services(&project.settings.name, paging.after(ServiceName::new)?, paging.size()?).await?;
    let next = found.last().filter(|_| more).map(|(last, _)| last.clone());
    Ok(Json(ServicePage::new(found.into_iter().map(|(name, at)| info(name, at)).collect(), paging.size()?, next)))
}

async fn shown_services(api: &Api, project: &Project) -> Answer<Vec<ProjectService>> {
    let (found, _) = api.engine().projects().services(&project.settings.name, None, SHOWN).await?;
    Ok(found.into_iter().map(|(name, at)| info(name, at)).collect())
}

async fn source(api: &Api, project: &Project) -> Answer<Option<String>> {
    let Some(revision) = &project.revision else { return Ok(None) };
    let found = api.engine().projects().revision(&project.settings.name, revision).await?;
    Ok(found.map(|revision| revision.source))
}

async fn state(api: &Api, project: &Project, shipyard: Option<String>) -> Answer<ProjectState> {
    let services = shown_services(api, project).await?;
    let stage = |name: &str| ProjectStage { stage_name: name.to_owned(), services: services.clone() };
    Ok(ProjectState {
        project_name: project.settings.name.to_string(),
        creation_date: nanoseconds(project.created),
        shipyard_version: project.revision.clone().unwrap_or_default(),
        description: project.settings.description.clone().unwrap_or_default(),
        stages: project.shipyard.stages.iter().map(|declared| stage(declared.name.as_str())).collect(),
        shipyard,
        consents: project.border.consents().0.iter().map(Into::into).collect(),
        policy: project.border.policy().map(Into::into),
    })
}

fn info(name: String, at: Timestamp) -> ProjectService {
    ProjectService { service_name: name, creation_date: nanoseconds(at) }
}

/// A time as Keptn writes when something was created.
fn nanoseconds(at: Timestamp) -> String {
    format!("{}000000", at.0)
}
