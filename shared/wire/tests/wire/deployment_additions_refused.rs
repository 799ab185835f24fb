//! What is wrong with an ArtifactSource, or with what Keelway adds to a DeploymentConfig, is told with its place and the remedy.

use crate::refusals::{FULL, findings, refuses};
use keelway_domain::deployments::registry::{ArtifactSource, Origin, Repository};
use keelway_wire::manifest::{self, Document};

/// A canary on Lambda aliases.
const CANARY: &str = "\
apiVersion: apps.openshift.io/v1
kind: DeploymentConfig
metadata: {name: carts}
spec:
  targets: [{name: eu, kind: lambda-alias, id: 'carts:live'}]
  strategy:
    type: Canary
    canaryParams:
      steps: [{weight: 10, bake: 5m}, {weight: 50}]
      pre: {failurePolicy: Retry, invoke: smoke}
  template: {containers: [{name: carts, image: 'carts:1'}]}
";

const SOURCE: &str = "\
apiVersion: keelway.dev/v1
kind: ArtifactSource
metadata: {name: carts, namespace: shop}
spec:
  ecr: {repository: shop/carts, account: '123456789012', region: eu-west-1}
  tags: [{name: v1, pattern: 'v1.*'}]
";

#[test]
fn targets_rollbacks_and_deployers() {
    refuses(
        FULL,
        &[
            ("{name: eu, kind: ecs", "{kind: ecs", "spec.targets[0].name", "write for example `name: eu`"),
            ("kind: ecs-service, ", "", "spec.targets[0].kind", "is missing"),
            ("id: shop/web, ", "", "spec.targets[0].id", "is missing"),
            ("name: eu", "name: EU", "spec.targets[0].name", "is not a name"),
            ("[{name: eu", "[{name: eu, kind: a, id: b}, {name: eu", "spec.targets[1].name", "is there twice"),
            ("region: eu-west-1", "region: Ireland", "spec.targets[0].region", "is not a region"),
            ("'123456789012'", "1234", "spec.targets[0].account", "write its 12 digits"),
            ("{onFailure: true, alarms: [errors], bake: 5m}", "{}", "spec.autoRollback", "never rolls back"),
            ("alarms: [errors]", "alarms: [errors, errors]", "spec.autoRollback.alarms", "twice"),
            ("alarms: [errors]", "alarms: errors", "spec.autoRollback.alarms", "not a list"),
            ("bake: 5m", "bake: 5", "spec.autoRollback.bake", "write it like 90s"),
            ("{ecs: {taskDefinition: 'deployer:1'}}", "{}", "spec.deployer", "is one of two"),
            (
                "{ecs: {taskDefinition: 'deployer:1'}}",
                "{ecs: {taskDefinition: a}, codeBuild: {projectName: b}}",
                "spec.deployer",
                "is one of two",
            ),
            ("{ecs: {taskDefinition: 'deployer:1'}}", "{ecs: {cluster: a}}", "spec.deployer.ecs.taskDefinition", "is missing"),
            ("{ecs: {taskDefinition: 'deployer:1'}}", "{codeBuild: {}}", "spec.deployer.codeBuild.projectName", "is missing"),
        ],
    );
    let bake = findings(&FULL.replace("alarms: [errors], ", ""));
    assert!(bake.len() == 1 && bake[0].message.contains("is never used"), "{bake:?}");
}

