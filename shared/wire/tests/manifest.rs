//! One test per rule of the shipyard and project formats: what the author of a broken manifest reads.

use keelway_domain::event::TaskResult;
use keelway_domain::shipyard::{Match, Trigger};
use keelway_domain::time::Span;
use keelway_wire::manifest::{self, Document, Finding, Parsed, Severity, ShipyardManifest};
use proptest::prelude::*;
use serde_json::json;

fn parse(text: &str) -> Parsed {
    manifest::parse(text, "shipyard.yaml")
}

/// All findings as the command line shows them.
fn findings(text: &str) -> String {
    let parsed = parse(text);
    assert_eq!(parsed.refused(), parsed.documents.is_empty(), "a text of one document is refused or read");
    parsed.findings.iter().map(Finding::to_string).collect::<Vec<_>>().join("\n")
}

/// A shipyard around `stages`, whose lines are indented by two.
fn shipyard(stages: &str) -> String {
    format!("apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nspec:\n  stages:\n{stages}")
}

/// A shipyard with a stage dev and a sequence delivery of one task; what follows goes into the sequence.
fn sequence(rest: &str) -> String {
    shipyard(&format!("  - name: dev\n    sequences:\n    - name: delivery\n      tasks:\n      - name: deployment\n{rest}"))
}

fn read(text: &str) -> ShipyardManifest {
    let parsed = parse(text);
    assert!(!parsed.refused(), "{:?}", parsed.findings);
    match parsed.documents.into_iter().next() {
        Some(Document::Shipyard(shipyard)) => shipyard,
        other => panic!("not a shipyard: {other:?}"),
    }
}

#[test]
fn everything_a_shipyard_can_say_is_read() {
    let text = r#"# A comment stays in the source.
apiVersion: "spec.keptn.sh/0.2.3"
kind: Shipyard
metadata:
  name: shipyard-shop
  annotations: {keelway.dev/project: shop}
spec:
  stages:
  - name: dev
    sequences:
    - name: delivery
      timeout: 2h
      tasks:
      - name: deployment
        triggeredAfter: 1m30s
        startDeadline: 5m
        timeout: 1h
        properties: {deploymentstrategy: direct, replicas: 2, canary: {steps: [10, 50.5], enabled: true, note: null}}
  - name: production
    sequences:
    - name: rollback
      triggeredOn:
      - event: dev.delivery.finished
        selector:
          match: {result: fail, deployment.result: warning}
      - production.problem.open
      tasks: [{name: rollback}]
  - name: empty
"#;
    let read = read(text);
    assert!(parse(text).findings.is_empty());
    assert_eq!(read.metadata_name.as_deref(), Some("shipyard-shop"));
    assert_eq!(read.project_annotation.as_deref(), Some("shop"));
    assert_eq!(read.source, text);
    let [dev, production, empty] = &read.shipyard.stages[..] else { panic!("three stages") };
    let delivery = &dev.sequences[0];
    assert_eq!(delivery.timeout, Some(Span::minutes(120)));
    let deployment = &delivery.tasks[0];
    assert_eq!(deployment.triggered_after, Some(Span::seconds(90)));
    assert_eq!(deployment.start_deadline, Some(Span::minutes(5)));
    assert_eq!(deployment.timeout, Some(Span::minutes(60)));
    let properties =
        json!({"deploymentstrategy": "direct", "replicas": 2, "canary": {"steps": [10, 50.5], "enabled": true, "note": null}});
    assert_eq!(serde_json::Value::Object(deployment.properties.clone()), properties);
    let on = |task: Option<&str>, result| Match { task: task.map(|task| task.to_owned().try_into().unwrap()), result };
    let selector = Some(vec![on(None, TaskResult::Fail), on(Some("deployment"), TaskResult::Warning)]);
    let triggers = [
        Trigger { event: "dev.delivery.finished".into(), selector },
        Trigger { event: "production.problem.open".into(), selector: None },
    ];
    assert_eq!(production.sequences[0].triggered_on, triggers);
    assert!(empty.sequences.is_empty());
}

