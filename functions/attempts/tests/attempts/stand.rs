//! All engines on the in-memory world, and the real carrier of promotions. Time passes when told to.

use keelway_attempts::Carrier;
use keelway_domain::condition::Condition;
use keelway_domain::event::{CloudEvent, PROMOTION};
use keelway_domain::note::Note;
use keelway_domain::promotions::definition::{
    App, Approval, Compare, Definition, EnvironmentSpec, InFlight, PromotionSpec, Strategy, Target,
};
use keelway_domain::promotions::observe::Observed;
use keelway_domain::promotions::{AttemptResult, Closed, Command, Environment, Pipeline, Promotion, Retry, Seen};
use keelway_domain::stored::Stored;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::ports::{PortError, Store};
use keelway_engine::promotions::attempts::{Attempts, Outside, Sight, Task};
use keelway_engine::promotions::observations::Fact;
use keelway_engine::promotions::{self, Address, Job, Message, Promotions, keys};
use keelway_engine::protocol::Loaded;
use keelway_engine::protocol::sweep::{self, Tick};
use keelway_engine::secrets::Known;
use keelway_engine::sequences::{self, Limits, Sequences};
use keelway_githosts::Patience;
use keelway_outgoing::{Client, Guard, Hosts};
use keelway_wire::cloudevent::{Origin, parse};
use keelway_world::World;
use keelway_world::at_once::AtOnce;
use keelway_world::queue::{Parcel, Received};
use keelway_world::story::handle;
use serde_json::Value;
use std::time::{SystemTime, UNIX_EPOCH};

pub struct Stand {
    pub world: World,
    pub pipelines: Promotions<AtOnce>,
    attempts: Attempts<AtOnce, Timed>,
    pub sequences: Sequences<AtOnce>,
    /// Ends of sequences do not arrive.
    pub deaf: bool,
    bus_seen: usize,
    version: i64,
}

pub fn to() -> Address {
    Address { namespace: "shop".into(), name: "cart".into() }
}

/// A pipeline over these environments, each with a target of its own.
pub fn definition(environments: &[&str], strategy: Strategy) -> Definition {
    let environment = |name: &&str| EnvironmentSpec {
        name: (*name).to_owned(),
        targets: vec![Target { cluster: None, namespace: (*name).to_owned() }],
        promotion: None,
        soak: None,
        evaluation: None,
    };
    Definition {
        app: App { api_version: "helm.toolkit.fluxcd.io/v2".into(), kind: "HelmRelease".into(), name: "cart".into() },
        environments: environments.iter().map(environment).collect(),
        promotion: Some(PromotionSpec { manual: false, strategy, approval: Approval::default(), windows: vec![] }),
        in_flight: InFlight::Restart,
        compare: Compare::Exact,
        vouched: false,
    }
}

/// Ways to receivers and git hosts on this machine.
pub fn here() -> (Client, Guard) {
    (Client::new(Hosts::parse("127.0.0.1")), Guard::new(Hosts::default()).with_loopback(true))
}

/// The real carrier on a world.
pub fn carrier(world: &World, secrets: &Known) -> Carrier<AtOnce> {
    let ports = |worker| AtOnce::with(world.worker(worker), secrets.clone());
    let pipelines = Promotions::new(ports(1), promotions::Limits::default());
    Carrier::new(ports(2), Sequences::new(ports(2), Limits::default()), pipelines, here())
}

/// How long the answers of a host take, in the world's time.
pub struct Slow {
    pub world: World,
    /// How many requests it has answered, or lost.
    pub calls: Box<dyn Fn() -> usize + Send + Sync>,
    pub answer: Span,
}

/// The carrier, whose attempts take as long as the answers of the host.
pub struct Timed {
    carrier: Carrier<AtOnce>,
    slow: Option<Slow>,
}

