//! What must not be done again: messages that are left over, meant for others, or unreadable publish nothing and stop nobody.

use keelway_domain::event::{CloudEvent, EventType, Kind};
use keelway_domain::ids::RecordId;
use keelway_domain::names::{Context, ProjectName, SequenceName, StageName, TaskName};
use keelway_domain::shipyard::{Sequence, Shipyard, Stage, Task, Trigger};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::item::{Item, Key};
use keelway_engine::ports::{Query, Store};
use keelway_engine::protocol::sweep::{self, Swept, Tick};
use keelway_engine::protocol::{Engine, Handled};
use keelway_engine::sequences::{Address, Body, Delivery, Limits, Message, Sequences, keys};
use keelway_world::World;
use keelway_world::exec::block_on;
use keelway_world::worker::Worker;
use serde_json::{Value, json};

const BEGIN: Timestamp = Timestamp(1_795_000_000_000);

struct Stand {
    world: World,
    engine: Sequences<Worker>,
}

fn task(name: &str) -> Task {
    Task {
        name: TaskName::new(name).unwrap(),
        triggered_after: None,
        properties: Default::default(),
        start_deadline: None,
        timeout: None,
    }
}

/// `dev.delivery` with these tasks; `prod.delivery` follows it with a task of its own.
fn shipyard(tasks: &[&str], follow_up: &str) -> Shipyard {
    let sequence = |tasks: Vec<Task>, triggered_on| Sequence {
        name: SequenceName::new("delivery").unwrap(),
        triggered_on,
        tasks,
        timeout: None,
    };
    let after_dev = Trigger { event: "dev.delivery.finished".into(), selector: None };
    let stage = |name: &str, sequence| Stage { name: StageName::new(name).unwrap(), sequences: vec![sequence] };
    let first = tasks.iter().map(|name| task(name)).collect();
    Shipyard {
        stages: vec![stage("dev", sequence(first, vec![])), stage("prod", sequence(vec![task(follow_up)], vec![after_dev]))],
    }
}

fn conform(context: &str) -> Message {
    Message::Conform { project: project(), context: Context::new(context).unwrap(), after: String::new() }
}

fn project() -> ProjectName {
    ProjectName::new("p").unwrap()
}

impl Stand {
    fn new(shipyard: &Shipyard) -> Self {
        let world = World::new(BEGIN);
        let stand = Self { engine: Sequences::new(world.worker(0), Limits::default()), world };
        stand.put(Item::new(Key::new(keys::PROJECTS, "p")));
        stand.apply("r1", shipyard);
        stand
    }

    fn put(&self, item: Item) {
        block_on(self.world.worker(0).put_batch(&[item], &[])).unwrap();
    }

    fn apply(&self, revision: &str, shipyard: &Shipyard) {
        self.put(Item::new(keys::revision(&project(), revision)).with("j", serde_json::to_string(shipyard).unwrap()));
        self.put(Item::new(keys::project(&project())).with("v", 1i64).with("rev", revision));
    }

    fn send(&self, context: &str, ty: String, answers: Option<&str>, id: &str) {
        self.send_to("dev", context, ty, answers, id);
    }

    fn send_to(&self, stage: &str, context: &str, ty: String, answers: Option<&str>, id: &str) {
        let data = json!({"project": "p", "stage": stage, "service": "svc", "result": "pass", "status": "succeeded"});
        self.world.emit::<Sequences<Worker>>(CloudEvent {
            id: id.into(),
            source: "client".into(),
            ty,
            time: self.world.now(),
            context: Context::new(context).unwrap(),
            triggered_id: answers.map(str::to_owned),
            git_commit_id: None,
            data: data.as_object().unwrap().clone(),
        });
    }

    fn trigger(&self, context: &str) {
        self.send(context, "sh.keptn.event.dev.delivery.triggered".into(), None, &format!("trigger-{context}"));
        self.rest();
    }

    fn answer(&self, context: &str, task: &str) {
        let open = self.published(context, &EventType::task(task, Kind::Triggered)).expect("triggered");
        let (stage, open) = (open["data"]["stage"].as_str().unwrap(), open["id"].as_str().unwrap());
        self.send_to(stage, context, EventType::task(task, Kind::Started), Some(open), &format!("{open}-s"));
        self.send_to(stage, context, EventType::task(task, Kind::Finished), Some(open), &format!("{open}-f"));
        self.rest();
    }

