//! What a seed stands for: who triggers what, who answers, and who fails.

use super::extras::Extras;
use crate::sim::Troubles;
use keelway_domain::event::{Object, TaskResult};
use keelway_domain::names::{SequenceName, StageName, TaskName};
use keelway_domain::shipyard::{Match, Sequence, Shipyard, Stage, Task, Trigger};
use keelway_domain::time::Span;
use keelway_domain::windows::Window;
use keelway_world::rng::Rng;
use std::sync::OnceLock;

/// The one project of a simulation.
pub const PROJECT: &str = "sim";
/// The service of all triggers from outside; so every stage is one lane, unless a schedule has another service.
pub const SERVICE: &str = "svc";
/// The first revision of its shipyard, and mostly the only one.
pub const REVISION: &str = "r1";
/// The sequence that tries one action after the other.
pub const REMEDIATION: &str = "remediation";
/// A task with this name is answered by as many executors as its number says.
const TASKS: [(&str, usize); 11] = [
    ("a", 1),
    ("b", 1),
    ("pair", 2),
    ("three", 3),
    ("r", 1),
    ("p", 1),
    ("d", 1),
    ("n", 1),
    ("s", 1),
    ("action", 1),
    ("evaluation", 1),
];

/// How many executors subscribe to a task.
pub fn executors(task: &str) -> usize {
    TASKS.iter().find(|(name, _)| *name == task).map_or(0, |(_, n)| *n)
}

fn task(name: &str) -> Task {
    #[expect(clippy::unwrap_used, reason = "the names are above")]
    let name = TaskName::new(name).unwrap();
    let (mut triggered_after, mut start_deadline, mut timeout, mut properties) = (None, None, None, Object::new());
    match name.as_str() {
        "d" => triggered_after = Some(Span::seconds(30)),
        "s" => (start_deadline, timeout) = (Some(Span::seconds(20)), Some(Span::seconds(40))),
        "b" => timeout = Some(Span::minutes(20)),
        "approval" => properties.extend(["pass", "warning"].map(|result| (result.to_owned(), "manual".into()))),
        _ => {}
    }
    Task { name, triggered_after, properties, start_deadline, timeout }
}

fn sequence(name: &str, tasks: &[&str], on: &[(&str, Option<TaskResult>)]) -> Sequence {
    #[expect(clippy::unwrap_used, reason = "the names are below")]
    let name = SequenceName::new(name).unwrap();
    let trigger = |(event, result): &(&str, Option<TaskResult>)| Trigger {
        event: (*event).to_owned(),
        selector: result.map(|result| vec![Match { task: None, result }]),
    };
    let timeout = (name.as_str() == "slow").then_some(Span::minutes(3));
    let mut tasks: Vec<Task> = tasks.iter().map(|name| task(name)).collect();
    if name.as_str() == "patient" {
        // The used wake-up of the delay must not stand in the way of the next task's (ADR 4).
        tasks[1].triggered_after = Some(Span::seconds(30));
    }
    if name.as_str() == "gated" {
        // Some people decide later than this.
        tasks[0].timeout = Some(Span::seconds(100));
    }
    let supersede = name.as_str() == "patient";
    Sequence { name, triggered_on: on.iter().map(trigger).collect(), tasks, timeout, supersede, ignore_windows: None }
}

/// A round: one action, and whether it helped. If not, the next one.
fn remediation() -> Sequence {
    let mut round = sequence(REMEDIATION, &["get-action", "action", "evaluation"], &[("dev.remediation.finished", None)]);
    let failed = Match { task: TaskName::new("evaluation").ok(), result: TaskResult::Fail };
    round.triggered_on[0].selector = Some(vec![failed]);
    round
}

