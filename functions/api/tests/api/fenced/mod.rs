//! The border between two projects, at every operation of the OpenAPI document: a token of the one learns nothing of the other and
//! does nothing there.
//!
//! Each request of project [`OWN`] is sent with some or all of its names replaced by those of project [`OTHER`], which has
//! something of everything, and again with the names of a project that does not exist. Both answers must be the same, byte for byte
//! but for the name.

mod configs;
mod consents;
mod fields;
mod forgeries;
mod furnished;
mod manifests;
mod messages;
mod requests;

use crate::generated::document::{Document, Operation};
use crate::stand::{Answer, Stand, routes};
use furnished::{Furnished, NOBODY, OTHER, OWN, furnish};
use keelway_api::Needs;
use keelway_domain::access::Kind;
use keelway_engine::item::{Item, Key};
use keelway_world::text::holds;
use requests::{Pair, Sent, pairs};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The token of the own project with a scope of this kind. A kind of scope that is new needs one.
fn bearer(kind: Kind) -> &'static str {
    match kind {
        Kind::Read => "alfa-read",
        Kind::Trigger => "alfa-trigger",
        Kind::Execute => "alfa-execute",
        Kind::Approve => "alfa-approve",
        Kind::Administer => "alfa-administer",
    }
}

/// Whose requests are tried: a token of each kind of scope that a route asks for, and one with all of them.
fn bearers() -> BTreeSet<&'static str> {
    let kinds = routes().into_iter().flat_map(|route| match route.needs {
        Needs::Scope(kinds) | Needs::OrSigned(kinds) | Needs::Handler(kinds) => kinds.to_vec(),
        Needs::Itself(_) | Needs::Token => vec![],
    });
    kinds.map(bearer).chain(["alfa-all"]).collect()
}

/// Operations that no token of one project may use, so that its own requests are refused, too.
const NOT_FOR_ONE: [&str; 16] = [
    "DELETE /v1/dead-letters/{id}",
    "DELETE /v1/githosts/{name}",
    "DELETE /v1/log",
    "GET /v1/checks",
    "GET /v1/checks/{id}",
    "GET /v1/dead-letters",
    "GET /v1/dead-letters/{id}",
    "GET /v1/githosts",
    "GET /v1/githosts/{name}",
    "GET /v1/githosts/{name}/manifest",
    "GET /v1/invalid",
    "GET /v1/log",
    "POST /v1/checks",
    "POST /v1/dead-letters/{id}/redrive",
    "POST /v1/observations",
    "POST /v1/webhooks/{githost}",
];
/// Operations that there are for nobody, or that what is furnished does not allow now: a second project of a name, a deletion of
/// what is open, a version while one is on its way, a strategy that nobody began, and an evaluation that nobody has made.
const NOT_NOW: [&str; 11] = [
    "DELETE /v1/project/{project}",
    "DELETE /v1/secret",
    "GET /v1/project/{project}/stage/{stage}/service/{service}/evaluation/{id}",
    "GET /v1/secret",
    "POST /v1/deploymentConfigs",
    "POST /v1/deploymentConfigs/{id}/instantiate",
    "POST /v1/deployments/{name}/strategy",
    "POST /v1/project",
    "POST /v1/project/{project}/stage/{stage}/service/{service}/evaluation/{id}/invalidate",
    "POST /v1/secret",
    "PUT /v1/secret",
];

/// What belongs to the other project.
struct Border {
    /// Partitions whose names are hashes.
    hashed: BTreeSet<String>,
    /// Ids that nobody chose.
    ids: Vec<String>,
}

impl Border {
    fn of(f: &Furnished) -> Self {
        let mut whose: BTreeMap<String, (bool, bool)> = BTreeMap::new();
        for item in f.stand.world.core().table.items() {
            let (text, key) = (format!("{item:?}"), key(item));
            let whose = whose.entry(key.pk).or_default();
            whose.0 |= text.contains(OTHER);
            whose.1 |= text.contains(OWN);
        }
        let hashed = whose.into_iter().filter(|(_, whose)| *whose == (true, false)).map(|(pk, _)| pk).collect();
        let ids = f.ids.iter().filter(|((of, _), _)| *of == OTHER).map(|(_, id)| id.clone()).collect();
        Self { hashed, ids }
    }

    /// Whether an item of the other project has this key. The first project that a key names is the one to which it belongs.
    fn owns(&self, key: &Key) -> bool {
        let text = format!("{}#{}", key.pk, key.sk);
        match text.split(['#', '/']).find(|part| [OWN, OTHER].contains(part)) {
            Some(owner) => owner == OTHER,
            None => self.hashed.contains(&key.pk),
        }
    }

