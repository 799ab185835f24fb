//! An API to test against: as much of the real one as the client can see, with faults on demand.

pub mod deployments;
pub mod pipelines;
pub mod screen;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use keelway_domain::time::Timestamp;
use keelway_wire::signature::{Keys, Request, Signed};
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

pub const TOKEN: &str = "t0ken";
/// The installation that signatures are for here.
pub const INSTALLATION: &str = "123456789012/eu-central-1/keelway";
/// The secret that signs approvals here.
pub const SECRET: &str = r#"{"keys": [{"id": "2026-11", "key": "k3y"}, {"id": "2026-10", "key": "older"}]}"#;
/// The clock of this API.
pub const NOW: &str = "2026-11-21T08:00:42.000Z";
/// Nothing is judged by how long it takes: this only says that nothing moves any more.
const LAST_LIMIT: Duration = Duration::from_secs(300);

/// Looks until it is so.
fn until(is_so: impl Fn() -> bool, so_far: impl FnOnce() -> String) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < LAST_LIMIT, "never so: {}", so_far());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// One request as it came.
#[derive(Debug, Clone)]
pub struct Asked {
    /// `POST /v1/apply?project=shop`
    pub line: String,
    pub body: String,
    /// The header If-Match.
    pub if_match: Option<String>,
    /// The key that signed it, if one did.
    pub key: Option<String>,
    /// The token that it bears, of an attempt of a deployment.
    pub bearer: Option<String>,
}

/// What the API knows.
#[derive(Default)]
pub struct World {
    /// What was posted, and what a test put there.
    pub events: Vec<Value>,
    /// Open task triggers.
    pub open: Vec<Value>,
    /// Answers to `METHOD path`, in place of the built-in ones.
    pub canned: HashMap<String, (u16, Value)>,
    /// Answers to the next posted events, before any is taken.
    pub faults: VecDeque<(u16, Value)>,
    pub asked: Vec<Asked>,
}

/// A running API.
pub struct Api {
    pub url: String,
    world: Arc<Mutex<World>>,
}

impl Api {
    pub fn start() -> Self {
        let world: Arc<Mutex<World>> = Arc::default();
        let served = Arc::clone(&world);
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                sender.send(listener.local_addr().unwrap()).unwrap();
                axum::serve(listener, axum::Router::new().fallback(handle).with_state(served)).await.unwrap();
            });
        });
        let address = receiver.recv().unwrap();
        Self { url: format!("http://{address}/_aws/lambda-url/abc/"), world }
    }

    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// The command, ready to run against this API.
    pub fn keelway(&self, words: &[&str]) -> Command {
        let mut command = keelway(words);
        command.env("KEELWAY_API", &self.url).env("KEELWAY_TOKEN", TOKEN).env("KEELWAY_INSTALLATION", INSTALLATION);
        command
    }

    /// Runs it to its end.
    pub fn run(&self, words: &[&str]) -> Ran {
        Ran::of(self.keelway(words).output().unwrap())
    }

    pub fn can(&self, line: &str, answer: Value) {
        self.world().canned.insert(line.into(), (200, answer));
    }

    /// The lines of all requests so far that are no polling.
    pub fn lines(&self) -> Vec<String> {
        self.world().asked.iter().map(|asked| asked.line.clone()).collect()
    }

    /// Waits until the world is so.
    pub fn wait(&self, what: &str, is_so: impl Fn(&World) -> bool) {
        until(|| is_so(&self.world()), || format!("{what}; events {:#?}", self.world().events));
    }

    /// Waits until a request has been made so many times more.
    pub fn wait_for_more(&self, line: &str, times: usize) {
        let count = |world: &World| world.asked.iter().filter(|asked| asked.line.starts_with(line)).count();
        let before = count(&self.world());
        self.wait(line, |world| count(world) >= before + times);
    }
}

/// The binary without any setting from around.
pub fn keelway(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_keelway"));
    command
        .args(words)
        .env_remove("KEELWAY_API")
        .env_remove("KEELWAY_TOKEN")
        .env_remove("KEELWAY_PROJECT")
        .env_remove("KEELWAY_INSTALLATION");
    command.env_remove("KEELWAY_LOGIN").env("KEELWAY_CONFIG", "/dev/null");
    command.env("USER", "ada").env("TZ", "Europe/Berlin").stdin(Stdio::null());
    command
}

/// How a command ended.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn of(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Everything a person saw, for snapshots: addresses and directories that change are replaced.
    pub fn shown(&self, replaced: &[(&str, &str)]) -> String {
        let all = format!("{}---\n{}---\nexit code {}", self.out, self.err, self.code);
        replaced.iter().fold(all, |all, (from, to)| all.replace(from, to))
    }
}

/// A child that is ended with the test, and what it has printed so far.
pub struct Running {
    child: Child,
    printed: Arc<Mutex<String>>,
    reader: std::thread::JoinHandle<()>,
}

