//! What a function says about one message, and what follows from it: which messages are still under way.

use keelway_domain::time::Timestamp;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::time::Instant;

/// What a function said about one message: its `handled` line.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The whole line.
    pub json: Value,
    /// When we had it.
    pub at: Instant,
    /// The messages it sent.
    pub sent: Vec<Sent>,
}

/// A message that another one sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// Its id in the queue.
    pub id: String,
    /// The queue hands it out at once; otherwise it is a timer.
    pub at_once: bool,
    /// When the queue hands it out, or a little later, in milliseconds since 1970.
    pub at: i64,
}

/// The messages that others follow from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// Anything from the bus.
    Outside,
    /// A context's control, from the API.
    Control,
    /// A person's decision, from the API.
    Decision,
    /// A retry, from the API.
    Retry,
}

impl Line {
    /// A line as it was logged.
    pub fn new(json: Value) -> Self {
        let text = |name: &str| json[name].as_str().unwrap_or_default();
        let sent: BTreeMap<String, i64> = serde_json::from_str(text("sent")).unwrap_or_default();
        let logged = Timestamp::parse(text("timestamp")).unwrap_or_default().0;
        let sent = sent.into_iter().map(|(id, seconds)| Sent { id, at_once: seconds == 0, at: logged + seconds * 1000 }).collect();
        Self { json, at: Instant::now(), sent }
    }
    /// A text of the line.
    pub fn text(&self, name: &str) -> &str {
        self.json[name].as_str().unwrap_or_default()
    }
    /// A number of the line.
    pub fn number(&self, name: &str) -> f64 {
        self.json[name].as_f64().unwrap_or_default()
    }
    /// Whether it is about what came in from outside, not about a message of the engine's own.
    pub fn is_outside(&self) -> bool {
        let own = [
            "granted", "follow", "start", "wake", "obey", "abort", "decide", "retry", "settle", "conform", "windows", "planned",
            "due", "fire", "knock",
        ];
        !own.contains(&self.text("message.kind"))
    }
    /// What kind of input it is about; `None` for what follows from one.
    pub fn root(&self) -> Option<Root> {
        match self.text("message.kind") {
            "conform" => Some(Root::Control),
            "decide" => Some(Root::Decision),
            "retry" => Some(Root::Retry),
            _ => self.is_outside().then_some(Root::Outside),
        }
    }
    /// The message's id in the queue.
    pub fn id(&self) -> &str {
        self.json["span"]["message.id"].as_str().unwrap_or_default()
    }
    /// Whether the message is done with: one that failed comes back.
    pub fn is_done(&self) -> bool {
        let outcome = self.text("outcome");
        outcome != "interrupted" && !outcome.starts_with("not done")
    }
}

/// Messages that these lines say were sent, and that none of them says are done with. Timers count if they are due by `horizon`, in
/// milliseconds since 1970.
pub fn under_way<'a>(lines: impl IntoIterator<Item = &'a Line> + Clone, horizon: i64) -> Vec<&'a Sent> {
    let done: HashSet<&str> = lines.clone().into_iter().filter(|line| line.is_done()).map(Line::id).collect();
    let sent = lines.into_iter().flat_map(|line| &line.sent);
    sent.filter(|sent| (sent.at_once || sent.at <= horizon) && !done.contains(sent.id.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn line(id: &str, kind: &str, outcome: &str, sent: &str) -> Line {
        Line::new(json!({
            "timestamp": "2026-11-22T01:06:22.500123Z", "message": "handled", "message.kind": kind, "outcome": outcome, "sent": sent,
            "span": {"message.id": id, "context": "c"},
        }))
    }

    const LOGGED: i64 = 1_795_309_582_500;

    #[test]
    fn what_was_sent_is_under_way_until_it_is_done_with() {
        let first = line("1", "task.finished", "Committed", r#"{"2":0,"3":0}"#);
        let granted = line("2", "granted", "Committed", r#"{"4":0}"#);
        let failed = line("3", "follow", "not done: throttled", r#"{"5":0}"#);
        let ids = |lines: &[&Line]| under_way(lines.iter().copied(), 0).iter().map(|sent| sent.id.clone()).collect::<Vec<_>>();
        assert_eq!(ids(&[&first]), ["2", "3"]);
        // What failed comes back, and what it sent before is on its way all the same.
        assert_eq!(ids(&[&first, &granted, &failed]), ["3", "4", "5"]);
        let done = [line("3", "follow", "Settled", "{}"), line("4", "wake", "Settled", "{}"), line("5", "start", "Stale", "{}")];
        assert!(ids(&[&first, &granted, &failed, &done[0], &done[1], &done[2]]).is_empty());
    }

    #[test]
    fn a_timer_is_under_way_when_it_is_due() {
        let armed = line("1", "sequence.triggered", "Committed", r#"{"2":4}"#);
        let timer = Sent { id: "2".into(), at_once: false, at: LOGGED + 4000 };
        assert_eq!(armed.sent, std::slice::from_ref(&timer));
        assert!(under_way([&armed], LOGGED + 3999).is_empty());
        assert_eq!(under_way([&armed], LOGGED + 4000), [&timer]);
    }

    #[test]
    fn inputs_are_told_from_what_follows_from_them() {
        let root = |kind: &str| line("1", kind, "Committed", "{}").root();
        assert_eq!((root("task.started"), root("invalid")), (Some(Root::Outside), Some(Root::Outside)));
        assert_eq!((root("conform"), root("decide")), (Some(Root::Control), Some(Root::Decision)));
        assert_eq!((root("granted"), root("obey"), root("settle")), (None, None, None));
    }
}
