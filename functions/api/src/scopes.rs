//! What each route needs, in one table. A request to a route that is missing here is only let through for an administrator of everything, and
//! a test compares the table with the router.

use axum::http::Method;
use keelway_domain::access::Kind::{self, Administer, Approve, Execute, Read, Trigger};

/// What a route asks of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// No token: its handler checks a signature, or the token of an attempt.
    Itself,
    /// Any token that is valid.
    Token,
    /// One of these scopes, in the project or namespace of the path. Without one in the path, in all projects.
    Scope(&'static [Kind]),
    /// One of these scopes somewhere; its handler checks for which project, task or stage, or shows only what the caller may see.
    Handler(&'static [Kind]),
}

/// A route: method (`ANY`: each of them), path, what it needs, and what the audit calls a request that succeeds. Empty: it is not in the audit, or the handler says
/// what it is.
pub type Route = (&'static str, &'static str, Needs, &'static str);

use Needs::{Handler, Itself, Scope, Token};

const READ: Needs = Scope(&[Read]);
const LIST: Needs = Handler(&[Read]);
const TRIGGER: Needs = Scope(&[Trigger]);
const ADMINISTER: Needs = Scope(&[Administer]);
/// What is told to those who carry work out, too.
const WORK: &[Kind] = &[Read, Execute];
/// The files of a project.
const FILES: Needs = Scope(WORK);
/// What executors say about themselves.
const WORKER: Needs = Handler(&[Execute]);

/// Every route.
pub const ROUTES: &[Route] = &[
    ("GET", "/v1/metadata", Token, ""),
    ("GET", "/v1/openapi.json", Token, ""),
    ("POST", "/v1/auth", Token, ""),
    ("GET", "/v1/whoami", Token, ""),
    ("GET", "/v1/tokens", ADMINISTER, ""),
    ("POST", "/v1/tokens", ADMINISTER, "token"),
    ("GET", "/v1/tokens/{token}", ADMINISTER, ""),
    ("DELETE", "/v1/tokens/{token}", ADMINISTER, "token"),
    ("POST", "/v1/tokens/{token}/rotate", ADMINISTER, "token"),
    ("GET", "/v1/audit", ADMINISTER, ""),
    ("GET", "/v1/event", Handler(WORK), ""),
    ("POST", "/v1/event", Handler(&[Trigger, Execute, Approve]), ""),
    ("GET", "/v1/event/triggered/{type}", Handler(WORK), ""),
    ("GET", "/v1/sequence/{project}", READ, ""),
    ("GET", "/v1/sequence-execution", LIST, ""),
    ("POST", "/v1/sequence/{project}/{context}/control", TRIGGER, "control"),
    ("POST", "/v1/sequence/{project}/{context}/retry", Handler(&[Trigger]), "trigger"),
    ("POST", "/v1/sequence/{project}/{context}/override", Handler(&[Approve]), "override"),
    ("POST", "/v1/apply", Handler(&[Administer]), "apply"),
    ("GET", "/v1/border", Handler(&[Administer]), ""),
    ("GET", "/v1/project", LIST, ""),
    ("GET", "/v1/project/{project}", READ, ""),
    ("GET", "/v1/project/{project}/shipyard", READ, ""),
    ("GET", "/v1/project/{project}/shipyard/revisions", READ, ""),
    ("GET", "/v1/project/{project}/shipyard/revisions/{revision}", READ, ""),
    ("GET", "/v1/project/{project}/shipyard/diff", READ, ""),
    ("POST", "/v1/project/{project}/shipyard/rollback", ADMINISTER, "apply"),
    ("GET", "/v1/project/{project}/service", READ, ""),
    ("GET", "/v1/project/{project}/environment", READ, ""),
    ("GET", "/v1/project/{project}/queue", READ, ""),
    ("GET", "/v1/project/{project}/stage", READ, ""),
    ("GET", "/v1/project/{project}/stage/{stage}", READ, ""),
    ("GET", "/v1/project/{project}/stage/{stage}/service", READ, ""),
    ("GET", "/v1/project/{project}/stage/{stage}/service/{service}", READ, ""),
    ("POST", "/v1/project/{project}/stage/{stage}/service/{service}/evaluation", TRIGGER, ""),
    ("POST", "/v1/project/{project}/approval/{context}/{trigger}", Handler(&[Approve]), "decide"),
    ("POST", "/v1/project", Handler(&[Administer]), "apply"),
    ("PUT", "/v1/project", Handler(&[Administer]), "apply"),
    ("DELETE", "/v1/project/{project}", ADMINISTER, "delete"),
    ("POST", "/v1/project/{project}/service", ADMINISTER, "apply"),
    ("DELETE", "/v1/project/{project}/service/{service}", ADMINISTER, "delete"),
    ("GET", "/v1/project/{project}/resource", FILES, ""),
    ("POST", "/v1/project/{project}/resource", ADMINISTER, "apply"),
    ("PUT", "/v1/project/{project}/resource", ADMINISTER, "apply"),
    ("GET", "/v1/project/{project}/resource/{*uri}", FILES, ""),
    ("PUT", "/v1/project/{project}/resource/{*uri}", ADMINISTER, "apply"),
    ("DELETE", "/v1/project/{project}/resource/{*uri}", ADMINISTER, "delete"),
    ("GET", "/v1/project/{project}//resource", FILES, ""),
    ("POST", "/v1/project/{project}//resource", ADMINISTER, "apply"),
    ("PUT", "/v1/project/{project}//resource", ADMINISTER, "apply"),
    ("GET", "/v1/project/{project}//resource/{*uri}", FILES, ""),
    ("PUT", "/v1/project/{project}//resource/{*uri}", ADMINISTER, "apply"),
    ("DELETE", "/v1/project/{project}//resource/{*uri}", ADMINISTER, "delete"),
    ("GET", "/v1/project/{project}/stage/{stage}/resource", FILES, ""),
    ("POST", "/v1/project/{project}/stage/{stage}/resource", ADMINISTER, "apply"),
    ("PUT", "/v1/project/{project}/stage/{stage}/resource", ADMINISTER, "apply"),
    ("GET", "/v1/project/{project}/stage/{stage}/resource/{*uri}", FILES, ""),
    ("PUT", "/v1/project/{project}/stage/{stage}/resource/{*uri}", ADMINISTER, "apply"),
    ("DELETE", "/v1/project/{project}/stage/{stage}/resource/{*uri}", ADMINISTER, "delete"),
    ("GET", "/v1/project/{project}/stage/{stage}/service/{service}/resource", FILES, ""),
    ("POST", "/v1/project/{project}/stage/{stage}/service/{service}/resource", ADMINISTER, "apply"),
    ("PUT", "/v1/project/{project}/stage/{stage}/service/{service}/resource", ADMINISTER, "apply"),
    ("GET", "/v1/project/{project}/stage/{stage}/service/{service}/resource/{*uri}", FILES, ""),
    ("PUT", "/v1/project/{project}/stage/{stage}/service/{service}/resource/{*uri}", ADMINISTER, "apply"),
    ("DELETE", "/v1/project/{project}/stage/{stage}/service/{service}/resource/{*uri}", ADMINISTER, "delete"),
    ("ANY", "/v1/secret", Token, ""),
    ("GET", "/v1/uniform/registration", Handler(WORK), ""),
    ("POST", "/v1/uniform/registration", WORKER, ""),
    ("DELETE", "/v1/uniform/registration/{id}", WORKER, ""),
    ("PUT", "/v1/uniform/registration/{id}/ping", WORKER, ""),
    ("GET", "/v1/uniform/registration/{id}/subscription", Handler(WORK), ""),
    ("POST", "/v1/uniform/registration/{id}/subscription", WORKER, ""),
    ("GET", "/v1/uniform/registration/{id}/subscription/{subscription}", Handler(WORK), ""),
    ("PUT", "/v1/uniform/registration/{id}/subscription/{subscription}", WORKER, ""),
    ("DELETE", "/v1/uniform/registration/{id}/subscription/{subscription}", WORKER, ""),
    ("GET", "/v1/log", READ, ""),
    ("POST", "/v1/log", WORKER, ""),
    ("DELETE", "/v1/log", ADMINISTER, "delete"),
    ("GET", "/v1/dead-letters", READ, ""),
    ("GET", "/v1/dead-letters/{id}", READ, ""),
    ("DELETE", "/v1/dead-letters/{id}", ADMINISTER, "delete"),
    ("POST", "/v1/dead-letters/{id}/redrive", ADMINISTER, "control"),
    ("GET", "/v1/invalid", READ, ""),
    ("GET", "/v1/checks", READ, ""),
    ("POST", "/v1/checks", TRIGGER, ""),
    ("GET", "/v1/checks/{id}", READ, ""),
    ("GET", "/mongodb-datastore/event", Handler(WORK), ""),
    ("GET", "/v1/schedules/{project}", READ, ""),
    ("GET", "/v1/schedules/{project}/{name}", READ, ""),
    ("DELETE", "/v1/schedules/{project}/{name}", ADMINISTER, "delete"),
    ("GET", "/v1/schedules/{project}/{name}/manifest", READ, ""),
    ("GET", "/v1/pipelines", LIST, ""),
    ("GET", "/v1/pipelines/{namespace}/{name}", READ, ""),
    ("DELETE", "/v1/pipelines/{namespace}/{name}", ADMINISTER, "delete"),
    ("GET", "/v1/pipelines/{namespace}/{name}/manifest", READ, ""),
    ("GET", "/v1/pipelines/{namespace}/{name}/history", READ, ""),
    ("GET", "/v1/pipelines/{namespace}/{name}/explain", READ, ""),
    ("GET", "/v1/pipelines/{namespace}/{name}/pull-requests", READ, ""),
    ("POST", "/v1/pipelines/{namespace}/{name}/commands", TRIGGER, "control"),
    (
        "POST",
        "/v1/pipelines/{namespace}/{name}/environments/{environment}/revisions/{revision}/approval",
        Scope(&[Approve]),
        "decide",
    ),
    ("POST", "/v1/observations", TRIGGER, "observe"),
    ("POST", "/v1/webhooks/{githost}", Itself, ""),
    ("GET", "/v1/clusters", LIST, ""),
    ("GET", "/v1/clusters/{namespace}/{name}", READ, ""),
    ("DELETE", "/v1/clusters/{namespace}/{name}", ADMINISTER, "delete"),
    ("GET", "/v1/clusters/{namespace}/{name}/manifest", READ, ""),
    ("POST", "/v1/clusters/{namespace}/{name}/observe", TRIGGER, "control"),
    ("GET", "/v1/githosts", READ, ""),
    ("GET", "/v1/githosts/{name}", READ, ""),
    ("DELETE", "/v1/githosts/{name}", ADMINISTER, "delete"),
    ("GET", "/v1/githosts/{name}/manifest", READ, ""),
    ("GET", "/v1/deploymentConfigs", LIST, ""),
    ("POST", "/v1/deploymentConfigs", Handler(&[Administer]), "apply"),
    ("GET", "/v1/deploymentConfigs/{id}", READ, ""),
    ("PUT", "/v1/deploymentConfigs/{id}", ADMINISTER, "apply"),
    ("DELETE", "/v1/deploymentConfigs/{id}", ADMINISTER, "delete"),
    ("GET", "/v1/deploymentConfigs/{id}/manifest", READ, ""),
    ("GET", "/v1/deploymentConfigs/{id}/status", READ, ""),
    ("GET", "/v1/deploymentConfigs/{id}/history", READ, ""),
    ("GET", "/v1/deploymentConfigs/{id}/audit", READ, ""),
    ("POST", "/v1/deploymentConfigs/{id}/instantiate", TRIGGER, "trigger"),
    ("POST", "/v1/deploymentConfigs/{id}/rollback", TRIGGER, "trigger"),
    ("POST", "/v1/deploymentConfigs/{id}/triggers/{command}", TRIGGER, "control"),
    ("POST", "/v1/deploymentConfigs/{id}/{command}", TRIGGER, "control"),
    ("GET", "/v1/generateDeploymentConfigs/{id}", READ, ""),
    ("POST", "/v1/rollbacks", Handler(&[Trigger]), "trigger"),
    ("GET", "/v1/deployments", Handler(WORK), ""),
    ("GET", "/v1/deployments/{name}", Scope(WORK), ""),
    ("POST", "/v1/deployments/{name}/claim", Scope(&[Execute]), "claim"),
    ("POST", "/v1/deployments/{name}/heartbeat", Itself, ""),
    ("POST", "/v1/deployments/{name}/strategy", Itself, ""),
    ("POST", "/v1/deployments/{name}/finish", Itself, ""),
    ("GET", "/v1/artifactSources", Handler(&[Read]), ""),
    ("GET", "/v1/artifactSources/{namespace}/{name}", READ, ""),
    ("DELETE", "/v1/artifactSources/{namespace}/{name}", ADMINISTER, "delete"),
    ("GET", "/v1/artifactSources/{namespace}/{name}/manifest", READ, ""),
    ("POST", "/v1/artifacts/{namespace}/{name}", TRIGGER, "push"),
    ("GET", "/v1/webhookSubscriptions", LIST, ""),
    ("GET", "/v1/webhookSubscriptions/{namespace}/{name}", READ, ""),
    ("DELETE", "/v1/webhookSubscriptions/{namespace}/{name}", ADMINISTER, "delete"),
    ("GET", "/v1/webhookSubscriptions/{namespace}/{name}/manifest", READ, ""),
    ("POST", "/v1/webhookSubscriptions/{namespace}/{name}/resume", ADMINISTER, "control"),
    ("GET", "/v1/deliveries", LIST, ""),
    ("GET", "/v1/deliveries/{namespace}/{id}", READ, ""),
    ("POST", "/v1/deliveries/{namespace}/{id}/redeliver", TRIGGER, "control"),
];

/// The routes that start sequences by hand: what follows the end of another one takes [`FOLLOW_UP`].
pub const BY_HAND: [&str; 2] = ["/v1/event", "/v1/sequence/{project}/{context}/retry"];
/// The scope for it.
pub const FOLLOW_UP: &str = "trigger:<stage>";

/// A scope as tokens have it.
pub fn name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Read => "read",
        Kind::Trigger => "trigger",
        Kind::Execute => "execute:<task>",
        Kind::Approve => "approve:<stage>",
        Kind::Administer => "administer",
    }
}

/// What a request needs, and what the audit calls it.
pub fn of(method: &Method, path: &str) -> (Needs, &'static str) {
    // Nothing is there: whoever has a token is told so.
    if path.is_empty() {
        return (Token, "");
    }
    let method = if method == Method::HEAD { "GET" } else { method.as_str() };
    let known = ROUTES.iter().find(|(of, route, ..)| (*of == method || *of == "ANY") && *route == path);
    known.map_or((ADMINISTER, "unlisted"), |(_, _, needs, act)| (*needs, *act))
}
