//! Cases told to the deployed stack: events go over the real bus and the real API, time is real, and what comes out is what an
//! observer with a rule of its own sees.

use crate::api::{Reply, project_manifest};
use crate::cloud::now_millis;
use crate::observer::{Line, Observer, Seen};
use crate::problem::Problem;
use crate::stack::Stack;
use keelway_domain::event::{DEFAULT_SOURCE, PREFIX};
use keelway_domain::ids::context_of;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::keys::MAIN;
use keelway_engine::protocol::Handled;
use keelway_engine::sequences::keys::LaneKey;
use keelway_wire::cloudevent::{Origin, parse};
use keelway_world::bus::rule_takes;
use keelway_world::case::{Answer, Control, Entrance, LaneView, Said, Stand};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long to wait for what is expected before it counts as missing.
const PATIENCE: Duration = Duration::from_secs(25);
/// How long nothing must happen for a step to be over.
const QUIET: Duration = Duration::from_millis(220);
/// The same when the engine has sent itself a message, which is under way then.
const QUIET_AFTER_MESSAGES: Duration = Duration::from_millis(500);
/// How much longer than written a `wait` lasts.
const LONGER: Duration = Duration::from_secs(1);

/// Time in cases goes by so many times slower here than written: cases use spans of a few seconds between steps that take no time, and
/// steps take time here.
const SLOWER: u32 = 2;

/// The shipyard with its short spans that much longer; `startDeadline: 2s` is `startDeadline: 4s`.
fn slower(shipyard: &str) -> String {
    let fields = ["startDeadline:", "timeout:", "triggeredAfter:", "taskTimeout:"];
    let mut rest = shipyard;
    let mut text = String::new();
    while let Some((at, field)) = fields.iter().filter_map(|field| Some((rest.find(field)?, field))).min() {
        let (before, after) = rest.split_at(at + field.len());
        let value = after.trim_start_matches([' ', '"']);
        let digits = value.len() - value.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = value.split_at(digits);
        text.push_str(before);
        rest = after;
        if let Ok(seconds) = number.parse::<u32>()
            && unit.starts_with('s')
        {
            text.push_str(&after[..after.len() - value.len()]);
            text.push_str(&(seconds * SLOWER).to_string());
            rest = unit;
        }
    }
    text + rest
}

/// One case's view of a deployed stack.
pub struct CloudStand<'a> {
    stack: &'a Stack,
    observer: &'a Observer,
    salt: String,
    projects: HashSet<String>,
    applied: HashSet<String>,
    contexts: HashSet<String>,
    inputs: HashSet<String>,
    expected: usize,
    before: usize,
    trouble: Vec<String>,
}

impl<'a> CloudStand<'a> {
    /// For one run of one case.
    pub fn new(stack: &'a Stack, observer: &'a Observer) -> Self {
        let id = uuid::Uuid::now_v7().simple().to_string();
        let salt = format!("-{}", &id[id.len() - 8..]);
        let none = HashSet::new;
        let (projects, applied, contexts, inputs) = (none(), none(), none(), none());
        Self { stack, observer, salt, projects, applied, contexts, inputs, expected: 0, before: 0, trouble: vec![] }
    }

    /// What went wrong that a case cannot say, and what the functions said about its contexts: for the person reading a failure.
    pub fn story(&self) -> String {
        let mut text: Vec<String> = self.trouble.clone();
        for context in &self.contexts {
            for line in self.observer.lines(context) {
                let words = ["message.kind", "outcome"].map(|name| line.text(name).to_owned()).join(" ");
                text.push(format!("{} {words} {}", line.text("timestamp"), line.text("requests")));
            }
        }
        text.sort();
        text.join("\n    ")
    }

    fn seen(&self) -> Vec<Arc<Seen>> {
        let keys: HashSet<String> = self.projects.union(&self.contexts).cloned().collect();
        let mut seen = self.observer.events(&keys);
        seen.retain(|seen| !self.inputs.contains(&text(&seen.event["id"])));
        seen
    }

