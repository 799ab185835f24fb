//! A task of a sequence is carried out while the sequence waits for it, once, and not otherwise.

use keelway_conformance::deployments::{Both, Shop, Starter, both, definition};
use keelway_conformance::stand::{Stand, delivery, object, stage, task};
use keelway_domain::deployments::definition::{Concurrency, Definition, Trigger};
use keelway_domain::deployments::{Command, Config, Status};
use keelway_domain::event::{CloudEvent, Kind};
use keelway_domain::shipyard::{Shipyard, Task};
use keelway_domain::time::Span;
use keelway_engine::deployments::configs::Wanted;
use keelway_engine::deployments::{Address, NAME, keys};
use keelway_engine::protocol::{Handled, Inbox, Loaded};
use keelway_engine::sequences::commands::Control;
use keelway_wire::cloudevent::from_bus_envelope;
use keelway_world::deployments::Waiting;
use keelway_world::exec::{block_on, step};
use keelway_world::queue::{Parcel, Received};
use keelway_world::story::play;
use serde_json::json;

fn config() -> Definition {
    definition(vec![Trigger::Manual])
}

fn deployed() -> Shop {
    Shop::deployed(&definition(vec![Trigger::ConfigChange]))
}

fn image(shop: &Shop) -> String {
    shop.x().last.unwrap().content.images["web"].clone()
}

/// A task is triggered, and taken.
fn taken(shop: &mut Shop, name: &str) -> Waiting {
    let waiting = shop.waits("deployment", name);
    let trigger = shop.trigger(&waiting, "app", "web:2");
    assert_eq!(shop.tell(trigger), Some(Handled::Committed));
    waiting
}

#[test]
fn a_task_that_no_sequence_waits_for_deploys_nothing_and_gets_no_answer() {
    let mut shop = deployed();
    let waiting = shop.waits("deployment", "late");
    let trigger = shop.trigger(&waiting, "app", "web:late");
    shop.gives_up(&waiting, false);
    assert_eq!(shop.tell(trigger.clone()), Some(Handled::Stale));
    assert_eq!((shop.versions(), shop.answers(&waiting).len()), ((1, Status::Complete), 0));
    let (audit, _) = block_on(shop.engine().decides.audit(&Shop::app(), None, 10)).unwrap();
    assert!(format!("{audit:?}").contains("its sequence does not wait for it any more"), "{audit:?}");
    // Nor does one that no sequence ever triggered, or one of another task.
    let never = Waiting { name: "never".into(), ..waiting.clone() };
    assert_eq!(shop.tell(shop.trigger(&never, "app", "web:late")), Some(Handled::Stale));
    let mut forged = trigger;
    forged.id = "0b9e7a44-1f7e-4abc-8123-5d2a5ef11ecf".into();
    assert_eq!(shop.tell(forged), Some(Handled::Invalid));
    assert_eq!(shop.versions(), (1, Status::Complete));
}

/// However many tasks have followed, and however long ago it was.
#[test]
fn a_task_that_is_replayed_after_the_retention_deploys_no_old_image() {
    let mut shop = deployed();
    let mut first = None;
    for n in 0..60 {
        let waiting = shop.waits("deployment", &format!("task {n}"));
        let trigger = shop.trigger(&waiting, "app", &format!("web:{n}"));
        shop.tell(trigger.clone());
        shop.carry_out(0);
        shop.gives_up(&waiting, false);
        first.get_or_insert(trigger);
    }
    assert_eq!((shop.versions(), image(&shop)), ((61, Status::Complete), "web:59".into()));
    shop.world.story.wait(Span::minutes(91 * 24 * 60));
    shop.expire();
    assert_eq!(shop.tell(first.unwrap()), Some(Handled::Stale));
    assert_eq!((shop.versions(), image(&shop)), ((61, Status::Complete), "web:59".into()));
}

