use super::{Api, FILE, clean, cloned, encoded, host};
use keelway_githost::{Form, Host, Scope, Token};
use serde_json::{Value, json};

const PROJECT: &str = "/projects/shop%2Fconfig";

fn api(host: &Host) -> Api {
    Api::new(format!("{}{PROJECT}", host.api(Form::GitLab)), &[("private-token", "secret")])
}

async fn proposed(api: &Api, branch: &str, text: &str) -> Value {
    let actions = json!([{"action": "update", "file_path": "prod/carts.yaml", "content": encoded(text), "encoding": "base64"}]);
    let commit = json!({"branch": branch, "start_branch": "main", "commit_message": "carts 1.5.0", "actions": actions});
    api.call("POST", "/repository/commits", commit).await.is(201)
}

async fn opened(api: &Api, branch: &str) -> Value {
    let new = json!({"source_branch": branch, "target_branch": "main", "title": "carts 1.5.0", "description": "by Keelway"});
    api.call("POST", "/merge_requests", new).await.is(201)
}

#[tokio::test]
async fn a_promotion_from_the_user_to_the_clone() {
    let (host, _directory) = host();
    let api = api(&host);
    let user = Api::new(host.api(Form::GitLab), &[("authorization", "Bearer secret")]).get("/user").await.is(200);
    assert_eq!(user["username"], "keelway");
    let project = api.get("").await.is(200);
    assert_eq!((&project["default_branch"], &project["id"]), (&json!("main"), &json!(1)));
    let tree = api.get("/repository/tree?recursive=true&ref=main&per_page=2").await;
    assert_eq!((tree.header("x-total"), tree.header("x-next-page"), tree.header("x-total-pages")), ("3", "2", "2"));
    let file = api.get("/repository/files/prod%2Fcarts.yaml?ref=main").await.is(200);
    assert_eq!(file["content"], encoded(FILE));
    let archive = api.get("/repository/archive.tar.gz?sha=main").await;
    assert_eq!((archive.status, &archive.body[..2]), (200, &[0x1f, 0x8b][..]));

    let new = FILE.replace("1.4.0", "1.5.0");
    let commit = proposed(&api, "keelway/carts", &new).await;
    let opened = opened(&api, "keelway/carts").await;
    assert_eq!((&opened["sha"], &opened["detailed_merge_status"]), (&commit["id"], &json!("checking")));
    assert_eq!(api.get("/merge_requests/1").await.is(200)["detailed_merge_status"], "mergeable");
    let list = api.get("/merge_requests?state=opened&source_branch=keelway%2Fcarts").await;
    let tag = list.header("etag").to_owned();
    assert_eq!(list.is(200)[0]["iid"], 1);
    let path = "/merge_requests?state=opened&source_branch=keelway%2Fcarts";
    assert_eq!(api.send("GET", path, None, &[("if-none-match", &tag)]).await.unwrap().status, 304);
    api.call("POST", "/merge_requests/1/notes", json!({"body": "hello"})).await.is(201);
    assert_eq!(api.get("/merge_requests/1/notes").await.is(200)[0]["body"], "hello");
    let merge = json!({"sha": commit["id"], "should_remove_source_branch": true});
    assert_eq!(api.call("PUT", "/merge_requests/1/merge", merge).await.is(200)["state"], "merged");
    api.get("/repository/branches/keelway%2Fcarts").await.is(404);
    assert_eq!(cloned(&host, "main")["prod/carts.yaml"], new.as_bytes());
    clean(&host);
}

