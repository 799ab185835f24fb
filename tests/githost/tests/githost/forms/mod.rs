//! Each form through raw HTTP: the flow of a promotion, and the errors of the real hosts.

mod bitbucket;
mod gitea;
mod github;
mod gitlab;
mod host;

use keelway_githost::{Host, Options};
use reqwest::Method;
use serde_json::Value;

/// A client that does nothing by itself.
pub(crate) struct Api {
    client: reqwest::Client,
    base: String,
    headers: Vec<(&'static str, String)>,
}

/// An answer.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{}: {}", self.status, String::from_utf8_lossy(&self.body)))
    }
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
    /// The body, if the status is this one.
    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        if self.body.is_empty() { Value::Null } else { self.json() }
    }
}

impl Api {
    pub(crate) fn new(base: String, headers: &[(&'static str, &str)]) -> Self {
        let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        Self { client, base, headers }
    }
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
        more: &[(&str, &str)],
    ) -> Result<Reply, reqwest::Error> {
        let mut request = self.client.request(method.parse::<Method>().unwrap(), format!("{}{path}", self.base));
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        for (name, value) in more {
            request = request.header(*name, *value);
        }
        let answer = request.send().await?;
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        Ok(Reply { status, headers, body: answer.bytes().await?.to_vec() })
    }
    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, None, &[]).await.unwrap()
    }
    pub(crate) async fn call(&self, method: &str, path: &str, body: Value) -> Reply {
        self.send(method, path, Some(body), &[]).await.unwrap()
    }
}

pub(crate) const FILE: &str = "# carts\r\nimage: carts:1.4.0 # {\"$promotion\": \"shop:carts:prod\"}\r\n---\nother: \"1.0\" # {\"$promotion\": \"shop:other:prod\"}\n";

/// A host with one private repository, `shop/config`, that has one file and a folder.
pub(crate) fn host() -> (Host, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let host = Host::start(Options::new(directory.path(), "secret")).unwrap();
    host.people().create("shop/config", &[("prod/carts.yaml", FILE), ("README.md", "config\n")]).unwrap();
    (host, directory)
}

/// The files of a fresh `git clone`, by path.
pub(crate) fn cloned(host: &Host, branch: &str) -> std::collections::BTreeMap<String, Vec<u8>> {
    let directory = tempfile::tempdir().unwrap();
    let address = host.url().replace("http://", "http://x:secret@");
    let status = std::process::Command::new("git")
        .args(["-c", "core.autocrlf=false", "clone", "--quiet", "--branch", branch, &format!("{address}/shop/config.git")])
        .arg(directory.path().join("clone"))
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .status();
    assert!(status.unwrap().success());
    let mut files = std::collections::BTreeMap::new();
    let mut open = vec![directory.path().join("clone")];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if path.file_name().unwrap() != ".git" {
                    open.push(path);
                }
            } else {
                let name = path.strip_prefix(directory.path().join("clone")).unwrap().to_str().unwrap().to_owned();
                files.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    files
}

/// Base64, written once more: the host's own may be wrong.
pub(crate) fn encoded(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in text.as_bytes().chunks(3) {
        let bits = three.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for digit in 0..4 {
            let here = digit <= three.len();
            out.push(if here { DIGITS[(bits >> (18 - 6 * digit) & 63) as usize] as char } else { '=' });
        }
    }
    out
}

#[track_caller]
pub(crate) fn clean(host: &Host) {
    let violations = host.violations();
    assert!(violations.is_empty(), "{violations:?}");
}

#[test]
fn the_helper_encodes() {
    assert_eq!([encoded("a"), encoded("ab"), encoded("abc")], ["YQ==", "YWI=", "YWJj"]);
}
