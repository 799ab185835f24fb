//! Answers over HTTP, which are handled where they arrive: every case ends as it does when they come over the bus, and what a
//! function leaves that stops half-way is made up for, whether or not its client asks again.

use crate::suite::suite;
use keelway_conformance::chosen::all;
use keelway_conformance::held;
use keelway_conformance::stand::{Stand, shipyard};
use keelway_domain::event::{CANCELLED, CloudEvent, EventType, Kind};
use keelway_domain::shipyard::EVALUATION;
use keelway_domain::time::Span;
use keelway_engine::keptn::preflight::Preflight;
use keelway_engine::sequences::{Limits, Publishes, Sequences, is_taken};
use keelway_world::case::run;
use keelway_world::core::{Fault, Method};
use keelway_world::exec::{Task, block_on, step};
use keelway_world::rng::Rng;
use keelway_world::sequences::{Keptn, SequencesWorld, answered, takes};
use keelway_world::story::Mode;
use serde_json::Value;
use std::task::Poll;

suite! {
    cases: held::sequences_over_http();
    faults: held::sequences_over_http(), but: &[Method::Outside];
}

/// The `.finished` of the open task of a context.
fn finished(stand: &Stand, task: &str) -> CloudEvent {
    let open = stand.executions("c1")[0].record.expect("an open task").uuid().to_string();
    stand.event("dev", "c1", EventType::task(task, Kind::Finished), Some(&open), "done")
}

/// Before the `.finished` of the first of these tasks; another delivery waits for the lane.
fn before_the_end(tasks: &[&str]) -> Stand {
    let stand = Stand::new(&shipyard(tasks, "release"));
    stand.trigger("c1");
    stand.trigger("c2");
    let open = stand.executions("c1")[0].record.expect("an open task").uuid().to_string();
    let started = stand.event("dev", "c1", EventType::task(tasks[0], Kind::Started), Some(&open), "begun");
    block_on(answered(&stand.engine, &started)).expect("nothing is in the way").expect("it fits");
    stand.rest();
    stand
}

/// Lets a function of the API make so many requests for an answer, and stops it. `false`: it was done before.
fn stopped_after(stand: &Stand, event: &CloudEvent, requests: u64) -> bool {
    let (engine, event) = (Sequences::new(stand.world.worker(7), Limits::default()), event.clone());
    let mut task: Task<()> = Box::pin(async move { drop(answered(&engine, &event).await) });
    let before = stand.world.core().request_count();
    while stand.world.core().request_count() < before + requests {
        if matches!(step(&mut task), Poll::Ready(())) {
            return false;
        }
    }
    true
}

/// Whether the sweep tells everything that a function left which stopped after its n-th request, and whose client asks no more.
fn made_up_for(tasks: &[&str], told: &[&str]) {
    let (mut counted, mut n) = (0, 1);
    loop {
        let stand = before_the_end(tasks);
        if !stopped_after(&stand, &finished(&stand, tasks[0]), n) {
            break;
        }
        let counts = stand.executions("c1")[0].results.len() == 1;
        // An unanswered trigger is repeated after two minutes.
        for _ in 0..2 {
            stand.world.pass(Span::minutes(3));
            stand.sweep();
            stand.rest();
        }
        for ty in told.iter().filter(|_| counts) {
            assert!(stand.published("c1", ty).is_some(), "{ty} was never told after request {n}: {:?}", stand.counts());
        }
        if counts && tasks.len() == 1 {
            assert_eq!(stand.holder().as_deref(), Some("c2"), "the lane was not handed on after request {n}");
        }
        // Who finds the note tells an end once more, and nobody does after that.
        assert!(stand.repeated().iter().all(|(ty, n)| !ty.ends_with(".finished") || *n == 2), "{:?}", stand.repeated());
        (counted, n) = (counted + u32::from(counts), n + 1);
    }
    println!("{n} requests, stopped after {counted} of them behind the commit");
    assert!(counted > 0, "the commit was never reached");
}

#[test]
fn an_end_that_a_stopped_function_has_committed_is_told_without_its_client() {
    made_up_for(&["build"], &["sh.keptn.event.dev.delivery.finished", "sh.keptn.event.release.triggered"]);
}

