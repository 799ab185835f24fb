//! Manifests: `Project`, `Shipyard`, `Remediation`, `Schedule`, `Pipeline`, `Cluster`, `GitHost`, `DeploymentConfig`, `ArtifactSource` and
//! `WebhookSubscription`, several documents in one text, YAML or JSON, each by itself or in a `List` or a `Template`.
//!
//! Everything that is wrong is found at once, each finding with its place and what to write instead. The user's reference of
//! the format and of every rule is `docs/shipyard.md`, for pipelines `docs/promotions.md`.

mod border;
mod bundle;
mod chains;
mod deployments;
mod finding;
mod levels;
mod mark;
mod migrate;
mod named;
mod names;
mod objects;
mod outline;
mod pipeline;
mod project;
mod promotion;
mod registry;
mod remediation;
mod schedule;
mod schema;
mod shipyard;
mod surprises;
mod syntax;
mod tasks;
mod tree;
mod triggers;
mod twice;
mod values;
mod webhook;
mod windows;

pub use deployments::{ArtifactSourceManifest, DeploymentConfigManifest, RollbackStanza, render, with_triggered_images};
pub use finding::{Finding, Severity};
pub use migrate::{Migrated, migrate};
pub use pipeline::PipelineManifest;
pub use project::ProjectManifest;
pub use registry::{ClusterManifest, GitHostManifest};
pub use remediation::RemediationManifest;
pub use schedule::ScheduleManifest;
pub use schema::{kinds as schema_kinds, schema};
pub use shipyard::ShipyardManifest;
pub use webhook::WebhookManifest;

use bundle::Given;
use finding::Report;
use serde_json::Value;
use std::collections::BTreeMap;
use tree::Node;

/// A text longer than this is refused unread: 1 MiB.
pub const MAX_BYTES: usize = 1 << 20;

/// Values for the parameters of Templates, by name.
pub type Parameters = BTreeMap<String, String>;

/// The documents of a text, and its findings.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The documents without errors, in the order of the text.
    pub documents: Vec<Document>,
    /// The text of each document: of an object in a List or a Template, a document of its own with all parameters filled in.
    pub sources: Vec<String>,
    /// Whether the text has a Template.
    pub has_template: bool,
    /// By line.
    pub findings: Vec<Finding>,
}

impl Parsed {
    /// Whether any finding is an error: then nothing of the text may be applied.
    pub fn refused(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Error)
    }
}

/// One valid document.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "named as the kinds are")]
pub enum Document {
    Project(ProjectManifest),
    Shipyard(ShipyardManifest),
    Remediation(RemediationManifest),
    Schedule(Box<ScheduleManifest>),
    Pipeline(Box<PipelineManifest>),
    Cluster(ClusterManifest),
    GitHost(GitHostManifest),
    DeploymentConfig(Box<DeploymentConfigManifest>),
    ArtifactSource(ArtifactSourceManifest),
    Webhook(Box<WebhookManifest>),
}

impl Document {
    /// The `kind` of the manifest.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Project(_) => "Project",
            Self::Shipyard(_) => "Shipyard",
            Self::Remediation(_) => "Remediation",
            Self::Schedule(_) => "Schedule",
            Self::Pipeline(_) => "Pipeline",
            Self::Cluster(_) => "Cluster",
            Self::GitHost(_) => "GitHost",
            Self::DeploymentConfig(_) => "DeploymentConfig",
            Self::ArtifactSource(_) => "ArtifactSource",
            Self::Webhook(_) => "WebhookSubscription",
        }
    }

    /// The name in a sentence, for example `pipeline shop/carts`.
    pub fn named(&self) -> String {
        match self {
            Self::Project(project) => format!("project {}", project.name),
            Self::Shipyard(manifest) => format!("shipyard {}", manifest.metadata_name.as_deref().unwrap_or("without a name")),
            Self::Remediation(manifest) => format!("remediation {}", manifest.metadata_name.as_deref().unwrap_or("without a name")),
            Self::Schedule(schedule) => format!("schedule {}/{}", schedule.project, schedule.name),
            Self::Pipeline(pipeline) => format!("pipeline {}/{}", pipeline.namespace, pipeline.name),
            Self::Cluster(cluster) => format!("cluster {}/{}", cluster.namespace, cluster.name),
            Self::GitHost(host) => format!("git host {}", host.name),
            Self::DeploymentConfig(config) => format!("deployment config {}/{}", config.namespace, config.name),
            Self::ArtifactSource(artifacts) => format!("artifact source {}/{}", artifacts.namespace, artifacts.name),
            Self::Webhook(webhook) => format!("webhook {}/{}", webhook.namespace, webhook.name),
        }
    }
}

const KINDS: [&str; 12] = [
    "Shipyard",
    "Project",
    "Remediation",
    "Schedule",
    "Pipeline",
    "Cluster",
    "GitHost",
    "DeploymentConfig",
    "ArtifactSource",
    "WebhookSubscription",
    "List",
    "Template",
];

/// Reads every document of `text`. `file` is how findings call it: a path, or `-`.
///
/// Never fails and never panics: what cannot be read is a finding, too. Empty documents are passed over.
pub fn parse(text: &str, file: &str) -> Parsed {
    parse_with(text, file, &Parameters::new())
}

