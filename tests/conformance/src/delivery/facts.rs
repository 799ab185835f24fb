//! Facts about targets: each is newer than the one before, and so.

use super::check::Watch;
use super::hand::lock;
use super::manifests::app;
use super::{STAGES, clusters};
use keelway_domain::promotions::definition::Definition;
use keelway_domain::promotions::observe::Observed;
use keelway_domain::stored::Stored;
use keelway_engine::item::{Item, Key};
use keelway_engine::promotions::keys::observation;

/// What a fact says.
fn said(item: &Item) -> Option<Observed> {
    item.text("j").and_then(|text| Observed::from_json(text).ok())
}

/// It is no older than the one before.
fn follows(old: Option<&Item>, new: &Item) -> Result<(), String> {
    match old.filter(|old| old.number("n") > new.number("n")) {
        Some(old) => Err(format!("an older fact took the place of a newer one: {:?}, then {:?}", old.text("j"), new.text("j"))),
        None => Ok(()),
    }
}

impl Watch {
    /// The stage that a fact from a cluster is about.
    pub(super) fn in_cluster(&self, key: &Key) -> Option<usize> {
        self.in_clusters.iter().find(|(fact, _)| fact == key).map(|(_, place)| *place)
    }

    /// Whether every target of a stage was once ready with a revision.
    pub(super) fn ran(&self, place: usize, revision: &str) -> bool {
        let Some(environment) = self.measured.get(place) else { return false };
        let ran = |target| self.observed.contains(&(observation(&app(), target), revision.to_owned()));
        environment.targets.iter().all(ran)
    }

    /// A config tells that it is ready: a version of it has completed this.
    pub(super) fn fact(&mut self, (key, place): (&Key, usize), old: Option<&Item>, new: &Item) -> Result<(), String> {
        follows(old, new)?;
        let Some(Observed { revision: Some(revision), ready: true, .. }) = said(new) else { return Ok(()) };
        if !self.complete.contains(&(place, revision.clone())) {
            return Err(format!("{} is observed to run {revision}, and no version of it is complete", STAGES[place]));
        }
        self.observed.insert((key.clone(), revision));
        Ok(())
    }

    /// A cluster was observed: what is known now was read there at that time.
    pub(super) fn fact_of_cluster(&mut self, (key, place): (&Key, usize), old: Option<&Item>, new: &Item) -> Result<(), String> {
        follows(old, new)?;
        let (at, Some(observed)) = (new.number("n").unwrap_or_default(), said(new)) else { return Ok(()) };
        if !lock(&self.yard).land.was_read((place, at), &observed) {
            return Err(format!("nobody has read in {} at {at}: {observed:?}", STAGES[place]));
        }
        self.stats.count(if observed.error.is_some() { "facts about clusters that are away" } else { "facts of clusters" });
        self.observed.extend(observed.revision.filter(|_| observed.ready).map(|revision| (key.clone(), revision)));
        Ok(())
    }

    /// The facts that clusters tell, once it is known what the pipeline names.
    pub(super) fn expect(&mut self, pipeline: &Definition) {
        let all = clusters::targets(pipeline).map(|(place, target)| (observation(&app(), target), place));
        self.in_clusters = all.collect();
        self.measured = pipeline.environments.clone();
    }
}
