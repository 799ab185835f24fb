//! `kind: Pipeline`: Weave's manifest as it is, and Keelway's additions to it.

use super::fields::{self, Level};
use super::finding::Report;
use super::outline::items;
use super::project::{mapping, positive, text, with_example};
use super::promotion;
use super::tree::Node;
use keelway_domain::names::ProjectName;
use keelway_domain::promotions::definition::{App, Compare, Definition, EnvironmentSpec, InFlight, Target};
use std::collections::HashSet;

/// The `apiVersion` of pipelines, as Weave has it.
pub const API_VERSION: &str = "pipelines.weave.works/v1alpha1";
/// The longest name, as in Kubernetes.
const LONGEST_NAME: usize = 63;

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
    let version = root.get("apiVersion");
    if version.and_then(Node::scalar) != Some(API_VERSION) {
        let given = version
            .and_then(Node::scalar)
            .map_or("is missing".to_owned(), |other| format!("{other:?} is not a version of Pipeline"));
        report.error(version.unwrap_or(root), "apiVersion", format!("{given}: write `apiVersion: {API_VERSION}`"));
    }
    let metadata = mapping(root, "metadata", "metadata", report);
    if let Some(metadata) = metadata {
        fields::check(metadata, Level::ObjectMetadata, "metadata", report);
    }
    let name = name(metadata.unwrap_or(root), "metadata", report);
    let namespace =
        metadata.and_then(|metadata| text(metadata, "namespace", "metadata", report)).unwrap_or_else(|| "default".into());
    let namespace = ProjectName::new(namespace.as_str()).map_err(|error| {
        let at = metadata.and_then(|metadata| metadata.get("namespace")).unwrap_or(root);
        report.error(at, "metadata.namespace", error.to_string());
    });
    let Some(spec) = mapping(root, "spec", "spec", report) else {
        report.error(root.get("spec").unwrap_or(root), "spec", "is missing: write `spec:` with `appRef` and `environments`".into());
        return None;
    };
    let definition = definition(spec, report);
    Some(PipelineManifest { namespace: namespace.ok()?, name: name?, definition: definition?, source: source.to_owned() })
}

fn definition(spec: &Node, report: &mut Report) -> Option<Definition> {
    fields::check(spec, Level::PipelineSpec, "spec", report);
    let app = app(spec, report);
    let promotion = promotion::read(spec, "spec", report);
    let environments = environments(spec, promotion.as_ref().is_some_and(|promotion| promotion.manual), report);
    let in_flight = match word(spec, "inFlight", &["restart", "finish"], report) {
        Some(1) => InFlight::Finish,
        _ => InFlight::Restart,
    };
    let compare = match word(spec, "compare", &["exact", "digest"], report) {
        Some(1) => Compare::Digest,
        _ => Compare::Exact,
    };
    Some(Definition { app: app?, environments: environments?, promotion, in_flight, compare })
}

/// One of some words, by its place among them.
fn word(node: &Node, field: &str, words: &[&str], report: &mut Report) -> Option<usize> {
    let given = text(node, field, "spec", report)?;
    let found = words.iter().position(|word| *word == given);
    if found.is_none() {
        let at = node.get(field).unwrap_or(node);
        report.error(at, format!("spec.{field}"), format!("{given:?} is not known: write `{}`", words.join("` or `")));
    }
    found
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

fn environments(spec: &Node, manual: bool, report: &mut Report) -> Option<Vec<EnvironmentSpec>> {
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
    let mut names = HashSet::new();
    let mut all = vec![];
    for (place, node) in entries.iter().enumerate() {
        let path = format!("{path}[{place}]");
        let found = environment(node, &path, (place == 0, manual), report);
        if let Some(found) = &found
            && !names.insert(found.name.clone())
        {
            report.error(
                *node,
                format!("{path}.name"),
                format!("{:?} is there twice: name each environment differently", found.name),
            );
        }
        all.push(found);
    }
    all.into_iter().collect()
}

fn environment(node: &Node, path: &str, (first, manual): (bool, bool), report: &mut Report) -> Option<EnvironmentSpec> {
    if node.entries().is_none() {
        report.error(node, path, format!("is {}, not a mapping: write `- name: staging`", node.what()));
        return None;
    }
    fields::check(node, Level::Environment, path, report);
    let name = name(node, path, report);
    let targets = targets(node, path, report);
    let promotion = promotion::read(node, path, report);
    if let Some(own) = &promotion {
        let at = node.get("promotion").unwrap_or(node);
        if first {
            report.warning(at, format!("{path}.promotion"), "is never used: nothing is promoted into the first environment".into());
        } else if manual && !own.manual {
            let message = "replaces the pipeline's promotion as a whole, its `manual: true` included: revisions come here without approval; \
                           write `manual: true` here, too, or `manual: false` to say so";
            if at.get("manual").is_none() {
                report.warning(at, format!("{path}.promotion"), message.into());
            }
        }
    }
    let soak = positive(node, "soak", path, report);
    Some(EnvironmentSpec { name: name?, targets: targets?, promotion, soak })
}

fn targets(node: &Node, path: &str, report: &mut Report) -> Option<Vec<Target>> {
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
    let read = |(place, node): (usize, &&Node)| target(node, &format!("{path}[{place}]"), report);
    entries.iter().enumerate().map(read).collect::<Vec<_>>().into_iter().collect()
}

fn target(node: &Node, path: &str, report: &mut Report) -> Option<Target> {
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
    let cluster = mapping(node, "clusterRef", &format!("{path}.clusterRef"), report).and_then(|reference| {
        let path = format!("{path}.clusterRef");
        fields::check(reference, Level::ClusterRef, &path, report);
        let name = text(reference, "name", &path, report);
        if name.is_none() {
            report.error(reference, format!("{path}.name"), "is missing: name a registered cluster".into());
        }
        let namespace = text(reference, "namespace", &path, report).unwrap_or_else(|| "default".into());
        name.map(|name| format!("{namespace}/{name}"))
    });
    Some(Target { cluster, namespace: namespace? })
}

/// A name as Kubernetes allows it.
fn name(node: &Node, path: &str, report: &mut Report) -> Option<String> {
    let given = node.get("name");
    let Some(text) = given.and_then(Node::scalar).filter(|text| !text.is_empty()) else {
        report.error(
            given.unwrap_or(node),
            format!("{path}.name"),
            "is missing: write `name:` with lower-case letters, digits and `-`".into(),
        );
        return None;
    };
    let inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let valid = |text: &str| {
        text.len() <= LONGEST_NAME
            && text.chars().all(|c| inside(c) || "-.".contains(c))
            && text.starts_with(inside)
            && text.ends_with(inside)
    };
    if !valid(text) {
        let example = super::names::repaired(text, true, "-").filter(|name| valid(name));
        let rule = format!(
            "{text:?} is no name: use at most {LONGEST_NAME} lower-case letters, digits, `-` and `.`, a letter or digit at both ends"
        );
        report.error(given.unwrap_or(node), format!("{path}.name"), with_example(rule, example));
        return None;
    }
    Some(text.to_owned())
}
