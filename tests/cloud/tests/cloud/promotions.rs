//! Promotions through template and binaries, each function under its own role: notifications, sequences, pull requests on a git
//! host.

use crate::bed::Bed;
use crate::failures::{sweep, tick};
use keelway_cloud_tests::cloud::now_millis;
use keelway_cloud_tests::events::{answer, fresh};
use keelway_cloud_tests::patience::until;
use keelway_cloud_tests::problem::{ensure, same};
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Outcome, Problem, Stack};
use keelway_engine::keys as engine_keys;
use keelway_engine::promotions::keys;
use keelway_githost::{Action, Fault, Form, Host, Method, Options, State, Webhook};
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};

const TOKEN: &str = "t0ken-of-the-cloud-test";
const WEBHOOK: &str = "s3cret-of-the-webhook";
const REPOSITORY: &str = "shop/config";

pub fn tests() -> Vec<Test<Bed>> {
    vec![
        Test::new("promotions::pull requests on a git host, one of them approved by a person", pull_requests),
        Test::new("promotions::a host that wants peace for an hour has it", patient),
        Test::new("promotions::a sequence carries out a promotion", by_sequence),
        Test::new("promotions::the bus is told, and observations come over it", by_notification),
        Test::new("promotions::a deleted pipeline is gone", deleted),
        Test::new("promotions::what nobody can handle ends as a dead letter, whichever queue it is in", dead_letters),
        Test::new("promotions::the observer reads what pipelines name in a registered cluster", observed),
    ]
}

pub struct Pipeline<'a> {
    bed: &'a Bed,
    pub namespace: String,
}

impl<'a> Pipeline<'a> {
    pub fn new(bed: &'a Bed) -> Self {
        Self { bed, namespace: format!("promotions-{}", &fresh()[24..]) }
    }

    pub fn stack(&self) -> &'a Stack {
        &self.bed.stack
    }

    pub fn path(&self, rest: &str) -> String {
        format!("/v1/pipelines/{}/cart{rest}", self.namespace)
    }

    /// `spec` begins at the environments.
    pub fn apply(&self, spec: &str) -> Outcome {
        let text = format!(
            "apiVersion: pipelines.weave.works/v1alpha1\nkind: Pipeline\nmetadata:\n  name: cart\n  namespace: {}\nspec:\n  appRef: {{apiVersion: \
             helm.toolkit.fluxcd.io/v2, kind: HelmRelease, name: cart}}\n{spec}",
            self.namespace
        );
        self.stack().wait(self.stack().api().apply(None, &text))?.fine("apply").map(drop)
    }

    pub fn secret(&self, namespace: &str, name: &str, text: &str) -> Outcome {
        self.bed.secret(namespace, name, text)
    }

    pub fn observe(&self, environment: &str, revision: &str) -> Outcome {
        let object = json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"name": "cart", "namespace": environment_of(&self.namespace, environment), "generation": 3},
            "status": {"lastAppliedRevision": revision, "observedGeneration": 3,
                "conditions": [{"type": "Ready", "status": "True", "reason": "Succeeded", "observedGeneration": 3}]},
        });
        self.stack().wait(self.stack().api().post("/v1/observations", &object))?.fine("observe").map(drop)
    }

    fn all_observe(&self, revision: &str) -> Outcome {
        ["dev", "staging", "prod"].iter().try_for_each(|environment| self.observe(environment, revision))
    }

    pub fn status(&self) -> Result<Value, Problem> {
        self.stack().wait(self.stack().api().get(&self.path("")))?.fine("status")
    }

    /// Waits until the promotion into an environment is in this phase with this revision.
    pub fn becomes(&self, environment: &str, revision: &str, phase: &str) -> Result<Value, Problem> {
        let found = || {
            let status = self.status()?;
            let all = status["environments"].as_array().cloned().unwrap_or_default();
            let promotion = all.iter().find(|state| state["name"] == environment).map(|state| state["promotion"].clone());
            Ok(promotion.filter(|promotion| promotion["phase"] == phase && promotion["revision"] == revision))
        };
        until(&format!("{environment} {revision} {phase}"), found, || {
            self.status().map_or_else(|e| e.0, |status| status.to_string())
        })
    }

    fn event(&self, ty: &str) -> Result<Value, Problem> {
        let keys = HashSet::from([self.namespace.clone()]);
        let found = |observer: &keelway_cloud_tests::observer::Observer| {
            observer.events(&keys).into_iter().find(|seen| seen.event["type"] == ty).map(|seen| seen.event.clone())
        };
        self.bed.observer.wait(ty, found)
    }
}

