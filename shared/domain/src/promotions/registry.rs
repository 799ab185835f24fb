//! What pipelines refer to by name: clusters whose objects are read, and hosts of repositories.

use crate::time::Span;
use serde::{Deserialize, Serialize};

/// A cluster whose API is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cluster {
    /// The base URL of its Kubernetes API: `https`, or `http` on this machine.
    pub server: String,
    /// The certificates that sign the server's: PEM, or base64 of PEM as in a kubeconfig. Absent: the public ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_data: Option<String>,
    /// Name of the secret with the bearer token, in the cluster's namespace.
    pub secret: String,
    /// How often its objects are read. Absent: the installation's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Span>,
    /// Whether an administrator of the installation applied it: no manifest says so. See [`crate::border::Vouched`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub vouched: bool,
}

/// A host of repositories.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GitHost {
    /// The host as it stands in pipelines' URLs, in lower case, with its port if it has one.
    pub host: String,
    /// `github`, `gitea`, `gitlab` or `bitbucket-server`.
    #[serde(rename = "type")]
    pub form: String,
    /// The base URL of its API: `https`, or `http` on this machine.
    pub api: String,
    /// Name of the secret of the installation with the credentials of those who name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Name of the secret of the installation that signs the host's webhooks. Absent: its webhooks are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook_secret: Option<String>,
}
