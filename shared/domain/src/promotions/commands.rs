//! The commands of people and tools to a pipeline.

use super::advance::Step;
use super::definition::Definition;
use super::facts::{At, Command, Decision, Facts, Obeyed};
use super::gates::said;
use super::state::{MAX_ABANDONED, Phase, Pipeline, Promotion};
use crate::access::{is_same, known};
use crate::condition::Condition;
use crate::level::{Level, Refused};
use crate::note::Note;

/// Decides a command.
pub(super) fn obey(x: &Pipeline, command: &Command, note: &Note, facts: &Facts<'_>) -> Decision {
    let Some(definition) = facts.definition else {
        return unknown(format!("pipeline {} in {} was deleted", x.name, x.namespace));
    };
    if x.has_obeyed(note) {
        return Decision::Settle;
    }
    let mut step = Step::new(x, facts);
    let done = match command {
        Command::Approve(at) => approve(&mut step, definition, at, note),
        Command::Reject(at) => reject(&mut step, definition, at, note),
        Command::Suspend => {
            step.next.suspended.get_or_insert_with(|| note.clone());
            Ok(())
        }
        Command::Resume => {
            step.next.suspended = None;
            Ok(())
        }
        Command::Hold(at) => later(definition, &at.environment).map(|()| {
            let state = step.next.environments.entry(at.environment.clone()).or_default();
            if state.hold.as_ref().is_none_or(|(revision, _)| *revision != at.revision) {
                state.hold = Some((at.revision.clone(), note.clone()));
            }
        }),
        Command::Release(name) => later(definition, name).map(|()| {
            if let Some(state) = step.next.environments.get_mut(name) {
                state.hold = None;
            }
        }),
        Command::Abandon(revision) => {
            abandon(&mut step, revision, note);
            Ok(())
        }
        Command::GiveUp(at) => give_up(&mut step, definition, at, note),
        Command::Retry(name) => retry(&mut step, definition, name, note),
        Command::Abort(name) => abort(&mut step, definition, name, note),
        Command::Accept(at) => accept(&mut step, definition, at, note),
    };
    match done {
        Ok(()) => {
            step.remember(note);
            step.with.obeyed = Some(Obeyed { command: command.clone(), note: note.clone(), at: facts.now, version: None });
            step.advance()
        }
        Err(refused) => Decision::Refused(refused),
    }
}

fn unknown(message: String) -> Decision {
    Decision::Refused(Refused::Unknown(message))
}

/// Checks that revisions can be promoted into an environment.
fn later(definition: &Definition, name: &str) -> Result<(), Refused> {
    let names =
        || definition.environments.iter().skip(1).map(|environment| environment.name.as_str()).collect::<Vec<_>>().join(", ");
    match definition.environment(name) {
        None => Err(Refused::Unknown(format!("there is no environment {name:?}: promotions go into {}", names()))),
        Some((0, _)) => Err(Refused::Conflict(format!(
            "nothing is promoted into {name}, the first environment: promotions go into {}",
            names()
        ))),
        Some(_) => Ok(()),
    }
}

/// The present run, if it is the run for which the command was given.
fn seen_run(step: &Step<'_>, note: &Note) -> Result<Option<u64>, Refused> {
    let run = step.next.run.as_ref().map(|run| run.number);
    match run.filter(|run| note.run != 0 && *run != note.run) {
        Some(run) => Err(Refused::Conflict(format!("run {run} has begun since: look again, and decide about that"))),
        None => Ok(run),
    }
}

/// The promotion of that revision into that environment in the present run.
fn awaited<'s>(step: &'s mut Step<'_>, definition: &Definition, at: &At, note: &Note) -> Result<&'s mut Promotion, Refused> {
    later(definition, &at.environment)?;
    let run = seen_run(step, note)?;
    let revision = step.next.run.as_ref().map(|run| run.revision.clone());
    let waits = step.promotion(&at.environment).is_some_and(|promotion| Some(promotion.run) == run);
    let promotion =
        step.promotion(&at.environment).filter(|promotion| Some(promotion.run) == run && promotion.revision == at.revision);
    promotion.ok_or_else(|| {
        let (name, asked) = (&at.environment, &at.revision);
        Refused::Conflict(match revision {
            None => format!("{name} does not wait for {asked}: no run has begun yet"),
            Some(revision) if revision == *asked => {
                format!("{name} does not wait for {asked} yet: it does as soon as the environments before it run it")
            }
            Some(revision) if waits => format!("{name} does not wait for {asked}: it waits for {revision}"),
            Some(revision) => {
                format!("{name} does not wait for {asked}: it waits for {revision}, as soon as the environments before it run it")
            }
        })
    })
}

