//! The guards, against a server that really listens and a resolver that changes its mind.

use crate::server::{Answers, OK, Server};
use keelway_outgoing::header::HeaderMap;
use keelway_outgoing::{Answer, Client, Failure, Hosts, Limits};
use std::sync::atomic::Ordering;
use std::time::Duration;

const QUICK: Limits =
    Limits { connect: Duration::from_secs(2), total: Duration::from_secs(4), request_bytes: 1000, answer_bytes: 1000 };

fn client(lookup: Answers, allowed: &str) -> Client {
    Client::with(lookup, Hosts::parse(allowed), QUICK)
}

async fn post(client: &Client, url: &str) -> Result<Answer, Failure> {
    client.post(url, HeaderMap::new(), "{}".into()).await
}

#[tokio::test]
async fn a_name_that_resolves_to_this_machine_gets_no_connection() {
    let server = Server::answering(OK).await;
    for address in ["127.0.0.1", "::1", "::ffff:127.0.0.1", "169.254.169.254", "10.0.0.1"] {
        let client = client(Answers::of(&[&[address]]), "");
        let refused = post(&client, &format!("https://receiver.test:{}/", server.port)).await;
        assert_eq!(refused, Err(Failure::Address(address.parse().unwrap())));
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn one_private_address_among_public_ones_refuses_the_name() {
    let client = client(Answers::of(&[&["1.1.1.1", "10.0.0.1"]]), "");
    assert_eq!(post(&client, "https://receiver.test/").await, Err(Failure::Address("10.0.0.1".parse().unwrap())));
}

/// It is asked once for a connection: there is no second answer that could differ from the one that was checked.
#[tokio::test]
async fn a_name_that_is_rebound_after_the_check_is_not_followed() {
    let server = Server::answering(OK).await;
    // Nobody answers there in time, and nothing may be sent to the second address instead.
    let answers = Answers::of(&[&["1.1.1.1"], &["127.0.0.1"]]);
    let client = Client::with(
        answers.clone(),
        Hosts::default(),
        Limits { connect: Duration::from_millis(300), total: Duration::from_millis(600), ..QUICK },
    );
    let url = format!("https://receiver.test:{}/", server.port);
    let first = post(&client, &url).await;
    assert!(matches!(first, Err(Failure::Unreachable(_) | Failure::TooSlow(_))), "{first:?}");
    assert_eq!(answers.1.load(Ordering::SeqCst), 1);
    assert_eq!(post(&client, &url).await, Err(Failure::Address("127.0.0.1".parse().unwrap())));
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn an_address_in_the_url_is_checked_however_it_is_written() {
    let server = Server::answering(OK).await;
    let client = client(Answers::of(&[&["1.1.1.1"]]), "");
    let loopback = ["127.0.0.1", "127.0.0.1.", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "%31%32%37.0.0.1", "①②⑦.0.0.1"];
    let others = [
        "0",
        "169.254.169.254",
        "0xa9fea9fe",
        "100.64.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::a9fe:a9fe]",
    ];
    let more = ["[fd00:ec2::254]", "[fe80::1]", "[2002:7f00:1::]", "[::127.0.0.1]"];
    for host in loopback.iter().chain(&others).chain(&more) {
        let refused = post(&client, &format!("https://{host}:{}/", server.port)).await;
        assert!(matches!(refused, Err(Failure::Address(_))), "{host}: {refused:?}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn only_https_is_used_and_no_credentials_in_urls() {
    let client = client(Answers::of(&[&["1.1.1.1"]]), "");
    for url in
        ["http://receiver.test/", "ftp://receiver.test/", "file:///etc/passwd", "https://me:secret@receiver.test/", "receiver"]
    {
        let refused = post(&client, url).await.unwrap_err();
        assert!(matches!(refused, Failure::Url(_)) && !refused.to_string().contains("secret"), "{url}: {refused}");
    }
}

#[tokio::test]
async fn an_allowed_host_is_reached_where_it_is_but_no_other_port_of_it() {
    let server = Server::answering(OK).await;
    let allowed = format!("receiver.test:{}, other.test", server.port);
    let client = client(Answers::of(&[&["127.0.0.1"]]), &allowed);
    let url = |host: &str, port: u16| format!("http://{host}:{port}/");
    let answer = post(&client, &url("receiver.test", server.port)).await.unwrap();
    assert_eq!((answer.status, answer.body.as_slice()), (200, b"ok".as_slice()));
    assert_eq!(post(&client, &url("other.test", server.port)).await.map(|answer| answer.status), Ok(200));
    assert!(matches!(post(&client, &url("receiver.test", 1)).await, Err(Failure::Url(_))));
    assert!(matches!(post(&client, "https://receiver.test:1/").await, Err(Failure::Address(_))));
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_nothing_more() {
    let target = Server::answering(OK).await;
    let answer = format!("HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:{}/\r\ncontent-length: 0\r\n\r\n", target.port);
    let server = Server::answering(answer).await;
    let client = client(Answers::of(&[&["127.0.0.1"]]), "127.0.0.1");
    assert_eq!(post(&client, &format!("http://127.0.0.1:{}/", server.port)).await.map(|answer| answer.status), Ok(302));
    assert_eq!(target.connections(), 0);
}

#[tokio::test]
async fn an_endless_answer_is_read_up_to_the_limit() {
    let mut endless = b"HTTP/1.1 200 OK\r\ncontent-length: 100000000\r\n\r\n".to_vec();
    endless.resize(50_000, b'x');
    let server = Server::answering(endless).await;
    let client = client(Answers::of(&[&["127.0.0.1"]]), "127.0.0.1");
    let answer = post(&client, &format!("http://127.0.0.1:{}/", server.port)).await.unwrap();
    assert_eq!((answer.status, answer.body.len(), answer.cut), (200, 1000, true));
}

#[tokio::test]
async fn whoever_does_not_answer_is_given_up() {
    let server = Server::answering("").await;
    let client = Client::with(
        Answers::of(&[&["127.0.0.1"]]),
        Hosts::parse("127.0.0.1"),
        Limits { total: Duration::from_millis(200), ..QUICK },
    );
    let slow = post(&client, &format!("http://127.0.0.1:{}/", server.port)).await;
    assert_eq!(slow, Err(Failure::TooSlow(0)));
    assert_eq!(server.connections(), 1, "and it is not asked a second time");
}

#[tokio::test]
async fn a_body_that_is_too_large_is_not_sent() {
    let server = Server::answering(OK).await;
    let client = client(Answers::of(&[&["127.0.0.1"]]), "127.0.0.1");
    let url = format!("http://127.0.0.1:{}/", server.port);
    let refused = client.post(&url, HeaderMap::new(), "x".repeat(1001)).await;
    assert_eq!((refused, server.connections()), (Err(Failure::TooLarge(1001, 1000)), 0));
}

#[tokio::test]
async fn how_long_to_wait_is_read_from_the_answer() {
    let client = client(Answers::of(&[&["127.0.0.1"]]), "127.0.0.1");
    for (text, seconds) in [
        ("120", Some(120)),
        ("99999999999999999999999", Some(i64::MAX)),
        ("-5", None),
        ("1.5", None),
        ("Sun, 06 Nov 1994 08:49:37 GMT", Some(0)),
        ("Sunday, 06-Nov-94 08:49:37 GMT", Some(0)),
        ("Sun Nov  6 08:49:37 1994", Some(0)),
        ("soon", None),
    ] {
        let answer = format!("HTTP/1.1 503 Service Unavailable\r\nretry-after: {text}\r\ncontent-length: 0\r\n\r\n");
        let server = Server::answering(answer).await;
        let answer = post(&client, &format!("http://127.0.0.1:{}/", server.port)).await.unwrap();
        assert_eq!((answer.status, answer.retry_after), (503, seconds), "{text}");
        assert!(server.got.lock().unwrap().starts_with("POST / HTTP/1.1\r\n"));
    }
    let server =
        Server::answering("HTTP/1.1 503 Busy\r\nretry-after: Sun, 06 Nov 2101 08:49:37 GMT\r\ncontent-length: 0\r\n\r\n").await;
    let answer = post(&client, &format!("http://127.0.0.1:{}/", server.port)).await.unwrap();
    assert!(answer.retry_after.is_some_and(|seconds| seconds > 86_400));
}
