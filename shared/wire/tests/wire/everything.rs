//! Everything wrong with a file is told at once, also what stands below or beside something that is refused as a whole.

use crate::common::{findings, parse, read, sequence, shipyard};
use keelway_wire::manifest::Severity;

/// The fields that errors are about.
fn refused(text: &str) -> Vec<String> {
    let errors = parse(text).findings.into_iter().filter(|finding| finding.severity == Severity::Error);
    errors.map(|finding| finding.path).collect()
}

#[test]
fn below_a_version_that_is_refused() {
    for version in ["spec.keptn.sh/0.1.7", "latest"] {
        let text = shipyard("  - sequences: [{name: a/b, tasks: [{name: x}]}]\n").replace("spec.keptn.sh/0.2.3", version);
        assert_eq!(refused(&text), ["apiVersion", "spec.stages[0].name", "spec.stages[0].sequences[0].name"], "{version}");
    }
    // A shipyard that is really of 0.1 is refused as that, once; not for each of its fields.
    let old = "apiVersion: spec.keptn.sh/0.1.7\nkind: Shipyard\nspec: {stages: [{name: dev, test_strategy: functional}, {deployment_strategy: direct}]}\n";
    assert_eq!(refused(old), ["apiVersion", "spec.stages[1].name"]);
    assert_eq!(refused("stages:\n- name: dev\n  deployment_strategy: direct\n- test_strategy: x\n"), ["stages"]);
}

#[test]
fn in_all_values_of_a_field_that_stands_twice() {
    // Of lists and mappings, the entries of both are read.
    let stages = shipyard("  - name: Dev\n  stages:\n  - name: Prod\n    seqences: []\n");
    assert_eq!(refused(&stages), ["spec.stages[0].name", "spec.stages", "spec.stages[1].name", "spec.stages[1].seqences"]);
    let specs = format!("{}spec:\n  stages:\n  - name: Prod\n", shipyard("  - name: Dev\n"));
    assert_eq!(refused(&specs), ["spec.stages[0].name", "spec", "spec.stages[1].name"]);
    // Of anything else, each value by itself.
    let names = sequence("      name: a/b\n      name: c/d\n      timeout: soon\n      timeout: later\n");
    let sequence_of = |field: &str| format!("spec.stages[0].sequences[0].{field}");
    assert_eq!(refused(&names), ["name", "name", "name", "name", "timeout", "timeout", "timeout"].map(sequence_of));
    // What one of them says is not missing.
    assert_eq!(
        refused("apiVersion: keelway.dev/v1\nkind: Project\nmetadata: {name: shop}\nmetadata: {labels: {}}\n"),
        ["metadata"]
    );
    assert_eq!(
        refused(&shipyard("  - name: dev\n    sequences:\n    sequences: [{name: a, tasks: [{name: b}]}]\n")),
        ["spec.stages[0].sequences"]
    );
    // A great many of them take no minutes.
    let many =
        shipyard(&"  - {name: A, name: B, name: C, name: D, name: E, name: F, name: G, name: H, name: I, name: J}\n".repeat(100));
    assert!(parse(&many).refused());
}

#[test]
fn in_a_mapping_where_a_list_belongs() {
    // One entry without its `-`.
    assert_eq!(
        refused(&shipyard("    name: Dev\n    sequences: {name: a/b, tasks: {name: c d}}\n")),
        [
            "spec.stages",
            "spec.stages[0].name",
            "spec.stages[0].sequences",
            "spec.stages[0].sequences[0].name",
            "spec.stages[0].sequences[0].tasks",
            "spec.stages[0].sequences[0].tasks[0].name",
        ]
    );
    // Entries under their names.
    assert_eq!(
        refused(&shipyard("    dev: {sequences: [{name: a/b, tasks: [{name: c}]}]}\n    prod: {seqences: []}\n")),
        [
            "spec.stages",
            "spec.stages[0].name",
            "spec.stages[0].sequences[0].name",
            "spec.stages[1].name",
            "spec.stages[1].seqences",
        ]
    );
    assert_eq!(
        refused(&sequence("      triggeredOn:\n        event: a..b\n        selector: {match: {result: bad}}\n")),
        [
            "spec.stages[0].sequences[0].triggeredOn",
            "spec.stages[0].sequences[0].triggeredOn[0].event",
            "spec.stages[0].sequences[0].triggeredOn[0].selector.match.result",
        ]
    );
}

#[test]
fn a_tab_after_a_value_is_told_in_its_own_line() {
    insta::assert_snapshot!(findings("kind: Shipyard\nmetadata:\n  name: shop\n\tlabels: {}\n"), @r"
    error: shipyard.yaml:4:1: is not YAML (while scanning a plain scalar, found a tab): indent with blanks, a tab does not count
      4 |  labels: {}
        | ^
    ");
    insta::assert_snapshot!(findings(&sequence("\t        timeout: 5m\n")), @r"
    error: shipyard.yaml:10:1: is not YAML (while scanning a plain scalar, found a tab): indent with blanks, a tab does not count
      10 |          timeout: 5m
         | ^
    ");
    let place = |text: &str| parse(text).findings.iter().map(|finding| (finding.line, finding.column)).collect::<Vec<_>>();
    assert_eq!(place("kind: Shipyard\nmetadata:\n  name: shop\n\n  \tlabels: {}\n"), [(5, 3)]);
    assert_eq!(place("kind: Shipyard\nmetadata:\n  name: my\n    shop\n\tlabels: {}\n"), [(5, 1)]);
}

#[test]
fn a_match_of_null_is_no_selector() {
    for selector in ["{match: null}", "{match: }", "{match: ~}", ""] {
        let text = sequence(&format!("      triggeredOn:\n      - event: a.b\n        selector: {selector}\n"));
        assert_eq!(findings(&text), "", "{selector}");
        assert_eq!(read(&text).shipyard.stages[0].sequences[0].triggered_on[0].selector, None);
    }
    // It closes a loop like any entry without one.
    let text = sequence("      triggeredOn:\n      - event: dev.delivery.finished\n        selector: {match: null}\n");
    assert!(findings(&text).contains("closes a loop"));
}
