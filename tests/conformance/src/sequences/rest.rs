//! Coming to rest, and what must be so then.

use super::Shipyards;
use super::actors::{Action, Asked, Tag};
use super::check::{decode, record};
use super::plan::Order;
use crate::sim::Sim;
use keelway_domain::event::{CloudEvent, EventType, Kind, PREFIX};
use keelway_domain::ids::{ExecutionId, RecordId};
use keelway_domain::sequences::{Bare, End, Execution, Lane, Record, content, domain_event_starts};
use keelway_domain::stored::Stored;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::item::Key;
use keelway_engine::protocol::Handled;
use keelway_engine::sequences::keys::{self, LaneKey};
use keelway_engine::sequences::{Address, Message, NAME, codec, history};
use keelway_world::queue::Parcel;
use keelway_world::table::Table;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Rounds in which everything must have ended: approvals of one sequence after another, and timeouts.
const ROUNDS: usize = 60;

impl Shipyards {
    pub(super) fn open(&self, sim: &Sim<Self>) -> Vec<Arc<Execution>> {
        let core = sim.world.core();
        let items = self.watch.executions.iter().filter_map(|key| core.table.peek(key));
        items.filter_map(|item| decode(item).ok()).filter(|x| x.outcome.is_none()).collect()
    }

    /// No more faults: lifts pauses, decides approvals, redrives or sweeps; everything must end.
    pub(super) fn end_everything(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        let mut lost = self.order_lost || sim.stats.0.contains_key("dead letters");
        if sim.troubles.cut {
            let swept = sim.sweep_only(self)?;
            self.made_good(sim, swept)?;
            lost = true;
        }
        // Without anything lost, nothing waits for the sweep.
        if lost {
            if sim.troubles.redrive_first && !self.order_lost {
                sim.redrive(self)?;
            } else {
                sim.sweep_until_still(self)?;
            }
        }
        if self.plan.expiry {
            sim.redrive(self)?;
            self.outlive(sim)?;
        }
        sim.note("resuming and approving");
        for n in 0..3 {
            if is_paused(sim, n) {
                let now = sim.world.now();
                sim.plan(now, Action::Order(n, Order::Resume, None));
            }
        }
        // A message that tells of other windows finds the executions by an index.
        lost |= self.plan.extras.windows.len() > 1 && sim.troubles.stale_indexes;
        let mut repeated = self.plan.extras.retries.is_empty();
        for round in 0..ROUNDS {
            sim.rest(self, 60_000)?;
            let open = self.open(sim);
            if open.is_empty() && repeated {
                break;
            }
            if open.is_empty() {
                // Once more what failed, now that nothing goes wrong.
                repeated = true;
                let now = sim.world.now();
                (0..3).for_each(|n| sim.plan(now, Action::Retry(n, None)));
                continue;
            }
            let approvals = approve(sim, &open) + self.let_through(sim, &open);
            if approvals == 0 {
                if !lost && round < ROUNDS - 1 {
                    return Err(format!("without anything lost, something never ends: {open:?}"));
                }
                sim.sweep_after(open.iter().filter_map(|x| x.wake));
            }
            if round == ROUNDS - 1 {
                return Err(format!("never ends: {open:?}"));
            }
        }
        sim.note("redriving what is left");
        sim.redrive(self)?;
        for _ in 0..ROUNDS {
            let open = self.open(sim);
            if open.is_empty() {
                return Ok(());
            }
            if approve(sim, &open) + self.let_through(sim, &open) == 0 {
                sim.sweep_after(open.iter().filter_map(|x| x.wake));
            }
            sim.rest(self, 60_000)?;
        }
        Err(format!("after a redrive never ends: {:?}", self.open(sim)))
    }