#[test]
fn a_trigger_that_a_stopped_function_has_committed_is_told_without_its_client() {
    made_up_for(&["build", "test"], &["sh.keptn.event.test.triggered"]);
}

#[test]
fn the_same_request_again_completes_what_a_stopped_function_has_begun() {
    for n in 1.. {
        let stand = before_the_end(&["build", "test"]);
        let event = finished(&stand, "build");
        if !stopped_after(&stand, &event, n) {
            break;
        }
        stand.world.pass(Span::minutes(10));
        block_on(answered(&stand.engine, &event)).expect("nothing is in the way").expect("it is the same");
        let triggered = stand.published("c1", "sh.keptn.event.test.triggered");
        assert!(triggered.is_some(), "request {n}: the next task was not triggered");
        // A copy of it that comes later tells nothing new.
        let open = stand.executions("c1")[0].record;
        block_on(answered(&stand.engine, &event)).expect("nothing is in the way").expect("it is the same");
        assert_eq!(stand.executions("c1")[0].record, open, "request {n}");
    }
}

#[test]
fn what_cannot_be_handled_at_once_goes_into_the_queue() {
    let stand = before_the_end(&["build", "test"]);
    let event = finished(&stand, "build");
    // The first request reads, the second publishes the answer; then the table takes no records.
    stand.world.core().faults = Some(Box::new(|_, method| match method {
        Method::PutBatch => Fault::Throttled,
        _ => Fault::None,
    }));
    block_on(answered(&stand.engine, &event)).expect("the queue takes it").expect("it fits");
    stand.world.core().faults = None;
    assert!(stand.published("c1", "sh.keptn.event.test.triggered").is_none());
    stand.rest();
    assert!(stand.published("c1", "sh.keptn.event.test.triggered").is_some());
}

/// Reads that are not strongly consistent show half of the items as they were before their last write.
fn forgetful(tasks: &[&str], seed: u64) -> Stand {
    let limits = Limits { publishes: Publishes::Own, ..Limits::default() };
    let stand = Stand::with(&shipyard(tasks, "release"), limits);
    stand.world.core().table.stale_reads = Some(Rng::new(seed));
    stand
}

/// What a check reads may be old: the execution before its last write, the record not there yet, the project before a change.
#[test]
fn an_answer_that_is_checked_by_what_is_old_is_never_refused_for_it() {
    let mut again = 0;
    for seed in 0..40 {
        let stand = forgetful(&["build", "test", "verify"], seed);
        stand.trigger("c1");
        stand.rest();
        for task in ["build", "test", "verify"] {
            let open = stand.executions("c1")[0].record.expect("an open task").uuid().to_string();
            for kind in [Kind::Started, Kind::Finished] {
                let event =
                    stand.event("dev", "c1", EventType::task(task, kind), Some(&open), &format!("{task}-{}", kind.as_str()));
                let before = stand.world.core().request_count();
                block_on(answered(&stand.engine, &event)).expect("nothing is in the way").expect("it fits");
                again += u64::from(stand.world.core().request_count() - before > 6);
            }
        }
        stand.rest();
        let x = &stand.executions("c1")[0];
        assert_eq!(x.results.len(), 3, "seed {seed}");
        assert_eq!(stand.repeated(), vec![], "seed {seed}");
        assert!(x.outcome.is_some(), "seed {seed}: it ended");
    }
    println!("{again} answers were read again");
    assert!(again > 0, "nothing old was ever read");
}

/// The project is read with the answer, and may be old. What follows an end is what the shipyard in force says, not the one before.
#[test]
fn an_end_starts_what_the_shipyard_in_force_says_whatever_the_check_has_read() {
    for seed in 0..20 {
        let stand = forgetful(&["build"], seed);
        stand.trigger("c1");
        stand.rest();
        let open = stand.executions("c1")[0].record.expect("an open task").uuid().to_string();
        let say = |kind: Kind| stand.event("dev", "c1", EventType::task("build", kind), Some(&open), kind.as_str());
        block_on(answered(&stand.engine, &say(Kind::Started))).expect("nothing is in the way").expect("it fits");
        stand.apply("r2", &shipyard(&["build"], "rollout"));
        block_on(answered(&stand.engine, &say(Kind::Finished))).expect("nothing is in the way").expect("it fits");
        stand.rest();
        let next: Vec<String> = stand.executions("c1").iter().filter_map(|x| Some(x.open.as_ref()?.to_string())).collect();
        assert_eq!(next, ["rollout"], "seed {seed}");
    }
}

