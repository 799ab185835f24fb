//! Two projects in one installation, each with something of everything, and every name and text of each begins with the project's
//! own.

use crate::deployments::versions::{digest, say, settle};
use crate::stand::Stand;
use crate::webhooks::subscriptions::deliver_in;
use keelway_domain::time::Span;
use keelway_engine::secrets::Known;
use keelway_engine::sequences::Limits;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The project whose tokens ask.
pub const OWN: &str = "alfa";
/// The one about which they ask.
pub const OTHER: &str = "quux";
/// One that does not exist. It is as long as the other one, has its place in every list, and nothing else is called like it.
pub const NOBODY: &str = "quuz";

const STAGES: &str = "
    - name: @dev
      sequences:
        - name: delivery
          tasks: [{name: deployment}, {name: test}]
        - name: evaluation
          tasks: [{name: evaluation}]
    - name: @prod
      sequences:
        - name: release
          tasks: [{name: approval, properties: {pass: manual, warning: manual}}, {name: deployment}]
    - name: @late
      windows:
        - {kind: deny, from: 2026-11-20T12:00, until: 2026-11-20T18:00, zone: Europe/Berlin, reason: @quarter}
      sequences:
        - name: delivery
          tasks: [{name: deployment}]
";

/// One of each kind; `@` is the project. In flow style, so that a body has one line for each.
pub const MANIFESTS: [&str; 11] = [
    "{apiVersion: keelway.dev/v1, kind: Project, metadata: {name: @}, spec: {description: @words, consents: [{to: [@friend], may: [observe], names: [@cart]}]}}",
    "{apiVersion: keelway.dev/v1, kind: Cluster, metadata: {name: @cluster, namespace: @}, spec: {server: 'https://@.k8s.test', secretRef: {name: @token}}}",
    "{apiVersion: keelway.dev/v1, kind: MetricsSource, metadata: {name: @metrics, namespace: @}, spec: {prometheus: {url: 'https://@.k8s.test', secret: @token}}}",
    "{apiVersion: keelway.dev/v1, kind: Schedule, metadata: {name: @nightly}, spec: {project: @, stage: @dev, services: [@cart], sequence: evaluation, cron: '0 3 * * *'}}",
    "{apiVersion: keelway.dev/v1, kind: WebhookSubscription, metadata: {name: @hook, namespace: @}, spec: {events: [sh.keptn.event.approval.triggered], \
     filter: {projects: [@], stages: [@prod]}, form: slack, url: '{{ secrets.url }}', secrets: [{name: url, secretRef: {name: @slack}}]}}",
    "{apiVersion: keelway.dev/v1, kind: ArtifactSource, metadata: {name: @images, namespace: @}, spec: {webhook: {secret: @registry}}}",
    "{apiVersion: pipelines.weave.works/v1alpha1, kind: Pipeline, metadata: {name: @line, namespace: @}, spec: {appRef: {apiVersion: \
     helm.toolkit.fluxcd.io/v2, kind: HelmRelease, name: @app}, environments: [{name: @one, targets: [{namespace: @ns1}]}, {name: @two, targets: \
     [{namespace: @ns2}]}], promotion: {manual: true, strategy: {pullRequest: {type: gitea, url: 'https://git.test/@/config', baseBranch: @main, \
     secretRef: {name: @git}}, secretRef: {name: @approvals}}}}}",
    "{apiVersion: pipelines.weave.works/v1alpha1, kind: Pipeline, metadata: {name: @flow, namespace: @}, spec: {appRef: {apiVersion: \
     helm.toolkit.fluxcd.io/v2, kind: HelmRelease, name: @app}, environments: [{name: @dev, targets: [{namespace: @ns1}]}, {name: @prod, targets: \
     [{namespace: @ns2}]}], promotion: {strategy: {sequence: {project: @, stage: @prod, name: release, service: @mail}}}}}",
    "{apiVersion: pipelines.weave.works/v1alpha1, kind: Pipeline, metadata: {name: @watch, namespace: @}, spec: {appRef: {apiVersion: x.io/v1, \
     kind: Thing, name: @thing}, environments: [{name: @only, targets: [{namespace: @ns3, clusterRef: {name: @cluster, namespace: @}}]}]}}",
    "{apiVersion: pipelines.weave.works/v1alpha1, kind: Pipeline, metadata: {name: @runs, namespace: @}, spec: {appRef: {apiVersion: \
     keelway.dev/v1, kind: DeploymentConfig, name: @cart}, environments: [{name: @only, targets: [{namespace: @}]}]}}",
    "{apiVersion: keelway.dev/v1, kind: Remediation, metadata: {name: @cure, annotations: {keelway.dev/project: @, keelway.dev/stage: @dev}}, \
     spec: {remediations: [{problemType: @slow, actionsOnOpen: [{action: @switch}]}]}}",
];

