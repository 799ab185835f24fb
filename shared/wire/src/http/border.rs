//! What a project says about its border, as the API shows it.

use crate::http::page::page;
use keelway_domain::border::{Consent, Pattern, Policy};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A consent of a project: what others may do there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct ConsentState {
    /// Who: patterns of projects.
    pub to: Vec<String>,
    /// What: `deploy`, `tag`, `observe`, `trigger`.
    pub may: Vec<String>,
    /// Of which configs, sources, clusters and stages, as patterns; absent: of all of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

impl From<&Consent> for ConsentState {
    fn from(of: &Consent) -> Self {
        let may = of.may.iter().map(ToString::to_string).collect();
        Self { to: of.to.clone(), may, names: of.names.clone() }
    }
}

/// What a project may use of the installation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct PolicyState {
    /// Patterns by kind; of a kind that is absent, nothing may be used.
    pub allows: BTreeMap<String, Vec<PatternState>>,
    /// How many of something the project may have, where that is not the default.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub quotas: BTreeMap<String, u32>,
}

impl From<&Policy> for PolicyState {
    fn from(of: &Policy) -> Self {
        let allows = of.allows.iter().map(|(kind, all)| (kind.field().to_owned(), all.iter().map(PatternState::from).collect()));
        let quotas = serde_json::to_value(&of.quotas).and_then(serde_json::from_value).unwrap_or_default();
        Self { allows: allows.collect(), quotas }
    }
}

/// Names of resources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct PatternState {
    /// Of the name: `*` stands for any text, `?` for one character.
    pub name: String,
    /// Of the region; absent: the installation's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Of the account; absent: the installation's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
}

impl From<&Pattern> for PatternState {
    fn from(of: &Pattern) -> Self {
        Self { name: of.name.clone(), region: of.region.clone(), account: of.account.clone() }
    }
}

/// Something that a stored manifest names outside of its namespace, and may not: applied today it would be refused, and what it
/// asks for is not done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct BorderGap {
    /// The kind of the manifest: `Shipyard`, `DeploymentConfig`, `Pipeline`, `Cluster`, `ArtifactSource` or `MetricsSource`.
    pub kind: String,
    /// Its namespace; of a shipyard its project.
    pub namespace: String,
    /// Its name; of a shipyard its project.
    pub name: String,
    /// The field that names it.
    pub field: String,
    /// What is missing: the `consent` of another project, a place in the project's `policy`, the `vouch` of an administrator of the
    /// installation, or `form`: no manifest may say this.
    pub missing: String,
    /// Why, and who may grant it.
    pub detail: String,
    /// The project whose manifest of kind `Project` grants it.
    pub project: String,
    /// The entry of its `spec.consents` that would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consent: Option<ConsentState>,
}

page! {
    /// A page of what stored manifests name and may not: `GET /v1/border`.
    BorderPage of BorderGap, sized "How many manifests a page looks at, at most. It may have any number of gaps.";
    /// What is missing, by kind, namespace and name.
}
