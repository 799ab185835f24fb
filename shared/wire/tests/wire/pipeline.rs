//! Pipelines: Weave's manifests are read as they are, and everything wrong is told at once, with the remedy.

use keelway_domain::promotions::definition::{Compare, InFlight, Strategy};
use keelway_domain::time::Span;
use keelway_wire::manifest::{self, Document, Finding, PipelineManifest, Severity};

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
fn everything_wrong_is_told_with_its_line_and_the_remedy() {
    for (from, to, path, words) in [
        ("v1alpha1", "v1", "apiVersion", "write `apiVersion: pipelines.weave.works/v1alpha1`"),
        ("name: podinfo-02\n", "name: Podinfo_02\n", "metadata.name", "for example `podinfo-02`"),
        ("    name: podinfo\n", "", "spec.appRef.name", "is missing"),
        ("    - name: prod\n", "    - name: dev\n", "spec.environments[1].name", "is there twice"),
        (
            "      targets:\n        - namespace: podinfo-02-dev\n",
            "      targets: []\n      x:\n        - namespace: podinfo-02-dev\n",
            "spec.environments[0].targets",
            "at least one target",
        ),
        ("      pull-request:\n", "      pullrequest:\n", "spec.promotion.strategy.pullrequest", "write `pull-request`"),
        ("type: github", "type: svn", "spec.promotion.strategy.pull-request.type", "write one of `github`"),
        ("type: github", "type: azure-devops", "spec.promotion.strategy.pull-request.type", "is not a host"),
        ("https://", "http://", "spec.promotion.strategy.pull-request.url", "does not begin with `https://`"),
        ("https://", "https://me:secret@", "spec.promotion.strategy.pull-request.url", "names a user"),
        ("        baseBranch: main\n", "", "spec.promotion.strategy.pull-request.baseBranch", "is missing"),
        ("manual: true", "manual: maybe", "spec.promotion.manual", "write `true` or `false`"),
        (
            "    manual: true\n",
            "    manual: true\n    approval: {quorum: 3, approvers: [\"token:ann\"]}\n",
            "spec.promotion.approval.quorum",
            "no revision could ever be approved",
        ),
        (
            "https://github.com/my-org/my-app-repo.git",
            "https://github.com",
            "spec.promotion.strategy.pull-request.url",
            "does not name a repository",
        ),
        ("https://github.com/my-org/my-app-repo.git", "''", "spec.promotion.strategy.pull-request.url", "is missing"),
        ("      pull-request:\n", "      notification: {}\n      pull-request:\n", "spec.promotion.strategy", "names 2 strategies"),
        (
            "secretRef: {name: approval-keys}",
            "secretRef: {name: a/../b}",
            "spec.promotion.strategy.secretRef.name",
            "not the name of a secret",
        ),
        ("cluster", "clustr", "spec.environments[0].targets[0].clustrRef", "write `clusterRef`"),
        ("kind: GitopsCluster, name: prod", "kind: GitopsCluster", "spec.environments[1].targets[0].clusterRef.name", "is missing"),
        (
            "    manual: true\n",
            "    manual: true\n    approval: {quorum: 0, approvers: [ann, ann]}\n",
            "spec.promotion.approval.approvers[1]",
            "is there twice",
        ),
        ("    manual: true\n", "    manual: true\n    approval: {remind: soon}\n", "spec.promotion.approval.remind", "soon"),
        (
            "    manual: true\n",
            "    manual: true\n    windows: [{kind: allow, schedule: soon, duration: 1h}]\n",
            "spec.promotion.windows[0].schedule",
            "no cron expression",
        ),
    ] {
        assert!(WEAVE.contains(from), "{from}");
        let found = findings(&WEAVE.replacen(from, to, 1));
        let hit = found.iter().find(|finding| finding.path == path && finding.severity == Severity::Error);
        assert!(hit.is_some_and(|finding| finding.message.contains(words) && finding.line > 0), "{from} → {to}: {found:#?}");
    }
    let all =
        findings(&WEAVE.replace("type: github", "type: svn").replace("https://", "http://").replace("    name: podinfo\n", ""));
    assert_eq!(all.iter().filter(|finding| finding.severity == Severity::Error).count(), 3, "{all:#?}");
}

#[test]
fn approvers_are_told_apart_by_who_vouches_for_them() {
    let with = |approvers: &str| {
        WEAVE.replace("    manual: true\n", &format!("    manual: true\n    approval: {{approvers: [{approvers}]}}\n"))
    };
    let known = with("\"token:ann\", login.acme.test/ann, \"key:ci/ann\", administrator");
    assert_eq!(findings(&known), vec![]);
    // As manifests had it before: kept, and told how to write it.
    let plain = with("ann");
    let found = findings(&plain);
    assert!(found.len() == 1 && found[0].severity == Severity::Warning && found[0].message.contains("`token:ann`"), "{found:#?}");
    assert_eq!(read(&plain).definition.promotion.unwrap().approval.approvers, ["ann"]);
    for (approvers, words) in [
        ("ann@acme.test", "is nobody"),
        ("\"repo:acme/shop:ref:refs/heads/main\"", "is nobody"),
        ("\"token:administrator\"", "is nobody"),
        ("ann, \"token:ann\"", "is there twice"),
    ] {
        let found = findings(&with(approvers));
        let errors: Vec<_> = found.iter().filter(|finding| finding.severity == Severity::Error).collect();
        assert!(errors.len() == 1 && errors[0].message.contains(words), "{approvers}: {found:#?}");
    }
}

