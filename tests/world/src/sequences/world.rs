//! The world as a stand for the cases of sequences: the engine, an API beside it, and what a contract wants to go wrong.

use super::{Evaluate, LaneView, Listed, SequencesStand, answered, takes};
use crate::case::{Answer, Entrance, Stand};
use crate::exec::block_on;
use crate::fork::Forked;
use crate::queue::Parcel;
use crate::story::{Mode, Story};
use crate::worker::Worker;
use keelway_domain::event::{CloudEvent, EventType, TaskResult};
use keelway_domain::ids::sha256_hex;
use keelway_domain::names::{Context, ProjectName};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::keptn::evaluation;
use keelway_engine::keptn::preflight::Preflight;
use keelway_engine::ports::PortError;
use keelway_engine::projects::{NewShipyard, ProjectSettings, blob_id};
use keelway_engine::refusal::Refusal;
use keelway_engine::resources::Scope;
use keelway_engine::sequences::commands::{self, Approval, Verdict};
use keelway_engine::sequences::remediation::{REMEDIATION, form};
use keelway_engine::sequences::retry;
use keelway_engine::sequences::{Limits, Publishes, Sequences};
use keelway_engine::views::{EnvironmentFilter, MAX_PAGE, SequenceFilter, WorkFilter};
use keelway_wire::cloudevent::{Origin, check_client_event, fill_id, from_bus_envelope, parse};
use keelway_wire::manifest::{self, Document};
use serde_json::{Value, json};

/// The world's worker that plays the API.
const API: usize = 0;

/// A story of sequences.
pub struct SequencesWorld {
    /// The story.
    pub story: Story<Sequences<Worker>>,
    api: Sequences<Worker>,
    /// Whether answers that cases put on the bus come over HTTP, if the API would take them.
    http: bool,
}

impl SequencesWorld {
    /// In an empty world.
    pub fn new(mode: Mode) -> Self {
        Self::with(mode, Limits::default())
    }

    /// In an empty world, with other limits.
    pub fn with(mode: Mode, limits: Limits) -> Self {
        let make = move |worker| Sequences::new(worker, limits.clone());
        let story = Story::of(mode, make.clone());
        let api = make(story.world.worker(API));
        Self { story, api, http: false }
    }

    /// The same, whose executors answer over HTTP.
    pub fn over_http(mode: Mode) -> Self {
        Self { http: true, ..Self::new(mode) }
    }

    /// The same, where only what Keelway's own rules take goes on the bus.
    pub fn over_http_alone(mode: Mode) -> Self {
        Self { http: true, ..Self::with(mode, Limits { publishes: Publishes::Own, ..Limits::default() }) }
    }

    fn ask<T>(&self, asked: Result<T, Refusal>) -> Result<T, Answer> {
        asked.map_err(|refusal| {
            let status = match &refusal {
                Refusal::Port(_) => 503,
                Refusal::Unknown { .. } => 404,
                Refusal::Invalid { .. } => 400,
                Refusal::Conflict(_) => 409,
                Refusal::NotInForce(_) => 412,
                Refusal::TooLarge(_) => 413,
            };
            Answer::status(status, refusal.to_string())
        })
    }

