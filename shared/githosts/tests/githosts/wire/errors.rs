//! Failures that every form of host shares.

use super::double::*;
use crate::here;
use keelway_githosts::{Api, Credentials, Form, Host, Kind, Repository};
use serde_json::json;

/// The first request of each form's look at one pull request.
fn get(form: Form) -> Step {
    on(match form {
        Form::GitHub | Form::Gitea => "GET /repos/acme/shop/pulls/7",
        Form::GitLab => "GET /projects/acme%2Fsub%2Fshop/merge_requests/7",
        Form::BitbucketServer => "GET /projects/ACME/repos/shop/pull-requests/7",
    })
}

async fn kind(form: Form, step: Step) -> Kind {
    let scene = scene(form, [step]).await;
    let error = scene.host.get(&scene.repository, 7).await.unwrap_err();
    scene.double.done();
    told(&error);
    error.kind
}

#[tokio::test]
async fn refusals_have_their_kinds_on_every_form() {
    for form in Form::ALL {
        let says = |status: u16| get(form).gives(status, json!({"message": format!("no, {TOKEN}")}));
        assert_eq!(kind(form, says(401)).await, Kind::Credentials);
        assert_eq!(kind(form, says(403)).await, Kind::Forbidden);
        assert_eq!(kind(form, says(400)).await, Kind::Refused);
        for status in [408, 500, 502, 503, 504] {
            assert_eq!(kind(form, says(status)).await, Kind::Transient);
        }
        assert!(matches!(kind(form, says(429).answer_header("retry-after", "60")).await, Kind::RateLimited { .. }));
        assert!(matches!(kind(form, says(403).answer_header("retry-after", "60")).await, Kind::RateLimited { .. }));
        for body in ["", "<html>welcome</html>", "{}", "[1, 2]", "{\"number\": \"seven\"}"] {
            assert_eq!(kind(form, get(form).gives_bytes(body)).await, Kind::Nonsense, "{form} {body}");
        }
        assert_eq!(kind(form, get(form).gives_bytes(vec![b' '; 17 << 20])).await, Kind::TooLarge);
    }
}

#[tokio::test]
async fn a_write_that_something_else_answers_has_not_happened() {
    let page = "<html>welcome</html>";
    let get = || {
        let repo = json!({"full_name": "acme/shop"});
        let side = |branch: &str| json!({"ref": branch, "sha": HEAD, "repo": repo});
        get(Form::GitHub).gives(
            200,
            json!({"number": 7, "html_url": "x", "state": "closed", "merged_at": null, "head": side(BRANCH), "base": side("main")}),
        )
    };
    let delete = on(format!("DELETE /repos/acme/shop/git/refs/heads/{BRANCH}")).gives_bytes(page);
    let scene = scene(Form::GitHub, [get(), delete]).await;
    let error = scene.host.close(&scene.repository, BRANCH, Some(7), "").await.unwrap_err();
    scene.double.done();
    told(&error);
    assert_eq!(error.kind, Kind::Nonsense);
}

#[tokio::test]
async fn a_host_that_is_not_there_is_transient() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/acme/shop", listener.local_addr().unwrap());
    drop(listener);
    let repository = Repository::parse(Form::GitHub, &url).unwrap();
    let credentials = Credentials::parse(&json!({"token": TOKEN}).to_string()).unwrap();
    let host = Host::new(&Api::of(&repository), &credentials, &here()).unwrap();
    let error = host.get(&repository, 7).await.unwrap_err();
    told(&error);
    assert_eq!(error.kind, Kind::Transient);
    assert!(error.message.contains("cannot be reached"), "{error}");
}

#[tokio::test]
async fn a_redirect_to_another_host_takes_no_credentials_along() {
    let other =
        Double::start("", [on("GET /download?token=short-lived").header("authorization", "").gives_bytes("no archive")]).await;
    let repo = "/repos/acme/shop";
    let find = on(format!("GET {repo}/pulls?head=acme:{BRANCH}&state=all&per_page=100&page=1")).gives(200, json!([]));
    let target = format!("{}/download?token=short-lived", other.address());
    let steps = [
        find,
        on(format!("GET {repo}")).gives(200, json!({})),
        on(format!("GET {repo}/git/ref/heads/main")).gives(200, json!({"object": {"sha": BASE}})),
        on(format!("GET {repo}/tarball/{BASE}"))
            .header("authorization", &format!("Bearer {TOKEN}"))
            .status(302)
            .answer_header("location", &target),
    ];
    let scene = scene(Form::GitHub, steps).await;
    let error = scene.host.propose(&scene.change()).await.unwrap_err();
    scene.double.done();
    other.done();
    assert_eq!(error.kind, Kind::Nonsense);
    assert!(!error.message.contains("short-lived"), "{error}");
}

#[tokio::test]
async fn a_redirect_without_encryption_is_not_followed() {
    let step = get(Form::GitHub).status(302).answer_header("location", "http://git.example/repos/acme/shop/pulls/7");
    assert_eq!(kind(Form::GitHub, step).await, Kind::Nonsense);
    // In a circle, it ends.
    let again = |_| get(Form::GitHub).status(302).answer_header("location", "/api/v3/repos/acme/shop/pulls/7");
    let scene = scene(Form::GitHub, (0..6).map(again)).await;
    assert_eq!(scene.host.get(&scene.repository, 7).await.unwrap_err().kind, Kind::Nonsense);
    scene.double.done();
}

#[test]
fn a_host_takes_only_credentials_and_certificates_that_it_can_use() {
    let api = Api::at(Form::GitLab, "https://git.test/api/v4").unwrap();
    let refused = |secret: serde_json::Value| {
        let error = Host::new(&api, &Credentials::parse(&secret.to_string()).unwrap(), &here()).unwrap_err();
        assert_eq!(error.kind, Kind::Credentials);
        error.message
    };
    assert!(refused(json!({"username": "me", "password": "hunter2"})).contains("access token"));
    assert!(refused(json!({"token": TOKEN, "caFile": "no PEM"})).contains("caFile"));
    let credentials = Credentials::parse(&json!({"token": TOKEN}).to_string()).unwrap();
    let debug = format!("{:?}", Host::new(&api, &credentials, &here()).unwrap());
    assert!(!debug.contains(TOKEN), "{debug}");
}
