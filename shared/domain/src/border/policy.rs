//! Policies: which resources of the installation a project may use. Only administrators of the installation write them.

use super::quota::Quotas;
use super::resource::{Home, Resource, ResourceKind};
use crate::pattern::matches;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A pattern for the names of resources: `*` matches any text, `?` one character. The part before the first `/` (a host, a bucket,
/// a cluster) is matched separately, so a `*` in it does not reach beyond the `/`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pattern {
    /// The pattern of the name.
    pub name: String,
    /// The pattern of the region. Absent: only the installation's region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// The pattern of the account. Absent: only the installation's account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
}

impl Pattern {
    /// A pattern of names in the installation's own region and account.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), region: None, account: None }
    }

    fn fits(&self, resource: &Resource, home: &Home) -> bool {
        let place = |pattern: &Option<String>, given: &Option<String>, home: &str| {
            let given = given.as_deref().unwrap_or(home);
            pattern.as_deref().map_or(given == home, |pattern| matches(pattern, given))
        };
        self.names(&resource.name)
            && place(&self.region, &resource.region, &home.region)
            && place(&self.account, &resource.account, &home.account)
    }

    /// Whether the pattern matches a name, wherever the resource is.
    pub(crate) fn names(&self, name: &str) -> bool {
        let (first, rest) = halves(&self.name);
        let (of, further) = halves(name);
        let both = match (rest, further) {
            (None, None) => true,
            (Some(rest), Some(further)) => matches(rest, further),
            _ => false,
        };
        self.name == "*" || both && matches(first, of)
    }
}

/// Splits a name before the first `/` that is not a part of `://`. The second half begins with the `/`.
fn halves(name: &str) -> (&str, Option<&str>) {
    let begin = name.find("://").map_or(0, |at| at + 3);
    match name[begin..].find('/') {
        Some(at) => (&name[..begin + at], Some(&name[begin + at..])),
        None => (name, None),
    }
}

/// Whether a name has only one reading: a URL must not contain parts that lead elsewhere.
fn is_plain(resource: &Resource) -> bool {
    let url = matches!(resource.kind, ResourceKind::Repositories | ResourceKind::Servers);
    let odd = |c: char| "@?#%\\".contains(c) || c.is_control() || c.is_whitespace();
    !(url && (resource.name.contains(odd) || resource.name.split('/').any(|part| [".", ".."].contains(&part))))
}

/// The policy of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Policy {
    /// The patterns of the resources that may be named, by kind. Nothing of an absent kind may be named.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub allows: BTreeMap<ResourceKind, Vec<Pattern>>,
    /// Limits on the number of definitions.
    #[serde(skip_serializing_if = "is_default")]
    pub quotas: Quotas,
}

crate::stored!(Policy);

fn is_default(quotas: &Quotas) -> bool {
    *quotas == Quotas::default()
}

impl Policy {
    /// Whether the policy lists a resource. `home` is the installation's region and account.
    pub fn allows(&self, resource: &Resource, home: &Home) -> bool {
        let listed = |patterns: &Vec<Pattern>| patterns.iter().any(|pattern| pattern.fits(resource, home));
        is_plain(resource) && self.allows.get(&resource.kind).is_some_and(listed)
    }
}

/// The grounds on which a definition may name resources.
#[derive(Debug, Clone, Copy)]
pub struct Standing<'a> {
    /// The project of the definition.
    pub project: &'a str,
    /// The project's policy. If there is one, nothing else counts.
    pub policy: Option<&'a Policy>,
    /// Whether an administrator of the installation applied the definition.
    pub vouched: bool,
    /// The region and account of the installation.
    pub home: &'a Home,
}

/// A resource that a project may use. Only [`Standing::permit`] creates one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permitted(Resource);

impl Permitted {
    /// The permitted resource.
    pub fn resource(&self) -> &Resource {
        &self.0
    }
}

/// The error of a resource that a project may not use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("project {project} may not use {resource}: an administrator of the installation {way}")]
pub struct Denied {
    #[expect(missing_docs, reason = "the name says it")]
    pub project: String,
    /// The resource that the definition names.
    pub resource: Box<Resource>,
    /// How to get permission.
    pub way: String,
}

