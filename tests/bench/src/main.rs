//! `make bench`: deploys the release builds as a stack of its own on the local cloud and counts, in the deployed functions, what one more
//! task and one more sequence cost, whether that stays so as history and queues grow, how much CPU time and memory the functions use,
//! and how long things take. Promotions and deployments are counted in memory, promotions
//! against a git host. Aims are printed beside the values; only a malfunction
//! is a failure.
//!
//! `keelway-bench promotions` and `keelway-bench deployments` count these and nothing else: they need neither a stack nor release builds.
//! `keelway-bench latency` only measures how long things take on a stack.

mod bed;
mod cost;
mod deployments;
mod history;
mod latency;
mod load;
mod price;
mod promotions;
mod report;
mod start;

use bed::{Bed, results};
use keelway_cloud_tests::Problem;
use report::{Aim, Report};
use std::process::ExitCode;
use std::time::Instant;

/// Finished sequences in the table, and sequences waiting on one lane.
const MANY: usize = 1_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => bench(),
        ["promotions"] => counted(promotions::count),
        ["deployments"] => counted(deployments::count),
        ["latency"] => latency(),
        _ => Err("usage: keelway-bench [promotions | deployments | latency]".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// Says what is done now, with the time since the beginning.
fn teller(began: Instant) -> impl Fn(&str) {
    move |text| eprintln!("[{:>4.0} s] {text}", began.elapsed().as_secs_f64())
}

/// What can be counted without a stack.
fn counted(count: impl Fn(&mut Report, &dyn Fn(&str)) -> Result<(), Problem>) -> Result<(), Problem> {
    let mut report = Report::default();
    let say = teller(Instant::now());
    count(&mut report, &say)?;
    say("done");
    report.write(&results()?)?;
    report.print();
    Ok(())
}

fn latencies(bed: &Bed, report: &mut Report, say: &impl Fn(&str)) -> Result<(), Problem> {
    say("latency from task to task");
    latency::tasks(bed, report)?;
    say("latency from execution to execution on one lane");
    latency::lane(bed, report)?;
    say("latency from observation to attempt");
    promotions::attempts(bed, report)?;
    say("latency from push to offer");
    deployments::offers(bed, report)?;
    latency::idle(bed, report)
}

fn latency() -> Result<(), Problem> {
    let mut report = Report::default();
    let say = teller(Instant::now());
    say("a stack of its own");
    let bed = Bed::make()?;
    latencies(&bed, &mut report, &say)?;
    bed.cloud.stop();
    report.write(&results()?)?;
    report.print();
    Ok(())
}

fn bench() -> Result<(), Problem> {
    let began = Instant::now();
    let mut report = Report::default();
    let say = teller(began);
    say("starting functions beside an empty one");
    start::measure(&mut report)?;
    say("a stack of its own");
    let bed = Bed::make()?;
    say("counting sequences of 2 and 6 tasks, 1 finished sequence in the table");
    let few = cost::free_lane(&bed)?;
    cost::tell(&mut report, "1 finished sequence in the table", &few, true);
    say("the same with one sequence waiting on the lane");
    let one_waits = cost::busy_lane(&bed, 1)?;
    say(&format!("the same with {MANY} finished sequences in the table"));
    history::finished(&bed, MANY)?;
    let many = cost::free_lane(&bed)?;
    cost::tell(&mut report, &format!("{MANY} finished sequences in the table"), &many, true);
    cost::tell_queue(&mut report, "1 waiting on the lane", &one_waits);
    say(&format!("the same with {MANY} waiting on the lane"));
    let many_wait = cost::busy_lane(&bed, MANY)?;
    cost::tell_queue(&mut report, &format!("{MANY} waiting on the lane"), &many_wait);
    price::tell(&mut report, &few)?;
    say("CPU time and memory of the functions under load");
    load::measure(&bed, &mut report)?;
    latencies(&bed, &mut report, &say)?;
    promotions::count(&mut report, &say)?;
    deployments::count(&mut report, &say)?;
    report.row("all", "the bench took", began.elapsed().as_secs_f64(), "s", Aim::AtMost(300.0));
    bed.cloud.stop();
    report.write_all(&results()?)?;
    report.print();
    Ok(())
}
