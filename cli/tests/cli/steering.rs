//! What people decide about pipelines: approvals with a token and with a key, commands, deletion, observations.

use crate::support::pipelines::{at, carts, healthy, payments, pipeline, promotion, show, with};
use crate::support::screen::Screen;
use crate::support::{Api, Ran, write};
use serde_json::{Value, json};
use std::process::Stdio;

const APPROVAL: &str = "/v1/pipelines/shop/carts/environments/production/revisions/1.4.0/approval";

fn shop() -> Api {
    let api = Api::start();
    show(&api, &[carts(), payments()]);
    api
}

fn body(api: &Api) -> Value {
    serde_json::from_str(&api.world().asked.last().unwrap().body).unwrap()
}

fn answer(api: &Api, line: &str, status: u16, value: Value) {
    api.world().canned.insert(line.into(), (status, value));
}

#[test]
fn a_revision_is_approved_by_name_or_as_the_one_that_waits() {
    let api = shop();
    let url = "https://git.example/shop/config/pulls/8";
    let request = json!({"pullRequest": {"number": 8, "url": url, "branch": "b"}});
    let created = json!({"namespace": "shop", "name": "carts", "done": true, "promotion": promotion("1.4.0", "created", request)});
    answer(&api, &format!("POST {APPROVAL}"), 201, created);
    let ran = api.run(&["pipeline", "approve", "carts", "production", "-p", "shop", "-m", "looks good"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (0, format!("approved: carts 1.4.0 to production of shop, which waited 12s: {url}\n").as_str())
    );
    assert_eq!(ran.err, "1.4.0 waits for approval for production of shop/carts\n");
    assert_eq!(body(&api), json!({"decision": "approve", "message": "looks good", "by": "ada"}));

    // The answer has no body once the state shows it.
    answer(&api, &format!("POST {APPROVAL}"), 204, Value::Null);
    let ran = api.run(&["approve", "shop/carts/production"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "approved: carts 1.4.0 to production of shop, which waited 12s\n"), "{}", ran.err);
    let ran = api.run(&["decline", "shop/carts/production@1.4.0", "--by", "bob"]);
    assert_eq!(ran.out, "rejected: carts 1.4.0 to production of shop, which waited 12s\n", "{}", ran.err);
    assert_eq!(body(&api), json!({"decision": "reject", "by": "bob"}));
    assert_eq!(api.run(&["pipeline", "decline", "shop/carts", "production", "1.4.0"]).code, 0);

    let waiting = json!({"revision": "1.4.0", "given": 1, "needed": 3});
    let first = json!({"namespace": "shop", "name": "carts", "done": true, "waitingApproval": waiting});
    answer(&api, &format!("POST {APPROVAL}"), 202, first);
    let ran = api.run(&["approve", "shop/carts/production@1.4.0"]);
    assert!(ran.out.ends_with(", 1 of 3 approvals: 2 more\n"), "{}", ran.out);
    answer(&api, &format!("POST {APPROVAL}"), 202, json!({"namespace": "shop", "name": "carts", "done": false, "look": "/v1/x"}));
    let ran = api.run(&["approve", "shop/carts/production@1.4.0"]);
    assert!(ran.out.ends_with("not in the state yet; see: keelway pipeline status shop/carts\n"), "{}", ran.out);
}

#[test]
fn what_failed_and_runs_is_accepted_and_offered() {
    let api = Api::start();
    let contested = promotion("1.4.0", "failed", json!({"reason": "Failed", "message": "the test failed", "contested": true}));
    let mut staging = healthy("staging", "1.4.0", &at(22));
    staging["promotion"] = contested;
    show(&api, &[pipeline("carts", "1.4.0", "PromotionFailed", &[healthy("dev", "1.4.0", &at(5)), staging])]);
    let listed = api.run(&["pipeline", "list", "-p", "shop"]);
    assert!(listed.out.contains("staging ✗ the test failed"), "{}", listed.out);
    assert!(listed.err.contains("→ keelway pipeline accept shop/carts staging"), "{}", listed.err);
    let path = "/v1/pipelines/shop/carts/environments/staging/revisions/1.4.0/approval";
    answer(&api, &format!("POST {path}"), 204, Value::Null);
    let ran = api.run(&["pipeline", "accept", "carts", "staging", "-p", "shop", "-m", "flaky"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "accepted: carts 1.4.0 to staging of shop\n"), "{}", ran.err);
    assert_eq!(body(&api), json!({"decision": "accept", "message": "flaky", "by": "ada"}));
}

#[test]
fn short_revisions_stand_for_the_one_that_waits() {
    let api = Api::start();
    let revision = "main@sha1:63bf726176d8e1a2b3c4d5e6f708192a3b4c5d6e";
    let awaiting = crate::support::pipelines::awaiting("production", revision);
    show(&api, &[pipeline("carts", revision, "x", &[healthy("dev", revision, &at(5)), awaiting])]);
    let listed = api.run(&["pipeline", "list", "-p", "shop"]);
    assert!(listed.err.contains("→ keelway approve shop/carts/production@main@63bf7261"), "{}", listed.err);
    let path =
        "/v1/pipelines/shop/carts/environments/production/revisions/main@sha1:63bf726176d8e1a2b3c4d5e6f708192a3b4c5d6e/approval";
    answer(&api, &format!("POST {path}"), 204, Value::Null);
    for given in ["main@63bf7261", "63bf72617", revision] {
        let ran = api.run(&["approve", &format!("shop/carts/production@{given}")]);
        assert_eq!((ran.code, api.lines().pop().unwrap()), (0, format!("POST {path}")), "{given}: {}", ran.err);
    }
    // Any other revision goes as it is, and the API says what is awaited.
    let other = path.replace("main@sha1:63bf726176d8e1a2b3c4d5e6f708192a3b4c5d6e", "feature%2Fx");
    let detail = format!("production does not wait for feature/x: it waits for {revision}");
    answer(&api, &format!("POST {other}"), 422, json!({"title": "not awaited", "status": 422, "detail": detail}));
    let ran = api.run(&["approve", "shop/carts/production@feature/x"]);
    assert_eq!((ran.code, ran.err), (1, format!("error: not awaited: {detail}\n")));
}

#[test]
fn what_does_not_wait_is_told_with_what_it_does() {
    let api = shop();
    let none = api.run(&["approve", "shop/payments/staging"]);
    let unknown = api.run(&["pipeline", "approve", "shop/carts", "prod"]);
    let early = api.run(&["pipeline", "approve", "shop/payments", "production", "--wait", "700ms"]);
    let scoped = api.run(&["approve", "shop/carts/production", "--stage", "production"]);
    let all = [none, unknown, early, scoped].map(|ran| ran.shown(&[]));
    insta::assert_snapshot!(all.join("\n\n"));
    assert!(!api.lines().iter().any(|line| line.starts_with("POST")), "nothing was decided");
}

#[test]
fn an_approval_can_be_waited_for() {
    let api = Api::start();
    show(&api, &[pipeline("carts", "1.4.0", "x", &[healthy("dev", "1.4.0", &at(5)), healthy("production", "1.3.0", &at(1))])]);
    answer(&api, &format!("POST {APPROVAL}"), 204, Value::Null);
    let words = ["approve", "shop/carts/production@1.4.0", "--wait", "10m"];
    let child = api.keelway(&words).stdout(Stdio::piped()).spawn().unwrap();
    api.wait_for_more("GET /v1/pipelines/shop/carts", 2);
    show(&api, &[carts()]);
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.out.as_str()), (0, "approved: carts 1.4.0 to production of shop, which waited 12s\n"));
}

