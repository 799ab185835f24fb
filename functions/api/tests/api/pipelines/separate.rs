//! Whoever triggers something, or set a revision, does not approve it where the manifest asks for somebody else.

use crate::pipelines::applied::{CARTS, begin, manual};
use crate::pipelines::approvals::path;
use crate::stand::{Answer, Stand};
use keelway_domain::event::CloudEvent;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::promotions;
use keelway_engine::sequences::Sequences;
use keelway_wire::cloudevent::{Origin, parse};
use keelway_world::queue::Parcel;
use keelway_world::worker::Worker;
use serde_json::{Value, json};

const STAGES: &str = "
    - name: staging
      sequences: [{name: delivery, tasks: [{name: deployment}]}]
    - name: prod
      sequences:
        - name: delivery
          triggeredOn: [{event: staging.delivery.finished}]
          tasks: [{name: approval, properties: {pass: manual, separate: true}, timeout: 0}, {name: release}]
";

async fn stand() -> Stand {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    for name in ["ann", "bob", "cid"] {
        stand.token(name, &["read", "trigger", "trigger:*", "approve:*", "execute:*"], &["shop"]).await;
    }
    stand
}

fn trigger(stage: &str) -> Value {
    json!({
        "type": format!("sh.keptn.event.{stage}.delivery.triggered"), "source": "test", "specversion": "1.0", "id": "t-1", "shkeptncontext": "c-1",
        "data": {"project": "shop", "stage": stage, "service": "cart"}
    })
}

/// Somebody decides the only open approval.
async fn decide(stand: &mut Stand, who: &str, decision: &str) -> Answer {
    let open = stand.like("").open("approval").await;
    let (context, id) = (open["shkeptncontext"].as_str().unwrap(), open["id"].as_str().unwrap());
    let path = format!("/v1/project/shop/approval/{context}/{id}");
    let answer = stand.like(who).post(&path, &json!({"decision": decision, "by": "somebody else"})).await;
    stand.work().await;
    answer
}

fn is_refused(answer: &Answer, words: &str) -> bool {
    answer.status == 403 && answer.problem().contains("(`separate`)") && answer.problem().contains(words)
}

#[tokio::test]
async fn whoever_triggers_a_delivery_does_not_approve_it() {
    let mut stand = stand().await;
    // A client does not say who it is.
    let mut event = trigger("staging");
    event["keelwayauthors"] = json!("token:bob");
    stand.like("ann").trigger_with(event).await;
    stand.like("bob").execute("deployment", "pass").await;
    let own = decide(&mut stand, "ann", "approve").await;
    assert!(is_refused(&own, "token:ann triggered this"), "{own:?}");
    // The same as an event.
    let open = stand.like("").open("approval").await;
    let event = json!({
        "type": "sh.keptn.event.approval.finished", "source": "chat", "shkeptncontext": open["shkeptncontext"], "triggeredid": open["id"],
        "data": {"project": "shop", "stage": "prod", "service": "cart", "result": "pass", "status": "succeeded", "approval": {"by": "bob"}}
    });
    let own = stand.like("ann").post("/v1/event", &event).await;
    assert!(is_refused(&own, "token:ann triggered this"), "{own:?}");
    assert!([200, 202].contains(&decide(&mut stand, "bob", "approve").await.status));
    assert_eq!(stand.like("").open("release").await["data"]["service"], "cart");
}

#[tokio::test]
async fn whoever_triggers_a_delivery_may_decline_it() {
    let mut stand = stand().await;
    stand.like("ann").trigger_with(trigger("prod")).await;
    assert!([200, 202].contains(&decide(&mut stand, "ann", "decline").await.status));
    assert_eq!(stand.like("").state("c-1").await["executions"][0]["result"], "fail");
}

#[tokio::test]
async fn whoever_repeats_a_delivery_is_its_author_too() {
    let mut stand = stand().await;
    stand.like("ann").trigger_with(trigger("prod")).await;
    decide(&mut stand, "bob", "approve").await;
    stand.like("").execute("release", "fail").await;
    let retry = "/v1/sequence/shop/c-1/retry";
    // Nobody begins behind the approval by themselves.
    for who in ["ann", "bob"] {
        let behind = stand.like(who).post(retry, &json!({})).await;
        assert_eq!((behind.status, behind.problem().contains("begin with the approval")), (403, true), "{behind:?}");
    }
    let again = stand.like("bob").post(retry, &json!({"from": "approval"})).await;
    assert!([200, 202].contains(&again.status), "{again:?}");
    stand.work().await;
    for who in ["ann", "bob"] {
        let own = decide(&mut stand, who, "approve").await;
        assert!(is_refused(&own, &format!("token:{who} triggered this, or repeated it")), "{own:?}");
    }
    assert!([200, 202].contains(&decide(&mut stand, "cid", "approve").await.status));
}

#[tokio::test]
async fn what_nobody_is_known_to_have_triggered_is_approved_by_nobody() {
    let mut stand = stand().await;
    // Over the bus, past the API.
    let event: CloudEvent = parse(&trigger("prod"), Origin::Bus, stand.world.now()).unwrap();
    stand.world.emit::<Sequences<Worker>>(event);
    stand.work().await;
    for who in ["ann", "bob", ""] {
        let refused = decide(&mut stand, who, "approve").await;
        assert!(is_refused(&refused, "is not known"), "{refused:?}");
    }
    assert!([200, 202].contains(&decide(&mut stand, "bob", "decline").await.status));
}

