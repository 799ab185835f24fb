//! The entry point: decides an input of a deployment config.

use super::advance::Step;
use super::commands;
use super::facts::{Applied, Command, Decision, Facts, Input};
use super::state::Config;

/// Decides an input. Pure and total. Every input ends with an evaluation of the whole config.
pub fn decide(x: &Config, input: Input<'_>, facts: &Facts<'_>) -> Decision {
    match input {
        Input::Evaluate => Step::new(x, facts).advance(),
        // Replaced, or too early: in either case the effects that are owed are performed when the message settles.
        Input::Wake(at) if x.wake != Some(at) || facts.now < at => Decision::Settle,
        Input::Wake(_) => Step::new(x, facts).advance(),
        Input::Alarm(name, on, at) => {
            let mut step = Step::new(x, facts);
            step.alarm(name, on, at);
            step.advance()
        }
        Input::Command(command, note) => commands::obey(x, command, note, facts),
        Input::Saw(sight) => {
            let mut step = Step::new(x, facts);
            step.saw(sight);
            step.advance()
        }
        Input::Over(triggered) => {
            let mut step = Step::new(x, facts);
            step.give_up_task(triggered);
            step.advance()
        }
    }
}

/// The version whose snapshot the decision needs, if any: the one to roll back to.
pub fn target(x: &Config, input: Input<'_>, applied: Option<&Applied>) -> Option<u64> {
    let complete = || x.active.as_ref().filter(|active| active.n < x.latest).or(x.previous.as_ref()).map(|version| version.n);
    match input {
        Input::Command(Command::Rollback(back), _) => {
            // The last deployment may have the same content as the active version.
            let present = x.last.as_ref().map(|last| last.content.template);
            let differs = |version: &&super::state::Version| Some(version.content) != present;
            back.release.or_else(|| [&x.active, &x.previous].into_iter().flatten().find(differs).map(|version| version.n))
        }
        _ => {
            // The decision may find that the version has failed and must be rolled back.
            applied?.definition.auto_rollback.as_ref()?;
            let last = x.last.as_ref()?;
            let may_fail = last.claim.is_some() && !last.status.is_final();
            let undoes = may_fail || !last.undo.is_empty() || matches!(input, Input::Alarm(_, true, _));
            undoes.then(complete)?
        }
    }
}
