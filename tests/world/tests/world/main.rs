//! Tests of the world itself. They are here because a library with tests is compiled twice.

mod expect;
mod metrics;
mod staged;
