//! `retry`, `trigger evaluation` and `get queue`: what is asked of the API, and what is shown.

use crate::support::Api;
use serde_json::{Value, json};

const CONTEXT: &str = "139a703f-55b1-4d29-9f4b-2d3a5d3a9d11";

fn body(api: &Api) -> Value {
    serde_json::from_str(&api.world().asked.last().unwrap().body).unwrap()
}

#[test]
fn a_retry_names_what_is_repeated() {
    let api = Api::start();
    let path = format!("POST /v1/sequence/shop/{CONTEXT}/retry");
    api.can(
        &path,
        json!({"keptnContext": CONTEXT, "detail": "sequence delivery of service carts in stage dev is repeated from task test on"}),
    );
    let ran = api.run(&["retry", CONTEXT, "--project", "shop"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(ran.out, "retry: sequence delivery of service carts in stage dev is repeated from task test on\n");
    assert!(ran.err.contains(&format!("keelway watch {CONTEXT} --project shop")), "{}", ran.err);
    assert_eq!(body(&api), json!({}));
    assert_eq!(api.run(&["retry", CONTEXT, "--project", "shop", "--stage", "dev", "--from", "build"]).code, 0);
    assert_eq!(body(&api), json!({"stage": "dev", "from": "build"}));

    let refusal = json!({"title": "conflict", "status": 409, "detail": "the sequence is still running: abort it first"});
    api.world().canned.insert(path, (409, refusal));
    let refused = api.run(&["retry", CONTEXT, "--project", "shop"]);
    assert_eq!((refused.code, refused.err.contains("abort it first")), (1, true), "{}", refused.err);
}

#[test]
fn the_window_of_an_evaluation_is_computed_here() {
    let api = Api::start();
    api.can("POST /v1/project/shop/stage/dev/service/carts/evaluation", json!({"keptnContext": CONTEXT}));
    let words = ["trigger", "evaluation", "--project", "shop", "--stage", "dev", "--service", "carts"];
    let ran = api.run(&[&words[..], &["--start", "2026-11-20T10:00:00Z", "--timeframe", "10m", "-l", "build=7"]].concat());
    assert_eq!((ran.code, ran.out.contains(CONTEXT)), (0, true), "{} {}", ran.out, ran.err);
    let sent = body(&api);
    let expected = json!(["2026-11-20T10:00:00.000Z", "2026-11-20T10:10:00.000Z", {"build": "7"}]);
    assert_eq!(json!([sent["start"], sent["end"], sent["labels"]]), expected);

    let asked = api.lines().len();
    let wrong = api.run(&[&words[..], &["--start", "yesterday"]].concat());
    assert_eq!((wrong.code, wrong.err.contains("--start: ")), (2, true), "{}", wrong.err);
    assert_eq!(api.lines().len(), asked, "nothing is sent");
}

#[test]
fn the_queue_says_who_stands_where_and_behind_what() {
    let api = Api::start();
    let execution = |context: &str, position: Option<u32>| {
        let mut x = json!({"keptnContext": context, "shkeptncontext": context, "sequence": "delivery", "stage": "dev", "service": "carts",
            "state": "waiting", "image": format!("carts:{context}")});
        if let Some(position) = position {
            x["position"] = position.into();
        }
        x
    };
    let waiting = [execution("bbbbbbbb-2", Some(1)), execution("cccccccc-3", Some(2))];
    let queue = json!({"service": "carts", "stage": "dev", "holder": execution("aaaaaaaa-1", None), "waiting": waiting});
    api.can("GET /v1/project/shop/queue", json!({"items": [queue], "now": "2026-11-20T12:00:00Z"}));
    let ran = api.run(&["get", "queue", "--project", "shop"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(lines[1].contains("bbbbbbbb") && lines[1].contains("aaaaaaaa delivery"), "{}", ran.out);
    assert!(lines[2].contains("cccccccc") && lines[2].trim_end().ends_with("#1"), "{}", ran.out);
    api.can("GET /v1/project/shop/queue", json!({"items": [], "now": "2026-11-20T12:00:00Z"}));
    assert!(api.run(&["get", "queue", "--project", "shop"]).err.contains("nothing waits for its turn"));
}

#[test]
fn schedules_say_when_they_trigger_next_and_what_happened_last() {
    let api = Api::start();
    let base = json!({"project": "shop", "stage": "dev", "sequence": "smoke", "services": ["carts"], "planned": true});
    let schedule = |name: &str, rest: Value| {
        let mut one = base.clone();
        one["name"] = json!(name);
        one.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        one
    };
    let last = json!({"at": "2026-11-20T11:00:00Z", "firedAt": "2026-11-20T11:00:01Z", "skipped": ["carts"]});
    let all = [
        schedule("nightly", json!({"cron": "30 2 * * *", "zone": "Europe/Berlin", "next": "2026-11-21T01:30:00Z", "last": last})),
        schedule("off", json!({"cron": "0 * * * *", "suspended": true})),
        schedule("once", json!({"at": "2026-11-19T12:00:00Z"})),
    ];
    api.can("GET /v1/schedules/shop", json!({"items": all, "nextPageKey": "0", "now": "2026-11-20T12:00:00Z"}));
    let ran = api.run(&["get", "schedules", "--project", "shop"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(lines[1].contains("30 2 * * * Europe/Berlin") && lines[1].contains("(in 13h30m)"), "{}", ran.out);
    assert!(lines[1].trim_end().ends_with("1h00m ago; carts skipped: still running"), "{}", ran.out);
    assert!(lines[2].contains("suspended") && lines[3].contains("never"), "{}", ran.out);
    api.can("DELETE /v1/schedules/shop/nightly", Value::Null);
    let ran = api.run(&["delete", "schedule", "nightly", "-p", "shop", "--yes"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "schedule nightly of project shop: deleted\n"), "{}", ran.err);
}

#[test]
fn an_override_says_why_and_what_waits_says_what_for() {
    let api = Api::start();
    let path = format!("POST /v1/sequence/shop/{CONTEXT}/override");
    api.can(&path, json!({"keptnContext": CONTEXT, "detail": "1 sequence in stage prod begins as soon as it has its turn, although the stage is closed"}));
    let ran = api.run(&["override", CONTEXT, "--project", "shop", "-m", "fixes INC-7", "--by", "ann"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(ran.out, "override: 1 sequence in stage prod begins as soon as it has its turn, although the stage is closed\n");
    assert_eq!(body(&api), json!({"reason": "fixes INC-7", "by": "ann"}));
    assert_eq!(api.run(&["override", CONTEXT, "-p", "shop", "-r", "now", "--stage", "prod", "--by", ""]).code, 0);
    assert_eq!(body(&api), json!({"reason": "now", "stage": "prod"}));
    let ran = api.run(&["override", CONTEXT, "--project", "shop"]);
    assert_eq!((ran.code, ran.err.contains("--message")), (2, true), "{}", ran.err);

    let waits =
        json!({"reason": "window", "since": "2026-11-20T11:00:00Z", "until": "2026-11-20T17:00:00Z", "window": "quarter end"});
    let x = json!({"shkeptncontext": "bbbbbbbb-2", "sequence": "delivery", "stage": "prod", "service": "carts", "state": "waiting", "phase": "frozen",
        "position": 1, "waits": waits});
    let queue = json!({"service": "carts", "stage": "prod", "waiting": [x]});
    api.can("GET /v1/project/shop/queue", json!({"items": [queue], "now": "2026-11-20T12:00:00Z"}));
    let ran = api.run(&["get", "queue", "--project", "shop"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let line = ran.out.lines().nth(1).unwrap();
    assert!(line.contains("1h00m") && line.trim_end().ends_with("frozen for 5h00m: quarter end"), "{}", ran.out);
}

#[test]
fn executions_are_listed_one_by_one() {
    let api = Api::start();
    let execution = |id: &str, at: &str| {
        json!({"id": id, "project": "shop", "shkeptncontext": CONTEXT, "service": id, "stage": "dev", "sequence": "delivery", "state": "finished",
            "result": "pass", "acceptedAt": format!("2026-11-21T08:00:{at}.000Z")})
    };
    let page = |next: u64| {
        let executions = [execution("late", "09"), execution("early", "01")];
        json!({"sequenceExecutions": executions, "nextPageKey": next, "pageSize": 100, "totalCount": 2, "now": "2026-11-21T08:00:42.000Z"})
    };
    api.can("GET /v1/sequence-execution", page(0));
    let words = ["get", "executions", CONTEXT, "-p", "shop", "--stage", "dev", "--state", "finished"];
    let ran = api.run(&words);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let place = |service: &str| ran.out.lines().position(|line| line.starts_with(service));
    assert!(place("early").is_some_and(|early| place("late").is_some_and(|late| early < late)), "oldest first: {}", ran.out);
    let heads: Vec<&str> = ran.out.lines().next().unwrap_or_default().split_whitespace().collect();
    assert_eq!(heads, ["SERVICE", "STAGE", "SEQUENCE", "VERSION", "CONTEXT", "AGE", "STATE"]);
    assert!(ran.out.lines().all(|line| line.chars().count() <= 80) && ran.out.contains('✓'), "{}", ran.out);
    let wide = api.run(&[&words[..], &["-o", "wide"]].concat());
    assert!(wide.out.contains("ACCEPTED") && wide.out.contains(CONTEXT), "{}", wide.out);
    let asked = api.lines().into_iter().find(|line| line.contains("sequence-execution")).unwrap();
    for part in [format!("keptnContext={CONTEXT}"), "project=shop".into(), "stage=dev".into(), "status=finished".into()] {
        assert!(asked.contains(&part), "{asked}");
    }
    // Pages are followed up to the limit, and then it is said that there is more.
    api.can("GET /v1/sequence-execution", page(7));
    let some = api.run(&[&words[..], &["--limit", "3", "-o", "json"]].concat());
    let data: Value = serde_json::from_str(&some.out).unwrap();
    assert_eq!((data["items"].as_array().unwrap().len(), some.err.contains("--limit")), (3, true), "{}", some.err);
    assert!(api.lines().last().unwrap().contains("nextPageKey=7"));
}
