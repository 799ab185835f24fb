//! Two projects beside each other in the simulation: `team-a` names in its manifests, events and answers whatever is `team-b`'s,
//! and `team-b` does its own work meanwhile. All engines run on one table. Nothing of `team-b` may change because of `team-a`, and
//! `team-a` may learn nothing of it, unless `team-b` consents, or the policy allows it, at that moment.
//!
//! The API asks for rights when a manifest is applied; here everything is applied as if somebody had had them once. So what holds
//! is the question that is asked before each act.

mod acts;
mod check;
mod ending;
mod hand;
mod manifests;
mod plan;
mod planted;
mod scenario;
mod yard;

pub use planted::Plant;
pub use scenario::{simulate, simulate_without_sweeps};

use keelway_domain::names::ProjectName;
use keelway_engine::deployments::Address;

/// The hostile project.
const THEIRS: &str = "team-a";
/// The one that is to be left alone.
const OURS: &str = "team-b";
/// What every text of the hostile project contains that must not get into the other one without a consent, before a number.
const EVIL: &str = "evil-";
/// What every text of the other one contains that the hostile project must not learn without a consent, before a number.
const PRIVATE: &str = "private-";
/// The function behind the aliases of the project that is to be left alone.
const OUR_FUNCTION: &str = "team-b-payments";
/// The cluster of that project, and its server.
const OUR_CLUSTER: &str = "team-b/prod";
const OUR_SERVER: &str = "https://k8s.team-b.test";

fn project(name: &str) -> ProjectName {
    ProjectName::new(name).unwrap_or_else(|error| panic!("{error}"))
}

fn address(namespace: &str, name: &str) -> Address {
    Address { namespace: namespace.into(), name: name.into() }
}
