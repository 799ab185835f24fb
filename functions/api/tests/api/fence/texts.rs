//! Texts that no name is: too long for a key of the table, or of characters no name has. Clients may send them anywhere.

use crate::stand::Stand;
use serde_json::{Value, json};

const STAGES: &str = "
    - name: dev
      sequences:
        - name: delivery
          tasks: [{name: deployment}]
";

/// Longer than any key of the table may be.
fn long() -> String {
    "x".repeat(3000)
}

async fn stand() -> Stand {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    stand.trigger("shop", "dev", "delivery", "cart").await;
    stand
}

#[tokio::test]
async fn a_service_that_cannot_be_there_is_unknown() {
    let stand = stand().await;
    let answer = stand.get(&format!("/v1/project/shop/stage/dev/service/{}", long())).await;
    assert_eq!(answer.status, 404, "{answer:?}");
    assert!(answer.problem().contains("there is cart"), "{answer:?}");
}

#[tokio::test]
async fn open_triggers_of_names_that_cannot_be_there_are_none() {
    let stand = stand().await;
    let path = "/v1/event/triggered/deployment";
    let long = long();
    for wanted in [format!("stage={long}"), format!("stage=dev&service={long}"), format!("service={long}")] {
        for project in ["", "project=shop&"] {
            let answer = stand.get(&format!("{path}?{project}{wanted}")).await;
            assert_eq!((answer.status, &answer.json()["events"]), (200, &json!([])), "{answer:?}");
            assert_eq!(answer.json()["nextPageKey"], "0");
        }
        assert_eq!(stand.get(&format!("{path}?project=none&{wanted}")).await.status, 404);
    }
    // A name is compared as a whole.
    assert_eq!(stand.get(&format!("{path}?stage=dev%23cart")).await.json()["events"], json!([]));
    assert_eq!(stand.get(&format!("{path}?stage=dev&service=cart")).await.json()["totalCount"], 1);
}

#[tokio::test]
async fn keys_that_no_page_ended_with_are_refused() {
    let stand = stand().await;
    let long = long();
    let wrong = [
        format!("/v1/event/triggered/deployment?nextPageKey=1795000000000~{long}"),
        format!("/v1/event/triggered/deployment?stage=dev&nextPageKey=1795000000000~dev~{long}"),
        format!("/v1/event/triggered/deployment?nextPageKey={long}~"),
        format!("/v1/project/shop/service?nextPageKey={long}"),
        format!("/v1/project/shop/stage/dev/service?nextPageKey={long}"),
        "/v1/project/shop/service?nextPageKey=%F4%8F%BF%BFx".to_owned(),
        format!("/v1/project?nextPageKey={long}"),
        format!("/v1/sequence/shop?nextPageKey={long}"),
        format!("/v1/event?project=shop&nextPageKey={long}"),
    ];
    for path in wrong {
        let answer = stand.get(&path).await;
        assert_eq!(answer.status, 400, "{path}: {answer:?}");
        assert!(answer.problem().starts_with("nextPageKey: ") && answer.problem().len() < 300, "{answer:?}");
    }
}

#[tokio::test]
async fn a_page_size_is_a_number_everywhere() {
    let stand = stand().await;
    for path in [
        "/v1/project",
        "/v1/project/shop",
        "/v1/project/shop/shipyard",
        "/v1/project/shop/service",
        "/v1/project/shop/stage",
        "/v1/project/shop/stage/dev",
        "/v1/project/shop/stage/dev/service",
        "/v1/project/shop/stage/dev/service/cart",
        "/v1/sequence/shop",
        "/v1/event",
        "/v1/event/triggered/deployment",
    ] {
        let answer = stand.get(&format!("{path}?pageSize=abc")).await;
        assert_eq!(answer.status, 400, "{path}: {answer:?}");
        assert_eq!(answer.problem(), "pageSize: \"abc\" is not a number from 1 to 100", "{path}");
    }
}

#[tokio::test]
async fn a_path_is_utf_8() {
    let stand = stand().await;
    for path in [
        "/v1/project/%ff",
        "/v1/project/%ff/environment",
        "/v1/project/%ff/queue",
        "/v1/project/shop/stage/%ff",
        "/v1/sequence/%ff",
        "/v1/event/triggered/%ff",
    ] {
        let answer = stand.get(path).await;
        assert_eq!(answer.status, 400, "{path}");
        assert!(answer.problem().contains("percent-encode its names as UTF-8"), "{path}: {answer:?}");
    }
    let answer = stand.post("/v1/sequence/shop/%ff/control", &json!({"state": "pause"})).await;
    assert_eq!((answer.status, answer.problem().is_empty()), (400, false));
}