/// Targets of different tests are different ones.
fn environment_of(namespace: &str, environment: &str) -> String {
    format!("{environment}-{namespace}")
}

pub fn environments(namespace: &str, names: &[&str], last: &str) -> String {
    let environment = |name: &&str| {
        let more = if names.last() == Some(name) { last } else { "" };
        format!("  - name: {name}\n    targets: [{{namespace: {}}}]\n{more}", environment_of(namespace, name))
    };
    format!("  environments:\n{}", names.iter().map(environment).collect::<String>())
}

fn file(namespace: &str) -> String {
    format!(
        "# versions\nstaging: {{\"a\": 1}}\nimage:\n  staging: v1 # {{\"$promotion\": \"{namespace}:cart:staging\"}}\n  prod: 'v1' # \
         {{\"$promotion\": \"{namespace}:cart:prod\"}}\n"
    )
}

/// A git host, registered under a name of the test's own.
fn host_for(pipeline: &Pipeline<'_>, directory: &std::path::Path) -> Result<Host, Problem> {
    let host = Host::start(Options::new(directory, TOKEN)).map_err(|error| Problem::of("git host", error))?;
    let content = file(&pipeline.namespace);
    host.people()
        .create(REPOSITORY, &[("versions.yaml", &content)])
        .map_err(|error| Problem::of("repository", format!("{error:?}")))?;
    let text = format!(
        "apiVersion: keelway.dev/v1\nkind: GitHost\nmetadata: {{name: {0}}}\nspec:\n  host: {0}.example.com\n  type: gitea\n  api: {1}\n  webhookSecretRef: {{name: {0}}}\n",
        pipeline.namespace,
        host.api(Form::Gitea)
    );
    pipeline.stack().wait(pipeline.stack().api().apply(None, &text))?.fine("apply the host")?;
    pipeline.secret(&pipeline.namespace, "git", &json!({ "token": TOKEN }).to_string())?;
    pipeline.secret("-", &pipeline.namespace, WEBHOOK)?;
    let webhook = Webhook {
        url: format!("{}/v1/webhooks/{}", pipeline.stack().api().url, pipeline.namespace),
        secret: WEBHOOK.into(),
        form: None,
    };
    host.people().set_webhook(REPOSITORY, Some(webhook)).map_err(|error| Problem::of("webhook", format!("{error:?}")))?;
    Ok(host)
}

fn by_request(namespace: &str, manual: bool) -> String {
    let strategy = format!(
        "strategy: {{pullRequest: {{type: gitea, url: 'https://{namespace}.example.com/{REPOSITORY}', baseBranch: main, secretRef: {{name: \
         git}}}}}}"
    );
    let last = if manual { format!("    promotion:\n      manual: true\n      {strategy}\n") } else { String::new() };
    format!("{}  promotion:\n    {strategy}\n", environments(namespace, &["dev", "staging", "prod"], &last))
}

fn temporary() -> Result<tempfile::TempDir, Problem> {
    tempfile::tempdir().map_err(|error| Problem::of("directory", error))
}

