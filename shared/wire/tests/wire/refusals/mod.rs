//! A DeploymentConfig, and what is expected of one that is changed in one place.

use keelway_wire::manifest::{self, Finding, Severity};

/// All findings.
pub fn findings(text: &str) -> Vec<Finding> {
    manifest::parse(text, "config.yaml").findings
}

/// One that is valid, with a field of every kind.
pub const FULL: &str = "\
apiVersion: apps.openshift.io/v1
kind: DeploymentConfig
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {app: web}
  minReadySeconds: 5
  revisionHistoryLimit: 3
  paused: false
  triggers:
  - type: ImageChange
    imageChangeParams:
      automatic: true
      containerNames: [web]
      from: {kind: ImageStreamTag, name: 'web:v1', namespace: shop}
  strategy:
    type: Rolling
    activeDeadlineSeconds: 900
    customParams: {image: 'd:1', command: [run], environment: [{name: A, value: b}]}
    rollingParams:
      timeoutSeconds: 300
      intervalSeconds: 2
      updatePeriodSeconds: 3
      maxSurge: 20%
      maxUnavailable: 0
      pre:
        failurePolicy: Abort
        execNewPod: {containerName: web, command: [migrate], env: [{name: LEVEL, value: x}], volumes: [data]}
      post:
        failurePolicy: Ignore
        tagImages: [{containerName: web, to: {kind: ImageStreamTag, name: 'web:live'}}]
  targets: [{name: eu, kind: ecs-service, id: shop/web, region: eu-west-1, account: '123456789012'}]
  autoRollback: {onFailure: true, alarms: [errors], bake: 5m}
  concurrency: queue
  resume: explicit
  deployer: {ecs: {taskDefinition: 'deployer:1'}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, env: [{name: B, value: c}]}, {name: proxy, image: 'proxy:1'}]
";

/// Replaces `from` by `to`, and expects this error, and no other.
pub fn refuses(text: &str, cases: &[(&str, &str, &str, &str)]) {
    assert_eq!(findings(text), [], "the text itself is fine");
    for (from, to, path, words) in cases {
        assert!(text.contains(from), "{from}");
        let found = findings(&text.replacen(from, to, 1));
        let errors: Vec<&Finding> = found.iter().filter(|finding| finding.severity == Severity::Error).collect();
        let hit = errors.iter().find(|finding| finding.path == *path && finding.message.contains(words));
        assert!(hit.is_some_and(|finding| finding.line > 0), "{from} → {to}: {found:#?}");
        assert_eq!(errors.len(), 1, "{from} → {to}: {found:#?}");
    }
}
