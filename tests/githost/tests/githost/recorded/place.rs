//! The strict host, set up as the real one is for the recording.

use super::plain::Plain;
use super::{Sent, Step};
use crate::forms::{Api, Reply};
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use keelway_githost::{Form, Host, NewRepository, Options, Scope, Token, Webhook, signature};
use serde_json::Value;
use std::collections::BTreeMap;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// What signs the webhooks.
const SECRET: &str = "hush";
const OWNER: &str = "keelway";
const REPOSITORY: &str = "shop/config";

pub(super) struct Place {
    host: Host,
    api: Api,
    webhooks: UnboundedReceiver<(HeaderMap, Bytes)>,
}

impl Place {
    /// The secrets are the names that the calls have for those who ask.
    pub(super) async fn new() -> (Self, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let tokens = vec![
            Token::new("owner", OWNER),
            Token { scopes: vec![Scope::User, Scope::Read], ..Token::new("reading", OWNER) },
            Token { read_only: true, ..Token::new("reader", "reader") },
            Token { repositories: Some(vec![]), ..Token::new("stranger", "stranger") },
        ];
        let host = Host::start(Options { tokens, ..Options::new(directory.path(), "owner") }).unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let (sender, webhooks) = unbounded_channel();
        let receive = move |headers: HeaderMap, body: Bytes| {
            let received = sender.send((headers, body)).is_ok();
            async move { if received { StatusCode::NO_CONTENT } else { StatusCode::GONE } }
        };
        let router = axum::Router::new().fallback(receive);
        tokio::spawn(async move { axum::serve(listener, router).await });
        let webhook = Some(Webhook { url, secret: SECRET.into(), form: Some(Form::Gitea) });
        let (owner, name) = ("shop".to_owned(), "config".to_owned());
        let new = NewRepository { owner, name, private: true, webhook, ..Default::default() };
        host.people().named(OWNER).create_repository(&new).unwrap();
        let api = Api::new(host.api(Form::Gitea), &[]);
        (Self { host, api, webhooks }, directory)
    }

    pub(super) fn origin(&self) -> &str {
        self.host.url()
    }

    /// The answer; `None` if people did what the real host has a call for.
    pub(super) async fn ask(&self, step: &Step, plain: &Plain) -> Option<Reply> {
        if let Some(method) = step.people {
            self.host.people().allow(REPOSITORY, &[method]).unwrap();
            return None;
        }
        if step.later {
            // The strict host orders changes by the second, too, and needs no wait.
            self.host.people().age(REPOSITORY, 1).unwrap();
        }
        let call = plain.filled(&step.call);
        let (method, path) = call.split_once(' ').unwrap();
        let who = step.who.as_deref().unwrap_or("owner");
        let proof = format!("token {who}");
        let mut headers: Vec<_> = step.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        if who != "nobody" {
            headers.push(("authorization", &proof));
        }
        let body = step.body.as_ref().map(|body| serde_json::from_str(&plain.filled(&body.to_string())).unwrap());
        Some(self.api.send(method, path, body, &headers).await.unwrap())
    }

    /// The next webhook that has these members.
    pub(super) async fn sent(&mut self, wanted: &BTreeMap<String, Value>, plain: &Plain) -> Sent {
        loop {
            let (headers, bytes) = self.webhooks.recv().await.unwrap();
            let body: Value = serde_json::from_slice(&bytes).unwrap();
            if wanted.iter().all(|(name, value)| body.get(name) == Some(value)) {
                return plain.sent(&headers, &signature(SECRET, &bytes), &body);
            }
        }
    }
}
