//! A definition as a DeploymentConfig: what a rollback wrote, for people and for the API.

use super::analysis::MEANINGS;
use super::strategy;
use crate::manifest::levels::configs::{API_VERSION, LEGACY_VERSION};
use crate::manifest::levels::strategies::ON_INCONCLUSIVE;
use keelway_domain::deployments::analysis::Analysis;
use keelway_domain::deployments::definition::{
    Action, Concurrency, Definition, FailurePolicy, Hook, ImageChange, ImageTag, Resume, Starter, Strategy, Texts, Trigger, Weight,
};
use keelway_domain::time::Span;
use serde_json::{Map, Value, json};

/// The DeploymentConfig of a definition. Reading the result gives the same definition.
///
/// The version is `apps.openshift.io/v1`, and `v1` for a config that keeps its whole history, which is the default of `v1` only.
pub fn render(namespace: &str, name: &str, definition: &Definition) -> Value {
    let mut metadata = Map::from_iter([("name".into(), json!(name)), ("namespace".into(), json!(namespace))]);
    put(&mut metadata, "labels", texts(&definition.labels));
    put(&mut metadata, "annotations", texts(&definition.annotations));
    let version = if definition.history.is_some() { API_VERSION } else { LEGACY_VERSION };
    json!({"apiVersion": version, "kind": "DeploymentConfig", "metadata": metadata, "spec": spec(definition)})
}

/// Adds a field, unless its value is empty or `false`.
fn put(fields: &mut Map<String, Value>, name: &str, value: Value) {
    let empty = match &value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    if !empty {
        fields.insert(name.to_owned(), value);
    }
}

fn texts(texts: &Texts) -> Value {
    json!(texts)
}

fn spec(definition: &Definition) -> Value {
    let mut spec = definition.other.clone();
    put(&mut spec, "replicas", json!(definition.replicas));
    put(&mut spec, "selector", texts(&definition.selector));
    put(&mut spec, "paused", json!(definition.paused));
    put(&mut spec, "revisionHistoryLimit", json!(definition.history));
    put(&mut spec, "targets", json!(definition.targets));
    if definition.concurrency != Concurrency::default() {
        put(&mut spec, "concurrency", json!(definition.concurrency));
    }
    if definition.resume != Resume::default() {
        put(&mut spec, "resume", json!(definition.resume));
    }
    if !definition.on_drift.is_tell() {
        put(&mut spec, "onDrift", json!(definition.on_drift));
    }
    if let Some(auto) = &definition.auto_rollback {
        let mut fields = Map::new();
        put(&mut fields, "onFailure", json!(auto.on_failure));
        put(&mut fields, "alarms", json!(auto.alarms));
        if auto.bake != Span(0) {
            put(&mut fields, "bake", duration(auto.bake));
        }
        spec.insert("autoRollback".into(), fields.into());
    }
    match &definition.deployer {
        Some(Starter::Ecs(params)) => put(&mut spec, "deployer", json!({"ecs": params})),
        Some(Starter::CodeBuild(params)) => put(&mut spec, "deployer", json!({"codeBuild": params})),
        None => {}
    }
    spec.insert("template".into(), definition.template.clone());
    spec.insert("strategy".into(), how(&definition.strategy));
    // Without the field, there would be a trigger.
    spec.insert("triggers".into(), definition.triggers.iter().map(trigger).collect());
    spec.into()
}

/// A duration in the largest unit of which it is a whole number.
fn duration(span: Span) -> Value {
    let units = [(3_600_000, "h"), (60_000, "m"), (1000, "s")];
    let exact = units.into_iter().find(|(length, _)| span.0 % length == 0);
    let (length, unit) = exact.unwrap_or((1, "ms"));
    json!(format!("{}{unit}", span.0 / length))
}

