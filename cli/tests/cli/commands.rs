//! The commands against an API: what they send, what a person sees, the exit codes.

use crate::support::{Api, Ran, keelway, trigger, write};
use serde_json::{Value, json};
use std::process::{Command, Stdio};

const CONTEXT: &str = "0b9e7a44-1f7e-5abc-8123-5d2a5ef11ecf";

fn run(words: &[&str]) -> Ran {
    Ran::of(keelway(words).output().unwrap())
}

#[test]
fn what_is_missing_or_wrong_is_said_with_the_way_out() {
    let api = Api::start();
    let no_api = run(&["get", "projects"]);
    let no_token = run(&["--api", &api.url, "get", "projects"]);
    let wrong = run(&["--api", &api.url, "--token", "x", "get", "projects"]);
    let closed = run(&["--api", "http://127.0.0.1:1", "--token", "x", "get", "projects"]);
    let elsewhere = run(&["--api", &api.url.replace("abc", "def"), "--token", crate::support::TOKEN, "get", "projects"]);
    let all = [&no_api, &no_token, &wrong, &closed, &elsewhere].map(|ran| ran.shown(&[(&api.url, "<API>/")]));
    insta::assert_snapshot!(all.join("\n\n"));
}

#[test]
fn arguments_that_make_no_sense() {
    for words in [
        &["get"][..],
        &["get", "events"],
        &["get", "services", "--project", "No Good"],
        &["trigger", "sequence", "x", "--project", "shop", "--service", "carts"],
        &["trigger", "delivery", "--project", "shop", "--service", "carts", "--image", "i", "--labels", "novalue"],
        &["watch"],
        &["executor", "--name", "n", "--on", "approval", "--", "true"],
        &["executor", "--name", "shipyard-controller", "--on", "test", "--", "true"],
        &["executor", "--name", "Shipyard.Controller", "--on", "test", "--", "true"],
        &["executor", "--name", "n", "--on", "test"],
        &["executor", "--name", "n", "--on", "test", "--timeout", "soon", "--", "true"],
        &["shipyard", "validate"],
    ] {
        let ran = run(words);
        assert_eq!(ran.code, 2, "{words:?}: {}", ran.err);
        assert!(ran.out.is_empty() && ran.err.contains("error: ") || ran.err.contains("Usage"), "{words:?}: {}", ran.err);
    }
}

#[test]
fn scripts_get_the_context_and_nothing_else() {
    let api = Api::start();
    api.can("GET /v1/project/shop", json!({"projectName": "shop", "stages": [{"stageName": "dev", "services": []}]}));
    let ran = api.run(&["trigger", "delivery", "-p", "shop", "-s", "carts", "-i", "carts:1.2", "--quiet"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, format!("{CONTEXT}\n").as_str(), ""));
}

#[test]
fn a_delivery_starts_in_the_first_stage() {
    let api = Api::start();
    api.can(
        "GET /v1/project/shop",
        json!({"projectName": "shop", "stages": [{"stageName": "dev", "services": []}, {"stageName": "prod"}]}),
    );
    // The first attempt fails on the way: the second is the same event.
    api.world().faults.push_back((503, json!({"title": "busy", "status": 503})));
    let words = ["trigger", "delivery", "--project", "shop", "--service", "carts", "--image", "carts:1.2"];
    let ran = api.run(&[&words[..], &["--values", "replicas:=2,a.b=c", "--labels", "by=ada,x=y"]].concat());
    assert_eq!(ran.out, format!("delivery of carts is triggered in dev of shop: context {CONTEXT}\n"));
    let world = api.world();
    let posted: Vec<Value> = world
        .asked
        .iter()
        .filter(|asked| asked.line.starts_with("POST"))
        .map(|asked| serde_json::from_str(&asked.body).unwrap())
        .collect();
    assert_eq!(posted.len(), 2);
    assert_eq!(posted[0], posted[1]);
    assert_eq!(
        (&posted[0]["type"], &posted[0]["source"]),
        (&json!("sh.keptn.event.dev.delivery.triggered"), &json!("keelway-cli"))
    );
    let data = json!({
        "project": "shop", "stage": "dev", "service": "carts", "labels": {"by": "ada", "x": "y"},
        "configurationChange": {"values": {"image": "carts:1.2", "replicas": 2, "a": {"b": "c"}}}
    });
    assert_eq!(posted[0]["data"], data);
}

