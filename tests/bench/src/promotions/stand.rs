//! Pipelines in the in-memory world, and the worker for their attempts. Time only moves when it is told to.

use crate::cost::Used;
use keelway_cloud_tests::Problem;
use keelway_domain::promotions::definition::{
    App, Approval, Compare, Definition, EnvironmentSpec, InFlight, PromotionSpec, Strategy, Target,
};
use keelway_domain::promotions::registry::GitHost;
use keelway_domain::promotions::{Made, Phase, Pipeline};
use keelway_domain::stored::Stored;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::ports::PortError;
use keelway_engine::promotions::attempts::{Attempts, Outside};
use keelway_engine::promotions::observations::OBSERVED;
use keelway_engine::promotions::{ATTEMPTS, Address, Job, Limits, NAME, Promotions, keys};
use keelway_engine::protocol::sweep::{self, Tick};
use keelway_engine::protocol::{Handled, Loaded};
use keelway_engine::secrets::Known;
use keelway_wire::cloudevent::{Origin, parse};
use keelway_world::World;
use keelway_world::at_once::AtOnce;
use keelway_world::exec::block_on;
use keelway_world::queue::Parcel;
use keelway_world::story::{handle, play};
use keelway_world::worker::Worker;
use serde_json::json;
use std::time::{SystemTime, UNIX_EPOCH};

/// The interval of the sweep in the template.
const SWEEP: Span = Span::minutes(5);
/// The token of the git host.
pub const TOKEN: &str = "t0ken-of-the-bench";
/// The name of the host in the URLs of repositories.
pub const HOST: &str = "git.example.com";

/// Pipelines, and the worker for their attempts.
pub struct Stand<O> {
    pub world: World,
    engine: Promotions<Worker>,
    attempts: Attempts<AtOnce, O>,
    /// The number of handled messages.
    messages: f64,
    /// Those of them that came from the bus.
    outside: f64,
    /// The cost of the sweeps, without the messages that they have sent.
    pub swept: Used,
    /// The number of looks at a repository that asked its host.
    pub looks: f64,
    next_sweep: Timestamp,
    version: i64,
}

/// The name of the `n`-th pipeline and of its application.
pub fn name(n: usize) -> String {
    format!("app-{n}")
}

fn to(n: usize) -> Address {
    Address { namespace: "bench".into(), name: name(n) }
}

fn app(n: usize) -> App {
    App { api_version: "helm.toolkit.fluxcd.io/v2".into(), kind: "HelmRelease".into(), name: name(n) }
}

/// `dev`, and this many environments to promote into, each with its own target.
pub fn environments(promotions: usize) -> Vec<String> {
    std::iter::once("dev".to_owned()).chain((1..=promotions).map(|n| format!("env-{n}"))).collect()
}

fn definition(n: usize, promotions: usize, strategy: Strategy) -> Definition {
    let environment = |environment: String| EnvironmentSpec {
        targets: vec![Target { cluster: None, namespace: environment.clone() }],
        name: environment,
        promotion: None,
        soak: None,
        evaluation: None,
    };
    Definition {
        app: app(n),
        environments: environments(promotions).into_iter().map(environment).collect(),
        promotion: Some(PromotionSpec { manual: false, strategy, approval: Approval::default(), windows: vec![] }),
        in_flight: InFlight::Restart,
        compare: Compare::Exact,
        vouched: false,
    }
}

impl<O: Outside> Stand<O> {
    /// A stand for a git host of this form at this address, with a worker that reaches it.
    pub async fn new(
        form: &str,
        api: &str,
        reach: impl FnOnce(&World, AtOnce, Promotions<AtOnce>) -> Result<O, Problem>,
    ) -> Result<Self, Problem> {
        // Hosts answer with real times.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|error| Problem::of("the clock", error))?.as_millis();
        let world = World::new(Timestamp(i64::try_from(now).unwrap_or_default()));
        let known = Known::default().with("bench/git", &json!({ "token": TOKEN }).to_string());
        let ports = |worker| AtOnce::with(world.worker(worker), known.clone());
        let pipelines = |worker| Promotions::new(ports(worker), Limits::default());
        let stand = Self {
            attempts: Attempts::new(pipelines(2), reach(&world, ports(2), pipelines(2))?),
            engine: Promotions::new(world.worker(1), Limits::default()),
            messages: 0.0,
            outside: 0.0,
            swept: Used::default(),
            looks: 0.0,
            next_sweep: world.now() + SWEEP,
            version: 0,
            world,
        };
        let host = GitHost { host: HOST.into(), form: form.into(), api: api.into(), secret: None, webhook_secret: None };
        block_on(stand.engine.git_hosts().apply(&Address::parse("git"), &host, "")).map_err(|error| port(&error))?;
        Ok(stand)
    }

    /// Applies the `n`-th pipeline.
    pub async fn apply(&mut self, n: usize, promotions: usize, strategy: Strategy) -> Result<(), Problem> {
        block_on(self.engine.apply(&to(n), &definition(n, promotions, strategy), "")).map_err(|error| port(&error))?;
        self.work().await
    }

