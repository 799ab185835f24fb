//! Who may do what: every route with every scope, tokens from their creation to their end, and what they cost.

use crate::deployments::versions;
use crate::stand::{Answer, Stand, TOKEN, routes};
use axum::body::Body;
use axum::http::{Method, Request};
use keelway_api::{Listed, Needs};
use keelway_domain::access::Kind;
use keelway_domain::time::Span;
use keelway_world::core::Method as Counted;
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub const STAGES: &str = "
    - name: dev
      sequences:
        - name: delivery
          tasks: [{name: deployment}, {name: test}]
    - name: prod
      sequences:
        - name: delivery
          tasks: [{name: approval, properties: {pass: manual, warning: manual}}, {name: deployment}]
";

/// The path with a value for each of its parameters.
fn filled(path: &str) -> String {
    // The task of the token that executes something.
    let path = path.replace("{type}", "deployment");
    let parts = path.split('{').map(|part| part.split_once('}').map_or(part.to_owned(), |(_, rest)| format!("x1{rest}")));
    parts.collect()
}

async fn send(stand: &Stand, method: &str, path: &str, token: &str) -> Answer {
    let request = Request::builder().method(method).uri(path).header("x-token", token);
    stand.request(request.body(Body::empty()).unwrap()).await
}

/// Every route with the scopes of which it needs one, and what the audit calls it: whoever adds one, or changes what it needs, sees
/// it here.
#[test]
fn what_every_route_needs() {
    let mut routes = routes();
    routes.sort_by(|a, b| (&a.path, a.method).cmp(&(&b.path, b.method)));
    let row =
        |Listed { method, path, needs, act, .. }: Listed| format!("{method:<6} {path}  {needs:?}  {act}").trim_end().to_owned();
    insta::assert_snapshot!(routes.into_iter().map(row).collect::<Vec<_>>().join("\n"));
}

/// One token for each kind of scope, with and without a limit to another project.
#[tokio::test(start_paused = true)]
async fn every_route_with_every_scope() {
    let mut stand = Stand::new();
    let scopes = [
        ("reader", "read", Kind::Read),
        ("starter", "trigger", Kind::Trigger),
        ("worker", "execute:deployment", Kind::Execute),
        ("judge", "approve:x1", Kind::Approve),
        ("head", "administer", Kind::Administer),
    ];
    let mut tokens = vec![];
    for (name, scope, kind) in scopes {
        let whole = stand.token(name, &[scope], &[]).await;
        let elsewhere = stand.token(&format!("{name}-elsewhere"), &[scope], &["elsewhere"]).await;
        tokens.push((kind, whole, elsewhere));
    }
    for Listed { method, path, needs, .. } in routes() {
        for (kind, whole, elsewhere) in &tokens {
            // The tokens of this test stay.
            let (to, method) = (filled(&path), if method == "ANY" { "GET" } else { method });
            let (answer, limited) = (send(&stand, method, &to, whole).await, send(&stand, method, &to, elsewhere).await);
            let allowed = |kinds: &[Kind]| kinds.contains(kind) || *kind == Kind::Administer;
            let (expected, expected_limited) = match needs {
                Needs::Itself(_) | Needs::Token => (true, true),
                Needs::Scope(kinds) | Needs::OrSigned(kinds) => (allowed(kinds), false),
                Needs::Handler(kinds) => (allowed(kinds), allowed(kinds)),
            };
            let place = format!("{method} {path} with {kind:?}: {answer:?}");
            assert_eq!(answer.status != 403, expected, "{place}");
            assert!(answer.status != 401 || matches!(needs, Needs::Itself(_)), "{place}");
            // A handler may refuse for want of a project what it would do with one.
            if matches!(needs, Needs::Scope(_) | Needs::OrSigned(_)) || !expected_limited {
                assert_eq!(limited.status != 403, expected_limited, "{method} {path} with {kind:?} elsewhere: {limited:?}");
            }
            if answer.status == 403 {
                assert!(answer.problem().contains("this needs"), "{answer:?}");
            }
        }
    }
    for path in ["/v1/metadata", "/v1/project"] {
        assert_eq!(send(&stand, "GET", path, "keelway_reader_0000").await.status, 401);
        assert_eq!(stand.request(Request::get(path).body(Body::empty()).unwrap()).await.status, 401);
    }
}

