//! Cases told to the deployed stack: events go over the real bus and the real API, time is real, and what comes out is what an
//! observer with a rule of its own sees.
//!
//! A step is over when nothing it set off is under way any more, which is known and not guessed: the log line of each message names
//! the messages it sent, so a step waits for the line of its input and for those of all messages that follow from it. What they
//! published has arrived at the observer when a mark that is put on the bus after it has. So what did not happen by the end of a
//! step does not happen.

use crate::api::{Api, Reply, project_manifest};
use crate::cloud::now_millis;
use crate::events::{fresh, history, mark};
use crate::line::{Line, Root, Sent, under_way};
use crate::observer::{Observer, Seen};
use crate::patience::until;
use crate::problem::Problem;
use crate::stack::Stack;
use crate::stretch::{Stopwatch, Stretch};
use keelway_domain::event::{DEFAULT_SOURCE, PREFIX};
use keelway_domain::ids::context_of;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::keys::MAIN;
use keelway_engine::protocol::{Handled, VISIBLE};
use keelway_engine::sequences::keys::LaneKey;
use keelway_wire::cloudevent::{Origin, parse};
use keelway_world::case::{Answer, Entrance, Said, Stand};
use keelway_world::sequences::{Evaluate, LaneView, Listed, SequencesStand, takes};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// A context is told of a control once more after this time or a little later: timers have whole seconds.
const AGAIN: Span = Span(VISIBLE.0 - 1000);

/// One case's view of a deployed stack.
pub struct CloudStand<'a> {
    stack: &'a Stack,
    observer: &'a Observer,
    stretch: Stretch,
    stopwatch: Option<Stopwatch>,
    /// Messages that the queue hands out up to here have been waited for, in milliseconds since 1970.
    horizon: i64,
    salt: String,
    projects: HashSet<String>,
    applied: HashSet<String>,
    contexts: HashSet<String>,
    inputs: HashSet<String>,
    /// When each context was controlled.
    controls: HashMap<String, Vec<Timestamp>>,
    trouble: Vec<String>,
}

impl<'a> CloudStand<'a> {
    /// For one run of one case.
    pub fn new(stack: &'a Stack, observer: &'a Observer, stretch: Stretch) -> Self {
        let id = fresh().replace('-', "");
        let salt = format!("-{}", &id[id.len() - 8..]);
        let none = HashSet::new;
        let (projects, applied, contexts, inputs) = (none(), none(), none(), none());
        let (stopwatch, horizon, trouble) = (None, 0, vec![]);
        let controls = HashMap::new();
        Self { stack, observer, stretch, stopwatch, horizon, salt, projects, applied, contexts, inputs, controls, trouble }
    }

    /// Whether the steps took more time than the case's spans leave.
    pub fn was_too_slow(&self) -> bool {
        self.stopwatch.as_ref().is_some_and(|stopwatch| self.stretch.is_too_little(stopwatch.steps()))
    }

    /// What went wrong that a case cannot say. The steps after that do nothing: what they would wait for may never come.
    pub fn trouble(&self) -> &[String] {
        &self.trouble
    }

    /// What the functions said about the case's contexts: for the person reading a failure.
    pub fn story(&self) -> String {
        let line = |line: Arc<Line>| {
            let words = ["timestamp", "message.kind", "outcome", "requests"].map(|name| line.text(name).to_owned());
            words.join(" ")
        };
        let mut text: Vec<String> = self.lines().into_iter().map(line).collect();
        text.sort();
        text.join("\n    ")
    }

    fn seen(&self) -> Vec<Arc<Seen>> {
        let keys: HashSet<String> = self.projects.union(&self.contexts).cloned().collect();
        let mut seen = self.observer.events(&keys);
        seen.retain(|seen| !self.inputs.contains(&text(&seen.event["id"])));
        seen
    }

    fn lines(&self) -> Vec<Arc<Line>> {
        self.contexts.iter().flat_map(|context| self.observer.lines(context)).collect()
    }

    /// Waits until nothing is under way any more.
    fn settle(&self) -> Result<(), Problem> {
        rest((self.stack, self.observer), self.horizon, || self.lines(), || self.story())
    }

    /// Waits until one more message of a kind than those known before has been handled.
    fn handled(&self, context: &str, root: Root, before: &HashSet<String>) -> Result<Arc<Line>, Problem> {
        let what = format!("the handling of what came in ({root:?}) in {context}");
        self.observer.wait(&what, |observer| observer.done(context, root).into_iter().find(|line| !before.contains(line.id())))
    }

    fn known(&self, context: &str, root: Root) -> HashSet<String> {
        self.observer.done(context, root).iter().map(|line| line.id().to_owned()).collect()
    }

