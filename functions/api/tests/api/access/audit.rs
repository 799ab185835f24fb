//! Whatever somebody did is in the audit once, with who they are and where from.

use crate::stand::{OTHER_TOKEN, Stand};
use axum::body::Body;
use axum::http::Request;
use keelway_api::Client;
use keelway_domain::time::Span;
use keelway_world::core::{Fault, Method};
use serde_json::{Value, json};

const STAGES: &str = "
    - name: dev
      sequences:
        - name: delivery
          tasks: [{name: approval, properties: {pass: manual, warning: manual}}, {name: deployment}]
";

async fn entries(stand: &Stand, query: &str) -> Vec<Value> {
    let page = stand.get(&format!("/v1/audit?pageSize=100&{query}")).await.json();
    page["items"].as_array().unwrap_or_else(|| panic!("{page}")).clone()
}

/// `apply shop by administrator`, oldest first.
fn lines(entries: &[Value]) -> Vec<String> {
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or("-").to_owned();
    entries
        .iter()
        .rev()
        .map(|entry| format!("{} {} by {}", text(entry, "action"), text(entry, "project"), text(entry, "token")))
        .collect()
}

/// The figures are those of docs/costs.md.
#[tokio::test]
async fn an_entry_costs_one_write_unit_and_one_event() {
    let mut stand = Stand::new();
    stand.token("ci", &["trigger"], &["shop"]).await;
    stand.apply("shop", STAGES).await;
    // Whoever uses a token for the first time within the hour has that noted.
    stand.like("ci").trigger("shop", "dev", "delivery", "svc").await;
    let used = || {
        let core = stand.world.core();
        (core.table.units.write, core.requests[Method::Write as usize], core.requests[Method::Publish as usize])
    };
    let before = used();
    let event = json!({
        "type": "sh.keptn.event.dev.delivery.triggered", "source": "test", "data": {"project": "shop", "stage": "dev", "service": "svc"}
    });
    assert_eq!(stand.post("/v1/event", &event).await.status, 200);
    let after = used();
    // The other event is the trigger itself, which is not written to the table here.
    assert_eq!((after.0 - before.0, after.1 - before.1, after.2 - before.2), (1.0, 1, 2));
    assert_eq!(stand.get("/v1/audit").await.status, 403);
    let before = used();
    assert_eq!(stand.get("/v1/event/triggered/deployment?project=shop").await.status, 403);
    assert_eq!(used(), before, "what is only looked at, or refused, has no entry");
}

#[tokio::test]
async fn a_report_is_there_if_it_sets_a_revision() {
    let mut stand = Stand::new();
    stand.token("flux", &["trigger"], &[]).await;
    for what in ["v1/N", "v1/R", "v2/R"] {
        stand.like("flux").observe("dev", what).await;
    }
    let found = entries(stand.like(""), "action=observe").await;
    let told: Vec<_> = found.iter().rev().map(|entry| (entry["by"].as_str().unwrap(), entry["what"].as_str().unwrap())).collect();
    assert_eq!(
        told,
        [
            ("token:flux", "reported that HelmRelease carts in dev runs v1"),
            ("token:flux", "reported that HelmRelease carts in dev runs v2")
        ]
    );
}

