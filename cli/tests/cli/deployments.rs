//! What a person sees and does of deployments: `rollout`, `rollback`, `set triggers`, `diff`, `get`.

use crate::support::deployments::{config, over, show, version};
use crate::support::pipelines::with;
use crate::support::screen::Screen;
use crate::support::{Api, NOW, Running};
use serde_json::{Value, json};

const STATUS: &str = "GET /v1/deploymentConfigs/shop:carts/status";

fn api(latest: Value, change: Value) -> Api {
    let api = Api::start();
    show(&api, &config(latest, change));
    api
}

fn body(api: &Api) -> Value {
    serde_json::from_str(&api.world().asked.last().unwrap().body).unwrap()
}

fn answer(api: &Api, line: &str, status: u16, value: Value) {
    api.world().canned.insert(line.into(), (status, value));
}

#[test]
fn rollout_status_follows_a_version_to_its_end() {
    let api = api(version(2, "New", json!({"desired": "run"})), json!({}));
    let mut running = Running::start(&mut api.keelway(&["rollout", "status", "shop/carts"]));
    running.wait_for("carts-2 waits for a deployer: image change");
    let claimed = json!({"desired": "run", "deployer": "ci"});
    show(&api, &config(version(2, "Pending", claimed.clone()), json!({})));
    running.wait_for("carts-2 is claimed by ci");
    let far = json!({"progress": {"message": "halfway", "targets": {"eu": {"status": "Running", "message": "50 %"}}}});
    show(&api, &config(version(2, "Running", with(claimed, far)), json!({})));
    running.wait_for("carts-2 is running by ci: halfway; eu Running (50 %)");
    show(&api, &config(over(2, "Complete", json!({})), json!({"activeVersion": 2})));
    running.wait_for("carts-2 successfully rolled out by ci");
    assert_eq!(running.ended(), 0);
}

#[test]
fn rollout_status_waits_for_the_version_that_a_change_becomes() {
    let waits = |reason: &str, message: &str| json!({"reason": reason, "message": message, "activeVersion": 2});
    let settling = "a change is about to become a version";
    let api = api(over(2, "Complete", json!({})), waits("Settling", settling));
    let mut running = Running::start(&mut api.keelway(&["rollout", "status", "shop/carts"]));
    running.wait_for(&format!("deployment config \"carts\" waiting: {settling}\n"));
    // Another one was on its way; the next one has no number yet.
    let cancelled = version(3, "Running", json!({"desired": "cancel", "message": "superseded"}));
    show(&api, &config(cancelled, waits("AwaitingCancellation", "the next version waits until the one that runs has ended")));
    running.wait_for("until the one that runs has ended; carts-3 is being cancelled: superseded\n");
    show(&api, &config(version(4, "New", json!({})), json!({})));
    running.wait_for("carts-4 waits for a deployer");
    show(&api, &config(over(4, "Complete", json!({})), json!({"activeVersion": 4})));
    assert_eq!(running.ended(), 0);
    assert!(!running.printed().contains("carts-2"), "{}", running.printed());

    // A change that was taken back becomes none.
    show(&api, &config(over(4, "Complete", json!({})), waits("Settling", settling)));
    let mut running = Running::start(&mut api.keelway(&["rollout", "status", "shop/carts"]));
    running.wait_for(settling);
    show(&api, &config(over(4, "Complete", json!({})), json!({"activeVersion": 4})));
    running.wait_for("carts-4 successfully rolled out by ci");
    assert_eq!(running.ended(), 0);
}

