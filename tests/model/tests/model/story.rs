//! One story on the engine and on the model.

use crate::shipyards::{self, HAPPENINGS, TASKS, value, yaml};
use crate::stats::Stats;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::sequences::Limits;
use keelway_model::{Event, Model};
use keelway_world::case::{Entrance, Said, Stand};
use keelway_world::rng::Rng;
use keelway_world::sequences::{SequencesStand, SequencesWorld};
use keelway_world::story::Mode;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

const PREFIX: &str = "sh.keptn.event.";
/// The most executions of a context: shipyards may contain loops.
const LIMIT: usize = 12;

/// A triggered task: its event, and what executors will do about it.
struct Asked {
    event: Value,
    answers: Vec<Value>,
    given: Vec<Value>,
}

struct Told {
    rng: Rng,
    stand: SequencesWorld,
    model: Model,
    /// The engine's ids of the model's events.
    ids: HashMap<String, String>,
    asked: Vec<Asked>,
    seen: (usize, usize),
    number: usize,
    lines: Vec<String>,
    trace: bool,
    stats: Stats,
    /// From here on, both may be right.
    unclear: bool,
}

/// Tells the story of a seed.
///
/// # Errors
/// The first difference, and what led to it.
pub fn tell(seed: u64, shipyard: &Value, wrong: &'static str) -> Result<Stats, String> {
    // Only the second telling records what happened, for people.
    told(seed, shipyard, wrong, false).or_else(|_| told(seed, shipyard, wrong, true))
}

fn told(seed: u64, shipyard: &Value, wrong: &'static str, trace: bool) -> Result<Stats, String> {
    let mut stand = SequencesWorld::with(Mode::Clean, Limits { max_executions: LIMIT as u32, ..Limits::default() });
    let applied = stand.apply("p", &yaml(shipyard));
    assert_eq!(applied.said, Some(Said::Status(200)), "{}\n{}", applied.problem, yaml(shipyard));
    let mut told = Told {
        rng: Rng::new(seed ^ 0xface),
        stand,
        model: Model::new(shipyard.clone(), LIMIT, wrong),
        ids: HashMap::new(),
        asked: vec![],
        seen: (0, 0),
        number: 0,
        lines: vec![],
        trace,
        stats: Stats::default(),
        unclear: false,
    };
    let steps = 15 + told.rng.below(40);
    let done =
        (0..steps).try_for_each(|_| if told.unclear { Ok(()) } else { told.step(shipyard) }).and_then(|()| told.come_to_an_end());
    done.map_err(|difference| format!("{}\n{difference}", told.lines.join("\n")))?;
    Ok(told.stats)
}

impl Told {
    fn now(&self) -> Timestamp {
        self.stand.now()
    }

    fn note(&mut self, what: impl Fn() -> String) {
        if self.trace {
            self.lines.push(format!("{} {}", self.now().rfc3339(), what()));
        }
    }

    fn step(&mut self, shipyard: &Value) -> Result<(), String> {
        self.stand.step();
        self.pass();
        self.compare()?;
        match self.rng.below(20) {
            0..3 => self.trigger(shipyard),
            3 => self.happen(),
            4..7 => self.wait(),
            _ => self.react(),
        }
        self.compare()
    }

    /// Everything that waits runs into its deadline.
    fn come_to_an_end(&mut self) -> Result<(), String> {
        for _ in 0..200 {
            let Some((at, _)) = self.model.deadlines().pop_first().filter(|_| !self.unclear) else { return Ok(()) };
            self.wait_until(Timestamp(at));
            self.compare()?;
        }
        Err("it never ends".into())
    }

