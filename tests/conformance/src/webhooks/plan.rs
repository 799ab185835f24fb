//! What a seed stands for: which subscriptions there are, what happens, and what people do meanwhile.

use super::yard::Mood;
use crate::sim::Troubles;
use keelway_domain::stored::Stored;
use keelway_domain::time::Span;
use keelway_domain::webhooks::Subscription;
use keelway_world::rng::Rng;
use serde_json::json;

/// The namespace of all subscriptions, which is the project of all events.
pub const NAMESPACE: &str = "p";
/// Types of events, and their stages.
const EVENTS: [(&str, &str); 4] = [
    ("sh.keptn.event.test.triggered", "dev"),
    ("sh.keptn.event.test.triggered", "prod"),
    ("sh.keptn.event.dev.delivery.finished", "dev"),
    ("sh.keptn.event.prod.delivery.started", "prod"),
];
const NAMES: [&str; 3] = ["one", "two", "three"];

/// What somebody does.
#[derive(Debug, Clone)]
pub enum Action {
    /// An event on the bus: its number, type and stage.
    Emit(usize, &'static str, &'static str),
    /// Somebody applies a subscription.
    Apply(&'static str, Box<Subscription>),
    /// Somebody deletes it.
    Delete(&'static str),
    /// Somebody resumes it.
    Resume(&'static str),
    /// Somebody asks for one of its deliveries again. The same number is the same request.
    Redeliver(&'static str, usize),
    /// Its receiver changes.
    Mood(&'static str, Mood),
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
    /// What is applied before anything goes wrong.
    pub first: Vec<(&'static str, Subscription)>,
    /// How receivers are disposed at the beginning.
    pub moods: Vec<(&'static str, Mood)>,
    /// What happens.
    pub actions: Vec<(When, Action)>,
}

fn subscription(rng: &mut Rng) -> Subscription {
    let tasks =
        json!({"events": ["sh.keptn.event.test.triggered"], "sendStarted": rng.chance(70.0), "sendFinished": rng.chance(70.0)});
    let mut all = rng
        .pick(&[
            tasks.clone(),
            tasks,
            json!({"events": ["*"]}),
            json!({"events": ["sh.keptn.event.*.finished", "dev.keelway.webhook.disabled"]}),
        ])
        .clone();
    all["projects"] = json!([NAMESPACE]);
    all["url"] = format!("https://receiver.test/{}", rng.below(3)).into();
    all["attempts"] = (*rng.pick(&[1, 2, 3, 3, 10])).into();
    if rng.chance(30.0) {
        all["stages"] = json!(["dev"]);
    }
    #[expect(clippy::unwrap_used, reason = "it is one")]
    Subscription::from_value(&all).unwrap()
}

fn mood(rng: &mut Rng) -> Mood {
    *rng.pick(&[
        Mood::Takes,
        Mood::Takes,
        Mood::Takes,
        Mood::Refuses(500),
        Mood::Refuses(302),
        Mood::Refuses(410),
        Mood::Busy(429, 20),
        Mood::Busy(503, 200_000),
        Mood::Silent,
        Mood::Slow,
    ])
}

/// Most of it at the beginning, some of it hours and days later.
fn when(rng: &mut Rng) -> When {
    if rng.chance(65.0) {
        return When::Soon(*rng.pick(&[1, 60, 150]));
    }
    let most = *rng.pick(&[60, 7_200, 400_000]);
    When::Later(Span::seconds(rng.below(most) as i64))
}

impl Plan {
    /// The plan a seed stands for.
    pub fn of(rng: &mut Rng) -> (Self, Troubles) {
        let names = &NAMES[..1 + rng.below(3)];
        let known: Vec<&'static str> = names.iter().copied().filter(|_| rng.chance(80.0)).collect();
        let first = known.iter().map(|name| (*name, subscription(rng))).collect();
        let moods = names.iter().map(|name| (*name, mood(rng))).collect();
        let mut actions = vec![];
        for n in 0..1 + rng.below(5) {
            let (ty, stage) = *rng.pick(&EVENTS);
            actions.push((when(rng), Action::Emit(n, ty, stage)));
        }
        for n in 0..*rng.pick(&[0, 0, 1, 2, 4, 6]) {
            let name = *rng.pick(names);
            let action = match rng.below(8) {
                0..=2 => Action::Apply(name, Box::new(subscription(rng))),
                3 => Action::Delete(name),
                4 => Action::Resume(name),
                5 => Action::Redeliver(name, n),
                _ => Action::Mood(name, mood(rng)),
            };
            actions.push((when(rng), action));
        }
        let mut troubles = Troubles::of(rng);
        if rng.clone().chance(10.0) {
            // Much happens at exactly one time.
            (troubles.tick, troubles.skew) = (Span(0), Span(0));
        }
        (Self { first, moods, actions }, troubles)
    }
}
