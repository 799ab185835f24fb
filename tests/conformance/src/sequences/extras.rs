//! What a share of the seeds has besides: windows and people who override them, schedules, retries, remediations.

use super::plan::SERVICE;
use keelway_domain::event::Object;
use keelway_domain::names::{SequenceName, ServiceName, StageName};
use keelway_domain::schedules::{Concurrency, Spec, When};
use keelway_domain::time::Span;
use keelway_domain::windows::{self, Kind, Window};
use keelway_world::rng::Rng;
use keelway_world::story::BEGINNING;

/// So many of a hundred seeds have extras.
const SHARE: f64 = 15.0;

/// The extras of one seed; most have none.
#[derive(Debug, Clone, Default)]
pub struct Extras {
    /// The windows of dev and prod in each revision of the shipyard, the first of which is in force from the beginning.
    pub windows: Vec<[Vec<Window>; 2]>,
    /// Who overrides windows: for which context, and which stage, if it is named.
    pub overrides: Vec<(usize, Option<&'static str>)>,
    /// Schedules in the order in which they are drawn; the same name twice is a change.
    pub schedules: Vec<(&'static str, Spec)>,
    /// Schedules that are deleted at some time.
    pub deleted: Vec<&'static str>,
    /// Who has something repeated: of which context, and from which task on, if it is named.
    pub retries: Vec<(usize, Option<&'static str>)>,
    /// How many actions a remediation has; 0: there is none.
    pub actions: usize,
}

impl Extras {
    /// The extras that a seed stands for. They are drawn by a generator of their own: all other seeds stay what they are.
    pub fn of(rng: &Rng, contexts: usize) -> Self {
        let mut rng = Rng::new(!rng.clone().bits());
        let mut extras = Self::default();
        if !rng.chance(SHARE) {
            return extras;
        }
        let rng = &mut rng;
        if rng.chance(45.0) {
            extras.windows = (0..1 + rng.below(3)).map(|n| [freeze(rng, n), freeze(rng, n)]).collect();
            let stages = [None, None, Some("dev"), Some("prod")];
            extras.overrides = (0..rng.below(4)).map(|_| (rng.below(contexts), *rng.pick(&stages))).collect();
        }
        if rng.chance(45.0) {
            let names = ["often", "often", "once"];
            for _ in 0..1 + rng.below(3) {
                let name = *rng.pick(&names);
                extras.schedules.push((name, spec(rng, name)));
            }
            extras.deleted = if rng.chance(30.0) { vec![*rng.pick(&names)] } else { vec![] };
        }
        if rng.chance(45.0) {
            let from = [None, None, None, Some("a"), Some("get-action")];
            extras.retries = (0..1 + rng.below(4)).map(|_| (rng.below(contexts), *rng.pick(&from))).collect();
        }
        if rng.chance(45.0) {
            extras.actions = 1 + rng.below(3);
        }
        extras
    }

    /// Whether a seed has any.
    pub fn any(&self) -> bool {
        !(self.windows.is_empty() && self.schedules.is_empty() && self.retries.is_empty()) || self.actions > 0
    }
}

fn zone(rng: &mut Rng) -> Option<String> {
    let zones = [None, Some("Europe/Berlin"), Some("America/New_York"), Some("Asia/Kolkata")];
    rng.pick(&zones).map(str::to_owned)
}

/// The windows of a stage in the `n`-th revision; later ones are often open.
fn freeze(rng: &mut Rng, n: usize) -> Vec<Window> {
    if rng.chance(if n == 0 { 30.0 } else { 50.0 }) {
        return vec![];
    }
    (0..1 + rng.below(2)).map(|_| window(rng)).collect()
}

/// The world begins on a Wednesday at 11:06:40 UTC. No window that denies is open for ever: what is always closed is closed by
/// windows that allow and have passed.
fn window(rng: &mut Rng) -> Window {
    let often =
        [("*/2 * * * *", 60), ("*/5 * * * *", 120), ("7,12,30 * * * *", 90), ("0 7-13 * * MON-FRI", 1200), ("8 12 * * *", 600)];
    let (kind, when) = if rng.chance(50.0) {
        let from = BEGINNING + Span::seconds(rng.below(240) as i64 - 120);
        let until = from + Span::seconds(*rng.pick(&[10, 60, 150, 900, 10_000]));
        (*rng.pick(&[Kind::Allow, Kind::Deny, Kind::Deny]), windows::When::Once { from, until })
    } else {
        let (schedule, seconds) = *rng.pick(&often);
        let when = windows::When::Recurring { schedule: schedule.into(), duration: Span::seconds(seconds) };
        (*rng.pick(&[Kind::Allow, Kind::Deny]), when)
    };
    Window { kind, when, zone: zone(rng), reason: None }
}

#[expect(clippy::unwrap_used, reason = "the names are constants")]
fn spec(rng: &mut Rng, name: &str) -> Spec {
    let soon = BEGINNING + Span::seconds(rng.below(300) as i64);
    let when = match name {
        "once" => When::At(soon),
        _ => When::Cron((*rng.pick(&["* * * * *", "* * * * *", "*/2 * * * *", "8-10 11,12 * * *"])).into()),
    };
    let (stage, sequence) =
        *rng.pick(&[("prod", "outside"), ("prod", "outside"), ("dev", "delivery"), ("dev", "gated"), ("dev", "unknown")]);
    let services: &[&str] = if rng.chance(40.0) { &["other", SERVICE] } else { &[SERVICE] };
    Spec {
        stage: StageName::new(stage).unwrap(),
        sequence: SequenceName::new(sequence).unwrap(),
        services: services.iter().map(|name| ServiceName::new(*name).unwrap()).collect(),
        when,
        zone: zone(rng),
        start: rng.chance(20.0).then_some(soon),
        // A schedule without an end would never come to rest.
        end: Some(BEGINNING + Span::minutes(*rng.pick(&[3, 5, 8]))).filter(|_| name != "once"),
        suspended: rng.chance(15.0),
        concurrency: *rng.pick(&[Concurrency::Queue, Concurrency::Skip]),
        data: Object::from_iter([("n".to_owned(), rng.below(3).into())]),
    }
}
