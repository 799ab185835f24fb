//! Tasks of ECS and builds of CodeBuild that carry a deployment out.
//!
//! A task claims the deployment itself, over HTTP: it is a `keelway deployer`. With the parameter `waitFor: exit`, which is ours
//! and not ECS's, and always for a build, Keelway claims for it, and its end is the deployment's: the engine learns it from the
//! events of ECS and CodeBuild. Starting the same attempt again is the same task: the request has a token.

use keelway_domain::deployments::definition::{Starter, WAIT_FOR};
use keelway_domain::ids::hash64;
use keelway_engine::deployments::Address;
use keelway_engine::deployments::started::VARIABLES;
use keelway_engine::starters::Runner;
use serde_json::{Map, Value, json};

/// The longest token of CodeBuild and ECS, in characters.
const MAX_TOKEN: usize = 64;

/// What is started.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// Who runs it.
    pub runner: Runner,
    /// The request.
    pub request: Value,
    /// Whether its end is the deployment's.
    pub waits: bool,
}

/// The attempt that it carries out.
pub struct Which<'a> {
    /// Of which config.
    pub of: &'a Address,
    /// Which version.
    pub n: u64,
    /// Which attempt.
    pub attempt: u32,
    /// Where the API is; empty: whoever is started knows.
    pub callback: &'a str,
}

/// The request that starts a task or a build.
///
/// # Errors
/// What is missing in the parameters.
pub fn start(starter: &Starter, which: &Which<'_>) -> Result<Start, String> {
    match starter {
        Starter::Ecs(parameters) => task(parameters.clone(), which),
        Starter::CodeBuild(parameters) => Ok(build(parameters.clone(), which)),
    }
}

/// The request that asks for its state.
pub fn look(starter: &Starter, arn: &str) -> (Runner, Value) {
    match starter {
        Starter::Ecs(parameters) => (Runner::Ecs, in_cluster(parameters, json!({"tasks": [arn]}))),
        Starter::CodeBuild(_) => (Runner::CodeBuild, json!({"ids": [build_id(arn)]})),
    }
}

/// The request that stops it.
pub fn stop(starter: &Starter, arn: &str) -> (Runner, Value) {
    match starter {
        Starter::Ecs(parameters) => {
            (Runner::Ecs, in_cluster(parameters, json!({"task": arn, "reason": "the deployment is to stop"})))
        }
        Starter::CodeBuild(_) => (Runner::CodeBuild, json!({"id": build_id(arn)})),
    }
}

/// A request about a task of the cluster that the parameters name; ECS takes `default` if they name none.
fn in_cluster(parameters: &Map<String, Value>, mut request: Value) -> Value {
    if let Some(cluster) = parameters.get("cluster") {
        request["cluster"] = cluster.clone();
    }
    request
}

/// The id is what follows `build/` in the ARN.
fn build_id(arn: &str) -> &str {
    arn.rsplit_once("build/").map_or(arn, |(_, id)| id)
}

fn task(mut parameters: Map<String, Value>, which: &Which<'_>) -> Result<Start, String> {
    let waits = parameters.remove(WAIT_FOR);
    if waits.as_ref().is_some_and(|waits| waits != "exit") {
        return Err(format!("{WAIT_FOR} of the task is not understood: write exit, or leave it out"));
    }
    let containers = parameters.get_mut("overrides").and_then(|overrides| overrides.get_mut("containerOverrides")?.as_array_mut());
    let Some(container) = containers.and_then(|containers| containers.first_mut()) else {
        return Err("name the container that deploys: the task has no overrides.containerOverrides[0].name".into());
    };
    let environment = with(container.get("environment"), which.variables(), |name, value| json!({"name": name, "value": value}));
    container["environment"] = environment;
    parameters.insert("clientToken".into(), which.token().into());
    let by: String = which.name().chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).take(128).collect();
    parameters.insert("startedBy".into(), by.into());
    Ok(Start { runner: Runner::Ecs, request: Value::Object(parameters), waits: waits.is_some() })
}

fn build(mut parameters: Map<String, Value>, which: &Which<'_>) -> Start {
    let plain = |name: &str, value: &str| json!({"name": name, "value": value, "type": "PLAINTEXT"});
    let environment = with(parameters.get("environmentVariablesOverride"), which.variables(), plain);
    parameters.insert("environmentVariablesOverride".into(), environment);
    parameters.insert("idempotencyToken".into(), which.token().into());
    Start { runner: Runner::CodeBuild, request: Value::Object(parameters), waits: true }
}

/// An environment with more variables; the ones that say which attempt it is cannot be set otherwise.
fn with(environment: Option<&Value>, variables: Vec<(&str, String)>, form: impl Fn(&str, &str) -> Value) -> Value {
    let set = |variable: &&Value| variables.iter().any(|(name, _)| variable["name"] == *name);
    let own = environment.and_then(Value::as_array).into_iter().flatten().filter(|variable| !set(variable)).cloned();
    own.chain(variables.iter().map(|(name, value)| form(name, value))).collect()
}

impl Which<'_> {
    /// `<config>-<n>-<attempt>`.
    fn name(&self) -> String {
        format!("{}-{}-{}", self.of.name, self.n, self.attempt)
    }

    /// The name, cut to fit, and a hash of everything: configs of two namespaces may have one name.
    fn token(&self) -> String {
        let hash = hash64(&[self.of.namespace.as_bytes(), self.name().as_bytes()]);
        let rest = format!("-{}-{}-{hash:016x}", self.n, self.attempt);
        let name: String = self.of.name.chars().take(MAX_TOKEN.saturating_sub(rest.len())).collect();
        format!("{name}{rest}")
    }

    fn variables(&self) -> Vec<(&'static str, String)> {
        let [namespace, name, attempt] = VARIABLES;
        let mut variables = vec![
            (namespace, self.of.namespace.clone()),
            (name, format!("{}-{}", self.of.name, self.n)),
            (attempt, self.attempt.to_string()),
        ];
        if !self.callback.is_empty() {
            variables.push(("DEPLOYMENT_CALLBACK", self.callback.to_owned()));
        }
        variables
    }
}
