//! `get deploymentconfigs`, `get deployments`, `get artifactsources`.

use super::history::images;
use super::{id, read};
use crate::address::Address;
use crate::api::Api;
use crate::args::{Format, GetConfigs, GetDeployments, GetNamed};
use crate::commands::pipelines::manifest;
use crate::error::CliError;
use crate::output::{one_line, say, say_data};
use crate::pages;
use crate::table::Table;
use crate::table::print;
use crate::words::{age, between};
use keelway_domain::time::Timestamp;
use keelway_wire::http::deployments::{ArtifactSourceState, ConfigState, VersionState};
use keelway_wire::manifest::with_triggered_images;
use serde_json::{Value, json};

/// The configs of a namespace or of all, or one.
///
/// # Errors
/// As the API answers.
pub async fn configs(api: &Api, what: &GetConfigs) -> Result<(), CliError> {
    let format = what.output.format;
    let (all, now) = match &what.name {
        Some(name) => {
            let of = Address::of(name, &what.namespace);
            let id = id(&of);
            match format {
                Format::Yaml => return with_images(api, &id).await,
                Format::Json => return say_data(&api.get::<Value>(&["deploymentConfigs", &id], &[]).await?, format),
                Format::Table | Format::Wide => {
                    let state = read(api, &of).await?;
                    let now = Timestamp::parse(&state.now);
                    (vec![state], now)
                }
            }
        }
        None => {
            let namespace = if what.all_namespaces { "" } else { what.namespace.name() };
            let query = [("namespace", namespace)];
            let list = pages::read::<ConfigState>(api, &["deploymentConfigs"], &query, usize::MAX).await?;
            (list.items, Timestamp::parse(&list.extra.now))
        }
    };
    if format.is_data() {
        return say_data(&json!({"deploymentConfigs": all}), format);
    }
    let mut table = Table::new(&["NAMESPACE", "NAME", "DEPLOYED", "LATEST", "STATUS", "AGE", "IMAGES", "MESSAGE"]);
    for one in &all {
        let number = |n: Option<u64>| n.filter(|n| *n > 0).map(|n| format!("#{n}")).unwrap_or_default();
        let latest = one.latest.as_ref();
        table.row(vec![
            one.namespace.clone(),
            one.name.clone(),
            number(one.active_version),
            number(Some(one.latest_version)),
            latest.map(|latest| latest.status.clone()).unwrap_or_default(),
            latest.map(|latest| age(&latest.since, now)).unwrap_or_default(),
            images(&one.active_images, format == Format::Wide),
            news(one, format == Format::Wide),
        ]);
    }
    print(&table, format, "there is no deployment config here; apply one: keelway apply --help")
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

/// What became of the latest version, if it is not what is deployed, and what the config waits for.
fn news(one: &ConfigState, wide: bool) -> String {
    let latest = one.latest.as_ref().filter(|latest| latest.status != "Complete");
    let told = latest.map(|latest| {
        let with = images(&latest.images, wide);
        let with = if with.is_empty() || latest.images == one.active_images { String::new() } else { format!(" ({with})") };
        match latest.status.as_str() {
            "Failed" => format!("#{}{with} failed: {}: {}", latest.version, latest.reason, one_line(&latest.message, 160)),
            _ => format!("#{}{with} is on its way", latest.version),
        }
    });
    let drift = one.drift.as_ref().map(|drift| drift.message.clone());
    let waits = Some(one.message.clone()).filter(|message| !message.is_empty());
    told.into_iter().chain(drift).chain(waits).collect::<Vec<_>>().join("; ")
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
        return say_data(&json!({"deployments": all}), format);
    }
    let mut table = Table::new(&["AGE", "NAMESPACE", "NAME", "STATUS", "TOOK", "IMAGES", "MESSAGE"]);
    for one in &all {
        table.row(vec![
            age(one.ended_at.as_deref().unwrap_or(&one.since), now),
            one.namespace.clone(),
            one.name.clone(),
            one.status.clone(),
            between(Some(&one.since), one.ended_at.as_deref()),
            images(&one.images, format == Format::Wide),
            one.message.clone(),
        ]);
    }
    print(&table, format, "no deployment is over; those of a config: keelway rollout history --help")
}

/// The artifact sources of a namespace, or one.
///
/// # Errors
/// As the API answers.
pub async fn sources(api: &Api, what: &GetNamed) -> Result<(), CliError> {
    let format = what.output.format;
    let all = match &what.name {
        Some(name) => {
            let of = Address::of(name, &what.namespace);
            let path = ["artifactSources", &of.namespace, &of.name];
            if format == Format::Yaml {
                return manifest(api, &path).await;
            }
            vec![api.get::<ArtifactSourceState>(&path, &[]).await?]
        }
        None => pages::all(api, &["artifactSources"], &[("namespace", what.namespace.name())]).await?,
    };
    if format.is_data() {
        return say_data(&json!({"artifactSources": all}), format);
    }
    let mut table = Table::new(&["NAMESPACE", "NAME", "FROM", "TAGS"]);
    for one in &all {
        let from = match (one.spec.pointer("/from/ecr/name"), one.spec.pointer("/from/webhook")) {
            (Some(repository), _) => format!("ecr {}", repository.as_str().unwrap_or_default()),
            (None, Some(_)) => "webhook".into(),
            (None, None) => String::new(),
        };
        let tags = one.spec.get("tags").and_then(Value::as_object).into_iter().flatten();
        let tags: Vec<String> = tags.map(|(name, pattern)| format!("{name}={}", pattern.as_str().unwrap_or_default())).collect();
        table.row(vec![one.namespace.clone(), one.name.clone(), from, tags.join(",")]);
    }
    print(&table, format, "there is no artifact source here; apply one: keelway apply --help")
}
