//! Deployments: the cost of a version, counted in the in-memory world, whose requests and units are those of AWS; and the latency
//! from a push to the offer of its version, on the deployed stack.

mod latency;

pub use latency::offers;

use crate::cost::{Used, number};
use crate::price;
use crate::report::{Aim, Report};
use crate::size::Size;
use keelway_cloud_tests::Problem;
use keelway_conformance::deployments::{DeploymentsWorld, Rider};
use keelway_domain::deployments::definition::Definition;
use keelway_domain::deployments::registry::{ArtifactSource, Origin, Repository};
use keelway_domain::deployments::{Call, LEASE, Progress, Status};
use keelway_domain::time::Span;
use keelway_world::case::{Answer, Entrance, Said, Stand};
use keelway_world::deployments::{DeploymentsStand, Happened, REPOSITORY, SOURCE};
use keelway_world::story::Mode;
use serde_json::json;
use std::collections::BTreeMap;

const NAMESPACE: &str = "bench";
const CONFIG: &str = "cart";
/// The time from a push to its version: pushes within this time become one version.
const DEBOUNCE: Span = Span::seconds(10);
/// The number of heartbeats of a deployer.
const BEATS: usize = 5;
const BEAT: Span = Span::seconds(30);
/// The time after which all timers of a version have fired.
const OVER: Span = Span::minutes(60);

/// Counts the cost of deployments.
pub fn count(report: &mut Report, size: &Size, say: &dyn Fn(&str)) -> Result<(), Problem> {
    say("counting deployments");
    let mut stand = begun()?;
    // Creates what is created only once.
    version(&mut stand, 1)?;
    let before = used(&stand);
    let beats = version(&mut stand, 2)?;
    let all = used(&stand) - before;
    let group = "deployments, cost of a version by a push, from ECR's event to Complete";
    tell(report, group, &all);
    report.row(group, &format!("of the AWS requests, for {BEATS} heartbeats"), beats.requests, "", Aim::None);
    price::tell_one(report, group, "deployments", &all, 0.0)?;

    let history = size.versions;
    say(&format!("the same with {history} versions of the config"));
    for n in 3..history {
        version(&mut stand, n)?;
    }
    let before = used(&stand);
    version(&mut stand, history)?;
    tell(report, &format!("deployments, cost of a version, {history} versions are kept"), &(used(&stand) - before));

    let before = used(&stand);
    fine("a push", &push(&mut stand, "side", 3))?;
    stand.wait(DEBOUNCE);
    tell(report, "deployments, cost of a push that no config watches", &(used(&stand) - before));

    burst(report, size.burst)?;
    let before = used(&stand);
    stand.wait(Span::minutes(8 * 60));
    report.row(
        "deployments, a config at rest for eight hours",
        "AWS requests besides the sweep",
        (used(&stand) - before).requests,
        "",
        Aim::None,
    );
    Ok(())
}

/// Many concurrent pushes to the tags of many configs: the number of configs, and of pushes to the tag of each.
fn burst(report: &mut Report, (configs, pushes): (u64, u64)) -> Result<(), Problem> {
    let mut stand = DeploymentsWorld::new(Mode::Clean, Rider::None, None);
    bind(&mut stand);
    let name = |n: u64| format!("cart-{n}");
    for n in 0..configs {
        fine("a config", &stand.apply(NAMESPACE, &name(n), &definition(&name(n))?, None))?;
    }
    let before = used(&stand);
    for n in 0..configs * pushes {
        fine("a push", &push(&mut stand, &name(n % configs), n))?;
    }
    stand.wait(DEBOUNCE);
    let used = used(&stand) - before;
    let group = format!("deployments, a burst of {} pushes over {configs} configs", configs * pushes);
    let versions: u64 = (0..configs).filter_map(|n| stand.config(NAMESPACE, &name(n)).flatten()?["latest"].as_u64()).sum();
    report.row(&group, "versions cut", number(versions), "", Aim::AtMost(number(configs)));
    report.row(&group, "AWS requests for each push", used.requests / number(configs * pushes), "", Aim::None);
    report.row(&group, "events published", used.events, "", Aim::None);
    Ok(())
}

