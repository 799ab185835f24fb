//! One lane, many deliveries.

use crate::bed::Bed;
use keelway_cloud_tests::events::{Scope, fresh};
use keelway_cloud_tests::executor::{Executor, count};
use keelway_cloud_tests::patience::until;
use keelway_cloud_tests::problem::{ensure, same};
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Outcome, Problem};
use keelway_engine::keys::MAIN;
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::time::Duration;

const SHIPYARD: &str = "apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shipyard-queue}
spec: {stages: [{name: dev, sequences: [{name: delivery, tasks: [{name: deploy}]}]}]}
";
const DELIVERIES: usize = 20;

pub fn tests() -> Vec<Test<Bed>> {
    vec![Test::new("lanes::twenty deliveries of one service run one after the other, in order", queue)]
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
