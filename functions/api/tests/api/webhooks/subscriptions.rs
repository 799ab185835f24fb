//! Webhook subscriptions and the log of their deliveries.

use crate::stand::{Answer, Stand, TOKEN};
use axum::body::Body;
use axum::http::Request as HttpRequest;
use keelway_domain::cause::Cause;
use keelway_domain::webhooks::{Exchange, id};
use keelway_engine::ports::PortError;
use keelway_engine::protocol::Inbox;
use keelway_engine::webhooks::{Address, Limits, Message, Request, Sender, Webhooks};
use keelway_world::at_once::AtOnce;
use serde_json::{Value, json};

pub const SLACK: &str = "apiVersion: keelway.dev/v1\nkind: WebhookSubscription\nmetadata: {name: slack, namespace: shop}\nspec:\n  events: \
                     [sh.keptn.event.approval.triggered]\n  form: slack\n  url: '{{ secrets.url }}'\n  secrets:\n  - {name: url, \
                     secretRef: {name: slack-url}}\n";

/// A receiver that always answers this.
struct Says(u16);

impl Sender for Says {
    async fn send(&self, request: &Request<'_>) -> Result<Exchange, PortError> {
        Ok(Exchange { at: request.now, status: Some(self.0), ms: 7, answer: "sorry".into(), ..Exchange::default() })
    }
}

/// Delivers an event to the subscription, and makes one attempt. Its delivery.
async fn deliver(stand: &Stand, event: &str, status: u16) -> String {
    deliver_to(stand, "slack", event, status).await
}

/// The same to another subscription.
pub async fn deliver_to(stand: &Stand, name: &str, event: &str, status: u16) -> String {
    deliver_in(stand, ("shop", name), event, status).await
}

/// The same in any project.
pub async fn deliver_in(stand: &Stand, (namespace, name): (&str, &str), event: &str, status: u16) -> String {
    let of = Address { namespace: namespace.into(), name: name.into() };
    let engine = Webhooks::with(AtOnce::new(stand.world.worker(3)), Limits::default(), Says(status));
    let json = json!({
        "id": event, "source": "shipyard-controller", "type": "sh.keptn.event.approval.triggered", "shkeptncontext": "c-1",
        "data": {"project": namespace},
    });
    engine.message(&Message::Deliver { to: of, event: json, again: None, unmatched: false }, Cause::default()).await.unwrap();
    let id = id((namespace, name), "shipyard-controller", event, None);
    engine.message(&Message::Wake { to: id, at: stand.world.now() }, Cause::default()).await.unwrap();
    id.to_string()
}

/// The bodies of the messages to the engine.
fn sent(stand: &Stand) -> Vec<Value> {
    let core = stand.world.core();
    let own = core.queue.messages.values().filter(|message| message.engine == "webhooks");
    let all = own.map(|message| serde_json::from_str::<Value>(&message.parcel.text()).unwrap());
    all.filter(|body| body["keelway"] != "wake").collect()
}

#[tokio::test]
async fn a_subscription_says_how_many_deliveries_to_it_wait() {
    let mut stand = Stand::new();
    stand.manifests(SLACK).await;
    stand.manifests(&SLACK.replace("name: slack, n", "name: other, n")).await;
    for (name, event, status) in [("slack", "e-1", 500), ("slack", "e-2", 500), ("slack", "e-3", 200), ("other", "e-1", 500)] {
        deliver_to(&stand, name, event, status).await;
    }
    let waiting = async |name: &str| stand.get(&format!("/v1/webhookSubscriptions/shop/{name}")).await.json()["waiting"].clone();
    assert_eq!((waiting("slack").await, waiting("other").await), (json!(2), json!(1)));
}

#[tokio::test]
async fn the_rule_is_enabled_when_a_subscription_is_applied_also_one_that_is_there() {
    let mut stand = Stand::new();
    for _ in 0..2 {
        stand.world.core().bus.disabled = vec!["webhooks".into(), "services".into()];
        let dry = stand.post_text("/v1/apply?dryRun=true", "application/yaml", SLACK.to_owned()).await;
        assert_eq!((dry.status, stand.world.core().bus.disabled.len()), (200, 2), "a dry run");
        stand.manifests(SLACK).await;
        assert_eq!(stand.world.core().bus.disabled, ["services"]);
    }
    let checks = stand.get("/v1/checks").await.json();
    let names: Vec<&str> = checks["rules"].as_array().unwrap().iter().filter_map(|rule| rule["name"].as_str()).collect();
    assert!(!names.contains(&"webhooks"), "it is disabled where nobody subscribes, which is no fault: {names:?}");
}

