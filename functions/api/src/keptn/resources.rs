//! Resources in Keptn's shapes: the files of a project, its stages and their services.

use crate::Api;
use crate::apply;
use crate::fence::allowed::{Allowed, act, scope};
use crate::fence::caller::Caller;
use crate::fence::input::{Argument, Json, Params, Path, given, page_size};
use crate::fence::pages::place;
use crate::fence::problem::{Answer, Refused};
use crate::fence::route::Route;
use crate::fence::route::route;
use crate::keptn::accept::TOLD;
use axum::extract::{FromRequestParts, MatchedPath, OriginalUri};
use axum::http::StatusCode;
use axum::http::request::Parts;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use keelway_engine::refusal::Refusal;
use keelway_engine::resources::{Forms, Scope, check_files, uri};
use keelway_engine::sequences::remediation::is_remediation;
use keelway_wire::http::keptn::{Committed, Resource, ResourceContent, ResourcePage, Resources, Version};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use std::collections::HashMap;

/// The names in the path: a project, and optionally a stage and a service.
type Names = HashMap<String, String>;

/// The URI at the end of the path, with `/` as such or encoded. Keptn's clients write a space as `+`.
pub struct Uri(String);

impl Argument for Uri {}

impl<S: Send + Sync> FromRequestParts<S> for Uri {
    type Rejection = Refused;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        let whole = parts.extensions.get::<OriginalUri>().map_or_else(|| parts.uri.path(), |uri| uri.path());
        let before = parts.extensions.get::<MatchedPath>().map_or(0, |path| path.as_str().matches('/').count());
        let text = whole.splitn(before + 1, '/').last().unwrap_or_default().replace('+', " ");
        match percent_decode_str(&text).decode_utf8() {
            Ok(uri) => Ok(Self(uri.into_owned())),
            Err(_) => Err(Refused::field("resourceURI", "is not UTF-8 once it is percent-decoded: encode it as UTF-8")),
        }
    }
}

/// Which version is asked for. Other parameters that Keptn's clients send are accepted and ignored.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Wanted {
    #[serde(rename = "gitCommitID")]
    commit: Option<String>,
    page_size: Option<String>,
    next_page_key: Option<String>,
    #[serde(rename = "disableUpstreamSync")]
    _disable_upstream_sync: Option<String>,
}

/// The alias for Keptn's clients. Keptn's command line writes `//resource` for the files of a project.
const ALSO: [&str; 3] = [
    "/v1/project/{project}//resource",
    "/v1/project/{project}/stage/{stage}/resource",
    "/v1/project/{project}/stage/{stage}/service/{service}/resource",
];

/// The routes of files: of a project, of a stage, and of a service there.
pub fn routes() -> Vec<Route> {
    let of_project = [route!(list), route!(create), route!(replace), route!(one), route!(replace_one), route!(delete)].into_iter();
    let everywhere = |route: Route| {
        let end = if route.path().ends_with("/{*uri}") { "/{*uri}" } else { "" };
        ALSO.iter().fold(route, |route, path| route.also(format!("{path}{end}")))
    };
    of_project.map(everywhere).collect()
}

async fn scope(api: &Api, names: &Names) -> Answer<Scope> {
    let project = api.engine().projects().find(names.get("project").map_or("", String::as_str)).await?.settings.name;
    Ok(match (names.get("stage"), names.get("service")) {
        (Some(stage), Some(service)) => Scope::service(project, stage, service)?,
        (Some(stage), None) => Scope::stage(project, stage)?,
        _ => Scope::project(project),
    })
}

/// Lists the files by URI, without their contents.
#[utoipa::path(
    get,
    path = "/v1/project/{project}/resource",
    tag = "resources",
    params(Wanted),
    responses((status = 200, body = ResourcePage))
)]
pub(crate) async fn list(
    _: Allowed<(scope::Read, scope::Execute)>,
    api: Api,
    Path(names): Path<Names>,
    Params(wanted): Params<Wanted>,
) -> Answer<axum::Json<ResourcePage>> {
    let scope = scope(&api, &names).await?;
    let size = page_size(wanted.page_size.as_ref())?;
    // Keys begin with `/`, so that no key is "0", whatever the name of a resource.
    let after = place(wanted.next_page_key.as_ref(), |key| uri(key.strip_prefix('/')?).ok())?;
    let (found, more) = api.engine().resources().list(&scope, after.as_deref(), size.into()).await?;
    let next = found.last().filter(|_| more).map(|last| format!("/{}", last.uri));
    let resources = found
        .into_iter()
        .map(|found| Resource {
            resource_uri: found.uri,
            resource_content: None,
            metadata: Some(Version { version: found.version }),
        })
        .collect();
    Ok(axum::Json(ResourcePage::new(resources, size, next)))
}

/// A file, as it is now or as it was at a commit.
#[utoipa::path(
    get,
    path = "/v1/project/{project}/resource/{*uri}",
    tag = "resources",
    params(Wanted),
    responses((status = 200, body = Resource))
)]
pub(crate) async fn one(
    _: Allowed<(scope::Read, scope::Execute)>,
    api: Api,
    Path(names): Path<Names>,
    Uri(uri): Uri,
    Params(wanted): Params<Wanted>,
) -> Answer<axum::Json<Resource>> {
    let scope = scope(&api, &names).await?;
    // Keptn's clients quote an absent commit.
    let at = given(wanted.commit.as_ref()).filter(|commit| *commit != "\"\"");
    match api.engine().resources().get(&scope, &uri, at).await? {
        Some(found) => Ok(axum::Json(Resource {
            resource_uri: found.uri,
            resource_content: Some(STANDARD.encode(found.content)),
            metadata: Some(Version { version: found.version }),
        })),
        None => {
            let (known, _) = api.engine().resources().list(&scope, None, 100).await?;
            Err(Refusal::unknown("resource", &uri, known.iter().map(|resource| resource.uri.as_str())).into())
        }
    }
}

