//! Rollbacks: of one config, and of several that are checked together.

use super::carry::{Asked, Outcome, carry, outcome_version};
use super::prepare::{Prepared, Wish, prepare};
use super::{MESSAGE, NAME, error, find, id, refused, together};
use crate::Api;
use crate::fence::allowed::{Allowed, act, scope};
use crate::fence::caller::Caller;
use crate::fence::input::{self, Path, note};
use crate::fence::problem::{Answer, Refused};
use crate::fence::repeated::RequestId;
use axum::extract::{Extension, Request};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::future::join_all;
use keelway_domain::access::Need;
use keelway_domain::deployments::{Back, Parts};
use keelway_domain::ids::hash64;
use keelway_domain::note::Note;
use keelway_engine::deployments::Address;
use keelway_engine::deployments::views::View;
use keelway_wire::http::deployments::{
    DeploymentConfigRollback, FieldError, OneRollback, RollbackAnswer, RollbackRequest, RollbacksAnswer, RollbacksRequest,
};
use keelway_wire::manifest::render;
use serde_json::Value;

/// The most configs in one request.
const MOST: usize = 20;

impl From<RollbackRequest> for Wish {
    fn from(asked: RollbackRequest) -> Self {
        let RollbackRequest { release, config, application, notes, dry_run, allow_failed, by_steps, again, by, .. } = asked;
        let back = Back { by_steps, again, ..back(config, application, allow_failed) };
        Self { release, back, notes, by, dry_run }
    }
}

fn back(config: Option<bool>, application: Option<bool>, allow_failed: bool) -> Back {
    let (config, application) = (config.unwrap_or(true), application.unwrap_or(true));
    let (by_steps, again, group) = (false, false, String::new());
    Back { release: None, config, application, parts: None, allow_failed, by_steps, again, group, task: None }
}

/// Rolls a config back.
/// 202: it is handed in, and the state does not show it yet.
#[utoipa::path(
    post,
    path = "/v1/deploymentConfigs/{id}/rollback",
    tag = "deployments",
    params(("Idempotency-Key" = Option<String>, Header)),
    request_body(content = Option<crate::fence::bodies::AnyRollback>, example = json!({"notes": "broken", "by": "ada"})),
    responses((status = 200, body = RollbackAnswer), (status = 202, body = RollbackAnswer), (status = 409), (status = 422))
)]
pub(crate) async fn one(
    caller: Allowed<scope::Trigger, act::Trigger>,
    api: Api,
    Path(of): Path<String>,
    Extension(id): Extension<RequestId>,

    request: Request,
) -> Answer<Response> {
    let bytes = input::json_body(request).await?;
    let body = if bytes.is_empty() { Value::Object(Default::default()) } else { input::json(&bytes)? };
    let found = find(&api, &of).await?;
    let wish = if body.get("spec").is_some() {
        shipped(input::read(body)?, &found.0)?
    } else {
        input::read::<RollbackRequest>(body)?.into()
    };
    roll_back(&api, found, wish, (&caller, id)).await
}

/// OpenShift's request: four flags, which are false unless said.
fn shipped(asked: DeploymentConfigRollback, of: &Address) -> Answer<Wish> {
    let mut errors = vec![];
    let spec = &asked.spec;
    if !asked.name.is_empty() && asked.name != of.name {
        errors.push(error(
            "name",
            "Invalid",
            format!("{:?} is not the config of the path, {:?}: leave it out", asked.name, of.name),
        ));
    }
    if !asked.updated_annotations.is_empty() {
        errors.push(error("updatedAnnotations", "Invalid", "are not taken: annotations never go back; apply them with the config"));
    }
    if spec.revision < 0 {
        errors.push(error("spec.revision", "Invalid", "must be non-negative"));
    }
    let parts = Parts {
        template: spec.include_template,
        replication: spec.include_replication_meta,
        triggers: spec.include_triggers,
        strategy: spec.include_strategy,
        labels: false,
    };
    if parts.is_empty() {
        let message =
            "nothing would be rolled back: set includeTemplate, includeReplicationMeta, includeTriggers or includeStrategy";
        errors.push(error("spec", "Required", message));
    }
    if !errors.is_empty() {
        return Err(Refused::invalid(errors));
    }
    let release = match spec.revision {
        0 if spec.from.name.is_empty() => Value::Null,
        0 => Value::String(spec.from.name.clone()),
        revision => revision.into(),
    };
    let (config, application) = (parts.triggers || parts.strategy, parts.template || parts.replication);
    // OpenShift applies the flags exactly as given.
    let back = Back { parts: Some(parts), again: true, ..back(Some(config), Some(application), false) };
    Ok(Wish { release, back, notes: None, by: None, dry_run: asked.dry_run })
}

