//! Resources that belong to the installation and not to a project: AWS resources, git hosts and other servers, by the names that
//! manifests give.

#![expect(missing_docs, reason = "names that say what they are need no documentation")]

use super::aws::{self, Named};
use crate::deployments::template::repository;
use serde::{Deserialize, Serialize};

/// A kind of resource, as a policy lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ResourceKind {
    /// Lambda functions whose aliases Keelway moves.
    Functions,
    /// Lambda functions that hooks call.
    HookFunctions,
    /// Packages of code in S3: `<bucket>/<key>`.
    Packages,
    /// Repositories of images, with their registry: `<registry>/<repository>`.
    Images,
    /// Task definitions of ECS, and the clusters they run in: `<cluster>/<family>`.
    Tasks,
    /// Projects of CodeBuild.
    Builds,
    /// Repositories of git hosts, as URLs.
    Repositories,
    /// Servers of the Kubernetes API and of Prometheus, as URLs.
    Servers,
    /// Metrics that are read with credentials of AWS: `cloudwatch` or `prometheus`, and `/<role>` if a role is assumed.
    Metrics,
}

impl ResourceKind {
    /// Every kind.
    pub const ALL: [ResourceKind; 9] = [
        ResourceKind::Functions,
        ResourceKind::HookFunctions,
        ResourceKind::Packages,
        ResourceKind::Images,
        ResourceKind::Tasks,
        ResourceKind::Builds,
        ResourceKind::Repositories,
        ResourceKind::Servers,
        ResourceKind::Metrics,
    ];

    /// The field of the kind in a policy's `spec.allows`.
    pub fn field(self) -> &'static str {
        match self {
            ResourceKind::Functions => "functions",
            ResourceKind::HookFunctions => "hookFunctions",
            ResourceKind::Packages => "packages",
            ResourceKind::Images => "images",
            ResourceKind::Tasks => "tasks",
            ResourceKind::Builds => "builds",
            ResourceKind::Repositories => "repositories",
            ResourceKind::Servers => "servers",
            ResourceKind::Metrics => "metrics",
        }
    }

    /// The singular of the kind, for messages.
    pub fn word(self) -> &'static str {
        match self {
            ResourceKind::Functions => "function",
            ResourceKind::HookFunctions => "hook function",
            ResourceKind::Packages => "package",
            ResourceKind::Images => "image",
            ResourceKind::Tasks => "task",
            ResourceKind::Builds => "build",
            ResourceKind::Repositories => "repository",
            ResourceKind::Servers => "server",
            ResourceKind::Metrics => "source of metrics",
        }
    }

    /// Whether resources of this kind are in a region and an account.
    pub fn has_place(self) -> bool {
        matches!(self, Self::Functions | Self::HookFunctions | Self::Tasks | Self::Builds | Self::Metrics)
    }
}

/// The region and account of the installation, which are the default for names without them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Home {
    pub region: String,
    pub account: String,
}

impl Home {
    /// For kinds without region and account ([`ResourceKind::has_place`]).
    pub const NOWHERE: Home = Home { region: String::new(), account: String::new() };
}

/// The error of a text that is not a known form of a resource's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not the name of a {word}: write its name or its ARN")]
pub struct Unreadable {
    /// The first 200 characters of the text.
    pub text: String,
    word: &'static str,
}

impl Unreadable {
    fn of(kind: ResourceKind, text: &str) -> Self {
        Self { text: text.chars().take(200).collect(), word: kind.word() }
    }
}

/// A resource that a manifest names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource {
    pub kind: ResourceKind,
    /// The name, without region and account.
    pub name: String,
    /// The region. Absent: the installation's.
    pub region: Option<String>,
    /// The account. Absent: the installation's.
    pub account: Option<String>,
}

impl Resource {
    /// A resource in the installation's region and account, or of a kind that has neither.
    pub fn named(kind: ResourceKind, name: impl Into<String>) -> Self {
        Self { kind, name: name.into(), region: None, account: None }
    }

