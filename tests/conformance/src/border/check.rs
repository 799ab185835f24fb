//! What must hold: which consents and policies were in force when, and what has got from one project into the other.
//!
//! Every text of a project has a mark of its own. An act may have been decided at any moment of the work at hand, so what counts is
//! whether a consent held at some moment since that work began. What has crossed the border once belongs to both.

use super::manifests::{config_app, tag, target};
use super::yard::{Look, Move};
use super::{EVIL, OUR_CLUSTER, OUR_FUNCTION, OURS, PRIVATE, THEIRS, address, project};
use crate::sim::Stats;
use keelway_domain::border::{Act, Consents, Policy, ResourceKind};
use keelway_domain::deployments::{Command, Obeyed};
use keelway_domain::promotions::Pipeline;
use keelway_domain::stored::Stored;
use keelway_engine::deployments::keys as configs;
use keelway_engine::item::{Attr, Item, Key};
use keelway_engine::keys::MAIN;
use keelway_engine::projects;
use keelway_engine::promotions::keys as promotions;
use keelway_engine::protocol::Loaded;
use keelway_world::bus::Publication;
use keelway_world::table::Change;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Who registers the honest project's executor.
pub const OUR_EXECUTOR: &str = "token:b-executor";

/// What lets a text of the hostile project into the other one.
pub type Lets = Option<(Act, &'static str)>;

/// The work that did something: when it began, and when it did that, in requests.
#[derive(Debug, Clone, Copy)]
pub struct When {
    pub since: u64,
    pub now: u64,
}

/// What is watched.
pub struct Watch {
    consents: Vec<(u64, Consents)>,
    policies: Vec<(u64, Option<Policy>)>,
    /// What the hostile project's texts are let in by, by their marks.
    pub marks: BTreeMap<u64, Lets>,
    entered: BTreeSet<u64>,
    learned: BTreeSet<u64>,
    tags: String,
    facts: String,
    /// The contexts in which each project's pipelines have triggered sequences of the honest one.
    triggered: BTreeMap<String, BTreeSet<String>>,
    /// The approvals that people have given, by context, and the tasks behind them that were triggered.
    pub approvals: BTreeMap<String, BTreeSet<String>>,
    behind: BTreeMap<String, BTreeSet<String>>,
    /// The commands of the only one who may approve promotions.
    pub by_ann: BTreeSet<u64>,
    /// What happened.
    pub stats: Stats,
}

/// The marks in a text.
fn marks(text: &str, of: &str) -> BTreeSet<u64> {
    let number = |rest: &str| rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())].parse().ok();
    text.split(of).skip(1).filter_map(number).collect()
}

fn marks_in(item: &Item, of: &str) -> BTreeSet<u64> {
    let texts = item.attrs.values().filter_map(|attr| if let Attr::S(text) = attr { Some(text) } else { None });
    texts.flat_map(|text| marks(text, of)).collect()
}

/// Whether an item is in a project's own partitions.
fn is_of(key: &Key, project: &str) -> bool {
    let rest = key.pk.split_once('#').and_then(|(_, rest)| rest.strip_prefix(project));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('#'))
}

impl Watch {
    /// Nothing has happened yet.
    pub fn new(marks: BTreeMap<u64, Lets>) -> Self {
        let tag = tag();
        Self {
            consents: vec![],
            policies: vec![],
            marks,
            entered: BTreeSet::new(),
            learned: BTreeSet::new(),
            tags: configs::source_partition(&tag.namespace, &tag.name),
            facts: promotions::target_partition(&config_app(), &target(None, OURS)),
            triggered: BTreeMap::new(),
            approvals: BTreeMap::new(),
            behind: BTreeMap::new(),
            by_ann: BTreeSet::new(),
            stats: Stats::default(),
        }
    }

    /// Whether something was so at a moment of some work.
    fn held<T>(all: &[(u64, T)], when: When, is: impl Fn(&T) -> bool) -> bool {
        let until = all.iter().skip(1).map(|(at, _)| *at).chain([u64::MAX]);
        all.iter().zip(until).any(|((from, state), until)| *from <= when.now && until >= when.since && is(state))
    }

    fn consented(&self, when: When, act: Act, name: &str) -> bool {
        Self::held(&self.consents, when, |consents| consents.let_in(THEIRS, act, (OURS, name)).is_ok())
    }

