//! `kind: Shipyard`: stages, sequences and tasks.

use super::finding::Report;
use super::levels;
use super::levels::shipyards::{self, NEWEST, OLD_STAGE_FIELDS};
use super::named::{checked, entry, name_of, unique};
use super::outline::Outline;
use super::tree::Node;
use super::values::{flag, mapping, positive, text};
use super::{chains, tasks, triggers, windows};
use keelway_domain::names::{SequenceName, StageName};
use keelway_domain::shipyard::{MAX_STAGES, Sequence, Shipyard, Stage};
use std::collections::HashMap;

/// The annotation that names the project a shipyard is for.
pub const PROJECT_ANNOTATION: &str = "keelway.dev/project";

const API_PREFIX: &str = "spec.keptn.sh/";
const MIGRATE: &str = "run `keelway shipyard migrate FILE`, which prints it in the form of 0.2";

/// A shipyard and the other contents of its document.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "named as the fields of the manifest are")]
pub struct ShipyardManifest {
    /// `metadata.name`, any text; often `shipyard-<project>`.
    pub metadata_name: Option<String>,
    /// `metadata.annotations["keelway.dev/project"]`: the project it is for.
    pub project_annotation: Option<String>,
    pub shipyard: Shipyard,
    /// The document's own text: of a file with one document the whole file, to the byte.
    pub source: String,
}

pub fn read(root: &Node, source: &str, report: &mut Report) -> Option<ShipyardManifest> {
    let old = is_old_form(root);
    let refused = old.is_some();
    if let Some((at, path, message)) = old {
        report.error(at, path, message);
        // The bare form is another language. Under a version, the rest may be told as well.
        root.get("spec")?;
    }
    levels::check(root, &shipyards::SHIPYARD, "", report);
    if !refused {
        version(root, report);
    }
    let (mut metadata_name, mut project_annotation) = (None, None);
    if let Some((metadata, _)) = levels::mapping(root, "metadata", &shipyards::METADATA, "", report) {
        metadata_name = text(metadata, "name", "metadata", report);
        if let Some(annotations) = mapping(metadata, "annotations", "metadata.annotations", report) {
            project_annotation = text(annotations, PROJECT_ANNOTATION, "metadata.annotations", report);
        }
    }
    let stages = stages(root, report)?;
    Some(ShipyardManifest { metadata_name, project_annotation, shipyard: Shipyard { stages }, source: source.to_owned() })
}

/// Whether this is a shipyard of version 0.1, and what to say then.
pub fn is_old_form(root: &Node) -> Option<(&Node, &'static str, String)> {
    for field in ["apiVersion", "version"] {
        let Some(node) = root.get(field) else { continue };
        let Some(text) = node.scalar() else { continue };
        if matches!(numbers(text), Some((0, 0 | 1))) {
            let stages = root.get("spec").and_then(|spec| spec.get("stages"));
            let message = match stages.filter(|stages| has_sequences(stages)) {
                Some(_) => format!(
                    "{text:?} is the older version, but the stages have sequences as from 0.2 on: write `apiVersion: {NEWEST}`, or {MIGRATE}"
                ),
                None => format!("{text:?} is the older version, which is not taken: {MIGRATE}"),
            };
            return Some((node, field, message));
        }
    }
    let stages = root.get("stages")?;
    let bare = ["apiVersion", "version", "kind", "spec"].iter().all(|field| root.get(field).is_none());
    let message = || format!("`stages` at the top is a shipyard's older form (0.1), which is not taken: {MIGRATE}");
    (bare && !has_sequences(stages)).then(|| (stages, "stages", message()))
}

/// Whether any stage is written as from 0.2 on.
pub fn has_sequences(stages: &Node) -> bool {
    stages.list().unwrap_or_default().iter().any(|stage| stage.get("sequences").is_some())
}

/// Major and minor of `spec.keptn.sh/0.2.3`, `0.2`, `v0.2.x`, and of `1`: only below 1 is a major version too little.
fn numbers(text: &str) -> Option<(u64, u64)> {
    let text = text.trim();
    let text = text.strip_prefix(API_PREFIX).unwrap_or(text);
    let mut parts = text.strip_prefix('v').unwrap_or(text).split(['.', '-', '+']);
    let major = parts.next()?.parse().ok()?;
    match parts.next() {
        None => Some((major, 0)).filter(|_| major > 0),
        Some(minor) => Some((major, minor.parse().ok()?)),
    }
}

/// Whether a version is written as it should be: two or three numbers, with or without the prefix.
fn is_plain(text: &str) -> bool {
    let parts: Vec<&str> = text.strip_prefix(API_PREFIX).unwrap_or(text).split('.').collect();
    (2..=3).contains(&parts.len()) && parts.iter().all(|part| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit()))
}

fn version(root: &Node, report: &mut Report) {
    let given = ["apiVersion", "version"].into_iter().find_map(|field| root.get(field).map(|node| (field, node)));
    let Some((field, node)) = given.filter(|(_, node)| !node.is_null()) else {
        let at = given.map_or(root, |(_, node)| node);
        report.error(at, "apiVersion", format!("is missing: write `apiVersion: {NEWEST}`"));
        return;
    };
    let text = node.scalar().unwrap_or_default();
    match numbers(text) {
        Some((0, 2)) if is_plain(text) => (),
        Some((0, 2)) => {
            report.warning(node, field, format!("{text:?} is no version, and is read like 0.2: write `{field}: {NEWEST}`"));
        }
        Some(_) => {
            let number = text.trim().trim_start_matches(API_PREFIX);
            let message = format!("{number} is a version not known here and is read like 0.2: write `{field}: {NEWEST}`");
            report.warning(node, field, message);
        }
        None => report.error(node, field, format!("{text:?} is not a shipyard's version: write `{field}: {NEWEST}`")),
    }
    if let (Some(_), Some(other)) = (root.get("apiVersion"), root.get("version")) {
        report.warning(other, "version", "is ignored beside `apiVersion`: leave it out".into());
    }
}