#[tokio::test]
async fn a_subscription_is_applied_listed_read_and_deleted() {
    let mut stand = Stand::new();
    let applied = stand.manifests(SLACK).await;
    let expected = json!({"kind": "WebhookSubscription", "name": "slack", "project": "shop", "changed": true});
    assert_eq!(applied["applied"][0], expected);
    assert_eq!(stand.manifests(SLACK).await["applied"][0]["changed"], false);
    let dry =
        stand.post_text("/v1/apply?dryRun=true", "application/yaml", SLACK.replace("slack\n  url", "teams\n  url")).await.json();
    assert_eq!(dry["applied"][0]["changes"], json!([{"field": "spec.form", "was": "slack", "becomes": "teams"}]), "{dry}");

    let one = stand.get("/v1/webhookSubscriptions/shop/slack").await.json();
    assert_eq!((&one["spec"]["body"], &one["spec"]["projects"]), (&json!({"form": "slack"}), &json!(["shop"])));
    assert_eq!((&one["spec"]["secrets"], &one["version"]), (&json!({"url": "slack-url"}), &json!(1)));
    assert_eq!((&one["disabled"], &one["failingSince"]), (&Value::Null, &Value::Null));
    assert_eq!(stand.get("/v1/webhookSubscriptions/shop/slack/manifest").await.text, SLACK);
    stand.manifests(&SLACK.replace("namespace: shop", "namespace: other")).await;
    let names = |list: &Value| -> Vec<String> {
        let all = list["items"].as_array().unwrap();
        all.iter().map(|item| format!("{}/{}", item["namespace"].as_str().unwrap(), item["name"].as_str().unwrap())).collect()
    };
    assert_eq!(names(&stand.get("/v1/webhookSubscriptions").await.json()), ["other/slack", "shop/slack"]);
    assert_eq!(names(&stand.get("/v1/webhookSubscriptions?namespace=shop").await.json()), ["shop/slack"]);
    let first = stand.get("/v1/webhookSubscriptions?pageSize=1").await.json();
    assert_eq!((names(&first), &first["nextPageKey"]), (vec!["other/slack".to_owned()], &json!("other/slack")));
    let next = stand.get("/v1/webhookSubscriptions?pageSize=1&nextPageKey=other/slack").await.json();
    assert_eq!((names(&next), &next["nextPageKey"]), (vec!["shop/slack".to_owned()], &json!("0")));

    let unknown = stand.get("/v1/webhookSubscriptions/shop/slak").await;
    assert_eq!((unknown.status, unknown.problem().contains("did you mean \"slack\"")), (404, true), "{unknown:?}");
    assert_eq!(stand.delete("/v1/webhookSubscriptions/shop/slack").await.status, 204);
    assert_eq!(stand.delete("/v1/webhookSubscriptions/shop/slack").await.status, 404);
}

#[tokio::test]
async fn everything_wrong_with_a_subscription_is_told_at_once() {
    let stand = Stand::new();
    let wrong =
        SLACK.replace("approval.triggered]", "x]\n  sendFinished: true\n  attempts: 11").replace("secrets.url", "secrets.other");
    let refused = stand.post_text("/v1/apply", "application/yaml", wrong).await;
    assert_eq!(refused.status, 400);
    let findings = refused.json()["findings"].as_array().unwrap().clone();
    let mut paths: Vec<&str> = findings.iter().map(|finding| finding["path"].as_str().unwrap()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["spec.attempts", "spec.sendFinished", "spec.url"], "{findings:?}");
}

#[tokio::test]
async fn who_administers_a_project_cannot_take_events_of_others() {
    let mut stand = Stand::new();
    stand.token("shop", &["administer"], &["shop"]).await;
    let all = SLACK.replace("  form:", "  filter: {projects: ['*']}\n  form:");
    let as_shop = stand.like("shop");
    assert_eq!(as_shop.post_text("/v1/apply", "application/yaml", SLACK.into()).await.status, 200);
    let refused = as_shop.post_text("/v1/apply", "application/yaml", all.clone()).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    stand.like("");
    assert_eq!(stand.post_text("/v1/apply", "application/yaml", all).await.status, 200);
}

