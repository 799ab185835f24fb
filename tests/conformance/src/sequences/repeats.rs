//! What is done again: retries, which people ask for, and the rounds of a remediation, whose actions the engine chooses.

use super::check::{decode, project};
use super::plan::REMEDIATION;
use keelway_domain::event::TaskResult;
use keelway_domain::ids::{ExecutionId, RecordId, event_id};
use keelway_domain::sequences::{Action, Class, End, Execution, GET_ACTION, ProblemType, Remediation};
use keelway_engine::item::{Item, Key};
use keelway_engine::keys::record_id;
use keelway_engine::resources;
use keelway_engine::sequences::{Address, keys, remediation};
use keelway_world::bus::BusTwin;
use keelway_world::table::Table;
use serde_json::Value;
use std::collections::HashMap;

/// The remediations of the service: so many actions, whatever the problem is.
pub(super) fn actions(n: usize) -> Item {
    let action =
        |n: usize| Action { action: "act".into(), name: format!("action {}", n + 1), description: String::new(), value: n.into() };
    let all = ProblemType { problem_type: "default".into(), actions: (0..n).map(action).collect() };
    let stored = remediation::form(remediation::REMEDIATION, &Remediation { remediations: vec![all] });
    let text = stored.into_values().next().unwrap_or_default();
    // The service has none of its own, so that of the stage counts.
    Item::new(resources::keys::resource(&project(), "dev", remediation::REMEDIATION)).with("j", text)
}

/// The task that a retry began with; of all others the first one. The payload of the first task may be in the record of an end.
fn began_with(x: &Execution) -> u16 {
    let record = record_id(&x.payload).filter(|id| x.retry_of().is_some() && id.number != RecordId::END);
    record.map_or(0, |id| id.number)
}

/// What the watcher remembers of retries.
#[derive(Default)]
pub struct Repeats(HashMap<(String, ExecutionId), ExecutionId>);

impl Repeats {
    /// An execution is there: at most one repeats another, which has ended, with the same definition and the results of what it
    /// does not repeat.
    pub fn born(&mut self, key: &Key, x: &Execution, table: &Table) -> Result<(), String> {
        let Some(of) = x.retry_of() else { return Ok(()) };
        let old = table.peek(&Key::new(key.pk.as_str(), format!("X#{of}"))).ok_or("a retry of nothing")?;
        let old = decode(old)?;
        let same = |x: &Execution| (x.stage.clone(), x.sequence.clone(), x.service.clone(), x.revision.clone());
        let began = old.outcome.is_some_and(|outcome| outcome.end != End::NeverStarted);
        if !began || same(&old) != same(x) {
            return Err(format!("{x:?} repeats what it should not: {old:?}"));
        }
        let kept = usize::from(began_with(x));
        if x.results.get(..kept) != old.results.get(..kept) {
            return Err(format!("{x:?} begins with other results than {old:?} had"));
        }
        match self.0.insert((key.pk.clone(), of), x.id) {
            Some(before) if before != x.id => Err(format!("{of} is repeated twice, by {before} and {}", x.id)),
            _ => Ok(()),
        }
    }
}

/// Every retry that a person was promised is there.
pub(super) fn retried(promised: &[Address], table: &Table) -> Result<(), String> {
    let lost = promised.iter().find(|to| table.peek(&keys::execution(to)).is_none());
    lost.map_or(Ok(()), |to| Err(format!("a retry was accepted, and nothing came of it: {to:?}")))
}

/// The number of a round, from 1. A retry is of the same round as what it repeats.
fn round(x: &Execution, table: &Table) -> usize {
    let parent = x.parent.and_then(|id| decode(table.peek(&keys::execution(&Address { execution: id, ..Address::of(x) }))?).ok());
    match parent.filter(|parent| parent.sequence == REMEDIATION) {
        Some(parent) => round(&parent, table) + usize::from(x.class == Class::FollowUp),
        None => 1,
    }
}

/// Each round was answered once, with the action that is next, and the one after the last action ends them.
pub(super) fn rounds(x: &Execution, actions: usize, table: &Table, bus: &BusTwin) -> Result<(), String> {
    if x.sequence != REMEDIATION || x.began.is_none() {
        return Ok(());
    }
    let answers = |kind: &str| {
        let id = event_id(x.id, &format!("{GET_ACTION}-0-{kind}")).to_string();
        bus.firsts().find(|publication| publication.id == id).map(|publication| publication.entry.detail.clone())
    };
    let [triggered, started, finished] = ["triggered", "started", "finished"].map(answers);
    let chooses = began_with(x) == 0;
    let told = [&triggered, &started, &finished].map(Option::is_some);
    if told != [chooses; 3] {
        return Err(format!("get-action of {} was told {told:?}: {x:?}", x.id));
    }
    let Some(finished) = finished else { return Ok(()) };
    let event: Value = serde_json::from_str(&finished).map_err(|e| e.to_string())?;
    let (round, data) = (round(x, table), &event["data"]);
    let chosen = (data["get-action"]["actionIndex"].as_u64(), data["action"]["name"].as_str().map(str::to_owned));
    let expected = if round <= actions { (Some(round as u64), Some(format!("action {round}"))) } else { (None, None) };
    let passed = TaskResult::of(data["result"].as_str()) == TaskResult::Pass;
    if chosen != expected || passed != (round <= actions) || round > actions + 1 {
        return Err(format!("round {round} of {actions} chose {chosen:?}: {finished}"));
    }
    Ok(())
}
