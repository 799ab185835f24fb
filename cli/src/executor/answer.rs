//! What an executor tells about a task: the events, and how a command's end becomes a result. Pure.
//!
//! Ids follow from the executor's name and the trigger, so that replicas of one name, and a second run after a crash, tell the
//! same event and count once.

use super::data;
use crate::words::length;
use keelway_domain::event::{CloudEvent, EventType, Kind, Object, Status, TaskResult};
use keelway_domain::time::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;

/// The longest message, in bytes of UTF-8.
pub const MAX_MESSAGE: usize = 1024;
/// The most a command may write to standard output, in bytes: an event is at most 240 KB and holds other data, too.
pub const MAX_STDOUT: usize = 200 * 1024;
/// The exit code that means `warning`.
const WARNING: i32 = 3;
/// What shells exit with when a command cannot be run, or is not found.
const NO_COMMAND: [i32; 2] = [126, 127];

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// By itself.
    Code(i32),
    /// By a signal not of ours.
    Signal(i32),
    /// It took longer than allowed and was ended.
    TimedOut(Duration),
    /// It wrote more than [`MAX_STDOUT`] and was ended.
    TooMuch,
    /// It did not start.
    NotStarted(String),
}

/// A command's end and what it wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// How it ended.
    pub ended: Ended,
    /// All of its standard output.
    pub stdout: Vec<u8>,
    /// The end of its standard error.
    pub stderr: Vec<u8>,
}

/// The id of an event about a trigger: the same for every replica and attempt.
pub fn id(name: &str, trigger: &CloudEvent, kind: Kind) -> String {
    let text = format!("keelway/executor/{}/{name}/{}/{}", name.len(), trigger.id, kind.as_str());
    Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes()).to_string()
}

/// What an executor says of itself while it has a task.
#[derive(Debug, Clone, Copy, Default)]
pub struct Alive {
    /// How often it says that it lives.
    pub heartbeat: Option<Duration>,
    /// Whether the command waits for a place.
    pub queued: bool,
}

impl Alive {
    fn insert(self, data: &mut Object) {
        if let Some(every) = self.heartbeat {
            data.insert("heartbeat".into(), json!(span(every)));
        }
        if self.queued {
            data.insert("queued".into(), json!(true));
        }
    }
}

/// A length as the API reads it, with one unit.
fn span(length: Duration) -> String {
    match (length.as_millis(), length.as_secs()) {
        (millis, _) if millis % 1000 > 0 => format!("{millis}ms"),
        (_, seconds) if seconds % 60 > 0 => format!("{seconds}s"),
        (_, seconds) => format!("{}m", seconds / 60),
    }
}

/// `<task>.started`. It is short, because Keelway stores a short one at no further cost.
pub fn started(name: &str, task: &str, trigger: &CloudEvent, now: Timestamp, alive: Alive) -> Value {
    let mut data = common(trigger);
    data.insert("status".into(), json!(Status::Succeeded.as_str()));
    alive.insert(&mut data);
    event(name, task, trigger, Kind::Started, now, data)
}

/// `<task>.finished`
pub fn finished(name: &str, task: &str, trigger: &CloudEvent, now: Timestamp, run: &Run) -> Value {
    let (result, status, why) = verdict(&run.ended);
    let own = data::read(&run.stdout).ok();
    let said = match (tail(&run.stderr), &own) {
        (said, None) if said.is_empty() => tail(&run.stdout),
        (said, _) => said,
    };
    // A plain exit code says less than the command itself.
    let why = why.filter(|_| said.is_empty() || status != Status::Succeeded);
    let parts = [warning(run), why, Some(said).filter(|said| !said.is_empty())];
    let message = joined(&parts.into_iter().flatten().collect::<Vec<_>>());
    let mut data = common(trigger);
    data.insert("status".into(), json!(status.as_str()));
    data.insert("result".into(), json!(result.as_str()));
    data.insert("message".into(), json!(message));
    if let Some(own) = own {
        data.insert(task.to_owned(), Value::Object(own));
    }
    event(name, task, trigger, Kind::Finished, now, data)
}

/// What to tell about an output that was probably meant as data and is none, of a command that ended by itself.
pub fn warning(run: &Run) -> Option<String> {
    matches!(run.ended, Ended::Code(_)).then(|| data::read(&run.stdout).err().flatten()).flatten()
}

