//! Facts about targets that were reported over the bus: whose word counts.

use keelway_conformance::stand::{BEGIN, object};
use keelway_domain::deployments::SOURCE;
use keelway_domain::event::CloudEvent;
use keelway_domain::names::Context;
use keelway_domain::promotions::definition::{App, Target};
use keelway_engine::item::Item;
use keelway_engine::ports::{Condition, Store, Write};
use keelway_engine::promotions::observations::OBSERVED;
use keelway_engine::promotions::{Address, Limits, Promotions, keys};
use keelway_engine::protocol::{Body, Handled, Incoming};
use keelway_world::World;
use keelway_world::exec::block_on;
use keelway_world::played::Played;
use serde_json::json;

/// What becomes of a fact over the bus about an object of this kind, from a source, and what is kept of it.
fn told(source: &str, (version, kind): (&str, &str)) -> (Handled, Option<String>) {
    let world = World::new(BEGIN);
    let handled = tell(&world, source, (version, kind));
    let key = keys::observation(&app(version, kind), &target());
    let kept = world.core().table.peek(&key).and_then(|item| item.text("j").map(str::to_owned));
    (handled, kept)
}

fn app(version: &str, kind: &str) -> App {
    App { api_version: version.into(), kind: kind.into(), name: "api".into() }
}

fn target() -> Target {
    Target { cluster: None, namespace: "team-b".into() }
}

/// Tells a fact over the bus.
fn tell(world: &World, source: &str, (version, kind): (&str, &str)) -> Handled {
    let engine = Promotions::new(world.worker(0), Limits::default());
    let fact =
        json!({"apiVersion": version, "kind": kind, "name": "api", "namespace": "team-b", "revision": "evil", "ready": true});
    let event = CloudEvent {
        id: "1".into(),
        source: source.into(),
        ty: OBSERVED.into(),
        time: BEGIN,
        context: Context::of("c"),
        authors: vec![],
        triggered_id: None,
        git_commit_id: None,
        data: object(json!({"facts": [fact], "by": ["token:somebody"]})),
    };
    block_on(engine.play(&Incoming { sent: BEGIN, again: false, body: Body::Event(event) })).unwrap()
}

#[test]
fn every_pipeline_that_names_a_target_is_told_however_many_they_are() {
    const PIPELINES: usize = 450;
    let (world, of) = (World::new(BEGIN), ("helm.toolkit.fluxcd.io/v2", "HelmRelease"));
    for n in 0..PIPELINES {
        let to = Address { namespace: "team-a".into(), name: format!("app-{n}") };
        let entry = Item::new(keys::depends(&app(of.0, of.1), &target(), &to)).with("ns", to.namespace).with("na", to.name);
        block_on(world.worker(0).write(&Write::Put(entry, Condition::Absent))).unwrap();
    }
    assert_eq!(tell(&world, "tester", of), Handled::Recorded);
    let all: Vec<String> = world.core().queue.messages.values().map(|message| message.parcel.text()).collect();
    assert_eq!(all.len(), PIPELINES);
    for n in 0..PIPELINES {
        let name = format!("\"n\":\"app-{n}\"");
        assert!(all.iter().any(|text| text.contains(&name) && text.contains("evaluate")), "app-{n} is not told");
    }
}

#[test]
fn what_a_config_runs_and_whose_it_is_only_its_engine_says() {
    let config = ("keelway.dev/v1", "DeploymentConfig");
    assert_eq!(told("tester", config), (Handled::Invalid, None), "somebody else tells what a config runs");
    let (handled, kept) = told(SOURCE, config);
    assert!(handled == Handled::Recorded && kept.is_some_and(|fact| fact.contains("token:somebody")), "the engine itself");
    for kind in [("helm.toolkit.fluxcd.io/v2", "HelmRelease"), ("apps.openshift.io/v1", "DeploymentConfig")] {
        let (handled, kept) = told("tester", kind);
        assert_eq!(handled, Handled::Recorded, "{kind:?} may be reported by anybody on the bus");
        assert!(kept.is_some_and(|fact| !fact.contains("token:somebody")), "{kind:?}: nobody else says whose it is");
    }
}
