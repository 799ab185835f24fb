//! One run of the sweep: due dead letters first, then as many pages of every engine's open work as time allows. The sweep stores
//! its position, so that the next run continues there.

use crate::knocks::{self, Doors};
use keelway_domain::schedules::Schedule;
use keelway_domain::sequences::Execution;
use keelway_engine::deployments::{Asked, Deployments};
use keelway_engine::ports::{PortError, Ports};
use keelway_engine::promotions::Promotions;
use keelway_engine::protocol::sweep::{self, Swept, Tick};
use keelway_engine::protocol::{Engine, Inbox, Subject, dead_letter};
use keelway_engine::registry::Registry;
use keelway_engine::sequences::Sequences;
use keelway_engine::webhooks::Webhooks;
use keelway_lambda::incoming::About;
use keelway_lambda::{aws, metrics};
use std::time::Duration;
use tokio::time::Instant;

/// The time that a page, or a batch of letters, may take if requests are slow or repeated.
const PAGE_TIME: Duration = Duration::from_secs(5);

/// The counts of one run.
#[derive(Default)]
struct Done {
    knocks: usize,
    letters: usize,
    asked: Asked,
    configs: Swept,
    pipelines: Swept,
    schedules: Swept,
    executions: Swept,
    deliveries: Swept,
}

/// All engines that keep subjects.
#[expect(missing_docs, reason = "the names of the fields say what they are")]
pub struct Engines<P> {
    pub sequences: Sequences<P>,
    pub promotions: Promotions<P>,
    pub deployments: Deployments<P>,
    pub webhooks: Webhooks<P>,
}

/// Sweeps until everything is checked or the time is up. Dead letters get half of the time, so that many of them do not delay open
/// work.
///
/// # Errors
/// The failures of the engines. The next run repeats what failed.
pub async fn sweep<P: Ports>(engines: &Engines<P>, outside: &(impl Registry + Doors), until: Instant) -> Result<(), PortError> {
    let Engines { sequences, promotions, deployments, webhooks } = engines;
    let about = About { kind: "sweep", ..About::default() };
    let work = async {
        // Each part has its own time, and a failure of one does not prevent the others.
        let knocks = knocks::knock(outside).await;
        let letters = letters(sequences.ports(), half_of(until)).await;
        // The evaluation of configs, below, uses what the registries report here.
        let asked = registries(deployments, outside, half_of(until)).await;
        let configs = pages(deployments, half_of(until)).await;
        let pipelines = pages(promotions, half_of(until)).await;
        let schedules = pages::<Schedule>(sequences, half_of(until)).await;
        let deliveries = pages(webhooks, half_of(until)).await;
        let executions = pages::<Execution>(sequences, until).await;
        let all = [&configs, &pipelines, &schedules, &deliveries, &executions];
        metrics::stuck(all.into_iter().flatten().map(|swept| swept.stuck).sum());
        let (letters, asked, configs, pipelines, schedules) = (letters?, asked?, configs?, pipelines?, schedules?);
        let (deliveries, executions, knocks) = (deliveries?, executions?, knocks?);
        Ok::<_, PortError>(Done { knocks, letters, asked, configs, pipelines, schedules, executions, deliveries })
    };
    aws::accounted(&about, outcome, work).await.map(|_| ())
}

/// The moment after half of the remaining time.
fn half_of(until: Instant) -> Instant {
    let now = Instant::now();
    now + until.saturating_duration_since(now) / 2
}

async fn letters(ports: &impl Ports, until: Instant) -> Result<usize, PortError> {
    let mut sent = 0;
    loop {
        let some = dead_letter::redrive(ports).await?;
        sent += some;
        if some == 0 || Instant::now() + PAGE_TIME > until {
            return Ok(sent);
        }
    }
}

/// Asks registries for pushes whose events were lost.
async fn registries<P: Ports>(deployments: &Deployments<P>, registry: &impl Registry, until: Instant) -> Result<Asked, PortError> {
    deployments.ask_registries(registry, || Instant::now() + PAGE_TIME <= until).await
}

