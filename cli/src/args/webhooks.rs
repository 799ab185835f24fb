//! Webhooks: `webhook`.

use super::named::{InProject, Place};
use super::{Output, examples};
use clap::{Args as Group, Subcommand};

/// `webhook`
#[derive(Subcommand)]
pub enum WebhookVerb {
    /// Events that were sent, or are to be sent, newest first
    #[command(after_help = examples::WEBHOOK_DELIVERIES)]
    Deliveries(WebhookDeliveries),
    /// Let a subscription that is disabled take events again
    #[command(after_help = examples::WEBHOOK_RESUME)]
    Resume(WebhookName),
    /// Send an event again; one that waits for its next attempt is tried now
    #[command(after_help = examples::WEBHOOK_REDELIVER)]
    Redeliver {
        /// The deliveries, as `webhook deliveries` shows them
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        #[command(flatten)]
        project: InProject,
    },
}

/// A webhook subscription by its name.
#[derive(Group)]
pub struct WebhookName {
    /// The webhook subscription: NAME, or PROJECT/NAME
    #[arg(value_parser = Place::parse, value_name = "NAME")]
    pub name: Place,
    #[command(flatten)]
    pub project: InProject,
}

/// `webhook deliveries`
#[derive(Group)]
pub struct WebhookDeliveries {
    /// Only this one, with its event and every attempt
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    #[command(flatten)]
    pub project: InProject,
    /// Only those of this webhook subscription
    #[arg(long, value_name = "NAME", conflicts_with = "id")]
    pub webhook: Option<String>,
    /// At most this many deliveries
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    #[command(flatten)]
    pub output: Output,
}
