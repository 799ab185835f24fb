//! What is asked of every answer.

use super::document::{Document, Operation};
use super::draw::Sent;
use super::furnished::{Furnished, SECRETS};
use crate::stand::{Answer, OTHER_TOKEN, TOKEN};
use keelway_engine::item::Key;
use keelway_world::table::Change;
use keelway_world::text::holds;
use serde_json::Value;

/// What is written although a request is refused or only reads: what is remembered of requests and callers, and never what they are
/// about.
const BESIDE: [&str; 4] = ["I#", "N#", "RC#", "TOKENS"];

/// What is wrong with an answer; `None`: nothing.
pub fn wrong(document: &Document, operation: &Operation, sent: &Sent, answer: &Answer, f: &Furnished) -> Option<String> {
    let secrets = SECRETS.iter().copied().chain([TOKEN, OTHER_TOKEN]).chain(f.attempts.iter().map(String::as_str));
    // The same claim again is answered with a token of its own.
    if let Some(secret) = secrets.chain(f.weak.iter().map(String::as_str)).find(|secret| holds(&answer.text, secret)) {
        return Some(format!("{secret} is a secret"));
    }
    if sent.method != operation.method {
        return match answer.status {
            401 | 403 => None,
            405 if answer.headers.contains_key("allow") => None,
            other => Some(format!("status {other} for a method that the path does not take")),
        };
    }
    let Some(kinds) = operation.answers.get(&answer.status) else {
        return Some(format!("status {} is not in the document: answers are {:?}", answer.status, operation.answers.keys()));
    };
    if kinds.is_empty() {
        return (!answer.text.is_empty()).then(|| "a body, and the document has none".to_owned());
    }
    let kind = answer.content_type.split(';').next().unwrap_or_default();
    let Some(schema) = kinds.get(kind) else {
        return Some(format!("content type {kind:?} is not in the document: there are {:?}", kinds.keys()));
    };
    let value = if kind.ends_with("json") {
        match serde_json::from_str(&answer.text) {
            Ok(value) => value,
            Err(error) => return Some(format!("no JSON: {error}")),
        }
    } else {
        Value::String(answer.text.clone())
    };
    if let Some(wrong) = document.wrong(&value, *schema) {
        return Some(wrong);
    }
    let empty = |name: &str| value[name].as_str().is_none_or(str::is_empty);
    (answer.status >= 400 && (empty("detail") || empty("title"))).then(|| "a problem without a detail".to_owned())
}

/// What a refused or reading request changed; `None`: nothing.
pub fn changed(f: &Furnished, sent: &Sent, before: (usize, usize)) -> Option<String> {
    let core = f.stand.world.core();
    // The audit of a config keeps what a deployer says too late.
    let beside = |key: &Key| BESIDE.iter().any(|start| key.pk.starts_with(start)) || key.sk.starts_with("A#");
    let written: Vec<String> =
        core.table.journal.iter().filter(|one| !beside(&one.key)).map(|one| format!("{:?}", one.key)).collect();
    if !written.is_empty() {
        return Some(format!("it was not carried out, and wrote {written:?}"));
    }
    // A deletion that is repeated says again what follows from it: the first one may have stopped before.
    (sent.method != "DELETE" && outgoing(&core) != before).then(|| "it was not carried out, and sent something".to_owned())
}

/// Entries of the audit in which a handler did not say what it has done.
pub fn unsaid(f: &Furnished) -> Option<String> {
    let core = f.stand.world.core();
    let entry = |one: &Change| {
        one.new.as_ref().filter(|_| one.key.pk.starts_with("AUDIT#")).and_then(|item| item.text("j").map(str::to_owned))
    };
    let says = |entry: &String| {
        serde_json::from_str::<Value>(entry).is_ok_and(|entry| entry["w"].as_str().is_some_and(|what| !what.is_empty()))
    };
    let silent = core.table.journal.iter().filter_map(entry).find(|entry| !says(entry));
    silent.map(|entry| format!("say what was done, for the audit, by `caller.says(…)` in the handler: {entry}"))
}

/// How many events were published and messages sent.
pub fn outgoing(core: &keelway_world::core::Core) -> (usize, usize) {
    (core.bus.log.len(), core.queue.messages.len())
}
