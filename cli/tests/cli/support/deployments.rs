//! Deployments as the API shows them.

use super::pipelines::with;
use super::{Api, NOW};
use serde_json::{Value, json};

/// A version of `shop/carts`.
pub fn version(n: u64, status: &str, change: Value) -> Value {
    let base = json!({
        "namespace": "shop", "name": format!("carts-{n}"), "config": "carts", "version": n, "attempt": 1, "status": status,
        "message": "image change", "details": {"message": "image change", "causes": [{"type": "ImageChange", "from": "shop/carts:latest"}]},
        "images": {"web": format!("registry.example/shop/carts@sha256:{n:0<64}")}, "since": "2026-11-21T08:00:00.000Z", "starts": false,
        "progress": {}
    });
    with(base, change)
}

pub fn over(n: u64, status: &str, change: Value) -> Value {
    with(version(n, status, json!({"endedAt": "2026-11-21T08:00:30.000Z", "deployer": "ci"})), change)
}

/// `shop/carts` with this latest version.
pub fn config(latest: Value, change: Value) -> Value {
    let image = json!({"type": "ImageChange", "automatic": true, "effectiveAutomatic": true, "from": "shop/carts:latest", "containers": ["web"], "image": "registry.example/shop/carts@sha256:2"});
    let base = json!({
        "namespace": "shop", "name": "carts", "latestVersion": latest["version"], "latest": latest, "activeVersion": 1,
        "triggers": [{"type": "ConfigChange", "automatic": true, "effectiveAutomatic": true}, image], "reason": "", "message": "",
        "resourceVersion": "3", "now": NOW
    });
    with(base, change)
}

/// Shows it under its status.
pub fn show(api: &Api, config: &Value) {
    api.can("GET /v1/deploymentConfigs/shop:carts/status", config.clone());
}
