//! Versions: one, those of a config, those of the installation; and the audit of a config.

use super::{find, shape, version};
use crate::Api;
use crate::fence::allowed::{Allowed, scope};
use crate::fence::auth::DEPLOYMENT;
use crate::fence::input::{Params, Path, given, no_page_key};
use crate::fence::pages::{Paging, after, limit};
use crate::fence::problem::{Answer, Refused};
use axum::Json;
use axum::http::StatusCode;
use keelway_domain::access::{Kind, Need};
use keelway_domain::deployments::{Deployment, Status};
use keelway_domain::level::Level as _;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::deployments::everywhere::Order;
use keelway_engine::deployments::{Address, Damaged};
use keelway_wire::http::Clock;
use keelway_wire::http::deployments::{ConfigAuditPage, VersionPage, VersionState};
use serde::Deserialize;

/// How far `GET /v1/deployments` looks back by default.
const SINCE: Span = Span::minutes(24 * 60);

fn page(deployments: Vec<VersionState>, next: Option<String>, limit: u32, now: Timestamp) -> Json<VersionPage> {
    Json(VersionPage::new(deployments, limit, next).with(Clock::at(now)))
}

/// A version with its snapshot.
#[utoipa::path(
    get,
    path = "/v1/deployments/{name}",
    tag = "deployments",
    responses((status = 200, body = VersionState))
)]
pub(crate) async fn one(
    _: Allowed<(scope::Read, scope::Execute)>,
    api: Api,
    Path(name): Path<String>,
) -> Answer<Json<VersionState>> {
    let (of, n) = version(&name).ok_or_else(|| no_version(&name))?;
    shown(&api, &of, n).await?.map(Json).ok_or_else(|| no_version(&name))
}

/// The refusal for a version that does not exist (any more).
pub fn no_version(name: &str) -> Refused {
    let name: String = name.chars().take(150).collect();
    let detail = format!("deployment {name:?} does not exist, or is not kept any more: the config's history lists those that are");
    Refused::new(StatusCode::NOT_FOUND, "unknown deployment", detail)
}

/// A version with its snapshot.
pub(crate) async fn shown(api: &Api, of: &Address, n: u64) -> Answer<Option<VersionState>> {
    tracing::Span::current().record("project", &of.namespace);
    let Some(state) = api.deployments().states(std::slice::from_ref(of)).await?.pop().flatten() else { return Ok(None) };
    if n < state.oldest {
        return Ok(None);
    }
    let here = |d: &&Deployment| d.n == n;
    let present = state.last.as_ref().filter(here).or(state.pending.as_ref().filter(here));
    let (deployment, snapshot) = match present {
        Some(d) => (d.clone(), api.deployments().snapshot(of, n, d.snapshot).await?),
        None => match api.deployments().ended(of, n).await? {
            Ok(Some((past, snapshot))) => (past.deployment, Some(snapshot)),
            Err(Damaged { past: Some(past), .. }) => (past.deployment, None),
            Ok(None) | Err(Damaged { past: None, .. }) => return Ok(None),
        },
    };
    let snapshot = snapshot.map(|snapshot| shape::snapshot(of, &snapshot)).unwrap_or_default();
    let now = api.deployments().now().rfc3339();
    Ok(Some(VersionState { snapshot, now, ..shape::version(of, &deployment, Some(&state)) }))
}

/// Lists the versions of a config, newest first, with what is on its way.
#[utoipa::path(
    get,
    path = "/v1/deploymentConfigs/{id}/history",
    tag = "deployments",
    params(Paging),
    responses((status = 200, body = VersionPage))
)]
pub(crate) async fn of_config(
    _: Allowed<scope::Read>,
    api: Api,
    Path(id): Path<String>,
    Params(paging): Params<Paging>,
) -> Answer<Json<VersionPage>> {
    let limit = limit(paging.page_size.as_ref())?;
    let after = after(paging.next_page_key.as_ref())?;
    let (of, view) = find(&api, &id).await?;
    let (past, next) = api.deployments().history(&of, after, limit).await?;
    let state = &view.state;
    let open = state.pending.iter().chain(state.in_flight()).filter(|_| after.is_none());
    let open = open.map(|d| shape::version(&of, d, Some(state)));
    // Pruned versions may still exist for a moment.
    let past = past.iter().filter(|past| past.deployment.n >= state.oldest);
    let all = open.chain(past.map(|past| shape::version(&of, &past.deployment, None))).collect();
    Ok(page(all, next, limit, view.now))
}

