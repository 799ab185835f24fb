//! Reads what the targets of a config serve, and sends the result to the config, which decides whether that is drift, and what
//! follows.

use super::aliases::Seen;
use super::step::Step;
use crate::aliases::Alias;
use crate::deployments::{Address, Deployments};
use crate::ports::{PortError, Ports};
use keelway_domain::deployments::checkpoint::{Checkpoint, Place};
use keelway_domain::deployments::definition::Definition;
use keelway_domain::deployments::{Config, Served, Sight, plan};
use keelway_domain::time::Timestamp;
use std::collections::BTreeMap;

/// A deployed version, with its targets.
pub struct Deployed {
    n: u64,
    pub definition: Definition,
    places: BTreeMap<String, Place>,
}

impl Deployed {
    /// The active version of a config. `None`: there is none, or its record lacks the targets.
    pub async fn active<P: Ports>(engine: &Deployments<P>, of: &Address, x: &Config) -> Result<Option<Self>, PortError> {
        let Some(n) = x.active.as_ref().map(|active| active.n) else { return Ok(None) };
        let Ok(Some((past, snapshot))) = engine.ended(of, n).await? else { return Ok(None) };
        Ok(Some(Self { n, definition: snapshot.definition, places: Checkpoint::of(&past.deployment).aliases }))
    }

    /// What the targets serve beside what was deployed. `None`: there is nothing to report.
    fn sight(&self, x: &Config, at: Timestamp, seen: impl Iterator<Item = (String, String)>) -> Option<Sight> {
        let places: BTreeMap<String, Served> =
            seen.filter_map(|(name, serves)| Some((name.clone(), Served { expected: self.expected(&name)?, serves }))).collect();
        let differs = places.values().any(|served| served.serves != served.expected);
        let known = !x.watch.drifted.is_empty();
        (!places.is_empty() && (differs || known)).then_some(Sight { n: self.n, at, places })
    }

    /// What a target should serve. After a test, that is the version before.
    fn expected(&self, target: &str) -> Option<String> {
        let place = self.places.get(target)?;
        let version = if plan::is_test(&self.definition) { place.from.clone()? } else { place.to.clone() };
        Some(version).filter(|version| !version.is_empty())
    }
}

/// The result for an idle config. Aliases that must not be read now are skipped.
///
/// # Errors
/// A temporary error of Lambda.
pub fn at_rest(deployed: &Deployed, x: &Config, at: Timestamp, seen: Seen) -> Result<Option<Sight>, PortError> {
    let mut serves = vec![];
    for (name, found) in seen {
        match found {
            Ok(found) => serves.push((name, found.as_ref().map(words).unwrap_or_default())),
            Err(error) if error.passes() => return Err(error),
            Err(error) => tracing::warn!(target = name, %error, "what a target serves cannot be seen"),
        }
    }
    Ok(deployed.sight(x, at, serves.into_iter()))
}

/// The result at the beginning of a deployment.
pub fn at_start(deployed: &Deployed, x: &Config, step: &Step) -> Option<Sight> {
    let same = |name: &String| {
        let of = |definition: &Definition| definition.targets.iter().find(|target| target.name == *name).cloned();
        of(&deployed.definition) == of(&step.definition)
    };
    let found = step.point.aliases.iter().filter(|(name, _)| same(name));
    deployed.sight(x, step.now, found.map(|(name, place)| (name.clone(), place.from.clone().unwrap_or_default())))
}

/// `3`, or `3 (10 % to 4)`.
fn words(alias: &Alias) -> String {
    let version = &alias.route.version;
    match &alias.route.canary {
        Some((other, share)) => format!("{version} ({share} % to {other})"),
        None => version.clone(),
    }
}
