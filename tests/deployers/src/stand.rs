//! The engine, the deployers and the double together. Time only moves when it is told to.

use crate::lambda::{Lambda, shown};
use keelway_domain::deployments::definition::{Action, Definition, FailurePolicy, Hook};
use keelway_domain::deployments::{Command, Config, Deployment, Status};
use keelway_domain::note::Note;
use keelway_domain::stored::Stored;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::aliases::Route;
use keelway_engine::deployers::Deployers;
use keelway_engine::deployments::configs::Wanted;
use keelway_engine::deployments::{Address, DEPLOYERS, Deployments, Job, Limits, Message};
use keelway_engine::protocol::Handled;
use keelway_world::World;
use keelway_world::evaluations::{Shared, Sources, project};
use keelway_world::exec::{Task, block_on, step};
use keelway_world::queue::Parcel;
use keelway_world::story::handle;
use keelway_world::worker::Worker;
use serde_json::{Value, json};
use std::sync::Arc;
use std::task::Poll;

/// The worker that carries deployments out. Its requests can be made to fail.
pub const DEPLOYER: usize = 2;

pub struct Stand {
    pub world: World,
    pub lambda: Lambda,
    pub engine: Deployments<Worker>,
    deployers: Arc<Deployers<Worker, Lambda, Sources>>,
    /// The sources of metrics.
    pub sources: Shared,
    /// If set, the deployer stalls once, after its request with this number: the message is delivered again, and the first delivery
    /// continues later.
    pub stall_after: Option<u64>,
    stalled: Option<Task<Option<Handled>>>,
    /// If set, the deployer stops once, after its request with this number.
    pub crash_after: Option<u64>,
    /// How long the message of a deployer that failed or stopped stays hidden.
    pub invisible: Span,
    /// Whether every message to the deployer is handled twice.
    pub twice: bool,
    /// The number of the deployer's requests.
    pub requests: u64,
    /// The times of the messages with which the deployer took a step.
    pub jobs: Vec<Timestamp>,
}

pub fn to() -> Address {
    Address { namespace: "shop".into(), name: "cart".into() }
}

pub fn version(n: u32) -> String {
    format!("arn:aws:lambda:eu-central-1:1:function:shop:{n}")
}

/// A config whose target is the alias `shop:live`.
pub fn definition(kind: &str, image: &str) -> Definition {
    let definition = json!({
        "template": {"containers": [{"name": "app", "image": image}]},
        "targets": [{"name": "main", "kind": "lambda-alias", "id": "shop:live"}],
        "strategy": {"type": kind, "timeout": 600_000, "deadline": 21_600_000},
        "triggers": ["configChange"],
        "vouched": true,
    });
    serde_json::from_value(definition).unwrap()
}

/// The same config with another image.
pub fn with_image(definition: &Definition, image: &str) -> Definition {
    Definition { template: json!({"containers": [{"name": "app", "image": image}]}), ..definition.clone() }
}

pub fn hook(failure_policy: FailurePolicy) -> Option<Hook> {
    Some(Hook { failure_policy, action: Action::Invoke("check".into()) })
}

impl Default for Stand {
    fn default() -> Self {
        Self::new()
    }
}

impl Stand {
    /// A stand with a function `shop` that has nine versions and no alias.
    pub fn new() -> Self {
        let world = World::new(Timestamp(1_700_000_000_000));
        let engine = |worker| Deployments::new(world.worker(worker), Limits::default());
        let lambda = Lambda::new(world.worker(DEPLOYER));
        lambda.state().function("shop", 9);
        let sources = Shared::default();
        let evaluations = keelway_world::evaluations::engine(world.worker(DEPLOYER), &sources);
        let deployers = Arc::new(Deployers::new(engine(DEPLOYER), lambda.clone(), evaluations, "https://api.example.com"));
        let (crash_after, stall_after, stalled) = (None, None, None);
        let (twice, invisible) = (false, Span::seconds(2));
        Self {
            engine: engine(1),
            deployers,
            sources,
            lambda,
            crash_after,
            invisible,
            stall_after,
            stalled,
            twice,
            requests: 0,
            jobs: vec![],
            world,
        }
    }

    /// A stand with version 1 deployed at `shop:live`, and an empty log.
    pub fn deployed(definition: &Definition) -> Self {
        let mut stand = Self::new();
        stand.apply(&with_image(definition, &version(1)));
        stand.pass(Span::minutes(60));
        if stand.x().last.is_some_and(|last| last.status != Status::Complete) {
            panic!("{:?}", stand.last());
        }
        stand.lambda.state().log.clear();
        stand.lambda.state().calls.clear();
        stand.requests = 0;
        stand
    }

    /// A stand with version 1 deployed at `shop:live`, in a project that has these files and the source of metrics `main`.
    pub fn judged(definition: &Definition, files: &[(&str, &str)]) -> Self {
        let stand = Self::deployed(&with_image(definition, &version(1)));
        project::create(&stand.world, "shop", &["dev"], &["carts"]).unwrap();
        for (file, text) in files {
            project::write(&stand.world, "shop", ("", file), Some(text)).unwrap();
        }
        project::declare(&stand.world, "shop", "main", Some(&keelway_world::evaluations::declared("main", None))).unwrap();
        stand
    }