fn approve(step: &mut Step<'_>, definition: &Definition, at: &At, note: &Note) -> Result<(), Refused> {
    let settings = definition.environment(&at.environment).and_then(|(_, environment)| definition.promotion(environment));
    let rule = settings.map(|settings| settings.approval.clone()).unwrap_or_default();
    let authors = step.next.run.as_ref().map(|run| run.authors.clone()).unwrap_or_default();
    let promotion = awaited(step, definition, at, note)?;
    match promotion.phase {
        Phase::Rejected => return Err(Refused::Conflict(format!("{} was rejected{}", at.revision, after(&promotion.why)))),
        Phase::Abandoned => return Err(Refused::Conflict(format!("{} was abandoned{}", at.revision, after(&promotion.why)))),
        _ => {}
    }
    let who = known(&note.by);
    if !rule.approvers.is_empty() && !rule.people().any(|approver| approver == who) {
        let people = rule.people().collect::<Vec<_>>().join(", ");
        return Err(Refused::Conflict(format!("{who:?} does not approve for {}: {people} do", at.environment)));
    }
    if rule.separate
        && let Some(why) = own(&authors, who, &at.revision)
    {
        return Err(Refused::Conflict(why));
    }
    if promotion.approved || promotion.approvals.iter().any(|given| is_same(known(&given.by), who)) {
        return Ok(());
    }
    promotion.approvals.push(note.clone());
    promotion.approved = promotion.approvals.len() >= usize::try_from(rule.quorum.max(1)).unwrap_or(usize::MAX);
    let detail = promotion.approvals.len().to_string();
    step.tell(&at.environment, "approved", &detail);
    Ok(())
}

/// Why a person may not approve a revision that may be their own. `None`: they may.
fn own(authors: &[String], who: &str, revision: &str) -> Option<String> {
    const RULE: &str = "the pipeline has somebody else approve than who set the revision (`approval.separate`)";
    if authors.is_empty() {
        return Some(format!("{RULE}, and who set {revision} is not known"));
    }
    let author = authors.iter().any(|author| is_same(author, who));
    author.then(|| format!("{RULE}, and {who} set {revision}: have somebody else approve"))
}

fn after(why: &Condition) -> String {
    if why.message.is_empty() { String::new() } else { format!(": {}", why.message) }
}

fn reject(step: &mut Step<'_>, definition: &Definition, at: &At, note: &Note) -> Result<(), Refused> {
    let promotion = awaited(step, definition, at, note)?;
    match promotion.phase {
        Phase::Rejected => return Ok(()),
        Phase::Waiting if !promotion.approved => {}
        _ => {
            return Err(Refused::Conflict(format!(
                "{} does not wait for approval any more: abort the promotion instead",
                at.revision
            )));
        }
    }
    promotion.phase = Phase::Rejected;
    promotion.why = Condition::new("Rejected", format!("rejected{}", said(&note.by, &note.message)));
    step.tell(&at.environment, "rejected", "");
    Ok(())
}

/// Stops the promotion of a revision into this environment in this run; what is open for it is closed.
fn give_up(step: &mut Step<'_>, definition: &Definition, at: &At, note: &Note) -> Result<(), Refused> {
    let promotion = awaited(step, definition, at, note)?;
    match promotion.phase {
        Phase::Abandoned => return Ok(()),
        Phase::Succeeded => {
            return Err(Refused::Conflict(format!("{} was promoted into {} already", at.revision, at.environment)));
        }
        Phase::Rejected => return Err(Refused::Conflict(format!("{} was rejected{}", at.revision, after(&promotion.why)))),
        Phase::Waiting | Phase::Attempting | Phase::Created | Phase::Failed => {}
    }
    stop(step, &at.environment, Condition::new("Abandoned", format!("abandoned{}", said(&note.by, &note.message))));
    Ok(())
}

