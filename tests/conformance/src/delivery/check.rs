//! What must hold after every request: what one engine did because of another one was so at that moment, or had been.

use super::hand::Shared;
use super::manifests::{app, target};
use super::{STAGES, config, pipeline, project};
use crate::deployments::{self, waits_for};
use crate::promotions::judge::Verdicts;
use crate::sim::{Stats, paid};
use keelway_domain::deployments::{Config, Deployment, Past, Status, Task, Why};
use keelway_domain::event::CloudEvent;
use keelway_domain::ids::RecordId;
use keelway_domain::promotions::definition::EnvironmentSpec;
use keelway_domain::promotions::{Closing, Made, Phase, Pipeline, Promotion};
use keelway_domain::sequences::{End, Execution};
use keelway_domain::shipyard::{DEPLOYMENT_CONFIG, Shipyard};
use keelway_domain::stored::Stored;
use keelway_domain::time::{Span, Timestamp};
use keelway_domain::windows::Window;
use keelway_engine::deployments::keys as configs;
use keelway_engine::item::{Item, Key};
use keelway_engine::promotions::keys as promotions;
use keelway_engine::protocol::Loaded;
use keelway_engine::sequences::keys;
use keelway_world::table::{Change, Table};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What was seen so far.
pub struct Watch {
    /// Every execution, by its item's key.
    pub executions: BTreeSet<Key>,
    /// The shipyards that were ever applied, by their revisions.
    pub shipyards: BTreeMap<String, Arc<Shipyard>>,
    /// By stage: the revisions that versions of its config completed.
    pub(super) complete: BTreeSet<(usize, String)>,
    /// By the items of facts about targets: the revisions that they were observed to run, ready.
    pub(super) observed: BTreeSet<(Key, String)>,
    /// By stage: the versions that were completed lately, with their revisions.
    pub carried_out: Vec<(usize, u64, String)>,
    /// By stage: whether its config follows a tag, and whether by itself.
    pub follows: Vec<Option<bool>>,
    /// What must hold of each config whatever the others do.
    pub deployed: deployments::Watch,
    /// When each version began, by its stage and number.
    pub(super) began: BTreeMap<(usize, u64), Timestamp>,
    /// How far two clocks differ at most.
    pub margin: Span,
    /// What lies outside.
    pub(super) yard: Shared,
    /// The item of each fact from a cluster, with its stage.
    pub(super) in_clusters: Vec<(Key, usize)>,
    /// The tasks that a complete version carried out.
    carried: BTreeSet<String>,
    /// By stage, run and how often it was begun anew: the contexts of the sequences that were triggered for a promotion.
    triggered: BTreeMap<(String, u64), BTreeSet<String>>,
    /// By stage and run: how often a promotion was begun anew.
    again: BTreeMap<(String, u64), u32>,
    /// The approvals that were given, with the revision that each was meant for.
    pub approvals: BTreeMap<u64, String>,
    /// The contexts that somebody has aborted, and those whose promotion was given up, whatever becomes of it then.
    pub aborted: BTreeSet<String>,
    /// When nothing is promoted.
    pub windows: Vec<Window>,
    /// The environments as the pipeline has them: where its revisions are evaluated.
    pub measured: Vec<EnvironmentSpec>,
    /// What the evaluations have come to.
    pub(super) verdicts: Verdicts,
    /// The item of each fact, config and pipeline.
    facts: Vec<Key>,
    configs: Vec<Key>,
    pipeline: Key,
    /// What happened.
    pub stats: Stats,
}

fn read<S: keelway_engine::protocol::Subject>(item: &Item) -> Result<S, String> {
    Loaded::<S>::read(item).map(|loaded| loaded.x).map_err(|error| error.to_string())
}

impl Watch {
    /// Nothing has happened yet.
    pub fn new(verdicts: Verdicts, yard: Shared) -> Self {
        Self {
            carried_out: vec![],
            follows: vec![],
            deployed: deployments::Watch::new(&STAGES.map(config)),
            began: BTreeMap::new(),
            margin: Span(0),
            yard,
            in_clusters: vec![],
            executions: BTreeSet::new(),
            shipyards: BTreeMap::new(),
            complete: BTreeSet::new(),
            observed: BTreeSet::new(),
            carried: BTreeSet::new(),
            triggered: BTreeMap::new(),
            again: BTreeMap::new(),
            approvals: BTreeMap::new(),
            aborted: BTreeSet::new(),
            windows: vec![],
            measured: vec![],
            verdicts,
            facts: STAGES.iter().map(|stage| promotions::observation(&app(), &target(stage))).collect(),
            configs: STAGES.iter().map(|stage| configs::config(&config(stage))).collect(),
            pipeline: promotions::pipeline(&pipeline()),
            stats: Stats::default(),
        }
    }

