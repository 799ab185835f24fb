//! The protocol: handling a message loads what it needs, decides with the pure core, records, commits one item, settles what the
//! committed state owes, and acknowledges last. All requests go through the [`ports`], so that the same code runs on AWS and in the
//! in-memory world of the tests.

pub mod access;
pub mod aliases;
pub mod checks;
pub mod deployers;
pub mod deployments;
mod dispatch;
mod entries;
pub mod evaluations;
pub mod item;
mod json;
pub mod keptn;
pub mod keys;
pub mod kinds;
pub mod metrics;
mod namespaces;
pub mod partition;
pub mod ports;
pub mod projects;
pub mod promotions;
pub mod protocol;
pub mod refusal;
pub mod register;
pub mod registry;
pub mod remembered;
pub mod resources;
pub mod runners;
pub mod schedules;
pub mod secrets;
pub mod sequences;
pub mod table;
pub mod trouble;
pub mod views;
pub mod webhooks;

pub use projects::border;
