//! How a case of evaluations ends: what is the same whatever goes wrong.

use keelway_domain::time::Span;
use keelway_engine::register;
use keelway_world::case::Stand;
use keelway_world::evaluations::EvaluationsWorld;
use serde_json::Value;

/// What must be the same whatever went wrong: everything that was told, and what is kept of it. When that was may differ, because a
/// source that could not be asked is asked a while later.
pub fn ending(stand: &mut EvaluationsWorld) -> Vec<String> {
    stand.wait(Span::minutes(60));
    let told = stand.outgoing().into_iter().map(|mut event| {
        event["time"] = Value::Null;
        if event["data"]["status"] == "errored" {
            // Of several errors, the last one is told.
            event["data"]["message"] = Value::Null;
        }
        event.to_string()
    });
    let mut lines: Vec<String> = told.collect();
    let core = stand.story.world.core();
    let kept = core.table.items().filter(|item| item.key.pk.starts_with("EV#") && item.key.sk == "!");
    for item in kept.filter(|item| register::kind(&item.key).is_some()) {
        let past: Value = serde_json::from_str(item.text("pa").unwrap_or("[]")).unwrap_or_default();
        for one in past.as_array().into_iter().flatten() {
            lines.push(format!("{} {} {} {} {}", item.key, one["id"], one["result"], one["invalidated"], one["evaluated"]));
        }
        lines.push(format!("{} open: {}", item.key, item.text("op").map_or(0, str::len) > 0));
    }
    lines
}