/// A person accepts a failed promotion as a success: the next environments follow.
fn accept(step: &mut Step<'_>, definition: &Definition, at: &At, note: &Note) -> Result<(), Refused> {
    let promotion = awaited(step, definition, at, note)?;
    let (name, revision) = (&at.environment, &at.revision);
    match promotion.phase {
        Phase::Succeeded => return Ok(()),
        Phase::Rejected => return Err(Refused::Conflict(format!("{revision} was rejected{}", after(&promotion.why)))),
        _ if promotion.contested && promotion.ended_badly() => {}
        _ if promotion.ended_badly() => {
            return Err(Refused::Conflict(format!(
                "not all targets of {name} run {revision} and are healthy: accept it when they are, or retry the promotion"
            )));
        }
        _ => {
            return Err(Refused::Conflict(format!(
                "the promotion of {revision} into {name} has not failed{}: there is nothing to accept",
                after(&promotion.why)
            )));
        }
    }
    let open = promotion.clone();
    promotion.phase = Phase::Succeeded;
    promotion.why = Condition::new("Accepted", format!("accepted{}", said(&note.by, &note.message)));
    let comment = promotion.why.message.clone();
    step.take_back(name, open, &comment);
    step.tell(name, "succeeded", "accepted");
    Ok(())
}

/// Stops all promotions of a revision, in this and every later run; what is open for it is closed.
fn abandon(step: &mut Step<'_>, revision: &str, note: &Note) {
    if step.next.abandoned.iter().any(|known| known == revision) {
        return;
    }
    step.next.abandoned.push(revision.to_owned());
    let too_many = step.next.abandoned.len().saturating_sub(MAX_ABANDONED);
    step.next.abandoned.drain(..too_many);
    let names: Vec<String> = step.next.environments.keys().cloned().collect();
    for name in names {
        let why = Condition::new("RevisionAbandoned", format!("{revision} was abandoned{}", said(&note.by, &note.message)));
        if step.promotion(&name).is_some_and(|promotion| promotion.revision == revision && !promotion.phase.is_final()) {
            stop(step, &name, why);
        }
    }
}

/// Ends a promotion, and takes back what it has open.
fn stop(step: &mut Step<'_>, name: &str, why: Condition) {
    let Some(promotion) = step.promotion(name) else { return };
    let open = promotion.clone();
    promotion.phase = Phase::Abandoned;
    promotion.due = None;
    promotion.why = why;
    let comment = promotion.why.message.clone();
    step.take_back(name, open, &comment);
    step.tell(name, "abandoned", "");
}

fn retry(step: &mut Step<'_>, definition: &Definition, name: &str, note: &Note) -> Result<(), Refused> {
    later(definition, name)?;
    let run = seen_run(step, note)?;
    let now = step.facts.now;
    let place = definition.environment(name).map_or(0, |(place, _)| place);
    let evaluated = step.evaluate_again(definition, place);
    let Some(promotion) = step.promotion(name).filter(|promotion| Some(promotion.run) == run) else {
        return Err(Refused::Conflict(format!("no promotion into {name} has been attempted in this run")));
    };
    match promotion.phase {
        Phase::Failed if promotion.due.is_some() => promotion.due = Some(now),
        // The promotion had ended, so the effect of the next attempt is another one than that of the last.
        Phase::Failed | Phase::Abandoned | Phase::Succeeded => {
            let open = promotion.clone();
            promotion.phase = Phase::Waiting;
            promotion.again += 1;
            promotion.attempt = 0;
            promotion.due = None;
            promotion.fruitless = 0;
            promotion.asked = false;
            promotion.effect = None;
            promotion.completed = false;
            promotion.why = Condition::new("Retried", format!("attempted anew{}", said(&note.by, &note.message)));
            let comment = promotion.why.message.clone();
            step.take_back(name, open, &comment);
        }
        Phase::Rejected => {
            return Err(Refused::Conflict(format!("{} was rejected for {name}{}", promotion.revision, after(&promotion.why))));
        }
        // The revision that waits there is evaluated once more.
        Phase::Waiting if evaluated => {}
        Phase::Waiting | Phase::Attempting | Phase::Created => {
            return Err(Refused::Conflict(format!("the promotion into {name} goes on{}: abort it first", after(&promotion.why))));
        }
    }
    Ok(())
}

fn abort(step: &mut Step<'_>, definition: &Definition, name: &str, note: &Note) -> Result<(), Refused> {
    later(definition, name)?;
    seen_run(step, note)?;
    let why = Condition::new("Aborted", format!("aborted{}", said(&note.by, &note.message)));
    match step.promotion(name) {
        Some(promotion) if matches!(promotion.phase, Phase::Attempting | Phase::Created | Phase::Failed) => {
            stop(step, name, why);
            Ok(())
        }
        Some(promotion) if promotion.phase == Phase::Abandoned => Ok(()),
        _ => Err(Refused::Conflict(format!("no attempt to promote into {name} is on its way"))),
    }
}
