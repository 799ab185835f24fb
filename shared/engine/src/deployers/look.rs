//! Reads what the targets of an idle config serve.

use super::drift::{self, Deployed};
use super::{Deployers, aliases};
use crate::aliases::Aliases;
use crate::deployments::Address;
use crate::metrics::Metrics;
use crate::ports::{PortError, Ports};
use crate::protocol::Handled;
use crate::protocol::work::{Claim, Work};
use crate::runners::Runners;
use keelway_domain::deployments::checkpoint::Stage;
use keelway_domain::deployments::rights::Rights;
use keelway_domain::deployments::{Config, Sight};
use keelway_domain::time::Timestamp;

pub(super) struct Look<'a, P, C, M> {
    pub on: &'a Deployers<P, C, M>,
    pub of: &'a Address,
    pub n: u64,
    pub at: Timestamp,
}

impl<P: Ports, C: Aliases + Runners, M: Metrics> Work for Look<'_, P, C, M> {
    type Found = Config;
    type Task = (Deployed, Rights);
    type Outcome = Sight;

    async fn find(&self) -> Result<Option<Config>, PortError> {
        self.on.state(self.of).await
    }

    /// A look needs no claim: its result counts only for the version that was looked at.
    async fn claim(&self, x: &Config) -> Result<Claim<Self::Task>, PortError> {
        let rests = x.in_flight().is_none() && x.active.as_ref().is_some_and(|active| active.n == self.n);
        if !rests {
            return Ok(Claim::Unwanted);
        }
        let Some(deployed) = Deployed::active(&self.on.engine, self.of, x).await? else { return Ok(Claim::Unwanted) };
        Ok(match self.on.rights(self.of, &deployed.definition, Stage::Look).await? {
            Ok(rights) => Claim::Mine((deployed, rights)),
            Err(why) => {
                tracing::warn!(config = %self.of, why, "what the targets serve may not be looked at");
                Claim::Unwanted
            }
        })
    }

    async fn outside(&self, x: &Config, (deployed, rights): &Self::Task) -> Result<Option<Sight>, PortError> {
        let seen = aliases::see(&self.on.cloud, &deployed.definition, rights).await;
        drift::at_rest(deployed, x, self.at, seen)
    }

    async fn tell(&self, _: &Config, _: Self::Task, sight: Sight) -> Result<Handled, PortError> {
        self.on.engine.saw(self.of, sight).await?;
        Ok(Handled::Settled)
    }
}