#[test]
fn both_kinds_that_wait_are_listed_and_neither_is_decided() {
    let api = shop();
    let mut event = crate::support::trigger("approval", "a-1");
    event["data"]["stage"] = json!("prod");
    api.world().open = vec![event];
    let listed = api.run(&["approve"]);
    let shown = [listed, api.run(&["get", "approvals"])].map(|ran| ran.shown(&[]));
    insta::assert_snapshot!(shown.join("\n\n"));
    assert!(!api.lines().iter().any(|line| line.starts_with("POST")), "nothing was decided");
    let json: Value = serde_json::from_str(&api.run(&["get", "approvals", "-o", "json"]).out).unwrap();
    assert_eq!((json["items"].as_array().map(Vec::len), &json["items"][1]["environment"]), (Some(2), &json!("production")));
    // A sequence that is named is decided as ever.
    api.can("POST /v1/project/shop/approval/context-of-a-1/a-1", json!({"keptnContext": "c", "result": "pass"}));
    assert_eq!(api.run(&["approve", "context-of-a-1"]).code, 0);
    assert_eq!(api.run(&["approve", "--stage", "prod"]).code, 0);
}

#[test]
fn a_token_of_one_project_is_shown_what_waits_there() {
    let api = shop();
    // The API itself leaves out what the token does not show.
    let ran = api.run(&["get", "approvals"]);
    assert_eq!((ran.code, ran.out.contains("shop/carts")), (0, true), "{}", ran.err);
    assert!(api.lines().iter().all(|line| !line.contains("namespace=")), "{:?}", api.lines());
    // One that shows no pipelines at all may still decide sequences; what was named is not passed over.
    let problem = json!({"title": "forbidden", "status": 403, "detail": "this needs read"});
    answer(&api, "GET /v1/pipelines", 403, problem);
    api.world().open = vec![crate::support::trigger("approval", "a-1")];
    let ran = api.run(&["get", "approvals"]);
    assert_eq!((ran.code, ran.out.contains("context-of-a-1")), (0, true), "{}", ran.err);
    api.can("POST /v1/project/shop/approval/context-of-a-1/a-1", json!({"keptnContext": "c", "result": "pass"}));
    assert_eq!(api.run(&["approve"]).code, 0);
    let named = api.run(&["get", "approvals", "-p", "shop"]);
    assert_eq!((named.code, named.err.as_str()), (1, "error: forbidden: this needs read\n"));
}

