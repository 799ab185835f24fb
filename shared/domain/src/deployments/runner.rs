//! Tasks and builds that Keelway starts, so that they carry a deployment out.

use super::deployment::{Deployment, Progress};
use super::facts::Call;
use crate::address::Address;
use crate::ids::hash64;
use crate::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

/// The variables that tell a task or build which attempt it carries out.
pub const VARIABLES: [&str; 3] = ["DEPLOYMENT_NAMESPACE", "DEPLOYMENT_NAME", "DEPLOYMENT_ATTEMPT"];
/// The one that tells it where Keelway's API is.
const CALLBACK: &str = "DEPLOYMENT_CALLBACK";
/// The claim of a task or build is held for so long after each sign of life. Longer than the pause between two looks: when it ends,
/// the message of the next look was lost, and the engine sends another one.
pub const LEASE: Span = Span::minutes(17);
/// The longest token that those who run them take, in characters.
const MAX_TOKEN: usize = 64;

/// The attempt that a task or build carries out.
#[derive(Debug, Clone, Copy)]
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

impl Which<'_> {
    /// `<config>-<n>-<attempt>`.
    pub fn name(&self) -> String {
        format!("{}-{}-{}", self.of.name, self.n, self.attempt)
    }

    /// What is started twice with one token is the same. The name, cut to fit, and a hash of everything: configs of two namespaces
    /// may have one name.
    pub fn token(&self) -> String {
        let hash = hash64(&[self.of.namespace.as_bytes(), self.name().as_bytes()]);
        let rest = format!("-{}-{}-{hash:016x}", self.n, self.attempt);
        let name: String = self.of.name.chars().take(MAX_TOKEN.saturating_sub(rest.len())).collect();
        format!("{name}{rest}")
    }

    /// The variables that it gets.
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

/// What is kept of a task or build as the checkpoint of its deployment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// Its name where it runs: an ARN.
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Became {
    /// It is at work.
    Runs,
    /// It has ended, with an exit code if it ever ran, and why.
    Ended(Option<i64>, String),
}

/// What is known of a task or build when it is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// Nothing: not yet, or not any more.
    Missing,
    /// It does not run yet.
    Waits,
    /// What became of it, and where its log is.
    Became(Became, String),
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
