//! The session of Keptn's clients in memory: as events of a function URL, because what stands in their paths matters.

use crate::recorded::{Play, Sent, session};
use crate::stand::{Stand, TOKEN};
use keelway_api::answer;
use keelway_domain::time::Span;
use lambda_http::{Context, LambdaEvent};
use serde_json::{Value, json};

/// How often a request is sent again; the engine works in between.
const TRIES: usize = 5;

async fn ask(stand: &Stand, sent: &Sent) -> (u16, Value) {
    let (path, query) = sent.path.split_once('?').unwrap_or((&sent.path, ""));
    let event = json!({
        "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": query,
        "headers": {"x-token": TOKEN, "content-type": "application/json", "host": "a1b2.lambda-url.eu-central-1.on.aws"},
        "requestContext": {
            "accountId": "anonymous", "apiId": "a1b2", "domainName": "a1b2.lambda-url.eu-central-1.on.aws", "domainPrefix": "a1b2",
            "http": {"method": sent.method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "203.0.113.1", "userAgent": "Go-http-client"},
            "requestId": "r1", "routeKey": "$default", "stage": "$default", "time": "20/Nov/2026:12:00:00 +0000", "timeEpoch": 1
        },
        "body": sent.body, "isBase64Encoded": false
    });
    let event = LambdaEvent::new(serde_json::from_value(event).unwrap(), Context::default());
    let answer = serde_json::to_value(answer(stand.app(), event).await.unwrap()).unwrap();
    let body = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap_or_default();
    (u16::try_from(answer["statusCode"].as_u64().unwrap()).unwrap(), body)
}

#[tokio::test]
async fn every_request_of_keptns_clients_is_answered_as_they_need() {
    let mut stand = Stand::new();
    let mut play = Play::new("session");
    let steps = session();
    for command in ["auth", "create project", "add-resource", "trigger delivery", "send event approval.finished", "delete project"]
    {
        assert!(steps.iter().any(|step| step.does.starts_with(command)), "{command}");
    }
    for step in &steps {
        for recorded in &step.requests {
            let mut left = if recorded.again { TRIES } else { 1 };
            loop {
                let sent = play.request(recorded);
                let (status, body) = ask(&stand, &sent).await;
                stand.work().await;
                stand.world.pass(Span::seconds(1));
                left -= 1;
                match play.check(recorded, status, &body) {
                    Ok(()) => break,
                    Err(why) => assert!(left > 0, "{} {}: {sent:?}: {why}", step.client, step.does),
                }
            }
        }
    }
}
