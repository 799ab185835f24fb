//! `kind: MetricsSource`: where the values of evaluations come from.

use super::finding::Report;
use super::levels::projects::API_VERSION;
use super::levels::{self, metrics_sources};
use super::objects::{self, Scheme};
use super::tree::Node;
use super::values::{duration, text};
use keelway_domain::border::Resource;
use keelway_domain::evaluation::{CloudWatch, MetricsApi, MetricsSource, Prometheus};
use keelway_domain::names::ProjectName;
use keelway_domain::time::Span;

/// The longest delay: an evaluation waits for it.
const LONGEST_DELAY: Span = Span::minutes(60);
/// The longest external id that `AssumeRole` takes.
const LONGEST_EXTERNAL_ID: usize = 1224;

/// A source of metrics as its manifest declares it.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "named as the fields of the manifest are")]
pub struct MetricsSourceManifest {
    /// The project; `default` if absent.
    pub namespace: ProjectName,
    pub name: String,
    pub metrics: MetricsSource,
    /// The text of the document.
    pub source: String,
}

pub fn read(root: &Node, source: &str, report: &mut Report) -> Option<MetricsSourceManifest> {
    levels::check(root, &metrics_sources::SOURCE, "", report);
    objects::version(root, "MetricsSource", API_VERSION, report);
    let metadata = objects::metadata(root, report);
    let name = objects::name(metadata.unwrap_or(root), "metadata", report);
    let namespace = objects::namespace(root, metadata, report);
    let (spec, path) = levels::mapping(root, "spec", &metrics_sources::SPEC, "", report)?;
    let path = path.trim_start_matches('.');
    let named: Vec<&str> = ["prometheus", "cloudwatch"].into_iter().filter(|name| spec.get(name).is_some()).collect();
    let api = match named[..] {
        ["prometheus"] => prometheus(spec, path, report).map(MetricsApi::Prometheus),
        ["cloudwatch"] => cloudwatch(spec, path, report).map(MetricsApi::Cloudwatch),
        _ => {
            let message = "says nothing, or too much, about where metrics come from: write one of `prometheus` and `cloudwatch`";
            report.error(spec, path, message.into());
            None
        }
    };
    let delay = duration(spec, "delay", path, report);
    if delay.is_some_and(|delay| delay > LONGEST_DELAY) {
        let message = "is too long: evaluations wait for it; write at most 1h";
        report.error(spec.get("delay").unwrap_or(spec), format!("{path}.delay"), message.into());
    }
    let metrics = MetricsSource { api: api?, delay, vouched: false };
    Some(MetricsSourceManifest { namespace: namespace?, name: name?, metrics, source: source.to_owned() })
}

fn prometheus(spec: &Node, path: &str, report: &mut Report) -> Option<Prometheus> {
    let Some((node, path)) = levels::mapping(spec, "prometheus", &metrics_sources::PROMETHEUS, path, report) else {
        let message = "is empty: write `url` below it";
        report.error(spec.get("prometheus").unwrap_or(spec), format!("{path}.prometheus"), message.into());
        return None;
    };
    let url = base(node, &path, report);
    let secret = secret(node, &path, report);
    let Caller { region, role, external_id } = caller(node, &path, report);
    let mut refuse =
        |field: &str, message: String| report.error(node.get(field).unwrap_or(node), format!("{path}.{field}"), message);
    if region.is_some() && secret.is_some() {
        refuse("secret", "goes with requests that are not signed: leave it out, or leave out `region`".into());
    }
    if region.is_none() && role.is_some() {
        refuse("role", "is assumed for signed requests only: write the workspace's `region`, too".into());
    }
    let url = url?;
    let host = url.split("://").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
    match &region {
        // Whoever signs a request for another server tells that server who they are.
        Some(region) if !objects::is_loopback(host) && !is_workspace(host, region) => {
            let message = format!(
                "is no address of Amazon Managed Service for Prometheus in {region}, and `region` has requests signed for it: write \
                 `https://aps-workspaces.{region}.amazonaws.com/workspaces/…`, or leave out `region`"
            );
            refuse("url", message);
        }
        None if host.contains("aps-workspaces") => {
            let message = "takes signed requests only: write the workspace's `region` beside it".to_owned();
            report.warning(node.get("url").unwrap_or(node), format!("{path}.url"), message);
        }
        _ => {}
    }
    Some(Prometheus { url, secret, region, role, external_id })
}

