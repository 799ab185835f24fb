//! The text of a migrated shipyard, and its comments.

use super::Old;
use super::stage::{Deployment, OldStage};
use crate::manifest::levels::shipyards::NEWEST;
use crate::manifest::shipyard::PROJECT_ANNOTATION;

/// The spelling of the documentation page.
const BLUE_GREEN: &str = "blue_green_service";
/// How long a remediation action has to show its effect.
const EFFECT: &str = "15m";

/// Lines with their indentation, in steps of two blanks.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn add(&mut self, level: usize, line: impl AsRef<str>) {
        self.0 += &"  ".repeat(level);
        self.0 += line.as_ref();
        self.0.push('\n');
    }
}

/// The shipyard in the form of 0.2.
pub fn write(old: &Old) -> String {
    let mut lines = Lines::default();
    lines.add(0, "# Migrated from version 0.1 by `keelway shipyard migrate`.");
    lines.add(0, "# It departs from the upgrade path of Keptn's enhancement proposal 06 in this:");
    for departure in departures(old) {
        lines.add(0, format!("# - {}", departure.replace('\n', "\n#   ")));
    }
    dropped(&mut lines, 0, &old.dropped);
    lines.add(0, format!("apiVersion: {NEWEST}"));
    lines.add(0, "kind: Shipyard");
    lines.add(0, "metadata:");
    lines.add(1, format!("name: {}", word(old.name.as_deref().unwrap_or("shipyard"))));
    if let Some(project) = &old.project {
        lines.add(1, "annotations:");
        lines.add(2, format!("{PROJECT_ANNOTATION}: {}", word(project)));
    }
    lines.add(0, "spec:");
    lines.add(1, "stages:");
    let mut before = None;
    for stage in &old.stages {
        self::stage(&mut lines, stage, before);
        before = Some(stage);
    }
    lines.0
}

/// Where the result departs from the proposal; only what concerns this shipyard.
fn departures(old: &Old) -> Vec<String> {
    let any = |is_so: fn(&OldStage) -> bool| old.stages.iter().any(is_so);
    let mut all = vec!["sequences are called `delivery`, as in Keptn's documentation, not `artifact-delivery`".to_owned()];
    if any(|stage| stage.deployment == Some(Deployment::BlueGreen)) {
        all.push(format!("`{BLUE_GREEN}` is spelt as in Keptn's documentation, not `blue_green`"));
    }
    if any(|stage| stage.test.is_some()) {
        all.push("an `evaluation` names its timeframe: the 5 minutes that count without one".to_owned());
    }
    if old.stages.len() > 1 {
        all.push("a stage follows the one before it; the proposal's example names a stage that it does not have".to_owned());
    }
    if any(OldStage::rolls_back) {
        all.push("`rollback` follows a failed delivery of its own stage, not of the stage before".to_owned());
    }
    if any(|stage| stage.approval.is_some()) {
        all.push(
            "`approval_strategy`, which the proposal leaves out, becomes a task `approval`; it waits without a limit, as\n\
                  before: write for example `timeout: 24h` in place of `timeout: 0`"
                .to_owned(),
        );
    }
    if any(|stage| stage.remediation) {
        all.push(
            "`remediation` has the tasks of Keptn's documentation, not `remediation` and `test`, and goes on with the next\n\
             action when its evaluation fails, in place of the event `remediation.in-progress`"
                .to_owned(),
        );
    }
    all
}

fn dropped(lines: &mut Lines, level: usize, fields: &[String]) {
    if !fields.is_empty() {
        let fields: Vec<String> = fields.iter().map(|field| word(field)).collect();
        lines.add(level, format!("# Not carried over: {}", fields.join(", ")));
    }
}

