//! What people, executors and deployers do.

use super::hand::Hand;
use super::manifests::{self, ALARM};
use super::scenario::{Action, Delivering, apply};
use super::{APPROVER, PROJECT, SERVICE, STAGES, clusters, config, image, pipeline, project};
use crate::deployments::crew::{Fate, Say, lock};
use crate::engines::{done, event};
use crate::sim::Sim;
use keelway_domain::event::{CloudEvent, EventType, Kind};
use keelway_domain::ids::hash64;
use keelway_domain::names::Context;
use keelway_domain::note::Note;
use keelway_domain::promotions::{At, Command, EVALUATION_FAILED, Phase, Pipeline, Promotion};
use keelway_domain::time::Span;
use keelway_engine::item::Key;
use keelway_engine::projects::NewShipyard;
use keelway_engine::promotions::{self, Message, keys};
use keelway_engine::protocol::{Loaded, Subject};
use keelway_engine::sequences::commands::{Control, Verdict};
use keelway_engine::sequences::retry::Wanted;
use keelway_engine::{deployments, sequences};
use keelway_world::World;
use keelway_world::queue::Parcel;
use serde_json::json;
use std::sync::Arc;

/// So many deployers at most are drawn; then those at the end come.
const MOST_DEPLOYERS: usize = 60;
/// So often people ask for an evaluation anew.
const MOST_TRIES: u32 = 4;

/// A subject as it is.
pub(super) fn state<S: Subject>(world: &World, key: &Key) -> Option<S> {
    let core = world.core();
    Loaded::<S>::read(core.table.peek(key)?).ok().map(|loaded| loaded.x)
}

impl Delivering {
    /// Does what is on the agenda.
    pub(super) fn carry_out(&mut self, sim: &mut Sim<Self>, action: Action) {
        let again = action.clone();
        match action {
            Action::Deliver(place, n) => self.deliver(sim, STAGES[place], n),
            Action::Answer(event) => self.send(sim, *event),
            Action::Approve(context, trigger) => sim.work(self, again, move |hand: Arc<Hand>| {
                Box::pin(async move {
                    let verdict = Verdict { approve: true, by: Some("token:bea".into()), ..Verdict::default() };
                    hand.engines.approve(&project(PROJECT), &Context::of(&context), &trigger, &verdict).await
                })
            }),
            Action::ApprovePromotion(at) => self.flows(sim, Command::Approve(at), APPROVER),
            Action::Deployer(who, say) => self.say(sim, who, say),
            Action::Control(n, what) => {
                let Some(context) = self.context(n) else { return };
                if what == Control::Abort {
                    self.watch.aborted.insert(context.to_string());
                }
                sim.work(self, again, move |hand: Arc<Hand>| {
                    Box::pin(async move { done(hand.engines.sequences.control(&project(PROJECT), &context, None, what).await) })
                });
            }
            Action::Repeat(n) => {
                let Some(context) = self.context(n) else { return };
                self.asked.1 += 1;
                sim.work(self, again, move |hand: Arc<Hand>| {
                    Box::pin(
                        async move { done(hand.engines.sequences.retry(&project(PROJECT), &context, Wanted::default()).await) },
                    )
                });
            }
            Action::Flow(command) => self.flows(sim, command, APPROVER),
            Action::Ask(place, command) => {
                self.commands += 1;
                self.asked.0 += 1;
                let note = Note { by: "token:bea".into(), at: sim.world.now(), id: self.commands, ..Note::default() };
                let message = deployments::Message::Command { to: config(STAGES[place]), command, note };
                sim.world.enqueue(deployments::NAME, Parcel::Own(message.letter().body));
            }
            Action::Alarm(place, on) => {
                let (to, at) = (config(STAGES[place]), sim.world.now());
                let message = deployments::Message::Alarm { to, alarm: ALARM.into(), on, at };
                sim.world.enqueue(deployments::NAME, Parcel::Own(message.letter().body));
            }
            Action::Apply(place, env) => {
                self.asked.0 += 1;
                self.plan.configs[place].template["spec"]["containers"][0]["env"] = env.to_string().into();
                let definition = self.plan.configs[place].clone();
                sim.work(self, again, move |hand: Arc<Hand>| {
                    Box::pin(async move { apply(&hand, STAGES[place], &definition).await })
                });
            }
            Action::Delete(place) => sim.work(self, again, move |hand: Arc<Hand>| {
                Box::pin(async move { hand.engines.configs.delete(&config(STAGES[place])).await.map(|_| None) })
            }),
            Action::ApplyFlow => {
                let definition = self.plan.pipeline.clone();
                sim.work(self, again, move |hand: Arc<Hand>| {
                    Box::pin(async move { hand.engines.pipelines.apply(&pipeline(), &definition, "").await.map(|_| None) })
                });
                self.stir(sim);
            }
            Action::DeleteFlow => sim.work(self, again, move |hand: Arc<Hand>| {
                Box::pin(async move { hand.engines.pipelines.delete(&pipeline()).await.map(|_| None) })
            }),
            Action::Shipyard(n) => self.apply_shipyard(sim, n),
            Action::Past(n) => {
                let Some((queue, parcel)) = self.told.get(n % self.told.len().max(1)).cloned() else { return };
                sim.world.enqueue(&queue, parcel);
            }
            Action::Cluster(act) => self.at_cluster(sim, act),
            Action::Push(push) => self.push(sim, push),
            Action::DeleteImage(deletion) => self.delete_image(sim, deletion),
        }
    }

