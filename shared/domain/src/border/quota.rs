//! How much of what all projects share one of them may have.

use serde::{Deserialize, Serialize};

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counted {
    /// Webhook subscriptions.
    Webhooks,
    /// Registrations of executors.
    Integrations,
    /// Pipelines.
    Pipelines,
    /// Deployment configs.
    DeploymentConfigs,
    /// Schedules.
    Schedules,
}

impl Counted {
    /// The member of a policy's `quotas`.
    pub fn field(self) -> &'static str {
        match self {
            Counted::Webhooks => "webhooks",
            Counted::Integrations => "integrations",
            Counted::Pipelines => "pipelines",
            Counted::DeploymentConfigs => "deploymentConfigs",
            Counted::Schedules => "schedules",
        }
    }

    /// Many of them, in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Counted::Webhooks => "webhook subscriptions",
            Counted::Integrations => "registered executors",
            Counted::Pipelines => "pipelines",
            Counted::DeploymentConfigs => "deployment configs",
            Counted::Schedules => "schedules",
        }
    }
}

/// How much of each a project may have. What is absent is the default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Quotas {
    /// Webhook subscriptions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhooks: Option<u32>,
    /// Registrations of executors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub integrations: Option<u32>,
    /// Pipelines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pipelines: Option<u32>,
    /// Deployment configs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment_configs: Option<u32>,
    /// Schedules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedules: Option<u32>,
}

/// A project would have more than its quota.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "project {project} has {has} {words}, and {field} of its quotas is {most}: delete one, or have an administrator of the installation raise \
     spec.policy.quotas.{field} of the manifest of kind Project {project}",
    words = .counted.words(), field = .counted.field()
)]
pub struct Exceeded {
    /// The project.
    pub project: String,
    /// Of what.
    pub counted: Counted,
    /// How many it has.
    pub has: usize,
    /// How many it may have.
    pub most: usize,
}

impl Quotas {
    /// How many a project may have. Of webhook subscriptions, a quarter of what the installation takes, unless the policy says otherwise.
    pub fn most(&self, of: Counted) -> usize {
        let most = match of {
            Counted::Webhooks => self.webhooks.unwrap_or(50),
            Counted::Integrations => self.integrations.unwrap_or(250),
            Counted::Pipelines => self.pipelines.unwrap_or(500),
            Counted::DeploymentConfigs => self.deployment_configs.unwrap_or(500),
            Counted::Schedules => self.schedules.unwrap_or(200),
        };
        most as usize
    }

    /// Lets a project that has some have so many more.
    ///
    /// # Errors
    /// What there is, and who can raise the quota.
    pub fn check(&self, project: &str, counted: Counted, (has, more): (usize, usize)) -> Result<(), Exceeded> {
        let most = self.most(counted);
        if has + more <= most { Ok(()) } else { Err(Exceeded { project: project.to_owned(), counted, has, most }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_says_what_there_is_and_who_can_raise_it() {
        let quotas = Quotas { webhooks: Some(2), ..Quotas::default() };
        for (has, more, fine) in [(0, 2, true), (1, 1, true), (1, 2, false), (2, 1, false), (9, 1, false)] {
            assert_eq!(quotas.check("shop", Counted::Webhooks, (has, more)).is_ok(), fine, "{has} {more}");
        }
        assert!(
            quotas.check("shop", Counted::Schedules, (199, 1)).is_ok()
                && quotas.check("shop", Counted::Schedules, (200, 1)).is_err()
        );
        assert_eq!(
            quotas.check("shop", Counted::Webhooks, (2, 1)).unwrap_err().to_string(),
            "project shop has 2 webhook subscriptions, and webhooks of its quotas is 2: delete one, or have an administrator of the \
             installation raise spec.policy.quotas.webhooks of the manifest of kind Project shop"
        );
    }
}
