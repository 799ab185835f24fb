//! The API against its own OpenAPI document: requests that are made from it, valid and broken, and what every answer must be.
//!
//! A request that fails is printed as a call of curl, with the operation and the seed: these two draw the same requests.

pub mod document;
mod draw;
mod furnished;
mod judge;
mod mutate;
mod steer;

use crate::stand::{Stand, TOKEN};
use axum::body::Body;
use axum::http::Request;
use document::{Document, Operation};
use draw::{Sent, draw};
use furnished::{Furnished, furnish, manifests};
use keelway_api::{Client, Paces};
use keelway_domain::ids::hash64;
use keelway_domain::time::Span;
use keelway_world::core::Fault;
use keelway_world::rng::Rng;
use std::collections::BTreeMap;

/// Requests for each operation; more, while not every status that is documented has been seen.
const REQUESTS: u64 = 300;
const AT_MOST: u64 = 6 * REQUESTS;
/// The requests of an operation are drawn from its name and this.
const SEED: u64 = 1;

/// Statuses that are not seen, each with its reason.
const NOT_SEEN: [(&str, u16, &str); 2] = [
    ("", 500, "no request may have it"),
    ("/v1/deploymentConfigs/{id}/rollback", 409, "only if the state changes between the check and the command"),
];

/// How often each status was seen, by operation.
type Seen = BTreeMap<String, BTreeMap<u16, u64>>;

async fn document(stand: &Stand) -> Document {
    let answer = stand.get("/v1/openapi.json").await;
    assert_eq!(answer.status, 200);
    Document::of(answer.json())
}

#[tokio::test(start_paused = true)]
async fn every_answer_is_as_the_document_says() {
    let document = document(&Stand::new()).await;
    let mut seen = Seen::new();
    let mut failures = vec![];
    let mut reading = furnish().await;
    for operation in &document.operations {
        let mut own = None;
        let f = if operation.method == "GET" { &mut reading } else { own.insert(furnish().await) };
        let mut rng = Rng::new(SEED ^ hash64(&[operation.name().as_bytes()]));
        for n in 0..AT_MOST {
            if n >= REQUESTS && unseen(operation, &seen).iter().all(|status| [429, 503].contains(status)) {
                break;
            }
            if n >= REQUESTS && n % 100 == 0 {
                *f = furnish().await;
            }
            if let Err(failure) = one(&document, operation, f, &mut rng, &mut seen).await {
                failures.push(format!("{}, seed {SEED}, request {n}: {failure}", operation.name()));
                break;
            }
        }
    }
    too_many(&document, &mut seen).await;
    too_busy(&document, &mut seen).await;
    print(&document, &seen);
    assert!(failures.is_empty(), "{} operations:\n{}", failures.len(), failures.join("\n\n"));
    let missing = document.operations.iter().map(|operation| (operation.name(), unseen(operation, &seen)));
    let missing: Vec<_> = missing.filter(|(_, missing)| !missing.is_empty()).collect();
    assert!(
        missing.is_empty(),
        "never answered: {missing:#?}; leave these statuses out of the document, or steer requests to them in generated/steer.rs"
    );
}

/// Sends one request and judges its answer.
async fn one(document: &Document, operation: &Operation, f: &mut Furnished, rng: &mut Rng, seen: &mut Seen) -> Result<(), String> {
    let methods: Vec<&str> = document.methods[&operation.path].iter().map(String::as_str).collect();
    let (sent, request) = loop {
        let sent = draw(operation, &methods, f, rng);
        if let Some(request) = sent.request() {
            break (sent, request);
        }
    };
    f.stand.world.core().table.journal.clear();
    let before = judge::outgoing(&f.stand.world.core());
    // Engines of other functions are not at work here.
    let works = operation.method != "GET"
        && !["observe", "dead-letters", "checks", "deliveries", "webhookSubscriptions"]
            .iter()
            .any(|part| operation.path.contains(part));
    let together = works && rng.chance(30.0);
    let answer = match together {
        true => f.stand.while_working(request).await,
        false => f.stand.request(request).await,
    };
    *seen.entry(operation.name()).or_default().entry(answer.status).or_default() += 1;
    let idle = answer.status >= 400 || sent.method == "GET";
    let told = judge::wrong(document, operation, &sent, &answer, f);
    let changed = if idle && !together { judge::changed(f, &sent, before) } else { None };
    if let Some(wrong) = told.or(changed).or_else(|| judge::unsaid(f)) {
        let text: String = answer.text.chars().take(1500).collect();
        return Err(format!("{wrong}\n{}\n{} {} {text}", sent.curl(), answer.status, answer.content_type));
    }
    if works && rng.chance(50.0) {
        f.stand.work().await;
    }
    if operation.method == "DELETE" && rng.chance(20.0) {
        furnish_again(f).await;
    }
    f.stand.world.pass(Span(200));
    Ok(())
}

