//! What a seed stands for: a project, tasks that are evaluated, and what others do meanwhile.

use crate::sim::Troubles;
use keelway_domain::evaluations::KEPT;
use keelway_domain::time::Span;
use keelway_world::rng::Rng;

/// The project.
pub const PROJECT: &str = "p";
/// Stages and services whose tasks are evaluated.
pub const PLACES: [(&str, &str); 3] = [("dev", "svc"), ("dev", "other"), ("prod", "svc")];
/// Sources that a project may have; and a name that only a service on the bus has.
pub const SOURCES: [&str; 2] = ["one", "two"];
/// A service on the bus.
pub const SERVICE: &str = "outside";
/// The indicators, which are their own queries.
pub const INDICATORS: [&str; 2] = ["errors", "latency"];

/// What objectives a service may have: whether there is a history to compare with, and of what.
pub const OBJECTIVES: [&str; 4] = [
    "objectives: [{sli: errors, pass: [{criteria: [\"<=2\"]}], warning: [{criteria: [\"<=3\"]}]}]\ntotal_score: {pass: 90%, warning: 50%}\n",
    "comparison: {compare_with: single_result, include_result_with_score: pass}\nobjectives: [{sli: errors, pass: [{criteria: [\"<=+50%\"]}]}, {sli: latency}]\ntotal_score: {pass: 90%}\n",
    "comparison: {compare_with: several_results, number_of_comparison_results: 3, include_result_with_score: pass_or_warn, aggregate_function: p50}\nobjectives: [{sli: errors, pass: [{criteria: [\"<=+0%\"]}], warning: [{criteria: [\"<=+100%\"]}]}, {sli: latency, weight: 2, pass: [{criteria: [\"<4\"]}]}]\ntotal_score: {pass: 90%, warning: 30%}\n",
    "comparison: {compare_with: several_results, number_of_comparison_results: 5, include_result_with_score: all, aggregate_function: avg}\nobjectives: [{sli: latency, key_sli: true, displayName: latency, pass: [{criteria: [\">-1\", \"<=+20%\"]}]}]\ntotal_score: {pass: 50%}\n",
];

/// How the service on the bus is disposed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// It answers.
    Answers,
    /// It answers twice, with different values.
    Twice,
    /// It says nothing.
    Silent,
    /// It begins, and says no more.
    Begins,
    /// It answers when it has been given up.
    Late,
    /// It answers something else first.
    Astray,
    /// It was aborted, or could not do it.
    Fails,
}

