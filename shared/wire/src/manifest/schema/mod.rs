//! JSON Schemas of the manifests, and of the files of evaluations, for editors and other checks.
//!
//! They are made from the tables of [levels](super::levels), as the parser's checks are. A schema is stricter in one way: it
//! refuses every unknown field, also those that `apply` takes with a warning. Rules that need more than one field, such as a name
//! that stands twice, are in the parser only.

mod shapes;

use super::KINDS;
use super::levels::{Level, configs, evaluations};
use serde_json::{Map, Value, json};

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The kinds that have a schema.
pub fn kinds() -> &'static [&'static str] {
    KINDS
}

/// The files without a kind that have a schema, by the first part of their name.
static FILES: [(&str, &str, &Level); 2] = [
    ("slo", "Objectives of evaluations (slo.yaml)", &evaluations::SLO),
    ("sli", "Indicators of evaluations (sli.yaml)", &evaluations::SLI),
];

/// The names of the files without a kind that have a schema: `slo` is that of `slo.yaml`.
pub fn files() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, ..)| *name)
}

/// The schema of a kind or of a file without one; of an empty text, one for manifests of any kind, by their `kind`.
pub fn schema(kind: &str) -> Option<Value> {
    let mut parts = Parts::default();
    let file = FILES.iter().find(|(name, ..)| *name == kind);
    let (title, root) = match (kind, file) {
        ("", _) => ("A manifest of Keelway", any(&mut parts)),
        (_, Some((_, title, level))) => (*title, object(level, &mut parts)),
        (kind, None) => (kind, of_kind(kind, &mut parts)?),
    };
    let mut schema = Map::new();
    schema.insert("$schema".into(), DIALECT.into());
    schema.insert("title".into(), title.into());
    schema.extend(root);
    schema.insert("$defs".into(), Value::Object(parts.definitions()));
    Some(Value::Object(schema))
}

fn of_kind(kind: &str, parts: &mut Parts) -> Option<Map<String, Value>> {
    match kind {
        "DeploymentConfig" => Some(deployment_config(parts)),
        kind => Some(object(super::level(kind)?, parts)),
    }
}

/// Today's form under its versions, or with `spec`; else the proposal's.
fn deployment_config(parts: &mut Parts) -> Map<String, Value> {
    let versions = json!([configs::API_VERSION, configs::LEGACY_VERSION]);
    let versioned = json!({"required": ["apiVersion"], "properties": {"apiVersion": {"enum": versions}}});
    let condition = json!({"anyOf": [{"required": ["spec"]}, versioned]});
    let (today, proposed) = (parts.named(&configs::CONFIG), parts.named(&configs::PROPOSED));
    Map::from_iter([("if".to_owned(), condition), ("then".to_owned(), today), ("else".to_owned(), proposed)])
}

fn any(parts: &mut Parts) -> Map<String, Value> {
    let one = |kind: &&str| {
        let condition = json!({"required": ["kind"], "properties": {"kind": {"const": kind}}});
        json!({"if": condition, "then": of_kind(kind, parts).map(Value::Object)})
    };
    let by_kind: Vec<Value> = KINDS.iter().map(one).collect();
    let kinds = json!({"kind": {"enum": KINDS}});
    Map::from_iter([
        ("type".to_owned(), json!("object")),
        ("required".to_owned(), json!(["kind"])),
        ("properties".to_owned(), kinds),
        ("allOf".to_owned(), Value::Array(by_kind)),
    ])
}

/// The definitions of the levels that a schema has so far.
#[derive(Default)]
struct Parts {
    /// By name, in the order in which they are first needed; without a value while it is being built.
    known: Vec<(&'static str, Option<Value>)>,
}

impl Parts {
    /// A reference to a level's definition.
    fn named(&mut self, level: &Level) -> Value {
        let name = level.head.name;
        if !self.known.iter().any(|(known, _)| *known == name) {
            let place = self.known.len();
            self.known.push((name, None));
            self.known[place].1 = Some(Value::Object(object(level, self)));
        }
        json!({"$ref": format!("#/$defs/{name}")})
    }

    fn definitions(self) -> Map<String, Value> {
        self.known.into_iter().filter_map(|(name, definition)| Some((name.to_owned(), definition?))).collect()
    }
}

/// A mapping of a level, with all of its fields and no others.
fn object(level: &Level, parts: &mut Parts) -> Map<String, Value> {
    let mut properties = Map::new();
    for field in level.fields {
        let shape = shapes::schema(&field.shape, parts);
        let mut shape = if field.required { shape } else { shapes::or_null(shape) };
        if let (Some(about), Some(shape)) = (field.about, shape.as_object_mut()) {
            shape.insert("description".into(), about.into());
        }
        properties.insert(field.name.to_owned(), shape);
    }
    let mut object = Map::new();
    object.insert("type".into(), "object".into());
    object.insert("properties".into(), Value::Object(properties));
    object.insert("additionalProperties".into(), false.into());
    let required: Vec<&str> = level.fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    if !required.is_empty() {
        object.insert("required".into(), json!(required));
    }
    for (word, groups) in [("oneOf", level.head.one_of), ("anyOf", level.head.any_of)] {
        if !groups.is_empty() {
            object.insert(word.into(), groups.iter().map(|fields| json!({"required": fields})).collect());
        }
    }
    if let Some(Value::Object(further)) = level.head.further.map(|further| further()) {
        object.extend(further);
    }
    object
}
