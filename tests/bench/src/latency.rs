//! Latencies by the clock of the cloud: from one event's arrival on the bus to another's.

use crate::bed::{Bed, PROJECT, STAGE};
use crate::report::{Aim, Report};
use keelway_cloud_tests::Problem;
use keelway_cloud_tests::events::Scope;
use serde_json::Value;
use std::time::Duration;

/// Reports the distribution of times in milliseconds; their median.
pub fn tell(report: &mut Report, name: &str, mut samples: Vec<i64>) -> f64 {
    samples.sort_unstable();
    let group = format!("latency on this machine, {name}, {} samples", samples.len());
    let value = |percent: usize| {
        let place = (samples.len() * percent).div_ceil(100).saturating_sub(1);
        #[expect(clippy::cast_precision_loss, reason = "milliseconds of a bench")]
        let value = samples.get(place).copied().unwrap_or_default() as f64;
        value
    };
    for (what, percent) in [("p50", 50), ("p99", 99), ("most", 100)] {
        report.row(&group, what, value(percent), "ms", Aim::None);
    }
    value(50)
}

/// The latency from a task's `finished` to the next task's `triggered`, in this many sequences of six tasks: five steps each. First
/// with answers over the bus and the queue, then with answers over HTTP, and how the medians compare. The first median.
pub fn tasks(bed: &Bed, sequences: usize, report: &mut Report) -> Result<f64, Problem> {
    let queue = steps(bed, sequences, |event| bed.stack.put_event(event))?;
    let http = steps(bed, sequences, |event| bed.post(event))?;
    let queue = tell(report, "`finished` accepted to the next `triggered`", queue);
    let http = tell(report, "the same over HTTP", http);
    report.row(
        "latency, ratios",
        "a task's step over HTTP, as a part of that through the queue",
        http / queue,
        "",
        Aim::AtMost(0.5),
    );
    Ok(queue)
}

fn steps(bed: &Bed, sequences: usize, send: impl Fn(&Value) -> Result<(), Problem>) -> Result<Vec<i64>, Problem> {
    let mut samples = vec![];
    for n in 0..sequences {
        let scope = Scope::new(PROJECT, STAGE, &format!("task-{}", n % 4));
        let context = bed.trigger(&scope, 6)?;
        bed.play_all_by(std::slice::from_ref(&context), 6, &send)?;
        for task in 1..6 {
            let finished = bed.event(&context, &format!("sh.keptn.event.task{task}.finished"))?;
            let triggered = bed.event(&context, &format!("sh.keptn.event.task{}.triggered", task + 1))?;
            samples.push(triggered.sent - finished.sent);
        }
    }
    Ok(samples)
}

/// The latency from an execution's end to the next one's start, with this many deliveries on one lane.
pub fn lane(bed: &Bed, deliveries: usize, report: &mut Report) -> Result<(), Problem> {
    let scope = Scope::new(PROJECT, STAGE, "lane");
    let mut contexts = vec![];
    for _ in 0..deliveries {
        contexts.push(bed.trigger(&scope, 1)?);
    }
    let seen = bed.play_all(&contexts, 1)?;
    let (started, finished) = (format!("sh.keptn.event.{STAGE}.run1.started"), format!("sh.keptn.event.{STAGE}.run1.finished"));
    let times = |ty: &str| seen.iter().filter(|seen| seen.event["type"] == ty).map(|seen| seen.sent).collect::<Vec<_>>();
    let (starts, ends) = (times(&started), times(&finished));
    tell(
        report,
        "one execution's end to the next one's start",
        starts[1..].iter().zip(&ends).map(|(start, end)| start - end).collect(),
    );
    Ok(())
}

/// Checks that nothing happens for this long while nothing is due.
pub fn idle(bed: &Bed, time: Duration, report: &mut Report) -> Result<(), Problem> {
    bed.rest()?;
    let before = bed.observer.line_count();
    std::thread::sleep(time);
    let messages = bed.observer.line_count() - before;
    let name = format!("messages handled in {} s without any input", time.as_secs());
    #[expect(clippy::cast_precision_loss, reason = "a handful of messages")]
    report.row("latency, polls", &name, messages as f64, "", Aim::AtMost(0.0));
    Ok(())
}
