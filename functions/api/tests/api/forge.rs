//! A git host that opens every pull request it is asked for, once.

use keelway_domain::condition::Condition;
use keelway_domain::promotions::definition::Strategy;
use keelway_domain::promotions::{AttemptResult, Closed, Made};
use keelway_domain::time::Timestamp;
use keelway_engine::ports::PortError;
use keelway_engine::promotions::attempts::{Outside, Sight, Task};
use std::sync::{Arc, Mutex};

/// What was opened, in order: identity, environment and revision; and what was closed.
#[derive(Debug, Default)]
pub struct Seen {
    pub opened: Vec<(u64, String)>,
    pub closed: Vec<u64>,
    pub looks: usize,
    /// The host accepts no look before this time.
    pub not_before: Option<Timestamp>,
    /// Promotions by sequences begin in this context, which the test triggers.
    pub context: Option<String>,
    /// Why the host cannot be looked at.
    pub trouble: Option<Condition>,
}

#[derive(Debug, Clone, Default)]
pub struct Forge(pub Arc<Mutex<Seen>>);

impl Forge {
    /// `environment revision` of each pull request that was opened.
    pub fn opened(&self) -> Vec<String> {
        self.0.lock().unwrap().opened.iter().map(|(_, what)| what.clone()).collect()
    }
    /// How often the repository was looked at.
    pub fn looks(&self) -> usize {
        self.0.lock().unwrap().looks
    }
    /// How many were closed.
    pub fn closed(&self) -> usize {
        self.0.lock().unwrap().closed.len()
    }
}

impl Outside for Forge {
    async fn carry_out(&self, task: &Task) -> Result<AttemptResult, PortError> {
        let identity = task.identity();
        let context = self.0.lock().unwrap().context.clone();
        if let (Strategy::Sequence(_), Some(context)) = (&task.strategy, context) {
            return Ok(AttemptResult::Created(Made::Sequence { context }));
        }
        if !matches!(task.strategy, Strategy::PullRequest(_)) {
            return Ok(AttemptResult::Done(Made::Notification { id: format!("{identity:x}") }));
        }
        let mut seen = self.0.lock().unwrap();
        let place = match seen.opened.iter().position(|(known, _)| *known == identity) {
            Some(place) => place,
            None => {
                seen.opened.push((identity, format!("{} {}", task.attempt.environment, task.attempt.revision)));
                seen.opened.len() - 1
            }
        };
        let number = place as u64 + 1;
        let url = format!("https://git.test/o/r/pulls/{number}");
        let (branch, head) = (format!("promotion/{identity:x}"), "a".repeat(40));
        Ok(AttemptResult::Created(Made::PullRequest { number, url, branch, head, mergeable: None }))
    }

    async fn take_back(&self, task: &Task, _: &str) -> Result<Closed, PortError> {
        self.0.lock().unwrap().closed.push(task.identity());
        Ok(Closed::Closed)
    }

    async fn follow(&self, _: &Task) -> Result<Option<keelway_domain::promotions::Seen>, PortError> {
        Ok(None)
    }

    async fn look(&self, _: &str, tasks: &[Task], _: Option<&str>) -> Result<Sight, PortError> {
        let mut seen = self.0.lock().unwrap();
        seen.looks += 1;
        Ok(Sight {
            requests: vec![None; tasks.len()],
            failed: vec![seen.trouble.clone(); tasks.len()],
            mark: None,
            not_before: seen.not_before,
        })
    }
}
