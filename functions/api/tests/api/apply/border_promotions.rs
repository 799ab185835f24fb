//! Pipelines and clusters that name what is not their own, as they are applied.

use crate::access::tokens::STAGES;
use crate::stand::Stand;

const HEAD: &str =
    "apiVersion: pipelines.weave.works/v1alpha1\nkind: Pipeline\nmetadata: {name: reach, namespace: team-a}\nspec:\n";
const BY_SEQUENCE: &str = "  appRef: {apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, name: carts}\n  environments:\n    - {name: dev, \
                           targets: [{namespace: a}]}\n    - {name: staging, targets: [{namespace: b}]}\n  promotion: {strategy: \
                           {sequence: {project: team-b, service: carts}}}\n";
const BY_CONFIG: &str = "  appRef: {apiVersion: keelway.dev/v1, kind: DeploymentConfig, name: api}\n  environments:\n    - {name: dev, targets: \
                         [{namespace: team-a}]}\n    - {name: prod, targets: [{namespace: team-b}]}\n";
const BY_CLUSTER: &str = "  appRef: {apiVersion: x.io/v1, kind: Thing, name: payroll}\n  environments:\n    - {name: dev, targets: [{namespace: x, \
                          clusterRef: {name: prod, namespace: team-b}}]}\n";
const BY_REQUEST: &str = "  appRef: {apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, name: carts}\n  environments:\n    - {name: dev, \
                          targets: [{namespace: a}]}\n    - {name: staging, targets: [{namespace: b}]}\n  promotion: {strategy: {pullRequest: \
                          {type: gitea, url: 'https://git.test/team-b/config.git', baseBranch: main}}}\n";
const CLUSTER: &str = "apiVersion: keelway.dev/v1\nkind: Cluster\nmetadata: {name: prod, namespace: team-a}\nspec: {server: \
                       'https://a.k8s.test', secretRef: {name: t}}\n";

fn project(name: &str, spec: &str) -> String {
    format!("apiVersion: keelway.dev/v1\nkind: Project\nmetadata: {{name: {name}}}\nspec: {spec}\n")
}

async fn applied(stand: &mut Stand, who: &str, text: &str) -> (u16, String) {
    let answer = stand.like(who).post_text("/v1/apply", "application/yaml", text.into()).await;
    (answer.status, if answer.status == 200 { String::new() } else { answer.problem() })
}

/// Two projects; `a` administers the first one, `both` may also start and see things in the second one.
async fn stand() -> Stand {
    let mut stand = Stand::new();
    for project in ["team-a", "team-b"] {
        stand.apply(project, STAGES).await;
    }
    stand.token("a", &["administer"], &["team-a"]).await;
    stand.token("both", &["administer"], &["team-a", "team-b"]).await;
    stand
}

#[tokio::test]
async fn what_a_pipeline_reaches_in_another_project_takes_a_right_and_a_consent_there() {
    for (spec, field, need, act, name) in [
        (BY_SEQUENCE, "spec.promotion.strategy.sequence.project", "trigger", "trigger", "staging"),
        (BY_CONFIG, "spec.environments[1].targets[0].namespace", "read", "observe", "api"),
        (BY_CLUSTER, "spec.environments[0].targets[0].clusterRef.namespace", "read", "observe", "prod"),
    ] {
        let (mut stand, pipeline) = (stand().await, format!("{HEAD}{spec}"));
        let (status, told) = applied(&mut stand, "a", &pipeline).await;
        assert_eq!(status, 403, "{told}");
        assert!(told.starts_with(&format!("Pipeline reach: {field}: this needs {need} in project \"team-b\"")), "{told}");
        // Not even an administrator of everything reaches where nobody has consented.
        for who in ["both", ""] {
            let (status, told) = applied(&mut stand, who, &pipeline).await;
            assert_eq!(status, 403, "{told}");
            assert!(told.starts_with(&format!("Pipeline reach: {field}: project team-b does not let team-a {act} ")), "{told}");
        }
        let lets = project("team-b", &format!("{{consents: [{{to: [team-a], may: [{act}], names: [{name}, dev]}}]}}"));
        // In the same text, or before.
        assert_eq!(applied(&mut stand, "both", &format!("{lets}---\n{pipeline}")).await.0, 200);
        assert_eq!(applied(&mut stand, "both", &pipeline).await.0, 200);
        assert_eq!(applied(&mut stand, "a", &pipeline).await.0, 403, "a consent is no right of whoever applies");
    }
}