    /// What a sweep makes good for, whatever was lost: nothing that it looks for is left.
    fn made_good(&self, sim: &Sim<Self>, swept: Timestamp) -> Result<(), String> {
        let overdue = |at: Timestamp| at + Span::minutes(3) < swept;
        for x in self.open(sim) {
            let core = sim.world.core();
            let item = |key| core.table.peek(&key).map(|item| &**item);
            let flags = codec::context(item(keys::context(&x.project, &x.context))).flags;
            if flags.aborts(&x.stage, x.epoch) || flags.pauses(&x.stage) != x.paused {
                return Err(format!("after a sweep somebody has not heard of {flags:?}: {x:?}"));
            }
            let unanswered = x.is_open() && x.reactions.is_empty() && !x.waits_for_approval() && x.repeated.is_none();
            let told = x.record.is_some_and(|id| core.bus.knows(&id.uuid().to_string()));
            if unanswered && x.sent.is_some_and(overdue) && !told {
                return Err(format!("after a sweep a trigger is not published: {x:?}"));
            }
            if x.wake.is_some_and(overdue) {
                return Err(format!("after a sweep somebody has overslept: {x:?}"));
            }
            if self.watch.freeze.is_forgotten(&x, &core.table, core.now) {
                return Err(format!("after a sweep windows that are not in force hold somebody back: {x:?}"));
            }
            let lane = LaneKey::of(&x);
            // Of those who wait for one lane a tick sees to the first; it may have come and gone since.
            let moved = self.watch.executions.iter().filter_map(|key| decode(core.table.peek(key)?).ok()).any(|other| {
                let at = other.outcome.map(|outcome| outcome.at).max(other.sent);
                LaneKey::of(&other) == lane && at.is_some_and(|at| at + Span::minutes(1) >= swept)
            });
            let held = item(lane.lock()).is_some_and(|lock| lock.text("h").is_some());
            if x.lane == Lane::Wants && x.held.is_none() && overdue(x.caused) && !held && !moved {
                return Err(format!("after a sweep somebody waits for a free lane: {x:?}"));
            }
        }
        Ok(())
    }

    /// Everything that must be so when nothing is left to do.
    pub(super) fn check_rest(&self, sim: &mut Sim<Self>) -> Result<(), String> {
        let world = sim.world.clone();
        let core = world.core();
        let table = &core.table;
        let mut chains: HashMap<String, HashSet<u64>> = HashMap::new();
        let mut recorded: HashSet<(String, u64)> = HashSet::new();
        let mut executions: HashMap<String, i64> = HashMap::new();
        for key in &self.watch.executions {
            let x = table.peek(key).ok_or("an execution is gone").map(decode)??;
            let Some(outcome) = x.outcome else { return Err(format!("{key} never ends: {x:?}")) };
            sim.stats.count(match outcome.end {
                End::Normal => "ended normally",
                End::TimedOut => "timed out",
                End::Aborted => "aborted",
                End::NeverStarted => "never started",
            });
            for (what, is) in [
                ("retries", x.retry_of().is_some()),
                ("overridden", x.view.overridden.is_some()),
                ("rounds", x.sequence == super::plan::REMEDIATION),
                ("held back", self.watch.freeze.freed.contains_key(key)),
            ] {
                sim.stats.add(what, u64::from(is));
            }
            if self.expired {
                continue;
            }
            let chain = chain(&x, table);
            self.check_events(&x, &chain, &core.bus)?;
            for child in super::check::follow_ups(&x, table) {
                if table.peek(&keys::execution(&child)).is_none() {
                    return Err(format!("follow-up {} of {key} was never born", child.execution));
                }
            }
            if outcome.end != End::NeverStarted {
                *executions.entry(key.pk.clone()).or_default() += 1;
            }
            super::repeats::rounds(&x, self.plan.extras.actions, table, &core.bus)?;
            recorded.extend(answers(&x, &chain).map(|content| (key.pk.clone(), content)));
            let absorbed = chain.iter().flat_map(|(_, record)| record.absorbed.iter().copied());
            chains.entry(key.pk.clone()).or_default().extend(absorbed.chain(x.reactions.iter().map(|r| r.content)));
        }
        for item in table.items().filter(|item| item.key.pk.starts_with("K#")) {
            if item.key.sk != keys::MAIN {
                return Err(format!("left in a queue: {}", item.key));
            }
            if let Some(holder) = item.text("h") {
                return Err(format!("lane {} is still held by {holder}", item.key));
            }
        }
        if self.expired {
            return Ok(());
        }
        for (context, executions) in executions {
            let counted = table.peek(&Key::new(context.clone(), keys::MAIN)).and_then(|item| item.number("n"));
            if counted != Some(executions) {
                return Err(format!("{context} has had {executions} executions and counts {counted:?}"));
            }
        }
        sim.stats.add("firings", self.watch.timetable.at_rest(table)?);
        super::repeats::retried(&self.seen().promised, table)?;
        self.check_inputs(sim, table, &chains, recorded)
    }