fn how(strategy: &Strategy) -> Value {
    let (kind, field) = strategy::names(strategy.kind);
    let mut params = strategy.params.clone();
    put(&mut params, "steps", strategy.steps.iter().map(weight).collect());
    let hooks = &strategy.hooks;
    for (field, hook) in [("pre", &hooks.pre), ("mid", &hooks.mid), ("post", &hooks.post)] {
        put(&mut params, field, hook.as_ref().map(self::hook).unwrap_or_default());
    }
    let mut how =
        Map::from_iter([("type".into(), json!(kind)), ("activeDeadlineSeconds".into(), json!(strategy.deadline.0 / 1000))]);
    put(&mut how, field, params.into());
    if let Some(custom) = &strategy.custom {
        let mut fields = Map::new();
        put(&mut fields, "image", json!(custom.image));
        put(&mut fields, "command", json!(custom.command));
        let environment = custom.environment.iter().map(|(name, value)| json!({"name": name, "value": value}));
        put(&mut fields, "environment", environment.collect());
        how.insert("customParams".into(), fields.into());
    }
    put(&mut how, "analysis", strategy.analysis.as_ref().map(analysis).unwrap_or_default());
    put(&mut how, "labels", texts(&strategy.labels));
    put(&mut how, "annotations", texts(&strategy.annotations));
    put(&mut how, "resources", strategy.resources.clone());
    how.into()
}

fn analysis(analysis: &Analysis) -> Value {
    let meaning = MEANINGS.iter().position(|meaning| *meaning == analysis.on_inconclusive).unwrap_or_default();
    let mut fields = Map::from_iter([
        ("slo".into(), json!(analysis.slo)),
        ("interval".into(), duration(analysis.interval)),
        ("samples".into(), json!(analysis.samples)),
        ("minSamples".into(), json!(analysis.min_samples)),
        ("failureLimit".into(), json!(analysis.failure_limit)),
        ("deadline".into(), duration(analysis.deadline)),
        ("onInconclusive".into(), json!(ON_INCONCLUSIVE[meaning])),
    ]);
    if let Some((stage, service)) = &analysis.place {
        fields.extend([("stage".into(), json!(stage)), ("service".into(), json!(service))]);
    }
    put(&mut fields, "source", json!(analysis.source));
    put(&mut fields, "mannWhitney", json!(analysis.mann_whitney));
    fields.into()
}

fn weight(step: &Weight) -> Value {
    let mut fields = Map::from_iter([("weight".into(), json!(step.weight))]);
    put(&mut fields, "bake", step.bake.map(duration).unwrap_or_default());
    fields.into()
}

fn hook(hook: &Hook) -> Value {
    let policy = match hook.failure_policy {
        FailurePolicy::Abort => "Abort",
        FailurePolicy::Retry => "Retry",
        FailurePolicy::Ignore => "Ignore",
    };
    match &hook.action {
        Action::ExecNewPod(pod) => json!({"failurePolicy": policy, "execNewPod": pod}),
        Action::Invoke(function) => json!({"failurePolicy": policy, "invoke": function}),
        Action::TagImages(tagged) => {
            let tagged = tagged.iter().map(|tagged| json!({"containerName": tagged.container, "to": image_tag(&tagged.to)}));
            json!({"failurePolicy": policy, "tagImages": tagged.collect::<Value>()})
        }
    }
}

fn image_tag(tag: &ImageTag) -> Value {
    json!({"kind": "ImageStreamTag", "namespace": tag.namespace, "name": format!("{}:{}", tag.name, tag.tag)})
}

fn trigger(trigger: &Trigger) -> Value {
    match trigger {
        Trigger::ConfigChange => json!({"type": "ConfigChange"}),
        Trigger::Manual => json!({"type": "Manual"}),
        Trigger::ImageChange(ImageChange { automatic, from, containers }) => json!({
            "type": "ImageChange",
            "imageChangeParams": {"automatic": automatic, "containerNames": containers, "from": image_tag(from)},
        }),
    }
}
