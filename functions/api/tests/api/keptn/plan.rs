//! `GET /v1/project/{project}/shipyard/plan`: the shipyard as data.

use crate::stand::Stand;
use keelway_wire::http::ShipyardPlan;

const STAGES: &str = "
    - name: dev
      sequences:
        - name: delivery
          tasks: [{name: deployment}, {name: test}]
    - name: prod
      windows: [{kind: deny, schedule: '0 18 * * FRI', duration: 62h, zone: UTC, reason: weekend}]
      sequences:
        - name: delivery
          triggeredOn: [{event: dev.delivery.finished, selector: {match: {test.result: warning}}}, {event: release.approved}]
          tasks: [{name: deployment}]
";

#[tokio::test]
async fn stages_sequences_triggers_and_closures() {
    let stand = Stand::new();
    stand.apply("shop", STAGES).await;
    let answer = stand.get("/v1/project/shop/shipyard/plan").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let plan: ShipyardPlan = serde_json::from_value(answer.json()).unwrap();
    assert_eq!(serde_json::to_value(&plan).unwrap(), answer.json(), "what clients are told to read is what is there");
    assert_eq!(plan.stages.iter().map(|stage| stage.name.as_str()).collect::<Vec<_>>(), ["dev", "prod"]);
    assert_eq!(plan.stages[0].sequences[0].tasks, ["deployment", "test"]);
    let triggers = &plan.stages[1].sequences[0].triggered_on;
    let line = |one: &keelway_wire::http::PlannedTrigger| format!("{} {}", one.event, one.selector.join(", "));
    assert_eq!(triggers.iter().map(line).collect::<Vec<_>>(), ["dev.delivery.finished test.result: warning", "release.approved "]);
    // It is Friday noon.
    let closures: Vec<String> = plan.stages[1].closures.iter().map(|one| format!("{} {}", one.from, one.reason)).collect();
    assert_eq!(closures, ["2026-11-20T18:00:00.000Z weekend", "2026-11-27T18:00:00.000Z weekend"]);
    assert_eq!(plan.stages[1].closures[0].until.as_deref(), Some("2026-11-23T08:00:00.000Z"));
    assert!(plan.stages[0].closures.is_empty() && plan.stages[0].windows.is_empty());
    assert_eq!(stand.get("/v1/project/none/shipyard/plan").await.status, 404);
}
