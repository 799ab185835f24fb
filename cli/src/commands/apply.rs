//! `apply`: manifests from files into force.

use super::files::{self, Text};
use super::shipyard::{say_changes, show};
use crate::address::Address;
use crate::api::{Api, Body};
use crate::args::Apply;
use crate::error::CliError;
use crate::output::say;
use keelway_domain::names::ProjectName;
use keelway_wire::http::{Applied, AppliedDocument};
use keelway_wire::manifest::{self, Document, Parameters};
use reqwest::Method;

/// Reads and checks everything first; only then sends anything, files that declare projects before the others.
///
/// # Errors
/// A file that cannot be read, findings, or the API's refusal.
pub async fn apply(api: impl Fn() -> Result<Api, CliError>, what: &Apply) -> Result<(), CliError> {
    let mut texts: Vec<(Text, Vec<Document>)> = vec![];
    let parameters = parameters(&what.parameters)?;
    let (mut refused, mut templates) = (0, 0);
    for path in &what.files {
        for file in files::expand(path)? {
            let mut file = files::read(&file)?;
            let parsed = manifest::parse_with(&file.text, &file.name, &parameters);
            show(&parsed, &file.text);
            refused += usize::from(parsed.refused());
            templates += usize::from(parsed.has_template);
            // Only this command knows the values: what is sent has them filled in.
            if parsed.has_template && !parameters.is_empty() {
                file.text = parsed.sources.join("\n---\n");
            }
            texts.push((file, parsed.documents));
        }
    }
    if refused > 0 {
        let what = if refused == 1 { "one file is".into() } else { format!("{refused} files are") };
        return Err(CliError::Failed(format!("{what} refused for the reasons above: nothing was sent; mend them and apply again")));
    }
    if let Some(name) = parameters.keys().next().filter(|_| templates == 0) {
        return Err(CliError::Usage(format!("--param {name}: the files hold no Template that has parameters: leave it out")));
    }
    let shipyards = |documents: &[Document]| documents.iter().filter(|document| matches!(document, Document::Shipyard(_))).count();
    let together: usize = texts.iter().map(|(_, documents)| shipyards(documents)).sum();
    if what.if_match.is_some() && together != 1 {
        let text =
            format!("--if-match names the revision that one shipyard replaces, but the files have {together}: apply one at a time");
        return Err(CliError::Usage(text));
    }
    let declares = |documents: &[Document]| documents.iter().any(|document| matches!(document, Document::Project(_)));
    texts.sort_by_key(|(_, documents)| !declares(documents));
    let api = match api() {
        Err(error) if what.dry_run => {
            eprintln!("not compared with what is in force: {error}");
            return texts.iter().try_for_each(|(file, documents)| say(&not_compared(file, documents)));
        }
        api => api?,
    };
    let declared: Vec<&str> = texts.iter().flat_map(|(_, documents)| documents).filter_map(project).collect();
    for (file, documents) in &texts {
        let replaces = what.if_match.as_deref().filter(|_| shipyards(documents) == 1);
        // Versions of a config and revisions of a shipyard tell who changed it.
        let told = |document: &Document| matches!(document, Document::DeploymentConfig(_) | Document::Shipyard(_));
        let by = std::env::var("USER").ok().filter(|_| documents.iter().any(told)).unwrap_or_default();
        let dry_run = if what.dry_run { "true" } else { "" };
        let query = [("project", what.project.as_ref().map_or("", ProjectName::as_str)), ("by", &by), ("dryRun", dry_run)];
        match api.call(Method::POST, &["apply"], &query, Body::Manifest(&file.text, replaces)).await {
            Ok(applied) => tell(&applied)?,
            // A project that the same files declare is not there yet.
            Err(error) if what.dry_run && error.status() == Some(404) && !declared.is_empty() => {
                say(&not_compared(file, documents))?;
            }
            Err(error) => {
                let name = if file.name == "-" { "standard input" } else { &file.name };
                return Err(CliError::Failed(format!("{name} is not applied: {error}")));
            }
        }
    }
    Ok(())
}

/// The values of `--param`, each given once.
fn parameters(given: &[(String, String)]) -> Result<Parameters, CliError> {
    let mut parameters = Parameters::new();
    for (name, value) in given {
        if parameters.insert(name.clone(), value.clone()).is_some() {
            return Err(CliError::Usage(format!("--param {name} is given twice: give it once")));
        }
    }
    Ok(parameters)
}

/// The name of a project that a document declares.
fn project(document: &Document) -> Option<&str> {
    if let Document::Project(project) = document { Some(project.name.as_str()) } else { None }
}

fn not_compared(file: &Text, documents: &[Document]) -> String {
    let documents: Vec<String> = documents.iter().map(Document::named).collect();
    format!("{}: fine, not sent: {}", file.name, documents.join(", "))
}

/// What became of each document, and what differs from what was in force.
fn tell(applied: &Applied) -> Result<(), CliError> {
    for document in &applied.applied {
        say(&line(document, applied.dry_run))?;
        say_changes(document)?;
    }
    Ok(())
}

fn line(document: &AppliedDocument, dry_run: bool) -> String {
    let changed = match (document.changed, dry_run) {
        (false, _) => "unchanged",
        (true, true) => "would be applied",
        (true, false) => "applied",
    };
    let word = if document.changed && dry_run { "as revision" } else { "revision" };
    let revision = document.revision.as_ref().map(|revision| format!(" {word} {revision}")).unwrap_or_default();
    match document.kind.as_str() {
        "Project" => format!("project {}: {changed}", document.name),
        kind @ ("Shipyard" | "Remediation" | "Schedule") => {
            format!("{} of project {}: {changed}{revision}", kind.to_lowercase(), document.project)
        }
        kind => {
            let at = Address { namespace: document.project.clone(), name: document.name.clone() };
            format!("{} {at}: {changed}", manifest::noun(kind))
        }
    }
}
