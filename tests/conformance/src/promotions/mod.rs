//! Promotions in the tests: a git host to play with, both halves of the engine on one worker, and the simulation.

mod check;
mod draw;
mod ending;
pub mod host;
pub mod judge;
mod planted;
pub mod reach;
mod rest;
mod scenario;
mod sequences;
mod servers;
mod world;

pub use ending::ending;
pub use planted::Plant;
pub use scenario::{Promoting, simulate, simulate_without_sweeps};
pub use servers::{Real, Servers};
pub use world::{PromotionsWorld, Rider};

use crate::sim::OneKind;
use host::{REPOSITORY, Shared};
use judge::{Judge, Verdicts};
use keelway_domain::promotions::Pipeline;
use keelway_domain::promotions::definition::{
    App, Approval, Compare, Definition, EnvironmentSpec, InFlight, Notification, PromotionSpec, PullRequest, Strategy, Target,
};
use keelway_engine::promotions::attempts::Attempts;
use keelway_engine::promotions::{Limits, Promotions};
use keelway_world::halves::Halves;
use keelway_world::worker::Worker;
use planted::Planted;
use reach::Reach;

/// The engine on one worker: pipelines, what carries out their attempts, and who evaluates for them.
pub type Both = Halves<Promotions<Worker>, Halves<Attempts<Worker, Servers>, Judge>>;

impl OneKind for Both {
    type Subject = Pipeline;
}

/// On a worker, with the twins in reach.
pub fn both(worker: &Worker, (host, verdicts): (&Shared, &Verdicts), plant: Option<Plant>) -> Both {
    both_with(worker, Servers::Twin(Reach { worker: worker.clone(), host: host.clone(), plant }), (verdicts, plant))
}

/// On a worker, with these servers in reach.
pub fn both_with(worker: &Worker, servers: Servers, (verdicts, plant): (&Verdicts, Option<Plant>)) -> Both {
    let ports = Planted::new(worker, plant);
    let pipelines = || Promotions::new(ports.ports().clone(), Limits::default());
    let judge = Judge { ports: ports.ports().clone(), verdicts: verdicts.clone() };
    Both { decides: pipelines(), carries: Halves { decides: Attempts::new(pipelines(), servers), carries: judge } }
}

/// The application of the tests.
pub fn app() -> App {
    App { api_version: "helm.toolkit.fluxcd.io/v2".into(), kind: "HelmRelease".into(), name: "app".into() }
}

/// The `n`-th target of an environment.
pub fn target(environment: &str, n: usize) -> Target {
    Target { cluster: None, namespace: format!("{environment}-{n}") }
}

/// A promotion by pull request, or by notification.
pub fn settings(by_request: bool, manual: bool) -> PromotionSpec {
    let request = PullRequest {
        host: "gitea".into(),
        url: REPOSITORY.into(),
        base_branch: "main".into(),
        secret: "git".into(),
        merge: false,
    };
    let strategy = if by_request { Strategy::PullRequest(request) } else { Strategy::Notification(Notification::default()) };
    PromotionSpec { manual, strategy, approval: Approval::default(), windows: vec![] }
}

/// A pipeline with these environments, and so many targets in each.
pub fn definition(environments: &[(&str, usize)], promotion: PromotionSpec) -> Definition {
    let environment = |(name, targets): &(&str, usize)| EnvironmentSpec {
        name: (*name).to_owned(),
        targets: (0..*targets).map(|n| target(name, n)).collect(),
        promotion: None,
        soak: None,
        evaluation: None,
    };
    Definition {
        app: app(),
        environments: environments.iter().map(environment).collect(),
        promotion: Some(promotion),
        in_flight: InFlight::Restart,
        compare: Compare::Exact,
        vouched: false,
    }
}
