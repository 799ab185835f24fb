//! Drift: a target serves what Keelway did not put there, because somebody moved its alias by hand or with another tool.
//!
//! The deployers' function looks, and tells what it has seen; whether that is drift, whether it is news, and what follows is
//! decided here.

use super::advance::Step;
use super::definition::OnDrift;
use super::deployment::{Rollback, Status, Why};
use super::facts::{Applied, Order};
use super::resolve::{Images, resolve};
use crate::event::Object;
use crate::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The targets of a config at rest are looked at so often.
pub const LOOK_EVERY: Span = Span::minutes(60);

/// What was seen at the targets of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sight {
    /// The version that was deployed there.
    #[serde(rename = "n")]
    pub n: u64,
    /// When the look was ordered, or a deployment looked.
    #[serde(rename = "t")]
    pub at: Timestamp,
    /// By target.
    #[serde(rename = "p")]
    pub places: BTreeMap<String, Served>,
}

/// What a target serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// What was deployed there.
    #[serde(rename = "e")]
    pub expected: String,
    /// What is served; empty: the alias is gone.
    #[serde(rename = "s", default, skip_serializing_if = "String::is_empty")]
    pub serves: String,
}

/// What is known of the targets of a config at rest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    /// When they were last ordered to be looked at, or a deployment looked; or when the active version was complete.
    #[serde(rename = "l", default)]
    pub looked: Timestamp,
    /// Since when they have been known to drift.
    #[serde(rename = "t", default)]
    pub since: Timestamp,
    /// Those that drift.
    #[serde(rename = "d", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub drifted: BTreeMap<String, Served>,
    /// What was adopted, by target: it counts as what was deployed there until the next version is complete.
    #[serde(rename = "a", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub adopted: BTreeMap<String, String>,
}

impl Watch {
    /// That of a version that has just been completed.
    pub fn begin(now: Timestamp) -> Self {
        Self { looked: now, ..Self::default() }
    }

    /// What drifts, for people: `serves version 3`. `None`: nothing does.
    pub fn says(&self) -> Option<String> {
        let one = |served: &Served| match served.serves.as_str() {
            "" => "has no alias any more".to_owned(),
            version => format!("serves version {version}"),
        };
        match self.drifted.len() {
            0 => None,
            1 => self.drifted.values().map(one).next(),
            _ => Some(self.drifted.iter().map(|(name, served)| format!("{name} {}", one(served))).collect::<Vec<_>>().join(", ")),
        }
    }
}

impl Step<'_> {
    /// Orders a look at the targets of a config at rest, if the last one was long ago. Whoever evaluates it at all, the sweep at
    /// the latest, has this done: a wake-up of its own for each config would cost more than the looks.
    pub fn look(&mut self, applied: &Applied) {
        let now = self.facts.now;
        let rests = self.next.in_flight().is_none() && self.next.pending.is_none() && self.next.settling.is_none();
        let due = self.next.watch.looked + LOOK_EVERY <= now;
        let active = self.next.active.as_ref().filter(|_| rests && due && applied.definition.deploys_to_aliases());
        let Some(n) = active.map(|active| active.n) else { return };
        self.orders.push(Order::Look { n, at: now });
        self.next.watch.looked = now;
    }

    /// Takes in what was seen at the targets.
    pub fn saw(&mut self, sight: &Sight) {
        let Some(applied) = self.facts.applied else { return };
        // A look that came late tells of another version, or of what a later one has seen otherwise.
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
        // What could not be seen this time is as it was; what is deployed there no more does not count.
        let unseen = self.next.watch.drifted.iter().filter(|(name, _)| !sight.places.contains_key(*name));
        let is_target = |name: &str| applied.definition.targets.iter().any(|target| target.name == name);
        let all = drifted.chain(unseen.map(|(name, served)| (name.clone(), served.clone())));
        let drifted: BTreeMap<String, Served> = all.filter(|(name, _)| is_target(name)).collect();
        let differs = drifted != self.next.watch.drifted;
        if differs {
            // A copy of what an earlier one saw does not count any more, also if this one was a deployment's.
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

    /// What is served counts as deployed. Where nothing is served, there is nothing to adopt.
    fn adopt(&mut self) {
        let watch = &mut self.next.watch;
        let (adopted, left) = std::mem::take(&mut watch.drifted).into_iter().partition(|(_, served)| !served.serves.is_empty());
        watch.drifted = left;
        let adopted: BTreeMap<String, Served> = adopted;
        watch.adopted.extend(adopted.into_iter().map(|(name, served)| (name, served.serves)));
    }

    /// Cuts a version that brings back what was deployed: at once, and by the versions that were published then. Not if something
    /// else is on its way or about to be, if the config is paused, or if the last try failed: that needs a person.
    fn restore(&mut self, applied: &Applied) {
        let Some(found) = self.next.watch.says() else { return };
        let Some(last) = self.next.last.as_ref().filter(|last| last.status == Status::Complete) else { return };
        let (of, template) = (last.n, last.content.template);
        let waits = self.next.paused.is_some() || self.next.pending.is_some() || self.next.settling.is_some();
        let resolved = resolve(&self.next, &applied.definition, self.facts.heads, Images::Same);
        if waits || self.next.active.as_ref().is_none_or(|active| active.n != of) || resolved.content.template != template {
            return;
        }
        // What somebody cancelled stays cancelled.
        let dismissed = self.next.dismissed.clone();
        let mut deployment = self.cut(&applied.definition, resolved, vec![Why::Drift { of, found }]);
        self.next.dismissed = dismissed;
        deployment.rollback = Some(Rollback { release: of, automatic: true, group: String::new(), by_steps: false });
        self.start(deployment);
    }
}
