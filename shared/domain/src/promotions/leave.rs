//! How promotions leave the state: they become history, and what they have open is closed.

use super::advance::Step;
use super::definition::Definition;
use super::facts::{Attempt, Order, PICK_UP, Past, may_have_made};
use super::state::{Closing, Condition, Phase, Promotion};

impl Step<'_> {
    /// The pipeline was deleted: what is open is closed.
    pub fn delete(&mut self) {
        self.next.deleted = true;
        // If the pipeline is applied again, what it makes is not taken for what is closed now.
        self.next.past_runs = self.next.run.take().map_or(self.next.past_runs, |run| run.number);
        let names: Vec<String> = self.next.environments.keys().cloned().collect();
        for name in names {
            self.give_up(&name, Condition::new("PipelineDeleted", "the pipeline was deleted"));
        }
        self.next.environments.retain(|_, state| !state.closing.is_empty());
        self.next.condition = Condition::new("Deleted", "the pipeline was deleted");
    }

    /// Environments that are no longer in the definition leave.
    pub fn remove_gone(&mut self, definition: &Definition) {
        self.next.deleted = false;
        let gone = |name: &&String| definition.environment(name).is_none_or(|(place, _)| place == 0);
        let gone: Vec<String> = self.next.environments.keys().filter(gone).cloned().collect();
        for name in gone {
            let removed = self.promotion(&name).map(|promotion| (promotion.run, promotion.again + 1));
            self.give_up(&name, Condition::new("EnvironmentRemoved", format!("{name} is no longer in the pipeline")));
            let Some(state) = self.next.environments.get_mut(&name) else { continue };
            // If it comes back in this run, what it makes is not taken for what is closed now.
            state.removed = removed.or(state.removed);
            if definition.environment(&name).is_none() {
                (state.hold, state.healthy) = (None, None);
            }
        }
        let run = self.next.run.as_ref().map(|run| run.number);
        self.next.environments.retain(|name, state| {
            let remembered = state.removed.is_some_and(|(number, _)| Some(number) == run);
            definition.environment(name).is_some() || !state.closing.is_empty() || remembered
        });
    }

    /// The promotion into an environment becomes history; what it has open is closed.
    pub fn give_up(&mut self, name: &str, why: Condition) {
        let Some(state) = self.next.environments.get_mut(name) else { return };
        let Some(mut promotion) = state.promotion.take() else { return };
        if !promotion.phase.is_final() {
            let open = promotion.clone();
            promotion.phase = Phase::Abandoned;
            promotion.why = why;
            state.promotion = Some(promotion.clone());
            let superseded = promotion.why.reason == "Superseded";
            self.tell(name, if superseded { "superseded" } else { "abandoned" }, "");
            self.take_back(name, open, &promotion.why.message);
        }
        let state = self.next.environments.entry(name.to_owned()).or_default();
        state.promotion = None;
        self.past(name, promotion);
    }

    /// Has closed what an attempt has open, or may have. Whoever is still at it has until the end of the lease.
    pub fn take_back(&mut self, name: &str, promotion: Promotion, comment: &str) {
        if may_have_made(&promotion) {
            let lease = promotion.due.filter(|_| promotion.phase == Phase::Attempting && promotion.claimed);
            let closing = Closing {
                due: lease.unwrap_or(self.facts.now).max(self.facts.now),
                promotion,
                tries: 0,
                comment: comment.to_owned(),
            };
            self.next.environments.entry(name.to_owned()).or_default().closing.push(closing);
        }
    }

    /// Orders the closing of what is due for it.
    pub fn close(&mut self) {
        let now = self.facts.now;
        let mut orders = vec![];
        let mut wake = vec![];
        for (name, state) in &mut self.next.environments {
            for closing in &mut state.closing {
                if closing.due <= now {
                    orders.push(Order::Close(Attempt::of(name, &closing.promotion)));
                    closing.due = now + PICK_UP;
                }
                wake.push(closing.due);
            }
        }
        self.orders.extend(orders);
        wake.into_iter().for_each(|at| self.wake_at(at));
    }

    /// A promotion becomes history.
    pub fn past(&mut self, name: &str, promotion: Promotion) {
        self.past.push(Past { environment: name.to_owned(), promotion, at: self.facts.now });
    }
}
