//! A definition as a manifest, and back: nothing is lost.

use keelway_domain::deployments::analysis::{Analysis, Distribution, OnInconclusive};
use keelway_domain::deployments::definition::{
    Action, AutoRollback, Concurrency, Custom, Definition, FailurePolicy, Hook, Hooks, ImageChange, ImageTag, OnDrift, Resume,
    Starter, Strategy, StrategyKind, Tagged, Target, Texts, Trigger, Weight,
};
use keelway_domain::evaluation::mann_whitney::Direction;
use keelway_domain::time::Span;
use keelway_wire::manifest::{self, Document, Severity, render};
use proptest::prelude::*;
use proptest::strategy::Strategy as Any;
use proptest::{collection, option, sample};
use serde_json::{Map, Value, json};

/// The definition that a text holds; it has no errors.
fn read(text: &str) -> Definition {
    let parsed = manifest::parse(text, "rendered");
    let errors: Vec<_> = parsed.findings.iter().filter(|finding| finding.severity == Severity::Error).collect();
    assert!(errors.is_empty(), "{errors:#?}\n{text}");
    let Some(Document::DeploymentConfig(config)) = parsed.documents.into_iter().next() else { panic!("no config:\n{text}") };
    assert_eq!((config.namespace.as_str(), config.name.as_str()), ("shop", "web"));
    config.definition.unwrap()
}

fn text() -> impl Any<Value = String> {
    prop_oneof![
        "[a-z]{1,6}",
        sample::select(vec!["true", "~", "", "1", "0x1", " a", "a: b", "- a", "é☃", "#", "x\ny", "1e3"]).prop_map(str::to_owned)
    ]
}

fn texts() -> impl Any<Value = Texts> {
    collection::btree_map("[a-z./-]{1,8}", text(), 0..3)
}

fn value() -> impl Any<Value = Value> {
    let leaf = prop_oneof![text().prop_map(Value::from), any::<bool>().prop_map(Value::from), any::<i64>().prop_map(Value::from)];
    leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            collection::btree_map("[a-z]{1,4}", inner, 0..3).prop_map(|fields| fields.into_iter().collect::<Map<_, _>>().into()),
        ]
    })
}

fn fields() -> impl Any<Value = Map<String, Value>> {
    collection::btree_map("x[a-z]{1,4}", value(), 0..3).prop_map(|fields| fields.into_iter().collect())
}

fn tag() -> impl Any<Value = ImageTag> {
    ("[a-z]{1,5}", "[a-z0-9]{1,5}", "[A-Za-z0-9_][A-Za-z0-9_.-]{0,6}").prop_map(|(namespace, name, tag)| ImageTag {
        namespace,
        name,
        tag,
    })
}

fn hook() -> impl Any<Value = Hook> {
    let exec = fields().prop_map(|more| json!({"containerName": "web", "command": ["run"], "env": [{"name": "A", "value": more}]}));
    let tagged = tag().prop_map(|to| vec![Tagged { container: "web".into(), to }]);
    let action = prop_oneof![
        exec.prop_map(Action::ExecNewPod),
        tagged.prop_map(Action::TagImages),
        "[a-z:-]{1,8}".prop_map(Action::Invoke),
    ];
    let policy = sample::select(vec![FailurePolicy::Abort, FailurePolicy::Retry, FailurePolicy::Ignore]);
    (policy, action).prop_map(|(failure_policy, action)| Hook { failure_policy, action })
}

fn weights() -> impl Any<Value = Vec<Weight>> {
    let bake = option::of((1i64..=31_536_000_000).prop_map(Span));
    let steps = collection::btree_map(1u8..=100, bake, 1..4);
    steps.prop_map(|steps| steps.into_iter().map(|(weight, bake)| Weight { weight, bake }).collect())
}

fn custom() -> impl Any<Value = Custom> {
    // No reserved name begins with these.
    let environment = collection::btree_map("[X_][A-Z0-9_]{0,4}", text(), 0..3);
    (text(), collection::vec("[a-z -]{1,5}", 0..3), environment).prop_map(|(image, command, environment)| Custom {
        image,
        command,
        environment,
    })
}

/// What the parameters of a rolling strategy may be.
fn part() -> impl Any<Value = Value> {
    prop_oneof![(1u32..9).prop_map(Value::from), (1u32..=100).prop_map(|percent| format!("{percent}%").into())]
}

fn name() -> impl Any<Value = String> {
    "[a-z][a-z0-9]{0,9}"
}