#[test]
fn versions_from_0_2_on_are_read_with_or_without_prefix_under_either_name() {
    for version in ["apiVersion: spec.keptn.sh/0.2.0", "version: 0.2.0", "apiVersion: 0.2", "version: 'spec.keptn.sh/0.2.4'"] {
        let text = sequence("").replace("apiVersion: spec.keptn.sh/0.2.3", version);
        assert_eq!(findings(&text), "", "{version}");
    }
    insta::assert_snapshot!(findings(&sequence("").replace("0.2.3", "1.2.0")), @"");
    insta::assert_snapshot!(findings(&sequence("").replace("spec.keptn.sh/0.2.3", "latest")), @"");
    insta::assert_snapshot!(findings(&sequence("").replace("apiVersion: spec.keptn.sh/0.2.3\n", "")), @"");
    insta::assert_snapshot!(findings(&sequence("").replace("kind:", "version: 0.2.0\nkind:")), @"");
}

#[test]
fn the_older_form_is_refused_with_the_command_that_migrates_it() {
    insta::assert_snapshot!(findings("stages:\n- name: dev\n  deployment_strategy: direct\n"), @"");
    insta::assert_snapshot!(findings("apiVersion: spec.keptn.sh/0.1.7\nkind: Shipyard\nspec: {stages: [{name: dev}]}\n"), @"");
    insta::assert_snapshot!(findings(&sequence("").replace("0.2.3", "0.1.0")), @"");
    insta::assert_snapshot!(findings(&shipyard("  - name: dev\n    test_strategy: functional\n    sequences: []\n")), @"");
}

#[test]
fn a_missing_or_unknown_kind() {
    insta::assert_snapshot!(findings(&sequence("").replace("kind: Shipyard\n", "")), @"");
    insta::assert_snapshot!(findings(&sequence("").replace("Shipyard", "shipyards")), @"");
    insta::assert_snapshot!(findings("kind: Pipeline\n"), @"");
    insta::assert_snapshot!(findings("metadata: {name: x}\n"), @"");
    insta::assert_snapshot!(findings("- a\n"), @"");
    insta::assert_snapshot!(findings("# nothing\n"), @"");
}

#[test]
fn a_shipyard_has_a_stage() {
    insta::assert_snapshot!(findings("apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nmetadata: {name: x}\n"), @"");
    insta::assert_snapshot!(findings(&shipyard("    []\n")), @"");
    insta::assert_snapshot!(findings(&shipyard("    name: dev\n")), @"");
    insta::assert_snapshot!(findings(&shipyard("  - dev\n  -\n")), @"");
    insta::assert_snapshot!(findings("apiVersion: 0.2.0\nkind: Shipyard\nstages:\n- name: dev\n"), @"");
}

#[test]
fn names_follow_their_rules() {
    insta::assert_snapshot!(findings(&shipyard("  - name: Dev_1\n  - name: -\n  - sequences: []\n")), @"");
    insta::assert_snapshot!(findings(&sequence("      - name: get action\n      - name: result\n      - name: [x]\n")), @"");
    insta::assert_snapshot!(findings(&sequence("").replace("delivery", "a/b")), @"");
    let numbers = read(&shipyard("  - name: 1\n    sequences:\n    - name: 2\n      tasks: [{name: true}]\n"));
    assert_eq!(numbers.shipyard.stages[0].name.as_str(), "1");
    assert_eq!(numbers.shipyard.stages[0].sequences[0].tasks[0].name.as_str(), "true");
}

#[test]
fn nothing_stands_twice_but_tasks() {
    insta::assert_snapshot!(findings(&shipyard("  - name: dev\n  - name: dev\n")), @"");
    insta::assert_snapshot!(findings(&sequence("    - name: delivery\n      tasks: [{name: a}]\n")), @"");
    insta::assert_snapshot!(findings(&sequence("      tasks: []\n")), @"");
    assert_eq!(findings(&sequence("      - name: deployment\n")), "");
}

#[test]
fn a_sequence_has_a_task() {
    insta::assert_snapshot!(findings(&shipyard("  - name: dev\n    sequences:\n    - name: a\n    - name: b\n      tasks: []\n")), @"");
    insta::assert_snapshot!(findings(&shipyard("  - name: dev\n    sequences:\n    - name: a\n      tasks:\n      - deployment\n")), @"");
}

#[test]
fn durations_are_as_go_writes_them() {
    insta::assert_snapshot!(findings(&sequence("        triggeredAfter: soon\n        startDeadline: 10\n        timeout: 400d\n")), @"");
    insta::assert_snapshot!(findings(&sequence("        startDeadline: 0s\n        timeout: 0\n      timeout: 0s\n")), @"");
    insta::assert_snapshot!(findings(&sequence("        triggeredAfter: [1m]\n")), @"");
}

