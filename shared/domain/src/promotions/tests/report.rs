//! Facts as they are told, and what is wrong with some.

use super::super::report::{MOST, Observation, Wrong, answered, by_others, one, read};
use super::*;
use serde_json::{Value, json};

const NOW: Timestamp = Timestamp(1_795_000_000_000);

fn generic(change: Value) -> Value {
    let mut fact =
        json!({"apiVersion": "v2", "kind": "HelmRelease", "name": "app", "namespace": "ns", "revision": "1.0", "ready": true});
    for (field, value) in change.as_object().unwrap() {
        fact[field] = value.clone();
    }
    fact
}

fn told(fact: &Value) -> Observation {
    one(fact, None, NOW).unwrap_or_else(|wrong| panic!("{fact}: {wrong:?}"))
}

fn wrong(fact: &Value) -> Vec<String> {
    one(fact, None, NOW).err().unwrap_or_default().iter().map(Wrong::to_string).collect()
}

#[test]
fn the_generic_form() {
    let fact = told(&generic(json!({})));
    assert_eq!((fact.app.api_version.as_str(), fact.app.kind.as_str(), fact.app.name.as_str()), ("v2", "HelmRelease", "app"));
    assert_eq!((fact.target.namespace.as_str(), fact.target.cluster, fact.version), ("ns", None, NOW.0));
    assert_eq!((fact.observed.revision.as_deref(), fact.observed.ready, fact.observed.at), (Some("1.0"), true, NOW));
    let at = NOW + Span::minutes(5);
    let fact = told(&generic(json!({"observedAt": at.rfc3339(), "cluster": "ns/eu", "revision": "", "error": null})));
    assert_eq!((fact.version, fact.observed.at, fact.target.cluster.as_deref()), (at.0, at, Some("ns/eu")));
    assert_eq!((fact.observed.revision, fact.observed.error), (None, None));
    assert_eq!(told(&generic(json!({"version": 0, "observedAt": ""}))).version, 0);
    let fact = told(&generic(json!({"ready": false, "error": "line 1\nline 2"})));
    assert_eq!((fact.observed.ready, fact.observed.error.as_deref()), (false, Some("line 1\nline 2")));
    let mut unread = generic(json!({"error": "x".repeat(2000)}));
    unread.as_object_mut().unwrap().remove("ready");
    assert_eq!(told(&unread).observed.error.map(|error| error.len()), Some(1000));
}

#[test]
fn each_mistake_is_named_with_its_field() {
    for (change, expected) in [
        (json!({"color": "red"}), "color is not a field of a fact"),
        (json!({"kind": null}), "kind is missing"),
        (json!({"kind": ""}), "kind is empty"),
        (json!({"kind": 1}), "kind is not a text"),
        (json!({"name": "a\u{7}"}), "name contains a control character"),
        (json!({"name": "n".repeat(254)}), "name has 254 bytes"),
        (json!({"revision": "r".repeat(1025)}), "revision has 1025 bytes"),
        (json!({"ready": null}), "ready is not true or false"),
        (json!({"version": -1}), "version is not a whole number"),
        (json!({"version": 1.5}), "version is not a whole number"),
        (json!({"observedAt": "yesterday"}), "observedAt is not a time"),
        (json!({"observedAt": Timestamp(0).rfc3339()}), "observedAt is not a time"),
        (json!({"observedAt": (NOW + Span::minutes(6)).rfc3339()}), "observedAt is 2"),
        (json!({"cluster": "eu"}), "cluster is not the name of a cluster"),
        (json!({"cluster": "/eu"}), "cluster is not the name of a cluster"),
        (json!({"cluster": format!("n/{}", "c".repeat(505))}), "cluster has 507 bytes"),
    ] {
        let found = wrong(&generic(change.clone()));
        assert!(found.len() == 1 && found[0].starts_with(expected), "{change}: {found:?}");
    }
    for fine in [
        json!({"name": "n".repeat(253)}),
        json!({"revision": "r".repeat(1024)}),
        json!({"cluster": format!("n/{}", "c".repeat(504))}),
    ] {
        assert_eq!(wrong(&generic(fine)), Vec::<String>::new());
    }
    let mut silent = generic(json!({}));
    silent.as_object_mut().unwrap().remove("ready");
    assert_eq!(wrong(&silent).len(), 1);
    silent["error"] = Value::Null;
    assert!(wrong(&silent)[0].starts_with("ready is missing"));
    assert_eq!(wrong(&json!(3)), ["body: is not a JSON object"]);
}

