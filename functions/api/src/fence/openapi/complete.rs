//! Completes the document by path and permission of the routes, so that handlers need not repeat it: path parameters, scopes and
//! other kinds of authentication, and the refusals of every kind of operation.

use super::words;
use crate::fence::allowed::{self, Listed, Needs, Proof};
use axum::http::Method;
use keelway_domain::access::Kind;
use serde_json::{Map, Value, json};

const PROBLEM: &str = "application/problem+json";
/// What has a name in its path, and may not be there without that being an error.
const NEVER_UNKNOWN: [&str; 2] = ["/v1/checks/{id}", "/v1/schedules/{project}"];
/// Types of contents that are not looked at: the text says what it is.
const ANY_TEXT: &str = "application/yaml";

/// The whole document.
pub fn complete(mut document: Value, listed: &[Listed]) -> Value {
    document["info"]["version"] = json!(env!("CARGO_PKG_VERSION"));
    let paths = document["paths"].as_object_mut().map(std::mem::take).unwrap_or_default();
    let mut completed = Map::new();
    for (route, mut item) in paths {
        for (method, operation) in item.as_object_mut().into_iter().flatten() {
            complete_operation(listed, &method.to_uppercase(), &route, operation);
        }
        completed.insert(documented(&route), item);
    }
    without_conflicts(&mut completed);
    document["paths"] = completed.into();
    if let Some(schemas) = document["components"]["schemas"].as_object_mut() {
        schemas.values_mut().for_each(require);
    }
    plain(&mut document);
    let refusal = |(status, text): (&str, &str)| {
        let content = json!({PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}});
        (status.to_owned(), json!({"description": text, "content": content}))
    };
    document["components"]["responses"] = words::refusals().map(refusal).collect::<Map<_, _>>().into();
    document["components"]["securitySchemes"] = schemes();
    document
}

/// The document has no form for a parameter that takes the rest of the path.
fn documented(route: &str) -> String {
    route.replace("{*", "{")
}

/// Only the shipyard of a project contradicts anything, and it is among the files of the project.
fn without_conflicts(paths: &mut Map<String, Value>) {
    for (_, item) in paths.iter_mut().filter(|(path, _)| path.contains("/stage/{stage}/") && path.contains("/resource")) {
        for (_, operation) in item.as_object_mut().into_iter().flatten() {
            operation["responses"].as_object_mut().map(|responses| responses.remove("409"));
        }
    }
}

fn complete_operation(listed: &[Listed], method: &str, route: &str, operation: &mut Value) {
    let path = &documented(route);
    let method = Method::from_bytes(method.as_bytes()).unwrap_or_default();
    let (needs, _) = allowed::of(listed, &method, route);
    operation["operationId"] = json!(operation_id(method.as_str(), path));
    let mut parameters: Vec<Value> = operation["parameters"].as_array().cloned().unwrap_or_default();
    let in_path = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    parameters.extend(in_path.map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}})));
    parameters.iter_mut().for_each(complete_parameter);
    let media: Vec<String> =
        operation["requestBody"]["content"].as_object().into_iter().flatten().map(|(kind, _)| kind.clone()).collect();
    let mut refusals: Vec<&str> = vec!["401", "429", "500", "503"];
    let refuses_parameters = allowed::find(listed, &method, route).is_some_and(|known| !known.parameters);
    refusals.extend((refuses_parameters || !parameters.is_empty() || !media.is_empty()).then_some("400"));
    refusals.extend(
        (!matches!(needs, Needs::Itself(_)) && path.contains('{') && !NEVER_UNKNOWN.contains(&path.as_str())).then_some("404"),
    );
    refusals.extend((!matches!(needs, Needs::Itself(_) | Needs::Token)).then_some("403"));
    refusals.extend((!media.is_empty()).then_some("413"));
    refusals.extend((!media.is_empty() && !media.iter().any(|kind| kind == ANY_TEXT)).then_some("415"));
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    if let Some(responses) = operation["responses"].as_object_mut() {
        refusals.iter().for_each(|status| drop(responses.insert((*status).to_owned(), Value::Null)));
        for (status, response) in responses.iter_mut() {
            if status.as_str() >= "400" {
                *response = json!({"$ref": format!("#/components/responses/{status}")});
            } else if response["description"].as_str().is_none_or(str::is_empty) {
                response["description"] = json!(words::status(status));
            }
        }
        responses.sort_keys();
    }
    let (schemes, scopes) = let_in(route, needs);
    operation["security"] = schemes;
    operation["x-keelway-scopes"] = json!(scopes);
}

