//! Quotas of integrations: an integration counts for each project that it names. One that names none counts for its owner.

use super::integrations::{Integration, Integrations};
use crate::border::Border;
use crate::ports::Ports;
use crate::refusal::Refusal;
use keelway_domain::border::{Counted, Quotas};
use std::collections::BTreeSet;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Share<'a> {
    Project(&'a str),
    Owner(&'a str),
}

fn shares(one: &Integration) -> BTreeSet<Share<'_>> {
    let projects = one.subscriptions.iter().flat_map(|of| &of.projects);
    let mut all: BTreeSet<Share<'_>> = projects.map(|project| Share::Project(project)).collect();
    if all.is_empty() {
        all.insert(Share::Owner(&one.owner));
    }
    all
}

impl<P: Ports> Integrations<'_, P> {
    /// Lets an integration take the place of `old`, if no project would have more of them than its quota. What it takes already is
    /// not counted again. Two requests at the same moment may exceed a quota by one.
    ///
    /// # Errors
    /// A quota that is exhausted.
    pub(super) async fn has_room(&self, new: &Integration, old: Option<&Integration>, all: &[Integration]) -> Result<(), Refusal> {
        let kept = old.map(shares).unwrap_or_default();
        for share in shares(new).difference(&kept) {
            let has = all.iter().filter(|one| one.id != new.id && shares(one).contains(share)).count();
            // A quota is at least one, so nothing is read for the first.
            if has == 0 {
                continue;
            }
            let (quotas, whose) = match share {
                Share::Project(name) => (Border::of(self.ports, name).await?.quotas(), *name),
                Share::Owner(_) => (Quotas::default(), ""),
            };
            quotas.check(whose, Counted::Integrations, (has, 1)).map_err(|exceeded| match share {
                Share::Project(_) => Refusal::Conflict(exceeded.to_string()),
                Share::Owner(_) => Refusal::Conflict(format!(
                    "this token has registered {has} executors that name no project, which is the most: delete one, or name projects in \
                     the subscriptions"
                )),
            })?;
        }
        Ok(())
    }
}
