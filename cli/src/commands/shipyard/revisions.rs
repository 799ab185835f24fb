//! Revisions of a project's shipyard: list, show, compare, bring back.

use crate::api::{Api, Body};
use crate::args::{DiffShipyard, Format, GetShipyard, RollbackShipyard, Version};
use crate::commands::deployments::lines;
use crate::error::CliError;
use crate::output::{one_line, say, say_data};
use crate::pages::Pages;
use crate::table::Table;
use crate::table::print;
use crate::words::SHORT;
use keelway_domain::names::ProjectName;
use keelway_wire::http::{AppliedDocument, RevisionState, ShipyardDiff, ShipyardRollback};
use keelway_wire::manifest;
use reqwest::Method;
use serde_json::json;
use std::process::ExitCode;

/// The shipyard in force, one revision, or the list of them.
///
/// # Errors
/// As the API answers.
pub async fn get(api: &Api, what: &GetShipyard) -> Result<(), CliError> {
    let format = what.output.format;
    if what.revisions {
        return list(api, what).await;
    }
    let project = what.project.as_str();
    let text = match &what.revision {
        None => api.text(&["project", project, "shipyard"]).await?,
        Some(version) => {
            let revision = resolve(api, &what.project, version).await?;
            api.text(&["project", project, "shipyard", "revisions", &revision]).await?
        }
    };
    match format {
        Format::Json => say_data(&manifest::value_of(&text), format),
        _ => say(text.trim_end()),
    }
}

async fn list(api: &Api, what: &GetShipyard) -> Result<(), CliError> {
    let format = what.output.format;
    let limit = usize::try_from(what.limit).unwrap_or(usize::MAX);
    let mut revisions = history(api, &what.project, |known| known.len() >= limit).await?;
    revisions.truncate(limit);
    if format.is_data() {
        return say_data(&json!({"items": revisions}), format);
    }
    let wide = format.is_wide();
    let mut table = Table::new(&["NUMBER", "REVISION", "APPLIED", "BY", "IN FORCE"]);
    for one in &revisions {
        table.row(vec![
            one.number.to_string(),
            one.revision.chars().take(if wide { usize::MAX } else { SHORT }).collect(),
            one.applied.chars().take(if wide { usize::MAX } else { "2026-11-22T10:15:00".len() }).collect(),
            one_line(&one.by, 40),
            if one.in_force { "yes".into() } else { String::new() },
        ]);
    }
    print(table, format, "there is no shipyard yet; apply one: keelway apply -f FILE")
}

/// The history, newest first, until it is enough.
async fn history(
    api: &Api,
    project: &ProjectName,
    enough: impl Fn(&[RevisionState]) -> bool,
) -> Result<Vec<RevisionState>, CliError> {
    let path = ["project", project.as_str(), "shipyard", "revisions"];
    let (mut all, mut pages) = (vec![], Pages::of(api, &path, &[], 50));
    while !enough(&all)
        && let Some(page) = pages.next().await?
    {
        all.extend(page.items);
    }
    Ok(all)
}

/// The revision in full.
async fn resolve(api: &Api, project: &ProjectName, version: &Version) -> Result<String, CliError> {
    let found = match version {
        Version::Revision(revision) => return Ok(revision.clone()),
        Version::Number(number) => {
            let known = history(api, project, |known| known.iter().any(|one| one.number <= *number)).await?;
            known.into_iter().filter(|one| one.number == *number).map(|one| one.revision).collect::<Vec<_>>()
        }
        Version::Short(start) => {
            let known = history(api, project, |_| false).await?;
            let mut found: Vec<String> =
                known.into_iter().map(|one| one.revision).filter(|revision| revision.starts_with(start.as_str())).collect();
            found.sort();
            found.dedup();
            found
        }
    };
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(CliError::Failed(format!(
            "project {project} has no revision {version}: keelway get shipyard {project} --revisions lists them"
        ))),
        several => Err(CliError::Failed(format!("{version} begins several revisions: {}; write more of it", several.join(", ")))),
    }
}

/// Compares two revisions, or one with the shipyard in force.
///
/// # Errors
/// As the API answers.
pub async fn diff(api: &Api, what: &DiffShipyard) -> Result<ExitCode, CliError> {
    let from = resolve(api, &what.project, &what.from).await?;
    let to = match &what.to {
        Some(to) => resolve(api, &what.project, to).await?,
        None => String::new(),
    };
    let query = [("from", from.as_str()), ("to", to.as_str())];
    let answer: ShipyardDiff = api.get(&["project", what.project.as_str(), "shipyard", "diff"], &query).await?;
    let format = what.output.format;
    if format.is_data() {
        say_data(&answer, format)?;
    } else if answer.from == answer.to {
        eprintln!("they are the same");
    } else if answer.changes.is_empty() {
        eprintln!("only comments and spelling differ");
    } else {
        lines(&answer.changes).iter().try_for_each(|line| say(line))?;
    }
    Ok(if what.exit_code && answer.from != answer.to { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Puts a revision in force again.
///
/// # Errors
/// As the API answers.
pub async fn rollback(api: &Api, what: &RollbackShipyard) -> Result<(), CliError> {
    let project = &what.project;
    let revision = resolve(api, project, &what.to).await?;
    let by = Some(what.by.clone()).filter(|by| !by.is_empty());
    let request = json!(ShipyardRollback { revision, dry_run: what.dry_run, by });
    let body = Body::Json(&request, what.if_match.as_deref());
    let path = ["project", project.as_str(), "shipyard", "rollback"];
    let done: AppliedDocument = api.call(Method::POST, &path, &[], body).await?;
    if what.output.format.is_data() {
        return say_data(&done, what.output.format);
    }
    let revision = done.revision.as_deref().unwrap_or_default();
    say(&match (done.changed, what.dry_run) {
        (false, _) => format!("shipyard of project {project}: revision {revision} is in force already"),
        (true, true) => format!("shipyard of project {project} would go back to revision {revision}:"),
        (true, false) => format!("shipyard of project {project}: went back to revision {revision}"),
    })?;
    say_changes(&done)?;
    if let Some(before) = done.replaces.filter(|_| !what.dry_run) {
        eprintln!("to undo it: keelway rollback shipyard {project} --to {before}");
    }
    Ok(())
}

/// The changes of a document, below the line that says what became of it.
///
/// # Errors
/// When nobody reads it any more.
pub fn say_changes(document: &AppliedDocument) -> Result<(), CliError> {
    if document.changed && document.replaces.is_some() && document.changes.is_empty() {
        return say("  only comments and spelling differ");
    }
    lines(&document.changes).iter().try_for_each(|line| say(&format!("  {line}")))
}
