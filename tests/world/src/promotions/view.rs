//! A pipeline as cases see it.

use keelway_domain::promotions::{Environment, Evaluation, Made, Past, Pipeline, Promotion};
use serde_json::{Value, json};

/// `revision`, `run`, `reason`, `message`, `suspended`, `abandoned`, `deleted`, `environments` by name (see below), and `history`:
/// `<environment> <revision> <phase> <reason>` of each closed promotion, oldest first.
///
/// An environment has `hold`, `closing` (how many pull requests) and `evaluation` (`asked`, which time, or its result, and in both
/// cases how long the window is), and of its promotion `phase`, `reason`, `message`, `revision`,
/// `run`, `attempt`, `again`, `approvals` (by whom), `completed`, `pullRequest` (its number), `url` and `mergeable`.
pub fn view(x: &Pipeline, history: &[Past]) -> Value {
    let line = |past: &Past| {
        let promotion = &past.promotion;
        let phase = word(&promotion.phase);
        format!("{} {} {phase} {}", past.environment, promotion.revision, promotion.why.reason).trim_end().to_owned()
    };
    json!({
        "revision": x.run.as_ref().map(|run| &run.revision),
        "run": x.run.as_ref().map(|run| run.number),
        "reason": x.condition.reason,
        "message": x.condition.message,
        "suspended": x.suspended.is_some(),
        "abandoned": x.abandoned,
        "deleted": x.deleted,
        "environments": x.environments.iter().map(|(name, state)| (name.clone(), environment(state))).collect::<serde_json::Map<_, _>>(),
        "history": history.iter().map(line).collect::<Vec<_>>(),
    })
}

fn environment(state: &Environment) -> Value {
    let mut view = state.promotion.as_ref().map_or(json!({"phase": "none"}), promotion);
    view["closing"] = state.closing.len().into();
    view["evaluation"] = state.evaluation.as_ref().map(evaluation).into();
    view["hold"] = state.hold.as_ref().map(|(revision, _)| revision.as_str()).into();
    view
}

fn evaluation(of: &Evaluation) -> String {
    let window = of.period.end - of.period.start;
    match &of.answer {
        Some(answer) => format!("{} {window}", answer.result.as_str()),
        None => format!("asked {} {window}", of.times),
    }
}

fn promotion(promotion: &Promotion) -> Value {
    let mut view = json!({
        "phase": promotion.phase,
        "reason": promotion.why.reason,
        "message": promotion.why.message,
        "revision": promotion.revision,
        "run": promotion.run,
        "attempt": promotion.attempt,
        "again": promotion.again,
        "attempted": promotion.attempted.is_some(),
        "approvals": promotion.approvals.iter().map(|note| note.by.as_str()).collect::<Vec<_>>(),
        "completed": promotion.completed,
    });
    if let Some(Made::PullRequest { number, url, mergeable, .. }) = &promotion.effect {
        view["pullRequest"] = (*number).into();
        view["url"] = url.as_str().into();
        view["mergeable"] = (*mergeable).into();
    }
    view
}

fn word(phase: &keelway_domain::promotions::Phase) -> String {
    serde_json::to_value(phase).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
