//! A second implementation of the rules for sequences ([docs/shipyard.md](../../../docs/shipyard.md)), which shares no code with
//! the engine. It has one thread, no storage and no redelivery: [`Model`] takes inputs one by one, each with its time, and lists
//! the events that must follow. Random shipyards run on it and on the engine, and must agree.
//!
//! It accepts the shipyards that the engine has accepted, with spans in seconds. Not included: pause, abort, changes of the
//! shipyard, limits of size, and the time frame of an `evaluation`.

mod execution;
pub mod lighthouse;
mod rules;

use execution::{Execution, Lane};
use rules::{aggregate, find, list, merge, only, result_of, span, started_by, text};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// An incoming event, or an event that must be sent.
#[derive(Debug, Clone, Default)]
pub struct Event {
    /// The id. Events that must be sent have the model's own ids.
    pub id: String,
    /// The type without `sh.keptn.event.`.
    pub ty: String,
    /// The source, of incoming events only.
    pub source: String,
    /// The time in milliseconds, of incoming events only.
    pub time: i64,
    #[expect(missing_docs, reason = "the name says it")]
    pub context: String,
    /// The id of the event that it answers.
    pub answers: Option<String>,
    /// The data. A `message` of `null` stands for any text.
    pub data: Value,
}

enum Work {
    Start(Box<Execution>),
    Go(usize),
}

/// The state of the model.
#[derive(Default)]
pub struct Model {
    shipyard: Value,
    limit: usize,
    wrong: &'static str,
    now: i64,
    steps: usize,
    executions: Vec<Execution>,
    counts: BTreeMap<String, usize>,
    lanes: BTreeMap<(String, String), usize>,
    todo: VecDeque<Work>,
    /// The executions that the present step causes.
    children: Vec<Execution>,
    /// All events that must have been sent so far.
    pub events: Vec<Event>,
}

impl Model {
    /// A model of a shipyard, with at most `limit` executions in a context. `wrong`: a planted mistake, to show that differences
    /// are noticed.
    pub fn new(shipyard: Value, limit: usize, wrong: &'static str) -> Self {
        Self { shipyard, limit, wrong, ..Self::default() }
    }

    /// Takes an event: a trigger, an answer, a person's decision, or an event on which sequences may be triggered.
    pub fn take(&mut self, now: i64, event: Event) {
        self.now = now;
        match event.ty.split('.').collect::<Vec<_>>()[..] {
            [_, "started" | "finished"] => self.answer(event),
            [stage, sequence, "triggered"] => self.todo.push_back(self.outside(&event, stage, sequence)),
            _ => {
                let result = |key: &str| (key == "result" && event.data["result"].is_string()).then(|| result_of(&event.data));
                for (stage, sequence) in started_by(&self.shipyard, &event.ty, true, result) {
                    self.todo.push_back(self.outside(&event, &stage, &sequence));
                }
            }
        }
        self.work();
    }

    /// The times at which something happens without an input, with the execution.
    pub fn deadlines(&self) -> BTreeSet<(i64, usize)> {
        let of = |(n, x): (usize, &Execution)| {
            let task = x.sequence["tasks"].get(x.task)?;
            let longest = |name: &str, default: i64| Some(span(&task[name]).unwrap_or(default)).filter(|span| *span > 0);
            let of_task = match &x.open {
                None => x.due,
                Some((_, sent, ..)) if task["name"] == "approval" => longest("timeout", 0).map(|span| sent + span),
                Some((_, sent, None, _)) => longest("startDeadline", 600_000).map(|span| sent + span),
                Some((_, _, Some(started), _)) => longest("timeout", 86_400_000).map(|span| started + span),
            };
            of_task.into_iter().chain(x.timeout()).min().map(|at| (at, n))
        };
        self.executions.iter().enumerate().filter_map(of).collect()
    }

