//! The timeline: one event as one line, and where everything stands as a table. Pure: JSON in, text out.

use crate::output::{one_line, painted};
use crate::table::Table;
use crate::terminal::{Look, columns};
use crate::words::{between, span};
use keelway_domain::event::{EventType, Kind};
use keelway_domain::time::Timestamp;
use keelway_wire::http::{ExecutionState, SequenceState};
use serde_json::Value;

/// What a line of the timeline says about an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// When the server received it; its sender's clock may be wrong.
    pub time: Option<Timestamp>,
    /// `data.project`
    pub project: String,
    /// `data.service`
    pub service: String,
    /// `data.stage`
    pub stage: String,
    /// The sequence, the task indented below it, or the type of anything else.
    pub name: String,
    /// `triggered`, `started`, `status.changed`, `finished`; empty for anything else.
    pub kind: &'static str,
    /// `pass`, `warning`, `fail`, with the status behind it where that says more; of finished events only.
    pub result: String,
    /// Who sent it and what it says.
    pub note: String,
}

impl Entry {
    /// Reads an event as the API shows it; what is missing is empty.
    pub fn of(event: &Value) -> Self {
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (name, kind, task) = match EventType::parse(text("/type")) {
            EventType::Sequence(_, sequence, kind) => (sequence.to_string(), Some(kind), false),
            EventType::Task(task, kind) => (format!("  {task}"), Some(kind), true),
            EventType::Other(name) => (name, None, false),
        };
        let reaction = task && matches!(kind, Some(Kind::Started | Kind::StatusChanged | Kind::Finished));
        let result = if kind == Some(Kind::Finished) { outcome(text("/data/result"), text("/data/status")) } else { String::new() };
        let told = reaction || (kind == Some(Kind::Finished) && !result.starts_with("pass"));
        let message = if told { one_line(text("/data/message"), 120) } else { String::new() };
        // An approval is published by the engine; who decided stands in its data.
        let who =
            Some(text("/data/approval/by")).filter(|by| !by.is_empty() && name.trim() == "approval").unwrap_or(text("/source"));
        let by = if reaction { format!("by {}", one_line(who, 40)) } else { String::new() };
        let verdict = text("/verdict");
        let verdict = if verdict.is_empty() { String::new() } else { format!("[{}: does not count]", one_line(verdict, 120)) };
        let note = match (by.is_empty(), message.is_empty()) {
            (false, false) => format!("{by}: {message}"),
            _ => format!("{by}{message}"),
        };
        Self {
            time: Timestamp::parse(text("/received")).or_else(|| Timestamp::parse(text("/time"))),
            project: text("/data/project").to_owned(),
            service: one_line(text("/data/service"), 43),
            stage: one_line(text("/data/stage"), 43),
            name: if task { name } else { one_line(&name, 60) },
            kind: kind.map_or("", Kind::as_str),
            result,
            note: format!("{note} {verdict}").trim().to_owned(),
        }
    }

    /// The line, without its end; `start` is what offsets count from, `label` tells contexts apart.
    pub fn line(&self, start: Option<Timestamp>, label: Option<&str>, look: &Look) -> String {
        let offset = match (self.time, start) {
            (Some(time), Some(start)) => format!("+{}", exact((time - start).0)),
            _ => "?".into(),
        };
        let label = label.map(|label| format!("{label:<16}  ")).unwrap_or_default();
        let (stage, name, kind) = (&self.stage, &self.name, self.kind);
        let begin = format!("{label}{offset:>7}  {stage:<10}  {name:<14}  {kind:<14}  ");
        let result = format!("{:<7}", self.result);
        let room = look.width.map_or(usize::MAX, |width| width.saturating_sub(columns(&begin) + columns(&result) + 2));
        let note = look.cut(&self.note, room);
        format!("{begin}{}  {note}", painted(&self.result, &result, look)).trim_end().to_owned()
    }
}

/// `fail (errored)`: the result, and the status where it is not what one expects.
pub fn outcome(result: &str, status: &str) -> String {
    match (result, status) {
        (result, "" | "succeeded") => result.to_owned(),
        ("", status) => status.to_owned(),
        (result, status) => format!("{result} ({status})"),
    }
}

/// An offset in the timeline: `0.3s`, `12.0s`, `3m12s`, `2h05m`.
fn exact(millis: i64) -> String {
    let millis = millis.max(0);
    if millis < 100_000 { format!("{}.{}s", millis / 1000, millis % 1000 / 100) } else { span(millis) }
}

/// Every execution of these contexts with everything about it, a row each.
pub fn table(states: &[SequenceState]) -> Table {
    let mut table = Table::new(&[
        "SERVICE", "STAGE", "SEQUENCE", "STATE", "RESULT", "DURATION", "QUEUED", "WAITS", "IMAGE", "ACCEPTED", "CONTEXT", "TASKS",
        "MESSAGE",
    ]);
    for state in states {
        if state.executions.is_empty() {
            let cells =
                [&state.service, "", &state.name, &state.state, "", "", "", "", "", &state.time, &state.shkeptncontext, "", ""];
            table.row(cells.map(str::to_owned).into());
        }
        for execution in &state.executions {
            table.row(row(state, execution));
        }
    }
    table
}

