//! `kind: DeploymentConfig`: its two forms, and the fields beside the definition.

use super::spec::{self, Form};
use crate::manifest::finding::Report;
use crate::manifest::levels::configs::{self, API_VERSION, LEGACY_VERSION, PROPOSED_VERSION};
use crate::manifest::levels::{self, additions};
use crate::manifest::objects::{self, DEFAULT_NAMESPACE};
use crate::manifest::tree::Node;
use crate::manifest::values::{flag, text, texts, whole};
use keelway_domain::deployments::definition::Definition;
use keelway_domain::names::ProjectName;
use serde_json::Value;

/// How many old versions are kept in today's form, if the manifest does not say.
const HISTORY: u32 = 10;
/// Fields of `metadata` that only a server writes.
const SERVED: [&str; 8] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// A DeploymentConfig as its manifest declares it.
#[derive(Debug, Clone, PartialEq)]
pub struct DeploymentConfigManifest {
    /// `metadata.namespace`, or what precedes `:` in the proposal's `id`: the project; `default` if absent.
    pub namespace: ProjectName,
    /// `metadata.name` or `id`
    pub name: String,
    /// Absent in a request for a rollback that changes nothing else.
    pub definition: Option<Definition>,
    /// `latestVersion` or `status.latestVersion`: the newest version that the author knew. It only counts where a generated config
    /// is applied again.
    pub latest_version: Option<u64>,
    /// `details` or `status.details`, as written; null if absent.
    pub details: Value,
    /// The proposal's `rollback`: a request, not a part of the definition.
    pub rollback: Option<RollbackStanza>,
    /// The text of the document; of an object of a List or Template, the object as YAML.
    pub source: String,
}

/// The proposal's request for a rollback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollbackStanza {
    /// The version to go back to, of this config. Absent: the one before the latest.
    pub release: Option<u64>,
    /// Whether labels, triggers and strategy go back. Default: true.
    pub config: bool,
    /// Whether template, replicas and selector go back. Default: true.
    pub application: bool,
    /// Why, for people.
    pub notes: String,
}

pub fn read(root: &Node, source: &str, report: &mut Report) -> Option<DeploymentConfigManifest> {
    let version = root.get("apiVersion").and_then(Node::scalar);
    let proposed = version.is_none_or(|version| version == PROPOSED_VERSION) && root.get("spec").is_none();
    if proposed { proposal(root, source, report) } else { shipped(root, source, report) }
}

fn shipped(root: &Node, source: &str, report: &mut Report) -> Option<DeploymentConfigManifest> {
    levels::check(root, &configs::CONFIG, "", report);
    let version = root.get("apiVersion");
    let given = version.and_then(Node::scalar);
    if given != Some(API_VERSION) && given != Some(LEGACY_VERSION) {
        let wrong = given.map_or("is missing".to_owned(), |other| format!("{other:?} is not a version of DeploymentConfig"));
        report.error(
            version.unwrap_or(root),
            "apiVersion",
            format!("{wrong}: write `apiVersion: {API_VERSION}`, or `{LEGACY_VERSION}`"),
        );
    }
    let metadata = levels::mapping(root, "metadata", &configs::METADATA, "", report).map(|(metadata, _)| metadata);
    let name = objects::name(metadata.unwrap_or(root), "metadata", report);
    let namespace = objects::namespace(root, metadata, report);
    metadata.iter().for_each(|metadata| served(metadata, "metadata", report));
    let status = root.get("status").filter(|status| status.entries().is_some_and(|fields| !fields.is_empty()));
    if let Some(status) = status {
        report.warning(status, "status", "is the server's and declares nothing: leave it out".into());
    }
    let latest_version = status.and_then(|status| whole(status, "latestVersion", "status", 0, report));
    let details = status.and_then(|status| status.get("details")).map(Node::to_json).unwrap_or_default();
    let (spec, _) = levels::mapping(root, "spec", &configs::SPEC, "", report)?;
    let read = |field: &str, report: &mut Report| metadata.map(|node| texts(node, field, "metadata", report)).unwrap_or_default();
    let form = Form {
        namespace: namespace.as_ref().map_or(DEFAULT_NAMESPACE, ProjectName::as_str),
        spec: (spec, "spec".into()),
        how: Some((spec, "spec".into())),
        what: Some((spec, "spec".into())),
        proposed: false,
        labels: read("labels", report),
        annotations: read("annotations", report),
        history: (given == Some(API_VERSION)).then_some(HISTORY),
    };
    let definition = Some(spec::read(form, report)?);
    let latest_version = latest_version.and_then(|version| u64::try_from(version).ok());
    Some(DeploymentConfigManifest {
        namespace: namespace?,
        name: name?,
        definition,
        latest_version,
        details,
        rollback: None,
        source: source.to_owned(),
    })
}

