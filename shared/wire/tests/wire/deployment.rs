//! DeploymentConfigs: OpenShift's manifests are read as they are, with its defaults; what Keelway adds stands beside them.

use keelway_domain::deployments::definition::{
    Action, AutoRollback, Concurrency, Custom, Definition, FailurePolicy, ImageTag, OnDrift, Resume, Starter, StrategyKind, Target,
    Texts, Trigger, Weight,
};
use keelway_domain::time::Span;
use keelway_wire::manifest::{self, DeploymentConfigManifest, Document, Finding, RollbackStanza};
use serde_json::{Value, json};

fn findings(text: &str) -> Vec<Finding> {
    manifest::parse(text, "config.yaml").findings
}

fn config(text: &str) -> DeploymentConfigManifest {
    let parsed = manifest::parse(text, "config.yaml");
    assert!(!parsed.refused(), "{:#?}", parsed.findings);
    match parsed.documents.into_iter().next() {
        Some(Document::DeploymentConfig(config)) => *config,
        other => panic!("no deployment config: {other:?}"),
    }
}

fn definition(text: &str) -> Definition {
    config(text).definition.unwrap()
}

fn texts(pairs: &[(&str, &str)]) -> Texts {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn tag(namespace: &str, name: &str, tag: &str) -> ImageTag {
    ImageTag { namespace: namespace.into(), name: name.into(), tag: tag.into() }
}

/// The shortest one that is valid.
const SHORT: &str = "\
apiVersion: apps.openshift.io/v1
kind: DeploymentConfig
metadata: {name: web, namespace: shop}
spec:
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: 'web:1'}]}
";

/// With further lines under `spec`.
fn with(lines: &str) -> String {
    format!("{SHORT}{lines}")
}

#[test]
fn what_is_not_said_has_openshifts_defaults() {
    let config = config(SHORT);
    assert_eq!((config.namespace.as_str(), config.name.as_str(), config.source.as_str()), ("shop", "web", SHORT));
    assert_eq!((config.latest_version, config.rollback.clone(), config.details.clone()), (None, None, Value::Null));
    let definition = config.definition.unwrap();
    assert_eq!(definition.triggers, [Trigger::ConfigChange], "V1");
    assert_eq!(definition.selector, texts(&[("app", "web")]));
    assert_eq!((definition.replicas, definition.paused, definition.history), (None, false, Some(10)));
    assert_eq!((definition.concurrency, definition.resume), (Concurrency::Supersede, Resume::Explicit));
    let strategy = definition.strategy;
    assert_eq!(
        (strategy.kind, strategy.timeout, strategy.deadline),
        (StrategyKind::Rolling, Span::seconds(600), Span::seconds(21600)),
        "V4"
    );
    let params =
        json!({"timeoutSeconds": 600, "updatePeriodSeconds": 1, "intervalSeconds": 1, "maxUnavailable": "25%", "maxSurge": "25%"});
    assert_eq!(Value::Object(strategy.params), params, "V4");
    assert_eq!(findings(SHORT), []);
    // Before API groups, the whole history was kept.
    assert_eq!(self::definition(&SHORT.replace("apps.openshift.io/v1", "v1")).history, None);
    assert_eq!(self::definition(&with("  revisionHistoryLimit: 0\n")).history, Some(0));
}

#[test]
fn no_triggers_and_an_empty_list_are_two_things() {
    for (lines, triggers) in [
        ("  triggers:\n", vec![Trigger::ConfigChange]),
        ("  triggers: null\n", vec![Trigger::ConfigChange]),
        ("  triggers: []\n", vec![]),
        ("  triggers: [{type: Manual}]\n", vec![Trigger::Manual]),
        ("  triggers: [{type: ConfigChange, imageChangeParams: null}]\n", vec![Trigger::ConfigChange]),
    ] {
        assert_eq!(definition(&with(lines)).triggers, triggers, "{lines}");
    }
}

