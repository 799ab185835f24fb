//! What the bus brings: tasks of sequences, answers of services to `get-sli.triggered`, and which source a project evaluates by.

use super::{Evaluations, Turn, chosen};
use crate::metrics::Metrics;
use crate::ports::{PortError, Ports};
use crate::projects;
use crate::protocol::{Handled, invalid, run};
use crate::refusal::Refusal;
use crate::sequences::awaited::Awaited;
use keelway_domain::cause::Cause;
use keelway_domain::evaluation::{Objectives, Period};
use keelway_domain::evaluations::{Asked, Found, GET_SLI, INVALIDATED, Input, SOURCE as OWN};
use keelway_domain::event::{CANCELLED, CloudEvent, EventType, Kind, Object, SOURCE};
use keelway_domain::names::ProjectName;
use keelway_domain::shipyard::EVALUATION;
use keelway_domain::time::Timestamp;
use serde_json::Value;

/// The event by which Keptn's clients say what a project is monitored with.
pub const CONFIGURE: &str = "sh.keptn.event.monitoring.configure";

impl<P: Ports, M: Metrics> Evaluations<P, M> {
    pub(super) async fn on_event(&self, event: &CloudEvent, cause: Cause) -> Result<Handled, PortError> {
        let Some(place) = place(event) else {
            return match event.ty == CONFIGURE {
                true => self.configured(event, cause).await,
                false => self.refuse(event, cause, "data needs project, stage and service").await,
            };
        };
        match (event.ty.as_str(), EventType::parse(&event.ty)) {
            (CONFIGURE, _) => self.configured(event, cause).await,
            (CANCELLED, _) => self.given_up(&place, event, cause).await,
            (INVALIDATED, _) if event.source == OWN => Ok(Handled::Recorded),
            (INVALIDATED, _) => match &event.triggered_id {
                Some(id) => self.turn(&place, Input::Invalidated(id, true), cause).await,
                None => self.refuse(event, cause, "triggeredid is missing: set it to the id of evaluation.triggered").await,
            },
            (_, EventType::Task(task, Kind::Triggered)) if task.as_str() == EVALUATION => self.task(place, event, cause).await,
            (_, EventType::Task(task, kind)) if task.as_str() == GET_SLI => self.answered(&place, kind, event, cause).await,
            _ => Ok(Handled::Recorded),
        }
    }

    async fn refuse(&self, event: &CloudEvent, cause: Cause, reason: &str) -> Result<Handled, PortError> {
        invalid::record(&self.ports, self.limits.retention, cause.sent, reason, &event.to_bytes()).await
    }

    /// A task's trigger.
    async fn task(&self, place: [String; 3], event: &CloudEvent, cause: Cause) -> Result<Handled, PortError> {
        // Executors may put events on the bus, too. The rule excludes them; this check also holds if the rule is changed.
        if event.source != SOURCE {
            return self.refuse(event, cause, "forged: only the sequences engine triggers tasks").await;
        }
        let Some(awaited) = Awaited::of((&place[0], event.context.as_str()), EVALUATION, &event.id) else {
            return self.refuse(event, cause, "the id of the trigger leads to no task of a sequence").await;
        };
        // Settles what an earlier delivery began, if there was one; the state knows it.
        let began = self.service(&place).await?.is_some_and(|x| x.knows(&event.id));
        if !began && !awaited.is_open(self.ports.get(&awaited.key()).await?.as_ref())? {
            return Ok(Handled::Stale);
        }
        let Ok(project) = ProjectName::new(&*place[0]) else { return Ok(Handled::Recorded) };
        let found = self.found(&place[0]).await?;
        let pinned = self.pinned(&project, event.git_commit_id.as_deref()).await?;
        // Without objectives and without a source, the task is somebody else's. The files of its commit decide, whatever was
        // written since; for a commit that nobody knows, the present ones.
        if !began && found == Found::Nothing {
            let at = pinned.as_ref().ok().and_then(Option::as_deref);
            let objectives = self.files(&place, at).objectives().await?.0;
            if objectives == Objectives::Missing {
                return Ok(Handled::Recorded);
            }
        }
        let asked = asked(event, pinned.unwrap_or_else(|()| event.git_commit_id.clone()));
        run(self, cause, &Turn { to: &place, input: Input::Triggered(&asked), found: &found, awaited: Some(&awaited), cause }).await
    }

