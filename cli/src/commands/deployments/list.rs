//! `get deploymentconfig NAME`, and `get deployments`: versions of the whole installation.

use super::history::why;
use super::{id, read};
use crate::address::Address;
use crate::api::Api;
use crate::args::{Format, GetDeployments};
use crate::error::CliError;
use crate::kinds::deployment_config::states;
use crate::output::{say, say_data};
use crate::pages;
use crate::table::Table;
use crate::table::print;
use crate::words::{age, between, images};
use keelway_domain::time::Timestamp;
use keelway_wire::http::deployments::VersionState;
use keelway_wire::manifest::with_triggered_images;
use serde_json::{Value, json};

/// One deployment config.
///
/// # Errors
/// As the API answers.
pub async fn config(api: &Api, of: &Address, format: Format) -> Result<(), CliError> {
    match format {
        Format::Yaml => with_images(api, &id(of)).await,
        Format::Json => say_data(&api.get::<Value>(&["deploymentConfigs", &id(of)], &[]).await?, format),
        Format::Table | Format::Wide | Format::Name => {
            let state = read(api, of).await?;
            let now = Timestamp::parse(&state.now);
            print(states(&[state], now, format), format, "")
        }
    }
}

/// The manifest of a config as it was applied, with the image that each trigger was last deployed with.
async fn with_images(api: &Api, id: &str) -> Result<(), CliError> {
    let text = api.text(&["deploymentConfigs", id, "manifest"]).await?;
    let object: Value = api.get(&["deploymentConfigs", id], &[]).await?;
    let triggers = object.pointer("/spec/triggers").and_then(Value::as_array).into_iter().flatten();
    let image =
        |trigger: &Value| trigger.pointer("/imageChangeParams/lastTriggeredImage").and_then(Value::as_str).map(str::to_owned);
    say(with_triggered_images(&text, &triggers.map(image).collect::<Vec<_>>()).trim_end_matches(['\r', '\n']))
}

/// What ended in the whole installation.
///
/// # Errors
/// As the API answers.
pub async fn everywhere(api: &Api, what: &GetDeployments) -> Result<(), CliError> {
    let format = what.output.format;
    let limit = usize::try_from(what.limit).unwrap_or(usize::MAX);
    // What nobody has claimed has waited longest first; of what has ended, the newest is what people look for.
    let order = if what.status.as_deref() == Some("New") { "" } else { "newest" };
    let query = [
        ("order", order),
        ("since", what.since.as_deref().unwrap_or_default()),
        ("status", what.status.as_deref().unwrap_or_default()),
    ];
    let list = pages::read::<VersionState>(api, &["deployments"], &query, limit).await?;
    let (all, now) = (list.items, Timestamp::parse(&list.extra.now));
    if format.is_data() {
        return say_data(&json!({"items": all}), format);
    }
    let mut table = Table::new(&["AGE", "NAMESPACE", "NAME", "STATUS", "TOOK", "IMAGES", "CAUSE", "MESSAGE"]);
    for one in &all {
        table.row(vec![
            age(one.ended_at.as_deref().unwrap_or(&one.since), now),
            one.namespace.clone(),
            one.name.clone(),
            one.status.clone(),
            between(Some(&one.since), one.ended_at.as_deref()),
            images(&one.images, format.is_wide()),
            why(one),
            // What nobody has claimed has no other message than its causes.
            if one.message == one.details.message { String::new() } else { one.message.clone() },
        ]);
    }
    print(table, format, "no deployment is over; those of a config: keelway rollout history --help")
}