#[tokio::test]
async fn servers_and_repositories_take_a_policy_or_an_administrator_of_the_installation() {
    let request = format!("{HEAD}{BY_REQUEST}");
    for (document, kind, name) in
        [(CLUSTER.to_owned(), "servers", "https://a.k8s.test"), (request, "repositories", "https://git.test/team-b/config")]
    {
        let mut stand = stand().await;
        let (status, told) = applied(&mut stand, "a", &document).await;
        assert_eq!(status, 403, "{told}");
        assert!(told.contains("project team-a may not use") && told.contains(name) && told.contains(kind), "{told}");
        // Somebody vouches for it: then the same may be applied again, and nothing else.
        assert_eq!(applied(&mut stand, "", &document).await.0, 200);
        assert_eq!(applied(&mut stand, "a", &document).await.0, 200);
        let other = document.replace("https://", "https://x.");
        assert_eq!(applied(&mut stand, "a", &other).await.0, 403);
        // A policy counts alone.
        let lists = |name: &str| project("team-a", &format!("{{policy: {{allows: {{{kind}: [{{name: '{name}'}}]}}}}}}"));
        assert_eq!(applied(&mut stand, "", &lists(&name.replace("https://", "https://x."))).await.0, 200);
        assert_eq!(applied(&mut stand, "a", &other).await.0, 200);
        assert_eq!(applied(&mut stand, "", &document).await.0, 403);
    }
}

const METRICS: &str = "apiVersion: keelway.dev/v1\nkind: MetricsSource\nmetadata: {name: cloud, namespace: team-a}\nspec: {cloudwatch: {role: \
                       'arn:aws:iam::111122223333:role/metrics'}}\n";

#[tokio::test]
async fn metrics_that_are_read_with_credentials_of_aws_take_a_policy_or_an_administrator_of_the_installation() {
    let mut stand = stand().await;
    let (status, told) = applied(&mut stand, "a", METRICS).await;
    let why = "spec.cloudwatch.role: project team-a may not use source of metrics cloudwatch/metrics (111122223333)";
    assert!(status == 403 && told.contains(why), "{told}");
    assert_eq!(applied(&mut stand, "", METRICS).await.0, 200);
    assert_eq!(applied(&mut stand, "a", METRICS).await.0, 200, "the same again");
    let own = METRICS.replace("role: 'arn:aws:iam::111122223333:role/metrics'", "");
    let (status, told) = applied(&mut stand, "a", &own).await;
    assert!(status == 403 && told.contains("spec.cloudwatch: ") && told.contains("spec.policy.allows.metrics"), "{told}");
    for (policy, theirs, ours) in
        [("[cloudwatch]", 403, 200), ("[cloudwatch/*]", 403, 403), ("[{name: cloudwatch/*, account: '*'}]", 200, 403)]
    {
        let policy = project("team-a", &format!("{{policy: {{allows: {{metrics: {policy}}}}}}}"));
        assert_eq!(applied(&mut stand, "", &policy).await.0, 200);
        let both = (applied(&mut stand, "a", METRICS).await.0, applied(&mut stand, "a", &own).await.0);
        assert_eq!(both, (theirs, ours), "{policy}");
    }
}

/// A pipeline with a secret of its own asks nobody of the installation.
#[tokio::test]
async fn a_repository_with_credentials_of_ones_own_takes_no_policy() {
    let mut stand = stand().await;
    let own = format!("{HEAD}{BY_REQUEST}").replace("baseBranch: main", "baseBranch: main, secretRef: {name: git}");
    assert_eq!(applied(&mut stand, "a", &own).await, (200, String::new()));
}
