//! What is bounded: one subscription, one receiver or one event takes nothing from the others, and nothing is delivered for ever or
//! again.

use super::stand::{Stand, TYPE, address, subscription};
use keelway_conformance::stand::{self, shipyard};
use keelway_domain::cause::Cause;
use keelway_domain::stored::Stored;
use keelway_domain::time::{Span, Timestamp};
use keelway_domain::webhooks::{End, Subscription, id};
use keelway_engine::item::{Item, MAX_ITEM_BYTES};
use keelway_engine::ports::Store;
use keelway_engine::protocol::Inbox;
use keelway_engine::protocol::declare::Outcome;
use keelway_engine::protocol::sweep::{self, Tick};
use keelway_engine::webhooks::{Address, MOST, Message, NAME, Webhooks, keys};
use keelway_world::exec::{block_on, step};
use keelway_world::queue::{Parcel, Received};
use keelway_world::story::play;
use keelway_world::table::Table;
use keelway_world::webhooks::{Reply, Shared, engine};
use serde_json::json;
use std::task::Poll;

fn named(name: &str) -> Address {
    Address { name: name.into(), ..address() }
}

fn peek(table: &Table, of: &Address) -> Item {
    (**table.peek(&keys::subscription(of)).unwrap()).clone()
}

impl Stand {
    fn put(&self, item: Item) {
        block_on(self.world.worker(0).put_batch(&[item], &[])).unwrap();
    }

    /// The same subscription under another name.
    fn apply_as(&self, name: &str, wanted: &Subscription) -> Outcome {
        block_on(self.people.apply(&named(name), wanted, "")).unwrap()
    }

    fn there(&self) -> usize {
        self.world.core().table.partition(keys::SUBSCRIPTIONS).count()
    }
}

#[test]
fn a_subscription_that_only_newer_code_can_read_delays_no_other_and_gets_what_it_takes_later() {
    let stand = Stand::new();
    stand.apply(TYPE);
    stand.apply_as("newer", &subscription(TYPE));
    stand.apply_as("other", &subscription("another.type"));
    let formats: Vec<Item> = ["newer", "other"].map(|name| peek(&stand.world.core().table, &named(name))).to_vec();
    formats.iter().for_each(|item| stand.put(item.clone().with("f", 2i64)));
    stand.world.enqueue(NAME, Parcel::Event(stand.said("e-1")));
    let mut waiting = vec![];
    while let Some((id, received)) = stand.receive() {
        match block_on(play(&stand.warm, &received)) {
            Ok(_) => stand.world.core().queue.acknowledge(id),
            Err(error) => {
                assert!(error.passes(), "{error}");
                stand.world.core().queue.acknowledge(id);
                waiting.push(received.parcel);
            }
        }
    }
    assert_eq!(stand.requests(), ["hook"]);
    assert_eq!(waiting.len(), 2, "one message for each that cannot be read: {waiting:?}");
    formats.into_iter().for_each(|item| stand.put(item));
    for parcel in waiting {
        stand.world.enqueue(NAME, parcel);
    }
    stand.rest();
    assert_eq!(stand.requests(), ["hook", "newer"]);
}

#[test]
fn of_two_that_are_applied_at_once_when_there_is_room_for_one_the_other_is_refused() {
    for steps in 0.. {
        let stand = Stand::new();
        for n in 1..MOST {
            assert_eq!(stand.apply_as(&format!("hook-{n}"), &subscription("nothing")), Outcome::Changed(1));
        }
        let (of, wanted, other) = (named("first"), subscription(TYPE), engine(stand.world.worker(3), &stand.receivers));
        let mut first = Box::pin(other.apply(&of, &wanted, ""));
        let mut over = None;
        for _ in 0..steps {
            if let Poll::Ready(outcome) = step(&mut first) {
                over = Some(outcome);
                break;
            }
        }
        let second = stand.apply_as("second", &subscription(TYPE));
        let ended = over.is_some();
        let first = over.unwrap_or_else(|| block_on(first)).unwrap();
        assert!([(Outcome::Changed(1), Outcome::TooMany), (Outcome::TooMany, Outcome::Changed(1))].contains(&(first, second)));
        assert_eq!(stand.there(), MOST);
        if ended {
            return;
        }
    }
}

