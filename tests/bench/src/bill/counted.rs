//! Counts in the in-memory world, whose requests and units are those of AWS: a sequence of four tasks with its timers, and a sweep
//! of an installation that does nothing.

use crate::cost::{Used, number};
use keelway_api::{Api, Paces, Served, Settings, Tokens, router};
use keelway_cloud_tests::Problem;
use keelway_cloud_tests::events::{Scope, answer};
use keelway_domain::deployments::registry::Repository;
use keelway_domain::event::{CloudEvent, HANDLED};
use keelway_domain::ids::sha256_hex;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::checks::Rules;
use keelway_engine::deployments;
use keelway_engine::ports::PortError;
use keelway_engine::registry::{Registry, Tagged};
use keelway_engine::sequences::{Limits, Sequences};
use keelway_engine::trouble::{Measure, Watch};
use keelway_outgoing::{Guard, Hosts};
use keelway_sweep::{Doors, Engines, sweep};
use keelway_wire::cloudevent::{Origin, parse};
use keelway_world::World;
use keelway_world::at_once::AtOnce;
use keelway_world::exec::block_on;
use keelway_world::story::play;
use keelway_world::worker::Worker;
use serde_json::{Map, Value};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;
use tower::ServiceExt;

/// The tasks of a sequence.
pub const TASKS: usize = 4;
const BEGIN: Timestamp = Timestamp(1_795_000_000_000);
/// What the API accepts.
pub const TOKEN: &str = "bench";
/// After this time, all timers of a sequence have fired.
const OVER: Span = Span::minutes(60);
/// What DynamoDB charges for each item besides its bytes.
const EACH_ITEM: usize = 100;

/// How triggers and answers arrive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Over {
    /// As requests to the API.
    Http,
    /// As events that others put on the bus.
    Bus,
}

/// What a sequence takes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Whole {
    /// Requests and units; the messages of the sequences function.
    pub used: Used,
    /// All events on the bus, those of others included.
    pub on_bus: f64,
    /// Of these, those of the audit.
    pub audits: f64,
    /// Requests to the API.
    pub calls: f64,
    /// What stays in the table, in bytes.
    pub stored: f64,
}

/// The API and the engine of sequences on the in-memory world, with a project of one sequence of four tasks.
pub struct Stand {
    /// Where everything is.
    pub world: World,
    /// The API.
    pub app: Served,
    engine: Sequences<Worker>,
    /// How much of the bus's log has reached the queue.
    delivered: usize,
    /// Events of others.
    said: usize,
    whole: Whole,
}

impl Stand {
    /// With the project applied.
    pub async fn new() -> Result<Self, Problem> {
        let world = World::new(BEGIN);
        let settings = Settings {
            tokens: Tokens::from_hex(&sha256_hex(TOKEN.as_bytes())),
            patience: Duration::ZERO,
            stack: "bench".into(),
            deployments: deployments::Limits::default(),
            delivers_webhooks: true,
            identities: None,
            sign_in: keelway_api::SignIn::default(),
            paces: Paces::default(),
            guard: Guard::new(Hosts::default()),
        };
        let app = router(Api::new(AtOnce::new(world.worker(0)), Limits::default(), settings));
        let engine = Sequences::new(world.worker(1), Limits::default());
        let stand = Self { world, app, engine, delivered: 0, said: 0, whole: Whole::default() };
        let tasks: Vec<String> = (1..=TASKS).map(|n| format!("{{name: task{n}}}")).collect();
        let shipyard = format!(
            "apiVersion: keelway.dev/v1\nkind: Project\nmetadata: {{name: bench}}\n---\napiVersion: spec.keptn.sh/0.2.3\n\
             kind: Shipyard\nmetadata: {{name: shipyard-bench}}\nspec: {{stages: [{{name: dev, sequences: [{{name: delivery, \
             tasks: [{}]}}]}}]}}\n",
            tasks.join(", ")
        );
        stand.post("/v1/apply", "application/yaml", shipyard).await?;
        Ok(stand)
    }

