//! `shipyard validate`: everything wrong with manifests, offline.

use super::files;
use crate::args::Format;
use crate::error::CliError;
use crate::findings::draw;
use crate::output::{say, say_data};
use crate::terminal::look;
use keelway_wire::manifest::{self, Document, Parsed, Severity};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Reads every file, tells every finding.
///
/// # Errors
/// Exit code 2 when a file cannot be read, else 1 when one is refused.
pub fn validate(paths: &[PathBuf], format: Format) -> Result<(), CliError> {
    let (mut unreadable, mut refused) = (false, false);
    let (mut told, mut findings): (Vec<Value>, Vec<Value>) = (vec![], vec![]);
    for path in paths {
        let files = files::expand(path).and_then(|files| files.iter().map(|file| files::read(file)).collect::<Result<Vec<_>, _>>());
        let files = match files {
            Ok(files) => files,
            Err(error) => {
                eprintln!("error: {error}");
                unreadable = true;
                continue;
            }
        };
        for file in files {
            let parsed = manifest::parse(&file.text, &file.name);
            refused |= parsed.refused();
            match format {
                Format::Table | Format::Wide => {
                    show(&parsed, &file.text);
                    say(&summary(&parsed, &file.name))?;
                }
                Format::Json | Format::Yaml => {
                    let documents: Vec<Value> = parsed.documents.iter().map(|document| json!({"kind": document.kind()})).collect();
                    told.push(json!({"file": file.name, "refused": parsed.refused(), "documents": documents}));
                    findings.extend(parsed.findings.iter().map(|finding| json!(finding)));
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

/// Draws the findings on standard error.
pub fn show(parsed: &Parsed, text: &str) {
    for finding in &parsed.findings {
        eprintln!("{}\n", draw(finding, text, look().colours));
    }
}

fn summary(parsed: &Parsed, name: &str) -> String {
    let count = |severity| parsed.findings.iter().filter(|finding| finding.severity == severity).count();
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let found = [(count(Severity::Error), "error"), (count(Severity::Warning), "warning")];
    let found: Vec<String> = found.iter().filter(|(n, _)| *n > 0).map(|(n, what)| plural(*n, what)).collect();
    let held: Vec<String> = parsed.documents.iter().map(held).collect();
    match (parsed.refused(), found.is_empty()) {
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