/// `<task>.status.changed`: not derived from the trigger alone, because each says something about its own moment and process.
pub fn status_changed(name: &str, task: &str, trigger: &CloudEvent, now: Timestamp, (message, alive): (&str, Alive)) -> Value {
    let mut data = common(trigger);
    alive.insert(&mut data);
    data.insert("status".into(), json!(Status::Succeeded.as_str()));
    data.insert("message".into(), json!(message));
    let mut event = event(name, task, trigger, Kind::StatusChanged, now, data);
    event["id"] = json!(Uuid::now_v7().to_string());
    event
}

/// `<task>.finished` in place of one the API refused: the sequence must not wait for an answer that cannot be given.
pub fn unanswerable(name: &str, task: &str, trigger: &CloudEvent, now: Timestamp, refusal: &str) -> Value {
    let run =
        Run { ended: Ended::NotStarted(format!("the executor's answer was refused: {refusal}")), stdout: vec![], stderr: vec![] };
    finished(name, task, trigger, now, &run)
}

fn common(trigger: &CloudEvent) -> Object {
    // Labels of a sequence's end are those of the last answer, so they are handed on.
    let fields = ["project", "stage", "service", "labels"];
    fields.iter().filter_map(|field| Some(((*field).to_owned(), trigger.data.get(*field)?.clone()))).collect()
}

fn event(name: &str, task: &str, trigger: &CloudEvent, kind: Kind, now: Timestamp, data: Object) -> Value {
    let event = CloudEvent {
        id: id(name, trigger, kind),
        source: name.to_owned(),
        ty: EventType::task(task, kind),
        time: now,
        context: trigger.context.clone(),
        authors: vec![],
        triggered_id: Some(trigger.id.clone()),
        git_commit_id: trigger.git_commit_id.clone(),
        data,
    };
    event.to_json()
}

/// Result, status, and why, where the command itself may not have said.
fn verdict(ended: &Ended) -> (TaskResult, Status, Option<String>) {
    let errored = |why: String| (TaskResult::Fail, Status::Errored, Some(why));
    match ended {
        Ended::Code(0) => (TaskResult::Pass, Status::Succeeded, None),
        Ended::Code(WARNING) => (TaskResult::Warning, Status::Succeeded, None),
        Ended::Code(code) if NO_COMMAND.contains(code) => errored(format!("the command cannot be run (exit code {code})")),
        Ended::Code(code) => (TaskResult::Fail, Status::Succeeded, Some(format!("exit code {code}"))),
        Ended::Signal(signal) => errored(format!("the command was killed by signal {signal}")),
        Ended::TimedOut(limit) => errored(format!("the command took longer than {} and was ended", length(*limit))),
        Ended::TooMuch => {
            errored(format!("the command wrote more than {} KB to standard output and was ended: write less", MAX_STDOUT / 1024))
        }
        Ended::NotStarted(why) => errored(why.clone()),
    }
}

/// One message of several parts; of the last, only the end if all is too long.
fn joined(parts: &[String]) -> String {
    let Some((said, before)) = parts.split_last() else { return String::new() };
    let before: String = before.iter().map(|part| format!("{part}: ")).collect();
    format!("{before}{}", end_of(said, MAX_MESSAGE.saturating_sub(before.len())))
}

/// The end of what was written: at most [`MAX_MESSAGE`] bytes of valid text, in characters an event may carry, without the
/// colours of terminals.
fn tail(bytes: &[u8]) -> String {
    // Twice the length, so that what is taken out leaves enough.
    let from = bytes.len().saturating_sub(2 * MAX_MESSAGE);
    let text = String::from_utf8_lossy(&bytes[from..]);
    let text = if from > 0 { text.trim_start_matches('\u{fffd}') } else { &text };
    let text = plain(text);
    end_of(text.trim(), MAX_MESSAGE).trim_start().to_owned()
}

