//! What a pipeline may know about deployment configs of other projects.

use crate::stand::{Stand, definition, to};
use keelway_domain::border::Update;
use keelway_domain::names::ProjectName;
use keelway_domain::promotions::definition::{Notification, Strategy};
use keelway_engine::projects::ProjectSettings;
use keelway_engine::secrets::Known;
use serde_json::{Value, json};

async fn consents(stand: &Stand, consents: Value) {
    let consents = Update::Set(serde_json::from_value(consents).unwrap());
    let name = ProjectName::new("team-b").unwrap();
    stand.sequences.projects().apply(&ProjectSettings { consents, ..ProjectSettings::plain(name) }).await.unwrap();
}

/// The revision in `team-b` that the pipeline knows, and what it is told instead.
async fn known(stand: &Stand) -> (Option<String>, String) {
    let view = stand.pipelines.view(&to()).await.unwrap().unwrap();
    let found = view.observations.into_iter().find(|(target, _)| target.namespace == "team-b");
    let (_, observed) = found.unwrap();
    (observed.revision, observed.error.unwrap_or_default())
}

#[tokio::test]
async fn a_config_of_another_project_counts_only_with_its_consent() {
    let mut stand = Stand::new(Known::default());
    let mut definition = definition(&["shop", "team-b"], Strategy::Notification(Notification::default()));
    definition.app.kind = "DeploymentConfig".into();
    stand.apply(&definition).await;
    stand.all_run(&definition, "v1").await;
    let (revision, told) = known(&stand).await;
    assert_eq!(revision, None);
    assert!(told.starts_with("project team-b does not let shop observe cart"), "{told}");
    stand.runs(&definition, "shop", "v2").await;
    consents(&stand, json!([{"to": ["shop"], "may": ["observe"], "names": ["cart"]}])).await;
    assert_eq!(known(&stand).await, (Some("v1".into()), String::new()));
    // Nobody tells the pipeline that it may: the sweep finds it.
    stand.sweep().await;
    assert_eq!(stand.promotion("team-b").await.revision, "v2");
    consents(&stand, json!([])).await;
    assert_eq!(known(&stand).await.0, None);
}
