//! Deployment configs: what is deployed, and what is on its way.

use super::{Kind, Place, Verb, json, typed};
use crate::args::named::Format;
use crate::error::CliError;
use crate::output::one_line;
use crate::table::Table;
use crate::words::{age, images};
use keelway_domain::time::Timestamp;
use keelway_wire::http::deployments::ConfigState;
use serde_json::Value;

pub const KIND: Kind = Kind {
    kind: "DeploymentConfig",
    noun: "deployment config",
    collection: "deploymentConfigs",
    place: Place::Id,
    get: Verb {
        name: "deploymentconfigs",
        aliases: &["deploymentconfig", "dc"],
        about: "Deployment configs: what is deployed, and what is on its way",
        examples: "Examples:\n  keelway get deploymentconfigs -A\n  keelway get dc carts -p shop -o yaml",
    },
    delete: Verb {
        name: "deploymentconfig",
        aliases: &["dc"],
        about: "A deployment config: what is on its way is cancelled",
        examples: "Examples:\n  keelway delete deploymentconfig carts -p shop",
    },
    ends: "What is on its way is cancelled; what is deployed stays as it is.",
    json: json::<ConfigState>,
    table,
};

fn table(all: Vec<Value>, now: Option<Timestamp>, format: Format) -> Result<Table, CliError> {
    Ok(states(&typed::<Vec<ConfigState>>(all.into())?, now, format))
}

/// A line for each.
pub fn states(all: &[ConfigState], now: Option<Timestamp>, format: Format) -> Table {
    let wide = format.is_wide();
    let mut head = vec!["NAMESPACE", "NAME", "DEPLOYED", "LATEST", "STATUS", "AGE", "IMAGES", "MESSAGE"];
    if wide {
        head.extend(["DEPLOYER", "HEARD"]);
    }
    let mut table = Table::new(&head);
    for one in all {
        let number = |n: Option<u64>| n.filter(|n| *n > 0).map(|n| format!("#{n}")).unwrap_or_default();
        let latest = one.latest.as_ref();
        let mut row = vec![
            one.namespace.clone(),
            one.name.clone(),
            number(one.active_version),
            number(Some(one.latest_version)),
            latest.map(|latest| latest.status.clone()).unwrap_or_default(),
            latest.map(|latest| age(&latest.since, now)).unwrap_or_default(),
            images(&one.active_images, wide),
            news(one, now, wide),
        ];
        if wide {
            row.push(latest.map(|latest| latest.deployer.clone()).unwrap_or_default());
            row.push(latest.and_then(|latest| latest.heard.as_deref()).map(|heard| age(heard, now)).unwrap_or_default());
        }
        table.row(row);
    }
    table
}

/// What became of the latest version, if it is not what is deployed, and what the config waits for.
fn news(one: &ConfigState, now: Option<Timestamp>, wide: bool) -> String {
    let latest = one.latest.as_ref().filter(|latest| latest.status != "Complete");
    let told = latest.map(|latest| {
        let with = images(&latest.images, wide);
        let with = if with.is_empty() || latest.images == one.active_images { String::new() } else { format!(" ({with})") };
        match latest.status.as_str() {
            "Failed" => format!("#{}{with} failed: {}: {}", latest.version, latest.reason, one_line(&latest.message, 160)),
            // Wide tables have a column for it.
            _ => match latest.heard.as_deref().filter(|_| !wide) {
                Some(heard) => {
                    format!("#{}{with} is on its way, {} heard {} ago", latest.version, latest.deployer, age(heard, now))
                }
                None => format!("#{}{with} is on its way", latest.version),
            },
        }
    });
    let drift = one.drift.as_ref().map(|drift| drift.message.clone());
    let waits = Some(one.message.clone()).filter(|message| !message.is_empty());
    told.into_iter().chain(drift).chain(waits).collect::<Vec<_>>().join("; ")
}
