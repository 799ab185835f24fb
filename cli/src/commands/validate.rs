//! `validate`: what is wrong with files of any form.

use super::files::{self, Text};
use super::shipyard::draw_all;
use crate::args::Format;
use crate::error::CliError;
use crate::output::{say, say_data};
use crate::words::count;
use keelway_wire::manifest::{self, Checked, Document, Resource, Severity};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Reads every file, tells every finding.
///
/// # Errors
/// Exit code 2 when a file cannot be read, else 1 when one is refused.
pub fn validate(paths: &[PathBuf], format: Format) -> Result<(), CliError> {
    let (mut unreadable, mut refused) = (false, false);
    let (mut told, mut findings): (Vec<Value>, Vec<Value>) = (vec![], vec![]);
    let read = paths.iter().map(|path| {
        let files = files::expand(path)?;
        files.iter().map(|file| files::read(file)).collect::<Result<Vec<Text>, CliError>>()
    });
    let read: Vec<Result<Vec<Text>, CliError>> = read.collect();
    let known = indicators(read.iter().flatten().flatten());
    for files in read {
        let files = match files {
            Ok(files) => files,
            Err(error) => {
                eprintln!("error: {error}");
                unreadable = true;
                continue;
            }
        };
        for file in files {
            let checked = manifest::check(&file.text, &file.name, known.as_ref());
            refused |= checked.refused();
            match format {
                Format::Table | Format::Wide | Format::Name => {
                    draw_all(checked.findings(), &file.text);
                    say(&summary(&checked, &file.name))?;
                }
                Format::Json | Format::Yaml => {
                    let documents: Vec<Value> = kinds(&checked).iter().map(|kind| json!({"kind": kind})).collect();
                    told.push(json!({"file": file.name, "refused": checked.refused(), "documents": documents}));
                    findings.extend(checked.findings().iter().map(|finding| json!(finding)));
                }
            }
        }
    }
    if format.is_data() {
        say_data(&json!({"files": told, "findings": findings}), format)?;
    }
    match (unreadable, refused) {
        (true, _) => Err(CliError::Said(2)),
        (_, true) => Err(CliError::Said(1)),
        _ => Ok(()),
    }
}

/// The indicators of all files of indicators, if there is one.
fn indicators<'t>(files: impl Iterator<Item = &'t Text>) -> Option<BTreeSet<String>> {
    let mut known: Option<BTreeSet<String>> = None;
    for file in files.filter(|file| Resource::of(&file.text, &file.name) == Some(Resource::Indicators)) {
        if let Checked::Indicators(Some(queries), _) = manifest::check(&file.text, &file.name, None) {
            known.get_or_insert_default().extend(queries.into_keys());
        }
    }
    known
}

fn kinds(checked: &Checked) -> Vec<&'static str> {
    match checked {
        Checked::Manifests(parsed) => parsed.documents.iter().map(Document::kind).collect(),
        Checked::Objectives(read, _) => read.iter().map(|_| "SLO").collect(),
        Checked::Indicators(read, _) => read.iter().map(|_| "SLI").collect(),
    }
}

fn summary(checked: &Checked, name: &str) -> String {
    let of = |severity| checked.findings().iter().filter(|finding| finding.severity == severity).count();
    let found = [(of(Severity::Error), "error"), (of(Severity::Warning), "warning")];
    let found: Vec<String> = found.iter().filter(|(n, _)| *n > 0).map(|(n, what)| count(*n, what)).collect();
    let held: Vec<String> = match checked {
        Checked::Manifests(parsed) => parsed.documents.iter().map(held).collect(),
        Checked::Objectives(read, _) => read.iter().map(|slo| count(slo.objectives.len(), "objective")).collect(),
        Checked::Indicators(read, _) => read.iter().map(|queries| count(queries.len(), "indicator")).collect(),
    };
    match (checked.refused(), found.is_empty()) {
        (true, _) => format!("{name}: refused: {}", found.join(", ")),
        (false, true) => format!("{name}: fine: {}", held.join(", ")),
        (false, false) => format!("{name}: fine, {}: {}", found.join(", "), held.join(", ")),
    }
}

fn held(document: &Document) -> String {
    match document {
        Document::Shipyard(manifest) => {
            let stages = &manifest.shipyard.stages;
            let stages: Vec<String> = stages.iter().map(|stage| format!("{} ({})", stage.name, sequences(stage))).collect();
            format!("shipyard with {}", stages.join(", "))
        }
        other => other.named(),
    }
}

fn sequences(stage: &keelway_domain::shipyard::Stage) -> String {
    let names: Vec<&str> = stage.sequences.iter().map(|sequence| sequence.name.as_str()).collect();
    if names.is_empty() { "no sequence".into() } else { names.join(", ") }
}
