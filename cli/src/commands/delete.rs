//! `delete`, and what else takes something away.

use super::projects;
use crate::api::Api;
use crate::args::Delete;
use crate::error::CliError;
use crate::kinds::{DeleteKind, Deleted};
use crate::output::say;
use reqwest::Method;
use std::io::{BufRead, IsTerminal, Write};

/// `delete`
///
/// # Errors
/// A person's no, or the API's refusal.
pub async fn delete(api: &Api, what: &Delete) -> Result<(), CliError> {
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
        Delete::Kind(kind) => of_kind(api, kind).await,
    }
}

async fn of_kind(api: &Api, DeleteKind(kind, Deleted { at, yes }): &DeleteKind) -> Result<(), CliError> {
    let (path, what) = (kind.path(at), kind.named(at));
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    remove(api, &path, (&what, &format!("Delete {what}? {}", kind.ends)), *yes).await
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
