//! Requests with an `Idempotency-Key`, sent more than once.

use crate::pipelines::applied::{BY_REQUEST, CARTS, begin, manual};
use crate::pipelines::approvals::path;
use crate::stand::{Answer, OTHER_TOKEN, Stand, TOKEN};
use axum::body::Body;
use axum::http::Request;
use axum::http::header::{CONTENT_TYPE, LOCATION};
use keelway_domain::time::Span;
use keelway_engine::sequences::Limits;
use serde_json::{Value, json};
use std::time::Duration;

const SUSPEND: &str = r#"{"command": "suspend", "by": "ann"}"#;
const RESUME: &str = r#"{"command": "resume"}"#;

async fn patient(promotion: &str) -> Stand {
    let mut stand = Stand::with(Limits::default(), Duration::from_secs(60));
    begin(&mut stand, promotion).await;
    stand
}

fn commands() -> String {
    format!("{CARTS}/commands")
}

fn request(token: &str, path: &str, key: &str, body: &str) -> Request<Body> {
    let request = Request::post(path).header("x-token", token).header("content-type", "application/json");
    request.header("idempotency-key", key).body(Body::from(body.to_owned())).unwrap()
}

async fn keyed(stand: &mut Stand, path: &str, key: &str, body: &str) -> Answer {
    stand.while_working(request(TOKEN, path, key, body)).await
}

async fn suspended(stand: &Stand) -> bool {
    stand.get(CARTS).await.json()["suspended"] != Value::Null
}

fn same(one: &Answer, other: &Answer) {
    let shown = |answer: &Answer| {
        let header = |name| answer.headers.get(name).cloned();
        (answer.status, header(LOCATION), header(CONTENT_TYPE), answer.text.clone())
    };
    assert_eq!(shown(one), shown(other));
}

