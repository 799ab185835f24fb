//! What is deployed: the template, and the containers it has.

use crate::manifest::finding::Report;
use crate::manifest::levels::{self, configs};
use crate::manifest::tree::{Node, Yaml};
use crate::manifest::values::{mapping, texts};
use keelway_domain::deployments::definition::{Texts, Trigger};
use serde_json::{Map, Value};
use std::collections::HashSet;

/// Where containers are: in a pod template, in a task definition or another document, and in a pod template of the proposal's time.
const PLACES: [&[&str]; 5] = [
    &["spec", "containers"],
    &["spec", "initContainers"],
    &["containerDefinitions"],
    &["containers"],
    &["desiredState", "manifest", "containers"],
];

/// Fields of `spec` that are written under the template when the indentation is wrong.
const BESIDE: [&str; 8] =
    ["strategy", "triggers", "replicas", "selector", "paused", "test", "revisionHistoryLimit", "minReadySeconds"];

/// A container of a template.
pub struct Container<'n> {
    pub name: &'n str,
    image: Option<&'n Node>,
    node: &'n Node,
    path: String,
}

/// A template, with what other rules need of it.
pub struct Template<'n> {
    pub value: Value,
    pub containers: Vec<Container<'n>>,
    /// The labels of a pod template; others have none.
    pub labels: Option<Texts>,
}

impl Template<'_> {
    pub fn has(&self, name: &str) -> bool {
        self.containers.iter().any(|container| container.name == name)
    }

    /// Its containers, for messages.
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.containers.iter().map(|container| container.name).collect();
        if names.is_empty() { "the template has no containers".into() } else { format!("it has `{}`", names.join("`, `")) }
    }
}

/// The template under `field`. `path`: of `parent`.
pub fn read<'n>(parent: &'n Node, field: &str, path: &str, report: &mut Report) -> Option<Template<'n>> {
    let path = format!("{path}.{field}");
    let node = mapping(parent, field, &path, report)?;
    let containers = containers(node, &path, report);
    let old = node.get("desiredState").is_some();
    let pod = ["metadata", "spec"].iter().any(|field| node.get(field).is_some());
    if pod {
        levels::check(node, &configs::POD_TEMPLATE, &path, report);
        levels::mapping(node, "metadata", &configs::POD_METADATA, &path, report);
        beside(node, &path, report);
    }
    if (pod || old) && containers.is_empty() {
        let at = node.get("spec").unwrap_or(node);
        report.error(
            at,
            format!("{path}.spec.containers"),
            "is empty: list at least one container, with `name` and `image`".into(),
        );
    }
    let labels = if old {
        Some(texts(node, "labels", &path, report))
    } else {
        let metadata = node.get("metadata").filter(|metadata| metadata.entries().is_some());
        let read = |metadata: &Node| texts(metadata, "labels", &format!("{path}.metadata"), report);
        pod.then(|| metadata.map(read).unwrap_or_default())
    };
    let value = match (old, pod) {
        (true, _) => modern(node),
        (_, true) => without_nulls(node),
        _ => node.to_json(),
    };
    Some(Template { value, containers, labels })
}

/// Refuses fields that belong one or two levels up.
fn beside(node: &Node, path: &str, report: &mut Report) {
    for entry in node.get("spec").and_then(Node::entries).unwrap_or_default() {
        if BESIDE.contains(&entry.key.as_str()) {
            let message = "is not a field of a pod: it belongs under the config's `spec`, beside `template`; mend the indentation";
            report.error_at(entry.at, format!("{path}.spec.{}", entry.key), message.into());
        }
    }
}

