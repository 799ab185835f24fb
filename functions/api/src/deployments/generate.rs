//! The generator: a config with its newest images, as the next version. It changes nothing; a client that wants the version writes
//! it back.

use super::{error, find, shape};
use crate::Api;
use crate::fence::allowed::{Allowed, scope};
use crate::fence::input::Path;
use crate::fence::problem::{Answer, Refused};
use axum::response::Response;
use keelway_domain::deployments::definition::Trigger;
use keelway_domain::deployments::{Images, generate as next, resolve};
use keelway_engine::deployments::views::View;
use keelway_wire::http::deployments::FieldError;

/// The config with its newest images, as its next version. Nothing is stored.
#[utoipa::path(
    get,
    path = "/v1/generateDeploymentConfigs/{id}",
    tag = "deployments",
    responses((status = 200, body = crate::fence::bodies::DeploymentConfigObject, headers(("ETag" = String))), (status = 422))
)]
pub(crate) async fn generate(_: Allowed<scope::Read>, api: Api, Path(id): Path<String>) -> Answer<Response> {
    let (of, view) = find(&api, &id).await?;
    let errors = unresolved(&view);
    if !errors.is_empty() {
        return Err(Refused::invalid(errors));
    }
    let generated = next(&view.state, &view.applied, &view.heads);
    Ok(shape::object(&of, &view, &generated.resolved.definition, Some((generated.latest, &generated.causes))))
}

/// Warnings about triggers whose tags point to nothing, and about containers without an image.
pub fn unresolved(view: &View) -> Vec<FieldError> {
    let definition = &view.applied.definition;
    let resolved = resolve(&view.state, definition, &view.heads, Images::Newest);
    let triggers = definition.triggers.iter().enumerate().filter_map(|(place, trigger)| match trigger {
        Trigger::ImageChange(change) if resolved.unresolved.contains(&change.from) => {
            Some(error(
                format!("spec.triggers[{place}].imageChangeParams.from"),
                "NotFound",
                format!(
                    "no image recorded for {}: the tag was not found; push an image, or apply an ArtifactSource that tells where it comes from",
                    change.from
                ),
            ))
        }
        _ => None,
    });
    // The warning about the trigger covers its containers.
    let owned = |name: &String| {
        definition.image_changes().any(|change| resolved.unresolved.contains(&change.from) && change.containers.contains(name))
    };
    let blank = resolved.blank.iter().filter(|name| !owned(name)).map(|name| {
        let field = format!("spec.template.spec.containers[{name}].image");
        error(
            field,
            "Required",
            format!("no image is named for container {name}: write one, or a trigger that names the container"),
        )
    });
    triggers.chain(blank).collect()
}
