//! A shipyard of version 0.1 in the form of 0.2.
//!
//! The rules follow the upgrade path of Keptn's enhancement proposal 06. Where they depart from it, the output has a comment. The
//! user's reference is `docs/shipyard.md` under "From 0.1".

mod output;
mod stage;

use super::finding::{Finding, Report};
use super::levels::shipyards::{self, NEWEST, OLD_STAGE_FIELDS};
use super::levels::{self, Level};
use super::shipyard::{PROJECT_ANNOTATION, has_sequences, is_old_form};
use super::tree::{self, Node};
use super::values::{mapping, text};
use super::{MAX_BYTES, names};
use keelway_domain::shipyard::MAX_STAGES;
use stage::OldStage;
use std::collections::HashMap;

/// The result of a migration.
#[derive(Debug, Clone, PartialEq)]
pub struct Migrated {
    /// The shipyard in the form of 0.2; absent if there is an error among the findings.
    pub text: Option<String>,
    /// Mistakes in the text, and fields that are not carried over, by line.
    pub findings: Vec<Finding>,
}

/// A shipyard of 0.1 as far as it is carried over.
struct Old {
    name: Option<String>,
    project: Option<String>,
    stages: Vec<OldStage>,
    /// Fields at the top that are not carried over.
    dropped: Vec<String>,
}

/// Writes a shipyard of version 0.1 in the form of 0.2. `file` is how findings call the text.
pub fn migrate(source: &str, file: &str) -> Migrated {
    let mut report = Report::new(file, source);
    let mut migrated = None;
    if source.len() > MAX_BYTES {
        report.error_at(tree::START, "", format!("the file has {} bytes: at most {MAX_BYTES} (1 MiB) are read", source.len()));
    } else {
        let trees = tree::read(source, &mut report);
        match trees.as_slice() {
            [tree] => migrated = document(&tree.root, source, &mut report),
            [] if report.has_errors() => {}
            [] => report.error_at(tree::START, "", "holds no document: there is nothing to migrate".into()),
            more => {
                let message = format!("holds {} documents: put the shipyard into a file of its own", more.len());
                report.error(&more[1].root, "", message);
            }
        }
    }
    Migrated { text: migrated.filter(|_| !report.has_errors()), findings: report.finish() }
}

fn document(root: &Node, source: &str, report: &mut Report) -> Option<String> {
    let kind = root.get("kind").and_then(Node::scalar).unwrap_or("Shipyard");
    if names::nearest(kind, ["Shipyard"]).is_none() {
        let message = format!("{kind:?} is not migrated: only shipyards of version 0.1 are");
        report.error(root.get("kind").unwrap_or(root), "kind", message);
        return None;
    }
    let spec = root.get("spec").filter(|spec| spec.entries().is_some());
    let (stages, path) = match (spec.and_then(|spec| spec.get("stages")), root.get("stages")) {
        (Some(stages), _) => (stages, "spec.stages"),
        (None, Some(stages)) => (stages, "stages"),
        (None, None) => {
            report.error(root, "stages", "is missing: a shipyard of version 0.1 has at least `stages: [{name: dev}]`".into());
            return None;
        }
    };
    let old_form = is_old_form(root);
    let has_old_fields =
        |stage: &Node| stage.entries().unwrap_or_default().iter().any(|entry| OLD_STAGE_FIELDS.contains(&entry.key.as_str()));
    let mut in_old_form = stages.list().unwrap_or_default().iter().filter(|stage| has_old_fields(stage));
    match (old_form, in_old_form.next()) {
        (_, Some(stage)) if has_sequences(stages) => {
            let message = "stands in both forms: some stages have the fields of 0.1, others `sequences`; write all of them in one";
            report.error(stage, path, message.into());
            None
        }
        (Some((version, ..)), None) if has_sequences(stages) => Some(with_version(version, source)),
        (None, None) => {
            let message = "has no stage in the form of 0.1: there is nothing to migrate; check it with `keelway validate`";
            report.error(stages, path, message.into());
            None
        }
        _ => read(root, (stages, path), report).map(|old| output::write(&old)),
    }
}

/// The text with the newest version in place of an old one.
fn with_version(version: &Node, source: &str) -> String {
    let old = version.scalar().unwrap_or_default();
    let mut lines: Vec<String> = source.split('\n').map(str::to_owned).collect();
    let place = usize::try_from(version.at.line).unwrap_or(1).max(1) - 1;
    if let Some(line) = lines.get_mut(place) {
        let column = usize::try_from(version.at.column).unwrap_or(1).max(1) - 1;
        let start = line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
        let rest = line.split_off(start);
        line.push_str(&rest.replacen(old, NEWEST, 1));
    }
    lines.join("\n")
}

fn read(root: &Node, (stages, path): (&Node, &str), report: &mut Report) -> Option<Old> {
    levels::check(root, &shipyards::OLD_SHIPYARD, "", report);
    let metadata = mapping(root, "metadata", "metadata", report);
    let mut name = metadata.and_then(|metadata| text(metadata, "name", "metadata", report));
    let annotations = metadata.and_then(|metadata| mapping(metadata, "annotations", "metadata.annotations", report));
    let project = annotations.and_then(|annotations| text(annotations, PROJECT_ANNOTATION, "metadata.annotations", report));
    if let Some(project) = text(root, "project", "", report).filter(|project| !project.trim().is_empty()) {
        name = name.or(Some(format!("shipyard-{}", project.trim())));
    }
    let entries = levels::items(stages, path, &shipyards::OLD_STAGE, report)?;
    if entries.is_empty() {
        report.error(stages, path, "has no stage: write at least one, `- name: dev`".into());
    }
    if entries.len() > MAX_STAGES {
        report.error(stages, path, format!("has {} stages: at most {MAX_STAGES} are allowed", entries.len()));
        return None;
    }
    let mut seen = HashMap::new();
    let read = |(place, node): (usize, &&Node)| stage::read(node, &format!("{path}[{place}]"), &mut seen, report);
    let stages: Vec<Option<OldStage>> = entries.iter().enumerate().map(read).collect();
    let stages = stages.into_iter().collect::<Option<Vec<_>>>()?;
    Some(Old { name, project, stages, dropped: unknown(root, &shipyards::OLD_SHIPYARD) })
}

/// The fields of a mapping that its level does not have.
fn unknown(node: &Node, level: &Level) -> Vec<String> {
    let entries = node.entries().unwrap_or_default().iter();
    entries.filter(|entry| !level.has(&entry.key)).map(|entry| entry.key.clone()).collect()
}