    /// One of the contexts in which stages deliver.
    fn context(&self, n: usize) -> Option<Context> {
        self.contexts.get(n % self.contexts.len().max(1)).map(|context| Context::of(context))
    }

    fn apply_shipyard(&mut self, sim: &mut Sim<Self>, n: usize) {
        let (shipyard, revision) = (manifests::shipyard(&self.plan.shipyards[n]), format!("r{n}"));
        self.watch.shipyards.insert(revision.clone(), shipyard.clone());
        sim.work(self, Action::Shipyard(n), move |hand: Arc<Hand>| {
            Box::pin(async move {
                let new = NewShipyard { revision: &revision, source: "", shipyard: &shipyard, replaces: None, by: "" };
                done(hand.engines.sequences.apply_shipyard(&project(PROJECT), new).await)
            })
        });
    }

    /// Somebody asks the pipeline for something. Its number is that of the request.
    pub(super) fn flows(&mut self, sim: &mut Sim<Self>, command: Command, by: &str) {
        self.commands += 1;
        if let Command::Approve(at) = &command {
            self.watch.approvals.insert(self.commands, at.revision.clone());
        }
        let note = Note { by: by.into(), at: sim.world.now(), id: self.commands, ..Note::default() };
        let message = Message::Command { to: pipeline(), command, note };
        sim.world.enqueue(promotions::NAME, Parcel::Own(message.letter().body));
    }

    /// A worker stopped while it did this. Whoever got no answer does it again; a deployer may be gone for good.
    pub(super) fn interrupted(&mut self, sim: &mut Sim<Self>, action: Action) {
        let now = sim.world.now();
        match action {
            // Where it stops between its write and what follows from it, nobody but the sweep would know.
            // What it has not done, the next one does.
            Action::Cluster(clusters::Act::Tick) => {}
            Action::Deployer(who, _) if !self.quiet && !sim.troubles.unswept && sim.rng.chance(20.0) => lock(&self.crew).dies(who),
            action => sim.plan(now, action),
        }
    }

    /// Somebody triggers the delivery of a stage.
    fn deliver(&mut self, sim: &mut Sim<Self>, stage: &str, n: u64) {
        let data = json!({
            "project": PROJECT, "stage": stage, "service": SERVICE, "configurationChange": {"values": {"image": image(n)}},
        });
        let ty = format!("sh.keptn.event.{stage}.delivery.triggered");
        let event = event(&sim.world, ("ci", &ty), format!("{stage}-{n}"), &format!("{stage}-{n}"), &data);
        self.asked.1 += 1;
        self.contexts.push(event.context.to_string());
        self.send(sim, event);
    }

    /// A client or an executor sends an event.
    fn send(&mut self, sim: &Sim<Self>, event: CloudEvent) {
        self.given.push(event.clone());
        sim.world.enqueue(sequences::NAME, Parcel::Event(event));
    }

    /// Whether people give what waits for them there.
    pub(super) fn give(&self, what: &str) -> bool {
        hash64(&[b"given", what.as_bytes()]) % 100 < self.plan.patient as u64
    }

    /// Executors, people and deployers see what was published.
    pub(super) fn react(&mut self, sim: &mut Sim<Self>, event: &CloudEvent, again: bool) {
        if let EventType::Task(task, Kind::Triggered) = EventType::parse(&event.ty) {
            match task.as_str() {
                "approval" if self.give(&event.id) => {
                    let at = sim.world.now() + sim.a_while(60);
                    sim.plan(at, Action::Approve(event.context.to_string(), event.id.clone()));
                }
                "test" => self.test(sim, event),
                _ => {}
            }
        }
        let version = event.data.get("version").and_then(serde_json::Value::as_u64);
        if let Some(n) = version.filter(|_| event.ty == "dev.keelway.deployment.requested" && !again) {
            let namespace = event.text("project").unwrap_or_default().to_owned();
            self.offered(sim, &namespace, n);
            self.builds(sim);
        }
    }

