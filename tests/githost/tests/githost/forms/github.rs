use super::{Api, FILE, clean, cloned, encoded, host};
use keelway_githost::{Form, Host, Method, Scope, Token};
use serde_json::{Value, json};

const AGENT: (&str, &str) = ("user-agent", "keelway-test");

fn api(host: &Host) -> Api {
    Api::new(host.api(Form::GitHub), &[("authorization", "Bearer secret"), AGENT, ("accept", "application/vnd.github+json")])
}

/// A commit with a new version on a branch of its own, by way of the Git database.
async fn proposed(api: &Api, branch: &str, text: &str) -> String {
    let main = api.get("/repos/shop/config/git/ref/heads/main").await.is(200)["object"]["sha"].clone();
    let base = api.get(&format!("/repos/shop/config/git/commits/{}", main.as_str().unwrap())).await.is(200)["tree"]["sha"].clone();
    let blob =
        api.call("POST", "/repos/shop/config/git/blobs", json!({"content": encoded(text), "encoding": "base64"})).await.is(201);
    let entry = json!([{"path": "prod/carts.yaml", "mode": "100644", "type": "blob", "sha": blob["sha"]}]);
    let tree = api.call("POST", "/repos/shop/config/git/trees", json!({"base_tree": base, "tree": entry})).await.is(201);
    let commit = json!({"message": "carts 1.5.0", "tree": tree["sha"], "parents": [main]});
    let commit = api.call("POST", "/repos/shop/config/git/commits", commit).await.is(201)["sha"].clone();
    let created = json!({"ref": format!("refs/heads/{branch}"), "sha": commit});
    api.call("POST", "/repos/shop/config/git/refs", created).await.is(201);
    commit.as_str().unwrap().to_owned()
}

async fn opened(api: &Api, branch: &str) -> Value {
    let body = json!({"head": branch, "base": "main", "title": "carts 1.5.0", "body": "by Keelway"});
    api.call("POST", "/repos/shop/config/pulls", body).await.is(201)
}

#[tokio::test]
async fn a_promotion_from_the_user_to_the_clone() {
    let (host, _directory) = host();
    let api = api(&host);
    assert_eq!(api.get("/user").await.is(200)["login"], "keelway");
    let archive = api.get("/repos/shop/config/tarball/main").await;
    assert_eq!(archive.status, 302);
    let archive = reqwest::get(archive.header("location")).await.unwrap().bytes().await.unwrap();
    assert_eq!(&archive[..2], [0x1f, 0x8b]);

    let new = FILE.replace("1.4.0", "1.5.0");
    let head = proposed(&api, "keelway/carts", &new).await;
    let pull = opened(&api, "keelway/carts").await;
    assert_eq!((&pull["head"]["sha"], &pull["mergeable"]), (&json!(head), &Value::Null));
    let pull = api.get("/repos/shop/config/pulls/1").await.is(200);
    assert_eq!((&pull["mergeable"], &pull["mergeable_state"]), (&json!(true), &json!("clean")));
    let list = api.get("/repos/shop/config/pulls?head=shop:keelway/carts&state=all").await;
    let tag = list.header("etag").to_owned();
    assert_eq!(list.is(200)[0]["number"], 1);
    let again = api
        .send("GET", "/repos/shop/config/pulls?head=shop:keelway/carts&state=all", None, &[("if-none-match", &tag)])
        .await
        .unwrap();
    assert_eq!((again.status, again.body.len()), (304, 0));
    api.call("POST", "/repos/shop/config/issues/1/comments", json!({"body": "hello"})).await.is(201);
    assert_eq!(api.get("/repos/shop/config/issues/1/comments").await.is(200)[0]["body"], "hello");
    let merged = api.call("PUT", "/repos/shop/config/pulls/1/merge", json!({"sha": head, "merge_method": "squash"})).await.is(200);
    let again = api
        .send("GET", "/repos/shop/config/pulls?head=shop:keelway/carts&state=all", None, &[("if-none-match", &tag)])
        .await
        .unwrap();
    assert_eq!(again.is(200)[0]["merge_commit_sha"], merged["sha"]);
    assert_eq!(api.get("/repos/shop/config/pulls/1/merge").await.status, 204);
    assert_eq!(api.send("DELETE", "/repos/shop/config/git/refs/heads/keelway/carts", None, &[]).await.unwrap().status, 204);
    assert_eq!(cloned(&host, "main")["prod/carts.yaml"], new.as_bytes());
    clean(&host);
}

