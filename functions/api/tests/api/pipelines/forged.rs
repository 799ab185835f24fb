//! Signed approvals: every valid one counts exactly once, and nothing else does.

use crate::pipelines::applied::{BY_REQUEST, CARTS, begin, manual};
use crate::pipelines::approvals::path;
use crate::stand::{Answer, Stand};
use axum::body::Body;
use axum::http::Request;
use keelway_api::Client;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::promotions::NAME;
use keelway_engine::secrets::Known;
use keelway_engine::sequences::Limits;
use keelway_wire::signature::{Algorithm, HEADERS, Request as Canonical, Signed};
use keelway_world::queue::Queued;
use serde_json::{Value, json};
use std::time::Duration;

const KEYS: &str =
    r#"{"keys": [{"id": "new", "key": "key-two"}, {"id": "old", "key": "key-one", "notAfter": "2026-11-20T12:30:00Z"}]}"#;

/// A request as it is sent.
#[derive(Debug, Clone, PartialEq)]
struct Sent {
    method: String,
    path: String,
    query: String,
    body: String,
    headers: Vec<(String, String)>,
}

impl Sent {
    /// A signed request; `n` makes its nonce.
    fn signed(path: &str, body: &Value, key: (&str, &str), at: Timestamp, n: u64) -> Self {
        let body = body.to_string();
        let canonical =
            Canonical { installation: crate::stand::INSTALLATION, method: "POST", path, query: "", body: body.as_bytes() };
        let algorithm = [Algorithm::Sha256, Algorithm::Sha384, Algorithm::Sha512][usize::try_from(n % 3).unwrap()];
        let signed = Signed::new(&canonical, (key.0, key.1.as_bytes()), algorithm, at, &format!("nonce-{n:020}"));
        let headers = signed.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        Self { method: "POST".into(), path: path.into(), query: String::new(), body, headers }
    }

    /// `None`: HTTP does not carry it.
    fn request(&self) -> Option<Request<Body>> {
        let uri = if self.query.is_empty() { self.path.clone() } else { format!("{}?{}", self.path, self.query) };
        let builder = Request::builder().method(self.method.as_str()).uri(uri);
        let builder = self.headers.iter().fold(builder, |builder, (name, value)| builder.header(name, value));
        builder.body(Body::from(self.body.clone())).ok()
    }

    fn header(&mut self, name: &str) -> &mut String {
        &mut self.headers.iter_mut().find(|(known, _)| known == name).unwrap().1
    }
}

async fn stand(promotion: &str, secrets: Known) -> Stand {
    let mut stand = Stand::with_secrets(Limits::default(), Duration::ZERO, secrets);
    begin(&mut stand, promotion).await;
    stand
}

fn known() -> Known {
    Known::default().with("shop/approvals", KEYS)
}

async fn send(stand: &Stand, sent: &Sent) -> Answer {
    stand.request(sent.request().unwrap()).await
}

/// The one answer to whatever is wrong.
fn refused(answer: &Answer) -> bool {
    let mut body = answer.json();
    drop(body.as_object_mut().unwrap().remove("instance"));
    let detail = "the request has no known token in x-token, and no valid signature that was not used before: docs/promotions.md says how to sign it";
    let expected = json!({
        "type": "about:blank", "title": "unauthorized", "status": 401, "detail": detail, "code": 401, "message": detail
    });
    answer.status == 401 && body == expected
}

#[tokio::test]
async fn a_signed_approval_counts_once_and_again_with_a_fresh_nonce_gets_the_same_answer() {
    let mut stand = stand(&manual(""), known()).await;
    let to = path("staging", "v2");
    let first = Sent::signed(&to, &json!({"by": "ann"}), ("new", "key-two"), stand.world.now(), 1);
    assert_eq!(send(&stand, &first).await.status, 202);
    stand.work().await;
    assert!(refused(&send(&stand, &first).await), "a replay");
    for n in 2..4 {
        let again = Sent::signed(&to, &json!({"by": "ann"}), ("new", "key-two"), stand.world.now(), n);
        let answer = send(&stand, &again).await;
        assert_eq!(
            (answer.status, answer.headers["location"].to_str().unwrap()),
            (201, "https://git.test/o/r/pulls/1"),
            "{answer:?}"
        );
    }
    assert_eq!(stand.forge.opened(), ["staging v2"]);
    let state = stand.get(CARTS).await.json();
    assert_eq!(state["environments"][1]["promotion"]["approvals"][0]["by"], "key:new/ann");
}

