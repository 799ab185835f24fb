//! `kind: Pipeline`: Weave's manifest as it is, and Keelway's additions to it.

use super::fields::{self, Level};
use super::finding::Report;
use super::outline::items;
use super::project::{mapping, positive, text};
use super::promotion;
use super::tree::Node;
use super::values;
use keelway_domain::names::ProjectName;
use keelway_domain::promotions::definition::{App, Compare, Definition, EnvironmentSpec, InFlight, Target};
use std::collections::HashSet;

/// The `apiVersion` of pipelines, as Weave has it.
pub const API_VERSION: &str = "pipelines.weave.works/v1alpha1";
/// More environments than this are refused.
const MOST_ENVIRONMENTS: usize = 50;

/// A pipeline as its manifest declares it.
#[derive(Debug, Clone, PartialEq)]
pub struct PipelineManifest {
    /// `metadata.namespace`: the project; `default` if absent.
    pub namespace: ProjectName,
    /// `metadata.name`
    pub name: String,
    /// What it is to do.
    pub definition: Definition,
    /// The document as it was written.
    pub source: String,
}

pub fn read(root: &Node, source: &str, report: &mut Report) -> Option<PipelineManifest> {
    fields::check(root, Level::Pipeline, "", report);
    values::version(root, "Pipeline", API_VERSION, report);
    let metadata = values::metadata(root, report);
    let name = values::name(metadata.unwrap_or(root), "metadata", report);
    let namespace = values::namespace(root, metadata, report);
    let Some(spec) = mapping(root, "spec", "spec", report) else {
        report.error(root.get("spec").unwrap_or(root), "spec", "is missing: write `spec:` with `appRef` and `environments`".into());
        return None;
    };
    let own = namespace.as_ref().map_or(values::DEFAULT_NAMESPACE, ProjectName::as_str);
    let definition = definition(spec, own, report);
    Some(PipelineManifest { namespace: namespace?, name: name?, definition: definition?, source: source.to_owned() })
}

fn definition(spec: &Node, namespace: &str, report: &mut Report) -> Option<Definition> {
    fields::check(spec, Level::PipelineSpec, "spec", report);
    let app = app(spec, report);
    let promotion = promotion::read(spec, "spec", report);
    let read = |node: &Node, path: &str, report: &mut Report| environment(node, path, namespace, report);
    let environments = environments(spec, read, report);
    surprises(spec, report);
    let in_flight = match values::word(spec, "inFlight", "spec", &["restart", "finish"], report) {
        Some(1) => InFlight::Finish,
        _ => InFlight::Restart,
    };
    let compare = match values::word(spec, "compare", "spec", &["exact", "digest"], report) {
        Some(1) => Compare::Digest,
        _ => Compare::Exact,
    };
    Some(Definition { app: app?, environments: environments?, promotion, in_flight, compare, vouched: false })
}

fn app(spec: &Node, report: &mut Report) -> Option<App> {
    let path = "spec.appRef";
    let Some(node) = mapping(spec, "appRef", path, report) else {
        let message = "is missing: name the object that every target runs, with `apiVersion`, `kind` and `name`";
        report.error(spec.get("appRef").unwrap_or(spec), path, message.into());
        return None;
    };
    fields::check(node, Level::AppRef, path, report);
    let mut needed = |field: &str, example: &str| {
        let given = text(node, field, path, report).filter(|text| !text.is_empty());
        if given.is_none() {
            let at = node.get(field).unwrap_or(node);
            report.error(at, format!("{path}.{field}"), format!("is missing: write for example `{field}: {example}`"));
        }
        given
    };
    let api_version = needed("apiVersion", "helm.toolkit.fluxcd.io/v2");
    let kind = needed("kind", "HelmRelease");
    let name = needed("name", "podinfo");
    Some(App { api_version: api_version?, kind: kind?, name: name? })
}

fn environments(
    spec: &Node,
    read: impl Fn(&Node, &str, &mut Report) -> Option<EnvironmentSpec>,
    report: &mut Report,
) -> Option<Vec<EnvironmentSpec>> {
    let path = "spec.environments";
    let Some(list) = spec.get("environments").filter(|list| !list.is_null()) else {
        report.error(spec, path, "is missing: list the environments in the order of promotion, like `- name: dev`".into());
        return None;
    };
    let entries = items(list, path, Level::Environment, report)?;
    if entries.is_empty() {
        report.error(list, path, "is empty: list the environments in the order of promotion, like `- name: dev`".into());
        return None;
    }
    if entries.len() > MOST_ENVIRONMENTS {
        let message = format!("has {} entries: at most {MOST_ENVIRONMENTS} are taken; use several pipelines", entries.len());
        report.error(list, path, message);
    }
    let mut names = HashSet::new();
    let mut all = vec![];
    for (place, node) in entries.iter().enumerate() {
        let path = format!("{path}[{place}]");
        let name = node.get("name").filter(|name| name.scalar().is_some_and(|name| !name.is_empty()));
        if let Some((at, name)) = name.and_then(|at| Some((at, at.scalar()?)))
            && !names.insert(name)
        {
            report.error(at, format!("{path}.name"), format!("{name:?} is there twice: name each environment differently"));
        }
        all.push(read(node, &path, report));
    }
    all.into_iter().collect()
}

