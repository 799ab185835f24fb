//! A world for the engines, in memory: twins of the table, the bus, the queue and the clock that behave, and misbehave, as AWS
//! does; workers whose every request is a step somebody else decides about; and the cases, stories told as data.
//!
//! No AWS, no sockets, no runtime. [`World`] is the entry point; [`case`] reads stories and tells them to any [`case::Stand`];
//! [`Tested`] is what all of it needs of an engine.

pub mod account;
pub mod at_once;
pub mod bend;
pub mod bus;
pub mod case;
pub mod contract;
pub mod core;
pub mod deployments;
pub mod evaluations;
pub mod exec;
pub mod fork;
pub mod halves;
pub mod metrics;
pub mod plain;
pub mod played;
pub mod promotions;
pub mod queue;
pub mod quota;
pub mod rng;
pub mod sequences;
pub mod story;
pub mod table;
pub mod tested;
pub mod text;
pub mod units;
pub mod webhooks;
pub mod worker;
pub mod world;

pub use tested::Tested;
pub use world::World;
