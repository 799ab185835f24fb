//! What the engine promises whatever happens around it: one holder of a lane, nothing lost while it is needed, everybody told.

use keelway_conformance::stand::{Stand, context, gate, hourly, project, shipyard, task};
use keelway_domain::event::{EventType, Kind};
use keelway_domain::sequences::{End, Execution, Lane};
use keelway_domain::shipyard::Shipyard;
use keelway_domain::time::Span;
use keelway_engine::item::Key;
use keelway_engine::ports::PortError;
use keelway_engine::protocol::Handled;
use keelway_engine::schedules;
use keelway_engine::sequences::commands::Control;
use keelway_engine::sequences::{Address, Body, Limits, Message, keys};
use keelway_world::core::{Fault, Method};
use keelway_world::exec::{block_on, step};
use serde_json::json;

const DAY: Span = Span::minutes(24 * 60);

fn tell(stand: &Stand, on: &str, what: Control) {
    stand.tell(on, what);
    stand.rest();
}

fn dev(stand: &Stand, on: &str) -> Execution {
    stand.executions(on).into_iter().find(|x| x.stage == "dev").unwrap()
}

/// Stays for ever in its task once that is started.
fn slow(shipyard: &mut Shipyard) {
    for task in shipyard.stages.iter_mut().flat_map(|stage| &mut stage.sequences).flat_map(|sequence| &mut sequence.tasks) {
        task.timeout = Some(Span(0));
    }
}

fn started(stand: &Stand, on: &str, task: &str) {
    let open = stand.published(on, &EventType::task(task, Kind::Triggered)).unwrap();
    stand.emit(stand.event("dev", on, EventType::task(task, Kind::Started), open["id"].as_str(), &format!("{on}-{task}-s")));
    stand.rest();
}

fn short(retention: Span) -> Limits {
    Limits { retention, ..Limits::default() }
}

/// Days in which a sweep runs every few hours and what has expired is removed.
fn days(stand: &Stand, days: i64) {
    for _ in 0..days * 6 {
        stand.world.pass(Span::minutes(4 * 60));
        stand.sweep();
        stand.rest();
        stand.expire();
    }
}

#[test]
fn a_copy_of_a_grant_takes_nothing_back_of_what_a_younger_sequence_left() {
    let stand = Stand::new(&shipyard(&["build"], "release"));
    ["c1", "c2", "c3"].iter().for_each(|on| stand.trigger(on));
    stand.answer("c1", "build");
    let granted = dev(&stand, "c2");
    let partition = keys::context_partition(&project(), &context("c2"));
    let payload = stand.world.core().table.partition(&partition).map(|item| item.key.sk.clone()).find(|sk| sk.starts_with("E#"));
    // It is ended by somebody whose clock is ahead.
    let ahead = Span::seconds(30);
    stand.world.pass(ahead);
    stand.answer("c2", "build");
    {
        let mut core = stand.world.core();
        core.now = core.now + Span(-ahead.0);
    }
    stand.answer("c3", "build");
    let lock = || stand.item(&Key::new("K#p#dev#svc", keys::MAIN));
    let before = lock();
    let copy = Message::Granted { to: Address::of(&granted), ask: granted.ask, payload: payload.unwrap_or_default() };
    stand.own(copy);
    stand.rest();
    assert_eq!(lock(), before);
}

// The items of a transaction become visible one after another: a lock may name an execution that is not there yet.

#[test]
fn a_holder_that_is_not_visible_yet_is_not_taken_for_one_that_has_left() {
    let stand = Stand::new(&shipyard(&["build"], "release"));
    stand.trigger("c1");
    let holder = keys::execution(&Address::of(&dev(&stand, "c1")));
    let hidden = stand.hide(&holder);
    stand.emit(stand.trigger_event("c2"));
    let (id, delivery) = stand.receive().unwrap();
    let met = stand.handle(&delivery);
    assert!(matches!(met, Err(PortError::Retry { .. })), "{met:?}");
    assert_eq!(stand.holder().as_deref(), Some("c1"), "the lock still names who is about to appear");
    stand.put(hidden);
    stand.give_back(id);
    stand.rest();
    assert_eq!((dev(&stand, "c1").lane, dev(&stand, "c2").lane), (Lane::Holds, Lane::Wants));
    assert_eq!((stand.holder().as_deref(), stand.queue()), (Some("c1"), 1));
}

