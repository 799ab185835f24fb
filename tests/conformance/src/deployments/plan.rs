//! What a seed's configs are, and who does what with them when.

use super::scenario::{Action, Deploying};
use super::{Plant, definition, on_image};
use crate::sim::{Sim, Troubles};
use keelway_domain::deployments::definition::{AutoRollback, Concurrency, Custom, Definition, Resume, Starter, Target, Trigger};
use keelway_domain::deployments::{Back, Command, Latest};
use keelway_domain::ids::hash64;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::deployments::Address;
use keelway_world::rng::Rng;

/// The tags of the tests' source.
pub const TAGS: [&str; 2] = ["main", "side"];
/// Long before anything begins in the simulation: when images are said to have been pushed.
const PUSHES: Timestamp = Timestamp(1_794_000_000_000);

/// When something is done.
#[derive(Debug, Clone, Copy)]
pub enum When {
    /// While others make so many requests at most.
    Requests(usize),
    /// Within this time.
    Within(Span),
}

impl When {
    /// How long from now.
    pub fn span(self, sim: &mut Sim<Deploying>) -> Span {
        match self {
            When::Requests(requests) => sim.a_while(requests),
            When::Within(span) => Span(sim.rng.below(span.0.unsigned_abs() as usize + 1) as i64),
        }
    }
}

