//! The way out: what is refused, what is bounded, and that there is no other.

mod crates;
mod guards;
mod server;
mod wires;
