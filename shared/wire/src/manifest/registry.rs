//! `kind: Cluster` and `kind: GitHost`: what pipelines refer to.

use super::fields::{self, Level};
use super::finding::Report;
use super::project::{API_VERSION, mapping, positive, text};
use super::promotion::HOSTS;
use super::tree::Node;
use super::values::{self, Scheme};
use keelway_domain::names::ProjectName;
use keelway_domain::promotions::registry::{Cluster, GitHost};

/// How PEM begins once it is base64.
const BASE64_PEM: &str = "LS0tLS1CRUdJTi";

/// A cluster as its manifest declares it.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterManifest {
    /// `metadata.namespace`: the project; `default` if absent.
    pub namespace: ProjectName,
    /// `metadata.name`
    pub name: String,
    /// How it is reached.
    pub cluster: Cluster,
    /// The document as it was written.
    pub source: String,
}

/// A host of repositories as its manifest declares it.
#[derive(Debug, Clone, PartialEq)]
pub struct GitHostManifest {
    /// `metadata.name`
    pub name: String,
    /// How it is reached.
    pub host: GitHost,
    /// The document as it was written.
    pub source: String,
}

pub fn cluster(root: &Node, source: &str, report: &mut Report) -> Option<ClusterManifest> {
    fields::check(root, Level::Cluster, "", report);
    values::version(root, "Cluster", API_VERSION, report);
    let metadata = values::metadata(root, report);
    let name = values::name(metadata.unwrap_or(root), "metadata", report);
    let namespace = values::namespace(root, metadata, report);
    let Some(spec) = mapping(root, "spec", "spec", report) else {
        report.error(root.get("spec").unwrap_or(root), "spec", "is missing: write `spec:` with `server` and `secretRef`".into());
        return None;
    };
    fields::check(spec, Level::ClusterSpec, "spec", report);
    let server = base(spec, "server", report);
    let ca_data = text(spec, "caData", "spec", report).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    if let Some(ca) = &ca_data
        && !ca.contains("-----BEGIN CERTIFICATE-----")
        && !ca.starts_with(BASE64_PEM)
    {
        let message = "is no certificate: copy `certificate-authority-data` of a kubeconfig, or write the PEM text";
        report.error(spec.get("caData").unwrap_or(spec), "spec.caData", message.into());
    }
    let secret = values::secret(spec, "secretRef", "spec", report);
    if spec.get("secretRef").is_none_or(Node::is_null) {
        let message = "is missing: name the secret with the cluster's bearer token, `secretRef: {name: …}`";
        report.error(spec, "spec.secretRef", message.into());
    }
    let interval = positive(spec, "interval", "spec", report);
    let cluster = Cluster { server: server?, ca_data, secret: secret?, interval, vouched: false };
    Some(ClusterManifest { namespace: namespace?, name: name?, cluster, source: source.to_owned() })
}

/// The base URL of an API.
fn base(spec: &Node, field: &str, report: &mut Report) -> Option<String> {
    let url = values::url(spec, field, "spec", Scheme::HttpsOrLoopback, report)?;
    if url.contains(['?', '#']) {
        let message = "has a query or a fragment: write only the base URL";
        report.error(spec.get(field).unwrap_or(spec), format!("spec.{field}"), message.into());
        return None;
    }
    Some(url.trim_end_matches('/').to_owned())
}

pub fn git_host(root: &Node, source: &str, report: &mut Report) -> Option<GitHostManifest> {
    fields::check(root, Level::GitHost, "", report);
    values::version(root, "GitHost", API_VERSION, report);
    let metadata = values::metadata(root, report);
    let name = values::name(metadata.unwrap_or(root), "metadata", report);
    if let Some(at) = metadata.and_then(|metadata| metadata.get("namespace")).filter(|at| !at.is_null()) {
        let message =
            "is ignored: a GitHost belongs to the installation, and its secrets are the installation's, `<stack>/-/<name>`";
        report.warning(at, "metadata.namespace", message.into());
    }
    let Some(spec) = mapping(root, "spec", "spec", report) else {
        let message = "is missing: write `spec:` with `host`, `type` and `api`";
        report.error(root.get("spec").unwrap_or(root), "spec", message.into());
        return None;
    };
    fields::check(spec, Level::GitHostSpec, "spec", report);
    let host = text(spec, "host", "spec", report).map(|host| host.trim().to_ascii_lowercase()).unwrap_or_default();
    if !values::is_authority(&host) {
        let what = if host.is_empty() { "is missing".to_owned() } else { format!("{host:?} is not a host name") };
        let message = format!("{what}: write it as in the URLs of pipelines, for example `github.com`");
        report.error(spec.get("host").unwrap_or(spec), "spec.host", message);
    }
    let given = text(spec, "type", "spec", report).unwrap_or_default();
    let form = HOSTS.iter().find(|(name, _)| *name == given).map(|(_, form)| (*form).to_owned());
    if form.is_none() {
        let what = if given.is_empty() { "is missing".to_owned() } else { format!("{given:?} is not a host that is known here") };
        let names = HOSTS.map(|(name, _)| name).join("`, `");
        report.error(spec.get("type").unwrap_or(spec), "spec.type", format!("{what}: write one of `{names}`"));
    }
    let api = base(spec, "api", report);
    let secret = values::secret(spec, "secretRef", "spec", report);
    let webhook_secret = values::secret(spec, "webhookSecretRef", "spec", report);
    let host = GitHost { host, form: form?, api: api?, secret, webhook_secret };
    Some(GitHostManifest { name: name?, host, source: source.to_owned() })
}
