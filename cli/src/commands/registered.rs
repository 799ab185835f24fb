//! Clusters and git hosts: `get clusters`, `get githosts`; and `delete`.

use super::pipelines::manifest;
use super::{deployments, projects, schedules};
use crate::address::Address;
use crate::api::Api;
use crate::args::{Delete, DeleteNamed, Format, GetNamed};
use crate::error::CliError;
use crate::output::{say, say_data};
use crate::pages;
use crate::table::Table;
use crate::table::print;
use keelway_wire::http::promotions::Registered;
use reqwest::Method;
use serde_json::json;
use std::io::{BufRead, IsTerminal, Write};

/// `get clusters`
///
/// # Errors
/// As the API answers.
pub async fn clusters(api: &Api, what: &GetNamed) -> Result<(), CliError> {
    let format = what.output.format;
    let Some(name) = &what.name else {
        let namespace = what.namespace.name();
        let empty =
            format!("there is no cluster in namespace {namespace}; apply one: keelway apply -f FILE; another one: -n NAMESPACE");
        return listed(api, "clusters", namespace, format, &empty).await;
    };
    let of = Address::of(name, &what.namespace);
    one(api, &["clusters", &of.namespace, &of.name], format).await
}

/// `get githosts`
///
/// # Errors
/// As the API answers.
pub async fn git_hosts(api: &Api, name: Option<&str>, format: Format) -> Result<(), CliError> {
    match name {
        Some(name) => one(api, &["githosts", name], format).await,
        None => listed(api, "githosts", "", format, "there is no git host yet; apply one: keelway apply -f FILE").await,
    }
}

async fn listed(api: &Api, kind: &str, namespace: &str, format: Format, empty: &str) -> Result<(), CliError> {
    let items: Vec<Registered> = pages::all(api, &[kind], &[("namespace", namespace)]).await?;
    if format.is_data() {
        return say_data(&json!({"items": items}), format);
    }
    print(&table(&items, format), format, empty)
}

async fn one(api: &Api, path: &[&str], format: Format) -> Result<(), CliError> {
    if format == Format::Yaml {
        return manifest(api, path).await;
    }
    let item: Registered = api.get(path, &[]).await?;
    if format == Format::Json {
        return say_data(&item, format);
    }
    print(&table(&[item], format), format, "")
}

/// With the fields of `spec` that tell them apart; wide, with every field but certificates.
fn table(items: &[Registered], format: Format) -> Table {
    let hosts = items.first().is_some_and(|item| item.kind == "GitHost");
    let (fields, head): (&[&str], &[&str]) = match (hosts, format == Format::Wide) {
        (true, false) => (&["type", "host", "secret"], &["NAME", "TYPE", "HOST", "SECRET", "APPLIED"]),
        (true, true) => (
            &["type", "host", "api", "secret", "webhookSecret"],
            &["NAME", "TYPE", "HOST", "API", "SECRET", "WEBHOOK SECRET", "APPLIED", "VERSION"],
        ),
        (false, false) => (&["server", "secret"], &["NAMESPACE", "NAME", "SERVER", "SECRET", "APPLIED"]),
        (false, true) => {
            (&["server", "secret", "interval"], &["NAMESPACE", "NAME", "SERVER", "SECRET", "INTERVAL", "APPLIED", "VERSION"])
        }
    };
    let mut table = Table::new(head);
    for item in items {
        let field = |name: &&str| match item.spec.get(*name) {
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        };
        let mut row: Vec<String> = item.namespace.iter().filter(|_| !hosts).cloned().chain([item.name.clone()]).collect();
        row.extend(fields.iter().map(field));
        match format {
            Format::Wide => row.extend([item.applied_at.clone(), item.version.to_string()]),
            _ => row.push(item.applied_at.chars().take("2026-11-22".len()).collect()),
        }
        table.row(row);
    }
    table
}

