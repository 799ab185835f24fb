//! The revisions of a project's shipyard: `GET /v1/project/{project}/shipyard/revisions` and what is below it.

use crate::Api;
use crate::apply::shipyard::{self, DIGITS, ShipyardOf, changes, if_match, is_revision};
use crate::fence::allowed::{Allowed, act, scope};
use crate::fence::input::{Json, Params, Path, given, page_size};
use crate::fence::manifests::by;
use crate::fence::pages::place;
use crate::fence::problem::{Answer, Refused};
use crate::kinds::{How, border};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use keelway_domain::names::ProjectName;
use keelway_engine::projects::{InForce, is_place};
use keelway_engine::refusal::Refusal;
use keelway_wire::http::{AppliedDocument, RevisionPage, RevisionState, ShipyardDiff, ShipyardRollback};
use keelway_wire::manifest::{self, Document, ShipyardManifest};
use serde::Deserialize;

/// Paging.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Paging {
    page_size: Option<String>,
    next_page_key: Option<String>,
}

/// Which two revisions.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct Compared {
    from: Option<String>,
    to: Option<String>,
}

/// Lists the revisions of the shipyard that were in force, newest first.
#[utoipa::path(
    get,
    path = "/v1/project/{project}/shipyard/revisions",
    tag = "definitions",
    params(Paging),
    responses((status = 200, body = RevisionPage))
)]
pub(crate) async fn list(
    _: Allowed<scope::Read>,
    api: Api,
    Path(name): Path<String>,
    Params(paging): Params<Paging>,
) -> Answer<axum::Json<RevisionPage>> {
    let size = page_size(paging.page_size.as_ref())?;
    let from = place(paging.next_page_key.as_ref(), |key| is_place(key).then(|| key.to_owned()))?;
    let project = api.engine().projects().find(&name).await?;
    let (found, next) = api.engine().projects().history(&project.settings.name, from, size.into()).await?;
    let state = |one: InForce| RevisionState {
        in_force: one.number == project.revisions,
        number: one.number,
        revision: one.revision,
        applied: one.applied.rfc3339(),
        by: one.by,
    };
    Ok(axum::Json(RevisionPage::new(found.into_iter().map(state).collect(), size, next)))
}

/// The text of a revision.
#[utoipa::path(
    get,
    path = "/v1/project/{project}/shipyard/revisions/{revision}",
    tag = "definitions",
    responses((status = 200, body = String, content_type = "text/yaml", headers(("ETag" = String))))
)]
pub(crate) async fn one(_: Allowed<scope::Read>, api: Api, Path((name, revision)): Path<(String, String)>) -> Answer<Response> {
    let project = api.engine().projects().find(&name).await?.settings.name;
    let text = source(&api, &project, &revision).await?;
    let headers = [(header::CONTENT_TYPE, "text/yaml; charset=utf-8".to_owned()), (header::ETAG, format!("\"{revision}\""))];
    Ok((headers, text).into_response())
}

/// What differs between two revisions.
#[utoipa::path(
    get,
    path = "/v1/project/{project}/shipyard/diff",
    tag = "definitions",
    params(Compared),
    responses((status = 200, body = ShipyardDiff))
)]
pub(crate) async fn compare(
    _: Allowed<scope::Read>,
    api: Api,
    Path(name): Path<String>,
    Params(compared): Params<Compared>,
) -> Answer<axum::Json<ShipyardDiff>> {
    let project = api.engine().projects().find(&name).await?;
    let in_force = project.revision.clone().unwrap_or_default();
    let named = |field: &'static str, text: Option<&String>| match given(text) {
        Some(revision) => Ok(revision.to_owned()),
        None if field == "to" => Ok(in_force.clone()),
        None => Err(Refused::field(field, "is missing: name the revision to compare with".to_owned())),
    };
    let (from, to) = (named("from", compared.from.as_ref())?, named("to", compared.to.as_ref())?);
    let name = &project.settings.name;
    let (old, new) = (source(&api, name, &from).await?, source(&api, name, &to).await?);
    Ok(axum::Json(ShipyardDiff { changes: changes(&old, &new), from, to }))
}

/// Puts a revision in force again.
#[utoipa::path(
    post,
    path = "/v1/project/{project}/shipyard/rollback",
    tag = "definitions",
    params(("If-Match" = Option<String>, Header)),
    request_body(content = ShipyardRollback, example = json!({"revision": "45b983be36b73c0788dc9cbcb76cbb80fc7bb057", "by": "ada", "dryRun": true})),
    responses((status = 200, body = AppliedDocument), (status = 409), (status = 412))
)]
pub(crate) async fn roll_back(
    caller: Allowed<scope::Administer, act::Apply>,
    api: Api,
    Path(name): Path<String>,

    headers: HeaderMap,
    Json(request): Json<ShipyardRollback>,
) -> Answer<axum::Json<AppliedDocument>> {
    let replaces = if_match(&headers)?;
    let by = by(&caller, request.by.as_ref())?;
    let project = api.engine().projects().find(&name).await?.settings.name;
    let ShipyardRollback { revision, dry_run, .. } = request;
    caller.tells(
        project.as_str(),
        format!("rolled the shipyard of {project} back to {}", revision.chars().take(DIGITS).collect::<String>()),
    );
    if dry_run {
        caller.does_nothing();
    }
    let source = source(&api, &project, &revision).await?;
    let mut parsed = manifest::parse(&source, &revision);
    let document = if parsed.refused() { None } else { parsed.documents.pop() };
    let Some(Document::Shipyard(manifest)) = document else {
        let detail = format!("revision {revision} is not accepted any more, for what the findings name: apply a text that is");
        let mut refused = Refused::new(StatusCode::CONFLICT, "manifest refused", detail);
        refused.problem.findings = parsed.findings;
        return Err(refused);
    };
    border::check_one(&api, &caller, &shipyard::outside(project.as_str(), &manifest.shipyard)).await?;
    let shipyard = ShipyardOf { project, revision, manifest: ShipyardManifest { source, ..manifest } };
    Ok(axum::Json(shipyard.put_in_force(&api, How { replaces: replaces.as_deref(), by: &by, dry_run }).await?))
}

/// The text of a revision.
async fn source(api: &Api, project: &ProjectName, revision: &str) -> Answer<String> {
    // A text that is not a revision is unknown, and may be longer than a key of the table.
    let found = if is_revision(revision) { api.engine().projects().revision(project, revision).await? } else { None };
    match found {
        Some(found) => Ok(found.source),
        None => {
            let (known, _) = api.engine().projects().history(project, None, 20).await?;
            Err(Refusal::unknown("revision", revision, known.iter().map(|one| one.revision.as_str())).into())
        }
    }
}
