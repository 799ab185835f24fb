//! Writes of configs: applied, written back from the generator, or with a `rollback` stanza.

use super::rollbacks;
use super::{PAUSED, error, find, shape};
use crate::Api;
use crate::apply::quotas;
use crate::fence::allowed::{Allowed, act, scope};
use crate::fence::caller::Caller;
use crate::fence::input::{Params, Path, Text};
use crate::fence::manifests::{by, too_large};
use crate::fence::problem::{Answer, Refused};
use crate::fence::repeated::RequestId;
use crate::kinds::deployment_config::definition;
use crate::kinds::{Document, border, unknown};
use axum::extract::Extension;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use keelway_domain::access::Need;
use keelway_domain::deployments::definition::Definition;
use keelway_domain::deployments::{Applied, Request, Why, generate};
use keelway_engine::deployments::Address;
use keelway_engine::deployments::configs::{Over, Wanted};
use keelway_engine::deployments::views::View;
use keelway_engine::protocol::declare::Outcome;
use keelway_wire::http::deployments::{FieldError, RollbackRequest};
use keelway_wire::manifest::{self, DeploymentConfigManifest};
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct Query {
    by: Option<String>,
}

/// Replaces a config, or rolls it back with a `rollback` stanza.
/// 202: a rollback is handed in, and the state does not show it yet.
#[utoipa::path(
    put,
    path = "/v1/deploymentConfigs/{id}",
    tag = "deployments",
    params(Query, ("Idempotency-Key" = Option<String>, Header), ("If-Match" = Option<String>, Header)),
    request_body(content((crate::fence::bodies::DeploymentConfigObject = "application/json", example = json!({"kind": "DeploymentConfig", "metadata": {"name": "web", "namespace": "shop"}, "spec": {"strategy": {"type": "Custom"}, "triggers": [{"type": "ConfigChange"}], "template": {"spec": {"containers": [{"name": "web", "image": "registry.example.com/shop/web:1"}]}}}})), (String = "application/yaml"))),
    responses((status = 200, body = crate::fence::bodies::ConfigOrRollback, headers(("ETag" = String))), (status = 202, body = keelway_wire::http::deployments::RollbackAnswer), (status = 409), (status = 422))
)]
pub(crate) async fn put(
    caller: Allowed<scope::Administer, act::Apply>,
    api: Api,
    Path(id): Path<String>,
    Params(query): Params<Query>,
    Extension(request): Extension<RequestId>,

    headers: HeaderMap,
    Text(text): Text,
) -> Answer<Response> {
    let (of, view) = find(&api, &id).await?;
    let body: Option<Value> = serde_json::from_str(&text).ok();
    if let Some(stanza) = body.as_ref().and_then(|body| body.get("rollback")) {
        only_rollback(body.as_ref(), &of)?;
        let stanza: RollbackRequest = crate::fence::input::read(stanza.clone())?;
        return rollbacks::roll_back(&api, (of, view), stanza.into(), (&caller, request)).await;
    }
    let manifest = one_config(&text)?;
    let named = (manifest.namespace.as_str(), manifest.name.as_str());
    if named != (of.namespace.as_str(), of.name.as_str()) {
        let message = format!("{}:{} is not the config of the path, {}:{}", named.0, named.1, of.namespace, of.name);
        return Err(Refused::invalid(vec![error("metadata.name", "Invalid", message)]));
    }
    caller.says(format!("applied deployment config {}", of.name));
    let over = expected(&headers, resource_version(&text).as_deref())?.map(|version| Over { version, asked: request.0 });
    let by = by(&caller, query.by.as_ref())?;
    let definition = &applied_by(&api, &caller, (*manifest).clone()).await?;
    let request = asked_version(&view, definition, manifest.latest_version, &by).map_err(|error| Refused::invalid(vec![error]))?;
    let wanted = Wanted { definition, source: &manifest.source, by: &by, request, over };
    let outcome = api.deployments().apply(&of, &wanted).await?;
    written(&api, &of, outcome, StatusCode::OK).await
}