#[test]
fn what_carries_a_task_out_stops_when_its_sequence_gives_up() {
    for told in [true, false] {
        // Nobody has claimed it.
        let mut shop = deployed();
        let waiting = taken(&mut shop, "unclaimed");
        shop.gives_up(&waiting, told);
        shop.sweep();
        assert_eq!(shop.versions(), (2, Status::Failed));
        assert_eq!(shop.x().last.unwrap().reason, "Cancelled");
        // Somebody is at it.
        let mut shop = deployed();
        let waiting = taken(&mut shop, "claimed");
        shop.claim();
        shop.gives_up(&waiting, told);
        shop.sweep();
        assert_eq!(shop.x().last.unwrap().cancel.map(|cancel| cancel.reason), Some("Cancelled".into()));
        shop.end(1);
        assert_eq!(shop.versions(), (2, Status::Failed));
        // It waits for the one before it.
        let mut shop = deployed();
        shop.apply(&Definition { concurrency: Concurrency::Queue, ..config() });
        taken(&mut shop, "runs");
        shop.claim();
        let waiting = taken(&mut shop, "waits");
        assert!(shop.x().pending.is_some());
        shop.gives_up(&waiting, told);
        shop.sweep();
        assert!(shop.x().pending.is_none() && shop.x().last.unwrap().cancel.is_none());
    }
}

/// The event is a hint: what counts is the execution.
#[test]
fn a_sequence_that_waits_gives_nothing_up() {
    let mut shop = deployed();
    let waiting = taken(&mut shop, "waits");
    assert_eq!(shop.tell(waiting.cancelled("app", shop.world.story.world.now())), Some(Handled::Stale));
    shop.sweep();
    shop.carry_out(0);
    assert_eq!(shop.versions(), (2, Status::Complete));
}

#[test]
fn a_task_that_was_given_up_before_its_trigger_came_is_not_carried_out() {
    let mut shop = deployed();
    let waiting = shop.waits("deployment", "early");
    let trigger = shop.trigger(&waiting, "app", "web:2");
    shop.gives_up(&waiting, true);
    assert_eq!(shop.tell(trigger), Some(Handled::Stale));
    assert_eq!(shop.versions(), (1, Status::Complete));
}

/// The sequence gives up at every point of the decision: the version is cut before that, or not at all.
#[test]
fn no_version_is_cut_for_a_task_once_its_sequence_has_given_up() {
    let (mut before, mut after) = (0, 0);
    for requests in 0..30 {
        let mut shop = deployed();
        let waiting = shop.waits("deployment", "raced");
        let parcel = Parcel::Event(shop.trigger(&waiting, "app", "web:2"));
        let received = Received {
            engine: keelway_engine::deployments::NAME.into(),
            sent: shop.world.story.world.now(),
            parcel,
            letter: None,
            again: false,
        };
        let engine = both(&shop.world.story.world.worker(3), &Starter::default(), None);
        Inbox::ports(&engine).begin(Some(&received));
        let mut task = Box::pin(play(&engine, &received));
        let done = (0..requests).any(|_| step(&mut task).is_ready());
        let cut = shop.x().latest;
        shop.gives_up(&waiting, false);
        if !done {
            block_on(task).unwrap();
        }
        assert_eq!(shop.x().latest, cut, "given up after {requests} requests");
        *(if cut == 2 { &mut before } else { &mut after }) += 1;
    }
    assert!(before > 0 && after > 2, "{before} before, {after} after");
}

/// More commands than are remembered follow while the sequence waits.
#[test]
fn a_copy_of_a_trigger_is_carried_out_once_however_many_commands_follow() {
    let mut shop = deployed();
    let waiting = taken(&mut shop, "copied");
    shop.claim();
    for _ in 0..30 {
        shop.ask(Command::SuspendTriggers);
        shop.ask(Command::ResumeTriggers);
    }
    let trigger = shop.trigger(&waiting, "app", "web:2");
    assert_eq!(shop.tell(trigger), Some(Handled::Stale));
    assert_eq!(shop.versions(), (2, Status::Pending));
    assert!(shop.x().pending.is_none());
}

#[test]
fn copies_of_a_task_that_nobody_carries_out_are_answered_once() {
    let mut shop = deployed();
    let waiting = shop.waits("deployment", "for nobody");
    let trigger = shop.trigger(&waiting, "nobody", "web:2");
    shop.tell(trigger.clone());
    let answers = ["sh.keptn.event.deployment.started", "sh.keptn.event.deployment.finished"];
    assert_eq!(shop.answers(&waiting), answers);
    for _ in 0..3 {
        assert_eq!(shop.tell(trigger.clone()), Some(Handled::Stale));
    }
    assert_eq!(shop.answers(&waiting), answers);
    assert!(shop.world.story.world.core().table.peek(&keys::task(&waiting.trigger())).is_some());
}

