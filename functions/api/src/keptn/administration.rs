//! Projects and services as Keptn's clients create, change and delete them; and secrets, which are not kept.

use crate::Api;
use crate::apply;
use crate::fence::allowed::{Allowed, act, scope};
use crate::fence::bodies::Empty;
use crate::fence::caller::Caller;
use crate::fence::input::{Anything, Json, Params, Path};
use crate::fence::problem::{Answer, Refused};
use crate::keptn::resources::{decoded, text_of};
use crate::kinds;
use axum::http::StatusCode;
use keelway_domain::access::Need;
use keelway_domain::names::{ProjectName, TokenName};
use keelway_engine::projects::ProjectSettings;
use keelway_engine::refusal::Refusal;
use keelway_wire::http::keptn::{Message, NewProject, NewService};

/// Creates a project with its shipyard. Credentials of an upstream repository are not kept: there is none.
#[utoipa::path(
    post,
    path = "/v1/project",
    tag = "projects",
    request_body(content = NewProject, example = json!({"name": "blog", "shipyard": "YXBpVmVyc2lvbjogc3BlYy5rZXB0bi5zaC8wLjIuMwpraW5kOiBTaGlweWFyZAptZXRhZGF0YToKICBuYW1lOiBzaGlweWFyZC1ibG9nCnNwZWM6CiAgc3RhZ2VzOgogIC0gbmFtZTogZGV2CiAgICBzZXF1ZW5jZXM6CiAgICAtIG5hbWU6IGRlbGl2ZXJ5CiAgICAgIHRhc2tzOgogICAgICAtIG5hbWU6IGRlcGxveW1lbnQK"})),
    responses((status = 201, body = crate::fence::bodies::Empty), (status = 409))
)]
pub(crate) async fn create(
    caller: Allowed<scope::Anywhere<scope::Administer>, act::Apply>,
    api: Api,

    Json(sent): Json<NewProject>,
) -> Answer<(StatusCode, axum::Json<Empty>)> {
    let name = ProjectName::new(sent.name).map_err(|error| Refused::field("name", error))?;
    permitted(&caller, name.as_str(), "created")?;
    match api.engine().projects().get(&name).await {
        Ok(_) => {
            let detail = format!("project {name} exists already: update its shipyard, or delete it first");
            return Err(Refused::new(StatusCode::CONFLICT, "conflict", detail));
        }
        Err(Refusal::Unknown { .. }) => {}
        Err(refusal) => return Err(refusal.into()),
    }
    let Some(shipyard) = sent.shipyard.filter(|text| !text.is_empty()) else {
        return Err(Refused::field("shipyard", "is missing: send the shipyard in base64"));
    };
    apply::one_shipyard(&api, &caller, ProjectSettings::plain(name), &manifest(&shipyard)?).await?;
    Ok((StatusCode::CREATED, axum::Json(Empty {})))
}

/// Puts another shipyard in force for a project, if there is one in the body.
#[utoipa::path(
    put,
    path = "/v1/project",
    tag = "projects",
    request_body(content = NewProject, example = json!({"name": "blog", "shipyard": "YXBpVmVyc2lvbjogc3BlYy5rZXB0bi5zaC8wLjIuMwpraW5kOiBTaGlweWFyZAptZXRhZGF0YToKICBuYW1lOiBzaGlweWFyZC1ibG9nCnNwZWM6CiAgc3RhZ2VzOgogIC0gbmFtZTogZGV2CiAgICBzZXF1ZW5jZXM6CiAgICAtIG5hbWU6IGRlbGl2ZXJ5CiAgICAgIHRhc2tzOgogICAgICAtIG5hbWU6IGRlcGxveW1lbnQK"})),
    responses((status = 200, body = crate::fence::bodies::Empty), (status = 404), (status = 409))
)]
pub(crate) async fn update(
    caller: Allowed<scope::Anywhere<scope::Administer>, act::Apply>,
    api: Api,

    Json(sent): Json<NewProject>,
) -> Answer<axum::Json<Empty>> {
    permitted(&caller, &sent.name, "updated")?;
    let project = api.engine().projects().find(&sent.name).await?;
    match sent.shipyard.filter(|text| !text.is_empty()) {
        Some(shipyard) => {
            apply::one_shipyard(&api, &caller, project.settings, &manifest(&shipyard)?).await?;
        }
        None => caller.does_nothing(),
    }
    Ok(axum::Json(Empty {}))
}

/// The shipyard of a request.
fn manifest(shipyard: &str) -> Answer<String> {
    text_of(decoded("shipyard", shipyard, "send the shipyard")?)
}

