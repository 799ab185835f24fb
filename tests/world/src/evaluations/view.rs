//! A service's evaluations as cases compare them.

use keelway_domain::evaluations::{Ended, Open, Past, Phase, Service};
use serde_json::{Map, Value, json};

fn phase(open: &Open) -> String {
    match &open.phase {
        Phase::Due { attempt, .. } => format!("due {attempt}"),
        Phase::Measuring { attempt, .. } => format!("measuring {attempt}"),
        Phase::Asked { started: true, .. } => "started".into(),
        Phase::Asked { .. } => "asked".into(),
    }
}

fn end(past: &Past) -> String {
    let marks = [(past.invalidated, " void"), (!past.evaluated, " unevaluated")];
    let marks: String = marks.into_iter().filter_map(|(is, mark)| is.then_some(mark)).collect();
    format!("{}{marks}", past.result.as_str())
}

/// What is open, what has ended, newest first, and what was measured for the last one.
pub fn view(x: Option<&Service>, last: Option<&Ended>, asked: usize) -> Value {
    let open: Vec<String> = x.into_iter().flat_map(|x| &x.open).map(phase).collect();
    let past: Vec<String> = x.into_iter().flat_map(|x| &x.past).map(end).collect();
    let values = last.map(|ended| {
        let of = |value: &keelway_domain::evaluation::Measured| if value.success { json!(value.value) } else { Value::Null };
        ended.values.iter().map(|value| (value.metric.clone(), of(value))).collect::<Map<String, Value>>()
    });
    let provider = last.map(|ended| ended.provider.clone());
    let notes = last.map(|ended| ended.notes.clone());
    json!({"open": open, "past": past, "values": values, "provider": provider, "notes": notes, "asked": asked})
}