fn pull_requests(bed: &Bed) -> Outcome {
    let (pipeline, directory) = (Pipeline::new(bed), temporary()?);
    let host = host_for(&pipeline, directory.path())?;
    pipeline.apply(&by_request(&pipeline.namespace, true))?;
    pipeline.all_observe("v1")?;
    pipeline.observe("dev", "v2")?;
    let promotion = pipeline.becomes("staging", "v2", "created")?;
    ensure(promotion.to_string().contains("/pulls/1"), || format!("no URL in {promotion}"))?;
    // A newer revision replaces it.
    pipeline.observe("dev", "v3")?;
    pipeline.becomes("staging", "v3", "created")?;
    let states =
        || host.people().pulls(REPOSITORY).map(|all| all.iter().map(|pull| pull.state).collect::<Vec<_>>()).unwrap_or_default();
    until(
        "the first one is closed",
        || Ok((states() == [State::Closed, State::Open]).then_some(())),
        || format!("{:?}", states()),
    )?;
    host.people().merge(REPOSITORY, 2, Method::Squash).map_err(|error| Problem::of("merge", format!("{error:?}")))?;
    pipeline.becomes("staging", "v3", "succeeded")?;
    pipeline.observe("staging", "v3")?;
    pipeline.becomes("prod", "v3", "waiting")?;
    let decide = |revision: &str| {
        let path = pipeline.path(&format!("/environments/prod/revisions/{revision}/approval"));
        pipeline.stack().wait(pipeline.stack().api().post(&path, &json!({"by": "anna"})))
    };
    ensure((400..500).contains(&decide("v2")?.status), || "an approval of an older revision was taken".into())?;
    decide("v3")?.fine("approve")?;
    pipeline.becomes("prod", "v3", "created")?;
    same("pull requests", &states(), &vec![State::Closed, State::Merged, State::Open])?;
    ensure(host.violations().is_empty(), || format!("{:?}", host.violations()))?;
    let history = pipeline.stack().wait(pipeline.stack().api().get(&pipeline.path("/history")))?.fine("history")?;
    ensure(history.to_string().contains("\"v2\""), || format!("the superseded one is missing in {history}"))
}

fn patient(bed: &Bed) -> Outcome {
    let (pipeline, directory) = (Pipeline::new(bed), temporary()?);
    let host = host_for(&pipeline, directory.path())?;
    pipeline.apply(&by_request(&pipeline.namespace, false))?;
    pipeline.all_observe("v1")?;
    host.fail(Fault::next("*", "*", Action::RateLimit { retry_after: 3600, secondary: true }));
    pipeline.observe("dev", "v2")?;
    let promotion = pipeline.becomes("staging", "v2", "failed")?;
    same("reason", &promotion["reason"], &json!("RateLimited"))?;
    // A person knows better.
    let asked = json!({"command": "retry", "environment": "staging"});
    pipeline.stack().wait(pipeline.stack().api().post(&pipeline.path("/commands"), &asked))?.fine("retry")?;
    pipeline.becomes("staging", "v2", "created")?;
    // The next look is refused as well: it is repeated after an hour, by a schedule. A webhook does not go round that.
    host.fail(Fault::next("GET", "*", Action::RateLimit { retry_after: 3600, secondary: true }));
    let url = format!("https://{}.example.com/{REPOSITORY}", pipeline.namespace);
    let planned = || Ok::<_, Problem>(pipeline.stack().item(&keys::repository(&url))?.and_then(|item| item.number("next")));
    let later = now_millis() + 30 * 60_000;
    until("a look in an hour", || Ok(planned()?.filter(|next| *next > later)), || format!("{:?} {:?}", planned(), host.calls()))?;
    host.take_calls();
    let before = host.deliveries().len();
    host.people().close(REPOSITORY, 1).map_err(|error| Problem::of("close", format!("{error:?}")))?;
    let answer = || host.deliveries().get(before).map(|delivery| delivery.status);
    same("the webhook", until("the webhook", || Ok(answer()), || format!("{:?}", host.deliveries()))?, 202)?;
    same("requests to a host that wants peace", host.calls().len(), 0)
}

const SHIPYARD: &str = "apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shipyard-promotions}
spec: {stages: [{name: staging, sequences: [{name: delivery, tasks: [{name: deploy}]}]}]}
";

