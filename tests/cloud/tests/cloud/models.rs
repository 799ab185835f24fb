//! After everything else: what the functions asked, and what they were answered, is as AWS's service models say.

use crate::bed::Bed;
use keelway_cloud_tests::problem::ensure;
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Ability, Outcome};
use serde_json::Value;
use std::collections::BTreeSet;

pub fn tests() -> Vec<Test<Bed>> {
    let needs = &[Ability::Functions, Ability::Records];
    vec![
        Test::new("models::requests and answers are as AWS's service models say", kept).needs(needs).last(),
        Test::new("models::functions that may run for minutes hold their messages", held).needs(needs).last(),
    ]
}

fn kept(bed: &Bed) -> Outcome {
    let stacks = [Some(&bed.stack), bed.second_if_made().map(|second| &second.stack)];
    let (mut checked, mut lines) = (0, vec![]);
    for stack in stacks.into_iter().flatten() {
        let told = bed.cloud.models(&stack.name())?;
        let list = |name: &str| told[name].as_array().cloned().unwrap_or_default();
        checked += list("checked").len();
        lines.extend(list("findings").iter().map(line));
    }
    ensure(checked > 0, || "nothing was checked with the service models".to_owned())?;
    ensure(lines.is_empty(), || lines.join("\n"))
}

/// Otherwise their messages wait for the queue's visibility timeout when they die.
fn held(bed: &Bed) -> Outcome {
    let stacks = [Some(&bed.stack), bed.second_if_made().map(|second| &second.stack)];
    let mut holders = BTreeSet::new();
    for stack in stacks.into_iter().flatten() {
        let told = bed.cloud.models(&stack.name())?;
        let checked = told["checked"].as_array().into_iter().flatten();
        let hold = checked.filter(|one| one["operation"] == "ChangeMessageVisibilityBatch");
        let named = hold.filter_map(|one| one["function"].as_str()?.strip_prefix(&format!("{}-", stack.name())).map(str::to_owned));
        holders.extend(named);
    }
    let missing: Vec<&str> = ["attempts", "deployers", "observer"].into_iter().filter(|one| !holders.contains(*one)).collect();
    ensure(missing.is_empty(), || format!("these did not: {missing:?}; {holders:?} did"))
}

fn line(finding: &Value) -> String {
    let text = |name: &str| finding[name].as_str().unwrap_or_default().to_owned();
    format!(
        "{} {} {} of {}, {}: {} ({} times)",
        text("service"),
        text("operation"),
        text("kind"),
        text("function"),
        if finding["path"] == "" { "as a whole".to_owned() } else { text("path") },
        text("what"),
        finding["count"]
    )
}
