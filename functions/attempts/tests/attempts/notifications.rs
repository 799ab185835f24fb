//! The strategy `notification`.

use crate::stand::{Stand, definition};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use keelway_domain::promotions::definition::{Definition, Notification, Strategy};
use keelway_domain::promotions::{NEEDED, Phase};
use keelway_domain::time::Span;
use keelway_engine::secrets::Known;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// A status, and what `Retry-After` says with it.
type Answer = (u16, Option<&'static str>);

/// A receiver that answers as told, and remembers what it got.
#[derive(Clone, Default)]
struct Receiver {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    got: Arc<Mutex<Vec<(HeaderMap, String)>>>,
}

async fn receive(State(receiver): State<Receiver>, headers: HeaderMap, body: Bytes) -> Response {
    receiver.got.lock().unwrap().push((headers, String::from_utf8(body.to_vec()).unwrap()));
    let (status, after) = receiver.answers.lock().unwrap().pop_front().unwrap_or((204, None));
    let status = StatusCode::from_u16(status).unwrap();
    after.map_or(status.into_response(), |after| (status, [("retry-after", after)]).into_response())
}

impl Receiver {
    async fn listen(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook?token=t0ken", listener.local_addr().unwrap());
        let app = Router::new().fallback(receive).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        url
    }
    fn got(&self) -> Vec<(HeaderMap, String)> {
        self.got.lock().unwrap().clone()
    }
}

fn telling(url: Option<String>) -> Definition {
    let secret = url.is_some().then(|| "hook".to_owned());
    definition(&["dev", "staging", "prod"], Strategy::Notification(Notification { url, secret }))
}

#[tokio::test]
async fn the_bus_is_told() {
    let (mut stand, definition) = (Stand::new(Known::default()), telling(None));
    stand.apply(&definition).await;
    stand.all_run(&definition, "v1").await;
    stand.runs(&definition, "dev", "v2").await;
    let told = stand.published(NEEDED);
    let [event] = &told[..] else { panic!("{} events", told.len()) };
    assert_eq!(event["data"]["metadata"], serde_json::json!({"environment": "staging", "version": "v2"}));
    assert_eq!(event["data"]["message"], "Promote shop/cart in staging to v2");
    assert_eq!(stand.promotion("staging").await.phase, Phase::Succeeded);
    stand.runs(&definition, "staging", "v2").await;
    assert_eq!(stand.published(NEEDED).len(), 2);
}

#[tokio::test]
async fn the_receiver_gets_a_signed_request_until_it_accepts_it() {
    let receiver = Receiver::default();
    receiver.answers.lock().unwrap().extend([(500, None), (429, Some("600")), (302, None)]);
    let url = receiver.listen().await;
    let mut stand = Stand::new(Known::default().with("shop/hook", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"));
    let definition = telling(Some(url));
    stand.apply(&definition).await;
    stand.all_run(&definition, "v1").await;
    stand.runs(&definition, "dev", "v2").await;
    let promotion = stand.promotion("staging").await;
    assert_eq!((promotion.phase, promotion.why.reason.as_str()), (Phase::Failed, "ReceiverRefused"));
    assert!(promotion.why.message.contains("/hook answered 500") && !promotion.why.message.contains("t0ken"));
    stand.pass(Span::minutes(1)).await;
    // As long as the receiver wishes, nothing is sent.
    assert_eq!(receiver.got().len(), 2);
    stand.pass(Span::minutes(8)).await;
    assert_eq!(receiver.got().len(), 2);
    stand.pass(Span::minutes(30)).await;
    assert_eq!(stand.promotion("staging").await.phase, Phase::Succeeded, "{:?}", stand.promotion("staging").await.why);
    let got = receiver.got();
    assert_eq!(got.len(), 4);
    let header = |n: usize, name: &str| got[n].0.get(name).unwrap().to_str().unwrap().to_owned();
    for n in 0..4 {
        assert_eq!(header(n, "webhook-id"), header(0, "webhook-id"));
        assert_eq!(got[n].1, got[0].1, "each attempt sends the same event");
        assert!(header(n, "webhook-signature").starts_with("v1,"));
    }
    assert_ne!(header(0, "webhook-signature"), header(3, "webhook-signature"), "the time is signed");
    let event: Value = serde_json::from_str(&got[0].1).unwrap();
    assert_eq!((event["type"].as_str(), event["id"].as_str()), (Some(NEEDED), Some(header(0, "webhook-id").as_str())));
    // The bus knows it once.
    assert_eq!(stand.published(NEEDED).len(), 1);
}

#[tokio::test]
async fn without_its_secret_nothing_is_sent() {
    let receiver = Receiver::default();
    let (mut stand, definition) = (Stand::new(Known::default()), telling(Some(receiver.listen().await)));
    stand.apply(&definition).await;
    stand.all_run(&definition, "v1").await;
    stand.runs(&definition, "dev", "v2").await;
    assert_eq!(stand.promotion("staging").await.why.reason, "SecretMissing");
    assert!(receiver.got().is_empty() && stand.published(NEEDED).is_empty());
}

/// Only the hosts of the stand are allowed.
#[tokio::test]
async fn a_private_address_gets_no_request_and_the_promotion_says_why() {
    let key = || Known::default().with("shop/hook", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    for (url, says) in [
        ("https://169.254.169.254/latest?token=t0ken", "169.254.169.254 is not an address of the public internet"),
        ("http://hooks.example.com/", "must begin with https://"),
    ] {
        let (mut stand, definition) = (Stand::new(key()), telling(Some(url.to_owned())));
        stand.apply(&definition).await;
        stand.all_run(&definition, "v1").await;
        stand.runs(&definition, "dev", "v2").await;
        let why = stand.promotion("staging").await.why;
        assert_eq!((why.reason.as_str(), why.message.contains(says)), ("UnusableUrl", true), "{why:?}");
        assert!(!why.message.contains("t0ken"), "{why:?}");
    }
}
