//! A repository at the real Gitea, and what people do in it.

use keelway_githosts::{Api, Change, Credentials, Form, Host, HostError, Merge, Proposed, Repository, Request, State};
use keelway_outgoing::{Guard, Hosts};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::io::Write as _;
use std::time::{Duration, SystemTime};

pub const FILE: &str = "# carts\r\nimage: 'carts:1.4.0'   # {\"$promotion\": \"shop:carts:prod\"}\r\n---\nother: \"1.0\" # {\"$promotion\": \"shop:other:prod\"}\nno: newline at the end";
pub const SECOND: &str = "a:\n  # {\"$promotion\": \"shop:carts:prod\"}\n  tag: v1\n";
/// The path of the second file: every character that is encoded.
pub const ODD: &str = "prod/mehr Läufe & 50%+#1.yml";
/// Only says that the host does not answer any more.
const LAST_LIMIT: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(200);

pub struct Place {
    url: String,
    token: String,
    http: reqwest::Client,
    name: String,
    pub client: Host,
    pub repository: Repository,
}

/// The address of the real Gitea without a slash at its end, and its token.
fn given(test: &str) -> Option<(String, String)> {
    let Ok(url) = std::env::var("KEELWAY_TEST_GITEA_URL") else {
        // Not by `println!`, which the test runner keeps to itself.
        let mut terminal = std::io::stderr();
        writeln!(terminal, "not run: keelway-githosts on a real Gitea, {test}: KEELWAY_TEST_GITEA_URL is not set").unwrap();
        return None;
    };
    let token = std::env::var("KEELWAY_TEST_GITEA_TOKEN");
    let token = token.expect("KEELWAY_TEST_GITEA_URL is set: set KEELWAY_TEST_GITEA_TOKEN to a token of a user there, too");
    Some((url.trim_end_matches('/').to_owned(), token))
}

pub fn host(repository: &Repository, token: &str) -> Host {
    let guard = Guard::new(Hosts::parse(repository.host())).with_loopback(true);
    Host::new(&Api::of(repository), &Credentials::parse(&json!({"token": token}).to_string()).unwrap(), &guard).unwrap()
}

impl Place {
    /// A new repository with two files that have the marker, and one that has it and is not YAML. `None`: there is no Gitea.
    pub async fn new(test: &str) -> Option<Self> {
        let (url, token) = given(test)?;
        let http = reqwest::Client::new();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let name = format!("keelway-{test}-{}-{}", std::process::id(), now.subsec_nanos());
        let me = ask(&http, &token, Method::GET, &format!("{url}/api/v1/user"), None).await;
        let owner = me["login"].as_str().expect("the token may read its user: give it the scope read:user").to_owned();
        let body = json!({"name": name, "private": true, "default_branch": "main"});
        ask(&http, &token, Method::POST, &format!("{url}/api/v1/user/repos"), Some(body)).await;
        let repository = Repository::parse(Form::Gitea, &format!("{url}/{owner}/{name}.git")).unwrap();
        let client = host(&repository, &token);
        let place = Self { url, token, http, name: format!("{owner}/{name}"), client, repository };
        let files = [("prod/carts.yaml", FILE), (ODD, SECOND), ("README.md", FILE)];
        let files = files.map(|(path, text)| json!({"operation": "create", "path": path, "content": base64(text)}));
        place.post("contents", json!({"branch": "main", "message": "first", "files": files})).await;
        Some(place)
    }

    /// A repository of the same user.
    pub fn sibling(&self, name: &str) -> Repository {
        Repository::parse(Form::Gitea, &format!("{}/{}/{name}.git", self.url, self.repository.owner())).unwrap()
    }

    async fn call(&self, method: Method, rest: &str, body: Option<Value>) -> Value {
        let slash = if rest.is_empty() { "" } else { "/" };
        let url = format!("{}/api/v1/repos/{}{slash}{rest}", self.url, self.name);
        ask(&self.http, &self.token, method, &url, body).await
    }
    pub async fn get(&self, rest: &str) -> Value {
        self.call(Method::GET, rest, None).await
    }
    pub async fn post(&self, rest: &str, body: Value) -> Value {
        self.call(Method::POST, rest, Some(body)).await
    }
    /// Closes a pull request as people do: its branch stays.
    pub async fn shut(&self, number: u64) {
        self.call(Method::PATCH, &format!("pulls/{number}"), Some(json!({"state": "closed"}))).await;
    }
    /// Changes settings of the repository.
    pub async fn settings(&self, body: Value) {
        self.call(Method::PATCH, "", Some(body)).await;
    }

