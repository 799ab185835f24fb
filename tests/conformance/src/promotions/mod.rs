//! Promotions in the tests: a git host to play with, both halves of the engine on one worker, and the simulation.

pub mod host;
mod scenario;

pub use scenario::{Promoting, simulate};

use crate::sim::{Hands, Outcome};
use host::{Reach, Shared};
use keelway_domain::promotions::definition::{
    App, Approval, Compare, Definition, EnvironmentSpec, InFlight, Notification, PromotionSpec, PullRequest, Strategy, Target,
};
use keelway_engine::promotions::attempts::Attempts;
use keelway_engine::promotions::{Job, Limits, Promotions};
use keelway_engine::protocol::sweep::{self, Tick};
use keelway_world::exec::Task;
use keelway_world::queue::{Parcel, Received};
use keelway_world::story::handle;
use keelway_world::worker::Worker;
use std::sync::Arc;

/// Both halves of the engine on one worker: pipelines, and what carries out their attempts.
pub struct Both {
    /// Decides.
    pub pipelines: Promotions<Worker>,
    attempts: Attempts<Worker, Reach>,
}

impl Both {
    /// On a worker, with the host in reach.
    pub fn new(worker: &Worker, host: &Shared) -> Self {
        let pipelines = || Promotions::new(worker.clone(), Limits::default());
        let reach = Reach { worker: worker.clone(), host: host.clone() };
        Self { pipelines: pipelines(), attempts: Attempts::new(pipelines(), reach) }
    }
}

impl Hands for Both {
    fn handle(self: Arc<Self>, received: Received) -> Task<Outcome> {
        Box::pin(async move {
            let is_job = matches!(&received.parcel, Parcel::Own(text) if serde_json::from_str::<Job>(text).is_ok());
            if is_job {
                handle(&self.attempts, &received).await.map(Some)
            } else {
                handle(&self.pipelines, &received).await.map(Some)
            }
        })
    }
    fn sweep(self: Arc<Self>) -> Task<Outcome> {
        Box::pin(async move {
            while keelway_engine::protocol::dead_letter::redrive(keelway_engine::protocol::Engine::ports(&self.pipelines)).await?
                > 0
            {}
            let mut tick = Tick::default();
            while !sweep::page(&self.pipelines, &mut tick).await?.finished {}
            Ok(None)
        })
    }
}

/// The repository of the tests.
pub const REPOSITORY: &str = "https://git.test/o/r";

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
    }
}
