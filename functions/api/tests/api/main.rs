//! The API as its clients see it, on the in-memory world: no AWS, no sockets.

mod answers;
mod apply;
mod approvals;
mod commands;
mod deployers;
mod deployments;
mod documented;
mod environments;
mod forge;
mod forged;
mod gateway;
mod limits;
mod observations;
mod pipelines;
mod raw;
mod reads;
mod registry;
mod repeated;
mod resources;
mod rollbacks;
mod stand;
mod texts;
mod triggered;
mod waits;
mod webhooks;
