//! All requests to servers of other people.
//!
//! No other crate of the functions makes HTTP clients. [`Wire`] makes the requests, with limits on time and size. Its [`Guard`]
//! connects only to addresses of the public internet, over https, except for the operator's exceptions. [`Client`] is for webhooks
//! and notifications; [`sign`] implements the signatures of Standard Webhooks (<https://www.standardwebhooks.com>).

mod address;
mod client;
mod failure;
mod guard;
mod sign;
mod wire;

pub use address::{NOT_PUBLIC, is_public};
pub use client::{Answer, Client, Limits};
pub use failure::Failure;
pub use guard::{Guard, Hosts, Lookup, System};
pub use sign::sign;
pub use wire::{Body, Call, Certificates, LARGE, Reply, Roots, Terms, Wire};

pub use reqwest::{Method, StatusCode, Url, header};
