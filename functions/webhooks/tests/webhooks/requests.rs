//! Requests to a server on this machine, which is allowed by name.

use keelway_domain::ids::SubjectId;
use keelway_domain::time::{Span, Timestamp};
use keelway_domain::webhooks::{Body, Delivery, Exchange, Executor, Subscription};
use keelway_engine::ports::{Clock, PortError};
use keelway_engine::secrets::{Known, SecretText, Secrets};
use keelway_engine::webhooks::{Address, Request, Sender};
use keelway_outgoing::{Client, Hosts, sign};
use keelway_webhooks::Deliverer;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const KEYS: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
const LINES: &str = "-----BEGIN KEY-----\nMIIB\n-----END KEY-----";
const NOW: Timestamp = Timestamp(1_614_265_330_123);

/// Secrets, and a clock that stands still.
#[derive(Clone)]
struct Ports(Known);

impl Secrets for Ports {
    async fn secret(&self, name: &str) -> Result<Option<SecretText>, PortError> {
        self.0.secret(name).await
    }
}

impl Clock for Ports {
    fn now(&self) -> Timestamp {
        NOW
    }
    async fn pause(&self, _: Span) {}
}

/// A server that answers every request the same, and keeps the last one.
struct Server {
    port: u16,
    got: Arc<Mutex<String>>,
}

impl Server {
    async fn answering(answer: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (port, got): (u16, Arc<Mutex<String>>) = (listener.local_addr().unwrap().port(), Arc::default());
        let (kept, answer) = (got.clone(), answer.to_owned());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut text = String::new();
                let mut buffer = vec![0; 65536];
                loop {
                    let n = stream.read(&mut buffer).await.unwrap_or_default();
                    text.push_str(&String::from_utf8_lossy(&buffer[..n]));
                    let body = text.split_once("\r\n\r\n").map(|(head, body)| (length(head), body.len()));
                    if n == 0 || body.is_some_and(|(wanted, there)| there >= wanted) {
                        break;
                    }
                }
                *kept.lock().unwrap() = text;
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        Self { port, got }
    }

    /// The headers, and the body.
    fn got(&self) -> (HashMap<String, String>, String) {
        let text = self.got.lock().unwrap().clone();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_default();
        let lines = head.lines().skip(1).filter_map(|line| line.split_once(": "));
        (lines.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect(), body.to_owned())
    }
}

fn length(head: &str) -> usize {
    let line = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned));
    line.and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn subscription(url: &str) -> Subscription {
    Subscription {
        events: vec!["*".into()],
        projects: vec!["shop".into()],
        stages: vec![],
        services: vec![],
        match_expressions: vec![],
        url: url.into(),
        headers: BTreeMap::new(),
        body: Body::Event,
        secrets: BTreeMap::from([("token".into(), "pager-token".into())]),
        signing: Some("key".into()),
        send_started: false,
        send_finished: false,
        attempts: 10,
    }
}

fn event() -> Value {
    json!({
        "specversion": "1.0", "id": "e 1", "source": "me", "type": "sh.keptn.event.dev.delivery.finished", "shkeptncontext": "c-1",
        "data": {"project": "shop", "message": "two\nlines", "result": "fail"},
    })
}

async fn send(subscription: &Subscription, again: Option<&str>) -> Exchange {
    let secrets = Known::default().with("shop/key", KEYS).with("shop/pager-token", "s3cret").with("shop/lines", LINES);
    let client = Client::new(Hosts::parse("127.0.0.1"));
    let of = Address { namespace: "shop".into(), name: "hook".into() };
    let delivery = Delivery::begin(("shop", "hook"), &event(), again, Executor::default(), NOW);
    assert_ne!(delivery.id, SubjectId(0));
    let request = Request { of: &of, subscription, delivery: &delivery, now: NOW };
    Deliverer::new(Ports(secrets), client).send(&request).await.unwrap()
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 23\r\nconnection: close\r\n\r\nok \u{7} s3cret s3cret done";

#[tokio::test]
async fn an_event_is_sent_as_it_is_with_a_signature_for_each_key() {
    let server = Server::answering(OK).await;
    let subscription = subscription(&format!("http://127.0.0.1:{}/", server.port));
    let attempt = send(&subscription, None).await;
    assert_eq!((attempt.status, attempt.error.as_str(), attempt.at), (Some(200), "", NOW));
    assert_eq!(attempt.answer, "ok   *** *** done", "no secret and no control character");
    let (headers, body) = server.got();
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), event());
    assert_eq!(
        (headers["content-type"].as_str(), headers["webhook-timestamp"].as_str()),
        ("application/cloudevents+json", "1614265330")
    );
    let id = &headers["webhook-id"];
    assert!(id.starts_with("msg_") && !id.contains(' '), "{id}");
    assert_eq!(Some(&headers["webhook-signature"]), sign(KEYS, id, 1_614_265_330, &body).as_ref());
    assert_eq!(headers["webhook-signature"].split(' ').count(), 2);
    send(&subscription, Some("again")).await;
    assert_eq!(&server.got().0["webhook-id"], id, "the receiver can tell that it had it");
}

