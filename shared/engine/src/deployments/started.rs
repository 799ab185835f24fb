//! What ECS and CodeBuild tell about the tasks and builds that Keelway started and waits for. They tell it at least once and in any order, and
//! to everybody: what belongs to no deployment, or not any more, is ignored.
//!
//! A task or build says in its environment which attempt it carries out. Only the claim that Keelway made for it counts, and only the task or
//! build that was started for this claim.

use super::{Address, Deployments};
use crate::ports::{PortError, Ports};
use crate::protocol::Handled;
use keelway_domain::deployments::{Call, Deployment, LEASE_MOST, Progress, Reply, SOURCE};
use keelway_domain::event::CloudEvent;
use serde_json::{Value, json};

/// The variables that say which attempt it is.
pub const VARIABLES: [&str; 3] = ["DEPLOYMENT_NAMESPACE", "DEPLOYMENT_NAME", "DEPLOYMENT_ATTEMPT"];

/// What is kept of a task or build as the checkpoint of its deployment.
pub fn checkpoint(arn: &str) -> String {
    json!({ "arn": arn }).to_string()
}

/// The ARN of the task or build that was started for an attempt, if that is known.
pub fn arn(d: &Deployment) -> Option<String> {
    let kept: Value = serde_json::from_str(&d.progress.checkpoint).ok()?;
    kept["arn"].as_str().map(str::to_owned)
}

/// What became of a task or build.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Became {
    /// It is at work.
    Runs,
    /// It has ended, with an exit code if it ever ran.
    Ended(Option<i64>, String),
}

/// A task or build, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    of: Address,
    n: u64,
    attempt: u32,
    arn: String,
    became: Became,
    log: String,
}

fn text<'a>(of: &'a Value, name: &str) -> &'a str {
    of[name].as_str().unwrap_or_default()
}

/// The attempt that an environment names.
fn attempt(environment: &Value) -> Option<(Address, u64, u32)> {
    let value = |wanted: &str| {
        let variables = environment.as_array()?;
        variables.iter().find(|variable| text(variable, "name") == wanted).map(|variable| text(variable, "value"))
    };
    let [namespace, name, attempt] = VARIABLES.map(value);
    let (config, n) = name?.rsplit_once('-')?;
    let of = Address { namespace: namespace?.to_owned(), name: config.to_owned() };
    Some((of, n.parse().ok()?, attempt?.parse().ok()?))
}

/// A task of ECS: `detail` of "ECS Task State Change".
fn task(detail: &Value) -> Option<Seen> {
    let overrides = detail["overrides"]["containerOverrides"].as_array()?;
    let (container, (of, n, attempt)) =
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
    Some(Seen { of, n, attempt, arn: text(detail, "taskArn").to_owned(), became, log: String::new() })
}

/// A build of CodeBuild: `detail` of "CodeBuild Build State Change".
fn build(detail: &Value) -> Option<Seen> {
    let more = &detail["additional-information"];
    let (of, n, attempt) = attempt(&more["environment"]["environment-variables"])?;
    let became = match text(detail, "build-status") {
        "IN_PROGRESS" => Became::Runs,
        "SUCCEEDED" => Became::Ended(Some(0), String::new()),
        status @ ("FAILED" | "FAULT" | "TIMED_OUT" | "STOPPED") => Became::Ended(Some(1), format!("the build ended with {status}")),
        _ => return None,
    };
    let log = text(&more["logs"], "deep-link").to_owned();
    Some(Seen { of, n, attempt, arn: text(detail, "build-id").to_owned(), became, log })
}

impl<P: Ports> Deployments<P> {
    /// An event of ECS or CodeBuild.
    pub(super) async fn started(&self, event: &CloudEvent) -> Result<Handled, PortError> {
        let detail = Value::Object(event.data.clone());
        let seen = match event.ty.as_str() {
            "ECS Task State Change" => task(&detail),
            "CodeBuild Build State Change" => build(&detail),
            _ => None,
        };
        let Some(seen) = seen else { return Ok(Handled::Recorded) };
        let Some(x) = self.states(std::slice::from_ref(&seen.of)).await?.into_iter().next().flatten() else {
            return Ok(Handled::Stale);
        };
        let present = |d: &&Deployment| (d.n, d.attempt) == (seen.n, seen.attempt) && d.report.is_none();
        let Some(d) = x.in_flight().filter(present) else { return Ok(Handled::Stale) };
        let Some(claim) = d.claim.as_ref().filter(|claim| claim.by == SOURCE) else { return Ok(Handled::Stale) };
        if arn(d).is_some_and(|known| known != seen.arn) {
            return Ok(Handled::Stale);
        }
        // Kept before it is known that it was started, so that another one is not taken for it.
        let progress = Progress { checkpoint: checkpoint(&seen.arn), log: seen.log, ..Progress::default() };
        let token = claim.token.clone();
        let call = match seen.became {
            Became::Runs => Call::Heartbeat { token, running: true, lease: LEASE_MOST, progress },
            Became::Ended(exit, message) => Call::End { token, exit, message, progress },
        };
        Ok(match self.say(&seen.of, seen.n, &call).await?.reply {
            Reply::Desired(_) => Handled::Committed,
            Reply::Refused(_) => Handled::Stale,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stopped(container: Value) -> Option<(Option<i64>, String)> {
        let environment: Vec<Value> =
            VARIABLES.iter().zip(["shop", "cart-api-12", "2"]).map(|(name, value)| json!({"name": name, "value": value})).collect();
        let detail = json!({
            "taskArn": "arn:aws:ecs:eu-central-1:1:task/main/8f", "lastStatus": "STOPPED", "desiredStatus": "STOPPED", "version": 5,
            "stoppedReason": "Essential container in task exited",
            "containers": [{"name": "proxy", "exitCode": 137}, container],
            "overrides": {"containerOverrides": [{"name": "proxy"}, {"name": "deploy", "environment": environment}]},
        });
        let seen = task(&detail)?;
        assert_eq!((seen.of.name.as_str(), seen.n, seen.attempt), ("cart-api", 12, 2));
        let Became::Ended(exit, why) = seen.became else { return None };
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
    fn tasks_and_builds_of_others_are_not_ours() {
        let task_of = |overrides: Value| task(&json!({"lastStatus": "STOPPED", "overrides": overrides}));
        assert_eq!(task_of(json!({"containerOverrides": [{"name": "app"}]})), None);
        assert_eq!(task_of(json!({})), None);
        assert_eq!(build(&json!({"build-status": "FAILED", "additional-information": {"environment": {}}})), None);
        assert_eq!(attempt(&json!([{"name": "DEPLOYMENT_NAME", "value": "cart"}])), None);
    }
}
