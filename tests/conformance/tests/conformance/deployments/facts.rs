//! What registries and alarms tell, in any order, late, again, and at one time; and that everybody whom it concerns is told.

use keelway_conformance::deployments::{Shop, definition, on_image, tag};
use keelway_domain::deployments::definition::{AutoRollback, Concurrency, Definition, Trigger};
use keelway_domain::deployments::{Call, Command, Progress, Status};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::deployments::images::Push;
use keelway_engine::deployments::{Address, Message, keys};
use keelway_engine::item::{Item, Key};
use keelway_world::case::Stand;
use keelway_world::deployments::DeploymentsStand;
use keelway_world::exec::{Task, block_on, step};
use keelway_world::queue::{Parcel, Received};
use keelway_world::story::play;

fn follows() -> Definition {
    definition(vec![Trigger::ConfigChange, on_image("main", &["web"], true)])
}

fn with_alarm() -> Definition {
    let auto_rollback = Some(AutoRollback { on_failure: true, alarms: vec!["errors".into()], bake: Span::minutes(30) });
    Definition { auto_rollback, ..definition(vec![Trigger::ConfigChange]) }
}

fn edited(of: &Definition, env: &str) -> Definition {
    let mut edited = of.clone();
    edited.template["spec"]["containers"][0]["env"] = env.into();
    edited
}

/// Every order of these.
fn orders<T: Clone>(of: &[T]) -> Vec<Vec<T>> {
    if of.is_empty() {
        return vec![vec![]];
    }
    let without = |place: usize| [&of[..place], &of[place + 1..]].concat();
    let all = (0..of.len())
        .flat_map(|place| orders(&without(place)).into_iter().map(move |rest| [&[of[place].clone()], &rest[..]].concat()));
    all.collect()
}

#[test]
fn a_deletion_that_arrives_late_or_again_hides_no_image() {
    let at = |shop: &Shop, seconds: i64| shop.world.story.world.now() + Span::seconds(seconds - 100);
    for order in orders(&[0, 1, 2, 3]) {
        let mut shop = Shop::new();
        let (t0, t10, t20) = (at(&shop, 0), at(&shop, 10), at(&shop, 20));
        let all: [Parcel; 4] = [
            shop.ecr("PUSH", Some("v1"), "a", t0),
            shop.ecr("DELETE", Some("v1"), "a", t10),
            shop.ecr("PUSH", Some("v1"), "a", t20),
            shop.ecr("DELETE", Some("v1"), "a", t10),
        ];
        for place in &order {
            shop.tell(all[*place].clone());
        }
        assert!(!shop.is_gone("a"), "{order:?}");
        let last = shop.ecr("DELETE", Some("v1"), "a", at(&shop, 30));
        shop.tell(last);
        assert!(shop.is_gone("a"), "{order:?}");
    }
}

#[test]
fn an_image_is_gone_with_its_last_tag() {
    let mut shop = Shop::new();
    let now = shop.world.now();
    for (tag, digest, seconds) in [("v1", "a", -50), ("main", "a", -50), ("v2", "b", -40), ("main", "b", -40)] {
        let push = shop.ecr("PUSH", Some(tag), digest, now + Span::seconds(seconds));
        shop.tell(push);
    }
    // Its other tag was moved to the next image before.
    let delete = shop.ecr("DELETE", Some("v1"), "a", now + Span::seconds(-30));
    shop.tell(delete);
    assert!(shop.is_gone("a"));
    let delete = shop.ecr("DELETE", Some("v2"), "b", now + Span::seconds(-30));
    shop.tell(delete);
    assert!(!shop.is_gone("b"), "it is the image of main");
    let delete = shop.ecr("DELETE", None, "b", now + Span::seconds(-20));
    shop.tell(delete);
    assert!(shop.is_gone("b"));
}

/// As it was kept when only deletions were.
#[test]
fn an_image_that_was_known_as_deleted_stays_so_until_it_is_pushed_again() {
    let mut shop = Shop::new();
    let now = shop.world.now();
    let old = Item::new(keys::image("shop", "images", "sha256:a")).with("at", now.0 - 50_000).with("of", "shop/images");
    shop.world.keep(old);
    let before = shop.ecr("PUSH", Some("v1"), "a", now + Span::seconds(-60));
    shop.tell(before);
    assert!(shop.is_gone("a"));
    let again = shop.ecr("PUSH", Some("v1"), "a", now + Span::seconds(-40));
    shop.tell(again);
    assert!(!shop.is_gone("a"));
}

