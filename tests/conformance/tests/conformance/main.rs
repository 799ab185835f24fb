//! The engines in the in-memory world: cases, faults, simulations, planted faults, costs.

mod attributes;
mod border;
mod border_plants;
mod cases;
mod contention;
mod costs;
mod counter;
mod dead_letters;
mod declared;
mod delivery;
mod delivery_plants;
mod deployment_cases;
mod deployment_facts;
mod deployment_orders;
mod deployment_plants;
mod deployment_tasks;
mod deployments;
mod endless;
mod facts;
mod mutants;
mod planted;
mod promises;
mod promotion_cases;
mod promotion_plants;
mod promotion_sequences;
mod promotions;
mod quiet;
mod races;
mod reads;
mod register;
mod repetition;
mod scale;
mod simulation;
mod sizes;
mod store;
mod webhook_bounds;
mod webhook_cases;
mod webhook_changes;
mod webhook_plants;
mod webhook_seeds;
mod webhook_stand;
mod works;

/// The simulations make and drop small things all the time: they take a quarter to a third less CPU time with it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
