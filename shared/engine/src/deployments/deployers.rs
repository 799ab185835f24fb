//! The calls of deployers. Each is one conditional write of the config, and an evaluation then publishes the changes. If the writer
//! stops before it orders the evaluation, the lease, the deadline or the sweep leads to one.

use super::subject::Duty;
use super::{Address, Deployments, Loaded, keys};
use crate::item::Item;
use crate::json::json;
use crate::ports::{Condition, PortError, Ports, Query, Write};
use crate::protocol::{COMMIT_TRIES, Change, Effect, Subject, commit, contended, wake};
use keelway_domain::cause::Cause;
use keelway_domain::deployments::{Answer, Call, Config, Deployment, Past, Refused, Reply, SOURCE, Snapshot, answer};
use keelway_domain::ids::hash64;
use keelway_domain::time::Timestamp;

/// The most attempts of a version that are searched for a token.
const ATTEMPTS: u32 = 20;

/// The answer to a deployer, and the config afterwards.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// The answer.
    pub reply: Reply,
    /// The config. `None`: it does not exist.
    pub config: Option<Config>,
    /// Whether the call was refused because its token belongs to no attempt of this version.
    pub stranger: bool,
    /// The time of the decision.
    pub now: Timestamp,
}

impl<P: Ports> Deployments<P> {
    /// Handles a deployer's call about version `n`.
    ///
    /// # Errors
    /// A port fails. Repeating the call is always safe.
    pub async fn say(&self, of: &Address, n: u64, call: &Call) -> Result<Told, PortError> {
        let key = keys::config(of);
        for _ in 0..COMMIT_TRIES {
            let now = self.ports.now();
            let found = self.ports.get(&key).await?.as_ref().map(Loaded::read).transpose()?;
            let Some(found) = found else {
                let reply =
                    Reply::Refused(Refused::Unknown(format!("there is no deployment config {} in {}", of.name, of.namespace)));
                return Ok(Told { reply, config: None, stranger: true, now });
            };
            let Answer { reply, next } = answer(&found.x, n, call, now);
            let Some(next) = next else {
                let stranger = matches!(reply, Reply::Refused(_)) && self.is_stranger(of, n, call, &found.x).await?;
                if let (Reply::Refused(Refused::Conflict(_)), false) = (&reply, stranger) {
                    self.note_stray(of, n, call, now).await?;
                }
                // Only one of several claims succeeds. The others are not late calls, because their senders have made no earlier
                // ones.
                let comes_late = matches!(call, Call::Claim { by, .. } if by != SOURCE);
                if matches!(reply, Reply::Desired(_)) || !stranger && !comes_late {
                    self.remind(of, &found.x).await?;
                }
                return Ok(Told { reply, config: Some(found.x), stranger, now });
            };
            // Before the commit: if the worker stops in between, a wake-up without effect is left, and not a lease whose end nobody
            // notices.
            if let Some(at) = next.wake().filter(|at| found.x.wake() != Some(*at)) {
                wake(self, next.as_ref(), at).await?;
            }
            let mut change = Change::new(Some(&found.x), (*next).clone(), None);
            change.effects.retain(|effect| !matches!(effect, Effect::Wake(_)));
            if untold(&next) {
                change.effects.push(Effect::Duty(Duty::Evaluate(because(n, now))));
            }
            if commit(self, Some(&found), &change, Cause::default()).await? {
                return Ok(Told { reply, config: Some(*next), stranger: false, now });
            }
        }
        Err(contended(key))
    }

    /// Orders an evaluation if a deployer's call was not published yet, because the writer may have stopped before it did.
    ///
    /// # Errors
    /// A port fails.
    pub async fn remind(&self, of: &Address, x: &Config) -> Result<(), PortError> {
        match x.last.as_ref().filter(|_| untold(x)) {
            Some(last) => self.wake(of, because(last.n, self.ports.now())).await,
            None => Ok(()),
        }
    }

    /// What a version deploys.
    ///
    /// # Errors
    /// A port fails.
    pub async fn snapshot(&self, of: &Address, n: u64, content: u64) -> Result<Option<Snapshot>, PortError> {
        let item = self.ports.get(&keys::snapshot(of, n, content)).await?;
        item.as_ref().map(|item| crate::json::stored(item, "j")).transpose().map(Option::flatten)
    }

    /// Whether the token of a call belongs to no attempt of the version. Calls of strangers are not recorded, because anybody can
    /// send them.
    async fn is_stranger(&self, of: &Address, n: u64, call: &Call, x: &Config) -> Result<bool, PortError> {
        let (Call::Heartbeat { token, .. } | Call::Carry { token, .. } | Call::End { token, .. }) = call else { return Ok(false) };
        let owns = |d: &Deployment| d.n == n && d.claim.as_ref().is_some_and(|claim| claim.token == *token);
        if x.last.as_ref().is_some_and(owns) {
            return Ok(false);
        }
        let query = Query::table(keys::partition(of), ATTEMPTS).prefix(&keys::attempts(n)).newest_first();
        for item in self.ports.query(&query).await?.items {
            if crate::json::stored::<Past>(&item, "j")?.is_some_and(|past| owns(&past.deployment)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Records a call that came too late or from another deployer, and has no effect. A lost claim is not recorded.
    async fn note_stray(&self, of: &Address, n: u64, call: &Call, now: Timestamp) -> Result<(), PortError> {
        let said = match call {
            Call::End { exit, message, .. } => format!("{n}: exit {exit:?} {message}"),
            Call::Claim { .. } | Call::Heartbeat { .. } | Call::Carry { .. } => return Ok(()),
        };
        self.note(of, &said, now).await
    }

    /// Records a call without effect in the audit.
    pub(super) async fn note(&self, of: &Address, said: &str, at: Timestamp) -> Result<(), PortError> {
        let content = hash64(&[b"stray", said.as_bytes()]);
        let expires = self.ports.now() + self.limits.retention;
        let item = Item::new(keys::audit(of, at, content)).with("x", json(&said)).with("ttl", expires.0 / 1000);
        self.ports.write(&Write::Put(item, Condition::Always)).await.map(drop)
    }
}

/// Whether an evaluation has to publish something about a deployer's call. A heartbeat without news needs none.
fn untold(x: &Config) -> bool {
    x.last.as_ref().is_some_and(Deployment::is_untold)
}

/// The reason in the messages for evaluations that deployers cause.
fn because(n: u64, now: Timestamp) -> String {
    format!("deployer {n} {}", now.0)
}

/// A stray report, if the entry of the audit is one.
pub(super) fn stray(item: &Item) -> Result<Option<String>, PortError> {
    crate::json::member(item, "x")
}

/// A drift, if the entry of the audit is one.
pub(super) fn drift(item: &Item) -> Result<Option<String>, PortError> {
    crate::json::member(item, "dr")
}

/// A command, if the entry of the audit is one.
pub(super) fn command(item: &Item) -> Result<Option<keelway_domain::deployments::Obeyed>, PortError> {
    crate::json::member(item, "j")
}
