//! Where values come from, and what is asked there.

use crate::border::{Resource, ResourceKind, Unreadable};
use crate::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

/// A source of metrics that a project evaluates by: what a manifest of the kind `MetricsSource` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MetricsSource {
    /// Which API, and how it is reached.
    #[serde(flatten)]
    pub api: MetricsApi,
    /// How long after the end of a window it is asked: metrics arrive late. Absent: none for Prometheus, 90 seconds for CloudWatch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
    /// Whether an administrator of the installation applied it ([`crate::border::Vouched`]). No manifest can set this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub vouched: bool,
}

crate::stored!(MetricsSource);

/// The API of a source of metrics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MetricsApi {
    /// The HTTP API of Prometheus, and of what speaks like it.
    Prometheus(Prometheus),
    /// `GetMetricData` of Amazon CloudWatch.
    Cloudwatch(CloudWatch),
}

/// How a Prometheus is reached.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Prometheus {
    /// The address below which `/api/v1/query` is: `https`, or `http` on this machine.
    pub url: String,
    /// The name of the secret, in the source's namespace, with a token or with a user and a password. Absent: none is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// The region whose Amazon Managed Service for Prometheus this is: requests are signed for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// The role that is assumed for signed requests. Absent: the function's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The external id that the role's trust policy asks for. Absent: it asks for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
}

/// Which CloudWatch is asked.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CloudWatch {
    /// Absent: the installation's region.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// The role that is assumed for requests. Absent: the function's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The external id that the role's trust policy asks for. Absent: it asks for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
}

impl MetricsSource {
    /// How long after the end of a window it is asked.
    pub fn delay(&self) -> Span {
        self.delay.unwrap_or(match self.api {
            MetricsApi::Prometheus(_) => Span::seconds(0),
            MetricsApi::Cloudwatch(_) => Span::seconds(90),
        })
    }

    /// What it uses of the installation, with the field that names it: the server that is asked, and whose metrics are read with
    /// credentials of AWS.
    pub fn resources(&self) -> Vec<(&'static str, Result<Resource, Unreadable>)> {
        match &self.api {
            MetricsApi::Prometheus(Prometheus { url, region, role, .. }) => {
                let mut all = vec![("spec.prometheus.url", Ok(Resource::named(ResourceKind::Servers, url.as_str())))];
                if region.is_some() {
                    let field = if role.is_some() { "spec.prometheus.role" } else { "spec.prometheus.region" };
                    all.push((field, Resource::metrics("prometheus", region.as_deref(), role.as_deref())));
                }
                all
            }
            MetricsApi::Cloudwatch(CloudWatch { region, role, .. }) => {
                let field = if role.is_some() { "spec.cloudwatch.role" } else { "spec.cloudwatch" };
                vec![(field, Resource::metrics("cloudwatch", region.as_deref(), role.as_deref()))]
            }
        }
    }
}

/// A query for the value of an indicator, with its place filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The indicator.
    pub metric: String,
    /// In the source's language.
    pub text: String,
}

/// The time that is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Period {
    /// Its beginning.
    pub start: Timestamp,
    /// Its end, at least a minute later.
    pub end: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLE: &str = "arn:aws:iam::123456789012:role/read-metrics";

    /// What the border asks about: a source that names something of the installation and says nothing of it would get it.
    #[test]
    fn a_source_says_what_it_uses_of_the_installation() {
        let of = |api: MetricsApi| {
            let all = MetricsSource { api, delay: None, vouched: false }.resources();
            all.into_iter().map(|(field, resource)| (field, resource.expect("it can be read"))).collect::<Vec<_>>()
        };
        let prometheus = |region: Option<&str>, role: Option<&str>| {
            let (region, role) = (region.map(str::to_owned), role.map(str::to_owned));
            of(MetricsApi::Prometheus(Prometheus { url: "https://p.test".into(), region, role, ..Prometheus::default() }))
        };
        let server = ("spec.prometheus.url", Resource::named(ResourceKind::Servers, "https://p.test"));
        let metrics = |of: &str, region: Option<&str>, role: Option<&str>| Resource::metrics(of, region, role).expect("a role");
        assert_eq!(prometheus(None, None), std::slice::from_ref(&server), "without a region, nothing is signed");
        let signed = ("spec.prometheus.region", metrics("prometheus", Some("eu-west-1"), None));
        assert_eq!(prometheus(Some("eu-west-1"), None), [server.clone(), signed]);
        let assumed = ("spec.prometheus.role", metrics("prometheus", Some("eu-west-1"), Some(ROLE)));
        assert_eq!(prometheus(Some("eu-west-1"), Some(ROLE)), [server, assumed]);

        let cloudwatch = |region: Option<&str>, role: Option<&str>| {
            let (region, role) = (region.map(str::to_owned), role.map(str::to_owned));
            of(MetricsApi::Cloudwatch(CloudWatch { region, role, ..CloudWatch::default() }))
        };
        assert_eq!(cloudwatch(None, None), [("spec.cloudwatch", metrics("cloudwatch", None, None))]);
        let assumed = ("spec.cloudwatch.role", metrics("cloudwatch", Some("eu-west-1"), Some(ROLE)));
        assert_eq!(cloudwatch(Some("eu-west-1"), Some(ROLE)), [assumed]);
        let unreadable =
            MetricsApi::Cloudwatch(CloudWatch { role: Some("read-metrics of another".into()), ..CloudWatch::default() });
        let asked = MetricsSource { api: unreadable, delay: None, vouched: false }.resources();
        assert!(matches!(&asked[..], [("spec.cloudwatch.role", Err(_))]), "{asked:?}");
    }
}
