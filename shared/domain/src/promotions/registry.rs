//! Clusters and git hosts, to which pipelines refer by name.

use crate::time::Span;
use serde::{Deserialize, Serialize};

/// A cluster whose Kubernetes API is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cluster {
    /// The base URL of its Kubernetes API: `https`, or `http` on this machine.
    pub server: String,
    /// The certificates that sign the server's: PEM, or base64 of PEM as in a kubeconfig. Absent: the public authorities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_data: Option<String>,
    /// The name of the secret with the bearer token, in the cluster's namespace.
    pub secret: String,
    /// How often its objects are read. Absent: the installation's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Span>,
    /// Whether an administrator of the installation applied it ([`crate::border::Vouched`]). No manifest can set this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub vouched: bool,
}

crate::stored!(Cluster);

/// A git host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GitHost {
    /// The host in the URLs of pipelines, in lower case, with its port if it has one.
    pub host: String,
    /// `github`, `gitea`, `gitlab` or `bitbucket-server`.
    #[serde(rename = "type")]
    pub form: String,
    /// The base URL of its API: `https`, or `http` on this machine.
    pub api: String,
    /// The name of the installation's secret with the credentials for pipelines that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// The name of the installation's secret that signs the host's webhooks. Absent: its webhooks are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook_secret: Option<String>,
}

crate::stored!(GitHost);
