//! What must hold of evaluations, whatever goes wrong.

use super::plan::{OBJECTIVES, PLACES, PROJECT};
use super::planted::Reads;
use crate::sim::paid;
use keelway_domain::evaluation::{Earlier, Measured, Objectives, Provided, Slo, finish};
use keelway_domain::evaluations::{Answer, Ended, KEPT, MOST_OPEN, Open, Past, Phase, Service};
use keelway_domain::event::{Status, TaskResult};
use keelway_domain::stored::Stored;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::evaluations::keys;
use keelway_engine::item::Item;
use keelway_engine::keys::MAIN;
use keelway_engine::promotions;
use keelway_engine::protocol::Loaded;
use keelway_world::bus::BusTwin;
use keelway_world::evaluations::{Asked, Task};
use keelway_world::table::{Change, Table};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::PoisonError;

/// A window that a task has.
pub type Window = (Timestamp, Timestamp);

/// An evaluation that has ended, as it was when it did; whether it is void has changed since.
#[derive(Debug, Clone)]
struct Known {
    past: Past,
    ended: Ended,
}

/// What the watcher remembers.
#[derive(Default)]
pub struct Watch {
    pub reads: Reads,
    /// The tasks that were triggered, by the ids of their triggers; and by their windows.
    pub tasks: HashMap<String, Task>,
    pub windows: HashMap<Window, String>,
    /// Those that a pipeline has asked for, which no sequence waits for.
    pub asked: HashSet<String>,
    /// Tasks that no sequence waits for, though nobody has answered them.
    pub given_up: HashSet<String>,
    /// The objectives at each place, by commit.
    pub commits: HashMap<String, [Option<usize>; 3]>,
    /// Those that have ended, by place, newest first.
    history: BTreeMap<[String; 3], Vec<Known>>,
    /// When evaluations ended, counted in requests.
    ended: HashMap<String, u64>,
    /// So many requests to sources were looked at.
    looked: usize,
}

fn service(item: &Item) -> Result<Service, String> {
    Loaded::<Service>::read(item).map(|loaded| loaded.x).map_err(|error| error.to_string())
}

/// All services' evaluations.
pub fn services(table: &Table) -> Result<Vec<Service>, String> {
    table.items().filter(|item| item.key.pk.starts_with("EV#") && item.key.sk == MAIN).map(|item| service(item)).collect()
}

/// The same, but for what may change.
fn fixed(open: &Open) -> Value {
    let mut value = serde_json::to_value(open).unwrap_or_default();
    if let Some(members) = value.as_object_mut() {
        members.retain(|name, _| name != "phase" && name != "invalidated");
        // Which time a pipeline has asked.
        members.get_mut("asker").and_then(Value::as_object_mut).map(|asker| asker.remove("time"));
    }
    value
}

/// What a source or the service on the bus has provided. The service says that it passes, whatever it has.
fn provided(open: &Open, ended: &Ended) -> Provided {
    let have = ended.values.iter().filter(|value| value.success).count();
    let result = match (have, ended.values.len()) {
        _ if matches!(open.phase, Phase::Asked { .. }) => TaskResult::Pass,
        (have, all) if have == all => TaskResult::Pass,
        (0, _) => TaskResult::Fail,
        _ => TaskResult::Warning,
    };
    Provided { status: Status::Succeeded, result, message: String::new(), values: ended.values.clone() }
}

impl Watch {
    /// One request changed an item.
    pub fn changed(&mut self, change: &Change, table: &Table, time: u64) -> Result<(), String> {
        if !change.key.pk.starts_with("EV#") || change.key.sk.starts_with("T#") {
            return Ok(());
        }
        let (old, Some(new)) = (&change.old, &change.new) else { return Err(format!("{} was deleted", change.key)) };
        if change.key.sk != MAIN {
            let same = old.as_ref().is_none_or(|old| old.text("j") == new.text("j"));
            return if same { Ok(()) } else { Err(format!("{} was written over", change.key)) };
        }
        if old.as_ref().is_some_and(|old| paid(old, new)) {
            return Ok(());
        }
        let before = old.as_ref().map(|item| service(item)).transpose()?;
        let x = service(new)?;
        if new.version() != old.as_ref().map_or(0, |old| old.version()) + 1 {
            return Err(format!("evaluations of {:?} were written over: {before:?} became {x:?}", x.place));
        }
        let before = before.unwrap_or_else(|| Service::new(x.place.clone(), x.began));
        self.moves(&before, &x, table, time).map_err(|what| format!("{what}: {before:?} became {x:?}"))
    }