    fn lines(&self) -> Vec<Arc<Line>> {
        let mut lines: Vec<Arc<Line>> = self.contexts.iter().flat_map(|context| self.observer.lines(context)).collect();
        lines.sort_by_key(|line| line.at);
        lines
    }

    /// Waits until what is expected has come and nothing more happens.
    fn settle(&mut self, since: Instant) {
        loop {
            let (seen, lines) = (self.seen(), self.lines());
            let last_line = lines.last().filter(|line| line.at > since);
            let last =
                [seen.last().map(|seen| seen.at), last_line.map(|line| line.at)].into_iter().flatten().fold(since, Instant::max);
            let sent = last_line.is_some_and(|line| line.text("requests").contains("sqs.SendMessage") || !line.is_outside());
            let quiet = if sent { QUIET_AFTER_MESSAGES } else { QUIET };
            if (seen.len() >= self.before + self.expected && last.elapsed() > quiet) || since.elapsed() > PATIENCE {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Puts an event on the bus and waits until a function has handled it: what it made of it.
    fn over_the_bus(&mut self, event: &Value, context: &str) -> Result<Option<Said>, Problem> {
        let source = event["source"].as_str().unwrap_or(DEFAULT_SOURCE);
        let taken = rule_takes(source, event["type"].as_str().unwrap_or_default());
        // What is not even an event has no context to be found under.
        let readable = parse(event, Origin::Bus, self.now()).is_ok();
        let under = |observer: &Observer| -> Vec<Arc<Line>> {
            let lines = observer.lines(if readable { context } else { "" });
            lines.into_iter().filter(|line| line.is_outside()).collect()
        };
        let before = under(self.observer).len();
        self.stack.put_event(event)?;
        if !taken {
            return Ok(None);
        }
        let handled = self.observer.wait("the event's handling", PATIENCE, |observer| {
            let after = under(observer);
            after.get(before).cloned()
        })?;
        // Somebody else's may have been unreadable at the same time.
        Ok(if readable { said(&handled) } else { None })
    }

    fn note<T>(&mut self, result: Result<T, Problem>) -> Option<T> {
        result.map_err(|problem| self.trouble.push(problem.0)).ok()
    }

    fn answer(&mut self, reply: Result<Reply, Problem>) -> Answer {
        match reply {
            Ok(reply) => Answer::status(reply.status, reply.problem()),
            Err(problem) => Answer::status(0, problem.0),
        }
    }
}

fn said(line: &Line) -> Option<Said> {
    let outcome = line.text("outcome").to_lowercase();
    let words = [
        ("committed", Handled::Committed),
        ("settled", Handled::Settled),
        ("stale", Handled::Stale),
        ("invalid", Handled::Invalid),
        ("recorded", Handled::Recorded),
    ];
    words.into_iter().find(|(word, _)| outcome == *word).map(|(_, handled)| Said::Handled(handled))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

impl Stand for CloudStand<'_> {
    fn salt(&self) -> String {
        self.salt.clone()
    }
    fn ordered(&self) -> bool {
        false
    }
    fn now(&self) -> Timestamp {
        Timestamp(now_millis())
    }

    fn step(&mut self, expected: usize) {
        self.before = self.seen().len();
        self.expected = expected;
        std::thread::sleep(Duration::from_millis(10));
    }

    fn apply(&mut self, project: &str, shipyard: &str) -> Answer {
        self.projects.insert(project.to_owned());
        let api = self.stack.api();
        if self.applied.insert(project.to_owned()) {
            let reply = self.stack.wait(api.apply(None, &project_manifest(project)));
            let answer = self.answer(reply);
            if !matches!(answer.said, Some(Said::Status(200..=299))) {
                return answer;
            }
        }
        let reply = self.stack.wait(api.apply(Some(project), &slower(shipyard)));
        self.answer(reply)
    }

    fn send(&mut self, event: &Value, at: Entrance) -> Answer {
        let context = match event.get("shkeptncontext").and_then(Value::as_str).filter(|context| !context.is_empty()) {
            Some(context) => context.to_owned(),
            None => context_of(event["source"].as_str().unwrap_or(DEFAULT_SOURCE), &text(&event["id"])).to_string(),
        };
        self.contexts.insert(context.clone());
        // A decision handed in at the API comes out again as the engine's own event, and keeps its id.
        if at == Entrance::Bus || event["type"] != format!("{PREFIX}approval.finished") {
            self.inputs.insert(text(&event["id"]));
        }
        let since = Instant::now();
        let answer = match at {
            Entrance::Bus => match self.over_the_bus(event, &context) {
                Ok(said) => Answer { said, problem: String::new() },
                Err(problem) => {
                    self.trouble.push(problem.0);
                    Answer::unknown()
                }
            },
            Entrance::Api => {
                let reply = self.stack.wait(self.stack.api().post("/v1/event", event));
                self.answer(reply)
            }
        };
        self.settle(since);
        answer
    }

    fn decide(&mut self, approval: &Value, approve: bool) -> Answer {
        let since = Instant::now();
        let reply = self.stack.wait(self.stack.api().decide(approval, approve));
        let answer = self.answer(reply);
        self.settle(since);
        answer
    }

    fn control(&mut self, project: &str, context: &str, stage: Option<&str>, control: Control) -> Answer {
        let since = Instant::now();
        let state = match control {
            Control::Pause => "pause",
            Control::Resume => "resume",
            Control::Abort => "abort",
        };
        let body = json!({"state": state, "stage": stage.unwrap_or_default()});
        let reply = self.stack.wait(self.stack.api().post(&format!("/v1/sequence/{project}/{context}/control"), &body));
        let answer = self.answer(reply);
        // The change itself is one message further on.
        std::thread::sleep(QUIET_AFTER_MESSAGES);
        self.settle(since);
        answer
    }

    fn wait(&mut self, span: Span) {
        let since = Instant::now();
        std::thread::sleep(Duration::from_millis(u64::try_from(span.0).unwrap_or_default()) * SLOWER + LONGER);
        self.settle(since);
    }

    fn outgoing(&mut self) -> Vec<Value> {
        self.seen().iter().map(|seen| seen.event.clone()).collect()
    }

    fn sequence(&mut self, project: &str, context: &str) -> Option<Option<Value>> {
        let found = self.stack.wait(self.stack.api().sequence(project, context));
        Some(self.note(found).flatten())
    }

    fn open(&mut self, project: &str, types: &[String]) -> Option<Vec<Value>> {
        let mut open = vec![];
        for ty in types {
            let found = self.stack.wait(self.stack.api().open(project, ty));
            open.extend(self.note(found).unwrap_or_default());
        }
        Some(open)
    }

    fn lane(&mut self, project: &str, stage: &str, service: &str) -> Option<LaneView> {
        let lane = LaneKey(format!("K#{project}#{stage}#{service}"));
        let items = self.stack.items(&lane.0, "");
        let mut view = LaneView::default();
        for item in self.note(items)? {
            match item.key.sk.as_str() {
                MAIN => view.holder = item.text("h").and(item.text("hc")).map(str::to_owned),
                _ => view.queue.extend(item.text("c").map(str::to_owned)),
            }
        }
        Some(view)
    }
}

#[cfg(test)]
mod tests {
    use super::slower;

    #[test]
    fn short_spans_are_longer_here() {
        let text = "tasks: [{name: a, startDeadline: 2s}, {name: b, triggeredAfter: \"3s\", timeout: 5m}]\ntimeout: 1s\n";
        let expected = "tasks: [{name: a, startDeadline: 4s}, {name: b, triggeredAfter: \"6s\", timeout: 5m}]\ntimeout: 2s\n";
        assert_eq!(slower(text), expected);
        assert_eq!(slower("no spans"), "no spans");
    }
}
