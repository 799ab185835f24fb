//! Requests to servers of other people.
//!
//! [`Client`] connects only to addresses of the public internet, follows no redirect, and bounds time and size of everything.
//! [`sign`] signs as Standard Webhooks does it (<https://www.standardwebhooks.com>).

mod address;
mod client;
mod sign;

pub use address::is_public;
pub use client::{Answer, Client, Failure, Hosts, Limits, Lookup, System};
pub use sign::sign;