    fn allowed(&self, when: When, kind: ResourceKind) -> bool {
        let all = |policy: &Policy| policy.allows.get(&kind).is_some_and(|names| names.iter().any(|pattern| pattern.name == "*"));
        Self::held(&self.policies, when, |policy| policy.as_ref().is_some_and(all))
    }

    fn ask(&mut self, when: When, (act, name): (Act, &str), what: &str) -> Result<(), String> {
        if !self.consented(when, act, name) {
            return Err(format!("{THEIRS} may not {act} {name} of {OURS} at {when:?}: {what}"));
        }
        self.stats.count(match act {
            Act::Deploy => "deployed by consent",
            Act::Tag => "tagged by consent",
            Act::Observe => "observed by consent",
            Act::Trigger => "triggered by consent",
        });
        Ok(())
    }

    /// What is in force from the beginning.
    pub fn begin(&mut self, now: u64, of: impl Fn(&Key) -> Option<Item>) {
        for name in [OURS, THEIRS] {
            if let Some(item) = of(&projects::keys::project(&project(name))) {
                self.border(&item, now);
            }
        }
    }

    fn border(&mut self, item: &Item, now: u64) {
        if item.key == projects::keys::project(&project(OURS)) {
            self.consents.push((now, item.text("co").and_then(|text| Consents::from_json(text).ok()).unwrap_or_default()));
        } else {
            self.policies.push((now, item.text("po").and_then(|text| Policy::from_json(text).ok())));
        }
    }

    /// An item was changed.
    ///
    /// # Errors
    /// It may not be.
    pub fn changed(&mut self, change: &Change, when: When) -> Result<(), String> {
        let (key, Some(new)) = (&change.key, &change.new) else { return Ok(()) };
        if [OURS, THEIRS].iter().any(|name| *key == projects::keys::project(&project(name))) {
            self.border(new, when.now);
        }
        let old = change.old.as_deref();
        if is_of(key, OURS) || key.pk == self.tags || key.pk == self.facts {
            self.enters(key, &marks_in(new, EVIL), when)?;
        }
        if is_of(key, THEIRS) {
            self.learns(&format!("{key}"), &marks_in(new, PRIVATE), when)?;
        }
        if key.pk == "U" && new.text("o") == Some(OUR_EXECUTOR) && !marks_in(new, EVIL).is_empty() {
            return Err(format!("another one has registered in the place of {OURS}'s executor: {new:?}"));
        }
        if key.pk.starts_with(&format!("C#{OURS}#")) && key.sk == MAIN {
            self.aborted(key, (old.and_then(|old| old.number("ep")), new.number("ep")), when)?;
        }
        if key.pk == configs::partition(&address(OURS, "api")) && key.sk.starts_with(configs::AUDIT) {
            self.obeyed(new, when)?;
        }
        if *key == promotions::pipeline(&address(OURS, "flow")) {
            self.approved(new)?;
        }
        Ok(())
    }

    /// Texts of the hostile project get into the other one.
    fn enters(&mut self, key: &Key, found: &BTreeSet<u64>, when: When) -> Result<(), String> {
        for mark in found.difference(&self.entered.clone()) {
            match self.marks.get(mark).copied().flatten() {
                Some(needed) => self.ask(when, needed, &format!("{EVIL}{mark} in {key}"))?,
                None => return Err(format!("{EVIL}{mark} has got into {key}, which nobody may consent to")),
            }
            self.entered.insert(*mark);
        }
        Ok(())
    }

    /// The hostile project learns texts of the other one. With the consent to deploy, it is told which images a version has.
    fn learns(&mut self, what: &str, found: &BTreeSet<u64>, when: When) -> Result<(), String> {
        for mark in found.difference(&self.learned.clone()) {
            let observes = ["api", "images", "prod"].iter().any(|name| self.consented(when, Act::Observe, name));
            let ever = When { since: 0, ..when };
            if !observes && !self.consented(ever, Act::Deploy, "api") {
                return Err(format!("{THEIRS} may not observe {OURS} at {when:?}, and learns {PRIVATE}{mark}: {what}"));
            }
            self.learned.insert(*mark);
            self.stats.count("learned by consent");
        }
        Ok(())
    }