fn by_sequence(bed: &Bed) -> Outcome {
    let pipeline = Pipeline::new(bed);
    let stack = pipeline.stack();
    stack.wait(stack.api().apply_project(&pipeline.namespace, SHIPYARD))?;
    let spec = environments(&pipeline.namespace, &["dev", "staging", "prod"], "");
    pipeline.apply(&format!("{spec}  promotion:\n    strategy: {{sequence: {{service: cart}}}}\n"))?;
    pipeline.all_observe("v1")?;
    pipeline.observe("dev", "v2")?;
    pipeline.becomes("staging", "v2", "created")?;
    let trigger = pipeline.event("sh.keptn.event.deploy.triggered")?;
    same("image", &trigger["data"]["configurationChange"]["values"]["image"], &json!("v2"))?;
    for kind in ["started", "finished"] {
        stack.put_event(&answer(&trigger, kind, "executor", Map::new()))?;
    }
    pipeline.becomes("staging", "v2", "succeeded")?;
    // Another one is aborted by a newer revision.
    pipeline.observe("dev", "v3")?;
    pipeline.becomes("staging", "v3", "created")?;
    pipeline.observe("dev", "v4")?;
    pipeline.becomes("staging", "v4", "created").map(drop)
}

fn by_notification(bed: &Bed) -> Outcome {
    let pipeline = Pipeline::new(bed);
    let spec = environments(&pipeline.namespace, &["dev", "staging"], "");
    // The soak takes longer than a queue's delay: a schedule wakes the pipeline.
    let spec = spec.replacen("    targets", "    soak: 1h\n    targets", 1);
    pipeline.apply(&format!("{spec}  promotion:\n    strategy: {{notification: {{}}}}\n"))?;
    let fact = |environment: &str, revision: &str| {
        json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "name": "cart",
            "namespace": environment_of(&pipeline.namespace, environment), "revision": revision, "ready": true,
        })
    };
    let event = json!({
        "specversion": "1.0", "id": fresh(), "source": "flux", "type": "dev.keelway.target.observed",
        "time": "2026-11-22T12:00:00Z", "datacontenttype": "application/json",
        "data": {"facts": [fact("staging", "v1"), fact("dev", "v2")]},
    });
    pipeline.stack().put_event(&event)?;
    let promotion = pipeline.becomes("staging", "v2", "waiting")?;
    same("reason", &promotion["reason"], &json!("Soaking"))?;
    pipeline.apply(&format!(
        "{}  promotion:\n    strategy: {{notification: {{}}}}\n",
        environments(&pipeline.namespace, &["dev", "staging"], "")
    ))?;
    pipeline.becomes("staging", "v2", "succeeded")?;
    let needed = pipeline.event("dev.keelway.promotion.needed")?;
    same("metadata", &needed["data"]["metadata"], &json!({"environment": "staging", "version": "v2"}))
}

fn deleted(bed: &Bed) -> Outcome {
    let (pipeline, directory) = (Pipeline::new(bed), temporary()?);
    let host = host_for(&pipeline, directory.path())?;
    pipeline.apply(&by_request(&pipeline.namespace, false))?;
    pipeline.all_observe("v1")?;
    pipeline.observe("dev", "v2")?;
    pipeline.becomes("staging", "v2", "created")?;
    let api = pipeline.stack().api();
    let delete = |path: &str| {
        pipeline.stack().wait(api.request(reqwest::Method::DELETE, path, Some(&api.token), None))?.fine("delete").map(drop)
    };
    delete(&pipeline.path(""))?;
    let state = || host.people().pull(REPOSITORY, 1).map(|pull| pull.state);
    until(
        "its pull request is closed",
        || Ok(state().is_ok_and(|state| state == State::Closed).then_some(())),
        || format!("{:?}", state()),
    )?;
    delete(&format!("/v1/githosts/{}", pipeline.namespace))
}

fn dead_letters(bed: &Bed) -> Outcome {
    let stack = &bed.second()?.stack;
    let send = |queue: &str, body: String| {
        let request = stack.sqs().send_message().queue_url(stack.output(queue)).message_body(body);
        stack.wait(request.send()).map(drop).map_err(|error| Problem::of(queue, format!("{error:?}")))
    };
    let engines = ["Promotions", "Attempts", "Observer", "Deployments", "Deployers", "Webhooks"];
    let marks: Vec<String> = engines.iter().map(|_| fresh()).collect();
    for (engine, mark) in engines.iter().zip(&marks) {
        let queue = &format!("{engine}QueueUrl");
        send(queue, json!({"keelway": "from-the-future", "mark": mark}).to_string())?;
        // This one is recorded as invalid, and nothing more.
        send(queue, format!("no message {mark}"))?;
    }
    for (engine, mark) in engines.iter().zip(&marks) {
        // Nobody knocked for these messages, nor for their dead letters.
        let found = || {
            sweep(bed, stack)?;
            let letters = stack.items(engine_keys::DEAD_LETTERS, "")?;
            Ok(letters.into_iter().find(|letter| letter.text("b").is_some_and(|body| body.contains(mark.as_str()))))
        };
        let letter = until("a dead letter", found, || mark.clone())?;
        ensure(letter.text("to") == Some(&engine.to_lowercase()), || format!("it is for {engine}: {letter:?}"))?;
    }
    Ok(())
}