#[test]
fn a_head_that_is_not_visible_yet_keeps_its_place() {
    let stand = Stand::new(&shipyard(&["build"], "release"));
    for on in ["c1", "c2", "c3"] {
        stand.trigger(on);
    }
    let head = keys::execution(&Address::of(&dev(&stand, "c2")));
    let hidden = stand.hide(&head);
    let open = stand.published("c1", "sh.keptn.event.build.triggered").unwrap();
    for kind in [Kind::Started, Kind::Finished] {
        let ty = EventType::task("build", kind);
        stand.emit(stand.event("dev", "c1", ty, open["id"].as_str(), kind.as_str()));
    }
    let (first, delivery) = stand.receive().unwrap();
    assert_eq!(stand.handle(&delivery), Ok(Handled::Committed));
    stand.world.core().queue.acknowledge(first);
    let (id, delivery) = stand.receive().unwrap();
    let met = stand.handle(&delivery);
    assert!(matches!(met, Err(PortError::Retry { .. })), "{met:?}");
    assert_eq!(stand.queue(), 2, "nobody's entry is taken out");
    stand.put(hidden);
    stand.give_back(id);
    stand.rest();
    assert_eq!((dev(&stand, "c2").lane, dev(&stand, "c3").lane), (Lane::Holds, Lane::Wants));
}

/// Planted by hand: `drive` takes "left" for any request of the execution.
#[test]
fn a_zombie_of_an_old_request_frees_no_lane_that_was_taken_again() {
    let stand = Stand::new(&shipyard(&["build"], "release"));
    stand.trigger("c1");
    stand.tell("c1", Control::Pause);
    stand.rest_until(|body| matches!(body, Body::Own(Message::Obey { .. })));
    let (id, obey) = stand.receive().unwrap();
    // It commits that it leaves the lane, and then nothing is heard of it for a while.
    let mut zombie = stand.begin(7, &obey);
    while !dev(&stand, "c1").paused {
        assert!(step(&mut zombie).is_pending());
    }
    assert_eq!(stand.holder().as_deref(), Some("c1"), "it has not come to the lane yet");
    stand.give_back(id);
    stand.rest();
    assert_eq!(stand.holder(), None, "the redelivery frees the lane");
    tell(&stand, "c1", Control::Resume);
    assert_eq!((dev(&stand, "c1").lane, dev(&stand, "c1").ask), (Lane::Holds, 1));
    stand.trigger("c2");
    block_on(zombie).unwrap();
    stand.rest();
    assert_eq!(stand.holder().as_deref(), Some("c1"));
    assert_eq!((dev(&stand, "c1").lane, dev(&stand, "c2").lane), (Lane::Holds, Lane::Wants));
}

// What is open is not forgotten.

#[test]
fn a_lost_wake_up_of_one_that_waits_with_its_task_out_is_made_up_for() {
    let mut shipyard = shipyard(&["build", "deploy"], "release");
    slow(&mut shipyard);
    let stand = Stand::new(&shipyard);
    // The first by acceptance waits for the lane and for nothing else.
    stand.trigger("waits");
    tell(&stand, "waits", Control::Pause);
    stand.answer("waits", "build");
    stand.trigger("out");
    tell(&stand, "out", Control::Pause);
    stand.trigger("holder");
    started(&stand, "holder", "build");
    tell(&stand, "waits", Control::Resume);
    tell(&stand, "out", Control::Resume);
    assert_eq!((dev(&stand, "waits").lane, dev(&stand, "waits").is_open()), (Lane::Wants, false));
    assert_eq!((dev(&stand, "out").lane, dev(&stand, "out").is_open()), (Lane::Wants, true));
    stand.lose_messages();
    stand.sweep_for(120);
    assert_eq!(dev(&stand, "out").outcome.map(|outcome| outcome.end), Some(End::TimedOut));
    assert_eq!(stand.holder().as_deref(), Some("holder"));
}