#[test]
fn fields_that_resemble_a_known_one_name_it() {
    insta::assert_snapshot!(findings(&sequence("        propereties: {a: 1}\n      triggers:\n      - event: x.y\n")), @"");
    insta::assert_snapshot!(findings(&shipyard("  - name: dev\n    Sequences: []\n    seqences: []\n")), @"");
}

#[test]
fn fields_at_the_wrong_level_say_where_they_belong() {
    insta::assert_snapshot!(findings(&sequence("        triggeredOn: []\n        timeframe: 5m\n      properties: {}\n    tasks: []\n")), @"");
    insta::assert_snapshot!(findings(&sequence("      triggeredOn:\n      - event: a.b\n        result: fail\n      - event: a.b\n        match: {result: fail}\n      - event: a.b\n        selector: {result: fail}\n")), @"");
    insta::assert_snapshot!(findings(&sequence("      triggeredOn:\n      -event: a.b\n")), @"");
}

#[test]
fn other_unknown_fields_are_ignored_with_a_warning() {
    insta::assert_snapshot!(findings(&sequence("        image: x\n      description: ours\nowner: me\n")), @"");
}

#[test]
fn properties_are_a_mapping() {
    insta::assert_snapshot!(findings(&sequence("        properties:\n        - a: 1\n      - name: b\n        properties: fast\n")), @"");
    assert_eq!(findings(&sequence("        properties:\n")), "");
}

#[test]
fn triggered_on_is_a_list_of_events() {
    insta::assert_snapshot!(findings(&sequence("      triggeredOn: dev.test.finished\n")), @"");
    insta::assert_snapshot!(findings(&sequence("      triggeredOn:\n        event: a.b\n")), @"");
    insta::assert_snapshot!(findings(&sequence("      triggeredOn:\n      - selector: {match: {result: pass}}\n      - []\n      - event: {}\n      - a.b.c: {}\n")), @"");
    insta::assert_snapshot!(findings(&sequence("      triggeredOn:\n      - <event>.finished\n      - a..b\n      - ''\n      - sh.keptn.event.a.b.finished\n")), @"");
}

#[test]
fn a_selector_matches_results() {
    let selector = |selector: &str| sequence(&format!("      triggeredOn:\n      - event: a.b\n        selector: {selector}\n"));
    for good in ["{match: {result: pass}}", "{match: {test.result: warning, result: fail}}", ""] {
        assert_eq!(findings(&selector(good)), "", "{good}");
    }
    insta::assert_snapshot!(findings(&selector("{match: {result: failed}}")), @"");
    insta::assert_snapshot!(findings(&selector("{match: {result: success}}")), @"");
    insta::assert_snapshot!(findings(&selector("{match: {result: {}}}")), @"");
    insta::assert_snapshot!(findings(&selector("{match: {status: errored, a.b.result: fail}}")), @"");
    insta::assert_snapshot!(findings(&selector("{match: {}}")), @"");
    insta::assert_snapshot!(findings(&selector("{}")), @"");
    insta::assert_snapshot!(findings(&selector("fail")), @"");
}

#[test]
fn an_event_nothing_sends_is_a_warning_with_near_names() {
    let on = |event: &str| sequence(&format!("    - name: next\n      tasks: [{{name: x}}]\n      triggeredOn: [{event}]\n"));
    for good in [
        "dev.delivery.finished",
        "dev.deployment.finished",
        "dev.evaluation.finished",
        "production.problem.open",
        "com.acme.built",
    ] {
        assert_eq!(findings(&on(good)), "", "{good}");
    }
    insta::assert_snapshot!(findings(&on("dev.delivry.finished")), @"");
    insta::assert_snapshot!(findings(&on("hardening.delivery.finished")), @"");
    insta::assert_snapshot!(findings(&on("dev.delivery.triggered")), @"");
    insta::assert_snapshot!(findings(&on("deployment.finished")), @"");
    insta::assert_snapshot!(findings(&on("delivery")), @"");
    insta::assert_snapshot!(findings(&on("{event: dev.delivery.finished, selector: {match: {release.result: fail}}}")), @"");
}

#[test]
fn a_loop_without_a_selector_is_a_warning() {
    let loops = |selector: &str| {
        shipyard(&format!(
            "  - name: a\n    sequences:\n    - name: x\n      triggeredOn: [b.y.finished]\n      tasks: [{{name: t}}]\n  - name: b\n    sequences:\n    - name: y\n      triggeredOn:\n      - event: a.x.finished\n{selector}      tasks: [{{name: t}}]\n"
        ))
    };
    insta::assert_snapshot!(findings(&loops("")), @"");
    assert_eq!(findings(&loops("        selector: {match: {result: fail}}\n")), "");
    insta::assert_snapshot!(findings(&sequence("      triggeredOn: [dev.deployment.finished]\n")), @"");
}

