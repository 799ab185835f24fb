//! `make bench`: deploys the release builds as a stack of its own on the local cloud. It counts, in the deployed functions, the
//! cost of one more task and one more sequence, checks whether it stays the same as history and queues grow, and measures CPU time,
//! memory and latencies. Promotions and deployments are counted in memory, promotions against a git host. Aims are printed beside
//! the values; only a malfunction is a failure.
//!
//! `keelway-bench promotions`, `keelway-bench deployments`, `keelway-bench http`, `keelway-bench recovery`,
//! `keelway-bench scale` and `keelway-bench page` measure only that: they need neither a stack nor release builds.
//! `keelway-bench latency` measures only latencies, on a stack. `keelway-bench tables` writes the tables of `docs/scale.md`.
//!
//! `keelway-bench bill` tells what an idle month and a month of three teams cost, and `keelway-bench bill --write` writes that into
//! `docs/costs.md`; a test compares the two.
//!
//! `keelway-bench short` runs a little of every part with the builds beside it, without judging or storing values. A test runs it,
//! so that the bench works when somebody needs its figures.

mod bed;
mod bill;
mod cost;
mod deployments;
mod evaluations;
mod history;
mod latency;
mod load;
mod over_http;
mod page;
mod price;
mod promotions;
mod recovery;
mod report;
mod scale;
mod size;
mod start;

use bed::{Bed, release, results};
use keelway_cloud_tests::Problem;
use keelway_cloud_tests::cloud::binaries;
use report::{Aim, Report};
use size::{SHORT, Size, WHOLE};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

const USAGE: &str = "usage: keelway-bench [promotions | deployments | evaluations | http | page | recovery | scale [times smaller] | \
                     tables | latency | bill [--write] | short]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => whole(),
        ["short"] => short(),
        ["promotions"] => counted(promotions::count),
        ["deployments"] => counted(deployments::count),
        ["evaluations"] => counted(|report, _, say| evaluations::count(report, say)),
        ["recovery"] => counted(|report, _, say| recovery::measure(report, say)),
        ["scale"] => counted(scale::count),
        ["scale", smaller] => smaller.parse::<usize>().map_err(|error| Problem::of("scale", error)).and_then(scaled),
        ["tables"] => scale::tables(),
        ["latency"] => latency(),
        ["page"] => counted(page::measure),
        ["http"] => counted(|report, _, _| over_http::measure(report)),
        ["bill"] => bill::print(),
        ["bill", "--write"] => bill::write(),
        _ => Err(USAGE.into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the present step, with the time since the beginning.
fn teller(began: Instant) -> impl Fn(&str) {
    move |text| eprintln!("[{:>4.0} s] {text}", began.elapsed().as_secs_f64())
}

/// Runs a measurement that needs no stack.
fn counted(count: impl Fn(&mut Report, &Size, &dyn Fn(&str)) -> Result<(), Problem>) -> Result<(), Problem> {
    let mut report = Report::new(true);
    let say = teller(Instant::now());
    count(&mut report, &WHOLE, &say)?;
    say("done");
    report.write(&results()?)?;
    report.print();
    Ok(())
}

/// Measures latencies; the median from one task to the next, in milliseconds.
fn latencies(bed: &Bed, size: &Size, report: &mut Report, say: &impl Fn(&str)) -> Result<f64, Problem> {
    say("latency from task to task");
    let step = latency::tasks(bed, size.sequences, report)?;
    say("latency from execution to execution on one lane");
    latency::lane(bed, size.deliveries, report)?;
    say("latency from observation to attempt");
    promotions::attempts(bed, size.attempts, report)?;
    say("latency from push to offer");
    deployments::offers(bed, size.offers, report)?;
    latency::idle(bed, size.idle, report)?;
    Ok(step)
}

/// The loads that meet quotas, so many times smaller than in full.
fn scaled(smaller: usize) -> Result<(), Problem> {
    let smaller = smaller.max(1);
    let size = Size { smaller, others: WHOLE.others / smaller, ..WHOLE };
    counted(|report, _, say| scale::count(report, &size, say))
}

fn latency() -> Result<(), Problem> {
    let mut report = Report::new(true);
    let say = teller(Instant::now());
    say("a stack of its own");
    let bed = Bed::make(Bed::deploy(&release()?)?)?;
    latencies(&bed, &WHOLE, &mut report, &say)?;
    bed.cloud.stop();
    report.write(&results()?)?;
    report.print();
    Ok(())
}

fn whole() -> Result<(), Problem> {
    every_part(&release()?, &WHOLE, &results()?)
}

/// Runs every part briefly, in a directory whose figures do not replace the real ones.
fn short() -> Result<(), Problem> {
    let directory = tempfile::tempdir().map_err(|error| Problem::of("a directory", error))?;
    every_part(&binaries()?, &SHORT, directory.path())
}

/// Measures everything with this build of the functions, writes the values if all of them are there, and prints them in any case:
/// those from before a failure took minutes, too.
fn every_part(build: &Path, size: &Size, directory: &Path) -> Result<(), Problem> {
    let mut report = Report::new(size.judged);
    let done = bench(build, size, &mut report).and_then(|()| report.write_all(directory));
    report.print();
    done
}

/// Adds the values of every part to the report.
fn bench(build: &Path, size: &Size, report: &mut Report) -> Result<(), Problem> {
    let began = Instant::now();
    let say = teller(began);
    say("a stack of its own");
    let deployed = Bed::deploy(build)?;
    say("starting functions beside an empty one");
    start::measure(&deployed.1, deployed.0.raw(), build, size.starts, report)?;
    let bed = Bed::make(deployed)?;
    say("counting sequences of 2 and 6 tasks, 1 finished sequence in the table");
    let few = cost::free_lane(&bed, size.runs)?;
    cost::tell(report, "1 finished sequence in the table", &few, true);
    say("the same with one sequence waiting on the lane");
    let one_waits = cost::busy_lane(&bed, 1)?;
    let many = size.many;
    say(&format!("the same with {many} finished sequences in the table"));
    history::finished(&bed, many)?;
    let long = cost::free_lane(&bed, size.runs)?;
    cost::tell(report, &format!("{many} finished sequences in the table"), &long, true);
    cost::tell_queue(report, "1 waiting on the lane", &one_waits);
    say(&format!("the same with {many} waiting on the lane"));
    let many_wait = cost::busy_lane(&bed, many)?;
    cost::tell_queue(report, &format!("{many} waiting on the lane"), &many_wait);
    price::tell(report, &few)?;
    over_http::measure(report)?;
    say("CPU time and memory of the functions under load");
    let own = load::measure(&bed, size.load, report)?;
    let step = latencies(&bed, size, report, &say)?;
    if let Some(own) = own {
        report.row("latency, from one task to the next", "of it, CPU time of the function", own / step * 100.0, "%", Aim::None);
    }
    promotions::count(report, size, &say)?;
    deployments::count(report, size, &say)?;
    evaluations::count(report, &say)?;
    scale::count(report, size, &say)?;
    recovery::measure(report, &say)?;
    page::measure(report, size, &say)?;
    report.row("all", "the bench took", began.elapsed().as_secs_f64(), "s", Aim::AtMost(300.0));
    bed.cloud.stop();
    Ok(())
}
