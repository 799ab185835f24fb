//! Dead letters, and input that could not be used.

use crate::stand::Stand;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::protocol::dead_letter::{self, DeadLetter, Redriven};
use keelway_engine::protocol::invalid;
use keelway_world::queue::Parcel;
use serde_json::{Value, json};

const BODY: &str = r#"{"keelway":"evaluate"}"#;

async fn stored(stand: &Stand, n: i64, body: &str) -> String {
    let sent = Timestamp(1_795_172_266_000 + n);
    let letter = DeadLetter {
        engine: "promotions".into(),
        queue: "shop-promotions".into(),
        message_id: format!("m-{n}"),
        sent,
        body: body.to_owned(),
        receives: 10,
        reason: None,
    };
    dead_letter::store(&stand.world.worker(7), &letter).await.unwrap();
    format!("{}-m-{n}", sent.0)
}

fn redriven(stand: &Stand) -> Vec<Redriven> {
    let core = stand.world.core();
    let own = |parcel: &Parcel| match parcel {
        Parcel::Own(text) => Redriven::parse(text),
        Parcel::Event(_) | Parcel::Invalid { .. } => None,
    };
    core.queue.messages.values().filter_map(|message| own(&message.parcel)).collect()
}

#[tokio::test]
async fn an_event_goes_around_and_is_known_to_have_arrived() {
    let mut stand = Stand::new();
    let sent = stand.post("/v1/checks", &Value::Null).await;
    assert_eq!(sent.status, 202, "{sent:?}");
    let sent = sent.json();
    let path = format!("/v1/checks/{}", sent["id"].as_str().unwrap());
    assert_eq!(stand.get(&path).await.json(), json!({"id": sent["id"]}));
    stand.work().await;
    assert_eq!(stand.get(&path).await.json(), json!({"id": sent["id"], "arrivedAt": sent["sentAt"]}));
    let refused = stand.get("/v1/checks/mine").await;
    assert_eq!(refused.status, 400);
    assert!(refused.problem().contains("id: \"mine\" is not the id that POST /v1/checks answered"), "{refused:?}");
}

#[tokio::test]
async fn disabled_rules_and_the_limits_are_told() {
    let stand = Stand::new();
    stand.world.core().bus.disabled.push("services".into());
    let told = stand.get("/v1/checks").await.json();
    let state = |name: &str| told["rules"].as_array().unwrap().iter().find(|rule| rule["name"] == name).unwrap()["state"].clone();
    assert_eq!(
        (state("services"), state("sequences"), told["rules"].as_array().unwrap().len()),
        (json!("disabled"), json!("enabled"), 10)
    );
    let limits =
        json!({"maxEventBytes": 245_760, "maxExecutions": 1000, "startDeadline": "10m", "taskTimeout": "1d", "retentionDays": 90});
    assert_eq!(told["limits"], limits);
    assert_eq!(told["now"], "2026-11-20T12:00:00.000Z");
}

#[tokio::test]
async fn dead_letters_are_listed_newest_first_in_pages_and_shown_with_their_message() {
    let stand = Stand::new();
    let empty = stand.get("/v1/dead-letters").await.json();
    assert_eq!((&empty["items"], &empty["nextPageKey"]), (&json!([]), &json!("0")));
    let mut ids = vec![];
    for n in 0..3 {
        ids.push(stored(&stand, n, BODY).await);
    }
    ids.reverse();
    let (mut seen, mut key) = (vec![], String::new());
    for _ in 0..3 {
        let page = stand.get(&format!("/v1/dead-letters?pageSize=1&nextPageKey={key}")).await.json();
        seen.extend(page["items"].as_array().unwrap().iter().map(|letter| letter["id"].as_str().unwrap().to_owned()));
        key = page["nextPageKey"].as_str().unwrap().to_owned();
        assert_eq!(page["items"][0]["body"], Value::Null, "{page}");
    }
    assert_eq!(seen, ids);
    let letter = stand.get(&format!("/v1/dead-letters/{}", ids[0])).await.json();
    let expected = json!({"id": ids[0], "engine": "promotions", "queue": "shop-promotions", "receives": 10, "body": BODY,
        "sentAt": "2026-11-20T10:57:46.002Z", "nextRedrive": "2026-11-20T10:57:46.002Z"});
    assert_eq!(letter, expected);
}