    fn put_in(&mut self, ty: &str, source: &str, id: &str, context: &str, answers: Option<&str>, data: Value) -> Value {
        // The clocks of executors differ.
        let time = Timestamp(self.now().0 - 30_000 + 1_000 * self.rng.below(60) as i64);
        let mut event = json!({
            "specversion": "1.0", "datacontenttype": "application/json", "shkeptnspecversion": "0.2.4", "type": format!("{PREFIX}{ty}"),
            "source": source, "id": id, "time": time.rfc3339(), "shkeptncontext": context, "data": data,
        });
        answers.into_iter().for_each(|id| event["triggeredid"] = json!(id));
        event
    }

    fn send(&mut self, event: &Value) {
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        self.note(|| format!("{event}"));
        self.stand.send(event, Entrance::Bus);
        let answers = event["triggeredid"].as_str().map(|id| self.model_id(id));
        let (source, context, data) = (text("source"), text("shkeptncontext"), event["data"].clone());
        let time = Timestamp::parse_lenient(&text("time")).unwrap_or_default().0;
        let ty = text("type").trim_start_matches(PREFIX).to_owned();
        self.model.take(self.stand.now().0, Event { id: text("id"), ty, source, time, context, answers, data });
    }

    fn model_id(&self, engine: &str) -> String {
        self.ids.iter().find(|(_, known)| *known == engine).map_or(engine.to_owned(), |(id, _)| id.clone())
    }

    fn outside(&mut self, ty: &str, stage: &str) {
        self.number += 1;
        let (id, context) = (format!("trigger-{}", self.number), format!("c{}", self.rng.below(4)));
        let mut data = self.data("a");
        let service = *self.rng.pick(&["carts", "carts", "carts", "orders"]);
        keelway_world::case::merge(
            data.as_object_mut().expect("an object"),
            json!({"project": "p", "stage": stage, "service": service}).as_object().expect("an object"),
        );
        if self.rng.chance(20.0) {
            data["result"] = json!(self.rng.pick(&["pass", "warning", "fail", ""]));
        }
        if self.rng.chance(10.0) {
            data["message"] = json!("said before");
        }
        let event = self.put_in(ty, "client", &id, &context, None, data);
        self.send(&event);
    }

    fn trigger(&mut self, shipyard: &Value) {
        let stages = shipyard["spec"]["stages"].as_array().expect("stages").clone();
        let stage = self.rng.pick(&stages).clone();
        let sequences = stage["sequences"].as_array().cloned().unwrap_or_default();
        let name = match self.rng.below(10) {
            0 => "evaluation".to_owned(),
            1 => "unknown".to_owned(),
            _ if sequences.is_empty() => return,
            _ => self.rng.pick(&sequences)["name"].as_str().unwrap_or_default().to_owned(),
        };
        let stage = stage["name"].as_str().unwrap_or_default();
        self.outside(&format!("{stage}.{name}.triggered"), stage);
    }

    fn happen(&mut self) {
        let ty = *self.rng.pick(&HAPPENINGS);
        self.outside(ty, "dev");
    }

    fn wait(&mut self) {
        let until = match self.model.deadlines().pop_first() {
            Some((at, _)) if self.rng.chance(60.0) => Timestamp(at),
            _ => self.now() + Span::seconds(self.rng.below(50) as i64),
        };
        self.wait_until(until);
    }

    fn wait_until(&mut self, until: Timestamp) {
        let until = until.max(self.now());
        self.note(|| format!("wait until {}", until.rfc3339()));
        let now = self.now();
        self.stand.wait(until - now);
        self.pass();
        self.stats.count("waits");
    }

    fn pass(&mut self) {
        let now = self.now().0;
        if !self.unclear && !self.model.pass(now) {
            self.unclear = true;
            self.stats.count("cut off by a tie");
        }
    }

