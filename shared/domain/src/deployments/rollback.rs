//! Rollbacks: a config goes back to an earlier version by a new version.

use super::advance::Step;
use super::definition::{Concurrency, Definition};
use super::deployment::{Status, Why};
use super::facts::{Applied, Back};
use super::origin::Rollback;
use super::resolve::{Images, resolve};
use crate::border::Vouched;
use crate::event::Object;
use crate::level::Refused;
use crate::note::Note;

/// The definition that a rollback deploys: the restored parts from the target, everything else from the present definition.
///
/// `application` restores template, replicas and selector; `config` restores labels, triggers and strategy. Nothing else is ever
/// restored. The result is vouched for if the target is, and if the present definition is too or the result equals the target.
pub fn candidate(present: &Definition, target: &Definition, back: &Back) -> Definition {
    let mut candidate = present.clone();
    let parts = back.parts();
    if parts.template {
        candidate.template = target.template.clone();
    }
    if parts.replication {
        candidate.replicas = target.replicas;
        candidate.selector = target.selector.clone();
    }
    if parts.labels {
        candidate.labels = target.labels.clone();
    }
    if parts.triggers {
        candidate.triggers = target.triggers.clone();
    }
    if parts.strategy {
        candidate.strategy = target.strategy.clone();
    }
    // The parts that stay may come from a definition that nobody vouches for, which affects the whole.
    candidate.vouched = target.vouched && (present.vouched || candidate.says(target));
    candidate
}

fn conflict(message: String) -> Result<(), Refused> {
    Err(Refused::Conflict(message))
}

impl Step<'_> {
    /// Rolls back by command.
    pub fn roll_back(&mut self, applied: &Applied, back: &Back, note: &Note) -> Result<(), Refused> {
        let (name, latest) = (self.next.name.clone(), self.next.latest);
        if self.next.paused.is_some() {
            return conflict(format!("cannot rollback a paused deployment config: resume {name} first"));
        }
        if back.parts().is_empty() {
            return conflict("nothing would be rolled back: set `config`, `application` or both".into());
        }
        match latest {
            0 => return conflict("cannot rollback an undeployed config".into()),
            1 => return conflict(format!("no previous deployment exists for {name:?}")),
            _ => {}
        }
        if back.release == Some(latest) {
            return conflict(format!("version {latest} is already the latest"));
        }
        let oldest = self.next.oldest;
        let unknown = |release: u64| {
            let kept = format!("versions {oldest} to {} are kept below the latest, #{latest}", latest - 1);
            format!("deployment {name}-{release} not found: {kept}")
        };
        if let Some(release) = back.release.filter(|release| *release < oldest) {
            return Err(Refused::Unknown(unknown(release)));
        }
        if let Some(why) = self.facts.damaged {
            return conflict(format!("{why}: name another version"));
        }
        let Some((past, _)) = self.facts.target else {
            return Err(Refused::Unknown(match back.release {
                Some(release) => unknown(release),
                None => format!(
                    "no complete version of {name} below #{latest} that deploys something else is kept: name the version to go back to"
                ),
            }));
        };
        if past.deployment.status != Status::Complete && !back.allow_failed {
            return conflict(format!(
                "version {} is {}: name a complete one, or ask for it with `allowFailed`",
                past.deployment.n, past.deployment.status
            ));
        }
        let release = past.deployment.n;
        if !back.again && back.task.is_none() && self.changes_nothing(applied, back) {
            return conflict(format!(
                "a rollback to {name}-{release} changes nothing: #{latest} deploys the same, and is complete; ask for it with `again`"
            ));
        }
        // A rollback does not wait for the version that it replaces.
        if self.next.in_flight().is_some() && (back.task.is_none() || applied.definition.concurrency == Concurrency::Supersede) {
            self.supersede();
        }
        self.go_back(applied, back, note, None);
        Ok(())
    }

    /// Whether the latest version is complete, and the rollback would change neither what is deployed nor the definition.
    fn changes_nothing(&self, applied: &Applied, back: &Back) -> bool {
        let Some((_, snapshot)) = self.facts.target else { return false };
        let Some(last) = self.next.last.as_ref().filter(|last| last.status == Status::Complete) else { return false };
        let present = resolve(&self.next, &applied.definition, self.facts.heads, Images::Same);
        let candidate = candidate(&present.definition, &snapshot.definition, back);
        candidate == present.definition && present.content.template == last.content.template
    }

    /// Changes the definition, suspends the triggers, and cuts the version. `automatic`: the failed version, and why it failed.
    pub fn go_back(&mut self, applied: &Applied, back: &Back, note: &Note, automatic: Option<(u64, String)>) {
        let Some((past, snapshot)) = self.facts.target else { return };
        // The end of the present version is published first.
        self.tell();
        let release = past.deployment.n;
        // What is deployed now, whatever its tags point to by now.
        let present = resolve(&self.next, &applied.definition, self.facts.heads, Images::Same).definition;
        let definition = candidate(&present, &snapshot.definition, back);
        let why = match &automatic {
            None => {
                let delivery = back.task.as_deref().map(|task| Box::new(task.delivery()));
                Why::Rollback { release, by: note.by.clone(), notes: note.message.clone(), delivery }
            }
            Some((of, reason)) => Why::AutoRollback { of: *of, release, reason: reason.clone() },
        };
        self.next.pins.clear();
        let n = self.next.latest + 1;
        let reason = format!("rollback to {}", self.next.version_name(release));
        self.suspend(Note { by: note.by.clone(), at: self.facts.now, message: reason, ..Note::default() }, n);
        let resolved = resolve(&self.next, &definition, self.facts.heads, Images::Same);
        let mut deployment = self.cut(&definition, resolved, vec![why]);
        deployment.rollback =
            Some(Rollback { release, automatic: automatic.is_some(), group: back.group.clone(), by_steps: back.by_steps });
        deployment.task = back.task.as_deref().cloned();
        // The reverted change is not new: only later changes are reported as suppressed.
        let back = resolve(&self.next, &definition, self.facts.heads, Images::Unattended).content.template;
        if let Some(suspended) = &mut self.next.suspended {
            suspended.suppressed = back;
        }
        self.with.rewritten = Some(definition);
        let data = Object::from_iter([("release".into(), release.into()), ("version".into(), n.into())]);
        self.tell_config("rollback.applied", data);
        self.enqueue(deployment);
    }
}
