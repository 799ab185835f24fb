//! What a seed's delivery is, and who does what with it.

use super::manifests::{self, Stage};
use super::scenario::Action;
use super::{PROJECT, STAGES, clusters, deleted, image, project, revision, tags};
use crate::sim::Troubles;
use keelway_domain::border::{Act, Consent, Consents, Update};
use keelway_domain::deployments::definition::Definition;
use keelway_domain::deployments::{Back, Command as Ask, Latest};
use keelway_domain::ids::hash64;
use keelway_domain::promotions::definition::Definition as Pipeline;
use keelway_domain::promotions::{At, Command};
use keelway_domain::time::Span;
use keelway_engine::projects::ProjectSettings;
use keelway_engine::sequences::commands::Control;
use keelway_world::rng::Rng;

/// What a seed's story is.
pub struct Plan {
    /// The shipyards, one after the other.
    pub shipyards: Vec<Vec<Stage>>,
    /// The stages' configs.
    pub configs: Vec<Definition>,
    /// The pipeline through them.
    pub pipeline: Pipeline,
    /// Who does what within this time.
    pub deeds: Vec<(Span, Action)>,
    /// What the evaluations that the pipeline orders come to, by stage, until everybody is quiet.
    pub verdicts: Vec<(String, String)>,
    /// People give, in percent, what waits for them.
    pub patient: f64,
    /// What happens at about the same time happens at exactly one.
    pub at_once: bool,
    /// A cluster that is away stays so.
    pub gone: bool,
}

impl Plan {
    /// Clusters and tags, in some seeds. What was drawn before decides, so that the other seeds stay as they were.
    fn add(&mut self, rng: &mut Rng, (stages, long): (usize, Span)) {
        if rng.chance(35.0) {
            let acts = clusters::draw(rng, &mut self.pipeline, long);
            self.deeds.extend(acts.into_iter().map(|(at, act)| (at, Action::Cluster(act))));
            self.gone = rng.chance(15.0);
        }
        if rng.chance(35.0) {
            let acts = tags::draw(rng, &mut self.configs, (stages, long));
            self.deeds.extend(deleted::draw(&acts));
            self.deeds.extend(acts);
        }
    }

    /// The project of the sequences: every stage's config may follow its tags.
    pub fn project(&self) -> ProjectSettings {
        let follows = Consent { to: vec![format!("{PROJECT}-*")], may: vec![Act::Observe], names: vec![] };
        let tags = self.configs.iter().any(|config| config.image_changes().next().is_some());
        let consents = if tags { Update::Set(Consents(vec![follows])) } else { Update::Keep };
        ProjectSettings { consents, ..ProjectSettings::plain(project(PROJECT)) }
    }
}

fn within(rng: &mut Rng, span: Span) -> Span {
    Span(rng.below(span.0.unsigned_abs() as usize + 1) as i64)
}

/// What somebody does, and perhaps does again or takes back within some time.
fn act(rng: &mut Rng, (stages, n): (usize, u64)) -> Vec<(Span, Action)> {
    let (now, soon) = (Span(0), Span::minutes(3));
    let (place, which) = (rng.below(stages), rng.below(100));
    let environment = || STAGES[place.max(1)].to_owned();
    let of = |n: u64| At { environment: environment(), revision: revision(n) };
    match rng.below(34) {
        0..4 => vec![(now, Action::Control(which, Control::Abort))],
        4..7 => vec![(now, Action::Control(which, Control::Pause)), (soon, Action::Control(which, Control::Resume))],
        7..9 => vec![(now, Action::Repeat(which))],
        9..11 => vec![(now, Action::Flow(Command::Retry(environment())))],
        11 | 12 => vec![(now, Action::Flow(Command::Abort(environment())))],
        13 => vec![(now, Action::Flow(Command::Suspend)), (soon, Action::Flow(Command::Resume))],
        14 => vec![(now, Action::Flow(Command::GiveUp(of(1 + which as u64 % 4))))],
        15 => vec![(now, Action::Flow(Command::Reject(of(1 + which as u64 % 4))))],
        16 | 17 => vec![(now, Action::Ask(place, Ask::Cancel))],
        18 => vec![(now, Action::Ask(place, Ask::Retry))],
        19 => vec![(now, Action::Ask(place, Ask::Pause)), (soon, Action::Ask(place, Ask::Resume))],
        20 => vec![(now, Action::Ask(place, back()))],
        21 => vec![(now, Action::Ask(place, Ask::Latest(Latest { image: image(n), ..Latest::default() })))],
        22 | 23 => vec![(now, Action::Alarm(place, true)), (soon, Action::Alarm(place, false)), (soon, Action::Alarm(place, true))],
        24 => vec![(now, Action::Apply(place, n))],
        25 => vec![(now, Action::Delete(place)), (soon, Action::Apply(place, n))],
        26 => vec![(now, Action::DeleteFlow), (soon, Action::ApplyFlow)],
        27 => vec![(now, Action::Shipyard(1))],
        28 | 29 => vec![(now, Action::Deliver(place, n))],
        _ => vec![(now, Action::Past(which)), (soon, Action::Past(which + 7))],
    }
}

