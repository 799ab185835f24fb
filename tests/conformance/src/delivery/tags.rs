//! Tags: configs follow what is pushed to a repository, or a tag that follows the newest of several, while sequences deliver to
//! them. What a tag may do to what a sequence asked for, the engine's rules say: a config with an automatic trigger follows its tag
//! again when the version of the task has ended, and only a newer push replaces that version before. Another trigger cuts no
//! version.

use super::check::Watch;
use super::deleted::Told;
use super::hand::Hand;
use super::scenario::{Action, Delivering};
use super::{STAGES, config, revision};
use crate::deployments::{HERE, on_image, tag};
use crate::sim::Sim;
use keelway_domain::deployments::definition::{Definition, Trigger};
use keelway_domain::deployments::notice::{Image, Notice};
use keelway_domain::deployments::registry::{ArtifactSource, Origin, Repository};
use keelway_domain::deployments::{Command, Config, Deployment, Why};
use keelway_domain::time::Span;
use keelway_engine::deployments::{self, Message, configs, keys};
use keelway_engine::ports::PortError;
use keelway_world::World;
use keelway_world::queue::Parcel;
use keelway_world::rng::Rng;

/// The repository.
const REPOSITORY: &str = "cart";
/// The tag that follows the newest image of all releases.
pub(super) const ALIAS: &str = "stable";
/// The tags that are pushed to; the first is none of a release.
pub(super) const TAGS: [&str; 3] = ["main", "1.0", "1.1"];
/// The images that are pushed, by their numbers: two of them are delivered by sequences, too.
pub(super) const IMAGES: [u64; 4] = [1, 2, 50, 51];
/// So many pushes at most come of versions that are offered.
const MOST: usize = 3;

/// A push: to which tag, of which image, and how long ago.
#[derive(Debug, Clone, Copy)]
pub struct Push {
    /// The tag.
    pub tag: &'static str,
    /// The image, by its number.
    pub image: u64,
    ago: Span,
}

pub(super) fn repository() -> Repository {
    Repository { account: None, region: None, name: REPOSITORY.into() }
}

/// What an image of the repository is called in templates.
pub(super) fn name(image: u64) -> String {
    format!("{}{}", registry(), revision(image))
}

/// What the names of all images of the repository begin with.
fn registry() -> String {
    let (account, region) = HERE;
    format!("{account}.dkr.ecr.{region}.amazonaws.com/{REPOSITORY}@")
}

/// Draws which configs follow a tag, and what is pushed when.
pub fn draw(rng: &mut Rng, configs: &mut [Definition], (stages, long): (usize, Span)) -> Vec<(Span, Action)> {
    let always = rng.below(stages);
    for (place, config) in configs.iter_mut().enumerate() {
        if place == always || rng.chance(50.0) {
            let of = *rng.pick(&[TAGS[0], TAGS[0], ALIAS]);
            config.triggers.retain(|trigger| *trigger != Trigger::Manual);
            config.triggers.push(on_image(of, &["web"], rng.chance(70.0)));
        }
    }
    let mut acts = vec![];
    let after = |rng: &mut Rng, at: Span, within: Span| Span(at.0 + rng.below(within.0 as usize) as i64);
    for _ in 0..1 + rng.below(4) {
        let at = after(rng, Span(0), long);
        let ago = *rng.pick(&[Span(0), Span(0), Span(0), Span::seconds(5), Span::minutes(2), Span::minutes(60)]);
        let push = Push { tag: rng.pick::<&str>(&TAGS), image: *rng.pick(&IMAGES), ago };
        acts.push((at, Action::Push(push)));
        let place = rng.below(stages);
        let around = |before: Command, after: Command| {
            [(Span(at.0 - 60_000), Action::Ask(place, before)), (Span(at.0 + 90_000), Action::Ask(place, after))]
        };
        match rng.below(6) {
            // It is moved, and back.
            0 => {
                let other = Push { image: push.image ^ 1, ..push };
                let later = after(rng, at, Span::minutes(5));
                acts.extend([(later, Action::Push(other)), (after(rng, later, Span::minutes(5)), Action::Push(push))]);
            }
            // It is pushed twice.
            1 => acts.push((after(rng, at, Span::minutes(1)), Action::Push(push))),
            2 => acts.extend(around(Command::Pause, Command::Resume)),
            3 => acts.extend(around(Command::SuspendTriggers, Command::ResumeTriggers)),
            _ => acts.push((after(rng, at, Span::minutes(10)), Action::Ask(place, Command::ResumeTriggers))),
        }
    }
    acts.into_iter().map(|(at, action)| (at.max(Span(0)), action)).collect()
}

/// Whether a definition follows a tag; and then, whether by itself.
fn follows(definition: &Definition) -> Option<bool> {
    definition.image_changes().next().map(|change| change.automatic)
}

impl Delivering {
    /// Whether any config follows a tag.
    pub(super) fn has_tags(&self) -> bool {
        self.plan.configs.iter().any(|config| follows(config).is_some())
    }

    /// The source of the images, if the seed has tags.
    pub(super) async fn furnish_tags(&mut self, hand: &Hand) -> Result<(), PortError> {
        self.watch.follows = self.plan.configs.iter().map(follows).collect();
        if !self.has_tags() {
            return Ok(());
        }
        let tags = [(ALIAS.to_owned(), "1.*".to_owned())].into();
        let source = ArtifactSource { from: Origin::Ecr(repository()), tags, images: vec![], vouched: true };
        let of = tag(ALIAS);
        hand.engines.configs.apply_source(&deployments::Address::new(&of.namespace, &of.name), &source, "").await.map(drop)
    }

