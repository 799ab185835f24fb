//! What a seed's promotions are: the pipelines, what is reported, and what people ask for.

use super::check::Watch;
use super::host::Shared;
use super::judge::{LATE, Verdicts};
use super::planted::Plant;
use super::scenario::{Action, ENVIRONMENTS, Promoting};
use super::{definition, settings, target};
use crate::sim;
use keelway_domain::promotions::definition::{Definition, EvaluationSpec, InFlight, Strategy};
use keelway_domain::promotions::{At, Command};
use keelway_domain::time::Span;
use keelway_engine::promotions::Address;
use keelway_world::rng::Rng;
use std::collections::{BTreeMap, BTreeSet};

/// Perhaps the revision is evaluated where it soaks. What else is drawn stays as it is.
fn evaluate(definition: &mut Definition, rng: &mut Rng) {
    let first = &mut definition.environments[1];
    if first.soak.is_some() && rng.chance(60.0) {
        first.evaluation = Some(EvaluationSpec { service: "app".into(), stage: None, strict: rng.chance(50.0) });
    }
}

impl Promoting {
    /// Draws a seed.
    pub(super) fn draw(rng: &mut Rng, plant: Option<Plant>) -> (Self, sim::Troubles) {
        let targets = 1 + rng.below(2);
        let count = 1 + rng.below(2);
        let pipelines = (0..count).map(|n| {
            let environments = &ENVIRONMENTS.map(|name| (name, targets))[..2 + rng.below(2)];
            let mut promotion = settings(rng.chance(75.0), rng.chance(30.0));
            if let Strategy::PullRequest(request) = &mut promotion.strategy {
                request.merge = rng.chance(15.0);
            }
            let mut definition = definition(environments, promotion);
            definition.environments[1].soak = rng.chance(20.0).then_some(Span::minutes(5));
            evaluate(&mut definition, &mut rng.clone());
            if rng.chance(20.0) {
                definition.in_flight = InFlight::Finish;
            }
            (Address { namespace: "shop".into(), name: format!("app-{n}") }, definition)
        });
        let pipelines: Vec<_> = pipelines.collect();
        let mut reports = vec![];
        for n in 0..1 + rng.below(3) {
            let revision = format!("v{}", if rng.chance(15.0) { n } else { n + 2 });
            for place in 0..targets {
                if rng.chance(30.0) {
                    reports.push(Action::Report(target("dev", place), revision.clone(), false));
                }
                reports.push(Action::Report(target("dev", place), revision.clone(), true));
            }
        }
        let ask = |rng: &mut Rng| {
            let at = At { environment: (*rng.pick(&["staging", "prod"])).into(), revision: format!("v{}", 1 + rng.below(4)) };
            let name = at.environment.clone();
            let command = match rng.below(9) {
                0 => Command::Approve(at),
                1 => Command::Reject(at),
                2 => Command::Abandon(at.revision),
                3 => Command::Suspend,
                4 => Command::Resume,
                5 => Command::Retry(name),
                6 | 7 => Command::Hold(At { revision: "v1".into(), ..at }),
                _ => Command::Abort(name),
            };
            Action::Ask(rng.below(count), command)
        };
        let asks = (0..rng.below(4)).map(|_| ask(rng)).collect();
        let scenario = Self {
            pipelines,
            targets,
            host: Shared::default(),
            reports,
            asks,
            versions: BTreeMap::new(),
            runs: BTreeMap::new(),
            healthy: BTreeSet::new(),
            commands: 0,
            closings: rng.below(3),
            rolled_out: 0,
            merged: BTreeSet::new(),
            wanted: BTreeMap::new(),
            quiet: false,
            plant,
            reopened: false,
            verdicts: Verdicts::default(),
            watch: Watch::default(),
            wrong: None,
            sweeps: true,
        };
        scenario.begin(rng.clone());
        (scenario, sim::Troubles::of(rng))
    }

    /// How evaluations come out, until everybody is quiet.
    fn begin(&self, mut rng: Rng) {
        let verdict = *rng.pick(&["pass", "pass", "warning", "fail", "errored", "unevaluated", LATE]);
        self.verdicts.lock().verdicts.insert(ENVIRONMENTS[1].into(), verdict.into());
    }
}
