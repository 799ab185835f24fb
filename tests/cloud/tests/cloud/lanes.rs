//! One lane, many deliveries.

use crate::bed::Bed;
use keelway_cloud_tests::cloud::now_millis;
use keelway_cloud_tests::events::{Scope, fresh};
use keelway_cloud_tests::executor::{Executor, count};
use keelway_cloud_tests::patience::until;
use keelway_cloud_tests::problem::{ensure, same};
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Outcome, Problem};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::keys::MAIN;
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::time::Duration;

const SHIPYARD: &str = "apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shipyard-queue}
spec: {stages: [{name: dev, sequences: [{name: delivery, tasks: [{name: deploy}]}]}]}
";
const DELIVERIES: usize = 20;

pub fn tests() -> Vec<Test<Bed>> {
    vec![
        Test::new("lanes::twenty deliveries of one service run one after the other, in order", queue),
        Test::new(
            "lanes::what waits for a window begins when it ends, or when somebody overrides it; a schedule triggers in time",
            frozen,
        ),
        Test::new("lanes::what waits for a window begins as soon as the window is taken out", thawed),
    ]
}

fn queue(bed: &Bed) -> Outcome {
    let stack = &bed.stack;
    let project = format!("queue-{}", &fresh()[24..]);
    stack.wait(stack.api().apply_project(&project, SHIPYARD))?;
    let scope = Scope::new(&project, "dev", "cart");
    let contexts: Vec<String> = (0..DELIVERIES).map(|_| fresh()).collect();
    for (i, context) in contexts.iter().enumerate() {
        stack.put_event(&scope.trigger("delivery", context, Map::new()))?;
        if i == 0 {
            // A free lane goes to whom it is given first; the queue is what has an order.
            bed.observer.event(context, "sh.keptn.event.dev.delivery.started", 0)?;
        }
        // Order of acceptance is the queue's clock, which counts milliseconds.
        std::thread::sleep(Duration::from_millis(5));
    }
    let lane = format!("K#{project}#dev#cart");
    bed.observer.wait("all others in the queue", |_| {
        stack.items(&lane, "Q#").is_ok_and(|entries| entries.len() == DELIVERIES - 1).then_some(())
    })?;
    let executor = Executor { stack, observer: &bed.observer, keys: HashSet::from([project.clone()]) };
    let finished = "sh.keptn.event.dev.delivery.finished";
    let events = executor.until(|_| Map::new(), |events| count(events, finished) >= DELIVERIES)?;
    let of = |ty: &str| -> Vec<String> {
        events
            .iter()
            .filter(|event| event["type"] == ty)
            .filter_map(|event| event["shkeptncontext"].as_str().map(str::to_owned))
            .collect()
    };
    same("the order of starts", of("sh.keptn.event.dev.delivery.started"), contexts.clone())?;
    same("the order of ends", of(finished), contexts)?;
    one_holder(&events)?;
    // The last one gives the lane back after it has published its end.
    let left = || -> Result<Vec<String>, Problem> {
        let items = stack.items(&lane, "")?.into_iter();
        Ok(items.filter(|item| item.key.sk != MAIN || item.text("h").is_some()).map(|item| item.key.sk).collect())
    };
    until("a free lane", || Ok(left()?.is_empty().then_some(())), || format!("there is {:?}", left()))
}

const FROZEN: &str = "apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shipyard-frozen}
spec:
  stages:
  - name: prod
    windows: [{kind: deny, from: 2020-01-01, until: 'OPENS', reason: a test}]
    sequences: [{name: delivery, tasks: [{name: deploy}]}]
";
const ONCE: &str = "apiVersion: keelway.dev/v1
kind: Schedule
metadata: {name: once}
spec: {project: PROJECT, stage: prod, services: [clock], sequence: delivery, at: 'OPENS'}
";
const STARTED: &str = "sh.keptn.event.prod.delivery.started";

/// How long the stage is closed. What must happen before it opens takes longer on a busy machine.
const CLOSED: [i64; 3] = [25, 75, 225];

fn frozen(bed: &Bed) -> Outcome {
    for seconds in CLOSED {
        if frozen_for(bed, Span::seconds(seconds))? {
            return Ok(());
        }
    }
    Err(Problem(format!("an override begins nothing in a stage that is closed for {CLOSED:?} seconds")))
}