    /// The registry tells of a push.
    pub(super) fn push(&mut self, sim: &mut Sim<Self>, Push { tag, image, ago }: Push) {
        let at = sim.world.now() + Span(-ago.0);
        self.registry.push(Told { image, tag: Some(tag), pushed: true, at });
        for moved in [Some(tag), (tag != TAGS[0]).then_some(ALIAS)].into_iter().flatten() {
            self.pushed.push(moved, at, &name(image));
        }
        self.asked.0 += 1;
        self.watch.stats.count(if ago.0 == 0 { "pushes" } else { "pushes that are told late" });
        for x in (0..STAGES.len()).filter_map(|place| Self::config(&sim.world, place)) {
            let carries = x.in_flight().is_some_and(|d| d.task.is_some());
            self.watch.stats.add("pushes while a task is carried out", u64::from(carries));
            self.watch.stats.add("pushes during a pause", u64::from(x.paused.is_some()));
        }
        let image = Image { repository: repository(), digest: revision(image), tag: Some(tag.into()), deleted: false, at };
        let message = Message::Notice { notice: Notice::Image(image) };
        sim.world.enqueue(deployments::NAME, Parcel::Own(message.letter().body));
    }

    /// A version is offered: now and then, the build is ready just then.
    pub(super) fn builds(&mut self, sim: &mut Sim<Self>) {
        if self.quiet || self.built == MOST || !self.has_tags() || !sim.rng.chance(15.0) {
            return;
        }
        self.built += 1;
        let push = Push { tag: sim.rng.pick::<&str>(&TAGS), image: *sim.rng.pick(&IMAGES), ago: Span(0) };
        let at = sim.world.now() + sim.a_while(40);
        sim.plan(at, Action::Push(push));
    }

    /// A config that follows a tag runs the newest image that was pushed there, if its triggers are on and nothing is on its way.
    pub(super) fn follows_its_tag(&self, world: &World, place: usize, x: &Config) -> Result<&'static str, String> {
        let busy = x.in_flight().is_some() || x.pending.is_some() || x.settling.is_some();
        let off = x.deleted || x.paused.is_some() || x.suspended.is_some() || x.dismissed.is_some();
        if busy || off || self.watch.follows[place].is_none() {
            return Ok("configs that need not follow a tag");
        }
        let Some(definition) = definition(world, place).filter(|definition| self.pushed.resolves(definition)) else {
            return Ok("configs that need not follow a tag");
        };
        let Some(last) = &x.last else { return Err(format!("a tag was pushed, and nothing was ever deployed: {x:?}")) };
        let followed = self.pushed.followed(&definition, &last.content.images);
        followed.map_err(|why| format!("{} #{}: {why}: {x:?}", STAGES[place], last.n))?;
        Ok(if follows(&definition) == Some(true) { "configs that follow a tag" } else { "configs beside a tag" })
    }
}

/// The definition of a stage's config that is in force.
fn definition(world: &World, place: usize) -> Option<Definition> {
    let core = world.core();
    let item = core.table.peek(&keys::definition(&config(STAGES[place])))?;
    configs::read(item).ok().flatten().map(|(applied, _)| applied.definition)
}

/// Whether nobody has asked for a version.
fn unasked(d: &Deployment) -> bool {
    d.causes.iter().all(|why| matches!(why, Why::ConfigChange { .. } | Why::ImageChange { .. }))
}

impl Watch {
    /// A version was cut: not because of a tag whose trigger is not automatic.
    pub(super) fn cut_by_tag(&mut self, place: usize, old: Option<&Config>, d: &Deployment) -> Result<(), String> {
        let moved = |why: &Why| matches!(why, Why::ImageChange { .. });
        if d.causes.iter().any(moved) {
            self.stats.count("versions by tags");
        }
        let before = old.and_then(|old| old.last.as_ref()).map(|last| last.content.images.get("web"));
        let image = d.content.images.get("web");
        let tagged = image.is_some_and(|image| image.starts_with(&registry()));
        match before {
            Some(before) if tagged && unasked(d) && before != image && self.follows.get(place) == Some(&Some(false)) => {
                Err(format!("{} #{} is the tag's, and nobody asked for it: {d:?}, after {before:?}", STAGES[place], d.n))
            }
            _ => Ok(()),
        }
    }

    /// A version of a task is cancelled because something newer replaces it: what a tag replaces, it was pushed to afterwards.
    pub(super) fn superseded(&mut self, place: usize, d: &Deployment, x: &Config) -> Result<(), String> {
        if d.task.is_none() || d.cancel.as_ref().is_none_or(|cancel| cancel.reason != "Superseded") {
            return Ok(());
        }
        let next = x.last.iter().chain(&x.pending).filter(|next| next.n > d.n).map(|next| next.causes.as_slice());
        let causes: Vec<&Why> = next.chain(x.settling.iter().map(|settling| settling.causes.as_slice())).flatten().collect();
        let began = self.began.get(&(place, d.n)).copied().unwrap_or_default();
        let newer = |why: &&&Why| match why {
            Why::ImageChange { at, .. } => *at + self.margin > began,
            _ => true,
        };
        match causes.iter().find(newer) {
            Some(Why::ImageChange { .. }) => self.stats.count("versions of tasks that a newer push replaced"),
            Some(_) => {}
            None => return Err(format!("{} #{} was replaced by what was there before: {causes:?}: {d:?}", STAGES[place], d.n)),
        }
        Ok(())
    }
}
