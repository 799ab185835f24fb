//! The world as a stand for the cases of evaluations: the engine, sources, and sequences that wait.

use super::project::{self, Task, keep};
use super::sources::{Engine, Shared, declared};
use super::{Case, Evaluates, view};
use crate::case::{Answer, Entrance, Stand, Step, Telling, Tells, matches, merge};
use crate::exec::{Task as Asking, block_on};
use crate::fork::Forked;
use crate::queue::Parcel;
use crate::story::{Mode, Story};
use keelway_cases::evaluations::{FILES, Files, Own, Provided, Values};
use keelway_domain::address::Address;
use keelway_domain::evaluation::Period;
use keelway_domain::evaluations::{Asker, Ended, INVALIDATED, Service};
use keelway_domain::event::{CloudEvent, Status};
use keelway_domain::ids::context_of;
use keelway_domain::stored::Stored;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::evaluations::{CONFIGURE, Evaluation, Loaded, Message, keys};
use keelway_engine::promotions;
use keelway_engine::protocol::Handled;
use keelway_engine::protocol::sweep::{Tick, page};
use keelway_wire::cloudevent::from_bus_envelope;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A service that provides values over the bus.
const PROVIDER: &str = "some-sli-service";
/// The worker of whoever looks.
const READER: usize = 5;

/// A story of evaluations.
pub struct EvaluationsWorld {
    /// The story.
    pub story: Story<Engine>,
    /// The sources.
    pub sources: Shared,
    /// The commits of the project's files.
    commits: Vec<String>,
    /// A request may fail for which the engine waits.
    disturbed: bool,
}

fn is_disturbed(mode: Mode) -> bool {
    matches!(mode, Mode::Throttle(_) | Mode::AnswerLost(_))
}

/// Without the engine of promotions.
fn alone(story: Story<Engine>) -> Story<Engine> {
    story.world.core().queue.absent = Some(promotions::NAME);
    story
}

fn span(text: &str) -> Result<Span, String> {
    Span::parse(text).map_err(|error| error.to_string())
}

fn place(telling: &Telling<'_, Evaluates>, at: &str) -> Result<[String; 3], String> {
    let (stage, service) = at.split_once('/').ok_or_else(|| format!("{at:?} is not <stage>/<service>"))?;
    Ok([telling.project("p"), stage.to_owned(), service.to_owned()])
}

/// The task of an alias, wherever in the case it is triggered.
fn task(telling: &Telling<'_, Evaluates>, alias: &str) -> Result<Task, String> {
    let case: &Case = telling.case;
    let wanted = |own: &Own| own.task.clone().or(own.ask.clone());
    let found = case.steps.iter().find_map(|step| wanted(&step.own).filter(|_| name(step) == alias).map(|at| (step, at)));
    let (step, at) = found.ok_or_else(|| format!("no task is called {alias:?}"))?;
    let at = at.as_str();
    Ok(Task::new(place(telling, at)?, &telling.context(step.about()), alias))
}

fn name(step: &Step<Evaluates>) -> &str {
    step.alias.as_deref().unwrap_or("task")
}

impl EvaluationsWorld {
    /// In an empty world.
    pub fn new(mode: Mode) -> Self {
        let sources = Shared::default();
        let story = alone(Story::of(mode, sources.engines()));
        Self { story, sources, commits: vec![], disturbed: is_disturbed(mode) }
    }

    /// The same with other engines.
    pub fn with(sources: Shared, make: impl Fn(crate::worker::Worker) -> Engine + Send + Sync + 'static) -> Self {
        Self { story: alone(Story::of(Mode::Clean, make)), sources, commits: vec![], disturbed: false }
    }

    /// A service's evaluations.
    pub fn service(&self, place: &[String; 3]) -> Option<Service> {
        let core = self.story.world.core();
        let item = core.table.peek(&keys::service(place))?;
        Loaded::read(item).ok().map(|loaded| loaded.x)
    }