    fn put_on_the_bus(&mut self, event: &Value) -> Answer {
        let text = |field: &str, default: &'static str| {
            event[field].as_str().filter(|text| !text.is_empty()).unwrap_or(default).to_owned()
        };
        let (source, ty) = (text("source", "client"), text("type", "unknown"));
        if !takes(&source, &ty) {
            return Answer::unknown();
        }
        let envelope = json!({"source": source, "detail-type": ty, "detail": event});
        let body = match from_bus_envelope(&envelope, self.story.world.now()) {
            Ok(event) => Parcel::Event(event),
            Err(e) => Parcel::Invalid { reason: e.to_string(), text: envelope.to_string() },
        };
        self.story.put_in(body)
    }

    fn post(&mut self, event: &Value) -> Result<Answer, Answer> {
        let mut event = event.clone();
        let id = sha256_hex(event.to_string().as_bytes());
        fill_id(&mut event, || id);
        let read = parse(&event, Origin::Client, self.story.world.now()).map_err(|e| Answer::status(400, e.to_string()))?;
        if read.size() > Limits::default().max_event_bytes {
            return Err(Answer::status(413, "the event is too large"));
        }
        check_client_event(&read).map_err(|e| Answer::status(400, e.to_string()))?;
        self.put(&read)
    }

    /// Checks a client's well-formed event and passes it on.
    fn put(&mut self, read: &CloudEvent) -> Result<Answer, Answer> {
        match self.ask(block_on(self.api.preflight(read)))? {
            Preflight::Known => {}
            Preflight::Publish { .. } => drop(self.put_on_the_bus(&read.to_json())),
            Preflight::Answer { .. } => drop(self.take(read)?),
            Preflight::Decision(to, trigger) => {
                let x = match self.ask(block_on(self.api.approval(&to, trigger)))? {
                    Approval::Open(x) => x,
                    _ => return Err(Answer::status(409, "the approval was decided before")),
                };
                let event = self.api.decision_of(&x, read);
                self.hand_in(block_on(self.api.decide(&x, trigger, &event)))?;
            }
        }
        Ok(Answer::status(200, ""))
    }

    /// An executor's answer over HTTP, sent again until it is answered.
    fn take(&mut self, read: &CloudEvent) -> Result<Answer, Answer> {
        let event = read.clone();
        let taken = self.story.request(|engine| {
            let event = event.clone();
            Box::pin(async move { answered(&*engine, &event).await })
        });
        let handled = taken.map_err(|e| Answer::status(503, e.to_string()))?;
        self.story.deliver_all();
        let clean = self.story.is_clean();
        self.ask(handled).map(|handled| if clean { Answer::handled(handled) } else { Answer::unknown() })
    }

    /// `None`: it is no answer, or one that the API would refuse.
    fn answer_over_http(&mut self, event: &Value) -> Option<Answer> {
        let read = parse(event, Origin::Client, self.story.world.now()).ok()?;
        check_client_event(&read).ok()?;
        let answers = matches!(EventType::parse(&read.ty), EventType::Task(..));
        let small = self.api.oversize(&read).is_none();
        let fits =
            answers && small && !self.story.outage && matches!(block_on(self.api.preflight(&read)), Ok(Preflight::Answer { .. }));
        fits.then(|| either(self.take(&read)))
    }

    fn hand_in(&mut self, sent: Result<(), PortError>) -> Result<(), Answer> {
        sent.map_err(|e| Answer::status(503, e.to_string()))?;
        self.story.deliver_all();
        Ok(())
    }

    fn decided(&mut self, approval: &Value, approve: bool) -> Result<Answer, Answer> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let invalid = |e: keelway_domain::names::NameError| Answer::status(400, e.to_string());
        let project = ProjectName::new(text(&approval["data"]["project"])).map_err(invalid)?;
        let context = Context::new(text(&approval["shkeptncontext"])).map_err(invalid)?;
        let (to, trigger) = self.ask(commands::approval_address(&project, &context, &text(&approval["id"])))?;
        let x = match self.ask(block_on(self.api.approval(&to, trigger)))? {
            Approval::Open(x) => x,
            // The same decision again is answered as the first time.
            Approval::Decided { result, .. } if (result == TaskResult::Pass) == approve => return Ok(Answer::status(200, "")),
            Approval::Decided { result, .. } => {
                return Err(Answer::status(409, format!("it was decided before: {}", result.as_str())));
            }
            Approval::Closed(why) => return Err(Answer::status(409, why)),
        };
        let verdict = Verdict { approve, message: None, by: Some("somebody".into()) };
        let event = self.api.decision_event(&x, trigger, &verdict);
        self.hand_in(block_on(self.api.decide(&x, trigger, &event)))?;
        Ok(Answer::status(200, ""))
    }

    fn applied(&mut self, project: &str, text: &str) -> Result<Answer, Answer> {
        let parsed = manifest::parse(text, "shipyard.yaml");
        if parsed.refused() {
            let findings: Vec<String> = parsed.findings.iter().map(ToString::to_string).collect();
            return Err(Answer::status(400, findings.join("\n")));
        }
        let name = ProjectName::new(project).map_err(|e| Answer::status(400, e.to_string()))?;
        for document in &parsed.documents {
            if let Document::Remediation(manifest) = document {
                let scope = match (&manifest.stage, &manifest.service) {
                    (Some(stage), Some(service)) => Scope::service(name.clone(), stage.as_str(), service.as_str()),
                    (Some(stage), None) => Scope::stage(name.clone(), stage.as_str()),
                    _ => Ok(Scope::project(name.clone())),
                };
                let files = vec![(REMEDIATION.to_owned(), manifest.source.clone().into_bytes())];
                let forms = form(REMEDIATION, &manifest.remediation);
                self.ask(block_on(self.api.resources().write_read(&self.ask(scope)?, files, &forms)))?;
            }
            let Document::Shipyard(manifest) = document else { continue };
            if matches!(block_on(self.api.projects().get(&name)), Err(Refusal::Unknown { .. })) {
                self.ask(block_on(self.api.projects().apply(&ProjectSettings::plain(name.clone()))))?;
            }
            let (revision, source, shipyard) = (&blob_id(&manifest.source), &manifest.source, &manifest.shipyard);
            let new = NewShipyard { revision, source, shipyard, replaces: None, by: "" };
            self.ask(block_on(self.api.apply_shipyard(&name, new)))?;
        }
        Ok(Answer::status(200, ""))
    }
}

