//! Tasks of sequences in the simulation of deployments: who triggers them, and who gives them up.

use super::Both;
use super::scenario::{Action, Deploying};
use crate::sim::Sim;
use keelway_domain::deployments::Config;
use keelway_domain::event::CloudEvent;
use keelway_domain::ids::{event_id, hash64};
use keelway_domain::level::Level as _;
use keelway_domain::names::Context;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::item::Item;
use keelway_world::deployments::Waiting;
use keelway_world::rng::Rng;
use serde_json::json;

impl Deploying {
    /// A task is triggered.
    pub(super) fn task(&mut self, sim: &mut Sim<Self>, place: usize, name: &str, id: u64) {
        let to = &self.configs[place].0;
        let waiting = Waiting {
            project: to.namespace.clone(),
            context: Context::of(&format!("context-{id}")).to_string(),
            task: name.to_owned(),
            name: format!("task-{id}"),
        };
        let triggered = waiting.trigger();
        put(sim, waiting.item());
        self.waiting.push(waiting.clone());
        let config = Config::new(&to.namespace, &to.name, Timestamp(0)).id();
        for kind in ["started", "finished"] {
            self.answers_to_tasks.insert(event_id(config, &format!("task/{triggered}/{kind}")).to_string());
        }
        self.tasks.entry(triggered.clone()).or_default();
        let mut data = json!({"project": to.namespace, "stage": "dev", "service": "svc"});
        data[name] = json!({"deploymentConfig": to.name});
        let event = CloudEvent {
            id: triggered,
            source: "shipyard-controller".into(),
            ty: format!("sh.keptn.event.{name}.triggered"),
            time: sim.world.now(),
            context: Context::of(&format!("context-{id}")),
            authors: vec![],
            triggered_id: None,
            git_commit_id: None,
            data: data.as_object().cloned().unwrap_or_default(),
        };
        sim.world.emit::<Both>(event.clone());
        // What is derived draws nothing, so that the seeds without tasks stay as they were.
        let mut rng = Rng::new(hash64(&[b"over", &sim.world.now().0.to_be_bytes(), &id.to_be_bytes()]));
        if rng.chance(40.0) {
            let later = Span(rng.below(*rng.clone().pick(&[10_000, 300_000])) as i64);
            sim.plan(sim.world.now() + later, Action::Over(place, waiting, rng.chance(70.0)));
            let again = Span(later.0 + rng.below(600_000) as i64);
            sim.plan(sim.world.now() + again, Action::Again(Box::new(event)));
        }
    }

    /// No sequence waits for any task.
    pub(super) fn give_up_tasks(&self, sim: &Sim<Self>) {
        self.waiting.iter().for_each(|waiting| put(sim, waiting.over()));
    }

    /// A sequence does not wait for its task any more, and perhaps somebody tells so.
    pub(super) fn over(&mut self, sim: &mut Sim<Self>, place: usize, waiting: &Waiting, told: bool) {
        put(sim, waiting.over());
        self.over.insert(waiting.trigger());
        if told {
            sim.world.emit::<Both>(waiting.cancelled(&self.configs[place].0.name, sim.world.now()));
        }
    }
}

/// What the engine for sequences writes.
fn put(sim: &Sim<Deploying>, item: Item) {
    let done = sim.world.core().table.put_batch(&[item], &[], false);
    drop(done.expect("the twin takes it"));
}
