//! The requests to each operation of the OpenAPI document, as the own project would send them, and what becomes of them when some
//! of their names are another project's.
//!
//! A new parameter and a new body have no entry here, and then the test fails and says which one is missing.

use super::furnished::{Furnished, MANIFESTS, NOBODY, OTHER, OWN, SHIPYARD, config};
use crate::generated::document::Operation;
use axum::body::Body;
use axum::http::Request;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A request: method, URI, content type and body. In a template, `alfa!name` is an id of the own project, and what stands between
/// `⟦` and `⟧` is sent as Base64.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sent {
    pub method: String,
    pub uri: String,
    pub kind: String,
    pub body: String,
    /// What the body has as Base64.
    pub coded: String,
}

impl Sent {
    pub fn request(&self, header: (&str, &str)) -> Request<Body> {
        let builder = Request::builder().method(self.method.as_str()).uri(&self.uri).header(header.0, header.1);
        let builder = if self.kind.is_empty() { builder } else { builder.header("content-type", &self.kind) };
        builder.body(Body::from(self.body.clone())).unwrap()
    }
    pub fn names(&self, what: &str) -> bool {
        [&self.uri, &self.body, &self.coded].iter().any(|text| text.contains(what))
    }
}

/// A request with names of the other project, and the same one with those of a project that does not exist.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair {
    pub other: Sent,
    pub nobody: Sent,
}

/// Everything that is tried at an operation.
pub fn pairs(operation: &Operation, keys: &[String], f: &Furnished) -> Result<Vec<Pair>, String> {
    let mut pairs = BTreeSet::new();
    for template in templates(operation, keys)? {
        for chosen in choices(&template) {
            let [other, nobody] = [OTHER, NOBODY].map(|to| resolved(&renamed(&template, &chosen, to), f));
            pairs.insert(Pair { other, nobody });
        }
    }
    Ok(pairs.into_iter().collect())
}

/// Where the own project is named, first in the URI and then in the body.
fn places(template: &Sent) -> (usize, usize) {
    (template.uri.matches(OWN).count(), template.body.matches(OWN).count())
}

/// Which of the names are another project's: none of them, each alone, those of the URI, those of the body, all.
fn choices(template: &Sent) -> BTreeSet<BTreeSet<usize>> {
    let (uri, body) = places(template);
    let path = template.uri.split('?').next().unwrap().matches(OWN).count();
    let mut all: BTreeSet<BTreeSet<usize>> = (0..uri + body).map(|n| BTreeSet::from([n])).collect();
    all.extend([
        BTreeSet::new(),
        (0..path).collect(),
        (path..uri).collect(),
        (uri..uri + body).collect(),
        (0..uri + body).collect(),
    ]);
    all
}

fn renamed(template: &Sent, chosen: &BTreeSet<usize>, to: &str) -> Sent {
    let mut n = 0;
    let mut rename = |text: &str| {
        let mut parts = text.split(OWN);
        let mut renamed = parts.next().unwrap().to_owned();
        for part in parts {
            renamed.push_str(if chosen.contains(&n) { to } else { OWN });
            renamed.push_str(part);
            n += 1;
        }
        renamed
    };
    let (uri, body) = (rename(&template.uri), rename(&template.body));
    Sent { uri, body, ..template.clone() }
}

/// With the ids and the Base64 that stand for themselves in a template.
fn resolved(template: &Sent, f: &Furnished) -> Sent {
    let mut coded = String::new();
    let mut resolve = |text: &str| {
        let ids = f.ids.iter().rev().fold(text.to_owned(), |text, ((of, name), id)| text.replace(&format!("{of}!{name}"), id));
        let mut parts = ids.split('⟦');
        let mut all = parts.next().unwrap().to_owned();
        for part in parts {
            let (inside, rest) = part.split_once('⟧').unwrap();
            all.push_str(&STANDARD.encode(inside));
            coded.push_str(inside);
            all.push_str(rest);
        }
        all
    };
    let (uri, body) = (resolve(&template.uri), resolve(&template.body));
    Sent { uri, body, coded, ..template.clone() }
}

/// The URIs of an operation that only reads, with the names of one project.
pub fn whole(operation: &Operation, project: &str, f: &Furnished) -> Vec<String> {
    let all = templates(operation, &[]).unwrap_or_default().into_iter().filter(|template| template.method == "GET");
    all.map(|template| resolved(&renamed(&template, &(0..100).collect(), project), f).uri).collect()
}

