//! What an answer to a task may be: it fits its trigger, or the client learns what would.

use crate::stand::Stand;
use serde_json::{Value, json};

const STAGES: &str = "
    - name: dev
      sequences:
        - name: delivery
          tasks: [{name: build}, {name: check}]
    - name: prod
      sequences:
        - name: delivery
          tasks:
            - name: approval
              properties: {pass: manual, warning: manual}
            - name: release
";

/// A stand on which this sequence of that stage waits for an answer to its first task.
async fn stand(stage: &str, task: &str) -> (Stand, Value) {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    stand.apply("other", STAGES).await;
    stand.trigger("shop", stage, "delivery", "cart").await;
    let open = stand.open(task).await;
    (stand, open)
}

/// The answer `<task>.<kind>` to this trigger, merged with `more`.
fn reply(open: &Value, kind: &str, more: Value) -> Value {
    let ty = open["type"].as_str().unwrap().replace("triggered", kind);
    let mut event = json!({
        "type": ty, "source": "executor", "id": format!("{kind}-1"), "shkeptncontext": open["shkeptncontext"], "triggeredid": open["id"],
        "data": {"project": "shop", "stage": open["data"]["stage"], "service": "cart"}
    });
    if kind == "finished" {
        event["data"]["result"] = json!("pass");
        event["data"]["status"] = json!("succeeded");
    }
    merge(&mut event, more);
    event
}

fn merge(into: &mut Value, from: Value) {
    match from {
        Value::Object(members) => members.into_iter().for_each(|(name, value)| merge(&mut into[name], value)),
        other => *into = other,
    }
}

#[tokio::test]
async fn an_answer_has_the_type_stage_and_service_of_its_trigger() {
    let (mut stand, open) = stand("dev", "build").await;
    let right = "answer it with type \"sh.keptn.event.build.KIND\", data.stage \"dev\" and data.service \"cart\"";
    for kind in ["started", "status.changed", "finished"] {
        let n = stand.world.core().bus.log.len();
        for (more, field) in [
            (json!({"type": format!("sh.keptn.event.nobody.{kind}")}), "type: is \"sh.keptn.event.nobody."),
            (json!({"type": format!("sh.keptn.event.check.{kind}")}), "type: is \"sh.keptn.event.check."),
            (json!({"data": {"stage": "prod"}}), "data.stage: is \"prod\""),
            (json!({"data": {"stage": "nowhere"}}), "data.stage: is \"nowhere\""),
            (json!({"data": {"service": "orders"}}), "data.service: is \"orders\""),
        ] {
            let answer = stand.post("/v1/event", &reply(&open, kind, more.clone())).await;
            assert_eq!(answer.status, 400, "{kind} {more}: {answer:?}");
            let (problem, right) = (answer.problem(), right.replace("KIND", kind));
            assert!(problem.starts_with(field) && problem.ends_with(&right), "{kind} {more}: {problem}");
        }
        assert_eq!(stand.world.core().bus.log.len(), n, "nothing was published");
        assert_eq!(stand.post("/v1/event", &reply(&open, kind, json!({}))).await.status, 200, "{kind}");
        stand.work().await;
    }
    assert_eq!(stand.open("check").await["data"]["service"], "cart", "the right one counted");
    // A late answer is no error of its sender: it is kept as stale.
    assert_eq!(stand.post("/v1/event", &reply(&open, "started", json!({"id": "late"}))).await.status, 200);
}