pub fn event(ty: &str, open: Option<&Value>, project: &str, stage: &str) -> Value {
    let mut event = json!({
        "type": format!("sh.keptn.event.{ty}"), "source": "client",
        "data": {"project": project, "stage": stage, "service": "svc", "result": "pass", "status": "succeeded"}
    });
    if let Some(open) = open {
        event["triggeredid"] = open["id"].clone();
        event["shkeptncontext"] = open["shkeptncontext"].clone();
    }
    event
}

#[tokio::test]
async fn an_executor_is_bound_to_its_tasks_and_projects() {
    let mut stand = Stand::new();
    for project in ["shop", "other"] {
        stand.apply(project, STAGES).await;
        stand.trigger(project, "dev", "delivery", "svc").await;
    }
    stand.token("deployer", &["execute:deployment"], &["shop"]).await;
    stand.token("tester", &["execute:test"], &["shop"]).await;
    let open = async |stand: &Stand, query: &str| {
        let answer = stand.get(&format!("/v1/event/triggered/{query}")).await;
        (answer.status, answer.json()["events"].as_array().map_or(0, Vec::len))
    };
    assert_eq!(open(&stand, "deployment").await, (200, 2));
    let trigger = stand.get("/v1/event/triggered/deployment?project=shop").await.json()["events"][0].clone();
    let foreign = stand.get("/v1/event/triggered/deployment?project=other").await.json()["events"][0].clone();
    stand.like("deployer");
    assert_eq!(open(&stand, "deployment").await, (200, 1), "what is open elsewhere is not shown");
    assert_eq!(open(&stand, "deployment?project=shop").await, (200, 1));
    assert_eq!(open(&stand, "deployment?project=other").await.0, 403);
    assert_eq!(open(&stand, "deployment,test?project=shop").await.0, 403);
    stand.like("tester");
    assert_eq!(open(&stand, "deployment").await.0, 403);
    for (who, event, status) in [
        ("tester", event("deployment.started", Some(&trigger), "shop", "dev"), 403),
        ("deployer", event("deployment.started", Some(&foreign), "other", "dev"), 403),
        ("deployer", event("dev.delivery.triggered", None, "shop", "dev"), 403),
        ("deployer", event("approval.finished", Some(&trigger), "shop", "dev"), 403),
        // Another project's task cannot be answered under the name of one's own.
        ("deployer", event("deployment.started", Some(&foreign), "shop", "dev"), 404),
        ("deployer", event("deployment.started", Some(&trigger), "shop", "dev"), 200),
        ("deployer", event("deployment.finished", Some(&trigger), "shop", "dev"), 200),
    ] {
        let answer = stand.like(who).post("/v1/event", &event).await;
        assert_eq!(answer.status, status, "{who} {event} {answer:?}");
        stand.work().await;
    }
    // Of a context's events, an executor sees those of its own task.
    let context = trigger["shkeptncontext"].as_str().unwrap();
    let events = stand.get(&format!("/v1/event?project=shop&keptnContext={context}&pageSize=100")).await.json();
    let types: BTreeSet<&str> = events["events"].as_array().unwrap().iter().map(|event| event["type"].as_str().unwrap()).collect();
    let own = ["finished", "started", "triggered"].map(|kind| format!("sh.keptn.event.deployment.{kind}"));
    assert_eq!(types, own.iter().map(String::as_str).collect());
    assert_eq!(stand.get(&format!("/v1/event?project=other&keptnContext={context}")).await.status, 403);
    assert_eq!(stand.get("/v1/project/shop").await.status, 403, "to execute is not to read");
}

#[tokio::test]
async fn approvals_are_for_the_stages_that_were_granted() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    stand.trigger("shop", "prod", "delivery", "svc").await;
    for (name, scope, project) in
        [("dev-judge", "approve:dev", "shop"), ("judge", "approve:prod", "shop"), ("other-judge", "approve:prod", "other")]
    {
        stand.token(name, &["read", scope], &[project]).await;
    }
    let open = stand.open("approval").await;
    let (context, id) = (open["shkeptncontext"].as_str().unwrap(), open["id"].as_str().unwrap());
    let path = format!("/v1/project/shop/approval/{context}/{id}");
    // What an event says about its stage is not believed.
    let claims = event("approval.finished", Some(&open), "shop", "dev");
    let honest = event("approval.finished", Some(&open), "shop", "prod");
    for (who, expected) in [("dev-judge", 403), ("other-judge", 403)] {
        stand.like(who);
        for answer in [stand.post(&path, &json!({"decision": "approve"})).await, stand.post("/v1/event", &honest).await] {
            assert_eq!(answer.status, expected, "{who}: {answer:?}");
        }
        assert!([400, 403].contains(&stand.post("/v1/event", &claims).await.status));
    }
    assert!(!stand.step().await, "nothing was handed in");
    let decided = stand.like("judge").post(&path, &json!({"decision": "approve", "by": "ann"})).await;
    assert_eq!(decided.status, 202, "{decided:?}");
    stand.work().await;
    let events = stand.get(&format!("/v1/event?project=shop&keptnContext={context}&pageSize=100")).await.json();
    let finished = events["events"].as_array().unwrap().iter().find(|event| event["type"] == "sh.keptn.event.approval.finished");
    assert_eq!(finished.unwrap()["data"]["approval"]["by"], "token:judge (ann)", "{events}");
}

