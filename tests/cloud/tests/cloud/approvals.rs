//! Signed approvals over HTTP: of hundreds of forged ones none is accepted, and the valid one counts once.

use crate::bed::Bed;
use crate::promotions::{Pipeline, environments};
use keelway_cloud_tests::patience::until;
use keelway_cloud_tests::problem::{ensure, same};
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Outcome, Problem, Stack};
use keelway_domain::time::{Span, Timestamp};
use keelway_wire::signature::{Algorithm, HEADERS, Request, Signed};
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr};
use std::time::{SystemTime, UNIX_EPOCH};

const KEY: &str = "the-key-of-the-cloud-test";
/// How many requests are forged.
const FORGED: usize = 500;
/// A client may send that many in a window.
const OF_ONE_CLIENT: usize = 20;

pub fn tests() -> Vec<Test<Bed>> {
    vec![Test::new("approvals::of 500 forged ones none is accepted, and the valid one counts once", forged)]
}

/// A request as it is sent.
#[derive(Debug, Clone, PartialEq)]
struct Sent {
    installation: String,
    path: String,
    query: String,
    body: String,
    headers: Vec<(&'static str, String)>,
}

impl Sent {
    fn signed((installation, path): (&str, &str), key: (&str, &str), at: Timestamp, nonce: &str) -> Self {
        let body = json!({"by": "anna"}).to_string();
        let request = Request { installation, method: "POST", path, query: "", body: body.as_bytes() };
        let signed = Signed::new(&request, (key.0, key.1.as_bytes()), Algorithm::Sha256, at, nonce);
        let headers = signed.headers().map(|(name, value)| (name, value.to_owned())).to_vec();
        Self { installation: installation.to_owned(), path: path.to_owned(), query: String::new(), body, headers }
    }

    /// Its status and, if it was refused for their number, the seconds to wait.
    fn send(&self, stack: &Stack, client: usize) -> Result<(u16, Option<u64>), Problem> {
        let query = if self.query.is_empty() { String::new() } else { format!("?{}", self.query) };
        let request = client_at(stack, client)?.post(format!("{}{}{query}", stack.api().url, self.path)).body(self.body.clone());
        let request =
            request.header("content-type", "application/json").header("x-forwarded-for", format!("198.51.100.{}", client % 250));
        let request = self.headers.iter().fold(request, |request, (name, value)| request.header(*name, value));
        let answer = stack.wait(request.send()).map_err(|error| Problem::of("an approval", error))?;
        let wait = answer.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
        Ok((answer.status().as_u16(), wait))
    }
}

/// A client with an address of its own, where the endpoint is on loopback and loopback has many addresses.
fn client_at(stack: &Stack, client: usize) -> Result<reqwest::Client, Problem> {
    let url = reqwest::Url::parse(&stack.api().url).map_err(|error| Problem::of("the API's URL", error))?;
    let host = url.host_str().unwrap_or_default();
    let loopback = host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback());
    let last = u8::try_from(client % 250 + 1).unwrap_or(1);
    let own = (loopback && cfg!(target_os = "linux")).then(|| IpAddr::V4(Ipv4Addr::new(127, 0, 21, last)));
    let builder = reqwest::Client::builder().no_proxy().local_address(own);
    builder.build().map_err(|error| Problem::of("a client", error))
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or_default())
}

