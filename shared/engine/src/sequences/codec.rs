//! Executions and contexts as items: the one place that knows the attributes' short names.
//!
//! A writer sets and removes only what differs between two states it knows, so attributes added by a newer version survive.

mod contexts;

pub use contexts::{LoadedContext, closed_context, context, count_executions, new_context, prolong_context, update_context};

use super::keys;
use super::message::Address;
use crate::item::{Attr, Attrs, Item, Name};
use crate::ports::{Condition, PortError, Write};
use keelway_domain::event::{Status, TaskResult};
use keelway_domain::ids::{ExecutionId, RecordHash, RecordId};
use keelway_domain::names::{Context, ProjectName, ServiceName, TaskName};
use keelway_domain::sequences::{
    Class, Deployed, End, EventRef, Execution, First, Lane, Outcome, Reaction, ReactionKind, TaskTimes, View,
};
use keelway_domain::time::Timestamp;

/// The format number of contexts and lanes written here; a function that meets a higher one leaves the message to newer code.
pub const FORMAT: i64 = 1;
/// The format number of executions. Since 2, their records may be packed, and have the answer that completed a task.
pub const EXECUTIONS: i64 = 2;
/// The longest message kept for the views, in characters; the event has all of it.
const MAX_MESSAGE: usize = 160;

fn broken(item: &Item, what: &str) -> PortError {
    PortError::Refused { request: "decode", reason: format!("item {} has no usable {what}", item.key) }
}

/// Reads an execution whose format is known.
///
/// # Errors
/// [`PortError::Refused`] for an item without what every execution has.
pub fn execution(item: &Item) -> Result<Execution, PortError> {
    let (project, context) = scope_of(&item.key.pk).ok_or_else(|| broken(item, "partition"))?;
    let id = item.key.sk.strip_prefix(keys::EXECUTION).and_then(ExecutionId::parse).ok_or_else(|| broken(item, "sort key"))?;
    let text = |name: &str| item.text(name).map(str::to_owned);
    let time = |name: &str| item.number(name).map(Timestamp);
    let small = |name: &str| item.number(name).and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
    let task = u16::try_from(small("k")).map_err(|_| broken(item, "k"))?;
    let outcome =
        item.text("en").map(|text| outcome(text, time("et").unwrap_or_default()).ok_or_else(|| broken(item, "en"))).transpose()?;
    let record = item.text("th").and_then(|text| {
        let (number, hash) = text.split_once('#')?;
        Some(RecordId { subject: id, number: number.parse().ok()?, hash: RecordHash::parse(hash)? })
    });
    Ok(Execution {
        id,
        project,
        context,
        stage: text("sg").unwrap_or_default(),
        service: text("sv").and_then(|name| ServiceName::new(name).ok()).ok_or_else(|| broken(item, "sv"))?,
        sequence: text("sq").unwrap_or_default(),
        revision: text("df").unwrap_or_default(),
        git_commit_id: text("gc"),
        authors: stored(item, "au").unwrap_or_default(),
        trigger_id: text("ti").unwrap_or_default(),
        accepted: time("ac").unwrap_or_default(),
        caused: time("bo").or(time("ac")).unwrap_or_default(),
        class: if item.number("cl") == Some(0) { Class::FollowUp } else { Class::Outside },
        place: u16::try_from(small("pn")).unwrap_or(0),
        supersede: item.flag("su"),
        parent: item.text("pr").and_then(ExecutionId::parse),
        epoch: small("ep"),
        payload: text("pl").unwrap_or_default(),
        lane: match item.text("ky") {
            Some("h") => Lane::Holds,
            Some("w") => Lane::Wants,
            _ => Lane::None,
        },
        ask: small("q"),
        paused: item.flag("pz"),
        held: stored(item, "hd"),
        task,
        open: open_task(item).and_then(|task| TaskName::new(task).ok()),
        record,
        sent: time("tt"),
        due: time("du"),
        began: time("st"),
        paused_at: time("pt"),
        reactions: reactions(item.bytes("r")),
        bare: stored(item, "s").unwrap_or_default(),
        quick: item.flag("fs"),
        listed: item.text("gs1").is_some(),
        results: item.text("rs").unwrap_or_default().chars().map(result).collect(),
        repeated: item.text("rp").and_then(ExecutionId::parse).map(|cause| cause.0),
        wake: time("w"),
        armed_by: item.text("wb").and_then(ExecutionId::parse).map(|cause| cause.0),
        outcome,
        view: View {
            image: text("im"),
            latest: item.text("le").and_then(event_ref),
            latest_failed: item.text("lf").and_then(event_ref),
            evaluation: item.text("ev").and_then(|text| {
                let (first, score) = text.split_once('|')?;
                Some((result(first.chars().next()?), score.to_owned()))
            }),
            problem: text("pb"),
            times: times(item.bytes("tm")),
            message: text("mg"),
            decided: item.text("by").and_then(|text| {
                let (task, by) = text.split_once('|')?;
                Some((task.parse().ok()?, by.to_owned()))
            }),
            overridden: stored(item, "ov"),
            deployed: deployed(item, "dv"),
            answered: text("fi"),
            left: small("lt"),
        },
    })
}