    async fn post(&self, path: &str, kind: &str, body: String) -> Result<(), Problem> {
        use axum::body::{Body, to_bytes};
        let request = axum::http::Request::post(path).header("x-token", TOKEN).header("content-type", kind).body(Body::from(body));
        let request = request.map_err(|error| Problem::of(path, error))?;
        let Ok(answer) = self.app.clone().oneshot(request).await;
        let status = answer.status();
        let text = to_bytes(answer.into_body(), usize::MAX).await.map_err(|error| Problem::of(path, error))?;
        if status.is_success() { Ok(()) } else { Err(format!("{path}: {status} {}", String::from_utf8_lossy(&text)).into()) }
    }

    async fn say(&mut self, over: Over, mut event: Value) -> Result<(), Problem> {
        self.world.pass(Span::seconds(1));
        // Always the same, so that the bill is.
        self.said += 1;
        event["id"] = format!("22222222-0000-4000-8000-{:012}", self.said).into();
        event["time"] = self.world.now().rfc3339().into();
        match over {
            Over::Http => {
                self.whole.calls += 1.0;
                self.post("/v1/event", "application/json", event.to_string()).await?;
            }
            Over::Bus => {
                self.whole.on_bus += 1.0;
                self.deliver(&event)?;
            }
        }
        self.work().await
    }

    /// What the rule of the sequences engine takes becomes a message.
    fn deliver(&mut self, event: &Value) -> Result<(), Problem> {
        let event: CloudEvent = parse(event, Origin::Bus, self.world.now()).map_err(|error| Problem::of("an event", error))?;
        if self.world.emit::<Sequences<Worker>>(event).is_some() {
            self.whole.used.outside += 1.0;
        }
        Ok(())
    }

    /// The function works until nothing is left.
    async fn work(&mut self) -> Result<(), Problem> {
        loop {
            let fresh: Vec<Value> = {
                let core = self.world.core();
                let entries = core.bus.log.iter().skip(self.delivered);
                entries.filter_map(|published| serde_json::from_str(&published.entry.detail).ok()).collect()
            };
            self.delivered += fresh.len();
            // The rule leaves alone what was handled where it arrived.
            for event in fresh.iter().filter(|event| event.get(HANDLED).is_none()) {
                self.deliver(event)?;
            }
            let next = {
                let mut core = self.world.core();
                let now = core.now;
                let id = core.queue.receivable(now).first().copied();
                id.and_then(|id| Some((id, core.queue.receive(id)?)))
            };
            let Some((id, received)) = next else { return Ok(()) };
            self.whole.used.messages += 1.0;
            block_on(play(&self.engine, &received)).map_err(|error| Problem(error.to_string()))?;
            self.world.core().queue.acknowledge(id);
        }
    }

    fn published(&self, context: &str, ty: &str) -> Option<Value> {
        let all = self.world.outgoing();
        let mut events = all.iter().rev().filter_map(|entry| serde_json::from_str::<Value>(&entry.detail).ok());
        events.find(|event| event["type"] == ty && event["shkeptncontext"] == context)
    }

    /// Triggers a sequence, whose first task begins and does not end.
    pub async fn begin(&mut self, context: &str) -> Result<(), Problem> {
        let scope = Scope::new("bench", "dev", "cart");
        self.say(Over::Http, scope.trigger("delivery", context, crate::bed::kilobyte(&scope))).await?;
        let ty = "sh.keptn.event.task1.triggered";
        let trigger = self.published(context, ty).ok_or_else(|| Problem(format!("{ty} was not published")))?;
        self.say(Over::Http, answer(&trigger, "started", "executor", Map::new())).await
    }

    /// A whole sequence.
    pub async fn sequence(&mut self, over: Over, context: &str) -> Result<(), Problem> {
        let scope = Scope::new("bench", "dev", "cart");
        self.say(over, scope.trigger("delivery", context, crate::bed::kilobyte(&scope))).await?;
        for task in 1..=TASKS {
            let ty = format!("sh.keptn.event.task{task}.triggered");
            let trigger = self.published(context, &ty).ok_or_else(|| Problem(format!("{ty} was not published")))?;
            self.say(over, answer(&trigger, "started", "executor", Map::new())).await?;
            self.say(over, answer(&trigger, "finished", "executor", crate::bed::kilobyte(&scope))).await?;
        }
        if self.published(context, "sh.keptn.event.dev.delivery.finished").is_none() {
            return Err("the sequence has not ended".into());
        }
        self.world.pass(OVER);
        self.work().await
    }

