//! The evaluation of a config: compares what is deployed with what should be, and decides the next step.

use super::announce;
use super::deployment::{Deployment, Status, Why};
use super::facts::{Applied, Decision, Facts, Order, QUIET, QUIET_MOST, TAKE_UP};
use super::part::Part;
use super::resolve::{self, Images, Resolved, causes};
use super::state::{Config, Settling};
use crate::condition::Condition;
use crate::deployments::definition::{Concurrency, Definition, Resume};
use crate::event::Object;
use crate::level;
use crate::note::Note;
use crate::time::Timestamp;

/// A decision about a config in the making.
pub(super) type Step<'a> = level::Step<'a, Config, Facts<'a>>;

impl Step<'_> {
    /// Evaluates the whole config, and decides.
    pub fn advance(mut self) -> Decision {
        match self.facts.applied {
            None => self.delete(),
            Some(applied) => {
                self.next.deleted = false;
                self.observe(applied);
                self.live();
                self.undo(applied);
                // A rollback has changed the definition; what follows goes by the one that this commit writes.
                let rewritten =
                    self.with.rewritten.clone().map(|definition| Applied { definition, request: None, ..applied.after() });
                let applied = rewritten.as_ref().unwrap_or(applied);
                self.next.observed = applied.version;
                self.resume_by_itself(&applied.definition);
                self.next.condition = self.follow(applied);
                self.prune(&applied.definition);
                self.look(applied);
            }
        }
        self.offer();
        self.tell();
        let Facts { cause, now, .. } = *self.facts;
        self.commit(cause, now)
    }

    /// Whether an earlier decision has found that the last deployment is to be rolled back.
    pub fn undone_before(&self) -> bool {
        self.before.last.as_ref().is_some_and(|last| !last.undo.is_empty())
    }

    /// Tells something about the config.
    pub fn tell_config(&mut self, what: &str, data: Object) {
        self.events.push(announce::about_config(&self.next, what, data, self.facts.now));
    }

    /// The config was deleted: cancels what runs.
    fn delete(&mut self) {
        self.next.deleted = true;
        (self.next.settling, self.next.dismissed) = (None, None);
        // A config that is applied again begins anew, except for the numbers of its versions and the state of its alarms: an older
        // event about an alarm changes nothing then, either.
        (self.next.paused, self.next.spec_paused, self.next.suspended) = (None, false, None);
        self.next.condition = Condition::new("Deleted", "the deployment config was deleted");
        if let Some(pending) = self.next.pending.take() {
            self.answer_task(&pending, "aborted", "the deployment config was deleted");
        }
        self.cancel("Deleted", "the deployment config was deleted");
        self.live();
    }

    /// Takes over `spec.paused` if the manifest has changed it.
    fn observe(&mut self, applied: &Applied) {
        if applied.definition.paused != self.next.spec_paused {
            self.next.spec_paused = applied.definition.paused;
            let note = Note { by: applied.by.clone(), at: self.facts.now, message: "spec.paused".into(), ..Note::default() };
            if applied.definition.paused { self.pause(note) } else { self.resume() }
        }
    }

    /// Pauses the config: nothing new is deployed until it is resumed.
    pub fn pause(&mut self, note: Note) {
        if self.next.paused.is_none() {
            self.next.paused = Some(note);
            self.tell_config("deploymentconfig.paused", Object::new());
        }
    }

    /// Resumes the config.
    pub fn resume(&mut self) {
        if self.next.paused.take().is_some() {
            self.tell_config("deploymentconfig.resumed", Object::new());
        }
    }

    /// Lets the triggers fire again.
    pub fn resume_triggers(&mut self, why: &str) {
        if self.next.suspended.take().is_some() {
            self.tell_config("triggers.resumed", Object::from_iter([("message".into(), why.into())]));
        }
    }

    fn resume_by_itself(&mut self, definition: &Definition) {
        let Some(suspended) = self.next.suspended.as_ref().filter(|_| definition.resume == Resume::OnNewerImage) else { return };
        let newer = |change: &super::definition::ImageChange| {
            change.automatic && self.facts.heads.get(&change.from).is_some_and(|head| head.at > suspended.note.at)
        };
        if suspended.version > 0 && definition.image_changes().any(newer) {
            self.resume_triggers("a newer image was pushed");
        }
    }

    /// Cuts the version that is wanted, as soon as nothing runs. Returns why there is nothing more to do, for people.
    fn follow(&mut self, applied: &Applied) -> Condition {
        if let Some(paused) = &self.next.paused {
            let by = if paused.by.is_empty() { String::new() } else { format!(" by {}", paused.by) };
            self.next.settling = None;
            return Condition::new("Paused", format!("paused{by}: resume it to deploy again"));
        }
        if self.next.in_flight().is_none() {
            if let Some(pending) = self.next.pending.take() {
                self.start(pending);
            } else if let Some(request) = resolve::request_that_waits(&self.next, applied) {
                let which = if self.next.suspended.is_some() { Images::Same } else { Images::Unattended };
                let resolved = resolve::resolve(&self.next, &applied.definition, self.facts.heads, which);
                if resolved.unresolved.is_empty() && resolved.blank.is_empty() {
                    let causes =
                        if request.causes.is_empty() { vec![Why::command(&applied.by, None)] } else { request.causes.clone() };
                    let deployment = self.cut(&applied.definition, resolved, causes);
                    self.start(deployment);
                }
            }
        }
        if self.next.pending.is_some() {
            return Condition::new("AwaitingCancellation", "the next version waits until the one that runs has ended");
        }
        self.follow_triggers(applied)
    }

    fn follow_triggers(&mut self, applied: &Applied) -> Condition {
        let definition = &applied.definition;
        let resolved = resolve::resolve(&self.next, definition, self.facts.heads, Images::Unattended);
        let first = self.next.latest == 0;
        if first && definition.triggers.iter().all(|trigger| *trigger == super::definition::Trigger::Manual) {
            let condition = Condition::new("ManualOnly", "no trigger cuts a version: ask for one");
            // A pipeline may have sent this message; it must learn that nothing runs here.
            if self.before.condition != condition {
                self.events.push(announce::nothing_runs(&self.next, self.facts.now));
            }
            return condition;
        }
        // A further change makes the dismissed change another one, even if it is reverted later.
        if let Some(dismissed) = self.next.dismissed.as_mut().filter(|dismissed| dismissed.template != resolved.content.template) {
            dismissed.template = 0;
        }
        let causes = causes(&self.next, &resolved, &applied.by, self.facts.heads);
        let incomplete = incomplete(&resolved);
        if causes.is_empty() && (incomplete.is_none() || !first) {
            self.next.settling = None;
            return incomplete.unwrap_or_default();
        }
        if let Some(suspended) = &mut self.next.suspended {
            self.next.settling = None;
            let (by, template) = (suspended.note.by.clone(), resolved.content.template);
            if suspended.suppressed != template {
                suspended.suppressed = template;
                let causes = serde_json::to_value(&causes).unwrap_or_default();
                self.tell_config("trigger.suppressed", Object::from_iter([("causes".into(), causes)]));
            }
            let by = if by.is_empty() { String::new() } else { format!(" by {by}") };
            return Condition::new(
                "TriggersSuspended",
                format!("triggers are suspended{by}: a change waits until they are resumed"),
            );
        }
        if self.next.dismissed.as_ref().is_some_and(|dismissed| dismissed.template == resolved.content.template) {
            self.next.settling = None;
            return Condition::new("Cancelled", "the change was cancelled before it became a version: ask for one to deploy it");
        }
        if let Some(incomplete) = incomplete {
            self.next.settling = None;
            if self.next.condition != incomplete {
                let data = Object::from_iter([("message".into(), incomplete.message.as_str().into())]);
                self.tell_config("trigger.unresolved", data);
            }
            return incomplete;
        }
        self.settle_down(definition, resolved, causes)
    }

    /// Cuts a version when the change is a moment old, so that a change of the configuration and of an image become one version.
    fn settle_down(&mut self, definition: &Definition, resolved: Resolved, causes: Vec<Why>) -> Condition {
        let now = self.facts.now;
        let settling = match self.next.settling.take() {
            Some(settling) if settling.template == resolved.content.template => settling,
            other => {
                let since = other.as_ref().map_or(now, |other| other.since);
                let due = (now + QUIET).min(since + QUIET_MOST).max(now);
                let earlier = other.map(|other| other.causes).unwrap_or_default();
                Settling { template: resolved.content.template, since, due, causes: merged(earlier, causes) }
            }
        };
        if settling.due > now {
            self.wake_at(settling.due);
            self.next.settling = Some(settling);
            return Condition::new("Settling", "a change is about to become a version");
        }
        if self.next.in_flight().is_none() {
            let deployment = self.cut(definition, resolved, settling.causes);
            self.start(deployment);
            return Condition::default();
        }
        // It is over for whoever looks next, too, by whatever clock: one that is behind would have the change settle once more, and
        // the wake-up would undo that.
        let outdated = self.is_outdated_by(&settling.causes);
        self.next.settling = Some(Settling { due: Timestamp(0), ..settling });
        if definition.concurrency == Concurrency::Supersede && outdated {
            self.supersede();
            // Nobody had claimed the deployment, so it has ended already.
            if self.next.in_flight().is_none() {
                let causes = self.next.settling.take().map(|settling| settling.causes).unwrap_or_default();
                let deployment = self.cut(definition, resolved, causes);
                self.start(deployment);
                return Condition::default();
            }
        }
        Condition::new("AwaitingCancellation", "the next version waits until the one that runs has ended")
    }

    /// Whether a change replaces the version that runs. The tag that a config follows mostly points to another image than the one
    /// that a sequence asks for: only a later push outdates what carries the task out, or else no task would ever pass there.
    fn is_outdated_by(&self, causes: &[Why]) -> bool {
        let task = self.next.in_flight().filter(|running| running.task.is_some());
        task.is_none_or(|running| causes.iter().any(|why| !matches!(why, Why::ImageChange { at, .. } if *at <= running.since)))
    }

    /// Orders the start of a deployer, if Keelway starts it and nobody has claimed the deployment; or tells Keelway's own deployer
    /// at once that its task has changed.
    fn offer(&mut self) {
        let now = self.facts.now;
        let paused = self.next.paused.is_some();
        if self.orders.is_empty()
            && let Some((n, attempt)) = self.told_otherwise()
        {
            self.orders.push(Order::Start { n, attempt, at: now });
            self.expect(now + TAKE_UP);
        }
        let Some(last) =
            self.next.last.as_mut().filter(|last| last.content.starts && last.cancel.is_none() && last.report.is_none())
        else {
            return;
        };
        let unclaimed = last.status == Status::New && !paused;
        if !unclaimed {
            return;
        }
        let pause = last.limits.offer_again();
        if last.offered.is_none_or(|offered| offered + pause <= now) {
            last.offered = Some(now);
            self.orders.push(Order::Start { n: last.n, attempt: last.attempt, at: now });
        }
        if let Some(again) = last.offered.map(|offered| offered + pause) {
            self.wake_at(again);
        }
    }

    /// Plans a second order, in case nobody has taken up the first one by then.
    fn expect(&mut self, until: Timestamp) {
        let Some(d) = self.next.last.as_mut() else { return };
        if let Some(claim) = d.claim.as_mut().filter(|claim| claim.by == announce::SOURCE) {
            claim.lease = claim.lease.min(until);
        }
        if let Some(claim) = d.part.as_mut().and_then(|part| part.claim.as_mut()) {
            claim.lease = claim.lease.min(until);
        }
        self.wake_at(until);
    }

    /// The attempt that Keelway's own deployer carries out, if it was paused, resumed, cancelled or told to proceed.
    fn told_otherwise(&self) -> Option<(u64, u32)> {
        let claimed = |d: &Deployment| d.content.starts && d.claim.as_ref().is_some_and(|claim| claim.by == announce::SOURCE);
        let carries = |d: &Deployment| d.part.as_ref().is_some_and(Part::is_open);
        let d = self.next.in_flight().filter(|d| claimed(d) || carries(d)).filter(|d| d.report.is_none())?;
        let before = self.before.in_flight().filter(|before| (before.n, before.attempt) == (d.n, d.attempt))?;
        let cancelled = d.cancel.is_some() && before.cancel.is_none();
        let paused = self.next.paused.is_some() != self.before.paused.is_some();
        (cancelled || paused || d.proceeds != before.proceeds).then_some((d.n, d.attempt))
    }

    /// Publishes each status of a deployment once.
    pub fn tell(&mut self) {
        let Some(mut last) = self.next.last.take() else { return };
        let now = self.facts.now;
        let reached = |status: Status, last: &Deployment| match status {
            Status::New => true,
            Status::Pending => last.claim.is_some(),
            Status::Running => last.claim.as_ref().is_some_and(|claim| claim.running.is_some()),
            Status::Complete | Status::Failed => last.status == status,
        };
        let told = last.told;
        for status in [Status::New, Status::Pending, Status::Running, Status::Complete, Status::Failed] {
            if told & status.bit() != 0 || !reached(status, &last) {
                continue;
            }
            last.told |= status.bit();
            let shown = Deployment { status, ..last.clone() };
            match status {
                Status::New => {
                    let what = if last.attempt == 1 { "created" } else { "retried" };
                    self.events.push(announce::about(&self.next, &shown, what, now));
                    self.events.push(announce::offer(&self.next, &shown, now));
                    self.events.push(announce::observed(&self.next, &shown, now));
                }
                Status::Pending => self.events.push(announce::about(&self.next, &shown, "pending", now)),
                Status::Running => self.events.push(announce::about(&self.next, &shown, "running", now)),
                Status::Complete => self.events.push(announce::about(&self.next, &shown, "complete", now)),
                Status::Failed => self.events.push(announce::about(&self.next, &shown, "failed", now)),
            }
            if status.is_final() {
                self.events.push(announce::observed(&self.next, &shown, now));
            }
        }
        self.next.last = Some(last);
    }
}

/// The reason why a definition cannot be deployed yet.
pub(super) fn incomplete(resolved: &Resolved) -> Option<Condition> {
    let list = |names: Vec<String>| names.join(", ");
    if !resolved.unresolved.is_empty() {
        let tags = list(resolved.unresolved.iter().map(ToString::to_string).collect());
        let remedy = "push an image, or apply an ArtifactSource that tells where it comes from";
        return Some(Condition::new("Unresolved", format!("no image recorded for {tags}: {remedy}")));
    }
    (!resolved.blank.is_empty())
        .then(|| Condition::new("Unresolved", format!("no image is named for container {}", list(resolved.blank.clone()))))
}

/// Both lists without duplicates. Of the moves of one tag, only the last is kept.
fn merged(mut all: Vec<Why>, more: Vec<Why>) -> Vec<Why> {
    let tag = |why: &Why| match why {
        Why::ImageChange { from, .. } => Some(from.clone()),
        _ => None,
    };
    for why in more {
        all.retain(|known| *known != why && (tag(known).is_none() || tag(known) != tag(&why)));
        all.push(why);
    }
    all.truncate(super::MAX_CAUSES);
    all
}