#[test]
fn any_sequence_with_data_and_the_apis_refusal() {
    let api = Api::start();
    let words = ["trigger", "sequence", "test", "--project", "shop", "--service", "carts", "--stage", "dev"];
    let ran = api.run(&[&words[..], &["--data", "test.kind=load,test.size=big", "-o", "json"]].concat());
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.code, &told["keptnContext"]), (0, &json!(CONTEXT)));
    assert_eq!(api.world().events[0]["data"]["test"], json!({"kind": "load", "size": "big"}));
    let twice = api.run(&[&words[..], &["--data", "stage=prod"]].concat());
    assert_eq!((twice.code, twice.err.contains("use --stage")), (2, true));
    let problem =
        json!({"title": "unknown sequence", "status": 404, "detail": "stage dev has no sequence \"test\": did you mean tests?"});
    api.world().faults.push_back((404, problem));
    let refused = api.run(&words);
    assert_eq!(refused.err, "error: unknown sequence: stage dev has no sequence \"test\": did you mean tests?\n");
}

pub fn happened(ty: &str, second: u32, context: &str, data: Value) -> Value {
    let mut all = json!({"project": "shop", "stage": "dev", "service": "carts"});
    all.as_object_mut().unwrap().extend(data.as_object().unwrap().clone());
    let id = format!("{context}-{ty}");
    json!({"id": id, "source": "x", "type": format!("sh.keptn.event.{ty}"), "time": format!("2026-11-21T08:00:{second:02}.000Z"), "shkeptncontext": context, "data": all})
}

pub fn state(context: &str, service: &str, result: &str) -> Value {
    json!({"name": "delivery", "service": service, "project": "shop", "shkeptncontext": context, "state": "finished", "executions": [
        {"id": context, "stage": "dev", "sequence": "delivery", "state": "finished", "result": result, "status": "succeeded", "tasks": [{"name": "deployment", "result": result, "state": "finished"}],
         "acceptedAt": "2026-11-21T08:00:00.000Z", "startedAt": "2026-11-21T08:00:01.000Z", "finishedAt": "2026-11-21T08:00:05.000Z"}]})
}

pub fn delivery(context: &str, result: &str) -> Vec<Value> {
    vec![
        happened("dev.delivery.triggered", 0, context, json!({})),
        happened("dev.delivery.started", 1, context, json!({})),
        happened("deployment.triggered", 1, context, json!({})),
        happened("deployment.finished", 4, context, json!({"result": result, "status": "succeeded", "message": "it runs"})),
        happened("dev.delivery.finished", 5, context, json!({"result": result, "status": "succeeded"})),
    ]
}

#[test]
fn a_watch_shows_every_event_once_and_the_end() {
    let api = Api::start();
    api.world().events = delivery("context-a", "pass");
    api.can("GET /v1/sequence/shop", json!({"states": [state("context-a", "carts", "pass")]}));
    let ran = api.run(&["watch", "context-a", "--exit-code", "--log"]);
    insta::assert_snapshot!(ran.shown(&[]));
}

#[test]
fn several_contexts_in_one_timeline_and_the_exit_code() {
    let api = Api::start();
    api.world().events = [delivery("context-a", "pass"), delivery("context-b", "fail")].concat();
    api.can(
        "GET /v1/sequence/shop",
        json!({"states": [state("context-a", "carts", "pass"), state("context-b", "orders", "fail")]}),
    );
    let words = ["watch", "context-a", "context-b", "--project", "shop", "--log"];
    assert_eq!(api.run(&words).code, 0);
    let ran = api.run(&[&words[..], &["--exit-code"]].concat());
    insta::assert_snapshot!(ran.shown(&[]));
}

