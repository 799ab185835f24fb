//! `keelway status`: what needs somebody, what is stuck and what waits, in all engines.

use crate::support::screen::Screen;
use crate::support::{Api, NOW};
use serde_json::{Value, json};

const CARTS: &str = "139a703f-1f7e-5abc-8123-5d2a5ef11ecf";
const MAIL: &str = "7500af7d-0a6c-5d7a-9a63-2d5a0c6de5b1";

/// An item of project `shop`, which began so many seconds after eight.
fn item((group, engine, reason): (&str, &str, &str), second: u32, more: Value) -> Value {
    let since = format!("2026-11-21T08:00:{second:02}.000Z");
    let mut item = json!({"group": group, "engine": engine, "reason": reason, "project": "shop", "since": since});
    item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    item
}

fn of_sequence(service: &str, stage: &str, context: &str, more: Value) -> Value {
    let mut all = json!({"service": service, "stage": stage, "shkeptncontext": context, "sequence": "delivery"});
    all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    all
}

fn everything() -> Vec<Value> {
    let person = |engine, reason| ("person", engine, reason);
    let failing = |engine, reason| ("failing", engine, reason);
    let waiting = |engine, reason| ("waiting", engine, reason);
    vec![
        item(
            person("sequence", "approval"),
            2,
            of_sequence("carts", "production", CARTS, json!({"id": "a-1", "version": "r/carts:1.4.0", "from": "r/carts:1.3.2"})),
        ),
        item(person("sequence", "resume"), 4, of_sequence("mail", "dev", MAIL, json!({"version": "mail:7"}))),
        item(
            person("pipeline", "ApprovalNeeded"),
            10,
            json!({"name": "podinfo", "environment": "staging", "version": "6.6.0", "from": "6.5.4",
                "approval": {"revision": "6.6.0", "given": 1, "needed": 2}}),
        ),
        item(
            person("pipeline", "PullRequestOpen"),
            11,
            json!({"name": "api", "environment": "prod", "version": "2.1", "message": "pull request 7 is open", "url": "https://git.test/o/r/pulls/7"}),
        ),
        item(
            person("deployment", "Held"),
            12,
            json!({"name": "greeter", "number": 4, "version": "greeter:4", "message": "20 % of the requests"}),
        ),
        item(person("deployment", "TriggersSuspended"), 13, json!({"name": "web", "by": "ann", "message": "night"})),
        item(
            failing("sequence", "executor"),
            20,
            of_sequence(
                "web",
                "dev",
                "c5cbb91e-77aa-5d0f-8c52-7c8a0f5b1a02",
                json!({"task": "test", "until": "2026-11-21T08:10:20.000Z", "version": "web:2"}),
            ),
        ),
        item(
            failing("sequence", "answer"),
            20,
            of_sequence(
                "api",
                "dev",
                "c6000000-77aa-5d0f-8c52-7c8a0f5b1a02",
                json!({"task": "test", "by": "tst", "heard": "2026-11-21T07:52:00.000Z", "version": "api:2"}),
            ),
        ),
        item(failing("deployment", "Unclaimed"), 21, json!({"name": "cart", "number": 1, "until": "2026-11-21T08:10:21.000Z"})),
        item(failing("deployment", "DeployerFailed"), 22, json!({"name": "idle", "number": 3, "message": "exit code 1"})),
        item(failing("webhook", "gone"), 23, json!({"name": "slack", "message": "the receiver answered 410 Gone"})),
        item(
            failing("message", "deadLetter"),
            24,
            json!({"project": "", "name": "1795222266686-059f36b4", "message": "access denied"}),
        ),
        item(
            waiting("sequence", "lane"),
            30,
            of_sequence(
                "web",
                "dev",
                "d0000000-77aa-5d0f-8c52-7c8a0f5b1a02",
                json!({"version": "web:3", "behind": {"shkeptncontext": "c", "service": "web",
                "sequence": "delivery", "image": "web:2"}}),
            ),
        ),
        item(
            waiting("sequence", "answer"),
            30,
            of_sequence(
                "api",
                "dev",
                "d1000000-77aa-5d0f-8c52-7c8a0f5b1a02",
                json!({"task": "test", "by": "tst", "queued": true, "version": "api:3"}),
            ),
        ),
        item(
            waiting("sequence", "window"),
            31,
            of_sequence(
                "cart",
                "late",
                "e0000000-77aa-5d0f-8c52-7c8a0f5b1a02",
                json!({"until": "2026-11-21T10:00:42.000Z", "window": "quarter end"}),
            ),
        ),
        item(
            waiting("pipeline", "Soaking"),
            32,
            json!({"name": "docs", "environment": "prod", "version": "9", "message": "9 soaks in staging",
            "until": "2026-11-21T09:00:42.000Z"}),
        ),
    ]
}

