//! Webhooks through template and binaries: a server on this machine, which the stack's parameter allows, receives them.

use crate::bed::Bed;
use crate::failures::sweep;
use keelway_cloud_tests::cloud::now_millis;
use keelway_cloud_tests::events::{Scope, fresh};
use keelway_cloud_tests::patience::until;
use keelway_cloud_tests::problem::{ensure, same};
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Ability, Outcome, Problem, Stack};
use keelway_domain::time::Timestamp;
use keelway_engine::item::Attrs;
use keelway_engine::ports::{Condition, Store, Write};
use keelway_engine::webhooks::{QUIET, keys};
use keelway_outgoing::sign;
use serde_json::{Map, Value, json};
use std::collections::{HashMap, VecDeque};
use std::io::{self, BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const KEY: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const TOKEN: &str = "t0ken/of+the \"cloud\" test";

pub fn tests() -> Vec<Test<Bed>> {
    let needs = &[Ability::Functions];
    vec![
        Test::new("webhooks::a delivery is signed, tried again, and told in the log without secrets", delivered).needs(needs),
        Test::new("webhooks::a webhook carries out a task", task).needs(needs),
        Test::new("webhooks::the rule is enabled while there is a subscription, and no longer", fed).needs(needs),
        Test::new("webhooks::a receiver that is gone or wants peace has it, and private addresses get nothing", refused)
            .needs(needs),
    ]
}

/// A request as it came.
#[derive(Debug, Clone)]
struct Got {
    path: String,
    headers: HashMap<String, String>,
    body: String,
}

/// A server that gives these answers, one after the other, and then 200 for ever.
#[derive(Clone, Default)]
struct Receiver {
    answers: Arc<Mutex<VecDeque<&'static str>>>,
    got: Arc<Mutex<Vec<Got>>>,
    port: u16,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Receiver {
    fn answering(answers: &[&'static str]) -> Result<Self, Problem> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| Problem::of("receiver", error))?;
        let port = listener.local_addr().map_err(|error| Problem::of("receiver", error))?.port();
        let receiver = Self { answers: Arc::new(Mutex::new(answers.iter().copied().collect())), port, ..Self::default() };
        let serving = receiver.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serving.serve(&stream);
            }
        });
        Ok(receiver)
    }

    fn serve(&self, stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        let mut lines = vec![];
        for line in reader.by_ref().lines().map_while(Result::ok).take_while(|line| !line.is_empty()) {
            lines.push(line);
        }
        let header = |line: &String| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
        let headers: HashMap<String, String> = lines.iter().skip(1).filter_map(header).collect();
        let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or_default();
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let path = lines.first().and_then(|line| line.split(' ').nth(1)).unwrap_or_default().to_owned();
        lock(&self.got).push(Got { path, headers, body: String::from_utf8_lossy(&body).into_owned() });
        let answer = lock(&self.answers).pop_front().unwrap_or("200 OK");
        let told = format!("you sent {TOKEN}");
        let (head, length) = (format!("HTTP/1.1 {answer}\r\nconnection: close\r\n"), told.len());
        // A client that has gone needs no answer.
        let _gone = io::Write::write_all(&mut &*stream, format!("{head}content-length: {length}\r\n\r\n{told}").as_bytes());
    }

    fn got(&self) -> Vec<Got> {
        lock(&self.got).clone()
    }

    /// Waits until there were so many requests.
    fn wait(&self, n: usize) -> Result<Vec<Got>, Problem> {
        until(&format!("{n} requests"), || Ok(Some(self.got()).filter(|got| got.len() >= n)), || format!("{:?}", self.got()))
    }
}

/// A project with a subscription.
struct Hook<'a> {
    bed: &'a Bed,
    project: String,
}

/// So many of them are there.
static HOOKS: Mutex<usize> = Mutex::new(0);

impl<'a> Hook<'a> {
    fn new(bed: &'a Bed) -> Self {
        *lock(&HOOKS) += 1;
        Self { bed, project: format!("hooks-{}", &fresh()[24..]) }
    }

    fn apply(&self, spec: &str) -> Outcome {
        let text = format!(
            "apiVersion: keelway.dev/v1\nkind: WebhookSubscription\nmetadata: {{name: hook, namespace: {}}}\nspec:\n{spec}",
            self.project
        );
        self.bed.stack.wait(self.bed.stack.api().apply(None, &text))?.fine("apply").map(drop)
    }

    fn secret(&self, name: &str, text: &str) -> Outcome {
        let name = format!("{}/{}/{name}", self.bed.stack.name(), self.project);
        let body = json!({"Name": name, "SecretString": text, "ClientRequestToken": fresh()});
        let raw = self.bed.cloud.raw();
        self.bed.stack.wait(raw.json("secretsmanager", "secretsmanager.CreateSecret", &body)).map(drop)
    }

    fn event(&self, ty: &str, data: Value) -> Outcome {
        let mut data = data;
        data["project"] = self.project.as_str().into();
        let event = json!({
            "specversion": "1.0", "id": fresh(), "source": "somebody", "type": ty, "time": Timestamp(now_millis()).rfc3339(),
            "datacontenttype": "application/json", "shkeptncontext": fresh(), "data": data,
        });
        self.bed.stack.put_event(&event)
    }

