//! The cost of one promotion: by notification, and by a pull request that a person merges.

use super::hosts::{FORMS, Strict, by_request};
use super::rest::carried;
use super::stand::{Stand, environments};
use crate::cost::{Used, number};
use crate::price;
use crate::report::{Aim, Report};
use keelway_cloud_tests::Problem;
use keelway_domain::promotions::Phase;
use keelway_domain::promotions::definition::{Notification, Strategy};
use keelway_domain::time::Span;
use keelway_engine::promotions::attempts::Outside;
use keelway_githost::Form;

/// A pull request is merged as soon as it is open. After this time, the last look at the repository is over.
const MERGED: Span = Span::minutes(2);

/// The time after which all timers of a run have fired.
const OVER: Span = Span::minutes(10);
/// The promotions of a run, one after the other.
const PROMOTIONS: usize = 3;

/// The cost of a run, of Keelway and of the git host.
#[derive(Clone, Copy)]
struct Run {
    used: Used,
    calls: f64,
}

/// Measures a run through one pipeline for each strategy.
pub async fn measure(report: &mut Report) -> Result<(), Problem> {
    tell(report, "by notification", by_notification().await?)?;
    for form in FORMS {
        tell(report, &format!("by pull request, form {}, merged before the first look", form.1), merged(form).await?)?;
    }
    Ok(())
}

fn tell(report: &mut Report, how: &str, run: Run) -> Result<(), Problem> {
    let group = format!("promotions, cost of one {how}: a third of a run of {PROMOTIONS}");
    let share = 1.0 / number(PROMOTIONS as u64);
    let (one, calls) = (run.used * share, run.calls * share);
    report.row(&group, "AWS requests", one.requests, "", Aim::None);
    report.row(&group, "write units", one.writes, "WRU", Aim::None);
    report.row(&group, "read units", one.reads, "RRU", Aim::None);
    report.row(&group, "events published", one.events, "", Aim::None);
    report.row(&group, "messages handled", one.messages, "", Aim::None);
    if calls > 0.0 {
        report.row(&group, "host calls", calls, "", Aim::None);
    }
    price::tell_one(report, &group, "promotions", &one, calls)
}

async fn by_notification() -> Result<Run, Problem> {
    let mut stand = carried("gitea", "https://git.example.com/api/v1").await?;
    start(&mut stand, Strategy::Notification(Notification::default())).await?;
    let mut used = Used::default();
    for revision in ["v2", "v3"] {
        let (before, swept) = (stand.used(), stand.swept);
        stand.observe(0, "dev", revision).await?;
        for environment in &environments(PROMOTIONS)[1..] {
            succeeded(&stand, environment)?;
            stand.observe(0, environment, revision).await?;
        }
        stand.pass(OVER).await?;
        // Sweeps cost the same with and without promotions.
        used = stand.used() - before - (stand.swept - swept);
    }
    Ok(Run { used, calls: 0.0 })
}

async fn merged(form: (Form, &'static str)) -> Result<Run, Problem> {
    let host = Strict::start(form, 1, &environments(PROMOTIONS))?;
    let mut stand = carried(host.form(), &host.api()).await?;
    start(&mut stand, by_request(0, host.form())).await?;
    let mut run = Run { used: Used::default(), calls: 0.0 };
    // The second revision is counted, because the first one creates what is created only once.
    for revision in ["v2", "v3"] {
        let (before, swept) = (stand.used(), stand.swept);
        host.calls()?;
        stand.observe(0, "dev", revision).await?;
        for environment in &environments(PROMOTIONS)[1..] {
            let (_, request) = stand.promotion(0, environment)?;
            host.merge(0, request.ok_or("a promotion has no pull request")?)?;
            stand.pass(MERGED).await?;
            succeeded(&stand, environment)?;
            stand.observe(0, environment, revision).await?;
        }
        stand.pass(OVER).await?;
        run = Run { used: stand.used() - before - (stand.swept - swept), calls: host.calls()?.0 };
    }
    Ok(run)
}

async fn start<O: Outside>(stand: &mut Stand<O>, strategy: Strategy) -> Result<(), Problem> {
    stand.apply(0, PROMOTIONS, strategy).await?;
    for environment in environments(PROMOTIONS) {
        stand.observe(0, &environment, "v1").await?;
    }
    Ok(())
}

fn succeeded<O: Outside>(stand: &Stand<O>, environment: &str) -> Result<(), Problem> {
    match stand.promotion(0, environment)? {
        (Some(Phase::Succeeded), _) => Ok(()),
        (phase, _) => Err(format!("the promotion into {environment} has not succeeded, but is {phase:?}").into()),
    }
}
