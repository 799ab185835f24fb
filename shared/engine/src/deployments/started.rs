//! What is told about the tasks and builds that Keelway started and waits for. It is told at least once and in any order, and to
//! everybody: what belongs to no deployment, or not any more, is passed over. Whoever started the task or build also asks for its
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
    /// A task or build runs, or has ended.
    pub(super) async fn ran(&self, run: &Run) -> Result<Handled, PortError> {
        let Some(x) = self.states(std::slice::from_ref(&run.of)).await?.into_iter().next().flatten() else {
            return Ok(Handled::Stale);
        };
        let present = |d: &&Deployment| (d.n, d.attempt) == (run.n, run.attempt) && d.report.is_none();
        let Some(d) = x.in_flight().filter(present) else { return Ok(Handled::Stale) };
        let Some(claim) = d.claim.as_ref().filter(|claim| claim.by == SOURCE) else { return Ok(Handled::Stale) };
        let checkpoint = match Started::of(d) {
            Some(known) if known.arn != run.arn => return Ok(Handled::Stale),
            // It keeps what it has.
            Some(_) => String::new(),
            // Kept before it is known that it was started, so that another one is not taken for it.
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