/// At most so many bytes of a text's end.
fn end_of(text: &str, most: usize) -> &str {
    let cut = text.len().saturating_sub(most);
    let cut = (cut..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    &text[cut..]
}

fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' if rest.peek() == Some(&'[') => {
                rest.next();
                while rest.next().is_some_and(|c| !('@'..='~').contains(&c)) {}
            }
            '\t' | '\n' => plain.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => (),
            c => plain.push(c),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use keelway_wire::cloudevent::{self, Origin};

    fn trigger() -> CloudEvent {
        let json = json!({
            "id": "t-1", "source": "shipyard-controller", "type": "sh.keptn.event.test.triggered", "shkeptncontext": "c-1",
            "gitcommitid": "abc", "time": "2026-11-21T00:00:00Z",
            "data": {"project": "shop", "stage": "dev", "service": "carts", "labels": {"by": "me"}, "test": {"kind": "load"}, "result": "pass"}
        });
        cloudevent::parse(&json, Origin::Client, Timestamp(0)).unwrap()
    }

    fn ends(ended: Ended, stdout: &str, stderr: &str) -> Value {
        let run = Run { ended, stdout: stdout.into(), stderr: stderr.into() };
        finished("tester", "test", &trigger(), Timestamp(0), &run)["data"].clone()
    }

    const ALIVE: Alive = Alive { heartbeat: Some(Duration::from_secs(90)), queued: false };

    #[test]
    fn the_events_say_who_and_what_for() {
        let first = started("tester", "test", &trigger(), Timestamp(0), ALIVE);
        insta::assert_snapshot!(keelway_domain::json::canonical(&first));
        assert_eq!(first["id"], started("tester", "test", &trigger(), Timestamp(9), ALIVE)["id"]);
        assert_ne!(first["id"], started("other", "test", &trigger(), Timestamp(0), ALIVE)["id"]);
        for (millis, text) in [(30, "30ms"), (90_000, "90s"), (120_000, "2m"), (86_400_000, "1440m")] {
            assert_eq!(span(Duration::from_millis(millis)), text);
        }
        let queued = started("tester", "test", &trigger(), Timestamp(0), Alive { heartbeat: None, queued: true });
        assert_eq!((&queued["data"]["queued"], queued["data"].get("heartbeat")), (&json!(true), None));
        let parsed = cloudevent::parse(&first, Origin::Client, Timestamp(0)).unwrap();
        assert_eq!(cloudevent::check_client_event(&parsed), Ok(()));
    }

    #[test]
    fn ends_and_results() {
        let table: Vec<String> = [
            (Ended::Code(0), r#"{"score": 1}"#, ""),
            (Ended::Code(0), "plain words\n", ""),
            (Ended::Code(0), "[1]", "from stderr\n"),
            (Ended::Code(0), "half an hour\n{\"score\": 1}", ""),
            (Ended::Code(1), "{\"score\": 1e999}", ""),
            (Ended::Code(3), "", "slow"),
            (Ended::Code(1), "", ""),
            (Ended::Code(1), r#"{"score": 0}"#, "too slow"),
            (Ended::Code(127), "", "sh: 1: nix: not found"),
            (Ended::Signal(9), "", "half"),
            (Ended::TimedOut(Duration::from_secs(90)), r#"{"half": "#, ""),
            (Ended::TooMuch, "", ""),
            (Ended::NotStarted("no such file".into()), "", ""),
        ]
        .into_iter()
        .map(|(ended, stdout, stderr)| {
            let data = ends(ended.clone(), stdout, stderr);
            let own = data.get("test").map(Value::to_string).unwrap_or_default();
            format!("{ended:?}: {} {} {} {own}", data["result"], data["status"], data["message"])
        })
        .collect();
        insta::assert_snapshot!(table.join("\n"));
    }

    #[test]
    fn a_tail_is_short_valid_and_plain() {
        assert_eq!(tail(b" \x1b[31mred\x1b[0m\x00 end\r\n"), "red end");
        let long = "ü".repeat(5000);
        let cut = tail(long.as_bytes());
        assert!(cut.len() <= MAX_MESSAGE && cut.len() > MAX_MESSAGE - 4 && cut.chars().all(|c| c == 'ü'), "{}", cut.len());
        let odd = tail(&long.as_bytes()[..9999]);
        assert!(odd.len() <= MAX_MESSAGE && odd.starts_with('ü'));
        assert_eq!(tail(&[0xff, b'a']), "\u{fffd}a");
        assert_eq!(tail(&[0xff; 5000]).len() % 3, 0);
    }

    #[test]
    fn a_warning_is_not_cut_off_by_a_long_message() {
        let long = "x".repeat(5000);
        let message = ends(Ended::Code(0), "{\"a\": 1} {}", &long)["message"].as_str().unwrap().to_owned();
        assert!(message.starts_with("standard output is not used as data: there is more after the JSON object"), "{message}");
        assert!(message.ends_with("xxx") && message.len() == MAX_MESSAGE, "{}", message.len());
    }

    #[test]
    fn an_answer_that_is_refused_still_ends_the_task() {
        let event = unanswerable("tester", "test", &trigger(), Timestamp(0), "data.test.x: contains U+0000");
        assert_eq!(event["id"], id("tester", &trigger(), Kind::Finished).as_str());
        assert_eq!(event["data"]["status"], "errored");
        assert_eq!(event["data"]["message"], "the executor's answer was refused: data.test.x: contains U+0000");
    }
}
