//! `kind: List` and `kind: Template`: several objects in one document.
//!
//! A Template is filled in as OpenShift does it. `${NAME}` in a text or in the name of a field stands for the value of the
//! parameter. A value that is nothing but `${{NAME}}` becomes the parameter's value read as JSON, a number for example. Other names
//! stay as they are.

use super::finding::Report;
use super::levels::{self, bundles};
use super::names::nearest;
use super::tree::{Entry, Mark, Node, START, Yaml};
use super::values::{flag, text, texts};
use super::{Document, KINDS, MAX_BYTES, Parameters, documents, yaml_of};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The parameters that the caller gives, and those that templates declare.
pub struct Given<'p> {
    pub values: &'p Parameters,
    /// By all templates of the text; absent if there is no template.
    pub declared: Option<BTreeSet<String>>,
    /// The documents that were read, as texts.
    pub sources: Vec<String>,
}

impl Given<'_> {
    /// Reports given parameters that no template declares.
    pub fn check(&self, report: &mut Report) {
        let Some(declared) = &self.declared else { return };
        for name in self.values.keys().filter(|name| !declared.contains(*name)) {
            let has = if declared.is_empty() {
                "it has none".into()
            } else {
                format!("it has `{}`", Vec::from_iter(declared.iter().map(String::as_str)).join("`, `"))
            };
            let message = format!("the parameter {name:?} is given, but the template does not declare it: {has}");
            report.error_at(START, "", message);
        }
    }
}

/// `kind: List`
pub fn list(root: &Node, given: &mut Given, report: &mut Report) -> Vec<Document> {
    levels::check(root, &bundles::LIST, "", report);
    version(root, "List", &bundles::LIST_VERSIONS, report);
    let mut all = vec![];
    for (place, node) in objects(root, ["items", "objects"], report).iter().enumerate() {
        all.extend(report.within(&format!("items[{place}]"), |report| object(node, given, report)));
    }
    all
}

/// `kind: Template`
pub fn template(root: &Node, given: &mut Given, report: &mut Report) -> Vec<Document> {
    levels::check(root, &bundles::TEMPLATE, "", report);
    version(root, "Template", &bundles::TEMPLATE_VERSIONS, report);
    let parameters = parameters(root, given, report);
    let mut filling = Filling { parameters: &parameters, taken: true, used: BTreeSet::new(), grown: 0 };
    let labels = texts(root, "labels", "", report);
    let labels: Vec<(String, String)> = labels.iter().map(|(name, value)| (filling.fill(name), filling.fill(value))).collect();
    if let Some(at) = root.get("message").filter(|message| !message.is_null()) {
        report.warning(at, "message", "is not shown: it is for people who instantiate the template elsewhere".into());
    }
    let at = root.get("labels").map_or(root.at, |labels| labels.at);
    let mut all = vec![];
    for (place, node) in objects(root, ["objects", "items"], report).iter().enumerate() {
        let mut node = node.clone();
        filling.taken = is_taken(&node);
        filling.fill_node(&mut node);
        merge_labels(&mut node, &labels, at);
        if filling.grown > MAX_BYTES {
            let message = format!("grows by more than {MAX_BYTES} bytes (1 MiB) as parameters are filled in: shorten their values");
            report.error(&node, format!("objects[{place}]"), message);
            break;
        }
        all.extend(report.within(&format!("objects[{place}]"), |report| object(&node, given, report)));
    }
    for parameter in filling.used.iter().filter_map(|name| parameters.get(name)) {
        if let Some(why) = &parameter.generated {
            report.error_at(parameter.at, parameter.path.clone(), why.clone());
        }
    }
    all
}

fn version(root: &Node, kind: &str, versions: &[&str], report: &mut Report) {
    let version = root.get("apiVersion");
    let given = version.and_then(Node::scalar);
    if !given.is_some_and(|given| versions.contains(&given)) {
        let wrong = given.map_or("is missing".to_owned(), |other| format!("{other:?} is not a version of {kind}"));
        report.error(version.unwrap_or(root), "apiVersion", format!("{wrong}: write `apiVersion: {}`", versions[0]));
    }
}

