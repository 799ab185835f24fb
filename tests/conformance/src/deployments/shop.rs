//! A world with one artifact source and the config `app`, for tests that say what happens when.

use super::{Both, DeploymentsWorld, Rider, Starter, both};
use keelway_domain::deployments::definition::Definition;
use keelway_domain::deployments::registry::{ArtifactSource, Origin, Repository};
use keelway_domain::deployments::{Call, Command, Config, LEASE, Progress, Status};
use keelway_domain::event::CloudEvent;
use keelway_domain::names::Context;
use keelway_domain::note::Note;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::deployments::{Address, Message};
use keelway_engine::protocol::{Handled, Inbox};
use keelway_world::case::{Answer, Said, Stand};
use keelway_world::deployments::{DeploymentsStand, REPOSITORY, SOURCE, Waiting};
use keelway_world::exec::block_on;
use keelway_world::queue::{Parcel, Received};
use keelway_world::story::{Mode, play};
use serde_json::{Value, json};

/// A config `app` in the namespace `shop`, and everything around it.
pub struct Shop {
    /// The world.
    pub world: DeploymentsWorld,
    commands: u64,
}

impl Shop {
    /// With the source of the cases.
    pub fn new() -> Self {
        let mut world = DeploymentsWorld::new(Mode::Clean, Rider::None, None);
        let repository = Repository { account: None, region: None, name: REPOSITORY.into() };
        let from = Origin::Ecr(repository);
        world.bind("shop", SOURCE, &ArtifactSource { from, tags: Default::default(), images: vec![], vouched: false });
        Self { world, commands: 0 }
    }

    /// With this config, whose first version is complete.
    pub fn deployed(definition: &Definition) -> Self {
        let mut shop = Self::new();
        shop.apply(definition);
        shop.carry_out(0);
        assert_eq!(shop.versions(), (1, Status::Complete));
        shop
    }

    /// The config's address.
    pub fn app() -> Address {
        Address { namespace: "shop".into(), name: "app".into() }
    }

    /// An engine beside the one that handles messages.
    pub fn engine(&self) -> Both {
        let engine = both(&self.world.story.world.worker(5), &Starter::default(), None);
        Inbox::ports(&engine).begin(None);
        engine
    }

    /// Applies a definition, and lets the change become a version.
    pub fn apply(&mut self, definition: &Definition) {
        self.world.apply("shop", "app", definition, None);
        self.world.wait(Span::seconds(5));
    }

    /// Claims the latest version, and ends with this code.
    pub fn carry_out(&mut self, exit: i64) {
        self.claim();
        self.end(exit);
    }

    /// Claims the latest version.
    pub fn claim(&mut self) {
        let n = self.x().latest;
        let call = Call::Claim { by: "ci".into(), id: n, token: format!("token {n}"), lease: LEASE };
        assert_eq!(self.world.say("shop", "app", n, &call).0.said, Some(Said::Status(200)), "{:?}", self.x());
    }

    /// Whoever has the latest version ends with this code.
    pub fn end(&mut self, exit: i64) {
        let n = self.x().latest;
        let call =
            Call::End { token: format!("token {n}"), exit: Some(exit), message: String::new(), progress: Progress::default() };
        self.world.say("shop", "app", n, &call);
    }

    /// Asks something of the config.
    pub fn ask(&mut self, command: Command) {
        self.commands += 1;
        let note = Note { by: "ann".into(), at: self.world.now(), id: self.commands, ..Note::default() };
        let message = Message::Command { to: Self::app(), command, note };
        self.world.story.put_in(Parcel::Own(message.letter().body));
    }

    /// The config.
    pub fn x(&self) -> Config {
        self.world.state("shop", "app").expect("a config")
    }

    /// The latest version, and its status.
    pub fn versions(&self) -> (u64, Status) {
        let x = self.x();
        (x.latest, x.last.expect("a version").status)
    }

    /// An event of an AWS service, of this time.
    pub fn aws(&mut self, (source, ty): (&str, &str), data: &Value, at: Timestamp) -> Parcel {
        self.world.event(source, ty, data, at)
    }

