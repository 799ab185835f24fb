//! What a person sees: on terminals of 80, 100 and 160 columns, in colour and without, in ASCII, in a pipe.

use crate::support::screen::Screen;
use crate::support::{Api, NOW, Ran};
use serde_json::{Value, json};

const CARTS: &str = "139a703f-1f7e-5abc-8123-5d2a5ef11ecf";
const OLD: &str = "7500af7d-0a6c-5d7a-9a63-2d5a0c6de5b1";
const NEW: &str = "c5cbb91e-77aa-5d0f-8c52-7c8a0f5b1a02";

/// Seconds after eight, as the API writes it.
fn at(second: u32) -> String {
    format!("2026-11-21T08:00:{second:02}.000Z")
}

fn passed(stage: &str, from: u32, to: u32, image: &str) -> Value {
    json!({
        "id": stage, "stage": stage, "sequence": "delivery", "state": "finished", "phase": "ended", "result": "pass", "status": "succeeded",
        "image": image, "acceptedAt": at(from), "deliveryAcceptedAt": at(0), "startedAt": at(from), "finishedAt": at(to),
        "tasks": [{"name": "deployment", "state": "finished", "result": "pass"}]
    })
}

fn waiting(stage: &str, image: &str, state: &str, waits: Value) -> Value {
    json!({
        "id": "open", "stage": stage, "sequence": "delivery", "state": state, "image": image, "acceptedAt": at(11),
        "deliveryAcceptedAt": at(0), "tasks": [], "waits": waits
    })
}

fn context(name: &str, service: &str, state: &str, executions: &[Value]) -> Value {
    json!({
        "name": "delivery", "service": service, "project": "shop", "time": at(0), "shkeptncontext": name, "state": state,
        "executions": executions
    })
}

fn carts(waits: Value, state: &str) -> Value {
    let image = "registry.example/shop/carts:1.4.0";
    let open = waiting("production", image, state, waits);
    context(CARTS, "carts", state, &[passed("dev", 1, 5, image), passed("staging", 5, 12, image), open])
}

fn approval() -> Value {
    json!({"reason": "approval", "since": at(30), "task": "approval", "type": "sh.keptn.event.approval.triggered", "id": "a-1"})
}

fn failed() -> Value {
    let image = "registry.example/shop/payments:2.0.0";
    let mut staging = passed("staging", 7, 16, image);
    staging["result"] = json!("fail");
    staging["message"] = json!("p95 431 > 300");
    staging["tasks"] =
        json!([{"name": "deployment", "result": "pass"}, {"name": "evaluation", "state": "finished", "result": "fail"}]);
    let mut rollback = passed("staging", 16, 17, image);
    rollback["sequence"] = json!("rollback");
    let mut all = context(OLD, "payments", "finished", &[passed("dev", 1, 7, image), staging, rollback]);
    let after = json!({"stage": "staging", "sequence": "delivery", "result": "fail"});
    all["notReached"] = json!([{"stage": "production", "sequence": "delivery", "after": after}]);
    all
}

fn behind() -> Value {
    let image = "registry.example/shop/payments:2.0.1";
    let ahead = json!({"shkeptncontext": OLD, "service": "payments", "sequence": "delivery", "image": "shop/payments:2.0.0"});
    let waits = json!({"reason": "lane", "since": at(12), "task": "deployment", "behind": ahead});
    context(NEW, "payments", "waiting", &[passed("dev", 7, 12, image), waiting("staging", image, "waiting", waits)])
}

fn shop() -> Api {
    let api = Api::start();
    show(&api, &[carts(approval(), "waitingForApproval"), failed(), behind()]);
    api
}

fn show(api: &Api, states: &[Value]) {
    api.can("GET /v1/sequence/shop", json!({"states": states, "nextPageKey": 0, "now": NOW}));
}

