//! An `AnalysisTemplate` of Argo Rollouts as objectives and indicators.
//!
//! What maps is taken over; what does not is refused at its field, with the way out. The user's reference is `docs/evaluation.md`
//! under "From Argo Rollouts".

mod arguments;
mod condition;
mod metric;
mod output;
mod provider;

use super::finding::{Finding, Report};
use super::names::nearest;
use super::tree::{self, Node};
use super::values::mapping;
use super::{MAX_BYTES, objects};
use arguments::Arguments;
use keelway_domain::time::Span;
use metric::Metric;

const API_VERSION: &str = "argoproj.io/v1alpha1";
const KINDS: [&str; 2] = ["AnalysisTemplate", "ClusterAnalysisTemplate"];

/// The files that an analysis becomes.
#[derive(Debug, Clone, PartialEq)]
pub struct Files {
    /// `slo.yaml`
    pub slo: String,
    /// `sli.yaml`
    pub sli: String,
    /// What a strategy says about when it is evaluated: the block `analysis`, as YAML.
    pub analysis: String,
}

/// The result of a conversion.
#[derive(Debug, Clone, PartialEq)]
pub struct Converted {
    /// Absent if there is an error among the findings.
    pub files: Option<Files>,
    /// What cannot be taken over, by line.
    pub findings: Vec<Finding>,
}

/// An analysis as far as it is taken over.
struct Analysis {
    name: String,
    arguments: Arguments,
    metrics: Vec<Metric>,
}

/// Writes an `AnalysisTemplate` as objectives and indicators. `file` is how findings call the text.
pub fn from_analysis(source: &str, file: &str) -> Converted {
    let mut report = Report::new(file, source);
    let mut analysis = None;
    if source.len() > MAX_BYTES {
        report.error_at(tree::START, "", format!("the file has {} bytes: at most {MAX_BYTES} (1 MiB) are read", source.len()));
    } else {
        let trees = tree::read(source, &mut report);
        match trees.as_slice() {
            [tree] => analysis = document(&tree.root, &mut report),
            [] if report.has_errors() => {}
            [] => report.error_at(tree::START, "", "holds no document: there is nothing to migrate".into()),
            more => {
                let message = format!("holds {} documents: put each AnalysisTemplate into a file of its own", more.len());
                report.error(&more[1].root, "", message);
            }
        }
    }
    let files = analysis.filter(|_| !report.has_errors()).map(|analysis| output::write(&analysis));
    Converted { files, findings: report.finish() }
}

fn document(root: &Node, report: &mut Report) -> Option<Analysis> {
    let kind = root.get("kind").and_then(Node::scalar).unwrap_or_default();
    if !KINDS.contains(&kind) {
        let message = format!("{kind:?} is not migrated: only {} are", KINDS.join(" and "));
        report.error(root.get("kind").unwrap_or(root), "kind", message);
        return None;
    }
    objects::version(root, kind, API_VERSION, report);
    let name = mapping(root, "metadata", "metadata", report)
        .and_then(|metadata| metadata.get("name")?.scalar())
        .unwrap_or("analysis")
        .to_owned();
    let Some(spec) = mapping(root, "spec", "spec", report) else {
        report.error(root, "spec", "is missing: an analysis has at least one metric".into());
        return None;
    };
    fields(spec, "spec", &SPEC, report);
    let arguments = Arguments::read(spec, report);
    let dry = dry_run(spec, report);
    let entries = match spec.get("metrics").map(|metrics| (metrics, metrics.list())) {
        Some((_, Some(entries))) if !entries.is_empty() => entries,
        found => {
            let at = found.map_or(spec, |(metrics, _)| metrics);
            report.error(at, "spec.metrics", "has no metric: an objective is made of each".into());
            return None;
        }
    };
    let mut metrics: Vec<Metric> = vec![];
    for (place, node) in entries.iter().enumerate() {
        let path = format!("spec.metrics[{place}]");
        let Some(mut metric) = metric::read(node, &path, &arguments, report) else { continue };
        if metrics.iter().any(|before| before.name == metric.name) {
            report.error(node, path, format!("{:?} is there twice: give each metric a name of its own", metric.name));
        } else if metrics.first().is_some_and(|first| first.source != metric.source) {
            let message = "asks another source than the first metric, and an evaluation has one: put it into a file of its own";
            report.error(node, format!("{path}.provider"), message.into());
        }
        metric.is_dry = dry.iter().any(|name| *name == metric.name || *name == ".*");
        metrics.push(metric);
    }
    let differ = |of: fn(&Metric) -> (Option<Span>, i64)| metrics.iter().any(|metric| of(metric) != of(&metrics[0]));
    if differ(|metric| (metric.interval, 0)) || differ(|metric| (None, metric.failure_limit)) {
        let message = "differ in `interval` or `failureLimit`, of which a strategy has one: the shortest and the lowest are taken";
        report.warning(entries.first().unwrap_or(spec), "spec.metrics", message.into());
    }
    Some(Analysis { name, arguments, metrics })
}

