//! Tokens, the audit, dead letters.

mod administrators;
mod audit;
mod operations;
pub mod tokens;