    /// What an answer tells of the other project that the request does not say itself.
    fn told(&self, sent: &Sent, text: &str) -> Option<String> {
        let words = || text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| word.contains(OTHER));
        let ids = self.ids.iter().map(String::as_str).filter(|id| holds(text, id));
        holds(text, OTHER).then(words).into_iter().flatten().chain(ids).find(|word| !sent.names(word)).map(str::to_owned)
    }
}

fn key(item: &Item) -> Key {
    item.key.clone()
}

/// What an answer says, with the headers that could name something.
fn said(answer: &Answer) -> String {
    let headers = ["location", "etag", "content-type", "allow"].map(|name| {
        let value = answer.headers.get(name).and_then(|value| value.to_str().ok());
        format!("{name}: {}\n", value.unwrap_or_default())
    });
    format!("{}\n{}{}", answer.status, headers.concat(), answer.text)
}

/// An answer about nobody, as if it were about the other project.
fn as_other(text: &str, f: &Furnished) -> String {
    let ids = f.ids.iter().filter(|((of, _), _)| *of == NOBODY);
    ids.fold(text.replace(NOBODY, OTHER), |text, ((_, name), id)| text.replace(id, &f.ids[&(OTHER, *name)]))
}

/// A new message or event that is addressed to the other project.
fn addressed(stand: &Stand, known: &BTreeSet<u64>, published: usize) -> Option<String> {
    fn names(value: &Value) -> bool {
        let is = |(name, value): (&String, &Value)| {
            ["p", "project", "namespace"].contains(&name.as_str()) && value == OTHER || names(value)
        };
        match value {
            Value::Object(members) => members.iter().any(is),
            Value::Array(items) => items.iter().any(names),
            _ => false,
        }
    }
    let core = stand.world.core();
    let messages = core.queue.messages.iter().filter(|(id, _)| !known.contains(id)).map(|(_, message)| message.parcel.text());
    let events = core.bus.log.iter().skip(published).filter(|one| one.entry.detail_type != "dev.keelway.audit");
    let mut all = messages.chain(events.map(|one| one.entry.detail.to_string()));
    let found = all.find(|text| serde_json::from_str(text).is_ok_and(|json: Value| names(&json)));
    found.map(|text| format!("it sent {text}"))
}

/// Sends a request and has the engines work on it; the answer, and what happened in the other project.
async fn ask(stand: &mut Stand, border: &Border, sent: &Sent, header: (&str, &str)) -> (Answer, Option<String>) {
    stand.world.core().table.journal.clear();
    let outgoing = |stand: &Stand| {
        let core = stand.world.core();
        (core.bus.log.len(), core.queue.messages.len())
    };
    let before = outgoing(stand);
    let known: BTreeSet<u64> = stand.world.core().queue.messages.keys().copied().collect();
    let answer = stand.request(sent.request(header)).await;
    let refused = answer.status >= 400 || sent.method == "GET";
    if refused && sent.method != "DELETE" && outgoing(stand) != before {
        return (answer, Some("it was refused, and sent something".into()));
    }
    let sent_there = addressed(stand, &known, before.0);
    if !refused {
        stand.work().await;
    }
    let core = stand.world.core();
    let written: Vec<&Key> = core.table.journal.iter().map(|change| &change.key).filter(|key| border.owns(key)).collect();
    let happened = (!written.is_empty()).then(|| format!("it wrote {written:?}"));
    drop(core);
    (answer, sent_there.or(happened))
}

