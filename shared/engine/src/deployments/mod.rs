//! The deployments engine: numbered versions of a config, their deployers, and rollbacks. A deployment config is the subject of its
//! messages.
//!
//! [`Deployments`] decides: every message ends in an evaluation of the whole config ([`keelway_domain::deployments::decide`]). The
//! API and the bus write `configs` and `images`, which have no effects of their own, and wake the configs concerned. `deployers`
//! handles the calls of deployers: each is one conditional write of the config, and an evaluation follows.

pub(crate) mod ask;
pub mod codec;
pub mod configs;
pub mod deployers;
pub mod everywhere;
pub mod images;
pub mod keys;
mod look;
pub mod message;
mod started;
mod subject;
mod tasks;
pub mod views;

pub use ask::Asked;
pub use message::{Address, Job, Message};

use crate::item::{Item, Key};
use crate::keys::hash;
use crate::ports::{Condition, PortError, Ports, Query, Write, Written};
use crate::protocol::level::{self, Given};
use crate::protocol::sweep::Tick;
use crate::protocol::{Change, Engine, Handled, Handler, Inbox, Letter, Verdict, run};
use crate::sequences::awaited::Awaited;
use crate::table::{self, Items};
use keelway_domain::border::Home;
use keelway_domain::cause::Cause;
use keelway_domain::deployments::notice::Notice;
use keelway_domain::deployments::registry::Heads;
use keelway_domain::deployments::{
    Applied, Config, Decision, Facts, Input, Past, Snapshot, Transition, With, decide, target, task_of,
};
use keelway_domain::event::CloudEvent;
use keelway_domain::level::Level as _;
use keelway_domain::note::Note;
use keelway_domain::time::Span;
use subject::Duty;

/// The name of the engine and of its queue.
pub const NAME: &str = "deployments";
/// The queue of the deployers that Keelway starts.
pub const DEPLOYERS: &str = "deployers";
/// Attribute of a task: the reason why no config carries it out.
const NOBODY: &str = "no";
/// Such a reason: the config does not exist.
const NO_CONFIG: i64 = 1;
/// Such a reason: the config's namespace has not consented.
const NOT_LET_IN: i64 = 2;
const SINCE: &str = "cv";
/// Attribute of a task: the message that decided this. Only this message publishes the reason.
const TOLD_BY: &str = "by";
/// The most pruned items that are deleted at once.
const PRUNED: usize = 200;

/// Settings of the installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// How long records and the audit are kept. Default 90 days.
    pub retention: Span,
    /// The installation's account, which is the default for repositories.
    pub account: String,
    /// The installation's region.
    pub region: String,
}

impl Default for Limits {
    fn default() -> Self {
        Self { retention: Span::minutes(90 * 24 * 60), account: String::new(), region: String::new() }
    }
}

/// A delivery of this engine.
pub type Incoming = crate::protocol::Incoming<Message>;
/// A config and the version of its item.
pub type Loaded = crate::protocol::Loaded<Config>;

/// A stored version that cannot be used for a rollback.
#[derive(Debug, Clone, PartialEq)]
pub struct Damaged {
    /// The last attempt, if it can be read.
    pub past: Option<Box<Past>>,
    /// Why it cannot be used.
    pub why: String,
}

/// A version that has ended, if it is kept.
pub type Kept = Result<Option<(Past, Snapshot)>, Damaged>;

/// The engine on its ports.
pub struct Deployments<P> {
    ports: P,
    limits: Limits,
}

impl<P: Ports> Deployments<P> {
    /// An engine on these ports.
    pub fn new(ports: P, limits: Limits) -> Self {
        Self { ports, limits }
    }

    /// The region and account of the installation, which are the defaults for resources.
    pub fn home(&self) -> Home {
        Home { region: self.limits.region.clone(), account: self.limits.account.clone() }
    }

    /// Handles an input of a config.
    pub(crate) async fn turn(&self, to: &Address, input: Input<'_>, cause: Cause) -> Result<Handled, PortError> {
        run(self, cause, &Turn { to, input, cause }).await
    }

