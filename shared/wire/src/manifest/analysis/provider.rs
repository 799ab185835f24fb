//! Where the value of a metric comes from.

use super::arguments::Arguments;
use super::{Fields, fields, filled};
use crate::manifest::finding::Report;
use crate::manifest::tree::Node;
use crate::manifest::values::mapping;

/// What is asked: a `MetricsSource` has the address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// With its address, if it is said.
    Prometheus(Option<String>),
    CloudWatch,
}

const PROMETHEUS: Fields = Fields {
    taken: &["address", "query"],
    left: &[
        ("authentication", "name a secret in `prometheus.secret` of the MetricsSource, or a `region` for signed requests"),
        ("timeout", "a source has 20 seconds to answer"),
    ],
    refused: &[
        ("headers", "a source gets no headers of its own: let a proxy in front of it add them, and leave the field out"),
        ("insecure", "certificates are always checked: give the server one that is trusted, and leave the field out"),
        ("rangeQuery", "an indicator is one number: write a query over the time, such as `avg_over_time(…[$DURATION_SECONDS])`"),
    ],
};

const CLOUDWATCH: Fields = Fields {
    taken: &["metricDataQueries"],
    left: &[("interval", "the evaluated time is the window, and a metric without a period has one value for it")],
    refused: &[],
};

/// Why there is no source for a provider, by its name.
const NO_SOURCE: &str = "has no source here: values come from Prometheus and CloudWatch, or from a service on the bus that answers \
                         `get-sli.triggered`, which an executor can be; write one that asks, and name it with `keelway set sli-provider`";

/// The source of a metric, and its query.
pub fn read(metric: &Node, path: &str, arguments: &Arguments, report: &mut Report) -> Option<(Source, String)> {
    let of_metric = path;
    let path = format!("{path}.provider");
    let Some(provider) = mapping(metric, "provider", &path, report) else {
        if metric.get("provider").is_none_or(Node::is_null) {
            report.error(metric, path, "is missing: it has the query".into());
        }
        return None;
    };
    let mut found = None;
    for entry in provider.entries().unwrap_or_default() {
        let at = format!("{path}.{}", entry.key);
        let read = match entry.key.as_str() {
            "prometheus" => prometheus(&entry.value, &at, arguments, report),
            "cloudWatch" => cloudwatch(&entry.value, &at, arguments, report),
            name => {
                let only = if name == "job" { "; a Job whose end decides is an executor of the task `evaluation`" } else { "" };
                report.error_at(entry.at, at, format!("{name:?} {NO_SOURCE}{only}"));
                None
            }
        };
        if found.is_some() {
            report.error_at(entry.at, of_metric, "has several providers: write one".into());
        }
        found = found.or(read);
    }
    found
}

fn prometheus(node: &Node, path: &str, arguments: &Arguments, report: &mut Report) -> Option<(Source, String)> {
    fields(node, path, &PROMETHEUS, report);
    let address = filled(node, "address", path, arguments, report);
    if let Some(http) = address.as_ref().filter(|address| address.starts_with("http://")) {
        let message = format!("{http:?} is not encrypted: a MetricsSource takes `https` addresses");
        report.warning(node.get("address").unwrap_or(node), format!("{path}.address"), message);
    }
    let at = node.get("query").unwrap_or(node);
    let Some(query) = node.get("query").and_then(Node::scalar).filter(|query| !query.trim().is_empty()) else {
        report.error(at, format!("{path}.query"), "is missing: it is what the indicator is asked by".into());
        return None;
    };
    match arguments.query(query.trim()) {
        Ok(query) => Some((Source::Prometheus(address), query)),
        Err(why) => {
            report.error(at, format!("{path}.query"), why);
            None
        }
    }
}

/// The array as it is: indicators of CloudWatch take it.
fn cloudwatch(node: &Node, path: &str, arguments: &Arguments, report: &mut Report) -> Option<(Source, String)> {
    fields(node, path, &CLOUDWATCH, report);
    let path = format!("{path}.metricDataQueries");
    let Some((at, queries)) = node.get("metricDataQueries").and_then(|node| Some((node, node.list()?))) else {
        report.error(node, path, "is missing, or no list: it has the metrics of the indicator".into());
        return None;
    };
    let each: Vec<String> = queries.iter().map(|query| query.to_json().to_string()).collect();
    match arguments.query(&format!("[{}]", each.join(",\n "))) {
        Ok(query) => Some((Source::CloudWatch, query)),
        Err(why) => {
            report.error(at, path, why);
            None
        }
    }
}