impl Running {
    /// Starts it.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let printed: Arc<Mutex<String>> = Arc::default();
        let (lines, into) = (BufReader::new(child.stdout.take().unwrap()).lines(), Arc::clone(&printed));
        let reader =
            std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| *into.lock().unwrap() += &format!("{line}\n")));
        Self { child, printed, reader }
    }

    pub fn signal(&self, name: &str) {
        let done = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status().unwrap();
        assert!(done.success());
    }

    /// Waits until it has printed this.
    pub fn wait_for(&self, text: &str) {
        let printed = || self.printed.lock().unwrap().clone();
        until(|| printed().contains(text), || format!("it prints {text:?}; it printed\n{}", printed()));
    }

    /// Waits for its end, and until all that it has printed is read: its exit code.
    pub fn ended(&mut self) -> i32 {
        let child = std::cell::RefCell::new(&mut self.child);
        until(
            || child.borrow_mut().try_wait().unwrap().is_some() && self.reader.is_finished(),
            || format!("it ends; it printed\n{}", self.printed.lock().unwrap()),
        );
        self.child.wait().unwrap().code().unwrap_or(-1)
    }

    /// Everything it has printed.
    pub fn printed(&self) -> String {
        self.printed.lock().unwrap().clone()
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Ends it without a word.
    pub fn kill(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A gate in scripts: they wait before it until it is opened, or the test is over.
pub struct Gate(tempfile::TempDir);

impl Gate {
    pub fn closed() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// The shell's words for waiting.
    pub fn script(&self) -> String {
        let dir = self.0.path().display();
        format!("while [ -d {dir} ] && [ ! -e {dir}/open ]; do sleep 0.05; done")
    }

    pub fn open(&self) {
        write(&self.0.path().join("open"), "");
    }
}

/// A task trigger as the engine sends it.
pub fn trigger(task: &str, id: &str) -> Value {
    json!({
        "specversion": "1.0", "id": id, "source": "shipyard-controller", "type": format!("sh.keptn.event.{task}.triggered"),
        "time": "2026-11-21T08:00:00.000Z", "shkeptncontext": format!("context-of-{id}"), "gitcommitid": "abc",
        "data": {
            "project": "shop", "stage": "dev", "service": "carts", "labels": {"by": "ada"}, task: {"kind": "load"},
            "configurationChange": {"values": {"image": "carts:1.2"}}
        }
    })
}

pub fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

type Shared = State<Arc<Mutex<World>>>;

async fn handle(State(world): Shared, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let first = handled(&mut world.lock().unwrap(), &method, &uri, &headers, &body);
    let query: HashMap<String, String> = uri.query().map(pairs).unwrap_or_default();
    let wait = query.get("wait").map(|wait| Duration::from_secs(wait.parse().unwrap()));
    let Some((wait, known)) = wait.zip(query.get("unless")) else { return first };
    // Waits until something else is open, as the API does.
    let began = Instant::now();
    while fingerprint(&world.lock().unwrap().open) == *known && began.elapsed() < wait {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut world = world.lock().unwrap();
    world.asked.pop();
    handled(&mut world, &method, &uri, &headers, &body)
}

fn handled(world: &mut World, method: &Method, uri: &Uri, headers: &HeaderMap, body: &Bytes) -> Response {
    let path = uri.path().strip_prefix("/_aws/lambda-url/abc").unwrap_or("outside the base");
    let query: HashMap<String, String> = uri.query().map(pairs).unwrap_or_default();
    let line = format!("{method} {path}");
    let whole = uri.query().map_or_else(|| line.clone(), |query| format!("{line}?{query}"));
    let if_match = headers.get("if-match").map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let key = signer(method, (path, uri.query().unwrap_or_default()), headers, body);
    let bearer = headers.get("authorization").and_then(|value| value.to_str().ok()?.strip_prefix("Bearer ")).map(str::to_owned);
    let reports = bearer.is_some() && ["/heartbeat", "/strategy", "/finish"].iter().any(|end| path.ends_with(end));
    let text = String::from_utf8_lossy(body).into_owned();
    world.asked.push(Asked { line: whole, body: text, if_match, key: key.clone(), bearer });
    if key.is_none() && !reports && headers.get("x-token").and_then(|token| token.to_str().ok()) != Some(TOKEN) {
        return answer(401, json!({"title": "unknown token", "status": 401, "detail": "header x-token holds no known token"}));
    }
    if let Some((status, mut value)) = world.canned.get(&line).cloned() {
        // As the API, which has a list for each namespace.
        let listed = value.get_mut("items").filter(|_| line == "GET /v1/pipelines");
        if let (Some(namespace), Some(Value::Array(pipelines))) = (query.get("namespace"), listed) {
            pipelines.retain(|pipeline| pipeline["namespace"] == namespace.as_str());
        }
        return answer(status, value);
    }
    match (method.as_str(), path) {
        ("POST", "/v1/event") => post(world, body),
        ("GET", "/v1/event") => {
            let fits = |event: &&Value| {
                let same = |name: &str, field: &str| query.get(name).is_none_or(|value| event[field] == value.as_str());
                same("keptnContext", "shkeptncontext") && same("source", "source") && same("type", "type")
            };
            page(world.events.iter().filter(fits).cloned().collect(), &query, None)
        }
        ("GET", path) if path.starts_with("/v1/event/triggered/") => {
            let tasks = path["/v1/event/triggered/".len()..].split(',');
            let types: Vec<String> = tasks.map(|task| format!("sh.keptn.event.{task}.triggered")).collect();
            let fits = |event: &&Value| {
                let same = |name: &str| query.get(name).is_none_or(|value| event["data"][name] == value.as_str());
                let id = query.get("eventID").is_none_or(|id| event["id"] == id.as_str());
                types.iter().any(|ty| event["type"] == ty.as_str()) && id && same("project") && same("stage") && same("service")
            };
            let events: Vec<Value> = world.open.iter().filter(fits).cloned().collect();
            let fingerprint = fingerprint(&events);
            let known = query.get("unless") == Some(&fingerprint);
            page(if known { vec![] } else { events }, &query, Some(&fingerprint))
        }
        ("GET", "/v1/project") => answer(200, json!({"projects": [{"projectName": "shop"}], "nextPageKey": "0"})),
        ("GET", "/v1/sequence/shop") => answer(200, json!({"states": [], "now": NOW})),
        ("GET", "/v1/project/shop/environment") => answer(200, json!({"items": [], "now": NOW})),
        _ => answer(404, json!({"title": "not found", "status": 404, "detail": format!("{line} is not known here")})),
    }
}

/// The key that signed a request without a token, as the API checks it.
fn signer(method: &Method, (path, query): (&str, &str), headers: &HeaderMap, body: &Bytes) -> Option<String> {
    let keys = Keys::read(SECRET).unwrap();
    let signed = Signed::read(|name| headers.get(name)?.to_str().ok()).filter(|_| !headers.contains_key("x-token"))?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let now = Timestamp(i64::try_from(now.as_millis()).unwrap());
    let request = Request { installation: INSTALLATION, method: method.as_str(), path, query, body };
    (signed.in_time(now).is_some() && signed.verify(&request, &keys, now)).then_some(signed.key)
}

fn post(world: &mut World, body: &Bytes) -> Response {
    if let Some((status, value)) = world.faults.pop_front() {
        return answer(status, value);
    }
    let event: Value = serde_json::from_slice(body).unwrap();
    let known = world.events.iter().find(|known| known["id"] == event["id"] && known["source"] == event["source"]);
    match known {
        Some(known) if known["data"] != event["data"] => {
            return answer(409, json!({"title": "already answered", "status": 409, "detail": "this id came with other data"}));
        }
        Some(_) => (),
        None => world.events.push(event.clone()),
    }
    let context = event["shkeptncontext"].as_str().unwrap_or("0b9e7a44-1f7e-5abc-8123-5d2a5ef11ecf");
    answer(200, json!({"keptnContext": context}))
}

/// Pages of two, so that every list of a test has several.
fn page(events: Vec<Value>, query: &HashMap<String, String>, fingerprint: Option<&str>) -> Response {
    let from: usize = query.get("nextPageKey").and_then(|key| key.parse().ok()).unwrap_or(0);
    let next = if from + 2 < events.len() { from + 2 } else { 0 };
    let events: Vec<Value> = events.into_iter().skip(from).take(2).collect();
    let mut page =
        json!({"totalCount": events.len(), "events": events, "nextPageKey": next.to_string(), "pageSize": 2, "now": NOW});
    if let Some(fingerprint) = fingerprint {
        page["fingerprint"] = json!(fingerprint);
    }
    answer(200, page)
}

/// Stands for these open triggers.
fn fingerprint(events: &[Value]) -> String {
    events.iter().fold("open".to_owned(), |all, event| all + "-" + event["id"].as_str().unwrap_or_default())
}

fn answer(status: u16, value: Value) -> Response {
    let kind = if status < 400 { "application/json" } else { "application/problem+json" };
    if value.is_null() {
        return StatusCode::from_u16(status).unwrap().into_response();
    }
    if let Some(text) = value.as_str() {
        return ([(header::CONTENT_TYPE, "text/yaml")], text.to_owned()).into_response();
    }
    (StatusCode::from_u16(status).unwrap(), [(header::CONTENT_TYPE, kind)], value.to_string()).into_response()
}

fn pairs(query: &str) -> HashMap<String, String> {
    let pair = |pair: &str| pair.split_once('=').map(|(name, value)| (name.to_owned(), value.replace("%2C", ",")));
    query.split('&').filter_map(pair).collect()
}
