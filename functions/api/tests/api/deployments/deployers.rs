//! Deployers: who claims a version first carries it out, and nobody else reports.

use crate::deployments::versions::{
    CART, SOURCE, ask, begin, claim, deploy, digest, image, manifest, push, say, stand, status, wrapped,
};
use crate::stand::{Answer, Stand, TOKEN};
use axum::body::Body;
use axum::http::Request;
use keelway_domain::deployments::checkpoint::{Checkpoint, Ended, Stage};
use keelway_domain::deployments::{Call, LEASE, Progress, SOURCE as SOURCE_OF_KEELWAY};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::deployments::{Address, Deployments};
use keelway_engine::secrets::Known;
use keelway_engine::sequences::Limits;
use keelway_wire::signature::{Algorithm, Request as Canonical, Signed};
use serde_json::{Value, json};
use std::time::Duration;

const TWO: &str = "/v1/deployments/shop:cart-2";

async fn begun() -> Stand {
    let mut stand = stand().await;
    push(&mut stand, 2).await;
    stand
}

async fn beat(stand: &Stand, token: &str, body: &Value) -> Answer {
    say(stand, &format!("{TWO}/heartbeat"), token, body).await
}

async fn finish(stand: &Stand, token: &str, body: &Value) -> Answer {
    say(stand, &format!("{TWO}/finish"), token, body).await
}

