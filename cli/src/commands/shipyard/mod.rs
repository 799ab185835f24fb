//! `shipyard`: what can be done with shipyards without applying them.

mod drawing;
mod revisions;

pub use revisions::{diff, get, rollback, say_changes};

use super::files;
use crate::api::Api;
use crate::args::{Drawing, Format, ShowShipyard};
use crate::error::CliError;
use crate::findings;
use crate::output::{say, say_data};
use crate::terminal::look;
use keelway_wire::manifest::{self, Document, Finding, Parsed};
use std::path::Path;

/// Prints a shipyard of version 0.1 in the form of 0.2.
///
/// # Errors
/// Exit code 2 when the file cannot be read, else 1 when it is refused.
pub fn migrate(path: &Path) -> Result<(), CliError> {
    let file = files::read(path)?;
    let parsed = manifest::parse(&file.text, &file.name);
    if !parsed.refused() && matches!(parsed.documents.as_slice(), [Document::Shipyard(_)]) {
        eprintln!("{} is of version 0.2 already: it is printed as it is", file.name);
        return say(file.text.trim_end());
    }
    let migrated = manifest::migrate(&file.text, &file.name);
    draw_all(&migrated.findings, &file.text);
    match migrated.text {
        Some(text) => say(text.trim_end()),
        None => Err(CliError::Said(1)),
    }
}

/// Prints the schema of a kind, of a file without one, or of manifests of any kind.
///
/// # Errors
/// A kind that there is not.
pub fn schema(kind: Option<&str>) -> Result<(), CliError> {
    let kinds: Vec<&str> = manifest::schema_kinds().iter().copied().chain(manifest::schema_files()).collect();
    let known = |given: &str| kinds.iter().copied().find(|kind| kind.eq_ignore_ascii_case(given));
    let schema = match kind {
        None => manifest::schema(""),
        Some(given) => known(given).and_then(manifest::schema),
    };
    let unknown = || CliError::Usage(format!("there is no schema of this kind: write one of {}", kinds.join(", ")));
    say_data(&schema.ok_or_else(unknown)?, Format::Json)
}

/// Draws the shipyards of a file, or the one of a project.
///
/// # Errors
/// Exit code 2 when the file cannot be read, else 1 when it is refused or has no shipyard; the API's refusal.
pub async fn draw_one(api: impl Fn() -> Result<Api, CliError>, what: &ShowShipyard) -> Result<(), CliError> {
    let (name, text) = match (&what.file, &what.project) {
        (Some(file), _) => {
            let file = files::read(file)?;
            (file.name, file.text)
        }
        (None, Some(project)) => {
            (format!("the shipyard of project {project}"), api()?.text(&["project", project.as_str(), "shipyard"]).await?)
        }
        (None, None) => return Err(CliError::Usage("name a file, or a project with --project".into())),
    };
    let parsed = manifest::parse(&text, &name);
    show(&parsed, &text);
    if parsed.refused() {
        return Err(CliError::Said(1));
    }
    let shipyards = parsed.documents.iter().filter_map(|document| match document {
        Document::Shipyard(manifest) => Some(&manifest.shipyard),
        _ => None,
    });
    let draw = match what.format {
        Drawing::Text => drawing::text,
        Drawing::Mermaid => drawing::mermaid,
    };
    let drawn: Vec<String> = shipyards.map(draw).collect();
    match drawn.is_empty() {
        true => Err(CliError::Failed(format!("{name} holds no shipyard"))),
        false => say(&drawn.join("\n\n")),
    }
}

/// Draws the findings on standard error.
pub fn show(parsed: &Parsed, text: &str) {
    draw_all(&parsed.findings, text);
}

/// Draws findings on standard error.
pub fn draw_all(findings: &[Finding], text: &str) {
    let look = look();
    findings::draw_all(findings, text, &look).iter().for_each(|drawn| eprintln!("{drawn}\n"));
}
