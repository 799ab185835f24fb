//! Webhooks: events of the bus, delivered to servers of other people.
//!
//! A [`Subscription`] says which events it takes and what is sent. Each of them becomes a [`Delivery`], which [`decide`] takes through its
//! attempts. The signatures and the schedule of attempts are those of Standard Webhooks (<https://www.standardwebhooks.com>).

mod decide;
mod delivery;
mod subscription;

pub use decide::{Decision, FAILING, Facts, Input, LONGEST_PAUSE, MAX_ATTEMPTS, decide, delay};
pub use delivery::{Attempt, Delivery, End, Executor, Health, Nothing, Record, id};
pub use subscription::{Body, Expression, Form, Operator, Subscription};

/// The `source` of what webhooks publish.
pub const SOURCE: &str = "keelway-webhooks";
/// The type of the event that tells that a subscription was disabled.
pub const DISABLED: &str = "dev.keelway.webhook.disabled";
