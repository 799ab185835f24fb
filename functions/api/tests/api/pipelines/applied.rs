//! Pipelines as they are applied and read back.

use crate::stand::Stand;
use axum::http::header::{ETAG, LOCATION};
use keelway_domain::time::Span;
use keelway_wire::http::PipelinePlan;
use serde_json::{Value, json};

/// A pipeline over three environments; `promotion` is what stands under `promotion:`.
pub fn manifest(name: &str, promotion: &str) -> String {
    let environment = |name: &str| format!("    - name: {name}\n      targets:\n        - namespace: {name}\n");
    format!(
        "apiVersion: pipelines.weave.works/v1alpha1\nkind: Pipeline\nmetadata:\n  name: {name}\n  namespace: shop\nspec:\n  appRef:\n    \
         apiVersion: helm.toolkit.fluxcd.io/v2\n    kind: HelmRelease\n    name: carts\n  environments:\n{}{}{}  promotion:\n{promotion}",
        environment("dev"),
        environment("staging"),
        environment("prod")
    )
}

/// Promotes by pull requests.
pub const BY_REQUEST: &str = "    strategy:\n      pullRequest:\n        type: gitea\n        url: https://git.test/o/r\n        baseBranch: main\n        \
                              secretRef: {name: git}\n      secretRef: {name: approvals}\n";

/// The same after approval.
pub fn manual(more: &str) -> String {
    format!("    manual: true\n{more}{BY_REQUEST}")
}

/// A stand on which everything runs v1, and dev has just become healthy on v2.
pub async fn stand(promotion: &str) -> Stand {
    let mut stand = Stand::new();
    begin(&mut stand, promotion).await;
    stand
}

pub async fn begin(stand: &mut Stand, promotion: &str) {
    stand.manifests(&manifest("carts", promotion)).await;
    for namespace in ["dev", "staging", "prod"] {
        stand.observe(namespace, "v1/R").await;
    }
    stand.observe("dev", "v2/R").await;
}

pub const CARTS: &str = "/v1/pipelines/shop/carts";

#[tokio::test]
async fn what_is_applied_is_listed_and_read_back() {
    let mut stand = Stand::new();
    let text = manifest("carts", BY_REQUEST);
    let applied = stand.manifests(&text).await;
    assert_eq!(applied["applied"], json!([{"kind": "Pipeline", "name": "carts", "project": "shop", "changed": true}]));
    assert_eq!(stand.manifests(&text).await["applied"][0]["changed"], false);
    stand.manifests(&manifest("orders", BY_REQUEST)).await;

    let list = stand.get("/v1/pipelines?namespace=shop&pageSize=1").await.json();
    assert_eq!((&list["items"][0]["name"], &list["nextPageKey"]), (&json!("carts"), &json!("carts")), "{list}");
    assert_eq!(list["items"][0]["environments"], json!(["dev", "staging", "prod"]));
    let rest = stand.get("/v1/pipelines?namespace=shop&nextPageKey=carts").await.json();
    assert_eq!((&rest["items"][0]["name"], &rest["nextPageKey"]), (&json!("orders"), &json!("0")));
    assert_eq!(stand.get("/v1/pipelines?namespace=default").await.json()["totalCount"], 0);

    let manifest = stand.get("/v1/pipelines/shop/carts/manifest").await;
    assert_eq!((manifest.text.as_str(), manifest.content_type.as_str()), (text.as_str(), "text/yaml; charset=utf-8"));
    assert_eq!(manifest.headers[ETAG].to_str().unwrap().len(), 42);

    assert_eq!(stand.delete(CARTS).await.status, 204);
    stand.work().await;
    for path in [CARTS, "/v1/pipelines/shop/carts/manifest", "/v1/pipelines/shop/carts/explain"] {
        let gone = stand.get(path).await;
        assert_eq!((gone.status, gone.problem().contains("there is orders")), (404, true), "{path}: {gone:?}");
    }
    assert_eq!(stand.delete(CARTS).await.status, 404);
    assert_eq!(stand.get("/v1/pipelines/shop/a%2Fb").await.status, 404);
    assert_eq!(stand.get(&format!("/v1/pipelines/{}/x", "n".repeat(3000))).await.status, 404);
    assert_eq!(stand.get("/v1/pipelines?namespace=No%20name").await.problem().split(':').next(), Some("namespace"));
}

