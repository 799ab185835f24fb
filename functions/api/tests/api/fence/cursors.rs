//! Lists in pages while others write: what is there for the whole listing is listed exactly once, and nothing is listed twice.

use crate::deployments::versions::{SOURCE, manifest as config, push, say, settle};
use crate::pipelines::applied::{BY_REQUEST, begin, manifest as pipeline};
use crate::stand::Stand;
use crate::webhooks::subscriptions::{SLACK, deliver_to};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::protocol::{dead_letter, invalid};
use keelway_world::rng::Rng;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const STAGES: &str = "
    - name: dev
      sequences:
        - name: delivery
          tasks: [{name: deployment}]
";
/// Histories of each list.
const SEEDS: u64 = 8;

/// Path with query, the member that has the items, and what identifies one.
const LISTS: [(&str, &str, &[&str]); 36] = [
    ("/v1/project", "projects", &["/projectName"]),
    ("/v1/project/shop/service", "services", &["/serviceName"]),
    ("/v1/project/shop/stage/dev/service", "services", &["/serviceName"]),
    ("/v1/project/shop/environment", "items", &["/service", "/stage"]),
    ("/v1/project/shop/resource", "resources", &["/resourceURI"]),
    ("/v1/project/shop/stage/dev/resource", "resources", &["/resourceURI"]),
    ("/v1/project/shop/shipyard/revisions", "items", &["/number"]),
    ("/v1/sequence/shop", "states", &["/shkeptncontext"]),
    ("/v1/sequence-execution?project=shop", "sequenceExecutions", &["/id"]),
    ("/v1/sequence-execution?project=shop&open=true", "sequenceExecutions", &["/id"]),
    ("/v1/sequence-execution?project=shop&keptnContext=one", "sequenceExecutions", &["/id"]),
    ("/v1/event?project=shop", "events", &["/shkeptncontext", "/source", "/id"]),
    ("/v1/event?project=shop&keptnContext=one", "events", &["/source", "/id"]),
    ("/v1/event/triggered/deployment", "events", &["/id"]),
    ("/v1/event/triggered/deployment?project=shop", "events", &["/id"]),
    ("/v1/tokens", "items", &["/name"]),
    ("/v1/audit", "items", &["/id"]),
    ("/v1/log", "logs", &["/message"]),
    ("/v1/dead-letters", "items", &["/id"]),
    ("/v1/invalid", "items", &["/text"]),
    ("/v1/pipelines", "items", &["/namespace", "/name"]),
    ("/v1/pipelines?namespace=shop", "items", &["/namespace", "/name"]),
    ("/v1/pipelines/shop/carts/history", "commands", &["/message"]),
    ("/v1/clusters", "items", &["/namespace", "/name"]),
    ("/v1/metricsSources", "items", &["/namespace", "/name"]),
    ("/v1/border", "items", &["/kind", "/namespace", "/name"]),
    ("/v1/schedules/shop", "items", &["/name"]),
    ("/v1/webhookSubscriptions", "items", &["/namespace", "/name"]),
    ("/v1/deliveries?namespace=shop", "items", &["/id"]),
    ("/v1/githosts", "items", &["/name"]),
    ("/v1/deploymentConfigs", "items", &["/namespace", "/name"]),
    ("/v1/deploymentConfigs/shop:cart/audit", "items", &["/message"]),
    ("/v1/deploymentConfigs/shop:cart/history", "items", &["/name", "/attempt"]),
    ("/v1/deployments", "items", &["/name", "/attempt"]),
    ("/v1/wait", "items", &["/shkeptncontext"]),
    ("/v1/artifactSources?namespace=shop", "items", &["/name"]),
];

/// What each list needs before it has anything.
async fn begun(path: &str) -> Stand {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    if path.starts_with("/v1/pipelines/") {
        begin(&mut stand, BY_REQUEST).await;
    }
    if path.starts_with("/v1/deliveries") {
        stand.manifests(SLACK).await;
    }
    if path.starts_with("/v1/deployment") {
        stand.manifests(&format!("{SOURCE}---\n{}", config("cart", "x", true))).await;
        push(&mut stand, 1).await;
    }
    stand
}

async fn sent(stand: &mut Stand, path: &str, body: Value) -> Value {
    let answer = stand.post(path, &body).await;
    assert!(answer.status < 300, "{path}: {answer:?}");
    stand.work().await;
    answer.json()
}

