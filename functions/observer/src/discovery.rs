//! Finds the name of a kind in URLs, as the API server lists it. Each group is read once in ten minutes.

use crate::Failure;
use crate::connection::{Connection, Found};
use crate::object::segment;
use keelway_domain::promotions::definition::App;
use keelway_domain::time::{Span, Timestamp};
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Mutex;

/// How long discovered names are used.
const FRESH: Span = Span::minutes(10);

/// A kind in the list of a group.
#[derive(Debug, Clone, Deserialize)]
pub struct Resource {
    name: String,
    kind: String,
    #[serde(default)]
    namespaced: bool,
}

type Listed = Result<Arc<Vec<Resource>>, Failure>;

/// The discovered kinds with their time, by `apiVersion`. Concurrent readers wait for the same answer.
pub type Discovered = Mutex<HashMap<String, (Timestamp, Listed)>>;

impl Connection {
    /// The plural name of a kind of namespaced objects. A result since `began` is used again, even if it is an error.
    ///
    /// # Errors
    /// The kind is not served, or the discovery failed.
    pub(crate) async fn resource(&self, app: &App, began: Timestamp, now: Timestamp) -> Result<String, Failure> {
        let mut discovered = self.discovered.lock().await;
        let known = discovered.get(&app.api_version).filter(|(at, _)| now - *at < FRESH && *at <= now);
        if let Some((at, listed)) = known {
            match listed {
                Ok(resources) => match find(resources, app) {
                    // The kind may be served by now.
                    Err(why) if *at >= began => return Err(why),
                    Err(_) => {}
                    found => return found,
                },
                Err(why) if *at >= began => return Err(why.clone()),
                Err(_) => {}
            }
        }
        let listed = self.list(&app.api_version).await;
        discovered.insert(app.api_version.clone(), (now, listed.clone()));
        find(listed?.as_ref(), app)
    }

    async fn list(&self, api_version: &str) -> Listed {
        let path = match api_version.split_once('/') {
            Some((group, version)) => format!("/apis/{}/{}", segment(group)?, segment(version)?),
            None => format!("/api/{}", segment(api_version)?),
        };
        let host = self.host();
        let Found::Object(list) = self.get(&path).await? else {
            let why = format!("the API server {host} does not serve {api_version}: correct apiVersion, or install its definitions");
            return Err(Failure::Object(why));
        };
        let Some(resources) = list.get("resources").and_then(Value::as_array) else {
            let why = format!("the API server {host} answers {path} with something that is not a list of resources");
            return Err(Failure::Object(why));
        };
        // Subresources, such as helmreleases/status, have the kind of their object.
        let read = |entry: &Value| Resource::deserialize(entry).ok().filter(|resource| !resource.name.contains('/'));
        Ok(Arc::new(resources.iter().filter_map(read).collect()))
    }
}

fn find(resources: &[Resource], app: &App) -> Result<String, Failure> {
    let App { api_version, kind, .. } = app;
    match resources.iter().find(|resource| resource.kind == *kind) {
        Some(resource) if resource.namespaced => Ok(resource.name.clone()),
        Some(_) => {
            Err(Failure::Object(format!("{kind} of {api_version} has no namespaces: only objects in a namespace are observed")))
        }
        None => Err(Failure::Object(format!(
            "{api_version} has no kind {kind} in this cluster: correct kind, or install its definition"
        ))),
    }
}
