//! The delay if a function dies: after each of its requests, once. The time is that of the in-memory world with the visibility
//! timeouts of the template's queues, so it is the same on every machine. There is no sweep.

use crate::report::{Aim, Report};
use keelway_cloud_tests::Problem;
use keelway_conformance::deployments::{DeploymentsWorld, Rider};
use keelway_conformance::promotions::{PromotionsWorld, Rider as PromotionRider};
use keelway_deployers_stand::stand::{self, Stand as DeployersStand, definition};
use keelway_domain::deployments::Command;
use keelway_domain::deployments::definition::{FailurePolicy, Weight};
use keelway_domain::deployments::{Call, LEASE, Progress, Status};
use keelway_domain::time::Span;
use keelway_engine::deployments::DEPLOYERS;
use keelway_engine::promotions::ATTEMPTS;
use keelway_lambda::batch::HELD;
use keelway_world::case::{Answer, Entrance, Said, Stand};
use keelway_world::core::Method;
use keelway_world::deployments::DeploymentsStand;
use keelway_world::promotions::PromotionsStand;
use keelway_world::promotions::host::{Deed, GitHost};
use keelway_world::sequences::{SequencesStand, SequencesWorld};
use keelway_world::story::{BEGINNING, Mode};
use keelway_world::webhooks::HooksWorld;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The aim for the time from the death of a function until its work continues, in seconds.
const AIM: f64 = 60.0;
/// The time after which a story counts as stuck.
const PATIENCE: Span = Span::minutes(120);
/// The interval at which people, executors and deployers look.
const LOOK: Span = Span::seconds(1);
/// How long the deployer works.
const WORK: Span = Span::seconds(60);
const BEAT: Span = Span::seconds(20);

const SHIPYARD: &str = "apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shop}
spec:
  stages:
    - {name: dev, sequences: [{name: delivery, tasks: [{name: deploy}, {name: test}]}]}
    - name: prod
      sequences: [{name: delivery, triggeredOn: [{event: dev.delivery.finished}], tasks: [{name: deploy}]}]
