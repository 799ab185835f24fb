//! The requests to ECS and CodeBuild about a task or a build that carries a deployment out, and what their answers say.
//!
//! A task claims the deployment itself, over HTTP: it is a `keelway deployer`. With Keelway's own parameter `waitFor: exit`, and
//! always for a build, Keelway claims for it, and its end is the end of the deployment: the engine learns of it from the events of
//! ECS and CodeBuild. Starting the same attempt again is idempotent by a client token.

use super::{build, task, text};
use keelway_domain::deployments::definition::{Starter, WAIT_FOR};
use keelway_domain::deployments::runner::{Look, Which};
use serde_json::{Map, Value, json};

/// The request that starts it: `RunTask`, or `StartBuild`.
pub fn start(starter: &Starter, which: &Which<'_>) -> Value {
    match starter {
        Starter::Ecs(parameters) => start_task(parameters.clone(), which),
        Starter::CodeBuild(parameters) => start_build(parameters.clone(), which),
    }
}

/// The request that asks for its state: `DescribeTasks`, or `BatchGetBuilds`.
pub fn look(starter: &Starter, arn: &str) -> Value {
    match starter {
        Starter::Ecs(parameters) => in_cluster(parameters, json!({"tasks": [arn]})),
        Starter::CodeBuild(_) => json!({"ids": [build_id(arn)]}),
    }
}

/// What the answer about one task or build says.
pub fn seen(starter: &Starter, answer: &Value) -> Look {
    let list = match starter {
        Starter::Ecs(_) => "tasks",
        Starter::CodeBuild(_) => "builds",
    };
    let Some(found) = answer[list].get(0) else { return Look::Missing };
    let seen = match starter {
        Starter::Ecs(_) => task(found).map(|(_, became)| (became, String::new())),
        Starter::CodeBuild(_) => {
            build(text(found, "buildStatus")).map(|became| (became, text(&found["logs"], "deepLink").to_owned()))
        }
    };
    seen.map_or(Look::Waits, |(became, log)| Look::Became(became, log))
}

/// The request that stops it: `StopTask`, or `StopBuild`.
pub fn stop(starter: &Starter, arn: &str) -> Value {
    match starter {
        Starter::Ecs(parameters) => in_cluster(parameters, json!({"task": arn, "reason": "the deployment is to stop"})),
        Starter::CodeBuild(_) => json!({"id": build_id(arn)}),
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

/// The first container is the one that deploys: the parameters name it ([`Starter::is_complete`]).
fn start_task(mut parameters: Map<String, Value>, which: &Which<'_>) -> Value {
    parameters.remove(WAIT_FOR);
    let containers = parameters.get_mut("overrides").and_then(|overrides| overrides.get_mut("containerOverrides")?.as_array_mut());
    if let Some(container) = containers.and_then(|containers| containers.first_mut()) {
        let form = |name: &str, value: &str| json!({"name": name, "value": value});
        container["environment"] = with(container.get("environment"), which, form);
    }
    parameters.insert("clientToken".into(), which.token().into());
    let by: String = which.name().chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).take(128).collect();
    parameters.insert("startedBy".into(), by.into());
    Value::Object(parameters)
}

fn start_build(mut parameters: Map<String, Value>, which: &Which<'_>) -> Value {
    let plain = |name: &str, value: &str| json!({"name": name, "value": value, "type": "PLAINTEXT"});
    let environment = with(parameters.get("environmentVariablesOverride"), which, plain);
    parameters.insert("environmentVariablesOverride".into(), environment);
    parameters.insert("idempotencyToken".into(), which.token().into());
    Value::Object(parameters)
}

/// An environment with the variables that say which attempt it is; they cannot be set otherwise.
fn with(environment: Option<&Value>, which: &Which<'_>, form: impl Fn(&str, &str) -> Value) -> Value {
    let variables = which.variables();
    let set = |variable: &&Value| variables.iter().any(|(name, _)| variable["name"] == *name);
    let own = environment.and_then(Value::as_array).into_iter().flatten().filter(|variable| !set(variable)).cloned();
    own.chain(variables.iter().map(|(name, value)| form(name, value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use keelway_domain::deployments::runner::Became;

    #[test]
    fn answers_about_a_build() {
        let starter = Starter::CodeBuild(Map::new());
        let build = |status: &str| json!({"builds": [{"arn": "a", "buildStatus": status, "logs": {"deepLink": "https://log"}}]});
        let look = |answer: Value| seen(&starter, &answer);
        assert_eq!(look(build("SUCCEEDED")), Look::Became(Became::Ended(Some(0), String::new()), "https://log".into()));
        assert_eq!(look(build("IN_PROGRESS")), Look::Became(Became::Runs, "https://log".into()));
        assert_eq!(look(json!({"builds": [], "buildsNotFound": ["deploy:1"]})), Look::Missing);
    }
}
