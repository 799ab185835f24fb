//! A context whose history is longer than one answer.

use crate::stand::Stand;
use keelway_domain::time::Span;
use keelway_engine::sequences::Limits;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const STAGES: &str = "
    - name: dev
      sequences:
        - name: delivery
          tasks: [{name: build}, {name: test}]
";

/// More than are read for one page.
const NOTES: usize = 5_200;

#[tokio::test]
async fn a_long_history_is_read_page_by_page() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    let context = stand.trigger("shop", "dev", "delivery", "cart").await;
    stand.execute("build", "pass").await;
    for n in 0..NOTES {
        let note = json!({
            "type": "sh.keptn.log.error", "source": "tool", "id": format!("note-{n:05}"), "shkeptncontext": context,
            "data": {"project": "shop", "stage": "dev", "service": "cart", "message": n.to_string()}
        });
        assert_eq!(stand.post("/v1/event", &note).await.status, 200);
        if n % 3 == 0 {
            stand.work().await;
            stand.world.pass(Span(40));
        }
    }
    stand.work().await;
    stand.execute("test", "pass").await;
    stand.world.pass(Span::minutes(1));

    let (mut ids, mut types, mut key, mut pages) = (vec![], vec![], "0".to_owned(), 0);
    loop {
        let answer = stand.get(&format!("/v1/event?keptnContext={context}&project=shop&pageSize=100&nextPageKey={key}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let page = answer.json();
        for event in page["events"].as_array().unwrap() {
            ids.push(event["id"].as_str().unwrap().to_owned());
            types.push(event["type"].as_str().unwrap().trim_start_matches("sh.keptn.").to_owned());
        }
        pages += 1;
        key = page["nextPageKey"].as_str().unwrap().to_owned();
        if key == "0" {
            break;
        }
    }
    let mut once = ids.clone();
    once.sort();
    once.dedup();
    assert_eq!((once.len(), pages > 50), (ids.len(), true), "no event comes twice");
    assert_eq!(types.iter().filter(|ty| *ty == "log.error").count(), NOTES, "and none is missing");
    let others: Vec<&str> = types.iter().map(String::as_str).filter(|ty| *ty != "log.error").collect();
    let expected = [
        "event.dev.delivery.triggered",
        "event.dev.delivery.started",
        "event.build.triggered",
        "event.build.started",
        "event.build.finished",
        "event.test.triggered",
        "event.test.started",
        "event.test.finished",
        "event.dev.delivery.finished",
    ];
    assert_eq!(others, expected);
}

/// More executions than an entry in the list of sequences shows.
const EXECUTIONS: usize = 620;

/// All of a list, page by page.
async fn all(stand: &Stand, path: &str, member: &str) -> Vec<Value> {
    let (mut found, mut key) = (vec![], "0".to_owned());
    loop {
        let answer = stand.get(&format!("{path}&pageSize=100&nextPageKey={key}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let page = answer.json();
        found.extend(page[member].as_array().unwrap().clone());
        key = page["nextPageKey"].as_str().map_or_else(|| page["nextPageKey"].to_string(), str::to_owned);
        if key == "0" {
            return found;
        }
    }
}

#[tokio::test]
async fn a_context_with_many_executions_is_read_page_by_page() {
    let mut stand =
        Stand::with_limits(Limits { max_executions: 10_000, start_deadline: Span::minutes(24 * 60), ..Limits::default() });
    stand.apply("shop", STAGES).await;
    for n in 0..EXECUTIONS {
        let data = json!({"project": "shop", "stage": "dev", "service": format!("svc-{n}")});
        let event =
            json!({"type": "sh.keptn.event.dev.delivery.triggered", "source": "test", "shkeptncontext": "one", "data": data});
        stand.trigger_with(event).await;
        stand.world.pass(Span(3));
    }
    // All but the first end, and then so much is noted that the history is read in parts.
    for open in all(&stand, "/v1/event/triggered/build?project=shop", "events").await {
        if open["data"]["service"] != "svc-0" {
            stand.answer_to(&open, "build", "fail").await;
        }
    }
    for n in 0..NOTES {
        let note = json!({
            "type": "sh.keptn.log.error", "source": "tool", "id": format!("note-{n:05}"), "shkeptncontext": "one",
            "data": {"project": "shop", "stage": "dev", "service": "cart"}
        });
        assert_eq!(stand.post("/v1/event", &note).await.status, 200);
        if n % 10 == 0 {
            stand.work().await;
            stand.world.pass(Span(40));
        }
    }
    stand.work().await;
    stand.world.pass(Span::minutes(1));

    let executions = all(&stand, "/v1/sequence-execution?project=shop&keptnContext=one", "sequenceExecutions").await;
    let services: BTreeSet<&str> = executions.iter().map(|one| one["service"].as_str().unwrap()).collect();
    assert_eq!((executions.len(), services.len()), (EXECUTIONS, EXECUTIONS));
    let open = all(&stand, "/v1/sequence-execution?project=shop&keptnContext=one&status=started", "sequenceExecutions").await;
    assert_eq!((open.len(), &open[0]["service"], &open[0]["shkeptncontext"]), (1, &json!("svc-0"), &json!("one")));

    // Whatever the entry has room for, its state is that of all.
    let state = stand.state("one").await;
    assert_eq!((&state["state"], &state["truncated"]), (&json!("started"), &json!(true)));
    let shown = state["executions"].as_array().unwrap();
    let newest = format!("svc-{}", EXECUTIONS - 1);
    let newest = executions.iter().find(|one| one["service"] == newest.as_str()).unwrap();
    assert_eq!((shown.len(), &shown.last().unwrap()["id"]), (500, &newest["id"]));

    let events = all(&stand, "/v1/event?project=shop&keptnContext=one", "events").await;
    let ids: BTreeSet<String> = events.iter().map(|event| format!("{}{}", event["source"], event["id"])).collect();
    assert_eq!(ids.len(), events.len(), "no event comes twice");
    let count = |ty: &str| events.iter().filter(|event| event["type"] == format!("sh.keptn.{ty}")).count();
    let each = ["event.dev.delivery.triggered", "event.dev.delivery.started", "event.build.triggered"].map(count);
    assert_eq!(each, [EXECUTIONS; 3], "and none is missing");
    let ended = ["event.build.started", "event.build.finished", "event.dev.delivery.finished"].map(count);
    assert_eq!((ended, count("log.error")), ([EXECUTIONS - 1; 3], NOTES));
    let times: Vec<&str> = events.iter().map(|event| event["received"].as_str().unwrap()).collect();
    assert!(times.is_sorted());
}

/// Keptn's query of executions.
#[tokio::test]
async fn executions_are_listed_by_project_and_filtered() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    for service in ["cart", "cart", "orders"] {
        stand.trigger("shop", "dev", "delivery", service).await;
        stand.world.pass(Span::seconds(1));
    }
    let open = stand.open("build").await;
    stand.answer_to(&open, "build", "fail").await;
    let list = async |query: &str| stand.get(&format!("/v1/sequence-execution?project=shop{query}")).await.json();
    let whole = list("").await;
    assert_eq!((&whole["totalCount"], &whole["pageSize"], &whole["nextPageKey"]), (&json!(3), &json!(20), &json!(0)));
    let first = list("&pageSize=1").await;
    assert_eq!(first["sequenceExecutions"][0]["service"], "orders", "the newest context first");
    assert_ne!(first["nextPageKey"], 0);
    for (query, n) in [
        ("&service=cart", 2),
        ("&service=none", 0),
        ("&stage=dev&name=delivery", 3),
        ("&stage=prod", 0),
        ("&name=rollback", 0),
        ("&status=finished", 1),
        ("&status=started", 2),
        ("&status=finished&service=orders", 0),
        ("&keptnContext=unknown", 0),
    ] {
        assert_eq!(list(query).await["totalCount"], n, "{query}");
    }
    let context = open["shkeptncontext"].as_str().unwrap();
    let one = list(&format!("&keptnContext={context}")).await["sequenceExecutions"][0].clone();
    assert_eq!((&one["project"], &one["state"], &one["result"]), (&json!("shop"), &json!("finished"), &json!("fail")));
    let entry = stand.state(context).await["executions"][0].clone();
    for (field, value) in entry.as_object().unwrap() {
        assert_eq!(&one[field], value, "{field}");
    }
    for (path, status) in [
        ("/v1/sequence-execution", 400),
        ("/v1/sequence-execution?project=shop&status=none", 400),
        ("/v1/sequence-execution?project=shop&nextPageKey=x", 400),
        ("/v1/sequence-execution?project=none", 404),
    ] {
        assert_eq!(stand.get(path).await.status, status, "{path}");
    }
    // A position that no page ends with.
    assert_eq!(list("&keptnContext=one&nextPageKey=9223372036854775807").await["totalCount"], 0);
}
