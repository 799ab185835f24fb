//! What must hold in the simulation of promotions, as the world's log tells it: the host, the bus, and what people asked for.

use super::host::{Host, State};
use super::judge::Book;
use super::{app, target};
use crate::sim::Decoded;
use keelway_domain::promotions::definition::{Definition, EvaluationSpec, Target};
use keelway_domain::promotions::observe::{First, Observations, Observed, first};
use keelway_domain::promotions::{Command, Decision, Facts, Input, Pipeline, decide};
use keelway_domain::stored::Stored;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::item::{Item, Key};
use keelway_engine::keys::MAIN;
use keelway_engine::promotions::{Address, keys};
use keelway_world::table::{Change, Table};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// What was seen so far besides the host.
#[derive(Debug, Default)]
pub struct Watch {
    /// How far clocks differ at most.
    pub skew: Span,
    /// The time, as far as known.
    pub now: Timestamp,
    /// By pipeline, environment and revision: somebody has asked to approve it.
    approved: BTreeSet<(String, String, String)>,
    /// By pipeline and environment: somebody has asked for another attempt.
    retried: BTreeSet<(String, String)>,
    /// By pipeline and environment: somebody has asked for its release.
    released: BTreeSet<(String, String)>,
    /// By pipeline and environment: it is held on this revision, since when at the latest.
    held: BTreeMap<(String, String), (String, Timestamp)>,
    /// When a target was first known to be healthy on a revision.
    healthy: HashMap<(Key, String), Timestamp>,
}

/// The pipeline that an item holds.
pub(super) fn decode(item: &Arc<Item>) -> Result<Arc<Pipeline>, String> {
    thread_local!(static STATES: Decoded<Pipeline> = const { Decoded::new() });
    STATES.with(|states| states.state(item))
}

impl Watch {
    /// Somebody asks for something.
    pub fn asked(&mut self, to: &Address, command: &Command) {
        let name = to.to_string();
        match command {
            Command::Approve(at) => drop(self.approved.insert((name, at.environment.clone(), at.revision.clone()))),
            Command::Retry(environment) => drop(self.retried.insert((name, environment.clone()))),
            Command::Release(environment) => drop(self.released.insert((name, environment.clone()))),
            _ => {}
        }
    }

    /// A command was obeyed.
    pub fn obeyed(&mut self, to: &Address, command: &Command) {
        if let Command::Hold(at) = command {
            let place = (to.to_string(), at.environment.clone());
            let since = self.now + Span(2 * self.skew.0);
            match self.held.get(&place) {
                Some((revision, _)) if *revision == at.revision => {}
                // Of two that are obeyed at about the same time, any may be the later one.
                Some(_) => drop(self.released.insert(place)),
                None => drop(self.held.insert(place, (at.revision.clone(), since))),
            }
        }
    }

    /// What one request changed.
    pub fn changed(&mut self, change: &Change) -> Result<(), String> {
        let (Some(old), Some(new)) = (&change.old, &change.new) else {
            if let Some(new) = change.new.as_ref().filter(|_| is_fact(&change.key)) {
                self.learn(&change.key, new.text("j"));
            }
            return Ok(());
        };
        // A promotion is in one attribute, a command in another.
        let overwritten = ["j", "c"].iter().any(|name| old.text(name) != new.text(name));
        if (change.key.sk.starts_with("T#") || change.key.sk.starts_with(keys::HISTORY)) && overwritten {
            return Err(format!("{} was overwritten with other content", change.key));
        }
        if is_fact(&change.key) {
            if new.number("n") < old.number("n") {
                return Err(format!("a fact was replaced by an older one: {:?} by {:?}", old.text("j"), new.text("j")));
            }
            self.learn(&change.key, new.text("j"));
        }
        if !change.key.pk.starts_with("P#") || change.key.sk != MAIN {
            return Ok(());
        }
        if new.version() != old.version() + 1 {
            return Err(format!("version {} became {}", old.version(), new.version()));
        }
        let (before, after) = (decode(old)?, decode(new)?);
        for (name, state) in &before.environments {
            let pair = state.promotion.as_ref().zip(after.environments.get(name).and_then(|state| state.promotion.as_ref()));
            let same = pair.filter(|(old, new)| (old.run, old.again) == (new.run, new.again));
            if let Some((old, new)) = same.filter(|(old, new)| old.phase.is_final() && !new.phase.is_final()) {
                return Err(format!("a promotion that was over goes on: {old:?} became {new:?}"));
            }
        }
        Ok(())
    }

    /// A target is healthy on a revision from the beginning.
    pub fn begins_healthy(&mut self, target: &Target, revision: &str) {
        self.healthy.insert((keys::observation(&app(), target), revision.to_owned()), Timestamp(0));
    }

    fn learn(&mut self, key: &Key, fact: Option<&str>) {
        let observed = fact.and_then(|text| Observed::from_json(text).ok());
        if let Some(revision) = observed.filter(|observed| observed.ready).and_then(|observed| observed.revision) {
            self.healthy.entry((key.clone(), revision)).or_insert(self.now);
        }
    }