/// Two lanes; follow-ups on the same and on the other one, on an end, on a task, on a domain event.
pub fn shipyard() -> &'static Shipyard {
    static SHIPYARD: OnceLock<Shipyard> = OnceLock::new();
    SHIPYARD.get_or_init(|| {
        let fail = Some(TaskResult::Fail);
        let dev = vec![
            remediation(),
            sequence("delivery", &["a", "b"], &[]),
            sequence("rollback", &["r"], &[("dev.delivery.finished", fail), ("prod.outside.finished", fail)]),
            sequence("announce", &["n"], &[("dev.delivery.finished", Some(TaskResult::Warning))]),
            sequence("gated", &["approval", "pair"], &[]),
            sequence("many", &["pair", "three"], &[]),
            sequence("delayed", &["d", "s"], &[]),
            sequence("slow", &["s", "approval", "a"], &[]),
            sequence("after-task", &["n"], &[("dev.d.finished", None)]),
            sequence("remedy", &["r"], &[("problem.open", None)]),
            sequence("patient", &["a", "approval", "b"], &[]),
        ];
        let prod = vec![
            sequence("delivery", &["p", "approval", "p"], &[("dev.delivery.finished", None)]),
            sequence("outside", &["a"], &[]),
            sequence("after-many", &["p"], &[("dev.many.finished", None), ("dev.pair.finished", None)]),
            sequence("remedy", &["r"], &[("problem.open", None)]),
        ];
        let stage = |name: &str, sequences: Vec<Sequence>| {
            #[expect(clippy::unwrap_used, reason = "the names are below")]
            let name = StageName::new(name).unwrap();
            Stage { name, windows: vec![], sequences }
        };
        Shipyard { stages: vec![stage("dev", dev), stage("prod", prod)] }
    })
}

/// The same with these windows in dev and in prod.
pub fn with_windows(windows: &[Vec<Window>; 2]) -> Shipyard {
    let mut shipyard = shipyard().clone();
    for (stage, windows) in shipyard.stages.iter_mut().zip(windows) {
        stage.windows.clone_from(windows);
    }
    shipyard
}

/// Sequences triggered from outside, by how often.
const TRIGGERS: [(&str, &str); 11] = [
    ("dev", "delivery"),
    ("dev", "delivery"),
    ("dev", "delivery"),
    ("dev", "gated"),
    ("dev", "many"),
    ("dev", "delayed"),
    ("dev", "slow"),
    ("prod", "outside"),
    ("", "problem.open"),
    ("dev", "unknown"),
    ("dev", "patient"),
];

/// What a context is told by people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Hold back.
    Pause,
    /// Go on.
    Resume,
    /// End it.
    Abort,
}

/// One seed's story. All chances in percent.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Contexts and what is triggered in them: stage and sequence, or a domain event's name.
    pub triggers: Vec<(usize, &'static str, &'static str)>,
    /// They come one after another, not all at the beginning.
    pub busy: bool,
    /// What people tell contexts, and whether only one stage.
    pub orders: Vec<(usize, Order, Option<&'static str>)>,
    /// They tell it early, when little has begun.
    pub early: bool,
    /// An executor never answers.
    pub silent: f64,
    /// An executor sends `.started` only; or `.finished` only.
    pub half: f64,
    /// A task fails.
    pub fail: f64,
    /// Executors poll for work and do not wait for the bus.
    pub pull: bool,
    /// Half of the answers of executors come over HTTP.
    pub http: bool,
    /// Forged and contradictory events.
    pub forged: f64,
    /// What is open waits for longer than history is kept.
    pub expiry: bool,
    /// So much is open elsewhere that a sweep needs several pages.
    pub crowd: bool,
    /// A context may have only so many executions.
    pub most: Option<u32>,
    /// Windows, schedules, retries and remediations.
    pub extras: Extras,
}