async fn pages<S: Subject>(engine: &impl Engine<S>, until: Instant) -> Result<Swept, PortError> {
    let mut tick = Tick::default();
    let mut all = Swept::default();
    loop {
        all = all.and(sweep::page(engine, &mut tick).await?);
        if all.finished || Instant::now() + PAGE_TIME > until {
            return Ok(all);
        }
    }
}

fn outcome(done: &Done) -> String {
    let tell = |swept: &Swept, what: &str| {
        let Swept { seen, sent, stuck, finished } = swept;
        let rest = if *finished { "all seen" } else { "to be continued" };
        let stuck = if *stuck == 0 { String::new() } else { format!(", {stuck} of them stuck") };
        format!("{seen} open {what} seen{stuck}, {sent} messages sent, {rest}")
    };
    let (executions, pipelines) = (tell(&done.executions, "executions"), tell(&done.pipelines, "pipelines"));
    let (configs, schedules) = (tell(&done.configs, "deployment configs"), tell(&done.schedules, "schedules"));
    let deliveries = tell(&done.deliveries, "deliveries of webhooks");
    let Asked { sources, moved } = done.asked;
    let asked = format!("{sources} artifact sources asked about, {moved} tags moved");
    let (letters, knocks) = (done.letters, done.knocks);
    format!(
        "{knocks} functions knocked at; {letters} dead letters looked at; {executions}; {schedules}; {pipelines}; {configs}; {deliveries}; {asked}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use keelway_domain::cause::Cause;
    use keelway_domain::deployments::registry::Repository;
    use keelway_domain::time::{Span, Timestamp};
    use keelway_engine::deployments;
    use keelway_engine::registry::Tagged;
    use keelway_engine::webhooks::{Address, Message};
    use keelway_engine::{promotions, sequences};
    use keelway_world::World;
    use keelway_world::at_once::AtOnce;
    use keelway_world::core::Fault;
    use serde_json::json;

    struct Nothing;

    impl Registry for Nothing {
        async fn tags(&self, _: &Repository) -> Result<Option<Vec<Tagged>>, PortError> {
            Ok(None)
        }
    }

    impl Doors for Nothing {
        async fn waiting(&self, _: &str) -> Result<u64, PortError> {
            Ok(0)
        }
        async fn knock(&self, _: &str) -> Result<(), PortError> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn letters_that_cannot_be_sent_keep_no_engine_from_being_swept() {
        let world = World::new(Timestamp(1_795_000_000_000));
        let ports = AtOnce::new(world.worker(0));
        let engines = Engines {
            sequences: Sequences::new(ports.clone(), sequences::Limits::default()),
            promotions: Promotions::new(ports.clone(), promotions::Limits::default()),
            deployments: Deployments::new(ports.clone(), deployments::Limits::default()),
            webhooks: Webhooks::new(ports, Default::default()),
        };
        let of = Address { namespace: "p".into(), name: "hook".into() };
        let says = json!({"events": ["*"], "projects": ["p"], "url": "https://receiver.test", "attempts": 10});
        engines.webhooks.apply(&of, &serde_json::from_value(says).unwrap(), "").await.unwrap();
        let event = json!({"id": "e-1", "source": "somebody", "type": "a.type", "data": {"project": "p"}});
        let deliver = Message::Deliver { to: of, event, again: None, unmatched: false };
        engines.webhooks.message(&deliver, Cause::default()).await.unwrap();
        // Its wake-up is lost, and the first request of the sweep, which is about dead letters, fails.
        world.core().queue.messages.clear();
        world.pass(Span::minutes(20));
        let mut first = true;
        world.core().faults = Some(Box::new(move |_, _| if std::mem::take(&mut first) { Fault::Throttled } else { Fault::None }));
        let swept = sweep(&engines, &Nothing, Instant::now() + Duration::from_secs(60)).await;
        assert!(swept.is_err(), "the tick says what could not be done");
        assert_eq!(world.core().queue.messages.len(), 1, "the delivery is woken");
    }
}