#[test]
fn the_parameters_of_each_strategy_have_their_defaults() {
    let strategy = |lines: &str| definition(&with(&format!("  strategy: {lines}\n"))).strategy;
    for lines in ["", "{}", "{type: Rolling}", "{type: ''}", "{rollingParams: {}}"] {
        assert_eq!(strategy(lines), definition(SHORT).strategy, "{lines}");
    }
    let recreate = strategy("{type: Recreate}");
    assert_eq!((recreate.timeout, Value::Object(recreate.params)), (Span::seconds(600), json!({"timeoutSeconds": 600})));
    let rolling = strategy(
        "{rollingParams: {timeoutSeconds: 60, maxSurge: 0, maxUnavailable: '1', intervalSeconds: '5'}, activeDeadlineSeconds: 61}",
    );
    assert_eq!((rolling.timeout, rolling.deadline), (Span::seconds(60), Span::seconds(61)));
    let params = json!({"timeoutSeconds": 60, "updatePeriodSeconds": 1, "intervalSeconds": 5, "maxUnavailable": 1, "maxSurge": 0});
    assert_eq!(Value::Object(rolling.params), params);
    let custom =
        strategy("{type: Custom, customParams: {}, labels: {team: a}, annotations: {n: 1}, resources: {limits: {cpu: 1}}}");
    assert_eq!((custom.custom, custom.timeout), (Some(Custom::default()), Span::seconds(600)));
    assert_eq!((custom.labels, custom.annotations), (texts(&[("team", "a")]), texts(&[("n", "1")])));
    assert_eq!(custom.resources, json!({"limits": {"cpu": 1}}));
    let wrapped =
        strategy("{type: Recreate, customParams: {image: 'd:1', command: [run], environment: [{name: A_1, value: x}, {name: B}]}}");
    let environment = texts(&[("A_1", "x"), ("B", "")]);
    assert_eq!(
        (wrapped.kind, wrapped.custom),
        (StrategyKind::Recreate, Some(Custom { image: "d:1".into(), command: vec!["run".into()], environment }))
    );
}

#[test]
fn a_blank_image_waits_for_its_trigger() {
    let trigger = "  triggers: [{type: ImageChange, imageChangeParams: {from: {name: 'web:v1'}, containerNames: [web]}}]\n";
    for image in ["", ", image: ' '", ", image: ''", ", image: null"] {
        let text = with(trigger).replace(", image: 'web:1'", image);
        assert_eq!(findings(&text), [], "V6 {image}");
        let Trigger::ImageChange(change) = definition(&text).triggers.remove(0) else { panic!("no image trigger") };
        assert_eq!((change.automatic, change.from, change.containers), (false, tag("shop", "web", "v1"), vec!["web".to_owned()]));
        let refused = findings(&text.replace(trigger, ""));
        assert_eq!(refused[0].path, "spec.template.spec.containers[0].image", "V7 {image}");
        assert!(refused[0].message.contains("is empty"), "{refused:?}");
    }
    // Kept by hand: fine, as long as the trigger does not fire by itself.
    assert_eq!(findings(&with(trigger)), []);
    let told = findings(&with(&trigger.replace("{from", "{automatic: true, from")));
    assert!(told.len() == 1 && told[0].message.contains("the image of shop/web:v1 is deployed instead"), "T21 {told:?}");
}

#[test]
fn hooks_are_read() {
    let text = with(
        "  strategy:
    type: Recreate
    recreateParams:
      pre: {failurePolicy: Abort, execNewPod: {containerName: web, command: [run], env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}], volumes: [data]}}
      mid: {failurePolicy: Retry, tagImages: [{containerName: web, to: {kind: ImageStreamTag, name: 'web:live', namespace: other}}]}
      post: {failurePolicy: Ignore, invoke: 'arn:aws:lambda:eu-west-1:123456789012:function:smoke:live'}