#[test]
fn one_fact_a_list_and_a_list_of_kubernetes() {
    let (good, bad) = (generic(json!({})), generic(json!({"ready": 1})));
    let count = |body: &Value| read(body, Some("ns/eu"), NOW).map(|facts| facts.len());
    let first = |body: &Value| read(body, None, NOW).unwrap_err()[0].path.clone();
    assert_eq!(count(&good), Ok(1));
    assert_eq!((count(&json!([good, good])), count(&json!({"items": [good]}))), (Ok(2), Ok(1)));
    assert_eq!(read(&good, Some("ns/eu"), NOW).unwrap()[0].target.cluster.as_deref(), Some("ns/eu"));
    assert_eq!(
        (first(&bad), first(&json!([good, bad])), first(&json!({"items": [bad]}))),
        ("ready".into(), "[1].ready".into(), "items[0].ready".into())
    );
    assert_eq!((first(&json!([3])), first(&json!("x"))), ("[0]".into(), String::new()));
    assert_eq!(count(&json!(vec![good.clone(); MOST])), Ok(MOST));
    assert!(read(&json!(vec![good; MOST + 1]), None, NOW).unwrap_err()[0].message.contains("has 101 facts"));
}

fn object(metadata: Value, spec: Value, status: Value) -> Value {
    let mut object = json!({"apiVersion": "v2", "kind": "HelmRelease", "metadata": {"name": "app", "namespace": "ns"}, "spec": spec, "status": status});
    for (field, value) in metadata.as_object().unwrap() {
        object["metadata"][field] = value.clone();
    }
    object
}

#[test]
fn an_object_of_kubernetes_says_its_revision_and_version() {
    let fact = told(&object(json!({"resourceVersion": "17"}), json!({}), json!({"lastAppliedRevision": "1.0"})));
    assert_eq!(
        (fact.version, fact.observed.revision.as_deref(), fact.observed.ready, fact.suspended),
        (17, Some("1.0"), false, false)
    );
    assert!(told(&object(json!({}), json!({"suspend": true}), json!({}))).suspended);
    for version in [json!("-1"), json!("x"), json!(17)] {
        assert_eq!(told(&object(json!({"resourceVersion": version}), json!({}), json!({}))).version, NOW.0);
    }
    assert_eq!(told(&object(json!({"resourceVersion": "0"}), json!({}), json!({}))).version, 0);
    let revision = |status: Value| told(&object(json!({}), json!({}), status)).observed.revision;
    let history = |status: &str| json!({"lastAppliedRevision": "", "history": [{"chartVersion": "2.0", "status": status}, {"chartVersion": "1.0", "status": "deployed"}]});
    assert_eq!(
        (revision(history("deployed")).as_deref(), revision(history("failed")), revision(json!({}))),
        (Some("2.0"), None, None)
    );
    let long = |n: usize| wrong(&object(json!({}), json!({}), json!({"lastAppliedRevision": "r".repeat(n)})));
    assert_eq!((long(1024), long(1025).len()), (vec![], 1));
    let nameless = json!({"apiVersion": "v2", "kind": "HelmRelease", "metadata": {"namespace": "ns"}});
    assert!(wrong(&nameless)[0].starts_with("metadata.name is missing"));
}

#[test]
fn an_object_is_ready_if_it_says_so_of_what_is_asked_for() {
    let condition = |ty: &str, status: &str, observed: Value| json!({"type": ty, "status": status, "observedGeneration": observed});
    let ready = |generation: Value, conditions: Vec<Value>, observed: Value| {
        told(&object(
            json!({"generation": generation}),
            json!({}),
            json!({"conditions": conditions, "observedGeneration": observed}),
        ))
        .observed
        .ready
    };
    for (generation, conditions, observed, expected) in [
        (json!(2), vec![condition("Ready", "True", json!(2))], json!(2), true),
        (json!(2), vec![condition("Ready", "True", json!(3))], json!(3), true),
        (json!(2), vec![condition("Ready", "True", json!(1))], json!(2), false),
        (json!(2), vec![condition("Ready", "True", json!(2))], json!(1), false),
        (json!(2), vec![condition("Ready", "True", Value::Null)], Value::Null, true),
        (Value::Null, vec![condition("Ready", "True", json!(1))], json!(1), true),
        (json!(2), vec![condition("Ready", "False", json!(2))], json!(2), false),
        (json!(2), vec![condition("Released", "True", json!(2))], json!(2), false),
        (json!(2), vec![condition("Released", "False", json!(2)), condition("Ready", "True", json!(2))], json!(2), true),
        (json!(2), vec![], json!(2), false),
    ] {
        assert_eq!(ready(generation, conditions.clone(), observed), expected, "{conditions:?}");
    }
}