/// Rolls one config back, or says what that would do.
pub(crate) async fn roll_back(
    api: &Api,
    found: (Address, View),
    wish: Wish,
    (caller, RequestId(request)): (&Caller, RequestId),
) -> Answer<Response> {
    let note = noted(&wish, &found.1, (caller, request))?;
    let prepared = prepare(api, found, &wish, note).await?.map_err(Refused::invalid)?;
    if wish.dry_run {
        caller.does_nothing();
        let warnings = together::warnings(api, std::slice::from_ref(&prepared)).await?.concat();
        return Ok(axum::Json(foreseen(&prepared, warnings)).into_response());
    }
    caller.says(format!("rolled back {} to #{}", prepared.of, prepared.release));
    let (answer, refused) = carry_out(api, prepared).await?;
    match refused {
        Some(refused) => Err(refused),
        None if answer.done => Ok(axum::Json(answer).into_response()),
        None => Ok((StatusCode::ACCEPTED, axum::Json(answer)).into_response()),
    }
}

/// Records in the audit what is rolled back, in each of the namespaces.
fn tell(caller: &Caller, all: &[Prepared]) {
    let mut told: Vec<(String, String)> = vec![];
    for Prepared { of, release, .. } in all {
        let what = format!("{of} to #{release}");
        match told.iter_mut().find(|(known, _)| *known == of.namespace) {
            Some((_, words)) => words.extend([", ", &what]),
            None => told.push((of.namespace.clone(), format!("rolled back {what}"))),
        }
    }
    caller.tells_each(told);
}

fn noted(wish: &Wish, view: &View, (caller, id): (&Caller, u64)) -> Answer<Note> {
    let (notes, by) = (note("notes", wish.notes.as_ref(), MESSAGE)?, note("by", wish.by.as_ref(), NAME)?);
    Ok(Note { by: caller.by(by), at: view.now, message: notes.unwrap_or_default(), id, run: 0 })
}

/// The answer to a dry run.
fn foreseen(prepared: &Prepared, more: Vec<String>) -> RollbackAnswer {
    let Prepared { of, candidate, .. } = prepared;
    let shown = answer(prepared);
    let warnings = shown.warnings.iter().cloned().chain(more).collect();
    RollbackAnswer { dry_run: true, candidate: render(&of.namespace, &of.name, candidate), warnings, ..shown }
}

fn answer(prepared: &Prepared) -> RollbackAnswer {
    RollbackAnswer {
        namespace: prepared.of.namespace.clone(),
        name: prepared.of.name.clone(),
        resolved_release: prepared.release,
        reason: prepared.reason.clone(),
        changes: prepared.changes.clone(),
        warnings: prepared.warnings.clone(),
        ..RollbackAnswer::default()
    }
}

/// Sends a rollback to the engine, and waits until the state shows the result. It may still be refused, if the state has changed
/// meanwhile.
async fn carry_out(api: &Api, prepared: Prepared) -> Answer<(RollbackAnswer, Option<Refused>)> {
    let shown = answer(&prepared);
    let Prepared { of, view, command, note, .. } = prepared;
    let before = view.state.latest;
    let asked = Asked { to: of, command, note };
    Ok(match carry(api, &asked, view).await? {
        Outcome::Refused(_, why) => (shown, Some(refused(why))),
        Outcome::Done(view) => {
            let deployment = outcome_version(&asked.to, &view, before);
            (RollbackAnswer { done: true, deployment, ..shown }, None)
        }
        Outcome::Open(_) => {
            let look = Some(format!("/v1/deploymentConfigs/{}/status", id(&asked.to)));
            (RollbackAnswer { look, ..shown }, None)
        }
    })
}