#[tokio::test]
async fn without_a_namespace_the_pipelines_of_all_are_listed_in_pages() {
    let mut stand = Stand::new();
    let mut expected = vec![];
    // More namespaces than one page looks into; one has several pipelines, one has none any more.
    for place in 0..30 {
        let names = if place == 7 { vec!["a", "b", "c"] } else { vec!["carts"] };
        for name in names {
            let namespace = format!("team-{place:02}");
            stand.manifests(&manifest(name, BY_REQUEST).replace("namespace: shop", &format!("namespace: {namespace}"))).await;
            expected.push(format!("{namespace}/{name}"));
        }
    }
    assert_eq!(stand.delete("/v1/pipelines/team-03/carts").await.status, 204);
    expected.retain(|of| of != "team-03/carts");
    for size in [1, 2, 7, 100] {
        let (mut listed, mut key) = (vec![], String::new());
        while key != "0" {
            let page = stand.get(&format!("/v1/pipelines?pageSize={size}&nextPageKey={key}")).await.json();
            let pipelines = page["items"].as_array().unwrap();
            assert!(pipelines.len() <= size, "{page}");
            let of = |one: &Value| format!("{}/{}", one["namespace"].as_str().unwrap(), one["name"].as_str().unwrap());
            listed.extend(pipelines.iter().map(of));
            key = page["nextPageKey"].as_str().unwrap().to_owned();
        }
        assert_eq!(listed, expected, "pages of {size}");
    }
    for key in ["/", "/a", "a/", "a//b"] {
        assert_eq!(stand.get(&format!("/v1/pipelines?nextPageKey={key}")).await.status, 400, "{key}");
    }
}

#[tokio::test]
async fn one_wrong_document_stores_nothing() {
    let mut stand = Stand::new();
    let good = manifest("carts", BY_REQUEST);
    let wrong = manifest("orders", BY_REQUEST).replace("type: gitea", "type: svn").replace("kind: HelmRelease", "knd: x");
    let answer = stand.post_text("/v1/apply", "application/yaml", format!("{good}---\n{wrong}")).await;
    assert_eq!((answer.status, answer.json()["findings"].as_array().unwrap().len() >= 2), (400, true), "{answer:?}");
    let twice = stand.post_text("/v1/apply", "application/yaml", format!("{good}---\n{good}")).await;
    assert!(twice.problem().contains("two documents of kind Pipeline named shop/carts"), "{twice:?}");
    assert_eq!(stand.get("/v1/pipelines?namespace=shop").await.json()["totalCount"], 0);
    let mixed = format!("apiVersion: keelway.dev/v1\nkind: Project\nmetadata: {{name: shop}}\n---\n{good}");
    let kinds: Vec<Value> =
        stand.manifests(&mixed).await["applied"].as_array().unwrap().iter().map(|one| one["kind"].clone()).collect();
    assert_eq!(kinds, ["Project", "Pipeline"]);
}

#[tokio::test]
async fn the_state_tells_each_environment() {
    let mut stand = stand(BY_REQUEST).await;
    let state = stand.get(CARTS).await.json();
    assert_eq!(
        (&state["latestRevision"], &state["run"]["number"], &state["run"]["revision"]),
        (&json!("v2"), &json!(2), &json!("v2"))
    );
    let staging = &state["environments"][1];
    assert_eq!((&staging["strategy"], &staging["manual"]), (&json!("pullRequest"), &json!(false)));
    assert_eq!(staging["targets"][0]["revision"], "v1");
    assert!(staging["targets"][0]["observedAt"].is_string());
    let promotion = &staging["promotion"];
    assert_eq!((&promotion["phase"], &promotion["revision"], &promotion["attempts"]), (&json!("created"), &json!("v2"), &json!(1)));
    assert_eq!(promotion["pullRequest"]["url"], "https://git.test/o/r/pulls/1");
    let branch = promotion["pullRequest"]["branch"].as_str().unwrap();
    assert_eq!(promotion["compareUrl"], format!("https://git.test/o/r/compare/main...{branch}"));
    assert_eq!(state["environments"][2]["promotion"], Value::Null);
    let open = stand.get(&format!("{CARTS}/pull-requests")).await.json();
    assert_eq!(open["pullRequests"].as_array().unwrap().len(), 1);
    let open = &open["pullRequests"][0];
    assert_eq!(
        (&open["environment"], &open["repository"], &open["number"], &open["closing"]),
        (&json!("staging"), &json!("https://git.test/o/r"), &json!(1), &json!(false))
    );
    let listed = stand.get("/v1/pipelines?namespace=shop").await.json();
    assert_eq!((&listed["items"][0]["run"], &listed["items"][0]["revision"]), (&json!(2), &json!("v2")));

    stand.observe("staging", "v2/R").await;
    stand.observe("dev", "v3/R").await;
    let history = stand.get(&format!("{CARTS}/history?pageSize=1")).await.json();
    assert_eq!((&history["items"][0]["revision"], &history["totalCount"]), (&json!("v2"), &json!(1)), "{history}");
    let next = history["nextPageKey"].as_str().unwrap().replace('#', "%23");
    let rest = stand.get(&format!("{CARTS}/history?nextPageKey={next}")).await.json();
    let all = [&history["items"], &rest["items"]].map(|page| page[0]["environment"].as_str().unwrap_or_default().to_owned());
    assert!(all.contains(&"staging".to_owned()) && all.contains(&"prod".to_owned()), "{all:?}");
    assert_eq!(stand.get(&format!("{CARTS}/history?nextPageKey=%00")).await.status, 400);
}

