//! Reports about targets in two formats: a small generic one, and whole Kubernetes objects. The API and the observer of clusters
//! use the same mapping.
//!
//! The version of a fact decides whether it is newer than another one about the same object. It is the first of these that exists:
//! `version` of the generic format; `metadata.resourceVersion` of an object, if it is a number; the time of the observation in
//! milliseconds. Versions of one source only rise. Sources of different kinds must not report about the same object.

use super::definition::{App, Target};
use super::observe::Observed;
use crate::time::{Span, Timestamp};
use serde_json::{Map, Value};

/// The most facts in one report.
pub const MOST: usize = 100;
/// How far in the future the time of an observation may be.
const AHEAD: Span = Span::minutes(5);
/// The longest name, in characters.
const LONGEST_NAME: usize = 253;
/// The longest revision, in characters.
const LONGEST_REVISION: usize = 1024;
/// The length at which an error is cut, in characters.
const LONGEST_ERROR: usize = 1000;
/// The fields of the generic format.
const FIELDS: [&str; 10] =
    ["apiVersion", "kind", "name", "namespace", "cluster", "revision", "ready", "error", "version", "observedAt"];

/// A fact about a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The observed object.
    pub app: App,
    /// The place of the object.
    pub target: Target,
    /// Rises with every fact about the object.
    pub version: i64,
    /// What was observed.
    pub observed: Observed,
    /// Whether the object is suspended (`spec.suspend`): its last observation stays valid until it is resumed.
    pub suspended: bool,
}

/// An error in a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// The path of the field, for example `[2].ready`.
    pub path: String,
    /// The error, and what to write instead.
    pub message: String,
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", if self.path.is_empty() { "body:" } else { &self.path }, self.message)
    }
}

/// Parses a body: one fact, a list of facts, or a Kubernetes list with `items`. Facts that name no cluster get `cluster`.
///
/// # Errors
/// All errors in the report.
pub fn read(body: &Value, cluster: Option<&str>, now: Timestamp) -> Result<Vec<Observation>, Vec<Wrong>> {
    let whole = |message: &str| Err(vec![Wrong { path: String::new(), message: message.to_owned() }]);
    let (entries, place): (Vec<&Value>, fn(usize) -> String) = match body {
        Value::Array(entries) => (entries.iter().collect(), |i| format!("[{i}]")),
        Value::Object(object) => match object.get("items") {
            Some(Value::Array(items)) => (items.iter().collect(), |i| format!("items[{i}]")),
            _ => (vec![body], |_| String::new()),
        },
        _ => return whole("is neither a fact nor a list of facts"),
    };
    if entries.len() > MOST {
        return whole(&format!("has {} facts: at most {MOST} are taken at once", entries.len()));
    }
    let mut wrong = vec![];
    let mut facts = vec![];
    for (i, entry) in entries.into_iter().enumerate() {
        match one(entry, cluster, now) {
            Ok(fact) => facts.push(fact),
            Err(found) => {
                let place = place(i);
                wrong.extend(found.into_iter().map(|Wrong { path, message }| {
                    let dot = if place.is_empty() || path.is_empty() { "" } else { "." };
                    Wrong { path: format!("{place}{dot}{path}"), message }
                }));
            }
        }
    }
    if wrong.is_empty() { Ok(facts) } else { Err(wrong) }
}

