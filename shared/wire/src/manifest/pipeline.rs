//! `kind: Pipeline`: Weave's manifest as it is, and Keelway's additions to it.

use super::finding::Report;
use super::levels::{self, pipelines};
use super::objects;
use super::promotion;
use super::tree::Node;
use super::values::{self, positive, text};
use keelway_domain::names::{ProjectName, ServiceName, StageName};
use keelway_domain::promotions::definition::{App, Compare, Definition, EnvironmentSpec, EvaluationSpec, InFlight, Target};
use keelway_domain::time::Span;
use std::collections::HashSet;

/// More environments than this are refused.
const MOST_ENVIRONMENTS: usize = 50;
/// The soak times that can be evaluated: as long as the windows of all evaluations.
const MEASURABLE: std::ops::RangeInclusive<Span> = Span::minutes(1)..=Span::minutes(366 * 24 * 60);

/// A pipeline as its manifest declares it.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "named as the fields of the manifest are")]
pub struct PipelineManifest {
    /// The project; `default` if absent.
    pub namespace: ProjectName,
    pub name: String,
    pub definition: Definition,
    /// The text of the document.
    pub source: String,
}

pub fn read(root: &Node, source: &str, report: &mut Report) -> Option<PipelineManifest> {
    levels::check(root, &pipelines::PIPELINE, "", report);
    objects::version(root, "Pipeline", pipelines::PIPELINE_VERSION, report);
    let metadata = objects::metadata(root, report);
    let name = objects::name(metadata.unwrap_or(root), "metadata", report);
    let namespace = objects::namespace(root, metadata, report);
    let (spec, _) = levels::mapping(root, "spec", &pipelines::SPEC, "", report)?;
    let own = namespace.as_ref().map_or(objects::DEFAULT_NAMESPACE, ProjectName::as_str);
    let definition = definition(spec, own, report);
    Some(PipelineManifest { namespace: namespace?, name: name?, definition: definition?, source: source.to_owned() })
}

fn definition(spec: &Node, namespace: &str, report: &mut Report) -> Option<Definition> {
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
    let (node, path) = levels::mapping(spec, "appRef", &pipelines::APP_REF, "spec", report)?;
    let mut text = |field: &str| text(node, field, &path, report);
    let (api_version, kind, name) = (text("apiVersion"), text("kind"), text("name"));
    Some(App { api_version: api_version?, kind: kind?, name: name? })
}

fn environments(
    spec: &Node,
    read: impl Fn(&Node, &str, &mut Report) -> Option<EnvironmentSpec>,
    report: &mut Report,
) -> Option<Vec<EnvironmentSpec>> {
    let path = "spec.environments";
    let list = spec.get("environments").filter(|list| !list.is_null())?;
    let entries = levels::items(list, path, &pipelines::ENVIRONMENT, report)?;
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
    levels::check(node, &pipelines::ENVIRONMENT, path, report);
    let name = objects::environment_name(node, path, report);
    let targets = targets(node, path, namespace, report);
    let promotion = promotion::read(node, path, report);
    let soak = positive(node, "soak", path, report);
    let evaluation = evaluation(node, (path, name.as_deref()), soak, report);
    Some(EnvironmentSpec { name: name?, targets: targets?, promotion, soak, evaluation })
}

/// `evaluation` of an environment, which judges the soak time.
fn evaluation(node: &Node, (path, name): (&str, Option<&str>), soak: Option<Span>, report: &mut Report) -> Option<EvaluationSpec> {
    let given = node.get("evaluation").filter(|given| !given.is_null())?;
    let at = format!("{path}.evaluation");
    match soak {
        Some(soak) if !MEASURABLE.contains(&soak) => {
            report.error(given, &*at, format!("measures the time of `soak`, {soak}: from 1m to 366d can be measured"));
        }
        None if node.get("soak").is_none_or(Node::is_null) => {
            let message = "needs `soak`, the time that it measures: write for example `soak: 1h` beside it";
            report.error(given, &*at, message.into());
        }
        _ => {}
    }
    let (fields, path) = levels::mapping(node, "evaluation", &pipelines::EVALUATION, path, report)?;
    let mut named = |field: &str, check: &dyn Fn(&str) -> Option<String>| {
        let text = text(fields, field, &path, report).filter(|text| !text.is_empty())?;
        if let Some(wrong) = check(&text) {
            report.error(fields.get(field).unwrap_or(fields), format!("{path}.{field}"), wrong);
        }
        Some(text)
    };
    let stage = named("stage", &|text| StageName::new(text).err().map(|error| error.to_string()));
    let service = named("service", &|text| ServiceName::new(text).err().map(|error| error.to_string()));
    if let Some(name) = name.filter(|name| stage.is_none() && StageName::new(*name).is_err()) {
        let message = format!("{name:?} cannot be the name of a stage: write `stage`, the one with the files of the service");
        report.error(given, &*path, message);
    }
    let strict = values::word(fields, "warning", &path, &["pass", "fail"], report) == Some(1);
    Some(EvaluationSpec { service: service?, stage, strict })
}

/// Warns of settings that are valid and do not do what their author expects.
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
        let unused = ["soak", "evaluation"].into_iter().filter(|_| place + 1 == entries.len());
        for (field, at) in unused.filter_map(|field| Some((field, node.get(field).filter(|given| !given.is_null())?))) {
            report.warning(at, format!("{path}.{field}"), "is never used: no environment follows this one".into());
        }
    }
}

fn targets(node: &Node, path: &str, namespace: &str, report: &mut Report) -> Option<Vec<Target>> {
    let path = format!("{path}.targets");
    let list = node.get("targets").filter(|list| !list.is_null())?;
    let entries = levels::items(list, &path, &pipelines::TARGET, report)?;
    let read = |(place, node): (usize, &&Node)| target(node, &format!("{path}[{place}]"), namespace, report);
    entries.iter().enumerate().map(read).collect::<Vec<_>>().into_iter().collect()
}

fn target(node: &Node, path: &str, own: &str, report: &mut Report) -> Option<Target> {
    if node.entries().is_none() {
        report.error(node, path, format!("is {}, not a mapping: write `- namespace: shop-staging`", node.what()));
        return None;
    }
    levels::check(node, &pipelines::TARGET, path, report);
    let namespace = text(node, "namespace", path, report);
    let reference = levels::mapping(node, "clusterRef", &pipelines::CLUSTER_REF, path, report);
    let cluster = reference.map(|(reference, path)| {
        let name = objects::name(reference, &path, report);
        // As in Weave: a cluster of the pipeline's own namespace needs no namespace.
        let namespace = text(reference, "namespace", &path, report).unwrap_or_else(|| own.to_owned());
        name.map(|name| format!("{namespace}/{name}"))
    });
    match cluster {
        Some(None) => None,
        cluster => Some(Target { cluster: cluster.flatten(), namespace: namespace? }),
    }
}