#[test]
fn a_watch_waits_for_what_is_still_to_come() {
    let api = Api::start();
    let waiting = json!({"id": "x", "stage": "prod", "sequence": "delivery", "state": "waitingForApproval",
        "tasks": [], "acceptedAt": "2026-11-21T08:00:00Z", "waits": {"reason": "approval", "since": "2026-11-21T08:00:00Z", "task": "approval"}});
    let open = json!({"service": "carts", "project": "shop", "shkeptncontext": "context-a", "state": "waitingForApproval", "executions": [waiting]});
    api.world().events = delivery("context-a", "pass")[..3].to_vec();
    api.can("GET /v1/sequence/shop", json!({"states": [open]}));
    let words = ["watch", "context-a", "--project", "shop"];
    let stopped = api.run(&[&words[..], &["--for-approval"]].concat());
    assert_eq!(stopped.code, 0);
    assert!(stopped.out.contains("→ keelway approve context-a  carts to prod"), "{}", stopped.out);
    // To wait for approval is what was asked for.
    assert_eq!(api.run(&[&words[..], &["--for-approval", "--exit-code"]].concat()).code, 0);
    let mut failed = open.clone();
    let more = json!({"id": "y", "stage": "eu", "sequence": "delivery", "state": "finished", "result": "fail", "tasks": []});
    failed["executions"].as_array_mut().unwrap().push(more);
    api.can("GET /v1/sequence/shop", json!({"states": [failed]}));
    assert_eq!(api.run(&[&words[..], &["--for-approval", "--exit-code"]].concat()).code, 1);
    api.can("GET /v1/sequence/shop", json!({"states": [open]}));
    let late = api.run(&[&words[..], &["--timeout", "700ms"]].concat());
    assert_eq!((late.code, late.err.contains("not over after 700ms")), (1, true));

    let child = api.keelway(&[&words[..], &["--log"]].concat()).stdout(Stdio::piped()).spawn().unwrap();
    // It has read them all twice when it looks for the second time.
    api.wait_for_more("GET /v1/sequence/shop", 2);
    api.world().events = delivery("context-a", "pass");
    api.can("GET /v1/sequence/shop", json!({"states": [state("context-a", "carts", "pass")]}));
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.out.matches("triggered").count(), 2, "{}", ran.out);
    assert!(ran.out.contains("it runs") && ran.out.ends_with("carts  context-a  dev ✓ 4s\n"), "{}", ran.out);
}

#[test]
fn whoever_stops_watching_is_told_that_it_goes_on() {
    let api = Api::start();
    let waits = json!({"reason": "approval", "since": "2026-11-21T08:00:00Z", "task": "approval"});
    let execution = json!({"id": "x", "stage": "prod", "sequence": "delivery", "state": "waitingForApproval", "tasks": [], "acceptedAt": "2026-11-21T08:00:00Z", "waits": waits});
    let open = json!({"service": "carts", "project": "shop", "shkeptncontext": "context-a", "state": "waitingForApproval",
        "executions": [execution]});
    api.can("GET /v1/sequence/shop", json!({"states": [open]}));
    let mut command = api.keelway(&["watch", "context-a", "-p", "shop"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    api.wait_for_more("GET /v1/sequence/shop", 2);
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.err.contains("it goes on: keelway watch context-a\n")), (130, true), "{ran:?}");
}

fn approval(id: &str, stage: &str, service: &str) -> Value {
    let mut event = trigger("approval", id);
    event["data"]["stage"] = json!(stage);
    event["data"]["service"] = json!(service);
    event["data"]["result"] = json!("pass");
    event
}

