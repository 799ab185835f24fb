//! How executors and people react, and how everything comes to rest: the honest project's own work ends, whatever the other one
//! does.

use super::acts::pipeline;
use super::scenario::{Action, Neighbours};
use super::yard::lock;
use super::{EVIL, OUR_CLUSTER, OURS, THEIRS, address};
use crate::engines::event;
use crate::sim::Sim;
use keelway_domain::deployments::Config;
use keelway_domain::event::{CloudEvent, EventType, Kind};
use keelway_domain::promotions::Phase;
use keelway_domain::sequences::Execution;
use keelway_domain::time::Span;
use keelway_engine::deployments::{self, keys as configs};
use keelway_engine::protocol::Loaded;
use keelway_engine::sequences::codec;
use keelway_world::World;
use keelway_world::queue::Parcel;
use serde_json::{Value, json};

/// Rounds in which everything must have ended.
const ROUNDS: usize = 40;

/// A task that somebody is asked to do.
struct Asked {
    task: String,
    project: String,
    stage: String,
    context: String,
    trigger: String,
}

impl Neighbours {
    /// Executors and people see what was published.
    pub(super) fn react(&mut self, sim: &mut Sim<Self>, event: CloudEvent) {
        let text = |name: &str| event.text(name).unwrap_or_default().to_owned();
        let (of, stage) = (text("project"), text("stage"));
        let rolled_out = event.ty == "sh.keptn.event.live.delivery.finished" && of == OURS && text("result") == "pass";
        if let Some(image) = event.data.get("configurationChange").and_then(|change| change["values"]["image"].as_str())
            && rolled_out
        {
            lock(&self.yard).runs.insert("live".into(), image.to_owned());
            let now = sim.world.now();
            sim.plan(now, Action::Look(OUR_CLUSTER));
        }
        if let EventType::Task(task, Kind::Triggered) = EventType::parse(&event.ty) {
            let named = event.data.get(task.as_str()).is_some_and(|task| task["deploymentConfig"].is_string());
            let asked = Asked {
                task: task.to_string(),
                project: of.clone(),
                stage,
                context: event.context.to_string(),
                trigger: event.id.clone(),
            };
            if !named {
                self.asked(sim, &asked);
            }
        }
        if of == OURS && event.ty == "sh.keptn.event.deployment.triggered" {
            // An executor sends it as its own, with another image, and may be first.
            let mut forged = event.clone();
            forged.source = "tester".into();
            let image = format!("{EVIL}{}", self.heard.len());
            forged.data.insert("configurationChange".into(), json!({"values": {"image": image}}));
            sim.world.enqueue(deployments::NAME, Parcel::Event(forged));
        }
        if of == OURS && event.ty.starts_with("sh.keptn.") && self.heard.len() < 50 {
            self.heard.push(event);
        }
    }

    fn asked(&mut self, sim: &mut Sim<Self>, asked: &Asked) {
        let begin = sim.world.now() + sim.a_while(20);
        let end = begin + sim.a_while(60);
        if asked.task == "approval" {
            if asked.project == OURS {
                sim.plan(end, Action::Approve(asked.context.clone(), asked.trigger.clone()));
            }
            return;
        }
        let evil = if asked.project == THEIRS { Some(self.text(None)) } else { None };
        sim.plan(begin, Action::Answer(Box::new(answer(&sim.world, asked, Kind::Started, None))));
        sim.plan(end, Action::Answer(Box::new(answer(&sim.world, asked, Kind::Finished, evil))));
    }

    /// The honest project's approver looks at what waits.
    pub(super) fn people(&mut self, sim: &mut Sim<Self>) {
        let chance = if self.quiet { 100.0 } else { 2.0 };
        if !sim.rng.chance(chance) {
            return;
        }
        let Some(x) = pipeline(&sim.world, OURS, "flow") else { return };
        let promotion = x.environments.get("live").and_then(|state| state.promotion.as_ref());
        if let Some(promotion) = promotion.filter(|promotion| promotion.phase == Phase::Waiting && !promotion.approved) {
            let now = sim.world.now();
            let another = sim.rng.chance(30.0).then_some(Action::ApproveAsAnother);
            sim.plan(now, another.unwrap_or_else(|| Action::ApprovePromotion(promotion.revision.clone())));
        }
    }