    /// The last attempt of a version that has ended, and its snapshot; `None`: it does not exist, or not any more.
    pub(crate) async fn version(&self, of: &Address, n: u64) -> Result<Kept, PortError> {
        let query = Query::table(keys::partition(of), 1).prefix(&keys::attempts(n)).newest_first();
        let page = self.ports.query(&query).await?;
        let name = format!("{}-{n}", of.name);
        let past = page.items.first().map(|item| crate::json::stored::<Past>(item, "j")).transpose();
        let past = match past.map(Option::flatten) {
            Ok(Some(past)) => past,
            Ok(None) => return Ok(Ok(None)),
            Err(_) => return Ok(Err(Damaged { past: None, why: format!("what is kept of version {name} cannot be read") })),
        };
        let item = self.ports.get(&keys::snapshot(of, n, past.deployment.snapshot)).await?;
        let snapshot = item.as_ref().map(|item| crate::json::stored::<Snapshot>(item, "j")).transpose();
        Ok(match snapshot.map(Option::flatten) {
            Ok(Some(snapshot)) => Ok(Some((past, snapshot))),
            Ok(None) => Err(Damaged { past: Some(Box::new(past)), why: format!("the snapshot of version {name} is missing") }),
            Err(_) => Err(Damaged { past: Some(Box::new(past)), why: format!("the snapshot of version {name} cannot be read") }),
        })
    }

    /// Deletes the versions below one.
    async fn prune(&self, of: &Address, oldest: u64) -> Result<(), PortError> {
        for prefix in [keys::SNAPSHOTS, keys::PAST] {
            let partition = keys::partition(of);
            let below = Some(format!("{prefix}{:010}$", oldest.saturating_sub(1)));
            let query = Query { to: below, ..Query::table(partition.clone(), 50).prefix(prefix) };
            let (items, _) = table::all(&self.ports, query, PRUNED).await?;
            table::record(&self.ports, vec![], items.into_iter().map(|item| item.key).collect()).await?;
        }
        Ok(())
    }
}

impl<P: Ports> Inbox for Deployments<P> {
    type Ports = P;
    type Message = Message;

    const NAME: &'static str = NAME;

    fn ports(&self) -> &P {
        &self.ports
    }
    fn retention(&self) -> Span {
        self.limits.retention
    }
    async fn event(&self, event: &CloudEvent, cause: Cause) -> Result<Handled, PortError> {
        self.task(event, cause).await
    }
    async fn message(&self, message: &Message, cause: Cause) -> Result<Handled, PortError> {
        let (to, input) = match message {
            Message::Evaluate { to, .. } => (to, Input::Evaluate),
            Message::Wake { to, at } => (to, Input::Wake(*at)),
            Message::Alarm { to, alarm, on, at } => (to, Input::Alarm(alarm, *on, *at)),
            Message::Command { to, command, note } => (to, Input::Command(command, note)),
            Message::Over { to, triggered } => (to, Input::Over(triggered)),
            Message::Saw { to, sight } => (to, Input::Saw(sight)),
            Message::Notice { notice } => return self.notice(notice).await,
        };
        self.turn(to, input, cause).await
    }
}

impl<P: Ports> Deployments<P> {
    /// Takes what AWS has told.
    async fn notice(&self, notice: &Notice) -> Result<Handled, PortError> {
        match notice {
            Notice::Image(image) => self.image(image).await,
            Notice::Alarm(alarm) => self.alarm(alarm).await,
            Notice::Run(run) => self.ran(run).await,
            Notice::Other => Ok(Handled::Recorded),
        }
    }
}

impl<P: Ports> Engine<Config> for Deployments<P> {
    async fn perform(&self, x: &Config, duty: &Duty) -> Result<(), PortError> {
        match duty {
            Duty::Evaluate(because) => self.wake(&x.address(), because.clone()).await,
            Duty::Prune(oldest) => self.prune(&x.address(), *oldest).await,
        }
    }
    async fn look(&self, open: &[Loaded], tick: &mut Tick) -> Result<Vec<Letter>, PortError> {
        look::look(self, open, tick).await
    }
}

/// The version to go back to, or why it cannot be used.
fn parts(kept: Kept) -> (Option<(Past, Snapshot)>, Option<String>) {
    match kept {
        Ok(target) => (target, None),
        Err(damaged) => (None, Some(damaged.why)),
    }
}