    fn last(&self, place: &[String; 3]) -> Option<Ended> {
        let reader = super::engine(self.story.world.worker(READER), &self.sources);
        let all = block_on(reader.list(place)).ok()?;
        all.into_iter().find_map(|one| match one {
            Evaluation::Ended(_, ended) => ended.map(|ended| *ended),
            Evaluation::Open(_) => None,
        })
    }

    fn put(&mut self, event: CloudEvent) -> Answer {
        let event = CloudEvent { time: self.story.world.now(), ..event };
        self.story.put_in(Parcel::Event(event))
    }

    fn write(&mut self, project: &str, files: &Files) -> Result<(), String> {
        for (at, files) in files {
            for (file, content) in files {
                self.commits.push(project::write(&self.story.world, project, (at, file), content.as_deref())?);
            }
        }
        Ok(())
    }

    fn set(&mut self, values: &Values) {
        let mut state = self.sources.state();
        for (source, values) in values {
            for (query, value) in values {
                let key = (source.clone(), query.clone());
                match value {
                    Some(value) => drop(state.values.insert(key, *value)),
                    None => drop(state.values.remove(&key)),
                }
            }
        }
    }

    fn moods(&mut self, own: &Own) -> Result<(), String> {
        let now = self.story.world.now();
        let mut state = self.sources.state();
        for (source, long) in own.late.iter().flatten() {
            state.moods.entry(source.clone()).or_default().late = now + span(long)?;
        }
        for (source, long) in own.busy.iter().flatten() {
            state.moods.entry(source.clone()).or_default().busy = now + span(long)?;
        }
        for (source, why) in own.refuse.iter().flatten() {
            state.moods.entry(source.clone()).or_default().refuses = why.clone();
        }
        Ok(())
    }

    fn declare(&mut self, project: &str, sources: &BTreeMap<String, Option<String>>) -> Result<(), String> {
        for (name, delay) in sources {
            let source = delay.as_deref().map(|delay| Ok::<_, String>(declared(name, Some(span(delay)?)))).transpose()?;
            project::declare(&self.story.world, project, name, source.as_ref())?;
        }
        Ok(())
    }

    fn choose(&mut self, project: &str, source: &str, id: String) -> Answer {
        let place = [project.to_owned(), String::new(), String::new()];
        let data = json!({"type": source, "service": "svc"});
        let event = Task::new(place, "configure", "configure");
        let event = event.event(("client", CONFIGURE), id, None, data.as_object().cloned().unwrap_or_default());
        self.put(event)
    }

    fn ask<R: 'static>(
        &mut self,
        make: impl Fn(Arc<Engine>) -> Asking<Result<R, keelway_engine::ports::PortError>>,
    ) -> Result<R, String> {
        let answer = self.story.request(make).map_err(|error| error.to_string())?;
        self.story.deliver_all();
        Ok(answer)
    }

    /// A pipeline asks for an evaluation, by the id that a task of this name would have.
    fn ask_for(&mut self, task: &Task, own: &Own) -> Answer {
        let (from, to) = own.window.unwrap_or((10, 0));
        let at = |minutes: i64| self.story.world.now() + Span::minutes(-minutes);
        let asker = Asker {
            pipeline: Address::new(&*task.place[0], "flow"),
            environment: task.place[1].clone(),
            revision: "v2".into(),
            time: own.time.unwrap_or(1),
        };
        let period = Period { start: at(from), end: at(to) };
        keep(&self.story.world, project::pipeline(task, &asker, Some(period)));
        let message = Message::Evaluate { to: task.place.clone(), id: task.id(), period, asker };
        self.story.put_in(Parcel::Own(message.letter().body))
    }

    /// What the pipeline was told so far.
    fn told(&self, telling: &Telling<'_, Evaluates>) -> Result<Vec<String>, String> {
        let case: &Case = telling.case;
        let asks = || case.steps.iter().filter(|step| step.own.ask.is_some()).map(name);
        let mut lines = vec![];
        for text in &self.story.world.core().queue.sent_away {
            let Ok(promotions::Message::Evaluated { id, time, answer, .. }) = promotions::Message::from_json(text) else {
                return Err(format!("nobody expects {text}"));
            };
            let alias = asks().find(|alias| task(telling, alias).is_ok_and(|task| task.id() == id));
            let word = match (answer.status, answer.evaluated) {
                (Status::Succeeded, false) => "unevaluated",
                (Status::Succeeded, true) => answer.result.as_str(),
                _ => "errored",
            };
            lines.push(format!("{} {word} {time}", alias.ok_or_else(|| format!("nobody has asked: {text}"))?));
        }
        Ok(lines)
    }

    fn sweep(&mut self) -> Result<(), String> {
        self.ask(|engine| {
            Box::pin(async move {
                let mut tick = Tick::default();
                while !page::<Service>(&*engine, &mut tick).await?.finished {}
                Ok(())
            })
        })
    }
}

