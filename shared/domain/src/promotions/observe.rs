//! Observations of targets, and what they mean for an environment.

use super::definition::{Compare, EnvironmentSpec, Target};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The newest observation of a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// The revision that the target runs. `None`: it does not report one.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Whether it is healthy on the generation that was requested.
    #[serde(rename = "h", default)]
    pub ready: bool,
    /// Why the target cannot be read. Nothing else is known then.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When it was observed.
    #[serde(rename = "t")]
    pub at: Timestamp,
    /// The identities of the revision's authors, if known: who reported the revision first, or had it deployed.
    #[serde(rename = "b", default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<String>,
}

crate::stored!(Observed);

impl Observed {
    /// The observation that replaces an earlier one. A report of the same revision keeps the authors of the first report.
    pub fn after(self, earlier: Option<&Self>) -> Self {
        let same = earlier.filter(|earlier| earlier.revision.is_some() && earlier.revision == self.revision);
        Self { by: same.map_or(self.by, |earlier| earlier.by.clone()), ..self }
    }
}

/// The authors of the revision that the targets of an environment run, if known.
pub fn authors(environment: &EnvironmentSpec, observations: &Observations) -> Vec<String> {
    let all = environment.targets.iter().filter_map(|target| observations.get(target)).flat_map(|observed| &observed.by);
    all.collect::<BTreeSet<_>>().into_iter().cloned().collect()
}

/// The newest observations of a pipeline's targets.
pub type Observations = BTreeMap<Target, Observed>;

/// The state of the first environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum First<'a> {
    /// A target cannot be read.
    Unknown(String),
    /// The targets run different revisions.
    Mixed,
    /// All targets run this revision, but not all are healthy.
    Unready(&'a str),
    /// All targets run this revision and are healthy.
    Current(&'a str),
}

/// The state of a later environment with regard to a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Later {
    /// A target cannot be read.
    Unknown(String),
    /// All targets run it and are healthy.
    Healthy,
    /// All targets run it, but not all are healthy.
    Unready,
    /// Some targets run it.
    Partly,
    /// No target runs it.
    Absent,
}

/// Why not all targets of an environment can be read. `None`: they can.
pub fn unreadable(environment: &EnvironmentSpec, observations: &Observations) -> Option<String> {
    environment.targets.iter().find_map(|target| match observations.get(target) {
        None => Some(format!("nothing has been reported about {target} yet")),
        Some(observed) => observed.error.as_ref().map(|error| format!("{target}: {error}")),
    })
}

/// The state of the first environment. Different revisions are reported before bad health.
pub fn first<'a>(environment: &EnvironmentSpec, observations: &'a Observations, compare: Compare) -> First<'a> {
    if let Some(error) = unreadable(environment, observations) {
        return First::Unknown(error);
    }
    let mut all = environment.targets.iter().filter_map(|target| observations.get(target));
    let Some(revision) = all.clone().next().and_then(|observed| observed.revision.as_deref()) else { return First::Mixed };
    if !all.clone().all(|observed| observed.revision.as_deref().is_some_and(|other| compare.same(other, revision))) {
        return First::Mixed;
    }
    if all.all(|observed| observed.ready) { First::Current(revision) } else { First::Unready(revision) }
}

/// The state of a later environment.
pub fn later(environment: &EnvironmentSpec, observations: &Observations, revision: &str, compare: Compare) -> Later {
    if let Some(error) = unreadable(environment, observations) {
        return Later::Unknown(error);
    }
    let all: Vec<&Observed> = environment.targets.iter().filter_map(|target| observations.get(target)).collect();
    let runs = |observed: &&&Observed| observed.revision.as_deref().is_some_and(|other| compare.same(other, revision));
    match all.iter().filter(runs).count() {
        0 => Later::Absent,
        n if n < all.len() => Later::Partly,
        _ if all.iter().all(|observed| observed.ready) => Later::Healthy,
        _ => Later::Unready,
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.cluster {
            Some(cluster) => write!(f, "{} in cluster {cluster}", self.namespace),
            None => f.write_str(&self.namespace),
        }
    }
}
