//! Lanes: at most one execution of a (project, stage, service) holds the lane, the others wait in its queue.
//!
//! `drive` makes a lane consistent. Every message that may have changed the lane may run it. Its effects are the lock itself and
//! one message, "granted", to the execution that now holds the lane.
//!
//! Why no execution waits for ever: an execution that wants the lane commits this, enters the queue, and *then* looks at the lock
//! and its holder. An execution that leaves commits this, and *then* looks at the queue. Whichever comes second sees the other. If
//! either order were reversed, both could miss each other and the lane would hang.
//!
//! The items of a transaction become visible one after another. So a holder or a head that does not exist, and has no tombstone, is
//! being created at this moment: a message that finds one is retried later. A follow-up on its parent's lane gets the lock in the
//! transaction that ends the parent, so no other execution can take the lane in between.

use super::keys::{self, LaneKey};
use super::message::{Address, Message};
use super::subject::{entry, gathered};
use super::{Loaded, Sequences, codec, standing};
use crate::item::{Attr, Attrs, Item, Name};
use crate::ports::{Condition, PortError, Ports, Query, Write, Written};
use crate::protocol::contended;
use crate::table;
use keelway_domain::ids::ExecutionId;
use keelway_domain::names::{Context, ProjectName};
use keelway_domain::sequences::{Duty, Execution, Lane};
use keelway_domain::time::Timestamp;

/// The most rounds in one message; each removes a dead entry or moves the lock. After that, the work is left to other messages.
const TURNS: usize = 60;

/// The most entries of a queue that are looked at: for what a newer execution replaces, the others are replaced when the next one
/// comes; for one that no window holds back.
const LOOKED_AT: usize = 1000;

/// Executions of a queue that are read at once.
const AT_ONCE: usize = 25;

/// A request for a lane: of which execution, and which of its requests.
pub(super) type Request = (ExecutionId, u32);

/// Lock and head of the queue, as one query reads them.
struct View {
    version: i64,
    holder: Option<(Address, u32)>,
    head: Option<(Item, Address, u32)>,
    /// When the last sequence ended that the lock knows.
    last: Option<Timestamp>,
}

/// A lane as a new execution finds it.
pub(super) enum Found {
    /// Free, with an empty queue: the write that takes it, on condition that nothing has changed.
    Free(Write),
    /// Held by another execution; what to do after entering the queue.
    Held(Duty),
    /// It is being handed over.
    Unclear,
}

/// The state of an execution that a lane names.
enum Place {
    Here(Box<Execution>),
    /// Its item is not visible yet.
    Coming,
    Gone,
}

/// The entry of an execution in its lane's queue.
pub(super) fn entry_item(x: &Execution) -> Item {
    Item::new(entry(x)).with("c", x.context.as_str()).with_some("sq", x.is_replaceable().then_some(x.sequence.as_str()))
}

/// The request that an entry of a queue stands for.
fn request(project: &ProjectName, entry: &Item) -> Option<(Address, u32)> {
    let mut parts = entry.key.sk.split('#').skip(3);
    let execution = parts.next().and_then(ExecutionId::parse)?;
    let ask = parts.next().and_then(|n| n.parse().ok()).unwrap_or(0);
    Some((Address { project: project.clone(), context: Context::new(entry.text("c")?).ok()?, execution }, ask))
}

/// Whether a lock names the present request of an execution.
pub(super) fn is_held_by(lock: &Item, x: &Execution) -> bool {
    lock.text("h") == Some(&x.id.to_string()) && lock.number("q").unwrap_or(0) == i64::from(x.ask)
}

/// The execution that holds the lane, as its lock names it.
pub(crate) fn holder(project: &ProjectName, lock: &Item) -> Option<Address> {
    let execution = lock.text("h").and_then(ExecutionId::parse)?;
    Some(Address { project: project.clone(), context: Context::new(lock.text("hc")?).ok()?, execution })
}

/// The write that gives the lock to an execution, or frees it, if the lock is still the one that was read. `left`: what an
/// execution leaves behind in the lock.
pub(super) fn lock_write(lane: &LaneKey, version: i64, holder: Option<&Execution>, left: Attrs) -> Write {
    let mut set = holder.map(holder_attributes).unwrap_or_default();
    set.extend(left);
    set.insert(Name::Borrowed("v"), Attr::N(version + 1));
    set.insert(Name::Borrowed("f"), Attr::N(codec::FORMAT));
    let remove = if holder.is_some() { vec![] } else { ["h", "q", "hc"].map(Name::Borrowed).to_vec() };
    let condition = if version == 0 { Condition::Absent } else { Condition::Version(version) };
    Write::Update { key: lane.lock(), condition, set, remove, raise: false }
}