#[tokio::test]
async fn what_cannot_be_is_refused_in_gitlabs_words() {
    let (host, _directory) = host();
    let (api, people) = (api(&host), host.people());
    proposed(&api, "one", "a: 1\n").await;
    opened(&api, "one").await;
    let again = json!({"source_branch": "one", "target_branch": "main", "title": "x"});
    let exists = api.call("POST", "/merge_requests", again).await.is(409);
    assert_eq!(exists, json!({"message": ["Another open merge request already exists for this source branch: !1"]}));
    for (head, base) in [("nowhere", "main"), ("one", "nowhere"), ("main", "main")] {
        api.call("POST", "/merge_requests", json!({"source_branch": head, "target_branch": base, "title": "x"})).await.is(400);
    }
    let branch = api.call("POST", "/repository/branches", json!({"branch": "one", "ref": "main"})).await.is(400);
    assert_eq!(branch["message"], "Branch already exists");
    let branch = api.call("POST", "/repository/branches", json!({"branch": "two", "ref": "nowhere"})).await.is(400);
    assert_eq!(branch["message"], "Invalid reference name: nowhere");
    let stale = json!([{"action": "update", "file_path": "README.md", "content": "x", "last_commit_id": "1234567890123456789012345678901234567890"}]);
    let stale =
        api.call("POST", "/repository/commits", json!({"branch": "main", "commit_message": "x", "actions": stale})).await.is(400);
    assert!(stale["message"].as_str().unwrap().contains("has changed since"), "{stale}");

    let wrong =
        api.call("PUT", "/merge_requests/1/merge", json!({"sha": "1234567890123456789012345678901234567890"})).await.is(409);
    assert!(wrong["message"].as_str().unwrap().starts_with("SHA does not match HEAD of source branch"), "{wrong}");
    people.commit("shop/config", "main", "in between", &[("prod/carts.yaml", Some(b"a: 2\n"))]).unwrap();
    // Before it has looked for conflicts, it merges nothing, and says no more than that.
    assert_eq!(api.call("PUT", "/merge_requests/1/merge", json!({})).await.is(422)["message"], "Branch cannot be merged");
    assert_eq!(api.get("/merge_requests/1").await.is(200)["has_conflicts"], true);
    assert_eq!(api.call("PUT", "/merge_requests/1/merge", json!({})).await.is(422)["message"], "Branch cannot be merged");
    assert_eq!(api.call("PUT", "/merge_requests/1", json!({"state_event": "close"})).await.is(200)["state"], "closed");
    assert_eq!(api.call("PUT", "/merge_requests/1/merge", json!({})).await.is(405)["message"], "405 Method Not Allowed");
    assert_eq!(api.call("PUT", "/merge_requests/1", json!({"state_event": "reopen"})).await.is(200)["state"], "opened");
    api.get("/merge_requests/9").await.is(404);
    clean(&host);
}

#[tokio::test]
async fn what_is_not_in_the_api_is_a_violation() {
    let (host, _directory) = host();
    let api = api(&host);
    assert_eq!(
        api.call("POST", "/merge_requests", json!({"source_branch": "a", "target_branch": "b"})).await.is(400)["error"],
        "title is missing"
    );
    api.call("POST", "/merge_requests", json!({"source_branch": "a", "target_branch": "b", "title": "x", "head": "a"}))
        .await
        .is(400);
    api.send("POST", "/merge_requests", None, &[("content-type", "text/plain")]).await.unwrap().is(415);
    api.get("/pulls").await.is(404);
    api.get("/merge_requests?state=open").await.is(400);
    let base = format!("{}{PROJECT}", host.api(Form::GitLab));
    assert_eq!(Api::new(base.clone(), &[("private-token", "wrong")]).get("").await.is(401)["message"], "401 Unauthorized");
    assert_eq!(Api::new(base.clone(), &[]).get("").await.is(404)["message"], "404 Project Not Found");
    host.people().grant(Token { scopes: vec![Scope::Read], ..Token::new("reader", "reader") }).unwrap();
    let reader = Api::new(base, &[("private-token", "reader")]);
    assert_eq!(
        reader.call("POST", "/repository/branches", json!({"branch": "a", "ref": "main"})).await.is(403)["error"],
        "insufficient_scope"
    );
    assert_eq!(host.violations().len(), 8, "{:?}", host.violations());
}
