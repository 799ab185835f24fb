//! One delivery as one line: where it is, what waits for whom and since when, what went wrong, and the command that would help.
//! Pure: the API's answer in, words out.

use crate::output::one_line;
use crate::words::{age, between, span, version};
use keelway_domain::time::Timestamp;
use keelway_wire::http::{ExecutionState, SequenceState, TaskState, Waits};

/// A trigger that has waited this long for an executor is worth a word; before, an executor may be about to answer.
const PATIENCE_MS: i64 = 15_000;
/// A task whose executor promises no heartbeat, and has said nothing for this long, is worth one, too.
const SILENT_MS: i64 = 3_600_000;

/// The state of a stage at a glance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    Pass,
    Warning,
    Fail,
    /// For a person.
    Held,
    /// For something else.
    Waits,
    Runs,
    Missed,
}

impl Mark {
    /// The character.
    pub fn sign(self, ascii: bool) -> &'static str {
        match (self, ascii) {
            (Self::Pass, false) => "✓",
            (Self::Pass, true) => "ok",
            (Self::Warning, _) => "!",
            (Self::Fail, false) => "✗",
            (Self::Fail, true) => "FAIL",
            (Self::Held, false) => "⏸",
            (Self::Held, true) => "||",
            (Self::Waits, false) => "…",
            (Self::Waits, true) => "..",
            (Self::Runs, false) => "▸",
            (Self::Runs, true) => ">",
            (Self::Missed, _) => "-",
        }
    }

    /// The number of its colour.
    pub fn colour(self) -> u8 {
        match self {
            Self::Pass => 32,
            Self::Warning | Self::Held => 33,
            Self::Fail => 31,
            Self::Runs => 36,
            Self::Waits | Self::Missed => 2,
        }
    }
}

/// One stage of a delivery, or a further sequence in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// The stage, or the sequence where the stage stands right before it.
    pub label: String,
    /// Its state.
    pub mark: Mark,
    /// What about it, without a time.
    pub what: String,
    /// How long it took, or how long that has been so.
    pub time: String,
}

/// What would help, and what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    /// The command.
    pub command: String,
    /// What it does.
    pub about: String,
}

/// A delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub service: String,
    pub version: String,
    /// The context, short.
    pub id: String,
    pub cells: Vec<Cell>,
    pub hints: Vec<Hint>,
}

impl Line {
    /// Without the times that go on: it changes only when something happens.
    pub fn still(&self) -> Self {
        let mut still = self.clone();
        for cell in &mut still.cells {
            match cell.mark {
                Mark::Waits if cell.time.is_empty() => {
                    cell.what = cell.what.split(" due in ").next().unwrap_or_default().to_owned()
                }
                Mark::Held | Mark::Waits | Mark::Runs => cell.time.clear(),
                Mark::Pass | Mark::Warning | Mark::Fail | Mark::Missed => {}
            }
        }
        still.hints.clear();
        still
    }
}

/// The line of a context; `id` is what stands for it, `now` the server's clock.
pub fn line(state: &SequenceState, id: &str, now: Option<Timestamp>) -> Line {
    let image = state.executions.iter().rev().find_map(|execution| execution.image.as_deref());
    let version = image.map(version).unwrap_or_default();
    let mut shown: Vec<&ExecutionState> = vec![];
    for execution in &state.executions {
        // The same again, by a later trigger, takes its place.
        match shown.iter_mut().find(|known| (&known.stage, &known.sequence) == (&execution.stage, &execution.sequence)) {
            Some(known) => *known = execution,
            None => shown.push(execution),
        }
    }
    let mut cells: Vec<Cell> = vec![];
    for (place, execution) in shown.iter().enumerate() {
        let before = place.checked_sub(1).map(|before| shown[before].stage.as_str());
        let label = match () {
            () if execution.sequence == state.name => execution.stage.clone(),
            () if before == Some(&execution.stage) => execution.sequence.clone(),
            () => format!("{}/{}", execution.stage, execution.sequence),
        };
        cells.push(cell(execution, label, now));
    }
    if state.executions.is_empty() {
        let time = age(&state.time, now);
        cells.push(Cell { label: state.name.clone(), mark: Mark::Waits, what: "triggered".into(), time });
    }
    cells.extend(missed(state));
    let subject = [state.service.as_str(), &version].join(" ").trim().to_owned();
    let hints = shown.iter().filter_map(|execution| hint(state, execution, (id, &subject), now)).collect();
    Line { service: state.service.clone(), version, id: id.to_owned(), cells, hints }
}