impl Standing<'_> {
    /// Permits a resource that the policy lists or, without a policy, that an administrator of the installation applied.
    ///
    /// # Errors
    /// What is missing, and who can grant it.
    pub fn permit(&self, resource: Resource) -> Result<Permitted, Denied> {
        let field = resource.kind.field();
        let way = match self.policy {
            Some(policy) if policy.allows(&resource, self.home) => return Ok(Permitted(resource)),
            None if self.vouched => return Ok(Permitted(resource)),
            Some(_) => format!("adds it to spec.policy.allows.{field} of the manifest of kind Project {}", self.project),
            None => format!(
                "applies a manifest of kind Project {} that lists it in spec.policy.allows.{field}, or applies this manifest",
                self.project
            ),
        };
        Err(Denied { project: self.project.to_owned(), resource: Box::new(resource), way })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(text: &str) -> Policy {
        serde_json::from_str(text).unwrap()
    }

    fn function(text: &str) -> Resource {
        Resource::of_aws(ResourceKind::Functions, text).unwrap()
    }

    fn home() -> Home {
        Home { region: "eu-central-1".into(), account: "1".into() }
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
            ("1:function:shop-carts", true),
            ("arn:aws:lambda:eu-central-1:1:function:shop-carts", true),
            ("arn:aws:lambda:eu-west-1:1:function:shop-carts", false),
            ("2:function:shop-carts", false),
            ("edge", true),
            ("arn:aws:lambda:eu-west-1:2:function:edge", true),
            ("arn:aws:lambda:us-east-1:2:function:edge", false),
        ] {
            assert_eq!(of.allows(&function(text), &home()), fine, "{text}");
        }
        assert!(!of.allows(&Resource::named(ResourceKind::HookFunctions, "shop-carts"), &home()), "another kind is not listed");
        assert!(!of.allows(&Resource::named(ResourceKind::Builds, "shop-carts"), &home()), "nothing of this kind is listed");
    }

    #[test]
    fn a_star_in_a_host_stays_in_the_host() {
        let of = policy(
            r#"{"allows": {"images": [{"name": "*.ecr.test/shop/*"}], "repositories": [{"name": "https://git.test/shop/*"}],
                "servers": [{"name": "https://*.k8s.test"}], "packages": [{"name": "*"}], "tasks": [{"name": "?"}], "builds": [{"name": "https://*/x"}]}}"#,
        );
        use ResourceKind::{Builds, Images, Packages, Repositories, Servers, Tasks};
        for (kind, name, fine) in [
            (Images, "1.ecr.test/shop/web", true),
            (Images, "evil.test/x.ecr.test/shop/web", false),
            (Images, "1.ecr.test/other/web", false),
            (Repositories, "https://git.test/shop/web", true),
            (Repositories, "https://git.test/shop/../other/web", false),
            (Repositories, "https://git.test/shop/%2e%2e/other", false),
            (Repositories, "https://git.test/other/shop/web", false),
            (Repositories, "https://x@git.test/shop/web", false),
            (Servers, "https://eu.k8s.test", true),
            (Servers, "https://evil.test/.k8s.test", false),
            (Servers, "http://eu.k8s.test", false),
            (Packages, "bucket/any/key", true),
            // The host has one letter, and the part of the pattern before the slash must match the whole host.
            (Tasks, "t", true),
            (Tasks, "c/t", false),
            (Builds, "https://g/x", true),
            (Builds, "https://g/a/x", false),
        ] {
            assert_eq!(of.allows(&Resource::named(kind, name), &Home::NOWHERE), fine, "{name}");
        }
    }

    #[test]
    fn a_policy_counts_alone_and_without_one_it_is_who_applied() {
        let lists = policy(r#"{"allows": {"functions": [{"name": "shop-*"}]}}"#);
        let home = home();
        let standing = |policy, vouched| Standing { project: "shop", policy, vouched, home: &home };
        assert!(standing(Some(&lists), false).permit(function("shop-a")).is_ok());
        assert!(standing(None, true).permit(function("other")).is_ok());
        let denied = standing(Some(&lists), true).permit(function("other")).unwrap_err().to_string();
        assert!(denied.ends_with("adds it to spec.policy.allows.functions of the manifest of kind Project shop"), "{denied}");
        let denied = standing(None, false).permit(function("other")).unwrap_err().to_string();
        assert!(
            denied.starts_with("project shop may not use function other: an administrator of the installation applies"),
            "{denied}"
        );
    }

    #[test]
    fn a_policy_is_stored_with_its_quotas_if_it_has_any() {
        assert_eq!(serde_json::to_string(&Policy::default()).unwrap(), "{}");
        let limited = policy(r#"{"quotas": {"webhooks": 3}}"#);
        assert_ne!(limited, Policy::default());
        assert_eq!(policy(&serde_json::to_string(&limited).unwrap()), limited);
    }
}
