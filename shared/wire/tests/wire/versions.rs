//! Which versions of the shipyard format are read, and what is said of the others.

use crate::common::{findings, parse, read, sequence, shipyard};

#[test]
fn versions_from_0_2_on_are_read_with_or_without_prefix_under_either_name() {
    for version in ["apiVersion: spec.keptn.sh/0.2.0", "version: 0.2.0", "apiVersion: 0.2", "version: 'spec.keptn.sh/0.2.4'"] {
        let text = sequence("").replace("apiVersion: spec.keptn.sh/0.2.3", version);
        assert_eq!(findings(&text), "", "{version}");
        assert_eq!(read(&text).shipyard.stages.len(), 1, "{version}");
    }
    insta::assert_snapshot!(findings(&sequence("").replace("0.2.3", "1.2.0")), @r"
    warning: shipyard.yaml:1:13: apiVersion: 1.2.0 is a version not known here and is read like 0.2: write `apiVersion: spec.keptn.sh/0.2.3`
      1 | apiVersion: spec.keptn.sh/1.2.0
        |             ^
    ");
    insta::assert_snapshot!(findings(&sequence("").replace("spec.keptn.sh/0.2.3", "1")), @r"
    warning: shipyard.yaml:1:13: apiVersion: 1 is a version not known here and is read like 0.2: write `apiVersion: spec.keptn.sh/0.2.3`
      1 | apiVersion: 1
        |             ^
    ");
    for slip in ["0.2.x", "0.2.", "'0.2.3 '", "v0.2.3", "spec.keptn.sh/0.2.3-rc1", "0.2.3.4"] {
        let text = sequence("").replace("spec.keptn.sh/0.2.3", slip);
        let told = findings(&text);
        assert!(!parse(&text).refused(), "{told}");
        let written = slip.trim_matches('\'');
        let expected = format!("{written:?} is no version, and is read like 0.2: write `apiVersion: spec.keptn.sh/0.2.3`");
        assert!(told.starts_with("warning: ") && told.contains(&expected), "{told}");
    }
    for other in ["0", "x", "0.x", "latest", "spec.keptn.sh/"] {
        let told = findings(&sequence("").replace("spec.keptn.sh/0.2.3", other));
        assert!(told.starts_with("error: ") && told.contains("is not a shipyard's version"), "{told}");
    }
    insta::assert_snapshot!(findings(&sequence("").replace("spec.keptn.sh/0.2.3", "latest")), @r#"
    error: shipyard.yaml:1:13: apiVersion: "latest" is not a shipyard's version: write `apiVersion: spec.keptn.sh/0.2.3`
      1 | apiVersion: latest
        |             ^
    "#);
    insta::assert_snapshot!(findings(&sequence("").replace("apiVersion: spec.keptn.sh/0.2.3\n", "")), @r"
    error: shipyard.yaml:1:1: apiVersion: is missing: write `apiVersion: spec.keptn.sh/0.2.3`
      1 | kind: Shipyard
        | ^
    ");
    insta::assert_snapshot!(findings(&sequence("").replace("kind:", "version: 0.2.0\nkind:")), @r"
    warning: shipyard.yaml:2:10: version: is ignored beside `apiVersion`: leave it out
      2 | version: 0.2.0
        |          ^
    ");
}

#[test]
fn the_older_form_is_refused_with_the_way_to_the_newer() {
    insta::assert_snapshot!(findings("stages:\n- name: dev\n  deployment_strategy: direct\n"), @r#"
    error: shipyard.yaml:2:3: stages: `stages` at the top is a shipyard's older form (0.1), which is not taken: run `keelway shipyard migrate FILE`, which prints it in the form of 0.2
      2 | - name: dev
        |   ^
    "#);
    insta::assert_snapshot!(findings("apiVersion: spec.keptn.sh/0.1.7\nkind: Shipyard\nspec: {stages: [{name: dev}]}\n"), @r#"
    error: shipyard.yaml:1:13: apiVersion: "spec.keptn.sh/0.1.7" is the older version, which is not taken: run `keelway shipyard migrate FILE`, which prints it in the form of 0.2
      1 | apiVersion: spec.keptn.sh/0.1.7
        |             ^
    "#);
    insta::assert_snapshot!(findings(&sequence("").replace("0.2.3", "0.1.0")), @r#"
    error: shipyard.yaml:1:13: apiVersion: "spec.keptn.sh/0.1.0" is the older version, but the stages have sequences as from 0.2 on: write `apiVersion: spec.keptn.sh/0.2.3`, or run `keelway shipyard migrate FILE`, which prints it in the form of 0.2
      1 | apiVersion: spec.keptn.sh/0.1.0
        |             ^
    "#);
    insta::assert_snapshot!(findings(&shipyard("  - name: dev\n    test_strategy: functional\n    sequences: []\n")), @r"
    error: shipyard.yaml:6:5: spec.stages[0].test_strategy: is a field of the older form (0.1) and does nothing here: leave it out, and write what it says under the `properties` of a task
      6 |     test_strategy: functional
        |     ^
    ");
}

#[test]
fn what_sequences_were_called_once_is_refused_and_looked_into() {
    let text = shipyard("  - name: dev\n    workflows:\n    - name: delivery\n      tasks: [{nam: deployment}]\n");
    insta::assert_snapshot!(findings(&text), @r"
    error: shipyard.yaml:6:5: spec.stages[0].workflows: is not a field of a stage: write `sequences`
      6 |     workflows:
        |     ^
    error: shipyard.yaml:8:15: spec.stages[0].workflows[0].tasks[0].name: is missing: a task needs a name; write `name:` and one word
      8 |       tasks: [{nam: deployment}]
        |               ^
    error: shipyard.yaml:8:16: spec.stages[0].workflows[0].tasks[0].nam: is not a field of a task: write `name`
      8 |       tasks: [{nam: deployment}]
        |                ^
    ");
}
