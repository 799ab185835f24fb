//! Webhook subscriptions.

use super::{Kind, Place, Verb, json, typed};
use crate::args::named::Format;
use crate::error::CliError;
use crate::table::Table;
use keelway_domain::time::Timestamp;
use keelway_wire::http::webhooks::WebhookState;
use serde_json::Value;

pub const KIND: Kind = Kind {
    kind: "WebhookSubscription",
    noun: "webhook",
    collection: "webhookSubscriptions",
    place: Place::Namespace,
    get: Verb {
        name: "webhooks",
        aliases: &["webhook"],
        about: "Webhook subscriptions",
        examples: "Examples:\n  keelway get webhooks -p shop\n  keelway get webhook shop/slack -o yaml",
    },
    delete: Verb {
        name: "webhook",
        aliases: &[],
        about: "A webhook subscription: its deliveries that wait end",
        examples: "Examples:\n  keelway delete webhook shop/slack --yes",
    },
    ends: "Nothing more is delivered to it.",
    json: json::<WebhookState>,
    table,
};

fn table(all: Vec<Value>, _: Option<Timestamp>, format: Format) -> Result<Table, CliError> {
    let all: Vec<WebhookState> = typed(all.into())?;
    let wide = format.is_wide();
    let head: &[&str] = if wide {
        &["NAMESPACE", "NAME", "STATUS", "EVENTS", "URL", "APPLIED", "VERSION"]
    } else {
        &["NAMESPACE", "NAME", "STATUS", "EVENTS", "APPLIED"]
    };
    let mut table = Table::new(head);
    for webhook in &all {
        let events: Vec<&str> = webhook.spec["events"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut row = vec![webhook.namespace.clone(), webhook.name.clone(), status(webhook), events.join(", ")];
        if wide {
            let url = webhook.spec["url"].as_str().unwrap_or_default().to_owned();
            row.extend([url, webhook.applied_at.clone(), webhook.version.to_string()]);
        } else {
            row.push(webhook.applied_at.chars().take("2026-11-22".len()).collect());
        }
        table.row(row);
    }
    Ok(table)
}

fn status(webhook: &WebhookState) -> String {
    let status = match (&webhook.disabled, &webhook.failing_since) {
        (Some(disabled), _) => format!("disabled: {}", disabled.message),
        (None, Some(since)) => format!("failing since {since}"),
        (None, None) => "ready".to_owned(),
    };
    let waiting = webhook.waiting.filter(|waiting| *waiting > 0).map(|waiting| format!(", {waiting} waiting"));
    status + waiting.as_deref().unwrap_or_default()
}