#[tokio::test]
async fn an_answer_to_nothing_is_refused() {
    let (stand, open) = stand("dev", "build").await;
    let other = "d9428888-122b-81e1-9b85-61cd3cbb3210";
    let missing = "send triggeredid, shkeptncontext and data.project as the .triggered event has them";
    for kind in ["started", "status.changed", "finished"] {
        for (more, status, says) in [
            (json!({"triggeredid": "nonsense"}), 400, "triggeredid: \"nonsense\" is no task trigger's id"),
            (json!({"triggeredid": "0b9e7a44-1f7e-4abc-8123-5d2a5ef11ecf"}), 400, "is no task trigger's id"),
            (json!({"triggeredid": other}), 404, missing),
            (json!({"shkeptncontext": "0b9e7a44-1f7e-4abc-8123-5d2a5ef11ecf"}), 404, missing),
            (json!({"data": {"project": "other"}}), 404, "project other has no task trigger of this id in context "),
        ] {
            let answer = stand.post("/v1/event", &reply(&open, kind, more.clone())).await;
            assert_eq!(answer.status, status, "{kind} {more}: {answer:?}");
            assert!(answer.problem().contains(says), "{kind} {more}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn an_approval_is_decided_by_pass_or_fail() {
    let (mut stand, open) = stand("prod", "approval").await;
    for (more, says) in [
        (json!({"data": {"result": "passed"}}), "data.result: is \"passed\": an approval is decided by \"pass\" or \"fail\""),
        (json!({"data": {"result": "approved"}}), "data.result: is \"approved\""),
        (json!({"data": {"result": "PASS"}}), "data.result: is \"PASS\""),
        (json!({"data": {"result": "warning"}}), "data.result: is \"warning\""),
        (json!({"data": {"result": null}}), "data.result: is null"),
        (json!({"data": {"status": "errored"}}), "data.status: is \"errored\": leave it out, or send \"succeeded\""),
        (json!({"data": {"status": 1}}), "data.status: is 1"),
        (json!({"data": {"service": "orders"}}), "data.service: is \"orders\""),
        (json!({"data": {"stage": "dev"}}), "data.stage: is \"dev\""),
        (json!({"type": "sh.keptn.event.release.finished"}), "type: is \"sh.keptn.event.release.finished\""),
    ] {
        let answer = stand.post("/v1/event", &reply(&open, "finished", more.clone())).await;
        assert_eq!(answer.status, 400, "{more}: {answer:?}");
        assert!(answer.problem().starts_with(says), "{more}: {answer:?}");
        stand.work().await;
    }
    let wrong = reply(&open, "finished", json!({"triggeredid": "d9428888-122b-81e1-9b85-61cd3cbb3210"}));
    let unknown = stand.post("/v1/event", &wrong).await;
    assert_eq!(
        (unknown.status, unknown.problem().contains("/v1/event/triggered/approval?project=shop")),
        (404, true),
        "{unknown:?}"
    );

    // Somebody looks at it: kept, and still open.
    assert_eq!(stand.post("/v1/event", &reply(&open, "started", json!({}))).await.status, 200);
    stand.work().await;
    assert_eq!(stand.open("approval").await["id"], open["id"]);
    let path = format!("/v1/event?project=shop&keptnContext={}&source=executor", open["shkeptncontext"].as_str().unwrap());
    let kept = stand.get(&path).await.json();
    assert_eq!(
        (&kept["events"][0]["type"], &kept["events"][0]["verdict"]),
        (&json!("sh.keptn.event.approval.started"), &Value::Null),
        "{kept}"
    );

    // The status may be missing.
    assert_eq!(stand.post("/v1/event", &reply(&open, "finished", json!({"data": {"status": null}}))).await.status, 202);
    stand.work().await;
    let release = stand.open("release").await;
    assert_eq!((&release["data"]["result"], &release["data"]["status"]), (&json!("pass"), &json!("succeeded")));
}

#[tokio::test]
async fn what_is_taken_is_kept() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    let history = |ty: &str, data: Value| json!({"type": ty, "source": "tool", "shkeptncontext": "c1", "data": data});
    let types =
        ["sh.keptn.log.error", "sh.keptn.events.problem", "sh.keptn.event.monitoring.configure", "sh.keptn.event.evil.invalidated"];
    for ty in types {
        let answer = stand.post("/v1/event", &history(ty, json!({"project": "shop", "type": "prometheus"}))).await;
        assert_eq!(answer.status, 200, "{ty}: {answer:?}");
        stand.work().await;
        let kept = stand.get(&format!("/v1/event?project=shop&keptnContext=c1&type={ty}")).await.json();
        assert_eq!((&kept["totalCount"], &kept["events"][0]["verdict"]), (&json!(1), &Value::Null), "{ty}: {kept}");
    }
    // Without a project it is kept among the inputs that cannot be used, with the reason.
    assert_eq!(stand.post("/v1/event", &history("sh.keptn.log.error", json!({}))).await.status, 200);
    stand.work().await;
    let reasons: Vec<String> =
        stand.world.core().table.partition("B#20261120").filter_map(|item| item.text("why").map(str::to_owned)).collect();
    assert_eq!(reasons, ["kept here, because it has no data.project and so no place in the history of one"]);

    for (event, status, says) in [
        (history("evil.invalidated", json!({})), 400, "send `sh.keptn.event.evil.invalidated`"),
        (history("sh.keptn.log.error", json!({"project": "shoop"})), 404, "did you mean \"shop\"?"),
    ] {
        let answer = stand.post("/v1/event", &event).await;
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(answer.problem().contains(says), "{answer:?}");
    }
}

#[tokio::test]
async fn a_trigger_is_known_by_project_context_source_and_id() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    stand.apply("other", STAGES).await;
    let trigger = |project: &str, context: &str, service: &str| {
        json!({"type": "sh.keptn.event.dev.delivery.triggered", "source": "ci", "id": "1", "shkeptncontext": context,
            "data": {"project": project, "stage": "dev", "service": service}})
    };
    for (project, context) in [("shop", "c1"), ("shop", "c2"), ("other", "c1")] {
        let answer = stand.post("/v1/event", &trigger(project, context, "cart")).await;
        assert_eq!((answer.status, &answer.json()["keptnContext"]), (200, &json!(context)), "{project} {context}");
        stand.work().await;
        let states = stand.get(&format!("/v1/sequence/{project}?keptnContext={context}")).await.json();
        assert_eq!(states["states"][0]["executions"].as_array().map(Vec::len), Some(1), "{project} {context}: {states}");
    }
    assert_eq!(stand.post("/v1/event", &trigger("shop", "c1", "orders")).await.status, 409);
}

#[tokio::test]
async fn any_text_is_a_context() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    let long = "x".repeat(3000);
    for text in ["build 17", "a:b/c?d", "\u{fc}\u{0}", &long] {
        let event = json!({"type": "sh.keptn.event.dev.delivery.triggered", "source": "ci", "id": text.get(..10), "shkeptncontext": text,
            "data": {"project": "shop", "stage": "dev", "service": "cart"}});
        let answer = stand.post("/v1/event", &event).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let context = answer.json()["keptnContext"].as_str().unwrap().to_owned();
        assert_eq!(uuid::Uuid::parse_str(&context).map(|id| id.get_version_num()), Ok(5));
        stand.work().await;
        // The text means the same context everywhere.
        let state = stand.get(&format!("/v1/sequence/shop?keptnContext={context}")).await.json();
        assert_eq!(state["totalCount"], 1, "{text:.20}: {state}");
    }
    let found = stand.get("/v1/sequence/shop?keptnContext=build%2017").await.json();
    assert_eq!(
        found["states"][0]["shkeptncontext"],
        stand.get("/v1/event?keptnContext=build%2017").await.json()["events"][0]["shkeptncontext"]
    );
    let control = stand.post("/v1/sequence/shop/build%2017/control", &json!({"state": "pause"})).await;
    assert_eq!((control.status, &control.json()["open"]), (200, &json!(1)), "{control:?}");
}

