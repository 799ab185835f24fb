//! A Kubernetes API: strict about paths, tokens and rights, as the real one is. Every request is kept.

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::task::JoinHandle;

pub const TOKEN: &str = "s3cret-t0ken";
pub const HELM: &str = "helm.toolkit.fluxcd.io/v2";
pub const FLUX: &str = "kustomize.toolkit.fluxcd.io/v1";

/// What the API answers.
#[derive(Default)]
pub struct Kube {
    /// The objects, by path.
    pub objects: BTreeMap<String, Value>,
    /// Paths that the token may not read.
    pub forbidden: BTreeSet<String>,
    /// Instead of what would be answered at a path: a status and a body.
    pub instead: BTreeMap<String, (u16, String)>,
    /// Instead of everything.
    pub always: Option<(u16, String)>,
    /// What was asked for, in order.
    pub asked: Vec<String>,
    version: u64,
}

impl Kube {
    /// An object that runs a revision, or none.
    pub fn runs(&mut self, namespace: &str, name: &str, revision: Option<&str>, ready: &str) {
        self.version += 1;
        let mut status =
            json!({"observedGeneration": 1, "conditions": [{"type": "Ready", "status": ready, "observedGeneration": 1}]});
        if let Some(revision) = revision {
            status["lastAppliedRevision"] = json!(revision);
        }
        let object = json!({
            "apiVersion": HELM, "kind": "HelmRelease",
            "metadata": {"namespace": namespace, "name": name, "generation": 1, "resourceVersion": self.version.to_string()},
            "spec": {}, "status": status,
        });
        self.objects.insert(path(namespace, name), object);
    }

    pub fn change(&mut self, namespace: &str, change: impl FnOnce(&mut Value)) {
        change(self.objects.get_mut(&path(namespace, "cart")).unwrap());
    }

    /// Only objects, without discovery.
    pub fn reads(&self) -> Vec<String> {
        self.asked.iter().filter(|path| path.contains("/namespaces/")).cloned().collect()
    }

    pub fn discoveries(&self) -> usize {
        self.asked.iter().filter(|path| !path.contains("/namespaces/")).count()
    }

    fn answer(&mut self, path: &str, token: Option<&str>) -> (u16, String) {
        self.asked.push(path.to_owned());
        if let Some(always) = &self.always {
            return always.clone();
        }
        if token != Some(&format!("Bearer {TOKEN}")) {
            return status(401, "Unauthorized", "Unauthorized");
        }
        if let Some(instead) = self.instead.get(path) {
            return instead.clone();
        }
        if self.forbidden.contains(path) {
            let message = format!("User \"keelway\" with {TOKEN} cannot get {path}");
            return status(403, "Forbidden", &message);
        }
        match (discovery(path), self.objects.get(path)) {
            (Some(list), _) => (200, list.to_string()),
            (None, Some(object)) => (200, object.to_string()),
            (None, None) => status(404, "NotFound", &format!("{path} not found")),
        }
    }
}

pub fn path(namespace: &str, name: &str) -> String {
    format!("/apis/{HELM}/namespaces/{namespace}/helmreleases/{name}")
}

fn status(code: u16, reason: &str, message: &str) -> (u16, String) {
    let body =
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": code});
    (code, body.to_string())
}

fn discovery(path: &str) -> Option<Value> {
    let version = path.strip_prefix("/apis/").or_else(|| path.strip_prefix("/api/"))?;
    let entry =
        |name: &str, kind: &str, namespaced: bool| json!({"name": name, "kind": kind, "namespaced": namespaced, "verbs": ["get"]});
    let resources = match version {
        HELM => vec![entry("helmreleases/status", "HelmRelease", true), entry("helmreleases", "HelmRelease", true)],
        FLUX => vec![entry("kustomizations", "Kustomization", true)],
        "v1" => vec![entry("namespaces", "Namespace", false), entry("pods", "Pod", true)],
        _ => return None,
    };
    Some(json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources}))
}

/// A server with such an API.
pub struct Server {
    pub kube: Arc<Mutex<Kube>>,
    pub url: String,
    address: std::net::SocketAddr,
    serving: Option<JoinHandle<()>>,
}

async fn serve(State(kube): State<Arc<Mutex<Kube>>>, request: Request) -> Response {
    assert_eq!(request.method(), "GET", "an observer only reads");
    let header = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    assert_eq!(request.uri().query(), None);
    let (code, body) = kube.lock().unwrap().answer(request.uri().path(), header("authorization").as_deref());
    let mut response = Response::builder().status(StatusCode::from_u16(code).unwrap());
    if (300..400).contains(&code) {
        response = response.header("location", &body);
    }
    response.body(Body::from(body)).unwrap()
}

impl Server {
    pub async fn start() -> Self {
        let kube = Arc::<Mutex<Kube>>::default();
        let mut server = Self { kube, url: String::new(), address: ([127, 0, 0, 1], 0).into(), serving: None };
        server.up().await;
        server.url = format!("http://{}", server.address);
        server
    }

    pub fn kube(&self) -> MutexGuard<'_, Kube> {
        self.kube.lock().unwrap()
    }

    /// Nobody listens any more, and open connections are closed.
    pub async fn down(&mut self) {
        let serving = self.serving.take().unwrap();
        serving.abort();
        drop(serving.await);
    }

    /// At the same address as before.
    pub async fn up(&mut self) {
        let listener = tokio::net::TcpListener::bind(self.address).await.unwrap();
        self.address = listener.local_addr().unwrap();
        let router = Router::new().fallback(serve).with_state(self.kube.clone());
        self.serving = Some(tokio::spawn(async move { axum::serve(listener, router).await.unwrap() }));
    }
}
