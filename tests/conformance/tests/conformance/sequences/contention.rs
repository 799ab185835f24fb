//! Many answers to one task at once. The workers' requests take turns on a clock of the test: what is counted does not depend on
//! how fast a machine is.

use keelway_conformance::stand::{Stand, shipyard};
use keelway_domain::event::{EventType, Kind};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::ports::PortError;
use keelway_engine::protocol::Handled;
use keelway_engine::sequences::{Incoming, Limits, Sequences};
use keelway_world::exec::{Task, step};
use keelway_world::played::Played;
use std::task::Poll;

/// How long a request takes.
const REQUEST: Span = Span(10);
/// As many batches as are handled at the same time by default.
const WORKERS: usize = 10;
/// Executors of one task.
const EXECUTORS: usize = 50;

/// What became of the messages: how many were not done, and how long all of it took.
struct Count {
    contended: usize,
    requests: u64,
    took: Span,
}

/// A worker that handles a message: when it is ready for its next request, and its number.
type Running = (Timestamp, usize, Task<Result<Handled, PortError>>);

/// Every worker handles one message after the other; whoever is ready first makes the next request.
fn work(stand: &Stand, deliveries: &[Incoming]) -> Count {
    let (began, before) = (stand.world.now(), stand.world.core().request_count());
    let mut waiting = deliveries.iter();
    let mut running: Vec<Running> = vec![];
    let mut contended = 0;
    let mut free: Vec<usize> = (0..WORKERS).rev().collect();
    loop {
        while let Some(id) = free.pop() {
            let Some(delivery) = waiting.next().cloned() else { break };
            let engine = Sequences::new(stand.world.worker(id), Limits::default());
            running.push((stand.world.now(), id, Box::pin(async move { engine.play(&delivery).await })));
        }
        let Some(first) = (0..running.len()).min_by_key(|n| (running[*n].0, running[*n].1)) else { break };
        let (at, id, mut task) = running.swap_remove(first);
        stand.world.pass(Span((at - stand.world.now()).0.max(0)));
        match step(&mut task) {
            Poll::Pending => {
                let paused = stand.world.core().pausing.take().map(|(_, length)| length);
                running.push((at + paused.unwrap_or(REQUEST), id, task));
            }
            Poll::Ready(outcome) => {
                free.push(id);
                match outcome {
                    Ok(_) => (),
                    Err(PortError::Contended { .. }) => contended += 1,
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }
    let requests = stand.world.core().request_count() - before;
    Count { contended, requests, took: stand.world.now() - began }
}

#[test]
fn fifty_answers_in_the_same_moment_are_all_absorbed_by_their_first_delivery() {
    let stand = Stand::new(&shipyard(&["check", "release"], "deploy"));
    stand.trigger("c1");
    let open = stand.published("c1", "sh.keptn.event.check.triggered").unwrap();
    let say = |kind: Kind| {
        let ty = EventType::task("check", kind);
        for n in 0..EXECUTORS {
            let mut event = stand.event("dev", "c1", ty.clone(), open["id"].as_str(), &format!("{n}-{}", kind.as_str()));
            event.source = format!("executor-{n}");
            stand.emit(event);
        }
        std::iter::from_fn(|| stand.receive()).map(|(_, delivery)| delivery).collect::<Vec<_>>()
    };
    for kind in [Kind::Started, Kind::Finished] {
        let deliveries = say(kind);
        assert_eq!(deliveries.len(), EXECUTORS);
        let Count { contended, requests, took } = work(&stand, &deliveries);
        println!("{EXECUTORS} {}: {requests} requests, {} ms, {contended} come back", kind.as_str(), took.0);
        assert_eq!(contended, 0, "{}", kind.as_str());
        // An answer that meets nobody takes three or four.
        assert!(requests <= 12 * EXECUTORS as u64, "{requests} requests");
        assert!(took < Span::seconds(10), "{} ms", took.0);
    }
    assert!(stand.published("c1", "sh.keptn.event.release.triggered").is_some(), "the next task is there");
}