/// What an execution does, waits for, or how it ended; and a time to go with it.
pub fn about(execution: &ExecutionState, now: Option<Timestamp>) -> (Mark, String, String) {
    match &execution.waits {
        Some(waits) => open(execution, waits, now),
        None if execution.result.is_none() => (Mark::Runs, one_line(&execution.state, 40), String::new()),
        None => over(execution),
    }
}

fn cell(execution: &ExecutionState, label: String, now: Option<Timestamp>) -> Cell {
    let (mark, what, time) = about(execution, now);
    Cell { label: one_line(&label, 60), mark, what, time }
}

/// What an open execution does or waits for.
fn open(execution: &ExecutionState, waits: &Waits, now: Option<Timestamp>) -> (Mark, String, String) {
    let since = age(&waits.since, now);
    let task = waits.task.clone().unwrap_or_default();
    match waits.reason.as_str() {
        "lane" => {
            let behind = waits.behind.as_ref().map(|behind| {
                let version = behind.image.as_deref().map(version).unwrap_or_default();
                // Most wait for a delivery like their own; another sequence is named.
                let sequence = if behind.sequence == execution.sequence { "" } else { &behind.sequence };
                ["behind", &behind.service, &version, sequence]
                    .map(str::to_owned)
                    .into_iter()
                    .filter(|word| !word.is_empty())
                    .collect::<Vec<_>>()
                    .join(" ")
            });
            (Mark::Waits, behind.unwrap_or_else(|| "its turn".into()), since)
        }
        "window" => (Mark::Held, frozen(waits, now), since),
        "executor" if waits.answered_by.is_some() => {
            let by = one_line(waits.answered_by.as_deref().unwrap_or_default(), 40);
            let left = waits.until.as_deref().and_then(Timestamp::parse).zip(now).map(|(until, now)| span((until - now).0));
            let counts = left.map(|left| format!(", counts in {left}")).unwrap_or_default();
            (Mark::Waits, format!("{task}: {by} answered without .started{counts}"), since)
        }
        "executor" if is_long(waits, PATIENCE_MS, now) => (Mark::Waits, format!("{task}: no executor"), since),
        // Nobody has said that they work on it.
        "executor" => (Mark::Waits, task, since),
        "approval" => (Mark::Held, "approval".into(), since),
        "resume" => (Mark::Held, "paused".into(), since),
        "delay" => {
            let due = waits.until.as_deref().and_then(Timestamp::parse).zip(now).map(|(until, now)| span((until - now).0));
            (Mark::Waits, format!("{task} due in {}", due.unwrap_or_else(|| "a while".into())), String::new())
        }
        "answer" if is_overdue(waits, now) => {
            let from = waits.by.as_deref().map(|by| format!(" from {}", one_line(by, 30))).unwrap_or_default();
            (Mark::Waits, format!("{task}: nothing heard{from}"), age(last_heard(waits), now))
        }
        "answer" if waits.queued => {
            let at = waits.by.as_deref().map(|by| format!(" at {}", one_line(by, 30))).unwrap_or_default();
            (Mark::Waits, format!("{task}: waits for a place{at}"), since)
        }
        _ => {
            let by = waits.by.as_deref().map(|by| format!(" by {}", one_line(by, 30))).unwrap_or_default();
            (Mark::Runs, format!("{task}{by}"), since)
        }
    }
}

