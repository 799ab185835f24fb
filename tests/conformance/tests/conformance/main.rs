//! The engines in the in-memory world. What every engine is held to, `suite` says; `tests/README.md` says what is held where.

mod attributes;
mod border;
mod counter;
mod dead_letters;
mod declared;
mod delivery;
mod deployments;
mod evaluations;
mod mutants;
mod promotions;
mod register;
mod sequences;
mod store;
mod suite;
mod webhooks;
mod works;
