//! Pipelines, their approvals, clusters and git hosts.

pub mod applied;
pub mod approvals;
mod evaluated;
mod failing;
mod forged;
mod limits;
mod observations;
mod registry;
mod separate;
mod webhooks;