#[test]
fn an_alarm_that_went_on_before_the_attempt_began_takes_nothing_back() {
    let year = Span::minutes(365 * 24 * 60);
    let mut shop = Shop::deployed(&with_alarm());
    shop.world.wait(Span::minutes(60));
    shop.apply(&edited(&with_alarm(), "b"));
    // Neither what is on its way nor what has just become complete.
    let now = shop.world.now();
    shop.alarm("errors", true, now + Span(-year.0));
    shop.carry_out(0);
    shop.alarm("errors", false, now + Span(-year.0 + 1));
    shop.alarm("errors", true, now + Span::minutes(-2));
    shop.world.wait(Span::seconds(10));
    assert_eq!(shop.versions(), (2, Status::Complete));
    // The clocks of CloudWatch and of functions may differ by a minute.
    shop.alarm("errors", false, now + Span::seconds(-50));
    shop.alarm("errors", true, now + Span::seconds(-30));
    shop.world.wait(Span::seconds(10));
    assert_eq!((shop.x().latest, shop.x().last.unwrap().rollback.map(|back| back.release)), (3, Some(1)));
}

#[test]
fn an_alarm_from_before_the_config_was_there_changes_nothing() {
    let mut shop = Shop::new();
    let now = shop.world.now();
    shop.apply(&with_alarm());
    shop.carry_out(0);
    let before = shop.x();
    shop.alarm("errors", true, now + Span::minutes(-2));
    assert_eq!((shop.x().alarms, shop.x().record), (before.alarms, before.record));
    shop.alarm("errors", true, now + Span::seconds(-30));
    assert!(shop.x().alarms.contains_key("errors"));
}

/// Otherwise two versions would follow each other for as long as the alarm goes on and off.
#[test]
fn a_rollback_is_not_rolled_back_by_the_next_alarm() {
    let mut shop = Shop::deployed(&with_alarm());
    shop.world.wait(Span::minutes(60));
    shop.apply(&edited(&with_alarm(), "b"));
    shop.carry_out(0);
    shop.world.wait(Span::minutes(1));
    let now = shop.world.now();
    shop.alarm("errors", true, now);
    assert_eq!(shop.versions(), (3, Status::New));
    shop.carry_out(0);
    for minutes in [1, 3, 5] {
        shop.world.wait(Span::minutes(1));
        shop.alarm("errors", false, now + Span::minutes(minutes));
        shop.world.wait(Span::minutes(1));
        shop.alarm("errors", true, now + Span::minutes(minutes + 1));
        shop.world.wait(Span::seconds(10));
        assert_eq!(shop.versions(), (3, Status::Complete), "the alarm went off again after {minutes} minutes");
    }
}

/// A message of the engine's own.
fn received(body: String, sent: Timestamp, again: bool) -> Received {
    Received { engine: keelway_engine::deployments::NAME.into(), sent, parcel: Parcel::Own(body), letter: None, again }
}

/// The deployer of version 2 has told that it succeeded. That is written at once, and looked at a moment later.
fn has_just_ended() -> Shop {
    let mut shop = Shop::deployed(&with_alarm());
    shop.world.wait(Span::minutes(60));
    shop.apply(&edited(&with_alarm(), "b"));
    shop.claim();
    let end = Call::End { token: "token 2".into(), exit: Some(0), message: String::new(), progress: Progress::default() };
    block_on(shop.engine().decides.say(&Shop::app(), 2, &end)).unwrap();
    shop
}

fn is_cancelled(shop: &Shop) -> bool {
    let core = shop.world.story.world.core();
    core.bus.log.iter().any(|publication| publication.entry.detail_type == "dev.keelway.deployment.cancelling")
}

#[test]
fn an_alarm_in_the_moment_between_is_about_what_was_deployed_and_cancels_nothing() {
    let mut shop = has_just_ended();
    let now = shop.world.now();
    let body = Message::Alarm { to: Shop::app(), alarm: "errors".into(), on: true, at: now }.letter().body;
    block_on(play(&shop.engine(), &received(body, now, false))).unwrap();
    shop.world.story.deliver_all();
    shop.world.wait(Span::seconds(10));
    assert_eq!((shop.versions(), is_cancelled(&shop)), ((3, Status::New), false), "it is rolled back");
}

#[test]
fn a_config_that_is_deleted_in_the_moment_between_has_deployed_what_its_deployer_told() {
    let mut shop = has_just_ended();
    shop.world.delete("shop", "app");
    shop.world.wait(Span::seconds(10));
    assert_eq!((shop.versions(), is_cancelled(&shop)), ((2, Status::Complete), false));
}

/// The image that is deployed when these pushes come in this order, all of one time.
fn deployed_after(order: &[&str], concurrency: Concurrency) -> String {
    let mut shop = Shop::new();
    shop.apply(&Definition { concurrency, ..follows() });
    let at = shop.world.now();
    for digest in order {
        let push = shop.ecr("PUSH", Some("main"), digest, at);
        shop.tell(push);
        shop.world.wait(Span::seconds(3));
        if shop.x().in_flight().is_some() {
            shop.carry_out(0);
        }
    }
    shop.world.wait(Span::seconds(10));
    if shop.x().in_flight().is_some_and(|d| d.claim.is_none()) {
        shop.carry_out(0);
    }
    shop.x().last.unwrap().content.images["web"].clone()
}