#[tokio::test]
async fn explain_names_the_first_closed_gate_of_each_environment() {
    let windows = "    windows: [{kind: allow, schedule: \"0 9 * * *\", duration: 1h}]\n";
    let mut stand = stand(&manual(windows)).await;
    let explained = |answer: Value| {
        let each = answer["environments"].as_array().unwrap().clone();
        each.iter().map(|one| one["reason"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let path = format!("{CARTS}/explain");
    let answer = stand.get(&path).await.json();
    assert_eq!(answer["environments"][1]["remedy"], "approve v2 for staging, or reject it");
    assert_eq!((&answer["environments"][0]["done"], &answer["revision"]), (&json!(true), &json!("v2")));
    assert_eq!(explained(answer), ["", "ApprovalNeeded", "WaitingForEnvironment"]);
    let waiting = &stand.get(CARTS).await.json()["environments"][1]["waitingApproval"];
    assert_eq!(*waiting, json!({"from": "v1", "revision": "v2", "given": 0, "needed": 1}));

    let approve = format!("{CARTS}/environments/staging/revisions/v2/approval");
    let approved = stand.post_while_working(&approve, &json!({})).await;
    assert_eq!(approved.status, 202, "{approved:?}");
    stand.work().await;
    let answer = stand.get(&path).await.json();
    let opens = answer["environments"][1]["opens"].as_str().unwrap().to_owned();
    assert!(opens.contains("T09:00:00"), "{answer}");
    assert_eq!(explained(answer), ["", "WindowClosed", "WaitingForEnvironment"]);
    assert_eq!(stand.get(CARTS).await.json()["environments"][1]["nextOpening"], json!(opens));

    let suspend =
        stand.post(&format!("{CARTS}/commands"), &json!({"command": "suspend", "by": "ann", "message": "a freeze"})).await;
    assert_eq!(suspend.status, 202);
    stand.work().await;
    let answer = stand.get(&path).await.json();
    assert_eq!(answer["environments"][1]["remedy"], "resume the pipeline");
    assert_eq!(explained(answer), ["", "Suspended", "WaitingForEnvironment"]);
    stand.observe("dev", "v3/N").await;
    assert_eq!(explained(stand.get(&path).await.json())[0], "EnvironmentNotReady");
    stand.world.pass(Span::minutes(60));
    assert!(approved.headers.get(LOCATION).is_none());
}

#[tokio::test]
async fn two_commits_are_compared_at_the_git_host_and_versions_are_not() {
    let (old, new) = ("1".repeat(40), "2".repeat(40));
    let mut stand = Stand::new();
    stand.manifests(&manifest("carts", &manual(""))).await;
    for namespace in ["dev", "staging", "prod"] {
        stand.observe(namespace, &format!("main@sha1:{old}/R")).await;
    }
    stand.observe("dev", &format!("main@sha1:{new}/R")).await;
    let waits = stand.get("/v1/wait").await.json();
    assert_eq!(waits["items"][0]["reason"], "ApprovalNeeded", "{waits}");
    assert_eq!(waits["items"][0]["compareUrl"], format!("https://git.test/o/r/compare/{old}...{new}"));
    stand.observe("dev", "v3/R").await;
    let waits = stand.get("/v1/wait").await.json();
    assert_eq!((&waits["items"][0]["version"], &waits["items"][0]["compareUrl"]), (&json!("v3"), &Value::Null), "{waits}");
}

#[tokio::test]
async fn the_plan_tells_when_environments_are_closed() {
    let windows = "    windows: [{kind: allow, schedule: \"0 9 * * *\", duration: 1h}]\n";
    let stand = stand(&format!("{windows}{BY_REQUEST}")).await;
    let answer = stand.get(&format!("{CARTS}/plan")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let plan: PipelinePlan = serde_json::from_value(answer.json()).unwrap();
    assert_eq!(serde_json::to_value(&plan).unwrap(), answer.json(), "what clients are told to read is what is there");
    let [dev, staging, _] = &plan.environments[..] else { panic!("{plan:?}") };
    assert!(dev.windows.is_empty() && dev.closures.is_empty(), "nothing is promoted into the first one");
    assert_eq!(staging.windows, ["allow 0 9 * * * for 1h UTC"]);
    // It is noon: closed until the next morning, and then from ten o'clock on, each day.
    assert_eq!(staging.closures.len(), 15);
    assert_eq!(staging.closures[0].until.as_deref(), Some("2026-11-21T09:00:00.000Z"));
    assert_eq!(staging.closures[1].from, "2026-11-21T10:00:00.000Z");
    assert_eq!(stand.get("/v1/pipelines/shop/none/plan").await.status, 404);
}