/// Adds an entry to a list.
async fn add(stand: &mut Stand, path: &str, n: u64, rng: &mut Rng) {
    // In no order of names, so that entries come between others.
    let name = format!("n{:03}-{n}", rng.below(1000));
    let namespaced = |text: String| text.replace("namespace: shop", ["namespace: shop", "namespace: team"][n as usize % 2]);
    match path.split('?').next().unwrap() {
        "/v1/project" => drop(stand.apply(&name, STAGES).await),
        "/v1/project/shop/service" | "/v1/project/shop/stage/dev/service" => {
            sent(stand, "/v1/project/shop/service", json!({"serviceName": name})).await;
        }
        "/v1/project/shop/resource" | "/v1/project/shop/stage/dev/resource" => {
            sent(stand, path, json!({"resources": [{"resourceURI": name, "resourceContent": "eA=="}]})).await;
        }
        "/v1/project/shop/shipyard/revisions" => drop(stand.apply("shop", &format!("{STAGES}# {name}\n")).await),
        "/v1/event" | "/v1/sequence-execution" if path.contains("keptnContext") => {
            let data = json!({"project": "shop", "stage": "dev", "service": name});
            let event =
                json!({"type": "sh.keptn.event.dev.delivery.triggered", "source": "test", "shkeptncontext": "one", "data": data});
            stand.trigger_with(event).await;
        }
        "/v1/project/shop/environment"
        | "/v1/sequence/shop"
        | "/v1/sequence-execution"
        | "/v1/event"
        | "/v1/event/triggered/deployment" => {
            stand.trigger("shop", "dev", "delivery", &name).await;
        }
        // All of one service: the first one runs, and the others wait behind it.
        "/v1/wait" => drop(stand.trigger("shop", "dev", "delivery", "cart").await),
        "/v1/tokens" => drop(sent(stand, "/v1/tokens", json!({"name": name, "scopes": ["read"]})).await),
        "/v1/audit" => drop(sent(stand, "/v1/project/shop/service", json!({"serviceName": name})).await),
        "/v1/log" => {
            let entry = |k: u64| json!({"integrationid": (["a", "b"][(n + k) as usize % 2]), "message": format!("{name}-{k}")});
            let logs: Vec<Value> = (0..rng.bits() % 4 + 1).map(entry).collect();
            sent(stand, path, json!({"logs": logs})).await;
        }
        "/v1/dead-letters" => {
            let letter = dead_letter::DeadLetter {
                engine: "promotions".into(),
                queue: "q".into(),
                message_id: name,
                sent: stand.world.now() - Span(rng.below(3) as i64),
                body: "{}".into(),
                receives: 1,
                reason: None,
            };
            dead_letter::store(&stand.world.worker(7), &letter).await.unwrap();
        }
        "/v1/invalid" => {
            let at = Timestamp(stand.world.now().0 - rng.below(3) as i64);
            invalid::record(&stand.world.worker(7), Span::minutes(600), at, "no JSON", &name).await.unwrap();
        }
        "/v1/pipelines" => drop(stand.manifests(&namespaced(pipeline(&name, BY_REQUEST))).await),
        "/v1/pipelines/shop/carts/history" => {
            let command = ["suspend", "resume"][n as usize % 2];
            sent(stand, "/v1/pipelines/shop/carts/commands", json!({"command": command, "message": name})).await;
        }
        // What the policy does not list any more.
        "/v1/border" => {
            let policy = |policy: &str| {
                format!("apiVersion: keelway.dev/v1\nkind: Project\nmetadata: {{name: shop}}\nspec: {{policy: {policy}}}\n")
            };
            let text = crate::apply::border_stored::CLUSTER.replace("namespace: team-a", "namespace: shop").replace("prod", &name);
            stand.manifests(&format!("{}---\n{text}", policy("null"))).await;
            stand.manifests(&policy("{}")).await;
        }
        "/v1/clusters" => {
            let text = "apiVersion: keelway.dev/v1\nkind: Cluster\nmetadata: {name: NAME, namespace: shop}\nspec:\n  server: https://10.0.0.1\n  \
                        secretRef: {name: t}\n";
            stand.manifests(&text.replace("NAME", &name)).await;
        }
        "/v1/metricsSources" => {
            let text = "apiVersion: keelway.dev/v1\nkind: MetricsSource\nmetadata: {name: NAME, namespace: shop}\nspec: {cloudwatch: {}}\n";
            stand.manifests(&text.replace("NAME", &name)).await;
        }
        "/v1/schedules/shop" => {
            let text = "apiVersion: keelway.dev/v1\nkind: Schedule\nmetadata: {name: NAME}\nspec:\n  project: shop\n  stage: dev\n  services: [cart]\n  \
                        sequence: delivery\n  cron: '0 3 * * *'\n";
            stand.manifests(&text.replace("NAME", &name)).await;
        }
        "/v1/webhookSubscriptions" => drop(stand.manifests(&namespaced(SLACK.replace("slack,", &format!("{name},")))).await),
        "/v1/deliveries" => drop(deliver_to(stand, "slack", &name, 200).await),
        "/v1/githosts" => {
            let text = "apiVersion: keelway.dev/v1\nkind: GitHost\nmetadata: {name: NAME}\nspec:\n  host: NAME.test\n  type: gitea\n  api: \
                        https://NAME.test/api/v1\n";
            stand.manifests(&text.replace("NAME", &name)).await;
        }
        "/v1/deploymentConfigs" => drop(stand.manifests(&namespaced(config(&name, "x", false))).await),
        "/v1/deploymentConfigs/shop:cart/audit" => {
            let command = ["pause", "resume"][n as usize % 2];
            sent(stand, &format!("/v1/deploymentConfigs/shop:cart/{command}"), json!({"message": name})).await;
        }
        "/v1/deployments" | "/v1/deploymentConfigs/shop:cart/history" => version(stand, &name).await,
        "/v1/artifactSources" => drop(stand.manifests(&SOURCE.replace("name: cart", &format!("name: {name}"))).await),
        other => panic!("nothing says how an entry comes into {other}"),
    }
}

