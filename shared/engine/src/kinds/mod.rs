//! The kinds of definitions, one file each: name, partition, entries, and whom a change wakes. Everything else is the same for all
//! kinds: [`crate::protocol::declare`].

mod artifact_source;
mod cluster;
mod deployment_config;
mod git_host;
mod metrics_source;
mod pipeline;
mod webhook_subscription;

pub use artifact_source::ArtifactSources;
pub use cluster::Clusters;
pub use deployment_config::DeploymentConfigs;
pub use git_host::GitHosts;
pub use metrics_source::MetricsSources;
pub use pipeline::Pipelines;
pub use webhook_subscription::WebhookSubscriptions;

use crate::protocol::declare::Shelf;

/// A partition that all namespaces share.
fn shared(partition: &str, namespace: &str) -> Shelf {
    let prefix = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
    Shelf { partition: partition.to_owned(), prefix, namespaces: None }
}
