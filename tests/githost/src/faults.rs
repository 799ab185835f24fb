//! Faults: which requests fail, and how.

use crate::http::Answer;
use crate::model::{Form, now};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The effect of a fault.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum Action {
    /// The request has no effect, and gets this status.
    Status {
        /// The status of the answer.
        status: u16,
        /// `Retry-After`, in seconds.
        #[serde(default)]
        retry_after: Option<u64>,
        /// The body. Default: an error in the form's format.
        #[serde(default)]
        body: Option<String>,
    },
    /// The request has no effect, and the connection is closed.
    Drop,
    /// The request has its effect, and the connection is closed before the answer.
    Lose,
    /// The request is handled later.
    Delay {
        /// The delay.
        milliseconds: u64,
    },
    /// The request has no effect, and gets a web page with a successful status.
    Html,
    /// The request has its effect, and half of the answer's JSON is sent.
    Cut,
    /// The request has its effect; in the answer, numbers become strings, strings numbers, and lists objects.
    Types,
    /// The request has no effect, and gets the error of a rate limit.
    RateLimit {
        /// Seconds until requests are accepted again.
        retry_after: u64,
        /// On GitHub: the secondary limit, with `Retry-After`. Otherwise the hourly one, with `X-RateLimit-Reset`.
        #[serde(default)]
        secondary: bool,
    },
}

/// A fault, and the requests that it hits.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Fault {
    /// `GET`, `POST`, …; `write` means all but `GET`. Default: every method.
    #[serde(default)]
    pub method: Option<String>,
    /// The path as it is sent, without the query. `*` matches any text.
    pub path: String,
    /// How many matching requests pass first.
    #[serde(default)]
    pub skip: u64,
    /// How many matching requests are hit.
    #[serde(default = "once")]
    pub times: u64,
    /// The effect.
    #[serde(flatten)]
    pub action: Action,
}

fn once() -> u64 {
    1
}

impl Fault {
    /// A fault of the next request with this method and path.
    pub fn next(method: &str, path: &str, action: Action) -> Self {
        Self { method: Some(method.to_owned()), path: path.to_owned(), skip: 0, times: 1, action }
    }

    /// Sets the number of requests that are hit.
    pub fn times(self, times: u64) -> Self {
        Self { times, ..self }
    }

    /// Sets the number of requests that pass first.
    pub fn after(self, skip: u64) -> Self {
        Self { skip, ..self }
    }

    fn fits(&self, method: &str, path: &str) -> bool {
        let fits = |wanted: &str| wanted == "*" || wanted.eq_ignore_ascii_case(method) || (wanted == "write" && method != "GET");
        self.method.as_deref().is_none_or(fits) && matches(&self.path, path)
    }
}

/// The faults that remain, in the order in which they were set.
#[derive(Debug, Default)]
pub(crate) struct Faults(pub Vec<Fault>);

impl Faults {
    /// The effect on this request: that of the first matching fault, whose count decreases.
    pub fn hit(&mut self, method: &str, path: &str) -> Option<Action> {
        let fault = self.0.iter_mut().find(|fault| fault.times > 0 && fault.fits(method, path))?;
        if fault.skip > 0 {
            fault.skip -= 1;
            return None;
        }
        fault.times -= 1;
        let action = fault.action.clone();
        self.0.retain(|fault| fault.times > 0);
        Some(action)
    }
}

/// Whether a pattern matches a text. `*` matches any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let parts: Vec<_> = rest.split('*').collect();
    let Some((last, middle)) = parts.split_last() else { return true };
    for part in middle {
        let Some(at) = text.find(part) else { return false };
        text = &text[at + part.len()..];
    }
    text.ends_with(last)
}

