//! Checks of the installation: its rules, its limits, and an event that passes through every part.

use crate::Api;
use crate::fence::allowed::{Allowed, scope};
use crate::fence::input::Path;
use crate::fence::problem::{Answer, Refused};
use axum::Json;
use axum::http::StatusCode;
use futures_util::future::try_join_all;
use keelway_domain::time::Timestamp;
use keelway_engine::checks::{self, RULES, Rules};
use keelway_engine::ports::{Clock, PortError};
use keelway_engine::protocol::Inbox;
use keelway_wire::http::operations::{Checks, InstalledLimits, RoundTrip, RuleState};
use uuid::Uuid;

/// How the installation is set up, and whether its rules are enabled.
#[utoipa::path(get, path = "/v1/checks", tag = "operations", responses((status = 200, body = Checks), (status = 400)))]
pub(crate) async fn look(_: Allowed<scope::Read>, api: Api) -> Answer<Json<Checks>> {
    let (ports, limits) = (api.engine().ports(), api.engine().limits());
    let state = async |name: &str, on_bus| {
        let state = match ports.enabled(name, on_bus).await? {
            Some(true) => "enabled",
            Some(false) => "disabled",
            None => "missing",
        };
        Ok::<_, PortError>(RuleState { name: name.into(), state: state.into() })
    };
    let rules = try_join_all(RULES.map(|(name, on_bus)| state(name, on_bus))).await?;
    let limits = InstalledLimits {
        max_event_bytes: limits.max_event_bytes as u64,
        max_executions: limits.max_executions.into(),
        start_deadline: limits.start_deadline.to_string(),
        task_timeout: limits.task_timeout.to_string(),
        retention_days: limits.retention.0.unsigned_abs() / 86_400_000,
    };
    Ok(Json(Checks { now: ports.now().rfc3339(), rules, limits }))
}

/// Sends an event around: bus, rule, queue, function, table.
#[utoipa::path(post, path = "/v1/checks", tag = "operations", responses((status = 202, body = RoundTrip), (status = 400)))]
pub(crate) async fn send(_: Allowed<scope::Trigger>, api: Api) -> Answer<(StatusCode, Json<RoundTrip>)> {
    let (id, sent) = (Uuid::now_v7(), api.engine().now());
    checks::send(api.engine().ports(), id).await?;
    Ok((StatusCode::ACCEPTED, Json(RoundTrip { id: id.to_string(), sent_at: Some(sent.rfc3339()), arrived_at: None })))
}

/// Whether an event that was sent around has arrived.
#[utoipa::path(get, path = "/v1/checks/{id}", tag = "operations", responses((status = 200, body = RoundTrip)))]
pub(crate) async fn arrived(_: Allowed<scope::Read>, api: Api, Path(id): Path<String>) -> Answer<Json<RoundTrip>> {
    let id = Uuid::parse_str(&id)
        .map_err(|_| Refused::field("id", format!("{id:?} is not the id that POST /v1/checks answered, a UUID")))?;
    let arrived = checks::arrived(api.engine().ports(), &id).await?;
    Ok(Json(RoundTrip { id: id.to_string(), sent_at: None, arrived_at: arrived.map(Timestamp::rfc3339) }))
}