/// Rolls several configs back: all are checked before any is carried out, then each has its own outcome.
#[utoipa::path(
    post,
    path = "/v1/rollbacks",
    tag = "deployments",
    params(("Idempotency-Key" = Option<String>, Header)),
    request_body(content = RollbacksRequest, example = json!({"rollbacks": [{"id": "shop:cart"}], "notes": "back to Monday", "by": "ada", "dryRun": true})),
    responses((status = 200, body = RollbacksAnswer), (status = 422))
)]
pub(crate) async fn several(
    caller: Allowed<scope::Anywhere<scope::Trigger>, act::Trigger>,
    api: Api,
    Extension(RequestId(request)): Extension<RequestId>,

    input::Json(asked): input::Json<RollbacksRequest>,
) -> Answer<axum::Json<RollbacksAnswer>> {
    if asked.rollbacks.is_empty() || asked.rollbacks.len() > MOST {
        let message = format!("has {} entries: name 1 to {MOST} configs", asked.rollbacks.len());
        return Err(Refused::invalid(vec![error("rollbacks", "Invalid", message)]));
    }
    for one in &asked.rollbacks {
        caller.check(Need::Trigger, super::address(&one.id).map(|of| of.namespace).as_deref())?;
    }
    if asked.dry_run {
        caller.does_nothing();
    }
    let group = format!("{:016x}", hash64(&[b"rollbacks", &request.to_be_bytes()]));
    let (mut all, mut errors): (Vec<Prepared>, Vec<FieldError>) = (vec![], vec![]);
    for (place, one) in asked.rollbacks.iter().enumerate() {
        let at = |mut error: FieldError| {
            error.field = format!("rollbacks[{place}].{}", error.field);
            error
        };
        let found = match find(&api, &one.id).await {
            Ok(found) => found,
            Err(refused) => {
                errors.push(at(unless_unknown(refused)?));
                continue;
            }
        };
        if all.iter().any(|known| known.of == found.0) {
            errors.push(at(error("id", "Invalid", format!("{} is named twice: leave one out", one.id))));
            continue;
        }
        let wish = wish(one, &asked, &group);
        // Each config gets its own command id, so that a repeated request is the same command for each of them.
        let id = hash64(&[b"rollback", &request.to_be_bytes(), found.0.to_string().as_bytes()]).max(1);
        let note = noted(&wish, &found.1, (&caller, id))?;
        match prepare(&api, found, &wish, note).await? {
            Ok(prepared) => all.push(prepared),
            Err(wrong) => errors.extend(wrong.into_iter().map(at)),
        }
    }
    if !errors.is_empty() {
        return Err(Refused::invalid(errors));
    }
    let more = together::warnings(&api, &all).await?;
    if asked.dry_run {
        let results = all.iter().zip(more).map(|(prepared, more)| foreseen(prepared, more)).collect();
        return Ok(axum::Json(RollbacksAnswer { group_id: group, results }));
    }
    tell(&caller, &all);
    // All results are awaited concurrently, which takes no longer than one of them.
    let carried = join_all(all.into_iter().map(|prepared| carry_out(&api, prepared))).await;
    let mut results = vec![];
    for (carried, more) in carried.into_iter().zip(more) {
        let (mut answer, refused) = carried?;
        answer.warnings.extend(more);
        answer.errors.extend(refused.map(|refused| error("release", "Conflict", refused.problem.detail)));
        results.push(answer);
    }
    Ok(axum::Json(RollbacksAnswer { group_id: group, results }))
}

fn wish(one: &OneRollback, asked: &RollbacksRequest, group: &str) -> Wish {
    let back = Back {
        group: group.to_owned(),
        by_steps: one.by_steps,
        again: one.again,
        ..back(one.config, one.application, one.allow_failed)
    };
    Wish { release: one.release.clone(), back, notes: asked.notes.clone(), by: asked.by.clone(), dry_run: asked.dry_run }
}

/// An unknown config is one more error in the request.
fn unless_unknown(refused: Refused) -> Answer<FieldError> {
    if refused.problem.status == StatusCode::NOT_FOUND.as_u16() {
        return Ok(error("id", "NotFound", refused.problem.detail));
    }
    Err(refused)
}
