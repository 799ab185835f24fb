//! The course of a deployment: claims, deadlines, cancellation, reports, and what follows its end.

use super::advance::Step;
use super::announce;
use super::deployment::{Cancel, Deployment, Status};
use super::drift::Watch;
use super::facts::{ALARM_SKEW, Applied, Back, Order, Past, STOP, Snapshot, TAKE_UP};
use super::part::Part;
use super::state::Version;
use crate::event::Object;
use crate::note::Note;
use crate::time::Timestamp;

impl Step<'_> {
    /// Checks the running deployment: has it ended, or must it end?
    pub fn live(&mut self) {
        let now = self.facts.now;
        let paused = self.next.paused.is_some();
        let Some(d) = self.next.last.as_mut().filter(|d| !d.status.is_final()) else { return };
        // While it is paused, its clock stands still.
        match d.held {
            None if paused && d.cancel.is_none() => d.held = Some(now),
            Some(held) if !paused => {
                d.held = None;
                d.due = d.due.map(|due| due + (now - held));
            }
            _ => {}
        }
        if self.takes_back() {
            return;
        }
        let Some(d) = self.next.last.as_mut().filter(|d| !d.status.is_final()) else { return };
        if let Some(report) = d.report.clone() {
            let behind: Vec<&str> =
                d.progress.targets.iter().filter(|(_, at)| at.status != Status::Complete).map(|(name, _)| name.as_str()).collect();
            let (reason, message) = match (report.exit, &d.cancel) {
                (Some(0), _) if d.part.as_ref().is_some_and(Part::has_failed) => {
                    ("DeployerFailed", d.part.as_ref().map(|part| part.message.clone()).unwrap_or_default())
                }
                (Some(0), _) if d.part.as_ref().is_some_and(Part::is_open) => {
                    ("DeployerFailed", "the deployer exited while Keelway was carrying the strategy out for it".to_owned())
                }
                (Some(0), _) if behind.is_empty() => return self.complete(),
                (Some(0), _) => ("TargetsIncomplete", format!("not all targets are complete: {}", behind.join(", "))),
                (_, Some(cancel)) => (cancel.reason.as_str(), cancel.message.clone()),
                (Some(code), None) => ("DeployerFailed", format!("the deployer exited with {code}{}", after(&report.message))),
                (None, None) => ("DeployerFailed", format!("the deployer did not run{}", after(&report.message))),
            };
            let reason = reason.to_owned();
            return self.fail(&reason, &message);
        }
        if let Some(cancel) = d.cancel.clone() {
            if d.claim.is_none() {
                return self.fail(&cancel.reason, &cancel.message);
            }
            if cancel.due <= now {
                return self.fail(&cancel.reason, &format!("{}; the deployer did not stop in time", cancel.message));
            }
            self.wake_at(cancel.due);
        }
        self.carry();
        self.leases();
        self.deadlines();
    }

    /// Orders Keelway's own deployer to do what another deployer asked for, and repeats the order if there is no sign of it.
    fn carry(&mut self) {
        let now = self.facts.now;
        let Some(d) = self.next.last.as_mut() else { return };
        let Some(part) = d.part.as_mut().filter(|part| part.is_open()) else { return };
        if part.overdue_at() <= now {
            part.ordered = Some(now);
            self.orders.push(Order::Start { n: d.n, attempt: d.attempt, at: now });
        }
        let next = part.overdue_at();
        self.wake_at(next);
    }

    /// Whether the deployment still waits for Keelway to revert its changes. It fails afterwards, or when that takes too long.
    fn takes_back(&mut self) -> bool {
        let part = self.next.last.as_ref().filter(|d| !d.status.is_final()).and_then(|d| d.part.as_ref());
        let Some((part, back)) = part.and_then(|part| Some((part, part.back.clone()?))) else { return false };
        if !part.is_open() {
            self.has_failed(&back.reason, &back.message);
        } else if back.due <= self.facts.now {
            self.has_failed(&back.reason, &format!("{}; what was changed could not be taken back in time", back.message));
        } else {
            self.carry();
            self.wake_at(back.due);
        }
        true
    }

    /// Ends the claim of a deployer that has not been heard of. Keelway's own deployer is ordered to continue.
    fn leases(&mut self) {
        let now = self.facts.now;
        let Some(d) = self.next.last.as_mut().filter(|d| !d.status.is_final()) else { return };
        let Some(claim) = &mut d.claim else { return };
        if claim.lease > now {
            let lease = claim.lease;
            return self.wake_at(lease);
        }
        // The deployer of a cancelled deployment reverts its changes.
        if d.content.starts && claim.by == announce::SOURCE {
            claim.lease = now + TAKE_UP;
            self.orders.push(Order::Start { n: d.n, attempt: d.attempt, at: now });
            return self.wake_at(now + TAKE_UP);
        }
        let (by, cancel) = (claim.by.clone(), d.cancel.clone());
        match cancel {
            Some(cancel) => self.fail(&cancel.reason, &cancel.message),
            None => {
                self.fail("DeployerLost", &format!("deployer no longer exists: nothing was heard of {by:?} until its lease ended"))
            }
        }
    }

    fn deadlines(&mut self) {
        let now = self.facts.now;
        let Some(d) = self.next.last.as_ref().filter(|d| !d.status.is_final() && d.held.is_none() && d.cancel.is_none()) else {
            return;
        };
        let Some(due) = d.due else { return };
        if due > now {
            return self.wake_at(due);
        }
        if d.claim.is_some() {
            let message = format!("it ran longer than {}", d.limits.run);
            self.cancel("DeadlineExceeded", &message);
            self.wake_at(now + STOP);
        } else {
            let message = format!("unable to start deployer: nobody claimed the work within {}", d.limits.start);
            self.fail("StartTimeout", &message);
        }
    }

    /// Asks the running deployment to stop.
    pub fn cancel(&mut self, reason: &str, message: &str) {
        let now = self.facts.now;
        let Some(d) = self.next.last.as_mut().filter(|d| !d.status.is_final()) else { return };
        if d.cancel.is_some() || d.report.is_some() {
            return;
        }
        d.cancel = Some(Cancel { reason: reason.to_owned(), message: message.to_owned(), at: now, due: now + STOP });
        d.held = None;
        let d = d.clone();
        let what = if reason == "Superseded" { "superseded" } else { "cancelling" };
        let shown = Deployment { reason: reason.to_owned(), message: message.to_owned(), ..d };
        self.events.push(announce::about(&self.next, &shown, what, now));
    }

    fn complete(&mut self) {
        let now = self.facts.now;
        self.forget_wakes();
        let Some(d) = self.next.last.as_mut() else { return };
        d.status = Status::Complete;
        d.ended = Some(now);
        d.due = None;
        d.part = None;
        if let Some(cancel) = d.cancel.take() {
            d.message = format!("{}; {}: too late, it was complete", d.message, cancel.message);
        }
        let done = d.clone();
        let content = done.content.template;
        let images = done.content.images.clone();
        let before = self.next.active.replace(Version { n: done.n, snapshot: done.snapshot, at: now, content, images });
        self.next.watch = Watch::begin(now);
        self.next.previous = before.filter(|before| before.content != content).or(self.next.previous.take());
        self.answer_task(&done, "pass", &format!("{} is complete", self.next.version_name(done.n)));
        self.with.past.push(Past { deployment: done, at: now });
    }

    /// Fails the deployment: at once, or after Keelway has reverted its changes.
    pub fn fail(&mut self, reason: &str, message: &str) {
        let now = self.facts.now;
        if let Some(part) = self.next.last.as_mut().and_then(|d| d.part.as_mut()).filter(|part| !part.has_failed()) {
            part.go_back(Cancel { reason: reason.to_owned(), message: message.to_owned(), at: now, due: now + STOP });
            // Earlier wake-ups do not matter any more: from here on, only Keelway's own deployer acts.
            self.forget_wakes();
            self.takes_back();
        } else {
            self.has_failed(reason, message);
        }
    }

    fn has_failed(&mut self, reason: &str, message: &str) {
        let now = self.facts.now;
        let undo = self.undoes(reason);
        self.forget_wakes();
        let Some(d) = self.next.last.as_mut() else { return };
        d.status = Status::Failed;
        d.reason = reason.to_owned();
        d.message = message.to_owned();
        d.ended = Some(now);
        d.due = None;
        d.part = None;
        if undo {
            d.undo = message.to_owned();
        }
        let done = d.clone();
        let result = if matches!(reason, "Cancelled" | "Superseded" | "Deleted") { "aborted" } else { "fail" };
        let follows = if undo { self.goes_back_to() } else { None };
        let back = follows.map(|release| format!("; the application is rolled back to {release}")).unwrap_or_default();
        self.answer_task(&done, result, &format!("{message}{back}"));
        self.with.past.push(Past { deployment: done, at: now });
        if undo {
            // The next evaluation reads the version to go back to.
            self.wake_at(now);
        }
    }

    /// Whether Keelway rolls back the deployment that has just failed: it had begun, is not a rollback itself, and was not stopped
    /// by request.
    fn undoes(&self, reason: &str) -> bool {
        let Some(auto) = self.facts.applied.and_then(|applied| applied.definition.auto_rollback.as_ref()) else { return false };
        let Some(d) = &self.next.last else { return false };
        let wanted = match reason {
            "Alarm" => true,
            "Cancelled" | "Superseded" | "Deleted" | "StartTimeout" => false,
            _ => auto.on_failure,
        };
        let worked = d.claim.is_some();
        wanted && worked && d.rollback.is_none() && self.next.active.is_some()
    }

    /// The version that replaces the failed one. `None`: nothing is rolled back now.
    fn goes_back_to(&self) -> Option<String> {
        let next = &self.next;
        let waits = next.paused.is_some() || next.pending.is_some() || next.settling.is_some();
        next.active.as_ref().filter(|_| !waits).map(|active| next.version_name(active.n))
    }

    /// Rolls back a version that failed or set off an alarm, unless a newer version follows anyway.
    pub fn undo(&mut self, applied: &Applied) {
        let Some(last) = self.next.last.as_ref().filter(|last| !last.undo.is_empty() && last.status.is_final()) else { return };
        let (of, reason) = (last.n, last.undo.clone());
        let newer = self.next.pending.is_some() || self.next.settling.is_some();
        if self.next.paused.is_some() {
            return;
        }
        if !newer {
            let failed = last.status == Status::Failed;
            let goal = if failed { &self.next.active } else { &self.next.previous };
            // The target was read for the state before this decision: what is complete only now goes back to another version.
            let is_goal = |(past, _): &&(Past, Snapshot)| goal.as_ref().is_some_and(|goal| goal.n == past.deployment.n);
            let Some(target) = self.facts.target.filter(is_goal) else {
                // It was asked for if the state said so before; then it is gone.
                if self.undone_before() {
                    return self.forget_undo();
                }
                return self.wake_at(self.facts.now);
            };
            let back = Back {
                release: Some(target.1.n),
                config: false,
                application: true,
                parts: None,
                allow_failed: false,
                by_steps: false,
                again: false,
                group: String::new(),
                task: None,
            };
            let note = Note { at: self.facts.now, message: reason.clone(), ..Note::default() };
            self.forget_undo();
            self.forget_wakes();
            return self.go_back(applied, &back, &note, Some((of, reason)));
        }
        self.forget_undo();
    }

    fn forget_undo(&mut self) {
        if let Some(last) = &mut self.next.last {
            last.undo = String::new();
        }
    }

    /// An alarm went on or off.
    pub fn alarm(&mut self, name: &str, on: bool, at: Timestamp) {
        let Some(applied) = self.facts.applied else {
            // A deleted config keeps up with the alarms that it knows: when it is applied again, an older event changes nothing.
            if let Some(known) = self.next.alarms.get_mut(name).filter(|(_, since)| *since < at) {
                *known = (on, at);
            }
            return;
        };
        let Some(auto) = applied.definition.auto_rollback.clone() else { return };
        if !auto.alarms.iter().any(|known| known == name) {
            return;
        }
        // The same event, told again a day later, finds a config that was not there when it happened.
        if at + ALARM_SKEW < self.next.began {
            return;
        }
        let known = self.next.alarms.get(name).copied();
        if known.is_some_and(|(_, since)| since >= at) {
            return;
        }
        self.next.alarms.retain(|name, _| auto.alarms.contains(name));
        self.next.alarms.insert(name.to_owned(), (on, at));
        // An alarm that went on before the attempt began says nothing about the attempt.
        let since = self.next.last.as_ref().map(|last| last.since);
        let concerns = since.is_none_or(|since| at + ALARM_SKEW >= since);
        if on && concerns && !known.is_some_and(|(was, _)| was) {
            self.went_on(name, &auto);
        }
    }

    fn went_on(&mut self, name: &str, auto: &super::definition::AutoRollback) {
        let now = self.facts.now;
        let message = format!("alarm {name} went off");
        // A deployer that has told its end is not stopped any more: the alarm is about what it has deployed.
        if self.next.in_flight().is_some_and(|running| running.report.is_some()) {
            self.live();
        }
        self.tell_config("deployment.alarm", Object::from_iter([("alarm".into(), name.into())]));
        if let Some(running) = self.next.in_flight() {
            // A rollback is the remedy against the alarm, so it continues.
            if running.rollback.is_none() {
                self.cancel("Alarm", &message);
            }
            return;
        }
        let baking = |last: &&mut Deployment| {
            let ended = last.ended.is_some_and(|ended| now < ended + auto.bake);
            last.status == Status::Complete && ended && last.rollback.is_none()
        };
        if self.next.previous.is_some()
            && let Some(last) = self.next.last.as_mut().filter(baking)
        {
            last.undo = message;
            self.wake_at(now);
        }
    }

    /// The sequence no longer waits for a task: the deployment that carries it out stops, or does not begin.
    pub fn give_up_task(&mut self, triggered: &str) {
        let carries = |d: &Deployment| d.task.as_ref().is_some_and(|task| task.triggered == triggered);
        let why = "its sequence does not wait for it any more";
        if let Some(waited) = self.next.pending.take_if(|d| carries(d)) {
            self.answer_task(&waited, "aborted", why);
        }
        if self.next.in_flight().is_some_and(carries) {
            self.cancel("Cancelled", why);
        }
    }

    /// Answers the task of a sequence that a version carries out.
    pub fn answer_task(&mut self, d: &Deployment, result: &str, message: &str) {
        if let Some(task) = &d.task {
            self.events.push(announce::task(&self.next, task, Some((result, message)), Some(d), self.facts.now));
        }
    }
}

fn after(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}
