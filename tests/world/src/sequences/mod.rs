//! The cases of the sequences engine: what they add to the format, and how they are told in the world.

mod compare;
mod inputs;
mod stand;
mod world;

pub use keelway_cases::sequences::{Evaluate, Given, Keptn, Lane, Listed, Outage, Own, schedule, shipyard};
pub use stand::{LaneView, SequencesStand};
pub use world::SequencesWorld;

use crate::case::{Answer, CaseError, Dialect, Entrance, Said, Step, Telling, Tells};
use crate::tested::Tested;
use crate::worker::Worker;
use keelway_domain::event::{APPROVAL_SOURCE, CloudEvent, PREFIX, SOURCE};
use keelway_domain::ids::context_of;
use keelway_domain::time::Timestamp;
use keelway_engine::item::Key;
use keelway_engine::keptn::preflight::Preflight;
use keelway_engine::ports::{PortError, Ports};
use keelway_engine::protocol::Handled;
use keelway_engine::refusal::Refusal;
use keelway_engine::register;
use keelway_engine::schedules;
use keelway_engine::sequences::commands::DECISION_SOURCE;
use keelway_engine::sequences::{Sequences, keys};
use serde_json::{Value, json};

/// A case of sequences.
pub type Case = crate::case::Case<Keptn>;

/// All cases of sequences.
///
/// # Errors
/// The first that cannot be read.
pub fn cases() -> Result<Vec<Case>, CaseError> {
    crate::case::cases()
}

/// Whether the rule that feeds the engine's queue takes an event: Keptn's types, but not our own publications.
pub fn takes(source: &str, detail_type: &str) -> bool {
    detail_type.starts_with("sh.keptn.") && source != SOURCE && source != APPROVAL_SOURCE
}

/// An executor's answer over HTTP, as the API's function handles it.
///
/// # Errors
/// It has to be sent again.
pub async fn answered<P: Ports>(engine: &Sequences<P>, event: &CloudEvent) -> Result<Result<Handled, Refusal>, PortError> {
    if engine.take_unread(event).await {
        return Ok(Ok(Handled::Committed));
    }
    match engine.preflight(event).await {
        Ok(Preflight::Answer { known, read, .. }) => engine.take(event, (Some(read), known)).await.map(Ok),
        Ok(_) => Ok(Err(Refusal::Invalid { field: "type", message: "it answers no task".into() })),
        Err(Refusal::Port(error)) => Err(error),
        Err(refusal) => Ok(Err(refusal)),
    }
}

impl Tested for Sequences<Worker> {
    fn remembering(self, other: &Self) -> Self {
        Self::remembering(self, other)
    }
    fn remembers_what(&self, other: &Self) -> bool {
        Self::remembers_what(self, other)
    }
    fn takes(source: &str, detail_type: &str) -> bool {
        takes(source, detail_type)
    }
    fn is_state(key: &Key) -> bool {
        [keys::PARTITIONS, schedules::keys::PARTITIONS].iter().any(|kept| register::is_state(kept, key))
    }
}

impl Dialect for Keptn {
    fn takes(source: &str, detail_type: &str) -> bool {
        takes(source, detail_type)
    }
    fn sound(telling: &Telling<'_, Self>, event: &Value) -> Result<(), String> {
        compare::sound(telling, event)
    }
    /// A context and a lane.
    fn stream(event: &Value) -> String {
        let text = |field: &str| event["data"][field].as_str().unwrap_or_default();
        format!("{} {}/{}/{}", event["shkeptncontext"], text("project"), text("stage"), text("service"))
    }
}