/// Writes up to 30 files, all of them or none.
#[utoipa::path(
    post,
    path = "/v1/project/{project}/resource",
    tag = "resources",
    request_body(content = Resources, example = json!({"resources": [{"resourceURI": "slo.yaml", "resourceContent": "c3BlY192ZXJzaW9uOiAxCg=="}]})),
    responses((status = 201, body = Committed), (status = 409))
)]
pub(crate) async fn create(
    caller: Allowed<scope::Administer, act::Apply>,
    api: Api,
    Path(names): Path<Names>,

    Json(sent): Json<Resources>,
) -> Answer<(StatusCode, axum::Json<Committed>)> {
    let scope = scope(&api, &names).await?;
    Ok((StatusCode::CREATED, write(&api, &caller, &scope, sent.resources).await?))
}

/// Writes up to 30 files, all of them or none.
#[utoipa::path(
    put,
    path = "/v1/project/{project}/resource",
    tag = "resources",
    request_body(content = Resources, example = json!({"resources": [{"resourceURI": "slo.yaml", "resourceContent": "c3BlY192ZXJzaW9uOiAxCg=="}]})),
    responses((status = 200, body = Committed), (status = 409))
)]
pub(crate) async fn replace(
    caller: Allowed<scope::Administer, act::Apply>,
    api: Api,
    Path(names): Path<Names>,

    Json(sent): Json<Resources>,
) -> Answer<axum::Json<Committed>> {
    let scope = scope(&api, &names).await?;
    write(&api, &caller, &scope, sent.resources).await
}

/// Writes a file.
#[utoipa::path(
    put,
    path = "/v1/project/{project}/resource/{*uri}",
    tag = "resources",
    request_body(content = ResourceContent, example = json!({"resourceContent": "c3BlY192ZXJzaW9uOiAxCg=="})),
    responses((status = 200, body = Committed), (status = 409))
)]
pub(crate) async fn replace_one(
    caller: Allowed<scope::Administer, act::Apply>,
    api: Api,
    Path(names): Path<Names>,
    Uri(uri): Uri,

    Json(sent): Json<ResourceContent>,
) -> Answer<axum::Json<Committed>> {
    let scope = scope(&api, &names).await?;
    let resource = Resource { resource_uri: uri, resource_content: Some(sent.resource_content), metadata: None };
    write(&api, &caller, &scope, vec![resource]).await
}

/// Deletes a file.
#[utoipa::path(
    delete,
    path = "/v1/project/{project}/resource/{*uri}",
    tag = "resources",
    responses((status = 200, body = Committed), (status = 409))
)]
pub(crate) async fn delete(
    caller: Allowed<scope::Administer, act::Delete>,
    api: Api,
    Path(names): Path<Names>,
    Uri(uri): Uri,
) -> Answer<axum::Json<Committed>> {
    let scope = scope(&api, &names).await?;
    caller.says(format!("deleted file {uri}"));
    Ok(committed(api.engine().resources().delete(&scope, &uri).await?.id))
}

/// Writes the files. A project's `shipyard.yaml` is applied, after all checks and before other files are written.
async fn write(api: &Api, caller: &Caller, scope: &Scope, sent: Vec<Resource>) -> Answer<axum::Json<Committed>> {
    let (mut files, mut forms, mut shipyard) = (vec![], Forms::new(), None);
    let names: Vec<&str> = sent.iter().map(|resource| resource.resource_uri.as_str()).collect();
    caller.says(format!("wrote {}", names.join(", ")).chars().take(TOLD).collect::<String>());
    for resource in sent {
        let name = uri(&resource.resource_uri)?;
        let content = decoded(
            "resourceContent",
            resource.resource_content.as_deref().unwrap_or_default(),
            &format!("send the content of {name}"),
        )?;
        if is_remediation(&name) {
            forms.extend(apply::remediation(&name, &content)?);
        }
        if !scope.is_shipyard(&name) {
            files.push((name, content));
        } else if shipyard.replace(content).is_some() {
            return Err(Refused::field("resources", format!("{name:?} is there more than once: send each resource once")));
        }
    }
    let Some(text) = shipyard else { return Ok(committed(api.engine().resources().write_read(scope, files, &forms).await?.id)) };
    let text = text_of(text)?;
    if !files.is_empty() {
        check_files(scope, &files)?;
    }
    let project = api.engine().resources().check_scope(scope).await?.settings;
    let revision = apply::one_shipyard(api, caller, project, &text).await?;
    match files.is_empty() {
        true => Ok(committed(revision)),
        false => Ok(committed(api.engine().resources().write_read(scope, files, &forms).await?.id)),
    }
}

fn committed(id: String) -> axum::Json<Committed> {
    axum::Json(Committed { metadata: Version { version: id.clone() }, version: id.clone(), commit_id: id })
}

/// What was sent in base64 in a field.
pub fn decoded(field: &str, text: &str, remedy: &str) -> Answer<Vec<u8>> {
    STANDARD
        .decode(text)
        .map_err(|error| Refused::field(field, format!("is not base64 ({error}): {remedy} in base64, with padding")))
}

/// A manifest that was sent in base64.
pub fn text_of(content: Vec<u8>) -> Answer<String> {
    String::from_utf8(content).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Refused::field("shipyard", format!("is not UTF-8 at byte {at}: send it as UTF-8"))
    })
}
