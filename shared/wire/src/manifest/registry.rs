//! `kind: Cluster` and `kind: GitHost`: what pipelines refer to.

use super::finding::Report;
use super::levels;
use super::levels::pipelines::{self, HOSTS};
use super::levels::projects::API_VERSION;
use super::objects::{self, Scheme};
use super::tree::Node;
use super::values::{positive, text};
use keelway_domain::names::ProjectName;
use keelway_domain::promotions::registry::{Cluster, GitHost};

/// The beginning of a PEM text in base64.
const BASE64_PEM: &str = "LS0tLS1CRUdJTi";

/// A cluster as its manifest declares it.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "named as the fields of the manifest are")]
pub struct ClusterManifest {
    /// The project; `default` if absent.
    pub namespace: ProjectName,
    pub name: String,
    pub cluster: Cluster,
    /// The text of the document.
    pub source: String,
}

/// A host of repositories as its manifest declares it.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "named as the fields of the manifest are")]
pub struct GitHostManifest {
    pub name: String,
    pub host: GitHost,
    /// The text of the document.
    pub source: String,
}

pub fn cluster(root: &Node, source: &str, report: &mut Report) -> Option<ClusterManifest> {
    levels::check(root, &pipelines::CLUSTER, "", report);
    objects::version(root, "Cluster", API_VERSION, report);
    let metadata = objects::metadata(root, report);
    let name = objects::name(metadata.unwrap_or(root), "metadata", report);
    let namespace = objects::namespace(root, metadata, report);
    let (spec, _) = levels::mapping(root, "spec", &pipelines::CLUSTER_SPEC, "", report)?;
    let server = base(spec, "server", report);
    let ca_data = text(spec, "caData", "spec", report).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    if let Some(ca) = &ca_data
        && !ca.contains("-----BEGIN CERTIFICATE-----")
        && !ca.starts_with(BASE64_PEM)
    {
        let message = "is no certificate: copy `certificate-authority-data` of a kubeconfig, or write the PEM text";
        report.error(spec.get("caData").unwrap_or(spec), "spec.caData", message.into());
    }
    let secret = objects::secret(spec, "secretRef", "spec", report);
    let interval = positive(spec, "interval", "spec", report);
    let cluster = Cluster { server: server?, ca_data, secret: secret?, interval, vouched: false };
    Some(ClusterManifest { namespace: namespace?, name: name?, cluster, source: source.to_owned() })
}

/// The base URL of an API.
fn base(spec: &Node, field: &str, report: &mut Report) -> Option<String> {
    let url = objects::url(spec, field, "spec", Scheme::HttpsOrLoopback, report)?;
    if url.contains(['?', '#']) {
        let message = "has a query or a fragment: write only the base URL";
        report.error(spec.get(field).unwrap_or(spec), format!("spec.{field}"), message.into());
        return None;
    }
    Some(url.trim_end_matches('/').to_owned())
}

pub fn git_host(root: &Node, source: &str, report: &mut Report) -> Option<GitHostManifest> {
    levels::check(root, &pipelines::GIT_HOST, "", report);
    objects::version(root, "GitHost", API_VERSION, report);
    let metadata = objects::metadata(root, report);
    let name = objects::name(metadata.unwrap_or(root), "metadata", report);
    if let Some(at) = metadata.and_then(|metadata| metadata.get("namespace")).filter(|at| !at.is_null()) {
        let message =
            "is ignored: a GitHost belongs to the installation, and its secrets are the installation's, `<stack>/-/<name>`";
        report.warning(at, "metadata.namespace", message.into());
    }
    let (spec, _) = levels::mapping(root, "spec", &pipelines::GIT_HOST_SPEC, "", report)?;
    let host = text(spec, "host", "spec", report).map(|host| host.trim().to_ascii_lowercase()).unwrap_or_default();
    if !objects::is_authority(&host) {
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
    let secret = objects::secret(spec, "secretRef", "spec", report);
    let webhook_secret = objects::secret(spec, "webhookSecretRef", "spec", report);
    let host = GitHost { host, form: form?, api: api?, secret, webhook_secret };
    Some(GitHostManifest { name: name?, host, source: source.to_owned() })
}
