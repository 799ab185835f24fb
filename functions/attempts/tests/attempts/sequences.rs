//! The strategy `sequence`.

use crate::stand::{Stand, definition};
use keelway_domain::border::Update;
use keelway_domain::names::ProjectName;
use keelway_domain::promotions::definition::{Definition, Sequence, Strategy};
use keelway_domain::promotions::{Command, Made, Phase};
use keelway_domain::time::Span;
use keelway_engine::projects::{NewShipyard, ProjectSettings, blob_id};
use keelway_engine::secrets::Known;
use keelway_wire::manifest::{self, Document};
use keelway_world::queue::Parcel;
use serde_json::{Value, json};

const SHIPYARD: &str = "apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shipyard-shop}
spec: {stages: [{name: staging, sequences: [{name: delivery, tasks: [{name: deploy}]}]}]}
";

fn by_sequence() -> Definition {
    let sequence = Sequence { project: None, stage: None, service: "cart".into(), name: "delivery".into() };
    definition(&["dev", "staging"], Strategy::Sequence(sequence))
}

async fn with_shipyard() -> Stand {
    with_shipyard_of("shop").await
}

async fn with_shipyard_of(project: &str) -> Stand {
    let stand = Stand::new(Known::default());
    let parsed = manifest::parse(SHIPYARD, "-");
    let Some(Document::Shipyard(shipyard)) = parsed.documents.into_iter().next() else { panic!("{:?}", parsed.findings) };
    let name = ProjectName::new(project).unwrap();
    let settings = ProjectSettings::plain(name.clone());
    stand.sequences.projects().apply(&settings).await.unwrap();
    let revision = blob_id(SHIPYARD);
    let new = NewShipyard { revision: &revision, source: SHIPYARD, shipyard: &shipyard.shipyard, replaces: None, by: "" };
    stand.sequences.apply_shipyard(&name, new).await.unwrap();
    stand
}

/// Somebody carries out the only open task.
async fn finish(stand: &mut Stand, result: &str) {
    let triggers = stand.published("sh.keptn.event.deploy.triggered");
    let trigger = triggers.last().unwrap();
    for kind in ["started", "finished"] {
        let mut event = json!({
            "specversion": "1.0", "type": format!("sh.keptn.event.deploy.{kind}"), "source": "executor",
            "id": format!("{kind}-{}", trigger["id"]), "shkeptncontext": trigger["shkeptncontext"], "triggeredid": trigger["id"],
            "data": {"project": "shop", "stage": "staging", "service": "cart"},
        });
        if kind == "finished" {
            event["data"]["result"] = json!(result);
            event["data"]["status"] = json!("succeeded");
        }
        let event = keelway_wire::cloudevent::parse(&event, keelway_wire::cloudevent::Origin::Bus, stand.world.now()).unwrap();
        stand.world.enqueue(keelway_engine::sequences::NAME, Parcel::Event(event));
        stand.work().await;
    }
}

async fn begun() -> (Stand, Definition) {
    let (mut stand, definition) = (with_shipyard().await, by_sequence());
    stand.apply(&definition).await;
    stand.all_run(&definition, "v1").await;
    stand.runs(&definition, "dev", "v2").await;
    (stand, definition)
}