/// `getPipelinesByNamespaceByName`
fn operation_id(method: &str, path: &str) -> String {
    let mut id = method.to_lowercase();
    for part in path.split('/').skip(1).filter(|part| *part != "v1") {
        let (by, name) = part.strip_prefix('{').map_or(("", part), |name| ("By", name.trim_end_matches('}')));
        id.push_str(if part.is_empty() { "Root" } else { by });
        for word in name.split(['-', '.']) {
            let mut letters = word.chars();
            id.extend(letters.next().into_iter().flat_map(char::to_uppercase).chain(letters));
        }
    }
    id
}

fn complete_parameter(parameter: &mut Value) {
    let name = parameter["name"].as_str().unwrap_or_default().to_owned();
    if parameter["description"].as_str().is_none_or(str::is_empty) {
        parameter["description"] = json!(words::parameter(&name));
    }
    parameter["schema"] = match name.as_str() {
        "pageSize" => json!({"type": "integer", "minimum": 0, "default": 20}),
        "wait" => json!({"type": "integer", "minimum": 0, "maximum": 20}),
        "dryRun" => json!({"type": "boolean"}),
        "fromTime" | "beforeTime" | "since" => json!({"type": "string", "format": "date-time"}),
        "day" => json!({"type": "string", "format": "date"}),
        _ => json!({"type": "string"}),
    };
}

/// How a request to a route is let in, and the scopes of which it needs one.
fn let_in(route: &str, needs: Needs) -> (Value, Vec<&'static str>) {
    let kinds = match needs {
        Needs::Scope(kinds) | Needs::OrSigned(kinds) | Needs::Handler(kinds) => kinds,
        Needs::Itself(_) | Needs::Token => &[],
    };
    let starts = |kind: &Kind| *kind == Kind::Trigger && allowed::BY_HAND.contains(&route);
    let named = |kind: &Kind| [Some(allowed::name(kind)), starts(kind).then_some(allowed::FOLLOW_UP)];
    let scopes = kinds.iter().flat_map(named).flatten().collect();
    let schemes = match needs {
        Needs::Itself(Proof::GitHost) => json!([{"webhook": []}]),
        Needs::Itself(Proof::Attempt) => json!([{"attempt": []}]),
        Needs::OrSigned(_) => json!([{"token": []}, {"bearer": []}, {"signature": []}]),
        Needs::Token | Needs::Scope(_) | Needs::Handler(_) => json!([{"token": []}, {"bearer": []}]),
    };
    (schemes, scopes)
}

fn schemes() -> Value {
    let bearer = |about: &str| json!({"type": "http", "scheme": "bearer", "description": about});
    json!({
        "token": {"type": "apiKey", "in": "header", "name": crate::fence::auth::HEADER, "description": "An API token."},
        "bearer": bearer("An API token, or the token of an identity provider."),
        "attempt": bearer("The token that the answer to the claim has."),
        "signature": {
            "type": "apiKey", "in": "header", "name": keelway_wire::signature::HEADERS[3],
            "description": "A signature over the whole request; docs/promotions.md says how to make it and which other headers it needs."
        },
        "webhook": {
            "type": "apiKey", "in": "header", "name": "x-hub-signature-256",
            "description": "The signature of the git host over the body, in the header that this kind of host uses."
        },
    })
}

/// Says which members of an object in answers are always there. Clients read them leniently, and so the attributes of the fields do
/// not say it: the default that stands at the type has them.
fn require(schema: &mut Value) {
    if !schema["default"].is_object() {
        return;
    }
    let always = schema.as_object_mut().and_then(|schema| schema.remove("default")).unwrap_or_default();
    let own = match schema["allOf"].as_array().map(Vec::len) {
        Some(parts) => &mut schema["allOf"][parts - 1],
        None => schema,
    };
    let known: Vec<&String> = always
        .as_object()
        .into_iter()
        .flat_map(Map::keys)
        .filter(|member| own["properties"].get(member.as_str()).is_some())
        .collect();
    own["required"] = json!(known);
}

/// Without defaults that say nothing, and with `anyOf`, which is true also where forms overlap, and where `null` comes first; a
/// single form stands for itself.
fn plain(value: &mut Value) {
    match value {
        Value::Object(members) => {
            if members.get("default").is_some_and(says_nothing) {
                members.remove("default");
            }
            match members.remove("oneOf") {
                Some(Value::Array(mut forms)) if forms.len() == 1 => {
                    let only = forms.pop().and_then(|form| form.as_object().cloned()).unwrap_or_default();
                    members.extend(only);
                }
                Some(Value::Array(mut forms)) => {
                    forms.sort_by_key(|form| form["type"] != "null");
                    members.insert("anyOf".into(), forms.into());
                }
                Some(forms) => drop(members.insert("anyOf".into(), forms)),
                None => {}
            }
            members.values_mut().for_each(plain);
        }
        Value::Array(items) => items.iter_mut().for_each(plain),
        _ => {}
    }
}

fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(says_nothing),
        Value::Bool(true) => false,
    }
}