    /// Reports over the bus that an environment of the `n`-th pipeline is healthy on a revision, and works until nothing is left to
    /// do now.
    pub async fn observe(&mut self, n: usize, environment: &str, revision: &str) -> Result<(), Problem> {
        self.version += 1;
        let App { api_version, kind, name } = app(n);
        let fact = json!({
            "apiVersion": api_version, "kind": kind, "name": name, "namespace": environment, "revision": revision,
            "ready": true, "version": self.version,
        });
        let event = json!({
            "specversion": "1.0", "id": format!("fact-{}", self.version), "source": "flux", "type": OBSERVED,
            "datacontenttype": "application/json", "data": {"facts": [fact]},
        });
        let event = parse(&event, Origin::Bus, self.world.now()).map_err(|error| Problem::of("an observation", error))?;
        self.world.enqueue(NAME, Parcel::Event(event));
        self.work().await
    }

    /// Opens a pull request into each environment of a new pipeline: all but the last one run what `dev` runs, and then fall back,
    /// one after the other, to an older revision.
    pub async fn open(&mut self, n: usize, promotions: usize, strategy: Strategy) -> Result<(), Problem> {
        self.apply(n, promotions, strategy).await?;
        let into = environments(promotions).split_off(1);
        let (last, ahead) = into.split_last().ok_or("no environments")?;
        self.observe(n, last, "v1").await?;
        for environment in ahead {
            self.observe(n, environment, "v2").await?;
        }
        self.observe(n, "dev", "v2").await?;
        for environment in ahead.iter().rev() {
            self.observe(n, environment, "v1").await?;
        }
        for environment in &into {
            let (phase, _) = self.promotion(n, environment)?;
            if phase != Some(Phase::Created) {
                return Err(format!("{} has no pull request into {environment}, but {phase:?}", name(n)).into());
            }
        }
        Ok(())
    }

    fn state(&self, n: usize) -> Result<Pipeline, Problem> {
        let core = self.world.core();
        let item = core.table.peek(&keys::pipeline(&to(n))).ok_or("no such pipeline")?;
        Ok(Loaded::<Pipeline>::read(item).map_err(|error| port(&error))?.x)
    }

    /// The phase of the promotion into an environment, and the number of its pull request.
    pub fn promotion(&self, n: usize, environment: &str) -> Result<(Option<Phase>, Option<u64>), Problem> {
        let promotion = self.state(n)?.environments.remove(environment).and_then(|state| state.promotion);
        let number = match promotion.as_ref().and_then(|promotion| promotion.effect.as_ref()) {
            Some(Made::PullRequest { number, .. }) => Some(*number),
            _ => None,
        };
        Ok((promotion.map(|promotion| promotion.phase), number))
    }

    /// Moves time, and runs all timers and sweeps.
    pub async fn pass(&mut self, time: Span) -> Result<(), Problem> {
        let until = self.world.now() + time;
        while self.world.now() < until {
            self.work().await?;
            {
                let mut core = self.world.core();
                let next = core.queue.next_time().unwrap_or(until).min(self.next_sweep).min(until);
                core.now = core.now.max(next);
                let now = core.now;
                core.queue.fire(now);
            }
            if self.next_sweep <= self.world.now() {
                self.next_sweep = self.next_sweep + SWEEP;
                let before = self.used();
                let mut tick = Tick::default();
                while !block_on(sweep::page(&self.engine, &mut tick)).map_err(|error| port(&error))?.finished {}
                self.swept = self.swept + (self.used() - before);
            }
        }
        self.work().await
    }

    /// Handles messages until none is due.
    async fn work(&mut self) -> Result<(), Problem> {
        loop {
            let now = self.world.now();
            let due = self.world.core().queue.receivable(now);
            if due.is_empty() {
                return Ok(());
            }
            for id in due {
                self.handle(id).await?;
            }
        }
    }

    async fn handle(&mut self, id: u64) -> Result<(), Problem> {
        let (engine, received) = {
            let mut core = self.world.core();
            let engine = core.queue.messages.get(&id).map(|message| message.engine.clone()).unwrap_or_default();
            (engine, core.queue.receive(id).ok_or("a message was received too often")?)
        };
        let handled =
            if engine == ATTEMPTS { handle(&self.attempts, &received).await } else { block_on(play(&self.engine, &received)) };
        let handled = handled.map_err(|error| port(&error))?;
        let is_look = matches!(&received.parcel, Parcel::Own(text) if matches!(Job::from_json(text), Ok(Job::Look { .. })));
        self.looks += f64::from(u8::from(is_look && handled == Handled::Committed));
        self.messages += 1.0;
        self.outside += f64::from(u8::from(matches!(received.parcel, Parcel::Event(_))));
        self.world.core().queue.acknowledge(id);
        Ok(())
    }

    /// The cost so far.
    pub fn used(&self) -> Used {
        Used::in_world(&self.world, self.messages, self.outside)
    }
}

pub fn port(error: &PortError) -> Problem {
    Problem(error.to_string())
}