/// The text comes from a page of the receiver that repeats what it got.
#[tokio::test]
async fn a_secret_with_line_breaks_is_masked_where_it_is_repeated() {
    let body = format!("got {LINES} here");
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
    let server = Server::answering(&answer).await;
    let url = format!("http://127.0.0.1:{}/", server.port);
    let subscription = Subscription { secrets: BTreeMap::from([("lines".into(), "lines".into())]), ..subscription(&url) };
    assert_eq!(send(&subscription, None).await.answer, "got *** here");
}

#[tokio::test]
async fn templates_become_url_headers_and_body() {
    let server = Server::answering(OK).await;
    let subscription = Subscription {
        headers: BTreeMap::from([("authorization".into(), "Bearer {{ secrets.token }}".into())]),
        body: Body::Template {
            text: r#"{"text": "{{ data.message }}", "token": "{{ secrets.token }}"}"#.into(),
            content_type: "application/json".into(),
        },
        ..subscription(&format!("http://127.0.0.1:{}/{{{{ data.message }}}}", server.port))
    };
    assert_eq!(send(&subscription, None).await.status, Some(200));
    let (headers, body) = server.got();
    assert_eq!(headers["authorization"], "Bearer s3cret");
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), json!({"text": "two\nlines", "token": "s3cret"}));
    assert!(server.got.lock().unwrap().starts_with("POST /two%0Alines HTTP/1.1"));
}

#[tokio::test]
async fn what_cannot_be_sent_is_an_attempt_that_says_why() {
    let server = Server::answering(OK).await;
    let good = subscription(&format!("http://127.0.0.1:{}/", server.port));
    let template = |text: &str| Body::Template { text: text.into(), content_type: "application/json".into() };
    let broken = [
        (Subscription { body: template("{{ data.nothing }}"), ..good.clone() }, "spec.body: undefined value"),
        (Subscription { body: template("no JSON"), ..good.clone() }, "spec.body: what it becomes is not JSON"),
        (Subscription { url: "{{ data.result }}".into(), ..good.clone() }, "the URL cannot be used"),
        (
            Subscription { url: "https://127.0.0.1:1/".replace("127.0.0.1", "10.0.0.1"), ..good.clone() },
            "10.0.0.1 is not an address",
        ),
        (Subscription { signing: Some("other".into()), ..good.clone() }, "there is no secret \"shop/other\": create it"),
        (
            Subscription { headers: BTreeMap::from([("x-a".into(), "{{ data.message }}".into())]), ..good.clone() },
            "spec.headers.x-a: what it becomes cannot stand in a header",
        ),
        (Subscription { url: "https://{{ secrets.token }}:x/".into(), ..good.clone() }, "the URL cannot be used"),
    ];
    for (subscription, why) in broken {
        let attempt = send(&subscription, None).await;
        assert!(attempt.status.is_none() && attempt.error.contains(why) && !attempt.error.contains("s3cret"), "{why}: {attempt:?}");
    }
    assert!(server.got.lock().unwrap().is_empty(), "nothing was sent");
}

#[tokio::test]
async fn how_long_a_receiver_wants_peace_counts_only_if_it_is_busy() {
    for (status, seconds) in [("429 Too Many Requests", Some(60)), ("503 Service Unavailable", Some(60)), ("500 Oops", None)] {
        let server =
            Server::answering(&format!("HTTP/1.1 {status}\r\nretry-after: 60\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"))
                .await;
        let attempt = send(&subscription(&format!("http://127.0.0.1:{}/", server.port)), None).await;
        assert_eq!(attempt.retry_after, seconds.map(Span::seconds), "{status}");
    }
}
