//! `kind: Shipyard`: stages, sequences and tasks.

use super::fields::{self, Level};
use super::finding::Report;
use super::names::{nearest, repaired};
use super::outline::{Outline, items};
use super::project::{duration, mapping, positive, text, timeout, with_example};
use super::tree::Node;
use super::triggers;
use keelway_domain::names::{NameError, RESERVED_TASK_NAMES, SequenceName, StageName, TaskName};
use keelway_domain::shipyard::{APPROVAL, EVALUATION, MAX_STAGES, MAX_TASKS, Sequence, Shipyard, Stage, Task};
use std::collections::HashMap;

/// The annotation that names the project a shipyard is for.
pub const PROJECT_ANNOTATION: &str = "keelway.dev/project";

const API_PREFIX: &str = "spec.keptn.sh/";
const NEWEST: &str = "spec.keptn.sh/0.2.3";
const MIGRATE: &str = "write each stage with `sequences` of `tasks` and `apiVersion: spec.keptn.sh/0.2.3`, as docs/shipyard.md shows under \"From 0.1\"";

/// A shipyard and the other contents of its document.
#[derive(Debug, Clone, PartialEq)]
pub struct ShipyardManifest {
    /// `metadata.name`, any text; often `shipyard-<project>`.
    pub metadata_name: Option<String>,
    /// `metadata.annotations["keelway.dev/project"]`: the project it is for.
    pub project_annotation: Option<String>,
    /// The process itself.
    pub shipyard: Shipyard,
    /// The document's own text: of a file with one document the whole file, to the byte.
    pub source: String,
}

