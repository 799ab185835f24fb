//! Work that waits for an executor, and an executor that waits for work.

use super::{of, start};
use crate::support::{Api, Gate, World, trigger};
use serde_json::{Value, json};

#[test]
fn several_run_at_the_same_time_if_allowed() {
    let api = Api::start();
    for n in 0..4 {
        api.world().open.push(trigger("test", &format!("t-{n}")));
    }
    let gate = Gate::closed();
    let _executor = start(&api, &["--concurrency", "4"], &gate.script());
    api.wait("all started", |world| of(world, "started").len() == 4);
    assert!(of(&api.world(), "finished").is_empty());
    gate.open();
    api.wait("all finished", |world| of(world, "finished").len() == 4);
}

#[test]
fn a_busy_executor_claims_what_waits_and_runs_it_in_order() {
    let api = Api::start();
    let gate = Gate::closed();
    let _executor = start(&api, &["--claim-after", "20ms"], &gate.script());
    let ids = ["t-1", "t-2", "t-3", "t-4", "t-5"];
    for (n, id) in ids.into_iter().enumerate() {
        api.world().open.push(trigger("test", id));
        api.wait("claimed", |world| of(world, "started").len() == n + 1);
    }
    assert!(of(&api.world(), "finished").is_empty(), "all are started, and the first one still runs");
    gate.open();
    api.wait("all finished", |world| of(world, "finished").len() == ids.len());
    let world = api.world();
    let answered = |kind: &str| of(&world, kind).into_iter().map(|event| event["triggeredid"].clone()).collect::<Vec<_>>();
    assert_eq!(answered("finished"), ids);
    // Those that waited say when they run.
    assert_eq!(answered("status.changed"), ids[1..]);
    assert!(of(&world, "status.changed").iter().all(|event| event["data"]["message"] == "runs"));
}

#[test]
fn an_executor_says_that_it_lives_and_that_a_command_waits_for_a_place() {
    let api = Api::start();
    let gate = Gate::closed();
    let _executor = start(&api, &["--claim-after", "20ms", "--heartbeat", "30ms"], &gate.script());
    for id in ["t-1", "t-2"] {
        api.world().open.push(trigger("test", id));
        api.wait("claimed", |world| of(world, "started").iter().any(|event| event["triggeredid"] == id));
    }
    let said = |world: &World, id: &str, message: &str| {
        let says = |event: &&Value| event["triggeredid"] == id && event["data"]["message"] == message;
        of(world, "status.changed").iter().filter(|event| says(event)).count()
    };
    api.wait("both are heard of", |world| said(world, "t-1", "runs") > 1 && said(world, "t-2", "waits for a free place") > 1);
    let world = api.world();
    let alive = |event: &Value| (event["data"]["heartbeat"].clone(), event["data"]["queued"].clone());
    let all = |kind: &str, id: &str| -> Vec<(Value, Value)> {
        of(&world, kind).into_iter().filter(|event| event["triggeredid"] == id).map(alive).collect()
    };
    let (runs, queued) = ((json!("30ms"), Value::Null), (json!("30ms"), json!(true)));
    for kind in ["started", "status.changed"] {
        assert!(all(kind, "t-1").iter().all(|said| *said == runs), "{kind}");
        assert!(all(kind, "t-2").iter().all(|said| *said == queued), "{kind}");
    }
    drop(world);
    gate.open();
    api.wait("the other one runs", |world| said(world, "t-2", "runs") > 0 && of(world, "finished").len() == 2);
}

#[test]
fn a_start_that_another_replica_has_told_in_other_words_is_left_to_it() {
    let api = Api::start();
    api.world().faults.push_back((409, json!({"title": "conflict", "detail": "another event has this id", "status": 409})));
    let executor = start(&api, &[], "true");
    api.world().open.push(trigger("test", "t-1"));
    executor.wait_for("context-of-t-1 is being answered by another process of this name");
}

#[test]
fn a_command_whose_sequence_is_aborted_is_ended_and_not_answered() {
    let api = Api::start();
    api.world().open.push(trigger("test", "t-1"));
    let executor = start(&api, &[], "trap 'echo told >&2; exit 0' TERM; sleep 600 & wait");
    api.wait("started", |world| !of(world, "started").is_empty());
    // Somebody aborts the sequence.
    api.world().open.clear();
    executor.wait_for("context-of-t-1 ended: the sequence was aborted or timed out");
    assert!(of(&api.world(), "finished").is_empty());
    // The process goes on with what comes next.
    api.world().open.push(trigger("test", "t-2"));
    api.wait("started", |world| of(world, "started").len() == 2);
}

