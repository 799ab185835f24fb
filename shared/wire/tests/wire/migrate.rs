//! Shipyards of version 0.1 in the form of 0.2.

use crate::common::{findings, parse, read, sequence, shipyard};
use keelway_domain::shipyard::{Sequence, Shipyard};
use keelway_wire::manifest::{self, Finding};

/// The text in the form of 0.2.
fn migrated(text: &str) -> String {
    let migrated = manifest::migrate(text, "shipyard.yaml");
    migrated.text.unwrap_or_else(|| panic!("{text}\n{:?}", migrated.findings))
}

/// What is said when it is migrated, and whether there is a result.
fn told(text: &str) -> (String, bool) {
    let migrated = manifest::migrate(text, "shipyard.yaml");
    let told: Vec<String> = migrated.findings.iter().map(Finding::to_string).collect();
    (told.join("\n"), migrated.text.is_some())
}

fn found<'s>(shipyard: &'s Shipyard, stage: &str, name: &str) -> Option<&'s Sequence> {
    shipyard.stage(stage).unwrap().sequences.iter().find(|sequence| sequence.name.as_str() == name)
}

fn tasks(sequence: &Sequence) -> Vec<&str> {
    sequence.tasks.iter().map(|task| task.name.as_str()).collect()
}

/// `event`, and behind it what the selector wants.
fn triggers(sequence: &Sequence) -> Vec<String> {
    let selector = |matches: &Vec<keelway_domain::shipyard::Match>| {
        let one = |m: &keelway_domain::shipyard::Match| {
            let task = m.task.as_ref().map(|task| format!("{task}.")).unwrap_or_default();
            format!(" {task}result={:?}", m.result)
        };
        matches.iter().map(one).collect::<String>()
    };
    let shown =
        |t: &keelway_domain::shipyard::Trigger| format!("{}{}", t.event, t.selector.as_ref().map(selector).unwrap_or_default());
    sequence.triggered_on.iter().map(shown).collect()
}