#[tokio::test]
async fn a_token_ends_at_its_projects() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    stand.apply("other", STAGES).await;
    stand.token("team", &["administer"], &["shop"]).await;
    stand.like("team");
    let names =
        |page: &Value| page["projects"].as_array().unwrap().iter().map(|one| one["projectName"].clone()).collect::<Vec<_>>();
    assert_eq!(names(&stand.get("/v1/project").await.json()), ["shop"]);
    let manifest = |name: &str| {
        format!("apiVersion: keelway.dev/v1\nkind: Project\nmetadata:\n  name: {name}\nspec:\n  description: changed\n")
    };
    for (text, status) in [
        (manifest("shop"), 200),
        (manifest("other"), 403),
        (format!("{}---\n{}", manifest("shop"), manifest("other")), 403),
        ("apiVersion: keelway.dev/v1\nkind: GitHost\nmetadata: {name: forge}\nspec: {host: git.test, type: gitea, api: https://git.test}\n".to_owned(), 403),
    ] {
        let answer = stand.post_text("/v1/apply", "application/yaml", text.clone()).await;
        assert_eq!(answer.status, status, "{text} {answer:?}");
    }
    for (path, status) in
        [("/v1/project/shop", 200), ("/v1/project/other", 403), ("/v1/tokens", 200), ("/v1/audit", 200), ("/v1/githosts", 403)]
    {
        assert_eq!(stand.get(path).await.status, status, "{path}");
    }
    // Nobody gets more by making a token.
    let more = stand.post("/v1/tokens", &json!({"name": "more", "scopes": ["administer"]})).await;
    assert_eq!(more.status, 403, "{more:?}");
}

#[tokio::test(start_paused = true)]
async fn deployers_claim_what_is_in_their_namespaces() {
    let mut stand = versions::stand().await;
    versions::push(&mut stand, 2).await;
    stand.token("there", &["execute:deployment"], &["shop"]).await;
    stand.token("elsewhere", &["execute:deployment"], &["other"]).await;
    stand.token("tester", &["execute:test"], &[]).await;
    for (who, seen, claims) in [("elsewhere", json!(0), 403), ("tester", Value::Null, 403), ("there", json!(1), 200)] {
        stand.like(who);
        assert_eq!(stand.get("/v1/deployments?status=New").await.json()["totalCount"], seen, "{who}");
        let claimed = stand.post("/v1/deployments/shop:cart-2/claim", &json!({"by": "ci"})).await;
        assert_eq!(claimed.status, claims, "{who}: {claimed:?}");
    }
}

async fn whoami(stand: &Stand, token: &str) -> u16 {
    send(stand, "GET", "/v1/whoami", token).await.status
}