/// The objects under the first of two fields. The second is the field of the other kind, which people write by mistake.
fn objects<'n>(root: &'n Node, fields: [&str; 2], report: &mut Report) -> &'n [Node] {
    let given = fields.iter().find_map(|field| root.get(field)).filter(|list| !list.is_null());
    let Some(list) = given.and_then(Node::list) else {
        let wrong = given.map_or("is missing".to_owned(), |given| format!("is {}, not a list", given.what()));
        report.error(given.unwrap_or(root), fields[0], format!("{wrong}: list the objects, like `- kind: DeploymentConfig`"));
        return &[];
    };
    list
}

fn kind(node: &Node) -> Option<&str> {
    node.get("kind").and_then(Node::scalar).filter(|kind| !kind.trim().is_empty())
}

/// Whether an object is meant for Keelway. One whose kind is mistyped is.
fn is_taken(node: &Node) -> bool {
    kind(node).is_none_or(|kind| nearest(kind, KINDS.iter().copied()).is_some())
}

/// One object, on its own. Objects that others apply are named.
fn object(node: &Node, given: &mut Given, report: &mut Report) -> Vec<Document> {
    if node.entries().is_none() {
        report.error(node, "", format!("is {}, not an object: write a mapping with `apiVersion:` and `kind:`", node.what()));
        return vec![];
    }
    let Some(kind) = kind(node) else {
        report.error(node.get("kind").unwrap_or(node), "kind", "is missing: write which kind of object this is".into());
        return vec![];
    };
    if is_taken(node) {
        return documents(node, &yaml_of(&node.to_json()), given, report);
    }
    let name = node.get("metadata").and_then(|metadata| metadata.get("name")).and_then(Node::scalar).unwrap_or("without a name");
    let remedy = match kind {
        "ImageStream" => "declare with `kind: ArtifactSource` where its images come from",
        _ => "apply it with the tool that manages it",
    };
    report.warning(
        node.get("kind").unwrap_or(node),
        "",
        format!("{kind} {name} is not applied, as Keelway only deploys: {remedy}"),
    );
    vec![]
}

/// A declared parameter.
struct Parameter {
    /// The value. A parameter without one gets a stand-in, so that all other mistakes are found, too.
    value: String,
    /// Whether the value is real, and no stand-in.
    known: bool,
    /// The refusal of a generated value, which is reported if an object that is applied uses the parameter.
    generated: Option<String>,
    at: Mark,
    path: String,
}

fn parameters(root: &Node, given: &mut Given, report: &mut Report) -> BTreeMap<String, Parameter> {
    let mut all: BTreeMap<String, Parameter> = BTreeMap::new();
    let declared = given.declared.get_or_insert_default();
    for (node, path) in levels::entries(root, "parameters", &bundles::PARAMETER, "", report) {
        let name = text(node, "name", &path, report).unwrap_or_default();
        if name.is_empty() || !name.chars().all(is_part) {
            let message = format!("{name:?} is not the name of a parameter: use letters, digits and `_`");
            report.error(node.get("name").unwrap_or(node), format!("{path}.name"), message);
            continue;
        }
        if all.contains_key(&name) {
            let message = format!("{name:?} is there twice: the last one counts; leave the others out");
            report.warning(node.get("name").unwrap_or(node), format!("{path}.name"), message);
        }
        let value = text(node, "value", &path, report);
        let value = given.values.get(&name).cloned().or(value).filter(|value| !value.is_empty());
        let generate = text(node, "generate", &path, report).filter(|generate| !generate.is_empty() && value.is_none());
        let required = flag(node, "required", &path, report) && value.is_none();
        let generated = generate.map(|_| {
            format!(
                "would be generated, and each time it is applied, another value would be deployed: give it one with \
                 `--param {name}=…`, or write `value`"
            )
        });
        if required && generated.is_none() {
            report.error(node, path.clone(), format!("is required and has no value: give it one with `--param {name}=…`"));
        }
        let known = !required && generated.is_none();
        let value = value.unwrap_or_else(|| if known { String::new() } else { name.to_lowercase().replace('_', "-") });
        declared.insert(name.clone());
        all.insert(name, Parameter { value, known, generated, at: node.at, path });
    }
    all
}

fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Fills parameters in.
struct Filling<'p> {
    parameters: &'p BTreeMap<String, Parameter>,
    /// Whether Keelway applies the current object. In other objects, parameters without a value stay as they are.
    taken: bool,
    /// The parameters that objects use which are applied.
    used: BTreeSet<String>,
    /// How many bytes their values took.
    grown: usize,
}

impl Filling<'_> {
    fn value(&mut self, name: &str) -> Option<&str> {
        let parameter = self.parameters.get(name).filter(|parameter| parameter.known || self.taken)?;
        if self.taken {
            self.used.insert(name.to_owned());
        }
        self.grown = self.grown.saturating_add(parameter.value.len());
        (self.grown <= MAX_BYTES).then_some(&parameter.value)
    }

    fn fill(&mut self, text: &str) -> String {
        let mut filled = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            let (before, from) = rest.split_at(start);
            filled.push_str(before);
            let value = from[2..].find('}').and_then(|end| Some((self.value(&from[2..2 + end])?.to_owned(), end)));
            match value {
                Some((value, end)) => {
                    filled.push_str(&value);
                    rest = &from[end + 3..];
                }
                None => {
                    filled.push_str("${");
                    rest = &from[2..];
                }
            }
        }
        filled + rest
    }

    fn fill_node(&mut self, node: &mut Node) {
        match &mut node.value {
            Yaml::Text(text) => {
                let whole = text.strip_prefix("${{").and_then(|rest| rest.strip_suffix("}}"));
                match whole.and_then(|name| Some((self.value(name)?.to_owned(), name))) {
                    // A number fits most places where a text does not.
                    Some((_, name)) if self.parameters.get(name).is_some_and(|parameter| !parameter.known) => {
                        node.value = yaml(1.into(), node.at);
                    }
                    Some((value, _)) => node.value = literal(&value, node.at),
                    None if text.contains("${") => *text = self.fill(text),
                    None => {}
                }
            }
            Yaml::List(items) => items.iter_mut().for_each(|item| self.fill_node(item)),
            Yaml::Map(entries) => {
                for entry in entries {
                    if entry.key.contains("${") {
                        entry.key = self.fill(&entry.key);
                    }
                    self.fill_node(&mut entry.value);
                }
            }
            Yaml::Null | Yaml::Bool(..) | Yaml::Number(..) => {}
        }
    }
}

/// A value read as JSON; what is not JSON is a text.
fn literal(value: &str, at: Mark) -> Yaml {
    serde_json::from_str(value).map_or_else(|_| Yaml::Text(value.to_owned()), |value| yaml(value, at))
}

fn yaml(value: Value, at: Mark) -> Yaml {
    let node = |value: Value| Node::leaf(at, yaml(value, at));
    match value {
        Value::Null => Yaml::Null,
        Value::Bool(flag) => Yaml::Bool(flag, flag.to_string()),
        Value::Number(number) => Yaml::Number(number.clone(), number.to_string()),
        Value::String(text) => Yaml::Text(text),
        Value::Array(items) => Yaml::List(items.into_iter().map(node).collect()),
        Value::Object(fields) => Yaml::Map(fields.into_iter().map(|(key, value)| Entry { key, at, value: node(value) }).collect()),
    }
}

/// The template's labels win over the object's own.
fn merge_labels(node: &mut Node, labels: &[(String, String)], at: Mark) {
    if labels.is_empty() {
        return;
    }
    let Some(metadata) = below(node, "metadata", at) else { return };
    let Some(Node { value: Yaml::Map(own), .. }) = below(metadata, "labels", at) else { return };
    for (name, value) in labels {
        own.retain(|entry| entry.key != *name);
        own.push(Entry { key: name.clone(), at, value: Node::leaf(at, Yaml::Text(value.clone())) });
    }
}

/// The mapping under `field`, created if it is absent.
fn below<'n>(node: &'n mut Node, field: &str, at: Mark) -> Option<&'n mut Node> {
    let Yaml::Map(entries) = &mut node.value else { return None };
    let place = entries.iter().position(|entry| entry.key == field).unwrap_or_else(|| {
        entries.push(Entry { key: field.to_owned(), at, value: Node::leaf(at, Yaml::Null) });
        entries.len() - 1
    });
    let found = &mut entries[place].value;
    if found.is_null() {
        found.value = Yaml::Map(vec![]);
    }
    found.entries().is_some().then_some(found)
}
