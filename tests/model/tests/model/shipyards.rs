//! Random shipyards, and smaller variants of a shipyard.

use keelway_world::rng::Rng;
use serde_json::{Map, Value, json};
use std::fmt::Write;

const STAGES: [&str; 3] = ["dev", "hardening", "production"];
const SEQUENCES: [&str; 5] = ["delivery", "rollback", "check", "evaluation", "test"];
/// The names of tasks. Some are also names of sequences.
pub const TASKS: [&str; 6] = ["deployment", "test", "evaluation", "release", "approval", "rollback"];
/// The domain events.
pub const HAPPENINGS: [&str; 2] = ["problem.open", "com.acme.built"];
const RESULTS: [&str; 4] = ["pass", "warning", "fail", "failed"];

fn maybe(rng: &mut Rng, percent: f64, of: &mut Value, name: &str, value: impl FnOnce(&mut Rng) -> Value) {
    if rng.chance(percent) {
        of[name] = value(rng);
    }
}

/// The shipyard of a seed.
pub fn random(seed: u64) -> Value {
    let mut rng = Rng::new(seed);
    let names = &STAGES[..1 + rng.below(3)];
    let stages: Vec<Value> = names.iter().map(|name| stage(&mut rng, name, names)).collect();
    json!({"apiVersion": "spec.keptn.sh/0.2.3", "kind": "Shipyard", "metadata": {"name": "shipyard-p"}, "spec": {"stages": stages}})
}

fn stage(rng: &mut Rng, name: &str, stages: &[&str]) -> Value {
    let from = rng.below(SEQUENCES.len());
    let names = (0..rng.below(5)).map(|n| SEQUENCES[(from + n) % SEQUENCES.len()]);
    // The order of two sequences of a stage on the same domain event would not be defined.
    let mut happenings = HAPPENINGS.to_vec();
    let sequences: Vec<Value> = names.map(|name| sequence(rng, name, stages, &mut happenings)).collect();
    json!({"name": name, "sequences": sequences})
}

fn sequence(rng: &mut Rng, name: &str, stages: &[&str], happenings: &mut Vec<&str>) -> Value {
    let mut sequence = json!({"name": name});
    maybe(rng, 70.0, &mut sequence, "triggeredOn", |rng| (0..1 + rng.below(2)).map(|_| entry(rng, stages, happenings)).collect());
    maybe(rng, 10.0, &mut sequence, "timeout", |rng| json!(format!("{}s", 61 + rng.below(200))));
    sequence["tasks"] = (0..1 + rng.below(4)).map(|_| task(rng)).collect();
    sequence
}

fn entry(rng: &mut Rng, stages: &[&str], happenings: &mut Vec<&str>) -> Value {
    let ended = if rng.chance(75.0) { rng.pick(&SEQUENCES) } else { rng.pick(&TASKS) };
    let mut event = format!("{}.{ended}.finished", rng.pick(stages));
    if rng.chance(15.0) {
        event = happenings.pop().map_or(event, str::to_owned);
    }
    let mut entry = json!({"event": event});
    maybe(rng, 40.0, &mut entry, "selector", |rng| {
        let key = |rng: &mut Rng| if rng.chance(60.0) { "result".into() } else { format!("{}.result", rng.pick(&TASKS)) };
        let entries: Map<String, Value> = (0..1 + rng.below(2)).map(|_| (key(rng), json!(rng.pick(&RESULTS)))).collect();
        json!({"match": entries})
    });
    entry
}

fn task(rng: &mut Rng) -> Value {
    let name = *rng.pick(&TASKS);
    let mut task = json!({"name": name});
    if name == "approval" {
        maybe(rng, 80.0, &mut task, "properties", |rng| {
            let mut strategies = json!({});
            for result in ["pass", "warning"] {
                maybe(rng, 70.0, &mut strategies, result, |rng| json!(rng.pick(&["manual", "manual", "automatic"])));
            }
            strategies
        });
    } else {
        maybe(rng, 30.0, &mut task, "properties", |rng| object(rng, 1));
        maybe(rng, 15.0, &mut task, "startDeadline", |rng| json!(format!("{}s", 20 + rng.below(40))));
    }
    maybe(rng, 20.0, &mut task, "triggeredAfter", |rng| json!(format!("{}s", rng.below(90))));
    maybe(rng, 15.0, &mut task, "timeout", |rng| json!(format!("{}s", rng.below(3) * (31 + rng.below(60)))));
    task
}

/// A random object with few names, so that names occur in several objects.
pub fn object(rng: &mut Rng, depth: usize) -> Value {
    (0..rng.below(4)).map(|_| (rng.pick(&["a", "b", "c", "result"]).to_string(), value(rng, depth))).collect()
}

/// A random value.
pub fn value(rng: &mut Rng, depth: usize) -> Value {
    match rng.below(if depth > 0 { 7 } else { 5 }) {
        0 => Value::Null,
        1 => json!(rng.below(4)),
        2 => json!(rng.chance(50.0)),
        3 => json!(["pass", "x", "manual", ""][rng.below(4)]),
        4 => (0..rng.below(3)).map(|_| json!(rng.below(3))).collect(),
        _ => object(rng, depth - 1),
    }
}

/// The shipyards that lack one part of this one: an optional member, or an entry of a list.
pub fn smaller(shipyard: &Value) -> Vec<Value> {
    let mut all = vec![];
    take_out(shipyard, &mut |one| all.push(one));
    all
}

fn take_out(from: &Value, found: &mut dyn FnMut(Value)) {
    match from {
        Value::Array(list) => {
            for n in (0..list.len()).filter(|_| list.len() > 1) {
                let mut rest = list.clone();
                rest.remove(n);
                found(rest.into());
            }
            for (n, value) in list.iter().enumerate() {
                take_out(value, &mut |one| {
                    let mut list = list.clone();
                    list[n] = one;
                    found(list.into());
                });
            }
        }
        Value::Object(object) => {
            for (name, value) in object {
                if ["triggeredOn", "selector", "timeout", "properties", "triggeredAfter", "startDeadline"].contains(&name.as_str())
                {
                    let mut rest = object.clone();
                    rest.remove(name);
                    found(rest.into());
                }
                take_out(value, &mut |one| {
                    let mut object = object.clone();
                    object[name] = one;
                    found(object.into());
                });
            }
        }
        _ => {}
    }
}

/// The text of a shipyard.
pub fn yaml(value: &Value) -> String {
    let mut text = String::new();
    write(value, 0, &mut text);
    text
}

fn write(value: &Value, depth: usize, text: &mut String) {
    let inline =
        |value: &Value| !matches!(value, Value::Object(o) if !o.is_empty()) && !matches!(value, Value::Array(a) if !a.is_empty());
    let mut line = |start: String, value: &Value| {
        let end = if inline(value) { format!(" {value}") } else { String::new() };
        writeln!(text, "{}{start}{end}", "  ".repeat(depth)).expect("a string takes everything");
        if !inline(value) {
            write(value, depth + 1, text);
        }
    };
    match value {
        Value::Object(object) => object.iter().for_each(|(name, value)| line(format!("{name}:"), value)),
        Value::Array(list) => list.iter().for_each(|value| line("-".into(), value)),
        _ => {}
    }
}