#[tokio::test]
async fn a_token_from_its_creation_to_its_end() {
    let mut stand = Stand::new();
    let first = stand.token("ci", &["read", "trigger"], &["shop"]).await;
    assert!(first.starts_with("keelway_ci_") && first.len() == 75, "a form that scanners know");
    let me = send(&stand, "GET", "/v1/whoami", &first).await.json();
    assert_eq!(me, json!({"token": "ci", "by": "token:ci", "grants": [{"scopes": ["read", "trigger"], "projects": ["shop"]}]}));
    let again = stand.post("/v1/tokens", &json!({"name": "ci", "scopes": ["read"]})).await;
    assert_eq!((again.status, again.problem().contains("rotate it")), (409, true));

    let rotated = stand.post("/v1/tokens/ci/rotate", &json!({"overlap": "10m"})).await.json();
    let second = rotated["secret"].as_str().unwrap().to_owned();
    assert_eq!((whoami(&stand, &first).await, whoami(&stand, &second).await), (200, 200));
    assert_eq!(rotated["token"]["overlapUntil"], "2026-11-20T12:10:00.000Z");
    let ends = async |token: &str| send(&stand, "GET", "/v1/whoami", token).await.json()["expires"].clone();
    assert_eq!((ends(&first).await, ends(&second).await), (json!("2026-11-20T12:10:00.000Z"), Value::Null));
    stand.world.pass(Span::minutes(10));
    assert_eq!((whoami(&stand, &first).await, whoami(&stand, &second).await), (401, 200));

    assert_eq!(stand.delete("/v1/tokens/ci").await.status, 204);
    assert_eq!((whoami(&stand, &second).await, stand.delete("/v1/tokens/ci").await.status), (401, 404));
    // A new token of the same name has nothing to do with the old one.
    let third = stand.token("ci", &["read"], &[]).await;
    assert_eq!((whoami(&stand, &second).await, whoami(&stand, &third).await), (401, 200));

    let dump = format!("{:?}", stand.world.core().table);
    for secret in [&first, &second, &third] {
        assert!(!dump.contains(secret.as_str()) && !dump.contains(&secret[11..]), "only the hash is kept");
    }
    let expiring = json!({"name": "short", "scopes": ["read"], "expires": "1h", "note": "for a demo"});
    let short = stand.post("/v1/tokens", &expiring).await.json()["secret"].as_str().unwrap().to_owned();
    assert_eq!(whoami(&stand, &short).await, 200);
    assert_eq!(send(&stand, "GET", "/v1/whoami", &short).await.json()["expires"], "2026-11-20T13:10:00.000Z");
    stand.world.pass(Span::minutes(60));
    assert_eq!(whoami(&stand, &short).await, 401);
    let list = stand.get("/v1/tokens?pageSize=1").await.json();
    assert_eq!((&list["items"][0]["name"], &list["nextPageKey"]), (&json!("ci"), &json!("ci")));
    let rest = stand.get("/v1/tokens?nextPageKey=ci").await.json();
    let short = &rest["items"][0];
    assert_eq!(
        (&short["name"], &short["expired"], &short["note"]),
        (&json!("short"), &json!(true), &json!("for a demo")),
        "{rest}"
    );
    assert_eq!((&short["by"], &short["lastUsed"]), (&json!("administrator"), &json!("2026-11-20T12:00:00.000Z")));
}

#[tokio::test]
async fn what_is_wrong_with_a_token_is_named() {
    let stand = Stand::new();
    for (body, field) in [
        (json!({"name": "UP", "scopes": ["read"]}), "name"),
        (json!({"name": "administrator", "scopes": ["read"]}), "name"),
        (json!({"name": "ci", "scopes": []}), "scopes"),
        (json!({"name": "ci", "scopes": ["all"]}), "scopes"),
        (json!({"name": "ci", "scopes": ["execute"]}), "scopes"),
        (json!({"name": "ci", "scopes": ["read"], "projects": ["UP"]}), "projects"),
        (json!({"name": "ci", "scopes": ["read"], "expires": "soon"}), "expires"),
        (json!({"name": "ci", "scopes": ["read"], "expires": "2026-11-20T11:59:59Z"}), "expires"),
        (json!({"name": "ci", "scopes": ["read"], "note": "x".repeat(201)}), "note"),
    ] {
        let answer = stand.post("/v1/tokens", &body).await;
        assert_eq!(answer.status, 400, "{body}");
        assert!(answer.problem().starts_with(&format!("{field}: ")), "{body}: {}", answer.problem());
    }
    assert_eq!(stand.get("/v1/tokens").await.json()["totalCount"], 0);
    let long = stand.post("/v1/tokens/ci/rotate", &json!({"overlap": "8d"})).await;
    assert_eq!((long.status, long.problem().contains("overlap: ")), (400, true));
    assert_eq!(stand.post("/v1/tokens/ci/rotate", &json!({})).await.status, 404);
}

