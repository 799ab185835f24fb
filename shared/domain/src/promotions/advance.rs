//! The evaluation of a pipeline: compares what the environments run with what they should run, and decides the next step.

use super::announce::{about, suspended};
use super::attempts::backoff;
use super::definition::{Definition, EnvironmentSpec, InFlight, PromotionSpec, Strategy};
use super::facts::{Attempt, Decision, Facts, Order, PICK_UP, may_have_made};
use super::gates::{self, Gate};
use super::observe::{self, First, Later};
use super::state::{MAX_RETURNS, Phase, Pipeline, Promotion, Run};
use crate::condition::Condition;
use crate::level;
use crate::note::Note;
use crate::time::{Span, Timestamp};

/// Why the next environments wait: the promotion failed, although the targets run its revision.
fn failed(name: &str, promotion: &Promotion) -> Condition {
    let (revision, why) = (&promotion.revision, &promotion.why.message);
    let message = format!("{name} runs {revision}, but its promotion failed ({why}): retry it, or accept it as it is");
    Condition::new("PromotionFailed", message)
}

/// A decision about a pipeline in the making.
pub(super) type Step<'a> = level::Step<'a, Pipeline, Facts<'a>>;

impl Step<'_> {
    /// Evaluates the whole pipeline, and decides.
    pub fn advance(mut self) -> Decision {
        self.count_unanswered();
        match self.facts.definition {
            None => self.delete(),
            Some(definition) => {
                self.remove_gone(definition);
                self.track_health(definition);
                self.begin_run(definition);
                self.next.condition = self.walk(definition);
            }
        }
        self.close();
        self.note_ends();
        let Facts { cause, now, .. } = *self.facts;
        self.commit(cause, now)
    }

    pub fn promotion(&mut self, environment: &str) -> Option<&mut Promotion> {
        self.next.environments.get_mut(environment)?.promotion.as_mut()
    }

    /// Publishes an event about the promotion into an environment.
    pub fn tell(&mut self, environment: &str, what: &str, detail: &str) {
        let Some(promotion) = self.next.environments.get(environment).and_then(|state| state.promotion.as_ref()) else { return };
        self.events.push(about(&self.next, environment, promotion, what, detail, self.facts.now));
    }

    /// Remembers since when each environment has been healthy on its revision, and which cannot be read. An evaluation counts as
    /// long as the revision stays healthy.
    fn track_health(&mut self, definition: &Definition) {
        for environment in &definition.environments {
            let unreadable = observe::unreadable(environment, self.facts.observations);
            let healthy = match observe::first(environment, self.facts.observations, definition.compare) {
                First::Current(revision) => Some(revision.to_owned()),
                _ => None,
            };
            let state = self.next.environments.entry(environment.name.clone()).or_default();
            state.unreadable = unreadable;
            let same =
                |(on, _): &(String, Timestamp)| healthy.as_ref().is_some_and(|revision| definition.compare.same(on, revision));
            if !state.healthy.as_ref().is_some_and(same) {
                state.healthy = healthy.map(|revision| (revision, self.facts.now));
            }
            state.forget_other_evaluation(environment);
        }
    }

    /// Begins a new run when the first environment is healthy on another revision.
    fn begin_run(&mut self, definition: &Definition) {
        let Some(environment) = definition.environments.first() else { return };
        let First::Current(revision) = observe::first(environment, self.facts.observations, definition.compare) else { return };
        if self.next.run.as_ref().is_some_and(|run| definition.compare.same(&run.revision, revision)) {
            return;
        }
        if definition.in_flight == InFlight::Finish && self.goes_on(definition) {
            return;
        }
        // Promotions that have succeeded meanwhile count, even if no evaluation follows in this run.
        if let Some(run) = self.next.run.clone() {
            for environment in definition.environments.iter().skip(1) {
                let later = observe::later(environment, self.facts.observations, &run.revision, definition.compare);
                let decided = !self.is_contested(&environment.name, &run) && !self.awaits_sequence(&environment.name, &run);
                if later == Later::Healthy && decided {
                    self.arrived(&environment.name, &run);
                }
            }
        }
        let (number, before) = self.next.run.as_ref().map_or((self.next.past_runs, ""), |run| (run.number, run.revision.as_str()));
        let returns = self.returns(definition, revision);
        let authors = observe::authors(environment, self.facts.observations);
        let run = Run {
            number: number + 1,
            revision: revision.to_owned(),
            since: self.facts.now,
            authors,
            before: before.to_owned(),
            returns,
        };
        if returns == MAX_RETURNS {
            self.break_circle(&environment.name, &run);
        }
        self.next.run = Some(run);
        for environment in definition.environments.iter().skip(1) {
            let why = Condition::new("Superseded", format!("superseded by {revision}"));
            self.give_up(&environment.name, why);
        }
    }

    /// How many runs in succession return to the revision of the run before the last, if the next one promotes this revision. After
    /// the limit, they are counted anew.
    fn returns(&self, definition: &Definition, revision: &str) -> u32 {
        let run = self.next.run.as_ref().filter(|run| !run.before.is_empty() && definition.compare.same(&run.before, revision));
        run.map_or(0, |run| run.returns % MAX_RETURNS + 1)
    }

    /// Suspends the pipeline, because its first environment returns to the same two revisions again and again.
    fn break_circle(&mut self, first: &str, run: &Run) {
        let message = format!(
            "{first} has alternated between {} and {} {MAX_RETURNS} times: look whether another pipeline promotes back into it",
            run.before, run.revision
        );
        let note = Note { by: "keelway".to_owned(), at: self.facts.now, message, ..Note::default() };
        if self.next.suspended.is_none() {
            self.events.push(suspended(&self.next, first, run, &note.message, self.facts.now));
            self.next.suspended = Some(note);
        }
    }

    /// Whether the present run is not complete, and can continue without a person.
    fn goes_on(&self, definition: &Definition) -> bool {
        let Some(run) = &self.next.run else { return false };
        if self.next.abandoned.contains(&run.revision) {
            return false;
        }
        definition.environments.iter().enumerate().skip(1).find_map(|(place, environment)| {
            let later = observe::later(environment, self.facts.observations, &run.revision, definition.compare);
            let promotion = self.next.environments.get(&environment.name).and_then(|state| state.promotion.as_ref());
            let at_gate = promotion.is_none_or(|promotion| matches!(promotion.phase, Phase::Waiting | Phase::Failed));
            let stuck = definition.promotion(environment).is_none()
                || at_gate && gates::never_opens(&self.next, definition, place)
                || promotion.is_some_and(|promotion| {
                    matches!(promotion.phase, Phase::Abandoned | Phase::Rejected)
                        || promotion.phase == Phase::Failed && promotion.due.is_none()
                        || promotion.completed
                });
            match later {
                Later::Healthy if promotion.is_some_and(|promotion| promotion.run == run.number && promotion.ended_badly()) => {
                    Some(false)
                }
                Later::Healthy if self.awaits_sequence(&environment.name, run) => Some(true),
                Later::Healthy => None,
                _ => Some(!stuck),
            }
        }) == Some(true)
    }

    /// Walks the environments up to the first one that does not run the revision, and takes the step that it needs. Returns why the
    /// pipeline is not done.
    fn walk(&mut self, definition: &Definition) -> Condition {
        let Some(first) = definition.environments.first() else { return Condition::default() };
        let waiting = match observe::first(first, self.facts.observations, definition.compare) {
            First::Unknown(error) => Some(Condition::new("TargetNotReadable", error)),
            First::Mixed => Some(Condition::new("EnvironmentNotReady", "Waiting for all targets to have the same revision")),
            First::Unready(_) => Some(Condition::new("EnvironmentNotReady", "Waiting for all targets to be ready")),
            First::Current(_) => None,
        };
        let Some(run) = self.next.run.clone() else { return waiting.unwrap_or_default() };
        let mut stopped: Option<Condition> = None;
        // The first environment that the revision has not passed in this run.
        let mut ahead: Option<&str> = None;
        for (place, environment) in definition.environments.iter().enumerate().skip(1) {
            let name = &environment.name;
            let later = observe::later(environment, self.facts.observations, &run.revision, definition.compare);
            if stopped.is_some() {
                match ahead {
                    Some(before) => self.recall(name, before, &run),
                    None => self.keep(name),
                }
                ahead = ahead.or_else(|| (later != Later::Healthy && !self.was_passed(name, &run)).then_some(name.as_str()));
                continue;
            }
            if later != Later::Healthy && !self.was_passed(name, &run) {
                ahead = Some(name.as_str());
            }
            let rollout = |text: &str| Condition::new("WaitingForRollout", format!("{text} {}", run.revision));
            let stop = match later {
                Later::Healthy if self.is_contested(name, &run) || self.awaits_sequence(name, &run) => match self.promotion(name) {
                    Some(promotion) if promotion.ended_badly() => failed(name, promotion),
                    // The promotion is attempted again, or its sequence continues. While the first environment changes, nothing new
                    // begins.
                    _ if waiting.is_some() => Condition::default(),
                    _ => {
                        stopped = Some(self.promote(definition, (place, environment), &run));
                        continue;
                    }
                },
                Later::Healthy => {
                    self.arrived(name, &run);
                    continue;
                }
                Later::Unknown(error) => Condition::new("TargetNotReadable", error),
                Later::Unready => rollout(&format!("not all targets of {name} are healthy on")),
                Later::Partly => rollout(&format!("not all targets of {name} run")),
                // While the first environment changes, what is in progress continues, but nothing new begins.
                Later::Absent if waiting.is_some() => Condition::default(),
                Later::Absent => {
                    stopped = Some(self.promote(definition, (place, environment), &run));
                    continue;
                }
            };
            self.keep(name);
            stopped = Some(stop);
        }
        waiting.or(stopped).unwrap_or_default()
    }

    /// Whether all targets were healthy on the revision earlier in this run.
    fn was_passed(&self, name: &str, run: &Run) -> bool {
        let Some(state) = self.next.environments.get(name) else { return false };
        let completed = |promotion: &Promotion| promotion.run == run.number && promotion.completed;
        state.passed == Some(run.number) || state.promotion.as_ref().is_some_and(completed)
    }

    /// Takes back what was ordered for an environment that now comes after one that the revision has not passed. It is ordered
    /// again in its turn.
    fn recall(&mut self, name: &str, before: &str, run: &Run) {
        let open = |promotion: &&mut Promotion| {
            let failed = promotion.phase == Phase::Failed && promotion.due.is_some();
            promotion.run == run.number && (failed || matches!(promotion.phase, Phase::Attempting | Phase::Created))
        };
        let Some(again) = self.promotion(name).filter(open).map(|promotion| promotion.again + 1) else { return };
        self.give_up(name, Condition::new("OutOfTurn", format!("{before} comes before {name} now")));
        if let Some(state) = self.next.environments.get_mut(name) {
            state.removed = Some((run.number, again));
        }
    }

    /// Whether a promotion failed although all targets are healthy on its revision. It then needs a success of its own.
    fn is_contested(&mut self, name: &str, run: &Run) -> bool {
        let Some(promotion) = self.promotion(name).filter(|promotion| promotion.run == run.number) else { return false };
        promotion.contested |= promotion.ended_badly();
        promotion.contested && promotion.phase != Phase::Succeeded
    }

    /// Whether a sequence carries the promotion out, or may do so. Its end decides, even if all targets are healthy on the revision
    /// already: the sequence may still test what it has deployed.
    fn awaits_sequence(&self, name: &str, run: &Run) -> bool {
        let promotion = self.next.environments.get(name).and_then(|state| state.promotion.as_ref());
        promotion.filter(|promotion| promotion.run == run.number).is_some_and(|promotion| {
            let ended = promotion.phase == Phase::Failed && promotion.due.is_none();
            matches!(promotion.strategy, Some(Strategy::Sequence(_))) && may_have_made(promotion) && !ended
        })
    }

    /// All targets are healthy on the revision of the run.
    fn arrived(&mut self, name: &str, run: &Run) {
        if let Some(state) = self.next.environments.get_mut(name) {
            state.passed = Some(run.number);
        }
        let now = self.facts.now;
        let Some(promotion) = self.promotion(name).filter(|promotion| promotion.run == run.number && !promotion.completed) else {
            return;
        };
        let open = promotion.clone();
        promotion.completed = true;
        promotion.done = Some(now);
        promotion.contested = false;
        if promotion.phase != Phase::Succeeded {
            promotion.phase = Phase::Succeeded;
            promotion.why = Condition::new("Running", "all targets run it and are healthy");
            promotion.due = None;
            self.take_back(name, open, "this revision already runs in all targets, so nothing is left to merge");
        }
        self.tell(name, "completed", "");
    }

    /// Begins nothing new; watches what is in progress.
    fn keep(&mut self, name: &str) {
        let due = self.promotion(name).filter(|promotion| promotion.phase == Phase::Attempting).and_then(|promotion| promotion.due);
        if let Some(due) = due {
            if due > self.facts.now { self.wake_at(due) } else { self.lost(name) }
        }
    }

    /// No target runs the revision: creates the promotion, checks the gates, and orders an attempt.
    fn promote(&mut self, definition: &Definition, at: (usize, &EnvironmentSpec), run: &Run) -> Condition {
        let name = &at.1.name;
        let Some(settings) = definition.promotion(at.1) else {
            return Condition::new("NoPromotionConfigured", format!("neither {name} nor the pipeline says how to promote into it"));
        };
        let current = self.promotion(name).is_some_and(|promotion| promotion.run == run.number);
        if !current {
            self.give_up(name, Condition::new("Superseded", format!("superseded by {}", run.revision)));
            let state = self.next.environments.entry(name.clone()).or_default();
            let again = state.removed.filter(|(number, _)| *number == run.number).map_or(0, |(_, again)| again);
            state.promotion = Some(Promotion { again, ..Promotion::needed(run, !settings.manual, self.facts.now) });
        }
        let now = self.facts.now;
        let Some(promotion) = self.promotion(name) else { return Condition::default() };
        if promotion.phase == Phase::Waiting && promotion.again == 0 {
            // A promotion without attempts follows the present definition. Its approvals stay.
            promotion.approved = settings.approves(promotion.approvals.len());
        }
        match promotion.phase {
            Phase::Waiting => self.pass(at, settings),
            Phase::Attempting => {
                self.keep(name);
                let lost = |promotion: &&mut Promotion| promotion.phase == Phase::Failed;
                match self.promotion(name).filter(lost).and_then(|promotion| promotion.due) {
                    Some(due) if due <= now => self.pass(at, settings),
                    Some(due) => {
                        self.wake_at(due);
                        self.why(name)
                    }
                    None => self.why(name),
                }
            }
            Phase::Created => promotion.why.clone(),
            Phase::Failed => {
                let changed = promotion.strategy.as_ref().is_some_and(|strategy| *strategy != settings.strategy);
                let why = promotion.why.clone();
                match promotion.due {
                    Some(due) if due > now && !changed => {
                        self.wake_at(due);
                        why
                    }
                    None if !changed => why,
                    _ => self.pass(at, settings),
                }
            }
            Phase::Succeeded if promotion.completed => Condition::new(
                "Drifted",
                format!("{name} ran {} and does not any more: retry the promotion, or leave it", run.revision),
            ),
            Phase::Succeeded => {
                Condition::new("WaitingForRollout", format!("{} was promoted into {name}, which does not run it yet", run.revision))
            }
            Phase::Abandoned | Phase::Rejected => promotion.why.clone(),
        }
    }

    /// Orders an attempt if all gates are open.
    fn pass(&mut self, at: (usize, &EnvironmentSpec), settings: &PromotionSpec) -> Condition {
        let name = &at.1.name;
        self.evaluate(at.0);
        let Some(promotion) = self.promotion(name).cloned() else { return Condition::default() };
        if let Some(Gate { why, opens }) = gates::closed(&self.next, at.0, &promotion, settings, self.facts) {
            if let Some(opens) = opens.filter(|opens| *opens > self.facts.now) {
                self.wake_at(opens);
            }
            self.blocked(name, &why, settings);
            return why;
        }
        self.attempt(name, settings);
        self.why(name)
    }

    fn why(&mut self, name: &str) -> Condition {
        self.promotion(name).map(|promotion| promotion.why.clone()).unwrap_or_default()
    }

    /// Publishes once for each gate that it is closed, and reminds the people who can open it.
    fn blocked(&mut self, name: &str, why: &Condition, settings: &PromotionSpec) {
        let now = self.facts.now;
        let Some(promotion) = self.promotion(name) else { return };
        let fresh = promotion.why.reason != why.reason;
        let waits = why.reason == "ApprovalNeeded";
        promotion.why = why.clone();
        let remind = settings.approval.remind.filter(|_| waits);
        let next = remind.map(|remind| promotion.reminded.unwrap_or(promotion.since) + remind);
        if next.is_some_and(|next| next <= now) {
            promotion.reminded = Some(now);
            self.tell(name, "reminded", &now.0.to_string());
            self.wake_at(now + remind.unwrap_or_default());
        } else if let Some(next) = next {
            self.wake_at(next);
        }
        if fresh {
            self.tell(name, if waits { "awaited" } else { "blocked" }, &why.reason);
        }
    }

    /// Orders the next attempt.
    fn attempt(&mut self, name: &str, settings: &PromotionSpec) {
        let now = self.facts.now;
        let Some(promotion) = self.promotion(name) else { return };
        promotion.phase = Phase::Attempting;
        promotion.attempt += 1;
        promotion.attempted = Some(now);
        promotion.due = Some(now + PICK_UP);
        promotion.claimed = false;
        promotion.strategy = Some(settings.strategy.clone());
        promotion.why = Condition::new("Attempting", format!("{} is being promoted into {name}", promotion.revision));
        let attempt = Attempt::of(name, promotion);
        self.orders.push(Order::Attempt(attempt.clone()));
        self.wake_at(now + PICK_UP);
        self.tell(name, "started", &attempt.attempt.to_string());
    }

    /// Nobody has reported the end of an attempt: its worker stopped, or its message was lost.
    fn lost(&mut self, name: &str) {
        let now = self.facts.now;
        let (namespace, pipeline) = (self.next.namespace.clone(), self.next.name.clone());
        let Some(promotion) = self.promotion(name) else { return };
        promotion.fruitless = promotion.fruitless.saturating_add(1);
        let pause = |times| backoff(&Attempt::of(name, promotion), times, (&namespace, &pipeline));
        let (was, wait) = if promotion.claimed {
            // The host is not at fault, but whatever stopped the function may do so each time.
            let wait = if promotion.fruitless == 1 { Span(0) } else { pause(promotion.fruitless - 1) };
            ("whoever carried out the attempt did not tell how it ended", wait)
        } else {
            ("nobody took up the attempt", pause(promotion.fruitless))
        };
        promotion.phase = Phase::Failed;
        promotion.why = Condition::new("AttemptLost", was);
        promotion.due = Some(now + wait);
    }
}
