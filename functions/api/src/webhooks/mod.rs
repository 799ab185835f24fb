//! Webhook subscriptions, and what is delivered to them.

mod deliveries;
pub mod subscriptions;

use crate::fence::route::{Route, route};
use keelway_engine::ports::Ports;

/// The routes.
pub fn routes<P: Ports + 'static>() -> Vec<Route<P>> {
    vec![
        route!(subscriptions::list),
        route!(subscriptions::one),
        route!(subscriptions::delete),
        route!(subscriptions::manifest),
        route!(subscriptions::resume),
        route!(deliveries::list),
        route!(deliveries::one),
        route!(deliveries::redeliver).once(),
    ]
}