/// Cuts a version and carries it out.
async fn version(stand: &mut Stand, url: &str) {
    // None of them is deleted to make room for others.
    let kept = config("cart", url, true).replace("  replicas: 2\n", "  replicas: 2\n  revisionHistoryLimit: 500\n");
    stand.manifests(&kept).await;
    settle(stand).await;
    let open = stand.get("/v1/deployments?status=New").await.json();
    let Some(name) = open["items"][0]["name"].as_str().map(|name| format!("/v1/deployments/shop:{name}")) else { return };
    let token = sent(stand, &format!("{name}/claim"), json!({})).await["token"].as_str().unwrap().to_owned();
    assert_eq!(say(stand, &format!("{name}/finish"), &token, &json!({"exitCode": 0})).await.status, 200);
    settle(stand).await;
}

/// Removes an entry from a list; `false`: nothing is removed from this list.
async fn remove(stand: &mut Stand, path: &str, item: &Value) -> bool {
    let text = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
    let base = path.split('?').next().unwrap();
    let at = match base {
        "/v1/project" => format!("{base}/{}", text("projectName")),
        "/v1/project/shop/service" | "/v1/project/shop/stage/dev/service" => {
            format!("/v1/project/shop/service/{}", text("serviceName"))
        }
        // The applied shipyard stays.
        _ if text("resourceURI") == "shipyard.yaml" => return false,
        "/v1/project/shop/resource" | "/v1/project/shop/stage/dev/resource" => format!("{base}/{}", text("resourceURI")),
        "/v1/tokens" | "/v1/githosts" | "/v1/schedules/shop" => format!("{base}/{}", text("name")),
        "/v1/dead-letters" => format!("{base}/{}", text("id")),
        "/v1/border" => format!("/v1/clusters/{}/{}", text("namespace"), text("name")),
        "/v1/pipelines" | "/v1/clusters" | "/v1/metricsSources" | "/v1/webhookSubscriptions" | "/v1/artifactSources" => {
            format!("{base}/{}/{}", text("namespace"), text("name"))
        }
        "/v1/deploymentConfigs" => format!("{base}/{}:{}", text("namespace"), text("name")),
        "/v1/log" => "/v1/log?integrationId=a".into(),
        "/v1/event/triggered/deployment" => {
            stand.answer_to(item, "deployment", "pass").await;
            return true;
        }
        _ => return false,
    };
    let answer = stand.delete(&at).await;
    assert!(answer.status < 300, "{at}: {answer:?}");
    stand.work().await;
    true
}

fn id(item: &Value, of: &[&str]) -> String {
    of.iter().map(|pointer| item.pointer(pointer).map(ToString::to_string).unwrap_or_default()).collect::<Vec<_>>().join(" ")
}

/// A page, and where the next one begins.
async fn page(stand: &Stand, path: &str, member: &str, size: u64, key: &str) -> (Vec<Value>, String) {
    let join = if path.contains('?') { '&' } else { '?' };
    let answer = stand.get(&format!("{path}{join}pageSize={size}&nextPageKey={}", crate::pipelines::approvals::encoded(key))).await;
    assert_eq!(answer.status, 200, "{path} after {key:?}: {answer:?}");
    let json = answer.json();
    let key = &json["nextPageKey"];
    (json[member].as_array().unwrap().clone(), key.as_str().map_or_else(|| key.to_string(), str::to_owned))
}