/// The text with one letter changed. None of the letters means something to a URL or is trimmed from a header.
fn mutated(text: &str, n: usize) -> String {
    const LETTERS: &[u8] = b"0123456789abcdefXYZ-_";
    let mut bytes = text.as_bytes().to_vec();
    let (place, letter) = (n % bytes.len().max(1), LETTERS[n / 3 % LETTERS.len()]);
    match bytes.get_mut(place) {
        Some(byte) if *byte != letter => *byte = letter,
        _ => bytes.push(letter),
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A request that was not signed as it is sent.
fn forgery(valid: &Sent, n: usize) -> Sent {
    let mut sent = valid.clone();
    let fresh = format!("forged-nonce-{n:010}");
    let signed =
        |key: (&str, &str), skew: i64| Sent::signed((&valid.installation, &valid.path), key, now() + Span::seconds(skew), &fresh);
    match n % 12 {
        // One letter of a header.
        header @ 0..=3 => {
            let value = &mut sent.headers[header].1;
            *value = mutated(value, n);
        }
        4 => sent.body = mutated(&sent.body, n),
        // Another revision, environment or pipeline.
        5 => sent.path = sent.path.replace("v2", &format!("v{}", n + 3)),
        6 => sent.path = sent.path.replace("/staging/", ["/prod/", "/dev/", "/Staging/"][n / 12 % 3]),
        7 => sent.path = sent.path.replace("/cart/", ["/carts/", "/Cart/", "/car/"][n / 12 % 3]),
        8 => sent.query = ["a=1", "decision=approve", "by=eve"][n / 12 % 3].to_owned(),
        9 => drop(sent.headers.remove(n / 12 % HEADERS.len())),
        // Signed with another key or under another id.
        10 => sent = signed([("new", ""), ("new", "another key"), ("old", KEY), ("hmac-key", KEY)][n / 12 % 4], 0),
        // Signed with the key, but too long ago or too far ahead.
        _ => sent = signed(("new", KEY), [-330, 330, -86_400][n / 12 % 3]),
    }
    sent
}

fn approvals(pipeline: &Pipeline<'_>) -> Result<Vec<Value>, Problem> {
    let status = pipeline.status()?;
    let all = status["environments"].as_array().cloned().unwrap_or_default();
    let staging = all.into_iter().find(|state| state["name"] == "staging").unwrap_or_default();
    Ok(staging["promotion"]["approvals"].as_array().cloned().unwrap_or_default())
}

fn forged(bed: &Bed) -> Outcome {
    let pipeline = Pipeline::new(bed);
    let stack = pipeline.stack();
    pipeline.secret(&pipeline.namespace, "approvals", &json!({"keys": [{"id": "new", "key": KEY}]}).to_string())?;
    let spec = environments(&pipeline.namespace, &["dev", "staging"], "");
    let strategy = "strategy: {notification: {}, secretRef: {name: approvals}}";
    pipeline.apply(&format!("{spec}  promotion:\n    manual: true\n    approval: {{quorum: 2}}\n    {strategy}\n"))?;
    pipeline.observe("staging", "v1")?;
    pipeline.observe("dev", "v1")?;
    // A slash, which the local cloud decodes on its way to the function.
    let revision = "release/v2";
    pipeline.observe("dev", revision)?;
    pipeline.becomes("staging", revision, "waiting")?;
    let path = pipeline.path("/environments/staging/revisions/release%2Fv2/approval");
    let installation = stack.wait(stack.api().get("/v1/metadata"))?.fine("metadata")?["installation"].clone();
    let installation = installation.as_str().unwrap_or_default();
    let valid = |nonce: &str| Sent::signed((installation, &path), ("new", KEY), now(), nonce);

    for n in 0..FORGED {
        let original = valid(&format!("never-sent-{n:010}"));
        let forgery = forgery(&original, n);
        ensure(forgery != original, || format!("not forged: {forgery:?}"))?;
        // A busy machine does not come to an answer; that accepts nothing either.
        let answered = || forgery.send(stack, n / OF_ONE_CLIENT).map(|(status, _)| Some(status).filter(|status| *status < 500));
        let status = until("an answer to a forgery", answered, || format!("{forgery:?}"))?;
        // 429 where the endpoint shows all clients at one address.
        ensure([401, 429].contains(&status), || format!("{status} for {forgery:?}"))?;
    }
    same("approvals after the forgeries", &approvals(&pipeline)?, &vec![])?;

    // A client that has sent nothing yet; where it is not told apart from the others, its turn comes with the next window.
    let client = FORGED / OF_ONE_CLIENT + 1;
    let mut nonces = 0..;
    let once = until(
        "the valid approval is taken",
        || {
            let sent = valid(&format!("valid-nonce-{:010}", nonces.next().unwrap_or(0)));
            match sent.send(stack, client)? {
                (429, Some(wait)) => {
                    std::thread::sleep(std::time::Duration::from_secs(wait));
                    Ok(None)
                }
                (200..300, _) => Ok(Some(sent)),
                (status, _) => Err(format!("{status} for a valid approval").into()),
            }
        },
        String::new,
    )?;
    until("it counts", || Ok((!approvals(&pipeline)?.is_empty()).then_some(())), || format!("{:?}", approvals(&pipeline)))?;
    for _ in 0..5 {
        let (status, _) = once.send(stack, client)?;
        ensure([401, 429].contains(&status), || format!("{status} for a replay"))?;
    }
    let given = approvals(&pipeline)?;
    same("approvals", &given.len(), &1)?;
    same("who approved", &given[0]["by"], &json!("key:new/anna"))?;
    pipeline.becomes("staging", revision, "waiting").map(drop)
}
