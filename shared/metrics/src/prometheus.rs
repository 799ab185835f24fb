//! The HTTP API of Prometheus: queries at the end of the period, or at the end of each of its steps; one request for each query.

use crate::said::said;
use crate::steps::Steps;
use crate::{Found, NO_VALID_VALUES, NO_VALUES, SEVERAL_VALUES, finite};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_util::future::try_join_all;
use keelway_domain::evaluation::Prometheus;
use keelway_domain::time::Timestamp;
use keelway_engine::metrics::{Credentialed, Series};
use keelway_engine::ports::PortError;
use keelway_engine::secrets::{self, Secrets};
use keelway_outgoing::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use keelway_outgoing::{Failure, Method, Reply, Roots, StatusCode, Terms, Url, Wire};
use serde_json::Value;
use std::time::Duration;

const NAME: &str = "prometheus.Query";
/// Queries over long periods take their time; Prometheus itself gives up after two minutes, which is longer than anybody waits.
pub const TERMS: Terms = Terms {
    connect: Duration::from_secs(5),
    total: Duration::from_secs(20),
    idle: Some(Duration::from_secs(20)),
    roots: Roots::Known,
    redirects: 0,
    plain: false,
};
/// The most that an answer may have, in bytes. One value has a few hundred; a query that returns thousands of series is a mistake.
const ANSWER: usize = 1 << 20;
/// How many queries are asked at once.
const AT_ONCE: usize = 4;
const FORM: &str = "application/x-www-form-urlencoded";

/// How requests to a server prove who sends them.
enum Proof {
    None,
    /// With this header.
    Header(HeaderValue),
    /// With a signature of each request.
    Signature,
}

/// A server with the credentials for it.
pub struct Server<'a, P> {
    ports: &'a P,
    wire: &'a Wire,
    of: &'a Prometheus,
    /// Its host and port, for messages.
    host: String,
    proof: Proof,
    /// What no message may have.
    hidden: Vec<String>,
}

impl<'a, P: Secrets + Credentialed> Server<'a, P> {
    /// A server of a project, with the project's secret.
    pub async fn new(ports: &'a P, wire: &'a Wire, namespace: &str, of: &'a Prometheus) -> Result<Self, PortError> {
        let url = Url::parse(&of.url).map_err(|error| refused(format!("spec.prometheus.url is not a URL: {error}")))?;
        let origin = url.origin().ascii_serialization();
        let host = origin.split_once("://").map_or(origin.as_str(), |(_, host)| host).to_owned();
        let (proof, hidden) = match (&of.region, &of.secret) {
            (Some(_), _) => (Proof::Signature, vec![]),
            (None, None) => (Proof::None, vec![]),
            (None, Some(short)) => {
                let name = secrets::name(namespace, short);
                let text = ports.secret(&name).await?;
                let text = text.ok_or_else(|| refused(format!("there is no secret {name:?} for {host}: create it")))?;
                credentials(text.expose()).map(|(header, hidden)| (Proof::Header(header), hidden)).ok_or_else(|| {
                    refused(format!(
                        "secret {name:?} has no credentials: write {{\"token\": \"…\"}} or {{\"username\": \"…\", \"password\": \"…\"}} \
                         into it"
                    ))
                })?
            }
        };
        Ok(Self { ports, wire, of, host, proof, hidden })
    }

    /// The values of queries at a time.
    pub async fn all(&self, texts: &[&str], at: Timestamp) -> Result<Vec<Found>, PortError> {
        let at = seconds(at.0);
        let forms = texts.iter().map(|text| form(&[("query", text), ("time", &at)])).collect();
        self.each("query", forms, value).await
    }

    /// The values of queries at the end of each step.
    pub async fn all_series(&self, texts: &[&str], steps: &Steps) -> Result<Vec<Series>, PortError> {
        let Some(first) = steps.first_end() else { return Ok(vec![Err(steps.none()); texts.len()]) };
        let (start, end, step) = (seconds(first), seconds(steps.end()), seconds(steps.length));
        let forms = texts.iter().map(|text| form(&[("query", text), ("start", &start), ("end", &end), ("step", &step)])).collect();
        self.each("query_range", forms, values).await
    }

    /// Sends each form to a path of the API.
    async fn each<T>(&self, path: &str, forms: Vec<String>, read: Reader<T>) -> Result<Vec<Result<T, String>>, PortError> {
        let mut all = vec![];
        for some in forms.chunks(AT_ONCE) {
            all.extend(try_join_all(some.iter().map(|form| self.one(path, form, read))).await?);
        }
        Ok(all)
    }

