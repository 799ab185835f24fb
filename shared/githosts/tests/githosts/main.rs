//! The clients of git hosts: request by request, against the strict host, and against a real Gitea.

mod gitea;
mod patient;
mod recorded;
mod strict;
mod wire;

use keelway_outgoing::{Guard, Hosts};

/// Reaches servers on this machine.
fn here() -> Guard {
    Guard::new(Hosts::default()).with_loopback(true)
}