/// What keeps a stage closed, and for how long.
pub fn frozen(waits: &Waits, now: Option<Timestamp>) -> String {
    let left = waits.until.as_deref().and_then(Timestamp::parse).zip(now).map(|(until, now)| span((until - now).0));
    let why = waits.window.as_deref().map(|why| format!(": {}", one_line(why, 60))).unwrap_or_default();
    match left {
        Some(left) => format!("frozen for {left}{why}"),
        None => format!("frozen{why}"),
    }
}

fn is_long(waits: &Waits, patience: i64, now: Option<Timestamp>) -> bool {
    is_past(&waits.since, patience, now)
}

fn is_past(time: &str, patience: i64, now: Option<Timestamp>) -> bool {
    Timestamp::parse(time).zip(now).is_some_and(|(time, now)| (now - time).0 >= patience)
}

/// When somebody who works on a task was last heard from.
fn last_heard(waits: &Waits) -> &str {
    waits.heard.as_deref().unwrap_or(&waits.since)
}

/// Whether who works on a task has not said for too long that they do, as they promised.
fn is_overdue(waits: &Waits, now: Option<Timestamp>) -> bool {
    waits.expected.as_deref().is_some_and(|expected| is_past(expected, 0, now))
}

/// The same, or they have promised nothing, and are silent for longer than most tasks take.
fn is_silent(waits: &Waits, now: Option<Timestamp>) -> bool {
    match &waits.expected {
        Some(_) => is_overdue(waits, now),
        None => is_past(last_heard(waits), SILENT_MS, now),
    }
}

/// Of a task that was given up: that it may still run.
fn may_run(task: Option<&TaskState>) -> String {
    task.filter(|task| task.may_run.is_some()).map(|task| format!("; {} may still run", task.name)).unwrap_or_default()
}

/// How an execution ended.
fn over(execution: &ExecutionState) -> (Mark, String, String) {
    let time = between(execution.started_at.as_deref(), execution.finished_at.as_deref());
    let last = execution.tasks.last();
    let message = one_line(execution.message.as_deref().unwrap_or_default(), 160);
    let about = |task: Option<&TaskState>| match (task, message.as_str()) {
        (Some(task), "") => task.name.clone(),
        (Some(task), message) => format!("{}: {message}", task.name),
        (None, message) => message.to_owned(),
    };
    match (execution.state.as_str(), execution.result.as_deref()) {
        ("aborted", _) => {
            let what = if message.is_empty() { "aborted".into() } else { message };
            (Mark::Fail, what + &may_run(last), String::new())
        }
        ("timedOut", _) => {
            let what = late(last.filter(|task| task.state == "timedOut"), message);
            (Mark::Fail, what + &may_run(last), String::new())
        }
        (_, Some("pass")) => (Mark::Pass, String::new(), time),
        (_, Some("warning")) => {
            let task = execution.tasks.iter().rfind(|task| task.result.as_deref() == Some("warning"));
            (Mark::Warning, about(task), time)
        }
        _ => match last.filter(|task| task.name == "approval" && task.result.as_deref() == Some("fail")) {
            Some(task) => {
                let by = task.by.as_deref().map(|by| format!(" by {}", one_line(by, 40))).unwrap_or_default();
                let declined = format!("declined{by}");
                // The clock's message says that already.
                let message = message.strip_prefix(&format!("{declined}: ")).unwrap_or(&message);
                let why = if message.is_empty() { String::new() } else { format!(": {message}") };
                (Mark::Fail, format!("{declined}{why}"), String::new())
            }
            None => (Mark::Fail, about(last.filter(|task| task.result.is_some())), String::new()),
        },
    }
}

/// Why something is over without being done, in the API's words if it has some. `task`: the one that it ended at.
fn late(task: Option<&TaskState>, message: String) -> String {
    match task {
        // Keptn's words for this fill a line on their own.
        Some(task) if message.contains("to receive a correlating .started") => format!("{}: no executor in time", task.name),
        _ if !message.is_empty() => message,
        Some(task) if task.started_at.is_none() => format!("{}: no executor in time", task.name),
        Some(task) => format!("{}: not finished in time", task.name),
        None => "not done in time".into(),
    }
}

