//! Webhooks: deliver events of the bus to servers of other people.
//!
//! A [`Subscription`] selects events and defines the requests. Each selected event becomes a [`Delivery`], whose attempts
//! [`decide`] decides. Signatures and the schedule of attempts follow Standard Webhooks (<https://www.standardwebhooks.com>).

mod decide;
mod delivery;
mod subscription;

pub use decide::{Decision, FAILING, Facts, Input, LONGEST_PAUSE, MAX_ATTEMPTS, decide, delay};
pub use delivery::{Delivery, End, Exchange, Executor, Health, Nothing, Record, id};
pub use subscription::{Body, Expression, Form, Operator, Subscription};

/// The `source` of events about webhooks.
pub const SOURCE: &str = "keelway-webhooks";
/// The type of the event about a subscription that was disabled.
pub const DISABLED: &str = "dev.keelway.webhook.disabled";
