//! What each of the two projects does.

use super::check::OUR_EXECUTOR;
use super::hand::Hand;
use super::manifests::{app, config_app, moving_config, our_config, our_pipeline, reaching_config, tag, target, their_pipelines};
use super::planted::Plant;
use super::scenario::{Action, Neighbours};
use super::yard::lock;
use super::{EVIL, OUR_CLUSTER, OUR_SERVER, OURS, PRIVATE, THEIRS, address, project};
use crate::engines::{done, event};
use crate::sim::{Outcome, Sim};
use keelway_domain::access::{of_person, of_token};
use keelway_domain::address::Address;
use keelway_domain::deployments::definition::Definition;
use keelway_domain::deployments::registry::{ArtifactSource, Origin};
use keelway_domain::event::{CloudEvent, SOURCE};
use keelway_domain::names::Context;
use keelway_domain::note::Note;
use keelway_domain::promotions::observe::Observed;
use keelway_domain::promotions::registry::Cluster;
use keelway_domain::promotions::{At, Command, Pipeline};
use keelway_domain::time::Timestamp;
use keelway_engine::deployments::configs::Wanted;
use keelway_engine::deployments::images::Push;
use keelway_engine::keptn::integrations::{Integration, Subscription, Who};
use keelway_engine::ports::PortError;
use keelway_engine::promotions::observations::{Fact, OBSERVED};
use keelway_engine::promotions::{Message, keys};
use keelway_engine::protocol::Loaded;
use keelway_engine::sequences::commands::Verdict;
use keelway_engine::sequences::retry;
use keelway_engine::{deployments, promotions, sequences};
use keelway_world::World;
use keelway_world::queue::Parcel;
use serde_json::json;
use std::sync::Arc;

/// Who registers the hostile project's executor.
const THEIR_EXECUTOR: &str = "token:a-executor";

async fn apply(hand: &Hand, (namespace, name): (&str, &str), definition: &Definition) -> Outcome {
    let source = definition.template.to_string();
    let wanted = Wanted { definition, source: &source, by: "somebody", request: None, over: None };
    hand.engines.configs.apply(&address(namespace, name), &wanted).await.map(|_| None)
}

fn ready(revision: String, at: Timestamp) -> Observed {
    Observed { revision: Some(revision), ready: true, error: None, at, by: vec![] }
}

/// The revision that waits for approval in the honest project's pipeline.
pub(super) fn pipeline(world: &World, namespace: &str, name: &str) -> Option<Pipeline> {
    let core = world.core();
    let item = core.table.peek(&keys::pipeline(&address(namespace, name)))?;
    Loaded::<Pipeline>::read(item).ok().map(|loaded| loaded.x)
}

impl Neighbours {
    /// What is there from the beginning.
    pub(super) async fn furnish(&self, hand: &Hand) -> Result<(), PortError> {
        let from = Origin::Webhook { secret: "hook".into() };
        let source = ArtifactSource { from, tags: Default::default(), images: vec![], vouched: true };
        hand.engines.configs.apply_source(&address(OURS, "images"), &source, "").await?;
        apply(hand, (OURS, "api"), &our_config()).await?;
        apply(hand, (THEIRS, "moving"), &moving_config(0, true)).await?;
        let cluster = Cluster { server: OUR_SERVER.into(), ca_data: None, secret: "k8s".into(), interval: None, vouched: true };
        hand.engines.pipelines.clusters().apply(&Address::parse(OUR_CLUSTER), &cluster, "").await?;
        hand.engines.pipelines.clusters().apply(&address(THEIRS, "rogue"), &Cluster { vouched: false, ..cluster }, "").await?;
        hand.engines.pipelines.apply(&address(OURS, "flow"), &our_pipeline(), "").await?;
        for (name, definition) in their_pipelines() {
            hand.engines.pipelines.apply(&address(THEIRS, name), &definition, "").await?;
        }
        for (namespace, version) in [("a-dev", 0), ("a-live", 0)] {
            let observed = ready(format!("{EVIL}{version}"), Timestamp(0));
            hand.engines.pipelines.observe(&Fact { app: app(), target: target(None, namespace), version, observed }).await?;
        }
        lock(&self.yard).runs.extend(["dev", "live"].map(|namespace| (namespace.to_owned(), format!("{PRIVATE}2"))));
        Ok(())
    }

