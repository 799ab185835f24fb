//! Which resources of the installation a definition names, and which parameters of a task or a build it may set.

use super::definition::{Action, Definition, Hook, LAMBDA_ALIAS, Starter, Target, WAIT_FOR};
use super::template::digest;
use crate::border::{Resource, ResourceKind, Unreadable};
use serde_json::{Map, Value};

/// The parameters of `RunTask` that a manifest may set, and `waitFor`, which is Keelway's own.
const TASK: [&str; 10] = [
    "cluster",
    "taskDefinition",
    "waitFor",
    "launchType",
    "platformVersion",
    "capacityProviderStrategy",
    "networkConfiguration",
    "placementConstraints",
    "placementStrategy",
    "overrides",
];
/// The overrides of a task that a manifest may set. Roles are not among them.
const TASK_OVERRIDES: [&str; 4] = ["containerOverrides", "cpu", "memory", "ephemeralStorage"];
/// The overrides of a container that a manifest may set. The command is not among them.
const CONTAINER: [&str; 5] = ["name", "environment", "cpu", "memory", "memoryReservation"];
/// The parameters of `StartBuild` that a manifest may set. Source, build specification and role are not among them.
const BUILD: [&str; 4] =
    ["projectName", "environmentVariablesOverride", "timeoutInMinutesOverride", "queuedTimeoutInMinutesOverride"];

impl Target {
    /// The function of the alias, if the target is one.
    pub fn function(&self) -> Option<Result<Resource, Unreadable>> {
        let (function, _) = self.id.rsplit_once(':').filter(|_| self.kind == LAMBDA_ALIAS)?;
        let resource = Resource::of_aws(ResourceKind::Functions, function);
        Some(resource.map(|resource| resource.at(self.region.as_deref(), self.account.as_deref())))
    }
}

impl Starter {
    /// The task definition with its cluster, or the project of the build.
    ///
    /// # Errors
    /// The name has no known form.
    pub fn resource(&self) -> Result<Resource, Unreadable> {
        let text = |parameters: &Map<String, Value>, name: &str| parameters.get(name).and_then(Value::as_str).map(str::to_owned);
        match self {
            Starter::Ecs(parameters) => {
                // A value that is not a string reads as empty, which is not a valid name either.
                let cluster = parameters.contains_key("cluster").then(|| text(parameters, "cluster").unwrap_or_default());
                Resource::task(cluster.as_deref(), &text(parameters, "taskDefinition").unwrap_or_default())
            }
            Starter::CodeBuild(parameters) => {
                Resource::of_aws(ResourceKind::Builds, &text(parameters, "projectName").unwrap_or_default())
            }
        }
    }

    /// Checks that the parameters are enough to start the task or the build.
    ///
    /// # Errors
    /// The parameter that is missing.
    pub fn is_complete(&self) -> Result<(), String> {
        let Starter::Ecs(parameters) = self else { return Ok(()) };
        if parameters.get(WAIT_FOR).is_some_and(|waits| waits != "exit") {
            return Err(format!("{WAIT_FOR} of the task is not understood: write exit, or leave it out"));
        }
        let containers = parameters.get("overrides").and_then(|overrides| overrides.get("containerOverrides")?.as_array());
        match containers.and_then(|containers| containers.first()) {
            Some(_) => Ok(()),
            None => Err("name the container that deploys: the task has no overrides.containerOverrides[0].name".into()),
        }
    }

    /// Checks that a manifest may set all of the parameters. The task or the build belongs to the installation: a manifest chooses
    /// neither its code nor its rights.
    ///
    /// # Errors
    /// The parameter that it may not set.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Starter::CodeBuild(parameters) => {
                only(parameters, &BUILD, "")?;
                let variables = parameters.get("environmentVariablesOverride").and_then(Value::as_array).into_iter().flatten();
                let plain = |variable: &Value| variable.get("type").is_none_or(|ty| ty == "PLAINTEXT");
                match variables.into_iter().all(plain) {
                    true => Ok(()),
                    false => {
                        Err("environmentVariablesOverride takes variables of the type PLAINTEXT only: leave others to the project"
                            .into())
                    }
                }
            }
            Starter::Ecs(parameters) => {
                only(parameters, &TASK, "")?;
                let Some(overrides) = parameters.get("overrides").and_then(Value::as_object) else { return Ok(()) };
                only(overrides, &TASK_OVERRIDES, "overrides.")?;
                let containers = overrides.get("containerOverrides").and_then(Value::as_array).into_iter().flatten();
                let mut containers = containers.filter_map(Value::as_object);
                containers.try_for_each(|container| only(container, &CONTAINER, "overrides.containerOverrides[]."))
            }
        }
    }
}

fn only(given: &Map<String, Value>, known: &[&str], place: &str) -> Result<(), String> {
    match given.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => {
            Err(format!("{place}{name} is nothing that a manifest may say: leave it out; it may say {}", known.join(", ")))
        }
    }
}

