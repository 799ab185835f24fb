//! An installation in which there is something of everything, so that requests meet what exists.

use crate::deployments::versions::{SOURCE, manifest as config, push, say, settle, wrapped};
use crate::pipelines::applied::{BY_REQUEST, begin as begin_promotions, manual};
use crate::stand::Stand;
use crate::webhooks::subscriptions::{SLACK, deliver_to};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::protocol::{dead_letter, invalid};
use keelway_engine::secrets::Known;
use keelway_engine::sequences::Limits;
use serde_json::{Value, json};
use std::time::Duration;

/// The secrets that no answer may have.
pub const SECRETS: [&str; 3] = ["hook-s3cret", "registry-s3cret", "approval-s3cret"];

/// A project that takes no more executors.
pub const FULL: &str = "full";
/// Services whose release waits for an approval.
pub const WAITING: [&str; 3] = ["api", "jobs", "mail"];
const DEV: &str = "
    - name: dev
      sequences:
        - name: delivery
          tasks: [{name: deployment}, {name: test}]
        - name: evaluation
          tasks: [{name: evaluation}]
";
const PROD: &str = "    - name: prod
      sequences:
        - name: release
          tasks: [{name: approval, properties: {pass: manual, warning: manual}}, {name: deployment}]
";
const LATE: &str = "    - name: late
      windows:
        - {kind: deny, from: 2026-11-20T12:00, until: 2026-11-20T18:00, zone: Europe/Berlin, reason: quarter end}
      sequences:
        - name: delivery
          tasks: [{name: deployment}]
";
const SCHEDULE: &str = "apiVersion: keelway.dev/v1\nkind: Schedule\nmetadata: {name: nightly}\nspec:\n  project: shop\n  stage: dev\n  services: [cart]\n  \
                        sequence: evaluation\n  cron: '0 3 * * *'\n";
const REGISTERED: &str = "apiVersion: keelway.dev/v1\nkind: Cluster\nmetadata: {name: prod, namespace: shop}\nspec:\n  server: https://10.0.0.1:6443\n  \
                          secretRef: {name: prod-token}\n---\napiVersion: keelway.dev/v1\nkind: GitHost\nmetadata: {name: forge}\nspec:\n  host: \
                          git.test\n  type: gitea\n  api: https://git.test/api/v1\n  webhookSecretRef: {name: hook}\n---\napiVersion: keelway.dev/v1\nkind: MetricsSource\nmetadata: {name: cloud, \
                          namespace: shop}\nspec: {cloudwatch: {}}\n";

/// The installation, and the names of what is there.
pub struct Furnished {
    pub stand: Stand,
    /// Tokens that may do little.
    pub weak: Vec<String>,
    /// One whose sequence failed, one whose task is open, and those that wait for an approval.
    pub contexts: Vec<String>,
    pub approvals: Vec<String>,
    /// One that has ended.
    evaluation: String,
    check: String,
    deliveries: Vec<String>,
    /// The open trigger of a deployment.
    pub open: Value,
    /// The tokens of attempts, of one that is on its way and one that has ended.
    pub attempts: Vec<String>,
    integration: String,
    subscription: String,
    letters: Vec<String>,
    revisions: Vec<String>,
}

/// A shipyard of project `shop`; without `dev`, of which something is open, it is refused.
pub fn shipyard(with_dev: bool, remark: u64) -> String {
    let stages = if with_dev { format!("{DEV}{PROD}{LATE}") } else { format!("{PROD}{LATE}") };
    format!(
        "apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nmetadata:\n  name: shipyard-shop\nspec:\n  stages:\n{}# {remark}\n",
        stages.trim_start_matches('\n')
    )
}

/// What is applied to begin with, and again when something of it was deleted.
pub fn manifests() -> String {
    let lost = config("lost", "x", true).replace("cart:latest", "nowhere:latest");
    let halted = config("halted", "x", true).replace("  replicas: 2\n", "  replicas: 2\n  paused: true\n");
    let shared = ["cart", "idle", "fresh"].map(|name| config(name, "x", true)).join("---\n");
    format!(
        "{REGISTERED}---\n{SCHEDULE}---\n{SLACK}---\n{SOURCE}---\n{lost}---\n{halted}---\n{shared}---\n{}",
        crate::pipelines::applied::manifest("carts", &manual(""))
    )
}