/// The application goes back.
fn back() -> Ask {
    Ask::Rollback(Back {
        release: None,
        config: false,
        application: true,
        parts: None,
        allow_failed: false,
        again: false,
        by_steps: false,
        group: String::new(),
        task: None,
    })
}

/// Draws a seed.
pub fn draw(rng: &mut Rng) -> (Plan, Troubles) {
    let stages = *rng.pick(&[2, 2, 3]);
    let shipyard = |rng: &mut Rng| (0..STAGES.len()).map(|place| manifests::stage(rng, place)).collect::<Vec<_>>();
    let mut shipyards = vec![shipyard(rng), shipyard(rng)];
    let configs = (0..STAGES.len()).map(|_| manifests::config(rng)).collect();
    let mut pipeline = manifests::pipeline(rng, stages);
    let long = *rng.pick(&[Span::minutes(1), Span::minutes(10), Span::minutes(40)]);
    let mut deeds = vec![];
    for n in 0..1 + rng.below(4) as u64 {
        deeds.push((within(rng, long), Action::Deliver(0, n + 1)));
    }
    // In some seeds, nobody does anything but deliver.
    let busy = *rng.pick(&[0, 0, 4, 8, 16]);
    for n in 0..rng.below(busy + 1) as u64 {
        let (at, acts) = (within(rng, long), act(rng, (stages, 10 + n)));
        for (later, action) in acts {
            deeds.push((Span(at.0 + within(rng, later).0), action));
        }
    }
    let mut troubles = Troubles::of(rng);
    // An attempt waits ten seconds for its sequence, however short a request is; and what a transaction writes is seen with whoever
    // wrote it.
    troubles.tick = troubles.tick.max(Span(200)).min(Span::seconds(2));
    troubles.skew = *rng.pick(&[Span(0), Span::seconds(2), Span::seconds(30)]);
    troubles.sweep = troubles.sweep.min(0.2);
    troubles.staged = false;
    if rng.chance(50.0) {
        troubles = troubles.without_sweeps();
    }
    // What was drawn decides about windows, so that the other seeds stay as they were. Another shipyard has none.
    let drawn = hash64(&[format!("{shipyards:?} {pipeline:?}").as_bytes()]);
    if drawn.is_multiple_of(4) {
        shipyards[0].iter_mut().for_each(|stage| stage.closes = true);
    }
    if drawn.is_multiple_of(8) {
        let settings = pipeline.environments.iter_mut().filter_map(|environment| environment.promotion.as_mut());
        settings.for_each(|settings| settings.windows = vec![manifests::closed()]);
    }
    let verdicts = manifests::evaluate(&mut pipeline, drawn);
    let (patient, at_once) = (*rng.pick(&[100.0, 80.0]), rng.chance(20.0));
    let mut plan = Plan { shipyards, configs, pipeline, deeds, verdicts, patient, at_once, gone: false };
    plan.add(&mut Rng::new(drawn), (stages, long));
    (plan, troubles)
}