    /// Parses a name, a partial ARN (`<account>:function:<name>`) or an ARN. A version, alias or revision after the name is left
    /// out.
    ///
    /// # Errors
    /// The text has another form: AWS might read it differently from what the policy was asked about.
    pub fn of_aws(kind: ResourceKind, text: &str) -> Result<Self, Unreadable> {
        let found = match kind {
            ResourceKind::Functions | ResourceKind::HookFunctions => aws::function(text),
            ResourceKind::Builds => aws::named(text, "codebuild", "project"),
            ResourceKind::Tasks => return Self::task(None, text),
            ResourceKind::Packages
            | ResourceKind::Images
            | ResourceKind::Repositories
            | ResourceKind::Servers
            | ResourceKind::Metrics => None,
        };
        let Named { name, region, account } = found.ok_or_else(|| Unreadable::of(kind, text))?;
        Ok(Self { kind, name, region, account })
    }

    /// A task definition in the cluster in which it runs, each by name or ARN. The default cluster is `default`, as in ECS.
    ///
    /// # Errors
    /// A text has another form, or the two ARNs name different regions or accounts.
    pub fn task(cluster: Option<&str>, definition: &str) -> Result<Self, Unreadable> {
        let kind = ResourceKind::Tasks;
        let read = |text: &str, ty: &str| aws::named(text, "ecs", ty).ok_or_else(|| Unreadable::of(kind, text));
        let (task, cluster) = (read(definition, "task-definition")?, read(cluster.unwrap_or("default"), "cluster")?);
        let apart = |one: &Option<String>, other: &Option<String>| one.is_some() && other.is_some() && one != other;
        if apart(&task.region, &cluster.region) || apart(&task.account, &cluster.account) {
            return Err(Unreadable::of(kind, definition));
        }
        let (region, account) = (task.region.or(cluster.region), task.account.or(cluster.account));
        Ok(Self { kind, name: format!("{}/{}", cluster.name, task.name), region, account })
    }

    /// Metrics of `cloudwatch` or `prometheus` in a region, read with the function's own credentials or as this role.
    ///
    /// # Errors
    /// The role is no ARN of a role.
    pub fn metrics(of: &str, region: Option<&str>, role: Option<&str>) -> Result<Self, Unreadable> {
        let kind = ResourceKind::Metrics;
        let (name, account) = match role {
            None => (of.to_owned(), None),
            Some(role) => {
                let Named { name, account, .. } = aws::role(role).ok_or_else(|| Unreadable::of(kind, role))?;
                (format!("{of}/{name}"), account)
            }
        };
        Ok(Self { kind, name, region: region.map(str::to_owned), account })
    }

    /// The repository of an image, without tag and digest.
    pub fn image(reference: &str) -> Self {
        Self::named(ResourceKind::Images, repository(reference))
    }

    /// The resource in this region and account, unless its name contains others.
    #[must_use]
    pub fn at(mut self, region: Option<&str>, account: Option<&str>) -> Self {
        self.region = self.region.or_else(|| region.map(str::to_owned));
        self.account = self.account.or_else(|| account.map(str::to_owned));
        self
    }
}

