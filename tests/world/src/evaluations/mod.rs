//! The cases of the evaluations engine: what they add to the format, and how they are told in the world.

pub mod project;
mod sources;
mod view;
mod world;

pub use keelway_cases::evaluations::{Evaluates, FILES, Given, Own};
pub use project::Task;
pub use sources::{Asked, Engine, Mood, Shared, Sources, declared, engine};
pub use view::view;
pub use world::EvaluationsWorld;

use crate::case::{Dialect, Telling};
use crate::tested::Tested;
use crate::worker::Worker;
use keelway_domain::evaluations::{GET_SLI, INVALIDATED, SOURCE};
use keelway_domain::event::{CANCELLED, SOURCE as SEQUENCES};
use keelway_engine::evaluations::{CONFIGURE, Evaluations, keys};
use keelway_engine::item::Key;
use keelway_engine::register;
use serde_json::Value;

/// A case of evaluations.
pub type Case = crate::case::Case<Evaluates>;

/// Whether the rule that feeds the engine's queue takes an event.
pub fn takes(source: &str, ty: &str) -> bool {
    let of_tasks = ["sh.keptn.event.evaluation.triggered", CANCELLED];
    let answers = ["started", "finished"].iter().any(|kind| ty == format!("sh.keptn.event.{GET_SLI}.{kind}"));
    match ty {
        _ if source == SOURCE => false,
        ty if of_tasks.contains(&ty) => source == SEQUENCES,
        ty => answers || ty == INVALIDATED || ty == CONFIGURE,
    }
}

impl Tested for Evaluations<Worker, Sources> {
    fn takes(source: &str, detail_type: &str) -> bool {
        takes(source, detail_type)
    }
    /// Those of services, and those that have ended.
    fn is_state(key: &Key) -> bool {
        register::is_state(keys::PARTITIONS, key)
    }
}

impl Dialect for Evaluates {
    fn takes(source: &str, detail_type: &str) -> bool {
        takes(source, detail_type)
    }
    fn sound(telling: &Telling<'_, Self>, event: &Value) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("{what}: {event}"));
        if event["source"] != SOURCE {
            return wrong("it is no event of evaluations");
        }
        if event["data"]["project"] != telling.project("p") {
            return wrong("it is about another project");
        }
        let answer = event["type"].as_str().is_some_and(|ty| !ty.ends_with(".triggered"));
        let answered = telling.inputs.iter().any(|input| input["id"] == event["triggeredid"]);
        if answer == answered { Ok(()) } else { wrong("what it answers was never asked, or it answers and asks") }
    }
}
