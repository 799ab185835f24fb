//! Answers of executors that are handled where they arrive: the API's function does what the function on the queue would do. What
//! it cannot do now goes into the queue. Which events go on the bus is here, too.

use super::{NAME, Publishes, Sequences, codec, keys};
use crate::ports::{BusEntry, Consistency, PortError, Ports};
use crate::protocol::Handled;
use crate::table::{self, Items};
use keelway_domain::cause::Cause;
use keelway_domain::event::{CANCELLED, CloudEvent, EventType, HANDLED, Kind, SOURCE};
use keelway_domain::sequences::{ReactionKind, content};
use keelway_domain::shipyard::EVALUATION;
use keelway_domain::time::Timestamp;
use serde_json::{Value, json};

/// Whether a rule of Keelway's own takes an event of sequences from the bus: a task that a deployment config carries out or that is
/// an evaluation, one that is given up, the end of a sequence that carries out a promotion. The patterns are in the template.
pub fn is_taken(event: &CloudEvent) -> bool {
    let names = |of: &str, what: &str| event.data.get(of).and_then(Value::as_object).is_some_and(|of| of.contains_key(what));
    let deploys = event.ty == CANCELLED
        || matches!(EventType::parse(&event.ty), EventType::Task(task, Kind::Triggered) if ["deployment", "rollback"].contains(&task.as_str()));
    let configured = names("deployment", "deploymentConfig") || names("rollback", "deploymentConfig");
    let evaluates = event.ty == EventType::task(EVALUATION, Kind::Triggered)
        || (event.ty == CANCELLED && event.text("task") == Some(EVALUATION));
    event.source == SOURCE
        && ((deploys && configured) || evaluates || (event.ty.ends_with(".finished") && names("promotion", "pipeline")))
}

/// The cause of an answer that its sender has handed to the API.
pub fn cause_of(event: &CloudEvent, now: Timestamp) -> Cause {
    let answered = event.triggered_id.as_deref().unwrap_or_default();
    Cause::of_request(format!("{:016x} {answered}", content(event)).as_bytes(), now)
}

impl<P: Ports> Sequences<P> {
    /// How an answer is read about before it is taken. Where everything is published, what looks new goes on the bus before it is
    /// handled, so a copy must not look new.
    pub(crate) fn checks_with(&self) -> Consistency {
        match self.limits.publishes {
            Publishes::All => Consistency::Strong,
            Publishes::Own => Consistency::Eventual,
        }
    }

    /// Takes the first `.started` of a task in one write, if nothing has to be read or published for it. `false`: it may be taken,
    /// or refused, by what [`Sequences::preflight`] reads.
    pub async fn take_unread(&self, event: &CloudEvent) -> bool {
        let EventType::Task(_, Kind::Started) = EventType::parse(&event.ty) else { return false };
        if self.limits.publishes == Publishes::All || self.oversize(event).is_some() {
            return false;
        }
        match self.answered(event) {
            Ok((to, trigger)) => self.first_started(&to, &trigger, event, self.ports.now()).await.unwrap_or(false),
            Err(_) => false,
        }
    }

    /// Takes an answer that fits its task. `read`: what the check has read about it, which may be old. `known`: it was taken
    /// before, and is on the bus. What fails goes into the queue, whose function can wait.
    ///
    /// # Errors
    /// It can neither be handled nor be put into the queue.
    pub async fn take(&self, event: &CloudEvent, (read, known): (Option<Items>, bool)) -> Result<Handled, PortError> {
        if !known && self.limits.publishes == Publishes::All {
            self.announce(event).await?;
        }
        let cause = cause_of(event, self.ports.now());
        let mut handled = self.handle_at_once(event, cause, read).await;
        if matches!(handled, Err(PortError::Retry { .. })) {
            // It may have committed: this completes it.
            handled = self.handle_at_once(event, Cause { again: true, ..cause }, None).await;
        }
        match handled {
            Ok(handled) => Ok(handled),
            Err(error) => {
                tracing::warn!(event = event.id, context = %event.context, %error, "an answer goes into the queue");
                self.hand_over(event).await?;
                Ok(Handled::Recorded)
            }
        }
    }

    async fn handle_at_once(&self, event: &CloudEvent, cause: Cause, read: Option<Items>) -> Result<Handled, PortError> {
        let kind = match EventType::parse(&event.ty) {
            EventType::Task(_, Kind::Started) => ReactionKind::Started,
            EventType::Task(_, Kind::Finished) => ReactionKind::Finished,
            _ => return self.status_changed(event, cause.sent).await,
        };
        let (to, trigger) = match self.answered(event) {
            Ok(answered) => answered,
            Err(reason) => return self.refuse(event, cause.sent, reason).await,
        };
        let first = |read: &Items| read.get(&keys::execution(&to)).is_some_and(codec::awaits_first);
        let first = kind == ReactionKind::Started && read.as_ref().is_some_and(first);
        if first && self.first_started(&to, &trigger, event, cause.sent).await? {
            return Ok(Handled::Committed);
        }
        self.answer_from((to, trigger), (kind, event), cause, read).await
    }

    /// Publishes an answer for others. The rule of sequences leaves it alone, because it is handled here.
    async fn announce(&self, event: &CloudEvent) -> Result<(), PortError> {
        let mut detail = event.to_json();
        detail[HANDLED] = json!("true");
        let entry = BusEntry { source: event.source.clone(), detail_type: event.ty.clone(), detail: detail.to_string() };
        table::publish_entries(&self.ports, vec![entry]).await
    }

    /// Puts an answer into the queue of sequences, as the rule of the bus would.
    ///
    /// # Errors
    /// A port fails.
    pub async fn hand_over(&self, event: &CloudEvent) -> Result<(), PortError> {
        let envelope = json!({"source": event.source, "detail-type": event.ty, "detail": event.to_json()});
        table::send(&self.ports, NAME, &[envelope.to_string()]).await
    }
}