    fn moves(&mut self, before: &Service, x: &Service, table: &Table, time: u64) -> Result<(), String> {
        if x.open.len() > MOST_OPEN || x.past.len() > KEPT {
            return Err("more is kept than may be".into());
        }
        if x.wake != x.open.iter().map(|open| open.phase.at()).min() {
            return Err("it is not woken when something is due".into());
        }
        let fresh = x.past.iter().take_while(|past| before.past.iter().all(|other| other.id != past.id)).count();
        let kept = x.past.iter().skip(fresh).zip(&before.past);
        let wrong = |(now, was): (&Past, &Past)| {
            // Which time it was told last may change.
            let answer = |past: &Past| past.told.as_ref().map(|told| told.answer.clone());
            let same = Past { invalidated: was.invalidated, told: was.told.clone(), ..now.clone() } == *was;
            !same || answer(now) != answer(was) || (was.invalidated && !now.invalidated)
        };
        if x.past.len() != KEPT.min(before.past.len() + fresh) || kept.clone().any(wrong) {
            return Err("the past was changed".into());
        }
        for (now, _) in kept {
            let known = self.history.get_mut(&x.place).into_iter().flatten().find(|known| known.past.id == now.id);
            known.into_iter().for_each(|known| known.past.invalidated = now.invalidated);
        }
        for open in &x.open {
            let was = before.open.iter().find(|other| other.id == open.id);
            if was.is_some_and(|was| fixed(was) != fixed(open) || (was.invalidated && !open.invalidated)) {
                return Err("an evaluation became another one".into());
            }
            // What a pipeline asks for that was forgotten meanwhile is evaluated anew.
            let ended = self.ended.contains_key(&open.id) && !self.asked.contains(&open.id);
            if was.is_none() && (ended || before.knows(&open.id) || !self.tasks.contains_key(&open.id)) {
                return Err(format!("{} began again, or nobody asked for it", open.id));
            }
            if was.is_none() {
                self.ended.remove(&open.id);
            }
        }
        for was in &before.open {
            let ended = x.past[..fresh].iter().any(|past| past.id == was.id);
            let goes_on = x.open(&was.id).is_some();
            if !ended && !goes_on && !self.given_up.contains(&was.id) && !self.ended.contains_key(&was.id) {
                return Err(format!("{} was forgotten, though a sequence waits for it", was.id));
            }
        }
        x.past[..fresh].iter().rev().try_for_each(|past| self.ends(before, past, table, time))
    }

    /// An evaluation ends: all of it is written down, and it came to what follows from its values and those before it.
    fn ends(&mut self, before: &Service, past: &Past, table: &Table, time: u64) -> Result<(), String> {
        if self.ended.insert(past.id.clone(), time).is_some() && !self.asked.contains(&past.id) {
            return Err(format!("{} ended twice", past.id));
        }
        let item = table.peek(&keys::ended(&before.place, (&past.id, &past.content)));
        let text = item.and_then(|item| item.text("j")).ok_or("what has ended is not written down")?;
        let ended = Ended::from_json(text).map_err(|error| error.to_string())?;
        if (&ended.id, ended.evaluated, ended.finished["result"].as_str()) != (&past.id, past.evaluated, Some(past.result.as_str()))
        {
            return Err(format!("what is written down is another one: {ended:?}"));
        }
        if let Some(open) = before.open(&past.id).filter(|_| past.evaluated) {
            let expected = self.judged(&before.place, open, &ended)?;
            if expected != ended.finished {
                return Err(format!("the judgement should be\n  {expected}\nand is\n  {}", ended.finished));
            }
        }
        let all = self.history.entry(before.place.clone()).or_default();
        all.insert(0, Known { past: past.clone(), ended });
        Ok(())
    }