/// `delete`
///
/// # Errors
/// A person's no, or the API's refusal.
pub async fn delete(api: &Api, what: &Delete) -> Result<(), CliError> {
    let address = |named: &DeleteNamed| Address::of(&named.of.name, &named.of.namespace);
    match what {
        Delete::Project { name, how } => {
            let asked = format!("Delete project {name} with its services and resources?");
            agree(&format!("project {name}"), &asked, how.yes)?;
            projects::delete(api, (name, None), how.abort).await
        }
        Delete::Service { name, project, how } => {
            let asked = format!("Delete service {name} of project {project}?");
            agree(&format!("service {name} of project {project}"), &asked, how.yes)?;
            projects::delete(api, (project, Some(name)), how.abort).await
        }
        Delete::Schedule { name, project, yes } => {
            let asked = format!("Delete schedule {name} of project {project}? Nothing more is triggered.");
            let what = format!("schedule {name} of project {project}");
            remove(api, &schedules::path(project, name), (&what, &asked), *yes).await
        }
        Delete::Pipeline(named) => {
            let of = address(named);
            let asked = format!("Delete pipeline {of}? Nothing more is promoted, and its open pull requests are closed.");
            remove(api, &of.path(), (&format!("pipeline {of}"), &asked), named.yes).await
        }
        Delete::Cluster(named) => {
            let of = address(named);
            let asked = format!("Delete cluster {of}? Its objects are no longer read.");
            remove(api, &["clusters", &of.namespace, &of.name], (&format!("cluster {of}"), &asked), named.yes).await
        }
        Delete::Deploymentconfig(named) => {
            let of = address(named);
            let asked = format!("Delete deployment config {of}? What is on its way is cancelled; what is deployed stays as it is.");
            remove(api, &["deploymentConfigs", &deployments::id(&of)], (&format!("deployment config {of}"), &asked), named.yes)
                .await
        }
        Delete::Artifactsource(named) => {
            let of = address(named);
            let asked = format!("Delete artifact source {of}? Pushes there are no longer deployed.");
            let path = ["artifactSources", &of.namespace, &of.name];
            remove(api, &path, (&format!("artifact source {of}"), &asked), named.yes).await
        }
        Delete::Webhook(named) => {
            let of = address(named);
            let asked = format!("Delete webhook {of}? Nothing more is delivered to it.");
            let path = ["webhookSubscriptions", &of.namespace, &of.name];
            remove(api, &path, (&format!("webhook {of}"), &asked), named.yes).await
        }
        Delete::Githost { name, yes } => {
            let asked = format!("Delete git host {name}? Pull requests can no longer be made or looked at there.");
            remove(api, &["githosts", name], (&format!("git host {name}"), &asked), *yes).await
        }
    }
}

/// Asks, unless nobody is there who could answer.
fn agree(what: &str, asked: &str, yes: bool) -> Result<(), CliError> {
    if !yes && std::io::stdin().is_terminal() && !agreed(asked)? {
        return Err(CliError::Failed(format!("{what} is not deleted: answer y, or give --yes")));
    }
    Ok(())
}

/// Deletes something, and asks the person at the terminal before, unless `yes`.
///
/// # Errors
/// A person's no, or the API's refusal.
pub async fn remove(api: &Api, path: &[&str], (what, asked): (&str, &str), yes: bool) -> Result<(), CliError> {
    agree(what, asked, yes)?;
    // A second request would find nothing, and say so.
    let () = api.clone().without_retries().call(Method::DELETE, path, &[], crate::api::Body::None).await?;
    say(&format!("{what}: deleted"))
}

/// Asks the person at the terminal.
fn agreed(question: &str) -> Result<bool, CliError> {
    eprint!("{question} [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    let unreadable = |error: std::io::Error| CliError::Usage(format!("cannot read the answer: {error}; give --yes"));
    std::io::stdin().lock().read_line(&mut answer).map_err(unreadable)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
