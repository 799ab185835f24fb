//! An executor inside the test: answers every task's trigger of some contexts or projects, over the bus.

use crate::events::{answer, is_task_trigger};
use crate::observer::Observer;
use crate::patience::until;
use crate::problem::Problem;
use crate::stack::Stack;
use serde_json::{Map, Value};
use std::collections::HashSet;

/// Answers what it sees until told to stop.
pub struct Executor<'a> {
    /// Where.
    pub stack: &'a Stack,
    /// Who sees the triggers.
    pub observer: &'a Observer,
    /// Contexts or projects.
    pub keys: HashSet<String>,
}

impl Executor<'_> {
    /// Answers with `started` and `finished`, whose data `data` gives, until `done` says so.
    ///
    /// # Errors
    /// When the bus does not take an answer, or nothing moves any more.
    pub fn until(
        &self,
        data: impl Fn(&Value) -> Map<String, Value>,
        mut done: impl FnMut(&[Value]) -> bool,
    ) -> Result<Vec<Value>, Problem> {
        let mut answered = HashSet::new();
        let step = || {
            let events = self.events();
            for trigger in events.iter().filter(|event| is_task_trigger(event)) {
                if answered.insert(trigger["id"].to_string()) {
                    self.stack.put_event(&answer(trigger, "started", "executor", Map::new()))?;
                    self.stack.put_event(&answer(trigger, "finished", "executor", data(trigger)))?;
                }
            }
            Ok(done(&events).then_some(events))
        };
        until("an executor's work", step, || {
            let events = self.events();
            let types: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
            format!("{types:#?}")
        })
    }

    fn events(&self) -> Vec<Value> {
        self.observer.events(&self.keys).iter().map(|seen| seen.event.clone()).collect()
    }
}

/// Events of a type.
pub fn count(events: &[Value], ty: &str) -> usize {
    events.iter().filter(|event| event["type"] == ty).count()
}