",
    );
    let hooks = definition(&text).strategy.hooks;
    let (pre, mid, post) = (hooks.pre.unwrap(), hooks.mid.unwrap(), hooks.post.unwrap());
    assert_eq!(
        [pre.failure_policy, mid.failure_policy, post.failure_policy],
        [FailurePolicy::Abort, FailurePolicy::Retry, FailurePolicy::Ignore]
    );
    let Action::ExecNewPod(pod) = pre.action else { panic!("no pod") };
    assert_eq!(pod["env"][0]["valueFrom"]["secretKeyRef"]["key"], "k");
    let Action::TagImages(tagged) = mid.action else { panic!("no tags") };
    assert_eq!((tagged[0].container.as_str(), &tagged[0].to), ("web", &tag("other", "web", "live")));
    assert!(matches!(post.action, Action::Invoke(function) if function.ends_with(":smoke:live")));
}

/// As the proposal describes it.
const PROPOSED: &str = r#"{
  "id": "shop:hello",
  "kind": "DeploymentConfig",
  "labels": {"app": "hello"},
  "template": {
    "strategy": {"type": "Recreate"},
    "controllerTemplate": {
      "replicas": 2,
      "replicaSelector": {"name": "hello"},
      "podTemplate": {"metadata": {"labels": {"name": "hello"}}, "spec": {"containers": [{"name": "hello"}]}}
    }
  },
  "triggers": [
    {"type": "ConfigChange"},
    {"type": "ImageChange", "imageChangeParams": {"automatic": true, "repositoryName": "team/hello", "tag": "stable", "containerNames": ["hello"]}}
  ],
  "latestVersion": 4,
  "details": {"causes": [{"type": "ConfigChange"}]}
}"#;

#[test]
fn the_proposals_form_says_the_same() {
    assert_eq!(findings(PROPOSED), []);
    let config = config(PROPOSED);
    assert_eq!((config.namespace.as_str(), config.name.as_str(), config.source.as_str()), ("shop", "hello", PROPOSED));
    assert_eq!((config.latest_version, config.details), (Some(4), json!({"causes": [{"type": "ConfigChange"}]})));
    let shipped = "\
apiVersion: v1
kind: DeploymentConfig
metadata: {name: hello, labels: {app: hello}}
spec:
  replicas: 2
  selector: {name: hello}
  strategy: {type: Recreate}
  template: {metadata: {labels: {name: hello}}, spec: {containers: [{name: hello}]}}
  triggers:
  - type: ConfigChange
  - {type: ImageChange, imageChangeParams: {automatic: true, from: {namespace: team, name: 'hello:stable'}, containerNames: [hello]}}
";
    assert_eq!(config.definition.unwrap(), definition(shipped));
    // What Keelway adds, and what is the same in both forms, stands at the top.
    let more =
        definition(&PROPOSED.replace("\"latestVersion\": 4", "\"paused\": true, \"concurrency\": \"queue\", \"test\": true"));
    assert_eq!((more.paused, more.concurrency, more.other["test"].clone()), (true, Concurrency::Queue, json!(true)));
    let bare = definition(&PROPOSED.replace("\"team/hello\", \"tag\": \"stable\"", "\"hello\"").replace("shop:hello", "hello"));
    assert_eq!(bare.watched().into_iter().next(), Some(&tag("default", "hello", "latest")));
}

#[test]
fn a_pod_template_of_the_proposals_time_is_brought_into_todays_form() {
    let text = "\
kind: DeploymentConfig
apiVersion: v1beta1
metadata: {name: hello, labels: {application: hello}}
triggers:
- {type: ImageChange, imageChangeParams: {automatic: true, containerNames: [web], from: {name: hello}, tag: v2}}
template:
  strategy: {type: Recreate}
  controllerTemplate:
    replicas: 1
    replicaSelector: {name: hello}
    podTemplate:
      labels: {name: hello}
      desiredState: {manifest: {version: v1beta1, containers: [{name: web, image: ''}]}}
";
    assert_eq!(findings(text), []);
    let definition = definition(text);
    let template = json!({"metadata": {"labels": {"name": "hello"}}, "spec": {"containers": [{"name": "web", "image": ""}]}});
    assert_eq!((definition.template, definition.labels), (template, texts(&[("application", "hello")])));
    let Trigger::ImageChange(change) = &definition.triggers[0] else { panic!("no image trigger") };
    assert_eq!(change.from, tag("default", "hello", "v2"));
}