fn environment(node: &Node, path: &str, namespace: &str, report: &mut Report) -> Option<EnvironmentSpec> {
    if node.entries().is_none() {
        report.error(node, path, format!("is {}, not a mapping: write `- name: staging`", node.what()));
        return None;
    }
    fields::check(node, Level::Environment, path, report);
    let name = values::environment_name(node, path, report);
    let targets = targets(node, path, namespace, report);
    let promotion = promotion::read(node, path, report);
    let soak = positive(node, "soak", path, report);
    Some(EnvironmentSpec { name: name?, targets: targets?, promotion, soak })
}

/// What is allowed and turns out otherwise than its author expects.
fn surprises(spec: &Node, report: &mut Report) {
    let shared = spec.get("promotion").filter(|promotion| promotion.entries().is_some());
    let is_manual = |promotion: &Node| promotion.get("manual").and_then(Node::scalar) == Some("true");
    let entries = spec.get("environments").and_then(Node::list).unwrap_or_default();
    let own = |node: &Node| node.get("promotion").is_some_and(|promotion| promotion.entries().is_some());
    let promoted = shared.is_some() || entries.iter().skip(1).any(own);
    for (place, node) in entries.iter().enumerate() {
        let path = format!("spec.environments[{place}]");
        match node.get("promotion").filter(|promotion| promotion.entries().is_some()) {
            Some(at) if place == 0 => {
                let message = "is never used: nothing is promoted into the first environment";
                report.warning(at, format!("{path}.promotion"), message.into());
            }
            Some(at) if shared.is_some_and(is_manual) && at.get("manual").is_none() => {
                let message = "replaces the pipeline's promotion as a whole, its `manual: true` included: revisions come here without \
                               approval; write `manual: true` here, too, or `manual: false` to say so";
                report.warning(at, format!("{path}.promotion"), message.into());
            }
            None if place > 0 && shared.is_none() && promoted => {
                let message = "says nothing about how revisions get here, and neither does the pipeline: write `promotion:`";
                report.warning(node, path.clone(), message.into());
            }
            _ => {}
        }
        if node.get("soak").is_some_and(|soak| !soak.is_null()) && place + 1 == entries.len() {
            let at = node.get("soak").unwrap_or(node);
            report.warning(at, format!("{path}.soak"), "is never used: no environment follows this one".into());
        }
    }
}

fn targets(node: &Node, path: &str, namespace: &str, report: &mut Report) -> Option<Vec<Target>> {
    let path = format!("{path}.targets");
    let missing = "is empty: name at least one target, like `- namespace: shop-staging`";
    let Some(list) = node.get("targets").filter(|list| !list.is_null()) else {
        report.error(node.get("targets").unwrap_or(node), path, missing.into());
        return None;
    };
    let entries = items(list, &path, Level::Target, report)?;
    if entries.is_empty() {
        report.error(list, path, missing.into());
        return None;
    }
    let read = |(place, node): (usize, &&Node)| target(node, &format!("{path}[{place}]"), namespace, report);
    entries.iter().enumerate().map(read).collect::<Vec<_>>().into_iter().collect()
}

fn target(node: &Node, path: &str, own: &str, report: &mut Report) -> Option<Target> {
    if node.entries().is_none() {
        report.error(node, path, format!("is {}, not a mapping: write `- namespace: shop-staging`", node.what()));
        return None;
    }
    fields::check(node, Level::Target, path, report);
    let namespace = text(node, "namespace", path, report).filter(|namespace| !namespace.is_empty());
    if namespace.is_none() {
        let at = node.get("namespace").unwrap_or(node);
        report.error(at, format!("{path}.namespace"), "is missing: name the namespace the application runs in".into());
    }
    let path = format!("{path}.clusterRef");
    let cluster = mapping(node, "clusterRef", &path, report).map(|reference| {
        fields::check(reference, Level::ClusterRef, &path, report);
        let name = values::name(reference, &path, report);
        // As in Weave: a cluster of the pipeline's own namespace needs no namespace.
        let namespace = text(reference, "namespace", &path, report).unwrap_or_else(|| own.to_owned());
        name.map(|name| format!("{namespace}/{name}"))
    });
    match cluster {
        Some(None) => None,
        cluster => Some(Target { cluster: cluster.flatten(), namespace: namespace? }),
    }
}
