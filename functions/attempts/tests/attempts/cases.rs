//! The cases of promotions over HTTP: the clients of git hosts and of receivers, as the function has them, against a strict host in
//! each of its forms. The rest of the world is in memory, and its time passes when a case says so.
//!
//! Run are the cases in which a git host has a part: all of them on GitHub and Gitea, and each on GitLab or Bitbucket Server. Those
//! of notifications are run as well. `KEELWAY_CASE=P05` runs one, on all forms.

use crate::receiver::{Receiver, Reply};
use crate::stand::here;
use keelway_attempts::Carrier;
use keelway_conformance::promotions::{PromotionsWorld, Real};
use keelway_domain::address::Address;
use keelway_domain::promotions::definition::{Notification, Strategy};
use keelway_domain::promotions::registry::GitHost as Registered;
use keelway_domain::promotions::{AttemptResult, Closed};
use keelway_domain::time::Timestamp;
use keelway_engine::ports::{Clock, PortError};
use keelway_engine::promotions::attempts::{Outside, Sight, Task};
use keelway_engine::promotions::{Limits, Promotions};
use keelway_engine::secrets::Known;
use keelway_engine::sequences::{self, Sequences};
use keelway_githost::Form;
use keelway_githost_cases::{Act, CaseHost, Of, REPOSITORY, form_of, word};
use keelway_world::at_once::AtOnce;
use keelway_world::case::{Only, project, run};
use keelway_world::exec::block_on;
use keelway_world::promotions::host::{Call, GitHost, Trouble, Verb, Word};
use keelway_world::promotions::{Case, cases};
use keelway_world::worker::Worker;
use serde_json::json;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::runtime::Runtime;

const TOKEN: &str = "t0ken-of-the-cases";
/// Where the repository is, for people.
const NAME: &str = "git.example.com";
/// Each case is told on one of these.
const SHARING: [Form; 2] = [Form::GitLab, Form::Bitbucket];

/// The clients of one worker.
struct Clients {
    carrier: Carrier<AtOnce>,
    /// The same without any secret.
    penniless: Carrier<AtOnce>,
    ports: AtOnce,
    host: CaseHost,
    receiver: Receiver,
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap())
}

fn stopped() -> PortError {
    PortError::Retry { request: "attempt", reason: "stopped".into() }
}

fn of(task: &Task) -> Of {
    let attempt = &task.attempt;
    let (environment, revision) = (attempt.environment.clone(), attempt.revision.clone());
    Of { pipeline: task.of.to_string(), environment, revision, run: attempt.run }
}

impl Clients {
    fn new(worker: &Worker, host: &CaseHost, receiver: &Receiver, namespace: &str) -> Self {
        let secret = Known::default().with(&format!("{namespace}/git"), &json!({ "token": TOKEN }).to_string());
        let carrier = |secrets: &Known| {
            let ports = AtOnce::with(worker.clone(), secrets.clone());
            let pipelines = Promotions::new(ports.clone(), Limits::default());
            Carrier::new(ports.clone(), Sequences::new(ports, sequences::Limits::default()), pipelines, here())
        };
        Self {
            carrier: carrier(&secret),
            penniless: carrier(&Known::default()),
            ports: AtOnce::new(worker.clone()),
            host: host.clone(),
            receiver: receiver.clone(),
        }
    }

    fn carrier(&self) -> &Carrier<AtOnce> {
        if self.host.has_credentials() { &self.carrier } else { &self.penniless }
    }

    fn during<T>(
        &self,
        verbs: &[Verb],
        task: Option<&Task>,
        run: impl Future<Output = Result<T, PortError>>,
    ) -> Result<T, PortError> {
        let act = Act { verbs, of: task.map(of), now: self.ports.now() };
        match self.host.during(&act, || runtime().block_on(run)) {
            (_, true) => Err(stopped()),
            (done, false) => done,
        }
    }

