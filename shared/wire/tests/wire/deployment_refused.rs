//! What is wrong with a DeploymentConfig is told at once, each finding with its place and the remedy.

use crate::refusals::{FULL, findings, refuses};
use keelway_wire::manifest::{self, Severity};

#[test]
fn names_versions_and_numbers() {
    refuses(
        FULL,
        &[
            ("apps.openshift.io/v1", "apps/v1", "apiVersion", "write `apiVersion: apps.openshift.io/v1`"),
            ("apiVersion: apps.openshift.io/v1\n", "", "apiVersion", "is missing"),
            ("name: web, namespace", "name: Web, namespace", "metadata.name", "for example `web`"),
            ("namespace: shop}", "namespace: 7shop}", "metadata.namespace", "7shop"),
            ("replicas: 2", "replicas: -1", "spec.replicas", "is not a whole number of at least 0"),
            ("replicas: 2", "replicas: two", "spec.replicas", "is not a whole number"),
            ("minReadySeconds: 5", "minReadySeconds: -5", "spec.minReadySeconds", "of at least 0"),
            ("minReadySeconds: 5", "minReadySeconds: 300", "spec.minReadySeconds", "the strategy's `timeoutSeconds` is 300"),
            ("revisionHistoryLimit: 3", "revisionHistoryLimit: -3", "spec.revisionHistoryLimit", "of at least 0"),
            ("paused: false", "paused: soon", "spec.paused", "write `true` or `false`"),
            ("  paused", "  pause", "spec.pause", "write `paused`"),
            ("  paused: false", "  nonsense: 1", "spec.nonsense", "leave it out; it has `template`"),
            ("metadata: {name", "replicas: 2\nmetadata: {name", "replicas", "it belongs under `spec`"),
            ("concurrency: queue", "concurrency: both", "spec.concurrency", "write `supersede` or `queue`"),
            ("resume: explicit", "onDrift: panic", "spec.onDrift", "write `tell` or `restore` or `adopt`"),
            ("resume: explicit", "resume: never", "spec.resume", "write `explicit` or `onNewerImage`"),
        ],
    );
}

#[test]
fn templates_and_selectors() {
    refuses(
        FULL,
        &[
            ("selector: {app: web}", "selector: {app: wbe}", "spec.selector.app", "the pod template has `app: web`"),
            ("selector: {app: web}", "selector: {tier: a}", "spec.selector.tier", "does not have it"),
            ("{name: proxy, image", "{image", "spec.template.spec.containers[1].name", "is missing"),
            ("name: proxy", "name: web", "spec.template.spec.containers[1].name", "is there twice"),
            (", image: 'proxy:1'", "", "spec.template.spec.containers[1].image", "is empty"),
            ("'proxy:1'", "[a]", "spec.template.spec.containers[1].image", "not a text"),
            (
                "{name: B, value",
                "{name: 1B, value",
                "spec.template.spec.containers[0].env[0].name",
                "is not the name of a variable",
            ),
            (
                "    metadata: {labels",
                "    triggers: []\n    metadata: {labels",
                "spec.template.triggers",
                "it belongs under `spec`",
            ),
            ("      containers:", "      strategy: {}\n      containers:", "spec.template.spec.strategy", "beside `template`"),
            ("    metadata: {labels", "    metadata: {lables: {}, labels", "spec.template.metadata.lables", "write `labels`"),
        ],
    );
    let none = FULL.split_once("  template:").unwrap().0;
    let missing = findings(none);
    assert!(missing.iter().any(|finding| finding.path == "spec.template" && finding.message.contains("is missing")), "{missing:?}");
    let empty = findings(&format!("{none}  template: {{metadata: {{labels: {{app: web}}}}, spec: {{containers: []}}}}\n"));
    assert!(
        empty.iter().any(|finding| finding.path == "spec.template.spec.containers" && finding.message.contains("is empty")),
        "{empty:?}"
    );
    let unlabelled = "apiVersion: v1\nkind: DeploymentConfig\nmetadata: {name: web}\nspec: {template: {spec: {containers: [{name: web, image: w}]}}}\n";
    assert_eq!(findings(unlabelled)[0].path, "spec.selector");
}