#[test]
fn limits_are_refused_by_name() {
    let stages: String = (0..101).map(|i| format!("  - name: s{i}\n")).collect();
    insta::assert_snapshot!(findings(&shipyard(&stages)), @"");
    insta::assert_snapshot!(findings(&sequence(&"      - name: x\n".repeat(200))), @"");
    let listener =
        |i: usize| format!("    - name: n{i}\n      triggeredOn: [dev.delivery.finished]\n      tasks: [{{name: x}}]\n");
    assert_eq!(findings(&sequence(&(0..40).map(listener).collect::<String>())), "");
    insta::assert_snapshot!(findings(&sequence(&(0..41).map(listener).collect::<String>())), @"");
    insta::assert_snapshot!(findings(&"#".repeat(manifest::MAX_BYTES + 1)), @"");
}

#[test]
fn approval_and_evaluation_have_rules_of_their_own() {
    insta::assert_snapshot!(findings(&sequence("      - name: approval\n        properties: {pass: manually, warning: 1}\n")), @"");
    insta::assert_snapshot!(findings(&sequence("      - name: approval\n")), @"");
    insta::assert_snapshot!(findings(&sequence("      - name: evaluation\n")), @"");
    insta::assert_snapshot!(findings(&sequence("      - name: evaluation\n        properties: {timeframe: invalid}\n")), @"");
    for good in ["approval\n        properties: {pass: manual}", "evaluation\n        properties: {timeframe: 5m}"] {
        assert_eq!(findings(&sequence(&format!("      - name: {good}\n"))), "", "{good}");
    }
}

#[test]
fn yaml_that_does_not_parse_says_what_to_mend() {
    insta::assert_snapshot!(findings("kind: Shipyard\nspec:\n\tstages: []\n"), @"");
    insta::assert_snapshot!(findings(&shipyard("  - name: dev\n     sequences: []\n")), @"");
    insta::assert_snapshot!(findings(&shipyard("  - name: dev\n  sequences: []\n")), @"");
    insta::assert_snapshot!(findings("kind: \"Shipyard\nspec: {}\n"), @"");
    insta::assert_snapshot!(findings("kind: Shipyard\nspec: {stages: [}\n"), @"");
    insta::assert_snapshot!(findings("kind: \"Shipyard\" | \"Project\"\n"), @"");
    insta::assert_snapshot!(findings("kind: {{ .Values.kind }}\nspec: {}\n"), @"");
    insta::assert_snapshot!(findings("kind: Shipyard\nspec: *unknown\n"), @"");
}

#[test]
fn line_ends_do_not_matter() {
    let text = sequence("        timeout: x\n");
    let place = |text: &str| parse(text).findings.iter().map(|f| (f.line, f.column)).collect::<Vec<_>>();
    assert_eq!(place(&text.replace('\n', "\r\n")), place(&text));
    assert_eq!(findings(&sequence("").replace('\n', "\r\n")), "");
    assert_eq!(findings(&format!("\u{feff}{}", sequence(""))), "");
}

#[test]
fn anchors_and_merges_are_resolved_within_bounds() {
    let text = sequence(
        "        properties: &p {a: 1, b: 2}\n      - name: test\n        properties:\n          <<: *p\n          b: 3\n",
    );
    let tasks = &read(&text).shipyard.stages[0].sequences[0].tasks;
    assert_eq!(serde_json::Value::Object(tasks[1].properties.clone()), json!({"a": 1, "b": 3}));
    let mut bomb = "a0: &a0 [x]\n".to_owned();
    for i in 1..30 {
        bomb.push_str(&format!("a{i}: &a{i} [*a{0}, *a{0}, *a{0}, *a{0}]\n", i - 1));
    }
    insta::assert_snapshot!(findings(&bomb), @"");
    insta::assert_snapshot!(findings("kind: &a [*a]\n"), @"");
    insta::assert_snapshot!(findings(&"[".repeat(100_000)), @"");
}

