//! The API on the in-memory world: requests in, answers out, and the engine's queue worked on demand.

use crate::forge::Forge;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use keelway_api::{Api, Listed, Paces, Served, Settings, Tokens, router};
use keelway_domain::access::Identities;
use keelway_domain::event::CloudEvent;
use keelway_domain::ids::sha256_hex;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::deployments::{self, Deployments};
use keelway_engine::evaluations::{self, Evaluations, Reading};
use keelway_engine::promotions::attempts::Attempts;
use keelway_engine::promotions::{self, Promotions};
use keelway_engine::secrets::Known;
use keelway_engine::sequences::{Limits, Sequences};
use keelway_outgoing::{Guard, Hosts};
use keelway_wire::cloudevent::{Origin, parse};
use keelway_wire::evaluation;
use keelway_world::World;
use keelway_world::at_once::AtOnce;
use keelway_world::exec::block_on;
use keelway_world::metrics::Metrics;
use keelway_world::story::{handle, play};
use keelway_world::worker::Worker;
use serde_json::{Value, json};
use std::time::Duration;
use tower::ServiceExt;

pub const TOKEN: &str = "test-token";
/// Another token that is accepted.
pub const OTHER_TOKEN: &str = "other-token";

/// The evaluations engine, on sources that a test sets.
type Evaluates = Evaluations<Worker, Metrics>;

/// What the API said.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub content_type: String,
    pub headers: axum::http::HeaderMap,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or(Value::Null)
    }
    /// The refusal's detail; checks that it is a whole problem.
    pub fn problem(&self) -> String {
        assert_eq!(self.content_type, "application/problem+json", "{self:?}");
        let json = self.json();
        assert_eq!(json["status"], json!(self.status));
        assert!(json["title"].is_string() && json["type"].is_string() && json["instance"].is_string(), "{json}");
        json["detail"].as_str().unwrap_or_default().to_owned()
    }
}

/// What signed requests name.
pub const INSTALLATION: &str = "111111111111/eu-central-1/test-api";

/// Where this installation is.
fn here() -> deployments::Limits {
    deployments::Limits { account: "111111111111".into(), region: "eu-central-1".into(), ..deployments::Limits::default() }
}

fn settings() -> Settings {
    let hashes = [TOKEN, OTHER_TOKEN].map(|token| sha256_hex(token.as_bytes()));
    Settings {
        tokens: Tokens::from_hex(&hashes.join(",")),
        patience: Duration::ZERO,
        stack: "test-api".into(),
        deployments: here(),
        delivers_webhooks: true,
        identities: None,
        sign_in: keelway_api::SignIn::default(),
        paces: Paces::default(),
        guard: Guard::new(Hosts::default()),
    }
}

/// Every route.
pub fn routes() -> Vec<Listed> {
    keelway_api::listed()
}

pub struct Stand {
    pub world: World,
    app: Served,
    pub engine: Sequences<Worker>,
    promotions: Promotions<Worker>,
    deployments: Deployments<Worker>,
    attempts: Attempts<Worker, Forge>,
    evaluations: Evaluates,
    /// What sources of metrics answer.
    pub metrics: Metrics,
    /// Where pull requests are opened.
    pub forge: Forge,
    bus_seen: usize,
    /// The secrets of the tokens that were made here.
    tokens: std::collections::HashMap<String, String>,
    /// Whose token the next request bears; empty: the deployment's.
    like: String,
}

impl Stand {
    pub fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    pub fn with_limits(limits: Limits) -> Self {
        Self::with(limits, Duration::ZERO)
    }

    pub fn with(limits: Limits, patience: Duration) -> Self {
        Self::with_secrets(limits, patience, Known::default())
    }

    pub fn with_secrets(limits: Limits, patience: Duration, secrets: Known) -> Self {
        Self::on(limits, secrets, |settings| settings.patience = patience)
    }

    /// With limits on how fast callers may send.
    pub fn with_paces(paces: Paces) -> Self {
        Self::on(Limits::default(), Known::default(), |settings| settings.paces = paces)
    }