#[test]
fn three_stages_with_everything() {
    let text = "project: bookshop
registry: elsewhere
stages:
  - name: dev
    deployment_strategy: direct
    test_strategy: functional
  - {name: staging, deployment_strategy: blue_green, test_strategy: performance, next: production}
  - name: production
    approval_strategy: {pass: automatic, warning: manual}
    deployment_strategy: blue_green_service
    remediation_strategy: automated
";
    insta::assert_snapshot!(migrated(text));
    insta::assert_snapshot!(told(text).0, @r"
    warning: shipyard.yaml:2:1: registry: is not a field of a shipyard of version 0.1 and is ignored: it has `apiVersion`, `version`, `kind`, `metadata`, `spec`, `stages`, `project`
      2 | registry: elsewhere
        | ^
    warning: shipyard.yaml:7:82: stages[1].next: is not a field of a stage of version 0.1 and is ignored: it has `name`, `deployment_strategy`, `test_strategy`, `approval_strategy`, `remediation_strategy`
      7 |   - {name: staging, deployment_strategy: blue_green, test_strategy: performance, next: production}
        |                                                                                  ^
    ");
}

/// Every combination of strategies, alone and behind another stage.
#[test]
fn every_combination_is_accepted_without_a_finding() {
    let deployments = ["", "direct", "blue_green", "blue_green_service", "service_blue/green", "user_managed", "canary: 5%"];
    let approvals = ["", "manual", "{pass: manual}", "{pass: automatic, warning: manual}", "[{pass: manual}, {warning: manual}]"];
    let mut seen = 0;
    for deployment in deployments {
        for test in ["", "functional", "on", "3 users # and more"] {
            for approval in approvals {
                for remediation in ["", "automated"] {
                    let stage = |name: &str| {
                        format!(
                            "- name: {name}\n  deployment_strategy: {deployment:?}\n  test_strategy: {test:?}\n  \
                             approval_strategy: {approval}\n  remediation_strategy: {remediation:?}\n"
                        )
                    };
                    let old = format!("stages:\n{}{}", stage("one"), stage("two"));
                    let new = migrated(&old);
                    assert_eq!(findings(&new), "", "{old}\n{new}");
                    check(&read(&new).shipyard, (deployment, test, approval, remediation), &new);
                    seen += 1;
                }
            }
        }
    }
    assert_eq!(seen, 7 * 4 * 5 * 2);
}

fn check(shipyard: &Shipyard, (deployment, test, approval, remediation): (&str, &str, &str, &str), text: &str) {
    for (stage, before) in [("one", None), ("two", Some("one"))] {
        let delivery = found(shipyard, stage, "delivery").unwrap();
        let first = if approval.is_empty() { &["deployment"][..] } else { &["approval", "deployment"] };
        let tested = if test.is_empty() { &[][..] } else { &["test", "evaluation"] };
        assert_eq!(tasks(delivery), [first, tested, &["release"]].concat(), "{text}");
        assert_eq!(triggers(delivery), before.map(|before| format!("{before}.delivery.finished")).into_iter().collect::<Vec<_>>());
        let property = |task: &str, name: &str| {
            let task = delivery.tasks.iter().find(|known| known.name.as_str() == task).unwrap();
            task.properties.get(name).and_then(|value| value.as_str()).unwrap_or_default().to_owned()
        };
        let blue_green = deployment.contains("blue");
        assert_eq!(property("deployment", "deploymentstrategy"), if blue_green { "blue_green_service" } else { deployment });
        if !test.is_empty() {
            assert_eq!(property("test", "teststrategy"), test);
        }
        let rollback = found(shipyard, stage, "rollback");
        assert_eq!(rollback.is_some(), blue_green && !test.is_empty(), "{text}");
        if let Some(rollback) = rollback {
            assert_eq!(tasks(rollback), ["rollback"]);
            // A task that was not done in time has no result of its own; the sequence has.
            let approved = if approval.is_empty() { "" } else { " approval.result=Pass" };
            let trigger = triggers(rollback).concat();
            assert_eq!(trigger, format!("{stage}.delivery.finished result=Fail{approved}"), "{text}");
        }
        let repair = found(shipyard, stage, "remediation");
        assert_eq!(repair.map(tasks), (!remediation.is_empty()).then(|| vec!["get-action", "action", "evaluation"]));
        if let Some(repair) = repair {
            let again = format!("{stage}.remediation.finished evaluation.result=Fail");
            assert_eq!(triggers(repair), [format!("{stage}.problem.open"), again]);
        }
    }
}

#[test]
fn the_older_form_under_a_version_and_in_json() {
    let old = "apiVersion: spec.keptn.sh/0.1.7\r\nkind: Shipyard\r\nmetadata: {name: my shop, annotations: {keelway.dev/project: shop}}\r\n\
               spec:\r\n  stages:\r\n  - {name: '1', deployment_strategy: direct}\r\n";
    let new = read(&migrated(old));
    assert_eq!((new.metadata_name.as_deref(), new.project_annotation.as_deref()), (Some("my shop"), Some("shop")));
    assert_eq!(new.shipyard.stages[0].name.as_str(), "1");
    for old in [
        r#"{"stages": [{"name": "dev"}]}"#,
        "apiVersion: spec.keptn.sh/0.2.0\nkind: Shipyard\nspec: {stages: [{name: dev, test_strategy: load}]}",
        "version: 0.1\nstages: [{name: dev}]\n",
    ] {
        assert_eq!(findings(&migrated(old)), "", "{old}");
    }
    assert!(migrated("stages: [{name: dev}]").contains("metadata:\n  name: shipyard\n"));
}

#[test]
fn of_a_newer_form_under_an_old_version_only_the_version_changes() {
    let flow = shipyard("  - name: dev # é\n    sequences: [{name: delivery, tasks: [{name: test}]}]\n");
    for old in [flow, sequence("")] {
        only_the_version(&old);
    }
}

fn only_the_version(old: &str) {
    for (before, after) in [("spec.keptn.sh/0.1.7 # x", "spec.keptn.sh/0.2.3 # x"), ("'0.1.7'", "'spec.keptn.sh/0.2.3'")] {
        let text = old.replace("spec.keptn.sh/0.2.3", before);
        assert!(parse(&text).refused());
        assert_eq!(migrated(&text), old.replace("spec.keptn.sh/0.2.3", after));
    }
}

#[test]
fn what_is_not_carried_over_is_told_twice() {
    let text = "stages:\n- name: dev\n  deployment_operator: jenkins\n  next: staging\n- name: staging\n";
    let (told, done) = told(text);
    assert!(done);
    insta::assert_snapshot!(told, @r"
    warning: shipyard.yaml:3:3: stages[0].deployment_operator: is not a field of a stage of version 0.1 and is ignored: it has `name`, `deployment_strategy`, `test_strategy`, `approval_strategy`, `remediation_strategy`
      3 |   deployment_operator: jenkins
        |   ^
    warning: shipyard.yaml:4:3: stages[0].next: is not a field of a stage of version 0.1 and is ignored: it has `name`, `deployment_strategy`, `test_strategy`, `approval_strategy`, `remediation_strategy`
      4 |   next: staging
        |   ^
    ");
    let new = migrated(text);
    assert!(new.contains("\n    # Not carried over: deployment_operator, next\n    - name: dev\n"), "{new}");
    assert_eq!(findings(&new), "");
}

#[test]
fn what_cannot_be_migrated_is_refused_at_its_place() {
    for (text, says) in [
        ("", "1:1: holds no document: there is nothing to migrate"),
        ("stages: [{name: dev}]\n---\nstages: [{name: prod}]\n", "3:1: holds 2 documents: put the shipyard into a file of its own"),
        ("kind: Pipeline\nstages: []\n", "1:7: kind: \"Pipeline\" is not migrated"),
        ("spec: {}\n", "1:1: stages: is missing"),
        ("stages: []\n", "stages: has no stage"),
        ("stages: [dev]\n", "write `- name: dev`"),
        ("stages: [{deployment_strategy: direct}]\n", "stages[0].name: is missing"),
        ("stages: [{name: Dev_1}]\n", "for example `dev-1`"),
        ("stages: [{name: dev}, {name: dev}]\n", "stage \"dev\" stands twice"),
        ("stages: [{name: dev, deploymentstrategy: direct}]\n", "write `deployment_strategy`"),
        (
            "stages: [{name: dev, approval_strategy: automatic_warning}]\n",
            "does not say who decides: write `approval_strategy: {pass",
        ),
        ("stages: [{name: dev, approval_strategy: {pass: manuel}}]\n", "is not an approval strategy: write `manual`"),
        ("stages: [{name: dev, approval_strategy: {fail: manual}}]\n", "fail: is not a result that is asked about"),
        ("stages: [{name: dev, remediation_strategy: maybe}]\n", "write `automated`, or leave it out"),
        ("stages: [{name: dev, test_strategy: [a]}]\n", "stages[0].test_strategy: is a list, not a text"),
        ("stages: [{name: dev, test_strategy: a, sequences: []}]\n", "stands in both forms"),
        ("stages:\n- name: dev\n    test_strategy: a\n", "error: shipyard.yaml:"),
        ("apiVersion: spec.keptn.sh/0.2.0\nkind: Shipyard\nspec: {stages: [{name: dev}]}\n", "there is nothing to migrate"),
    ] {
        let (told, done) = told(text);
        assert!(!done && told.contains(says), "{text}\n{told}");
    }
    let large = format!("stages: [{{name: dev}}]\n#{}", "x".repeat(1 << 20));
    assert!(told(&large).0.contains("at most 1048576 (1 MiB) are read"));
    let many: String = (0..101).map(|n| format!("- name: s{n}\n")).collect();
    assert!(told(&format!("stages:\n{many}")).0.contains("has 101 stages: at most 100 are allowed"));
}