#[test]
fn a_key_signs_in_place_of_the_token() {
    let api = shop();
    answer(&api, &format!("POST {APPROVAL}"), 204, Value::Null);
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        write(&dir.path().join(name), text);
        dir.path().join(name).display().to_string()
    };
    let (bare, secret) = (file("bare", "k3y\n"), file("secret.json", crate::support::SECRET));
    let words = ["pipeline", "approve", "shop/carts", "production", "1.4.0", "--key-file"];
    let signed = |more: &[&str]| {
        let ran = Ran::of(api.keelway(&[&words[..], more].concat()).env_remove("KEELWAY_TOKEN").output().unwrap());
        (ran.code, api.world().asked.last().unwrap().key.clone(), ran.err)
    };
    let by = |id: &str| (0, Some(id.to_owned()), String::new());
    assert_eq!(signed(&[&bare, "--key-id", "2026-11"]), by("2026-11"));
    assert_eq!(signed(&[&secret]), by("2026-11"));
    assert_eq!(signed(&[&secret, "--key-id", "2026-10"]), by("2026-10"));
    // The key of another id: the answer is the same for every fault, so the command says what may be wrong.
    let (code, key, err) = signed(&[&bare, "--key-id", "2026-10"]);
    assert_eq!(
        (code, key, err.contains("--key-id") && err.contains("clock") && !err.contains("KEELWAY_TOKEN")),
        (1, None, true),
        "{err}"
    );
    let (code, _, err) = signed(&[&secret, "--key-id", "2020-01"]);
    assert_eq!((code, err.contains("no key \"2020-01\" that is still valid")), (2, true), "{err}");
    let (code, _, err) = signed(&[&file("empty", "\n")]);
    assert_eq!((code, err.contains("is empty")), (2, true), "{err}");
    // Signed for another installation, or for none.
    let (code, key, err) = signed(&[&secret, "--installation", "210987654321/eu-central-1/keelway"]);
    assert_eq!((code, key, err.contains("--installation")), (1, None, true), "{err}");
    let (code, _, err) = signed(&[&secret, "--installation", " "]);
    assert_eq!((code, err.contains("set KEELWAY_INSTALLATION")), (2, true), "{err}");
    // Without a token nothing can be read.
    let blind =
        api.keelway(&["pipeline", "approve", "shop/carts", "production", "--key-file", &bare]).env_remove("KEELWAY_TOKEN").output();
    let blind = Ran::of(blind.unwrap());
    assert_eq!((blind.code, blind.err.contains("give the REVISION")), (2, true), "{}", blind.err);
    // With both, what waits is read with the token, and the request is signed.
    let both = api.run(&["pipeline", "approve", "shop/carts", "production", "--key-file", &bare, "--key-id", "2026-11"]);
    assert_eq!((both.code, api.world().asked.last().unwrap().key.as_deref()), (0, Some("2026-11")), "{}", both.err);
    assert!(!both.shown(&[]).contains("k3y"));
}

