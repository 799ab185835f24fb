//! Projects, services and what else Keptn's command line asks for.

use crate::stand::Stand;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use keelway_domain::time::Span;
use serde_json::{Value, json};

const SHIPYARD: &str = "apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shipyard-anything}
spec:
  stages:
  - name: dev
    sequences: [{name: delivery, tasks: [{name: deployment}]}]
";

fn project(name: &str, shipyard: &str) -> Value {
    let credentials = json!({"remoteURL": "https://example.com/r.git", "user": "u", "https": {"token": "s3cret-token"}});
    json!({"name": name, "shipyard": STANDARD.encode(shipyard), "gitCredentials": credentials})
}

async fn shop() -> Stand {
    let stand = Stand::new();
    let created = stand.post("/v1/project", &project("shop", SHIPYARD)).await;
    assert_eq!(created.status, 201, "{created:?}");
    stand
}

#[tokio::test]
async fn a_project_is_created_updated_and_deleted() {
    let mut stand = shop().await;
    let shown = stand.get("/v1/project/shop").await.json();
    assert_eq!((&shown["shipyard"], &shown["stages"][0]["stageName"]), (&json!(SHIPYARD), &json!("dev")));
    assert_eq!(shown["creationDate"], json!("1795176000000000000"), "nanoseconds");
    let stored: Vec<String> = stand.world.core().table.items().map(|item| format!("{item:?}")).collect();
    assert!(!stored.iter().any(|item| item.contains("s3cret")), "credentials are not stored");

    let twice = stand.post("/v1/project", &project("shop", SHIPYARD)).await;
    assert_eq!((twice.status, twice.problem().contains("exists already")), (409, true), "{twice:?}");
    let more = format!("{SHIPYARD}  - name: prod\n");
    assert_eq!(stand.put("/v1/project", &project("shop", &more)).await.status, 200);
    assert_eq!(stand.get("/v1/project/shop/stage").await.json()["totalCount"], 2);
    let same = stand.put("/v1/project", &json!({"name": "shop", "shipyard": null, "gitCredentials": {"user": "u"}})).await;
    assert_eq!((same.status, &stand.get("/v1/project/shop/stage").await.json()["totalCount"]), (200, &json!(2)));
    assert_eq!(stand.put("/v1/project", &project("shap", SHIPYARD)).await.status, 404);

    stand.trigger("shop", "dev", "delivery", "carts").await;
    let resource =
        json!({"resources": [{"resourceURI": "a", "resourceContent": "eA=="}, {"resourceURI": "b", "resourceContent": "eA=="}]});
    assert_eq!(stand.post("/v1/project/shop/stage/dev/service/carts/resource", &resource).await.status, 201);
    let open = stand.delete("/v1/project/shop").await;
    assert_eq!((open.status, open.problem().contains("delivery of carts in dev (context ")), (409, true), "{open:?}");
    stand.execute("deployment", "pass").await;
    let deleted = stand.delete("/v1/project/shop").await;
    let told = "project shop is deleted, with 1 service, 2 resources, 0 schedules and 0 webhook subscriptions, and is taken from 0 tokens; the history of its sequences stays until it is 90 days old, and what was \
                deployed keeps running";
    assert_eq!((deleted.status, &deleted.json()["message"]), (200, &json!(told)));
    assert_eq!(stand.get("/v1/project/shop").await.status, 404);
    assert_eq!(stand.get("/v1/project").await.json()["projects"], json!([]));
    assert_eq!(stand.delete("/v1/project/shop").await.status, 404);
    let late = stand
        .post(
            "/v1/event",
            &json!({"type": "sh.keptn.event.dev.delivery.triggered", "source": "t",
        "data": {"project": "shop", "stage": "dev", "service": "carts"}}),
        )
        .await;
    assert_eq!(late.status, 404, "{late:?}");

    // Created again, it has nothing of the old one.
    assert_eq!(stand.post("/v1/project", &project("shop", SHIPYARD)).await.status, 201);
    assert_eq!(stand.get("/v1/project/shop/service").await.json()["services"], json!([]));
    assert_eq!(stand.get("/v1/project/shop/resource").await.json()["totalCount"], 1, "the shipyard");
}

