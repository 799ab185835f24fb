//! The calls of deployers. A claim with an API token returns a token for the attempt, which all other calls need. Only its hash is
//! stored.

use super::history::{no_version, shown};
use super::{NAME, refused, shape, version};
use crate::Api;
use crate::fence::allowed::{Allowed, act, scope};
use crate::fence::auth;
use crate::fence::hand_in;
use crate::fence::input::{self, Path, note};
use crate::fence::problem::{Answer, Refused};
use crate::fence::random::random_hex;
use axum::Json;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use keelway_domain::deployments::{
    Call, Config, Desired, LEASE, LEASE_MOST, MAX_TARGETS, Progress, Reply, SOURCE, TargetProgress, WHOLE,
};
use keelway_domain::ids::{hash64, sha256_hex};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::deployments::deployers::Told;
use keelway_wire::http::deployments::{
    ClaimAnswer, ClaimRequest, FinishRequest, HeartbeatRequest, ReportAnswer, StrategyAnswer, StrategyRequest, TargetState,
};
use std::collections::BTreeMap;

/// The status of a part of a strategy that is not complete.
const RUNNING: &str = "running";
/// The longest id of a claim.
const CLAIM: usize = 255;

/// Takes a version to deploy it. The answer has the token of this attempt.
#[utoipa::path(
    post,
    path = "/v1/deployments/{name}/claim",
    tag = "deployments",
    params(("Idempotency-Key" = Option<String>, Header)),
    request_body(content = Option<ClaimRequest>, example = json!({"by": "ci", "claim": "run-7", "lease": "90s"})),
    responses((status = 200, body = ClaimAnswer), (status = 409))
)]
pub(crate) async fn claim(
    caller: Allowed<scope::Execute, act::Claim>,
    api: Api,

    Path(name): Path<String>,
    headers: HeaderMap,
    input::Maybe(asked): input::Maybe<ClaimRequest>,
) -> Answer<Json<ClaimAnswer>> {
    let (of, n) = version(&name).ok_or_else(|| no_version(&name))?;
    let by = note("by", Some(&asked.by), NAME)?.unwrap_or_default();
    // This name is reserved for the engine's own claims.
    if by.trim().eq_ignore_ascii_case(SOURCE) {
        return Err(Refused::field(
            "by",
            format!("{SOURCE} is the name of the deployers that Keelway runs itself: send another one"),
        ));
    }
    let token = random_hex()?;
    let id = claim_id(&headers, &asked.claim)?.map_or_else(|| token.clone(), str::to_owned);
    // Knowledge of a claim's id must not suffice to take it over with another token.
    let id = hash64(&[b"claim", of.to_string().as_bytes(), &n.to_be_bytes(), caller.id.as_bytes(), b"#", id.as_bytes()]);
    caller.tells(&of.namespace, format!("claimed {name}"));
    caller.told().note.clone_from(&by);
    let call = Call::Claim { by, id, token: sha256_hex(token.as_bytes()), lease: lease(asked.lease.as_deref())? };
    let told = api.deployments().say(&of, n, &call).await?;
    let desired = match told.reply {
        Reply::Desired(desired) => word(desired),
        Reply::Refused(why) => return Err(refused(why)),
    };
    let deployment = shown(&api, &of, n).await?.ok_or_else(|| no_version(&name))?;
    let active = told.config.as_ref().and_then(|config| config.active.as_ref()).map(|active| active.n);
    let from = match active {
        Some(active) => shown(&api, &of, active).await?,
        None => None,
    };
    let lease_until = lease_until(told.config.as_ref());
    Ok(Json(ClaimAnswer { token, deployment, from, desired: desired.into(), lease_until }))
}