#[test]
fn the_first_executors_data_outlives_the_retention_while_others_work() {
    let mut shipyard = shipyard(&["build"], "release");
    slow(&mut shipyard);
    let stand = Stand::with(&shipyard, short(DAY));
    stand.trigger("c1");
    let open = stand.published("c1", "sh.keptn.event.build.triggered").unwrap();
    let answer = |kind: Kind, by: &str| {
        let mut event =
            stand.event("dev", "c1", EventType::task("build", kind), open["id"].as_str(), &format!("{by}-{}", kind.as_str()));
        event.data.insert("build".into(), json!({by: "image:1"}));
        event
    };
    for event in [answer(Kind::Started, "first"), answer(Kind::Started, "second"), answer(Kind::Finished, "first")] {
        stand.emit(event);
    }
    stand.rest();
    days(&stand, 3);
    stand.emit(answer(Kind::Finished, "second"));
    stand.rest();
    let release = stand.published("c1", "sh.keptn.event.release.triggered").expect("production follows");
    assert_eq!(release["data"]["build"], json!({"first": "image:1", "second": "image:1"}));
}

#[test]
fn what_waits_longer_than_history_is_kept_keeps_its_payload() {
    let mut shipyard = shipyard(&["build"], "release");
    shipyard.stages[0].sequences[0].tasks.extend([gate(), task("deploy")]);
    slow(&mut shipyard);
    let stand = Stand::with(&shipyard, short(DAY));
    let mut trigger = stand.trigger_event("asked");
    trigger.data.insert("labels".into(), json!({"ticket": "K-1"}));
    stand.emit(trigger);
    stand.rest();
    stand.answer("asked", "build");
    stand.trigger("holder");
    started(&stand, "holder", "build");
    let mut trigger = stand.trigger_event("queued");
    trigger.data.insert("labels".into(), json!({"ticket": "K-2"}));
    stand.emit(trigger);
    stand.rest();
    days(&stand, 4);
    // The one in the queue begins with its trigger's payload, the one that asked goes on with its record's.
    tell(&stand, "holder", Control::Abort);
    let build = stand.published("queued", "sh.keptn.event.build.triggered").expect("it has its turn");
    assert_eq!(build["data"]["labels"]["ticket"], "K-2");
    tell(&stand, "queued", Control::Abort);
    let x = dev(&stand, "asked");
    let decision = stand.event("dev", "asked", EventType::task("approval", Kind::Finished), None, "yes").to_json();
    stand.own(Message::Decide { to: Address::of(&x), trigger: x.record.unwrap(), event: decision });
    stand.rest();
    let deploy = stand.published("asked", "sh.keptn.event.deploy.triggered").expect("it goes on");
    assert_eq!(deploy["data"]["labels"]["ticket"], "K-1");
}

#[test]
fn what_has_expired_all_the_same_is_named() {
    let mut shipyard = shipyard(&["build"], "release");
    slow(&mut shipyard);
    let stand = Stand::with(&shipyard, short(DAY));
    stand.trigger("c1");
    started(&stand, "c1", "build");
    // No sweep ran for as long as history is kept.
    stand.lose_messages();
    stand.world.pass(Span(2 * DAY.0));
    stand.expire();
    let open = dev(&stand, "c1").record.unwrap().uuid().to_string();
    stand.emit(stand.event("dev", "c1", EventType::task("build", Kind::Finished), Some(&open), "f"));
    let (_, delivery) = stand.receive().unwrap();
    assert!(matches!(delivery.body, Body::Event(_)), "{delivery:?}");
    let met = stand.handle(&delivery);
    assert!(matches!(&met, Err(PortError::Refused { reason, .. }) if reason.contains("has expired")), "{met:?}");
}

#[test]
fn a_context_whose_executions_have_expired_is_finished() {
    let stand = Stand::new(&shipyard(&["build"], "release"));
    stand.trigger("c1");
    stand.answer("c1", "build");
    stand.answer("c1", "release");
    let executions: Vec<Key> = stand.executions("c1").iter().map(|x| keys::execution(&Address::of(x))).collect();
    assert_eq!(executions.len(), 2);
    for key in &executions {
        stand.hide(key);
    }
    // At first they may be those of a transaction whose items appear one by one.
    assert_eq!(stand.state("c1").expect("the context is kept")["state"], "triggered");
    stand.world.pass(Span::minutes(1));
    assert_eq!(stand.state("c1").expect("the context is kept")["state"], "finished");
}

