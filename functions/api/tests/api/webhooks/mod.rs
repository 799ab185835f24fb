//! Webhook subscriptions and deliveries.

pub mod subscriptions;