#[test]
fn a_subscription_that_was_deleted_makes_room_and_more_than_there_may_be_are_all_told() {
    let stand = Stand::new();
    for n in 1..MOST {
        stand.apply_as(&format!("a-{n}"), &subscription("nothing"));
    }
    stand.apply(TYPE);
    assert_eq!(stand.apply_as("one-more", &subscription(TYPE)), Outcome::TooMany);
    assert!(block_on(stand.people.remove(&named("a-1"))).unwrap());
    assert_eq!(stand.apply_as("one-more", &subscription(TYPE)), Outcome::Changed(1));
    // Code that did not count: the number is not there, and there are more.
    let extra = Item { key: keys::subscription(&named("zzz")), attrs: peek(&stand.world.core().table, &address()).attrs };
    stand.put(extra);
    let mut changed = (**stand.world.core().table.peek(&keys::changed()).unwrap()).clone();
    changed.attrs.remove("n");
    let version = changed.version();
    stand.put(changed.with("v", version + 1));
    assert_eq!(stand.apply_as("refused", &subscription(TYPE)), Outcome::TooMany);
    stand.event("e-1");
    let mut told = stand.requests();
    told.sort_unstable();
    assert_eq!(told, ["hook", "one-more", "zzz"]);
}

#[test]
fn an_event_that_comes_again_when_its_delivery_has_expired_is_not_delivered_again() {
    let stand = Stand::new();
    stand.apply(TYPE);
    let event = stand.said("e-1");
    stand.emit(event.clone());
    let late = Message::Deliver { to: address(), event: event.to_json(), again: None, unmatched: false };
    stand.world.pass(Span::minutes(91 * 24 * 60));
    stand.expire();
    stand.emit(event);
    // Nor is a message of that time that was kept.
    stand.world.enqueue(NAME, Parcel::Own(late.letter().body));
    stand.rest();
    assert_eq!((stand.requests().len(), stand.delivery("e-1")), (1, None));
}

#[test]
fn a_subscription_takes_nothing_from_before_it_was_applied_or_resumed() {
    let stand = Stand::new();
    let before = stand.said("before");
    stand.world.pass(Span::minutes(5));
    stand.apply(TYPE);
    stand.emit(before);
    // Clocks differ by seconds.
    let mut moments = stand.said("of another clock");
    moments.time = Timestamp(moments.time.0 - 30_000);
    stand.emit(moments);
    assert!(!stand.is_delivered("before") && stand.is_delivered("of another clock"));
    stand.receivers.answer("hook", &[Reply::Status(410)]);
    stand.event("gone");
    let meanwhile = stand.said("while it was disabled");
    stand.world.pass(Span::minutes(5));
    block_on(stand.people.resume(&address())).unwrap();
    stand.emit(meanwhile);
    assert!(!stand.is_delivered("while it was disabled"));
}

/// A subscription that carries out the task `build`, and says so with these events.
fn carries_out(started: bool, finished: bool) -> Subscription {
    let ty = "sh.keptn.event.build.triggered";
    Subscription::from_value(&json!({
        "events": [ty], "projects": ["p"], "url": "https://receiver.test", "attempts": 3, "sendStarted": started, "sendFinished": finished,
    }))
    .unwrap()
}