    fn open(&self, world: &World) -> Vec<(Execution, Option<String>)> {
        let core = world.core();
        let ours = format!("C#{OURS}#");
        let items = core.table.items().filter(|item| item.key.pk.starts_with(&ours) && item.key.sk.starts_with("X#"));
        let open = items.filter_map(|item| {
            let x = Loaded::<Execution>::read(item).ok()?.x;
            Some((x, codec::open_task(item).map(str::to_owned)))
        });
        open.filter(|(x, _)| x.outcome.is_none()).collect()
    }

    fn config(&self, world: &World) -> Option<Config> {
        let core = world.core();
        let item = core.table.peek(&configs::config(&address(OURS, "api")))?;
        Loaded::<Config>::read(item).ok().map(|loaded| loaded.x)
    }

    /// Why the honest project's work has not ended.
    fn unfinished(&self, world: &World) -> Option<String> {
        if let Some((x, _)) = self.open(world).first() {
            return Some(format!("a sequence of {OURS} does not end: {x:?}"));
        }
        let x = self.config(world);
        let busy = x.as_ref().is_none_or(|x| x.in_flight().is_some() || x.pending.is_some());
        busy.then(|| format!("a deployment of {OURS} does not end: {x:?}"))
    }

    /// Nothing goes wrong any more, and the hostile project does nothing more.
    pub(super) fn end_everything(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        self.quiet = true;
        sim.patience = Some(Span::minutes(2));
        sim.redrive(self)?;
        let (mut still, mut tried) = (0, false);
        for _ in 0..ROUNDS {
            sim.rest(self, 60_000)?;
            let open = self.open(&sim.world);
            for (x, task) in &open {
                let (Some(task), Some(record)) = (task, x.record) else { continue };
                let asked = Asked {
                    task: task.clone(),
                    project: OURS.into(),
                    stage: x.stage.clone(),
                    context: x.context.to_string(),
                    trigger: record.uuid().to_string(),
                };
                if task != "deployment" {
                    self.asked(sim, &asked);
                }
            }
            self.people(sim);
            still = if self.unfinished(&sim.world).is_none() { still + 1 } else { 0 };
            if still > 0 && !tried {
                // Now that everything has ended, whoever may only trigger wants it once more.
                (tried, still) = (true, 0);
                let now = sim.world.now();
                (0..self.deliveries.len()).for_each(|n| sim.plan(now, Action::Retry(n)));
                continue;
            }
            if still > 2 {
                break;
            }
            sim.stats.count("rounds at the end");
            let now = sim.world.now();
            sim.plan(now, Action::Look(OUR_CLUSTER));
            sim.world.pass(Span::minutes(5));
            sim.plan_sweep();
        }
        sim.patience = None;
        Ok(())
    }

    /// The honest project's work has ended.
    pub(super) fn check_rest(&self, sim: &mut Sim<Self>) -> Result<(), String> {
        match self.unfinished(&sim.world) {
            Some(what) => Err(what),
            None => Ok(()),
        }
    }
}

/// What an executor says. One of the hostile project names the other one's config, with a text of its own.
fn answer(world: &World, asked: &Asked, kind: Kind, evil: Option<u64>) -> CloudEvent {
    let Asked { task, project, stage, context, trigger } = asked;
    let mut data: Value = json!({"project": project, "stage": stage, "service": "shop", "result": "pass", "status": "succeeded"});
    if let Some(n) = evil {
        data["deployment"] = json!({"deploymentConfig": "team-b:api", "by": "token:ann"});
        data["configurationChange"] = json!({"values": {"image": format!("{EVIL}{n}")}});
    }
    // What is asked for again is answered again, by somebody else if it says something else.
    let by = evil.map_or_else(|| "executor".to_owned(), |n| format!("executor-{n}"));
    let id = format!("{trigger}-{by}-{}", kind.as_str());
    let mut event = event(world, (&by, &format!("sh.keptn.event.{task}.{}", kind.as_str())), id, context, &data);
    event.triggered_id = Some(trigger.clone());
    event
}