/// Lists what anybody did with a config, newest first.
#[utoipa::path(
    get,
    path = "/v1/deploymentConfigs/{id}/audit",
    tag = "deployments",
    params(Paging),
    responses((status = 200, body = ConfigAuditPage))
)]
pub(crate) async fn audit(
    _: Allowed<scope::Read>,
    api: Api,
    Path(id): Path<String>,
    Params(paging): Params<Paging>,
) -> Answer<Json<ConfigAuditPage>> {
    let limit = limit(paging.page_size.as_ref())?;
    let after = after(paging.next_page_key.as_ref())?;
    let (of, view) = find(&api, &id).await?;
    let (entries, next) = api.deployments().audit(&of, after, limit).await?;
    Ok(Json(ConfigAuditPage::new(entries.iter().map(shape::audit).collect(), limit, next).with(Clock::at(view.now))))
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Wanted {
    since: Option<String>,
    status: Option<String>,
    /// `oldest` (the default) or `newest`: which comes first of what has ended.
    order: Option<String>,
    page_size: Option<String>,
    next_page_key: Option<String>,
}

/// Lists what ended in the whole installation since a time, oldest first unless `order` says otherwise; with `status=New` what
/// nobody has claimed, oldest first.
#[utoipa::path(
    get,
    path = "/v1/deployments",
    tag = "deployments",
    params(Wanted),
    responses((status = 200, body = VersionPage))
)]
pub(crate) async fn everywhere(
    caller: Allowed<scope::Anywhere<(scope::Read, scope::Execute)>>,
    api: Api,

    Params(wanted): Params<Wanted>,
) -> Answer<Json<VersionPage>> {
    let sees = |of: &Address| caller.sees(&of.namespace) || caller.may(Need::Execute(DEPLOYMENT), Some(&of.namespace));
    // A deployer without the scope would wait for ever, so it gets an error.
    if !caller.executes(DEPLOYMENT) && !caller.has(Kind::Read) {
        return Err(caller.lacks_anywhere(Need::Execute(DEPLOYMENT)));
    }
    let limit = limit(wanted.page_size.as_ref())?;
    let after = after(wanted.next_page_key.as_ref())?;
    let status = given(wanted.status.as_ref()).map(|word| shape::status(word).ok_or_else(|| no_status(word))).transpose()?;
    let now = api.deployments().now();
    let since = match given(wanted.since.as_ref()) {
        None => Timestamp(now.0 - SINCE.0),
        Some(text) => Timestamp::parse(text).filter(|at| at.0 > 0 && *at <= now).ok_or_else(|| {
            Refused::field("since", format!("{text:?} is not a time in the past: write it like 2026-11-20T15:04:05.000Z"))
        })?,
    };
    let order = match given(wanted.order.as_ref()) {
        None | Some("oldest") => Order::Oldest,
        Some("newest") if status != Some(Status::New) => Order::Newest,
        Some("newest") => {
            return Err(Refused::field(
                "order",
                "what nobody has claimed is listed oldest first: leave it out, or name another status",
            ));
        }
        Some(word) => {
            let word: String = word.chars().take(50).collect();
            return Err(Refused::field("order", format!("{word:?} is no order: write oldest or newest")));
        }
    };
    let begins_with_time =
        |key: &str| key.split('#').next().is_some_and(|ms| ms.len() == 13 && ms.bytes().all(|b| b.is_ascii_digit()));
    if after.is_some_and(|key| !begins_with_time(key)) {
        return Err(no_page_key(after.unwrap_or_default()));
    }
    match status {
        Some(Status::New) => {
            let (configs, next) = api.deployments().unclaimed(after, limit).await?;
            let configs = configs.iter().filter(|x| sees(&x.address()));
            let shown = configs.filter_map(|x| Some(shape::version(&x.address(), x.in_flight()?, Some(x))));
            Ok(page(shown.collect(), next, limit, now))
        }
        Some(status @ (Status::Pending | Status::Running)) => Err(no_status(&status.to_string())),
        wanted => {
            let (found, next) = api.deployments().everywhere(since, order, after, limit).await?;
            let found = found.iter().filter(|(of, past)| sees(of) && wanted.is_none_or(|wanted| past.deployment.status == wanted));
            Ok(page(found.map(|(of, past)| shape::version(of, &past.deployment, None)).collect(), next, limit, now))
        }
    }
}

fn no_status(word: &str) -> Refused {
    let word: String = word.chars().take(50).collect();
    Refused::field(
        "status",
        format!("{word:?} is not listed here: write New, Complete or Failed, or ask each config for its status"),
    )
}