/// Whether this message decided that no config carries the task out. Its redeliveries publish that again, copies do not.
fn is_refused_by(decided: &Item, cause: Cause) -> bool {
    decided.number(NOBODY).is_some() && decided.text(TOLD_BY).is_none_or(|by| by == hash(cause.id))
}

/// An input on its way to a config.
type Turn<'a, 'i> = level::Turn<'a, Input<'i>>;

impl Given for Input<'_> {
    fn note(&self) -> Option<&Note> {
        if let Input::Command(_, note) = self { Some(note) } else { None }
    }
}

impl Turn<'_, '_> {
    /// The key of the decision about the task of a sequence. The first copy of the trigger decides for all copies.
    fn task(&self) -> Option<Key> {
        let Input::Command(command, _) = self.input else { return None };
        task_of(command).map(|task| keys::task(&task.triggered))
    }

    /// The sequence that waits for it.
    fn awaited(&self) -> Option<Awaited> {
        let Input::Command(command, _) = self.input else { return None };
        task_of(command).and_then(tasks::awaited)
    }

    /// The sequence no longer waits for the task, and the config never took it: nothing is deployed, and there is no answer.
    async fn too_late<P: Ports>(&self, engine: &Deployments<P>, found: Option<&Loaded>) -> Result<Verdict<Config>, PortError> {
        let Input::Command(command, note) = self.input else { return Ok(Verdict::Late) };
        if found.is_some_and(|found| found.x.has_obeyed(note)) {
            return Ok(Verdict::Late);
        }
        if let Some(task) = task_of(command) {
            let said = format!("task {} of {}: its sequence does not wait for it any more", task.name, task.context);
            engine.note(self.to, &said, self.cause.sent).await?;
            tracing::info!(config = %self.to, task = task.triggered, "a task that nobody waits for is recorded as stale");
        }
        Ok(Verdict::Done(Handled::Stale))
    }

    /// Whether it is about an alarm that the config knows. A deleted config takes note of it, too.
    fn is_known_alarm(&self, old: Option<&Config>) -> bool {
        matches!(self.input, Input::Alarm(name, ..) if old.is_some_and(|x| x.alarms.contains_key(name)))
    }

    /// The task names a config that does not exist, or is being deleted.
    async fn for_nobody<P: Ports>(&self, engine: &Deployments<P>) -> Result<Verdict<Config>, PortError> {
        let Some(task) = self.task() else { return Ok(Verdict::Late) };
        let decided = engine.for_nobody(task, NO_CONFIG, self.cause);
        Ok(match engine.ports.write(&Write::Put(decided, Condition::Absent)).await? {
            Written::Done => Verdict::Done(Handled::Invalid),
            Written::Conflict(_) => Verdict::Again,
        })
    }
}

impl<P: Ports> Handler<Config, Deployments<P>> for Turn<'_, '_> {
    fn key(&self) -> Key {
        keys::config(self.to)
    }

    fn reads(&self) -> Vec<Key> {
        let execution = self.awaited().map(|awaited| awaited.key());
        self.task().into_iter().chain(execution).chain([keys::definition(self.to)]).collect()
    }

