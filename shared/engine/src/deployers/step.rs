//! A deployment while one of its steps is taken.

use super::aliases::Seen;
use crate::deployments::Address;
use crate::ports::PortError;
use keelway_domain::deployments::checkpoint::{Checkpoint, Stage};
use keelway_domain::deployments::definition::{Definition, Target};
use keelway_domain::deployments::rights::Rights;
use keelway_domain::deployments::{Config, Deployment, Progress, Status, TargetProgress, WHOLE, plan};
use keelway_domain::time::Timestamp;

/// The result of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    /// Complete: the next step follows.
    Go,
    /// It must be repeated, for this reason.
    Again(String),
    /// It must be repeated until the deadline of the deployment, for this reason.
    Patiently(String),
    /// More of it follows at the time that the checkpoint says.
    Wait,
    /// The deployment fails, for this reason.
    Fail(String),
}

/// A failed request: temporary, or final with the message of the service.
impl From<PortError> for Done {
    fn from(error: PortError) -> Self {
        if error.passes() { Self::Again(error.to_string()) } else { Self::Fail(error.to_string()) }
    }
}

/// A deployment while one of its steps is taken.
#[derive(Clone)]
pub struct Step {
    /// The deployment config.
    pub of: Address,
    /// The deployment in its present state.
    pub deployment: Deployment,
    /// The name of the version.
    pub name: String,
    /// The definition that it deploys.
    pub definition: Definition,
    /// Whether no version of this config was ever complete.
    pub first: bool,
    /// The checkpoint.
    pub point: Checkpoint,
    /// The progress to be reported.
    pub progress: Progress,
    /// When the step began.
    pub now: Timestamp,
    /// The aliases before the step, if it needs them.
    pub seen: Seen,
    /// The resources that the step may use.
    pub rights: Rights,
}

impl Step {
    /// The work in the state of a config.
    pub fn new(
        of: &Address,
        (x, deployment): (&Config, &Deployment),
        definition: Definition,
        (now, seen, rights): (Timestamp, Seen, Rights),
    ) -> Self {
        Self {
            of: of.clone(),
            deployment: deployment.clone(),
            name: x.version_name(deployment.n),
            definition,
            first: x.active.is_none(),
            point: Checkpoint::of(deployment),
            progress: Progress { tail: deployment.progress.tail.clone(), ..Progress::default() },
            now,
            seen,
            rights,
        }
    }

    /// Whether all requests go to the new version at once: nothing of this config is deployed yet, so there is nothing to compare
    /// with; or it is a rollback, and the present version must go.
    pub fn at_once(&self) -> bool {
        self.first || self.goes_back()
    }

    /// Whether it is a rollback that does not take the steps of the strategy.
    pub fn goes_back(&self) -> bool {
        self.deployment.rollback.as_ref().is_some_and(|rollback| !rollback.by_steps)
    }

    /// Whether the new version has the share of the requests that was asked for, if another stage follows.
    pub fn goes_so_far(&self, next: Stage) -> bool {
        let until = self.deployment.part.as_ref().map_or(WHOLE, |part| part.until);
        plan::goes_so_far(&plan::weights(&self.definition.strategy, self.at_once()), until, self.point.stage, next)
    }

    /// Reports a sentence, and adds it to the log.
    pub fn tell(&mut self, message: impl Into<String>) {
        let message = message.into();
        if !self.progress.tail.ends_with(&format!(" {message}\n")) {
            self.progress.tail.push_str(&format!("{} {message}\n", self.now.rfc3339()));
        }
        self.progress.message = message;
    }

    /// Reports the status of a target.
    pub fn tell_target(&mut self, target: &Target, status: Status, message: impl Into<String>) {
        self.progress.targets.insert(target.name.clone(), TargetProgress { status, message: message.into() });
    }
}
