//! Reading manifests: what they hold, several in one text, text that is no manifest.

use crate::common::{findings, parse, read, sequence, shipyard};
use keelway_domain::event::TaskResult;
use keelway_domain::shipyard::{Match, Trigger};
use keelway_domain::time::Span;
use keelway_wire::manifest::{self, Document, Severity};
use proptest::prelude::*;
use serde_json::json;

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
fn numbers_and_truth_values_are_names_as_they_are_written() {
    let numbers = read(&shipyard("  - name: 1\n    sequences:\n    - name: 2\n      tasks: [{name: true}]\n"));
    assert_eq!(numbers.shipyard.stages[0].name.as_str(), "1");
    assert_eq!(numbers.shipyard.stages[0].sequences[0].tasks[0].name.as_str(), "true");
}

#[test]
fn limits_are_refused_by_name() {
    let stages: String = (0..101).map(|i| format!("  - name: s{i}\n")).collect();
    insta::assert_snapshot!(findings(&shipyard(&stages)), @r"
    error: shipyard.yaml:5:5: spec.stages: has 101 stages: at most 100 are allowed
      5 |   - name: s0
        |     ^
    ");
    insta::assert_snapshot!(findings(&sequence(&"      - name: x\n".repeat(200))), @r"
    error: shipyard.yaml:9:9: spec.stages[0].sequences[0].tasks: has 201 tasks: at most 200 are allowed, divide them among sequences
      9 |       - name: deployment
        |         ^
    ");
    let listener = |i: usize| format!("    - name: n{i}\n      triggeredOn: [dev.delivery.finished]\n      tasks: [{{name: x}}]\n");
    assert_eq!(findings(&sequence(&(0..40).map(listener).collect::<String>())), "");
    insta::assert_snapshot!(findings(&sequence(&(0..41).map(listener).collect::<String>())), @r#"
    error: shipyard.yaml:131:21: spec.stages[0].sequences[41].triggeredOn[0]: is one sequence too many: at most 40 sequences of one stage, here "dev", may be triggered on "dev.delivery.finished"
      131 |       triggeredOn: [dev.delivery.finished]
          |                     ^
    "#);
    insta::assert_snapshot!(findings(&"#".repeat(manifest::MAX_BYTES + 1)), @r"
    error: shipyard.yaml:1:1: the file has 1048577 bytes: at most 1048576 (1 MiB) are read
      1 | ########################################################################################################################
        | ^
    ");
}

#[test]
fn yaml_that_does_not_parse_says_what_to_mend() {
    insta::assert_snapshot!(findings("kind: Shipyard\nspec:\n\tstages: []\n"), @r"
    error: shipyard.yaml:3:1: is not YAML (tabs disallowed within this context (block indentation)): indent with blanks, a tab does not count
      3 |  stages: []
        | ^
    ");
    insta::assert_snapshot!(findings(&shipyard("  - name: dev\n     sequences: []\n")), @r"
    error: shipyard.yaml:6:15: is not YAML (mapping values are not allowed in this context): this line is indented by 5, where nothing around it is: indent it by 4, like the lines it belongs to
      6 |      sequences: []
        |               ^
    ");
    insta::assert_snapshot!(findings(&shipyard("  - name: dev\n  sequences: []\n")), @r"
    error: shipyard.yaml:6:3: spec.sequences: is not a field of a Shipyard's `spec`: it belongs in an entry of `stages`
      6 |   sequences: []
        |   ^
    ");
    insta::assert_snapshot!(findings("kind: \"Shipyard\nspec: {}\n"), @r#"
    error: shipyard.yaml:1:7: is not YAML (invalid indentation in multiline quoted scalar): this quote is never closed: close it with the same sign
      1 | kind: "Shipyard
        |       ^
    "#);
    insta::assert_snapshot!(findings("kind: Shipyard\nspec: {stages: [}\n"), @r"
    error: shipyard.yaml:2:16: is not YAML (mismatched bracket '[' closed by '}'): the `[` before it is not closed yet: close it first
      2 | spec: {stages: [}
        |                ^
    ");
    insta::assert_snapshot!(findings("kind: \"Shipyard\" | \"Project\"\n"), @r#"
    error: shipyard.yaml:1:6: is not YAML (invalid trailing content after double-quoted scalar): the value ends at its closing quote: leave out what follows it ("| \"Project\""), or quote the whole
      1 | kind: "Shipyard" | "Project"
        |      ^
    "#);
    insta::assert_snapshot!(findings("kind: {{ .Values.kind }}\nspec: {}\n"), @r"
    error: shipyard.yaml:1:8: kind: holds a template: render it first, or quote the value that holds `{{`
      1 | kind: {{ .Values.kind }}
        |        ^
    ");
    insta::assert_snapshot!(findings("kind: Shipyard\nspec: *unknown\n"), @r"
    error: shipyard.yaml:2:7: is not YAML (while parsing node, found unknown anchor): no anchor of that name stands before this alias: define it with `&name`, or quote the `*`
      2 | spec: *unknown
        |       ^
    ");
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
    insta::assert_snapshot!(findings(&bomb), @r"
    error: shipyard.yaml:9:15: holds more than 100000 values, aliases counted as often as used: split it
      9 | a8: &a8 [*a7, *a7, *a7, *a7]
        |               ^
    ");
    insta::assert_snapshot!(findings("kind: &a [*a]\n"), @r"
    error: shipyard.yaml:1:11: an alias inside what its anchor names has no end: write the value out
      1 | kind: &a [*a]
        |           ^
    ");
    insta::assert_snapshot!(findings(&"[".repeat(100_000)), @r"
    error: shipyard.yaml:1:65: is not YAML (recursion limit exceeded): it nests too deep: make it flatter
      1 | [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[
        |                                                                 ^
    ");
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
    insta::assert_snapshot!(findings("kind: Project\nmetadata: {name: My Shop}\nspec: {taskTimeout: 0, startdeadline: 1m, color: red}\n"), @r#"
    error: shipyard.yaml:1:1: apiVersion: is missing: write `apiVersion: keelway.dev/v1`
      1 | kind: Project
        | ^
    error: shipyard.yaml:2:18: metadata.name: project name "My Shop" contains 'M': use lower-case letters, digits and `-`, for example `my-shop`
      2 | metadata: {name: My Shop}
        |                  ^
    warning: shipyard.yaml:3:21: spec.taskTimeout: is 0, that is never: a task whose executor died then holds its stage until somebody aborts it; write for example `24h`
      3 | spec: {taskTimeout: 0, startdeadline: 1m, color: red}
        |                     ^
    error: shipyard.yaml:3:24: spec.startdeadline: is not a field of a Project's `spec`: write `startDeadline`
      3 | spec: {taskTimeout: 0, startdeadline: 1m, color: red}
        |                        ^
    warning: shipyard.yaml:3:43: spec.color: is not a field of a Project's `spec` and is ignored: it has `description`, `startDeadline`, `taskTimeout`, `consents`, `policy`
      3 | spec: {taskTimeout: 0, startdeadline: 1m, color: red}
        |                                           ^
    "#);
    insta::assert_snapshot!(findings("apiVersion: v1\nkind: Project\nname: shop\n"), @r#"
    error: shipyard.yaml:1:1: metadata.name: is missing: name the project, for example `name: shop`
      1 | apiVersion: v1
        | ^
    error: shipyard.yaml:1:13: apiVersion: "v1" is not a version of Project: write `apiVersion: keelway.dev/v1`
      1 | apiVersion: v1
        |             ^
    error: shipyard.yaml:3:1: name: is not a field of a Project: it belongs under `metadata`
      3 | name: shop
        | ^
    "#);
}

/// The second one is named by its own line, also beside other mistakes.
#[test]
fn a_problem_type_that_is_there_twice_is_told_where_it_stands() {
    let text = "apiVersion: spec.keptn.sh/0.1.4\nkind: Remediation\nmetadata: {name: r}\nspec:\n  remediations:\n  - problemType: slow\n    \
                actionsOnOpen: [{action: scale}]\n  - problemType: other\n  - problemType: slow\n    actionsOnOpen: [{action: scale}]\n";
    let told = findings(text);
    assert!(told.contains("shipyard.yaml:9:18: spec.remediations[2].problemType: \"slow\" is there twice"), "{told}");
    assert!(told.contains("spec.remediations[1].actionsOnOpen"), "{told}");
}

#[test]
fn a_finding_travels_in_problem_details() {
    let finding = &parse("kind: Deployment\n").findings[0];
    assert_eq!(
        serde_json::to_value(finding).unwrap(),
        json!({
            "severity": "error", "file": "shipyard.yaml", "line": 1, "column": 7, "path": "kind",
            "message": "\"Deployment\" is not a kind this version takes: those are `Shipyard`, `Project`, `Remediation`, `Schedule`, `Pipeline`, `Cluster`, `GitHost`, `DeploymentConfig`, `ArtifactSource`, `MetricsSource`, `WebhookSubscription`, `List`, `Template`",
            "snippet": "1 | kind: Deployment\n  |       ^"
        })
    );
}

#[test]
fn more_findings_than_anybody_reads_are_counted() {
    let parsed = parse(&shipyard(&"  - name: A\n".repeat(90).replace("  -", "  - x: 1\n    y: 2\n   ")));
    assert_eq!(parsed.findings.len(), 201);
    assert!(parsed.findings.last().is_some_and(|f| f.severity == Severity::Error && f.message.contains("more findings")));
}

/// A large text in which everything is wrong is refused as fast as any other.
#[test]
fn a_text_full_of_slips_is_read_to_its_end() {
    let slip =
        |i: usize| format!("    - name: sequence-{i}\n      triggeredOn: [dev.sequenze-{i}.finished]\n      tasks: [{{nam: x}}]\n");
    let text = shipyard(&format!("  - name: dev\n    sequences:\n{}", (0..9_000).map(slip).collect::<String>()));
    assert!(text.len() > manifest::MAX_BYTES / 2 && text.len() < manifest::MAX_BYTES);
    // A check that compares everything with everything would take minutes here.
    assert!(parse(&text).refused());
    assert!(parse(&format!("kind: {}", "x".repeat(500_000))).findings[0].message.len() < 2_000);
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
        "apiVersion: v1\n",
        "kind: DeploymentConfig\n",
        "kind: List\n",
        "kind: Template\n",
        "items:\n- ",
        "objects:\n- ",
        "parameters: [{name: A, value: 1}]\n",
        "${A}",
        "${{A}}",
        "metadata: {name: a}\n",
        "  template: {containers: [{name: a}]}\n",
    ];
    prop_oneof![6 => proptest::sample::select(known.to_vec()).prop_map(str::to_owned), 1 => ".{0,12}"]
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
