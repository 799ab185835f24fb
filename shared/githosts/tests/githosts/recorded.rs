//! Each kind of request that the client makes to the strict host's Gitea form was recorded with a real one.

use keelway_githost::Call;
use serde_json::Value;
use std::collections::BTreeSet;

const CALLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/githost/recorded/gitea/calls.json");

/// The method, the path without names, and the query without what differs from one request to the next.
fn kind(method: &str, path: &str) -> String {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let path = path.trim_start_matches("/api/v1");
    let shape = match path.split('/').skip(4).collect::<Vec<_>>().as_slice() {
        [list @ ("contents" | "pulls")] => (*list).to_owned(),
        [of @ ("branches" | "contents" | "archive"), ..] => format!("{of}/…"),
        ["git", "commits", _] => "git/commits/…".to_owned(),
        [of @ ("pulls" | "issues"), number, rest @ ..] if number.parse::<u64>().is_ok() => format!("{of}/…/{}", rest.join("/")),
        ["pulls", _, _, ..] => "pulls/…/…".to_owned(),
        other => other.join("/"),
    };
    let plain = |pair: &str| match pair.split_once('=') {
        Some((name @ ("page" | "ref"), _)) => format!("{name}=…"),
        _ => pair.to_owned(),
    };
    let query: BTreeSet<_> = query.split('&').map(plain).collect();
    format!("{method} {shape} {}", query.into_iter().collect::<Vec<_>>().join("&"))
}

fn recorded() -> BTreeSet<String> {
    let steps: Vec<Value> = serde_json::from_slice(&std::fs::read(CALLS).unwrap()).unwrap();
    let call = |step: &Value| step["call"].as_str().and_then(|call| call.split_once(' ')).map(|(method, path)| kind(method, path));
    steps.iter().filter_map(call).collect()
}

#[track_caller]
pub(crate) fn were_recorded(calls: &[Call]) {
    let made: BTreeSet<_> = calls.iter().map(|call| kind(&call.method, &call.path)).collect();
    let missing: Vec<_> = made.difference(&recorded()).cloned().collect();
    assert!(missing.is_empty(), "add these to calls.json and record it anew, as tests/README.md says: {missing:#?}");
}
