//! What work outside is promised: its message may be delivered twice, at the same time or by a worker that stops after any request.
//! A toy is told all of it: it makes something outside that has an identity, tells that it is done, and owes a letter for that.

use keelway_conformance::stand::BEGIN;
use keelway_domain::cause::Cause;
use keelway_domain::time::Span;
use keelway_engine::item::{Item, Key};
use keelway_engine::ports::{Clock, Condition, PortError, Store, Write, Written};
use keelway_engine::protocol::Handled;
use keelway_engine::protocol::work::{Claim, Work, work};
use keelway_engine::table;
use keelway_world::World;
use keelway_world::exec::{Task, block_on, step};
use keelway_world::rng::Rng;
use keelway_world::worker::Worker;
use std::sync::{Arc, Mutex};
use std::task::Poll;

/// More requests than one delivery ever makes.
const MANY: usize = 20;
/// A claim of another message counts for so long after its last beat.
const LEASE: Span = Span::seconds(45);

/// What was done outside, in its order.
type Outside = Arc<Mutex<Vec<&'static str>>>;

struct Toy {
    worker: Worker,
    cause: Cause,
    outside: Outside,
    /// Doing it takes so long.
    takes: Span,
}

fn state() -> Key {
    Key::new("TOY", "!")
}

fn letter() -> Key {
    Key::new("TOY", "letter")
}

impl Toy {
    /// Writes over what was found. `false`: somebody else was faster.
    async fn write(&self, found: &Item, item: Item) -> Result<Option<Item>, PortError> {
        let item = item.with("v", found.version() + 1);
        let written = self.worker.write(&Write::Put(item.clone(), Condition::Version(found.version()))).await?;
        Ok((written == Written::Done).then_some(item))
    }

    fn held(&self) -> Item {
        let now = self.worker.now();
        Item::new(state()).with("by", self.cause.id.to_string()).with("until", (now + LEASE).0)
    }

    async fn says(&self, what: &'static str) -> Result<(), PortError> {
        self.worker.outside(|| what.to_owned(), |_| self.outside.lock().unwrap().push(what)).await
    }
}

impl Work for Toy {
    type Found = Item;
    /// The item that holds the claim.
    type Task = Item;
    type Outcome = ();

    async fn find(&self) -> Result<Option<Item>, PortError> {
        self.worker.get(&state()).await
    }

    async fn claim(&self, found: &Item) -> Result<Claim<Item>, PortError> {
        let now = self.worker.now();
        if found.text("done").is_some() {
            return Ok(Claim::Unwanted);
        }
        let by_another = found.text("by").is_some_and(|by| by != self.cause.id.to_string());
        if by_another && found.number("until") > Some(now.0) {
            return Ok(Claim::Not(Handled::Stale));
        }
        Ok(self.write(found, self.held()).await?.map_or(Claim::Not(Handled::Stale), Claim::Mine))
    }

    async fn outside(&self, _: &Item, _: &Item) -> Result<Option<()>, PortError> {
        let until = self.worker.now() + self.takes;
        while self.worker.now() < until {
            self.says("waits").await?;
        }
        let is_there = self.worker.outside(|| "look".into(), |_| self.outside.lock().unwrap().contains(&"made")).await?;
        if !is_there {
            self.says("made").await?;
        }
        Ok(Some(()))
    }

    async fn tell(&self, _: &Item, held: Item, (): ()) -> Result<Handled, PortError> {
        let held = if self.takes > Span(0) { self.worker.get(&state()).await?.unwrap_or(held) } else { held };
        match self.write(&held, Item::new(state()).with("done", "yes")).await? {
            Some(_) => self.owed(&held).await.map(|()| Handled::Committed),
            None => Ok(Handled::Stale),
        }
    }

    async fn owed(&self, _: &Item) -> Result<(), PortError> {
        table::record(&self.worker, vec![Item::new(letter())], vec![]).await
    }

    fn every(&self) -> Option<Span> {
        (self.takes > Span(0)).then_some(Span::seconds(15))
    }

    async fn beat(&self, held: &Item, _: u64) -> Result<(), PortError> {
        let found = self.worker.get(&state()).await?.unwrap_or_else(|| held.clone());
        self.write(&found, self.held()).await.map(drop)
    }
}

