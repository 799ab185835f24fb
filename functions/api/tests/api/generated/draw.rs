//! Requests from the document: valid ones, and ones that are broken in one way or another.

use super::document::{Operation, Parameter};
use super::furnished::{Furnished, SECRETS};
use super::mutate::{ODD_PARTS, broken_json, broken_text};
use super::steer;
use crate::stand::TOKEN;
use axum::body::Body;
use axum::http::Request;
use hmac::{Hmac, KeyInit, Mac};
use keelway_world::rng::Rng;
use serde_json::Value;
use sha2::Sha256;

/// No path takes these.
const OTHER_METHODS: [&str; 6] = ["PATCH", "TRACE", "PUT", "DELETE", "POST", "GET"];
const OTHER_TYPES: [&str; 6] =
    ["text/plain", "application/xml", "multipart/form-data; boundary=x", ";", "application/cloudevents-batch+avro", "json"];

/// A request.
#[derive(Debug, Clone)]
pub struct Sent {
    pub method: String,
    pub uri: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Sent {
    /// `None`: HTTP does not carry it.
    pub fn request(&self) -> Option<Request<Body>> {
        let builder = Request::builder().method(self.method.as_str()).uri(&self.uri);
        let builder = self.headers.iter().fold(builder, |builder, (name, value)| builder.header(name, value));
        builder.body(Body::from(self.body.clone())).ok()
    }

    /// As somebody would type it.
    pub fn curl(&self) -> String {
        let headers: String = self.headers.iter().map(|(name, value)| format!(" -H '{name}: {value}'")).collect();
        let body: String = String::from_utf8_lossy(&self.body).chars().take(3000).collect();
        format!("curl -X {} '{}'{headers} --data-binary '{body}'", self.method, self.uri)
    }
}

/// One request to an operation.
pub fn draw(operation: &Operation, methods: &[&str], f: &Furnished, rng: &mut Rng) -> Sent {
    let mut uri = path(operation, f, rng);
    let query = query(operation, f, rng);
    if !query.is_empty() {
        uri.push('?');
        uri.push_str(&query);
    }
    let mut method = operation.method.clone();
    // That path takes any method.
    if operation.path != "/v1/secret" && rng.chance(3.0) {
        let other = *rng.pick(&OTHER_METHODS);
        if !methods.contains(&other) {
            method = other.to_owned();
        }
    }
    let mut sent = Sent { method, uri, headers: vec![], body: vec![] };
    body(&mut sent, operation, f, rng);
    for header in operation.parameters.iter().filter(|parameter| parameter.place == "header") {
        if rng.chance(25.0) {
            let value = value(operation, header, f, rng);
            sent.headers.push((header.name.to_lowercase(), value));
        }
    }
    credentials(&mut sent, operation, f, rng);
    sent
}

fn value(operation: &Operation, parameter: &Parameter, f: &Furnished, rng: &mut Rng) -> String {
    match parameter.name.as_str() {
        "Idempotency-Key" if rng.chance(90.0) => format!("key-{}", rng.below(4)),
        "If-Match" if rng.chance(30.0) => format!("\"{}\"", "0".repeat(40)),
        _ if parameter.place == "header" && rng.chance(10.0) => "x".repeat(300),
        name => rng.pick(&f.known(&operation.path, name)).clone(),
    }
}

fn path(operation: &Operation, f: &Furnished, rng: &mut Rng) -> String {
    let mut path = operation.path.clone();
    let (mut odd, unknown) = (rng.chance(8.0), rng.chance(10.0));
    let parameters: Vec<&Parameter> = operation.in_path().collect();
    let place = rng.below(parameters.len());
    for (n, parameter) in parameters.into_iter().enumerate() {
        let value = match () {
            () if odd && n == place => {
                odd = false;
                rng.pick(&ODD_PARTS).to_string()
            }
            () if unknown && n == place => "nothing".to_owned(),
            () => value(operation, parameter, f, rng),
        };
        path = path.replace(&format!("{{{}}}", parameter.name), &value);
    }
    path
}

fn query(operation: &Operation, f: &Furnished, rng: &mut Rng) -> String {
    let mut parts = vec![];
    for parameter in operation.parameters.iter().filter(|parameter| parameter.place == "query") {
        if rng.chance(20.0) {
            let value = if rng.chance(15.0) { rng.pick(&ODD_PARTS).to_string() } else { value(operation, parameter, f, rng) };
            parts.push(format!("{}={}", parameter.name, value.replace(' ', "%20")));
        }
    }
    if rng.chance(4.0) {
        parts.push((*rng.pick(&["nope=1", "pageSize=1&pageSize=2", "%ff=1", "=", "&&", "nope"])).to_owned());
    }
    parts.join("&")
}

fn body(sent: &mut Sent, operation: &Operation, f: &Furnished, rng: &mut Rng) {
    if operation.bodies.is_empty() {
        if rng.chance(5.0) {
            sent.body = b"{\"a\": 1".to_vec();
        }
        return;
    }
    let (mut kind, example) = operation.bodies[rng.below(operation.bodies.len())].clone();
    let steered = steer::bodies(&operation.name(), f, rng);
    let examples: Vec<&Value> = operation.bodies.iter().map(|(_, example)| example).filter(|example| !example.is_null()).collect();
    let example = if example.is_null() { (*rng.pick(&examples)).clone() } else { example };
    let mut value = if !steered.is_empty() && rng.chance(70.0) { rng.pick(&steered).clone() } else { example };
    if kind.contains("batch") && !value.is_array() {
        value = Value::Array((0..rng.below(3)).map(|_| rng.pick(&steered).clone()).chain([value]).collect());
    } else if !kind.contains("batch") {
        value = value.get(0).cloned().unwrap_or(value);
    }
    sent.body = match value {
        Value::String(text) if rng.chance(40.0) => broken_text(&text, rng),
        Value::String(text) => text.into_bytes(),
        value if rng.chance(40.0) => broken_json(value, rng),
        value => value.to_string().into_bytes(),
    };
    if rng.chance(5.0) {
        kind = (*rng.pick(&OTHER_TYPES)).to_owned();
    }
    sent.headers.push(("content-type".into(), kind));
    match rng.below(200) {
        0 => sent.body = vec![b' '; (1 << 20) + 1],
        1..3 => sent.headers.push(("content-length".into(), "9000000".into())),
        _ => {}
    }
}

fn credentials(sent: &mut Sent, operation: &Operation, f: &Furnished, rng: &mut Rng) {
    let path = operation.path.as_str();
    if path.starts_with("/v1/webhooks") && rng.chance(80.0) {
        let mac = <Hmac<Sha256> as KeyInit>::new_from_slice(SECRETS[0].as_bytes())
            .unwrap()
            .chain_update(&sent.body)
            .finalize()
            .into_bytes();
        let digits: String = mac.iter().map(|byte| format!("{byte:02x}")).collect();
        return sent.headers.push(("x-gitea-signature".into(), digits));
    }
    if ["/heartbeat", "/strategy", "/finish"].iter().any(|end| path.ends_with(end)) && rng.chance(85.0) {
        // The token that goes with the version, most of the time.
        let place = usize::from(sent.uri.contains("idle"));
        let token = if rng.chance(90.0) { &f.attempts[place] } else { rng.pick(&f.attempts) };
        return sent.headers.push(("authorization".into(), format!("Bearer {token}")));
    }
    let header = match rng.below(100) {
        0..4 => return,
        4..8 => ("x-token", "wrong".to_owned()),
        8..14 => ("x-token", rng.pick(&f.weak).clone()),
        14..30 => ("authorization", format!("Bearer {TOKEN}")),
        _ => ("x-token", TOKEN.to_owned()),
    };
    sent.headers.push((header.0.to_owned(), header.1));
}