/// An attribute that holds JSON.
fn stored<T: serde::de::DeserializeOwned>(item: &Item, name: &str) -> Option<T> {
    item.text(name).and_then(|text| serde_json::from_str(text).ok())
}

fn scope_of(partition: &str) -> Option<(ProjectName, Context)> {
    let (project, context) = partition.strip_prefix(keys::CONTEXTS.begins)?.split_once('#')?;
    Some((ProjectName::new(project).ok()?, Context::new(context).ok()?))
}

/// The attributes of an execution. `expires`: when an ended one may be removed.
pub fn attributes(x: &Execution, expires: Timestamp) -> Attrs {
    let item = Item::new(keys::execution(&Address::of(x)))
        .with("sg", x.stage.as_str())
        .with("sv", x.service.as_str())
        .with("sq", x.sequence.as_str())
        .with("df", x.revision.as_str())
        .with_some("gc", x.git_commit_id.as_deref())
        .with_some("au", (!x.authors.is_empty()).then(|| serde_json::json!(x.authors).to_string()))
        .with("ti", x.trigger_id.as_str())
        .with("ac", x.accepted.0)
        .with_some("bo", Some(x.caused.0).filter(|caused| *caused != x.accepted.0))
        .with("cl", if x.class == Class::FollowUp { 0 } else { 1 })
        .with_some("pn", (x.place > 0).then_some(i64::from(x.place)))
        .with_some("su", x.supersede.then_some(true))
        .with_some("pr", x.parent.map(|id| id.to_string()))
        .with("ep", i64::from(x.epoch))
        .with("pl", x.payload.as_str())
        .with("ky", lane(x.lane))
        .with("q", i64::from(x.ask))
        .with_some("pz", x.paused.then_some(true))
        .with_some("hd", x.held.as_ref().map(|held| serde_json::json!(held).to_string()))
        .with("k", i64::from(x.task))
        .with_some("th", x.record.map(|id| record_name(&id)))
        .with_some("tt", x.sent.map(|t| t.0))
        .with_some("du", x.due.map(|t| t.0))
        .with_some("st", x.began.map(|t| t.0))
        .with_some("pt", x.paused_at.map(|t| t.0))
        .with_some("r", (!x.reactions.is_empty()).then(|| encode_reactions(&x.reactions)))
        .with_some("s", (!x.bare.is_empty()).then(|| serde_json::json!(x.bare).to_string()))
        .with_some("fs", x.quick.then_some(true))
        .with_some("rs", (!x.results.is_empty()).then(|| x.results.iter().map(|r| letter(*r)).collect::<String>()))
        .with_some("rp", x.repeated.map(keys::hash))
        .with_some("w", x.wake.map(|t| t.0))
        .with_some("wb", x.armed_by.map(keys::hash))
        .with_some("im", x.view.image.as_deref().map(|image| shorten(image, 200)))
        .with_some("le", x.view.latest.as_ref().map(encode_ref))
        .with_some("lf", x.view.latest_failed.as_ref().map(encode_ref))
        .with_some("ev", x.view.evaluation.as_ref().map(|(r, score)| format!("{}|{}", letter(*r), shorten(score, 32))))
        .with_some("pb", x.view.problem.as_deref().map(|title| shorten(title, 100)))
        .with_some("tm", (!x.view.times.is_empty()).then(|| encode_times(&x.view.times)))
        .with_some("mg", x.view.message.as_deref().map(|message| shorten(message, MAX_MESSAGE)))
        .with_some("by", x.view.decided.as_ref().map(|(task, by)| format!("{task}|{}", shorten(by, 100))))
        .with_some("ov", x.view.overridden.as_ref().map(|given| serde_json::json!(given).to_string()))
        .with_some("dv", x.view.deployed.as_ref().map(encode_deployed))
        .with_some("fi", x.view.answered.as_deref().map(|source| shorten(source, 100)))
        .with_some("lt", (x.view.left > 0).then_some(i64::from(x.view.left)));
    let open = x.open.as_ref().zip(x.sent).zip(x.record);
    let item = match (x.outcome, open) {
        (Some(outcome), _) => item.with("en", encode_outcome(outcome)).with("et", outcome.at.0).with("ttl", expires.0 / 1000),
        (None, Some(((task, sent), record))) => {
            // Without the second key, it is not in the index.
            let sort = x.listed.then(|| keys::open_task_sort(x, sent, &record));
            item.with("gp1", keys::open_tasks(&x.project, task.as_str())).with_some("gs1", sort)
        }
        (None, None) => item,
    };
    item.attrs
}

