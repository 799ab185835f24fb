//! The executor against an API: real processes, real signals.

mod waiting;

use crate::support::{Api, Gate, Running, World, trigger};
use serde_json::{Value, json};
use std::process::Stdio;

/// What an executor for task `test` asks for again and again.
const LOOK: &str = "GET /v1/event/triggered/test";

/// Starts an executor named `tester` for task `test` that runs a shell script.
fn start(api: &Api, flags: &[&str], script: &str) -> Running {
    // Asks often, and leaves to others what has no place, unless the test is about that.
    let usual = [["--poll", "30ms"], ["--wait", "0s"], ["--claim-after", "1h"]];
    let usual = usual.into_iter().filter(|usual| !flags.contains(&usual[0])).flatten();
    let flags: Vec<&str> = usual.chain(flags.iter().copied()).collect();
    let words = [&["executor", "--name", "tester", "--on", "test"], &flags[..], &["--", "sh", "-c", script]].concat();
    Running::start(&mut api.keelway(&words))
}

fn of<'w>(world: &'w World, kind: &str) -> Vec<&'w Value> {
    world.events.iter().filter(|event| event["type"] == format!("sh.keptn.event.test.{kind}")).collect()
}

/// Runs a script once and returns the data of its `.finished`.
fn answered(flags: &[&str], script: &str) -> Value {
    let api = Api::start();
    api.world().open.push(trigger("test", "t-1"));
    let _executor = start(&api, flags, script);
    api.wait("finished", |world| !of(world, "finished").is_empty());
    let world = api.world();
    of(&world, "finished")[0]["data"].clone()
}

