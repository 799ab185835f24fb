//! A deployment while one of its steps is taken.

use super::aliases::Seen;
use crate::deployments::Address;
use crate::ports::PortError;
use keelway_domain::deployments::checkpoint::{Checkpoint, Stage};
use keelway_domain::deployments::definition::{Definition, Target};
use keelway_domain::deployments::rights::Rights;
use keelway_domain::deployments::{Config, Deployment, Progress, Status, TargetProgress, WHOLE, plan};
use keelway_domain::time::Timestamp;

/// What became of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    /// It is done: the next one follows.
    Go,
    /// It has to be tried again, and why.
    Again(String),
    /// It has to be tried again for as long as the deployment may take.
    Patiently(String),
    /// The deployment fails.
    Fail(String),
}

/// A request that failed: for now, or for good with what the service said.
impl From<PortError> for Done {
    fn from(error: PortError) -> Self {
        if error.passes() { Self::Again(error.to_string()) } else { Self::Fail(error.to_string()) }
    }
}

/// A deployment while one of its steps is taken.
#[derive(Clone)]
pub struct Step {
    /// Of which config.
    pub of: Address,
    /// Which version, as it is now.
    pub deployment: Deployment,
    /// The version's name.
    pub name: String,
    /// What it deploys, and how.
    pub definition: Definition,
    /// Nothing of this config was ever complete.
    pub first: bool,
    /// Where it is.
    pub point: Checkpoint,
    /// What is told.
    pub progress: Progress,
    /// When the step began.
    pub now: Timestamp,
    /// The aliases before that, if the step needs them.
    pub seen: Seen,
    /// What the step may use.
    pub rights: Rights,
}

impl Step {
    /// As the config says it is.
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

    /// Whether all requests go to the new version at once: nothing of this config is deployed yet, so nobody compares it with
    /// anything; or what it goes back to was deployed before, and what is deployed is to be gone.
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

    /// Tells a sentence, and keeps it in the log.
    pub fn tell(&mut self, message: impl Into<String>) {
        let message = message.into();
        if !self.progress.tail.ends_with(&format!(" {message}\n")) {
            self.progress.tail.push_str(&format!("{} {message}\n", self.now.rfc3339()));
        }
        self.progress.message = message;
    }

    /// Tells where a target is.
    pub fn tell_target(&mut self, target: &Target, status: Status, message: impl Into<String>) {
        self.progress.targets.insert(target.name.clone(), TargetProgress { status, message: message.into() });
    }
}
