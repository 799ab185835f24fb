//! The cases of an engine that are told in memory: all of them, or one.

use keelway_world::World;
use keelway_world::case::{Case, Dialect, Only, Stand, Tells, cases, run};
use keelway_world::story::Mode;

/// Names the case that is run alone.
const ONE: &str = "KEELWAY_CASE";

/// Whether one case is run alone: then it need not show everything.
pub fn is_one() -> bool {
    std::env::var(ONE).is_ok()
}

/// All cases but those that only a deployed stack can show, or the one that is run alone.
///
/// # Panics
/// When the cases cannot be read.
pub fn all<D: Dialect>() -> Vec<Case<D>> {
    let wanted = std::env::var(ONE).ok();
    let mut cases = cases().unwrap_or_else(|error| panic!("{error}"));
    cases.retain(|case: &Case<D>| case.only != Some(Only::Cloud) && wanted.as_ref().is_none_or(|id| *id == case.id));
    cases
}

/// The same with their ids, as [`crate::contracts::Contracts`] takes them.
pub fn stories<D: Dialect>() -> Vec<(String, Case<D>)> {
    all().into_iter().map(|case: Case<D>| (case.id.clone(), case)).collect()
}

/// Tells a case; a case that is run alone leaves a trace of every request.
///
/// # Errors
/// The first step that is not as the case says, and the case's title.
pub fn tell<D: Tells<S>, S: Stand>(case: &Case<D>, mode: Mode, (world, stand): (&World, &mut S)) -> Result<(), String> {
    if is_one() && mode == Mode::Clean {
        world.core().trace = Some(vec![]);
    }
    run(case, stand).map_err(|failure| format!("{failure}\n  ({})", case.title))
}
