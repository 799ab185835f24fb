//! Keptn's routes: projects, events, sequences, resources, executors.

mod administration;
mod again;
mod answers;
mod batch;
mod clients;
mod commands;
mod environments;
mod evaluations;
mod follow_ups;
mod freeze;
mod gateway;
mod integrations;
mod long;
mod plan;
mod reads;
mod resources;
mod revisions;
mod schedules;
mod triggered;
mod waits;
