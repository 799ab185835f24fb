//! Bodies beside the document's examples, so that requests meet what exists and every documented status is seen.

use super::furnished::{FULL, Furnished, WAITING, manifests, shipyard};
use crate::deployments::versions::{digest, manifest as config};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use keelway_world::rng::Rng;
use serde_json::{Value, json};

/// A shipyard as Keptn's clients send it.
fn encoded(with_dev: bool, remark: u64) -> String {
    STANDARD.encode(shipyard(with_dev, remark))
}

/// A subscription in a project that takes no more executors.
fn of_full() -> Value {
    json!({"event": "sh.keptn.event.test.triggered", "filter": {"projects": [FULL]}})
}

/// Bodies that fit an operation; texts are sent as they are.
pub fn bodies(operation: &str, f: &Furnished, rng: &mut Rng) -> Vec<Value> {
    let n = rng.bits() % 1000;
    let (method, path) = operation.split_once(' ').unwrap();
    if path.ends_with("/resource") {
        let one = |uri: &str, content: &str| json!({"resources": [{"resourceURI": uri, "resourceContent": content}]});
        return vec![
            one("slo.yaml", &STANDARD.encode(n.to_string())),
            one("shipyard.yaml", &encoded(true, n % 3)),
            one("shipyard.yaml", &encoded(false, n)),
        ];
    }
    if path.ends_with("/resource/{uri}") {
        return vec![json!({"resourceContent": encoded(false, n)}), json!({"resourceContent": encoded(true, n % 3)})];
    }
    match (method, path) {
        ("POST", "/v1/tokens") => vec![json!({"name": format!("t-{n}"), "scopes": ["read"]}), json!({"name": "ci", "scopes": ["read"]})],
        ("POST", "/v1/event") => events(f, rng),
        ("POST", "/v1/sequence/{project}/{context}/control") => ["resume", "abort"].map(|state| json!({"state": state})).to_vec(),
        ("POST", "/v1/sequence/{project}/{context}/retry") => vec![json!({}), json!({"from": "test"})],
        ("POST", "/v1/apply") => vec![
            json!(shipyard(true, n % 3)),
            json!(shipyard(false, n)),
            json!(shipyard(true, 1).replace("shipyard-shop", "nobody")),
            json!(manifests()),
        ],
        ("POST", "/v1/project") => vec![
            json!({"name": format!("p-{n}"), "shipyard": encoded(true, 1)}),
            json!({"name": "shop", "shipyard": encoded(true, 1)}),
        ],
        ("PUT", "/v1/project") => vec![
            json!({"name": "shop", "shipyard": encoded(true, n % 3)}),
            json!({"name": "shop", "shipyard": encoded(false, n)}),
            json!({"name": "shop"}),
        ],
        ("POST", "/v1/project/{project}/service") => vec![json!({"serviceName": format!("s-{n}")}), json!({"serviceName": "cart"})],
        ("POST", "/v1/project/{project}/shipyard/rollback") => {
            let back = |revision: &String| json!({"revision": revision, "dryRun": n.is_multiple_of(5)});
            f.known(path, "revision").iter().map(back).collect()
        }
        ("POST", "/v1/project/{project}/stage/{stage}/service/{service}/evaluation") => {
            vec![json!({"id": "e1", "timeframe": format!("{}m", n % 5 + 1)}), json!({})]
        }
        ("POST", "/v1/project/{project}/approval/{context}/{trigger}") => {
            ["approve", "decline"].map(|decision| json!({"decision": decision})).to_vec()
        }
        ("POST", "/v1/uniform/registration") => vec![
            json!({"name": format!("n-{n}"), "metadata": {"hostname": "h"}}),
            json!({"name": format!("n-{n}"), "metadata": {"hostname": "h"}, "subscriptions": [of_full()]}),
        ],
        ("POST", "/v1/uniform/registration/{id}/subscription")
        | ("PUT", "/v1/uniform/registration/{id}/subscription/{subscription}") => vec![of_full()],
        ("POST", "/v1/pipelines/{namespace}/{name}/commands") => {
            let at = |command: &str| json!({"command": command, "environment": "staging"});
            let mut all = ["hold", "release", "retry", "abort"].map(at).to_vec();
            all.extend([json!({"command": "suspend"}), json!({"command": "resume"}), json!({"command": "abandon", "revision": "v2"})]);
            all
        }
        ("POST", "/v1/pipelines/{namespace}/{name}/environments/{environment}/revisions/{revision}/approval") => {
            vec![json!({"decision": "approve"}), json!({"decision": "approve"}), json!({"decision": (["reject", "abandon"][n as usize % 2])})]
        }
        ("POST", "/v1/webhooks/{githost}") => ["r", "other"]
            .map(|name| {
                let request = json!({"number": 1, "merged": true});
                json!({"action": "closed", "number": 1, "pull_request": request, "repository": {"html_url": format!("https://git.test/o/{name}")}})
            })
            .to_vec(),
        _ => deployments(method, path, n),
    }
}