fn tell(report: &mut Report, group: &str, used: &Used) {
    report.row(group, "AWS requests", used.requests, "", Aim::None);
    report.row(group, "write units", used.writes, "WRU", Aim::None);
    report.row(group, "read units", used.reads, "RRU", Aim::None);
    report.row(group, "events published", used.events, "", Aim::None);
    report.row(group, "messages handled", used.messages, "", Aim::None);
}

fn bind(stand: &mut DeploymentsWorld) {
    let repository = Repository { account: None, region: None, name: REPOSITORY.into() };
    stand.bind(
        NAMESPACE,
        SOURCE,
        &ArtifactSource { from: Origin::Ecr(repository), tags: BTreeMap::new(), images: vec![], vouched: false },
    );
}

/// A config that watches a tag of the source.
fn definition(tag: &str) -> Result<Definition, Problem> {
    let tag = json!({"namespace": NAMESPACE, "name": SOURCE, "tag": tag});
    let definition = json!({
        "template": {"spec": {"containers": [{"name": "web", "image": "web:1"}]}},
        "strategy": {"type": "Rolling", "timeout": 600_000, "deadline": 21_600_000},
        "triggers": [{"imageChange": {"automatic": true, "from": tag, "containers": ["web"]}}],
    });
    serde_json::from_value(definition).map_err(|error| Problem::of("the config", error))
}

fn begun() -> Result<DeploymentsWorld, Problem> {
    let mut stand = DeploymentsWorld::new(Mode::Clean, Rider::None, None);
    bind(&mut stand);
    fine("the config", &stand.apply(NAMESPACE, CONFIG, &definition("main")?, None))?;
    Ok(stand)
}

fn push(stand: &mut DeploymentsWorld, tag: &str, n: u64) -> Answer {
    let at = stand.now();
    stand.image(NAMESPACE, &Happened { tag: Some(tag.into()), digest: format!("{n:064x}"), at }, Entrance::default())
}

/// Runs a version from its push to its end; returns the cost of its deployer's heartbeats.
fn version(stand: &mut DeploymentsWorld, n: u64) -> Result<Used, Problem> {
    fine("a push", &push(stand, "main", n))?;
    stand.wait(DEBOUNCE);
    let token = || format!("token {n}");
    let say = |stand: &mut DeploymentsWorld, what: &str, call: &Call| {
        let (answer, _) = stand.say(NAMESPACE, CONFIG, n, call);
        fine(what, &answer)
    };
    say(stand, "a claim", &Call::Claim { by: "ci".into(), id: n, token: token(), lease: LEASE })?;
    let mut beats = Used::default();
    for _ in 0..BEATS {
        stand.wait(BEAT);
        let before = used(stand);
        say(stand, "a heartbeat", &Call::Heartbeat { token: token(), running: true, lease: LEASE, progress: Progress::default() })?;
        beats = beats + (used(stand) - before);
    }
    let end = Call::End { token: token(), exit: Some(0), message: String::new(), progress: Progress::default() };
    say(stand, "the end", &end)?;
    stand.wait(OVER);
    // The journal is not needed, and would hold the whole history.
    stand.story.world.core().table.journal.clear();
    let state = stand.state(NAMESPACE, CONFIG);
    match state.as_ref().and_then(|x| x.last.as_ref()) {
        Some(last) if last.n == n && last.status == Status::Complete => Ok(beats),
        last => Err(format!("version {n} is not complete: {last:?}").into()),
    }
}

fn fine(what: &str, answer: &Answer) -> Result<(), Problem> {
    match answer.said {
        None | Some(Said::Handled(_) | Said::Status(200..=299)) => Ok(()),
        said => Err(format!("{what}: {said:?} {}", answer.problem).into()),
    }
}

fn used(stand: &DeploymentsWorld) -> Used {
    let world = &stand.story.world;
    // Read first, because the world is locked while it is read.
    let messages = number(world.core().queue.sent());
    Used::in_world(world, messages, 1.0)
}