    /// Moves time. `false`: two things happen at the same time, and no rule orders them.
    pub fn pass(&mut self, now: i64) -> bool {
        while let Some((at, n)) = self.deadlines().first().copied().filter(|(at, _)| *at <= now) {
            if self.deadlines().iter().filter(|(other, _)| *other == at).count() > 1 {
                return false;
            }
            self.now = at;
            let x = &mut self.executions[n];
            let (held, task, over) = (x.lane == Lane::Holds, x.task_name(), x.timeout().is_some_and(|timeout| timeout <= at));
            match &x.open {
                None if !over => self.advance(n),
                Some(_) if !over && task == "approval" => self.decided(n, "fail", Some("the clock"), Value::Null),
                // For executors that send no `.started`.
                Some((_, _, None, answers)) if !over && !answers.is_empty() => self.complete(n),
                open => {
                    let silent = !over && open.as_ref().is_some_and(|open| open.2.is_none());
                    let what = format!("task sh.keptn.event.{task}.triggered to receive a correlating .started or .finished event");
                    x.last = json!({"message": silent.then(|| format!("sequence timed out while waiting for {what}"))});
                    self.end(n, "fail", "errored", self.wrong != "what ran into a deadline starts nothing");
                }
            }
            self.settle(n, held);
            self.work();
        }
        true
    }

    fn outside(&self, event: &Event, stage: &str, sequence: &str) -> Work {
        let (context, trigger, payload) = (event.context.clone(), event.id.clone(), event.data.clone());
        let (stage, sequence, place) = (stage.to_owned(), json!({"name": sequence}), (true, self.steps, 0, self.todo.len()));
        Work::Start(Box::new(Execution { context, stage, sequence, trigger, place, payload, ..Execution::default() }))
    }

    fn answer(&mut self, event: Event) {
        let answered = |x: &Execution| x.open.as_ref().is_some_and(|open| Some(&open.0) == event.answers.as_ref());
        let Some(n) = self.executions.iter().position(answered) else { return };
        let x = &mut self.executions[n];
        let (held, approval) = (x.lane == Lane::Holds, x.task_name() == "approval");
        let Some((_, _, first, answers)) = &mut x.open else { return };
        if answers.iter().any(|other| (&other.source, &other.id) == (&event.source, &event.id)) {
            return;
        }
        if approval {
            self.decided(n, result_of(&event.data), Some(&event.source), json!(""));
            return self.settle(n, held);
        }
        if event.ty.ends_with(".started") {
            first.get_or_insert(self.now);
        }
        answers.push(event);
        let started = answers.iter().filter(|event| event.ty.ends_with(".started")).count();
        if started > 0 && answers.len() >= 2 * started {
            self.complete(n);
        }
        self.settle(n, held);
    }

    fn work(&mut self) {
        while let Some(work) = self.todo.pop_front() {
            self.steps += 1;
            match work {
                Work::Start(x) => self.create(*x),
                Work::Go(n) => {
                    self.executions[n].lane = Lane::Holds;
                    self.advance(n);
                    self.settle(n, true);
                }
            }
        }
        self.steps += 1;
    }

    /// A new execution asks for its lane, or cannot start.
    fn create(&mut self, mut x: Execution) {
        let count = self.counts.entry(x.context.clone()).or_default();
        let known = find(&self.shipyard, &x.stage, text(&x.sequence, "name")).filter(|_| *count < self.limit);
        let n = self.executions.len();
        merge(&mut x.payload, &json!({"stage": x.stage, "message": ""}));
        if let Some(sequence) = known {
            *count += 1;
            (x.sequence, x.lane) = (sequence, Lane::Wants);
            self.executions.push(x);
            return self.drive(n);
        }
        x.last = json!({"message": null});
        self.executions.push(x);
        self.end(n, "fail", "errored", false);
    }

    /// Gives a free lane to the first execution that wants it.
    fn drive(&mut self, n: usize) {
        let lane = self.executions[n].lane_key();
        let place = |n: &usize| match (self.wrong, self.executions[*n].place) {
            ("follow-ups queue like triggers", (_, root, caused, number)) => (true, root, caused, number),
            (_, place) => place,
        };
        let wants = |n: &usize| self.executions[*n].lane == Lane::Wants && self.executions[*n].lane_key() == lane;
        if let (Some(next), None) = ((0..self.executions.len()).filter(wants).min_by_key(place), self.lanes.get(&lane)) {
            self.lanes.insert(lane, next);
            self.todo.push_back(Work::Go(next));
        }
    }

