//! Promotions in the tests: a git host to play with, both halves of the engine on one worker, and the simulation.

mod check;
mod ending;
pub mod host;
mod planted;
pub mod reach;
mod rest;
mod scenario;
mod sequences;
mod servers;
mod world;

pub use ending::ending;
pub use planted::{Plant, Planted};
pub use scenario::{Promoting, simulate, simulate_without_sweeps};
pub use servers::{Real, Servers};
pub use world::{PromotionsWorld, Rider};

use crate::sim::OneKind;
use host::{REPOSITORY, Shared};
use keelway_domain::cause::Cause;
use keelway_domain::event::CloudEvent;
use keelway_domain::promotions::Pipeline;
use keelway_domain::promotions::definition::{
    App, Approval, Compare, Definition, EnvironmentSpec, InFlight, Notification, PromotionSpec, PullRequest, Strategy, Target,
};
use keelway_domain::time::Span;
use keelway_engine::item::Key;
use keelway_engine::ports::PortError;
use keelway_engine::promotions::attempts::Attempts;
use keelway_engine::promotions::observations::OBSERVED;
use keelway_engine::promotions::{Job, Limits, Message, NAME, Promotions};
use keelway_engine::protocol::sweep::Tick;
use keelway_engine::protocol::{Engine, Handled, Inbox, Letter, Loaded, OwnMessage, Sameness, Subject};
use keelway_engine::register;
use keelway_world::Tested;
use keelway_world::worker::Worker;
use reach::Reach;
use serde::{Deserialize, Serialize};

/// Both halves of the engine on one worker: pipelines, and what carries out their attempts.
pub struct Both {
    /// Decides.
    pub pipelines: Promotions<Planted>,
    attempts: Attempts<Planted, Servers>,
}

/// The messages of both halves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Either {
    /// To a pipeline.
    Pipeline(Message),
    /// To whoever carries out attempts.
    Attempt(Job),
}

impl OwnMessage for Either {
    fn sameness(&self) -> Sameness {
        match self {
            Either::Pipeline(message) => message.sameness(),
            Either::Attempt(job) => job.sameness(),
        }
    }
}

impl Both {
    /// On a worker, with the twins in reach.
    pub fn new(worker: &Worker, host: &Shared, plant: Option<Plant>) -> Self {
        Self::with(worker, Servers::Twin(Reach { worker: worker.clone(), host: host.clone(), plant }), plant)
    }

    /// On a worker, with these servers in reach.
    pub fn with(worker: &Worker, servers: Servers, plant: Option<Plant>) -> Self {
        let ports = Planted::new(worker.clone(), plant);
        let pipelines = || Promotions::new(ports.clone(), Limits::default());
        Self { pipelines: pipelines(), attempts: Attempts::new(pipelines(), servers) }
    }
}

impl Inbox for Both {
    type Ports = Planted;
    type Message = Either;

    const NAME: &'static str = NAME;

    fn ports(&self) -> &Planted {
        Inbox::ports(&self.pipelines)
    }
    fn retention(&self) -> Span {
        self.pipelines.retention()
    }
    async fn event(&self, event: &CloudEvent, cause: Cause) -> Result<Handled, PortError> {
        self.pipelines.event(event, cause).await
    }
    async fn message(&self, message: &Either, cause: Cause) -> Result<Handled, PortError> {
        match message {
            Either::Pipeline(message) => self.pipelines.message(message, cause).await,
            Either::Attempt(job) => self.attempts.message(job, cause).await,
        }
    }
}

impl Engine<Pipeline> for Both {
    async fn perform(&self, x: &Pipeline, duty: &<Pipeline as Subject>::Duty) -> Result<(), PortError> {
        self.pipelines.perform(x, duty).await
    }
    async fn look(&self, open: &[Loaded<Pipeline>], tick: &mut Tick) -> Result<Vec<Letter>, PortError> {
        self.pipelines.look(open, tick).await
    }
}

impl OneKind for Both {
    type Subject = Pipeline;
}

impl Tested for Both {
    fn takes(_: &str, detail_type: &str) -> bool {
        detail_type == OBSERVED
    }
    /// Pipelines, their history, facts, and which pull requests are looked at.
    fn is_state(key: &Key) -> bool {
        register::is_state(keelway_engine::promotions::keys::PARTITIONS, key)
    }
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