/// The requests of the own project.
fn templates(operation: &Operation, keys: &[String]) -> Result<Vec<Sent>, String> {
    let of = |place: &str| operation.parameters.iter().filter(|parameter| parameter.place == place).collect::<Vec<_>>();
    let mut values = vec![];
    for parameter in of("path") {
        values.push((parameter.name.as_str(), known(&operation.path, &parameter.name)?));
    }
    let most = values.iter().map(|(_, values)| values.len()).max().unwrap_or(1);
    let path = |n: usize| {
        let with = |path: String, (name, all): &(&str, Vec<String>)| path.replace(&format!("{{{name}}}"), &all[n % all.len()]);
        values.iter().fold(operation.path.clone(), with)
    };
    let mut uris: BTreeSet<String> = (0..most).map(path).collect();
    for parameter in of("query") {
        let name = &parameter.name;
        let values = if name == "nextPageKey" { keys.to_vec() } else { known(&operation.path, name)? };
        let before = if name == "nextPageKey" { "pageSize=1&" } else { "" };
        uris.extend(values.iter().map(|value| format!("{}?{before}{name}={value}", path(0))));
    }
    for uri in steered(&operation.path) {
        uris.insert(uri);
    }
    let bodies = match operation.bodies.is_empty() {
        true => vec![(String::new(), String::new())],
        false => bodies(&operation.name())?,
    };
    let sent = |uri: &String, (kind, body): &(String, String)| Sent {
        method: operation.method.clone(),
        uri: uri.clone(),
        kind: kind.clone(),
        body: body.clone(),
        coded: String::new(),
    };
    let mut all: Vec<Sent> = uris.iter().map(|uri| sent(uri, &bodies[0])).collect();
    all.extend(bodies.iter().skip(1).map(|body| sent(&path(0), body)));
    Ok(all)
}

/// Queries with more than one parameter.
fn steered(path: &str) -> Vec<String> {
    let all = match path {
        "/v1/event" | "/mongodb-datastore/event" => {
            vec!["project=alfa&keptnContext=alfa-open", "project=alfa&stage=alfadev&service=alfaweb"]
        }
        "/v1/event/triggered/{type}" => {
            return ["deployment", "approval"]
                .map(|task| format!("/v1/event/triggered/{task}?project=alfa&stage=alfadev&service=alfaweb&eventID=alfa!open"))
                .to_vec();
        }
        "/v1/sequence-execution" => {
            vec!["project=alfa&open=true", "project=alfa&keptnContext=alfa-open", "project=alfa&stage=alfadev&service=alfaweb"]
        }
        "/v1/deployments" => vec!["namespace=alfa&status=New", "namespace=alfa&config=alfacart"],
        _ => vec![],
    };
    all.into_iter().map(|query| format!("{path}?{query}")).collect()
}

/// What stands for a parameter of a path or a query.
fn known(path: &str, name: &str) -> Result<Vec<String>, String> {
    let begins = |start: &str| path.starts_with(start);
    let all: &[&str] = match name {
        "project" | "namespace" => &["alfa"],
        "stage" => &["alfadev", "alfaprod", "alfalate"],
        "service" => &["alfacart", "alfaweb", "alfaunused"],
        "context" | "keptnContext" | "shkeptncontext" => &["alfa-open", "alfa-failed", "alfa-asks", "alfa-held"],
        "contextPrefix" => &["alfa-o"],
        "trigger" => &["alfa!approval"],
        "eventID" => &["alfa!open", "alfa!approval"],
        "type" if begins("/v1/event/triggered") => &["deployment", "approval", "sh.keptn.event.deployment.triggered"],
        "type" => &["sh.keptn.event.alfadev.delivery.triggered", "sh.keptn.event.deployment.triggered"],
        "source" => &["alfaci"],
        "token" => &["alfa-read", "alfa-administer"],
        "id" if begins("/v1/deliveries") => &["alfa!delivery", "alfa!delivered"],
        "id" if begins("/v1/uniform") => &["alfa!integration"],
        "id" if begins("/v1/checks") => &["00000000-0000-4000-8000-000000000000"],
        "id" if begins("/v1/dead-letters") => &["1795172266001-m-1"],
        "id" => &["alfa:alfacart", "alfa:alfafresh"],
        "integrationId" | "integrationID" | "integration" => &["alfa!integration"],
        "subscription" => &["alfa!subscription"],
        "environment" => &["alfatwo", "alfaprod"],
        "revision" if begins("/v1/pipelines") => &["alfav2"],
        "revision" | "from" | "to" => &["alfa!newest", "alfa!older"],
        "githost" => &["forge"],
        "command" if path.contains("triggers") => &["suspend", "resume"],
        "command" => &["pause", "resume", "cancel", "retry", "proceed"],
        "name" if begins("/v1/pipelines") => &["alfaline", "alfaflow", "alfawatch", "alfaruns"],
        "name" if begins("/v1/schedules") => &["alfanightly"],
        "name" if begins("/v1/webhookSubscriptions") => &["alfahook"],
        "name" if begins("/v1/clusters") => &["alfacluster"],
        "name" if begins("/v1/metricsSources") => &["alfametrics"],
        "name" if begins("/v1/githosts") => &["forge"],
        "name" if begins("/v1/deployments") => &["alfa:alfacart-2", "alfa:alfacart-1", "alfa:alfafresh-1"],
        "name" if begins("/v1/artifact") => &["alfaimages"],
        "name" if begins("/v1/uniform") => &["alfa-tester"],
        "name" => &["delivery", "alfadev.delivery"],
        "uri" => &["alfa.txt", "shipyard.yaml", "remediation.yaml"],
        "state" => &["started", "finished", "paused"],
        "order" => &["newest", "oldest"],
        "status" => &["New", "Complete", "Running"],
        "config" => &["alfacart"],
        "webhook" => &["alfahook"],
        "cluster" => &["alfa/alfacluster"],
        "by" => &["alfaby"],
        "action" => &["apply", "trigger"],
        "since" | "fromTime" => &["2026-11-20T11:00:00Z"],
        "beforeTime" => &["2027-11-20T11:00:00Z"],
        "day" => &["2026-11-20"],
        "open" => &["true"],
        "dryRun" => &["true"],
        "labels" => &["alfalabel=alfa"],
        "unless" => &["alfaunless"],
        "hostname" => &["alfahost"],
        "gitCommitID" => &["alfa!newest"],
        "override" => &["alfareason"],
        "wait" | "root" | "explain" | "disableUpstreamSync" => &["0"],
        "pageSize" => &["1", "100"],
        _ => return Err(format!("parameter {name} of {path} has no value: say what stands for it in fenced/requests.rs")),
    };
    Ok(all.iter().map(|text| (*text).to_owned()).collect())
}