    /// Tells the receiver, whatever the pipeline says of it.
    fn tell(&self, task: &Task) -> Result<AttemptResult, PortError> {
        let trouble = self.host.trouble(Verb::Tell);
        match &trouble {
            Some(Trouble::Status(status)) => self.receiver.answer(Reply::Status(*status, None)),
            Some(Trouble::Word(Word::Lost)) => self.receiver.answer(Reply::Lost),
            _ => {}
        }
        let url = Some(self.receiver.url.clone());
        let task = Task { strategy: Strategy::Notification(Notification { url, secret: None }), ..task.clone() };
        let unexpected = trouble == Some(Trouble::Word(Word::Unexpected));
        let done = if unexpected { Err(stopped()) } else { runtime().block_on(self.carrier.carry_out(&task)) };
        let got = self.receiver.take();
        if got.len() != usize::from(!unexpected) {
            self.host.complain(format!("the receiver was told {} times: {got:?}", got.len()));
        }
        let (id, body) = got.into_iter().next().unwrap_or_default();
        let data = &body["data"];
        self.host.note(Call {
            verb: Verb::Tell,
            pipeline: task.of.to_string(),
            environment: task.attempt.environment.clone(),
            revision: task.attempt.revision.clone(),
            run: task.attempt.run,
            id,
            number: None,
            outcome: trouble.as_ref().map(Trouble::word).unwrap_or_default(),
            details: json!({
                "pipeline": format!("{}/{}", data["project"].as_str().unwrap_or_default(), data["pipeline"].as_str().unwrap_or_default()),
                "environment": data["metadata"]["environment"], "version": data["metadata"]["version"], "again": task.attempt.again,
            }),
        });
        if trouble.is_some() {
            self.host.went_wrong(Verb::Tell);
        }
        if trouble == Some(Trouble::Word(Word::Killed)) { Err(stopped()) } else { done }
    }
}

impl Real for Clients {
    fn carry_out(&self, task: &Task) -> Result<AttemptResult, PortError> {
        match &task.strategy {
            Strategy::Notification(_) => self.tell(task),
            _ => self.during(&[Verb::Open], Some(task), self.carrier().carry_out(task)),
        }
    }
    fn take_back(&self, task: &Task, comment: &str) -> Result<Closed, PortError> {
        self.during(&[Verb::Close], Some(task), self.carrier().take_back(task, comment))
    }
    fn look(&self, repository: &str, tasks: &[Task], mark: Option<&str>) -> Result<Sight, PortError> {
        self.during(&[Verb::Look, Verb::Merge], None, self.carrier().look(repository, tasks, mark))
    }
}

/// Whether a git host has a part in a case, which is so if a pipeline of the case may open pull requests.
fn has_host(case: &Case) -> bool {
    let given = &case.given;
    let named = given.pipeline.iter().chain(given.pipelines.values());
    let manifests = named.map(|name| keelway_world::promotions::pipeline(name).unwrap().to_string());
    let own = json!([given.spec, given.environments]).to_string();
    manifests.chain([own]).any(|text| text.contains("pullRequest") || text.contains("pull-request"))
}

fn has_sequences(case: &Case) -> bool {
    case.given.pipeline.as_deref() == Some("sequences")
}

/// Tells a case on a host of this form.
fn tell(form: Form, case: &Case) -> Result<(), String> {
    let namespace = project(&case.id, "p", "");
    let host = CaseHost::start(form, NAME, TOKEN, (&namespace, &case.given.names()))?;
    let (clients_host, receiver, clients_namespace) = (host.clone(), Receiver::start(), namespace.clone());
    let clients =
        move |worker: &Worker| Arc::new(Clients::new(worker, &clients_host, &receiver, &clients_namespace)) as Arc<dyn Real>;
    // A host's Retry-After counts from the time of day.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let mut world = PromotionsWorld::real(host.clone(), Timestamp(i64::try_from(now).unwrap()), clients);
    if std::env::var("KEELWAY_CASE").is_ok() {
        world.story.world.core().trace = Some(vec![]);
    }
    let registered =
        Registered { host: NAME.into(), form: host.form().into(), api: host.api(), secret: None, webhook_secret: None };
    block_on(world.api.decides.git_hosts().apply(&Address::parse("git"), &registered, "")).map_err(|error| error.to_string())?;
    let told = run(case, &mut world).map_err(|failure| failure.to_string());
    let mut broken = world.host.broken();
    broken.extend(world.story.broken.iter().cloned());
    told.and(if broken.is_empty() { Ok(()) } else { Err(format!("{}, at its end: {}", case.id, broken.join("\n"))) }).map_err(
        |what| {
            let trace = world.story.world.core().trace.take().unwrap_or_default().join("\n");
            format!("{trace}{form:?}: {what}\n  ({})", case.title)
        },
    )
}

