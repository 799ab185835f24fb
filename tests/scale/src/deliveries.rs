//! Loads of sequences.

use super::executor::{TASK, answers, executor, present, trigger};
use super::result::{Seen, seconds, seen};
use super::{BEGIN, LONGEST, Outcome, Place};
use keelway_domain::event::CloudEvent;
use keelway_domain::names::{ProjectName, TaskName};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::item::Item;
use keelway_engine::ports::Store;
use keelway_engine::projects::keys;
use keelway_engine::refusal::Refusal;
use keelway_engine::sequences::{Limits, Sequences};
use keelway_engine::views::{WorkFilter, WorkPage};
use keelway_wire::manifest::{self, Document};
use keelway_world::World;
use keelway_world::account::{Account, Actor};
use keelway_world::exec::block_on;
use keelway_world::worker::Worker;
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const MINUTE: Span = Span::minutes(1);
pub(crate) const DAY: Span = Span::minutes(24 * 60);
/// One stage, and one task.
pub(crate) const PLAIN: &str = "{name: dev, sequences: [{name: delivery, tasks: [{name: build}]}]}";
/// When the windows of [`FROZEN`] open: nearly two hours after the beginning.
const OPENS: Timestamp = Timestamp(1_795_006_800_000);
const FROZEN: &str = "{name: dev, windows: [{kind: deny, from: \"2026-11-18T10:00:00Z\", until: \"2026-11-18T13:00:00Z\"}], \
                      sequences: [{name: delivery, tasks: [{name: build}]}]}";
const ENDED: &str = "sh.keptn.event.dev.delivery.finished";
/// So many projects there are.
const PROJECTS: usize = 20;

pub(crate) fn project(lane: usize) -> String {
    format!("project-{}", lane % PROJECTS)
}

pub(crate) fn service(lane: usize) -> String {
    format!("service-{lane}")
}

/// So much of a time has passed when the n-th of so many begins.
fn spread(span: Span, n: usize, of: usize) -> Span {
    Span(span.0 * i64::try_from(n).unwrap_or(0) / i64::try_from(of.max(1)).unwrap_or(1))
}

/// A world with the projects.
pub(crate) fn world(stage: &str) -> World {
    let world = World::new(BEGIN);
    let manifest =
        format!("apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nmetadata: {{name: shipyard}}\nspec: {{stages: [{stage}]}}\n");
    let parsed = manifest::parse(&manifest, "shipyard.yaml");
    let Some(Document::Shipyard(shipyard)) = parsed.documents.first() else { panic!("{:?}", parsed.findings) };
    let text = serde_json::to_string(&shipyard.shipyard).expect("a shipyard is JSON");
    for n in 0..PROJECTS {
        let name = ProjectName::new(project(n)).expect("a name");
        let items = [
            Item::new(keys::listed(name.as_str())),
            Item::new(keys::revision(&name, "r1")).with("j", text.as_str()),
            Item::new(keys::project(&name)).with("v", 1i64).with("rev", "r1"),
        ];
        block_on(world.worker(0).put_batch(&items, &[])).expect("the twin takes it");
    }
    world
}

pub(crate) fn account(world: &World, place: &Place, limits: &Limits, actor: Actor) -> Account<Sequences<Worker>> {
    let limits = limits.clone();
    Account::new(world, (place.settings(), place.quotas()), move |worker| Sequences::new(worker, limits.clone()), actor)
}

/// What came of it: `count` executions that began at `since` or waited until then.
fn outcome(
    (what, place): (&str, Place),
    account: &Account<Sequences<Worker>>,
    (count, since, offered): (usize, Timestamp, Span),
) -> Outcome {
    let Seen { ended, last, slowest } = seen(&account.world, since, ENDED);
    let mut wrong: Vec<String> = account.world.core().bus.contradictions.clone();
    wrong.extend(ended.iter().filter(|(_, (times, _))| *times > 1).map(|(of, (times, _))| format!("{of:?} ended {times} times")));
    wrong.extend(ended.iter().filter(|(_, (_, result))| result != "pass").map(|(of, (_, result))| format!("{of:?}: {result}")));
    let left = account.world.core().queue.messages.len();
    wrong.extend((left > 0).then(|| format!("{left} messages are left")));
    Outcome {
        what: what.into(),
        place,
        begun: count,
        ended: ended.len(),
        took: seconds(last - since),
        offered: seconds(offered),
        bounds: account.bounds(),
        slowest: seconds(slowest),
        totals: account.totals(),
        wrong,
    }
}

/// Deliveries that begin in one minute, five on each lane.
fn deliver(place: Place, keep: bool) -> (Account<Sequences<Worker>>, usize) {
    const ON_A_LANE: usize = 5;
    let count = place.share(10_000);
    let mut account = account(&world(PLAIN), &place, &Limits::default(), present());
    account.archive = keep.then(Vec::new);
    for n in 0..count {
        let lane = n % count.div_ceil(ON_A_LANE);
        let at = BEGIN + spread(MINUTE, n, count);
        account.put(at, trigger((&project(lane), &service(lane)), &format!("delivery-{n}"), at));
    }
    account.run(BEGIN + LONGEST);
    (account, count)
}

