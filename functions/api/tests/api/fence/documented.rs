//! The requests that the documentation names exist.

use crate::stand::{Stand, TOKEN};
use axum::body::Body;
use axum::http::Request;
use std::path::Path;

const METHODS: [&str; 4] = ["GET", "POST", "PUT", "DELETE"];

/// The methods and paths in a page: `GET /v1/project/{project}`, and `GET …/stage` for one below the last path.
fn requests(page: &str) -> Vec<(&str, String)> {
    let (mut found, mut last) = (vec![], String::new());
    for code in page.split('`').skip(1).step_by(2) {
        let Some((method, path)) = code.split_once(' ').filter(|(method, _)| METHODS.contains(method)) else { continue };
        let path = path.split(['?', '[', ' ', '\n']).next().unwrap_or_default();
        let whole = match path.strip_prefix('…') {
            Some(below) => format!("{last}{below}"),
            None if path.starts_with("/v1/") => {
                last = path.to_owned();
                path.to_owned()
            }
            None => continue,
        };
        // `/v1/pipelines/…/approval` is short for a path that stands elsewhere.
        if !whole.contains('…') {
            found.push((method, whole));
        }
    }
    found
}

/// The path with a value for each of its parameters.
fn filled(path: &str) -> String {
    let parts = path.split('{').map(|part| part.split_once('}').map_or(part.to_owned(), |(_, rest)| format!("x1{rest}")));
    parts.collect()
}

#[tokio::test(start_paused = true)]
async fn every_request_of_the_documentation_is_served() {
    let stand = Stand::new();
    for (page, at_least) in [("api.md", 30), ("promotions.md", 15)] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
        let text = std::fs::read_to_string(&path).unwrap();
        let requests = requests(&text);
        assert!(requests.len() >= at_least, "{page}: {requests:?}");
        for (method, path) in requests {
            let request = Request::builder().method(method).uri(filled(&path)).header("x-token", TOKEN);
            let answer = stand.request(request.body(Body::empty()).unwrap()).await;
            let served = answer.status != 405 && !answer.text.contains("there is nothing at");
            assert!(served, "{page}: {method} {path}: {answer:?}");
        }
    }
    let unknown = Request::get("/v1/deploymentConfigs/x1/nothing").header("x-token", TOKEN).body(Body::empty()).unwrap();
    assert_eq!(stand.request(unknown).await.status, 405, "only commands are posted there");
}