prop_compose! {
    fn analysis()(
        (interval, more) in (1i64..5000, 0i64..5000),
        (min_samples, failure_limit) in (0u64..1000, 0u32..9),
        place in option::of((name(), name())),
        source in option::of(name()),
        mann_whitney in collection::vec((name(), sample::select(vec![Direction::Increase, Direction::Decrease, Direction::Either])), 0..3),
        on_inconclusive in sample::select(vec![OnInconclusive::Pause, OnInconclusive::Pass, OnInconclusive::Fail]),
    ) -> Analysis {
        let (interval, deadline) = (Span::seconds(interval), Span::seconds(interval + more));
        let mann_whitney = mann_whitney.into_iter().map(|(sli, direction)| Distribution { sli, direction }).collect();
        let (slo, samples) = ("canary/slo.yaml".to_owned(), "requests".to_owned());
        Analysis { slo, place, source, interval, samples, min_samples, failure_limit, deadline, on_inconclusive, mann_whitney }
    }
}

prop_compose! {
    fn strategy()(
        kind in sample::select(vec![StrategyKind::Rolling, StrategyKind::Recreate, StrategyKind::Canary, StrategyKind::Custom]),
        seconds in 1i64..5000,
        longer in 1i64..5000,
        (own, custom) in (custom(), option::of(custom())),
        (steps, part, period) in (weights(), part(), 1i64..50),
        (pre, mid, post) in (option::of(hook()), option::of(hook()), option::of(hook())),
        (labels, annotations, resources) in (texts(), texts(), fields()),
        analysis in option::of(analysis()),
    ) -> Strategy {
        let seconds = if kind == StrategyKind::Custom { 600 } else { seconds };
        let mut params = Map::from_iter([("timeoutSeconds".to_owned(), json!(seconds))]);
        match kind {
            StrategyKind::Custom => params.clear(),
            StrategyKind::Rolling => params.extend([
                ("updatePeriodSeconds".to_owned(), json!(period)),
                ("intervalSeconds".to_owned(), json!(1)),
                ("maxUnavailable".to_owned(), json!(0)),
                ("maxSurge".to_owned(), part),
            ]),
            StrategyKind::Recreate | StrategyKind::Canary => {}
        }
        let mid = mid.filter(|_| kind == StrategyKind::Recreate);
        Strategy {
            kind,
            timeout: Span::seconds(seconds),
            deadline: Span::seconds(seconds + longer),
            custom: if kind == StrategyKind::Custom { Some(own) } else { custom },
            params,
            steps: if kind == StrategyKind::Canary { steps } else { vec![] },
            analysis: analysis.filter(|_| matches!(kind, StrategyKind::Rolling | StrategyKind::Canary)),
            hooks: if kind == StrategyKind::Custom { Hooks::default() } else { Hooks { pre, mid, post } },
            labels,
            annotations,
            resources: if resources.is_empty() { Value::Null } else { resources.into() },
        }
    }
}

/// A template of each form, and the selector that fits it. Triggers own container `own`.
fn template() -> impl Any<Value = (Value, Texts)> {
    let containers = |more: Map<String, Value>| json!([{"name": "web", "image": "web:1", "more": more}, {"name": "own"}]);
    let pod = move |(labels, name, more): (Texts, String, Map<String, Value>)| {
        let mut all = labels;
        all.insert("app".into(), name);
        (json!({"metadata": {"labels": all}, "spec": {"containers": containers(more)}}), all)
    };
    prop_oneof![
        (texts(), text(), fields()).prop_map(pod),
        (fields(), texts()).prop_map(move |(more, selector)| (json!({"containerDefinitions": containers(more)}), selector)),
        (fields(), texts())
            .prop_map(move |(more, selector)| (json!({"containers": containers(Map::new()), "etc": more}), selector)),
    ]
}

fn triggers() -> impl Any<Value = Vec<Trigger>> {
    let owner =
        (any::<bool>(), tag()).prop_map(|(automatic, from)| ImageChange { automatic, from, containers: vec!["own".into()] });
    let others = collection::vec(sample::select(vec![Trigger::ConfigChange, Trigger::Manual]), 0..3);
    (owner, others).prop_map(|(owner, others)| std::iter::once(Trigger::ImageChange(owner)).chain(others).collect())
}

fn targets() -> impl Any<Value = Vec<Target>> {
    let place = (option::of(Just("eu-west-1".to_owned())), option::of("[0-9]{12}"), any::<bool>());
    collection::btree_map("[a-z]{1,4}", place, 0..3).prop_map(|targets| {
        let target = |(name, (region, account, alias)): (String, (Option<String>, Option<String>, bool))| {
            let (kind, id) = if alias { ("lambda-alias", "web:live") } else { ("ecs-service", "a/b") };
            Target { name, kind: kind.into(), id: id.into(), region, account }
        };
        targets.into_iter().map(target).collect()
    })
}

