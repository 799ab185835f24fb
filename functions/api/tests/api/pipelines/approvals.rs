//! Approvals of revisions, and commands.

use crate::pipelines::applied::{BY_REQUEST, CARTS, begin, manual, stand};
use crate::stand::{Answer, Stand};
use axum::http::header::{ALLOW, LOCATION};
use keelway_domain::time::Span;
use keelway_engine::sequences::Limits;
use serde_json::{Value, json};
use std::time::Duration;

/// Percent-encodes everything that is not unreserved.
pub fn encoded(text: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

pub fn path(environment: &str, revision: &str) -> String {
    format!("{CARTS}/environments/{environment}/revisions/{}/approval", encoded(revision))
}

async fn decide(stand: &mut Stand, environment: &str, revision: &str, body: Value) -> Answer {
    stand.post_while_working(&path(environment, revision), &body).await
}

/// A stand whose API waits for outcomes.
async fn patient(promotion: &str) -> Stand {
    let mut stand = Stand::with(Limits::default(), Duration::from_secs(60));
    begin(&mut stand, promotion).await;
    stand
}

async fn environment(stand: &Stand, place: usize) -> Value {
    stand.get(CARTS).await.json()["environments"][place].clone()
}

#[tokio::test(start_paused = true)]
async fn an_approval_begins_one_attempt_and_answers_with_its_pull_request() {
    let mut stand = patient(&manual("")).await;
    assert_eq!(stand.forge.opened(), Vec::<String>::new());
    let answer = decide(&mut stand, "staging", "v2", json!({"by": "ann", "message": "as agreed"})).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    assert_eq!(answer.headers[LOCATION], "https://git.test/o/r/pulls/1");
    assert_eq!(
        (&answer.json()["done"], &answer.json()["promotion"]["approvals"][0]["by"]),
        (&json!(true), &json!("administrator (ann)"))
    );
    assert_eq!(environment(&stand, 1).await["waitingApproval"], Value::Null);
    // The same again, by anybody: the same answer, and no second attempt.
    for by in ["ann", "bob"] {
        let again = decide(&mut stand, "staging", "v2", json!({"by": by})).await;
        assert_eq!((again.status, &again.headers[LOCATION]), (201, &answer.headers[LOCATION]));
    }
    assert_eq!(stand.forge.opened(), ["staging v2"]);
}

#[tokio::test(start_paused = true)]
async fn a_revision_of_any_letters_is_approved_percent_encoded() {
    let revision = "feature/x@sha1:abc+1";
    let mut stand = patient(&manual("")).await;
    stand.observe("dev", &format!("{revision}/R")).await;
    assert_eq!(environment(&stand, 1).await["waitingApproval"]["revision"], revision);
    let answer = decide(&mut stand, "staging", revision, json!({})).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    assert_eq!(stand.forge.opened(), [format!("staging {revision}")]);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_awaited_is_told_at_once() {
    let mut stand = patient(&manual("")).await;
    for (environment, revision, status, words) in [
        ("staging", "v1", 422, "it waits for v2"),
        ("staging", "v3", 422, "it waits for v2"),
        ("prod", "v2", 422, "as soon as the environments before it run it"),
        ("dev", "v2", 422, "the first environment"),
        ("qa", "v2", 404, "promotions go into staging, prod"),
    ] {
        for decision in ["approve", "reject", "abandon"] {
            let answer = stand.post(&path(environment, revision), &json!({"decision": decision})).await;
            assert_eq!(answer.status, status, "{environment} {revision} {answer:?}");
            assert!(answer.problem().contains(words), "{environment} {revision} {answer:?}");
        }
    }
    let unknown = stand.post(&path("staging", "v2").replace("carts", "cart"), &json!({})).await;
    assert_eq!((unknown.status, unknown.problem().contains("did you mean \"carts\"")), (404, true), "{unknown:?}");
    let get = stand.get(&path("staging", "v2")).await;
    assert_eq!((get.status, &get.headers[ALLOW]), (405, &"POST".parse().unwrap()));
    for wrong in
        ["/environments/staging/revisions/v2", "/environments/staging/revisions/v2/approval/x", "/environments/staging/approval"]
    {
        assert_eq!(stand.post(&format!("{CARTS}{wrong}"), &json!({})).await.status, 404, "{wrong}");
    }
    for body in [json!({"decision": "maybe"}), json!({"decison": "approve"}), json!({"by": "x".repeat(101)}), json!([])] {
        assert_eq!(stand.post(&path("staging", "v2"), &body).await.status, 400, "{body}");
    }
    assert!(!stand.step().await, "nothing was handed in");
}

#[tokio::test(start_paused = true)]
async fn a_rejected_revision_stays_rejected_until_another_one_comes() {
    let mut stand = patient(&manual("")).await;
    let answer =
        decide(&mut stand, "staging", "v2", json!({"decision": "reject", "by": "ann", "message": "not on a Friday"})).await;
    assert_eq!(answer.status, 204, "{answer:?}");
    assert_eq!(environment(&stand, 1).await["promotion"]["phase"], "rejected");
    assert_eq!(decide(&mut stand, "staging", "v2", json!({"decision": "reject"})).await.status, 204, "the same answer");
    let late = decide(&mut stand, "staging", "v2", json!({})).await;
    assert_eq!((late.status, late.problem().contains("not on a Friday")), (409, true), "{late:?}");
    stand.observe("dev", "v3/R").await;
    assert_eq!(decide(&mut stand, "staging", "v3", json!({})).await.status, 201);
    assert_eq!(stand.forge.opened(), ["staging v3"]);
}

#[tokio::test(start_paused = true)]
async fn a_revision_is_abandoned_in_one_environment_and_its_request_is_closed() {
    let mut stand = patient(BY_REQUEST).await;
    let answer = decide(&mut stand, "staging", "v2", json!({"decision": "abandon"})).await;
    assert_eq!((answer.status, stand.forge.closed()), (204, 1), "{answer:?}");
    assert_eq!(environment(&stand, 1).await["promotion"]["phase"], "abandoned");
}

#[tokio::test(start_paused = true)]
async fn a_quorum_is_of_different_people() {
    let mut stand = patient(&manual("    approval: {quorum: 2, approvers: [ann, bob, eve]}\n")).await;
    for name in ["ann", "bob", "mallory"] {
        stand.token(name, &["read", "approve:staging"], &["shop"]).await;
    }
    // Who approves is known from the token. What is written is a note, and counts for nothing.
    for by in ["ann", "bob"] {
        let first = stand.like("ann").post_while_working(&path("staging", "v2"), &json!({"by": by})).await;
        assert_eq!(first.status, 202, "{first:?}");
        assert_eq!((&first.json()["waitingApproval"]["given"], &first.json()["done"]), (&json!(1), &json!(true)));
    }
    let stranger = stand.like("mallory").post_while_working(&path("staging", "v2"), &json!({"by": "bob"})).await;
    assert_eq!((stranger.status, stranger.problem().contains("token:ann, token:bob, token:eve do")), (409, true));
    assert_eq!(stand.forge.opened(), Vec::<String>::new());
    assert_eq!(stand.like("bob").post_while_working(&path("staging", "v2"), &json!({})).await.status, 201);
    assert_eq!(stand.forge.opened(), ["staging v2"]);
}

#[tokio::test(start_paused = true)]
async fn of_two_who_race_one_wins() {
    for first in ["approve", "reject"] {
        let mut stand = stand(&manual("")).await;
        // Both are handed in before the engine sees either.
        let second = if first == "approve" { "reject" } else { "approve" };
        for decision in [first, second] {
            let answer = stand.post(&path("staging", "v2"), &json!({"decision": decision, "by": decision})).await;
            assert_eq!(answer.status, 202, "{answer:?}");
            assert_eq!(answer.json()["look"], CARTS);
        }
        stand.work().await;
        let phase = environment(&stand, 1).await["promotion"]["phase"].clone();
        let opened = stand.forge.opened().len();
        assert_eq!((phase, opened), if first == "approve" { (json!("created"), 1) } else { (json!("rejected"), 0) });
        let loser = stand.post(&path("staging", "v2"), &json!({"decision": second})).await;
        assert_eq!(loser.status, 409, "{loser:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_approval_does_not_count_for_a_newer_revision_or_run() {
    let mut stand = stand(&manual("")).await;
    assert_eq!(stand.post(&path("staging", "v2"), &json!({})).await.status, 202);
    // Before the engine takes it up, v3 comes, and then v2 again: another run.
    let held: Vec<u64> = stand.world.core().queue.messages.keys().copied().collect();
    for id in &held {
        stand.world.core().queue.messages.get_mut(id).unwrap().in_flight = true;
    }
    stand.observe("dev", "v3/R").await;
    stand.observe("dev", "v2/R").await;
    for id in &held {
        stand.world.core().queue.messages.get_mut(id).unwrap().in_flight = false;
    }
    stand.work().await;
    assert_eq!(stand.forge.opened(), Vec::<String>::new());
    assert_eq!(environment(&stand, 1).await["waitingApproval"]["revision"], "v2");
}

#[tokio::test(start_paused = true)]
async fn the_loser_of_a_race_is_told_while_it_waits() {
    let mut stand = patient(&manual("")).await;
    // The rejection is in the queue; the approval is handed in behind it, and its answer waits for the engine.
    let app = stand.app();
    let reject = tokio::spawn(async move { send(app, &path("staging", "v2"), r#"{"decision": "reject"}"#).await });
    tokio::task::yield_now().await;
    let approve = decide(&mut stand, "staging", "v2", json!({})).await;
    assert_eq!((reject.await.unwrap(), approve.status), (204, 409), "{approve:?}");
    assert_eq!(stand.forge.opened(), Vec::<String>::new());
}

async fn send(app: keelway_api::Served, path: &str, body: &'static str) -> u16 {
    use tower::ServiceExt;
    let request = axum::http::Request::post(path).header("x-token", crate::stand::TOKEN);
    app.oneshot(request.body(axum::body::Body::from(body)).unwrap()).await.unwrap().status().as_u16()
}

#[tokio::test(start_paused = true)]
async fn every_command_is_obeyed() {
    let mut stand = patient(BY_REQUEST).await;
    let commands = format!("{CARTS}/commands");
    let mut steps = vec![];
    for (body, status) in [
        (json!({"command": "abort", "environment": "staging", "by": "ann"}), 200),
        (json!({"command": "abort", "environment": "staging"}), 200),
        (json!({"command": "suspend", "by": "ann", "message": "a freeze"}), 200),
        (json!({"command": "retry", "environment": "staging"}), 200),
        (json!({"command": "retry", "environment": "staging"}), 409),
        (json!({"command": "resume"}), 200),
        (json!({"command": "hold", "environment": "prod"}), 200),
        (json!({"command": "hold", "environment": "prod", "revision": "v0"}), 200),
        (json!({"command": "release", "environment": "prod"}), 200),
        (json!({"command": "abandon", "revision": "v2"}), 200),
        (json!({"command": "abandon", "revision": "v9", "environment": "staging"}), 422),
        (json!({"command": "abort", "environment": "prod"}), 409),
        (json!({"command": "release", "environment": "qa"}), 404),
        (json!({"command": "hold", "environment": "qa"}), 404),
    ] {
        let answer = stand.post_while_working(&commands, &body).await;
        assert_eq!(answer.status, status, "{body} {answer:?}");
        let state = stand.get(CARTS).await.json();
        steps.push(format!(
            "{} {} {}",
            state["environments"][1]["promotion"]["phase"].as_str().unwrap(),
            state["suspended"]["by"].as_str().unwrap_or("-"),
            state["environments"][2]["hold"]["revision"].as_str().unwrap_or("-")
        ));
    }
    let expected = [
        "abandoned - -",
        "abandoned - -",
        "abandoned administrator (ann) -",
        "waiting administrator (ann) -",
        "waiting administrator (ann) -",
        "created - -",
        "created - v1",
        "created - v0",
        "created - -",
        "abandoned - -",
    ];
    assert_eq!(steps[..expected.len()], expected);
    assert_eq!(stand.forge.opened(), ["staging v2", "staging v2"], "the retry made a pull request of its own");
    assert_eq!(stand.get(CARTS).await.json()["abandoned"], json!(["v2"]));
}

#[tokio::test]
async fn every_obeyed_command_is_in_the_history_once() {
    let mut stand = stand(&manual("")).await;
    let commands = format!("{CARTS}/commands");
    let approval = path("staging", "v2");
    for (path, body) in [
        (&commands, json!({"command": "suspend", "by": "ann", "message": "a freeze"})),
        (&commands, json!({"command": "suspend", "by": "bob"})),
        (&commands, json!({"command": "resume"})),
        (&commands, json!({"command": "hold", "environment": "prod", "revision": "v1"})),
        (&commands, json!({"command": "release", "environment": "prod"})),
        (&approval, json!({"by": "ann", "message": "as agreed"})),
        (&commands, json!({"command": "abort", "environment": "staging"})),
        (&commands, json!({"command": "retry", "environment": "staging"})),
        (&approval, json!({"decision": "abandon", "by": "eve"})),
        (&commands, json!({"command": "abort", "environment": "prod"})),
        (&commands, json!({"command": "abandon", "revision": "v9"})),
    ] {
        stand.world.pass(Span::seconds(1));
        stand.post(path, &body).await;
        // A copy of the message counts once.
        let sent: Vec<_> = stand.world.core().queue.messages.values().map(|one| (one.engine.clone(), one.parcel.clone())).collect();
        for (engine, parcel) in sent {
            stand.world.enqueue(&engine, parcel);
        }
        stand.work().await;
    }
    stand.observe("dev", "v3/R").await;
    assert_eq!(stand.post(&path("staging", "v3"), &json!({"decision": "reject", "message": "no"})).await.status, 202);
    stand.work().await;
    let history = stand.get(&format!("{CARTS}/history?pageSize=100")).await.json();
    let expected = [
        "reject staging v3 'administrator' no",
        "abandon - v9 'administrator' -",
        "abandon staging v2 'administrator (eve)' -",
        "retry staging - 'administrator' -",
        "abort staging - 'administrator' -",
        "approve staging v2 'administrator (ann)' as agreed",
        "release prod - 'administrator' -",
        "hold prod v1 'administrator' -",
        "resume - - 'administrator' -",
        "suspend - - 'administrator (ann)' a freeze",
    ];
    assert_eq!(shown(&history), expected, "{history}");
    // The second suspension changed nothing, and the abortion in prod was refused.
    let promotions = history["items"].as_array().unwrap().len();
    assert_eq!((history["totalCount"].as_u64(), promotions > 0), (Some((promotions + expected.len()) as u64), true));
    let (mut paged, mut key) = (vec![], String::new());
    while key != "0" {
        let page = stand.get(&format!("{CARTS}/history?pageSize=3&nextPageKey={}", key.replace('#', "%23"))).await.json();
        paged.extend(shown(&page));
        key = page["nextPageKey"].as_str().unwrap().to_owned();
    }
    assert_eq!(paged, expected);
}

/// The commands of a page of the history.
fn shown(history: &Value) -> Vec<String> {
    let text = |one: &Value, name: &str| one[name].as_str().unwrap_or("-").to_owned();
    let line = |one: &Value| {
        let [command, environment, revision, by, message] =
            ["command", "environment", "revision", "by", "message"].map(|name| text(one, name));
        format!("{command} {environment} {revision} '{by}' {message}")
    };
    history["commands"].as_array().unwrap().iter().map(line).collect()
}

#[tokio::test]
async fn commands_that_make_no_sense_name_the_field() {
    let stand = stand(BY_REQUEST).await;
    for (body, words) in [
        (json!({}), "command: is missing"),
        (json!({"command": "pause"}), "command: \"pause\" is none"),
        (json!({"command": "suspend", "environment": "prod"}), "environment: is not taken by suspend"),
        (json!({"command": "resume", "revision": "v2"}), "revision: is not taken by resume"),
        (json!({"command": "retry"}), "environment: is missing: retry needs it"),
        (json!({"command": "retry", "environment": "prod", "revision": "v2"}), "revision: is not taken by retry"),
        (json!({"command": "hold", "revision": "v2"}), "environment: is missing"),
        (json!({"command": "abandon", "environment": "prod"}), "revision: is missing"),
        (json!({"command": "hold", "environment": "prod", "revision": "v\n"}), "revision: is no revision"),
        (json!({"command": "suspend", "env": "prod"}), "unknown field `env`"),
        (json!({"command": "suspend", "message": "x".repeat(2001)}), "message: has 2001 characters"),
    ] {
        let answer = stand.post(&format!("{CARTS}/commands"), &body).await;
        assert_eq!((answer.status, answer.problem().contains(words)), (400, true), "{body} {answer:?}");
    }
}
