//! Answers of hosts, and the meaning of their refusals.

use crate::error::{HostError, Kind};
use crate::http::Secrets;
use keelway_domain::time::{Span, Timestamp};
use keelway_outgoing::header::HeaderMap;
use keelway_outgoing::{Body, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The pause for a rate limit without a time: the least that GitHub's documentation asks for.
const UNSAID: Span = Span::minutes(1);
/// The longest pause that a host can ask for.
const LONGEST: Span = Span::minutes(24 * 60);
/// The longest text of a host that a message repeats, in characters.
const WORDS: usize = 300;

/// An answer with any status.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) host: String,
    pub(crate) what: String,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
    pub(crate) secrets: Secrets,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Whether there is another page (RFC 8288).
    pub(crate) fn has_next(&self) -> bool {
        self.headers.get_all("link").iter().filter_map(|value| value.to_str().ok()).any(|links| links.contains("rel=\"next\""))
    }

    /// The answer, or the error if it is a refusal.
    pub(crate) fn ok(self) -> Result<Self, HostError> {
        if self.status.is_success() { Ok(self) } else { Err(self.error()) }
    }

    /// The answer. `None`: the requested object does not exist.
    pub(crate) fn found(self) -> Result<Option<Self>, HostError> {
        if self.status == StatusCode::NOT_FOUND { Ok(None) } else { self.ok().map(Some) }
    }

    /// Checks the answer to a write: it must be a JSON object. Another successful answer does not come from the host's API, so
    /// nothing was written.
    pub(crate) fn accepted(self) -> Result<(), HostError> {
        self.ok()?.json::<serde_json::Map<String, Value>>().map(drop)
    }

    /// Checks the answer to a deletion, which has no body.
    pub(crate) fn deleted(self) -> Result<(), HostError> {
        let answer = self.ok()?;
        if answer.body.is_empty() { Ok(()) } else { Err(answer.nonsense("a body, where there is none")) }
    }

    /// The parsed body.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, HostError> {
        // The parser's own message may repeat parts of the body.
        let place = |error: serde_json::Error| format!("see line {}, column {}", error.line(), error.column());
        serde_json::from_slice(&self.body).map_err(|error| self.nonsense(&place(error)))
    }

    /// The error about a file whose content the host does not return.
    pub(crate) fn without_content(&self) -> HostError {
        HostError::new(Kind::Nonsense, format!("{} answered without a content about {}", self.host, self.what))
    }

    fn nonsense(&self, detail: &str) -> HostError {
        let message = format!(
            "{} answered about {} with something that is not what its interface promises ({detail}): check the host's type, and that no \
             proxy answers in its place",
            self.host, self.what
        );
        HostError::new(Kind::Nonsense, message)
    }

    /// The host's message, without credentials.
    pub(crate) fn words(&self) -> String {
        let said = match serde_json::from_slice::<Value>(&self.body) {
            Ok(value) => spoken(&value),
            // A web page contains no message.
            Err(_) if self.body.trim_ascii_start().starts_with(b"<") => String::new(),
            Err(_) => String::from_utf8(self.body.to_vec()).unwrap_or_default(),
        };
        let said: String = said.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(WORDS).collect();
        self.secrets.without(&said)
    }

    /// Whether the host's message contains one of these texts, in any case.
    pub(crate) fn says(&self, words: &[&str]) -> bool {
        let said = self.words().to_lowercase();
        words.iter().any(|word| said.contains(word))
    }

    /// The error for a refusal.
    pub(crate) fn error(&self) -> HostError {
        let Self { host, what, .. } = self;
        let (code, said) = (self.status.as_u16(), self.words());
        let said = if said.is_empty() { String::new() } else { format!(": {said}") };
        if let Some(until) = self.limited() {
            let message = format!("{host} wants no more requests before {} ({code}{said})", until.rfc3339());
            return HostError::new(Kind::RateLimited { until }, message);
        }
        // Bitbucket Server answers 401 to known users without permission.
        let unpermitted = code == 401 && self.body.windows(22).any(|part| part == b"AuthorisationException");
        let (kind, message) = match code {
            401 if !unpermitted => (
                Kind::Credentials,
                format!("{host} does not accept the credentials ({code}{said}): store a valid token in the secret"),
            ),
            401 | 403 => (
                Kind::Forbidden,
                format!("{host} does not allow this on {what} ({code}{said}): give the token the missing scope or permission"),
            ),
            404 | 410 => (
                Kind::NotFound,
                format!(
                    "{host} has no {what}, or the token may not see it ({code}{said}): check the URL and the token's permissions"
                ),
            ),
            408 | 425 | 500.. => (Kind::Transient, format!("{host} could not answer about {what} ({code}{said})")),
            300..=399 => (
                Kind::Nonsense,
                format!("{host} answered about {what} with a redirect that is not followed ({code}): check the API's base"),
            ),
            _ => (Kind::Refused, format!("{host} refused a request about {what} ({code}{said})")),
        };
        HostError::new(kind, message)
    }

    /// When the host accepts the next request, if it limits them. GitHub also reports its limits with 403.
    fn limited(&self) -> Option<Timestamp> {
        let now = now();
        let spent = |name: &str| self.header(name).is_some_and(|left| left.trim() == "0");
        let spent = spent("x-ratelimit-remaining") || spent("ratelimit-remaining");
        let after = self.header("retry-after").and_then(|text| after(text, now));
        let limited = match self.status.as_u16() {
            429 => true,
            403 => spent || after.is_some() || self.says(&["rate limit", "abuse detection"]),
            503 => after.is_some(),
            _ => false,
        };
        let reset = || {
            let text = self.header("x-ratelimit-reset").or_else(|| self.header("ratelimit-reset")).filter(|_| spent)?;
            Some(Timestamp(text.trim().parse::<i64>().ok()?.checked_mul(1000)?))
        };
        limited.then(|| after.or_else(reset).unwrap_or(now + UNSAID).clamp(now, now + LONGEST))
    }
}

