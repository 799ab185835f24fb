use super::{Api, FILE, clean, cloned, encoded, host};
use keelway_githost::{Form, Host, Method, Scope, State, Token};
use serde_json::{Value, json};

fn api(host: &Host) -> Api {
    Api::new(host.api(Form::Gitea), &[("authorization", "token secret")])
}

/// Writes a new version to a branch of its own, over the API.
async fn proposed(api: &Api, branch: &str, text: &str) -> Value {
    let file = api.get("/repos/shop/config/contents/prod/carts.yaml?ref=main").await.is(200);
    let files = json!([{"operation": "update", "path": "prod/carts.yaml", "content": encoded(text), "sha": file["sha"]}]);
    let body = json!({"branch": "main", "new_branch": branch, "message": "carts 1.5.0", "files": files});
    api.call("POST", "/repos/shop/config/contents", body).await.is(201)
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
    assert_eq!(api.get("/repos/shop/config").await.is(200)["default_branch"], "main");
    let main = api.get("/repos/shop/config/branches/main").await.is(200)["commit"]["id"].as_str().unwrap().to_owned();
    let tree = api.get(&format!("/repos/shop/config/git/trees/{main}?recursive=true")).await.is(200);
    let paths: Vec<_> = tree["tree"].as_array().unwrap().iter().map(|entry| entry["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["README.md", "prod", "prod/carts.yaml"]);
    let blob = tree["tree"][2]["sha"].as_str().unwrap();
    assert_eq!(api.get(&format!("/repos/shop/config/git/blobs/{blob}")).await.is(200)["content"], encoded(FILE));
    let archive = api.get(&format!("/repos/shop/config/archive/{main}.tar.gz")).await;
    assert_eq!((archive.status, &archive.body[..2]), (200, &[0x1f, 0x8b][..]));
    assert_eq!(api.get("/repos/shop/config/raw/prod/carts.yaml?ref=main").await.body, FILE.as_bytes());

    let new = FILE.replace("1.4.0", "1.5.0");
    let written = proposed(&api, "keelway/carts", &new).await;
    let pull = opened(&api, "keelway/carts").await;
    assert_eq!((&pull["head"]["sha"], &pull["mergeable"]), (&written["commit"]["sha"], &json!(true)));
    assert_eq!(api.get("/repos/shop/config/pulls/main/keelway/carts").await.is(200)["number"], 1);
    api.call("POST", "/repos/shop/config/issues/1/comments", json!({"body": "hello"})).await.is(201);
    assert_eq!(api.get("/repos/shop/config/issues/1/comments").await.is(200)[0]["body"], "hello");
    let merge = json!({"Do": "merge", "head_commit_id": pull["head"]["sha"], "delete_branch_after_merge": true});
    api.call("POST", "/repos/shop/config/pulls/1/merge", merge).await.is(200);
    let merged = api.get("/repos/shop/config/pulls/1").await.is(200);
    assert_eq!((&merged["merged"], &merged["state"]), (&json!(true), &json!("closed")));
    api.get("/repos/shop/config/branches/keelway/carts").await.is(404);

    let files = cloned(&host, "main");
    assert_eq!(files["prod/carts.yaml"], new.as_bytes());
    assert_eq!(files.len(), 2);
    let commit = api.get("/repos/shop/config/git/commits/main").await.is(200);
    assert_eq!(commit["sha"], merged["merge_commit_sha"]);
    assert_eq!(commit["parents"].as_array().unwrap().len(), 2);
    assert_eq!(host.writes(), 4);
    clean(&host);
}

#[tokio::test]
async fn what_cannot_be_is_refused_in_giteas_words() {
    let (host, _directory) = host();
    let (api, people) = (api(&host), host.people());
    proposed(&api, "one", "a: 1\n").await;
    opened(&api, "one").await;
    let again = json!({"head": "one", "base": "main", "title": "x"});
    let exists = api.call("POST", "/repos/shop/config/pulls", again).await.is(409);
    assert!(exists["message"].as_str().unwrap().starts_with("pull request already exists for these targets [id: 1"), "{exists}");
    for (head, base, status) in [("one", "nowhere", 404), ("nowhere", "main", 404), ("main", "main", 422)] {
        api.call("POST", "/repos/shop/config/pulls", json!({"head": head, "base": base, "title": "x"})).await.is(status);
    }
    let stale = json!({"branch": "main", "message": "x", "content": "eA==", "sha": "0000000000000000000000000000000000000000"});
    let stale = api.call("PUT", "/repos/shop/config/contents/README.md", stale).await.is(422);
    assert!(stale["message"].as_str().unwrap().starts_with("sha does not match"), "{stale}");
    let exists = api.call("POST", "/repos/shop/config/contents/README.md", json!({"content": "eA=="})).await.is(422);
    assert_eq!(exists["message"], "repository file already exists [path: README.md]");
    api.call("POST", "/repos/shop/config/branches", json!({"new_branch_name": "one", "old_ref_name": "main"})).await.is(409);

    let merge = |head: &str| json!({"Do": "merge", "head_commit_id": head});
    let wrong =
        api.call("POST", "/repos/shop/config/pulls/1/merge", merge("1234567890123456789012345678901234567890")).await.is(409);
    assert_eq!(wrong["message"], "head out of date");
    people.commit("shop/config", "main", "in between", &[("prod/carts.yaml", Some(b"a: 2\n"))]).unwrap();
    assert_eq!(api.get("/repos/shop/config/pulls/1").await.is(200)["mergeable"], false);
    let conflict = api.call("POST", "/repos/shop/config/pulls/1/merge", json!({"Do": "merge"})).await.is(405);
    assert_eq!(conflict["message"], "Please try again later");
    people.allow("shop/config", &[Method::Merge]).unwrap();
    api.call("POST", "/repos/shop/config/pulls/1/merge", json!({"Do": "squash"})).await.is(405);
    api.call("PATCH", "/repos/shop/config/pulls/1", json!({"state": "closed"})).await.is(201);
    api.call("POST", "/repos/shop/config/pulls/1/merge", json!({"Do": "merge"})).await.is(404);
    api.call("PATCH", "/repos/shop/config/pulls/1", json!({"state": "open", "title": "t"})).await.is(201);
    let head = people.force_push("shop/config", 1, "again", &[("prod/carts.yaml", Some(b"a: 3\n"))]).unwrap();
    let pull = api.get("/repos/shop/config/pulls/1").await.is(200);
    assert_eq!((&pull["mergeable"], &pull["head"]["sha"], &pull["title"]), (&json!(true), &json!(head), &json!("t")));
    people.merge("shop/config", 1, Method::Merge).unwrap();
    api.call("PATCH", "/repos/shop/config/pulls/1", json!({"state": "closed"})).await.is(412);
    api.call("POST", "/repos/shop/config/pulls/1/merge", json!({"Do": "merge"})).await.is(405);
    assert_eq!(people.pull("shop/config", 1).unwrap().state, State::Merged);
    clean(&host);
}

#[tokio::test]
async fn a_branch_without_commits_of_its_own_makes_a_pull_request_here() {
    let (host, _directory) = host();
    let api = api(&host);
    api.call("POST", "/repos/shop/config/branches", json!({"new_branch_name": "same"})).await.is(201);
    opened(&api, "same").await;
    clean(&host);
}

#[tokio::test]
async fn what_is_not_in_the_api_is_a_violation() {
    let (host, _directory) = host();
    let api = api(&host);
    api.get("/repos/shop/config/pulses").await;
    api.call("POST", "/repos/shop/config/pulls", json!({"head": "a", "base": "main", "title": "x", "draft": true})).await.is(422);
    api.call("POST", "/repos/shop/config/pulls", json!({"head": "a", "base": "main"})).await.is(422);
    api.get("/repos/shop/config/pulls?per_page=3").await.is(422);
    api.send("POST", "/repos/shop/config/pulls", None, &[("content-type", "text/plain")]).await.unwrap().is(422);
    let wrong = Api::new(host.api(Form::Gitea), &[("authorization", "token wrong")]);
    wrong.get("/user").await.is(401);
    let nobody = Api::new(host.api(Form::Gitea), &[]);
    nobody.get("/repos/shop/config").await.is(404);
    nobody.get("/user").await.is(401);
    host.people().grant(Token { scopes: vec![Scope::Read], ..Token::new("reader", "reader") }).unwrap();
    let reader = Api::new(host.api(Form::Gitea), &[("authorization", "token reader")]);
    reader.get("/repos/shop/config").await.is(200);
    let denied = reader.call("POST", "/repos/shop/config/branches", json!({"new_branch_name": "x"})).await.is(403);
    let expected = "token does not have at least one of required scope(s), required=[write:repository], token scope=";
    assert_eq!(denied["message"], expected);
    assert_eq!(host.violations().len(), 9, "{:?}", host.violations());
}

#[tokio::test]
async fn lists_come_in_pages_of_fifty_at_most() {
    let (host, _directory) = host();
    let (api, people) = (api(&host), host.people());
    for number in 0..7 {
        let branch = format!("b{number}");
        people.commit("shop/config", &branch, "x", &[("x", Some(branch.as_bytes()))]).unwrap();
        people.open("shop/config", &branch, "main", &branch).unwrap();
    }
    people.close("shop/config", 3).unwrap();
    let page = api.get("/repos/shop/config/pulls?state=open&limit=4&page=1").await;
    assert_eq!(page.header("x-total-count"), "6");
    let next = format!("<{}/repos/shop/config/pulls?limit=4&page=2&state=open>; rel=\"next\"", host.api(Form::Gitea));
    assert!(page.header("link").starts_with(&next), "{}", page.header("link"));
    let numbers = |json: Value| json.as_array().unwrap().iter().map(|pull| pull["number"].as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!(numbers(page.is(200)), [7, 6, 5, 4]);
    assert_eq!(numbers(api.get("/repos/shop/config/pulls?limit=4&page=2").await.is(200)), [2, 1]);
    assert_eq!(numbers(api.get("/repos/shop/config/pulls?state=closed").await.is(200)), [3]);
    clean(&host);
}