/// The stages, at any position; stages in the wrong place are checked as well.
fn stages(root: &Node, report: &mut Report) -> Option<Vec<Stage>> {
    let spec = levels::mapping(root, "spec", &shipyards::SPEC, "", report).map(|(spec, _)| spec);
    let (node, path) = match (spec.and_then(|spec| spec.get("stages")), root.get("stages")) {
        (Some(stages), _) => (stages, "spec.stages"),
        (None, Some(stages)) => (stages, "stages"),
        (None, None) => {
            let usable = root.get("spec").is_none_or(|spec| spec.is_null() || spec.entries().is_some());
            if usable {
                let at = root.get("spec").unwrap_or(root);
                report.error(
                    at,
                    "spec.stages",
                    "is missing: write at least one stage, `- name: dev`, in a list under `stages:`".into(),
                );
            }
            return None;
        }
    };
    let items = levels::items(node, path, &shipyards::STAGE, report)?;
    if items.is_empty() {
        report.error(node, path, "has no stage: write at least one, `- name: dev`".into());
    }
    if items.len() > MAX_STAGES {
        report.error(node, path, format!("has {} stages: at most {MAX_STAGES} are allowed", items.len()));
        return None;
    }
    let (mut stages, mut outlines, mut seen) = (vec![], vec![], HashMap::new());
    let old = is_old_form(root).is_some();
    for (i, item) in items.into_iter().enumerate() {
        let path = format!("{path}[{i}]");
        // A document that is refused for its older form is not told so again for every field.
        if !old || item.get("sequences").is_some() {
            old_fields(item, &path, report);
        }
        stages.extend(stage(item, &path, &mut seen, &mut outlines, report));
    }
    let names: Vec<String> = seen.into_keys().collect();
    chains::check(&names, &outlines, report);
    Some(stages)
}

fn old_fields(stage: &Node, path: &str, report: &mut Report) {
    for old in stage.entries().unwrap_or_default().iter().filter(|entry| OLD_STAGE_FIELDS.contains(&entry.key.as_str())) {
        let message = match stage.get("sequences") {
            None => format!("is a field of the older form (0.1): {MIGRATE}"),
            Some(_) => "is a field of the older form (0.1) and does nothing here: leave it out, and write what it says under the `properties` of a task".into(),
        };
        report.error_at(old.at, format!("{path}.{}", old.key), message);
    }
}

fn stage<'n>(
    node: &'n Node,
    path: &str,
    seen: &mut HashMap<String, u64>,
    outlines: &mut Vec<Outline<'n>>,
    report: &mut Report,
) -> Option<Stage> {
    entry(node, &shipyards::STAGE, path, report)?;
    levels::check(node, &shipyards::STAGE, path, report);
    let written = name_of(node, &shipyards::STAGE, path, report);
    let name = written.and_then(|name| checked(node, name, StageName::new, (true, "-"), path, report));
    if let Some(written) = written {
        unique(node, written, "stage", "the shipyard", path, seen, report);
    }
    let windows = windows::read(node, path, report);
    let mut sequences = vec![];
    let mut names = HashMap::new();
    // `workflows` is refused, but its entries are checked.
    let written_as = ["sequences", "workflows"].into_iter().find(|field| node.get(field).is_some_and(|list| !list.is_null()));
    if let Some((field, list)) = written_as.and_then(|field| Some((field, node.get(field)?))) {
        let path = format!("{path}.{field}");
        for (i, item) in levels::items(list, &path, &shipyards::SEQUENCE, report)?.into_iter().enumerate() {
            sequences.extend(sequence(item, written.unwrap_or_default(), &format!("{path}[{i}]"), &mut names, outlines, report));
        }
    }
    Some(Stage { name: name?, windows, sequences })
}

fn sequence<'n>(
    node: &'n Node,
    stage: &str,
    path: &str,
    seen: &mut HashMap<String, u64>,
    outlines: &mut Vec<Outline<'n>>,
    report: &mut Report,
) -> Option<Sequence> {
    entry(node, &shipyards::SEQUENCE, path, report)?;
    levels::check(node, &shipyards::SEQUENCE, path, report);
    let written = name_of(node, &shipyards::SEQUENCE, path, report);
    let name = written.and_then(|name| checked(node, name, SequenceName::new, (false, "-_"), path, report));
    if let Some(written) = written {
        unique(node, written, "sequence", "its stage", path, seen, report);
    }
    let timeout = positive(node, "timeout", path, report);
    let supersede = flag(node, "supersede", path, report);
    let said = node.get("ignoreWindows").is_some_and(|said| !said.is_null());
    let ignore_windows = said.then(|| flag(node, "ignoreWindows", path, report));
    let tasks = tasks::read(node, &format!("{path}.tasks"), report);
    let triggered_on = triggers::read(node, &format!("{path}.triggeredOn"), report);
    outlines.push(Outline::of(stage, written.unwrap_or_default(), node, path));
    Some(Sequence { name: name?, triggered_on: triggered_on?, tasks: tasks?, timeout, supersede, ignore_windows })
}