/// The bodies of an operation; the first one is sent to each of its paths.
fn bodies(operation: &str) -> Result<Vec<(String, String)>, String> {
    const FILES: &str = "/resource";
    let (method, path) = operation.split_once(' ').unwrap();
    let data = json!({"project": "alfa", "stage": "alfadev", "service": "alfaweb"});
    let event = |ty: &str, more: Value| {
        let mut event = json!({"type": format!("sh.keptn.event.{ty}"), "source": "alfaci", "data": data});
        event["data"]["result"] = json!("pass");
        event["data"]["status"] = json!("succeeded");
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    };
    let json = |all: Vec<Value>| Ok(all.into_iter().map(|body| ("application/json".to_owned(), body.to_string())).collect());
    let subscription = json!({"event": "sh.keptn.event.test.triggered", "filter": {"projects": ["alfa"], "stages": ["alfadev"], "services": ["alfaweb"]}});
    let coded = format!("⟦{SHIPYARD}⟧").replace('@', OWN);
    if path.contains(FILES) {
        let one = |uri: &str, content: &str| json!({"resources": [{"resourceURI": uri, "resourceContent": content}]});
        return match path.ends_with(FILES) {
            true => json(vec![one("alfa.txt", "⟦alfa⟧"), one("shipyard.yaml", &coded)]),
            false => json(vec![json!({"resourceContent": coded}), json!({"resourceContent": "⟦alfa⟧"})]),
        };
    }
    let object = || {
        let text = config("@cart", "@other").replace('@', OWN);
        keelway_wire::manifest::value_of(&text)
    };
    json(match (method, path) {
        ("POST", "/v1/apply") => {
            let shipyards = [SHIPYARD.to_owned(), config("@cart", "@other"), config("@more", "@other")];
            let all = MANIFESTS.iter().map(|text| (*text).to_owned()).chain(shipyards);
            return Ok(all.map(|text| ("application/yaml".to_owned(), text.replace('@', OWN))).collect());
        }
        ("POST", "/v1/event") => {
            let open = json!({"triggeredid": "alfa!open", "shkeptncontext": "alfa-open"});
            let asks = json!({"triggeredid": "alfa!approval", "shkeptncontext": "alfa-asks"});
            let mut deploys = event("alfadev.delivery.triggered", json!({}));
            deploys["data"]["deployment"] = json!({"deploymentConfig": "alfa:alfacart"});
            deploys["data"]["configurationChange"] = json!({"values": {"image": "registry.test/alfa/cart:2"}});
            vec![
                event("alfadev.delivery.triggered", json!({"shkeptncontext": "alfa-open"})),
                deploys,
                event("deployment.started", open.clone()),
                event("deployment.finished", open),
                event("approval.finished", asks),
                event("alfa.happened", json!({})),
            ]
        }
        ("POST", "/v1/sequence/{project}/{context}/control") => {
            ["pause", "abort"].map(|state| json!({"state": state, "stage": "alfadev"})).to_vec()
        }
        ("POST", "/v1/sequence/{project}/{context}/retry") => vec![json!({"stage": "alfadev"}), json!({})],
        ("POST", "/v1/sequence/{project}/{context}/override") => vec![json!({"stage": "alfalate", "reason": "alfareason"})],
        ("POST" | "PUT", "/v1/project") => vec![json!({"name": "alfa", "shipyard": coded})],
        ("POST", "/v1/project/{project}/service") => vec![json!({"serviceName": "alfanew"})],
        ("POST", "/v1/project/{project}/shipyard/rollback") => vec![json!({"revision": "alfa!older"})],
        ("POST", "/v1/project/{project}/stage/{stage}/service/{service}/evaluation") => {
            vec![json!({"id": "alfaone", "timeframe": "5m"})]
        }
        ("POST", "/v1/project/{project}/approval/{context}/{trigger}") => vec![json!({"decision": "approve", "by": "alfaby"})],
        ("POST", "/v1/tokens") => vec![json!({"name": "alfanew", "scopes": ["read"], "projects": ["alfa"]})],
        ("POST", "/v1/tokens/{token}/rotate") => vec![json!({})],
        ("POST", "/v1/uniform/registration") => {
            vec![json!({"name": "alfa-tester", "metadata": {"hostname": "alfahost"}, "subscriptions": [subscription]})]
        }
        (_, "/v1/uniform/registration/{id}/subscription" | "/v1/uniform/registration/{id}/subscription/{subscription}") => {
            vec![subscription]
        }
        ("POST", "/v1/log") => vec![json!({"logs": [{"integrationid": "alfa!integration", "message": "alfasays"}]})],
        ("POST", "/v1/pipelines/{namespace}/{name}/commands") => {
            ["hold", "abort", "retry"].map(|command| json!({"command": command, "environment": "alfatwo", "by": "alfaby"})).to_vec()
        }
        ("POST", "/v1/pipelines/{namespace}/{name}/environments/{environment}/revisions/{revision}/approval") => {
            ["approve", "reject"].map(|decision| json!({"decision": decision, "by": "alfaby"})).to_vec()
        }
        ("PUT", "/v1/project/{project}/sli-provider") => vec![json!({"name": "alfasource"})],
        ("POST", "/v1/observations") => vec![json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "name": "alfaapp", "namespace": "alfans1", "revision": "alfav3",
            "ready": true
        })],
        ("POST", "/v1/webhooks/{githost}") => {
            vec![
                json!({"action": "closed", "number": 1, "pull_request": {"number": 1}, "repository": {"html_url": "https://git.test/alfa/config"}}),
            ]
        }
        ("POST" | "PUT", "/v1/deploymentConfigs" | "/v1/deploymentConfigs/{id}") => {
            vec![object(), json!({"rollback": {"name": "alfacart-1"}})]
        }
        ("POST", "/v1/deploymentConfigs/{id}/instantiate") => vec![json!({"latest": true, "force": true, "name": "alfacart"})],
        ("POST", "/v1/deploymentConfigs/{id}/rollback") => {
            let from = json!({"kind": "ReplicationController", "name": "alfacart-1", "namespace": "alfa"});
            let openshift = json!({"kind": "DeploymentConfigRollback", "apiVersion": "apps.openshift.io/v1", "name": "alfacart", "spec": {"from": from, "revision": 1}});
            vec![json!({}), json!({"release": "alfacart-1"}), json!({"release": 1}), openshift]
        }
        ("POST", "/v1/deploymentConfigs/{id}/triggers/{command}" | "/v1/deploymentConfigs/{id}/{command}") => {
            vec![json!({"by": "alfaby"})]
        }
        ("POST", "/v1/rollbacks") => vec![json!({"rollbacks": [{"id": "alfa:alfacart"}], "notes": "alfanotes"})],
        ("POST", "/v1/deployments/{name}/claim") => vec![json!({"by": "alfaby", "claim": "alfarun"})],
        ("POST", "/v1/deployments/{name}/heartbeat") => vec![json!({"running": true, "message": "alfasays"})],
        ("POST", "/v1/deployments/{name}/strategy") => vec![json!({"until": 50})],
        ("POST", "/v1/deployments/{name}/finish") => vec![json!({"exitCode": 0, "message": "alfasays"})],
        ("POST", "/v1/artifacts/{namespace}/{name}") => {
            vec![json!({"tag": "alfalatest", "digest": "alfa!digest", "image": "registry.test/alfa/cart"})]
        }
        _ => return Err(format!("the body of {operation} has no example: say in fenced/requests.rs what project alfa sends")),
    })
}
