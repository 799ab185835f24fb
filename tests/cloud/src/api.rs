//! The HTTP API as a client sees it: status and body, nothing else.

use crate::patience::LAST_LIMIT;
use crate::problem::Problem;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// Sends requests with the stack's token.
#[derive(Debug, Clone)]
pub struct Api {
    /// Where it answers.
    pub url: String,
    /// The stack's token.
    pub token: String,
    client: reqwest::Client,
}

/// What the API answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// `Content-Type`.
    pub content_type: String,
    /// The body; a string if it is no JSON.
    pub body: Value,
}

impl Reply {
    /// What a refusal says, findings included.
    pub fn problem(&self) -> String {
        if self.status < 300 { String::new() } else { self.body.to_string() }
    }
    /// The body, if the status is 2xx.
    ///
    /// # Errors
    /// The refusal.
    pub fn fine(self, what: &str) -> Result<Value, Problem> {
        if self.status < 300 { Ok(self.body) } else { Err(format!("{what}: {} {}", self.status, self.body).into()) }
    }
}

impl Api {
    /// At this URL.
    pub fn new(url: &str, token: &str) -> Self {
        Self { url: url.trim_end_matches('/').to_owned(), token: token.to_owned(), client: crate::raw::client() }
    }

    /// As a person with a token of their own, which is made when it is asked for first. A name that the caller only writes proves
    /// nothing.
    ///
    /// # Errors
    /// When the API refuses or does not answer.
    pub async fn of_person(&self, name: &str) -> Result<Self, Problem> {
        static PEOPLE: Mutex<BTreeMap<String, String>> = Mutex::const_new(BTreeMap::new());
        if name.is_empty() {
            return Ok(self.clone());
        }
        let mut people = PEOPLE.lock().await;
        let whose = format!("{name} of {}", self.url);
        if !people.contains_key(&whose) {
            let secret = self.make_token(&json!({"name": name, "scopes": ["administer"]})).await?;
            people.insert(whose.clone(), secret);
        }
        Ok(Self { token: people[&whose].clone(), ..self.clone() })
    }

    /// Makes a token; its secret. Where an answer is lost on a busy machine, the token is there and its secret is not: it is
    /// rotated, as the API says.
    ///
    /// # Errors
    /// When the API refuses or does not answer.
    pub async fn make_token(&self, body: &Value) -> Result<String, Problem> {
        let name = body["name"].as_str().unwrap_or_default();
        let mut made = self.post("/v1/tokens", body).await?;
        if made.status == 409 {
            made = self.post(&format!("/v1/tokens/{name}/rotate"), &json!({})).await?;
        }
        Ok(made.fine("a token")?["secret"].as_str().unwrap_or_default().to_owned())
    }

    /// Any request: a token (`None`: none), a content type and a body. Sent again while the answer is 503, as the API asks for.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn request(
        &self,
        method: Method,
        path: &str,
        token: Option<&str>,
        body: Option<(&str, String)>,
    ) -> Result<Reply, Problem> {
        let start = Instant::now();
        loop {
            let reply = self.request_once(method.clone(), path, token, body.clone()).await?;
            if reply.status != 503 || start.elapsed() > LAST_LIMIT {
                return Ok(reply);
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    async fn request_once(
        &self,
        method: Method,
        path: &str,
        token: Option<&str>,
        body: Option<(&str, String)>,
    ) -> Result<Reply, Problem> {
        let mut request = self.client.request(method, format!("{}{path}", self.url));
        if let Some(token) = token {
            request = request.header("x-token", token);
        }
        if let Some((kind, body)) = body {
            request = request.header("content-type", kind).body(body);
        }
        let answer = request.send().await.map_err(|error| Problem::of(path, format!("{error:?}")))?;
        let status = answer.status().as_u16();
        let content_type =
            answer.headers().get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
        let text = answer.text().await.map_err(|error| Problem::of(path, error))?;
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Ok(Reply { status, content_type, body })
    }

    /// `GET`.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn get(&self, path: &str) -> Result<Reply, Problem> {
        self.request(Method::GET, path, Some(&self.token), None).await
    }

    /// `POST` of JSON.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Reply, Problem> {
        self.request(Method::POST, path, Some(&self.token), Some(("application/json", body.to_string()))).await
    }

    /// `POST` of JSON with a bearer token instead of the API's.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn post_as(&self, path: &str, bearer: &str, body: &Value) -> Result<Reply, Problem> {
        let request = self.client.post(format!("{}{path}", self.url)).bearer_auth(bearer).json(body);
        let answer = request.send().await.map_err(|error| Problem::of(path, format!("{error:?}")))?;
        let status = answer.status().as_u16();
        let text = answer.text().await.map_err(|error| Problem::of(path, error))?;
        Ok(Reply { status, content_type: String::new(), body: serde_json::from_str(&text).unwrap_or(Value::String(text)) })
    }

    /// Applies manifests; `project` for shipyards.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn apply(&self, project: Option<&str>, text: &str) -> Result<Reply, Problem> {
        let path = project.map_or("/v1/apply".to_owned(), |project| format!("/v1/apply?project={project}"));
        self.request(Method::POST, &path, Some(&self.token), Some(("application/yaml", text.to_owned()))).await
    }

    /// Applies a project and its shipyard.
    ///
    /// # Errors
    /// When either is refused.
    pub async fn apply_project(&self, project: &str, shipyard: &str) -> Result<(), Problem> {
        self.apply(None, &project_manifest(project)).await?.fine("apply project")?;
        self.apply(Some(project), shipyard).await?.fine("apply shipyard").map(drop)
    }

    /// The entry of a context in the list of sequences.
    ///
    /// # Errors
    /// When the API refuses or does not answer.
    pub async fn sequence(&self, project: &str, context: &str) -> Result<Option<Value>, Problem> {
        let reply = self.get(&format!("/v1/sequence/{project}?keptnContext={context}")).await?;
        let body = reply.fine("sequences")?;
        let mut states = body["states"].as_array().into_iter().flatten();
        Ok(states.find(|state| state["shkeptncontext"] == context).cloned())
    }

    /// All open triggers of a type.
    ///
    /// # Errors
    /// When the API refuses or does not answer.
    pub async fn open(&self, project: &str, ty: &str) -> Result<Vec<Value>, Problem> {
        let (mut found, mut page) = (vec![], String::new());
        for _ in 0..50 {
            let reply = self.get(&format!("/v1/event/triggered/{ty}?project={project}&pageSize=100{page}")).await?;
            let body = reply.fine("open triggers")?;
            found.extend(body["events"].as_array().cloned().unwrap_or_default());
            match body["nextPageKey"].as_str() {
                Some(next) if next != "0" && !next.is_empty() => page = format!("&nextPageKey={next}"),
                _ => break,
            }
        }
        Ok(found)
    }

    /// A person's decision.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn decide(&self, approval: &Value, approve: bool) -> Result<Reply, Problem> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (project, context) = (text(&approval["data"]["project"]), text(&approval["shkeptncontext"]));
        let path = format!("/v1/project/{project}/approval/{context}/{}", text(&approval["id"]));
        self.post(&path, &json!({"decision": if approve { "approve" } else { "decline" }, "by": "somebody"})).await
    }
}

/// A project's manifest.
pub fn project_manifest(name: &str) -> String {
    format!("apiVersion: keelway.dev/v1\nkind: Project\nmetadata:\n  name: {name}\n")
}