#[test]
fn a_task_is_carried_out_only_while_its_sequence_waits_for_it() {
    // Somebody else may say the other one.
    for (started, finished) in [(true, true), (false, true), (true, false)] {
        let sequences = stand::Stand::new(&shipyard(&["build"], "release"));
        let receivers = Shared::default();
        let hooks = engine(sequences.world.worker(7), &receivers);
        block_on(hooks.apply(&address(), &carries_out(started, finished), "")).unwrap();
        sequences.trigger("c1");
        let open = sequences.published("c1", "sh.keptn.event.build.triggered").unwrap();
        let deliver = Message::Deliver { to: address(), event: open.clone(), again: None, unmatched: false };
        block_on(hooks.message(&deliver, Cause::default())).unwrap();
        // Its first attempt comes when the task has been answered.
        sequences.world.core().queue.messages.retain(|_, message| message.engine != NAME);
        sequences.answer("c1", "build");
        let id = id(("p", "hook"), open["source"].as_str().unwrap(), open["id"].as_str().unwrap(), None);
        block_on(hooks.message(&Message::Wake { to: id, at: sequences.world.now() }, Cause::default())).unwrap();
        let ended = block_on(hooks.delivery("p", id)).unwrap().unwrap();
        assert_eq!((ended.end, receivers.got().len()), (Some(End::TaskOver), 0), "{started} {finished}");
        assert!(sequences.published("c1", "sh.keptn.event.build.finished").is_none(), "nobody waits for an answer");
    }
}

#[test]
fn an_event_that_is_too_large_is_recorded_by_name_and_nothing_else_is_written() {
    let stand = Stand::new();
    stand.apply(TYPE);
    let mut event = stand.said("large");
    event.data.insert("text".into(), "x".repeat(300 * 1024).into());
    stand.emit(event);
    assert!(!stand.is_delivered("large"));
    let core = stand.world.core();
    let recorded: Vec<&str> = core.table.items().filter_map(|item| item.text("why")).collect();
    assert!(
        matches!(recorded[..], [why] if why.contains("webhooks take it") && why.contains("245760 are allowed")),
        "{recorded:?}"
    );
}

#[test]
fn a_delivery_whose_answers_could_not_be_kept_ends_without_a_request() {
    let stand = Stand::new();
    stand.apply(TYPE);
    // Code that did not look at the size took it.
    let mut event = stand.said("large");
    event.data.insert("text".into(), "x".repeat(MAX_ITEM_BYTES - 2000).into());
    let deliver = Message::Deliver { to: address(), event: event.to_json(), again: None, unmatched: false };
    stand.world.enqueue(NAME, Parcel::Own(deliver.letter().body));
    stand.rest();
    for _ in 0..5 {
        stand.world.pass(Span::minutes(20));
        block_on(sweep::page(&stand.warm, &mut Tick::default())).unwrap();
        stand.rest();
    }
    assert_eq!((stand.delivery("large").unwrap().end, stand.requests().len()), (Some(End::TooLarge), 0));
}

#[test]
fn a_receiver_that_takes_long_gets_no_more_than_its_share_of_a_worker_and_the_others_do_not_wait_for_it() {
    let stand = Stand::new();
    stand.apply(TYPE);
    stand.apply_as("quick", &subscription("quick"));
    stand.receivers.answer("hook", &[Reply::Nothing("no answer within 5 s".into())]);
    // From now on the worker knows that it takes long.
    stand.event("first");
    for event in ["second", "third"] {
        stand.world.enqueue(NAME, Parcel::Event(stand.said(event)));
    }
    let mut wakes = vec![];
    while let Some((id, received)) = stand.receive() {
        if received.parcel.text().contains("\"wake\"") {
            wakes.push((id, received));
        } else {
            block_on(play(&stand.warm, &received)).unwrap();
            stand.world.core().queue.acknowledge(id);
        }
    }
    let [(_, second), (_, third)] = &wakes[..] else { panic!("{wakes:?}") };
    let mut request = Box::pin(play(&stand.warm, second));
    // The delivery and its subscription are read; then the request is on its way.
    assert!((0..3).all(|_| step(&mut request).is_pending()));
    block_on(play(&stand.warm, third)).unwrap();
    let waiting: Vec<_> = ["second", "third"].map(|event| stand.delivery(event).unwrap()).to_vec();
    let later = waiting.iter().filter(|x| x.due.is_some_and(|due| due > stand.world.now())).count();
    assert_eq!((later, stand.requests().len()), (1, 1), "it is put back, and no request is made: {waiting:?}");
    let mut quick = stand.said("for the other one");
    quick.ty = "quick".into();
    stand.emit(quick);
    assert_eq!(stand.requests(), ["hook", "quick"]);
    block_on(request).unwrap();
    assert_eq!(stand.requests(), ["hook", "quick", "hook"]);
    stand.receivers.answer("hook", &[Reply::Status(200)]);
    stand.world.pass(Span::minutes(10));
    stand.rest();
    for event in ["second", "third"] {
        assert_eq!(stand.delivery(event).unwrap().end, Some(End::Delivered), "{event}");
    }
}

