//! `POST /v1/apply`: manifests, all or nothing. It is a loop over documents; what one of a kind is stands in [`crate::kinds`].

mod planned;
mod project;
pub mod quotas;
mod remediation;
mod rights;
pub mod shipyard;
pub mod stored;

use crate::Api;
use crate::fence::allowed::{Allowed, act, scope};
use crate::fence::caller::Caller;
use crate::fence::input::{Params, Text, given};
use crate::fence::manifests::{by, refused};
use crate::fence::problem::{Answer, Refused};
use crate::fence::route::{Route, route};
use crate::kinds::{Called, Context, Document, FILE, How, border};
use axum::http::HeaderMap;
use keelway_engine::projects::ProjectSettings;
use keelway_wire::http::{Applied, AppliedDocument};
use keelway_wire::manifest;
use planned::{Planned, plan};
pub use remediation::remediation;
pub use rights::policy as permits_policy;
use serde::Deserialize;
use shipyard::{ShipyardOf, if_match};

/// The routes.
pub fn routes() -> Vec<Route> {
    vec![route!(apply), route!(stored::look)]
}

/// Documents in one request.
const MAX_DOCUMENTS: usize = 50;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Wanted {
    project: Option<String>,
    by: Option<String>,
    dry_run: Option<String>,
}

/// Applies manifests, all of them or none.
#[utoipa::path(
    post,
    path = "/v1/apply",
    tag = "definitions",
    params(Wanted, ("If-Match" = Option<String>, Header)),
    request_body(description = "Up to 50 documents in YAML or JSON.", content((String = "application/yaml", example = "apiVersion: keelway.dev/v1\nkind: Project\nmetadata:\n  name: shop\n"))),
    responses((status = 200, body = Applied), (status = 404), (status = 409), (status = 412))
)]
pub(crate) async fn apply(
    caller: Allowed<scope::Anywhere<scope::Administer>, act::Apply>,
    api: Api,
    Params(wanted): Params<Wanted>,
    headers: HeaderMap,

    Text(text): Text,
) -> Answer<axum::Json<Applied>> {
    let replaces = if_match(&headers)?;
    let dry_run = match given(wanted.dry_run.as_ref()) {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(Refused::field("dryRun", "is neither true nor false: send one of them, or leave it out")),
    };
    let mut parsed = manifest::parse(&text, FILE);
    if parsed.refused() {
        return Err(refused(parsed.findings));
    }
    if parsed.documents.len() > MAX_DOCUMENTS {
        let n = parsed.documents.len();
        return Err(Refused::too_large(format!("the body has {n} documents: at most {MAX_DOCUMENTS} are applied at once")));
    }
    let shipyards = parsed.documents.iter().filter(|document| matches!(document, manifest::Document::Shipyard(_))).count();
    if replaces.is_some() && shipyards != 1 {
        let message = format!("names the revision that one shipyard replaces, but the body has {shipyards}: send one");
        return Err(Refused::field("If-Match", message));
    }
    let mut planned = plan(api.engine(), &caller, given(wanted.project.as_ref()), parsed.documents).await?;
    rights::check(&caller, &planned)?;
    planned.iter_mut().for_each(|document| document.vouch(caller.administers_everything()));
    check(&api, &caller, &planned, replaces.as_deref()).await?;
    quotas::check(&api, &planned).await?;
    if dry_run {
        caller.does_nothing();
    }
    let by = by(&caller, wanted.by.as_ref())?;
    let applied = store(&api, &planned, How { replaces: replaces.as_deref(), by: &by, dry_run }).await?;
    rights::tell(&caller, &planned, &applied);
    for document in &planned {
        parsed.findings.extend(document.warnings(&api).await?);
    }
    Ok(axum::Json(Applied { applied, warnings: parsed.findings, dry_run }))
}

/// Applies one shipyard to a project, whatever its metadata says, and the project with these settings before it. The revision that
/// is in force then.
pub(crate) async fn one_shipyard(api: &Api, caller: &Caller, project: ProjectSettings, text: &str) -> Answer<String> {
    let mut parsed = manifest::parse(text, "shipyard");
    if parsed.refused() {
        return Err(refused(parsed.findings));
    }
    let (Some(manifest::Document::Shipyard(manifest)), true) = (parsed.documents.pop(), parsed.documents.is_empty()) else {
        return Err(Refused::field("shipyard", "is not one document of kind Shipyard: send that one, and the others to /v1/apply"));
    };
    let shipyard = ShipyardOf::new(project.name.clone(), manifest);
    let revision = shipyard.revision.clone();
    let planned = [Planned::Project(project), Planned::Shipyard(shipyard)];
    check(api, caller, &planned, None).await?;
    store(api, &planned, How { replaces: None, by: &caller.by(None), dry_run: false }).await?;
    Ok(revision)
}

/// Checks everything that would be refused, before anything is written.
async fn check(api: &Api, caller: &Caller, planned: &[Planned], replaces: Option<&str>) -> Answer<()> {
    border::check(api, caller, planned).await?;
    let mut seen: Vec<(&str, String)> = vec![];
    for document in planned {
        let Called { kind, identity, .. } = document.called();
        let one = (kind, identity);
        if seen.contains(&one) {
            return Err(Refused::field("body", format!("has two documents of kind {} {}: leave one out", one.0, one.1)));
        }
        seen.push(one);
    }
    let context = Context::of(planned, replaces);
    for document in planned {
        document.validate(api, &context).await?;
    }
    Ok(())
}

/// Applies documents in the order of their dependencies: projects before shipyards, clusters and hosts before pipelines, sources
/// before configs. The answer has the order of the text.
async fn store(api: &Api, planned: &[Planned], how: How<'_>) -> Answer<Vec<AppliedDocument>> {
    let mut places: Vec<(usize, &Planned)> = planned.iter().enumerate().collect();
    places.sort_by_key(|(place, planned)| (planned.called().order, *place));
    let mut applied: Vec<(usize, AppliedDocument)> = vec![];
    for (place, document) in places {
        applied.push((place, document.store(api, how).await?));
    }
    applied.sort_by_key(|(place, _)| *place);
    Ok(applied.into_iter().map(|(_, applied)| applied).collect())
}
