//! What a project may use of what belongs to the installation. Only administrators of the installation write it.

use super::resource::{Resource, ResourceKind};
use crate::deployments::registry::matches;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Names of resources: `*` stands for any text, `?` for one character.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pattern {
    /// Of the name.
    pub name: String,
    /// Of the region. Absent: the installation's own, and whatever names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Of the account. Absent: the installation's own, and whatever names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
}

impl Pattern {
    /// Of names in the installation's region and account.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), region: None, account: None }
    }

    fn fits(&self, resource: &Resource) -> bool {
        let part = |pattern: &Option<String>, given: &Option<String>| match (pattern, given) {
            // What names no place is in the installation's own, which every pattern without one means.
            (None, None) => true,
            (Some(pattern), Some(given)) => matches(pattern, given),
            (None, Some(_)) | (Some(_), None) => pattern.as_deref() == Some("*"),
        };
        matches(&self.name, &resource.name) && part(&self.region, &resource.region) && part(&self.account, &resource.account)
    }
}

/// How much of what all projects share one of them may have. What is absent is the default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Quotas {
    /// Webhook subscriptions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhooks: Option<u32>,
    /// Registrations of executors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub integrations: Option<u32>,
    /// Pipelines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pipelines: Option<u32>,
    /// Deployment configs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment_configs: Option<u32>,
    /// Schedules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedules: Option<u32>,
}

impl Quotas {
    /// Webhook subscriptions: a quarter of what the installation takes, unless the policy says otherwise.
    pub fn webhooks(&self) -> u32 {
        self.webhooks.unwrap_or(50)
    }
    /// Registrations of executors.
    pub fn integrations(&self) -> u32 {
        self.integrations.unwrap_or(250)
    }
    /// Pipelines.
    pub fn pipelines(&self) -> u32 {
        self.pipelines.unwrap_or(500)
    }
    /// Deployment configs.
    pub fn deployment_configs(&self) -> u32 {
        self.deployment_configs.unwrap_or(500)
    }
    /// Schedules.
    pub fn schedules(&self) -> u32 {
        self.schedules.unwrap_or(200)
    }
}

/// A project's policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Policy {
    /// What may be named. A kind that is absent: nothing of it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub allows: BTreeMap<ResourceKind, Vec<Pattern>>,
    /// How much there may be.
    #[serde(skip_serializing_if = "is_default")]
    pub quotas: Quotas,
}

fn is_default(quotas: &Quotas) -> bool {
    *quotas == Quotas::default()
}

impl Policy {
    /// Whether a resource is listed.
    pub fn allows(&self, resource: &Resource) -> bool {
        self.allows.get(&resource.kind).is_some_and(|patterns| patterns.iter().any(|pattern| pattern.fits(resource)))
    }
}

/// What a definition rests on when it names resources.
#[derive(Debug, Clone, Copy)]
pub struct Standing<'a> {
    /// The project whose definition it is.
    pub project: &'a str,
    /// Its policy, if there is one. Then nothing else counts.
    pub policy: Option<&'a Policy>,
    /// Whether an administrator of the installation applied the definition.
    pub vouched: bool,
}

/// A resource that a project may use. Only [`Standing::permit`] makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permitted(Resource);

impl Permitted {
    /// The resource.
    pub fn resource(&self) -> &Resource {
        &self.0
    }
}

/// A project may not use a resource.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("project {project} may not use {resource}: an administrator of the installation {way}")]
pub struct Denied {
    /// The project.
    pub project: String,
    /// What it named.
    pub resource: Resource,
    /// How it can be allowed.
    pub way: String,
}

impl Standing<'_> {
    /// Permits a resource that the policy lists, or, without a policy, that an administrator of the installation applied.
    ///
    /// # Errors
    /// What is missing, and who may grant it.
    pub fn permit(&self, resource: Resource) -> Result<Permitted, Denied> {
        let field = resource.kind.field();
        let way = match self.policy {
            Some(policy) if policy.allows(&resource) => return Ok(Permitted(resource)),
            None if self.vouched => return Ok(Permitted(resource)),
            Some(_) => format!("adds it to spec.policy.allows.{field} of the manifest of kind Project {}", self.project),
            None => format!(
                "applies a manifest of kind Project {} that lists it in spec.policy.allows.{field}, or applies this manifest",
                self.project
            ),
        };
        Err(Denied { project: self.project.to_owned(), resource, way })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(text: &str) -> Policy {
        serde_json::from_str(text).unwrap()
    }

    fn function(text: &str) -> Resource {
        Resource::of_aws(ResourceKind::Functions, text)
    }

    #[test]
    fn a_policy_lists_names_by_region_and_account() {
        let of = policy(
            r#"{"allows": {"functions": [{"name": "shop-*"}, {"name": "edge", "region": "eu-*", "account": "*"}], "builds": []}}"#,
        );
        for (text, fine) in [
            ("shop-carts", true),
            ("shop-carts:live", true),
            ("payments", false),
            ("shop", false),
            ("arn:aws:lambda:eu-west-1:2:function:shop-carts", false),
            ("arn:aws:lambda:eu-west-1:2:function:edge", true),
            ("arn:aws:lambda:us-east-1:2:function:edge", false),
        ] {
            assert_eq!(of.allows(&function(text)), fine, "{text}");
        }
        assert!(!of.allows(&Resource::named(ResourceKind::HookFunctions, "shop-carts")), "another kind is not listed");
    }

    #[test]
    fn a_policy_counts_alone_and_without_one_it_is_who_applied() {
        let lists = policy(r#"{"allows": {"functions": [{"name": "shop-*"}]}}"#);
        let standing = |policy, vouched| Standing { project: "shop", policy, vouched };
        assert!(standing(Some(&lists), false).permit(function("shop-a")).is_ok());
        assert!(standing(None, true).permit(function("other")).is_ok());
        let denied = standing(Some(&lists), true).permit(function("other")).unwrap_err().to_string();
        assert!(denied.ends_with("adds it to spec.policy.allows.functions of the manifest of kind Project shop"), "{denied}");
        let denied = standing(None, false).permit(function("other")).unwrap_err().to_string();
        assert!(denied.starts_with("project shop may not use function other: an administrator of the installation applies"), "{denied}");
    }
}