#[test]
fn an_approval_is_found_or_asked_for() {
    let api = Api::start();
    let none = api.run(&["approve", "--project", "shop"]);
    assert_eq!((none.code, none.err.contains("--wait 60s")), (1, true), "{}", none.err);
    api.world().open = vec![approval("a-1", "prod", "carts"), approval("a-2", "prod", "orders"), approval("a-3", "prod", "cards")];
    let several = api.run(&["decline", "--project", "shop", "--stage", "prod"]);
    insta::assert_snapshot!(several.shown(&[]));
    let path = "/v1/project/shop/approval/context-of-a-2/a-2";
    api.can(&format!("POST {path}"), json!({"keptnContext": "context-of-a-2", "result": "pass"}));
    let ran = api.run(&["approve", "context-of-a-2", "-m", "looks good"]);
    assert_eq!(ran.out, "approved: orders 1.2 to prod of shop, which waited 42s (context-of-a-2)\n", "{}", ran.err);
    let sent = api.world().asked.last().unwrap().body.clone();
    assert_eq!(serde_json::from_str::<Value>(&sent).unwrap(), json!({"decision": "approve", "message": "looks good", "by": "ada"}));
    api.can(&format!("POST {path}"), json!({"keptnContext": "context-of-a-2", "look": "/v1/sequence/shop"}));
    let later = api.run(&["approve", "--service", "orders"]);
    assert!(later.code == 0 && later.out.contains("not in the state yet"), "{later:?}");
}

#[test]
fn two_approvals_of_one_context_and_stage_are_told_apart_by_their_ids() {
    let api = Api::start();
    let twin = |id: &str| {
        let mut event = approval(id, "prod", "carts");
        event["shkeptncontext"] = json!("context-a");
        event
    };
    api.world().open = vec![twin("a-1"), twin("a-2")];
    let listed = api.run(&["get", "approvals"]);
    assert!(listed.err.contains("→ keelway approve context-a --id a-1") && listed.err.contains("--id a-2"), "{}", listed.err);
    let refused = api.run(&["approve", "context-a"]);
    assert!(refused.err.starts_with("error: 2 wait for approval: say which by --id\n"), "{}", refused.err);
    let rows: Vec<&str> = refused.err.lines().skip(1).filter_map(|line| line.split_whitespace().last()).collect();
    assert_eq!(rows, ["ID", "a-1", "a-2"], "{}", refused.err);
    api.can("POST /v1/project/shop/approval/context-a/a-2", json!({"keptnContext": "context-a", "result": "pass"}));
    let ran = api.run(&["approve", "context-a", "--id", "a-2"]);
    assert_eq!(ran.code, 0, "{}", ran.err);

    // The same of the commands below a list of sequences.
    let mut waiting = delivery_to_prod("context-a", "a-1", "2026-11-21T07:00:00.000Z", false);
    let mut second = waiting["executions"][0].clone();
    (second["sequence"], second["waits"]["id"]) = (json!("hotfix"), json!("a-2"));
    waiting["executions"].as_array_mut().unwrap().push(second);
    api.can("GET /v1/sequence/shop", json!({"states": [waiting], "now": crate::support::NOW}));
    let listed = api.run(&["get", "sequences", "-p", "shop"]);
    assert!(listed.err.contains("approve context-a --id a-1") && listed.err.contains("--id a-2"), "{}", listed.err);
}

/// What the list of sequences says about a delivery that waits for the approval `id`, or has been approved.
fn delivery_to_prod(context: &str, id: &str, accepted: &str, decided: bool) -> Value {
    let mut execution = json!({
        "id": "x", "stage": "prod", "sequence": "delivery", "image": "carts:1.2", "deliveryAcceptedAt": accepted, "state": "started",
        "tasks": [{"name": "approval", "state": "started"}],
        "waits": {"reason": "approval", "since": "2026-11-21T08:00:00.000Z", "task": "approval", "id": id}
    });
    if decided {
        let at = "2026-11-21T08:00:12.000Z";
        execution["tasks"] = json!([{"name": "approval", "state": "finished", "result": "pass", "by": "bob", "finishedAt": at}]);
        execution["waits"] = json!({"reason": "answer", "since": at, "task": "deployment"});
    }
    json!({"name": "delivery", "service": "carts", "project": "shop", "shkeptncontext": context, "state": "started", "executions": [execution]})
}