";
const PIPELINE: &str = "apiVersion: pipelines.weave.works/v1alpha1
kind: Pipeline
metadata: {name: app, namespace: shop}
spec:
  appRef: {apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, name: podinfo}
  environments:
    - {name: dev, targets: [{namespace: dev}]}
    - {name: staging, targets: [{namespace: staging}]}
  promotion:
    strategy:
      pullRequest: {type: github, url: https://git.example.com/shop/podinfo, baseBranch: main, secretRef: {name: git}}
";

/// When everything was done, and the requests of the function.
type Told = (Span, Vec<Method>);

/// Something that runs from its beginning to its end.
type Story = fn(Mode) -> Result<Told, Problem>;

/// How long a queue hides the messages of a function that died. The functions for attempts and deployers hold their messages; the
/// visibility timeout of the other queues is a minute in the template.
fn hidden(engine: &str) -> Span {
    if [ATTEMPTS, DEPLOYERS].contains(&engine) { Span::seconds(HELD.as_secs() as i64) } else { Span::seconds(60) }
}

/// Measures all engines.
pub fn measure(report: &mut Report, say: &dyn Fn(&str)) -> Result<(), Problem> {
    say("how long it takes to make up for a function that dies after any of its requests");
    let stories: [(&str, Story); 4] = [
        ("sequences", sequences),
        ("promotions by pull request", promotions),
        ("deployments", deployments),
        ("webhooks", webhooks),
    ];
    for (name, story) in stories {
        let (undisturbed, calls) = story(Mode::Clean)?;
        let mut worst: BTreeMap<String, (Span, usize)> = BTreeMap::new();
        for (method, after) in calls.iter().zip(1..) {
            let (disturbed, _) = story(Mode::Crash { after, late: false })?;
            let (late, deaths) = worst.entry(format!("{method:?}")).or_insert((Span(0), 0));
            (*late, *deaths) = ((*late).max(Span(disturbed.0 - undisturbed.0)), *deaths + 1);
        }
        for (method, (late, deaths)) in &worst {
            within(&format!("{name}, after {method}"), *late)?;
            let what = format!("after {method}, {deaths} places: later by at most");
            report.row(&format!("recovery, {name}, a function dies"), &what, late.0 as f64 / 1000.0, "s", Aim::AtMost(AIM));
        }
    }
    for (place, cancelled) in [("on the way to the end", false), ("on the way back", true)] {
        let undisturbed = carried_out(cancelled, None)?;
        let mut worst = Span(0);
        for after in 1..=undisturbed.requests {
            worst = worst.max(Span(carried_out(cancelled, Some(after))?.took.0 - undisturbed.took.0));
        }
        within(&format!("keelway's own deployer, {place}"), worst)?;
        let what = format!("{place}, {} places: later by at most", undisturbed.requests);
        report.row("recovery, deployers, the function dies", &what, worst.0 as f64 / 1000.0, "s", Aim::AtMost(AIM));
    }
    for (place, beats) in [("after its claim", 0), ("after a heartbeat", 2)] {
        let name = format!("{place}: another one is known to be needed after");
        let noticed = silent(beats)?;
        within(&name, noticed)?;
        report.row("recovery, deployments, a deployer dies", &name, noticed.0 as f64 / 1000.0, "s", Aim::AtMost(AIM));
    }
    Ok(())
}

/// Time moves here as the engines demand, so a longer delay is a malfunction on every machine.
fn within(what: &str, late: Span) -> Result<(), Problem> {
    let late = late.0 as f64 / 1000.0;
    if late <= AIM { Ok(()) } else { Err(format!("recovery, {what}: {late} s, and {AIM} s are allowed").into()) }
}

fn fine(what: &str, answer: &Answer) -> Result<(), Problem> {
    match answer.said {
        None | Some(Said::Handled(_) | Said::Status(200..=299)) => Ok(()),
        said => Err(format!("{what}: {said:?} {}", answer.problem).into()),
    }
}

/// Moves time, and lets people act, until something is done.
fn until<S: Stand>(stand: &mut S, mut done: impl FnMut(&mut S) -> Result<bool, Problem>) -> Result<Span, Problem> {
    while !done(stand)? {
        if stand.now() - BEGINNING > PATIENCE {
            return Err("it does not end".into());
        }
        stand.wait(LOOK);
    }
    Ok(stand.now() - BEGINNING)
}

fn sequences(mode: Mode) -> Result<Told, Problem> {
    let mut stand = SequencesWorld::new(mode);
    stand.story.hidden = hidden;
    fine("the shipyard", &stand.apply("shop", SHIPYARD))?;
    let event = |kind: &str, of: &Value, id: &str| {
        let ty = of["type"].as_str().unwrap_or_default().replace(".triggered", kind);
        let mut data = of["data"].clone();
        (data["status"], data["result"]) = (json!("succeeded"), json!("pass"));
        json!({"specversion": "1.0", "id": id, "source": "executor", "type": ty, "shkeptncontext": of["shkeptncontext"], "triggeredid": of["id"],
            "data": data})
    };
    let trigger = json!({"specversion": "1.0", "id": "trigger", "source": "ci", "type": "sh.keptn.event.dev.delivery.triggered",
        "shkeptncontext": "6c1f8b0e-0000-4000-8000-000000000001", "data": {"project": "shop", "stage": "dev", "service": "carts"}});
    stand.send(&trigger, Entrance::Bus);
    let mut answered = BTreeSet::new();
    let done = until(&mut stand, |stand| {
        let said = stand.outgoing();
        for task in &said {
            let open = ["deploy", "test"].iter().any(|name| task["type"] == format!("sh.keptn.event.{name}.triggered"));
            let id = task["id"].as_str().unwrap_or_default().to_owned();
            if open && answered.insert(id.clone()) {
                stand.send(&event(".started", task, &format!("s{id}")), Entrance::Bus);
                stand.send(&event(".finished", task, &format!("f{id}")), Entrance::Bus);
            }
        }
        Ok(said.iter().any(|event| event["type"] == "sh.keptn.event.prod.delivery.finished"))
    })?;
    Ok((done, stand.story.calls))
}

fn promotions(mode: Mode) -> Result<Told, Problem> {
    let mut stand = PromotionsWorld::new(mode, PromotionRider::None, None);
    stand.story.hidden = hidden;
    fine("the pipeline", &stand.apply(PIPELINE))?;
    let mut version = 0;
    let mut observe = |stand: &mut PromotionsWorld, environment: &str, revision: &str| {
        version += 1;
        let fact = json!({"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "name": "podinfo", "namespace": environment,
            "revision": revision, "ready": true, "version": version});
        let event = json!({"specversion": "1.0", "id": format!("fact-{version}"), "source": "flux", "type": "dev.keelway.target.observed",
            "datacontenttype": "application/json", "data": {"facts": [fact]}});
        stand.send(&event, Entrance::Bus);
    };
    observe(&mut stand, "staging", "v1");
    observe(&mut stand, "dev", "v2");
    let (mut merged, mut rolled_out) = (false, false);
    let done = until(&mut stand, |stand| {
        let said: Vec<String> = stand.outgoing().iter().filter_map(|event| event["type"].as_str().map(str::to_owned)).collect();
        let is_said = |what: &str| said.iter().any(|ty| ty == &format!("dev.keelway.promotion.{what}"));
        if !merged && is_said("created") {
            merged = stand.host().person(Deed::Merge, 1).is_ok();
        }
        if !rolled_out && is_said("succeeded") {
            observe(stand, "staging", "v2");
            rolled_out = true;
        }
        Ok(is_said("completed"))
    })?;
    Ok((done, stand.story.calls))
}

/// A stand with a config whose first version nobody has claimed yet.
fn config(mode: Mode) -> Result<DeploymentsWorld, Problem> {
    let mut stand = DeploymentsWorld::new(mode, Rider::None, None);
    stand.story.hidden = hidden;
    let definition = json!({
        "template": {"spec": {"containers": [{"name": "web", "image": "web:1"}]}},
        "strategy": {"type": "Rolling", "timeout": 600_000, "deadline": 21_600_000},
        "triggers": ["configChange"],
    });
    let definition = serde_json::from_value(definition).map_err(|error| Problem::of("the config", error))?;
    fine("the config", &stand.apply("shop", "carts", &definition, None))?;
    Ok(stand)
}

fn say(stand: &mut DeploymentsWorld, call: &Call) -> Result<(), Problem> {
    let (answer, _) = stand.say("shop", "carts", 1, call);
    fine("a deployer", &answer)
}

fn claim() -> Call {
    Call::Claim { by: "ci".into(), id: 1, token: "token".into(), lease: LEASE }
}

fn heartbeat() -> Call {
    Call::Heartbeat { token: "token".into(), running: true, lease: LEASE, progress: Progress::default() }
}

/// The status of the first version, if it exists, and whether it is claimed.
fn first(stand: &DeploymentsWorld) -> Option<(Status, bool)> {
    stand.state("shop", "carts")?.last.map(|last| (last.status, last.claim.is_some()))
}

fn deployments(mode: Mode) -> Result<Told, Problem> {
    let mut stand = config(mode)?;
    let (mut begun, mut beat) = (None, None);
    let done = until(&mut stand, |stand| {
        let now = stand.now();
        match first(stand) {
            Some((Status::New, _)) => {
                say(stand, &claim())?;
                (begun, beat) = (Some(now), Some(now));
            }
            Some((Status::Pending | Status::Running, true)) if begun.is_some_and(|begun| now - begun >= WORK) => {
                say(
                    stand,
                    &Call::End { token: "token".into(), exit: Some(0), message: String::new(), progress: Progress::default() },
                )?;
            }
            Some((Status::Pending | Status::Running, true)) if beat.is_some_and(|beat| now - beat >= BEAT) => {
                say(stand, &heartbeat())?;
                beat = Some(now);
            }
            _ => {}
        }
        let said = stand.outgoing();
        Ok(said.iter().any(|event| event["type"] == "dev.keelway.deployment.complete"))
    })?;
    Ok((done, stand.story.calls))
}

/// How long after its last heartbeat a deployer is given up, after this number of heartbeats.
fn silent(beats: usize) -> Result<Span, Problem> {
    let mut stand = config(Mode::Clean)?;
    until(&mut stand, |stand| Ok(first(stand).is_some()))?;
    say(&mut stand, &claim())?;
    for _ in 0..beats {
        stand.wait(BEAT);
        say(&mut stand, &heartbeat())?;
    }
    let last = stand.now() - BEGINNING;
    let noticed = until(&mut stand, |stand| Ok(!matches!(first(stand), Some((Status::Pending | Status::Running, true)))))?;
    Ok(Span(noticed.0 - last.0))
}

fn webhooks(mode: Mode) -> Result<Told, Problem> {
    let mut stand = HooksWorld::new(mode);
    stand.story.hidden = hidden;
    stand.subscribe("hook").map_err(|error| Problem::of("the subscription", error))?;
    let event = json!({"specversion": "1.0", "id": "event", "source": "ci", "type": "sh.keptn.event.dev.delivery.finished",
        "time": Stand::now(&stand).rfc3339(), "shkeptncontext": "6c1f8b0e-0000-4000-8000-000000000001", "data": {"project": "p"}});
    stand.send(&event, Entrance::Bus);
    let done = until(&mut stand, |stand| Ok(stand.deliveries("hook").iter().any(|delivery| delivery.end.is_some())))?;
    Ok((done, stand.story.calls))
}

/// The duration and the number of requests of Keelway's own deployer.
struct CarriedOut {
    took: Span,
    requests: u64,
}

/// A canary with hooks to its end, or one that is cancelled and reverted. The deployer dies after its request with this number.
fn carried_out(cancelled: bool, dies: Option<u64>) -> Result<CarriedOut, Problem> {
    let mut next = definition("Canary", &stand::version(2));
    let bake = |seconds| Some(Span::seconds(seconds));
    next.strategy.steps = vec![Weight { weight: 10, bake: bake(300) }, Weight { weight: 50, bake: bake(5) }];
    if !cancelled {
        (next.strategy.hooks.pre, next.strategy.hooks.post) =
            (stand::hook(FailurePolicy::Abort), stand::hook(FailurePolicy::Abort));
    }
    let mut stand = DeployersStand::deployed(&next);
    stand.invisible = hidden(DEPLOYERS);
    if !cancelled {
        stand.crash_after = dies;
    }
    stand.apply(&next);
    let mut began = stand.last().since;
    if cancelled {
        stand.pass(Span::seconds(60));
        (began, stand.requests, stand.crash_after) = (stand.world.now(), 0, dies);
        stand.command(Command::Cancel);
    }
    stand.pass(Span::minutes(60));
    let last = stand.last();
    let wanted = if cancelled { Status::Failed } else { Status::Complete };
    match last.ended.filter(|_| last.status == wanted) {
        Some(ended) => Ok(CarriedOut { took: Span(ended.0 - began.0), requests: stand.requests }),
        None => Err(format!("a deployer that dies after request {dies:?}: {:?} {}", last.status, last.reason).into()),
    }
}