fn proposal(root: &Node, source: &str, report: &mut Report) -> Option<DeploymentConfigManifest> {
    levels::check(root, &configs::PROPOSED, "", report);
    let metadata = levels::mapping(root, "metadata", &configs::METADATA, "", report).map(|(metadata, _)| metadata);
    let (namespace, name) = id(root, metadata, report);
    served(root, "", report);
    metadata.iter().for_each(|metadata| served(metadata, "metadata", report));
    let latest_version = whole(root, "latestVersion", "", 0, report).and_then(|version| u64::try_from(version).ok());
    let details = root.get("details").map(Node::to_json).unwrap_or_default();
    let rollback = rollback(root, name.as_deref().unwrap_or_default(), report);
    let template = levels::mapping(root, "template", &configs::PROPOSED_TEMPLATE, "", report);
    let asks_only = rollback.is_some() && root.get("template").is_none_or(Node::is_null);
    if template.is_none() && !asks_only && root.get("template").is_none_or(Node::is_null) {
        let message = "is missing: write `template:` with `strategy` and `controllerTemplate` below it, or write `apiVersion: \
                       apps.openshift.io/v1` and `spec:`";
        report.error(root.get("template").unwrap_or(root), "template", message.into());
        return None;
    }
    let what = template
        .as_ref()
        .and_then(|(template, path)| levels::mapping(template, "controllerTemplate", &configs::CONTROLLER, path, report));
    let mut read = |field: &str| {
        let own = texts(root, field, "", report);
        let below = metadata.map(|node| texts(node, field, "metadata", report)).unwrap_or_default();
        below.into_iter().chain(own).collect()
    };
    let (labels, annotations) = (read("labels"), read("annotations"));
    let namespace_ = namespace.as_ref().map_or(DEFAULT_NAMESPACE, ProjectName::as_str).to_owned();
    let definition = match asks_only {
        true => {
            alone(root, report);
            None
        }
        false => {
            let form = Form {
                namespace: &namespace_,
                spec: (root, String::new()),
                how: template,
                what,
                proposed: true,
                labels,
                annotations,
                history: None,
            };
            Some(spec::read(form, report)?)
        }
    };
    Some(DeploymentConfigManifest {
        namespace: namespace?,
        name: name?,
        definition,
        latest_version,
        details,
        rollback,
        source: source.to_owned(),
    })
}

/// `id`, which is `<name>` or `<namespace>:<name>`; `metadata` may say the same.
fn id(root: &Node, metadata: Option<&Node>, report: &mut Report) -> (Option<ProjectName>, Option<String>) {
    let Some(id) = text(root, "id", "", report).filter(|id| !id.is_empty()) else {
        let name = match metadata {
            Some(metadata) => objects::name(metadata, "metadata", report),
            None => {
                report.error(
                    root.get("id").unwrap_or(root),
                    "id",
                    "is missing: write `id:` with `<name>` or `<namespace>:<name>`".into(),
                );
                None
            }
        };
        return (namespace(root, metadata, report), name);
    };
    let at = root.get("id").unwrap_or(root);
    let (before, name) = id.split_once(':').map_or((None, id.as_str()), |(namespace, name)| (Some(namespace), name));
    if !objects::is_name(name, 63) {
        let message = format!("{id:?} is not an id: write `<name>` or `<namespace>:<name>`, in lower-case letters, digits and `-`");
        report.error(at, "id", message);
    }
    let namespace = match before {
        None => namespace(root, metadata, report),
        Some(before) => ProjectName::new(before).map_err(|error| report.error(at, "id", error.to_string())).ok(),
    };
    (namespace, Some(name.to_owned()))
}

