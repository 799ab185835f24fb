//! How long an answer of the API waits for the table, counted in requests that follow each other: nothing here depends on how fast a
//! machine is.

use keelway_conformance::stand::{Stand, project, shipyard};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::sequences::views::EventFilter;
use keelway_world::exec::step;
use std::collections::BTreeSet;
use std::task::Poll;

/// Contexts with a task under way each.
fn stand(contexts: usize) -> Stand {
    let stand = Stand::new(&shipyard(&["build"], "release"));
    stand.world.core().table.metered = false;
    for n in 0..contexts {
        stand.trigger(&format!("context-{n:02}"));
    }
    stand
}

/// A page's contexts, its next position, its requests, and how many times somebody waited for requests. `slow`: how long each of these
/// takes.
fn page(stand: &Stand, from: i64, slow: Span) -> (BTreeSet<String>, i64, u64, usize) {
    let before = stand.world.core().request_count();
    let mut waited = 0;
    let (project, filter) = (project(), EventFilter::default());
    let mut reading = Box::pin(stand.engine.events_in(&project, &filter, 100, from));
    let page = loop {
        match step(&mut reading) {
            Poll::Ready(page) => break page.unwrap(),
            Poll::Pending => {
                waited += 1;
                stand.world.pass(slow);
            }
        }
    };
    let contexts = page.items.iter().map(|event| event["shkeptncontext"].as_str().unwrap().to_owned()).collect();
    (contexts, page.next, stand.world.core().request_count() - before, waited)
}

#[test]
fn a_page_of_twenty_five_contexts_waits_a_dozen_times() {
    let stand = stand(25);
    let (contexts, next, requests, waited) = page(&stand, 0, Span(0));
    assert_eq!((contexts.len(), next), (25, 0));
    // The project, the list of contexts, three queries for each context.
    assert!(requests <= 2 + 3 * 25, "{requests} requests");
    assert!(waited <= 12, "waited {waited} times for {requests} requests");
}

#[test]
fn a_slow_table_makes_pages_shorter_and_loses_nothing() {
    let stand = stand(25);
    let (mut all, mut from, mut pages) = (vec![], 0, 0);
    loop {
        let began: Timestamp = stand.world.now();
        let (contexts, next, ..) = page(&stand, from, Span::seconds(1));
        assert!(stand.world.now() - began <= Span::seconds(9), "a page took {} ms", (stand.world.now() - began).0);
        all.extend(contexts);
        (from, pages) = (next, pages + 1);
        if next == 0 {
            break;
        }
    }
    assert!(pages > 1);
    assert_eq!((all.len(), all.iter().collect::<BTreeSet<_>>().len()), (25, 25), "each once");
}
