//! What ECS and CodeBuild tell about the tasks and builds that Keelway started and waits for. They tell it at least once and in any
//! order, and to everybody: what belongs to no deployment, or not any more, is ignored. Whoever started the task or build also asks
//! for its state now and then, because an event may be lost.
//!
//! A task or build says in its environment which attempt it carries out. Only the claim that Keelway made for it counts, and only
//! the task or build that was started for this claim.

use super::{Address, Deployments};
use crate::ports::{PortError, Ports};
use crate::protocol::Handled;
use crate::starters::Runner;
use keelway_domain::deployments::{Call, Deployment, Progress, Reply, SOURCE};
use keelway_domain::event::CloudEvent;
use keelway_domain::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The variables that say which attempt it is.
pub const VARIABLES: [&str; 3] = ["DEPLOYMENT_NAMESPACE", "DEPLOYMENT_NAME", "DEPLOYMENT_ATTEMPT"];

/// The claim of a task or build is held for so long after each sign of life. Longer than the pause between two looks: when it ends,
/// the message of the next look was lost, and the engine sends another one.
pub const LEASE: Span = Span::minutes(17);

/// What is kept of a task or build as the checkpoint of its deployment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// Its ARN.
    pub arn: String,
    /// When its state is asked for next. Jobs for an earlier time have been done.
    #[serde(default)]
    pub at: Timestamp,
    /// How often its state was asked for since it was started, or told to stop.
    #[serde(default)]
    pub looks: u32,
    /// It was told to stop.
    #[serde(default)]
    pub stopped: bool,
}

impl Started {
    /// The task or build that was started for an attempt, if that is known.
    pub fn of(d: &Deployment) -> Option<Self> {
        serde_json::from_str(&d.progress.checkpoint).ok()
    }

    /// As it is kept.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Whether it is to stop, and was not told so.
    pub fn is_news(&self, d: &Deployment) -> bool {
        d.cancel.is_some() && !self.stopped
    }
}

/// What became of a task or build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Became {
    /// It is at work.
    Runs,
    /// It has ended, with an exit code if it ever ran.
    Ended(Option<i64>, String),
}

/// What ECS or CodeBuild answers when it is asked for a task or build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// It is not known: not yet, or not any more.
    Missing,
    /// It does not run yet.
    Waits,
    /// What became of it, and where its log is.
    Became(Became, String),
}

impl Look {
    /// From the answer of `DescribeTasks` or `BatchGetBuilds` about one task or build.
    pub fn read(runner: Runner, answer: &Value) -> Self {
        let list = match runner {
            Runner::Ecs => "tasks",
            Runner::CodeBuild => "builds",
        };
        let Some(found) = answer[list].get(0) else { return Self::Missing };
        let seen = match runner {
            Runner::Ecs => task(found).map(|seen| (seen.became, seen.log)),
            Runner::CodeBuild => {
                became(text(found, "buildStatus")).map(|became| (became, text(&found["logs"], "deepLink").to_owned()))
            }
        };
        seen.map_or(Self::Waits, |(became, log)| Self::Became(became, log))
    }
}

impl Became {
    /// What is said of it to the deployment. `progress` tells the rest.
    pub fn call(self, token: String, progress: Progress) -> Call {
        match self {
            Self::Runs => Call::Heartbeat { token, running: true, lease: LEASE, progress },
            Self::Ended(exit, message) => Call::End { token, exit, message, progress },
        }
    }
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

/// A task of ECS: `detail` of "ECS Task State Change", or as `DescribeTasks` shows it.
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
    let became = became(text(detail, "build-status"))?;
    let log = text(&more["logs"], "deep-link").to_owned();
    Some(Seen { of, n, attempt, arn: text(detail, "build-id").to_owned(), became, log })
}

/// The status of a build.
fn became(status: &str) -> Option<Became> {
    Some(match status {
        "IN_PROGRESS" => Became::Runs,
        "SUCCEEDED" => Became::Ended(Some(0), String::new()),
        "FAILED" | "FAULT" | "TIMED_OUT" | "STOPPED" => Became::Ended(Some(1), format!("the build ended with {status}")),
        _ => return None,
    })
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
        let checkpoint = match Started::of(d) {
            Some(known) if known.arn != seen.arn => return Ok(Handled::Stale),
            // It keeps what it has.
            Some(_) => String::new(),
            // Kept before it is known that it was started, so that another one is not taken for it.
            None => Started { arn: seen.arn, ..Started::default() }.text(),
        };
        let progress = Progress { checkpoint, log: seen.log, ..Progress::default() };
        let call = seen.became.call(claim.token.clone(), progress);
        Ok(match self.say(&seen.of, seen.n, &call).await?.reply {
            Reply::Desired(_) => Handled::Committed,
            Reply::Refused(_) => Handled::Stale,
        })
    }
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

    #[test]
    fn answers_about_a_build() {
        let build = |status: &str| json!({"builds": [{"arn": "a", "buildStatus": status, "logs": {"deepLink": "https://log"}}]});
        let look = |answer: Value| Look::read(Runner::CodeBuild, &answer);
        assert_eq!(look(build("SUCCEEDED")), Look::Became(Became::Ended(Some(0), String::new()), "https://log".into()));
        assert_eq!(look(build("IN_PROGRESS")), Look::Became(Became::Runs, "https://log".into()));
        assert_eq!(look(json!({"builds": [], "buildsNotFound": ["deploy:1"]})), Look::Missing);
    }
}
