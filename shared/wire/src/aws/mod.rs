//! What AWS says and is told, between its words and Keelway's: the events of its services, and the tasks and builds that it runs.

pub mod events;
pub mod runs;

use keelway_domain::address::Address;
use keelway_domain::deployments::runner::{Became, VARIABLES};
use serde_json::Value;

fn text<'a>(of: &'a Value, name: &str) -> &'a str {
    of[name].as_str().unwrap_or_default()
}

/// The attempt that an environment names: of which config, which version, and which attempt.
fn attempt(environment: &Value) -> Option<(Address, u64, u32)> {
    let value = |wanted: &str| {
        let variables = environment.as_array()?;
        variables.iter().find(|variable| text(variable, "name") == wanted).map(|variable| text(variable, "value"))
    };
    let [namespace, name, attempt] = VARIABLES.map(value);
    let (config, n) = name?.rsplit_once('-')?;
    Some((Address::new(namespace?, config), n.parse().ok()?, attempt?.parse().ok()?))
}

/// A task of ECS, as an event or `DescribeTasks` shows it: which attempt it carries out, and what became of it. `None`: it carries
/// out none, or does not run yet.
fn task(detail: &Value) -> Option<((Address, u64, u32), Became)> {
    let overrides = detail["overrides"]["containerOverrides"].as_array()?;
    let (container, which) =
        overrides.iter().find_map(|container| Some((text(container, "name"), attempt(&container["environment"])?)))?;
    let became = match text(detail, "lastStatus") {
        "RUNNING" => Became::Runs,
        "STOPPED" => {
            let mut containers = detail["containers"].as_array().into_iter().flatten();
            let ours = containers.find(|known| text(known, "name") == container).unwrap_or(&Value::Null);
            let why: Vec<&str> =
                [text(detail, "stoppedReason"), text(ours, "reason")].into_iter().filter(|why| !why.is_empty()).collect();
            Became::Ended(ours["exitCode"].as_i64(), why.join(": "))
        }
        _ => return None,
    };
    Some((which, became))
}

/// What the status of a build of CodeBuild says. `None`: nothing yet.
fn build(status: &str) -> Option<Became> {
    Some(match status {
        "IN_PROGRESS" => Became::Runs,
        "SUCCEEDED" => Became::Ended(Some(0), String::new()),
        "FAILED" | "FAULT" | "TIMED_OUT" | "STOPPED" => Became::Ended(Some(1), format!("the build ended with {status}")),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn stopped(container: Value) -> Option<(Option<i64>, String)> {
        let environment: Vec<Value> =
            VARIABLES.iter().zip(["shop", "cart-api-12", "2"]).map(|(name, value)| json!({"name": name, "value": value})).collect();
        let detail = json!({
            "taskArn": "arn:aws:ecs:eu-central-1:1:task/main/8f", "lastStatus": "STOPPED", "desiredStatus": "STOPPED", "version": 5,
            "stoppedReason": "Essential container in task exited",
            "containers": [{"name": "proxy", "exitCode": 137}, container],
            "overrides": {"containerOverrides": [{"name": "proxy"}, {"name": "deploy", "environment": environment}]},
        });
        let ((of, n, attempt), became) = task(&detail)?;
        assert_eq!((of.name.as_str(), n, attempt), ("cart-api", 12, 2));
        let Became::Ended(exit, why) = became else { return None };
        Some((exit, why))
    }

    #[test]
    fn the_container_that_deploys_tells_how_a_task_ended() {
        let well = stopped(json!({"name": "deploy", "exitCode": 0})).unwrap();
        assert_eq!(well, (Some(0), "Essential container in task exited".into()));
        let never = stopped(json!({"name": "deploy", "reason": "CannotPullContainerError: not found"})).unwrap();
        assert_eq!(never, (None, "Essential container in task exited: CannotPullContainerError: not found".into()));
        assert_eq!(stopped(json!({"name": "other", "exitCode": 0})).unwrap().0, None);
    }

    #[test]
    fn tasks_of_others_are_not_ours() {
        let task_of = |overrides: Value| task(&json!({"lastStatus": "STOPPED", "overrides": overrides}));
        assert_eq!(task_of(json!({"containerOverrides": [{"name": "app"}]})), None);
        assert_eq!(task_of(json!({})), None);
        assert_eq!(attempt(&json!([{"name": "DEPLOYMENT_NAME", "value": "cart"}])), None);
    }
}
