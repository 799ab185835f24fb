//! `get` of the kinds of manifests.

use super::{deployments, find, pipelines};
use crate::api::Api;
use crate::args::Format;
use crate::error::CliError;
use crate::kinds::GetKind;
use crate::output::say_data;
use crate::pages;
use crate::table::print;
use serde_json::{Value, json};

/// One of a kind, or a list. What pipelines and deployment configs are at is shown by their own commands.
///
/// # Errors
/// As the API answers.
pub async fn get(api: &Api, GetKind(kind, asked): &GetKind) -> Result<(), CliError> {
    let format = asked.format;
    match (kind.kind, &asked.at) {
        ("Pipeline", _) => pipelines::get(api, asked).await,
        ("DeploymentConfig", Some(of)) => deployments::config(api, of, format).await,
        (_, Some(at)) => {
            let path = kind.path(at);
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            if format == Format::Yaml {
                return pipelines::manifest(api, &path).await;
            }
            let one: Value = api.get(&path, &[]).await?;
            if format == Format::Json {
                return (kind.json)(one);
            }
            print((kind.table)(vec![one], None, format)?, format, "")
        }
        (_, None) => {
            let (path, namespace) = kind.list(asked);
            let (all, now) = pages::of_kind(api, &path, &[("namespace", namespace)]).await?;
            if all.is_empty() {
                find::mistyped(api, asked.project.as_deref()).await?;
            }
            if format.is_data() {
                return say_data(&json!({"items": all}), format);
            }
            print((kind.table)(all, now, format)?, format, &kind.empty(asked))
        }
    }
}