    /// An executor is asked to test.
    fn test(&mut self, sim: &mut Sim<Self>, asked: &CloudEvent) {
        let world = sim.world.clone();
        let answer = |kind: Kind, result: &str, by: &str| {
            let data = json!({
                "project": PROJECT, "stage": asked.text("stage"), "service": SERVICE, "result": result, "status": "succeeded",
            });
            let id = format!("{}-{by}-{}", asked.id, kind.as_str());
            let ty = format!("sh.keptn.event.test.{}", kind.as_str());
            let mut event = event(&world, (by, &ty), id, asked.context.as_str(), &data);
            event.triggered_id = Some(asked.id.clone());
            Action::Answer(Box::new(event))
        };
        let begin = sim.world.now() + sim.a_while(20);
        let end = begin + sim.a_while(60);
        let fate = if self.quiet { 0 } else { sim.rng.below(16) };
        // It may say how it went more than once: of one that says twice the same, and of another one.
        let answers = match fate {
            0..9 => vec![(begin, Kind::Started, "pass", "tester"), (end, Kind::Finished, "pass", "tester")],
            9..12 => vec![(begin, Kind::Started, "fail", "tester"), (end, Kind::Finished, "fail", "tester")],
            12 => vec![(begin, Kind::Started, "pass", "tester")],
            13 => vec![],
            // After the deadline.
            14 => vec![(begin, Kind::Started, "pass", "tester"), (end + Span::minutes(6), Kind::Finished, "pass", "tester")],
            _ => vec![
                (end, Kind::Finished, "pass", "tester"),
                (begin, Kind::Started, "pass", "tester"),
                (end, Kind::Finished, "pass", "tester"),
            ],
        };
        let answers: Vec<_> = answers.into_iter().map(|(at, kind, result, by)| (at, answer(kind, result, by))).collect();
        answers.into_iter().for_each(|(at, action)| sim.plan(at, action));
    }

    /// A version is offered: some deployers come, at the same time or later.
    pub(super) fn offered(&mut self, sim: &mut Sim<Self>, namespace: &str, n: u64) {
        let Some(place) = STAGES.iter().position(|stage| config(stage).namespace == namespace) else { return };
        let quiet = self.quiet || lock(&self.crew).all.len() > MOST_DEPLOYERS;
        let count = if quiet { 1 } else { *sim.rng.pick(&[0, 1, 1, 1, 1, 2]) };
        for _ in 0..count {
            let succeeds = quiet || sim.rng.chance(60.0);
            let fate = if succeeds { Fate::Succeeds } else { *sim.rng.pick(&Fate::ALL) };
            let lease = *sim.rng.pick(&[Span::seconds(60), Span::seconds(20), Span::minutes(5)]);
            let beats = sim.rng.below(3) as u32 + if fate == Fate::Succeeds || fate == Fate::Fails { 0 } else { 2 };
            let who = lock(&self.crew).hire(place, n, fate, (lease, beats));
            let at = sim.world.now() + if self.quiet { Span(0) } else { sim.a_while(40) };
            sim.plan(at, Action::Deployer(who, Say::Claim));
        }
    }

    /// A deployer says something to whoever serves it.
    fn say(&mut self, sim: &mut Sim<Self>, who: usize, say: Say) {
        let (call, place, n) = {
            let mut crew = lock(&self.crew);
            if crew.all[who].gone {
                return;
            }
            (crew.call(who, say), crew.all[who].place, crew.all[who].n)
        };
        let (to, crew, sent) = (config(STAGES[place]), self.crew.clone(), sim.world.now());
        sim.work(self, Action::Deployer(who, say), move |hand: Arc<Hand>| {
            Box::pin(async move {
                let told = hand.engines.configs.say(&to, n, &call).await?;
                lock(&crew).hear(who, say, sent, &told);
                Ok(None)
            })
        });
    }

    /// The pipeline.
    pub(super) fn flow(world: &World) -> Option<Pipeline> {
        state(world, &keys::pipeline(&pipeline()))
    }

    /// People look at what waits for their approval, and at evaluations that have failed. Whether anything does that they give.
    pub(super) fn people(&mut self, sim: &mut Sim<Self>) -> bool {
        if !self.quiet && !sim.rng.chance(2.0) {
            return false;
        }
        let Some(x) = Self::flow(&sim.world) else { return false };
        let waits = |promotion: &&Promotion| {
            promotion.phase == Phase::Waiting && !promotion.approved && promotion.why.reason == "ApprovalNeeded"
        };
        let mut given = false;
        for (environment, state) in &x.environments {
            let Some(promotion) = state.promotion.as_ref().filter(waits) else { continue };
            if self.give(&format!("{environment} {}", promotion.run)) {
                given = true;
                let at = At { environment: environment.clone(), revision: promotion.revision.clone() };
                let now = sim.world.now();
                sim.plan(now, Action::ApprovePromotion(at));
            }
        }
        let failed = |promotion: &&Promotion| promotion.phase == Phase::Waiting && promotion.why.reason == EVALUATION_FAILED;
        for (environment, promotion) in x.environments.iter().filter_map(|(name, state)| Some((name, state.promotion.as_ref()?))) {
            let of = (environment.clone(), promotion.run);
            // Nobody asks for ever before the services that are evaluated are well again, or while a target is not ready: then the
            // promotion keeps the reason of before.
            let most = if self.quiet { 2 * MOST_TRIES } else { MOST_TRIES };
            let tries = self.anew.get(&of).is_none_or(|tried| *tried < most);
            if failed(&promotion) && tries && self.give(&format!("{environment} {} anew", promotion.run)) {
                *self.anew.entry(of).or_default() += 1;
                given = true;
                let now = sim.world.now();
                sim.plan(now, Action::Flow(Command::Retry(environment.clone())));
            }
        }
        given
    }
}
