//! Who somebody is: contexts and their file, tokens, the audit, and what a command that is run for a task does not get.

use crate::support::{Api, Ran, TOKEN, keelway, trigger, write};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// The command with a file of contexts, and no other setting.
fn with(file: &Path, words: &[&str]) -> Command {
    let mut command = keelway(words);
    command.env("KEELWAY_CONFIG", file).env("NO_PROXY", "127.0.0.1");
    command
}

fn run(command: &mut Command) -> Ran {
    Ran::of(command.output().unwrap())
}

/// An API that knows who has the token.
fn api() -> Api {
    let api = Api::start();
    api.can("GET /v1/whoami", json!({"token": "ann", "grants": [{"scopes": ["read", "approve:prod"], "projects": ["shop"]}]}));
    api
}

#[test]
fn whoever_logged_in_needs_no_variables() {
    let (api, dir) = (api(), tempfile::tempdir().unwrap());
    let file = dir.path().join("keelway/config.yaml");
    let missing = run(&mut with(&file, &["get", "projects"]));
    assert_eq!((missing.code, missing.err.contains("keelway login")), (2, true), "{}", missing.err);

    // A token that the API does not know is not remembered.
    let wrong = run(&mut with(&file, &["login", "--api", &api.url, "--token", "wrong"]));
    assert_eq!((wrong.code, file.exists()), (1, false), "{}", wrong.err);

    let mut command = with(&file, &["login", "eu", "--api", &api.url]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("{TOKEN}\n").as_bytes()).unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("as ann: read, approve:prod in shop") && !format!("{ran:?}").contains(TOKEN), "{ran:?}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);

    let projects = run(&mut with(&file, &["get", "projects"]));
    assert_eq!((projects.code, projects.out.contains("shop")), (0, true), "{}", projects.err);
    assert_eq!(run(&mut with(&file, &["whoami"])).out, "ann: read, approve:prod in shop\n");

    // Others can read it: it is not used until that is mended.
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let open = run(&mut with(&file, &["get", "projects"]));
    assert_eq!((open.code, open.err.contains("chmod 600")), (2, true), "{}", open.err);
    assert_eq!(run(&mut with(&file, &["version"])).code, 0, "what needs no API works");
}

#[test]
fn contexts_are_chosen_and_forgotten() {
    let (eu, us, dir) = (api(), api(), tempfile::tempdir().unwrap());
    let file = dir.path().join("config.yaml");
    for (name, api) in [("eu", &eu), ("us", &us)] {
        assert_eq!(run(with(&file, &["login", name, "--api", &api.url]).env("KEELWAY_TOKEN", TOKEN)).code, 0);
    }
    let asked = |api: &Api| api.lines().iter().filter(|line| line.starts_with("GET /v1/project")).count();
    let get = |command: &mut Command| assert_eq!(run(command).code, 0);
    get(&mut with(&file, &["get", "projects"]));
    assert_eq!((asked(&eu), asked(&us)), (0, 1), "the last login counts");
    get(with(&file, &["get", "projects"]).env("KEELWAY_LOGIN", "eu"));
    assert_eq!((asked(&eu), asked(&us)), (1, 1));
    get(&mut with(&file, &["login", "use", "eu"]));
    get(&mut with(&file, &["get", "projects"]));
    get(with(&file, &["get", "projects"]).env("KEELWAY_API", &us.url).env("KEELWAY_TOKEN", TOKEN));
    assert_eq!((asked(&eu), asked(&us)), (2, 2), "variables come first");
    // The token of one API is not sent to another.
    let elsewhere = run(with(&file, &["get", "projects"]).env("KEELWAY_API", &us.url));
    assert_eq!((elsewhere.code, elsewhere.err.contains("token is not known"), asked(&us)), (2, true, 2), "{}", elsewhere.err);

    let list = run(&mut with(&file, &["login", "list"])).out;
    let lines: Vec<Vec<&str>> = list.lines().map(|line| line.split_whitespace().take(2).collect()).collect();
    assert_eq!(lines, [["CURRENT", "NAME"], ["*", "eu"], ["-", "us"]], "{list}");
    assert!(!list.contains(TOKEN));
    get(&mut with(&file, &["login", "delete", "eu"]));
    let gone = run(&mut with(&file, &["login", "use", "eu"]));
    assert_eq!((gone.code, gone.err.trim()), (2, "error: there is no login \"eu\": there are us"));
    assert_eq!(run(&mut with(&file, &["get", "projects"])).code, 2, "nothing is current any more");
}

