//! The deployers that Keelway runs itself, in the in-memory world and with a strict double of Lambda, ECS and CodeBuild. Their own
//! tests and the bench use it.

#![expect(missing_docs, reason = "the names of a stand's members say what they are")]

pub mod lambda;
pub mod stand;