/// The write that absorbs the first `.started` of an open task without a read of the execution: its condition names everything that
/// the decision would have read. If the condition does not hold, the usual path decides.
pub fn first_started(to: &Address, trigger: &RecordId, (task, stage, service): (&str, &str, &str), first: &First) -> Write {
    let named = |name: &'static str, value: String| (Name::Borrowed(name), Attr::S(value));
    let equal = Attrs::from([
        named("th", record_name(trigger)),
        named("gp1", keys::open_tasks(&to.project, task)),
        named("sg", stage.to_owned()),
        named("sv", service.to_owned()),
        (Name::Borrowed("fs"), Attr::Flag(true)),
    ]);
    let set = Attrs::from([
        (Name::Borrowed("r"), Attr::B(encode_reactions(std::slice::from_ref(&first.reaction)))),
        named("s", serde_json::json!([first.bare]).to_string()),
        named("le", encode_ref(&first.latest)),
    ]);
    let absent = vec![Name::Borrowed("r")];
    let condition = Condition::Match { equal, absent };
    Write::Update { key: keys::execution(to), condition, set, remove: vec![Name::Borrowed("fs")], raise: true }
}

/// Whether the first `.started` of an execution's task may be [one write](first_started).
pub fn awaits_first(execution: &Item) -> bool {
    execution.attrs.contains_key("fs")
}

/// That the execution waits for this task.
pub fn waits_for(to: &Address, trigger: &RecordId, task: &str) -> Condition {
    let named = |name: &'static str, value: String| (Name::Borrowed(name), Attr::S(value));
    let equal = Attrs::from([named("th", record_name(trigger)), named("gp1", keys::open_tasks(&to.project, task))]);
    Condition::Match { equal, absent: vec![] }
}

fn record_name(id: &RecordId) -> String {
    format!("{}#{}", id.number, id.hash)
}

pub(super) fn shorten(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

/// The name of the open task, from the index entry.
pub fn open_task(item: &Item) -> Option<&str> {
    item.text("gp1").and_then(|partition| partition.rsplit('#').next())
}

fn lane(lane: Lane) -> &'static str {
    match lane {
        Lane::Holds => "h",
        Lane::Wants => "w",
        Lane::None => "n",
    }
}

fn letter(result: TaskResult) -> char {
    match result {
        TaskResult::Pass => 'p',
        TaskResult::Warning => 'w',
        TaskResult::Fail => 'f',
    }
}

fn result(letter: char) -> TaskResult {
    match letter {
        'p' => TaskResult::Pass,
        'w' => TaskResult::Warning,
        _ => TaskResult::Fail,
    }
}

fn status_letter(status: Status) -> char {
    match status {
        Status::Succeeded => 's',
        Status::Errored => 'e',
        Status::Aborted => 'a',
        Status::Unknown => 'u',
    }
}

fn status(letter: char) -> Status {
    match letter {
        's' => Status::Succeeded,
        'e' => Status::Errored,
        'a' => Status::Aborted,
        _ => Status::Unknown,
    }
}

