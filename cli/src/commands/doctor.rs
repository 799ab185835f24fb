//! `doctor`: what stands between this shell and a working API.

use crate::api::Api;
use crate::error::CliError;
use crate::output::{painted, say};
use crate::terminal::look;
use keelway_wire::http::operations::DeadLetterPage;
use keelway_wire::http::{Metadata, ProjectPage};

/// Checks the settings, the API, the token, that it can read, and whether messages could not be handled; says each.
///
/// # Errors
/// Exit code of the first check that fails.
pub async fn doctor(api: Option<&str>, token: Option<&str>) -> Result<(), CliError> {
    let ok = |what: &str| say(&format!("{}  {what}", painted("ok", "ok   ", &look())));
    let api = Api::new(api, token).and_then(|api| failed("settings", Ok(api))).or_else(|error| failed("settings", Err(error)))?;
    ok(&format!("settings: the API is {}", api.base()))?;
    let metadata: Metadata = match api.get(&["metadata"], &[]).await {
        Ok(metadata) => metadata,
        Err(error) if matches!(error.status(), Some(401 | 403)) => {
            ok("API: answers")?;
            return failed("token", Err(error.into()));
        }
        Err(error) => return failed("API", Err(error.into())),
    };
    let stack = if metadata.stack.is_empty() { String::new() } else { format!(", stack {}", metadata.stack) };
    ok(&format!("API: answers, version {}{stack}", metadata.version))?;
    ok("token: accepted")?;
    if metadata.version != env!("CARGO_PKG_VERSION") {
        say(&format!("note   this is keelway {}, the API has another version", env!("CARGO_PKG_VERSION")))?;
    }
    let page: ProjectPage = match api.get(&["project"], &[("pageSize", "100")]).await {
        Ok(page) => page,
        Err(error) => return failed("projects", Err(error.into())),
    };
    match page.projects.len() {
        0 => ok("projects: none yet; apply one: keelway apply -f examples/hello")?,
        n => ok(&format!("projects: {n}"))?,
    }
    let page: DeadLetterPage = match api.get(&["dead-letters"], &[("pageSize", "100")]).await {
        Ok(page) => page,
        Err(error) => return failed("dead letters", Err(error.into())),
    };
    let waiting = page.dead_letters.iter().filter(|letter| letter.next_redrive.is_none()).count();
    match (page.dead_letters.len(), waiting) {
        (0, _) => ok("dead letters: none"),
        (n, waiting) => say(&format!("note   dead letters: {n}, {waiting} wait for a person; see: keelway dead-letters list")),
    }
}

fn failed<T>(what: &str, result: Result<T, CliError>) -> Result<T, CliError> {
    match result {
        Err(error @ (CliError::Usage(_) | CliError::Failed(_) | CliError::Api(_))) => {
            let code = if matches!(error, CliError::Usage(_)) { 2 } else { 1 };
            say(&format!("{}  {what}: {error}", painted("error", "error", &look())))?;
            Err(CliError::Said(code))
        }
        other => other,
    }
}