    /// The newest event of that type and context.
    fn published(&self, context: &str, ty: &str) -> Option<Value> {
        let events = self.world.outgoing();
        let events = events.iter().rev().map(|entry| serde_json::from_str::<Value>(&entry.detail).unwrap());
        events.into_iter().find(|event| event["type"] == ty && event["shkeptncontext"] == context)
    }

    /// Everything ever published, repetitions included.
    fn publications(&self) -> usize {
        self.world.core().bus.log.len()
    }

    /// The next message that is due.
    fn next(&self) -> Option<(u64, Delivery)> {
        let core = self.world.core();
        let due = core.queue.messages.iter().find(|(_, message)| message.visible <= core.now);
        due.map(|(id, message)| (*id, Delivery { sent: message.sent, body: message.parcel.body().unwrap() }))
    }

    /// Handles what is due until nothing is.
    fn rest(&self) {
        while let Some((id, delivery)) = self.next() {
            block_on(self.engine.handle(&delivery)).unwrap();
            self.world.core().queue.messages.remove(&id);
        }
    }

    fn own(&self, message: Message) -> Handled {
        let delivery = Delivery { sent: self.world.now(), body: Body::Own(message) };
        block_on(self.engine.handle(&delivery)).unwrap()
    }

    /// One tick.
    fn sweep(&self) -> Swept {
        let (mut tick, mut all) = (Tick::default(), Swept::default());
        while !all.finished {
            let page = block_on(sweep::page(&self.engine, &mut tick)).unwrap();
            all = Swept { seen: all.seen + page.seen, sent: all.sent + page.sent, finished: page.finished };
        }
        all
    }

    fn queue(&self) -> usize {
        let page = block_on(self.world.worker(0).query(&Query::table("K#p#dev#svc", 100))).unwrap();
        page.items.iter().filter(|item| item.key.sk.starts_with("Q#")).count()
    }
}

#[test]
fn a_wake_up_left_over_by_an_ended_execution_publishes_nothing() {
    let stand = Stand::new(&shipyard(&["build"], "release"));
    stand.trigger("c1");
    stand.answer("c1", "build");
    stand.answer("c1", "release");
    let before = stand.publications();
    stand.world.pass(Span::minutes(30));
    stand.rest();
    assert_eq!(stand.publications(), before);
}

#[test]
fn flags_that_concern_another_stage_publish_nothing() {
    let stand = Stand::new(&shipyard(&["build"], "release"));
    stand.trigger("c1");
    let before = stand.publications();
    assert_eq!(stand.own(conform("c1")), Handled::Committed);
    stand.rest();
    assert_eq!(stand.publications(), before);
}

#[test]
fn a_sweep_does_not_ask_a_person_again_for_ever() {
    let mut shipyard = shipyard(&["build", "approval"], "release");
    shipyard.stages[0].sequences[0].tasks[1].properties = json!({"pass": "manual"}).as_object().unwrap().clone();
    let stand = Stand::new(&shipyard);
    stand.trigger("c1");
    stand.answer("c1", "build");
    assert!(stand.published("c1", "sh.keptn.event.approval.triggered").is_some());
    stand.world.pass(Span::minutes(40));
    stand.rest();
    let before = stand.publications();
    for _ in 0..12 {
        stand.world.pass(Span::minutes(5));
        stand.sweep();
        stand.rest();
    }
    assert_eq!(stand.publications(), before);
}