/// A number of seconds, or a date.
fn after(text: &str, now: Timestamp) -> Option<Timestamp> {
    if let Ok(seconds) = text.trim().parse::<u32>() {
        return Some(now + Span::seconds(i64::from(seconds)));
    }
    chrono::DateTime::parse_from_rfc2822(text.trim()).ok().map(|time| Timestamp(time.timestamp_millis()))
}

fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// All messages in a host's JSON, under any of the usual keys.
fn spoken(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => {
            let said: Vec<String> = values.iter().map(spoken).filter(|text| !text.is_empty()).collect();
            said.join("; ")
        }
        Value::Object(object) => {
            let keys = ["message", "error", "error_description", "errors"];
            let said: Vec<String> =
                keys.iter().filter_map(|key| object.get(*key)).map(spoken).filter(|text| !text.is_empty()).collect();
            if !said.is_empty() {
                return said.join(": ");
            }
            // GitLab names the field: {"base": ["is invalid"]}. The errors of GitHub have a field and a code.
            let mut said: Vec<String> = object
                .iter()
                .filter(|(key, _)| !key.contains("url"))
                .map(|(key, value)| format!("{key} {}", spoken(value)))
                .collect();
            // The order of members depends on a feature of the JSON library that other crates may enable.
            said.sort();
            said.join(", ")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credentials::Credentials;
    use crate::http::Http;
    use crate::repository::{Api, Form};

    fn answer(status: u16, headers: &[(&'static str, String)], body: &str) -> Answer {
        let credentials = Credentials::parse(r#"{"token": "t0ken"}"#).unwrap();
        let guard = keelway_outgoing::Guard::new(keelway_outgoing::Hosts::default());
        let http = Http::new(&Api::at(Form::GitHub, "https://git.test/api/v3").unwrap(), &credentials, &guard).unwrap();
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        Answer {
            host: http.host().to_owned(),
            what: "repository acme/shop".to_owned(),
            status: StatusCode::from_u16(status).unwrap(),
            headers,
            body: body.as_bytes().to_vec().into(),
            secrets: http.secrets(),
        }
    }

    #[test]
    fn each_refusal_has_its_kind_and_names_the_host_and_the_way_out() {
        let cases = [
            (401, Kind::Credentials, "secret"),
            (403, Kind::Forbidden, "scope"),
            (404, Kind::NotFound, "repository acme/shop"),
            (500, Kind::Transient, "could not answer"),
            (502, Kind::Transient, "could not answer"),
            (503, Kind::Transient, "could not answer"),
            (504, Kind::Transient, "could not answer"),
            (409, Kind::Refused, "refused"),
            (422, Kind::Refused, "refused"),
            (302, Kind::Nonsense, "redirect"),
        ];
        for (status, kind, expected) in cases {
            let error = answer(status, &[], r#"{"message": "no: t0ken", "errors": [{"message": "because"}]}"#).error();
            assert_eq!(error.kind, kind, "{status}");
            assert!(error.message.contains("git.test") && error.message.contains(expected), "{error}");
            assert!(!error.message.contains("t0ken"), "{error}");
        }
    }

    #[test]
    fn limits_are_obeyed_in_each_way_hosts_tell_them() {
        let until = |answer: Answer| match answer.error().kind {
            Kind::RateLimited { until } => until - now(),
            kind => panic!("{kind:?}"),
        };
        let near = |span: Span, seconds: i64| assert!((seconds * 1000 - 5_000..=seconds * 1000).contains(&span.0), "{span}");
        near(until(answer(429, &[("retry-after", "120".into())], "")), 120);
        near(until(answer(403, &[("retry-after", "30".into())], "You have exceeded a secondary rate limit")), 30);
        near(until(answer(403, &[], r#"{"message": "You have exceeded a secondary rate limit."}"#)), 60);
        near(until(answer(503, &[("retry-after", "9".into())], "")), 9);
        near(until(answer(429, &[], "")), 60);
        near(until(answer(429, &[("retry-after", "99999999".into())], "")), 24 * 3600);
        let at = (now() + Span::minutes(10)).0 / 1000;
        let spent = |reset: i64| [("x-ratelimit-remaining", "0".to_owned()), ("x-ratelimit-reset", reset.to_string())];
        near(until(answer(403, &spent(at), "")), 600);
        // A time in the past means now.
        assert!(until(answer(403, &spent(5), "")).0 <= 0);
        let date = chrono::DateTime::from_timestamp_millis((now() + Span::minutes(5)).0).unwrap().to_rfc2822();
        near(until(answer(429, &[("retry-after", date)], "")), 300);
        assert_eq!(answer(403, &[("x-ratelimit-remaining", "10".into())], "").error().kind, Kind::Forbidden);
    }

    #[test]
    fn bitbucket_knows_whom_it_does_not_permit() {
        let body = r#"{"errors": [{"message": "You are not permitted", "exceptionName": "com.atlassian.bitbucket.AuthorisationException"}]}"#;
        assert_eq!(answer(401, &[], body).error().kind, Kind::Forbidden);
    }

    #[test]
    fn nonsense_is_named_and_not_repeated() {
        let error = answer(200, &[], "<html>t0ken").json::<Value>().unwrap_err();
        assert_eq!(error.kind, Kind::Nonsense);
        assert!(error.message.contains("proxy") && !error.message.contains("t0ken"), "{error}");
    }

    #[test]
    fn hosts_words_are_found_wherever_they_are() {
        let words = |body: &str| answer(422, &[], body).words();
        assert_eq!(
            words(r#"{"message": "Validation Failed", "errors": [{"field": "a", "code": "b"}]}"#),
            "Validation Failed: code b, field a"
        );
        assert_eq!(words(r#"{"errors": [{"context": null, "message": "no", "exceptionName": "x"}]}"#), "no");
        assert_eq!(words(r#"{"message": {"base": ["is invalid"]}}"#), "base is invalid");
        assert_eq!(words("plain\n  text"), "plain text");
        assert_eq!(words(" <html>teapot</html>"), "");
        assert_eq!(words(&"x".repeat(1000)).len(), WORDS);
    }
}