#[tokio::test]
async fn what_is_no_project_is_refused() {
    let stand = Stand::new();
    for (body, status, told) in [
        (project("Shop", SHIPYARD), 400, "name: "),
        (json!({"name": "shop", "shipyard": null}), 400, "shipyard: is missing"),
        (json!({"name": "shop", "shipyard": "no base64!"}), 400, "shipyard: is not base64"),
        (project("shop", "kind: Shipyard\n"), 400, "mend what the findings name"),
        (project("shop", &SHIPYARD.replace("0.2.3", "0.1.0")), 400, "mend"),
        (project("shop", &format!("{SHIPYARD}---\n{SHIPYARD}")), 400, "is not one document"),
        (json!({"name": "shop", "shipyard": STANDARD.encode([0xff, 0xfe])}), 400, "is not UTF-8"),
    ] {
        let answer = stand.post("/v1/project", &body).await;
        assert_eq!((answer.status, answer.problem().contains(told)), (status, true), "{told}: {answer:?}");
    }
    assert_eq!(stand.get("/v1/project").await.json()["projects"], json!([]), "nothing is stored");
}

#[tokio::test]
async fn a_project_with_pipelines_or_configs_stays() {
    let mut stand = shop().await;
    stand.manifests("apiVersion: pipelines.weave.works/v1alpha1\nkind: Pipeline\nmetadata: {name: carts, namespace: shop}\nspec:\n  appRef: {apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, name: carts}\n  environments: [{name: dev, targets: [{namespace: dev}]}]\n").await;
    let refused = stand.delete("/v1/project/shop").await;
    assert_eq!((refused.status, refused.problem().contains("its namespace has pipeline shop/carts")), (409, true), "{refused:?}");
}

#[tokio::test]
async fn a_service_is_created_and_deleted() {
    let mut stand = shop().await;
    let create = |name: &'static str| json!({"serviceName": name});
    assert_eq!(stand.post("/v1/project/shop/service", &create("carts")).await.status, 200);
    let twice = stand.post("/v1/project/shop/service", &create("carts")).await;
    assert_eq!((twice.status, twice.problem()), (409, "service carts exists in project shop already".into()));
    assert_eq!(stand.post("/v1/project/shop/service", &create("-")).await.status, 400);
    assert_eq!(stand.post("/v1/project/shap/service", &create("carts")).await.status, 404);
    let listed = stand.get("/v1/project/shop/stage/dev/service").await.json();
    assert_eq!(listed["services"], json!([{"serviceName": "carts", "creationDate": "1795176000000000000"}]));

    assert_eq!(stand.post("/v1/project/shop/service", &create("other")).await.status, 200);
    stand.trigger("shop", "dev", "delivery", "carts").await;
    let open = stand.delete("/v1/project/shop/service/carts").await;
    assert_eq!(
        (open.status, open.problem().contains("service carts cannot be deleted: delivery of carts")),
        (409, true),
        "{open:?}"
    );
    let other = stand.delete("/v1/project/shop/service/other").await;
    assert_eq!((other.status, other.json()["message"].as_str().unwrap().contains("with 0 resources")), (200, true), "{other:?}");
    let unknown = stand.delete("/v1/project/shop/service/cart").await;
    assert_eq!((unknown.status, unknown.problem().contains("did you mean \"carts\"?")), (404, true), "{unknown:?}");

    stand.execute("deployment", "pass").await;
    let resource = json!({"resources": [{"resourceURI": "a", "resourceContent": "eA=="}]});
    assert_eq!(stand.post("/v1/project/shop/stage/dev/service/carts/resource", &resource).await.status, 201);
    let deleted = stand.delete("/v1/project/shop/service/carts").await;
    assert!(deleted.json()["message"].as_str().unwrap().contains("with 1 resource;"), "{deleted:?}");
    assert_eq!(stand.get("/v1/project/shop/stage/dev/resource/carts%2Fa").await.status, 404);
    assert_eq!(stand.get("/v1/project/shop/service").await.json()["totalCount"], 0);
}

