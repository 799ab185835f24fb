//! One delivery, with what its items name in the other engines. Only what they name is read, by key; of a config's or a pipeline's
//! past, one page is looked through.

use crate::Api;
use crate::deployments::shape as versions;
use crate::fence::allowed::{Allowed, scope};
use crate::fence::caller::Caller;
use crate::fence::input::Path;
use crate::fence::problem::{Answer, Refused};
use crate::pipelines::shape as promotions;
use axum::http::StatusCode;
use keelway_domain::address::Address;
use keelway_domain::deployments::Deployment;
use keelway_domain::event::Object;
use keelway_domain::names::Context;
use keelway_domain::promotions::{Made, Promotion};
use keelway_wire::http::DeliveryPromotion;
use keelway_wire::http::deployments::VersionState;
use serde_json::{Value, json};

/// Configs of a delivery that are looked at.
const CONFIGS: usize = 10;
/// Past attempts of each config, and past promotions of each pipeline, that are looked through.
const PAST: u32 = 20;

/// A delivery with the promotions that it carries out, and the versions that carried out its tasks.
#[utoipa::path(
    get,
    path = "/v1/project/{project}/delivery/{context}",
    tag = "sequences",
    responses((status = 200, body = keelway_wire::http::DeliveryOverview), (status = 404))
)]
pub(crate) async fn one(
    caller: Allowed<scope::Read>,
    api: Api,
    Path((project, context)): Path<(String, String)>,
) -> Answer<axum::Json<Value>> {
    let project = api.engine().projects().find(&project).await?.settings.name;
    let context = Context::of(&context);
    tracing::Span::current().record("project", project.as_str()).record("context", context.as_str());
    let views = api.engine().views();
    let Some(delivery) = views.sequence_state(&project, &context).await? else {
        let detail = format!("context {context} does not exist in project {project}, or is not kept any more");
        return Err(Refused::new(StatusCode::NOT_FOUND, "unknown context", detail));
    };
    let links = views.links(&project, &context).await?;
    // What other projects carry out is theirs to show.
    let configs: Vec<Address> = links.configs.into_iter().filter(|of| caller.sees(&of.namespace)).collect();
    let mut cut = configs.len() > CONFIGS;
    let mut deployments = vec![];
    for of in configs.iter().take(CONFIGS) {
        let (found, more) = carried(&api, of, context.as_str()).await?;
        deployments.extend(found);
        cut |= more;
    }
    deployments.sort_by(|one, other| (&one.since, one.attempt).cmp(&(&other.since, other.attempt)));
    let mut promoted = vec![];
    for said in &links.promotions {
        promoted.extend(promotion(&api, &caller, said, context.as_str()).await?);
    }
    let mut answer = json!({
        "delivery": delivery, "promotions": promoted, "deployments": deployments, "now": api.engine().now().rfc3339(),
    });
    if cut {
        answer["cut"] = json!(true);
    }
    Ok(axum::Json(answer))
}

/// The attempts of a config that were made for this context; and whether its past has more pages.
async fn carried(api: &Api, of: &Address, context: &str) -> Answer<(Vec<VersionState>, bool)> {
    let Some(state) = api.deployments().states(std::slice::from_ref(of)).await?.pop().flatten() else {
        return Ok((vec![], false));
    };
    let (past, more) = api.deployments().history(of, None, PAST).await?;
    let is_its = |d: &&Deployment| d.task.as_ref().is_some_and(|task| task.context == context);
    let present: Vec<&Deployment> = state.last.iter().chain(&state.pending).filter(is_its).collect();
    let known = |d: &&Deployment| !present.iter().any(|one| (one.n, one.attempt) == (d.n, d.attempt));
    let past = past.iter().map(|past| &past.deployment).filter(is_its).filter(known);
    let mut found: Vec<VersionState> = past.map(|d| versions::version(of, d, None)).collect();
    // A page of the past that has this context's first attempt leads on to older ones.
    let more = more.is_some() && found.is_empty() && present.is_empty();
    found.extend(present.iter().map(|d| versions::version(of, d, Some(&state))));
    Ok((found, more))
}

/// The promotion that a trigger names, if its pipeline says so, too.
async fn promotion(api: &Api, caller: &Caller, said: &Object, context: &str) -> Answer<Option<DeliveryPromotion>> {
    let text = |name: &str| said.get(name).and_then(Value::as_str).unwrap_or_default();
    let of = Address::new(text("namespace"), text("pipeline"));
    let environment = text("environment");
    if [&*of.namespace, &of.name, environment].contains(&"") || !caller.sees(&of.namespace) {
        return Ok(None);
    }
    let is_its = |promotion: &Promotion| matches!(&promotion.effect, Some(Made::Sequence { context: its }) if *its == *context);
    let shown = |promotion: &Promotion, ended_at: Option<String>| DeliveryPromotion {
        namespace: of.namespace.clone(),
        pipeline: of.name.clone(),
        environment: environment.to_owned(),
        promotion: promotions::promotion(promotion),
        ended_at,
    };
    let state = api.promotions().states(std::slice::from_ref(&of)).await?.pop().flatten();
    let present = state.as_ref().and_then(|state| state.environments.get(environment)?.promotion.as_ref());
    if let Some(present) = present.filter(|promotion| is_its(promotion)) {
        return Ok(Some(shown(present, None)));
    }
    let past = api.promotions().history(&of, None, PAST).await?.promotions;
    let found = past.iter().find(|past| past.environment == environment && is_its(&past.promotion));
    Ok(found.map(|past| shown(&past.promotion, Some(past.at.rfc3339()))))
}