    /// The judgement of what was written down, by the objectives of the evaluation's own commit.
    fn judged(&self, place: &[String; 3], open: &Open, ended: &Ended) -> Result<Value, String> {
        let at = PLACES.iter().position(|(stage, service)| place[1] == *stage && place[2] == *service).ok_or("no such place")?;
        let commit = open.revision.as_ref().and_then(|commit| self.commits.get(commit));
        let objectives = commit.ok_or_else(|| format!("the revision was forgotten: {open:?}"))?[at].ok_or("there were none")?;
        let slo: Slo = keelway_wire::evaluation::slo(OBJECTIVES[objectives])?;
        let counts = |known: &&Known| known.past.evaluated && !known.past.invalidated && slo.comparison.counts(known.past.result);
        let all = self.history.get(place).map(Vec::as_slice).unwrap_or_default();
        let earlier: Vec<Earlier> = all.iter().take(KEPT).filter(counts).take(slo.comparison.wanted()).map(earlier).collect();
        let judged = finish(PROJECT, &Objectives::Read(slo), &provided(open, ended), &earlier);
        serde_json::to_value(judged.finished).map_err(|error| error.to_string())
    }

    /// Who asks a source has not read that the evaluation is over.
    pub fn look(&mut self, asked: &[Asked]) -> Result<(), String> {
        for one in &asked[self.looked.min(asked.len())..] {
            let window = (one.period.start, one.period.end);
            let task = self.windows.get(&window).and_then(|id| self.tasks.get(id)).ok_or("a source was asked for no task")?;
            let reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
            let read = reads.get(&(one.worker.clone(), keys::service(&task.place))).copied().unwrap_or(0);
            if self.ended.get(&task.id()).is_some_and(|at| *at < read) {
                return Err(format!("{} has ended, and a source is asked for it: {one:?}", task.id()));
            }
        }
        self.looked = asked.len();
        Ok(())
    }

    /// Nothing is open for longer than it may be. `more`: how far a clock may be wrong.
    pub fn check_open(&self, all: &[Service], now: Timestamp, longest: Span) -> Result<(), String> {
        match all.iter().flat_map(|x| &x.open).find(|open| open.began + longest < now) {
            Some(open) => Err(format!("an evaluation is open for ever: {open:?}")),
            None => Ok(()),
        }
    }

