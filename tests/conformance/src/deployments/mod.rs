//! Deployments in the tests: configs, whoever is started to carry them out, and the simulation.

mod check;
pub mod crew;
mod plan;
mod planted;
mod race;
mod rest;
mod scenario;
mod shop;
mod tags;
mod tasks;
mod world;

pub use check::{Watch, state, waits_for};
pub use planted::Plant;
pub use race::rollback_against_apply;
pub use scenario::{Deploying, simulate, simulate_without_sweeps};
pub use shop::Shop;
pub use tags::Pushed;
pub use world::{DeploymentsWorld, Rider};

use crate::sim::OneKind;
use keelway_domain::cause::Cause;
use keelway_domain::deployments::definition::{Definition, ImageChange, ImageTag, Strategy, StrategyKind, Trigger};
use keelway_domain::deployments::{Call, Config, Desired, LEASE, Progress, Reply, SOURCE};
use keelway_domain::time::Span;
use keelway_engine::deployments::deployers::Told;
use keelway_engine::deployments::{Address, DEPLOYERS, Deployments, Job, Limits, keys};
use keelway_engine::ports::PortError;
use keelway_engine::protocol::{Handled, Inbox, Loaded};
use keelway_world::halves::Halves;
use keelway_world::worker::Worker;
use planted::Planted;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The account and the region of the tests' installation.
pub const HERE: (&str, &str) = ("111122223333", "eu-central-1");

/// What Keelway's own deployer has changed for others.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changed {
    /// Changes with every change.
    revision: u64,
    /// How often somebody has looked.
    looks: u64,
    /// The attempts whose changes have not been taken back: `<config>-<version>-<attempt>`.
    pub versions: BTreeSet<String>,
}

/// The service that starts deployers, as far as a request to it can be seen.
#[derive(Debug, Clone, Default)]
pub struct Starter {
    started: Arc<Mutex<Vec<String>>>,
    changed: Arc<Mutex<Changed>>,
}

impl Starter {
    /// A copy that goes its own way.
    fn fork(&self) -> Self {
        let (started, changed) = (self.started().clone(), self.changed().clone());
        Self { started: Arc::new(Mutex::new(started)), changed: Arc::new(Mutex::new(changed)) }
    }

    /// Whether it is the same as another one.
    fn is_like(&self, other: &Self) -> bool {
        *self.started() == *other.started() && *self.changed() == *other.changed()
    }

    /// Makes engines with this starter in reach, and a mistake or none.
    fn engines(&self, plant: Option<Plant>) -> impl Fn(Worker) -> Both + Send + Sync + 'static {
        let starter = self.clone();
        move |worker| {
            let both = both(&worker, &starter, plant);
            Inbox::ports(&both).begin(None);
            both
        }
    }

    /// Every deployer that was started: `<config>-<version>-<attempt>`, once, however often it was asked for.
    pub fn started(&self) -> MutexGuard<'_, Vec<String>> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What Keelway's own deployer has changed.
    pub fn changed(&self) -> MutexGuard<'_, Changed> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The engine, and what starts its deployers, on one worker.
pub type Both = Halves<Deployments<Worker>, Deployers>;

/// Starts deployers, serves them, and is one of them.
pub struct Deployers {
    configs: Deployments<Worker>,
    worker: Worker,
    starter: Starter,
    plant: Option<Plant>,
}

/// On a worker, with the starter in reach.
pub fn both(worker: &Worker, starter: &Starter, plant: Option<Plant>) -> Both {
    let ports = Planted::new(worker, plant);
    let configs = || {
        let limits = Limits { account: HERE.0.into(), region: HERE.1.into(), ..Limits::default() };
        Deployments::new(ports.ports().clone(), limits)
    };
    Both { decides: configs(), carries: Deployers { configs: configs(), worker: worker.clone(), starter: starter.clone(), plant } }
}

impl Deployers {
    /// Takes what a deployer says of version `n`, as whoever serves deployers does.
    ///
    /// # Errors
    /// Of the ports.
    pub async fn say(&self, of: &Address, n: u64, call: &Call) -> Result<Told, PortError> {
        let mut call = call.clone();
        if self.plant == Some(Plant::ReportOfAnyAttempt)
            && let Call::End { token, .. } = &mut call
            && let Some(item) = self.worker.core().table.peek(&keys::config(of))
            && let Ok(loaded) = Loaded::<Config>::read(item)
            && let Some(claim) = loaded.x.last.and_then(|last| last.claim)
        {
            *token = claim.token;
        }
        self.configs.say(of, n, &call).await
    }