#[tokio::test(start_paused = true)]
async fn a_repeated_command_has_one_effect_and_one_answer() {
    let mut stand = patient(BY_REQUEST).await;
    let first = keyed(&mut stand, &commands(), "k-1", SUSPEND).await;
    assert_eq!((first.status, suspended(&stand).await), (200, true), "{first:?}");
    assert_eq!(keyed(&mut stand, &commands(), "k-2", RESUME).await.status, 200);
    same(&keyed(&mut stand, &commands(), "k-1", SUSPEND).await, &first);
    assert!(!suspended(&stand).await, "the second request is the first one");
    assert_eq!(keyed(&mut stand, &commands(), "k-3", SUSPEND).await.status, 200);
    assert!(suspended(&stand).await, "another key is another request");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_changed_nothing_changes_nothing_later() {
    let mut stand = patient(BY_REQUEST).await;
    stand.post_while_working(&commands(), &json!({"command": "suspend"})).await;
    let first = keyed(&mut stand, &commands(), "k-1", SUSPEND).await;
    assert_eq!(first.status, 200, "it is so already");
    stand.post_while_working(&commands(), &json!({"command": "resume"})).await;
    same(&keyed(&mut stand, &commands(), "k-1", SUSPEND).await, &first);
    assert!(!suspended(&stand).await);
}

#[tokio::test(start_paused = true)]
async fn a_command_without_an_outcome_is_obeyed_once() {
    let mut stand = Stand::new();
    begin(&mut stand, BY_REQUEST).await;
    for _ in 0..2 {
        assert_eq!(stand.request(request(TOKEN, &commands(), "k-1", SUSPEND)).await.status, 202);
    }
    stand.work().await;
    stand.world.pass(Span::seconds(1));
    assert_eq!(stand.post(&commands(), &json!({"command": "resume"})).await.status, 202);
    stand.work().await;
    // Its outcome was never told, and it is known from the state.
    let outcome = stand.request(request(TOKEN, &commands(), "k-1", SUSPEND)).await;
    assert_eq!((outcome.status, &outcome.json()["done"]), (200, &json!(true)), "{outcome:?}");
    stand.work().await;
    assert!(!suspended(&stand).await);
    let history = stand.get(&format!("{CARTS}/history")).await.json();
    let obeyed: Vec<&Value> = history["commands"].as_array().unwrap().iter().map(|one| &one["command"]).collect();
    assert_eq!(obeyed, ["resume", "suspend"]);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_approval_gets_its_answer_when_another_revision_waits() {
    let mut stand = patient(&manual("")).await;
    let body = r#"{"by": "ann"}"#;
    let first = keyed(&mut stand, &path("staging", "v2"), "k-1", body).await;
    assert_eq!((first.status, &first.headers[LOCATION]), (201, &"https://git.test/o/r/pulls/1".parse().unwrap()));
    stand.observe("dev", "v3/R").await;
    same(&keyed(&mut stand, &path("staging", "v2"), "k-1", body).await, &first);
    let again = stand.post(&path("staging", "v2"), &json!({"by": "ann"})).await;
    assert_eq!(again.status, 422, "without the key it is another approval: {again:?}");
    let waits = stand.get(CARTS).await.json()["environments"][1]["waitingApproval"].clone();
    assert_eq!((&waits["revision"], &waits["given"]), (&json!("v3"), &json!(0)));
}

#[tokio::test(start_paused = true)]
async fn an_approval_that_was_obeyed_unseen_is_no_answer_about_another_revision() {
    let mut stand = Stand::new();
    begin(&mut stand, &manual("")).await;
    assert_eq!(stand.request(request(TOKEN, &path("staging", "v2"), "k-1", "{}")).await.status, 202);
    stand.work().await;
    stand.observe("dev", "v3/R").await;
    assert_eq!(stand.post(&path("staging", "v3"), &json!({})).await.status, 202);
    stand.work().await;
    let outcome = stand.request(request(TOKEN, &path("staging", "v2"), "k-1", "{}")).await;
    assert_eq!((outcome.status, outcome.headers.get(LOCATION)), (204, None), "{outcome:?}");
    assert_eq!(stand.forge.opened(), ["staging v2", "staging v3"]);
}

#[tokio::test(start_paused = true)]
async fn a_key_belongs_to_one_body_of_one_token_on_one_path() {
    let mut stand = patient(&manual("")).await;
    assert_eq!(keyed(&mut stand, &commands(), "k", SUSPEND).await.status, 200);
    let other = keyed(&mut stand, &commands(), "k", RESUME).await;
    assert_eq!(
        (other.status, other.problem().contains("Idempotency-Key: this key was sent here before")),
        (422, true),
        "{other:?}"
    );
    assert!(suspended(&stand).await);
    let token = stand.while_working(request(OTHER_TOKEN, &commands(), "k", RESUME)).await;
    assert_eq!((token.status, suspended(&stand).await), (200, false), "{token:?}");
    for (environment, revision, status) in [("staging", "v2", 201), ("staging", "v1", 422), ("prod", "v2", 422)] {
        let answer = keyed(&mut stand, &path(environment, revision), "k", "{}").await;
        assert_eq!(answer.status, status, "{environment} {revision} {answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_request_is_looked_at_again() {
    let mut stand = patient(BY_REQUEST).await;
    let retry = r#"{"command": "retry", "environment": "staging"}"#;
    assert_eq!(keyed(&mut stand, &commands(), "k", retry).await.status, 409);
    assert_eq!(stand.post_while_working(&commands(), &json!({"command": "abort", "environment": "staging"})).await.status, 200);
    for _ in 0..2 {
        assert_eq!(keyed(&mut stand, &commands(), "k", retry).await.status, 200);
    }
    assert_eq!(stand.forge.opened(), ["staging v2", "staging v2"], "one retry");
}

#[tokio::test]
async fn what_is_no_key_is_told() {
    let stand = Stand::new();
    let long = "x".repeat(256);
    for key in ["", long.as_str()] {
        let answer = stand.request(request(TOKEN, &commands(), key, SUSPEND)).await;
        let told = answer.problem().contains("Idempotency-Key: is no key: it has 1 to 255 ASCII characters");
        assert_eq!((answer.status, told), (400, true), "{answer:?}");
    }
    let mut twice = request(TOKEN, &commands(), "a", SUSPEND);
    twice.headers_mut().append("idempotency-key", "b".parse().unwrap());
    let answer = stand.request(twice).await;
    assert_eq!((answer.status, answer.problem().contains("more than once")), (400, true), "{answer:?}");
}

#[tokio::test]
async fn an_evaluation_that_is_asked_for_again_is_one() {
    let mut stand = Stand::new();
    stand.apply("shop", "    - name: dev\n").await;
    assert_eq!(stand.post("/v1/project/shop/service", &json!({"serviceName": "cart"})).await.status, 200);
    let path = "/v1/project/shop/stage/dev/service/cart/evaluation";
    let first = keyed(&mut stand, path, "k-1", "{}").await;
    assert_eq!(first.status, 200, "{first:?}");
    stand.world.pass(Span::minutes(1));
    same(&keyed(&mut stand, path, "k-1", "{}").await, &first);
    assert_eq!(keyed(&mut stand, path, "k-1", r#"{"timeframe": "10m"}"#).await.status, 422);
    assert_ne!(keyed(&mut stand, path, "k-2", "{}").await.json(), first.json());
    assert_eq!(stand.get("/v1/sequence/shop").await.json()["totalCount"], 2);
}

/// A name is not who somebody is: a token that is made anew under it, for another project, is not told what the one before was
/// answered.
#[tokio::test]
async fn a_token_of_the_same_name_does_not_get_the_answers_of_the_one_before() {
    let mut stand = Stand::new();
    stand.apply("shop", "\n    - name: dev\n      sequences:\n        - name: delivery\n          tasks: [{name: test}]\n").await;
    let body = json!({"type": "sh.keptn.event.dev.delivery.triggered", "source": "t", "data": {"project": "shop", "stage": "dev", "service": "cart"}});
    let mut answers = vec![];
    for project in ["shop", "blog"] {
        stand.like("").token("ci", &["trigger"], &[project]).await;
        for _ in 0..2 {
            let request = request(&stand.secret_of("ci"), "/v1/event", "k", &body.to_string());
            answers.push(stand.while_working(request).await);
        }
        assert_eq!(stand.delete("/v1/tokens/ci").await.status, 204);
    }
    assert_eq!(answers.iter().map(|answer| answer.status).collect::<Vec<_>>(), [200, 200, 403, 403], "{answers:?}");
    assert_eq!(answers[0].json()["keptnContext"], answers[1].json()["keptnContext"]);
}
