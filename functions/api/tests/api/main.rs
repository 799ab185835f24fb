//! The API as its clients see it, on the in-memory world: no AWS, no sockets.

mod access;
mod apply;
mod deployments;
mod fence;
mod fenced;
mod forge;
mod generated;
mod keptn;
mod overview;
mod pipelines;
#[path = "../../../../tests/keptn/recorded.rs"]
mod recorded;
mod stand;
mod sweeps;
mod webhooks;
