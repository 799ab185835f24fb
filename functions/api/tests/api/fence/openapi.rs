//! The OpenAPI document: whole, valid, and about the routes that there are.

use crate::stand::{Stand, TOKEN, routes};
use axum::body::Body;
use axum::http::Request;
use boon::{Compiler, Schemas};
use keelway_api::{Listed, Needs};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

async fn document() -> Value {
    let stand = Stand::new();
    let answer = stand.get("/v1/openapi.json").await;
    assert_eq!((answer.status, answer.content_type.as_str()), (200, "application/json"));
    assert_eq!(stand.get("/v1/openapi.json").await.text, answer.text);
    answer.json()
}

/// Method, path, operation.
fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let paths = document["paths"].as_object().unwrap().iter();
    let all =
        paths.flat_map(|(path, item)| item.as_object().unwrap().iter().map(move |(method, operation)| (path, method, operation)));
    all.map(|(path, method, operation)| (method.to_uppercase(), path.clone(), operation.clone())).collect()
}

#[tokio::test]
async fn the_document_is_valid_by_the_meta_schema_of_openapi_3_1() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oas-3.1");
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    let mut root = String::new();
    for name in ["schema.json", "dialect-base.schema.json", "meta-base.schema.json", "schema-base.json"] {
        let schema: Value = serde_json::from_str(&std::fs::read_to_string(folder.join(name)).unwrap()).unwrap();
        root = schema["$id"].as_str().unwrap().to_owned();
        compiler.add_resource(&root, schema).unwrap();
    }
    let meta = compiler.compile(&root, &mut schemas).unwrap();
    let mut document = document().await;
    if let Err(error) = schemas.validate(&document, meta) {
        panic!("{error:#}");
    }
    // And what is wrong is found, in operations and in schemas.
    document["components"]["schemas"]["Actor"]["type"] = json!("nothing");
    assert!(schemas.validate(&document, meta).is_err());
}

#[tokio::test]
async fn every_operation_says_what_it_is_and_who_may_use_it() {
    let document = document().await;
    let (mut ids, routes) = (BTreeSet::new(), routes());
    for (method, path, operation) in operations(&document) {
        let place = format!("{method} {path}");
        let text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
        assert!(text(&operation["summary"]) && text(&operation["tags"][0]), "{place}");
        assert!(ids.insert(operation["operationId"].as_str().unwrap().to_owned()), "{place}: {}", operation["operationId"]);
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            assert!(
                text(&parameter["description"]),
                "{place}: describe parameter {} at its field, or in functions/api/src/fence/openapi/words.rs",
                parameter["name"]
            );
        }
        for body in operation["requestBody"]["content"].as_object().into_iter().flat_map(|kinds| kinds.values().take(1)) {
            assert!(!body["example"].is_null(), "{place}: give the body an example in #[utoipa::path]");
        }
        let known = routes.iter().find(|known| [&method, "ANY"].contains(&known.method) && known.path.replace("{*", "{") == path);
        let needs = &known.unwrap().needs;
        let scoped = !matches!(needs, Needs::Itself(_) | Needs::Token);
        assert_eq!(scoped, !operation["x-keelway-scopes"].as_array().unwrap().is_empty(), "{place}");
        assert_eq!(scoped, operation["responses"].get("403").is_some(), "{place}");
        assert!(!operation["security"].as_array().unwrap().is_empty(), "{place}");
    }
    let scopes = &document["paths"]["/v1/event"]["get"]["x-keelway-scopes"];
    assert_eq!(*scopes, json!(["read", "execute:<task>"]));
}

/// Which routes take it all the same: others call them at an address that they are given, or they refuse everything.
#[tokio::test(start_paused = true)]
async fn a_parameter_that_no_operation_has_is_refused() {
    let stand = Stand::new();
    let mut taken = vec![];
    for Listed { method, path, .. } in routes() {
        let method = if method == "ANY" { "GET" } else { method };
        let uri = format!("{}?nobody=1", path.replace(['{', '}', '*'], ""));
        let request = Request::builder().method(method).uri(uri).header("x-token", TOKEN);
        let answer = stand.request(request.body(Body::empty()).unwrap()).await;
        if !(answer.status == 400 && answer.problem().contains("unknown field `nobody`")) {
            taken.push(format!("{method} {path}"));
        }
    }
    taken.sort();
    assert_eq!(
        taken,
        [
            "GET /v1/secret",
            "POST /v1/artifacts/{namespace}/{name}",
            "POST /v1/pipelines/{namespace}/{name}/environments/{environment}/revisions/{revision}/approval",
            "POST /v1/webhooks/{githost}",
        ]
    );
    // A path that cannot be read is refused first.
    let odd = stand.get("/v1/clusters/shop/%FF?nobody=1").await;
    assert!(odd.status == 400 && odd.problem().starts_with("the path cannot be read"), "{odd:?}");
}

/// The names of the schemas that a value refers to, directly or indirectly.
fn referred(document: &Value, value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            if let Some(name) = members.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix("#/components/schemas/"))
                && found.insert(name.to_owned())
            {
                referred(document, &document["components"]["schemas"][name], found);
            }
            members.values().for_each(|member| referred(document, member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| referred(document, item, found)),
        _ => {}
    }
}

#[tokio::test]
async fn objects_in_answers_say_which_members_they_always_have() {
    let document = document().await;
    let (mut asked, mut answered) = (BTreeSet::new(), BTreeSet::new());
    for (_, _, operation) in operations(&document) {
        referred(&document, &operation["requestBody"], &mut asked);
        referred(&document, &operation["responses"], &mut answered);
    }
    for name in answered.difference(&asked) {
        let schema = &document["components"]["schemas"][name];
        let own = schema["allOf"].as_array().and_then(|parts| parts.last()).unwrap_or(schema);
        let members = own["properties"].as_object().is_some_and(|members| !members.is_empty());
        assert!(
            !members || own.get("required").is_some(),
            "nothing says which members {name} always has: put #[schema(default = Self::default)] at its type"
        );
    }
}
