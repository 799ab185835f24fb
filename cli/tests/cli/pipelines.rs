//! What a person sees of pipelines: on terminals of 80, 100 and 160 columns, in a pipe, and as data.

use crate::support::pipelines::{at, awaiting, behind, carts, healthy, payments, pipeline, promoted, promotion, show, with};
use crate::support::screen::Screen;
use crate::support::{Api, NOW, Running};
use serde_json::{Value, json};

fn widest(shown: &str) -> usize {
    shown.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

fn shop() -> Api {
    let api = Api::start();
    show(&api, &[carts(), payments()]);
    api
}

#[test]
fn pipelines_on_terminals_of_every_size() {
    let api = shop();
    let mut all = vec![];
    for width in [160, 100, 80] {
        for words in [&["pipeline", "list", "-p", "shop"][..], &["pipeline", "status", "carts", "-p", "shop"]] {
            let (code, seen) = Screen::start(&mut api.keelway(words), width, 24).ended();
            assert_eq!((code, widest(&seen) <= width), (0, true), "{seen}");
            all.push(format!("{width} columns: {}\n{seen}", words.join(" ")));
        }
    }
    let ascii = Screen::start(&mut api.keelway(&["get", "pipelines", "-p", "shop", "--ascii"]), 100, 24).ended().1;
    assert!(ascii.is_ascii(), "{ascii}");
    all.push(format!("100 columns, --ascii\n{ascii}"));
    insta::assert_snapshot!(all.join("\n\n"));
}

#[test]
fn every_wait_and_every_end_says_why() {
    let api = Api::start();
    let to = |phase: &str, change: Value| behind("prod", promotion("1.4.0", phase, change));
    let by_ann = |message: &str| json!({"revision": "1.3.0", "by": "ann", "at": at(12), "message": message});
    let gate = |reason: &str| json!({"reason": reason, "message": "closed"});
    let soaking = with(to("waiting", gate("Soaking")), json!({"nextOpening": "2026-11-21T10:00:42.000Z"}));
    let quorum = with(awaiting("prod", "1.4.0"), json!({"waitingApproval": {"revision": "1.4.0", "given": 1, "needed": 3}}));
    let unknown = json!([{"namespace": "prod", "ready": false, "error": "connection refused"}]);
    let failed = json!({"reason": "Broken", "message": "the host answered 500", "attempts": 1});
    let ends = [
        soaking,
        with(to("waiting", gate("Held")), json!({"hold": by_ann("")})),
        quorum,
        to("waiting", gate("Evaluating")),
        to("waiting", json!({"reason": "EvaluationFailed", "message": "the evaluation of 1.4.0 in dev failed with a score of 50"})),
        to("attempting", json!({"attempts": 2, "attemptedAt": at(40)})),
        to("created", json!({"keptnContext": "139a703f-1f7e-5abc-8123-5d2a5ef11ecf", "attemptedAt": at(40)})),
        to("failed", with(failed.clone(), json!({"retryAt": "2026-11-21T08:01:10.000Z"}))),
        to("failed", failed),
        to("succeeded", json!({})),
        to("succeeded", json!({"completed": true})),
        to("rejected", json!({"reason": "Rejected", "message": "rejected by ann (too slow)"})),
        with(healthy("prod", "1.3.0", &at(1)), json!({"hold": by_ann("incident 7")})),
        json!({"name": "prod", "manual": false, "targets": unknown}),
        json!({"name": "prod", "manual": false, "targets": [{"namespace": "prod", "ready": false}]}),
    ];
    let states: Vec<Value> = ends
        .into_iter()
        .enumerate()
        .map(|(n, end)| pipeline(&format!("app-{n:02}"), "1.4.0", "x", &[healthy("dev", "1.4.0", &at(5)), end]))
        .collect();
    let unready = json!([{"namespace": "a", "revision": "1.5.0", "ready": true, "observedAt": at(1)}, {"namespace": "b", "revision": "1.4.0", "ready": false, "observedAt": at(1)}]);
    let first = json!({"name": "dev", "manual": false, "targets": unready});
    let mut nothing = pipeline("app-90", "", "Waiting for all targets to be ready", std::slice::from_ref(&first));
    nothing["run"] = Value::Null;
    let suspended = with(carts(), json!({"name": "app-91", "suspended": {"by": "ann", "at": at(2), "message": "freeze"}}));
    let mixed = pipeline("app-92", "1.4.0", "x", &[first, promoted("prod", "1.4.0")]);
    show(&api, &[states, vec![nothing, suspended, mixed]].concat());
    let seen = Screen::start(&mut api.keelway(&["pipeline", "list", "-p", "shop"]), 130, 40).ended().1;
    insta::assert_snapshot!(seen);
}

#[test]
fn status_tells_holds_requests_and_faults() {
    let api = shop();
    let hold = json!({"hold": {"revision": "1.3.0", "by": "ann", "at": at(12), "message": "incident 7"}});
    let mut held = carts();
    held["environments"][2] = with(held["environments"][2].clone(), hold);
    held["environments"][2]["promotion"]["approvals"] = json!([{"by": "bob", "at": at(31)}]);
    held["environments"][1]["closing"] = json!([payments()["environments"][1]["promotion"]]);
    show(&api, &[held, payments()]);
    let shown = [
        &["pipeline", "status", "shop/carts"][..],
        &["get", "pipeline", "payments", "-p", "shop"],
        &["pipeline", "status", "shop/payments", "-o", "wide"],
    ]
    .map(|words| format!("$ keelway {}\n{}", words.join(" "), api.run(words).shown(&[])));
    insta::assert_snapshot!(shown.join("\n\n"));
    let json: Value = serde_json::from_str(&api.run(&["pipeline", "status", "shop/carts", "-o", "json"]).out).unwrap();
    assert_eq!(json["environments"][2]["waitingApproval"]["revision"], "1.4.0");
    let yaml = api.run(&["pipeline", "status", "shop/carts", "-o", "yaml"]).out;
    // 1.4.0 is a text in YAML as well, and other texts that look like numbers stay texts.
    assert_eq!(serde_saphyr::from_str::<Value>(&yaml).unwrap(), json, "{yaml}");
}

#[test]
fn a_watch_draws_the_pipeline_again_in_its_place() {
    let api = shop();
    let screen = Screen::start(&mut api.keelway(&["pipeline", "status", "carts", "-p", "shop", "--watch", "--exit-code"]), 100, 24);
    screen.wait_for("→ keelway approve shop/carts/production@1.4.0");
    let environments = ["staging", "production"].map(|name| promoted(name, "1.4.0"));
    show(&api, &[pipeline("carts", "1.4.0", "", &[vec![healthy("dev", "1.4.0", &at(5))], environments.to_vec()].concat())]);
    let (code, seen) = screen.ended();
    assert_eq!(code, 0);
    insta::assert_snapshot!(seen);
}

#[test]
fn a_watch_in_a_pipe_prints_what_changes_and_ends_where_a_person_is_needed() {
    let api = shop();
    let words = ["pipeline", "status", "carts", "-p", "shop", "--watch"];
    let stopped = api.run(&[&words[..], &["--for-approval"]].concat());
    assert_eq!((stopped.code, stopped.out.contains("production ⏸ approval")), (0, true), "{stopped:?}");
    let waits = api.run(&[&words[..], &["--for-approval", "--exit-code"]].concat());
    assert_eq!(waits.code, 0, "it waits for what it was asked to wait for: {waits:?}");
    let mut failed = carts();
    failed["environments"][1] =
        behind("staging", promotion("1.4.0", "failed", json!({"reason": "AttemptFailed", "message": "exit code 1"})));
    show(&api, &[failed]);
    let failed = api.run(&[&words[..], &["--for-approval", "--exit-code"]].concat());
    assert_eq!((failed.code, failed.out.contains("production ⏸ approval")), (1, true), "{failed:?}");
    show(&api, &[carts()]);
    let late = api.run(&[&words[..], &["--timeout", "700ms"]].concat());
    assert_eq!((late.code, late.err.contains("keelway pipeline explain shop/carts")), (1, true), "{}", late.err);
    let mut running = Running::start(&mut api.keelway(&[&words[..], &["--exit-code"]].concat()));
    running.wait_for("→ keelway approve shop/carts/production@1.4.0");
    api.wait_for_more("GET /v1/pipelines/shop/carts", 3);
    let rejected = json!({"reason": "Rejected", "message": "rejected by ann (too slow)"});
    let mut state = carts();
    state["environments"][2] = behind("production", promotion("1.4.0", "rejected", rejected));
    show(&api, &[state]);
    assert_eq!(running.ended(), 1, "not every environment runs it");
    insta::assert_snapshot!(running.printed());
}

#[test]
fn explain_names_the_gate_and_when_it_opens() {
    let api = Api::start();
    let one = |environment: &str, reason: &str, message: &str, remedy: &str| json!({"environment": environment, "done": false, "reason": reason, "message": message, "remedy": remedy});
    let soak = with(
        one(
            "staging",
            "Soaking",
            "1.4.0 must be healthy in dev for 1h: until 2026-11-23T08:00:00.000Z",
            "nothing: it opens by itself",
        ),
        json!({"opens": "2026-11-23T08:00:00.000Z"}),
    );
    let environments = json!([
        {"environment": "dev", "done": true, "reason": "", "message": "", "remedy": ""},
        soak,
        one("production", "WaitingForEnvironment", "staging is not done: production comes after it", "let staging run 1.4.0 and be healthy")
    ]);
    let answer = json!({"namespace": "shop", "name": "carts", "revision": "1.4.0", "environments": environments, "now": NOW});
    api.can("GET /v1/pipelines/shop/carts/explain", answer);
    let (code, seen) = Screen::start(&mut api.keelway(&["pipeline", "explain", "carts", "-p", "shop"]), 60, 24).ended();
    assert_eq!((code, widest(&seen) <= 60), (0, true), "{seen}");
    insta::assert_snapshot!(seen);
    let needed = one(
        "production",
        "ApprovalNeeded",
        "1.4.0 waits for approval for production",
        "approve 1.4.0 for production, or reject it",
    );
    let failed = one(
        "staging",
        "EvaluationFailed",
        "the evaluation of 1.4.0 in dev failed with a score of 50: error_rate is 2.5, not <1",
        "mend what the message names, and retry staging",
    );
    let again = with(
        one("eu", "Broken", "the host answered 500", "nothing: it is attempted again; or retry it now"),
        json!({"opens": at(59)}),
    );
    let answer =
        json!({"namespace": "shop", "name": "carts", "revision": "1.4.0", "environments": [failed, needed, again], "now": NOW});
    api.can("GET /v1/pipelines/shop/carts/explain", answer.clone());
    insta::assert_snapshot!(api.run(&["pipeline", "explain", "carts", "-p", "shop", "--ascii"]).out);
    let one = api.run(&["pipeline", "explain", "shop/carts", "--environment", "production"]);
    assert_eq!((one.code, one.out.contains("approve 1.4.0"), one.out.contains("500")), (0, true, false), "{}", one.out);
    let none = api.run(&["pipeline", "explain", "shop/carts", "-e", "prod"]);
    assert_eq!(none.err, "error: there is no environment \"prod\" in shop/carts: it has staging, production, eu\n");
}

#[test]
fn history_pull_requests_and_manifests() {
    let api = Api::start();
    let past = |environment: &str, phase: &str, change: Value| {
        with(promotion("1.3.0", phase, change), json!({"environment": environment, "at": at(40)}))
    };
    let request = json!({"number": 6, "url": "https://git.example/shop/config/pulls/6", "branch": "keelway/x"});
    // It was done long before the next revision came; when the earlier one was, was not kept.
    let merged =
        json!({"message": "merged by ann", "approvals": [{"by": "bob", "at": at(1)}], "completed": true, "doneAt": at(12)});
    let promotions = json!([
        past("production", "abandoned", json!({"reason": "Superseded", "message": "superseded by 1.4.0", "pullRequest": request})),
        past("staging", "succeeded", merged),
        past("dev", "succeeded", json!({"message": "merged by eve", "completed": true})),
    ]);
    let commands = json!([
        {"at": at(41), "command": "suspend", "by": "ann", "message": "a freeze"},
        {"at": at(1), "command": "approve", "environment": "staging", "revision": "1.3.0", "by": "bob"},
    ]);
    api.can(
        "GET /v1/pipelines/shop/carts/history",
        json!({"items": promotions, "commands": commands, "nextPageKey": "0", "now": NOW}),
    );
    let open = |closing: bool, number: u64| json!({"environment": "production", "revision": "1.4.0", "repository": "https://git.example/shop/config", "closing": closing, "number": number, "url": format!("https://git.example/shop/config/pulls/{number}"), "branch": "keelway/x", "mergeable": true});
    api.can("GET /v1/pipelines/shop/carts/pull-requests", json!({"pullRequests": [open(false, 7), open(true, 6)], "now": NOW}));
    let source = "# as it was applied\nkind: Pipeline\n";
    for path in ["pipelines/shop/carts", "clusters/shop/eu-1", "githosts/github"] {
        api.can(&format!("GET /v1/{path}/manifest"), json!(source));
    }
    let of = |words: &[&str]| format!("$ keelway {}\n{}", words.join(" "), api.run(words).shown(&[]));
    let shown = [
        of(&["pipeline", "history", "carts", "-p", "shop"]),
        of(&["pipeline", "history", "shop/carts", "--environment", "staging", "-o", "wide"]),
        of(&["pipeline", "pull-requests", "shop/carts"]),
    ];
    insta::assert_snapshot!(shown.join("\n\n"));
    for words in [
        &["pipeline", "manifest", "carts", "-p", "shop"][..],
        &["get", "pipeline", "shop/carts", "-o", "yaml"],
        &["get", "cluster", "eu-1", "-p", "shop", "-o", "yaml"],
        &["get", "githost", "github", "-o", "yaml"],
    ] {
        assert_eq!(api.run(words).out, source, "{words:?}");
    }
}

#[test]
fn the_namespace_is_the_flags_the_variables_or_of_a_list_every_one() {
    let api = shop();
    let asked = |command: &mut std::process::Command| {
        assert!(command.output().unwrap().status.success());
        api.lines().into_iter().rfind(|line| line.starts_with("GET /v1/pipelines?")).unwrap()
    };
    let line = |namespace: &str| format!("GET /v1/pipelines?namespace={namespace}&pageSize=100");
    let every = "GET /v1/pipelines?pageSize=100";
    // Those of several projects may have the same name.
    let (all, one) = (api.run(&["pipeline", "list"]).out, api.run(&["pipeline", "list", "-p", "shop"]).out);
    assert!(all.starts_with("shop/carts ") && one.starts_with("carts "), "{all}{one}");
    // By default it shows 50.
    assert_eq!(asked(&mut api.keelway(&["pipeline", "list", "-o", "wide"])), "GET /v1/pipelines?pageSize=50");
    assert_eq!(asked(&mut api.keelway(&["get", "pipelines"])), every);
    assert_eq!(asked(api.keelway(&["pipeline", "list", "-A", "--limit", "200"]).env("KEELWAY_PROJECT", "shop")), every);
    assert_eq!(asked(api.keelway(&["get", "pipelines"]).env("KEELWAY_PROJECT", "shop")), line("shop"));
    assert_eq!(asked(api.keelway(&["get", "pipelines", "-p", "store"]).env("KEELWAY_PROJECT", "shop")), line("store"));
    api.can("GET /v1/pipelines", json!({"items": [], "nextPageKey": "0"}));
    let none = api.run(&["pipeline", "list", "-p", "shop"]);
    assert_eq!((none.code, none.err.contains("project shop has no pipeline"), none.err.contains("-A")), (0, true, true));
    let none = api.run(&["pipeline", "list"]);
    assert_eq!((none.code, none.err.contains("none that this token shows")), (0, true), "{}", none.err);
    let by_default = api.run(&["pipeline", "status", "carts"]);
    assert_eq!((by_default.code, api.lines().pop().unwrap()), (1, "GET /v1/pipelines/default/carts".to_owned()));
    let unknown = json!({"title": "unknown pipeline", "status": 404, "detail": "pipeline \"cart\" does not exist in namespace \"shop\": did you mean carts?"});
    api.world().canned.insert("GET /v1/pipelines/shop/cart".into(), (404, unknown));
    let unknown = api.run(&["pipeline", "status", "shop/cart"]);
    assert_eq!((unknown.code, unknown.err.contains("did you mean carts?")), (1, true), "{}", unknown.err);
}