fn row(state: &SequenceState, execution: &ExecutionState) -> Vec<String> {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let tasks = execution.tasks.iter().map(|task| match task.result.as_deref() {
        None | Some("pass") => task.name.clone(),
        Some(result) => format!("{}:{result}", task.name),
    });
    let started = execution.started_at.as_deref();
    vec![
        state.service.clone(),
        execution.stage.clone(),
        execution.sequence.clone(),
        execution.state.clone(),
        outcome(&text(&execution.result), &text(&execution.status)),
        between(started, execution.finished_at.as_deref()),
        between(Some(&execution.accepted_at), started),
        execution.waits.as_ref().map(|waits| waits.reason.clone()).unwrap_or_default(),
        text(&execution.image),
        execution.accepted_at.clone(),
        state.shkeptncontext.clone(),
        tasks.collect::<Vec<_>>().join(","),
        text(&execution.message),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const PLAIN: Look = Look { width: None, height: 24, colours: false, ascii: false, live: false };

    fn event(ty: &str, ms: i64, data: Value) -> Value {
        let mut all = json!({"project": "shop", "stage": "staging", "service": "carts"});
        all.as_object_mut().unwrap().extend(data.as_object().unwrap().clone());
        let time = Timestamp(1_800_000_000_000 + ms).rfc3339();
        json!({"type": format!("sh.keptn.event.{ty}"), "source": "tester", "time": time, "data": all})
    }

    #[test]
    fn lines_of_a_delivery() {
        let mut late = event("evaluation.finished", 250_000, json!({"result": "pass", "status": "succeeded"}));
        late["verdict"] = json!("stale");
        let events = [
            event("staging.delivery.triggered", 0, json!({})),
            event("staging.delivery.started", 210, json!({})),
            event("deployment.triggered", 215, json!({"message": "not the task's own"})),
            event("deployment.started", 530, json!({})),
            event("deployment.status.changed", 900, json!({"message": "half\nway"})),
            event("deployment.finished", 2120, json!({"result": "warning", "status": "succeeded", "message": "slow"})),
            event("evaluation.finished", 62_000, json!({"result": "fail", "status": "errored", "message": "\u{1b}[2Jtimed out"})),
            event("staging.delivery.finished", 200_000, json!({"result": "fail", "status": "succeeded", "message": "no"})),
            late,
            event("problem.open", 7_500_000, json!({})),
            json!({}),
        ];
        let start = Entry::of(&events[0]).time;
        let lines: Vec<String> = events.iter().map(|event| Entry::of(event).line(start, None, &PLAIN)).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn a_table_of_executions() {
        let at = |ms: i64| Some(Timestamp(1_800_000_000_000 + ms).rfc3339());
        let execution = |stage: &str, sequence: &str, result: Option<&str>, from: i64, to: Option<i64>| ExecutionState {
            stage: stage.into(),
            sequence: sequence.into(),
            state: if to.is_some() { "finished".into() } else { "waitingForApproval".into() },
            result: result.map(str::to_owned),
            status: result.map(|_| "succeeded".into()),
            accepted_at: at(0).unwrap(),
            started_at: at(from),
            finished_at: to.and_then(at),
            tasks: serde_json::from_value(json!([{"name": "test", "result": "pass"}, {"name": "evaluation", "result": result}]))
                .unwrap(),
            ..ExecutionState::default()
        };
        let state = |service: &str, executions: Vec<ExecutionState>| SequenceState {
            name: "delivery".into(),
            service: service.into(),
            shkeptncontext: format!("context-of-{service}"),
            state: if executions.is_empty() { "triggered".into() } else { "started".into() },
            time: at(0).unwrap(),
            executions,
            ..SequenceState::default()
        };
        let states = [
            state(
                "carts",
                vec![
                    execution("staging", "delivery", Some("fail"), 120, Some(4000)),
                    execution("staging", "rollback", Some("pass"), 4100, Some(5000)),
                ],
            ),
            state("orders", vec![execution("production", "delivery", None, 300, None)]),
            state("new", vec![]),
        ];
        insta::assert_snapshot!(table(&states).render(&PLAIN));
    }

    #[test]
    fn offsets_count_on_the_servers_clock() {
        let mut event = event("dev.delivery.triggered", 0, json!({}));
        event["received"] = json!(Timestamp(1_900_000_000_000).rfc3339());
        assert_eq!(Entry::of(&event).time, Some(Timestamp(1_900_000_000_000)));
    }

    #[test]
    fn offsets_are_exact() {
        let offsets = [0, 999, 12_049, 99_999, 100_000, 7_500_000, -5];
        assert_eq!(offsets.map(exact), ["0.0s", "0.9s", "12.0s", "99.9s", "1m40s", "2h05m", "0.0s"]);
    }
}
