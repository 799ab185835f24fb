//! Two projects beside each other while consents come and go: whatever the one says, wherever it says it, and however late or often
//! that is delivered, nothing is done in the other one without its consent at that moment.
//!
//! With a planted fault, the engine reads other consents than those that were given; then the same check has to find an act.

use super::furnished::{Furnished, furnish};
use crate::stand::Stand;
use keelway_domain::event::SOURCE;
use keelway_domain::time::Span;
use keelway_engine::deployments::NAME;
use keelway_wire::cloudevent::{Origin, parse};
use keelway_world::queue::Parcel;
use keelway_world::rng::Rng;
use serde_json::{Value, json};

/// Histories, and steps of each.
const SEEDS: u64 = 24;
const STEPS: usize = 120;

/// What the other project lets the own one do: with its config, with another one, something else, nothing.
const CONSENTS: [(&str, bool); 5] = [
    ("[{to: [alfa], may: [deploy], names: [quuxcart]}]", true),
    ("[{to: ['al*'], may: [observe, deploy, trigger]}]", true),
    ("[{to: [alfa], may: [deploy], names: [quuxfresh]}]", false),
    ("[{to: [alfa], may: [observe, tag, trigger]}, {to: [alfalfa], may: [deploy]}]", false),
    ("[]", false),
];

/// One sequence whose task names the other project's config, and one whose task names none.
const SHIPYARD: &str = "{apiVersion: spec.keptn.sh/0.2.3, kind: Shipyard, metadata: {name: shipyard-alfa}, spec: {stages: [{name: alfadev, sequences: [{name: delivery, \
                        tasks: [{name: deployment}, {name: test}]}, {name: reach, tasks: [{name: deployment, properties: {deploymentConfig: 'quux:quuxcart'}}]}, {name: back, \
                        tasks: [{name: rollback, properties: {deploymentConfig: 'quux:quuxcart'}}]}, {name: hostile, tasks: [{name: test}, {name: deployment}, {name: rollback}]}, {name: evaluation, tasks: [{name: evaluation}]}]}, \
                        {name: alfaprod, sequences: [{name: release, tasks: [{name: approval}, {name: deployment}]}]}, {name: alfalate, sequences: [{name: delivery, tasks: \
                        [{name: deployment}]}]}]}}";

fn project(consents: &str) -> String {
    format!("{{apiVersion: keelway.dev/v1, kind: Project, metadata: {{name: quux}}, spec: {{consents: {consents}}}}}")
}

/// A history, and what was seen of it.
struct History {
    stand: Stand,
    rng: Rng,
    /// Whether the other project lets the own one deploy its config now.
    lets: bool,
    /// How much of the bus was looked at, and the tasks that were found there.
    seen: usize,
    tasks: Vec<Parcel>,
    acts: usize,
    refused: usize,
}

impl History {
    async fn begin(f: &Furnished, seed: u64) -> Self {
        let mut stand = f.stand.fork(f.secrets.clone());
        stand.manifests(&project(CONSENTS[0].0)).await;
        stand.manifests(SHIPYARD).await;
        let seen = stand.world.core().bus.log.len();
        Self { stand, rng: Rng::new(seed), lets: true, seen, tasks: vec![], acts: 0, refused: 0 }
    }

    /// What the config of the other project was told to do.
    fn obeyed(&self) -> Vec<String> {
        let core = self.stand.world.core();
        core.table
            .partition("D#quux#quuxcart")
            .filter(|item| !item.key.sk.starts_with("A#"))
            .map(|item| format!("{item:?}"))
            .collect()
    }

    async fn consent(&mut self, planted: bool) {
        let (consents, lets) = *self.rng.pick(&CONSENTS);
        let said = if planted { CONSENTS[1].0 } else { consents };
        self.stand.like("").manifests(&project(said)).await;
        self.lets = lets;
    }