/// Everything.
pub async fn furnish() -> Furnished {
    let [hook, registry, approvals] = SECRETS;
    let keys = |key: &str| json!({"keys": [{"id": "k", "key": key}]}).to_string();
    let secrets =
        Known::default().with("-/hook", hook).with("shop/registry", &keys(registry)).with("shop/approvals", &keys(approvals));
    let mut stand = Stand::with_secrets(Limits::default(), Duration::from_secs(2), secrets);
    let stages = |stages: &str| stages.trim_start_matches('\n').to_owned();
    for shop in [PROD.to_owned(), stages(&format!("{DEV}{PROD}{LATE}")), stages(&format!("{DEV}{PROD}{LATE}# again\n"))] {
        stand.apply("shop", &shop).await;
    }
    let full = format!(
        "apiVersion: keelway.dev/v1\nkind: Project\nmetadata: {{name: {FULL}}}\nspec: {{policy: {{quotas: {{integrations: 1}}}}}}\n"
    );
    stand.manifests(&full).await;
    let failed = stand.trigger("shop", "dev", "delivery", "cart").await;
    stand.execute("deployment", "fail").await;
    let waits = stand.trigger("shop", "dev", "delivery", "web").await;
    let mut contexts = vec![failed, waits];
    for service in WAITING {
        contexts.push(stand.trigger("shop", "prod", "release", service).await);
    }
    let waiting = stand.get("/v1/event/triggered/approval").await.json();
    let of = |context: &String| {
        let mut events = waiting["events"].as_array().unwrap().iter();
        events.find(|event| event["shkeptncontext"] == json!(context)).unwrap()["id"].as_str().unwrap().to_owned()
    };
    let approvals = contexts[2..].iter().map(of).collect();
    // One that is open, and one that is promoted without an approval.
    stand.manifests(&crate::pipelines::applied::manifest("orders", BY_REQUEST)).await;
    let open = stand.open("deployment").await;
    begin_promotions(&mut stand, &manual("")).await;
    let attempts = deployments(&mut stand).await;
    let register = json!({"name": "helm-service", "metadata": {"hostname": "node-1"}, "subscriptions": [{"event": "sh.keptn.event.test.triggered"}]});
    let filter = json!({"projects": [FULL]});
    let only = json!({"name": "only", "metadata": {"hostname": "h"}, "subscriptions": [{"event": "sh.keptn.event.test.triggered", "filter": filter}]});
    assert_eq!(stand.post("/v1/uniform/registration", &only).await.status, 201);
    let registered = stand.post("/v1/uniform/registration", &register).await.json()["id"].as_str().unwrap().to_owned();
    let subscriptions = stand.get(&format!("/v1/uniform/registration/{registered}/subscription")).await.json();
    let logs = json!({"logs": [{"integrationid": registered, "message": "m", "time": "2026-11-20T12:00:00Z"}]});
    assert_eq!(stand.post("/v1/log", &logs).await.status, 200);
    for scope in ["", "/stage/dev", "/stage/dev/service/cart"] {
        let body = json!({"resources": [{"resourceURI": "slo.yaml", "resourceContent": "eA=="}]});
        assert_eq!(stand.post(&format!("/v1/project/shop{scope}/resource"), &body).await.status, 201);
    }
    assert_eq!(stand.post("/v1/project/shop/service", &json!({"serviceName": "unused"})).await.status, 200);
    let mut weak = vec![];
    for scope in ["read", "trigger", "execute:none", "approve:none", "administer"] {
        weak.push(stand.token(&format!("weak-{}", scope.split(':').next().unwrap()), &[scope], &["elsewhere"]).await);
    }
    stand.token("ci", &["read"], &[]).await;
    contexts.push(stand.trigger("shop", "late", "delivery", "late").await);
    let gone = SLACK.replace("name: slack,", "name: gone,");
    stand.manifests(&gone).await;
    // The last one disables its subscription.
    let mut deliveries = vec![];
    for (name, event, status) in [("slack", "e1", 200), ("slack", "e2", 500), ("gone", "e3", 410)] {
        deliveries.push(deliver_to(&stand, name, event, status).await);
    }
    // Without objectives, it ends at once.
    let place = "/v1/project/shop/stage/dev/service/judged/evaluation";
    stand.post("/v1/project/shop/service", &json!({"serviceName": "judged"})).await;
    assert_eq!(stand.post(place, &json!({})).await.status, 200);
    stand.work().await;
    let evaluation = stand.get(place).await.json()["items"][0]["id"].as_str().unwrap().to_owned();
    let check = stand.post("/v1/checks", &Value::Null).await.json()["id"].as_str().unwrap().to_owned();
    stand.apply("blog", &stages(DEV)).await;
    let letters = letters(&stand).await;
    let page = stand.get("/v1/project/shop/shipyard/revisions").await.json();
    let revision = |one: &Value| one["revision"].as_str().unwrap().to_owned();
    Furnished {
        stand,
        weak,
        contexts,
        approvals,
        evaluation,
        check,
        deliveries,
        open,
        attempts,
        integration: registered,
        subscription: subscriptions[0]["id"].as_str().unwrap().to_owned(),
        letters,
        revisions: page["items"].as_array().unwrap().iter().map(revision).collect(),
    }
}

/// `cart` has version 1, and version 2 on its way; `idle` has two versions that are complete, `fresh` one that nobody has claimed,
/// `lost` none.
async fn deployments(stand: &mut Stand) -> Vec<String> {
    stand.manifests(&manifests()).await;
    push(stand, 1).await;
    take(stand, "cart", 1, true).await;
    take(stand, "idle", 1, true).await;
    stand.manifests(&config("idle", "y", true)).await;
    settle(stand).await;
    let ended = take(stand, "idle", 2, true).await;
    stand.manifests(&wrapped("cart", "y")).await;
    settle(stand).await;
    vec![take(stand, "cart", 2, false).await, ended]
}

