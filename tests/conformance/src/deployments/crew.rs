//! Deployers in the simulation: what each of them was told, and whether it is at work. Nothing here asks the engine: a deployer is
//! at work from the answer to its claim until it says that it has ended, until it hears that it is to stop at once, or until the
//! lease it knows of has ended.

use keelway_domain::deployments::{Call, Desired, Progress, Reply};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::deployments::deployers::Told;
use keelway_world::rng::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What becomes of a deployer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It works, and succeeds.
    Succeeds,
    /// It works, and fails.
    Fails,
    /// It is not heard of any more after a while.
    Dies,
    /// It says how it ended, and later the opposite.
    Contradicts,
    /// It is not heard of for longer than its lease, and comes back.
    ComesBack,
    /// It does not stop when it is told to.
    GoesOn,
}

impl Fate {
    /// All of them.
    pub const ALL: [Fate; 6] = [Fate::Succeeds, Fate::Fails, Fate::Dies, Fate::Contradicts, Fate::ComesBack, Fate::GoesOn];
}

/// What a deployer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Say {
    /// It takes the work.
    Claim,
    /// It is at it.
    Beat,
    /// It has Keelway carry its strategy out, until this share of the requests.
    Carry(u8),
    /// It has ended with this code.
    End(i64),
}

/// A deployer.
#[derive(Debug, Clone)]
pub struct Deployer {
    /// Which config.
    pub place: usize,
    /// Which version.
    pub n: u64,
    /// What becomes of it.
    pub fate: Fate,
    /// How long it may be silent.
    pub lease: Span,
    /// So many heartbeats more.
    pub beats: u32,
    /// The attempt it was given.
    pub attempt: Option<u32>,
    /// It is at work until then.
    until: Timestamp,
    /// The codes it has said.
    pub said: BTreeSet<i64>,
    /// The code that was accepted.
    accepted: Option<i64>,
    /// Its time to stop is over: what it does does not count any more.
    dismissed: bool,
    /// Its process is gone.
    pub gone: bool,
    /// It is around a strategy that Keelway can carry out.
    pub wraps: bool,
}

/// An answer that nobody has reacted to yet.
#[derive(Debug, Clone, Copy)]
pub struct Heard {
    /// Who heard it.
    pub who: usize,
    /// What it had said.
    pub say: Say,
    /// What it is to do; `None`: it does not count any more.
    pub desired: Option<Desired>,
}

/// All deployers of a seed.
#[derive(Debug, Default)]
pub struct Crew {
    /// By number; a deployer's claim has its number.
    pub all: Vec<Deployer>,
    /// To react to.
    pub heard: Vec<Heard>,
    /// Who was given the work of an attempt.
    granted: BTreeMap<(usize, u64, u32), usize>,
    /// How far two clocks differ at most.
    pub margin: Span,
    /// What must never happen, and did.
    pub wrong: Option<String>,
}

/// The crew, in reach of the workers that serve it.
pub type Shared = Arc<Mutex<Crew>>;

/// Locks the crew.
pub fn lock(crew: &Shared) -> MutexGuard<'_, Crew> {
    crew.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The identity of a deployer's claim.
pub fn claim_id(who: usize) -> u64 {
    who as u64 + 1
}

/// The deployer that made a claim.
pub fn who(claim: u64) -> usize {
    claim.saturating_sub(1) as usize
}

impl Crew {
    /// A deployer begins; its number.
    pub fn hire(&mut self, place: usize, n: u64, fate: Fate, (lease, beats): (Span, u32)) -> usize {
        self.all.push(Deployer {
            place,
            n,
            fate,
            lease,
            beats,
            attempt: None,
            until: Timestamp(0),
            said: BTreeSet::new(),
            accepted: None,
            dismissed: false,
            gone: false,
            wraps: false,
        });
        self.all.len() - 1
    }

    /// What a deployer says, as a call.
    pub fn call(&mut self, who: usize, say: Say) -> Call {
        let token = format!("token {who}");
        let d = &mut self.all[who];
        match say {
            Say::Claim => Call::Claim { by: format!("deployer {who}"), id: claim_id(who), token, lease: d.lease },
            Say::Beat => Call::Heartbeat { token, running: true, lease: d.lease, progress: Progress::default() },
            Say::Carry(until) => Call::Carry { token, until },
            Say::End(exit) => {
                d.said.insert(exit);
                Call::End { token, exit: Some(exit), message: String::new(), progress: Progress::default() }
            }
        }
    }