/// The data of a `get-sli.finished`.
fn data(of: &Provided) -> Map<String, Value> {
    let value = |(metric, value): (&String, &Option<f64>)| match value {
        Some(value) => json!({"metric": metric, "value": value, "success": true}),
        None => json!({"metric": metric, "value": 0, "success": false, "message": "could not get data"}),
    };
    let values: Vec<Value> = of.values.iter().map(value).collect();
    let data = json!({"status": "succeeded", "result": "pass", "get-sli": {"indicatorValues": values}});
    let mut data = data.as_object().cloned().unwrap_or_default();
    merge(&mut data, &of.says);
    data
}

impl Stand for EvaluationsWorld {
    fn salt(&self) -> String {
        String::new()
    }
    fn ordered(&self) -> bool {
        self.story.ordered()
    }
    fn now(&self) -> Timestamp {
        self.story.world.now()
    }
    /// If a source could not be asked, it is asked a while later.
    fn is_disturbed(&self) -> bool {
        self.disturbed
    }
    fn step(&mut self) {
        self.story.step();
    }
    fn send(&mut self, event: &Value, _: Entrance) -> Answer {
        let envelope = json!({"source": event["source"], "detail-type": event["type"], "detail": event});
        match from_bus_envelope(&envelope, self.story.world.now()) {
            Ok(event) => self.story.put_in(Parcel::Event(event)),
            Err(e) => self.story.put_in(Parcel::Invalid { reason: e.to_string(), text: envelope.to_string() }),
        }
    }
    fn wait(&mut self, span: Span) {
        self.story.wait(span);
    }
    fn outgoing(&mut self) -> Vec<Value> {
        self.story.outgoing()
    }
}

impl Forked for EvaluationsWorld {
    type Engine = Engine;

    fn story(&mut self) -> &mut Story<Engine> {
        &mut self.story
    }
    fn into_story(self) -> Story<Engine> {
        self.story
    }
    fn fork(&self, mode: Mode) -> Self {
        let sources = self.sources.fork();
        let story = self.story.fork_of(mode, sources.engines());
        Self { story, sources, commits: self.commits.clone(), disturbed: is_disturbed(mode) }
    }
    fn goes_on_like(&self, other: &Self) -> bool {
        self.story.goes_on_like(&other.story) && self.sources.is_like(&other.sources) && self.commits == other.commits
    }
}

impl Tells<EvaluationsWorld> for Evaluates {
    fn set_up(telling: &mut Telling<'_, Self>, stand: &mut EvaluationsWorld) -> Result<(), String> {
        let (given, project) = (&telling.case.given, telling.project("p"));
        project::create(&stand.story.world, &project, &["dev", "prod"], &["svc", "other"])?;
        // The events about what the pipeline `flow` asks for.
        telling.contexts.insert("flow".into(), context_of("pipeline", &format!("{project}/flow")).to_string());
        match &given.files {
            Some(files) => stand.write(&project, files)?,
            None => {
                for (at, file, text) in FILES {
                    stand.commits.push(project::write(&stand.story.world, &project, (at, file), Some(text))?);
                }
            }
        }
        let sources = given.sources.iter().map(|(name, delay)| (name.clone(), Some(delay.clone()))).collect();
        stand.declare(&project, &sources)?;
        stand.set(&given.values);
        if let Some(source) = &given.provider {
            drop(stand.choose(&project, source, "chosen before".into()));
        }
        Ok(())
    }