/// Whether a host is that of workspaces in a region: public, FIPS, dual-stack, or the endpoint of a VPC.
fn is_workspace(host: &str, region: &str) -> bool {
    let ends = [".amazonaws.com", ".amazonaws.com.cn", ".api.aws"];
    let service = host.split('.').any(|label| ["aps-workspaces", "aps-workspaces-fips"].contains(&label));
    service && host.contains(&format!(".{region}.")) && ends.iter().any(|end| host.ends_with(end))
}

/// The base URL of an API.
fn base(node: &Node, path: &str, report: &mut Report) -> Option<String> {
    let url = objects::url(node, "url", path, Scheme::HttpsOrLoopback, report)?;
    let url = url.trim_end_matches('/');
    let wrong = match url {
        _ if url.contains(['?', '#']) => Some("has a query or a fragment: write only the base URL"),
        _ if url.ends_with("/api/v1/query") || url.ends_with("/api/v1") => {
            Some("is the address of a call: write the base URL, without `/api/v1`")
        }
        _ => None,
    };
    if let Some(wrong) = wrong {
        report.error(node.get("url").unwrap_or(node), format!("{path}.url"), wrong.into());
        return None;
    }
    Some(url.to_owned())
}

fn secret(node: &Node, path: &str, report: &mut Report) -> Option<String> {
    let name = text(node, "secret", path, report)?;
    if !objects::is_name(&name, 253) {
        let message = format!(
            "{name:?} is not the name of a secret: use at most 253 lower-case letters, digits, `-` and `.`, without its namespace"
        );
        report.error(node.get("secret").unwrap_or(node), format!("{path}.secret"), message);
    }
    Some(name)
}

fn cloudwatch(spec: &Node, path: &str, report: &mut Report) -> Option<CloudWatch> {
    let Some((node, path)) = levels::mapping(spec, "cloudwatch", &metrics_sources::CLOUDWATCH, path, report) else {
        let message = "is empty: write `cloudwatch: {}` for the metrics of the installation's own account";
        report.error(spec.get("cloudwatch").unwrap_or(spec), format!("{path}.cloudwatch"), message.into());
        return None;
    };
    let Caller { region, role, external_id } = caller(node, &path, report);
    Some(CloudWatch { region, role, external_id })
}

/// Where signed requests go, and in whose name.
struct Caller {
    region: Option<String>,
    role: Option<String>,
    external_id: Option<String>,
}

fn caller(node: &Node, path: &str, report: &mut Report) -> Caller {
    let region = text(node, "region", path, report).filter(|region| !region.is_empty());
    let letters = |region: &str| region.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if let Some(region) = region.as_ref().filter(|region| !letters(region) || region.matches('-').count() < 2) {
        let message = format!("{region:?} is not a region: write it like `eu-central-1`, or leave it out");
        report.error(node.get("region").unwrap_or(node), format!("{path}.region"), message);
    }
    let role = text(node, "role", path, report).filter(|role| !role.is_empty());
    if let Some(role) = role.as_ref().filter(|role| Resource::metrics("", None, Some(role)).is_err()) {
        let message = format!("{role:?} is not the ARN of a role: write it like `arn:aws:iam::123456789012:role/keelway-metrics`");
        report.error(node.get("role").unwrap_or(node), format!("{path}.role"), message);
    }
    let external_id = text(node, "externalId", path, report).filter(|id| !id.is_empty());
    if let Some(id) = &external_id {
        let letters = |c: char| c.is_ascii_alphanumeric() || "_+=,.@:/-".contains(c);
        let wrong = match () {
            () if role.is_none() => Some("is told to a role's account: write the `role` beside it".to_owned()),
            () if !(2..=LONGEST_EXTERNAL_ID).contains(&id.len()) || !id.chars().all(letters) => Some(format!(
                "{id:?} is no external id: use 2 to {LONGEST_EXTERNAL_ID} letters, digits and characters of `_+=,.@:/-`"
            )),
            () => None,
        };
        if let Some(message) = wrong {
            report.error(node.get("externalId").unwrap_or(node), format!("{path}.externalId"), message);
        }
    }
    Caller { region, role, external_id }
}
