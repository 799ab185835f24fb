//! The observer against a Kubernetes API in this process: what it reads, what it reports, whom it wakes.

mod api;
mod border;
mod failures;
mod guarded;
mod left;
mod schedule;
mod stand;
mod steady;
