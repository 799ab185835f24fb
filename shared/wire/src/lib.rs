//! CloudEvents, manifests, HTTP bodies and what AWS says: what crosses a boundary as text or JSON, to and from the domain's types.
//!
//! The command-line client needs this crate and nothing below it. No async, no clock, no requests: the time comes in as an
//! argument, and whatever is refused says which field, why, and what to write instead.

pub mod aws;
pub mod cloudevent;
pub mod evaluation;
pub mod http;
pub mod manifest;
pub mod signature;

/// What is reported about targets: the engine reads it too, from the bus.
pub use keelway_domain::promotions::report as observation;
