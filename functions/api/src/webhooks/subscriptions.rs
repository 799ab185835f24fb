//! Webhook subscriptions: lists, single ones, their deletion, and resuming one that is disabled; and how one is applied.

use crate::Api;
use crate::fence::allowed::{Allowed, act, scope};
use crate::fence::input::{Params, Path, given};
use crate::fence::manifests::{fits, text};
use crate::fence::names::is_name;
use crate::fence::pages::{KNOWN, Wanted, after, limit};
use crate::fence::problem::{Answer, Refused};
use axum::Json;
use axum::http::StatusCode;
use axum::response::Response;
use keelway_domain::names::ProjectName;
use keelway_engine::ports::Ports;
use keelway_engine::protocol::declare::Outcome;
use keelway_engine::sequences::definitions::Refusal;
use keelway_engine::webhooks::{Address, Applied, MOST};
use keelway_wire::http::AppliedDocument;
use keelway_wire::http::webhooks::{WebhookDisabled, WebhookPage, WebhookState};
use keelway_wire::manifest::WebhookManifest;

/// The subscription that a manifest declares.
pub fn address(manifest: &WebhookManifest) -> Address {
    Address { namespace: manifest.namespace.to_string(), name: manifest.name.clone() }
}

/// Puts a subscription in force.
pub async fn store<P: Ports>(api: &Api<P>, manifest: &WebhookManifest) -> Answer<AppliedDocument> {
    let of = address(manifest);
    let outcome = api.webhooks().apply(&of, &manifest.subscription, &manifest.source).await?;
    match outcome {
        Outcome::TooMany => {
            let detail = format!("there are {MOST} webhook subscriptions: delete one before you apply another");
            return Err(Refused::new(StatusCode::CONFLICT, "too many webhook subscriptions", detail));
        }
        Outcome::TooLarge => fits(false, "webhook subscription", &of.to_string())?,
        Outcome::Changed(_) | Outcome::Unchanged(_) | Outcome::Conflict(_) => {}
    }
    let changed = outcome.is_change();
    let Address { namespace: project, name } = of;
    Ok(AppliedDocument { kind: "WebhookSubscription".into(), name, project, changed, ..AppliedDocument::default() })
}

fn shown(of: &Address, applied: &Applied) -> WebhookState {
    WebhookState {
        namespace: of.namespace.clone(),
        name: of.name.clone(),
        spec: serde_json::to_value(&applied.value).unwrap_or_default(),
        applied_at: applied.at.rfc3339(),
        version: applied.version,
        disabled: applied.off.as_ref().map(|off| WebhookDisabled {
            reason: off.reason.clone(),
            message: off.message(),
            at: off.at.rfc3339(),
            delivery: off.by.clone(),
        }),
        failing_since: applied.failing.map(|since| since.rfc3339()),
        waiting: None,
    }
}

/// The subscription that a path names, and its address.
async fn found<P: Ports>(api: &Api<P>, namespace: &str, name: &str) -> Answer<(Address, Applied)> {
    let of = Address { namespace: namespace.to_owned(), name: name.to_owned() };
    if ProjectName::new(namespace).is_ok()
        && is_name(name)
        && let Some(applied) = api.webhooks().subscription(&of).await?
    {
        return Ok((of, applied));
    }
    Err(unknown(api, &of).await?)
}

async fn unknown<P: Ports>(api: &Api<P>, of: &Address) -> Answer<Refused> {
    let all = api.webhooks().subscriptions().await?;
    // Who asks may see what is in this namespace.
    let known = all.within(&of.namespace).take(KNOWN as usize);
    let short: String = of.name.chars().take(100).collect();
    Ok(Refusal::unknown("webhook subscription", &short, known.map(|other| other.name.as_str())).into())
}