    async fn decide(&self, engine: &Deployments<P>, found: Option<&Loaded>, items: &Items) -> Result<Verdict<Config>, PortError> {
        if let Some(decided) = self.task().and_then(|task| items.get(&task)) {
            let since = decided.number(SINCE).unwrap_or_default();
            return Ok(match decided.number(NOBODY) {
                Some(_) if is_refused_by(decided, self.cause) => Verdict::Done(Handled::Invalid),
                // Another message was answered.
                Some(_) => Verdict::Done(Handled::Stale),
                // One transaction wrote both items, but they may become visible one after the other.
                None if found.map_or(0, |found| found.version) < since => Verdict::Again,
                None => Verdict::Late,
            });
        }
        if self.task().is_some() {
            let awaited = self.awaited();
            let open = awaited.map(|awaited| awaited.is_open(items.get(&awaited.key()))).transpose()?;
            if !open.unwrap_or_default() {
                return self.too_late(engine, found).await;
            }
        }
        let written = items.get(&keys::definition(self.to));
        let applied = written.map(configs::read).transpose()?.flatten().map(|(applied, _)| applied);
        let heads = match &applied {
            Some(applied) => images::of(&engine.ports, self.to, &applied.definition).await?,
            None => Heads::new(),
        };
        let now = engine.ports.now();
        if self.is_forgotten(engine, now) {
            return Ok(Verdict::Late);
        }
        let old = found.map(|loaded| &loaded.x);
        let new = || Config::new(&self.to.namespace, &self.to.name, now);
        let x = match self.state(old, applied.is_some() || self.is_known_alarm(old), new) {
            Some(x) => x,
            None if self.task().is_some() => return self.for_nobody(engine).await,
            None => return self.deleted(engine, old).await,
        };
        let (target, damaged) = match target(&x, self.input, applied.as_ref()) {
            Some(n) => parts(engine.version(self.to, n).await?),
            None => (None, None),
        };
        let (target, damaged) = (target.as_ref(), damaged.as_deref());
        let facts = Facts { now, cause: self.cause, applied: applied.as_ref(), heads: &heads, target, damaged };
        match decide(&x, self.input, &facts) {
            Decision::Commit(_) if self.was_refused(engine).await? => Ok(Verdict::Done(Handled::Invalid)),
            Decision::Commit(transition) => Ok(Verdict::Commit(Box::new(engine.change(self, found, *transition, written)?))),
            Decision::Settle => Ok(Verdict::Settle),
            Decision::Late => Ok(Verdict::Late),
            Decision::Refused(_) if self.was_done(engine, old).await? => Ok(Verdict::Settle),
            Decision::Refused(_) if self.task().is_some() => self.for_nobody(engine).await,
            Decision::Refused(refused) => self.refuse(engine, refused.reason()).await,
        }
    }
}

impl<P: Ports> Deployments<P> {
    /// The item of a decision about a task.
    fn decided(&self, task: Key) -> Item {
        Item::new(task).with("ttl", (self.ports.now() + self.limits.retention).0 / 1000)
    }

    /// The item of a task that no config carries out, with the reason.
    fn for_nobody(&self, task: Key, why: i64, cause: Cause) -> Item {
        self.decided(task).with(NOBODY, why).with(TOLD_BY, hash(cause.id))
    }

    /// The writes of a transition: snapshots before the commit, because their keys are derived from their content; everything else
    /// in the transaction of the commit.
    fn change(
        &self,
        turn: &Turn<'_, '_>,
        found: Option<&Loaded>,
        transition: Transition,
        written: Option<&Item>,
    ) -> Result<Change<Config>, PortError> {
        let mut change = Change::new(found.map(|found| &found.x), transition.next, transition.record);
        let With { snapshots, past, rewritten, obeyed, drifted } = transition.with;
        change.items = snapshots.iter().map(|snapshot| codec::snapshot(turn.to, snapshot)).collect();
        let expires = self.ports.now() + self.limits.retention;
        let history = past.iter().map(|past| codec::past(turn.to, past));
        let history = history.chain(obeyed.iter().map(|obeyed| codec::obeyed(turn.to, obeyed, expires)));
        let history = history.chain(drifted.iter().map(|said| codec::drifted(turn.to, said, self.ports.now(), expires)));
        change.with.extend(history.map(|item| Write::Put(item, Condition::Always)));
        let since = found.map_or(0, |found| found.version) + 1;
        change.with.extend(turn.task().map(|task| Write::Put(self.decided(task).with(SINCE, since), Condition::Absent)));
        change.with.extend(turn.awaited().map(|awaited| awaited.check()));
        if let (Some(definition), Some(item)) = (rewritten, written) {
            let by = turn.input.note().map(|note| note.by.clone()).unwrap_or_default();
            let applied = Applied { definition, version: item.version() + 1, by, request: None, asked: 0 };
            // The config may watch other tags now.
            let (write, entries) = self.rewritten(turn.to, item, &applied)?;
            change.items.extend(entries);
            change.with.push(write);
        }
        Ok(change)
    }
}
