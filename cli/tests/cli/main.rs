//! The `keelway` command as a person runs it: real processes against a stand-in of the API.

mod access;
mod again;
mod asked;
mod back;
mod commands;
mod completion;
mod creating;
mod deployer;
mod deployments;
mod evaluation;
mod events;
mod executor;
mod manifests;
mod operations;
mod pipelines;
mod revisions;
mod screens;
mod status;
mod steering;
mod support;
mod third_act;
mod webhooks;