/// One listing while others write.
async fn listing((path, member, of): (&str, &str, &[&str]), seed: u64) {
    let mut rng = Rng::new(seed);
    let mut stand = begun(path).await;
    let mut n = 0;
    for _ in 0..rng.below(8) + 5 {
        n += 1;
        add(&mut stand, path, n, &mut rng).await;
        // Many entries of one millisecond, and several of others.
        stand.world.pass(Span([0, 0, 0, 1, 700][rng.below(5)]));
    }
    let mut present: BTreeMap<String, Value> = BTreeMap::new();
    let mut key = String::new();
    while key != "0" {
        let (items, next) = page(&stand, path, member, 100, &key).await;
        present.extend(items.into_iter().map(|item| (id(&item, of), item)));
        key = next;
    }
    assert!(present.len() >= 2, "{path}: {present:?}");
    if path.contains("keptnContext") {
        // While entries may still come in between, no page ends.
        stand.world.pass(Span::seconds(6));
    }
    let (mut seen, mut key) = (BTreeMap::<String, usize>::new(), String::new());
    for round in 0.. {
        assert!(round < 200, "{path}, seed {seed}: the list does not end");
        let size = rng.bits() % 4 + 1;
        let (items, next) = page(&stand, path, member, size, &key).await;
        for item in items {
            *seen.entry(id(&item, of)).or_default() += 1;
        }
        key = next;
        if key == "0" {
            break;
        }
        for _ in 0..rng.below(3).min(if round < 12 { 3 } else { 0 }) {
            n += 1;
            add(&mut stand, path, n, &mut rng).await;
            stand.world.pass(Span([0, 0, 1][rng.below(3)]));
        }
        let leaves = present.keys().nth(rng.below(present.len().max(1))).cloned().filter(|_| rng.chance(40.0));
        if let Some(leaves) = leaves
            && remove(&mut stand, path, &present[&leaves].clone()).await
        {
            match path {
                "/v1/log" => present.retain(|_, item| item["integrationid"] != "a"),
                _ => drop(present.remove(&leaves)),
            }
        }
    }
    let skipped: Vec<&String> = present.keys().filter(|id| !seen.contains_key(*id)).collect();
    let twice: Vec<&String> = seen.iter().filter(|(_, n)| **n > 1).map(|(id, _)| id).collect();
    assert!(skipped.is_empty() && twice.is_empty(), "{path}, seed {seed}: skipped {skipped:?}, listed twice {twice:?}");
}

#[tokio::test(start_paused = true)]
async fn pages_neither_skip_nor_repeat_while_others_write() {
    for list in LISTS {
        for seed in 1..=SEEDS {
            listing(list, seed).await;
        }
    }
}

/// A list with pages must be among those that are tested.
#[tokio::test]
async fn every_list_in_pages_is_tested() {
    let document = Stand::new().get("/v1/openapi.json").await.json();
    let tested = |path: &str| {
        let fits = |list: &str| {
            let list: Vec<&str> = list.split('?').next().unwrap().split('/').collect();
            let parts: Vec<&str> = path.split('/').collect();
            list.len() == parts.len() && list.iter().zip(parts).all(|(one, part)| part.starts_with('{') || *one == part)
        };
        LISTS.iter().any(|(list, ..)| fits(list))
    };
    // One of a kind, with parameters that Keptn's clients send; the same handlers on other paths; lists that come whole.
    let others = [
        "/v1/project/{project}",
        "/v1/project/{project}/shipyard",
        "/v1/project/{project}/stage",
        "/v1/project/{project}/stage/{stage}",
        "/v1/project/{project}/stage/{stage}/service/{service}",
        "/mongodb-datastore/event",
        "/v1/project/{project}//resource",
        "/v1/project/{project}/stage/{stage}/service/{service}/resource",
    ];
    for (path, item) in document["paths"].as_object().unwrap() {
        let parameters = item["get"]["parameters"].as_array().into_iter().flatten();
        let is_list = parameters.clone().any(|one| one["name"] == "nextPageKey");
        let covered = tested(path) || others.contains(&path.as_str()) || path.ends_with("/{uri}");
        assert!(
            !is_list || covered,
            "{path} has pages: add it to LISTS of functions/api/tests/api/fence/cursors.rs, with how entries come and go"
        );
    }
}

/// Whatever is sent as the key of a page is a key or is refused.
#[tokio::test]
async fn what_is_no_key_of_a_list_is_refused() {
    let stand = begun("/v1/project").await;
    for (list, ..) in LISTS {
        for key in ["9223372036854775807", "%2F", "9999999999999%23a", "a%2F%2Fb", "%00", "-1"] {
            let join = if list.contains('?') { '&' } else { '?' };
            let answer = stand.get(&format!("{list}{join}nextPageKey={key}")).await;
            assert!(answer.status < 500, "{list} with {key}: {answer:?}");
        }
    }
    for path in ["/v1/deployments?nextPageKey=9223372036854775807", "/v1/deploymentConfigs?nextPageKey=%2F"] {
        assert_eq!(stand.get(path).await.status, 400, "{path}");
    }
}
