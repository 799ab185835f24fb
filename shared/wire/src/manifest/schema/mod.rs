//! JSON Schemas of the manifests, for editors and other checks.
//!
//! They are built from the same tables of fields as the parser's checks. A schema is stricter in one way: it refuses every unknown
//! field, also those that `apply` takes with a warning. It knows nothing of what needs more than one field, such as a name that
//! stands twice; the parser does.

mod about;
mod fields;
mod shapes;

use super::deployments::Part;
use super::fields::Level;
use super::{KINDS, deployments, pipeline, project, shipyard};
use serde_json::{Map, Value, json};

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The kinds that have a schema.
pub fn kinds() -> &'static [&'static str] {
    &KINDS
}

/// The schema of a kind; of an empty text, one for manifests of any kind, by their `kind`.
pub fn schema(kind: &str) -> Option<Value> {
    let mut parts = Parts::default();
    let root = if kind.is_empty() { any(&mut parts) } else { of_kind(kind, &mut parts)? };
    let mut schema = Map::new();
    schema.insert("$schema".into(), DIALECT.into());
    schema.insert("title".into(), if kind.is_empty() { "A manifest of Keelway".into() } else { kind.into() });
    schema.extend(root);
    schema.insert("$defs".into(), Value::Object(parts.definitions()));
    Some(Value::Object(schema))
}

/// Which levels a kind's schema has, the kind's own first.
fn of_kind(kind: &str, parts: &mut Parts) -> Option<Map<String, Value>> {
    let level = match kind {
        "Shipyard" => Level::Shipyard,
        "Project" => Level::Project,
        "Remediation" => Level::Remediation,
        "Schedule" => Level::Schedule,
        "Pipeline" => Level::Pipeline,
        "Cluster" => Level::Cluster,
        "GitHost" => Level::GitHost,
        "WebhookSubscription" => Level::Webhook,
        "DeploymentConfig" => return Some(deployment_config(parts)),
        "ArtifactSource" => Level::Deployment(Part::Source),
        "List" => Level::Deployment(Part::List),
        "Template" => Level::Deployment(Part::Template),
        _ => return None,
    };
    let mut root = object(level, parts);
    if matches!(level, Level::Shipyard | Level::Remediation) {
        root.insert("anyOf".into(), json!([{"required": ["apiVersion"]}, {"required": ["version"]}]));
    }
    Some(root)
}

/// Today's form under its versions, or with `spec`; else the proposal's.
fn deployment_config(parts: &mut Parts) -> Map<String, Value> {
    let versions = json!([deployments::API_VERSION, deployments::LEGACY_VERSION]);
    let versioned = json!({"required": ["apiVersion"], "properties": {"apiVersion": {"enum": versions}}});
    let condition = json!({"anyOf": [{"required": ["spec"]}, versioned]});
    let (today, proposed) = (parts.named(Level::Deployment(Part::Config)), parts.named(Level::Deployment(Part::Proposed)));
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
    /// In the order in which they are first needed; without a value while it is being built.
    known: Vec<(String, Option<Value>)>,
}

impl Parts {
    /// A reference to a level's definition.
    fn named(&mut self, level: Level) -> Value {
        let name = format!("{level:?}").replace(['(', ')'], "");
        if !self.known.iter().any(|(known, _)| *known == name) {
            let place = self.known.len();
            self.known.push((name.clone(), None));
            self.known[place].1 = Some(Value::Object(object(level, self)));
        }
        json!({"$ref": format!("#/$defs/{name}")})
    }

    fn definitions(self) -> Map<String, Value> {
        self.known.into_iter().filter_map(|(name, definition)| Some((name, definition?))).collect()
    }
}

/// A mapping of a level, with all of its fields and no others.
fn object(level: Level, parts: &mut Parts) -> Map<String, Value> {
    let required = fields::required(level);
    let mut properties = Map::new();
    for field in level.fields() {
        let shape = fields::shape(level, field, parts);
        let mut shape = if required.contains(field) { shape } else { shapes::or_null(shape) };
        if let (Some(about), Some(shape)) = (about::about(level, field), shape.as_object_mut()) {
            shape.insert("description".into(), about.into());
        }
        properties.insert((*field).to_owned(), shape);
    }
    let mut object = Map::new();
    object.insert("type".into(), "object".into());
    object.insert("properties".into(), Value::Object(properties));
    object.insert("additionalProperties".into(), false.into());
    if !required.is_empty() {
        object.insert("required".into(), json!(required));
    }
    object.extend(fields::further(level));
    object
}

/// What `apiVersion` is, of a kind that has one version.
fn version(kind: &str) -> Value {
    match kind {
        "Pipeline" => shapes::constant(pipeline::API_VERSION),
        "List" => shapes::constant("v1"),
        "Template" => shapes::word(&["template.openshift.io/v1", "v1"]),
        "Shipyard" => shapes::shipyard_version(shipyard::NEWEST),
        _ => shapes::constant(project::API_VERSION),
    }
}