#[test]
fn a_pipeline_is_steered() {
    let api = shop();
    let line = "POST /v1/pipelines/shop/carts/commands";
    let done = |change: Value| with(json!({"namespace": "shop", "name": "carts", "done": true}), change);
    let mut all = vec![];
    for (words, change, sent) in [
        (&["suspend", "-m", "freeze"][..], json!({}), json!({"command": "suspend", "message": "freeze", "by": "ada"})),
        (&["resume"], json!({}), json!({"command": "resume", "by": "ada"})),
        (&["hold", "production"], json!({}), json!({"command": "hold", "environment": "production", "by": "ada"})),
        (
            &["hold", "production", "--revision", "1.3.0"],
            json!({}),
            json!({"command": "hold", "environment": "production", "revision": "1.3.0", "by": "ada"}),
        ),
        (&["release", "production"], json!({}), json!({"command": "release", "environment": "production", "by": "ada"})),
        (&["abandon", "--revision", "1.4.0"], json!({}), json!({"command": "abandon", "revision": "1.4.0", "by": "ada"})),
        (
            &["abandon", "--revision", "1.4.0", "--environment", "production"],
            json!({}),
            json!({"command": "abandon", "revision": "1.4.0", "environment": "production", "by": "ada"}),
        ),
        (
            &["retry", "production"],
            json!({"promotion": promotion("1.4.0", "waiting", json!({"message": "attempted anew by ada"}))}),
            json!({"command": "retry", "environment": "production", "by": "ada"}),
        ),
        (
            &["abort", "production"],
            json!({"promotion": promotion("1.4.0", "abandoned", json!({}))}),
            json!({"command": "abort", "environment": "production", "by": "ada"}),
        ),
        (&["resume"], json!({"done": false}), json!({"command": "resume", "by": "ada"})),
    ] {
        api.can(line, done(change));
        let ran = api.run(&[&["pipeline", words[0], "carts"], &words[1..], &["-p", "shop"]].concat());
        assert_eq!((ran.code, body(&api)), (0, sent), "{words:?}: {}", ran.err);
        all.push(ran.out);
    }
    insta::assert_snapshot!(all.concat());
    let detail = "the promotion into production goes on: abort it first";
    answer(&api, line, 409, json!({"title": "conflict", "status": 409, "detail": detail}));
    let refused = api.run(&["pipeline", "retry", "shop/carts", "production"]);
    assert_eq!((refused.code, refused.err), (1, format!("error: conflict: {detail}\n")));
}