#[test]
fn a_secret_is_printed_alone_and_once() {
    let api = Api::start();
    let token = json!({"name": "ci", "scopes": ["read", "trigger"], "projects": ["shop"], "created": crate::support::NOW, "by": "administrator"});
    let made = json!({"secret": "keelway_ci_0f", "token": token});
    api.can("POST /v1/tokens", made.clone());
    api.can("POST /v1/tokens/ci/rotate", made);
    let create = ["token", "create", "ci", "--scope", "read,trigger", "--project", "shop", "--expires", "90d", "--note", "builds"];
    let ran = api.run(&create);
    assert_eq!((ran.code, ran.out.as_str()), (0, "keelway_ci_0f\n"), "{}", ran.err);
    assert!(ran.err.contains("read, trigger in shop; does not expire"), "{}", ran.err);
    let sent: Value = serde_json::from_str(&api.world().asked.last().unwrap().body).unwrap();
    let expected = json!({"name": "ci", "scopes": ["read", "trigger"], "projects": ["shop"], "expires": "90d", "note": "builds"});
    assert_eq!(sent, expected);
    assert_eq!(api.run(&["token", "rotate", "ci", "--overlap", "0"]).out, "keelway_ci_0f\n");
    let sent: Value = serde_json::from_str(&api.world().asked.last().unwrap().body).unwrap();
    assert_eq!(sent, json!({"overlap": "0"}));
    let wrong = api.run(&["token", "create", "ci", "--scope", "everything"]);
    assert_eq!((wrong.code, wrong.err.contains("execute:<task>")), (2, true), "{}", wrong.err);

    // What may have been made is not made again: there would be two secrets, of which one is unknown.
    api.world().canned.insert("POST /v1/tokens".into(), (503, json!({"title": "try again", "status": 503})));
    let made = |api: &Api| api.lines().iter().filter(|line| line.starts_with("POST /v1/tokens")).count();
    let before = made(&api);
    assert_eq!((api.run(&create).code, made(&api) - before), (1, 1));
}

