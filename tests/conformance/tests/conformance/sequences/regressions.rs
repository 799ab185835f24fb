//! Races and repetitions that the simulation found in sequences.

use keelway_conformance::stand::{BEGIN, Stand, delivery, project, shipyard, stage, task};
use keelway_domain::event::{EventType, Kind, TaskResult};
use keelway_domain::names::{SequenceName, TaskName};
use keelway_domain::sequences::{Action, Class, GET_ACTION, ProblemType, Remediation};
use keelway_domain::shipyard::{Match, Sequence, Shipyard, Trigger};
use keelway_domain::time::Span;
use keelway_domain::windows::{Kind as WindowKind, When, Window};
use keelway_engine::item::Item;
use keelway_engine::projects::NewShipyard;
use keelway_engine::resources;
use keelway_engine::sequences::commands::Control;
use keelway_engine::sequences::retry::Wanted;
use keelway_engine::sequences::{Body, Incoming, Loaded, Message, keys, remediation};
use keelway_world::exec::{block_on, step};

/// Nothing ever begins in dev.
fn closed() -> Shipyard {
    let when = When::Once { from: BEGIN - Span::minutes(2), until: BEGIN - Span::minutes(1) };
    let mut shipyard = shipyard(&["a"], "b");
    shipyard.stages[0].windows = vec![Window { kind: WindowKind::Allow, when, zone: None, reason: None }];
    shipyard
}

#[test]
fn whoever_is_held_back_by_windows_that_are_replaced_at_that_moment_begins() {
    for steps in 0.. {
        let stand = Stand::new(&closed());
        stand.emit(stand.trigger_event("C1"));
        let (id, trigger) = stand.receive().expect("the trigger");
        let mut task = stand.begin(1, &trigger);
        let over = (0..steps).any(|_| step(&mut task).is_ready());
        let open = shipyard(&["a"], "b");
        let new = NewShipyard { revision: "r2", source: "r2", shipyard: &open, replaces: None, by: "" };
        block_on(stand.engine.apply_shipyard(&project(), new)).expect("applied");
        stand.rest();
        if !over {
            block_on(task).expect("handled");
        }
        stand.world.core().queue.acknowledge(id);
        stand.rest();
        let begun = stand.published("C1", "sh.keptn.event.dev.delivery.started");
        assert!(begun.is_some(), "applied after {steps} steps");
        if over {
            return;
        }
    }
}

/// Rounds of one action each; the next round follows a failed evaluation.
fn rounds() -> Shipyard {
    let failed = Match { task: TaskName::new("evaluation").ok(), result: TaskResult::Fail };
    let again = Trigger { event: "dev.remediation.finished".into(), selector: Some(vec![failed]) };
    let tasks = [GET_ACTION, "action", "evaluation"].map(task).to_vec();
    let name = SequenceName::new("remediation").expect("a name");
    let round = Sequence { name, triggered_on: vec![again], ..delivery(tasks, None) };
    Shipyard { stages: vec![stage("dev", vec![round])] }
}

fn fail(stand: &Stand, task: &str) {
    let open = stand.published("C1", &EventType::task(task, Kind::Triggered)).expect("triggered");
    let answers = open["id"].as_str();
    let mut finished = stand.event("dev", "C1", EventType::task(task, Kind::Finished), answers, &format!("failed-{task}"));
    finished.data.insert("result".into(), "fail".into());
    stand.emit(stand.event("dev", "C1", EventType::task(task, Kind::Started), answers, &format!("started-{task}")));
    stand.emit(finished);
    stand.rest();
}

