//! Requests with credentials: to git hosts, clusters and identity providers.

use crate::server::{Answers, OK, Server};
use keelway_outgoing::header::{AUTHORIZATION, HeaderValue};
use keelway_outgoing::{Failure, Guard, Hosts, LARGE, Method, NOT_PUBLIC, Reply, Roots, StatusCode, Terms, Wire};
use std::time::Duration;

const TERMS: Terms = Terms {
    connect: Duration::from_secs(2),
    total: Duration::from_secs(4),
    idle: None,
    roots: Roots::Known,
    redirects: 3,
    plain: false,
};

fn guard(allowed: &str, found: &[&str]) -> Guard {
    Guard::new(Hosts::parse(allowed)).with_lookup(Answers::of(&[found]))
}

async fn ask(wire: &Wire, method: Method, url: &str) -> Result<Reply, Failure> {
    wire.call(method, url).header(AUTHORIZATION, HeaderValue::from_static("Bearer t0ken")).send(LARGE).await
}

async fn get(guard: &Guard, url: &str) -> Result<Reply, Failure> {
    ask(&Wire::new(guard, TERMS), Method::GET, url).await
}

fn refused(failure: Failure) -> bool {
    matches!(failure, Failure::Address(_)) && failure.to_string().contains("AllowedHosts")
}

fn redirect(status: u16, to: &str) -> String {
    format!("HTTP/1.1 {status} Moved\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n")
}

#[tokio::test]
async fn no_address_that_is_not_public_gets_a_request_in_a_url_or_behind_a_name() {
    for address in NOT_PUBLIC {
        let literal = if address.contains(':') { format!("[{address}]") } else { (*address).to_owned() };
        let guard = guard("other.internal,other.internal:1", &[address]);
        assert!(refused(get(&guard, &format!("https://{literal}/")).await.unwrap_err()), "{address}");
        assert!(refused(get(&guard, "https://host.test/").await.unwrap_err()), "{address}");
    }
}

#[tokio::test]
async fn what_the_operator_lists_is_reached_over_https() {
    let server = Server::answering(OK).await;
    let port = server.port;
    // The server has no TLS: that somebody tried to speak it shows that the guard let the request through.
    for (n, (allowed, host)) in [
        ("host.test".to_owned(), "host.test"),
        (format!("a.test, host.test:{port}"), "host.test"),
        ("127.0.0.1".into(), "127.0.0.1"),
        ("127.0.0.0/8".into(), "host.test"),
        ("10.0.0.0/8,127.0.0.1/32".into(), "127.0.0.1"),
    ]
    .into_iter()
    .enumerate()
    {
        let guard = guard(&allowed, &["127.0.0.1"]);
        let failure = get(&guard, &format!("https://{host}:{port}/")).await.unwrap_err();
        assert!(!refused(failure.clone()), "{allowed}: {failure}");
        assert_eq!(server.connections(), n + 1, "{allowed}");
        let plain = get(&guard, &format!("http://{host}:{port}/")).await.unwrap_err();
        assert!(matches!(plain, Failure::Url(_)), "{allowed}: {plain}");
    }
    for allowed in ["127.0.0.0/33", "128.0.0.0/8", "host.test:1", "test", "*"] {
        assert!(
            refused(get(&guard(allowed, &["127.0.0.1"]), &format!("https://host.test:{port}/")).await.unwrap_err()),
            "{allowed}"
        );
    }
    assert_eq!(server.connections(), 5);
}

#[tokio::test]
async fn this_machine_is_reached_without_tls_only_where_the_switch_says_so() {
    let server = Server::answering(OK).await;
    for host in ["127.0.0.1", "localhost"] {
        let url = format!("http://{host}:{}/", server.port);
        let failure = get(&guard("", &["127.0.0.1"]), &url).await.unwrap_err();
        assert!(failure.to_string().contains("for a local cloud only"), "{failure}");
    }
    assert_eq!(server.connections(), 0);
    for host in ["127.0.0.1", "localhost"] {
        let here = guard("", &["127.0.0.1"]).with_loopback(true);
        assert_eq!(get(&here, &format!("http://{host}:{}/", server.port)).await.unwrap().status, StatusCode::OK);
        // Another name of this machine is none.
        assert!(refused(get(&here, &format!("https://host.test:{}/", server.port)).await.unwrap_err()));
    }
}

