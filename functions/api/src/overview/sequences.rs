//! What executions of sequences wait for.

use super::wait::{FAILING, PERSON, Part, WAITING, is_long};
use crate::Api;
use crate::fence::problem::Answer;
use keelway_domain::access::Need;
use keelway_domain::names::ProjectName;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::views::OpenExecution;
use keelway_wire::http::{ExecutionState, WaitItem, Waits};

/// An executor that promises no heartbeat and says nothing for so long may be gone.
const SILENT: Span = Span::minutes(60);

/// What waits of the open executions.
pub(crate) async fn part(api: &Api, among: Option<&[ProjectName]>) -> Answer<Part> {
    let (open, cut) = api.engine().views().open(among).await?;
    let now = api.engine().now();
    Ok(Part { found: !open.is_empty(), items: open.into_iter().filter_map(|one| item(one, now)).collect(), cut })
}

fn item(one: OpenExecution, now: Timestamp) -> Option<WaitItem> {
    let x: ExecutionState = serde_json::from_value(one.shown).ok()?;
    let waits = x.waits.as_ref()?;
    let since = Timestamp::parse(&waits.since)?;
    let (group, message) = group(waits, since, now)?;
    let needs = match waits.reason.as_str() {
        // Who lets it through before the stage opens decides as approvers do.
        "approval" | "window" => Some(Need::Approve(&x.stage).to_string()),
        "resume" | "answer" | "lane" | "delay" => Some(Need::Trigger.to_string()),
        _ => None,
    };
    let waits = waits.clone();
    Some(WaitItem {
        group: group.into(),
        engine: "sequence".into(),
        reason: waits.reason,
        message,
        project: x.project,
        service: x.service,
        stage: x.stage,
        context: x.context,
        sequence: x.sequence,
        task: waits.task.unwrap_or_default(),
        id: waits.id.unwrap_or_default(),
        version: x.image,
        from: one.from,
        since: waits.since,
        until: waits.until,
        behind: waits.behind,
        window: waits.window,
        by: waits.by.unwrap_or_default(),
        heard: waits.heard,
        expected: waits.expected,
        queued: waits.queued,
        answered_by: waits.answered_by,
        needs,
        ..WaitItem::default()
    })
}

/// Whether the executor of a task has been silent for longer than it said that it would be, or than most tasks take.
fn is_silent(waits: &Waits, since: Timestamp, now: Timestamp) -> bool {
    let time = |text: &Option<String>| text.as_deref().and_then(Timestamp::parse);
    match time(&waits.expected) {
        Some(expected) => now >= expected,
        None => now - time(&waits.heard).unwrap_or(since) >= SILENT,
    }
}

/// What kind of wait it is, and a sentence where the reason does not say it all. `None`: it is at work.
fn group(waits: &Waits, since: Timestamp, now: Timestamp) -> Option<(&'static str, String)> {
    let task = waits.task.as_deref().unwrap_or_default();
    match waits.reason.as_str() {
        "approval" | "resume" => Some((PERSON, String::new())),
        "executor" => match &waits.answered_by {
            Some(by) => Some((FAILING, format!("{by} has answered {task} without .started"))),
            None => is_long(since, now).then(|| (FAILING, format!("no executor has answered {task}"))),
        },
        "answer" if is_silent(waits, since, now) => {
            Some((FAILING, format!("{task} has begun, and nothing is heard of it any more")))
        }
        "answer" => {
            let queued = waits.queued && is_long(since, now);
            queued.then(|| (WAITING, format!("{task} is claimed, and waits for a place at its executor")))
        }
        _ => Some((WAITING, String::new())),
    }
}