#[test]
fn an_older_delivery_does_not_go_behind_a_newer_one_by_accident() {
    let api = Api::start();
    api.world().open = vec![approval("a-1", "prod", "carts")];
    let waiting = delivery_to_prod("context-of-a-1", "a-1", "2026-11-21T07:00:00.000Z", false);
    api.can("GET /v1/sequence/shop", json!({"states": [waiting], "now": crate::support::NOW}));
    api.can("POST /v1/project/shop/approval/context-of-a-1/a-1", json!({"keptnContext": "c", "result": "pass"}));
    let prod = |accepted: &str| json!({"stage": "prod", "service": "carts", "image": "carts:1.3", "since": "2026-11-21T08:00:00.000Z", "deliveryAcceptedAt": accepted, "coming": []});
    api.can("GET /v1/project/shop/environment", json!({"items": [prod("2026-11-21T07:30:00.000Z")], "now": crate::support::NOW}));
    let refused = api.run(&["approve", "context-of-a-1"]);
    assert_eq!(refused.code, 1);
    insta::assert_snapshot!(refused.err);
    assert!(!api.lines().iter().any(|line| line.starts_with("POST")), "nothing was decided");
    assert_eq!(api.run(&["approve", "context-of-a-1", "--older"]).code, 0);
    assert_eq!(api.run(&["decline", "context-of-a-1"]).code, 0, "declining is never the wrong order");

    // One that is past its own approval, on its way there, counts as well; one that waits beside it does not.
    let mut going = prod("2026-11-21T06:00:00.000Z");
    let newer = |waits: Value| json!([{"image": "carts:1.3", "deliveryAcceptedAt": "2026-11-21T07:30:00.000Z", "waits": waits}]);
    going["coming"] = newer(json!({"reason": "answer", "since": "2026-11-21T08:00:00.000Z"}));
    api.can("GET /v1/project/shop/environment", json!({"items": [going.clone()], "now": crate::support::NOW}));
    let refused = api.run(&["approve", "context-of-a-1"]);
    assert_eq!((refused.code, refused.err.contains("carts 1.3 is on its way to prod")), (1, true), "{}", refused.err);
    going["coming"] = newer(json!({"reason": "approval", "since": "2026-11-21T08:00:00.000Z"}));
    api.can("GET /v1/project/shop/environment", json!({"items": [going], "now": crate::support::NOW}));
    assert_eq!(api.run(&["approve", "context-of-a-1"]).code, 0);
}

#[test]
fn what_does_not_wait_is_told_apart() {
    let api = Api::start();
    let context = "139a703f-1f7e-5abc-8123-5d2a5ef11ecf";
    let decided = delivery_to_prod(context, "", "2026-11-21T07:00:00.000Z", true);
    api.can(
        "GET /v1/sequence/shop",
        json!({"states": [decided, state("7500af7d-1f7e-5abc-8123-5d2a5ef11ecf", "carts", "pass")], "now": crate::support::NOW}),
    );
    let told = ["139a703f", "7500af7d", "139b703f"].map(|id| api.run(&["approve", id]).shown(&[]));
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn an_approval_can_be_waited_for() {
    let api = Api::start();
    api.can("POST /v1/project/shop/approval/context-of-a-1/a-1", json!({"keptnContext": "c", "result": "fail"}));
    let child = api.keelway(&["decline", "--service", "carts", "--wait", "10m"]).stdout(Stdio::piped()).spawn().unwrap();
    api.wait("asked", |world| world.asked.len() > 1);
    api.world().open.push(approval("a-1", "prod", "carts"));
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.out.as_str()), (0, "declined: carts 1.2 to prod of shop, which waited 42s (context-of-a-1)\n"));
}