    /// Merges a pull request as it is now.
    pub async fn merge(&self, number: u64, head: &str) -> Result<Merge, HostError> {
        let request = self.client.get(&self.repository, number).await?.unwrap();
        self.client.merge(&self.repository, &request, head).await
    }

    pub fn change(&self, n: usize) -> Change {
        Change {
            repository: self.repository.clone(),
            base: "main".into(),
            head: format!("promotion/prod/{n:04}"),
            marker: "shop:carts:prod".into(),
            version: format!("carts:2.{n}"),
            title: format!("Promote shop/carts in prod to carts:2.{n}"),
            body: "!!! DO NOT EDIT !!!".into(),
            message: "Promote".into(),
            first: false,
        }
    }

    pub async fn opened(&self, n: usize) -> Request {
        match self.client.propose(&self.change(n)).await.unwrap() {
            Proposed::Opened(request) => request,
            other => panic!("{other:?}"),
        }
    }

    /// Somebody's commit of one file that is there.
    pub async fn commit(&self, branch: &str, path: &str, text: &str) {
        let file = self.get(&format!("contents/{path}?ref={branch}")).await;
        let body = json!({"branch": branch, "message": "by hand", "files": [
            {"operation": "update", "path": path, "content": base64(text), "sha": file["sha"]}
        ]});
        self.post("contents", body).await;
    }

    pub async fn text(&self, revision: &str, path: &str) -> String {
        let file = self.get(&format!("contents/{}?ref={revision}", encoded(path))).await;
        String::from_utf8(unbase64(file["content"].as_str().unwrap())).unwrap()
    }

    /// The commit that a branch is at; `None`: there is no such branch.
    pub async fn tip(&self, branch: &str) -> Option<String> {
        let branches = self.get("branches?limit=50").await;
        let branch = branches.as_array().unwrap().iter().find(|one| one["name"] == branch)?;
        branch["commit"]["id"].as_str().map(str::to_owned)
    }

    pub async fn parents(&self, commit: &str) -> Vec<String> {
        let commit = self.get(&format!("git/commits/{commit}")).await;
        let sha = |one: &Value| one["sha"].as_str().unwrap().to_owned();
        commit["parents"].as_array().unwrap().iter().map(sha).collect()
    }

    pub async fn comments(&self, number: u64) -> Vec<String> {
        let comments = self.get(&format!("issues/{number}/comments")).await;
        comments.as_array().unwrap().iter().map(|one| one["body"].as_str().unwrap().to_owned()).collect()
    }

    /// Waits until the host has found out whether it could merge a pull request, and says `mergeable`.
    pub async fn mergeable(&self, number: u64, mergeable: bool) {
        self.until(&format!("pull request {number} is mergeable: {mergeable}"), async || {
            let request = self.client.get(&self.repository, number).await.unwrap().unwrap();
            assert_eq!(request.state, State::Open);
            (request.mergeable == Some(mergeable)).then_some(())
        })
        .await;
    }

    /// Asks until there is an answer.
    pub async fn until<T>(&self, what: &str, ask: impl AsyncFn() -> Option<T>) -> T {
        let asking = async {
            loop {
                if let Some(answer) = ask().await {
                    return answer;
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::time::timeout(LAST_LIMIT, asking).await.unwrap_or_else(|_| panic!("not within {LAST_LIMIT:?}: {what}"))
    }

    /// Deletes the repository.
    pub async fn remove(self) {
        self.call(Method::DELETE, "", None).await;
    }
}

async fn ask(http: &reqwest::Client, token: &str, method: Method, url: &str, body: Option<Value>) -> Value {
    let request = http.request(method.clone(), url).header("authorization", format!("token {token}"));
    let request = match &body {
        Some(body) => request.json(body),
        None => request,
    };
    let answer = request.send().await.unwrap();
    let status = answer.status();
    let text = answer.text().await.unwrap();
    assert!(status.is_success(), "{method} {url}: {status} {text}");
    if status == StatusCode::NO_CONTENT { Value::Null } else { serde_json::from_str(&text).unwrap_or_default() }
}

/// A path with the characters encoded that end one or mean something in one.
fn encoded(path: &str) -> String {
    [("%", "%25"), (" ", "%20"), ("#", "%23"), ("+", "%2B"), ("&", "%26"), ("ä", "%C3%A4")]
        .iter()
        .fold(path.to_owned(), |path, (plain, code)| path.replace(plain, code))
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

fn unbase64(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text.replace('\n', "")).unwrap()
}