/// The answer to a request that has no effect. `None`: the request is handled.
pub(crate) fn instead(action: &Action, form: Form) -> Option<Answer> {
    match action {
        Action::Status { status, retry_after, body } => {
            let answer = match body {
                Some(body) => Answer::text(*status, "application/json", body.clone()),
                None => error(form, *status, "the host was told to fail"),
            };
            Some(match retry_after {
                Some(seconds) => answer.with("retry-after", seconds.to_string()),
                None => answer,
            })
        }
        Action::Html => {
            let page = "<!DOCTYPE html>\n<html><head><title>Welcome</title></head><body><h1>It works!</h1></body></html>\n";
            Some(Answer::text(200, "text/html; charset=utf-8", page))
        }
        Action::RateLimit { retry_after, secondary } => Some(limited(form, *retry_after, *secondary)),
        Action::Drop | Action::Lose | Action::Delay { .. } | Action::Cut | Action::Types => None,
    }
}

fn error(form: Form, status: u16, message: &str) -> Answer {
    match form {
        Form::GitHub => crate::forms::github::error(status, message, None),
        Form::Gitea | Form::GitLab => Answer::json(status, json!({"message": message})),
        Form::Bitbucket => Answer::json(status, json!({"errors": [{"context": null, "message": message, "exceptionName": null}]})),
    }
}

fn limited(form: Form, seconds: u64, secondary: bool) -> Answer {
    let (wait, reset) = (seconds.to_string(), (now() + seconds as i64).to_string());
    match form {
        Form::GitHub if secondary => {
            let text = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.";
            error(form, 403, text).with("retry-after", wait)
        }
        Form::GitHub => {
            let answer = error(form, 403, "API rate limit exceeded for user ID 1.").with("x-ratelimit-limit", "5000");
            answer.with("x-ratelimit-remaining", "0").with("x-ratelimit-used", "5000").with("x-ratelimit-reset", reset)
        }
        // Gitea itself has no rate limit: this is the answer of a proxy.
        Form::Gitea => Answer::text(429, "text/plain", "Too Many Requests\n").with("retry-after", wait),
        Form::GitLab => {
            let answer = Answer::text(429, "text/plain", "Retry later\n").with("retry-after", wait);
            answer.with("ratelimit-remaining", "0").with("ratelimit-reset", reset)
        }
        Form::Bitbucket => {
            let answer = error(form, 429, "The rate limit for this user has been exceeded.").with("retry-after", wait);
            answer.with("x-ratelimit-remaining", "0")
        }
    }
}

/// Changes the answer to a request that was handled.
pub(crate) fn spoil(action: &Action, mut answer: Answer) -> Answer {
    match action {
        Action::Cut => {
            let half = answer.body.len() / 2;
            answer.body.truncate(half);
        }
        Action::Types => {
            if let Ok(json) = serde_json::from_slice(&answer.body) {
                answer.body = swapped(json).to_string().into_bytes();
            }
        }
        _ => {}
    }
    answer
}

fn swapped(json: Value) -> Value {
    match json {
        Value::Number(number) => number.to_string().into(),
        Value::String(text) => text.len().into(),
        Value::Bool(bool) => bool.to_string().into(),
        Value::Array(all) => {
            all.into_iter().enumerate().map(|(at, json)| (at.to_string(), swapped(json))).collect::<serde_json::Map<_, _>>().into()
        }
        Value::Object(map) => map.into_iter().map(|(name, json)| (name, swapped(json))).collect(),
        Value::Null => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, fits) in [
            ("*/pulls", "/api/v1/repos/a/b/pulls", true),
            ("*/pulls", "/api/v1/repos/a/b/pulls/1", false),
            ("*/pulls/*/merge", "/repos/a/b/pulls/17/merge", true),
            ("*/pulls/*", "/repos/a/b/pulls/17/merge", true),
            ("/user", "/user", true),
            ("/user", "/users", false),
            ("*", "/anything", true),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn a_fault_passes_some_and_hits_some() {
        let mut faults = Faults(vec![Fault::next("write", "*", Action::Drop).after(1).times(2)]);
        let hits: Vec<_> =
            ["GET", "POST", "PUT", "GET", "POST", "POST"].iter().map(|method| faults.hit(method, "/x").is_some()).collect();
        assert_eq!(hits, [false, false, true, false, true, false]);
    }
}
