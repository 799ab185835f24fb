//! Deployments to Lambda aliases, and by tasks and builds, with everything that the engine and the function do, on the in-memory
//! world and a strict double of Lambda.

mod analysis;
mod border;
mod crashes;
mod drift;
mod hooks;
mod people;
mod started;
mod strategies;
mod wrapped;