#[test]
fn what_waits_for_a_deployer_to_stop_says_when_it_was_last_heard_of() {
    let api = Api::start();
    let message = "the next version waits until the one that runs has ended";
    let about = json!({
        "name": "carts", "number": 4, "version": "carts:4", "message": message, "by": "ci", "heard": "2026-11-21T08:00:30.000Z"
    });
    show(&api, &[item(("waiting", "deployment", "AwaitingCancellation"), 33, about)], &[]);
    let told = api.run(&["status"]).out;
    assert!(told.contains(&format!("{message}, last heard from ci 12s ago")), "{told}");
}

fn answer(items: &[Value], cut: &[&str]) -> Value {
    json!({"items": items, "cut": cut, "now": NOW, "nextPageKey": "0", "pageSize": 100, "totalCount": items.len()})
}

fn show(api: &Api, items: &[Value], cut: &[&str]) {
    api.can("GET /v1/wait", answer(items, cut));
}

#[test]
fn what_waits_on_terminals_of_two_sizes_and_in_a_pipe() {
    let api = Api::start();
    show(&api, &everything(), &["pipelines"]);
    let mut all = vec![];
    for width in [100, 80] {
        let (code, seen) = Screen::start(&mut api.keelway(&["status"]), width, 60).ended();
        assert_eq!(code, 0, "{seen}");
        all.push(format!("{width} columns\n{seen}"));
    }
    all.push(format!("in a pipe, --ascii\n{}", api.run(&["status", "--ascii"]).out));
    insta::assert_snapshot!(all.join("\n\n"));
}

#[test]
fn the_exit_code_says_whether_something_waits_if_it_is_asked_for() {
    let api = Api::start();
    show(&api, &everything(), &[]);
    assert_eq!(api.run(&["status"]).code, 0);
    assert_eq!(api.run(&["status", "--exit-code"]).code, 1);
    show(&api, &[], &[]);
    let none = api.run(&["status", "-p", "shop", "--exit-code"]);
    assert_eq!((none.code, none.out.as_str()), (0, "nothing waits in project shop\n"));
    let all = api.run(&["status", "-p", "shop", "-A"]);
    assert_eq!((all.code, all.out.as_str()), (0, "nothing waits\n"));
    let asked: Vec<String> = api.lines().into_iter().rev().take(2).collect();
    assert!(asked[1].contains("project=shop") && !asked[0].contains("project=shop"), "{asked:?}");
}

#[test]
fn programs_get_the_items() {
    let api = Api::start();
    show(&api, &everything()[..1], &[]);
    let ran = api.run(&["status", "-o", "json"]);
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&told["items"][0]["reason"], &told["items"][0]["from"]), (&json!("approval"), &json!("r/carts:1.3.2")));
    assert_eq!((&told["now"], &told["cut"]), (&json!(NOW), &json!([])));
}

#[test]
fn a_watch_ends_when_nothing_waits() {
    let api = Api::start();
    show(&api, &everything()[..1], &[]);
    let mut watch = crate::support::Running::start(&mut api.keelway(&["status", "--watch"]));
    watch.wait_for("keelway approve 139a703f -p shop");
    show(&api, &[], &[]);
    watch.wait_for("nothing waits");
    assert_eq!(watch.ended(), 0);
    show(&api, &everything()[..1], &[]);
    let late = api.run(&["status", "--watch", "--timeout", "1s"]);
    assert_eq!((late.code, late.err.contains("something still waits after 1s")), (1, true), "{late:?}");
}

#[test]
fn approvals_say_what_runs_where_they_go() {
    let api = Api::start();
    let approval = |context: &str, from: Value| {
        json!({
            "specversion": "1.0", "type": "sh.keptn.event.approval.triggered", "id": context, "time": "2026-11-21T08:00:02.000Z", "shkeptncontext": context, "from": from,
            "data": {"project": "shop", "stage": "production", "service": "carts", "configurationChange": {"values": {"image": "r/carts:1.4.0"}}}
        })
    };
    api.world().open = vec![approval(CARTS, json!("r/carts:1.3.2")), approval(MAIL, json!("r/carts:1.4.0"))];
    api.can("GET /v1/pipelines", json!({"items": [], "nextPageKey": "0"}));
    let listed = api.run(&["get", "approvals"]);
    let lines: Vec<Vec<&str>> = listed.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0][..4], ["CONTEXT", "SERVICE", "VERSION", "RUNS"], "{listed:?}");
    assert_eq!((lines[1][..4].to_vec(), lines[2][3]), (vec!["139a703f", "carts", "1.4.0", "1.3.2"], "1.4.0"));
    // What is there already is approved in its stage.
    assert!(listed.err.contains("carts 1.4.0 to production") && listed.err.contains("carts 1.4.0 in production"), "{listed:?}");
}
