//! An attempt that takes long stays with whoever carries it out, and one whose function has died does not.

use crate::stand::{definition, next, to};
use keelway_domain::promotions::definition::{Definition, PullRequest, Strategy};
use keelway_domain::promotions::observe::Observed;
use keelway_domain::promotions::{AttemptResult, Closed, HEARTBEAT, Made, Phase, Pipeline, Promotion, Seen};
use keelway_domain::stored::Stored;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::ports::{PortError, Store};
use keelway_engine::promotions::attempts::{Attempts, Outside, Sight, Task};
use keelway_engine::promotions::observations::Fact;
use keelway_engine::promotions::{Job, Limits, Promotions, keys};
use keelway_engine::protocol::Loaded;
use keelway_world::World;
use keelway_world::at_once::AtOnce;
use keelway_world::queue::Parcel;
use keelway_world::story::handle;

const LONG: Span = Span::minutes(5);

pub(crate) async fn promotion(world: &World) -> Promotion {
    let item = AtOnce::new(world.worker(9)).get(&keys::pipeline(&to())).await.unwrap().unwrap();
    let pipeline: Pipeline = Loaded::read(&item).unwrap().x;
    pipeline.environments["prod"].promotion.clone().unwrap()
}

/// A host that takes five minutes to open a pull request.
struct Slow(World);

impl Outside for Slow {
    async fn carry_out(&self, _: &Task) -> Result<AttemptResult, PortError> {
        let end = self.0.now() + LONG;
        while self.0.now() < end {
            tokio::task::yield_now().await;
            let due = promotion(&self.0).await.due;
            assert!(due > Some(self.0.now()), "the lease has ended: {due:?}");
        }
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
        Ok(Sight { requests: vec![None; tasks.len()], failed: vec![], mark: None, not_before: None })
    }
}

pub(crate) fn pipelines(world: &World) -> Promotions<AtOnce> {
    Promotions::new(AtOnce::new(world.worker(1)), Limits::default())
}

fn by_request() -> Definition {
    let request = PullRequest {
        host: "gitea".into(),
        url: "https://git.test/o/r".into(),
        base_branch: "main".into(),
        secret: "git".into(),
        merge: false,
    };
    definition(&["dev", "prod"], Strategy::PullRequest(request))
}

/// Dev runs v2, prod v1; what follows is delivered, until an attempt is to be carried out.
pub(crate) async fn ordered(world: &World) -> Definition {
    let (pipelines, definition) = (pipelines(world), by_request());
    pipelines.apply(&to(), &definition, "").await.unwrap();
    for (version, environment, revision) in [(1, 1, "v1"), (2, 0, "v2")] {
        let target = definition.environments[environment].targets[0].clone();
        let observed = Observed { revision: Some(revision.into()), ready: true, error: None, at: world.now(), by: vec![] };
        pipelines.observe(&Fact { app: definition.app.clone(), target, version, observed }).await.unwrap();
    }
    work::<Slow>(world, None).await;
    definition
}

/// Delivers what is due; jobs only if somebody carries them out.
pub(crate) async fn work<O: Outside>(world: &World, attempts: Option<&Attempts<AtOnce, O>>) {
    let pipelines = pipelines(world);
    let wanted = |engine: &str| attempts.is_some() || engine != keelway_engine::promotions::ATTEMPTS;
    while let Some(id) = next(world, wanted) {
        let received = world.core().queue.receive(id).unwrap();
        match &received.parcel {
            Parcel::Own(text) if Job::from_json(text).is_ok() => {
                handle(attempts.unwrap(), &received).await.unwrap();
            }
            _ => drop(handle(&pipelines, &received).await.unwrap()),
        }
        world.core().queue.acknowledge(id);
    }
}

pub(crate) fn pass(world: &World, span: Span) {
    let mut core = world.core();
    core.now = core.now + span;
    let now = core.now;
    core.queue.fire(now);
}

#[tokio::test]
async fn an_attempt_that_takes_five_minutes_is_carried_out_once() {
    let world = World::new(Timestamp(1_795_000_000_000));
    ordered(&world).await;
    let attempts = Attempts::new(pipelines(&world), Slow(world.clone())).with_heartbeat(HEARTBEAT);
    work(&world, Some(&attempts)).await;
    pass(&world, Span::minutes(2));
    work(&world, Some(&attempts)).await;
    let promotion = promotion(&world).await;
    assert_eq!((promotion.phase, promotion.attempt), (Phase::Created, 1), "{promotion:?}");
}

/// The message stays invisible for half an hour; the lease decides.
#[tokio::test]
async fn an_attempt_whose_function_dies_is_made_again_within_a_minute() {
    let world = World::new(Timestamp(1_795_000_000_000));
    ordered(&world).await;
    let job = next(&world, |engine| engine == keelway_engine::promotions::ATTEMPTS).unwrap();
    let received = world.core().queue.receive(job).unwrap();
    let attempts = Attempts::new(pipelines(&world), Slow(world.clone())).with_heartbeat(HEARTBEAT);
    {
        // The function is stopped after a while.
        let mut attempt = std::pin::pin!(handle(&attempts, &received));
        for _ in 0..20 {
            assert!(polled(attempt.as_mut()).await.is_none());
        }
    }
    let before = promotion(&world).await;
    assert_eq!((before.phase, before.attempt), (Phase::Attempting, 1));
    pass(&world, Span::minutes(1));
    work::<Slow>(&world, None).await;
    let after = promotion(&world).await;
    assert_eq!((after.phase, after.attempt), (Phase::Attempting, 2), "{after:?}");
}

/// Polls once.
pub(crate) async fn polled<T>(mut future: std::pin::Pin<&mut impl Future<Output = T>>) -> Option<T> {
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        std::task::Poll::Ready(done) => std::task::Poll::Ready(Some(done)),
        std::task::Poll::Pending => std::task::Poll::Ready(None),
    })
    .await
}
