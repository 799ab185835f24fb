//! `get` of the kinds of manifests.

use super::pages::{PAGES, is_last};
use super::{deployments, pipelines};
use crate::api::Api;
use crate::args::Format;
use crate::error::CliError;
use crate::kinds::GetKind;
use crate::output::say_data;
use crate::table::print;
use keelway_domain::time::Timestamp;
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
            print(&(kind.table)(vec![one], None, format)?, format, "")
        }
        (_, None) => {
            let (path, namespace) = kind.list(asked);
            let (mut all, mut key, mut now): (Vec<Value>, _, _) = (vec![], String::new(), None);
            for _ in 0..PAGES {
                let query = [("namespace", namespace), ("pageSize", "100"), ("nextPageKey", key.as_str())];
                let mut page: Value = api.get(&path, &query).await?;
                if let Some(Value::Array(entries)) = page.get_mut(kind.member).map(Value::take) {
                    all.extend(entries);
                }
                now = page["now"].as_str().and_then(Timestamp::parse);
                key = page["nextPageKey"].as_str().unwrap_or_default().to_owned();
                if is_last(&key) {
                    break;
                }
            }
            if format.is_data() {
                return say_data(&json!({ (kind.member): all }), format);
            }
            print(&(kind.table)(all, now, format)?, format, &kind.empty(asked))
        }
    }
}