    /// So far.
    fn whole(&self) -> Whole {
        let used = Used::in_world(&self.world, self.whole.used.messages, self.whole.used.outside);
        let core = self.world.core();
        let audits = core.bus.log.iter().filter(|published| published.entry.detail_type == "dev.keelway.audit").count();
        let stored: usize = core.table.items().map(|item| item.size() + EACH_ITEM).sum();
        Whole {
            on_bus: self.whole.on_bus + used.events,
            used,
            audits: number(audits as u64),
            stored: number(stored as u64),
            ..self.whole
        }
    }
}

/// One more sequence of a service that is known.
pub async fn sequence(over: Over) -> Result<Whole, Problem> {
    let mut stand = Stand::new().await?;
    stand.sequence(over, "11111111-0000-4000-8000-000000000001").await?;
    let before = stand.whole();
    stand.sequence(over, "11111111-0000-4000-8000-000000000002").await?;
    let after = stand.whole();
    Ok(Whole {
        used: after.used - before.used,
        on_bus: after.on_bus - before.on_bus,
        audits: after.audits - before.audits,
        calls: after.calls - before.calls,
        // An entry of the audit has a random id, whose digits differ in number: hundreds of bytes are the same each time.
        stored: ((after.stored - before.stored) / 100.0).round() * 100.0,
    })
}

/// Empty queues that count who asks, no registry, and the rule for webhooks as the template makes it.
struct Idle(AtomicU64, AtomicBool);

impl Rules for Idle {
    async fn enabled(&self, _: &str, _: bool) -> Result<Option<bool>, PortError> {
        Ok(Some(self.1.load(Ordering::Relaxed)))
    }
    async fn switch(&self, _: &str, on: bool) -> Result<(), PortError> {
        self.1.store(on, Ordering::Relaxed);
        Ok(())
    }
}

impl Registry for Idle {
    async fn tags(&self, _: &Repository) -> Result<Option<Vec<Tagged>>, PortError> {
        Ok(None)
    }
}

impl Doors for Idle {
    async fn knock(&self, _: &str) -> Result<(), PortError> {
        Err(PortError::Refused { request: "test", reason: "an idle installation starts no function".into() })
    }
}

impl Watch for Idle {
    async fn messages(&self, _: &str) -> Result<u64, PortError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(0)
    }
    async fn measured(&self, _: &str, _: &[Measure], _: i64) -> Result<Vec<Vec<f64>>, PortError> {
        Err(PortError::Refused { request: "test", reason: "an idle installation reads no metric".into() })
    }
}

/// What a sweep of an installation does that does nothing else.
#[derive(Debug, Clone, Copy)]
pub struct IdleSweep {
    /// Its requests and units.
    pub used: Used,
    /// How often it asks queues.
    pub asks: f64,
    /// Whether the rule for webhooks is still enabled.
    pub feeds: bool,
}

/// The second sweep of an installation that does nothing, and has no subscription.
pub async fn idle_sweep(feeds: bool) -> Result<IdleSweep, Problem> {
    let world = World::new(BEGIN);
    let ports = AtOnce::new(world.worker(0));
    let engines = Engines::new(&ports, keelway_sweep::Limits::default());
    let (idle, quiet) = (Idle(AtomicU64::new(0), AtomicBool::new(feeds)), |_: &[_]| {});
    let so_far = || (Used::in_world(&world, 0.0, 0.0), number(idle.0.load(Ordering::Relaxed)));
    let sweep = async || {
        let until = Instant::now() + Duration::from_secs(60);
        sweep(&engines, &idle, Span::minutes(5), quiet, until).await.map_err(|error| Problem(error.to_string()))
    };
    sweep().await?;
    let first = so_far();
    sweep().await?;
    let both = so_far();
    Ok(IdleSweep { used: both.0 - first.0, asks: both.1 - first.1, feeds: idle.1.load(Ordering::Relaxed) })
}