#[test]
fn tokens_and_the_audit_as_tables() {
    let api = Api::start();
    let token = |name: &str, more: Value| {
        let mut token =
            json!({"name": name, "scopes": ["read"], "created": crate::support::NOW, "by": "administrator", "expired": false});
        token.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        token
    };
    let tokens = [
        token("ann", json!({"lastUsed": "2026-11-21T07:00:00.000Z"})),
        token("ci", json!({"projects": ["shop"], "expires": "2026-11-20T00:00:00.000Z", "expired": true})),
    ];
    api.can("GET /v1/tokens", json!({"items": tokens, "nextPageKey": "0"}));
    insta::assert_snapshot!(api.run(&["token", "list"]).out.trim_end(), @r"
    NAME  MAY           EXPIRES  LAST USED
    ann   read          never    2026-11-21T07:00:00.000Z
    ci    read in shop  expired  never
    ");
    let entry = json!({
        "at": crate::support::NOW, "id": "0f", "action": "decide", "token": "oidc", "subject": "ann@acme.test", "address": "203.0.113.9", "project": "shop",
        "request": "POST /v1/project/shop/approval/c/t", "what": "approved carts 1.4.0 for prod (54c7f0df-2ea5-4f6b-9d6e-0a3c5b7d9e1f)", "note": "Ann", "status": 202
    });
    api.can("GET /v1/audit", json!({"items": [entry], "nextPageKey": "0"}));
    insta::assert_snapshot!(api.run(&["audit", "--by", "ann@acme.test", "--project", "shop", "-o", "wide"]).out.trim_end(), @r"
    AT                        BY             FROM         ACTION  PROJECT  WHAT                                                                  SAYS  REQUEST                             STATUS
    2026-11-21T08:00:42.000Z  ann@acme.test  203.0.113.9  decide  shop     approved carts 1.4.0 for prod (54c7f0df-2ea5-4f6b-9d6e-0a3c5b7d9e1f)  Ann   POST /v1/project/shop/approval/c/t  202
    ");
    let line = api.lines().pop().unwrap();
    let short = api.run(&["audit"]).out;
    assert!(short.trim_end().ends_with("approved carts 1.4.0 for prod (54c7f0df)"), "{short}");
    assert!(line.contains("token=ann%40acme.test") && line.contains("project=shop") && !line.contains("fromTime"), "{line}");
    let asked = api.lines().len();
    let wrong = api.run(&["audit", "--action", "decidee"]);
    assert_eq!((wrong.code, wrong.err.contains("decide, delete, token, override")), (2, true), "{}", wrong.err);
    assert_eq!(api.lines().len(), asked, "nothing is asked");
}

#[test]
fn a_command_that_answers_a_task_does_not_inherit_the_token() {
    let (api, dir) = (Api::start(), tempfile::tempdir().unwrap());
    let file = dir.path().join("config.yaml");
    write(&file, &format!("current: eu\ncontexts:\n  eu:\n    api: {}\n    token: {TOKEN}\n", api.url));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    api.world().open.push(trigger("test", "t-1"));
    let binary = env!("CARGO_BIN_EXE_keelway");
    let script = format!(
        "cat >/dev/null; env >&2; {binary} get projects >&2; echo \"exit $?\" >&2; echo context $KEELWAY_CONTEXT >&2; exit 1"
    );
    let words = ["executor", "--name", "tester", "--on", "test", "--poll", "30ms", "--wait", "0s", "--", "sh", "-c", &script];
    // Logged in, and with variables: the command has neither.
    for variables in [false, true] {
        let mut command = with(&file, &words);
        if variables {
            command.env("KEELWAY_API", &api.url).env("KEELWAY_TOKEN", TOKEN).env("KEELWAY_LOGIN", "");
        }
        let _executor = crate::support::Running::start(&mut command);
        let finished =
            |world: &crate::support::World| world.events.iter().any(|event| event["type"] == "sh.keptn.event.test.finished");
        api.wait("finished", finished);
        let mut world = api.world();
        let event = world.events.iter().find(|event| event["type"] == "sh.keptn.event.test.finished").unwrap().clone();
        let text = event["data"]["message"].as_str().unwrap();
        assert!(!text.contains(TOKEN) && text.contains("exit 2") && text.contains("context context-of-t-1"), "{text}");
        world.events.clear();
    }
}

#[test]
fn a_project_is_deleted_when_nothing_is_open() {
    let api = Api::start();
    let message =
        "project shop is deleted, with 1 service and 0 resources; the history of its sequences stays until it is 90 days old";
    let delete = "DELETE /v1/project/shop";
    api.world()
        .canned
        .insert(delete.into(), (409, json!({"title": "conflict", "status": 409, "detail": "delivery of carts is still open"})));
    let refused = api.run(&["delete", "project", "shop", "--yes"]);
    assert_eq!((refused.code, refused.err.contains("still open")), (1, true), "{}", refused.err);
    let open = json!({"states": [{"shkeptncontext": "c-1", "service": "carts"}, {"shkeptncontext": "c-2", "service": "other"}], "nextPageKey": 0});
    api.can("GET /v1/sequence/shop", open);
    api.can("POST /v1/sequence/shop/c-1/control", json!({"open": 1}));
    api.can("POST /v1/sequence/shop/c-2/control", json!({"open": 1}));

    // Only what is the service's is aborted, once; then it is tried until it has ended.
    let service = "DELETE /v1/project/shop/service/carts";
    api.world().canned.insert(service.into(), (409, json!({"title": "conflict", "status": 409, "detail": "still open"})));
    let running = crate::support::Running::start(&mut api.keelway(&["delete", "service", "carts", "-p", "shop", "--abort"]));
    api.wait_for_more(service, 3);
    api.can(service, json!({"message": "service carts of project shop is deleted"}));
    running.wait_for("service carts of project shop is deleted");
    let aborts = |context: &str| api.lines().iter().filter(|line| line.contains(&format!("{context}/control"))).count();
    assert_eq!((aborts("c-1"), aborts("c-2")), (1, 0));

    api.can(delete, json!({"message": message}));
    let ran = api.run(&["delete", "project", "shop", "--yes"]);
    assert_eq!((ran.code, ran.out.trim()), (0, message));
}

/// A server that answers one request after another with a redirect, and ends with the test.
fn pointing_to(location: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer =
        format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: {location}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut head = BufReader::new(stream.try_clone().unwrap()).lines();
            while head.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    url
}

#[test]
fn the_token_goes_nowhere_else() {
    let (other, dir) = (api(), tempfile::tempdir().unwrap());
    let file = dir.path().join("config.yaml");
    let ask = |url: &str| run(with(&file, &["get", "projects"]).env("KEELWAY_API", url).env("KEELWAY_TOKEN", TOKEN));
    let elsewhere = format!("{}v1/project", other.url);
    let sent = ask(&pointing_to(&format!("{elsewhere}?secret=s3cret")));
    assert_eq!((sent.code, sent.err.contains(&elsewhere), sent.err.contains("s3cret")), (1, true, false), "{}", sent.err);
    assert!(other.lines().is_empty(), "asked there: {:?}", other.lines());
    // Who waits at the end of a plain connection is anybody.
    let plain = ask("http://keelway.example");
    assert_eq!((plain.code, plain.err.contains("\"http://keelway.example\" is not https")), (2, true), "{}", plain.err);
    let login = run(&mut with(&file, &["login", "--api", "http://keelway.example", "--token", TOKEN]));
    assert_eq!((login.code, login.err.contains("is not https"), file.exists()), (2, true, false), "{}", login.err);
}

#[test]
fn what_is_wrong_with_a_token_is_told_with_the_place_that_it_comes_from() {
    let api = Api::start();
    let refused = |title: &str, detail: &str| {
        let problem = json!({"title": title, "status": 401, "detail": detail});
        api.world().canned.insert("GET /v1/whoami".into(), (401, problem));
        api.run(&["whoami"]).err
    };
    for title in ["expired token", "rotated token", "revoked token", "mistyped token"] {
        let told = refused(title, "the API says what became of it");
        assert!(told.starts_with(&format!("error: {title}: the API says what became of it; it is that of --token")), "{told}");
        assert!(!told.contains("make env"), "a new stack is no remedy: {told}");
    }
    let told = refused("unknown token", "this token is not known here");
    assert!(told.contains("it is that of --token") && told.contains("for a local stack, run `eval"), "{told}");
}
