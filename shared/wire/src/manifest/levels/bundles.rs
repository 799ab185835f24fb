//! `kind: List` and `kind: Template`.

use super::shape::Shape;
use super::{Level, document, entry, field, required};
use serde_json::{Value, json};

pub const LIST_VERSIONS: [&str; 1] = ["v1"];
pub const TEMPLATE_VERSIONS: [&str; 2] = ["template.openshift.io/v1", "v1"];

use Shape::{Any, Constant, Entries, Flag, List, Schema, Text, Texts, Word};

pub static LEVELS: [&Level; 3] = [&LIST, &TEMPLATE, &PARAMETER];

pub static LIST: Level = Level {
    head: document("DeploymentList", "a List").written("at the top of the List").strict(),
    fields: &[
        required("apiVersion", Constant(LIST_VERSIONS[0])),
        required("kind", Constant("List")),
        field("metadata", Any),
        required("items", List(&Schema(object), 0)).also(&["objects"]),
    ],
};

pub static TEMPLATE: Level = Level {
    head: document("DeploymentTemplate", "a Template").written("at the top of the Template").strict(),
    fields: &[
        required("apiVersion", Word(&TEMPLATE_VERSIONS)),
        required("kind", Constant("Template")),
        field("metadata", Any),
        field("labels", Texts),
        field("message", Any),
        required("objects", List(&Schema(object), 0)).also(&["items"]),
        field("parameters", Entries(&PARAMETER, 0)),
    ],
};

pub static PARAMETER: Level = Level {
    head: entry("DeploymentParameter", &TEMPLATE, "parameters", "name: IMAGE_TAG").called("a parameter").strict(),
    fields: &[
        required("name", Text),
        field("displayName", Text),
        field("description", Text),
        field("value", Text),
        field("generate", Text),
        field("from", Text),
        field("required", Flag),
    ],
};

fn object() -> Value {
    json!({"type": "object", "required": ["kind"]})
}