#[tokio::test]
async fn everything_that_was_done_is_there_once_and_nothing_else() {
    let mut stand = Stand::new();
    stand.token("ci", &["trigger", "execute:deployment"], &["shop"]).await;
    stand.world.pass(Span::seconds(1));
    stand.token("ann", &["approve:dev", "read"], &["shop"]).await;
    stand.world.pass(Span::seconds(1));
    stand.apply("shop", STAGES).await;
    stand.world.pass(Span::seconds(1));
    let context = stand.like("ci").trigger("shop", "dev", "delivery", "svc").await;
    stand.world.pass(Span::seconds(1));
    stand.like("ann").decide("approve", "Ann of accounting").await;
    stand.world.pass(Span::seconds(1));
    let event = json!({
        "id": "e-1", "type": "sh.keptn.event.dev.delivery.triggered", "source": "test", "shkeptncontext": "c-2",
        "data": {"project": "shop", "stage": "dev", "service": "svc"}
    });
    for _ in 0..2 {
        // The same event again starts nothing.
        assert_eq!(stand.like("ci").post("/v1/event", &event).await.status, 200);
        stand.work().await;
    }
    stand.world.pass(Span::seconds(1));
    let control = stand.post(&format!("/v1/sequence/shop/{context}/control"), &json!({"state": "abort"})).await;
    assert_eq!(control.status, 200, "{control:?}");
    // What was refused, and what was only looked at, was not done.
    assert_eq!(stand.post("/v1/apply", &json!({})).await.status, 403);
    stand.like("");
    assert_eq!(stand.post_text("/v1/apply", "application/yaml", "kind: Nonsense".into()).await.status, 400);
    assert_eq!(stand.delete("/v1/tokens/nobody").await.status, 404);
    stand.world.pass(Span::seconds(1));
    assert_eq!(stand.delete("/v1/tokens/ann").await.status, 204);
    let all = entries(&stand, "").await;
    let expected = [
        "token shop by administrator",
        "token shop by administrator",
        "apply shop by administrator",
        "trigger shop by ci",
        "decide shop by ann",
        "trigger shop by ci",
        "control shop by ci",
        "token shop by administrator",
    ];
    assert_eq!(lines(&all), expected, "{all:#?}");
    let decision = &all[3];
    assert_eq!((&decision["note"], &decision["status"]), (&json!("Ann of accounting"), &json!(202)));
    assert!(decision["what"].as_str().unwrap().starts_with("approved svc for dev ("), "{decision}");
    assert_eq!(all[0]["what"], "revoked token ann");
    assert_eq!(all[1]["what"], format!("aborted what is open ({context})"));
    assert!(all[0]["request"] == "DELETE /v1/tokens/ann" && all[0]["id"] != all[1]["id"]);
}

#[tokio::test]
async fn an_entry_says_from_where_and_the_bus_is_told() {
    let mut stand = Stand::new();
    let before = stand.world.core().bus.log.len();
    let mut request = Request::post("/v1/tokens").header("x-token", OTHER_TOKEN).header("content-type", "application/json");
    request.extensions_mut().unwrap().insert(Client::at("2001:db8::7:8"));
    let body = json!({"name": "ci", "scopes": ["read"]}).to_string();
    let made = stand.request(request.body(Body::from(body)).unwrap()).await.json();
    let entry = entries(&stand, "").await[0].clone();
    assert_eq!(
        (&entry["address"], &entry["token"], &entry["what"]),
        (&json!("2001:db8::7:8"), &json!("administrator"), &json!("created token ci: read"))
    );
    let told: Vec<Value> =
        stand.world.core().bus.log[before..].iter().map(|put| serde_json::from_str(&put.entry.detail).unwrap()).collect();
    assert_eq!(told.len(), 1);
    assert_eq!((&told[0]["type"], &told[0]["source"]), (&json!("dev.keelway.audit"), &json!("keelway-api")));
    for field in ["action", "token", "address", "request", "what", "status"] {
        assert_eq!(told[0]["data"][field], entry[field], "{field}");
    }
    let secret = made["secret"].as_str().unwrap();
    assert!(!told[0].to_string().contains(secret) && !entry.to_string().contains(secret));
    assert!(!stand.step().await, "no engine takes it");
}

#[tokio::test]
async fn filters_and_pages_over_days() {
    let mut stand = Stand::new();
    for day in 0..3 {
        for n in 0..3 {
            stand.token(&format!("t-{day}-{n}"), &["administer"], &[]).await;
            stand.world.pass(Span::seconds(1));
        }
        stand.like(&format!("t-{day}-0")).apply(&format!("p-{day}"), STAGES).await;
        stand.like("");
        stand.world.pass(Span::minutes(24 * 60));
    }
    let count = async |query: &str| entries(&stand, query).await.len();
    assert_eq!(count("").await, 12);
    assert_eq!((count("action=apply").await, count("action=token").await, count("action=none").await), (3, 9, 0));
    assert_eq!((count("project=p-1").await, count("token=t-2-0").await), (1, 1));
    assert_eq!(count("fromTime=2026-11-21T00:00:00Z").await, 8);
    assert_eq!(count("beforeTime=2026-11-21T00:00:00Z").await, 4);
    assert_eq!(count("fromTime=2026-11-21T00:00:00Z&beforeTime=2026-11-22T00:00:00Z&action=token").await, 3);
    let whole = lines(&entries(&stand, "").await);
    let (mut paged, mut key) = (vec![], String::new());
    while key != "0" {
        let page = stand.get(&format!("/v1/audit?pageSize=5&nextPageKey={}", key.replace('#', "%23"))).await.json();
        paged.extend(page["items"].as_array().unwrap().clone());
        key = page["nextPageKey"].as_str().unwrap().to_owned();
    }
    assert_eq!(lines(&paged), whole);
    for bad in ["nextPageKey=x", "fromTime=yesterday", "pageSize=many", "who=ann"] {
        assert_eq!(stand.get(&format!("/v1/audit?{bad}")).await.status, 400, "{bad}");
    }
}

