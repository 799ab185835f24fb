//! Cases: stories as data, and how they are told to any [`Stand`]. The format is described beside the cases, in
//! `tests/cases/README.md`.

mod expect;
mod format;
mod inputs;
mod outputs;
mod run;
mod stand;

pub use expect::{matches, strings};
pub use format::{Case, CaseError, Control, Only, Outgoing, Step, cases, shipyard};
pub use run::{Failure, run};
pub use stand::{Answer, Entrance, LaneView, Said, Stand};
