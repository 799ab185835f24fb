//! Tasks of ECS and builds of CodeBuild that Keelway starts to carry out a deployment.

use super::deployment::{Deployment, Progress};
use super::facts::Call;
use crate::address::Address;
use crate::ids::hash64;
use crate::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

/// The variables that tell a task or build which attempt it carries out.
pub const VARIABLES: [&str; 3] = ["DEPLOYMENT_NAMESPACE", "DEPLOYMENT_NAME", "DEPLOYMENT_ATTEMPT"];
/// The variable with the address of Keelway's API.
const CALLBACK: &str = "DEPLOYMENT_CALLBACK";
/// How long a claim is valid after each sign of life of the task or build. This is longer than the pause between two looks: when
/// the claim ends, the message of the next look was lost, and the engine sends another one.
pub const LEASE: Span = Span::minutes(17);
/// The maximum length of the token of a start, in characters.
const MAX_TOKEN: usize = 64;

/// The attempt that a task or build carries out.
#[derive(Debug, Clone, Copy)]
pub struct Which<'a> {
    /// The deployment config.
    pub of: &'a Address,
    /// The number of the version.
    pub n: u64,
    /// The number of the attempt.
    pub attempt: u32,
    /// The address of the API. Empty: the task or build knows it.
    pub callback: &'a str,
}

impl Which<'_> {
    /// `<config>-<n>-<attempt>`.
    pub fn name(&self) -> String {
        format!("{}-{}-{}", self.of.name, self.n, self.attempt)
    }

    /// The idempotency token of the start: the name, shortened, and a hash of everything, because configs of two namespaces may
    /// have the same name.
    pub fn token(&self) -> String {
        let hash = hash64(&[self.of.namespace.as_bytes(), self.name().as_bytes()]);
        let rest = format!("-{}-{}-{hash:016x}", self.n, self.attempt);
        let name: String = self.of.name.chars().take(MAX_TOKEN.saturating_sub(rest.len())).collect();
        format!("{name}{rest}")
    }

    /// The environment variables of the task or build.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let [namespace, name, attempt] = VARIABLES;
        let mut variables = vec![
            (namespace, self.of.namespace.clone()),
            (name, format!("{}-{}", self.of.name, self.n)),
            (attempt, self.attempt.to_string()),
        ];
        if !self.callback.is_empty() {
            variables.push((CALLBACK, self.callback.to_owned()));
        }
        variables
    }
}

/// The checkpoint of a deployment by a task or build.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// The ARN of the task or build.
    pub arn: String,
    /// When its state is read next. Jobs for earlier times are complete.
    #[serde(default)]
    pub at: Timestamp,
    /// How often its state was read since it was started or told to stop.
    #[serde(default)]
    pub looks: u32,
    /// Whether it was told to stop.
    #[serde(default)]
    pub stopped: bool,
}

impl Started {
    /// Reads the checkpoint of a deployment, if a task or build was started for it.
    pub fn of(d: &Deployment) -> Option<Self> {
        serde_json::from_str(&d.progress.checkpoint).ok()
    }

    /// The text of the checkpoint.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Whether it must be told to stop.
    pub fn is_news(&self, d: &Deployment) -> bool {
        d.cancel.is_some() && !self.stopped
    }
}

/// The state of a task or build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Became {
    /// It runs.
    Runs,
    /// It has ended, with an exit code if it ever ran, and the reason.
    Ended(Option<i64>, String),
}

/// The answer to a request for the state of a task or build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// It is unknown: not yet known, or not any more.
    Missing,
    /// It has not begun to run.
    Waits,
    /// Its state, and the address of its log.
    Became(Became, String),
}

impl Became {
    /// The call about this state to the deployment, with this token and progress.
    pub fn call(self, token: String, progress: Progress) -> Call {
        match self {
            Self::Runs => Call::Heartbeat { token, running: true, lease: LEASE, progress },
            Self::Ended(exit, message) => Call::End { token, exit, message, progress },
        }
    }
}
