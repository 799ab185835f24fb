//! Answers without what changes from one recording to the next: addresses, times, ids and hashes.

use super::{Sent, Told};
use flate2::read::GzDecoder;
use reqwest::header::HeaderMap;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The headers that a client may read something from. `record.py` has the same list, and does what this module does.
const HEADERS: [&str; 13] = [
    "access-control-expose-headers",
    "allow",
    "cache-control",
    "content-disposition",
    "content-type",
    "etag",
    "last-modified",
    "link",
    "location",
    "retry-after",
    "www-authenticate",
    "x-hasmore",
    "x-total-count",
];
/// The same of a webhook.
const SENT: [&str; 9] = [
    "content-type",
    "x-gitea-delivery",
    "x-gitea-event",
    "x-gitea-event-type",
    "x-gitea-signature",
    "x-github-delivery",
    "x-github-event",
    "x-github-event-type",
    "x-hub-signature-256",
];
/// A number that follows one of these in a text is an id.
const IDS: [&str; 3] = ["id: ", "#issuecomment-", "/avatars/"];

pub(super) struct Plain {
    origin: String,
    kept: BTreeMap<String, String>,
}

impl Plain {
    pub(super) fn new(origin: &str) -> Self {
        Self { origin: origin.to_owned(), kept: BTreeMap::new() }
    }

    pub(super) fn keep(&mut self, name: &str, value: String) {
        self.kept.insert(name.to_owned(), value);
    }

    /// A text of a call with what was kept in place of `{name}`.
    pub(super) fn filled(&self, text: &str) -> String {
        self.kept.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
    }

    pub(super) fn headers(&self, headers: &HeaderMap) -> BTreeMap<String, String> {
        let value = |name: &&str| Some(((*name).to_owned(), headers.get(*name)?.to_str().ok()?.to_owned()));
        let plain = |(name, value): (String, String)| {
            let value = if matches!(name.as_str(), "etag" | "last-modified") { format!("<{name}>") } else { self.text(&value) };
            (name, value)
        };
        HEADERS.iter().filter_map(value).map(plain).collect()
    }

    pub(super) fn body(&self, body: &[u8]) -> Value {
        if body.is_empty() {
            return Value::Null;
        }
        if body.starts_with(&[0x1f, 0x8b]) {
            let mut archive = tar::Archive::new(GzDecoder::new(body));
            let entry = |entry: std::io::Result<tar::Entry<'_, _>>| {
                let entry = entry.unwrap();
                json!([entry.path().unwrap().to_str(), entry.size()])
            };
            let files = archive.entries().unwrap().filter(|entry| match entry {
                Ok(entry) => !entry.header().entry_type().is_pax_global_extensions(),
                Err(_) => true,
            });
            return files.map(entry).collect();
        }
        match serde_json::from_slice(body) {
            Ok(body) => self.value("", &body),
            Err(_) => self.text(&String::from_utf8_lossy(body)).into(),
        }
    }

    pub(super) fn sent(&self, headers: &HeaderMap, signature: &str, body: &Value) -> Sent {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let delivery = header("x-gitea-delivery").unwrap_or_default();
        let plain = |value: &str| value.replace(signature, "<signature>").replace(delivery, "<delivery>");
        let headers = SENT.iter().filter_map(|name| Some(((*name).to_owned(), plain(header(name)?)))).collect();
        Sent { headers, body: self.value("", body) }
    }

    fn value(&self, key: &str, value: &Value) -> Value {
        match value {
            Value::String(text) => self.text(text).into(),
            Value::Number(number) if number.as_u64() != Some(0) && (key == "id" || key.ends_with("_id")) => "<id>".into(),
            Value::Array(values) => values.iter().map(|value| self.value(key, value)).collect(),
            Value::Object(object) => {
                let repository = object.contains_key("full_name") && object.contains_key("default_branch");
                let sorted: BTreeMap<_, _> = object.iter().collect();
                let plain = |(key, value): (&String, &Value)| match key.as_str() {
                    // What it takes on the disk, whose account Gitea runs under, and a count that lags behind.
                    "size" | "ssh_url" | "open_pr_counter" if repository => (key.clone(), format!("<{key}>").into()),
                    _ => (key.clone(), self.value(key, value)),
                };
                Value::Object(sorted.into_iter().map(plain).collect())
            }
            other => other.clone(),
        }
    }

    fn text(&self, text: &str) -> String {
        // Nothing at all happened in the year 1: that is how Go says that there is no time.
        if !text.starts_with("0001-") && chrono::DateTime::parse_from_rfc3339(text).is_ok() {
            return "<time>".to_owned();
        }
        let text = text.replace(&self.origin, "{origin}");
        let text = self.kept.iter().fold(text, |text, (name, value)| text.replace(value, &format!("{{{name}}}")));
        let text = match text.split_once("token scope=") {
            Some((before, _)) => format!("{before}token scope=<scopes>"),
            None => text,
        };
        let text = match text.split_once('+').filter(|(id, _)| text.contains("@noreply.") && id.parse::<u64>().is_ok()) {
            Some((_, rest)) => format!("<id>+{rest}"),
            None => text,
        };
        without_ids(&without_hashes(&text))
    }
}