fn token(claimed: &Value) -> String {
    claimed["token"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn the_first_claim_wins_and_gets_what_it_needs() {
    let mut stand = begun().await;
    let open = stand.get("/v1/deployments?status=New").await.json();
    assert_eq!(open["items"][0]["name"], "cart-2", "{open}");
    let claimed = claim(&stand, 2).await;
    assert_eq!((token(&claimed).len(), &claimed["desired"]), (64, &json!("run")));
    assert_eq!((&claimed["deployment"]["attempt"], &claimed["deployment"]["status"]), (&json!(1), &json!("Pending")));
    assert_eq!(claimed["deployment"]["snapshot"]["spec"]["template"]["spec"]["containers"][0]["image"], json!(image(2)));
    assert_eq!((&claimed["from"]["name"], &claimed["from"]["images"]["web"]), (&json!("cart-1"), &json!(image(1))));
    assert!(claimed["deployment"]["deadline"].is_string() && claimed["leaseUntil"].is_string());
    let second = stand.post(&format!("{TWO}/claim"), &json!({"by": "other"})).await;
    assert_eq!((second.status, second.problem()), (409, "deployment cart-2 is already claimed by \"ci\"".to_owned()));
    assert_eq!(stand.get("/v1/deployments?status=New").await.json()["totalCount"], 0);
    let dump = format!("{:?}", stand.world.core().table);
    assert!(!dump.contains(&token(&claimed)), "the token is kept nowhere");
    stand.work().await;
    for (name, status) in [("shop:cart-1", 409), ("shop:cart-3", 404), ("shop:web-1", 404), ("cart", 404)] {
        assert_eq!(stand.post(&format!("/v1/deployments/{name}/claim"), &json!({})).await.status, status, "{name}");
    }
}

/// The engine starts and stops what claims in this name.
#[tokio::test(start_paused = true)]
async fn nobody_claims_in_the_name_of_the_deployers_that_keelway_runs() {
    let stand = begun().await;
    for by in ["keelway-deployments", " Keelway-Deployments "] {
        let answer = stand.post(&format!("{TWO}/claim"), &json!({"by": by, "claim": "run-7"})).await;
        assert_eq!((answer.status, answer.problem().starts_with("by: keelway-deployments is the name")), (400, true), "{answer:?}");
    }
    assert_eq!(status(&stand).await["latest"]["status"], "New");
    let claimed = stand.post(&format!("{TWO}/claim"), &json!({"by": "keelway-deployers", "claim": "run-7"})).await;
    assert_eq!(claimed.status, 200, "any other name is as good as another: {claimed:?}");
}

#[tokio::test(start_paused = true)]
async fn the_same_claim_again_gets_the_work_again_and_the_token_before_counts_no_more() {
    let stand = begun().await;
    let first = stand.post(&format!("{TWO}/claim"), &json!({"by": "ci", "claim": "run-7"})).await.json();
    let header = Request::post(format!("{TWO}/claim")).header("x-token", TOKEN).header("idempotency-key", "run-7");
    let again = stand.request(header.body(Body::empty()).unwrap()).await;
    assert_eq!(again.status, 200, "{again:?}");
    let again = again.json();
    assert_ne!(token(&first), token(&again));
    assert_eq!(beat(&stand, &token(&first), &json!({})).await.status, 401);
    assert_eq!(beat(&stand, &token(&again), &json!({})).await.status, 200);
    for (body, told) in [
        (json!({"lease": "1s"}), "lease"),
        (json!({"lease": "soon"}), "lease"),
        (json!({"claim": "x".repeat(300)}), "claim"),
        (json!({"who": "x"}), "the body"),
    ] {
        let answer = stand.post(&format!("{TWO}/claim"), &body).await;
        assert_eq!((answer.status, answer.problem().starts_with(told)), (400, true), "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn heartbeats_tell_how_far_it_is_and_are_told_what_to_do() {
    let mut stand = begun().await;
    let token = token(&claim(&stand, 2).await);
    let body = json!({
        "running": true, "lease": "90s", "message": "halfway", "targets": {"eu": {"status": "Running", "message": "50 %"}}, "tail": "line",
        "checkpoint": "7", "log": "https://ci.test/7"
    });
    let claimed = status(&stand).await["latest"].clone();
    assert!(claimed["heard"].is_string() && claimed["heard"] == claimed["claimedAt"], "{claimed}");
    stand.world.pass(Span::seconds(20));
    let answer = beat(&stand, &token, &body).await;
    assert_eq!(
        (answer.status, &answer.json()["desired"], &answer.json()["proceeds"]),
        (200, &json!("run"), &json!(0)),
        "{answer:?}"
    );
    stand.work().await;
    let latest = &status(&stand).await["latest"];
    assert_eq!((&latest["status"], &latest["progress"]["message"]), (&json!("Running"), &json!("halfway")));
    let time = |text: &Value| Timestamp::parse(text.as_str().unwrap()).unwrap();
    let heard = time(&latest["heard"]);
    assert_eq!((heard - time(&claimed["heard"]), time(&latest["expected"]) - heard), (Span::seconds(20), Span::seconds(90)));
    assert_eq!(latest["progress"]["targets"]["eu"], json!({"status": "Running", "message": "50 %"}));
    assert_eq!((&latest["progress"]["tail"], &latest["progress"]["checkpoint"]), (&json!("line"), &json!("7")));
    assert_eq!((&latest["share"], &latest["hooks"]), (&json!(null), &json!(null)), "only Keelway's own checkpoints tell them");
    let hooks = [("pre".to_owned(), Ended::Ignored)].into();
    let point = Checkpoint { stage: Stage::Post, share: Some(20), hooks, ..Checkpoint::default() };
    assert_eq!(beat(&stand, &token, &json!({"running": true, "checkpoint": point.text()})).await.status, 200);
    stand.work().await;
    let latest = &status(&stand).await["latest"];
    assert_eq!((&latest["share"], &latest["hooks"]), (&json!(20), &json!({"pre": "ignored", "post": "runs"})));

    ask(&mut stand, "pause", &json!({})).await;
    assert_eq!(beat(&stand, &token, &json!({"running": true})).await.json()["desired"], "pause", "P4");
    ask(&mut stand, "resume", &json!({})).await;
    assert_eq!(ask(&mut stand, "proceed", &json!({})).await.status, 200);
    assert_eq!(beat(&stand, &token, &json!({})).await.json()["proceeds"], 1);
    ask(&mut stand, "cancel", &json!({"by": "ann"})).await;
    assert_eq!(beat(&stand, &token, &json!({})).await.json()["desired"], "cancel");
    let shown = status(&stand).await["latest"].clone();
    assert_eq!((&shown["desired"], &shown["reason"], &shown["status"]), (&json!("cancel"), &json!("Cancelled"), &json!("Running")));
    assert!(shown["heard"].is_string(), "{shown}");
    assert_eq!(finish(&stand, &token, &json!({"exitCode": 143})).await.status, 200);
    stand.work().await;
    let ended = status(&stand).await["latest"].clone();
    assert_eq!(
        (&ended["status"], &ended["reason"], &ended["exitCode"]),
        (&json!("Failed"), &json!("Cancelled"), &json!(143)),
        "X2"
    );
    assert_eq!((&ended["heard"], &ended["expected"]), (&json!(null), &json!(null)), "nobody waits to hear of it");
    for (wrong, told) in [
        (json!({"targets": {"eu": {"status": "Done"}}}), "targets.eu.status"),
        (json!({"percent": 3}), "the body"),
        (json!({"running": "yes"}), "the body"),
    ] {
        let answer = beat(&stand, &token, &wrong).await;
        assert_eq!((answer.status, answer.problem().starts_with(told)), (400, true), "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn exit_codes_are_results() {
    for (body, status_, reason, message) in [
        (json!({"exitCode": 0}), "Complete", "", "image change"),
        (
            json!({"exitCode": 137, "message": "out of memory"}),
            "Failed",
            "DeployerFailed",
            "the deployer exited with 137: out of memory",
        ),
        (json!({"message": "no such image"}), "Failed", "DeployerFailed", "the deployer did not run: no such image"),
    ] {
        let mut stand = begun().await;
        let token = token(&claim(&stand, 2).await);
        assert_eq!(finish(&stand, &token, &body).await.status, 200);
        stand.work().await;
        let latest = status(&stand).await["latest"].clone();
        assert_eq!(
            (&latest["status"], latest["reason"].as_str().unwrap_or_default(), &latest["message"]),
            (&json!(status_), reason, &json!(message)),
            "S2, S3"
        );
        assert_eq!(finish(&stand, &token, &body).await.status, 200, "its answer may have been lost");
    }
}

#[tokio::test(start_paused = true)]
async fn late_reports_are_recorded_and_those_of_strangers_are_not() {
    let mut stand = begun().await;
    let old = token(&claim(&stand, 2).await);
    stand.world.pass(Span::seconds(61));
    stand.work().await;
    let lost = status(&stand).await["latest"].clone();
    assert_eq!((&lost["status"], &lost["reason"]), (&json!("Failed"), &json!("DeployerLost")), "S5");
    let late = finish(&stand, &old, &json!({"exitCode": 0})).await;
    assert_eq!((late.status, late.problem().contains("has ended without this report: Failed")), (409, true), "{late:?}");
    ask(&mut stand, "retry", &json!({})).await;
    let fresh = token(&claim(&stand, 2).await);
    let late = finish(&stand, &old, &json!({"exitCode": 1, "message": "of attempt 1"})).await;
    assert_eq!((late.status, late.problem().contains("not the one of the present attempt")), (409, true), "{late:?}");
    let audit = stand.get(&format!("{CART}/audit")).await.json()["items"].clone();
    let strays = |audit: &Value| audit.as_array().unwrap().iter().filter(|entry| entry["what"] == "stray").count();
    assert_eq!(strays(&audit), 2, "{audit}");

    for stranger in [Some(format!("Bearer {}", "0".repeat(64))), Some("Basic x".into()), Some("Bearer ".into()), None] {
        for path in ["heartbeat", "strategy", "finish"] {
            let request = Request::post(format!("{TWO}/{path}")).header("content-type", "application/json");
            let request = stranger.iter().fold(request, |request, value| request.header("authorization", value));
            let answer = stand
                .request(request.body(Body::from(if path == "strategy" { "{}" } else { r#"{"message": "x"}"# })).unwrap())
                .await;
            assert_eq!((answer.status, answer.problem().contains("header Authorization")), (401, true), "{answer:?}");
        }
    }
    assert_eq!(
        say(&stand, "/v1/deployments/shop:none-1/finish", &fresh, &json!({})).await.status,
        401,
        "nothing is told to strangers"
    );
    assert_eq!(say(&stand, "/v1/deployments/x/finish", &fresh, &json!({})).await.status, 401);
    let after = stand.get(&format!("{CART}/audit")).await.json()["items"].clone();
    assert_eq!(strays(&after), 2, "anybody can send it, so nothing is kept of it");
    assert_eq!(finish(&stand, &fresh, &json!({"exitCode": 0})).await.status, 200);
    stand.work().await;
    assert_eq!(status(&stand).await["latest"]["status"], "Complete");
}

#[tokio::test(start_paused = true)]
async fn what_a_registry_tells_is_signed_with_the_sources_key() {
    let secrets = Known::default().with("shop/registry", r#"{"keys": [{"id": "r", "key": "s3cret"}]}"#);
    let mut stand = Stand::with_secrets(Limits::default(), Duration::from_secs(60), secrets);
    begin(&mut stand).await;
    let send = async |stand: &Stand, path: &str, key: &str, body: &Value, n: u64| {
        let body = body.to_string();
        let canonical =
            Canonical { installation: crate::stand::INSTALLATION, method: "POST", path, query: "", body: body.as_bytes() };
        let signed =
            Signed::new(&canonical, ("r", key.as_bytes()), Algorithm::Sha256, stand.world.now(), &format!("nonce-{n:020}"));
        let request = signed.headers().into_iter().fold(Request::post(path), |request, (name, value)| request.header(name, value));
        stand.request(request.header("content-type", "application/json").body(Body::from(body)).unwrap()).await
    };
    let path = "/v1/artifacts/shop/cart";
    let body = json!({"tag": "latest", "digest": digest(2), "image": "registry.test/shop/cart"});
    stand.world.pass(Span::seconds(1));
    for (path, key) in [(path, "wrong"), ("/v1/artifacts/shop/other", "s3cret"), ("/v1/artifacts/other/cart", "s3cret")] {
        assert_eq!(send(&stand, path, key, &body, 1).await.status, 401, "{path} {key}");
    }
    assert_eq!(send(&stand, path, "s3cret", &body, 1).await.status, 202);
    assert_eq!(send(&stand, path, "s3cret", &body, 1).await.status, 401, "a nonce counts once");
    crate::deployments::versions::settle(&mut stand).await;
    assert_eq!(status(&stand).await["latest"]["images"]["web"], json!(image(2)));
    let older =
        json!({"tag": "latest", "digest": digest(3), "image": "registry.test/shop/cart", "pushedAt": "2026-11-19T00:00:00Z"});
    assert_eq!(send(&stand, path, "s3cret", &older, 2).await.status, 202);
    crate::deployments::versions::settle(&mut stand).await;
    assert_eq!(status(&stand).await["latestVersion"], 2, "an older push changes nothing");

    for (wrong, field) in [
        (json!({"digest": digest(4), "image": "r/c"}), "tag"),
        (json!({"tag": "latest", "digest": "sha256:1", "image": "r/c"}), "digest"),
        (json!({"tag": "latest", "digest": digest(4), "image": "r/c@x"}), "image"),
        (json!({"tag": "latest", "digest": digest(4), "image": "r/c", "pushedAt": "2036-01-01T00:00:00Z"}), "pushedAt"),
    ] {
        let answer = stand.post(path, &wrong).await;
        assert_eq!((answer.status, crate::deployments::versions::fields(&answer)), (422, vec![field.to_owned()]));
    }
    assert_eq!(stand.post("/v1/artifacts/shop/none", &body).await.status, 404, "whoever has a token is told");
    assert_eq!(stand.post(path, &json!({"tag": "latest", "action": "burn"})).await.status, 400);
}

#[tokio::test(start_paused = true)]
async fn without_a_source_nothing_can_be_signed() {
    let mut stand = stand().await;
    deploy_all(&mut stand).await;
    let ecr = SOURCE.replace("webhook: {secret: registry}", "ecr: {repository: shop/cart}");
    stand.manifests(&format!("{ecr}---\n{}", manifest("cart", "a", true))).await;
    let request = Request::post("/v1/artifacts/shop/cart").header("content-type", "application/json");
    assert_eq!(stand.request(request.body(Body::from("{}")).unwrap()).await.status, 401);
}

async fn deploy_all(stand: &mut Stand) {
    push(stand, 2).await;
    deploy(stand, 2, 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_deployer_around_a_strategy_has_keelway_carry_it_out() {
    let mut stand = stand().await;
    stand.manifests(&wrapped("cart", "b")).await;
    crate::deployments::versions::settle(&mut stand).await;
    let mine = token(&claim(&stand, 2).await);
    let carry = async |stand: &Stand, body: Value| say(stand, &format!("{TWO}/strategy"), &mine, &body).await;

    // Keelway is not so far: the answer says so after a while, and asking again changes nothing.
    for _ in 0..2 {
        let answer = carry(&stand, json!({"until": 50})).await;
        assert_eq!(
            (answer.status, answer.json()),
            (200, json!({"state": "running", "until": 50, "message": "", "desired": "run"}))
        );
    }
    stand.work().await;
    // What Keelway's own deployer says.
    let to = Address { namespace: "shop".into(), name: "cart".into() };
    let engine = Deployments::new(stand.world.worker(1), Default::default());
    let claim = Call::Claim { by: SOURCE_OF_KEELWAY.into(), id: 1, token: "its".into(), lease: LEASE };
    let done = |exit: i64, message: &str| Call::End {
        token: "its".into(),
        exit: Some(exit),
        message: message.into(),
        progress: Progress::default(),
    };
    engine.say(&to, 2, &claim).await.unwrap();
    engine.say(&to, 2, &done(0, "50 % of the requests")).await.unwrap();
    for until in [50, 20] {
        let answer = carry(&stand, json!({"until": until})).await.json();
        assert_eq!(answer, json!({"state": "done", "until": 50, "message": "50 % of the requests", "desired": "run"}));
    }
    // The default is all of it.
    assert_eq!(carry(&stand, json!({})).await.json()["until"], 100);
    stand.work().await;
    engine.say(&to, 2, &claim).await.unwrap();
    engine.say(&to, 2, &done(1, "the hook failed")).await.unwrap();
    let answer = carry(&stand, json!({})).await.json();
    assert_eq!((&answer["state"], &answer["message"]), (&json!("failed"), &json!("the hook failed")));

    let wrong = carry(&stand, json!({"until": 101})).await;
    assert_eq!(wrong.status, 400);
    assert!(wrong.problem().contains("101 is no share of the requests in percent: send 0 to 100"), "{wrong:?}");
    assert_eq!(carry(&stand, json!({"until": "half"})).await.status, 400);
    assert_eq!(finish(&stand, &mine, &json!({"exitCode": 1})).await.status, 200);
    stand.work().await;
    let over = carry(&stand, json!({})).await;
    assert_eq!((over.status, over.problem().contains("the deployment has ended: Failed")), (409, true), "{over:?}");
}

#[tokio::test(start_paused = true)]
async fn a_strategy_that_keelway_does_not_know_is_not_carried_out() {
    let stand = begun().await;
    let mine = token(&claim(&stand, 2).await);
    let refused = say(&stand, &format!("{TWO}/strategy"), &mine, &json!({})).await;
    assert_eq!(refused.status, 409);
    assert!(refused.problem().contains("that takes Recreate, Rolling or Canary with customParams, and Lambda aliases as targets"));
}

/// Who deploys is in the audit under the token's name, and the id of a claim is of no use to another token.
#[tokio::test]
async fn a_claim_belongs_to_its_token_and_is_in_the_audit() {
    let mut stand = begun().await;
    for name in ["one", "two"] {
        stand.token(name, &["execute:deployment"], &["shop"]).await;
    }
    let claim = json!({"by": "ann", "claim": "run-7"});
    let of = format!("{TWO}/claim");
    let first = stand.like("one").post(&of, &claim).await;
    assert_eq!(first.status, 200, "{first:?}");
    assert_eq!(stand.like("two").post(&of, &claim).await.status, 409, "knowing the id is not enough");
    assert_eq!(stand.like("one").post(&of, &claim).await.status, 200);
    let audit = stand.like("").get("/v1/audit?action=claim&project=shop").await.json();
    let entry = &audit["items"][0];
    assert_eq!((&entry["token"], &entry["note"]), (&json!("one"), &json!("ann")), "{audit}");
    let audit = stand.get("/v1/audit?action=push&project=shop").await.json();
    assert!(audit["items"][0]["what"].as_str().unwrap().contains("@sha256:"), "{audit}");
}
