//! The seeded simulation: workers handle messages one request at a time, in an order the seed decides, while everything goes wrong
//! that may. A [`Scenario`] says which engine they run, what others do meanwhile, and what must hold after every request and at
//! rest. The scheduler and its troubles are the same for every engine.

mod bounds;
mod decoded;
mod fates;
mod paid;
mod past;
mod publications;
mod repair;
mod scenario;
mod scheduler;
mod seeds;
mod stats;
mod troubles;

pub use decoded::Decoded;
pub use fates::COPIES;
pub use paid::paid;
pub use past::{PAST, Standing, Told, standing};
pub use repair::{pages, swept};
pub use scenario::{Hands, OneKind, Scenario};
pub use scheduler::{Outcome, Sim, simulate};
pub use seeds::{hold, number, one, seeds, survey};
pub use stats::{Stats, Violation};
pub use troubles::Troubles;