    /// A deployer hears the answer to what it said at `sent`.
    pub fn hear(&mut self, who: usize, say: Say, sent: Timestamp, told: &Told) {
        let margin = self.margin;
        let last = told.config.as_ref().and_then(|config| config.last.as_ref());
        let d = &mut self.all[who];
        let desired = match &told.reply {
            Reply::Desired(desired) => Some(*desired),
            Reply::Refused(_) => None,
        };
        self.heard.push(Heard { who, say, desired });
        let Some(last) = last.filter(|_| desired.is_some()) else {
            // What it has said, it may say again.
            d.gone |= !matches!(say, Say::End(_));
            d.until = Timestamp(0);
            return;
        };
        if say == Say::Claim {
            d.attempt = Some(last.attempt);
            let first = *self.granted.entry((d.place, d.n, last.attempt)).or_insert(who);
            if first != who {
                let what = format!("deployers {first} and {who} were both given attempt {} of version {}", last.attempt, d.n);
                self.wrong.get_or_insert(what);
            }
        }
        let holder = last.claim.as_ref().map(|claim| claim.id);
        if (last.n, Some(last.attempt), holder) != (d.n, d.attempt, Some(claim_id(who))) {
            let what = format!(
                "{say:?} of deployer {who} ({d:?}) counts for version {}, attempt {}, which {holder:?} has",
                last.n, last.attempt
            );
            self.wrong.get_or_insert(what);
        }
        match say {
            Say::End(exit) if d.accepted.is_some_and(|accepted| accepted != exit) => {
                self.wrong.get_or_insert(format!("two reports of deployer {who} were accepted: {d:?}"));
            }
            Say::End(exit) => d.accepted = Some(exit),
            // Of two clocks, the one that gives the lease may be behind, and the one that ends it ahead.
            Say::Claim | Say::Beat if d.said.is_empty() => d.until = d.until.max(sent + d.lease + Span(-margin.0)),
            Say::Claim | Say::Beat | Say::Carry(_) => {}
        }
    }

    /// What a deployer says next, and when, after what it heard. `quiet`: nobody wants anything to go wrong any more.
    pub fn next(
        &mut self,
        rng: &mut Rng,
        Heard { who, say, desired }: Heard,
        (now, quiet): (Timestamp, bool),
    ) -> Option<(Timestamp, Say)> {
        let soon = now + Span(1 + rng.below(4_000) as i64);
        let d = &mut self.all[who];
        let end = match d.fate {
            Fate::Fails if !quiet => 1,
            Fate::Contradicts => i64::from(rng.chance(50.0)),
            _ => 0,
        };
        let lease = d.lease;
        match (say, desired) {
            (Say::End(exit), _) if d.fate == Fate::Contradicts && d.said.len() == 1 => {
                let later = now + Span::seconds(rng.below(300) as i64);
                Some((later, Say::End(1 - exit.min(1))))
            }
            (Say::End(_), _) | (_, None) => None,
            (_, Some(Desired::Cancel)) if d.fate != Fate::GoesOn || quiet || d.beats == 0 => Some((soon, Say::End(1))),
            (Say::Claim | Say::Beat, Some(_)) if d.wraps && rng.chance(40.0) => {
                Some((soon, Say::Carry(*rng.pick(&[0, 10, 50, 100]))))
            }
            (_, Some(_)) if d.beats == 0 => Some((soon, Say::End(end))),
            (_, Some(_)) => {
                d.beats -= 1;
                match d.fate {
                    Fate::Dies if d.beats == 0 => {
                        self.dies(who);
                        None
                    }
                    Fate::ComesBack if d.beats == 1 => Some((now + lease + Span::seconds(30), Say::Beat)),
                    _ => Some((now + Span(1 + lease.0 / 3), Say::Beat)),
                }
            }
        }
    }

    /// Its process is gone.
    pub fn dies(&mut self, who: usize) {
        self.all[who].gone = true;
        self.all[who].until = Timestamp(0);
    }

    /// Who is at work on a config.
    pub fn at_work(&self, place: usize, now: Timestamp) -> impl Iterator<Item = (usize, &Deployer)> {
        let works =
            move |d: &Deployer| d.place == place && d.attempt.is_some() && d.said.is_empty() && !d.dismissed && d.until > now;
        self.all.iter().enumerate().filter(move |(_, d)| works(d))
    }

    /// The time in which the deployer of an attempt had to stop is over.
    pub fn dismiss(&mut self, place: usize, (n, attempt): (u64, u32)) {
        let all = self.all.iter_mut().filter(|d| d.place == place && d.n == n && d.attempt == Some(attempt));
        all.for_each(|d| d.dismissed = true);
    }
}