    async fn one<T>(&self, path: &str, body: &str, read: Reader<T>) -> Result<Result<T, String>, PortError> {
        let url = format!("{}/api/v1/{path}", self.of.url.trim_end_matches('/'));
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(FORM));
        match &self.proof {
            Proof::None => {}
            Proof::Header(value) => drop(headers.insert(AUTHORIZATION, value.clone())),
            Proof::Signature => {
                for (name, value) in self.ports.signature(self.of, &url, body).await? {
                    let both = (HeaderName::try_from(name), HeaderValue::try_from(value));
                    let (Ok(name), Ok(mut value)) = both else { return Err(refused("the signature is no header".into())) };
                    value.set_sensitive(true);
                    headers.insert(name, value);
                }
            }
        }
        match self.wire.call(Method::POST, &url).headers(headers).body(body.to_owned()).send(ANSWER).await {
            Ok(answer) => self.read(&answer, read),
            Err(lost) => Err(unanswered(&self.host, &lost)),
        }
    }

    fn read<T>(&self, answer: &Reply, read: Reader<T>) -> Result<Result<T, String>, PortError> {
        let (host, status) = (&self.host, answer.status);
        let number = status.as_u16();
        if answer.cut {
            return Err(refused(format!("{host} answers with more than {} MiB: have the query return one number", ANSWER >> 20)));
        }
        let json: Option<Value> = serde_json::from_slice(&answer.body).ok();
        let words = json.as_ref().filter(|json| json["status"] == "error").and_then(|json| json["error"].as_str());
        let words = words.map(|words| said(words, &self.hidden)).filter(|words| !words.is_empty());
        let behind = words.as_ref().map(|words| format!(": {words}")).unwrap_or_default();
        match status {
            StatusCode::OK => match json {
                Some(json) => read(&json).map_err(|wrong| refused(format!("{host} {wrong}"))),
                None => Err(refused(format!("{host} answers with something that is not JSON: is spec.prometheus.url right?"))),
            },
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(refused(match (&self.proof, &self.of.secret) {
                (Proof::Header(_), Some(secret)) => {
                    format!("{host} refuses the credentials in secret {secret:?} ({number}){behind}")
                }
                (Proof::Signature, _) => format!("{host} refuses the signed request ({number}): it takes aps:QueryMetrics{behind}"),
                _ => format!("{host} takes credentials ({number}): name a secret in spec.prometheus.secret{behind}"),
            })),
            StatusCode::TOO_MANY_REQUESTS => Err(retry(format!("{host} is busy ({number}){behind}"))),
            status if status.is_server_error() => Err(retry(format!("{host} fails ({number}){behind}"))),
            status if status.is_redirection() => {
                Err(refused(format!("{host} redirects ({number}): write the address of the API itself into spec.prometheus.url")))
            }
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => {
                Ok(Err(words.unwrap_or_else(|| format!("the server refuses the query ({number})"))))
            }
            _ => match words {
                Some(words) => Ok(Err(words)),
                None => Err(refused(format!("{host} answers with status {number}: is spec.prometheus.url right?"))),
            },
        }
    }
}

/// What it means that there is no answer.
fn unanswered(host: &str, lost: &Failure) -> PortError {
    match lost {
        Failure::TooSlow(seconds) => retry(format!("{host} did not answer within {seconds} seconds")),
        Failure::Unreachable(_) => retry(format!("{host} cannot be reached")),
        Failure::Broken(_) => retry(format!("the connection to {host} broke")),
        Failure::Untrusted(_) => refused(format!("{host} has a certificate that is not trusted")),
        Failure::Address(_) | Failure::Url(_) | Failure::TooLarge(..) | Failure::Unusable(_) => {
            refused(format!("{host} is not asked: {lost}"))
        }
    }
}

/// What an answer says of a query; the outer error is that it is none.
type Reader<T> = fn(&Value) -> Result<Result<T, String>, &'static str>;

const OTHER: &str = "answers with something that is no result of a query: is spec.prometheus.url right?";

/// The value in an answer. Warnings beside it say nothing about whether there is one.
fn value(json: &Value) -> Result<Found, &'static str> {
    let (data, is) = (&json["data"], |kind: &str| json["data"]["resultType"] == kind);
    let sample = match data["result"].as_array() {
        _ if json["status"] != "success" => return Err(OTHER),
        Some(sample) if is("scalar") => sample.get(1),
        Some(series) if is("vector") => match &series[..] {
            [] => return Ok(Err(NO_VALUES.to_owned())),
            [one] => one["value"].get(1),
            _ => return Ok(Err(SEVERAL_VALUES.to_owned())),
        },
        Some(_) if is("matrix") || is("string") => {
            let kind = data["resultType"].as_str().unwrap_or_default();
            return Ok(Err(format!("query returns a {kind}: have it return one number")));
        }
        _ => return Err(OTHER),
    };
    // A native histogram has no value.
    Ok(sample.and_then(number).filter(|number| number.is_finite()).ok_or_else(|| NO_VALID_VALUES.to_owned()))
}

