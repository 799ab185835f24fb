//! What each engine is held to by its cases: the cases, with the stands on which they are told, and what finds planted faults in
//! them. `tests/conformance/suite.rs` makes the tests.

use crate::chosen::all;
use crate::contracts::{Contracts, Holds};
use crate::counter::cases::{CountersWorld, Counts};
use crate::deployments::{self, DeploymentsWorld, rollback_against_apply};
use crate::evaluations;
use crate::plants::Finder;
use crate::promotions::{self, PromotionsWorld};
use keelway_world::deployments::Deploys;
use keelway_world::evaluations::{Evaluates, EvaluationsWorld};
use keelway_world::promotions::Promotes;
use keelway_world::sequences::{Keptn, SequencesWorld};
use keelway_world::story::Mode;
use keelway_world::webhooks::{Hooks, HooksWorld};

/// A suite of cases.
pub type Held = Box<dyn Holds>;

/// Counters.
pub fn counters() -> Held {
    Box::new(Contracts::new(all::<Counts>(), CountersWorld::new))
}

/// Sequences.
pub fn sequences() -> Held {
    Box::new(Contracts::new(all::<Keptn>(), SequencesWorld::new))
}

/// Sequences whose tasks are answered over HTTP.
pub fn sequences_over_http() -> Held {
    Box::new(Contracts::new(all::<Keptn>(), SequencesWorld::over_http))
}

/// Webhooks.
pub fn webhooks() -> Held {
    Box::new(Contracts::new(all::<Hooks>(), HooksWorld::new))
}

/// Evaluations.
pub fn evaluations() -> Held {
    Box::new(Contracts::new(all::<Evaluates>(), EvaluationsWorld::new))
}

/// Evaluations that only end alike: when a source is asked again may differ.
pub fn evaluations_that_end_alike() -> Held {
    Box::new(Contracts::new(all::<Evaluates>(), EvaluationsWorld::new).that_end_alike(evaluations::ending))
}

/// Deployments.
pub fn deployments(rider: deployments::Rider) -> Held {
    let shuffled = |seed| DeploymentsWorld::new(Mode::Clean, deployments::Rider::Shuffled(seed), None);
    let stand = move |mode| DeploymentsWorld::new(mode, rider, None);
    Box::new(Contracts::new(all::<Deploys>(), stand).that_are_shuffled(shuffled))
}

/// Promotions.
pub fn promotions(rider: promotions::Rider) -> Held {
    Box::new(Contracts::new(all::<Promotes>(), move |mode| PromotionsWorld::new(mode, rider, None)))
}

/// Promotions that only end alike: how often something is tried may differ.
pub fn promotions_that_end_alike(rider: promotions::Rider) -> Held {
    let shuffled = |seed| PromotionsWorld::new(Mode::Clean, promotions::Rider::Shuffled(seed), None);
    let stand = move |mode| PromotionsWorld::new(mode, rider, None);
    Box::new(Contracts::new(all::<Promotes>(), stand).that_end_alike(promotions::ending).that_are_shuffled(shuffled))
}

/// The cases of promotions, as finders of planted faults.
pub fn finders_of_promotions() -> Vec<Finder<promotions::Plant>> {
    Finder::cases::<Promotes, _>(|plant| PromotionsWorld::new(Mode::Clean, promotions::Rider::None, Some(plant)))
}

/// Those of deployments, and beside them the race of a rollback against somebody who applies a definition.
pub fn finders_of_deployments() -> Vec<Finder<deployments::Plant>> {
    let world = |plant| DeploymentsWorld::new(Mode::Clean, deployments::Rider::None, Some(plant));
    let mut finders = Finder::cases::<Deploys, _>(world);
    finders.push(Finder::new("race", |plant| rollback_against_apply(Some(plant)).err()));
    finders
}

/// Those of evaluations.
pub fn finders_of_evaluations() -> Vec<Finder<evaluations::Plant>> {
    Finder::cases::<Evaluates, _>(evaluations::world)
}