/// Lists the webhook subscriptions.
#[utoipa::path(
    get,
    path = "/v1/webhookSubscriptions",
    tag = "webhooks",
    params(Wanted),
    responses((status = 200, body = WebhookPage))
)]
pub async fn list<P: Ports + 'static>(
    caller: Allowed<scope::Anywhere<scope::Read>>,
    api: Api<P>,

    Params(wanted): Params<Wanted>,
) -> Answer<Json<WebhookPage>> {
    let namespace = given(wanted.namespace.as_ref());
    if let Some(namespace) = namespace {
        ProjectName::new(namespace).map_err(|error| Refused::field("namespace", error))?;
    }
    let limit = limit(wanted.page_size.as_ref())?;
    let after = after(wanted.next_page_key.as_ref())?.unwrap_or_default();
    // There are few of them: all are read.
    let all = api.webhooks().subscriptions().await?;
    let is_wanted = |of: &Address| namespace.is_none_or(|wanted| wanted == of.namespace) && caller.sees(&of.namespace);
    let mut rest = all.readable.iter().filter(|(of, _)| is_wanted(of) && *of.to_string() > *after);
    let found: Vec<_> = rest.by_ref().take(limit as usize).map(|(of, applied)| shown(of, applied)).collect();
    let next = found.last().filter(|_| rest.next().is_some()).map(|last| format!("{}/{}", last.namespace, last.name));
    Ok(Json(WebhookPage::new(found, limit, next)))
}

/// A webhook subscription, and why it is disabled if it is.
#[utoipa::path(
    get,
    path = "/v1/webhookSubscriptions/{namespace}/{name}",
    tag = "webhooks",
    responses((status = 200, body = WebhookState))
)]
pub async fn one<P: Ports + 'static>(
    _: Allowed<scope::Read>,
    api: Api<P>,
    Path((namespace, name)): Path<(String, String)>,
) -> Answer<Json<WebhookState>> {
    let (of, applied) = found(&api, &namespace, &name).await?;
    let waiting = api.webhooks().waiting(&of).await?;
    Ok(Json(WebhookState { waiting: Some(waiting as u64), ..shown(&of, &applied) }))
}

/// The manifest as it was applied.
#[utoipa::path(
    get,
    path = "/v1/webhookSubscriptions/{namespace}/{name}/manifest",
    tag = "webhooks",
    responses((status = 200, body = String, content_type = "text/yaml", headers(("ETag" = String))))
)]
pub async fn manifest<P: Ports + 'static>(
    _: Allowed<scope::Read>,
    api: Api<P>,
    Path((namespace, name)): Path<(String, String)>,
) -> Answer<Response> {
    Ok(text(found(&api, &namespace, &name).await?.1.source))
}

/// Has a webhook subscription take events again. One that is not disabled stays as it is.
#[utoipa::path(
    post,
    path = "/v1/webhookSubscriptions/{namespace}/{name}/resume",
    tag = "webhooks",
    responses((status = 200, body = WebhookState))
)]
pub async fn resume<P: Ports + 'static>(
    _: Allowed<scope::Administer, act::Control>,
    api: Api<P>,
    Path((namespace, name)): Path<(String, String)>,
) -> Answer<Json<WebhookState>> {
    let (of, _) = found(&api, &namespace, &name).await?;
    api.webhooks().resume(&of).await?;
    let (of, applied) = found(&api, &namespace, &name).await?;
    Ok(Json(shown(&of, &applied)))
}

/// Deletes a webhook subscription.
#[utoipa::path(
    delete,
    path = "/v1/webhookSubscriptions/{namespace}/{name}",
    tag = "webhooks",
    responses((status = 204))
)]
pub async fn delete<P: Ports + 'static>(
    _: Allowed<scope::Administer, act::Delete>,
    api: Api<P>,
    Path((namespace, name)): Path<(String, String)>,
) -> Answer<StatusCode> {
    let (of, _) = found(&api, &namespace, &name).await?;
    if api.webhooks().remove(&of).await? { Ok(StatusCode::NO_CONTENT) } else { Err(unknown(&api, &of).await?) }
}
