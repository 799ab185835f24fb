//! One test per rule of the shipyard format: what the author of a broken one reads.

use crate::common::{findings, read, sequence, shipyard};

#[test]
fn a_missing_or_unknown_kind() {
    insta::assert_snapshot!(findings(&sequence("").replace("kind: Shipyard\n", "")), @r"
    warning: shipyard.yaml:1:1: kind: is missing: write `kind: Shipyard`
      1 | apiVersion: spec.keptn.sh/0.2.3
        | ^
    ");
    insta::assert_snapshot!(findings(&sequence("").replace("Shipyard", "shipyards")), @r#"
    warning: shipyard.yaml:2:7: kind: "shipyards" is read as `Shipyard`: write it like that
      2 | kind: shipyards
        |       ^
    "#);
    insta::assert_snapshot!(findings("kind: Deployment\n"), @r#"
    error: shipyard.yaml:1:7: kind: "Deployment" is not a kind this version takes: those are `Shipyard`, `Project`, `Remediation`, `Schedule`, `Pipeline`, `Cluster`, `GitHost`, `DeploymentConfig`, `ArtifactSource`, `WebhookSubscription`, `List`, `Template`
      1 | kind: Deployment
        |       ^
    "#);
    insta::assert_snapshot!(findings("metadata: {name: x}\n"), @r"
    error: shipyard.yaml:1:1: kind: is missing: write one of `kind: Shipyard`, `kind: Project`, `kind: Remediation`, `kind: Schedule`, `kind: Pipeline`, `kind: Cluster`, `kind: GitHost`, `kind: DeploymentConfig`, `kind: ArtifactSource`, `kind: WebhookSubscription`, `kind: List`, `kind: Template`
      1 | metadata: {name: x}
        | ^
    ");
    insta::assert_snapshot!(findings("- a\n"), @r"
    error: shipyard.yaml:1:1: is a list: a manifest is a mapping that starts with `apiVersion:` and `kind:`
      1 | - a
        | ^
    ");
    insta::assert_snapshot!(findings("# nothing\n"), @r"
    error: shipyard.yaml:1:1: holds no document: write one of `kind: Shipyard`, `kind: Project`, `kind: Remediation`, `kind: Schedule`, `kind: Pipeline`, `kind: Cluster`, `kind: GitHost`, `kind: DeploymentConfig`, `kind: ArtifactSource`, `kind: WebhookSubscription`, `kind: List`, `kind: Template`
      1 | # nothing
        | ^
    ");
}

#[test]
fn a_shipyard_has_a_stage() {
    insta::assert_snapshot!(findings("apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nmetadata: {name: x}\n"), @r"
    error: shipyard.yaml:1:1: spec.stages: is missing: write at least one stage, `- name: dev`, in a list under `stages:`
      1 | apiVersion: spec.keptn.sh/0.2.3
        | ^
    ");
    insta::assert_snapshot!(findings(&shipyard("    []\n")), @r"
    error: shipyard.yaml:5:5: spec.stages: has no stage: write at least one, `- name: dev`
      5 |     []
        |     ^
    ");
    insta::assert_snapshot!(findings(&shipyard("    name: dev\n")), @r"
    error: shipyard.yaml:5:5: spec.stages: is a mapping, not a list: put `- ` before each entry, like `- name: dev`
      5 |     name: dev
        |     ^
    ");
    insta::assert_snapshot!(findings(&shipyard("  - dev\n  -\n")), @r"
    error: shipyard.yaml:5:5: spec.stages[0]: is a text, not a stage: write `- name: dev`
      5 |   - dev
        |     ^
    error: shipyard.yaml:6:4: spec.stages[1]: is empty, not a stage: take out the `-`, or write a `name` behind it
      6 |   -
        |    ^
    ");
    insta::assert_snapshot!(findings("apiVersion: 0.2.0\nkind: Shipyard\nstages:\n- name: dev\n"), @r"
    error: shipyard.yaml:3:1: stages: is not a field of a Shipyard: it belongs under `spec`
      3 | stages:
        | ^
    ");
}

#[test]
fn names_follow_their_rules() {
    insta::assert_snapshot!(findings(&shipyard("  - name: Dev_1\n  - name: '-'\n  - sequences: []\n")), @r#"
    error: shipyard.yaml:5:11: spec.stages[0].name: stage name "Dev_1" contains 'D': use lower-case letters, digits and `-`, for example `dev-1`
      5 |   - name: Dev_1
        |           ^
    error: shipyard.yaml:6:11: spec.stages[1].name: stage name "-" must start and end with a letter or digit
      6 |   - name: '-'
        |           ^
    error: shipyard.yaml:7:5: spec.stages[2].name: is missing: a stage needs a name; write `name:` and one word
      7 |   - sequences: []
        |     ^
    "#);
    insta::assert_snapshot!(findings(&sequence("      - name: get action\n      - name: result\n      - name: [x]\n")), @r#"
    error: shipyard.yaml:10:15: spec.stages[0].sequences[0].tasks[1].name: task name "get action" contains ' ': use letters, digits, `-` and `_`, for example `get-action`
      10 |       - name: get action
         |               ^
    error: shipyard.yaml:11:15: spec.stages[0].sequences[0].tasks[2].name: task name "result" is a common field of every event's data: choose another name
      11 |       - name: result
         |               ^
    error: shipyard.yaml:12:15: spec.stages[0].sequences[0].tasks[3].name: is a list, not a name: write one word behind `name:`
      12 |       - name: [x]
         |               ^
    "#);
    insta::assert_snapshot!(findings(&sequence("").replace("delivery", "a/b")), @r#"
    error: shipyard.yaml:7:13: spec.stages[0].sequences[0].name: sequence name "a/b" contains '/': use letters, digits, `-` and `_`, for example `a-b`
      7 |     - name: a/b
        |             ^
    "#);
    let numbers = read(&shipyard("  - name: 1\n    sequences:\n    - name: 2\n      tasks: [{name: true}]\n"));
    assert_eq!(numbers.shipyard.stages[0].name.as_str(), "1");
    assert_eq!(numbers.shipyard.stages[0].sequences[0].tasks[0].name.as_str(), "true");
}

#[test]
fn nothing_stands_twice_but_tasks() {
    insta::assert_snapshot!(findings(&shipyard("  - name: dev\n  - name: dev\n")), @r#"
    error: shipyard.yaml:6:11: spec.stages[1].name: stage "dev" stands twice in the shipyard, first in line 5: give this one another name, or join them
      6 |   - name: dev
        |           ^
    "#);
    insta::assert_snapshot!(findings(&sequence("    - name: delivery\n      tasks: [{name: a}]\n")), @r#"
    error: shipyard.yaml:10:13: spec.stages[0].sequences[1].name: sequence "delivery" stands twice in its stage, first in line 7: give this one another name, or join them
      10 |     - name: delivery
         |             ^
    "#);
    insta::assert_snapshot!(findings(&sequence("      name: again\n")), @r"
    error: shipyard.yaml:10:7: spec.stages[0].sequences[0].name: `name` stands twice in the same mapping, first in line 7: only one could count; join them into one
      10 |       name: again
         |       ^
    ");
    assert_eq!(findings(&sequence("      - name: deployment\n")), "");
}

#[test]
fn a_sequence_has_a_task() {
    insta::assert_snapshot!(findings(&shipyard("  - name: dev\n    sequences:\n    - name: a\n    - name: b\n      tasks: []\n")), @r"
    error: shipyard.yaml:7:7: spec.stages[0].sequences[0].tasks: is missing: a sequence needs at least one task, `- name: deployment` in a list under `tasks:`
      7 |     - name: a
        |       ^
    error: shipyard.yaml:9:14: spec.stages[0].sequences[1].tasks: is empty: a sequence needs at least one task, `- name: deployment`
      9 |       tasks: []
        |              ^
    ");
    insta::assert_snapshot!(findings(&shipyard("  - name: dev\n    sequences:\n    - name: a\n      tasks:\n      - deployment\n")), @r"
    error: shipyard.yaml:9:9: spec.stages[0].sequences[0].tasks[0]: is a text, not a task: write `- name: deployment`
      9 |       - deployment
        |         ^
    ");
}

#[test]
fn durations_are_as_go_writes_them() {
    insta::assert_snapshot!(findings(&sequence("        triggeredAfter: soon\n        startDeadline: 10\n        timeout: 400d\n")), @r#"
    error: shipyard.yaml:10:25: spec.stages[0].sequences[0].tasks[0].triggeredAfter: duration "soon" is not understood: write it like 90s, 5m or 1h30m, from 0s to 365 days
      10 |         triggeredAfter: soon
         |                         ^
    error: shipyard.yaml:11:24: spec.stages[0].sequences[0].tasks[0].startDeadline: duration "10" is not understood: write it like 90s, 5m or 1h30m, from 0s to 365 days; for seconds `10s`
      11 |         startDeadline: 10
         |                        ^
    error: shipyard.yaml:12:18: spec.stages[0].sequences[0].tasks[0].timeout: duration "400d" is not understood: write it like 90s, 5m or 1h30m, from 0s to 365 days
      12 |         timeout: 400d
         |                  ^
    "#);
    insta::assert_snapshot!(findings(&sequence("        startDeadline: 0s\n        timeout: 0\n      timeout: 0s\n")), @r"
    error: shipyard.yaml:10:24: spec.stages[0].sequences[0].tasks[0].startDeadline: is 0: write a longer time, or leave it out
      10 |         startDeadline: 0s
         |                        ^
    warning: shipyard.yaml:11:18: spec.stages[0].sequences[0].tasks[0].timeout: is 0, that is never: a task whose executor died then holds its stage until somebody aborts it; write for example `24h`
      11 |         timeout: 0
         |                  ^
    error: shipyard.yaml:12:16: spec.stages[0].sequences[0].timeout: is 0: write a longer time, or leave it out
      12 |       timeout: 0s
         |                ^
    ");
    insta::assert_snapshot!(findings(&sequence("        triggeredAfter: [1m]\n")), @r"
    error: shipyard.yaml:10:25: spec.stages[0].sequences[0].tasks[0].triggeredAfter: is a list, not a text: write one value behind `triggeredAfter:`
      10 |         triggeredAfter: [1m]
         |                         ^
    ");
}

#[test]
fn fields_that_resemble_a_known_one_name_it() {
    insta::assert_snapshot!(findings(&sequence("        propereties: {a: 1}\n      triggers:\n      - event: x.y\n")), @r"
    error: shipyard.yaml:10:9: spec.stages[0].sequences[0].tasks[0].propereties: is not a field of a task: write `properties`
      10 |         propereties: {a: 1}
         |         ^
    error: shipyard.yaml:11:7: spec.stages[0].sequences[0].triggers: is not a field of a sequence: write `triggeredOn`
      11 |       triggers:
         |       ^
    ");
    insta::assert_snapshot!(findings(&shipyard("  - name: dev\n    Sequences: []\n    seqences: []\n")), @r"
    error: shipyard.yaml:6:5: spec.stages[0].Sequences: is not a field of a stage: write `sequences`
      6 |     Sequences: []
        |     ^
    error: shipyard.yaml:7:5: spec.stages[0].seqences: is not a field of a stage: write `sequences`
      7 |     seqences: []
        |     ^
    ");
}

#[test]
fn fields_at_the_wrong_level_say_where_they_belong() {
    insta::assert_snapshot!(findings(&sequence("        triggeredOn: []\n        timeframe: 5m\n      properties: {}\n    tasks: []\n")), @r"
    error: shipyard.yaml:10:9: spec.stages[0].sequences[0].tasks[0].triggeredOn: is not a field of a task: it belongs in an entry of `sequences`
      10 |         triggeredOn: []
         |         ^
    error: shipyard.yaml:11:9: spec.stages[0].sequences[0].tasks[0].timeframe: is not a field of a task: it belongs under the task's `properties`
      11 |         timeframe: 5m
         |         ^
    error: shipyard.yaml:12:7: spec.stages[0].sequences[0].properties: is not a field of a sequence: it belongs in an entry of `tasks`
      12 |       properties: {}
         |       ^
    error: shipyard.yaml:13:5: spec.stages[0].tasks: is not a field of a stage: it belongs in an entry of `sequences`
      13 |     tasks: []
         |     ^
    ");
    insta::assert_snapshot!(findings(&sequence("      triggeredOn:\n      - event: a.b\n        result: fail\n      - event: a.b\n        match: {result: fail}\n      - event: a.b\n        selector: {result: fail}\n")), @r"
    error: shipyard.yaml:12:9: spec.stages[0].sequences[0].triggeredOn[0].result: is not a field of an entry of `triggeredOn`: it belongs under `match`, which stands under `selector`
      12 |         result: fail
         |         ^
    error: shipyard.yaml:14:9: spec.stages[0].sequences[0].triggeredOn[1].match: is not a field of an entry of `triggeredOn`: it belongs under `selector`
      14 |         match: {result: fail}
         |         ^
    error: shipyard.yaml:16:20: spec.stages[0].sequences[0].triggeredOn[2].selector.result: is not a field of a `selector`: it belongs under `match`, which stands under `selector`
      16 |         selector: {result: fail}
         |                    ^
    ");
    insta::assert_snapshot!(findings(&sequence("      triggeredOn:\n      -event: a.b\n")), @r"
    error: shipyard.yaml:11:7: spec.stages[0].sequences[0].-event: is read as a field named `-event`: put a blank after the `-`, `- event:`
      11 |       -event: a.b
         |       ^
    ");
}

#[test]
fn other_unknown_fields_are_ignored_with_a_warning() {
    insta::assert_snapshot!(findings(&sequence("        image: x\n      description: ours\nowner: me\n")), @r"
    warning: shipyard.yaml:10:9: spec.stages[0].sequences[0].tasks[0].image: is not a field of a task and is ignored: it has `name`, `triggeredAfter`, `properties`, `startDeadline`, `timeout`; a task's own settings go under `properties`
      10 |         image: x
         |         ^
    warning: shipyard.yaml:11:7: spec.stages[0].sequences[0].description: is not a field of a sequence and is ignored: it has `name`, `triggeredOn`, `tasks`, `timeout`, `supersede`, `ignoreWindows`
      11 |       description: ours
         |       ^
    warning: shipyard.yaml:12:1: owner: is not a field of a Shipyard and is ignored: it has `apiVersion`, `version`, `kind`, `metadata`, `spec`
      12 | owner: me
         | ^
    ");
}

#[test]
fn properties_are_a_mapping() {
    insta::assert_snapshot!(findings(&sequence("        properties:\n        - a: 1\n      - name: b\n        properties: fast\n")), @r"
    error: shipyard.yaml:11:11: spec.stages[0].sequences[0].tasks[0].properties: is a list, not a mapping: leave out the `-` in front of its fields
      11 |         - a: 1
         |           ^
    error: shipyard.yaml:13:21: spec.stages[0].sequences[0].tasks[1].properties: is a text, not a mapping: write its fields below it, indented
      13 |         properties: fast
         |                     ^
    ");
    assert_eq!(findings(&sequence("        properties:\n")), "");
}

#[test]
fn triggered_on_is_a_list_of_events() {
    insta::assert_snapshot!(findings(&sequence("      triggeredOn: dev.test.finished\n")), @r"
    error: shipyard.yaml:10:20: spec.stages[0].sequences[0].triggeredOn: is a text, not a list: write `- event: dev.test.finished`
      10 |       triggeredOn: dev.test.finished
         |                    ^
    ");
    insta::assert_snapshot!(findings(&sequence("      triggeredOn:\n        event: a.b\n")), @r"
    error: shipyard.yaml:11:9: spec.stages[0].sequences[0].triggeredOn: is a mapping, not a list: put `- ` before each entry, like `- event: dev.delivery.finished`
      11 |         event: a.b
         |         ^
    ");
    insta::assert_snapshot!(findings(&sequence("      triggeredOn:\n      - selector: {match: {result: pass}}\n      - []\n      - event: {}\n      - a.b.c: {}\n")), @r"
    error: shipyard.yaml:11:9: spec.stages[0].sequences[0].triggeredOn[0].event: is missing: write what starts the sequence, for example `event: dev.delivery.finished`
      11 |       - selector: {match: {result: pass}}
         |         ^
    error: shipyard.yaml:12:9: spec.stages[0].sequences[0].triggeredOn[1]: is a list: write `- event: dev.delivery.finished`
      12 |       - []
         |         ^
    error: shipyard.yaml:13:16: spec.stages[0].sequences[0].triggeredOn[2].event: is a mapping, not the name of an event: write for example `event: dev.delivery.finished`
      13 |       - event: {}
         |                ^
    error: shipyard.yaml:14:9: spec.stages[0].sequences[0].triggeredOn[3].a.b.c: is not a field of an entry of `triggeredOn`: write `- event: a.b.c`
      14 |       - a.b.c: {}
         |         ^
    ");
    insta::assert_snapshot!(findings(&sequence("      triggeredOn:\n      - <event>.finished\n      - a..b\n      - ''\n      - sh.keptn.event.a.b.finished\n")), @r#"
    error: shipyard.yaml:11:9: spec.stages[0].sequences[0].triggeredOn[0]: "<event>.finished" contains '<': an event is one name with dots, for example `dev.delivery.finished`
      11 |       - <event>.finished
         |         ^
    error: shipyard.yaml:12:9: spec.stages[0].sequences[0].triggeredOn[1]: "a..b" has nothing between two dots or at an end: write it like `dev.delivery.finished`
      12 |       - a..b
         |         ^
    error: shipyard.yaml:13:9: spec.stages[0].sequences[0].triggeredOn[2]: is empty: write what starts the sequence, for example `dev.delivery.finished`
      13 |       - ''
         |         ^
    warning: shipyard.yaml:14:9: spec.stages[0].sequences[0].triggeredOn[3]: carries the prefix of event types, which is understood but left out here: write `a.b.finished`
      14 |       - sh.keptn.event.a.b.finished
         |         ^
    "#);
}

#[test]
fn a_selector_matches_results() {
    let selector = |selector: &str| sequence(&format!("      triggeredOn:\n      - event: a.b\n        selector: {selector}\n"));
    for good in ["{match: {result: pass}}", "{match: {test.result: warning, result: fail}}", ""] {
        assert_eq!(findings(&selector(good)), "", "{good}");
    }
    insta::assert_snapshot!(findings(&selector("{match: {result: failed}}")), @r"
    warning: shipyard.yaml:12:36: spec.stages[0].sequences[0].triggeredOn[0].selector.match.result: `failed` is read as `fail`: write `fail`
      12 |         selector: {match: {result: failed}}
         |                                    ^
    ");
    insta::assert_snapshot!(findings(&selector("{match: {result: success}}")), @r#"
    error: shipyard.yaml:12:36: spec.stages[0].sequences[0].triggeredOn[0].selector.match.result: "success" is not a result: write `pass`
      12 |         selector: {match: {result: success}}
         |                                    ^
    "#);
    insta::assert_snapshot!(findings(&selector("{match: {result: {}}}")), @r"
    error: shipyard.yaml:12:36: spec.stages[0].sequences[0].triggeredOn[0].selector.match.result: a mapping is not a result: write `pass`, `warning` or `fail`
      12 |         selector: {match: {result: {}}}
         |                                    ^
    ");
    insta::assert_snapshot!(findings(&selector("{match: {status: errored, a.b.result: fail}}")), @r"
    error: shipyard.yaml:12:28: spec.stages[0].sequences[0].triggeredOn[0].selector.match.status: is not something a selector can match: a sequence is told by its result: write `result`
      12 |         selector: {match: {status: errored, a.b.result: fail}}
         |                            ^
    error: shipyard.yaml:12:45: spec.stages[0].sequences[0].triggeredOn[0].selector.match.a.b.result: is not something a selector can match: write `result`, or a task's, for example `evaluation.result`
      12 |         selector: {match: {status: errored, a.b.result: fail}}
         |                                             ^
    ");
    insta::assert_snapshot!(findings(&selector("{match: {}}")), @r"
    error: shipyard.yaml:12:27: spec.stages[0].sequences[0].triggeredOn[0].selector.match: matches nothing: write `result: fail` below `match:`, or leave the selector out to follow a pass
      12 |         selector: {match: {}}
         |                           ^
    ");
    insta::assert_snapshot!(findings(&selector("{}")), @r"
    error: shipyard.yaml:12:19: spec.stages[0].sequences[0].triggeredOn[0].selector.match: matches nothing: write `result: fail` below `match:`, or leave the selector out to follow a pass
      12 |         selector: {}
         |                   ^
    ");
    insta::assert_snapshot!(findings(&selector("fail")), @r"
    error: shipyard.yaml:12:19: spec.stages[0].sequences[0].triggeredOn[0].selector: is a text: write `match:` below it, and below that `result: fail`
      12 |         selector: fail
         |                   ^
    ");
}

#[test]
fn an_event_nothing_sends_is_a_warning_with_near_names() {
    let on = |event: &str| sequence(&format!("    - name: next\n      tasks: [{{name: x}}]\n      triggeredOn: [{event}]\n"));
    for good in
        ["dev.delivery.finished", "dev.deployment.finished", "dev.evaluation.finished", "production.problem.open", "com.acme.built"]
    {
        assert_eq!(findings(&on(good)), "", "{good}");
    }
    insta::assert_snapshot!(findings(&on("dev.delivry.finished")), @r#"
    warning: shipyard.yaml:12:21: spec.stages[0].sequences[1].triggeredOn[0]: nothing sends "dev.delivry.finished", so this never starts: stage "dev" has no sequence or task "delivry"; did you mean `dev.delivery.finished`?
      12 |       triggeredOn: [dev.delivry.finished]
         |                     ^
    "#);
    insta::assert_snapshot!(findings(&on("hardening.delivery.finished")), @r#"
    warning: shipyard.yaml:12:21: spec.stages[0].sequences[1].triggeredOn[0]: nothing sends "hardening.delivery.finished", so this never starts: there is no stage "hardening"; there is `dev.delivery.finished`
      12 |       triggeredOn: [hardening.delivery.finished]
         |                     ^
    "#);
    insta::assert_snapshot!(findings(&on("dev.delivery.triggered")), @r"
    warning: shipyard.yaml:12:21: spec.stages[0].sequences[1].triggeredOn[0]: starts nothing: a sequence follows the end of another, not that it is triggered; write `dev.delivery.finished`
      12 |       triggeredOn: [dev.delivery.triggered]
         |                     ^
    ");
    insta::assert_snapshot!(findings(&on("dev.delivery.finish")), @r#"
    warning: shipyard.yaml:12:21: spec.stages[0].sequences[1].triggeredOn[0]: "dev.delivery.finish" would have to be a domain event of that name: the end is `dev.delivery.finished`
      12 |       triggeredOn: [dev.delivery.finish]
         |                     ^
    "#);
    insta::assert_snapshot!(findings(&on("deployment.finished")), @r"
    warning: shipyard.yaml:12:21: spec.stages[0].sequences[1].triggeredOn[0]: names no stage, so this never starts: write `<stage>.deployment.finished`
      12 |       triggeredOn: [deployment.finished]
         |                     ^
    ");
    insta::assert_snapshot!(findings(&on("delivery")), @r#"
    warning: shipyard.yaml:12:21: spec.stages[0].sequences[1].triggeredOn[0]: "delivery" would have to be a domain event of that name: for the end of a sequence write `<stage>.<sequence>.finished`; there is `dev.delivery.finished`
      12 |       triggeredOn: [delivery]
         |                     ^
    "#);
    insta::assert_snapshot!(findings(&on("{event: dev.delivery.finished, selector: {match: {release.result: fail}}}")), @r#"
    warning: shipyard.yaml:12:71: spec.stages[0].sequences[1].triggeredOn[0].selector.match.release.result: never matches: sequence "dev.delivery" has no task "release", it has `deployment`
      12 |       triggeredOn: [{event: dev.delivery.finished, selector: {match: {release.result: fail}}}]
         |                                                                       ^
    "#);
}
