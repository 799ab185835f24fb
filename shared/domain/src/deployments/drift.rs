//! Drift: a target serves something that Keelway did not deploy there, because its alias was moved by hand or by another tool.
//!
//! The deployers' function reads the aliases and reports what they serve. This module decides whether that is drift, whether it is
//! new, and what follows.

use super::advance::Step;
use super::definition::OnDrift;
use super::deployment::{Status, Why};
use super::facts::{Applied, Order};
use super::origin::Rollback;
use super::resolve::{Images, resolve};
use crate::event::Object;
use crate::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The interval between two checks of the targets of an idle config.
pub const LOOK_EVERY: Span = Span::minutes(60);

/// What the targets of a version serve, as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sight {
    /// The version that was deployed there.
    #[serde(rename = "n")]
    pub n: u64,
    /// When the check was ordered, or when the deployment ended.
    #[serde(rename = "t")]
    pub at: Timestamp,
    /// What each target serves.
    #[serde(rename = "p")]
    pub places: BTreeMap<String, Served>,
}

/// What one target serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// What was deployed there.
    #[serde(rename = "e")]
    pub expected: String,
    /// What it serves. Empty: the alias does not exist any more.
    #[serde(rename = "s", default, skip_serializing_if = "String::is_empty")]
    pub serves: String,
}

/// The state of the drift of an idle config.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    /// When the last check was ordered, or when the active version was complete.
    #[serde(rename = "l", default)]
    pub looked: Timestamp,
    /// Since when there has been drift.
    #[serde(rename = "t", default)]
    pub since: Timestamp,
    /// The targets that drift.
    #[serde(rename = "d", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub drifted: BTreeMap<String, Served>,
    /// What was adopted, by target: it counts as deployed there until the next version is complete.
    #[serde(rename = "a", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub adopted: BTreeMap<String, String>,
}

impl Watch {
    /// The state after a version has been completed.
    pub fn begin(now: Timestamp) -> Self {
        Self { looked: now, ..Self::default() }
    }

    /// The drift, in words: `serves Lambda version 3`. `None`: there is none.
    pub fn says(&self) -> Option<String> {
        let one = |served: &Served| match served.serves.as_str() {
            "" => "has no alias any more".to_owned(),
            version => format!("serves Lambda version {version}"),
        };
        match self.drifted.len() {
            0 => None,
            1 => self.drifted.values().map(one).next(),
            _ => Some(self.drifted.iter().map(|(name, served)| format!("{name} {}", one(served))).collect::<Vec<_>>().join(", ")),
        }
    }
}

impl Step<'_> {
    /// Orders a check of the targets of an idle config, if the last one is too old. The sweep evaluates every config, so no config
    /// needs a wake-up for this, which would cost more than the checks.
    pub fn look(&mut self, applied: &Applied) {
        let now = self.facts.now;
        let rests = self.next.in_flight().is_none() && self.next.pending.is_none() && self.next.settling.is_none();
        let due = self.next.watch.looked + LOOK_EVERY <= now;
        let active = self.next.active.as_ref().filter(|_| rests && due && applied.definition.deploys_to_aliases());
        let Some(n) = active.map(|active| active.n) else { return };
        self.orders.push(Order::Look { n, at: now });
        self.next.watch.looked = now;
    }

    /// Takes the result of a check over.
    pub fn saw(&mut self, sight: &Sight) {
        let Some(applied) = self.facts.applied else { return };
        // A late result may be about another version, or older than a later result.
        let counts = self.next.active.as_ref().is_some_and(|active| active.n == sight.n) && sight.at >= self.next.watch.looked;
        if !counts {
            return;
        }
        let adopted = &self.next.watch.adopted;
        let drifted = sight.places.iter().filter_map(|(name, served)| {
            let expected = adopted.get(name).unwrap_or(&served.expected);
            let place = Served { expected: expected.clone(), serves: served.serves.clone() };
            (served.serves != *expected).then(|| (name.clone(), place))
        });
        // Targets that could not be read keep their state; targets that the version does not have are dropped.
        let unseen = self.next.watch.drifted.iter().filter(|(name, _)| !sight.places.contains_key(*name));
        let is_target = |name: &str| applied.definition.targets.iter().any(|target| target.name == name);
        let all = drifted.chain(unseen.map(|(name, served)| (name.clone(), served.clone())));
        let drifted: BTreeMap<String, Served> = all.filter(|(name, _)| is_target(name)).collect();
        let differs = drifted != self.next.watch.drifted;
        if differs {
            // A copy of an earlier result does not count any more, even if this result is a deployment's.
            self.next.watch.looked = sight.at;
        }
        let is_news = differs && !drifted.is_empty();
        if is_news {
            self.next.watch.since = self.facts.now;
        }
        self.next.watch.drifted = drifted;
        let policy = applied.definition.on_drift;
        if let Some(said) = self.next.watch.says().filter(|_| is_news) {
            self.with.drifted = Some(said.clone());
            let shown = |served: &Served| serde_json::json!({"expected": served.expected, "serves": served.serves});
            let places: Object = self.next.watch.drifted.iter().map(|(name, served)| (name.clone(), shown(served))).collect();
            let data = [("message", said.into()), ("targets", places.into()), ("onDrift", serde_json::json!(policy))];
            self.tell_config("deploymentconfig.drifted", data.map(|(name, value)| (name.to_owned(), value)).into_iter().collect());
        }
        match policy {
            OnDrift::Tell => {}
            OnDrift::Adopt => self.adopt(),
            OnDrift::Restore => self.restore(applied),
        }
    }

    /// Takes what is served for what is deployed. Where nothing is served, there is nothing to adopt.
    fn adopt(&mut self) {
        let watch = &mut self.next.watch;
        let (adopted, left) = std::mem::take(&mut watch.drifted).into_iter().partition(|(_, served)| !served.serves.is_empty());
        watch.drifted = left;
        let adopted: BTreeMap<String, Served> = adopted;
        watch.adopted.extend(adopted.into_iter().map(|(name, served)| (name, served.serves)));
    }

    /// Cuts a version that restores what was deployed, at once, with the Lambda versions that were published then. It does nothing
    /// if another version is in progress or about to be cut, if the config is paused, or if the last such version failed: that
    /// needs a person.
    fn restore(&mut self, applied: &Applied) {
        let Some(found) = self.next.watch.says() else { return };
        let Some(last) = self.next.last.as_ref().filter(|last| last.status == Status::Complete) else { return };
        let (of, template) = (last.n, last.content.template);
        let waits = self.next.paused.is_some() || self.next.pending.is_some() || self.next.settling.is_some();
        let resolved = resolve(&self.next, &applied.definition, self.facts.heads, Images::Same);
        if waits || self.next.active.as_ref().is_none_or(|active| active.n != of) || resolved.content.template != template {
            return;
        }
        // A change that somebody has cancelled stays cancelled.
        let dismissed = self.next.dismissed.clone();
        let mut deployment = self.cut(&applied.definition, resolved, vec![Why::Drift { of, found }]);
        self.next.dismissed = dismissed;
        deployment.rollback = Some(Rollback { release: of, automatic: true, group: String::new(), by_steps: false });
        self.start(deployment);
    }
}
