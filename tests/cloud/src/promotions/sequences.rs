//! What executors and people do with the sequences of promotions.

use super::PromotionsCloud;
use crate::events::answer;
use crate::observer::Seen;
use crate::problem::Problem;
use crate::stand::text;
use keelway_domain::event::{PROMOTION, SOURCE};
use keelway_world::case::Answer;
use keelway_world::promotions::host::End;
use serde_json::{Map, json};
use std::collections::{BTreeMap, HashSet};
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
        let before = self.ends().len();
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
        // The step's end waits until the engine has heard of it.
        self.observer.wait(&format!("the end of a sequence in {context}"), |_| (self.ends().len() > before).then_some(()))?;
        Ok(Answer::unknown())
    }

    /// The ends of sequences that carry out promotions: what the bus hands to the engine.
    fn ends(&self) -> Vec<Arc<Seen>> {
        let mut ends = self.events();
        ends.retain(|seen| {
            let ty = seen.event["type"].as_str().unwrap_or_default();
            seen.event["source"] == SOURCE && ty.ends_with(".finished") && !seen.event["data"][PROMOTION]["pipeline"].is_null()
        });
        ends
    }

    /// Waits until the engine has heard of every end: the bus brings them, so no function's log names their messages.
    pub(super) fn ends_are_heard(&self) -> Result<(), Problem> {
        let mut ends: BTreeMap<String, usize> = BTreeMap::new();
        for end in self.ends() {
            *ends.entry(text(&end.event["shkeptncontext"])).or_default() += 1;
        }
        for (context, ends) in ends {
            self.observer.wait(&format!("{ends} ends of sequences in {context}"), |observer| {
                let lines = observer.lines(&context);
                let heard = lines.iter().filter(|line| line.is_done() && line.text("message.kind") == "sequence.finished");
                (heard.map(|line| line.id()).collect::<HashSet<_>>().len() >= ends).then_some(())
            })?;
        }
        Ok(())
    }
}