impl std::fmt::Display for Resource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kind.word(), self.name)?;
        match (&self.region, &self.account) {
            (None, None) => Ok(()),
            (region, account) => {
                write!(f, " ({})", [region, account].into_iter().flatten().cloned().collect::<Vec<_>>().join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_partial_arns_and_arns_mean_the_same() {
        use ResourceKind::{Builds, Functions, HookFunctions, Tasks};
        for (kind, text, name, region, account) in [
            (Functions, "payments", "payments", None, None),
            (HookFunctions, "payments:live", "payments", None, None),
            (Functions, "123456789012:payments", "payments", None, Some("123456789012")),
            (Functions, "1:function:payments:live", "payments", None, Some("1")),
            // This is not an account number: it is a function and its alias.
            (Functions, "payments-eu1:live", "payments-eu1", None, None),
            (Functions, "paymentsinEU:live", "paymentsinEU", None, None),
            (Functions, "1:live", "1", None, None),
            (Functions, "arn:aws:lambda:eu-west-1:1:function:payments:$LATEST", "payments", Some("eu-west-1"), Some("1")),
            (Builds, "payments", "payments", None, None),
            (Builds, "arn:aws:codebuild:eu-west-1:1:project/payments", "payments", Some("eu-west-1"), Some("1")),
            (Tasks, "payments:3", "default/payments", None, None),
            (Tasks, "arn:aws:ecs:eu-west-1:1:task-definition/payments:3", "default/payments", Some("eu-west-1"), Some("1")),
        ] {
            let found = Resource::of_aws(kind, text).unwrap();
            assert_eq!((found.name.as_str(), found.region.as_deref(), found.account.as_deref()), (name, region, account), "{text}");
        }
    }

    /// Lambda accepts forms in which a part of these texts is a region or an account.
    #[test]
    fn what_aws_might_read_in_another_way_is_refused() {
        for text in [
            "",
            ":",
            "a:b:c",
            "function:payments",
            "eu-west-1:payments",
            "eu-west-1:1:function:payments",
            "a b",
            "payments/x",
            "arn:aws:lambda:eu-west-1:1:layer:payments",
            "arn:aws:lambda::1:function:payments",
            "arn:aws:s3:::payments",
            "arn:aws:codebuild:eu-west-1:1:project/payments",
            "arn:aws:lambda:eu-west-1:1:function:payments:live:x",
            "1:function:payments:live:x",
            "x:function:payments",
            "arn:aws:lambda:eu-west-1:x:function:payments",
            "*",
        ] {
            let refused = Resource::of_aws(ResourceKind::Functions, text).unwrap_err().to_string();
            assert!(refused.ends_with("is not the name of a function: write its name or its ARN"), "{refused}");
        }
        for region in ["eu-WEST-1", "EU-west-1", "e-west-1", "eur-west-1", "eu-west-12", "eu-west-x", "eu--1", "eu-1", "eu-a-b-c-1"]
        {
            let text = format!("arn:aws:lambda:{region}:1:function:payments");
            assert!(Resource::of_aws(ResourceKind::Functions, &text).is_err(), "{text}");
        }
        for text in [
            "arn:aws:ecs:eu-west-1:1:project/payments",
            "arn:aws:codebuild:eu-west-1:1:project/payments:1:2",
            "payments:1:2",
            "arn:x",
        ] {
            assert!(Resource::of_aws(ResourceKind::Builds, text).is_err(), "{text}");
        }
        assert!(Resource::of_aws(ResourceKind::Images, "payments").is_err());
        assert!(Resource::task(Some("arn:aws:ecs:eu-west-1:1:cluster/c"), "arn:aws:ecs:eu-west-1:1:task-definition/t").is_ok());
        assert!(Resource::task(Some("arn:aws:ecs:eu-west-1:1:cluster/c"), "arn:aws:ecs:eu-west-1:2:task-definition/t").is_err());
    }

    #[test]
    fn what_a_name_leaves_open_is_filled_in_and_nothing_else() {
        let of = |text: &str| Resource::of_aws(ResourceKind::Functions, text).unwrap().at(Some("eu-west-1"), Some("2"));
        assert_eq!(of("payments").to_string(), "function payments (eu-west-1, 2)");
        assert_eq!(of("1:function:payments").account.as_deref(), Some("1"));
        let task = Resource::task(Some("arn:aws:ecs:eu-west-1:1:cluster/c"), "t:3").unwrap();
        assert_eq!(task.to_string(), "task c/t (eu-west-1, 1)");
        assert_eq!(Resource::image("registry.test:5000/shop/web:1@sha256:ab").to_string(), "image registry.test:5000/shop/web");
    }

    #[test]
    fn metrics_are_those_of_an_account_and_of_a_role() {
        let of = |region, role| Resource::metrics("cloudwatch", region, role).unwrap().to_string();
        assert_eq!(of(None, None), "source of metrics cloudwatch");
        assert_eq!(
            of(Some("eu-west-1"), Some("arn:aws:iam::123456789012:role/keelway/metrics")),
            "source of metrics cloudwatch/keelway/metrics (eu-west-1, 123456789012)"
        );
        for role in
            ["metrics", "arn:aws:iam::12:role/a", "arn:aws:iam::123456789012:user/a", "arn:aws:iam::123456789012:role/", "*"]
        {
            assert!(Resource::metrics("cloudwatch", None, Some(role)).is_err(), "{role}");
        }
    }

    #[test]
    fn a_place_tells_apart_what_has_an_arn() {
        use ResourceKind::{Builds, Functions, HookFunctions, Metrics, Tasks};
        let placed: Vec<ResourceKind> = ResourceKind::ALL.into_iter().filter(|kind| kind.has_place()).collect();
        assert_eq!(placed, [Functions, HookFunctions, Tasks, Builds, Metrics]);
    }
}
