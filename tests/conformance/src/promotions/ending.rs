//! How a case of promotions ends: what is the same whatever goes wrong.

use super::PromotionsWorld;
use keelway_domain::time::Span;
use keelway_world::case::Stand;
use keelway_world::promotions::host::{GitHost, Verb};
use serde_json::Value;
use std::collections::BTreeSet;

/// After this time, what was delayed has been looked at as well.
const LATER: Span = Span::minutes(10);

/// Lets a case come to its end that was told while something went wrong.
pub fn ending(world: &mut PromotionsWorld) -> Vec<String> {
    while world.passes_time() || world.mends() {}
    world.story.wait(LATER);
    lines(world)
}

/// How a case ended: every pipeline, every pull request, who was told what, and which events say what came of it. How often
/// something was tried, and when, is left out: "usually once" allows that.
fn lines(world: &PromotionsWorld) -> Vec<String> {
    let mut lines: Vec<String> = world.views().into_iter().map(|view| without_attempts(view).to_string()).collect();
    let calls = world.host.calls();
    let told = calls.iter().filter(|call| call.verb == Verb::Tell).map(|call| format!("told {}", call.id));
    lines.extend(told.collect::<BTreeSet<_>>());
    for request in &world.host.lock().requests {
        lines.push(format!("{} {:?} {} comments", request.branch, request.state, request.comments.len()));
    }
    let says = |event: &Value| {
        let word = event["type"].as_str()?.strip_prefix(keelway_world::promotions::PREFIX)?;
        let often = ["started", "failed", "blocked", "awaited", "reminded"].contains(&word);
        let data = &event["data"];
        let text = |name: &str| data[name].as_str().unwrap_or_default().to_owned();
        (!often).then(|| format!("{word} {} {} {} {}", text("pipeline"), text("environment"), text("revision"), data["run"]))
    };
    let events = world.story.world.outgoing();
    lines.extend(events.iter().filter_map(|entry| says(&serde_json::from_str(&entry.detail).unwrap_or_default())));
    lines
}

fn without_attempts(mut view: Value) -> Value {
    view["message"] = Value::Null;
    for state in view["environments"].as_object_mut().into_iter().flat_map(|all| all.values_mut()) {
        state["attempt"] = Value::Null;
        state["message"] = Value::Null;
        // Whether it was seen before or after a person merged it.
        state["mergeable"] = Value::Null;
    }
    view
}
