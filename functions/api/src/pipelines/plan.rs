//! When the environments of a pipeline are closed: `GET /v1/pipelines/{namespace}/{name}/plan`.

use super::find;
use crate::Api;
use crate::fence::allowed::{Allowed, scope};
use crate::fence::input::Path;
use crate::fence::problem::Answer;
use crate::keptn::plan::closed;
use axum::Json;
use keelway_wire::http::{PipelinePlan, PlannedEnvironment};

/// The environments of a pipeline, and when nothing is promoted into them.
#[utoipa::path(
    get,
    path = "/v1/pipelines/{namespace}/{name}/plan",
    tag = "pipelines",
    responses((status = 200, body = PipelinePlan))
)]
pub(crate) async fn plan(
    _: Allowed<scope::Read>,
    api: Api,
    Path((namespace, name)): Path<(String, String)>,
) -> Answer<Json<PipelinePlan>> {
    let (_, view) = find(&api, &namespace, &name).await?;
    let definition = &view.applied.spec;
    let environments = definition.environments.iter().enumerate().map(|(place, environment)| {
        // Nothing is promoted into the first one.
        let settings = definition.promotion(environment).filter(|_| place > 0);
        let windows = settings.map(|settings| settings.windows.as_slice()).unwrap_or_default();
        PlannedEnvironment {
            name: environment.name.clone(),
            windows: windows.iter().map(|window| window.words()).collect(),
            closures: closed(windows, view.now),
        }
    });
    Ok(Json(PipelinePlan { environments: environments.collect(), now: view.now.rfc3339() }))
}