fn holder_attributes(x: &Execution) -> Attrs {
    Attrs::from([
        (Name::Borrowed("h"), Attr::S(x.id.to_string())),
        (Name::Borrowed("q"), Attr::N(i64::from(x.ask))),
        (Name::Borrowed("hc"), Attr::S(x.context.to_string())),
    ])
}

impl<P: Ports> Sequences<P> {
    async fn view(&self, project: &ProjectName, lane: &LaneKey) -> Result<View, PortError> {
        let page = self.ports.query(&Query::table(lane.0.clone(), 2)).await?;
        let address = |context: Option<&str>, id: Option<ExecutionId>| {
            Some(Address { project: project.clone(), context: Context::new(context?).ok()?, execution: id? })
        };
        let ask = |n: Option<i64>| n.and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
        let mut view = View { version: 0, holder: None, head: None, last: None };
        for item in page.items {
            if item.key.sk == keys::MAIN {
                view.version = item.version();
                view.last = standing::Last::read(&item).map(|last| last.outcome.at);
                let holder = address(item.text("hc"), item.text("h").and_then(ExecutionId::parse));
                view.holder = holder.map(|to| (to, ask(item.number("q"))));
            } else if view.head.is_none() {
                view.head = request(project, &item).map(|(to, ask)| (item, to, ask));
            }
        }
        Ok(view)
    }

    /// The lane as a new execution finds it.
    pub(super) async fn find_lane(&self, x: &Execution) -> Result<Found, PortError> {
        let lane = LaneKey::of(x);
        let view = self.view(&x.project, &lane).await?;
        Ok(match view.holder {
            None if view.head.is_none() => Found::Free(lock_write(&lane, view.version, Some(x), Attrs::new())),
            None => Found::Unclear,
            Some((to, ask)) => Found::Held(Duty::Look { holder: to.execution, context: to.context, ask }),
        })
    }

    /// Drives the lane of `x` unless that request still holds it. One request reads both items: the lock still names the holder,
    /// and the holder, read after `x` entered the queue, still holds the lane; so it will see the entry when it leaves.
    pub(super) async fn look(&self, x: &Execution, holder: &Address, ask: u32) -> Result<(), PortError> {
        let (lock, of_holder) = (LaneKey::of(x).lock(), keys::execution(holder));
        let items = self.read(&[lock.clone(), of_holder.clone()]).await?;
        let holds = items.get(&of_holder).map(Loaded::read).transpose()?.is_some_and(|loaded| {
            let named = items.get(&lock).is_some_and(|lock| is_held_by(lock, &loaded.x));
            named && loaded.x.lane == Lane::Holds && loaded.x.ask == ask
        });
        if holds { Ok(()) } else { self.drive(x, None).await }
    }

    /// Enters the queue, then drives the lane.
    pub(super) async fn ask(&self, x: &Execution) -> Result<(), PortError> {
        table::record(&self.ports, vec![entry_item(x)], vec![]).await?;
        self.drive(x, None).await
    }

    /// Makes the lane of `x` consistent. `left`: a request whose holder is known, from before this call, to have left.
    pub(super) async fn drive(&self, x: &Execution, left: Option<Request>) -> Result<(), PortError> {
        let lane = LaneKey::of(x);
        for _ in 0..TURNS {
            let mut view = self.view(&x.project, &lane).await?;
            let mut leaving = view.holder.is_some().then(|| Box::new(x.clone()));
            if let Some((to, ask)) = view.holder.clone().filter(|(to, ask)| left != Some((to.execution, *ask))) {
                leaving = match self.place(&to).await? {
                    Place::Here(x) if x.lane == Lane::Holds && x.ask == ask => return Ok(()),
                    Place::Here(x) if x.lane == Lane::Wants && x.ask == ask => return self.grant(&x).await,
                    Place::Coming => return Err(coming(&to)),
                    Place::Here(x) => Some(x),
                    Place::Gone => None,
                };
                // Read the queue after the holder was seen to have left; otherwise an entry made in between is missed.
                let again = self.view(&x.project, &lane).await?;
                if again.version != view.version {
                    continue;
                }
                view = again;
            }
            let next = match &view.head {
                None => None,
                Some((item, to, ask)) => match self.place(to).await? {
                    Place::Here(x) if x.lane == Lane::Wants && x.ask == *ask && self.is_held_back(&x) => {
                        self.first_free(&x, &lane).await?
                    }
                    Place::Here(x) if x.lane == Lane::Wants && x.ask == *ask => Some(x),
                    Place::Coming => return Err(coming(to)),
                    Place::Here(_) | Place::Gone => {
                        table::record(&self.ports, vec![], vec![item.key.clone()]).await?;
                        continue;
                    }
                },
            };
            let mut left = leaving.as_deref().map(|x| standing::of(x, view.last)).unwrap_or_default();
            if next.is_none() && view.holder.is_none() {
                // One that gave its lane back, for an approval, ends without it. What it had deployed may not run any more.
                left = standing::end_of(x, view.last);
                if left.is_empty() {
                    return Ok(());
                }
            }
            let write = lock_write(&lane, view.version, next.as_deref(), left);
            if self.ports.write(&write).await? == Written::Done {
                return match next {
                    Some(next) => self.grant(&next).await,
                    None => Ok(()),
                };
            }
        }
        Err(contended(format_args!("lane {}", lane.0)))
    }

