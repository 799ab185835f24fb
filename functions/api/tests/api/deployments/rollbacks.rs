//! Rollbacks: checked before anything is written, always a new version, and nothing fires until somebody says so.

use crate::deployments::versions::{CART, SOURCE, ask, deploy, digest, fields, image, manifest, push, settle, stand, status};
use crate::stand::Stand;
use serde_json::{Value, json};

/// Versions 1 to 3 of `cart`: images 1, 2, 2; URLs a, a, b.
async fn three() -> Stand {
    let mut stand = stand().await;
    push(&mut stand, 2).await;
    deploy(&mut stand, 2, 0).await;
    stand.manifests(&manifest("cart", "b", true)).await;
    settle(&mut stand).await;
    deploy(&mut stand, 3, 0).await;
    stand
}

fn paths(answer: &Value) -> Vec<String> {
    answer["changes"].as_array().unwrap().iter().map(|one| one["field"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_rollback_is_a_new_version_with_its_cause_and_suspends_all_triggers() {
    let mut stand = three().await;
    let body = json!({"release": "cart-1", "notes": "bad release", "by": "ann"});
    let answer = ask(&mut stand, "rollback", &body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = answer.json();
    let deployment = &answer["deployment"];
    assert_eq!((&answer["resolvedRelease"], &deployment["version"], &deployment["rollbackOf"]), (&json!(1), &json!(4), &json!(1)));
    assert_eq!(deployment["images"]["web"], json!(image(1)));
    let cause = json!([{"type": "Rollback", "by": "administrator (ann)", "release": 1, "notes": "bad release"}]);
    assert_eq!(deployment["details"]["causes"], cause, "R16");
    let shown = status(&stand).await;
    assert_eq!(shown["triggersSuspended"]["message"], "rollback to cart-1");
    assert_eq!(
        (&shown["triggers"][1]["automatic"], &shown["triggers"][1]["effectiveAutomatic"]),
        (&json!(true), &json!(false)),
        "D1"
    );
    deploy(&mut stand, 4, 0).await;
    push(&mut stand, 5).await;
    assert_eq!(status(&stand).await["latestVersion"], 4, "R10");
    let text = stand.get(&format!("{CART}/manifest")).await.text;
    assert!(text.starts_with("# A rollback changed this config") && text.contains(&image(1)), "{text}");
    let parsed = keelway_wire::manifest::parse(&text, "-");
    assert!(text.contains("\nkind: DeploymentConfig\n") && !parsed.refused() && parsed.documents.len() == 1, "{parsed:?}");
    let latest = ask(&mut stand, "instantiate", &json!({"latest": true, "force": true, "resumeTriggers": true})).await;
    assert_eq!(latest.json()["deployment"]["images"]["web"], json!(image(5)), "R12: {latest:?}");
    assert_eq!(status(&stand).await["triggersSuspended"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn the_default_is_the_newest_complete_version_and_the_answer_says_why() {
    let mut stand = three().await;
    let dry = ask(&mut stand, "rollback", &json!({"dryRun": true})).await.json();
    assert_eq!((&dry["resolvedRelease"], &dry["reason"]), (&json!(2), &json!("it is the version before the latest")));
    push(&mut stand, 4).await;
    deploy(&mut stand, 4, 1).await;
    push(&mut stand, 5).await;
    let dry = ask(&mut stand, "rollback", &json!({"dryRun": true})).await.json();
    let reason = "it is the newest complete version below #5 that deploys something else";
    assert_eq!((&dry["resolvedRelease"], &dry["reason"]), (&json!(3), &json!(reason)));
    let failed = ask(&mut stand, "rollback", &json!({"release": 4})).await;
    assert_eq!((failed.status, failed.problem().contains("version 4 is Failed")), (422, true), "{failed:?}");
    let allowed = ask(&mut stand, "rollback", &json!({"release": 4, "allowFailed": true, "dryRun": true})).await.json();
    assert!(allowed["warnings"][0].as_str().unwrap().starts_with("version 4 is Failed"), "{allowed}");
    let before = status(&stand).await["latestVersion"].clone();
    let done = ask(&mut stand, "rollback", &json!({})).await.json();
    assert_eq!((before, &done["deployment"]["version"]), (json!(5), &json!(6)), "R17: {done}");
    assert_eq!(stand.get("/v1/deployments/shop:cart-5").await.json()["reason"], "Superseded");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_rolled_back_is_refused_and_nothing_is_written() {
    let mut stand = Stand::with(Default::default(), std::time::Duration::from_secs(60));
    stand.manifests(&format!("{SOURCE}---\n{}", manifest("cart", "a", true))).await;
    let refused = ask(&mut stand, "rollback", &json!({})).await;
    assert_eq!((refused.status, refused.problem()), (422, "release: cannot rollback an undeployed config".into()), "R1");
    push(&mut stand, 1).await;
    deploy(&mut stand, 1, 0).await;
    let refused = ask(&mut stand, "rollback", &json!({})).await;
    assert_eq!((refused.status, refused.problem()), (422, "release: no previous deployment exists for \"cart\"".into()), "R2");
    push(&mut stand, 2).await;
    deploy(&mut stand, 2, 0).await;
    let before = stand.get(CART).await.text;
    for (body, field, told) in [
        (json!({"release": 2}), "release", "version 2 is already the latest"),
        (json!({"release": 9}), "release", "deployment cart-9 not found"),
        (json!({"release": -1}), "release", "-1 is no version of cart"),
        (json!({"release": "web-1"}), "release", "\"web-1\" is no version of cart"),
        (json!({"release": "other:cart-1"}), "release", "\"other:cart-1\" is no version of cart"),
        (json!({"config": false, "application": false}), "application", "nothing would be rolled back"),
        (json!({"spec": {"revision": -1, "includeTemplate": true}}), "spec.revision", "must be non-negative"),
        (json!({"spec": {"revision": 1}}), "spec", "nothing would be rolled back"),
        (json!({"name": "web", "spec": {"includeTemplate": true}}), "name", "is not the config of the path"),
    ] {
        let refused = ask(&mut stand, "rollback", &body).await;
        assert_eq!((refused.status, fields(&refused)), (422, vec![field.to_owned()]), "{body} {refused:?}");
        assert!(refused.problem().contains(told), "R3, R4, R9: {refused:?}");
    }
    assert_eq!(ask(&mut stand, "rollback", &json!({"relaese": 1})).await.status, 400);
    ask(&mut stand, "pause", &json!({})).await;
    let paused = ask(&mut stand, "rollback", &json!({})).await;
    assert_eq!((paused.status, fields(&paused)), (422, vec!["spec.paused".to_owned()]), "P3");
    assert!(paused.problem().contains("cannot rollback a paused deployment config"), "{paused:?}");
    ask(&mut stand, "resume", &json!({})).await;
    let spec = |text: &str| serde_json::from_str::<Value>(text).unwrap()["spec"].clone();
    assert_eq!(spec(&stand.get(CART).await.text), spec(&before));
}

#[tokio::test(start_paused = true)]
async fn images_that_were_deleted_stop_a_rollback_before_it_begins() {
    let mut stand = three().await;
    let gone = json!({"digest": digest(1), "action": "delete"});
    assert_eq!(stand.post("/v1/artifacts/shop/cart", &gone).await.status, 202);
    for dry in [true, false] {
        let refused = ask(&mut stand, "rollback", &json!({"release": 1, "dryRun": dry})).await;
        assert_eq!((refused.status, fields(&refused)), (422, vec!["spec.template.spec.containers[web].image".to_owned()]), "R14");
        assert!(refused.problem().contains(&image(1)), "{refused:?}");
    }
    assert_eq!(status(&stand).await["latestVersion"], 3);
    let config = ask(&mut stand, "rollback", &json!({"release": 1, "application": false, "again": true, "dryRun": true})).await;
    assert_eq!(config.status, 200, "the image does not go back: {config:?}");
    // Pushed again, it is there again.
    stand.world.pass(keelway_domain::time::Span::seconds(1));
    let pushed = json!({"tag": "old", "digest": digest(1), "image": "registry.test/shop/cart"});
    assert_eq!(stand.post("/v1/artifacts/shop/cart", &pushed).await.status, 202);
    assert_eq!(ask(&mut stand, "rollback", &json!({"release": 1, "dryRun": true})).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_deployers_image_that_was_deleted_stops_a_rollback_of_the_config() {
    let mut stand = stand().await;
    let custom = |n: u64| {
        let strategy = format!("  strategy:\n    type: Custom\n    customParams: {{image: '{}'}}\n  template:", image(n));
        manifest("cart", "a", true).replace("  template:", &strategy)
    };
    for (n, url) in [(7, "b"), (8, "c")] {
        stand.manifests(&custom(n).replace("value: a", &format!("value: {url}"))).await;
        settle(&mut stand).await;
        deploy(&mut stand, n - 5, 0).await;
    }
    assert_eq!(stand.post("/v1/artifacts/shop/cart", &json!({"digest": digest(7), "action": "delete"})).await.status, 202);
    let refused = ask(&mut stand, "rollback", &json!({"release": 2, "dryRun": true})).await;
    assert_eq!((refused.status, fields(&refused)), (422, vec!["spec.strategy.customParams.image".to_owned()]), "R15");
    for body in [json!({"release": 2, "config": false, "dryRun": true}), json!({"release": 1, "dryRun": true})] {
        assert_eq!(ask(&mut stand, "rollback", &body).await.status, 200, "R15: {body}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_says_field_by_field_what_would_change() {
    let mut stand = three().await;
    let before = stand.get(CART).await.text;
    let dry = ask(&mut stand, "rollback", &json!({"release": 1, "dryRun": true})).await.json();
    let container = "spec.template.spec.containers[web]";
    assert_eq!(paths(&dry), [format!("{container}.env[URL].value"), format!("{container}.image")], "{dry}");
    assert_eq!((&dry["changes"][0]["was"], &dry["changes"][0]["becomes"]), (&json!("b"), &json!("a")));
    assert_eq!((&dry["dryRun"], &dry["done"]), (&json!(true), &json!(false)));
    assert_eq!(dry["candidate"]["spec"]["template"]["spec"]["containers"][0]["image"], json!(image(1)));
    assert_eq!(stand.get(CART).await.text, before, "R19");
}

#[tokio::test(start_paused = true)]
async fn openshifts_request_and_the_stanza_are_the_same_rollback() {
    let mut stand = three().await;
    let changed = manifest("cart", "b", true).replace("replicas: 2", "replicas: 5");
    stand.manifests(&changed).await;
    let spec = json!({"from": {"kind": "ReplicationController", "name": "cart-1"}, "includeTemplate": true});
    let body = json!({"kind": "DeploymentConfigRollback", "apiVersion": "apps.openshift.io/v1", "name": "cart", "spec": spec, "dryRun": true});
    let dry = ask(&mut stand, "rollback", &body).await;
    assert_eq!((dry.status, &dry.json()["resolvedRelease"]), (200, &json!(1)), "{dry:?}");
    assert!(!paths(&dry.json()).contains(&"spec.replicas".to_owned()), "replicas were not asked for: {dry:?}");
    let mut with = body.clone();
    with["spec"]["includeReplicationMeta"] = json!(true);
    with["spec"]["revision"] = json!(2);
    let dry = ask(&mut stand, "rollback", &with).await.json();
    assert_eq!((paths(&dry)[0].as_str(), &dry["resolvedRelease"]), ("spec.replicas", &json!(2)), "{dry}");

    let put = |body: &Value| {
        axum::http::Request::put(CART).header("x-token", "test-token").body(axum::body::Body::from(body.to_string()))
    };
    let both = json!({"id": "shop:cart", "kind": "DeploymentConfig", "rollback": {}, "spec": {}});
    let refused = stand.while_working(put(&both).unwrap()).await;
    assert_eq!((refused.status, fields(&refused)), (422, vec!["spec".to_owned()]), "{refused:?}");
    let stanza = json!({"id": "cart", "kind": "DeploymentConfig", "rollback": {"release": "cart-1", "config": true, "application": true, "notes": "messed up"}});
    let done = stand.while_working(put(&stanza).unwrap()).await;
    assert_eq!((done.status, &done.json()["deployment"]["rollbackOf"]), (200, &json!(1)), "{done:?}");
    let applied = stand.post_text("/v1/apply", "application/json", stanza.to_string()).await;
    assert_eq!(applied.status, 422, "a request is not applied: {applied:?}");
}

#[tokio::test(start_paused = true)]
async fn several_configs_are_checked_together_and_applied_each_on_its_own() {
    let mut stand = three().await;
    let web = |url: &str| manifest("web", url, true);
    stand.manifests(&web("a")).await;
    settle(&mut stand).await;
    finish(&mut stand, "web", 1).await;
    stand.manifests(&web("b")).await;
    settle(&mut stand).await;
    finish(&mut stand, "web", 2).await;

    let alone = ask(&mut stand, "rollback", &json!({"release": 1, "dryRun": true})).await.json();
    let warning = "environment variable URL: cart goes from \"b\" to \"a\", and web of the same app keeps \"b\"";
    assert!(alone["warnings"].as_array().unwrap().contains(&json!(warning)), "D21: {alone}");
    let together = json!({"rollbacks": [{"id": "shop:cart", "release": 1}, {"id": "shop:web"}], "dryRun": true});
    let dry = stand.post("/v1/rollbacks", &together).await.json();
    assert!(!dry.to_string().contains("environment variable URL"), "both go back: {dry}");

    let invalid = json!({"rollbacks": [
        {"id": "shop:cart", "release": 1}, {"id": "shop:web", "release": 7}, {"id": "shop:none"}, {"id": "shop:cart"}
    ]});
    let refused = stand.post_while_working("/v1/rollbacks", &invalid).await;
    assert_eq!(refused.status, 422);
    assert_eq!(fields(&refused), ["rollbacks[1].release", "rollbacks[2].id", "rollbacks[3].id"], "R20: {refused:?}");
    assert_eq!(status(&stand).await["latestVersion"], 3, "R20: none is applied");
    assert_eq!(stand.post("/v1/rollbacks", &json!({"rollbacks": []})).await.status, 422);

    let both =
        json!({"rollbacks": [{"id": "shop:cart", "release": 1}, {"id": "shop:web"}], "notes": "back to Monday", "by": "ann"});
    let request =
        axum::http::Request::post("/v1/rollbacks").header("x-token", "test-token").header("content-type", "application/json");
    let done = {
        let request = stand.app_request(request.body(axum::body::Body::from(both.to_string())).unwrap());
        let work = async {
            for _ in 0..20 {
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                stand.work().await;
            }
        };
        tokio::join!(request, work).0
    };
    assert_eq!(done.status, 200, "{done:?}");
    let done = done.json();
    let group = done["groupId"].as_str().unwrap();
    let results = done["results"].as_array().unwrap();
    let shown: Vec<_> = results.iter().map(|one| (&one["name"], &one["done"], &one["deployment"]["version"])).collect();
    let yes = json!(true);
    assert_eq!(shown, [(&json!("cart"), &yes, &json!(4)), (&json!("web"), &yes, &json!(3))], "{done}");
    assert!(results.iter().all(|one| one["deployment"]["groupId"] == group), "{done}");
}

#[tokio::test(start_paused = true)]
async fn one_of_several_conflicts_as_it_is_written_and_has_its_own_result() {
    let mut stand = three().await;
    let web = |url: &str| manifest("web", url, true);
    for (n, url) in [(1, "a"), (2, "b")] {
        stand.manifests(&web(url)).await;
        settle(&mut stand).await;
        finish(&mut stand, "web", n).await;
    }
    // Somebody pauses one of them. Nobody has obeyed that yet, so both are valid.
    let pause = stand.post("/v1/deploymentConfigs/shop:web/pause", &json!({"by": "eve"})).await;
    assert_eq!(pause.status, 202, "{pause:?}");
    let both = json!({"rollbacks": [{"id": "shop:cart", "release": 1}, {"id": "shop:web"}]});
    let request =
        axum::http::Request::post("/v1/rollbacks").header("x-token", "test-token").header("content-type", "application/json");
    let request = stand.app_request(request.body(axum::body::Body::from(both.to_string())).unwrap());
    let work = async {
        for _ in 0..20 {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            stand.work().await;
        }
    };
    let done = tokio::join!(request, work).0;
    assert_eq!(done.status, 200, "R21: {done:?}");
    let done = done.json();
    let [cart, other] = &done["results"].as_array().unwrap()[..] else { panic!("{done}") };
    assert_eq!((&cart["name"], &cart["done"], &cart["deployment"]["version"]), (&json!("cart"), &json!(true), &json!(4)), "{done}");
    assert_eq!(cart["deployment"]["groupId"], done["groupId"], "{done}");
    assert_eq!((&other["name"], &other["done"], other.get("deployment")), (&json!("web"), &json!(false), None), "{done}");
    let error = &other["errors"][0];
    assert_eq!((&error["field"], &error["code"]), (&json!("release"), &json!("Conflict")), "{done}");
    assert!(error["message"].as_str().unwrap().contains("cannot rollback a paused deployment config"), "{done}");
    let shown = stand.get("/v1/deploymentConfigs/shop:web/status").await.json();
    assert_eq!((&shown["latestVersion"], &shown["triggersSuspended"]), (&json!(2), &Value::Null), "nothing of it is written");
}

/// The state of none of them shows the rollback while the request waits for it: it waits for all of them at once.
#[tokio::test(start_paused = true)]
async fn many_configs_are_waited_for_no_longer_than_one() {
    let mut stand = stand().await;
    let names: Vec<String> = (1..=20).map(|n| format!("web-{n}")).collect();
    for (n, url) in [(1, "a"), (2, "b")] {
        for name in &names {
            stand.manifests(&manifest(name, url, true)).await;
        }
        settle(&mut stand).await;
        for name in &names {
            finish(&mut stand, name, n).await;
        }
    }
    let body = json!({"rollbacks": names.iter().map(|name| json!({"id": format!("shop:{name}")})).collect::<Vec<_>>()});
    let began = tokio::time::Instant::now();
    let answer = stand.post("/v1/rollbacks", &body).await;
    // The patience of this stand is a minute for each.
    assert!(began.elapsed() < std::time::Duration::from_secs(61), "{:?}", began.elapsed());
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = answer.json();
    let results = answer["results"].as_array().unwrap();
    let named: Vec<&str> = results.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(named, names);
    for one in results {
        let look = format!("/v1/deploymentConfigs/shop:{}/status", one["name"].as_str().unwrap());
        assert_eq!((&one["done"], one["look"].as_str()), (&json!(false), Some(look.as_str())), "{one}");
    }
    // All of them were handed in.
    stand.work().await;
    for name in &names {
        let latest = stand.get(&format!("/v1/deploymentConfigs/shop:{name}/status")).await.json()["latest"].clone();
        assert_eq!((&latest["version"], &latest["rollbackOf"]), (&json!(3), &json!(1)), "{latest}");
    }
}

/// Carries a version of a config out.
async fn finish(stand: &mut Stand, name: &str, n: u64) {
    let claimed = stand.post(&format!("/v1/deployments/shop:{name}-{n}/claim"), &json!({})).await.json();
    let path = format!("/v1/deployments/shop:{name}-{n}/finish");
    let answer = crate::deployments::versions::say(stand, &path, claimed["token"].as_str().unwrap(), &json!({"exitCode": 0})).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    stand.work().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_applied_after_a_rollback_differs_only_where_it_does() {
    let mut stand = three().await;
    ask(&mut stand, "rollback", &json!({"release": 1})).await;
    settle(&mut stand).await;
    let differs = async |stand: &Stand, url: &str, dry: &str| {
        let answer = stand.post_text(&format!("/v1/apply?dryRun={dry}"), "application/yaml", manifest("cart", url, true)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let applied = answer.json()["applied"][0].clone();
        (applied["changed"].as_bool().unwrap(), if applied["changes"].is_null() { vec![] } else { paths(&applied) })
    };
    // The rollback wrote defaults down, and the image that the trigger had set.
    let env = "spec.template.spec.containers[web].env[URL].value".to_owned();
    assert_eq!(differs(&stand, "a", "true").await, (true, vec![]));
    assert_eq!(differs(&stand, "b", "true").await, (true, vec![env.clone()]));
    assert_eq!(differs(&stand, "b", "").await, (true, vec![env.clone()]));
    // From now on there is a text that somebody applied.
    assert_eq!(differs(&stand, "b", "").await, (false, vec![]));
    assert_eq!(differs(&stand, "a", "").await, (true, vec![env]));
}
