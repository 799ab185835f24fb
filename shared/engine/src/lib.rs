//! The protocol: every message loads what it needs, decides with the pure core, records, commits one item, settles what the
//! committed state owes, and is acknowledged last. All of it over the [`ports`], so that the same code runs on AWS and in the
//! in-memory world of the tests.

pub mod item;
pub mod keys;
pub mod ports;
pub mod protocol;
pub mod sequences;
pub mod table;