/// What was deleted is there again.
async fn furnish_again(f: &mut Furnished) {
    let answer = f.stand.post_text("/v1/apply", "application/yaml", manifests()).await;
    assert!(answer.status < 500, "{answer:?}");
    f.stand.work().await;
}

/// With any token, and from any address, there may be too many requests.
async fn too_many(document: &Document, seen: &mut Seen) {
    let stand = Stand::with_paces(Paces { token: 0, address: 1 });
    let from = |operation: &Operation| {
        let path = operation.path.replace(['{', '}'], "");
        let request = Request::builder().method(operation.method.as_str()).uri(path).extension(Client::at("192.0.2.1"));
        request.header("x-token", TOKEN).body(Body::empty()).unwrap()
    };
    stand.request(from(&document.operations[0])).await;
    for operation in &document.operations {
        let answer = stand.request(from(operation)).await;
        assert_eq!((answer.status, answer.headers.contains_key("retry-after")), (429, true), "{}", operation.name());
        record(document, operation, &answer, seen).await;
    }
}

/// While the table is busy, requests are refused until it is not.
async fn too_busy(document: &Document, seen: &mut Seen) {
    let mut f = furnish().await;
    let mut rng = Rng::new(SEED);
    for operation in &document.operations {
        // A token that this instance has not met.
        let app = f.stand.another();
        let mut busy = None;
        for _ in 0..60 {
            let sent = draw(operation, &[], &f, &mut rng);
            let mut headers: Vec<(String, String)> = sent.headers.clone();
            let bears = headers.iter_mut().find(|(name, value)| name == "x-token" && value == TOKEN);
            if let Some((_, value)) = bears {
                *value = f.stand.secret_of("ci");
            }
            let sent = Sent { headers, ..sent };
            let Some(request) = sent.request() else { continue };
            f.stand.world.core().faults = Some(Box::new(|_, _| Fault::Throttled));
            let answer = Stand::ask(app.clone(), request).await;
            f.stand.world.core().faults = None;
            if answer.status == 503 {
                busy = Some(answer);
                break;
            }
            f.stand.world.pass(Span::minutes(2));
        }
        let answer = busy.unwrap_or_else(|| panic!("{} never needs the table", operation.name()));
        assert!(answer.headers.contains_key("retry-after"));
        record(document, operation, &answer, seen).await;
    }
    f.stand.work().await;
}

async fn record(document: &Document, operation: &Operation, answer: &crate::stand::Answer, seen: &mut Seen) {
    let schema = operation.answers[&answer.status]["application/problem+json"];
    assert_eq!(document.wrong(&answer.json(), schema), None, "{answer:?}");
    *seen.entry(operation.name()).or_default().entry(answer.status).or_default() += 1;
}

/// Documented statuses that no answer had.
fn unseen(operation: &Operation, seen: &Seen) -> Vec<u16> {
    let name = operation.name();
    let excepted = |status: u16| NOT_SEEN.iter().any(|(of, not, _)| *not == status && name.contains(of));
    let of = seen.get(&name);
    let is_seen = |status: &u16| of.is_some_and(|seen| seen.contains_key(status));
    operation.answers.keys().copied().filter(|status| !is_seen(status) && !excepted(*status)).collect()
}

/// The table of operations and statuses.
fn print(document: &Document, seen: &Seen) {
    let mut all = 0;
    for operation in &document.operations {
        let counts = seen.get(&operation.name()).into_iter().flatten();
        let counts: Vec<String> = counts
            .map(|(status, n)| {
                all += n;
                format!("{status} {n}×")
            })
            .collect();
        println!("{:<100} {}", operation.name(), counts.join("  "));
    }
    println!("{all} requests to {} operations", document.operations.len());
}
