//! Inputs that start executions: an outside trigger, a follow-up's message, a schedule's.

use super::birth::{Origin, Start};
use super::history::{self, Verdict};
use super::message::Address;
use super::{Sequences, keys};
use crate::ports::{PortError, Ports};
use crate::protocol::{Handled, record, run};
use keelway_domain::cause::Cause;
use keelway_domain::event::{CloudEvent, EventType, Kind};
use keelway_domain::ids::{ExecutionId, RecordId, event_id};
use keelway_domain::names::{ProjectName, SequenceName, ServiceName, StageName};
use keelway_domain::schedules::Firing;
use keelway_domain::sequences::{Execution, content};
use keelway_domain::time::Timestamp;
use serde_json::json;

impl<P: Ports> Sequences<P> {
    /// An outside `<stage>.<sequence>.triggered`: project, stage and service come from the data, the sequence from the type.
    pub(crate) async fn accept(
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
    pub(crate) async fn follow(&self, parent: &Address, id: &RecordId, n: usize, cause: Cause) -> Result<Handled, PortError> {
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

    /// A trigger that a schedule has made. What cannot start ends at once, and says why, as one from outside does.
    pub(crate) async fn fire(&self, to: &Address, schedule: &str, firing: &Firing, cause: Cause) -> Result<Handled, PortError> {
        let mut data = firing.data.clone();
        let scope = [("project", to.project.as_str()), ("stage", firing.stage.as_str()), ("service", firing.service.as_str())];
        data.extend(scope.map(|(name, value)| (name.to_owned(), json!(value))));
        let event = CloudEvent {
            id: event_id(to.execution, "triggered").to_string(),
            source: format!("https://keelway.dev/schedules/{schedule}"),
            ty: EventType::sequence(&firing.stage, &firing.sequence, Kind::Triggered),
            time: firing.at,
            context: to.context.clone(),
            // Nobody who approves is called so: what a schedule starts is its own.
            authors: vec![format!("schedule:{schedule}")],
            triggered_id: None,
            git_commit_id: None,
            data,
        };
        let recorded = history::event(&self.limits, &to.project, &event, firing.at, Verdict::None);
        let (stage, sequence) = (firing.stage.as_str(), firing.sequence.as_str());
        let origin = Origin::Outside { event: &event, stage, sequence, recorded };
        run(self, cause, &Start { to: to.clone(), service: firing.service.clone(), accepted: firing.at, cause, origin }).await
    }

    /// project and service of an event; every event of this engine has both.
    pub(super) fn scope(&self, event: &CloudEvent) -> Result<(ProjectName, ServiceName), String> {
        let field = |name: &'static str| event.text(name).ok_or_else(|| format!("data.{name} is missing: name the {name}"));
        let project = ProjectName::new(field("project")?).map_err(|error| format!("data.project: {error}"))?;
        let service = ServiceName::new(field("service")?).map_err(|error| format!("data.service: {error}"))?;
        match self.oversize(event) {
            Some(reason) => Err(reason),
            None => Ok((project, service)),
        }
    }

    /// Whether an execution was started by exactly this event.
    pub(crate) fn started_by(x: &Execution, event: &CloudEvent) -> bool {
        keys::event_content(&x.payload) == Some(content(event))
    }
}
