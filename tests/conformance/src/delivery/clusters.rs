//! Clusters: what runs there follows what deployers carry out, and the observer reads it. They are away for a while, registered and
//! deregistered, and two pipelines look at the same objects.

use super::acts::state;
use super::hand::{Hand, lock};
use super::manifests::app;
use super::planted::Planted;
use super::scenario::{Action, Delivering};
use super::{PROJECT, SERVICE, STAGES, namespace, pipeline};
use crate::sim::Sim;
use keelway_domain::border::Permitted;
use keelway_domain::promotions::definition::{Compare, Definition, EnvironmentSpec, InFlight, Target};
use keelway_domain::promotions::observe::{First, Observations, Observed, first, unreadable};
use keelway_domain::promotions::registry::Cluster;
use keelway_domain::promotions::{Pipeline, report};
use keelway_domain::stored::Stored;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::ports::{Clock, PortError};
use keelway_engine::promotions::observer::{Clusters, INTERVAL, Wanted};
use keelway_engine::promotions::{Address, keys};
use keelway_world::World;
use keelway_world::rng::Rng;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The clusters: one of the pipeline's own namespace, and one of another that lets it in.
const EAST: &str = "shop/east";
const WEST: &str = "shop-live/west";
/// Observations go on for so long after something has changed: longer than an observation may be late, and clocks differ.
const WATCHED: Span = Span::minutes(4);