    /// Each task was answered once, unless its sequence gave it up; and the answer is what was written down. `orderly`: no worker
    /// stopped between what it did and what it tells. One that did may tell the beginning after another one told the end, and
    /// sequences wait for both.
    pub fn check_answers(&self, bus: &BusTwin, configured: bool, orderly: bool) -> Result<(), String> {
        let mut told: HashMap<(String, String), Vec<(usize, Value)>> = HashMap::new();
        for (n, publication) in bus.firsts().enumerate() {
            let event: Value = serde_json::from_str(&publication.entry.detail).unwrap_or_default();
            let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
            told.entry((text("triggeredid"), text("type"))).or_default().push((n, event["data"].clone()));
        }
        let of = |id: &str, kind: &str| {
            told.get(&(id.to_owned(), format!("sh.keptn.event.evaluation.{kind}"))).map(Vec::as_slice).unwrap_or_default()
        };
        for id in self.tasks.keys() {
            let (started, finished) = (of(id, "started"), of(id, "finished"));
            if self.asked.contains(id) {
                if started.len() + finished.len() > 0 {
                    return Err(format!("{id} was answered, though no sequence waits for it"));
                }
                continue;
            }
            let wanted = usize::from(configured);
            let once = (started.len(), finished.len()) == (wanted, wanted);
            // A trigger that comes after twenty others of its service had its turn is too late to be told as begun.
            let recent = |all: &Vec<Known>| all.iter().take(KEPT).any(|known| known.past.id == *id);
            let forgotten = self.ended.contains_key(id) && !self.history.values().any(recent);
            let given_up = (self.given_up.contains(id) || forgotten) && started.len() <= wanted && finished.len() <= wanted;
            if !once && !given_up {
                return Err(format!("{id} was answered with {} started and {} finished", started.len(), finished.len()));
            }
            if let (Some((started, _)), Some((finished, _))) = (started.first(), finished.first())
                && started > finished
                && orderly
            {
                return Err(format!("{id} ended before it began"));
            }
        }
        for known in self.history.values().flatten().filter(|known| !self.asked.contains(&known.past.id)) {
            let Some((_, data)) = of(&known.past.id, "finished").first() else {
                return Err(format!("nobody was told that {} has ended", known.past.id));
            };
            let mut data = data.clone();
            let file = data["evaluation"].as_object_mut().and_then(|evaluation| {
                evaluation.remove("timeStart");
                evaluation.remove("timeEnd");
                evaluation.remove("sloFileContent")
            });
            if let Some(members) = data.as_object_mut() {
                members.retain(|name, _| !["project", "stage", "service", "labels"].contains(&name.as_str()));
            }
            let as_told: Value = serde_json::from_str(&keelway_domain::json::canonical(&known.ended.finished)).unwrap_or_default();
            if data != as_told || file.is_none() {
                return Err(format!("told was\n  {data}\nand written down is\n  {as_told}"));
            }
        }
        Ok(())
    }

    /// Each pipeline was told what was written down.
    pub fn check_told(&self, sent: &[String]) -> Result<(), String> {
        let told: Vec<(String, Answer)> = sent
            .iter()
            .filter_map(|text| match promotions::Message::from_json(text) {
                Ok(promotions::Message::Evaluated { id, answer, .. }) => Some((id, answer)),
                _ => None,
            })
            .collect();
        let answers = |id: &str| {
            let ended = self.history.values().flatten().filter(|known| known.past.id == id);
            ended.filter_map(|known| Some(known.past.told.as_ref()?.answer.clone())).collect::<Vec<_>>()
        };
        for id in &self.asked {
            if answers(id).is_empty() || !told.iter().any(|(of, _)| of == id) {
                return Err(format!("a pipeline was never told what {id} came to"));
            }
        }
        match told.iter().find(|(id, answer)| !answers(id).contains(answer)) {
            Some(one) => Err(format!("a pipeline was told something else: {one:?}")),
            None => Ok(()),
        }
    }

    /// How evaluations ended, for statistics.
    pub fn ends_by_word(&self) -> Vec<&'static str> {
        let word = |known: &Known| match (known.past.evaluated, known.past.result) {
            (false, TaskResult::Pass) => "not evaluated",
            (false, _) => "errors",
            (true, TaskResult::Pass) => "passes",
            (true, TaskResult::Warning) => "warnings",
            (true, TaskResult::Fail) => "fails",
        };
        let compared = |known: &&Known| known.ended.finished["evaluation"].get("comparedEvents").is_some();
        let void = |known: &&Known| known.past.invalidated;
        let all = || self.history.values().flatten();
        let marks = all().filter(compared).map(|_| "compared").chain(all().filter(void).map(|_| "void"));
        all().map(word).chain(marks).collect()
    }
}

fn earlier(known: &Known) -> Earlier {
    let values: Vec<Measured> = known.ended.values.clone();
    Earlier { id: known.past.finished.clone(), result: known.past.result, invalidated: false, values }
}

/// The values that the service on the bus provides.
pub fn data(values: &[(&str, Option<i64>)]) -> Value {
    let value = |(metric, value): &(&str, Option<i64>)| match value {
        Some(value) => json!({"metric": metric, "value": value, "success": true}),
        None => json!({"metric": metric, "value": 0, "success": false, "message": "none"}),
    };
    let values: Vec<Value> = values.iter().map(value).collect();
    json!({"status": "succeeded", "result": "pass", "get-sli": {"indicatorValues": values}})
}