#[tokio::test]
async fn a_redirect_leads_nowhere_that_a_request_may_not_go() {
    let here = guard("", &["10.0.0.1"]).with_loopback(true);
    for to in ["https://10.0.0.1/", "https://host.test/", "https://[::ffff:169.254.169.254]/latest"] {
        let server = Server::answering(redirect(302, to)).await;
        assert!(refused(get(&here, &format!("http://127.0.0.1:{}/", server.port)).await.unwrap_err()), "{to}");
    }
    for to in ["http://host.test/", "ftp://host.test/", "https://me:pass@host.test/", "//"] {
        let server = Server::answering(redirect(302, to)).await;
        let reply = get(&here, &format!("http://127.0.0.1:{}/", server.port)).await.unwrap();
        assert_eq!(reply.status, StatusCode::FOUND, "{to}");
    }
}

#[tokio::test]
async fn a_redirect_takes_no_token_to_another_server_and_no_change_anywhere() {
    let here = guard("", &[]).with_loopback(true);
    let other = Server::answering(OK).await;
    let to = format!("http://127.0.0.1:{}/there", other.port);
    for status in [301, 302, 303, 307, 308] {
        let server = Server::answering(redirect(status, &to)).await;
        let url = format!("http://127.0.0.1:{}/", server.port);
        assert_eq!(get(&here, &url).await.unwrap().status, StatusCode::OK);
        let posted = ask(&Wire::new(&here, TERMS), Method::POST, &url).await.unwrap();
        assert_eq!(posted.status.as_u16(), status);
        assert_eq!(server.got.lock().unwrap().matches("authorization: Bearer t0ken").count(), 2);
        let none = Wire::new(&here, Terms { redirects: 0, ..TERMS });
        assert_eq!(ask(&none, Method::GET, &url).await.unwrap().status.as_u16(), status);
    }
    let got = other.got.lock().unwrap();
    assert_eq!((got.matches("GET /there").count(), got.contains("t0ken"), got.contains("POST")), (5, false, false), "{got}");
}

#[tokio::test]
async fn of_an_answer_no_more_is_read_than_was_asked_for() {
    let here = guard("", &[]).with_loopback(true);
    let mut endless = b"HTTP/1.1 200 OK\r\ncontent-length: 100000000\r\n\r\n".to_vec();
    endless.resize(200_000, b'x');
    let server = Server::answering(endless).await;
    let reply =
        Wire::new(&here, TERMS).call(Method::GET, &format!("http://127.0.0.1:{}/", server.port)).send(10_000).await.unwrap();
    assert!(reply.cut && reply.body.len() <= 10_000, "{}", reply.body.len());
}

#[tokio::test]
async fn a_large_answer_waits_until_another_one_is_no_longer_kept() {
    let here = guard("", &[]).with_loopback(true);
    let large = |bytes: usize| {
        let mut answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {bytes}\r\n\r\n").into_bytes();
        answer.resize(answer.len() + bytes, b'x');
        answer
    };
    let (first, second, small) =
        (Server::answering(large(2 * LARGE)).await, Server::answering(large(2 * LARGE)).await, Server::answering(OK).await);
    let url = |server: &Server| format!("http://127.0.0.1:{}/", server.port);
    let wire = |total| Wire::new(&here, Terms { total, ..TERMS });
    let (patient, hasty) = (wire(Duration::from_secs(60)), wire(Duration::from_millis(300)));
    let kept = patient.call(Method::GET, &url(&first)).send(4 * LARGE).await.unwrap();
    assert_eq!(kept.body.len(), 2 * LARGE);
    let waited = hasty.call(Method::GET, &url(&second)).send(4 * LARGE).await;
    assert_eq!(waited.unwrap_err(), Failure::TooSlow(0));
    assert_eq!(&*hasty.call(Method::GET, &url(&small)).send(4 * LARGE).await.unwrap().body, b"ok");
    drop(kept);
    assert_eq!(patient.call(Method::GET, &url(&second)).send(4 * LARGE).await.unwrap().body.len(), 2 * LARGE);
}
