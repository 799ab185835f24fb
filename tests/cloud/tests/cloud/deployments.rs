//! Deployments through template and binaries: images from a webhook and from ECR, deployers, rollback, a task of a sequence.

use crate::bed::Bed;
use crate::failures::sweep;
use keelway_cloud_tests::events::fresh;
use keelway_cloud_tests::patience::until;
use keelway_cloud_tests::problem::{ensure, same};
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Ability, Outcome, Problem, Stack};
use keelway_engine::deployments::{Deployments, Limits, keys};
use keelway_engine::item::Item;
use keelway_engine::ports::{Condition, Store, Write};
use serde_json::{Value, json};

pub fn tests() -> Vec<Test<Bed>> {
    vec![
        Test::new("deployments::a version from an image to complete, and back", there_and_back),
        Test::new("deployments::a push to ECR, and a task of a sequence", by_events),
        Test::new("deployments::a push that ECR told nobody is found by the sweep", untold).needs(&[Ability::Functions]),
    ]
}

/// Whether a source told that an image is gone.
pub fn gone(stack: &Stack, namespace: &str, source: &str, digest: &str) -> Result<bool, Problem> {
    let engine = Deployments::new(stack.ports().clone(), Limits::default());
    let gone = stack.wait(engine.gone(&[(namespace.into(), source.into())], &[digest.into()]));
    gone.map(|gone| !gone.is_empty()).map_err(|error| Problem(error.to_string()))
}

struct Config<'a> {
    stack: &'a Stack,
    namespace: String,
}

impl<'a> Config<'a> {
    fn new(bed: &'a Bed) -> Self {
        Self { stack: &bed.stack, namespace: format!("deployments-{}", &fresh()[24..]) }
    }

    /// A config `cart` whose container has the image of the source's tag `latest`.
    fn apply(&self, source: &str) -> Outcome {
        let namespace = &self.namespace;
        let text = format!(
            "apiVersion: keelway.dev/v1\nkind: ArtifactSource\nmetadata: {{name: cart, namespace: {namespace}}}\nspec:\n  {source}\n---\n\
             apiVersion: apps.openshift.io/v1\nkind: DeploymentConfig\nmetadata: {{name: cart, namespace: {namespace}}}\nspec:\n  \
             revisionHistoryLimit: 1\n  strategy: {{type: Recreate, recreateParams: {{timeoutSeconds: 3600}}}}\n  triggers:\n  - type: ConfigChange\n  \
             - type: ImageChange\n    imageChangeParams:\n      automatic: true\n      containerNames: [web]\n      from: {{kind: ImageStreamTag, name: \
             'cart:latest'}}\n  template:\n    metadata: {{labels: {{app: cart}}}}\n    spec:\n      containers:\n      - name: web\n"
        );
        self.stack.wait(self.stack.api().apply(None, &text))?.fine("apply").map(drop)
    }

    fn gone(&self, digest: &str) -> Result<bool, Problem> {
        gone(self.stack, &self.namespace, "cart", digest)
    }

    fn path(&self, rest: &str) -> String {
        format!("/v1/deploymentConfigs/{}:cart{rest}", self.namespace)
    }

    fn push(&self, n: u64) -> Outcome {
        let body = json!({"tag": "latest", "digest": format!("sha256:{n:064x}"), "image": "registry.test/cart"});
        let path = format!("/v1/artifacts/{}/cart", self.namespace);
        self.stack.wait(self.stack.api().post(&path, &body))?.fine("push").map(drop)
    }

    /// Waits until the latest version has this number and status.
    fn becomes(&self, version: u64, status: &str) -> Result<Value, Problem> {
        let found = || {
            let state = self.stack.wait(self.stack.api().get(&self.path("/status")))?.fine("status")?;
            let latest = &state["latest"];
            Ok((latest["version"] == version && latest["status"] == status).then(|| latest.clone()))
        };
        until(&format!("version {version} {status}"), found, || {
            let state = self.stack.wait(self.stack.api().get(&self.path("/status")));
            state.map_or_else(|error| error.0, |state| state.body.to_string())
        })
    }

    /// Claims a version, is at work, and ends.
    fn carry_out(&self, version: u64, exit: i64) -> Outcome {
        let (api, path) = (self.stack.api(), format!("/v1/deployments/{}:cart-{version}", self.namespace));
        let claim = self.stack.wait(api.post(&format!("{path}/claim"), &json!({"by": "ci"})))?.fine("claim")?;
        let token = claim["token"].as_str().unwrap_or_default();
        let second = self.stack.wait(api.post(&format!("{path}/claim"), &json!({"by": "somebody else"})))?;
        same("a second claim", &second.status, &409)?;
        let beat =
            self.stack.wait(api.post_as(&format!("{path}/heartbeat"), token, &json!({"running": true})))?.fine("heartbeat")?;
        same("desired", &beat["desired"], &json!("run"))?;
        self.becomes(version, "Running")?;
        self.stack.wait(api.post_as(&format!("{path}/finish"), token, &json!({"exitCode": exit})))?.fine("finish")?;
        self.becomes(version, if exit == 0 { "Complete" } else { "Failed" }).map(drop)
    }
}

