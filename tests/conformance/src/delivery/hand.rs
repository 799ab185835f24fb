//! A worker's engines, and what carries promotions out.

use super::clusters::{Kube, Land};
use super::planted::{Plant, Planted};
use crate::engines::{BySequence, Engines};
use crate::promotions::judge::{Judge, Verdicts, answer};
use crate::sim::{Hands, Outcome};
use keelway_domain::event::CloudEvent;
use keelway_domain::promotions::{AttemptResult, Closed, Seen};
use keelway_domain::stored::Stored;
use keelway_engine::deployments::{self, Job};
use keelway_engine::evaluations;
use keelway_engine::ports::PortError;
use keelway_engine::promotions::attempts::{Outside, Sight, Task};
use keelway_engine::promotions::observer::Observer;
use keelway_engine::promotions::{self, Promotions};
use keelway_engine::protocol::{Handled, dead_letter};
use keelway_world::exec;
use keelway_world::queue::{Parcel, Received};
use keelway_world::story::play;
use keelway_world::worker::Worker;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What lies outside of Keelway, in reach of all workers: the service that starts deployers, and clusters.
#[derive(Debug, Default)]
pub struct Yard {
    /// Deployers that were started and nobody has seen yet: of a stage's namespace, which version.
    pub started: Vec<(String, u64)>,
    /// The clusters.
    pub land: Land,
}

/// The yard, in reach of all workers.
pub type Shared = Arc<Mutex<Yard>>;

/// Locks the yard.
pub fn lock(yard: &Shared) -> MutexGuard<'_, Yard> {
    yard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A worker's engines.
pub struct Hand {
    /// All of them, but for the one that evaluates.
    pub engines: Engines<Seam>,
    /// Who observes clusters.
    pub observer: Observer<Worker, Kube>,
    /// Who evaluates for pipelines.
    judge: Judge,
    /// Their ports.
    pub ports: Planted,
}

/// What carries promotions out: sequences, and mistakes.
pub struct Seam {
    by_sequence: BySequence,
    plant: Option<Plant>,
}

impl Seam {
    /// The task, by the identity that whoever carries it out takes it to have.
    fn taken(&self, task: &Task) -> Task {
        let mut task = task.clone();
        if self.plant == Some(Plant::AttemptTriggersAnew) {
            task.attempt.again += 1000 * task.attempt.attempt;
        }
        task
    }
}

impl Outside for Seam {
    async fn carry_out(&self, task: &Task) -> Result<AttemptResult, PortError> {
        self.by_sequence.carry_out(&self.taken(task)).await
    }
    async fn take_back(&self, task: &Task, comment: &str) -> Result<Closed, PortError> {
        if self.plant == Some(Plant::SequenceNotAborted) {
            return Ok(Closed::Closed);
        }
        self.by_sequence.take_back(&self.taken(task), comment).await
    }
    async fn follow(&self, task: &Task) -> Result<Option<Seen>, PortError> {
        let seen = self.by_sequence.follow(&self.taken(task)).await?;
        Ok(match seen {
            Some(Seen::Failed(how)) if self.plant == Some(Plant::EndTakenForSuccess) => Some(Seen::Succeeded(how)),
            seen => seen,
        })
    }
    async fn look(&self, repository: &str, tasks: &[Task], mark: Option<&str>) -> Result<Sight, PortError> {
        self.by_sequence.look(repository, tasks, mark).await
    }
}

impl Hand {
    /// On these ports.
    pub fn new(ports: Planted, verdicts: &Verdicts) -> Self {
        let plant = ports.plant;
        let judge = Judge { ports: ports.of(evaluations::NAME).ports().clone(), verdicts: verdicts.clone() };
        let engines =
            Engines::new(|engine| ports.of(engine).ports().clone(), |sequences| Seam { by_sequence: BySequence(sequences), plant });
        let observing = ports.of(promotions::OBSERVER);
        let pipelines = Promotions::new(observing.ports().clone(), promotions::Limits::default());
        Self { engines, observer: Observer::new(pipelines, Kube(observing)), judge, ports }
    }

    /// A deployer is started.
    async fn start(&self, job: &Job) -> Result<Handled, PortError> {
        // Nobody else moves aliases here.
        let Job::Start { of, n, .. } = job else { return Ok(Handled::Stale) };
        let start = |_| lock(&self.ports.yard).started.push((of.namespace.clone(), *n));
        self.ports.inner.outside(|| format!("start a deployer of {of} #{n}"), start).await?;
        Ok(Handled::Recorded)
    }

    /// An answer to a pipeline, as a mistaken one takes it.
    fn misread(&self, received: Received) -> Received {
        let Parcel::Own(text) = &received.parcel else { return received };
        match promotions::Message::from_json(text) {
            Ok(promotions::Message::Evaluated { to, environment, id, time, .. })
                if self.ports.plant == Some(Plant::FailedEvaluationPasses) =>
            {
                let Ok(Some(answer)) = answer("pass") else { return received };
                let passed = promotions::Message::Evaluated { to, environment, id, time, answer };
                Received { parcel: Parcel::Own(passed.letter().body), ..received }
            }
            _ => received,
        }
    }

    /// Whether a mistaken engine takes no notice of an event.
    fn overlooks(&self, engine: &str, event: &CloudEvent) -> bool {
        match self.ports.plant {
            Some(Plant::GivenUpIgnored) => engine == deployments::NAME && event.ty == "dev.keelway.task.cancelled",
            Some(Plant::EndNotFollowed) => engine == promotions::NAME && event.ty.ends_with(".finished"),
            _ => false,
        }
    }
}

impl Hands for Hand {
    fn handle(self: Arc<Self>, received: Received) -> exec::Task<Outcome> {
        Box::pin(async move {
            let job = match (&received.parcel, received.engine.as_str()) {
                (Parcel::Event(event), engine) if self.overlooks(engine, event) => return Ok(Some(Handled::Recorded)),
                (Parcel::Own(text), deployments::DEPLOYERS) => Job::from_json(text).ok(),
                _ => None,
            };
            match received.engine.as_str() {
                evaluations::NAME => return play(&self.judge, &received).await.map(Some),
                promotions::OBSERVER => return play(&self.observer, &received).await.map(Some),
                _ => {}
            }
            let Some(job) = job else { return self.engines.handle(&self.misread(received)).await.map(Some) };
            let done = self.start(&job).await?;
            if let Some(letter) = &received.letter {
                dead_letter::handled(self.ports.ports(), letter).await?;
            }
            Ok(Some(done))
        })
    }
    fn sweep(self: Arc<Self>) -> exec::Task<Outcome> {
        Box::pin(async move { self.engines.sweep(self.ports.ports()).await })
    }
}
