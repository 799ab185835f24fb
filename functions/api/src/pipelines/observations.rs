//! Reports about targets.

use crate::Api;
use crate::fence::allowed::{Allowed, act, scope};
use crate::fence::input::{Params, given, json, json_body};
use crate::fence::problem::{Answer, Refused};
use axum::Json;
use axum::extract::Request;
use axum::http::StatusCode;
use keelway_domain::promotions::observe::Observed;
use keelway_engine::promotions::observations::{Fact, Kept};
use keelway_wire::http::promotions::{ObservationAnswer, ObservedFact};
use keelway_wire::observation::{self, Observation, Wrong};
use serde::Deserialize;

/// The most errors in one answer.
const TOLD: usize = 20;
/// The most characters about a report in the audit.
const AUDITED: usize = 1000;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct Wanted {
    cluster: Option<String>,
}

/// Tells what runs at targets: facts, or objects of Kubernetes.
#[utoipa::path(
    post,
    path = "/v1/observations",
    tag = "pipelines",
    params(Wanted),
    request_body(content = crate::fence::bodies::ObservedObject, example = json!({"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "name": "carts", "namespace": "dev", "revision": "v1", "ready": true})),
    responses((status = 200, body = ObservationAnswer))
)]
pub(crate) async fn report(
    caller: Allowed<scope::Trigger, act::Observe>,
    api: Api,
    Params(wanted): Params<Wanted>,

    request: Request,
) -> Answer<Json<ObservationAnswer>> {
    let body = json(&json_body(request).await?)?;
    let read = observation::read(&body, given(wanted.cluster.as_ref()), api.promotions().now()).map_err(|wrong| refused(&wrong))?;
    observation::by_others(&read).map_err(|wrong| refused(&wrong))?;
    let (mut facts, mut set) = (vec![], vec![]);
    for Observation { app, target, version, observed, suspended } in read {
        let observed = Observed { by: vec![caller.known.clone()], ..observed };
        let fact = Fact { app, target, version, observed };
        let kept = api.promotions().observe(&fact).await?;
        let Fact { app, target, observed, .. } = fact;
        if kept == Kept::Revision {
            let runs = observed.revision.as_deref().unwrap_or("no revision");
            set.push(format!("{} {} in {} runs {runs}", app.kind, app.name, target.namespace));
        }
        let (namespace, cluster) = (target.namespace, target.cluster);
        facts.push(ObservedFact {
            kind: app.kind,
            name: app.name,
            namespace,
            cluster,
            version,
            suspended,
            newer: kept != Kept::Older,
        });
    }
    // Reports may come every minute, so the audit records only those with a new revision.
    match set.is_empty() {
        true => caller.does_nothing(),
        false => caller.tells("", format!("reported that {}", set.join(", ")).chars().take(AUDITED).collect::<String>()),
    }
    Ok(Json(ObservationAnswer { facts }))
}

fn refused(wrong: &[Wrong]) -> Refused {
    let mut told: Vec<String> = wrong.iter().take(TOLD).map(ToString::to_string).collect();
    if wrong.len() > TOLD {
        told.push(format!("and {} more", wrong.len() - TOLD));
    }
    let detail = format!("nothing was kept: {}", told.join("; "));
    Refused::new(StatusCode::BAD_REQUEST, "invalid observations", detail)
}