    /// An executor answers one of the last triggered tasks.
    fn react(&mut self) {
        let last = self.asked.len();
        if last == 0 {
            return;
        }
        let n = last - 1 - self.rng.below(last.min(5));
        if self.asked[n].event["type"] == "sh.keptn.event.approval.triggered" {
            return self.decide(n);
        }
        let asked = &mut self.asked[n];
        let repeats = asked.answers.is_empty() || (!asked.given.is_empty() && self.rng.chance(8.0));
        let event = if repeats {
            let mut event = self.rng.pick(&asked.given).clone();
            if self.rng.chance(20.0) {
                event["data"]["a"] = json!("another text under the same id");
            }
            event
        } else {
            let next = if self.rng.chance(70.0) { 0 } else { self.rng.below(asked.answers.len()) };
            let event = asked.answers.remove(next);
            asked.given.push(event.clone());
            event
        };
        self.send(&event);
    }

    fn decide(&mut self, n: usize) {
        let (event, approve) = (self.asked[n].event.clone(), self.rng.chance(70.0));
        self.note(|| format!("{} {}", if approve { "approve" } else { "decline" }, event["id"]));
        self.stand.decide(&event, approve);
        let answers = event["id"].as_str().map(|id| self.model_id(id));
        let data = json!({"result": if approve { "pass" } else { "fail" }});
        let (ty, source) = ("approval.finished".to_owned(), "somebody".to_owned());
        self.model.take(self.stand.now().0, Event { ty, source, answers, data, ..Event::default() });
        self.stats.count("approvals");
    }

    fn data(&mut self, task: &str) -> Value {
        let mut data = json!({});
        for name in ["a", "b", task] {
            if self.rng.chance(30.0) {
                data[name] = value(&mut self.rng, 2);
            }
        }
        if self.rng.chance(30.0) {
            data["labels"] = json!({*self.rng.pick(&["owner", "team"]): self.rng.pick(&["me", "you"])});
        }
        if self.rng.chance(10.0) {
            data["labels"] = json!({});
        }
        if self.rng.chance(10.0) {
            let of = *self.rng.pick(&TASKS);
            data[of] = shipyards::object(&mut self.rng, 1);
        }
        data
    }