/// As [`parse`]; `parameters` win over the values that Templates give their own. One that no Template of the text declares is an
/// error, unless there is no Template at all.
pub fn parse_with(text: &str, file: &str, parameters: &Parameters) -> Parsed {
    let mut report = Report::new(file, text);
    let (mut documents, mut sources) = (vec![], vec![]);
    if text.len() > MAX_BYTES {
        report.error_at(tree::START, "", format!("the file has {} bytes: at most {MAX_BYTES} (1 MiB) are read", text.len()));
        return Parsed { documents, sources, has_template: false, findings: report.finish() };
    }
    let trees = tree::read(text, &mut report);
    if trees.is_empty() && !report.has_errors() {
        report.error_at(tree::START, "", format!("holds no document: write one of {}", kinds()));
    }
    let mut given = Given { values: parameters, declared: None, sources: vec![] };
    for tree in &trees {
        let before = report.errors();
        let source = &text[tree.range.clone()];
        given.sources.clear();
        let found = self::documents(&tree.root, source, &mut given, &mut report);
        let texts = std::mem::take(&mut given.sources);
        for other in twice::alternatives(&tree.root) {
            let mut more = Report::new(file, text);
            self::documents(&other, source, &mut given, &mut more);
            report.add_errors(more);
        }
        if report.errors() == before && !tree.faulty {
            documents.extend(found);
            sources.extend(texts);
        }
    }
    given.check(&mut report);
    if documents.is_empty() && !report.has_errors() {
        report.error_at(tree::START, "", "holds nothing for Keelway: the objects in it are for other tools".into());
    }
    Parsed { documents, sources, has_template: given.declared.is_some(), findings: report.finish() }
}

/// The first document of a text as JSON; null if it cannot be read.
pub fn value_of(text: &str) -> Value {
    let trees = tree::read(text, &mut Report::new("", text));
    trees.first().map(|tree| tree.root.to_json()).unwrap_or_default()
}

/// An object as a YAML document.
pub fn yaml_of(object: &Value) -> String {
    serde_saphyr::to_string(object).unwrap_or_else(|_| format!("{object:#}\n"))
}

/// The objects of a document: one, or those of a List or Template.
fn documents(root: &Node, source: &str, given: &mut Given, report: &mut Report) -> Vec<Document> {
    let told = root.get("kind").and_then(Node::scalar).map(str::trim).filter(|kind| !kind.is_empty());
    let kind = told.or_else(|| {
        let kind = kind_by_content(root)?;
        report.error(root.get("kind").unwrap_or(root), "kind", format!("is missing: write `kind: {kind}`"));
        Some(kind)
    });
    match kind {
        Some("List") => bundle::list(root, given, report),
        Some("Template") => bundle::template(root, given, report),
        kind => {
            let found = document(root, kind, source, report);
            given.sources.extend(found.as_ref().map(|_| source.to_owned()));
            found.into_iter().collect()
        }
    }
}

fn document(root: &Node, kind: Option<&str>, source: &str, report: &mut Report) -> Option<Document> {
    if root.entries().is_none() {
        report.error(root, "", format!("is {}: a manifest is a mapping that starts with `apiVersion:` and `kind:`", root.what()));
        return None;
    }
    match kind {
        Some("Project") => project::read(root, report).map(Document::Project),
        Some("Shipyard") => shipyard::read(root, source, report).map(Document::Shipyard),
        Some("Remediation") => remediation::read(root, source, report).map(Document::Remediation),
        Some("Schedule") => schedule::read(root, source, report).map(Box::new).map(Document::Schedule),
        Some("Pipeline") => pipeline::read(root, source, report).map(Box::new).map(Document::Pipeline),
        Some("Cluster") => registry::cluster(root, source, report).map(Document::Cluster),
        Some("GitHost") => registry::git_host(root, source, report).map(Document::GitHost),
        Some("DeploymentConfig") => {
            deployments::deployment_config(root, source, report).map(Box::new).map(Document::DeploymentConfig)
        }
        Some("ArtifactSource") => deployments::artifact_source(root, source, report).map(Document::ArtifactSource),
        Some("WebhookSubscription") => webhook::read(root, source, report).map(Box::new).map(Document::Webhook),
        Some(kind) => other_kind(kind, root, source, report),
        None if ["spec", "stages"].iter().any(|field| root.get(field).is_some()) => {
            let at = root.get("kind").unwrap_or(root);
            if shipyard::is_old_form(root).is_none() {
                report.warning(at, "kind", "is missing: write `kind: Shipyard`".into());
            }
            shipyard::read(root, source, report).map(Document::Shipyard)
        }
        None => {
            let at = root.get("kind").unwrap_or(root);
            report.error(at, "kind", format!("is missing: write one of {}", kinds()));
            None
        }
    }
}

/// The kind of a document that names none, where other fields leave no doubt.
fn kind_by_content(root: &Node) -> Option<&'static str> {
    let has = |field: &str| root.get(field).is_some();
    let version = root.get("apiVersion").and_then(Node::scalar).unwrap_or_default();
    match version {
        _ if has("items") => Some("List"),
        _ if has("objects") => Some("Template"),
        _ if version.starts_with("apps.openshift.io/") || has("id") && (has("template") || has("rollback")) => {
            Some("DeploymentConfig")
        }
        _ => None,
    }
}

fn kinds() -> String {
    KINDS.map(|kind| format!("`kind: {kind}`")).join(", ")
}

fn other_kind(kind: &str, root: &Node, source: &str, report: &mut Report) -> Option<Document> {
    let near = names::nearest(kind, KINDS);
    let at = root.get("kind").unwrap_or(root);
    match near {
        Some("Shipyard") => {
            report.warning(at, "kind", format!("{kind:?} is read as `Shipyard`: write it like that"));
            shipyard::read(root, source, report).map(Document::Shipyard)
        }
        Some(near) => {
            report.error(at, "kind", format!("{kind:?} is not a kind: write `{near}`"));
            None
        }
        None => {
            report.error(at, "kind", format!("{kind:?} is not a kind this version takes: those are `{}`", KINDS.join("`, `")));
            None
        }
    }
}