#[test]
fn a_deletion_asks_on_a_terminal() {
    let api = shop();
    answer(&api, "DELETE /v1/pipelines/shop/carts", 204, Value::Null);
    let words = ["delete", "pipeline", "carts", "-p", "shop"];
    let deleted = |api: &Api| api.lines().iter().filter(|line| line.starts_with("DELETE")).count();
    let (code, seen) = Screen::typing(&mut api.keelway(&words), (100, 24), Some("n\n")).ended();
    assert_eq!((code, deleted(&api)), (1, 0), "{seen}");
    assert!(seen.contains("Delete pipeline shop/carts?") && seen.contains("pipeline shop/carts is not deleted"), "{seen}");
    let (code, seen) = Screen::typing(&mut api.keelway(&words), (100, 24), Some("y\n")).ended();
    assert_eq!((code, deleted(&api)), (0, 1), "{seen}");
    assert!(seen.replace('\n', "").ends_with("pipeline shop/carts: deleted"), "{seen}");
    let (code, seen) = Screen::typing(&mut api.keelway(&[&words[..], &["--yes"]].concat()), (100, 24), Some("n\n")).ended();
    assert_eq!((code, deleted(&api), seen.contains("[y/N]")), (0, 2, false), "{seen}");
    // Nobody is there to answer.
    for (words, line) in [
        (&["delete", "cluster", "eu-1", "-p", "shop"][..], "DELETE /v1/clusters/shop/eu-1"),
        (&["delete", "githost", "github"], "DELETE /v1/githosts/github"),
    ] {
        let unknown = api.run(words);
        assert_eq!((unknown.code, unknown.err.contains("not known here")), (1, true), "{}", unknown.err);
        answer(&api, line, 204, Value::Null);
        let ran = api.run(words);
        assert!(ran.code == 0 && ran.out.ends_with(": deleted\n") && ran.err.is_empty(), "{ran:?}");
    }
}

#[test]
fn observations_are_checked_here_and_sent_together() {
    let api = Api::start();
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        write(&dir.path().join(name), text);
        dir.path().join(name).display().to_string()
    };
    let object =
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: carts, namespace: dev, resourceVersion: '7'}\n";
    let fact = r#"{"apiVersion": "x/v1", "kind": "App", "name": "orders", "namespace": "dev", "ready": true, "revision": "1.10"}"#;
    let several = file("several.yaml", &format!("{object}---\n{fact}\n---\nkind: List\nitems:\n- {fact}\n"));
    let newer = |kind: &str, name: &str, newer: bool| json!({"kind": kind, "name": name, "namespace": "dev", "cluster": "shop/eu-1", "version": 7, "suspended": kind == "HelmRelease", "newer": newer});
    api.can(
        "POST /v1/observations",
        json!({"facts": [newer("HelmRelease", "carts", true), newer("App", "orders", true), newer("App", "orders", false)]}),
    );
    let ran = api.run(&["observe", "-f", &several, "--cluster", "shop/eu-1"]);
    insta::assert_snapshot!(ran.shown(&[]));
    assert_eq!(api.lines(), ["POST /v1/observations?cluster=shop%2Feu-1"]);
    let sent = body(&api);
    assert_eq!(
        (sent.as_array().map(Vec::len), &sent[1]["revision"], &sent[0]["metadata"]["name"]),
        (Some(3), &json!("1.10"), &json!("carts"))
    );

    let bad = file("bad.yaml", &format!("{fact}\n---\n{}", object.replace("name: carts", "name: ''")));
    let refused = api.run(&["observe", "-f", &bad, "--cluster", "eu-1"]);
    insta::assert_snapshot!(refused.shown(&[(&bad, "<FILE>")]));
    let garbled = api.run(&["observe", "-f", &file("garbled.yaml", "a: [")]);
    assert_eq!((garbled.code, garbled.err.contains("is neither YAML nor JSON")), (2, true), "{}", garbled.err);
    let empty = api.run(&["observe", "-f", &file("empty.yaml", "---\n")]);
    assert_eq!((empty.code, empty.err.contains("nothing was observed")), (1, true), "{}", empty.err);
    assert_eq!(api.lines().len(), 1, "nothing of this was sent");
}