/// The status of the answers to a request and its twin, or what is wrong with them.
async fn judge(f: &Furnished, border: &Border, stand: &mut Stand, pair: &Pair, header: (&str, &str)) -> Result<u16, String> {
    let reads = pair.other.method == "GET";
    let (mut answers, mut status) = (vec![], 0);
    let both = if pair.nobody == pair.other { vec![&pair.other] } else { vec![&pair.nobody, &pair.other] };
    for sent in both {
        let (answer, happened) = ask(stand, border, sent, header).await;
        let text = said(&answer);
        // Whatever was done is undone, so that both are asked of the same installation.
        if !reads && (answer.status < 400 || answer.status == 429) {
            *stand = f.stand.fork(f.secrets.clone());
        }
        if let Some(happened) = happened {
            return Err(format!("{happened}\n{text}"));
        }
        if answer.status >= 500 {
            return Err(format!("it failed: {text}"));
        }
        if let Some(word) = border.told(sent, &text) {
            return Err(format!("it tells of {word}: {text}"));
        }
        status = answer.status;
        answers.push(text);
    }
    let (nobody, other) = (as_other(&answers[0], f), answers.last().cloned().unwrap_or_default());
    let refused = |text: &str| text.starts_with('4');
    // What was done has ids of its own, and then the statuses tell. Nobody makes up an id, so an answer may tell whether there is
    // one.
    let done = !reads && status < 400 && nobody.lines().next() == other.lines().next();
    let known = border.ids.iter().any(|id| pair.other.names(id)) && (reads || refused(&nobody) && refused(&other));
    if done || known || other == nobody || answers.len() == 1 {
        return Ok(status);
    }
    Err(format!("it tells whether the project exists:\n{other}\nand for one that does not:\n{nobody}"))
}

/// Keys of the pages of a list, made by whoever sees everything, and made up.
async fn page_keys(operation: &Operation, f: &Furnished) -> Vec<String> {
    if !operation.parameters.iter().any(|parameter| parameter.name == "nextPageKey") {
        return vec![];
    }
    let escape = |key: &str| -> String {
        let one = |byte: u8| match byte {
            byte if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        };
        key.bytes().map(one).collect()
    };
    let mut keys: BTreeSet<String> =
        ["alfa", "alfa/alfa", "alfa/", "alfacart", "alfa#alfacart", "1795172266001~alfa~alfadev~alfaweb", "0#alfa"]
            .map(escape)
            .into();
    for template in requests::whole(operation, OTHER, f).into_iter().take(5) {
        let mut next = String::new();
        for _ in 0..3 {
            let join = if template.contains('?') { '&' } else { '?' };
            let page = f.stand.get(&format!("{template}{join}pageSize=1&nextPageKey={next}")).await.json();
            match page["nextPageKey"].as_str() {
                Some(key) if key != "0" && !key.is_empty() => next = escape(key),
                _ => break,
            }
            // Whose name stands in it is chosen as in the rest of the request.
            keys.insert(next.replace(OTHER, OWN));
        }
    }
    keys.into_iter().collect()
}

#[tokio::test(start_paused = true)]
async fn no_operation_reaches_another_project() {
    let f = furnish().await;
    let border = Border::of(&f);
    assert!(border.hashed.len() > 5, "{:?}", border.hashed);
    let document = Document::of(f.stand.get("/v1/openapi.json").await.json());
    let (mut failures, mut all, mut useless) = (vec![], 0, BTreeSet::new());
    for operation in &document.operations {
        let keys = page_keys(operation, &f).await;
        let pairs = match pairs(operation, &keys, &f) {
            Ok(pairs) => pairs,
            Err(missing) => {
                failures.push((operation.name(), missing));
                continue;
            }
        };
        assert!(!pairs.is_empty(), "{} is not tried", operation.name());
        let mut useful = false;
        let mut headers: Vec<(String, &str, String)> =
            bearers().iter().map(|name| ((*name).to_owned(), "x-token", f.stand.secret_of(name))).collect();
        headers.push(("the token of an attempt".into(), "authorization", format!("Bearer {}", f.ids[&(OWN, "attempt")])));
        for (who, name, value) in &headers {
            let mut stand = f.stand.fork(f.secrets.clone());
            for pair in &pairs {
                all += 1;
                match judge(&f, &border, &mut stand, pair, (*name, value.as_str())).await {
                    Ok(status) => useful |= status < 400 && !pair.other.names(OTHER),
                    Err(wrong) => {
                        let what = format!("{who}: {} {} {}\n{wrong}", pair.other.method, pair.other.uri, pair.other.body);
                        failures.push((operation.name(), what));
                        // One example of each operation and token is enough.
                        break;
                    }
                }
            }
        }
        if !useful {
            useless.insert(operation.name());
        }
    }
    println!("{all} pairs of requests to {} operations", document.operations.len());
    let short = failures.iter().map(|(_, text)| text.chars().take(1500).collect()).collect::<Vec<String>>().join("\n\n");
    assert!(failures.is_empty(), "{} holes:\n{short}\n\nrefused to everybody: {useless:#?}", failures.len());
    let expected: BTreeSet<String> = NOT_FOR_ONE.iter().chain(&NOT_NOW).map(|name| (*name).to_owned()).collect();
    assert_eq!(useless, expected, "the own project's requests to these operations have to succeed, or their refusals show nothing");
}
