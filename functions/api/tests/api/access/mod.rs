//! Tokens, the audit, dead letters.

mod administrators;
mod audit;
mod ended;
mod operations;
mod sentences;
pub mod tokens;