pub fn read(root: &Node, source: &str, report: &mut Report) -> Option<ShipyardManifest> {
    if let Some((at, path, message)) = is_old_form(root) {
        report.error(at, path, message);
        return None;
    }
    fields::check(root, Level::Shipyard, "", report);
    version(root, report);
    let metadata = mapping(root, "metadata", "metadata", report);
    let (mut metadata_name, mut project_annotation) = (None, None);
    if let Some(metadata) = metadata {
        fields::check(metadata, Level::Metadata, "metadata", report);
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
                    "{text:?} is the older version, but the stages have sequences as from 0.2 on: write `apiVersion: {NEWEST}`; a shipyard really of 0.1: {MIGRATE}"
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

fn has_sequences(stages: &Node) -> bool {
    stages.list().unwrap_or_default().iter().any(|stage| stage.get("sequences").is_some())
}

/// Major and minor of `spec.keptn.sh/0.2.3`, `0.2`, `v0.2.3`.
fn numbers(text: &str) -> Option<(u64, u64)> {
    let text = text.trim();
    let text = text.strip_prefix(API_PREFIX).unwrap_or(text);
    let mut parts = text.strip_prefix('v').unwrap_or(text).split(['.', '-', '+']);
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next()?.parse().ok()?;
    Some((major, minor))
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
        Some((0, 2)) => (),
        Some((major, minor)) => {
            let message = format!("{major}.{minor} is a version not known here and is read like 0.2: write `{field}: {NEWEST}`");
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
    let spec = mapping(root, "spec", "spec", report);
    if let Some(spec) = spec {
        fields::check(spec, Level::Spec, "spec", report);
    }
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
    let items = items(node, path, "name: dev", report)?;
    if items.is_empty() {
        report.error(node, path, "has no stage: write at least one, `- name: dev`".into());
    }
    if items.len() > MAX_STAGES {
        report.error(node, path, format!("has {} stages: at most {MAX_STAGES} are allowed", items.len()));
        return None;
    }
    let (mut stages, mut outlines, mut seen) = (vec![], vec![], HashMap::new());
    for (i, item) in items.iter().enumerate() {
        stages.extend(stage(item, &format!("{path}[{i}]"), &mut seen, &mut outlines, report));
    }
    let names: Vec<String> = seen.into_keys().collect();
    triggers::check(&names, &outlines, report);
    Some(stages)
}

fn stage<'n>(
    node: &'n Node,
    path: &str,
    seen: &mut HashMap<String, u64>,
    outlines: &mut Vec<Outline<'n>>,
    report: &mut Report,
) -> Option<Stage> {
    entry(node, Level::Stage, path, report)?;
    fields::check(node, Level::Stage, path, report);
    for old in node.entries().unwrap_or_default().iter().filter(|entry| fields::OLD_STAGE_FIELDS.contains(&entry.key.as_str())) {
        let message = match node.get("sequences") {
            None => format!("is a field of the older form (0.1): {MIGRATE}"),
            Some(_) => "is a field of the older form (0.1) and does nothing here: leave it out, and write what it says under the `properties` of a task".into(),
        };
        report.error_at(old.at, format!("{path}.{}", old.key), message);
    }
    let written = name_of(node, Level::Stage, path, report);
    let name = written.and_then(|name| checked(node, name, StageName::new, (true, "-"), path, report));
    if let Some(written) = written {
        unique(node, written, "stage", "the shipyard", path, seen, report);
    }
    let mut sequences = vec![];
    let mut names = HashMap::new();
    let path = format!("{path}.sequences");
    if let Some(list) = node.get("sequences").filter(|list| !list.is_null()) {
        for (i, item) in items(list, &path, "name: delivery", report)?.iter().enumerate() {
            sequences.extend(sequence(item, written.unwrap_or_default(), &format!("{path}[{i}]"), &mut names, outlines, report));
        }
    }
    Some(Stage { name: name?, sequences })
}

fn sequence<'n>(
    node: &'n Node,
    stage: &str,
    path: &str,
    seen: &mut HashMap<String, u64>,
    outlines: &mut Vec<Outline<'n>>,
    report: &mut Report,
) -> Option<Sequence> {
    entry(node, Level::Sequence, path, report)?;
    fields::check(node, Level::Sequence, path, report);
    let written = name_of(node, Level::Sequence, path, report);
    let name = written.and_then(|name| checked(node, name, SequenceName::new, (false, "-_"), path, report));
    if let Some(written) = written {
        unique(node, written, "sequence", "its stage", path, seen, report);
    }
    let timeout = positive(node, "timeout", path, report);
    let tasks = tasks(node, &format!("{path}.tasks"), report);
    let triggered_on = triggers::read(node, &format!("{path}.triggeredOn"), report);
    let names = |node: &Node| node.get("name").and_then(Node::scalar).map(str::to_owned);
    let task_names = node.get("tasks").and_then(Node::list).unwrap_or_default().iter().filter_map(names).collect();
    let sequence = written.unwrap_or_default().to_owned();
    outlines.push(Outline { stage: stage.to_owned(), sequence, tasks: task_names, node, path: path.to_owned() });
    Some(Sequence { name: name?, triggered_on: triggered_on?, tasks: tasks?, timeout })
}

fn tasks(sequence: &Node, path: &str, report: &mut Report) -> Option<Vec<Task>> {
    let Some(list) = sequence.get("tasks").filter(|list| !list.is_null()) else {
        let at = sequence.get("tasks").unwrap_or(sequence);
        report.error(
            at,
            path,
            "is missing: a sequence needs at least one task, `- name: deployment` in a list under `tasks:`".into(),
        );
        return None;
    };
    let items = items(list, path, "name: deployment", report)?;
    if items.is_empty() {
        report.error(list, path, "is empty: a sequence needs at least one task, `- name: deployment`".into());
        return None;
    }
    if items.len() > MAX_TASKS {
        report.error(
            list,
            path,
            format!("has {} tasks: at most {MAX_TASKS} are allowed, divide them among sequences", items.len()),
        );
        return None;
    }
    let tasks = items.iter().enumerate().map(|(i, item)| task(item, &format!("{path}[{i}]"), report));
    // Every task is read before the first refused one decides.
    tasks.collect::<Vec<_>>().into_iter().collect()
}

fn task(node: &Node, path: &str, report: &mut Report) -> Option<Task> {
    entry(node, Level::Task, path, report)?;
    fields::check(node, Level::Task, path, report);
    let written = name_of(node, Level::Task, path, report);
    let name = written.and_then(|name| checked(node, name, TaskName::new, (false, "-_"), path, report));
    let properties = mapping(node, "properties", &format!("{path}.properties"), report);
    match written {
        Some(APPROVAL) => approval(node, properties, path, report),
        Some(EVALUATION) => evaluation(node, properties, path, report),
        _ => (),
    }
    Some(Task {
        triggered_after: duration(node, "triggeredAfter", path, report),
        properties: properties.map(Node::to_object).unwrap_or_default(),
        start_deadline: positive(node, "startDeadline", path, report),
        timeout: timeout(node, "timeout", path, report),
        name: name?,
    })
}

fn approval(task: &Node, properties: Option<&Node>, path: &str, report: &mut Report) {
    let given = |key: &str| properties.and_then(|properties| properties.get(key));
    for key in ["pass", "warning"] {
        let Some(value) = given(key) else { continue };
        let text = value.scalar().unwrap_or_default();
        if !matches!(text, "automatic" | "manual") {
            let meant = nearest(text, ["automatic", "manual"]).map_or("`automatic` or `manual`".into(), |near| format!("`{near}`"));
            let message = format!("{text:?} is not an approval strategy: write {meant}");
            report.error(value, format!("{path}.properties.{key}"), message);
        }
    }
    if given("pass").is_none() && given("warning").is_none() {
        let message = "has no strategy, so nobody is asked (Keptn asked): write `pass: manual` and `warning: manual` under `properties`, or `automatic` to say so";
        report.warning(task, path, message.into());
    }
}

fn evaluation(task: &Node, properties: Option<&Node>, path: &str, report: &mut Report) {
    let given = |key: &str| properties.and_then(|properties| properties.get(key));
    if let Some(properties) = properties {
        positive(properties, "timeframe", &format!("{path}.properties"), report);
    }
    if ["timeframe", "start", "end"].iter().all(|key| given(key).is_none()) {
        let message = "names no timeframe: unless the trigger or an earlier task gives one, the last 5 minutes are evaluated; write `timeframe: 5m` under `properties`";
        report.warning(task, path, message.into());
    }
}

/// An entry of a list must be a mapping.
fn entry(node: &Node, level: Level, path: &str, report: &mut Report) -> Option<()> {
    if node.entries().is_some() {
        return Some(());
    }
    let remedy = match node.scalar() {
        Some(text) if is_name(text) => format!("write `- name: {text}`"),
        _ if node.is_null() => "take out the `-`, or write a `name` behind it".into(),
        _ => "write its fields behind the `-`, beginning with `name`".into(),
    };
    report.error(node, path, format!("is {}, not {}: {remedy}", node.what(), level.what()));
    None
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

fn name_of<'n>(node: &'n Node, level: Level, path: &str, report: &mut Report) -> Option<&'n str> {
    let name = node.get("name");
    let text = name.and_then(Node::scalar);
    if text.is_none() {
        let message = match name.filter(|name| !name.is_null()) {
            Some(name) => format!("is {}, not a name: write one word behind `name:`", name.what()),
            None => format!("is missing: {} needs a name; write `name:` and one word", level.what()),
        };
        report.error(name.filter(|name| !name.is_null()).unwrap_or(node), format!("{path}.name"), message);
    }
    text
}

/// A name by its rule; the refusal suggests one that would do.
fn checked<N>(
    node: &Node,
    name: &str,
    new: impl Fn(String) -> Result<N, NameError>,
    (lower, separators): (bool, &str),
    path: &str,
    report: &mut Report,
) -> Option<N> {
    new(name.to_owned())
        .map_err(|error| {
            let other = if RESERVED_TASK_NAMES.contains(&name) { None } else { repaired(name, lower, separators) };
            let example = other.filter(|other| other != name && new(other.clone()).is_ok());
            let at = node.get("name").unwrap_or(node);
            report.error(at, format!("{path}.name"), with_example(error.to_string(), example));
        })
        .ok()
}

fn unique(node: &Node, name: &str, what: &str, scope: &str, path: &str, seen: &mut HashMap<String, u64>, report: &mut Report) {
    let at = node.get("name").unwrap_or(node);
    match seen.get(name) {
        Some(line) => {
            let message =
                format!("{what} {name:?} stands twice in {scope}, first in line {line}: give this one another name, or join them");
            report.error(at, format!("{path}.name"), message);
        }
        None => {
            seen.insert(name.to_owned(), at.at.line);
        }
    }
}