// Everybody is told.

#[test]
fn an_abort_reaches_every_execution_of_a_context_however_many_it_had() {
    let limits = Limits { max_executions: 2_000, ..Limits::default() };
    let stand = Stand::with(&shipyard(&["build"], "release"), limits);
    stand.world.core().table.metered = false;
    for n in 0..2_500 {
        // Half of them end at once, by name.
        let sequence = if n % 2 == 0 { "delivery" } else { "unknown" };
        let ty = format!("sh.keptn.event.dev.{sequence}.triggered");
        stand.emit(stand.event("dev", "c1", ty, None, &format!("trigger-{n}")));
    }
    while let Some((id, delivery)) = stand.receive() {
        stand.handle(&delivery).unwrap();
        stand.world.core().queue.acknowledge(id);
    }
    let ends = |stand: &Stand, end: Option<End>| {
        stand.executions("c1").iter().filter(|x| x.outcome.map(|outcome| outcome.end) == end).count()
    };
    assert_eq!((ends(&stand, None), ends(&stand, Some(End::NeverStarted))), (1_250, 1_250));
    tell(&stand, "c1", Control::Abort);
    assert_eq!((ends(&stand, None), ends(&stand, Some(End::Aborted))), (0, 1_250));
    assert_eq!((stand.holder(), stand.queue()), (None, 0));
}

#[test]
fn an_answer_that_comes_too_late_is_recorded_as_stale() {
    let stand = Stand::new(&shipyard(&["build", "deploy"], "release"));
    stand.trigger("c1");
    let open = stand.published("c1", "sh.keptn.event.build.triggered").unwrap();
    stand.answer("c1", "build");
    for (n, kind) in [Kind::Started, Kind::Finished].into_iter().enumerate() {
        stand.emit(stand.event("dev", "c1", EventType::task("build", kind), open["id"].as_str(), &format!("late-{n}")));
        let (id, delivery) = stand.receive().unwrap();
        assert_eq!(stand.handle(&delivery), Ok(Handled::Stale));
        stand.world.core().queue.acknowledge(id);
    }
    let partition = keys::context_partition(&project(), &context("c1"));
    let core = stand.world.core();
    let late = core.table.partition(&partition).filter(|item| item.text("b").is_some_and(|body| body.contains("\"late-")));
    assert_eq!(late.map(|item| item.text("vd")).collect::<Vec<_>>(), [Some("stale"), Some("stale")]);
}

// A schedule may be deleted at any time.

#[test]
fn what_a_schedule_has_decided_starts_although_it_is_deleted_before_the_message_is_sent() {
    let mut smoke = shipyard(&["build"], "release");
    slow(&mut smoke);
    let stand = Stand::with(&smoke, short(Span(7 * DAY.0)));
    assert_eq!(block_on(stand.engine.schedules().apply((&project(), "hourly"), &hourly(), "")), Ok(true));
    stand.rest();
    stand.world.pass(Span::minutes(60));
    let (id, due) = stand.receive().unwrap();
    assert!(matches!(due.body, Body::Own(Message::Due { .. })), "{due:?}");
    stand.world.core().faults = Some(Box::new(|_, method| if method == Method::Send { Fault::Throttled } else { Fault::None }));
    assert!(stand.handle(&due).is_err(), "it has decided, and cannot send");
    stand.world.core().faults = None;
    let run = block_on(stand.engine.schedules().get(&project(), "hourly")).unwrap().unwrap().runs.into_values().next().unwrap();
    assert_eq!(block_on(stand.engine.schedules().delete(&project(), "hourly")), Ok(true));
    assert_eq!(block_on(stand.engine.schedules().get(&project(), "hourly")), Ok(None));
    stand.give_back(id);
    stand.rest();
    assert_eq!(stand.executions(run.context.as_str()).len(), 1);
    stand.world.pass(DAY);
    stand.rest();
    assert_eq!(stand.executions(run.context.as_str()).len(), 1, "nothing is due any more");
    days(&stand, 9);
    assert_eq!(stand.count(&schedules::keys::schedules(&project()), schedules::keys::SCHEDULE), 0, "nor does it stay for ever");
}