    /// With identity providers.
    pub fn with_identities(identities: Option<Identities>) -> Self {
        // The providers of the tests are on this machine.
        Self::with_identities_behind(Guard::new(Hosts::default()).with_loopback(true), identities)
    }

    /// With identity providers, and what requests to them may reach.
    pub fn with_identities_behind(guard: Guard, identities: Option<Identities>) -> Self {
        Self::on(Limits::default(), Known::default(), |settings| (settings.identities, settings.guard) = (identities, guard))
    }

    /// With an identity provider at which people sign in to the page.
    pub fn with_sign_in(identities: Option<Identities>, sign_in: keelway_api::SignIn) -> Self {
        Self::on(Limits::default(), Known::default(), |settings| (settings.identities, settings.sign_in) = (identities, sign_in))
    }

    fn on(limits: Limits, secrets: Known, change: impl FnOnce(&mut Settings)) -> Self {
        Self::at(World::new(Timestamp::parse("2026-11-20T12:00:00Z").unwrap()), limits, secrets, change)
    }

    /// A copy that goes its own way, with a memory of its own.
    pub fn fork(&self, secrets: Known) -> Self {
        let copy = Self::at(self.world.fork(), Limits::default(), secrets, |_| {});
        Self { bus_seen: self.bus_seen, tokens: self.tokens.clone(), ..copy }
    }

    fn at(world: World, limits: Limits, secrets: Known, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = settings();
        change(&mut settings);
        let app = router(Api::new(AtOnce::with(world.worker(0), secrets), limits.clone(), settings));
        let ports = world.worker(1);
        let pipelines = || Promotions::new(ports.clone(), promotions::Limits::default());
        let forge = Forge::default();
        let attempts = Attempts::new(pipelines(), forge.clone());
        let deployments = Deployments::new(ports.clone(), here());
        let metrics = Metrics::default();
        let reading = Reading { slo: evaluation::slo, sli: evaluation::sli, provided: evaluation::answered };
        let evaluations = Evaluations::with(ports.clone(), evaluations::Limits::default(), reading, metrics.clone());
        let (promotions, engine) = (pipelines(), Sequences::new(ports, limits));
        Self {
            world,
            app,
            engine,
            promotions,
            deployments,
            attempts,
            evaluations,
            metrics,
            forge,
            bus_seen: 0,
            tokens: Default::default(),
            like: String::new(),
        }
    }

    /// Another instance of the function on the same table, with a memory of its own.
    pub fn another(&self) -> Served {
        router(Api::new(AtOnce::with(self.world.worker(2), Known::default()), Limits::default(), settings()))
    }

    /// Sends a request to an instance.
    pub async fn ask(app: Served, request: Request<Body>) -> Answer {
        Self::answer(app, request).await
    }

    /// What is on the bus, without the audit.
    pub fn published(&self) -> Vec<Value> {
        let all = self.world.outgoing();
        let all = all.iter().filter(|entry| entry.detail_type != "dev.keelway.audit");
        all.map(|entry| serde_json::from_str(&entry.detail).unwrap()).collect()
    }

    /// Makes a token.
    pub async fn token(&mut self, name: &str, scopes: &[&str], projects: &[&str]) -> String {
        let answer = self.post("/v1/tokens", &json!({"name": name, "scopes": scopes, "projects": projects})).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
        let secret = answer.json()["secret"].as_str().unwrap().to_owned();
        self.tokens.insert(name.to_owned(), secret.clone());
        secret
    }

    /// The following requests bear a token that was made here; with an empty name, the deployment's.
    pub fn like(&mut self, name: &str) -> &mut Self {
        self.like = name.to_owned();
        self
    }

    /// The secret of a token that was made here.
    pub fn secret_of(&self, name: &str) -> String {
        self.tokens[name].clone()
    }

    fn secret(&self) -> &str {
        self.tokens.get(&self.like).map_or(TOKEN, String::as_str)
    }

    /// The routes.
    pub fn app(&self) -> Served {
        self.app.clone()
    }

    pub async fn request(&self, request: Request<Body>) -> Answer {
        Self::answer(self.app.clone(), request).await
    }

