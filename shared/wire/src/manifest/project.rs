//! `kind: Project`: a project's name and what differs from the installation's defaults.

use super::border;
use super::fields::{self, Level};
use super::finding::Report;
use super::names::repaired;
use super::tree::Node;
use keelway_domain::border::{Consents, Policy, Update};
use keelway_domain::names::ProjectName;
use keelway_domain::time::Span;

/// The `apiVersion` of the kinds Keelway defines itself.
pub const API_VERSION: &str = "keelway.dev/v1";

/// A project as its manifest declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectManifest {
    /// `metadata.name`
    pub name: ProjectName,
    /// `spec.description`: for people.
    pub description: Option<String>,
    /// `spec.startDeadline`: how long executors have to answer a task's trigger.
    pub start_deadline: Option<Span>,
    /// `spec.taskTimeout`: how long a started task may take; 0 = for ever.
    pub task_timeout: Option<Span>,
    /// `spec.consents`: what others may do here.
    pub consents: Consents,
    /// `spec.policy`: what it may use of the installation. Only administrators of the installation may write it.
    pub policy: Update<Option<Policy>>,
}

pub fn read(root: &Node, _: &str, report: &mut Report) -> Option<ProjectManifest> {
    fields::check(root, Level::Project, "", report);
    let version = root.get("apiVersion");
    match version.and_then(Node::scalar) {
        Some(API_VERSION) => (),
        Some(other) => {
            let at = version.unwrap_or(root);
            report.error(at, "apiVersion", format!("{other:?} is not a version of Project: write `apiVersion: {API_VERSION}`"));
        }
        None => report.error(version.unwrap_or(root), "apiVersion", format!("is missing: write `apiVersion: {API_VERSION}`")),
    }
    let metadata = mapping(root, "metadata", "metadata", report);
    if let Some(metadata) = metadata {
        fields::check(metadata, Level::ProjectMetadata, "metadata", report);
    }
    let name = project_name(root, metadata, report);
    let (mut description, mut start_deadline, mut task_timeout) = (None, None, None);
    let (mut consents, mut policy) = (Consents::default(), Update::Keep);
    if let Some(spec) = mapping(root, "spec", "spec", report) {
        fields::check(spec, Level::ProjectSpec, "spec", report);
        description = text(spec, "description", "spec", report);
        start_deadline = positive(spec, "startDeadline", "spec", report);
        task_timeout = timeout(spec, "taskTimeout", "spec", report);
        consents = border::consents(spec, report);
        policy = border::policy(spec, report);
    }
    Some(ProjectManifest { name: name?, description, start_deadline, task_timeout, consents, policy })
}

fn project_name(root: &Node, metadata: Option<&Node>, report: &mut Report) -> Option<ProjectName> {
    let at = metadata.unwrap_or(root);
    let name = metadata.and_then(|metadata| metadata.get("name"));
    let Some(text) = name.and_then(Node::scalar) else {
        report.error(name.unwrap_or(at), "metadata.name", "is missing: name the project, for example `name: shop`".into());
        return None;
    };
    ProjectName::new(text)
        .map_err(|error| {
            let example = repaired(text, true, "-").filter(|name| ProjectName::new(name.as_str()).is_ok());
            report.error(name.unwrap_or(at), "metadata.name", with_example(error.to_string(), example));
        })
        .ok()
}

/// A refusal with a name that would do.
pub fn with_example(refusal: String, example: Option<String>) -> String {
    match example {
        Some(example) => format!("{refusal}, for example `{example}`"),
        None => refusal,
    }
}

/// The mapping under `field`; `None` when absent or empty, with a finding when it is something else.
pub fn mapping<'n>(node: &'n Node, field: &str, path: &str, report: &mut Report) -> Option<&'n Node> {
    let value = node.get(field).filter(|value| !value.is_null())?;
    if value.entries().is_none() {
        let remedy = match value.list() {
            Some(_) => "leave out the `-` in front of its fields",
            None => "write its fields below it, indented",
        };
        report.error(value, path, format!("is {}, not a mapping: {remedy}", value.what()));
        return None;
    }
    Some(value)
}

/// The scalar under `field`, as written.
pub fn text(node: &Node, field: &str, path: &str, report: &mut Report) -> Option<String> {
    let value = node.get(field).filter(|value| !value.is_null())?;
    if value.scalar().is_none() {
        report.error(
            value,
            format!("{path}.{field}"),
            format!("is {}, not a text: write one value behind `{field}:`", value.what()),
        );
    }
    value.scalar().map(str::to_owned)
}

/// The duration under `field`.
pub fn duration(node: &Node, field: &str, path: &str, report: &mut Report) -> Option<Span> {
    let written = text(node, field, path, report)?;
    let value = node.get(field)?;
    Span::parse(written.trim())
        .map_err(|error| {
            let digits = !written.is_empty() && written.chars().all(|c| c.is_ascii_digit());
            let example = if digits { format!("; for seconds `{written}s`") } else { String::new() };
            report.error(value, format!("{path}.{field}"), format!("{error}{example}"));
        })
        .ok()
}

/// A duration of which 0 makes no sense.
pub fn positive(node: &Node, field: &str, path: &str, report: &mut Report) -> Option<Span> {
    let span = duration(node, field, path, report)?;
    if span.0 == 0 {
        let at = node.get(field).unwrap_or(node);
        report.error(at, format!("{path}.{field}"), "is 0: write a longer time, or leave it out".into());
    }
    Some(span)
}

/// A task's timeout: 0 is for ever, which is worth a warning.
pub fn timeout(node: &Node, field: &str, path: &str, report: &mut Report) -> Option<Span> {
    let span = duration(node, field, path, report)?;
    if span.0 == 0 {
        let at = node.get(field).unwrap_or(node);
        let message = "is 0, that is never: a task whose executor died then holds its stage until somebody aborts it; write for example `24h`";
        report.warning(at, format!("{path}.{field}"), message.into());
    }
    Some(span)
}
