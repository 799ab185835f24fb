//! What deployers say. It is decided without effects: whoever serves the deployer writes the next state at once, and the evaluation that
//! follows tells what became of it.

use super::deployment::{Claim, Deployment, MAX_CHECKPOINT, MAX_TAIL, Progress, Report, Status};
use super::facts::{Call, Desired, LEASE_MOST, Refused, Reply};
use super::state::Config;
use crate::time::{Span, Timestamp};

/// The shortest lease.
const LEASE_LEAST: Span = Span::seconds(5);
/// More targets than these are not kept.
pub const MAX_TARGETS: usize = 50;
/// The longest message or address of a log, in characters.
const MAX_TEXT: usize = 1000;

/// The answer to a deployer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What it is told.
    pub reply: Reply,
    /// The next state, if it changes anything.
    pub next: Option<Box<Config>>,
}

/// Decides about what a deployer says of version `n`.
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
                };
                take(d, claim, x.paused.is_some(), &x.version_name(n))
            }
            Call::Heartbeat { token, running, lease, progress } => {
                mine(d, token).and_then(|()| beat(d, *running, *lease, progress, now))
            }
            Call::End { token, exit, message, progress } => {
                let report = Report { exit: *exit, message: cut(message), at: now };
                mine(d, token).and_then(|()| end(d, report, progress))
            }
        },
        Err(refused) => Err(refused),
    };
    match done {
        Err(refused) => Answer { reply: Reply::Refused(refused), next: None },
        Ok(()) => {
            let desired = match next.last.as_ref() {
                Some(d) if d.cancel.is_some() => Desired::Cancel,
                _ if next.paused.is_some() => Desired::Pause,
                _ => Desired::Run,
            };
            // Somebody must look when the lease ends, unless the attempt has ended already.
            let lease = next.in_flight().and_then(|d| d.claim.as_ref()).map(|claim| claim.lease);
            next.wake = next.wake.or(lease);
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

/// The deployment of that version, if it is the latest.
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
        // The same claim again: its answer got lost, or the deployer goes on after a crash.
        (Some(held), _) if held.id == claim.id => {
            d.claim = Some(Claim { at: held.at, running: held.running, ..claim });
            return Ok(());
        }
        (Some(held), _) => return refuse(format!("deployment {name} is already claimed by {:?}", held.by)),
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

/// Whether it comes from whoever holds the attempt's token.
fn mine(d: &Deployment, token: &str) -> Result<(), Refused> {
    match &d.claim {
        Some(claim) if claim.token == token => Ok(()),
        _ => Err(Refused::Conflict(
            "this token is not the one of the present attempt: the work was given to somebody else, or has ended".into(),
        )),
    }
}

fn beat(d: &mut Deployment, running: bool, lease: Span, progress: &Progress, now: Timestamp) -> Result<(), Refused> {
    if d.status.is_final() {
        return Err(Refused::Conflict(format!("the deployment has ended: {} ({})", d.status, d.message)));
    }
    if let Some(claim) = &mut d.claim {
        claim.lease = claim.lease.max(now + held(lease));
        if running {
            claim.running.get_or_insert(now);
        }
    }
    if running {
        d.status = Status::Running;
    }
    take_over(&mut d.progress, progress);
    Ok(())
}

fn end(d: &mut Deployment, report: Report, progress: &Progress) -> Result<(), Refused> {
    if let Some(known) = &d.report {
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
    take_over(&mut d.progress, progress);
    d.report = Some(report);
    Ok(())
}

/// What is told replaces what was told before; what is not told stays.
fn take_over(known: &mut Progress, told: &Progress) {
    let text = |known: &mut String, told: &str| {
        if !told.is_empty() {
            *known = cut(told);
        }
    };
    text(&mut known.message, &told.message);
    text(&mut known.log, &told.log);
    // A part of a checkpoint is of no use: one that is too long leaves the last one in place.
    if !told.checkpoint.is_empty() && told.checkpoint.len() <= MAX_CHECKPOINT {
        known.checkpoint.clone_from(&told.checkpoint);
    }
    if !told.tail.is_empty() {
        let from = told.tail.len().saturating_sub(MAX_TAIL);
        let from = (from..=told.tail.len()).find(|at| told.tail.is_char_boundary(*at)).unwrap_or(0);
        known.tail = told.tail[from..].to_owned();
    }
    for (name, at) in &told.targets {
        if known.targets.len() < MAX_TARGETS || known.targets.contains_key(name) {
            known.targets.insert(cut(name), super::TargetProgress { status: at.status, message: cut(&at.message) });
        }
    }
}