impl Timed {
    /// Carries out an attempt. One that takes too long goes on later, as in the function, which has a clock of its own.
    async fn in_time(&self, slow: &Slow, task: &Task) -> Result<AttemptResult, PortError> {
        let before = (slow.calls)();
        let spent = || Span(slow.answer.0 * i64::try_from((slow.calls)() - before).unwrap());
        let too_long = async {
            while spent() < Span::seconds(240) {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        };
        let done = tokio::select! {
            done = self.carrier.carry_out(task) => done,
            () = too_long => {
                let why = Condition::new("HostUnavailable", "the attempt goes on where it stopped");
                Ok(AttemptResult::Failed { why, retry: Retry::Soon })
            }
        };
        let mut core = slow.world.core();
        core.now = core.now + spent();
        done
    }
}

impl Outside for Timed {
    async fn carry_out(&self, task: &Task) -> Result<AttemptResult, PortError> {
        match &self.slow {
            Some(slow) => self.in_time(slow, task).await,
            None => self.carrier.carry_out(task).await,
        }
    }
    async fn take_back(&self, task: &Task, comment: &str) -> Result<Closed, PortError> {
        self.carrier.take_back(task, comment).await
    }
    async fn follow(&self, task: &Task) -> Result<Option<Seen>, PortError> {
        self.carrier.follow(task).await
    }
    async fn look(&self, repository: &str, tasks: &[Task], mark: Option<&str>) -> Result<Sight, PortError> {
        self.carrier.look(repository, tasks, mark).await
    }
}

impl Stand {
    pub fn new(secrets: Known) -> Self {
        // A host's Retry-After counts from the time of day.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        let world = World::new(Timestamp(i64::try_from(now).unwrap()));
        let ports = |worker| AtOnce::with(world.worker(worker), secrets.clone());
        let pipelines = || Promotions::new(ports(1), promotions::Limits::default());
        let carrier = carrier(&world, &secrets);
        Self {
            attempts: Attempts::new(pipelines(), Timed { carrier, slow: None }),
            pipelines: pipelines(),
            sequences: Sequences::new(ports(3), Limits::default()),
            deaf: false,
            bus_seen: 0,
            version: 0,
            world,
        }
    }

    /// The same with a carrier that repeats requests, and whose answers take their time.
    pub fn slow(self, secrets: Known, patience: Patience, slow: Slow) -> Self {
        let carrier = carrier(&self.world, &secrets).patient(patience);
        let pipelines = Promotions::new(AtOnce::with(self.world.worker(1), secrets), promotions::Limits::default());
        Self { attempts: Attempts::new(pipelines, Timed { carrier, slow: Some(slow) }), ..self }
    }

    pub async fn apply(&mut self, definition: &Definition) {
        self.pipelines.apply(&to(), definition, "").await.unwrap();
        self.work().await;
    }

    /// The target of an environment runs a revision and is healthy.
    pub async fn runs(&mut self, definition: &Definition, environment: &str, revision: &str) {
        self.version += 1;
        let observed = Observed { revision: Some(revision.into()), ready: true, error: None, at: self.world.now(), by: vec![] };
        let target = Target { cluster: None, namespace: environment.into() };
        let fact = Fact { app: definition.app.clone(), target, version: self.version, observed };
        self.pipelines.observe(&fact).await.unwrap();
        self.work().await;
    }

    /// All environments run a revision.
    pub async fn all_run(&mut self, definition: &Definition, revision: &str) {
        for environment in &definition.environments {
            self.runs(definition, &environment.name, revision).await;
        }
    }

    pub async fn command(&mut self, command: Command) {
        let note = Note { by: "anna".into(), at: self.world.now(), ..Note::default() };
        let message = Message::Command { to: to(), command, note };
        self.world.enqueue(promotions::NAME, Parcel::Own(message.letter().body));
        self.work().await;
    }

    pub async fn state(&self) -> Pipeline {
        let item = AtOnce::new(self.world.worker(9)).get(&keys::pipeline(&to())).await.unwrap().unwrap();
        Loaded::<Pipeline>::read(&item).unwrap().x
    }

    pub async fn environment(&self, name: &str) -> Environment {
        self.state().await.environments.get(name).cloned().unwrap_or_default()
    }

    pub async fn promotion(&self, environment: &str) -> Promotion {
        self.environment(environment).await.promotion.unwrap_or_else(|| panic!("no promotion into {environment}"))
    }