/// Creates a config.
#[utoipa::path(
    post,
    path = "/v1/deploymentConfigs",
    tag = "deployments",
    params(Query, ("Idempotency-Key" = Option<String>, Header)),
    request_body(content((crate::fence::bodies::DeploymentConfigObject = "application/json", example = json!({"kind": "DeploymentConfig", "metadata": {"name": "web", "namespace": "shop"}, "spec": {"strategy": {"type": "Custom"}, "triggers": [{"type": "ConfigChange"}], "template": {"spec": {"containers": [{"name": "web", "image": "registry.example.com/shop/web:1"}]}}}})), (String = "application/yaml"))),
    responses((status = 201, body = crate::fence::bodies::DeploymentConfigObject, headers(("ETag" = String))), (status = 409), (status = 422))
)]
pub(crate) async fn create(
    caller: Allowed<scope::Anywhere<scope::Administer>, act::Apply>,
    api: Api,
    Params(query): Params<Query>,
    Extension(RequestId(asked)): Extension<RequestId>,

    Text(text): Text,
) -> Answer<Response> {
    let manifest = one_config(&text)?;
    caller.check(Need::Administer, Some(manifest.namespace.as_str()))?;
    caller.tells(manifest.namespace.as_str(), format!("created deployment config {}", manifest.name));
    let of = Address { namespace: manifest.namespace.to_string(), name: manifest.name.clone() };
    let by = by(&caller, query.by.as_ref())?;
    let definition = &applied_by(&api, &caller, (*manifest).clone()).await?;
    quotas::check(&api, std::slice::from_ref(&*manifest)).await?;
    let wanted = Wanted { definition, source: &manifest.source, by: &by, request: None, over: Some(Over { version: 0, asked }) };
    let outcome = api.deployments().apply(&of, &wanted).await?;
    written(&api, &of, outcome, StatusCode::CREATED).await
}

async fn written(api: &Api, of: &Address, outcome: Outcome, status: StatusCode) -> Answer<Response> {
    match outcome {
        Outcome::Conflict(0) => Err(unknown::<DeploymentConfigManifest>(api, &of.namespace, &of.name).await?),
        Outcome::Conflict(version) => Err(conflict(of, version)),
        Outcome::TooLarge | Outcome::TooMany => Err(too_large("deployment config", of)),
        Outcome::Changed(_) | Outcome::Unchanged(_) => {
            let (of, view) = find(api, &super::id(of)).await?;
            let mut response = shape::object(&of, &view, &view.applied.definition, None);
            *response.status_mut() = status;
            Ok(response.into_response())
        }
    }
}

fn conflict(of: &Address, version: i64) -> Refused {
    let detail = format!(
        "deployment config {of} has been changed: its resourceVersion is {version} now; read it again, and make your change to that"
    );
    Refused::new(StatusCode::CONFLICT, "conflict", detail)
}

/// A body with a rollback must not change anything else of the config.
fn only_rollback(body: Option<&Value>, of: &Address) -> Answer<()> {
    let text = |field: &str| body.and_then(|body| body.get(field)).and_then(Value::as_str);
    let mut errors: Vec<FieldError> = ["spec", "template", "triggers", "latestVersion"]
        .into_iter()
        .filter(|field| body.is_some_and(|body| body.get(field).is_some()))
        .map(|field| error(field, "Invalid", "stands beside `rollback`, which changes the config itself: send one or the other"))
        .collect();
    let named = text("id").is_none_or(|id| super::address(id).as_ref() == Some(of) || id == of.name);
    if !named {
        errors.push(error("id", "Invalid", format!("is not the config of the path, {}", super::id(of))));
    }
    if errors.is_empty() { Ok(()) } else { Err(Refused::invalid(errors)) }
}