/// A deployment config of project `@`.
pub fn config(name: &str, value: &str) -> String {
    format!(
        "{{apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, metadata: {{name: {name}, namespace: @, labels: {{app: @label}}}}, spec: {{replicas: \
         2, triggers: [{{type: ConfigChange}}, {{type: ImageChange, imageChangeParams: {{automatic: true, containerNames: [web], from: {{kind: \
         ImageStreamTag, name: '@images:@latest'}}}}}}], template: {{metadata: {{labels: {{app: @cart}}}}, spec: {{containers: [{{name: web, env: \
         [{{name: URL, value: {value}}}]}}]}}}}}}}}"
    )
}

/// A shipyard in one line, with a task that a config carries out.
pub const SHIPYARD: &str = "{apiVersion: spec.keptn.sh/0.2.3, kind: Shipyard, metadata: {name: shipyard-@}, spec: {stages: [{name: @dev, sequences: [{name: delivery, \
                            tasks: [{name: deployment, properties: {deploymentConfig: '@:@cart'}}, {name: test}]}, {name: evaluation, tasks: [{name: evaluation}]}]}, {name: \
                            @prod, sequences: [{name: release, tasks: [{name: approval, properties: {pass: manual, warning: manual}}, {name: deployment}]}]}, {name: @late, \
                            sequences: [{name: delivery, tasks: [{name: deployment}]}]}]}}";

/// Ids that nobody chooses: by project and name.
pub type Ids = BTreeMap<(&'static str, &'static str), String>;

/// The installation, and the ids of what is there.
pub struct Furnished {
    pub stand: Stand,
    pub secrets: Known,
    pub ids: Ids,
}

/// Both projects.
pub async fn furnish() -> Furnished {
    let keys = |of: &str| json!({"keys": [{"id": "k", "key": format!("{of}-key")}]}).to_string();
    let mut secrets = Known::default().with("-/hook", "hook-key");
    for project in [OWN, OTHER] {
        for name in ["registry", "approvals"] {
            secrets = secrets.with(&format!("{project}/{project}{name}"), &keys(&format!("{project}{name}")));
        }
    }
    let mut stand = Stand::with_secrets(Limits::default(), Duration::ZERO, secrets.clone());
    let host = "apiVersion: keelway.dev/v1\nkind: GitHost\nmetadata: {name: forge}\nspec: {host: git.test, type: gitea, api: 'https://git.test/api/v1', \
                webhookSecretRef: {name: hook}}\n";
    stand.manifests(host).await;
    let mut ids = Ids::new();
    for (n, project) in [(1, OWN), (1000, OTHER)] {
        let mut one = One { stand: &mut stand, p: project };
        for (name, id) in one.furnish(n).await {
            ids.insert((project, name), id);
        }
    }
    let unknown: Vec<_> = ids.iter().filter(|((of, _), _)| *of == OTHER).map(|((_, name), id)| (*name, turned(id))).collect();
    ids.extend(unknown.into_iter().map(|(name, id)| ((NOBODY, name), id)));
    Furnished { stand, secrets, ids }
}