    /// Applies a definition; its change becomes a version.
    pub fn apply(&mut self, definition: &Definition) {
        let wanted = Wanted { definition, source: "", by: "ann", request: None, over: None };
        block_on(self.engine.apply(&to(), &wanted)).unwrap();
        self.work();
        // Until the change has settled, and the steps that follow at once are done.
        self.pass(Span(2100));
    }

    pub fn command(&mut self, command: Command) {
        // Every command has another time.
        self.pass(Span(1));
        let now = self.world.now();
        let note = Note { by: "ann".into(), at: now, id: now.0 as u64, ..Note::default() };
        self.world
            .enqueue(keelway_engine::deployments::NAME, Parcel::Own(Message::Command { to: to(), command, note }.letter().body));
        self.work();
    }

    /// Delivers an event of an AWS service, in the envelope of the bus.
    pub fn event(&mut self, envelope: &Value) {
        let notice = keelway_wire::aws::events::notice(envelope, self.world.now()).unwrap().unwrap();
        self.world.enqueue(keelway_engine::deployments::NAME, Parcel::Own(Message::Notice { notice }.letter().body));
        self.work();
    }

    pub fn x(&self) -> Config {
        block_on(self.engine.states(&[to()])).unwrap().remove(0).unwrap()
    }

    pub fn last(&self) -> Deployment {
        self.x().last.unwrap()
    }

    pub fn status(&self) -> Status {
        self.last().status
    }

    /// The route of an alias of `shop`.
    pub fn alias(&self, alias: &str) -> String {
        self.lambda.state().functions["shop"].aliases.get(alias).map_or("-".into(), |alias| shown(&alias.route))
    }

    pub fn point(&self, function: &str, alias: &str, route: Route) {
        self.lambda.state().point(function, alias, route);
    }

    pub fn log(&self) -> Vec<String> {
        self.lambda.state().log.clone()
    }

    /// Asserts the status and the route of an alias, and prints the whole story if they differ.
    pub fn assert_ended(&self, status: Status, alias: &str) {
        let last = self.last();
        assert_eq!((last.status, self.alias("live").as_str()), (status, alias), "{last:#?}\n{:?}", self.log());
    }

    /// Moves time, and fires the timers.
    pub fn pass(&mut self, time: Span) {
        let until = self.world.now() + time;
        loop {
            self.work();
            let next = self.world.core().queue.next_time().filter(|next| *next <= until);
            let mut core = self.world.core();
            core.now = next.unwrap_or(until).max(core.now);
            let now = core.now;
            core.queue.fire(now);
            drop(core);
            if next.is_none() {
                break;
            }
        }
        self.work();
    }

    /// Drops all messages to the deployer.
    pub fn lose_jobs(&mut self) {
        self.world.core().queue.messages.retain(|_, message| message.engine != DEPLOYERS);
    }

    /// Handles messages until none is due.
    pub fn work(&mut self) {
        self.work_but(&[]);
    }

    /// Handles messages until none is due, except those for these engines.
    fn work_but(&mut self, busy: &[&str]) {
        loop {
            let id = {
                let core = self.world.core();
                let free = |id: &u64| !busy.contains(&core.queue.messages[id].engine.as_str());
                core.queue.receivable(core.now).into_iter().find(free)
            };
            let Some(id) = id else { return };
            let engine = self.world.core().queue.messages[&id].engine.clone();
            let received = self.world.core().queue.receive(id).expect("delivered too often");
            if engine == DEPLOYERS {
                let mut done = self.deploy(&received);
                if self.twice {
                    done &= self.deploy(&received);
                }
                let mut core = self.world.core();
                let now = core.now;
                if done { core.queue.acknowledge(id) } else { core.queue.give_back(id, now + self.invisible) }
            } else {
                block_on(handle(&self.engine, &received)).unwrap();
                self.world.core().queue.acknowledge(id);
            }
        }
    }

    /// Handles one delivery to the deployer. `false`: it failed, or the deployer stopped.
    fn deploy(&mut self, received: &keelway_world::queue::Received) -> bool {
        let job = Job::from_json(&received.parcel.text());
        let (deployers, received) = (self.deployers.clone(), received.clone());
        let mut task: Task<Option<Handled>> = Box::pin(async move { handle(&*deployers, &received).await.ok() });
        loop {
            let before = self.world.core().request_count();
            let polled = step(&mut task);
            self.requests += self.world.core().request_count() - before;
            if self.crash_after.is_some_and(|after| self.requests >= after) {
                self.crash_after = None;
                return false;
            }
            if let Poll::Ready(handled) = polled {
                if let (Some(Handled::Committed), Ok(Job::Start { at, .. })) = (handled, &job) {
                    self.jobs.push(*at);
                }
                return handled.is_some();
            }
            if self.lambda.state().calling {
                // A hook takes its time, during which other engines continue.
                let mut core = self.world.core();
                core.now = core.now + Span::seconds(5);
                let now = core.now;
                core.queue.fire(now);
                drop(core);
                self.work_but(&[DEPLOYERS]);
            }
            if self.stall_after.is_some_and(|after| self.requests >= after) {
                self.stall_after = None;
                self.stalled = Some(task);
                return false;
            }
        }
    }

    /// Continues the delivery that stalled. `false`: none has stalled.
    pub fn go_on(&mut self) -> bool {
        let Some(stalled) = self.stalled.take() else { return false };
        block_on(stalled);
        self.work();
        true
    }
}