/// The one config that a body holds.
fn one_config(text: &str) -> Answer<Box<DeploymentConfigManifest>> {
    let mut parsed = manifest::parse(text, "-");
    match parsed.documents.pop() {
        Some(manifest::Document::DeploymentConfig(config)) if !parsed.refused() && parsed.documents.is_empty() => Ok(config),
        _ => {
            let detail = "nothing was stored: send one DeploymentConfig, and mend what the findings name";
            let mut refused = Refused::new(StatusCode::UNPROCESSABLE_ENTITY, "manifest refused", detail);
            let wrong = parsed.findings.iter().filter(|finding| finding.severity == manifest::Severity::Error);
            refused.problem.errors = wrong.map(|finding| error(&*finding.path, "Invalid", &*finding.message)).collect();
            refused.problem.findings = parsed.findings;
            Err(refused)
        }
    }
}

/// The definition with the caller's vouch, if all resources that it names are permitted.
async fn applied_by(api: &Api, caller: &Caller, mut manifest: DeploymentConfigManifest) -> Answer<Definition> {
    definition(&manifest)?;
    manifest.vouch(caller.administers_everything());
    border::check_one(api, caller, &manifest.outside(api).await?).await?;
    manifest.definition.ok_or_else(Refused::internal)
}

/// `metadata.resourceVersion`, or `resourceVersion` in the proposal's form.
fn resource_version(text: &str) -> Option<String> {
    let body: Value = serde_json::from_str(text).ok()?;
    let version = body.pointer("/metadata/resourceVersion").or(body.get("resourceVersion"))?;
    Some(version.as_str().map_or_else(|| version.to_string(), str::to_owned)).filter(|version| !version.is_empty())
}

/// The version of the definition that a request replaces: `If-Match` or `metadata.resourceVersion`.
fn expected(headers: &HeaderMap, body: Option<&str>) -> Answer<Option<i64>> {
    let mut given = headers.get_all(header::IF_MATCH).iter();
    let header = given.next().map(|value| value.to_str().unwrap_or_default().trim().trim_matches('"').to_owned());
    let number = |field: &str, text: &str| {
        let wrong = || {
            Refused::field(
                field,
                format!("{text:?} is no version of a config: send the ETag, or the resourceVersion, that it was read with"),
            )
        };
        text.parse::<i64>().ok().filter(|version| *version > 0).ok_or_else(wrong)
    };
    let header = header.filter(|text| text != "*").map(|text| number("If-Match", &text)).transpose()?;
    let body = body.map(|text| number("metadata.resourceVersion", text)).transpose()?;
    match (header, body, given.next()) {
        (_, _, Some(_)) => Err(Refused::field("If-Match", "is there more than once: send it once")),
        (Some(header), Some(body), None) if header != body => {
            Err(Refused::field("If-Match", format!("{header} is not metadata.resourceVersion, {body}: send one of them")))
        }
        (header, body, None) => Ok(header.or(body)),
    }
}

/// The version that the written config asks for: one above the latest. The latest asks for none.
fn asked_version(view: &View, definition: &Definition, version: Option<u64>, by: &str) -> Result<Option<Request>, FieldError> {
    let latest = view.state.latest;
    let Some(version) = version.filter(|version| *version != latest) else { return Ok(None) };
    let field = "status.latestVersion";
    if version < latest {
        return Err(error(field, "Invalid", format!("latestVersion cannot be decremented: it is {latest}")));
    }
    if version > latest + 1 {
        let message = format!("latestVersion is {latest}: send {latest}, or {} for a new version", latest + 1);
        return Err(error(field, "Invalid", message));
    }
    if view.state.paused.is_some() || definition.paused {
        return Err(error(PAUSED, "Conflict", "cannot deploy a paused deployment config: resume it first"));
    }
    let applied = Applied { definition: definition.clone(), by: by.to_owned(), ..view.applied.clone() };
    let causes = generate(&view.state, &applied, &view.heads).causes;
    let causes = if causes.is_empty() { vec![Why::Manual { by: by.to_owned(), delivery: None }] } else { causes };
    Ok(Some(Request { version, causes }))
}
