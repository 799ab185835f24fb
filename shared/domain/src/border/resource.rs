//! What belongs to the installation and not to a project: things of AWS, git hosts and other servers, by the names that manifests give.

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
    /// Servers of the Kubernetes API, as URLs.
    Servers,
}

impl ResourceKind {
    /// All of them.
    pub const ALL: [ResourceKind; 8] = [
        ResourceKind::Functions,
        ResourceKind::HookFunctions,
        ResourceKind::Packages,
        ResourceKind::Images,
        ResourceKind::Tasks,
        ResourceKind::Builds,
        ResourceKind::Repositories,
        ResourceKind::Servers,
    ];

    /// The member of a policy's `spec.allows`.
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
        }
    }
}

/// A resource as a manifest names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource {
    /// What it is.
    pub kind: ResourceKind,
    /// Its name, without region and account.
    pub name: String,
    /// Its region; absent: the installation's.
    pub region: Option<String>,
    /// Its account; absent: the installation's.
    pub account: Option<String>,
}

impl Resource {
    /// In the installation's region and account, or where nothing of the kind counts.
    pub fn named(kind: ResourceKind, name: impl Into<String>) -> Self {
        Self { kind, name: name.into(), region: None, account: None }
    }

    /// By a name, a partial ARN (`<account>:function:<name>`) or an ARN; what follows the name (a version, an alias, a revision) is left out.
    pub fn of_aws(kind: ResourceKind, text: &str) -> Self {
        let parts: Vec<&str> = text.split(':').collect();
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        match parts[..] {
            // CodeBuild and ECS put the type before the name, with a slash between.
            ["arn", _, service, region, account, resource, ref rest @ ..] => {
                let name = match (service, rest.first()) {
                    ("lambda", Some(name)) => name,
                    _ => resource.split_once('/').map_or(resource, |(_, name)| name),
                };
                Self { kind, name: name.to_owned(), region: some(region), account: some(account) }
            }
            [account, "function", name, ..] => {
                Self { kind, name: name.to_owned(), region: None, account: some(account) }
            }
            [name, ..] => Self::named(kind, name),
            [] => Self::named(kind, text),
        }
    }

    /// The same in this region and account, where it names none itself.
    #[must_use]
    pub fn at(mut self, region: Option<&str>, account: Option<&str>) -> Self {
        self.region = self.region.or_else(|| region.map(str::to_owned));
        self.account = self.account.or_else(|| account.map(str::to_owned));
        self
    }
}

impl std::fmt::Display for Resource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let word = match self.kind {
            ResourceKind::Functions => "function",
            ResourceKind::HookFunctions => "hook function",
            ResourceKind::Packages => "package",
            ResourceKind::Images => "image",
            ResourceKind::Tasks => "task",
            ResourceKind::Builds => "build",
            ResourceKind::Repositories => "repository",
            ResourceKind::Servers => "server",
        };
        write!(f, "{word} {}", self.name)?;
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
    fn names_partial_arns_and_arns_mean_the_same_function() {
        for (text, name, region, account) in [
            ("payments", "payments", None, None),
            ("payments:live", "payments", None, None),
            ("123456789012:function:payments:live", "payments", None, Some("123456789012")),
            ("arn:aws:lambda:eu-west-1:123456789012:function:payments:7", "payments", Some("eu-west-1"), Some("123456789012")),
            ("arn:aws:codebuild:eu-west-1:1:project/payments", "payments", Some("eu-west-1"), Some("1")),
            ("arn:aws:ecs:eu-west-1:1:task-definition/payments:3", "payments", Some("eu-west-1"), Some("1")),
        ] {
            let found = Resource::of_aws(ResourceKind::Functions, text);
            assert_eq!((found.name.as_str(), found.region.as_deref(), found.account.as_deref()), (name, region, account), "{text}");
        }
    }

    #[test]
    fn what_a_name_leaves_open_is_filled_in_and_nothing_else() {
        let of = |text: &str| Resource::of_aws(ResourceKind::Functions, text).at(Some("eu-west-1"), Some("2"));
        assert_eq!(of("payments").to_string(), "function payments (eu-west-1, 2)");
        assert_eq!(of("1:function:payments").account.as_deref(), Some("1"));
    }
}