#[tokio::test]
async fn keys_overlap_while_they_are_replaced_and_end() {
    let mut stand = stand(&manual("    approval: {quorum: 9}\n"), known()).await;
    let to = path("staging", "v2");
    let at = |minutes: i64, stand: &Stand| Timestamp(stand.world.now().0 + minutes * 60_000);
    for (n, id, key, minutes, status) in [
        (1, "new", "key-two", 0, 202),
        (2, "old", "key-one", 0, 202),
        (3, "old", "key-two", 0, 401),
        (4, "other", "key-two", 0, 401),
        (5, "new", "key-two", -4, 202),
        (6, "new", "key-two", 4, 202),
        (7, "new", "key-two", -6, 401),
        (8, "new", "key-two", 6, 401),
    ] {
        let sent = Sent::signed(&to, &json!({"by": format!("p{n}")}), (id, key), at(minutes, &stand), n);
        assert_eq!(send(&stand, &sent).await.status, status, "{n}");
    }
    stand.world.pass(Span::minutes(31));
    let late = Sent::signed(&to, &json!({}), ("old", "key-one"), stand.world.now(), 9);
    assert!(refused(&send(&stand, &late).await), "the old key has ended");
    let fresh = Sent::signed(&to, &json!({}), ("new", "key-two"), stand.world.now(), 10);
    assert_eq!(send(&stand, &fresh).await.status, 202);
    stand.work().await;
    let approvals = stand.get(CARTS).await.json()["environments"][1]["promotion"]["approvals"].clone();
    let by: Vec<&str> = approvals.as_array().unwrap().iter().map(|one| one["by"].as_str().unwrap()).collect();
    assert_eq!(by, ["key:new/p1", "key:old/p2", "key:new/p5", "key:new/p6", "key:new"]);
}