impl<S: SequencesStand> Tells<S> for Keptn {
    fn set_up(telling: &mut Telling<'_, Self>, stand: &mut S) -> Result<(), String> {
        let given = &telling.case.given;
        let one = given.shipyard.iter().map(|name| ("p", name.as_str()));
        let many = given.shipyards.iter().map(|(project, name)| (project.as_str(), name.as_str()));
        for (project, name) in one.chain(many) {
            let answer = stand.apply(&telling.project(project), &text(name)?);
            if answer.said.is_some_and(|said| !matches!(said, Said::Status(200..=299))) {
                return Err(format!("shipyard {name} was refused: {}", answer.problem));
            }
        }
        Ok(())
    }
    fn put_in(telling: &mut Telling<'_, Self>, step: &Step<Self>, stand: &mut S) -> Result<Answer, String> {
        let own = &step.own;
        let project = telling.project(own.project.as_deref().unwrap_or("p"));
        if let Some(name) = &own.apply {
            let mut text = text(name)?;
            for (from, to) in &own.change {
                if !text.contains(from.as_str()) {
                    return Err(format!("{name} does not contain {from:?}"));
                }
                text = text.replace(from.as_str(), to);
            }
            return Ok(stand.apply(&project, &text));
        }
        if let Some(name) = &own.schedule {
            for (alias, made) in &own.makes {
                let (at, service) = made.split_once('/').ok_or_else(|| format!("{made:?} is not <time>/<service>"))?;
                let at = Timestamp::parse(at).ok_or_else(|| format!("{at:?} is no time"))?;
                let identity = format!("{project}/{name}/{}/{service}", at.0);
                telling.contexts.insert(alias.clone(), context_of("keelway-schedule", &identity).to_string());
            }
            let mut text = schedule(name).map_err(|e| e.to_string())?;
            for (from, to) in &own.change {
                text = text.replace(from.as_str(), to);
            }
            return Ok(stand.schedule(&project, &text));
        }
        if let Some(name) = &own.unschedule {
            return Ok(stand.unschedule(&project, name));
        }
        let context = telling.context(step.about());
        if let Some(control) = &own.control {
            return Ok(stand.control(&project, &context, own.stage.as_deref(), control));
        }
        if let Some(reason) = &own.overridden {
            return Ok(stand.override_windows(&project, &context, own.stage.as_deref(), reason));
        }
        if own.retry.is_some() {
            return Ok(stand.retry(&project, &context, own.stage.as_deref(), own.from.as_deref()));
        }
        if let Some(outage) = own.outage {
            stand.outage(outage == Outage::Begins);
            return Ok(Answer::unknown());
        }
        if let Some(stage) = &own.evaluate {
            let id = telling.fresh_id();
            let context = context_of(DECISION_SOURCE, &id).to_string();
            telling.contexts.insert(step.about().to_owned(), context.clone());
            let ty = format!("{PREFIX}{stage}.evaluation.triggered");
            telling.inputs.push(json!({"id": id, "type": ty, "shkeptncontext": context}));
            let place = (project.as_str(), stage.as_str(), own.service.as_deref().unwrap_or("svc"));
            return Ok(stand.evaluate(place, (&id, &context), &own.window));
        }
        if own.approve.is_some() || own.decline.is_some() {
            let approval = inputs::answered(telling, step, "approval")?.clone();
            return Ok(stand.decide(&approval, own.approve == Some(true)));
        }
        let event = inputs::event(telling, step, stand.now())?;
        if own.anonymous {
            let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
            telling.contexts.insert(step.about().to_owned(), context_of(&text("source"), &text("id")).to_string());
        }
        Ok(telling.send(step, event, own.at, stand))
    }
    fn adapt(telling: &Telling<'_, Self>, step: &Step<Self>, event: Value) -> Result<Value, String> {
        inputs::adapted(telling, step, event)
    }
    fn entrance(step: &Step<Self>) -> Entrance {
        step.own.at
    }
    fn compare(telling: &Telling<'_, Self>, step: &Step<Self>, stand: &mut S) -> Result<(), String> {
        compare::after(telling, step, stand)
    }
}

fn text(name: &str) -> Result<String, String> {
    shipyard(name).map_err(|e| e.to_string())
}
