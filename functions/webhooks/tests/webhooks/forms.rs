//! The messages for chats, whole: what people see is reviewed here.

use keelway_webhooks::{slack, teams};
use serde_json::{Value, json};

fn event(ty: &str, data: Value) -> Value {
    json!({"specversion": "1.0", "id": "1", "source": "s", "type": ty, "shkeptncontext": "139a703f-1", "data": data})
}

fn approval() -> Value {
    let data = json!({
        "project": "shop", "stage": "production", "service": "carts", "result": "pass",
        "configurationChange": {"values": {"image": "carts:1.4.0"}}, "approval": {"pass": "manual"},
    });
    event("sh.keptn.event.approval.triggered", data)
}

fn failed() -> Value {
    let data =
        json!({"project": "shop", "stage": "dev", "service": "carts", "result": "fail", "message": "test <b> failed & ended"});
    event("sh.keptn.event.dev.delivery.finished", data)
}

fn not_reached() -> Value {
    let data = json!({
        "project": "shop", "pipeline": "carts", "environment": "prod", "revision": "1.4.0", "run": 7, "attempt": 1,
        "reason": "Transient", "message": "the host is away",
    });
    event("dev.keelway.promotion.failed", data)
}

#[test]
fn slack_is_told_of_an_approval_that_waits() {
    let expected = json!({
        "text": "An approval waits: carts in production",
        "blocks": [
            {"type": "section", "text": {"type": "mrkdwn", "text": ":hourglass_flowing_sand: *An approval waits: carts in production*"}},
            {"type": "section", "fields": [
                {"type": "mrkdwn", "text": "*Project*\nshop"},
                {"type": "mrkdwn", "text": "*Stage*\nproduction"},
                {"type": "mrkdwn", "text": "*Service*\ncarts"},
                {"type": "mrkdwn", "text": "*Result*\npass"},
                {"type": "mrkdwn", "text": "*Image*\ncarts:1.4.0"},
                {"type": "mrkdwn", "text": "*Context*\n139a703f-1"},
            ]},
        ],
    });
    assert_eq!(slack(&approval()), expected);
}

#[test]
fn slack_is_told_of_a_delivery_that_failed() {
    let expected = json!({
        "text": "Delivery failed: carts in dev",
        "blocks": [
            {"type": "section", "text": {"type": "mrkdwn", "text": ":x: *Delivery failed: carts in dev*"}},
            {"type": "section", "text": {"type": "mrkdwn",
                "text": "test &lt;b&gt; failed &amp; ended\nStages that follow on its success are not reached."}},
            {"type": "section", "fields": [
                {"type": "mrkdwn", "text": "*Project*\nshop"},
                {"type": "mrkdwn", "text": "*Stage*\ndev"},
                {"type": "mrkdwn", "text": "*Service*\ncarts"},
                {"type": "mrkdwn", "text": "*Result*\nfail"},
                {"type": "mrkdwn", "text": "*Context*\n139a703f-1"},
            ]},
        ],
    });
    assert_eq!(slack(&failed()), expected);
}

#[test]
fn teams_is_told_of_an_environment_that_is_not_reached() {
    let expected = json!({
        "type": "message",
        "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": null,
            "content": {
                "$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4",
                "body": [
                    {"type": "TextBlock", "text": "prod is not reached: carts 1.4.0 failed", "weight": "Bolder", "size": "Medium",
                        "color": "Attention", "wrap": true},
                    {"type": "TextBlock", "text": "the host is away", "wrap": true},
                    {"type": "FactSet", "facts": [
                        {"title": "Project", "value": "shop"},
                        {"title": "Pipeline", "value": "carts"},
                        {"title": "Environment", "value": "prod"},
                        {"title": "Revision", "value": "1.4.0"},
                        {"title": "Reason", "value": "Transient"},
                        {"title": "Context", "value": "139a703f-1"},
                    ]},
                ],
            },
        }],
    });
    assert_eq!(teams(&not_reached()), expected);
}

/// Whatever an event holds, a chat gets something that it takes.
#[test]
fn every_event_becomes_a_message() {
    let cases = [
        ("sh.keptn.event.dev.delivery.finished", json!({"result": "pass", "stage": "dev"}), "Delivery passed: dev"),
        ("sh.keptn.event.dev.delivery.finished", json!({"result": "warning"}), "Delivery passed with a warning: Keelway"),
        ("sh.keptn.event.test.started", json!({"service": "carts"}), "Test started: carts"),
        (
            "dev.keelway.promotion.awaited",
            json!({"pipeline": "carts", "revision": "v2", "environment": "prod"}),
            "An approval waits: carts v2 into prod",
        ),
        (
            "dev.keelway.promotion.abandoned",
            json!({"pipeline": "carts", "revision": "v2", "environment": "prod"}),
            "prod is not reached: carts v2 was abandoned",
        ),
        ("dev.keelway.webhook.disabled", json!({"webhook": "pager"}), "Webhook pager is disabled"),
        ("dev.keelway.audit", json!({}), "audit"),
        ("anything", Value::Null, "anything"),
    ];
    for (ty, data, title) in cases {
        let event = event(ty, data);
        assert_eq!(slack(&event)["text"], title);
        assert_eq!(teams(&event)["attachments"][0]["content"]["body"][0]["text"], title);
    }
}

/// Slack takes 3,000 characters in a text and 2,000 in a field; Teams takes 28 KB.
#[test]
fn however_long_an_event_is_a_chat_takes_the_message() {
    for filler in ["x", "&", "ä", "😀", "\""] {
        let long = filler.repeat(20_000);
        let data = json!({
            "result": "fail", "message": long, "project": long, "stage": long, "service": long, "pipeline": long, "environment": long,
            "revision": long, "config": long, "reason": long, "configurationChange": {"values": {"image": long}},
        });
        let event = event("sh.keptn.event.dev.delivery.finished", data);
        let message = slack(&event);
        let blocks = message["blocks"].as_array().unwrap();
        let characters = |text: &Value| text.as_str().unwrap().chars().count();
        assert!(characters(&blocks[0]["text"]["text"]) <= 3000 && characters(&blocks[1]["text"]["text"]) <= 3000);
        let fields = blocks[2]["fields"].as_array().unwrap();
        assert!(fields.len() == 10 && fields.iter().all(|field| characters(&field["text"]) <= 2000));
        let card = teams(&event).to_string();
        assert!(card.len() <= 28 * 1024, "{filler}: {}", card.len());
    }
    // An escape is shown whole, or not at all.
    let event = event("sh.keptn.event.dev.delivery.finished", json!({"message": "&".repeat(20_000)}));
    assert!(slack(&event)["blocks"][1]["text"]["text"].as_str().unwrap().ends_with("&amp;"));
}