fn either(result: Result<Answer, Answer>) -> Answer {
    result.unwrap_or_else(|refused| refused)
}

impl Stand for SequencesWorld {
    fn salt(&self) -> String {
        String::new()
    }
    fn ordered(&self) -> bool {
        self.story.ordered()
    }
    fn now(&self) -> Timestamp {
        self.story.world.now()
    }
    fn step(&mut self) {
        self.story.step();
    }
    fn send(&mut self, event: &Value, at: Entrance) -> Answer {
        match at {
            Entrance::Bus if self.http => self.answer_over_http(event).unwrap_or_else(|| self.put_on_the_bus(event)),
            Entrance::Bus => self.put_on_the_bus(event),
            Entrance::Api => either(self.post(event)),
        }
    }
    fn wait(&mut self, span: Span) {
        self.story.wait(span);
    }
    fn outgoing(&mut self) -> Vec<Value> {
        self.story.outgoing()
    }
}

impl Forked for SequencesWorld {
    type Engine = Sequences<Worker>;

    fn story(&mut self) -> &mut Story<Self::Engine> {
        &mut self.story
    }
    fn into_story(self) -> Story<Self::Engine> {
        self.story
    }
    fn fork(&self, mode: Mode) -> Self {
        let story = self.story.fork(mode);
        let api = story.another(API).remembering(&self.api);
        Self { story, api, http: self.http }
    }
    fn goes_on_like(&self, other: &Self) -> bool {
        self.story.goes_on_like(&other.story) && self.api.remembers_what(&other.api)
    }
}

