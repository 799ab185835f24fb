//! The deployers that Keelway runs itself, on the in-memory world and a strict double of Lambda, ECS and CodeBuild. Their tests and the bench are
//! on it.

#![expect(missing_docs, reason = "the names of a stand's members say what they are")]

pub mod lambda;
pub mod stand;