#[test]
fn how_it_ends_is_the_exit_code() {
    let failed = json!({"reason": "DeployerFailed", "message": "the deployer exited with 7: no route"});
    let api = api(over(2, "Failed", failed), json!({}));
    let ran = api.run(&["rollout", "status", "carts", "-p", "shop"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, "carts-2 failed by ci: the deployer exited with 7: no route\n"), "{}", ran.err);
    api.can("GET /v1/deployments/shop:carts-1", over(1, "Complete", json!({})));
    let ran = api.run(&["rollout", "status", "shop/carts", "--revision", "1"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "carts-1 successfully rolled out by ci\n"));
    let waiting = version(3, "New", json!({"desired": "run"}));
    show(&api, &config(waiting, json!({})));
    let ran = api.run(&["rollout", "status", "shop/carts", "--timeout", "300ms"]);
    assert_eq!((ran.code, ran.err.contains("not over after 300ms")), (1, true), "{}", ran.err);
    let none = json!({"latestVersion": 0, "latest": null, "activeVersion": null, "triggers": []});
    show(&api, &config(json!(null), none));
    let ran = api.run(&["rollout", "status", "shop/carts"]);
    let told = "error: deployment config \"carts\" waiting on manual update (use `keelway rollout latest shop/carts`)\n";
    assert_eq!((ran.code, ran.err.as_str()), (1, told));
}

#[test]
fn a_config_without_a_version_waits_for_its_image() {
    let none =
        json!({"latestVersion": 0, "latest": null, "activeVersion": null, "message": "no image recorded for shop/carts:latest"});
    let api = api(json!(null), none);
    let mut running = Running::start(&mut api.keelway(&["rollout", "status", "shop/carts"]));
    running.wait_for("deployment config \"carts\" waiting on image update: no image recorded for shop/carts:latest");
    show(&api, &config(over(1, "Complete", json!({})), json!({})));
    assert_eq!(running.ended(), 0);
}