impl SequencesStand for SequencesWorld {
    fn apply(&mut self, project: &str, shipyard: &str) -> Answer {
        let answer = either(self.applied(project, shipyard));
        self.story.deliver_all();
        answer
    }
    fn decide(&mut self, approval: &Value, approve: bool) -> Answer {
        either(self.decided(approval, approve))
    }
    fn control(&mut self, project: &str, context: &str, stage: Option<&str>, control: &str) -> Answer {
        let (Ok(project), Ok(context)) = (ProjectName::new(project), Context::new(context)) else {
            return Answer::status(400, "not a name");
        };
        let Some(what) = commands::Control::parse(control) else {
            return Answer::status(400, format!("state: {control:?} is none"));
        };
        let told = self.ask(block_on(self.api.control(&project, &context, stage, what)));
        self.story.deliver_all();
        either(told.map(|_| Answer::status(200, "")))
    }
    fn override_windows(&mut self, project: &str, context: &str, stage: Option<&str>, reason: &str) -> Answer {
        let (Ok(project), Ok(context)) = (ProjectName::new(project), Context::new(context)) else {
            return Answer::status(400, "not a name");
        };
        let told = self.ask(block_on(async {
            let closed = self.api.closed_stage(&project, &context, stage).await?;
            self.api.override_windows((&project, &context), &closed, ("ann", reason)).await
        }));
        self.story.deliver_all();
        either(told.map(|()| Answer::status(200, "")))
    }
    fn schedule(&mut self, project: &str, schedule: &str) -> Answer {
        let Ok(project) = ProjectName::new(project) else { return Answer::status(400, "not a name") };
        let parsed = manifest::parse(schedule, "schedule.yaml");
        let Some(Document::Schedule(manifest)) = parsed.documents.first() else {
            let findings: Vec<String> = parsed.findings.iter().map(ToString::to_string).collect();
            return Answer::status(400, findings.join("\n"));
        };
        let told = self.ask(block_on(self.api.schedules().apply((&project, &manifest.name), &manifest.spec, &manifest.source)));
        self.story.deliver_all();
        either(told.map(|_| Answer::status(200, "")))
    }
    fn unschedule(&mut self, project: &str, name: &str) -> Answer {
        let Ok(project) = ProjectName::new(project) else { return Answer::status(400, "not a name") };
        match block_on(self.api.schedules().delete(&project, name)) {
            Ok(true) => Answer::status(204, ""),
            Ok(false) => Answer::status(404, ""),
            Err(error) => Answer::status(503, error.to_string()),
        }
    }
    fn retry(&mut self, project: &str, context: &str, stage: Option<&str>, from: Option<&str>) -> Answer {
        let (Ok(project), Ok(context)) = (ProjectName::new(project), Context::new(context)) else {
            return Answer::status(400, "not a name");
        };
        let wanted = retry::Wanted { execution: None, stage, from };
        let told = self.ask(block_on(self.api.retry(&project, &context, wanted)));
        self.story.deliver_all();
        either(told.map(|_| Answer::status(200, "")))
    }
    fn evaluate(&mut self, (project, stage, service): (&str, &str, &str), (id, _): (&str, &str), wanted: &Evaluate) -> Answer {
        let asked = evaluation::Wanted {
            project,
            stage,
            service,
            window: (wanted.start.as_deref(), wanted.end.as_deref(), wanted.timeframe.as_deref()),
            labels: wanted.labels.clone(),
            git_commit_id: None,
            id: id.to_owned(),
        };
        let event = self.ask(block_on(self.api.evaluation(asked)));
        either(event.and_then(|event| self.put(&event)))
    }
    fn outage(&mut self, begins: bool) {
        self.story.outage = begins;
        self.story.deliver_all();
    }
    fn listed(&mut self, project: &str, wanted: &Listed, contexts: &[String]) -> Option<Vec<String>> {
        let filter = SequenceFilter {
            name: wanted.name.clone(),
            state: wanted.state.clone(),
            labels: wanted.labels.clone().into_iter().collect(),
            contexts: contexts.iter().map(|context| Context::of(context)).collect(),
            ..SequenceFilter::default()
        };
        let page = block_on(self.api.views().sequences(&ProjectName::new(project).ok()?, &filter, MAX_PAGE, 0)).ok()?;
        let context = |state: &Value| state["shkeptncontext"].as_str().unwrap_or_default().to_owned();
        Some(page.items.iter().map(context).collect())
    }
    fn runs(&mut self, project: &str, stage: &str, service: &str) -> Option<Option<String>> {
        let filter = EnvironmentFilter { stage: Some(stage.to_owned()), service: Some(service.to_owned()) };
        let (told, _) = block_on(self.api.views().environments(&ProjectName::new(project).ok()?, &filter, 1, None)).ok()?;
        Some(told.first().and_then(|one| one["image"].as_str()).map(str::to_owned))
    }
    fn sequence(&mut self, project: &str, context: &str) -> Option<Option<Value>> {
        let (Ok(project), Ok(context)) = (ProjectName::new(project), Context::new(context)) else { return Some(None) };
        match block_on(self.api.views().sequence_state(&project, &context)) {
            Ok(view) => Some(view),
            Err(e) => Some(Some(json!({"state": e.to_string()}))),
        }
    }
    fn open(&mut self, project: &str, types: &[String]) -> Option<Vec<Value>> {
        let filter = WorkFilter { project: ProjectName::new(project).ok(), ..WorkFilter::default() };
        let mut events = vec![];
        for ty in types {
            let EventType::Task(task, _) = EventType::parse(ty) else { continue };
            let page = block_on(async {
                let open = self.api.views().open_work(&[task], &filter, None, &|_, _| true).await?;
                Ok::<_, Refusal>(self.api.views().work_page(&open, 100).await?)
            });
            events.extend(page.map(|page| page.events).unwrap_or_default());
        }
        Some(events)
    }
    fn lane(&mut self, project: &str, stage: &str, service: &str) -> Option<LaneView> {
        let core = self.story.world.core();
        let mut view = LaneView::default();
        for item in core.table.partition(&format!("K#{project}#{stage}#{service}")) {
            match item.key.sk.as_str() {
                "!" => view.holder = item.text("hc").map(str::to_owned),
                _ => view.queue.extend(item.text("c").map(str::to_owned)),
            }
        }
        Some(view)
    }
}
