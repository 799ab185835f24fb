//! How promotions leave the state: they become history, and what they have open is closed.

use super::advance::Step;
use super::announce::about;
use super::definition::Definition;
use super::facts::{Attempt, CLOSING, DAILY, Order, PICK_UP, Past, may_have_made};
use super::state::{Closing, MAX_CLOSING, Made, NOT_TAKEN_BACK, Phase, Promotion};
use crate::condition::Condition;

impl Step<'_> {
    /// The pipeline was deleted: closes what is open.
    pub fn delete(&mut self) {
        self.next.deleted = true;
        // If the pipeline is applied again, the numbers of its runs continue, so that new effects differ from those that are being
        // closed.
        self.next.past_runs = self.next.run.take().map_or(self.next.past_runs, |run| run.number);
        let names: Vec<String> = self.next.environments.keys().cloned().collect();
        for name in names {
            self.give_up(&name, Condition::new("PipelineDeleted", "the pipeline was deleted"));
        }
        self.next.environments.retain(|_, state| !state.closing.is_empty());
        self.next.condition = Condition::new("Deleted", "the pipeline was deleted");
    }

    /// Removes environments that are no longer in the definition.
    pub fn remove_gone(&mut self, definition: &Definition) {
        self.next.deleted = false;
        let gone = |name: &&String| definition.environment(name).is_none_or(|(place, _)| place == 0);
        let gone: Vec<String> = self.next.environments.keys().filter(gone).cloned().collect();
        for name in gone {
            let removed = self.promotion(&name).map(|promotion| (promotion.run, promotion.again + 1));
            self.give_up(&name, Condition::new("EnvironmentRemoved", format!("{name} is no longer in the pipeline")));
            let Some(state) = self.next.environments.get_mut(&name) else { continue };
            // If the environment comes back in this run, its new effects must differ from those that are being closed.
            state.removed = removed.or(state.removed);
            if definition.environment(&name).is_none() {
                (state.hold, state.healthy, state.evaluation) = (None, None, None);
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
        let of = Attempt::of(name, &promotion);
        // One entry of history for each promotion: what is being closed may turn out to be merged.
        match state.closing.iter_mut().find(|closing| of.is_of(&closing.promotion)) {
            Some(closing) => closing.gone = Some((promotion.phase, promotion.why)),
            None => self.past(name, promotion),
        }
    }

    /// Orders to close what an attempt has open, or may have. A worker that is still busy has until the end of its lease.
    pub fn take_back(&mut self, name: &str, promotion: Promotion, comment: &str) {
        if !may_have_made(&promotion) {
            return;
        }
        let lease = promotion.due.filter(|_| promotion.phase == Phase::Attempting && promotion.claimed);
        let due = lease.unwrap_or(self.facts.now).max(self.facts.now);
        let of = Attempt::of(name, &promotion);
        let comment = comment.to_owned();
        let closing = Closing { due, promotion, tries: 0, ordered: false, failing: None, comment, gone: None };
        let all = &mut self.next.environments.entry(name.to_owned()).or_default().closing;
        // All attempts of a promotion share one branch: closing it once closes the effects of all of them.
        all.retain(|known| !of.is_of(&known.promotion));
        all.push(closing);
        if all.len() > MAX_CLOSING {
            // One that nobody has tried to close yet may still succeed.
            let oldest = all.iter().position(|closing| closing.tries > 0).unwrap_or_default();
            let oldest = all.remove(oldest);
            self.leave_open(name, oldest);
        }
    }

    /// Leaves what an attempt has open: a person has to close it.
    pub fn leave_open(&mut self, name: &str, closing: Closing) {
        let Closing { mut promotion, tries, .. } = closing;
        let what = match &promotion.effect {
            Some(Made::PullRequest { url, .. }) => url.clone(),
            Some(Made::Sequence { context }) => format!("sequence {context}"),
            Some(Made::Notification { .. }) | None => "what its attempt may have made".to_owned(),
        };
        promotion.phase = Phase::Abandoned;
        promotion.due = None;
        promotion.why =
            Condition::new(NOT_TAKEN_BACK, format!("{what} could not be taken back in {tries} tries: close it by hand"));
        let told = about(&self.next, name, &promotion, "left", &tries.to_string(), self.facts.now);
        self.events.push(told);
        self.past(name, promotion);
    }

    /// A closing without a report for too long counts as tried, so that a successor no longer waits for it.
    pub fn count_unanswered(&mut self) {
        let now = self.facts.now;
        let all = self.next.environments.values_mut().flat_map(|state| &mut state.closing);
        for closing in all.filter(|closing| closing.ordered && closing.due <= now) {
            closing.ordered = false;
            closing.tries += 1;
            closing.failing.get_or_insert(now);
        }
    }

    /// Orders the closings that are due.
    pub fn close(&mut self) {
        let now = self.facts.now;
        let mut orders = vec![];
        let mut wake = vec![];
        for (name, state) in &mut self.next.environments {
            for closing in &mut state.closing {
                if closing.due <= now {
                    orders.push(Order::Close(Attempt::of(name, &closing.promotion)));
                    closing.ordered = true;
                    let failing = closing.failing.is_some_and(|since| now - since >= DAILY);
                    closing.due = now
                        + match closing.tries {
                            0 => CLOSING,
                            _ if failing => DAILY,
                            _ => PICK_UP,
                        };
                }
                wake.push(closing.due);
            }
        }
        self.orders.extend(orders);
        wake.into_iter().for_each(|at| self.wake_at(at));
    }

    /// Notes when a promotion was over, which it stays until it is superseded, and that one which is attempted anew is not. Of what
    /// was over before this was noted, the time is not known.
    pub fn note_ends(&mut self) {
        let (before, now) = (self.before, self.facts.now);
        for (name, state) in &mut self.next.environments {
            let Some(promotion) = &mut state.promotion else { continue };
            let earlier = before.environments.get(name).and_then(|state| state.promotion.as_ref());
            let known = earlier.is_some_and(|earlier| earlier.run == promotion.run && earlier.is_over());
            match promotion.is_over() {
                true if !known => promotion.done = promotion.done.or(Some(now)),
                true => {}
                false => promotion.done = None,
            }
        }
    }

    /// Moves a promotion into the history.
    pub fn past(&mut self, name: &str, promotion: Promotion) {
        self.with.past.push(Past { environment: name.to_owned(), promotion, at: self.facts.now });
    }
}