#[test]
fn a_round_of_a_remediation_is_repeated_from_its_first_task_on_and_the_request_may_come_again() {
    let stand = Stand::new(&rounds());
    let action = |name: &str| Action { action: "act".into(), name: name.into(), description: String::new(), value: 1.into() };
    let actions = ["one", "two", "three"].map(action).to_vec();
    let all = Remediation { remediations: vec![ProblemType { problem_type: "default".into(), actions }] };
    let stored = remediation::form(remediation::REMEDIATION, &all).into_values().next().expect("a form");
    stand.put(Item::new(resources::keys::resource(&project(), "dev", remediation::REMEDIATION)).with("j", stored));
    stand.emit(stand.event("dev", "C1", "sh.keptn.event.dev.remediation.triggered".into(), None, "problem"));
    stand.rest();
    stand.answer("C1", "action");
    fail(&stand, "evaluation");
    fail(&stand, "action");
    let second = stand.executions("C1").into_iter().find(|x| x.class == Class::FollowUp).expect("a second round");
    let id = second.id.to_string();
    let wanted = Wanted { execution: Some(&id), from: Some(GET_ACTION), ..Wanted::default() };
    let ask = || block_on(stand.engine.retry(&project(), &second.context, wanted)).map(|retried| retried.to);
    let first = ask();
    stand.rest();
    assert!(first.is_ok(), "{first:?}");
    assert_eq!(ask(), first);
    let chosen = stand.published("C1", "sh.keptn.event.get-action.finished").expect("answered");
    assert_eq!(chosen["data"]["action"]["name"], "two");
}

/// Whether a context's execution in dev has begun.
fn has_begun(stand: &Stand, on: &str) -> bool {
    stand.published(on, "sh.keptn.event.dev.delivery.started").is_some()
}

#[test]
fn a_lane_that_is_handed_to_one_that_ends_at_that_moment_goes_to_the_next() {
    for steps in 0.. {
        let stand = Stand::new(&shipyard(&["a"], "b"));
        ["holder", "next", "last"].into_iter().for_each(|on| stand.trigger(on));
        let open = stand.published("holder", "sh.keptn.event.a.triggered").expect("triggered");
        let answers = open["id"].as_str();
        let answer = |kind, id| stand.event("dev", "holder", EventType::task("a", kind), answers, id);
        stand.emit(answer(Kind::Started, "started"));
        stand.rest();
        stand.emit(answer(Kind::Finished, "finished"));
        let (id, finished) = stand.receive().expect("the answer");
        let mut ends = stand.begin(1, &finished);
        let over = (0..steps).any(|_| step(&mut ends).is_ready());
        // The next one is aborted while the holder hands its lane over; nothing sweeps.
        stand.tell("next", Control::Abort);
        stand.rest();
        if !over {
            block_on(ends).expect("handled");
        }
        stand.world.core().queue.acknowledge(id);
        stand.rest();
        assert!(has_begun(&stand, "last"), "aborted after {steps} steps");
        if over {
            return;
        }
    }
}

/// Handles what is due until an abort is next, but for a grant to somebody who has ended: nobody ever sees that.
fn until_an_abort(stand: &Stand) -> Option<(u64, Incoming)> {
    while let Some((id, delivery)) = stand.receive() {
        let late = match &delivery.body {
            Body::Own(Message::Abort { .. }) => return Some((id, delivery)),
            Body::Own(Message::Granted { to, .. }) => {
                let item = stand.item(&keys::execution(to)).expect("it was granted the lane");
                Loaded::read(&item).expect("readable").x.outcome.is_some()
            }
            _ => false,
        };
        if !late {
            stand.handle(&delivery).expect("handled");
        }
        stand.world.core().queue.acknowledge(id);
    }
    None
}

/// The same to the end.
fn rest_without_late_grants(stand: &Stand) {
    while let Some((id, abort)) = until_an_abort(stand) {
        stand.handle(&abort).expect("handled");
        stand.world.core().queue.acknowledge(id);
    }
}

