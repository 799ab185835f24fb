//! Tokens, the audit, dead letters.

mod administrators;
mod audit;
mod operations;
mod sentences;
pub mod tokens;
