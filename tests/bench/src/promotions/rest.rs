//! Pipelines with three open pull requests each, during eight hours in which nobody does anything.

use super::hosts::{FORMS, Memory, SHARING, Strict, by_request};
use super::stand::{Stand, environments};
use crate::cost::{Used, number};
use crate::report::{Aim, Report};
use keelway_attempts::Carrier;
use keelway_cloud_tests::Problem;
use keelway_domain::time::Span;
use keelway_engine::promotions::attempts::Outside;
use keelway_engine::sequences::{Limits, Sequences};
use keelway_outgoing::{Client, Guard, Hosts};
use keelway_world::at_once::AtOnce;

/// The open pull requests of a pipeline.
const OPEN: usize = 3;
/// The age at which every pause between looks is the longest one.
const OLD: Span = Span::minutes(120);
/// The number of hours. After the first two, every hour is like the one before.
const HOURS: i64 = 8;

/// A stand with the real worker for attempts.
pub async fn carried(form: &str, api: &str) -> Result<Stand<Carrier<AtOnce>>, Problem> {
    let carrier = |_: &_, ports: AtOnce, pipelines| {
        // The git host is on this machine.
        let ways = (Client::new(Hosts::default()), Guard::new(Hosts::default()).with_loopback(true));
        Ok(Carrier::new(ports.clone(), Sequences::new(ports, Limits::default()), pipelines, ways))
    };
    Stand::new(form, api, carrier).await
}

/// The cost of a period.
#[derive(Debug, Clone, Copy, Default)]
struct Stretch {
    looks: f64,
    /// Messages and looks.
    requests: f64,
    swept: Used,
}

async fn pass<O: Outside>(stand: &mut Stand<O>, time: Span) -> Result<Stretch, Problem> {
    let (used, swept, looks) = (stand.used(), stand.swept, stand.looks);
    stand.pass(time).await?;
    let swept = stand.swept - swept;
    Ok(Stretch { looks: stand.looks - looks, requests: (stand.used() - used).requests - swept.requests, swept })
}

/// The period after the first two hours.
fn rest() -> Span {
    Span(Span::minutes(HOURS * 60).0 - OLD.0)
}

#[expect(clippy::cast_precision_loss, reason = "some hours")]
fn hours(span: Span) -> f64 {
    span.0 as f64 / 3_600_000.0
}

/// Measures this many pipelines with the real client against the strict host.
pub async fn small(report: &mut Report, size: usize) -> Result<(), Problem> {
    for form in FORMS {
        let host = Strict::start(form, size, &environments(OPEN))?;
        let mut stand = carried(host.form(), &host.api()).await?;
        let pipelines = number(size as u64);
        for n in 0..size {
            stand.open(n, OPEN, by_request(n, host.form())).await?;
        }
        let (opened, opened_writes) = host.calls()?;
        let group = format!(
            "promotions, {OPEN} open pull requests in each of {size} pipelines, {SHARING} to a repository: real client, strict host, form {}",
            host.form()
        );
        let requests = pipelines * number(OPEN as u64);
        report.row(&group, "host calls to open a pull request", opened / requests, "", Aim::None);
        report.row(&group, "of them, that change something", opened_writes / requests, "", Aim::None);
        let early = pass(&mut stand, OLD).await?;
        let (early_calls, early_writes) = host.calls()?;
        let late = pass(&mut stand, rest()).await?;
        let (late_calls, late_writes) = host.calls()?;
        report.row(&group, "host calls, one look at a repository, later", late_calls / late.looks, "", Aim::None);
        report.row(&group, "host calls an hour and pipeline, first two hours", early_calls / 2.0 / pipelines, "", Aim::None);
        report.row(&group, "host calls an hour and pipeline, later", late_calls / hours(rest()) / pipelines, "", Aim::None);
        report.row(&group, "host calls that change something, in eight hours", early_writes + late_writes, "", Aim::AtMost(0.0));
        tell(report, &group, pipelines, (early, late));
    }
    Ok(())
}

fn tell(report: &mut Report, group: &str, pipelines: f64, (early, late): (Stretch, Stretch)) {
    report.row(group, "looks an hour and pipeline, first two hours", early.looks / 2.0 / pipelines, "", Aim::None);
    report.row(group, "looks an hour and pipeline, later", late.looks / hours(rest()) / pipelines, "", Aim::None);
    // The timers from the time when the pull requests were opened have fired by then.
    report.row(group, "AWS requests, one look at a repository, later", late.requests / late.looks, "", Aim::None);
    let (swept, all) = (early.swept + late.swept, hours(OLD) + hours(rest()));
    report.row(group, "AWS requests an hour and pipeline, sweeps", swept.requests / all / pipelines, "", Aim::None);
    report.row(group, "read units an hour and pipeline, sweeps", swept.reads / all / pipelines, "RRU", Aim::None);
}

/// Measures growing numbers of pipelines in memory.
pub async fn many(report: &mut Report, sizes: &[usize]) -> Result<(), Problem> {
    for &size in sizes {
        let mut host = None;
        let memory = |_: &_, _, pipelines| Ok(host.insert(Memory::new(pipelines)).clone());
        let mut stand = Stand::new("gitea", "https://git.example.com/api/v1", memory).await?;
        let host = host.ok_or("no host")?;
        for n in 0..size {
            stand.open(n, OPEN, by_request(n, "gitea")).await?;
        }
        let (opened, pipelines) = (host.writes(), number(size as u64));
        let group =
            format!("promotions, {OPEN} open pull requests in each of {size} pipelines, {SHARING} to a repository: host in memory");
        let stretches = (pass(&mut stand, OLD).await?, pass(&mut stand, rest()).await?);
        report.row(
            &group,
            "operations at the host that change something, in eight hours",
            host.writes() - opened,
            "",
            Aim::AtMost(0.0),
        );
        tell(report, &group, pipelines, stretches);
        observations(report, &group, &mut stand, size).await?;
    }
    Ok(())
}

/// The cost of an observation without a consequence, and of one that starts a run.
async fn observations<O: Outside>(report: &mut Report, group: &str, stand: &mut Stand<O>, size: usize) -> Result<(), Problem> {
    for (what, from, revision) in [
        ("AWS requests, an observation without news", 0, "v2"),
        ("AWS requests, an observation that nobody waits for", size, "v2"),
        ("AWS requests, one that begins a run: three pull requests closed, one opened", 0, "v3"),
    ] {
        let before = stand.used();
        for n in from..from + SHARING {
            stand.observe(n, "dev", revision).await?;
        }
        let used = stand.used() - before;
        report.row(group, what, used.requests / number(SHARING as u64), "", Aim::None);
    }
    Ok(())
}
