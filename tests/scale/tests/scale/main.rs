//! Loads that meet the quotas of AWS: nothing is lost, no lane starves, and everything ends in the time that the quotas allow. They
//! are smaller than in full by a factor, and so are the quotas; `keelway-bench scale` plays them in full.

mod quotas;

use keelway_scale::{Outcome, Place, burst, flat, observed, one_context, outage, page, replay, window};
use keelway_world::quota::File;
use std::path::Path;

/// As in the other simulations.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const FRANKFURT: &str = "eu-central-1";
const SMALLEST: &str = "af-south-1";

/// Everything that must hold of every load: at most twice as long as ideal, and a minute for the pauses of those who try again.
fn holds(outcome: &Outcome) {
    println!("{}", outcome.line());
    for bound in outcome.bounds.iter().take(4) {
        println!("    {:>7.1} s {}", bound.seconds, bound.name);
    }
    println!("    {:?}", outcome.totals);
    assert_eq!(outcome.wrong, Vec::<String>::new());
    assert_eq!((outcome.ended, outcome.totals.dead), (outcome.begun, 0), "nothing is lost");
    let most = outcome.ideal() * 2.0 + 60.0;
    assert!(outcome.took <= most, "it takes {} s, and at most {most} s are allowed", outcome.took);
    assert!(outcome.slowest <= most, "a lane stood for {} s", outcome.slowest);
}

#[test]
fn ten_thousand_deliveries_begin_in_one_minute() {
    for region in [SMALLEST, FRANKFURT] {
        holds(&burst(Place::new(region, 5)));
    }
}

#[test]
fn a_window_opens_for_a_hundred_thousand_executions() {
    holds(&window(Place::new(FRANKFURT, 50)));
}

#[test]
fn one_context_has_a_thousand_executions() {
    holds(&one_context(Place::new(FRANKFURT, 1)));
}

#[test]
fn fifty_thousand_pipelines_are_observed() {
    holds(&observed(Place::new(SMALLEST, 20)));
}

#[test]
fn an_executor_comes_back_after_a_week() {
    holds(&outage(Place::new(SMALLEST, 10)));
}

#[test]
fn a_day_is_replayed() {
    holds(&replay(Place::new(SMALLEST, 10)));
}

#[test]
fn quotas_bind_and_cost_no_write_unit() {
    let (bound, boundless) = (burst(Place::new(SMALLEST, 20)), burst(Place::new(SMALLEST, 20).boundless()));
    assert!(bound.totals.throttled > 0 && bound.took > 2.0 * boundless.took, "{} {}", bound.line(), boundless.line());
    assert_eq!((boundless.totals.throttled, boundless.totals.again, boundless.totals.put_again), (0, 0, 0));
    assert!(bound.totals.requests > boundless.totals.requests && bound.totals.writes < 1.2 * boundless.totals.writes);
}

#[test]
fn one_more_delivery_takes_the_same_whatever_has_ended_and_whatever_waits() {
    assert_eq!(flat::beside_finished(10), flat::beside_finished(1_000));
    assert_eq!(flat::behind_waiting(10), flat::behind_waiting(1_000));
}

#[test]
fn the_tables_of_the_page_are_those_of_the_quotas() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scale.md");
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(page::renewed(&page).unwrap() == page, "docs/scale.md is behind infra/quotas.json: run keelway-bench tables");
}

/// What a task takes of each quota, as the file has it, is what it takes in memory.
#[test]
fn a_task_takes_what_the_file_says() {
    let task = flat::one_more_task();
    let file = File::read().unwrap();
    let takes = |id: &str| file.limits.iter().find(|limit| limit.id == id).and_then(|limit| limit.per_task).unwrap();
    println!("one more task: {task:?}");
    assert!(task.writes <= takes("contextWrites") && task.reads <= takes("newTableReads"), "{task:?}");
    let parameter = file.figure("sequencesConcurrency", FRANKFURT).unwrap();
    assert_eq!(Place::new(FRANKFURT, 1).concurrency.to_string(), parameter.to_string());
    let template = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../infra/template.yaml")).unwrap();
    let default = format!("  SequencesConcurrency:\n    Type: Number\n    Default: {parameter}\n");
    assert!(template.contains(&default), "infra/template.yaml has another {default}");
}