#[tokio::test]
async fn a_letter_is_sent_again_and_stays_or_is_dropped() {
    let stand = Stand::new();
    let id = stored(&stand, 1, BODY).await;
    let path = format!("/v1/dead-letters/{id}");
    assert_eq!(stand.post(&format!("{path}/redrive"), &Value::Null).await.status, 202);
    let sent = redriven(&stand);
    assert_eq!((sent.len(), sent[0].body.as_str(), sent[0].sent), (1, BODY, Timestamp(1_795_172_266_001)));
    // Whoever handles the message deletes the letter.
    assert_eq!(stand.get(&path).await.status, 200);
    dead_letter::handled(&stand.world.worker(7), &sent[0]).await.unwrap();
    let gone = stand.get(&path).await;
    assert_eq!(gone.status, 404);
    assert!(gone.problem().contains("was handled or dropped"), "{gone:?}");

    let id = stored(&stand, 2, BODY).await;
    let path = format!("/v1/dead-letters/{id}");
    assert_eq!(stand.delete(&path).await.status, 204);
    assert_eq!(stand.delete(&path).await.status, 404);
    // The sweep's plan for it finds nothing.
    assert_eq!(dead_letter::redrive(&stand.world.worker(7)).await.map_err(|e| e.to_string()), Ok(2));
    assert_eq!(redriven(&stand).len(), 1);
}

#[tokio::test]
async fn what_cannot_be_sent_or_read_is_refused_with_the_way_out() {
    let stand = Stand::new();
    let id = stored(&stand, 3, &"x".repeat(400 * 1024)).await;
    let cut = stand.post(&format!("/v1/dead-letters/{id}/redrive"), &Value::Null).await;
    assert_eq!(cut.status, 409);
    assert!(cut.problem().contains("send the event anew"), "{cut:?}");
    let letter = stand.get(&format!("/v1/dead-letters/{id}")).await.json();
    assert_eq!((&letter["truncated"], &letter["nextRedrive"]), (&json!(true), &Value::Null));
    for odd in ["x", "1795172266001-", "1795172266001%23m-1"] {
        assert_eq!(stand.get(&format!("/v1/dead-letters/{odd}")).await.status, 404, "{odd}");
        assert_eq!(stand.delete(&format!("/v1/dead-letters/{odd}")).await.status, 404, "{odd}");
    }
    for query in ["nextPageKey=x", "pageSize=x", "page=2"] {
        assert_eq!(stand.get(&format!("/v1/dead-letters?{query}")).await.status, 400, "{query}");
    }
}

#[tokio::test]
async fn input_that_could_not_be_used_is_listed_by_day() {
    let stand = Stand::new();
    let at = Timestamp::parse("2026-11-20T11:00:00Z").unwrap();
    let store = stand.world.worker(7);
    for n in 0..3 {
        let at = at + Span::minutes(n);
        invalid::record(&store, Span::minutes(60), at, "no JSON: send a CloudEvent", &format!("text {n}")).await.unwrap();
    }
    let first = stand.get("/v1/invalid?pageSize=2").await.json();
    assert_eq!((&first["day"], &first["totalCount"]), (&json!("2026-11-20"), &json!(2)));
    let newest = json!({"at": "2026-11-20T11:02:00.000Z", "reason": "no JSON: send a CloudEvent", "text": "text 2"});
    assert_eq!(first["items"][0], newest);
    let key = first["nextPageKey"].as_str().unwrap().replace('#', "%23");
    let rest = stand.get(&format!("/v1/invalid?day=2026-11-20&nextPageKey={key}")).await.json();
    assert_eq!((&rest["items"][0]["text"], &rest["nextPageKey"]), (&json!("text 0"), &json!("0")));
    assert_eq!(stand.get("/v1/invalid?day=2026-11-19").await.json()["items"], json!([]));
    let odd = stand.get("/v1/invalid?day=yesterday").await;
    assert!(odd.status == 400 && odd.problem().contains("write it like 2026-11-22"), "{odd:?}");
    assert_eq!(stand.get("/v1/invalid?nextPageKey=%C3%A4").await.status, 400);
}