fn starter() -> impl Any<Value = Starter> {
    let with =
        |field: &'static str| fields().prop_map(move |more| more.into_iter().chain([(field.to_owned(), json!("d"))]).collect());
    prop_oneof![with("taskDefinition").prop_map(Starter::Ecs), with("projectName").prop_map(Starter::CodeBuild)]
}

prop_compose! {
    fn definition()(
        (labels, annotations) in (texts(), texts()),
        (template, selector) in template(),
        strategy in strategy(),
        (triggers, targets) in (triggers(), targets()),
        (replicas, history) in (option::of(0u32..99), option::of(0u32..99)),
        (paused, test, ready) in (any::<bool>(), any::<bool>(), any::<bool>()),
        (queue, newer) in (any::<bool>(), any::<bool>()),
        auto in option::of((any::<bool>(), collection::btree_set("[a-z]{1,4}", 1..3), 0i64..9_999_999)),
        deployer in option::of(starter()),
    ) -> Definition {
        let mut other = Map::new();
        if test {
            other.insert("test".into(), true.into());
        }
        if ready {
            other.insert("minReadySeconds".into(), 0.into());
        }
        let auto_rollback = auto.map(|(on_failure, alarms, bake)| AutoRollback { on_failure, alarms: alarms.into_iter().collect(), bake: Span(bake) });
        let concurrency = if queue { Concurrency::Queue } else { Concurrency::Supersede };
        let resume = if newer { Resume::OnNewerImage } else { Resume::Explicit };
        let on_drift = if newer { OnDrift::Adopt } else { OnDrift::default() };
        let mut definition = Definition {
            labels, annotations, template, replicas, selector, targets, strategy, triggers, paused, history, concurrency, resume,
            on_drift, auto_rollback, deployer, other, vouched: false,
        };
        if definition.deploys_to_aliases() {
            // There, hooks cannot run containers.
            let hooks = &mut definition.strategy.hooks;
            for hook in [&mut hooks.pre, &mut hooks.mid, &mut hooks.post] {
                hook.take_if(|hook| matches!(hook.action, Action::ExecNewPod(_)));
            }
        }
        definition
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn reading_what_is_rendered_gives_the_same_definition(definition in definition()) {
        let rendered = render("shop", "web", &definition);
        prop_assert_eq!(&read(&rendered.to_string()), &definition);
        prop_assert_eq!(&read(&serde_saphyr::to_string(&rendered).unwrap()), &definition);
    }

    #[test]
    fn what_is_cut_or_changed_anywhere_is_read_or_refused(definition in definition(), at in any::<sample::Index>(), put in "[{}\\[\\]:,\"a0 \\n-]{0,3}") {
        let text = serde_json::to_string_pretty(&render("shop", "web", &definition)).unwrap();
        let chars: Vec<char> = text.chars().collect();
        let at = at.index(chars.len());
        let changed: String = chars[..at].iter().copied().chain(put.chars()).chain(chars[(at + 1).min(chars.len())..].iter().copied()).collect();
        let parsed = manifest::parse(&changed, "changed");
        prop_assert!(parsed.refused() || !parsed.documents.is_empty(), "nothing is read, and nothing said: {}", changed);
    }
}

#[test]
fn it_is_written_as_a_person_would() {
    let text = "\
apiVersion: apps.openshift.io/v1
kind: DeploymentConfig
metadata: {name: web, namespace: shop}
spec:
  strategy: {type: Canary, canaryParams: {steps: [{weight: 5, bake: 90m}, {weight: 50, bake: 1500ms}, {weight: 100}]}}
  autoRollback: {onFailure: true}
  triggers: []
  template: {containers: [{name: web, image: 'web:1'}]}
";
    let rendered = render("shop", "web", &read(text));
    // The order of members is that of the JSON library, which other crates may change.
    let expected = serde_json::json!({
        "apiVersion": "apps.openshift.io/v1", "kind": "DeploymentConfig", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "autoRollback": {"onFailure": true},
            "revisionHistoryLimit": 10,
            "strategy": {
                "activeDeadlineSeconds": 21600,
                "canaryParams": {
                    "steps": [{"bake": "90m", "weight": 5}, {"bake": "1500ms", "weight": 50}, {"weight": 100}],
                    "timeoutSeconds": 600,
                },
                "type": "Canary",
            },
            "template": {"containers": [{"image": "web:1", "name": "web"}]},
            "triggers": [],
        },
    });
    assert_eq!(rendered, expected);
    // With its whole history, it is a `v1`: there, that is what nothing means.
    assert_eq!(render("shop", "web", &read(&text.replace("apps.openshift.io/v1", "v1")))["apiVersion"], "v1");
}
