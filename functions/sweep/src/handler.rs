//! One run of the sweep: queues and their functions first, then due dead letters, then as many pages of every engine's open work as
//! time allows. The sweep stores its position, so that the next run continues there. It reports the trouble that it sees.

use crate::knocks::Doors;
use crate::queues;
use keelway_domain::schedules::Schedule;
use keelway_domain::sequences::Execution;
use keelway_domain::time::Span;
use keelway_engine::checks::Rules;
use keelway_engine::deployments::{Asked, Deployments};
use keelway_engine::evaluations::{Evaluations, Reading};
use keelway_engine::ports::{PortError, Ports};
use keelway_engine::promotions::Promotions;
use keelway_engine::protocol::sweep::{self, Swept, Tick};
use keelway_engine::protocol::{Engine, Inbox, Subject, dead_letter};
use keelway_engine::registry::Registry;
use keelway_engine::sequences::Sequences;
use keelway_engine::trouble::{self, Kind, Trouble, Watch};
use keelway_engine::webhooks::Webhooks;
use keelway_engine::{deployments, evaluations, promotions, sequences, webhooks};
use keelway_lambda::aws;
use keelway_lambda::config::ENGINES;
use keelway_lambda::incoming::About;
use std::time::Duration;
use tokio::time::Instant;

/// The time that a page, or a batch of letters, may take if requests are slow or repeated.
const PAGE_TIME: Duration = Duration::from_secs(5);

/// The counts of one run.
#[derive(Default)]
struct Done {
    waiting: usize,
    letters: usize,
    asked: Asked,
    configs: Swept,
    pipelines: Swept,
    schedules: Swept,
    executions: Swept,
    deliveries: Swept,
    evaluations: Swept,
    fed: Option<bool>,
}

/// All engines that keep subjects.
#[expect(missing_docs, reason = "the names of the fields say what they are")]
pub struct Engines<P> {
    pub sequences: Sequences<P>,
    pub promotions: Promotions<P>,
    pub deployments: Deployments<P>,
    pub webhooks: Webhooks<P>,
    pub evaluations: Evaluations<P>,
}

/// The limits of all engines that keep subjects.
#[derive(Default)]
#[expect(missing_docs, reason = "the names of the fields say what they are")]
pub struct Limits {
    pub sequences: sequences::Limits,
    pub promotions: promotions::Limits,
    pub deployments: deployments::Limits,
    pub webhooks: webhooks::Limits,
    pub evaluations: evaluations::Limits,
}

impl<P: Ports + Clone> Engines<P> {
    /// On these ports.
    pub fn new(ports: &P, limits: Limits) -> Self {
        Self {
            sequences: Sequences::new(ports.clone(), limits.sequences),
            promotions: Promotions::new(ports.clone(), limits.promotions),
            deployments: Deployments::new(ports.clone(), limits.deployments),
            webhooks: Webhooks::new(ports.clone(), limits.webhooks),
            evaluations: Evaluations::new(ports.clone(), limits.evaluations, Reading::default()),
        }
    }
}

/// Sweeps until everything is checked or the time is up. Dead letters get half of the time, so that many of them do not delay open
/// work. `patience`: how long messages may wait before that is trouble. What is trouble is given to `report`, as soon as it is
/// seen.
///
/// # Errors
/// The failures of the engines. The next run repeats what failed.
pub async fn sweep<P: Ports>(
    engines: &Engines<P>,
    outside: &(impl Registry + Watch + Doors + Rules),
    patience: Span,
    report: impl Fn(&[Trouble]),
    until: Instant,
) -> Result<(), PortError> {
    let Engines { sequences, promotions, deployments, webhooks, evaluations } = engines;
    let about = About { kind: "sweep", ..About::default() };
    let work = async {
        // Each part has its own time, and a failure of one does not prevent the others.
        let seen = watch(outside, patience, &report).await;
        let fed = webhooks.tend(outside).await;
        let letters = letters(sequences.ports(), half_of(until)).await;
        // The evaluation of configs, below, uses what the registries report here.
        let asked = registries(deployments, outside, half_of(until)).await;
        let configs = pages(deployments, half_of(until)).await;
        let pipelines = pages(promotions, half_of(until)).await;
        let schedules = pages::<Schedule>(sequences, half_of(until)).await;
        let deliveries = pages(webhooks, half_of(until)).await;
        let evaluations = pages(evaluations, half_of(until)).await;
        let executions = pages::<Execution>(sequences, until).await;
        let all = [&configs, &pipelines, &schedules, &deliveries, &evaluations, &executions];
        let stuck: usize = all.into_iter().flatten().map(|swept| swept.stuck).sum();
        if stuck > 0 {
            report(&[Trouble { kind: Kind::WorkStuck, engine: String::new(), much: stuck as f64 }]);
        }
        let (letters, asked, configs, pipelines, schedules) = (letters?, asked?, configs?, pipelines?, schedules?);
        let (deliveries, evaluations, executions, waiting, fed) = (deliveries?, evaluations?, executions?, seen?, fed?);
        Ok::<_, PortError>(Done {
            waiting,
            letters,
            asked,
            configs,
            pipelines,
            schedules,
            executions,
            deliveries,
            evaluations,
            fed,
        })
    };
    aws::accounted(&about, outcome, work).await.map(|_| ())
}

