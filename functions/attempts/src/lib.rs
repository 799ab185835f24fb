//! Carries promotions out: on git hosts, by notifications, and by sequences.
//!
//! [`Carrier`] implements the engine's [`Outside`]. Each strategy has a file; that of sequences needs no server, so it is in the
//! engine (`by_sequence`). A temporary failure is a result, not an error, so that the promotion shows why it waits.

mod hosts;
mod looks;
mod notify;
mod requests;

use hosts::Hosts;
use keelway_domain::promotions::definition::Strategy;
use keelway_domain::promotions::{AttemptResult, Closed, Failure, Seen};
use keelway_engine::ports::{PortError, Ports};
use keelway_engine::promotions::attempts::{Outside, Sight, Task};
use keelway_engine::promotions::{Promotions, by_sequence};
use keelway_engine::remembered::Remembered;
use keelway_engine::secrets::Secrets;
use keelway_engine::sequences::Sequences;
use keelway_githosts::Patience;
use keelway_outgoing::{Client, Guard};

/// Carries promotions out.
pub struct Carrier<P> {
    ports: P,
    secrets: Remembered<P>,
    sequences: Sequences<P>,
    hosts: Hosts<P>,
    client: Client,
}

impl<P: Ports + Secrets + Clone> Carrier<P> {
    /// On these ports and engines. Notifications use this client, and requests to git hosts this guard.
    pub fn new(ports: P, sequences: Sequences<P>, pipelines: Promotions<P>, (client, guard): (Client, Guard)) -> Self {
        let secrets = Remembered::new(ports.clone());
        let hosts = Hosts::new(pipelines, secrets.clone(), guard);
        Self { ports, secrets, sequences, hosts, client }
    }

    /// Repeats failed requests to git hosts as [`Patience::USUAL`] says.
    #[must_use]
    pub fn persistent(self) -> Self {
        self.patient(Patience::USUAL)
    }

    /// Sets how often requests to git hosts are repeated.
    #[must_use]
    pub fn patient(self, patience: Patience) -> Self {
        Self { hosts: self.hosts.patient(patience), ..self }
    }
}

impl<P: Ports + Secrets + Clone> Outside for Carrier<P> {
    async fn carry_out(&self, task: &Task) -> Result<AttemptResult, PortError> {
        let done = match &task.strategy {
            Strategy::Notification(notification) => {
                notify::carry_out((&self.ports, &self.client), &self.secrets, task, notification).await
            }
            Strategy::PullRequest(request) => Ok(requests::carry_out(&self.hosts, task, request).await),
            Strategy::Sequence(sequence) => by_sequence::carry_out(&self.sequences, task, sequence).await,
        };
        // An error of Keelway's own services: the attempt is repeated like any other failed one.
        Ok(done.unwrap_or_else(|error| Failure::from(error).into()))
    }

    async fn take_back(&self, task: &Task, comment: &str) -> Result<Closed, PortError> {
        match &task.strategy {
            Strategy::Notification(_) => Ok(Closed::Closed),
            Strategy::PullRequest(request) => Ok(requests::take_back(&self.hosts, task, request, comment).await),
            Strategy::Sequence(sequence) => by_sequence::take_back(&self.sequences, task, sequence).await,
        }
    }

    async fn follow(&self, task: &Task) -> Result<Option<Seen>, PortError> {
        match &task.strategy {
            Strategy::Sequence(sequence) => by_sequence::follow(&self.sequences, task, sequence).await,
            Strategy::Notification(_) | Strategy::PullRequest(_) => Ok(None),
        }
    }

    async fn look(&self, _: &str, tasks: &[Task], mark: Option<&str>) -> Result<Sight, PortError> {
        Ok(looks::look(&self.hosts, tasks, mark).await)
    }
}
