//! Deployment configs as they are applied, generated, put back and asked for versions.

use crate::stand::{Answer, Stand, TOKEN};
use axum::body::Body;
use axum::http::Request;
use axum::http::header::ETAG;
use keelway_domain::time::Span;
use keelway_engine::sequences::Limits;
use serde_json::{Value, json};
use std::time::Duration;

/// A config whose container `web` has the image of `shop/cart:latest`.
pub fn manifest(name: &str, url: &str, automatic: bool) -> String {
    format!(
        "apiVersion: apps.openshift.io/v1\nkind: DeploymentConfig\nmetadata: {{name: {name}, namespace: shop, labels: {{app: shop}}}}\nspec:\n  \
         replicas: 2\n  triggers:\n    - type: ConfigChange\n    - type: ImageChange\n      imageChangeParams:\n        automatic: {automatic}\n        \
         containerNames: [web]\n        from: {{kind: ImageStreamTag, name: 'cart:latest'}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    \
         spec:\n      containers:\n        - name: web\n          env: [{{name: URL, value: {url}}}]\n"
    )
}

/// The same with a deployer around a strategy that Keelway knows.
pub fn wrapped(name: &str, url: &str) -> String {
    let strategy = "  strategy: {type: Canary, canaryParams: {steps: [{weight: 50, bake: 1m}]}, customParams: {image: 'deployer:1'}}\n  \
                    targets: [{name: main, kind: lambda-alias, id: 'web:live'}]\n  template:";
    manifest(name, url, true).replace("  template:", strategy)
}

/// The source of its image.
pub const SOURCE: &str = "apiVersion: keelway.dev/v1\nkind: ArtifactSource\nmetadata: {name: cart, namespace: shop}\nspec:\n  webhook: {secret: registry}\n";
pub const CART: &str = "/v1/deploymentConfigs/shop:cart";

pub fn digest(n: u64) -> String {
    format!("sha256:{n:064x}")
}

pub fn image(n: u64) -> String {
    format!("registry.test/shop/cart@{}", digest(n))
}

/// Tells about a push, and waits until it is a version.
pub async fn push(stand: &mut Stand, n: u64) {
    stand.world.pass(Span::seconds(1));
    let body = json!({"tag": "latest", "digest": digest(n), "image": "registry.test/shop/cart"});
    assert_eq!(stand.post("/v1/artifacts/shop/cart", &body).await.status, 202);
    settle(stand).await;
}

/// Waits until a change is a version.
pub async fn settle(stand: &mut Stand) {
    stand.work().await;
    stand.world.pass(Span::seconds(3));
    stand.work().await;
}

