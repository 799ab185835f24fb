//! `spec.consents` and `spec.policy` of a project.

use crate::common::{findings, parse};
use keelway_domain::border::{Act, Counted, Pattern, Policy, ResourceKind, Update};
use keelway_wire::manifest::{Document, ProjectManifest};
use serde_json::json;

fn project(spec: &str) -> String {
    format!("apiVersion: keelway.dev/v1\nkind: Project\nmetadata: {{name: team-b}}\nspec:\n{spec}")
}

fn read(spec: &str) -> ProjectManifest {
    let mut parsed = parse(&project(spec));
    assert!(parsed.findings.is_empty(), "{:?}", parsed.findings);
    match parsed.documents.pop() {
        Some(Document::Project(project)) => project,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_project_says_who_is_let_in_and_what_it_may_use() {
    let read = read(
        r#"
  consents:
  - to: [team-a, "shop-*"]
    may: [deploy, observe, deploy]
    names: [api, "web-*"]
  - {to: ["*"], may: [trigger]}
  policy:
    allows:
      functions: ["team-b-*", {name: "edge-*", region: "eu-*", account: 123456789012}]
      images: ["123456789012.dkr.ecr.eu-central-1.amazonaws.com/team-b/*"]
      packages: ["releases/team-b/*"]
      tasks: ["*/team-b-*"]
      repositories: ["https://git.example/team-b/*", "https://*.git.example/*"]
      servers: ["*"]
      builds: []
    quotas: {webhooks: 20}
"#,
    );
    let [own, anybody] = &read.consents.0[..] else { panic!("{:?}", read.consents) };
    assert_eq!((&own.to[1][..], &own.may[..], &own.names[0][..]), ("shop-*", &[Act::Deploy, Act::Observe][..], "api"));
    assert_eq!((&anybody.may[..], anybody.names.len()), (&[Act::Trigger][..], 0));
    let Update::Set(Some(policy)) = read.policy else { panic!("{:?}", read.policy) };
    let edge = Pattern { name: "edge-*".into(), region: Some("eu-*".into()), account: Some("123456789012".into()) };
    assert_eq!(policy.allows[&ResourceKind::Functions], [Pattern::named("team-b-*"), edge]);
    assert_eq!((policy.quotas.most(Counted::Webhooks), policy.quotas.most(Counted::Schedules)), (20, 200));
    assert!(policy.allows[&ResourceKind::Builds].is_empty() && !policy.allows.contains_key(&ResourceKind::HookFunctions));
}

#[test]
fn what_is_not_said_stays_and_null_takes_it_away() {
    let absent = read("  description: x\n");
    assert_eq!((absent.consents.0.len(), absent.policy), (0, Update::Keep));
    assert_eq!(read("  consents:\n  policy: null\n").policy, Update::Set(None));
    assert_eq!(read("  policy: {}\n").policy, Update::Set(Some(Policy::default())), "nothing is allowed");
}

#[test]
fn consents_that_are_wrong_say_what_to_write() {
    insta::assert_snapshot!(findings(&project(
        r#"
  consents:
  - {to: [team-a], may: [deplpy, destroy]}
  - {to: [], may: []}
  - {to: [team_a, "a b"], may: [tag], names: []}
  - {to: [a], may: [tag], name: [api]}
  - {to: [a], may: [tag], configs: [api]}
  - {to: [a], may: [tag], whatever: [api]}
  - team-a
"#
    )), @r#"
    error: shipyard.yaml:7:26: spec.consents[0].may[0]: "deplpy" is nothing that others may do: write `deploy`
      7 |   - {to: [team-a], may: [deplpy, destroy]}
        |                          ^
    error: shipyard.yaml:7:34: spec.consents[0].may[1]: "destroy" is nothing that others may do: write one of `deploy`, `tag`, `observe`, `trigger`
      7 |   - {to: [team-a], may: [deplpy, destroy]}
        |                                  ^
    error: shipyard.yaml:8:10: spec.consents[1].to: is empty: write the projects that are let in, for example `to: [team-a]`; `*` stands for any text
      8 |   - {to: [], may: []}
        |          ^
    error: shipyard.yaml:8:19: spec.consents[1].may: is missing: write what they may do, of `deploy`, `tag`, `observe`, `trigger`
      8 |   - {to: [], may: []}
        |                   ^
    error: shipyard.yaml:9:11: spec.consents[2].to[0]: "team_a" is not the pattern of a name: use letters, digits, `-`, and `*` for any text
      9 |   - {to: [team_a, "a b"], may: [tag], names: []}
        |           ^
    error: shipyard.yaml:9:19: spec.consents[2].to[1]: "a b" is not the pattern of a name: use letters, digits, `-`, and `*` for any text
      9 |   - {to: [team_a, "a b"], may: [tag], names: []}
        |                   ^
    error: shipyard.yaml:9:46: spec.consents[2].names: is empty: write names, or leave it out for all of them
      9 |   - {to: [team_a, "a b"], may: [tag], names: []}
        |                                              ^
    error: shipyard.yaml:10:27: spec.consents[3].name: is not a field of an entry of `consents`: write `names`
      10 |   - {to: [a], may: [tag], name: [api]}
         |                           ^
    error: shipyard.yaml:11:27: spec.consents[4].configs: is not a field of an entry of `consents`: write `names`
      11 |   - {to: [a], may: [tag], configs: [api]}
         |                           ^
    error: shipyard.yaml:12:27: spec.consents[5].whatever: is not a field of an entry of `consents`: leave it out; it has `to`, `may`, `names`
      12 |   - {to: [a], may: [tag], whatever: [api]}
         |                           ^
    error: shipyard.yaml:13:5: spec.consents[6]: is a text, not a mapping: write it like `- to: [team-a]` with `may: [deploy]` below it
      13 |   - team-a
         |     ^
    "#);
    let many = "  - {to: [a], may: [tag]}\n".repeat(101);
    insta::assert_snapshot!(findings(&project(&format!("  consents:\n{many}"))), @r#"
    error: shipyard.yaml:6:5: spec.consents: has 101 entries: at most 100 are taken; `*` in a name stands for any text
      6 |   - {to: [a], may: [tag]}
        |     ^
    "#);
    insta::assert_snapshot!(findings(&project("  consents: team-a\n")), @r#"
    error: shipyard.yaml:5:13: spec.consents: is a text, not a list: write entries like `- to: [team-a]` below it
      5 |   consents: team-a
        |             ^
    "#);
}

#[test]
fn policies_that_are_wrong_say_what_to_write() {
    insta::assert_snapshot!(findings(&project(
        r#"
  policy:
    allows:
      function: [a]
      lambdas: [a]
      functions: ["arn:aws:lambda:eu-west-1:1:function:a", {region: eu-west-1}, {name: a, region: EU, account: me, alias: x}, 7, []]
      hookFunctions: a
      images: ["registry.example/shop:1", shop]
      packages: ["s3://bucket/key"]
      tasks: [family]
      builds: [{name: "a b"}]
      repositories: [git.example/shop, "https://git.example*", "https://x@git.example/y", {name: "https://git.example/a", region: r}]
    quotas: {webhooks: 0, pipelines: many, stages: 3}
    deny: {}
"#
    )), @r#"
    error: shipyard.yaml:8:7: spec.policy.allows.function: is not a field of `allows`: write `functions`
      8 |       function: [a]
        |       ^
    error: shipyard.yaml:9:7: spec.policy.allows.lambdas: is not a field of `allows`: leave it out; it has `functions`, `hookFunctions`, `packages`, `images`, `tasks`, `builds`, `repositories`, `servers`, `metrics`
      9 |       lambdas: [a]
        |       ^
    error: shipyard.yaml:10:19: spec.policy.allows.functions[0]: "arn:aws:lambda:eu-west-1:1:function:a" is the name of no function: write the name only; `{name: …, region: …, account: …}` names another place
      10 |       functions: ["arn:aws:lambda:eu-west-1:1:function:a", {region: eu-west-1}, {name: a, region: EU, account: me, alias
         |                   ^
    error: shipyard.yaml:10:60: spec.policy.allows.functions[1].name: is missing: write a name, in which `*` stands for any text
      10 |       functions: ["arn:aws:lambda:eu-west-1:1:function:a", {region: eu-west-1}, {name: a, region: EU, account: me, alias
         |                                                            ^
    error: shipyard.yaml:10:99: spec.policy.allows.functions[2].region: "EU" is the region of no resource: write it like `eu-*`; `*` stands for any text
      10 |       functions: ["arn:aws:lambda:eu-west-1:1:function:a", {region: eu-west-1}, {name: a, region: EU, account: me, alias
         |                                                                                                   ^
    error: shipyard.yaml:10:112: spec.policy.allows.functions[2].account: "me" is the account of no resource: write it like `123456789012`; `*` stands for any text
      10 | egion: EU, account: me, alias: x}, 7, []]
         |                     ^
    error: shipyard.yaml:10:116: spec.policy.allows.functions[2].alias: is not a field of a pattern: leave it out; it has `name`, `region`, `account`
      10 | n: EU, account: me, alias: x}, 7, []]
         |                     ^
    error: shipyard.yaml:10:130: spec.policy.allows.functions[4]: is a list: write a name, in which `*` stands for any text
      10 | : me, alias: x}, 7, []]
         |                     ^
    error: shipyard.yaml:11:22: spec.policy.allows.hookFunctions: is a text, not a list: put `- ` before each entry
      11 |       hookFunctions: a
         |                      ^
    error: shipyard.yaml:12:16: spec.policy.allows.images[0]: "registry.example/shop:1" is the name of no image: write `<registry>/<repository>`, without tag and digest
      12 |       images: ["registry.example/shop:1", shop]
         |                ^
    error: shipyard.yaml:12:43: spec.policy.allows.images[1]: "shop" is the name of no image: write `<registry>/<repository>`, without tag and digest
      12 |       images: ["registry.example/shop:1", shop]
         |                                           ^
    error: shipyard.yaml:13:18: spec.policy.allows.packages[0]: "s3://bucket/key" is the name of no package: write `<bucket>/<key>`, without `s3://`
      13 |       packages: ["s3://bucket/key"]
         |                  ^
    error: shipyard.yaml:14:15: spec.policy.allows.tasks[0]: "family" is the name of no task: write `<cluster>/<family>`, without ARN and revision
      14 |       tasks: [family]
         |               ^
    error: shipyard.yaml:15:23: spec.policy.allows.builds[0].name: "a b" is the name of no build: use at most 512 printable characters without blanks
      15 |       builds: [{name: "a b"}]
         |                       ^
    error: shipyard.yaml:16:22: spec.policy.allows.repositories[0]: "git.example/shop" is the name of no repository: write a URL, like `https://git.example/team-b/*`
      16 |       repositories: [git.example/shop, "https://git.example*", "https://x@git.example/y", {name: "https://git.example/a"
         |                      ^
    error: shipyard.yaml:16:40: spec.policy.allows.repositories[1]: "https://git.example*" is the name of no repository: its host may end in anything: write the whole host, or `*` for its beginning only
      16 |       repositories: [git.example/shop, "https://git.example*", "https://x@git.example/y", {name: "https://git.example/a"
         |                                        ^
    error: shipyard.yaml:16:64: spec.policy.allows.repositories[2]: "https://x@git.example/y" is the name of no repository: leave out the user, the fragment and what is encoded
      16 |       repositories: [git.example/shop, "https://git.example*", "https://x@git.example/y", {name: "https://git.example/a"
         |                                                                ^
    error: shipyard.yaml:16:131: spec.policy.allows.repositories[3].region: says nothing about repositories: leave it out
      16 | example/a", region: r}]
         |                     ^
    error: shipyard.yaml:17:24: spec.policy.quotas.webhooks: "0" is not a whole number of at least 1: write one
      17 |     quotas: {webhooks: 0, pipelines: many, stages: 3}
         |                        ^
    error: shipyard.yaml:17:38: spec.policy.quotas.pipelines: "many" is not a whole number of at least 1: write one
      17 |     quotas: {webhooks: 0, pipelines: many, stages: 3}
         |                                      ^
    error: shipyard.yaml:17:44: spec.policy.quotas.stages: is not a field of `quotas`: leave it out; it has `webhooks`, `integrations`, `pipelines`, `deploymentConfigs`, `schedules`
      17 |     quotas: {webhooks: 0, pipelines: many, stages: 3}
         |                                            ^
    error: shipyard.yaml:18:5: spec.policy.deny: is not a field of `policy`: leave it out; it has `allows`, `quotas`
      18 |     deny: {}
         |     ^
    "#);
    let many = "a, ".repeat(201);
    insta::assert_snapshot!(findings(&project(&format!("  policy: {{allows: {{builds: [{many}]}}}}\n"))), @r#"
    error: shipyard.yaml:5:29: spec.policy.allows.builds: has 201 entries: at most 200 are taken; `*` in a name stands for any text
      5 |   policy: {allows: {builds: [a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a
        |                             ^
    "#);
    insta::assert_snapshot!(findings(&project("  policy: all\n")), @r#"
    error: shipyard.yaml:5:11: spec.policy: is a text, not a mapping: write its fields below it, indented
      5 |   policy: all
        |           ^
    "#);
}

/// Nobody writes into a manifest that they are trusted.
#[test]
fn no_manifest_says_that_it_is_vouched_for() {
    let cluster = "apiVersion: keelway.dev/v1\nkind: Cluster\nmetadata: {name: eu, namespace: shop}\nspec: {server: 'https://k8s.example', \
                   secretRef: {name: t}, vouched: true}\n";
    let source = "apiVersion: keelway.dev/v1\nkind: ArtifactSource\nmetadata: {name: api, namespace: shop}\nspec: {ecr: {repository: shop/api}, vouched: \
                  true}\n";
    let config = json!({
        "apiVersion": "apps.openshift.io/v1", "kind": "DeploymentConfig", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"vouched": true, "template": {"spec": {"containers": [{"name": "web", "image": "web:1"}]}}}
    });
    let pipeline = json!({
        "apiVersion": "pipelines.weave.works/v1alpha1", "kind": "Pipeline", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"vouched": true, "appRef": {"apiVersion": "v2", "kind": "HelmRelease", "name": "web"},
                 "environments": [{"name": "dev", "targets": [{"namespace": "dev"}]}]}
    });
    let metrics = "apiVersion: keelway.dev/v1\nkind: MetricsSource\nmetadata: {name: p, namespace: shop}\nspec: {cloudwatch: {}, vouched: true}\n";
    for text in [cluster, source, metrics, &config.to_string(), &pipeline.to_string()] {
        let parsed = parse(text);
        assert!(parsed.findings.iter().any(|finding| finding.path.ends_with("vouched")), "{text}");
        for document in parsed.documents {
            let vouched = match document {
                Document::Cluster(manifest) => manifest.cluster.vouched,
                Document::ArtifactSource(manifest) => manifest.artifacts.vouched,
                Document::MetricsSource(manifest) => manifest.metrics.vouched,
                Document::DeploymentConfig(manifest) => manifest.definition.is_some_and(|definition| definition.vouched),
                Document::Pipeline(manifest) => manifest.definition.vouched,
                other => panic!("{other:?}"),
            };
            assert!(!vouched, "{text}");
        }
    }
}