/// The moment after half of the remaining time.
fn half_of(until: Instant) -> Instant {
    let now = Instant::now();
    now + until.saturating_duration_since(now) / 2
}

/// Looks at each queue that has messages, and knocks at its function, whose knock may be lost; returns at how many. A queue that
/// cannot be asked does not prevent the others.
async fn watch(outside: &(impl Watch + Doors), patience: Span, report: impl Fn(&[Trouble])) -> Result<usize, PortError> {
    let (mut waiting, mut outcome) = (0, Ok(()));
    for engine in ENGINES.into_iter().chain([trouble::DEAD_LETTERS]) {
        let looked = async {
            if outside.messages(engine).await? == 0 {
                return Ok(vec![]);
            }
            waiting += 1;
            outside.knock(engine).await?;
            queues::look(outside, engine, patience).await
        };
        match looked.await {
            Ok(seen) => report(&seen),
            Err(error) => outcome = Err(error),
        }
    }
    outcome.map(|()| waiting)
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
    let evaluations = tell(&done.evaluations, "services that are evaluated");
    let Asked { sources, moved } = done.asked;
    let asked = format!("{sources} artifact sources asked about, {moved} tags moved");
    let (letters, waiting) = (done.letters, done.waiting);
    let fed = match done.fed {
        None => "",
        Some(true) => "; the rule for webhooks was enabled",
        Some(false) => "; the rule for webhooks was disabled, nobody subscribes",
    };
    format!(
        "{waiting} queues with messages; {letters} dead letters looked at; {executions}; {schedules}; {pipelines}; {configs}; {deliveries}; {evaluations}; {asked}{fed}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use keelway_domain::cause::Cause;
    use keelway_domain::deployments::registry::Repository;
    use keelway_domain::time::Timestamp;
    use keelway_engine::registry::Tagged;
    use keelway_engine::trouble::Measure;
    use keelway_engine::webhooks::{Address, Message};
    use keelway_world::World;
    use keelway_world::at_once::AtOnce;
    use keelway_world::core::Fault;
    use serde_json::json;
    use std::sync::Mutex;

    /// No registry, and queues without messages but that of one engine, whose function does not start.
    #[derive(Default)]
    struct Outside {
        down: &'static str,
        refuses: &'static str,
        knocked: Mutex<Vec<String>>,
        fed: Mutex<bool>,
    }

    fn quiet() -> Outside {
        Outside::default()
    }

    impl Registry for Outside {
        async fn tags(&self, _: &Repository) -> Result<Option<Vec<Tagged>>, PortError> {
            Ok(None)
        }
    }

    impl Watch for Outside {
        async fn messages(&self, engine: &str) -> Result<u64, PortError> {
            let refused = || PortError::Refused { request: "test", reason: "no".into() };
            if engine == self.refuses { Err(refused()) } else { Ok(u64::from(engine == self.down)) }
        }
        async fn measured(&self, _: &str, what: &[Measure], _: i64) -> Result<Vec<Vec<f64>>, PortError> {
            Ok(what.iter().map(|of| if *of == Measure::Errors { vec![1.0; 3] } else { vec![] }).collect())
        }
    }

    impl Rules for Outside {
        async fn enabled(&self, name: &str, on_bus: bool) -> Result<Option<bool>, PortError> {
            assert_eq!((name, on_bus), ("webhooks", true), "the only one that is switched");
            Ok(Some(*self.fed.lock().unwrap()))
        }
        async fn switch(&self, _: &str, on: bool) -> Result<(), PortError> {
            *self.fed.lock().unwrap() = on;
            Ok(())
        }
    }

    impl Doors for Outside {
        async fn knock(&self, queue: &str) -> Result<(), PortError> {
            self.knocked.lock().unwrap().push(queue.to_owned());
            Ok(())
        }
    }

    fn made() -> (World, Engines<AtOnce>) {
        let world = World::new(Timestamp(1_795_000_000_000));
        let ports = AtOnce::new(world.worker(0));
        (world, Engines::new(&ports, Limits::default()))
    }

    /// A world with a delivery of a webhook whose wake-up is lost, and the time at which that is long overdue.
    async fn with_lost_wake_up() -> (World, Engines<AtOnce>) {
        let (world, engines) = made();
        let of = Address { namespace: "p".into(), name: "hook".into() };
        let says = json!({"events": ["*"], "projects": ["p"], "url": "https://receiver.test", "attempts": 10});
        engines.webhooks.apply(&of, &serde_json::from_value(says).unwrap(), "").await.unwrap();
        let event = json!({"id": "e-1", "source": "somebody", "type": "a.type", "data": {"project": "p"}});
        let deliver = Message::Deliver { to: of, event, again: None, unmatched: false };
        engines.webhooks.message(&deliver, Cause::default()).await.unwrap();
        world.core().queue.messages.clear();
        world.pass(Span::minutes(20));
        (world, engines)
    }

    /// What a sweep answers, and the trouble that it reports.
    async fn swept(engines: &Engines<AtOnce>, outside: &Outside) -> (Result<(), PortError>, Vec<(Kind, String)>) {
        let reported = Mutex::new(vec![]);
        let report = |seen: &[Trouble]| reported.lock().unwrap().extend(seen.iter().map(|one| (one.kind, one.engine.clone())));
        let done = sweep(engines, outside, Span::minutes(5), report, Instant::now() + Duration::from_secs(60)).await;
        (done, reported.into_inner().unwrap())
    }

    #[tokio::test]
    async fn letters_that_cannot_be_sent_keep_no_engine_from_being_swept() {
        let (world, engines) = with_lost_wake_up().await;
        // The first request of the sweep, which is about dead letters, fails.
        let mut first = true;
        world.core().faults = Some(Box::new(move |_, _| if std::mem::take(&mut first) { Fault::Throttled } else { Fault::None }));
        let (done, _) = swept(&engines, &quiet()).await;
        assert!(done.is_err(), "the tick says what could not be done");
        assert_eq!(world.core().queue.messages.len(), 1, "the delivery is woken");
    }

    #[tokio::test]
    async fn work_that_does_not_go_on_is_trouble() {
        let (world, engines) = with_lost_wake_up().await;
        let stuck = vec![(Kind::WorkStuck, String::new())];
        assert_eq!(swept(&engines, &quiet()).await, (Ok(()), stuck), "twenty minutes are too long");
        let due = std::mem::take(&mut world.core().queue.messages);
        assert_eq!(due.len(), 1, "its message, which reaches nobody");
        let (_, again) = swept(&engines, &quiet()).await;
        assert_eq!(again.len(), 1, "as long as it is so");
    }

    #[tokio::test]
    async fn every_queue_is_looked_at_whatever_else_fails() {
        let (_, engines) = made();
        assert_eq!(swept(&engines, &quiet()).await, (Ok(()), vec![]), "nothing happens");
        for down in ENGINES.into_iter().chain([trouble::DEAD_LETTERS]) {
            let outside = Outside { down, ..quiet() };
            let (done, seen) = swept(&engines, &outside).await;
            assert_eq!((done, seen), (Ok(()), vec![(Kind::FunctionFails, down.to_owned())]));
            assert_eq!(*outside.knocked.lock().unwrap(), [down], "where messages wait, and nowhere else");
        }
        let (done, seen) = swept(&engines, &Outside { down: trouble::DEAD_LETTERS, refuses: ENGINES[0], ..quiet() }).await;
        assert!(done.is_err(), "the sweep's own alarm tells this");
        assert_eq!(seen, [(Kind::FunctionFails, trouble::DEAD_LETTERS.to_owned())]);
    }
}