struct Stand {
    world: World,
    outside: Outside,
}

impl Stand {
    fn new() -> Self {
        let world = World::new(BEGIN);
        let wanted = Item::new(state()).with("v", 1);
        drop(world.core().table.put_batch(&[wanted], &[], false).unwrap());
        Self { world, outside: Outside::default() }
    }

    /// A delivery of the `n`th message, to a worker of its own.
    fn delivery(&self, n: u64, again: bool, takes: Span) -> Task<Result<Handled, PortError>> {
        let worker = self.world.worker(usize::try_from(n).unwrap() + usize::from(again));
        let cause = Cause { again, ..Cause::of(&n.to_be_bytes(), BEGIN) };
        let toy = Toy { worker: worker.clone(), cause, outside: self.outside.clone(), takes };
        Box::pin(async move { work(&worker, cause, &toy).await })
    }

    fn made(&self) -> usize {
        self.outside.lock().unwrap().iter().filter(|what| **what == "made").count()
    }

    fn assert_done(&self, when: &str) {
        let worker = self.world.worker(9);
        let found = block_on(worker.get(&state())).unwrap().unwrap();
        assert!(found.text("done").is_some() && block_on(worker.get(&letter())).unwrap().is_some(), "{when}: {found:?}");
    }
}

#[test]
fn a_copy_and_a_redelivery_do_nothing_again() {
    let stand = Stand::new();
    assert_eq!(block_on(stand.delivery(1, false, Span(0))), Ok(Handled::Committed));
    for (n, again) in [(1, true), (1, false), (2, false)] {
        assert_eq!(block_on(stand.delivery(n, again, Span(0))), Ok(Handled::Stale));
    }
    assert_eq!(stand.made(), 1);
    stand.assert_done("at the end");
    let gone = Stand::new();
    drop(gone.world.core().table.put_batch(&[], &[state()], false).unwrap());
    assert_eq!((block_on(gone.delivery(1, true, Span(0))), gone.made()), (Ok(Handled::Stale), 0));
}

#[test]
fn a_worker_that_stops_after_any_request_leaves_nothing_undone() {
    let mut stopped = 0;
    for after in 0..MANY {
        let stand = Stand::new();
        let mut task = stand.delivery(1, false, Span(0));
        if (0..after).any(|_| step(&mut task).is_ready()) {
            break;
        }
        stopped = after;
        drop(task);
        block_on(stand.delivery(1, true, Span(0))).unwrap();
        assert_eq!(stand.made(), 1, "a worker stops after request {after}");
        stand.assert_done(&format!("a worker stops after request {after}"));
    }
    assert!(stopped > 5, "{stopped} requests");
}

#[test]
fn of_two_messages_at_the_same_time_one_is_claimed() {
    for seed in 0..200 {
        let stand = Stand::new();
        let mut rng = Rng::new(seed);
        let mut tasks = [stand.delivery(1, false, Span(0)), stand.delivery(2, false, Span(0))].map(Some);
        let mut handled = vec![];
        while handled.len() < tasks.len() {
            let place = rng.below(2);
            if let Some(Poll::Ready(done)) = tasks[place].as_mut().map(step) {
                tasks[place] = None;
                handled.push(done.unwrap());
            }
        }
        assert_eq!(handled.iter().filter(|handled| **handled == Handled::Committed).count(), 1, "seed {seed}: {handled:?}");
        assert_eq!(stand.made(), 1, "seed {seed}");
        stand.assert_done(&format!("seed {seed}"));
    }
}

/// The clock goes on by five seconds with each request.
#[test]
fn work_that_takes_long_keeps_its_claim() {
    let stand = Stand::new();
    let mut long = stand.delivery(1, false, Span::minutes(5));
    loop {
        let polled = step(&mut long);
        if let Poll::Ready(done) = polled {
            assert_eq!(done, Ok(Handled::Committed));
            break;
        }
        let mut core = stand.world.core();
        core.now = core.now + Span::seconds(5);
        drop(core);
        if !stand.outside.lock().unwrap().is_empty() && stand.made() == 0 {
            assert_eq!(block_on(stand.delivery(3, false, Span(0))), Ok(Handled::Stale), "it is claimed");
        }
    }
    assert_eq!(stand.made(), 1);
    stand.assert_done("after five minutes");
}