/// Thirty-two or more hexadecimal digits in a row are a hash.
fn without_hashes(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !matches!(c, '0'..='9' | 'a'..='f')).unwrap_or(rest.len());
        let (run, after) = rest.split_at(digits);
        out.push_str(if run.len() >= 32 { "<hash>" } else { run });
        let other = after.find(|c: char| matches!(c, '0'..='9' | 'a'..='f')).unwrap_or(after.len());
        out.push_str(&after[..other]);
        rest = &after[other..];
    }
    out
}

fn without_ids(text: &str) -> String {
    IDS.iter().fold(text.to_owned(), |text, before| {
        let mut parts = text.split(before);
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let after = part.trim_start_matches(|c: char| c.is_ascii_digit());
            out.push_str(before);
            out.push_str(if after.len() < part.len() { "<id>" } else { "" });
            out.push_str(after);
        }
        out
    })
}

/// Puts them back.
pub(super) fn expanded(parts: &BTreeMap<String, Value>, answers: Vec<Told>) -> Vec<Told> {
    let sent = |sent: Sent| Sent { body: back(parts, &sent.body), ..sent };
    answers.into_iter().map(|told| Told { body: back(parts, &told.body), sent: told.sent.map(sent), ..told }).collect()
}

fn back(parts: &BTreeMap<String, Value>, value: &Value) -> Value {
    match value {
        Value::String(text) => parts.get(text).map_or_else(|| value.clone(), |part| back(parts, part)),
        Value::Array(values) => values.iter().map(|value| back(parts, value)).collect(),
        Value::Object(object) => object.iter().map(|(key, value)| (key.clone(), back(parts, value))).collect::<Map<_, _>>().into(),
        other => other.clone(),
    }
}

/// Where two conversations differ. What differs in the same way in several answers is told once.
#[derive(Default)]
pub(super) struct Differences {
    pub(super) found: Vec<String>,
    seen: BTreeSet<(String, String)>,
}

impl Differences {
    pub(super) fn find(&mut self, call: &str, recorded: &Told, played: &Told) {
        let mut differ = vec![];
        compare("", &json!(recorded), &json!(played), &mut differ);
        for (at, what) in differ {
            // The same member of another object of the same kind.
            let mut end: Vec<_> = at.rsplit('/').take(2).collect();
            end.reverse();
            if self.seen.insert((end.join("/"), what.clone())) {
                self.found.push(format!("{call} ({}), {at}: {what}", recorded.about));
            }
        }
    }
}

fn compare(at: &str, recorded: &Value, played: &Value, differ: &mut Vec<(String, String)>) {
    match (recorded, played) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: BTreeSet<_> = one.keys().chain(other.keys()).collect();
            for key in keys {
                match (one.get(key), other.get(key)) {
                    (Some(one), Some(other)) => compare(&format!("{at}/{key}"), one, other, differ),
                    (one, other) => differ.push((format!("{at}/{key}"), told(one, other))),
                }
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (n, (one, other)) in one.iter().zip(other).enumerate() {
                compare(&format!("{at}/{n}"), one, other, differ);
            }
        }
        (one, other) if one != other => differ.push((at.to_owned(), told(Some(one), Some(other)))),
        _ => {}
    }
}

fn told(recorded: Option<&Value>, played: Option<&Value>) -> String {
    let text = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), Value::to_string);
    format!("Gitea {}, the strict host {}", text(recorded), text(played))
}