/// `false`: the stage had opened before the override had begun anything.
fn frozen_for(bed: &Bed, closed: Span) -> Result<bool, Problem> {
    let (stack, project) = (&bed.stack, format!("frozen-{}", &fresh()[24..]));
    let api = stack.api();
    let opens = Timestamp(now_millis()) + closed;
    stack.wait(api.apply_project(&project, &FROZEN.replace("OPENS", &opens.rfc3339())))?;
    let schedule = ONCE.replace("PROJECT", &project).replace("OPENS", &opens.rfc3339());
    stack.wait(api.apply(None, &schedule))?.fine("the schedule")?;
    let (held, passed) = (fresh(), fresh());
    for (service, context) in [("cart", &held), ("other", &passed)] {
        stack.put_event(&Scope::new(&project, "prod", service).trigger("delivery", context, Map::new()))?;
    }
    let is_open = || Timestamp(now_millis()) >= opens;
    let queue = || stack.wait(api.get(&format!("/v1/project/{project}/queue")))?.fine("the queue");
    let both = || {
        let items = queue()?["items"].as_array().cloned().unwrap_or_default();
        Ok((items.len() == 2 || is_open()).then_some(items))
    };
    let items = until("both to wait", both, || format!("{:?}", queue()))?;
    if is_open() {
        return Ok(false);
    }
    let shown = items[0]["waiting"][0].clone();
    same("why it waits", (shown["phase"].clone(), shown["waits"]["window"].clone()), ("frozen".into(), "a test".into()))?;
    let path = format!("/v1/sequence/{project}/{passed}/override");
    let overridden = stack.wait(api.post(&path, &json!({"reason": "it cannot wait"})))?;
    if is_open() {
        return Ok(false);
    }
    overridden.fine("the override")?;
    bed.observer.event(&passed, STARTED, 0)?;
    bed.observer.event(&held, STARTED, 0)?;
    let began = |context: &str| -> Result<Option<Timestamp>, Problem> {
        let entry = stack.wait(api.sequence(&project, context))?.unwrap_or_default();
        Ok(entry["executions"][0]["startedAt"].as_str().and_then(Timestamp::parse))
    };
    ensure(began(&held)?.is_some_and(|at| at >= opens), || format!("it began in a closed stage: {:?}", began(&held)))?;
    if began(&passed)?.is_none_or(|at| at >= opens) {
        return Ok(false);
    }
    let made = || stack.wait(api.get(&format!("/v1/schedules/{project}/once")))?.fine("the schedule");
    let fired = || Ok(made()?["runs"][0]["shkeptncontext"].as_str().map(str::to_owned));
    let context = until("the schedule to trigger", fired, || format!("{:?}", made()))?;
    bed.observer.event(&context, STARTED, 0)?;
    Ok(true)
}

/// The next sweep would find it as well, minutes later. If it has to, because the message is refused something, the test of
/// permissions at the end tells.
fn thawed(bed: &Bed) -> Outcome {
    let (stack, project) = (&bed.stack, format!("thawed-{}", &fresh()[24..]));
    let api = stack.api();
    stack.wait(api.apply_project(&project, &FROZEN.replace("OPENS", "2099-01-01")))?;
    let context = fresh();
    stack.put_event(&Scope::new(&project, "prod", "cart").trigger("delivery", &context, Map::new()))?;
    let phase = || -> Result<Value, Problem> {
        let entry = stack.wait(api.sequence(&project, &context))?.unwrap_or_default();
        Ok(entry["executions"][0]["phase"].clone())
    };
    until("it to be held back", || Ok((phase()? == "frozen").then_some(())), || format!("{:?}", phase()))?;
    stack.wait(api.apply_project(&project, &FROZEN.replace("OPENS", "2020-01-02")))?;
    bed.observer.event(&context, STARTED, 0).map(drop)
}

fn one_holder(events: &[Value]) -> Outcome {
    let mut holder: Option<&str> = None;
    for event in events {
        let context = event["shkeptncontext"].as_str().unwrap_or_default();
        match event["type"].as_str() {
            Some("sh.keptn.event.dev.delivery.started") => {
                ensure(holder.is_none(), || format!("{context} started while {holder:?} held the lane"))?;
                holder = Some(context);
            }
            Some("sh.keptn.event.dev.delivery.finished") => {
                ensure(holder == Some(context), || format!("{context} ended while {holder:?} held the lane"))?;
                holder = None;
            }
            _ => {}
        }
    }
    Ok(())
}
