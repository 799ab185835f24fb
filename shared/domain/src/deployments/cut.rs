//! How versions are cut, started, superseded and pruned.

use super::advance::Step;
use super::definition::Definition;
use super::deployment::{Deployment, Progress, Status, TimeLimits, Why};
use super::facts::Snapshot;
use super::resolve::{Resolved, message};
use super::state::Pin;
use super::template::images;

impl Step<'_> {
    /// Cuts the next version: its number, and the snapshot of what it deploys. `stated`: the definition as applied.
    pub fn cut(&mut self, stated: &Definition, resolved: Resolved, causes: Vec<Why>) -> Deployment {
        let now = self.facts.now;
        let Resolved { definition, content, .. } = resolved;
        // Images that triggers resolved or that a command named stay, unless the manifest names another image or the tag is
        // followed.
        let owned = |name: &String| stated.image_changes().any(|change| change.containers.contains(name));
        let pins = images(&stated.template).into_iter().filter_map(|(name, was)| {
            let image = content.images.get(&name)?.clone();
            (was != image || owned(&name)).then_some((name, Pin { was, image }))
        });
        let pins = Some(pins.collect());
        let limits = TimeLimits { start: definition.strategy.timeout, run: definition.strategy.deadline };
        let n = self.next.latest + 1;
        let snapshot = Snapshot { definition, n, causes: causes.clone(), at: now };
        let hash = snapshot.hash();
        self.with.snapshots.push(snapshot);
        (self.next.settling, self.next.dismissed) = (None, None);
        Deployment {
            n,
            snapshot: hash,
            status: Status::New,
            attempt: 1,
            content,
            message: message(&causes),
            causes,
            reason: String::new(),
            since: now,
            limits,
            due: None,
            held: None,
            offered: None,
            claim: None,
            part: None,
            report: None,
            cancel: None,
            progress: Progress::default(),
            told: 0,
            proceeds: 0,
            undo: String::new(),
            ended: None,
            rollback: None,
            task: None,
            pins,
        }
    }

    /// Starts a version. Nothing else runs at this point.
    pub fn start(&mut self, mut deployment: Deployment) {
        // The new version takes the place of the last one, whose end must be published first.
        self.tell();
        let now = self.facts.now;
        // Not before: nothing is left of a version that is dropped while it waits.
        if let Some(pins) = deployment.pins.take() {
            self.next.pins = pins;
        }
        deployment.since = now;
        deployment.due = (deployment.limits.start.0 > 0).then(|| now + deployment.limits.start);
        if let Some(due) = deployment.due {
            self.wake_at(due);
        }
        self.next.latest = deployment.n;
        self.next.last = Some(deployment);
        self.live();
    }

    /// Queues a version behind the running one, or starts it if nothing runs. A version that was queued before is dropped.
    pub fn enqueue(&mut self, deployment: Deployment) {
        if let Some(waited) = self.next.pending.take() {
            self.answer_task(&waited, "aborted", "a newer version was asked for");
        }
        if self.next.in_flight().is_none() && self.next.paused.is_none() {
            self.start(deployment);
        } else {
            self.next.pending = Some(deployment);
        }
    }

    /// Cancels the running deployment in favour of a newer version.
    pub fn supersede(&mut self) {
        self.cancel("Superseded", "newer deployment was found running");
        self.live();
    }

    /// Prunes versions below the active one that exceed the config's history limit.
    pub fn prune(&mut self, definition: &Definition) {
        let Some(limit) = definition.history else { return };
        let Some(base) = self.next.active.as_ref().map(|active| active.n).or(self.next.last.as_ref().map(|last| last.n)) else {
            return;
        };
        let oldest = base.saturating_sub(u64::from(limit)).max(self.next.oldest);
        self.next.oldest = oldest;
        self.next.previous = self.next.previous.take().filter(|previous| previous.n >= oldest);
    }
}