#[test]
fn a_pipeline_asks_for_somebody_else() {
    let with = |says: &str| WEAVE.replace("    manual: true\n", &format!("    manual: true\n    approval: {{separate: {says}}}\n"));
    assert!(read(&with("true")).definition.promotion.unwrap().approval.separate);
    assert!(!read(&with("false")).definition.promotion.unwrap().approval.separate);
    let found = findings(&with("yes please"));
    assert!(
        found.iter().any(|finding| finding.path.ends_with("approval.separate") && finding.severity == Severity::Error),
        "{found:#?}"
    );
}

#[test]
fn no_environments_is_an_error_and_a_lost_approval_a_warning() {
    let start = WEAVE.find("    - name: dev").unwrap();
    let end = WEAVE.find("  promotion:").unwrap();
    let none = format!("{} []\n{}", WEAVE[..start].trim_end(), &WEAVE[end..]);
    assert!(findings(&none).iter().any(|finding| finding.path == "spec.environments" && finding.message.contains("is empty")));
    let own = "      promotion:\n        strategy: {notification: {}}\n";
    let text = WEAVE.replace("  promotion:\n    manual", &format!("{own}  promotion:\n    manual"));
    let found = findings(&text);
    assert!(found[0].severity == Severity::Warning && found[0].message.contains("without approval"), "{found:#?}");
    let said = text.replace("        strategy: {notification", "        manual: false\n        strategy: {notification");
    assert_eq!(findings(&said), vec![]);
}

#[test]
fn everything_wrong_with_a_window_is_told_at_once() {
    let window = "    manual: true\n    windows: [{kind: open, schedule: soon, zone: Mars/Olympus, duration: long}]\n";
    let found = findings(&WEAVE.replace("    manual: true\n", window));
    let paths: Vec<&str> = found.iter().map(|finding| finding.path.trim_start_matches("spec.promotion.windows[0].")).collect();
    assert_eq!(paths, ["kind", "schedule", "zone", "duration"], "{found:#?}");
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
fn a_notification_keeps_its_url_and_needs_a_secret_to_sign() {
    let start = WEAVE.find("      pull-request:").unwrap();
    let with = |strategy: &str| format!("{}      notification: {strategy}\n", &WEAVE[..start]);
    let Strategy::Notification(told) =
        read(&with("{url: 'https://hooks.example/x/?a=1', secretRef: {name: hook}}")).definition.promotion.unwrap().strategy
    else {
        panic!("no notification")
    };
    assert_eq!((told.url.as_deref(), told.secret.as_deref()), (Some("https://hooks.example/x/?a=1"), Some("hook")));
    for (strategy, path, words) in [
        ("{url: 'ftp://hooks.example/'}", "url", "does not begin with `https://`"),
        ("{url: 'http://hooks.example/'}", "url", "WebhookAllowedHosts"),
        ("{url: 'https://hooks.example/'}", "secretRef", "is signed"),
        ("{url: 'https:///x', secretRef: {name: hook}}", "url", "is not a URL"),
    ] {
        let found = findings(&with(strategy));
        let path = format!("spec.promotion.strategy.notification.{path}");
        assert!(found.iter().any(|finding| finding.path == path && finding.message.contains(words)), "{strategy}: {found:#?}");
    }
}

#[test]
fn a_password_in_a_url_is_not_repeated() {
    let found = findings(&WEAVE.replace("https://", "ftp://me:pa55word@"));
    assert!(found.iter().all(|finding| !finding.message.contains("pa55word")), "{found:#?}");
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
fn what_cannot_be_registered_is_told() {
    for (text, from, to, path, words) in [
        (CLUSTER, "https://10", "http://10", "spec.server", "`http` is for 127.0.0.1"),
        (CLUSTER, "6443", "99999", "spec.server", "is not a URL"),
        (CLUSTER, "LS0t", "x", "spec.caData", "is no certificate"),
        (CLUSTER, "  secretRef: {name: prod-token}\n", "", "spec.secretRef", "bearer token"),
        (CLUSTER, "30s", "0s", "spec.interval", "is 0"),
        (CLUSTER, "  server", "  servr", "spec.servr", "write `server`"),
        (CLUSTER, "keelway.dev/v1", "v1", "apiVersion", "is not a version of Cluster"),
        (HOST, "Git.Example.org", "https://git.example.org", "spec.host", "is not a host name"),
        (HOST, "forgejo", "svn", "spec.type", "write one of"),
        (HOST, "/api/v1", "/api?x", "spec.api", "only the base URL"),
        (HOST, "name: forge}", "name: Forge}", "metadata.name", "for example `forge`"),
    ] {
        assert!(text.contains(from), "{from}");
        let found = findings(&text.replacen(from, to, 1));
        let hit = found.iter().find(|finding| finding.path == path && finding.severity == Severity::Error);
        assert!(hit.is_some_and(|finding| finding.message.contains(words) && finding.line > 0), "{from} → {to}: {found:#?}");
    }
}

#[test]
fn without_credentials_of_its_own_a_pull_request_takes_the_hosts() {
    let text = WEAVE.replace("        secretRef: {name: promotion-credentials}\n", "");
    let found = findings(&text);
    assert!(
        found.len() == 1 && found[0].severity == Severity::Warning && found[0].message.contains("need credentials"),
        "{found:#?}"
    );
    let Strategy::PullRequest(request) = read(&text).definition.promotion.unwrap().strategy else { panic!("no pull request") };
    assert_eq!(request.secret, "");
    let empty = findings(&WEAVE.replace("{name: promotion-credentials}", "{}"));
    assert!(
        empty.len() == 1 && empty[0].severity == Severity::Error && empty[0].path.ends_with("pull-request.secretRef.name"),
        "{empty:#?}"
    );
}
