//! The promotions engine and the observer on the in-memory world. Time passes when told to.

use crate::api::{HELM, Server, TOKEN};
use keelway_domain::border::Update;
use keelway_domain::names::ProjectName;
use keelway_domain::promotions::definition::{App, Compare, Definition, EnvironmentSpec, InFlight, Target};
use keelway_domain::promotions::observe::Observed;
use keelway_domain::promotions::registry::Cluster;
use keelway_domain::stored::Stored;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::projects::ProjectSettings;
use keelway_engine::promotions::observer::Observer;
use keelway_engine::promotions::{self, Address, Message, OBSERVER, Promotions};
use keelway_engine::secrets::Known;
use keelway_engine::sequences::{Limits, Sequences};
use keelway_observer::Kubernetes;
use keelway_outgoing::{Guard, Hosts};
use keelway_world::World;
use keelway_world::at_once::AtOnce;
use keelway_world::queue::{Parcel, Received};
use keelway_world::story::handle;
use serde_json::Value;

pub const PROD: &str = "shop/prod";

pub struct Stand {
    pub world: World,
    pub server: Server,
    pub pipelines: Promotions<AtOnce>,
    pub observer: Observer<AtOnce, Kubernetes<AtOnce>>,
    /// Which pipelines were woken, in order.
    pub woken: Vec<String>,
    /// How many messages the observer got.
    pub observed: usize,
}

pub fn to(name: &str) -> Address {
    Address { namespace: "shop".into(), name: name.into() }
}

pub fn target(cluster: Option<&str>, namespace: &str) -> Target {
    Target { cluster: cluster.map(str::to_owned), namespace: namespace.into() }
}

/// A pipeline of the release `cart` over these targets, each an environment.
pub fn definition(targets: &[Target]) -> Definition {
    let environment = |target: &Target| EnvironmentSpec {
        name: target.namespace.clone(),
        targets: vec![target.clone()],
        promotion: None,
        soak: None,
        evaluation: None,
    };
    Definition {
        app: App { api_version: HELM.into(), kind: "HelmRelease".into(), name: "cart".into() },
        environments: targets.iter().map(environment).collect(),
        promotion: None,
        in_flight: InFlight::Restart,
        compare: Compare::Exact,
        vouched: false,
    }
}

pub fn in_prod(namespaces: &[&str]) -> Definition {
    definition(&namespaces.iter().map(|namespace| target(Some(PROD), namespace)).collect::<Vec<_>>())
}

impl Stand {
    /// The cluster is on this machine.
    pub async fn new() -> Self {
        Self::behind(Guard::new(Hosts::default()).with_loopback(true)).await
    }

    pub async fn behind(guard: Guard) -> Self {
        let world = World::new(Timestamp(1_795_000_000_000));
        let secrets = Known::default().with("shop/token", &format!("{{\"token\": \"{TOKEN}\"}}")).with("shop/wrong", "other");
        let secrets = secrets.with("team-b/token", TOKEN);
        let ports = |worker| AtOnce::with(world.worker(worker), secrets.clone());
        let pipelines = |worker| Promotions::new(ports(worker), promotions::Limits::default());
        let observer = Observer::new(pipelines(1), Kubernetes::new(ports(1), guard));
        let server = Server::start().await;
        let stand = Self { pipelines: pipelines(2), observer, server, woken: vec![], observed: 0, world };
        stand.register(PROD, |_| {}).await;
        stand
    }

    pub async fn register(&self, name: &str, change: impl FnOnce(&mut Cluster)) {
        let mut cluster =
            Cluster { server: self.server.url.clone(), ca_data: None, secret: "token".into(), interval: None, vouched: true };
        change(&mut cluster);
        self.pipelines.clusters().apply(&Address::parse(name), &cluster, "").await.unwrap();
    }

    /// Applies a project that says this about its border.
    pub async fn project(&self, name: &str, consents: Value, policy: Value) {
        let sequences = Sequences::new(AtOnce::new(self.world.worker(3)), Limits::default());
        let settings = ProjectSettings {
            consents: Update::Set(serde_json::from_value(consents).unwrap()),
            policy: Update::Set(serde_json::from_value(policy).unwrap()),
            ..ProjectSettings::plain(ProjectName::new(name).unwrap())
        };
        sequences.projects().apply(&settings).await.unwrap();
    }

    /// Applies a pipeline, and forgets that it is woken by that.
    pub async fn apply(&mut self, name: &str, definition: &Definition) {
        self.pipelines.apply(&to(name), definition, "").await.unwrap();
        self.work().await;
        self.woken.clear();
    }

    /// A tick, and everything that follows from it.
    pub async fn tick(&mut self) -> usize {
        let sent = self.observer.tick().await.unwrap();
        self.work().await;
        sent
    }

    /// A minute goes by, and its tick comes.
    pub async fn minute(&mut self) -> usize {
        self.pass(Span::seconds(60));
        self.tick().await
    }

    pub fn pass(&self, time: Span) {
        let mut core = self.world.core();
        core.now = core.now + time;
    }

    /// The next message, which stays in the queue until it is acknowledged.
    pub fn next(&self) -> Option<(u64, String, Received)> {
        let mut core = self.world.core();
        let now = core.now;
        let id = core.queue.receivable(now).into_iter().next()?;
        let engine = core.queue.messages[&id].engine.clone();
        Some((id, engine, core.queue.receive(id).unwrap()))
    }

    /// Works until no message is left that is due.
    pub async fn work(&mut self) {
        while let Some((id, engine, received)) = self.next() {
            if engine == OBSERVER {
                self.observed += 1;
                handle(&self.observer, &received).await.unwrap();
            } else {
                let Parcel::Own(text) = &received.parcel else { panic!("{received:?}") };
                if let Ok(Message::Evaluate { to, .. }) = Message::from_json(text) {
                    self.woken.push(to.name);
                }
                handle(&self.pipelines, &received).await.unwrap();
            }
            self.world.core().queue.acknowledge(id);
        }
    }

    pub fn woken(&mut self) -> Vec<String> {
        let mut woken = std::mem::take(&mut self.woken);
        woken.sort();
        woken
    }

    /// What is known about a target of a pipeline.
    pub async fn known(&self, pipeline: &str, namespace: &str) -> Option<Observed> {
        let view = self.pipelines.view(&to(pipeline)).await.unwrap().unwrap();
        view.observations.into_iter().find(|(target, _)| target.namespace == namespace).map(|(_, observed)| observed)
    }

    pub async fn error(&self, pipeline: &str, namespace: &str) -> String {
        let known = self.known(pipeline, namespace).await;
        known.and_then(|known| known.error).unwrap_or_default()
    }

    /// The reason and message of a pipeline's condition.
    pub async fn condition(&self, pipeline: &str) -> (String, String) {
        let condition = self.pipelines.view(&to(pipeline)).await.unwrap().unwrap().state.condition;
        (condition.reason, condition.message)
    }
}

pub fn runs(revision: &str, ready: bool, observed: Option<Observed>) -> bool {
    observed
        .is_some_and(|observed| (observed.revision.as_deref(), observed.ready, &observed.error) == (Some(revision), ready, &None))
}
