//! What promotions' cases state besides events and answers: calls, pull requests, pipelines.

use super::host::{Call, GitHost, Verb};
use super::stand::PromotionsStand;
use super::{Promotes, namespace};
use crate::case::{Step, Telling, matches};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// Compares calls, pull requests and pipelines after a step.
pub(super) fn after(
    telling: &Telling<'_, Promotes>,
    step: &Step<Promotes>,
    stand: &mut impl PromotionsStand,
) -> Result<(), String> {
    let own = &step.own;
    same_ids(&stand.host().calls())?;
    let (mut fresh, reads) = stand.host().fresh();
    let broken = stand.host().broken();
    if !broken.is_empty() {
        return Err(broken.join("\n  "));
    }
    let mut expected: Vec<_> = own.calls.iter().map(super::Expected::parts).collect();
    if !stand.ordered() {
        fresh.sort_by_key(Call::line);
        expected.sort_by_key(|(line, _)| *line);
    }
    calls(&expected, &fresh)?;
    if own.reads.is_some_and(|most| reads > most) {
        return Err(format!("the host was asked {reads} times, expected {:?} at most", own.reads));
    }
    for (number, expected) in &own.requests {
        let got = stand.host().request(*number).ok_or_else(|| format!("there is no pull request {number}"))?;
        let expected = if expected.is_string() { json!({"state": expected}) } else { expected.clone() };
        matches(&got, &expected, &format!("pull request {number}"))?;
    }
    for (alias, expected) in &step.state {
        let Some(got) = stand.pipeline(&namespace(telling), alias) else { continue };
        pipeline(got.as_ref(), expected).map_err(|e| format!("state of {alias}: {e}; it is {got:?}"))?;
    }
    Ok(())
}

/// The receiver knows a promotion again by its id, however often it is told.
fn same_ids(calls: &[Call]) -> Result<(), String> {
    let mut ids: HashMap<&str, (&str, &str, &str, u64)> = HashMap::new();
    // A call that nobody got has no id.
    for call in calls.iter().filter(|call| call.verb == Verb::Tell && !call.id.is_empty()) {
        let of = (call.pipeline.as_str(), call.environment.as_str(), call.revision.as_str(), call.run);
        if *ids.entry(&call.id).or_insert(of) != of {
            return Err(format!("two promotions have one id: {call:?}"));
        }
        let other = calls.iter().find(|other| {
            let what = (other.pipeline.as_str(), other.environment.as_str(), other.revision.as_str(), other.run);
            other.verb == Verb::Tell
                && what == of
                && !other.id.is_empty()
                && other.id != call.id
                && call.details["again"] == other.details["again"]
        });
        if let Some(other) = other {
            return Err(format!("one promotion has two ids: {call:?} {other:?}"));
        }
    }
    Ok(())
}

fn calls(expected: &[(&str, Map<String, Value>)], got: &[Call]) -> Result<(), String> {
    let lines: Vec<String> = got.iter().map(Call::line).collect();
    let wanted: Vec<&str> = expected.iter().map(|(line, _)| *line).collect();
    if lines != wanted {
        return Err(format!("calls are {lines:?}, expected {wanted:?}"));
    }
    for (call, (line, details)) in got.iter().zip(expected) {
        matches(&call.details, &Value::Object(details.clone()), line)?;
    }
    Ok(())
}

fn pipeline(got: Option<&Value>, expected: &Value) -> Result<(), String> {
    let Some(got) = got else {
        return if expected == "absent" { Ok(()) } else { Err("there is none".into()) };
    };
    if let Some(reason) = expected.as_str() {
        let reason = if reason == "ready" { "" } else { reason };
        return matches(&got["reason"], &reason.into(), "reason");
    }
    for (name, value) in expected.as_object().into_iter().flatten() {
        if name != "environments" {
            matches(got.get(name).unwrap_or(&Value::Null), value, name)?;
            continue;
        }
        for (environment, value) in value.as_object().into_iter().flatten() {
            let path = format!("environments.{environment}");
            let found = &got["environments"][environment];
            match value.as_str() {
                Some("absent") if found.is_null() => {}
                Some(phase) => matches(&found["phase"], &phase.into(), &path)?,
                None => matches(found, value, &path)?,
            }
        }
    }
    Ok(())
}

/// What is true of every event of promotions.
pub(super) fn sound(telling: &Telling<'_, Promotes>, event: &Value) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("{what}: {event}"));
    let data = &event["data"];
    for field in ["project", "pipeline", "environment", "revision"] {
        if data[field].as_str().unwrap_or_default().is_empty() {
            return wrong(&format!("data.{field} is missing"));
        }
    }
    if !event["type"].as_str().unwrap_or_default().starts_with(super::PREFIX) || event["source"] != "keelway-promotions" {
        return wrong("it is no event of promotions");
    }
    if data["project"] != namespace(telling) || data["run"].as_u64().unwrap_or_default() == 0 {
        return wrong("its project or its run is another one");
    }
    Ok(())
}