    /// Does what is on the agenda.
    pub(super) fn carry_out(&mut self, sim: &mut Sim<Self>, action: Action) {
        let again = action.clone();
        match action {
            Action::Consents(n) | Action::Policy(n) => {
                let of = if matches!(again, Action::Consents(_)) { OURS } else { THEIRS };
                let settings = self.settings(of, n);
                sim.work(self, again, move |hand| {
                    Box::pin(async move { done(hand.engines.sequences.projects().apply(&settings).await) })
                });
            }
            Action::Retry(n) => self.retry(sim, n),
            Action::Approve(context, trigger) => self.approve(sim, &context, &trigger),
            Action::ApprovePromotion(revision) => self.approve_promotion(sim, revision, (of_token("ann"), true)),
            Action::ApproveAsAnother => {
                let waits = pipeline(&sim.world, OURS, "flow").and_then(|x| x.run).map(|run| run.revision).unwrap_or_default();
                let by = if self.plant == Some(Plant::SubjectTakenForToken) {
                    of_token("ann")
                } else {
                    of_person("https://login.test", "ann")
                };
                self.approve_promotion(sim, waits, (by, false));
            }
            Action::Push(n) => {
                let (image, at) = (format!("registry/b:{PRIVATE}{n}"), sim.world.now());
                let push = Push { tag: tag().tag, image, at, by: String::new() };
                sim.work(self, again, move |hand| {
                    Box::pin(async move { hand.engines.configs.pushed(OURS, "images", &push).await.map(|_| None) })
                });
            }
            Action::Runs(n) => {
                lock(&self.yard).runs.insert("dev".into(), format!("{PRIVATE}{n}"));
                let now = sim.world.now();
                sim.plan(now, Action::Look(OUR_CLUSTER));
            }
            Action::Look(cluster) => {
                sim.work(self, again, move |hand| {
                    Box::pin(async move { hand.engines.pipelines.observe_cluster(&Address::parse(cluster)).await.map(|_| None) })
                });
            }
            Action::Register(ours, n) => self.register(sim, again, (ours, n)),
            Action::Reaching(n) => {
                sim.work(self, again, move |hand| {
                    Box::pin(async move { apply(&hand, (THEIRS, "reaching"), &reaching_config(n)).await })
                });
            }
            Action::Moving(n, own) => {
                sim.work(self, again, move |hand| {
                    Box::pin(async move { apply(&hand, (THEIRS, "moving"), &moving_config(n, own)).await })
                });
            }
            Action::Report(n) => {
                let observed = ready(format!("{EVIL}{n}"), sim.world.now());
                let fact = Fact { app: app(), target: target(None, "a-dev"), version: n as i64, observed };
                sim.work(self, again, move |hand| {
                    Box::pin(async move { hand.engines.pipelines.observe(&fact).await.map(|_| None) })
                });
            }
            Action::GiveUp(n) => {
                let note = Note { by: "token:mallory".into(), at: sim.world.now(), id: n, ..Note::default() };
                let command = Command::Abort("live".into());
                let message = Message::Command { to: address(THEIRS, "reach"), command, note };
                sim.world.enqueue(promotions::NAME, Parcel::Own(message.letter().body));
            }
            Action::Page => self.page(sim, again),
            Action::OurTrigger(n, stage, says) => self.trigger(sim, (n, stage, says)),
            Action::TheirTrigger(name, n) => {
                let data = json!({
                    "project": THEIRS, "stage": "dev", "service": "shop", "deployment": {"deploymentConfig": "team-b:api"},
                    "rollback": {"deploymentConfig": "team-b:api"}, "configurationChange": {"values": {"image": format!("{EVIL}{n}")}},
                });
                let ty = format!("sh.keptn.event.dev.{name}.triggered");
                let event = event(&sim.world, ("ci", &ty), format!("theirs-{n}"), &format!("a-{n}"), &data);
                sim.world.enqueue(sequences::NAME, Parcel::Event(event));
            }
            Action::ForgedTask(n) => {
                let data = json!({
                    "project": OURS, "stage": "live", "service": "shop", "deployment": {"deploymentConfig": "api"},
                    "configurationChange": {"values": {"image": format!("{EVIL}{n}")}},
                });
                let ty = "sh.keptn.event.deployment.triggered";
                let event = event(&sim.world, ("tester", ty), format!("forged-{n}"), &format!("a-{n}"), &data);
                sim.world.enqueue(deployments::NAME, Parcel::Event(event));
            }
            Action::ForgedFact(n) => {
                let fact = json!({
                    "apiVersion": config_app().api_version, "kind": config_app().kind, "name": "api", "namespace": OURS,
                    "revision": format!("{EVIL}{n}"), "ready": true, "version": 1_000_000_000 + n,
                });
                let data = json!({"facts": [fact], "by": ["token:somebody"]});
                let event = event(&sim.world, ("tester", OBSERVED), format!("told-{n}"), &format!("a-{n}"), &data);
                sim.world.enqueue(promotions::NAME, Parcel::Event(event));
            }
            Action::Copy(n) => self.copy(sim, n),
            Action::Answer(event) => drop(sim.world.enqueue(sequences::NAME, Parcel::Event(*event))),
        }
    }

    /// Somebody who may only trigger starts a delivery of the honest project.
    fn trigger(&mut self, sim: &mut Sim<Self>, (n, stage, says): (u64, &str, Option<&str>)) {
        let mut data = json!({
            "project": OURS, "stage": stage, "service": "shop",
            "configurationChange": {"values": {"image": format!("registry/b:{PRIVATE}{n}")}},
        });
        if let Some(result) = says {
            (data["result"], data["evaluation"]) = (result.into(), json!({"result": result}));
        }
        let (ty, context) = (format!("sh.keptn.event.{stage}.delivery.triggered"), format!("b-{n}"));
        let event = event(&sim.world, ("ci", &ty), format!("ours-{n}"), &context, &data);
        if stage == "live" {
            self.deliveries.push(event.context.to_string());
        }
        sim.world.enqueue(sequences::NAME, Parcel::Event(event));
    }