/// Checks the permission for this project, which is not in the path.
fn permitted(caller: &Caller, project: &str, what: &str) -> Answer<()> {
    caller.check(Need::Administer, Some(project))?;
    caller.tells(project, format!("{what} project {project}"));
    Ok(())
}

/// Deletes a project, unless something of it is open. Its history stays. One with a policy is deleted by those who may write
/// policies.
#[utoipa::path(
    delete,
    path = "/v1/project/{project}",
    tag = "projects",
    responses((status = 200, body = Message), (status = 409))
)]
pub(crate) async fn delete(
    caller: Allowed<scope::Administer, act::Delete>,
    api: Api,

    Path(name): Path<String>,
) -> Answer<axum::Json<Message>> {
    let found = api.engine().projects().find(&name).await?;
    let project = found.settings.name;
    caller.says(format!("deleted project {project}"));
    // A new project of this name would have no policy.
    if found.border.policy().is_some() {
        apply::permits_policy(&caller, &project)?;
    }
    let inside = kinds::inside(&api, project.as_str()).await?;
    if !inside.is_empty() {
        let inside = inside.join(", ");
        let detail =
            format!("project {project} cannot be deleted: its namespace has {inside}; delete what is in it, then the project");
        return Err(Refused::new(StatusCode::CONFLICT, "conflict", detail));
    }
    api.engine().check_nothing_open(&project, None).await?;
    // Comes first, so that an interrupted deletion can be repeated. The caller's own token loses the project last.
    let own = TokenName::new(&caller.token).ok();
    let tokens = api.access().take_project(&project, own.as_ref()).await?;
    let webhooks = api.webhooks().remove_all(project.as_str()).await?;
    let deleted = api.engine().delete_project(&project).await?;
    api.projects().forget(project.as_str());
    let (services, resources) = (number(deleted.services, "service"), number(deleted.resources, "resource"));
    let (schedules, webhooks) = (number(deleted.schedules, "schedule"), number(webhooks, "webhook subscription"));
    let with = format!("{services}, {resources}, {schedules} and {webhooks}");
    let message = format!(
        "project {project} is deleted, with {with}, and is taken from {}; {}",
        number(tokens.len(), "token"),
        remains(&api)
    );
    Ok(axum::Json(Message { message }))
}

/// Creates a service that can be triggered.
#[utoipa::path(
    post,
    path = "/v1/project/{project}/service",
    tag = "projects",
    request_body(content = NewService, example = json!({"serviceName": "cart"})),
    responses((status = 200, body = crate::fence::bodies::Empty), (status = 409))
)]
pub(crate) async fn create_service(
    caller: Allowed<scope::Administer, act::Apply>,
    api: Api,
    Path(name): Path<String>,
    Json(sent): Json<NewService>,
) -> Answer<axum::Json<Empty>> {
    let project = api.engine().projects().find(&name).await?.settings.name;
    caller.says(format!("created service {} of {project}", sent.service_name));
    api.engine().projects().create_service(&project, &sent.service_name).await?;
    Ok(axum::Json(Empty {}))
}

/// Deletes a service, unless something of it is open. Its history stays.
#[utoipa::path(
    delete,
    path = "/v1/project/{project}/service/{service}",
    tag = "projects",
    responses((status = 200, body = Message), (status = 409))
)]
pub(crate) async fn delete_service(
    caller: Allowed<scope::Administer, act::Delete>,
    api: Api,
    Path((name, service)): Path<(String, String)>,
) -> Answer<axum::Json<Message>> {
    let project = api.engine().projects().find(&name).await?.settings.name;
    caller.says(format!("deleted service {service} of {project}"));
    let deleted = api.engine().delete_service(&project, &service).await?;
    let resources = number(deleted.resources, "resource");
    let message = format!("service {service} of project {project} is deleted, with {resources}; {}", remains(&api));
    Ok(axum::Json(Message { message }))
}

fn number(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn remains(api: &Api) -> String {
    let days = api.engine().limits().retention.0 / (24 * 60 * 60 * 1000);
    format!("the history of its sequences stays until it is {days} days old, and what was deployed keeps running")
}

/// Every request for secrets is refused: they are not kept, and the body is not read.
#[utoipa::path(
    method(get, post, put, delete),
    path = "/v1/secret",
    tag = "projects",
    responses((status = 404))
)]
pub(crate) async fn secrets(_: Allowed<scope::AnyToken>, _: Params<Anything>) -> Refused {
    let detail = "Keelway keeps no secrets, and nothing of this request was stored: give them to the executor that needs them in its environment, or \
                  keep them in AWS Secrets Manager";
    Refused::new(StatusCode::NOT_FOUND, "no secrets", detail)
}