/// Refuses facts about deployment configs: only the deployments engine reports those.
///
/// # Errors
/// Every fact about a deployment config, by its index in the report.
pub fn by_others(facts: &[Observation]) -> Result<(), Vec<Wrong>> {
    let keelways = facts.iter().enumerate().filter(|(_, fact)| fact.target.is_keelways(&fact.app));
    let wrong: Vec<Wrong> = keelways
        .map(|(i, fact)| Wrong {
            path: format!("[{i}]"),
            message: format!(
                "is about the deployment config {}/{}, of which only Keelway tells what it runs",
                fact.target.namespace, fact.app.name
            ),
        })
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

/// Parses one fact of either format.
///
/// # Errors
/// All errors in the fact.
pub fn one(entry: &Value, cluster: Option<&str>, now: Timestamp) -> Result<Observation, Vec<Wrong>> {
    let Some(entry) = entry.as_object() else {
        return Err(vec![Wrong { path: String::new(), message: "is not a JSON object".into() }]);
    };
    let mut reader = Reader { wrong: vec![], now };
    let fact = match entry.get("metadata").and_then(Value::as_object) {
        Some(metadata) => reader.object(entry, metadata, cluster),
        None => reader.generic(entry, cluster),
    };
    match fact {
        Some(fact) if reader.wrong.is_empty() => Ok(fact),
        _ => Err(reader.wrong),
    }
}

/// The fact in the answer of an API server that was asked for an object. `None`: there is no such object.
///
/// # Errors
/// Why the answer is no fact about that object.
pub fn answered(app: &App, target: &Target, answer: Option<Value>, at: Timestamp) -> Result<Observed, String> {
    let App { api_version, kind, name } = app;
    let what = format!("{kind} {name} in namespace {}", target.namespace);
    let nonsense = |why: &str| format!("the API server's answer about {what} makes no sense: {why}");
    let answer = answer.ok_or_else(|| format!("there is no {what}"))?;
    let Value::Object(mut object) = answer else { return Err(nonsense("it is not an object")) };
    let Some(metadata) = object.get("metadata").and_then(Value::as_object) else { return Err(nonsense("it has no metadata")) };
    let says = |map: &Map<String, Value>, field: &str| map.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let expected = [
        ("apiVersion", says(&object, "apiVersion"), api_version),
        ("kind", says(&object, "kind"), kind),
        ("metadata.name", says(metadata, "name"), name),
        ("metadata.namespace", says(metadata, "namespace"), &target.namespace),
    ];
    if let Some((field, is, wanted)) = expected.into_iter().find(|(_, is, wanted)| is != *wanted) {
        let is: String = is.chars().take(100).collect();
        return Err(nonsense(&format!("its {field} is {is:?} instead of {wanted:?}")));
    }
    // In a report this member names the cluster; in an object it may mean anything.
    object.remove("cluster");
    let fact = one(&Value::Object(object), None, at)
        .map_err(|wrong| nonsense(&wrong.iter().map(Wrong::to_string).collect::<Vec<_>>().join("; ")))?;
    if fact.observed.ready && fact.observed.revision.is_none() {
        return Err(format!("{what} is Ready, but names no revision in status.lastAppliedRevision or status.history"));
    }
    Ok(fact.observed)
}

struct Reader {
    wrong: Vec<Wrong>,
    now: Timestamp,
}

impl Reader {
    fn wrong(&mut self, path: &str, message: impl Into<String>) {
        self.wrong.push(Wrong { path: path.to_owned(), message: message.into() });
    }

    fn generic(&mut self, entry: &Map<String, Value>, cluster: Option<&str>) -> Option<Observation> {
        for key in entry.keys().filter(|key| !FIELDS.contains(&key.as_str())) {
            let key: String = key.chars().take(100).collect();
            self.wrong(&key, format!("is not a field of a fact: it has {}", FIELDS.join(", ")));
        }
        let app = self.app(entry, entry, "");
        let target = self.target(entry, entry, "", cluster);
        let revision = self.text(entry, "revision", "", LONGEST_REVISION).filter(|revision| !revision.is_empty());
        let ready = match entry.get("ready") {
            Some(Value::Bool(ready)) => *ready,
            None if entry.get("error").is_some_and(|error| !error.is_null()) => false,
            None => {
                self.wrong("ready", "is missing: write true or false, or say in `error` why it is not known");
                false
            }
            Some(_) => {
                self.wrong("ready", "is not true or false");
                false
            }
        };
        let error = self.text(entry, "error", "", usize::MAX).filter(|error| !error.is_empty());
        let at = self.time(entry);
        let version = match entry.get("version") {
            None | Some(Value::Null) => at.0,
            Some(version) => version.as_i64().filter(|version| *version >= 0).unwrap_or_else(|| {
                self.wrong("version", "is not a whole number from 0 on");
                0
            }),
        };
        let error = error.map(|error| error.chars().take(LONGEST_ERROR).collect());
        Some(Observation {
            app: app?,
            target: target?,
            version,
            observed: Observed { revision, ready, error, at, by: vec![] },
            suspended: false,
        })
    }

    /// A Kubernetes object with its health in the condition `Ready`, and its revision in `.status`.
    fn object(&mut self, entry: &Map<String, Value>, metadata: &Map<String, Value>, cluster: Option<&str>) -> Option<Observation> {
        let app = self.app(entry, metadata, "metadata.");
        let target = self.target(entry, metadata, "metadata.", cluster);
        let status = entry.get("status").unwrap_or(&Value::Null);
        let revision = applied(status);
        if revision.as_ref().is_some_and(|revision| revision.len() > LONGEST_REVISION) {
            self.wrong("status.lastAppliedRevision", format!("has more than {LONGEST_REVISION} bytes"));
        }
        let version = metadata.get("resourceVersion").and_then(Value::as_str).and_then(|version| version.parse().ok());
        let observed = Observed { revision, ready: is_ready(metadata, status), error: None, at: self.now, by: vec![] };
        let suspended = entry.get("spec").and_then(|spec| spec.get("suspend")).and_then(Value::as_bool) == Some(true);
        let version = version.filter(|version: &i64| *version >= 0).unwrap_or(self.now.0);
        Some(Observation { app: app?, target: target?, version, observed, suspended })
    }

    fn app(&mut self, entry: &Map<String, Value>, named: &Map<String, Value>, prefix: &str) -> Option<App> {
        let api_version = self.name(entry, "apiVersion", "", "for example helm.toolkit.fluxcd.io/v2");
        let kind = self.name(entry, "kind", "", "for example HelmRelease");
        let name = self.name(named, "name", prefix, "the object's name");
        Some(App { api_version: api_version?, kind: kind?, name: name? })
    }

    fn target(
        &mut self,
        entry: &Map<String, Value>,
        named: &Map<String, Value>,
        prefix: &str,
        cluster: Option<&str>,
    ) -> Option<Target> {
        let namespace = self.name(named, "namespace", prefix, "the namespace the object is in");
        let own = self.text(entry, "cluster", "", 2 * LONGEST_NAME).filter(|cluster| !cluster.is_empty());
        let cluster = own.or_else(|| cluster.map(str::to_owned));
        let parts = |cluster: &String| cluster.split('/').map(|part| !part.is_empty()).collect::<Vec<_>>();
        if cluster.as_ref().is_some_and(|cluster| parts(cluster) != [true, true]) {
            self.wrong("cluster", "is not the name of a cluster: write it as <namespace>/<name>, or leave it out");
        }
        Some(Target { cluster, namespace: namespace? })
    }

    fn name(&mut self, map: &Map<String, Value>, field: &str, prefix: &str, example: &str) -> Option<String> {
        match map.get(field) {
            None | Some(Value::Null) => {
                self.wrong(&format!("{prefix}{field}"), format!("is missing: write {example}"));
                None
            }
            Some(Value::String(text)) if text.is_empty() => {
                self.wrong(&format!("{prefix}{field}"), format!("is empty: write {example}"));
                None
            }
            Some(_) => self.text(map, field, prefix, LONGEST_NAME),
        }
    }

    fn text(&mut self, map: &Map<String, Value>, field: &str, prefix: &str, most: usize) -> Option<String> {
        let text = match map.get(field)? {
            Value::Null => return None,
            Value::String(text) => text,
            _ => {
                self.wrong(&format!("{prefix}{field}"), "is not a text");
                return None;
            }
        };
        if text.len() > most {
            self.wrong(&format!("{prefix}{field}"), format!("has {} bytes: at most {most} are taken", text.len()));
            return None;
        }
        if text.chars().any(char::is_control) && field != "error" {
            self.wrong(&format!("{prefix}{field}"), "contains a control character: leave it out");
            return None;
        }
        Some(text.clone())
    }

    fn time(&mut self, entry: &Map<String, Value>) -> Timestamp {
        let Some(text) = self.text(entry, "observedAt", "", 64).filter(|text| !text.is_empty()) else { return self.now };
        match Timestamp::parse(&text) {
            Some(at) if at > self.now + AHEAD => {
                let message = format!("is {text}, but it is {}: set the clock of whoever observed it", self.now.rfc3339());
                self.wrong("observedAt", message);
                self.now
            }
            Some(at) if at.0 > 0 => at,
            _ => {
                self.wrong("observedAt", "is not a time: write it like 2026-11-20T15:04:05.000Z");
                self.now
            }
        }
    }
}

/// The applied revision. Newer HelmReleases have it only in their history, newest first.
fn applied(status: &Value) -> Option<String> {
    let own = status.get("lastAppliedRevision").and_then(Value::as_str).filter(|revision| !revision.is_empty());
    let newest = || {
        let release = status.get("history")?.as_array()?.first()?;
        release.get("chartVersion").filter(|_| release.get("status").and_then(Value::as_str) == Some("deployed"))?.as_str()
    };
    own.or_else(newest).map(str::to_owned)
}

/// Whether the condition `Ready` is true for the generation that was requested.
fn is_ready(metadata: &Map<String, Value>, status: &Value) -> bool {
    let generation = metadata.get("generation").and_then(Value::as_i64);
    let is_current = |of: &Value| match (generation, of.get("observedGeneration").and_then(Value::as_i64)) {
        (Some(generation), Some(observed)) => observed >= generation,
        _ => true,
    };
    let text = |condition: &Value, field: &str, wanted: &str| condition.get(field).and_then(Value::as_str) == Some(wanted);
    let conditions = status.get("conditions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let ready = conditions.iter().find(|condition| text(condition, "type", "Ready"));
    ready.is_some_and(|ready| text(ready, "status", "True") && is_current(ready)) && is_current(status)
}