/// Notes what the state of a delivery says of its subscription again: its message comes once more.
fn again(stand: &Stand, received: &Received) {
    block_on(play(&stand.warm, &Received { again: true, ..received.clone() })).unwrap();
}

#[test]
fn a_success_clears_no_failure_that_was_noted_after_it() {
    let stand = Stand::new();
    stand.apply(TYPE);
    stand.receivers.answer("hook", &[Reply::Status(500)]);
    stand.event("fails");
    stand.world.pass(Span::seconds(1));
    stand.receivers.answer("hook", &[Reply::Status(200)]);
    let delivered = stand.event("delivered");
    let success = delivered.iter().find(|received| received.parcel.text().contains("\"wake\"")).unwrap();
    stand.world.pass(Span::seconds(1));
    stand.receivers.answer("hook", &[Reply::Status(500)]);
    stand.event("fails again");
    let failing = stand.subscription().failing;
    again(&stand, success);
    assert!(failing.is_some());
    assert_eq!(stand.subscription().failing, failing);
}

#[test]
fn a_subscription_that_was_resumed_has_three_days_again() {
    let stand = Stand::new();
    stand.apply(TYPE);
    stand.receivers.answer("hook", &[Reply::Status(500)]);
    stand.event("fails");
    // One attempt each time.
    for _ in 0..12 {
        stand.world.pass(Span::minutes(24 * 60));
        stand.rest();
    }
    assert!(stand.subscription().off.is_some_and(|off| off.reason == "failing"));
    block_on(stand.people.resume(&address())).unwrap();
    let once = Subscription { attempts: 1, ..subscription(TYPE) };
    stand.apply_as("hook", &once);
    stand.event("fails once");
    assert_eq!(stand.delivery("fails once").unwrap().end, Some(End::GivenUp));
    assert_eq!(stand.subscription().off, None);
}

#[test]
fn no_delivery_begins_when_the_subscription_was_disabled_after_its_event_was_matched() {
    let stand = Stand::new();
    stand.apply(TYPE);
    stand.world.enqueue(NAME, Parcel::Event(stand.said("matched")));
    let (id, event) = stand.receive().unwrap();
    block_on(play(&stand.warm, &event)).unwrap();
    stand.world.core().queue.acknowledge(id);
    let (id, matched) = stand.receive().unwrap();
    stand.receivers.answer("hook", &[Reply::Status(410)]);
    stand.event("gone");
    block_on(play(&stand.warm, &matched)).unwrap();
    stand.world.core().queue.acknowledge(id);
    stand.rest();
    assert!(stand.subscription().off.is_some() && !stand.is_delivered("matched"));
}

#[test]
fn the_list_has_what_can_be_read_and_the_names_of_the_others() {
    let stand = Stand::new();
    stand.apply(TYPE);
    stand.apply_as("newer", &subscription(TYPE));
    let newer = peek(&stand.world.core().table, &named("newer")).with("f", 2i64);
    stand.put(newer);
    let all = block_on(Webhooks::new(stand.world.worker(4), Default::default()).subscriptions()).unwrap();
    assert_eq!((all.readable.len(), &all.unread[..]), (1, &[named("newer")][..]));
    assert_eq!(all.within("p").count(), 2);
}