#[test]
fn what_is_over_before_its_turn_is_not_run() {
    let api = Api::start();
    let (gate, dir) = (Gate::closed(), tempfile::tempdir().unwrap());
    let mark = dir.path().join("ran");
    let script = format!("echo $KEELWAY_TRIGGER_ID >> {}; {}", mark.display(), gate.script());
    let executor = start(&api, &["--claim-after", "20ms"], &script);
    for id in ["t-1", "t-2", "t-3"] {
        api.world().open.push(trigger("test", id));
        api.wait("claimed", |world| of(world, "started").iter().any(|event| event["triggeredid"] == id));
    }
    // Somebody aborts the second sequence.
    api.world().open.retain(|event| event["id"] != "t-2");
    gate.open();
    executor.wait_for("context-of-t-2 over before its turn came: not run");
    api.wait("the others finished", |world| of(world, "finished").len() == 2);
    assert_eq!(std::fs::read_to_string(&mark).unwrap(), "t-1\nt-3\n");
}

#[test]
fn what_another_replica_runs_meanwhile_is_not_run_again() {
    let api = Api::start();
    let (gate, others, dir) = (Gate::closed(), Gate::closed(), tempfile::tempdir().unwrap());
    let mark = dir.path().join("ran");
    let run = |gate: &Gate| format!("echo $KEELWAY_TRIGGER_ID >> {}; {}", mark.display(), gate.script());
    let first = start(&api, &["--claim-after", "20ms", "--project", "shop"], &run(&gate));
    for id in ["t-1", "t-2"] {
        api.world().open.push(trigger("test", id));
        api.wait("claimed", |world| of(world, "started").iter().any(|event| event["triggeredid"] == id));
    }
    // The first one is busy; a new replica takes over what it finds, and says so.
    let _second = start(&api, &["--concurrency", "2"], &run(&others));
    api.wait("both run there", |world| of(world, "status.changed").len() == 2);
    gate.open();
    first.wait_for("context-of-t-2 is being answered by another process of this name");
    others.open();
    api.wait("finished", |world| of(world, "finished").len() == 2);
    let ran = std::fs::read_to_string(&mark).unwrap();
    assert_eq!((ran.matches("t-1").count(), ran.matches("t-2").count()), (2, 1), "{ran}");
}

#[test]
fn a_signal_leaves_what_waits_to_the_next() {
    let api = Api::start();
    let gate = Gate::closed();
    let mut executor = start(&api, &["--claim-after", "20ms"], &gate.script());
    for id in ["t-1", "t-2"] {
        api.world().open.push(trigger("test", id));
        api.wait("claimed", |world| of(world, "started").iter().any(|event| event["triggeredid"] == id));
    }
    executor.signal("TERM");
    executor.wait_for("stopping: 1 still running");
    executor.wait_for("context-of-t-2 not begun");
    gate.open();
    assert_eq!(executor.ended(), 0);
    assert_eq!(of(&api.world(), "finished").len(), 1);
    let _next = start(&api, &[], "echo attempt $KEELWAY_ATTEMPT >&2");
    api.wait("finished", |world| of(world, "finished").len() == 2);
    assert_eq!(of(&api.world(), "finished")[1]["data"]["message"], "attempt 2");
}

#[test]
fn an_executor_that_waits_asks_once_and_is_told() {
    let api = Api::start();
    let _executor = start(&api, &["--wait", "20s", "--on", "other"], "echo $KEELWAY_TASK >&2");
    let look = "GET /v1/event/triggered/test,other?pageSize=100";
    api.wait("it waits", |world| world.asked.len() == 2);
    assert_eq!(api.lines(), [look.to_owned(), format!("{look}&unless=open&wait=20")]);
    for (task, id) in [("other", "t-1"), ("test", "t-2")] {
        api.world().open.push(trigger(task, id));
        let ty = format!("sh.keptn.event.{task}.finished");
        api.wait("finished", |world| world.events.iter().any(|event| event["type"] == ty.as_str()));
    }
    let looks: Vec<String> = api.lines().into_iter().filter(|line| line.starts_with(look)).collect();
    assert!(looks.len() <= 5 && looks[1..].iter().all(|line| line.contains("&unless=") && line.contains("&wait=")), "{looks:#?}");
}

#[test]
fn an_executor_without_news_for_a_while_does_not_wait_and_still_takes_what_comes() {
    let api = Api::start();
    let _executor = start(&api, &["--wait", "1s", "--idle-after", "1ms"], "true");
    api.wait("asked again", |world| world.asked.len() == 2);
    assert!(api.lines()[1].ends_with("&unless=open"), "{:#?}", api.lines());
    api.world().open.push(trigger("test", "t-1"));
    api.wait("finished", |world| !of(world, "finished").is_empty());
}