impl Definition {
    /// The resources of the installation that Keelway uses to carry the definition out, with the field that names each. Images that
    /// tags bring are not known at this point.
    pub fn resources(&self) -> Vec<(String, Result<Resource, Unreadable>)> {
        let mut found = vec![];
        if let Some(starter) = &self.deployer {
            found.push(("spec.deployer".to_owned(), starter.resource()));
        }
        if !self.deploys_to_aliases() && !self.wraps() {
            return found;
        }
        for target in &self.targets {
            found.extend(target.function().map(|function| (format!("id of target {}", target.name), function)));
        }
        let hooks = &self.strategy.hooks;
        for (which, hook) in [("pre", &hooks.pre), ("mid", &hooks.mid), ("post", &hooks.post)] {
            if let Some(Hook { action: Action::Invoke(function), .. }) = hook {
                found.push((format!("hook {which}"), Resource::of_aws(ResourceKind::HookFunctions, function)));
            }
        }
        found.extend(self.main_image().and_then(code).map(|code| ("image of the template".to_owned(), Ok(code))));
        found
    }
}

/// The repository or package of an image that is named by its digest.
pub fn code(image: &str) -> Option<Resource> {
    let (name, _) = image.split_once('@').filter(|_| digest(image).starts_with("sha256:"))?;
    Some(match name.strip_prefix("s3://") {
        Some(object) => {
            let object = object.rsplit_once("?versionId=").map_or(object, |(object, _)| object);
            Resource::named(ResourceKind::Packages, object)
        }
        None => Resource::image(name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ecs(parameters: Value) -> Starter {
        Starter::Ecs(serde_json::from_value(parameters).unwrap())
    }

    fn build(parameters: Value) -> Starter {
        Starter::CodeBuild(serde_json::from_value(parameters).unwrap())
    }

    #[test]
    fn a_manifest_gives_neither_code_nor_rights_to_a_task_or_a_build() {
        let containers = |member: &str| json!({"containerOverrides": [{"name": "a"}, {"name": "b", member: ["x"]}]});
        for (starter, refused) in [
            (ecs(json!({"taskDefinition": "t", "overrides": containers("environment"), "waitFor": "exit"})), None),
            (
                ecs(json!({"taskDefinition": "t", "overrides": containers("command")})),
                Some("overrides.containerOverrides[].command "),
            ),
            (ecs(json!({"taskDefinition": "t", "overrides": {"taskRoleArn": "r"}})), Some("overrides.taskRoleArn ")),
            (ecs(json!({"taskDefinition": "t", "overrides": {"executionRoleArn": "r"}})), Some("overrides.executionRoleArn ")),
            (ecs(json!({"taskDefinition": "t", "enableExecuteCommand": true})), Some("enableExecuteCommand ")),
            (build(json!({"projectName": "p", "timeoutInMinutesOverride": 5})), None),
            (build(json!({"projectName": "p", "buildspecOverride": "x"})), Some("buildspecOverride ")),
            (build(json!({"projectName": "p", "sourceLocationOverride": "x"})), Some("sourceLocationOverride ")),
            (build(json!({"projectName": "p", "imageOverride": "x"})), Some("imageOverride ")),
            (build(json!({"projectName": "p", "privilegedModeOverride": true})), Some("privilegedModeOverride ")),
            (build(json!({"projectName": "p", "serviceRoleOverride": "x"})), Some("serviceRoleOverride ")),
            (
                build(
                    json!({"projectName": "p", "environmentVariablesOverride": [{"name": "A", "value": "s", "type": "SECRETS_MANAGER"}]}),
                ),
                Some("environmentVariablesOverride "),
            ),
        ] {
            let told = starter.check().err();
            let fits = match (&told, refused) {
                (Some(told), Some(refused)) => told.starts_with(refused),
                (told, refused) => told.is_none() && refused.is_none(),
            };
            assert!(fits, "{starter:?}: {told:?}");
        }
    }

    #[test]
    fn everything_that_belongs_to_the_installation_is_found() {
        let definition: Definition = serde_json::from_value(json!({
            "template": {"containers": [{"name": "app", "image": "s3://releases/shop/1.zip?versionId=v@sha256:ab"}]},
            "targets": [{"name": "main", "kind": "lambda-alias", "id": "shop:live", "region": "eu-west-1"}],
            "strategy": {"type": "Recreate", "timeout": 0, "deadline": 0,
                "hooks": {"pre": {"failurePolicy": "Abort", "action": {"invoke": "check:live"}}}},
        }))
        .unwrap();
        let told = |definition: &Definition| {
            definition.resources().into_iter().map(|(field, found)| format!("{field}: {}", found.unwrap())).collect::<Vec<_>>()
        };
        assert_eq!(
            told(&definition),
            [
                "id of target main: function shop (eu-west-1)",
                "hook pre: hook function check",
                "image of the template: package releases/shop/1.zip"
            ]
        );
        let started =
            Definition { targets: vec![], deployer: Some(ecs(json!({"cluster": "c", "taskDefinition": "t:3"}))), ..definition };
        assert_eq!(told(&started), ["spec.deployer: task c/t"]);
        assert!(ecs(json!({"cluster": 1, "taskDefinition": "t"})).resource().is_err());
    }
}