#[test]
fn triggers() {
    let params = "spec.triggers[0].imageChangeParams";
    let all = FULL.split_once("    imageChangeParams:").unwrap().1.split_once("  strategy:").unwrap().0;
    let all = format!("    imageChangeParams:{all}");
    refuses(
        &FULL
            .replace("name: web, env: [{name: B, value: c}]", "name: web, image: 'web:0'")
            .replace("automatic: true", "automatic: false"),
        &[
            ("  - type: ImageChange\n", "  - type: imageChange\n", "spec.triggers[0].type", "write `ImageChange`"),
            ("  - type: ImageChange\n", "  - type: Cron\n", "spec.triggers[0].type", "write one of `ConfigChange`"),
            ("  - type: ImageChange\n    image", "  - image", "spec.triggers[0].type", "is missing"),
            (&all.replace("true", "false"), "", params, "is missing: write `from`"),
            ("      from: {kind: ImageStreamTag, name: 'web:v1', namespace: shop}\n", "", &format!("{params}.from"), "is missing"),
            (
                "{kind: ImageStreamTag, name: 'web:v1'",
                "{kind: DockerImage, name: 'web:v1'",
                &format!("{params}.from.kind"),
                "write `kind: ImageStreamTag`",
            ),
            ("name: 'web:v1'", "name: web", &format!("{params}.from.name"), "write `<name>:<tag>`"),
            ("name: 'web:v1'", "name: 'web:'", &format!("{params}.from.name"), "write `<name>:<tag>`"),
            ("name: 'web:v1'", "name: 'We/b:v1'", &format!("{params}.from.name"), "write `<name>:<tag>`"),
            ("name: 'web:v1'", "name: 'web:-1'", &format!("{params}.from.name"), "is not a tag"),
            ("'web:v1', namespace: shop", "'web:v1', namespace: a/b", &format!("{params}.from.namespace"), "is not a namespace"),
            ("containerNames: [web]", "containerNames: []", &format!("{params}.containerNames"), "name at least one container"),
            ("      containerNames: [web]\n", "", &format!("{params}.containerNames"), "name at least one container"),
            (
                "containerNames: [web]",
                "containerName: web\n      containerNames: [web]",
                &format!("{params}.containerName"),
                "write `containerNames`",
            ),
            ("automatic: false", "automatic: 1", &format!("{params}.automatic"), "write `true` or `false`"),
            ("automatic: false", "automatic: false\n      tag: v1", &format!("{params}.tag"), "is not a field"),
            (
                "  strategy:",
                &format!("  - type: ImageChange\n{}  strategy:", all.replace("v1", "v2")),
                "spec.triggers[1].imageChangeParams.containerNames",
                "as triggers[0] does",
            ),
        ],
    );
}

