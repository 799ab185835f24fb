//! `webhook`: the requests that were sent, and what a person does about them.

use super::find;
use crate::address::Address;
use crate::api::{Api, Body};
use crate::args::{Format, WebhookDeliveries, WebhookName, WebhookVerb};
use crate::clock::now;
use crate::error::CliError;
use crate::output;
use crate::output::{say, say_data};
use crate::pages;
use crate::pipeline::due;
use crate::table::Table;
use crate::table::print;
use crate::words::age;
use keelway_domain::event::PREFIX;
use keelway_wire::http::webhooks::{DeliveryAttempt, DeliveryState, Redelivered, WebhookState};
use reqwest::Method;
use serde_json::json;

/// The collection of subscriptions.
const SUBSCRIPTIONS: &str = "webhookSubscriptions";

async fn deliveries(api: &Api, what: &WebhookDeliveries) -> Result<(), CliError> {
    let (namespace, format) = (what.project.name(), what.output.format);
    if let Some(id) = &what.id {
        let delivery: DeliveryState = api.get(&["deliveries", namespace, id], &[]).await?;
        return if format.is_data() { say_data(&delivery, format) } else { show(&delivery) };
    }
    let (limit, webhook) = (what.limit as usize, what.webhook.as_deref().unwrap_or_default());
    let query = [("namespace", namespace), ("webhook", webhook)];
    let all: Vec<DeliveryState> = pages::read(api, &["deliveries"], &query, limit).await?.items;
    if all.is_empty() {
        find::mistyped(api, Some(namespace)).await?;
    }
    if format.is_data() {
        return say_data(&json!({"items": all}), format);
    }
    let (wide, now) = (format.is_wide(), Some(now()));
    let head: &[&'static str] = if wide {
        &["ID", "WEBHOOK", "EVENT", "STATUS", "TRIES", "LAST", "BEGAN", "NEXT"]
    } else {
        &["ID", "WEBHOOK", "STATUS", "TRIES", "AGE", "NEXT", "LAST", "EVENT"]
    };
    let mut table = Table::new(head);
    for one in all {
        let last = one.attempts.last().map(|last| answered(last, format)).unwrap_or_default();
        let tries = one.attempts.len().to_string();
        let (began, next) = (age(&one.began, now), due(one.next_attempt.as_deref(), now).unwrap_or_default());
        let ty = one.event_type.strip_prefix(PREFIX).unwrap_or(&one.event_type).to_owned();
        table.row(match wide {
            true => {
                let next = one.next_attempt.unwrap_or_default();
                vec![one.id, one.webhook, one.event_type, one.status, tries, last, one.began, next]
            }
            false => vec![one.id, one.webhook, one.status, tries, began, next, last, ty],
        });
    }
    print(table, format, &format!("nothing was sent to webhooks of project {namespace}; another one: -p PROJECT"))
}

/// The status of an answer, or why there was none.
fn answered(attempt: &DeliveryAttempt, format: Format) -> String {
    let most = if format.is_wide() { usize::MAX } else { 60 };
    attempt.status.map_or_else(|| attempt.error.chars().take(most).collect(), |status| status.to_string())
}

fn show(delivery: &DeliveryState) -> Result<(), CliError> {
    let lines = [
        ("id", delivery.id.clone()),
        ("webhook", format!("{}/{}", delivery.namespace, delivery.webhook)),
        ("status", delivery.status.clone()),
        ("", delivery.message.clone()),
        ("event", format!("{} {}", delivery.event_type, delivery.event_id)),
        ("context", delivery.keptn_context.clone()),
        ("began", delivery.began.clone()),
        ("next attempt", delivery.next_attempt.clone().unwrap_or_default()),
    ];
    for (name, value) in lines.iter().filter(|(_, value)| !value.is_empty()) {
        say(&format!("{name:<14}{value}"))?;
    }
    for (n, attempt) in delivery.attempts.iter().enumerate() {
        let status = attempt.status.map(|status| status.to_string()).unwrap_or_else(|| "-".into());
        let what = if attempt.error.is_empty() { &attempt.answer } else { &attempt.error };
        say(format!("{:<14}{} {status} {} ms {what}", format!("attempt {}", n + 1), attempt.at, attempt.ms).trim_end())?;
    }
    say(&serde_json::to_string_pretty(&delivery.event).unwrap_or_default())
}

/// `webhook`
///
/// # Errors
/// As the API answers.
pub async fn webhook(api: &Api, what: &WebhookVerb) -> Result<(), CliError> {
    match what {
        WebhookVerb::Deliveries(what) => deliveries(api, what).await,
        WebhookVerb::Resume(WebhookName { name, project }) => {
            let of = Address::of(name, project.project.as_ref());
            let path = [SUBSCRIPTIONS, &of.namespace, &of.name, "resume"];
            let _: WebhookState = api.call(Method::POST, &path, &[], Body::None).await?;
            say(&format!("webhook {of}: takes events"))
        }
        WebhookVerb::Redeliver { ids, project } => {
            let namespace = project.name();
            let mut hints = vec![format!("it shows in: keelway webhook deliveries -p {namespace}")];
            for id in ids {
                let path = ["deliveries", namespace, id, "redeliver"];
                let done: Redelivered = api.call(Method::POST, &path, &[], Body::None).await?;
                let how = if done.again { format!("delivered again as {}", done.id) } else { "tried now".to_owned() };
                say(&format!("delivery {id}: {how}"))?;
                if done.again {
                    hints.push(format!("the old one: keelway webhook deliveries {id} -p {namespace}"));
                }
            }
            output::hint(&hints);
            Ok(())
        }
    }
}