#[test]
fn control_and_events_from_files() {
    let api = Api::start();
    let told = |open: u64, detail: &str| json!({"keptnContext": "context-a", "open": open, "detail": detail});
    api.can("POST /v1/sequence/shop/context-a/control", told(1, "1 open sequence will be paused"));
    let ran = api.run(&["pause", "context-a", "-p", "shop", "--stage", "dev"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "pause: 1 open sequence will be paused\n"), "{}", ran.err);
    assert!(ran.err.contains("keelway get sequences context-a -p shop"), "{}", ran.err);
    let sent = api.world().asked.last().unwrap().body.clone();
    assert_eq!(serde_json::from_str::<Value>(&sent).unwrap(), json!({"stage": "dev", "state": "pause"}));
    api.can("POST /v1/sequence/shop/context-a/control", told(0, "nothing was aborted"));
    let ran = api.run(&["abort", "context-a", "-p", "shop"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "abort: nothing was aborted\n", ""));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("event.json");
    let path = file.display().to_string();
    let event =
        json!({"type": "sh.keptn.event.production.problem.open", "source": "me", "data": {"project": "shop", "service": "carts"}});
    write(&file, &event.to_string());
    let sent = api.run(&["send", "event", "-f", &path]);
    assert_eq!(sent.code, 0, "{}", sent.err);
    assert!(api.world().events[0]["id"].as_str().is_some_and(|id| id.len() == 36));
    write(&file, &json!({"type": "sh.keptn.event.test.triggered", "data": {}}).to_string());
    let refused = api.run(&["send", "event", "-f", &path]);
    assert_eq!((refused.code, refused.err.contains("only the engine triggers a task")), (1, true), "{}", refused.err);
    write(&file, "nonsense");
    assert_eq!(api.run(&["send", "event", "-f", &path]).code, 2);
}

#[test]
fn lists_as_tables_and_as_json() {
    let api = Api::start();
    let services = json!([{"serviceName": "carts"}, {"serviceName": "orders"}]);
    let project = json!({"projectName": "shop", "creationDate": "1795248000000000000", "shipyardVersion": "7f3a", "description": "A shop.",
        "stages": [{"stageName": "dev", "services": services}, {"stageName": "prod", "services": [{"serviceName": "carts"}]}]});
    api.can("GET /v1/project", json!({"projects": [project], "nextPageKey": "0"}));
    api.can("GET /v1/project/shop", project.clone());
    api.can("GET /v1/sequence/shop", json!({"states": [state("context-a", "carts", "warning")], "nextPageKey": 0}));
    api.world().events = delivery("context-a", "pass");
    api.world().open = vec![approval("a-1", "prod", "carts")];
    let lists = [
        &["get", "projects"][..],
        &["get", "services", "--project", "shop"],
        &["get", "sequences", "--project", "shop"],
        &["get", "sequences", "--project", "shop", "-o", "wide"],
        &["get", "events", "context-a"],
        &["get", "events", "context-a", "-o", "wide"],
        &["get", "approvals"],
        &["doctor"],
    ];
    api.can("GET /v1/metadata", json!({"version": "0.1.0", "stack": "keelway"}));
    api.can("GET /v1/dead-letters", json!({"items": [], "nextPageKey": "0"}));
    api.world()
        .canned
        .insert("GET /v1/checks".into(), (404, json!({"title": "unknown path", "status": 404, "detail": "no checks"})));
    let shown =
        lists.map(|words| format!("$ keelway {}\n{}", words.join(" "), api.run(words).shown(&[(api.url.as_str(), "<API>/")])));
    insta::assert_snapshot!(shown.join("\n\n"));
    let json: Value = serde_json::from_str(&api.run(&["get", "events", "context-a", "-o", "json"]).out).unwrap();
    assert_eq!(json["items"].as_array().map(Vec::len), Some(5));
    let json: Value = serde_json::from_str(&api.run(&["get", "sequences", "-p", "shop", "-o", "json"]).out).unwrap();
    assert_eq!(json["items"][0]["shkeptncontext"], "context-a");
    let doctor = Ran::of(api.keelway(&["doctor"]).env("KEELWAY_TOKEN", "wrong").output().unwrap());
    assert_eq!(doctor.code, 1);
    assert!(doctor.out.contains("error  token: ") && doctor.out.contains("make env"), "{}", doctor.out);
}

#[test]
fn the_usage_does_not_ask_for_what_variables_set() {
    let api = Api::start();
    let ran = api.run(&["watch"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("Usage: keelway watch <CONTEXTS>..."), "{}", ran.err);
}
