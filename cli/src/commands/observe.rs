//! `observe`: what targets run, from Kubernetes objects or facts in files, to the API.

use super::files;
use crate::api::{Api, Body};
use crate::args::{Format, Observe};
use crate::clock::now;
use crate::error::CliError;
use crate::output::{say, say_data};
use keelway_wire::http::promotions::{ObservationAnswer, ObservedFact};
use keelway_wire::observation::{self, MOST};
use reqwest::Method;
use serde_json::{Value, json};

/// So many faults of a file are told.
const TOLD: usize = 20;

/// Reads and checks everything first; only then sends anything.
///
/// # Errors
/// What is wrong with a file, or the API's refusal.
pub async fn observe(api: impl Fn() -> Result<Api, CliError>, what: &Observe) -> Result<(), CliError> {
    let cluster = what.cluster.as_deref();
    let (mut facts, mut wrong) = (vec![], vec![]);
    for file in &what.files {
        let file = files::read(file)?;
        let shown = if file.name == "-" { "standard input" } else { &file.name };
        for (n, document) in documents(&file)?.into_iter().enumerate() {
            match observation::read(&document, cluster, now()) {
                Ok(_) => facts.extend(split(document)),
                Err(found) => wrong.extend(found.iter().map(|wrong| format!("{shown}: document {}: {wrong}", n + 1))),
            }
        }
    }
    if !wrong.is_empty() {
        wrong.iter().take(TOLD).for_each(|wrong| eprintln!("{wrong}"));
        let n = wrong.len();
        let what = if n == 1 { "one thing is".into() } else { format!("{n} things are") };
        return Err(CliError::Failed(format!("{what} wrong: nothing was sent; mend that and observe again")));
    }
    if facts.is_empty() {
        return Err(CliError::Failed("nothing was observed: the files hold no objects and no facts".into()));
    }
    let api = api()?;
    let mut answer = ObservationAnswer::default();
    for facts in facts.chunks(MOST) {
        let query = [("cluster", cluster.unwrap_or_default())];
        let part: ObservationAnswer = api.call(Method::POST, &["observations"], &query, Body::Json(&json!(facts), None)).await?;
        if !what.output.format.is_data() {
            part.facts.iter().try_for_each(|fact| say(&line(fact, what.output.format)))?;
        }
        answer.facts.extend(part.facts);
    }
    if what.output.format.is_data() { say_data(&answer, what.output.format) } else { Ok(()) }
}

/// The documents of a file; empty ones are passed over.
fn documents(file: &files::Text) -> Result<Vec<Value>, CliError> {
    let unreadable = |error: serde_saphyr::Error| {
        let text = crate::output::one_line(&error.to_string(), 300);
        CliError::Usage(format!(
            "{} is neither YAML nor JSON: {text}",
            if file.name == "-" { "standard input" } else { &file.name }
        ))
    };
    let documents: Vec<Value> = serde_saphyr::from_multiple(&file.text).map_err(unreadable)?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// The facts of a document: itself, or what it lists.
fn split(document: Value) -> Vec<Value> {
    match document {
        Value::Array(facts) => facts,
        Value::Object(mut object) => match object.remove("items") {
            Some(Value::Array(items)) => items,
            Some(other) => {
                object.insert("items".into(), other);
                vec![Value::Object(object)]
            }
            None => vec![Value::Object(object)],
        },
        other => vec![other],
    }
}

/// `HelmRelease shop/carts: newer`
fn line(fact: &ObservedFact, format: Format) -> String {
    let cluster = fact.cluster.as_ref().map(|cluster| format!(" in {cluster}")).unwrap_or_default();
    let newer = if fact.newer { "newer" } else { "older than what is known: changes nothing" };
    let suspended = if fact.suspended { " (suspended: it stays as it is until it is resumed)" } else { "" };
    let version = if format.is_wide() { format!(", version {}", fact.version) } else { String::new() };
    format!("{} {}/{}{cluster}: {newer}{version}{suspended}", fact.kind, fact.namespace, fact.name)
}