#[tokio::test]
async fn what_cannot_be_recorded_is_not_reported_as_done() {
    let stand = Stand::new();
    stand.apply("shop", STAGES).await;
    // The last write of the request is that of its entry.
    stand.world.core().faults = Some(Box::new(|_, method| if method == Method::Publish { Fault::Throttled } else { Fault::None }));
    let manifest = "apiVersion: keelway.dev/v1\nkind: Project\nmetadata:\n  name: other\n";
    let failed = stand.post_text("/v1/apply", "application/yaml", manifest.into()).await;
    assert_eq!(failed.status, 503, "{failed:?}");
    stand.world.core().faults = None;
    assert_eq!(stand.post_text("/v1/apply", "application/yaml", manifest.into()).await.status, 200);
    assert!(lines(&entries(&stand, "project=other").await).contains(&"apply other by administrator".to_owned()));
}

#[tokio::test]
async fn a_repeated_request_has_one_id() {
    let mut stand = Stand::new();
    crate::pipelines::applied::begin(&mut stand, crate::pipelines::applied::BY_REQUEST).await;
    let before = entries(&stand, "action=control").await.len();
    for _ in 0..3 {
        let request = Request::post(format!("{}/commands", crate::pipelines::applied::CARTS)).header("x-token", OTHER_TOKEN);
        let request = request.header("content-type", "application/json").header("idempotency-key", "k-1");
        let request = request.body(Body::from(r#"{"command": "suspend", "by": "ann"}"#)).unwrap();
        assert!(stand.request(request).await.status < 300);
        stand.work().await;
        stand.world.pass(Span::seconds(1));
    }
    // The first answer is 202, which is not remembered, and the second one is: whoever reads the entries tells by their id that it
    // is one.
    let all = entries(&stand, "action=control").await;
    assert_eq!((all.len() - before, &all[0]["id"]), (2, &all[1]["id"]), "{all:?}");
    assert!(all[0]["what"].as_str().unwrap().starts_with("suspended "), "{all:?}");
}

/// Nothing is answered from memory that has no entry.
#[tokio::test]
async fn an_answer_is_remembered_after_its_entry_is_written() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    let send = async |stand: &Stand| {
        let event = json!({
            "type": "sh.keptn.event.dev.delivery.triggered", "source": "test", "data": {"project": "shop", "stage": "dev", "service": "svc"}
        });
        let request = Request::post("/v1/event").header("x-token", OTHER_TOKEN).header("content-type", "application/json");
        let request = request.header("idempotency-key", "k-1").body(Body::from(event.to_string())).unwrap();
        stand.request(request).await
    };
    // The key, then the entry, then the answer: whatever is last is lost.
    let mut written = 0;
    stand.world.core().faults = Some(Box::new(move |_, method| {
        written += usize::from(method == Method::Write);
        if written > 2 { Fault::Throttled } else { Fault::None }
    }));
    let failed = send(&stand).await;
    assert_eq!(failed.status, 503, "{failed:?}");
    stand.world.core().faults = None;
    // It is passed on once more under the same id, and counts once.
    for _ in 0..2 {
        assert_eq!(send(&stand).await.status, 200);
    }
    stand.work().await;
    let all = entries(&stand, "action=trigger").await;
    let ids: std::collections::BTreeSet<&str> = all.iter().map(|entry| entry["id"].as_str().unwrap()).collect();
    assert_eq!((all.is_empty(), ids.len()), (false, 1), "{all:?}");
    assert_eq!(stand.get("/v1/sequence/shop").await.json()["totalCount"], 1);
}

/// Whoever asks what was done to a project finds what was applied to it together with others, and nothing of those.
#[tokio::test]
async fn what_is_applied_to_several_projects_is_found_under_each() {
    let mut stand = Stand::new();
    let project = |name: &str| format!("apiVersion: keelway.dev/v1\nkind: Project\nmetadata: {{name: {name}}}\n");
    stand.manifests(&[project("shop"), project("blog")].join("---\n")).await;
    for name in ["shop", "blog"] {
        let found = stand.get(&format!("/v1/audit?action=apply&project={name}")).await.json();
        assert_eq!(
            (&found["totalCount"], &found["items"][0]["what"]),
            (&json!(1), &json!(format!("applied Project {name}"))),
            "{found}"
        );
    }
}