/// `namespace`, of the document or of its `metadata`.
fn namespace(root: &Node, metadata: Option<&Node>, report: &mut Report) -> Option<ProjectName> {
    match text(root, "namespace", "", report).filter(|namespace| !namespace.is_empty()) {
        None => objects::namespace(root, metadata, report),
        Some(given) => {
            let at = root.get("namespace").unwrap_or(root);
            ProjectName::new(given).map_err(|error| report.error(at, "namespace", error.to_string())).ok()
        }
    }
}

/// Warns of fields that only a server writes, and of those that have no meaning here.
fn served(metadata: &Node, path: &str, report: &mut Report) {
    for entry in metadata.entries().unwrap_or_default() {
        let is_empty = entry.value.is_null()
            || entry.value.scalar().is_some_and(str::is_empty)
            || entry.value.list().is_some_and(<[Node]>::is_empty);
        let why = match entry.key.as_str() {
            _ if is_empty => continue,
            key if SERVED.contains(&key) => "is the server's and declares nothing: leave it out",
            "finalizers" | "ownerReferences" => "means nothing here, where deleting a config deletes nothing else: leave it out",
            "generateName" => "is not used: the name is `name`; leave it out",
            "clusterName" | "initializers" => "means nothing here: leave it out",
            _ => continue,
        };
        report.warning_at(entry.at, format!("{path}.{}", entry.key), why.into());
    }
}

/// Warns of fields beside a `rollback` that are no part of the request.
fn alone(root: &Node, report: &mut Report) {
    const KNOWN: [&str; 8] = ["id", "kind", "apiVersion", "namespace", "metadata", "rollback", "latestVersion", "details"];
    let others = root.entries().unwrap_or_default().iter();
    for entry in others.filter(|entry| configs::PROPOSED.has(&entry.key) && !KNOWN.contains(&entry.key.as_str())) {
        let message = "is not used: without `template`, this asks only for a rollback; leave it out, or write the whole config";
        report.warning_at(entry.at, entry.key.clone(), message.into());
    }
}

/// The proposal's `rollback`.
fn rollback(root: &Node, name: &str, report: &mut Report) -> Option<RollbackStanza> {
    if root.get("rollback").is_some_and(Node::is_null) {
        let message = "is empty: write `rollback: {}` for the version before the latest, or leave it out";
        report.error(root.get("rollback").unwrap_or(root), "rollback", message.into());
    }
    let (node, path) = levels::mapping(root, "rollback", &additions::ROLLBACK, "", report)?;
    let release = text(node, "release", &path, report).filter(|release| !release.is_empty()).and_then(|release| {
        let number = release.strip_prefix(name).and_then(|rest| rest.strip_prefix('-')).unwrap_or(&release);
        let found = number.parse::<u64>().ok().filter(|number| *number > 0);
        if found.is_none() {
            let message = format!("{release:?} is no version of {name:?}: write `{name}-<number>`");
            report.error(node.get("release").unwrap_or(node), format!("{path}.release"), message);
        }
        found
    });
    if let Some(at) = node.get("strategy").filter(|at| !at.is_null()) {
        let message = "is ignored: the proposal leaves its meaning open, and the config's strategy deploys the rollback";
        report.warning(at, format!("{path}.strategy"), message.into());
    }
    let mut unless_false = |field: &str| {
        let given = node.get(field).is_some_and(|given| !given.is_null());
        !given || flag(node, field, &path, report)
    };
    let (config, application) = (unless_false("config"), unless_false("application"));
    Some(RollbackStanza { release, config, application, notes: text(node, "notes", &path, report).unwrap_or_default() })
}