fn containers<'n>(template: &'n Node, path: &str, report: &mut Report) -> Vec<Container<'n>> {
    let mut all: Vec<Container> = vec![];
    let mut names = HashSet::new();
    for place in PLACES {
        let Some(list) = place.iter().try_fold(template, |node, field| node.get(field)).filter(|list| !list.is_null()) else {
            continue;
        };
        let path = format!("{path}.{}", place.join("."));
        if list.list().is_none() {
            report.error(list, path.clone(), format!("is {}, not a list: put `- ` before each container", list.what()));
        }
        for (place, node) in list.list().unwrap_or_default().iter().enumerate() {
            let path = format!("{path}[{place}]");
            let name = node.get("name").and_then(Node::scalar).filter(|name| !name.trim().is_empty());
            let Some(name) = name else {
                let message = "is missing: name the container, triggers and hooks refer to it";
                report.error(node.get("name").unwrap_or(node), format!("{path}.name"), message.into());
                continue;
            };
            if !names.insert(name) {
                let message = format!("{name:?} is there twice: name each container differently");
                report.error(node.get("name").unwrap_or(node), format!("{path}.name"), message);
            }
            let image = node.get("image").filter(|image| !image.is_null());
            if let Some(image) = image.filter(|image| image.scalar().is_none()) {
                report.error(image, format!("{path}.image"), format!("is {}, not a text: write the image", image.what()));
            }
            variables(node, &path, report);
            all.push(Container { name, image, node, path });
        }
    }
    all
}

/// Variables of containers have names; Kubernetes allows `.` and `-` in them, too.
fn variables(container: &Node, path: &str, report: &mut Report) {
    for (place, variable) in container.get("env").and_then(Node::list).unwrap_or_default().iter().enumerate() {
        let name = variable.get("name").and_then(Node::scalar).unwrap_or_default();
        let inside = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(inside) {
            let at = variable.get("name").unwrap_or(variable);
            let message = format!("{name:?} is not the name of a variable: use letters, digits and `_`, first no digit");
            report.error(at, format!("{path}.env[{place}].name"), message);
        }
    }
}

/// Whether triggers and images agree: a blank image needs a trigger, and an automatic trigger replaces what is written.
pub fn check_images(template: &Template, triggers: &[Trigger], report: &mut Report) {
    let is_text = |container: &&Container| container.image.is_none_or(|image| image.scalar().is_some());
    for container in template.containers.iter().filter(is_text) {
        let owner = triggers.iter().find_map(|trigger| match trigger {
            Trigger::ImageChange(change) if change.containers.iter().any(|name| name == container.name) => Some(change),
            _ => None,
        });
        let written = container.image.and_then(Node::scalar).unwrap_or_default().trim();
        let (at, path) = (container.image.unwrap_or(container.node), format!("{}.image", container.path));
        match owner {
            None if written.is_empty() => {
                let message =
                    format!("is empty: write the image, or name container {:?} in an ImageChange trigger", container.name);
                report.error(at, path, message);
            }
            Some(change) if change.automatic && !written.is_empty() => {
                let message = format!(
                    "is written by hand, but an automatic trigger owns it: the image of {} is deployed instead; leave the image \
                     out, or set the trigger's `automatic: false`",
                    change.from
                );
                report.warning(at, path, message);
            }
            _ => {}
        }
    }
}

/// A value without the fields that are null, as Kubernetes reads it.
fn without_nulls(node: &Node) -> Value {
    match &node.value {
        Yaml::Map(entries) => {
            let given = entries.iter().filter(|entry| !entry.value.is_null());
            Value::Object(given.map(|entry| (entry.key.clone(), without_nulls(&entry.value))).collect())
        }
        Yaml::List(items) => Value::Array(items.iter().map(without_nulls).collect()),
        _ => node.to_json(),
    }
}

/// A pod template of the proposal's time in today's form: its labels and its manifest.
fn modern(node: &Node) -> Value {
    let mut template = Map::new();
    if let Some(labels) = node.get("labels").filter(|labels| !labels.is_null()) {
        template.insert("metadata".into(), Value::Object(Map::from_iter([("labels".into(), without_nulls(labels))])));
    }
    let manifest = node.get("desiredState").and_then(|state| state.get("manifest"));
    let mut spec = manifest.map_or(Value::Null, without_nulls);
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("version");
    }
    template.insert("spec".into(), spec);
    Value::Object(template)
}
