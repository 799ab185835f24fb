//! The cases of an engine that are told in memory: all of them, or one.

use keelway_world::case::{Case, Dialect, Only, cases};

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