fn events(f: &Furnished, rng: &mut Rng) -> Vec<Value> {
    let n = rng.bits() % 1000;
    let event = |ty: &str, stage: &str| {
        let data = json!({"project": "shop", "stage": stage, "service": "cart", "message": format!("{n}")});
        json!({"type": format!("sh.keptn.event.{ty}"), "source": "test", "data": data})
    };
    let mut same = event("dev.delivery.triggered", "dev");
    same["id"] = json!("e1");
    same["shkeptncontext"] = json!("c1");
    let mut started = event("deployment.started", "dev");
    started["triggeredid"] = f.open["id"].clone();
    started["shkeptncontext"] = f.open["shkeptncontext"].clone();
    started["data"]["service"] = f.open["data"]["service"].clone();
    let mut decided = event("approval.finished", "prod");
    let place = rng.below(WAITING.len());
    decided["triggeredid"] = json!(f.approvals[place]);
    decided["shkeptncontext"] = json!(f.contexts[2 + place]);
    decided["data"]["service"] = json!(WAITING[place]);
    decided["data"]["result"] = json!((["pass", "fail"][n as usize % 2]));
    decided["data"]["status"] = json!("succeeded");
    vec![same, started, decided.clone(), decided, event("nowhere.delivery.triggered", "nowhere")]
}

fn deployments(method: &str, path: &str, n: u64) -> Vec<Value> {
    let object = |name: &str, url: &str| {
        let text = keelway_wire::manifest::value_of(&config(name, url, true));
        json!(text)
    };
    match (method, path) {
        ("POST", "/v1/deploymentConfigs") => vec![object(&format!("n-{n}"), "x"), object("idle", "x"), json!({"kind": "Nothing"})],
        ("PUT", "/v1/deploymentConfigs/{id}") => {
            let mut old = object("idle", "z");
            old["metadata"]["resourceVersion"] = json!("1");
            vec![object("idle", "y"), object("cart", "z"), old, json!({"rollback": {}}), json!({"rollback": {"notes": "n"}})]
        }
        ("POST", "/v1/deploymentConfigs/{id}/instantiate") => vec![
            json!({"latest": true}),
            json!({"latest": true, "force": true}),
            json!({"force": true, "supersede": true}),
            json!({"latest": true, "force": true, "kind": "Nothing"}),
        ],
        ("POST", "/v1/deploymentConfigs/{id}/rollback") => {
            vec![json!({}), json!({"dryRun": true}), json!({"release": "idle-1"}), json!({"release": 99})]
        }
        ("POST", "/v1/rollbacks") => vec![json!({"rollbacks": [{"id": "shop:idle"}]}), json!({"rollbacks": [{"id": "shop:none"}]})],
        ("POST", "/v1/deployments/{name}/claim") => vec![json!({"claim": "c1"}), json!({"claim": "c2", "lease": "5m"})],
        ("POST", "/v1/deployments/{name}/finish") => vec![json!({"exitCode": 0}), json!({"exitCode": n % 3})],
        ("POST", "/v1/artifacts/{namespace}/{name}") => vec![
            json!({"tag": "latest", "digest": digest(n % 9 + 1), "image": "registry.test/shop/cart"}),
            json!({"action": "delete", "digest": digest(n % 9 + 10)}),
            json!({"tag": "a:b", "digest": "sha256:1", "image": ""}),
        ],
        _ => vec![],
    }
}