#[tokio::test]
async fn one_that_is_disabled_says_why_and_is_resumed_by_a_person() {
    let mut stand = Stand::new();
    stand.manifests(SLACK).await;
    let delivery = deliver(&stand, "e-1", 410).await;
    let one = stand.get("/v1/webhookSubscriptions/shop/slack").await.json();
    let disabled = &one["disabled"];
    assert_eq!((&disabled["reason"], &disabled["message"]), (&json!("gone"), &json!("the receiver answered 410 Gone")));
    assert_eq!(disabled["delivery"], json!(delivery));
    let refused = redeliver(&stand, &delivery, "k").await;
    assert_eq!((refused.status, refused.problem().contains("resume it first")), (409, true), "{refused:?}");
    let resumed = stand.post("/v1/webhookSubscriptions/shop/slack/resume", &json!({})).await;
    assert_eq!((resumed.status, &resumed.json()["disabled"]), (200, &Value::Null));
    assert_eq!(stand.post("/v1/webhookSubscriptions/shop/slack/resume", &json!({})).await.status, 200, "it counts once");
    assert_eq!(stand.post("/v1/webhookSubscriptions/shop/other/resume", &json!({})).await.status, 404);
    let audit = stand.get("/v1/audit?action=control").await.json();
    assert_eq!(audit["items"].as_array().map(Vec::len), Some(2), "{audit}");
}

async fn redeliver(stand: &Stand, delivery: &str, key: &str) -> Answer {
    let path = format!("/v1/deliveries/shop/{delivery}/redeliver");
    let request = HttpRequest::post(path).header("x-token", TOKEN).header("idempotency-key", key);
    stand.request(request.body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn deliveries_are_listed_and_delivered_again() {
    let mut stand = Stand::new();
    stand.manifests(SLACK).await;
    let failed = deliver(&stand, "e-1", 500).await;
    stand.world.pass(keelway_domain::time::Span::seconds(1));
    let done = deliver(&stand, "e-2", 200).await;

    let list = stand.get("/v1/deliveries?namespace=shop&webhook=slack").await.json();
    let ids: Vec<&str> = list["items"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [done.as_str(), failed.as_str()], "newest first");
    assert_eq!(stand.get("/v1/deliveries?namespace=shop&webhook=other").await.json()["totalCount"], 0);
    let page = stand.get("/v1/deliveries?namespace=shop&pageSize=1").await.json();
    let key = page["nextPageKey"].as_str().unwrap().replace('#', "%23");
    let next = stand.get(&format!("/v1/deliveries?namespace=shop&pageSize=1&nextPageKey={key}")).await.json();
    assert_eq!((&page["items"][0]["id"], &next["items"][0]["id"]), (&json!(done), &json!(failed)));

    let one = stand.get(&format!("/v1/deliveries/shop/{failed}")).await.json();
    assert_eq!((&one["status"], &one["webhook"]), (&json!("waiting"), &json!("slack")));
    assert_eq!((&one["attempts"][0]["status"], &one["attempts"][0]["answer"]), (&json!(500), &json!("sorry")));
    assert!(one["nextAttempt"].is_string() && one["event"]["data"]["project"] == "shop", "{one}");
    for path in
        [format!("/v1/deliveries/other/{failed}"), "/v1/deliveries/shop/x1".into(), "/v1/deliveries/shop/2222222222222".into()]
    {
        assert_eq!(stand.get(&path).await.status, 404, "{path}");
    }

    let now = redeliver(&stand, &failed, "a").await;
    assert_eq!((now.status, now.json()), (202, json!({"id": failed, "again": false})));
    assert_eq!(sent(&stand), [json!({"keelway": "now", "to": failed, "attempts": 1})]);
    let again = redeliver(&stand, &done, "b").await.json();
    assert_eq!(again["again"], true);
    assert_ne!(again["id"], json!(done));
    let message = sent(&stand).pop().unwrap();
    assert_eq!((&message["keelway"], &message["event"]["id"]), (&json!("deliver"), &json!("e-2")));
    assert_eq!(redeliver(&stand, &done, "b").await.json(), again, "the same request is answered as before");
    assert!(sent(&stand)[1..].iter().all(|other| *other == message), "and asks for the same delivery");
}