pub(super) fn encode_outcome(outcome: Outcome) -> String {
    let end = match outcome.end {
        End::Normal => 'n',
        End::TimedOut => 't',
        End::Aborted => 'a',
        End::NeverStarted => 'x',
    };
    [end, letter(outcome.result), status_letter(outcome.status)].into_iter().collect()
}

pub(super) fn outcome(text: &str, at: Timestamp) -> Option<Outcome> {
    let mut letters = text.chars();
    let end = match letters.next()? {
        'n' => End::Normal,
        't' => End::TimedOut,
        'a' => End::Aborted,
        'x' => End::NeverStarted,
        _ => return None,
    };
    Some(Outcome { end, result: result(letters.next()?), status: status(letters.next()?), at })
}

fn encode_ref(event: &EventRef) -> String {
    format!("{}|{}|{}", event.time.0, shorten(&event.ty, 110), shorten(&event.id, 64))
}

fn event_ref(text: &str) -> Option<EventRef> {
    let mut parts = text.splitn(3, '|');
    let time = Timestamp(parts.next()?.parse().ok()?);
    Some(EventRef { time, ty: parts.next()?.to_owned(), id: parts.next()?.to_owned() })
}

/// What a stage runs, as `<since>|<image>`.
pub(super) fn encode_deployed(deployed: &Deployed) -> String {
    format!("{}|{}", deployed.at.0, shorten(deployed.image.as_deref().unwrap_or_default(), 200))
}

/// Reads what [`encode_deployed`] has written.
pub(super) fn deployed(item: &Item, name: &str) -> Option<Deployed> {
    let (at, image) = item.text(name)?.split_once('|')?;
    Some(Deployed { image: (!image.is_empty()).then(|| image.to_owned()), at: Timestamp(at.parse().ok()?) })
}

/// A task's times, 6 bytes each.
const TIMES: usize = 18;

fn encode_times(times: &[TaskTimes]) -> Vec<u8> {
    let each = times.iter().flat_map(|times| [times.sent, times.started, times.done]);
    each.flat_map(|time| time.0.to_be_bytes().into_iter().skip(2)).collect()
}

fn times(bytes: &[u8]) -> Vec<TaskTimes> {
    let time = |bytes: &[u8]| Timestamp(bytes.iter().fold(0, |n, b| n << 8 | i64::from(*b)));
    let one = |chunk: &[u8]| TaskTimes { sent: time(&chunk[..6]), started: time(&chunk[6..12]), done: time(&chunk[12..]) };
    bytes.chunks_exact(TIMES).map(one).collect()
}

/// One reaction: kind, result, status and data flag in a byte, then identity, content and acceptance time.
const REACTION: usize = 1 + 8 + 8 + 6;

fn encode_reactions(reactions: &[Reaction]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(reactions.len() * REACTION);
    for reaction in reactions {
        let kind = u8::from(reaction.kind == ReactionKind::Finished);
        let result = reaction.result as u8;
        let status = reaction.status as u8;
        bytes.push(kind | result << 1 | status << 3 | u8::from(reaction.has_data) << 5);
        bytes.extend(reaction.identity.to_be_bytes());
        bytes.extend(reaction.content.to_be_bytes());
        bytes.extend(&reaction.at.0.to_be_bytes()[2..]);
    }
    bytes
}

fn reactions(bytes: &[u8]) -> Vec<Reaction> {
    let number = |bytes: &[u8]| bytes.iter().fold(0u64, |n, b| n << 8 | u64::from(*b));
    let one = |chunk: &[u8]| Reaction {
        kind: if chunk[0] & 1 == 1 { ReactionKind::Finished } else { ReactionKind::Started },
        result: [TaskResult::Pass, TaskResult::Warning, TaskResult::Fail, TaskResult::Fail][usize::from(chunk[0] >> 1 & 3)],
        status: [Status::Succeeded, Status::Errored, Status::Aborted, Status::Unknown][usize::from(chunk[0] >> 3 & 3)],
        has_data: chunk[0] >> 5 & 1 == 1,
        identity: number(&chunk[1..9]),
        content: number(&chunk[9..17]),
        at: Timestamp(number(&chunk[17..23]) as i64),
    };
    bytes.chunks_exact(REACTION).map(one).collect()
}