#[tokio::test]
async fn what_cannot_be_is_refused_in_githubs_words() {
    let (host, _directory) = host();
    let (api, people) = (api(&host), host.people());
    let head = proposed(&api, "one", "a: 1\n").await;
    opened(&api, "one").await;
    let open = async |head: &str, base: &str| {
        let refused = api.call("POST", "/repos/shop/config/pulls", json!({"head": head, "base": base, "title": "x"})).await.is(422);
        assert_eq!(refused["message"], "Validation Failed");
        refused["errors"][0].clone()
    };
    assert_eq!(open("one", "main").await["message"], "A pull request already exists for shop:one.");
    assert_eq!(open("one", "nowhere").await, json!({"resource": "PullRequest", "field": "base", "code": "invalid"}));
    assert_eq!(open("nowhere", "main").await, json!({"resource": "PullRequest", "field": "head", "code": "invalid"}));
    api.call(
        "POST",
        "/repos/shop/config/git/refs",
        json!({"ref": "refs/heads/same", "sha": people.branches("shop/config").unwrap()[0].1}),
    )
    .await
    .is(201);
    assert_eq!(open("same", "main").await["message"], "No commits between main and same");

    let exists = api.call("POST", "/repos/shop/config/git/refs", json!({"ref": "refs/heads/one", "sha": head})).await.is(422);
    assert_eq!(exists["message"], "Reference already exists");
    people.commit("shop/config", "main", "in between", &[("prod/carts.yaml", Some(b"a: 2\n"))]).unwrap();
    let main = people.branches("shop/config").unwrap()[0].1.clone();
    let back = api.call("PATCH", "/repos/shop/config/git/refs/heads/one", json!({"sha": main})).await.is(422);
    assert_eq!(back["message"], "Update is not a fast forward");
    let gone = api
        .call("PATCH", "/repos/shop/config/git/refs/heads/one", json!({"sha": "1234567890123456789012345678901234567890"}))
        .await
        .is(422);
    assert_eq!(gone["message"], "Object does not exist");
    let stale = json!({"message": "x", "content": "eA==", "sha": "1234567890123456789012345678901234567890"});
    api.call("PUT", "/repos/shop/config/contents/README.md", stale).await.is(409);
    let unread = api.call("PUT", "/repos/shop/config/contents/README.md", json!({"message": "x", "content": "eA=="})).await.is(422);
    assert_eq!(unread["message"], "Invalid request.\n\n\"sha\" wasn't supplied.");

    let wrong = json!({"sha": "1234567890123456789012345678901234567890"});
    let wrong = api.call("PUT", "/repos/shop/config/pulls/1/merge", wrong).await.is(409);
    assert_eq!(wrong["message"], "Head branch was modified. Review and try the merge again.");
    api.get("/repos/shop/config/pulls/1").await.is(200);
    assert_eq!(api.get("/repos/shop/config/pulls/1").await.is(200)["mergeable_state"], "dirty");
    let conflict = api.call("PUT", "/repos/shop/config/pulls/1/merge", json!({})).await.is(405);
    assert_eq!(conflict["message"], "Pull Request is not mergeable");
    people.allow("shop/config", &[Method::Merge]).unwrap();
    let squash = api.call("PUT", "/repos/shop/config/pulls/1/merge", json!({"merge_method": "squash"})).await.is(405);
    assert_eq!(squash["message"], "Squash merges are not allowed on this repository.");
    people.force_push("shop/config", 1, "again", &[("prod/carts.yaml", Some(b"a: 3\n"))]).unwrap();
    people.merge("shop/config", 1, Method::Merge).unwrap();
    assert_eq!(api.call("PATCH", "/repos/shop/config/pulls/1", json!({"state": "closed"})).await.is(200)["merged"], true);
    api.call("PATCH", "/repos/shop/config/pulls/1", json!({"state": "open"})).await.is(422);
    api.get("/repos/shop/config/pulls/9").await.is(404);
    clean(&host);
}

#[tokio::test]
async fn what_is_not_in_the_api_is_a_violation() {
    let (host, _directory) = host();
    let api = api(&host);
    let unnamed = Api::new(host.api(Form::GitHub), &[("authorization", "Bearer secret")]);
    let refused = unnamed.get("/user").await;
    assert_eq!(refused.status, 403);
    assert!(String::from_utf8_lossy(&refused.body).contains("User-Agent"));
    let wrong = Api::new(host.api(Form::GitHub), &[("authorization", "Bearer wrong"), AGENT]);
    assert_eq!(wrong.get("/user").await.is(401)["message"], "Bad credentials");
    let nobody = Api::new(host.api(Form::GitHub), &[AGENT]);
    nobody.get("/repos/shop/config").await.is(404);
    assert_eq!(nobody.get("/user").await.is(401)["message"], "Requires authentication");
    host.people().grant(Token { scopes: vec![Scope::Read, Scope::Pulls], ..Token::new("reader", "reader") }).unwrap();
    let reader = Api::new(host.api(Form::GitHub), &[("authorization", "Bearer reader"), AGENT]);
    reader.get("/repos/shop/config").await.is(200);
    let denied = reader.call("POST", "/repos/shop/config/git/blobs", json!({"content": "x"})).await;
    assert_eq!(denied.header("x-accepted-github-permissions"), "contents=write");
    denied.is(403);
    let unknown = api.call("POST", "/repos/shop/config/git/blobs", json!({"content": "x", "colour": "red"})).await.is(422);
    assert_eq!(unknown["message"], "Invalid request.\n\n\"colour\" is not a permitted key.");
    api.get("/repos/shop/config/pulses").await.is(404);
    api.send("GET", "/user", None, &[("x-github-api-version", "1999-01-01")]).await.unwrap().is(400);
    // A repository that the token may not see is not there; whoever asks for it does nothing wrong.
    host.people().grant(Token { repositories: Some(vec![]), ..Token::new("other", "other") }).unwrap();
    let other = Api::new(host.api(Form::GitHub), &[("authorization", "Bearer other"), AGENT]);
    other.get("/repos/shop/config").await.is(404);
    assert_eq!(host.violations().len(), 8, "{:?}", host.violations());
}
