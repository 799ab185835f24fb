//! What there is across the engines.

mod delivery;
mod wait;