    async fn start(&self, job: &Job) -> Result<Handled, PortError> {
        // Nobody else moves aliases here.
        let Job::Start { of, n, attempt, .. } = job else { return Ok(Handled::Stale) };
        let last = {
            let core = self.worker.core();
            core.table.peek(&keys::config(of)).and_then(|item| Loaded::<Config>::read(item).ok()?.x.last)
        };
        // As the deployers do: an order for an attempt that is over is of the past.
        match last.filter(|d| (d.n, d.attempt) == (*n, *attempt) && !d.status.is_final()) {
            Some(d) if d.part.is_some() => return self.carry(of, *n, *attempt).await,
            None => return Ok(Handled::Stale),
            Some(_) => {}
        }
        // The id that the service knows the request again by.
        let token = format!("{}-{n}-{attempt}", of.name);
        let start = |_| {
            let mut started = self.starter.started();
            if !started.contains(&token) {
                started.push(token.clone());
            }
        };
        self.worker.outside(|| format!("start {token}"), start).await.map(|()| Handled::Recorded)
    }

    /// Carries out what a deployer asked for, or takes it back: in one step here.
    async fn carry(&self, of: &Address, n: u64, attempt: u32) -> Result<Handled, PortError> {
        let version = format!("{}-{n}-{attempt}", of.name);
        let look = |_| {
            let mut world = self.starter.changed();
            world.looks += 1;
            (world.revision, world.looks)
        };
        let (revision, look) = self.worker.outside(|| format!("look at {version}"), look).await?;
        let token = format!("look {look}");
        let claim = Call::Claim { by: SOURCE.into(), id: n << 32 | u64::from(attempt), token: token.clone(), lease: LEASE };
        let Reply::Desired(desired) = self.configs.say(of, n, &claim).await?.reply else { return Ok(Handled::Stale) };
        let back = desired == Desired::Cancel && self.plant != Some(Plant::NothingTakenBack);
        let change = |_| {
            let mut world = self.starter.changed();
            // As a change of an alias names its revision: one that comes late changes nothing.
            if world.revision != revision {
                return false;
            }
            world.revision += 1;
            if back {
                world.versions.remove(&version)
            } else {
                world.versions.insert(version.clone())
            };
            true
        };
        if !self.worker.outside(|| format!("carry {version}"), change).await? {
            return Err(PortError::Contended { request: "UpdateAlias", reason: "another revision".into() });
        }
        let (exit, message) = if back { (1, "taken back") } else { (0, "so far") };
        let end = Call::End { token, exit: Some(exit), message: message.into(), progress: Progress::default() };
        Ok(match self.configs.say(of, n, &end).await?.reply {
            Reply::Desired(_) => Handled::Committed,
            Reply::Refused(_) => Handled::Stale,
        })
    }
}

keelway_world::played!(Deployers);

impl Inbox for Deployers {
    type Ports = Worker;
    type Message = Job;

    const NAME: &'static str = DEPLOYERS;

    fn ports(&self) -> &Worker {
        Inbox::ports(&self.configs)
    }
    fn retention(&self) -> Span {
        self.configs.retention()
    }
    async fn message(&self, job: &Job, _: Cause) -> Result<Handled, PortError> {
        self.start(job).await
    }
}

impl OneKind for Both {
    type Subject = Config;
}

/// A tag of the tests' artifact source.
pub fn tag(tag: &str) -> ImageTag {
    ImageTag { namespace: "shop".into(), name: "images".into(), tag: tag.into() }
}

/// A trigger on a tag.
pub fn on_image(of: &str, containers: &[&str], automatic: bool) -> Trigger {
    let containers = containers.iter().map(|name| (*name).to_owned()).collect();
    Trigger::ImageChange(ImageChange { automatic, from: tag(of), containers })
}

/// A config of two containers with these triggers. Both run what the manifest says, unless a trigger says otherwise.
pub fn definition(triggers: Vec<Trigger>) -> Definition {
    let strategy = Strategy {
        kind: StrategyKind::Rolling,
        timeout: Span::seconds(600),
        deadline: Span::seconds(1800),
        custom: None,
        params: Default::default(),
        steps: vec![],
        analysis: None,
        hooks: Default::default(),
        labels: Default::default(),
        annotations: Default::default(),
        resources: Default::default(),
    };
    Definition {
        labels: Default::default(),
        annotations: Default::default(),
        template: json!({"spec": {"containers": [{"name": "web", "image": "web:1", "env": "a"}, {"name": "log", "image": "log:1"}]}}),
        replicas: Some(2),
        selector: Default::default(),
        targets: vec![],
        strategy,
        triggers,
        paused: false,
        history: None,
        concurrency: Default::default(),
        resume: Default::default(),
        on_drift: Default::default(),
        auto_rollback: None,
        deployer: None,
        other: Default::default(),
        vouched: false,
    }
}