/// The values of the one series in an answer.
fn values(json: &Value) -> Result<Series, &'static str> {
    let is_matrix = json["status"] == "success" && json["data"]["resultType"] == "matrix";
    let Some(series) = json["data"]["result"].as_array().filter(|_| is_matrix) else { return Err(OTHER) };
    let one = match &series[..] {
        [] => return Ok(Err(NO_VALUES.to_owned())),
        [one] => one,
        _ => return Ok(Err(SEVERAL_VALUES.to_owned())),
    };
    match one["values"].as_array() {
        // One of native histograms has none.
        None => Ok(Err(NO_VALID_VALUES.to_owned())),
        Some(points) => Ok(finite(points.iter().filter_map(|point| number(point.get(1)?)).collect())),
    }
}

/// Prometheus writes numbers as texts, so that they may be infinite.
fn number(sample: &Value) -> Option<f64> {
    sample.as_str()?.parse().ok()
}

/// Milliseconds since 1970 as Prometheus takes times and steps.
fn seconds(milliseconds: i64) -> String {
    format!("{}.{:03}", milliseconds.div_euclid(1000), milliseconds.rem_euclid(1000))
}

/// `{"token": "…"}`, `{"username": "…", "password": "…"}`, or only a token: the header, and what no message may have.
fn credentials(text: &str) -> Option<(HeaderValue, Vec<String>)> {
    let text = text.trim();
    let json: Value = if text.starts_with('{') { serde_json::from_str(text).ok()? } else { Value::Null };
    let member = |name: &str| json[name].as_str().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let (header, hidden) = match (member("token"), member("username"), member("password")) {
        (None, Some(user), Some(password)) => {
            let both = BASE64.encode(format!("{user}:{password}"));
            (format!("Basic {both}"), vec![both, password])
        }
        (Some(token), None, None) => (format!("Bearer {token}"), vec![token]),
        (None, None, None) if json.is_null() && !text.is_empty() => (format!("Bearer {text}"), vec![text.to_owned()]),
        _ => return None,
    };
    let mut header = HeaderValue::from_str(&header).ok()?;
    header.set_sensitive(true);
    Some((header, hidden))
}

fn form(pairs: &[(&str, &str)]) -> String {
    let mut url = Url::parse("http://form").ok();
    if let Some(url) = &mut url {
        url.query_pairs_mut().extend_pairs(pairs);
    }
    url.and_then(|url| url.query().map(str::to_owned)).unwrap_or_default()
}

fn refused(reason: String) -> PortError {
    PortError::Refused { request: NAME, reason }
}

fn retry(reason: String) -> PortError {
    PortError::Retry { request: NAME, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_answer_is_asked_again_and_who_must_not_be_asked_is_not() {
        let passes = |lost| matches!(unanswered("p.test", &lost), PortError::Retry { .. });
        let why = || "why".to_owned();
        assert!(passes(Failure::TooSlow(20)) && passes(Failure::Unreachable(why())) && passes(Failure::Broken(why())));
        let address = Failure::Address("10.0.0.1".parse().unwrap());
        for lost in [address, Failure::Url(why()), Failure::Untrusted(why()), Failure::TooLarge(2, 1), Failure::Unusable(why())] {
            assert!(!passes(lost));
        }
    }

    #[test]
    fn a_secret_has_a_token_or_a_user_and_a_password() {
        let header = |text: &str| credentials(text).map(|(header, _)| header.to_str().unwrap().to_owned());
        for (text, expected) in [
            (" t0k3n\n", "Bearer t0k3n"),
            (r#"{"token": "t0k3n"}"#, "Bearer t0k3n"),
            (r#"{"username": "shop", "password": "pass word"}"#, "Basic c2hvcDpwYXNzIHdvcmQ="),
        ] {
            assert_eq!(header(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["", "{}", "{", r#"{"username": "shop"}"#, r#"{"token": "a", "password": "b"}"#, r#"{"token": ""}"#, "a\u{7}b"]
        {
            assert_eq!(header(text), None, "{text}");
        }
        let (_, hidden) = credentials(r#"{"username": "shop", "password": "pass word"}"#).unwrap();
        assert_eq!(hidden, ["c2hvcDpwYXNzIHdvcmQ=", "pass word"]);
    }
}
