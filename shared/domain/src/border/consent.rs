//! Consents: what a project lets other projects do with its own definitions and stages.

use crate::names::ProjectName;
use crate::pattern::matches;
use serde::{Deserialize, Serialize};

/// An action on what belongs to another project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Act {
    /// Cut versions of a deployment config, and roll it back.
    Deploy,
    /// Point tags of an artifact source to images.
    Tag,
    /// Read what a deployment config runs, what a tag points to, or what a cluster's objects report.
    Observe,
    /// Start sequences in a stage, and abort those.
    Trigger,
}

impl Act {
    /// Every action.
    pub const ALL: [Act; 4] = [Act::Deploy, Act::Tag, Act::Observe, Act::Trigger];

    /// The name that manifests use.
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
    /// The projects and namespaces that get the consent; `*` matches any text.
    pub to: Vec<String>,
    /// The actions that they may perform.
    pub may: Vec<Act>,
    /// The configs, sources, clusters or stages that the consent covers; `*` matches any text. Empty: all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// All consents of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Consents(pub Vec<Consent>);

crate::stored!(Consents);

/// A name in a namespace on which the caller may act. [`Consents::let_in`] returns one if the namespace has consented;
/// [`Reached::own`] is for callers that act in their own namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached {
    namespace: String,
    name: String,
}

impl Reached {
    /// For a caller that acts in its own namespace: the token of the request was checked for the namespace, or the event came from
    /// it. Names that come from a manifest or from an event's data must pass [`Consents::let_in`] instead.
    pub fn own(namespace: &ProjectName, name: impl Into<String>) -> Self {
        Self { namespace: namespace.to_string(), name: name.into() }
    }
    /// The namespace that was reached.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }
    /// The name in the namespace.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The error of an action to which a namespace has not consented.
#[expect(missing_docs, reason = "the names of the fields say what they are")]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "project {namespace} does not let {from} {act} {name}: whoever administers {namespace} adds it to spec.consents of its manifest of kind Project"
)]
pub struct NoConsent {
    pub from: String,
    pub namespace: String,
    pub name: String,
    pub act: Act,
}

impl Consents {
    /// Lets `from` act on `name` in `namespace`; `self` are the consents of that namespace.
    ///
    /// # Errors
    /// The namespace has not consented; the error says who can.
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