    /// Puts an event on the bus and waits until a function has handled it: what it made of it.
    fn over_the_bus(&mut self, event: &Value, context: &str) -> Result<Answer, Problem> {
        let source = event["source"].as_str().unwrap_or(DEFAULT_SOURCE);
        let (before, sent) = (self.known(context, Root::Outside), self.now());
        self.stack.put_event(event)?;
        let said = if !takes(source, event["type"].as_str().unwrap_or_default()) {
            // Nobody is to handle it: once one that came after it is handled, this one has been passed over.
            let later = history(context);
            self.inputs.insert(text(&later["id"]));
            self.stack.put_event(&later)?;
            self.handled(context, Root::Outside, &before)?;
            None
        } else if parse(event, Origin::Bus, self.now()).is_err() {
            self.recorded_as_invalid(event, sent)?;
            Some(Said::Handled(Handled::Invalid))
        } else {
            let line = self.handled(context, Root::Outside, &before)?;
            match said(&line) {
                Some(Said::Handled(Handled::Settled)) if self.observer.may_have_committed(context, line.id()) => {
                    Some(Said::Handled(Handled::Committed))
                }
                said => said,
            }
        };
        Ok(Answer { said, problem: String::new() })
    }

    /// What is not even an event has no context its log line could be found by; its record, kept by the day, has its text.
    fn recorded_as_invalid(&self, event: &Value, sent: Timestamp) -> Result<(), Problem> {
        let context = text(&event["shkeptncontext"]);
        let is_it = |body: &str| !context.is_empty() && body.contains(&context);
        let find = || {
            for day in [sent, self.now()].map(|at| keelway_engine::keys::invalid(at, 0).pk) {
                if self.stack.items(&day, "")?.iter().any(|item| item.text("b").is_some_and(is_it)) {
                    return Ok(Some(()));
                }
            }
            Ok(None)
        };
        until("the record of an invalid input", find, || format!("none holds the context {context:?}"))
    }

    /// Posts an event, and waits until it is handled if the API has put it on the bus.
    fn through_the_api(&self, event: &Value, context: &str) -> Result<Answer, Problem> {
        let (before, arrived) = (self.known(context, Root::Outside), self.observer.arrivals(event));
        let reply = self.stack.wait(self.stack.api().post("/v1/event", event))?;
        if reply.status < 300 {
            // An event that was taken before is not put on the bus again.
            marked(self.stack, self.observer)?;
            if event["id"].is_null() || self.observer.arrivals(event) > arrived {
                self.handled(context, Root::Outside, &before)?;
            }
        }
        Ok(answer(reply))
    }

    /// Hands a decision on an approval in, and waits until it is handled if the approval was open.
    fn decision(
        &self,
        (project, context, approval): (&str, &str, &Value),
        ask: impl AsyncFn(&Api) -> Result<Reply, Problem>,
    ) -> Result<Answer, Problem> {
        let api = self.stack.api();
        let open = self.stack.wait(api.open(project, "approval"))?.iter().any(|open| open["id"] == *approval);
        let before = self.known(context, Root::Decision);
        let mut reply = self.stack.wait(ask(api))?;
        if open && reply.status < 400 {
            self.handled(context, Root::Decision, &before)?;
        }
        // 202: it was not in the state in time. Now it is, and the same decision again is told how it went.
        if reply.status == 202 {
            reply = self.stack.wait(ask(api))?;
        }
        Ok(answer(reply))
    }

    /// Posts a command, and waits until the message that it becomes is handled.
    fn asked(&mut self, path: &str, body: &Value, (context, root): (&str, Root)) -> Answer {
        if !self.trouble.is_empty() {
            return Answer::unknown();
        }
        let (before, at) = (self.known(context, root), self.now());
        let reply = self.stack.wait(self.stack.api().post(path, body));
        let step = reply.and_then(|reply| {
            match root {
                _ if reply.status >= 300 => {}
                Root::Control => self.controlled(context, at)?,
                _ => drop(self.handled(context, root, &before)?),
            }
            Ok(answer(reply))
        });
        self.end_of_step(step)
    }

    /// Waits until the context has been told of a control. Each control tells it twice, the second time somewhat later, and on a
    /// busy machine that may be after the next control.
    fn controlled(&mut self, context: &str, at: Timestamp) -> Result<(), Problem> {
        let controls = self.controls.entry(context.to_owned()).or_default();
        controls.push(at);
        let controls = &self.controls[context];
        self.observer.wait(&format!("the control of {context}"), |observer| {
            let due = controls.iter().filter(|at| **at + AGAIN <= self.now()).count();
            (observer.done(context, Root::Control).len() >= controls.len() + due).then_some(())
        })
    }

    /// Ends a step: nothing of it is under way any more. What went wrong on the way fails the case.
    fn end_of_step(&mut self, step: Result<Answer, Problem>) -> Answer {
        let ended = step.and_then(|answer| self.settle().map(|()| answer));
        self.note(ended).unwrap_or_default()
    }