/// The widest line.
fn widest(shown: &str) -> usize {
    shown.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

#[test]
fn deliveries_on_terminals_of_every_size() {
    let api = shop();
    let mut all = vec![];
    for width in [160, 100, 80, 60] {
        let (code, seen) = Screen::start(&mut api.keelway(&["get", "sequences", "-p", "shop"]), width, 24).ended();
        assert_eq!((code, widest(&seen) <= width), (0, true), "{seen}");
        all.push(format!("{width} columns\n{seen}"));
    }
    let ascii = Screen::start(&mut api.keelway(&["get", "sequences", "-p", "shop", "--ascii"]), 100, 24).ended().1;
    assert!(ascii.is_ascii(), "{ascii}");
    all.push(format!("100 columns, --ascii\n{ascii}"));
    insta::assert_snapshot!(all.join("\n\n"));
}

#[test]
fn every_wait_says_for_what_since_when_and_what_would_help() {
    let api = Api::start();
    let waits = [
        json!({"reason": "executor", "since": at(20), "until": "2026-11-21T08:10:20.000Z", "task": "deployment"}),
        json!({"reason": "executor", "since": at(41), "until": "2026-11-21T08:10:41.000Z", "task": "deployment"}),
        json!({"reason": "answer", "since": at(39), "task": "deployment", "by": "deployer"}),
        json!({"reason": "answer", "since": "2026-11-21T06:40:42.000Z", "until": "2026-11-22T06:40:42.000Z", "task": "test", "by": "tst"}),
        json!({"reason": "answer", "since": at(0), "heard": at(30), "expected": at(36), "task": "test", "by": "tst"}),
        json!({"reason": "answer", "since": "2026-11-21T06:40:42.000Z", "heard": at(30), "expected": "2026-11-21T08:06:30.000Z", "task": "test", "by": "tst"}),
        json!({"reason": "answer", "since": at(0), "queued": true, "task": "test", "by": "tst"}),
        json!({"reason": "delay", "since": at(30), "until": "2026-11-21T08:02:42.000Z", "task": "release"}),
        json!({"reason": "resume", "since": at(30), "task": "release"}),
        json!({"reason": "lane", "since": at(30), "task": "release"}),
        json!({"reason": "window", "since": at(30), "until": "2026-11-21T10:00:00.000Z", "window": "quarter end"}),
        approval(),
        json!({"reason": "executor", "since": at(30), "until": "2026-11-21T08:02:42.000Z", "task": "deployment", "answeredBy": "ci"}),
    ];
    let mut states: Vec<Value> = waits.into_iter().map(|waits| carts(waits, "started")).collect();
    for (n, state) in states.iter_mut().enumerate() {
        state["shkeptncontext"] = json!(format!("{n:x}00af7d0-0000"));
    }
    show(&api, &states);
    let seen = Screen::start(&mut api.keelway(&["get", "sequences", "-p", "shop"]), 130, 40).ended().1;
    insta::assert_snapshot!(seen);
}

#[test]
fn every_end_says_why() {
    let api = Api::start();
    let image = "carts:1";
    let end = |n: usize, change: Value| {
        let mut execution = passed("dev", 1, 8, image);
        execution.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        context(&format!("{n}00af7d0-0000"), "carts", "finished", &[execution])
    };
    let mut warned = end(0, json!({"result": "warning", "message": "slow", "tasks": [{"name": "test", "result": "warning"}]}));
    let after = json!({"stage": "dev", "sequence": "delivery", "result": "warning"});
    warned["notReached"] = json!([{"stage": "prod", "sequence": "delivery", "after": after}]);
    let declined = json!([{"name": "approval", "result": "fail", "state": "finished", "by": "ann"}]);
    // The stage was reached, and one of its sequences was not.
    let mut canary = end(8, json!({"result": "fail", "message": "p95", "tasks": [{"name": "evaluation", "result": "fail"}]}));
    let after = json!({"stage": "dev", "sequence": "delivery", "result": "fail"});
    canary["notReached"] = json!([{"stage": "dev", "sequence": "canaryphase1", "after": after}]);
    let states = [
        canary,
        warned,
        end(1, json!({"result": "fail", "message": "too early", "tasks": declined})),
        end(2, json!({"result": "fail", "state": "timedOut", "tasks": [{"name": "test", "state": "timedOut"}]})),
        end(
            3,
            json!({"result": "fail", "state": "timedOut", "tasks": [{"name": "test", "state": "timedOut", "startedAt": at(2)}]}),
        ),
        end(4, json!({"result": "fail", "state": "aborted"})),
        end(5, json!({"result": "fail", "message": "at task test the event would have 300000 bytes", "tasks": []})),
        context("600af7d0-0000", "carts", "triggered", &[]),
        end(
            7,
            json!({
                "result": "fail", "state": "aborted", "message": "the sequence was aborted",
                "tasks": [{"name": "deployment", "state": "aborted", "mayRun": 1}],
            }),
        ),
    ];
    show(&api, &states);
    let seen = Screen::start(&mut api.keelway(&["get", "sequences", "-p", "shop"]), 100, 40).ended().1;
    insta::assert_snapshot!(seen);
}

#[test]
fn an_end_is_told_in_the_words_of_the_api() {
    let late = |message: &str| json!({"state": "timedOut", "message": message, "tasks": [{"name": "nap", "state": "timedOut"}]});
    let aborted = |message: &str| json!({"state": "aborted", "message": message, "tasks": []});
    let declined = json!([{"name": "approval", "result": "fail", "state": "finished", "by": "the clock"}]);
    let superseded = "superseded: a newer slow of carts waits for dev (context 139a703f)";
    let nobody = "sequence timed out while waiting for task sh.keptn.event.nap.triggered to receive a correlating .started or \
                  .finished event";
    for (change, told) in [
        (late("sequence timed out: it was not done within 4s"), "sequence timed out: it was not done within 4s"),
        (late(nobody), "nap: no executor in time"),
        (late(""), "nap: no executor in time"),
        (aborted(superseded), superseded),
        (aborted(""), "aborted"),
        (
            json!({"message": "declined by the clock: nobody decided within 3s", "tasks": declined}),
            "declined by the clock: nobody decided within 3s",
        ),
    ] {
        let api = Api::start();
        let mut execution = passed("dev", 1, 8, "carts:1");
        execution["result"] = json!("fail");
        execution.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        show(&api, &[context(CARTS, "carts", "finished", &[execution])]);
        let line = format!("carts  1  139a703f  dev ✗ {told}\n");
        assert_eq!(api.run(&["get", "sequences", "-p", "shop"]).out, line);
        let watched = api.run(&["watch", CARTS, "-p", "shop"]).out;
        assert!(watched.starts_with(&line), "{watched}");
    }
}

#[test]
fn colour_where_it_is_wanted() {
    let api = shop();
    let words = ["get", "sequences", "-p", "shop"];
    let colourful = |ran: &str| ran.contains("\u{1b}[32m✓ 4s\u{1b}[0m");
    let mut command = api.keelway(&words);
    let screen = Screen::start(&mut command, 100, 24);
    let raw = screen.written();
    screen.ended();
    assert!(colourful(&String::from_utf8_lossy(&raw.lock().unwrap())));
    assert!(!colourful(&api.run(&words).out), "not in a pipe");
    assert!(colourful(&api.run(&[&words[..], &["--color", "always"]].concat()).out));
    let mut plain = api.keelway(&[&words[..], &["--color=never"]].concat());
    let screen = Screen::start(&mut plain, 100, 24);
    let raw = screen.written();
    screen.ended();
    assert!(!String::from_utf8_lossy(&raw.lock().unwrap()).contains('\u{1b}'));
    let quiet = Ran::of(api.keelway(&words).env("NO_COLOR", "1").output().unwrap());
    assert!(!quiet.out.contains('\u{1b}'));
}

#[test]
fn a_watch_draws_its_lines_again_in_their_place() {
    let api = shop();
    let screen = Screen::start(&mut api.keelway(&["watch", "139a703f", "7500af7d", "c5cbb91e"]), 100, 24);
    screen.wait_for("→ keelway approve 139a703f");
    let asked = api.lines();
    assert_eq!(asked.iter().filter(|line| line.starts_with("GET /v1/project?")).count(), 1, "however many contexts: {asked:?}");
    // It goes on: the question goes away, the line changes in its place.
    let image = "registry.example/shop/payments:2.0.1";
    let done = context(CARTS, "carts", "finished", &[passed("dev", 1, 5, "carts:1.4.0"), passed("staging", 5, 12, "carts:1.4.0")]);
    let next = context(NEW, "payments", "finished", &[passed("dev", 7, 12, image), passed("staging", 17, 25, image)]);
    show(&api, &[done, failed(), next]);
    let (code, seen) = screen.ended();
    assert_eq!(code, 0);
    insta::assert_snapshot!(seen);
}

#[test]
fn a_watch_in_a_pipe_prints_what_changes() {
    let api = shop();
    let mut running = crate::support::Running::start(&mut api.keelway(&["watch", "139a703f", "c5cbb91e", "--project", "shop"]));
    running.wait_for("→ keelway approve 139a703f");
    api.wait_for_more("GET /v1/sequence/shop", 3);
    let image = "registry.example/shop/payments:2.0.1";
    let done = context(CARTS, "carts", "finished", &[passed("dev", 1, 5, "carts:1.4.0"), passed("staging", 5, 12, "carts:1.4.0")]);
    let next = context(NEW, "payments", "finished", &[passed("dev", 7, 12, image), passed("staging", 17, 25, image)]);
    show(&api, &[done, next]);
    assert_eq!(running.ended(), 0);
    insta::assert_snapshot!(running.printed());
}

/// What goes on in the project, by the API.
fn open(api: &Api, contexts: &[&str]) {
    let all: Vec<Value> =
        contexts.iter().map(|context| json!({"project": "shop", "shkeptncontext": context, "state": "started"})).collect();
    api.can("GET /v1/sequence-execution", json!({"sequenceExecutions": all, "nextPageKey": 0, "now": NOW}));
}

#[test]
fn without_a_context_a_watch_shows_what_goes_on_in_the_project() {
    let api = shop();
    open(&api, &[CARTS, NEW, CARTS]);
    let mut running = crate::support::Running::start(&mut api.keelway(&["watch", "-p", "shop"]));
    running.wait_for("→ keelway approve 139a703f");
    let asked = api.lines();
    assert!(asked.iter().any(|line| line.contains("open=true") && line.contains("project=shop")), "{asked:?}");
    assert!(asked.iter().any(|line| line.contains(&format!("{CARTS}%2C{NEW}"))), "each is asked for once: {asked:?}");
    let image = "registry.example/shop/payments:2.0.1";
    let done = context(CARTS, "carts", "finished", &[passed("dev", 1, 5, "carts:1.4.0"), passed("staging", 5, 12, "carts:1.4.0")]);
    let next = context(NEW, "payments", "finished", &[passed("dev", 7, 12, image), passed("staging", 17, 25, image)]);
    show(&api, &[done, failed(), next]);
    open(&api, &[]);
    assert_eq!(running.ended(), 0);
    assert!(!running.printed().contains("7500af7d"), "that was over: {}", running.printed());
}

#[test]
fn what_begins_later_joins_a_watch_that_follows() {
    let api = shop();
    open(&api, &[CARTS]);
    let mut running = crate::support::Running::start(&mut api.keelway(&["watch", "-p", "shop", "--follow"]));
    running.wait_for("139a703f");
    assert!(!running.printed().contains("c5cbb91e"), "{}", running.printed());
    open(&api, &[CARTS, NEW]);
    running.wait_for("c5cbb91e");
    running.signal("INT");
    assert_eq!(running.ended(), 130);
}

#[test]
fn what_is_over_makes_room_in_a_watch_that_follows() {
    let api = shop();
    let many: Vec<String> = (0..100).map(|n| format!("{n:08}-cedc-483a-8f5f-3a4f2b0f6a51")).collect();
    let states: Vec<Value> = many.iter().map(|one| context(one, "carts", "finished", &[passed("dev", 1, 5, "carts:1")])).collect();
    show(&api, &states);
    open(&api, &many.iter().map(String::as_str).collect::<Vec<_>>());
    let running = crate::support::Running::start(&mut api.keelway(&["watch", "-p", "shop", "--follow"]));
    running.wait_for("00000099");
    show(&api, &[behind()]);
    open(&api, &[NEW]);
    running.wait_for("c5cbb91e");
}

#[test]
fn where_nothing_goes_on_a_watch_says_so() {
    let api = shop();
    open(&api, &[]);
    let ran = api.run(&["watch", "-p", "shop"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{ran:?}");
    assert_eq!(ran.err, "nothing goes on in project shop: keelway get sequences -p shop lists what there was\n");
}

#[test]
fn a_stage_that_was_not_reached_counts() {
    let api = Api::start();
    let mut warned = context(CARTS, "carts", "finished", &[passed("dev", 1, 5, "carts:1")]);
    warned["executions"][0]["result"] = json!("warning");
    show(&api, std::slice::from_ref(&warned));
    let words = ["watch", CARTS, "--project", "shop", "--exit-code"];
    assert_eq!(api.run(&words).code, 0, "a warning at the end of the road is fine");
    let after = json!({"stage": "dev", "sequence": "delivery", "result": "warning"});
    warned["notReached"] = json!([{"stage": "prod", "sequence": "delivery", "after": after}]);
    show(&api, &[warned]);
    let ran = api.run(&words);
    assert_eq!((ran.code, ran.out.contains("prod - not reached: dev ended with warning")), (1, true), "{ran:?}");
}

#[test]
fn environments_at_a_glance() {
    let api = Api::start();
    let image = "registry.example/shop/carts:1.4.0";
    let last = |result: &str| json!({"sequence": "delivery", "shkeptncontext": CARTS, "result": result, "status": "succeeded", "finishedAt": at(12)});
    let coming = waiting("production", image, "waitingForApproval", approval());
    let environments = json!([
        {"stage": "dev", "service": "carts", "image": image, "since": at(5), "shkeptncontext": CARTS, "deliveryAcceptedAt": at(0), "last": last("pass"), "coming": []},
        {"stage": "production", "service": "carts", "image": "registry.example/shop/carts:1.3.0", "since": "2026-11-18T08:00:00.000Z", "shkeptncontext": OLD, "deliveryAcceptedAt": "2026-11-18T07:00:00.000Z", "last": last("warning"), "coming": [coming]},
        {"stage": "staging", "service": "payments", "since": at(17), "shkeptncontext": OLD, "deliveryAcceptedAt": at(0), "last": last("fail"), "coming": []},
    ]);
    api.can("GET /v1/project/shop/environment", json!({"items": environments, "nextPageKey": "0", "now": NOW}));
    let mut all = vec![];
    for width in [100, 80] {
        let (code, seen) = Screen::start(&mut api.keelway(&["get", "environments"]), width, 24).ended();
        assert_eq!((code, widest(&seen) <= width), (0, true), "{seen}");
        all.push(format!("{width} columns\n{seen}"));
    }
    all.push(format!("-o wide, in a pipe\n{}", api.run(&["get", "environments", "-p", "shop", "-o", "wide"]).out));
    insta::assert_snapshot!(all.join("\n\n"));
}

#[test]
fn short_ids_are_taken_and_ambiguous_ones_are_not() {
    let api = shop();
    api.can(&format!("POST /v1/sequence/shop/{NEW}/control"), json!({}));
    assert_eq!(api.run(&["pause", "c5cbb91e"]).code, 0);
    api.can("GET /v1/event", json!({"events": [], "nextPageKey": "0"}));
    assert_eq!(api.run(&["get", "events", "c5cbb91e"]).code, 0);
    let asked = api.lines();
    assert!(asked.iter().any(|line| line == &format!("GET /v1/event?keptnContext={NEW}&project=shop&pageSize=100")), "{asked:?}");
    // Executions are those of a project, which is searched for, also for a context in full.
    api.can("GET /v1/sequence-execution", json!({"sequenceExecutions": [], "nextPageKey": 0}));
    for given in ["c5cbb91e", NEW] {
        assert_eq!(api.run(&["get", "executions", given]).code, 0, "{given}");
        let line = api.lines().pop().unwrap();
        assert!(line.contains("project=shop") && line.contains(&format!("keptnContext={NEW}")), "{line}");
    }
    let unknown = api.run(&["get", "executions", "00000000-0000-4000-8000-000000000000"]);
    assert_eq!((unknown.code, unknown.err.contains("no context is, or begins with,")), (1, true), "{}", unknown.err);
    let twin = "c5cbb91e-9999-5d0f-8c52-7c8a0f5b1a02";
    show(&api, &[behind(), context(twin, "orders", "finished", &[passed("dev", 1, 2, "orders:3")])]);
    let ran = api.run(&["watch", "c5cbb91e"]);
    assert_eq!(ran.code, 1);
    insta::assert_snapshot!(ran.err);
    let unknown = api.run(&["abort", "ffffffff"]);
    assert_eq!((unknown.code, unknown.err.contains("no context is, or begins with, ffffffff")), (1, true), "{}", unknown.err);
}