#[tokio::test]
async fn whatever_a_client_writes_is_no_error_of_ours() {
    let mut stand = stand().await;
    let texts =
        [long(), "%F4%8F%BF%BF".into(), format!("%F4%8F%BF%BF{}", long()), "a%23b".into(), "%00".into(), "~".into(), "-1".into()];
    let reads = [
        "/v1/project?nextPageKey=@",
        "/v1/project?pageSize=@",
        "/v1/project/@",
        "/v1/project/@/shipyard",
        "/v1/project/@/service",
        "/v1/project/@/stage",
        "/v1/project/shop/service?nextPageKey=@",
        "/v1/project/shop/stage/@",
        "/v1/project/shop/stage/@/service",
        "/v1/project/shop/stage/dev/service?nextPageKey=@",
        "/v1/project/shop/stage/dev/service/@",
        "/v1/sequence/@",
        "/v1/sequence/shop?name=@",
        "/v1/sequence/shop?state=@",
        "/v1/sequence/shop?keptnContext=@",
        "/v1/sequence/shop?fromTime=@",
        "/v1/sequence/shop?nextPageKey=@",
        "/v1/event?project=@",
        "/v1/event?keptnContext=@",
        "/v1/event?project=shop&keptnContext=@",
        "/v1/event?project=shop&stage=@",
        "/v1/event?project=shop&service=@",
        "/v1/event?project=shop&type=@",
        "/v1/event?project=shop&source=@",
        "/v1/event?project=shop&beforeTime=@",
        "/v1/event?project=shop&nextPageKey=@",
        "/v1/event/triggered/@",
        "/v1/event/triggered/deployment?project=@",
        "/v1/event/triggered/deployment?stage=@",
        "/v1/event/triggered/deployment?service=@",
        "/v1/event/triggered/deployment?stage=dev&service=@",
        "/v1/event/triggered/deployment?stage=@&service=@",
        "/v1/event/triggered/deployment?eventID=@",
        "/v1/event/triggered/deployment?nextPageKey=@",
        "/v1/event/triggered/deployment?nextPageKey=1795000000000~@",
        "/v1/event/triggered/deployment?nextPageKey=@~@",
        "/v1/event/triggered/deployment?project=shop&stage=dev&nextPageKey=1795000000000~@",
        "/v1/event/triggered/deployment?unless=@",
        "/v1/event/triggered/deployment?wait=@",
    ];
    for text in &texts {
        for path in reads {
            let answer = stand.get(&path.replace('@', text)).await;
            assert!(answer.status < 500, "{path} with {text:.30}: {answer:?}");
        }
        let written = text.replace("%F4%8F%BF%BF", "\u{10ffff}").replace("%23", "#").replace("%00", "\0");
        for (path, body) in bodies(&written) {
            let answer = stand.post(&path.replace('@', text), &body).await;
            assert!(answer.status < 500, "{path} with {text:.30}: {answer:?}");
        }
    }
    // Nor is it one later, when the engine handles what was taken.
    stand.work().await;
}

/// What is written, the text in each of its places.
fn bodies(text: &str) -> Vec<(&'static str, Value)> {
    let event = |member: &str| {
        let mut event = json!({
            "type": "sh.keptn.event.dev.delivery.triggered", "source": "test",
            "data": {"project": "shop", "stage": "dev", "service": "cart"}
        });
        match member.strip_prefix("data.") {
            Some(member) => event["data"][member] = json!(text),
            None => event[member] = json!(text),
        }
        event
    };
    let members = ["id", "type", "source", "shkeptncontext", "triggeredid", "data.project", "data.stage", "data.service"];
    let control = |state: &str, stage: &str| json!({"state": state, "stage": stage});
    let decision = json!({"decision": "approve", "message": text, "by": text});
    let mut bodies: Vec<(&'static str, Value)> = members.iter().map(|member| ("/v1/event", event(member))).collect();
    bodies.extend([
        ("/v1/sequence/shop/@/control", control("pause", "")),
        ("/v1/sequence/@/c/control", control("pause", "")),
        ("/v1/sequence/shop/c/control", control("pause", text)),
        ("/v1/sequence/shop/c/control", control(text, "")),
        ("/v1/project/shop/approval/@/@", decision.clone()),
        ("/v1/project/@/approval/c/@", decision),
    ]);
    bodies
}