    fn note<T>(&mut self, result: Result<T, Problem>) -> Option<T> {
        result.map_err(|problem| self.trouble.push(problem.0)).ok()
    }
}

/// Waits until nothing is under way any more of what these lines tell of.
pub(crate) fn rest(
    (stack, observer): (&Stack, &Observer),
    horizon: i64,
    lines: impl Fn() -> Vec<Arc<Line>>,
    story: impl Fn() -> String,
) -> Result<(), Problem> {
    let left = || -> Vec<Sent> { under_way(lines().iter().map(Arc::as_ref), horizon).into_iter().cloned().collect() };
    let so_far = || format!("not handled: {:?}\n    {}", left(), story());
    until("the handling of all messages", || Ok(left().is_empty().then_some(())), so_far)?;
    marked(stack, observer)
}

/// Puts a mark on the bus and waits for it: whatever was published before has arrived then.
fn marked(stack: &Stack, observer: &Observer) -> Result<(), Problem> {
    let mark = mark();
    stack.put_event(&mark)?;
    observer.wait("the mark on the bus", |observer| (observer.arrivals(&mark) > 0).then_some(()))
}

fn answer(reply: Reply) -> Answer {
    Answer::status(reply.status, reply.problem())
}

pub(crate) fn said(line: &Line) -> Option<Said> {
    let outcome = line.text("outcome").to_lowercase();
    let words = [
        ("committed", Handled::Committed),
        ("settled", Handled::Settled),
        ("stale", Handled::Stale),
        ("invalid", Handled::Invalid),
        ("recorded", Handled::Recorded),
    ];
    words.into_iter().find(|(word, _)| outcome == *word).map(|(_, handled)| Said::Handled(handled))
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The context an event is handled under; one of its own if it says nothing that leads to one.
fn context_under(event: &Value) -> String {
    let given = |name: &str| event[name].as_str().filter(|text| !text.is_empty());
    match (given("shkeptncontext"), given("id")) {
        (Some(context), _) => context.to_owned(),
        (None, Some(id)) => context_of(event["source"].as_str().unwrap_or(DEFAULT_SOURCE), id).to_string(),
        (None, None) => fresh(),
    }
}

impl Stand for CloudStand<'_> {
    fn salt(&self) -> String {
        self.salt.clone()
    }
    fn ordered(&self) -> bool {
        false
    }
    fn now(&self) -> Timestamp {
        Timestamp(now_millis())
    }
    fn step(&mut self) {
        self.stopwatch.get_or_insert_with(Stopwatch::start);
    }
    fn send(&mut self, event: &Value, at: Entrance) -> Answer {
        if !self.trouble.is_empty() {
            return Answer::unknown();
        }
        let context = context_under(event);
        self.contexts.insert(context.clone());
        let decides = at == Entrance::Api && event["type"] == format!("{PREFIX}approval.finished");
        // A decision handed in at the API comes out again as the engine's own event, and keeps its id.
        if !decides {
            self.inputs.insert(text(&event["id"]));
        }
        let step = match at {
            Entrance::Bus => self.over_the_bus(event, &context),
            Entrance::Api if decides => {
                let project = text(&event["data"]["project"]);
                self.decision((&project, &context, &event["triggeredid"]), async |api| api.post("/v1/event", event).await)
            }
            Entrance::Api => self.through_the_api(event, &context),
        };
        self.end_of_step(step)
    }
    fn wait(&mut self, span: Span) {
        if !self.trouble.is_empty() {
            return;
        }
        let span = self.stretch.span(Duration::from_millis(u64::try_from(span.0).unwrap_or_default()));
        self.stopwatch.get_or_insert_with(Stopwatch::start).wait(span);
        self.horizon = now_millis();
        self.end_of_step(Ok(Answer::unknown()));
    }
    fn outgoing(&mut self) -> Vec<Value> {
        self.seen().iter().map(|seen| seen.event.clone()).collect()
    }
}

