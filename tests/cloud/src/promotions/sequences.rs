//! What executors and people do with the sequences of promotions.

use super::PromotionsCloud;
use crate::events::answer;
use crate::observer::Seen;
use crate::problem::Problem;
use crate::stand::text;
use keelway_domain::event::PROMOTION;
use keelway_world::case::Answer;
use keelway_world::promotions::host::End;
use serde_json::{Map, json};
use std::sync::Arc;

impl PromotionsCloud<'_> {
    /// Somebody carries out the open task of a sequence, or aborts it.
    pub(super) fn end_sequence(&mut self, environment: &str, end: End) -> Result<Answer, Problem> {
        let events = self.events();
        let of = |seen: &&Arc<Seen>| {
            seen.event["type"] == "sh.keptn.event.deploy.triggered" && seen.event["data"][PROMOTION]["environment"] == environment
        };
        let trigger = events.iter().rfind(of).map(|seen| seen.event.clone());
        let trigger = trigger.ok_or_else(|| Problem(format!("no sequence goes on for {environment}")))?;
        let context = text(&trigger["shkeptncontext"]);
        self.contexts.insert(context.clone());
        let before = self.known("sequence.finished");
        if end == End::Aborted {
            self.aborted.insert(context.clone());
            let path = format!("/v1/sequence/{}/{context}/control", self.namespace);
            self.stack.wait(self.stack.api().post(&path, &json!({"state": "abort"})))?.fine("abort")?;
        } else {
            let result = match end {
                End::Pass => "pass",
                End::Warning => "warning",
                _ => "fail",
            };
            self.stack.put_event(&answer(&trigger, "started", "executor", Map::new()))?;
            let data = json!({ "result": result }).as_object().cloned().unwrap_or_default();
            self.stack.put_event(&answer(&trigger, "finished", "executor", data))?;
        }
        self.handled("sequence.finished", &before, 1)?;
        Ok(Answer::unknown())
    }
}
