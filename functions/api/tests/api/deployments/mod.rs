//! Deployment configs, their versions, deployers and artifact sources.

mod configs;
mod deployers;
mod pushes;
mod rollbacks;
pub mod versions;