impl SequencesStand for CloudStand<'_> {
    fn apply(&mut self, project: &str, shipyard: &str) -> Answer {
        self.projects.insert(project.to_owned());
        let api = self.stack.api();
        let apply = |project: Option<&str>, text: &str| self.stack.wait(api.apply(project, text)).map(answer);
        if self.applied.insert(project.to_owned()) {
            let made = apply(None, &project_manifest(project));
            if !matches!(made, Ok(Answer { said: Some(Said::Status(200..=299)), .. })) {
                return self.note(made).unwrap_or_default();
            }
        }
        let applied = apply(Some(project), &self.stretch.shipyard(shipyard));
        self.note(applied).unwrap_or_default()
    }
    fn decide(&mut self, approval: &Value, approve: bool) -> Answer {
        if !self.trouble.is_empty() {
            return Answer::unknown();
        }
        let (project, context) = (text(&approval["data"]["project"]), text(&approval["shkeptncontext"]));
        let step = self.decision((&project, &context, &approval["id"]), async |api| api.decide(approval, approve).await);
        self.end_of_step(step)
    }
    fn control(&mut self, project: &str, context: &str, stage: Option<&str>, state: &str) -> Answer {
        let body = json!({"state": state, "stage": stage.unwrap_or_default()});
        self.asked(&format!("/v1/sequence/{project}/{context}/control"), &body, (context, Root::Control))
    }
    fn override_windows(&mut self, project: &str, context: &str, stage: Option<&str>, reason: &str) -> Answer {
        let body = json!({"stage": stage.unwrap_or_default(), "reason": reason});
        self.asked(&format!("/v1/sequence/{project}/{context}/override"), &body, (context, Root::Control))
    }
    /// Their times are fixed: such cases are told in the world only.
    fn schedule(&mut self, _: &str, _: &str) -> Answer {
        Answer::unknown()
    }
    fn unschedule(&mut self, _: &str, _: &str) -> Answer {
        Answer::unknown()
    }
    fn retry(&mut self, project: &str, context: &str, stage: Option<&str>, from: Option<&str>) -> Answer {
        let body = json!({"stage": stage.unwrap_or_default(), "from": from.unwrap_or_default()});
        self.asked(&format!("/v1/sequence/{project}/{context}/retry"), &body, (context, Root::Retry))
    }
    fn evaluate(
        &mut self,
        (project, stage, service): (&str, &str, &str),
        (id, context): (&str, &str),
        wanted: &Evaluate,
    ) -> Answer {
        self.contexts.insert(context.to_owned());
        self.inputs.insert(id.to_owned());
        let given = |text: &Option<String>| text.clone().unwrap_or_default();
        let mut body = json!({"id": id, "labels": wanted.labels});
        for (member, value) in [("start", &wanted.start), ("end", &wanted.end), ("timeframe", &wanted.timeframe)] {
            body[member] = given(value).into();
        }
        let path = format!("/v1/project/{project}/stage/{stage}/service/{service}/evaluation");
        self.asked(&path, &body, (context, Root::Outside))
    }
    fn outage(&mut self, _: bool) {
        self.trouble.push("the functions of a stack that others use cannot be stopped".into());
    }
    fn listed(&mut self, project: &str, wanted: &Listed, contexts: &[String]) -> Option<Vec<String>> {
        let label =
            |(name, value): (&String, &Option<String>)| value.as_ref().map_or(name.clone(), |value| format!("{name}={value}"));
        let labels: Vec<String> = wanted.labels.iter().map(label).collect();
        let filter = [
            ("labels", Some(labels.join(","))),
            ("keptnContext", Some(contexts.join(","))),
            ("state", wanted.state.clone()),
            ("name", wanted.name.clone()),
        ];
        let filter: Vec<String> = filter.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value?))).collect();
        let found = self.stack.wait(self.stack.api().get(&format!("/v1/sequence/{project}?pageSize=100&{}", filter.join("&"))));
        let found = self.note(found.and_then(|reply| reply.fine("the list of sequences")))?;
        Some(found["states"].as_array()?.iter().map(|state| text(&state["shkeptncontext"])).collect())
    }
    fn runs(&mut self, project: &str, stage: &str, service: &str) -> Option<Option<String>> {
        let path = format!("/v1/project/{project}/environment?stage={stage}&service={service}");
        let found = self.stack.wait(self.stack.api().get(&path));
        let found = self.note(found.and_then(|reply| reply.fine("the environments")))?;
        Some(found["items"][0]["image"].as_str().map(str::to_owned))
    }
    fn sequence(&mut self, project: &str, context: &str) -> Option<Option<Value>> {
        let found = self.stack.wait(self.stack.api().sequence(project, context));
        Some(self.note(found).flatten())
    }
    fn open(&mut self, project: &str, types: &[String]) -> Option<Vec<Value>> {
        let mut open = vec![];
        for ty in types {
            let found = self.stack.wait(self.stack.api().open(project, ty));
            open.extend(self.note(found).unwrap_or_default());
        }
        Some(open)
    }
    fn lane(&mut self, project: &str, stage: &str, service: &str) -> Option<LaneView> {
        let lane = LaneKey(format!("K#{project}#{stage}#{service}"));
        let items = self.stack.items(&lane.0, "");
        let mut view = LaneView::default();
        for item in self.note(items)? {
            match item.key.sk.as_str() {
                MAIN => view.holder = item.text("h").and(item.text("hc")).map(str::to_owned),
                _ => view.queue.extend(item.text("c").map(str::to_owned)),
            }
        }
        Some(view)
    }
}