/// An answer without its `.started` has its note, one after it has none, and a copy changes nothing.
#[test]
fn what_is_said_of_an_answer_that_does_not_count_is_never_old() {
    for seed in 0..40 {
        let stand = forgetful(&["build", "test"], seed);
        stand.trigger("c1");
        stand.rest();
        let open = stand.executions("c1")[0].record.expect("an open task").uuid().to_string();
        let say = |kind: Kind| stand.event("dev", "c1", EventType::task("build", kind), Some(&open), kind.as_str());
        let looked = |event: &CloudEvent| block_on(stand.engine.preflight(event)).expect("it fits");
        let noted = |looked: Preflight| match looked {
            Preflight::Answer { note, known, .. } => (note.is_some(), known),
            other => panic!("{other:?}"),
        };
        assert_eq!(noted(looked(&say(Kind::Finished))), (true, false), "seed {seed}: no .started yet");
        block_on(answered(&stand.engine, &say(Kind::Started))).expect("nothing is in the way").expect("it fits");
        assert_eq!(noted(looked(&say(Kind::Finished))), (false, false), "seed {seed}: it counts");
        block_on(answered(&stand.engine, &say(Kind::Started))).expect("nothing is in the way").expect("a copy");
        assert_eq!(stand.executions("c1")[0].reactions.len(), 1, "seed {seed}: a copy");
        block_on(answered(&stand.engine, &say(Kind::Finished))).expect("nothing is in the way").expect("it fits");
        let x = stand.executions("c1")[0].clone();
        block_on(answered(&stand.engine, &say(Kind::Finished))).expect("nothing is in the way").expect("the task is over");
        assert_eq!(stand.executions("c1")[0], x, "seed {seed}: the task is over");
    }
}

/// With `Events=own`, an event is published if and only if a rule of another engine takes it.
#[test]
fn only_what_a_rule_takes_goes_on_the_bus_where_nothing_else_is_wanted() {
    let taken = |event: &Value| {
        let data = &event["data"];
        let names = |of: &str, what: &str| !data[of][what].is_null();
        let (ty, source) = (event["type"].as_str().unwrap_or_default(), event["source"].as_str().unwrap_or_default());
        let deployed = keelway_world::deployments::takes(source, ty)
            && (names("deployment", "deploymentConfig") || names("rollback", "deploymentConfig"));
        let evaluated = keelway_world::evaluations::takes(source, ty) && (ty != CANCELLED || data["task"] == EVALUATION);
        deployed || evaluated || (source == "shipyard-controller" && ty.ends_with(".finished") && names("promotion", "pipeline"))
    };
    let mut wanted = 0;
    for case in all::<Keptn>() {
        let mut stand = SequencesWorld::new(Mode::Clean);
        if run(&case, &mut stand).is_err() {
            continue;
        }
        for entry in stand.story.world.outgoing() {
            let event: Value = serde_json::from_str(&entry.detail).expect("JSON");
            let read = keelway_engine::sequences::history::from_json(&event).expect("an event of ours");
            assert_eq!(is_taken(&read), taken(&event), "{event}");
            assert!(!takes(&entry.source, &entry.detail_type), "{event}");
            wanted += usize::from(taken(&event));
        }
        // Told again without publications, the case comes to the same end.
        let mut quiet = SequencesWorld::with(Mode::Clean, Limits { publishes: Publishes::Own, ..Limits::default() });
        drop(run(&case, &mut quiet));
        let published: Vec<_> = quiet.story.world.outgoing();
        assert!(published.iter().all(|entry| taken(&serde_json::from_str(&entry.detail).expect("JSON"))), "{}", case.id);
    }
    println!("{wanted} events of all cases are taken by rules");
}
