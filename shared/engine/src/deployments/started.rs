//! Notices about the tasks and builds that Keelway started and waits for. They arrive at least once and in any order, and concern
//! all tasks and builds of the account: those that belong to no present deployment are ignored. The deployers also ask for the
//! state now and then, because a notice may be lost.
//!
//! Only the claim that Keelway made for it counts, and only the task or build that was started for this claim.

use super::Deployments;
use crate::ports::{PortError, Ports};
use crate::protocol::Handled;
use keelway_domain::deployments::notice::Run;
use keelway_domain::deployments::runner::Started;
use keelway_domain::deployments::{Deployment, Progress, Reply, SOURCE};

impl<P: Ports> Deployments<P> {
    /// Handles the notice that a task or build runs or has ended.
    pub(super) async fn ran(&self, run: &Run) -> Result<Handled, PortError> {
        let Some(x) = self.states(std::slice::from_ref(&run.of)).await?.into_iter().next().flatten() else {
            return Ok(Handled::Stale);
        };
        let present = |d: &&Deployment| (d.n, d.attempt) == (run.n, run.attempt) && d.report.is_none();
        let Some(d) = x.in_flight().filter(present) else { return Ok(Handled::Stale) };
        let Some(claim) = d.claim.as_ref().filter(|claim| claim.by == SOURCE) else { return Ok(Handled::Stale) };
        let checkpoint = match Started::of(d) {
            Some(known) if known.arn != run.arn => return Ok(Handled::Stale),
            // The checkpoint stays.
            Some(_) => String::new(),
            // Stored before the start is confirmed, so that another task is not taken for this one.
            None => Started { arn: run.arn.clone(), ..Started::default() }.text(),
        };
        let progress = Progress { checkpoint, log: run.log.clone(), ..Progress::default() };
        let call = run.became.clone().call(claim.token.clone(), progress);
        Ok(match self.say(&run.of, run.n, &call).await?.reply {
            Reply::Desired(_) => Handled::Committed,
            Reply::Refused(_) => Handled::Stale,
        })
    }
}
