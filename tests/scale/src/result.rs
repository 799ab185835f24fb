//! What came of a load.

use super::Place;
use keelway_domain::time::{Span, Timestamp};
use keelway_world::World;
use keelway_world::account::{Bound, Totals};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// What came of a load.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// What it was, in full.
    pub what: String,
    /// Where.
    pub place: Place,
    /// What was begun: executions, or observations.
    pub begun: usize,
    /// How much of it came to its end, each once.
    pub ended: usize,
    /// From the first to the last thing that happened, in seconds.
    pub took: f64,
    /// How long its own waits take, whatever the quotas are: for the last client, and for executors on the fullest lane.
    pub offered: f64,
    /// What was used of the quotas, the one that takes longest first.
    pub bounds: Vec<Bound>,
    /// The longest time in which a lane that had work did not go on, in seconds.
    pub slowest: f64,
    /// What happened.
    pub totals: Totals,
    /// What is wrong with it.
    pub wrong: Vec<String>,
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds of a test")]
pub(super) fn seconds(span: Span) -> f64 {
    span.0 as f64 / 1000.0
}

impl Outcome {
    /// The time that the limits and the load's own waits need at least.
    pub fn ideal(&self) -> f64 {
        self.bounds.first().map_or(0.0, |bound| bound.seconds).max(self.offered)
    }

    /// What binds: a quota, or the load itself.
    pub fn binding(&self) -> &str {
        let first = self.bounds.first().filter(|bound| bound.seconds >= self.offered);
        first.map_or("nothing: clients and executors", |bound| bound.name.as_str())
    }

    /// In a line.
    pub fn line(&self) -> String {
        let Totals { throttled, again, put_again, handled, dead, .. } = self.totals;
        let factor = if self.place.factor == 1 { String::new() } else { format!(", all of it 1/{}", self.place.factor) };
        format!(
            "{} in {}{factor}: {} of {} ended, {:.0} s (ideal {:.0} s: {}), no lane stood longer than {:.0} s; {handled} messages \
             handled, {again} of them again, {dead} dead, {throttled} requests throttled, {put_again} events of others put again",
            self.what,
            self.place.region,
            self.ended,
            self.begun,
            self.took,
            self.ideal(),
            self.binding(),
            self.slowest,
        )
    }
}

/// What was published about sequences.
pub(super) struct Seen {
    /// How often the sequence of a context and service ended, and with which result, at last.
    pub ended: BTreeMap<(String, String), (usize, String)>,
    /// When anything was last published.
    pub last: Timestamp,
    /// The longest time between two events of a lane.
    pub slowest: Span,
}

/// Reads everything that was published since a time. `is_end`: whether a type is the end of a sequence.
pub(super) fn seen(world: &World, since: Timestamp, is_end: &str) -> Seen {
    let core = world.core();
    let mut seen = Seen { ended: BTreeMap::new(), last: since, slowest: Span(0) };
    let mut lanes: HashMap<String, Timestamp> = HashMap::new();
    for publication in core.bus.firsts().filter(|publication| publication.at >= since) {
        let event: Value = serde_json::from_str(&publication.entry.detail).unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let data = &event["data"];
        let lane = format!("{}/{}/{}", text(&data["project"]), text(&data["stage"]), text(&data["service"]));
        seen.last = publication.at;
        if let Some(before) = lanes.insert(lane, publication.at) {
            seen.slowest = Span(seen.slowest.0.max((publication.at - before).0));
        }
        if publication.entry.detail_type == is_end {
            let ended = seen.ended.entry((text(&event["shkeptncontext"]), text(&data["service"]))).or_default();
            *ended = (ended.0 + 1, text(&data["result"]));
        }
    }
    seen
}
