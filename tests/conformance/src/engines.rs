//! All engines on one table, each behind its queue, and the rules of the bus between them: what the simulations of two projects and
//! of a whole delivery have in common.

use crate::deployments::HERE;
use crate::sim::{Outcome, pages};
use keelway_domain::condition::Condition;
use keelway_domain::event::{CloudEvent, SOURCE};
use keelway_domain::names::{Context, ProjectName};
use keelway_domain::promotions::definition::{Sequence, Strategy};
use keelway_domain::promotions::{AttemptResult, Closed, Retry, Seen};
use keelway_domain::sequences::Execution;
use keelway_engine::deployments::{self, Deployments};
use keelway_engine::ports::PortError;
use keelway_engine::promotions::attempts::{Attempts, Outside, Sight, Task};
use keelway_engine::promotions::{self, Promotions, by_sequence};
use keelway_engine::protocol::{Handled, dead_letter};
use keelway_engine::refusal::Refusal;
use keelway_engine::sequences::commands::{Approval, Verdict, approval_address};
use keelway_engine::sequences::{self, Sequences};
use keelway_wire::cloudevent::from_bus_envelope;
use keelway_world::World;
use keelway_world::bus::Publication;
use keelway_world::queue::{Parcel, Received};
use keelway_world::story::play;
use keelway_world::worker::Worker;
use serde_json::{Value, json};

/// A worker's engines.
pub struct Engines<O> {
    /// Sequences.
    pub sequences: Sequences<Worker>,
    /// Deployments.
    pub configs: Deployments<Worker>,
    /// Promotions.
    pub pipelines: Promotions<Worker>,
    /// What carries promotions out.
    pub attempts: Attempts<Worker, O>,
}

impl<O: Outside> Engines<O> {
    /// On the ports that each of them gets by its name. `outside`: what carries promotions out, with an engine for sequences of its
    /// own.
    pub fn new(ports: impl Fn(&str) -> Worker, outside: impl FnOnce(Sequences<Worker>) -> O) -> Self {
        let limits = deployments::Limits { account: HERE.0.into(), region: HERE.1.into(), ..deployments::Limits::default() };
        let sequences = |name| Sequences::new(ports(name), sequences::Limits::default());
        let pipelines = |name| Promotions::new(ports(name), promotions::Limits::default());
        Self {
            sequences: sequences(sequences::NAME),
            configs: Deployments::new(ports(deployments::NAME), limits),
            pipelines: pipelines(promotions::NAME),
            attempts: Attempts::new(pipelines(promotions::ATTEMPTS), outside(sequences(promotions::ATTEMPTS))),
        }
    }

    /// Handles a message by the queue that it lay in; those of other queues are deployments' here.
    ///
    /// # Errors
    /// What must come back.
    pub async fn handle(&self, received: &Received) -> Result<Handled, PortError> {
        match received.engine.as_str() {
            sequences::NAME => play(&self.sequences, received).await,
            promotions::NAME => play(&self.pipelines, received).await,
            promotions::ATTEMPTS => play(&self.attempts, received).await,
            _ => play(&self.configs, received).await,
        }
    }

    /// A tick of the sweep of all of them, to its end.
    ///
    /// # Errors
    /// Of the ports.
    pub async fn sweep(&self, ports: &Worker) -> Outcome {
        while dead_letter::redrive(ports).await? > 0 {}
        pages::<Execution>(&self.sequences).await?;
        pages(&self.configs).await?;
        pages(&self.pipelines).await?;
        Ok(None)
    }

    /// Somebody approves what waits in a context.
    ///
    /// # Errors
    /// Of the ports. What is refused is not done.
    pub async fn approve(&self, project: &ProjectName, context: &Context, trigger: &str, verdict: &Verdict) -> Outcome {
        let Ok((to, record)) = approval_address(project, context, trigger) else { return Ok(None) };
        match self.sequences.approval(&to, record).await {
            Ok(Approval::Open(x)) => {
                let event = self.sequences.decision_event(&x, record, verdict);
                self.sequences.decide(&x, record, &event).await.map(|()| None)
            }
            other => done(other.map(drop)),
        }
    }
}

/// Carries promotions out by sequences, and by nothing else.
pub struct BySequence(pub Sequences<Worker>);

/// The sequence that carries a promotion out.
pub fn sequence(task: &Task) -> Option<&Sequence> {
    match &task.strategy {
        Strategy::Sequence(sequence) => Some(sequence),
        Strategy::PullRequest(_) | Strategy::Notification(_) => None,
    }
}

impl Outside for BySequence {
    async fn carry_out(&self, task: &Task) -> Result<AttemptResult, PortError> {
        match sequence(task) {
            Some(sequence) => by_sequence::carry_out(&self.0, task, sequence).await,
            None => Ok(AttemptResult::Failed { why: Condition::new("None", "not here"), retry: Retry::Never }),
        }
    }
    async fn take_back(&self, task: &Task, _: &str) -> Result<Closed, PortError> {
        match sequence(task) {
            Some(sequence) => by_sequence::take_back(&self.0, task, sequence).await,
            None => Ok(Closed::Closed),
        }
    }
    async fn follow(&self, task: &Task) -> Result<Option<Seen>, PortError> {
        match sequence(task) {
            Some(sequence) => by_sequence::follow(&self.0, task, sequence).await,
            None => Ok(None),
        }
    }
    async fn look(&self, _: &str, tasks: &[Task], _: Option<&str>) -> Result<Sight, PortError> {
        Ok(Sight { failed: vec![], requests: vec![None; tasks.len()], mark: None, not_before: None })
    }
}

/// What is refused is not done.
///
/// # Errors
/// Of the ports.
pub fn done<T>(answer: Result<T, Refusal>) -> Outcome {
    match answer {
        Err(Refusal::Port(error)) => Err(error),
        Ok(_) | Err(_) => Ok(None),
    }
}

/// The event of somebody, about a project.
pub fn event(world: &World, (source, ty): (&str, &str), id: String, context: &str, data: &Value) -> CloudEvent {
    CloudEvent {
        id,
        source: source.into(),
        ty: ty.into(),
        time: world.now(),
        context: Context::of(context),
        authors: vec![],
        triggered_id: None,
        git_commit_id: None,
        data: data.as_object().cloned().unwrap_or_default(),
    }
}

/// An event as the bus has it.
pub fn published(publication: &Publication) -> Option<CloudEvent> {
    let entry = &publication.entry;
    let detail: Value = serde_json::from_str(&entry.detail).unwrap_or_default();
    let mut envelope = json!({"source": entry.source, "detail-type": entry.detail_type});
    envelope["detail"] = detail;
    from_bus_envelope(&envelope, publication.at).ok()
}

/// The queues that the rules of the bus put an event into.
pub fn takers(event: &CloudEvent) -> impl Iterator<Item = &'static str> {
    let followed = event.source == SOURCE && event.ty.ends_with(".finished") && event.data.contains_key("promotion");
    let rules = [
        (sequences::NAME, keelway_world::sequences::takes(&event.source, &event.ty)),
        (deployments::NAME, keelway_world::deployments::takes(&event.source, &event.ty)),
        (promotions::NAME, followed || event.ty == promotions::observations::OBSERVED),
    ];
    rules.into_iter().filter_map(|(queue, takes)| takes.then_some(queue))
}

/// The rules of the bus: who gets what was published.
pub fn route(world: &World, event: &CloudEvent) {
    for queue in takers(event) {
        world.enqueue(queue, Parcel::Event(event.clone()));
    }
}
