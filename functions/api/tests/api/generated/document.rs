//! The OpenAPI document as the tests read it: operations, and schemas that can be checked.

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const ROOT: &str = "https://document.invalid/openapi.json";

/// A parameter.
#[derive(Debug, Clone)]
pub struct Parameter {
    pub name: String,
    /// `path`, `query` or `header`.
    pub place: String,
}

/// An operation.
pub struct Operation {
    pub method: String,
    pub path: String,
    pub parameters: Vec<Parameter>,
    /// Content types of the body, each with its example.
    pub bodies: Vec<(String, Value)>,
    /// By status: content types, and the schema of each.
    pub answers: BTreeMap<u16, BTreeMap<String, SchemaIndex>>,
}

impl Operation {
    pub fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
    pub fn in_path(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(|parameter| parameter.place == "path")
    }
}

/// The document.
pub struct Document {
    pub operations: Vec<Operation>,
    /// The methods of each path.
    pub methods: BTreeMap<String, BTreeSet<String>>,
    schemas: Schemas,
}

impl Document {
    /// Objects in answers may get further members, but not without being in the document: here their schemas are closed.
    pub fn of(mut document: Value) -> Self {
        close(&mut document);
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        compiler.add_resource(ROOT, document.clone()).unwrap();
        let mut compiled = |pointer: &str| compiler.compile(&format!("{ROOT}#{pointer}"), &mut schemas).unwrap();
        let (mut operations, mut methods) = (vec![], BTreeMap::<String, BTreeSet<String>>::new());
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                let at = format!(
                    "/paths/{}/{method}",
                    path.replace('~', "~0").replace('/', "~1").replace('{', "%7B").replace('}', "%7D")
                );
                methods.entry(path.clone()).or_default().insert(method.to_uppercase());
                let mut answers = BTreeMap::new();
                for (status, answer) in operation["responses"].as_object().unwrap() {
                    let shared = answer["$ref"].as_str().map(|to| to.trim_start_matches('#').to_owned());
                    let here = shared.unwrap_or_else(|| format!("{at}/responses/{status}"));
                    let content = document.pointer(&here.replace("%7B", "{").replace("%7D", "}")).unwrap()["content"].clone();
                    let kinds = content.as_object().into_iter().flatten().map(|(kind, _)| {
                        let schema = format!("{here}/content/{}/schema", kind.replace('/', "~1").replace('+', "%2B"));
                        (kind.clone(), compiled(&schema))
                    });
                    answers.insert(status.parse().unwrap(), kinds.collect());
                }
                operations.push(Operation {
                    method: method.to_uppercase(),
                    path: path.clone(),
                    parameters: parameters(operation),
                    bodies: bodies(operation),
                    answers,
                });
            }
        }
        Self { operations, methods, schemas }
    }

    /// What is wrong with a value.
    pub fn wrong(&self, value: &Value, schema: SchemaIndex) -> Option<String> {
        self.schemas.validate(value, schema).err().map(|error| format!("{error:#}"))
    }
}

fn parameters(operation: &Value) -> Vec<Parameter> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let read = |one: &Value| Parameter { name: text(&one["name"]), place: text(&one["in"]) };
    operation["parameters"].as_array().into_iter().flatten().map(read).collect()
}

fn bodies(operation: &Value) -> Vec<(String, Value)> {
    let content = operation["requestBody"]["content"].as_object().into_iter().flatten();
    content.map(|(kind, media)| (kind.clone(), media["example"].clone())).collect()
}

/// Closes every object, except those that are parts of others.
fn close(document: &mut Value) {
    let mut parts = BTreeSet::new();
    find_parts(document, &mut parts);
    for (name, schema) in document["components"]["schemas"].as_object_mut().unwrap() {
        let is_object = schema.get("properties").is_some() || schema.get("allOf").is_some();
        if is_object && !parts.contains(name) && schema.get("additionalProperties").is_none() {
            schema["unevaluatedProperties"] = json!(false);
        }
    }
}

fn find_parts(value: &Value, parts: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            let of = members.get("allOf").and_then(Value::as_array).into_iter().flatten();
            let part = |part: &Value| Some(part["$ref"].as_str()?.rsplit('/').next()?.to_owned());
            parts.extend(of.filter_map(part));
            members.values().for_each(|member| find_parts(member, parts));
        }
        Value::Array(items) => items.iter().for_each(|item| find_parts(item, parts)),
        _ => {}
    }
}