pub async fn claim(stand: &Stand, n: u64) -> Value {
    let answer = stand.post(&format!("/v1/deployments/shop:cart-{n}/claim"), &json!({"by": "ci"})).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// What a deployer says with its token.
pub async fn say(stand: &Stand, path: &str, token: &str, body: &Value) -> Answer {
    let request = Request::post(path).header("authorization", format!("Bearer {token}")).header("content-type", "application/json");
    stand.request(request.body(Body::from(body.to_string())).unwrap()).await
}

/// Carries a version out.
pub async fn deploy(stand: &mut Stand, n: u64, exit: i64) {
    let token = claim(stand, n).await["token"].as_str().unwrap().to_owned();
    let answer = say(stand, &format!("/v1/deployments/shop:cart-{n}/finish"), &token, &json!({"exitCode": exit})).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    stand.work().await;
}

/// A stand on which version 1 of `cart` is complete, with image 1 and URL `a`.
pub async fn stand() -> Stand {
    let mut stand = Stand::with(Limits::default(), Duration::from_secs(60));
    begin(&mut stand).await;
    stand
}

pub async fn begin(stand: &mut Stand) {
    stand.manifests(&format!("{SOURCE}---\n{}", manifest("cart", "a", true))).await;
    push(stand, 1).await;
    deploy(stand, 1, 0).await;
}

pub async fn ask(stand: &mut Stand, path: &str, body: &Value) -> Answer {
    // The audit is sorted by time.
    stand.world.pass(Span::seconds(1));
    stand.post_while_working(&format!("{CART}/{path}"), body).await
}

pub async fn status(stand: &Stand) -> Value {
    stand.get(&format!("{CART}/status")).await.json()
}

/// The fields of the errors of a refusal.
pub fn fields(answer: &Answer) -> Vec<String> {
    let _ = answer.problem();
    answer.json()["errors"].as_array().unwrap().iter().map(|error| error["field"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn what_is_applied_is_deployed_and_read_back() {
    let mut stand = Stand::with(Limits::default(), Duration::from_secs(60));
    let text = manifest("cart", "a", true);
    let applied = stand.manifests(SOURCE).await;
    assert_eq!(applied["applied"][0], json!({"kind": "ArtifactSource", "name": "cart", "project": "shop", "changed": true}));
    assert_eq!(
        stand.manifests(&text).await["applied"][0],
        json!({"kind": "DeploymentConfig", "name": "cart", "project": "shop", "changed": true})
    );
    assert_eq!(stand.manifests(&text).await["applied"][0]["changed"], false);
    let waits = status(&stand).await;
    assert_eq!((&waits["latestVersion"], &waits["reason"]), (&json!(0), &json!("Unresolved")), "{waits}");
    assert!(waits["message"].as_str().unwrap().contains("no image recorded for shop/cart:latest"), "{waits}");

    push(&mut stand, 1).await;
    let running = status(&stand).await;
    assert_eq!((&running["latestVersion"], &running["latest"]["status"]), (&json!(1), &json!("New")), "{running}");
    assert_eq!(running["activeVersion"], Value::Null, "active and latest are two things");
    deploy(&mut stand, 1, 0).await;
    let done = status(&stand).await;
    assert_eq!((&done["activeVersion"], &done["latest"]["status"], &done["reason"]), (&json!(1), &json!("Complete"), &json!("")));
    assert_eq!(done["triggers"][1]["image"], json!(image(1)));

    let one = stand.get("/v1/deployments/shop:cart-1").await.json();
    assert_eq!(one["snapshot"]["spec"]["template"]["spec"]["containers"][0]["image"], json!(image(1)));
    assert_eq!(one["details"]["causes"][0]["type"], "ImageChange");
    assert_eq!((&one["name"], &one["deployer"], &one["exitCode"]), (&json!("cart-1"), &json!("ci"), &json!(0)));

    let object = stand.get(CART).await;
    assert_eq!((object.headers[ETAG].to_str().unwrap(), &object.json()["metadata"]["resourceVersion"]), ("\"1\"", &json!("1")));
    assert_eq!(object.json()["status"]["latestVersion"], 1);
    assert_eq!(stand.get(&format!("{CART}/manifest")).await.text, text);
    assert_eq!(stand.get("/v1/artifactSources/shop/cart/manifest").await.text, SOURCE);
    assert_eq!(stand.get("/v1/artifactSources?namespace=shop").await.json()["items"][0]["name"], "cart");
    for list in ["/v1/deploymentConfigs", "/v1/deploymentConfigs?namespace=shop"] {
        let list = stand.get(list).await.json();
        assert_eq!((&list["totalCount"], &list["items"][0]["activeVersion"]), (&json!(1), &json!(1)), "{list}");
    }

    assert_eq!(stand.delete(CART).await.status, 204);
    stand.work().await;
    for path in [CART, "/v1/deploymentConfigs/shop:cart/status", "/v1/generateDeploymentConfigs/shop:cart"] {
        let gone = stand.get(path).await;
        assert_eq!((gone.status, gone.problem().contains("deployment config \"cart\" does not exist")), (404, true), "{path}");
    }
    for path in ["/v1/deployments/shop:cart-9", "/v1/deployments/cart", "/v1/deployments/shop:cart-01", "/v1/deployments/x-1"] {
        assert_eq!(stand.get(path).await.status, 404, "{path}");
    }
    assert_eq!(stand.delete(CART).await.status, 404);
    assert_eq!(stand.delete("/v1/artifactSources/shop/cart").await.status, 204);
    assert_eq!(stand.delete("/v1/artifactSources/shop/cart").await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn the_generator_raises_the_version_when_something_differs_and_stores_nothing() {
    let mut stand = stand().await;
    let generate = "/v1/generateDeploymentConfigs/shop:cart";
    let same = stand.get(generate).await.json();
    assert_eq!(same["status"]["latestVersion"], 1, "G2");
    // By hand only: a push changes nothing, but the generator takes it.
    stand.manifests(&manifest("cart", "a", false)).await;
    push(&mut stand, 2).await;
    assert_eq!(status(&stand).await["latestVersion"], 1, "T10");
    let before = stand.get(CART).await.text;
    let next = stand.get(generate).await.json();
    assert_eq!(next["status"]["latestVersion"], 2);
    assert_eq!(next["status"]["details"]["causes"][0]["type"], "ImageChange");
    assert_eq!(next["spec"]["template"]["spec"]["containers"][0]["image"], json!(image(2)));
    assert_eq!(stand.get(CART).await.text, before, "nothing is stored");

    let put = stand.put(CART, &next).await;
    assert_eq!(put.status, 200, "{put:?}");
    settle(&mut stand).await;
    let done = status(&stand).await;
    assert_eq!((&done["latestVersion"], &done["latest"]["images"]["web"]), (&json!(2), &json!(image(2))), "G11: {done}");
    let late = stand.put(CART, &next).await;
    assert_eq!((late.status, late.problem().contains("resourceVersion is 3 now")), (409, true), "{late:?}");
}

#[tokio::test(start_paused = true)]
async fn a_version_is_put_as_it_is_or_raised_by_one() {
    let mut stand = stand().await;
    let object = stand.get(CART).await.json();
    let with = |version: u64| {
        let mut object = object.clone();
        object["status"]["latestVersion"] = json!(version);
        object
    };
    for (version, told) in [(0, "latestVersion cannot be decremented"), (3, "latestVersion is 1: send 1, or 2 for a new version")] {
        let answer = stand.put(CART, &with(version)).await;
        assert_eq!((answer.status, answer.problem().contains(told)), (422, true), "G10: {answer:?}");
        assert_eq!(fields(&answer), ["status.latestVersion"]);
    }
    let mut other = with(1);
    other["metadata"]["resourceVersion"] = json!("7");
    assert_eq!(stand.put(CART, &other).await.status, 409);
    other["metadata"]["resourceVersion"] = json!("x");
    assert_eq!(stand.put(CART, &other).await.status, 400);
    assert_eq!(stand.put("/v1/deploymentConfigs/shop:other", &with(1)).await.status, 404, "PUT creates nothing");
    assert_eq!(stand.put(CART, &with(2)).await.status, 200);
    settle(&mut stand).await;
    let done = status(&stand).await;
    assert_eq!((&done["latestVersion"], &done["latest"]["details"]["causes"][0]["type"]), (&json!(2), &json!("Manual")));
    assert_eq!(stand.put(CART, &json!({"kind": "DeploymentConfig"})).await.status, 422);
    let twice = stand.post_text("/v1/deploymentConfigs", "application/yaml", manifest("cart", "b", true)).await;
    assert_eq!(twice.status, 409, "{twice:?}");
    let created = stand.post_text("/v1/deploymentConfigs", "application/yaml", manifest("web", "b", true)).await;
    assert_eq!((created.status, &created.json()["metadata"]["name"]), (201, &json!("web")), "{created:?}");
}

#[tokio::test(start_paused = true)]
async fn whatever_is_unresolved_is_told_at_once() {
    let mut stand = Stand::new();
    let two = manifest("cart", "a", true).replace(
        "  template:",
        "    - type: ImageChange\n      imageChangeParams: {containerNames: [log], from: {kind: ImageStreamTag, name: 'log:1'}}\n  template:",
    ) + "        - name: log\n";
    stand.manifests(&two).await;
    let generated = stand.get("/v1/generateDeploymentConfigs/shop:cart").await;
    assert_eq!(generated.status, 422, "{generated:?}");
    let expected = ["spec.triggers[1].imageChangeParams.from", "spec.triggers[2].imageChangeParams.from"];
    assert_eq!(fields(&generated), expected, "G6");
    assert!(generated.problem().contains("no image recorded for shop/log:1: the tag was not found"), "G5: {generated:?}");
    let asked = stand.post(&format!("{CART}/instantiate"), &json!({"latest": true, "force": true})).await;
    assert_eq!((asked.status, fields(&asked)), (422, expected.map(str::to_owned).to_vec()));
    assert_eq!(stand.get("/v1/generateDeploymentConfigs/shop:none").await.status, 404, "G1");
}

#[tokio::test(start_paused = true)]
async fn a_version_is_asked_for_in_one_call() {
    let mut stand = stand().await;
    let nothing = ask(&mut stand, "instantiate", &json!({"name": "cart", "latest": true})).await;
    assert_eq!((nothing.status, nothing.text.as_str()), (204, ""), "I2");
    let forced = ask(&mut stand, "instantiate", &json!({"latest": true, "force": true, "by": "ann"})).await;
    assert_eq!((forced.status, &forced.json()["deployment"]["name"]), (200, &json!("cart-2")), "I3: {forced:?}");
    assert_eq!(forced.json()["deployment"]["details"]["causes"], json!([{"type": "Manual", "by": "administrator (ann)"}]));
    let again = ask(&mut stand, "instantiate", &json!({"force": true})).await;
    assert_eq!((again.status, again.problem().contains("#2 is already in progress (New)")), (409, true), "I4: {again:?}");
    deploy(&mut stand, 2, 1).await;
    let followed = ask(&mut stand, "instantiate", &json!({"force": true, "image": image(9)})).await;
    let told = followed.problem().contains("`suspendTriggers`") && followed.problem().contains("roll back");
    assert_eq!((followed.status, told), (409, true), "its tag's image would be deployed again: {followed:?}");
    let both = json!({"force": true, "image": image(9), "suspendTriggers": true, "resumeTriggers": true});
    assert_eq!(fields(&ask(&mut stand, "instantiate", &both).await), ["suspendTriggers"]);
    let other = ask(&mut stand, "instantiate", &json!({"force": true, "image": image(9), "suspendTriggers": true})).await;
    assert_eq!(other.json()["deployment"]["images"]["web"], json!(image(9)), "I5: {other:?}");

    ask(&mut stand, "pause", &json!({"by": "ann", "message": "freeze"})).await;
    let paused = ask(&mut stand, "instantiate", &json!({"force": true})).await;
    assert_eq!((paused.status, fields(&paused)), (422, vec!["spec.paused".to_owned()]), "P3: {paused:?}");
    assert!(paused.problem().contains("cannot deploy a paused deployment config"), "{paused:?}");
    let mut object = stand.get(CART).await.json();
    object["status"]["latestVersion"] = json!(4);
    assert_eq!(fields(&stand.put(CART, &object).await), ["spec.paused"]);
    let wrong = ask(&mut stand, "instantiate", &json!({"kind": "X", "name": "web", "excludeTriggers": ["Y"]})).await;
    assert_eq!((wrong.status, fields(&wrong)), (422, ["kind", "name", "excludeTriggers[0]"].map(str::to_owned).to_vec()));
    assert_eq!(ask(&mut stand, "instantiate", &json!({"forced": true})).await.status, 400);
}

#[tokio::test(start_paused = true)]
async fn images_that_are_not_followed_are_no_change_unless_it_is_forced() {
    let mut stand = stand().await;
    stand.manifests(&manifest("cart", "a", false)).await;
    push(&mut stand, 2).await;
    assert_eq!(ask(&mut stand, "instantiate", &json!({"latest": true})).await.status, 204);
    let kept = ask(&mut stand, "instantiate", &json!({"force": true, "latest": true, "excludeTriggers": ["ImageChange"]})).await;
    assert_eq!(kept.json()["deployment"]["images"]["web"], json!(image(1)), "{kept:?}");
    deploy(&mut stand, 2, 0).await;
    let forced = ask(&mut stand, "instantiate", &json!({"force": true, "latest": true})).await;
    assert_eq!(forced.json()["deployment"]["images"]["web"], json!(image(2)), "T11: {forced:?}");
}

#[tokio::test(start_paused = true)]
async fn a_deployment_is_paused_cancelled_and_retried() {
    let mut stand = stand().await;
    let idle = ask(&mut stand, "cancel", &json!({})).await;
    assert_eq!(idle.status, 200);
    assert!(idle.json()["nothing"].as_str().unwrap().starts_with("No rollout is in progress (latest rollout #1 Complete"), "X4");
    let retried = ask(&mut stand, "retry", &json!({})).await;
    assert_eq!((retried.status, retried.problem().contains("only failed deployments can be retried")), (409, true), "Y2");
    assert_eq!(ask(&mut stand, "proceed", &json!({})).await.status, 409);

    push(&mut stand, 2).await;
    let cancelled = ask(&mut stand, "cancel", &json!({"by": "ann"})).await;
    let deployment = &cancelled.json()["deployment"];
    assert_eq!((&deployment["status"], &deployment["reason"]), (&json!("Failed"), &json!("Cancelled")), "X1: {cancelled:?}");
    assert_eq!(status(&stand).await["activeVersion"], 1, "S12");
    let retried = ask(&mut stand, "retry", &json!({})).await.json();
    assert_eq!((&retried["deployment"]["status"], &retried["deployment"]["attempt"]), (&json!("New"), &json!(2)), "Y1");

    assert_eq!(ask(&mut stand, "pause", &json!({"by": "ann"})).await.status, 200);
    assert_eq!(status(&stand).await["paused"]["by"], "administrator (ann)");
    assert_eq!(status(&stand).await["latest"]["desired"], "pause");
    for (command, told) in [("cancel", "unable to cancel paused deployment shop/cart"), ("retry", "unable to retry paused")] {
        let refused = ask(&mut stand, command, &json!({})).await;
        assert_eq!((refused.status, refused.problem().contains(told)), (409, true), "P3: {refused:?}");
    }
    assert_eq!(ask(&mut stand, "resume", &json!({})).await.status, 200);
    assert_eq!(status(&stand).await["paused"], Value::Null);
    assert_eq!(ask(&mut stand, "explode", &json!({})).await.status, 404);

    let audit = stand.get(&format!("{CART}/audit")).await.json();
    let said: Vec<&Value> = audit["items"].as_array().unwrap().iter().map(|entry| &entry["what"]).collect();
    assert_eq!(said, ["resume", "pause", "retry", "cancel"]);
    let history = stand.get(&format!("{CART}/history")).await.json();
    let line = |one: &Value| format!("{} {} {}", one["name"], one["attempt"], one["status"]);
    let lines: Vec<String> = history["items"].as_array().unwrap().iter().map(line).collect();
    assert_eq!(lines, ["\"cart-2\" 2 \"New\"", "\"cart-2\" 1 \"Failed\"", "\"cart-1\" 1 \"Complete\""]);
}

#[tokio::test(start_paused = true)]
async fn suspended_triggers_keep_their_setting_and_say_that_they_do_not_fire() {
    let mut stand = stand().await;
    assert_eq!(ask(&mut stand, "triggers/suspend", &json!({"by": "ann", "message": "audit"})).await.status, 200);
    push(&mut stand, 2).await;
    let suspended = status(&stand).await;
    assert_eq!((&suspended["latestVersion"], &suspended["reason"]), (&json!(1), &json!("TriggersSuspended")));
    let trigger = &suspended["triggers"][1];
    assert_eq!((&trigger["automatic"], &trigger["effectiveAutomatic"]), (&json!(true), &json!(false)));
    assert_eq!(trigger["why"], "triggers are suspended by administrator (ann): audit");
    assert_eq!(ask(&mut stand, "triggers/resume", &json!({})).await.status, 200);
    settle(&mut stand).await;
    assert_eq!(status(&stand).await["latestVersion"], 2);
    assert_eq!(ask(&mut stand, "triggers/explode", &json!({})).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_request_cuts_one_version() {
    let mut stand = stand().await;
    for _ in 0..2 {
        let request =
            Request::post(format!("{CART}/instantiate")).header("x-token", TOKEN).header("content-type", "application/json");
        let request = request.header("idempotency-key", "k").body(Body::from(r#"{"force": true}"#)).unwrap();
        let answer = stand.while_working(request).await;
        assert_eq!((answer.status, &answer.json()["deployment"]["version"]), (200, &json!(2)), "{answer:?}");
        stand.work().await;
        if status(&stand).await["latest"]["status"] == "New" {
            deploy(&mut stand, 2, 0).await;
        }
    }
    assert_eq!(status(&stand).await["latestVersion"], 2);
}

#[tokio::test(start_paused = true)]
async fn the_whole_installations_history_is_listed_by_time() {
    let mut stand = stand().await;
    for n in 2..6 {
        push(&mut stand, n).await;
        if n == 4 {
            stand.world.pass(Span::minutes(60 * 60));
            stand.work().await;
        }
        let failed = status(&stand).await["latest"]["status"] == "Failed";
        if !failed {
            deploy(&mut stand, n, i64::from(n == 3)).await;
        }
    }
    let names = |page: &Value| -> Vec<String> {
        page["items"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    let since = "/v1/deployments?since=2026-11-20T00:00:00Z";
    for (order, expected) in [("", [1, 2, 3, 4, 5]), ("&order=newest", [5, 4, 3, 2, 1])] {
        let (mut all, mut key) = (vec![], "0".to_owned());
        loop {
            let page = stand.get(&format!("{since}{order}&pageSize=2&nextPageKey={}", key.replace('#', "%23"))).await.json();
            all.extend(names(&page));
            key = page["nextPageKey"].as_str().unwrap().to_owned();
            if key == "0" {
                break;
            }
        }
        assert_eq!(all, expected.map(|n| format!("cart-{n}")), "{order}");
    }
    assert_eq!(names(&stand.get(&format!("{since}&order=newest&pageSize=1")).await.json()), ["cart-5"]);
    assert_eq!(names(&stand.get(&format!("{since}&status=Failed")).await.json())[0], "cart-3");
    assert_eq!(names(&stand.get("/v1/deployments").await.json()), ["cart-4", "cart-5"], "by default, of a day");
    for wrong in [
        "order=up",
        "order=newest&status=New",
        "since=yesterday",
        "since=2036-11-20T00:00:00Z",
        "status=Running",
        "status=x",
        "nextPageKey=abc",
    ] {
        assert_eq!(stand.get(&format!("/v1/deployments?{wrong}")).await.status, 400, "{wrong}");
    }
}
