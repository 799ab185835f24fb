//! Evaluations on metrics: what is kept for them.

pub mod sources;