fn wanted() -> Vec<Case> {
    let wanted = std::env::var("KEELWAY_CASE").ok();
    let mut cases = cases().unwrap_or_else(|error| panic!("{error}"));
    cases.retain(|case| wanted.as_ref().is_none_or(|id| *id == case.id));
    cases
}

fn all_on(form: Form, cases: &[Case]) {
    let word = word(form);
    let (without, with): (Vec<&Case>, Vec<&Case>) = cases.iter().partition(|case| case.given.without.contains_key(word));
    let failures: Vec<String> = with.iter().filter_map(|case| tell(form, case).err()).collect();
    println!("{} cases over HTTP on {word}, {} failed", with.len(), failures.len());
    for case in without {
        println!("not run on {word}: {}: {}", case.id, case.given.without[word]);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

fn with_host() -> Vec<Case> {
    wanted().into_iter().filter(|case| has_host(case) && case.only != Some(Only::Cloud)).collect()
}

#[test]
fn every_case_with_a_host_on_github() {
    all_on(Form::GitHub, &with_host());
}

#[test]
fn every_case_with_a_host_on_gitea() {
    all_on(Form::Gitea, &with_host());
}

/// These share the cases: what a case costs is Git's own work, which is the same on all forms. One that is asked for is told on
/// both.
fn shared(form: Form) -> Vec<Case> {
    let mut cases = with_host();
    let all = cases.len() == 1;
    let chosen = |case: &Case| form_of(&case.id, &SHARING, |form| !case.given.without.contains_key(word(form)));
    cases.retain(|case| all || chosen(case).is_none_or(|chosen| chosen == form));
    cases
}

#[test]
fn some_cases_with_a_host_on_gitlab() {
    all_on(Form::GitLab, &shared(Form::GitLab));
}

#[test]
fn the_other_cases_with_a_host_on_bitbucket_server() {
    all_on(Form::Bitbucket, &shared(Form::Bitbucket));
}

/// No form of host matters to these.
#[test]
fn every_case_of_notifications() {
    let mut cases = wanted();
    cases.retain(|case| !has_host(case) && !has_sequences(case) && case.only.is_none());
    all_on(Form::Gitea, &cases);
}

/// The cases see what Keelway should not have done.
#[test]
fn what_no_call_explains_is_told() {
    let mut host = CaseHost::start(Form::Gitea, NAME, TOKEN, ("x-p", &["app"])).unwrap();
    let file: &[u8] = b"more\n";
    host.host().people().commit(REPOSITORY, "promotion/staging/1", "more", &[("more.txt", Some(file))]).unwrap();
    let mut post = |path: &str, body: serde_json::Value| {
        let url = format!("{}/repos/{REPOSITORY}/{path}", host.api());
        let request = reqwest::Client::new().post(url).header("authorization", format!("token {TOKEN}")).json(&body);
        let act = Act { verbs: &[], of: None, now: Timestamp(0) };
        let (status, _) = host.during(&act, || runtime().block_on(async { request.send().await.unwrap().status().as_u16() }));
        assert_eq!(status, 201, "{path}");
        host.broken().join("\n")
    };
    let open = |body: &str| json!({"title": "t", "head": "promotion/staging/1", "base": "main", "body": body});
    let told = post("pulls", open("Pipeline `x-p/app` promotes `v2` into `staging`.\n\n(run 2)"));
    assert!(told.contains("changes [\"more.txt\"]"), "{told}");
    let told = post("issues/1/comments", json!({"body": "one"}));
    assert!(told.contains("a comment on 1, which is not being closed"), "{told}");
    let told = post("issues/1/comments", json!({"body": "two"}));
    assert!(told.contains("1 has 2 comments"), "{told}");
    let (calls, _) = host.fresh();
    assert_eq!(calls.iter().map(Call::line).collect::<Vec<_>>(), ["open staging v2"]);
}
