use super::{Api, FILE, clean, cloned, host};
use keelway_githost::{Form, Host, Scope, Token};
use serde_json::{Value, json};

const REPOSITORY: &str = "/projects/shop/repos/config";

fn api(host: &Host) -> Api {
    Api::new(format!("{}{REPOSITORY}", host.api(Form::Bitbucket)), &[("authorization", "Bearer secret")])
}

/// Edits the file on a branch that exists.
async fn edited(host: &Host, branch: &str, text: &str, source: &str) -> (u16, Value) {
    let mut body = String::new();
    for (name, value) in [("content", text), ("message", "carts 1.5.0"), ("branch", branch), ("sourceCommitId", source)] {
        body.push_str(&format!("--xyz\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"));
    }
    body.push_str("--xyz--\r\n");
    let request = reqwest::Client::new().put(format!("{}{REPOSITORY}/browse/prod/carts.yaml", host.api(Form::Bitbucket)));
    let request = request.bearer_auth("secret").header("content-type", "multipart/form-data; boundary=xyz").body(body);
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap())
}

async fn branched(api: &Api, name: &str) -> String {
    let new = api.call("POST", "/branches", json!({"name": name, "startPoint": "refs/heads/main"})).await.is(200);
    new["latestCommit"].as_str().unwrap().to_owned()
}

fn new(head: &str, base: &str) -> Value {
    let home = json!({"slug": "config", "project": {"key": "shop"}});
    let side = |branch: &str| json!({"id": format!("refs/heads/{branch}"), "repository": home});
    json!({"title": "carts 1.5.0", "description": "by Keelway", "fromRef": side(head), "toRef": side(base)})
}

#[tokio::test]
async fn a_promotion_from_the_user_to_the_clone() {
    let (host, _directory) = host();
    let api = api(&host);
    let whoami = Api::new(host.url().into(), &[("authorization", "Bearer secret")]).get("/plugins/servlet/applinks/whoami").await;
    assert_eq!((whoami.status, whoami.body.as_slice(), whoami.header("x-ausername")), (200, b"keelway".as_slice(), "keelway"));
    assert_eq!(api.get("").await.is(200)["slug"], "config");
    assert_eq!(api.get("/default-branch").await.is(200)["displayId"], "main");
    let files = api.get("/files?at=main&limit=1").await.is(200);
    assert_eq!(
        (&files["values"], &files["isLastPage"], &files["nextPageStart"]),
        (&json!(["README.md"]), &json!(false), &json!(1))
    );
    assert_eq!(api.get("/raw/prod/carts.yaml?at=main").await.body, FILE.as_bytes());
    let archive = api.get("/archive?at=main&format=tgz").await;
    assert_eq!((archive.status, &archive.body[..2]), (200, &[0x1f, 0x8b][..]));

    let text = FILE.replace("1.4.0", "1.5.0");
    let main = branched(&api, "keelway/carts").await;
    let (status, commit) = edited(&host, "keelway/carts", &text, &main).await;
    assert_eq!(status, 200, "{commit}");
    let pull = api.call("POST", "/pull-requests", new("keelway/carts", "main")).await.is(201);
    assert_eq!((&pull["fromRef"]["latestCommit"], &pull["version"]), (&commit["id"], &json!(0)));
    let list = api.get("/pull-requests?state=ALL&direction=OUTGOING&at=refs/heads/keelway/carts").await.is(200);
    assert_eq!(list["values"][0]["id"], 1);
    api.call("POST", "/pull-requests/1/comments", json!({"text": "hello"})).await.is(201);
    assert_eq!(api.get("/pull-requests/1/activities").await.is(200)["values"][0]["comment"]["text"], "hello");
    assert_eq!(api.get("/pull-requests/1/merge").await.is(200)["canMerge"], true);
    let merged = api.call("POST", "/pull-requests/1/merge?version=0", json!({})).await.is(200);
    assert_eq!(merged["state"], "MERGED");
    let gone = format!("{}/rest/branch-utils/1.0{REPOSITORY}", host.url());
    let utils = Api::new(gone, &[("authorization", "Bearer secret")]);
    assert_eq!(utils.call("DELETE", "/branches", json!({"name": "refs/heads/keelway/carts"})).await.status, 204);
    assert_eq!(cloned(&host, "main")["prod/carts.yaml"], text.as_bytes());
    clean(&host);
}

