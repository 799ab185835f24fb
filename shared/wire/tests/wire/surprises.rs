//! What is allowed and turns out otherwise than expected: a warning each, with the remedy.

use crate::common::{findings, parse, read, sequence, shipyard};
use keelway_domain::time::Span;

/// A stage whose delivery has these tasks and is rolled back on this selector.
fn rolled_back(tasks: &str, selector: &str) -> String {
    shipyard(&format!(
        "  - name: prod\n    sequences:\n    - name: delivery\n      tasks: [{tasks}]\n    - name: rollback\n      triggeredOn:\n      - event: prod.delivery.finished\n        selector: {{match: {{{selector}}}}}\n      tasks: [{{name: rollback}}]\n"
    ))
}

const GATE: &str = "{name: approval, timeout: 1h, properties: {pass: manual, warning: manual}}";

#[test]
fn a_declined_approval_rolls_back_what_was_never_deployed() {
    insta::assert_snapshot!(findings(&rolled_back(&format!("{GATE}, {{name: deployment}}"), "result: fail")), @r#"
    warning: shipyard.yaml:11:9: spec.stages[0].sequences[1].triggeredOn[0]: starts as well when the approval of "prod.delivery" is declined or nobody decides in time, though nothing was deployed: put the approval into a sequence of its own, and let `delivery` follow its end
      11 |       - event: prod.delivery.finished
         |         ^
    "#);
    let evaluated = format!("{{name: evaluation, properties: {{timeframe: 5m}}}}, {GATE}, {{name: deployment}}");
    assert!(findings(&rolled_back(&evaluated, "result: failed")).contains("though nothing was deployed"));
    for (tasks, selector) in [
        // Something was deployed before somebody was asked.
        (format!("{{name: deployment}}, {GATE}, {{name: release}}"), "result: fail"),
        // The rollback is about a task that has run.
        (format!("{GATE}, {{name: deployment}}"), "deployment.result: fail"),
        (format!("{GATE}, {{name: deployment}}"), "result: fail, deployment.result: fail"),
        (format!("{GATE}, {{name: deployment}}"), "result: pass"),
        // Nobody is asked, so nobody declines.
        ("{name: approval, properties: {pass: automatic}}, {name: deployment}".into(), "result: fail"),
    ] {
        assert_eq!(findings(&rolled_back(&tasks, selector)), "", "{tasks} {selector}");
    }
    let notified = rolled_back(&format!("{GATE}, {{name: deployment}}"), "result: fail").replace("rollback", "notify");
    assert_eq!(findings(&notified), "", "who is told of a refusal undoes nothing");
}

/// A stage that ends with these tasks, and another one that is triggered on its end by these entries.
fn followed(tasks: &str, entries: &str) -> String {
    shipyard(&format!(
        "  - name: dev\n    sequences:\n    - name: delivery\n      tasks: [{tasks}]\n  - name: prod\n    sequences:\n    - name: delivery\n      triggeredOn: [{entries}]\n      tasks: [{{name: deployment}}]\n"
    ))
}

const EVALUATION: &str = "{name: evaluation, properties: {timeframe: 5m}}";

#[test]
fn a_warning_that_reaches_nobody() {
    insta::assert_snapshot!(findings(&followed(EVALUATION, "dev.delivery.finished")), @r#"
    warning: shipyard.yaml:12:21: spec.stages[1].sequences[0].triggeredOn[0]: only a pass gets here: "dev.delivery" ends with an evaluation, and its `warning` reaches nobody; add an entry `- event: dev.delivery.finished` with `selector: {match: {result: warning}}`, or give this one `selector: {match: {result: pass}}` to say so
      12 |       triggeredOn: [dev.delivery.finished]
         |                     ^
    "#);
    for (tasks, entries) in [
        (EVALUATION, "dev.delivery.finished, {event: dev.delivery.finished, selector: {match: {result: warning}}}"),
        (EVALUATION, "dev.delivery.finished, {event: dev.delivery.finished, selector: {match: {evaluation.result: warning}}}"),
        (EVALUATION, "{event: dev.delivery.finished, selector: {match: {result: pass}}}"),
        // The last task decides about the sequence.
        ("{name: evaluation, properties: {timeframe: 5m}}, {name: release}", "dev.delivery.finished"),
    ] {
        assert_eq!(findings(&followed(tasks, entries)), "", "{tasks} {entries}");
    }
    let twice = followed(EVALUATION, "dev.delivery.finished, sh.keptn.event.dev.delivery.finished");
    assert_eq!(findings(&twice).matches("reaches nobody").count(), 1, "once for each end");
}

#[test]
fn an_approval_that_waits_for_ever() {
    insta::assert_snapshot!(findings(&sequence("      - name: approval\n        startDeadline: 1h\n        properties: {pass: manual}\n")), @r"
    warning: shipyard.yaml:10:9: spec.stages[0].sequences[0].tasks[1]: waits for a person for ever: write for example `timeout: 24h`, after which it is declined, or `timeout: 0` to say so
      10 |       - name: approval
         |         ^
    warning: shipyard.yaml:11:24: spec.stages[0].sequences[0].tasks[1].startDeadline: does nothing here, as no executor answers an approval: write `timeout` for the time a person has
      11 |         startDeadline: 1h
         |                        ^
    ");
    for good in [
        "timeout: 1h, properties: {pass: manual, warning: manual}",
        "timeout: 1h, properties: {pass: manual, warning: automatic}",
        "timeout: 1h, properties: {warning: manual}",
        "timeout: 1h, properties: {pass: manual}",
        "timeout: 0, properties: {warning: manual}",
        "properties: {pass: automatic, warning: automatic}",
    ] {
        assert_eq!(findings(&sequence(&format!("      - {{name: approval, {good}}}\n"))), "", "{good}");
    }
    let limited = "      - name: approval\n        properties: {pass: manual, warning: manual}\n      timeout: 2h\n";
    assert_eq!(findings(&sequence(limited)), "", "the sequence has a timeout");
    let timeout = |text: &str| read(&sequence(text)).shipyard.stages[0].sequences[0].tasks[1].timeout;
    assert_eq!(
        timeout("      - {name: approval, timeout: 90m, properties: {pass: manual, warning: manual}}\n"),
        Some(Span::minutes(90))
    );
}

#[test]
fn surprises_refuse_nothing() {
    assert!(!parse(&rolled_back(&format!("{GATE}, {{name: deployment}}"), "result: fail")).refused());
}

#[test]
fn an_approval_may_ask_for_somebody_else() {
    let asks = |properties: &str| sequence(&format!("      - {{name: approval, timeout: 0, properties: {{{properties}}}}}\n"));
    assert_eq!(findings(&asks("pass: manual, separate: true")), "");
    assert!(findings(&asks("pass: automatic, separate: true")).contains("warning: shipyard.yaml"), "nobody is asked");
    assert!(findings(&asks("pass: automatic, separate: true")).contains("nobody is asked"));
    assert!(findings(&asks("pass: manual, separate: maybe")).contains("write `true` or `false`"));
}

#[test]
fn approval_and_evaluation_have_rules_of_their_own() {
    insta::assert_snapshot!(findings(&sequence("      - name: approval\n        properties: {pass: manually, warning: 1}\n")), @r#"
    error: shipyard.yaml:11:28: spec.stages[0].sequences[0].tasks[1].properties.pass: "manually" is not an approval strategy: write `manual`
      11 |         properties: {pass: manually, warning: 1}
         |                            ^
    error: shipyard.yaml:11:47: spec.stages[0].sequences[0].tasks[1].properties.warning: "1" is not an approval strategy: write `automatic` or `manual`
      11 |         properties: {pass: manually, warning: 1}
         |                                               ^
    "#);
    insta::assert_snapshot!(findings(&sequence("      - name: approval\n")), @r"
    warning: shipyard.yaml:10:9: spec.stages[0].sequences[0].tasks[1]: has no strategy, so nobody is asked (Keptn asked): write `pass: manual` and `warning: manual` under `properties`, or `automatic` to say so
      10 |       - name: approval
         |         ^
    ");
    insta::assert_snapshot!(findings(&sequence("      - name: evaluation\n")), @r"
    warning: shipyard.yaml:10:9: spec.stages[0].sequences[0].tasks[1]: names no timeframe: unless the trigger or an earlier task gives one, the last 5 minutes are evaluated; write `timeframe: 5m` under `properties`
      10 |       - name: evaluation
         |         ^
    ");
    insta::assert_snapshot!(findings(&sequence("      - name: evaluation\n        properties: {timeframe: invalid}\n")), @r#"
    error: shipyard.yaml:11:33: spec.stages[0].sequences[0].tasks[1].properties.timeframe: duration "invalid" is not understood: write it like 90s, 5m or 1h30m, from 0s to 365 days
      11 |         properties: {timeframe: invalid}
         |                                 ^
    "#);
    assert_eq!(findings(&sequence("      - name: evaluation\n        properties: {timeframe: 5m}\n")), "");
}

#[test]
fn a_loop_without_a_selector_is_a_warning() {
    let loops = |selector: &str| {
        shipyard(&format!(
            "  - name: a\n    sequences:\n    - name: x\n      triggeredOn: [b.y.finished]\n      tasks: [{{name: t}}]\n  - name: b\n    sequences:\n    - name: y\n      triggeredOn:\n      - event: a.x.finished\n{selector}      tasks: [{{name: t}}]\n"
        ))
    };
    insta::assert_snapshot!(findings(&loops("")), @r#"
    warning: shipyard.yaml:8:21: spec.stages[0].sequences[0].triggeredOn[0]: closes a loop: "a.x" starts itself again each time all passes; give one entry of the loop a selector, for example `result: fail`
      8 |       triggeredOn: [b.y.finished]
        |                     ^
    "#);
    assert_eq!(findings(&loops("        selector: {match: {result: fail}}\n")), "");
    insta::assert_snapshot!(findings(&sequence("      triggeredOn: [dev.deployment.finished]\n")), @r#"
    warning: shipyard.yaml:10:21: spec.stages[0].sequences[0].triggeredOn[0]: closes a loop: "dev.delivery" starts itself again each time all passes; give one entry of the loop a selector, for example `result: fail`
      10 |       triggeredOn: [dev.deployment.finished]
         |                     ^
    "#);
}