    fn deliveries(&self) -> Result<Vec<Value>, Problem> {
        let path = format!("/v1/deliveries?namespace={}", self.project);
        let list = self.bed.stack.wait(self.bed.stack.api().get(&path))?.fine("deliveries")?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// Waits until the last delivery is so.
    fn becomes(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Result<Value, Problem> {
        let found = || Ok(self.deliveries()?.into_iter().next().filter(&is_so));
        until(what, found, || format!("{:?}", self.deliveries()))
    }
}

/// The rule that feeds the engine, as requests about it name it.
fn rule(stack: &Stack) -> Value {
    json!({"Name": format!("{}-webhooks", stack.name()), "EventBusName": stack.output("BusName")})
}

/// While somebody subscribes, and for ten minutes more, the function gets every event of the stack, and made a quarter of all
/// requests of functions. Whoever subscribes next enables the rule again. If this fails, that is all that comes of it.
impl Drop for Hook<'_> {
    fn drop(&mut self) {
        let stack = &self.bed.stack;
        let (api, path) = (stack.api(), format!("/v1/webhookSubscriptions/{}/hook", self.project));
        drop(stack.wait(api.request(reqwest::Method::DELETE, &path, Some(&api.token), None)));
        let mut hooks = lock(&HOOKS);
        *hooks -= 1;
        if *hooks == 0 {
            drop(stack.wait(self.bed.cloud.raw().json("events", "AWSEvents.DisableRule", &rule(stack))));
        }
    }
}

/// On the second stack, where nobody else subscribes.
fn fed(bed: &Bed) -> Outcome {
    let (stack, raw) = (&bed.second()?.stack, bed.cloud.raw());
    let rule = rule(stack);
    let state = || Ok::<_, Problem>(stack.wait(raw.json("events", "AWSEvents.DescribeRule", &rule))?["State"].clone());
    let is = |when: &str, expected: &str| same(when, state()?, json!(expected));
    let manifest = "apiVersion: keelway.dev/v1\nkind: WebhookSubscription\nmetadata: {name: hook, namespace: fed}\n\
                    spec: {events: [dev.keelway.promotion.failed], url: 'https://receiver.test'}\n";
    let apply = || stack.wait(stack.api().apply(None, manifest))?.fine("apply").map(drop);
    sweep(bed, stack)?;
    is("nobody has ever subscribed", "DISABLED")?;
    apply()?;
    is("a subscription was applied", "ENABLED")?;
    stack.wait(raw.json("events", "AWSEvents.DisableRule", &rule))?;
    apply()?;
    is("it was applied again", "ENABLED")?;
    stack.wait(raw.json("events", "AWSEvents.DisableRule", &rule))?;
    sweep(bed, stack)?;
    is("the sweep found it", "ENABLED")?;
    let (api, path) = (stack.api(), "/v1/webhookSubscriptions/fed/hook");
    stack.wait(api.request(reqwest::Method::DELETE, path, Some(&api.token), None))?.fine("delete")?;
    sweep(bed, stack)?;
    is("it was deleted a moment ago", "ENABLED")?;
    let set = Attrs::from([("at".into(), (now_millis() - QUIET.0).into())]);
    let write = Write::Update { key: keys::changed(), condition: Condition::Always, set, remove: vec![], raise: false };
    stack.wait(stack.ports().write(&write)).map_err(|error| Problem(error.to_string()))?;
    sweep(bed, stack)?;
    is("it was deleted some time ago", "DISABLED")
}

/// Of a project that has no shipyard: the sequences engine records the event as one that nobody takes.
const TOLD: &str = "dev.keelway.promotion.failed";

fn delivered(bed: &Bed) -> Outcome {
    let (hook, receiver) = (Hook::new(bed), Receiver::answering(&["500 Oops", "503 Busy"])?);
    hook.secret("key", KEY)?;
    hook.secret("token", TOKEN)?;
    let port = receiver.port;
    hook.apply(&format!(
        "  events: [dev.keelway.promotion.*]\n  filter: {{stages: [prod]}}\n  matchExpressions:\n  - {{key: data.revision, operator: \
         Exists}}\n  url: http://127.0.0.1:{port}/{{{{ data.project }}}}\n  headers: {{x-token: '{{{{ secrets.token }}}}'}}\n  body: \
         '{{\"what\": \"{{{{ data.message }}}}\"}}'\n  secrets:\n  - {{name: token, secretRef: {{name: token}}}}\n  signingSecretRef: \
         {{name: key}}\n"
    ))?;
    hook.event(TOLD, json!({"environment": "dev", "revision": "v1"}))?;
    hook.event(TOLD, json!({"environment": "prod"}))?;
    hook.event(TOLD, json!({"environment": "prod", "revision": "v1", "message": "it \"failed\""}))?;
    let waits = hook.becomes("two attempts", |delivery| delivery["attempts"].as_array().is_some_and(|all| all.len() == 2))?;
    same("statuses", &json!([waits["attempts"][0]["status"], waits["attempts"][1]["status"]]), &json!([500, 503]))?;
    same("the answer, without the secret", &waits["attempts"][0]["answer"], &json!("you sent ***"))?;
    let id = waits["id"].as_str().unwrap_or_default();
    let again = bed.stack.wait(bed.stack.api().post(&format!("/v1/deliveries/{}/{id}/redeliver", hook.project), &json!({})))?;
    same("redeliver", &again.fine("redeliver")?, &json!({"id": id, "again": false}))?;
    hook.becomes("delivered", |delivery| delivery["status"] == "delivered")?;
    let got = receiver.wait(3)?;
    same("deliveries", hook.deliveries()?.len(), 1)?;
    for one in &got {
        let header = |name: &str| one.headers.get(name).cloned().unwrap_or_default();
        same("path", one.path.as_str(), format!("/{}", hook.project).as_str())?;
        same("body", one.body.as_str(), r#"{"what": "it \"failed\""}"#)?;
        same("token", header("x-token").as_str(), TOKEN)?;
        let at = header("webhook-timestamp").parse().unwrap_or_default();
        same("signature", Some(header("webhook-signature")), sign(KEY, &header("webhook-id"), at, &one.body))?;
        same("the same id for every attempt", &header("webhook-id"), &got[0].headers["webhook-id"])?;
    }
    let log = bed.stack.wait(bed.stack.api().get(&format!("/v1/deliveries/{}/{id}", hook.project)))?.body.to_string();
    ensure(!log.contains("t0ken"), || format!("the log tells a secret: {log}"))
}

const SHIPYARD: &str = "apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shipyard-hooks}
spec: {stages: [{name: dev, sequences: [{name: delivery, tasks: [{name: smoke}]}]}]}
";

fn task(bed: &Bed) -> Outcome {
    let (hook, receiver) = (Hook::new(bed), Receiver::answering(&[])?);
    let stack = &bed.stack;
    stack.wait(stack.api().apply_project(&hook.project, SHIPYARD))?;
    hook.apply(&format!(
        "  events: [sh.keptn.event.smoke.triggered]\n  url: http://127.0.0.1:{}/smoke\n  sendStarted: true\n  sendFinished: true\n",
        receiver.port
    ))?;
    let context = fresh();
    let trigger = Scope::new(&hook.project, "dev", "cart").trigger("delivery", &context, Map::new());
    stack.wait(stack.api().post("/v1/event", &trigger))?.fine("trigger")?;
    let ended = bed.observer.event(&context, "sh.keptn.event.dev.delivery.finished", 0)?;
    same("result", &ended.event["data"]["result"], &json!("pass"))?;
    let finished = bed.observer.event(&context, "sh.keptn.event.smoke.finished", 0)?;
    same("who finished it", &finished.event["source"], &json!("keelway-webhooks"))?;
    let got = receiver.wait(1)?;
    same("content type", got[0].headers["content-type"].as_str(), "application/cloudevents+json")?;
    let sent: Value = serde_json::from_str(&got[0].body).unwrap_or_default();
    same("the event", &json!([sent["type"], sent["shkeptncontext"]]), &json!(["sh.keptn.event.smoke.triggered", context]))
}

fn refused(bed: &Bed) -> Outcome {
    let (hook, receiver) = (Hook::new(bed), Receiver::answering(&["429 Busy\r\nretry-after: 3600", "410 Gone"])?);
    let spec = |url: &str| format!("  events: [dev.keelway.promotion.*]\n  url: {url}\n");
    hook.apply(&spec(&format!("http://127.0.0.1:{}/", receiver.port)))?;
    let told = || hook.event(TOLD, json!({"environment": "prod"}));
    told()?;
    let waits = hook.becomes("an attempt", |delivery| delivery["attempts"][0]["status"] == 429)?;
    // An hour is longer than the delay of a queue: a schedule.
    ensure(waits["nextAttempt"].as_str() > waits["attempts"][0]["at"].as_str(), || waits.to_string())?;
    told()?;
    let path = format!("/v1/webhookSubscriptions/{}/hook", hook.project);
    let disabled = || {
        let state = bed.stack.wait(bed.stack.api().get(&path))?.fine("subscription")?;
        Ok(state["disabled"]["reason"].as_str().map(str::to_owned))
    };
    same("reason", until("it is disabled", disabled, || "it is not".into())?.as_str(), "gone")?;
    bed.stack.wait(bed.stack.api().post(&format!("{path}/resume"), &json!({})))?.fine("resume")?;
    // The local cloud itself, under a name that resolves to this machine, and the metadata service.
    for url in ["https://localhost:4566/", "https://169.254.169.254/latest/meta-data/"] {
        hook.apply(&spec(url))?;
        told()?;
        let error = |delivery: &Value| delivery["attempts"][0]["error"].as_str().unwrap_or_default().to_owned();
        hook.becomes(url, |delivery| error(delivery).contains("is not an address of the public internet"))?;
        let count = hook.deliveries()?.len();
        ensure(count >= 3, || format!("{count} deliveries"))?;
    }
    same("requests", receiver.got().len(), 2)
}
