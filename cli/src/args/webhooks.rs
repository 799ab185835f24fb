//! Webhooks: `get webhooks`, `get deliveries`, `webhook`.

use super::named::Namespace;
use super::pipelines::PipelineName;
use super::{Output, examples};
use clap::{Args as Group, Subcommand};

/// `get deliveries`
#[derive(Group)]
pub struct GetDeliveries {
    /// Only this one, with its event and every attempt
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    #[command(flatten)]
    pub namespace: Namespace,
    /// Only those of this webhook subscription
    #[arg(long, value_name = "NAME", conflicts_with = "id")]
    pub webhook: Option<String>,
    /// At most this many deliveries
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    #[command(flatten)]
    pub output: Output,
}

/// `webhook`
#[derive(Subcommand)]
pub enum WebhookVerb {
    /// Let a subscription that is disabled take events again
    #[command(after_help = examples::WEBHOOK_RESUME)]
    Resume(PipelineName),
    /// Deliver an event again; one that waits for its next attempt is tried now
    #[command(after_help = examples::WEBHOOK_REDELIVER)]
    Redeliver {
        /// The deliveries, as `get deliveries` shows them
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        #[command(flatten)]
        namespace: Namespace,
    },
}