    /// The commit whose files an evaluation is made by. `Err`: there is none; the files say why they cannot be read.
    pub(super) async fn pinned(&self, project: &ProjectName, named: Option<&str>) -> Result<Result<Option<String>, ()>, PortError> {
        match self.resources().pinned(project, named).await {
            Ok(pinned) => Ok(Ok(pinned)),
            Err(Refusal::Port(error)) => Err(error),
            Err(_) => Ok(Err(())),
        }
    }

    /// A sequence has given a task up. The event is only a hint: the state of the execution decides.
    async fn given_up(&self, place: &[String; 3], event: &CloudEvent, cause: Cause) -> Result<Handled, PortError> {
        let (Some(EVALUATION), Some(id)) = (event.text("task"), &event.triggered_id) else { return Ok(Handled::Recorded) };
        let Some(awaited) = Awaited::of((&place[0], event.context.as_str()), EVALUATION, id) else {
            return Ok(Handled::Recorded);
        };
        if awaited.is_open(self.ports.get(&awaited.key()).await?.as_ref())? {
            return Ok(Handled::Stale);
        }
        self.turn(place, Input::Over(id), cause).await
    }

    /// What a service says about `get-sli.triggered`.
    async fn answered(&self, place: &[String; 3], kind: Kind, event: &CloudEvent, cause: Cause) -> Result<Handled, PortError> {
        let Some(id) = &event.triggered_id else {
            return self.refuse(event, cause, "triggeredid is missing: set it to the id of get-sli.triggered").await;
        };
        match kind {
            Kind::Started => self.turn(place, Input::Began(id), cause).await,
            Kind::Finished => match (self.reading.provided)(&Value::Object(event.data.clone())) {
                Ok(provided) => self.turn(place, Input::Provided(id, &provided), cause).await,
                Err(why) => self.refuse(event, cause, &format!("data.get-sli: {why}")).await,
            },
            Kind::Triggered | Kind::StatusChanged => Ok(Handled::Recorded),
        }
    }

    /// A client says what a project is monitored with: the source that it evaluates by.
    async fn configured(&self, event: &CloudEvent, cause: Cause) -> Result<Handled, PortError> {
        let Some(project) = event.text("project") else {
            return self.refuse(event, cause, "data.project is missing: name the project").await;
        };
        let Some(source) = event.text("type").filter(|source| chosen::is_name(source)) else {
            return self.refuse(event, cause, "data.type is not the name of a source: send for example prometheus").await;
        };
        let known = match ProjectName::new(project) {
            Ok(name) => self.ports.get(&projects::keys::project(&name)).await?,
            Err(_) => None,
        };
        let Some(known) = known else {
            return self.refuse(event, cause, "data.project is the name of no project").await;
        };
        let at = event.time.min(cause.sent);
        // An earlier project of that name chooses nothing for this one.
        if at >= projects::created(&known) {
            self.choose(project, source, at).await?;
        }
        Ok(Handled::Recorded)
    }
}

/// Project, stage and service of an event.
fn place(event: &CloudEvent) -> Option<[String; 3]> {
    Some([event.text("project")?, event.text("stage")?, event.text("service")?].map(str::to_owned))
}

/// What a trigger asks for.
fn asked(event: &CloudEvent, revision: Option<String>) -> Asked {
    let labels = event.data.get("labels").and_then(Value::as_object).cloned().unwrap_or_default();
    let deployed = event.data.get("deployment").and_then(|deployment| deployment.pointer("/deploymentNames/0"));
    Asked {
        id: event.id.clone(),
        context: event.context.to_string(),
        period: period(&event.data),
        labels,
        deployment: deployed.and_then(Value::as_str).unwrap_or_default().to_owned(),
        revision,
        asker: None,
    }
}

/// The window of an evaluation: the engine of sequences has completed it.
fn period(data: &Object) -> Result<Period, String> {
    let time = |member: &str, name: &str| data.get(member)?.get(name)?.as_str().and_then(Timestamp::parse_lenient);
    let within = |member: &str| Some(Period { start: time(member, "start")?, end: time(member, "end")? });
    let missing = || "evaluation.triggered event does not contain evaluation timeframe".to_owned();
    within(EVALUATION).or_else(|| within("test")).ok_or_else(missing)
}