/// What is changed before a config is applied.
#[derive(Debug, Clone, Copy)]
pub enum Edit {
    /// Nothing: it is applied as it was last.
    Again,
    /// The environment of a container.
    Env(u64),
    /// What becomes of a deployment on its way.
    Concurrency(Concurrency),
    /// Whether it is paused, as the manifest says.
    Paused(bool),
    /// How much history it keeps.
    History(Option<u32>),
    /// Which tag its first container follows.
    Follows(&'static str),
}

impl Edit {
    /// Changes a definition.
    pub fn change(self, definition: &mut Definition) {
        match self {
            Edit::Again => {}
            Edit::Env(n) => definition.template["spec"]["containers"][0]["env"] = n.to_string().into(),
            Edit::Concurrency(concurrency) => definition.concurrency = concurrency,
            Edit::Paused(paused) => definition.paused = paused,
            Edit::History(history) => definition.history = history,
            Edit::Follows(to) => {
                for trigger in &mut definition.triggers {
                    if let Trigger::ImageChange(change) = trigger {
                        to.clone_into(&mut change.from.tag);
                    }
                }
            }
        }
    }
}

fn config(rng: &mut Rng) -> Definition {
    let main = || on_image(TAGS[0], &["web"], true);
    let triggers = match rng.below(8) {
        0 => vec![Trigger::ConfigChange],
        1 => vec![],
        2 => vec![main()],
        3 => vec![Trigger::ConfigChange, on_image(TAGS[0], &["web"], false)],
        4 => vec![Trigger::ConfigChange, main(), on_image(TAGS[1], &["log"], true)],
        5 => vec![Trigger::ConfigChange, on_image(TAGS[1], &["web", "log"], true)],
        _ => vec![Trigger::ConfigChange, main()],
    };
    let mut config = definition(triggers);
    config.strategy.timeout = *rng.pick(&[Span::seconds(60), Span::seconds(600), Span(0)]);
    config.strategy.deadline = *rng.pick(&[Span::seconds(90), Span::seconds(1800)]);
    config.history = *rng.pick(&[None, None, Some(0), Some(1), Some(2)]);
    if rng.chance(35.0) {
        config.concurrency = Concurrency::Queue;
    }
    if rng.chance(35.0) {
        config.auto_rollback = Some(AutoRollback { on_failure: true, alarms: vec!["errors".into()], bake: Span::minutes(5) });
    }
    if rng.chance(20.0) {
        config.strategy.timeout = Span::seconds(600);
        config.deployer = Some(Starter::Ecs(Default::default()));
    }
    if rng.chance(15.0) {
        config.resume = Resume::OnNewerImage;
    }
    config.paused = rng.chance(8.0);
    // What was drawn decides, so that the seeds of other configs stay as they were.
    if hash64(&[format!("{config:?}").as_bytes()]).is_multiple_of(4) {
        config.strategy.custom = Some(Custom::default());
        let (name, kind, id) = ("main".into(), "lambda-alias".into(), "shop:live".into());
        config.targets = vec![Target { name, kind, id, region: None, account: None }];
    }
    config
}

fn edit(rng: &mut Rng) -> Edit {
    match rng.below(8) {
        0 => Edit::Concurrency(*rng.pick(&[Concurrency::Queue, Concurrency::Supersede])),
        1 => Edit::Paused(rng.chance(50.0)),
        2 => Edit::History(*rng.pick(&[None, Some(0), Some(1)])),
        3 => Edit::Follows(rng.pick::<&str>(&TAGS)),
        4 => Edit::Again,
        _ => Edit::Env(rng.bits() % 4),
    }
}

fn command(rng: &mut Rng) -> Command {
    match rng.below(14) {
        0..=3 => Command::Latest(Latest {
            again: rng.chance(20.0),
            supersede: rng.chance(40.0),
            resume: rng.chance(30.0),
            resume_triggers: rng.chance(30.0),
            if_changed: rng.chance(20.0),
            image: if rng.chance(10.0) { "registry/shop@sha256:by-hand".into() } else { String::new() },
            suspend: false,
            task: None,
        }),
        4 => Command::Cancel,
        5 => Command::Retry,
        6 => Command::Pause,
        7 | 8 => Command::Resume,
        9 | 10 => Command::Rollback(Back {
            release: rng.chance(50.0).then(|| rng.bits() % 5),
            config: rng.chance(60.0),
            application: rng.chance(80.0),
            parts: None,
            allow_failed: rng.chance(40.0),
            by_steps: false,
            again: false,
            group: String::new(),
            task: None,
        }),
        11 => Command::SuspendTriggers,
        12 => Command::ResumeTriggers,
        _ => Command::Proceed,
    }
}

fn when(rng: &mut Rng) -> When {
    match rng.below(4) {
        0 => When::Requests(100),
        1 => When::Within(Span::seconds(10)),
        2 => When::Within(Span::minutes(2)),
        _ => When::Within(Span::minutes(20)),
    }
}

/// Draws a seed's story, and its troubles.
pub fn draw(rng: &mut Rng, plant: Option<Plant>) -> (Deploying, Troubles) {
    let count = *rng.pick(&[1, 1, 2, 3]);
    let configs = (0..count).map(|n| (Address { namespace: "shop".into(), name: format!("app{n}") }, config(rng))).collect();
    let mut plan = vec![];
    for place in 0..count {
        plan.push((if rng.chance(70.0) { When::Within(Span(0)) } else { when(rng) }, Action::Apply(place, Edit::Again)));
        for _ in 0..rng.below(4) {
            plan.push((when(rng), Action::Apply(place, edit(rng))));
        }
        for id in 0..rng.below(6) {
            plan.push((when(rng), Action::Ask(place, command(rng), 1 + (place * 100 + id) as u64)));
        }
        if rng.chance(10.0) {
            plan.push((when(rng), Action::Delete(place)));
        }
        for _ in 0..rng.below(3) {
            plan.push((when(rng), Action::Alarm(place, rng.chance(60.0))));
        }
        if rng.chance(20.0) {
            let name = *rng.pick(&["deployment", "deployment", "rollback"]);
            plan.push((when(rng), Action::Task(place, name, place as u64)));
        }
    }
    for tag in TAGS {
        let burst = when(rng);
        for n in 0..1 + rng.below(5) as u64 {
            // A burst comes in any order, and some of it twice.
            let push = Action::Push(tag, rng.bits() % 6, PUSHES + Span::seconds(n.cast_signed()));
            let when = if rng.chance(60.0) { burst } else { when(rng) };
            if rng.chance(15.0) {
                plan.push((when, push.clone()));
            }
            plan.push((when, push));
        }
    }
    let mut scenario = Deploying::new(configs, plan, plant);
    scenario.forgiving = rng.chance(75.0);
    (scenario, Troubles::of(rng))
}
