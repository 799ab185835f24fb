//! What is delivered to webhook subscriptions, and resuming one that is disabled.

mod deliveries;

use crate::Api;
use crate::fence::allowed::{Allowed, act, scope};
use crate::fence::problem::Answer;
use crate::fence::route::{Route, route};
use crate::kinds::routes::Named;
use crate::kinds::webhook_subscription::shown;
use axum::Json;
use keelway_wire::http::webhooks::WebhookState;
use keelway_wire::manifest::WebhookManifest;

/// The routes.
pub fn routes() -> Vec<Route> {
    vec![route!(resume), route!(deliveries::list), route!(deliveries::one), route!(deliveries::redeliver).once()]
}

/// Has a webhook subscription take events again. One that is not disabled stays as it is.
#[utoipa::path(
    post,
    path = "/v1/webhookSubscriptions/{namespace}/{name}/resume",
    tag = "webhooks",
    responses((status = 200, body = WebhookState))
)]
pub(crate) async fn resume(caller: Allowed<scope::Administer, act::Control>, api: Api, named: Named) -> Answer<Json<WebhookState>> {
    if let Some(of) = named.at()
        && api.webhooks().resume(&of).await?.is_some()
        && let Some(applied) = api.webhooks().subscription(&of).await?
    {
        caller.says(format!("resumed webhook {}", of.name));
        return Ok(Json(shown(&of, &applied)));
    }
    Err(named.unknown::<WebhookManifest>(&api).await?)
}