#[test]
fn of_several_pushes_of_one_moment_the_same_is_deployed_in_every_order() {
    for concurrency in [Concurrency::Supersede, Concurrency::Queue] {
        let expected = deployed_after(&["c"], concurrency);
        for order in orders(&["a", "b", "c"]) {
            assert_eq!(deployed_after(&order, concurrency), expected, "{order:?}");
        }
    }
}

/// Whoever kept what a tag points to may have stopped before it told anybody. No sweep follows.
#[test]
fn the_same_push_again_wakes_those_who_were_not_told() {
    let mut shop = Shop::new();
    shop.apply(&follows());
    let image = format!("registry.test/shop@sha256:{:064}", 1);
    let push = Push { tag: "main".into(), image: image.clone(), at: shop.world.now(), by: String::new() };
    let head = keys::head(&tag("main"));
    let tell = |shop: &Shop| -> Task<bool> {
        let (engine, push) = (shop.engine(), push.clone());
        Box::pin(async move { engine.decides.pushed("shop", "images", &push).await.unwrap() })
    };
    let mut first = tell(&shop);
    while shop.world.story.world.core().table.peek(&head).is_none() {
        assert!(step(&mut first).is_pending());
    }
    drop(first);
    shop.world.wait(Span::seconds(30));
    assert_eq!(shop.x().latest, 0, "nobody was told");
    let mut second = tell(&shop);
    while step(&mut second).is_pending() {}
    shop.world.story.deliver_all();
    shop.world.wait(Span::seconds(30));
    assert_eq!(shop.x().last.unwrap().content.images["web"], image);
}

#[test]
fn everybody_who_watches_a_tag_or_an_alarm_is_told_however_many_they_are() {
    const WATCHERS: usize = 450;
    let mut shop = Shop::new();
    let of = |n: usize| Address { namespace: "shop".into(), name: format!("app-{n}") };
    let entry = |key: Key, n: usize| Item::new(key).with("ns", "shop").with("na", of(n).name);
    for n in 0..WATCHERS {
        shop.world.keep(entry(keys::watches(&tag("main"), &of(n)), n));
        shop.world.keep(entry(keys::alarmed("errors", &of(n)), n));
    }
    let told = |shop: &mut Shop, event: Parcel, what: &str| {
        shop.world.story.world.core().queue.messages.clear();
        shop.handles(&event).unwrap();
        let core = shop.world.story.world.core();
        let names = |n: usize| format!("\"n\":\"app-{n}\"");
        let all: Vec<String> = core.queue.messages.values().map(|message| message.parcel.text()).collect();
        assert_eq!(all.len(), WATCHERS, "{what}");
        for n in 0..WATCHERS {
            assert!(all.iter().any(|text| text.contains(&names(n)) && text.contains(what)), "app-{n} is not told: {what}");
        }
    };
    let now = shop.world.now();
    let push = shop.ecr("PUSH", Some("main"), "a", now);
    told(&mut shop, push, "evaluate");
    let alarm = serde_json::json!({"alarmName": "errors", "state": {"value": "ALARM"}});
    let alarm = shop.aws(("aws.cloudwatch", "CloudWatch Alarm State Change"), &alarm, now);
    told(&mut shop, alarm, "alarm");
}

/// A person may send a message again after weeks.
#[test]
fn an_old_message_costs_few_requests_however_long_the_history_is() {
    let mut shop = Shop::deployed(&definition(vec![Trigger::ConfigChange]));
    let sent = shop.world.now();
    for _ in 0..600 {
        shop.ask(Command::SuspendTriggers);
        shop.ask(Command::ResumeTriggers);
    }
    let body = Message::Evaluate { to: Shop::app(), because: "long ago".into() }.letter().body;
    let received = received(body, sent, true);
    let (before, engine) = (shop.world.story.world.core().request_count(), shop.engine());
    block_on(play(&engine, &received)).unwrap();
    let requests = shop.world.story.world.core().request_count() - before;
    assert!(requests <= 30, "{requests} requests");
}

#[test]
fn a_tag_that_cannot_be_read_does_not_keep_the_sweep_from_other_configs() {
    let mut shop = Shop::new();
    shop.world.apply("shop", "aaa", &definition(vec![Trigger::ConfigChange, on_image("side", &["web"], true)]), None);
    shop.world.wait(Span::seconds(5));
    shop.world.keep(Item::new(keys::head(&tag("side"))).with("j", "{\"newer\": true}").with("v", 1i64));
    shop.world.apply("shop", "app", &definition(vec![Trigger::ConfigChange]), None);
    // What was to wake it is lost.
    shop.world.story.world.core().queue.messages.clear();
    shop.world.wait(Span::minutes(5));
    assert_eq!(shop.x().latest, 0);
    shop.sweep();
    shop.world.wait(Span::seconds(5));
    assert_eq!(shop.x().latest, 1);
}