    /// After a step, starts what it has caused. If the lane is given back, the first follow-up for this lane comes before all
    /// executions that wait.
    fn settle(&mut self, n: usize, held: bool) {
        let lane = self.executions[n].lane_key();
        let (here, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.children).into_iter().partition(|x| x.stage == lane.0);
        let first = self.executions.len();
        here.into_iter().for_each(|x| self.create(x));
        if held && self.executions[n].lane != Lane::Holds {
            self.lanes.remove(&lane);
            if self.executions.get(first).is_some_and(|x| x.lane == Lane::Wants) {
                self.lanes.insert(lane, first);
                self.todo.push_back(Work::Go(first));
            }
        }
        self.todo.extend(others.into_iter().map(|x| Work::Start(Box::new(x))));
        self.drive(n);
    }

    fn send(&mut self, n: usize, ty: String, answers: Option<String>, data: Value) -> String {
        let (id, context) = (format!("event {}", self.events.len()), self.executions[n].context.clone());
        self.events.push(Event { id: id.clone(), ty, context, answers, data, ..Event::default() });
        id
    }

    /// The data of an event about an execution: its scope, and more.
    fn about(&self, n: usize, more: Value) -> Value {
        let mut data = only(&self.executions[n].payload, &["project", "stage", "service"]);
        merge(&mut data, &more);
        data
    }

    /// An execution that holds its lane continues with its next task.
    fn advance(&mut self, n: usize) {
        let (now, x) = (self.now, &mut self.executions[n]);
        if !std::mem::replace(&mut x.began, true) {
            let ty = format!("{}.{}.started", x.stage, text(&x.sequence, "name"));
            let (mut data, trigger) = (only(&x.payload, &["labels"]), x.trigger.clone());
            merge(&mut data, &self.about(n, json!({"status": "succeeded"})));
            self.send(n, ty, Some(trigger), data);
        }
        let x = &mut self.executions[n];
        let (task, name) = (x.sequence["tasks"][x.task].clone(), x.task_name());
        if now < *x.due.get_or_insert(now + span(&task["triggeredAfter"]).unwrap_or(0)) {
            return;
        }
        x.due = None;
        x.first.get_or_insert(now);
        let mut data = x.payload.clone();
        // The task's own member is always an object.
        merge(&mut data, &json!({&name: task.get("properties").unwrap_or(&json!({}))}));
        let trigger = self.send(n, format!("{name}.triggered"), None, data.clone());
        self.executions[n].open = Some((trigger.clone(), now, None, vec![]));
        if name == "approval" {
            self.approval(n, trigger, &data);
        }
    }

    fn approval(&mut self, n: usize, trigger: String, data: &Value) {
        let x = &self.executions[n];
        // The trigger's own result does not count, and its strategies count only where the shipyard has none.
        let earned = x.task > 0 || !x.place.0;
        let known =
            [&data["result"], &data["evaluation"]["result"]].into_iter().filter_map(Value::as_str).find(|text| !text.is_empty());
        let result = known.filter(|_| earned).map_or("pass", |known| result_of(&json!({"result": known})));
        let own = &x.sequence["tasks"][x.task]["properties"];
        let strategies = [&own[result], &own["pass"], &x.payload["approval"][result], &x.payload["approval"]["pass"]];
        let strategies = strategies.into_iter().enumerate().filter(|(i, _)| result == "warning" || i % 2 == 0);
        let chosen = strategies.filter_map(|(_, chosen)| chosen.as_str()).next();
        let manual = result != "fail" && chosen == Some("manual");
        let message = format!("Approval strategy for result '{result}': {}", if manual { "manual" } else { "automatic" });
        let started = self.about(n, json!({"status": "succeeded", "message": message}));
        self.send(n, "approval.started".into(), Some(trigger), started);
        if !manual {
            self.decided(n, if result == "fail" { "fail" } else { "pass" }, None, json!(""));
        } else if self.wrong != "an approval keeps the lane" {
            self.executions[n].lane = Lane::None;
        }
    }

    fn decided(&mut self, n: usize, result: &'static str, by: Option<&str>, message: Value) {
        let Some((trigger, ..)) = self.executions[n].open.take() else { return };
        let mut data = self.about(n, json!({"status": "succeeded", "result": result, "message": message}));
        merge(&mut data, &by.map_or(json!({}), |by| json!({"approval": {"by": by}})));
        self.executions[n].last = only(&data, &["message"]);
        self.send(n, "approval.finished".into(), Some(trigger), data);
        self.task_done(n, result, "succeeded");
    }