/// Tells how a deployment goes, and what is wanted of the deployer.
#[utoipa::path(
    post,
    path = "/v1/deployments/{name}/heartbeat",
    tag = "deployments",
    request_body(content = Option<HeartbeatRequest>, example = json!({"running": true, "message": "1 of 3", "targets": {"eu": {"status": "Running"}}})),
    responses((status = 200, body = ReportAnswer), (status = 409))
)]
pub(crate) async fn heartbeat(
    _: Allowed<scope::OfAttempt>,
    api: Api,
    Path(name): Path<String>,
    headers: HeaderMap,
    input::Maybe(said): input::Maybe<HeartbeatRequest>,
) -> Answer<Json<ReportAnswer>> {
    let token = bearer(&headers)?;
    let (of, n) = version(&name).ok_or_else(not_authorised)?;
    let HeartbeatRequest { running, lease: asked, message, targets, tail, checkpoint, log } = said;
    let progress = Progress { message, targets: progress(targets)?, tail, checkpoint, log, analysis: None };
    let call = Call::Heartbeat { token, running, lease: lease(asked.as_deref())?, progress };
    report(api.deployments().say(&of, n, &call).await?)
}

/// Has Keelway carry out the strategy for the deployer, and tells how far it is. The same request again asks for nothing more.
#[utoipa::path(
    post,
    path = "/v1/deployments/{name}/strategy",
    tag = "deployments",
    request_body(content = Option<StrategyRequest>, example = json!({"until": 50})),
    responses((status = 200, body = StrategyAnswer), (status = 409))
)]
pub(crate) async fn strategy(
    _: Allowed<scope::OfAttempt>,
    api: Api,
    Path(name): Path<String>,
    headers: HeaderMap,
    input::Maybe(asked): input::Maybe<StrategyRequest>,
) -> Answer<Json<StrategyAnswer>> {
    let token = bearer(&headers)?;
    let (of, n) = version(&name).ok_or_else(not_authorised)?;
    let until = asked.until.unwrap_or(WHOLE);
    if until > WHOLE {
        return Err(Refused::field("until", format!("{until} is no share of the requests in percent: send 0 to {WHOLE}")));
    }
    let call = Call::Carry { token, until };
    let ask = || async { carried(&api.deployments().say(&of, n, &call).await?) };
    let look = || async { Ok::<_, Refused>(Some(ask().await?).filter(|answer| answer.state != RUNNING)) };
    let answer = hand_in::outcome(api.settings().patience, look).await?;
    Ok(Json(match answer {
        Some(answer) => answer,
        None => ask().await?,
    }))
}

/// The progress of a part of a strategy.
fn carried(told: &Told) -> Answer<StrategyAnswer> {
    let desired = desired(told)?;
    let last = told.config.as_ref().and_then(|config| config.last.as_ref());
    let part = last.and_then(|last| last.part.as_ref());
    let state = match part {
        Some(part) if part.is_open() => RUNNING,
        Some(part) if part.has_failed() => "failed",
        // A part that does not exist any more is complete; otherwise the claim would not be valid.
        _ => "done",
    };
    let (until, message) = part.map_or((WHOLE, String::new()), |part| (part.until, part.message.clone()));
    Ok(StrategyAnswer { state: state.into(), until, message, desired: desired.into() })
}

/// Tells how a deployment ended.
#[utoipa::path(
    post,
    path = "/v1/deployments/{name}/finish",
    tag = "deployments",
    request_body(content = Option<FinishRequest>, example = json!({"exitCode": 0})),
    responses((status = 200, body = ReportAnswer), (status = 409))
)]
pub(crate) async fn finish(
    _: Allowed<scope::OfAttempt>,
    api: Api,
    Path(name): Path<String>,
    headers: HeaderMap,
    input::Maybe(said): input::Maybe<FinishRequest>,
) -> Answer<Json<ReportAnswer>> {
    let token = bearer(&headers)?;
    let (of, n) = version(&name).ok_or_else(not_authorised)?;
    let FinishRequest { exit_code, message, targets, tail, checkpoint, log } = said;
    let progress = Progress { message: message.clone(), targets: progress(targets)?, tail, checkpoint, log, analysis: None };
    let call = Call::End { token, exit: exit_code, message, progress };
    report(api.deployments().say(&of, n, &call).await?)
}

