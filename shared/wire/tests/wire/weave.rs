//! Pipelines in the forms in which people keep Weave's: the present one, older ones, and those with the usual slips.

use keelway_domain::promotions::definition::Strategy;
use keelway_wire::manifest::{self, Document, Finding, Severity};

const HEAD: &str = "\
apiVersion: pipelines.weave.works/v1alpha1
kind: Pipeline
metadata: {name: carts, namespace: flux-system}
spec:
  appRef: {apiVersion: helm.toolkit.fluxcd.io/v2beta1, kind: HelmRelease, name: carts}
  environments:
    - name: dev
      targets:
        - namespace: carts-dev
    - name: prod
      targets:
        - namespace: carts-prod
          clusterRef: {kind: GitopsCluster, name: eu, namespace: flux-system}
";
const REQUEST: &str = "        type: github
        url: https://github.com/acme/config
        baseBranch: main
        secretRef:
          name: github-credentials
";

fn errors(text: &str) -> Vec<Finding> {
    let findings = manifest::parse(text, "pipeline.yaml").findings;
    findings.into_iter().filter(|finding| finding.severity == Severity::Error).collect()
}

fn strategy(text: &str) -> Strategy {
    match manifest::parse(text, "pipeline.yaml").documents.into_iter().next() {
        Some(Document::Pipeline(pipeline)) => pipeline.definition.promotion.unwrap().strategy,
        other => panic!("no pipeline: {other:?}"),
    }
}

#[test]
fn weaves_own_key_of_pull_requests_and_the_other_spelling_mean_the_same() {
    let with = |key: &str| format!("{HEAD}  promotion:\n    strategy:\n      {key}:\n{REQUEST}");
    for key in ["pull-request", "pullRequest"] {
        assert_eq!(manifest::parse(&with(key), "pipeline.yaml").findings, vec![], "{key}");
    }
    assert!(matches!(strategy(&with("pull-request")), Strategy::PullRequest(request) if request.base_branch == "main"));
    assert_eq!(strategy(&with("pull-request")), strategy(&with("pullRequest")));
    let both = format!("{}      pullRequest:\n{REQUEST}", with("pull-request"));
    assert!(errors(&both).iter().any(|error| error.message.contains("names 2 strategies")), "{:?}", errors(&both));
    // What is wrong is told under the key that the manifest has.
    let wrong = errors(&with("pullRequest").replace("type: github", "type: svn"));
    assert_eq!(wrong[0].path, "spec.promotion.strategy.pullRequest.type");
}

#[test]
fn a_pipeline_without_promotion_or_with_a_manual_one_is_taken() {
    assert_eq!(errors(HEAD), vec![]);
    let manual = format!("{HEAD}  promotion:\n    manual: false\n    strategy:\n      pull-request:\n{REQUEST}");
    assert_eq!(errors(&manual), vec![]);
}
