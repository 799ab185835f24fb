//! What a project lets others do to what is its own.

use crate::names::ProjectName;
use crate::pattern::matches;
use serde::{Deserialize, Serialize};

/// What somebody else wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Act {
    /// Cut versions of a deployment config, or roll it back.
    Deploy,
    /// Point tags of an artifact source to images.
    Tag,
    /// Learn what a deployment config runs, what a tag points to, or what a cluster's objects say.
    Observe,
    /// Start sequences of a stage, and abort what was started so.
    Trigger,
}

impl Act {
    /// All of them.
    pub const ALL: [Act; 4] = [Act::Deploy, Act::Tag, Act::Observe, Act::Trigger];

    /// As manifests write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Act::Deploy => "deploy",
            Act::Tag => "tag",
            Act::Observe => "observe",
            Act::Trigger => "trigger",
        }
    }
}

impl std::fmt::Display for Act {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One entry of a project's `spec.consents`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Consent {
    /// Who: names of projects and namespaces, with `*` for any text.
    pub to: Vec<String>,
    /// What they may do.
    pub may: Vec<Act>,
    /// To which configs, sources, clusters or stages, by name, with `*` for any text. Empty: all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// Everything that a project consents to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Consents(pub Vec<Consent>);

/// Something in a namespace that somebody may act on: in their own, or in one that has consented. [`Consents::let_in`] makes it for whatever a
/// name leads to; [`Reached::own`] is for those who need not be let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached {
    namespace: String,
    name: String,
}

impl Reached {
    /// For whoever acts in this namespace by right: the token of a request was checked for it, or it is where an event came from. Never for a
    /// namespace that a manifest or an event names: that is what [`Consents::let_in`] is for.
    pub fn own(namespace: &ProjectName, name: impl Into<String>) -> Self {
        Self { namespace: namespace.to_string(), name: name.into() }
    }
    /// The namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }
    /// What in it.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// A namespace has not consented.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "project {namespace} does not let {from} {act} {name}: whoever administers {namespace} adds it to spec.consents of its manifest of kind Project"
)]
pub struct NoConsent {
    /// Who wants to act.
    pub from: String,
    /// Where.
    pub namespace: String,
    /// On what.
    pub name: String,
    /// What is wanted.
    pub act: Act,
}

impl Consents {
    /// Lets `from` act on what is called `name` in `namespace`, whose consents these are.
    ///
    /// # Errors
    /// There is no consent, and who can give it.
    pub fn let_in(&self, from: &str, act: Act, (namespace, name): (&str, &str)) -> Result<Reached, NoConsent> {
        let any = |patterns: &[String], text: &str| patterns.iter().any(|pattern| matches(pattern, text));
        let consents = |consent: &Consent| {
            consent.may.contains(&act) && any(&consent.to, from) && (consent.names.is_empty() || any(&consent.names, name))
        };
        if from == namespace || self.0.iter().any(consents) {
            return Ok(Reached { namespace: namespace.to_owned(), name: name.to_owned() });
        }
        Err(NoConsent { from: from.to_owned(), namespace: namespace.to_owned(), name: name.to_owned(), act })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn consents(text: &str) -> Consents {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn without_a_consent_nobody_else_is_let_in() {
        let none = Consents::default();
        assert_eq!(none.let_in("team-b", Act::Deploy, ("team-b", "api")).unwrap().namespace(), "team-b");
        let refused = none.let_in("team-a", Act::Deploy, ("team-b", "api")).unwrap_err().to_string();
        assert!(refused.starts_with("project team-b does not let team-a deploy api: "), "{refused}");
    }

    #[test]
    fn a_consent_is_for_whom_what_and_which_it_says() {
        let of = consents(r#"[{"to": ["team-a", "shop-*"], "may": ["deploy", "observe"], "names": ["api", "web-*"]}]"#);
        for (from, act, name, fine) in [
            ("team-a", Act::Deploy, "api", true),
            ("shop-eu", Act::Observe, "web-1", true),
            ("team-a", Act::Tag, "api", false),
            ("team-a", Act::Deploy, "payments", false),
            ("team-ab", Act::Deploy, "api", false),
            ("shop", Act::Deploy, "api", false),
        ] {
            assert_eq!(of.let_in(from, act, ("team-b", name)).is_ok(), fine, "{from} {act} {name}");
        }
        assert!(consents(r#"[{"to": ["*"], "may": ["tag"]}]"#).let_in("x", Act::Tag, ("team-b", "any")).is_ok());
    }
}