/// The stages that a result kept from being reached, once nothing can reach them any more.
fn missed(state: &SequenceState) -> Vec<Cell> {
    let Some(first) = state.not_reached.first().filter(|_| state.is_over()) else { return vec![] };
    let mut places: Vec<String> = vec![];
    for missed in &state.not_reached {
        // Of a stage that was reached, it is the sequence that was not.
        let reached = state.executions.iter().any(|execution| execution.stage == missed.stage);
        let place = if reached { format!("{}/{}", missed.stage, missed.sequence) } else { missed.stage.clone() };
        if !places.contains(&place) {
            places.push(place);
        }
    }
    let what = match first.after.result.as_str() {
        "warning" => format!("not reached: {} ended with warning", first.after.stage),
        _ => "not reached".to_owned(),
    };
    vec![Cell { label: places.join(", "), mark: Mark::Missed, what, time: String::new() }]
}

fn hint(state: &SequenceState, execution: &ExecutionState, (id, subject): (&str, &str), now: Option<Timestamp>) -> Option<Hint> {
    let hint = |command: String, about: String| Some(Hint { command, about });
    let (project, stage) = (&state.project, &execution.stage);
    match &execution.waits {
        Some(waits) if waits.reason == "approval" => {
            let open = state.executions.iter().filter(|x| x.waits.as_ref().is_some_and(|w| w.reason == "approval"));
            let which = match (open.clone().filter(|x| x.stage == *stage).count(), &waits.id) {
                (2.., Some(approval)) => format!(" --id {approval}"),
                _ if open.count() > 1 => format!(" --stage {stage}"),
                _ => String::new(),
            };
            // Of an approval after the deployment, it is there already.
            let deployed =
                |task: &TaskState| task.name == "deployment" && matches!(task.result.as_deref(), Some("pass" | "warning"));
            let word = if execution.tasks.iter().any(deployed) { "in" } else { "to" };
            hint(format!("keelway approve {id}{which}"), format!("{subject} {word} {stage}"))
        }
        Some(waits) if waits.reason == "window" => {
            hint(format!("keelway override {id} --stage {stage} -m WHY"), format!("{subject} waits until {stage} opens"))
        }
        Some(waits) if waits.reason == "resume" => {
            hint(format!("keelway resume {id} -p {project}"), format!("{subject} is paused in {stage}"))
        }
        Some(waits) if waits.reason == "answer" && is_silent(waits, now) => {
            let task = waits.task.as_deref().unwrap_or("a task");
            let silence = age(last_heard(waits), now);
            let about = format!("{subject}: nothing heard of {task} for {silence}{}", given_up(waits, now));
            hint(format!("keelway abort {id} -p {project} --stage {stage}"), about)
        }
        Some(waits) if waits.reason == "executor" && waits.answered_by.is_none() && is_long(waits, PATIENCE_MS, now) => {
            let task = waits.task.as_deref().unwrap_or("TASK");
            let until = given_up(waits, now);
            let command = format!("keelway executor --name NAME --on {task} -p {project} -- COMMAND");
            hint(command, format!("nobody answers for {subject} in {stage}{until}"))
        }
        _ => None,
    }
}

/// In how long the wait for an executor is given up.
fn given_up(waits: &Waits, now: Option<Timestamp>) -> String {
    let left = waits.until.as_deref().and_then(Timestamp::parse).zip(now).map(|(until, now)| span((until - now).0));
    left.map(|left| format!(", given up in {left}")).unwrap_or_default()
}

/// Whether everything in these contexts ended well: with `pass` or `warning`, and every stage was reached.
pub fn all_passed(states: &[SequenceState]) -> bool {
    let fine = |execution: &ExecutionState| matches!(execution.result.as_deref(), Some("pass" | "warning"));
    let passed =
        |state: &SequenceState| state.state == "finished" && state.not_reached.is_empty() && state.executions.iter().all(fine);
    !states.is_empty() && states.iter().all(passed)
}

mod aftermath;
#[cfg(test)]
mod histories;

pub use aftermath::aftermath;