fn stage(lines: &mut Lines, stage: &OldStage, before: Option<&OldStage>) {
    dropped(lines, 2, &stage.dropped);
    lines.add(2, format!("- name: {}", word(stage.name.as_str())));
    lines.add(3, "sequences:");
    lines.add(4, "- name: delivery");
    if let Some(before) = before {
        lines.add(5, "triggeredOn:");
        lines.add(6, format!("- event: {}.delivery.finished", before.name));
    }
    lines.add(5, "tasks:");
    approval(lines, stage);
    lines.add(6, "- name: deployment");
    let strategy = match &stage.deployment {
        Some(Deployment::BlueGreen) => Some(BLUE_GREEN),
        Some(Deployment::Other(other)) => Some(other.as_str()),
        None => None,
    };
    properties(lines, strategy.map(|strategy| ("deploymentstrategy", strategy)));
    if let Some(test) = &stage.test {
        lines.add(6, "- name: test");
        properties(lines, Some(("teststrategy", test)));
        lines.add(6, "- name: evaluation");
        properties(lines, Some(("timeframe", "5m")));
    }
    lines.add(6, "- name: release");
    if stage.rolls_back() {
        rollback(lines, stage);
    }
    if stage.remediation {
        remediation(lines, stage);
    }
}

fn approval(lines: &mut Lines, stage: &OldStage) {
    let Some(approval) = &stage.approval else { return };
    if approval.warning == "manual" && approval.pass == "automatic" {
        lines.add(6, "# Asks only if the sequence before ended with `warning`. One that ends with `release` ends with its");
        lines.add(6, "# result, so that a warning of its evaluation is not asked about: write `pass: manual` for that.");
    }
    lines.add(6, "- name: approval");
    if stage.asks() {
        lines.add(7, "timeout: 0");
    }
    lines.add(7, "properties:");
    lines.add(8, format!("pass: {}", approval.pass));
    lines.add(8, format!("warning: {}", approval.warning));
}

fn properties(lines: &mut Lines, property: Option<(&str, &str)>) {
    if let Some((name, value)) = property {
        lines.add(7, "properties:");
        lines.add(8, format!("{name}: {}", word(value)));
    }
}

fn rollback(lines: &mut Lines, stage: &OldStage) {
    lines.add(4, "- name: rollback");
    if stage.asks() {
        lines.add(5, "# Not when the approval is declined: then nothing was deployed.");
    }
    lines.add(5, "triggeredOn:");
    follows(lines, &format!("{}.delivery.finished", stage.name), "result");
    if stage.asks() {
        lines.add(9, "approval.result: pass");
    }
    lines.add(5, "tasks:");
    lines.add(6, "- name: rollback");
}

fn remediation(lines: &mut Lines, stage: &OldStage) {
    lines.add(4, "- name: remediation");
    lines.add(5, "triggeredOn:");
    lines.add(6, format!("- event: {}.problem.open", stage.name));
    follows(lines, &format!("{}.remediation.finished", stage.name), "evaluation.result");
    lines.add(5, "tasks:");
    lines.add(6, "- name: get-action");
    lines.add(6, "- name: action");
    lines.add(6, "- name: evaluation");
    lines.add(7, format!("triggeredAfter: {EFFECT}"));
    properties(lines, Some(("timeframe", EFFECT)));
}

/// An entry of `triggeredOn` for what failed.
fn follows(lines: &mut Lines, event: &str, what: &str) {
    lines.add(6, format!("- event: {event}"));
    lines.add(7, "selector:");
    lines.add(8, "match:");
    lines.add(9, format!("{what}: fail"));
}

/// A text as a YAML scalar: quoted unless it is a plain word.
fn word(text: &str) -> String {
    const OTHERS: [&str; 11] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"];
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        && !OTHERS.contains(&text.to_lowercase().as_str());
    // A JSON string is a quoted scalar of YAML. `5m` is a text to every parser.
    let duration =
        text.ends_with('m') && text.strip_suffix('m').is_some_and(|n| !n.is_empty() && n.bytes().all(|c| c.is_ascii_digit()));
    if plain || duration { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}