    /// The own project starts a sequence, with everything in the data that could name a config.
    async fn trigger(&mut self) {
        let n = self.rng.below(1_000_000);
        let sequence = *self.rng.pick(&["reach", "back", "hostile", "delivery"]);
        let mut data = json!({"project": "alfa", "stage": "alfadev", "service": format!("alfa{n}")});
        let names = json!({"deploymentConfig": "quux:quuxcart"});
        for member in ["deployment", "rollback", "test"] {
            data[member] = names.clone();
        }
        data["configurationChange"] = json!({"values": {"image": format!("registry.test/alfa:{n}")}});
        let event = json!({"type": format!("sh.keptn.event.alfadev.{sequence}.triggered"), "source": "alfaci", "data": data});
        let answer = self.stand.like("alfa-trigger").post("/v1/event", &event).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    /// An executor of the own project answers a task, and names a config in its answer.
    async fn answer(&mut self) {
        let open = self.stand.like("alfa-execute").get("/v1/event/triggered/test?project=alfa").await.json()["events"][0].clone();
        if !open["id"].is_string() {
            return;
        }
        for kind in ["started", "finished"] {
            let mut event = json!({
                "type": format!("sh.keptn.event.test.{kind}"), "source": "alfaci", "shkeptncontext": open["shkeptncontext"], "triggeredid": open["id"],
                "data": {"project": "alfa", "stage": "alfadev", "service": open["data"]["service"], "result": "pass", "status": "succeeded"}
            });
            for member in ["deployment", "rollback", "test"] {
                event["data"][member] = json!({"deploymentConfig": "quux:quuxcart"});
            }
            let answer = self.stand.post("/v1/event", &event).await;
            assert!(answer.status < 500, "{answer:?}");
            while self.step(false).await.unwrap_or(false) {}
        }
    }

    /// The tasks that are new on the bus, as the rule of the deployments' queue takes them.
    fn look(&mut self) {
        let core = self.stand.world.core();
        for one in core.bus.log.iter().skip(self.seen) {
            let json: Value = serde_json::from_str(&one.entry.detail).unwrap();
            let names = ["deployment", "rollback"].iter().any(|task| json["data"][task]["deploymentConfig"].is_string());
            let task = ["sh.keptn.event.deployment.triggered", "sh.keptn.event.rollback.triggered"]
                .contains(&one.entry.detail_type.as_str());
            if one.entry.source == SOURCE && task && names {
                self.tasks.push(Parcel::Event(parse(&json, Origin::Bus, core.now).unwrap()));
            }
        }
        self.seen = core.bus.log.len();
    }

    /// Delivers one task, perhaps an old one again; an error says what was done without a consent.
    async fn deliver(&mut self) -> Result<(), String> {
        self.look();
        if self.tasks.is_empty() {
            return Ok(());
        }
        while self.step(false).await? {}
        let (before, task) = (self.obeyed(), self.tasks[self.rng.below(self.tasks.len())].clone());
        let answered = self.stand.world.core().bus.log.len();
        self.stand.world.enqueue(NAME, task.clone());
        self.step(true).await?;
        let acted = self.obeyed() != before;
        self.acts += usize::from(acted);
        self.refused += usize::from(!acted && self.stand.world.core().bus.log.len() > answered);
        if acted && !self.lets { Err(format!("{} was obeyed without a consent", task.text())) } else { Ok(()) }
    }

    /// One message; `whole`: until none is left of what it causes at once.
    async fn step(&mut self, whole: bool) -> Result<bool, String> {
        if whole {
            self.stand.work().await;
            return Ok(false);
        }
        Ok(self.stand.step().await)
    }

    async fn run(&mut self, planted: bool) -> Result<(), String> {
        for _ in 0..STEPS {
            match self.rng.below(10) {
                0..2 => self.consent(planted).await,
                2..4 => self.trigger().await,
                4 => self.answer().await,
                5 => self.stand.world.pass(Span::seconds(i64::try_from(self.rng.below(20)).unwrap_or(0))),
                6..9 => self.deliver().await?,
                _ => drop(self.step(false).await?),
            }
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_done_without_a_consent_at_that_moment() {
    let f = furnish().await;
    let (mut acts, mut refused) = (0, 0);
    for seed in 0..SEEDS {
        let mut history = History::begin(&f, seed).await;
        let told = history.run(false).await;
        assert_eq!(told, Ok(()), "seed {seed}");
        acts += history.acts;
        refused += history.refused;
    }
    assert!(acts > 10 && refused > 10, "{acts} acts, {refused} refused: the histories show nothing");
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_does_not_see_what_was_taken_back_is_found() {
    let f = furnish().await;
    let mut found = false;
    for seed in 0..SEEDS {
        found = found || History::begin(&f, seed).await.run(true).await.is_err();
    }
    assert!(found, "the check finds nothing");
}
