//! The entry point: decides an input of a pipeline.

use super::advance::Step;
use super::facts::{Decision, Facts, Input};
use super::state::Pipeline;
use super::{attempts, commands, evaluation};

/// Decides an input. Pure and total. Every input ends with an evaluation of the whole pipeline.
pub fn decide(x: &Pipeline, input: Input<'_>, facts: &Facts<'_>) -> Decision {
    match input {
        Input::Evaluate => Step::new(x, facts).advance(),
        // Replaced, or too early: in either case the effects that are owed are performed when the message settles.
        Input::Wake(at) if x.wake != Some(at) || facts.now < at => Decision::Settle,
        Input::Wake(_) => Step::new(x, facts).advance(),
        Input::Begin(attempt) => attempts::begin(x, attempt, facts),
        Input::Beat(attempt) => attempts::beat(x, attempt, facts),
        Input::Ended(attempt, outcome) => attempts::ended(x, attempt, outcome, facts),
        Input::Seen(attempt, seen) => attempts::seen(x, attempt, seen, facts),
        Input::Closed(attempt, how) => attempts::closed(x, attempt, how, facts),
        Input::Evaluated(environment, id, answer) => evaluation::answered(x, environment, id, answer, facts),
        Input::Command(command, note) => commands::obey(x, command, note, facts),
    }
}
