//! Manifests: `Project`, `Shipyard`, `Pipeline`, `Cluster` and `GitHost`, several documents in one text, YAML or JSON.
//!
//! Everything that is wrong is found at once, each finding with its place and what to write instead. The user's reference of
//! the format and of every rule is `docs/shipyard.md`, for pipelines `docs/promotions.md`.

mod chains;
mod fields;
mod finding;
mod mark;
mod names;
mod outline;
mod pipeline;
mod project;
mod promotion;
mod registry;
mod shipyard;
mod surprises;
mod syntax;
mod tasks;
mod tree;
mod triggers;
mod twice;
mod values;

pub use finding::{Finding, Severity};
pub use pipeline::PipelineManifest;
pub use project::ProjectManifest;
pub use registry::{ClusterManifest, GitHostManifest};
pub use shipyard::ShipyardManifest;

use finding::Report;
use tree::Node;

/// A text longer than this is refused unread: 1 MiB.
pub const MAX_BYTES: usize = 1 << 20;

/// What a text holds, and what is wrong with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The documents without errors, in the order of the text.
    pub documents: Vec<Document>,
    /// Everything found, by line.
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
pub enum Document {
    /// `kind: Project`
    Project(ProjectManifest),
    /// `kind: Shipyard`
    Shipyard(ShipyardManifest),
    /// `kind: Pipeline`
    Pipeline(Box<PipelineManifest>),
    /// `kind: Cluster`
    Cluster(ClusterManifest),
    /// `kind: GitHost`
    GitHost(GitHostManifest),
}

impl Document {
    /// Its `kind`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Project(_) => "Project",
            Self::Shipyard(_) => "Shipyard",
            Self::Pipeline(_) => "Pipeline",
            Self::Cluster(_) => "Cluster",
            Self::GitHost(_) => "GitHost",
        }
    }

    /// Its name in a sentence, for example `pipeline shop/carts`.
    pub fn named(&self) -> String {
        match self {
            Self::Project(project) => format!("project {}", project.name),
            Self::Shipyard(manifest) => format!("shipyard {}", manifest.metadata_name.as_deref().unwrap_or("without a name")),
            Self::Pipeline(pipeline) => format!("pipeline {}/{}", pipeline.namespace, pipeline.name),
            Self::Cluster(cluster) => format!("cluster {}/{}", cluster.namespace, cluster.name),
            Self::GitHost(host) => format!("git host {}", host.name),
        }
    }
}

/// The kinds that are taken.
const KINDS: [&str; 5] = ["Shipyard", "Project", "Pipeline", "Cluster", "GitHost"];

/// Reads every document of `text`. `file` is how findings call it: a path, or `-`.
///
/// Never fails and never panics: what cannot be read is a finding, too. Empty documents are passed over.
pub fn parse(text: &str, file: &str) -> Parsed {
    let mut report = Report::new(file, text);
    let mut documents = vec![];
    if text.len() > MAX_BYTES {
        report.error_at(tree::START, "", format!("the file has {} bytes: at most {MAX_BYTES} (1 MiB) are read", text.len()));
        return Parsed { documents, findings: report.finish() };
    }
    let trees = tree::read(text, &mut report);
    if trees.is_empty() && !report.has_errors() {
        report.error_at(tree::START, "", format!("holds no document: write one of {}", kinds()));
    }
    for tree in &trees {
        let before = report.errors();
        let source = &text[tree.range.clone()];
        let document = document(&tree.root, source, &mut report);
        for other in twice::alternatives(&tree.root) {
            let mut more = Report::new(file, text);
            self::document(&other, source, &mut more);
            report.add_errors(more);
        }
        if report.errors() == before && !tree.faulty {
            documents.extend(document);
        }
    }
    Parsed { documents, findings: report.finish() }
}

fn document(root: &Node, source: &str, report: &mut Report) -> Option<Document> {
    if root.entries().is_none() {
        report.error(root, "", format!("is {}: a manifest is a mapping that starts with `apiVersion:` and `kind:`", root.what()));
        return None;
    }
    let kind = root.get("kind").and_then(Node::scalar).map(str::trim).filter(|kind| !kind.is_empty());
    match kind {
        Some("Project") => project::read(root, report).map(Document::Project),
        Some("Shipyard") => shipyard::read(root, source, report).map(Document::Shipyard),
        Some("Pipeline") => pipeline::read(root, source, report).map(Box::new).map(Document::Pipeline),
        Some("Cluster") => registry::cluster(root, source, report).map(Document::Cluster),
        Some("GitHost") => registry::git_host(root, source, report).map(Document::GitHost),
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