/// Claims a version, and perhaps carries it out; the attempt's token.
async fn take(stand: &mut Stand, config: &str, n: u64, whole: bool) -> String {
    let path = format!("/v1/deployments/shop:{config}-{n}");
    let claimed = stand.post(&format!("{path}/claim"), &json!({"by": "ci"})).await;
    assert_eq!(claimed.status, 200, "{path}: {claimed:?}");
    let token = claimed.json()["token"].as_str().unwrap().to_owned();
    if whole {
        assert_eq!(say(stand, &format!("{path}/finish"), &token, &json!({"exitCode": 0})).await.status, 200);
        settle(stand).await;
    }
    token
}

async fn letters(stand: &Stand) -> Vec<String> {
    let mut ids = vec![];
    for (n, length) in [(1, 20), (2, 400_000), (3, 20)] {
        let sent = Timestamp(1_795_172_266_000 + n);
        let letter = dead_letter::DeadLetter {
            engine: "promotions".into(),
            queue: "shop-promotions".into(),
            message_id: format!("m-{n}"),
            sent,
            body: "x".repeat(length),
            receives: 10,
            reason: None,
        };
        dead_letter::store(&stand.world.worker(7), &letter).await.unwrap();
        ids.push(format!("{}-m-{n}", sent.0));
    }
    let now = stand.world.now();
    invalid::record(&stand.world.worker(7), Span::minutes(600), now, "no JSON: send a CloudEvent", "{").await.unwrap();
    ids
}

impl Furnished {
    /// Names of what exists, for a parameter of a path.
    pub fn known(&self, path: &str, name: &str) -> Vec<String> {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let begins = |start: &str| path.starts_with(start);
        match name {
            "project" if path == "/v1/project/{project}" => texts(&["shop", "blog"]),
            "project" => texts(&["shop"]),
            "namespace" => texts(&["shop"]),
            "stage" => texts(&["dev", "prod"]),
            "service" => texts(&["cart", "web", "unused", "judged"]),
            "context" | "keptnContext" => self.contexts.clone(),
            "trigger" => self.approvals.clone(),
            "type" => texts(&["deployment", "approval,test", "sh.keptn.event.deployment.triggered"]),
            "token" => texts(&["ci", "weak-read"]),
            "id" if begins("/v1/project") => vec![self.evaluation.clone()],
            "id" if begins("/v1/deliveries") => self.deliveries.clone(),
            "id" if begins("/v1/uniform") => vec![self.integration.clone()],
            "id" if begins("/v1/checks") => vec![self.check.clone()],
            "id" if begins("/v1/dead-letters") => self.letters.clone(),
            "id" => texts(&["shop:cart", "shop:idle", "shop:lost", "shop:halted"]),
            "subscription" => vec![self.subscription.clone()],
            "environment" => texts(&["staging", "prod", "dev"]),
            "revision" if begins("/v1/pipelines") => texts(&["v2", "v1"]),
            "revision" | "from" | "to" => self.revisions.clone(),
            "githost" => texts(&["forge"]),
            "command" if path.contains("triggers") => texts(&["suspend", "resume"]),
            "command" => texts(&["pause", "resume", "cancel", "retry", "proceed"]),
            "name" if begins("/v1/pipelines") => texts(&["carts", "orders"]),
            "name" if begins("/v1/schedules") => texts(&["nightly"]),
            "name" if begins("/v1/webhookSubscriptions") => texts(&["slack", "gone"]),
            "name" if begins("/v1/clusters") => texts(&["prod"]),
            "name" if begins("/v1/metricsSources") => texts(&["cloud"]),
            "name" if begins("/v1/githosts") => texts(&["forge"]),
            "name" if begins("/v1/deployments") => texts(&["shop:cart-2", "shop:idle-2", "shop:fresh-1", "shop:cart-1"]),
            "name" if begins("/v1/artifact") => texts(&["cart"]),
            "uri" => texts(&["slo.yaml", "shipyard.yaml", "a%2Fb.txt"]),
            "If-Match" => {
                self.revisions.iter().map(|revision| format!("\"{revision}\"")).chain(["\"1\"".into(), "\"2\"".into()]).collect()
            }
            "state" => texts(&["started", "finished"]),
            "order" => texts(&["newest", "oldest"]),
            "status" => texts(&["New", "Complete", "Failed"]),
            "since" | "fromTime" => texts(&["2026-11-20T11:00:00Z"]),
            "beforeTime" => texts(&["2027-11-20T11:00:00Z"]),
            "day" => texts(&["2026-11-20"]),
            "open" => texts(&["true", "false"]),
            "dryRun" => texts(&["true", "false"]),
            "pageSize" => texts(&["1", "2", "100", "0", "1000"]),
            "nextPageKey" => texts(&["0", ""]),
            "wait" => texts(&["0", "1"]),
            "eventID" => vec![self.open["id"].as_str().unwrap_or_default().to_owned()],
            "contextPrefix" => self.contexts.iter().map(|context| context.chars().take(8).collect()).collect(),
            _ => texts(&["x1"]),
        }
    }
}