#[test]
fn an_answer_is_a_fact_only_about_the_object_that_was_asked_for() {
    let asked = App { api_version: "v2".into(), kind: "HelmRelease".into(), name: "app".into() };
    let place = Target { cluster: Some("ns/eu".into()), namespace: "ns".into() };
    let of = |answer: Option<Value>| answered(&asked, &place, answer, NOW);
    let runs = |revision: Value| {
        let mut runs = object(
            json!({}),
            json!({}),
            json!({"lastAppliedRevision": revision, "conditions": [{"type": "Ready", "status": "True"}]}),
        );
        runs["cluster"] = json!(["not a name of a cluster"]);
        runs
    };
    let fact = of(Some(runs(json!("1.0")))).unwrap();
    assert_eq!((fact.revision.as_deref(), fact.ready, fact.at), (Some("1.0"), true, NOW));
    let with = |pointer: &str, value: Value| {
        let mut changed = runs(json!("1.0"));
        *changed.pointer_mut(pointer).unwrap() = value;
        Some(changed)
    };
    for (answer, why) in [
        (None, "there is no HelmRelease app in namespace ns"),
        (Some(json!([])), "makes no sense: it is not an object"),
        (with("/metadata", json!(1)), "makes no sense: it has no metadata"),
        (with("/apiVersion", json!("v1")), "its apiVersion is \"v1\" instead of \"v2\""),
        (with("/kind", Value::Null), "its kind is \"\" instead of \"HelmRelease\""),
        (with("/metadata/name", json!("b")), "its metadata.name is \"b\""),
        (with("/metadata/namespace", json!("other")), "its metadata.namespace is \"other\""),
        (Some(runs(json!("r".repeat(1025)))), "has more than 1024 bytes"),
        (Some(runs(json!(""))), "is Ready, but names no revision"),
    ] {
        let found = of(answer).unwrap_err();
        assert!(found.contains(why), "{found}");
    }
}

#[test]
fn only_keelway_tells_what_runs_in_a_deployment_config() {
    let config = |change: Value| {
        let mut fact = generic(json!({"apiVersion": "keelway.dev/v1", "kind": "DeploymentConfig"}));
        for (field, value) in change.as_object().unwrap() {
            fact[field] = value.clone();
        }
        told(&fact)
    };
    for (change, refused) in [
        (json!({}), true),
        (json!({"cluster": "ns/eu"}), false),
        (json!({"apiVersion": "apps.openshift.io/v1"}), false),
        (json!({"kind": "Deployment"}), false),
    ] {
        let facts = [told(&generic(json!({}))), config(change.clone())];
        let found = by_others(&facts).err().map(|wrong| wrong[0].path.clone());
        assert_eq!(found, refused.then(|| "[1]".to_owned()), "{change}");
    }
    let (app, target) = (config(json!({})).app, config(json!({})).target);
    assert_eq!((target.beyond(&app, "ns"), target.beyond(&app, "other")), (None, Some(("ns", "app"))));
}

#[test]
fn a_sequence_is_in_the_pipelines_project_and_the_environments_stage_unless_it_says_otherwise() {
    let sequence = |project: Option<&str>, stage: Option<&str>| Sequence {
        project: project.map(str::to_owned),
        stage: stage.map(str::to_owned),
        service: "s".into(),
        name: "n".into(),
    };
    assert_eq!(sequence(None, None).place("ns", "prod"), ("ns", "prod"));
    assert_eq!(sequence(Some("shop"), Some("dev")).place("ns", "prod"), ("shop", "dev"));
}

#[test]
fn whoever_tells_the_same_revision_again_has_not_set_it() {
    let observed = |revision: Option<&str>, by: &str| Observed {
        revision: revision.map(str::to_owned),
        ready: true,
        error: None,
        at: NOW,
        by: vec![by.to_owned()],
    };
    for (earlier, now, author) in
        [(Some("1"), Some("1"), "ann"), (Some("1"), Some("2"), "bob"), (None, Some("1"), "bob"), (None, None, "bob")]
    {
        assert_eq!(observed(now, "bob").after(Some(&observed(earlier, "ann"))).by, [author], "{earlier:?} {now:?}");
    }
    assert_eq!(observed(Some("1"), "bob").after(None).by, ["bob"]);
    let observations = Observations::from([(target("dev"), observed(Some("1"), "ann"))]);
    assert_eq!(observe::authors(&environment("dev"), &observations), ["ann"]);
}