impl Plan {
    /// The plan a seed stands for.
    pub fn of(rng: &mut Rng) -> (Self, Troubles) {
        let contexts = 1 + rng.below(3);
        let mut triggers = vec![];
        for context in 0..contexts {
            for _ in 0..if rng.chance(25.0) { 2 } else { 1 } {
                let (stage, sequence) = *rng.pick(&TRIGGERS);
                triggers.push((context, stage, sequence));
            }
        }
        let busy = rng.chance(10.0);
        if busy {
            let of = [("prod", "outside"), ("prod", "outside"), ("dev", "delivery"), ("dev", "gated")];
            triggers.extend((0..8).map(|_| (rng.below(contexts), *rng.pick(&of))).map(|(n, (stage, name))| (n, stage, name)));
        }
        let kinds = [Order::Pause, Order::Resume, Order::Abort, Order::Pause, Order::Resume];
        let mut orders: Vec<_> = (0..*rng.pick(&[0, 0, 1, 2, 3]))
            .map(|_| (rng.below(contexts), *rng.pick(&kinds), *rng.pick(&[None, None, Some("dev"), Some("prod")])))
            .collect();
        // In the order in which seeds have always been drawn: a seed's story stays the same.
        let dead = *rng.pick(&[0.0, 0.0, 30.0]);
        let crash = *rng.pick(&[0.0, 2.0, 2.0, 5.0, 5.0, 15.0]);
        let redrive_first = rng.chance(50.0);
        let zombie = *rng.pick(&[0.0, 0.0, 3.0]);
        let duplicate = *rng.pick(&[0.0, 5.0, 20.0]);
        let trouble = *rng.pick(&[0.0, 0.0, 1.0, 3.0]);
        let leftovers = *rng.pick(&[0.0, 10.0]);
        let silent = *rng.pick(&[0.0, 0.0, 0.0, 30.0]);
        let half = *rng.pick(&[0.0, 0.0, 15.0]);
        let fail = *rng.pick(&[0.0, 30.0, 50.0]);
        let pull = rng.chance(25.0);
        let stale_indexes = rng.chance(30.0);
        let forged = *rng.pick(&[0.0, 0.0, 10.0]);
        let tick = *rng.pick(&[Span(1), Span(50), Span(50), Span::seconds(2), Span::seconds(5)]);
        let skew = *rng.pick(&[Span(0), Span(0), Span::seconds(2), Span::seconds(20)]);
        let sweep = *rng.pick(&[0.0, 0.0, 1.0]);
        let workers = *rng.pick(&[1, 2, 4, 4, 4]);
        let mut troubles = Troubles {
            crash,
            dead,
            redrive_first,
            zombie,
            duplicate,
            trouble,
            leftovers,
            stale_indexes,
            tick,
            skew,
            sweep,
            workers,
            staged: rng.chance(25.0),
            letters: rng.chance(50.0),
            cut: rng.chance(20.0),
            unswept: false,
        };
        let (expiry, crowd) = (rng.chance(5.0), rng.chance(1.0));
        let most = rng.chance(5.0).then(|| 1 + rng.below(3) as u32);
        let early = rng.chance(15.0);
        if early {
            // A pause whose messages are lost, one way or the other: who hears of it?
            orders.push((0, Order::Pause, *rng.pick(&[None, Some("dev"), Some("prod")])));
            if rng.chance(70.0) {
                (troubles.cut, troubles.dead, troubles.crash) = (true, 60.0, 15.0);
            }
        }
        // Drawn beside the others, so that all other seeds stay what they were.
        let dice = rng.clone().below(100);
        if dice < 3 {
            // Of several that may be replaced, the newest waits, in whatever order they come.
            triggers.extend((0..4).map(|n| (n % contexts, "dev", "patient")));
        } else if dice < 7 {
            // Much happens at exactly one time.
            (troubles.tick, troubles.skew) = (Span(0), Span(0));
        }
        let extras = Extras::of(rng, contexts);
        if extras.actions > 0 {
            triggers.push((rng.clone().below(contexts), "dev", REMEDIATION));
        }
        let http = Rng::new(rng.clone().bits()).chance(20.0);
        (Self { triggers, busy, orders, silent, half, fail, pull, http, forged, expiry, crowd, most, early, extras }, troubles)
    }
}
