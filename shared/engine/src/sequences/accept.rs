//! Inputs that start executions: an outside trigger, a follow-up's message, a domain event.

use super::birth::{Origin, Start};
use super::history::{self, Verdict};
use super::message::{Address, Message};
use super::{Sequences, keys};
use crate::item::Key;
use crate::ports::{PortError, Ports};
use crate::protocol::{Handled, record, run};
use crate::table;
use keelway_domain::cause::Cause;
use keelway_domain::event::CloudEvent;
use keelway_domain::ids::{ExecutionId, RecordId};
use keelway_domain::names::{ProjectName, SequenceName, ServiceName, StageName};
use keelway_domain::sequences::{Execution, content, domain_event_starts};
use keelway_domain::time::Timestamp;

impl<P: Ports> Sequences<P> {
    /// An outside `<stage>.<sequence>.triggered`: project, stage and service come from the data, the sequence from the type.
    pub(super) async fn accept(
        &self,
        event: &CloudEvent,
        (stage, sequence): (&StageName, &SequenceName),
        sent: Timestamp,
        cause: Cause,
    ) -> Result<Handled, PortError> {
        let (project, service) = match self.scope(event) {
            Ok(scope) => scope,
            Err(reason) => return self.refuse(event, sent, &reason).await,
        };
        let Some(stage_given) = event.text("stage") else {
            return self.refuse(event, sent, &format!("data.stage is missing: name the stage, for example {stage}")).await;
        };
        if let Err(error) = StageName::new(stage_given) {
            return self.refuse(event, sent, &format!("data.stage: {error}")).await;
        }
        let execution = ExecutionId::of_trigger(&project, &event.context, &event.source, &event.id);
        let recorded = history::event(&self.limits, &project, event, sent, Verdict::None);
        let to = Address { project, context: event.context.clone(), execution };
        let origin = Origin::Outside { event, stage: stage_given, sequence: sequence.as_str(), recorded };
        run(self, cause, &Start { to, service, accepted: sent, cause, origin }).await
    }

    /// A follow-up, by message: the record of the execution that caused it has all the data.
    pub(super) async fn follow(&self, parent: &Address, id: &RecordId, n: usize, cause: Cause) -> Result<Handled, PortError> {
        let Some(loaded) = self.execution(parent).await? else { return Ok(Handled::Stale) };
        let record = record::read(&self.ports, &loaded.x, id).await?;
        let Some((record, follow_up)) = record.as_ref().and_then(|record| Some((record, record.sends.get(n)?))) else {
            tracing::warn!(execution = %parent.execution, "a follow-up's record is gone");
            return Ok(Handled::Stale);
        };
        let to = Address { execution: follow_up.execution, ..parent.clone() };
        let (service, accepted) = (loaded.x.service.clone(), loaded.x.accepted);
        let origin = Origin::FollowUp { parent: &loaded.x, record: (id, record), follow_up };
        run(self, cause, &Start { to, service, accepted, cause, origin }).await
    }

    /// An event of neither a sequence nor a task: a sequence may be triggered on it.
    pub(super) async fn domain_event(&self, event: &CloudEvent, name: &str, sent: Timestamp) -> Result<Handled, PortError> {
        if Self::is_history(name) {
            return self.keep_history(event, sent).await;
        }
        let unknown = format!("unknown event type {:?}: no sequence is triggered on it", event.ty);
        let (project, _) = match self.scope(event) {
            Ok(scope) => scope,
            Err(reason) => return self.refuse(event, sent, &format!("{unknown}, and {reason}")).await,
        };
        let items = self.read(&[keys::project(&project)]).await?;
        let known = self.project(&project, items.get(&keys::project(&project))).await?;
        let starts = domain_event_starts(&known.shipyard, &event.ty, &event.data);
        if starts.is_empty() {
            return self.refuse(event, sent, &unknown).await;
        }
        self.keep(&project, event, sent, Verdict::None).await?;
        let root = ExecutionId::of_trigger(&project, &event.context, &event.source, &event.id);
        let message = |stage: &StageName, sequence: &SequenceName| Message::Start {
            to: Address {
                project: project.clone(),
                context: event.context.clone(),
                execution: ExecutionId::of_follow_up(root, "event", stage, sequence),
            },
            event: keys::event_sort(sent, content(event)),
            stage: stage.clone(),
            sequence: sequence.clone(),
            revision: known.revision.clone(),
            accepted: sent,
        };
        let letters: Vec<_> = starts.iter().map(|(stage, sequence)| message(&stage.name, &sequence.name).letter()).collect();
        table::send_all(&self.ports, &letters).await?;
        Ok(Handled::Committed)
    }

    /// One of the executions a domain event starts.
    pub(super) async fn start_on_event(
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

    /// project and service of an event; every event of this engine has both.
    fn scope(&self, event: &CloudEvent) -> Result<(ProjectName, ServiceName), String> {
        let field = |name: &'static str| event.text(name).ok_or_else(|| format!("data.{name} is missing: name the {name}"));
        let project = ProjectName::new(field("project")?).map_err(|error| format!("data.project: {error}"))?;
        let service = ServiceName::new(field("service")?).map_err(|error| format!("data.service: {error}"))?;
        match self.oversize(event) {
            Some(reason) => Err(reason),
            None => Ok((project, service)),
        }
    }

    /// Whether an execution was started by exactly this event.
    pub(super) fn started_by(x: &Execution, event: &CloudEvent) -> bool {
        keys::event_content(&x.payload) == Some(content(event))
    }
}
