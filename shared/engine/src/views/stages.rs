//! What the executions of a context add up to: its phase, and its stages with their newest events.

use super::execution::Shown;
use keelway_domain::event::PREFIX;
use keelway_domain::ids::event_id;
use keelway_domain::sequences::{End, EventRef, Execution, Phase};
use serde_json::{Value, json};

/// Keptn's clients know no state of their own for a sequence that waits for a person.
pub(super) fn in_keptns_words(phase: &str) -> &str {
    if phase == "waitingForApproval" { "started" } else { phase }
}

/// The overall phase: that of the most active open execution, otherwise how the newest trigger's executions ended, the worst first.
pub(super) fn overall(shown: &[Shown]) -> &'static str {
    let any = |phases: &[Phase]| shown.iter().any(|one| phases.contains(&one.phase()));
    if any(&[Phase::Running, Phase::RunningQueued, Phase::Delayed]) {
        return "started";
    }
    if any(&[Phase::Paused, Phase::PausedRunning, Phase::PausedWaitingForApproval]) {
        return "paused";
    }
    if any(&[Phase::WaitingForApproval]) {
        return "waitingForApproval";
    }
    if any(&[Phase::Queued, Phase::Frozen]) {
        return "waiting";
    }
    let newest = shown.iter().map(|one| one.x.accepted).max();
    let ends: Vec<End> =
        shown.iter().filter(|one| Some(one.x.accepted) == newest).filter_map(|one| one.x.outcome.map(|o| o.end)).collect();
    match () {
        // Its executions have expired, and only ended executions expire.
        () if ends.is_empty() => "finished",
        () if ends.contains(&End::Aborted) => "aborted",
        () if ends.contains(&End::TimedOut) => "timedOut",
        () => "finished",
    }
}

/// One entry per stage, in the order the context reached them: the state of the newest open execution, or of the newest, and the
/// newest of everything else.
pub(super) fn stages(shown: &[Shown]) -> Vec<Value> {
    let mut names: Vec<&str> = vec![];
    for one in shown {
        if !names.contains(&one.x.stage.as_str()) {
            names.push(&one.x.stage);
        }
    }
    let stage = |name: &&str| {
        let of_stage = || shown.iter().rev().filter(|one| one.x.stage == **name);
        let newest = of_stage().find(|one| one.x.outcome.is_none()).or_else(|| of_stage().next())?;
        let newest_first = || std::iter::once(newest).chain(of_stage().filter(|one| one.x.id != newest.x.id));
        let evaluation = newest_first().find_map(|one| one.x.view.evaluation.clone());
        let score = |text: &str| serde_json::from_str::<Value>(text).unwrap_or(Value::Null);
        let failed = newest_first().find_map(|one| one.x.view.latest_failed.clone().map(|event| (one, event)));
        let mut stage = json!({
            "name": name,
            "state": in_keptns_words(phase_of_stage(newest)),
            "phase": phase_of_stage(newest),
            "latestEvent": latest(&newest.x),
            "latestFailedEvent": failed.map(|(one, event)| reference(&one.x, &event)),
        });
        if let Some(image) = newest_first().find_map(|one| one.x.view.image.clone()) {
            stage["image"] = json!(image);
        }
        if let Some((result, text)) = evaluation {
            stage["latestEvaluation"] = json!({"result": result.as_str(), "score": score(&text)});
        }
        Some(stage)
    };
    names.iter().filter_map(stage).collect()
}

/// A stage's phase: the activity of an open execution, or the status of an ended one.
fn phase_of_stage(newest: &Shown) -> &'static str {
    match (newest.x.outcome, newest.phase()) {
        (Some(outcome), _) => outcome.status.as_str(),
        (None, Phase::Queued | Phase::Frozen) => "waiting",
        (None, Phase::WaitingForApproval) => "waitingForApproval",
        (None, Phase::Paused | Phase::PausedRunning | Phase::PausedWaitingForApproval) => "paused",
        (None, _) => "triggered",
    }
}

fn latest(x: &Execution) -> Option<Value> {
    match x.outcome {
        Some(outcome) => Some(json!({
            "type": x.event_type(keelway_domain::event::Kind::Finished),
            "id": event_id(x.id, "finished").to_string(),
            "time": outcome.at.rfc3339(),
        })),
        None => x.view.latest.as_ref().map(|event| reference(x, event)),
    }
}

/// The ids of events that a commit itself sends are not stored with the reference: they are derived from the execution.
fn reference(x: &Execution, event: &EventRef) -> Value {
    let id = match (event.id.as_str(), event.ty.as_str(), x.record) {
        ("", "approval.started", _) => event_id(x.id, &format!("approval-{}-started", x.task)).to_string(),
        ("", _, Some(record)) => record.uuid().to_string(),
        (id, _, _) => id.to_owned(),
    };
    json!({"type": format!("{PREFIX}{}", event.ty), "id": id, "time": event.time.rfc3339()})
}
