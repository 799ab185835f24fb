//! Manifests, events and bodies as text: what is read, refused and shown.

mod analysis;
mod artifacts;
mod border;
mod cloudevent;
mod common;
mod deployment;
mod evaluation;
mod everything;
mod examples;
mod manifest;
mod metrics_source;
mod migrate;
mod observation;
mod pipeline;
mod real_shipyards;
mod refusals;
mod rendered;
mod schedule;
mod schemas;
mod surprises;
mod templates;
mod versions;
mod weave;
mod webhook;
mod windows;
