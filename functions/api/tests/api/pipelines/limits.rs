//! Approvals without a token: a client sends at most 20 in 30 seconds.

use crate::pipelines::applied::{manual, stand};
use crate::pipelines::approvals::path;
use crate::stand::{Stand, TOKEN};
use keelway_api::answer;
use keelway_domain::time::Span;
use lambda_http::{Context, LambdaEvent};
use serde_json::{Value, json};

/// An approval as Lambda hands it to the function; its status and `Retry-After`. `None`: Lambda does not say where it comes from.
async fn approve(stand: &Stand, from: Option<&str>, headers: Value) -> (u64, Option<u64>) {
    let path = path("staging", "v2");
    let event = json!({
        "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": "", "headers": headers, "body": "{}",
        "requestContext": {
            "accountId": "anonymous", "apiId": "a1b2", "requestId": "r1", "routeKey": "$default", "stage": "$default", "timeEpoch": 1,
            "http": {"method": "POST", "path": path, "protocol": "HTTP/1.1", "sourceIp": from},
        },
        "isBase64Encoded": false
    });
    let event = LambdaEvent::new(serde_json::from_value(event).unwrap(), Context::default());
    let answer = serde_json::to_value(answer(stand.app(), event).await.unwrap()).unwrap();
    let retry = answer["headers"]["retry-after"].as_str().map(|seconds| seconds.parse().unwrap());
    (answer["statusCode"].as_u64().unwrap(), retry)
}

/// Twenty requests from one address.
async fn twenty(stand: &Stand, from: Option<&str>) {
    for n in 0..20 {
        assert_eq!(approve(stand, from, json!({})).await, (401, None), "request {n}");
    }
}

#[tokio::test]
async fn the_twenty_first_request_in_a_window_is_one_too_many() {
    let stand = stand(&manual("")).await;
    let into = stand.world.now().0 % 30_000;
    let left = u64::try_from(30_000 - into).unwrap().div_ceil(1000);
    let one = Some("203.0.113.1");
    twenty(&stand, one).await;
    assert_eq!(approve(&stand, one, json!({})).await, (429, Some(left)));
    // Whatever the client says about itself.
    for (n, name) in ["x-forwarded-for", "x-real-ip", "forwarded", "cf-connecting-ip", "x-client-ip"].iter().enumerate() {
        let spoofed = json!({ *name: format!("198.51.100.{n}") });
        assert_eq!(approve(&stand, one, spoofed).await.0, 429, "{name}");
    }
    // Nobody else is affected, nor is the same client with the token.
    assert_eq!(approve(&stand, Some("203.0.113.2"), json!({})).await.0, 401);
    assert_eq!(approve(&stand, one, json!({"x-token": TOKEN, "content-type": "application/json"})).await.0, 202);
    // The next window is open.
    stand.world.pass(Span(30_000 - into - 1));
    assert_eq!(approve(&stand, one, json!({})).await, (429, Some(1)));
    stand.world.pass(Span(1));
    twenty(&stand, one).await;
    assert_eq!(approve(&stand, one, json!({})).await, (429, Some(30)));
}

#[tokio::test]
async fn a_network_is_one_client_and_so_are_all_of_unknown_address() {
    let stand = stand(&manual("")).await;
    for n in 0..20 {
        assert_eq!(approve(&stand, Some(&format!("2001:db8:1:2::{n:x}")), json!({})).await.0, 401);
    }
    assert_eq!(approve(&stand, Some("2001:db8:1:2:ffff::1"), json!({})).await.0, 429);
    assert_eq!(approve(&stand, Some("2001:db8:1:3::1"), json!({})).await.0, 401);
    twenty(&stand, None).await;
    assert_eq!(approve(&stand, None, json!({"x-forwarded-for": "198.51.100.1"})).await.0, 429);
}

#[tokio::test]
async fn a_client_over_its_limit_costs_one_read() {
    let stand = stand(&manual("")).await;
    twenty(&stand, Some("203.0.113.1")).await;
    let requests = || stand.world.core().request_count();
    let before = requests();
    for _ in 0..50 {
        assert_eq!(approve(&stand, Some("203.0.113.1"), json!({})).await.0, 429);
    }
    assert_eq!(requests(), before + 50);
    // What counts a request is one read and one write, and a request without a signature costs no more.
    assert_eq!(approve(&stand, Some("203.0.113.2"), json!({})).await.0, 401);
    assert_eq!(requests(), before + 52);
}
