//! One metric of an analysis: an objective, and the query of its indicator.

use super::arguments::Arguments;
use super::condition::{Condition, Entries};
use super::provider::{self, Source};
use super::{Fields, fields, filled};
use crate::manifest::finding::Report;
use crate::manifest::tree::Node;
use crate::manifest::values::whole;
use keelway_domain::time::Span;

const METRIC: Fields = Fields {
    taken: &["name", "interval", "successCondition", "failureCondition", "failureLimit", "provider"],
    left: &[
        ("count", "a strategy evaluates for as long as its step takes, once in each interval"),
        ("initialDelay", "a strategy evaluates a step when its first interval is over"),
        ("inconclusiveLimit", "the first evaluation that is neither good nor bad counts"),
        ("consecutiveErrorLimit", "a source that does not answer is asked five times within three minutes"),
        ("consecutiveSuccessLimit", "a step is good when it is over and nothing has failed"),
    ],
    refused: &[],
};

/// A metric as far as it is taken over.
pub struct Metric {
    pub name: String,
    /// The entries of `pass`: `None` if there is no condition.
    pub pass: Option<Entries>,
    /// The entries of `warning`: where neither condition holds, Argo's result is inconclusive.
    pub warning: Entries,
    pub query: String,
    pub source: Source,
    pub interval: Option<Span>,
    pub failure_limit: i64,
    /// Whether its result does not count.
    pub is_dry: bool,
}

pub fn read(node: &Node, path: &str, arguments: &Arguments, report: &mut Report) -> Option<Metric> {
    if node.entries().is_none() {
        report.error(node, path, format!("is {}, not a mapping: write its fields", node.what()));
        return None;
    }
    fields(node, path, &METRIC, report);
    let Some(name) = node.get("name").and_then(Node::scalar).filter(|name| !name.trim().is_empty()) else {
        report.error(node, format!("{path}.name"), "is missing: the indicator is called so".into());
        return None;
    };
    let success = condition(node, "successCondition", path, arguments, report);
    let failure = condition(node, "failureCondition", path, arguments, report).map(Condition::opposite);
    let (pass, warning) = match (success, failure) {
        (None, None) => (None, None),
        (Some(success), None) => (Some((success, "successCondition")), None),
        (None, Some(sound)) => (Some((sound, "failureCondition")), None),
        (Some(success), Some(sound)) => (Some((success, "successCondition")), Some((sound, "failureCondition"))),
    };
    let mut entries = |(condition, field): (Condition, &str)| match condition.entries() {
        Ok(entries) => Some(entries),
        Err(why) => {
            let of = if field == "failureCondition" { "the opposite of the condition " } else { "" };
            report.error(node.get(field).unwrap_or(node), format!("{path}.{field}"), format!("{of}{why}"));
            None
        }
    };
    let (pass, warning) = (pass.and_then(&mut entries), warning.and_then(&mut entries).unwrap_or_default());
    let interval = filled(node, "interval", path, arguments, report).and_then(|text| match Span::parse(text.trim()) {
        Ok(span) if span.0 > 0 => Some(span),
        _ => {
            let message = format!("{text:?} is no interval: write for example `5m`");
            report.error(node.get("interval").unwrap_or(node), format!("{path}.interval"), message);
            None
        }
    });
    let failure_limit = whole(node, "failureLimit", path, 0, report).unwrap_or(0);
    let (source, query) = provider::read(node, path, arguments, report)?;
    Some(Metric { name: name.to_owned(), pass, warning, query, source, interval, failure_limit, is_dry: false })
}

fn condition(node: &Node, field: &str, path: &str, arguments: &Arguments, report: &mut Report) -> Option<Condition> {
    let text = filled(node, field, path, arguments, report).filter(|text| !text.trim().is_empty())?;
    match Condition::parse(&text) {
        Ok(condition) => Some(condition),
        Err(why) => {
            report.error(node.get(field).unwrap_or(node), format!("{path}.{field}"), why);
            None
        }
    }
}
