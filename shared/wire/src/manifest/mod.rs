//! Manifests of each kind of [`Document`], several documents in one text, YAML or JSON, each by itself or in a `List` or a
//! `Template`.
//!
//! Everything that is wrong is found at once, each finding with its place and what to write instead. The user's reference of
//! the format and of every rule is `docs/shipyard.md`, for pipelines `docs/promotions.md`.

mod analysis;
mod border;
mod bundle;
mod chains;
mod deployments;
mod evaluation;
mod finding;
mod levels;
mod mark;
mod metrics_source;
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

pub use analysis::{Converted, Files, from_analysis};
pub use deployments::{ArtifactSourceManifest, DeploymentConfigManifest, RollbackStanza, render, with_triggered_images};
pub use evaluation::{Checked, Resource, check};
pub(crate) use evaluation::{indicators, objectives};
pub use finding::{Finding, Severity};
pub use metrics_source::MetricsSourceManifest;
pub use migrate::{Migrated, migrate};
pub use names::nearest;
pub use pipeline::PipelineManifest;
pub use project::ProjectManifest;
pub use registry::{ClusterManifest, GitHostManifest};
pub use remediation::RemediationManifest;
pub use schedule::ScheduleManifest;
pub use schema::{files as schema_files, kinds as schema_kinds, schema};
pub use shipyard::ShipyardManifest;
pub use webhook::WebhookManifest;

use bundle::Given;
use finding::Report;
use keelway_domain::names::ProjectName;
use levels::Level;
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

/// What reads a document of a kind.
type Reader = fn(&Node, &str, &mut Report) -> Option<Document>;

/// Makes [`Document`] and the tables of kinds. A line has a kind, what sentences call it, its fields, what reads it, and its name.
macro_rules! documents {
    ($($variant:ident($manifest:ty): $kind:literal, $noun:literal, $($level:ident)::+, $read:expr, $name:expr;)*) => {
        /// One valid document.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Document {
            $(
                #[doc = concat!("`kind: ", $kind, "`")]
                $variant($manifest),
            )*
        }

        impl Document {
            /// Its `kind`.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $kind,)*
                }
            }

            /// Its name in a sentence, for example `pipeline shop/carts`.
            pub fn named(&self) -> String {
                let name: String = match self {
                    $(Self::$variant(one) => { let name: fn(&$manifest) -> String = $name; name(one) })*
                };
                format!("{} {name}", noun(self.kind()))
            }
        }

        /// The kinds that are taken.
        const KINDS: &[&str] = &[$($kind,)* "List", "Template"];

        /// What sentences call a kind.
        pub fn noun(kind: &str) -> &str {
            match kind {
                $($kind => $noun,)*
                kind => kind,
            }
        }

        /// The fields at the top of a document; of a deployment config, those of today's form.
        fn level(kind: &str) -> Option<&'static Level> {
            match kind {
                $($kind => Some(&levels::$($level)::+),)*
                "List" => Some(&levels::bundles::LIST),
                "Template" => Some(&levels::bundles::TEMPLATE),
                _ => None,
            }
        }

        fn reader(kind: &str) -> Option<Reader> {
            match kind {
                $($kind => Some(|root, source, report| $read(root, source, report).map(|one| Document::$variant(one.into()))),)*
                _ => None,
            }
        }
    };
}

documents! {
    Shipyard(ShipyardManifest):
        "Shipyard", "shipyard", shipyards::SHIPYARD, shipyard::read, |one| or_without(&one.metadata_name);
    Project(ProjectManifest): "Project", "project", projects::PROJECT, project::read, |one| one.name.to_string();
    Remediation(RemediationManifest):
        "Remediation", "remediation", remediations::REMEDIATION, remediation::read, |one| or_without(&one.metadata_name);
    Schedule(Box<ScheduleManifest>):
        "Schedule", "schedule", schedules::SCHEDULE, schedule::read, |one| at(&one.project, &one.name);
    Pipeline(Box<PipelineManifest>):
        "Pipeline", "pipeline", pipelines::PIPELINE, pipeline::read, |one| at(&one.namespace, &one.name);
    Cluster(ClusterManifest): "Cluster", "cluster", pipelines::CLUSTER, registry::cluster, |one| at(&one.namespace, &one.name);
    GitHost(GitHostManifest): "GitHost", "git host", pipelines::GIT_HOST, registry::git_host, |one| one.name.clone();
    DeploymentConfig(Box<DeploymentConfigManifest>):
        "DeploymentConfig", "deployment config", configs::CONFIG, deployments::deployment_config, |one| at(&one.namespace, &one.name);
    ArtifactSource(ArtifactSourceManifest):
        "ArtifactSource", "artifact source", artifacts::SOURCE, deployments::artifact_source, |one| at(&one.namespace, &one.name);
    MetricsSource(MetricsSourceManifest):
        "MetricsSource", "metrics source", metrics_sources::SOURCE, metrics_source::read, |one| at(&one.namespace, &one.name);
    Webhook(Box<WebhookManifest>):
        "WebhookSubscription", "webhook", webhooks::WEBHOOK, webhook::read, |one| at(&one.namespace, &one.name);
}

fn at(namespace: &ProjectName, name: &str) -> String {
    format!("{namespace}/{name}")
}

fn or_without(name: &Option<String>) -> String {
    name.clone().unwrap_or_else(|| "without a name".to_owned())
}

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
        Some(kind) => match reader(kind) {
            Some(read) => read(root, source, report),
            None => other_kind(kind, root, source, report),
        },
        None if ["spec", "stages"].iter().any(|field| root.get(field).is_some()) => {
            let at = root.get("kind").unwrap_or(root);
            if shipyard::is_old_form(root).is_none() {
                report.warning(at, "kind", "is missing: write `kind: Shipyard`".into());
            }
            shipyard::read(root, source, report).map(Document::Shipyard)
        }
        None if ["objectives", "indicators"].iter().any(|field| root.get(field).is_some()) => {
            let message = "is a file of objectives or indicators, which is a resource of a project and no manifest: `keelway validate` \
                           checks it";
            report.error(root, "", message.into());
            None
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
    KINDS.iter().map(|kind| format!("`kind: {kind}`")).collect::<Vec<_>>().join(", ")
}

fn other_kind(kind: &str, root: &Node, source: &str, report: &mut Report) -> Option<Document> {
    let near = names::nearest(kind, KINDS.iter().copied());
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