/// The answer to a report. A caller without a token of this version learns nothing about it.
fn report(told: Told) -> Answer<Json<ReportAnswer>> {
    let desired = desired(&told)?;
    let last = told.config.as_ref().and_then(|config| config.last.as_ref());
    Ok(Json(ReportAnswer {
        desired: desired.into(),
        proceeds: last.map_or(0, |last| last.proceeds),
        lease_until: lease_until(told.config.as_ref()),
        deadline: last.and_then(|last| last.due).map(Timestamp::rfc3339),
    }))
}

fn desired(told: &Told) -> Answer<&'static str> {
    match &told.reply {
        Reply::Refused(_) if told.stranger => Err(not_authorised()),
        Reply::Refused(why) => Err(refused(why.clone())),
        Reply::Desired(desired) => Ok(word(*desired)),
    }
}

fn word(desired: Desired) -> &'static str {
    match desired {
        Desired::Run => "run",
        Desired::Pause => "pause",
        Desired::Cancel => "cancel",
    }
}

fn lease_until(config: Option<&Config>) -> String {
    let claim = config.and_then(|config| config.last.as_ref()).and_then(|last| last.claim.as_ref());
    claim.map(|claim| claim.lease.rfc3339()).unwrap_or_default()
}

/// The hash of the token in a request. If requests are signed for AWS, `authorization` contains the signature, and the token is in
/// the header for API tokens.
fn bearer(headers: &HeaderMap) -> Answer<String> {
    let is_signed = |value: &HeaderValue| value.as_bytes().starts_with(b"AWS4-");
    if let (Some(token), Some(_)) = (headers.get(auth::HEADER), headers.get(header::AUTHORIZATION).filter(|value| is_signed(value)))
    {
        return Ok(sha256_hex(token.as_bytes()));
    }
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (given.next(), given.next()) else { return Err(not_authorised()) };
    let text = value.to_str().unwrap_or_default();
    let token = text.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim());
    let token = token.filter(|token| !token.is_empty()).ok_or_else(not_authorised)?;
    Ok(sha256_hex(token.as_bytes()))
}

fn not_authorised() -> Refused {
    let detail = "the header Authorization has no token of an attempt of this deployment: send `Bearer` and the token that the claim's answer has";
    Refused::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
}

/// The id of a claim, if the request has one.
fn claim_id<'r>(headers: &'r HeaderMap, body: &'r str) -> Answer<Option<&'r str>> {
    let header = headers.get("idempotency-key").map(|value| value.to_str().unwrap_or_default());
    let id = if body.is_empty() { header } else { Some(body) };
    match id {
        Some(id) if id.is_empty() || id.len() > CLAIM => {
            Err(Refused::field("claim", format!("is no id of a claim: it has 1 to {CLAIM} ASCII characters")))
        }
        id => Ok(id),
    }
}

fn lease(text: Option<&str>) -> Answer<Span> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(LEASE) };
    let lease = Span::parse(text).map_err(|error| Refused::field("lease", error))?;
    if lease.0 < 5000 || lease > LEASE_MOST {
        return Err(Refused::field("lease", format!("{text} is not from 5s to {LEASE_MOST}")));
    }
    Ok(lease)
}

fn progress(targets: BTreeMap<String, TargetState>) -> Answer<BTreeMap<String, TargetProgress>> {
    if targets.len() > MAX_TARGETS {
        return Err(Refused::field("targets", format!("has {} entries: at most {MAX_TARGETS} are taken", targets.len())));
    }
    let read = |(name, said): (String, TargetState)| {
        let unknown = || {
            let word: String = said.status.chars().take(50).collect();
            Refused::field(
                &format!("targets.{name}.status"),
                format!("{word:?} is none: send New, Pending, Running, Complete or Failed"),
            )
        };
        let status = shape::status(&said.status).ok_or_else(unknown)?;
        Ok((name, TargetProgress { status, message: said.message }))
    };
    targets.into_iter().map(read).collect()
}