    /// A request during which the engine works.
    pub async fn post_while_working(&mut self, path: &str, body: &Value) -> Answer {
        let request = Request::post(path).header("x-token", self.secret()).header("content-type", "application/json");
        self.while_working(request.body(Body::from(body.to_string())).unwrap()).await
    }

    /// A request that does not hold the stand.
    pub fn app_request(&self, request: Request<Body>) -> impl Future<Output = Answer> + use<> {
        Self::answer(self.app.clone(), request)
    }

    /// A request during which the engine works.
    pub async fn while_working(&mut self, request: Request<Body>) -> Answer {
        let request = Self::answer(self.app.clone(), request);
        let work = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            self.work().await;
        };
        tokio::join!(request, work).0
    }

    async fn answer(app: Served, request: Request<Body>) -> Answer {
        let response = app.oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        let content_type = parts.headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Answer { status: parts.status.as_u16(), content_type, headers: parts.headers, text }
    }

    pub async fn get_from(app: Served, path: &str) -> Answer {
        Self::answer(app, Request::get(path).header("x-token", TOKEN).body(Body::empty()).unwrap()).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.request(Request::get(path).header("x-token", self.secret()).body(Body::empty()).unwrap()).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_text(path, "application/json", body.to_string()).await
    }

    pub async fn post_text(&self, path: &str, content_type: &str, body: String) -> Answer {
        let request = Request::post(path).header("x-token", self.secret()).header("content-type", content_type);
        self.request(request.body(Body::from(body)).unwrap()).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        let request = Request::put(path).header("x-token", self.secret()).header("content-type", "application/json");
        self.request(request.body(Body::from(body.to_string())).unwrap()).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.request(Request::delete(path).header("x-token", self.secret()).body(Body::empty()).unwrap()).await
    }

    /// Applies manifests.
    pub async fn manifests(&mut self, text: &str) -> Value {
        let answer = self.post_text("/v1/apply", "application/yaml", text.into()).await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        self.work().await;
        answer.json()
    }

    /// Reports what app `carts` is in a namespace: `v2/R` is healthy on v2, `v2/N` is not.
    pub async fn observe(&mut self, namespace: &str, what: &str) {
        let (revision, ready) = what.rsplit_once('/').unwrap();
        self.world.pass(Span::seconds(1));
        let fact = json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "name": "carts", "namespace": namespace,
            "revision": revision, "ready": ready == "R"
        });
        let answer = self.post("/v1/observations", &fact).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        self.work().await;
    }

    /// Applies a project with this shipyard.
    pub async fn apply(&self, project: &str, stages: &str) -> Answer {
        let text = format!(
            "apiVersion: keelway.dev/v1\nkind: Project\nmetadata:\n  name: {project}\n---\napiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\n\
             metadata:\n  name: shipyard-{project}\nspec:\n  stages:\n{stages}"
        );
        let answer = self.post_text("/v1/apply", "application/yaml", text).await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        answer
    }

    /// Triggers a sequence at the API and has the engine work on it.
    pub async fn trigger(&mut self, project: &str, stage: &str, sequence: &str, service: &str) -> String {
        self.trigger_with(json!({
            "type": format!("sh.keptn.event.{stage}.{sequence}.triggered"), "source": "test",
            "data": {"project": project, "stage": stage, "service": service}
        }))
        .await
    }

    /// Delivers an image to a stage of project `shop`.
    pub async fn deliver(&mut self, stage: &str, service: &str, image: &str) -> String {
        let mut data = json!({"project": "shop", "stage": stage, "service": service});
        data["configurationChange"] = json!({"values": {"image": image}});
        self.trigger_with(json!({"type": format!("sh.keptn.event.{stage}.delivery.triggered"), "source": "test", "data": data}))
            .await
    }

    /// Sends a trigger and has the engine work on it; its context.
    pub async fn trigger_with(&mut self, event: Value) -> String {
        let answer = self.post("/v1/event", &event).await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        self.work().await;
        answer.json()["keptnContext"].as_str().unwrap().to_owned()
    }

    /// The engine works until nothing is left: events of others on the bus, and its own messages.
    pub async fn work(&mut self) {
        while self.step().await {}
    }

    /// The engine handles one message; `false`: there is none.
    pub async fn step(&mut self) -> bool {
        let fresh: Vec<Value> = {
            let core = self.world.core();
            let details = core.bus.log.iter().skip(self.bus_seen).map(|p| serde_json::from_str(&p.entry.detail).unwrap());
            details.collect()
        };
        self.bus_seen += fresh.len();
        for event in &fresh {
            let event: CloudEvent = parse(event, Origin::Bus, self.world.now()).unwrap();
            self.world.emit::<keelway_world::evaluations::Engine>(event.clone());
            self.world.emit::<Sequences<Worker>>(event);
        }
        let receivable = {
            let core = self.world.core();
            core.queue.receivable(core.now)
        };
        let Some(id) = receivable.first() else { return false };
        let engine = self.world.core().queue.messages[id].engine.clone();
        let received = self.world.core().queue.receive(*id).unwrap();
        // Other functions deliver, deploy and observe.
        if [keelway_engine::webhooks::NAME, deployments::DEPLOYERS, promotions::OBSERVER].contains(&engine.as_str()) {
            self.world.core().queue.acknowledge(*id);
            return true;
        }
        let handled = match engine.as_str() {
            promotions::NAME => block_on(play(&self.promotions, &received)),
            deployments::NAME => block_on(play(&self.deployments, &received)),
            // The world has compiled it for its own sources only.
            evaluations::NAME => block_on(handle(&self.evaluations, &received)),
            promotions::ATTEMPTS => block_on(play(&self.attempts, &received)),
            _ => block_on(play(&self.engine, &received)),
        };
        handled.unwrap();
        self.world.core().queue.acknowledge(*id);
        true
    }

    /// Answers the only open trigger of a task, through the API.
    pub async fn execute(&mut self, task: &str, result: &str) {
        self.execute_with(task, result, &json!({})).await;
    }

    /// The same, with further data in the `.finished`.
    pub async fn execute_with(&mut self, task: &str, result: &str, data: &Value) {
        let open = self.open(task).await;
        self.answer_with(&open, task, result, data).await;
    }

    /// Answers a trigger, through the API.
    pub async fn answer_to(&mut self, open: &Value, task: &str, result: &str) {
        self.answer_with(open, task, result, &json!({})).await;
    }

    async fn answer_with(&mut self, open: &Value, task: &str, result: &str, data: &Value) {
        for kind in ["started", "finished"] {
            let mut event = json!({
                "type": format!("sh.keptn.event.{task}.{kind}"), "source": "executor", "id": format!("{kind}-{}", open["id"].as_str().unwrap()),
                "shkeptncontext": open["shkeptncontext"], "triggeredid": open["id"],
                "data": {"project": open["data"]["project"], "stage": open["data"]["stage"], "service": open["data"]["service"]}
            });
            if kind == "finished" {
                event["data"]["result"] = json!(result);
                event["data"]["status"] = json!("succeeded");
                event["data"].as_object_mut().unwrap().extend(data.as_object().unwrap().clone());
            }
            let answer = self.post("/v1/event", &event).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            self.work().await;
            self.world.pass(Span::seconds(1));
        }
    }

    /// The entry of a context in the list of sequences.
    pub async fn state(&self, context: &str) -> Value {
        self.get(&format!("/v1/sequence/shop?keptnContext={context}")).await.json()["states"][0].clone()
    }

    /// A person decides the only open approval.
    pub async fn decide(&mut self, decision: &str, by: &str) {
        let open = self.open("approval").await;
        let (context, id) = (open["shkeptncontext"].as_str().unwrap(), open["id"].as_str().unwrap());
        let path = format!("/v1/project/shop/approval/{context}/{id}");
        let answer = self.post(&path, &json!({"decision": decision, "by": by, "message": "as agreed"})).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        self.work().await;
    }

    /// The first open trigger of a task.
    pub async fn open(&self, task: &str) -> Value {
        let answer = self.get(&format!("/v1/event/triggered/{task}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["events"][0].clone()
    }
}