    /// Exactly one `.finished`, at most one `.started`, and everything committed was published.
    fn check_events(&self, x: &Execution, chain: &[(RecordId, Record)], bus: &keelway_world::bus::BusTwin) -> Result<(), String> {
        let of = |kind: Kind| {
            let ty = x.event_type(kind);
            let answers = format!("\"triggeredid\":\"{}\"", x.trigger_id);
            bus.firsts().filter(|p| p.entry.detail_type == ty && p.entry.detail.contains(&answers)).count()
        };
        let (started, finished) = (of(Kind::Started), of(Kind::Finished));
        if finished != 1 || started > 1 {
            return Err(format!("{} has {started} started and {finished} finished events: {x:?}", x.id));
        }
        let cut_short = x.outcome.is_some_and(|outcome| matches!(outcome.end, End::Aborted | End::TimedOut));
        for (n, (id, record)) in chain.iter().enumerate() {
            // An end that was not a task's may come before the trigger it withdraws was out.
            if n == 1 && cut_short {
                continue;
            }
            for event in record.events(id, &x.context) {
                // Whoever looks at the state, an executor that polls or a person, may answer before the trigger was out; then
                // nobody should see it any more.
                let seen = self.plan.pull || event.ty.ends_with(".approval.triggered");
                let overtaken = seen && event.id == id.uuid().to_string();
                if !bus.knows(&event.id) && !overtaken {
                    return Err(format!("{} of {} was committed and never published", event.ty, x.id));
                }
            }
        }
        Ok(())
    }

    /// Every acknowledged input is in the state, or recorded.
    fn check_inputs(
        &self,
        sim: &Sim<Self>,
        table: &Table,
        chains: &HashMap<String, HashSet<u64>>,
        mut recorded: HashSet<(String, u64)>,
    ) -> Result<(), String> {
        let mut lost_and_found = false;
        for item in table.items() {
            if let Some(content) = keys::event_content(&item.key.sk) {
                recorded.insert((item.key.pk.clone(), content));
            }
            lost_and_found |= item.key.pk.starts_with("B#");
        }
        for (tag, received, handled) in &self.acknowledged {
            let decision = decision(&received.parcel);
            let event = match (&received.parcel, &decision) {
                (Parcel::Event(event), _) => event,
                (_, Some(event)) => event,
                _ => continue,
            };
            let place = keys::context_partition(&super::check::project(), &event.context);
            let hash = content(event);
            let absorbed = chains.get(&place).is_some_and(|chain| chain.contains(&hash));
            let kept = (decision.is_some() && absorbed)
                || recorded.contains(&(place.clone(), hash))
                || (*tag == Tag::Forged && lost_and_found);
            if !kept {
                return Err(format!("{handled:?} {} {} was acknowledged and is recorded nowhere", event.ty, event.id));
            }
            if *tag == Tag::Trigger && !starts(event).iter().all(|to| table.peek(&keys::execution(to)).is_some()) {
                return Err(format!("{handled:?} {} {} was acknowledged and started nothing", event.ty, event.id));
            }
            // Two workers with one message may each say of it what they found.
            let alone = sim.troubles.zombie == 0.0 && sim.troubles.duplicate == 0.0;
            let said = table.peek(&Key::new(place.clone(), keys::event_sort(received.sent, hash))).and_then(|item| item.text("vd"));
            if *handled == Handled::Stale && alone && said != Some("stale") {
                return Err(format!("{} {} came too late and is recorded as {said:?}", event.ty, event.id));
            }
            if matches!(tag, Tag::Honest | Tag::Person) && *handled == Handled::Committed && !absorbed {
                return Err(format!("{} {} was committed and is not in the state", event.ty, event.id));
            }
        }
        Ok(())
    }

