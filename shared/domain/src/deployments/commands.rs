//! The commands of people and tools to a deployment config.

use super::advance::{Step, incomplete};
use super::announce;
use super::definition::{Concurrency, Definition};
use super::deployment::{Deployment, Progress, Status, Why};
use super::facts::{Applied, Command, Decision, Facts, Latest, Obeyed};
use super::origin::Task;
use super::resolve::{Images, causes, change_that_waits, request_that_waits, resolve};
use super::state::{Config, Dismissed, Pin, Suspension};
use super::template::repository;
use crate::event::{CloudEvent, Object};
use crate::level::{Level, Refused};
use crate::names::Context;
use crate::note::Note;
use crate::time::Timestamp;

/// Decides what a command does.
pub(super) fn obey(x: &Config, command: &Command, note: &Note, facts: &Facts<'_>) -> Decision {
    if x.has_obeyed(note) {
        return Decision::Settle;
    }
    let Some(applied) = facts.applied else {
        return Decision::Refused(Refused::Unknown(format!("there is no deployment config {} in {}", x.name, x.namespace)));
    };
    let begun = task_of(command).map(|task| announce::task(x, task, None, None, facts.now));
    let mut step = Step::new(x, facts);
    step.events.extend(begun.clone());
    let done = match command {
        Command::Latest(latest) => step.latest(applied, latest, note),
        Command::Cancel => step.cancel_by_hand(note),
        Command::CancelAll => step.cancel_all(applied, note),
        Command::Retry => step.retry(),
        Command::Pause => {
            step.pause(note.clone());
            Ok(())
        }
        Command::Resume => {
            step.resume();
            Ok(())
        }
        Command::Rollback(back) => step.roll_back(applied, back, note),
        Command::SuspendTriggers => {
            step.suspend(note.clone(), 0);
            Ok(())
        }
        Command::ResumeTriggers => {
            step.resume_triggers(&said(note));
            Ok(())
        }
        Command::Proceed => step.proceed(),
    };
    let refused = match done {
        Ok(()) => None,
        Err(refused) => match task_of(command) {
            // Only the sequence waits for an answer, so it gets one.
            Some(task) => {
                step = Step::new(x, facts);
                step.events.extend(begun);
                step.events.push(announce::task(x, task, Some(("fail", refused.reason())), None, facts.now));
                None
            }
            None => Some(refused),
        },
    };
    if let Some(refused) = refused {
        return Decision::Refused(refused);
    }
    step.remember(note);
    let made = |d: &Deployment| (d.n > x.latest).then_some(d.n);
    let version = step.next.pending.as_ref().and_then(made).or(step.next.last.as_ref().and_then(made));
    step.with.obeyed = Some(Obeyed { command: command.clone(), note: note.clone(), at: facts.now, version });
    step.advance()
}

/// The answers to a task that names a config which does not exist.
pub fn missing(namespace: &str, name: &str, command: &Command, now: Timestamp) -> Vec<CloudEvent> {
    let why = format!("there is no deployment config {name} in {namespace}: apply it, or correct the task's `deploymentConfig`");
    unanswered((namespace, name), command, &why, now)
}

/// The answers to a task that no config carries out, with the reason.
pub fn unanswered((namespace, name): (&str, &str), command: &Command, why: &str, now: Timestamp) -> Vec<CloudEvent> {
    let (Some(task), x) = (task_of(command), Config::new(namespace, name, now)) else { return vec![] };
    let events = vec![announce::task(&x, task, None, None, now), announce::task(&x, task, Some(("fail", why)), None, now)];
    let record = super::Record { events, ..super::Record::default() };
    let id = record.id(x.id(), 0);
    record.events(&id, &Context::of(&task.context))
}

/// The task of a sequence that a command carries out, if any.
pub fn task_of(command: &Command) -> Option<&Task> {
    match command {
        Command::Latest(latest) => latest.task.as_deref(),
        Command::Rollback(back) => back.task.as_deref(),
        _ => None,
    }
}

/// ` by ann: reason`, as far as it is known.
pub(super) fn said(note: &Note) -> String {
    let by = if note.by.is_empty() { String::new() } else { format!("by {}", note.by) };
    match (by.is_empty(), note.message.is_empty()) {
        (_, true) => by,
        (true, false) => note.message.clone(),
        (false, false) => format!("{by}: {}", note.message),
    }
}

fn conflict(message: String) -> Result<(), Refused> {
    Err(Refused::Conflict(message))
}