    /// What the executors of a task will do: one to three of them, with or without `.started`.
    fn plan(&mut self, trigger: &Value) -> Vec<Value> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let task = text(&trigger["type"]).trim_start_matches(PREFIX).trim_end_matches(".triggered").to_owned();
        let (id, context) = (text(&trigger["id"]), text(&trigger["shkeptncontext"]));
        let mut answers = vec![];
        let executors = *self.rng.pick(&[1, 1, 1, 1, 2, 3]);
        if executors > 1 {
            self.stats.count("several executors");
        }
        for n in 0..executors {
            let silent = self.rng.chance(8.0);
            for kind in ["started", "finished"].into_iter().skip(usize::from(silent)) {
                let mut data = self.data(&task);
                for member in ["project", "stage", "service"] {
                    data[member] = trigger["data"][member].clone();
                }
                if kind == "finished" || self.rng.chance(20.0) {
                    let result = *self.rng.pick(&["pass", "pass", "pass", "pass", "pass", "warning", "warning", "fail", "odd"]);
                    let mut statuses = vec!["succeeded"; 12];
                    statuses.extend(["errored", "aborted", "unknown", ""]);
                    data["result"] = json!(result);
                    data["status"] = json!(self.rng.pick(&statuses));
                    if result == "warning" {
                        self.stats.count("warnings");
                    }
                }
                if self.rng.chance(30.0) {
                    data["message"] = json!(format!("{kind} by {n}"));
                }
                let (ty, by) = (format!("{task}.{kind}"), format!("executor-{n}"));
                let event = self.put_in(&ty, &by, &format!("{id}-{kind}-{n}"), &context, Some(&id), data);
                answers.push(event);
            }
        }
        answers
    }

    /// Compares what both have sent since the last time.
    fn compare(&mut self) -> Result<(), String> {
        if self.unclear {
            return Ok(());
        }
        let sent: Vec<Value> = {
            let core = self.stand.story.world.core();
            let fresh = core.bus.firsts().skip(self.seen.0);
            fresh.map(|published| serde_json::from_str(&published.entry.detail).expect("an event")).collect()
        };
        let said: Vec<Event> = self.model.events[self.seen.1..].to_vec();
        self.seen = (self.seen.0 + sent.len(), self.seen.1 + said.len());
        sent.iter().for_each(|event| self.note(|| format!("    > {event}")));
        let stream = |context: &str, data: &Value| format!("{context} {} {}", data["stage"], data["service"]);
        let mut streams: BTreeMap<String, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
        for (n, event) in sent.iter().enumerate() {
            streams.entry(stream(event["shkeptncontext"].as_str().unwrap_or_default(), &event["data"])).or_default().0.push(n);
        }
        for (n, event) in said.iter().enumerate() {
            streams.entry(stream(&event.context, &event.data)).or_default().1.push(n);
        }
        let mut places = vec![0; said.len()];
        for (stream, (engine, model)) in &streams {
            let types = |types: Vec<&str>| types.join(", ");
            let engine_types =
                types(engine.iter().map(|n| sent[*n]["type"].as_str().unwrap_or_default().trim_start_matches(PREFIX)).collect());
            let model_types = types(model.iter().map(|n| said[*n].ty.as_str()).collect());
            if engine_types != model_types {
                return Err(format!("in {stream}\n  engine: {engine_types}\n  model:  {model_types}"));
            }
            for (e, m) in engine.iter().zip(model) {
                self.ids.insert(said[*m].id.clone(), sent[*e]["id"].as_str().unwrap_or_default().to_owned());
                places[*m] = *e;
            }
        }
        for (m, event) in said.iter().enumerate() {
            self.same(event, &sent[places[m]])?;
            let chained = event.ty.ends_with(".triggered") && event.ty.matches('.').count() == 2;
            self.count(event, chained);
            // What an end sets off is sent after it.
            let cause =
                said[..m].iter().rposition(|before| !(before.ty.ends_with(".triggered") && before.ty.matches('.').count() == 2));
            if let Some(cause) = cause.filter(|cause| chained && said[*cause].ty.ends_with(".finished"))
                && places[cause] > places[m]
            {
                return Err(format!("{} is sent before {}", event.ty, said[cause].ty));
            }
        }
        for event in sent {
            let ty = event["type"].as_str().unwrap_or_default();
            if ty.ends_with(".triggered") && ty.split('.').count() == 5 {
                let answers = self.plan(&event);
                self.asked.push(Asked { event, answers, given: vec![] });
            }
        }
        Ok(())
    }

    fn count(&mut self, event: &Event, chained: bool) {
        if chained {
            self.stats.count("follow-ups");
        }
        match event.data["message"].as_str() {
            Some(message) if message.starts_with("sequence timed out") => self.stats.count("deadlines"),
            None if event.ty.ends_with(".finished") && event.data["status"] == "errored" => self.stats.count("not started"),
            _ => {}
        }
    }

    fn same(&self, said: &Event, sent: &Value) -> Result<(), String> {
        let (mut model, mut engine) = (said.data.clone(), sent["data"].clone());
        let any = model["message"].is_null() && model.get("message").is_some();
        for data in [&mut model, &mut engine] {
            let object = data.as_object_mut().ok_or("no data")?;
            if any || object.get("message").is_some_and(|message| message == "") {
                object.remove("message");
            }
        }
        if said.ty == "evaluation.triggered" {
            let window = engine["evaluation"].as_object_mut().ok_or("no window")?;
            ["start", "end", "timeframe"].iter().for_each(|name| drop(window.remove(*name)));
        }
        if model != engine {
            return Err(format!("data of {}\n  engine: {engine}\n  model:  {model}", said.ty));
        }
        let answers = said.answers.as_ref().map(|id| self.ids.get(id).unwrap_or(id).as_str());
        if answers != sent["triggeredid"].as_str() {
            return Err(format!("{} answers {}, and should answer {answers:?}", said.ty, sent["triggeredid"]));
        }
        Ok(())
    }
}