    fn put_in(telling: &mut Telling<'_, Self>, step: &Step<Self>, stand: &mut EvaluationsWorld) -> Result<Answer, String> {
        let own = &step.own;
        let project = telling.project("p");
        if own.task.is_some() {
            let task = task(telling, name(step))?;
            keep(&stand.story.world, task.waiting.item());
            let (from, to) = own.window.unwrap_or((10, 0));
            let at = |minutes: i64| stand.now() + Span::minutes(-minutes);
            let mut event = task.triggered((at(from), at(to)));
            event.time = stand.now();
            merge(&mut event.data, &own.data);
            let mut newest = stand.commits.iter().rev();
            let named = |commit: &String| match commit.as_str() {
                "last" => newest.next().cloned().unwrap_or_default(),
                "before" => newest.nth(1).cloned().unwrap_or_default(),
                id => id.to_owned(),
            };
            event.git_commit_id = own.commit.as_ref().map(named);
            let event = serde_json::from_str(&event.to_bytes()).map_err(|error| error.to_string())?;
            return Ok(telling.send(step, event, Entrance::Bus, stand));
        }
        if own.ask.is_some() {
            let task = task(telling, name(step))?;
            return Ok(stand.ask_for(&task, own));
        }
        if let Some(alias) = own.cancel.as_ref().or(own.over.as_ref()) {
            let task = task(telling, alias)?;
            keep(&stand.story.world, task.waiting.over());
            let now = stand.now();
            return Ok(if own.cancel.is_some() { stand.put(task.cancelled(now)) } else { Answer::unknown() });
        }
        if let Some(alias) = &own.began {
            let task = task(telling, alias)?;
            let ty = (PROVIDER, "sh.keptn.event.get-sli.started");
            return Ok(stand.put(task.event(ty, telling.fresh_id(), Some(task.get_sli()), Map::new())));
        }
        if let Some(provided) = &own.provided {
            let task = task(telling, &provided.to)?;
            let ty = (PROVIDER, "sh.keptn.event.get-sli.finished");
            let to = provided.id.clone().unwrap_or_else(|| task.get_sli());
            return Ok(stand.put(task.event(ty, telling.fresh_id(), Some(to), data(provided))));
        }
        if let Some(alias) = &own.void {
            let task = task(telling, alias)?;
            return Ok(stand.put(task.event(("bridge", INVALIDATED), telling.fresh_id(), Some(task.id()), Map::new())));
        }
        if let Some(alias) = &own.invalidate {
            let task = task(telling, alias)?;
            let done: Handled = stand.ask(move |engine| {
                let task = task.clone();
                Box::pin(async move { engine.invalidate(&task.place, &task.id()).await })
            })?;
            // Whoever asks again, because nobody answered, hears that it is done.
            return Ok(if stand.story.is_clean() { Answer::handled(done) } else { Answer::unknown() });
        }
        if let Some(source) = &own.configure {
            return Ok(stand.choose(&project, source, telling.fresh_id()));
        }
        own.values.iter().for_each(|values| stand.set(values));
        own.declare.iter().try_for_each(|sources| stand.declare(&project, sources))?;
        own.write.iter().try_for_each(|files| stand.write(&project, files))?;
        stand.moods(own)?;
        if own.sweep {
            stand.sweep()?;
        }
        if own.replay {
            stand.story.replay();
        }
        Ok(Answer::unknown())
    }

    /// Of a service: what is open and what has ended, what was measured last, and how often sources were asked about it.
    fn compare(telling: &Telling<'_, Self>, step: &Step<Self>, stand: &mut EvaluationsWorld) -> Result<(), String> {
        if let Some(expected) = &step.own.told {
            let told = stand.told(telling)?;
            if told != *expected {
                return Err(format!("the pipeline was told {told:?}, expected {expected:?}"));
            }
        }
        for (at, expected) in &step.state {
            let place = place(telling, at)?;
            let asked = stand.sources.state().times();
            let view = view(stand.service(&place).as_ref(), stand.last(&place).as_ref(), asked);
            matches(&view, &telling.resolve(expected)?, at)?;
        }
        Ok(())
    }
}