/// 10,000 deliveries begin in one minute.
pub fn burst(place: Place) -> Outcome {
    let (account, count) = deliver(place, false);
    outcome(("10,000 deliveries begin in one minute", place), &account, (count, BEGIN, Span(MINUTE.0 + TASK.0)))
}

/// Every event of a day with 10,000 deliveries is delivered again.
pub fn replay(place: Place) -> Outcome {
    let (mut first, count) = deliver(place, true);
    let events: Vec<CloudEvent> = first.archive.take().unwrap_or_default();
    let world = first.world.clone();
    drop(first);
    world.pass(DAY);
    let (since, published) = (world.now(), world.outgoing().len());
    let ended = seen(&world, BEGIN, ENDED).ended.len();
    let mut again = account(&world, &place, &Limits::default(), present());
    for event in events {
        again.replay(event);
    }
    again.run(since + LONGEST);
    let mut outcome = outcome(("a day of 10,000 deliveries is replayed", place), &again, (count, since, Span(0)));
    outcome.took = seconds(world.now() - since);
    outcome.ended = ended;
    let more = world.outgoing().len() - published;
    outcome.wrong.extend((more > 0).then(|| format!("{more} events are new")));
    outcome
}

/// One context has 1,000 executions, which begin in ten seconds.
pub fn one_context(place: Place) -> Outcome {
    let count = place.share(1_000);
    let mut account = account(&world(PLAIN), &place, &Limits::default(), present());
    for lane in 0..count {
        let at = BEGIN + spread(Span::seconds(10), lane, count);
        account.put(at, trigger((&project(0), &service(lane)), "all-of-them", at));
    }
    account.run(BEGIN + LONGEST);
    let offered = Span(10_000 + TASK.0);
    outcome(("one context has 1,000 executions", place), &account, (count, BEGIN, offered))
}

/// 100,000 executions, each on a lane of its own, came in during an hour and wait for a window.
pub fn window(place: Place) -> Outcome {
    let count = place.share(100_000);
    let mut account = account(&world(FROZEN), &place, &Limits::default(), present());
    for lane in 0..count {
        let at = BEGIN + spread(Span::minutes(60), lane, count);
        account.put(at, trigger((&project(lane), &service(lane)), &format!("frozen-{lane}"), at));
    }
    account.run(OPENS);
    account.count_anew();
    account.run(BEGIN + LONGEST);
    outcome(("a window opens for 100,000 executions", place), &account, (count, OPENS, TASK))
}

/// An executor is away for a week, while a thousand services deliver twice a day. Then it asks what is open, and is there again.
pub fn outage(place: Place) -> Outcome {
    const ON_A_LANE: usize = 14;
    let lanes = place.share(1_000);
    let limits = Limits { start_deadline: Span(10 * DAY.0), ..Limits::default() };
    let there = Arc::new(AtomicBool::new(false));
    let world = world(PLAIN);
    let mut account = account(&world, &place, &limits, executor(there.clone()));
    for n in 0..lanes * ON_A_LANE {
        let at = BEGIN + spread(Span(7 * DAY.0), n, lanes * ON_A_LANE);
        let lane = n % lanes;
        account.put(at, trigger((&project(lane), &service(lane)), &format!("delivery-{n}"), at));
    }
    let back = BEGIN + Span(7 * DAY.0);
    account.run(back);
    account.count_anew();
    there.store(true, Ordering::Relaxed);
    let api = Sequences::new(world.worker(0), limits);
    let mut known: HashSet<String> = HashSet::new();
    let mut at = back;
    // While any is open that it has not answered, or its request failed, it asks again in a second.
    while ask(&api, &mut known).is_none_or(|open| {
        let more = !open.is_empty();
        for (after, event) in open.iter().flat_map(|trigger| answers(trigger, at)) {
            account.put(at + after, event);
        }
        more
    }) {
        at = at + Span::seconds(1);
        account.run(at);
    }
    account.run(at + LONGEST);
    let offered = Span(TASK.0 * i64::try_from(ON_A_LANE).unwrap_or(0));
    let what = "an executor comes back after a week in which 14,000 deliveries began";
    outcome((what, place), &account, (lanes * ON_A_LANE, back, offered))
}

/// What is open and was not known before; `None`: a request failed.
pub(crate) fn ask(api: &Sequences<Worker>, known: &mut HashSet<String>) -> Option<Vec<Value>> {
    let task = [TaskName::new("build").ok()?];
    let (mut open, mut after): (Vec<Value>, Option<String>) = (vec![], None);
    loop {
        let page: Result<WorkPage, Refusal> = block_on(async {
            let work = api.views().open_work(&task, &WorkFilter::default(), after.as_deref(), &|_, _| true).await?;
            Ok(api.views().work_page(&work, 100).await?)
        });
        let page = page.ok()?;
        open.extend(page.events);
        after = page.next;
        if after.is_none() {
            open.retain(|trigger| known.insert(trigger["id"].as_str().unwrap_or_default().to_owned()));
            return Some(open);
        }
    }
}