/// An id of the same form: two of its characters stand in each other's place.
fn turned(id: &str) -> String {
    let mut all: Vec<char> = id.chars().collect();
    // Not where ids say which version of their form they have.
    let from = all.len() * 3 / 4;
    let pair = (from + 1..all.len()).find(|n| all[*n - 1] != all[*n] && all[*n - 1].is_alphanumeric() && all[*n].is_alphanumeric());
    let at = pair.unwrap_or_else(|| panic!("{id} has only one character"));
    all.swap(at - 1, at);
    all.into_iter().collect()
}

/// A project that is being furnished.
struct One<'a> {
    stand: &'a mut Stand,
    p: &'static str,
}

impl One<'_> {
    fn of(&self, text: &str) -> String {
        text.replace('@', self.p)
    }

    async fn furnish(&mut self, n: u64) -> Vec<(&'static str, String)> {
        let p = self.p;
        let stages = STAGES.trim_start_matches('\n').replace('@', p);
        for text in [format!("{stages}# {p}first\n"), stages.clone(), format!("{stages}# {p}last\n")] {
            self.stand.apply(p, &text).await;
        }
        for text in MANIFESTS {
            self.stand.manifests(&self.of(text)).await;
        }
        for (name, value) in [("@cart", "@old"), ("@fresh", "@old")] {
            self.stand.manifests(&self.of(&config(name, value))).await;
        }
        let mut ids = self.sequences().await;
        ids.extend(self.deployments(n).await);
        self.promotions().await;
        ids.extend(self.others().await);
        self.stand.work().await;
        ids
    }

    /// One failed, one whose task is open, one that waits for it, one that waits for an approval, one for its window.
    async fn sequences(&mut self) -> Vec<(&'static str, String)> {
        let p = self.p;
        for (context, stage, sequence, service) in [
            ("failed", "dev", "delivery", "cart"),
            ("open", "dev", "delivery", "web"),
            ("waits", "dev", "delivery", "web"),
            ("asks", "prod", "release", "api"),
            ("held", "late", "delivery", "web"),
        ] {
            let data = json!({"project": p, "stage": format!("{p}{stage}"), "service": format!("{p}{service}"), "message": format!("{p}told")});
            let ty = format!("sh.keptn.event.{p}{stage}.{sequence}.triggered");
            let event = json!({"type": ty, "source": format!("{p}ci"), "shkeptncontext": format!("{p}-{context}"), "data": data});
            self.stand.trigger_with(event).await;
            if context == "failed" {
                let open = self.open("deployment", context).await;
                let stand = &mut *self.stand;
                stand.answer_to(&open, "deployment", "fail").await;
            }
        }
        let (deployment, approval) = (self.open("deployment", "open").await, self.open("approval", "asks").await);
        let id = |event: &Value| event["id"].as_str().unwrap().to_owned();
        vec![("open", id(&deployment)), ("approval", id(&approval))]
    }

    async fn open(&self, task: &str, context: &str) -> Value {
        let p = self.p;
        let page = self.stand.get(&format!("/v1/event/triggered/{task}?project={p}")).await.json();
        let of = |event: &&Value| event["shkeptncontext"] == json!(format!("{p}-{context}"));
        page["events"].as_array().unwrap().iter().find(of).unwrap_or_else(|| panic!("{context}: {page}")).clone()
    }

    /// One version is complete, one on its way, one that nobody has claimed.
    async fn deployments(&mut self, n: u64) -> Vec<(&'static str, String)> {
        let p = self.p;
        self.push(n).await;
        let mut tokens = vec![];
        for version in [1, 2] {
            let path = format!("/v1/deployments/{p}:{p}cart-{version}");
            let claimed =
                self.stand.post(&format!("{path}/claim"), &json!({"by": format!("{p}ci"), "claim": format!("{p}run")})).await;
            assert_eq!(claimed.status, 200, "{claimed:?}");
            tokens.push(claimed.json()["token"].as_str().unwrap().to_owned());
            if version == 1 {
                let ended = say(self.stand, &format!("{path}/finish"), &tokens[0], &json!({"exitCode": 0})).await;
                assert_eq!(ended.status, 200, "{ended:?}");
                settle(self.stand).await;
                self.stand.manifests(&self.of(&config("@cart", "@new"))).await;
                settle(self.stand).await;
            }
        }
        vec![("ended", tokens.remove(0)), ("attempt", tokens.remove(0)), ("digest", digest(n))]
    }

    async fn push(&mut self, n: u64) {
        let p = self.p;
        self.stand.world.pass(Span::seconds(1));
        let body = json!({"tag": format!("{p}latest"), "digest": digest(n), "image": format!("registry.test/{p}/cart")});
        let pushed = self.stand.post(&format!("/v1/artifacts/{p}/{p}images"), &body).await;
        assert_eq!(pushed.status, 202, "{pushed:?}");
        settle(self.stand).await;
    }

    /// One promotion waits for an approval, one is carried out by a sequence.
    async fn promotions(&mut self) {
        let p = self.p;
        for (namespace, revision) in [("ns1", "v1"), ("ns2", "v1"), ("ns1", "v2")] {
            self.stand.world.pass(Span::seconds(1));
            let fact = json!({
                "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "name": format!("{p}app"), "namespace": format!("{p}{namespace}"),
                "revision": format!("{p}{revision}"), "ready": true
            });
            let answer = self.stand.post("/v1/observations", &fact).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            self.stand.work().await;
        }
        let state = self.stand.get(&format!("/v1/pipelines/{p}/{p}line")).await;
        assert!(state.text.contains(&format!("{p}v2")), "{state:?}");
    }

    /// Deliveries, tokens, executors, files.
    async fn others(&mut self) -> Vec<(&'static str, String)> {
        let p = self.p;
        let mut ids = vec![];
        for (name, status) in [("delivery", 500), ("delivered", 200)] {
            ids.push((name, deliver_in(self.stand, (p, &format!("{p}hook")), &format!("{p}{name}"), status).await));
        }
        let scopes = ["read", "trigger", "execute:*", "approve:*", "administer"];
        for scope in scopes {
            self.stand.token(&format!("{p}-{}", scope.trim_end_matches(":*")), &[scope], &[p]).await;
        }
        self.stand.token(&format!("{p}-all"), &scopes, &[p]).await;
        let subscription =
            json!({"event": "sh.keptn.event.test.triggered", "filter": {"projects": [p], "stages": [format!("{p}dev")]}});
        let register =
            json!({"name": format!("{p}-tester"), "metadata": {"hostname": format!("{p}host")}, "subscriptions": [subscription]});
        self.stand.like(&format!("{p}-execute"));
        let registered = self.stand.post("/v1/uniform/registration", &register).await.json()["id"].as_str().unwrap().to_owned();
        let logs =
            json!({"logs": [{"integrationid": registered, "message": format!("{p}logged"), "time": "2026-11-20T12:00:00Z"}]});
        assert_eq!(self.stand.post("/v1/log", &logs).await.status, 200);
        self.stand.like("");
        let subscriptions = self.stand.get(&format!("/v1/uniform/registration/{registered}/subscription")).await.json();
        ids.push(("subscription", subscriptions[0]["id"].as_str().unwrap().to_owned()));
        ids.push(("integration", registered));
        for scope in [String::new(), format!("/stage/{p}dev"), format!("/stage/{p}dev/service/{p}cart")] {
            let body = json!({"resources": [{"resourceURI": format!("{p}.txt"), "resourceContent": "eA=="}]});
            assert_eq!(self.stand.post(&format!("/v1/project/{p}{scope}/resource"), &body).await.status, 201);
        }
        assert_eq!(
            self.stand.post(&format!("/v1/project/{p}/service"), &json!({"serviceName": format!("{p}unused")})).await.status,
            200
        );
        let page = self.stand.get(&format!("/v1/project/{p}/shipyard/revisions")).await.json();
        for (name, n) in [("newest", 0), ("older", 1)] {
            ids.push((name, page["items"][n]["revision"].as_str().unwrap().to_owned()));
        }
        ids
    }
}