    /// A replay of everything that ever came in changes nothing; also after history has expired.
    pub(super) fn replay(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        if !sim.rng.chance(20.0) {
            return Ok(());
        }
        let expired = sim.rng.chance(50.0);
        sim.note("replaying");
        sim.clear_agenda();
        let before = sim.world.core().bus.log.len();
        // A message of our own that is sent again in the same millisecond is that message, and completes what it has caused.
        sim.world.pass(Span(1));
        if expired {
            sim.world.pass(Span::minutes(400 * 24 * 60));
            self.remove(sim, |_| true)?;
        }
        for (tag, received, _) in std::mem::take(&mut self.acknowledged) {
            if matches!(tag, Tag::Trigger | Tag::Honest | Tag::Person) {
                let id = sim.world.enqueue(NAME, received.parcel);
                self.tags.insert(id, Tag::Forged);
            }
        }
        let handed_in = self.seen().handed_in.clone();
        for body in handed_in {
            sim.world.enqueue(NAME, Parcel::Own(body));
        }
        let executions = self.watch.executions.len();
        sim.rest(self, 60_000)?;
        let published: Vec<String> =
            sim.world.core().bus.log[before..].iter().map(|publication| publication.entry.detail.clone()).collect();
        if !published.is_empty() || self.watch.executions.len() != executions {
            return Err(format!("a replay (history expired: {expired}) set off {published:?}"));
        }
        sim.stats.count("replays");
        Ok(())
    }
}

fn is_paused(sim: &Sim<Shipyards>, n: usize) -> bool {
    let key = keys::context(&super::check::project(), &super::actors::context(n));
    let flags = codec::context(sim.world.core().table.peek(&key).map(|item| &**item)).flags;
    flags.paused || !flags.paused_stages.is_empty()
}

/// Everybody who was asked says yes.
fn approve(sim: &mut Sim<Shipyards>, open: &[Arc<Execution>]) -> usize {
    let waiting: Vec<(Arc<Execution>, RecordId)> =
        { open.iter().filter(|x| x.waits_for_approval()).filter_map(|x| Some((x.clone(), x.record?))).collect() };
    for (x, trigger) in &waiting {
        let uuid = trigger.uuid().to_string();
        let (stage, service) = (&x.stage, x.service.as_str());
        let asked = Asked { task: "approval", stage, service, context: &x.context, trigger: &uuid };
        let mut event = asked.event(sim.world.now(), "late-person", Kind::Finished);
        event.data.insert("result".into(), "pass".into());
        event.data.insert("status".into(), "succeeded".into());
        let to = Address::of(x);
        let now = sim.world.now();
        sim.plan(now, Action::Decide(to, *trigger, Box::new(event)));
    }
    waiting.len()
}

/// The decision in a message of a person.
fn decision(parcel: &Parcel) -> Option<CloudEvent> {
    let Parcel::Own(text) = parcel else { return None };
    match Message::from_json(text).ok()? {
        Message::Decide { event, .. } => history::from_json(&event),
        _ => None,
    }
}

/// The executions a client's trigger or domain event starts.
fn starts(event: &CloudEvent) -> Vec<Address> {
    let project = super::check::project();
    let root = ExecutionId::of_trigger(&project, &event.context, &event.source, &event.id);
    let to = |execution| Address { project: super::check::project(), context: event.context.clone(), execution };
    match EventType::parse(&event.ty) {
        EventType::Other(_) => {
            let started = domain_event_starts(super::plan::shipyard(), &event.ty, &event.data);
            started
                .iter()
                .map(|(stage, sequence)| to(ExecutionId::of_follow_up(root, "event", &stage.name, &sequence.name)))
                .collect()
        }
        _ => vec![to(root)],
    }
}

/// The contents of the answers that committed records have.
fn answers<'c>(x: &'c Execution, chain: &'c [(RecordId, Record)]) -> impl Iterator<Item = u64> + 'c {
    chain.iter().flat_map(|(id, record)| {
        let trigger = record.previous(id.subject).and_then(|id| Some((id, &chain.iter().find(|(one, _)| *one == id)?.1)));
        let of = |bare: &Bare| {
            let (id, before) = trigger.as_ref()?;
            let task =
                before.events.iter().find(|draft| draft.id.is_none())?.ty.strip_prefix(PREFIX)?.strip_suffix(".triggered")?;
            Some(content(&bare.event(x, task, id)))
        };
        Bare::all(record).iter().filter_map(of).collect::<Vec<_>>()
    })
}

/// The committed records of an execution, newest first.
fn chain(x: &Execution, table: &Table) -> Vec<(RecordId, Record)> {
    let mut found = vec![];
    let mut at = x.record;
    let mut next = record(x, table);
    while let (Some(id), Some(this)) = (at, next) {
        at = this.previous(x.id);
        next = at.and_then(|id| record(&Execution { record: Some(id), ..x.clone() }, table));
        found.push((id, this));
    }
    found
}
