//! Two projects beside each other, one of them hostile: the simulation, and the checks that are taken out.

use crate::suite::suite;
use keelway_conformance::border::{Plant, simulate, simulate_without_sweeps};
use keelway_conformance::plants::Family;
use keelway_conformance::sim;
use keelway_conformance::stand::{BEGIN, object};
use keelway_domain::border::{Act, Consent, Consents, Update};
use keelway_domain::event::{CloudEvent, SOURCE};
use keelway_domain::names::{Context, ProjectName};
use keelway_engine::deployments::{Deployments, Limits};
use keelway_engine::projects::ProjectSettings;
use keelway_engine::protocol::{Body, Incoming};
use keelway_engine::sequences::{self, Sequences};
use keelway_world::World;
use keelway_world::deployments::Waiting;
use keelway_world::exec::block_on;
use keelway_world::played::Played;
use serde_json::json;

suite! {
    seeds: 500, "KEELWAY_BORDER_SEED", simulate;
    seeds without sweeps: 200, "KEELWAY_BORDER_SWEEPLESS_SEED", simulate_without_sweeps;
    plants: "border", 500, simulate;
}

#[test]
fn a_task_that_was_not_let_in_is_told_the_same_after_the_consent_came() {
    let world = World::new(BEGIN);
    let engine = Deployments::new(world.worker(0), Limits::default());
    let context = "7c2c890f-b3ac-4caa-8922-f44d2aa54ec9".to_owned();
    let waiting = Waiting { project: "team-a".into(), context, task: "deployment".into(), name: "waits".into() };
    drop(world.core().table.put_batch(&[waiting.item()], &[], false).unwrap());
    let data = json!({"project": "team-a", "stage": "dev", "service": "shop", "deployment": {"deploymentConfig": "team-b:api"}});
    let event = CloudEvent {
        id: waiting.trigger(),
        source: SOURCE.into(),
        ty: "sh.keptn.event.deployment.triggered".into(),
        time: BEGIN,
        context: Context::of(&waiting.context),
        authors: vec![],
        triggered_id: None,
        git_commit_id: None,
        data: object(data),
    };
    let delivery = Incoming { sent: BEGIN, again: false, body: Body::Event(event) };
    block_on(engine.play(&delivery)).unwrap();
    let consent = Consent { to: vec!["team-a".into()], may: vec![Act::Deploy], names: vec![] };
    let consents = Update::Set(Consents(vec![consent]));
    let settings = ProjectSettings { consents, ..ProjectSettings::plain(ProjectName::new("team-b").unwrap()) };
    let sequences = Sequences::new(world.worker(0), sequences::Limits::default());
    assert!(block_on(sequences.projects().apply(&settings)).is_ok_and(|changed| changed));
    block_on(engine.play(&delivery)).unwrap();
    let core = world.core();
    assert!(core.bus.contradictions.is_empty(), "{:?}", core.bus.contradictions);
    let finished = core.bus.log.iter().filter(|told| told.entry.detail_type == "sh.keptn.event.deployment.finished");
    let told: Vec<&str> = finished.map(|told| told.entry.detail.as_str()).collect();
    assert!(told.len() == 2 && told.iter().all(|told| told.contains("project team-b does not let team-a deploy api")), "{told:?}");
}
