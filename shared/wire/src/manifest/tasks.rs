//! The tasks of a sequence.

use super::finding::Report;
use super::levels::{self, shipyards};
use super::named::{checked, entry, name_of};
use super::names::nearest;
use super::tree::Node;
use super::values::{duration, flag, mapping, positive, timeout};
use keelway_domain::names::TaskName;
use keelway_domain::sequences::SEPARATE;
use keelway_domain::shipyard::{APPROVAL, EVALUATION, MAX_TASKS, Task};

/// The tasks of a sequence; `None` when one is refused.
pub fn read(sequence: &Node, path: &str, report: &mut Report) -> Option<Vec<Task>> {
    let Some(list) = sequence.get("tasks").filter(|list| !list.is_null()) else {
        let at = sequence.get("tasks").unwrap_or(sequence);
        report.error(
            at,
            path,
            "is missing: a sequence needs at least one task, `- name: deployment` in a list under `tasks:`".into(),
        );
        return None;
    };
    let items = levels::items(list, path, &shipyards::TASK, report)?;
    if items.is_empty() {
        report.error(list, path, "is empty: a sequence needs at least one task, `- name: deployment`".into());
        return None;
    }
    if items.len() > MAX_TASKS {
        report.error(
            list,
            path,
            format!("has {} tasks: at most {MAX_TASKS} are allowed, divide them among sequences", items.len()),
        );
        return None;
    }
    let tasks = items.into_iter().enumerate().map(|(i, item)| task(item, &format!("{path}[{i}]"), report));
    // Every task is read before the first refused one decides.
    tasks.collect::<Vec<_>>().into_iter().collect()
}

fn task(node: &Node, path: &str, report: &mut Report) -> Option<Task> {
    entry(node, &shipyards::TASK, path, report)?;
    levels::check(node, &shipyards::TASK, path, report);
    let written = name_of(node, &shipyards::TASK, path, report);
    let name = written.and_then(|name| checked(node, name, TaskName::new, (false, "-_"), path, report));
    let properties = mapping(node, "properties", &format!("{path}.properties"), report);
    match written {
        Some(APPROVAL) => approval(node, properties, path, report),
        Some(EVALUATION) => evaluation(node, properties, path, report),
        _ => (),
    }
    let timeout = match written {
        // A person may take for ever: `0` says so.
        Some(APPROVAL) => duration(node, "timeout", path, report),
        _ => timeout(node, "timeout", path, report),
    };
    Some(Task {
        triggered_after: duration(node, "triggeredAfter", path, report),
        properties: properties.map(Node::to_object).unwrap_or_default(),
        start_deadline: positive(node, "startDeadline", path, report),
        timeout,
        name: name?,
    })
}

fn approval(task: &Node, properties: Option<&Node>, path: &str, report: &mut Report) {
    let given = |key: &str| properties.and_then(|properties| properties.get(key));
    for key in ["pass", "warning"] {
        let Some(value) = given(key) else { continue };
        let text = value.scalar().unwrap_or_default();
        if !matches!(text, "automatic" | "manual") {
            let meant = nearest(text, ["automatic", "manual"]).map_or("`automatic` or `manual`".into(), |near| format!("`{near}`"));
            let message = format!("{text:?} is not an approval strategy: write {meant}");
            report.error(value, format!("{path}.properties.{key}"), message);
        }
    }
    if let (Some(node), Some(value)) = (properties, given(SEPARATE)) {
        let separate = flag(node, SEPARATE, &format!("{path}.properties"), report);
        if separate && ["pass", "warning"].iter().all(|key| given(key).and_then(Node::scalar) != Some("manual")) {
            let message = "says who may not approve, and nobody is asked: write `pass: manual` beside it";
            report.warning(value, format!("{path}.properties.{SEPARATE}"), message.into());
        }
    }
    if given("pass").is_none() && given("warning").is_none() {
        let message = "has no strategy, so nobody is asked (Keptn asked): write `pass: manual` and `warning: manual` under `properties`, or `automatic` to say so";
        report.warning(task, path, message.into());
    }
}

fn evaluation(task: &Node, properties: Option<&Node>, path: &str, report: &mut Report) {
    let given = |key: &str| properties.and_then(|properties| properties.get(key));
    if let Some(properties) = properties {
        positive(properties, "timeframe", &format!("{path}.properties"), report);
    }
    if ["timeframe", "start", "end"].iter().all(|key| given(key).is_none()) {
        let message = "names no timeframe: unless the trigger or an earlier task gives one, the last 5 minutes are evaluated; write `timeframe: 5m` under `properties`";
        report.warning(task, path, message.into());
    }
}
