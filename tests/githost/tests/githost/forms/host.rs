//! What is the same for every form: faults, the log, webhooks, restarts, the binary.

use super::{Api, FILE, clean, cloned, host};
use keelway_githost::{Action, Fault, Form, Host, Method, Options, State, Webhook, signature};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};

fn api(host: &Host) -> Api {
    Api::new(host.api(Form::Gitea), &[("authorization", "token secret")])
}

fn branch(name: &str) -> Value {
    json!({"new_branch_name": name, "old_ref_name": "main"})
}

const BRANCHES: &str = "/repos/shop/config/branches";

#[tokio::test]
async fn a_lost_answer_had_its_effect_and_a_dropped_request_had_none() {
    let (host, _directory) = host();
    let api = api(&host);
    host.fail(Fault::next("POST", "*/branches", Action::Lose));
    host.fail(Fault::next("POST", "*/branches", Action::Drop));
    assert!(api.send("POST", BRANCHES, Some(branch("lost")), &[]).await.is_err());
    assert!(api.send("POST", BRANCHES, Some(branch("dropped")), &[]).await.is_err());
    let names: Vec<_> = host.people().branches("shop/config").unwrap().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["lost", "main"]);
    let calls: Vec<_> = host.calls().into_iter().map(|call| (call.status, call.wrote)).collect();
    assert_eq!(calls, [(0, true), (0, false)]);
    assert_eq!((host.writes(), host.faults().len()), (1, 0));
    clean(&host);
}

#[tokio::test]
async fn answers_fail_are_nonsense_or_come_late() {
    let (host, _directory) = host();
    let api = api(&host);
    let faults = [
        Action::Status { status: 502, retry_after: None, body: None },
        Action::Html,
        Action::Cut,
        Action::Types,
        Action::RateLimit { retry_after: 7, secondary: false },
        Action::Delay { milliseconds: 50 },
    ];
    for fault in faults {
        host.fail(Fault::next("GET", "*/branches", fault));
    }
    api.get(BRANCHES).await.is(502);
    assert_eq!(api.get(BRANCHES).await.header("content-type"), "text/html; charset=utf-8");
    assert!(serde_json::from_slice::<Value>(&api.get(BRANCHES).await.body).is_err());
    assert!(api.get(BRANCHES).await.is(200).is_object());
    let limited = api.get(BRANCHES).await;
    assert_eq!((limited.status, limited.header("retry-after")), (429, "7"));
    let before = std::time::Instant::now();
    api.get(BRANCHES).await.is(200);
    assert!(before.elapsed().as_millis() >= 50);
    let github = Api::new(host.api(Form::GitHub), &[("authorization", "Bearer secret"), ("user-agent", "test")]);
    for secondary in [true, false] {
        host.fail(Fault::next("GET", "*/user", Action::RateLimit { retry_after: 7, secondary }));
        let limited = github.get("/user").await;
        assert_eq!((limited.status, limited.header("retry-after")), (403, if secondary { "7" } else { "" }));
        assert_eq!(limited.header("x-ratelimit-remaining"), if secondary { "4999" } else { "0" });
    }
    clean(&host);
}

#[tokio::test]
async fn each_host_signs_its_own_webhooks() {
    for (form, event, signed) in [
        (Form::GitHub, "x-github-event: pull_request", "x-hub-signature-256: sha256="),
        (Form::Gitea, "x-gitea-event: pull_request", "x-gitea-signature: "),
        (Form::GitLab, "x-gitlab-event: Merge Request Hook", "x-gitlab-token: hush"),
        (Form::Bitbucket, "x-event-key: pr:opened", "x-hub-signature: sha256="),
    ] {
        let (host, _directory) = host();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let people = host.people();
        people.set_webhook("shop/config", Some(Webhook { url, secret: "hush".into(), form: Some(form) })).unwrap();
        people.commit("shop/config", "one", "x", &[("x", Some(b"x"))]).unwrap();
        people.open("shop/config", "one", "main", "one").unwrap();
        let (stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream);
        let head: Vec<String> = reader.by_ref().lines().map(|line| line.unwrap()).take_while(|line| !line.is_empty()).collect();
        let length = head.iter().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse().unwrap();
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        reader.get_mut().write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
        let signed = if form == Form::GitLab { signed.to_owned() } else { format!("{signed}{}", signature("hush", &body)) };
        assert!(head.iter().any(|line| line == event) && head.contains(&signed), "{form:?}: {head:?}");
        assert!(String::from_utf8(body).unwrap().contains("refs/heads/one") || form != Form::Bitbucket);
    }
    // The published example of the algorithm, from GitHub's documentation.
    assert_eq!(
        signature("It's a Secret to Everybody", b"Hello, World!"),
        "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    );
}

#[tokio::test]
async fn a_host_that_is_started_again_goes_on() {
    let (host, directory) = host();
    let people = host.people().named("ada");
    people.commit("shop/config", "one", "x", &[("x", Some(b"x")), ("README.md", None)]).unwrap();
    people.open("shop/config", "one", "main", "one").unwrap();
    people.comment("shop/config", 1, "hello").unwrap();
    host.stop();
    let host = Host::start(Options::new(directory.path(), "secret")).unwrap();
    let people = host.people();
    assert_eq!(people.comments("shop/config", 1).unwrap()[0].body, "hello");
    people.merge("shop/config", 1, Method::Squash).unwrap();
    let files = cloned(&host, "main");
    assert_eq!(files.keys().collect::<Vec<_>>(), ["prod/carts.yaml", "x"]);
    assert_eq!(files["prod/carts.yaml"], FILE.as_bytes());
    let pull = people.pull("shop/config", 1).unwrap();
    assert_eq!((pull.state, pull.author.as_str()), (State::Merged, "ada"));
}

#[test]
fn people_push_to_the_directory_and_the_host_sees_it() {
    let (host, _directory) = host();
    let people = host.people();
    people.commit("shop/config", "one", "x", &[("x", Some(b"x"))]).unwrap();
    people.open("shop/config", "one", "main", "one").unwrap();
    let clone = tempfile::tempdir().unwrap();
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.current_dir(clone.path()).env("GIT_CONFIG_GLOBAL", "/dev/null").args([
            "-c",
            "user.name=ada",
            "-c",
            "user.email=ada@localhost",
        ]);
        assert!(command.args(arguments).status().unwrap().success());
    };
    let from = people.git_directory("shop/config").unwrap();
    git(&["clone", "--quiet", "--branch", "one", from.to_str().unwrap(), "."]);
    git(&["commit", "--quiet", "--allow-empty", "--message", "by hand"]);
    git(&["push", "--quiet", "origin", "one"]);
    let tip = people.branches("shop/config").unwrap()[1].1.clone();
    let pull = people.pull("shop/config", 1).unwrap();
    assert_eq!((pull.head_sha, pull.version), (tip, 1));
}

