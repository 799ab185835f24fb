//! The operations of Keptn beside executions: apply a shipyard, delete services and projects, check the event of a client, request
//! an evaluation, and register integrations with their logs. Only the API calls them.

mod deletion;
pub mod evaluation;
pub mod integrations;
pub mod keys;
pub mod logs;
pub mod preflight;
mod shares;
mod shipyards;

pub use deletion::Deleted;
