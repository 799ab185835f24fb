//! Whether an administrator of the installation applied a definition.

use crate::deployments::definition::Definition as Config;
use crate::deployments::registry::ArtifactSource;
use crate::evaluation::MetricsSource;
use crate::promotions::definition::Definition as Pipeline;
use crate::promotions::registry::{Cluster, GitHost};
use crate::schedules::Spec as Schedule;
use crate::webhooks::Subscription;

/// A definition that may name resources of the installation. Whether it is vouched for depends on who applies it, never on the
/// manifest.
pub trait Vouched: Clone + PartialEq {
    /// Whether an administrator of the installation applied it.
    fn vouched(&self) -> bool;
    /// Sets whether an administrator of the installation applied it.
    fn vouch(&mut self, vouched: bool);

    /// Whether two definitions have the same content, whoever applied them.
    fn says(&self, other: &Self) -> bool {
        let mut same = self.clone();
        same.vouch(other.vouched());
        same == *other
    }

    /// The new definition with the right vouch. A vouch covers the content of a definition: applying the same content again keeps
    /// it, and a changed definition does not inherit it.
    #[must_use]
    fn in_place_of(&self, old: Option<&Self>) -> Self {
        let mut new = self.clone();
        new.vouch(self.vouched() || old.is_some_and(|old| old.vouched() && self.says(old)));
        new
    }
}

macro_rules! vouched {
    ($($type:ty),*) => {$(
        impl Vouched for $type {
            fn vouched(&self) -> bool {
                self.vouched
            }
            fn vouch(&mut self, vouched: bool) {
                self.vouched = vouched;
            }
        }
    )*};
}

vouched!(Config, Pipeline, Cluster, ArtifactSource, MetricsSource);

/// Only administrators of the installation may apply git hosts.
impl Vouched for GitHost {
    fn vouched(&self) -> bool {
        true
    }
    fn vouch(&mut self, _: bool) {}
}

/// Subscriptions do not name resources of the installation.
impl Vouched for Subscription {
    fn vouched(&self) -> bool {
        false
    }
    fn vouch(&mut self, _: bool) {}
}

/// Schedules name nothing of the installation's, either.
impl Vouched for Schedule {
    fn vouched(&self) -> bool {
        false
    }
    fn vouch(&mut self, _: bool) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(server: &str, vouched: bool) -> Cluster {
        Cluster { server: server.into(), ca_data: None, secret: "s".into(), interval: None, vouched }
    }

    #[test]
    fn a_vouch_stays_with_what_it_was_given_for() {
        let (mine, vouched, other) = (cluster("https://a", false), cluster("https://a", true), cluster("https://b", false));
        assert!(!mine.in_place_of(None).vouched);
        assert!(!mine.in_place_of(Some(&mine)).vouched);
        assert!(mine.in_place_of(Some(&vouched)).vouched, "the same again");
        assert!(!other.in_place_of(Some(&vouched)).vouched, "another server");
        assert!(vouched.in_place_of(Some(&other)).vouched);
        assert!(mine.says(&vouched) && !mine.says(&other));
    }

    #[test]
    fn a_subscription_needs_nobody_to_vouch_for_it() {
        let text = r#"{"events": ["*"], "projects": ["shop"], "url": "https://hooks.test", "attempts": 3}"#;
        let hook: Subscription = serde_json::from_str(text).unwrap();
        assert!(!hook.vouched() && hook.in_place_of(None) == hook);
    }

    #[test]
    fn a_schedule_needs_nobody_to_vouch_for_it() {
        let text = r#"{"stage": "dev", "sequence": "delivery", "services": ["carts"], "concurrency": "queue",
            "when": {"cron": "0 3 * * *"}}"#;
        let schedule: Schedule = serde_json::from_str(text).unwrap();
        assert!(!schedule.vouched() && schedule.in_place_of(None) == schedule);
    }

    #[test]
    fn a_git_host_is_always_vouched_for() {
        let text = r#"{"host": "git.test", "type": "gitea", "api": "https://git.test"}"#;
        let host: GitHost = serde_json::from_str(text).unwrap();
        assert!(host.vouched() && host.in_place_of(None).vouched());
    }

    #[test]
    fn what_nobody_vouches_for_is_stored_as_before() {
        assert_eq!(serde_json::to_string(&cluster("https://a", false)).unwrap(), r#"{"server":"https://a","secret":"s"}"#);
        assert!(serde_json::from_str::<Cluster>(r#"{"server":"https://a","secret":"s","vouched":true}"#).unwrap().vouched);
    }
}
