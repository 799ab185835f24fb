//! Events that cases state as calls.

use super::PromotionsCloud;
use crate::stand::text;
use keelway_domain::event::{EventType, Kind, PROMOTION, SOURCE};
use keelway_domain::promotions::NEEDED;
use keelway_world::promotions::host::{Call, Verb};
use serde_json::{Value, json};

impl PromotionsCloud<'_> {
    /// Enters events that are calls: somebody is told, a sequence is triggered or aborted.
    pub(super) fn enter(&mut self) {
        for seen in self.events() {
            let event = &seen.event;
            let context = text(&event["shkeptncontext"]);
            let Some((verb, of, details)) = self.meaning(event, &context) else { continue };
            if !self.entered.insert(text(&event["id"])) {
                continue;
            }
            self.host.note(Call {
                verb,
                pipeline: format!("{}/{}", self.namespace, text(&of["pipeline"])),
                environment: text(&of["environment"]),
                revision: text(&of["revision"]),
                run: of["run"].as_u64().unwrap_or_default(),
                id: text(&event["id"]),
                number: None,
                outcome: String::new(),
                details,
            });
            self.contexts.insert(context);
        }
    }

    /// What an event stands for, for which promotion, and what else is known of it.
    fn meaning<'e>(&self, event: &'e Value, context: &str) -> Option<(Verb, &'e Value, Value)> {
        let (data, promotion) = (&event["data"], &event["data"][PROMOTION]);
        if event["type"] == NEEDED {
            let pipeline = format!("{}/{}", text(&data["project"]), text(&data["pipeline"]));
            let told = &data["metadata"];
            let details = json!({"pipeline": pipeline, "environment": told["environment"], "version": told["version"]});
            return Some((Verb::Tell, data, details));
        }
        let EventType::Sequence(stage, name, kind) = EventType::parse(event["type"].as_str()?) else { return None };
        if !promotion.is_object() {
            return None;
        }
        let own = event["source"] == keelway_domain::promotions::SOURCE;
        let ended = event["source"] == SOURCE && data["status"] == "aborted" && !self.aborted.contains(context);
        match kind {
            Kind::Triggered if own => {
                let details = json!({
                    "project": data["project"], "stage": stage.as_str(), "service": data["service"], "sequence": name.as_str(),
                    "image": data["configurationChange"]["values"]["image"],
                });
                Some((Verb::Trigger, promotion, details))
            }
            Kind::Finished if ended => Some((Verb::Abort, promotion, json!({}))),
            _ => None,
        }
    }
}
