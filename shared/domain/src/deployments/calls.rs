//! The calls of deployers: claim, heartbeat, carry, end. They are decided without effects: the API writes the next state at once,
//! and the evaluation that follows publishes what the call has changed.

use super::announce::SOURCE;
use super::deployment::{Claim, Deployment, MAX_CHECKPOINT, MAX_TAIL, Progress, Report, Status};
use super::facts::{Call, Desired, LEASE_MOST, Reply};
use super::part::Part;
use super::state::Config;
use crate::level::Refused;
use crate::time::{Span, Timestamp};

/// The shortest lease.
const LEASE_LEAST: Span = Span::seconds(5);
/// The most targets whose progress is kept.
pub const MAX_TARGETS: usize = 50;
/// The longest message, and the longest address of a log, in characters.
const MAX_TEXT: usize = 1000;

/// The answer to a deployer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The reply to the deployer.
    pub reply: Reply,
    /// The next state, if the call changes it.
    pub next: Option<Box<Config>>,
}

/// Decides a call about version `n`.
pub fn answer(x: &Config, n: u64, call: &Call, now: Timestamp) -> Answer {
    let mut next = x.clone();
    let done = match present(&mut next, n) {
        Ok(d) => match call {
            Call::Claim { by, id, token, lease } => {
                let claim = Claim {
                    by: by.chars().take(200).collect(),
                    id: *id,
                    token: token.clone(),
                    at: now,
                    lease: now + held(*lease),
                    running: None,
                    heard: None,
                };
                take(d, claim, x.paused.is_some(), &x.version_name(n))
            }
            Call::Heartbeat { token, running, lease, progress } => {
                mine(d, token).and_then(|who| beat(d, who, (*running, *lease, progress), now))
            }
            Call::Carry { token, until } => mine(d, token).and_then(|_| carry(d, *until)),
            Call::End { token, exit, message, progress } => {
                let report = Report { exit: *exit, message: cut(message), at: now };
                mine(d, token).and_then(|who| end(d, who, report, progress))
            }
        },
        Err(refused) => Err(refused),
    };
    match done {
        Err(refused) => Answer { reply: Reply::Refused(refused), next: None },
        Ok(()) => {
            let desired = match next.last.as_ref() {
                Some(d) if d.cancel.is_some() || goes_back(d) => Desired::Cancel,
                _ if next.paused.is_some() => Desired::Pause,
                _ => Desired::Run,
            };
            // An evaluation is due when a lease ends, unless the attempt ends before. A claim that is renewed for one step may end
            // sooner than before.
            let part = |d: &Deployment| {
                d.part.as_ref().filter(|part| part.is_open()).and_then(|part| part.claim.as_ref()).map(|claim| claim.lease)
            };
            let leases = next.in_flight().map(|d| [d.claim.as_ref().map(|claim| claim.lease), part(d)]);
            next.wake = leases.into_iter().flatten().flatten().chain(next.wake).min();
            Answer { reply: Reply::Desired(desired), next: (next != *x).then(|| Box::new(next)) }
        }
    }
}

fn held(lease: Span) -> Span {
    lease.clamp(LEASE_LEAST, LEASE_MOST)
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_TEXT).collect()
}

/// The deployment of version `n`, if that is the latest.
fn present(x: &mut Config, n: u64) -> Result<&mut Deployment, Refused> {
    let name = x.version_name(n);
    if n == 0 || n > x.latest {
        return Err(Refused::Unknown(format!("there is no deployment {name}")));
    }
    let latest = x.latest;
    x.last.as_mut().filter(|d| d.n == n).ok_or_else(|| {
        Refused::Conflict(format!("deployment {name} is older than the latest, #{latest}: it is not carried out any more"))
    })
}

fn take(d: &mut Deployment, claim: Claim, paused: bool, name: &str) -> Result<(), Refused> {
    let refuse = |why: String| Err(Refused::Conflict(why));
    match (&d.claim, d.status) {
        (_, Status::Complete) => return refuse(format!("deployment {name} has already run to completion")),
        (_, Status::Failed) => return refuse(format!("deployment {name} has failed: retry it to carry it out again")),
        (Some(_), _) if claim.by == SOURCE && d.part.is_some() => return d.part.as_mut().map_or(Ok(()), |part| part.take(claim)),
        (Some(_), _) if goes_back(d) => return Err(is_over(d)),
        // The same claim again: the answer to the first one was lost, or the deployer continues after a crash.
        (Some(held), _) if held.id == claim.id => {
            d.claim = Some(Claim { at: held.at, running: held.running, ..claim });
            return Ok(());
        }
        (Some(held), _) => return refuse(format!("deployment {name} is already claimed by {:?}", held.by)),
        // A report of success would make Keelway record steps that it has not taken.
        (None, _) if d.content.ours && claim.by != SOURCE => {
            return refuse(format!(
                "Keelway carries deployment {name} out itself: a deployer of yours takes customParams beside the strategy, or a config that names \
                 neither Lambda aliases as targets nor a task or build that Keelway waits for"
            ));
        }
        (None, _) => {}
    }
    if let Some(cancel) = &d.cancel {
        return refuse(format!("deployment {name} is being cancelled: {}", cancel.message));
    }
    if paused {
        return refuse(format!("deployment {name} is held: its config is paused"));
    }
    d.due = Some(claim.at + d.limits.run);
    d.held = None;
    d.status = Status::Pending;
    d.claim = Some(claim);
    Ok(())
}

