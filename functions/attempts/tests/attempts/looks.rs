//! Looks: one is made once, and one serves all that wanted it.

use crate::heartbeat::{ordered, pass, pipelines, polled, work};
use crate::stand::next;
use keelway_domain::promotions::{AttemptResult, Closed, Made, Seen};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::ports::PortError;
use keelway_engine::promotions::ATTEMPTS;
use keelway_engine::promotions::attempts::{Attempts, Outside, Sight, Task};
use keelway_engine::protocol::Handled;
use keelway_world::World;
use keelway_world::at_once::AtOnce;
use keelway_world::story::handle;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

const REPOSITORY: &str = "https://git.test/o/r";

/// A host that opens pull requests at once, and answers to looks when it may.
#[derive(Clone, Default)]
struct Counted {
    looks: Arc<AtomicUsize>,
    answers: Arc<AtomicBool>,
}

impl Outside for Counted {
    async fn carry_out(&self, _: &Task) -> Result<AttemptResult, PortError> {
        let made = Made::PullRequest { number: 1, url: "u".into(), branch: "b".into(), head: "h".into(), mergeable: None };
        Ok(AttemptResult::Created(made))
    }
    async fn take_back(&self, _: &Task, _: &str) -> Result<Closed, PortError> {
        Ok(Closed::Closed)
    }
    async fn follow(&self, _: &Task) -> Result<Option<Seen>, PortError> {
        Ok(None)
    }
    async fn look(&self, _: &str, tasks: &[Task], _: Option<&str>) -> Result<Sight, PortError> {
        self.looks.fetch_add(1, SeqCst);
        while !self.answers.load(SeqCst) {
            tokio::task::yield_now().await;
        }
        Ok(Sight { requests: vec![None; tasks.len()], failed: vec![], mark: None, not_before: None })
    }
}

impl Counted {
    fn looks(&self) -> usize {
        self.looks.load(SeqCst)
    }
}

/// A pull request is open, and its first look is due.
async fn due() -> (World, Counted, Attempts<AtOnce, Counted>) {
    let world = World::new(Timestamp(1_795_000_000_000));
    ordered(&world).await;
    let host = Counted::default();
    let attempts = Attempts::new(pipelines(&world), host.clone());
    work(&world, Some(&attempts)).await;
    pass(&world, Span::seconds(30));
    assert_eq!(host.looks(), 0);
    (world, host, attempts)
}

#[tokio::test]
async fn a_look_that_is_under_way_is_not_made_again() {
    let (world, host, attempts) = due().await;
    let id = next(&world, |engine| engine == ATTEMPTS).unwrap();
    let received = world.core().queue.receive(id).unwrap();
    let copy = world.core().queue.copy(id, &received);
    let mut first = pin!(handle(&attempts, &received));
    while host.looks() == 0 {
        assert!(polled(first.as_mut()).await.is_none());
    }
    let received = world.core().queue.receive(copy).unwrap();
    let mut second = pin!(handle(&attempts, &received));
    let mut ended = None;
    for _ in 0..100 {
        ended = ended.or(polled(second.as_mut()).await);
        if ended.is_some() {
            break;
        }
    }
    assert_eq!((ended.map(Result::unwrap), host.looks()), (Some(Handled::Stale), 1));
    // A webhook meanwhile may be about something that this look has not seen.
    assert!(pipelines(&world).look_at(REPOSITORY).await.unwrap());
    host.answers.store(true, SeqCst);
    assert_eq!(first.await.unwrap(), Handled::Committed);
    pass(&world, Span::seconds(5));
    work(&world, Some(&attempts)).await;
    assert_eq!(host.looks(), 2);
    pass(&world, Span::seconds(30));
    work(&world, Some(&attempts)).await;
    assert_eq!(host.looks(), 3, "looks go on at their usual pace");
}

#[tokio::test]
async fn a_look_whose_function_dies_is_made_by_the_next_delivery() {
    let (world, host, attempts) = due().await;
    let id = next(&world, |engine| engine == ATTEMPTS).unwrap();
    let received = world.core().queue.receive(id).unwrap();
    {
        let mut look = pin!(handle(&attempts, &received));
        while host.looks() == 0 {
            assert!(polled(look.as_mut()).await.is_none());
        }
    }
    host.answers.store(true, SeqCst);
    let now = world.now();
    world.core().queue.give_back(id, now);
    work(&world, Some(&attempts)).await;
    assert_eq!(host.looks(), 2);
    pass(&world, Span::seconds(30));
    work(&world, Some(&attempts)).await;
    assert_eq!(host.looks(), 3);
}

#[tokio::test]
async fn webhooks_of_one_change_share_a_look() {
    let (world, host, attempts) = due().await;
    host.answers.store(true, SeqCst);
    work(&world, Some(&attempts)).await;
    pass(&world, Span::seconds(20));
    assert_eq!(host.looks(), 1);
    // One change of a pull request, as hosts tell it: several webhooks, within a moment.
    for _ in 0..6 {
        assert!(pipelines(&world).look_at(REPOSITORY).await.unwrap());
        work(&world, Some(&attempts)).await;
    }
    assert_eq!(host.looks(), 2, "the first webhook");
    pass(&world, Span::seconds(5));
    work(&world, Some(&attempts)).await;
    assert_eq!(host.looks(), 3, "all the others");
}
