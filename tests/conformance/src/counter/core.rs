//! What an input does to a counter: pure, no clock and no ports.

use keelway_domain::cause::Cause;
use keelway_domain::event::Object;
use keelway_domain::ids::{RecordId, SubjectId, event_id, hash64};
use keelway_domain::names::Context;
use keelway_domain::record::Draft;
use keelway_domain::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

/// The `source` of what counters publish.
pub const SOURCE: &str = "keelway-counter";
/// The type of the event that adds to a counter.
pub const ADD: &str = "dev.keelway.counter.add";
/// The type of the event that tells the end of a counter.
pub const ENDED: &str = "dev.keelway.counter.ended";

/// A counter. It ends when its count reaches the limit or its deadline passes.
#[derive(Debug, Clone, PartialEq)]
pub struct Counter {
    /// Its name.
    pub name: String,
    /// Of the event that began it.
    pub context: Context,
    /// When it began to count.
    pub began: Timestamp,
    /// What was added so far.
    pub count: i64,
    /// It ends at this count.
    pub limit: i64,
    /// It ends at this time.
    pub deadline: Timestamp,
    /// The counter that is nudged when this one ends.
    pub peer: Option<String>,
    /// The inputs it has counted: the same input again changes nothing.
    pub seen: Vec<u64>,
    /// Why it ended; `None` = it counts.
    pub end: Option<End>,
    /// The record of its end.
    pub record: Option<RecordId>,
}

/// Why a counter ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It reached its limit.
    Full,
    /// Its deadline passed.
    Late,
}

/// The same for all counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// A counter ends at this count.
    pub limit: i64,
    /// A counter ends so long after its first input.
    pub lifetime: Span,
}

/// What a counter's end sets off: its peer is nudged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Nudge {
    /// The peer's name.
    pub peer: String,
}

keelway_domain::recorded!(Nudge);

/// The record of an end.
pub type Record = keelway_domain::record::Record<Nudge>;

/// An input to a counter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Input<'a> {
    /// Add `n`. An event from outside, or a peer's nudge.
    Add {
        /// Tells inputs apart, however often one comes.
        id: u64,
        /// How much.
        n: i64,
        /// Whom to nudge at the end, if that was not known before.
        peer: Option<&'a str>,
        /// The context of a counter that begins with this.
        context: &'a Context,
    },
    /// The wake-up for this time came.
    Wake(Timestamp),
}

/// What an input comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// The next state, and its record if it has ended.
    Commit(Box<Counter>, Option<Box<Record>>),
    /// Nothing changes; what the message began, if anything, is to be finished.
    Settle,
    /// The counter had ended before the input came.
    Late,
}

impl Counter {
    /// A counter that has counted nothing.
    pub fn new(name: &str, context: &Context, now: Timestamp, rules: &Rules) -> Self {
        Self {
            name: name.to_owned(),
            context: context.clone(),
            began: now,
            count: 0,
            limit: rules.limit,
            deadline: now + rules.lifetime,
            peer: None,
            seen: vec![],
            end: None,
            record: None,
        }
    }
    /// Its id, in the addresses of its records.
    pub fn id(&self) -> SubjectId {
        SubjectId(hash64(&[b"counter", self.name.as_bytes()]))
    }
}

/// Decides. `x`: the counter as it is, or a new one.
pub fn decide(x: &Counter, input: Input<'_>, now: Timestamp, cause: Cause) -> Decision {
    let mut next = x.clone();
    match input {
        Input::Add { id, .. } if x.seen.contains(&id) => return Decision::Settle,
        Input::Add { .. } if x.end.is_some() => return Decision::Late,
        Input::Add { id, n, peer, .. } => {
            next.count += n;
            next.seen.push(id);
            next.peer = next.peer.or(peer.map(str::to_owned));
            next.end = (next.count >= next.limit).then_some(End::Full);
        }
        Input::Wake(_) if x.end.is_none() && x.deadline <= now => next.end = Some(End::Late),
        // It came too early, or too late. As long as the counter counts, settling arms the timer again.
        Input::Wake(_) => return Decision::Settle,
    }
    let record = next.end.map(|end| ended(&next, end, now, cause));
    next.record = record.as_ref().map(|record| record.id(next.id(), RecordId::END));
    Decision::Commit(Box::new(next), record.map(Box::new))
}

/// The record of an end: what is published, and who is nudged.
fn ended(x: &Counter, end: End, now: Timestamp, cause: Cause) -> Record {
    let data = Object::from_iter([
        ("counter".into(), x.name.as_str().into()),
        ("count".into(), x.count.into()),
        ("why".into(), if end == End::Full { "full" } else { "late" }.into()),
    ]);
    let event = Draft {
        id: Some(event_id(x.id(), "ended").to_string()),
        ty: ENDED.into(),
        source: SOURCE.into(),
        time: now,
        data,
        ..Draft::default()
    };
    let sends = x.peer.iter().map(|peer| Nudge { peer: peer.clone() }).collect();
    Record { events: vec![event], sends, made_by: cause.id, at: now, ..Record::default() }
}