#[test]
fn states_say_at_a_glance_what_is_deployed_and_what_is_not() {
    let suspended = json!({"by": "ann", "at": NOW, "message": "rollback to carts-1"});
    let states = [
        (over(2, "Complete", json!({})), json!({"activeVersion": 2})),
        (
            over(3, "Failed", json!({"reason": "Cancelled", "message": "cancelled by the user, by ann"})),
            json!({"activeVersion": 1}),
        ),
        (version(2, "Running", json!({"desired": "cancel", "message": "cancelled by the user"})), json!({})),
        (
            version(2, "New", json!({"desired": "pause"})),
            json!({"paused": {"by": "ann", "at": NOW}, "message": "paused by ann: resume it to deploy again"}),
        ),
        (over(4, "Complete", json!({})), json!({"activeVersion": 4, "triggersSuspended": suspended})),
        (over(1, "Failed", json!({"message": "unable to start deployer"})), json!({"activeVersion": null})),
    ];
    let shown: Vec<String> = states
        .into_iter()
        .map(|(latest, change)| {
            let ran = api(latest, change).run(&["rollout", "status", "shop/carts", "--no-watch"]);
            ran.shown(&[])
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n\n"));
}

#[test]
fn the_history_in_lines_and_one_version_with_everything() {
    let api = api(over(3, "Complete", json!({})), json!({}));
    let rollback = json!({
        "details": {"message": "rollback to #1: bad release", "causes": [{"type": "Rollback", "by": "ann", "release": 1, "notes": "bad release"}]},
        "rollbackOf": 1, "exitCode": 0, "progress": {"tail": "one\ntwo\n", "log": "https://ci.example/3"}
    });
    let failed =
        json!({"reason": "DeployerFailed", "message": "the deployer exited with 1: no route", "exitCode": 1, "attempt": 2});
    let all = json!([over(3, "Complete", rollback.clone()), over(2, "Failed", failed), over(1, "Complete", json!({}))]);
    api.can("GET /v1/deploymentConfigs/shop:carts/history", json!({"items": all, "nextPageKey": "0", "now": NOW}));
    api.can("GET /v1/deployments/shop:carts-3", over(3, "Complete", rollback));
    api.can("GET /v1/deployments", json!({"items": all, "nextPageKey": "0", "now": NOW}));
    api.can(
        "GET /v1/deploymentConfigs",
        json!({"items": [config(over(3, "Complete", json!({})), json!({}))], "nextPageKey": "0", "now": NOW}),
    );
    api.can("GET /v1/artifactSources", json!({"items": [{"namespace": "shop", "name": "carts", "spec": {"from": {"ecr": {"name": "shop/carts"}}, "tags": {"latest": "v*"}}}], "nextPageKey": "0"}));
    let mut shown = vec![];
    for words in [
        &["rollout", "history", "shop/carts"][..],
        &["rollout", "history", "shop/carts", "--revision", "3"],
        &["get", "deployments", "--status", "Complete"],
        &["get", "dc", "-p", "shop"],
        &["get", "artifactsources", "-p", "shop"],
        &["set", "triggers", "shop/carts"],
    ] {
        shown.push(format!("{}\n{}", words.join(" "), Screen::start(&mut api.keelway(words), 120, 24).ended().1));
    }
    insta::assert_snapshot!(shown.join("\n\n"));
}

/// What metrics said of a canary, in numbers.
#[test]
fn one_version_shows_what_was_measured() {
    let analysis = json!({
        "from": NOW, "to": NOW, "result": "fail", "message": "live: errors is 4, 2 before, not <=+50% (3)", "failures": 1, "samples": 60, "score": 50,
        "objectives": [
            {"target": "live", "sli": "errors", "result": "fail", "value": 4, "baseline": 2,
                "targets": [{"criteria": "<=+50%", "targetValue": 3, "violated": true}]},
            {"target": "live", "sli": "latency", "result": "fail", "targets": [], "message": "no value"},
        ],
    });
    let api = Api::start();
    api.can("GET /v1/deployments/shop:carts-3", over(3, "Failed", json!({"progress": {"analysis": analysis}})));
    let words = ["rollout", "history", "shop/carts", "--revision", "3"];
    let (_, shown) = Screen::start(&mut api.keelway(&words), 160, 24).ended();
    for line in [
        &format!("analysis   fail, 60 requests, score 50, from {NOW} to {NOW}: live: errors is 4, 2 before, not <=+50% (3)"),
        "objective  live errors is 4, 2 before (+100.0%): fail (<=+50% = 3 missed)",
        "objective  live latency is without a value (no value): fail",
    ] {
        assert!(shown.contains(line), "{line:?} is not in\n{shown}");
    }
}

#[test]
fn a_list_of_configs_tells_what_is_deployed_and_what_has_failed() {
    let image = |n: u64| json!({"web": format!("registry.example/shop/carts@sha256:{n:0<64}")});
    let failed = json!({"reason": "DeployerFailed", "message": "the deployer exited with 7: no route"});
    let drift = json!({"since": NOW, "message": "Drifted: serves Lambda version 3"});
    let configs = json!([
        config(over(3, "Failed", failed), json!({"activeVersion": 2, "activeImages": image(2)})),
        config(version(5, "Running", json!({})), json!({"activeVersion": 4, "activeImages": image(4)})),
        config(
            over(6, "Complete", json!({})),
            json!({"activeVersion": 6, "activeImages": image(6), "drift": drift, "message": "paused by ann"})
        ),
    ]);
    let api = Api::start();
    api.can("GET /v1/deploymentConfigs", json!({"items": configs, "nextPageKey": "0", "now": NOW}));
    let (_, shown) = Screen::start(&mut api.keelway(&["get", "dc", "-p", "shop"]), 160, 24).ended();
    insta::assert_snapshot!(shown, @r"
    NAMESPACE  NAME   DEPLOYED  LATEST  STATUS    AGE  IMAGES        MESSAGE
    shop       carts  #2        #3      Failed    42s  200000000000  #3 (300000000000) failed: DeployerFailed: the deployer exited with 7: no route
    shop       carts  #4        #5      Running   42s  400000000000  #5 (500000000000) is on its way
    shop       carts  #6        #6      Complete  42s  600000000000  Drifted: serves Lambda version 3; paused by ann
    ");
}

#[test]
fn the_newest_deployments_are_listed_first() {
    let api = Api::start();
    let page = |n: u64, next: &str| json!({"items": [over(n, "Complete", json!({}))], "nextPageKey": next, "now": NOW});
    api.can("GET /v1/deployments", page(3, "0"));
    assert_eq!(api.run(&["get", "deployments", "--limit", "1"]).code, 0);
    assert!(api.world().asked.last().unwrap().line.contains("order=newest"));
    assert_eq!(api.run(&["get", "deployments", "--status", "New"]).code, 0);
    assert!(!api.world().asked.last().unwrap().line.contains("order"), "what waits is listed oldest first");
}

#[test]
fn people_steer_a_config() {
    let api = api(over(2, "Complete", json!({})), json!({}));
    let done = |version: Value| json!({"namespace": "shop", "name": "carts", "done": true, "deployment": version});
    let of = |command: &str| format!("POST /v1/deploymentConfigs/shop:carts/{command}");
    answer(&api, &of("instantiate"), 200, done(version(3, "New", json!({"message": "manual change"}))));
    let ran = api.run(&["rollout", "latest", "shop/carts", "--supersede", "--resume-triggers", "-m", "now"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "carts-3: manual change\n"), "{}", ran.err);
    let asked = json!({"latest": true, "force": true, "supersede": true, "resumeTriggers": true, "by": "ada", "message": "now"});
    assert_eq!(body(&api), asked);
    answer(&api, &of("cancel"), 200, done(version(3, "Running", json!({"desired": "cancel"}))));
    assert_eq!(api.run(&["rollout", "cancel", "shop/carts"]).out, "cancelling: carts-3: its deployer has 10 minutes to stop\n");
    let nothing = "No rollout is in progress (latest rollout #2 Complete 5m ago)";
    let next = with(done(version(3, "Running", json!({"desired": "cancel"}))), json!({"follows": "a newer change waits"}));
    answer(&api, &of("cancel"), 200, next);
    assert!(api.run(&["rollout", "cancel", "shop/carts"]).err.contains("a newer change waits"));
    answer(&api, &of("cancel"), 200, json!({"namespace": "shop", "name": "carts", "done": true, "nothing": nothing}));
    let ran = api.run(&["rollout", "cancel", "shop/carts"]);
    assert_eq!((ran.code, ran.out), (0, format!("{nothing}\n")));
    for (command, told) in [
        ("retry", "retried: carts-3\n"),
        ("pause", "paused: shop/carts: nothing new is deployed until `keelway rollout resume shop/carts`\n"),
        ("resume", "resumed: shop/carts\n"),
        ("proceed", "told to go on: carts-3\n"),
    ] {
        answer(&api, &of(command), 200, done(version(3, "New", json!({}))));
        let ran = api.run(&["rollout", command, "shop/carts", "--by", "bob"]);
        assert_eq!((ran.code, ran.out.as_str()), (0, told), "{}", ran.err);
        assert_eq!(body(&api), json!({"by": "bob"}));
    }
    let problem = json!({"title": "invalid", "status": 422, "detail": "spec.paused: cannot deploy a paused deployment config"});
    answer(&api, &of("instantiate"), 422, problem);
    let ran = api.run(&["rollout", "latest", "shop/carts"]);
    assert_eq!((ran.code, ran.err.contains("cannot deploy a paused deployment config")), (1, true), "{}", ran.err);
}

#[test]
fn a_rollback_says_what_it_would_do_and_what_it_did() {
    let api = api(over(3, "Complete", json!({})), json!({}));
    let line = "POST /v1/deploymentConfigs/shop:carts/rollback";
    let changes = json!([
        {"field": "spec.replicas", "was": 5, "becomes": 2}, {"field": "spec.template.spec.containers[web].env[URL].value", "was": "b", "becomes": "a"},
        {"field": "spec.paused", "was": true}
    ]);
    let base = json!({"namespace": "shop", "name": "carts", "resolvedRelease": 1, "reason": "it is the version before the latest", "changes": changes});
    let dry = with(base.clone(), json!({"dryRun": true, "warnings": ["web of the same app keeps \"b\""]}));
    answer(&api, line, 200, dry);
    let first = api.run(&["rollback", "carts", "-p", "shop", "--dry-run"]);
    assert_eq!(body(&api), json!({"dryRun": true, "by": "ada"}));
    answer(&api, line, 200, with(base.clone(), json!({"done": true, "deployment": version(4, "New", json!({}))})));
    let second = api.run(&[
        "rollback",
        "shop/carts",
        "--to",
        "carts-1",
        "--application-only",
        "--allow-failed",
        "--by-steps",
        "--again",
        "-m",
        "bad release",
    ]);
    let asked = json!({"release": 1, "config": false, "allowFailed": true, "bySteps": true, "again": true, "notes": "bad release", "by": "ada"});
    assert_eq!(body(&api), asked);
    let third = api.run(&["rollout", "undo", "shop/carts", "--to", "2"]);
    assert_eq!(body(&api), json!({"release": 2, "config": false, "by": "ada"}));
    let refused = json!({"errors": [{"field": "release", "code": "Conflict", "message": "version 4 is already the latest"}]});
    let results =
        json!([with(base.clone(), json!({"done": true, "deployment": version(4, "New", json!({}))})), with(base, refused)]);
    answer(&api, "POST /v1/rollbacks", 200, json!({"groupId": "g", "results": results}));
    let fourth = api.run(&["rollback", "shop/carts", "web", "-p", "shop", "--config-only", "-m", "Monday"]);
    let rollbacks = json!([{"id": "shop:carts", "application": false}, {"id": "shop:web", "application": false}]);
    assert_eq!(body(&api), json!({"rollbacks": rollbacks, "notes": "Monday", "by": "ada"}));
    let usage = api.run(&["rollback", "shop/carts", "shop/web", "--to", "1"]);
    let other = api.run(&["rollback", "shop/carts", "--to", "web-1"]);
    assert!(other.err.contains("web-1 is no version of shop/carts"), "{}", other.err);
    for word in ["first", "carts-first", "carts-0", "-1"] {
        let unclear = api.run(&["rollback", "shop/carts", &format!("--to={word}")]);
        assert!(unclear.code == 2 && unclear.err.contains("write its number, or CONFIG-N"), "{word}: {}", unclear.err);
    }
    let shown: Vec<String> = [first, second, third, fourth, usage].iter().map(|ran| ran.shown(&[])).collect();
    insta::assert_snapshot!(shown.join("\n\n"));
}

#[test]
fn triggers_are_changed_in_the_config_that_was_read() {
    let api = api(over(2, "Complete", json!({})), json!({}));
    let image = json!({"type": "ImageChange", "imageChangeParams": {"automatic": true, "containerNames": ["web"], "from": {"kind": "ImageStreamTag", "name": "carts:latest"}}});
    let object = json!({
        "apiVersion": "apps.openshift.io/v1", "kind": "DeploymentConfig", "metadata": {"name": "carts", "namespace": "shop", "resourceVersion": "3"},
        "spec": {"triggers": [{"type": "ConfigChange"}, image], "template": {"spec": {"containers": [{"name": "web"}, {"name": "log"}]}}}, "status": {"latestVersion": 2}
    });
    api.can("GET /v1/deploymentConfigs/shop:carts", object.clone());
    api.can("PUT /v1/deploymentConfigs/shop:carts", object);
    let triggers = |words: &[&str]| {
        let words: Vec<&str> = ["set", "triggers", "shop/carts"].iter().chain(words).copied().collect();
        let ran = api.run(&words);
        assert_eq!((ran.code, ran.out.as_str()), (0, "triggers of shop/carts: changed\n"), "{}", ran.err);
        let sent = body(&api);
        assert_eq!((&sent["metadata"]["resourceVersion"], sent.get("status")), (&json!("3"), None));
        sent["spec"]["triggers"].clone()
    };
    assert_eq!(triggers(&["--manual"])[1]["imageChangeParams"]["automatic"], false);
    assert_eq!(triggers(&["--auto", "--from-image", "shop/carts:latest"])[1]["imageChangeParams"]["automatic"], true);
    let added = triggers(&["--from-image", "other:v1", "-c", "log"]);
    let params = json!({"automatic": true, "containerNames": ["log"], "from": {"kind": "ImageStreamTag", "namespace": "shop", "name": "other:v1"}});
    assert_eq!(added[2], json!({"type": "ImageChange", "imageChangeParams": params}));
    assert_eq!(triggers(&["--from-image", "other:v1"])[2]["imageChangeParams"]["containerNames"], json!(["web", "log"]));
    assert_eq!(triggers(&["--remove", "--from-config"]).as_array().unwrap().len(), 1);
    assert_eq!(triggers(&["--remove", "--from-image", "carts:latest"]), json!([{"type": "ConfigChange"}]));
    assert_eq!(triggers(&["--remove-all"]), json!([]));
    for (words, code, told) in [
        (&["--remove", "--from-image", "none:v1"][..], 1, "has no such trigger"),
        (&["--auto", "--from-image", "none"], 2, "is no tag of an artifact source"),
        (&["--suspend", "--resume"], 2, "cannot be used with"),
    ] {
        let ran = api.run(&[&["set", "triggers", "shop/carts"], words].concat());
        assert_eq!((ran.code, ran.err.contains(told)), (code, true), "{}", ran.err);
    }
    answer(
        &api,
        "POST /v1/deploymentConfigs/shop:carts/triggers/resume",
        200,
        json!({"namespace": "shop", "name": "carts", "done": true}),
    );
    assert_eq!(api.run(&["set", "triggers", "shop/carts", "--resume"]).out, "triggers of shop/carts: they fire again\n");
}

#[test]
fn versions_are_compared_field_by_field() {
    let api = Api::start();
    let snapshot = |n: u64, url: &str| {
        let containers = json!([{"name": "web", "image": format!("carts:{n}"), "env": [{"name": "URL", "value": url}]}]);
        json!({"snapshot": {"kind": "DeploymentConfig", "metadata": {"name": "carts"}, "spec": {"template": {"spec": {"containers": containers}}}}})
    };
    for (n, url) in [(3, "a"), (4, "b")] {
        api.can(&format!("GET /v1/deployments/shop:carts-{n}"), over(n, "Complete", snapshot(n, url)));
    }
    let ran = api.run(&["diff", "carts-3", "carts-4", "-p", "shop", "--exit-code"]);
    let expected = "spec.template.spec.containers[web].env[URL].value: \"a\" -> \"b\"\nspec.template.spec.containers[web].image: \"carts:3\" -> \"carts:4\"\n";
    assert_eq!((ran.code, ran.out.as_str()), (1, expected), "{}", ran.err);
    let same = api.run(&["diff", "shop/carts-3", "shop/carts-3"]);
    assert_eq!((same.code, same.out.as_str(), same.err.as_str()), (0, "", "they deploy the same\n"));
    assert_eq!(api.run(&["diff", "carts", "carts-4"]).code, 2);
}

#[test]
fn what_was_applied_is_shown_as_it_was_and_deleted() {
    let api = api(over(2, "Complete", json!({})), json!({}));
    let text = "kind: DeploymentConfig # mine\napiVersion: v1\nmetadata: {name: carts, namespace: shop}\nspec:\n  triggers:\n  - type: ImageChange\n    \
                imageChangeParams: {containerNames: [web], from: {name: 'carts:latest'}}\n  template: {metadata: {labels: {name: carts}}, spec: {containers: [{name: web}]}}\n";
    api.can("GET /v1/deploymentConfigs/shop:carts/manifest", json!(text));
    let params = json!({"lastTriggeredImage": "carts@sha256:2"});
    api.can("GET /v1/deploymentConfigs/shop:carts", json!({"spec": {"triggers": [{"imageChangeParams": params}]}}));
    let shown = text.replace("{containerNames", "{lastTriggeredImage: \"carts@sha256:2\", containerNames");
    assert_eq!(
        api.run(&["get", "dc", "shop/carts", "-o", "yaml"]).out,
        shown,
        "the text as it was applied, and the server's field"
    );
    api.can("DELETE /v1/deploymentConfigs/shop:carts", Value::Null);
    api.can("DELETE /v1/artifactSources/shop/carts", Value::Null);
    assert_eq!(api.run(&["delete", "deploymentconfig", "shop/carts"]).out, "deployment config shop/carts: deleted\n");
    assert_eq!(api.run(&["delete", "artifactsource", "shop/carts"]).out, "artifact source shop/carts: deleted\n");
    assert!(api.lines().iter().all(|line| line != STATUS), "nothing else was asked");
}
