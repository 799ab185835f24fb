//! `create`; names that are probably slips; lists that are shown again; and that every list has its items in one place.

use crate::support::{Api, Running, keelway};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;

const SHIPYARD: &str = "apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shipyard-blog}
spec: {stages: [{name: dev, sequences: [{name: delivery, tasks: [{name: deployment}]}]}]}
";

fn body(api: &Api) -> Value {
    serde_json::from_str(&api.world().asked.last().unwrap().body).unwrap()
}

fn refuse(api: &Api, line: &str, detail: &str) {
    let problem = json!({"title": "unknown project", "status": 404, "detail": detail});
    api.world().canned.insert(line.into(), (404, problem));
}

#[test]
fn a_project_is_created_with_its_shipyard_and_a_service_in_it() {
    let api = Api::start();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), SHIPYARD).unwrap();
    let path = file.path().to_str().unwrap();
    api.can("POST /v1/project", json!({}));
    let made = api.run(&["create", "project", "blog", "-f", path]);
    assert_eq!((made.code, made.out.as_str()), (0, "project blog: created\n"), "{made:?}");
    assert!(made.err.contains("keelway trigger delivery -p blog"), "{made:?}");
    let sent = body(&api);
    let shipyard = "YXBpVmVyc2lvbjogc3BlYy5rZXB0bi5zaC8wLjIuMwpraW5kOiBTaGlweWFyZA";
    assert!(sent["name"] == "blog" && sent["shipyard"].as_str().unwrap().starts_with(shipyard), "{sent}");

    api.can("POST /v1/project/blog/service", json!({}));
    let made = api.run(&["create", "service", "web", "-p", "blog"]);
    assert_eq!((made.code, made.out.as_str()), (0, "service web of project blog: created\n"), "{made:?}");
    assert_eq!(body(&api), json!({"serviceName": "web"}));
}

#[test]
fn what_is_no_shipyard_is_not_sent() {
    let api = Api::start();
    for (text, code, why) in [
        (SHIPYARD.replace("tasks:", "task:"), 1, "nothing was sent"),
        (format!("{SHIPYARD}---\n{SHIPYARD}"), 2, "is not one shipyard"),
        ("apiVersion: keelway.dev/v1\nkind: Project\nmetadata: {name: blog}\n".to_owned(), 2, "is not one shipyard"),
    ] {
        let mut command = api.keelway(&["create", "project", "blog", "-f", "-"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), told.contains(why)), (Some(code), true), "{text}{told}");
    }
    assert!(api.lines().is_empty());
}

#[test]
fn an_empty_list_of_a_project_that_is_a_slip_says_which_was_meant() {
    let api = Api::start();
    let detail = "project \"shp\" does not exist: did you mean \"shop\"? there is shop";
    refuse(&api, "GET /v1/project/shp", detail);
    refuse(&api, "GET /v1/project/other", "project \"other\" does not exist: there is shop");
    let lists = [
        ("pipelines", json!({"items": []}), vec!["get", "pipelines"]),
        ("pipelines", json!({"items": []}), vec!["pipeline", "list"]),
        ("deploymentConfigs", json!({"items": []}), vec!["get", "dc"]),
        ("webhookSubscriptions", json!({"items": []}), vec!["get", "webhooks"]),
        ("deliveries", json!({"items": []}), vec!["webhook", "deliveries"]),
        ("audit", json!({"items": []}), vec!["audit"]),
    ];
    for (path, mut page, words) in lists {
        page["nextPageKey"] = json!("0");
        api.can(&format!("GET /v1/{path}"), page);
        let slip = api.run(&[&words[..], &["-p", "shp"]].concat());
        assert_eq!((slip.code, slip.err.contains("did you mean \"shop\"")), (1, true), "{words:?} {slip:?}");
        // A namespace may have no project, and nothing of a kind.
        let empty = api.run(&[&words[..], &["-p", "other"]].concat());
        assert_eq!((empty.code, empty.err.contains("did you mean")), (0, false), "{words:?} {empty:?}");
    }
    let token = json!({"secret": "s", "token": {"name": "x", "scopes": ["read"], "projects": ["shp"], "created": "2026-11-21T08:00:00.000Z"}});
    api.can("POST /v1/tokens", token);
    let made = api.run(&["token", "create", "x", "--scope", "read", "--project", "shp"]);
    assert_eq!((made.code, made.err.contains("did you mean \"shop\"")), (0, true), "{made:?}");
}

