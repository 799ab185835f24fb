//! What Keptn serves beside executions: putting shipyards in force, deleting services and projects, checking a client's event,
//! requesting an evaluation, and the integrations with what they log. The API calls it; no message leads here.

mod deletion;
pub mod evaluation;
pub mod integrations;
pub mod keys;
pub mod logs;
pub mod preflight;
mod shares;
mod shipyards;

pub use deletion::Deleted;
