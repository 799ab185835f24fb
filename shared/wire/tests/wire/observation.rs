//! What is reported about targets: both forms, and everything that is wrong at once.

use keelway_domain::time::Timestamp;
use keelway_wire::observation::{Observation, Wrong, one, read};
use serde_json::{Value, json};

const NOW: Timestamp = Timestamp(1_795_000_000_000);

fn kustomization() -> Value {
    json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"name": "apps", "namespace": "flux-system", "generation": 3, "resourceVersion": "4711", "uid": "x"},
        "spec": {"suspend": false, "path": "./apps"},
        "status": {
            "observedGeneration": 3, "lastAppliedRevision": "main@sha1:abc",
            "conditions": [
                {"type": "Reconciling", "status": "False"},
                {"type": "Ready", "status": "True", "observedGeneration": 3, "reason": "ReconciliationSucceeded"}
            ]
        }
    })
}

fn fact(object: &Value) -> Observation {
    one(object, None, NOW).unwrap()
}

#[test]
fn a_flux_object_is_read_as_it_is() {
    let fact = fact(&kustomization());
    assert_eq!((fact.app.kind.as_str(), fact.app.name.as_str()), ("Kustomization", "apps"));
    assert_eq!((fact.target.namespace.as_str(), fact.target.cluster), ("flux-system", None));
    assert_eq!((fact.version, fact.observed.revision.as_deref(), fact.observed.ready), (4711, Some("main@sha1:abc"), true));
    assert_eq!((fact.observed.at, fact.suspended), (NOW, false));
    let elsewhere = one(&kustomization(), Some("default/prod"), NOW).unwrap();
    assert_eq!(elsewhere.target.cluster.as_deref(), Some("default/prod"));
    let mut own = kustomization();
    own["cluster"] = json!("shop/prod");
    assert_eq!(one(&own, Some("default/prod"), NOW).unwrap().target.cluster.as_deref(), Some("shop/prod"));
}

#[test]
fn health_and_revision_are_read_independently() {
    for (path, value, ready, revision) in [
        ("/status/conditions/1/status", json!("False"), false, true),
        ("/status/conditions/1/status", json!("Unknown"), false, true),
        ("/status/conditions/1/observedGeneration", json!(2), false, true),
        ("/status/observedGeneration", json!(-1), false, true),
        ("/metadata/generation", json!(4), false, true),
        ("/status/conditions/1/type", json!("Healthy"), false, true),
        ("/status/conditions", json!(null), false, true),
        ("/status/lastAppliedRevision", json!(""), true, false),
        ("/status/lastAppliedRevision", json!(null), true, false),
        ("/status", json!(null), false, false),
        ("/metadata/generation", json!(null), true, true),
    ] {
        let mut object = kustomization();
        *object.pointer_mut(path).unwrap() = value.clone();
        let fact = fact(&object).observed;
        assert_eq!((fact.ready, fact.revision.is_some(), fact.error), (ready, revision, None), "{path} = {value}");
    }
}

#[test]
fn a_helm_release_tells_its_revision_in_its_history() {
    let mut object = kustomization();
    object["kind"] = json!("HelmRelease");
    object["status"].as_object_mut().unwrap().remove("lastAppliedRevision");
    object["status"]["history"] =
        json!([{"chartVersion": "1.2.3", "status": "deployed"}, {"chartVersion": "1.2.2", "status": "superseded"}]);
    assert_eq!(fact(&object).observed.revision.as_deref(), Some("1.2.3"));
    object["status"]["history"][0]["status"] = json!("failed");
    assert_eq!(fact(&object).observed.revision, None);
}

#[test]
fn the_version_is_the_first_of_three() {
    let generic = json!({"apiVersion": "v1", "kind": "App", "name": "a", "namespace": "n", "ready": true, "revision": "v1"});
    assert_eq!(fact(&generic).version, NOW.0);
    let mut timed = generic.clone();
    timed["observedAt"] = json!("2026-11-17T00:00:00Z");
    let at = Timestamp::parse("2026-11-17T00:00:00Z").unwrap();
    assert_eq!((fact(&timed).version, fact(&timed).observed.at), (at.0, at));
    timed["version"] = json!(7);
    assert_eq!(fact(&timed).version, 7);
    let mut object = kustomization();
    object["metadata"]["resourceVersion"] = json!("not-a-number");
    assert_eq!(fact(&object).version, NOW.0);
    object["spec"]["suspend"] = json!(true);
    assert!(fact(&object).suspended);
}

#[test]
fn one_or_several() {
    let object = kustomization();
    assert_eq!(read(&object, None, NOW).unwrap().len(), 1);
    assert_eq!(read(&json!([object, object]), None, NOW).unwrap().len(), 2);
    assert_eq!(read(&json!({"kind": "List", "items": [object, object, object]}), None, NOW).unwrap().len(), 3);
    assert_eq!(read(&json!([]), None, NOW).unwrap(), vec![]);
    let too_many: Vec<&Value> = vec![&object; 101];
    assert!(read(&json!(too_many), None, NOW).unwrap_err()[0].message.contains("at most 100"));
    assert!(read(&json!("x"), None, NOW).is_err());
}

#[test]
fn everything_wrong_is_told_with_its_place() {
    let body = json!([
        kustomization(),
        {"kind": "App", "name": "", "namespace": "n", "ready": "yes", "revison": "v1"},
        {"apiVersion": "v1", "kind": "App", "name": "a", "namespace": "n", "error": "gone"},
        {"apiVersion": "v1", "kind": "App", "name": "a", "namespace": "n", "ready": true, "cluster": "prod", "version": -1,
            "observedAt": "2099-01-01T00:00:00Z", "revision": "x\ny"},
        {"apiVersion": "v1", "kind": "App", "metadata": {"name": "a"}},
        7
    ]);
    let wrong = read(&body, None, NOW).unwrap_err();
    let paths: Vec<&str> = wrong.iter().map(|wrong| wrong.path.as_str()).collect();
    let expected = [
        "[1].revison",
        "[1].apiVersion",
        "[1].name",
        "[1].ready",
        "[3].cluster",
        "[3].revision",
        "[3].version",
        "[3].observedAt",
        "[4].metadata.namespace",
        "[5]",
    ];
    let mut sorted = (paths.clone(), expected.to_vec());
    sorted.0.sort_unstable();
    sorted.1.sort_unstable();
    assert_eq!(sorted.0, sorted.1, "{wrong:#?}");
    let Wrong { message, .. } = &wrong[0];
    assert!(message.contains("it has apiVersion, kind"), "{message}");
    assert!(wrong[0].to_string().starts_with("[1].revison is not a field"));
}

#[test]
fn an_error_needs_no_health_and_is_cut() {
    let entry = json!({"apiVersion": "v1", "kind": "App", "name": "a", "namespace": "n", "error": "é".repeat(5000)});
    let observed = fact(&entry).observed;
    assert_eq!((observed.ready, observed.error.map(|error| error.chars().count())), (false, Some(1000)));
}