/// The metrics whose results do not count.
fn dry_run<'n>(spec: &'n Node, report: &mut Report) -> Vec<&'n str> {
    let Some(entries) = spec.get("dryRun").and_then(Node::list) else { return vec![] };
    let names: Vec<&str> = entries.iter().filter_map(|entry| entry.get("metricName")?.scalar()).collect();
    let is_plain = |name: &str| name == ".*" || !name.contains(['*', '+', '?', '[', '(', '|', '^', '$', '\\', '{']);
    for (place, name) in names.iter().enumerate().filter(|(_, name)| !is_plain(name)) {
        let message = format!("{name:?} is an expression: write the names of the metrics, or `.*`");
        report.error(&entries[place], format!("spec.dryRun[{place}].metricName"), message);
    }
    names
}

/// What becomes of the fields of a mapping.
struct Fields {
    taken: &'static [&'static str],
    /// Left out with a warning that says why.
    left: &'static [(&'static str, &'static str)],
    /// Refused, with the way out.
    refused: &'static [(&'static str, &'static str)],
}

const SPEC: Fields = Fields {
    taken: &["args", "metrics", "dryRun"],
    left: &[("measurementRetention", "the last twenty evaluations of a service are kept")],
    refused: &[("templates", "names other templates: write their metrics into this one")],
};

/// Reports every field that is not taken over.
fn fields(node: &Node, path: &str, known: &Fields, report: &mut Report) {
    for entry in node.entries().unwrap_or_default() {
        let key = entry.key.as_str();
        let of = |list: &[(&str, &'static str)]| list.iter().find(|(name, _)| *name == key).map(|(_, why)| *why);
        let path = format!("{path}.{key}");
        if let Some(why) = of(known.left) {
            report.warning_at(entry.at, path, format!("is not taken over: {why}"));
        } else if let Some(why) = of(known.refused) {
            report.error_at(entry.at, path, why.into());
        } else if !known.taken.contains(&key) {
            let all = || known.taken.iter().copied().chain(known.left.iter().map(|(name, _)| *name));
            let meant = nearest(key, all()).map(|name| format!(", did you mean `{name}`?")).unwrap_or_default();
            report.error_at(entry.at, path, format!("is not a field of an AnalysisTemplate{meant}"));
        }
    }
}

/// The scalar under a field, with its arguments filled in where they have values.
fn filled(node: &Node, field: &str, path: &str, arguments: &Arguments, report: &mut Report) -> Option<String> {
    let text = super::values::text(node, field, path, report)?;
    match arguments.constant(&text) {
        Ok(text) => Some(text),
        Err(why) => {
            report.error(node.get(field).unwrap_or(node), format!("{path}.{field}"), why);
            None
        }
    }
}