    /// All answers to the open task have come.
    fn complete(&mut self, n: usize) {
        let x = &mut self.executions[n];
        let Some((.., mut answers)) = x.open.take() else { return };
        if self.wrong != "answers merge as they come" {
            answers.sort_by_key(|event| (event.time, event.source.clone(), event.id.clone()));
        }
        let (finished, started): (Vec<_>, Vec<_>) = answers.into_iter().partition(|event| event.ty.ends_with(".finished"));
        for event in started {
            let mut data = only(&event.data, &[&x.task_name(), "labels"]);
            data.as_object_mut().into_iter().for_each(|data| data.retain(|_, of| of.as_object().is_some_and(|of| !of.is_empty())));
            merge(&mut x.payload, &data);
        }
        for event in &finished {
            let mut data = event.data.clone();
            let own = ["project", "stage", "service", "status", "result", "message"];
            data.as_object_mut().into_iter().for_each(|data| data.retain(|name, _| !own.contains(&name.as_str())));
            merge(&mut x.payload, &data);
        }
        x.last = finished.last().map(|event| only(&event.data, &["labels", "message"])).unwrap_or_default();
        let (result, status) = aggregate(finished.iter().map(|event| &event.data));
        self.task_done(n, result, status);
    }

    fn task_done(&mut self, n: usize, result: &'static str, status: &'static str) {
        let x = &mut self.executions[n];
        let task = x.task_name();
        merge(&mut x.payload, &json!({"result": result, "status": status}));
        x.results.push((task.clone(), result));
        x.task += 1;
        // A sequence of the same name takes precedence.
        let stages = list(&self.shipyard["spec"]["stages"]).iter();
        let sequences = stages.filter(|stage| stage["name"] == *x.stage).flat_map(|stage| list(&stage["sequences"]));
        if x.sequence["name"] != *task && !sequences.into_iter().any(|sequence| sequence["name"] == *task) {
            self.set_off(n, &task, result);
        }
        let x = &mut self.executions[n];
        let goes_on = result != "fail" && (status != "errored" || self.wrong == "an errored sequence goes on");
        if !goes_on || x.task == list(&x.sequence["tasks"]).len() {
            self.end(n, result, status, true);
        } else if x.lane == Lane::Holds {
            self.advance(n);
        } else {
            x.lane = Lane::Wants;
        }
    }

    fn end(&mut self, n: usize, result: &'static str, status: &'static str, chains: bool) {
        let x = &mut self.executions[n];
        (x.lane, x.open, x.first, x.task) = (Lane::None, None, None, usize::MAX);
        merge(&mut x.payload, &json!({"result": result, "status": status}));
        let (ty, name) = (format!("{}.{}.finished", x.stage, text(&x.sequence, "name")), text(&x.sequence, "name").to_owned());
        let (more, trigger) = (x.last.clone(), x.trigger.clone());
        let mut data = self.about(n, json!({"status": status, "result": result}));
        merge(&mut data, &more);
        self.send(n, ty, Some(trigger), data);
        if chains {
            self.set_off(n, &name, result);
        }
    }

    /// Causes what is triggered on the end of this task or sequence.
    fn set_off(&mut self, n: usize, ended: &str, result: &'static str) {
        let x = &self.executions[n];
        let selected = |key: &str| match key.strip_suffix(".result") {
            None => Some(result),
            Some(task) => x.results.iter().rfind(|(name, _)| name == task).map(|(_, result)| *result),
        };
        let bare = result == "pass" || (result == "warning" && self.wrong == "a warning fires without selector");
        let event = format!("{}.{ended}.finished", x.stage);
        let (context, root, now) = (x.context.clone(), x.place.1, self.steps);
        for (stage, name) in started_by(&self.shipyard, &event, bare, selected) {
            let mut payload = self.executions[n].payload.clone();
            payload["stage"] = json!(stage);
            let trigger = self.send(n, format!("{stage}.{name}.triggered"), None, payload.clone());
            let (context, place, sequence) = (context.clone(), (false, root, now, self.children.len()), json!({"name": name}));
            self.children.push(Execution { context, stage, sequence, trigger, place, payload, ..Execution::default() });
        }
    }
}