#[tokio::test]
async fn refusals_have_what_keptns_clients_read() {
    let stand = Stand::new();
    let unknown = stand.get("/v1/project/shop").await;
    assert_eq!((&unknown.json()["code"], unknown.json()["message"].as_str()), (&json!(404), Some(unknown.problem().as_str())));
    let findings = stand.post("/v1/project", &project("shop", "kind: Shipyard\n")).await.json();
    let first = findings["findings"][0]["message"].as_str().unwrap();
    assert!(findings["message"].as_str().unwrap().contains(first), "{findings}");
    let method = stand.put("/v1/event", &json!({})).await.json();
    assert_eq!((&method["code"], method["message"].as_str().unwrap().contains("does not take PUT")), (&json!(405), true));
    for answer in [
        stand.post("/v1/secret", &json!({"data": {"a": "b"}})).await,
        stand.get("/v1/secret").await,
        stand.delete("/v1/secret?name=n&scope=s").await,
    ] {
        assert_eq!(
            (answer.status, answer.json()["message"].as_str().unwrap().starts_with("Keelway keeps no secrets")),
            (404, true),
            "{answer:?}"
        );
    }
    assert_eq!(stand.get("/v1/metadata").await.json()["automaticprovisioning"], json!(true));
}

#[tokio::test]
async fn events_are_found_by_id_and_from_the_beginning_of_time() {
    let mut stand = shop().await;
    let context = stand.trigger("shop", "dev", "delivery", "carts").await;
    let path = "/mongodb-datastore/event";
    let all = stand.get(&format!("{path}?keptnContext={context}&project=shop&fromTime=0001-01-01T00:00:00.000Z")).await;
    assert_eq!((all.status, &all.json()["totalCount"]), (200, &json!(3)), "{all:?}");
    let open = stand.open("deployment").await["id"].as_str().unwrap().to_owned();
    for from in ["1970-01-01T00:00:00.000Z", ""] {
        let one = stand.get(&format!("{path}?eventID={open}&project=shop&stage=dev&fromTime={from}")).await.json();
        assert_eq!((one["events"].as_array().unwrap().len(), &one["events"][0]["id"]), (1, &json!(open)), "{one}");
    }
    let none = stand.get(&format!("{path}?project=shop&beforeTime=1970-01-01T00:00:00.000Z")).await.json();
    assert_eq!((&none["events"], &none["nextPageKey"]), (&json!([]), &json!("0")));
    assert_eq!(stand.get(&format!("{path}?project=shop&fromTime=yesterday")).await.status, 400);
}

#[tokio::test]
async fn who_configures_monitoring_need_not_wait_for_nobody() {
    let stand = shop().await;
    let sent = stand
        .post(
            "/v1/event",
            &json!({"type": "sh.keptn.event.monitoring.configure", "source": "cli",
        "data": {"type": "prometheus", "project": "shop", "service": "carts"}}),
        )
        .await;
    assert_eq!(sent.status, 200, "{sent:?}");
    let context = sent.json()["keptnContext"].as_str().unwrap().to_owned();
    let path = format!("/mongodb-datastore/event?keptnContext={context}&type=sh.keptn.event.configure-monitoring.finished");
    let told = stand.get(&path).await.json();
    assert!(told["events"][0]["data"]["message"].as_str().unwrap().starts_with("nothing was configured"), "{told}");
    assert_eq!(stand.get(&format!("/v1/event?keptnContext={context}")).await.json()["events"], json!([]), "it is in no history");
    let listens = SHIPYARD.replace("name: delivery,", "name: configure, triggeredOn: [{event: monitoring.configure}],");
    assert_eq!(stand.post("/v1/project", &project("blog", &listens)).await.status, 201);
    assert_eq!(stand.get(&path).await.json()["events"], json!([]), "somebody may answer");
}

#[tokio::test]
async fn polls_ask_for_the_project_once_a_minute() {
    let stand = shop().await;
    let path = "/v1/event/triggered/sh.keptn.event.deployment.triggered?project=shop";
    let poll = async || {
        let before = stand.world.core().request_count();
        assert_eq!(stand.get(path).await.status, 200);
        stand.world.core().request_count() - before
    };
    assert!(poll().await > 1);
    for _ in 0..30 {
        stand.world.pass(Span::seconds(1));
        assert_eq!(poll().await, 1, "one query of the index");
    }
    stand.world.pass(Span::seconds(31));
    assert!(poll().await > 1);
}