#[test]
fn canaries() {
    let (steps, hook) = ("spec.strategy.canaryParams.steps", "{failurePolicy: Retry, invoke: smoke}");
    refuses(
        CANARY,
        &[
            ("{weight: 50}", "{weight: 10}", &format!("{steps}[1].weight"), "weights rise from step to step"),
            ("{weight: 50}", "{weight: 101}", &format!("{steps}[1].weight"), "is above 100"),
            ("{weight: 10,", "{weight: 0,", &format!("{steps}[0].weight"), "of at least 1"),
            ("{weight: 50}", "{bake: 5m}", &format!("{steps}[1].weight"), "is missing"),
            ("bake: 5m", "bake: 0", &format!("{steps}[0].bake"), "stays until a person says to go on"),
            ("bake: 5m", "bake: soon", &format!("{steps}[0].bake"), "write it like 90s"),
            ("steps: [{weight: 10, bake: 5m}, {weight: 50}]", "steps: []", steps, "is empty"),
            ("      steps: [{weight: 10, bake: 5m}, {weight: 50}]\n", "", steps, "is missing"),
            ("'carts:live'", "carts", "spec.targets[0].id", "write `<function>:<alias>`"),
            ("'carts:live'", "'carts:$LATEST'", "spec.targets[0].id", "write `<function>:<alias>`"),
            ("'carts:live'", "'carts:7'", "spec.targets[0].id", "write `<function>:<alias>`"),
            (
                hook,
                "{failurePolicy: Abort, execNewPod: {containerName: carts, command: [x]}}",
                "spec.strategy.canaryParams.pre.execNewPod",
                "write `invoke: <function>`",
            ),
        ],
    );
    let without = CANARY.replace("    canaryParams:\n      steps: [{weight: 10, bake: 5m}, {weight: 50}]\n      pre: {failurePolicy: Retry, invoke: smoke}\n", "");
    assert!(findings(&without)[0].path == steps && findings(&without)[0].line == 7, "{:?}", findings(&without));
    // A deployer of one's own may run containers.
    let exec = CANARY.replace(hook, "{failurePolicy: Abort, execNewPod: {containerName: carts, command: [x]}}");
    assert_eq!(findings(&format!("{exec}  deployer: {{codeBuild: {{projectName: d}}}}\n")), []);
    assert_eq!(findings(&exec.replace("lambda-alias", "function")), []);
}

#[test]
fn artifact_sources() {
    let parsed = manifest::parse(SOURCE, "-");
    let [Document::ArtifactSource(source)] = &parsed.documents[..] else { panic!("{parsed:?}") };
    let repository =
        Repository { account: Some("123456789012".into()), region: Some("eu-west-1".into()), name: "shop/carts".into() };
    let artifacts = ArtifactSource {
        from: Origin::Ecr(repository),
        tags: [("v1".into(), "v1.*".into())].into(),
        images: vec![],
        vouched: false,
    };
    assert_eq!((source.namespace.as_str(), source.name.as_str(), &source.artifacts), ("shop", "carts", &artifacts));
    let hook =
        SOURCE.replace("ecr: {repository: shop/carts, account: '123456789012', region: eu-west-1}", "webhook: {secret: hook-key}");
    let parsed = manifest::parse(&hook.replace("name: carts", "name: my_carts"), "-");
    let [Document::ArtifactSource(source)] = &parsed.documents[..] else { panic!("{parsed:?}") };
    assert_eq!((source.name.as_str(), &source.artifacts.from), ("my_carts", &Origin::Webhook { secret: "hook-key".into() }));
    refuses(
        SOURCE,
        &[
            ("keelway.dev/v1", "v1", "apiVersion", "write `apiVersion: keelway.dev/v1`"),
            ("name: carts,", "name: Carts,", "metadata.name", "for example `carts`"),
            ("repository: shop/carts, ", "", "spec.ecr.repository", "is missing"),
            ("shop/carts", "'shop/carts:v1'", "spec.ecr.repository", "without a tag"),
            (
                "shop/carts",
                "123456789012.dkr.ecr.eu-west-1.amazonaws.com/shop/Carts",
                "spec.ecr.repository",
                "without the registry",
            ),
            ("region: eu-west-1", "region: x", "spec.ecr.region", "is not a region"),
            ("'123456789012'", "x", "spec.ecr.account", "write its 12 digits"),
            ("  tags", "  webhook: {secret: x}\n  tags", "spec", "write one of `ecr` and `webhook`"),
            (
                "  ecr: {repository: shop/carts, account: '123456789012', region: eu-west-1}\n",
                "",
                "spec",
                "write one of `ecr` and `webhook`",
            ),
            ("name: v1", "name: v/1", "spec.tags[0].name", "is not a tag"),
            ("'v1.*'", "'v1 *'", "spec.tags[0].pattern", "matches no tag"),
            (", pattern: 'v1.*'", "", "spec.tags[0].pattern", "matches no tag"),
            ("[{name: v1", "[{name: v1, pattern: a}, {name: v1", "spec.tags[1].name", "is there twice"),
            ("repository: shop", "repo: x, repository: shop", "spec.ecr.repo", "is not a field"),
        ],
    );
    refuses(
        &hook,
        &[
            ("hook-key", "Hook", "spec.webhook.secret", "is not the name of a secret"),
            ("secret: hook-key", "", "spec.webhook.secret", "is missing"),
        ],
    );
    // What a webhook may name.
    let listed = format!("{hook}  images: ['registry.test/shop/*', 's3://releases/shop-*.zip', '*']\n");
    let parsed = manifest::parse(&listed, "-");
    let [Document::ArtifactSource(source)] = &parsed.documents[..] else { panic!("{parsed:?}") };
    assert_eq!(source.artifacts.images, ["registry.test/shop/*", "s3://releases/shop-*.zip", "*"]);
    refuses(
        &listed,
        &[
            ("registry.test/shop/*", "shop", "spec.images[0]", "names no repository"),
            ("registry.test/shop/*", "registry.test/shop:v1", "spec.images[0]", "without tag and digest"),
            ("registry.test/shop/*", "registry.test/shop@sha256:1", "spec.images[0]", "without tag and digest"),
            ("s3://releases/shop-*.zip", "s3://releases", "spec.images[1]", "`s3://<bucket>/<key>`"),
            ("['registry.test/shop/*', 's3://releases/shop-*.zip', '*']", "[]", "spec.images", "no push would count"),
        ],
    );
    refuses(SOURCE, &[("  tags", "  images: [registry.test/shop]\n  tags", "spec.images", "goes with `webhook` only")]);
}