/// The sender of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    /// The deployer that holds the attempt.
    Deployer,
    /// Keelway's own deployer, which carries a part of the strategy out for it.
    Part,
}

/// The sender that a token belongs to.
fn mine(d: &Deployment, token: &str) -> Result<Who, Refused> {
    let has = |claim: &Option<Claim>| claim.as_ref().is_some_and(|claim| claim.token == token);
    if d.part.as_ref().is_some_and(|part| has(&part.claim)) && !d.status.is_final() {
        return Ok(Who::Part);
    }
    if !has(&d.claim) {
        return Err(Refused::Conflict(
            "this token is not the one of the present attempt: the work was given to somebody else, or has ended".into(),
        ));
    }
    if goes_back(d) { Err(is_over(d)) } else { Ok(Who::Deployer) }
}

/// Whether the deployment fails as soon as Keelway has reverted its changes.
fn goes_back(d: &Deployment) -> bool {
    d.part.as_ref().is_some_and(|part| part.back.is_some())
}

fn is_over(d: &Deployment) -> Refused {
    let why = d.part.as_ref().and_then(|part| part.back.as_ref()).map(|back| back.message.as_str()).unwrap_or_default();
    Refused::Conflict(format!("the deployment fails ({why}): Keelway takes back what it changed"))
}

/// Orders Keelway's own deployer to carry a part of the strategy out.
fn carry(d: &mut Deployment, until: u8) -> Result<(), Refused> {
    if d.status.is_final() || d.report.is_some() {
        return Err(Refused::Conflict(format!("the deployment has ended: {} ({})", d.status, d.message)));
    }
    if !d.content.wraps {
        return Err(Refused::Conflict(
            "Keelway cannot carry this strategy out: that takes Recreate, Rolling or Canary with customParams, and Lambda aliases as targets"
                .into(),
        ));
    }
    Part::ask(&mut d.part, until);
    Ok(())
}

fn beat(d: &mut Deployment, who: Who, said: (bool, Span, &Progress), now: Timestamp) -> Result<(), Refused> {
    let (running, lease, progress) = said;
    if d.status.is_final() {
        return Err(Refused::Conflict(format!("the deployment has ended: {} ({})", d.status, d.message)));
    }
    if let (Who::Part, Some(part)) = (who, &mut d.part) {
        if !part.is_open() {
            return Err(Refused::Conflict("nothing more of the strategy is asked for".into()));
        }
        part.keep(&progress.checkpoint, &cut(&progress.message));
        part.claim = part.claim.take().map(|claim| claim.prolonged(now + held(lease), now));
    }
    if let Some(claim) = &mut d.claim {
        if who == Who::Deployer {
            *claim = claim.clone().prolonged(now + held(lease), now);
        }
        if running {
            claim.running.get_or_insert(now);
        }
    }
    if running {
        d.status = Status::Running;
    }
    take_over(&mut d.progress, &shown(who, progress));
    Ok(())
}

/// The progress that a deployment shows. The log and the checkpoint are always those of the deployer that holds the attempt.
fn shown(who: Who, progress: &Progress) -> Progress {
    match who {
        Who::Deployer => progress.clone(),
        Who::Part => Progress { tail: String::new(), log: String::new(), checkpoint: String::new(), ..progress.clone() },
    }
}

fn end(d: &mut Deployment, who: Who, report: Report, progress: &Progress) -> Result<(), Refused> {
    let known = match who {
        Who::Deployer => &d.report,
        Who::Part => d.part.as_ref().map_or(&None, |part| &part.report),
    };
    if let Some(known) = known {
        let same = (known.exit, &known.message) == (report.exit, &report.message);
        return if same {
            Ok(())
        } else {
            Err(Refused::Conflict("this attempt has already told how it ended: the first report counts".into()))
        };
    }
    if d.status.is_final() {
        return Err(Refused::Conflict(format!("the deployment has ended without this report: {} ({})", d.status, d.message)));
    }
    take_over(&mut d.progress, &shown(who, progress));
    match (who, &mut d.part) {
        (Who::Part, Some(part)) => {
            part.keep(&progress.checkpoint, &report.message);
            part.report = Some(report);
        }
        _ => d.report = Some(report),
    }
    Ok(())
}

/// Replaces what is given; what is absent stays.
fn take_over(known: &mut Progress, told: &Progress) {
    let text = |known: &mut String, told: &str| {
        if !told.is_empty() {
            *known = cut(told);
        }
    };
    text(&mut known.message, &told.message);
    text(&mut known.log, &told.log);
    // A cut checkpoint is useless, so one that is too long leaves the last one in place.
    if !told.checkpoint.is_empty() && told.checkpoint.len() <= MAX_CHECKPOINT {
        known.checkpoint.clone_from(&told.checkpoint);
    }
    if !told.tail.is_empty() {
        let from = told.tail.len().saturating_sub(MAX_TAIL);
        let from = (from..=told.tail.len()).find(|at| told.tail.is_char_boundary(*at)).unwrap_or(0);
        known.tail = told.tail[from..].to_owned();
    }
    if told.analysis.is_some() {
        known.analysis.clone_from(&told.analysis);
    }
    for (name, at) in &told.targets {
        if known.targets.len() < MAX_TARGETS || known.targets.contains_key(name) {
            known.targets.insert(cut(name), super::TargetProgress { status: at.status, message: cut(&at.message) });
        }
    }
}