#[tokio::test]
async fn without_keys_nothing_signed_is_accepted() {
    let weave = |key: &str| Known::default().with("shop/approvals", &json!({"hmac-key": key}).to_string());
    let own = "    manual: true\n    strategy: {notification: {}}\n";
    for (what, promotion, secrets, status) in [
        ("Weave's secret", manual(""), weave("k"), 202),
        ("another key", manual(""), weave("x"), 401),
        ("an empty key", manual(""), weave(""), 401),
        ("no such secret", manual(""), Known::default(), 401),
        ("a secret of another namespace", manual(""), Known::default().with("default/approvals", r#"{"hmac-key": "k"}"#), 401),
        ("no JSON", manual(""), Known::default().with("shop/approvals", "k"), 401),
        ("no secretRef", own.to_owned(), weave("k"), 401),
    ] {
        let mut stand = stand(&promotion, secrets).await;
        let sent = Sent::signed(&path("staging", "v2"), &json!({}), ("hmac-key", "k"), stand.world.now(), 1);
        let answer = send(&stand, &sent).await;
        assert_eq!((answer.status, refused(&answer)), (status, status == 401), "{what}");
        stand.work().await;
    }
}

#[tokio::test]
async fn an_environments_own_promotion_has_its_own_secret() {
    let own = "    - name: staging\n      promotion:\n        manual: true\n        strategy: {notification: {}, secretRef: {name: own}}\n";
    let secrets = known().with("shop/own", r#"{"hmac-key": "k"}"#);
    let mut stand = Stand::with_secrets(Limits::default(), Duration::ZERO, secrets);
    let text = crate::pipelines::applied::manifest("carts", &manual("")).replace("    - name: staging\n", own);
    stand.manifests(&text).await;
    for (namespace, what) in [("dev", "v1/R"), ("staging", "v1/R"), ("prod", "v1/R"), ("dev", "v2/R")] {
        stand.observe(namespace, what).await;
    }
    let to = path("staging", "v2");
    let pipelines = Sent::signed(&to, &json!({}), ("new", "key-two"), stand.world.now(), 1);
    assert!(refused(&send(&stand, &pipelines).await));
    let own = Sent::signed(&to, &json!({}), ("hmac-key", "k"), stand.world.now(), 2);
    assert_eq!(send(&stand, &own).await.status, 202);
}

#[tokio::test]
async fn signatures_authorise_nothing_else() {
    let stand = stand(&manual(""), known()).await;
    for (method, path) in [
        ("POST", format!("{CARTS}/commands")),
        ("DELETE", CARTS.to_owned()),
        ("GET", CARTS.to_owned()),
        ("POST", "/v1/apply".into()),
    ] {
        let body = "{}";
        let canonical =
            Canonical { installation: crate::stand::INSTALLATION, method, path: &path, query: "", body: body.as_bytes() };
        let signed = Signed::new(&canonical, ("new", b"key-two"), Algorithm::Sha256, stand.world.now(), "0123456789abcdef");
        let headers = signed.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let sent = Sent { method: method.into(), path: path.clone(), query: String::new(), body: body.into(), headers };
        assert_eq!(send(&stand, &sent).await.status, 401, "{method} {path}");
    }
    // A token that is not known is not made up for by a signature.
    let mut sent = Sent::signed(&path("staging", "v2"), &json!({}), ("new", "key-two"), stand.world.now(), 1);
    sent.headers.push(("x-token".into(), "wrong".into()));
    assert!(refused(&send(&stand, &sent).await));
    let nothing = Sent { headers: vec![], ..sent };
    assert!(refused(&send(&stand, &nothing).await));
    for (odd, what) in [("%FF", "no UTF-8"), ("v2/x", "one segment too many")] {
        let sent = Sent { path: nothing.path.replace("v2", odd), ..nothing.clone() };
        assert_eq!(send(&stand, &sent).await.status, 401, "{what}");
    }
}

/// A sequence of numbers that is the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(n).unwrap()).unwrap()
    }

    /// The text with one letter changed, taken out, or put in.
    fn mutated(&mut self, text: &str) -> String {
        const LETTERS: &[u8] = b"abcdefABCDEF0123456789-_=:%/.+{}\" ";
        let mut bytes = text.as_bytes().to_vec();
        let (at, letter) = (self.below(bytes.len().max(1)), LETTERS[self.below(LETTERS.len())]);
        match self.below(3) {
            0 if at < bytes.len() => bytes[at] = letter,
            1 if at < bytes.len() => drop(bytes.remove(at)),
            _ => bytes.insert(at, letter),
        }
        String::from_utf8(bytes).unwrap()
    }
}

/// A request that was not signed as it is.
fn forged(valid: &Sent, numbers: &mut Numbers, now: Timestamp) -> Sent {
    let mut sent = valid.clone();
    match numbers.below(12) {
        0..=3 => {
            let header = sent.header(HEADERS[numbers.below(4)]);
            *header = numbers.mutated(header);
        }
        4 => sent.body = numbers.mutated(&sent.body),
        5 => {
            let tail = sent.path.split_off(CARTS.len());
            sent.path.push_str(&numbers.mutated(&tail));
        }
        6 => sent.path = sent.path.replace("staging", ["prod", "dev", "Staging", "stag%69ng"][numbers.below(4)]),
        7 => sent.path = sent.path.replace("carts", "orders"),
        8 => sent.query = ["a=1", "decision=approve", "&"][numbers.below(2)].to_owned(),
        9 => drop(sent.headers.remove(numbers.below(4))),
        10 => {
            let twice = sent.headers[numbers.below(4)].clone();
            sent.headers.push(twice);
        }
        _ => {
            // Signed by whoever once had the key, but now without it; or with it, but for another time.
            let (key, at) = [("key-one", 0), ("key-two", -301_000), ("key-two", 302_000), ("", 0)][numbers.below(4)];
            let body = serde_json::from_str(&sent.body).unwrap();
            let n = u64::try_from(numbers.below(usize::MAX)).unwrap();
            return Sent::signed(&sent.path, &body, ("new", key), Timestamp(now.0 + at), n);
        }
    }
    sent
}

/// How many requests are forged.
const FORGED: usize = 100_000;
/// One in so many is valid, and then sent again.
const VALID: usize = 1000;

#[tokio::test]
async fn of_a_hundred_thousand_forged_approvals_none_is_accepted() {
    let mut stand = stand(&manual("    approval: {quorum: 100}\n"), known()).await;
    stand
        .manifests(
            &crate::pipelines::applied::manifest("orders", &format!("    manual: true\n{BY_REQUEST}"))
                .replace("approvals", "others"),
        )
        .await;
    stand.work().await;
    let now = stand.world.now();
    let to = path("staging", "v2");
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    let sign = |n: usize| Sent::signed(&to, &json!({"by": format!("person {n}")}), ("new", "key-two"), now, n as u64);
    let is_command = |message: &&Queued| message.engine == NAME && message.parcel.text().contains(r#""keelway":"command""#);
    let handed_in = |stand: &Stand| stand.world.core().queue.messages.values().filter(is_command).count();
    assert_eq!(handed_in(&stand), 0);
    // Whoever can send that many has many addresses.
    let ask = async |client: usize, mut request: Request<Body>, stand: &Stand| {
        request.extensions_mut().insert(Client::at(&format!("client {client}")));
        stand.request(request).await
    };
    let (mut forgeries, mut valid) = (0, 0);
    while forgeries < FORGED {
        let next = sign(valid);
        if forgeries % VALID == 0 && forgeries / VALID == valid {
            assert_eq!(ask(FORGED + valid, next.request().unwrap(), &stand).await.status, 202, "valid request {valid}");
            assert!(refused(&ask(FORGED + valid, next.request().unwrap(), &stand).await), "a replay of {valid}");
            assert_eq!(handed_in(&stand), 1, "a valid request counts once");
            stand.work().await;
            valid += 1;
            continue;
        }
        let forgery = forged(&next, &mut numbers, now);
        let Some(request) = forgery.request().filter(|_| forgery != next) else { continue };
        forgeries += 1;
        let answer = ask(forgeries / 20, request, &stand).await;
        assert!(matches!(answer.status, 401), "accepted, or told apart: {forgery:?} {answer:?}");
    }
    assert_eq!((handed_in(&stand), valid), (0, FORGED / VALID));
    stand.work().await;
    let state = stand.get(CARTS).await.json();
    let by = &state["environments"][1]["promotion"]["approvals"];
    assert_eq!(by.as_array().unwrap().len(), FORGED / VALID);
    assert_eq!(stand.forge.opened(), ["staging v2"], "the hundredth approval began one attempt");
}