#[tokio::test]
async fn a_sequence_carries_out_a_promotion() {
    let (mut stand, definition) = begun().await;
    let promotion = stand.promotion("staging").await;
    assert_eq!((promotion.phase, promotion.attempt), (Phase::Created, 1), "{:?}", promotion.why);
    let triggers = stand.published("sh.keptn.event.staging.delivery.triggered");
    let [trigger] = &triggers[..] else { panic!("{} triggers", triggers.len()) };
    assert_eq!(trigger["data"]["configurationChange"]["values"]["image"], "v2");
    assert_eq!(
        trigger["data"]["promotion"],
        json!({"namespace": "shop", "pipeline": "cart", "environment": "staging", "revision": "v2", "run": 2})
    );
    assert_eq!(promotion.effect, Some(Made::Sequence { context: text(&trigger["shkeptncontext"]) }));
    finish(&mut stand, "pass").await;
    assert_eq!(stand.promotion("staging").await.phase, Phase::Succeeded);
    stand.runs(&definition, "staging", "v2").await;
    assert!(stand.promotion("staging").await.completed);
    assert_eq!(stand.published("sh.keptn.event.staging.delivery.triggered").len(), 1);
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_sequence_that_fails_is_not_repeated_until_somebody_asks() {
    let (mut stand, _) = begun().await;
    finish(&mut stand, "fail").await;
    let promotion = stand.promotion("staging").await;
    assert_eq!((promotion.phase, promotion.due), (Phase::Failed, None));
    stand.pass(Span::minutes(24 * 60)).await;
    assert_eq!(stand.published("sh.keptn.event.staging.delivery.triggered").len(), 1);
    stand.command(Command::Retry("staging".into())).await;
    // The sequence of the first attempt is over, so this takes another one.
    let triggers = stand.published("sh.keptn.event.staging.delivery.triggered");
    assert_eq!(triggers.len(), 2, "{:?}", stand.promotion("staging").await);
    assert_ne!(triggers[0]["shkeptncontext"], triggers[1]["shkeptncontext"]);
    finish(&mut stand, "warning").await;
    assert_eq!(stand.promotion("staging").await.phase, Phase::Succeeded);
}

#[tokio::test]
async fn a_new_revision_aborts_the_sequence() {
    let (mut stand, definition) = begun().await;
    stand.runs(&definition, "dev", "v3").await;
    stand.pass(Span::minutes(1)).await;
    let ends = stand.published("sh.keptn.event.staging.delivery.finished");
    assert_eq!(ends.len(), 1, "the sequence for v2 was not aborted");
    assert_eq!(ends[0]["shkeptncontext"], stand.published("sh.keptn.event.staging.delivery.triggered")[0]["shkeptncontext"]);
    let promotion = stand.promotion("staging").await;
    assert_eq!((promotion.phase, promotion.revision.as_str()), (Phase::Created, "v3"), "{:?}", promotion.why);
}

#[tokio::test]
async fn a_sequence_aborted_by_a_person_abandons_the_promotion() {
    let (mut stand, _) = begun().await;
    let Some(Made::Sequence { context }) = stand.promotion("staging").await.effect else { panic!("no sequence") };
    let (project, context) = (ProjectName::new("shop").unwrap(), keelway_domain::names::Context::of(&context));
    stand.sequences.control(&project, &context, None, keelway_engine::sequences::commands::Control::Abort).await.unwrap();
    stand.work().await;
    assert_eq!(stand.promotion("staging").await.phase, Phase::Abandoned);
}

/// The message of the end is lost: the sweep finds it.
#[tokio::test]
async fn the_sweep_finds_an_end_that_nobody_told() {
    let (mut stand, _) = begun().await;
    stand.deaf = true;
    finish(&mut stand, "pass").await;
    assert_eq!(stand.promotion("staging").await.phase, Phase::Created);
    stand.sweep().await;
    assert_eq!(stand.promotion("staging").await.phase, Phase::Succeeded);
}

#[tokio::test]
async fn a_trigger_that_is_refused_is_repeated() {
    let (mut stand, definition) = (Stand::new(Known::default()), by_sequence());
    stand.apply(&definition).await;
    stand.all_run(&definition, "v1").await;
    stand.runs(&definition, "dev", "v2").await;
    let promotion = stand.promotion("staging").await;
    assert_eq!((promotion.phase, promotion.why.reason.as_str()), (Phase::Failed, "TriggerRefused"));
    assert!(promotion.why.message.contains("project \"shop\" does not exist"), "{}", promotion.why.message);
    assert!(promotion.due.is_some());
}

/// What project `team-b` consents to.
async fn consents(stand: &Stand, consents: Value) {
    let consents = Update::Set(serde_json::from_value(consents).unwrap());
    let name = ProjectName::new("team-b").unwrap();
    stand.sequences.projects().apply(&ProjectSettings { consents, ..ProjectSettings::plain(name) }).await.unwrap();
}

/// A pipeline of `shop` whose promotion is carried out by a sequence of `team-b`.
async fn reaching(lets: Value) -> (Stand, Definition) {
    let mut stand = with_shipyard_of("team-b").await;
    consents(&stand, lets).await;
    let sequence = Sequence { project: Some("team-b".into()), stage: None, service: "cart".into(), name: "delivery".into() };
    let definition = definition(&["dev", "staging"], Strategy::Sequence(sequence));
    stand.apply(&definition).await;
    stand.all_run(&definition, "v1").await;
    stand.runs(&definition, "dev", "v2").await;
    (stand, definition)
}

#[tokio::test]
async fn a_project_that_does_not_consent_has_no_sequence_triggered_by_another_one() {
    for lets in [
        json!([]),
        json!([{"to": ["other"], "may": ["trigger"]}]),
        json!([{"to": ["shop"], "may": ["deploy", "observe"]}]),
        json!([{"to": ["shop"], "may": ["trigger"], "names": ["production"]}]),
    ] {
        let (mut stand, _) = reaching(lets.clone()).await;
        stand.pass(Span::minutes(24 * 60)).await;
        assert_eq!(stand.published("sh.keptn.event.staging.delivery.triggered").len(), 0, "{lets}");
        let promotion = stand.promotion("staging").await;
        let found = (promotion.phase, promotion.attempt, promotion.due, promotion.why.reason.as_str());
        assert_eq!(found, (Phase::Failed, 1, None, "NoConsent"), "{lets}");
        assert!(promotion.why.message.starts_with("project team-b does not let shop trigger staging"), "{}", promotion.why.message);
    }
}

#[tokio::test]
async fn a_project_lets_a_pipeline_of_another_one_trigger_and_abort_sequences_of_a_stage() {
    let lets = json!([{"to": ["shop"], "may": ["trigger"], "names": ["staging"]}]);
    let (mut stand, definition) = reaching(json!([])).await;
    consents(&stand, lets).await;
    stand.command(Command::Retry("staging".into())).await;
    let triggers = stand.published("sh.keptn.event.staging.delivery.triggered");
    let [trigger] = &triggers[..] else { panic!("{} triggers", triggers.len()) };
    assert_eq!(trigger["data"]["project"], "team-b");
    stand.runs(&definition, "dev", "v3").await;
    stand.pass(Span::minutes(1)).await;
    assert_eq!(stand.published("sh.keptn.event.staging.delivery.finished").len(), 1, "the sequence for v2 was not aborted");
}

#[tokio::test]
async fn a_sequence_is_not_aborted_after_its_project_took_the_consent_back() {
    let (mut stand, _) = reaching(json!([{"to": ["shop"], "may": ["trigger"]}])).await;
    assert_eq!(stand.published("sh.keptn.event.staging.delivery.triggered").len(), 1);
    consents(&stand, json!([])).await;
    stand.command(Command::Abort("staging".into())).await;
    stand.pass(Span::minutes(1)).await;
    assert_eq!(stand.published("sh.keptn.event.staging.delivery.finished").len(), 0);
    assert_eq!(stand.environment("staging").await.closing, [], "it is not tried for ever");
}