/// What was asked of the cluster.
type Asked = Arc<Mutex<Vec<String>>>;

/// A Kubernetes API with one kind of objects, all of them healthy on one revision. Its address, and the paths that were asked for.
fn cluster(revision: &'static str) -> Result<(String, Asked), Problem> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| Problem::of("cluster", error))?;
    let url = format!("http://{}", listener.local_addr().map_err(|error| Problem::of("cluster", error))?);
    let asked = Asked::default();
    let paths = asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(&stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty());
            let path = lines.next().and_then(|line| line.split(' ').nth(1).map(str::to_owned)).unwrap_or_default();
            let authorized = lines.any(|line| line.eq_ignore_ascii_case(&format!("authorization: Bearer {TOKEN}")));
            let body = match path.rsplit_once('/') {
                Some((_, "v2")) => json!({
                    "kind": "APIResourceList", "groupVersion": "helm.toolkit.fluxcd.io/v2",
                    "resources": [{"name": "helmreleases", "kind": "HelmRelease", "namespaced": true, "verbs": ["get"]}],
                }),
                _ => json!({
                    "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
                    "metadata": {"name": "cart", "namespace": path.split('/').nth(5), "generation": 1},
                    "status": {"lastAppliedRevision": revision, "observedGeneration": 1,
                        "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}]},
                }),
            };
            let status = if authorized { "200 OK" } else { "401 Unauthorized" };
            let body = body.to_string();
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            paths.lock().unwrap_or_else(PoisonError::into_inner).push(path);
            // A client that has gone needs no answer.
            let _gone = (&stream).write_all(format!("{head}{body}").as_bytes());
        }
    });
    Ok((url, asked))
}

fn observed(bed: &Bed) -> Outcome {
    let pipeline = Pipeline::new(bed);
    let (url, asked) = cluster("v7")?;
    let namespace = &pipeline.namespace;
    pipeline.secret(namespace, "kube", &json!({ "token": TOKEN }).to_string())?;
    let text = format!(
        "apiVersion: keelway.dev/v1\nkind: Cluster\nmetadata: {{name: one, namespace: {namespace}}}\nspec:\n  server: {url}\n  secretRef: {{name: kube}}\n"
    );
    pipeline.stack().wait(pipeline.stack().api().apply(None, &text))?.fine("apply the cluster")?;
    let target = |environment: &str| {
        format!("  - name: {environment}\n    targets: [{{namespace: {environment}, clusterRef: {{kind: Cluster, name: one}}}}]\n")
    };
    pipeline.apply(&format!(
        "  environments:\n{}{}  promotion:\n    strategy: {{notification: {{}}}}\n",
        target("dev"),
        target("staging")
    ))?;
    tick(bed, &bed.stack, "ObserverFunctionName")?;
    let seen = || Ok((pipeline.status()?["latestRevision"] == "v7").then_some(()));
    let paths = || asked.lock().unwrap_or_else(PoisonError::into_inner).clone();
    until("the revision that the cluster reports", seen, || format!("{:?} {:?}", pipeline.status(), paths()))?;
    let named = |path: &String| {
        path.ends_with("/v2") || path.ends_with("/dev/helmreleases/cart") || path.ends_with("/staging/helmreleases/cart")
    };
    ensure(paths().iter().all(named), || format!("more was read than pipelines name: {:?}", paths()))?;
    // Once more on demand.
    let path = format!("/v1/clusters/{namespace}/one/observe");
    same("observe", pipeline.stack().wait(pipeline.stack().api().post(&path, &json!({})))?.status, 202)
}