#[tokio::test]
async fn a_time_before_2000_is_none() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    for (i, (time, kept)) in [
        ("0001-01-01T00:00:00Z", "2026-11-20T12:00:00.000Z"),
        ("1999-12-31T23:59:59.999Z", "2026-11-20T12:00:00.000Z"),
        ("2000-01-01T00:00:00Z", "2000-01-01T00:00:00.000Z"),
    ]
    .into_iter()
    .enumerate()
    {
        let event = json!({"type": "sh.keptn.event.dev.delivery.triggered", "source": "ci", "time": time,
            "data": {"project": "shop", "stage": "dev", "service": "cart"}});
        assert_eq!(stand.post("/v1/event", &event).await.status, 200);
        let published: Value = stand.published()[i].clone();
        assert_eq!(published["time"], kept, "{time}");
    }
    stand.work().await;
}

#[tokio::test]
async fn a_source_cannot_look_like_another() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    for (source, says) in [
        ("shipyard-controller", "is the engine's own"),
        ("shipyard-controller ", "begins or ends with a blank"),
        (" ci", "begins or ends with a blank"),
        ("\tci", "begins or ends with a blank"),
        ("Shipyard_Controller", "looks like \"shipyard-controller\""),
        ("approval--service", "looks like \"approval-service\""),
        ("shipyard-c\u{43e}ntroller", "contains '\u{43e}'"),
        ("shipyard-controller\u{200b}", "percent-encode the rest"),
    ] {
        let event = json!({"type": "sh.keptn.event.dev.delivery.triggered", "source": source,
            "data": {"project": "shop", "stage": "dev", "service": "cart"}});
        let answer = stand.post("/v1/event", &event).await;
        assert_eq!(answer.status, 400, "{source}: {answer:?}");
        assert!(answer.problem().starts_with("source: ") && answer.problem().contains(says), "{source}: {answer:?}");
    }
    stand.work().await;
}

/// No cache on the way gives one caller's answers to another.
#[tokio::test]
async fn no_answer_may_be_kept_by_caches() {
    let stand = Stand::new();
    for path in ["/v1/whoami", "/v1/project", "/v1/nothing", "/nothing"] {
        let answer = stand.get(path).await;
        let header = |name: &str| answer.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(header("cache-control").as_deref(), Some("no-store"), "{path}");
        assert_eq!(header("vary").as_deref(), Some("x-token, authorization"), "{path}");
    }
}