#[test]
fn a_rollback_is_recognised_and_not_carried_out() {
    let asked = |stanza: &str| config(&format!("{{id: hello, kind: DeploymentConfig, rollback: {stanza}}}"));
    let full = asked("{release: hello-7, config: false, application: true, notes: bad release}");
    let stanza = RollbackStanza { release: Some(7), config: false, application: true, notes: "bad release".into() };
    assert_eq!((full.rollback, full.definition), (Some(stanza), None));
    let all = RollbackStanza { release: None, config: true, application: true, notes: String::new() };
    assert_eq!(asked("{}").rollback, Some(all));
    let both = config(&PROPOSED.replace("\"latestVersion\": 4", "\"rollback\": {\"release\": \"hello-1\"}"));
    assert!(both.definition.is_some() && both.rollback.is_some_and(|stanza| stanza.release == Some(1)));
    for (text, path, words) in [
        ("rollback: {release: other-7}", "rollback.release", "write `hello-<number>`"),
        ("rollback: {release: hello-0}", "rollback.release", "write `hello-<number>`"),
        ("rollback: {strategy: x}", "rollback.strategy", "is ignored"),
        ("rollback: null", "rollback", "is empty"),
        ("rollback: {confg: true}", "rollback.confg", "write `config`"),
        ("rollback: {}, triggers: []", "triggers", "is not used"),
    ] {
        let found = findings(&format!("{{id: hello, kind: DeploymentConfig, {text}}}"));
        assert!(found.iter().any(|finding| finding.path == path && finding.message.contains(words)), "{text}: {found:?}");
    }
}

/// One with everything that Keelway adds.
const ADDED: &str = "\
apiVersion: apps.openshift.io/v1
kind: DeploymentConfig
metadata: {name: carts}
spec:
  targets:
  - {name: eu, kind: lambda-alias, id: 'carts:live', region: eu-central-1, account: 012345678901}
  - {name: us, kind: lambda-alias, id: 'carts:live'}
  strategy:
    type: Canary
    canaryParams:
      steps: [{weight: 10, bake: 90s}, {weight: 100}]
      timeoutSeconds: 30
      post: {failurePolicy: Ignore, invoke: smoke}
  autoRollback: {onFailure: true, alarms: [errors], bake: 1h30m}
  concurrency: queue
  resume: onNewerImage
  onDrift: restore
  minReadySeconds: 5
  template: {containers: [{name: carts, image: 'carts:1'}]}
";

#[test]
fn additions_stand_under_spec() {
    assert_eq!(findings(ADDED), []);
    let definition = definition(ADDED);
    let target = |name: &str, region: Option<&str>, account: Option<&str>| Target {
        name: name.into(),
        kind: "lambda-alias".into(),
        id: "carts:live".into(),
        region: region.map(str::to_owned),
        account: account.map(str::to_owned),
    };
    assert_eq!(definition.targets, [target("eu", Some("eu-central-1"), Some("012345678901")), target("us", None, None)]);
    assert!(definition.deploys_to_aliases() && definition.selector.is_empty());
    let strategy = definition.strategy;
    assert_eq!(strategy.steps, [Weight { weight: 10, bake: Some(Span::seconds(90)) }, Weight { weight: 100, bake: None }]);
    assert_eq!((strategy.timeout, Value::Object(strategy.params)), (Span::seconds(30), json!({"timeoutSeconds": 30})));
    let auto = AutoRollback { on_failure: true, alarms: vec!["errors".into()], bake: Span::minutes(90) };
    assert_eq!(definition.auto_rollback, Some(auto));
    assert_eq!((definition.concurrency, definition.resume), (Concurrency::Queue, Resume::OnNewerImage));
    assert_eq!(definition.on_drift, OnDrift::Restore);
    assert_eq!(definition.other["minReadySeconds"], 5);
    let starter = |lines: &str| self::definition(&with(lines)).deployer.unwrap();
    assert_eq!(
        starter("  deployer: {ecs: {taskDefinition: 'd:1', launchType: FARGATE}}\n"),
        Starter::Ecs(json!({"taskDefinition": "d:1", "launchType": "FARGATE"}).as_object().unwrap().clone())
    );
    assert!(
        matches!(starter("  deployer: {codeBuild: {projectName: d}}\n"), Starter::CodeBuild(params) if params["projectName"] == "d")
    );
}