#[test]
fn what_is_missing_as_a_whole_or_is_something_else() {
    let first = |text: &str| {
        let found = findings(text);
        format!("{}: {}", found[0].path, found[0].message)
    };
    let proposed = "id: web\nkind: DeploymentConfig\n";
    for (text, starts) in [
        (SOURCE.split_once("spec:").unwrap().0.to_owned(), "spec: is missing: write `spec:` with `ecr`"),
        (SOURCE.replace("{repository: shop/carts, account: '123456789012', region: eu-west-1}", ""), "spec.ecr: is empty"),
        (
            SOURCE.replace("ecr: {repository: shop/carts, account: '123456789012', region: eu-west-1}", "webhook:"),
            "spec.webhook: is empty",
        ),
        (
            SOURCE.replace("[{name: v1, pattern: 'v1.*'}]", "[v1]"),
            "spec.tags[0]: is a text, not a mapping: write for example `- name: stable`",
        ),
        (FULL.split_once("spec:").unwrap().0.to_owned(), "spec: is missing: write `spec:` with `template`"),
        (
            FULL.replace(
                "[{containerName: web, to: ",
                "[{containerName: proxy, to: {kind: ImageStreamTag, name: 'web:live'}}, {containerName: web, to: ",
            ),
            "spec.strategy.rollingParams.post.tagImages[1].to: shop/web:live is there twice",
        ),
        (
            CANARY.replace("[{name: carts, image: 'carts:1'}]", "{name: carts}"),
            "spec.template.containers: is a mapping, not a list",
        ),
        (format!("{proposed}template: {{strategy: {{}}}}\n"), "template.controllerTemplate: is missing"),
        (proposed.replace("id: web\n", "rollback: {}\n"), "id: is missing"),
        (format!("{proposed}namespace: 7shop\nrollback: {{}}\n"), "namespace: project name \"7shop\""),
    ] {
        let told = first(&text);
        assert!(told.starts_with(starts), "{told}\n{text}");
    }
}
