//! Manifests, events and bodies as text: what is read, refused and shown.

mod border;
mod cloudevent;
mod common;
mod deployment;
mod deployment_additions_refused;
mod deployment_refused;
mod everything;
mod examples;
mod manifest;
mod migrate;
mod observation;
mod pipeline;
mod real_shipyards;
mod refusals;
mod rendered;
mod schedule;
mod schemas;
mod shipyard;
mod surprises;
mod templates;
mod versions;
mod weave;
mod webhook;
mod windows;
