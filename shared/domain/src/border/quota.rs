//! Quotas: a project's share of what all projects have in common.

#![expect(missing_docs, reason = "names that say what they are need no documentation")]

use serde::{Deserialize, Serialize};

/// A kind of definition that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counted {
    Webhooks,
    /// Registrations of executors.
    Integrations,
    Pipelines,
    DeploymentConfigs,
    Schedules,
}

impl Counted {
    /// The field of the kind in a policy's `quotas`.
    pub fn field(self) -> &'static str {
        match self {
            Counted::Webhooks => "webhooks",
            Counted::Integrations => "integrations",
            Counted::Pipelines => "pipelines",
            Counted::DeploymentConfigs => "deploymentConfigs",
            Counted::Schedules => "schedules",
        }
    }

    /// The plural of the kind, for messages.
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

/// The limits of a project. An absent limit has its default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Quotas {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhooks: Option<u32>,
    /// Registrations of executors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub integrations: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pipelines: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment_configs: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedules: Option<u32>,
}

/// The error of a project that would exceed a quota.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "project {project} has {has} {words}, and {field} of its quotas is {most}: delete one, or have an administrator of the installation raise \
     spec.policy.quotas.{field} of the manifest of kind Project {project}",
    words = .counted.words(), field = .counted.field()
)]
pub struct Exceeded {
    pub project: String,
    pub counted: Counted,
    /// The present number.
    pub has: usize,
    /// The limit.
    pub most: usize,
}

impl Quotas {
    /// The limit of a project. The default for webhook subscriptions is a quarter of the installation's maximum.
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

    /// Checks that a project with `has` definitions may have `more`.
    ///
    /// # Errors
    /// The present number, the limit, and who can raise it.
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