/// What somebody does with a cluster, or what happens there. A stage is meant by its number.
#[derive(Debug, Clone)]
pub enum Act {
    /// The observer's clock ticks.
    Tick,
    /// A stage runs what this version has deployed: its number, its revision, and whether it is ready.
    Runs(usize, u64, String, bool),
    /// What a stage runs is not ready, or is again.
    Sick(usize, bool),
    /// A cluster does not answer, or does again.
    Away(&'static str, bool),
    /// Somebody registers a cluster.
    Register(&'static str),
    /// Somebody deregisters it.
    Deregister(&'static str),
    /// Somebody has a cluster observed at once.
    Look(&'static str),
    /// Somebody applies the second pipeline, or deletes it.
    Mirror(bool),
}

/// What runs in a stage's namespace of a cluster: of which version, which revision, and whether it is ready.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Running {
    n: u64,
    revision: Option<String>,
    ready: bool,
}

/// The clusters of a seed, as they really are.
#[derive(Debug, Default)]
pub struct Land {
    /// By stage.
    runs: BTreeMap<usize, Running>,
    /// Where something is not ready for a while.
    sick: BTreeSet<usize>,
    /// Which clusters do not answer.
    away: BTreeSet<String>,
    /// What was read, by stage and by the time at which the reading began: two observers may have the same.
    readings: BTreeMap<(usize, i64), Vec<Observed>>,
    /// So many readings.
    looks: usize,
}

impl Land {
    /// What an observer sees of a stage.
    fn sees(&self, target: &Target, at: Timestamp) -> Observed {
        let cluster = target.cluster.as_deref().unwrap_or_default();
        let failed = |error: String| Observed { revision: None, ready: false, error: Some(error), at, by: vec![] };
        if self.away.contains(cluster) {
            return failed(format!("the API server of {cluster} cannot be reached"));
        }
        let Some(place) = place(target) else { return failed("there is no such object".into()) };
        let Running { revision, ready, .. } = self.runs.get(&place).cloned().unwrap_or_default();
        let ready = if ready && !self.sick.contains(&place) { "True" } else { "False" };
        let object = json!({
            "apiVersion": app().api_version, "kind": app().kind,
            "metadata": {"name": SERVICE, "namespace": target.namespace},
            "status": {"lastAppliedRevision": revision, "conditions": [{"type": "Ready", "status": ready}]},
        });
        report::answered(&app(), target, Some(object), at).unwrap_or_else(failed)
    }

    /// An observer reads objects. Every third time it has no time for all of them.
    fn read(&mut self, wanted: &[Wanted], at: Timestamp) -> Vec<Observed> {
        self.looks += 1;
        let most = if self.looks.is_multiple_of(3) { 1 } else { wanted.len() };
        let mut seen = vec![];
        for Wanted { target, .. } in wanted.iter().take(most) {
            let observed = self.sees(target, at);
            if let Some(place) = place(target) {
                self.readings.entry((place, at.0)).or_default().push(observed.clone());
            }
            seen.push(observed);
        }
        seen
    }

    /// Whether a reading that began then has found this.
    pub fn was_read(&self, (place, at): (usize, i64), observed: &Observed) -> bool {
        let says = |of: &Observed| (of.revision.clone(), of.ready, of.error.clone());
        self.readings.get(&(place, at)).is_some_and(|all| all.iter().any(|read| says(read) == says(observed)))
    }

    /// A stage runs something, unless it runs something newer.
    fn run(&mut self, place: usize, next: Running) {
        let runs = self.runs.entry(place).or_default();
        if (runs.n, runs.ready) < (next.n, next.ready) {
            *runs = next;
        }
    }
}

/// The stage of a target.
fn place(target: &Target) -> Option<usize> {
    STAGES.iter().position(|stage| namespace(stage) == target.namespace)
}

/// The clusters as a worker reaches them.
pub struct Kube(pub Planted);

impl Clusters for Kube {
    async fn read(&self, name: &str, _: &Permitted, _: &Cluster, wanted: &[Wanted]) -> Result<Vec<Observed>, PortError> {
        let began = self.0.ports().now();
        let read = |_| lock(&self.0.yard).land.read(wanted, began);
        self.0.inner.outside(|| format!("read {name}"), read).await
    }
}

/// The targets of a pipeline that are in clusters, by their stages.
pub fn targets(pipeline: &Definition) -> impl Iterator<Item = (usize, &Target)> {
    pipeline.targets().filter(|target| target.cluster.is_some()).filter_map(|target| Some((place(target)?, target)))
}

/// Draws where clusters observe: beside what the stage's config tells, or instead. Then what happens there.
pub fn draw(rng: &mut Rng, pipeline: &mut Definition, long: Span) -> Vec<(Span, Act)> {
    let last = pipeline.environments.len() - 1;
    let always = rng.below(last + 1);
    for (place, environment) in pipeline.environments.iter_mut().enumerate() {
        let how = if place == always { 3 + rng.below(2) } else { rng.below(5) };
        let cluster = if place == last && rng.chance(50.0) { WEST } else { EAST };
        let target = Target { cluster: Some(cluster.into()), namespace: namespace(STAGES[place]) };
        match how {
            0..2 => {}
            2 | 3 => environment.targets.push(target),
            _ => environment.targets = vec![target],
        }
    }
    let mut acts = vec![];
    for _ in 0..rng.below(4) {
        let at = Span(rng.below(long.0 as usize) as i64);
        let soon = Span(at.0 + rng.below(360_000) as i64);
        let cluster = *rng.pick(&[EAST, EAST, WEST]);
        let place = rng.below(last + 1);
        acts.extend(match rng.below(6) {
            0 | 1 => vec![(at, Act::Away(cluster, true)), (soon, Act::Away(cluster, false))],
            2 => vec![(at, Act::Sick(place, true)), (soon, Act::Sick(place, false))],
            3 => vec![(at, Act::Deregister(cluster)), (soon, Act::Register(cluster))],
            4 => vec![(at, Act::Mirror(false)), (soon, Act::Mirror(true))],
            _ => vec![(at, Act::Look(cluster))],
        });
    }
    acts
}

/// The second pipeline: it looks at the same objects, and promotes nothing.
fn mirror() -> Address {
    Address { namespace: PROJECT.into(), name: "mirror".into() }
}

fn mirrored(pipeline: &Definition) -> Definition {
    let environment = |(place, target): (usize, &Target)| EnvironmentSpec {
        name: STAGES[place].into(),
        targets: vec![target.clone()],
        promotion: None,
        soak: None,
        evaluation: None,
    };
    let environments = targets(pipeline).map(environment).collect();
    let (in_flight, compare) = (InFlight::Restart, Compare::Exact);
    Definition { app: app(), environments, promotion: None, in_flight, compare, vouched: false }
}

async fn register(hand: &Hand, name: &str) -> Result<(), PortError> {
    let cluster = Cluster { server: "https://k8s.test".into(), ca_data: None, secret: "k8s".into(), interval: None, vouched: true };
    hand.engines.pipelines.clusters().apply(&Address::parse(name), &cluster, "").await.map(drop)
}

impl Delivering {
    /// The clusters, and the second pipeline, if the seed has any.
    pub(super) async fn furnish_clusters(&self, hand: &Hand) -> Result<(), PortError> {
        if targets(&self.plan.pipeline).next().is_none() {
            return Ok(());
        }
        for cluster in [EAST, WEST] {
            register(hand, cluster).await?;
        }
        hand.engines.pipelines.apply(&mirror(), &mirrored(&self.plan.pipeline), "").await.map(drop)
    }

    pub(super) fn at_cluster(&mut self, sim: &mut Sim<Self>, act: Act) {
        let again = Action::Cluster(act.clone());
        match act {
            // What was to happen before everything was stopped.
            Act::Away(_, true) | Act::Sick(_, true) | Act::Deregister(_) if self.quiet => return,
            Act::Tick => {
                let next = sim.world.now() + INTERVAL;
                self.ticking = next <= self.watched;
                if self.ticking {
                    sim.plan(next, Action::Cluster(Act::Tick));
                }
                return sim.work(self, again, |hand: Arc<Hand>| Box::pin(async move { hand.observer.tick().await.map(|_| None) }));
            }
            Act::Runs(place, n, revision, ready) => {
                lock(&self.yard).land.run(place, Running { n, revision: Some(revision), ready });
            }
            Act::Sick(place, is) => {
                let land = &mut lock(&self.yard).land;
                land.sick.remove(&place);
                land.sick.extend(is.then_some(place));
            }
            Act::Away(cluster, is) => {
                self.watch.stats.add("clusters away", u64::from(is));
                let land = &mut lock(&self.yard).land;
                land.away.remove(cluster);
                land.away.extend(is.then(|| cluster.to_owned()));
            }
            Act::Register(cluster) => {
                sim.work(self, again, move |hand: Arc<Hand>| Box::pin(async move { register(&hand, cluster).await.map(|()| None) }))
            }
            Act::Deregister(cluster) => sim.work(self, again, move |hand: Arc<Hand>| {
                let of = Address::parse(cluster);
                Box::pin(async move { hand.engines.pipelines.deregister_cluster(&of).await.map(|_| None) })
            }),
            Act::Look(cluster) => sim.work(self, again, move |hand: Arc<Hand>| {
                let of = Address::parse(cluster);
                Box::pin(async move { hand.engines.pipelines.observe_cluster(&of).await.map(|_| None) })
            }),
            Act::Mirror(true) => {
                let definition = mirrored(&self.plan.pipeline);
                sim.work(self, again, move |hand: Arc<Hand>| {
                    Box::pin(async move { hand.engines.pipelines.apply(&mirror(), &definition, "").await.map(|_| None) })
                });
            }
            Act::Mirror(false) => sim.work(self, again, move |hand: Arc<Hand>| {
                Box::pin(async move { hand.engines.pipelines.delete(&mirror()).await.map(|_| None) })
            }),
        }
        self.stir(sim);
    }

    /// Something about clusters has changed: they are observed for a while. Otherwise nothing would come to rest.
    pub(super) fn stir(&mut self, sim: &mut Sim<Self>) {
        if targets(&self.plan.pipeline).next().is_none() {
            return;
        }
        let now = sim.world.now();
        self.watched = now + WATCHED;
        if !self.ticking {
            self.ticking = true;
            sim.plan(now + Span::seconds(5), Action::Cluster(Act::Tick));
        }
    }

    /// What deployers have carried out runs in the clusters a little later, and is ready some time after that.
    pub(super) fn roll_out(&mut self, sim: &mut Sim<Self>) {
        for (place, n, revision) in std::mem::take(&mut self.watch.carried_out) {
            if !targets(&self.plan.pipeline).any(|(observed, _)| observed == place) {
                continue;
            }
            let begin = sim.world.now() + sim.a_while(20);
            let end = begin + Span::seconds(if self.quiet { 1 } else { *sim.rng.pick(&[1, 10, 100]) });
            for (at, ready) in [(begin, false), (end, true)] {
                sim.plan(at, Action::Cluster(Act::Runs(place, n, revision.clone(), ready)));
            }
        }
    }

    /// Nothing goes wrong in clusters any more.
    pub(super) fn heal(&mut self, sim: &mut Sim<Self>) {
        if targets(&self.plan.pipeline).next().is_none() {
            return;
        }
        {
            let land = &mut lock(&self.yard).land;
            land.sick.clear();
            land.away.retain(|cluster| self.plan.gone && cluster == WEST);
            if self.plan.gone {
                land.away.insert(WEST.into());
            }
        }
        let now = sim.world.now();
        for cluster in [EAST, WEST] {
            sim.plan(now, Action::Cluster(Act::Register(cluster)));
        }
        // Whoever ticked may have been stopped.
        self.ticking = false;
        self.stir(sim);
    }

    /// What each pipeline that asks for clusters shows of an environment is what runs there.
    pub(super) fn check_clusters(&self, sim: &mut Sim<Self>) -> Result<(), String> {
        let mirror_of = mirrored(&self.plan.pipeline);
        for (to, definition) in [(pipeline(), &self.plan.pipeline), (mirror(), &mirror_of)] {
            let x = state::<Pipeline>(&sim.world, &keys::pipeline(&to));
            let Some(x) = x.filter(|x| !x.deleted && targets(definition).next().is_some()) else { continue };
            let seen = self.seen(&sim.world, definition)?;
            for environment in definition.environments.iter().filter(|of| of.targets.iter().any(|at| at.cluster.is_some())) {
                let Some(shown) = x.environments.get(&environment.name) else { continue };
                let is = format!("{to}, {}: {seen:?}, and it shows {shown:?}", environment.name);
                if shown.unreadable != unreadable(environment, &seen) {
                    return Err(format!("what cannot be read is not what is shown of {is}"));
                }
                let revision = match first(environment, &seen, definition.compare) {
                    First::Current(revision) => Some(revision),
                    _ => None,
                };
                if shown.healthy.as_ref().map(|(revision, _)| revision.as_str()) != revision {
                    return Err(format!("what runs there is not what is shown of {is}"));
                }
                sim.stats.count("environments that clusters show");
            }
        }
        Ok(())
    }

    /// What is to be seen of a pipeline's targets now: in clusters what runs there, and otherwise what is known.
    fn seen(&self, world: &World, definition: &Definition) -> Result<Observations, String> {
        let core = world.core();
        let mut all = Observations::new();
        for target in definition.targets() {
            let known = core.table.peek(&keys::observation(&app(), target)).and_then(|item| item.text("j"));
            let known = known.and_then(|text| Observed::from_json(text).ok());
            if target.cluster.is_none() {
                all.extend(known.map(|known| (target.clone(), known)));
                continue;
            }
            let is = lock(&self.yard).land.sees(target, core.now);
            let says = |of: &Observed| (of.revision.clone(), of.ready, of.error.clone());
            if known.as_ref().map(says) != Some(says(&is)) {
                return Err(format!("{target} is {is:?}, and known is {known:?}"));
            }
            all.insert(target.clone(), is);
        }
        Ok(all)
    }
}