    /// The abort of a context of the honest project, whose people abort nothing by hand.
    fn aborted(&mut self, key: &Key, (old, new): (Option<i64>, Option<i64>), when: When) -> Result<(), String> {
        if new.unwrap_or_default() <= old.unwrap_or_default() {
            return Ok(());
        }
        let context = key.pk.rsplit('#').next().unwrap_or_default();
        let by = |project: &str| self.triggered.get(project).is_some_and(|contexts| contexts.contains(context));
        match (by(OURS), by(THEIRS)) {
            (true, _) => Ok(()),
            (_, true) => self.ask(when, (Act::Trigger, "live"), &format!("{context} is aborted")),
            _ => Err(format!("{context} is aborted, and no pipeline has begun it")),
        }
    }

    /// The honest project's config has obeyed: of the other one's tasks, those that were let in.
    fn obeyed(&mut self, item: &Item, when: When) -> Result<(), String> {
        let Some(obeyed) = item.text("j").and_then(|text| Obeyed::from_json(text).ok()) else { return Ok(()) };
        let task = match &obeyed.command {
            Command::Latest(latest) => latest.task.as_ref(),
            Command::Rollback(back) => back.task.as_ref(),
            _ => None,
        };
        match task.filter(|task| task.place[0] == THEIRS) {
            Some(task) => self.ask(when, (Act::Deploy, "api"), &format!("task {} in {}", task.name, task.context)),
            None => Ok(()),
        }
    }

    /// The honest project's pipeline: only one person approves.
    fn approved(&self, item: &Item) -> Result<(), String> {
        let x = Loaded::<Pipeline>::read(item).map_err(|error| error.to_string())?.x;
        let mut given =
            x.environments.values().filter_map(|state| state.promotion.as_ref()).flat_map(|promotion| &promotion.approvals);
        match given.find(|note| !self.by_ann.contains(&note.id)) {
            Some(note) => Err(format!("somebody else has approved as {}", note.by)),
            None => Ok(()),
        }
    }

    /// An event was published.
    ///
    /// # Errors
    /// It may not be.
    pub fn published(&mut self, publication: &Publication, event: &Value, when: When) -> Result<(), String> {
        let (data, context) = (&event["data"], event["shkeptncontext"].as_str().unwrap_or_default());
        let ty = event["type"].as_str().unwrap_or_default();
        let detail = &publication.entry.detail;
        if data["project"] == OURS && ty == "sh.keptn.event.live.delivery.triggered" {
            let of = data["promotion"]["namespace"].as_str().unwrap_or_default();
            if of == THEIRS && !publication.again {
                self.ask(when, (Act::Trigger, "live"), &format!("a sequence in {context}"))?;
                self.entered.extend(marks(detail, EVIL));
            }
            self.triggered.entry(of.to_owned()).or_default().insert(context.to_owned());
        }
        if data["project"] == OURS && data["stage"] == "live" && ty == "sh.keptn.event.deployment.triggered" {
            let behind = self.behind.entry(context.to_owned()).or_default();
            behind.insert(publication.id.clone());
            let given = self.approvals.get(context).map_or(0, BTreeSet::len);
            if behind.len() > given {
                return Err(format!("{} deployments in {context} began behind {given} approvals", behind.len()));
            }
            self.stats.count("deployed live");
        }
        if data["project"] == THEIRS || data["namespace"] == THEIRS {
            self.learns(detail, &marks(detail, PRIVATE), when)?;
        }
        Ok(())
    }

    /// Objects of a cluster were read.
    ///
    /// # Errors
    /// They may not be.
    pub fn looked(&mut self, look: &Look, now: u64) -> Result<(), String> {
        let when = When { since: look.since, now };
        if look.cluster == OUR_CLUSTER && look.namespaces.iter().any(|namespace| namespace == "vault") {
            return self.ask(when, (Act::Observe, "prod"), "a look into the vault");
        }
        if look.cluster != OUR_CLUSTER && !self.allowed(when, ResourceKind::Servers) {
            return Err(format!("a token of {} was sent to {}", look.cluster, look.server));
        }
        Ok(())
    }

    /// An alias was moved.
    ///
    /// # Errors
    /// It may not be.
    pub fn moved(&mut self, moved: &Move, now: u64) -> Result<(), String> {
        let when = When { since: moved.since, now };
        let fine = moved.project == OURS || moved.function != OUR_FUNCTION || self.allowed(when, ResourceKind::Functions);
        if fine { Ok(()) } else { Err(format!("{} has moved the alias of {}", moved.project, moved.function)) }
    }
}
