//! Cases: stories as data, and how they are told to any [`Stand`]. What every engine's cases have is here; what an engine adds to
//! the format is its [`Format`], and how it is compared its [`Dialect`]. The format is described beside the cases, in
//! `tests/cases/README.md`.

pub mod expect;
mod outputs;
mod run;
mod stand;

pub use expect::{at, matches, merge, remove, strings};
pub use keelway_cases::{
    Case, CaseError, Details as EventDetails, Entrance, Expected, Format, Only, Outgoing, Step, cases, folder, parsed, read,
};
pub use outputs::line;
pub use run::{Failure, Telling, go_on, project, run, run_watched};
pub use stand::{Answer, Said, Stand};

use serde_json::Value;

/// What is known of an engine's cases besides their format.
pub trait Dialect: Format {
    /// What cases leave out of the types of events.
    const PREFIX: &'static str = keelway_domain::event::PREFIX;

    /// Whether the rule that feeds the engine's queue takes an event.
    fn takes(source: &str, detail_type: &str) -> bool;
    /// What is true of every event the engine sends.
    ///
    /// # Errors
    /// What is not.
    fn sound(telling: &Telling<'_, Self>, event: &Value) -> Result<(), String>;
    /// Takes a word of an expected event's line after its type; `false`: it means nothing special here.
    fn word(_details: &mut EventDetails, _word: &str) -> bool {
        false
    }
    /// An event in words, after its type and context.
    fn describe(event: &Value) -> String {
        let word = |field: &str| event["data"][field].as_str().unwrap_or("-").to_owned();
        format!("({}/{}) on {} {}", word("result"), word("status"), Self::stream(event), word("message"))
    }
    /// Where nothing else orders events, those of one stream still come in order. The stream an event belongs to.
    fn stream(event: &Value) -> String {
        event["shkeptncontext"].to_string()
    }
}

/// How an engine's cases are told to a stand.
pub trait Tells<S: Stand>: Dialect {
    /// Puts in what is there before the first step.
    ///
    /// # Errors
    /// What was refused.
    fn set_up(_telling: &mut Telling<'_, Self>, _stand: &mut S) -> Result<(), String> {
        Ok(())
    }
    /// A step begins.
    fn before(_step: &Step<Self>, _stand: &mut S) {}
    /// Puts in a step's own input.
    ///
    /// # Errors
    /// Why that cannot be done.
    fn put_in(telling: &mut Telling<'_, Self>, step: &Step<Self>, stand: &mut S) -> Result<Answer, String>;
    /// Changes an event that a step is about to send.
    ///
    /// # Errors
    /// Why that cannot be done.
    fn adapt(_telling: &Telling<'_, Self>, _step: &Step<Self>, event: Value) -> Result<Value, String> {
        Ok(event)
    }
    /// Where a step's event comes in.
    fn entrance(_step: &Step<Self>) -> Entrance {
        Entrance::Bus
    }
    /// Compares what there is after a step with what the case says.
    ///
    /// # Errors
    /// The first difference.
    fn compare(telling: &Telling<'_, Self>, step: &Step<Self>, stand: &mut S) -> Result<(), String>;
}