    /// An event was published for the first time.
    pub fn published(
        &self,
        event: &Value,
        pipelines: &[(Address, Definition)],
        (host, judged): (&Host, &Book),
    ) -> Result<(), String> {
        let text = |name: &str| event["data"][name].as_str().unwrap_or_default().to_owned();
        let name = format!("{}/{}", text("project"), text("pipeline"));
        let (environment, revision) = (text("environment"), text("revision"));
        let Some((_, definition)) = pipelines.iter().find(|(to, _)| to.to_string() == name) else { return Ok(()) };
        let wrong = |what: &str| Err(format!("{what}: {event}"));
        match event["type"].as_str().unwrap_or_default().rsplit('.').next() {
            Some("started") => {
                let at = Timestamp::parse(event["time"].as_str().unwrap_or_default()).unwrap_or_default();
                let Some((place, spec)) = definition.environment(&environment) else { return wrong("an unknown environment") };
                let manual = definition.promotion(spec).is_some_and(|promotion| promotion.manual);
                if manual && !self.approved.contains(&(name.clone(), environment.clone(), revision.clone())) {
                    return wrong("nobody has approved it");
                }
                let place_of = (name.clone(), environment);
                if let Some((held, since)) = self.held.get(&place_of).filter(|_| !self.released.contains(&place_of))
                    && *held != revision
                    && at > *since
                {
                    return wrong(&format!("the environment is held on {held}"));
                }
                let before = &definition.environments[place.saturating_sub(1)];
                for target in before.soak.iter().flat_map(|_| &before.targets) {
                    let soak = before.soak.unwrap_or_default();
                    let since = self.healthy.get(&(keys::observation(&app(), target), revision.clone()));
                    if since.is_none_or(|since| at + Span(2 * self.skew.0) < *since + soak) {
                        return wrong(&format!("it has not soaked in {}", before.name));
                    }
                }
                let soak = before.soak.unwrap_or_default();
                let passed = |spec: &EvaluationSpec| judged.has_passed((&name, &before.name, &revision), soak, spec.strict);
                if !before.evaluation.as_ref().is_none_or(passed) {
                    return wrong(&format!("no evaluation of it has passed in {}", before.name));
                }
                Ok(())
            }
            Some("succeeded") => {
                let run = event["data"]["run"].as_u64().unwrap_or_default();
                let is = |of: &super::host::Of| {
                    (of.pipeline == name && of.environment == environment) && of.revision == revision && of.run == run
                };
                let merged = || host.requests.iter().any(|request| is(&request.of) && request.state == State::Merged);
                let told = || host.told.iter().any(|told| is(&told.of));
                match text("reason").as_str() {
                    "Merged" if !merged() => wrong("it was not merged"),
                    "Promoted" if !told() => wrong("nobody was told"),
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// What the host says, whatever the engine believes.
    pub fn host(&self, host: &Host) -> Result<(), String> {
        let mut requests: HashMap<(&str, &str, &str, u64), u32> = HashMap::new();
        for (place, request) in host.requests.iter().enumerate() {
            let of = &request.of;
            if host.requests[..place].iter().any(|other| other.of.identity == of.identity) {
                return Err(format!("two pull requests for one promotion: {request:?}"));
            }
            let all = requests.entry((&of.pipeline, &of.environment, &of.revision, of.run)).or_default();
            *all += 1;
            if *all > 1 && !self.retried.contains(&(of.pipeline.clone(), of.environment.clone())) {
                return Err(format!("nobody has asked for another pull request: {request:?}"));
            }
        }
        for (place, told) in host.told.iter().enumerate() {
            let same = |other: &&super::host::Told| other.of.identity == told.of.identity && other.attempt == told.attempt;
            // A client that got no answer may have asked twice in one request.
            if host.told[..place].iter().filter(same).any(|other| other.at != told.at) {
                return Err(format!("one attempt was carried out twice: {told:?}"));
            }
        }
        Ok(())
    }
}

fn is_fact(key: &Key) -> bool {
    key.pk.starts_with("O#") && key.sk == MAIN
}

/// When nothing is left to do: what is known is what was reported last, and the run is the one that a pipeline would begin that
/// knew nothing else. So it depends on the facts, and not on their order.
pub fn follows_from_facts(
    table: &Table,
    pipelines: &[(Address, Definition)],
    runs: &BTreeMap<Target, (String, bool)>,
    targets: usize,
    now: Timestamp,
) -> Result<(), String> {
    let mut observations = Observations::new();
    for (target, (revision, ready)) in runs {
        let fact = table.peek(&keys::observation(&app(), target)).and_then(|item| item.text("j").map(str::to_owned));
        let Some(observed) = fact.and_then(|text| Observed::from_json(&text).ok()) else {
            return Err(format!("nothing is known about {target}"));
        };
        if observed.revision.as_ref() != Some(revision) || observed.ready != *ready {
            return Err(format!("{target} runs {revision}, and this is known: {observed:?}"));
        }
        observations.insert(target.clone(), observed);
    }
    let dev: BTreeSet<_> = (0..targets).map(|place| target("dev", place)).collect();
    for (to, definition) in pipelines {
        let Some(item) = table.peek(&keys::pipeline(to)) else { return Err(format!("{to} is gone")) };
        let x = decode(item)?;
        let uniform = matches!(first(&definition.environments[0], &observations, definition.compare), First::Current(_));
        let facts = Facts { now, cause: Default::default(), definition: Some(definition), observations: &observations };
        let fresh = match decide(&Pipeline::new(&to.namespace, &to.name, now), Input::Evaluate, &facts) {
            Decision::Commit(transition) => transition.next.run,
            _ => None,
        };
        let revision = |run: &Option<keelway_domain::promotions::Run>| run.as_ref().map(|run| run.revision.clone());
        let finishes = definition.in_flight == keelway_domain::promotions::definition::InFlight::Finish;
        if uniform && !finishes && revision(&fresh) != revision(&x.run) {
            return Err(format!("{to} promotes {:?}, and {dev:?} run {:?}", revision(&x.run), revision(&fresh)));
        }
    }
    Ok(())
}