fn there_and_back(bed: &Bed) -> Outcome {
    let config = Config::new(bed);
    config.apply("webhook: {secret: registry}")?;
    for version in 1..=3 {
        config.push(version)?;
        config.becomes(version, "New")?;
        config.carry_out(version, i64::from(version == 3))?;
    }
    let back = config.stack.wait(config.stack.api().post(&config.path("/rollback"), &json!({"notes": "3 is broken"})))?;
    back.fine("rollback")?;
    let latest = config.becomes(4, "New")?;
    let image = latest["images"]["web"].as_str().unwrap_or_default();
    ensure(image.ends_with(&format!("{:064x}", 2)), || format!("the rollback deploys {image}"))?;
    config.carry_out(4, 0)?;
    // One version below the active one is kept.
    let gone = config.stack.wait(config.stack.api().get(&format!("/v1/deployments/{}:cart-1", config.namespace)))?;
    same("the pruned version", &gone.status, &404)
}

const SHIPYARD: &str = "apiVersion: spec.keptn.sh/0.2.2\nkind: Shipyard\nmetadata: {name: by-config}\nspec:\n  stages:\n  - name: dev\n    \
     sequences:\n    - name: delivery\n      tasks:\n      - name: deployment\n        properties: {deploymentConfig: cart}\n";

fn by_events(bed: &Bed) -> Outcome {
    let config = Config::new(bed);
    let repository = format!("{}/cart", config.namespace);
    config.apply(&format!("ecr: {{repository: '{repository}', account: '123456789012', region: eu-central-1}}"))?;
    // As EventBridge delivers it. Only AWS may put such an event on the bus, so it is put into the queue.
    let digest = format!("sha256:{:064x}", 7);
    let send = |action: &str, time: &str| {
        let event = json!({"version": "0", "id": fresh(), "detail-type": "ECR Image Action", "source": "aws.ecr", "account": "123456789012",
            "time": time, "region": "eu-central-1", "resources": [], "detail": {"action-type": action, "result": "SUCCESS",
            "repository-name": repository, "image-digest": digest, "image-tag": "latest"}});
        let queue = config.stack.output("DeploymentsQueueUrl");
        let sent = config.stack.wait(config.stack.sqs().send_message().queue_url(queue).message_body(event.to_string()).send());
        sent.map(drop).map_err(|error| Problem::of(action, format!("{error:?}")))
    };
    send("DELETE", "2026-11-22T09:00:00Z")?;
    let gone = || Ok(config.gone(&digest)?.then_some(()));
    until("the image is gone", gone, || "it is not marked as deleted".into())?;
    send("PUSH", "2026-11-22T10:00:00Z")?;
    config.becomes(1, "New")?;
    same("whether the image is gone", &config.gone(&digest)?, &false)?;
    config.carry_out(1, 0)?;
    config.stack.wait(config.stack.api().apply_project(&config.namespace, SHIPYARD))?;
    let context = fresh();
    let trigger = json!({"specversion": "1.0", "id": fresh(), "source": "test", "type": "sh.keptn.event.dev.delivery.triggered",
        "shkeptncontext": context, "datacontenttype": "application/json",
        "data": {"project": config.namespace, "stage": "dev", "service": "cart"}});
    config.stack.put_event(&trigger)?;
    config.becomes(2, "New")?;
    config.carry_out(2, 0)?;
    let found = || {
        let state = config.stack.wait(config.stack.api().sequence(&config.namespace, &context))?;
        Ok(state.filter(|state| state["state"] == "finished"))
    };
    until("the sequence", found, || "the sequence does not end".into()).map(drop)
}

fn untold(bed: &Bed) -> Outcome {
    let config = Config::new(bed);
    let repository = format!("{}/cart", config.namespace);
    let ecr = |operation: &str, body: &Value| {
        config.stack.wait(bed.cloud.raw().json("ecr", &format!("AmazonEC2ContainerRegistry_V20150921.{operation}"), body))
    };
    ecr("CreateRepository", &json!({"repositoryName": repository}))?;
    let manifest = json!({"schemaVersion": 2, "config": {"digest": fresh()}}).to_string();
    let pushed = ecr("PutImage", &json!({"repositoryName": repository, "imageTag": "latest", "imageManifest": manifest}))?;
    let digest = pushed["image"]["imageId"]["imageDigest"].as_str().unwrap_or_default();
    // ECR told that it was deleted, but not that it is there again.
    let deleted = Item::new(keys::image(&config.namespace, "cart", digest)).with("at", 1);
    let written = config.stack.wait(config.stack.ports().write(&Write::Put(deleted, Condition::Always)));
    written.map_err(|error| Problem(error.to_string()))?;
    config.apply(&format!("ecr: {{repository: '{repository}'}}"))?;
    sweep(bed, config.stack)?;
    let latest = config.becomes(1, "New")?;
    let image = latest["images"]["web"].as_str().unwrap_or_default();
    ensure(image.ends_with(&format!("/{repository}@{digest}")), || format!("{image} is deployed, and ECR has {digest}"))?;
    same("whether the image is gone", &config.gone(digest)?, &false)
}