#[test]
fn a_sweep_does_not_repeat_for_ever_what_waits_for_its_lane() {
    let mut shipyard = shipyard(&["build", "approval", "deploy"], "release");
    shipyard.stages[0].sequences[0].tasks[0].start_deadline = Some(Span::minutes(24 * 60));
    shipyard.stages[0].sequences[0].tasks[1].properties = json!({"pass": "manual"}).as_object().unwrap().clone();
    let stand = Stand::new(&shipyard);
    stand.trigger("c1");
    stand.answer("c1", "build");
    stand.trigger("holder");
    let asked = stand.published("c1", "sh.keptn.event.approval.triggered").unwrap();
    let trigger = RecordId::from_uuid(asked["id"].as_str().unwrap()).unwrap();
    let context = Context::new("c1").unwrap();
    let to = Address { project: project(), context: context.clone(), execution: trigger.subject };
    let mut event = asked.clone();
    event["type"] = json!("sh.keptn.event.approval.finished");
    event["id"] = json!("decision");
    stand.own(Message::Decide { to, trigger, event });
    stand.rest();
    assert!(stand.published("c1", "sh.keptn.event.approval.finished").is_some());
    assert!(stand.published("c1", "sh.keptn.event.deploy.triggered").is_none(), "another one holds the lane");
    stand.world.pass(Span::minutes(40));
    stand.rest();
    // The holder's task is out and unanswered: its trigger is repeated once.
    stand.sweep();
    stand.rest();
    let before = stand.publications();
    for _ in 0..12 {
        stand.world.pass(Span::minutes(5));
        stand.sweep();
        stand.rest();
    }
    assert_eq!(stand.publications(), before);
}

#[test]
fn a_follow_up_runs_the_revision_that_was_in_force_at_its_cause() {
    let stand = Stand::new(&shipyard(&["build"], "release"));
    stand.trigger("c1");
    let open = stand.published("c1", "sh.keptn.event.build.triggered").unwrap();
    let open = open["id"].as_str().unwrap();
    stand.send("c1", EventType::task("build", Kind::Started), Some(open), "s");
    stand.send("c1", EventType::task("build", Kind::Finished), Some(open), "f");
    for _ in 0..2 {
        let (id, delivery) = stand.next().unwrap();
        block_on(stand.engine.handle(&delivery)).unwrap();
        stand.world.core().queue.messages.remove(&id);
    }
    // The end is committed, its follow-up's message is on the way.
    stand.apply("r2", &shipyard(&["build"], "other"));
    stand.rest();
    assert!(stand.published("c1", "sh.keptn.event.release.triggered").is_some());
    assert!(stand.published("c1", "sh.keptn.event.other.triggered").is_none());
}

#[test]
fn who_is_aborted_in_the_queue_leaves_it_at_once() {
    let stand = Stand::new(&shipyard(&["build"], "release"));
    stand.trigger("holder");
    for n in 0..3 {
        stand.trigger(&format!("waits-{n}"));
    }
    assert_eq!(stand.queue(), 3);
    let flags =
        Item::new(keys::context(&project(), &Context::new("waits-1").unwrap())).with("v", 9i64).with("ep", 1i64).with("ea", 1i64);
    stand.put(flags);
    stand.own(conform("waits-1"));
    stand.rest();
    assert_eq!(stand.queue(), 2);
}

#[test]
fn an_execution_that_cannot_be_read_stops_no_sweep() {
    let stand = Stand::new(&shipyard(&["build"], "release"));
    stand.put(
        Item::new(Key::new("C#p#c0", "X#2222222222222"))
            .with("v", 1i64)
            .with("f", 99i64)
            .with("gp2", keys::open_executions(&project()))
            .with("gs2", "p#0000000000001#c0#2222222222222"),
    );
    stand.trigger("c1");
    stand.world.pass(Span::minutes(5));
    let swept = stand.sweep();
    assert_eq!((swept.seen, swept.sent, swept.finished), (2, 1, true));
    stand.own(conform("c0"));
}

#[test]
fn names_of_any_length_are_refused_and_recorded() {
    let stand = Stand::new(&shipyard(&["build"], "release"));
    for (field, n) in [("stage", 110), ("stage", 150_000), ("project", 230_000)] {
        let mut data = json!({"project": "p", "stage": "dev", "service": "svc"});
        data[field] = json!("x".repeat(n));
        stand.world.emit::<Sequences<Worker>>(CloudEvent {
            id: format!("{field}-{n}"),
            source: "client".into(),
            ty: "sh.keptn.event.dev.delivery.triggered".into(),
            time: BEGIN,
            context: Context::new("c1").unwrap(),
            triggered_id: None,
            git_commit_id: None,
            data: data.as_object().unwrap().clone(),
        });
        let (id, delivery) = stand.next().unwrap();
        assert_eq!(block_on(stand.engine.handle(&delivery)), Ok(Handled::Invalid), "{field} {n}");
        stand.world.core().queue.messages.remove(&id);
    }
    assert_eq!(stand.publications(), 0);
}
