//! A project with its files and sources, and the tasks that its sequences wait for.

use crate::World;
use crate::deployments::Waiting;
use crate::exec::block_on;
use keelway_domain::address::Address;
use keelway_domain::evaluation::{MetricsSource, Period};
use keelway_domain::evaluations::Asker;
use keelway_domain::event::{CloudEvent, SOURCE};
use keelway_domain::ids::event_id;
use keelway_domain::names::{Context, ProjectName, StageName};
use keelway_domain::promotions::{Environment, Evaluation, Pipeline};
use keelway_domain::shipyard::{EVALUATION, Shipyard, Stage};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::evaluations::sources::declared;
use keelway_engine::item::Item;
use keelway_engine::ports::Store;
use keelway_engine::projects;
use keelway_engine::promotions;
use keelway_engine::resources::Scope;
use keelway_engine::sequences::{Limits, Sequences};
use serde_json::{Map, Value, json};

/// Whoever prepares the world: nothing goes wrong with its requests.
const PEOPLE: usize = 9;

/// Makes a project with these stages and services.
///
/// # Errors
/// What is refused.
pub fn create(world: &World, project: &str, stages: &[&str], services: &[&str]) -> Result<(), String> {
    let name = ProjectName::new(project).map_err(|error| error.to_string())?;
    let stage = |stage: &&str| Ok(Stage { name: StageName::new(*stage)?, windows: vec![], sequences: vec![] });
    let stages: Result<Vec<Stage>, keelway_domain::names::NameError> = stages.iter().map(stage).collect();
    let shipyard = Shipyard { stages: stages.map_err(|error| error.to_string())? };
    let text = serde_json::to_string(&shipyard).map_err(|error| error.to_string())?;
    keep(world, Item::new(projects::keys::listed(project)));
    keep(world, Item::new(projects::keys::revision(&name, "r1")).with("j", text));
    keep(world, Item::new(projects::keys::project(&name)).with("v", 1i64).with("rev", "r1").with("at", world.now().0));
    let people = Sequences::new(world.worker(PEOPLE), Limits::default());
    for service in services {
        block_on(people.projects().create_service(&name, service)).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Writes a file of a project, of a stage (`dev`) or of a service (`dev/svc`), or deletes it. The commit.
///
/// # Errors
/// What is refused.
pub fn write(world: &World, project: &str, (at, file): (&str, &str), content: Option<&str>) -> Result<String, String> {
    let name = ProjectName::new(project).map_err(|error| error.to_string())?;
    let scope = match at.split_once('/') {
        Some((stage, service)) => Scope::service(name, stage, service),
        None if at.is_empty() => Ok(Scope::project(name)),
        None => Scope::stage(name, at),
    };
    let people = Sequences::new(world.worker(PEOPLE), Limits::default());
    let done = block_on(async {
        let scope = scope?;
        match content {
            Some(text) => people.resources().write(&scope, vec![(file.to_owned(), text.as_bytes().to_vec())]).await,
            None => people.resources().delete(&scope, file).await,
        }
    });
    done.map(|commit| commit.id).map_err(|error| error.to_string())
}

/// Declares a source of metrics, or takes it away.
///
/// # Errors
/// What is refused.
pub fn declare(world: &World, project: &str, name: &str, source: Option<&MetricsSource>) -> Result<(), String> {
    let (ports, at) = (world.worker(PEOPLE), Address::new(project, name));
    let sources = declared(&ports, Span::minutes(1));
    let done = block_on(async {
        match source {
            Some(source) => sources.apply(&at, source, "").await.map(drop),
            None => sources.delete(&at).await.map(drop),
        }
    });
    done.map_err(|error| error.to_string())
}

/// A pipeline that waits for an evaluation of this task's id, or, without a period, for nothing.
pub fn pipeline(task: &Task, asker: &Asker, period: Option<Period>) -> Item {
    let evaluation = period.map(|period| Evaluation {
        id: task.id(),
        revision: asker.revision.clone(),
        period,
        stage: task.place[1].clone(),
        service: task.place[2].clone(),
        again: 0,
        times: asker.time,
        due: period.end,
        answer: None,
    });
    let mut x = Pipeline::new(&asker.pipeline.namespace, &asker.pipeline.name, Timestamp(0));
    x.environments.insert(asker.environment.clone(), Environment { evaluation, ..Environment::default() });
    let key = promotions::keys::pipeline(&asker.pipeline);
    let attrs = promotions::codec::attributes(&x, key.clone(), Timestamp(0));
    Item { key, attrs }.with("v", 1i64)
}

/// Puts an item of another engine into the table.
pub fn keep(world: &World, item: Item) {
    drop(block_on(world.worker(PEOPLE).put_batch(&[item], &[])));
}

/// A task `evaluation` of a sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Project, stage and service.
    pub place: [String; 3],
    /// The execution that waits.
    pub waiting: Waiting,
}

impl Task {
    /// The task of this name, which is unique in the project.
    pub fn new(place: [String; 3], context: &str, name: &str) -> Self {
        let waiting = Waiting {
            project: place[0].clone(),
            context: context.to_owned(),
            task: EVALUATION.to_owned(),
            name: format!("{}/{name}", place[0]),
        };
        Self { place, waiting }
    }

    /// The id of its trigger.
    pub fn id(&self) -> String {
        self.waiting.trigger()
    }

    /// The id of the `get-sli.triggered` that asks for its values.
    pub fn get_sli(&self) -> String {
        let x = keelway_domain::evaluations::Service::new(self.place.clone(), Timestamp(0));
        event_id(x.id(), &format!("{}/get-sli", self.id())).to_string()
    }

    /// An event about it.
    pub fn event(
        &self,
        (source, ty): (&str, &str),
        id: String,
        answers: Option<String>,
        mut data: Map<String, Value>,
    ) -> CloudEvent {
        for (name, value) in ["project", "stage", "service"].into_iter().zip(&self.place) {
            data.entry(name).or_insert_with(|| value.as_str().into());
        }
        CloudEvent {
            id,
            source: source.to_owned(),
            ty: ty.to_owned(),
            time: Timestamp(0),
            context: Context::of(&self.waiting.context),
            authors: vec![],
            triggered_id: answers,
            git_commit_id: None,
            data,
        }
    }

    /// Its trigger. `window`: in milliseconds since 1970.
    pub fn triggered(&self, window: (Timestamp, Timestamp)) -> CloudEvent {
        let data = json!({EVALUATION: {"start": window.0.rfc3339(), "end": window.1.rfc3339()}});
        let data = data.as_object().cloned().unwrap_or_default();
        self.event((SOURCE, "sh.keptn.event.evaluation.triggered"), self.id(), None, data)
    }

    /// The event that its sequence waits no more.
    pub fn cancelled(&self, now: Timestamp) -> CloudEvent {
        let mut event = self.waiting.cancelled("", now);
        for (name, value) in ["project", "stage", "service"].into_iter().zip(&self.place) {
            event.data.insert(name.into(), value.as_str().into());
        }
        event
    }
}