/// Both engines on one table.
struct Two {
    sequences: Stand,
    configs: Both,
}

impl Two {
    /// A sequence whose only task the config `cart` carries out.
    fn new() -> Self {
        let deployment = Task { properties: object(json!({"deploymentConfig": "cart"})), ..task("deployment") };
        let sequences = Stand::new(&Shipyard { stages: vec![stage("dev", vec![delivery(vec![deployment], None)])] });
        let configs = both(&sequences.world.worker(3), &Starter::default(), None);
        Inbox::ports(&configs).begin(None);
        let wanted = Wanted { definition: &config(), source: "", by: "ann", request: None, over: None };
        block_on(configs.decides.apply(&Self::cart(), &wanted)).unwrap();
        let two = Self { sequences, configs };
        two.work();
        two
    }

    fn cart() -> Address {
        Address { namespace: "p".into(), name: "cart".into() }
    }

    fn x(&self) -> Config {
        let core = self.sequences.world.core();
        Loaded::read(core.table.peek(&keys::config(&Self::cart())).unwrap()).unwrap().x
    }

    /// Handles the messages of configs that are due.
    fn work(&self) {
        loop {
            let id = {
                let core = self.sequences.world.core();
                core.queue.receivable(core.now).into_iter().find(|id| core.queue.messages[id].engine == NAME)
            };
            let Some(id) = id else { return };
            let received = self.sequences.world.core().queue.receive(id).unwrap();
            block_on(play(&self.configs, &received)).unwrap();
            self.sequences.world.core().queue.acknowledge(id);
        }
    }

    /// Delivers what was published last of a type, as the rule does.
    fn deliver(&self, ty: &str) -> CloudEvent {
        let event = self.sequences.published("c1", ty).unwrap_or_else(|| panic!("{ty} was not published"));
        assert!(keelway_world::deployments::takes(event["source"].as_str().unwrap(), ty), "{event}");
        let envelope = json!({"source": event["source"], "detail-type": event["type"], "detail": event});
        let event = from_bus_envelope(&envelope, self.sequences.world.now()).unwrap();
        self.sequences.world.enqueue(NAME, Parcel::Event(event.clone()));
        self.work();
        event
    }
}

#[test]
fn a_sequence_that_is_aborted_or_times_out_takes_its_version_with_it() {
    for aborted in [true, false] {
        let two = Two::new();
        two.sequences.trigger("c1");
        let trigger = two.deliver("sh.keptn.event.deployment.triggered");
        assert_eq!((two.x().latest, two.x().last.unwrap().status), (1, Status::New));
        let started = two.sequences.published("c1", "sh.keptn.event.deployment.started").unwrap();
        let answer = CloudEvent {
            id: started["id"].as_str().unwrap().into(),
            ty: keelway_domain::event::EventType::task("deployment", Kind::Started),
            triggered_id: Some(trigger.id.clone()),
            ..two.sequences.trigger_event("c1")
        };
        two.sequences.emit(answer);
        two.sequences.rest();
        if aborted {
            two.sequences.tell("c1", Control::Abort);
        } else {
            two.sequences.world.pass(Span::minutes(48 * 60));
            two.work();
        }
        two.sequences.rest();
        let ended = two.sequences.published("c1", "sh.keptn.event.dev.delivery.finished").unwrap();
        assert_eq!(ended["data"]["result"], "fail", "{ended}");
        let cancelled = two.deliver("dev.keelway.task.cancelled");
        assert_eq!(cancelled.data["deployment"], json!({"deploymentConfig": "cart"}));
        let last = two.x().last.unwrap();
        assert_eq!(last.status, Status::Failed);
        assert_eq!(aborted, last.reason == "Cancelled", "by then its own deadline has passed: {last:?}");
        // The trigger again, and nothing happens.
        let before = two.x();
        two.deliver("sh.keptn.event.deployment.triggered");
        assert_eq!(two.x(), before);
    }
}