    /// An item was changed.
    ///
    /// # Errors
    /// It may not be.
    pub fn changed(&mut self, change: &Change, table: &Table) -> Result<(), String> {
        let (key, Some(new)) = (&change.key, &change.new) else { return Ok(()) };
        let old = change.old.as_deref();
        if key.pk.starts_with("C#") && key.sk.starts_with("X#") {
            self.executions.insert(key.clone());
            self.ends(old, new, table)?;
        } else if let Some(place) = self.configs.iter().position(|config| config == key) {
            rises(old, new)?;
            let old = change.old.as_ref().map(deployments::state).transpose()?;
            self.config(place, old.as_deref(), &*deployments::state(new)?, table)?;
        } else if let Some(place) = self.configs.iter().position(|config| config.pk == key.pk && key.sk.starts_with(configs::PAST))
        {
            self.ended(place, new, table)?;
        } else if *key == self.pipeline {
            rises(old, new)?;
            self.pipeline(old, new)?;
        } else if let Some(place) = self.facts.iter().position(|fact| fact == key) {
            self.fact((key, place), old, new)?;
        } else if let Some(place) = self.in_cluster(key) {
            self.fact_of_cluster((key, place), old, new)?;
        }
        Ok(())
    }

    /// A sequence is aborted by people, or because its promotion was given up: not because its targets run the revision already.
    fn ends(&mut self, old: Option<&Item>, new: &Item, table: &Table) -> Result<(), String> {
        let (old, x) = (old.map(read::<Execution>).transpose()?, read::<Execution>(new)?);
        self.begins(old.as_ref(), &x)?;
        let was_open = old.is_none_or(|old| old.outcome.is_none());
        let on_purpose = self.aborted.contains(x.context.as_str());
        if !was_open || on_purpose || x.outcome.is_none_or(|outcome| outcome.end != End::Aborted) {
            return Ok(());
        }
        let Some(flow) = table.peek(&self.pipeline).map(|item| read::<Pipeline>(item)).transpose()? else { return Ok(()) };
        let by = |promotion: &&Promotion| {
            promotion.effect == Some(Made::Sequence { context: x.context.to_string() }) && promotion.completed
        };
        // In one commit, a person may give up what turns out to have succeeded.
        let by_person = |closing: &Closing| {
            closing.promotion.effect == Some(Made::Sequence { context: x.context.to_string() })
                && closing.comment.starts_with("aborted by")
        };
        if flow.environments.values().flat_map(|state| &state.closing).any(by_person) {
            return Ok(());
        }
        match flow.environments.values().filter_map(|state| state.promotion.as_ref()).find(by) {
            Some(promotion) => Err(format!("the sequence of a promotion that succeeds was aborted: {promotion:?} {x:?}")),
            None => Ok(()),
        }
    }

    /// The item of the fact about a stage's config.
    pub fn fact_of(&self, place: usize) -> Key {
        self.facts[place].clone()
    }

    /// How many sequences were triggered for promotions.
    pub fn promotions(&self) -> usize {
        self.triggered.values().map(BTreeSet::len).sum()
    }

    /// The stage and the run of the promotion that a sequence in this context was triggered for.
    pub fn promotion_of(&self, context: &str) -> Option<&(String, u64)> {
        self.triggered.iter().find(|(_, contexts)| contexts.contains(context)).map(|(of, _)| of)
    }

