//! The files of a converted analysis, and their comments.

use super::metric::Metric;
use super::provider::Source;
use super::{Analysis, Files};
use keelway_domain::time::Span;

pub fn write(analysis: &Analysis) -> Files {
    Files { slo: slo(analysis), sli: sli(analysis), analysis: block(&analysis.metrics) }
}

fn slo(analysis: &Analysis) -> String {
    let mut text = format!(
        "# From the AnalysisTemplate {} of Argo Rollouts, by `keelway evaluation migrate`.\n\
         # Where an indicator has no value, its objective fails; in Argo Rollouts, the condition decides.\n",
        analysis.name
    );
    let is_named = |name: &str| analysis.metrics.iter().any(|metric| metric.query.contains(name));
    if let Some(labels) = joined(analysis.arguments.labels().filter(|name| is_named(&format!("$LABEL.{name}")))) {
        text += &format!(
            "# Whoever triggers names these as labels, or queries use `$SERVICE` and the like in their place: {labels}.\n"
        );
    }
    text += "spec_version: \"1.0\"\n";
    let filter: Vec<String> = analysis
        .arguments
        .filter()
        .filter(|(name, _)| is_named(&format!("${name}")))
        .map(|(name, value)| format!("  {}: {}\n", quoted(name), quoted(value)))
        .collect();
    if !filter.is_empty() {
        text += &format!("filter:\n{}", filter.concat());
    }
    text += "objectives:\n";
    for metric in &analysis.metrics {
        text += &objective(metric);
    }
    text += "total_score:\n  pass: \"100%\"\n";
    if analysis.metrics.iter().any(|metric| !metric.is_dry && !metric.warning.is_empty()) {
        // All of them inconclusive, and none failed, is half of the score.
        text += "  warning: \"50%\"\n";
    }
    text
}

fn objective(metric: &Metric) -> String {
    let mut text = format!("  - sli: {}\n", quoted(&metric.name));
    let entries = |name: &str, all: &[Vec<String>]| {
        let each = all.iter().map(|criteria| {
            let criteria: Vec<String> = criteria.iter().map(|one| quoted(one)).collect();
            format!("      - criteria: [{}]\n", criteria.join(", "))
        });
        format!("    {name}:\n{}", each.collect::<String>())
    };
    match metric.pass.as_ref().filter(|_| !metric.is_dry) {
        // One metric that fails is enough in Argo Rollouts.
        Some(pass) => {
            text += &format!("    displayName: {}\n    key_sli: true\n", quoted(&metric.name));
            text += &entries("pass", pass);
            if !metric.warning.is_empty() {
                text += &entries("warning", &metric.warning);
            }
        }
        None if metric.is_dry => text += "    # Of dryRun: for information.\n",
        None => text += "    # Without a condition: for information.\n",
    }
    text
}

fn sli(analysis: &Analysis) -> String {
    let source = match analysis.metrics.first().map(|metric| &metric.source) {
        Some(Source::Prometheus(Some(address))) => format!("`prometheus.url: {}`", address.escape_debug()),
        Some(Source::Prometheus(None)) => "`prometheus`".into(),
        _ => "`cloudwatch: {}`".into(),
    };
    let mut text = format!("# For a MetricsSource with {source}.\nspec_version: \"1.0\"\nindicators:\n");
    for metric in &analysis.metrics {
        text += &format!("  {}: {}\n", quoted(&metric.name), query(&metric.query));
    }
    text
}

/// A query of several lines as a block, where YAML would read it unchanged.
fn query(text: &str) -> String {
    let is_plain = |line: &str| !line.contains(|c: char| c.is_control()) && line.trim_end() == line;
    if !text.contains('\n') || text.starts_with(' ') || !text.lines().all(is_plain) {
        return quoted(text);
    }
    let line = |line: &str| if line.is_empty() { "\n".to_owned() } else { format!("\n    {line}") };
    format!("|-{}", text.lines().map(line).collect::<String>())
}

/// The shortest interval, and the fewest failures that are allowed: what a strategy has once, metrics may have each. Argo Rollouts
/// counts no requests.
fn block(metrics: &[Metric]) -> String {
    let interval = metrics.iter().filter_map(|metric| metric.interval).min();
    let limit = metrics.iter().filter(|metric| !metric.is_dry).map(|metric| metric.failure_limit).min().unwrap_or(0);
    let interval = interval.map(|interval| format!("interval: {}, ", compact(interval))).unwrap_or_default();
    format!("analysis: {{{interval}failureLimit: {limit}, minSamples: 0}}\n")
}

/// `1h30m`: as manifests have it.
fn compact(span: Span) -> String {
    span.to_string().replace(' ', "")
}

fn joined<'s>(names: impl Iterator<Item = &'s String>) -> Option<String> {
    let names: Vec<String> = names.map(|name| name.escape_debug().to_string()).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// A text that YAML reads as it is: without quotes if it is a plain word.
fn quoted(text: &str) -> String {
    let is_word =
        text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    let reads_as_other = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"].contains(&text.to_lowercase().as_str());
    if is_word && !reads_as_other { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}