#[test]
fn a_new_service_with_nearly_the_name_of_another_is_told() {
    let api = Api::start();
    let stages = json!([{"stageName": "dev", "services": [{"serviceName": "checkout"}]}]);
    api.can("GET /v1/project/shop", json!({"projectName": "shop", "stages": stages}));
    let trigger = |service: &str| api.run(&["trigger", "delivery", "-p", "shop", "-s", service, "-i", "x:1"]);
    let slip = trigger("chekout");
    assert_eq!((slip.code, slip.err.contains("did you mean \"checkout\"?")), (0, true), "{slip:?}");
    for fine in ["checkout", "mail"] {
        assert!(!trigger(fine).err.contains("did you mean"), "{fine}");
    }
}

#[test]
fn an_evaluation_where_nothing_was_delivered_says_how_to_begin() {
    let api = Api::start();
    let detail =
        "service: \"et\" is unknown: project easytravel has no services yet: create it, or begin with another sequence of it";
    let line = "POST /v1/project/easytravel/stage/prod/service/et/evaluation";
    api.world().canned.insert(line.into(), (400, json!({"title": "bad request", "status": 400, "detail": detail})));
    let refused = api.run(&["trigger", "evaluation", "-p", "easytravel", "-s", "et", "--stage", "prod"]);
    assert_eq!((refused.code, refused.err.contains("keelway create service et -p easytravel")), (1, true), "{refused:?}");
}

#[test]
fn a_list_is_shown_again_when_something_but_an_age_has_changed() {
    let api = Api::start();
    let page = |named: &[&str]| {
        let projects: Vec<Value> =
            named.iter().map(|name| json!({"projectName": name, "creationDate": "1795222266686000000"})).collect();
        json!({"projects": projects, "nextPageKey": "0"})
    };
    api.can("GET /v1/project", page(&["shop"]));
    let watching = Running::start(&mut api.keelway(&["get", "projects", "--watch"]));
    watching.wait_for("shop");
    api.can("GET /v1/project", page(&["shop", "web"]));
    watching.wait_for("web");
    let printed = watching.printed();
    let lines: Vec<&str> = printed.lines().map(|line| line.split_whitespace().next().unwrap_or_default()).collect();
    assert_eq!(lines, ["PROJECT", "shop", "web"], "only what has changed is printed again");
    drop(watching);

    let over = api.run(&["get", "projects", "-w", "--timeout", "100ms"]);
    assert_eq!((over.code, over.err.contains("100ms are over")), (1, true), "{over:?}");
    let useless = api.run(&["get", "projects", "--timeout", "1s"]);
    assert_eq!((useless.code, useless.err.contains("--watch")), (2, true), "{useless:?}");
}

#[test]
fn every_list_has_its_items_in_one_place() {
    let api = Api::start();
    let none = |member: &str| {
        let mut page = json!({"nextPageKey": "0"});
        page[member] = json!([]);
        page
    };
    for (line, member) in [
        ("deploymentConfigs", "items"),
        ("webhookSubscriptions", "items"),
        ("clusters", "items"),
        ("pipelines", "items"),
        ("deployments", "items"),
        ("tokens", "items"),
        ("audit", "items"),
        ("dead-letters", "items"),
        ("wait", "items"),
        ("event/triggered/approval", "events"),
    ] {
        api.can(&format!("GET /v1/{line}"), none(member));
    }
    api.can("GET /v1/project/shop/queue", json!({"items": [], "now": "2026-11-21T08:00:00.000Z"}));
    for words in [
        "get projects",
        "get sequences -p shop",
        "get events -p shop",
        "get environments -p shop",
        "get queue -p shop",
        "get approvals",
        "get pipelines",
        "get dc",
        "get webhooks",
        "get clusters",
        "get deployments",
        "token list",
        "audit",
        "dead-letters list",
        "status",
    ] {
        let ran = api.run(&[&words.split(' ').collect::<Vec<_>>()[..], &["-o", "json"]].concat());
        let told: Value = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{words}: {error}: {ran:?}"));
        assert!(told["items"].is_array(), "{words}: {told}");
    }
    // Without an address, nothing is asked.
    assert_eq!(keelway(&["get", "projects"]).output().unwrap().status.code(), Some(2));
}
