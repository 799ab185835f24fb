//! Tokens that are no longer valid: whoever has the secret is told what became of it, and nobody else learns anything.

use crate::stand::Stand;
use axum::body::Body;
use axum::http::Request;
use keelway_domain::time::Span;
use serde_json::json;

/// What somebody with this token is told: the title, and the rest.
async fn told(stand: &Stand, token: &str) -> (u16, String, String) {
    // Each of them is looked up anew.
    stand.world.pass(Span::seconds(2));
    let request = Request::get("/v1/whoami").header("x-token", token);
    let answer = stand.request(request.body(Body::empty()).unwrap()).await;
    let text = |name: &str| answer.json()[name].as_str().unwrap_or_default().to_owned();
    (answer.status, text("title"), text("detail"))
}

/// The same secret with another last digit.
fn guess(secret: &str) -> String {
    let (all, last) = secret.split_at(secret.len() - 1);
    format!("{all}{}", if last == "0" { "1" } else { "0" })
}

#[tokio::test(start_paused = true)]
async fn each_end_has_its_own_words() {
    let mut stand = Stand::new();
    let first = stand.token("ci", &["read"], &["shop"]).await;
    assert_eq!(told(&stand, &first).await.0, 200);
    let rotate = async |stand: &Stand, overlap: &str| {
        let answer = stand.post("/v1/tokens/ci/rotate", &json!({"overlap": overlap})).await;
        answer.json()["secret"].as_str().unwrap().to_owned()
    };
    let second = rotate(&stand, "1h").await;
    assert_eq!((told(&stand, &first).await.0, told(&stand, &second).await.0), (200, 200));
    stand.world.pass(Span::minutes(60));
    let (status, title, detail) = told(&stand, &first).await;
    assert_eq!((status, title.as_str()), (401, "rotated token"));
    assert!(detail.contains("token ci was given another secret") && detail.contains("keelway token rotate ci"), "{detail}");
    // However often it was rotated since.
    let third = rotate(&stand, "0").await;
    assert_eq!([told(&stand, &first).await.1, told(&stand, &second).await.1], ["rotated token", "rotated token"]);
    assert_eq!(told(&stand, &third).await.0, 200);

    stand.delete("/v1/tokens/ci").await;
    let (status, title, detail) = told(&stand, &third).await;
    assert_eq!((status, title.as_str()), (401, "revoked token"));
    assert!(detail.contains("token ci was revoked at 2026-") && detail.contains("ask an administrator"), "{detail}");
    assert_eq!(told(&stand, &second).await.1, "rotated token", "as before");
    // A later token of the same name is another one, and the list has only that.
    assert_eq!(stand.get("/v1/tokens").await.json()["items"], json!([]));
    let again = stand.token("ci", &["read"], &["shop"]).await;
    assert_eq!((told(&stand, &again).await.0, told(&stand, &third).await.1.as_str()), (200, "revoked token"));
    assert_eq!(stand.get("/v1/tokens").await.json()["items"].as_array().unwrap().len(), 1);

    let made = stand.post("/v1/tokens", &json!({"name": "short", "scopes": ["read"], "projects": ["shop"], "expires": "1h"})).await;
    let short = made.json()["secret"].as_str().unwrap().to_owned();
    assert_eq!(told(&stand, &short).await.0, 200);
    stand.world.pass(Span::minutes(60));
    let (status, title, detail) = told(&stand, &short).await;
    assert_eq!((status, title.as_str()), (401, "expired token"));
    assert!(detail.contains("token short expired at 2026-") && detail.contains("keelway token create"), "{detail}");
}

#[tokio::test(start_paused = true)]
async fn whoever_guesses_learns_nothing() {
    let mut stand = Stand::new();
    let revoked = stand.token("revoked", &["read"], &["shop"]).await;
    stand.delete("/v1/tokens/revoked").await;
    let live = stand.token("live", &["read"], &["shop"]).await;
    let nobody = live.replace("keelway_live_", "keelway_nobody_");
    let mut all = vec![];
    for token in [&guess(&revoked), &guess(&live), &nobody, "s3cret", ""] {
        all.push(told(&stand, token).await);
    }
    assert_eq!((all[0].0, all[0].1.as_str()), (401, "unknown token"));
    assert!(all.iter().all(|one| *one == all[0]), "a name tells nothing: {all:?}");
    // What is no whole token is told so, whatever name it begins with.
    let cut = |secret: &str| secret[..secret.len() - 3].to_owned();
    let (one, other) = (told(&stand, &cut(&live)).await, told(&stand, &cut(&nobody)).await);
    assert_eq!((one.1.as_str(), &one), ("mistyped token", &other));
}

#[tokio::test(start_paused = true)]
async fn what_ends_with_its_project_is_revoked() {
    let mut stand = Stand::new();
    stand.apply("shop", super::tokens::STAGES).await;
    let secret = stand.token("ci", &["read"], &["shop"]).await;
    assert_eq!(stand.delete("/v1/project/shop").await.status, 200);
    stand.work().await;
    assert_eq!(told(&stand, &secret).await.1, "revoked token");
}
