//! What a seed's projects consent to, and who does what.

use super::check::Lets;
use super::scenario::Action;
use crate::sim::Troubles;
use keelway_domain::border::{Act, Consent, Consents, Pattern, Policy, ResourceKind};
use keelway_domain::time::Span;
use keelway_world::rng::Rng;
use std::collections::BTreeMap;

/// What a seed's story is.
pub struct Plan {
    /// What the honest project consents to, one after the other.
    pub consents: Vec<Consents>,
    /// What the hostile one may use of the installation, one after the other.
    pub policies: Vec<Option<Policy>>,
    /// Who does what within so many requests.
    pub deeds: Vec<(usize, Action)>,
    /// What lets the hostile project's texts in.
    pub marks: BTreeMap<u64, Lets>,
}

/// Some consents for the hostile project, and some that are for others, or for other things.
fn consents(rng: &mut Rng) -> Consents {
    let mut all = vec![];
    let mut consent = |to: &str, may: Vec<Act>, names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        all.push(Consent { to: vec![to.to_owned()], may, names });
    };
    if rng.chance(20.0) {
        consent("team-c", Act::ALL.to_vec(), &[]);
    }
    if rng.chance(20.0) {
        consent("team-a", Act::ALL.to_vec(), &["other", "dev"]);
    }
    if rng.chance(50.0) {
        for (act, name) in [(Act::Deploy, "api"), (Act::Tag, "images"), (Act::Observe, "prod"), (Act::Trigger, "live")] {
            if rng.chance(40.0) {
                let (to, named) = (*rng.pick(&["team-a", "team-*"]), [name]);
                consent(to, vec![act], &named[..rng.below(2)]);
            }
        }
    }
    Consents(all)
}

fn policy(rng: &mut Rng) -> Option<Policy> {
    let lists = |kind, names: &[&str]| (kind, names.iter().map(|name| Pattern::named(*name)).collect());
    match rng.below(6) {
        0..3 => None,
        3 => Some(Policy::default()),
        4 => Some(Policy { allows: [lists(ResourceKind::Functions, &["team-a-*"])].into(), ..Policy::default() }),
        _ => {
            let all = [ResourceKind::Functions, ResourceKind::Servers].map(|kind| lists(kind, &["*"]));
            Some(Policy { allows: all.into(), ..Policy::default() })
        }
    }
}

/// What one of the hostile project does.
fn theirs(rng: &mut Rng, n: u64) -> (Action, Lets) {
    let deploys = Some((Act::Deploy, "api"));
    match rng.below(16) {
        0 | 1 => (Action::TheirTrigger("bare", n), None),
        2 => (Action::TheirTrigger("back", n), None),
        3 | 4 => (Action::TheirTrigger("named", n), deploys),
        5 => (Action::TheirTrigger("undo", n), deploys),
        6 => (Action::Reaching(n), Some((Act::Tag, "images"))),
        7 => (Action::Moving(n, rng.chance(30.0)), None),
        8 | 9 => (Action::Report(n), Some((Act::Trigger, "live"))),
        10 => (Action::GiveUp(n), None),
        11 => (Action::ForgedTask(n), None),
        12 => (Action::ForgedFact(n), None),
        13 => (Action::Copy(n), None),
        14 => (Action::Register(false, n), None),
        _ => (rng.pick(&[Action::Page, Action::Look("team-a/rogue"), Action::ApproveAsAnother]).clone(), None),
    }
}

/// What one of the honest project does.
fn ours(rng: &mut Rng, n: u64) -> Action {
    match rng.below(9) {
        0 => Action::OurTrigger(n, "dev", None),
        1 | 2 => Action::OurTrigger(n, "live", *rng.pick(&[None, Some("warning"), Some("pass")])),
        3 => Action::Push(n),
        4 | 5 => Action::Runs(n),
        6 => Action::Retry(rng.below(8)),
        7 => Action::Register(true, n),
        _ => Action::Look(super::OUR_CLUSTER),
    }
}

/// Draws a seed.
pub fn draw(rng: &mut Rng) -> (Plan, Troubles) {
    let mut marks = BTreeMap::new();
    let mut deeds = vec![];
    // From 10 on: those below are there from the beginning.
    for n in 10..10 + 6 + rng.below(10) as u64 {
        let (action, lets) = theirs(rng, n);
        marks.insert(n, lets);
        deeds.push((400, action));
    }
    for n in 100..100 + 3 + rng.below(6) as u64 {
        deeds.push((300, ours(rng, n)));
    }
    let some = |rng: &mut Rng| 1 + rng.below(4);
    let consents: Vec<_> = (0..some(rng)).map(|_| consents(rng)).collect();
    let policies: Vec<_> = (0..some(rng).min(2)).map(|_| policy(rng)).collect();
    deeds.extend((1..consents.len()).map(|n| (400, Action::Consents(n))));
    deeds.extend((1..policies.len()).map(|n| (400, Action::Policy(n))));
    let mut troubles = Troubles::of(rng);
    // An attempt waits ten seconds for its sequence, however short a request is; and what a transaction writes is seen with whoever
    // wrote it.
    troubles.tick = troubles.tick.max(Span(200)).min(Span::seconds(2));
    // Many sequences here wait for hours. With slow requests, sweeps would come every few seconds, and send more than two workers
    // handle.
    troubles.sweep = troubles.sweep.min(0.2);
    troubles.staged = false;
    (Plan { consents, policies, deeds, marks }, troubles)
}
