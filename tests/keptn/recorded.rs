//! The session of Keptn's clients: what its command line and an executor on its Go library ask, request by request, in
//! `session.json`. It is played against the API in memory (`functions/api`) and on the local cloud (`tests/cloud`), which both
//! include this file.
//!
//! A path or a body may contain `{name}`: the project, or what an earlier answer was kept as.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// A command or a call, and what it asks.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// `cli` or `sdk`.
    pub client: String,
    /// The command as it is typed, or the call.
    pub does: String,
    /// In this order.
    pub requests: Vec<Recorded>,
}

/// A request and what the client needs of the answer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    request: String,
    #[serde(default)]
    body: Option<Value>,
    /// The status of the answer; 0: any success.
    status: u16,
    /// Values by JSON pointer.
    #[serde(default)]
    has: BTreeMap<String, Value>,
    /// JSON pointers of texts, by the name they are kept under.
    #[serde(default)]
    keep: BTreeMap<String, String>,
    /// The client, or the person who types the command, asks again until the answer is this one: the engine takes a moment.
    #[serde(default)]
    pub again: bool,
}

/// A request as it is sent.
#[derive(Debug)]
pub struct Sent {
    /// `GET`, …
    pub method: String,
    /// With the query string.
    pub path: String,
    /// JSON.
    pub body: Option<String>,
}

/// The session.
pub fn session() -> Vec<Step> {
    serde_json::from_str(include_str!("session.json")).unwrap()
}

/// A session that is being played.
#[derive(Debug)]
pub struct Play {
    kept: BTreeMap<String, String>,
}

impl Play {
    /// In a project of this name, which does not exist yet.
    pub fn new(project: &str) -> Self {
        Self { kept: BTreeMap::from([("project".to_owned(), project.to_owned())]) }
    }

    /// The request with what was kept filled in.
    pub fn request(&self, recorded: &Recorded) -> Sent {
        let request = self.filled(&recorded.request);
        let (method, path) = request.split_once(' ').unwrap_or(("GET", &request));
        let body = recorded.body.as_ref().map(|body| self.filled(&body.to_string()));
        Sent { method: method.to_owned(), path: path.to_owned(), body }
    }

    /// Whether the answer is what the client needs; keeps of it what later requests name.
    ///
    /// # Errors
    /// What is different.
    pub fn check(&mut self, recorded: &Recorded, status: u16, answer: &Value) -> Result<(), String> {
        let expected = recorded.status;
        let right = if expected == 0 { (200..300).contains(&status) } else { status == expected };
        if !right {
            return Err(format!("status {status} instead of {expected}: {answer}"));
        }
        if status >= 400 && !(answer["message"].is_string() && answer["code"] == status) {
            return Err(format!("no message and code for the client to show: {answer}"));
        }
        for (pointer, value) in &recorded.has {
            let value: Value = serde_json::from_str(&self.filled(&value.to_string())).map_err(|error| error.to_string())?;
            let found = answer.pointer(pointer);
            if found != Some(&value) {
                return Err(format!("{pointer} is {found:?} instead of {value}: {answer}"));
            }
        }
        for (name, pointer) in &recorded.keep {
            let found = answer.pointer(pointer).and_then(Value::as_str);
            let found = found.ok_or_else(|| format!("there is no text at {pointer}: {answer}"))?;
            self.kept.insert(name.clone(), found.to_owned());
        }
        Ok(())
    }

    fn filled(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, value) in &self.kept {
            text = text.replace(&format!("{{{name}}}"), value);
        }
        text
    }
}
