//! The page's files: public, kept by browsers, and under a policy that lets nothing else run.

use crate::stand::Stand;
use axum::body::{Body, to_bytes};
use axum::http::{Request, Response};
use keelway_api::SignIn;
use keelway_domain::access::Identities;
use tower::ServiceExt;

async fn get(stand: &Stand, path: &str, headers: &[(&str, &str)]) -> (Response<()>, Vec<u8>) {
    let request = headers.iter().fold(Request::get(path), |request, (name, value)| request.header(*name, *value));
    let (parts, body) = stand.app().oneshot(request.body(Body::empty()).unwrap()).await.unwrap().into_parts();
    (Response::from_parts(parts, ()), to_bytes(body, usize::MAX).await.unwrap().to_vec())
}

fn header<'a>(response: &'a Response<()>, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

#[tokio::test]
async fn a_browser_gets_the_page_without_a_token() {
    let stand = Stand::new();
    let (response, body) = get(&stand, "/ui/", &[]).await;
    assert_eq!(response.status(), 200);
    assert_eq!(header(&response, "content-type"), "text/html; charset=utf-8");
    assert_eq!(header(&response, "cache-control"), "no-cache");
    let policy = header(&response, "content-security-policy");
    for part in [
        "default-src 'none'",
        "script-src 'self';",
        "connect-src 'self';",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    for (name, value) in [("x-content-type-options", "nosniff"), ("referrer-policy", "no-referrer")] {
        assert_eq!(header(&response, name), value);
    }
    let (again, nothing) = get(&stand, "/ui/", &[("if-none-match", header(&response, "etag"))]).await;
    assert_eq!((again.status().as_u16(), nothing.len()), (304, 0));

    // Every file that the page names is there, for ever, and smaller on the way.
    let page = String::from_utf8(body).unwrap();
    let files: Vec<&str> =
        page.split("href=\"").chain(page.split("src=\"")).filter_map(|rest| rest.split_once('"')).map(|(file, _)| file).collect();
    let files: Vec<&str> = files.into_iter().filter(|file| file.contains('.') && !file.contains(' ')).collect();
    assert_eq!(files.len(), 3, "{page}");
    for file in files {
        let path = format!("/ui/{file}");
        let (plain, whole) = get(&stand, &path, &[]).await;
        assert_eq!(plain.status(), 200, "{path}");
        assert_eq!(header(&plain, "cache-control"), "public, max-age=31536000, immutable");
        let (packed, bytes) = get(&stand, &path, &[("accept-encoding", "gzip, br")]).await;
        assert_eq!(header(&packed, "content-encoding"), "br");
        assert!(bytes.len() < whole.len(), "{path}");
    }
}

#[tokio::test]
async fn the_root_leads_browsers_to_the_page_and_nobody_else() {
    let stand = Stand::new();
    for path in ["/", "/ui"] {
        let (response, _) = get(&stand, path, &[("accept", "text/html,*/*")]).await;
        assert_eq!((response.status().as_u16(), header(&response, "location")), (302, "/ui/"), "{path}");
    }
    assert_eq!(get(&stand, "/", &[]).await.0.status(), 401, "a client of the API has nothing to look for here");
    assert_eq!(get(&stand, "/v1/project", &[("accept", "text/html")]).await.0.status(), 401);
}

#[tokio::test]
async fn files_of_another_version_are_told_from_those_that_never_were() {
    let stand = Stand::new();
    for path in ["/ui/0123456789abcdef/app.js", "/ui/app.js", "/ui/../Cargo.toml", "/ui/%2e%2e/Cargo.toml"] {
        let (response, body) = get(&stand, path, &[]).await;
        assert_eq!(response.status(), 404, "{path}");
        assert!(String::from_utf8_lossy(&body).contains("load the page again"), "{path}");
        assert_eq!(header(&response, "cache-control"), "no-store");
    }
}

#[tokio::test]
async fn people_sign_in_at_one_of_the_issuers() {
    let stand = Stand::new();
    let (_, none) = get(&stand, "/ui/settings.json", &[]).await;
    assert!(String::from_utf8(none).unwrap().contains("\"providers\":[]"));

    let known = Identities::parse("https://id.example.com/realm", "keelway-page", "email=ann@example.com=>read").unwrap();
    let sign_in = SignIn::parse("https://id.example.com/realm https://tokens.example.com", known.as_ref()).unwrap();
    let stand = Stand::with_sign_in(known, sign_in);
    let (_, one) = get(&stand, "/ui/settings.json", &[]).await;
    let one: serde_json::Value = serde_json::from_slice(&one).unwrap();
    assert_eq!(one["providers"][0]["issuer"], "https://id.example.com/realm");
    assert_eq!(one["providers"][0]["clientId"], "keelway-page");
    assert_eq!(one["providers"][0]["origins"], serde_json::json!(["https://id.example.com", "https://tokens.example.com"]));
    assert_eq!(one["wrong"], serde_json::Value::Null);
    let (page, _) = get(&stand, "/ui/", &[]).await;
    let policy = header(&page, "content-security-policy");
    assert!(policy.contains("connect-src 'self' https://id.example.com https://tokens.example.com;"), "{policy}");
}

/// Two parameters that do not fit must not take the API away from those who have tokens of Keelway's.
#[tokio::test]
async fn a_provider_that_is_none_of_the_issuers_is_told_on_the_page() {
    let known = Identities::parse("https://id.example.com", "keelway-page", "email=ann@example.com=>read").unwrap();
    let sign_in = SignIn::told("https://id.example.com/", known.as_ref());
    let stand = Stand::with_sign_in(known, sign_in);
    let (_, settings) = get(&stand, "/ui/settings.json", &[]).await;
    let settings: serde_json::Value = serde_json::from_slice(&settings).unwrap();
    assert_eq!(settings["providers"], serde_json::json!([]));
    let wrong = "\"https://id.example.com/\" is none of the accepted issuers: write it in PageSignIn as in OidcIssuers";
    assert_eq!(settings["wrong"], wrong);
}