#[test]
fn templates_need_not_be_pods() {
    let with = |template: &str| {
        SHORT.replace("    metadata: {labels: {app: web}}\n    spec: {containers: [{name: web, image: 'web:1'}]}\n", template)
    };
    let task = "    family: web\n    containerDefinitions: [{name: web, image: 'web:1', cpu: null}]\n";
    assert_eq!(findings(&with(task)), []);
    assert_eq!(
        definition(&with(task)).template,
        json!({"family": "web", "containerDefinitions": [{"name": "web", "image": "web:1", "cpu": null}]})
    );
    assert_eq!(findings(&with("    version: 7\n")), []);
    // In Kubernetes, a field that is null is not there.
    let null = "    metadata: {labels: {app: web}, creationTimestamp: null}\n    spec: {containers: [{name: web, image: 'web:1', args: null}]}\n";
    assert_eq!(definition(&with(null)), definition(SHORT));
}

#[test]
fn what_is_not_used_is_named_with_the_reason() {
    let text = "\
apiVersion: v1
kind: DeploymentConfig
metadata:
  name: web
  uid: 1f0f
  resourceVersion: ''
  creationTimestamp: null
  finalizers: [foregroundDeletion]
spec:
  strategy:
    type: Rolling
    recreateParams: {timeoutSeconds: 5}
  targets: [{name: eu, kind: lambda-alias, id: 'web:live'}]
  replicas: 2
  test: true
  triggers:
  - {type: ConfigChange, imageChangeParams: {automatic: true}}
  - type: ImageChange
    imageChangeParams: {containerNames: [web, wbe], from: {name: 'web:1', uid: x}, lastTriggeredImage: 'web@sha256:0'}
  template: {containers: [{name: web}]}
status: {latestVersion: 3, details: {message: image change}}
";
    let told: Vec<String> =
        findings(text).iter().map(|finding| format!("{} {}: {}", finding.line, finding.path, finding.message)).collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    5 metadata.uid: is the server's and declares nothing: leave it out
    8 metadata.finalizers: means nothing here, where deleting a config deletes nothing else: leave it out
    12 spec.strategy.recreateParams: is not used: the strategy's type is `Rolling`; write `type: Recreate`, or leave it out
    14 spec.replicas: means nothing to Lambda aliases, which are all this config deploys to: leave it out
    17 spec.triggers[0].imageChangeParams: is not used by `ConfigChange`: write `type: ImageChange`, or leave it out
    19 spec.triggers[1].imageChangeParams.containerNames[1]: "wbe" is no container of the template and is ignored: it has `web`
    19 spec.triggers[1].imageChangeParams.from.uid: is ignored: a tag is found by its name
    19 spec.triggers[1].imageChangeParams.lastTriggeredImage: is ignored: the server records which image a trigger fired for
    21 status: is the server's and declares nothing: leave it out
    "#);
    let config = config(text);
    assert_eq!((config.latest_version, config.details), (Some(3), json!({"message": "image change"})));
}