#[tokio::test]
async fn whoever_set_a_revision_does_not_approve_it() {
    let mut stand = Stand::new();
    for name in ["ann", "bob"] {
        stand.token(name, &["read", "trigger", "approve:*"], &[]).await;
    }
    begin(&mut stand, &manual("    approval: {separate: true}\n")).await;
    stand.like("ann").observe("dev", "v3/N").await;
    // Whoever tells the same again has not set it.
    stand.like("bob").observe("dev", "v3/R").await;
    let waiting = stand.get(CARTS).await.json()["environments"][1]["waitingApproval"].clone();
    assert_eq!((&waiting["authors"], &waiting["separate"]), (&json!(["token:ann"]), &json!(true)), "{waiting}");
    let to = path("staging", "v3");
    let own = stand.like("ann").post(&to, &json!({})).await;
    assert_eq!((own.status, own.problem().contains("token:ann set v3")), (409, true), "{own:?}");
    assert_eq!(stand.forge.opened(), Vec::<String>::new());
    assert_eq!(stand.like("bob").post(&to, &json!({})).await.status, 202);
    stand.work().await;
    assert_eq!(stand.forge.opened(), ["staging v3"]);
}

/// A fact about what runs in `dev`, told on the bus by `source`, which says who set it.
fn told(source: &str, kind: &str, revision: &str, by: &str) -> CloudEvent {
    let api = if kind == "HelmRelease" { "helm.toolkit.fluxcd.io/v2" } else { "keelway.dev/v1" };
    let fact = json!({"apiVersion": api, "kind": kind, "name": "carts", "namespace": "dev", "revision": revision, "ready": true});
    let event = json!({
        "specversion": "1.0", "type": "dev.keelway.target.observed", "source": source, "id": format!("{source}-{revision}"),
        "time": "2030-01-01T00:00:00Z", "data": {"facts": [fact], "by": [by]}
    });
    parse(&event, Origin::Bus, Timestamp(1_900_000_000_000)).unwrap()
}

fn tell(stand: &Stand, event: CloudEvent) {
    stand.world.pass(Span::seconds(1));
    stand.world.enqueue(promotions::NAME, Parcel::Event(event));
}

#[tokio::test]
async fn only_the_deployments_engine_says_on_the_bus_who_set_a_revision() {
    for (source, authors) in [("flux", Value::Null), ("keelway-deployments", json!(["token:bob"]))] {
        let mut stand = Stand::new();
        begin(&mut stand, &manual("    approval: {separate: true}\n")).await;
        tell(&stand, told(source, "HelmRelease", "v3", "token:bob"));
        stand.work().await;
        let waiting = stand.get(CARTS).await.json()["environments"][1]["waitingApproval"].clone();
        assert_eq!((&waiting["revision"], &waiting["authors"]), (&json!("v3"), &authors), "{source}: {waiting}");
    }
}

#[tokio::test]
async fn only_the_deployments_engine_tells_what_a_deployment_config_runs() {
    let pipeline = "apiVersion: pipelines.weave.works/v1alpha1\nkind: Pipeline\nmetadata: {name: own, namespace: dev}\nspec:\n  appRef: \
                    {apiVersion: keelway.dev/v1, kind: DeploymentConfig, name: carts}\n  environments: [{name: dev, targets: [{namespace: dev}]}]\n";
    let mut stand = Stand::new();
    stand.manifests(pipeline).await;
    let runs = async |stand: &mut Stand| {
        stand.work().await;
        stand.get("/v1/pipelines/dev/own").await.json()["environments"][0]["targets"][0]["revision"].clone()
    };
    tell(&stand, told("flux", "DeploymentConfig", "v9", "token:bob"));
    assert_eq!(runs(&mut stand).await, Value::Null);
    let fact = json!({"apiVersion": "keelway.dev/v1", "kind": "DeploymentConfig", "name": "carts", "namespace": "dev", "revision": "v9", "ready": true});
    let refused = stand.post("/v1/observations", &fact).await;
    assert_eq!((refused.status, refused.problem().contains("only Keelway tells what it runs")), (400, true), "{refused:?}");
    assert_eq!(runs(&mut stand).await, Value::Null);
    tell(&stand, told("keelway-deployments", "DeploymentConfig", "v2", "token:bob"));
    assert_eq!(runs(&mut stand).await, "v2");
}

#[tokio::test]
async fn the_administrator_approves_nothing_of_its_own_either() {
    let mut stand = Stand::new();
    stand.token("ann", &["read", "approve:*"], &["shop"]).await;
    begin(&mut stand, &manual("    approval: {separate: true}\n")).await;
    let to = path("staging", "v2");
    let own = stand.post(&to, &json!({"by": "ann"})).await;
    assert_eq!((own.status, own.problem().contains("administrator set v2")), (409, true), "{own:?}");
    assert_eq!(stand.like("ann").post(&to, &json!({})).await.status, 202);
    stand.work().await;
    assert_eq!(stand.forge.opened(), ["staging v2"]);
}