    /// Somebody without `approve` asks for a retry of what comes behind an approval. The API asks who may.
    fn retry(&self, sim: &mut Sim<Self>, n: usize) {
        let Some(context) = self.deliveries.get(n % self.deliveries.len().max(1)).map(|context| Context::of(context)) else {
            return;
        };
        let anybody = self.plant == Some(Plant::ApprovalForEver);
        sim.work(self, Action::Retry(n), move |hand| {
            Box::pin(async move {
                let wanted = retry::Wanted { from: Some("deployment"), ..Default::default() };
                match hand.engines.sequences.to_retry(&project(OURS), &context, wanted).await {
                    Ok(retried) if anybody || retried.behind.is_none() => {
                        hand.engines.sequences.send_retry(&retried, "token:ci").await.map(|()| None)
                    }
                    refused => done(refused),
                }
            })
        });
    }

    fn approve(&mut self, sim: &mut Sim<Self>, context: &str, trigger: &str) {
        self.watch.approvals.entry(context.to_owned()).or_default().insert(trigger.to_owned());
        let action = Action::Approve(context.to_owned(), trigger.to_owned());
        let (context, trigger) = (Context::of(context), trigger.to_owned());
        sim.work(self, action, move |hand| {
            Box::pin(async move {
                let verdict = Verdict { approve: true, by: Some("token:bea".into()), ..Verdict::default() };
                hand.engines.approve(&project(OURS), &context, &trigger, &verdict).await
            })
        });
    }

    /// Somebody approves the promotion of a revision; only one of them may.
    fn approve_promotion(&mut self, sim: &mut Sim<Self>, revision: String, (by, herself): (String, bool)) {
        let id = 5000 + self.text(None);
        if herself {
            self.watch.by_ann.insert(id);
        }
        let command = Command::Approve(At { environment: "live".into(), revision });
        let message =
            Message::Command { to: address(OURS, "flow"), command, note: Note { by, at: sim.world.now(), id, ..Note::default() } };
        sim.world.enqueue(promotions::NAME, Parcel::Own(message.letter().body));
    }

    /// An executor registers. The API says whose registrations a caller speaks for.
    fn register(&self, sim: &mut Sim<Self>, action: Action, (ours, n): (bool, u64)) {
        let owner = if ours { OUR_EXECUTOR } else { THEIR_EXECUTOR };
        let about = if ours { format!("{PRIVATE}{n}") } else { format!("{EVIL}{n}") };
        let who = Who { name: "executor".into(), namespace: "prod".into(), hostname: "host".into() };
        let to = Subscription {
            event: "sh.keptn.event.test.triggered".into(),
            projects: vec![if ours { OURS } else { THEIRS }.into()],
            ..Subscription::default()
        };
        let new = Integration { owner: owner.into(), who, about, subscriptions: vec![to], ..Integration::default() };
        let anybody = self.plant == Some(Plant::AnybodySpeaks);
        sim.work(self, action, move |hand| {
            Box::pin(async move {
                let speaks = |known: &Integration| anybody || known.owner == owner;
                done(hand.engines.sequences.integrations().register(&new, speaks).await)
            })
        });
    }

    /// Somebody who may read the hostile project lists its configs.
    fn page(&self, sim: &mut Sim<Self>, action: Action) {
        let (trusted, yard) = (self.plant == Some(Plant::PageKeyTrusted), self.yard.clone());
        sim.work(self, action, move |hand: Arc<Hand>| {
            Box::pin(async move {
                let own = [project(THEIRS)];
                let among = (!trusted).then_some(&own[..]);
                let (page, _) = hand.engines.configs.configs().everywhere(among, Some("team-b/a"), 10).await?;
                if let Some((of, _)) = page.iter().find(|(of, _)| of.namespace != THEIRS) {
                    lock(&yard).wrong.get_or_insert(format!("a page for {THEIRS} lists {of}"));
                }
                Ok(None)
            })
        });
    }

    /// The hostile project sends again what the other one has published, as an answer to it, or in its own name.
    fn copy(&mut self, sim: &mut Sim<Self>, n: u64) {
        if self.heard.is_empty() {
            return;
        }
        let mut copy: CloudEvent = sim.rng.pick(&self.heard).clone();
        if sim.rng.chance(50.0) {
            copy.triggered_id = Some(copy.id.clone());
            copy.ty = copy.ty.replace(".triggered", ".finished");
        }
        if copy.source == SOURCE || sim.rng.chance(50.0) {
            copy.source = "tester".into();
        }
        // They do not know the texts, only the names.
        copy.data = json!({
            "project": THEIRS, "stage": copy.text("stage").unwrap_or("dev"), "service": "shop", "result": "fail", "status": "succeeded",
            "message": format!("{EVIL}{n}"), "deployment": {"deploymentConfig": "team-b:api"},
        })
        .as_object()
        .cloned()
        .unwrap_or_default();
        sim.world.enqueue(sequences::NAME, Parcel::Event(copy));
    }
}
