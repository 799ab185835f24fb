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

/// The simulations make and drop small things all the time: they take a quarter to a third less CPU time with it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
