//! Events of a function URL as Lambda hands them to the function, before anything has read them.

use crate::stand::{Stand, TOKEN};
use keelway_api::answer;
use lambda_http::{Context, LambdaEvent};
use serde_json::{Value, json};

/// The answer to a raw event: its status and body.
async fn ask(stand: &Stand, path: &str, query: &str, headers: Value) -> (u64, Value) {
    let event = json!({
        "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": query, "headers": headers,
        "requestContext": {
            "accountId": "anonymous", "apiId": "a1b2", "domainName": "a1b2.lambda-url.eu-central-1.on.aws", "domainPrefix": "a1b2",
            "http": {"method": "GET", "path": path, "protocol": "HTTP/1.1", "sourceIp": "203.0.113.1", "userAgent": "test"},
            "requestId": "r1", "routeKey": "$default", "stage": "$default", "time": "20/Nov/2026:12:00:00 +0000", "timeEpoch": 1
        },
        "isBase64Encoded": false
    });
    let event = LambdaEvent::new(serde_json::from_value(event).unwrap(), Context::default());
    let answer = serde_json::to_value(answer(stand.app(), event).await.unwrap()).unwrap();
    let body = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
    (answer["statusCode"].as_u64().unwrap(), body)
}

fn with_token() -> Value {
    json!({"host": "a1b2.lambda-url.eu-central-1.on.aws", "x-forwarded-proto": "https", "x-token": TOKEN})
}

#[tokio::test]
async fn an_ordinary_event_is_a_request() {
    let stand = Stand::new();
    let (status, body) = ask(&stand, "/v1/project", "pageSize=2", with_token()).await;
    assert_eq!((status, &body["pageSize"]), (200, &json!(2)), "{body}");
    let (status, body) = ask(&stand, "/api/controlPlane/v1/project", "pageSize=a%20b", with_token()).await;
    assert_eq!((status, &body["instance"]), (400, &json!("/v1/project")), "{body}");
    assert_eq!(ask(&stand, "/v1/project", "", json!({})).await.0, 401);
}

#[tokio::test]
async fn what_no_url_may_contain_is_refused_before_the_token_is_looked_at() {
    let stand = Stand::new();
    for odd in [' ', '"', '<', '>', '\t', '\n', '\u{0}', '\u{7f}'] {
        let (status, body) = ask(&stand, "/v1/project", &format!("pageSize=1{odd}2"), json!({})).await;
        assert_eq!(
            (status, &body["title"], &body["instance"]),
            (400, &json!("invalid address"), &json!("/v1/project")),
            "{odd:?}: {body}"
        );
        let expected = format!("the query string contains {odd:?}, which no URL may contain");
        assert!(body["detail"].as_str().is_some_and(|detail| detail.starts_with(&expected)), "{odd:?}: {body}");
    }
    for (path, query) in [("/v1/".to_owned() + &"\u{e9}".repeat(15_000), String::new()), ("/v1/project".into(), "x".repeat(70_000))]
    {
        let (status, body) = ask(&stand, &path, &query, with_token()).await;
        assert_eq!(status, 400, "{body}");
        assert!(body["detail"].as_str().is_some_and(|detail| detail.contains("at most 20000 are allowed")), "{body}");
    }
}

#[tokio::test]
async fn no_host_and_no_path_stops_the_function() {
    let stand = Stand::new();
    for path in ["", "@", ":x", "//", "/v1/%ff", "/v1/a b", "/v1/\u{0}", "/v1/\"<>", "/v1/../v1/..//?#"] {
        for host in ["a b", "[", "a:99999999", ""] {
            let headers = json!({"host": host, "x-forwarded-proto": "ht tp", "x-token": TOKEN});
            let (status, body) = ask(&stand, path, "", headers).await;
            assert!((400..500).contains(&status), "{path:?} of {host:?}: {status} {body}");
        }
    }
}
