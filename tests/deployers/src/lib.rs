//! The function that carries out deployments, with the engine, on the in-memory world and a strict double of Lambda, ECS and CodeBuild.
//! Its own tests and the bench are on it.

#![expect(missing_docs, reason = "the names of a stand's members say what they are")]

pub mod lambda;
pub mod stand;
