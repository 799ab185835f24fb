//! `apply`: manifests from files into force.

use super::files::{self, Text};
use super::shipyard::show;
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
    if what.dry_run {
        return texts.iter().try_for_each(|(file, documents)| {
            let documents: Vec<String> = documents.iter().map(Document::named).collect();
            say(&format!("{}: fine, not sent: {}", file.name, documents.join(", ")))
        });
    }
    let api = api()?;
    for (file, documents) in &texts {
        let replaces = what.if_match.as_deref().filter(|_| shipyards(documents) == 1);
        // Versions of a config tell who changed it.
        let deploys = documents.iter().any(|document| matches!(document, Document::DeploymentConfig(_)));
        let by = std::env::var("USER").ok().filter(|_| deploys).unwrap_or_default();
        let applied = send(&api, file, (what.project.as_ref(), &by), replaces).await?;
        for document in &applied.applied {
            say(&line(document))?;
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

async fn send(
    api: &Api,
    file: &Text,
    (project, by): (Option<&ProjectName>, &str),
    replaces: Option<&str>,
) -> Result<Applied, CliError> {
    let project = project.map_or("", ProjectName::as_str);
    match api.call(Method::POST, &["apply"], &[("project", project), ("by", by)], Body::Manifest(&file.text, replaces)).await {
        Ok(applied) => Ok(applied),
        Err(error) => {
            let name = if file.name == "-" { "standard input" } else { &file.name };
            Err(CliError::Failed(format!("{name} is not applied: {error}")))
        }
    }
}

fn line(document: &AppliedDocument) -> String {
    let changed = if document.changed { "applied" } else { "unchanged" };
    let revision = document.revision.as_ref().map(|revision| format!(" revision {revision}")).unwrap_or_default();
    match document.kind.as_str() {
        "Project" => format!("project {}: {changed}", document.name),
        "Pipeline" | "Cluster" => format!("{} {}/{}: {changed}", document.kind.to_lowercase(), document.project, document.name),
        "DeploymentConfig" => format!("deployment config {}/{}: {changed}", document.project, document.name),
        "ArtifactSource" => format!("artifact source {}/{}: {changed}", document.project, document.name),
        "GitHost" => format!("git host {}: {changed}", document.name),
        kind => format!("{} of project {}: {changed}{revision}", kind.to_lowercase(), document.project),
    }
}
