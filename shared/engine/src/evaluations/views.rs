//! The evaluations of a service, for readers; and what a reader may change.

use super::{Evaluations, Loaded, codec, keys};
use crate::item::Key;
use crate::metrics::Metrics;
use crate::ports::{PortError, Ports};
use crate::protocol::Handled;
use crate::table;
use keelway_domain::cause::Cause;
use keelway_domain::evaluations::{Ended, Input, Open, Past, Service};

/// One evaluation.
#[derive(Debug, Clone, PartialEq)]
pub enum Evaluation {
    /// Under way.
    Open(Open),
    /// It has ended; its content, unless that has expired.
    Ended(Past, Option<Box<Ended>>),
}

impl<P: Ports, M: Metrics> Evaluations<P, M> {
    pub(super) async fn service(&self, place: &[String; 3]) -> Result<Option<Service>, PortError> {
        let item = self.ports.get(&keys::service(place)).await?;
        Ok(item.as_ref().map(Loaded::read).transpose()?.map(|found: Loaded| found.x))
    }

    /// The evaluations of a service in a stage, newest first: those under way, and the last ones that have ended.
    ///
    /// # Errors
    /// A port fails.
    pub async fn list(&self, place: &[String; 3]) -> Result<Vec<Evaluation>, PortError> {
        let Some(x) = self.service(place).await? else { return Ok(vec![]) };
        let wanted: Vec<Key> = x.past.iter().map(|past| keys::ended(place, (&past.id, &past.content))).collect();
        let items = table::read(&self.ports, &wanted).await?;
        let mut all: Vec<Evaluation> = x.open.into_iter().rev().map(Evaluation::Open).collect();
        for (past, key) in x.past.into_iter().zip(&wanted) {
            let ended = items.get(key).map(codec::read_ended).transpose()?.map(Box::new);
            all.push(Evaluation::Ended(past, ended));
        }
        Ok(all)
    }

    /// Takes an evaluation out of later comparisons. `Handled::Stale`: there is none with this trigger among the last ones.
    ///
    /// # Errors
    /// A port fails.
    pub async fn invalidate(&self, place: &[String; 3], id: &str) -> Result<Handled, PortError> {
        let cause = Cause::of_request(format!("invalidate {} {id}", place.join("/")).as_bytes(), self.ports.now());
        // The request may be the repetition of one that stopped after its commit.
        self.turn(place, Input::Invalidated(id, false), Cause { again: true, ..cause }).await
    }
}
