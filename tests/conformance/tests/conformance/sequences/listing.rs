//! How long an answer of the API waits for the table, counted in requests that follow each other: nothing here depends on how fast
//! a machine is.

use keelway_conformance::stand::{BEGIN, Stand, project, shipyard};
use keelway_domain::names::{Context, ProjectName, TaskName};
use keelway_domain::sequences::Execution;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::item::{Item, Key};
use keelway_engine::ports::Write;
use keelway_engine::protocol::create;
use keelway_engine::sequences::keys;
use keelway_engine::views::{EventFilter, WorkFilter};
use keelway_world::exec::{block_on, step};
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

/// A page's contexts, its next position, its requests, and how many times somebody waited for requests. `slow`: how long each of
/// these takes.
fn page(stand: &Stand, from: i64, slow: Span) -> (BTreeSet<String>, i64, u64, usize) {
    let before = stand.world.core().request_count();
    let mut waited = 0;
    let (project, filter, views) = (project(), EventFilter::default(), stand.engine.views());
    let mut reading = Box::pin(views.events_in(&project, &filter, 100, from));
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

/// An open task like this one in another project and context, sent at another time: its execution and its record.
fn put_like(stand: &Stand, x: &Execution, project: ProjectName, context: &str, sent: Timestamp) {
    let copy = Execution { project, context: Context::new(context).unwrap(), sent: Some(sent), ..x.clone() };
    let Write::Put(item, _) = create(&copy, BEGIN) else { panic!("a subject is created by a put") };
    let record = |x: &Execution| keys::record(&x.project, &x.context, &x.record.unwrap());
    let like = stand.item(&record(x)).unwrap();
    let Key { pk, sk } = record(&copy);
    stand.put(Item { key: Key::new(pk, sk), ..like });
    stand.put(item);
}

#[test]
fn more_open_triggers_than_are_read_at_once_come_oldest_first_and_each_once() {
    const OPEN: usize = 6_000;
    let stand = stand(1);
    let x = stand.executions("context-00").remove(0);
    let sent = |n: usize| BEGIN + Span::seconds(100 + (n * 7_919 % OPEN) as i64);
    for n in 0..OPEN {
        // Most of them are in one project: its part of the index is longer than what is read at once.
        let project = if n.is_multiple_of(3) { format!("project-{}", n % 20) } else { "project".to_owned() };
        put_like(&stand, &x, ProjectName::new(project).unwrap(), &format!("c{n}"), sent(n));
    }
    let mut expected: Vec<usize> = (0..OPEN).collect();
    expected.sort_by_key(|n| sent(*n));
    let tasks = [TaskName::new("build").unwrap()];
    for project in [None, ProjectName::new("project").ok()] {
        let of = |n: &&usize| project.is_none() || !n.is_multiple_of(3);
        let filter = WorkFilter { project: project.clone(), ..WorkFilter::default() };
        let mut expected: Vec<String> = expected.iter().filter(of).map(|n| format!("c{n}")).collect();
        if project.is_none() {
            expected.insert(0, "context-00".into());
        }
        let (mut seen, mut key, mut pages) = (vec![], None, 0);
        loop {
            let before = stand.world.core().request_count();
            let open = block_on(stand.engine.views().open_work(&tasks, &filter, key.as_deref(), &|_, _| true)).unwrap();
            let page = block_on(stand.engine.views().work_page(&open, 100)).unwrap();
            let requests = stand.world.core().request_count() - before;
            assert!(requests <= u64::from(keys::TASK_SHARDS) + 4, "{requests} requests for a page");
            assert!(pages > 0 || open.fingerprint().is_none(), "not all of it was read");
            seen.extend(page.events.iter().map(|event| event["shkeptncontext"].as_str().unwrap().to_owned()));
            pages += 1;
            key = page.next;
            if key.is_none() {
                break;
            }
        }
        assert_eq!(seen, expected);
        assert!(pages <= OPEN / 80, "{pages} pages");
    }
}

#[test]
fn whoever_is_shown_few_projects_does_not_wait_behind_the_work_of_others() {
    let stand = stand(1);
    let x = stand.executions("context-00").remove(0);
    let others = ProjectName::new("others").unwrap();
    for n in 0..3_500 {
        put_like(&stand, &x, others.clone(), &format!("c{n}"), BEGIN + Span::seconds(100) + Span(n / 2));
    }
    // The last one of the same part of the index.
    let mut names = (0..100).map(|n| ProjectName::new(format!("mine-{n}")).unwrap());
    let mine = names.find(|name| keys::task_shard(name) == keys::task_shard(&others)).unwrap();
    put_like(&stand, &x, mine.clone(), "own", BEGIN + Span::seconds(1000));
    let tasks = [TaskName::new("build").unwrap()];
    let shown = |_: &str, project: &str| project == mine.as_str();
    let open = block_on(stand.engine.views().open_work(&tasks, &WorkFilter::default(), None, &shown)).unwrap();
    let page = block_on(stand.engine.views().work_page(&open, 10)).unwrap();
    let contexts: Vec<_> = page.events.iter().map(|event| event["shkeptncontext"].as_str().unwrap()).collect();
    assert_eq!((contexts, page.next, open.fingerprint().is_some()), (vec!["own"], None, true));
}

#[test]
fn more_triggers_of_one_moment_than_are_read_at_once_are_all_listed() {
    const OPEN: usize = 2_500;
    let stand = stand(1);
    let x = stand.executions("context-00").remove(0);
    for n in 0..OPEN {
        put_like(&stand, &x, ProjectName::new("project").unwrap(), &format!("c{n}"), BEGIN + Span::seconds(100));
    }
    let tasks = [TaskName::new("build").unwrap()];
    let filter = WorkFilter { project: ProjectName::new("project").ok(), ..WorkFilter::default() };
    let (mut seen, mut key) = (BTreeSet::new(), None);
    loop {
        let open = block_on(stand.engine.views().open_work(&tasks, &filter, key.as_deref(), &|_, _| true)).unwrap();
        let page = block_on(stand.engine.views().work_page(&open, 100)).unwrap();
        for event in &page.events {
            assert!(seen.insert(event["shkeptncontext"].as_str().unwrap().to_owned()), "listed twice");
        }
        key = page.next;
        if key.is_none() {
            break;
        }
    }
    assert_eq!(seen.len(), OPEN);
}
