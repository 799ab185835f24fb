//! Limits on how fast a caller may send.

use crate::stand::{Answer, OTHER_TOKEN, Stand, TOKEN};
use axum::body::Body;
use axum::http::Request;
use keelway_api::{Client, Paces};
use keelway_domain::time::Span;

async fn ask(stand: &Stand, token: &str, address: &str) -> Answer {
    let mut request = Request::get("/v1/metadata").header("x-token", token);
    request.extensions_mut().unwrap().insert(Client::at(address));
    stand.request(request.body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn a_token_and_an_address_have_their_limits() {
    let stand = Stand::with_paces(Paces { token: 10, address: 25 });
    for _ in 0..10 {
        assert_eq!(ask(&stand, TOKEN, "203.0.113.1").await.status, 200);
    }
    let refused = ask(&stand, TOKEN, "203.0.113.2").await;
    assert_eq!((refused.status, &refused.headers["retry-after"]), (429, &"6".parse().unwrap()), "{refused:?}");
    assert!(refused.problem().contains("10 requests a minute"), "{}", refused.problem());
    assert_eq!(ask(&stand, OTHER_TOKEN, "203.0.113.1").await.status, 200, "another token has its own");
    stand.world.pass(Span::seconds(6));
    assert_eq!(ask(&stand, TOKEN, "203.0.113.2").await.status, 200);

    // Whoever guesses is stopped before anything is looked up.
    for n in 0..25 {
        assert_eq!(ask(&stand, &format!("keelway_ci_{n:064}"), "203.0.113.3").await.status, 401, "{n}");
    }
    let before = stand.world.core().request_count();
    let refused = ask(&stand, &format!("keelway_ci_{:064}", 99), "203.0.113.3").await;
    assert_eq!((refused.status, stand.world.core().request_count() - before), (429, 0));
    assert_eq!(ask(&stand, OTHER_TOKEN, "203.0.113.3").await.status, 429, "the whole address");
}