    /// Whether a window holds it back still; one whose window has ended gets the lane before its wake-up has come.
    fn is_held_back(&self, x: &Execution) -> bool {
        x.held.as_ref().is_some_and(|held| held.holds(self.ports.now()))
    }

    /// The first in a queue that no window holds back, behind those that one does.
    async fn first_free(&self, x: &Execution, lane: &LaneKey) -> Result<Option<Box<Execution>>, PortError> {
        let (items, _) = table::all(&self.ports, Query::table(lane.0.clone(), 100).prefix(keys::QUEUED), LOOKED_AT).await?;
        let requests: Vec<_> = items.iter().filter_map(|item| request(&x.project, item)).collect();
        for some in requests.chunks(AT_ONCE) {
            let wanted: Vec<_> = some.iter().map(|(to, _)| keys::execution(to)).collect();
            let found = self.read(&wanted).await?;
            for (key, (_, ask)) in wanted.iter().zip(some) {
                let Some(loaded) = found.get(key).map(Loaded::read).transpose()? else { continue };
                if loaded.x.lane == Lane::Wants && loaded.x.ask == *ask && !self.is_held_back(&loaded.x) {
                    return Ok(Some(Box::new(loaded.x)));
                }
            }
        }
        Ok(None)
    }

    /// Of the executions of one sequence that wait for the lane of `x` and may be replaced, the newest stays: each older one is
    /// told by which it is replaced. Those of one root replace nobody.
    pub(super) async fn supersede(&self, x: &Execution) -> Result<(), PortError> {
        let (items, _) = table::all(&self.ports, Query::table(LaneKey::of(x).0, 100).prefix(keys::QUEUED), LOOKED_AT).await?;
        let entry = |item: Item| {
            let mut parts = item.key.sk.split('#').skip(2);
            let accepted = Timestamp(parts.next()?.get(..13)?.parse().ok()?);
            let execution = parts.next().and_then(ExecutionId::parse)?;
            let context = Context::new(item.text("c")?).ok()?;
            let to = Address { project: x.project.clone(), context, execution };
            (item.text("sq") == Some(&x.sequence)).then_some((accepted, to))
        };
        let mut waiting: Vec<_> = items.into_iter().filter_map(entry).collect();
        waiting.push((x.accepted, Address::of(x)));
        let Some((newest, by)) = waiting.iter().max_by_key(|(accepted, _)| *accepted).cloned() else { return Ok(()) };
        waiting.retain(|(accepted, _)| *accepted < newest);
        let told = |(_, to): (_, Address)| Message::Supersede { to, by: by.context.clone() }.letter();
        table::send_all(&self.ports, &waiting.into_iter().map(told).collect::<Vec<_>>()).await
    }

    async fn place(&self, to: &Address) -> Result<Place, PortError> {
        if let Some(Loaded { x, .. }) = self.execution(to).await? {
            return Ok(Place::Here(Box::new(x)));
        }
        let tombstone = keys::tombstone(&to.project, to.execution);
        Ok(if self.read(std::slice::from_ref(&tombstone)).await?.is_empty() { Place::Coming } else { Place::Gone })
    }

    async fn grant(&self, x: &Execution) -> Result<(), PortError> {
        let granted = Message::Granted { to: Address::of(x), ask: x.ask, payload: gathered(x) };
        table::send_all(&self.ports, &[granted.letter()]).await
    }
}

fn coming(to: &Address) -> PortError {
    PortError::Retry { request: "GetItem", reason: format!("execution {} is being created", to.execution) }
}