#[test]
fn started_comes_before_finished_and_a_trigger_is_answered_once() {
    let api = Api::start();
    for id in ["t-1", "t-2", "t-3"] {
        api.world().open.push(trigger("test", id));
    }
    api.world().open.push(trigger("other", "o-1"));
    let _executor = start(&api, &["--project", "shop"], "cat >/dev/null; echo '{\"score\": 7}'; echo fine >&2");
    api.wait("all finished", |world| of(world, "finished").len() == 3);
    // It sees them still open, and leaves them alone.
    api.wait_for_more(LOOK, 10);
    let world = api.world();
    let kinds: Vec<String> = world
        .events
        .iter()
        .map(|event| format!("{} {}", event["triggeredid"].as_str().unwrap(), event["type"].as_str().unwrap()))
        .collect();
    let kinds = kinds.join("\n").replace("sh.keptn.event.", "");
    insta::assert_snapshot!(kinds, @r"
    t-1 test.started
    t-1 test.finished
    t-2 test.started
    t-2 test.finished
    t-3 test.started
    t-3 test.finished
    ");
    let finished = of(&world, "finished")[0];
    assert_eq!(finished["source"], "tester");
    assert_eq!(finished["shkeptncontext"], "context-of-t-1");
    assert_eq!(finished["gitcommitid"], "abc");
    let data = json!({
        "project": "shop", "stage": "dev", "service": "carts", "labels": {"by": "ada"},
        "status": "succeeded", "result": "pass", "message": "fine", "test": {"score": 7}
    });
    assert_eq!(finished["data"], data);
}

#[test]
fn the_command_gets_the_event_and_the_variables() {
    let script =
        "cat >/dev/stderr; env | grep -E '^KEELWAY_(ATTEMPT|CONTEXT|IMAGE|NAME|PROJECT|SERVICE|STAGE|TASK|TRIGGER_ID)=' | sort >&2";
    let data = answered(&[], script);
    let message = data["message"].as_str().unwrap();
    let (event, variables) = message.split_once("}KEELWAY").unwrap();
    let event: Value = serde_json::from_str(&format!("{event}}}")).unwrap();
    assert_eq!((&event["id"], &event["data"]["test"]["kind"]), (&json!("t-1"), &json!("load")));
    insta::assert_snapshot!(format!("KEELWAY{variables}"), @r"
    KEELWAY_ATTEMPT=1
    KEELWAY_CONTEXT=context-of-t-1
    KEELWAY_IMAGE=carts:1.2
    KEELWAY_NAME=tester
    KEELWAY_PROJECT=shop
    KEELWAY_SERVICE=carts
    KEELWAY_STAGE=dev
    KEELWAY_TASK=test
    KEELWAY_TRIGGER_ID=t-1
    ");
}

#[test]
fn exit_codes_are_results() {
    let end = |script: &str| {
        let flags: &[&str] = if script == "sleep 600" { &["--timeout", "300ms"] } else { &[] };
        let data = answered(flags, script);
        let text = |field: &str| data[field].as_str().unwrap().to_owned();
        format!("{script}: {} {}: {}", text("result"), text("status"), text("message"))
    };
    let ends = ["exit 0", "echo slow >&2; exit 3", "echo broken >&2; exit 1", "exit 2", "exit 127", "kill -9 $$", "sleep 600"];
    let ends: Vec<String> = ends.map(end).into();
    insta::assert_snapshot!(ends.join("\n"));
}

#[test]
fn the_tail_of_standard_error_is_the_message() {
    let data = answered(&[], "i=0; while [ $i -lt 999 ]; do printf 'grüße %s\\n' $i >&2; i=$((i+1)); done; exit 1");
    let message = data["message"].as_str().unwrap();
    assert!(message.len() <= 1024 && message.len() > 1000, "{}", message.len());
    assert!(message.ends_with("grüße 998"), "{message}");
}

#[test]
fn a_signal_lets_what_runs_finish_and_takes_nothing_new() {
    let api = Api::start();
    api.world().open.push(trigger("test", "t-1"));
    let gate = Gate::closed();
    let mut executor = start(&api, &[], &format!("{}; echo done >&2", gate.script()));
    api.wait("started", |world| !of(world, "started").is_empty());
    api.world().open.push(trigger("test", "t-2"));
    executor.signal("TERM");
    executor.wait_for("stopping: 1 still running");
    gate.open();
    assert_eq!(executor.ended(), 0);
    let world = api.world();
    assert_eq!((of(&world, "started").len(), of(&world, "finished").len()), (1, 1));
    assert_eq!(of(&world, "finished")[0]["data"]["message"], "done");
}

#[test]
fn a_second_signal_kills_without_an_answer() {
    let api = Api::start();
    api.world().open.push(trigger("test", "t-1"));
    let gate = Gate::closed();
    let mut executor = start(&api, &[], &gate.script());
    api.wait("started", |world| !of(world, "started").is_empty());
    executor.signal("INT");
    executor.wait_for("a second signal kills");
    assert!(executor.is_running());
    executor.signal("INT");
    assert_eq!(executor.ended(), 1);
    assert!(of(&api.world(), "finished").is_empty());
}

#[test]
fn an_idle_executor_stops_at_once() {
    let api = Api::start();
    // It would look again in an hour.
    let mut executor = start(&api, &["--poll", "1h"], "true");
    api.wait("asked", |world| !world.asked.is_empty());
    executor.signal("TERM");
    assert_eq!(executor.ended(), 0);
}

#[test]
fn what_a_crash_left_is_run_again_under_the_same_ids() {
    let api = Api::start();
    api.world().open.push(trigger("test", "t-1"));
    let gate = Gate::closed();
    let mut first = start(&api, &[], &gate.script());
    api.wait("started", |world| !of(world, "started").is_empty());
    first.kill();
    let _second = start(&api, &[], "echo attempt $KEELWAY_ATTEMPT >&2");
    api.wait("finished", |world| !of(world, "finished").is_empty());
    let world = api.world();
    assert_eq!(of(&world, "finished")[0]["data"]["message"], "attempt 2");
    assert_eq!(of(&world, "started").len(), 1);
}

#[test]
fn replicas_share_the_work_and_count_once() {
    let api = Api::start();
    let replicas = [start(&api, &[], "sleep 0.2; echo {}"), start(&api, &[], "sleep 0.2; echo {}")];
    api.wait("both ask", |world| world.asked.len() > 6);
    for n in 0..6 {
        api.world().open.push(trigger("test", &format!("t-{n}")));
    }
    api.wait("all finished", |world| of(world, "finished").len() == 6);
    for mut replica in replicas {
        replica.signal("TERM");
        assert_eq!(replica.ended(), 0, "it has finished what it had begun");
    }
    let world = api.world();
    // The API keeps each source and id once: what two replicas tell is the same event.
    assert_eq!((of(&world, "started").len(), of(&world, "finished").len()), (6, 6));
}

#[test]
fn the_same_name_and_trigger_give_the_same_ids_in_every_process() {
    let ids = || {
        let api = Api::start();
        api.world().open.push(trigger("test", "t-1"));
        let _executor = start(&api, &[], "true");
        api.wait("finished", |world| !of(world, "finished").is_empty());
        api.world().events.iter().map(|event| event["id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(), ids());
}

#[test]
fn what_is_answered_already_is_not_run() {
    let api = Api::start();
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("ran");
    api.world().open.push(trigger("test", "t-1"));
    let script = format!("echo ran >> {}", mark.display());
    let mut first = start(&api, &[], &script);
    api.wait("finished", |world| !of(world, "finished").is_empty());
    first.signal("TERM");
    first.ended();
    start(&api, &[], &script).wait_for("answered already");
    assert_eq!(std::fs::read_to_string(&mark).unwrap(), "ran\n");
}

#[test]
fn an_api_that_fails_for_a_while_loses_nothing() {
    let api = Api::start();
    let busy = json!({"title": "busy", "status": 503});
    api.world().faults.extend([(503, busy.clone()), (500, busy)]);
    api.world().open.push(trigger("test", "t-1"));
    let _executor = start(&api, &[], "true");
    api.wait("finished", |world| !of(world, "finished").is_empty());
    assert_eq!(of(&api.world(), "started").len(), 1);
}

#[test]
fn a_start_that_is_refused_is_given_up() {
    let api = Api::start();
    api.world().faults.push_back((400, json!({"title": "bad", "status": 400, "detail": "data.stage: unknown"})));
    api.world().open.push(trigger("test", "t-1"));
    let mut executor = start(&api, &[], "true");
    api.wait("a few polls", |world| world.asked.len() > 10);
    executor.signal("TERM");
    assert_eq!(executor.ended(), 0);
    assert!(api.world().events.is_empty());
}

#[test]
fn an_answer_that_is_refused_ends_the_task_as_errored() {
    let api = Api::start();
    api.world().open.push(trigger("test", "t-1"));
    let gate = Gate::closed();
    let _executor = start(&api, &[], &format!("{}; echo '{{\"x\": 1}}'", gate.script()));
    api.wait("started", |world| !of(world, "started").is_empty());
    api.world().faults.push_back((413, json!({"title": "too large", "status": 413, "detail": "the event has 300 KB"})));
    gate.open();
    api.wait("finished", |world| !of(world, "finished").is_empty());
    let world = api.world();
    let data = &of(&world, "finished")[0]["data"];
    assert_eq!((&data["status"], &data["result"], &data["test"]), (&json!("errored"), &json!("fail"), &Value::Null));
    assert_eq!(data["message"], "the executor's answer was refused: too large: the event has 300 KB");
}

#[test]
fn output_that_is_nearly_json_is_told_in_the_log_and_in_the_answer() {
    let api = Api::start();
    api.world().open.push(trigger("test", "t-1"));
    let executor = start(&api, &[], "echo deploying; echo '{\"score\": 7}'; echo fine >&2");
    let warning = "standard output is not used as data: there is text before the JSON object: write messages to standard error";
    executor.wait_for(&format!("warning: {warning}"));
    api.wait("finished", |world| !of(world, "finished").is_empty());
    let data = of(&api.world(), "finished")[0]["data"].clone();
    assert_eq!((&data["message"], &data["test"]), (&json!(format!("{warning}: fine")), &Value::Null));
    assert_eq!(data["result"], "pass");
}

#[test]
fn a_wrong_token_ends_it() {
    let api = Api::start();
    let mut command = api.keelway(&["executor", "--name", "n", "--on", "test", "--", "true"]);
    assert_eq!(Running::start(command.env("KEELWAY_TOKEN", "wrong").stderr(Stdio::null())).ended(), 1);
}

/// The lines of curl in `docs/executors.md`, run as they stand there.
#[test]
fn the_documented_lines_of_curl_answer_a_task() {
    let has = |tool: &str| std::process::Command::new(tool).arg("--version").output().is_ok();
    if !has("curl") || !has("jq") {
        eprintln!("not run: needs curl and jq");
        return;
    }
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/executors.md")).unwrap();
    let script = page.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let api = Api::start();
    api.world().open.push(trigger("test", "t-1"));
    let mut shell = std::process::Command::new("sh");
    shell
        .args(["-c", script])
        .env("KEELWAY_API", &api.url)
        .env("KEELWAY_TOKEN", crate::support::TOKEN)
        .env("NO_PROXY", "127.0.0.1");
    let done = shell.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let world = api.world();
    assert_eq!((of(&world, "started").len(), of(&world, "finished").len()), (1, 1));
    let finished = of(&world, "finished")[0];
    assert_eq!((&finished["triggeredid"], &finished["data"]["test"]["answer"]), (&json!("t-1"), &json!(42)));
}