    /// Events of a type that were published.
    pub fn published(&self, ty: &str) -> Vec<Value> {
        let read = |entry: &keelway_engine::ports::BusEntry| serde_json::from_str(&entry.detail).unwrap();
        self.world.outgoing().iter().filter(|entry| entry.detail_type == ty).map(|entry| read(entry)).collect()
    }

    /// Time passes, and with it all timers.
    pub async fn pass(&mut self, time: Span) {
        let until = self.world.now() + time;
        loop {
            self.work().await;
            let next = self.world.core().queue.next_time().filter(|next| *next <= until);
            let mut core = self.world.core();
            core.now = next.unwrap_or(until).max(core.now);
            let now = core.now;
            core.queue.fire(now);
            if next.is_none() {
                break;
            }
        }
        self.work().await;
    }

    pub async fn sweep(&mut self) {
        let mut tick = Tick::default();
        while !sweep::page(&self.pipelines, &mut tick).await.unwrap().finished {}
        self.work().await;
    }

    /// Works until no message is left that is due.
    pub async fn work(&mut self) {
        while self.step().await {}
    }

    async fn step(&mut self) -> bool {
        route(&self.world, &mut self.bus_seen, self.deaf);
        let Some(id) = next(&self.world, |_| true) else { return false };
        let received = self.world.core().queue.receive(id).unwrap();
        let is_job = matches!(&received.parcel, Parcel::Own(text) if Job::from_json(text).is_ok());
        if is_job {
            // An attempt may wait for the sequences engine.
            let mut seen = self.bus_seen;
            tokio::select! {
                handled = handle(&self.attempts, &received) => { handled.unwrap(); }
                () = work_sequences(&self.world, &self.sequences, &mut seen) => {}
            }
            self.bus_seen = seen;
        } else {
            self.decide(&received).await;
        }
        self.world.core().queue.acknowledge(id);
        true
    }

    async fn decide(&self, received: &Received) {
        let by_sequences = match &received.parcel {
            Parcel::Own(text) => sequences::Message::from_json(text).is_ok(),
            Parcel::Event(event) => is_trigger(event),
            _ => false,
        };
        if by_sequences {
            handle(&self.sequences, received).await.unwrap();
        } else {
            handle(&self.pipelines, received).await.unwrap();
        }
    }
}

pub fn next(world: &World, wanted: impl Fn(&str) -> bool) -> Option<u64> {
    let core = world.core();
    core.queue
        .receivable(core.now)
        .into_iter()
        .find(|id| core.queue.messages.get(id).is_some_and(|message| wanted(&message.engine)))
}

fn is_trigger(event: &CloudEvent) -> bool {
    event.ty.starts_with("sh.keptn.") && event.source != "shipyard-controller"
}

/// What the template's rules take from the bus.
fn route(world: &World, seen: &mut usize, deaf: bool) {
    let fresh: Vec<Value> = {
        let core = world.core();
        core.bus.log.iter().skip(*seen).map(|publication| serde_json::from_str(&publication.entry.detail).unwrap()).collect()
    };
    *seen += fresh.len();
    for event in &fresh {
        let Ok(event) = parse(event, Origin::Bus, world.now()) else { continue };
        let ends = event.source == "shipyard-controller" && event.ty.ends_with(".finished");
        if is_trigger(&event) {
            world.enqueue(sequences::NAME, Parcel::Event(event));
        } else if ends && !deaf && event.data.get(PROMOTION).is_some_and(|promotion| promotion.get("pipeline").is_some()) {
            world.enqueue(promotions::NAME, Parcel::Event(event));
        }
    }
}

async fn work_sequences(world: &World, engine: &Sequences<AtOnce>, seen: &mut usize) {
    loop {
        route(world, seen, false);
        if let Some(id) = next(world, |engine| engine == sequences::NAME) {
            let received = world.core().queue.receive(id).unwrap();
            handle(engine, &received).await.unwrap();
            world.core().queue.acknowledge(id);
        }
        tokio::task::yield_now().await;
    }
}