    fn config(&mut self, place: usize, old: Option<&Config>, new: &Config, table: &Table) -> Result<(), String> {
        let before = old.and_then(|old| old.last.as_ref()).map(|last| last.n);
        let begins = new.last.as_ref().filter(|last| before != Some(last.n));
        self.began.extend(begins.map(|last| ((place, last.n), last.since)));
        let cancelled = |last: &&Deployment| last.cancel.is_some() && last.report.is_none() && !last.status.is_final();
        let before = old.and_then(|old| old.last.as_ref()).filter(cancelled).map(|last| last.n);
        if let Some(last) = new.last.as_ref().filter(cancelled).filter(|last| before != Some(last.n)) {
            self.superseded(place, last, new)?;
        }
        let known = |d: &Deployment| {
            let was = old.iter().flat_map(|old| old.last.iter().chain(&old.pending));
            was.into_iter().any(|was| was.n == d.n && was.snapshot == d.snapshot && was.task == d.task)
        };
        for d in new.last.iter().chain(&new.pending).filter(|d| !known(d)) {
            self.stats.count("versions");
            if let Some(task) = &d.task {
                self.cut(place, d, task, table)?;
            }
            self.goes_back_once(d, new, old)?;
            self.cut_by_tag(place, old, d)?;
        }
        Ok(())
    }

    /// An attempt has ended. What is next may be at work with the same commit.
    fn ended(&mut self, place: usize, new: &Item, table: &Table) -> Result<(), String> {
        let past = new.text("j").and_then(|text| Past::from_json(text).ok());
        let Some(Past { deployment: d, .. }) = past else { return Ok(()) };
        if d.status == Status::Complete {
            self.complete.insert((place, revision(&d)));
            self.carried_out.push((place, d.n, revision(&d)));
            self.carried.extend(d.task.map(|task| task.triggered));
            return Ok(());
        }
        // One that nobody had claimed ends when it is cancelled.
        let at_once = d.cancel.as_ref().is_some_and(|cancel| Some(cancel.at) == d.ended);
        let x = table.peek(&self.configs[place]).filter(|_| at_once).map(deployments::state).transpose()?;
        x.map_or(Ok(()), |x| self.superseded(place, &d, &x))
    }

    /// A version was cut for a task: its sequence waits for it, and its shipyard names this config for it.
    fn cut(&mut self, place: usize, d: &Deployment, task: &Task, table: &Table) -> Result<(), String> {
        self.stats.count("versions for tasks");
        if !waits_for(task, table) {
            return Err(format!("{} #{} was cut for a task that no sequence waits for: {task:?}", STAGES[place], d.n));
        }
        let to = config(STAGES[place]);
        let x = execution(task, table)?;
        let shipyard = self.shipyards.get(&x.revision).ok_or_else(|| format!("nobody applied {}", x.revision))?;
        let stage = shipyard.stages.iter().find(|stage| stage.name.as_str() == x.stage);
        let sequence = stage.and_then(|stage| stage.sequences.iter().find(|sequence| sequence.name.as_str() == x.sequence));
        let mut named = sequence.into_iter().flat_map(|sequence| &sequence.tasks);
        let is = named.any(|named| {
            named.name.as_str() == task.name
                && named.properties.get(DEPLOYMENT_CONFIG).is_some_and(|config| *config == format!("{}:{}", to.namespace, to.name))
        });
        if is { Ok(()) } else { Err(format!("{to} carries out {task:?}, and {} names it nowhere in {}", x.sequence, x.revision)) }
    }

    /// Keelway rolls back what was deployed, and never a rollback.
    fn goes_back_once(&self, d: &Deployment, new: &Config, old: Option<&Config>) -> Result<(), String> {
        let back = |d: &Deployment| d.causes.iter().any(|why| matches!(why, Why::AutoRollback { .. }));
        let before = old.and_then(|old| old.last.as_ref());
        let of = d.causes.iter().find_map(|why| if let Why::AutoRollback { of, .. } = why { Some(*of) } else { None });
        match before.filter(|before| Some(before.n) == of && back(before)) {
            Some(before) => Err(format!("{} #{} rolls back a rollback: {before:?}", new.name, d.n)),
            None => Ok(()),
        }
    }