/// A second function with its own memory, on the same table.
#[tokio::test]
async fn a_poll_costs_no_read_of_its_token_and_a_revoked_one_ends_within_a_minute() {
    let mut stand = Stand::new();
    let other = stand.another();
    let token = stand.token("ci", &["read"], &[]).await;
    let ask = async |app: &keelway_api::Served, token: &str| {
        let request = Request::builder().method(Method::GET).uri("/v1/whoami").header("x-token", token);
        Stand::ask(app.clone(), request.body(Body::empty()).unwrap()).await.status
    };
    let world = stand.world.clone();
    let requests = || world.core().request_count();
    let before = requests();
    assert_eq!(ask(&other, &token).await, 200);
    assert_eq!(requests() - before, 2, "one read, and the hour of its use is written");
    for _ in 0..50 {
        stand.world.pass(Span::seconds(1));
        assert_eq!(ask(&other, &token).await, 200);
    }
    assert_eq!(requests() - before, 2, "a poll pays nothing for its token");
    stand.world.pass(Span::seconds(10));
    assert_eq!(ask(&other, &token).await, 200);
    assert_eq!(requests() - before, 3, "after a minute it is read again");

    assert_eq!(stand.delete("/v1/tokens/ci").await.status, 204);
    assert_eq!((whoami(&stand, &token).await, ask(&other, &token).await), (401, 200), "another instance remembers it");
    stand.world.pass(Span::minutes(1));
    assert_eq!(ask(&other, &token).await, 401);

    // The secret of a token that was made anew is known to everybody at once; guesses are looked up once in a second.
    let fresh = stand.token("ci", &["read"], &[]).await;
    stand.world.pass(Span::seconds(1));
    assert_eq!(ask(&other, &fresh).await, 200);
    stand.world.pass(Span::seconds(1));
    let before = requests();
    for n in 0..100 {
        assert_eq!(ask(&other, &format!("keelway_ci_{n:064}")).await, 401);
    }
    assert_eq!(requests() - before, 1);
    assert_eq!(ask(&other, &fresh).await, 200);
}

#[tokio::test]
async fn the_last_use_is_written_once_an_hour() {
    let mut stand = Stand::new();
    let token = stand.token("ci", &["read"], &[]).await;
    let other = stand.another();
    let used = async |stand: &Stand| stand.get("/v1/tokens/ci").await.json()["lastUsed"].clone();
    assert_eq!(used(&stand).await, Value::Null);
    stand.world.pass(Span::minutes(59));
    assert_eq!(whoami(&stand, &token).await, 200);
    assert_eq!(used(&stand).await, "2026-11-20T12:00:00.000Z");
    let writes = |stand: &Stand| stand.world.core().requests[Counted::Write as usize];
    let before = writes(&stand);
    for app in [stand.app(), other] {
        let request = Request::get("/v1/whoami").header("x-token", &token).body(Body::empty()).unwrap();
        assert_eq!(Stand::ask(app, request).await.status, 200);
    }
    assert_eq!(writes(&stand), before, "not again within the hour, whichever instance is asked");
    stand.world.pass(Span::minutes(1));
    assert_eq!(whoami(&stand, &token).await, 200);
    assert_eq!(used(&stand).await, "2026-11-20T13:00:00.000Z");
}

#[tokio::test]
async fn a_token_may_come_as_a_bearer() {
    let mut stand = Stand::new();
    let token = stand.token("ci", &["read"], &[]).await;
    let with = |headers: &[(&str, String)]| {
        let request = headers.iter().fold(Request::get("/v1/whoami"), |request, (name, value)| request.header(*name, value));
        request.body(Body::empty()).unwrap()
    };
    for (headers, status) in [
        (vec![("authorization", format!("Bearer {token}"))], 200),
        (vec![("authorization", format!("bearer {TOKEN}"))], 200),
        (vec![("authorization", format!("Basic {token}"))], 401),
        (vec![("authorization", "Bearer".to_owned())], 401),
        // The header of Keptn's clients comes first; a signature of AWS does not stand in its way.
        (vec![("x-token", token.clone()), ("authorization", "AWS4-HMAC-SHA256 Credential=x".to_owned())], 200),
        (vec![("x-token", "wrong".to_owned()), ("authorization", format!("Bearer {token}"))], 401),
        (vec![("authorization", format!("Bearer {token}")), ("authorization", format!("Bearer {token}"))], 401),
    ] {
        assert_eq!(stand.request(with(&headers)).await.status, status, "{headers:?}");
    }
}

/// Names that somebody makes up do not cost those who have a token a read with each request.
#[tokio::test]
async fn made_up_tokens_do_not_displace_those_in_use() {
    let mut stand = Stand::new();
    let token = stand.token("poller", &["read"], &[]).await;
    let cost = async |stand: &Stand| {
        let before = stand.world.core().request_count();
        assert_eq!(send(stand, "GET", "/v1/whoami", &token).await.status, 200);
        stand.world.core().request_count() - before
    };
    cost(&stand).await;
    let usual = cost(&stand).await;
    for n in 0..2000 {
        assert_eq!(send(&stand, "GET", "/v1/whoami", &format!("keelway_made-up-{n}_{}", "0".repeat(64))).await.status, 401);
    }
    assert_eq!(cost(&stand).await, usual);
}
