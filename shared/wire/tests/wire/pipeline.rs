//! Pipelines: Weave's manifests are read as they are. What is refused is in `refusals/pipeline.yaml`.

use keelway_domain::promotions::definition::{Compare, InFlight, Strategy};
use keelway_domain::time::Span;
use keelway_wire::manifest::{self, Document, Finding, PipelineManifest};

fn findings(text: &str) -> Vec<Finding> {
    manifest::parse(text, "pipeline.yaml").findings
}

fn read(text: &str) -> PipelineManifest {
    let parsed = manifest::parse(text, "pipeline.yaml");
    assert!(!parsed.refused(), "{:#?}", parsed.findings);
    match parsed.documents.into_iter().next() {
        Some(Document::Pipeline(pipeline)) => *pipeline,
        other => panic!("no pipeline: {other:?}"),
    }
}

/// As Weave's documentation shows it.
const WEAVE: &str = "\
apiVersion: pipelines.weave.works/v1alpha1
kind: Pipeline
metadata:
  name: podinfo-02
  namespace: flux-system
spec:
  appRef:
    apiVersion: helm.toolkit.fluxcd.io/v2beta1
    kind: HelmRelease
    name: podinfo
  environments:
    - name: dev
      targets:
        - namespace: podinfo-02-dev
          clusterRef:
            kind: GitopsCluster
            name: dev
            namespace: default
    - name: prod
      targets:
        - namespace: podinfo-02-prod
          clusterRef: {kind: GitopsCluster, name: prod}
  promotion:
    manual: true
    strategy:
      pull-request:
        type: github
        url: https://github.com/my-org/my-app-repo.git
        baseBranch: main
        secretRef: {name: promotion-credentials}
      secretRef: {name: approval-keys}
";

#[test]
fn a_pipeline_of_weave_is_read_as_it_is() {
    let pipeline = read(WEAVE);
    assert_eq!((pipeline.namespace.as_str(), pipeline.name.as_str()), ("flux-system", "podinfo-02"));
    assert_eq!(pipeline.source, WEAVE);
    let definition = pipeline.definition;
    assert_eq!(definition.environments[0].targets[0].cluster.as_deref(), Some("default/dev"));
    let promotion = definition.promotion.unwrap();
    assert!(promotion.manual && promotion.approval.secret.as_deref() == Some("approval-keys"));
    let Strategy::PullRequest(request) = promotion.strategy else { panic!("no pull request") };
    assert_eq!((request.host.as_str(), request.url.as_str()), ("github", "https://github.com/my-org/my-app-repo"));
    assert_eq!((definition.in_flight, definition.compare), (InFlight::Restart, Compare::Exact));
    assert_eq!(findings(WEAVE), vec![]);
}

#[test]
fn additions_stand_beside_what_weave_has() {
    let text = WEAVE
        .replace("    manual: true\n", "    manual: true\n    approval: {quorum: 2, approvers: [\"token:ann\", login.acme.test/bob], remind: 4h}\n    windows:\n      - {kind: allow, schedule: \"0 9 * * MON-FRI\", duration: 8h, zone: Europe/Berlin}\n")
        .replace("    - name: dev\n", "    - name: dev\n      soak: 1h\n")
        .replace("  environments:\n", "  inFlight: finish\n  compare: digest\n  environments:\n");
    let definition = read(&text).definition;
    assert_eq!((definition.in_flight, definition.compare), (InFlight::Finish, Compare::Digest));
    assert_eq!(definition.environments[0].soak, Some(Span::minutes(60)));
    let promotion = definition.promotion.unwrap();
    assert_eq!((promotion.approval.quorum, promotion.approval.approvers.len(), promotion.windows.len()), (2, 2, 1));
    let by = |strategy: &str| {
        let start = WEAVE.find("      pull-request:").unwrap();
        let text = format!("{}      {strategy}\n", &WEAVE[..start]);
        read(&text).definition.promotion.unwrap().strategy
    };
    assert!(matches!(by("notification: {}"), Strategy::Notification(told) if told.url.is_none()));
    assert!(matches!(by("sequence: {service: carts}"), Strategy::Sequence(sequence) if sequence.name == "delivery"));
}

#[test]
fn an_environment_is_evaluated_over_its_soak_time() {
    let with =
        |says: &str| WEAVE.replace("    - name: dev\n", &format!("    - name: dev\n      soak: 2h\n      evaluation: {says}\n"));
    let read = |says: &str| read(&with(says)).definition.environments[0].evaluation.clone().unwrap();
    let plain = read("{service: carts}");
    assert_eq!((plain.place("dev"), plain.strict), (("dev", "carts"), false));
    let other = read("{service: carts, stage: hardening, warning: fail}");
    assert_eq!((other.place("dev"), other.strict), (("hardening", "carts"), true));
}