#[test]
fn clusters_and_git_hosts_as_tables() {
    let api = Api::start();
    let cluster = json!({"kind": "Cluster", "namespace": "shop", "name": "eu-1", "spec": {"server": "https://eu-1.example", "secret": "eu-1-token"}, "appliedAt": at(0), "version": 1});
    let host = json!({"kind": "GitHost", "name": "github", "spec": {"host": "github.com", "type": "github", "api": "https://api.github.com", "secret": "github"}, "appliedAt": at(0), "version": 2});
    api.can("GET /v1/clusters", json!({"items": [cluster], "nextPageKey": "0"}));
    api.can("GET /v1/githosts", json!({"items": [host.clone()], "nextPageKey": "0"}));
    api.can("GET /v1/githosts/github", host);
    let wide = [&["get", "clusters", "-p", "shop", "-o", "wide"][..], &["get", "githosts", "-o", "wide"]];
    let shown = wide.map(|words| format!("$ keelway {}\n{}", words.join(" "), api.run(words).out));
    insta::assert_snapshot!(shown.join("\n"));
    assert_eq!(api.lines()[0], "GET /v1/clusters?namespace=shop&pageSize=100");
    let json: Value = serde_json::from_str(&api.run(&["get", "githost", "github", "-o", "json"]).out).unwrap();
    assert_eq!(json["spec"]["host"], "github.com");
    assert!(api.run(&["get", "clusters"]).out.starts_with("NAMESPACE  NAME  SERVER"));
}

#[test]
fn sources_of_metrics_as_a_table() {
    let api = Api::start();
    let of = |name: &str, spec: Value| json!({"kind": "MetricsSource", "namespace": "shop", "name": name, "spec": spec, "appliedAt": at(0), "version": 1});
    let cloud = of("cloud", json!({"cloudwatch": {"region": "eu-west-1"}}));
    let prometheus = of("numbers", json!({"prometheus": {"url": "https://p.example", "secret": "key"}, "delay": 30_000}));
    api.can("GET /v1/metricsSources", json!({"items": [cloud, prometheus], "nextPageKey": "0"}));
    let shown = api.run(&["get", "metricssources", "-p", "shop"]).out;
    let rows: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().take(5).collect()).collect();
    assert_eq!(rows[0], ["NAMESPACE", "NAME", "API", "URL", "REGION"]);
    assert_eq!(
        rows[1..],
        [["shop", "cloud", "cloudwatch", "-", "eu-west-1"], ["shop", "numbers", "prometheus", "https://p.example", "-"]]
    );
    let wide = api.run(&["get", "metricssources", "-p", "shop", "-o", "wide"]).out;
    assert!(wide.contains("SECRET") && wide.contains("key"), "{wide}");
}

#[test]
fn manifests_of_every_kind_are_applied() {
    let api = Api::start();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("all.yaml");
    let kinds =
        [("Project", "shop", "shop"), ("Pipeline", "carts", "shop"), ("Cluster", "eu-1", "shop"), ("GitHost", "github", "")];
    let applied =
        kinds.map(|(kind, name, project)| json!({"kind": kind, "name": name, "project": project, "changed": kind != "Cluster"}));
    api.can("POST /v1/apply", json!({"applied": applied}));
    write(&file, "apiVersion: keelway.dev/v1\nkind: Project\nmetadata:\n  name: shop\n");
    let ran = api.run(&["apply", "-f", &file.display().to_string()]);
    assert_eq!(
        ran.out, "project shop: applied\npipeline shop/carts: applied\ncluster shop/eu-1: unchanged\ngit host github: applied\n",
        "{}",
        ran.err
    );
}
