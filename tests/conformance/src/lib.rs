//! The conformance suite's own machinery: cases over the in-memory world, the seeded simulation, planted faults.

mod bent;
pub mod border;
pub mod chosen;
pub mod contracts;
pub mod counter;
mod definitions;
pub mod delivery;
pub mod deployments;
mod engines;
pub mod evaluations;
pub mod held;
pub mod plants;
pub mod promotions;
pub mod sequences;
pub mod sim;
pub mod stand;
pub mod webhooks;

/// The simulations make and drop small things all the time: they take a quarter to a third less CPU time with it. It is here
/// because what it calls for each allocation is compiled with this crate, and the executable of the tests is not optimised. Whoever
/// else uses this crate has it, too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