#[test]
fn several_documents_each_keep_their_own_text() {
    let project = "apiVersion: keelway.dev/v1\nkind: Project\nmetadata: {name: shop}\n";
    let text = format!("# both\n{project}---\n{}", sequence(""));
    let parsed = parse(&text);
    assert_eq!(parsed.findings, []);
    let [Document::Project(first), Document::Shipyard(second)] = &parsed.documents[..] else { panic!("{parsed:?}") };
    assert_eq!(first.name.as_str(), "shop");
    assert_eq!(second.source, format!("---\n{}", sequence("")));
    let both = parse(&format!("{}---\n{}", sequence("        timeout: x\n"), project.replace("shop", "Shop")));
    assert_eq!(both.documents, []);
    assert_eq!(both.findings.iter().map(|f| f.line).collect::<Vec<_>>(), [10, 14]);
}

#[test]
fn json_is_yaml() {
    let text = r#"{"apiVersion": "spec.keptn.sh/0.2.3", "kind": "Shipyard",
        "spec": {"stages": [{"name": "dev", "sequences": [{"name": "delivery", "tasks": [{"name": "deployment"}]}]}]}}"#;
    assert_eq!(findings(text), "");
}

#[test]
fn a_project_and_its_rules() {
    let text = "apiVersion: keelway.dev/v1\nkind: Project\nmetadata: {name: shop}\nspec: {description: A shop, startDeadline: 2m, taskTimeout: 1h}\n";
    let Some(Document::Project(project)) = parse(text).documents.into_iter().next() else { panic!("a project") };
    assert_eq!(project.description.as_deref(), Some("A shop"));
    assert_eq!((project.start_deadline, project.task_timeout), (Some(Span::minutes(2)), Some(Span::minutes(60))));
    insta::assert_snapshot!(findings("kind: Project\nmetadata: {name: My Shop}\nspec: {taskTimeout: 0, startdeadline: 1m, color: red}\n"), @"");
    insta::assert_snapshot!(findings("apiVersion: v1\nkind: Project\nname: shop\n"), @"");
}

#[test]
fn a_finding_travels_in_problem_details() {
    let finding = &parse("kind: Pipeline\n").findings[0];
    assert_eq!(
        serde_json::to_value(finding).unwrap(),
        json!({
            "severity": "error", "file": "shipyard.yaml", "line": 1, "column": 7, "path": "kind",
            "message": "\"Pipeline\" is not a kind this version takes: those are `Project` and `Shipyard`",
            "snippet": "1 | kind: Pipeline\n  |       ^"
        })
    );
}

#[test]
fn more_findings_than_anybody_reads_are_counted() {
    let parsed = parse(&shipyard(&"  - name: A\n".repeat(90).replace("  -", "  - x: 1\n    y: 2\n   ")));
    assert_eq!(parsed.findings.len(), 201);
    assert!(parsed.findings.last().is_some_and(|f| f.severity == Severity::Error && f.message.contains("more findings")));
}

/// Pieces of manifests, so that arbitrary text gets past the first line.
fn piece() -> impl Strategy<Value = String> {
    let known = [
        "apiVersion: spec.keptn.sh/0.2.3\n",
        "kind: Shipyard\n",
        "spec:\n",
        "  stages:\n",
        "  - name: dev\n",
        "    sequences:\n",
        "    - name: a\n",
        "      triggeredOn:\n",
        "      - event: dev.a.finished\n",
        "        selector: {match: {result: fail}}\n",
        "      tasks:\n",
        "      - name: approval\n",
        "---\n",
        "\t",
        "\r\n",
        "{",
        "}",
        "[",
        "]",
        "&a ",
        "*a",
        "<<: ",
        "!x ",
        "\"",
        "'",
        ": ",
        "- ",
        "|\n",
        "? ",
        "%YAML 1.2\n",
        "kind: Project\n",
        "timeout: 0\n",
        "0x",
        ".5",
        "-",
        "\u{feff}",
        "é",
        "{{ x }}",
    ];
    prop_oneof![6 => proptest::sample::select(&known[..]).prop_map(str::to_owned), 1 => ".{0,12}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        let parsed = parse(&text);
        prop_assert!(parsed.refused() || !parsed.documents.is_empty());
    }

    #[test]
    fn arbitrary_manifests_never_panic(pieces in prop::collection::vec(piece(), 0..40)) {
        let text = pieces.concat();
        let parsed = parse(&text);
        prop_assert!(parsed.refused() || !parsed.documents.is_empty());
        for finding in &parsed.findings {
            prop_assert!(finding.line >= 1 && finding.column >= 1 && !finding.to_string().is_empty());
        }
    }
}
