//! Promotions that sequences carry out.

use keelway_conformance::promotions::{app, definition, settings, target};
use keelway_conformance::stand::{BEGIN, Stand, context, project, shipyard};
use keelway_domain::names::{SequenceName, ServiceName};
use keelway_domain::promotions::definition::{PromotionSpec, Sequence, Strategy};
use keelway_domain::promotions::observe::Observed;
use keelway_domain::promotions::{AttemptResult, Closed, Made, Phase, Pipeline, Seen};
use keelway_domain::time::Span;
use keelway_engine::ports::PortError;
use keelway_engine::promotions::attempts::{Attempts, Outside, Sight, Task};
use keelway_engine::promotions::observations::Fact;
use keelway_engine::promotions::{ATTEMPTS, Address, Limits, Promotions, keys};
use keelway_engine::protocol::Loaded;
use keelway_world::World;
use keelway_world::core::Fault;
use keelway_world::exec::{block_on, step};
use keelway_world::story::play;

/// What carries promotions out: a sequence that is over before anybody hears that it was triggered.
struct Quick;

impl Outside for Quick {
    async fn carry_out(&self, _: &Task) -> Result<AttemptResult, PortError> {
        Ok(AttemptResult::Created(Made::Sequence { context: "quick".into() }))
    }
    async fn take_back(&self, _: &Task, _: &str) -> Result<Closed, PortError> {
        Ok(Closed::Closed)
    }
    async fn follow(&self, _: &Task) -> Result<Option<Seen>, PortError> {
        Ok(Some(Seen::Succeeded("passed".into())))
    }
    async fn look(&self, _: &str, tasks: &[Task], _: Option<&str>) -> Result<Sight, PortError> {
        Ok(Sight { requests: vec![None; tasks.len()], failed: vec![], mark: None, not_before: None })
    }
}

/// The phase of a promotion by such a sequence, without a sweep. The first delivery of its attempt stops after so many requests;
/// this happens to the request with that number.
fn carried_out(requests: usize, (fault, to): (Fault, u64)) -> Option<Phase> {
    let world = World::new(BEGIN);
    let mut seen = 0;
    world.core().faults = Some(Box::new(move |_, _| {
        seen += 1;
        if seen == to { fault } else { Fault::None }
    }));
    let pipelines = || Promotions::new(world.worker(0), Limits::default());
    let (engine, attempts) = (pipelines(), Attempts::new(pipelines(), Quick));
    let to = Address { namespace: "p".into(), name: "flow".into() };
    let sequence = Sequence { project: None, stage: None, service: "svc".into(), name: "delivery".into() };
    let by_sequence = PromotionSpec { strategy: Strategy::Sequence(sequence), ..settings(false, false) };
    block_on(engine.apply(&to, &definition(&[("dev", 1), ("staging", 1)], by_sequence), "")).unwrap();
    for (environment, revision) in [("dev", "v2"), ("staging", "v1")] {
        let observed = Observed { revision: Some(revision.into()), ready: true, error: None, at: BEGIN, by: vec![] };
        block_on(engine.observe(&Fact { app: app(), target: target(environment, 0), version: 1, observed })).unwrap();
    }
    let mut stops = true;
    for _ in 0..100 {
        let now = world.now();
        let due = world.core().queue.next_time();
        let Some(due) = due else { break };
        world.pass(Span((due - now).0.max(0)));
        let now = world.now();
        let next = world.core().queue.receivable(now).first().copied();
        let Some(id) = next else { continue };
        let Some(received) = world.core().queue.receive(id) else { continue };
        if received.engine != ATTEMPTS {
            block_on(play(&engine, &received)).unwrap();
        } else if std::mem::take(&mut stops) {
            let mut attempt = Box::pin(play(&attempts, &received));
            if !(0..requests).any(|_| step(&mut attempt).is_ready()) {
                world.core().queue.give_back(id, now);
                continue;
            }
        } else {
            block_on(play(&attempts, &received)).unwrap();
        }
        world.core().queue.acknowledge(id);
    }
    let core = world.core();
    let x = Loaded::<Pipeline>::read(core.table.peek(&keys::pipeline(&to))?).ok()?.x;
    Some(x.environments.get("staging")?.promotion.as_ref()?.phase)
}

#[test]
fn a_promotion_hears_of_a_sequence_that_ended_before_its_attempt_did() {
    for requests in 0..25 {
        assert_eq!(carried_out(requests, (Fault::None, 0)), Some(Phase::Succeeded), "stopped after {requests} requests");
    }
    for n in 1..100 {
        assert_eq!(carried_out(usize::MAX, (Fault::Repeated, n)), Some(Phase::Succeeded), "request {n} was repeated");
    }
}

/// The bus may take its time with the trigger: whoever gives the promotion up finds neither an execution nor a context. The trigger
/// is stopped after each of its requests meanwhile.
#[test]
fn a_sequence_whose_promotion_was_given_up_does_not_begin_however_late_its_trigger_is() {
    let (name, service) = (SequenceName::new("delivery").expect("a name"), ServiceName::new("svc").expect("a name"));
    for steps in 0.. {
        let stand = Stand::new(&shipyard(&["a"], "b"));
        stand.emit(stand.trigger_event("C1"));
        let (id, trigger) = stand.receive().expect("the trigger");
        let mut task = stand.begin(1, &trigger);
        let over = (0..steps).any(|_| step(&mut task).is_ready());
        // A closing may be tried twice, and so may a person's abort.
        for _ in 0..2 {
            block_on(stand.engine.abort_trigger((&project(), &context("C1")), &name, &service)).expect("aborted");
        }
        if !over {
            block_on(task).expect("handled");
        }
        stand.world.core().queue.acknowledge(id);
        stand.rest();
        let ended = stand.published("C1", "sh.keptn.event.dev.delivery.finished").expect("it is told of");
        assert_eq!(ended["data"]["status"], "aborted", "after {steps} steps: {ended}");
        assert!(steps > 0 || stand.published("C1", "sh.keptn.event.a.triggered").is_none(), "its first task is triggered");
        if over {
            return;
        }
    }
}