/// What somebody does. Tasks are called by their number.
#[derive(Debug, Clone)]
pub enum Action {
    /// A sequence triggers a task at one of [`PLACES`].
    Trigger(usize, usize),
    /// The same trigger again, or the pipeline asks once more.
    Again(usize),
    /// A sequence waits no more for a task; whether the event that says so arrives.
    GiveUp(usize, bool),
    /// The service on the bus says that it has begun.
    Began(usize),
    /// It answers with these values; whether for this task.
    Provide(usize, [Option<i64>; 2], bool),
    /// It ends without values, with this status.
    Fail(usize, &'static str),
    /// A client takes an evaluation out over the bus.
    Void(usize),
    /// The same over the API.
    Invalidate(usize),
    /// A source has this value for an indicator, or none.
    Value(&'static str, &'static str, Option<i64>),
    /// A source has no values for so long.
    Late(&'static str, Span),
    /// It is busy for so long.
    Busy(&'static str, Span),
    /// It refuses, or no longer.
    Refuse(&'static str, bool),
    /// A client says what the project is monitored with.
    Choose(usize, &'static str),
    /// A source is declared, or deleted.
    Declare(&'static str, Option<Span>),
    /// The objectives of one of [`PLACES`] become others.
    Write(usize, usize),
}

/// When something happens.
#[derive(Debug, Clone, Copy)]
pub enum When {
    /// While others make so many requests.
    Soon(usize),
    /// So much later.
    Later(Span),
}

/// One seed's story.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Whether the project has objectives and sources at all.
    pub configured: bool,
    /// The sources, and how long after a window they are asked.
    pub sources: Vec<(&'static str, Span)>,
    /// The source that was chosen before.
    pub chosen: Option<&'static str>,
    /// The objectives at [`PLACES`].
    pub objectives: [usize; 3],
    /// How the service on the bus is disposed.
    pub manner: Manner,
    /// Which tasks are none: a pipeline asks for them.
    pub asks: Vec<bool>,
    /// Windows of tasks: so long, and it ends so long before now.
    pub windows: Vec<(Span, Span)>,
    /// What happens.
    pub actions: Vec<(When, Action)>,
}

fn when(rng: &mut Rng) -> When {
    if rng.chance(65.0) {
        return When::Soon(*rng.pick(&[1, 40, 150]));
    }
    let most = *rng.pick(&[30, 300, 7_200]);
    When::Later(Span::seconds(rng.below(most) as i64))
}

fn value(rng: &mut Rng) -> Option<i64> {
    rng.chance(85.0).then(|| 1 + rng.below(4) as i64)
}

fn delay(rng: &mut Rng) -> Span {
    *rng.pick(&[Span(0), Span(0), Span::seconds(90), Span::minutes(20)])
}

/// What happens to tasks and around them.
fn beside(rng: &mut Rng, tasks: usize, place: impl Fn(&mut Rng) -> usize, n: usize) -> Action {
    let (source, task) = (*rng.pick(&SOURCES), rng.below(tasks));
    match rng.below(14) {
        0 => Action::Again(task),
        1 => Action::GiveUp(task, rng.chance(60.0)),
        2 => Action::Void(task),
        3 => Action::Invalidate(task),
        4..=6 => Action::Value(source, INDICATORS[rng.below(INDICATORS.len())], value(rng)),
        7 => Action::Late(source, Span::seconds(rng.below(300) as i64)),
        8 => Action::Busy(source, Span::seconds(*rng.pick(&[5, 30, 200, 2_000]))),
        9 => Action::Refuse(source, rng.chance(50.0)),
        10 => Action::Choose(n, [SOURCES[0], SOURCES[1], SERVICE][rng.below(3)]),
        11 => Action::Declare(source, rng.chance(60.0).then(|| delay(rng))),
        _ => Action::Write(place(rng), rng.below(OBJECTIVES.len())),
    }
}

impl Plan {
    /// The plan a seed stands for.
    pub fn of(rng: &mut Rng) -> (Self, Troubles) {
        let configured = rng.chance(95.0);
        let count = if configured { rng.below(3) } else { 0 };
        let sources = SOURCES[..count].iter().map(|name| (*name, delay(rng))).collect();
        let chosen = *rng.pick(&[None, Some(SOURCES[0]), Some(SOURCES[1]), Some(SERVICE)]);
        let chosen = chosen.filter(|_| configured);
        let objectives = [0; 3].map(|_| rng.below(OBJECTIVES.len()));
        let manner = *rng.pick(&[
            Manner::Answers,
            Manner::Answers,
            Manner::Answers,
            Manner::Twice,
            Manner::Silent,
            Manner::Begins,
            Manner::Late,
            Manner::Astray,
            Manner::Fails,
        ]);
        let places = 1 + rng.below(PLACES.len());
        let tasks = *rng.pick(&[1, 2, 3, 5, 8, 26]);
        let (mut windows, mut actions) = (vec![], vec![]);
        for task in 0..tasks {
            let length = *rng.pick(&[Span::minutes(1), Span::minutes(10), Span::minutes(10), Span::seconds(20)]);
            let ago = *rng.pick(&[Span(0), Span(0), Span::minutes(5), Span::minutes(-5)]);
            windows.push((length, ago));
            // Very many of them come one after the other, as lanes have it.
            let many = tasks > KEPT;
            let when = if many { When::Later(Span::minutes(30 * task as i64)) } else { when(rng) };
            let at = if many { 0 } else { rng.below(places) };
            actions.push((when, Action::Trigger(task, at)));
        }
        for source in SOURCES {
            for indicator in INDICATORS {
                actions.push((When::Soon(1), Action::Value(source, indicator, value(rng))));
            }
        }
        if configured {
            for n in 0..*rng.pick(&[0, 0, 2, 4, 8]) {
                let action = beside(rng, tasks, |rng| rng.below(places), n);
                actions.push((when(rng), action));
            }
        }
        // What else is drawn stays as it is.
        let mut own = rng.clone();
        let share = *own.pick(&[0.0, 0.0, 30.0, 100.0]);
        let asks = (0..tasks).map(|_| configured && own.chance(share)).collect();
        (Self { configured, sources, chosen, objectives, manner, asks, windows, actions }, Troubles::of(rng))
    }
}