/// The next in the queue is aborted while the holder hands its lane over, and whoever is last comes before that, in between or
/// afterwards. The end of the next one looks at the lane after its commit, so it sees that the lane was handed to it; or the
/// hand-over loses its conditional write. So a grant that meets the end of its execution has nothing to do: it makes the lock name
/// nobody a moment earlier.
#[test]
fn a_lane_is_handed_on_also_if_nobody_sees_the_grant_to_one_that_has_ended() {
    let mut met = 0;
    'steps: for steps in 0.. {
        for (cut, comes, first) in (0..10).flat_map(|cut| (0..3).flat_map(move |comes| [(cut, comes, true), (cut, comes, false)])) {
            let stand = Stand::new(&shipyard(&["a"], "b"));
            ["holder", "next"].into_iter().for_each(|on| stand.trigger(on));
            let last = |at: i32| {
                if comes == at {
                    stand.emit(stand.trigger_event("last"));
                    rest_without_late_grants(&stand);
                }
            };
            let open = stand.published("holder", "sh.keptn.event.a.triggered").expect("triggered");
            let answer = |kind, id| stand.event("dev", "holder", EventType::task("a", kind), open["id"].as_str(), id);
            stand.emit(answer(Kind::Started, "started"));
            stand.rest();
            last(0);
            stand.emit(answer(Kind::Finished, "finished"));
            let (end, finished) = stand.receive().expect("the answer");
            let mut ends = stand.begin(1, &finished);
            let over = (0..steps).any(|_| step(&mut ends).is_ready());
            stand.tell("next", Control::Abort);
            // Whoever is granted the lane meanwhile ends by itself.
            let told = until_an_abort(&stand).map(|(id, abort)| (stand.begin(2, &abort), id));
            let told = told.and_then(|(mut aborts, id)| (!(0..cut).any(|_| step(&mut aborts).is_ready())).then_some((aborts, id)));
            last(1);
            let mut left = [(!over).then_some((ends, end)), told];
            if first {
                left.reverse();
            }
            for (task, id) in left.into_iter().flatten() {
                // Whoever met another one too often tries again.
                match block_on(task) {
                    Ok(_) => stand.world.core().queue.acknowledge(id),
                    Err(_) => stand.give_back(id),
                }
            }
            rest_without_late_grants(&stand);
            last(2);
            met += usize::from(stand.executions("next").iter().any(|x| x.outcome.is_some()));
            assert!(has_begun(&stand, "last"), "after {steps} and {cut} steps, coming at {comes}");
            if over && cut == 9 && comes == 2 && !first {
                break 'steps;
            }
        }
    }
    assert!(met > 100, "{met}");
}

#[test]
fn an_older_trigger_that_comes_late_gives_way_to_the_newer_one_that_waits() {
    let mut shipyard = shipyard(&["a"], "b");
    shipyard.stages[0].sequences[0].supersede = true;
    let stand = Stand::new(&shipyard);
    stand.trigger("holder");
    stand.emit(stand.trigger_event("older"));
    let (id, older) = stand.receive().expect("the trigger");
    stand.emit(stand.trigger_event("newer"));
    stand.rest();
    stand.handle(&older).expect("handled");
    stand.world.core().queue.acknowledge(id);
    stand.rest();
    let waits = |on: &str| stand.executions(on).iter().any(|x| x.stage == "dev" && x.outcome.is_none());
    assert_eq!((waits("older"), waits("newer")), (false, true));
    stand.answer("holder", "a");
    assert!(has_begun(&stand, "newer") && !has_begun(&stand, "older"));
}

#[test]
fn a_trigger_behind_many_that_a_window_holds_back_costs_as_many_requests_as_behind_few() {
    let requests = |waiting: usize| {
        let stand = Stand::new(&closed());
        (0..waiting).for_each(|n| stand.trigger(&format!("held-{n}")));
        let before = stand.world.core().request_count();
        stand.trigger("one-more");
        let after = stand.world.core().request_count();
        assert_eq!(stand.queue(), waiting + 1);
        after - before
    };
    assert_eq!(requests(5), requests(80));
}
