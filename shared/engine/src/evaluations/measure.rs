//! Asks the source of an evaluation for its values, and tells them to the evaluation.

use super::{Evaluations, Turn, keys};
use crate::metrics::Metrics;
use crate::ports::{PortError, Ports};
use crate::protocol::work::{Claim, Work};
use crate::protocol::{Handled, Loaded, run, settle};
use keelway_domain::cause::Cause;
use keelway_domain::evaluation::{Measured, Objectives, Place};
use keelway_domain::evaluations::{Found, Input, Lost, Open, Phase, Service};
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) struct Measure<'a, P, M> {
    pub on: &'a Evaluations<P, M>,
    pub to: &'a [String; 3],
    pub id: &'a str,
    pub attempt: u32,
    pub cause: Cause,
}

impl<P: Ports, M: Metrics> Work for Measure<'_, P, M> {
    type Found = Service;
    type Task = Open;
    type Outcome = Result<Vec<Measured>, Lost>;

    async fn find(&self) -> Result<Option<Service>, PortError> {
        let item = self.on.ports.get(&keys::service(self.to)).await?;
        Ok(item.as_ref().map(Loaded::<Service>::read).transpose()?.map(|found| found.x))
    }

    /// Asking changes nothing outside, so it needs no claim: of two answers to one order, the first counts.
    async fn claim(&self, x: &Service) -> Result<Claim<Open>, PortError> {
        let ordered = |open: &&Open| matches!(&open.phase, Phase::Measuring { attempt, .. } if *attempt == self.attempt);
        Ok(x.open(self.id).filter(ordered).map_or(Claim::Unwanted, |open| Claim::Mine(open.clone())))
    }

    async fn outside(&self, _: &Service, open: &Open) -> Result<Option<Self::Outcome>, PortError> {
        self.values(open).await.map(Some)
    }

    async fn tell(&self, _: &Service, _: Open, outcome: Self::Outcome) -> Result<Handled, PortError> {
        let input = Input::Measured { id: self.id, attempt: self.attempt, outcome: &outcome };
        run(self.on, self.cause, &Turn { to: self.to, input, found: &Found::Nothing, awaited: None, cause: self.cause }).await
    }

    /// Whoever told the values may have stopped before it published what they came to.
    async fn owed(&self, x: &Service) -> Result<(), PortError> {
        settle(self.on, x, self.cause).await
    }
}

impl<P: Ports, M: Metrics> Measure<'_, P, M> {
    async fn values(&self, open: &Open) -> Result<Result<Vec<Measured>, Lost>, PortError> {
        let namespace = &self.to[0];
        let files = self.on.files(self.to, open.revision.as_deref());
        let slo = match files.objectives().await?.0 {
            Objectives::Read(slo) => slo,
            Objectives::Unreadable(why) => return Ok(Err(Lost::Refused(why))),
            Objectives::Missing => return Ok(Err(Lost::Refused("the objectives have expired: keep resources for longer".into()))),
        };
        let asking = match self.on.asking(&files, (namespace, &open.provider)).await? {
            Ok(asking) => asking,
            Err(why) => return Ok(Err(Lost::Refused(why))),
        };
        let place = place(self.to, open, slo.filter.clone());
        asking.values(slo.indicators(), &place, open.period).await
    }
}

/// What queries may name.
fn place([project, stage, service]: &[String; 3], open: &Open, filter: BTreeMap<String, String>) -> Place {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Place {
        project: project.clone(),
        stage: stage.clone(),
        service: service.clone(),
        deployment: open.deployment.clone(),
        labels: open.labels.iter().map(|(name, value)| (name.clone(), text(value))).collect(),
        filter,
        milliseconds: (open.period.end - open.period.start).0,
        ..Place::default()
    }
}