#[test]
fn strategies() {
    let rolling = "spec.strategy.rollingParams";
    refuses(
        FULL,
        &[
            ("type: Rolling", "type: Replace", "spec.strategy.type", "a deployer of your own is `Custom`"),
            ("type: Rolling", "type: rolling", "spec.strategy.type", "write `Rolling`"),
            ("timeoutSeconds: 300", "timeoutSeconds: 0", &format!("{rolling}.timeoutSeconds"), "of at least 1"),
            ("intervalSeconds: 2", "intervalSeconds: 0", &format!("{rolling}.intervalSeconds"), "of at least 1"),
            ("updatePeriodSeconds: 3", "updatePeriodSeconds: -1", &format!("{rolling}.updatePeriodSeconds"), "of at least 1"),
            ("maxSurge: 20%", "maxSurge: 0%", &format!("{rolling}.maxUnavailable"), "nothing could ever be replaced"),
            ("maxSurge: 20%", "maxSurge: 101%", &format!("{rolling}.maxSurge"), "from `0%` to `100%`"),
            ("maxSurge: 20%", "maxSurge: -20%", &format!("{rolling}.maxSurge"), "neither a number nor a percentage"),
            ("maxUnavailable: 0", "maxUnavailable: -1", &format!("{rolling}.maxUnavailable"), "neither a number nor a percentage"),
            (
                "maxUnavailable: 0",
                "maxUnavailable: half",
                &format!("{rolling}.maxUnavailable"),
                "neither a number nor a percentage",
            ),
            (
                "activeDeadlineSeconds: 900",
                "activeDeadlineSeconds: 300",
                "spec.strategy.activeDeadlineSeconds",
                "write a longer deadline",
            ),
            (
                "activeDeadlineSeconds: 900",
                "activeDeadlineSeconds: 99999999",
                "spec.strategy.activeDeadlineSeconds",
                "at most 31536000 seconds",
            ),
            (
                "{name: A, value: b}",
                "{name: A-B, value: b}",
                "spec.strategy.customParams.environment[0].name",
                "is not the name of a variable",
            ),
            (
                "{name: A, value: b}",
                "{name: A, valueFrom: {x: 1}}",
                "spec.strategy.customParams.environment[0].valueFrom",
                "is not looked up here",
            ),
            ("command: [run]", "command: run", "spec.strategy.customParams.command", "not a list"),
            ("command: [run]", "args: [run]", "spec.strategy.customParams.args", "write `command`"),
            (
                "    rollingParams:",
                "    canaryParams: {}\n    rollingParams:",
                "spec.strategy.canaryParams",
                "write `type: Canary`",
            ),
        ],
    );
    let custom = |strategy: &str| {
        findings(&format!(
            "{}  strategy: {strategy}\n{}",
            &FULL[..FULL.find("  strategy").unwrap()],
            &FULL[FULL.find("  targets").unwrap()..]
        ))
    };
    assert_eq!(custom("{type: Custom, customParams: {}}"), []);
    for missing in ["{type: Custom}", "{type: Custom, customParams: null}"] {
        assert!(custom(missing)[0].path == "spec.strategy.customParams" && custom(missing)[0].message.contains("is missing"));
    }
}

#[test]
fn hooks() {
    let (pre, post) = ("spec.strategy.rollingParams.pre", "spec.strategy.rollingParams.post");
    let to = format!("{post}.tagImages[0].to");
    let exec = "        execNewPod: {containerName: web, command: [migrate], env: [{name: LEVEL, value: x}], volumes: [data]}\n";
    refuses(
        FULL,
        &[
            ("        failurePolicy: Abort\n", "", &format!("{pre}.failurePolicy"), "`Abort`, `Retry` or `Ignore`"),
            ("failurePolicy: Abort", "failurePolicy: abort", &format!("{pre}.failurePolicy"), "`Abort` or `Retry` or `Ignore`"),
            (exec, "", pre, "does nothing"),
            (exec, &format!("{exec}        invoke: smoke\n"), pre, "has `execNewPod` and `invoke`: write one of them"),
            ("command: [migrate]", "command: []", &format!("{pre}.execNewPod.command"), "is empty"),
            ("command: [migrate]", "args: [migrate], command: [x]", &format!("{pre}.execNewPod.args"), "write `command`"),
            ("{containerName: web, command", "{command", &format!("{pre}.execNewPod.containerName"), "is missing"),
            ("volumes: [data]", "volumes: ['']", &format!("{pre}.execNewPod.volumes[0]"), "write a text"),
            ("{name: LEVEL", "{name: 'LEVEL '", &format!("{pre}.execNewPod.env[0].name"), "is not the name of a variable"),
            (exec, "        invoke: my function\n", &format!("{pre}.invoke"), "is not a Lambda function"),
            ("      pre:", "      mid:", "spec.strategy.rollingParams.mid", "is not a field of `rollingParams`"),
            (
                "{kind: ImageStreamTag, name: 'web:live'}",
                "{name: 'web:live'}",
                &format!("{to}.kind"),
                "write `kind: ImageStreamTag`",
            ),
            ("{kind: ImageStreamTag, name: 'web:live'}", "{kind: ImageStreamTag}", &format!("{to}.name"), "is missing"),
            (", to: {kind: ImageStreamTag, name: 'web:live'}", "", &to, "is missing"),
            (
                "[{containerName: web, to",
                "[{containerName: other, to",
                &format!("{post}.tagImages[0].containerName"),
                "it has `web`, `proxy`",
            ),
            (
                "[{containerName: web, to: {kind: ImageStreamTag, name: 'web:live'}}]",
                "[]",
                &format!("{post}.tagImages"),
                "is empty",
            ),
        ],
    );
    let other = findings(&FULL.replace("{containerName: web, command", "{containerName: job, command"));
    assert!(
        other.len() == 1 && other[0].severity == Severity::Warning && other[0].message.contains("would find no image"),
        "{other:?}"
    );
}

