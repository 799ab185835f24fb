//! Domain events: events of neither a sequence nor a task, which sequences are triggered on.
//!
//! What an accepted event starts is decided once, by the shipyard that is in force then. An item that never expires remembers this,
//! so that the same event again starts nothing more, whatever has been applied since, and another event under its identity is
//! refused.

use super::birth::{Origin, Start};
use super::history::{self, Verdict};
use super::message::{Address, Message};
use super::{Sequences, keys};
use crate::item::{Item, Key};
use crate::ports::{Condition, PortError, Ports, Write, Written};
use crate::projects;
use crate::protocol::{Handled, contended, run};
use crate::table;
use keelway_domain::cause::Cause;
use keelway_domain::event::CloudEvent;
use keelway_domain::ids::ExecutionId;
use keelway_domain::names::{ProjectName, SequenceName, StageName};
use keelway_domain::sequences::{content, domain_event_starts};
use keelway_domain::time::Timestamp;

/// What is remembered of an accepted event.
struct Accepted {
    content: Option<String>,
    at: Timestamp,
    revision: String,
}

impl Accepted {
    fn read(item: &Item) -> Self {
        Self {
            content: item.text("c").map(str::to_owned),
            at: Timestamp(item.number("at").unwrap_or(0)),
            revision: item.text("rev").unwrap_or_default().to_owned(),
        }
    }

    fn is(&self, event: &CloudEvent) -> bool {
        self.content == Some(keys::hash(content(event)))
    }
}

impl<P: Ports> Sequences<P> {
    /// An event of neither a sequence nor a task: a sequence may be triggered on it.
    pub(crate) async fn domain_event(&self, event: &CloudEvent, name: &str, sent: Timestamp) -> Result<Handled, PortError> {
        if Self::is_history(name) {
            return self.keep_history(event, sent).await;
        }
        let unknown = format!("unknown event type {:?}: no sequence is triggered on it", event.ty);
        let (project, _) = match self.scope(event) {
            Ok(scope) => scope,
            Err(reason) => return self.refuse(event, sent, &format!("{unknown}, and {reason}")).await,
        };
        let root = ExecutionId::of_trigger(&project, &event.context, &event.source, &event.id);
        let (of_project, of_event) = (projects::keys::project(&project), keys::domain_event(&project, root));
        let items = self.read(&[of_project.clone(), of_event.clone()]).await?;
        match items.get(&of_event).map(Accepted::read) {
            Some(first) if !first.is(event) => return self.refuse(event, sent, &other_content(event)).await,
            // A redelivery completes what it began; a copy does nothing.
            Some(first) if first.at == sent => return self.start_all(event, &project, (root, &first.revision), sent).await,
            Some(_) => return Ok(Handled::Settled),
            None => {}
        }
        let known = self.project(&project, items.get(&of_project)).await?;
        if domain_event_starts(&known.shipyard, &event.ty, &event.data).is_empty() {
            return self.refuse(event, sent, &unknown).await;
        }
        let item = Item::new(of_event.clone())
            .with("c", keys::hash(content(event)))
            .with("at", sent.0)
            .with("rev", known.revision.as_str());
        match self.ports.write(&Write::Put(item, Condition::Absent)).await? {
            Written::Done => self.start_all(event, &project, (root, &known.revision), sent).await,
            // A copy was handled at the same time, or this write's answer was lost: the next delivery finds out which.
            Written::Conflict(_) => Err(contended(format_args!("domain event {}", event.id))),
        }
    }

    /// Starts every sequence of a revision that is triggered on an event.
    async fn start_all(
        &self,
        event: &CloudEvent,
        project: &ProjectName,
        (root, revision): (ExecutionId, &str),
        sent: Timestamp,
    ) -> Result<Handled, PortError> {
        self.keep(project, event, sent, Verdict::None).await?;
        let shipyard = self.projects().shipyard(project, revision).await?;
        let message = |stage: &StageName, sequence: &SequenceName| Message::Start {
            to: Address {
                project: project.clone(),
                context: event.context.clone(),
                execution: ExecutionId::of_follow_up(root, "event", stage, sequence),
            },
            event: keys::event_sort(sent, content(event)),
            stage: stage.clone(),
            sequence: sequence.clone(),
            revision: revision.to_owned(),
            accepted: sent,
        };
        let starts = domain_event_starts(&shipyard, &event.ty, &event.data);
        let letters: Vec<_> = starts.iter().map(|(stage, sequence)| message(&stage.name, &sequence.name).letter()).collect();
        table::send_all(&self.ports, &letters).await?;
        Ok(Handled::Committed)
    }

    /// One of the executions a domain event starts.
    pub(crate) async fn start_on_event(
        &self,
        to: &Address,
        sort: &str,
        message: &Message,
        cause: Cause,
    ) -> Result<Handled, PortError> {
        let Message::Start { stage, sequence, revision, accepted, .. } = message else { return Ok(Handled::Stale) };
        let key = Key::new(keys::context_partition(&to.project, &to.context), sort);
        let items = self.read(std::slice::from_ref(&key)).await?;
        let Some(event) = items.get(&key).and_then(history::decode) else { return Ok(Handled::Stale) };
        let Ok((_, service)) = self.scope(&event) else { return Ok(Handled::Stale) };
        let origin = Origin::Event { event: &event, sort, stage, sequence, revision };
        run(self, cause, &Start { to: to.clone(), service, accepted: *accepted, cause, origin }).await
    }

    /// Whether a domain event was accepted before: exactly this one, or another one under its identity (`Some(false)`).
    ///
    /// # Errors
    /// A port fails.
    pub(crate) async fn domain_event_known(&self, project: &ProjectName, event: &CloudEvent) -> Result<Option<bool>, PortError> {
        let key = keys::domain_event(project, ExecutionId::of_trigger(project, &event.context, &event.source, &event.id));
        let items = self.read(std::slice::from_ref(&key)).await?;
        Ok(items.get(&key).map(|item| Accepted::read(item).is(event)))
    }
}

/// Why an event under an identity that another one has is refused.
pub(crate) fn other_content(event: &CloudEvent) -> String {
    let CloudEvent { source, id, .. } = event;
    format!("source {source:?} has sent another event with id {id:?}: the first one stands; give this one an id of its own")
}