#[tokio::test]
async fn a_person_merges_with_a_button() {
    let (host, _directory) = host();
    let people = host.people();
    people.commit("shop/config", "one", "x", &[("x", Some(b"<x>\n"))]).unwrap();
    people.open("shop/config", "one", "main", "<one>").unwrap();
    let pages = Api::new(host.url().into(), &[]);
    for page in [
        "/",
        "/shop/config/pulls",
        "/shop/config/pulls/1",
        "/shop/config/-/merge_requests/1",
        "/projects/shop/repos/config/pull-requests/1",
    ] {
        let page = pages.get(page).await;
        assert_eq!(page.status, 200);
        assert!(!String::from_utf8(page.body).unwrap().contains("<one>"));
    }
    let diff = String::from_utf8(pages.get("/shop/config/pulls/1").await.body).unwrap();
    assert!(diff.contains("+&lt;x&gt;") && diff.contains("<button >merge"), "{diff}");
    let foreign = pages.send("POST", "/shop/config/pulls/1/merge", None, &[("origin", "http://elsewhere")]).await.unwrap();
    assert_eq!(foreign.status, 403);
    let merged = pages.send("POST", "/shop/config/pulls/1/merge", None, &[("origin", host.url())]).await.unwrap();
    assert_eq!((merged.status, merged.header("location")), (303, "/shop/config/pulls/1"));
    assert_eq!(people.pull("shop/config", 1).unwrap().state, State::Merged);
    pages.send("POST", "/shop/config/pulls/1/close", None, &[]).await.map(|answer| assert_eq!(answer.status, 409)).unwrap();
    clean(&host);
}

#[test]
fn only_a_loopback_address_is_listened_on() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { listen: "0.0.0.0:0".parse().unwrap(), ..Options::new(directory.path(), "secret") };
    assert!(Host::start(options).err().unwrap().to_string().contains("no loopback address"));
}

#[tokio::test]
async fn the_binary_serves_the_control_api_until_its_input_ends() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_keelway-githost"))
        .args(["--directory", directory.path().to_str().unwrap(), "--token", "ada:secret", "--form", "github"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let ready: Value = serde_json::from_str(&line).unwrap();
    let url = ready["url"].as_str().unwrap().to_owned();
    let control = Api::new(format!("{url}/_host"), &[]);
    let new = json!({"owner": "shop", "name": "config", "private": true, "files": {"a.txt": "a\n"}});
    let created = control.call("POST", "/repositories", new).await.is(200);
    assert!(std::path::Path::new(created["git"].as_str().unwrap()).join("HEAD").exists());
    let at = "/repositories/shop/config";
    let commit = json!({"branch": "one", "message": "b", "files": {"b.txt": "b\n", "a.txt": null}});
    control.call("POST", &format!("{at}/commits"), commit).await.is(200);
    control.call("POST", &format!("{at}/pulls"), json!({"head": "one", "base": "main", "title": "one"})).await.is(200);
    for (verb, body) in [
        ("edit", json!({"title": "two"})),
        ("comment", json!({"body": "hello"})),
        ("close", json!({})),
        ("reopen", json!({})),
        ("force-push", json!({"message": "c", "files": {"c.txt": "c\n"}})),
    ] {
        control.call("POST", &format!("{at}/pulls/1/{verb}"), body).await.is(200);
    }
    let fault = json!({"method": "GET", "path": "*/user", "kind": "status", "status": 503});
    control.call("POST", "/faults", fault).await.is(200);
    let github = Api::new(ready["api"].as_str().unwrap().into(), &[("authorization", "Bearer secret"), ("user-agent", "test")]);
    github.get("/user").await.is(503);
    assert_eq!(github.get("/user").await.is(200)["login"], "ada");
    control.call("POST", &format!("{at}/pulls/1/merge"), json!({"method": "squash"})).await.is(200);
    let pull = control.get(&format!("{at}/pulls/1")).await.is(200);
    assert_eq!((&pull["state"], &pull["title"]), (&json!("merged"), &json!("two")));
    let files = control.get(&format!("{at}/files?revision=main")).await.is(200);
    assert_eq!(files.as_object().unwrap().keys().collect::<Vec<_>>(), ["a.txt", "c.txt"]);
    assert_eq!(control.get("/calls").await.is(200).as_array().unwrap().len(), 2);
    assert_eq!(control.get("/violations").await.is(200), json!([]));
    control.call("POST", "/repositories", json!({"owner": "a", "name": "b", "colour": "red"})).await.is(400);

    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    let mut log = String::new();
    child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    assert!(log.contains("GET /api/v3/user 503\nGET /api/v3/user 200\n"), "{log}");
}