#[test]
fn the_proposals_form() {
    let text = "\
id: web
kind: DeploymentConfig
template:
  strategy: {type: Recreate}
  controllerTemplate:
    replicaSelector: {app: web}
    podTemplate: {metadata: {labels: {app: web}}, spec: {containers: [{name: web}]}}
triggers:
- {type: ImageChange, imageChangeParams: {repositoryName: web, tag: v1, containerNames: [web]}}
";
    let params = "triggers[0].imageChangeParams";
    refuses(
        text,
        &[
            ("id: web", "id: We b", "id", "write `<name>` or `<namespace>:<name>`"),
            ("id: web", "id: 'Shop:web'", "id", "Shop"),
            ("  strategy: {type", "  stratgy: {type", "template.stratgy", "write `strategy`"),
            (
                "replicaSelector: {app: web}",
                "replicaSelector: {app: w}",
                "template.controllerTemplate.replicaSelector.app",
                "the same labels",
            ),
            ("    replicaSelector", "    selector", "template.controllerTemplate.selector", "write `replicaSelector`"),
            (
                "repositoryName: web",
                "repositoryName: 'registry:5000/a/web'",
                &format!("{params}.repositoryName"),
                "kind: ArtifactSource",
            ),
            ("repositoryName: web", "repositoryName: web, from: {name: 'a:b'}", &format!("{params}.from"), "leave one of them out"),
            ("tag: v1", "tag: v/1", &format!("{params}.tag"), "is not a tag"),
            ("triggers:", "latestVersion: -1\ntriggers:", "latestVersion", "of at least 0"),
        ],
    );
    let nothing = findings("id: web\nkind: DeploymentConfig\n");
    assert!(nothing[0].path == "template" && nothing[0].message.contains("is missing"), "{nothing:?}");
}

#[test]
fn everything_wrong_is_told_at_once() {
    let text = FULL
        .replace("replicas: 2", "replicas: -2")
        .replace("type: Rolling", "type: Roling")
        .replace("maxSurge: 20%", "maxSurge: 200%")
        .replace("failurePolicy: Abort", "failurePolicy: Stop")
        .replace("'web:v1'", "web")
        .replace("concurrency: queue", "concurrency: x")
        .replace("name: proxy, ", "");
    let found = manifest::parse(&text, "config.yaml");
    let lines: Vec<String> =
        found.findings.iter().map(|finding| format!("{}:{} {}", finding.line, finding.column, finding.path)).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    5:13 spec.replicas
    15:42 spec.triggers[0].imageChangeParams.from.name
    17:11 spec.strategy.type
    24:17 spec.strategy.rollingParams.maxSurge
    27:24 spec.strategy.rollingParams.pre.failurePolicy
    34:16 spec.concurrency
    40:61 spec.template.spec.containers[1].name
    ");
    assert!(found.documents.is_empty());
    insta::assert_snapshot!(found.findings[0].to_string(), @r#"
    error: config.yaml:5:13: spec.replicas: "-2" is not a whole number of at least 0: write one
      5 |   replicas: -2
        |             ^
    "#);
}
