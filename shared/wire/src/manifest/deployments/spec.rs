//! What a DeploymentConfig is to do, in either of its forms.

use super::triggers::Around;
use super::{additions, containers, hooks, strategy, triggers};
use crate::manifest::finding::Report;
use crate::manifest::tree::Node;
use crate::manifest::values::{flag, texts, whole};
use keelway_domain::deployments::definition::{Definition, Texts};
use serde_json::{Map, Value};

/// A mapping and its path.
pub type Place<'n> = (&'n Node, String);

/// Where a form has the parts of a definition.
pub struct Form<'n> {
    pub namespace: &'n str,
    /// The mapping with `triggers` and all other fields that both forms have in one place.
    pub spec: Place<'n>,
    /// The mapping with `strategy`.
    pub how: Option<Place<'n>>,
    /// The mapping with the template, the number of copies and the selector.
    pub what: Option<Place<'n>>,
    /// Whether the manifest has the proposal's form.
    pub proposed: bool,
    pub labels: Texts,
    pub annotations: Texts,
    /// How many old versions are kept, if the manifest does not say.
    pub history: Option<u32>,
}

pub fn read(form: Form, report: &mut Report) -> Option<Definition> {
    let (selector_field, template_field) =
        if form.proposed { ("replicaSelector", "podTemplate") } else { ("selector", "template") };
    let (spec, path) = (form.spec.0, form.spec.1.as_str());
    let template = form.what.as_ref().and_then(|(node, path)| containers::read(node, template_field, path, report));
    let around = Around { namespace: form.namespace, template: template.as_ref(), proposed: form.proposed };
    let (replicas, selector) = match &form.what {
        Some((node, path)) => (
            whole(node, "replicas", path, 0, report).and_then(|replicas| u32::try_from(replicas).ok()),
            selector(node, selector_field, path, template.as_ref(), report),
        ),
        None => (None, Texts::new()),
    };
    let triggers = triggers::read(spec, path, &around, report);
    let nothing = (spec, path.to_owned());
    let (how, how_path) = form.how.as_ref().unwrap_or(&nothing);
    let strategy = strategy::read(how, how_path, &around, report);
    let history = whole(spec, "revisionHistoryLimit", path, 0, report).and_then(|limit| u32::try_from(limit).ok());
    let mut other = Map::new();
    if let Some(ready) = whole(spec, "minReadySeconds", path, 0, report) {
        ready_in_time(ready, (spec, path), &strategy, report);
        other.insert("minReadySeconds".into(), ready.into());
    }
    if flag(spec, "test", path, report) {
        other.insert("test".into(), Value::Bool(true));
    }
    let targets = additions::targets(spec, path, report);
    let paused = flag(spec, "paused", path, report);
    let concurrency = additions::concurrency(spec, path, report);
    let resume = additions::resume(spec, path, report);
    let on_drift = additions::on_drift(spec, path, report);
    let auto_rollback = additions::auto_rollback(spec, path, report);
    let deployer = additions::deployer(spec, path, report);
    let (template, triggers) = (template?, triggers?);
    containers::check_images(&template, &triggers, report);
    let definition = Definition {
        labels: form.labels,
        annotations: form.annotations,
        template: template.value,
        replicas,
        selector,
        targets,
        strategy,
        triggers,
        paused,
        history: history.or(form.history),
        concurrency,
        resume,
        auto_rollback,
        on_drift,
        deployer,
        other,
        vouched: false,
    };
    unseen(&definition, (spec, path), report);
    let (_, field) = strategy::names(definition.strategy.kind);
    let params = how.get("strategy").and_then(|strategy| strategy.get(field)).unwrap_or(how);
    hooks::check_runnable(&definition, (params, &format!("{how_path}.strategy.{field}")), report);
    let nowhere = (spec, path.to_owned());
    let (what, what_path) = form.what.as_ref().unwrap_or(&nowhere);
    let how = (how.get("strategy").unwrap_or(how), format!("{how_path}.strategy"));
    meaningless(&definition, [(what, what_path, "replicas"), (how.0, &how.1, "resources")], report);
    unjudged(&definition, (how.0, &how.1), report);
    Some(definition)
}

/// Fields that only deployers of copies and containers heed.
fn meaningless(definition: &Definition, fields: [(&Node, &str, &str); 2], report: &mut Report) {
    for (node, path, field) in fields.into_iter().filter(|_| definition.deploys_to_aliases()) {
        if let Some(at) = node.get(field).filter(|at| !at.is_null()) {
            let message = "means nothing to Lambda aliases, which are all this config deploys to: leave it out";
            report.warning(at, format!("{path}.{field}"), message.into());
        }
    }
}

/// Warns of `analysis` where nothing is judged.
fn unjudged(definition: &Definition, (how, path): (&Node, &str), report: &mut Report) {
    let judges = definition.deploys_to_aliases() || definition.wraps();
    if let Some(at) = how.get("analysis").filter(|at| !at.is_null() && !judges) {
        let message = "is not used: Keelway judges versions of Lambda aliases that it deploys itself";
        report.warning(at, format!("{path}.analysis"), message.into());
    }
}

/// Warns of `onDrift` where nothing is compared: Keelway looks for drift only in what it deploys itself.
fn unseen(definition: &Definition, (spec, path): (&Node, &str), report: &mut Report) {
    if let Some(at) = spec.get("onDrift").filter(|at| !at.is_null() && !definition.deploys_to_aliases()) {
        let message = "is not used: only the aliases of configs that Keelway carries out itself are looked at; leave it out";
        report.warning(at, format!("{path}.onDrift"), message.into());
    }
}

/// The labels of what belongs to the config; absent: those of the pod template.
fn selector(node: &Node, field: &str, path: &str, template: Option<&containers::Template>, report: &mut Report) -> Texts {
    let given = texts(node, field, path, report);
    let Some(labels) = template.and_then(|template| template.labels.as_ref()) else { return given };
    let at = node.get(field).unwrap_or(node);
    if labels.is_empty() && given.is_empty() {
        let message = "is missing, and so are the pod template's labels: write labels in the template's `metadata`";
        report.error(at, format!("{path}.{field}"), message.into());
    }
    for (name, value) in given.iter().filter(|(name, value)| labels.get(*name) != Some(value)) {
        let has = labels.get(name).map_or("does not have it".to_owned(), |other| format!("has `{name}: {other}`"));
        let at = at.get(name).unwrap_or(at);
        let message = format!("selects `{name}: {value}`, but the pod template {has}: write the same labels in both");
        report.error(at, format!("{path}.{field}.{name}"), message);
    }
    if given.is_empty() { labels.clone() } else { given }
}

/// A new copy has to be ready before a step times out, and before the deadline.
fn ready_in_time(
    ready: i64,
    (spec, path): (&Node, &str),
    strategy: &keelway_domain::deployments::definition::Strategy,
    report: &mut Report,
) {
    let limits = [("timeoutSeconds", strategy.timeout), ("activeDeadlineSeconds", strategy.deadline)];
    if let Some((name, limit)) = limits.into_iter().find(|(_, limit)| ready * 1000 >= limit.0) {
        let limit = limit.0 / 1000;
        let at = spec.get("minReadySeconds").unwrap_or(spec);
        let message =
            format!("is {ready}, but the strategy's `{name}` is {limit}: nothing could ever be ready in time; write less");
        report.error(at, format!("{path}.minReadySeconds"), message);
    }
}