/// Manifests had them before there were other forms.
#[test]
fn plain_names_of_approvers_are_kept() {
    let plain = WEAVE.replace("    manual: true\n", "    manual: true\n    approval: {approvers: [ann]}\n");
    assert_eq!(read(&plain).definition.promotion.unwrap().approval.approvers, ["ann"]);
}

#[test]
fn a_pipeline_asks_for_somebody_else() {
    let with = |says: &str| WEAVE.replace("    manual: true\n", &format!("    manual: true\n    approval: {{separate: {says}}}\n"));
    assert!(read(&with("true")).definition.promotion.unwrap().approval.separate);
    assert!(!read(&with("false")).definition.promotion.unwrap().approval.separate);
}

#[test]
fn a_cluster_without_namespace_is_of_the_pipelines_own() {
    let definition = read(WEAVE).definition;
    assert_eq!(definition.environments[1].targets[0].cluster.as_deref(), Some("flux-system/prod"));
    let nowhere = read(&WEAVE.replace("  namespace: flux-system\n", ""));
    assert_eq!(nowhere.namespace.as_str(), "default");
    assert_eq!(nowhere.definition.environments[1].targets[0].cluster.as_deref(), Some("default/prod"));
}

#[test]
fn more_than_fifty_environments_are_refused() {
    let start = WEAVE.find("    - name: dev").unwrap();
    let end = WEAVE.find("  promotion:").unwrap();
    let with = |n: usize| {
        let all: String = (0..n).map(|n| format!("    - {{name: e{n}, targets: [{{namespace: e{n}}}]}}\n")).collect();
        findings(&format!("{}{all}{}", &WEAVE[..start], &WEAVE[end..]))
    };
    assert_eq!(with(50), vec![]);
    assert!(with(51).iter().any(|finding| finding.path == "spec.environments" && finding.message.contains("at most 50")));
}

#[test]
fn a_notification_keeps_its_url() {
    let start = WEAVE.find("      pull-request:").unwrap();
    let text =
        format!("{}      notification: {{url: 'https://hooks.example/x/?a=1', secretRef: {{name: hook}}}}\n", &WEAVE[..start]);
    let Strategy::Notification(told) = read(&text).definition.promotion.unwrap().strategy else { panic!("no notification") };
    assert_eq!((told.url.as_deref(), told.secret.as_deref()), (Some("https://hooks.example/x/?a=1"), Some("hook")));
}

const CLUSTER: &str = "\
apiVersion: keelway.dev/v1
kind: Cluster
metadata: {name: prod, namespace: shop}
spec:
  server: https://10.0.0.1:6443/
  caData: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t
  secretRef: {name: prod-token}
  interval: 30s
";
const HOST: &str = "\
apiVersion: keelway.dev/v1
kind: GitHost
metadata: {name: forge}
spec:
  host: Git.Example.org
  type: forgejo
  api: https://git.example.org/api/v1
  webhookSecretRef: {name: forge-hook}
";

#[test]
fn clusters_and_hosts_are_registered() {
    let parsed = manifest::parse(&format!("{CLUSTER}---\n{HOST}"), "-");
    assert_eq!(parsed.findings, vec![]);
    let [Document::Cluster(cluster), Document::GitHost(host)] = &parsed.documents[..] else { panic!("{parsed:?}") };
    assert_eq!((cluster.namespace.as_str(), cluster.name.as_str()), ("shop", "prod"));
    assert_eq!((cluster.cluster.server.as_str(), cluster.cluster.secret.as_str()), ("https://10.0.0.1:6443", "prod-token"));
    assert_eq!(cluster.cluster.interval, Some(Span::seconds(30)));
    assert_eq!((host.name.as_str(), host.host.host.as_str(), host.host.form.as_str()), ("forge", "git.example.org", "gitea"));
    assert_eq!((host.host.secret.as_deref(), host.host.webhook_secret.as_deref()), (None, Some("forge-hook")));
    for loopback in ["http://127.0.0.1:8080", "http://localhost", "http://[::1]:1"] {
        assert_eq!(findings(&HOST.replace("https://git.example.org/api/v1", loopback)), vec![], "{loopback}");
    }
}

#[test]
fn without_credentials_of_its_own_a_pull_request_takes_the_hosts() {
    let text = WEAVE.replace("        secretRef: {name: promotion-credentials}\n", "");
    let Strategy::PullRequest(request) = read(&text).definition.promotion.unwrap().strategy else { panic!("no pull request") };
    assert_eq!(request.secret, "");
}