impl Step<'_> {
    /// Cuts a new version.
    fn latest(&mut self, applied: &Applied, latest: &Latest, note: &Note) -> Result<(), Refused> {
        let definition = &applied.definition;
        if latest.resume {
            self.resume();
        }
        if self.next.paused.is_some() {
            return conflict("cannot deploy a paused deployment config: resume it first, or ask for it with `resume`".into());
        }
        if latest.resume_triggers {
            self.resume_triggers(&said(note));
        }
        let named = self.named(definition, &latest.image)?;
        if latest.suspend {
            self.suspend(note.clone(), 0);
        } else if !named.is_empty() && latest.task.is_none() {
            self.stays(definition)?;
        }
        let pins = self.next.pins.clone();
        if let Some((name, was)) = definition.main_container().filter(|_| !named.is_empty()) {
            self.next.pins.insert(name.to_owned(), Pin { was: was.to_owned(), image: named.clone() });
        }
        let which = match latest {
            // An image that the command names takes precedence over the one that its tag points to.
            Latest { again, image, .. } if *again || !image.is_empty() => Images::Same,
            // As for a trigger: images that are not followed do not count as a change.
            Latest { if_changed: true, .. } => Images::Unattended,
            _ => Images::Newest,
        };
        let mut resolved = resolve(&self.next, definition, self.facts.heads, which);
        if !named.is_empty() {
            resolved = self.with_main(resolved, &named);
        }
        self.next.pins = pins;
        if let Some(incomplete) = incomplete(&resolved) {
            return conflict(format!(
                "cannot trigger a deployment for {:?} because it contains unresolved images: {}",
                self.next.name, incomplete.message
            ));
        }
        let changed = causes(&self.next, &resolved, &note.by, self.facts.heads);
        if latest.if_changed && changed.is_empty() {
            return Err(Refused::Nothing(format!(
                "deployment config {:?} cannot be instantiated: nothing has changed",
                self.next.name
            )));
        }
        self.make_way(definition.concurrency, latest.supersede, latest.task.is_some())?;
        let causes = if latest.if_changed { changed } else { vec![Why::command(&note.by, latest.task.as_deref())] };
        let mut deployment = self.cut(definition, resolved, causes);
        deployment.task = latest.task.as_deref().cloned();
        self.enqueue(deployment);
        Ok(())
    }

    /// Refuses an image for a container that follows a tag: the tag's image would replace it as soon as it is deployed.
    fn stays(&self, definition: &Definition) -> Result<(), Refused> {
        let main = definition.main_container().map(|(name, _)| name);
        let follows =
            definition.image_changes().find(|change| change.automatic && change.containers.iter().any(|one| Some(&**one) == main));
        match (follows, &self.next.suspended) {
            (Some(change), None) => conflict(format!(
                "container {} of {:?} follows {}, whose image would be deployed again at once: ask for it with `suspendTriggers`, suspend the triggers first, \
                 or roll back to a version with this image",
                main.unwrap_or_default(),
                self.next.name,
                change.from
            )),
            _ => Ok(()),
        }
    }

    /// The image that the command names for the main container. A digest alone, as promotions carry it, is combined with the
    /// repository of the container's present image.
    fn named(&self, definition: &Definition, image: &str) -> Result<String, Refused> {
        if !image.starts_with("sha256:") {
            return Ok(image.to_owned());
        }
        let present = resolve(&self.next, definition, self.facts.heads, Images::Same).definition;
        match present.main_image().map(repository).filter(|repository| !repository.is_empty()) {
            Some(repository) => Ok(format!("{repository}@{image}")),
            None => Err(Refused::Conflict(format!(
                "{image} is a digest, and the container of {:?} has no image that says of which repository: write one, or send the whole image",
                self.next.name
            ))),
        }
    }

    /// The resolved definition with another image in the main container.
    fn with_main(&self, mut resolved: super::Resolved, image: &str) -> super::Resolved {
        if let Some((main, _)) = resolved.definition.main_container() {
            let mut images = resolved.content.images.clone();
            images.insert(main.to_owned(), image.to_owned());
            let template = super::template::with_images(&resolved.definition.template, &images);
            let definition = Definition { template, triggers: vec![], ..resolved.definition.clone() };
            let content = resolve(&self.next, &definition, self.facts.heads, Images::Same).content;
            resolved.definition.template = definition.template;
            resolved.content = content;
        }
        resolved
    }

    /// Makes room for a new version: cancels the running deployment if the command says so; for a task, as the config's
    /// `concurrency` says.
    fn make_way(&mut self, concurrency: Concurrency, supersede: bool, task: bool) -> Result<(), Refused> {
        let Some(d) = self.next.in_flight().filter(|d| d.report.is_none()) else { return Ok(()) };
        if supersede || task && concurrency == Concurrency::Supersede {
            self.supersede();
        } else if !task {
            return conflict(format!(
                "#{} is already in progress ({}). Wait until it has ended, cancel it, or ask for it with `supersede`",
                d.n, d.status
            ));
        }
        Ok(())
    }

    fn cancel_by_hand(&mut self, note: &Note) -> Result<(), Refused> {
        let (namespace, name) = (self.next.namespace.clone(), self.next.name.clone());
        if self.next.paused.is_some() {
            return conflict(format!("unable to cancel paused deployment {namespace}/{name}: resume it first"));
        }
        let waited = self.next.pending.take();
        if let Some(waited) = &waited {
            self.answer_task(waited, "aborted", "cancelled by the user");
        }
        let Some(last) = &self.next.last else {
            return conflict(format!("there have been no deployments of {namespace}/{name}"));
        };
        if last.status.is_final() && waited.is_none() {
            return Err(Refused::Nothing(format!(
                "No rollout is in progress (latest rollout #{} {} {} ago)",
                last.n,
                last.status,
                self.facts.now - last.ended.unwrap_or(last.since)
            )));
        }
        if last.report.is_some() && !last.status.is_final() && waited.is_none() {
            return Err(Refused::Nothing(format!("too late: the deployer of #{} has told how it ended", last.n)));
        }
        let by = said(note);
        self.cancel("Cancelled", &format!("cancelled by the user{}{by}", if by.is_empty() { "" } else { ", " }));
        Ok(())
    }

    /// Cancels the running deployment, and the version that a trigger or a changed definition would have deployed next.
    fn cancel_all(&mut self, applied: &Applied, note: &Note) -> Result<(), Refused> {
        let change = change_that_waits(&self.next, applied, self.facts.heads);
        let waits = change.is_some() || request_that_waits(&self.next, applied).is_some();
        match self.cancel_by_hand(note) {
            Err(Refused::Nothing(_)) if waits => {}
            done => done?,
        }
        if waits {
            let kept = self.next.dismissed.as_ref().map_or(0, |dismissed| dismissed.template);
            self.next.dismissed = Some(Dismissed { template: change.unwrap_or(kept), definition: applied.version });
            self.next.settling = None;
        }
        Ok(())
    }

    /// Starts the latest version once more.
    fn retry(&mut self) -> Result<(), Refused> {
        let name = self.next.name.clone();
        if self.next.paused.is_some() {
            return conflict(format!("unable to retry paused deployment config {name:?}: resume it first"));
        }
        let now = self.facts.now;
        let Some(d) = &mut self.next.last else { return conflict(format!("no rollouts found for {name:?}: deploy it first")) };
        match d.status {
            Status::Failed => {}
            Status::Complete => {
                return conflict(format!(
                    "rollout #{} is {}; only failed deployments can be retried. Ask for the latest version to deploy it again",
                    d.n, d.status
                ));
            }
            _ => {
                return conflict(format!(
                    "rollout #{} is {}; only failed deployments can be retried. Cancel it first",
                    d.n, d.status
                ));
            }
        }
        d.status = Status::New;
        d.attempt += 1;
        d.reason = String::new();
        d.message = super::resolve::message(&d.causes);
        d.since = now;
        d.due = (d.limits.start.0 > 0).then(|| now + d.limits.start);
        (d.held, d.offered, d.claim, d.report, d.cancel, d.ended) = (None, None, None, None, None, None);
        (d.told, d.proceeds, d.undo) = (0, 0, String::new());
        // Targets that are complete stay complete; the next attempt deploys to the others.
        let complete = |_: &String, at: &mut super::TargetProgress| at.status == Status::Complete;
        d.progress.targets.retain(complete);
        d.progress = Progress { targets: std::mem::take(&mut d.progress.targets), ..Progress::default() };
        // The sequence has had its answer.
        d.task = None;
        self.next.settling = None;
        Ok(())
    }

    /// Suspends the triggers until they are resumed. `version`: the rollback that suspends them.
    pub fn suspend(&mut self, note: Note, version: u64) {
        let fresh = self.next.suspended.is_none();
        let suspended = self.next.suspended.get_or_insert(Suspension { note, version, suppressed: 0 });
        suspended.version = suspended.version.max(version);
        let message = said(&suspended.note);
        if fresh {
            self.tell_config("triggers.suspended", Object::from_iter([("message".into(), message.into())]));
        }
    }

    fn proceed(&mut self) -> Result<(), Refused> {
        let name = self.next.name.clone();
        match self.next.last.as_mut().filter(|d| !d.status.is_final()) {
            Some(d) => {
                d.proceeds += 1;
                Ok(())
            }
            None => conflict(format!("no deployment of {name} is on its way")),
        }
    }
}