    /// An event of ECR about an image.
    pub fn ecr(&mut self, action: &str, tag: Option<&str>, digest: &str, at: Timestamp) -> Parcel {
        let mut data = json!({"action-type": action, "result": "SUCCESS", "repository-name": REPOSITORY, "image-digest": format!("sha256:{digest}")});
        if let Some(tag) = tag {
            data["image-tag"] = tag.into();
        }
        self.aws(("aws.ecr", "ECR Image Action"), &data, at)
    }

    /// An alarm went on or off at this time.
    pub fn alarm(&mut self, alarm: &str, on: bool, at: Timestamp) -> Option<Handled> {
        let data = json!({"alarmName": alarm, "state": {"value": if on { "ALARM" } else { "OK" }}});
        let event = self.aws(("aws.cloudwatch", "CloudWatch Alarm State Change"), &data, at);
        self.tell(event)
    }

    /// Has an event handled, with everything that follows at once.
    pub fn tell(&mut self, event: impl Into<Parcel>) -> Option<Handled> {
        // Two messages have two times.
        self.world.wait(Span(1));
        match self.world.story.put_in(event.into()) {
            Answer { said: Some(Said::Handled(handled)), .. } => Some(handled),
            _ => None,
        }
    }

    /// Whether the source told that an image is gone.
    pub fn is_gone(&self, digest: &str) -> bool {
        let gone = block_on(self.engine().decides.gone(&[("shop".into(), SOURCE.into())], &[format!("sha256:{digest}")]));
        !gone.expect("nothing is in the way").is_empty()
    }

    /// An execution that waits for a task.
    pub fn waits(&mut self, task: &str, name: &str) -> Waiting {
        let context = Context::of(name).to_string();
        let waiting = Waiting { project: "shop".into(), context, task: task.into(), name: name.into() };
        self.world.keep(waiting.item());
        waiting
    }

    /// The trigger of its task, which names a config and an image.
    pub fn trigger(&self, of: &Waiting, config: &str, image: &str) -> CloudEvent {
        let mut data = json!({"project": "shop", "stage": "dev", "service": "svc"});
        data[&of.task] = json!({"deploymentConfig": config});
        data["configurationChange"] = json!({"values": {"image": image}});
        CloudEvent {
            id: of.trigger(),
            ty: format!("sh.keptn.event.{}.triggered", of.task),
            triggered_id: None,
            data: data.as_object().cloned().unwrap_or_default(),
            ..of.cancelled(config, self.world.now())
        }
    }

    /// It waits no more, and whether somebody tells so.
    pub fn gives_up(&mut self, of: &Waiting, told: bool) {
        self.world.keep(of.over());
        if told {
            self.tell(of.cancelled("app", self.world.now()));
        }
    }

    /// The sweep, and everything that follows.
    pub fn sweep(&mut self) {
        block_on(crate::sim::pages(&self.engine())).expect("nothing is in the way");
        self.world.story.deliver_all();
    }

    /// The answers to a task that were published, repetitions included.
    pub fn answers(&self, to: &Waiting) -> Vec<String> {
        let core = self.world.story.world.core();
        let all = core.bus.log.iter().filter(|publication| publication.entry.detail.contains(&to.trigger()));
        all.map(|publication| publication.entry.detail_type.clone()).filter(|ty| ty.starts_with("sh.keptn.")).collect()
    }

    /// Deletes what has expired.
    pub fn expire(&self) {
        let mut core = self.world.story.world.core();
        let now = core.now.0 / 1000;
        let expired = |item: &&std::sync::Arc<keelway_engine::item::Item>| item.number("ttl").is_some_and(|ttl| ttl <= now);
        let gone: Vec<_> = core.table.items().filter(expired).map(|item| item.key.clone()).collect();
        for keys in gone.chunks(25) {
            drop(core.table.put_batch(&[], keys, false).expect("the twin deletes"));
        }
    }

    /// Has the engine handle an event without a message around it.
    ///
    /// # Errors
    /// Of the ports.
    pub fn handles(&self, event: &Parcel) -> Result<Handled, keelway_engine::ports::PortError> {
        let (engine, sent) = (keelway_engine::deployments::NAME.into(), self.world.now());
        let received = Received { engine, sent, parcel: event.clone(), letter: None, again: false };
        block_on(play(&self.engine(), &received))
    }
}

impl Default for Shop {
    fn default() -> Self {
        Self::new()
    }
}
