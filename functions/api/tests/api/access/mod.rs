//! Tokens, the audit, dead letters.

mod audit;
mod operations;
pub mod tokens;
