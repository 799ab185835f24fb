//! The evaluations of a service in a stage: which are under way, and what the last ones came to.
//!
//! The evaluations of one service share a state, because each is compared with those before it: the commit that ends one makes it
//! the next one's history. [`decide`] takes an input; the judgement itself is [`crate::evaluation`].

mod announce;
mod answer;
mod decide;
mod state;

pub use announce::{GET_SLI, INVALIDATED, SOURCE};
pub use answer::{Answer, Asker, MOST_VIOLATED, Violation};
pub use decide::{Decision, Facts, Found, Input, Lost, Rules, decide};
pub use state::{Asked, Ended, KEPT, MOST_OPEN, Open, Order, Past, Phase, Record, Service, Told};

#[cfg(test)]
mod tests;
