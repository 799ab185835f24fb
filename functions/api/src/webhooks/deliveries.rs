//! Deliveries of webhooks: the log, a single one, and delivering again.

use crate::Api;
use crate::fence::allowed::{Allowed, act, scope};
use crate::fence::input::{Params, Path, given};
use crate::fence::pages::{after, limit};
use crate::fence::problem::{Answer, Refused};
use crate::fence::repeated::RequestId;
use axum::http::StatusCode;
use axum::{Extension, Json};
use keelway_domain::access::Need;
use keelway_domain::ids::SubjectId;
use keelway_domain::names::ProjectName;
use keelway_domain::webhooks::{Delivery, End, Exchange};
use keelway_engine::webhooks::Redelivery;
use keelway_wire::http::webhooks::{DeliveryAttempt, DeliveryPage, DeliveryState, Redelivered};
use serde::Deserialize;

/// Which deliveries are wanted.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Wanted {
    namespace: Option<String>,
    webhook: Option<String>,
    page_size: Option<String>,
    next_page_key: Option<String>,
}

fn shown(x: &Delivery) -> DeliveryState {
    DeliveryState {
        id: x.id.to_string(),
        namespace: x.of.0.clone(),
        webhook: x.of.1.clone(),
        status: x.end.map_or("waiting", End::as_str).to_owned(),
        message: x.outcome(),
        event_type: x.text("type").to_owned(),
        event_id: x.text("id").to_owned(),
        keptn_context: x.text("shkeptncontext").to_owned(),
        began: x.began.rfc3339(),
        next_attempt: x.due.map(|due| due.rfc3339()),
        again: x.again.is_some(),
        attempts: x.attempts.iter().map(attempt).collect(),
        event: None,
    }
}

fn attempt(attempt: &Exchange) -> DeliveryAttempt {
    let Exchange { at, status, ms, answer, error, .. } = attempt.clone();
    DeliveryAttempt { at: at.rfc3339(), status, ms, answer, error }
}

fn unknown(id: &str) -> Refused {
    let short: String = id.chars().take(100).collect();
    let detail =
        format!("delivery {short:?} does not exist in this namespace, or it has expired: GET /v1/deliveries lists those there are");
    Refused::new(StatusCode::NOT_FOUND, "unknown delivery", detail)
}

/// Lists the deliveries of webhooks in a namespace, newest first.
#[utoipa::path(
    get,
    path = "/v1/deliveries",
    tag = "webhooks",
    params(Wanted),
    responses((status = 200, body = DeliveryPage))
)]
pub(crate) async fn list(
    caller: Allowed<scope::Anywhere<scope::Read>>,
    api: Api,

    Params(wanted): Params<Wanted>,
) -> Answer<Json<DeliveryPage>> {
    let namespace = given(wanted.namespace.as_ref()).unwrap_or("default");
    let namespace = ProjectName::new(namespace).map_err(|error| Refused::field("namespace", error))?;
    caller.check(Need::Read, Some(namespace.as_str()))?;
    let limit = limit(wanted.page_size.as_ref())?;
    let after = after(wanted.next_page_key.as_ref())?;
    let of = given(wanted.webhook.as_ref());
    let page = api.webhooks().deliveries(namespace.as_str(), of, after, limit).await?;
    Ok(Json(DeliveryPage::new(page.deliveries.iter().map(shown).collect(), limit, page.next)))
}

/// A delivery, with its event and its attempts.
#[utoipa::path(
    get,
    path = "/v1/deliveries/{namespace}/{id}",
    tag = "webhooks",
    responses((status = 200, body = DeliveryState))
)]
pub(crate) async fn one(
    _: Allowed<scope::Read>,
    api: Api,
    Path((namespace, id)): Path<(String, String)>,
) -> Answer<Json<DeliveryState>> {
    let of = SubjectId::parse(&id).ok_or_else(|| unknown(&id))?;
    let x = api.webhooks().delivery(&namespace, of).await?.ok_or_else(|| unknown(&id))?;
    Ok(Json(DeliveryState { event: Some(x.event.clone()), ..shown(&x) }))
}

/// Delivers again; the delivery shows what becomes of it.
#[utoipa::path(
    post,
    path = "/v1/deliveries/{namespace}/{id}/redeliver",
    tag = "webhooks",
    params(("Idempotency-Key" = Option<String>, Header)),
    responses((status = 202, body = Redelivered), (status = 409), (status = 422))
)]
pub(crate) async fn redeliver(
    caller: Allowed<scope::Trigger, act::Control>,
    api: Api,
    Path((namespace, id)): Path<(String, String)>,
    Extension(RequestId(request)): Extension<RequestId>,
) -> Answer<(StatusCode, Json<Redelivered>)> {
    let of = SubjectId::parse(&id).ok_or_else(|| unknown(&id))?;
    caller.says(format!("had delivery {id} sent again"));
    let conflict = |detail: String| Refused::new(StatusCode::CONFLICT, "conflict", detail);
    let (id, again) = match api.webhooks().redeliver(&namespace, of, &format!("{request:016x}")).await? {
        Redelivery::Now => (of, false),
        Redelivery::Again(new) => (new, true),
        Redelivery::Unknown => return Err(unknown(&id)),
        Redelivery::Deleted => return Err(conflict("its webhook subscription was deleted: apply it again".into())),
        Redelivery::Disabled => {
            let detail = "its webhook subscription is disabled: resume it first (POST …/resume, keelway webhook resume)";
            return Err(conflict(detail.into()));
        }
    };
    Ok((StatusCode::ACCEPTED, Json(Redelivered { id: id.to_string(), again })))
}