#[tokio::test]
async fn what_cannot_be_is_refused_in_bitbuckets_words() {
    let (host, _directory) = host();
    let (api, people) = (api(&host), host.people());
    let exception = |json: &Value| json["errors"][0]["exceptionName"].as_str().unwrap().rsplit('.').next().unwrap().to_owned();
    let main = branched(&api, "one").await;
    let empty = api.call("POST", "/pull-requests", new("one", "main")).await.is(409);
    assert_eq!(exception(&empty), "EmptyPullRequestException");
    edited(&host, "one", "a: 1\n", &main).await;
    let (status, moved) = edited(&host, "one", "a: 2\n", &main).await;
    assert_eq!((status, exception(&moved)), (409, "FileOutOfDateException".into()));
    api.call("POST", "/pull-requests", new("one", "main")).await.is(201);
    let exists = api.call("POST", "/pull-requests", new("one", "main")).await.is(409);
    assert_eq!(exception(&exists), "DuplicatePullRequestException");
    assert_eq!(exists["errors"][0]["existingPullRequest"]["id"], 1);
    api.call("POST", "/pull-requests", new("one", "nowhere")).await.is(404);

    let stale = api.call("POST", "/pull-requests/1/decline?version=7", json!({})).await.is(409);
    assert_eq!(exception(&stale), "PullRequestOutOfDateException");
    assert_eq!((&stale["errors"][0]["currentVersion"], &stale["errors"][0]["expectedVersion"]), (&json!(0), &json!(7)));
    people.commit("shop/config", "main", "in between", &[("prod/carts.yaml", Some(b"a: 2\n"))]).unwrap();
    let conflict = api.call("POST", "/pull-requests/1/merge?version=0", json!({})).await.is(409);
    assert_eq!(
        (exception(&conflict), &conflict["errors"][0]["conflicted"]),
        ("PullRequestMergeVetoedException".into(), &json!(true))
    );
    // A push to the head makes a new version, so that nobody merges what they have not seen.
    people.force_push("shop/config", 1, "again", &[("prod/carts.yaml", Some(b"a: 3\n"))]).unwrap();
    let stale = api.call("POST", "/pull-requests/1/merge?version=0", json!({})).await.is(409);
    assert_eq!(exception(&stale), "PullRequestOutOfDateException");
    assert_eq!(api.call("POST", "/pull-requests/1/decline?version=1", json!({})).await.is(200)["state"], "DECLINED");
    let over = api.call("POST", "/pull-requests/1/merge?version=2", json!({})).await.is(409);
    assert_eq!(exception(&over), "IllegalPullRequestStateException");
    assert_eq!(api.call("POST", "/pull-requests/1/reopen?version=2", json!({})).await.is(200)["state"], "OPEN");
    assert_eq!(exception(&api.get("/pull-requests/9").await.is(404)), "NoSuchPullRequestException");
    clean(&host);
}

#[tokio::test]
async fn what_is_not_in_the_api_is_a_violation() {
    let (host, _directory) = host();
    let api = api(&host);
    api.call("POST", "/pull-requests", json!({"title": "x"})).await.is(400);
    let mut odd = new("one", "main");
    odd["head"] = "one".into();
    api.call("POST", "/pull-requests", odd).await.is(400);
    let unsafe_post = api.send("POST", "/pull-requests/1/decline?version=0", None, &[]).await.unwrap();
    assert_eq!((unsafe_post.status, unsafe_post.body.as_slice()), (403, b"XSRF check failed".as_slice()));
    api.get("/pulls").await.is(404);
    let base = format!("{}{REPOSITORY}", host.api(Form::Bitbucket));
    Api::new(base.clone(), &[("authorization", "Bearer wrong")]).get("").await.is(401);
    Api::new(base.clone(), &[]).get("").await.is(401);
    host.people().grant(Token { scopes: vec![Scope::Read], ..Token::new("reader", "reader") }).unwrap();
    let reader = Api::new(base, &[("authorization", "Bearer reader")]);
    reader.call("POST", "/branches", json!({"name": "a", "startPoint": "main"})).await.is(401);
    assert_eq!(host.violations().len(), 7, "{:?}", host.violations());
}
