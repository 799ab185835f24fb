//! What there is across the engines.

mod delivery;
mod heard;
mod wait;