    fn pipeline(&mut self, old: Option<&Item>, new: &Item) -> Result<(), String> {
        let old = old.map(read::<Pipeline>).transpose()?;
        let x = read::<Pipeline>(new)?;
        if let Some(run) = &x.run {
            let before = old.as_ref().and_then(|old| old.run.as_ref());
            if before
                .is_some_and(|before| before.number > run.number || before.number == run.number && before.revision != run.revision)
            {
                return Err(format!("run {before:?} became {run:?}"));
            }
            if before.is_none_or(|before| before.number != run.number) {
                self.stats.count("runs");
                if !self.ran(0, &run.revision) {
                    return Err(format!("run {run:?} of a revision that {} never ran", STAGES[0]));
                }
            }
        }
        for (name, state) in &x.environments {
            let Some(promotion) = &state.promotion else { continue };
            let place = STAGES.iter().position(|stage| stage == name).unwrap_or_default();
            let again = self.again.entry((name.clone(), promotion.run)).or_default();
            *again = promotion.again.max(*again);
            if let (Phase::Abandoned, Some(Made::Sequence { context })) = (promotion.phase, &promotion.effect) {
                self.aborted.insert(context.clone());
            }
            let was = old.as_ref().and_then(|old| old.environments.get(name)?.promotion.as_ref());
            self.attempted(was, promotion)?;
            self.evaluated(place, was, promotion)?;
            let fresh = |is: fn(&Promotion) -> bool| {
                is(promotion) && !was.is_some_and(|was| was.run == promotion.run && was.again == promotion.again && is(was))
            };
            if fresh(|promotion| promotion.completed) {
                self.stats.count("promotions completed");
                if !self.ran(place, &promotion.revision) {
                    return Err(format!("{name} is said to run {}, and never did: {promotion:?}", promotion.revision));
                }
            }
            if fresh(|promotion| promotion.phase == Phase::Succeeded) {
                self.stats.count("promotions succeeded");
            }
            let meant = |id: &u64| self.approvals.get(id).is_none_or(|revision| *revision == promotion.revision);
            if let Some(note) = promotion.approvals.iter().find(|note| !meant(&note.id)) {
                return Err(format!("an approval of {:?} counts for {promotion:?}", self.approvals.get(&note.id)));
            }
        }
        Ok(())
    }

    /// An event was published.
    ///
    /// # Errors
    /// It may not be.
    pub fn published(&mut self, event: &CloudEvent) -> Result<(), String> {
        let task = ["deployment", "rollback"].iter().any(|task| event.ty == format!("sh.keptn.event.{task}.finished"));
        if let Some(triggered) = event.triggered_id.as_ref().filter(|_| task && event.text("result") == Some("pass"))
            && !self.carried.contains(triggered)
        {
            return Err(format!("a task has passed, and no version for it is complete: {event:?}"));
        }
        let promotion = event.data.get("promotion").filter(|_| event.ty.ends_with(".delivery.triggered"));
        if let Some((stage, run)) = promotion.and_then(|of| Some((of["environment"].as_str()?, of["run"].as_u64()?))) {
            let place = (stage.to_owned(), run);
            let contexts = self.triggered.entry(place.clone()).or_default();
            contexts.insert(event.context.to_string());
            let again = self.again.get(&place).copied().unwrap_or_default();
            if contexts.len() > 1 + again as usize {
                return Err(format!("the promotion of run {run} into {stage} was begun {} times: {contexts:?}", contexts.len()));
            }
        }
        Ok(())
    }
}

/// A change raises the version by one.
fn rises(old: Option<&Item>, new: &Item) -> Result<(), String> {
    let was = old.map_or(0, Item::version);
    if new.version() == was + 1 || old.is_some_and(|old| paid(old, new)) || old.is_some_and(|old| kept(old, new)) {
        return Ok(());
    }
    Err(format!("{}: version {was} became {}", new.key, new.version()))
}

/// It expires later, or not at all; nothing else changed.
fn kept(old: &Item, new: &Item) -> bool {
    let differs = |name: &&keelway_engine::item::Name| old.attrs.get(*name) != new.attrs.get(*name);
    old.attrs.keys().chain(new.attrs.keys()).filter(differs).all(|name| name == "ttl")
}

fn revision(d: &Deployment) -> String {
    keelway_domain::deployments::template::revision(&d.content.revision).to_owned()
}

/// The execution that a task belongs to.
fn execution(task: &Task, table: &Table) -> Result<Execution, String> {
    let record = RecordId::from_uuid(&task.triggered).ok_or("its trigger is none of ours")?;
    let context = keys::context_partition(&project(&task.place[0]), &keelway_domain::names::Context::of(&task.context));
    let item = table.peek(&Key::new(context, format!("X#{}", record.subject))).ok_or("its execution is not there")?;
    read(item)
}
