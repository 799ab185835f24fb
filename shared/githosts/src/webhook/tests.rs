use super::*;
use serde_json::json;

const SECRET: &str = "It's a Secret to Everybody";

fn sign(body: &[u8], secret: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(body);
    mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn signed(form: Form, body: &[u8], secret: &str) -> (&'static str, String) {
    match form {
        Form::GitHub => ("X-Hub-Signature-256", format!("sha256={}", sign(body, secret))),
        Form::Gitea => ("X-Gitea-Signature", sign(body, secret)),
        Form::BitbucketServer => ("X-Hub-Signature", format!("sha256={}", sign(body, secret))),
        Form::GitLab => ("X-Gitlab-Token", secret.to_owned()),
    }
}

#[test]
fn githubs_own_example_is_accepted() {
    // https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
    let signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    assert_eq!(webhook(Form::GitHub, &[("x-hub-signature-256", signature)], b"Hello, World!", SECRET), Ok(None));
}

#[test]
fn each_form_says_which_pull_request() {
    let github = json!({"action": "closed", "number": 7, "pull_request": {"number": 7, "merged": true},
        "repository": {"html_url": "https://git.test/acme/shop"}});
    let gitlab = json!({"object_kind": "merge_request", "object_attributes": {"iid": 7, "id": 99},
        "project": {"web_url": "https://git.test/acme/sub/shop"}});
    let bitbucket = json!({"eventKey": "pr:merged", "pullRequest": {"id": 7, "toRef": {"repository": {"slug": "shop",
        "project": {"key": "ACME"}, "links": {"self": [{"href": "https://git.test/projects/ACME/repos/shop/browse"}]}}}}});
    let cases = [
        (Form::GitHub, &github, "acme/shop"),
        (Form::Gitea, &github, "acme/shop"),
        (Form::GitLab, &gitlab, "acme/sub/shop"),
        (Form::BitbucketServer, &bitbucket, "ACME/shop"),
    ];
    for (form, body, expected) in cases {
        let body = body.to_string();
        let (name, value) = signed(form, body.as_bytes(), SECRET);
        let about = webhook(form, &[("x", "y"), (name, &value)], body.as_bytes(), SECRET).unwrap().unwrap();
        assert_eq!(
            (about.repository.to_string().as_str(), about.repository.host(), about.number),
            (expected, "git.test", 7),
            "{form}"
        );
    }
}

#[test]
fn what_is_not_signed_with_the_secret_is_refused() {
    let body = br#"{"number": 7}"#;
    for form in Form::ALL {
        let (name, good) = signed(form, body, SECRET);
        let refused = |headers: &[(&str, &str)], body: &[u8], secret: &str| {
            assert_eq!(webhook(form, headers, body, secret), Err(BadSignature), "{form} {headers:?}");
        };
        assert_eq!(webhook(form, &[(&name.to_lowercase(), &good)], body, SECRET), Ok(None));
        refused(&[], body, SECRET);
        refused(&[("x-signature", &good)], body, SECRET);
        refused(&[(name, &signed(form, body, "other").1)], body, SECRET);
        refused(&[(name, &good[..good.len() - 2])], body, SECRET);
        refused(&[(name, &good[..good.len() - 1])], body, SECRET);
        refused(&[(name, "")], body, SECRET);
        refused(&[(name, "sha256=é0")], body, SECRET);
        refused(&[(name, "sha256=zz")], body, SECRET);
        refused(&[(name, &signed(form, body, "").1)], body, "");
        if form != Form::GitLab {
            refused(&[(name, &good)], br#"{"number": 8}"#, SECRET);
        }
    }
}

#[test]
fn signed_bodies_about_something_else_are_about_nothing() {
    for body in
        ["", "no JSON", "[]", r#"{"issue": {"number": 5}, "number": 5, "repository": {"html_url": "https://git.test/a/b"}}"#]
    {
        for form in Form::ALL {
            let (name, value) = signed(form, body.as_bytes(), SECRET);
            assert_eq!(webhook(form, &[(name, &value)], body.as_bytes(), SECRET), Ok(None), "{form} {body}");
        }
    }
}
